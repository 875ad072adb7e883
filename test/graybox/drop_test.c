/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DROP: an application queue is full. The packet is counted, its RPC waits in
 * that queue's drop until the resend comes, and the episode is told whether or
 * not anything comes after it.
 */
#include "gb_frames.h"
#include "gb_records.h"

#define SERVICE_NS (50 * GB_US)
#define STEP_NS (50 * GB_US)
#define DETAIL (BS_DETAIL_FIRST_REASON + BS_REASON_APP_QUEUE_FULL)
#define ROOM 4u

static const struct gb_setup small_queues = {
	.room = {ROOM, ROOM},
	.more = ", \"app_queue\": {\"size\": 2}",
};

/* The tx ring, the burst in hand and the queue (2) on the way to an end are full of ACKs. */
static void
fill(const struct gb *gb, struct gb_flow *flow, unsigned from)
{
	struct frame frame;

	for (unsigned i = 0; i < ROOM + 1 + 2; i++) {
		gb_ack(&frame, flow, from);
		gb_pass(gb, from, &frame);
	}
	assert_int_equal(gb_reason(gb, BS_REASON_APP_QUEUE_FULL), 0);
	assert_int_equal(gb_snapshot(gb)->queued, 3);
}

/* What was full is empty after 1 ms. */
static void
let_out(const struct gb *gb, unsigned port)
{
	gb_run(gb, gb_time.now_ns + GB_MS, STEP_NS);
	assert_int_equal(gb_drain(gb, port), ROOM);
	gb_turn(gb);
	assert_int_equal(gb_drain(gb, port), 3);
}

/* The same bytes of a flow once more. */
static void
resend(const struct gb *gb, struct gb_flow *flow, unsigned from, uint32_t id, size_t bytes)
{
	struct frame frame;

	flow->next[from] -= (uint32_t)bytes;
	gb_message(&frame, flow, from, id, bytes);
	gb_pass(gb, from, &frame);
}

static void
acknowledge(struct gb *gb, struct gb_flow *flow)
{
	struct frame frame;

	gb_ack(&frame, flow, GB_CLIENT);
	gb_pass(gb, GB_WIRE, &frame);
	gb_collect(gb, 1);
}

static void
a_dropped_request_waits_in_the_drop_until_its_resend(void **state)
{
	struct gb *gb = gb_open(&small_queues);
	struct gb_flow flow = gb_flow(40000, 6379);
	const uint16_t in = gb_buffer(gb, "kv.app.in");
	const struct bs_rec_event *event;
	struct bs_rpc_view rpc;
	struct frame frame;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	fill(gb, &flow, GB_CLIENT);
	gb_message(&frame, &flow, GB_CLIENT, 7, 100);
	gb_pass(gb, GB_WIRE, &frame);
	assert_int_equal(gb_reason(gb, BS_REASON_APP_QUEUE_FULL), 1);
	let_out(gb, GB_LOCAL);
	gb_run(gb, GB_T0 + 200 * GB_MS, STEP_NS);
	resend(gb, &flow, GB_CLIENT, 7, 100);
	gb_run(gb, gb_time.now_ns + SERVICE_NS, STEP_NS);
	gb_message(&frame, &flow, GB_SERVER, 7, 60);
	gb_pass(gb, GB_LOCAL, &frame);
	acknowledge(gb, &flow);
	rpc = gb_rpc(gb, 0);
	assert_int_equal(rpc.rpc->t_request_first, GB_T0);
	assert_int_equal(rpc.rpc->t_request_last, GB_T0 + 200 * GB_MS);
	assert_int_equal(rpc.rpc->retransmissions, 1);
	gb_assert_parts(&rpc, {200 * GB_MS, in, BS_CAUSE_DROP, DETAIL},
		{SERVICE_NS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0});
	assert_int_equal(rpc.segments[0].quality, BS_QUALITY_EXACT);
	event = gb_event(&rpc, BS_CAUSE_DROP, in);
	assert_non_null(event);
	assert_int_equal(event->blocking_ns, 200 * GB_MS);
	assert_int_equal(event->detail, DETAIL);
	gb_close(gb);
}

