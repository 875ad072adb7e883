/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HANG: the lcore is away while packets wait. What kind it was, told by the
 * collector while it lasts and by the lcore when it is back, and how much of an
 * RPC's latency it made.
 */
#include "gb_frames.h"
#include "gb_records.h"

#include <errno.h>

#define SERVICE_NS (50 * GB_US)

/* Answers request `id` after SERVICE_NS and ACKs that; then all records are read. */
static void
answer(struct gb *gb, struct gb_flow *flow, uint32_t id)
{
	struct frame frame;

	gb_time.now_ns += SERVICE_NS;
	gb_message(&frame, flow, GB_SERVER, id, 60);
	gb_pass(gb, GB_LOCAL, &frame);
	gb_ack(&frame, flow, GB_CLIENT);
	gb_pass(gb, GB_WIRE, &frame);
	gb_collect(gb, 1);
}

/* A request lies in the rx ring while the lcore is away for away_ns. */
static void
request_meets_absence(
	struct gb *gb, struct gb_flow *flow, uint64_t away_ns, uint64_t waited_for_cpu_ns)
{
	struct frame frame;

	gb_connect(gb);
	gb_handshake(gb, flow);
	gb_message(&frame, flow, GB_CLIENT, 7, 100);
	gb_inject(gb, GB_WIRE, &frame);
	gb_time.now_ns += away_ns;
	gb_time.run_delay_ns += waited_for_cpu_ns;
	gb_turn(gb);
}

/* The request came at some time of the absence: in the middle, give or take. */
static void
assert_half_is(const struct gb *gb, uint64_t away_ns, unsigned detail)
{
	const struct bs_rpc_view rpc = gb_rpc(gb, 0);
	const uint16_t rx = gb_buffer(gb, "wire.rx");
	const struct bs_rec_event *event = gb_event(&rpc, BS_CAUSE_HANG, rx);

	assert_int_equal(rpc.rpc->t_request_first, GB_T0 + away_ns / 2);
	gb_assert_parts(&rpc, {away_ns / 2, rx, BS_CAUSE_HANG, (uint8_t)detail},
		{SERVICE_NS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0});
	assert_int_equal(rpc.segments[0].quality, BS_QUALITY_BOUND);
	assert_int_equal(
		rpc.segments[0].uncertainty_ns, RTE_MIN(away_ns / 2, (uint64_t)UINT32_MAX));
	assert_non_null(event);
	assert_int_equal(event->blocking_ns, away_ns / 2);
	assert_int_equal(event->t_begin, GB_T0 + away_ns / 2);
	assert_int_equal(event->t_end, GB_T0 + away_ns);
	assert_int_equal(event->detail, detail);
	assert_int_equal(rpc.rpc->event_count, 1);
}

static void
assert_episode(const struct gb *gb, const char *buffer, unsigned n, uint64_t t_begin,
	uint64_t t_end, unsigned detail)
{
	const struct bs_rec_event *event = gb_episode(gb, BS_CAUSE_HANG, gb_buffer(gb, buffer), n);

	assert_non_null(event);
	assert_int_equal(event->t_begin, t_begin);
	assert_int_equal(event->t_end, t_end);
	assert_int_equal(event->blocking_ns, t_end == 0 ? 0 : t_end - t_begin);
	assert_int_equal(event->detail, detail);
	assert_int_equal(event->culprit_count, 1);
	assert_int_equal(event->culprit_kind[0], BS_CULPRIT_LCORE);
	assert_int_equal(event->culprits[0].id, 0);
}

static void
a_stalled_lcore_makes_a_hang_of_the_rx_ring(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379);

	(void)state;
	request_meets_absence(gb, &flow, 20 * GB_MS, 0);
	answer(gb, &flow, 7);
	assert_half_is(gb, 20 * GB_MS, BS_DETAIL_STALLED);
	assert_episode(gb, "wire.rx", 0, GB_T0, GB_T0 + 20 * GB_MS, BS_DETAIL_STALLED);
	assert_episode(gb, "local.rx", 0, GB_T0, GB_T0 + 20 * GB_MS, BS_DETAIL_STALLED);
	assert_null(gb_episode(gb, BS_CAUSE_HANG, gb_buffer(gb, "kv.app.in"), 0));
	assert_int_equal(gb_snapshot(gb)->lcores[0].stalled_ns, 20 * GB_MS);
	assert_int_equal(gb_snapshot(gb)->lcores[0].preempted_ns, 0);
	gb_close(gb);
}

