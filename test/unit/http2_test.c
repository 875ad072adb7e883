/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of HTTP/2. Header blocks are the examples of RFC 7541, appendix C. */
#include "framer_replay.h"

static struct replay r;

enum { DATA, HEADERS, PRIORITY, RST, SETTINGS, PROMISE, PING, GOAWAY, WINDOW, CONTINUATION };

#define END_STREAM 0x01
#define END_HEADERS 0x04
#define PADDED 0x08
#define PRIORITIZED 0x20

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

/* C.4: three requests, GET / twice and GET /index.html, the later ones by the table. */
#define REQUEST_1 "\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"
#define REQUEST_2 "\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf"
#define REQUEST_3                                                                                  \
	"\x82\x87\x85\xbf\x40\x88\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f\x89\x25\xa8\x49\xe9\x5b\xb8\xe8" \
	"\xb4\xbf"
/* C.6: responses 302, and 307 by the table. */
#define RESPONSE_1                                                                                 \
	"\x48\x82\x64\x02\x58\x85\xae\xc3\x77\x1a\x4b\x61\x96\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8" \
	"\x20\x05\x95\x04\x0b\x81\x66\xe0\x82\xa6\x2d\x1b\xff\x6e\x91\x9d\x29\xad\x17\x18\x63\xc7" \
	"\x8f\x0b\x97\xc8\xe9\xae\x82\xae\x43\xd3"
#define RESPONSE_2 "\x48\x83\x64\x0e\xff\xc1\xc0\xbf"
/* Of the static table, appendix A: :status 200. */
#define STATUS_200 "\x88"
/* Literals without indexing, section 6.2.2: a name and a value of their own. */
#define STATUS_100                                                                                 \
	"\x08\x03"                                                                                 \
	"100"
#define GRPC_STATUS_5                                                                              \
	"\x00\x0b"                                                                                 \
	"grpc-status"                                                                              \
	"\x01"                                                                                     \
	"5"

struct stream {
	uint8_t bytes[8192];
	size_t count;
};

static void
put(struct stream *stream, const void *bytes, size_t count)
{
	assert_true(stream->count + count <= sizeof(stream->bytes));
	memcpy(stream->bytes + stream->count, bytes, count);
	stream->count += count;
}

static void
put_frame(struct stream *stream, unsigned type, unsigned flags, unsigned id, const void *payload,
	size_t bytes)
{
	const uint8_t header[9] = {(uint8_t)(bytes >> 16), (uint8_t)(bytes >> 8), (uint8_t)bytes,
		(uint8_t)type, (uint8_t)flags, 0, (uint8_t)(id >> 16), (uint8_t)(id >> 8),
		(uint8_t)id};

	put(stream, header, sizeof(header));
	put(stream, payload, bytes);
}

#define FRAME(stream, type, flags, id, text)                                                       \
	put_frame(stream, type, flags, id, text, sizeof(text) - 1)

static void
play(const struct stream *client, const struct stream *server)
{
	const struct chunk chunks[] = {
		{false, client->bytes, client->count}, {true, server->bytes, server->count}};

	replay_all_cuts(&r, replay_framer("http2"), chunks, server->count > 0 ? 2 : 1);
}

/* The n-th note with this role of that side. */
static const struct told *
nth(unsigned role, bool from_server, unsigned n)
{
	for (size_t i = 0; i < r.count; i++) {
		if ((r.told[i].flags & BS_FRAME_HEAD) && r.told[i].role == role &&
			r.told[i].from_server == from_server && n-- == 0)
			return &r.told[i];
	}
	fail_msg("no such note");
	return NULL;
}

static void
assert_told(const struct told *told, unsigned id, bool ends, const char *label, int status)
{
	assert_int_equal(told->id, id);
	assert_int_equal((told->flags & BS_FRAME_PART) == 0, ends);
	assert_string_equal(told->label, label);
	assert_int_equal(told->has_status, status != 0);
	assert_int_equal(told->status, status);
}

