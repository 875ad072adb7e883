/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams as captures have them: with bytes missing, doubled, cut or in the wrong
 * order; and how connections begin and end.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tracker_util.h"

#define FIN (BS_TCP_FIN | BS_TCP_ACK)

/* --- captures that lack, double or shuffle packets ---------------------------------- */

/* Q03: R1 S1 R2 S2 with S1 and R2 missing: no pair of 1 and 2. */
static void
missing_response_and_request_are_not_joined_across(void **state)
{
	struct rig *rig = connected();

	(void)state;
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .from = SERVER, .t = 22 * MS, .seq = OK, .ack = 2 * GET, .text = OK_5);
	SEND(rig, .t = 23 * MS, .seq = 2 * GET, .ack = 2 * OK);
	for (unsigned i = 0; i < 3; i++) {
		SEND(rig, .t = (30 + 10 * i) * MS, .seq = (2 + i) * GET, .ack = (2 + i) * OK,
			.text = GET_C);
		SEND(rig, .from = SERVER, .t = (34 + 10 * i) * MS, .seq = (2 + i) * OK,
			.ack = (3 + i) * GET, .text = OK_5);
		SEND(rig, .t = (35 + 10 * i) * MS, .seq = (3 + i) * GET, .ack = (3 + i) * OK);
	}
	SEND(rig, .t = 90 * MS, .seq = 5 * GET, .ack = 5 * OK);
	bs_tracker_finish(rig->tracker, T0 + 100 * MS);
	assert_int_equal(rig->told_count, 5);
	for (unsigned i = 0; i < 5; i++) {
		const struct told *told = &rig->told[i];

		if (told->rpc.outcome == BS_OUTCOME_ANSWERED) {
			assert_label(told, "GET /c");
			assert_int_equal(told_latency(told), 4 * MS);
		} else if (told->rpc.outcome == BS_OUTCOME_CUT) {
			assert_label(told, "GET /a");
			assert_int_equal(told->rpc.capture_gaps, 1);
		} else {
			assert_int_equal(told->rpc.outcome, BS_OUTCOME_ORPHAN_RESPONSE);
			assert_int_equal(told->rpc.t_response_first, T0 + 22 * MS);
		}
	}
	assert_int_equal(rig_counter(rig, BS_TRACK_CAPTURE_GAPS), 2);
	rig_free(rig);
}

/* Only R2 is missing: its answer must not be taken for that of the next request. */
static void
answer_to_a_missing_request_does_not_shift_the_next(void **state)
{
	struct rig *rig = connected();

	(void)state;
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = OK_5);
	SEND(rig, .from = SERVER, .t = 22 * MS, .seq = OK, .ack = 2 * GET, .text = OK_5);
	for (unsigned i = 0; i < 8; i++) {
		SEND(rig, .t = (30 + 10 * i) * MS, .seq = (2 + i) * GET, .ack = (2 + i) * OK,
			.text = GET_C);
		SEND(rig, .from = SERVER, .t = (34 + 10 * i) * MS, .seq = (2 + i) * OK,
			.ack = (3 + i) * GET, .text = OK_5);
	}
	bs_tracker_finish(rig->tracker, T0 + 200 * MS);
	assert_int_equal(rig->told_count, 10);
	for (unsigned i = 0, answered = 0; i < 10; i++) {
		if (rig->told[i].rpc.outcome == BS_OUTCOME_ANSWERED)
			assert_int_equal(
				told_latency(&rig->told[i]), answered++ == 0 ? 2 * MS : 4 * MS);
		else
			assert_int_equal(rig->told[i].rpc.outcome, BS_OUTCOME_ORPHAN_RESPONSE);
	}
	rig_free(rig);
}

