/* SPDX-License-Identifier: BSD-3-Clause */
/* The binary protocol. Headers are as in memcached's protocol_binary.h. */
#include "capture_streams.h"

static struct replay r;

#define BODY(n) "\0\0\0" n
#define OPAQUE(n) "\0\0\0" n
#define CAS "\0\0\0\0\0\0\0\0"
/* Opcode, bytes of key and extras (one each), of the body, opaque. */
#define REQUEST(opcode, key, extras, body, opaque)                                                 \
	"\x80" opcode "\0" key extras "\0\0\0" BODY(body) OPAQUE(opaque) CAS
#define RESPONSE(opcode, key, extras, status, body, opaque)                                        \
	"\x81" opcode "\0" key extras "\0\0" status BODY(body) OPAQUE(opaque) CAS

#define PLAY(...)                                                                                  \
	do {                                                                                       \
		static const struct chunk chunks[] = {__VA_ARGS__};                                \
		replay_all_cuts(&r, replay_framer("memcached-binary"), chunks, COUNT(chunks));     \
	} while (0)

static const uint8_t whole = BS_FRAME_HEAD | BS_FRAME_END;
static const uint8_t whole_skip = BS_FRAME_HEAD | BS_FRAME_SKIP | BS_FRAME_END;

static void
test_command_has_its_name_and_is_paired_by_opaque_and_opcode(void **state)
{
	(void)state;
	PLAY(C(REQUEST("\0", "\1", "\0", "\1", "\7") "k" REQUEST("\1", "\1", "\x8", "\xc",
		     "\x8") "flagsexpkval" REQUEST("\xa", "\0", "\0", "\0", "\7")),
		S(RESPONSE("\0", "\0", "\4", "\0", "\5", "\7") "flagv" RESPONSE("\1", "\0", "\0",
			"\0", "\0", "\x8") RESPONSE("\xa", "\0", "\0", "\0", "\0", "\7")));
	assert_int_equal(r.count, 6);
	assert_string_equal(r.told[0].label, "get");
	assert_int_equal(r.told[0].flags, whole_skip);
	assert_int_equal(r.told[0].at, 24);
	assert_int_equal(r.told[0].skip, 1);
	assert_string_equal(r.told[1].label, "set");
	assert_int_equal(r.told[1].begin, 25);
	assert_int_equal(r.told[1].skip, 12);
	assert_string_equal(r.told[2].label, "noop");
	assert_int_equal(r.told[2].flags, whole);
	for (size_t i = 0; i < 3; i++) {
		assert_true(r.told[i].has_id);
		assert_int_equal(r.told[i].id, r.told[i + 3].id);
		assert_int_equal(r.told[i].oneway, 0);
		assert_int_equal(r.told[i + 3].status, 0);
		assert_false(r.told[i + 3].error);
	}
	assert_int_not_equal(r.told[0].id, r.told[2].id); /* the same opaque, another command */
	assert_int_equal(r.told[3].skip, 5);
}

/* Commands that end in Q, by their numbers in protocol_binary.h. */
static void
test_quiet_commands_are_oneway_unless_answered(void **state)
{
	static const uint8_t quiet[] = {
		0x09, 0x0d, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x18, 0x19, 0x1a, 0x1e, 0x24};
	uint8_t header[24] = {0x80};
	struct chunk chunk = {false, header, sizeof(header)};

	(void)state;
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		uint8_t want = opcode == 0x17 ? BS_ONEWAY : 0; /* quitq */

		if (memchr(quiet, (int)opcode, sizeof(quiet)) != NULL)
			want = BS_ONEWAY_UNLESS_ANSWERED;
		header[1] = (uint8_t)opcode;
		replay_run(&r, replay_framer("memcached-binary"), &chunk, 1, SIZE_MAX, 0, 0);
		assert_int_equal(r.count, 1);
		assert_int_equal(r.told[0].oneway, want);
		if (want != 0)
			assert_int_equal(r.told[0].label[strlen(r.told[0].label) - 1], 'q');
	}
	assert_string_equal(r.told[0].label, "other");
}

