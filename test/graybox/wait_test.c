/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits in an application queue: PAUSE (the port takes nothing, or its rate is
 * used up), CONGESTION (behind one's own service and class), CONTENTION (another
 * service of the same drainer goes first). Ports take time for each packet here,
 * so that being served behind others takes time.
 */
#include "gb_frames.h"
#include "gb_records.h"

#define SERVICE_NS (50 * GB_US)
#define ROOM 128u
#define TX_NS 2500u /* of a port, for a packet: a burst of 32 takes 80 us */

#define TWO_CLASSES                                                                                \
	"{\"name\": \"kv\", \"address\": \"10.0.0.2\", \"port\": 6379, \"protocol\": \"unit\","    \
	" \"class\": {\"in\": 1, \"out\": 1}},"                                                    \
	"{\"name\": \"hi\", \"address\": \"10.0.0.2\", \"port\": 80, \"protocol\": \"unit\"}"

/* Fills the tx ring toward the services with what is nobody's. */
static void
block(const struct gb *gb)
{
	struct frame frame;

	gb_arp(&frame);
	for (unsigned i = 0; i < ROOM; i++)
		gb_inject(gb, GB_WIRE, &frame);
	for (unsigned i = 0; i < ROOM / BS_BURST; i++)
		gb_turn(gb);
	assert_int_equal(rte_ring_count(gb->out[GB_LOCAL]), ROOM);
}

/* n packets of a flow that complete nothing. */
static void
pass_acks(const struct gb *gb, struct gb_flow *flow, unsigned n)
{
	struct frame frame;

	for (unsigned i = 0; i < n; i++) {
		gb_ack(&frame, flow, GB_CLIENT);
		gb_inject(gb, GB_WIRE, &frame);
	}
	for (unsigned i = 0; i < n; i += BS_BURST)
		gb_turn(gb);
}

static void
pass_request(struct gb *gb, struct gb_flow *flow, uint32_t id)
{
	struct frame frame;

	gb_message(&frame, flow, GB_CLIENT, id, 100);
	gb_pass(gb, GB_WIRE, &frame);
}

static void
answer(struct gb *gb, struct gb_flow *flow, uint32_t id)
{
	struct frame frame;

	gb_time.tx_ns = 0;
	gb_time.now_ns += SERVICE_NS;
	gb_message(&frame, flow, GB_SERVER, id, 60);
	gb_pass(gb, GB_LOCAL, &frame);
	gb_ack(&frame, flow, GB_CLIENT);
	gb_pass(gb, GB_WIRE, &frame);
	gb_collect(gb, 1);
}

/* --- pause ------------------------------------------------------------------------- */

static void
a_port_that_takes_nothing_is_a_pause_of_the_queue_before_it(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.room = {[GB_LOCAL] = ROOM}});
	struct gb_flow flow = gb_flow(40000, 6379);
	const uint16_t in = gb_buffer(gb, "kv.app.in");
	const struct bs_rec_event *event;
	struct bs_rpc_view rpc;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	block(gb);
	pass_request(gb, &flow, 7);
	gb_run(gb, GB_T0 + 150 * GB_US, 50 * GB_US);
	gb_collect(gb, 1);
	assert_null(gb_episode(gb, BS_CAUSE_PAUSE, in, 0));
	/* told while it lasts, once it is as long as detect.pause */
	gb_run(gb, GB_T0 + 250 * GB_US, 50 * GB_US);
	gb_collect(gb, 1);
	event = gb_episode(gb, BS_CAUSE_PAUSE, in, 0);
	assert_non_null(event);
	assert_int_equal(event->t_begin, GB_T0);
	assert_int_equal(event->t_end, 0);
	assert_int_equal(event->upstream, gb_buffer(gb, "local.tx"));
	assert_int_equal(gb_drain(gb, GB_LOCAL), ROOM);
	gb_run(gb, GB_T0 + 300 * GB_US, 50 * GB_US);
	answer(gb, &flow, 7);
	rpc = gb_rpc(gb, 0);
	gb_assert_parts(&rpc, {300 * GB_US, in, BS_CAUSE_PAUSE, 0},
		{SERVICE_NS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0});
	assert_int_equal(rpc.segments[0].quality, BS_QUALITY_EXACT);
	event = gb_event(&rpc, BS_CAUSE_PAUSE, in);
	assert_non_null(event);
	assert_int_equal(event->blocking_ns, 300 * GB_US);
	/* and when it is over */
	event = gb_episode(gb, BS_CAUSE_PAUSE, in, 1);
	assert_non_null(event);
	assert_int_equal(event->t_begin, GB_T0);
	assert_int_equal(event->t_end, GB_T0 + 300 * GB_US);
	assert_int_equal(event->blocking_ns, 300 * GB_US);
	assert_null(gb_episode(gb, BS_CAUSE_PAUSE, in, 2));
	assert_int_equal(gb_snapshot(gb)->lcores[0].pause_ns, 300 * GB_US);
	gb_close(gb);
}

