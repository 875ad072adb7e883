/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The collector: what it tells and when, what it leaves out and counts, and
 * that nothing an analyzer does or sends harms more than the analyzer.
 */
#include "gb_frames.h"
#include "gb_records.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define RECORD_RING_UNITS 32767u

/* Lcores that do not turn are no news here. */
#define NO_HANGS ", \"detect\": {\"hang\": \"60s\"}"

static const struct gb_setup no_hangs = {.more = NO_HANGS};

/* Something with a record of its own, at the lcore. */
static int
put_event(const struct gb *gb)
{
	struct bs_rec_event event;

	memset(&event, 0, sizeof(event));
	bs_record_head(&event.head, BS_REC_EVENT, 0);
	event.t_begin = event.t_end = gb_time.now_ns;
	event.buffer = gb_buffer(gb, "wire.rx");
	event.type = BS_CAUSE_DROP;
	return bs_lcore_put(gb->dataplane->lcores[0], &event, BS_UNITS_OF(struct bs_rec_event));
}

static int
put_brief(const struct gb *gb)
{
	struct bs_rec_brief brief;

	memset(&brief, 0, sizeof(brief));
	bs_record_head(&brief.head, BS_REC_BRIEF, 0);
	return bs_lcore_put(gb->dataplane->lcores[0], &brief, BS_UNITS_OF(struct bs_rec_brief));
}

static struct bs_collector_status
status_of(const struct gb *gb)
{
	struct bs_collector_status status;

	bs_collector_status(gb->dataplane->collector, &status);
	return status;
}

static void
assert_names_told(const struct gb *gb, unsigned times)
{
	const struct bs_dataplane *dataplane = gb->dataplane;
	const struct bs_rec_hello *hello = gb_record(gb, BS_REC_HELLO, times - 1);

	assert_non_null(hello);
	assert_null(gb_record(gb, BS_REC_HELLO, times));
	assert_int_equal(hello->node, 1);
	assert_int_equal(hello->t_start, GB_T0);
	assert_int_equal(gb_record_count(gb, BS_REC_NAME),
		times * (dataplane->buffer_count + dataplane->config.service_count +
				dataplane->framers.count));
}

/* --- names --------------------------------------------------------------------------------- */

static void
a_new_analyzer_is_told_all_names_first(void **state)
{
	struct gb *gb = gb_open(&no_hangs);
	const struct bs_rec_name *name;
	unsigned kv = 0;

	(void)state;
	put_event(gb);
	gb_connect(gb);
	gb_collect(gb, 1);
	assert_int_equal(((const struct bs_record *)gb->records[0].units)->type, BS_REC_HELLO);
	assert_names_told(gb, 1);
	for (unsigned i = 0; (name = gb_record(gb, BS_REC_NAME, i)) != NULL; i++) {
		if (name->kind == BS_NAME_SERVICE) {
			assert_string_equal(name->name, "kv");
			assert_int_equal(name->port, 6379);
			kv++;
		} else if (name->kind == BS_NAME_BUFFER) {
			assert_int_equal(gb_buffer(gb, name->name), name->number);
		}
	}
	assert_int_equal(kv, 1);
	assert_int_equal(gb_record_count(gb, BS_REC_EVENT), 1);
	assert_true(status_of(gb).connected);
	gb_close(gb);
}

static void
names_are_told_again_on_reconnect_and_reload(void **state)
{
	struct gb *gb = gb_open(&no_hangs);

	(void)state;
	gb_connect(gb);
	gb_collect(gb, 2);
	assert_names_told(gb, 1);
	gb_connect(gb);
	gb_collect(gb, 2);
	assert_names_told(gb, 2);
	bs_collector_reload(gb->dataplane->collector);
	gb_collect(gb, 2);
	assert_names_told(gb, 3);
	gb_close(gb);
}

static void
names_that_find_the_socket_full_wait_until_it_has_room(void **state)
{
	struct gb *gb = gb_open(&no_hangs);
	unsigned told = 0;
	uint64_t sent = 0;

	(void)state;
	gb_connect(gb);
	for (bs_collector_turn(gb->dataplane->collector); status_of(gb).records_sent > sent;
		bs_collector_turn(gb->dataplane->collector)) {
		sent = status_of(gb).records_sent;
		bs_collector_reload(gb->dataplane->collector);
		assert_true(++told < 10000);
	}
	gb_collect(gb, 2); /* what stood in the socket, then what found it full */
	assert_names_told(gb, told + 1);
	assert_int_equal(status_of(gb).loss.socket_full, 0);
	gb_close(gb);
}

