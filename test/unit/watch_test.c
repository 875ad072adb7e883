/* SPDX-License-Identifier: BSD-3-Clause */
/* What the watch makes of counters that a test gives it, a second after the other. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "watch.h"

#define SEC 1000000000ull
#define T0 (1700000000ull * SEC)
#define RX 40u
#define TX 41u
#define LOCAL_RX 42u
#define LOCAL_TX 43u
#define QUEUE 44u
#define EVENTS 64u
#define STATISTICS 8u

enum { WIRE, LOCAL };

/* Two ports, and what was told of them. */
static struct fake {
	struct bs_watch_reading port[2];
	struct bs_watch_pool pool;
	const char *names[STATISTICS];
	uint64_t values[STATISTICS];
	bool unreadable;
	struct bs_rec_event events[EVENTS];
	unsigned event_count;
	struct bs_watch *watch;
	uint64_t t;
} fake;

static void
give_port(void *context, unsigned port, struct bs_watch_reading *reading)
{
	(void)context;
	*reading = fake.port[port];
}

static unsigned
give_names(void *context, unsigned port, char (*names)[BS_WATCH_NAME_BYTES], unsigned max)
{
	unsigned n = 0;

	(void)context;
	for (; port == WIRE && n < STATISTICS && n < max && fake.names[n] != NULL; n++)
		snprintf(names[n], BS_WATCH_NAME_BYTES, "%s", fake.names[n]);
	return n;
}

static int
give_values(void *context, unsigned port, const uint64_t *ids, uint64_t *values, unsigned count)
{
	(void)context;
	assert_int_equal(port, WIRE);
	for (unsigned i = 0; i < count; i++) {
		assert_in_range(ids[i], 0, STATISTICS - 1);
		values[i] = fake.values[ids[i]];
	}
	return fake.unreadable ? -EIO : 0;
}

static void
give_pool(void *context, struct bs_watch_pool *pool)
{
	(void)context;
	*pool = fake.pool;
}

static void
take_event(void *context, const struct bs_rec_event *event)
{
	struct bs_rec_event copy = *event;
	size_t offset = 0;
	int error;

	(void)context;
	assert_non_null(bs_record_next(&copy, sizeof(copy), &offset, &error));
	assert_in_range(fake.event_count, 0, EVENTS - 1);
	fake.events[fake.event_count++] = *event;
}

static const struct bs_watch_ops ops = {
	.port = give_port,
	.names = give_names,
	.values = give_values,
	.pool = give_pool,
	.tell = take_event,
};

static struct bs_watch_port ports[2];

static int
setup(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	fake.t = T0;
	fake.port[WIRE].link_up = fake.port[LOCAL].link_up = true;
	fake.pool = (struct bs_watch_pool){.size = 1000, .in_use = 200};
	ports[WIRE] = (struct bs_watch_port){.driver = "net_ice",
		.rx_buffer = RX,
		.tx_buffer = TX,
		.before = BS_BUFFER_NET_REQUEST_BEFORE,
		.missed_observable = true};
	ports[LOCAL] = (struct bs_watch_port){.driver = "net_af_packet",
		.rx_buffer = LOCAL_RX,
		.tx_buffer = LOCAL_TX,
		.before = BS_BUFFER_NET_RESPONSE_BEFORE};
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	bs_watch_destroy(fake.watch);
	return 0;
}

static void
begin(void)
{
	fake.watch = bs_watch_create(&ops, ports, 2, fake.t);
	assert_non_null(fake.watch);
	assert_int_equal(fake.event_count, 0);
}

/*
 * A second passes, in which all lcores turn, and packets come by a port of which
 * none waits. What was told in it is all there is.
 */
static void
step(void)
{
	fake.event_count = 0;
	fake.t += SEC;
	for (unsigned i = 0; i < 2; i++) {
		fake.port[i].rx_turns += 100;
		fake.port[i].tx_turns += 100;
		fake.port[i].taken += fake.port[i].waits ? 0 : 10;
	}
	bs_watch_step(fake.watch, fake.t);
}

