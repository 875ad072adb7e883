/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets as MySQL's internals manual, "Client/Server Protocol", lays them out. */
#include "capture_streams.h"

static struct replay r;

#define PLAY(...)                                                                                  \
	do {                                                                                       \
		static const struct chunk chunks[] = {__VA_ARGS__};                                \
		replay_all_cuts(&r, replay_framer("mysql"), chunks, COUNT(chunks));                \
	} while (0)

#define GREETING                                                                                   \
	"\x1b\0\0\0\x0a"                                                                           \
	"8.0.36\0"                                                                                 \
	"\1\0\0\0"                                                                                 \
	"saltsalt\0"                                                                               \
	"\xff\xf7\x08\2\0\0"
/* Capabilities, then 28 bytes of which nothing is looked at. */
#define LOGIN "\x20\0\0\1\x85\xa6\x3f\0............................"
#define LOGIN_TLS "\x20\0\0\1\x85\xae\x3f\0............................"
#define OK(sequence) "\7\0\0" sequence "\0\0\0\2\0\0\0"
#define OK_MORE(sequence) "\7\0\0" sequence "\0\0\0\x0a\0\0\0"
#define ERR(sequence) "\x09\0\0" sequence "\xff\x48\4#HY000"
#define EOF_(sequence) "\5\0\0" sequence "\xfe\0\0\2\0"
#define EOF_MORE(sequence) "\5\0\0" sequence "\xfe\0\0\x0a\0"
#define COLUMN(sequence) "\x0a\0\0" sequence "\3def123456"
#define ROW(sequence)                                                                              \
	"\2\0\0" sequence "\1"                                                                     \
	"7"
#define SELECT "\x09\0\0\0\3select 1"
#define CONNECTED S(GREETING), C(LOGIN), S(OK("\2"))

static void
assert_pairs(unsigned count)
{
	assert_int_equal(replay_tally(&r).bad, 0);
	assert_int_equal(replay_tally(&r).requests - replay_tally(&r).oneway, count);
	assert_int_equal(replay_tally(&r).responses, count);
	assert_int_equal(replay_ended(&r, true), count);
}

static void
commands_are_answered_by_one_packet_or_rows(void **state)
{
	(void)state;
	PLAY(CONNECTED, C(SELECT),
		S("\1\0\0\1\1" COLUMN("\2") EOF_("\3") ROW("\4") ROW("\5") EOF_("\6")),
		C("\x0f\0\0\0\3 insert into t"), S(OK("\1")), C("\1\0\0\0\x0e"), S(ERR("\1")),
		C("\1\0\0\0\1"));
	assert_pairs(4);
	assert_string_equal(replay_message(&r, false, 0)->label, "LOGIN");
	assert_string_equal(replay_message(&r, false, 1)->label, "SELECT");
	assert_string_equal(replay_message(&r, false, 2)->label, "INSERT");
	assert_string_equal(replay_message(&r, false, 3)->label, "PING");
	assert_string_equal(replay_message(&r, false, 4)->label, "QUIT");
	assert_int_equal(replay_message(&r, false, 4)->oneway, BS_ONEWAY);
	assert_true(replay_message(&r, true, 3)->error);
	assert_int_equal(replay_message(&r, true, 3)->status, 1096);
}

/* Newer ends leave out the EOF behind the columns, and end rows with an OK that begins as an EOF.
 */
static void
rows_without_eof_are_understood(void **state)
{
	(void)state;
	PLAY(CONNECTED, C(SELECT),
		S("\1\0\0\1\1" COLUMN("\2") ROW("\3") "\7\0\0\4\xfe\0\0\2\0\0\0"), C(SELECT),
		S(OK("\1")));
	assert_pairs(3);
}

static void
several_results_are_one_response(void **state)
{
	(void)state;
	PLAY(CONNECTED, C(SELECT),
		S("\1\0\0\1\1" COLUMN("\2") EOF_("\3") ROW("\4") EOF_MORE("\5") OK_MORE(
			"\6") "\1\0\0\7\1" COLUMN("\x08") EOF_("\x09") EOF_("\x0a")),
		C(SELECT), S(OK("\1")));
	assert_pairs(3);
}