static void
a_thread_without_a_cpu_is_preempted_not_stalled(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379);

	(void)state;
	request_meets_absence(gb, &flow, 20 * GB_MS, 20 * GB_MS);
	answer(gb, &flow, 7);
	assert_half_is(gb, 20 * GB_MS, BS_DETAIL_PREEMPTED);
	assert_episode(gb, "wire.rx", 0, GB_T0, GB_T0 + 20 * GB_MS, BS_DETAIL_PREEMPTED);
	assert_int_equal(gb_snapshot(gb)->lcores[0].preempted_ns, 20 * GB_MS);
	gb_close(gb);
}

static void
a_stall_of_ten_seconds_is_one_of_ten_seconds(void **state)
{
	(void)state;
	for (unsigned lcores = 1; lcores <= 2; lcores++) {
		struct gb *gb = gb_open(&(struct gb_setup){.lcores = lcores});
		struct gb_flow flow = gb_flow(40000, 6379);

		request_meets_absence(gb, &flow, 10 * GB_S, 0);
		gb_turn(gb);
		answer(gb, &flow, 7);
		gb_turn(gb);
		gb_collect(gb, 1);
		assert_half_is(gb, 10 * GB_S, BS_DETAIL_STALLED);
		gb_close(gb);
	}
}

/* 3 % of the time, in bits too short to see, add up to 15 ms, but not in what was waited just now.
 */
static void
what_was_waited_for_a_cpu_before_does_not_explain_a_stall(void **state)
{
	struct gb *gb = gb_open(NULL);

	(void)state;
	gb_turn(gb);
	for (unsigned i = 0; i < 500; i++) {
		gb_time.run_delay_ns += 30 * GB_US;
		gb_run(gb, gb_time.now_ns + GB_MS, 90 * GB_US);
	}
	gb_time.now_ns += 20 * GB_MS;
	gb_turn(gb);
	/* what was waited since the account was last read, 10 ms ago at most, may count */
	assert_in_range(gb_snapshot(gb)->lcores[0].preempted_ns, 0, 11 * 30 * GB_US);
	assert_int_equal(gb_snapshot(gb)->lcores[0].stalled_ns,
		20 * GB_MS - gb_snapshot(gb)->lcores[0].preempted_ns);
	gb_close(gb);
}

/* The request came in the middle of the 20 ms, so 5 of the 15 ms that the lcore was held are its.
 */
static void
time_with_and_without_a_cpu_is_told_apart(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct bs_rpc_view rpc;

	(void)state;
	request_meets_absence(gb, &flow, 20 * GB_MS, 5 * GB_MS);
	answer(gb, &flow, 7);
	rpc = gb_rpc(gb, 0);
	gb_assert_parts(&rpc,
		{5 * GB_MS, gb_buffer(gb, "wire.rx"), BS_CAUSE_HANG, BS_DETAIL_STALLED},
		{5 * GB_MS, gb_buffer(gb, "wire.rx"), BS_CAUSE_HANG, BS_DETAIL_PREEMPTED},
		{SERVICE_NS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0});
	assert_int_equal(gb_snapshot(gb)->lcores[0].stalled_ns, 15 * GB_MS);
	assert_int_equal(gb_snapshot(gb)->lcores[0].preempted_ns, 5 * GB_MS);
	gb_close(gb);
}

static void
an_absence_below_the_threshold_is_in_the_parts_but_no_event(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct bs_rpc_view rpc;

	(void)state;
	request_meets_absence(gb, &flow, GB_MS - 2, 0);
	answer(gb, &flow, 7);
	rpc = gb_rpc(gb, 0);
	gb_assert_parts(&rpc,
		{GB_MS / 2 - 1, gb_buffer(gb, "wire.rx"), BS_CAUSE_HANG, BS_DETAIL_STALLED},
		{SERVICE_NS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0});
	assert_int_equal(rpc.rpc->event_count, 0);
	assert_null(gb_episode(gb, BS_CAUSE_HANG, gb_buffer(gb, "wire.rx"), 0));
	gb_close(gb);
}

/* 100 us between two looks at the clock are an absence; less is how polling goes. */
static void
a_poll_gap_just_short_of_an_absence_is_contention(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct bs_rpc_view rpc;

	(void)state;
	request_meets_absence(gb, &flow, 100 * GB_US - 2, 0);
	answer(gb, &flow, 7);
	rpc = gb_rpc(gb, 0);
	gb_assert_parts(&rpc, {50 * GB_US - 1, gb_buffer(gb, "wire.rx"), BS_CAUSE_CONTENTION, 0},
		{SERVICE_NS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0});
	gb_close(gb);
}

