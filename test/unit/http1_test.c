/* SPDX-License-Identifier: BSD-3-Clause */
#include "capture_streams.h"

static struct replay r;

#define PLAY(...)                                                                                  \
	do {                                                                                       \
		static const struct chunk chunks[] = {__VA_ARGS__};                                \
		replay_all_cuts(&r, replay_framer("http1"), chunks, COUNT(chunks));                \
	} while (0)

static const uint8_t whole = BS_FRAME_HEAD | BS_FRAME_END;
static const uint8_t whole_skip = BS_FRAME_HEAD | BS_FRAME_SKIP | BS_FRAME_END;

static void
test_pipelined_requests_are_told_one_by_one(void **state)
{
	(void)state;
	/* The pipelining capture of suricata-verify has these paths. */
	PLAY(C("GET /bar/ HTTP/1.1\r\nHost: a\r\n\r\nGET /foo/ HTTP/1.1\r\nHost: a\r\n\r\n"),
		S("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 404 "
		  "\r\ncontent-length:0\r\n\r\n"));
	assert_int_equal(r.count, 4);
	assert_string_equal(r.told[0].label, "GET /bar/");
	assert_int_equal(r.told[0].flags, whole);
	assert_int_equal(r.told[0].at, 31);
	assert_string_equal(r.told[1].label, "GET /foo/");
	assert_int_equal(r.told[1].begin, 31);
	assert_int_equal(r.told[2].flags, whole_skip);
	assert_int_equal(r.told[2].skip, 3);
	assert_int_equal(r.told[2].status, 200);
	assert_false(r.told[2].error);
	assert_int_equal(r.told[3].flags, whole);
	assert_int_equal(r.told[3].status, 404);
	assert_true(r.told[3].error);
}

#define TRACE_ID "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT_ID "00f067aa0ba902b7"

static bool
is_traced(const struct told *told)
{
	static const uint8_t trace_id[16] = {0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3,
		0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36};
	static const uint8_t parent[8] = {0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7};
	static const uint8_t zero[24];

	if (memcmp(told->trace_id, zero, 16) == 0 && memcmp(told->parent_span_id, zero, 8) == 0)
		return false;
	assert_memory_equal(told->trace_id, trace_id, 16);
	assert_memory_equal(told->parent_span_id, parent, 8);
	return true;
}

