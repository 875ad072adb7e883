/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP as the tracker reads it: what was lost and where, what came late, what was
 * sent again for nothing, and windows.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tracker_util.h"

/* --- lost behind us: we see both copies --------------------------------------- */

static void
request_resent_that_we_saw_was_lost_after_us(void **state)
{
	struct rig *rig = connected();
	const struct told *told = &rig->told[0];

	(void)state;
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .t = 210 * MS, .text = GET_A);
	assert_int_equal(rig->tracked.resend, 1);
	assert_int_equal(rig->tracked.new_data, 0);
	SEND(rig, .from = SERVER, .t = 215 * MS, .ack = GET, .text = OK_5);
	SEND(rig, .t = 216 * MS, .seq = GET, .ack = OK);
	assert_int_equal(rig->told_count, 1);
	ASSERT_SEGMENT(told, 0, 0, 200 * MS, BS_BUFFER_NET_REQUEST_AFTER, BS_CAUSE_DROP);
	ASSERT_SEGMENT(told, 1, 200 * MS, 205 * MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	assert_int_equal(told->segments[0].packet, 5);
	assert_int_equal(told->rpc.retransmissions, 1);
	assert_int_equal(told->rpc.t_request_last, T0 + 210 * MS);
	assert_int_equal(told->rpc.event_count, 1);
	assert_int_equal(told->events[0].type, BS_CAUSE_DROP);
	assert_int_equal(told->events[0].blocking_ns, 200 * MS);
	assert_int_equal(rig_counter(rig, BS_TRACK_RETRANSMISSIONS), 1);
	rig_free(rig);
}

static void
response_resent_counts_by_its_latest_copy_before_the_ack(void **state)
{
	struct rig *rig = connected();
	const struct told *told = &rig->told[0];

	(void)state;
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = OK_5);
	SEND(rig, .from = SERVER, .t = 220 * MS, .ack = GET, .text = OK_5);
	SEND(rig, .from = SERVER, .t = 640 * MS, .ack = GET, .text = OK_5);
	SEND(rig, .t = 641 * MS, .seq = GET, .ack = OK);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(told_latency(told), 630 * MS);
	assert_int_equal(told->rpc.t_response_first, T0 + 12 * MS);
	assert_int_equal(told->rpc.t_response_last, T0 + 640 * MS);
	assert_int_equal(told->rpc.t_response_first_copy, T0 + 12 * MS);
	ASSERT_SEGMENT(told, 0, 0, 2 * MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	assert_int_equal(told_ns(told, BS_BUFFER_NET_RESPONSE_AFTER, BS_CAUSE_DROP), 628 * MS);
	assert_int_equal(told->rpc.retransmissions, 2);
	rig_free(rig);
}

static void
middle_of_a_response_resent_costs_the_time_after_its_end(void **state)
{
	struct rig *rig = connected();
	const struct told *told = &rig->told[0];

	(void)state;
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = OK_HEAD, .bytes = 1000);
	SEND(rig, .from = SERVER, .t = 13 * MS, .seq = 1000, .ack = GET, .bytes = 1000);
	SEND(rig, .from = SERVER, .t = 14 * MS, .seq = 2000, .ack = GET, .bytes = 1000);
	SEND(rig, .t = 15 * MS, .seq = GET, .ack = 1000, .sacks = 1, .sack = {{2000, 3000}});
	SEND(rig, .from = SERVER, .t = 18 * MS, .seq = 1000, .ack = GET, .bytes = 1000);
	SEND(rig, .t = 19 * MS, .seq = GET, .ack = 3000);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(told_latency(told), 8 * MS);
	ASSERT_SEGMENT(told, 1, 2 * MS, 4 * MS, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_TRANSFER);
	ASSERT_SEGMENT(told, 2, 4 * MS, 8 * MS, BS_BUFFER_NET_RESPONSE_AFTER, BS_CAUSE_DROP);
	rig_free(rig);
}

