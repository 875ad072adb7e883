/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The accounts under each fault: whatever is full, empty, refused, stopped or
 * injected, what came in by a port is forwarded, queued, or ended for the one
 * named reason. gb_check_packets() looks at each port and at all together.
 */
#include "gb_frames.h"
#include "gb_records.h"

#include <errno.h>
#include <rte_mempool.h>
#include <stdlib.h>

#define SERVICE_NS (50 * GB_US)

static void
assert_balance(const struct gb *gb)
{
	const char *wrong = gb_check_packets(gb);

	if (wrong != NULL)
		fail_msg("%s", wrong);
}

/* So many ACKs of a flow come in by a port, a burst each turn. */
static void
pour(const struct gb *gb, struct gb_flow *flow, unsigned from, unsigned n)
{
	struct frame frame;

	for (unsigned i = 0; i < n; i++) {
		gb_ack(&frame, flow, from);
		gb_inject(gb, from, &frame);
		if (i % BS_BURST == BS_BURST - 1 || i == n - 1) {
			gb_turn(gb);
			assert_balance(gb);
		}
	}
}

static uint64_t
port_reason(const struct gb *gb, unsigned port, enum bs_reason reason)
{
	return gb_snapshot(gb)->ports[port].reasons[reason];
}

/* A request and its answer go through. */
static void
assert_serves(struct gb *gb, struct gb_flow *flow, uint32_t id)
{
	struct frame frame, out;

	gb_message(&frame, flow, GB_CLIENT, id, 100);
	gb_pass(gb, GB_WIRE, &frame);
	assert_true(gb_take(gb, GB_LOCAL, &out));
	assert_int_equal(out.n, frame.n);
	assert_memory_equal(out.bytes, frame.bytes, frame.n);
	gb_time.now_ns += SERVICE_NS;
	gb_message(&frame, flow, GB_SERVER, id, 60);
	gb_pass(gb, GB_LOCAL, &frame);
	assert_true(gb_take(gb, GB_WIRE, &out));
	gb_ack(&frame, flow, GB_CLIENT);
	gb_pass(gb, GB_WIRE, &frame);
	assert_int_equal(gb_drain(gb, GB_LOCAL), 1);
	assert_balance(gb);
}

/* --- full and refused ------------------------------------------------------------------- */

/* 1 Mbit/s are 2.3 packets of 54 bytes a millisecond; ten times as many come both ways. */
static void
overload_is_dropped_at_the_queue_of_the_port_it_came_by(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){
		.local = ", \"rate\": 1000000",
		.more = ", \"app_queue\": {\"size\": 64}",
	});
	struct gb_flow flow = gb_flow(40000, 6379);
	uint64_t dropped;

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		pour(gb, &flow, GB_CLIENT, 23);
		pour(gb, &flow, GB_SERVER, 23);
		gb_time.now_ns += GB_MS;
	}
	dropped = port_reason(gb, GB_WIRE, BS_REASON_APP_QUEUE_FULL);
	assert_in_range(dropped, 1900, 2100); /* 2300 less 230 and what the queue holds */
	assert_int_equal(port_reason(gb, GB_LOCAL, BS_REASON_APP_QUEUE_FULL), 0);
	assert_int_equal(gb_drain(gb, GB_WIRE), 2300);
	gb_run(gb, gb_time.now_ns + 100 * GB_MS, GB_MS);
	assert_int_equal(gb_snapshot(gb)->queued, 0);
	assert_int_equal(gb_drain(gb, GB_LOCAL), 2300 - dropped);
	gb_close(gb);
}

