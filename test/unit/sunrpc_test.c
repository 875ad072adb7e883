/* SPDX-License-Identifier: BSD-3-Clause */
/* ONC RPC: messages as RFC 5531 sections 9 and 11 write them, NFS of RFC 1813 and RFC 8881. */
#include "capture_streams.h"

static struct replay r;

#define PLAY(...)                                                                                  \
	do {                                                                                       \
		static const struct chunk chunks[] = {__VA_ARGS__};                                \
		replay_all_cuts(&r, replay_framer("sunrpc"), chunks, COUNT(chunks));               \
	} while (0)

static const uint8_t whole_skip = BS_FRAME_HEAD | BS_FRAME_SKIP | BS_FRAME_END;

#define WORD(n) "\0\0\0" n
#define LAST(n) "\x80\0\0" n
#define MORE(n) WORD(n)
#define NFS "\0\1\x86\xa3"
#define MOUNTD "\0\1\x86\xa5"
#define PORTMAP "\0\1\x86\xa0"
#define NO_AUTH WORD("\0") WORD("\0")
/* 40 bytes */
#define CALL(xid, program, version, procedure)                                                     \
	xid WORD("\0") WORD("\2") program WORD(version) WORD(procedure) NO_AUTH NO_AUTH
/* 24 bytes */
#define REPLY(xid, status) xid WORD("\1") WORD("\0") NO_AUTH WORD(status)

static void
test_call_has_xid_and_names_and_its_arguments_are_skipped(void **state)
{
	(void)state;
	PLAY(C(LAST("\x30") CALL("abcd", NFS, "\3", "\6") "argument" LAST("\x28")
			     CALL("\0\0\0\7", MOUNTD, "\3", "\1")),
		S(LAST("\x1c") REPLY("\0\0\0\7", "\0") "body" LAST("\x18") REPLY("abcd", "\3")));
	assert_int_equal(r.count, 4);
	assert_string_equal(r.told[0].label, "NFS3 READ");
	assert_int_equal(r.told[0].role, BS_ROLE_REQUEST);
	assert_int_equal(r.told[0].id, 0x61626364);
	assert_int_equal(r.told[0].flags, whole_skip);
	assert_int_equal(r.told[0].at, 44);
	assert_int_equal(r.told[0].skip, 8);
	assert_string_equal(r.told[1].label, "MOUNT3 MNT");
	assert_int_equal(r.told[1].begin, 52);
	assert_int_equal(r.told[1].flags, BS_FRAME_HEAD | BS_FRAME_END);
	assert_int_equal(r.told[2].role, BS_ROLE_RESPONSE);
	assert_int_equal(r.told[2].id, 7);
	assert_int_equal(r.told[2].status, 0);
	assert_false(r.told[2].error);
	assert_int_equal(r.told[2].skip, 4);
	assert_int_equal(r.told[3].id, 0x61626364);
	assert_int_equal(r.told[3].status, 3); /* PROC_UNAVAIL */
	assert_true(r.told[3].error);
}

/* Fragments end anywhere, also within a word and with nothing in the last. */
static void
test_message_in_fragments_is_one(void **state)
{
	(void)state;
	PLAY(C(MORE("\2") "ab" MORE("\5") "cd\0\0\0" MORE("\x0d") "\0" WORD("\2") NFS WORD("\3")
			MORE("\x15") WORD("\1") NO_AUTH NO_AUTH "a" MORE("\3") "bcd" LAST("\0")
				LAST("\x28") CALL("efgh", NFS, "\3", "\7")));
	assert_int_equal(r.count, 4);
	assert_string_equal(r.told[0].label, "NFS3 GETATTR");
	assert_int_equal(r.told[0].flags, BS_FRAME_HEAD | BS_FRAME_SKIP);
	assert_int_equal(r.told[0].skip, 1);
	assert_int_equal(r.told[1].flags, BS_FRAME_SKIP);
	assert_int_equal(r.told[1].skip, 3);
	assert_int_equal(r.told[2].flags, BS_FRAME_END);
	assert_int_equal(r.told[3].begin, r.told[2].at);
	assert_string_equal(r.told[3].label, "NFS3 WRITE");
}

