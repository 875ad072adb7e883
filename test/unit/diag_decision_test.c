/* SPDX-License-Identifier: BSD-3-Clause */
/* What was decided of the time with a service, in segments, events and verdict alike. */
#include "diag_util.h"

#include "decision.h"

#define SERVICE_HANG                                                                               \
	{                                                                                          \
		BS_BUFFER_SERVICE, BS_CAUSE_HANG, 0                                                \
	}
#define ACCEPT_CONGESTION                                                                          \
	{                                                                                          \
		BS_BUFFER_SERVER_ACCEPT, BS_CAUSE_CONGESTION, 0                                    \
	}

#define BEGIN (T0 + 100 * MS)
#define END (BEGIN + 200 * MS)

static struct heard *
silent(unsigned probe, unsigned pending)
{
	struct heard *heard = heard_create(true);
	feed_usual(heard, 1, 64, BEGIN - MS);
	feed_silence(heard, BEGIN, END, 1000, pending, 0);
	if (probe)
		feed_probe(heard, BEGIN + 10 * MS, END - 10 * MS, probe);
	return heard;
}

/* Judges it; *group is then what was told of it. */
static struct bs_rec_verdict
judge_decided(struct heard *heard, struct group *group)
{
	unsigned at = heard->verdicts;
	struct bs_rec_verdict verdict = judge_group(heard, group);
	struct bs_rpc_view view;
	uint64_t root_ns = 0;
	size_t bytes;
	unsigned bad;

	*group = heard->group[at];
	assert_int_equal(bs_rpc_view(group->bytes, sizeof(group->bytes), &view, &bytes), 0);
	assert_int_equal(bs_rpc_check_tiling(&view, &bad), 0);
	for (unsigned i = 0; i < view.rpc->segment_count; i++)
		if (view.segments[i].buffer == verdict.root.buffer &&
			view.segments[i].cause == verdict.root.cause)
			root_ns += view.segments[i].end_ns - view.segments[i].begin_ns;
	assert_int_equal(verdict.excess_ns, root_ns - verdict.normal_ns);
	return verdict;
}

struct expected {
	unsigned buffer, cause;
	uint64_t end;
};

static void
assert_segments(struct group *group, const struct expected *expected, unsigned count)
{
	const struct bs_rec_segment *segments = group_segments(group);

	assert_int_equal(group_rpc(group)->segment_count, count);
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(segments[i].buffer, expected[i].buffer);
		assert_int_equal(segments[i].cause, expected[i].cause);
		assert_int_equal(segments[i].end_ns, expected[i].end);
	}
}

static const struct bs_rec_event *
group_events(struct group *group)
{
	return (void *)(group_segments(group) + group_rpc(group)->segment_count);
}

/* Given 5 ms before the silence, answered 3 ms after it; one that waited too came before it. */
static void
begin_wait(struct heard *heard, struct group *group)
{
	feed_simple(heard, 1000, 1, BEGIN - 6 * MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE,
		END - BEGIN + 6 * MS - 10 * US);
	group_simple(group, 1001, 2, BEGIN - 5 * MS - 10 * US, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE,
		208 * MS);
}

static void
test_stopped_service_is_a_hang_in_segments_terms_and_event(void **state)
{
	(void)state;
	const unsigned probes[][2] = {
		{BS_PROBE_STOPPED, BS_DETAIL_STOPPED}, {BS_PROBE_STARVED, BS_DETAIL_STARVED}};
	const struct expected expected[] = {
		{BS_BUFFER_NET_REQUEST_BEFORE, BS_CAUSE_TRANSFER, 10 * US},
		{BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 5 * MS + 10 * US},
		{BS_BUFFER_SERVICE, BS_CAUSE_HANG, 205 * MS + 10 * US},
		{BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 208 * MS + 10 * US},
		{BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_TRANSFER, 208 * MS + 20 * US},
	};
	for (unsigned i = 0; i < 2; i++) {
		struct heard *heard = silent(probes[i][0], 2);
		struct group group;
		begin_wait(heard, &group);
		struct bs_rec_verdict verdict = judge_decided(heard, &group);
		assert_blame(verdict.root, BS_BUFFER_SERVICE, BS_CAUSE_HANG);
		assert_int_equal(verdict.excess_ns, 200 * MS);
		assert_int_equal(verdict.normal_ns, 0);
		assert_segments(&group, expected, 5);
		assert_int_equal(group_segments(&group)[2].detail, probes[i][1]);
		assert_int_equal(group_segments(&group)[1].detail, 0);
		assert_int_equal(group_rpc(&group)->event_count, 1);
		const struct bs_rec_event *event = group_events(&group);
		assert_int_equal(event->type, BS_CAUSE_HANG);
		assert_int_equal(event->buffer, BS_BUFFER_SERVICE);
		assert_int_equal(event->detail, probes[i][1]);
		assert_int_equal(event->t_begin, BEGIN);
		assert_int_equal(event->t_end, END);
		assert_int_equal(event->blocking_ns, 200 * MS);
		assert_int_equal(event->count, 1);
		heard_destroy(heard);
	}
}