static uint64_t
found(unsigned port, enum bs_finding finding)
{
	struct bs_watched_port shown;

	bs_watch_port(fake.watch, port, &shown);
	return shown.found[finding].count;
}

static struct bs_watched_pool
pool_shown(void)
{
	struct bs_watched_pool shown;

	bs_watch_pool(fake.watch, &shown);
	return shown;
}

/* The one event that was told. */
static void
assert_told(unsigned type, unsigned buffer, unsigned detail, unsigned upstream, uint64_t t_begin,
	uint64_t t_end, unsigned count)
{
	const struct bs_rec_event *event = &fake.events[0];

	assert_int_equal(fake.event_count, 1);
	assert_int_equal(event->type, type);
	assert_int_equal(event->buffer, buffer);
	assert_int_equal(event->detail, detail);
	assert_int_equal(event->upstream, upstream);
	assert_int_equal(event->t_begin, t_begin);
	assert_int_equal(event->t_end, t_end);
	assert_int_equal(event->count, count);
	assert_int_equal(event->rpc_id, 0);
}

#define REASON(name) (BS_DETAIL_FIRST_REASON + BS_REASON_##name)

/* --- losses ------------------------------------------------------------------------- */

static void
nothing_is_told_while_nothing_is_counted(void **state)
{
	(void)state;
	fake.port[WIRE].missed = fake.port[WIRE].no_mbuf = fake.port[WIRE].errors = 132000000;
	begin();
	for (unsigned i = 0; i < 10; i++) {
		fake.port[WIRE].taken += 1000;
		fake.port[LOCAL].given += 1000;
		step();
		assert_int_equal(fake.event_count, 0);
	}
	for (unsigned i = 0; i < BS_FINDING_COUNT; i++)
		assert_int_equal(found(WIRE, i) + found(LOCAL, i), 0);
}

/* P06: three counters, three causes, three things to do. */
static void
each_counter_of_losses_is_a_cause_of_its_own(void **state)
{
	uint64_t *const counters[] = {
		&fake.port[WIRE].missed, &fake.port[WIRE].no_mbuf, &fake.port[WIRE].errors};
	static const struct {
		enum bs_finding finding;
		unsigned buffer, detail;
	} want[] = {
		{BS_FINDING_MISSED, RX, REASON(RX_MISSED)},
		{BS_FINDING_NO_MBUF, BS_BUFFER_MEMPOOL, REASON(RX_NO_MBUF)},
		{BS_FINDING_ERRORS, RX, REASON(RX_ERROR)},
	};

	(void)state;
	begin();
	for (unsigned i = 0; i < 3; i++) {
		*counters[i] += 7 + i;
		fake.port[WIRE].gaps++;
		step();
		assert_told(BS_CAUSE_DROP, want[i].buffer, want[i].detail,
			BS_BUFFER_NET_REQUEST_BEFORE, fake.t - SEC, fake.t, 7 + i);
		assert_int_equal(fake.events[0].quality, BS_QUALITY_ESTIMATED);
		assert_int_equal(found(WIRE, want[i].finding), 7 + i);
		for (unsigned k = 0; k < 3; k++) {
			if (k != i)
				assert_string_not_equal(bs_finding_remedy(want[i].finding),
					bs_finding_remedy(want[k].finding));
		}
	}
	assert_int_equal(found(WIRE, BS_FINDING_UNMATCHED), 0);
}

/* P06: on the service's side what is missing are responses. */
static void
losses_of_the_service_port_are_missing_in_responses(void **state)
{
	(void)state;
	begin();
	fake.port[LOCAL].no_mbuf = 3;
	fake.port[LOCAL].gaps = 1;
	step();
	assert_told(BS_CAUSE_DROP, BS_BUFFER_MEMPOOL, REASON(RX_NO_MBUF),
		BS_BUFFER_NET_RESPONSE_BEFORE, fake.t - SEC, fake.t, 3);
}

