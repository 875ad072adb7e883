/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From packets to RPCs: pairs, instants, what is told live of each packet for
 * the shim, outcomes, missing bytes, datagrams. Times are chosen, so expected
 * ones are sums of what is written here.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tracker_util.h"

static void
in_order_exchange_is_one_rpc_with_its_instants(void **state)
{
	struct rig *rig = rig_http();
	const struct told *told = &rig->told[0];

	(void)state;
	rig_handshake(rig, 0);
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .from = SERVER, .t = 11 * MS, .ack = GET);
	SEND(rig, .from = SERVER, .t = 15 * MS, .ack = GET, .text = OK_5);
	assert_int_equal(rig->told_count, 0); /* not yet ACKed */
	assert_int_equal(bs_tracker_open_rpcs(rig->tracker), 1);
	SEND(rig, .t = 16 * MS, .seq = GET, .ack = OK);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(bs_tracker_open_rpcs(rig->tracker), 0);
	assert_int_equal(told->rpc.id, 7ull << 48 | 3ull << 40 | 1);
	assert_int_equal(told->rpc.outcome, BS_OUTCOME_ANSWERED);
	assert_int_equal(told->rpc.t_request_first, T0 + 10 * MS);
	assert_int_equal(told->rpc.t_request_last, T0 + 10 * MS);
	assert_int_equal(told->rpc.t_request_departure, T0 + 10 * MS);
	assert_int_equal(told->rpc.t_response_first, T0 + 15 * MS);
	assert_int_equal(told->rpc.t_response_last, T0 + 15 * MS);
	assert_int_equal(told->rpc.t_response_departure, T0 + 15 * MS);
	assert_int_equal(told->rpc.t_end, T0 + 16 * MS);
	assert_int_equal(told->rpc.connect_ns, MS);
	assert_int_equal(told->rpc.request_bytes, GET);
	assert_int_equal(told->rpc.response_bytes, OK);
	assert_int_equal(told->rpc.status, 200);
	assert_int_equal(told->rpc.service, 0);
	assert_int_equal(told->rpc.messages, 2);
	assert_int_equal(told->rpc.ends.client_port, 40000);
	assert_int_equal(told->rpc.ends.server_port, 80);
	assert_label(told, "GET /a");
	assert_int_equal(told->rpc.segment_count, 1);
	ASSERT_SEGMENT(told, 0, 0, 5 * MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	rig_free(rig);
}

static void
second_rpc_of_a_connection_does_not_tell_the_handshake_again(void **state)
{
	struct rig *rig = rig_http();

	(void)state;
	rig_handshake(rig, 0);
	for (unsigned i = 0; i < 3; i++) {
		SEND(rig, .t = (10 + 10 * i) * MS, .seq = i * GET, .ack = i * OK, .text = GET_A);
		SEND(rig, .from = SERVER, .t = (12 + 10 * i) * MS, .seq = i * OK,
			.ack = (i + 1) * GET, .text = OK_5);
		SEND(rig, .t = (13 + 10 * i) * MS, .seq = (i + 1) * GET, .ack = (i + 1) * OK);
	}
	assert_int_equal(rig->told_count, 3);
	assert_int_equal(rig->told[0].rpc.connect_ns, MS);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(told_latency(&rig->told[i]), 2 * MS);
		assert_int_equal(rig->told[i].rpc.connect_ns, i == 0 ? MS : 0);
		assert_int_equal(rig->told[i].rpc.id & 0xff, i + 1);
	}
	rig_free(rig);
}

static void
pipelined_rpc_waits_for_the_earlier_one(void **state)
{
	struct rig *rig = rig_http();
	const struct told *first = &rig->told[0], *second = &rig->told[1];

	(void)state;
	rig_handshake(rig, 0);
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .t = 11 * MS, .seq = GET, .text = GET_B);
	SEND(rig, .from = SERVER, .t = 20 * MS, .ack = 2 * GET, .text = OK_5);
	SEND(rig, .from = SERVER, .t = 23 * MS, .seq = OK, .ack = 2 * GET, .text = OK_5);
	SEND(rig, .t = 24 * MS, .seq = 2 * GET, .ack = 2 * OK);
	assert_int_equal(rig->told_count, 2);
	assert_label(first, "GET /a");
	assert_int_equal(first->rpc.blocker_id, 0);
	assert_int_equal(told_latency(first), 10 * MS);
	assert_label(second, "GET /b");
	assert_int_equal(second->rpc.blocker_id, first->rpc.id);
	assert_int_equal(second->rpc.t_earlier_finish, T0 + 20 * MS);
	ASSERT_SEGMENT(second, 0, 0, 9 * MS, BS_BUFFER_SERVICE, BS_CAUSE_CONTENTION);
	ASSERT_SEGMENT(second, 1, 9 * MS, 12 * MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	assert_int_equal(second->segments[0].culprit_id, first->rpc.id);
	assert_int_equal(second->rpc.event_count, 1);
	assert_int_equal(second->events[0].type, BS_CAUSE_CONTENTION);
	assert_int_equal(second->events[0].blocking_ns, 9 * MS);
	assert_int_equal(second->events[0].culprit_count, 1);
	assert_int_equal(second->events[0].culprits[0].id, first->rpc.id);
	assert_int_equal(second->rpc.pending, 1);
	rig_free(rig);
}