/* P03: a ring of 64, 128 requests: each that is dropped is told of with its RPC, none is leaked. */
static void
each_request_beyond_a_full_queue_is_an_rpc_that_was_dropped_there(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){
		.room = {[GB_LOCAL] = 1},
		.more = ", \"app_queue\": {\"size\": 64}",
	});
	const uint16_t in = gb_buffer(gb, "kv.app.in");
	struct frame frame;
	unsigned told = 0;

	(void)state;
	gb_connect(gb);
	gb_arp(&frame);
	gb_inject(gb, GB_WIRE, &frame);
	gb_inject(gb, GB_WIRE, &frame);
	gb_turn(gb); /* one fills the port, one is in hand */
	for (uint16_t i = 0; i < 128; i++) {
		struct gb_flow flow = gb_flow((uint16_t)(40000 + i), 6379);

		gb_message(&frame, &flow, GB_CLIENT, i, 100);
		gb_inject(gb, GB_WIRE, &frame);
	}
	for (unsigned i = 0; i < 4; i++)
		gb_turn(gb);
	assert_int_equal(gb_reason(gb, BS_REASON_APP_QUEUE_FULL), 64);
	assert_int_equal(gb_snapshot(gb)->queued, 65);
	assert_balance(gb);
	gb_run(gb, GB_T0 + 30 * GB_MS, 50 * GB_US);
	bs_dataplane_finish(gb->dataplane, gb_time.now_ns);
	gb_collect(gb, 4);
	for (unsigned i = 0; i < gb_record_count(gb, BS_REC_RPC); i++) {
		const struct bs_rpc_view rpc = gb_rpc(gb, i);

		told += gb_event(&rpc, BS_CAUSE_DROP, in) != NULL;
	}
	assert_int_equal(told, 64);
	gb_close(gb);
}

static void
what_a_port_refuses_is_queued_and_goes_on_when_it_takes_again(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.room = {4, 4}});
	struct gb_flow flow = gb_flow(40000, 6379);
	unsigned out[2] = {0, 0};

	(void)state;
	gb_handshake(gb, &flow);
	pour(gb, &flow, GB_CLIENT, 200);
	pour(gb, &flow, GB_SERVER, 100);
	assert_int_equal(gb_snapshot(gb)->ports[GB_WIRE].queued, 196);
	assert_int_equal(gb_snapshot(gb)->ports[GB_LOCAL].queued, 96);
	for (unsigned i = 0; i < 60; i++) {
		out[GB_LOCAL] += gb_drain(gb, GB_LOCAL);
		out[GB_WIRE] += gb_drain(gb, GB_WIRE);
		gb_turn(gb);
		assert_balance(gb);
	}
	assert_int_equal(out[GB_LOCAL], 200);
	assert_int_equal(out[GB_WIRE], 100);
	gb_close(gb);
}

/* --- stopped and started ------------------------------------------------------------------- */

static void
stop(const struct gb *gb, unsigned port)
{
	assert_int_equal(rte_eth_dev_stop(gb->port[port]), 0);
}

static void
start(const struct gb *gb, unsigned port)
{
	assert_int_equal(rte_eth_dev_start(gb->port[port]), 0);
}

/* Either port is stopped while packets come by both, and started again. */
static void
a_port_that_is_stopped_and_started_goes_on(void **state)
{
	(void)state;
	for (unsigned port = 0; port < 2; port++) {
		struct gb *gb = gb_open(NULL);
		struct gb_flow flow = gb_flow(40000, 6379);

		gb_handshake(gb, &flow);
		assert_serves(gb, &flow, 1);
		pour(gb, &flow, port, 10);
		assert_int_equal(gb_drain(gb, !port), 10);
		stop(gb, port);
		pour(gb, &flow, port, 10);  /* lie in its ring */
		pour(gb, &flow, !port, 70); /* it takes none */
		gb_run(gb, gb_time.now_ns + 5 * GB_MS, 50 * GB_US);
		assert_balance(gb);
		assert_int_equal(gb_drain(gb, !port), 0);
		assert_int_equal(gb_drain(gb, port), 0);
		assert_int_equal(gb_snapshot(gb)->ports[!port].queued, 70);
		assert_false(gb_snapshot(gb)->ports[port].link_up);
		start(gb, port);
		for (unsigned i = 0; i < 4; i++)
			gb_turn(gb);
		assert_balance(gb);
		assert_int_equal(gb_drain(gb, !port), 10);
		assert_int_equal(gb_drain(gb, port), 70);
		assert_true(gb_snapshot(gb)->ports[port].link_up);
		assert_serves(gb, &flow, 2);
		gb_close(gb);
	}
}