/* P06: a driver that puts a port's drops on queue 0 says nothing of queues. */
static void
queues_are_named_only_if_the_device_counts_by_queue(void **state)
{
	struct bs_watched_port shown;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		setup(NULL);
		ports[WIRE].by_queue = i == 1;
		begin();
		fake.port[WIRE].missed = 9;
		fake.port[WIRE].queue_missed[0] = 2;
		fake.port[WIRE].queue_missed[3] = 7;
		step();
		bs_watch_port(fake.watch, WIRE, &shown);
		assert_int_equal(shown.by_queue, i);
		assert_int_equal(shown.queue_missed[0], i * 2);
		assert_int_equal(shown.queue_missed[3], i * 7);
		bs_watch_destroy(fake.watch);
		fake.watch = NULL;
	}
}

/* P05: 2281 are missed, and no flow lacks a byte. */
static void
misses_without_a_gap_are_told_without_confidence_and_of_no_rpc(void **state)
{
	(void)state;
	begin();
	fake.port[WIRE].missed = 2281;
	fake.port[WIRE].taken = 6784279;
	step();
	assert_int_equal(fake.event_count, 0); /* the gap may show yet */
	assert_int_equal(found(WIRE, BS_FINDING_MISSED), 2281);
	step();
	assert_told(BS_CAUSE_DROP, RX, REASON(RX_MISSED), BS_BUFFER_NONE, fake.t - 2 * SEC,
		fake.t - SEC, 2281);
	assert_int_equal(fake.events[0].quality, BS_QUALITY_BOUND);
	assert_int_equal(found(WIRE, BS_FINDING_UNMATCHED), 2281);
	step();
	assert_int_equal(fake.event_count, 0);
}

/* P05 */
static void
a_gap_that_shows_a_second_later_matches(void **state)
{
	(void)state;
	begin();
	fake.port[WIRE].missed = 10;
	step();
	fake.port[WIRE].gaps = 1;
	step();
	assert_told(BS_CAUSE_DROP, RX, REASON(RX_MISSED), BS_BUFFER_NET_REQUEST_BEFORE,
		fake.t - 2 * SEC, fake.t - SEC, 10);
	assert_int_equal(found(WIRE, BS_FINDING_UNMATCHED), 0);
	/* and one that was there before its device counts */
	fake.port[WIRE].missed = 11;
	step();
	assert_told(BS_CAUSE_DROP, RX, REASON(RX_MISSED), BS_BUFFER_NET_REQUEST_BEFORE,
		fake.t - SEC, fake.t, 1);
}

/* P04: 100 packets are lost, and all counters stand still. */
static void
losses_that_no_counter_shows_were_before_us(void **state)
{
	(void)state;
	begin();
	for (unsigned i = 0; i < 4; i++)
		step();
	fake.port[WIRE].gaps = 1;
	step();
	assert_int_equal(found(WIRE, BS_FINDING_LOST_BEFORE), 0); /* perhaps only out of order */
	fake.port[WIRE].lost_before = 100;
	step();
	assert_int_equal(found(WIRE, BS_FINDING_LOST_BEFORE), 100);
	assert_int_equal(found(LOCAL, BS_FINDING_LOST_BEFORE), 0);
	assert_int_equal(found(WIRE, BS_FINDING_MISSED), 0);
	assert_int_equal(fake.event_count, 0);
}

static void
losses_that_a_counter_shows_were_not_before_us(void **state)
{
	(void)state;
	begin();
	step();
	step();
	fake.port[WIRE].missed = 100;
	fake.port[WIRE].gaps = 1;
	step();
	fake.port[WIRE].lost_before = 100; /* the resends come a second later */
	step();
	assert_int_equal(found(WIRE, BS_FINDING_LOST_BEFORE), 0);
}