static void
test_undecided_and_working_service_stay_compute(void **state)
{
	(void)state;
	const unsigned probes[] = {0, BS_PROBE_ASLEEP, BS_PROBE_RUNNING};
	for (unsigned i = 0; i < 3; i++) {
		struct heard *heard = silent(probes[i], 1);
		struct group group, before;
		group_simple(&group, 1000, 1, BEGIN - 10 * US, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE,
			200 * MS);
		before = group;
		group_feed(heard, &group);
		struct bs_rec_verdict verdict = judge_decided(heard, &group);
		assert_blame(verdict.root, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
		assert_memory_equal(group.bytes, before.bytes, group_bytes(&before));
		heard_destroy(heard);
	}
}

static void
test_rpc_behind_another_waits_in_congestion_by_it(void **state)
{
	(void)state;
	const unsigned probes[] = {0, BS_PROBE_RUNNING};
	for (unsigned i = 0; i < 2; i++) {
		struct heard *heard = silent(probes[i], 2);
		struct group group;
		begin_wait(heard, &group);
		struct bs_rec_verdict verdict = judge_decided(heard, &group);
		assert_blame(verdict.root, BS_BUFFER_SERVICE, BS_CAUSE_CONGESTION);
		/* Whether the one in front hung is open, but this one waited for it. */
		assert_int_equal(verdict.alternative_count, probes[i] == 0);
		const struct bs_rec_segment *segment = &group_segments(&group)[2];
		assert_int_equal(segment->cause, BS_CAUSE_CONGESTION);
		assert_int_equal(segment->end_ns - segment->begin_ns, 200 * MS);
		assert_int_equal(segment->culprit_kind, BS_CULPRIT_RPC);
		assert_int_equal(segment->culprit_id, 1000);
		const struct bs_rec_event *event = group_events(&group);
		assert_int_equal(group_rpc(&group)->event_count, 1);
		assert_int_equal(event->type, BS_CAUSE_CONGESTION);
		assert_int_equal(event->culprit_count, 1);
		assert_int_equal(event->culprits[0].id, 1000);
		assert_int_equal(event->culprits[0].ns, 200 * MS);
		heard_destroy(heard);
	}
}

static void
test_backlog_of_a_hang_is_congestion_after_it(void **state)
{
	(void)state;
	struct heard *heard = silent(BS_PROBE_STOPPED, 2);
	struct group group;
	/* In the last 20 ms of it, then 80 ms behind those that had gathered. */
	group_begin(&group, 1001, 2, END - 20 * MS);
	group_add(&group, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 100 * MS);
	group_rpc(&group)->pending = 9;
	group_end(&group);
	struct bs_rec_verdict verdict = judge_decided(heard, &group);
	const struct expected expected[] = {
		{BS_BUFFER_SERVICE, BS_CAUSE_HANG, 20 * MS},
		{BS_BUFFER_SERVICE, BS_CAUSE_CONGESTION, 100 * MS},
	};
	assert_blame(verdict.root, BS_BUFFER_SERVICE, BS_CAUSE_CONGESTION);
	assert_int_equal(verdict.via_count, 1);
	assert_blame(verdict.via[0], BS_BUFFER_SERVICE, BS_CAUSE_HANG);
	assert_segments(&group, expected, 2);
	assert_int_equal(group_rpc(&group)->event_count, 2);
	heard_destroy(heard);
}

static void
test_wait_for_an_earlier_rpc_of_the_connection_stays_contention(void **state)
{
	(void)state;
	struct heard *heard = silent(BS_PROBE_STOPPED, 2);
	struct group group, before;
	group_begin(&group, 1001, 2, BEGIN + 10 * MS);
	group_add(&group, BS_BUFFER_SERVICE, BS_CAUSE_CONTENTION, 190 * MS)->culprit_id = 1000;
	group_add(&group, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 100 * US);
	group_end(&group);
	before = group;
	struct bs_rec_verdict verdict = judge_decided(heard, &group);
	assert_blame(verdict.root, BS_BUFFER_SERVICE, BS_CAUSE_CONTENTION);
	assert_blame(verdict.via[0], BS_BUFFER_SERVICE, BS_CAUSE_HANG);
	assert_memory_equal(group.bytes, before.bytes, group_bytes(&before));
	heard_destroy(heard);
}

static void
test_hang_below_its_threshold_is_no_event(void **state)
{
	(void)state;
	const uint64_t detect_ns[6] = {[BS_CAUSE_HANG] = 21};
	struct decided decided;
	for (uint64_t ns = 20; ns <= 21; ns++) {
		struct decision hang = {
			{T0 + 10, T0 + 10 + ns}, 0, BS_DETAIL_STOPPED, SERVICE_HANG};
		struct group group;
		group_begin(&group, 1, 0, T0);
		group_add(&group, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 100);
		group_end(&group);
		struct bs_rpc_view view = {
			group_rpc(&group), group_segments(&group), group_events(&group)};
		assert_true(decided_write(&decided, &view, &hang, 1, detect_ns));
		assert_int_equal(view.rpc->segment_count, 3);
		assert_int_equal(view.rpc->event_count, ns == 21);
	}
}

static uint64_t
next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 33;
}

