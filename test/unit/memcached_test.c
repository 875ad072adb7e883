/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text protocol. What is expected is from memcached's doc/protocol.txt,
 * and, of quiet commands and errors, what memcached 1.6.18 answers.
 */
#include "capture_streams.h"

static struct replay r;

#define PLAY(...)                                                                                  \
	do {                                                                                       \
		static const struct chunk chunks[] = {__VA_ARGS__};                                \
		replay_all_cuts(&r, replay_framer("memcached"), chunks, COUNT(chunks));            \
	} while (0)

static const uint8_t whole = BS_FRAME_HEAD | BS_FRAME_END;
static const uint8_t whole_skip = BS_FRAME_HEAD | BS_FRAME_SKIP | BS_FRAME_END;

static void
test_storage_command_ends_behind_its_data(void **state)
{
	(void)state;
	PLAY(C("set key 0 60 5\r\nE\r\nD\n\r\nadd k 1 0 0\r\n\r\ncas k 0 0 1 77\r\nx\r\n"
	       "append k 0 0 3\r\nget\r\nversion\r\n"));
	assert_int_equal(r.count, 5);
	assert_string_equal(r.told[0].label, "set");
	assert_int_equal(r.told[0].flags, whole_skip);
	assert_int_equal(r.told[0].at, 16);
	assert_int_equal(r.told[0].skip, 7);
	assert_string_equal(r.told[1].label, "add");
	assert_int_equal(r.told[1].begin, 23);
	assert_int_equal(r.told[1].skip, 2);
	assert_string_equal(r.told[2].label, "cas");
	assert_int_equal(r.told[2].skip, 3);
	assert_string_equal(r.told[3].label, "append");
	assert_int_equal(r.told[3].skip, 5);
	assert_string_equal(r.told[4].label, "version");
	assert_int_equal(r.told[4].flags, whole);
	for (size_t i = 0; i < r.count; i++)
		assert_int_equal(r.told[i].oneway, 0);
}

static void
test_line_may_end_without_cr_and_have_more_spaces(void **state)
{
	(void)state;
	PLAY(C("get a b c\nset  key 0 0   3 \nabc\r\n  version\r\n"));
	assert_int_equal(r.count, 3);
	assert_string_equal(r.told[0].label, "get");
	assert_int_equal(r.told[0].at, 10);
	assert_int_equal(r.told[1].skip, 5);
	assert_string_equal(r.told[2].label, "version");
}

static void
test_label_is_the_command_and_never_a_key_or_what_is_none(void **state)
{
	(void)state;
	PLAY(C("get secret\r\ngats 60 secret\r\nmg secret v\r\nsecret words\r\nGET secret\r\n"
	       "\r\nstats cachedump 1 0\r\na_command_of_more_than_16_bytes\r\n"));
	assert_int_equal(r.count, 8);
	assert_string_equal(r.told[0].label, "get");
	assert_string_equal(r.told[1].label, "gats");
	assert_string_equal(r.told[2].label, "mg");
	assert_string_equal(r.told[3].label, "other");
	assert_string_equal(r.told[4].label, "other");
	assert_string_equal(r.told[5].label, "other"); /* memcached answers ERROR */
	assert_string_equal(r.told[6].label, "stats");
	assert_string_equal(r.told[7].label, "other");
}

static void
test_noreply_is_oneway_where_it_is_no_key(void **state)
{
	static const bool oneway[] = {
		true, true, true, true, true, true, true, true, false, false, false, false, true};

	(void)state;
	PLAY(C("set k 0 0 1 noreply\r\nx\r\ncas k 0 0 1 9 noreply\r\nx\r\ndelete k noreply\r\n"
	       "delete k 0 noreply\r\nincr k 1 noreply\r\ntouch k 1 noreply\r\n"
	       "flush_all noreply\r\nverbosity 1 noreply\r\nget noreply\r\ndelete noreply\r\n"
	       "get k noreply\r\nset noreply 0 0 1\r\nx\r\nquit\r\n"));
	assert_int_equal(r.count, COUNT(oneway));
	for (size_t i = 0; i < r.count; i++)
		assert_int_equal(r.told[i].oneway, oneway[i] ? BS_ONEWAY : 0);
}

static void
test_length_that_is_none_is_a_line_without_data(void **state)
{
	(void)state;
	PLAY(C("set a 0 0 x\r\nset a 0 0 -1\r\nset a 0 0\r\nset a 0 0 2147483646\r\n"
	       "set a 0 0 99999999999\r\nms a S1\r\nset\r\nset a 0 0 2147483645\r\n"));
	assert_int_equal(r.count, 8);
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(r.told[i].flags, whole);
	assert_int_equal(r.told[7].flags, whole_skip);
	assert_int_equal(r.told[7].skip, 2147483647);
}

