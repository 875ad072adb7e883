/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watch over a real dataplane: what it reads of ports, lcores and pool, and
 * that what it tells reaches the analyzer. What it makes of counters is in
 * test/unit/watch_test.c.
 */
#include "gb_frames.h"
#include "gb_records.h"

#include <errno.h>
#include <pcap.h>
#include <rte_mempool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "watch_ports.h"

static struct bs_watch *watch;

static int
clean(void **state)
{
	bs_watch_destroy(watch);
	watch = NULL;
	return gb_clean(state);
}
#define TEST(function) cmocka_unit_test_teardown(function, clean)

static void
begin(struct gb *gb)
{
	gb_connect(gb);
	watch = bs_watch_ports(gb->dataplane, gb_time.now_ns);
	assert_non_null(watch);
}

/* A second in which the lcores turn a few times, and the look at its end. */
static void
second(struct gb *gb)
{
	gb_run(gb, gb_time.now_ns + GB_S, 90 * GB_US); /* longer steps are hangs */
	bs_watch_step(watch, gb_time.now_ns);
	gb_collect(gb, 1);
}

static uint64_t
found(unsigned port, enum bs_finding finding)
{
	struct bs_watched_port shown;

	bs_watch_port(watch, port, &shown);
	return shown.found[finding].count;
}

static void
pour(const struct gb *gb, struct gb_flow *flow, unsigned from, unsigned n)
{
	struct frame frame;

	for (unsigned i = 0; i < n; i++) {
		gb_ack(&frame, flow, from);
		gb_inject(gb, from, &frame);
		if (i % BS_BURST == BS_BURST - 1 || i == n - 1)
			gb_turn(gb);
	}
}

/* A request in two segments, of which the first does not come; and comes at last. */
static void
request_with_a_hole(const struct gb *gb, struct gb_flow *flow, uint64_t resend_ns)
{
	struct frame whole, frame;
	struct gb_flow apart = *flow;

	gb_message(&whole, &apart, GB_CLIENT, 7, 1200);
	gb_tcp(&frame, flow,
		&(struct gb_tcp){.from = GB_CLIENT,
			.flags = BS_TCP_ACK | BS_TCP_PSH,
			.seq = 600,
			.payload = &whole.bytes[whole.n - 600],
			.payload_bytes = 600});
	gb_pass(gb, GB_WIRE, &frame);
	gb_run(gb, gb_time.now_ns + resend_ns, GB_MS);
	gb_data(&frame, flow, GB_CLIENT, &whole.bytes[whole.n - 1200], 600);
	gb_pass(gb, GB_WIRE, &frame);
	flow->next[GB_CLIENT] += 600;
}

static void
answer(struct gb *gb, struct gb_flow *flow)
{
	struct frame frame;

	gb_message(&frame, flow, GB_SERVER, 7, 60);
	gb_pass(gb, GB_LOCAL, &frame);
	gb_ack(&frame, flow, GB_CLIENT);
	gb_pass(gb, GB_WIRE, &frame);
	gb_collect(gb, 1);
}

/* P04: the device counts nothing at all; a flow says that a packet is missing. */
static void
a_loss_that_no_counter_shows_was_before_us_and_is_its_rpcs(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct bs_rpc_view rpc;

	(void)state;
	begin(gb);
	gb_handshake(gb, &flow);
	second(gb);
	second(gb);
	request_with_a_hole(gb, &flow, 200 * GB_MS);
	answer(gb, &flow);
	second(gb);
	rpc = gb_rpc(gb, 0);
	gb_assert_parts(&rpc, {200 * GB_MS, BS_BUFFER_NET_REQUEST_BEFORE, BS_CAUSE_DROP, 0});
	assert_int_equal(gb_snapshot(gb)->ports[GB_WIRE].gaps, 1);
	assert_int_equal(gb_snapshot(gb)->ports[GB_WIRE].lost_before, 1);
	assert_int_equal(gb_snapshot(gb)->ports[GB_WIRE].rx_missed, 0);
	assert_int_equal(found(GB_WIRE, BS_FINDING_LOST_BEFORE), 1);
	assert_int_equal(found(GB_LOCAL, BS_FINDING_LOST_BEFORE), 0);
	gb_close(gb);
}

