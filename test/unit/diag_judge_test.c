/* SPDX-License-Identifier: BSD-3-Clause */
/* What makes an RPC anomalous, what is blamed, and what hostile records do. */
#include "diag_util.h"

#include <errno.h>

static struct heard *
warm(unsigned count)
{
	struct heard *heard = heard_create(true);
	feed_usual(heard, 1, count, T0);
	return heard;
}

static unsigned
anomalous_by(struct heard *heard, unsigned buffer, unsigned cause, uint64_t ns)
{
	struct group group;
	group_simple(&group, 1000, 0, T0, buffer, cause, ns);
	return judge_group(heard, &group).anomalous_by;
}

static void
test_evidence_needs_the_threshold_of_its_cause(void **state)
{
	(void)state;
	struct heard *heard = warm(64);
	const unsigned causes[] = {BS_CAUSE_PAUSE, BS_CAUSE_CONTENTION, BS_CAUSE_DISORDER};
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(anomalous_by(heard, OWN_QUEUE, causes[i], 199 * US), 0);
		assert_int_equal(
			anomalous_by(heard, OWN_QUEUE, causes[i], 200 * US), BS_BY_EVIDENCE);
	}
	assert_int_equal(anomalous_by(heard, OWN_QUEUE, BS_CAUSE_HANG, 999 * US), 0);
	assert_int_equal(anomalous_by(heard, OWN_QUEUE, BS_CAUSE_HANG, MS), BS_BY_EVIDENCE);
	/* Any drop that takes a fifth of the usual 120 us. */
	assert_int_equal(anomalous_by(heard, OWN_QUEUE, BS_CAUSE_DROP, 20 * US), 0);
	assert_int_equal(anomalous_by(heard, OWN_QUEUE, BS_CAUSE_DROP, 30 * US), BS_BY_EVIDENCE);
	/* Congestion is no evidence, only an outlier. */
	assert_int_equal(anomalous_by(heard, OWN_QUEUE, BS_CAUSE_CONGESTION, 250 * US), 0);
	assert_int_equal(anomalous_by(heard, OWN_QUEUE, BS_CAUSE_CONGESTION, MS), BS_BY_OUTLIER);
	heard_destroy(heard);
}

static void
test_evidence_needs_a_fifth_of_the_median(void **state)
{
	(void)state;
	struct heard *heard = heard_create(true);
	for (unsigned i = 0; i < 64; i++)
		feed_simple(heard, 1 + i, 0, T0, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 100 * MS);
	assert_int_equal(anomalous_by(heard, OWN_QUEUE, BS_CAUSE_PAUSE, 18 * MS), 0);
	assert_int_equal(anomalous_by(heard, OWN_QUEUE, BS_CAUSE_PAUSE, 22 * MS), BS_BY_EVIDENCE);
	heard_destroy(heard);
}

static void
test_stretches_of_one_cause_add_up(void **state)
{
	(void)state;
	struct heard *heard = warm(64);
	struct group group;
	group_begin(&group, 1000, 0, T0);
	group_add(&group, OWN_QUEUE, BS_CAUSE_PAUSE, 150 * US);
	group_add(&group, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 100 * US);
	group_add(&group, OWN_PORT, BS_CAUSE_PAUSE, 150 * US);
	group_end(&group);
	assert_int_equal(judge_group(heard, &group).anomalous_by, BS_BY_EVIDENCE);
	heard_destroy(heard);
}

static void
test_slow_without_a_cause_that_counts_is_no_outlier(void **state)
{
	(void)state;
	struct heard *heard = warm(64);
	const unsigned causes[] = {BS_CAUSE_ACK_WAIT, BS_CAUSE_CWND, BS_CAUSE_UNOBSERVED};
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(
			anomalous_by(heard, BS_BUFFER_SERVER_SOCKET_TX, causes[i], 40 * MS), 0);
	assert_int_equal(
		anomalous_by(heard, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_TRANSFER, 40 * MS),
		BS_BY_OUTLIER);
	heard_destroy(heard);
}