static void
prepared_statements_have_definitions(void **state)
{
	(void)state;
	PLAY(CONNECTED, C("\x09\0\0\0\x16select ?"),
		S("\x0c\0\0\1\0\1\0\0\0\1\0\1\0\0\0\0" COLUMN("\2") EOF_("\3") COLUMN("\4")
				EOF_("\5")),
		C("\x05\0\0\0\x18\1\0\0\0"), C("\x05\0\0\0\x17\1\0\0\0"), S(OK("\1")),
		C("\x05\0\0\0\x19\1\0\0\0"),
		C("\x09\0\0\0\x16"
		  "commit  "),
		S("\x0c\0\0\1\0\2\0\0\0\0\0\0\0\0\0\0"));
	assert_pairs(4);
	assert_string_equal(replay_message(&r, false, 1)->label, "PREPARE");
	assert_string_equal(replay_message(&r, false, 3)->label, "EXECUTE");
	assert_int_equal(replay_tally(&r).oneway, 2); /* SEND LONG DATA, CLOSE */
}

/* The server may ask for another kind of proof: that is all one login. */
static void
questions_of_a_login_are_part_of_it(void **state)
{
	(void)state;
	PLAY(S(GREETING), C(LOGIN), S("\7\0\0\2\xfeplugin"), C("\4\0\0\3hash"), S("\2\0\0\4\1\4"),
		C("\4\0\0\5word"), S(OK("\6")), C(SELECT), S(OK("\1")));
	assert_pairs(2);
}

static void
tls_is_a_tunnel(void **state)
{
	(void)state;
	PLAY(S(GREETING), C(LOGIN_TLS), C("\x16\3\1\0\xff"), S("\x16\3\3\0\xff"));
	assert_int_equal(replay_message(&r, false, 0)->until_close, BS_UNTIL_TUNNEL);
	assert_int_equal(replay_tally(&r).bad, 0);
}

static void
nonsense_is_bad(void **state)
{
	(void)state;
	PLAY(CONNECTED, C("\1\0\0\0\x7f"));
	assert_int_equal(replay_tally(&r).bad, 1);
	PLAY(CONNECTED, C("\0\0\0\0"));
	assert_int_equal(replay_tally(&r).bad, 1);
}

static void
it_is_told_by_the_greeting_or_the_port(void **state)
{
	const struct bs_framer *mysql = replay_framer("mysql");

	(void)state;
#define GUESS(port, from_server, text)                                                             \
	bs_framers_guess(&replay_table, port, false, from_server, (const uint8_t *)(text),         \
		sizeof(text) - 1)
	assert_ptr_equal(GUESS(9999, true, GREETING), mysql);
	assert_ptr_equal(GUESS(3306, false, SELECT), mysql);
	assert_ptr_not_equal(GUESS(9999, false, SELECT), mysql);
}

/* TRUTH.md: 158 commands, of which QUIT has no reply; and the login. */
static void
capture_has_its_commands(void **state)
{
	struct tally t = streams_tally(
		"urso+packetbeat/packetbeat/tests/system/pcaps/mysql_int_string_operations.pcap",
		13001, replay_framer("mysql"));

	(void)state;
	assert_int_equal(t.requests, 158 + 1);
	assert_int_equal(t.oneway, 1);
	assert_int_equal(t.responses, 157 + 1);
	assert_int_equal(t.bad, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands_are_answered_by_one_packet_or_rows),
		cmocka_unit_test(rows_without_eof_are_understood),
		cmocka_unit_test(several_results_are_one_response),
		cmocka_unit_test(prepared_statements_have_definitions),
		cmocka_unit_test(questions_of_a_login_are_part_of_it),
		cmocka_unit_test(tls_is_a_tunnel),
		cmocka_unit_test(nonsense_is_bad),
		cmocka_unit_test(it_is_told_by_the_greeting_or_the_port),
		cmocka_unit_test(capture_has_its_commands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
