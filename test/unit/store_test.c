/* SPDX-License-Identifier: BSD-3-Clause */
/* The store keeps the newest, replaces by id, and pages. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "store.h"

#define SEEN_MAX 2048u

struct seen {
	uint64_t ids[SEEN_MAX];
	unsigned count;
	struct bs_rec_verdict verdict;
	uint64_t last_segment_end, last_event_blocking;
};

static void
see_anomaly(void *context, const struct bs_rec_verdict *verdict, const struct bs_rpc_view *rpc)
{
	struct seen *seen = context;

	assert_int_equal(verdict->rpc_id, rpc->rpc->id);
	seen->ids[seen->count++] = verdict->rpc_id;
	seen->verdict = *verdict;
	if (rpc->rpc->segment_count > 0)
		seen->last_segment_end = rpc->segments[rpc->rpc->segment_count - 1].end_ns;
	if (rpc->rpc->event_count > 0)
		seen->last_event_blocking = rpc->events[rpc->rpc->event_count - 1].blocking_ns;
}

static void
see_incident(void *context, const struct bs_rec_incident *incident)
{
	struct seen *seen = context;

	seen->ids[seen->count++] = incident->id;
	seen->verdict.excess_ns = incident->victims;
}

static int
put(struct bs_store *store, uint64_t id, unsigned by, unsigned revision, unsigned segments,
	unsigned events)
{
	struct bs_rec_segment segment_list[BS_RPC_MAX_SEGMENTS + 1] = {0};
	struct bs_rec_event event_list[BS_RPC_MAX_EVENTS + 1] = {0};
	const struct bs_rec_verdict verdict = {
		.rpc_id = id, .anomalous_by = (uint8_t)by, .revision = (uint8_t)revision};
	const struct bs_rec_rpc rpc = {
		.id = id, .segment_count = (uint16_t)segments, .event_count = (uint16_t)events};
	const struct bs_rpc_view view = {&rpc, segment_list, event_list};

	if (segments > 0)
		segment_list[segments - 1].end_ns = id * 10;
	if (events > 0)
		event_list[events - 1].blocking_ns = id * 100;
	return bs_store_verdict(store, &verdict, &view);
}

static void
more_anomalies_than_fit_keep_the_newest_in_order(void **state)
{
	static struct seen seen;
	struct bs_store *store = bs_store_create();

	(void)state;
	assert_non_null(store);
	for (uint64_t id = 1; id <= BS_STORE_ANOMALIES + 10; id++)
		assert_int_equal(put(store, id, BS_BY_SLO, 0, 0, 0), 0);
	assert_int_equal(
		bs_store_anomalies(store, 0, SEEN_MAX, see_anomaly, &seen), BS_STORE_ANOMALIES);
	assert_int_equal(seen.count, BS_STORE_ANOMALIES);
	for (unsigned i = 0; i < seen.count; i++)
		assert_int_equal(seen.ids[i], BS_STORE_ANOMALIES + 10 - i);
	assert_int_equal(bs_store_find(store, 10, see_anomaly, &seen), -ENOENT);
	seen.count = 0;
	assert_int_equal(bs_store_find(store, 11, see_anomaly, &seen), 0);
	assert_int_equal(seen.count, 1);
	bs_store_destroy(store);
}

static void
a_revision_replaces_in_place_and_a_withdrawn_verdict_leaves(void **state)
{
	struct seen seen = {0};
	struct bs_store *store = bs_store_create();

	(void)state;
	for (uint64_t id = 1; id <= 3; id++)
		assert_int_equal(put(store, id, BS_BY_SLO, 0, 0, 0), 0);
	assert_int_equal(put(store, 2, BS_BY_EVIDENCE, 1, 0, 0), 0);
	assert_int_equal(bs_store_anomalies(store, 1, 1, see_anomaly, &seen), 3);
	assert_int_equal(seen.ids[0], 2);
	assert_int_equal(seen.verdict.revision, 1);
	assert_int_equal(seen.verdict.anomalous_by, BS_BY_EVIDENCE);

	assert_int_equal(put(store, 2, 0, 2, 0, 0), 0);
	assert_int_equal(put(store, 9, 0, 0, 0, 0), 0);
	seen.count = 0;
	assert_int_equal(bs_store_anomalies(store, 0, SEEN_MAX, see_anomaly, &seen), 2);
	assert_int_equal(seen.count, 2);
	assert_int_equal(seen.ids[0], 3);
	assert_int_equal(seen.ids[1], 1);
	assert_int_equal(put(store, 4, BS_BY_SLO, 0, 0, 0), 0);
	assert_int_equal(bs_store_find(store, 1, see_anomaly, &seen), 0);
	assert_int_equal(bs_store_find(store, 2, see_anomaly, &seen), -ENOENT);
	bs_store_destroy(store);
}

static void
segments_and_events_are_copied_and_a_group_beyond_its_bounds_is_refused(void **state)
{
	struct seen seen = {0};
	struct bs_store *store = bs_store_create();

	(void)state;
	assert_int_equal(put(store, 7, BS_BY_SLO, 0, BS_RPC_MAX_SEGMENTS, BS_RPC_MAX_EVENTS), 0);
	assert_int_equal(bs_store_find(store, 7, see_anomaly, &seen), 0);
	assert_int_equal(seen.last_segment_end, 70);
	assert_int_equal(seen.last_event_blocking, 700);
	assert_int_equal(put(store, 8, BS_BY_SLO, 0, BS_RPC_MAX_SEGMENTS + 1, 0), -EINVAL);
	assert_int_equal(put(store, 8, BS_BY_SLO, 0, 0, BS_RPC_MAX_EVENTS + 1), -EINVAL);
	assert_int_equal(bs_store_find(store, 8, see_anomaly, &seen), -ENOENT);
	bs_store_destroy(store);
}

static void
a_page_beyond_the_end_is_empty_and_a_page_across_it_is_cut(void **state)
{
	struct seen seen = {0};
	struct bs_store *store = bs_store_create();

	(void)state;
	assert_int_equal(bs_store_anomalies(store, 0, 10, see_anomaly, &seen), 0);
	for (uint64_t id = 1; id <= 5; id++)
		put(store, id, BS_BY_SLO, 0, 0, 0);
	assert_int_equal(bs_store_anomalies(store, 5, 10, see_anomaly, &seen), 5);
	assert_int_equal(bs_store_anomalies(store, UINT32_MAX, UINT32_MAX, see_anomaly, &seen), 5);
	assert_int_equal(seen.count, 0);
	assert_int_equal(bs_store_anomalies(store, 3, UINT32_MAX, see_anomaly, &seen), 5);
	assert_int_equal(seen.count, 2);
	assert_int_equal(seen.ids[1], 1);
	bs_store_destroy(store);
}

static void
incidents_are_updated_by_id_and_bounded(void **state)
{
	static struct seen seen;
	struct bs_store *store = bs_store_create();

	(void)state;
	for (uint64_t id = 1; id <= BS_STORE_INCIDENTS + 1; id++)
		bs_store_incident(store, &(struct bs_rec_incident){.id = id, .victims = 1});
	bs_store_incident(store, &(struct bs_rec_incident){.id = 2, .victims = 44});
	assert_int_equal(
		bs_store_incidents(store, 0, SEEN_MAX, see_incident, &seen), BS_STORE_INCIDENTS);
	assert_int_equal(seen.count, BS_STORE_INCIDENTS);
	assert_int_equal(seen.ids[0], BS_STORE_INCIDENTS + 1);
	assert_int_equal(seen.ids[BS_STORE_INCIDENTS - 1], 2);
	assert_int_equal(seen.verdict.excess_ns, 44);
	bs_store_destroy(store);
	bs_store_destroy(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_anomalies_than_fit_keep_the_newest_in_order),
		cmocka_unit_test(a_revision_replaces_in_place_and_a_withdrawn_verdict_leaves),
		cmocka_unit_test(
			segments_and_events_are_copied_and_a_group_beyond_its_bounds_is_refused),
		cmocka_unit_test(a_page_beyond_the_end_is_empty_and_a_page_across_it_is_cut),
		cmocka_unit_test(incidents_are_updated_by_id_and_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
