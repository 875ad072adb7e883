/* SPDX-License-Identifier: BSD-3-Clause */
/* From symptoms in our own buffers to their origins. */
#include "diag_util.h"

#define BEGIN (T0 + SEC)

/* The verdict of an RPC that waited 20 ms in OWN_QUEUE from BEGIN on. */
static struct bs_rec_verdict
judge_wait(struct heard *heard, unsigned cause)
{
	struct group group;
	group_simple(&group, 1000, 0, BEGIN - 10 * US, OWN_QUEUE, cause, 20 * MS);
	return judge_group(heard, &group);
}

static struct heard *
warm(void)
{
	struct heard *heard = heard_create(true);
	feed_usual(heard, 1, 64, T0);
	return heard;
}

static void
test_pause_is_charged_to_what_blocked(void **state)
{
	(void)state;
	struct heard *heard = warm();
	feed_episode(heard, OWN_QUEUE, BS_CAUSE_PAUSE, BEGIN, BEGIN + 19 * MS, OWN_PORT, 0);
	struct bs_rec_verdict verdict = judge_wait(heard, BS_CAUSE_PAUSE);
	assert_blame(verdict.root, OWN_QUEUE, BS_CAUSE_PAUSE);
	assert_int_equal(verdict.via_count, 1);
	assert_blame(verdict.via[0], OWN_PORT, BS_CAUSE_CONGESTION);
	bs_diag_finish(heard->diag);
	assert_blame(heard->incident[0].origin, OWN_PORT, BS_CAUSE_CONGESTION);
	heard_destroy(heard);
}

static void
test_pause_by_a_hung_buffer_leads_to_the_hang(void **state)
{
	(void)state;
	struct heard *heard = warm();
	feed_episode(heard, OWN_QUEUE, BS_CAUSE_PAUSE, BEGIN, BEGIN + 20 * MS, OWN_PORT, 0);
	feed_episode(heard, OWN_PORT, BS_CAUSE_HANG, BEGIN, BEGIN + 20 * MS, BS_BUFFER_NONE, 3);
	struct bs_rec_verdict verdict = judge_wait(heard, BS_CAUSE_PAUSE);
	assert_int_equal(verdict.via_count, 1);
	assert_blame(verdict.via[0], OWN_PORT, BS_CAUSE_HANG);
	heard_destroy(heard);
}

static void
test_pause_by_an_inferred_buffer_ends_there(void **state)
{
	(void)state;
	struct heard *heard = warm();
	feed_episode(heard, OWN_QUEUE, BS_CAUSE_PAUSE, BEGIN, BEGIN + 20 * MS,
		BS_BUFFER_CLIENT_SOCKET_RX, 0);
	struct bs_rec_verdict verdict = judge_wait(heard, BS_CAUSE_PAUSE);
	assert_int_equal(verdict.via_count, 1);
	assert_blame(verdict.via[0], BS_BUFFER_CLIENT_SOCKET_RX, BS_CAUSE_PAUSE);
	heard_destroy(heard);
}

static void
test_drop_in_a_paused_queue_leads_through_the_pause_to_the_port(void **state)
{
	(void)state;
	struct heard *heard = warm();
	/* The wait for the resend outlasts the pause: what counts is when it was dropped. */
	feed_episode(heard, OWN_QUEUE, BS_CAUSE_PAUSE, BEGIN - 5 * MS, BEGIN + MS, OWN_PORT, 0);
	struct bs_rec_verdict verdict = judge_wait(heard, BS_CAUSE_DROP);
	assert_blame(verdict.root, OWN_QUEUE, BS_CAUSE_DROP);
	assert_int_equal(verdict.via_count, 2);
	assert_blame(verdict.via[0], OWN_QUEUE, BS_CAUSE_PAUSE);
	assert_blame(verdict.via[1], OWN_PORT, BS_CAUSE_CONGESTION);
	assert_int_equal(verdict.anomalous_by, BS_BY_EVIDENCE);
	heard_destroy(heard);
}

static void
test_drop_in_a_long_pause_is_not_handed_to_a_short_hang_in_it(void **state)
{
	(void)state;
	/* Each covers the moment of the drop. What filled the queue lasted longer. */
	for (unsigned hang_ms = 1; hang_ms <= 40; hang_ms += 39) {
		struct heard *heard = warm();
		feed_episode(
			heard, OWN_QUEUE, BS_CAUSE_PAUSE, BEGIN - 30 * MS, BEGIN + MS, OWN_PORT, 0);
		feed_episode(heard, OWN_QUEUE, BS_CAUSE_HANG, BEGIN - hang_ms * MS, BEGIN + MS,
			BS_BUFFER_NONE, 0);
		struct bs_rec_verdict verdict = judge_wait(heard, BS_CAUSE_DROP);
		assert_blame(
			verdict.via[0], OWN_QUEUE, hang_ms == 1 ? BS_CAUSE_PAUSE : BS_CAUSE_HANG);
		heard_destroy(heard);
	}
}