/* 32 bits of nanoseconds are 4.29 s. */
static void
a_pause_of_six_seconds_is_one_of_six_seconds(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.room = {[GB_LOCAL] = ROOM}});
	struct gb_flow flow = gb_flow(40000, 6379);
	struct bs_rpc_view rpc;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	block(gb);
	pass_request(gb, &flow, 7);
	gb_run(gb, GB_T0 + 6 * GB_S, 90 * GB_US);
	gb_drain(gb, GB_LOCAL);
	gb_turn(gb);
	answer(gb, &flow, 7);
	rpc = gb_rpc(gb, 0);
	gb_assert_parts(&rpc, {6 * GB_S, gb_buffer(gb, "kv.app.in"), BS_CAUSE_PAUSE, 0},
		{SERVICE_NS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0});
	gb_close(gb);
}

static void
a_pause_below_its_threshold_is_in_the_parts_but_no_event(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.room = {[GB_LOCAL] = ROOM}});
	struct gb_flow flow = gb_flow(40000, 6379);
	const uint16_t in = gb_buffer(gb, "kv.app.in");
	struct bs_rpc_view rpc;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	block(gb);
	pass_request(gb, &flow, 7);
	gb_run(gb, GB_T0 + 150 * GB_US, 50 * GB_US);
	gb_drain(gb, GB_LOCAL);
	gb_run(gb, GB_T0 + 200 * GB_US - 1, 50 * GB_US);
	answer(gb, &flow, 7);
	rpc = gb_rpc(gb, 0);
	gb_assert_parts(&rpc, {200 * GB_US - 1, in, BS_CAUSE_PAUSE, 0},
		{SERVICE_NS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0});
	assert_int_equal(rpc.rpc->event_count, 0);
	assert_null(gb_episode(gb, BS_CAUSE_PAUSE, in, 0));
	gb_close(gb);
}

/*
 * 8 Mbit/s are 1 byte/us. An idle port may catch up for 2 ms and 2048 bytes: 4048. Four frames of
 * 1012 bytes use that up to the last byte; the next may go as soon as one more has come together.
 */
static void
a_rate_that_is_used_up_is_a_pause_until_there_is_credit(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.wire = ", \"rate\": \"8M\""});
	struct gb_flow flow = gb_flow(40000, 6379);
	const uint16_t out = gb_buffer(gb, "kv.app.out");
	const size_t bytes = 1012 - 54;
	struct bs_rpc_view rpc;
	struct frame frame;
	uint64_t t;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	gb_run(gb, GB_T0 + 10 * GB_MS, 50 * GB_US);
	gb_drain(gb, GB_WIRE);
	t = gb_time.now_ns;
	for (uint32_t id = 1; id <= 5; id++)
		pass_request(gb, &flow, id);
	for (uint32_t id = 1; id <= 5; id++) {
		gb_message(&frame, &flow, GB_SERVER, id, bytes);
		assert_int_equal(frame.n, 1012);
		gb_pass(gb, GB_LOCAL, &frame);
	}
	assert_int_equal(gb_drain(gb, GB_WIRE), 4);
	gb_time.now_ns = t + 999;
	gb_turn(gb);
	assert_int_equal(gb_drain(gb, GB_WIRE), 0);
	gb_time.now_ns = t + 1000;
	gb_turn(gb);
	assert_int_equal(gb_drain(gb, GB_WIRE), 1);
	gb_ack(&frame, &flow, GB_CLIENT);
	gb_pass(gb, GB_WIRE, &frame);
	gb_collect(gb, 1);
	rpc = gb_rpc(gb, 4);
	gb_assert_parts(&rpc, {1000, out, BS_CAUSE_PAUSE, 0});
	rpc = gb_rpc(gb, 3);
	assert_int_equal(rpc.rpc->segment_count, 0);
	gb_close(gb);
}

/* What happens while bs_lcore_run() runs in this thread. */
struct nap {
	const struct gb *gb;
	uint64_t t_end;
};

/* Whenever it has slept, the time of the credit has come. Once a packet is out, stop. */
static void
nap_goes_on(void *context)
{
	const struct nap *nap = context;
	struct bs_lcore *lcore = nap->gb->dataplane->lcores[0];

	if (lcore->sleeping && gb_time.now_ns < nap->t_end)
		gb_time.now_ns = nap->t_end;
	if (rte_ring_count(nap->gb->out[GB_WIRE]) > 4)
		lcore->stop = 1;
}