static void
test_meta_commands_have_data_and_the_flag_q(void **state)
{
	static const uint8_t oneway[] = {0, BS_ONEWAY_UNLESS_ANSWERED, BS_ONEWAY_UNLESS_ANSWERED,
		BS_ONEWAY_UNLESS_ANSWERED, BS_ONEWAY_UNLESS_ANSWERED, 0, 0, 0};

	(void)state;
	PLAY(C("ms k 3 T60\r\nabc\r\nms k 1 Oq q\r\nx\r\nmg k v q\r\nmd k q\r\nma k q D5\r\n"
	       "mg q v Oq\r\nmn\r\nme k\r\n"));
	assert_int_equal(r.count, COUNT(oneway));
	for (size_t i = 0; i < r.count; i++)
		assert_int_equal(r.told[i].oneway, oneway[i]);
	assert_int_equal(r.told[0].skip, 5);
	assert_string_equal(r.told[0].label, "ms");
	assert_int_equal(r.told[1].skip, 3);
	assert_string_equal(r.told[6].label, "mn");
}

/* Which kinds may answer what was left open, and the word that both repeat. */
static void
test_answers_of_quiet_commands_can_be_told_apart(void **state)
{
	(void)state;
	PLAY(C("mg a v q k\r\nmg b v q O9 k\r\nmg c v q k O9\r\nmn\r\nms d 1 q\r\nx\r\nmg e v "
	       "q\r\n"),
		S("VA 1 ka\r\nx\r\nHD s1 kb O9\r\nEN\r\nMN\r\nNS\r\nVA 1 kA\r\nx\r\n"
		  "CLIENT_ERROR no\r\nHD kd O8\r\n"));
	assert_int_equal(r.count, 6 + 8);
	assert_int_not_equal(r.told[0].token, 0);
	assert_int_equal(r.told[0].token, r.told[6].token);
	assert_int_equal(r.told[1].token, r.told[7].token); /* O counts before k */
	assert_int_equal(r.told[1].token, r.told[2].token);
	assert_int_not_equal(r.told[0].token, r.told[11].token); /* ka, kA */
	assert_int_not_equal(r.told[1].token, r.told[13].token); /* O9, O8 */
	assert_int_equal(r.told[5].token, 0);
	assert_int_equal(r.told[9].token, 0);
#define MAY(answer, request) ((r.told[answer].answers & r.told[request].answers) != 0)
	assert_true(MAY(6, 0));
	assert_true(MAY(7, 0));	 /* a hit without v */
	assert_false(MAY(8, 0)); /* EN is what q leaves out */
	assert_false(MAY(9, 0));
	assert_true(MAY(9, 3));
	assert_false(MAY(6, 3));
	assert_true(MAY(10, 4));
	assert_false(MAY(7, 4)); /* HD is what q leaves out */
	assert_false(MAY(10, 5));
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(MAY(12, i), i != 3); /* mn cannot fail */
}

static void
test_answers_end_where_they_end(void **state)
{
	static const char *const replies[] = {"STORED\r\n", "NOT_STORED\r\n", "EXISTS\r\n",
		"NOT_FOUND\r\n", "END\r\n", "VALUE k 0 5\r\nEND\r\n\r\nEND\r\n",
		"VALUE a 0 0\r\n\r\nVALUE b 4294967295 3 77\r\nx\r\n\r\nEND\r\n", "DELETED\r\n",
		"17\r\n", "TOUCHED\r\n", "OK\r\n", "VERSION 1.6.18\r\n",
		"STAT pid 1\r\nSTAT x y z\r\nEND\r\n", "RESET\r\n", "ITEM k [1 b; 0 s]\r\nEND\r\n",
		"key=a exp=-1\r\nkey=b exp=0\r\nEND\r\n", "VA 5 t-1\r\nHD\r\nx\r\n", "HD\r\n",
		"EN\r\n", "ME k exp=-1 la=0\r\n", "MN\r\n", "mg a\r\nmg b\r\nEN\r\n",
		/* Errors from here on. */
		"ERROR\r\n", "ERROR: shutdown not enabled\r\n", "CLIENT_ERROR bad\r\n",
		"SERVER_ERROR out of memory\r\n"};
	struct chunk chunks[COUNT(replies)];
	uint64_t at = 0;
	size_t note = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(replies); i++)
		chunks[i] = (struct chunk){true, replies[i], strlen(replies[i])};
	replay_all_cuts(&r, replay_framer("memcached"), chunks, COUNT(replies));
	assert_int_equal(r.dir[true].skip, 0);
	for (size_t i = 0; i < COUNT(replies); i++) {
		unsigned heads = 0;

		assert_int_equal(r.told[note].begin, at);
		do {
			assert_true(note < r.count);
			assert_false(r.told[note].flags & BS_FRAME_BAD);
			heads += r.told[note].flags & BS_FRAME_HEAD;
			if (r.told[note].flags & BS_FRAME_HEAD) {
				assert_int_equal(r.told[note].role, BS_ROLE_BY_DIRECTION);
				assert_int_equal(r.told[note].error, i >= 22);
				assert_int_equal(r.told[note].status, i >= 22);
				assert_true(r.told[note].has_status);
			}
		} while (!(r.told[note++].flags & BS_FRAME_END));
		at += strlen(replies[i]);
		assert_int_equal(heads, 1);
		assert_int_equal(r.told[note - 1].at + r.told[note - 1].skip, at);
	}
	assert_int_equal(note, r.count);
}

