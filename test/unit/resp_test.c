/* SPDX-License-Identifier: BSD-3-Clause */
#include "capture_streams.h"

static struct replay r;

#define PLAY(...)                                                                                  \
	do {                                                                                       \
		static const struct chunk chunks[] = {__VA_ARGS__};                                \
		replay_all_cuts(&r, replay_framer("resp"), chunks, COUNT(chunks));                 \
	} while (0)

static const uint8_t whole = BS_FRAME_HEAD | BS_FRAME_END;
static const uint8_t whole_skip = BS_FRAME_HEAD | BS_FRAME_SKIP | BS_FRAME_END;

static void
test_small_command_is_told_once_with_its_last_bulk_as_skip(void **state)
{
	(void)state;
	PLAY(C("*2\r\n$3\r\nget\r\n$3\r\nkey\r\n*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n"
	       "*1\r\n$4\r\nPING\r\n"));
	assert_int_equal(r.count, 3);
	assert_string_equal(r.told[0].label, "GET");
	assert_int_equal(r.told[0].flags, whole_skip);
	assert_int_equal(r.told[0].at, 17);
	assert_int_equal(r.told[0].skip, 5);
	assert_string_equal(r.told[1].label, "SET");
	assert_int_equal(r.told[1].begin, 22);
	assert_int_equal(r.told[1].skip, 7);
	assert_string_equal(r.told[2].label, "PING");
	assert_int_equal(r.told[2].skip, 2);
	assert_false(r.told[2].oneway);
}

static void
test_large_argument_is_skipped_and_told_early(void **state)
{
	static char value[3000];
	struct chunk chunks[] = {C("*3\r\n$3\r\nSET\r\n$2000\r\n"), {false, value, 2000},
		C("\r\n$3000\r\n"), {false, value, 3000}, C("\r\n*1\r\n$4\r\nPING\r\n")};

	(void)state;
	memset(value, '*', sizeof(value));
	replay_all_cuts(&r, replay_framer("resp"), chunks, COUNT(chunks));
	assert_int_equal(r.count, 3);
	assert_int_equal(r.told[0].flags, BS_FRAME_HEAD | BS_FRAME_SKIP);
	assert_int_equal(r.told[0].skip, 2002);
	assert_int_equal(r.told[1].flags, BS_FRAME_SKIP | BS_FRAME_END);
	assert_int_equal(r.told[1].skip, 3002);
	assert_string_equal(r.told[2].label, "PING");
}

static void
test_command_of_many_arguments_is_told_before_they_come(void **state)
{
	(void)state;
	PLAY(C("*9\r\n$3\r\nDEL\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n$1\r\ne\r\n"
	       "$1\r\nf\r\n$1\r\ng\r\n$1\r\nh\r\n"));
	assert_int_equal(r.count, 2);
	assert_int_equal(r.told[0].flags, BS_FRAME_HEAD);
	assert_int_equal(r.told[0].at, 11);
	assert_string_equal(r.told[0].label, "DEL");
	assert_int_equal(r.told[1].flags, BS_FRAME_SKIP | BS_FRAME_END);
}

static void
test_label_has_the_subcommand_and_never_an_argument(void **state)
{
	(void)state;
	PLAY(C("*4\r\n$6\r\nclient\r\n$7\r\nsetinfo\r\n$1\r\na\r\n$1\r\nb\r\n"
	       "*3\r\n$6\r\nCONFIG\r\n$3\r\nget\r\n$6\r\nsecret\r\n"
	       "*3\r\n$4\r\nAUTH\r\n$4\r\nuser\r\n$6\r\nsecret\r\n"
	       "*1\r\n$7\r\nCOMMAND\r\n"
	       "*2\r\n$6\r\nXGROUP\r\n$6\r\nCREATE\r\n"
	       "auth secret\r\nCLIENT LIST\r\nCOMMAND\r\n\"SET\" 'a b' c\r\n"));
	assert_int_equal(r.count, 9);
	assert_string_equal(r.told[0].label, "CLIENT SETINFO");
	assert_string_equal(r.told[1].label, "CONFIG GET");
	assert_string_equal(r.told[2].label, "AUTH");
	assert_string_equal(r.told[3].label, "COMMAND");
	assert_string_equal(r.told[4].label, "XGROUP CREATE");
	assert_string_equal(r.told[5].label, "AUTH");
	assert_string_equal(r.told[6].label, "CLIENT LIST");
	assert_string_equal(r.told[7].label, "COMMAND");
	assert_string_equal(r.told[8].label, "SET");
}