static void
a_dropped_response_waits_in_the_drop_until_its_resend(void **state)
{
	struct gb *gb = gb_open(&small_queues);
	struct gb_flow flow = gb_flow(40000, 6379);
	const uint16_t out = gb_buffer(gb, "kv.app.out");
	struct bs_rpc_view rpc;
	struct frame frame;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	gb_message(&frame, &flow, GB_CLIENT, 7, 100);
	gb_pass(gb, GB_WIRE, &frame);
	fill(gb, &flow, GB_SERVER);
	gb_run(gb, GB_T0 + SERVICE_NS, STEP_NS);
	gb_message(&frame, &flow, GB_SERVER, 7, 60);
	gb_pass(gb, GB_LOCAL, &frame);
	assert_int_equal(gb_reason(gb, BS_REASON_APP_QUEUE_FULL), 1);
	let_out(gb, GB_WIRE);
	gb_run(gb, GB_T0 + SERVICE_NS + 30 * GB_MS, STEP_NS);
	resend(gb, &flow, GB_SERVER, 7, 60);
	acknowledge(gb, &flow);
	rpc = gb_rpc(gb, 0);
	gb_assert_parts(&rpc, {SERVICE_NS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0},
		{30 * GB_MS, out, BS_CAUSE_DROP, DETAIL});
	assert_int_equal(rpc.rpc->t_response_first_copy, GB_T0 + SERVICE_NS);
	gb_close(gb);
}

/* The first of two segments is dropped: the second comes at 500 us, the first again at 20 ms. */
static void
a_dropped_part_of_a_request_holds_all_of_it_up(void **state)
{
	struct gb *gb = gb_open(&small_queues);
	struct gb_flow flow = gb_flow(40000, 6379);
	const uint16_t in = gb_buffer(gb, "kv.app.in");
	struct frame whole, frame;
	struct bs_rpc_view rpc;
	const uint8_t *message;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	fill(gb, &flow, GB_CLIENT);
	gb_message(&whole, &flow, GB_CLIENT, 7, 200);
	flow.next[GB_CLIENT] -= 200;
	message = whole.bytes + whole.n - 200;
	gb_data(&frame, &flow, GB_CLIENT, message, 120);
	gb_pass(gb, GB_WIRE, &frame);
	assert_int_equal(gb_reason(gb, BS_REASON_APP_QUEUE_FULL), 1);
	let_out(gb, GB_LOCAL);
	gb_data(&frame, &flow, GB_CLIENT, message + 120, 80);
	gb_pass(gb, GB_WIRE, &frame);
	gb_run(gb, GB_T0 + 20 * GB_MS, STEP_NS);
	flow.next[GB_CLIENT] -= 200;
	gb_data(&frame, &flow, GB_CLIENT, message, 120);
	gb_pass(gb, GB_WIRE, &frame);
	flow.next[GB_CLIENT] += 80;
	gb_run(gb, gb_time.now_ns + SERVICE_NS, STEP_NS);
	gb_message(&frame, &flow, GB_SERVER, 7, 60);
	gb_pass(gb, GB_LOCAL, &frame);
	acknowledge(gb, &flow);
	rpc = gb_rpc(gb, 0);
	gb_assert_parts(&rpc, {20 * GB_MS, in, BS_CAUSE_DROP, DETAIL},
		{SERVICE_NS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0});
	gb_close(gb);
}

static void
a_dropped_request_that_is_never_resent_is_in_the_drop_to_the_end(void **state)
{
	struct gb *gb = gb_open(&small_queues);
	struct gb_flow flow = gb_flow(40000, 6379);
	const uint16_t in = gb_buffer(gb, "kv.app.in");
	struct bs_rpc_view rpc;
	struct frame frame;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	fill(gb, &flow, GB_CLIENT);
	gb_message(&frame, &flow, GB_CLIENT, 7, 100);
	gb_pass(gb, GB_WIRE, &frame);
	let_out(gb, GB_LOCAL);
	gb_run(gb, GB_T0 + 40 * GB_MS, STEP_NS);
	bs_dataplane_finish(gb->dataplane, gb_time.now_ns);
	gb_collect(gb, 1);
	rpc = gb_rpc(gb, 0);
	assert_int_equal(rpc.rpc->outcome, BS_OUTCOME_IN_PROGRESS);
	gb_assert_parts(&rpc, {40 * GB_MS, in, BS_CAUSE_DROP, DETAIL});
	gb_close(gb);
}

