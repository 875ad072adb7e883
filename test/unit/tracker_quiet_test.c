/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that need not be answered must not shift the pairs of others:
 * memcached's noreply and quiet commands; and what is asked again with its ID.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tracker_util.h"

/* One connection on which each side's bytes are counted. */
struct talk {
	struct rig *rig;
	uint32_t at[2];
};

static void
say_bytes(struct talk *talk, unsigned from, uint64_t t, const char *data, uint32_t bytes)
{
	SEND(talk->rig, .from = from, .t = t, .seq = talk->at[from], .ack = talk->at[!from],
		.text = data, .bytes = bytes, .binary = true);
	talk->at[from] += bytes;
	/* The other end's ACK. */
	SEND(talk->rig, .from = !from, .t = t + 50 * US, .seq = talk->at[!from],
		.ack = talk->at[from]);
}

static void
say(struct talk *talk, unsigned from, uint64_t t, const char *text)
{
	say_bytes(talk, from, t, text, (uint32_t)strlen(text));
}

static struct talk
talk_begin(const char *protocol)
{
	struct talk talk = {.rig = rig_start(rig_new(protocol, 11211))};

	rig_handshake(talk.rig, 0);
	return talk;
}

/* The RPC of that label which was told as number `n` of its kind. */
static const struct told *
told_of(const struct rig *rig, const char *label, unsigned n)
{
	for (unsigned i = 0; i < rig->told_count; i++) {
		const struct bs_rec_rpc *rpc = &rig->told[i].rpc;

		if (rpc->label_len == strlen(label) &&
			memcmp(rpc->label, label, rpc->label_len) == 0 && n-- == 0)
			return &rig->told[i];
	}
	fail_msg("no RPC %s", label);
	return NULL;
}

static unsigned
outcomes(const struct rig *rig, unsigned outcome)
{
	unsigned n = 0;

	for (unsigned i = 0; i < rig->told_count; i++)
		n += rig->told[i].rpc.outcome == outcome;
	return n;
}

static void
noreply_is_oneway_and_the_next_is_paired_with_its_own_answer(void **state)
{
	struct talk talk = talk_begin("memcached");

	(void)state;
	say(&talk, CLIENT, 10 * MS, "set k 0 0 1 noreply\r\nx\r\nget k\r\n");
	say(&talk, SERVER, 12 * MS, "VALUE k 0 1\r\nx\r\nEND\r\n");
	say(&talk, CLIENT, 20 * MS, "delete k\r\n");
	say(&talk, SERVER, 25 * MS, "DELETED\r\n");
	assert_int_equal(talk.rig->told_count, 3);
	assert_int_equal(told_of(talk.rig, "set", 0)->rpc.outcome, BS_OUTCOME_ONEWAY);
	assert_int_equal(told_latency(told_of(talk.rig, "get", 0)), 2 * MS);
	assert_int_equal(told_latency(told_of(talk.rig, "delete", 0)), 5 * MS);
	rig_free(talk.rig);
}

static void
quiet_hit_is_answered_and_quiet_misses_are_oneway(void **state)
{
	struct talk talk = talk_begin("memcached");

	(void)state;
	say(&talk, CLIENT, 10 * MS, "mg a v q O1\r\n");
	say(&talk, CLIENT, 11 * MS, "mg b v q O2\r\nmg c v q O3\r\nmn\r\n");
	say(&talk, SERVER, 14 * MS, "VA 1 O2\r\nx\r\nMN\r\n");
	say(&talk, CLIENT, 20 * MS, "mg d v\r\n");
	say(&talk, SERVER, 23 * MS, "EN\r\n");
	assert_int_equal(talk.rig->told_count, 5);
	assert_int_equal(outcomes(talk.rig, BS_OUTCOME_ONEWAY), 2);
	assert_int_equal(outcomes(talk.rig, BS_OUTCOME_ANSWERED), 3);
	/* The first of those sent at 11 ms, not the one at 10 ms. */
	for (unsigned i = 0; i < 3; i++) {
		const struct bs_rec_rpc *rpc = &told_of(talk.rig, "mg", i)->rpc;

		if (rpc->t_request_first == T0 + 10 * MS)
			assert_int_equal(rpc->outcome, BS_OUTCOME_ONEWAY);
		else if (rpc->outcome == BS_OUTCOME_ANSWERED)
			assert_int_equal(rpc->t_response_first, T0 + 14 * MS);
	}
	assert_int_equal(told_latency(told_of(talk.rig, "mn", 0)), 3 * MS);
	rig_free(talk.rig);
}