/* The lcore has nothing else to do meanwhile and sleeps: it is the rate that holds the packet up.
 */
static void
a_sleep_until_there_is_credit_is_a_pause(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.wire = ", \"rate\": \"8M\""});
	struct gb_flow flow = gb_flow(40000, 6379);
	const uint16_t out = gb_buffer(gb, "kv.app.out");
	struct nap nap = {.gb = gb};
	struct bs_rpc_view rpc;
	struct frame frame;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	gb_run(gb, GB_T0 + 10 * GB_MS, 50 * GB_US);
	gb_drain(gb, GB_WIRE);
	for (uint32_t id = 1; id <= 5; id++)
		pass_request(gb, &flow, id);
	for (uint32_t id = 1; id <= 5; id++) {
		/* 4048 bytes of credit: the fourth frame leaves a debt of 400, made up in 401 us */
		gb_message(&frame, &flow, GB_SERVER, id, (id == 4 ? 1412 : 1012) - 54);
		gb_pass(gb, GB_LOCAL, &frame);
	}
	assert_int_equal(rte_ring_count(gb->out[GB_WIRE]), 4);
	nap.t_end = gb_time.now_ns + 401 * GB_US;
	gb_time.on_read = nap_goes_on;
	gb_time.context = &nap;
	assert_int_equal(bs_lcore_run(gb->dataplane->lcores[0]), 0);
	gb_time.on_read = NULL;
	gb_ack(&frame, &flow, GB_CLIENT);
	gb_pass(gb, GB_WIRE, &frame);
	gb_collect(gb, 1);
	rpc = gb_rpc(gb, 4);
	gb_assert_parts(&rpc, {401 * GB_US, out, BS_CAUSE_PAUSE, 0});
	assert_int_equal(gb_snapshot(gb)->lcores[0].sleep_ns, 401 * GB_US);
	gb_close(gb);
}

/* Each turn adds what its time is worth, no matter how little: over a second the rate is the rate.
 */
static void
a_rate_holds_however_often_it_is_looked_at(void **state)
{
	static const uint64_t steps_ns[] = {1900, 7300, 99000};

	(void)state;
	for (unsigned i = 0; i < sizeof(steps_ns) / sizeof(steps_ns[0]); i++) {
		struct gb *gb = gb_open(&(struct gb_setup){.local = ", \"rate\": \"8M\""});
		struct gb_flow flow = gb_flow(40000, 6379);
		uint64_t bytes;

		gb_handshake(gb, &flow);
		gb_run(gb, GB_T0 + 10 * GB_MS, 50 * GB_US);
		/* more than it takes in 100 ms: 100 kB and what it may catch up */
		for (unsigned n = 0; n < 960; n += 96)
			pass_acks(gb, &flow, 96);
		gb_run(gb, GB_T0 + 20 * GB_MS, steps_ns[i]);
		bytes = gb->dataplane->lcores[0]->egress[1].tx_bytes;
		gb_run(gb, GB_T0 + 40 * GB_MS, steps_ns[i]);
		bytes = gb->dataplane->lcores[0]->egress[1].tx_bytes - bytes;
		/* 20 kB, give or take the burst of 32 at each end */
		assert_in_range(bytes, 20000 - 32 * 54, 20000 + 32 * 54);
		gb_close(gb);
	}
}

/* --- congestion and contention --------------------------------------------------------- */

/*
 * At T0 the port is blocked with 32 packets taken and 64 behind them, then the request. From
 * 100 us on it takes them, 80 us a burst.
 */
static void
wait_behind(struct gb *gb, struct gb_flow *others, struct gb_flow *flow)
{
	block(gb);
	pass_acks(gb, others, 96);
	pass_request(gb, flow, 7);
	gb_run(gb, GB_T0 + 100 * GB_US, 50 * GB_US);
	assert_int_equal(gb_drain(gb, GB_LOCAL), ROOM);
	gb_time.tx_ns = TX_NS;
	gb_turn(gb);
	assert_int_equal(gb_drain(gb, GB_LOCAL), 97);
	/* pause until the burst in hand is out; then two bursts of others; then itself */
	assert_int_equal(gb_time.now_ns, GB_T0 + 100 * GB_US + 97 * TX_NS);
}