/* Q09: bytes within a long response that the client ACKed were only missed by the capture. */
static void
gap_within_a_body_is_a_capture_gap_and_the_rpc_stays(void **state)
{
	struct rig *rig = connected();
	const struct told *told = &rig->told[0];

	(void)state;
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = OK_HEAD, .bytes = 1000);
	SEND(rig, .from = SERVER, .t = 14 * MS, .seq = 2000, .ack = GET, .bytes = 1000);
	SEND(rig, .t = 15 * MS, .seq = GET, .ack = 3000);
	bs_tracker_finish(rig->tracker, T0 + 10 * SEC);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(told->rpc.outcome, BS_OUTCOME_ANSWERED);
	assert_int_equal(told_latency(told), 4 * MS);
	assert_int_equal(told->rpc.capture_gaps, 1);
	assert_int_equal(told->rpc.retransmissions, 0);
	rig_free(rig);
}

static void
missing_tail_of_a_response_ends_when_it_was_acked(void **state)
{
	struct rig *rig = connected();

	(void)state;
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = OK_HEAD, .bytes = 2000);
	SEND(rig, .t = 17 * MS, .seq = GET, .ack = 3000);
	SEND(rig, .from = SERVER, .t = 50 * SEC, .seq = 3000, .ack = GET, .flags = FIN);
	SEND(rig, .t = 50 * SEC + MS, .seq = GET, .ack = 3001, .flags = FIN);
	bs_tracker_finish(rig->tracker, T0 + 51 * SEC);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(told_latency(&rig->told[0]), 7 * MS);
	rig_free(rig);
}

/* The ACK that shows the gap covers only part of what is missing. */
static void
hole_is_given_up_only_as_far_as_it_was_acked(void **state)
{
	struct rig *rig = connected();

	(void)state;
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = OK_HEAD, .bytes = 1000);
	SEND(rig, .from = SERVER, .t = 13 * MS, .seq = 2000, .ack = GET, .bytes = 1000,
		.ip_id = 50);
	for (unsigned i = 0; i < 10; i++)
		SEND(rig, .t = (14 + i) * MS, .seq = GET, .ack = 1500, .sacks = 1,
			.sack = {{2000, 3000}});
	SEND(rig, .from = SERVER, .t = 30 * MS, .seq = 1500, .ack = GET, .bytes = 500, .ip_id = 51);
	SEND(rig, .t = 31 * MS, .seq = GET, .ack = 3000);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(told_latency(&rig->told[0]), 20 * MS);
	assert_int_equal(
		told_ns(&rig->told[0], BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_DROP), 17 * MS);
	rig_free(rig);
}

/* Q07: shuffled by a few places, with the times they came at. */
static void
shuffled_capture_gives_what_the_sorted_one_does(void **state)
{
	static const unsigned orders[][6] = {
		{0, 1, 2, 3, 4, 5},
		{1, 0, 2, 3, 4, 5}, /* response in front of its request */
		{0, 2, 1, 3, 4, 5}, /* ACK in front of the data */
		{0, 1, 3, 2, 5, 4},
		{2, 1, 0, 3, 5, 4},
		{0, 1, 2, 4, 5, 3},
	};
	const struct seg segs[6] = {
		{.t = 10 * MS, .text = GET_A},
		{.from = SERVER, .t = 12 * MS, .ack = GET, .text = OK_5},
		{.t = 13 * MS, .seq = GET, .ack = OK},
		{.t = 20 * MS, .seq = GET, .ack = OK, .text = GET_B},
		{.from = SERVER, .t = 25 * MS, .seq = OK, .ack = 2 * GET, .text = OK_5},
		{.t = 26 * MS, .seq = 2 * GET, .ack = 2 * OK},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		struct rig *rig = connected();

		for (unsigned k = 0; k < 6; k++)
			rig_send(rig, segs[orders[i][k]]);
		bs_tracker_finish(rig->tracker, T0 + SEC);
		assert_int_equal(rig->told_count, 2);
		assert_label(&rig->told[0], "GET /a");
		assert_int_equal(told_latency(&rig->told[0]), 2 * MS);
		assert_int_equal(rig->told[0].rpc.capture_gaps, 0);
		assert_label(&rig->told[1], "GET /b");
		assert_int_equal(told_latency(&rig->told[1]), 5 * MS);
		rig_free(rig);
	}
}