static void
answer_of_a_kind_that_q_leaves_out_is_of_the_next_command(void **state)
{
	struct talk talk = talk_begin("memcached");

	(void)state;
	/* None of the quiet ones is answered: the HD is of the last. */
	say(&talk, CLIENT, 10 * MS, "ms a 1 q\r\nx\r\n");
	say(&talk, CLIENT, 11 * MS, "md b q\r\nms c 1\r\nx\r\n");
	say(&talk, SERVER, 13 * MS, "HD\r\n");
	/* The first is refused, and says so. */
	say(&talk, CLIENT, 20 * MS, "ms a 1 ME q O7\r\nx\r\n");
	say(&talk, CLIENT, 21 * MS, "ms d 1 q O8\r\nx\r\nmn\r\n");
	say(&talk, SERVER, 24 * MS, "NS O7\r\nMN\r\n");
	/* An error repeats no word. */
	say(&talk, CLIENT, 30 * MS, "ms e x q O9\r\nmn\r\n");
	say(&talk, SERVER, 31 * MS, "CLIENT_ERROR bad command line format\r\nMN\r\n");
	assert_int_equal(outcomes(talk.rig, BS_OUTCOME_ONEWAY), 3);
	assert_int_equal(outcomes(talk.rig, BS_OUTCOME_ANSWERED), 5);
	assert_int_equal(told_of(talk.rig, "md", 0)->rpc.outcome, BS_OUTCOME_ONEWAY);
	assert_int_equal(told_latency(told_of(talk.rig, "mn", 0)), 3 * MS);
	assert_int_equal(rig_counter(talk.rig, BS_TRACK_ORPHANS), 0);
	rig_free(talk.rig);
}

static void
quiet_commands_that_are_never_answered_take_no_more_slots_than_allowed(void **state)
{
	struct talk talk = talk_begin("memcached");
	uint64_t t = 10 * MS;

	(void)state;
	for (unsigned i = 0; i < 200; i++, t += MS)
		say(&talk, CLIENT, t, "ms k 1 q\r\nx\r\n");
	assert_true(talk.rig->told_count >= 200 - 33);
	assert_int_equal(outcomes(talk.rig, BS_OUTCOME_ONEWAY), talk.rig->told_count);
	say(&talk, CLIENT, t, "mn\r\n");
	say(&talk, SERVER, t + 2 * MS, "MN\r\n");
	assert_int_equal(talk.rig->told_count, 201);
	assert_int_equal(told_latency(told_of(talk.rig, "mn", 0)), 2 * MS);
	rig_free(talk.rig);
}

static void
service_owes_no_answer_to_a_quiet_command(void **state)
{
	struct talk talk = talk_begin("memcached");

	(void)state;
	say(&talk, CLIENT, 10 * MS, "md k q\r\n");
	say(&talk, CLIENT, 5000 * MS, "mn\r\n");
	say(&talk, SERVER, 5001 * MS, "MN\r\n");
	assert_int_equal(talk.rig->silence_count, 0);
	assert_int_equal(outcomes(talk.rig, BS_OUTCOME_ONEWAY), 1);
	/* And it is no loss that there was none when the connection ends. */
	say(&talk, CLIENT, 5010 * MS, "md k q\r\n");
	SEND(talk.rig, .from = SERVER, .t = 5020 * MS, .seq = talk.at[SERVER],
		.ack = talk.at[CLIENT], .flags = BS_TCP_RST | BS_TCP_ACK);
	assert_int_equal(talk.rig->told_count, 3);
	assert_int_equal(outcomes(talk.rig, BS_OUTCOME_ONEWAY), 2);
	rig_free(talk.rig);
}

/* Headers as in protocol_binary.h: a key of one byte, then what there is. */
#define HEADER(magic, opcode, key, extras, status, body, opaque)                                   \
	magic opcode "\0" key extras "\0\0" status "\0\0\0" body "\0\0\0" opaque "\0\0\0\0\0\0\0"  \
		     "\0"
#define GETKQ(key, opaque) HEADER("\x80", "\x0d", "\1", "\0", "\0", "\1", opaque) key
#define SETQ(key, opaque)                                                                          \
	HEADER("\x80", "\x11", "\1", "\x8", "\0", "\xa", opaque) "flagsexp" key "v"
#define NOOP(opaque) HEADER("\x80", "\x0a", "\0", "\0", "\0", "\0", opaque)
#define HIT(key, opaque) HEADER("\x81", "\x0d", "\1", "\4", "\0", "\6", opaque) "flag" key "v"
#define SETQ_FAILS(opaque) HEADER("\x81", "\x11", "\0", "\0", "\3", "\2", opaque) "no"
#define NOOP_DONE(opaque) HEADER("\x81", "\x0a", "\0", "\0", "\0", "\0", opaque)
#define SAY(from, t, data) say_bytes(&talk, from, t, data, sizeof(data) - 1)