/* Both in one packet each way: answered within the detection threshold, there is nothing to see. */
static void
pipelined_rpc_is_brief_if_the_earlier_one_was_quick(void **state)
{
	struct rig *rig = rig_http();

	(void)state;
	bs_tracker_threshold(rig->tracker, 0, 50 * MS);
	rig_handshake(rig, 0);
	SEND(rig, .t = 10 * MS, .text = GET_A GET_B);
	SEND(rig, .from = SERVER, .t = 10 * MS + 150 * US, .ack = 2 * GET, .text = OK_5 OK_5);
	SEND(rig, .t = 11 * MS, .seq = 2 * GET, .ack = 2 * OK);
	assert_int_equal(rig->told_count, 0);
	assert_int_equal(rig->brief_count, 2);
	assert_int_equal(rig->briefs[1].service_ns, 150 * US);
	assert_int_equal(rig->briefs[1].request_bytes, GET);
	/* slower: the contention is worth an event */
	SEND(rig, .t = 20 * MS, .seq = 2 * GET, .ack = 2 * OK, .text = GET_A GET_B);
	SEND(rig, .from = SERVER, .t = 21 * MS, .seq = 2 * OK, .ack = 4 * GET, .text = OK_5 OK_5);
	SEND(rig, .t = 22 * MS, .seq = 4 * GET, .ack = 4 * OK);
	assert_int_equal(rig->brief_count, 3);
	assert_int_equal(rig->told_count, 1);
	assert_label(&rig->told[0], "GET /b");
	assert_int_equal(rig->told[0].rpc.event_count, 1);
	rig_free(rig);
}

static void
sampled_rpc_is_told_in_full_and_says_so(void **state)
{
	struct rig *rig = rig_new("http1", 80);

	(void)state;
	rig->config.sample = 3;
	rig_start(rig);
	bs_tracker_threshold(rig->tracker, 0, SEC);
	rig_handshake(rig, 0);
	for (unsigned i = 0; i < 9; i++) {
		SEND(rig, .t = (10 + i) * MS, .seq = i * GET, .ack = i * OK, .text = GET_A);
		SEND(rig, .from = SERVER, .t = (10 + i) * MS + 300 * US, .seq = i * OK,
			.ack = (i + 1) * GET, .text = OK_5);
	}
	SEND(rig, .t = 30 * MS, .seq = 9 * GET, .ack = 9 * OK);
	assert_int_equal(rig->brief_count, 6);
	assert_int_equal(rig->told_count, 3);
	assert_true(rig->told[0].rpc.flags & BS_RPC_SAMPLED);
	rig_free(rig);
}

/* --- what is told of each packet --------------------------------------------- */

