/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two lcores: lcore 0 polls the wire and drains toward it, lcore 1 the same on
 * the services' side. A flow has one owner, which may be either: packets are
 * handed over to it, and departures are told back to it.
 */
#include "gb_frames.h"
#include "gb_records.h"

#include <unistd.h>

#define SERVICE_NS (50 * GB_US)
#define HANDOVER_ROOM 1023u /* of a ring of 1024 */

static const struct gb_setup two_lcores = {.lcores = 2};

static void
turn_of(const struct gb *gb, unsigned lcore)
{
	bs_lcore_turn(gb->dataplane->lcores[lcore]);
}

static unsigned
flows_at(const struct gb *gb, unsigned lcore)
{
	return bs_tracker_flows(gb->dataplane->lcores[lcore]->tracker);
}

/* A connection, opened, that this lcore owns: seen by whose table it is in. */
static struct gb_flow
flow_owned_by(const struct gb *gb, unsigned owner)
{
	for (uint16_t port = 40000; port < 40200; port++) {
		struct gb_flow flow = gb_flow(port, 6379);
		const unsigned before = flows_at(gb, owner);

		gb_handshake(gb, &flow);
		if (flows_at(gb, owner) == before + 1)
			return flow;
	}
	fail_msg("no flow of lcore %u among 200", owner);
	return (struct gb_flow){0};
}

static void
answer(struct gb *gb, struct gb_flow *flow, uint32_t id)
{
	struct frame frame;

	gb_time.now_ns += SERVICE_NS;
	gb_message(&frame, flow, GB_SERVER, id, 60);
	gb_pass(gb, GB_LOCAL, &frame);
	gb_turn(gb);
	gb_ack(&frame, flow, GB_CLIENT);
	gb_pass(gb, GB_WIRE, &frame);
	gb_turn(gb);
	gb_collect(gb, 1);
}

static bool
bell_rang(const struct gb *gb, unsigned lcore)
{
	uint64_t rings;

	return read(gb->dataplane->lcores[lcore]->doorbell, &rings, sizeof(rings)) ==
	       (ssize_t)sizeof(rings);
}

/* --- owners -------------------------------------------------------------------------- */

static void
both_directions_of_a_flow_have_one_owner(void **state)
{
	struct gb *gb = gb_open(&two_lcores);
	const unsigned count = 60;

	(void)state;
	gb_connect(gb);
	for (unsigned i = 0; i < count; i++) {
		struct gb_flow flow = gb_flow((uint16_t)(1024 + i * 997), 6379);
		struct frame frame;

		flow.vlan = i % 3 == 1 ? 100 + i : 0;
		flow.address[GB_CLIENT] += i << 8;
		gb_handshake(gb, &flow);
		/* one flow, not one at each lcore */
		assert_int_equal(flows_at(gb, 0) + flows_at(gb, 1), i + 1);
		gb_message(&frame, &flow, GB_CLIENT, i, 100);
		gb_pass(gb, GB_WIRE, &frame);
		gb_turn(gb);
		answer(gb, &flow, i);
		assert_int_equal(gb_rpc(gb, i).rpc->outcome, BS_OUTCOME_ANSWERED);
		assert_int_equal(gb_rpc(gb, i).rpc->request_bytes, 100);
	}
	/* and the hash spreads them */
	assert_in_range(flows_at(gb, 0), count / 4, 3 * count / 4);
	assert_int_equal(gb_snapshot(gb)->track[BS_TRACK_ORPHANS], 0);
	gb_close(gb);
}

