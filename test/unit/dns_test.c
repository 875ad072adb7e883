/* SPDX-License-Identifier: BSD-3-Clause */
#include "capture_streams.h"

#define QUERY "\x12\x34\1\0\0\1\0\0\0\0\0\0\7ExAmple\3com\0\0\1\0\1"
#define ANSWER                                                                                     \
	"\x12\x34\x81\x80\0\1\0\1\0\0\0\0\7example\3com\0\0\1\0\1"                                 \
	"\xc0\x0c\0\1\0\1\0\0\1\0\0\4\x5d\xb8\xd8\x22"

static struct replay r;

static bool
datagram(const void *data, size_t bytes, struct bs_frame *frame)
{
	const struct bs_framer *dns = replay_framer("dns");
	uint8_t *copy = malloc(bytes + (bytes == 0));
	bool ret;

	assert_non_null(copy);
	memcpy(copy, data, bytes);
	memset(frame, 0, sizeof(*frame));
	ret = dns->ops->datagram_feed(dns, false, copy, bytes, frame);
	free(copy);
	return ret;
}

#define DATAGRAM(text, frame) datagram(text, sizeof(text) - 1, frame)

static void
assert_label(const struct bs_frame *frame, const char *want)
{
	assert_int_equal(frame->label_len, strlen(want));
	assert_memory_equal(frame->label, want, strlen(want));
}

static void
test_query_over_udp_is_a_request_with_type_and_name(void **state)
{
	struct bs_frame frame;

	(void)state;
	assert_true(DATAGRAM(QUERY, &frame));
	assert_int_equal(frame.flags, BS_FRAME_HEAD | BS_FRAME_END);
	assert_int_equal(frame.role, BS_ROLE_REQUEST);
	assert_true(frame.has_id);
	assert_int_equal(frame.id, 0x1234);
	assert_label(&frame, "A example.com");
	assert_false(frame.has_status);
}

static void
test_answer_over_udp_is_a_response_with_rcode(void **state)
{
	struct bs_frame frame;

	(void)state;
	assert_true(DATAGRAM(ANSWER, &frame));
	assert_int_equal(frame.role, BS_ROLE_RESPONSE);
	assert_int_equal(frame.id, 0x1234);
	assert_true(frame.has_status);
	assert_int_equal(frame.status, 0);
	assert_false(frame.error);
	/* NXDOMAIN (3) is an answer, SERVFAIL (2) none. */
	assert_true(DATAGRAM("\0\1\x81\x83\0\1\0\0\0\0\0\0\1x\0\0\1\0\1", &frame));
	assert_int_equal(frame.status, 3);
	assert_false(frame.error);
	assert_true(DATAGRAM("\0\1\x81\x82\0\1\0\0\0\0\0\0\1x\0\0\1\0\1", &frame));
	assert_int_equal(frame.status, 2);
	assert_true(frame.error);
	/* FORMERR without the question: RFC 1035 lets a server leave it out. */
	assert_true(DATAGRAM("\0\1\x81\x81\0\0\0\0\0\0\0\0", &frame));
	assert_int_equal(frame.status, 1);
}

static void
test_types_and_opcodes_have_their_names(void **state)
{
	struct bs_frame frame;

	(void)state;
	DATAGRAM("\0\1\1\0\0\1\0\0\0\0\0\0\1x\0\0\x1c\0\1", &frame);
	assert_label(&frame, "AAAA x");
	DATAGRAM("\0\1\1\0\0\1\0\0\0\0\0\0\0\0\2\0\1", &frame);
	assert_label(&frame, "NS .");
	DATAGRAM("\0\1\1\0\0\1\0\0\0\0\0\0\1x\0\xff\xfe\0\1", &frame);
	assert_label(&frame, "TYPE65534 x");
	DATAGRAM("\0\1\1\0\0\1\0\0\0\0\0\0\1x\0\0\0\0\1", &frame);
	assert_label(&frame, "TYPE0 x");
	DATAGRAM("\0\1\x20\0\0\1\0\1\0\0\0\0\1x\0\0\6\0\1", &frame);
	assert_label(&frame, "NOTIFY SOA x");
	DATAGRAM("\0\1\x28\0\0\1\0\0\0\1\0\0\1x\0\0\6\0\1", &frame);
	assert_label(&frame, "UPDATE SOA x");
	DATAGRAM("\0\1\1\0\0\1\0\0\0\0\0\0\3"
		 "a.\x07\0\0\1\0\1",
		&frame);
	assert_label(&frame, "A a.?");
}