/* P02: it has room for four, of which none is reclaimed; then it goes on. */
static void
a_port_that_reclaims_nothing_is_told_as_stuck_until_it_does(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.room = {[GB_LOCAL] = 4}});
	struct gb_flow flow = gb_flow(40000, 6379);
	const uint16_t tx = gb_buffer(gb, "local.tx");
	const struct bs_rec_event *event;
	uint64_t t;

	(void)state;
	begin(gb);
	gb_handshake(gb, &flow);
	pour(gb, &flow, GB_CLIENT, 40);
	second(gb);
	t = gb_time.now_ns;
	second(gb);
	event = gb_episode(gb, BS_CAUSE_HANG, tx, 0);
	assert_non_null(event);
	assert_int_equal(event->detail, BS_DETAIL_UNRECLAIMED);
	assert_int_equal(event->t_begin, t);
	assert_int_equal(event->t_end, 0);
	assert_int_equal(found(GB_LOCAL, BS_FINDING_TX_STUCK), 1);
	/* not a hang of the lcore */
	assert_null(gb_episode(gb, BS_CAUSE_HANG, gb_buffer(gb, "kv.app.in"), 0));
	for (unsigned i = 0; i < 12; i++) {
		gb_drain(gb, GB_LOCAL);
		gb_turn(gb);
	}
	second(gb);
	event = gb_episode(gb, BS_CAUSE_HANG, tx, 1);
	assert_non_null(event);
	assert_int_equal(event->t_begin, t);
	assert_int_equal(event->t_end, gb_time.now_ns);
	gb_close(gb);
}

/* P02: a slow port, and one that our own rate holds back. */
static void
a_slow_port_and_one_held_by_its_rate_are_not_stuck(void **state)
{
	struct gb *gb = gb_open(
		&(struct gb_setup){.room = {[GB_LOCAL] = 4}, .wire = ", \"rate\": 1000000"});
	struct gb_flow flow = gb_flow(40000, 6379);

	(void)state;
	begin(gb);
	gb_handshake(gb, &flow);
	pour(gb, &flow, GB_CLIENT, 200);
	for (unsigned i = 0; i < 5; i++) {
		pour(gb, &flow, GB_SERVER, 500);
		gb_drain(gb, GB_LOCAL);
		second(gb);
	}
	assert_int_equal(found(GB_LOCAL, BS_FINDING_TX_STUCK), 0);
	assert_int_equal(found(GB_WIRE, BS_FINDING_TX_STUCK), 0);
	for (unsigned i = 0; i < 60; i++) {
		gb_drain(gb, GB_LOCAL);
		gb_turn(gb);
	}
	gb_run(gb, gb_time.now_ns + 2 * GB_S, GB_MS);
	gb_close(gb);
}

/* P26: its descriptor says that packets are there, and polling brings none. */
static void
a_port_whose_descriptor_stays_readable_is_told_as_silent(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct bs_port *port = &gb->dataplane->ports[GB_WIRE];
	const struct bs_rec_event *event;
	struct frame frame;
	int fd = eventfd(1, 0);

	(void)state;
	assert_true(fd >= 0);
	port->wait_fds[0] = fd;
	port->wait_fd_count = 1;
	begin(gb);
	second(gb);
	second(gb);
	event = gb_episode(gb, BS_CAUSE_HANG, gb_buffer(gb, "wire.rx"), 0);
	assert_non_null(event);
	assert_int_equal(event->detail, BS_DETAIL_UNFILLED);
	assert_int_equal(event->t_end, 0);
	assert_int_equal(found(GB_WIRE, BS_FINDING_RX_SILENT), 1);
	gb_arp(&frame);
	gb_inject(gb, GB_WIRE, &frame);
	second(gb);
	event = gb_episode(gb, BS_CAUSE_HANG, gb_buffer(gb, "wire.rx"), 1);
	assert_non_null(event);
	assert_int_equal(event->t_end, gb_time.now_ns);
	close(fd);
	gb_close(gb);
}