/* Q08 */
static void
empty_segment_does_not_hide_data_of_the_same_sequence_number(void **state)
{
	struct rig *rig = connected();

	(void)state;
	SEND(rig, .t = 10 * MS);
	SEND(rig, .t = 11 * MS, .text = GET_A);
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET);
	SEND(rig, .from = SERVER, .t = 13 * MS, .ack = GET, .text = OK_5);
	SEND(rig, .t = 14 * MS, .seq = GET, .ack = OK);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(told_latency(&rig->told[0]), 2 * MS);
	assert_int_equal(rig_counter(rig, BS_TRACK_CAPTURE_GAPS), 0);
	rig_free(rig);
}

/* Q12: every frame twice, by IP ID or, over IPv6, by timestamp; a real resend stays one. */
static void
doubled_frames_are_duplicates_and_a_timeout_is_none(void **state)
{
	(void)state;
	for (unsigned v6 = 0; v6 < 2; v6++) {
		struct rig *rig = rig_new("http1", 80);

		if (v6)
			assert_int_equal(bs_address_parse("2001:db8::2", rig->service.address), 0);
		rig->ipv6 = v6;
		rig_start(rig);
		for (unsigned copy = 0; copy < 2; copy++)
			SEND(rig, .t = 10 * MS + copy * 10 * US, .text = GET_A, .ip_id = 7,
				.has_ts = v6, .tsval = 1);
		for (unsigned copy = 0; copy < 2; copy++)
			SEND(rig, .from = SERVER, .t = 12 * MS + copy * 10 * US, .ack = GET,
				.text = OK_5, .ip_id = 9, .has_ts = v6, .tsval = 5);
		SEND(rig, .t = 13 * MS, .seq = GET, .ack = OK, .ip_id = 8, .has_ts = v6,
			.tsval = 3);
		assert_int_equal(rig->told_count, 1);
		assert_int_equal(rig->told[0].rpc.retransmissions, 0);
		assert_int_equal(told_latency(&rig->told[0]), 2 * MS);
		assert_int_equal(rig_counter(rig, BS_TRACK_DUPLICATES), 2);
		SEND(rig, .t = 20 * MS, .seq = GET, .ack = OK, .text = GET_B, .ip_id = 9,
			.has_ts = v6, .tsval = 10);
		SEND(rig, .t = 220 * MS, .seq = GET, .ack = OK, .text = GET_B, .ip_id = 9,
			.has_ts = v6, .tsval = 210);
		assert_int_equal(rig_counter(rig, BS_TRACK_DUPLICATES), 2);
		assert_int_equal(rig_counter(rig, BS_TRACK_RETRANSMISSIONS), 1);
		rig_free(rig);
	}
}

/* Q11, Q32 */
static void
keepalive_probes_are_no_resends(void **state)
{
	struct rig *rig = connected();

	(void)state;
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = OK_5);
	SEND(rig, .t = 13 * MS, .seq = GET, .ack = OK);
	SEND(rig, .t = 5 * SEC, .seq = GET - 1, .ack = OK);
	SEND(rig, .from = SERVER, .t = 5 * SEC + MS, .seq = OK, .ack = GET);
	SEND(rig, .t = 10 * SEC, .seq = GET - 1, .ack = OK, .bytes = 1);
	SEND(rig, .from = SERVER, .t = 10 * SEC + MS, .seq = OK, .ack = GET);
	assert_int_equal(rig_counter(rig, BS_TRACK_KEEPALIVES), 2);
	assert_int_equal(rig_counter(rig, BS_TRACK_RETRANSMISSIONS), 0);
	assert_int_equal(rig_counter(rig, BS_TRACK_SPURIOUS), 0);
	assert_int_equal(rig->told_count, 1);
	rig_free(rig);
}