static void
test_error_in_the_midst_of_items_ends_them(void **state)
{
	(void)state;
	PLAY(S("VALUE k 0 1\r\nx\r\nSERVER_ERROR out of memory writing get "
	       "response\r\nSTORED\r\n"));
	assert_int_equal(r.count, 3);
	assert_int_equal(r.told[0].flags, BS_FRAME_HEAD | BS_FRAME_SKIP);
	assert_int_equal(r.told[1].flags, BS_FRAME_END);
	assert_int_equal(r.told[2].begin, 65);
}

static void
test_what_a_watcher_hears_is_pushed(void **state)
{
	(void)state;
	PLAY(C("watch fetchers\r\n"),
		S("OK\r\nts=1700000000.1 gid=1 type=item_get key=k\nskipped=3\n"));
	assert_int_equal(r.count, 4);
	assert_string_equal(r.told[0].label, "watch");
	assert_int_equal(r.told[1].role, BS_ROLE_BY_DIRECTION);
	assert_int_equal(r.told[2].role, BS_ROLE_PUSH);
	assert_int_equal(r.told[3].role, BS_ROLE_PUSH);
}

static void
expect_bad(bool from_server, const char *text, size_t bytes)
{
	struct chunk chunk = {from_server, text, bytes};

	replay_all_cuts(&r, replay_framer("memcached"), &chunk, 1);
	assert_true(r.count > 0);
	assert_int_equal(r.told[r.count - 1].flags, BS_FRAME_BAD);
}

static void
test_nonsense_is_bad(void **state)
{
	static char line[(1 << 20) + 2];

	(void)state;
	expect_bad(false, "\x16\3\1", 3);
	expect_bad(false, "\x80", 1);
	expect_bad(false, "ge\x01t", 4);
	expect_bad(false, "get k\r\n\0", 8);
	expect_bad(true, "\r\n", 2);
	expect_bad(true, "\x81", 1);
	expect_bad(true, "VALUE k 0 x\r\n", 13);
	expect_bad(true, "VALUE k 0\r\n", 11);
	expect_bad(true, "VALUE k 0 2147483646\r\n", 22);
	expect_bad(true, "VA\r\n", 4);
	/* A megabyte without an end. */
	memset(line, 'a', sizeof(line));
	memcpy(line, "get ", 4);
	replay_run(&r, replay_framer("memcached"), &(struct chunk){false, line, sizeof(line)}, 1,
		SIZE_MAX, 0, 0);
	assert_int_equal(r.told[0].flags, BS_FRAME_BAD);
	assert_int_equal(r.told[0].at, 1 << 20);
}

static bool
datagram(bool from_server, const char *data, size_t bytes, struct bs_frame *frame)
{
	const struct bs_framer *framer = replay_framer("memcached");

	memset(frame, 0, sizeof(*frame));
	return framer->ops->datagram_feed(framer, from_server, (const uint8_t *)data, bytes, frame);
}

#define DATAGRAM(from_server, text) datagram(from_server, text, sizeof(text) - 1, &frame)