static void
packets_go_on_when_a_link_was_down(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379);

	(void)state;
	gb_handshake(gb, &flow);
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(rte_eth_dev_set_link_down(gb->port[GB_LOCAL]), 0);
		pour(gb, &flow, GB_CLIENT, 40);
		assert_false(gb_snapshot(gb)->ports[GB_LOCAL].link_up);
		assert_int_equal(rte_eth_dev_set_link_up(gb->port[GB_LOCAL]), 0);
		pour(gb, &flow, GB_SERVER, 40);
		gb_drain(gb, GB_WIRE);
		gb_drain(gb, GB_LOCAL);
		assert_serves(gb, &flow, i);
	}
	gb_close(gb);
}

/* What is queued for a port that was stopped and is never started again. */
static void
the_end_while_a_port_is_stopped_is_accounted_for(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379);

	(void)state;
	gb_handshake(gb, &flow);
	stop(gb, GB_LOCAL);
	pour(gb, &flow, GB_CLIENT, 50);
	bs_dataplane_finish(gb->dataplane, gb_time.now_ns);
	assert_balance(gb);
	assert_int_equal(port_reason(gb, GB_WIRE, BS_REASON_TX_REFUSED), 32);
	assert_int_equal(port_reason(gb, GB_WIRE, BS_REASON_SHUTDOWN), 18);
	start(gb, GB_LOCAL);
	gb_close(gb);
}

/* --- between lcores -------------------------------------------------------------------------- */

static void
packets_between_lcores_are_queued_and_at_the_end_ended(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.lcores = 2});
	uint64_t handed;

	(void)state;
	for (uint16_t i = 0; i < 64; i++) {
		struct gb_flow flow = gb_flow((uint16_t)(40000 + i * 997), 6379);
		struct frame frame;

		gb_ack(&frame, &flow, GB_CLIENT);
		gb_inject(gb, GB_WIRE, &frame);
	}
	/* lcore 0 polls the wire; lcore 1, which owns half of the flows, does nothing */
	bs_lcore_turn(gb->dataplane->lcores[0]);
	bs_lcore_turn(gb->dataplane->lcores[0]);
	assert_balance(gb);
	handed = gb_snapshot(gb)->ports[GB_WIRE].handed_over;
	assert_in_range(handed, 16, 48);
	assert_int_equal(gb_snapshot(gb)->ports[GB_WIRE].queued, 64);
	assert_int_equal(gb_snapshot(gb)->handover[BS_HANDOVER_HANDED_OVER], handed);
	bs_dataplane_finish(gb->dataplane, gb_time.now_ns);
	assert_balance(gb);
	assert_int_equal(port_reason(gb, GB_WIRE, BS_REASON_SHUTDOWN), 64);
	gb_close(gb);
}

/* --- pool ----------------------------------------------------------------------------------- */

/* Every mbuf is in somebody's hands: what is in ours still goes, what comes has its turn later. */
static void
an_empty_pool_does_not_stop_what_is_in_flight(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.room = {[GB_LOCAL] = 4}});
	struct gb_flow flow = gb_flow(40000, 6379);
	struct rte_mbuf **all = calloc(gb->pool_free, sizeof(all[0]));
	unsigned held = 0, out = 0;

	(void)state;
	assert_non_null(all);
	gb_handshake(gb, &flow);
	pour(gb, &flow, GB_CLIENT, 100);
	while (held < gb->pool_free && (all[held] = rte_pktmbuf_alloc(gb->dataplane->pool)) != NULL)
		held++;
	assert_int_equal(rte_mempool_avail_count(gb->dataplane->pool), 0);
	for (unsigned i = 0; i < 60; i++) {
		out += gb_drain(gb, GB_LOCAL);
		gb_turn(gb);
		assert_balance(gb);
	}
	assert_int_equal(out, 100);
	rte_pktmbuf_free_bulk(all, held);
	free(all);
	assert_serves(gb, &flow, 1);
	gb_close(gb);
}

/* --- injected ------------------------------------------------------------------------------- */