static void
bytes_cut_by_the_capture_are_gaps_and_later_rpcs_are_found(void **state)
{
	struct rig *rig = connected();

	(void)state;
	SEND(rig, .t = 10 * MS, .text = GET_A);
	/* the head is there, of the body 20 bytes */
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = OK_HEAD, .bytes = 1000,
		.cap = 61);
	SEND(rig, .from = SERVER, .t = 13 * MS, .seq = 1000, .ack = GET, .bytes = 2000, .cap = 1);
	SEND(rig, .t = 14 * MS, .seq = GET, .ack = 3000);
	SEND(rig, .t = 20 * MS, .seq = GET, .ack = 3000, .text = GET_B);
	SEND(rig, .from = SERVER, .t = 22 * MS, .seq = 3000, .ack = 2 * GET, .text = OK_5);
	SEND(rig, .t = 23 * MS, .seq = 2 * GET, .ack = 3000 + OK);
	assert_int_equal(rig->told_count, 2);
	assert_int_equal(told_latency(&rig->told[0]), 3 * MS);
	assert_int_equal(told_latency(&rig->told[1]), 2 * MS);
	rig_free(rig);
}

/* --- beginning and end ------------------------------------------------------------------ */

static void
stream_joined_in_the_middle_is_picked_up_at_the_next_message(void **state)
{
	struct rig *rig = rig_http();

	(void)state;
	SEND(rig, .from = SERVER, .t = MS, .ack = 500, .bytes = 700); /* rest of a body */
	SEND(rig, .t = 2 * MS, .seq = 500, .ack = 700);
	SEND(rig, .t = 10 * MS, .seq = 500, .ack = 700, .text = GET_A);
	SEND(rig, .from = SERVER, .t = 13 * MS, .seq = 700, .ack = 500 + GET, .text = OK_5);
	SEND(rig, .t = 14 * MS, .seq = 500 + GET, .ack = 700 + OK);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(told_latency(&rig->told[0]), 3 * MS);
	assert_int_equal(rig->told[0].rpc.connect_ns, 0);
	assert_int_equal(rig_counter(rig, BS_TRACK_BYTES_UNPARSED), 700);
	rig_free(rig);
}

static void
sequence_numbers_may_wrap_within_a_message(void **state)
{
	(void)state;
	for (uint32_t before = 0; before <= 3001; before += before < 50 ? 1 : 97) {
		struct rig *rig = rig_http();

		rig->isn[CLIENT] = 0u - 1 - (before < GET ? before : GET / 2);
		rig->isn[SERVER] = 0u - 1 - before;
		rig_handshake(rig, 0);
		SEND(rig, .t = 10 * MS, .text = GET_A);
		SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = OK_HEAD, .bytes = 1000);
		SEND(rig, .from = SERVER, .t = 13 * MS, .seq = 2000, .ack = GET, .bytes = 1000);
		SEND(rig, .t = 13 * MS, .seq = GET, .ack = 1000, .sacks = 1,
			.sack = {{2000, 3000}});
		SEND(rig, .from = SERVER, .t = 15 * MS, .seq = 1000, .ack = GET, .bytes = 1000);
		SEND(rig, .t = 16 * MS, .seq = GET, .ack = 3000);
		assert_int_equal(rig->told_count, 1);
		assert_int_equal(told_latency(&rig->told[0]), 5 * MS);
		assert_int_equal(rig->told[0].rpc.response_bytes, 3000);
		assert_int_equal(rig->told[0].rpc.retransmissions, 1);
		rig_free(rig);
	}
}

static void
closed_tuple_that_is_used_again_is_another_connection(void **state)
{
	struct rig *rig = connected();

	(void)state;
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = OK_5);
	SEND(rig, .t = 13 * MS, .seq = GET, .ack = OK, .flags = FIN);
	SEND(rig, .from = SERVER, .t = 14 * MS, .seq = OK, .ack = GET + 1, .flags = FIN);
	SEND(rig, .t = 15 * MS, .seq = GET + 1, .ack = OK + 1);
	rig->isn[CLIENT] = 5000000;
	rig->isn[SERVER] = 1;
	rig_handshake(rig, 100 * MS);
	SEND(rig, .t = 110 * MS, .text = GET_B);
	SEND(rig, .from = SERVER, .t = 115 * MS, .ack = GET, .text = OK_5);
	SEND(rig, .t = 116 * MS, .seq = GET, .ack = OK);
	assert_int_equal(rig->told_count, 2);
	assert_int_equal(told_latency(&rig->told[1]), 5 * MS);
	assert_int_equal(rig->told[1].rpc.connect_ns, MS);
	assert_true(rig->told[1].rpc.stream != rig->told[0].rpc.stream);
	assert_int_equal(rig_counter(rig, BS_TRACK_FLOWS_CREATED), 1);
	rig_free(rig);
}