static void
records_wait_for_an_analyzer_that_is_expected(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.analyzer = "external", .more = NO_HANGS});

	(void)state;
	put_event(gb);
	assert_int_equal(bs_collector_turn(gb->dataplane->collector), 0);
	gb_time.now_ns += 2 * GB_S - 1;
	assert_int_equal(bs_collector_turn(gb->dataplane->collector), 0);
	gb_connect(gb);
	gb_collect(gb, 1);
	assert_int_equal(gb_record_count(gb, BS_REC_EVENT), 1);
	assert_int_equal(status_of(gb).loss.socket_full, 0);
	gb_close(gb);

	gb = gb_open(&(struct gb_setup){.analyzer = "external", .more = NO_HANGS});
	put_event(gb);
	gb_time.now_ns += 2 * GB_S;
	assert_true(bs_collector_turn(gb->dataplane->collector) > 0);
	assert_true(status_of(gb).loss.socket_full > 0);
	gb_close(gb);
}

/* --- budget ----------------------------------------------------------------------------------- */

static void
records_beyond_the_rate_are_left_out_and_counted(void **state)
{
	struct gb *gb = gb_open(
		&(struct gb_setup){.more = NO_HANGS ", \"records\": {\"per_second\": 100}"});
	uint64_t lost;

	(void)state;
	gb_connect(gb);
	for (unsigned i = 0; i < 150; i++)
		put_event(gb);
	gb_collect(gb, 1);
	assert_int_equal(gb_record_count(gb, BS_REC_EVENT), 100);
	assert_int_equal(status_of(gb).loss.over_budget, 50);
	/* one more every 10 ms */
	for (unsigned i = 0; i < 3; i++)
		put_event(gb);
	gb_time.now_ns += 20 * GB_MS - 1;
	gb_collect(gb, 1);
	assert_int_equal(gb_record_count(gb, BS_REC_EVENT), 101);
	lost = status_of(gb).loss.over_budget;
	assert_int_equal(lost, 52);
	put_event(gb);
	gb_time.now_ns++;
	gb_collect(gb, 1);
	assert_int_equal(gb_record_count(gb, BS_REC_EVENT), 102);
	/* and never more than a second's worth at once */
	gb_time.now_ns += 60 * GB_S;
	for (unsigned i = 0; i < 150; i++)
		put_event(gb);
	gb_collect(gb, 1);
	assert_int_equal(gb_record_count(gb, BS_REC_EVENT), 202);
	assert_int_equal(status_of(gb).loss.over_budget, lost + 50);
	gb_close(gb);
}

static void
what_is_brief_is_left_out_first(void **state)
{
	struct gb *gb = gb_open(
		&(struct gb_setup){.more = NO_HANGS ", \"records\": {\"per_second\": 100}"});

	(void)state;
	gb_connect(gb);
	for (unsigned i = 0; i < 90; i++)
		put_brief(gb);
	for (unsigned i = 0; i < 30; i++)
		put_event(gb);
	gb_collect(gb, 1);
	/* a quarter is left to what has more to tell */
	assert_int_equal(gb_record_count(gb, BS_REC_BRIEF), 75);
	assert_int_equal(gb_record_count(gb, BS_REC_EVENT), 25);
	assert_int_equal(status_of(gb).loss.over_budget, 15 + 5);
	gb_close(gb);
}

static void
the_rate_holds_however_often_the_collector_turns(void **state)
{
	struct gb *gb = gb_open(
		&(struct gb_setup){.more = NO_HANGS ", \"records\": {\"per_second\": 1000}"});

	(void)state;
	gb_connect(gb);
	for (unsigned i = 0; i < 1000; i++)
		put_event(gb);
	gb_collect(gb, 4);
	assert_int_equal(gb_record_count(gb, BS_REC_EVENT), 1000);
	for (unsigned i = 0; i < 100; i++) {
		gb_time.now_ns += 1900 * GB_US;
		for (unsigned k = 0; k < 4; k++)
			put_event(gb);
		gb_collect(gb, 1);
	}
	assert_int_equal(gb_record_count(gb, BS_REC_EVENT), 1190);
	gb_close(gb);
}

/* --- loss --------------------------------------------------------------------------------------
 */

