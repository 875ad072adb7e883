/* SPDX-License-Identifier: BSD-3-Clause */
/* The silence rule: who was served, hang or compute, alone or as a set. */
#include "diag_util.h"

#define BEGIN (T0 + 100 * MS)

/* The waits of these tests begin at BEGIN; the answers come within 100 us of `end`. */
static void
feed_waiting(struct heard *heard, uint64_t end)
{
	for (unsigned i = 0; i < 4; i++) {
		uint64_t given = BEGIN + i * 10 * MS;
		uint64_t first = end + i * 30 * US;
		feed_simple(heard, 1000 + i, i, given - 10 * US, BS_BUFFER_SERVICE,
			BS_CAUSE_COMPUTE, first - given);
	}
}

static void
settle(struct heard *heard, uint64_t t)
{
	bs_diag_advance(heard->diag, t + 150 * MS);
}

static void
stop(struct heard *heard, unsigned probe)
{
	uint64_t end = BEGIN + 200 * MS;
	feed_usual(heard, 1, 64, BEGIN);
	feed_silence(heard, BEGIN, end, 1000, 4, 0);
	if (probe)
		feed_probe(heard, BEGIN + 20 * MS, end - 10 * MS, probe);
	feed_waiting(heard, end);
	settle(heard, end);
}