static void
message_over_packets_counts_down_what_remains(void **state)
{
	struct rig *rig = rig_http();
	struct bs_tracked tracked;

	(void)state;
	rig_handshake(rig, 0);
	tracked = SEND(rig, .t = 10 * MS, .text = GET_A);
	assert_int_equal(tracked.rpc_id & 0xff, 1);
	assert_int_equal(tracked.remaining, GET);
	assert_int_equal(tracked.new_data, 1);
	assert_int_equal(tracked.more, 0);
	assert_int_equal(tracked.resend, 0);
	assert_int_equal(tracked.direction, 0);
	assert_int_equal(tracked.service, 0);
	assert_non_null(tracked.tagging);
	tracked =
		SEND(rig, .from = SERVER, .t = 11 * MS, .ack = GET, .text = OK_HEAD, .bytes = 1000);
	assert_int_equal(tracked.rpc_id & 0xff, 1);
	assert_int_equal(tracked.remaining, 3000);
	assert_int_equal(tracked.direction, 1);
	tracked = SEND(rig, .from = SERVER, .t = 12 * MS, .seq = 1000, .ack = GET, .bytes = 1400);
	assert_int_equal(tracked.rpc_id & 0xff, 1);
	assert_int_equal(tracked.remaining, 2000);
	assert_int_equal(tracked.new_data, 1);
	tracked = SEND(rig, .from = SERVER, .t = 13 * MS, .seq = 2400, .ack = GET, .bytes = 600);
	assert_int_equal(tracked.remaining, 600);
	SEND(rig, .t = 14 * MS, .seq = GET, .ack = 3000);
	assert_int_equal(rig->told_count, 1);
	ASSERT_SEGMENT(&rig->told[0], 0, 0, MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	ASSERT_SEGMENT(
		&rig->told[0], 1, MS, 3 * MS, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_TRANSFER);
	rig_free(rig);
}

static void
packet_of_several_messages_names_the_first_and_says_more(void **state)
{
	struct rig *rig = rig_http();
	struct bs_tracked tracked;

	(void)state;
	rig_handshake(rig, 0);
	/* half of A */
	tracked = SEND(rig, .t = 10 * MS, .text = "GET /a HTTP/1.1\r\n");
	/* rest of A, all of B, half of C */
	tracked = SEND(rig, .t = 11 * MS, .seq = 17, .text = "Host: h\r\n\r\n" GET_B "GET /c H");
	assert_int_equal(tracked.remaining, 11);
	assert_int_equal(tracked.more, 1);
	assert_int_equal(tracked.rpc_id & 0xff, 1);
	tracked = SEND(rig, .t = 12 * MS, .seq = 2 * GET + 8, .text = "TTP/1.1\r\nHost: h\r\n\r\n");
	assert_int_equal(tracked.rpc_id & 0xff, 3);
	assert_int_equal(tracked.remaining, GET - 8);
	assert_int_equal(tracked.more, 0);
	SEND(rig, .from = SERVER, .t = 13 * MS, .ack = 3 * GET, .text = OK_5 OK_5 OK_5);
	assert_int_equal(rig->tracked.more, 1);
	assert_int_equal(rig->tracked.remaining, OK);
	assert_int_equal(rig->tracked.rpc_id & 0xff, 1);
	SEND(rig, .t = 14 * MS, .seq = 3 * GET, .ack = 3 * OK);
	assert_int_equal(rig->told_count, 3);
	assert_int_equal(rig->told[0].rpc.t_request_first, T0 + 10 * MS);
	assert_int_equal(rig->told[0].rpc.t_request_last, T0 + 11 * MS);
	assert_int_equal(rig->told[1].rpc.t_request_first, T0 + 11 * MS);
	assert_int_equal(rig->told[2].rpc.t_request_last, T0 + 12 * MS);
	rig_free(rig);
}

/* Every way of cutting the streams gives the RPCs of the uncut ones; instants follow the cuts. */
static void
messages_cut_anywhere_give_the_same_rpcs(void **state)
{
	const char *requests = GET_A GET_B, *responses = OK_5 OK_5;
	char piece[128];

	(void)state;
	for (uint32_t size = 1; size <= 2 * OK; size++) {
		struct rig *rig = rig_http();
		uint64_t t = 10 * MS;

		rig_handshake(rig, 0);
		for (uint32_t at = 0; at < 2 * GET; at += size, t += US) {
			snprintf(piece, sizeof(piece), "%.*s", (int)size, requests + at);
			SEND(rig, .t = t, .seq = at, .text = piece);
		}
		for (uint32_t at = 0; at < 2 * OK; at += size, t += US) {
			snprintf(piece, sizeof(piece), "%.*s", (int)size, responses + at);
			SEND(rig, .from = SERVER, .t = t, .seq = at, .ack = 2 * GET, .text = piece);
		}
		SEND(rig, .t = t, .seq = 2 * GET, .ack = 2 * OK);
		assert_int_equal(rig->told_count, 2);
		for (unsigned i = 0; i < 2; i++) {
			const struct bs_rec_rpc *rpc = &rig->told[i].rpc;
			uint64_t first = i * GET / size, last = ((i + 1) * GET - 1) / size;

			assert_label(&rig->told[i], i == 0 ? "GET /a" : "GET /b");
			assert_int_equal(rpc->request_bytes, GET);
			assert_int_equal(rpc->response_bytes, OK);
			assert_int_equal(rpc->t_request_first, T0 + 10 * MS + first * US);
			assert_int_equal(rpc->t_request_last, T0 + 10 * MS + last * US);
			assert_int_equal(rpc->capture_gaps, 0);
		}
		rig_free(rig);
	}
}

static void
id_that_the_first_message_brought_is_adopted_for_it_alone(void **state)
{
	struct rig *rig = rig_http();
	struct bs_tracked tracked;

	(void)state;
	rig_handshake(rig, 0);
	tracked = SEND(rig, .t = 10 * MS, .text = GET_A GET_B, .shim_id = 0xabcdef0123456789);
	assert_true(tracked.rpc_id == 0xabcdef0123456789);
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = 2 * GET, .text = OK_5 OK_5);
	SEND(rig, .t = 13 * MS, .seq = 2 * GET, .ack = 2 * OK);
	assert_true(rig->told[0].rpc.id == 0xabcdef0123456789);
	assert_true(rig->told[0].rpc.flags & BS_RPC_TAGGED);
	assert_true(rig->told[1].rpc.id == (7ull << 48 | 3ull << 40 | 1));
	assert_false(rig->told[1].rpc.flags & BS_RPC_TAGGED);
	/* a packet that begins within a message brings the ID of that one, which has its own */
	SEND(rig, .t = 20 * MS, .seq = 2 * GET, .ack = 2 * OK, .text = "GET /a HTTP/1.1\r\n");
	SEND(rig, .t = 21 * MS, .seq = 2 * GET + 17, .ack = 2 * OK, .text = "Host: h\r\n\r\n" GET_B,
		.shim_id = 0x77);
	SEND(rig, .from = SERVER, .t = 22 * MS, .seq = 2 * OK, .ack = 4 * GET, .text = OK_5 OK_5);
	SEND(rig, .t = 23 * MS, .seq = 4 * GET, .ack = 4 * OK);
	assert_int_equal(rig->told_count, 4);
	assert_int_not_equal(rig->told[3].rpc.id, 0x77);
	rig_free(rig);
}