static void
the_collector_tells_of_a_hang_while_it_lasts(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379);
	const uint16_t rx = gb_buffer(gb, "wire.rx");
	struct frame frame;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	gb_message(&frame, &flow, GB_CLIENT, 7, 100);
	gb_inject(gb, GB_WIRE, &frame);
	/* five times detect.hang without a heartbeat */
	gb_time.now_ns = GB_T0 + 5 * GB_MS - 1;
	gb_collect(gb, 1);
	assert_null(gb_episode(gb, BS_CAUSE_HANG, rx, 0));
	gb_time.now_ns++;
	gb_collect(gb, 3);
	assert_episode(gb, "wire.rx", 0, GB_T0, 0, BS_DETAIL_NONE);
	assert_episode(gb, "local.rx", 0, GB_T0, 0, BS_DETAIL_NONE);
	assert_null(gb_episode(gb, BS_CAUSE_HANG, rx, 1));
	gb_time.now_ns = GB_T0 + 20 * GB_MS;
	gb_turn(gb);
	answer(gb, &flow, 7);
	assert_episode(gb, "wire.rx", 1, GB_T0, GB_T0 + 20 * GB_MS, BS_DETAIL_STALLED);
	assert_half_is(gb, 20 * GB_MS, BS_DETAIL_STALLED);
	/* it beats again: a second hang is told again */
	gb_collect(gb, 1);
	assert_null(gb_episode(gb, BS_CAUSE_HANG, rx, 2));
	gb_time.now_ns += 5 * GB_MS;
	gb_collect(gb, 1);
	assert_episode(gb, "wire.rx", 2, GB_T0 + 20 * GB_MS + SERVICE_NS, 0, BS_DETAIL_NONE);
	gb_close(gb);
}

/* The port to the services takes nothing, and 20 packets are in its queue, when the lcore hangs. */
static void
while_a_hang_lasts_the_queues_that_wait_for_the_lcore_are_named(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.room = {[GB_LOCAL] = 4}});
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame frame;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	for (unsigned i = 0; i < 24; i++) {
		gb_ack(&frame, &flow, GB_CLIENT);
		gb_pass(gb, GB_WIRE, &frame);
	}
	gb_time.now_ns = GB_T0 + 6 * GB_MS;
	gb_collect(gb, 1);
	assert_episode(gb, "kv.app.in", 0, GB_T0, 0, BS_DETAIL_NONE);
	assert_episode(gb, "wire.rx", 0, GB_T0, 0, BS_DETAIL_NONE);
	/* nothing waits there */
	assert_null(gb_episode(gb, BS_CAUSE_HANG, gb_buffer(gb, "kv.app.out"), 0));
	assert_null(gb_episode(gb, BS_CAUSE_HANG, BS_BUFFER_HANDOVER, 0));
	gb_close(gb);
}

static void
a_hang_of_an_owner_names_the_handover_that_waits_for_it(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.lcores = 2});
	struct frame frame;

	(void)state;
	gb_connect(gb);
	gb_turn(gb);
	/* of 16 flows some are the other lcore's */
	for (uint16_t i = 0; i < 16; i++) {
		struct gb_flow flow = gb_flow((uint16_t)(40000 + i * 997), 6379);

		gb_ack(&frame, &flow, GB_CLIENT);
		gb_inject(gb, GB_WIRE, &frame);
	}
	bs_lcore_turn(gb->dataplane->lcores[0]);
	gb_time.now_ns = GB_T0 + 6 * GB_MS;
	bs_lcore_turn(gb->dataplane->lcores[0]);
	gb_collect(gb, 1);
	assert_non_null(gb_episode(gb, BS_CAUSE_HANG, BS_BUFFER_HANDOVER, 0));
	assert_int_equal(gb_episode(gb, BS_CAUSE_HANG, BS_BUFFER_HANDOVER, 0)->culprits[0].id, 1);
	gb_turn(gb);
	gb_turn(gb);
	gb_close(gb);
}

static void
a_sleeping_lcore_is_not_told_as_hung(void **state)
{
	struct gb *gb = gb_open(NULL);

	(void)state;
	gb_connect(gb);
	gb_turn(gb);
	gb->dataplane->lcores[0]->sleeping = 1;
	gb_time.now_ns += GB_S / 2;
	gb_collect(gb, 1);
	assert_null(gb_episode(gb, BS_CAUSE_HANG, gb_buffer(gb, "wire.rx"), 0));
	gb->dataplane->lcores[0]->sleeping = 0;
	gb_close(gb);
}

/* What happens while bs_lcore_run() runs in this thread. */
struct nap {
	struct gb *gb;
	struct frame request;
	bool slept;
};