static void
a_counter_of_missed_packets_that_the_driver_does_not_keep_is_not_read(void **state)
{
	(void)state;
	begin();
	fake.port[LOCAL].missed = 12345;
	step();
	step();
	assert_int_equal(found(LOCAL, BS_FINDING_MISSED), 0);
	assert_int_equal(fake.event_count, 0);
}

static void
counters_that_were_reset_count_from_there(void **state)
{
	(void)state;
	fake.port[WIRE].missed = 1000;
	begin();
	fake.port[WIRE].missed = 4;
	fake.port[WIRE].gaps = 1;
	step();
	assert_int_equal(found(WIRE, BS_FINDING_MISSED), 4);
	fake.port[WIRE].missed = 5;
	step();
	assert_int_equal(found(WIRE, BS_FINDING_MISSED), 5);
}

/* --- pause frames -------------------------------------------------------------------- */

/* P07: 132 million frames since boot, and none since we run. */
static void
pause_frames_of_before_are_none(void **state)
{
	struct bs_watched_port shown;

	(void)state;
	fake.names[0] = "rx_good_packets";
	fake.names[1] = "tx_xoff_packets";
	fake.names[2] = "rx_xoff_packets";
	fake.values[1] = fake.values[2] = 132000000;
	begin();
	step();
	bs_watch_port(fake.watch, WIRE, &shown);
	assert_true(shown.pause_received_observable && shown.pause_sent_observable);
	assert_int_equal(found(WIRE, BS_FINDING_PAUSE_SENT), 0);
	assert_int_equal(found(WIRE, BS_FINDING_PAUSE_RECEIVED), 0);
	assert_int_equal(fake.event_count, 0);
}

/* P07: who is slow is said by the direction. */
static void
pauses_sent_are_ours_and_pauses_received_are_the_peers(void **state)
{
	(void)state;
	fake.names[0] = "tx_xoff_packets";
	fake.names[1] = "rx_xoff_packets";
	fake.names[2] = "rx_xon_packets";
	fake.names[3] = "rx_priority3_xoff_packets";
	fake.values[0] = 132000000;
	begin();
	fake.values[0] += 21;
	step();
	assert_told(BS_CAUSE_PAUSE, BS_BUFFER_NET_REQUEST_BEFORE, 0, RX, fake.t - SEC, fake.t, 21);
	assert_int_equal(found(WIRE, BS_FINDING_PAUSE_SENT), 21);
	fake.values[1] = 5;
	fake.values[2] = 1000; /* the end of a pause is none */
	fake.values[3] = 2;
	step();
	assert_told(BS_CAUSE_PAUSE, TX, 0, BS_BUFFER_NONE, fake.t - SEC, fake.t, 7);
	assert_int_equal(found(WIRE, BS_FINDING_PAUSE_RECEIVED), 7);
	assert_int_equal(found(WIRE, BS_FINDING_PAUSE_SENT), 21);
}

/* P07: a driver without such counters, or with another's: not "none". */
static void
what_a_driver_does_not_count_is_not_observable(void **state)
{
	struct bs_watched_port shown;

	(void)state;
	snprintf(ports[WIRE].driver, sizeof(ports[WIRE].driver), "mlx5_pci");
	fake.names[0] = "rx_out_of_buffer";
	fake.names[1] = "rx_xoff_packets";
	begin();
	fake.values[0] = fake.values[1] = 10;
	step();
	bs_watch_port(fake.watch, WIRE, &shown);
	assert_false(shown.pause_received_observable || shown.pause_sent_observable);
	assert_int_equal(found(WIRE, BS_FINDING_PAUSE_RECEIVED), 0);
	bs_watch_port(fake.watch, LOCAL, &shown);
	assert_false(shown.pause_received_observable || shown.pause_sent_observable);
}

static void
a_second_in_which_they_cannot_be_read_is_caught_up_with(void **state)
{
	(void)state;
	fake.names[0] = "rx_xoff_packets";
	begin();
	fake.values[0] = 3;
	fake.unreadable = true;
	step();
	assert_int_equal(found(WIRE, BS_FINDING_PAUSE_RECEIVED), 0);
	fake.unreadable = false;
	fake.values[0] = 4;
	step();
	assert_int_equal(found(WIRE, BS_FINDING_PAUSE_RECEIVED), 4);
}