/* In a capture; live an ID that was told to others stays (own_buffers). */
static void
id_that_a_response_brought_names_an_rpc_whose_request_had_none(void **state)
{
	(void)state;
	for (unsigned opaque = 0; opaque < 2; opaque++) {
		struct rig *rig = rig_start(rig_new(opaque ? "opaque" : "http1", 80));

		rig_handshake(rig, 0);
		SEND(rig, .t = 10 * MS, .text = GET_A);
		SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = OK_5, .shim_id = 0x77);
		SEND(rig, .t = 13 * MS, .seq = GET, .ack = OK, .text = GET_A, .shim_id = 0x88);
		SEND(rig, .from = SERVER, .t = 15 * MS, .seq = OK, .ack = 2 * GET, .text = OK_5,
			.shim_id = 0x99);
		SEND(rig, .t = 16 * MS, .seq = 2 * GET, .ack = 2 * OK);
		bs_tracker_finish(rig->tracker, T0 + 20 * MS);
		assert_int_equal(rig->told_count, 2);
		for (unsigned i = 0; i < 2; i++) {
			assert_true(rig->told[i].rpc.id == (i == 0 ? 0x77 : 0x88));
			assert_true(rig->told[i].rpc.flags & BS_RPC_TAGGED);
		}
		rig_free(rig);
	}
}

/* --- outcomes ------------------------------------------------------------------ */

static void
oneway_request_is_told_without_an_answer_and_does_not_shift_the_next(void **state)
{
	struct rig *rig = rig_start(rig_new("resp", 6379));
	const char off[] = "*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$4\r\nSKIP\r\n";
	const char set[] = "*1\r\n$4\r\nINCR\r\n", ping[] = "*1\r\n$4\r\nPING\r\n";
	uint32_t a = sizeof(off) - 1, b = sizeof(set) - 1, c = sizeof(ping) - 1;

	(void)state;
	rig_handshake(rig, 0);
	/* CLIENT REPLY SKIP: neither it nor the next command is answered */
	SEND(rig, .t = 10 * MS, .text = off);
	SEND(rig, .t = 11 * MS, .seq = a, .text = set);
	SEND(rig, .t = 12 * MS, .seq = a + b, .text = ping);
	SEND(rig, .from = SERVER, .t = 15 * MS, .ack = a + b + c, .text = "+PONG\r\n");
	SEND(rig, .t = 16 * MS, .seq = a + b + c, .ack = 7);
	assert_int_equal(rig->told_count, 3);
	assert_int_equal(rig->told[0].rpc.outcome, BS_OUTCOME_ONEWAY);
	assert_int_equal(rig->told[1].rpc.outcome, BS_OUTCOME_ONEWAY);
	assert_int_equal(rig->told[2].rpc.outcome, BS_OUTCOME_ANSWERED);
	assert_label(&rig->told[2], "PING");
	assert_int_equal(told_latency(&rig->told[2]), 3 * MS);
	rig_free(rig);
}

static void
interim_responses_are_counted_and_the_final_one_ends_the_rpc(void **state)
{
	struct rig *rig = rig_http();
	const char head[] =
		"POST /p HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n";
	uint32_t n = sizeof(head) - 1, interim = 25;

	(void)state;
	rig_handshake(rig, 0);
	SEND(rig, .t = 10 * MS, .text = head);
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = n, .text = "HTTP/1.1 100 Continue\r\n\r\n");
	SEND(rig, .t = 14 * MS, .seq = n, .ack = interim, .bytes = 10);
	SEND(rig, .from = SERVER, .t = 20 * MS, .seq = interim, .ack = n + 10, .text = OK_5);
	SEND(rig, .t = 21 * MS, .seq = n + 10, .ack = interim + OK);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(rig->told[0].rpc.interim_responses, 1);
	assert_int_equal(rig->told[0].rpc.status, 200);
	assert_int_equal(told_latency(&rig->told[0]), 10 * MS);
	assert_int_equal(rig->told[0].rpc.flags & BS_RPC_RESPONSE_EARLY, 0);
	ASSERT_SEGMENT(
		&rig->told[0], 0, 0, 4 * MS, BS_BUFFER_NET_REQUEST_BEFORE, BS_CAUSE_TRANSFER);
	ASSERT_SEGMENT(&rig->told[0], 1, 4 * MS, 10 * MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	rig_free(rig);
}

static void
early_answer_is_flagged_and_ends_with_the_response(void **state)
{
	struct rig *rig = rig_http();
	const char head[] = "POST /p HTTP/1.1\r\nContent-Length: 2000\r\n\r\n";
	uint32_t n = sizeof(head) - 1;

	(void)state;
	rig_handshake(rig, 0);
	SEND(rig, .t = 10 * MS, .text = head, .bytes = n + 1000);
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = n + 1000, .text = OK_5);
	SEND(rig, .t = 14 * MS, .seq = n + 1000, .ack = OK, .bytes = 1000);
	assert_int_equal(rig->told_count, 1);
	assert_true(rig->told[0].rpc.flags & BS_RPC_RESPONSE_EARLY);
	assert_int_equal(rig->told[0].rpc.outcome, BS_OUTCOME_ANSWERED);
	assert_int_equal(told_latency(&rig->told[0]), 2 * MS);
	assert_int_equal(rig->told[0].rpc.request_bytes, n + 2000);
	rig_free(rig);
}