/* A SYN alone, late or forged, ends nothing (RFC 5961); one that is answered begins anew. */
static void
syn_on_an_open_connection_is_believed_when_answered(void **state)
{
	struct rig *rig = connected();

	(void)state;
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .t = 11 * MS, .seq = -1u, .flags = BS_TCP_SYN, .wscale = 7);
	SEND(rig, .t = 11 * MS, .seq = 123456, .flags = BS_TCP_SYN);
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = OK_5);
	SEND(rig, .t = 13 * MS, .seq = GET, .ack = OK);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(told_latency(&rig->told[0]), 2 * MS);
	SEND(rig, .t = 20 * MS, .seq = GET, .ack = OK, .text = GET_B);
	rig->isn[CLIENT] = 5000000;
	rig->isn[SERVER] = 99;
	rig_handshake(rig, 50 * MS);
	SEND(rig, .t = 60 * MS, .text = GET_C);
	SEND(rig, .from = SERVER, .t = 65 * MS, .ack = GET, .text = OK_5);
	SEND(rig, .t = 66 * MS, .seq = GET, .ack = OK);
	assert_int_equal(rig->told_count, 3);
	assert_label(&rig->told[1], "GET /b");
	assert_int_equal(rig->told[1].rpc.outcome, BS_OUTCOME_UNANSWERED);
	assert_label(&rig->told[2], "GET /c");
	assert_int_equal(told_latency(&rig->told[2]), 5 * MS);
	assert_int_equal(rig->told[2].rpc.connect_ns, MS);
	rig_free(rig);
}

static void
fin_in_front_of_missing_bytes_ends_nothing_early(void **state)
{
	struct rig *rig = connected();
	const char head[] = "HTTP/1.0 200 OK\r\n\r\n";
	uint32_t n = sizeof(head) - 1;

	(void)state;
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = head);
	SEND(rig, .from = SERVER, .t = 14 * MS, .seq = n + 100, .ack = GET, .flags = FIN,
		.ip_id = 50);
	SEND(rig, .t = 15 * MS, .seq = GET, .ack = n);
	SEND(rig, .from = SERVER, .t = 20 * MS, .seq = n, .ack = GET, .bytes = 100, .ip_id = 51);
	SEND(rig, .t = 21 * MS, .seq = GET, .ack = n + 101, .flags = FIN);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(rig->told[0].rpc.response_bytes, n + 100);
	assert_int_equal(told_latency(&rig->told[0]), 10 * MS);
	assert_int_equal(rig_counter(rig, BS_TRACK_CAPTURE_GAPS), 0);
	rig_free(rig);
}

/* Whoever sends that, the tracker must not look for the bytes before it for ever. */
static void
data_behind_a_fin_goes_with_the_connection(void **state)
{
	(void)state;
	for (unsigned reset = 0; reset < 2; reset++) {
		struct rig *rig = connected();

		SEND(rig, .t = 10 * MS, .text = GET_A);
		SEND(rig, .t = 11 * MS, .seq = GET + 50, .flags = BS_TCP_ACK | BS_TCP_FIN);
		SEND(rig, .t = 12 * MS, .seq = GET + 200, .text = GET_B);
		if (reset)
			SEND(rig, .t = 13 * MS, .seq = GET, .flags = BS_TCP_RST);
		else
			bs_tracker_finish(rig->tracker, T0 + 13 * MS);
		assert_int_equal(rig->told_count, 1);
		rig_free(rig);
	}
}