static void
ipv6_flows_have_one_owner_too(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){
		.lcores = 2,
		.services = "{\"name\": \"kv\", \"address\": \"2001:db8::2\", \"port\": 6379,"
			    " \"protocol\": \"unit\"}",
	});

	(void)state;
	gb_connect(gb);
	for (unsigned i = 0; i < 20; i++) {
		struct gb_flow flow = gb_flow((uint16_t)(1024 + i * 997), 6379);
		struct frame frame;

		flow.ip_version = 6;
		flow.address[GB_CLIENT] = 0x10000 + i;
		flow.address[GB_SERVER] = 2;
		gb_handshake(gb, &flow);
		assert_int_equal(flows_at(gb, 0) + flows_at(gb, 1), i + 1);
		gb_message(&frame, &flow, GB_CLIENT, i, 100);
		gb_pass(gb, GB_WIRE, &frame);
		gb_turn(gb);
		answer(gb, &flow, i);
		assert_int_equal(gb_rpc(gb, i).rpc->outcome, BS_OUTCOME_ANSWERED);
	}
	assert_in_range(flows_at(gb, 0), 1, 19);
	gb_close(gb);
}

static void
what_is_no_flow_stays_where_it_was_polled(void **state)
{
	struct gb *gb = gb_open(&two_lcores);
	struct frame frame;

	(void)state;
	gb_arp(&frame);
	for (unsigned port = 0; port < 2; port++) {
		gb_inject(gb, port, &frame);
		turn_of(gb, port);
		assert_int_equal(rte_ring_count(gb->dataplane->lcores[!port]->handover[port]), 0);
		gb_turn(gb);
		assert_int_equal(gb_drain(gb, !port), 1);
	}
	gb_close(gb);
}

static void
packets_of_a_flow_keep_their_order_through_the_handover(void **state)
{
	struct gb *gb = gb_open(&two_lcores);
	struct gb_flow flow = flow_owned_by(gb, 1);
	struct frame frame;
	uint32_t next = flow.next[GB_CLIENT];

	(void)state;
	for (unsigned i = 0; i < 500; i++) {
		gb_data(&frame, &flow, GB_CLIENT, "0123456789", 10);
		gb_inject(gb, GB_WIRE, &frame);
		if (i % 7 == 0)
			turn_of(gb, 0);
		if (i % 90 == 0)
			turn_of(gb, 1);
	}
	for (unsigned i = 0; i < 40; i++)
		gb_turn(gb);
	for (unsigned i = 0; i < 500; i++, next += 10) {
		assert_true(gb_take(gb, GB_LOCAL, &frame));
		assert_int_equal(gb_parse(&frame).seq, next);
	}
	gb_close(gb);
}

/* --- waits ------------------------------------------------------------------------------ */

static void
a_wait_for_the_owner_is_in_the_handover(void **state)
{
	struct gb *gb = gb_open(&two_lcores);
	struct gb_flow flow = flow_owned_by(gb, 1);
	struct bs_rpc_view rpc;
	struct frame frame;

	(void)state;
	gb_connect(gb);
	gb_turn(gb);
	gb_message(&frame, &flow, GB_CLIENT, 7, 100);
	gb_inject(gb, GB_WIRE, &frame);
	turn_of(gb, 0);
	gb_time.now_ns += 60 * GB_US;
	gb_turn(gb);
	answer(gb, &flow, 7);
	rpc = gb_rpc(gb, 0);
	gb_assert_parts(&rpc, {60 * GB_US, BS_BUFFER_HANDOVER, BS_CAUSE_CONTENTION, 0},
		{SERVICE_NS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0});
	gb_close(gb);
}

static void
an_owner_that_stalls_is_a_hang_of_the_handover(void **state)
{
	struct gb *gb = gb_open(&two_lcores);
	struct gb_flow flow = flow_owned_by(gb, 1);
	const struct bs_rec_event *event;
	struct bs_rpc_view rpc;
	struct frame frame;

	(void)state;
	gb_connect(gb);
	gb_turn(gb);
	gb_message(&frame, &flow, GB_CLIENT, 7, 100);
	gb_inject(gb, GB_WIRE, &frame);
	turn_of(gb, 0);
	for (unsigned i = 0; i < 400; i++) { /* 20 ms of lcore 0 alone */
		gb_time.now_ns += 50 * GB_US;
		turn_of(gb, 0);
	}
	gb_turn(gb);
	answer(gb, &flow, 7);
	rpc = gb_rpc(gb, 0);
	gb_assert_parts(&rpc, {20 * GB_MS, BS_BUFFER_HANDOVER, BS_CAUSE_HANG, BS_DETAIL_STALLED},
		{SERVICE_NS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0});
	event = gb_event(&rpc, BS_CAUSE_HANG, BS_BUFFER_HANDOVER);
	assert_non_null(event);
	assert_int_equal(event->blocking_ns, 20 * GB_MS);
	assert_int_equal(gb_snapshot(gb)->lcores[0].stalled_ns, 0);
	assert_int_equal(gb_snapshot(gb)->lcores[1].stalled_ns, 20 * GB_MS);
	gb_close(gb);
}

