/* SPDX-License-Identifier: BSD-3-Clause */
/* What the diagnosis takes for normal, and what it makes of the rest. */
#include "diag_util.h"

#include "sketch.h"

static struct bs_rec_verdict
judge_simple(struct heard *heard, uint64_t id, unsigned buffer, unsigned cause, uint64_t ns)
{
	struct group group;
	group_simple(&group, id, 0, T0, buffer, cause, ns);
	return judge_group(heard, &group);
}

static void
test_sketch_median_is_within_a_bin_of_the_true_one(void **state)
{
	(void)state;
	for (uint64_t true_ns = 2 * US; true_ns < 100 * SEC; true_ns = true_ns * 3 + 17) {
		struct sketch sketch = {0};
		for (uint64_t i = 0; i < 101; i++)
			sketch_add(&sketch,
				true_ns + (i < 50	   ? 0 - true_ns / 2
						  : i > 50 ? true_ns
							   : 0),
				1);
		sketch_refresh(&sketch);
		/* A bin is an eighth of its octave: its middle is within 1/16 of all in it. */
		assert_true(sketch.median_ns >= true_ns - true_ns / 16);
		assert_true(sketch.median_ns <= true_ns + true_ns / 16);
	}
}

static void
test_sketch_forgets_what_is_two_windows_old(void **state)
{
	(void)state;
	struct sketch sketch = {0};
	sketch_add(&sketch, 1 * MS, 10000);
	for (unsigned i = 0; i < 2 * SKETCH_WINDOW; i++) {
		sketch_add(&sketch, 10 * MS, 1);
		assert_true(sketch.count < SKETCH_WINDOW);
	}
	sketch_refresh(&sketch);
	assert_in_range(sketch.median_ns, 9 * MS, 11 * MS);
	assert_in_range(sketch_quantile(&sketch, 0.5), 9 * MS, 11 * MS);
}

static void
test_sketch_envelope_has_a_floor_of_a_quarter(void **state)
{
	(void)state;
	struct sketch sketch = {0};
	sketch_add(&sketch, 1 * MS, 100);
	sketch_refresh(&sketch);
	/* 1.25^6 = 3.815 */
	assert_in_range(sketch_envelope(&sketch, 6), sketch.median_ns * 3814 / 1000,
		sketch.median_ns * 3816 / 1000);
}

static void
test_sketch_extremes_do_not_overflow(void **state)
{
	(void)state;
	struct sketch sketch = {0};
	sketch_add(&sketch, UINT64_MAX, UINT64_MAX);
	sketch_add(&sketch, 0, 3);
	sketch_refresh(&sketch);
	assert_true(sketch.median_ns >= 100 * SEC);
	assert_true(sketch_envelope(&sketch, 1e6) == UINT64_MAX);
}