static void
an_episode_of_drops_is_told_although_nothing_follows(void **state)
{
	struct gb *gb = gb_open(&small_queues);
	struct gb_flow flow = gb_flow(40000, 6379);
	const uint16_t in = gb_buffer(gb, "kv.app.in");
	const struct bs_rec_event *event;
	struct frame frame;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	fill(gb, &flow, GB_CLIENT);
	for (unsigned i = 0; i < 3; i++) {
		gb_ack(&frame, &flow, GB_CLIENT);
		gb_pass(gb, GB_WIRE, &frame);
		gb_run(gb, gb_time.now_ns + STEP_NS, STEP_NS);
	}
	let_out(gb, GB_LOCAL);
	gb_collect(gb, 1);
	assert_null(gb_episode(gb, BS_CAUSE_DROP, in, 0));
	/* 10 ms without a drop end it; looked for once a millisecond */
	gb_run(gb, GB_T0 + 12 * GB_MS, STEP_NS);
	gb_collect(gb, 1);
	event = gb_episode(gb, BS_CAUSE_DROP, in, 0);
	assert_non_null(event);
	assert_int_equal(event->t_begin, GB_T0);
	assert_int_equal(event->t_end, GB_T0 + 2 * STEP_NS);
	assert_int_equal(event->count, 3);
	assert_int_equal(event->detail, DETAIL);
	assert_int_equal(event->quality, BS_QUALITY_EXACT);
	gb_run(gb, GB_T0 + 30 * GB_MS, STEP_NS);
	gb_collect(gb, 1);
	assert_null(gb_episode(gb, BS_CAUSE_DROP, in, 1));
	gb_close(gb);
}

static void
drops_without_end_are_told_every_tenth_of_a_second(void **state)
{
	struct gb *gb = gb_open(&small_queues);
	struct gb_flow flow = gb_flow(40000, 6379);
	const uint16_t in = gb_buffer(gb, "kv.app.in");
	const struct bs_rec_event *event;
	struct frame frame;
	uint64_t told = 0;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	fill(gb, &flow, GB_CLIENT);
	for (unsigned i = 0; i < 5000; i++) { /* one every 50 us for 250 ms */
		gb_ack(&frame, &flow, GB_CLIENT);
		gb_inject(gb, GB_WIRE, &frame);
		gb_run(gb, gb_time.now_ns + STEP_NS, STEP_NS);
	}
	gb_collect(gb, 2);
	for (unsigned i = 0; i < 2; i++) {
		event = gb_episode(gb, BS_CAUSE_DROP, in, i);
		assert_non_null(event);
		assert_in_range(event->t_end - event->t_begin, 100 * GB_MS, 102 * GB_MS);
		told += event->count;
	}
	assert_null(gb_episode(gb, BS_CAUSE_DROP, in, 2));
	let_out(gb, GB_LOCAL);
	gb_run(gb, gb_time.now_ns + 12 * GB_MS, STEP_NS);
	gb_collect(gb, 1);
	event = gb_episode(gb, BS_CAUSE_DROP, in, 2);
	assert_non_null(event);
	assert_int_equal(event->t_end, GB_T0 + 250 * GB_MS);
	assert_int_equal(told + event->count, 5000);
	assert_int_equal(gb_reason(gb, BS_REASON_APP_QUEUE_FULL), 5000);
	gb_close(gb);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		GB_TEST(a_dropped_request_waits_in_the_drop_until_its_resend),
		GB_TEST(a_dropped_response_waits_in_the_drop_until_its_resend),
		GB_TEST(a_dropped_part_of_a_request_holds_all_of_it_up),
		GB_TEST(a_dropped_request_that_is_never_resent_is_in_the_drop_to_the_end),
		GB_TEST(an_episode_of_drops_is_told_although_nothing_follows),
		GB_TEST(drops_without_end_are_told_every_tenth_of_a_second),
	};

	return cmocka_run_group_tests_name(
		"graybox_drop", tests, gb_group_setup, gb_group_teardown);
}