static void
resend_of_pipelined_requests_in_one_segment_holds_up_each(void **state)
{
	struct rig *rig = connected();

	(void)state;
	SEND(rig, .t = 10 * MS, .text = GET_A GET_B);
	SEND(rig, .t = 210 * MS, .text = GET_A GET_B);
	SEND(rig, .from = SERVER, .t = 211 * MS, .ack = 2 * GET, .text = OK_5 OK_5);
	SEND(rig, .t = 212 * MS, .seq = 2 * GET, .ack = 2 * OK);
	assert_int_equal(rig->told_count, 2);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(told_ns(&rig->told[i], BS_BUFFER_NET_REQUEST_AFTER, BS_CAUSE_DROP),
			200 * MS);
	assert_int_equal(rig_counter(rig, BS_TRACK_RETRANSMISSIONS), 1);
	rig_free(rig);
}

/* --- sent again for nothing ------------------------------------------------------ */

static void
resend_of_what_was_acked_is_spurious(void **state)
{
	struct rig *rig = connected();

	(void)state;
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .from = SERVER, .t = 11 * MS, .ack = GET);
	SEND(rig, .t = 12 * MS, .text = GET_A);
	assert_int_equal(rig->tracked.resend, 1);
	SEND(rig, .from = SERVER, .t = 15 * MS, .ack = GET, .text = OK_5);
	SEND(rig, .t = 16 * MS, .seq = GET, .ack = OK);
	assert_int_equal(rig->told[0].rpc.duplicates, 1);
	assert_int_equal(rig->told[0].rpc.retransmissions, 0);
	ASSERT_SEGMENT(&rig->told[0], 0, 0, 5 * MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	assert_int_equal(rig_counter(rig, BS_TRACK_SPURIOUS), 1);
	assert_int_equal(rig_counter(rig, BS_TRACK_RETRANSMISSIONS), 0);
	rig_free(rig);
}

static void
dsack_turns_a_resent_response_back_to_its_first_copy(void **state)
{
	struct rig *rig = connected();
	const struct told *told = &rig->told[0];

	(void)state;
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = OK_5);
	SEND(rig, .from = SERVER, .t = 220 * MS, .ack = GET, .text = OK_5);
	SEND(rig, .t = 221 * MS, .seq = GET, .ack = OK, .sacks = 1, .sack = {{0, OK}});
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(told_latency(told), 2 * MS);
	assert_int_equal(told->rpc.t_response_first_copy, 0);
	assert_int_equal(told_ns(told, BS_BUFFER_NET_RESPONSE_AFTER, BS_CAUSE_DROP), 0);
	assert_int_equal(rig_counter(rig, BS_TRACK_SPURIOUS), 1);
	rig_free(rig);
}

static void
request_resent_for_nothing_leaves_the_wait_to_the_service(void **state)
{
	struct rig *rig = connected();
	const struct told *told = &rig->told[0];

	(void)state;
	/* A service that was stopped for 300 ms: its kernel had the request all the time. */
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .t = 215 * MS, .text = GET_A);
	SEND(rig, .from = SERVER, .t = 216 * MS, .ack = GET, .sacks = 1, .sack = {{0, GET}});
	SEND(rig, .from = SERVER, .t = 310 * MS, .ack = GET, .text = OK_5);
	SEND(rig, .t = 311 * MS, .seq = GET, .ack = OK);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(told->rpc.segment_count, 1);
	ASSERT_SEGMENT(told, 0, 0, 300 * MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	assert_int_equal(told->rpc.event_count, 0);
	assert_int_equal(told->rpc.t_request_departure, T0 + 10 * MS);
	assert_int_equal(told->rpc.retransmissions, 1);
	assert_int_equal(rig_counter(rig, BS_TRACK_SPURIOUS), 1);
	rig_free(rig);
}