static void
test_no_outlier_while_cold_and_one_when_warm(void **state)
{
	(void)state;
	for (unsigned count = 31; count <= 32; count++) {
		struct heard *heard = heard_create(true);
		feed_usual(heard, 1, count, T0);
		struct bs_rec_verdict verdict =
			judge_simple(heard, 1000, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 20 * MS);
		assert_int_equal(verdict.anomalous_by, count == 32 ? BS_BY_OUTLIER : 0);
		assert_int_equal(verdict.baseline_warm, count == 32);
		assert_blame(verdict.root, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
		heard_destroy(heard);
	}
}

static void
test_outlier_needs_the_floor_and_the_envelope(void **state)
{
	(void)state;
	/* Median 120 us: envelope about 458 us; 200 us of excess: 320 us. */
	struct heard *heard = heard_create(true);
	feed_usual(heard, 1, 64, T0);
	assert_int_equal(judge_simple(heard, 1000, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 350 * US)
				 .anomalous_by,
		0);
	assert_int_equal(judge_simple(heard, 1001, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 600 * US)
				 .anomalous_by,
		BS_BY_OUTLIER);
	heard_destroy(heard);

	/* Median 21 us: ten times as much is beyond the envelope, but nobody minds 190 us. */
	heard = heard_create(true);
	for (unsigned i = 0; i < 64; i++)
		feed_simple(heard, 1 + i, 0, T0, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 1 * US);
	assert_int_equal(judge_simple(heard, 1000, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 190 * US)
				 .anomalous_by,
		0);
	assert_int_equal(judge_simple(heard, 1001, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 260 * US)
				 .anomalous_by,
		BS_BY_OUTLIER);
	heard_destroy(heard);
}

static void
test_spread_of_the_operation_widens_the_envelope(void **state)
{
	(void)state;
	struct heard *heard = heard_create(true);
	/* 100 us to 3.2 ms, evenly in the log: MAD of the log about ln 2.4. */
	for (unsigned i = 0; i < 600; i++)
		feed_simple(heard, 1 + i, 0, T0, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE,
			(100 * US) << i % 6);
	assert_int_equal(judge_simple(heard, 1000, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 20 * MS)
				 .anomalous_by,
		0);
	heard_destroy(heard);
}

static void
test_rare_wait_has_normal_zero_however_long_it_is(void **state)
{
	(void)state;
	struct heard *heard = heard_create(true);
	feed_usual(heard, 1, 100, T0);
	for (unsigned i = 0; i < 20; i++)
		feed_simple(
			heard, 200 + i, 0, T0, BS_BUFFER_CLIENT_SOCKET_RX, BS_CAUSE_PAUSE, 10 * MS);
	struct bs_rec_verdict verdict =
		judge_simple(heard, 1000, BS_BUFFER_CLIENT_SOCKET_RX, BS_CAUSE_PAUSE, 10 * MS);
	assert_int_equal(verdict.anomalous_by, BS_BY_EVIDENCE);
	assert_int_equal(verdict.normal_ns, 0);
	assert_int_equal(verdict.chronic, 0);
	heard_destroy(heard);
}

static void
test_chronic_window_is_normal_and_said_so_under_an_slo(void **state)
{
	(void)state;
	struct heard *heard = heard_create(true);
	for (unsigned i = 0; i < 100; i++)
		feed_simple(heard, 1 + i, 0, T0, BS_BUFFER_CLIENT_SOCKET_RX, BS_CAUSE_PAUSE,
			10 * MS + i % 10 * 100 * US);
	assert_int_equal(
		judge_simple(heard, 1000, BS_BUFFER_CLIENT_SOCKET_RX, BS_CAUSE_PAUSE, 11 * MS)
			.anomalous_by,
		0);
	assert_int_equal(
		judge_simple(heard, 1001, BS_BUFFER_CLIENT_SOCKET_RX, BS_CAUSE_PAUSE, 100 * MS)
			.anomalous_by,
		BS_BY_EVIDENCE);

	/* 4 ms more are a fifth of the median and more, but this window varies. */
	assert_int_equal(
		judge_simple(heard, 1003, BS_BUFFER_CLIENT_SOCKET_RX, BS_CAUSE_PAUSE, 15 * MS)
			.anomalous_by,
		0);

	assert_int_equal(bs_diag_slo(heard->diag, 0, NULL, 5 * MS), 0);
	struct bs_rec_verdict verdict =
		judge_simple(heard, 1002, BS_BUFFER_CLIENT_SOCKET_RX, BS_CAUSE_PAUSE, 10 * MS);
	assert_int_equal(verdict.anomalous_by, BS_BY_SLO);
	assert_blame(verdict.root, BS_BUFFER_CLIENT_SOCKET_RX, BS_CAUSE_PAUSE);
	assert_int_equal(verdict.chronic, 1);
	assert_in_range(verdict.normal_ns, 9 * MS, 12 * MS);
	heard_destroy(heard);
}

static void
test_live_chronic_window_becomes_normal_while_cold(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	for (unsigned i = 0; i < 100; i++) {
		feed_simple(heard, 1 + i, 0, T0 + i * 20 * MS, BS_BUFFER_CLIENT_SOCKET_RX,
			BS_CAUSE_PAUSE, 10 * MS);
		bs_diag_advance(heard->diag, T0 + i * 20 * MS);
	}
	bs_diag_advance(heard->diag, T0 + 3 * SEC);
	assert_int_equal(heard->verdicts, 32); /* only those while it was cold */
	heard_destroy(heard);
}

static void
test_other_operation_falls_back_to_the_service(void **state)
{
	(void)state;
	struct heard *heard = heard_create(true);
	struct group group;
	feed_usual(heard, 1, 64, T0);
	group_simple(&group, 1000, 0, T0, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 20 * MS);
	group_rpc(&group)->operation_hash = 8;
	struct bs_rec_verdict coarse = judge_group(heard, &group);
	assert_int_equal(coarse.anomalous_by, BS_BY_OUTLIER);
	group_rpc(&group)->operation_hash = 7;
	struct bs_rec_verdict fine = judge_group(heard, &group);
	assert_true(coarse.confidence_ppm < fine.confidence_ppm);
	/* Known to be slow, it is not an outlier. */
	group_rpc(&group)->operation_hash = 8;
	for (unsigned i = 0; i < 32; i++)
		group_feed(heard, &group);
	assert_int_equal(judge_group(heard, &group).anomalous_by, 0);
	/* Nor is another size of it, as long as it is as slow. */
	group_rpc(&group)->service = 1;
	assert_int_equal(judge_group(heard, &group).anomalous_by, 0);
	assert_int_equal(judge_group(heard, &group).baseline_warm, 0);
	heard_destroy(heard);
}

static void
test_size_classes_have_their_own_normal(void **state)
{
	(void)state;
	struct heard *heard = heard_create(true);
	struct group group;
	feed_usual(heard, 1, 64, T0);
	group_simple(&group, 1000, 0, T0, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 20 * MS);
	group_rpc(&group)->response_bytes = 1000000;
	for (unsigned i = 0; i < 32; i++)
		group_feed(heard, &group);
	assert_int_equal(judge_group(heard, &group).anomalous_by, 0);
	group_rpc(&group)->response_bytes = 40;
	assert_int_equal(judge_group(heard, &group).anomalous_by, BS_BY_OUTLIER);
	heard_destroy(heard);
}

static void
test_briefs_feed_the_normal(void **state)
{
	(void)state;
	struct heard *heard = heard_create(true);
	struct bs_rec_brief brief = {.t_end = T0,
		.operation_hash = 7,
		.request_bytes = 60,
		.response_bytes = 40,
		.request_ns = 10 * US,
		.in_ns = 5 * US,
		.service_ns = 100 * US,
		.response_ns = 10 * US,
		.out_ns = 5 * US,
		.outcome = BS_OUTCOME_ANSWERED};
	struct bs_diag_service service;
	bs_record_head(&brief.head, BS_REC_BRIEF, 0);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(bs_diag_feed(heard->diag, &brief.head, sizeof(brief)), 0);
	assert_true(bs_diag_service(heard->diag, 0, &service));
	assert_int_equal(service.rpcs, 64);
	assert_true(service.warm);
	assert_in_range(service.p50_ns, 122 * US, 138 * US);
	assert_in_range(service.service_p50_ns, 93 * US, 107 * US);
	struct bs_rec_verdict verdict =
		judge_simple(heard, 1000, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 20 * MS);
	assert_int_equal(verdict.anomalous_by, BS_BY_OUTLIER);
	assert_in_range(verdict.normal_ns, 93 * US, 107 * US);
	assert_false(bs_diag_service(heard->diag, 1, &service));
	assert_false(bs_diag_service(heard->diag, UINT32_MAX, &service));
	heard_destroy(heard);
}

/* Slow RPCs, one each 60 ms from `t` on. */
static void
feed_slow(struct heard *heard, uint64_t first_id, unsigned count, uint64_t t)
{
	for (unsigned i = 0; i < count; i++) {
		uint64_t at = t + i * 60 * MS;
		feed_simple(
			heard, first_id + i, 0, at, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 20 * MS);
		bs_diag_advance(heard->diag, at);
	}
}

static void
test_live_anomalous_rpcs_do_not_feed_until_they_last_a_minute(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	feed_usual(heard, 1, 64, T0);
	bs_diag_advance(heard->diag, T0 + SEC);
	/* For 54 s nearly all are slow, and each of them is still anomalous. */
	feed_slow(heard, 1000, 900, T0 + SEC);
	assert_in_range(heard->verdicts, 895, 900);
	/* After a minute they feed; they are normal once they are the median. */
	feed_slow(heard, 2000, 900, T0 + 55 * SEC);
	bs_diag_advance(heard->diag, T0 + 120 * SEC);
	assert_in_range(heard->verdicts, 1000 + 60, 1000 + 80);
	/* And the shift was one incident. */
	assert_int_equal(heard->opened, 1);
	heard_destroy(heard);
}

static void
test_hang_of_a_cold_service_does_not_become_its_normal(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	for (unsigned i = 0; i < 200; i++)
		feed_simple(heard, 1 + i, i, T0 + i * 10 * US, OWN_QUEUE, BS_CAUSE_HANG,
			50 * MS - i * 10 * US);
	bs_diag_advance(heard->diag, T0 + SEC);
	assert_int_equal(heard->verdicts, 200);
	heard_destroy(heard);
}

static void
test_ten_thousand_operations_stay_bounded_and_right(void **state)
{
	(void)state;
	struct heard *heard = heard_create(true);
	struct bs_diag_counters counters;
	struct group group;
	for (unsigned i = 0; i < 10000; i++) {
		group_simple(&group, 1 + i, 0, T0, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 100 * US);
		group_rpc(&group)->operation_hash = 1000 + i * 7919;
		group_rpc(&group)->response_bytes = 1ull << i % 40;
		group_feed(heard, &group);
	}
	bs_diag_counters(heard->diag, &counters);
	assert_true(counters.overflows >= 10000 - 256);
	/* A new operation is judged with the others that found no room. */
	group_simple(&group, 20000, 0, T0, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 20 * MS);
	assert_int_equal(judge_group(heard, &group).anomalous_by, BS_BY_OUTLIER);
	group_simple(&group, 20001, 0, T0, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 150 * US);
	assert_int_equal(judge_group(heard, &group).anomalous_by, 0);
	heard_destroy(heard);
}

static void
test_full_tables_fall_back_to_the_service(void **state)
{
	(void)state;
	struct heard *heard = heard_create(true);
	struct bs_diag_counters counters;
	struct group group;
	/* 200 services x 250 operations: more than there are places. */
	for (unsigned i = 0; i < 50000; i++) {
		group_simple(&group, 1 + i, 0, T0, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 100 * US);
		group_rpc(&group)->operation_hash = 1 + i / 200;
		group_rpc(&group)->service = (uint16_t)(i % 200);
		group_feed(heard, &group);
	}
	bs_diag_counters(heard->diag, &counters);
	assert_true(counters.overflows > 0);
	group_simple(&group, 60000, 0, T0, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 20 * MS);
	group_rpc(&group)->service = 199;
	group_rpc(&group)->operation_hash = 250;
	struct bs_rec_verdict verdict = judge_group(heard, &group);
	assert_int_equal(verdict.anomalous_by, BS_BY_OUTLIER);
	assert_in_range(verdict.normal_ns, 93 * US, 107 * US);
	heard_destroy(heard);
}

/* An RPC with a part of 10 ms in each of `parts` own buffers. */
static void
group_of_parts(struct group *group, uint32_t operation, unsigned parts)
{
	group_begin(group, 1 + operation, 0, T0);
	group_rpc(group)->operation_hash = operation;
	for (unsigned p = 0; p < parts; p++)
		group_add(group, OWN_QUEUE + p, BS_CAUSE_CONTENTION, 10 * MS);
	group_end(group);
}

static void
test_part_without_room_is_compared_with_that_of_the_service(void **state)
{
	(void)state;
	struct heard *heard = heard_create(true);
	struct bs_diag_counters counters;
	struct group group;
	/* 250 operations x 31 parts in 2 services are more than the 12288 that are kept. */
	for (unsigned i = 0; i < 500 * 32; i++) {
		group_of_parts(&group, 1 + i / 64, 31);
		group_rpc(&group)->service = (uint16_t)(i / 32 % 2);
		group_feed(heard, &group);
	}
	bs_diag_counters(heard->diag, &counters);
	assert_true(counters.overflows > 0);
	group_of_parts(&group, 250, 31);
	struct bs_rec_verdict verdict = judge_group(heard, &group);
	assert_int_equal(verdict.anomalous_by, 0);
	assert_in_range(verdict.normal_ns, 9300 * US, 10700 * US);
	heard_destroy(heard);
}

static void
test_threshold_is_told_when_warm_and_when_it_changes(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	feed_usual(heard, 1, 20, T0);
	bs_diag_advance(heard->diag, T0 + 10 * SEC);
	assert_int_equal(heard->thresholds, 0);
	feed_usual(heard, 100, 64, T0 + 12 * SEC);
	bs_diag_advance(heard->diag, T0 + 14 * SEC);
	assert_int_equal(heard->thresholds, 1);
	assert_int_equal(heard->threshold.service, 0);
	/* 120 us x 1.25^6, within a bin. */
	assert_in_range(heard->threshold.latency_ns, 430 * US, 490 * US);
	feed_usual(heard, 200, 200, T0 + 20 * SEC);
	bs_diag_advance(heard->diag, T0 + 30 * SEC);
	assert_int_equal(heard->thresholds, 1);
	/* An SLO below it: RPCs beyond that are wanted too. */
	assert_int_equal(bs_diag_slo(heard->diag, 0, "GET", 250 * US), 0);
	bs_diag_advance(heard->diag, T0 + 30 * SEC + 500 * MS);
	assert_int_equal(heard->thresholds, 1); /* at most one a second */
	bs_diag_advance(heard->diag, T0 + 31 * SEC);
	assert_int_equal(heard->thresholds, 2);
	assert_int_equal(heard->threshold.latency_ns, 250 * US);
	heard_destroy(heard);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sketch_median_is_within_a_bin_of_the_true_one),
		cmocka_unit_test(test_sketch_forgets_what_is_two_windows_old),
		cmocka_unit_test(test_sketch_envelope_has_a_floor_of_a_quarter),
		cmocka_unit_test(test_sketch_extremes_do_not_overflow),
		cmocka_unit_test(test_no_outlier_while_cold_and_one_when_warm),
		cmocka_unit_test(test_outlier_needs_the_floor_and_the_envelope),
		cmocka_unit_test(test_spread_of_the_operation_widens_the_envelope),
		cmocka_unit_test(test_rare_wait_has_normal_zero_however_long_it_is),
		cmocka_unit_test(test_chronic_window_is_normal_and_said_so_under_an_slo),
		cmocka_unit_test(test_live_chronic_window_becomes_normal_while_cold),
		cmocka_unit_test(test_other_operation_falls_back_to_the_service),
		cmocka_unit_test(test_size_classes_have_their_own_normal),
		cmocka_unit_test(test_briefs_feed_the_normal),
		cmocka_unit_test(test_live_anomalous_rpcs_do_not_feed_until_they_last_a_minute),
		cmocka_unit_test(test_hang_of_a_cold_service_does_not_become_its_normal),
		cmocka_unit_test(test_ten_thousand_operations_stay_bounded_and_right),
		cmocka_unit_test(test_full_tables_fall_back_to_the_service),
		cmocka_unit_test(test_part_without_room_is_compared_with_that_of_the_service),
		cmocka_unit_test(test_threshold_is_told_when_warm_and_when_it_changes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