/* --- stalls -------------------------------------------------------------------------- */

/* P02: link and lcore are up, and the port neither takes nor gives back. */
static void
a_port_that_takes_nothing_though_all_is_up_is_stuck(void **state)
{
	uint64_t t;

	(void)state;
	begin();
	fake.port[WIRE].given = 8192;
	fake.port[WIRE].refuses = true;
	step();
	assert_int_equal(fake.event_count, 0); /* it took some, a while ago */
	t = fake.t;
	step();
	assert_told(BS_CAUSE_HANG, TX, BS_DETAIL_UNRECLAIMED, BS_BUFFER_NONE, t, 0, 1);
	assert_int_equal(found(WIRE, BS_FINDING_TX_STUCK), 1);
	step();
	assert_int_equal(fake.event_count, 0); /* it goes on */
	fake.port[WIRE].given++;
	step();
	assert_told(BS_CAUSE_HANG, TX, BS_DETAIL_UNRECLAIMED, BS_BUFFER_NONE, t, fake.t, 1);
	assert_int_equal(found(WIRE, BS_FINDING_TX_STUCK), 1);
}

/* P02: what looks like it and is something else. */
static void
slow_ports_dead_lcores_pauses_and_links_down_are_not_stuck(void **state)
{
	(void)state;
	fake.names[0] = "rx_xoff_packets";
	begin();
	fake.port[WIRE].refuses = true;
	step();
	for (unsigned i = 0; i < 3; i++) {
		fake.port[WIRE].given++; /* congestion */
		step();
	}
	for (unsigned i = 0; i < 3; i++) {
		fake.port[WIRE].tx_turns -= 100; /* the lcore hangs: told by its heartbeat */
		step();
	}
	assert_int_equal(fake.event_count, 0);
	for (unsigned i = 0; i < 3; i++) {
		fake.values[0]++;
		step();
		assert_told(BS_CAUSE_PAUSE, TX, 0, BS_BUFFER_NONE, fake.t - SEC, fake.t, 1);
	}
	fake.port[WIRE].link_up = false;
	step();
	step();
	assert_int_equal(fake.event_count, 0);
	assert_int_equal(found(WIRE, BS_FINDING_TX_STUCK), 0);
}

/* P26: packets wait, the link is up, the lcore polls, and nothing comes. */
static void
a_port_that_keeps_packets_back_is_silent_not_idle(void **state)
{
	uint64_t t;

	(void)state;
	begin();
	fake.port[LOCAL].waits = true;
	step();
	assert_int_equal(fake.event_count, 0); /* they may have come just now */
	t = fake.t;
	step();
	assert_told(BS_CAUSE_HANG, LOCAL_RX, BS_DETAIL_UNFILLED, BS_BUFFER_NONE, t, 0, 1);
	assert_int_equal(found(LOCAL, BS_FINDING_RX_SILENT), 1);
	fake.port[LOCAL].taken = 1;
	step();
	assert_told(BS_CAUSE_HANG, LOCAL_RX, BS_DETAIL_UNFILLED, BS_BUFFER_NONE, t, fake.t, 1);
}

/* P26: a ring without mbufs: the kernel drops, and its descriptor stays quiet. */
static void
a_port_that_drops_all_and_gives_nothing_is_silent(void **state)
{
	(void)state;
	begin();
	fake.port[WIRE].missed = 50;
	fake.port[WIRE].taken -= 10; /* which the step brings */
	step();
	assert_told(BS_CAUSE_HANG, RX, BS_DETAIL_UNFILLED, BS_BUFFER_NONE, fake.t - SEC, 0, 1);
	assert_int_equal(found(WIRE, BS_FINDING_RX_SILENT), 1);
}