static void
test_datagram_has_its_id_and_the_last_of_an_answer_ends_it(void **state)
{
	struct bs_frame frame;

	(void)state;
	assert_true(DATAGRAM(false, "\x12\x34\0\0\0\1\0\0get k\r\n"));
	assert_int_equal(frame.id, 0x1234);
	assert_true(frame.has_id);
	assert_int_equal(frame.label_len, 3);
	assert_memory_equal(frame.label, "get", 3);
	assert_true(DATAGRAM(false, "\0\7\0\0\0\1\0\0set k 0 0 1 noreply\r\nx\r\n"));
	assert_int_equal(frame.oneway, BS_ONEWAY);
	assert_true(DATAGRAM(true, "\x12\x34\0\0\0\1\0\0END\r\n"));
	assert_int_equal(frame.role, BS_ROLE_BY_DIRECTION);
	assert_true(DATAGRAM(true, "\x12\x34\0\0\0\2\0\0VALUE k 0 2000\r\nxxxx"));
	assert_int_equal(frame.role, BS_ROLE_INTERIM);
	assert_true(DATAGRAM(true, "\x12\x34\0\1\0\2\0\0xxxx\r\nEND\r\n"));
	assert_int_equal(frame.role, BS_ROLE_BY_DIRECTION);
	assert_int_equal(frame.id, 0x1234);
	assert_false(DATAGRAM(false, "\x12\x34\0\0\0\1\0\0"));		/* nothing */
	assert_false(DATAGRAM(false, "\x12\x34\0\0\0\1\0\0hello\r\n")); /* no command */
	assert_false(DATAGRAM(false, "\x12\x34\0\0\0\2\0\0get k\r\n")); /* of two */
	assert_false(DATAGRAM(true, "\x12\x34\0\2\0\2\0\0END\r\n"));	/* third of two */
	assert_false(DATAGRAM(true, "\x12\x34\0\0\0\0\0\0END\r\n"));	/* of none */
}

#define PACKETBEAT "urso+packetbeat/packetbeat/tests/system/pcaps/memcache/"

/* Counts: TRUTH.md; `quit` is not answered. */
static void
test_captures_have_their_commands_and_answers(void **state)
{
	struct tally t;

	(void)state;
	t = streams_tally(
		PACKETBEAT "memcache_text_tcp_delete.pcap", 11211, replay_framer("memcached"));
	assert_int_equal(t.requests, 4);
	assert_int_equal(t.responses, 3);
	assert_int_equal(t.oneway, 1);
	assert_int_equal(t.bad, 0);
	t = streams_tally(PACKETBEAT "memcache_text_tcp_multi_store_load.pcap", 11211,
		replay_framer("memcached"));
	assert_int_equal(t.requests, 5);
	assert_int_equal(t.responses, 4); /* tshark sees the items, but not END, of the last */
	assert_int_equal(t.oneway, 1);
	assert_int_equal(t.bad, 0);
}

static void
test_datagrams_of_captures_are_oneway(void **state)
{
	static const char *const names[] = {PACKETBEAT "memcache_text_udp_counter_ops.pcap",
		PACKETBEAT "memcache_text_udp_multi_store.pcap"};
	static struct streams streams;
	struct bs_frame frame;

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		streams_load(&streams, names[i], 11211);
		assert_int_equal(streams.count, 1);
		assert_int_equal(streams.list[0].count, 3);
		for (size_t j = 0; j < 3; j++) {
			const struct chunk *chunk = &streams.list[0].chunks[j];

			assert_true(datagram(false, chunk->data, chunk->bytes, &frame));
			assert_int_equal(frame.oneway, BS_ONEWAY);
			assert_int_equal(frame.id, j + 1);
		}
		streams_free(&streams);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_storage_command_ends_behind_its_data),
		cmocka_unit_test(test_line_may_end_without_cr_and_have_more_spaces),
		cmocka_unit_test(test_label_is_the_command_and_never_a_key_or_what_is_none),
		cmocka_unit_test(test_noreply_is_oneway_where_it_is_no_key),
		cmocka_unit_test(test_length_that_is_none_is_a_line_without_data),
		cmocka_unit_test(test_meta_commands_have_data_and_the_flag_q),
		cmocka_unit_test(test_answers_of_quiet_commands_can_be_told_apart),
		cmocka_unit_test(test_answers_end_where_they_end),
		cmocka_unit_test(test_error_in_the_midst_of_items_ends_them),
		cmocka_unit_test(test_what_a_watcher_hears_is_pushed),
		cmocka_unit_test(test_nonsense_is_bad),
		cmocka_unit_test(test_datagram_has_its_id_and_the_last_of_an_answer_ends_it),
		cmocka_unit_test(test_captures_have_their_commands_and_answers),
		cmocka_unit_test(test_datagrams_of_captures_are_oneway),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
