/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages as the PostgreSQL documentation, section 55.7, lays them out. */
#include "capture_streams.h"

static struct replay r;

#define PLAY(...)                                                                                  \
	do {                                                                                       \
		static const struct chunk chunks[] = {__VA_ARGS__};                                \
		replay_all_cuts(&r, replay_framer("postgres"), chunks, COUNT(chunks));             \
	} while (0)

#define STARTUP "\0\0\0\x10\0\3\0\0user\0a\0\0"
#define AUTH_OK "R\0\0\0\x08\0\0\0\0"
#define READY "Z\0\0\0\5I"
#define QUERY "Q\0\0\0\x0dselect 1\0"
#define ROW                                                                                        \
	"D\0\0\0\x0b\0\1\0\0\0\1"                                                                  \
	"1"
#define DONE "C\0\0\0\x0dSELECT 1\0"

static void
startup_and_queries_are_requests(void **state)
{
	(void)state;
	PLAY(C(STARTUP), S("R\0\0\0\x0c\0\0\0\5salt"), C("p\0\0\0\x08md5\0"),
		S(AUTH_OK "S\0\0\0\x0a"
			  "a\0bbb\0" READY),
		C(QUERY QUERY), S(ROW DONE READY "E\0\0\0\6x\0" READY));
	assert_string_equal(replay_message(&r, false, 0)->label, "StartupMessage");
	assert_string_equal(replay_message(&r, false, 1)->label, "SELECT");
	assert_string_equal(replay_message(&r, false, 2)->label, "SELECT");
	assert_false(replay_message(&r, true, 1)->error);
	assert_true(replay_message(&r, true, 2)->error);
	assert_int_equal(replay_tally(&r).requests, 3);
	assert_int_equal(replay_tally(&r).responses, 3);
	assert_int_equal(replay_ended(&r, true), 3);
	assert_int_equal(replay_tally(&r).bad, 0);
}

/* Parse, Bind, Execute and Sync are one request; of a statement made before, too. */
static void
extended_queries_end_with_sync(void **state)
{
	(void)state;
	PLAY(C(STARTUP), S(AUTH_OK READY),
		C("P\0\0\0\x18s1\0 insert into t\0\0\0"
		  "B\0\0\0\6xx"
		  "E\0\0\0\x09\0\0\0\0\0"
		  "S\0\0\0\4"
		  "B\0\0\0\6xx"
		  "E\0\0\0\x09\0\0\0\0\0"
		  "S\0\0\0\4"),
		S("1\0\0\0\4"
		  "2\0\0\0\4" DONE READY "2\0\0\0\4" DONE READY));
	assert_string_equal(replay_message(&r, false, 1)->label, "INSERT");
	assert_string_equal(replay_message(&r, false, 2)->label, "EXECUTE");
	assert_int_equal(replay_tally(&r).requests, 3);
	assert_int_equal(replay_tally(&r).responses, 3);
	assert_int_equal(replay_ended(&r, false), 3);
	assert_int_equal(replay_ended(&r, true), 3);
	assert_int_equal(replay_tally(&r).bad, 0);
}

static void
what_nobody_asked_for_is_a_push(void **state)
{
	(void)state;
	PLAY(C(STARTUP),
		S(AUTH_OK READY "A\0\0\0\x0a"
				"\0\0\0\1"
				"c\0"
				"N\0\0\0\5\0"),
		C(QUERY), S("N\0\0\0\5\0" DONE READY));
	assert_int_equal(replay_tally(&r).pushed, 2);
	assert_int_equal(
		replay_tally(&r).responses, 2); /* a notice within a response is part of it */
}