static void
part_of_a_request_resent_for_nothing_is_congestion_until_it_is_complete(void **state)
{
	struct rig *rig = connected();
	const struct told *told = &rig->told[0];
	const char *post = "POST /a HTTP/1.1\r\nContent-Length: 100\r\n\r\n"; /* 141 in all */

	(void)state;
	SEND(rig, .t = 10 * MS, .text = post, .bytes = 100);
	SEND(rig, .t = 215 * MS, .text = post, .bytes = 100);
	SEND(rig, .from = SERVER, .t = 216 * MS, .ack = 100, .sacks = 1, .sack = {{0, 100}});
	SEND(rig, .t = 217 * MS, .seq = 100, .bytes = 41);
	SEND(rig, .from = SERVER, .t = 230 * MS, .ack = 141, .text = OK_5);
	SEND(rig, .t = 231 * MS, .seq = 141, .ack = OK);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(told_ns(told, BS_BUFFER_NET_REQUEST_AFTER, BS_CAUSE_CONGESTION), 205 * MS);
	assert_int_equal(told_ns(told, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE), 13 * MS);
	rig_free(rig);
}

static void
dsack_within_a_sack_block_is_one_too_and_a_plain_sack_is_none(void **state)
{
	(void)state;
	for (unsigned dsack = 0; dsack < 2; dsack++) {
		struct rig *rig = connected();

		SEND(rig, .t = 10 * MS, .text = GET_A);
		SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = OK_HEAD, .bytes = 1000);
		SEND(rig, .from = SERVER, .t = 13 * MS, .seq = 1000, .ack = GET, .bytes = 1000);
		SEND(rig, .from = SERVER, .t = 14 * MS, .seq = 2000, .ack = GET, .bytes = 1000);
		SEND(rig, .from = SERVER, .t = 214 * MS, .seq = 2000, .ack = GET, .bytes = 1000);
		/* RFC 2883 section 4.2: the duplicate lies within what is above the ACK */
		SEND(rig, .t = 215 * MS, .seq = GET, .ack = 1000, .sacks = dsack ? 2 : 1,
			.sack = {{2000, 3000}, {2000, 3000}});
		SEND(rig, .from = SERVER, .t = 216 * MS, .seq = 1000, .ack = GET, .bytes = 1000);
		SEND(rig, .t = 217 * MS, .seq = GET, .ack = 3000);
		assert_int_equal(rig->told_count, 1);
		assert_int_equal(rig_counter(rig, BS_TRACK_SPURIOUS), dsack);
		/* segment 2 was lost in either case */
		assert_int_equal(
			told_ns(&rig->told[0], BS_BUFFER_NET_RESPONSE_AFTER, BS_CAUSE_DROP),
			202 * MS);
		rig_free(rig);
	}
}

static void
ack_faster_than_a_round_trip_shows_that_the_resend_was_for_nothing(void **state)
{
	struct rig *rig = rig_http();
	const struct told *told = &rig->told[1];

	(void)state;
	/* the client answers after 10 ms at the least */
	SEND(rig, .t = 0, .seq = -1u, .flags = BS_TCP_SYN);
	SEND(rig, .from = SERVER, .t = 0, .seq = -1u, .flags = BS_TCP_SYN | BS_TCP_ACK);
	SEND(rig, .t = 10 * MS);
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = OK_5);
	SEND(rig, .t = 22 * MS, .seq = GET, .ack = OK);
	SEND(rig, .t = 30 * MS, .seq = GET, .ack = OK, .text = GET_B);
	SEND(rig, .from = SERVER, .t = 33 * MS, .seq = OK, .ack = 2 * GET, .text = OK_5);
	SEND(rig, .from = SERVER, .t = 240 * MS, .seq = OK, .ack = 2 * GET, .text = OK_5);
	SEND(rig, .t = 242 * MS, .seq = 2 * GET, .ack = 2 * OK);
	assert_int_equal(rig->told_count, 2);
	assert_int_equal(told_latency(told), 3 * MS);
	assert_int_equal(rig_counter(rig, BS_TRACK_SPURIOUS), 1);
	/* and one that takes its round trip is believed */
	SEND(rig, .t = 300 * MS, .seq = 2 * GET, .ack = 2 * OK, .text = GET_C);
	SEND(rig, .from = SERVER, .t = 303 * MS, .seq = 2 * OK, .ack = 3 * GET, .text = OK_5);
	SEND(rig, .from = SERVER, .t = 503 * MS, .seq = 2 * OK, .ack = 3 * GET, .text = OK_5);
	SEND(rig, .t = 513 * MS, .seq = 3 * GET, .ack = 3 * OK);
	assert_int_equal(told_latency(&rig->told[2]), 203 * MS);
	assert_int_equal(rig_counter(rig, BS_TRACK_SPURIOUS), 1);
	rig_free(rig);
}