static void
reset_ends_what_is_open(void **state)
{
	struct rig *rig = rig_http();
	struct bs_rec_service counters;

	(void)state;
	rig_handshake(rig, 0);
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = OK_5);
	SEND(rig, .t = 13 * MS, .seq = GET, .text = GET_B); /* the answer is not ACKed yet */
	SEND(rig, .from = SERVER, .t = 30 * MS, .seq = OK, .ack = 2 * GET,
		.flags = BS_TCP_RST | BS_TCP_ACK, .window_zero = true);
	assert_int_equal(rig->told_count, 2);
	assert_int_equal(rig->told[0].rpc.outcome, BS_OUTCOME_ANSWERED);
	assert_int_equal(rig->told[1].rpc.outcome, BS_OUTCOME_RESET);
	assert_int_equal(bs_rpc_extent_ns(&rig->told[1].rpc), 17 * MS);
	ASSERT_SEGMENT(&rig->told[1], 0, 0, 17 * MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	bs_tracker_service_counters(rig->tracker, 0, &counters);
	assert_int_equal(counters.rpcs, 2);
	assert_int_equal(counters.answered, 1);
	assert_int_equal(counters.reset_, 1);
	assert_int_equal(counters.in_progress, 0);
	rig_free(rig);
}

static void
response_until_close_ends_with_fin_and_not_with_reset(void **state)
{
	const char head[] = "HTTP/1.0 200 OK\r\n\r\n";
	uint32_t n = sizeof(head) - 1;

	(void)state;
	for (unsigned reset = 0; reset < 2; reset++) {
		struct rig *rig = rig_http();

		rig_handshake(rig, 0);
		SEND(rig, .t = 10 * MS, .text = GET_A);
		SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = head, .bytes = n + 100);
		SEND(rig, .from = SERVER, .t = 15 * MS, .seq = n + 100, .ack = GET, .bytes = 100);
		SEND(rig, .from = SERVER, .t = 16 * MS, .seq = n + 200, .ack = GET,
			.flags = (reset ? BS_TCP_RST : BS_TCP_FIN) | BS_TCP_ACK);
		SEND(rig, .t = 17 * MS, .seq = GET, .ack = n + 201);
		assert_int_equal(rig->told_count, 1);
		assert_int_equal(
			rig->told[0].rpc.outcome, reset ? BS_OUTCOME_RESET : BS_OUTCOME_ANSWERED);
		assert_int_equal(rig->told[0].rpc.response_bytes, reset ? 0 : n + 200);
		rig_free(rig);
	}
}

/* What follows 101 is another protocol: the RPC is the agreement on it. */
static void
upgrade_ends_with_its_response(void **state)
{
	struct rig *rig = connected();
	const char head[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n";
	uint32_t n = sizeof(head) - 1;

	(void)state;
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .from = SERVER, .t = 13 * MS, .ack = GET, .text = head, .bytes = n + 100);
	SEND(rig, .t = 14 * MS, .seq = GET, .ack = n + 100, .text = GET_B);
	SEND(rig, .from = SERVER, .t = 50 * SEC, .seq = n + 100, .ack = 2 * GET, .text = OK_5);
	SEND(rig, .t = 51 * SEC, .seq = 2 * GET, .ack = n + 100 + OK);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(told_latency(&rig->told[0]), 3 * MS);
	assert_int_equal(rig->told[0].rpc.response_bytes, n);
	rig_free(rig);
}

/* Q02: the last answer was complete long before the connection was closed. */
static void
close_after_idling_does_not_lengthen_the_last_answer(void **state)
{
	(void)state;
	for (unsigned opaque = 0; opaque < 2; opaque++) {
		struct rig *rig = rig_start(rig_new(opaque ? "opaque" : "http1", 80));

		rig_handshake(rig, 0);
		SEND(rig, .t = 10 * MS, .text = GET_A);
		SEND(rig, .from = SERVER, .t = 15 * MS, .ack = GET, .text = OK_5);
		SEND(rig, .t = 16 * MS, .seq = GET, .ack = OK);
		SEND(rig, .from = SERVER, .t = 50 * SEC, .seq = OK, .ack = GET,
			.flags = BS_TCP_FIN | BS_TCP_ACK);
		SEND(rig, .t = 50 * SEC + MS, .seq = GET, .ack = OK + 1,
			.flags = BS_TCP_FIN | BS_TCP_ACK);
		assert_int_equal(rig->told_count, 1);
		assert_int_equal(told_latency(&rig->told[0]), 5 * MS);
		rig_free(rig);
	}
}

static void
unanswered_and_open_rpcs_are_told_with_their_age(void **state)
{
	struct rig *rig = rig_http();

	(void)state;
	rig_handshake(rig, 0);
	SEND(rig, .t = 10 * MS, .text = GET_A);
	bs_tracker_finish(rig->tracker, T0 + 40 * MS);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(rig->told[0].rpc.outcome, BS_OUTCOME_IN_PROGRESS);
	assert_int_equal(bs_rpc_extent_ns(&rig->told[0].rpc), 30 * MS);
	assert_int_equal(bs_tracker_flows(rig->tracker), 0);
	rig_free(rig);

	rig = rig_http();
	rig_handshake(rig, 0);
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .t = 11 * MS, .seq = GET, .flags = BS_TCP_FIN | BS_TCP_ACK);
	SEND(rig, .from = SERVER, .t = 20 * MS, .ack = GET + 1, .flags = BS_TCP_FIN | BS_TCP_ACK);
	bs_tracker_finish(rig->tracker, T0 + 40 * SEC);
	assert_int_equal(rig->told[0].rpc.outcome, BS_OUTCOME_UNANSWERED);
	assert_int_equal(
		bs_rpc_extent_ns(&rig->told[0].rpc), 10 * MS); /* it ended with the connection */
	rig_free(rig);
}