/* The example of W3C Trace Context, section 3.2.2.5. */
static void
test_traceparent_of_a_request_is_told(void **state)
{
	(void)state;
	PLAY(C("GET /a HTTP/1.1\r\nTraceparent: 00-" TRACE_ID "-" PARENT_ID "-01\r\n\r\n"
	       "GET /b HTTP/1.1\r\nHost: a\r\n\r\n"
	       "POST /c HTTP/1.1\r\ntraceparent:cc-" TRACE_ID "-" PARENT_ID "-00-more \r\n"
	       "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
		S("HTTP/1.1 200 OK\r\ntraceparent: 00-" TRACE_ID "-" PARENT_ID
		  "-01\r\nContent-Length: 0\r\n\r\n"));
	assert_int_equal(replay_tally(&r).bad, 0);
	assert_int_equal(replay_tally(&r).requests, 3);
	assert_true(is_traced(&r.told[0]));
	assert_false(is_traced(&r.told[1]));
	assert_true(is_traced(&r.told[2]));
	for (size_t i = 3; i < r.count; i++)
		assert_false(is_traced(&r.told[i])); /* what a server sends is no parent */
}

/* Section 4.3: then it is as if it had not been sent. */
static void
test_traceparent_that_makes_no_sense_is_none(void **state)
{
	(void)state;
	PLAY(C("GET /a HTTP/1.1\r\ntraceparent: ff-" TRACE_ID "-" PARENT_ID "-01\r\n\r\n"
	       "GET /b HTTP/1.1\r\ntraceparent: 00-" TRACE_ID "-" PARENT_ID "-01-x\r\n\r\n"
	       "GET /c HTTP/1.1\r\ntraceparent: 00-" TRACE_ID "-" PARENT_ID "\r\n\r\n"
	       "GET /d HTTP/1.1\r\ntraceparent: 00-" TRACE_ID "-00F067AA0BA902B7-01\r\n\r\n"
	       "GET /e HTTP/1.1\r\ntraceparent: 00-00000000000000000000000000000000-" PARENT_ID
	       "-01\r\n\r\n"
	       "GET /f HTTP/1.1\r\ntraceparent: 00-" TRACE_ID "-0000000000000000-01\r\n\r\n"
	       "GET /g HTTP/1.1\r\ntrace: 00-" TRACE_ID "-" PARENT_ID "-01\r\n\r\n"));
	assert_int_equal(replay_tally(&r).requests, 7);
	assert_int_equal(replay_tally(&r).bad, 0);
	for (size_t i = 0; i < r.count; i++)
		assert_false(is_traced(&r.told[i]));
}

static void
test_label_is_method_and_path(void **state)
{
	(void)state;
	PLAY(C("GET /a/b?secret=1 HTTP/1.1\r\n\r\nGET /x#frag HTTP/1.0\r\n\r\n"
	       "GET http://user@host:80/p/q?x HTTP/1.1\r\n\r\nGET http://host HTTP/1.1\r\n\r\n"
	       "OPTIONS * HTTP/1.1\r\n\r\nM-SEARCH /\x80z HTTP/1.1\n\n"
	       "GET / HTTP/1.1\r\n\r\nGET ?q HTTP/1.1\r\n\r\n"));
	assert_int_equal(r.count, 8);
	assert_string_equal(r.told[0].label, "GET /a/b");
	assert_string_equal(r.told[1].label, "GET /x");
	assert_string_equal(r.told[2].label, "GET /p/q");
	assert_string_equal(r.told[3].label, "GET /");
	assert_string_equal(r.told[4].label, "OPTIONS *");
	assert_string_equal(r.told[5].label, "M-SEARCH /.z");
	assert_string_equal(r.told[6].label, "GET /");
	assert_string_equal(r.told[7].label, "GET ");
}

static void
test_long_path_is_cut_to_the_label(void **state)
{
	static char request[400];
	struct chunk chunk = {false, request, 0};

	(void)state;
	memcpy(request, "GET /", 5);
	memset(request + 5, 'p', 300);
	memcpy(request + 305, " HTTP/1.1\r\n\r\n", 13);
	chunk.bytes = 318;
	replay_all_cuts(&r, replay_framer("http1"), &chunk, 1);
	assert_int_equal(r.count, 1);
	assert_int_equal(strlen(r.told[0].label), BS_FRAME_LABEL_BYTES);
	assert_memory_equal(r.told[0].label, request, BS_FRAME_LABEL_BYTES);
	/* A path that just fits is whole. */
	memcpy(request + BS_FRAME_LABEL_BYTES, " HTTP/1.1\r\n\r\n", 13);
	chunk.bytes = BS_FRAME_LABEL_BYTES + 13;
	replay_all_cuts(&r, replay_framer("http1"), &chunk, 1);
	assert_int_equal(strlen(r.told[0].label), BS_FRAME_LABEL_BYTES);
}

static void
test_chunked_body_is_skipped_to_the_end_of_its_trailers(void **state)
{
	(void)state;
	PLAY(C("POST /u HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
	       "5\r\nhello\r\n7F;name=\"v\"\r\n"
	       "0123456789012345678901234567890123456789012345678901234567890123"
	       "012345678901234567890123456789012345678901234567890123456789012"
	       "\r\n000\r\nX-Sum: 1\r\nContent-Length: 99\r\n folded\r\n\r\nGET /n "
	       "HTTP/1.1\r\n\r\n"));
	assert_int_equal(r.count, 4);
	assert_int_equal(r.told[0].flags, BS_FRAME_HEAD);
	assert_int_equal(r.told[0].at, 48);
	assert_int_equal(r.told[1].flags, BS_FRAME_SKIP);
	assert_int_equal(r.told[1].skip, 127 + 2);
	assert_int_equal(r.told[2].flags, BS_FRAME_END);
	assert_string_equal(r.told[3].label, "GET /n");
	assert_int_equal(r.told[3].begin, r.told[2].at);
}

static void
test_empty_chunked_body_ends_at_once(void **state)
{
	(void)state;
	PLAY(S("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n0\r\n\r\n"));
	assert_int_equal(r.count, 2);
	assert_int_equal(r.told[0].flags, BS_FRAME_HEAD);
	assert_int_equal(r.told[1].flags, BS_FRAME_END);
}

static void
test_response_to_head_and_others_without_body_end_with_the_head(void **state)
{
	(void)state;
	PLAY(C("HEAD /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\nHEAD /c HTTP/1.1\r\n\r\n"
	       "GET /d HTTP/1.1\r\n\r\nGET /e HTTP/1.1\r\n\r\n"),
		S("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
		  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nxy"
		  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		  "HTTP/1.1 204 No Content\r\n\r\n"
		  "HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\n"));
	assert_int_equal(r.count, 10);
	assert_int_equal(r.told[5].flags, whole);
	assert_int_equal(r.told[6].flags, whole_skip);
	assert_int_equal(r.told[6].skip, 2);
	for (size_t i = 7; i < 10; i++)
		assert_int_equal(r.told[i].flags, whole);
}

static void
test_interim_response_leaves_the_request_waiting(void **state)
{
	(void)state;
	PLAY(C("HEAD /a HTTP/1.1\r\n\r\n"),
		S("HTTP/1.1 100 \r\n\r\nHTTP/1.1 103 Early Hints\r\nContent-Length: 9\r\n\r\n"
		  "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"));
	assert_int_equal(r.count, 4);
	assert_int_equal(r.told[1].role, BS_ROLE_INTERIM);
	assert_int_equal(r.told[1].status, 100);
	assert_int_equal(r.told[2].role, BS_ROLE_INTERIM);
	assert_int_equal(r.told[2].flags, whole);
	assert_int_equal(r.told[3].role, BS_ROLE_BY_DIRECTION);
	assert_int_equal(r.told[3].flags, whole); /* to HEAD */
}

static void
test_upgrade_and_connect_make_a_tunnel(void **state)
{
	(void)state;
	PLAY(C("GET /chat HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"),
		S("HTTP/1.1 101 Switching Protocols\r\n\r\n\x81\x05hello"),
		C("\x81\x85GET / HTTP/1.1\r\n\r\n"));
	assert_int_equal(r.count, 2);
	assert_int_equal(r.told[1].flags, BS_FRAME_HEAD);
	assert_int_equal(r.told[1].until_close, BS_UNTIL_TUNNEL);
	PLAY(C("CONNECT host:443 HTTP/1.1\r\n\r\n"),
		S("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc"), C("\x16\x03\x01"));
	assert_int_equal(r.count, 2);
	assert_string_equal(r.told[0].label, "CONNECT host:443");
	assert_int_equal(r.told[1].until_close, BS_UNTIL_TUNNEL);
	/* A refused CONNECT is a common response. */
	PLAY(C("CONNECT host:443 HTTP/1.1\r\n\r\nGET /x HTTP/1.1\r\n\r\n"),
		S("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno"));
	assert_int_equal(r.count, 3);
	assert_int_equal(r.told[2].flags, whole_skip);
}

static void
test_response_without_length_ends_with_the_connection(void **state)
{
	(void)state;
	PLAY(S("HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nHTTP/1.1 200 is only text\r\n\r\n"));
	assert_int_equal(r.count, 1);
	assert_int_equal(r.told[0].flags, BS_FRAME_HEAD);
	assert_int_equal(r.told[0].until_close, BS_UNTIL_CLOSE);
	PLAY(S("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 4\r\n\r\nbody"));
	assert_int_equal(r.count, 1);
	assert_int_equal(r.told[0].until_close, BS_UNTIL_CLOSE);
}

static void
test_transfer_encoding_overrides_content_length(void **state)
{
	(void)state;
	PLAY(C("POST /a HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding:\tchunked \r\n\r\n"
	       "0\r\n\r\nGET /b HTTP/1.1\r\n\r\n"));
	assert_int_equal(r.count, 3);
	assert_int_equal(r.told[0].flags, BS_FRAME_HEAD);
	assert_int_equal(r.told[1].flags, BS_FRAME_END);
	assert_string_equal(r.told[2].label, "GET /b");
}

static void
test_equal_content_lengths_are_one(void **state)
{
	(void)state;
	PLAY(C("POST /a HTTP/1.1\r\nContent-Length: 4, 4\r\ncontent-LENGTH:  4 \r\n\r\nbody"
	       "GET /b HTTP/1.1\r\n\r\n"));
	assert_int_equal(r.count, 2);
	assert_int_equal(r.told[0].skip, 4);
}

static void
test_folded_lines_belong_to_their_field(void **state)
{
	(void)state;
	PLAY(C("POST /a HTTP/1.1\r\nX: y\r\n Content-Length: 9\r\nContent-Length:\r\n  4\r\n"
	       "Cookie: a\r\n\tb\r\n\r\nbodyGET /b HTTP/1.1\r\n\r\n"));
	assert_int_equal(r.count, 2);
	assert_int_equal(r.told[0].skip, 4);
	PLAY(C("POST /a HTTP/1.1\r\nTransfer-Encoding: gzip,\r\n chunked\r\n\r\n0\r\n\r\n"));
	assert_int_equal(r.count, 2);
	assert_int_equal(r.told[1].flags, BS_FRAME_END);
}

static void
test_names_that_only_begin_alike_are_other_fields(void **state)
{
	(void)state;
	PLAY(C("POST /a HTTP/1.1\r\nContent-Lengt: 5\r\nContent-Length-X: 6\r\nContent: 7\r\n"
	       "Transfer-Encodin: chunked\r\nT: x\r\nC\r\nContent\rLength: 8\r\n\r\n"));
	assert_int_equal(r.count, 1);
	assert_int_equal(r.told[0].flags, whole);
}

static void
test_empty_lines_between_messages_are_none(void **state)
{
	(void)state;
	PLAY(C("\r\n\nGET / HTTP/1.1\r\n\r\n"));
	assert_int_equal(r.count, 3);
	assert_int_equal(r.told[0].flags, BS_FRAME_END);
	assert_int_equal(r.told[1].flags, BS_FRAME_END);
	assert_int_equal(r.told[2].begin, 3);
}

static void
expect_bad(bool from_server, const char *text)
{
	struct chunk chunk = {from_server, text, strlen(text)};

	replay_all_cuts(&r, replay_framer("http1"), &chunk, 1);
	if (r.count == 0 || r.told[r.count - 1].flags != BS_FRAME_BAD)
		fail_msg("not bad: %s", text);
}

static void
test_nonsense_is_bad(void **state)
{
	static const char *const requests[] = {" GET / HTTP/1.1\r\n", "GET  HTTP/1.1\r\n",
		"GET /\r\n", "GET / HTTP/2.0\r\n", "GET / HTTP/1.1 x\r\n", "GET / http/1.1\r\n",
		"GET / HTTP/1.x\r\n", "G(T / HTTP/1.1\r\n", "GET /\x01 HTTP/1.1\r\n", "GET /?q\r\n",
		"\r\rGET", "ABCDEFGHIJKLMNOPQRSTUVWXYZ / HTTP/1.1\r\n", "\x16\x03\x01",
		"PRI * HTTP/2.0\r\n\r\n"};
	static const char *const heads[] = {"Content-Length: x\r\n\r\n", "Content-Length:\r\n\r\n",
		"Content-Length: -1\r\n\r\n", "Content-Length: 1 2\r\n\r\n",
		"Content-Length: 1,2\r\n\r\n", "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"Content-Length: 4,\r\n\r\n", "Content-Length: 99999999999999999999\r\n\r\n",
		"Content-Length: 0x10\r\n\r\n", "Content-Length : 4\r\n\r\n",
		"Transfer-Encoding: gzip\r\n\r\n", "Transfer-Encoding: chunked, gzip\r\n\r\n",
		"Transfer-Encoding: chunkedx\r\n\r\n",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
		"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
		"Transfer-Encoding: chunked\r\n\r\n\r\n",
		"Transfer-Encoding: chunked\r\n\r\n4000000000000000\r\n",
		"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
		"Transfer-Encoding: chunked\r\n\r\n-1\r\n", "A: b\r\n\rX"};
	static const char *const responses[] = {"HTTP/1.1 20\r\n", "HTTP/1.1 2000 OK\r\n",
		"HTTP/1.1 099 X\r\n", "HTTP/2.0 200 OK\r\n", "HTTP/1.1\r\n", "GET / HTTP/1.1\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"ICY 200 OK\r\n"};

	(void)state;
	for (size_t i = 0; i < COUNT(requests); i++)
		expect_bad(false, requests[i]);
	for (size_t i = 0; i < COUNT(heads); i++) {
		char text[256];

		snprintf(text, sizeof(text), "POST / HTTP/1.1\r\n%s", heads[i]);
		expect_bad(false, text);
	}
	for (size_t i = 0; i < COUNT(responses); i++)
		expect_bad(true, responses[i]);
}

static void
test_greatest_lengths_are_skipped(void **state)
{
	(void)state;
	PLAY(C("POST / HTTP/1.1\r\nContent-Length: 4611686018427387904\r\n\r\nx"),
		S("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3fffffffffffffff\r\nx"));
	assert_int_equal(r.told[0].skip, 4611686018427387904);
	assert_int_equal(r.told[2].skip, 0x3fffffffffffffff + 2);
}

/* Where it says BAD is the same byte, wherever the stream is cut. */
static void
test_endless_head_is_bad_at_its_bound(void **state)
{
	static char text[70000];
	static const size_t steps[] = {SIZE_MAX, 1, 1000, 65536};
	struct chunk chunk = {false, text, sizeof(text)};

	(void)state;
	for (unsigned form = 0; form < 3; form++) {
		size_t start = 0;

		memset(text, 'a', sizeof(text));
		if (form == 1)
			start = (size_t)sprintf(text, "GET / HTTP/1.1\r\nX: ");
		if (form == 2)
			start = (size_t)sprintf(text,
				"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"
				"1\r\nx\r\n0\r\n");
		if (form < 2)
			memcpy(text, "GET /", 5);
		text[start] = 'b';
		for (size_t i = 0; i < COUNT(steps); i++) {
			replay_run(&r, replay_framer("http1"), &chunk, 1, steps[i], 0, 0);
			assert_int_equal(r.told[r.count - 1].flags, BS_FRAME_BAD);
			assert_int_equal(r.told[r.count - 1].at, (form == 2 ? start : 0) + 65536);
		}
	}
}

static void
test_more_in_flight_than_kept_count_as_plain(void **state)
{
	static char requests[40 * 24], responses[40 * 48];
	struct chunk chunks[] = {{false, requests, 0}, {true, responses, 0}};
	unsigned n = 0;

	(void)state;
	/* HEAD as the 32nd, the last that is kept, and as the 36th; the others are GET. */
	for (unsigned i = 0; i < 40; i++) {
		chunks[0].bytes += (size_t)sprintf(requests + chunks[0].bytes,
			"%s / HTTP/1.1\r\n\r\n", i == 31 || i == 35 ? "HEAD" : "GET");
		chunks[1].bytes += (size_t)sprintf(responses + chunks[1].bytes,
			"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%s", i == 31 ? "" : "x");
	}
	replay_all_cuts(&r, replay_framer("http1"), chunks, 2);
	assert_int_equal(r.count, 80);
	for (size_t i = 40; i < 80; i++)
		n += r.told[i].flags == whole_skip;
	assert_int_equal(n, 39);
	assert_int_equal(r.told[40 + 31].flags, whole);
}

#define PACKETBEAT "urso+packetbeat/packetbeat/tests/system/pcaps/"
#define DEEPFLOW "deepflowio+deepflow/agent/resources/test/flow_generator/http/"

/* Counts: TRUTH.md, and tshark's list of requests and status codes. */
static void
test_captures_have_their_requests_and_responses(void **state)
{
	static const struct {
		const char *name;
		uint16_t port;
		unsigned requests, responses, interim;
	} captures[] = {
		{PACKETBEAT "http_100_continue.pcap", 9200, 1, 1, 1},
		{PACKETBEAT "http_get_2k_file.pcap", 8000, 1, 1, 0},
		{PACKETBEAT "http_10_connection_close.pcap", 8000, 1, 1, 0},
		{PACKETBEAT "http_post_json.pcap", 9200, 1, 1, 0},
		{DEEPFLOW "httpv1.pcap", 80, 1, 1, 0},
		{DEEPFLOW "sw8.pcap", 20880, 3, 3, 0},
		{"arkime+arkime/tests/pcap/http-100-continue.pcap", 80, 1, 1, 1},
		{"OISF+suricata-verify/tests/http-multiple100/input.pcap", 1551, 1, 1, 2},
		{"OISF+suricata-verify/tests/firewall/"
		 "ruletype-firewall-88-default-accept-tx-pipeline/input.pcap",
			80, 2, 2, 0},
		{"seladb+PcapPlusPlus/Tests/Pcap++Test/PcapExamples/three_http_streams.pcap", 80, 3,
			3, 0},
		{"zeek+zeek/testing/btest/Traces/http/get_nosyn.pcap", 80, 1, 1, 0},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(captures); i++) {
		struct tally t =
			streams_tally(captures[i].name, captures[i].port, replay_framer("http1"));

		if (t.requests != captures[i].requests || t.responses != captures[i].responses ||
			t.interim != captures[i].interim || t.bad != 0)
			fail_msg("%s: %u requests, %u responses, %u interim, %u bad",
				captures[i].name, t.requests, t.responses, t.interim, t.bad);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pipelined_requests_are_told_one_by_one),
		cmocka_unit_test(test_traceparent_of_a_request_is_told),
		cmocka_unit_test(test_traceparent_that_makes_no_sense_is_none),
		cmocka_unit_test(test_label_is_method_and_path),
		cmocka_unit_test(test_long_path_is_cut_to_the_label),
		cmocka_unit_test(test_chunked_body_is_skipped_to_the_end_of_its_trailers),
		cmocka_unit_test(test_empty_chunked_body_ends_at_once),
		cmocka_unit_test(test_response_to_head_and_others_without_body_end_with_the_head),
		cmocka_unit_test(test_interim_response_leaves_the_request_waiting),
		cmocka_unit_test(test_upgrade_and_connect_make_a_tunnel),
		cmocka_unit_test(test_response_without_length_ends_with_the_connection),
		cmocka_unit_test(test_transfer_encoding_overrides_content_length),
		cmocka_unit_test(test_equal_content_lengths_are_one),
		cmocka_unit_test(test_folded_lines_belong_to_their_field),
		cmocka_unit_test(test_names_that_only_begin_alike_are_other_fields),
		cmocka_unit_test(test_empty_lines_between_messages_are_none),
		cmocka_unit_test(test_nonsense_is_bad),
		cmocka_unit_test(test_greatest_lengths_are_skipped),
		cmocka_unit_test(test_endless_head_is_bad_at_its_bound),
		cmocka_unit_test(test_more_in_flight_than_kept_count_as_plain),
		cmocka_unit_test(test_captures_have_their_requests_and_responses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