/* A client that delays all its ACKs by 40 ms but that of the resend: its handshake was faster. */
static void
delayed_acks_do_not_make_a_resend_spurious(void **state)
{
	struct rig *rig = connected();

	(void)state;
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = OK_5);
	SEND(rig, .t = 52 * MS, .seq = GET, .ack = OK);
	SEND(rig, .t = 60 * MS, .seq = GET, .ack = OK, .text = GET_B);
	SEND(rig, .from = SERVER, .t = 62 * MS, .seq = OK, .ack = 2 * GET, .text = OK_5);
	SEND(rig, .from = SERVER, .t = 262 * MS, .seq = OK, .ack = 2 * GET, .text = OK_5);
	SEND(rig, .t = 263 * MS, .seq = 2 * GET, .ack = 2 * OK);
	assert_int_equal(told_latency(&rig->told[1]), 202 * MS);
	assert_int_equal(rig_counter(rig, BS_TRACK_SPURIOUS), 0);
	rig_free(rig);
}

/* --- lost in front of us, or late ------------------------------------------------ */

/* Segment 2 of 3 comes 200 ms late; how does the rest say whether it was resent? */
static struct rig *
hole_filled(struct seg behind, struct seg late, bool acked)
{
	struct rig *rig = connected();

	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = OK_HEAD, .bytes = 1000,
		.has_ts = behind.has_ts, .tsval = 500);
	behind.from = late.from = SERVER;
	behind.ack = late.ack = GET;
	behind.bytes = late.bytes = 1000;
	behind.t = 13 * MS;
	behind.seq = 2000;
	late.t = 113 * MS;
	late.seq = 1000;
	rig_send(rig, behind);
	assert_int_equal(rig->tracked.new_data, 0);
	if (acked)
		SEND(rig, .t = 14 * MS, .seq = GET, .ack = 1000, .sacks = 1,
			.sack = {{2000, 3000}});
	rig_send(rig, late);
	assert_int_equal(rig->tracked.resend, 0);
	SEND(rig, .t = 114 * MS, .seq = GET, .ack = 3000);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(told_latency(&rig->told[0]), 103 * MS);
	ASSERT_SEGMENT(
		&rig->told[0], 1, 2 * MS, 3 * MS, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_TRANSFER);
	return rig;
}

static void
assert_lost_before(struct rig *rig)
{
	ASSERT_SEGMENT(
		&rig->told[0], 2, 3 * MS, 103 * MS, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_DROP);
	assert_int_equal(rig->told[0].rpc.retransmissions, 1);
	assert_int_equal(rig_counter(rig, BS_TRACK_RETRANSMISSIONS), 1);
	rig_free(rig);
}

static void
assert_came_late(struct rig *rig)
{
	ASSERT_SEGMENT(
		&rig->told[0], 2, 3 * MS, 103 * MS, BS_BUFFER_CLIENT_SOCKET_RX, BS_CAUSE_DISORDER);
	assert_int_equal(rig->told[0].rpc.reordered, 1);
	assert_int_equal(rig->told[0].rpc.retransmissions, 0);
	assert_int_equal(rig_counter(rig, BS_TRACK_OUT_OF_ORDER), 1);
	rig_free(rig);
}

static void
hole_filled_by_a_newer_packet_was_lost_before_us(void **state)
{
	(void)state;
	assert_lost_before(hole_filled((struct seg){.has_ts = true, .tsval = 501, .ip_id = 50},
		(struct seg){.has_ts = true, .tsval = 600, .ip_id = 40}, false));
	assert_lost_before(
		hole_filled((struct seg){.ip_id = 50}, (struct seg){.ip_id = 51}, false));
	assert_lost_before(
		hole_filled((struct seg){.ip_id = 0xffff}, (struct seg){.ip_id = 3}, false));
	assert_lost_before(hole_filled(
		(struct seg){.ip_id_zero = true}, (struct seg){.ip_id_zero = true}, true));
}