static void
test_drop_long_after_a_pause_is_its_own_origin(void **state)
{
	(void)state;
	struct heard *heard = warm();
	feed_episode(
		heard, OWN_QUEUE, BS_CAUSE_PAUSE, BEGIN - 50 * MS, BEGIN - 40 * MS, OWN_PORT, 0);
	feed_episode(
		heard, OWN_QUEUE, BS_CAUSE_PAUSE, BEGIN + 5 * MS, BEGIN + 15 * MS, OWN_PORT, 0);
	assert_int_equal(judge_wait(heard, BS_CAUSE_DROP).via_count, 0);
	heard_destroy(heard);
}

static void
test_congestion_behind_a_hang_is_handed_to_it(void **state)
{
	(void)state;
	struct heard *heard = warm();
	/* The drainer hung for 20 ms up to BEGIN; its backlog is there at most as long again. */
	feed_episode(heard, OWN_QUEUE, BS_CAUSE_HANG, BEGIN - 20 * MS, BEGIN, BS_BUFFER_NONE, 2);
	struct bs_rec_verdict verdict = judge_wait(heard, BS_CAUSE_CONGESTION);
	assert_blame(verdict.root, OWN_QUEUE, BS_CAUSE_CONGESTION);
	assert_int_equal(verdict.via_count, 1);
	assert_blame(verdict.via[0], OWN_QUEUE, BS_CAUSE_HANG);
	assert_int_equal(verdict.anomalous_by, BS_BY_OUTLIER);
	heard_destroy(heard);
}

static void
test_congestion_after_a_short_hang_is_its_own_origin(void **state)
{
	(void)state;
	struct heard *heard = warm();
	feed_episode(heard, OWN_QUEUE, BS_CAUSE_HANG, BEGIN - 2 * MS, BEGIN, BS_BUFFER_NONE, 2);
	feed_episode(heard, OWN_PORT, BS_CAUSE_HANG, BEGIN, BEGIN + 20 * MS, BS_BUFFER_NONE, 2);
	assert_int_equal(judge_wait(heard, BS_CAUSE_CONGESTION).via_count, 0);
	heard_destroy(heard);
}

static void
test_many_short_pauses_together_explain_a_wait(void **state)
{
	(void)state;
	struct heard *heard = warm();
	feed_episode(heard, OWN_QUEUE, BS_CAUSE_HANG, BEGIN, BEGIN + 2 * MS, BS_BUFFER_NONE, 2);
	for (unsigned i = 0; i < 20; i++)
		feed_episode(heard, OWN_QUEUE, BS_CAUSE_PAUSE, BEGIN + i * MS,
			BEGIN + i * MS + 400 * US, OWN_PORT, 0);
	struct bs_rec_verdict verdict = judge_wait(heard, BS_CAUSE_CONGESTION);
	assert_int_equal(verdict.via_count, 2);
	assert_blame(verdict.via[0], OWN_QUEUE, BS_CAUSE_PAUSE);
	assert_blame(verdict.via[1], OWN_PORT, BS_CAUSE_CONGESTION);
	heard_destroy(heard);
}

static void
test_buffers_that_pause_each_other_end(void **state)
{
	(void)state;
	struct heard *heard = warm();
	feed_episode(heard, OWN_QUEUE, BS_CAUSE_PAUSE, BEGIN, BEGIN + 20 * MS, OWN_PORT, 0);
	feed_episode(heard, OWN_PORT, BS_CAUSE_PAUSE, BEGIN, BEGIN + 20 * MS, OWN_QUEUE, 0);
	assert_int_equal(judge_wait(heard, BS_CAUSE_PAUSE).via_count, BS_VERDICT_VIA);
	heard_destroy(heard);
}

static void
test_inferred_buffers_have_no_episodes(void **state)
{
	(void)state;
	struct heard *heard = warm();
	struct group group;
	feed_episode(heard, BS_BUFFER_CLIENT_SOCKET_RX, BS_CAUSE_PAUSE, BEGIN, BEGIN + 20 * MS,
		OWN_PORT, 0);
	group_simple(&group, 1000, 0, BEGIN, BS_BUFFER_CLIENT_SOCKET_RX, BS_CAUSE_PAUSE, 20 * MS);
	assert_int_equal(judge_group(heard, &group).via_count, 0);
	heard_destroy(heard);
}