/* lcore 0 owns the flow, lcore 1 the way to the service, and is away for 20 ms. */
static void
a_departure_is_told_back_to_the_owner(void **state)
{
	struct gb *gb = gb_open(&two_lcores);
	struct gb_flow flow = flow_owned_by(gb, 0);
	const uint16_t in = gb_buffer(gb, "kv.app.in");
	struct bs_rpc_view rpc;
	struct frame frame;

	(void)state;
	gb_connect(gb);
	gb_turn(gb);
	gb_message(&frame, &flow, GB_CLIENT, 7, 100);
	gb_inject(gb, GB_WIRE, &frame);
	turn_of(gb, 0);
	for (unsigned i = 0; i < 400; i++) {
		gb_time.now_ns += 50 * GB_US;
		turn_of(gb, 0);
	}
	turn_of(gb, 1);
	assert_int_equal(gb_drain(gb, GB_LOCAL), 1);
	/* when lcore 0 hears of it does not matter */
	gb_time.now_ns += 50 * GB_US;
	gb_turn(gb);
	answer(gb, &flow, 7);
	rpc = gb_rpc(gb, 0);
	assert_int_equal(rpc.rpc->t_request_departure, GB_T0 + 20 * GB_MS);
	gb_assert_parts(&rpc, {20 * GB_MS, in, BS_CAUSE_HANG, BS_DETAIL_STALLED},
		{50 * GB_US + SERVICE_NS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0});
	assert_int_equal(gb_snapshot(gb)->lcores[1].stalled_ns, 20 * GB_MS);
	gb_close(gb);
}

static void
an_owner_that_does_not_poll_departures_costs_counted_ones(void **state)
{
	struct gb *gb = gb_open(&two_lcores);
	struct gb_flow flow = flow_owned_by(gb, 0);
	struct frame frame;
	const unsigned held = BS_NOTICES - 1, count = held + 40;

	(void)state;
	for (unsigned i = 0; i < count; i++) {
		gb_message(&frame, &flow, GB_CLIENT, i, 100);
		gb_inject(gb, GB_WIRE, &frame);
		if (i % 32 == 31 || i == count - 1) {
			/* what lcore 0 has been told is put aside unread */
			bs_ingress_poll(
				gb->dataplane->lcores[0], &gb->dataplane->lcores[0]->ingress[0]);
			turn_of(gb, 1);
		}
	}
	assert_int_equal(gb_drain(gb, GB_LOCAL), count);
	assert_int_equal(gb_snapshot(gb)->handover[BS_HANDOVER_DEPARTURES_LOST], 40);
	gb_turn(gb);
	gb_close(gb);
}

/* --- full, and asleep ---------------------------------------------------------------------- */