static void
response_that_nobody_asked_for_is_an_orphan(void **state)
{
	struct rig *rig = rig_http();

	(void)state;
	rig_handshake(rig, 0);
	SEND(rig, .from = SERVER, .t = 10 * MS, .text = "HTTP/1.1 200 OK\r\nCont");
	SEND(rig, .from = SERVER, .t = 12 * MS, .seq = 21, .text = "ent-Length: 0\r\n\r\n");
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(rig->told[0].rpc.outcome, BS_OUTCOME_ORPHAN_RESPONSE);
	assert_int_equal(rig->told[0].rpc.t_request_first, 0);
	assert_int_equal(rig->told[0].rpc.t_response_first, T0 + 10 * MS);
	ASSERT_SEGMENT(
		&rig->told[0], 0, 0, 2 * MS, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_TRANSFER);
	assert_int_equal(rig_counter(rig, BS_TRACK_ORPHANS), 1);
	rig_free(rig);
}

/* --- silence ------------------------------------------------------------------- */

static void
service_that_gives_no_byte_while_rpcs_are_open_is_silent(void **state)
{
	struct rig *rig = rig_http();
	struct bs_tracker_silence silence;

	(void)state;
	rig_handshake(rig, 0);
	SEND(rig, .t = 10 * MS, .text = GET_A);
	rig->client_port = 40001;
	rig_handshake(rig, 20 * MS);
	SEND(rig, .t = 30 * MS, .text = GET_B);
	bs_tracker_silence(rig->tracker, 0, &silence);
	assert_int_equal(silence.pending, 2);
	assert_int_equal(silence.t_since, T0 + 10 * MS);
	SEND(rig, .from = SERVER, .t = 1020 * MS, .ack = GET, .text = OK_5);
	assert_int_equal(rig->silence_count, 1);
	assert_int_equal(rig->silences[0].t_begin, T0 + 10 * MS);
	assert_int_equal(rig->silences[0].t_end, T0 + 1020 * MS);
	assert_int_equal(rig->silences[0].pending, 2);
	assert_int_equal(rig->silences[0].mover_id & 0xff, 2);
	bs_tracker_silence(rig->tracker, 0, &silence);
	assert_int_equal(silence.pending, 1);
	assert_int_equal(silence.t_since, T0 + 1020 * MS);
	/* shorter than the threshold: nothing */
	rig->client_port = 40000;
	SEND(rig, .from = SERVER, .t = 2000 * MS, .ack = GET, .text = OK_5);
	assert_int_equal(rig->silence_count, 1);
	rig_free(rig);
}

static unsigned
waiting_ports(const struct rig *rig, uint16_t ports[BS_TRACKER_WAITING], uint32_t *flows)
{
	struct bs_tracker_waiting waiting;

	bs_tracker_waiting(rig->tracker, 0, &waiting);
	for (unsigned i = 0; i < waiting.count; i++) {
		assert_int_equal(waiting.ends[i].server_port, 80);
		assert_int_equal(waiting.ends[i].transport, 6);
		ports[i] = waiting.ends[i].client_port;
	}
	*flows = waiting.flows;
	return waiting.count;
}

static void
connections_that_wait_are_told_until_they_are_answered(void **state)
{
	struct rig *rig = rig_http();
	uint16_t ports[BS_TRACKER_WAITING];
	uint32_t flows;

	(void)state;
	rig_handshake(rig, 0);
	assert_int_equal(waiting_ports(rig, ports, &flows), 0);
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .t = 11 * MS, .seq = GET, .text = GET_C); /* the same connection */
	rig->client_port = 40001;
	rig_handshake(rig, 20 * MS);
	SEND(rig, .t = 30 * MS, .text = GET_B);
	assert_int_equal(waiting_ports(rig, ports, &flows), 2);
	assert_int_equal(flows, 2);
	assert_int_equal(ports[0], 40000);
	assert_int_equal(ports[1], 40001);
	SEND(rig, .from = SERVER, .t = 40 * MS, .ack = GET, .text = OK_5);
	assert_int_equal(waiting_ports(rig, ports, &flows), 1);
	assert_int_equal(ports[0], 40000);
	rig->client_port = 40000;
	SEND(rig, .from = SERVER, .t = 50 * MS, .ack = 2 * GET, .text = OK_5);
	assert_int_equal(waiting_ports(rig, ports, &flows), 1); /* for its second answer */
	SEND(rig, .from = SERVER, .t = 60 * MS, .seq = OK, .ack = 2 * GET, .text = OK_5);
	assert_int_equal(waiting_ports(rig, ports, &flows), 0);
	assert_int_equal(flows, 0);
	rig_free(rig);
}