/* --- the pool ------------------------------------------------------------------------ */

/* P01, P28: the port takes none, the queue of a lower class fills: it and its class are named. */
static void
a_queue_that_fills_the_pool_is_named_with_its_class(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){
		.room = {[GB_LOCAL] = 4},
		.more = ", \"app_queue\": {\"size\": 4096}",
		.services = "{\"name\": \"kv\", \"address\": \"10.0.0.2\", \"port\": 6379, "
			    "\"protocol\": \"unit\"},"
			    "{\"name\": \"bulk\", \"address\": \"10.0.0.2\", \"port\": 80, "
			    "\"protocol\": \"unit\", \"class\": {\"in\": 1, \"out\": 1}}",
	});
	struct gb_flow flow = gb_flow(40000, 80);
	const uint16_t in = gb_buffer(gb, "bulk.app.in");
	const struct bs_rec_event *event;
	struct bs_watched_pool pool;

	(void)state;
	begin(gb);
	gb_handshake(gb, &flow);
	pour(gb, &flow, GB_CLIENT, gb->pool_free / 4);
	second(gb);
	assert_true(rte_mempool_avail_count(gb->dataplane->pool) > gb->pool_free / 2);
	event = gb_episode(gb, BS_CAUSE_PAUSE, BS_BUFFER_MEMPOOL, 0);
	assert_non_null(event);
	assert_int_equal(event->upstream, in);
	assert_int_equal(event->t_end, 0);
	assert_int_equal(event->count, gb->pool_free / 4);
	assert_int_equal(event->culprit_kind[0], BS_CULPRIT_BUFFER);
	assert_int_equal(event->culprits[0].id, in);
	bs_watch_pool(watch, &pool);
	assert_true(pool.holder_queues);
	assert_int_equal(pool.holder_class, 1);
	assert_int_equal(pool.blocked_by, gb_buffer(gb, "local.tx"));
	assert_int_equal(pool.size, gb->pool_free);
	for (unsigned i = 0; i < gb->pool_free; i++) {
		gb_drain(gb, GB_LOCAL);
		gb_turn(gb);
	}
	second(gb);
	event = gb_episode(gb, BS_CAUSE_PAUSE, BS_BUFFER_MEMPOOL, 1);
	assert_non_null(event);
	assert_int_equal(event->t_end, gb_time.now_ns);
	gb_close(gb);
}

#define CAPTURE_BYTES 64

/* Writes what a port is to bring: one frame after the other. */
static pcap_dumper_t *
capture_begin(pcap_t *pcap, char name[CAPTURE_BYTES])
{
	pcap_dumper_t *dumper;

	snprintf(name, CAPTURE_BYTES, "/tmp/graybox-watch.%d.pcap", (int)getpid());
	dumper = pcap_dump_open(pcap, name);
	assert_non_null(dumper);
	return dumper;
}

static void
capture_add(pcap_dumper_t *dumper, const struct frame *frame)
{
	const struct pcap_pkthdr header = {.caplen = (uint32_t)frame->n, .len = (uint32_t)frame->n};

	pcap_dump((uint8_t *)dumper, &header, frame->bytes);
}

/* Fillers, then a request in two segments, of which the first is sent again. */
static void
write_capture(struct gb_flow *flow, unsigned fillers, char name[CAPTURE_BYTES])
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, 65535);
	pcap_dumper_t *dumper = capture_begin(pcap, name);
	struct frame frame;
	uint8_t message[1200] = {0, 0, 4, 0xb0, 0, 0, 0, 7};

	for (unsigned i = 0; i < fillers; i++) {
		if (i == 0)
			gb_message(&frame, flow, GB_CLIENT, 1, 100); /* where its stream is */
		else
			gb_ack(&frame, flow, GB_CLIENT);
		capture_add(dumper, &frame);
	}
	gb_data(&frame, flow, GB_CLIENT, message, 600);
	capture_add(dumper, &frame);
	gb_data(&frame, flow, GB_CLIENT, message + 600, 600);
	capture_add(dumper, &frame);
	flow->next[GB_CLIENT] -= 1200;
	gb_data(&frame, flow, GB_CLIENT, message, 600);
	capture_add(dumper, &frame);
	flow->next[GB_CLIENT] += 600;
	pcap_dump_close(dumper);
	pcap_close(pcap);
}