/* On the first reading after it fell asleep a request is there; once it has left, stop. */
static void
nap_goes_on(void *context)
{
	struct nap *nap = context;
	struct bs_lcore *lcore = nap->gb->dataplane->lcores[0];

	if (lcore->sleeping && !nap->slept) {
		nap->slept = true;
		gb_time.now_ns += 400 * GB_US;
		gb_inject(nap->gb, GB_WIRE, &nap->request);
	}
	if (rte_ring_count(nap->gb->out[GB_LOCAL]) > 0)
		lcore->stop = 1;
}

static void
a_sleep_that_a_packet_met_is_told_as_sleep(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.more = ", \"detect\": {\"hang\": \"150us\"}"});
	struct gb_flow flow = gb_flow(40000, 6379);
	const uint16_t rx = gb_buffer(gb, "wire.rx");
	struct nap nap = {.gb = gb};
	struct bs_rpc_view rpc;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	gb_message(&nap.request, &flow, GB_CLIENT, 7, 100);
	gb_time.on_read = nap_goes_on;
	gb_time.context = &nap;
	assert_int_equal(bs_lcore_run(gb->dataplane->lcores[0]), 0);
	gb_time.on_read = NULL;
	answer(gb, &flow, 7);
	rpc = gb_rpc(gb, 0);
	gb_assert_parts(&rpc, {200 * GB_US, rx, BS_CAUSE_HANG, BS_DETAIL_SLEEP},
		{SERVICE_NS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0});
	assert_non_null(gb_event(&rpc, BS_CAUSE_HANG, rx));
	/* nobody was held: no episode */
	assert_null(gb_episode(gb, BS_CAUSE_HANG, rx, 0));
	assert_int_equal(gb_snapshot(gb)->lcores[0].sleep_ns, 400 * GB_US);
	assert_int_equal(gb_snapshot(gb)->lcores[0].stalled_ns, 0);
	gb_close(gb);
}

/* In the app queue: blocked by the port from T0 on, away from 50 us to 20.05 ms, sent at 20.1 ms.
 */
static void
a_hang_in_the_app_queue_goes_before_the_pause_it_lies_in(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.room = {[GB_LOCAL] = 4}});
	struct gb_flow flow = gb_flow(40000, 6379);
	const uint16_t in = gb_buffer(gb, "kv.app.in");
	const struct bs_rec_event *event;
	struct bs_rpc_view rpc;
	struct frame frame;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	for (unsigned i = 0; i < 4; i++) {
		gb_ack(&frame, &flow, GB_CLIENT);
		gb_pass(gb, GB_WIRE, &frame);
	}
	gb_message(&frame, &flow, GB_CLIENT, 7, 100);
	gb_pass(gb, GB_WIRE, &frame);
	gb_run(gb, GB_T0 + 50 * GB_US, 50 * GB_US);
	gb_time.now_ns += 20 * GB_MS;
	gb_turn(gb);
	assert_int_equal(gb_drain(gb, GB_LOCAL), 4);
	gb_run(gb, gb_time.now_ns + 50 * GB_US, 50 * GB_US);
	assert_int_equal(gb_drain(gb, GB_LOCAL), 1);
	answer(gb, &flow, 7);
	rpc = gb_rpc(gb, 0);
	gb_assert_parts(&rpc, {20 * GB_MS, in, BS_CAUSE_HANG, BS_DETAIL_STALLED},
		{100 * GB_US, in, BS_CAUSE_PAUSE, 0},
		{SERVICE_NS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0});
	assert_int_equal(rpc.segments[0].quality, BS_QUALITY_EXACT);
	event = gb_episode(gb, BS_CAUSE_HANG, in, 0);
	assert_non_null(event);
	assert_int_equal(event->t_begin, GB_T0 + 50 * GB_US);
	assert_int_equal(event->t_end, GB_T0 + 50 * GB_US + 20 * GB_MS);
	gb_close(gb);
}

/*
 * The way to the wire is blocked when it is looked at, at T0; then 32 packets to the service take
 * 80 us; then the lcore is away. The 80 us are still a pause.
 */