static void
test_one_at_a_time_without_probe_gives_a_set(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	stop(heard, 0);
	const struct bs_rec_verdict *served = heard_of(heard, 1000);
	assert_non_null(served);
	assert_blame(served->root, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	assert_alternative(served, BS_BUFFER_SERVICE, BS_CAUSE_HANG);
	assert_int_equal(served->via_count, 0);
	assert_true(served->anomalous_by & BS_BY_OUTLIER);
	for (uint64_t id = 1001; id < 1004; id++) {
		const struct bs_rec_verdict *behind = heard_of(heard, id);
		assert_non_null(behind);
		assert_blame(behind->root, BS_BUFFER_SERVICE, BS_CAUSE_CONGESTION);
		assert_alternative(behind, BS_BUFFER_SERVICE, BS_CAUSE_HANG);
		assert_int_equal(behind->via_count, 1);
		assert_blame(behind->via[0], BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
		assert_int_equal(behind->incident_id, served->incident_id);
	}
	/* One incident, its culprit the RPC that was served. */
	bs_diag_advance(heard->diag, BEGIN + 3 * SEC);
	const struct bs_rec_incident *last = &heard->incident[heard->incidents - 1];
	assert_int_equal(heard->closed, 1);
	assert_int_equal(last->victims, 4);
	assert_blame(last->origin, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	assert_int_equal(last->culprit_count, 1);
	assert_int_equal(last->culprit_kind[0], BS_CULPRIT_RPC);
	assert_int_equal(last->culprits[0].id, 1000);
	heard_destroy(heard);
}

static void
test_stopped_starved_or_throttled_probe_makes_all_a_hang(void **state)
{
	(void)state;
	const unsigned probes[][2] = {{BS_PROBE_STOPPED, BS_DETAIL_STOPPED},
		{BS_PROBE_STARVED, BS_DETAIL_STARVED}, {BS_PROBE_THROTTLED, BS_DETAIL_THROTTLED}};
	for (unsigned p = 0; p < 3; p++) {
		struct heard *heard = heard_create(false);
		stop(heard, probes[p][0]);
		for (uint64_t id = 1000; id < 1004; id++) {
			const struct bs_rec_verdict *verdict = heard_of(heard, id);
			assert_non_null(verdict);
			assert_blame(verdict->root, BS_BUFFER_SERVICE, BS_CAUSE_HANG);
			assert_int_equal(verdict->detail, probes[p][1]);
			assert_int_equal(verdict->alternative_count, 0);
			assert_true(verdict->anomalous_by & BS_BY_EVIDENCE);
		}
		bs_diag_advance(heard->diag, BEGIN + 3 * SEC);
		assert_int_equal(heard->closed, 1);
		assert_blame(heard->incident[heard->incidents - 1].origin, BS_BUFFER_SERVICE,
			BS_CAUSE_HANG);
		assert_int_equal(heard->incident[heard->incidents - 1].detail, probes[p][1]);
		heard_destroy(heard);
	}
}

static void
test_running_probe_leaves_no_hang(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	stop(heard, BS_PROBE_RUNNING);
	assert_blame(heard_of(heard, 1000)->root, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	for (uint64_t id = 1000; id < 1004; id++)
		assert_int_equal(heard_of(heard, id)->alternative_count, 0);
	assert_blame(heard_of(heard, 1001)->root, BS_BUFFER_SERVICE, BS_CAUSE_CONGESTION);
	assert_blame(heard_of(heard, 1001)->via[0], BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	assert_true(heard_of(heard, 1000)->confidence_ppm > 900000);
	heard_destroy(heard);
}

static void
test_asleep_probe_leaves_the_set(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	stop(heard, BS_PROBE_ASLEEP);
	assert_blame(heard_of(heard, 1000)->root, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	assert_alternative(heard_of(heard, 1000), BS_BUFFER_SERVICE, BS_CAUSE_HANG);
	assert_alternative(heard_of(heard, 1001), BS_BUFFER_SERVICE, BS_CAUSE_HANG);
	heard_destroy(heard);
}

/* --- what sockets say ------------------------------------------------------------------- */

/* The four of feed_waiting() through a silence with a probe of its sockets. */
static struct heard *
stop_with_sockets(
	unsigned state, unsigned connections, unsigned unread, unsigned unaccepted, unsigned unsent)
{
	struct heard *heard = heard_create(false);
	uint64_t end = BEGIN + 200 * MS;

	feed_usual(heard, 1, 64, BEGIN);
	feed_silence(heard, BEGIN, end, 1000, 4, 0);
	feed_sockets(heard, BEGIN + 20 * MS, end - 10 * MS, state, connections, unread, unaccepted,
		unsent);
	feed_waiting(heard, end);
	settle(heard, end);
	return heard;
}

static const struct bs_rec_segment *
segment_of(struct heard *heard, uint64_t id, unsigned buffer, unsigned cause)
{
	for (unsigned i = 0; i < heard->verdicts; i++) {
		const struct bs_rec_segment *segments = group_segments(&heard->group[i]);
		for (unsigned k = 0; k < group_rpc(&heard->group[i])->segment_count; k++)
			if (segments[k].rpc_id == id && segments[k].buffer == buffer &&
				segments[k].cause == cause)
				return &segments[k];
	}
	return NULL;
}

static void
test_requests_that_nobody_reads_while_all_sleep_are_a_hang_of_the_socket(void **state)
{
	(void)state;
	struct heard *heard = stop_with_sockets(BS_PROBE_ASLEEP, 4, 4, 0, 0);
	for (uint64_t id = 1000; id < 1004; id++) {
		const struct bs_rec_verdict *verdict = heard_of(heard, id);
		assert_non_null(verdict);
		assert_blame(verdict->root, BS_BUFFER_SERVER_SOCKET_RX, BS_CAUSE_HANG);
		assert_int_equal(verdict->detail, BS_DETAIL_UNREAD);
		assert_int_equal(verdict->alternative_count, 0);
		assert_int_equal(verdict->via_count, 0);
		assert_true(verdict->anomalous_by & BS_BY_EVIDENCE);
		assert_true(verdict->confidence_ppm > 900000);
		const struct bs_rec_segment *segment =
			segment_of(heard, id, BS_BUFFER_SERVER_SOCKET_RX, BS_CAUSE_HANG);
		assert_non_null(segment);
		/* from when it was given to the end of the silence */
		assert_int_equal(
			segment->end_ns - segment->begin_ns, (200 - (id - 1000) * 10) * MS);
	}
	bs_diag_advance(heard->diag, BEGIN + 3 * SEC);
	assert_int_equal(heard->closed, 1);
	assert_blame(heard->incident[heard->incidents - 1].origin, BS_BUFFER_SERVER_SOCKET_RX,
		BS_CAUSE_HANG);
	assert_int_equal(heard->incident[heard->incidents - 1].victims, 4);
	heard_destroy(heard);
}

static void
test_requests_that_nobody_reads_while_it_works_are_contention_of_the_socket(void **state)
{
	(void)state;
	struct heard *heard = stop_with_sockets(BS_PROBE_RUNNING, 4, 4, 0, 0);
	for (uint64_t id = 1000; id < 1004; id++) {
		const struct bs_rec_verdict *verdict = heard_of(heard, id);
		assert_blame(verdict->root, BS_BUFFER_SERVER_SOCKET_RX, BS_CAUSE_CONTENTION);
		assert_int_equal(verdict->alternative_count, 0);
	}
	heard_destroy(heard);
	/* whether it works is not known: the lesser blame, and the other as alternative */
	heard = stop_with_sockets(BS_PROBE_UNKNOWN, 4, 4, 0, 0);
	assert_blame(heard_of(heard, 1000)->root, BS_BUFFER_SERVER_SOCKET_RX, BS_CAUSE_CONTENTION);
	assert_int_equal(heard_of(heard, 1000)->alternative_count, 1);
	assert_alternative(heard_of(heard, 1000), BS_BUFFER_SERVER_SOCKET_RX, BS_CAUSE_HANG);
	heard_destroy(heard);
}

static void
test_one_request_that_was_read_leaves_the_silence_rule(void **state)
{
	(void)state;
	struct heard *heard = stop_with_sockets(BS_PROBE_RUNNING, 4, 3, 0, 0);
	assert_blame(heard_of(heard, 1000)->root, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	assert_blame(heard_of(heard, 1001)->root, BS_BUFFER_SERVICE, BS_CAUSE_CONGESTION);
	heard_destroy(heard);
	heard = stop_with_sockets(BS_PROBE_ASLEEP, 4, 3, 0, 3);
	assert_blame(heard_of(heard, 1000)->root, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	assert_alternative(heard_of(heard, 1000), BS_BUFFER_SERVICE, BS_CAUSE_HANG);
	heard_destroy(heard);
}

/* Stopped explains that nobody reads, or accepts. */
static void
test_stopped_with_unread_requests_is_a_hang_of_the_service(void **state)
{
	(void)state;
	struct heard *heard = stop_with_sockets(BS_PROBE_STOPPED, 4, 4, 4, 0);
	assert_blame(heard_of(heard, 1002)->root, BS_BUFFER_SERVICE, BS_CAUSE_HANG);
	assert_int_equal(heard_of(heard, 1002)->detail, BS_DETAIL_STOPPED);
	heard_destroy(heard);
}

static void
test_answer_held_in_its_socket_is_not_charged_to_the_service(void **state)
{
	(void)state;
	struct heard *heard = stop_with_sockets(BS_PROBE_ASLEEP, 4, 0, 0, 4);
	const struct bs_rec_verdict *verdict = heard_of(heard, 1000);
	assert_blame(verdict->root, BS_BUFFER_SERVER_SOCKET_TX, BS_CAUSE_CONGESTION);
	assert_int_equal(verdict->alternative_count, 1);
	assert_alternative(verdict, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_DROP);
	heard_destroy(heard);
}

static void
test_connection_that_is_not_accepted_waits_in_the_accept_queue(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	uint64_t end = BEGIN + 200 * MS;
	struct group group;

	feed_usual(heard, 1, 64, BEGIN);
	feed_silence(heard, BEGIN, end, 1000, 2, 0);
	feed_sockets(heard, BEGIN + 20 * MS, end - 10 * MS, BS_PROBE_ASLEEP, 2, 2, 2, 0);
	for (unsigned i = 0; i < 2; i++) {
		group_simple(&group, 1000 + i, 10 + i, BEGIN + i * 10 * MS - 10 * US,
			BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, end - BEGIN - i * 10 * MS + i * US);
		/* the second is not the first of its connection: it was accepted long ago */
		group_rpc(&group)->connect_ns = i == 0 ? 50 * US : 0;
		group_feed(heard, &group);
	}
	settle(heard, end);
	assert_blame(heard_of(heard, 1000)->root, BS_BUFFER_SERVER_ACCEPT, BS_CAUSE_CONGESTION);
	assert_int_equal(heard_of(heard, 1000)->alternative_count, 0);
	assert_true(heard_of(heard, 1000)->confidence_ppm > 900000);
	assert_true(heard_of(heard, 1000)->anomalous_by & BS_BY_OUTLIER);
	assert_blame(heard_of(heard, 1001)->root, BS_BUFFER_SERVER_SOCKET_RX, BS_CAUSE_HANG);
	heard_destroy(heard);
}

static void
test_what_was_so_for_less_than_half_of_the_looks_settles_nothing(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	uint64_t end = BEGIN + 200 * MS;

	feed_usual(heard, 1, 64, BEGIN);
	feed_silence(heard, BEGIN, end, 1000, 4, 0);
	feed_sockets(heard, BEGIN, BEGIN + 90 * MS, BS_PROBE_ASLEEP, 4, 4, 0, 0);
	feed_sockets(heard, BEGIN + 90 * MS, end, BS_PROBE_ASLEEP, 4, 0, 0, 0);
	feed_waiting(heard, end);
	settle(heard, end);
	assert_blame(heard_of(heard, 1000)->root, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	assert_alternative(heard_of(heard, 1000), BS_BUFFER_SERVICE, BS_CAUSE_HANG);
	heard_destroy(heard);
}

/* Who came when it was over stood behind those that had gathered. */
static void
test_backlog_of_unread_requests_leads_back_to_the_socket(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	uint64_t end = BEGIN + 200 * MS;
	struct group group;

	feed_usual(heard, 1, 64, BEGIN);
	feed_silence(heard, BEGIN, end, 1000, 4, 0);
	feed_sockets(heard, BEGIN + 20 * MS, end - 10 * MS, BS_PROBE_ASLEEP, 4, 4, 0, 0);
	feed_waiting(heard, end);
	group_simple(&group, 1010, 9, end + MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 50 * MS);
	group_rpc(&group)->pending = 3;
	group_feed(heard, &group);
	settle(heard, end + 60 * MS);
	const struct bs_rec_verdict *verdict = heard_of(heard, 1010);
	assert_blame(verdict->root, BS_BUFFER_SERVICE, BS_CAUSE_CONGESTION);
	assert_int_equal(verdict->via_count, 1);
	assert_blame(verdict->via[0], BS_BUFFER_SERVER_SOCKET_RX, BS_CAUSE_HANG);
	heard_destroy(heard);
}

static void
test_longest_probed_state_wins_and_a_short_probe_settles_nothing(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	feed_probe(heard, BEGIN + 10 * MS, BEGIN + 40 * MS, BS_PROBE_RUNNING);
	feed_probe(heard, BEGIN + 40 * MS, BEGIN + 150 * MS, BS_PROBE_STOPPED);
	stop(heard, 0);
	assert_blame(heard_of(heard, 1000)->root, BS_BUFFER_SERVICE, BS_CAUSE_HANG);
	heard_destroy(heard);

	heard = heard_create(false);
	feed_probe(heard, BEGIN + 10 * MS, BEGIN + 40 * MS, BS_PROBE_STOPPED); /* 15 % */
	stop(heard, 0);
	assert_blame(heard_of(heard, 1000)->root, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	heard_destroy(heard);
}

static void
test_single_pending_rpc_gives_a_set(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	feed_usual(heard, 1, 64, BEGIN);
	feed_silence(heard, BEGIN, BEGIN + 50 * MS, 1000, 1, 0);
	feed_simple(heard, 1000, 0, BEGIN - 10 * US, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 50 * MS);
	settle(heard, BEGIN + 50 * MS);
	assert_blame(heard_of(heard, 1000)->root, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	assert_alternative(heard_of(heard, 1000), BS_BUFFER_SERVICE, BS_CAUSE_HANG);
	heard_destroy(heard);
}

/* Pairs of a slow RPC (8 ms) and one given 3 ms later that is answered 3 ms earlier. */
static void
feed_overtaking(struct heard *heard, unsigned pairs, uint64_t t)
{
	for (unsigned i = 0; i < pairs; i++) {
		uint64_t at = t - (pairs - i) * 20 * MS;
		feed_simple(heard, 500 + 2 * i, 1, at, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 8 * MS);
		feed_simple(heard, 501 + 2 * i, 2, at + 3 * MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE,
			2 * MS);
		bs_diag_advance(heard->diag, at);
	}
}

static bool
concurrent(const struct heard *heard)
{
	struct bs_diag_service service;
	assert_true(bs_diag_service(heard->diag, 0, &service));
	return service.concurrent;
}

static void
test_concurrent_service_silent_over_several_is_a_hang(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	uint64_t end = BEGIN + 600 * MS;
	feed_usual(heard, 1, 400, BEGIN - SEC);
	feed_overtaking(heard, 8, BEGIN - 10 * MS);
	assert_true(concurrent(heard));
	feed_silence(heard, BEGIN, end, 1000, 4, 0);
	feed_waiting(heard, end);
	settle(heard, end);
	for (uint64_t id = 1000; id < 1004; id++) {
		assert_blame(heard_of(heard, id)->root, BS_BUFFER_SERVICE, BS_CAUSE_HANG);
		assert_int_equal(heard_of(heard, id)->alternative_count, 0);
	}
	heard_destroy(heard);
}

static void
test_concurrent_service_with_one_pending_or_a_short_silence_gives_a_set(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	/* Fed while cold: of 80 RPCs 8 take 8 ms, so that ten times the p99 is about 80 ms. */
	feed_overtaking(heard, 8, BEGIN - SEC);
	settle(heard, BEGIN - SEC);
	feed_usual(heard, 1, 64, BEGIN);
	assert_true(concurrent(heard));
	feed_silence(heard, BEGIN, BEGIN + 15 * MS, 1000, 2, 0);
	feed_simple(heard, 1000, 0, BEGIN - 10 * US, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 15 * MS);
	feed_simple(heard, 1001, 1, BEGIN, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 15 * MS);
	/* One pending, however long. */
	feed_silence(heard, BEGIN + SEC, BEGIN + 2 * SEC, 1002, 1, 0);
	feed_simple(heard, 1002, 0, BEGIN + SEC, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, SEC);
	settle(heard, BEGIN + 2 * SEC);
	for (uint64_t id = 1000; id < 1003; id++) {
		assert_blame(heard_of(heard, id)->root, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
		assert_alternative(heard_of(heard, id), BS_BUFFER_SERVICE, BS_CAUSE_HANG);
	}
	heard_destroy(heard);
}

static void
test_too_few_overtakings_are_not_concurrency(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	feed_overtaking(heard, 3, BEGIN);
	assert_false(concurrent(heard));
	heard_destroy(heard);

	/* Pipelined on one connection: answers of one connection tell nothing. */
	heard = heard_create(false);
	for (unsigned i = 0; i < 20; i++) {
		uint64_t at = T0 + i * 20 * MS;
		feed_simple(heard, 1 + 2 * i, 1, at, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 8 * MS);
		feed_simple(heard, 2 + 2 * i, 1, at + 3 * MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE,
			2 * MS);
	}
	assert_false(concurrent(heard));
	heard_destroy(heard);
}

static void
test_backlog_of_a_stop_served_in_any_order_is_not_concurrency(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	feed_usual(heard, 1, 64, T0);
	for (unsigned i = 0; i < 20; i++) {
		uint64_t at = T0 + i * SEC;
		/* Stopped for 200 ms, then 50 ms of backlog, the last given served first. */
		feed_silence(heard, at, at + 200 * MS, 1001 + 2 * i, 2, 0);
		feed_simple(
			heard, 1000 + 2 * i, 1, at, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 250 * MS);
		feed_simple(heard, 1001 + 2 * i, 2, at + 100 * MS, BS_BUFFER_SERVICE,
			BS_CAUSE_COMPUTE, 100 * MS);
	}
	assert_false(concurrent(heard));
	heard_destroy(heard);
}

static void
test_briefs_prove_concurrency_only_if_no_late_ack_explains_them(void **state)
{
	(void)state;
	for (unsigned late = 0; late < 2; late++) {
		struct heard *heard = heard_create(false);
		for (unsigned i = 0; i < 8; i++) {
			uint64_t at = T0 + i * SEC;
			struct bs_rec_brief brief = {.service_ns = 100 * US,
				.outcome = BS_OUTCOME_ANSWERED,
				.operation_hash = 7,
				.t_end = at + (late ? 150 : 500) * MS};
			bs_record_head(&brief.head, BS_REC_BRIEF, 0);
			assert_int_equal(bs_diag_feed(heard->diag, &brief.head, sizeof(brief)), 0);
			feed_simple(heard, 1 + i, 1, at, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE,
				(late ? 250 : 700) * MS);
		}
		assert_int_equal(concurrent(heard), !late);
		heard_destroy(heard);
	}
}

static void
test_answer_through_another_lcore_ends_the_silence(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	feed_usual(heard, 1, 64, BEGIN);
	/* lcore 0 is silent for 200 ms, but the service answers 1500 every 100 us on lcore 1. */
	feed_silence(heard, BEGIN, BEGIN + 200 * MS, 1000, 2, 0);
	for (unsigned i = 0; i < 400; i++)
		feed_simple(heard, 1500 + i, 9, BEGIN + i * 500 * US, BS_BUFFER_SERVICE,
			BS_CAUSE_COMPUTE, 100 * US);
	feed_simple(heard, 1000, 0, BEGIN - 10 * US, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 200 * MS);
	settle(heard, BEGIN + 200 * MS);
	const struct bs_rec_verdict *verdict = heard_of(heard, 1000);
	assert_non_null(verdict);
	assert_blame(verdict->root, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	assert_int_equal(verdict->alternative_count, 0);
	heard_destroy(heard);
}

static void
test_both_lcores_silent_is_one_silence(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	uint64_t end = BEGIN + 200 * MS;
	feed_usual(heard, 1, 64, BEGIN);
	feed_silence(heard, BEGIN, end, 1000, 2, 0);
	feed_silence(heard, BEGIN + 10 * MS, end + 30 * US, 1001, 2, 1);
	feed_waiting(heard, end);
	settle(heard, end);
	assert_blame(heard_of(heard, 1000)->root, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	for (uint64_t id = 1001; id < 1004; id++)
		assert_blame(heard_of(heard, id)->root, BS_BUFFER_SERVICE, BS_CAUSE_CONGESTION);
	heard_destroy(heard);
}

static void
test_backlog_of_a_hang_is_congestion_that_leads_to_it(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	uint64_t end = BEGIN + 200 * MS;
	struct group group;
	feed_usual(heard, 1, 64, BEGIN);
	feed_silence(heard, BEGIN, end, 1000, 4, 0);
	feed_probe(heard, BEGIN, end, BS_PROBE_STOPPED);
	feed_waiting(heard, end);
	/* Given 10 ms after the stop to a service with a backlog; then to an idle one. */
	for (unsigned i = 0; i < 2; i++) {
		group_simple(&group, 1010 + i, 9, end + 10 * MS, BS_BUFFER_SERVICE,
			BS_CAUSE_COMPUTE, 50 * MS);
		group_rpc(&group)->pending = i == 0 ? 20 : 0;
		group_feed(heard, &group);
	}
	settle(heard, end + 60 * MS);
	const struct bs_rec_verdict *verdict = heard_of(heard, 1010);
	assert_blame(verdict->root, BS_BUFFER_SERVICE, BS_CAUSE_CONGESTION);
	assert_int_equal(verdict->via_count, 1);
	assert_blame(verdict->via[0], BS_BUFFER_SERVICE, BS_CAUSE_HANG);
	assert_int_equal(verdict->incident_id, heard_of(heard, 1000)->incident_id);
	assert_blame(heard_of(heard, 1011)->root, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	heard_destroy(heard);
}

static void
test_pipelined_rpc_blocked_by_a_stopped_one_leads_to_the_hang(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	uint64_t end = BEGIN + 200 * MS;
	struct group group;
	feed_usual(heard, 1, 64, BEGIN);
	feed_silence(heard, BEGIN, end, 1000, 4, 0);
	feed_probe(heard, BEGIN, end, BS_PROBE_STOPPED);
	feed_waiting(heard, end);
	group_begin(&group, 1010, 0, BEGIN + 50 * MS);
	struct bs_rec_segment *segment =
		group_add(&group, BS_BUFFER_SERVICE, BS_CAUSE_CONTENTION, 150 * MS);
	segment->culprit_kind = BS_CULPRIT_RPC;
	segment->culprit_id = 1000;
	group_add(&group, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 100 * US);
	group_rpc(&group)->blocker_id = 1000;
	group_feed(heard, &group);
	settle(heard, end);
	const struct bs_rec_verdict *verdict = heard_of(heard, 1010);
	assert_blame(verdict->root, BS_BUFFER_SERVICE, BS_CAUSE_CONTENTION);
	assert_int_equal(verdict->via_count, 1);
	assert_blame(verdict->via[0], BS_BUFFER_SERVICE, BS_CAUSE_HANG);
	assert_int_equal(verdict->incident_id, heard_of(heard, 1000)->incident_id);
	heard_destroy(heard);
}

static void
test_probe_that_comes_late_revises_the_verdicts(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	uint64_t end = BEGIN + 200 * MS;
	stop(heard, 0);
	assert_blame(heard_of(heard, 1001)->root, BS_BUFFER_SERVICE, BS_CAUSE_CONGESTION);
	feed_probe(heard, BEGIN, end, BS_PROBE_STOPPED);
	bs_diag_advance(heard->diag, end + 400 * MS);
	for (uint64_t id = 1000; id < 1004; id++) {
		const struct bs_rec_verdict *verdict = heard_of(heard, id);
		assert_blame(verdict->root, BS_BUFFER_SERVICE, BS_CAUSE_HANG);
		assert_int_equal(verdict->revision, 1);
		assert_int_equal(verdict->alternative_count, 0);
	}
	/* The victims have moved to the incident of the hang. */
	bs_diag_advance(heard->diag, end + 3 * SEC);
	assert_int_equal(heard->closed, 2);
	for (unsigned i = 0; i < heard->incidents; i++) {
		const struct bs_rec_incident *incident = &heard->incident[i];
		if (!incident->open)
			assert_int_equal(
				incident->victims, incident->origin.cause == BS_CAUSE_HANG ? 4 : 0);
	}
	heard_destroy(heard);
}

static void
test_probe_after_a_second_revises_nothing(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	uint64_t end = BEGIN + 200 * MS;
	stop(heard, 0);
	bs_diag_advance(heard->diag, end + 2 * SEC);
	feed_probe(heard, BEGIN, end, BS_PROBE_STOPPED);
	bs_diag_advance(heard->diag, end + 3 * SEC);
	assert_int_equal(heard_of(heard, 1000)->revision, 0);
	heard_destroy(heard);
}

static void
test_silence_that_goes_on_is_judged_by_age(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	struct group group;
	feed_usual(heard, 1, 64, BEGIN);
	feed_silence(heard, BEGIN, 0, 0, 2, 0);
	for (unsigned i = 0; i < 2; i++) {
		group_begin(&group, 1000 + i, i, BEGIN + i * MS);
		group_rpc(&group)->outcome = BS_OUTCOME_IN_PROGRESS;
		group_add(&group, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 500 * MS);
		group_feed(heard, &group);
	}
	settle(heard, BEGIN + 501 * MS);
	assert_blame(heard_of(heard, 1000)->root, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	assert_alternative(heard_of(heard, 1000), BS_BUFFER_SERVICE, BS_CAUSE_HANG);
	assert_blame(heard_of(heard, 1001)->root, BS_BUFFER_SERVICE, BS_CAUSE_CONGESTION);

	/* It ends; the same RPCs are told again, and are counted once. */
	feed_silence(heard, BEGIN, BEGIN + 600 * MS, 1000, 2, 0);
	feed_probe(heard, BEGIN, BEGIN + 600 * MS, BS_PROBE_RUNNING);
	for (unsigned i = 0; i < 2; i++) {
		group_begin(&group, 1000 + i, i, BEGIN + i * MS);
		group_add(&group, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE,
			600 * MS - i * MS + i * 50 * US);
		group_feed(heard, &group);
	}
	settle(heard, BEGIN + 700 * MS);
	assert_blame(heard_of(heard, 1000)->root, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	assert_int_equal(heard_of(heard, 1000)->alternative_count, 0);
	assert_true(heard_of(heard, 1000)->revision >= 1);
	assert_blame(heard_of(heard, 1001)->root, BS_BUFFER_SERVICE, BS_CAUSE_CONGESTION);
	bs_diag_advance(heard->diag, BEGIN + 3 * SEC);
	assert_int_equal(heard->closed, 1);
	assert_int_equal(heard->incident[heard->incidents - 1].victims, 2);
	assert_int_equal(heard->incident[heard->incidents - 1].worst_count, 2);

	/* What comes after its end has nothing to do with it. */
	feed_simple(heard, 1005, 0, BEGIN + 4 * SEC, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 20 * MS);
	settle(heard, BEGIN + 4 * SEC + 20 * MS);
	assert_blame(heard_of(heard, 1005)->root, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	assert_int_equal(heard_of(heard, 1005)->alternative_count, 0);
	heard_destroy(heard);
}

static void
test_end_of_a_silence_that_was_cut_closes_its_last_part(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	feed_usual(heard, 1, 64, BEGIN);
	feed_silence(heard, BEGIN, 0, 0, 2, 0);
	/* An answer through another lcore. */
	feed_simple(heard, 900, 9, BEGIN + 49 * MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, MS);
	feed_silence(heard, BEGIN, BEGIN + 100 * MS, 1000, 2, 0);
	feed_simple(heard, 1000, 0, BEGIN + 50 * MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 50 * MS);
	feed_simple(heard, 1001, 1, BEGIN + 300 * MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 20 * MS);
	settle(heard, BEGIN + 320 * MS);
	assert_alternative(heard_of(heard, 1000), BS_BUFFER_SERVICE, BS_CAUSE_HANG);
	assert_int_equal(heard_of(heard, 1001)->alternative_count, 0);
	heard_destroy(heard);
}

static void
test_verdict_is_withdrawn_when_a_probe_speaks_against_it(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	const uint64_t at = BEGIN + SEC;
	/* 5 ms are usual, so that 14 ms are a hang or nothing. */
	for (unsigned i = 0; i < 64; i++)
		feed_simple(
			heard, 1 + i, 0, T0 + i * MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 5 * MS);
	settle(heard, BEGIN);
	feed_silence(heard, at, at + 14 * MS, 1000, 1, 0);
	feed_probe(heard, at, at + 5 * MS, BS_PROBE_STOPPED);
	for (unsigned i = 0; i < 2; i++)
		feed_simple(heard, 1000 + i, i, at - 10 * US, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE,
			14 * MS);
	settle(heard, at + 14 * MS);
	assert_int_equal(heard_of(heard, 1000)->anomalous_by, BS_BY_EVIDENCE);
	assert_int_equal(heard->opened, 1);
	feed_probe(heard, at + 5 * MS, at + 14 * MS, BS_PROBE_RUNNING);
	bs_diag_advance(heard->diag, at + 400 * MS);
	assert_int_equal(heard_of(heard, 1000)->anomalous_by, 0);
	assert_int_equal(heard_of(heard, 1000)->revision, 1);
	bs_diag_advance(heard->diag, at + 3 * SEC);
	assert_int_equal(heard->incident[heard->incidents - 1].open, 0);
	assert_int_equal(heard->incident[heard->incidents - 1].victims, 0);
	heard_destroy(heard);
}

static void
test_silence_elsewhere_or_of_another_service_explains_nothing(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	struct bs_rec_silence other = {.t_begin = BEGIN, .t_end = BEGIN + 200 * MS, .service = 5};
	feed_usual(heard, 1, 64, BEGIN);
	bs_record_head(&other.head, BS_REC_SILENCE, 0);
	assert_int_equal(bs_diag_feed(heard->diag, &other.head, sizeof(other)), 0);
	feed_silence(heard, BEGIN - SEC, BEGIN - SEC / 2, 1, 2, 0);
	/* It covers less than half of the wait. */
	feed_silence(heard, BEGIN, BEGIN + 40 * MS, 1000, 2, 0);
	feed_simple(heard, 1000, 0, BEGIN, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 200 * MS);
	settle(heard, BEGIN + 200 * MS);
	assert_blame(heard_of(heard, 1000)->root, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	assert_int_equal(heard_of(heard, 1000)->alternative_count, 0);
	heard_destroy(heard);
}

static void
test_same_verdicts_offline(void **state)
{
	(void)state;
	struct heard *heard = heard_create(true);
	struct group group;
	uint64_t end = BEGIN + 200 * MS;
	feed_usual(heard, 1, 64, BEGIN);
	feed_waiting(heard, end); /* before the silence is told */
	feed_silence(heard, BEGIN, end, 1000, 4, 0);
	for (unsigned i = 0; i < 4; i++) {
		uint64_t given = BEGIN + i * 10 * MS;
		group_simple(&group, 1000 + i, i, given - 10 * US, BS_BUFFER_SERVICE,
			BS_CAUSE_COMPUTE, end + i * 30 * US - given);
		struct bs_rec_verdict verdict = judge_group(heard, &group);
		assert_blame(verdict.root, BS_BUFFER_SERVICE,
			i == 0 ? BS_CAUSE_COMPUTE : BS_CAUSE_CONGESTION);
		assert_alternative(&verdict, BS_BUFFER_SERVICE, BS_CAUSE_HANG);
	}
	bs_diag_finish(heard->diag);
	assert_int_equal(heard->closed, 1);
	assert_int_equal(heard->incident[heard->incidents - 1].victims, 4);
	heard_destroy(heard);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_at_a_time_without_probe_gives_a_set),
		cmocka_unit_test(test_stopped_starved_or_throttled_probe_makes_all_a_hang),
		cmocka_unit_test(test_running_probe_leaves_no_hang),
		cmocka_unit_test(test_asleep_probe_leaves_the_set),
		cmocka_unit_test(
			test_requests_that_nobody_reads_while_all_sleep_are_a_hang_of_the_socket),
		cmocka_unit_test(
			test_requests_that_nobody_reads_while_it_works_are_contention_of_the_socket),
		cmocka_unit_test(test_one_request_that_was_read_leaves_the_silence_rule),
		cmocka_unit_test(test_stopped_with_unread_requests_is_a_hang_of_the_service),
		cmocka_unit_test(test_answer_held_in_its_socket_is_not_charged_to_the_service),
		cmocka_unit_test(test_connection_that_is_not_accepted_waits_in_the_accept_queue),
		cmocka_unit_test(test_what_was_so_for_less_than_half_of_the_looks_settles_nothing),
		cmocka_unit_test(test_backlog_of_unread_requests_leads_back_to_the_socket),
		cmocka_unit_test(test_longest_probed_state_wins_and_a_short_probe_settles_nothing),
		cmocka_unit_test(test_single_pending_rpc_gives_a_set),
		cmocka_unit_test(test_concurrent_service_silent_over_several_is_a_hang),
		cmocka_unit_test(
			test_concurrent_service_with_one_pending_or_a_short_silence_gives_a_set),
		cmocka_unit_test(test_too_few_overtakings_are_not_concurrency),
		cmocka_unit_test(test_backlog_of_a_stop_served_in_any_order_is_not_concurrency),
		cmocka_unit_test(test_briefs_prove_concurrency_only_if_no_late_ack_explains_them),
		cmocka_unit_test(test_answer_through_another_lcore_ends_the_silence),
		cmocka_unit_test(test_both_lcores_silent_is_one_silence),
		cmocka_unit_test(test_backlog_of_a_hang_is_congestion_that_leads_to_it),
		cmocka_unit_test(test_pipelined_rpc_blocked_by_a_stopped_one_leads_to_the_hang),
		cmocka_unit_test(test_probe_that_comes_late_revises_the_verdicts),
		cmocka_unit_test(test_probe_after_a_second_revises_nothing),
		cmocka_unit_test(test_silence_that_goes_on_is_judged_by_age),
		cmocka_unit_test(test_end_of_a_silence_that_was_cut_closes_its_last_part),
		cmocka_unit_test(test_verdict_is_withdrawn_when_a_probe_speaks_against_it),
		cmocka_unit_test(test_silence_elsewhere_or_of_another_service_explains_nothing),
		cmocka_unit_test(test_same_verdicts_offline),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