static struct bs_rec_loss
loss_told(const struct gb *gb)
{
	struct bs_rec_loss sum = {.t = 0};
	const struct bs_rec_loss *loss;

	for (unsigned i = 0; (loss = gb_record(gb, BS_REC_LOSS, i)) != NULL; i++) {
		sum.ring_full += loss->ring_full;
		sum.over_budget += loss->over_budget;
		sum.socket_full += loss->socket_full;
		sum.no_memory += loss->no_memory;
	}
	return sum;
}

/* For so long the analyzer does not read, and the lcore has so much to tell in each ms. */
static void
does_not_read(struct gb *gb, unsigned ms, unsigned episodes)
{
	const uint16_t rx = gb_buffer(gb, "wire.rx");
	struct frame frame;

	for (unsigned i = 0; i < ms; i++) {
		gb_time.now_ns += GB_MS;
		for (unsigned k = 0; k < episodes; k++)
			bs_lcore_episode(gb->dataplane->lcores[0], BS_CAUSE_HANG, rx,
				BS_DETAIL_STALLED, BS_BUFFER_NONE, GB_T0, GB_T0 + GB_MS, 1);
		bs_collector_turn(gb->dataplane->collector);
		gb_arp(&frame);
		gb_inject(gb, GB_WIRE, &frame);
		gb_turn(gb);
		assert_int_equal(gb_drain(gb, GB_LOCAL), 1);
	}
	assert_true(status_of(gb).connected);
}

/* What it does not take waits in the socket, the batch and the lcore's ring. */
static void
an_analyzer_that_pauses_loses_nothing(void **state)
{
	struct gb *gb = gb_open(&no_hangs);

	(void)state;
	gb_connect(gb);
	does_not_read(gb, 200, 50); /* 1.28 MB; the socket holds a fraction of it */
	gb_collect(gb, 60);
	assert_int_equal(gb_record_count(gb, BS_REC_EVENT), 10000);
	assert_int_equal(status_of(gb).loss.socket_full, 0);
	assert_int_equal(status_of(gb).loss.ring_full, 0);
	gb_time.now_ns += GB_S;
	gb_turn(gb);
	gb_collect(gb, 1);
	assert_int_equal(gb_record_count(gb, BS_REC_LOSS), 0);
	gb_close(gb);
}

static void
an_analyzer_that_does_not_read_costs_records_and_no_packets(void **state)
{
	struct gb *gb = gb_open(&no_hangs);
	struct bs_rec_loss told;

	(void)state;
	gb_connect(gb);
	does_not_read(gb, 200, 300);
	/* it reads again: what was lost is told, once */
	gb_collect(gb, 60);
	for (unsigned i = 0; i < 3; i++) {
		gb_time.now_ns += GB_S;
		gb_turn(gb);
		gb_collect(gb, 1);
	}
	told = loss_told(gb);
	assert_true(told.ring_full > 0);
	assert_int_equal(gb_record_count(gb, BS_REC_EVENT) + told.ring_full, 200 * 300);
	assert_int_equal(told.socket_full, 0);
	assert_int_equal(told.over_budget, 0);
	gb_close(gb);
}

static void
records_that_find_the_ring_full_are_counted_and_told(void **state)
{
	struct gb *gb = gb_open(&no_hangs);
	const uint16_t rx = gb_buffer(gb, "wire.rx");
	unsigned refused = 0;

	(void)state;
	gb_connect(gb);
	while (put_brief(gb) == 0)
		continue;
	/* whoever puts them: here the lcore tells of an episode */
	for (unsigned i = 0; i < 7; i++, refused++)
		bs_lcore_episode(gb->dataplane->lcores[0], BS_CAUSE_HANG, rx, BS_DETAIL_STALLED,
			BS_BUFFER_NONE, GB_T0, GB_T0 + GB_MS, 1);
	gb_collect(gb, 40);
	assert_int_equal(gb_record_count(gb, BS_REC_BRIEF), RECORD_RING_UNITS);
	assert_int_equal(gb_record_count(gb, BS_REC_EVENT), 0);
	gb_time.now_ns += GB_S;
	gb_turn(gb);
	gb_collect(gb, 1);
	assert_int_equal(loss_told(gb).ring_full, refused);
	gb_close(gb);
}

