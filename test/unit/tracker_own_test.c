/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tracker in the dataplane: waits in our own buffers and drops by them, as
 * told by handle; arrivals estimated from polls and timestamps.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tracker_util.h"

#define RX_RING 40u
#define APP_QUEUE 41u

static struct rig *
live(const char *protocol)
{
	struct rig *rig = rig_new(protocol, 80);

	rig->config.own_buffers = true;
	rig_start(rig);
	rig_handshake(rig, 0);
	return rig;
}

static void
stay(struct rig *rig, struct bs_track_handle handle, struct bs_stay stay)
{
	stay.t_in += T0;
	stay.t_out += T0;
	bs_tracker_stay(rig->tracker, &handle, &stay);
}

static void
departed(struct rig *rig, struct bs_track_handle handle, uint64_t t)
{
	bs_tracker_departed(rig->tracker, &handle, T0 + t);
}

/* --- stays and departures --------------------------------------------------------- */

static void
waits_in_our_buffers_are_parts_of_the_path(void **state)
{
	struct rig *rig = live("http1");
	const struct told *told = &rig->told[0];
	struct bs_track_handle request, response;

	(void)state;
	request = SEND(rig, .t = 10 * MS, .text = GET_A).handle;
	assert_int_equal(request.valid, 1);
	assert_int_equal(request.direction, 0);
	stay(rig, request,
		(struct bs_stay){.t_in = 10 * MS,
			.t_out = 13 * MS,
			.buffer = RX_RING,
			.stalled = 2 * MS,
			.contention = MS,
			.quality = BS_QUALITY_BOUND,
			.uncertainty_ns = 9});
	stay(rig, request,
		(struct bs_stay){.t_in = 13 * MS,
			.t_out = 20 * MS,
			.buffer = APP_QUEUE,
			.pause = MS,
			.preempted = MS,
			.sleep = MS,
			.congestion = 3 * MS,
			.unobserved = MS,
			.culprit_kind = BS_CULPRIT_SERVICE,
			.culprit_id = 5});
	departed(rig, request, 20 * MS);
	assert_int_equal(SEND(rig, .from = SERVER, .t = 21 * MS, .ack = GET).handle.valid, 0);
	response = SEND(rig, .from = SERVER, .t = 25 * MS, .ack = GET, .text = OK_5).handle;
	assert_int_equal(response.valid, 1);
	assert_int_equal(response.direction, 1);
	stay(rig, response,
		(struct bs_stay){
			.t_in = 25 * MS, .t_out = 26 * MS, .buffer = APP_QUEUE, .congestion = MS});
	departed(rig, response, 26 * MS);
	assert_int_equal(rig->told_count, 0);
	SEND(rig, .t = 30 * MS, .seq = GET, .ack = OK);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(told->rpc.t_request_departure, T0 + 20 * MS);
	assert_int_equal(told->rpc.t_response_departure, T0 + 26 * MS);
	assert_int_equal(told_latency(told), 16 * MS);
	assert_int_equal(told->rpc.segment_count, 9);
	ASSERT_SEGMENT(told, 0, 0, 2 * MS, RX_RING, BS_CAUSE_HANG);
	assert_int_equal(told->segments[0].detail, BS_DETAIL_STALLED);
	assert_int_equal(told->segments[0].quality, BS_QUALITY_BOUND);
	ASSERT_SEGMENT(told, 1, 2 * MS, 3 * MS, RX_RING, BS_CAUSE_CONTENTION);
	assert_int_equal(told_ns(told, APP_QUEUE, BS_CAUSE_HANG), 2 * MS);
	assert_int_equal(told_ns(told, APP_QUEUE, BS_CAUSE_PAUSE), MS);
	assert_int_equal(told_ns(told, APP_QUEUE, BS_CAUSE_CONGESTION), 4 * MS);
	assert_int_equal(told_ns(told, APP_QUEUE, BS_CAUSE_UNOBSERVED), MS);
	ASSERT_SEGMENT(told, 7, 10 * MS, 15 * MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	ASSERT_SEGMENT(told, 8, 15 * MS, 16 * MS, APP_QUEUE, BS_CAUSE_CONGESTION);
	assert_int_equal(told->events[told->rpc.event_count - 1].blocking_ns, 4 * MS);
	rig_free(rig);
}

static void
answered_rpc_is_told_when_it_has_departed_and_was_acked(void **state)
{
	struct rig *rig = live("http1");
	struct bs_track_handle request, response;

	(void)state;
	request = SEND(rig, .t = 10 * MS, .text = GET_A).handle;
	departed(rig, request, 11 * MS);
	response = SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = OK_5).handle;
	/* the ACK is seen before word of the departure comes from another lcore */
	SEND(rig, .t = 14 * MS, .seq = GET, .ack = OK);
	assert_int_equal(rig->told_count, 0);
	departed(rig, response, 13 * MS);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(told_latency(&rig->told[0]), 3 * MS);
	/* the word is lost: it is told all the same, a little later */
	SEND(rig, .t = 20 * MS, .seq = GET, .ack = OK, .text = GET_B);
	SEND(rig, .from = SERVER, .t = 22 * MS, .seq = OK, .ack = 2 * GET, .text = OK_5);
	SEND(rig, .t = 23 * MS, .seq = 2 * GET, .ack = 2 * OK);
	assert_int_equal(rig->told_count, 1);
	SEND(rig, .t = 523 * MS, .seq = 2 * GET, .ack = 2 * OK);
	assert_int_equal(rig->told_count, 2);
	assert_int_equal(told_latency(&rig->told[1]), 2 * MS);
	assert_int_equal(told_ns(&rig->told[1], BS_BUFFER_NONE, BS_CAUSE_UNOBSERVED), 2 * MS);
	rig_free(rig);
}