/* What a nanosecond of the group is, and its culprit. */
static const struct bs_rec_segment *
at_ns(const struct bs_rpc_view *view, uint64_t ns)
{
	for (unsigned i = 0; i < view->rpc->segment_count; i++)
		if (view->segments[i].begin_ns <= ns && ns < view->segments[i].end_ns)
			return &view->segments[i];
	return NULL;
}

static void
random_tiling(struct group *group, uint64_t *seed, unsigned segments)
{
	group_begin(group, 1, 0, T0);
	for (unsigned i = 0; i < segments; i++)
		group_add(group, next_random(seed) % 3 ? BS_BUFFER_SERVICE : OWN_QUEUE,
			next_random(seed) % 3 ? BS_CAUSE_COMPUTE : BS_CAUSE_CONTENTION,
			next_random(seed) % 40);
	group_end(group);
	group_rpc(group)->event_count = (uint16_t)(next_random(seed) % (BS_RPC_MAX_EVENTS + 1));
	struct bs_rec_event *events = (void *)(group_segments(group) + segments);
	for (unsigned i = 0; i < group_rpc(group)->event_count; i++) {
		bs_record_head(&events[i].head, BS_REC_EVENT, 0);
		events[i].rpc_id = 1;
		events[i].buffer = (uint16_t)(OWN_QUEUE + i);
	}
}

/* Every nanosecond is what it was, or what was decided of it. */
static void
assert_as_decided(const struct bs_rpc_view *before, const struct bs_rpc_view *after,
	const struct decision decisions[2])
{
	for (uint64_t ns = 0; ns < bs_rpc_extent_ns(before->rpc); ns++) {
		const struct bs_rec_segment *was = at_ns(before, ns), *is = at_ns(after, ns);
		struct bs_blame blame = {.buffer = was->buffer, .cause = was->cause};
		assert_non_null(is);
		for (unsigned i = 0; i < 2; i++)
			if (was->buffer == BS_BUFFER_SERVICE && was->cause == BS_CAUSE_COMPUTE &&
				decisions[i].span.begin <= T0 + ns &&
				T0 + ns < decisions[i].span.end)
				blame = decisions[i].blame;
		assert_int_equal(is->buffer, blame.buffer);
		assert_int_equal(is->cause, blame.cause);
	}
}

static void
test_random_tilings_are_what_an_oracle_of_single_ns_says(void **state)
{
	(void)state;
	const uint64_t detect_ns[6] = {0};
	uint64_t seed = 0xdec1de;
	struct decided decided;
	struct group group;
	unsigned cuts = 0, merges = 0, crowded = 0;
	for (unsigned round = 0; round < 4000; round++) {
		random_tiling(
			&group, &seed, 1 + (unsigned)next_random(&seed) % BS_RPC_MAX_SEGMENTS);
		uint64_t begin = T0 + next_random(&seed) % 600,
			 end = begin + next_random(&seed) % 300;
		uint64_t after = end + next_random(&seed) % 2 * 20;
		const struct decision decisions[2] = {
			{{begin, end}, 0, BS_DETAIL_STOPPED, SERVICE_HANG},
			{{after, after + next_random(&seed) % 300}, 9, 0, ACCEPT_CONGESTION}};
		struct bs_rpc_view before, after_view;
		size_t bytes;
		unsigned bad;
		assert_int_equal(bs_rpc_view(group.bytes, group_bytes(&group), &before, &bytes), 0);
		after_view = before;
		bool changed = decided_write(&decided, &after_view, decisions, 2, detect_ns);
		assert_int_equal(changed, after_view.rpc != before.rpc);
		assert_int_equal(
			bs_rpc_view(after_view.rpc, sizeof(decided), &after_view, &bytes), 0);
		assert_int_equal(bs_rpc_check_tiling(&after_view, &bad), 0);
		assert_true(after_view.rpc->event_count <= BS_RPC_MAX_EVENTS);
		crowded += changed && before.rpc->event_count == BS_RPC_MAX_EVENTS;
		/* No room for what was a small part of each. */
		if (!changed && before.rpc->segment_count > BS_RPC_MAX_SEGMENTS - 4)
			continue;
		if (after_view.rpc->flags & BS_RPC_SEGMENTS_MERGED) {
			merges++;
			continue;
		}
		cuts += after_view.rpc->segment_count - before.rpc->segment_count;
		assert_as_decided(&before, &after_view, decisions);
	}
	assert_true(cuts > 1000 && merges > 50 && crowded > 50);
}