static void
streams_lie_between_each_other(void **state)
{
	struct stream client = {0}, server = {0};

	(void)state;
	put(&client, PREFACE, 24);
	FRAME(&client, SETTINGS, 0, 0, "\0\3\0\0\0\x64");
	FRAME(&client, HEADERS, END_HEADERS | END_STREAM, 1, REQUEST_1);
	FRAME(&client, HEADERS, END_HEADERS, 3, REQUEST_2);
	FRAME(&client, HEADERS, END_HEADERS | END_STREAM, 5, REQUEST_3);
	FRAME(&client, DATA, 0, 3, "hello");
	FRAME(&client, DATA, END_STREAM, 3, "");
	FRAME(&server, SETTINGS, 0, 0, "");
	FRAME(&server, SETTINGS, 1, 0, "");
	FRAME(&server, HEADERS, END_HEADERS, 3, RESPONSE_1);
	FRAME(&server, HEADERS, END_HEADERS | END_STREAM, 1, RESPONSE_2);
	FRAME(&server, WINDOW, 0, 0, "\0\0\1\0");
	FRAME(&server, DATA, END_STREAM, 3, "answer");
	FRAME(&server, HEADERS, END_HEADERS | END_STREAM, 5, STATUS_200);
	play(&client, &server);
	assert_told(nth(BS_ROLE_REQUEST, false, 0), 1, true, "GET /", 0);
	assert_told(nth(BS_ROLE_REQUEST, false, 1), 3, false, "GET /", 0);
	assert_told(nth(BS_ROLE_REQUEST, false, 2), 5, true, "GET /index.html", 0);
	assert_told(nth(BS_ROLE_PART, false, 0), 3, false, "", 0);
	assert_int_equal(nth(BS_ROLE_PART, false, 0)->skip, 5);
	assert_told(nth(BS_ROLE_PART, false, 1), 3, true, "", 0);
	assert_told(nth(BS_ROLE_RESPONSE, true, 0), 3, false, "", 302);
	assert_told(nth(BS_ROLE_RESPONSE, true, 1), 1, true, "", 307);
	assert_told(nth(BS_ROLE_PART, true, 0), 3, true, "", 0);
	assert_told(nth(BS_ROLE_RESPONSE, true, 2), 5, true, "", 200);
	assert_int_equal(replay_tally(&r).bad, 0);
}

/* Padding, priority and CONTINUATION: the block is what is left, in one piece. */
static void
blocks_come_padded_and_in_pieces(void **state)
{
	struct stream client = {0}, server = {0};

	(void)state;
	put(&client, PREFACE, 24);
	FRAME(&client, HEADERS, END_STREAM | PADDED | PRIORITIZED, 1,
		"\2\0\0\0\0\x10"
		"\x82\x86\x84\x41\x8c"
		"\0\0");
	FRAME(&client, CONTINUATION, 0, 1, "\xf1\xe3\xc2\xe5\xf2\x3a");
	FRAME(&client, CONTINUATION, 0, 1, "");
	FRAME(&client, CONTINUATION, END_HEADERS, 1, "\x6b\xa0\xab\x90\xf4\xff");
	FRAME(&client, HEADERS, END_HEADERS | END_STREAM, 3, REQUEST_2);
	play(&client, &server);
	assert_told(nth(BS_ROLE_REQUEST, false, 0), 1, true, "GET /", 0);
	assert_told(nth(BS_ROLE_REQUEST, false, 1), 3, true, "GET /", 0);
	assert_int_equal(replay_tally(&r).requests, 2);
	assert_int_equal(nth(BS_ROLE_REQUEST, false, 0)->begin, 24); /* with its HEADERS */
	assert_int_equal(replay_tally(&r).bad, 0);
}

static void
grpc_ends_with_its_own_status(void **state)
{
	struct stream client = {0}, server = {0};

	(void)state;
	put(&client, PREFACE, 24);
	FRAME(&client, HEADERS, END_HEADERS, 1, REQUEST_1);
	FRAME(&client, DATA, END_STREAM, 1, "\0\0\0\0\1x");
	FRAME(&server, SETTINGS, 0, 0, "");
	FRAME(&server, HEADERS, END_HEADERS, 1, STATUS_100);
	FRAME(&server, HEADERS, END_HEADERS, 1, STATUS_200);
	FRAME(&server, DATA, 0, 1, "\0\0\0\0\1y");
	FRAME(&server, HEADERS, END_HEADERS | END_STREAM, 1, GRPC_STATUS_5);
	play(&client, &server);
	assert_int_equal(nth(BS_ROLE_INTERIM, true, 0)->id, 1);
	assert_told(nth(BS_ROLE_RESPONSE, true, 0), 1, false, "", 200);
	assert_told(nth(BS_ROLE_PART, true, 0), 1, false, "", 0);
	assert_told(nth(BS_ROLE_PART, true, 1), 1, true, "", 5);
	assert_true(nth(BS_ROLE_PART, true, 1)->error);
}