static void
test_statistics_are_one_answer_of_many_packets(void **state)
{
	(void)state;
	PLAY(C(REQUEST("\x10", "\0", "\0", "\0", "\3") REQUEST("\xb", "\0", "\0", "\0", "\4")),
		S(RESPONSE("\x10", "\3", "\0", "\0", "\4", "\3") "pid1"),
		S(RESPONSE("\x10", "\1", "\0", "\0", "\1", "\3") "x"),
		S(RESPONSE("\x10", "\0", "\0", "\0", "\0", "\3")),
		S(RESPONSE("\xb", "\0", "\0", "\0", "\2", "\4") "1."));
	assert_int_equal(r.count, 6);
	assert_string_equal(r.told[0].label, "stat");
	assert_int_equal(r.told[2].flags, BS_FRAME_HEAD | BS_FRAME_SKIP);
	assert_int_equal(r.told[2].id, r.told[0].id);
	assert_int_equal(r.told[3].flags, BS_FRAME_SKIP);
	assert_int_equal(r.told[4].flags, BS_FRAME_END);
	assert_int_equal(r.told[5].flags, whole_skip);
	assert_int_equal(r.told[5].id, r.told[1].id);
	/* Refused ones are answered once. */
	PLAY(S(RESPONSE("\x10", "\0", "\0", "\1", "\2", "\3") "no"));
	assert_int_equal(r.count, 1);
	assert_int_equal(r.told[0].flags, whole_skip);
}

static void
test_miss_is_a_status_and_no_error(void **state)
{
	(void)state;
	PLAY(S(RESPONSE("\0", "\0", "\0", "\1", "\0", "\1") RESPONSE("\2", "\0", "\0", "\2", "\0",
		"\2") RESPONSE("\3", "\0", "\0", "\5", "\0", "\3") RESPONSE("\5", "\0", "\0", "\6",
		"\0", "\4") RESPONSE("\x77", "\0", "\0", "\x81", "\0", "\5")));
	assert_int_equal(r.count, 5);
	assert_int_equal(r.told[0].status, 1);
	assert_false(r.told[0].error);
	assert_false(r.told[1].error);
	assert_false(r.told[2].error);
	assert_int_equal(r.told[3].status, 6); /* incr of what is no number */
	assert_true(r.told[3].error);
	assert_int_equal(r.told[4].status, 0x81);
	assert_true(r.told[4].error);
}

static void
expect_bad(bool from_server, const char *text)
{
	struct chunk chunk = {from_server, text, 24};

	replay_all_cuts(&r, replay_framer("memcached-binary"), &chunk, 1);
	assert_int_equal(r.count, 1);
	assert_int_equal(r.told[0].flags, BS_FRAME_BAD);
}

static void
test_nonsense_is_bad(void **state)
{
	(void)state;
	expect_bad(false, RESPONSE("\0", "\0", "\0", "\0", "\0", "\1"));
	expect_bad(true, REQUEST("\0", "\0", "\0", "\0", "\1"));
	expect_bad(false, REQUEST("\0", "\2", "\0", "\1", "\1")); /* a key longer than the body */
	expect_bad(false, REQUEST("\1", "\2", "\4", "\5", "\1")); /* key and extras are */
	expect_bad(false, "\x80\0\0\0\0\1\0\0\0\0\0\0\0\0\0\1" CAS);   /* data type */
	expect_bad(false, "\x80\0\0\0\0\0\0\0\x40\0\0\1\0\0\0\1" CAS); /* 1 GiB and 1 */
	expect_bad(false, "get a\r\nget b\r\nget c\r\nget d\r\n");
}

static bool
datagram(bool from_server, const void *data, size_t bytes, struct bs_frame *frame)
{
	const struct bs_framer *framer = replay_framer("memcached-binary");

	memset(frame, 0, sizeof(*frame));
	return framer->ops->datagram_feed(framer, from_server, data, bytes, frame);
}