/* P26 */
static void
ports_that_give_dead_lcores_and_links_down_are_not_silent(void **state)
{
	(void)state;
	begin();
	fake.port[WIRE].waits = true;
	for (unsigned i = 0; i < 3; i++) {
		fake.port[WIRE].taken++;
		step();
	}
	fake.port[WIRE].rx_turns -= 100;
	step();
	fake.port[WIRE].link_up = false;
	step();
	fake.port[WIRE].link_up = true;
	fake.port[WIRE].waits = false; /* idle */
	step();
	step();
	assert_int_equal(fake.event_count, 0);
	assert_int_equal(found(WIRE, BS_FINDING_RX_SILENT), 0);
}

/* --- pool ---------------------------------------------------------------------------- */

/* P01: what is sent is not given back; that is said while there are mbufs left. */
static void
who_holds_the_mbufs_is_named_before_there_are_none(void **state)
{
	uint64_t t;

	(void)state;
	begin();
	t = fake.t;
	fake.port[LOCAL].refuses = true;
	fake.port[LOCAL].given = 190;
	fake.pool.in_use = 200 + 199; /* of the 800 that no ring has: not yet a quarter */
	step();
	assert_int_equal(fake.event_count, 0);
	fake.port[LOCAL].given = 200;
	fake.pool.in_use = 200 + 200;
	step();
	assert_told(BS_CAUSE_PAUSE, BS_BUFFER_MEMPOOL, 0, LOCAL_TX, t, 0, 200);
	assert_int_equal(fake.events[0].culprit_count, 1);
	assert_int_equal(fake.events[0].culprit_kind[0], BS_CULPRIT_BUFFER);
	assert_int_equal(fake.events[0].culprits[0].id, LOCAL_TX);
	assert_int_equal(pool_shown().t_held, t);
	assert_int_equal(pool_shown().holder, LOCAL_TX);
	assert_false(pool_shown().holder_queues);
	fake.port[LOCAL].refuses = false;
	fake.port[LOCAL].given = 300;
	fake.pool.in_use = 200 + 100;
	step();
	assert_int_equal(fake.event_count, 0); /* an eighth */
	fake.pool.in_use = 200 + 99;
	step();
	assert_told(BS_CAUSE_PAUSE, BS_BUFFER_MEMPOOL, 0, LOCAL_TX, t, fake.t, 99);
	assert_int_equal(pool_shown().t_held, 0);
}

/* P28: a lower class fills the pool that a higher one needs. */
static void
the_class_that_has_the_pool_is_named(void **state)
{
	(void)state;
	begin();
	fake.port[LOCAL].refuses = true;
	fake.pool = (struct bs_watch_pool){.size = 1000,
		.in_use = 200 + 400,
		.queued = 380,
		.top = 350,
		.top_buffer = QUEUE,
		.top_class = 1};
	step();
	assert_told(BS_CAUSE_PAUSE, BS_BUFFER_MEMPOOL, 0, QUEUE, fake.t - SEC, 0, 400);
	assert_int_equal(pool_shown().holder, QUEUE);
	assert_true(pool_shown().holder_queues);
	assert_int_equal(pool_shown().holder_class, 1);
	assert_int_equal(pool_shown().blocked_by, LOCAL_TX);
}

/* P01: a leak, where nobody refuses: it takes longer to be sure, and nobody is named. */
static void
mbufs_that_vanish_are_told_without_a_holder(void **state)
{
	uint64_t t;

	(void)state;
	begin();
	fake.pool.in_use = 200 + 150; /* traffic comes */
	step();
	step();
	t = fake.t;
	for (unsigned i = 1; i <= 2; i++) {
		fake.pool.in_use += 50;
		step();
		assert_int_equal(fake.event_count, 0);
	}
	fake.pool.in_use += 50;
	step();
	assert_told(BS_CAUSE_PAUSE, BS_BUFFER_MEMPOOL, 0, BS_BUFFER_NONE, t, 0, 300);
	assert_int_equal(fake.events[0].culprit_count, 0);
}