static void
resets_cancel_and_pushes_answer_nothing(void **state)
{
	struct stream client = {0}, server = {0};

	(void)state;
	put(&client, PREFACE, 24);
	FRAME(&client, HEADERS, END_HEADERS | END_STREAM, 1, REQUEST_1);
	FRAME(&client, HEADERS, END_HEADERS | END_STREAM, 3, REQUEST_2);
	FRAME(&client, RST, 0, 3, "\0\0\0\x08");
	FRAME(&server, SETTINGS, 0, 0, "");
	FRAME(&server, PROMISE, END_HEADERS, 1, "\0\0\0\2" REQUEST_1);
	FRAME(&server, HEADERS, END_HEADERS, 2, STATUS_200);
	FRAME(&server, DATA, END_STREAM, 2, "pushed");
	FRAME(&server, HEADERS, END_HEADERS | END_STREAM, 1, RESPONSE_1);
	play(&client, &server);
	assert_int_equal(nth(BS_ROLE_CANCEL, false, 0)->id, 3);
	assert_int_equal(replay_tally(&r).pushed, 1);
	assert_int_equal(replay_tally(&r).responses, 1);
	assert_told(nth(BS_ROLE_RESPONSE, true, 0), 1, true, "", 302);
}

/* Joined late: the first block refers to one that was not seen. What came since is known. */
static void
a_connection_joined_late_has_names_from_then_on(void **state)
{
	struct stream client = {0}, server = {0};

	(void)state;
	FRAME(&client, HEADERS, END_HEADERS | END_STREAM, 7, REQUEST_2);
	FRAME(&client, HEADERS, END_HEADERS | END_STREAM, 9, REQUEST_1);
	FRAME(&client, HEADERS, END_HEADERS | END_STREAM, 11, REQUEST_2);
	FRAME(&server, HEADERS, END_HEADERS, 7, RESPONSE_2);
	FRAME(&server, DATA, END_STREAM, 7, "x");
	play(&client, &server);
	assert_told(nth(BS_ROLE_REQUEST, false, 0), 7, true, "", 0);
	assert_told(nth(BS_ROLE_REQUEST, false, 1), 9, true, "GET /", 0);
	assert_told(nth(BS_ROLE_REQUEST, false, 2), 11, true, "GET /", 0);
	assert_told(nth(BS_ROLE_PART, true, 0), 7, false, "", 0);
	assert_told(nth(BS_ROLE_PART, true, 1), 7, true, "", 0);
	assert_int_equal(replay_tally(&r).bad, 0);
}

/* The reader allows a larger table, and the writer says that it uses it (section 6.3 of RFC 7541).
 */
static void
tables_grow_as_the_reader_allows(void **state)
{
	struct stream client = {0}, server = {0};
	const struct chunk chunks[] = {{true, server.bytes, 0}, {false, client.bytes, 0}};
	struct chunk played[2];

	(void)state;
	FRAME(&server, SETTINGS, 0, 0, "\0\1\0\0\x20\0"); /* 8192 */
	put(&client, PREFACE, 24);
	FRAME(&client, HEADERS, END_HEADERS | END_STREAM, 1, "\x3f\xe1\x3f" REQUEST_1);
	memcpy(played, chunks, sizeof(played));
	played[0].bytes = server.count;
	played[1].bytes = client.count;
	replay_all_cuts(&r, replay_framer("http2"), played, 2);
	assert_told(nth(BS_ROLE_REQUEST, false, 0), 1, true, "GET /", 0);
}