static void
data_in_a_syn_is_read(void **state)
{
	struct rig *rig = rig_http();

	(void)state;
	SEND(rig, .t = 10 * MS, .seq = -1u, .flags = BS_TCP_SYN, .text = GET_A); /* RFC 7413 */
	SEND(rig, .from = SERVER, .t = 11 * MS, .seq = -1u, .ack = GET,
		.flags = BS_TCP_SYN | BS_TCP_ACK);
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = OK_5);
	SEND(rig, .t = 13 * MS, .seq = GET, .ack = OK);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(told_latency(&rig->told[0]), 2 * MS);
	assert_int_equal(rig_counter(rig, BS_TRACK_CAPTURE_GAPS), 0);
	rig_free(rig);
}

/* Q30; chunks behind the hole must not be lost to the pool. */
static void
syn_ack_with_another_number_does_not_leak_what_stands_behind_a_hole(void **state)
{
	struct rig *rig = connected();

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		SEND(rig, .from = SERVER, .t = (10 + i) * MS, .seq = 100 + 200 * i, .text = OK_5);
		SEND(rig, .from = SERVER, .t = (10 + i) * MS, .seq = 1000 * i,
			.flags = BS_TCP_SYN | BS_TCP_ACK);
		rig->client_port = (uint16_t)(40001 + i % 50);
		rig_handshake(rig, (10 + i) * MS);
	}
	assert_int_equal(bs_tracker_flows(rig->tracker), 51);
	bs_tracker_finish(rig->tracker, T0 + 10 * SEC);
	/* the pool is whole: 256 chunks in four connections */
	rig->client_port = 50000;
	for (unsigned flow = 0; flow < 4; flow++, rig->client_port++) {
		rig_handshake(rig, 20 * SEC);
		for (unsigned i = 1; i <= 64; i++)
			SEND(rig, .t = 21 * SEC, .seq = i * GET, .text = GET_B);
	}
	assert_int_equal(rig_counter(rig, BS_TRACK_REASSEMBLY_FULL), 0);
	rig_free(rig);
}

static void
bytes_behind_a_fin_end_with_the_connection(void **state)
{
	struct rig *rig = rig_http();

	(void)state;
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .t = 11 * MS, .seq = GET, .flags = FIN);
	SEND(rig, .t = 12 * MS, .seq = GET + 100, .text = GET_B);
	SEND(rig, .from = SERVER, .t = 13 * MS, .flags = BS_TCP_RST);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(rig->told[0].rpc.outcome, BS_OUTCOME_RESET);
	rig_free(rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(missing_response_and_request_are_not_joined_across),
		cmocka_unit_test(answer_to_a_missing_request_does_not_shift_the_next),
		cmocka_unit_test(gap_within_a_body_is_a_capture_gap_and_the_rpc_stays),
		cmocka_unit_test(missing_tail_of_a_response_ends_when_it_was_acked),
		cmocka_unit_test(hole_is_given_up_only_as_far_as_it_was_acked),
		cmocka_unit_test(shuffled_capture_gives_what_the_sorted_one_does),
		cmocka_unit_test(empty_segment_does_not_hide_data_of_the_same_sequence_number),
		cmocka_unit_test(doubled_frames_are_duplicates_and_a_timeout_is_none),
		cmocka_unit_test(keepalive_probes_are_no_resends),
		cmocka_unit_test(bytes_cut_by_the_capture_are_gaps_and_later_rpcs_are_found),
		cmocka_unit_test(stream_joined_in_the_middle_is_picked_up_at_the_next_message),
		cmocka_unit_test(sequence_numbers_may_wrap_within_a_message),
		cmocka_unit_test(closed_tuple_that_is_used_again_is_another_connection),
		cmocka_unit_test(syn_on_an_open_connection_is_believed_when_answered),
		cmocka_unit_test(fin_in_front_of_missing_bytes_ends_nothing_early),
		cmocka_unit_test(data_behind_a_fin_goes_with_the_connection),
		cmocka_unit_test(data_in_a_syn_is_read),
		cmocka_unit_test(
			syn_ack_with_another_number_does_not_leak_what_stands_behind_a_hole),
		cmocka_unit_test(bytes_behind_a_fin_end_with_the_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