static const struct gb_setup faults = {.more = ", \"debug\": {\"faults\": true}"};

static void
packets_that_a_fault_drops_are_counted_and_told_as_that(void **state)
{
	struct gb *gb = gb_open(&faults);
	struct gb_flow flow = gb_flow(40000, 6379);
	const uint16_t in = gb_buffer(gb, "kv.app.in");
	const unsigned detail = BS_DETAIL_FIRST_REASON + BS_REASON_FAULT;
	const struct bs_rec_event *event;
	struct bs_rpc_view rpc;
	struct frame frame;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	assert_int_equal(bs_dataplane_fault(gb->dataplane, "drop", ""), -EINVAL);
	assert_int_equal(bs_dataplane_fault(gb->dataplane, "drop", "0"), -EINVAL);
	assert_int_equal(bs_dataplane_fault(gb->dataplane, "drop", "-1"), -EINVAL);
	assert_int_equal(bs_dataplane_fault(gb->dataplane, "drop", "1x"), -EINVAL);
	assert_int_equal(bs_dataplane_fault(gb->dataplane, "drop", "65536"), -EINVAL);
	assert_int_equal(bs_dataplane_fault(gb->dataplane, "drop", "1"), 0);
	/* what is nobody's is left alone */
	gb_arp(&frame);
	gb_pass(gb, GB_WIRE, &frame);
	assert_int_equal(gb_drain(gb, GB_LOCAL), 1);
	gb_message(&frame, &flow, GB_CLIENT, 7, 100);
	gb_pass(gb, GB_WIRE, &frame);
	assert_int_equal(gb_drain(gb, GB_LOCAL), 0);
	assert_int_equal(port_reason(gb, GB_WIRE, BS_REASON_FAULT), 1);
	assert_balance(gb);
	gb_run(gb, GB_T0 + 30 * GB_MS, 50 * GB_US);
	flow.next[GB_CLIENT] -= 100;
	assert_serves(gb, &flow, 7);
	gb_collect(gb, 1);
	rpc = gb_rpc(gb, 0);
	gb_assert_parts(&rpc, {30 * GB_MS, in, BS_CAUSE_DROP, (uint8_t)detail},
		{SERVICE_NS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0});
	event = gb_episode(gb, BS_CAUSE_DROP, in, 0);
	assert_non_null(event);
	assert_int_equal(event->detail, detail);
	assert_int_equal(event->count, 1);
	gb_close(gb);
}

static void
a_fault_that_holds_the_lcore_loses_nothing(void **state)
{
	struct gb *gb = gb_open(&faults);
	struct gb_flow flow = gb_flow(40000, 6379);

	(void)state;
	gb_handshake(gb, &flow);
	assert_int_equal(bs_dataplane_fault(gb->dataplane, "stall", "20ms"), 0);
	gb_time.step_ns = 10 * GB_US;
	pour(gb, &flow, GB_CLIENT, 64);
	gb_time.step_ns = 0;
	assert_int_equal(gb_drain(gb, GB_LOCAL), 64);
	assert_serves(gb, &flow, 1);
	gb_close(gb);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		GB_TEST(overload_is_dropped_at_the_queue_of_the_port_it_came_by),
		GB_TEST(each_request_beyond_a_full_queue_is_an_rpc_that_was_dropped_there),
		GB_TEST(what_a_port_refuses_is_queued_and_goes_on_when_it_takes_again),
		GB_TEST(a_port_that_is_stopped_and_started_goes_on),
		GB_TEST(packets_go_on_when_a_link_was_down),
		GB_TEST(the_end_while_a_port_is_stopped_is_accounted_for),
		GB_TEST(packets_between_lcores_are_queued_and_at_the_end_ended),
		GB_TEST(an_empty_pool_does_not_stop_what_is_in_flight),
		GB_TEST(packets_that_a_fault_drops_are_counted_and_told_as_that),
		GB_TEST(a_fault_that_holds_the_lcore_loses_nothing),
	};

	return cmocka_run_group_tests_name(
		"graybox_fault", tests, gb_group_setup, gb_group_teardown);
}