static void
binary_quiet_commands_are_answered_by_opaque_or_oneway(void **state)
{
	struct talk talk = talk_begin("memcached-binary");

	(void)state;
	SAY(CLIENT, 10 * MS, GETKQ("a", "\1") GETKQ("b", "\2") GETKQ("c", "\3") NOOP("\4"));
	SAY(SERVER, 12 * MS, HIT("b", "\2"));
	SAY(SERVER, 15 * MS, NOOP_DONE("\4"));
	SAY(CLIENT, 20 * MS, SETQ("a", "\5"));
	SAY(CLIENT, 21 * MS, SETQ("b", "\6") NOOP("\7"));
	SAY(SERVER, 24 * MS, SETQ_FAILS("\5") NOOP_DONE("\7"));
	assert_int_equal(talk.rig->told_count, 7);
	assert_int_equal(outcomes(talk.rig, BS_OUTCOME_ONEWAY), 3);
	assert_int_equal(rig_counter(talk.rig, BS_TRACK_ORPHANS), 0);
	for (unsigned i = 0; i < 3; i++) {
		const struct told *told = told_of(talk.rig, "getkq", i);

		if (told->rpc.outcome == BS_OUTCOME_ANSWERED)
			assert_int_equal(told_latency(told), 2 * MS);
	}
	assert_int_equal(told_latency(told_of(talk.rig, "noop", 0)), 5 * MS);
	assert_int_equal(told_latency(told_of(talk.rig, "noop", 1)), 3 * MS);
	for (unsigned i = 0; i < 2; i++) {
		const struct told *told = told_of(talk.rig, "setq", i);

		if (told->rpc.outcome == BS_OUTCOME_ANSWERED)
			assert_int_equal(told_latency(told), 4 * MS);
	}
	rig_free(talk.rig);
}

/* With the opaque left 0, the answer to noop is not taken for that of a getkq. */
static void
binary_client_without_opaques_is_paired_by_opcode(void **state)
{
	struct talk talk = talk_begin("memcached-binary");

	(void)state;
	SAY(CLIENT, 10 * MS, GETKQ("a", "\0") GETKQ("b", "\0"));
	SAY(CLIENT, 11 * MS, NOOP("\0"));
	SAY(SERVER, 12 * MS, NOOP_DONE("\0"));
	SAY(CLIENT, 20 * MS, NOOP("\0"));
	SAY(SERVER, 23 * MS, NOOP_DONE("\0"));
	assert_int_equal(talk.rig->told_count, 4);
	assert_int_equal(outcomes(talk.rig, BS_OUTCOME_ONEWAY), 2);
	assert_int_equal(told_latency(told_of(talk.rig, "noop", 0)), MS);
	assert_int_equal(told_latency(told_of(talk.rig, "noop", 1)), 3 * MS);
	rig_free(talk.rig);
}

static void
client_of_a_memcached_service_speaks_text_or_binary(void **state)
{
	struct talk talk = talk_begin("memcached");
	const struct bs_framer *binary = bs_framers_find(&talk.rig->framers, "memcached-binary");

	(void)state;
	SAY(CLIENT, 10 * MS, NOOP("\1"));
	SAY(SERVER, 12 * MS, NOOP_DONE("\1"));
	talk.rig->client_port++;
	talk.at[CLIENT] = talk.at[SERVER] = 0;
	rig_handshake(talk.rig, 20 * MS);
	say(&talk, CLIENT, 30 * MS, "mn\r\n");
	say(&talk, SERVER, 33 * MS, "MN\r\n");
	assert_int_equal(talk.rig->told_count, 2);
	assert_int_equal(told_of(talk.rig, "noop", 0)->rpc.protocol, binary->protocol);
	assert_int_equal(told_latency(told_of(talk.rig, "noop", 0)), 2 * MS);
	assert_int_not_equal(told_of(talk.rig, "mn", 0)->rpc.protocol, binary->protocol);
	assert_int_equal(told_latency(told_of(talk.rig, "mn", 0)), 3 * MS);
	rig_free(talk.rig);
}