static void
test_slo_of_service_and_of_the_longest_matching_operation(void **state)
{
	(void)state;
	struct heard *heard = warm(64);
	struct group group;
	assert_int_equal(bs_diag_slo(heard->diag, 0, NULL, MS), 0);
	assert_int_equal(bs_diag_slo(heard->diag, 0, "LRANGE", 20 * MS), 0);
	assert_int_equal(bs_diag_slo(heard->diag, 0, "LRANGE all", 40 * MS), 0);
	assert_int_equal(bs_diag_slo(heard->diag, 1, "LRANGE", US), 0);
	const struct {
		const char *label;
		uint64_t ns;
		bool beyond;
	} cases[] = {
		{"GET k", 900 * US, false},
		{"GET k", 1100 * US, true},
		{"LRANGE", 19 * MS, false},
		{"LRANGE x", 21 * MS, true},
		{"LRANGE all", 21 * MS, false},
		{"LRANG", 2 * MS, true},
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		group_simple(&group, 1000, 0, T0, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, cases[i].ns);
		struct bs_rec_rpc *rpc = group_rpc(&group);
		rpc->label_len = (uint8_t)strlen(cases[i].label);
		memcpy(rpc->label, cases[i].label, rpc->label_len);
		assert_int_equal(
			!!(judge_group(heard, &group).anomalous_by & BS_BY_SLO), cases[i].beyond);
	}
	assert_int_equal(bs_diag_slo(heard->diag, 10000, NULL, MS), -ENOSPC);
	heard_destroy(heard);
}

static unsigned
anomalous_lrange(struct heard *heard, uint64_t ns)
{
	struct group group;
	group_simple(&group, 1000, 0, T0, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, ns);
	group_rpc(&group)->label_len = 6;
	memcpy(group_rpc(&group)->label, "LRANGE", 6);
	return judge_group(heard, &group).anomalous_by & BS_BY_SLO;
}

static void
test_slo_given_again_replaces_and_a_cleared_one_is_gone(void **state)
{
	(void)state;
	struct heard *heard = warm(64);
	/* More often than there is room for rules. */
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(bs_diag_slo(heard->diag, 0, "LRANGE", 10 * MS + i), 0);
	assert_int_equal(bs_diag_slo(heard->diag, 0, "LRANGE", 20 * MS), 0);
	assert_int_equal(anomalous_lrange(heard, 19 * MS), 0);
	assert_int_equal(anomalous_lrange(heard, 21 * MS), BS_BY_SLO);
	assert_int_equal(bs_diag_slo(heard->diag, 0, NULL, MS), 0);
	bs_diag_slo_clear(heard->diag);
	assert_int_equal(anomalous_lrange(heard, 21 * MS), 0);
	heard_destroy(heard);
}

static void
test_thresholds_of_evidence_can_change(void **state)
{
	(void)state;
	const uint64_t detect_ns[6] = {[BS_CAUSE_PAUSE] = 5 * MS, [BS_CAUSE_HANG] = 300 * MS};
	struct heard *heard = warm(64);
	struct group group;
	assert_int_equal(anomalous_by(heard, OWN_QUEUE, BS_CAUSE_PAUSE, 4 * MS), BS_BY_EVIDENCE);
	bs_diag_detect(heard->diag, detect_ns);
	assert_int_equal(anomalous_by(heard, OWN_QUEUE, BS_CAUSE_PAUSE, 4 * MS), 0);
	assert_int_equal(anomalous_by(heard, OWN_QUEUE, BS_CAUSE_PAUSE, 6 * MS), BS_BY_EVIDENCE);
	/* A silence shorter than a hang says nothing, so nobody asks whether it was one. */
	feed_silence(heard, T0, T0 + 250 * MS, 1000, 1, 0);
	group_simple(&group, 1000, 0, T0 - 10 * US, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 250 * MS);
	assert_int_equal(judge_group(heard, &group).alternative_count, 0);
	feed_silence(heard, T0 + SEC, T0 + SEC + 350 * MS, 1001, 1, 0);
	group_simple(
		&group, 1001, 0, T0 + SEC - 10 * US, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 350 * MS);
	assert_int_equal(judge_group(heard, &group).alternative_count, 1);
	heard_destroy(heard);
}

static void
test_slo_of_a_name_record_yields_to_a_given_one(void **state)
{
	(void)state;
	struct heard *heard = warm(64);
	struct bs_rec_name name = {.kind = BS_NAME_SERVICE, .number = 0, .slo_ns = 200 * US};
	bs_record_head(&name.head, BS_REC_NAME, 0);
	assert_int_equal(bs_diag_feed(heard->diag, &name.head, sizeof(name)), 0);
	assert_int_equal(
		anomalous_by(heard, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 250 * US), BS_BY_SLO);
	assert_int_equal(bs_diag_slo(heard->diag, 0, NULL, 0), 0);
	assert_int_equal(bs_diag_feed(heard->diag, &name.head, sizeof(name)), 0);
	assert_int_equal(anomalous_by(heard, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 250 * US), 0);
	heard_destroy(heard);
}