/* P02: nobody refuses, but one port was given as many as are missing since. */
static void
a_port_that_keeps_what_it_was_given_is_named(void **state)
{
	static const unsigned holders[] = {TX, BS_BUFFER_NONE, BS_BUFFER_NONE};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		setup(NULL);
		begin();
		for (unsigned k = 0; k < 3; k++) {
			fake.pool.in_use += 100;
			fake.port[WIRE].given += i == 1 ? 99 : 100;
			fake.port[LOCAL].given += i == 2 ? 100 : 99;
			assert_int_equal(fake.event_count, 0);
			step();
		}
		assert_told(BS_CAUSE_PAUSE, BS_BUFFER_MEMPOOL, 0, holders[i], T0, 0, 300);
		bs_watch_destroy(fake.watch);
		fake.watch = NULL;
	}
}

static void
a_pool_in_use_that_does_not_grow_is_no_holder(void **state)
{
	(void)state;
	begin();
	fake.pool.in_use = 200 + 700;
	step();
	for (unsigned i = 0; i < 10; i++)
		step();
	fake.port[LOCAL].refuses = true;
	fake.port[LOCAL].tx_turns = 0;
	fake.pool.in_use--;
	step();
	assert_int_equal(fake.event_count, 0);
	assert_int_equal(pool_shown().in_use, 899);
	assert_int_equal(pool_shown().size, 1000);
}

static void
each_finding_has_a_key_a_text_and_a_remedy(void **state)
{
	(void)state;
	for (unsigned i = 0; i < BS_FINDING_COUNT; i++) {
		assert_true(strlen(bs_finding_key(i)) > 0);
		assert_true(strlen(bs_finding_text(i)) > 0);
		assert_true(strlen(bs_finding_remedy(i)) > 0);
	}
	assert_string_equal(bs_finding_key(BS_FINDING_COUNT), "?");
	assert_string_equal(bs_finding_text(BS_FINDING_COUNT), "?");
	assert_string_equal(bs_finding_remedy(BS_FINDING_COUNT), "?");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_told_while_nothing_is_counted),
		TEST(each_counter_of_losses_is_a_cause_of_its_own),
		TEST(losses_of_the_service_port_are_missing_in_responses),
		TEST(queues_are_named_only_if_the_device_counts_by_queue),
		TEST(misses_without_a_gap_are_told_without_confidence_and_of_no_rpc),
		TEST(a_gap_that_shows_a_second_later_matches),
		TEST(losses_that_no_counter_shows_were_before_us),
		TEST(losses_that_a_counter_shows_were_not_before_us),
		TEST(a_counter_of_missed_packets_that_the_driver_does_not_keep_is_not_read),
		TEST(counters_that_were_reset_count_from_there),
		TEST(pause_frames_of_before_are_none),
		TEST(pauses_sent_are_ours_and_pauses_received_are_the_peers),
		TEST(what_a_driver_does_not_count_is_not_observable),
		TEST(a_second_in_which_they_cannot_be_read_is_caught_up_with),
		TEST(a_port_that_takes_nothing_though_all_is_up_is_stuck),
		TEST(slow_ports_dead_lcores_pauses_and_links_down_are_not_stuck),
		TEST(a_port_that_keeps_packets_back_is_silent_not_idle),
		TEST(a_port_that_drops_all_and_gives_nothing_is_silent),
		TEST(ports_that_give_dead_lcores_and_links_down_are_not_silent),
		TEST(who_holds_the_mbufs_is_named_before_there_are_none),
		TEST(the_class_that_has_the_pool_is_named),
		TEST(mbufs_that_vanish_are_told_without_a_holder),
		TEST(a_port_that_keeps_what_it_was_given_is_named),
		TEST(a_pool_in_use_that_does_not_grow_is_no_holder),
		TEST(each_finding_has_a_key_a_text_and_a_remedy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