/* A TXT query whose name has labels of 63, 63, 63 and `last` bytes; its length. */
static size_t
long_query(uint8_t message[300], size_t last)
{
	size_t at = 12;

	memset(message, 0, 300);
	message[1] = message[2] = message[5] = 1;
	for (unsigned i = 0; i < 4; i++) {
		size_t n = i < 3 ? 63 : last;

		message[at++] = (uint8_t)n;
		memset(message + at, 'a' + (int)i, n);
		at += n;
	}
	message[at + 2] = 16;
	message[at + 4] = 1;
	return at + 5;
}

/* 63 + 63 + 63 + 61, their lengths and the root make 255: RFC 1035 section 2.3.4. */
static void
test_longest_name_is_cut_to_the_label_and_keeps_its_type(void **state)
{
	uint8_t message[300];
	struct bs_frame frame;

	(void)state;
	assert_true(datagram(message, long_query(message, 61), &frame));
	assert_memory_equal(frame.label, "TXT aaaa", 8);
	assert_memory_equal(frame.label + 4 + 62, "a.b", 3);
	assert_int_equal(frame.label_len, 4 + 80);
	assert_false(datagram(message, long_query(message, 62), &frame));
}

static void
test_malformed_datagram_is_refused(void **state)
{
	struct bs_frame frame;

	(void)state;
	for (size_t n = 0; n < sizeof(QUERY) - 1; n++)
		assert_false(datagram(QUERY, n, &frame));
	assert_false(DATAGRAM("\0\1\1\0\0\0\0\0\0\0\0\0", &frame));		 /* nothing in it */
	assert_false(DATAGRAM("\0\1\1\0\0\2\0\0\0\0\0\0\1x\0\0\1\0\1", &frame)); /* two questions */
	assert_false(DATAGRAM("\0\1\x18\0\0\1\0\0\0\0\0\0\1x\0\0\1\0\1", &frame)); /* opcode 3 */
	assert_false(DATAGRAM("\0\1\x78\0\0\1\0\0\0\0\0\0\1x\0\0\1\0\1", &frame)); /* opcode 15 */
	assert_false(DATAGRAM("\0\1\1\x40\0\1\0\0\0\0\0\0\1x\0\0\1\0\1", &frame)); /* bit Z */
	assert_false(
		DATAGRAM("\0\1\1\2\0\1\0\0\0\0\0\0\1x\0\0\1\0\1", &frame)); /* rcode in query */
	assert_false(DATAGRAM("\0\1\1\0\0\1\0\0\0\0\0\0\xc0\x0c\0\1\0\1", &frame)); /* to itself */
	assert_false(DATAGRAM("\0\1\1\0\0\1\0\0\0\0\0\0\x41x\0\0\1\0\1", &frame)); /* label of 65 */
	assert_false(DATAGRAM("\0\1\1\0\0\1\0\0\0\0\0\0\1x\0\0\1\0\2", &frame));   /* class 2 */
}

static void
test_messages_over_tcp_are_found_by_their_length(void **state)
{
	static const struct chunk chunks[] = {
		C("\0\x1d" QUERY "\0\x2f" QUERY "\0\0\x29\x04\xd0\0\0\0\0\0\0"
		  "trailer"),
		S("\0\x2d" ANSWER),
	};

	(void)state;
	assert_int_equal(sizeof(QUERY) - 1, 0x1d);
	assert_int_equal(sizeof(ANSWER) - 1, 0x2d);
	replay_all_cuts(&r, replay_framer("dns"), chunks, COUNT(chunks));
	assert_int_equal(r.count, 3);
	assert_int_equal(r.told[0].flags, BS_FRAME_HEAD | BS_FRAME_END);
	assert_int_equal(r.told[0].at, 31);
	assert_string_equal(r.told[0].label, "A example.com");
	assert_int_equal(r.told[1].flags, BS_FRAME_HEAD | BS_FRAME_SKIP | BS_FRAME_END);
	assert_int_equal(r.told[1].begin, 31);
	assert_int_equal(r.told[1].skip, 18);
	assert_int_equal(r.told[2].role, BS_ROLE_RESPONSE);
	assert_int_equal(r.told[2].id, 0x1234);
	assert_int_equal(r.told[2].skip, 16);
}