static void
one_packet_carries_all_messages_that_it_completes(void **state)
{
	struct rig *rig = live("http1");
	struct bs_track_handle handle;

	(void)state;
	SEND(rig, .t = 10 * MS, .text = "GET /a HTTP/1.1\r\n");
	handle = SEND(rig, .t = 11 * MS, .seq = 17, .text = "Host: h\r\n\r\n" GET_B "GET ").handle;
	stay(rig, handle,
		(struct bs_stay){.t_in = 11 * MS,
			.t_out = 13 * MS,
			.buffer = RX_RING,
			.congestion = 2 * MS});
	departed(rig, handle, 13 * MS);
	handle = SEND(rig, .from = SERVER, .t = 20 * MS, .ack = 2 * GET + 4, .text = OK_5 OK_5)
			 .handle;
	departed(rig, handle, 20 * MS);
	SEND(rig, .t = 22 * MS, .seq = 2 * GET + 4, .ack = 2 * OK);
	assert_int_equal(rig->told_count, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(rig->told[i].rpc.t_request_departure, T0 + 13 * MS);
		assert_int_equal(told_ns(&rig->told[i], RX_RING, BS_CAUSE_CONGESTION), 2 * MS);
	}
	rig_free(rig);
}

static void
packets_of_a_turn_leave_one_after_the_other(void **state)
{
	struct rig *rig = live("opaque");
	const struct told *told = &rig->told[0];
	struct bs_track_handle first, second;

	(void)state;
	first = SEND(rig, .t = 10 * MS, .bytes = 100).handle;
	stay(rig, first,
		(struct bs_stay){
			.t_in = 10 * MS, .t_out = 11 * MS, .buffer = RX_RING, .congestion = MS});
	departed(rig, first, 11 * MS);
	second = SEND(rig, .t = 15 * MS, .seq = 100, .bytes = 100).handle;
	assert_int_equal(second.valid, 1);
	stay(rig, second,
		(struct bs_stay){.t_in = 15 * MS,
			.t_out = 17 * MS,
			.buffer = RX_RING,
			.contention = 2 * MS});
	departed(rig, second, 17 * MS);
	first = SEND(rig, .from = SERVER, .t = 20 * MS, .ack = 200, .bytes = 50).handle;
	departed(rig, first, 21 * MS);
	second = SEND(rig, .from = SERVER, .t = 24 * MS, .seq = 50, .ack = 200, .bytes = 50).handle;
	stay(rig, second,
		(struct bs_stay){.t_in = 24 * MS,
			.t_out = 29 * MS,
			.buffer = APP_QUEUE,
			.congestion = 5 * MS});
	departed(rig, second, 29 * MS);
	SEND(rig, .t = 40 * MS, .seq = 200, .ack = 100, .bytes = 10);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(told->rpc.t_request_last, T0 + 15 * MS);
	assert_int_equal(told->rpc.t_request_departure, T0 + 17 * MS);
	assert_int_equal(told_latency(told), 19 * MS);
	assert_int_equal(told_ns(told, RX_RING, BS_CAUSE_CONTENTION), 2 * MS);
	assert_int_equal(
		told_ns(told, RX_RING, BS_CAUSE_CONGESTION), 0); /* not its completing packet's */
	assert_int_equal(told_ns(told, APP_QUEUE, BS_CAUSE_CONGESTION), 5 * MS);
	ASSERT_SEGMENT(told, 2, 7 * MS, 10 * MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	rig_free(rig);
}

static void
message_behind_a_hole_leaves_with_the_packet_that_fills_it(void **state)
{
	struct rig *rig = live("http1");
	struct bs_track_handle handle;

	(void)state;
	assert_int_equal(
		SEND(rig, .t = 10 * MS, .seq = GET, .text = GET_B, .ip_id = 8).handle.valid, 0);
	handle = SEND(rig, .t = 12 * MS, .text = GET_A, .ip_id = 7).handle;
	assert_int_equal(handle.valid, 1);
	departed(rig, handle, 14 * MS);
	handle = SEND(rig, .from = SERVER, .t = 20 * MS, .ack = 2 * GET, .text = OK_5 OK_5).handle;
	departed(rig, handle, 20 * MS);
	SEND(rig, .t = 22 * MS, .seq = 2 * GET, .ack = 2 * OK);
	assert_int_equal(rig->told_count, 2);
	assert_int_equal(rig->told[1].rpc.t_request_departure, T0 + 14 * MS);
	rig_free(rig);
}

static void
wait_of_a_packet_is_not_that_of_an_earlier_one_which_has_yet_to_leave(void **state)
{
	struct rig *rig = live("http1");
	struct bs_track_handle first, second, response;

	(void)state;
	first = SEND(rig, .t = 11 * MS, .text = GET_A).handle;
	stay(rig, first,
		(struct bs_stay){
			.t_in = 11 * MS, .t_out = 13 * MS, .buffer = RX_RING, .stalled = 2 * MS});
	second = SEND(rig, .t = 12 * MS, .seq = GET, .text = GET_B).handle;
	stay(rig, second,
		(struct bs_stay){
			.t_in = 12 * MS, .t_out = 15 * MS, .buffer = RX_RING, .stalled = 3 * MS});
	stay(rig, first,
		(struct bs_stay){.t_in = 13 * MS,
			.t_out = 15 * MS,
			.buffer = APP_QUEUE,
			.congestion = 2 * MS});
	departed(rig, first, 15 * MS);
	departed(rig, second, 15 * MS);
	response =
		SEND(rig, .from = SERVER, .t = 20 * MS, .ack = 2 * GET, .text = OK_5 OK_5).handle;
	departed(rig, response, 20 * MS);
	SEND(rig, .t = 22 * MS, .seq = 2 * GET, .ack = 2 * OK);
	assert_int_equal(rig->told_count, 2);
	assert_int_equal(told_ns(&rig->told[0], RX_RING, BS_CAUSE_HANG), 2 * MS);
	assert_int_equal(told_ns(&rig->told[0], APP_QUEUE, BS_CAUSE_CONGESTION), 2 * MS);
	assert_int_equal(told_ns(&rig->told[1], RX_RING, BS_CAUSE_HANG), 3 * MS);
	rig_free(rig);
}

static void
stale_handle_touches_nothing(void **state)
{
	struct rig *rig = live("http1");
	struct bs_track_handle handle = SEND(rig, .t = 10 * MS, .text = GET_A).handle;

	(void)state;
	bs_tracker_finish(rig->tracker, T0 + 20 * MS);
	departed(rig, handle, 30 * MS);
	rig->client_port++;
	rig_handshake(rig, 40 * MS); /* takes the slot again */
	SEND(rig, .t = 50 * MS, .text = GET_B);
	stay(rig, handle, (struct bs_stay){.t_in = 1, .t_out = 2, .congestion = 1});
	departed(rig, handle, 60 * MS);
	bs_tracker_finish(rig->tracker, T0 + 70 * MS);
	assert_int_equal(rig->told_count, 2);
	assert_int_equal(rig->told[1].rpc.t_request_departure, 0);
	rig_free(rig);
}

/* --- drops of our own --------------------------------------------------------------- */

static void
request_that_we_dropped_is_linked_to_its_resend(void **state)
{
	struct rig *rig = live("http1");
	const struct told *told = &rig->told[0];
	struct bs_track_handle handle;

	(void)state;
	handle = SEND(rig, .t = 10 * MS, .text = GET_A).handle;
	stay(rig, handle,
		(struct bs_stay){
			.t_in = 10 * MS, .t_out = 11 * MS, .buffer = RX_RING, .contention = MS});
	rig->packet.data = rig->bytes;
	bs_tracker_dropped(
		rig->tracker, &rig->packet, APP_QUEUE, BS_REASON_APP_QUEUE_FULL, T0 + 11 * MS);
	/* another message of the flow gets through: it does not carry the dropped one */
	handle = SEND(rig, .t = 50 * MS, .seq = GET, .text = GET_B).handle;
	departed(rig, handle, 52 * MS);
	handle = SEND(rig, .t = 211 * MS, .text = GET_A).handle;
	assert_int_equal(handle.valid, 1);
	stay(rig, handle,
		(struct bs_stay){
			.t_in = 211 * MS, .t_out = 212 * MS, .buffer = RX_RING, .contention = MS});
	stay(rig, handle,
		(struct bs_stay){.t_in = 212 * MS,
			.t_out = 213 * MS,
			.buffer = APP_QUEUE,
			.congestion = MS});
	departed(rig, handle, 213 * MS);
	handle = SEND(rig, .from = SERVER, .t = 220 * MS, .ack = 2 * GET, .text = OK_5).handle;
	departed(rig, handle, 220 * MS);
	SEND(rig, .t = 225 * MS, .seq = 2 * GET, .ack = OK);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(told->rpc.segment_count, 5);
	ASSERT_SEGMENT(told, 0, 0, MS, RX_RING, BS_CAUSE_CONTENTION);
	ASSERT_SEGMENT(told, 1, MS, 201 * MS, APP_QUEUE, BS_CAUSE_DROP);
	assert_int_equal(
		told->segments[1].detail, BS_DETAIL_FIRST_REASON + BS_REASON_APP_QUEUE_FULL);
	ASSERT_SEGMENT(told, 2, 201 * MS, 202 * MS, RX_RING, BS_CAUSE_CONTENTION);
	ASSERT_SEGMENT(told, 3, 202 * MS, 203 * MS, APP_QUEUE, BS_CAUSE_CONGESTION);
	ASSERT_SEGMENT(told, 4, 203 * MS, 210 * MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	assert_int_equal(told->rpc.t_request_departure, T0 + 213 * MS);
	assert_int_equal(told->rpc.retransmissions, 1);
	rig_free(rig);
}

/* A packet of the rig that our handover dropped at t, before the tracker had seen it. */
static void
missed(struct rig *rig, unsigned from, uint32_t seq, uint32_t bytes, uint64_t t)
{
	struct bs_packet packet = rig->packet; /* of the same flow, of the client's */

	packet.direction = (uint8_t)(from == CLIENT ? packet.direction : !packet.direction);
	packet.seq = rig->isn[from] + 1 + seq;
	packet.payload_len = bytes;
	bs_tracker_dropped(
		rig->tracker, &packet, BS_BUFFER_HANDOVER, BS_REASON_HANDOVER_FULL, T0 + t);
}

static void
request_dropped_before_it_came_began_when_it_was_dropped(void **state)
{
	struct rig *rig = live("http1");
	const struct told *told = &rig->told[0];
	struct bs_track_handle handle;

	(void)state;
	SEND(rig, .t = 5 * MS); /* an ACK: the last packet is the client's */
	missed(rig, CLIENT, 0, GET, 10 * MS);
	handle = SEND(rig, .t = 210 * MS, .text = GET_A).handle;
	departed(rig, handle, 210 * MS);
	handle = SEND(rig, .from = SERVER, .t = 215 * MS, .ack = GET, .text = OK_5).handle;
	departed(rig, handle, 215 * MS);
	SEND(rig, .t = 220 * MS, .seq = GET, .ack = OK);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(told->rpc.t_request_first, T0 + 10 * MS);
	assert_int_equal(told->rpc.retransmissions, 1);
	assert_int_equal(told->rpc.segment_count, 2);
	ASSERT_SEGMENT(told, 0, 0, 200 * MS, BS_BUFFER_HANDOVER, BS_CAUSE_DROP);
	assert_int_equal(
		told->segments[0].detail, BS_DETAIL_FIRST_REASON + BS_REASON_HANDOVER_FULL);
	ASSERT_SEGMENT(told, 1, 200 * MS, 205 * MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	rig_free(rig);
}

/* The end of a response in two packets comes first, word of the drop after it, then the resend. */
static void
hole_that_we_made_is_no_loss_of_the_network(void **state)
{
	struct rig *rig = live("http1");
	const struct told *told = &rig->told[0];
	struct bs_track_handle handle;

	(void)state;
	handle = SEND(rig, .t = 10 * MS, .text = GET_A).handle;
	departed(rig, handle, 10 * MS);
	SEND(rig, .from = SERVER, .t = 21 * MS, .seq = 38, .ack = GET, .text = &OK_5[38]);
	SEND(rig, .t = 22 * MS, .seq = GET);
	missed(rig, SERVER, 0, 38, 20 * MS);
	handle = SEND(rig, .from = SERVER, .t = 50 * MS, .ack = GET,
		.text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
			 .handle;
	departed(rig, handle, 50 * MS);
	SEND(rig, .t = 60 * MS, .seq = GET, .ack = OK);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(told_ns(told, BS_BUFFER_HANDOVER, BS_CAUSE_DROP), 30 * MS);
	assert_int_equal(told_ns(told, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_DROP), 0);
	assert_int_equal(told->rpc.t_response_first, T0 + 20 * MS);
	ASSERT_SEGMENT(told, 0, 0, 10 * MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	rig_free(rig);
}

static void
response_that_we_dropped_ends_with_its_resend(void **state)
{
	struct rig *rig = live("http1");
	const struct told *told = &rig->told[0];
	struct bs_track_handle handle;

	(void)state;
	handle = SEND(rig, .t = 10 * MS, .text = GET_A).handle;
	departed(rig, handle, 10 * MS);
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = OK_5);
	rig->packet.data = rig->bytes;
	bs_tracker_dropped(
		rig->tracker, &rig->packet, APP_QUEUE, BS_REASON_APP_QUEUE_FULL, T0 + 13 * MS);
	handle = SEND(rig, .from = SERVER, .t = 213 * MS, .ack = GET, .text = OK_5).handle;
	departed(rig, handle, 214 * MS);
	SEND(rig, .t = 220 * MS, .seq = GET, .ack = OK);
	assert_int_equal(rig->told_count, 1);
	ASSERT_SEGMENT(told, 0, 0, 2 * MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	assert_int_equal(told_ns(told, APP_QUEUE, BS_CAUSE_DROP), 200 * MS);
	assert_int_equal(told_latency(told), 204 * MS);
	assert_int_equal(told->rpc.t_response_first_copy, T0 + 12 * MS);
	rig_free(rig);
}

/* 100 segments of a response in a row, more than an RPC has marks: one stretch until the last
 * resend. */
static void
row_of_drops_is_one_stretch_until_its_last_resend(void **state)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n";
	const unsigned body = sizeof(head) - 1;
	struct rig *rig = live("http1");
	const struct told *told = &rig->told[0];
	struct bs_track_handle handle;

	(void)state;
	departed(rig, SEND(rig, .t = 10 * MS, .text = GET_A).handle, 10 * MS);
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = head);
	for (unsigned i = 0; i < 100; i++) {
		SEND(rig, .from = SERVER, .t = 13 * MS, .seq = body + 5 * i, .ack = GET,
			.text = "01234");
		rig->packet.data = rig->bytes;
		bs_tracker_dropped(rig->tracker, &rig->packet, APP_QUEUE, BS_REASON_APP_QUEUE_FULL,
			T0 + 13 * MS);
	}
	for (unsigned i = 0; i < 100; i++)
		handle = SEND(rig, .from = SERVER, .t = (200 + i) * MS, .seq = body + 5 * i,
			.ack = GET, .text = "01234")
				 .handle;
	departed(rig, handle, 299 * MS);
	SEND(rig, .t = 301 * MS, .seq = GET, .ack = body + 500);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(told_ns(told, APP_QUEUE, BS_CAUSE_DROP), (299 - 13) * MS);
	assert_int_equal(told_latency(told), 289 * MS);
	assert_int_equal(bs_tracker_counters(rig->tracker)[BS_TRACK_MARKS_LOST], 0);
	rig_free(rig);
}

static void
drop_without_a_resend_lasts_to_the_end(void **state)
{
	struct rig *rig = live("http1");

	(void)state;
	SEND(rig, .t = 10 * MS, .text = GET_A);
	rig->packet.data = rig->bytes;
	bs_tracker_dropped(
		rig->tracker, &rig->packet, APP_QUEUE, BS_REASON_APP_QUEUE_FULL, T0 + 11 * MS);
	bs_tracker_finish(rig->tracker, T0 + 100 * MS);
	assert_int_equal(told_ns(&rig->told[0], APP_QUEUE, BS_CAUSE_DROP), 89 * MS);
	/* what is not followed, or has no payload, is no business of ours */
	bs_tracker_dropped(
		rig->tracker, &rig->packet, APP_QUEUE, BS_REASON_APP_QUEUE_FULL, T0 + 101 * MS);
	rig_free(rig);
}

/* --- arrival ---------------------------------------------------------------------------- */

static void
timestamps_tell_when_a_packet_arrived_that_was_polled_late(void **state)
{
	static const struct {
		uint64_t tick;
		unsigned offset;
	} clocks[] = {{MS, 0}, {4 * MS, 0xffffff00}, {10 * MS, 5}};

	(void)state;
	for (unsigned c = 0; c < sizeof(clocks) / sizeof(clocks[0]); c++) {
		struct rig *rig = rig_http();
		const uint64_t tick = clocks[c].tick;
		struct bs_tracked tracked;

		/* 100 packets, a tick apart or more, each polled within 100 us of its arrival */
		for (unsigned i = 0; i < 100; i++)
			SEND(rig, .t = SEC + i * tick, .t_low = SEC + i * tick - 100 * US, .seq = i,
				.bytes = 1, .has_ts = true, .tsval = clocks[c].offset + i);
		/* sent at tick 105.5, found at tick 110 + 20 ms */
		tracked = SEND(rig, .t = SEC + 110 * tick + 20 * MS, .t_low = SEC + 100 * tick,
			.seq = 100, .bytes = 1, .has_ts = true, .tsval = clocks[c].offset + 105);
		assert_int_equal(tracked.quality, BS_QUALITY_ESTIMATED);
		assert_in_range(tracked.t_arrival - T0, SEC + 105 * tick, SEC + 106 * tick);
		assert_int_equal(tracked.uncertainty_ns, tick / 2);
		rig_free(rig);
	}
}

static void
arrival_stays_within_its_poll_whatever_the_timestamp_says(void **state)
{
	struct rig *rig = rig_http();
	uint64_t t = SEC, seed = 1;

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t low, width;
		struct bs_tracked tracked;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		t += seed >> 40;
		width = (seed >> 20) % (30 * MS);
		low = t > width ? t - width : 0;
		tracked = SEND(rig, .t = t, .t_low = low + 1, .seq = i, .bytes = 1, .has_ts = true,
			.tsval = i < 5000 ? (uint32_t)(t / MS) : (uint32_t)(seed >> 32));
		assert_in_range(tracked.t_arrival, T0 + low, T0 + t);
	}
	rig_free(rig);
}

static void
poll_without_timestamps_gives_a_bound_and_exact_stamps_are_kept(void **state)
{
	struct rig *rig = rig_http();
	struct bs_tracked tracked;

	(void)state;
	tracked = SEND(rig, .t = 10 * MS, .t_low = 4 * MS, .text = GET_A);
	assert_int_equal(tracked.quality, BS_QUALITY_BOUND);
	assert_int_equal(tracked.t_arrival, T0 + 7 * MS);
	assert_int_equal(tracked.uncertainty_ns, 3 * MS);
	/* packets of one flow come in order */
	tracked = SEND(rig, .t = 10 * MS, .t_low = 4 * MS, .seq = GET, .text = GET_B);
	assert_in_range(tracked.t_arrival, T0 + 7 * MS, T0 + 10 * MS);
	tracked = SEND(rig, .from = SERVER, .t = 12 * MS, .ack = 2 * GET, .text = OK_5);
	assert_int_equal(tracked.quality, BS_QUALITY_EXACT);
	assert_int_equal(tracked.t_arrival, T0 + 12 * MS);
	rig_free(rig);
}

/* A clock that is 100 ppm slow for an hour: 360 ms; the floor must not stay where it was. */
static void
clocks_that_drift_apart_do_not_shift_arrivals(void **state)
{
	struct rig *rig = rig_http();
	struct bs_tracked tracked = {0};
	uint32_t seq = 0;

	(void)state;
	for (uint64_t t = 0; t < 3600; t++) {
		uint64_t at = SEC + t * SEC;

		tracked = SEND(rig, .t = at, .t_low = at - 25 * MS, .seq = seq++, .bytes = 1,
			.has_ts = true, .tsval = (uint32_t)((t * 999900) / 1000));
	}
	assert_int_equal(tracked.quality, BS_QUALITY_ESTIMATED);
	assert_in_range(tracked.t_arrival, T0 + 3600 * SEC - 5 * MS, T0 + 3600 * SEC);
	rig_free(rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_in_our_buffers_are_parts_of_the_path),
		cmocka_unit_test(answered_rpc_is_told_when_it_has_departed_and_was_acked),
		cmocka_unit_test(one_packet_carries_all_messages_that_it_completes),
		cmocka_unit_test(packets_of_a_turn_leave_one_after_the_other),
		cmocka_unit_test(message_behind_a_hole_leaves_with_the_packet_that_fills_it),
		cmocka_unit_test(
			wait_of_a_packet_is_not_that_of_an_earlier_one_which_has_yet_to_leave),
		cmocka_unit_test(stale_handle_touches_nothing),
		cmocka_unit_test(request_that_we_dropped_is_linked_to_its_resend),
		cmocka_unit_test(request_dropped_before_it_came_began_when_it_was_dropped),
		cmocka_unit_test(hole_that_we_made_is_no_loss_of_the_network),
		cmocka_unit_test(response_that_we_dropped_ends_with_its_resend),
		cmocka_unit_test(row_of_drops_is_one_stretch_until_its_last_resend),
		cmocka_unit_test(drop_without_a_resend_lasts_to_the_end),
		cmocka_unit_test(timestamps_tell_when_a_packet_arrived_that_was_polled_late),
		cmocka_unit_test(arrival_stays_within_its_poll_whatever_the_timestamp_says),
		cmocka_unit_test(poll_without_timestamps_gives_a_bound_and_exact_stamps_are_kept),
		cmocka_unit_test(clocks_that_drift_apart_do_not_shift_arrivals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