static void
test_largest_excess_is_the_root_and_share_is_of_the_latency(void **state)
{
	(void)state;
	struct heard *heard = warm(64);
	struct group group;
	group_begin(&group, 1000, 0, T0);
	group_add(&group, OWN_QUEUE, BS_CAUSE_CONTENTION, 3 * MS)->detail = 0;
	group_add(&group, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 100 * US);
	group_add(&group, BS_BUFFER_NET_RESPONSE_AFTER, BS_CAUSE_DROP, 6900 * US)->packet = 42;
	group_end(&group);
	struct bs_rec_verdict verdict = judge_group(heard, &group);
	assert_blame(verdict.root, BS_BUFFER_NET_RESPONSE_AFTER, BS_CAUSE_DROP);
	assert_int_equal(verdict.excess_ns, 6900 * US);
	assert_int_equal(verdict.share_ppm, 690000);
	assert_int_equal(verdict.evidence_count, 1);
	assert_int_equal(verdict.evidence[0], 42);
	/* 6.9 of 9.9 ms above normal, known exactly (0.97). */
	assert_in_range(verdict.confidence_ppm, 670000, 680000);
	heard_destroy(heard);
}

static void
test_crowded_service_without_a_silence_leaves_queueing_possible(void **state)
{
	(void)state;
	struct heard *heard = warm(64);
	struct group group;
	for (uint32_t pending = 0; pending < 2; pending++) {
		group_simple(&group, 1000, 0, T0, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 20 * MS);
		group_rpc(&group)->pending = pending;
		struct bs_rec_verdict verdict = judge_group(heard, &group);
		assert_blame(verdict.root, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
		assert_int_equal(verdict.alternative_count, pending);
		if (pending)
			assert_alternative(&verdict, BS_BUFFER_SERVICE, BS_CAUSE_CONGESTION);
	}
	heard_destroy(heard);
}

static void
test_unanswered_is_judged_by_age_and_a_long_poll_is_not(void **state)
{
	(void)state;
	struct heard *heard = warm(64);
	struct group group;
	group_simple(&group, 1000, 0, T0, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 10 * SEC);
	struct bs_rec_rpc *rpc = group_rpc(&group);
	rpc->outcome = BS_OUTCOME_UNANSWERED;
	group_end(&group);
	rpc->t_response_first = rpc->t_response_last = rpc->t_response_departure = 0;
	assert_int_equal(judge_group(heard, &group).anomalous_by, BS_BY_OUTLIER);
	rpc->kind = BS_KIND_LONG_POLL;
	assert_int_equal(judge_group(heard, &group).anomalous_by, 0);
	heard_destroy(heard);
}

static void
test_live_verdict_waits_for_settle_time(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	feed_usual(heard, 1, 64, T0);
	feed_simple(heard, 1000, 0, T0, OWN_QUEUE, BS_CAUSE_HANG, 20 * MS);
	bs_diag_advance(heard->diag, T0 + 119 * MS);
	assert_null(heard_of(heard, 1000));
	bs_diag_advance(heard->diag, T0 + 121 * MS);
	assert_non_null(heard_of(heard, 1000));
	heard_destroy(heard);
}

static void
test_hostile_records_are_refused_and_counted(void **state)
{
	(void)state;
	for (unsigned offline = 0; offline < 2; offline++) {
		struct heard *heard = heard_create(offline);
		struct bs_diag_counters counters;
		struct group group;
		group_simple(&group, 1, 0, T0, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, MS);
		struct bs_rec_rpc *rpc = group_rpc(&group);
		assert_int_equal(
			bs_diag_feed(heard->diag, &rpc->head, group_bytes(&group) - 64), -EBADMSG);
		rpc->service = 60000;
		assert_int_equal(
			bs_diag_feed(heard->diag, &rpc->head, group_bytes(&group)), -EBADMSG);
		rpc->service = 0;
		rpc->t_end = rpc->t_request_first - 1;
		assert_int_equal(
			bs_diag_feed(heard->diag, &rpc->head, group_bytes(&group)), -EBADMSG);

		struct bs_rec_brief brief = {.service = 257, .outcome = BS_OUTCOME_ANSWERED};
		bs_record_head(&brief.head, BS_REC_BRIEF, 0);
		bs_diag_feed(heard->diag, &brief.head, sizeof(brief));
		feed_silence(heard, T0, T0 - 1, 1, 2, 0);
		struct bs_rec_probe probe = {.t_begin = 2, .t_end = 1, .state = 200};
		bs_record_head(&probe.head, BS_REC_PROBE, 0);
		bs_diag_feed(heard->diag, &probe.head, sizeof(probe));
		feed_episode(heard, 65535, BS_CAUSE_HANG, T0, T0, 0, 0);
		feed_episode(heard, OWN_QUEUE, BS_CAUSE_COMPUTE, T0, T0, 0, 0);
		bs_diag_counters(heard->diag, &counters);
		assert_int_equal(counters.rejected, 5);
		heard_destroy(heard);
	}
}

/* xorshift64, Marsaglia 2003. */
static uint64_t
next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static bool
may_be_root(const struct group *group, struct bs_blame root)
{
	struct group *all = (struct group *)(uintptr_t)group;
	for (unsigned i = 0; i < group_rpc(all)->segment_count; i++) {
		const struct bs_rec_segment *segment = &group_segments(all)[i];
		if (segment->buffer != root.buffer)
			continue;
		if (segment->cause == root.cause ||
			(root.buffer == BS_BUFFER_SERVICE && segment->cause == BS_CAUSE_COMPUTE &&
				(root.cause == BS_CAUSE_HANG || root.cause == BS_CAUSE_CONGESTION)))
			return true;
	}
	return false;
}

static void
random_group(struct group *group, uint64_t *seed, uint64_t id)
{
	unsigned segments = 1 + (unsigned)(next_random(seed) % 12);
	group_begin(
		group, id, (unsigned)(next_random(seed) % 8), T0 + next_random(seed) % (2 * SEC));
	for (unsigned i = 0; i < segments; i++) {
		unsigned buffer = (unsigned)(next_random(seed) % BS_BUFFER_INFERRED_COUNT);
		if (next_random(seed) % 3 == 0)
			buffer = OWN_QUEUE + (unsigned)(next_random(seed) % 4);
		if (next_random(seed) % 3 == 0)
			buffer = BS_BUFFER_SERVICE;
		group_add(group, buffer, (unsigned)(next_random(seed) % BS_CAUSE_COUNT),
			next_random(seed) % (5 * MS));
	}
	group_rpc(group)->pending = (uint32_t)(next_random(seed) % 3);
	group_rpc(group)->service = (uint16_t)(next_random(seed) % 3);
	group_end(group);
}

/* Root is a segment's, or what the silence rule makes of it; shares and counts in range. */
static void
test_verdicts_of_random_streams_hold_their_promises(void **state)
{
	(void)state;
	uint64_t seed = 0x5eed;
	for (unsigned round = 0; round < 20; round++) {
		struct heard *heard = heard_create(true);
		struct group group;
		uint64_t again = seed;
		for (unsigned i = 0; i < 200; i++) {
			random_group(&group, &seed, 1 + i);
			group_feed(heard, &group);
			uint64_t begin = T0 + next_random(&seed) % (2 * SEC);
			feed_silence(heard, begin, begin + next_random(&seed) % (50 * MS), 1 + i,
				(uint32_t)(next_random(&seed) % 4), i % 2);
			feed_probe(heard, begin, begin + 5 * MS, 1 + i % 4);
			feed_episode(heard, 32 + i % 4, i % 6, begin, i % 9 ? begin + MS : 0,
				32 + i % 3, i % 2);
		}
		for (unsigned i = 0; i < 200; i++) {
			random_group(&group, &again, 1 + i);
			next_random(&again);
			next_random(&again);
			next_random(&again);
			struct bs_rec_verdict verdict = judge_group(heard, &group);
			assert_int_equal(verdict.has_root, 1);
			assert_true(may_be_root(&group, verdict.root));
			assert_true(verdict.share_ppm <= 1000000);
			assert_true(verdict.confidence_ppm <= 1000000);
			assert_true(verdict.alternative_count <= BS_VERDICT_ALTERNATIVES);
			assert_true(verdict.via_count <= BS_VERDICT_VIA);
			assert_true(!verdict.anomalous_by == !verdict.incident_id);
			for (unsigned a = 0; a < verdict.alternative_count; a++)
				assert_memory_not_equal(&verdict.alternatives[a], &verdict.root,
					sizeof(verdict.root));
		}
		heard_destroy(heard);
	}
}

/* Valid each, but overlapping and past the end: nothing crashes, nothing exceeds the latency. */
static void
test_segments_that_do_not_tile_are_clipped(void **state)
{
	(void)state;
	uint64_t seed = 0xbad5eed;
	struct heard *heard = heard_create(true);
	struct group group;
	for (unsigned i = 0; i < 2000; i++) {
		random_group(&group, &seed, 1 + i);
		struct bs_rec_rpc *rpc = group_rpc(&group);
		for (unsigned s = 0; s < rpc->segment_count; s++) {
			struct bs_rec_segment *segment = &group_segments(&group)[s];
			segment->end_ns = next_random(&seed) >> next_random(&seed) % 64;
			segment->begin_ns = segment->end_ns >> next_random(&seed) % 64;
		}
		if (i % 3 == 0)
			rpc->t_end = UINT64_MAX;
		if (i % 3 == 0 && rpc->t_response_departure)
			rpc->t_response_departure = UINT64_MAX;
		assert_int_equal(bs_diag_feed(heard->diag, &rpc->head, group_bytes(&group)), 0);
		struct bs_rec_verdict verdict = judge_group(heard, &group);
		assert_true(verdict.share_ppm <= 1000000);
	}
	heard_destroy(heard);
}

static void
test_advice_exists_for_every_blame(void **state)
{
	(void)state;
	for (unsigned buffer = 0; buffer < 40; buffer++) {
		for (unsigned cause = 0; cause < 256; cause++) {
			struct bs_blame blame = {
				.buffer = (uint16_t)buffer, .cause = (uint8_t)cause};
			for (unsigned detail = 0; detail < 40; detail++) {
				const char *advice = bs_diag_advice(&blame, detail);
				assert_non_null(advice);
				assert_true(strlen(advice) > 10);
				assert_null(strchr(advice, '\n'));
			}
		}
	}
	struct bs_blame hang = {.buffer = OWN_QUEUE, .cause = BS_CAUSE_HANG};
	assert_non_null(strstr(bs_diag_advice(&hang, BS_DETAIL_PREEMPTED), "scheduler"));
	hang.buffer = BS_BUFFER_SERVICE;
	assert_non_null(strstr(bs_diag_advice(&hang, 0), "service"));
	assert_non_null(strstr(bs_diag_advice(&hang, BS_DETAIL_THROTTLED), "cpu.max"));
	assert_non_null(strstr(bs_diag_advice(&hang, BS_DETAIL_STOPPED), "SIGSTOP"));
	assert_non_null(strstr(bs_diag_advice(&hang, BS_DETAIL_STARVED), "no CPU"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_evidence_needs_the_threshold_of_its_cause),
		cmocka_unit_test(test_evidence_needs_a_fifth_of_the_median),
		cmocka_unit_test(test_stretches_of_one_cause_add_up),
		cmocka_unit_test(test_slow_without_a_cause_that_counts_is_no_outlier),
		cmocka_unit_test(test_slo_of_service_and_of_the_longest_matching_operation),
		cmocka_unit_test(test_slo_given_again_replaces_and_a_cleared_one_is_gone),
		cmocka_unit_test(test_thresholds_of_evidence_can_change),
		cmocka_unit_test(test_slo_of_a_name_record_yields_to_a_given_one),
		cmocka_unit_test(test_largest_excess_is_the_root_and_share_is_of_the_latency),
		cmocka_unit_test(test_crowded_service_without_a_silence_leaves_queueing_possible),
		cmocka_unit_test(test_unanswered_is_judged_by_age_and_a_long_poll_is_not),
		cmocka_unit_test(test_live_verdict_waits_for_settle_time),
		cmocka_unit_test(test_hostile_records_are_refused_and_counted),
		cmocka_unit_test(test_verdicts_of_random_streams_hold_their_promises),
		cmocka_unit_test(test_segments_that_do_not_tile_are_clipped),
		cmocka_unit_test(test_advice_exists_for_every_blame),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