static void
encryption_is_a_tunnel_and_its_refusal_is_none(void **state)
{
	(void)state;
	PLAY(C("\0\0\0\x08\4\xd2\x16\x2f"), S("N"), C(STARTUP), S(AUTH_OK READY));
	assert_string_equal(replay_message(&r, false, 0)->label, "SSLRequest");
	assert_string_equal(replay_message(&r, false, 1)->label, "StartupMessage");
	assert_int_equal(replay_message(&r, true, 0)->until_close, 0);
	assert_int_equal(replay_tally(&r).responses, 2);
	PLAY(C("\0\0\0\x08\4\xd2\x16\x2f"), S("S"));
	assert_int_equal(replay_message(&r, true, 0)->until_close, BS_UNTIL_TUNNEL);
	PLAY(C("\0\0\0\x10\4\xd2\x16\x2e"
	       "pid!"
	       "key!"));
	assert_int_equal(replay_message(&r, false, 0)->oneway, BS_ONEWAY);
}

/* A COPY sends its data behind the query; that is no request. */
static void
data_of_a_copy_is_no_request(void **state)
{
	(void)state;
	PLAY(C(STARTUP), S(AUTH_OK READY),
		C("Q\0\0\0\x16"
		  "copy t from stdin\0"),
		S("G\0\0\0\7\0\0\0"),
		C("d\0\0\0\6x\n"
		  "c\0\0\0\4"),
		S(DONE READY), C("X\0\0\0\4"));
	assert_string_equal(replay_message(&r, false, 1)->label, "COPY");
	assert_int_equal(replay_tally(&r).requests, 2);
	assert_int_equal(replay_tally(&r).responses, 2);
	assert_int_equal(replay_tally(&r).bad, 0);
}

static void
nonsense_is_bad(void **state)
{
	(void)state;
	PLAY(C("\0\0\0\4\0\3\0\0"));
	assert_int_equal(replay_tally(&r).bad, 1);
	PLAY(C(STARTUP "?\0\0\0\4"));
	assert_int_equal(replay_tally(&r).bad, 1);
	PLAY(C(STARTUP "Q\0\0\0\3"));
	assert_int_equal(replay_tally(&r).bad, 1);
	PLAY(C(STARTUP), S("?\0\0\0\4"));
	assert_int_equal(replay_tally(&r).bad, 1);
}

static void
it_is_told_by_startup_query_and_question(void **state)
{
	const struct bs_framer *postgres = replay_framer("postgres");

	(void)state;
#define GUESS(from_server, text)                                                                   \
	bs_framers_guess(&replay_table, 9999, false, from_server, (const uint8_t *)(text),         \
		sizeof(text) - 1)
	assert_ptr_equal(GUESS(false, STARTUP), postgres);
	assert_ptr_equal(GUESS(false, QUERY), postgres);
	assert_ptr_equal(GUESS(true, AUTH_OK), postgres);
	assert_ptr_not_equal(GUESS(false, "S\0\0\0\4Quit"), postgres);
}

/* TRUTH.md counts queries and ends of responses. */
static void
captures_have_their_queries(void **state)
{
	static const struct {
		const char *path;
		unsigned requests; /* queries, startups, requests for encryption */
	} cases[] = {
		{"urso+packetbeat/packetbeat/tests/system/pcaps/pgsql_extended_query.pcap", 3},
		{"zeek+zeek/testing/btest/Traces/postgresql/"
		 "psql-create-insert-select-delete-drop.pcap",
			8},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct tally t = streams_tally(cases[i].path, 5432, replay_framer("postgres"));

		assert_int_equal(t.requests, cases[i].requests);
		assert_int_equal(t.responses, cases[i].requests);
		assert_int_equal(t.bad, 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(startup_and_queries_are_requests),
		cmocka_unit_test(extended_queries_end_with_sync),
		cmocka_unit_test(what_nobody_asked_for_is_a_push),
		cmocka_unit_test(encryption_is_a_tunnel_and_its_refusal_is_none),
		cmocka_unit_test(data_of_a_copy_is_no_request),
		cmocka_unit_test(nonsense_is_bad),
		cmocka_unit_test(it_is_told_by_startup_query_and_question),
		cmocka_unit_test(captures_have_their_queries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