static void
test_hang_of_one_lcore_in_two_buffers_is_one_incident(void **state)
{
	(void)state;
	for (unsigned lcores = 1; lcores <= 2; lcores++) {
		struct heard *heard = heard_create(false);
		feed_usual(heard, 1, 64, BEGIN);
		feed_episode(
			heard, OWN_QUEUE, BS_CAUSE_HANG, BEGIN, BEGIN + 20 * MS, BS_BUFFER_NONE, 1);
		feed_episode(heard, OWN_PORT, BS_CAUSE_HANG, BEGIN, BEGIN + 20 * MS, BS_BUFFER_NONE,
			lcores);
		feed_simple(heard, 1000, 0, BEGIN, OWN_QUEUE, BS_CAUSE_HANG, 20 * MS);
		feed_simple(heard, 1001, 1, BEGIN, OWN_PORT, BS_CAUSE_HANG, 20 * MS);
		bs_diag_advance(heard->diag, BEGIN + 200 * MS);
		assert_blame(heard_of(heard, 1000)->root, OWN_QUEUE, BS_CAUSE_HANG);
		assert_blame(heard_of(heard, 1001)->root, OWN_PORT, BS_CAUSE_HANG);
		assert_int_equal(heard->opened, lcores);
		heard_destroy(heard);
	}
}

static void
test_episode_that_went_on_is_replaced_by_its_end(void **state)
{
	(void)state;
	struct heard *heard = warm();
	feed_episode(heard, OWN_QUEUE, BS_CAUSE_PAUSE, BEGIN, 0, OWN_PORT, 0);
	feed_usual(heard, 200, 1, BEGIN + 21 * MS); /* the time that replay knows */
	assert_int_equal(judge_wait(heard, BS_CAUSE_PAUSE).via_count, 1);
	/* It ended after 1 ms: it explains too little of the wait. */
	feed_episode(heard, OWN_QUEUE, BS_CAUSE_PAUSE, BEGIN, BEGIN + MS, OWN_PORT, 0);
	assert_int_equal(judge_wait(heard, BS_CAUSE_PAUSE).via_count, 0);
	heard_destroy(heard);
}

static void
test_episode_that_comes_late_revises_the_verdict(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	feed_usual(heard, 1, 64, BEGIN);
	feed_simple(heard, 1000, 0, BEGIN, OWN_QUEUE, BS_CAUSE_PAUSE, 20 * MS);
	bs_diag_advance(heard->diag, BEGIN + 150 * MS);
	assert_int_equal(heard_of(heard, 1000)->via_count, 0);
	feed_episode(heard, OWN_QUEUE, BS_CAUSE_PAUSE, BEGIN, BEGIN + 20 * MS, OWN_PORT, 0);
	bs_diag_advance(heard->diag, BEGIN + 300 * MS);
	assert_int_equal(heard_of(heard, 1000)->via_count, 1);
	assert_int_equal(heard_of(heard, 1000)->revision, 1);
	heard_destroy(heard);
}

/* P01: bytes that seem lost before us were lost by us, and the way leads to who has the mbufs. */
static void
test_loss_before_us_that_our_device_counts_leads_to_the_device(void **state)
{
	(void)state;
	struct heard *heard = warm();
	struct group group;
	feed_episode(heard, OWN_PORT, BS_CAUSE_DROP, BEGIN - SEC / 2, BEGIN + SEC / 2,
		BS_BUFFER_NET_REQUEST_BEFORE, 0);
	group_simple(&group, 1000, 0, BEGIN, BS_BUFFER_NET_REQUEST_BEFORE, BS_CAUSE_DROP, 20 * MS);
	struct bs_rec_verdict verdict = judge_group(heard, &group);
	assert_blame(verdict.root, BS_BUFFER_NET_REQUEST_BEFORE, BS_CAUSE_DROP);
	assert_int_equal(verdict.via_count, 1);
	assert_blame(verdict.via[0], OWN_PORT, BS_CAUSE_DROP);

	feed_episode(heard, BS_BUFFER_MEMPOOL, BS_CAUSE_DROP, BEGIN + 2 * SEC, BEGIN + 3 * SEC,
		BS_BUFFER_NET_REQUEST_BEFORE, 0);
	feed_episode(heard, BS_BUFFER_MEMPOOL, BS_CAUSE_PAUSE, BEGIN + SEC, BEGIN + 4 * SEC,
		OWN_QUEUE, 0);
	group_simple(&group, 1001, 0, BEGIN + 5 * SEC / 2, BS_BUFFER_NET_REQUEST_BEFORE,
		BS_CAUSE_DROP, 20 * MS);
	verdict = judge_group(heard, &group);
	assert_int_equal(verdict.via_count, 3);
	assert_blame(verdict.via[0], BS_BUFFER_MEMPOOL, BS_CAUSE_DROP);
	assert_blame(verdict.via[1], BS_BUFFER_MEMPOOL, BS_CAUSE_PAUSE);
	assert_blame(verdict.via[2], OWN_QUEUE, BS_CAUSE_CONGESTION);
	heard_destroy(heard);
}