static void
packets_beyond_a_full_handover_are_counted_and_told(void **state)
{
	struct gb *gb = gb_open(&two_lcores);
	struct gb_flow flow = flow_owned_by(gb, 1);
	const struct bs_rec_event *event;
	struct frame frame;

	(void)state;
	gb_connect(gb);
	for (unsigned i = 0; i < HANDOVER_ROOM + 77; i++) {
		gb_ack(&frame, &flow, GB_CLIENT);
		gb_inject(gb, GB_WIRE, &frame);
	}
	for (unsigned i = 0; i < 40; i++)
		turn_of(gb, 0);
	assert_int_equal(gb_reason(gb, BS_REASON_HANDOVER_FULL), 77);
	assert_int_equal(gb_snapshot(gb)->queued, HANDOVER_ROOM);
	assert_null(gb_check_packets(gb));
	for (unsigned i = 0; i < 40; i++)
		turn_of(gb, 1);
	assert_int_equal(gb_drain(gb, GB_LOCAL), HANDOVER_ROOM);
	gb_run(gb, gb_time.now_ns + 12 * GB_MS, 50 * GB_US);
	gb_collect(gb, 1);
	event = gb_episode(gb, BS_CAUSE_DROP, BS_BUFFER_HANDOVER, 0);
	assert_non_null(event);
	assert_int_equal(event->count, 77);
	assert_int_equal(event->t_begin, GB_T0);
	assert_int_equal(event->t_end, GB_T0);
	assert_int_equal(event->detail, BS_DETAIL_FIRST_REASON + BS_REASON_HANDOVER_FULL);
	gb_close(gb);
}

/* The request finds the handover full, and comes again when that is empty. */
static void
a_request_dropped_between_lcores_is_no_loss_of_the_network(void **state)
{
	struct gb *gb = gb_open(&two_lcores);
	struct gb_flow flow = flow_owned_by(gb, 1);
	struct frame frame, request;
	struct bs_rpc_view rpc;

	(void)state;
	gb_connect(gb);
	for (unsigned i = 0; i < HANDOVER_ROOM; i++) {
		gb_ack(&frame, &flow, GB_CLIENT);
		gb_inject(gb, GB_WIRE, &frame);
	}
	for (unsigned i = 0; i < 40; i++)
		turn_of(gb, 0);
	gb_message(&request, &flow, GB_CLIENT, 7, 100);
	gb_inject(gb, GB_WIRE, &request);
	turn_of(gb, 0);
	assert_int_equal(gb_reason(gb, BS_REASON_HANDOVER_FULL), 1);
	assert_int_equal(gb_snapshot(gb)->ports[GB_WIRE].reasons[BS_REASON_HANDOVER_FULL], 1);
	for (unsigned i = 0; i < 40; i++)
		turn_of(gb, 1);
	assert_int_equal(gb_drain(gb, GB_LOCAL), HANDOVER_ROOM);
	gb_run(gb, GB_T0 + 200 * GB_MS, 50 * GB_US);
	gb_pass(gb, GB_WIRE, &request);
	gb_turn(gb);
	answer(gb, &flow, 7);
	rpc = gb_rpc(gb, 0);
	assert_int_equal(rpc.rpc->t_request_first, GB_T0);
	gb_assert_parts(&rpc,
		{200 * GB_MS, BS_BUFFER_HANDOVER, BS_CAUSE_DROP,
			BS_DETAIL_FIRST_REASON + BS_REASON_HANDOVER_FULL},
		{SERVICE_NS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0});
	gb_close(gb);
}