static void
hole_filled_by_an_older_packet_came_late(void **state)
{
	(void)state;
	assert_came_late(hole_filled((struct seg){.has_ts = true, .tsval = 501, .ip_id = 50},
		(struct seg){.has_ts = true, .tsval = 500, .ip_id = 60}, true));
	/* the timestamps of one tick say nothing, the IDs do */
	assert_came_late(hole_filled((struct seg){.has_ts = true, .tsval = 501, .ip_id = 50},
		(struct seg){.has_ts = true, .tsval = 501, .ip_id = 49}, true));
	assert_came_late(
		hole_filled((struct seg){.ip_id = 2}, (struct seg){.ip_id = 0xfffe}, true));
	/* nothing can have asked for a resend so soon */
	assert_came_late(hole_filled(
		(struct seg){.ip_id_zero = true}, (struct seg){.ip_id_zero = true}, false));
}

static void
lost_head_of_a_request_counts_from_what_came_behind_it(void **state)
{
	struct rig *rig = connected();
	const struct told *told = &rig->told[0];

	(void)state;
	SEND(rig, .t = 11 * MS, .seq = GET, .text = GET_B, .ip_id = 7);
	SEND(rig, .t = 210 * MS, .text = GET_A, .ip_id = 8);
	SEND(rig, .from = SERVER, .t = 212 * MS, .ack = 2 * GET, .text = OK_5 OK_5);
	SEND(rig, .t = 213 * MS, .seq = 2 * GET, .ack = 2 * OK);
	assert_int_equal(rig->told_count, 2);
	assert_label(told, "GET /a");
	assert_int_equal(told->rpc.t_request_first, T0 + 11 * MS);
	ASSERT_SEGMENT(told, 0, 0, 199 * MS, BS_BUFFER_NET_REQUEST_BEFORE, BS_CAUSE_DROP);
	ASSERT_SEGMENT(told, 1, 199 * MS, 201 * MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	assert_label(&rig->told[1], "GET /b");
	assert_int_equal(rig->told[1].rpc.t_request_first, T0 + 11 * MS);
	assert_int_equal(rig->told[1].rpc.t_request_last, T0 + 210 * MS); /* contiguous only then */
	rig_free(rig);
}

/* Far more behind the hole than chunks are kept: of a body none needs to be. */
static void
long_body_behind_a_hole_is_not_lost(void **state)
{
	struct rig *rig = connected();
	const struct told *told = &rig->told[0];
	uint32_t at = 1000;

	(void)state;
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .bytes = 1000,
		.text = "HTTP/1.1 200 OK\r\nContent-Length: 400960\r\n\r\n"); /* 43: 401003 in all
									       */
	for (unsigned i = 1; i < 400; i++)
		SEND(rig, .from = SERVER, .t = 12 * MS + i * US, .seq = at + 1000 * i, .ack = GET,
			.bytes = 1000);
	SEND(rig, .from = SERVER, .t = 13 * MS, .seq = at + 400 * 1000, .ack = GET, .text = "end",
		.ip_id = 9990);
	SEND(rig, .from = SERVER, .t = 20 * MS, .seq = at, .ack = GET, .bytes = 1000,
		.ip_id = 9999);
	SEND(rig, .t = 21 * MS, .seq = GET, .ack = 401003);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(told_latency(told), 10 * MS);
	assert_int_equal(told->rpc.response_bytes, 401003);
	assert_int_equal(told->rpc.capture_gaps, 0);
	assert_int_equal(rig_counter(rig, BS_TRACK_REASSEMBLY_FULL), 0);
	assert_int_equal(rig_counter(rig, BS_TRACK_CAPTURE_GAPS), 0);
	rig_free(rig);
}