/* A block that makes no sense costs a name, not the connection. */
static void
a_block_that_makes_no_sense_costs_a_name_only(void **state)
{
	struct stream client = {0}, server = {0};

	(void)state;
	put(&client, PREFACE, 24);
	FRAME(&client, HEADERS, END_HEADERS | END_STREAM, 1, "\xff\xff\xff\xff\xff\xff\xff\xff");
	FRAME(&client, HEADERS, END_HEADERS | END_STREAM, 3, REQUEST_1);
	play(&client, &server);
	assert_told(nth(BS_ROLE_REQUEST, false, 0), 1, true, "", 0);
	assert_told(nth(BS_ROLE_REQUEST, false, 1), 3, true, "GET /", 0);
	assert_int_equal(replay_tally(&r).bad, 0);
}

static void
frames_that_make_no_sense_are_bad(void **state)
{
	static const struct {
		unsigned type, flags, id;
		const char *payload;
		size_t bytes;
	} cases[] = {
		{DATA, 0, 0, "x", 1},
		{HEADERS, END_HEADERS, 0, "\x82", 1},
		{HEADERS, END_HEADERS | PADDED, 1, "\x09\x82", 2}, /* more padding than payload */
		{HEADERS, END_HEADERS | PRIORITIZED, 1, "\0\0", 2},
		{RST, 0, 1, "\0\0\0", 3},
		{SETTINGS, 0, 0, "\0\0\0", 3},
		{SETTINGS, 0, 1, "", 0},
		{PING, 0, 0, "1234567", 7},
		{WINDOW, 0, 0, "123", 3},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct stream client = {0}, server = {0};

		put(&client, PREFACE, 24);
		put_frame(&client, cases[i].type, cases[i].flags, cases[i].id, cases[i].payload,
			cases[i].bytes);
		play(&client, &server);
		assert_int_equal(replay_tally(&r).bad, 1);
	}
}

static void
traceparent_is_read_from_the_request(void **state)
{
	struct stream client = {0}, server = {0};
	static const uint8_t trace_id[16] = {0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3,
		0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36};
	static const uint8_t parent[8] = {0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7};

	(void)state;
	put(&client, PREFACE, 24);
	FRAME(&client, HEADERS, END_HEADERS | END_STREAM, 1,
		REQUEST_1 "\x00\x0btraceparent\x37"
			  "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
	play(&client, &server);
	assert_memory_equal(nth(BS_ROLE_REQUEST, false, 0)->trace_id, trace_id, 16);
	assert_memory_equal(nth(BS_ROLE_REQUEST, false, 0)->parent_span_id, parent, 8);
}

static void
it_is_told_by_the_preface_and_by_the_servers_settings(void **state)
{
	const struct bs_framer *framer = replay_framer("http2");
	const struct bs_framer *http1 = replay_framer("http1");

	(void)state;
	assert_int_equal(framer->ops->probe(framer, false, (const void *)PREFACE, 24), 2);
	assert_int_equal(framer->ops->probe(framer, false, (const void *)PREFACE, 10), 1);
	assert_int_equal(
		framer->ops->probe(framer, false, (const void *)"POST / HTTP/1.1\r\n", 17), 0);
	assert_int_equal(http1->ops->probe(http1, false, (const void *)PREFACE, 24), 0);
	assert_int_equal(framer->ops->probe(framer, true,
				 (const void *)"\0\0\6\4\0\0\0\0\0\0\3\0\0\0\x64", 15),
		2);
	assert_int_equal(
		framer->ops->probe(framer, true, (const void *)"HTTP/1.1 200 OK\r\n", 17), 0);
	assert_ptr_equal(
		bs_framers_guess(&replay_table, 9999, false, false, (const void *)PREFACE, 24),
		framer);
	assert_ptr_equal(
		bs_framers_settle(&replay_table, http1, false, false, (const void *)PREFACE, 24),
		framer);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_lie_between_each_other),
		cmocka_unit_test(blocks_come_padded_and_in_pieces),
		cmocka_unit_test(grpc_ends_with_its_own_status),
		cmocka_unit_test(resets_cancel_and_pushes_answer_nothing),
		cmocka_unit_test(a_connection_joined_late_has_names_from_then_on),
		cmocka_unit_test(tables_grow_as_the_reader_allows),
		cmocka_unit_test(a_block_that_makes_no_sense_costs_a_name_only),
		cmocka_unit_test(frames_that_make_no_sense_are_bad),
		cmocka_unit_test(traceparent_is_read_from_the_request),
		cmocka_unit_test(it_is_told_by_the_preface_and_by_the_servers_settings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