/* Most of a segment that cannot be cut decides what it is. */
static void
test_full_group_keeps_its_bounds(void **state)
{
	(void)state;
	const uint64_t detect_ns[6] = {0};
	struct decision hang = {{T0 + 140, T0 + 3149}, 0, BS_DETAIL_STOPPED, SERVICE_HANG};
	struct decided decided;
	struct group group;
	unsigned bad;
	group_begin(&group, 1, 0, T0);
	for (unsigned i = 0; i < BS_RPC_MAX_SEGMENTS; i++)
		group_add(&group, i % 2 ? BS_BUFFER_SERVICE : OWN_QUEUE, BS_CAUSE_COMPUTE, 100);
	group_end(&group);
	struct bs_rpc_view view = {group_rpc(&group), group_segments(&group), group_events(&group)};
	assert_true(decided_write(&decided, &view, &hang, 1, detect_ns));
	assert_int_equal(bs_rpc_check_tiling(&view, &bad), 0);
	assert_int_equal(view.rpc->segment_count, BS_RPC_MAX_SEGMENTS);
	assert_true(view.rpc->flags & BS_RPC_SEGMENTS_MERGED);
	assert_int_equal(view.segments[1].cause, BS_CAUSE_HANG);     /* 60 of 100 */
	assert_int_equal(view.segments[2].cause, BS_CAUSE_COMPUTE);  /* not the service's */
	assert_int_equal(view.segments[29].cause, BS_CAUSE_HANG);    /* all */
	assert_int_equal(view.segments[31].cause, BS_CAUSE_COMPUTE); /* 51 of 100 */
}

/* Valid each, but not a tiling: bounded all the same. */
static void
test_segments_that_do_not_tile_stay_bounded(void **state)
{
	(void)state;
	const uint64_t detect_ns[6] = {0};
	uint64_t seed = 0xbad;
	struct decided decided;
	struct group group;
	for (unsigned round = 0; round < 4000; round++) {
		random_tiling(
			&group, &seed, 1 + (unsigned)next_random(&seed) % BS_RPC_MAX_SEGMENTS);
		for (unsigned i = 0; i < group_rpc(&group)->segment_count; i++) {
			struct bs_rec_segment *segment = &group_segments(&group)[i];
			segment->end_ns = next_random(&seed) * next_random(&seed) << round % 3;
			segment->begin_ns = segment->end_ns >> next_random(&seed) % 64;
		}
		const struct decision decisions[2] = {
			{{T0 + next_random(&seed), T0 + next_random(&seed)}, 0, 0, SERVICE_HANG},
			{{T0 + next_random(&seed), UINT64_MAX}, 9, 0, ACCEPT_CONGESTION}};
		struct bs_rpc_view view;
		size_t bytes;
		assert_int_equal(bs_rpc_view(group.bytes, group_bytes(&group), &view, &bytes), 0);
		decided_write(&decided, &view, decisions, 2, detect_ns);
		assert_int_equal(bs_rpc_view(view.rpc, sizeof(decided), &view, &bytes), 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stopped_service_is_a_hang_in_segments_terms_and_event),
		cmocka_unit_test(test_undecided_and_working_service_stay_compute),
		cmocka_unit_test(test_rpc_behind_another_waits_in_congestion_by_it),
		cmocka_unit_test(test_backlog_of_a_hang_is_congestion_after_it),
		cmocka_unit_test(test_wait_for_an_earlier_rpc_of_the_connection_stays_contention),
		cmocka_unit_test(test_hang_below_its_threshold_is_no_event),
		cmocka_unit_test(test_random_tilings_are_what_an_oracle_of_single_ns_says),
		cmocka_unit_test(test_full_group_keeps_its_bounds),
		cmocka_unit_test(test_segments_that_do_not_tile_stay_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