static void
test_credentials_are_passed_over_and_bounded(void **state)
{
	static char credentials[600];
	struct chunk chunks[] = {C(LAST("\xf0") "abcd" WORD("\0") WORD("\2") NFS WORD("\3")
						 WORD("\3") WORD("\1") WORD("\xbe")),
		{false, credentials, 192},
		C(NO_AUTH "argument" LAST("\x28") CALL("efgh", NFS, "\3", "\7"))};

	(void)state;
	memset(credentials, 'c', sizeof(credentials));
	replay_all_cuts(&r, replay_framer("sunrpc"), chunks, COUNT(chunks));
	assert_int_equal(r.count, 2);
	assert_string_equal(r.told[0].label, "NFS3 LOOKUP");
	assert_int_equal(r.told[0].skip, 8);
	assert_string_equal(r.told[1].label, "NFS3 WRITE");
	chunks[0] = (struct chunk)C("\x80\0\2\0"
				    "abcd" WORD("\0") WORD("\2") NFS WORD("\3") WORD("\3")
					    WORD("\1") "\0\0\1\x91"); /* 401 */
	replay_all_cuts(&r, replay_framer("sunrpc"), chunks, 1);
	assert_int_equal(r.told[r.count - 1].flags, BS_FRAME_BAD);
}

/* Tag "abc", minor version 1. */
#define COMPOUND(n) CALL("abcd", NFS, "\4", "\1") WORD("\3") "abc\0" WORD("\1") WORD(n)
#define SEQUENCE WORD("\x35") "sessionsessionse" WORD("\1") WORD("\0") WORD("\0") WORD("\0")
#define PUTFH WORD("\x16") WORD("\5") "handl\0\0\0"

static void
expect_compound(const char *compound, size_t bytes, const char *label)
{
	uint8_t mark[4] = {0x80, 0, 0, (uint8_t)bytes};
	struct chunk chunks[] = {{false, mark, 4}, {false, compound, bytes}};

	replay_all_cuts(&r, replay_framer("sunrpc"), chunks, 2);
	assert_int_equal(r.count, 1);
	assert_string_equal(r.told[0].label, label);
	assert_true(r.told[0].flags & BS_FRAME_END);
	assert_int_equal(r.told[0].at + r.told[0].skip, 4 + bytes);
}

#define EXPECT_COMPOUND(text, label) expect_compound(text, sizeof(text) - 1, label)

static void
test_compound_is_called_after_what_it_does(void **state)
{
	(void)state;
	EXPECT_COMPOUND(COMPOUND("\3") SEQUENCE PUTFH WORD("\x19") "stateid", "NFS4 READ");
	EXPECT_COMPOUND(COMPOUND("\5") SEQUENCE PUTFH WORD("\x20") PUTFH WORD("\x1d") "rest",
		"NFS4 RENAME");
	EXPECT_COMPOUND(COMPOUND("\3") WORD("\x18") WORD("\x0f") "name", "NFS4 LOOKUP");
	EXPECT_COMPOUND(COMPOUND("\2") SEQUENCE WORD("\x3a") WORD("\0"), "NFS4 RECLAIM_COMPLETE");
	/* Nothing but what chooses: the last of it. */
	EXPECT_COMPOUND(COMPOUND("\1") SEQUENCE, "NFS4 SEQUENCE");
	EXPECT_COMPOUND(COMPOUND("\2") SEQUENCE PUTFH, "NFS4 PUTFH");
	EXPECT_COMPOUND(COMPOUND("\0"), "NFS4 COMPOUND");
	EXPECT_COMPOUND(COMPOUND("\1") WORD("\x7f"), "NFS4 COMPOUND"); /* of a later version */
	EXPECT_COMPOUND(COMPOUND("\2") WORD("\x16") WORD("\x81") "x", "NFS4 PUTFH"); /* too long */
	/* Cut, and a tag that is too long: told without. */
	EXPECT_COMPOUND(CALL("abcd", NFS, "\4", "\1"), "NFS4 COMPOUND");
	EXPECT_COMPOUND(CALL("abcd", NFS, "\4", "\1") "\xff\xff\xff\xff", "NFS4 COMPOUND");
	EXPECT_COMPOUND(CALL("abcd", NFS, "\4", "\0"), "NFS4 NULL");
	/* RPCSEC_GSS: encrypted arguments are not read. */
	EXPECT_COMPOUND("abcd" WORD("\0") WORD("\2") NFS WORD("\4") WORD("\1") WORD("\6")
				WORD("\4") "cred" WORD("\6") WORD("\4") "verf" WORD("\0") WORD("\0")
					WORD("\1") WORD("\x19"),
		"NFS4 COMPOUND");
}