static void
an_analyzer_that_goes_is_noticed_and_its_successor_welcome(void **state)
{
	struct gb *gb = gb_open(&no_hangs);

	(void)state;
	gb_connect(gb);
	gb_collect(gb, 1);
	close(gb->analyzer);
	gb->analyzer = -1;
	put_event(gb);
	bs_collector_turn(gb->dataplane->collector);
	bs_collector_turn(gb->dataplane->collector);
	assert_false(status_of(gb).connected);
	assert_int_equal(status_of(gb).loss.socket_full, 1);
	put_event(gb);
	bs_collector_turn(gb->dataplane->collector);
	assert_int_equal(status_of(gb).loss.socket_full, 2);
	gb_connect(gb);
	put_event(gb);
	gb_collect(gb, 1);
	assert_names_told(gb, 2);
	assert_int_equal(gb_record_count(gb, BS_REC_EVENT), 1);
	gb_time.now_ns += GB_S;
	gb_turn(gb);
	gb_collect(gb, 1);
	assert_int_equal(loss_told(gb).socket_full, 2);
	gb_close(gb);
}

/* --- what an analyzer sends ----------------------------------------------------------------------
 */

#define GROUP_BYTES                                                                                \
	(sizeof(struct bs_rec_verdict) + sizeof(struct bs_rec_rpc) + sizeof(struct bs_rec_segment))

/* A verdict and the RPC it is of, with one segment. Returns its bytes. */
static size_t
verdict_of(uint64_t *units, uint64_t rpc_id)
{
	struct bs_rec_verdict *verdict = (void *)units;
	struct bs_rec_rpc *rpc = (void *)(verdict + 1);
	struct bs_rec_segment *segment = (void *)(rpc + 1);

	memset(units, 0, GROUP_BYTES);
	bs_record_head(&verdict->head, BS_REC_VERDICT, 0);
	verdict->rpc_id = rpc_id;
	verdict->anomalous_by = BS_BY_EVIDENCE;
	verdict->has_root = 1;
	verdict->root.cause = BS_CAUSE_HANG;
	bs_record_head(&rpc->head, BS_REC_RPC, 0);
	rpc->id = rpc_id;
	rpc->ends.transport = 6;
	rpc->ends.ip_version = 4;
	rpc->t_request_first = GB_T0;
	rpc->t_end = rpc->t_response_last = rpc->t_response_departure = GB_T0 + GB_MS;
	rpc->segment_count = 1;
	bs_record_head(&segment->head, BS_REC_SEGMENT, 0);
	segment->rpc_id = rpc_id;
	segment->end_ns = GB_MS;
	return GROUP_BYTES;
}

static void
say(const struct gb *gb, const void *bytes, size_t n)
{
	assert_int_equal(send(gb->analyzer, bytes, n, MSG_DONTWAIT), n);
	gb_time.now_ns += GB_MS; /* so that no bound on its rate is met */
	bs_collector_turn(gb->dataplane->collector);
}

static void
see(void *context, const struct bs_rec_verdict *verdict, const struct bs_rpc_view *rpc)
{
	(void)verdict;
	*(uint64_t *)context = rpc->rpc->id;
}

static bool
is_stored(const struct gb *gb, uint64_t rpc_id)
{
	uint64_t id = 0;

	return bs_store_find(gb->dataplane->store, rpc_id, see, &id) == 0 && id == rpc_id;
}

static void
verdicts_are_stored_with_their_rpcs(void **state)
{
	struct gb *gb = gb_open(&no_hangs);
	uint64_t units[2 * GROUP_BYTES / sizeof(uint64_t)];
	size_t bytes = verdict_of(units, 41);

	(void)state;
	gb_connect(gb);
	gb_collect(gb, 1);
	bytes += verdict_of(units + bytes / sizeof(uint64_t), 42);
	say(gb, units, bytes);
	assert_true(is_stored(gb, 41));
	assert_true(is_stored(gb, 42));
	assert_int_equal(status_of(gb).bad_records, 0);
	gb_close(gb);
}