/* P05: what the device counts in another second, the other direction, or without a match. */
static void
test_loss_before_us_is_not_put_on_what_the_device_counted_otherwise(void **state)
{
	(void)state;
	struct heard *heard = warm();
	struct group group;
	feed_episode(heard, OWN_PORT, BS_CAUSE_DROP, BEGIN - SEC / 2, BEGIN + SEC / 2,
		BS_BUFFER_NET_RESPONSE_BEFORE, 0);
	feed_episode(heard, OWN_PORT, BS_CAUSE_DROP, BEGIN - SEC / 2 - 1, BEGIN + SEC / 2,
		BS_BUFFER_NONE, 0);
	feed_episode(heard, OWN_PORT, BS_CAUSE_DROP, BEGIN - 2 * SEC, BEGIN - SEC,
		BS_BUFFER_NET_REQUEST_BEFORE, 0);
	group_simple(&group, 1000, 0, BEGIN, BS_BUFFER_NET_REQUEST_BEFORE, BS_CAUSE_DROP, 20 * MS);
	struct bs_rec_verdict verdict = judge_group(heard, &group);
	assert_blame(verdict.root, BS_BUFFER_NET_REQUEST_BEFORE, BS_CAUSE_DROP);
	assert_int_equal(verdict.via_count, 0);
	heard_destroy(heard);
}

static void
test_device_that_counts_late_revises_the_verdict(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	feed_usual(heard, 1, 64, BEGIN);
	feed_simple(heard, 1000, 0, BEGIN, BS_BUFFER_NET_REQUEST_BEFORE, BS_CAUSE_DROP, 20 * MS);
	bs_diag_advance(heard->diag, BEGIN + 150 * MS);
	assert_int_equal(heard_of(heard, 1000)->via_count, 0);
	feed_episode(heard, OWN_PORT, BS_CAUSE_DROP, BEGIN - SEC / 2, BEGIN + SEC / 2,
		BS_BUFFER_NET_REQUEST_BEFORE, 0);
	bs_diag_advance(heard->diag, BEGIN + 600 * MS);
	assert_int_equal(heard_of(heard, 1000)->via_count, 1);
	assert_int_equal(heard_of(heard, 1000)->revision, 1);
	heard_destroy(heard);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pause_is_charged_to_what_blocked),
		cmocka_unit_test(test_pause_by_a_hung_buffer_leads_to_the_hang),
		cmocka_unit_test(test_pause_by_an_inferred_buffer_ends_there),
		cmocka_unit_test(test_drop_in_a_paused_queue_leads_through_the_pause_to_the_port),
		cmocka_unit_test(test_drop_in_a_long_pause_is_not_handed_to_a_short_hang_in_it),
		cmocka_unit_test(test_drop_long_after_a_pause_is_its_own_origin),
		cmocka_unit_test(test_congestion_behind_a_hang_is_handed_to_it),
		cmocka_unit_test(test_congestion_after_a_short_hang_is_its_own_origin),
		cmocka_unit_test(test_many_short_pauses_together_explain_a_wait),
		cmocka_unit_test(test_buffers_that_pause_each_other_end),
		cmocka_unit_test(test_inferred_buffers_have_no_episodes),
		cmocka_unit_test(test_hang_of_one_lcore_in_two_buffers_is_one_incident),
		cmocka_unit_test(test_episode_that_went_on_is_replaced_by_its_end),
		cmocka_unit_test(test_episode_that_comes_late_revises_the_verdict),
		cmocka_unit_test(test_loss_before_us_that_our_device_counts_leads_to_the_device),
		cmocka_unit_test(
			test_loss_before_us_is_not_put_on_what_the_device_counted_otherwise),
		cmocka_unit_test(test_device_that_counts_late_revises_the_verdict),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