/*
 * P01: the service's port keeps all that it was given, until there is no mbuf to
 * receive into. That is told of the pool and of who has it, and the request that
 * was lost is no loss of the network.
 */
static void
mbufs_that_a_port_keeps_are_its_own_and_then_the_pool_drops(void **state)
{
	char name[CAPTURE_BYTES], device[CAPTURE_BYTES + 40];
	struct gb_flow flow = gb_flow(40000, 6379);
	struct gb *gb = gb_open(NULL);
	const unsigned fillers = gb->pool_free;
	const struct bs_rec_event *event;
	struct gb_flow sent = flow;
	uint64_t t;

	(void)state;
	gb_close(gb); /* how many mbufs there will be */
	write_capture(&sent, fillers, name);
	snprintf(device, sizeof(device), "net_pcap_gb,rx_pcap=%s,tx_pcap=/dev/null", name);
	gb = gb_open(&(struct gb_setup){.wire_device = device});
	begin(gb);
	assert_int_equal(gb->pool_free, fillers);
	/* half of the pool in three seconds */
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned k = 0; k < fillers / 6 / BS_BURST; k++)
			gb_turn(gb);
		bs_watch_step(watch, gb_time.now_ns += GB_S);
	}
	gb_collect(gb, 1);
	t = gb_time.now_ns;
	event = gb_episode(gb, BS_CAUSE_PAUSE, BS_BUFFER_MEMPOOL, 0);
	assert_non_null(event);
	assert_int_equal(event->upstream, gb_buffer(gb, "local.tx"));
	assert_true(rte_mempool_avail_count(gb->dataplane->pool) > 0);
	while (rte_mempool_avail_count(gb->dataplane->pool) > 0)
		gb_turn(gb);
	gb_turn(gb); /* the first segment of the request */
	assert_int_equal(gb_snapshot(gb)->ports[GB_WIRE].rx_nombuf, 1);
	assert_null(gb_check_packets(gb));
	gb_drain(gb, GB_LOCAL);
	gb_turn(gb);
	assert_int_equal(gb_snapshot(gb)->ports[GB_WIRE].gaps, 1);
	bs_watch_step(watch, gb_time.now_ns += GB_S);
	gb_collect(gb, 1);
	event = gb_episode(gb, BS_CAUSE_DROP, BS_BUFFER_MEMPOOL, 0);
	assert_non_null(event);
	assert_int_equal(event->detail, BS_DETAIL_FIRST_REASON + BS_REASON_RX_NO_MBUF);
	assert_int_equal(event->count, 1);
	assert_int_equal(event->upstream, BS_BUFFER_NET_REQUEST_BEFORE);
	assert_int_equal(event->t_begin, t);
	assert_int_equal(found(GB_WIRE, BS_FINDING_NO_MBUF), 1);
	assert_int_equal(found(GB_WIRE, BS_FINDING_LOST_BEFORE), 0);
	assert_int_equal(found(GB_WIRE, BS_FINDING_MISSED), 0);
	gb_close(gb);
	remove(name);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_loss_that_no_counter_shows_was_before_us_and_is_its_rpcs),
		TEST(a_port_that_reclaims_nothing_is_told_as_stuck_until_it_does),
		TEST(a_slow_port_and_one_held_by_its_rate_are_not_stuck),
		TEST(a_port_whose_descriptor_stays_readable_is_told_as_silent),
		TEST(a_queue_that_fills_the_pool_is_named_with_its_class),
		TEST(mbufs_that_a_port_keeps_are_its_own_and_then_the_pool_drops),
	};

	return cmocka_run_group_tests_name(
		"graybox_watch", tests, gb_group_setup, gb_group_teardown);
}