static void
expect_bad(const void *data, size_t bytes)
{
	struct chunk chunk = {false, data, bytes};

	replay_all_cuts(&r, replay_framer("dns"), &chunk, 1);
	assert_int_equal(r.count, 1);
	assert_int_equal(r.told[0].flags, BS_FRAME_BAD);
}

static void
test_nonsense_over_tcp_is_bad(void **state)
{
	(void)state;
	expect_bad("\0\x0b" QUERY, 31); /* shorter than a header */
	expect_bad("\0\0" QUERY, 31);
	expect_bad("\0\x14" QUERY, 31); /* ends in the question */
	expect_bad("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 14);
	expect_bad("GET / HTTP/1.1\r\n", 16);
}

static struct tally
datagram_tally(const char *name, uint16_t port)
{
	static struct streams streams;
	struct tally t = {0};

	streams_load(&streams, name, port);
	for (size_t i = 0; i < streams.count; i++) {
		for (size_t j = 0; j < streams.list[i].count; j++) {
			const struct chunk *chunk = &streams.list[i].chunks[j];
			struct bs_frame frame;

			if (!streams.list[i].udp)
				continue;
			if (!datagram(chunk->data, chunk->bytes, &frame)) {
				t.bad++;
				continue;
			}
			assert_int_equal(frame.role == BS_ROLE_RESPONSE, chunk->from_server);
			t.requests += frame.role == BS_ROLE_REQUEST;
			t.responses += frame.role == BS_ROLE_RESPONSE;
			t.errors += frame.error;
		}
	}
	streams_free(&streams);
	return t;
}

#define PACKETBEAT "urso+packetbeat/packetbeat/tests/system/pcaps/"
#define DEEPFLOW "deepflowio+deepflow/agent/resources/test/flow_generator/dns/"

/* Counts: TRUTH.md. */
static void
test_udp_captures_have_their_messages(void **state)
{
	static const struct {
		const char *name;
		uint16_t port;
		unsigned pairs, errors;
	} captures[] = {
		{PACKETBEAT "dns_google_com.pcap", 53, 1, 0},
		{PACKETBEAT "dns_additional.pcap", 53, 1, 0},
		{PACKETBEAT "dns_not_found.pcap", 53, 1, 0},
		{PACKETBEAT "dns_udp_edns_ds.pcap", 53, 1, 0},
		{"zeek+zeek/testing/btest/Traces/dns/long-connection.pcap", 53, 11, 0},
		{"netboxlabs+pktvisor/src/tests/fixtures/dns_ipv6_udp.pcap", 53000, 70,
			70}, /* NOTIMP */
	};

	(void)state;
	for (size_t i = 0; i < COUNT(captures); i++) {
		struct tally t = datagram_tally(captures[i].name, captures[i].port);

		assert_int_equal(t.requests, captures[i].pairs);
		assert_int_equal(t.responses, captures[i].pairs);
		assert_int_equal(t.errors, captures[i].errors);
		assert_int_equal(t.bad, 0);
	}
}

static void
test_tcp_captures_have_their_messages(void **state)
{
	static const struct {
		const char *name;
		unsigned pairs;
	} captures[] = {
		{PACKETBEAT "dns_tcp_axfr.pcap", 1},
		{DEEPFLOW "dns-tcp-multi.pcap", 2},
		{DEEPFLOW "dns.pcap", 2},
		{"arkime+arkime/tests/pcap/dns-tcp.pcap", 2},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(captures); i++) {
		struct tally t = streams_tally(captures[i].name, 53, replay_framer("dns"));

		assert_int_equal(t.requests, captures[i].pairs);
		assert_int_equal(t.responses, captures[i].pairs);
		assert_int_equal(t.bad, 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_query_over_udp_is_a_request_with_type_and_name),
		cmocka_unit_test(test_answer_over_udp_is_a_response_with_rcode),
		cmocka_unit_test(test_types_and_opcodes_have_their_names),
		cmocka_unit_test(test_longest_name_is_cut_to_the_label_and_keeps_its_type),
		cmocka_unit_test(test_malformed_datagram_is_refused),
		cmocka_unit_test(test_messages_over_tcp_are_found_by_their_length),
		cmocka_unit_test(test_nonsense_over_tcp_is_bad),
		cmocka_unit_test(test_udp_captures_have_their_messages),
		cmocka_unit_test(test_tcp_captures_have_their_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