/* Both come to the owner in one turn: the drop, and behind it in the handover the resend. */
static void
a_drop_is_known_before_its_resend(void **state)
{
	struct gb *gb = gb_open(&two_lcores);
	struct gb_flow flow = flow_owned_by(gb, 1);
	struct frame frame, request;
	struct bs_rpc_view rpc;

	(void)state;
	gb_connect(gb);
	for (unsigned i = 0; i < HANDOVER_ROOM; i++) {
		gb_ack(&frame, &flow, GB_CLIENT);
		gb_inject(gb, GB_WIRE, &frame);
	}
	for (unsigned i = 0; i < 40; i++)
		turn_of(gb, 0);
	gb_message(&request, &flow, GB_CLIENT, 7, 100);
	gb_inject(gb, GB_WIRE, &request);
	turn_of(gb, 0);
	gb_time.now_ns += 80 * GB_US;
	turn_of(gb, 0);
	/* the owner makes room, but has not looked at what it was told */
	for (unsigned i = 0; i < 31; i++) {
		struct rte_mbuf *mbufs[BS_BURST];

		assert_int_equal(rte_ring_sc_dequeue_burst(gb->dataplane->lcores[1]->handover[0],
					 (void **)mbufs, BS_BURST, NULL),
			BS_BURST);
		rte_pktmbuf_free_bulk(mbufs, BS_BURST);
	}
	gb->dataplane->lcores[1]->accounts[GB_WIRE].taken_over += 31 * BS_BURST;
	bs_count_ended(gb->dataplane->lcores[1], GB_WIRE, BS_REASON_SHUTDOWN, 31 * BS_BURST);
	gb_inject(gb, GB_WIRE, &request);
	turn_of(gb, 0);
	turn_of(gb, 1);
	turn_of(gb, 1);
	assert_int_equal(gb_drain(gb, GB_LOCAL), HANDOVER_ROOM - 31 * BS_BURST + 1);
	answer(gb, &flow, 7);
	rpc = gb_rpc(gb, 0);
	gb_assert_parts(&rpc,
		{80 * GB_US, BS_BUFFER_HANDOVER, BS_CAUSE_DROP,
			BS_DETAIL_FIRST_REASON + BS_REASON_HANDOVER_FULL},
		{SERVICE_NS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0});
	gb_close(gb);
}

static void
a_sleeping_owner_is_woken_for_a_handover(void **state)
{
	struct gb *gb = gb_open(&two_lcores);
	struct gb_flow flow = flow_owned_by(gb, 1);
	struct frame frame;

	(void)state;
	gb_ack(&frame, &flow, GB_CLIENT);
	gb_inject(gb, GB_WIRE, &frame);
	turn_of(gb, 0);
	assert_false(bell_rang(gb, 1)); /* it is awake */
	gb->dataplane->lcores[1]->sleeping = 1;
	gb_ack(&frame, &flow, GB_CLIENT);
	gb_inject(gb, GB_WIRE, &frame);
	turn_of(gb, 0);
	assert_true(bell_rang(gb, 1));
	gb->dataplane->lcores[1]->sleeping = 0;
	gb_turn(gb);
	gb_close(gb);
}

static void
a_sleeping_drainer_is_woken_for_a_packet_to_send(void **state)
{
	struct gb *gb = gb_open(&two_lcores);
	struct gb_flow flow = flow_owned_by(gb, 0);
	struct frame frame;

	(void)state;
	gb->dataplane->lcores[1]->sleeping = 1;
	turn_of(gb, 0);
	assert_false(bell_rang(gb, 1));
	gb_ack(&frame, &flow, GB_CLIENT);
	gb_inject(gb, GB_WIRE, &frame);
	turn_of(gb, 0);
	assert_true(bell_rang(gb, 1));
	gb->dataplane->lcores[1]->sleeping = 0;
	gb_turn(gb);
	assert_int_equal(gb_drain(gb, GB_LOCAL), 1);
	gb_close(gb);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		GB_TEST(both_directions_of_a_flow_have_one_owner),
		GB_TEST(ipv6_flows_have_one_owner_too),
		GB_TEST(what_is_no_flow_stays_where_it_was_polled),
		GB_TEST(packets_of_a_flow_keep_their_order_through_the_handover),
		GB_TEST(a_wait_for_the_owner_is_in_the_handover),
		GB_TEST(an_owner_that_stalls_is_a_hang_of_the_handover),
		GB_TEST(a_departure_is_told_back_to_the_owner),
		GB_TEST(an_owner_that_does_not_poll_departures_costs_counted_ones),
		GB_TEST(packets_beyond_a_full_handover_are_counted_and_told),
		GB_TEST(a_request_dropped_between_lcores_is_no_loss_of_the_network),
		GB_TEST(a_drop_is_known_before_its_resend),
		GB_TEST(a_sleeping_owner_is_woken_for_a_handover),
		GB_TEST(a_sleeping_drainer_is_woken_for_a_packet_to_send),
	};

	return cmocka_run_group_tests_name(
		"graybox_lcores", tests, gb_group_setup, gb_group_teardown);
}