static void
what_is_no_verdict_is_counted_and_stores_nothing(void **state)
{
	static uint8_t zeros[BS_BATCH_MAX_BYTES];
	struct gb *gb = gb_open(&no_hangs);
	uint64_t units[GROUP_BYTES / sizeof(uint64_t)], id = 100;
	struct bs_rec_verdict *verdict = (void *)units;
	struct bs_rec_rpc *rpc = (void *)(verdict + 1);
	struct bs_rec_threshold threshold;
	uint64_t bad = 0;

	(void)state;
	gb_connect(gb);
	gb_collect(gb, 1);
	say(gb, "x", 1);
	assert_int_equal(status_of(gb).bad_records, ++bad);
	say(gb, zeros, sizeof(zeros));
	assert_int_equal(status_of(gb).bad_records, ++bad);
	/* its group cut off, or none of it there */
	for (size_t cut = 64; cut < GROUP_BYTES; cut += 64) {
		verdict_of(units, ++id);
		say(gb, units, GROUP_BYTES - cut);
		assert_true(status_of(gb).bad_records > bad);
		bad = status_of(gb).bad_records;
		assert_false(is_stored(gb, id));
	}
	/* of another RPC; with a segment of another RPC; with more segments than there are */
	verdict_of(units, ++id);
	verdict->rpc_id++;
	say(gb, units, GROUP_BYTES);
	verdict_of(units, ++id);
	((struct bs_rec_segment *)(void *)(rpc + 1))->rpc_id++;
	say(gb, units, GROUP_BYTES);
	verdict_of(units, ++id);
	rpc->segment_count = 2;
	say(gb, units, GROUP_BYTES);
	assert_true(status_of(gb).bad_records >= bad + 3);
	for (uint64_t i = 0; i <= id + 2; i++)
		assert_false(is_stored(gb, i));
	/* out of range, or not for the dataplane to hear */
	bad = status_of(gb).bad_records;
	memset(&threshold, 0, sizeof(threshold));
	bs_record_head(&threshold.head, BS_REC_THRESHOLD, 0);
	threshold.service = BS_MAX_SERVICES + 1;
	say(gb, &threshold, sizeof(threshold));
	assert_int_equal(status_of(gb).bad_records, ++bad);
	bs_record_head(&threshold.head, BS_REC_LOSS, 0);
	say(gb, &threshold, sizeof(threshold));
	assert_int_equal(status_of(gb).bad_records, ++bad);
	/* and it still listens */
	verdict_of(units, ++id);
	say(gb, units, GROUP_BYTES);
	assert_true(is_stored(gb, id));
	assert_int_equal(status_of(gb).bad_records, bad);
	gb_close(gb);
}

static void
a_batch_longer_than_batches_are_is_not_taken_in_part(void **state)
{
	struct gb *gb = gb_open(&no_hangs);
	static struct bs_rec_incident
		incidents[BS_BATCH_MAX_BYTES / sizeof(struct bs_rec_incident) + 1];
	const unsigned count = sizeof(incidents) / sizeof(incidents[0]);

	(void)state;
	gb_connect(gb);
	gb_collect(gb, 1);
	for (unsigned i = 0; i < count; i++) {
		bs_record_head(&incidents[i].head, BS_REC_INCIDENT, 0);
		incidents[i].id = i + 1;
	}
	say(gb, incidents, sizeof(incidents[0]) * count);
	assert_int_equal(status_of(gb).bad_records, 1);
	assert_int_equal(bs_store_incidents(gb->dataplane->store, 0, 0, NULL, NULL), 0);
	say(gb, incidents, sizeof(incidents[0]) * (count - 1));
	assert_int_equal(bs_store_incidents(gb->dataplane->store, 0, 0, NULL, NULL), count - 1);
	gb_close(gb);
}

static void
verdicts_about_what_is_not_there_are_rejected_and_counted(void **state)
{
	struct gb *gb = gb_open(&no_hangs);
	uint64_t units[GROUP_BYTES / sizeof(uint64_t)];
	struct bs_rec_rpc *rpc = (void *)((struct bs_rec_verdict *)(void *)units + 1);
	struct bs_rec_incident incident;
	struct bs_rec_threshold threshold;

	(void)state;
	gb_connect(gb);
	gb_collect(gb, 1);
	verdict_of(units, 41);
	rpc->service = BS_MAX_SERVICES - 1;
	say(gb, units, GROUP_BYTES);
	assert_false(is_stored(gb, 41));
	assert_int_equal(status_of(gb).rejected, 1);
	memset(&incident, 0, sizeof(incident));
	bs_record_head(&incident.head, BS_REC_INCIDENT, 0);
	incident.t_end = UINT64_MAX;
	say(gb, &incident, sizeof(incident));
	assert_int_equal(bs_store_incidents(gb->dataplane->store, 0, 0, NULL, NULL), 0);
	assert_int_equal(status_of(gb).rejected, 2);
	memset(&threshold, 0, sizeof(threshold));
	bs_record_head(&threshold.head, BS_REC_THRESHOLD, 0);
	threshold.service = BS_MAX_SERVICES - 1;
	say(gb, &threshold, sizeof(threshold));
	assert_int_equal(status_of(gb).rejected, 3);
	/* what comes behind it in the batch is taken */
	verdict_of(units, 42);
	say(gb, units, GROUP_BYTES);
	assert_true(is_stored(gb, 42));
	assert_int_equal(status_of(gb).bad_records, 0);
	gb_close(gb);
}