static void
of_many_connections_that_wait_the_last_are_told_and_all_counted(void **state)
{
	struct rig *rig = rig_http();
	uint16_t ports[BS_TRACKER_WAITING];
	uint32_t flows;
	unsigned sum = 0;

	(void)state;
	for (unsigned i = 0; i < 11; i++) {
		rig->client_port = (uint16_t)(41000 + i);
		rig_handshake(rig, i * MS);
		SEND(rig, .t = i * MS + MS / 2, .text = GET_A);
	}
	assert_int_equal(waiting_ports(rig, ports, &flows), 8);
	assert_int_equal(flows, 11);
	for (unsigned i = 0; i < 8; i++)
		sum += ports[i] - 41000u;
	assert_int_equal(sum, 3 + 4 + 5 + 6 + 7 + 8 + 9 + 10);
	rig_free(rig);
}

/* A turn that was answered stays open until the next; the service owes nothing meanwhile. */
static void
answered_turn_that_idles_is_no_silence(void **state)
{
	struct rig *rig = rig_start(rig_new("opaque", 80));

	(void)state;
	rig_handshake(rig, 0);
	SEND(rig, .t = 10 * MS, .bytes = 50);
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = 50, .bytes = 60);
	SEND(rig, .t = 20 * SEC, .seq = 50, .ack = 60, .bytes = 50);
	SEND(rig, .from = SERVER, .t = 20 * SEC + MS, .seq = 60, .ack = 100, .bytes = 60);
	assert_int_equal(rig->silence_count, 0);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(told_latency(&rig->told[0]), 2 * MS);
	rig_free(rig);
}