static void
test_programs_have_their_names(void **state)
{
	(void)state;
	PLAY(C(LAST("\x28") CALL("1234", PORTMAP, "\2", "\3") LAST("\x28") CALL("1234", PORTMAP,
		"\4", "\3") LAST("\x28") CALL("1234", "\0\1\x86\xb5", "\4", "\2") LAST("\x28")
			CALL("1234", NFS, "\2", "\x11") LAST("\x28") CALL("1234", NFS, "\3", "\x16")
				LAST("\x28") CALL("1234", "\x20\0\0\1", "\7", "\x0a")));
	assert_int_equal(r.count, 6);
	assert_string_equal(r.told[0].label, "PORTMAP2 GETPORT");
	assert_string_equal(r.told[1].label, "RPCBIND4 GETADDR");
	assert_string_equal(r.told[2].label, "NLM4 LOCK");
	assert_string_equal(r.told[3].label, "NFS2 STATFS");
	assert_string_equal(r.told[4].label, "NFS3 procedure 22");
	assert_string_equal(r.told[5].label, "program 536870913 version 7 procedure 10");
}

static void
test_denied_call_is_an_error(void **state)
{
	(void)state;
	PLAY(S(LAST("\x18") "abcd" WORD("\1") WORD("\1") WORD("\0") WORD("\2") WORD("\2")
			LAST("\x14") "efgh" WORD("\1") WORD("\1") WORD("\1") WORD("\5")));
	assert_int_equal(r.count, 2);
	assert_int_equal(r.told[0].status, -1); /* RPC_MISMATCH */
	assert_true(r.told[0].error);
	assert_int_equal(r.told[1].status, -2); /* AUTH_ERROR */
	assert_true(r.told[1].error);
}

static void
expect_bad(const char *text, size_t bytes)
{
	struct chunk chunk = {false, text, bytes};

	replay_all_cuts(&r, replay_framer("sunrpc"), &chunk, 1);
	assert_true(r.count > 0);
	assert_int_equal(r.told[r.count - 1].flags, BS_FRAME_BAD);
}

#define EXPECT_BAD(text) expect_bad(text, sizeof(text) - 1)

static void
test_nonsense_is_bad(void **state)
{
	(void)state;
	EXPECT_BAD("\0\0\0\0");			    /* a fragment of nothing */
	EXPECT_BAD("\x80\0\0\0");		    /* a message of nothing */
	EXPECT_BAD("GET / HTTP/1.1\r\n");	    /* longer than 1 GiB */
	EXPECT_BAD(LAST("\x28") "abcd" WORD("\2")); /* neither call nor reply */
	EXPECT_BAD(LAST("\x28") "abcd" WORD("\0") WORD("\3"));
	EXPECT_BAD(LAST("\x28") "abcd" WORD("\0") WORD("\2") WORD("\0")); /* no program */
	EXPECT_BAD(LAST("\x10") "abcd" WORD("\0") WORD("\2") NFS);	  /* ends there */
	EXPECT_BAD(LAST("\x18") "abcd" WORD("\1") WORD("\2"));
	EXPECT_BAD(LAST("\x18") REPLY("abcd", "\6"));
}

static bool
datagram(const void *data, size_t bytes, struct bs_frame *frame)
{
	const struct bs_framer *framer = replay_framer("sunrpc");

	memset(frame, 0, sizeof(*frame));
	return framer->ops->datagram_feed(framer, false, data, bytes, frame);
}

#define DATAGRAM(text) datagram(text, sizeof(text) - 1, &frame)