static void
packets_of_the_same_service_ahead_are_congestion(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.room = {[GB_LOCAL] = ROOM},
		.more = ", \"detect\": {\"congestion\": \"162500ns\"}"});
	struct gb_flow flow = gb_flow(40000, 6379), others = gb_flow(40001, 6379);
	const uint16_t in = gb_buffer(gb, "kv.app.in");
	const struct bs_rec_event *event;
	struct bs_rpc_view rpc;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	gb_handshake(gb, &others);
	wait_behind(gb, &others, &flow);
	answer(gb, &flow, 7);
	rpc = gb_rpc(gb, 0);
	gb_assert_parts(&rpc, {100 * GB_US + 32 * TX_NS, in, BS_CAUSE_PAUSE, 0},
		{65 * TX_NS, in, BS_CAUSE_CONGESTION, 0},
		{SERVICE_NS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0});
	event = gb_event(&rpc, BS_CAUSE_CONGESTION, in);
	assert_non_null(event);
	assert_int_equal(event->blocking_ns, 65 * TX_NS);
	assert_int_equal(event->culprit_count, 1);
	assert_int_equal(event->culprit_kind[0], BS_CULPRIT_SERVICE);
	assert_int_equal(event->culprits[0].id, 0);
	assert_int_equal(event->culprits[0].ns, 65 * TX_NS);
	gb_close(gb);
}

static void
packets_of_a_class_that_goes_first_are_contention(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.room = {[GB_LOCAL] = ROOM},
		.services = TWO_CLASSES,
		.more = ", \"detect\": {\"contention\": \"160us\"}"});
	struct gb_flow flow = gb_flow(40000, 6379), others = gb_flow(40001, 80);
	const uint16_t in = gb_buffer(gb, "kv.app.in");
	const struct bs_rec_event *event;
	struct bs_rpc_view rpc;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	gb_handshake(gb, &others);
	wait_behind(gb, &others, &flow);
	answer(gb, &flow, 7);
	rpc = gb_rpc(gb, 0);
	gb_assert_parts(&rpc, {100 * GB_US + 32 * TX_NS, in, BS_CAUSE_PAUSE, 0},
		{64 * TX_NS, in, BS_CAUSE_CONTENTION, 0}, {TX_NS, in, BS_CAUSE_CONGESTION, 0},
		{SERVICE_NS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0});
	event = gb_event(&rpc, BS_CAUSE_CONTENTION, in);
	assert_non_null(event);
	assert_int_equal(event->blocking_ns, 64 * TX_NS);
	assert_int_equal(event->culprit_count, 1);
	assert_int_equal(event->culprit_kind[0], BS_CULPRIT_SERVICE);
	assert_int_equal(event->culprits[0].id, 1);
	gb_close(gb);
}

/*
 * Each look at the clock takes 60 us, for whatever the lcore does in between. The request is found
 * by the second look of its turn, 2 after the one that did not; once it is in its queue, the third
 * ends that, and it has left by the fourth. Nobody else was served: there is no culprit to name.
 */
static void
time_that_went_to_nobody_is_contention_without_a_culprit(void **state)
{
	struct gb *gb =
		gb_open(&(struct gb_setup){.more = ", \"detect\": {\"contention\": \"50us\"}"});
	struct gb_flow flow = gb_flow(40000, 6379);
	const uint16_t rx = gb_buffer(gb, "wire.rx"), in = gb_buffer(gb, "kv.app.in");
	const uint64_t look = 60 * GB_US;
	struct bs_rpc_view rpc;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	gb_time.step_ns = look;
	pass_request(gb, &flow, 7);
	gb_time.step_ns = 0;
	answer(gb, &flow, 7);
	rpc = gb_rpc(gb, 0);
	gb_assert_parts(&rpc, {look, rx, BS_CAUSE_CONGESTION, 0},
		{look, in, BS_CAUSE_CONTENTION, 0}, {look, in, BS_CAUSE_CONGESTION, 0},
		{look + SERVICE_NS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0});
	assert_int_equal(rpc.segments[1].culprit_kind, BS_CULPRIT_NONE);
	assert_int_equal(gb_event(&rpc, BS_CAUSE_CONTENTION, in)->culprit_count, 0);
	gb_close(gb);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		GB_TEST(a_port_that_takes_nothing_is_a_pause_of_the_queue_before_it),
		GB_TEST(a_pause_of_six_seconds_is_one_of_six_seconds),
		GB_TEST(a_pause_below_its_threshold_is_in_the_parts_but_no_event),
		GB_TEST(a_rate_that_is_used_up_is_a_pause_until_there_is_credit),
		GB_TEST(a_sleep_until_there_is_credit_is_a_pause),
		GB_TEST(a_rate_holds_however_often_it_is_looked_at),
		GB_TEST(packets_of_the_same_service_ahead_are_congestion),
		GB_TEST(packets_of_a_class_that_goes_first_are_contention),
		GB_TEST(time_that_went_to_nobody_is_contention_without_a_culprit),
	};

	return cmocka_run_group_tests_name(
		"graybox_wait", tests, gb_group_setup, gb_group_teardown);
}