static void
heads_behind_a_hole_beyond_what_is_kept_are_counted(void **state)
{
	struct rig *rig = connected();

	(void)state;
	for (unsigned i = 1; i < 100; i++)
		SEND(rig, .t = (10 + i) * MS, .seq = i * GET, .text = GET_B);
	assert_int_equal(rig_counter(rig, BS_TRACK_REASSEMBLY_FULL), 35 * GET);
	SEND(rig, .t = 200 * MS, .text = GET_A);
	assert_int_equal(bs_tracker_open_rpcs(rig->tracker), 65);
	rig_free(rig);
}

/* --- windows ---------------------------------------------------------------------- */

static void
small_window_pauses_the_response_until_it_opens(void **state)
{
	struct rig *rig = connected();
	const struct told *told = &rig->told[0];

	(void)state;
	SEND(rig, .t = 10 * MS, .text = GET_A, .window = 16); /* 16 << 7 = 2048 bytes of room */
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = OK_HEAD, .bytes = 1000);
	SEND(rig, .from = SERVER, .t = 13 * MS, .seq = 1000, .ack = GET, .bytes = 1000);
	SEND(rig, .t = 14 * MS, .seq = GET, .ack = 2000, .window_zero = true);
	SEND(rig, .t = 214 * MS, .seq = GET, .ack = 2000, .window = 100);
	SEND(rig, .from = SERVER, .t = 215 * MS, .seq = 2000, .ack = GET, .bytes = 1000);
	SEND(rig, .t = 216 * MS, .seq = GET, .ack = 3000);
	assert_int_equal(rig->told_count, 1);
	ASSERT_SEGMENT(told, 1, 2 * MS, 3 * MS, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_TRANSFER);
	/* Up to what the window that opened let come, a round trip later. */
	ASSERT_SEGMENT(told, 2, 3 * MS, 205 * MS, BS_BUFFER_CLIENT_SOCKET_RX, BS_CAUSE_PAUSE);
	assert_int_equal(told->rpc.segment_count, 3);
	assert_int_equal(told->events[0].type, BS_CAUSE_PAUSE);
	assert_int_equal(rig_counter(rig, BS_TRACK_ZERO_WINDOW), 1);
	rig_free(rig);
}

static void
window_closed_before_the_response_begins_pauses_it_too(void **state)
{
	struct rig *rig = connected();

	(void)state;
	SEND(rig, .t = 10 * MS, .text = GET_A, .window_zero = true);
	SEND(rig, .t = 110 * MS, .seq = GET, .window = 100);
	SEND(rig, .from = SERVER, .t = 111 * MS, .ack = GET, .text = OK_5);
	SEND(rig, .t = 112 * MS, .seq = GET, .ack = OK);
	ASSERT_SEGMENT(&rig->told[0], 0, 0, 100 * MS, BS_BUFFER_CLIENT_SOCKET_RX, BS_CAUSE_PAUSE);
	ASSERT_SEGMENT(&rig->told[0], 1, 100 * MS, 101 * MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	rig_free(rig);
}

static void
service_that_does_not_read_pauses_the_request(void **state)
{
	struct rig *rig = connected();
	const char head[] = "POST /p HTTP/1.1\r\nContent-Length: 2000\r\n\r\n";
	uint32_t n = sizeof(head) - 1;

	(void)state;
	SEND(rig, .t = 10 * MS, .text = head, .bytes = 1000);
	SEND(rig, .from = SERVER, .t = 11 * MS, .ack = 1000, .window_zero = true);
	SEND(rig, .from = SERVER, .t = 61 * MS, .ack = 1000);
	SEND(rig, .t = 62 * MS, .seq = 1000, .bytes = n + 1000);
	SEND(rig, .from = SERVER, .t = 64 * MS, .ack = n + 2000, .text = OK_5);
	SEND(rig, .t = 65 * MS, .seq = n + 2000, .ack = OK);
	assert_int_equal(rig->told_count, 1);
	ASSERT_SEGMENT(&rig->told[0], 1, MS, 51 * MS, BS_BUFFER_SERVER_SOCKET_RX, BS_CAUSE_PAUSE);
	rig_free(rig);
}

static void
window_of_a_reset_and_of_an_unknown_scale_is_not_judged(void **state)
{
	struct rig *rig = connected();

	(void)state;
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .t = 20 * MS, .seq = GET, .flags = BS_TCP_RST | BS_TCP_ACK, .window_zero = true);
	assert_int_equal(rig_counter(rig, BS_TRACK_ZERO_WINDOW), 0);
	rig_free(rig);

	rig = rig_http(); /* joined: 10 may mean 10 << 14 */
	SEND(rig, .t = 10 * MS, .text = GET_A, .window = 10);
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = OK_5);
	assert_int_equal(rig_counter(rig, BS_TRACK_ZERO_WINDOW), 0);
	SEND(rig, .t = 13 * MS, .seq = GET, .ack = OK, .window_zero = true, .text = GET_B);
	assert_int_equal(rig_counter(rig, BS_TRACK_ZERO_WINDOW), 1);
	SEND(rig, .t = 113 * MS, .seq = 2 * GET, .ack = OK, .window = 10);
	SEND(rig, .from = SERVER, .t = 114 * MS, .seq = OK, .ack = 2 * GET, .text = OK_5);
	SEND(rig, .t = 115 * MS, .seq = 2 * GET, .ack = 2 * OK);
	assert_int_equal(
		told_ns(&rig->told[1], BS_BUFFER_CLIENT_SOCKET_RX, BS_CAUSE_PAUSE), 100 * MS);
	rig_free(rig);
}