static void
a_flood_is_read_no_faster_than_its_bound(void **state)
{
	struct gb *gb = gb_open(&no_hangs);
	static struct bs_rec_incident
		incidents[BS_BATCH_MAX_BYTES / sizeof(struct bs_rec_incident)];
	uint64_t bytes = 0;

	(void)state;
	gb_connect(gb);
	gb_collect(gb, 1);
	for (unsigned i = 0; i < sizeof(incidents) / sizeof(incidents[0]); i++) {
		bs_record_head(&incidents[i].head, BS_REC_INCIDENT, 0);
		incidents[i].id = i + 1;
	}
	/* as fast as it can for 2 s in steps of 1 ms: 4 MiB at once, then 8 MiB/s */
	for (unsigned ms = 0; ms < 2000; ms++) {
		for (unsigned i = 0; i < 8; i++) {
			if (send(gb->analyzer, incidents, sizeof(incidents), MSG_DONTWAIT) > 0)
				bytes += sizeof(incidents);
		}
		bs_collector_turn(gb->dataplane->collector);
		gb_time.now_ns += GB_MS;
	}
	assert_true(status_of(gb).connected);
	assert_true(bytes >= 18u << 20); /* 20 MiB less 1 KiB in 33 */
	assert_true(bytes <= 21u << 20); /* and what waits in the socket */
	gb_close(gb);
}

static void
whatever_an_analyzer_sends_is_survived(void **state)
{
	struct gb *gb = gb_open(&no_hangs);
	uint64_t units[4 * GROUP_BYTES / sizeof(uint64_t)];
	uint8_t *bytes = (void *)units;
	uint32_t seed = 20261130;
	uint64_t before = 0, refused = 0;

	(void)state;
	gb_connect(gb);
	gb_collect(gb, 1);
	for (unsigned i = 0; i < 20000; i++) {
		size_t n = 0;

		for (unsigned k = 0; k < 3; k++)
			n += verdict_of(units + n / sizeof(uint64_t), 1 + i % 7);
		for (unsigned changes = 0; changes < 1 + i % 3; changes++) {
			seed = seed * 1664525u + 1013904223u;
			/* mostly in heads and counts, which are in the first bytes of units */
			bytes[(seed >> 8) % n & (changes % 2 ? ~(size_t)0x38 : ~(size_t)0)] =
				(uint8_t)(seed >> 24);
		}
		say(gb, units, i % 5 == 0 ? n - (seed >> 16) % n : n);
		refused += status_of(gb).bad_records > before;
		before = status_of(gb).bad_records;
	}
	assert_true(refused > 1000);
	assert_true(status_of(gb).connected);
	gb_close(gb);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		GB_TEST(a_new_analyzer_is_told_all_names_first),
		GB_TEST(names_are_told_again_on_reconnect_and_reload),
		GB_TEST(names_that_find_the_socket_full_wait_until_it_has_room),
		GB_TEST(records_wait_for_an_analyzer_that_is_expected),
		GB_TEST(records_beyond_the_rate_are_left_out_and_counted),
		GB_TEST(what_is_brief_is_left_out_first),
		GB_TEST(the_rate_holds_however_often_the_collector_turns),
		GB_TEST(an_analyzer_that_pauses_loses_nothing),
		GB_TEST(an_analyzer_that_does_not_read_costs_records_and_no_packets),
		GB_TEST(records_that_find_the_ring_full_are_counted_and_told),
		GB_TEST(an_analyzer_that_goes_is_noticed_and_its_successor_welcome),
		GB_TEST(verdicts_are_stored_with_their_rpcs),
		GB_TEST(what_is_no_verdict_is_counted_and_stores_nothing),
		GB_TEST(a_batch_longer_than_batches_are_is_not_taken_in_part),
		GB_TEST(verdicts_about_what_is_not_there_are_rejected_and_counted),
		GB_TEST(a_flood_is_read_no_faster_than_its_bound),
		GB_TEST(whatever_an_analyzer_sends_is_survived),
	};

	return cmocka_run_group_tests_name(
		"graybox_collector", tests, gb_group_setup, gb_group_teardown);
}