#define DATAGRAM(from_server, text) datagram(from_server, text, sizeof(text) - 1, &frame)

static void
test_datagram_is_paired_by_the_id_of_its_frame_header(void **state)
{
	struct bs_frame frame;

	(void)state;
	assert_true(
		DATAGRAM(false, "\x12\x34\0\0\0\1\0\0" REQUEST("\0", "\1", "\0", "\1", "\7") "k"));
	assert_int_equal(frame.id, 0x1234);
	assert_memory_equal(frame.label, "get", 3);
	assert_true(DATAGRAM(true,
		"\x12\x34\0\0\0\2\0\0" RESPONSE("\0", "\0", "\4", "\0", "\x99", "\7") "flagv"));
	assert_int_equal(frame.id, 0x1234);
	assert_int_equal(frame.role, BS_ROLE_INTERIM);
	assert_true(DATAGRAM(true, "\x12\x34\0\1\0\2\0\0rest"));
	assert_int_equal(frame.role, BS_ROLE_BY_DIRECTION);
	assert_false(DATAGRAM(false, "\x12\x34\0\0\0\1\0\0get k\r\n"));
	assert_false(DATAGRAM(false, "\x12\x34\0\0\0\1\0\0\x80\0\0"));
}

#define PACKETBEAT "urso+packetbeat/packetbeat/tests/system/pcaps/memcache/"

/* Counts: TRUTH.md. Of five getkq in the second, three are hits. */
static void
test_captures_have_their_commands_and_answers(void **state)
{
	static const struct {
		const char *name;
		unsigned requests, responses, oneway;
	} captures[] = {
		{PACKETBEAT "memcache_bin_tcp_delete.pcap", 4, 4, 0},
		{PACKETBEAT "memcache_bin_tcp_multi_store_load.pcap", 10, 8, 5},
		{PACKETBEAT "memcache_bin_tcp_single_load_store.pcap", 3, 3, 0},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(captures); i++) {
		struct tally t =
			streams_tally(captures[i].name, 11211, replay_framer("memcached-binary"));

		assert_int_equal(t.requests, captures[i].requests);
		assert_int_equal(t.responses, captures[i].responses);
		assert_int_equal(t.oneway, captures[i].oneway);
		assert_int_equal(t.bad, 0);
	}
}

/* Their frame headers have something in the reserved field: the server does not look at it. */
static void
test_datagrams_of_captures_are_requests(void **state)
{
	static const char *const names[] = {PACKETBEAT "memcache_bin_udp_counter_ops.pcap",
		PACKETBEAT "memcache_bin_udp_multi_store.pcap"};
	static struct streams streams;
	struct bs_frame frame;
	size_t bad = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		streams_load(&streams, names[i], 11211);
		assert_int_equal(streams.list[0].count, 3);
		for (size_t j = 0; j < 3; j++) {
			const struct chunk *chunk = &streams.list[0].chunks[j];

			bad += !datagram(false, chunk->data, chunk->bytes, &frame) ||
			       frame.oneway != BS_ONEWAY_UNLESS_ANSWERED || frame.id != j + 1;
		}
		streams_free(&streams);
	}
	assert_int_equal(bad, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_command_has_its_name_and_is_paired_by_opaque_and_opcode),
		cmocka_unit_test(test_quiet_commands_are_oneway_unless_answered),
		cmocka_unit_test(test_statistics_are_one_answer_of_many_packets),
		cmocka_unit_test(test_miss_is_a_status_and_no_error),
		cmocka_unit_test(test_nonsense_is_bad),
		cmocka_unit_test(test_datagram_is_paired_by_the_id_of_its_frame_header),
		cmocka_unit_test(test_captures_have_their_commands_and_answers),
		cmocka_unit_test(test_datagrams_of_captures_are_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