static void
test_datagram_has_no_mark(void **state)
{
	struct bs_frame frame;

	(void)state;
	assert_true(DATAGRAM(CALL("abcd", NFS, "\3", "\7") "data that may be cut"));
	assert_int_equal(frame.role, BS_ROLE_REQUEST);
	assert_int_equal(frame.id, 0x61626364);
	assert_memory_equal(frame.label, "NFS3 WRITE", 10);
	assert_true(DATAGRAM(REPLY("abcd", "\0") "data"));
	assert_int_equal(frame.role, BS_ROLE_RESPONSE);
	assert_false(DATAGRAM("bcd" WORD("\1") WORD("\0") NO_AUTH WORD("\0")));
	assert_false(DATAGRAM(""));
	assert_false(DATAGRAM("abcd" WORD("\0") WORD("\2")));
	assert_false(DATAGRAM("abcd" WORD("\1") WORD("\0") NO_AUTH));
}

#define PACKETBEAT "urso+packetbeat/packetbeat/tests/system/pcaps/"
#define ZEEK "zeek+zeek/testing/btest/Traces/nfs/"

/* Calls over TCP and UDP, by port: tshark (TRUTH.md has their sums: 41 and 56). */
static void
test_captures_have_their_calls_and_replies(void **state)
{
	static const struct {
		const char *name;
		uint16_t port;
		unsigned tcp, udp;
	} captures[] = {
		{PACKETBEAT "nfs4_close.pcap", 2049, 1, 0},
		{PACKETBEAT "nfs_v3.pcap", 2049, 1, 0},
		{PACKETBEAT "nfs_v4.pcap", 2049, 1, 0},
		{ZEEK "nfs_base.pcap", 2049, 36, 0},
		{ZEEK "nfs_base.pcap", 20048, 0, 5},
		{ZEEK "nfs_write.pcap", 2049, 47, 0},
		{ZEEK "nfs_write.pcap", 111, 2, 2},
		{ZEEK "nfs_write.pcap", 20048, 0, 5},
	};
	static struct streams streams;

	(void)state;
	for (size_t i = 0; i < COUNT(captures); i++) {
		struct tally t =
			streams_tally(captures[i].name, captures[i].port, replay_framer("sunrpc"));
		struct bs_frame frame;
		unsigned calls = 0, replies = 0;

		assert_int_equal(t.requests, captures[i].tcp);
		assert_int_equal(t.responses, captures[i].tcp);
		assert_int_equal(t.bad, 0);
		streams_load(&streams, captures[i].name, captures[i].port);
		for (size_t j = 0; j < streams.count; j++) {
			for (size_t k = 0; k < streams.list[j].count && streams.list[j].udp; k++) {
				const struct chunk *chunk = &streams.list[j].chunks[k];

				assert_true(datagram(chunk->data, chunk->bytes, &frame));
				calls += frame.role == BS_ROLE_REQUEST;
				replies += frame.role == BS_ROLE_RESPONSE;
			}
		}
		streams_free(&streams);
		assert_int_equal(calls, captures[i].udp);
		assert_int_equal(replies, captures[i].udp);
	}
}

/* What tshark calls them. */
static void
test_operations_of_captures_have_their_names(void **state)
{
	static const struct {
		const char *name, *label;
	} captures[] = {
		{PACKETBEAT "nfs4_close.pcap", "NFS4 CLOSE"},
		{PACKETBEAT "nfs_v3.pcap", "NFS3 LOOKUP"},
		{PACKETBEAT "nfs_v4.pcap", "NFS4 READDIR"},
	};
	static struct streams streams;

	(void)state;
	for (size_t i = 0; i < COUNT(captures); i++) {
		streams_load(&streams, captures[i].name, 2049);
		replay_all_cuts(
			&r, replay_framer("sunrpc"), streams.list[0].chunks, streams.list[0].count);
		assert_string_equal(r.told[0].label, captures[i].label);
		streams_free(&streams);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_call_has_xid_and_names_and_its_arguments_are_skipped),
		cmocka_unit_test(test_message_in_fragments_is_one),
		cmocka_unit_test(test_credentials_are_passed_over_and_bounded),
		cmocka_unit_test(test_compound_is_called_after_what_it_does),
		cmocka_unit_test(test_programs_have_their_names),
		cmocka_unit_test(test_denied_call_is_an_error),
		cmocka_unit_test(test_nonsense_is_bad),
		cmocka_unit_test(test_datagram_has_no_mark),
		cmocka_unit_test(test_captures_have_their_calls_and_replies),
		cmocka_unit_test(test_operations_of_captures_have_their_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