/* RFC 7323 2.2: if one SYN lacks the option, neither end scales. */
static void
scale_that_only_one_end_offered_is_not_in_force(void **state)
{
	struct rig *rig = rig_http();

	(void)state;
	SEND(rig, .t = 0, .seq = -1u, .flags = BS_TCP_SYN, .wscale = 7);
	SEND(rig, .from = SERVER, .t = MS, .seq = -1u, .flags = BS_TCP_SYN | BS_TCP_ACK);
	SEND(rig, .t = 10 * MS, .text = GET_A, .window = 500);
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = OK_HEAD, .bytes = 500);
	assert_int_equal(rig_counter(rig, BS_TRACK_ZERO_WINDOW), 1);
	rig_free(rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request_resent_that_we_saw_was_lost_after_us),
		cmocka_unit_test(response_resent_counts_by_its_latest_copy_before_the_ack),
		cmocka_unit_test(middle_of_a_response_resent_costs_the_time_after_its_end),
		cmocka_unit_test(resend_of_pipelined_requests_in_one_segment_holds_up_each),
		cmocka_unit_test(resend_of_what_was_acked_is_spurious),
		cmocka_unit_test(dsack_turns_a_resent_response_back_to_its_first_copy),
		cmocka_unit_test(request_resent_for_nothing_leaves_the_wait_to_the_service),
		cmocka_unit_test(
			part_of_a_request_resent_for_nothing_is_congestion_until_it_is_complete),
		cmocka_unit_test(dsack_within_a_sack_block_is_one_too_and_a_plain_sack_is_none),
		cmocka_unit_test(
			ack_faster_than_a_round_trip_shows_that_the_resend_was_for_nothing),
		cmocka_unit_test(delayed_acks_do_not_make_a_resend_spurious),
		cmocka_unit_test(hole_filled_by_a_newer_packet_was_lost_before_us),
		cmocka_unit_test(hole_filled_by_an_older_packet_came_late),
		cmocka_unit_test(lost_head_of_a_request_counts_from_what_came_behind_it),
		cmocka_unit_test(long_body_behind_a_hole_is_not_lost),
		cmocka_unit_test(heads_behind_a_hole_beyond_what_is_kept_are_counted),
		cmocka_unit_test(small_window_pauses_the_response_until_it_opens),
		cmocka_unit_test(window_closed_before_the_response_begins_pauses_it_too),
		cmocka_unit_test(service_that_does_not_read_pauses_the_request),
		cmocka_unit_test(window_of_a_reset_and_of_an_unknown_scale_is_not_judged),
		cmocka_unit_test(scale_that_only_one_end_offered_is_not_in_force),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