static void
datagrams_of_memcached_pair_by_their_id_up_to_the_last(void **state)
{
#define UDP(id, sequence, total) "\0" id "\0" sequence "\0" total "\0\0"
	static const char first[] = UDP("\1", "\0", "\1") "get a\r\n";
	static const char second[] = UDP("\2", "\0", "\1") "get b\r\n";
	static const char miss[] = UDP("\2", "\0", "\1") "END\r\n";
	static const char part[] = UDP("\1", "\0", "\2") "VALUE a 0 2000\r\nxx";
	static const char rest[] = UDP("\1", "\1", "\2") "xx\r\nEND\r\n";
	struct rig *rig = rig_start(rig_new("memcached", 11211));

	(void)state;
	rig_datagram(rig, CLIENT, 10 * MS, first, sizeof(first) - 1);
	rig_datagram(rig, CLIENT, 11 * MS, second, sizeof(second) - 1);
	rig_datagram(rig, SERVER, 12 * MS, part, sizeof(part) - 1);
	rig_datagram(rig, SERVER, 13 * MS, miss, sizeof(miss) - 1);
	rig_datagram(rig, SERVER, 15 * MS, rest, sizeof(rest) - 1);
	assert_int_equal(rig->told_count, 2);
	assert_int_equal(told_latency(&rig->told[0]), 2 * MS);
	assert_int_equal(told_latency(&rig->told[1]), 5 * MS);
	assert_int_equal(rig_counter(rig, BS_TRACK_ORPHANS), 0);
	rig_free(rig);
}

/* RFC 5531: mark, xid, call, version 2, NFS 3 GETATTR (1), no credentials, no verifier. */
#define ZERO_8 "\0\0\0\0\0\0\0\0"
#define CALL(xid) "xid" xid "\0\0\0\0\0\0\0\2\0\1\x86\xa3\0\0\0\3\0\0\0\1" ZERO_8 ZERO_8
#define REPLY(xid) "xid" xid "\0\0\0\1" ZERO_8 ZERO_8
#define MARK_CALL "\x80\0\0\x28"
#define MARK_REPLY "\x80\0\0\x18"

static void
call_sent_again_with_its_xid_is_one_rpc(void **state)
{
	struct talk talk = talk_begin("sunrpc");

	(void)state;
	SAY(CLIENT, 10 * MS, MARK_CALL CALL("1"));
	SAY(CLIENT, 70 * MS, MARK_CALL CALL("1"));
	SAY(CLIENT, 80 * MS, MARK_CALL CALL("2"));
	SAY(SERVER, 90 * MS, MARK_REPLY REPLY("1") MARK_REPLY REPLY("2"));
	SAY(CLIENT, 100 * MS, MARK_CALL CALL("1")); /* answered: another one */
	SAY(SERVER, 101 * MS, MARK_REPLY REPLY("1"));
	assert_int_equal(talk.rig->told_count, 3);
	assert_int_equal(outcomes(talk.rig, BS_OUTCOME_ANSWERED), 3);
	assert_label(&talk.rig->told[0], "NFS3 GETATTR");
	assert_int_equal(told_latency(&talk.rig->told[0]), 80 * MS);
	assert_int_equal(talk.rig->told[0].rpc.retransmissions, 1);
	assert_int_equal(
		told_ns(&talk.rig->told[0], BS_BUFFER_NET_REQUEST_AFTER, BS_CAUSE_DROP), 0);
	assert_int_equal(told_latency(&talk.rig->told[1]), 10 * MS);
	assert_int_equal(told_latency(&talk.rig->told[2]), MS);
	rig_free(talk.rig);
}

static void
call_sent_again_over_udp_lost_the_first(void **state)
{
	struct rig *rig = rig_start(rig_new("sunrpc", 2049));

	(void)state;
	rig_datagram(rig, CLIENT, 10 * MS, CALL("1"), sizeof(CALL("1")) - 1);
	rig_datagram(rig, CLIENT, 710 * MS, CALL("1"), sizeof(CALL("1")) - 1);
	rig_datagram(rig, SERVER, 712 * MS, REPLY("1"), sizeof(REPLY("1")) - 1);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(told_latency(&rig->told[0]), 702 * MS);
	assert_int_equal(
		told_ns(&rig->told[0], BS_BUFFER_NET_REQUEST_AFTER, BS_CAUSE_DROP), 700 * MS);
	rig_free(rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(noreply_is_oneway_and_the_next_is_paired_with_its_own_answer),
		cmocka_unit_test(quiet_hit_is_answered_and_quiet_misses_are_oneway),
		cmocka_unit_test(answer_of_a_kind_that_q_leaves_out_is_of_the_next_command),
		cmocka_unit_test(
			quiet_commands_that_are_never_answered_take_no_more_slots_than_allowed),
		cmocka_unit_test(service_owes_no_answer_to_a_quiet_command),
		cmocka_unit_test(binary_quiet_commands_are_answered_by_opaque_or_oneway),
		cmocka_unit_test(binary_client_without_opaques_is_paired_by_opcode),
		cmocka_unit_test(client_of_a_memcached_service_speaks_text_or_binary),
		cmocka_unit_test(datagrams_of_memcached_pair_by_their_id_up_to_the_last),
		cmocka_unit_test(call_sent_again_with_its_xid_is_one_rpc),
		cmocka_unit_test(call_sent_again_over_udp_lost_the_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