static void
turns_pair_bytes_one_way_with_bytes_the_other(void **state)
{
	struct rig *rig = rig_start(rig_new("opaque", 80));

	(void)state;
	rig_handshake(rig, 0);
	SEND(rig, .from = SERVER, .t = 5 * MS, .bytes = 10); /* a greeting is no answer */
	SEND(rig, .t = 10 * MS, .ack = 10, .bytes = 50);
	SEND(rig, .t = 11 * MS, .seq = 50, .ack = 10, .bytes = 50);
	SEND(rig, .from = SERVER, .t = 14 * MS, .seq = 10, .ack = 100, .bytes = 60);
	SEND(rig, .from = SERVER, .t = 17 * MS, .seq = 70, .ack = 100, .bytes = 60);
	SEND(rig, .t = 30 * MS, .seq = 100, .ack = 130, .bytes = 50);
	SEND(rig, .from = SERVER, .t = 33 * MS, .seq = 130, .ack = 150, .bytes = 60);
	bs_tracker_finish(rig->tracker, T0 + 90 * MS);
	assert_int_equal(rig->told_count, 2);
	ASSERT_SEGMENT(&rig->told[0], 0, 0, MS, BS_BUFFER_NET_REQUEST_BEFORE, BS_CAUSE_TRANSFER);
	ASSERT_SEGMENT(&rig->told[0], 1, MS, 4 * MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	ASSERT_SEGMENT(
		&rig->told[0], 2, 4 * MS, 7 * MS, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_TRANSFER);
	assert_int_equal(rig->told[0].rpc.request_bytes, 100);
	assert_int_equal(rig->told[0].rpc.response_bytes, 120);
	assert_int_equal(rig->told[1].rpc.outcome, BS_OUTCOME_ANSWERED);
	assert_int_equal(told_latency(&rig->told[1]), 3 * MS);
	rig_free(rig);
}

/* --- datagrams ------------------------------------------------------------------- */

#define DNS(id, flags, name) id flags "\0\1\0\0\0\0\0\0\3" name "\0\0\1\0\1"
#define QUERY(id, name) DNS(id, "\1\0", name)
#define ANSWER(id, name) DNS(id, "\x81\x80", name)
#define DNS_BYTES (12u + 5u + 4u)

static void
query_asked_again_is_one_rpc_and_other_questions_are_their_own(void **state)
{
	struct rig *rig = rig_start(rig_new("dns", 53));

	(void)state;
	rig_datagram(rig, CLIENT, 10 * MS, QUERY("\0\7", "abc"), DNS_BYTES);
	assert_int_equal(rig->tracked.remaining, DNS_BYTES);
	rig_datagram(rig, CLIENT, 2010 * MS, QUERY("\0\7", "abc"), DNS_BYTES);
	assert_int_equal(rig->tracked.resend, 1);
	rig_datagram(
		rig, CLIENT, 2011 * MS, QUERY("\0\7", "xyz"), DNS_BYTES); /* same ID by chance */
	rig_datagram(rig, SERVER, 2013 * MS, ANSWER("\0\7", "abc"), DNS_BYTES);
	rig_datagram(rig, SERVER, 2016 * MS, ANSWER("\0\7", "xyz"), DNS_BYTES);
	rig_datagram(rig, SERVER, 2017 * MS, ANSWER("\0\7", "xyz"), DNS_BYTES);
	assert_int_equal(rig->told_count, 3);
	assert_label(&rig->told[0], "A abc");
	assert_int_equal(rig->told[0].rpc.retransmissions, 1);
	assert_int_equal(told_latency(&rig->told[0]), 2003 * MS);
	ASSERT_SEGMENT(&rig->told[0], 0, 0, 2000 * MS, BS_BUFFER_NET_REQUEST_AFTER, BS_CAUSE_DROP);
	ASSERT_SEGMENT(&rig->told[0], 1, 2000 * MS, 2003 * MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	assert_label(&rig->told[1], "A xyz");
	assert_int_equal(told_latency(&rig->told[1]), 5 * MS);
	assert_int_equal(rig->told[2].rpc.outcome, BS_OUTCOME_ORPHAN_RESPONSE);
	assert_int_equal(rig_counter(rig, BS_TRACK_RETRANSMISSIONS), 1);
	rig_free(rig);
}

static void
answers_out_of_order_pair_by_id_and_copies_of_the_capture_are_none(void **state)
{
	struct rig *rig = rig_start(rig_new("dns", 53));

	(void)state;
	rig_datagram(rig, CLIENT, 10 * MS, QUERY("\0\1", "aaa"), DNS_BYTES);
	rig->ip_id[CLIENT]--;
	rig_datagram(rig, CLIENT, 10 * MS + 5 * US, QUERY("\0\1", "aaa"), DNS_BYTES);
	rig_datagram(rig, CLIENT, 11 * MS, QUERY("\0\2", "bbb"), DNS_BYTES);
	rig_datagram(rig, SERVER, 12 * MS, ANSWER("\0\2", "bbb"), DNS_BYTES);
	rig_datagram(rig, SERVER, 19 * MS, ANSWER("\0\1", "aaa"), DNS_BYTES);
	rig->ip_id[SERVER]--;
	rig_datagram(rig, SERVER, 19 * MS + 5 * US, ANSWER("\0\1", "aaa"), DNS_BYTES);
	assert_int_equal(rig->told_count, 2);
	assert_label(&rig->told[0], "A bbb");
	assert_int_equal(told_latency(&rig->told[0]), MS);
	assert_int_equal(told_latency(&rig->told[1]), 9 * MS);
	assert_int_equal(rig->told[1].rpc.retransmissions, 0);
	assert_int_equal(rig_counter(rig, BS_TRACK_DUPLICATES), 2);
	rig_free(rig);
}

/* More than a walk's worth of queries that nobody answers must not hide those that are. */
static void
many_unanswered_queries_do_not_hold_up_the_answered(void **state)
{
	struct rig *rig = rig_new("dns", 53);
	char query[] = QUERY("\0\0", "abc"), answer[] = ANSWER("\0\0", "abc");

	(void)state;
	rig->config.max_rpcs = 2048;
	rig_start(rig);
	for (unsigned i = 0; i < 300; i++) {
		query[0] = (char)(i >> 8);
		query[1] = (char)i;
		rig_datagram(rig, CLIENT, (10 + i) * MS, query, DNS_BYTES);
	}
	for (unsigned i = 200; i < 300; i++) {
		answer[0] = (char)(i >> 8);
		answer[1] = (char)i;
		rig_datagram(rig, SERVER, (500 + i) * MS, answer, DNS_BYTES);
		assert_int_equal(rig->told_count, i - 199);
		assert_int_equal(told_latency(&rig->told[i - 200]), 490 * MS);
	}
	bs_tracker_finish(rig->tracker, T0 + SEC);
	assert_int_equal(rig->told_count, 300);
	rig_free(rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_order_exchange_is_one_rpc_with_its_instants),
		cmocka_unit_test(second_rpc_of_a_connection_does_not_tell_the_handshake_again),
		cmocka_unit_test(pipelined_rpc_waits_for_the_earlier_one),
		cmocka_unit_test(pipelined_rpc_is_brief_if_the_earlier_one_was_quick),
		cmocka_unit_test(sampled_rpc_is_told_in_full_and_says_so),
		cmocka_unit_test(message_over_packets_counts_down_what_remains),
		cmocka_unit_test(packet_of_several_messages_names_the_first_and_says_more),
		cmocka_unit_test(messages_cut_anywhere_give_the_same_rpcs),
		cmocka_unit_test(id_that_the_first_message_brought_is_adopted_for_it_alone),
		cmocka_unit_test(id_that_a_response_brought_names_an_rpc_whose_request_had_none),
		cmocka_unit_test(
			oneway_request_is_told_without_an_answer_and_does_not_shift_the_next),
		cmocka_unit_test(interim_responses_are_counted_and_the_final_one_ends_the_rpc),
		cmocka_unit_test(early_answer_is_flagged_and_ends_with_the_response),
		cmocka_unit_test(reset_ends_what_is_open),
		cmocka_unit_test(response_until_close_ends_with_fin_and_not_with_reset),
		cmocka_unit_test(upgrade_ends_with_its_response),
		cmocka_unit_test(close_after_idling_does_not_lengthen_the_last_answer),
		cmocka_unit_test(unanswered_and_open_rpcs_are_told_with_their_age),
		cmocka_unit_test(response_that_nobody_asked_for_is_an_orphan),
		cmocka_unit_test(service_that_gives_no_byte_while_rpcs_are_open_is_silent),
		cmocka_unit_test(connections_that_wait_are_told_until_they_are_answered),
		cmocka_unit_test(of_many_connections_that_wait_the_last_are_told_and_all_counted),
		cmocka_unit_test(answered_turn_that_idles_is_no_silence),
		cmocka_unit_test(turns_pair_bytes_one_way_with_bytes_the_other),
		cmocka_unit_test(query_asked_again_is_one_rpc_and_other_questions_are_their_own),
		cmocka_unit_test(
			answers_out_of_order_pair_by_id_and_copies_of_the_capture_are_none),
		cmocka_unit_test(many_unanswered_queries_do_not_hold_up_the_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