static void
test_long_and_binary_names_are_bounded_and_printable(void **state)
{
	(void)state;
	PLAY(C("*1\r\n$"
	       "70\r\n0123456789012345678901234567890123456789012345678901234567890123456789\r\n"
	       "*1\r\n$3\r\n\0\x80\n\r\n*1\r\n$0\r\n\r\n*2\r\n$0\r\n\r\n$1\r\nx\r\n"));
	assert_int_equal(r.count, 4);
	assert_string_equal(r.told[0].label, "01234567890123456789012345678901");
	assert_string_equal(r.told[1].label, "...");
	assert_string_equal(r.told[2].label, "");
	assert_int_equal(r.told[2].flags, whole_skip);
	assert_string_equal(r.told[3].label, "");
}

static void
test_empty_command_is_no_message(void **state)
{
	(void)state;
	PLAY(C("\r\n*0\r\n*-1\r\n   \r\nPING\r\n"));
	assert_int_equal(r.count, 5);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(r.told[i].flags, BS_FRAME_END);
	assert_int_equal(r.told[4].flags, whole);
	assert_string_equal(r.told[4].label, "PING");
}

static void
test_replies_of_every_type_end_where_they_end(void **state)
{
	static const char *const replies[] = {"+OK\r\n", "-ERR no\r\n", ":-42\r\n", "$-1\r\n",
		"*-1\r\n", "*0\r\n", "_\r\n", "#t\r\n", ",1.5e-3\r\n", "(349284\r\n", "$0\r\n\r\n",
		"$5\r\nhello\r\n", "!9\r\nERR worse\r\n", "=8\r\ntxt:text\r\n", "%0\r\n", "~0\r\n",
		"*2\r\n:1\r\n$1\r\nx\r\n", "%1\r\n+a\r\n*1\r\n_\r\n", "~1\r\n*0\r\n",
		"*2\r\n*1\r\n*1\r\n$-1\r\n*-1\r\n", "|1\r\n+ttl\r\n:9\r\n:7\r\n",
		"|1\r\n+a\r\n*1\r\n:1\r\n*1\r\n|0\r\n$3\r\nabc\r\n", "*1\r\n-ERR inside\r\n"};
	struct chunk chunks[3 * COUNT(replies)];
	uint64_t at = 0;
	size_t note = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(replies); i++) {
		chunks[i] = (struct chunk)C("PING\r\n");
		chunks[COUNT(replies) + i] = (struct chunk){true, replies[i], strlen(replies[i])};
	}
	replay_all_cuts(&r, replay_framer("resp"), chunks, 2 * COUNT(replies));
	assert_int_equal(r.dir[true].skip, 0);
	for (size_t i = 0; i < COUNT(replies); i++) {
		unsigned heads = 0;

		while (note < r.count && !r.told[note].from_server)
			note++;
		assert_int_equal(r.told[note].begin, at);
		do {
			assert_false(r.told[note].flags & BS_FRAME_BAD);
			heads += r.told[note].flags & BS_FRAME_HEAD;
			if (r.told[note].flags & BS_FRAME_HEAD) {
				assert_int_equal(r.told[note].error, i == 1 || i == 12);
				assert_int_equal(r.told[note].status, i == 1 || i == 12);
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
test_last_bulk_of_a_reply_is_skipped_with_its_end(void **state)
{
	(void)state;
	PLAY(C("*1\r\n$4\r\nKEYS\r\n"), S("*2\r\n$1\r\na\r\n*1\r\n$3\r\nabc\r\n"));
	assert_int_equal(r.count, 3);
	assert_int_equal(r.told[1].flags, BS_FRAME_HEAD);
	assert_int_equal(r.told[1].at, 4);
	assert_int_equal(r.told[2].flags, BS_FRAME_SKIP | BS_FRAME_END);
	assert_int_equal(r.told[2].skip, 5);
}

static void
test_client_reply_makes_commands_oneway(void **state)
{
	static const bool oneway[] = {
		false, true, true, false, false, true, true, false, true, true, true, false, false};

	(void)state;
	/* As in the capture reply-off-on, then SKIP while OFF, and ON behind SKIP. */
	PLAY(C("PING\r\nCLIENT REPLY OFF\r\nPING\r\nclient reply on\r\nPING\r\n"
	       "*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$4\r\nSKIP\r\nPING\r\nPING\r\n"
	       "CLIENT REPLY OFF\r\nCLIENT REPLY SKIP\r\nPING\r\n"
	       "CLIENT REPLY ON\r\nCLIENT REPLY MAYBE\r\n"));
	assert_int_equal(r.count, COUNT(oneway));
	for (size_t i = 0; i < r.count; i++)
		assert_int_equal(r.told[i].oneway, oneway[i]);
	assert_string_equal(r.told[1].label, "CLIENT REPLY");
}

#define CONFIRMATION(kind_len, kind, channel, n)                                                   \
	"*3\r\n$" kind_len "\r\n" kind "\r\n$1\r\n" channel "\r\n:" n "\r\n"
#define MESSAGE "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n"

static void
expect_roles(const uint8_t *roles, size_t count)
{
	size_t n = 0;

	for (size_t i = 0; i < r.count; i++) {
		if (!r.told[i].from_server || !(r.told[i].flags & BS_FRAME_HEAD))
			continue;
		assert_true(n < count);
		assert_int_equal(r.told[i].role, roles[n]);
		n++;
	}
	assert_int_equal(n, count);
}

#define ANSWERS BS_ROLE_BY_DIRECTION
#define PUSHED BS_ROLE_PUSH
#define EXPECT_ROLES(...)                                                                          \
	do {                                                                                       \
		static const uint8_t roles[] = {__VA_ARGS__};                                      \
		expect_roles(roles, COUNT(roles));                                                 \
	} while (0)

static void
test_first_confirmation_answers_the_others_and_messages_are_pushed(void **state)
{
	(void)state;
	PLAY(C("*4\r\n$9\r\nSUBSCRIBE\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n"
	       "*2\r\n$10\r\nPSUBSCRIBE\r\n$1\r\np\r\n*1\r\n$4\r\nPING\r\n"),
		S(CONFIRMATION("9", "subscribe", "a", "1") CONFIRMATION("9", "subscribe", "b",
			"2") MESSAGE CONFIRMATION("9", "subscribe", "c", "3") CONFIRMATION("10",
			"psubscribe", "p",
			"4") "*2\r\n$4\r\npong\r\n$0\r\n\r\n"
			     "*4\r\n$8\r\npmessage\r\n$1\r\np\r\n$1\r\na\r\n$1\r\nx\r\n"));
	EXPECT_ROLES(ANSWERS, PUSHED, PUSHED, PUSHED, ANSWERS, ANSWERS, PUSHED);
}

static void
test_inline_subscribe_counts_its_words(void **state)
{
	(void)state;
	PLAY(C("SUBSCRIBE a \"b\"\r\nPING\r\n"),
		S(CONFIRMATION("9", "subscribe", "a", "1")
				CONFIRMATION("9", "subscribe", "b", "2") "+PONG\r\n"));
	EXPECT_ROLES(ANSWERS, PUSHED, ANSWERS);
}

static void
test_unsubscribe_from_all_is_answered_once(void **state)
{
	(void)state;
	PLAY(C("SUBSCRIBE a b\r\n"),
		S(CONFIRMATION("9", "subscribe", "a", "1")
				CONFIRMATION("9", "subscribe", "b", "2")),
		C("UNSUBSCRIBE\r\nPING\r\nPUNSUBSCRIBE\r\n"),
		S(CONFIRMATION("11", "unsubscribe", "a", "1") CONFIRMATION("11", "unsubscribe", "b",
			"0") "+PONG\r\n" CONFIRMATION("12", "punsubscribe", "p", "0")));
	EXPECT_ROLES(ANSWERS, PUSHED, ANSWERS, PUSHED, ANSWERS, ANSWERS);
}

static void
test_refused_subscribe_is_answered_by_its_error(void **state)
{
	(void)state;
	PLAY(C("SUBSCRIBE a b c\r\nSUBSCRIBE\r\nSUBSCRIBE d\r\nPING\r\n"),
		S("-NOPERM no\r\n-ERR wrong number of arguments\r\n" CONFIRMATION(
			"9", "subscribe", "d", "1") CONFIRMATION("9", "subscribe", "x", "2")));
	/* The last would be c of the refused one, were it still expected: it answers the PING. */
	EXPECT_ROLES(ANSWERS, ANSWERS, ANSWERS, ANSWERS);
}

static void
test_more_subscribes_in_flight_than_noted_have_one_confirmation_each(void **state)
{
	(void)state;
	PLAY(C("SUBSCRIBE a\r\nSUBSCRIBE a\r\nSUBSCRIBE a\r\nSUBSCRIBE a\r\nSUBSCRIBE a\r\n"
	       "SUBSCRIBE a\r\nSUBSCRIBE a\r\nSUBSCRIBE a\r\nSUBSCRIBE a\r\nSUBSCRIBE a\r\n"),
		S(CONFIRMATION("9", "subscribe", "a", "1") CONFIRMATION("9", "subscribe", "a",
			"1") CONFIRMATION("9", "subscribe", "a", "1") CONFIRMATION("9", "subscribe",
			"a", "1") CONFIRMATION("9", "subscribe", "a", "1")),
		S(CONFIRMATION("9", "subscribe", "a", "1") CONFIRMATION("9", "subscribe", "a",
			"1") CONFIRMATION("9", "subscribe", "a", "1") CONFIRMATION("9", "subscribe",
			"a", "1") CONFIRMATION("9", "subscribe", "a", "1")));
	EXPECT_ROLES(ANSWERS, ANSWERS, ANSWERS, ANSWERS, ANSWERS, ANSWERS, ANSWERS, ANSWERS,
		ANSWERS, ANSWERS);
}

static void
test_each_subscribe_has_its_own_confirmations(void **state)
{
	(void)state;
	PLAY(C("SUBSCRIBE a b\r\nSUBSCRIBE c\r\n"),
		S(CONFIRMATION("9", "subscribe", "a", "1") CONFIRMATION("9", "subscribe", "b", "2")
				CONFIRMATION("9", "subscribe", "c", "3")));
	EXPECT_ROLES(ANSWERS, PUSHED, ANSWERS);
	/* One that was not noted does not use up what is noted of a later one. */
	PLAY(C("SUBSCRIBE a\r\nSUBSCRIBE a\r\nSUBSCRIBE a\r\nSUBSCRIBE a\r\nSUBSCRIBE a\r\n"
	       "SUBSCRIBE a\r\nSUBSCRIBE a\r\nSUBSCRIBE a\r\nSUBSCRIBE a\r\n"),
		S(CONFIRMATION("9", "subscribe", "a", "1")), C("SUBSCRIBE x y\r\nPING\r\n"),
		S(CONFIRMATION("9", "subscribe", "a", "1") CONFIRMATION("9", "subscribe", "a", "1")
				CONFIRMATION("9", "subscribe", "a", "1")
					CONFIRMATION("9", "subscribe", "a", "1")),
		S(CONFIRMATION("9", "subscribe", "a", "1") CONFIRMATION("9", "subscribe", "a", "1")
				CONFIRMATION("9", "subscribe", "a", "1")
					CONFIRMATION("9", "subscribe", "a", "1")),
		S(CONFIRMATION("9", "subscribe", "x", "2")
				CONFIRMATION("9", "subscribe", "y", "3")));
	EXPECT_ROLES(ANSWERS, ANSWERS, ANSWERS, ANSWERS, ANSWERS, ANSWERS, ANSWERS, ANSWERS,
		ANSWERS, ANSWERS, PUSHED);
}

static void
test_list_that_begins_with_message_answers_who_has_not_subscribed(void **state)
{
	(void)state;
	PLAY(C("LRANGE l 0 -1\r\n"), S(MESSAGE));
	EXPECT_ROLES(ANSWERS);
	/* With nothing in flight, as behind the beginning of a capture, it is pushed. */
	PLAY(S(MESSAGE));
	EXPECT_ROLES(PUSHED);
}

static void
test_resp3_push_is_pushed_and_its_confirmation_answers(void **state)
{
	(void)state;
	PLAY(C("*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\na\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"),
		S(">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n>3\r\n$7\r\nmessage\r\n$1\r\na\r\n$"
		  "1\r\nx\r\n"
		  ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n>1\r\n+odd\r\n>0\r\n$1\r\nv\r\n"));
	EXPECT_ROLES(ANSWERS, PUSHED, PUSHED, PUSHED, PUSHED, ANSWERS);
}

static void
test_monitor_pushes_lines_that_begin_with_a_time(void **state)
{
	(void)state;
	PLAY(C("MONITOR\r\n"),
		S("+OK\r\n+1339518083.107412 [0 127.0.0.1:60866] \"keys\" \"*\"\r\n"));
	EXPECT_ROLES(ANSWERS, PUSHED);
	PLAY(C("ECHO 1\r\n"), S("+1\r\n"));
	EXPECT_ROLES(ANSWERS);
}

static void
test_replication_stream_never_ends(void **state)
{
	(void)state;
	PLAY(C("*3\r\n$5\r\nPSYNC\r\n$1\r\n?\r\n$2\r\n-1\r\n"),
		S("\n\n+FULLRESYNC 8de1787ba490483314a4d30f1c628bc5025eb761 "
		  "14\r\n$4\r\nRDB!*1\r\n"),
		C("*3\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$2\r\n28\r\n"));
	assert_int_equal(r.count, 5);
	assert_int_equal(r.told[1].flags, BS_FRAME_END);
	assert_int_equal(r.told[3].flags, BS_FRAME_HEAD);
	assert_int_equal(r.told[3].until_close, BS_UNTIL_CLOSE);
	assert_string_equal(r.told[4].label, "REPLCONF ACK");
	assert_true(r.told[4].oneway);
	PLAY(C("PSYNC ? -1\r\nPING\r\n"), S("-NOMASTERLINK no\r\n+PONG\r\n"));
	EXPECT_ROLES(ANSWERS, ANSWERS);
	assert_int_equal(r.told[3].flags, whole);
}

static void
expect_bad(bool from_server, const char *text)
{
	struct chunk chunk = {from_server, text, strlen(text)};

	replay_all_cuts(&r, replay_framer("resp"), &chunk, 1);
	assert_true(r.count > 0);
	assert_int_equal(r.told[r.count - 1].flags, BS_FRAME_BAD);
}

static void
test_hostile_counts_are_bad(void **state)
{
	static const char *const requests[] = {"*-2\r\n", "*2147483648\r\n", "*99999999999\r\n",
		"*\r\n", "*1x\r\n", "*1\n", "*1\r\r\n", "*--1\r\n", "*1\r\n$-1\r\n",
		"*1\r\n$4294967296\r\n", "*1\r\n:1\r\n", "*1\r\n*1\r\n", "\x16\x03\x01", "\x80"};
	/* One deeper than is followed. */
	static const char nested[] = "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"
				     "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n";
	static const char *const replies[] = {"*-2\r\n", "$-2\r\n", "$4294967296\r\n",
		"*2147483648\r\n", "%2147483648\r\n", "x", "\r\n", "$?\r\n", "*?\r\n",
		"*1\r\n>1\r\n", "$1\n", nested};

	(void)state;
	for (size_t i = 0; i < COUNT(requests); i++)
		expect_bad(false, requests[i]);
	for (size_t i = 0; i < COUNT(replies); i++)
		expect_bad(true, replies[i]);
}

static void
test_greatest_counts_are_read_on(void **state)
{
	(void)state;
	PLAY(C("*2147483647\r\n$1\r\nx\r\n$4294967295\r\n"), S("%2147483647\r\n+a\r\n"));
	assert_int_equal(r.count, 3);
	assert_int_equal(r.told[0].flags, BS_FRAME_HEAD);
	assert_int_equal(r.told[1].skip, 4294967297);
	assert_int_equal(r.told[2].flags, BS_FRAME_HEAD);
}

static void
test_line_without_end_is_bad_at_its_bound(void **state)
{
	static char line[65537 + 1];
	struct chunk chunk = {false, line, sizeof(line)};

	(void)state;
	memset(line, 'a', sizeof(line));
	replay_run(&r, replay_framer("resp"), &chunk, 1, SIZE_MAX, 0, 0);
	assert_int_equal(r.count, 1);
	assert_int_equal(r.told[0].flags, BS_FRAME_BAD);
	assert_int_equal(r.told[0].at, 65537);
	replay_run(&r, replay_framer("resp"), &chunk, 1, 1, 0, 0);
	assert_int_equal(r.told[0].at, 65537);
}

#define ZEEK "zeek+zeek/testing/btest/Traces/redis/"
#define DEEPFLOW "deepflowio+deepflow/agent/resources/test/flow_generator/redis/"

/* Counts: TRUTH.md, from the repositories' own tests. */
static void
test_captures_have_their_commands_and_replies(void **state)
{
	static const struct {
		const char *name;
		uint16_t port;
		unsigned requests, responses, oneway, errors;
	} captures[] = {
		{ZEEK "pipelining-example.pcap", 6379, 3, 3, 0, 0},
		{ZEEK "pipeline-with-commands.pcap", 6379, 4, 4, 0, 0},
		{ZEEK "excessive-pipelining.pcap", 6379, 12, 12, 0, 0},
		{ZEEK "pipeline-quotes.pcap", 6379, 8, 7, 0, 1},
		{ZEEK "reply-off-on.pcap", 6379, 8, 4, 4, 0},
		{ZEEK "reply-off-on-2conn.pcap", 6379, 6, 2, 4, 0},
		{ZEEK "django-cloud.pcapng", 10625, 158, 158, 0, 0},
		{DEEPFLOW "redis.pcap", 6379, 10, 10, 0, 0},
		{DEEPFLOW "redis-error.pcap", 6379, 1, 1, 0, 1},
		{DEEPFLOW "redis-debug.pcap", 6379, 1, 1, 0, 0},
		{"urso+packetbeat/packetbeat/tests/system/pcaps/redis_one_transaction.pcap", 6380,
			1, 1, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(captures); i++) {
		struct tally t =
			streams_tally(captures[i].name, captures[i].port, replay_framer("resp"));

		assert_int_equal(t.requests, captures[i].requests);
		assert_int_equal(t.responses, captures[i].responses);
		assert_int_equal(t.oneway, captures[i].oneway);
		assert_int_equal(t.errors, captures[i].errors);
		assert_int_equal(t.pushed, 0);
		assert_int_equal(t.bad, 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_command_is_told_once_with_its_last_bulk_as_skip),
		cmocka_unit_test(test_large_argument_is_skipped_and_told_early),
		cmocka_unit_test(test_command_of_many_arguments_is_told_before_they_come),
		cmocka_unit_test(test_label_has_the_subcommand_and_never_an_argument),
		cmocka_unit_test(test_long_and_binary_names_are_bounded_and_printable),
		cmocka_unit_test(test_empty_command_is_no_message),
		cmocka_unit_test(test_replies_of_every_type_end_where_they_end),
		cmocka_unit_test(test_last_bulk_of_a_reply_is_skipped_with_its_end),
		cmocka_unit_test(test_client_reply_makes_commands_oneway),
		cmocka_unit_test(
			test_first_confirmation_answers_the_others_and_messages_are_pushed),
		cmocka_unit_test(test_inline_subscribe_counts_its_words),
		cmocka_unit_test(test_unsubscribe_from_all_is_answered_once),
		cmocka_unit_test(test_refused_subscribe_is_answered_by_its_error),
		cmocka_unit_test(
			test_more_subscribes_in_flight_than_noted_have_one_confirmation_each),
		cmocka_unit_test(test_each_subscribe_has_its_own_confirmations),
		cmocka_unit_test(test_list_that_begins_with_message_answers_who_has_not_subscribed),
		cmocka_unit_test(test_resp3_push_is_pushed_and_its_confirmation_answers),
		cmocka_unit_test(test_monitor_pushes_lines_that_begin_with_a_time),
		cmocka_unit_test(test_replication_stream_never_ends),
		cmocka_unit_test(test_hostile_counts_are_bad),
		cmocka_unit_test(test_greatest_counts_are_read_on),
		cmocka_unit_test(test_line_without_end_is_bad_at_its_bound),
		cmocka_unit_test(test_captures_have_their_commands_and_replies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