static void
a_hang_begins_when_the_lcore_was_seen_last_whoever_it_served(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.room = {[GB_WIRE] = 4}});
	struct gb_flow flow = gb_flow(40000, 6379);
	const uint16_t out = gb_buffer(gb, "kv.app.out");
	struct bs_rpc_view rpc;
	struct frame frame;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	gb_message(&frame, &flow, GB_CLIENT, 7, 100);
	gb_pass(gb, GB_WIRE, &frame);
	for (unsigned i = 0; i < 4; i++) {
		gb_ack(&frame, &flow, GB_SERVER);
		gb_pass(gb, GB_LOCAL, &frame);
	}
	gb_message(&frame, &flow, GB_SERVER, 7, 60);
	gb_pass(gb, GB_LOCAL, &frame);
	gb_arp(&frame);
	for (unsigned i = 0; i < 32; i++)
		gb_inject(gb, GB_WIRE, &frame);
	gb_time.tx_ns = 2500;
	gb_turn(gb);
	gb_time.tx_ns = 0;
	/* the packet that was refused took its time, too */
	assert_int_equal(gb_time.now_ns, GB_T0 + 33 * 2500);
	gb_time.now_ns += 20 * GB_MS;
	assert_int_equal(gb_drain(gb, GB_WIRE), 4);
	gb_turn(gb);
	gb_ack(&frame, &flow, GB_CLIENT);
	gb_pass(gb, GB_WIRE, &frame);
	gb_collect(gb, 1);
	rpc = gb_rpc(gb, 0);
	gb_assert_parts(&rpc, {20 * GB_MS, out, BS_CAUSE_HANG, BS_DETAIL_STALLED},
		{33 * 2500, out, BS_CAUSE_PAUSE, 0});
	gb_close(gb);
}

static void
a_held_lcore_is_a_stall_and_only_if_faults_are_allowed(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.more = ", \"debug\": {\"faults\": true}"});
	struct gb_flow flow = gb_flow(40000, 6379);

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	assert_int_equal(bs_dataplane_fault(gb->dataplane, "melt", "20ms"), -ENOENT);
	assert_int_equal(bs_dataplane_fault(gb->dataplane, "stall", ""), -EINVAL);
	assert_int_equal(bs_dataplane_fault(gb->dataplane, "stall", "0ms"), -EINVAL);
	assert_int_equal(bs_dataplane_fault(gb->dataplane, "stall", "-1ms"), -EINVAL);
	assert_int_equal(bs_dataplane_fault(gb->dataplane, "stall", "1001ms"), -EINVAL);
	assert_int_equal(bs_dataplane_fault(gb->dataplane, "stall", "20ms"), 0);
	/* it spins on the clock, which goes on by 1 us a reading: the 20000th ends it */
	gb_time.step_ns = GB_US;
	gb_turn(gb);
	gb_time.step_ns = 0;
	gb_turn(gb);
	gb_collect(gb, 1);
	assert_episode(gb, "wire.rx", 0, GB_T0, GB_T0 + 20001 * GB_US, BS_DETAIL_STALLED);
	assert_null(gb_episode(gb, BS_CAUSE_HANG, gb_buffer(gb, "wire.rx"), 1));
	assert_int_equal(gb_snapshot(gb)->lcores[0].stalled_ns, 20001 * GB_US);
	gb_close(gb);

	gb = gb_open(NULL);
	assert_int_equal(bs_dataplane_fault(gb->dataplane, "stall", "20ms"), -EPERM);
	assert_int_equal(gb->dataplane->lcores[0]->fault_stall_ns, 0);
	gb_close(gb);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		GB_TEST(a_stalled_lcore_makes_a_hang_of_the_rx_ring),
		GB_TEST(a_thread_without_a_cpu_is_preempted_not_stalled),
		GB_TEST(a_stall_of_ten_seconds_is_one_of_ten_seconds),
		GB_TEST(what_was_waited_for_a_cpu_before_does_not_explain_a_stall),
		GB_TEST(time_with_and_without_a_cpu_is_told_apart),
		GB_TEST(an_absence_below_the_threshold_is_in_the_parts_but_no_event),
		GB_TEST(a_poll_gap_just_short_of_an_absence_is_contention),
		GB_TEST(the_collector_tells_of_a_hang_while_it_lasts),
		GB_TEST(while_a_hang_lasts_the_queues_that_wait_for_the_lcore_are_named),
		GB_TEST(a_hang_of_an_owner_names_the_handover_that_waits_for_it),
		GB_TEST(a_sleeping_lcore_is_not_told_as_hung),
		GB_TEST(a_sleep_that_a_packet_met_is_told_as_sleep),
		GB_TEST(a_hang_in_the_app_queue_goes_before_the_pause_it_lies_in),
		GB_TEST(a_hang_begins_when_the_lcore_was_seen_last_whoever_it_served),
		GB_TEST(a_held_lcore_is_a_stall_and_only_if_faults_are_allowed),
	};

	return cmocka_run_group_tests_name(
		"graybox_hang", tests, gb_group_setup, gb_group_teardown);
}
