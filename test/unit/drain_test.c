/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The drainer's log against an oracle that labels every nanosecond of a random
 * schedule with what the drainer did in it, and counts labels.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "bs_drain.h"

#define START 1000000u /* instants of the oracle are offsets from here */
#define SPAN 6000u
#define TOKENS 4096u
#define PAIRS 5u
#define RUNS 150u

/* Marsaglia's xorshift64. */
static uint64_t
wait_sum(const struct bs_wait *wait)
{
	return wait->congestion + wait->contention + wait->pause + wait->stalled + wait->preempted +
	       wait->sleep + wait->unobserved;
}

static uint64_t
draw(uint64_t *seed, uint64_t bound)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed % bound;
}

struct label {
	uint8_t state, served;
};

/* Bytes accounted in the slice that holds nanosecond `at`; or in the current one, if pending. */
struct token {
	uint32_t at;
	bool pending;
	uint16_t service;
	uint32_t flow;
	uint64_t bytes;
};

struct oracle {
	struct label labels[SPAN];
	struct label now;
	uint32_t t; /* labels before t are known */
	struct token tokens[TOKENS];
	unsigned token_count;
};

static bool
same(struct label a, struct label b)
{
	return a.state == b.state && a.served == b.served;
}

static void
oracle_fill(struct oracle *o, uint32_t t, struct label label)
{
	for (; o->t < t; o->t++)
		o->labels[o->t] = label;
}

/* The current state ends at o->t. If it lasted, its tokens lie in its last nanosecond. */
static bool
oracle_settle(struct oracle *o, bool drop)
{
	bool lasted = o->t > 0 && same(o->labels[o->t - 1], o->now);
	unsigned kept = 0;

	for (unsigned i = 0; i < o->token_count; i++) {
		struct token token = o->tokens[i];

		if (token.pending && lasted) {
			token.pending = false;
			token.at = o->t - 1;
		}
		if (!token.pending || !drop)
			o->tokens[kept++] = token;
	}
	o->token_count = kept;
	return lasted;
}

static void
oracle_set(struct oracle *o, uint32_t t, struct label label)
{
	oracle_fill(o, t, o->now);
	if (same(label, o->now))
		return;
	oracle_settle(o, true);
	o->now = label;
}

static void
oracle_insert(struct oracle *o, uint32_t t_end, uint8_t state)
{
	struct label label = {state, 0};

	if (!same(label, o->now))
		oracle_settle(o, false);
	oracle_fill(o, t_end, label);
}

/* Counts labels in [t_in, t_out), all of which are before o->t. */
static void
oracle_wait(
	const struct oracle *o, uint8_t served, uint32_t t_in, uint32_t t_out, struct bs_wait *w)
{
	memset(w, 0, sizeof(*w));
	for (uint32_t t = t_in; t < t_out; t++) {
		switch (o->labels[t].state) {
		case BS_DRAIN_SERVE:
			if (served != 0 && o->labels[t].served == served)
				w->congestion++;
			else
				w->contention++;
			break;
		case BS_DRAIN_PAUSE:
			w->pause++;
			break;
		case BS_DRAIN_STALLED:
			w->stalled++;
			break;
		case BS_DRAIN_PREEMPTED:
			w->preempted++;
			break;
		default:
			w->sleep++;
		}
	}
}

static struct label
random_label(uint64_t *seed)
{
	struct label label = {BS_DRAIN_SERVE, 0};

	if (draw(seed, 4) > 0)
		label.served = (uint8_t)draw(seed, PAIRS + 1);
	else
		label.state = (uint8_t)draw(seed, BS_DRAIN_STATE_COUNT);
	return label;
}

/* One random step of both. `coarse`: instants may repeat, so that states last 0 ns. */
static void
step(struct bs_drain_log *log, struct oracle *o, uint64_t *seed, uint32_t *t, bool coarse)
{
	struct label label;
	uint64_t kind = draw(seed, 16);

	if (kind < 10) {
		*t += (uint32_t)draw(seed, 12) + !coarse;
		label = random_label(seed);
		bs_drain_set(log, START + *t, label.state, label.served);
		oracle_set(o, *t, label);
	} else if (kind < 12) {
		uint8_t state = (uint8_t)(BS_DRAIN_STALLED + draw(seed, 3));

		*t += (uint32_t)draw(seed, 40) + !coarse;
		bs_drain_insert(log, START + *t, state);
		oracle_insert(o, *t, state);
	} else if (o->token_count < TOKENS && o->now.state == BS_DRAIN_SERVE &&
		   o->now.served != 0) {
		/* Two services and two flows a pair: within what a slice keeps exactly. */
		struct token token = {
			.pending = true,
			.service = (uint16_t)(10 * o->now.served + draw(seed, 2)),
			.flow = (uint32_t)(77 + draw(seed, 2)),
			.bytes = 1 + draw(seed, 1000000),
		};

		o->tokens[o->token_count++] = token;
		bs_drain_account(log, token.service, token.flow, token.bytes);
	}
}

static void
assert_wait_equal(const struct bs_wait *got, const struct bs_wait *want)
{
	assert_int_equal(got->congestion, want->congestion);
	assert_int_equal(got->contention, want->contention);
	assert_int_equal(got->pause, want->pause);
	assert_int_equal(got->stalled, want->stalled);
	assert_int_equal(got->preempted, want->preempted);
	assert_int_equal(got->sleep, want->sleep);
}

/*
 * A packet of a random pair that leaves now. What is known must be as the
 * oracle says of the same stretch, and no less than the log has room for.
 * Returns the part not observed.
 */
static uint64_t
check_wait(const struct bs_drain_log *log, struct oracle *o, uint64_t *seed, uint32_t t,
	unsigned entries)
{
	uint8_t served = (uint8_t)draw(seed, PAIRS + 1);
	uint32_t t_out = t + (uint32_t)draw(seed, 3);
	uint32_t t_in = (uint32_t)draw(seed, t_out + 1);
	struct bs_wait got, want;
	unsigned changes = 0;

	for (uint32_t i = o->t; i < t_out; i++)
		o->labels[i] = o->now;
	bs_drain_wait(log, served, START + t_in, START + t_out, &got);
	assert_int_equal(wait_sum(&got), t_out - t_in);
	assert_in_range(got.unobserved, 0, t_out - t_in);
	oracle_wait(o, served, t_in + (uint32_t)got.unobserved, t_out, &want);
	assert_wait_equal(&got, &want);
	for (uint32_t i = t_in + 1; i < t_out; i++)
		changes += !same(o->labels[i - 1], o->labels[i]);
	/* The state at t_in, the changes, one of no time now, one taken back. */
	if (changes + 3 <= entries)
		assert_int_equal(got.unobserved, 0);
	return got.unobserved;
}

static uint64_t
run_waits(unsigned entries, bool coarse)
{
	static struct oracle o;
	uint64_t unobserved = 0;

	for (uint64_t run = 1; run <= RUNS; run++) {
		struct bs_drain_log *log = bs_drain_create(entries, PAIRS, START);
		uint64_t seed = run * 0x9E3779B97F4A7C15u;
		uint32_t t = 0;

		assert_non_null(log);
		memset(&o, 0, sizeof(o));
		for (unsigned i = 0; i < 400 && t < SPAN - 60; i++) {
			step(log, &o, &seed, &t, coarse);
			for (unsigned k = draw(&seed, 4); k > 0; k--)
				unobserved += check_wait(log, &o, &seed, t, entries);
		}
		bs_drain_destroy(log);
	}
	return unobserved;
}

static void
parts_equal_the_oracles_while_the_log_holds_all(void **state)
{
	(void)state;
	assert_int_equal(run_waits(1024, false), 0);
	assert_int_equal(run_waits(1024, true), 0);
}

static void
known_parts_equal_the_oracles_when_the_log_wraps(void **state)
{
	static const unsigned entries[] = {2, 3, 8, 64};

	(void)state;
	for (unsigned i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		assert_true(run_waits(entries[i], false) > 0);
		assert_true(run_waits(entries[i], true) > 0);
	}
}

/* Of a run of equal labels: what its tokens say. */
struct slice {
	struct label label;
	uint32_t begin, end;
	uint64_t bytes;
	uint16_t service; /* the heaviest, its bytes and its heaviest flow */
	uint64_t heavy_bytes;
	uint32_t flow;
};

/* The slice that begins at `begin`; pending tokens are the newest's. */
static struct slice
oracle_slice(const struct oracle *o, uint32_t begin)
{
	struct slice s = {.label = o->labels[begin], .begin = begin, .end = begin};
	uint64_t by_service[2] = {0}, by_flow[2][2] = {{0}};
	unsigned heavy, flow;

	while (s.end < o->t && same(o->labels[s.end], s.label))
		s.end++;
	for (unsigned i = 0; i < o->token_count; i++) {
		const struct token *token = &o->tokens[i];
		bool inside = token->pending ? s.end == o->t && same(s.label, o->now)
					     : token->at >= s.begin && token->at < s.end;

		if (!inside)
			continue;
		s.bytes += token->bytes;
		by_service[token->service % 10] += token->bytes;
		by_flow[token->service % 10][token->flow - 77] += token->bytes;
	}
	heavy = by_service[1] > by_service[0];
	flow = by_flow[heavy][1] > by_flow[heavy][0];
	s.service = s.bytes > 0 ? (uint16_t)(10 * s.label.served + heavy) : BS_DRAIN_NO_SERVICE;
	s.heavy_bytes = by_service[heavy];
	s.flow = s.bytes > 0 ? 77 + flow : 0;
	return s;
}

struct expected {
	struct bs_drain_culprit culprit;
	bool used;
	uint64_t by_service[2], by_flow[2][2]; /* bytes of the slices in which they were heaviest */
};

/* Sums the slices in [t_in, t_out) by pair (contention) or by service (congestion). */
static unsigned
oracle_culprits(const struct oracle *o, bool congestion, uint8_t served, uint32_t t_in,
	struct expected *expected)
{
	unsigned count = 0;
	struct slice s;

	for (uint32_t begin = 0; begin < o->t; begin = s.end) {
		uint32_t from, part;
		unsigned k;

		s = oracle_slice(o, begin);
		from = s.begin > t_in ? s.begin : t_in;
		if (s.end <= from || s.label.state != BS_DRAIN_SERVE ||
			(s.label.served == served) != congestion)
			continue;
		part = s.end - from;
		for (k = 0; k < count; k++)
			if (expected[k].culprit.served == s.label.served &&
				(!congestion || expected[k].culprit.service == s.service))
				break;
		if (k == count)
			memset(&expected[count++], 0, sizeof(*expected));
		expected[k].culprit.served = s.label.served;
		expected[k].culprit.service = s.service;
		expected[k].culprit.ns += part;
		expected[k].culprit.bytes += s.bytes * part / (s.end - s.begin);
		if (s.bytes > 0) {
			uint64_t heavy = s.heavy_bytes * part / (s.end - s.begin);

			expected[k].by_service[s.service % 10] += heavy;
			expected[k].by_flow[s.service % 10][s.flow - 77] += heavy;
		}
	}
	return count;
}

static void
check_culprits(const struct bs_drain_log *log, const struct oracle *o, uint64_t *seed)
{
	static struct expected expected[64];
	struct bs_drain_culprit got[64];
	uint8_t served = (uint8_t)(1 + draw(seed, PAIRS));
	uint32_t t_in = (uint32_t)draw(seed, o->t);
	bool congestion = draw(seed, 2) == 0;
	unsigned want = oracle_culprits(o, congestion, served, t_in, expected);
	unsigned count =
		bs_drain_culprits(log, congestion ? BS_CAUSE_CONGESTION : BS_CAUSE_CONTENTION,
			served, START + t_in, START + o->t, got, 64);

	assert_int_equal(count, want);
	for (unsigned i = 0; i < count; i++) {
		struct expected *e = NULL;
		unsigned heavy, flow;

		if (i > 0)
			assert_true(got[i - 1].ns >= got[i].ns);
		for (unsigned k = 0; k < want; k++)
			if (expected[k].culprit.served == got[i].served &&
				(!congestion || expected[k].culprit.service == got[i].service))
				e = &expected[k];
		assert_non_null(e);
		assert_false(e->used);
		e->used = true;
		assert_int_equal(got[i].ns, e->culprit.ns);
		assert_int_equal(got[i].bytes, e->culprit.bytes);
		if (e->culprit.bytes == 0)
			continue;
		heavy = e->by_service[1] > e->by_service[0];
		flow = e->by_flow[heavy][1] > e->by_flow[heavy][0];
		assert_int_equal(got[i].service, 10 * got[i].served + heavy);
		assert_int_equal(got[i].flow_hash, 77 + flow);
	}
}

static void
culprits_equal_the_oracles(void **state)
{
	static struct oracle o;

	(void)state;
	for (uint64_t run = 1; run <= 60; run++) {
		struct bs_drain_log *log = bs_drain_create(1024, PAIRS, START);
		uint64_t seed = run * 0xD1B54A32D192ED03u;
		uint32_t t = 0;

		assert_non_null(log);
		memset(&o, 0, sizeof(o));
		for (unsigned i = 0; i < 400 && t < SPAN - 60; i++) {
			step(log, &o, &seed, &t, false);
			if (o.t > 0 && i % 16 == 0)
				check_culprits(log, &o, &seed);
		}
		bs_drain_destroy(log);
	}
}

static void
wrapped_log_names_only_culprits_it_still_holds(void **state)
{
	struct bs_drain_log *log = bs_drain_create(2, 3, 0);
	struct bs_drain_culprit culprit[4];
	struct bs_wait wait;

	(void)state;
	assert_non_null(log);
	bs_drain_set(log, 10, BS_DRAIN_SERVE, 1);
	bs_drain_set(log, 30, BS_DRAIN_SERVE, 2);
	bs_drain_account(log, 6, 60, 1500);
	bs_drain_set(log, 70, BS_DRAIN_SERVE, 3);
	bs_drain_wait(log, 3, 0, 100, &wait);
	assert_int_equal(wait.unobserved, 30);
	assert_int_equal(wait.contention, 40);
	assert_int_equal(wait.congestion, 30);
	assert_int_equal(bs_drain_culprits(log, BS_CAUSE_CONTENTION, 3, 0, 100, culprit, 4), 1);
	assert_int_equal(culprit[0].served, 2);
	assert_int_equal(culprit[0].service, 6);
	assert_int_equal(culprit[0].flow_hash, 60);
	assert_int_equal(culprit[0].bytes, 1500);
	assert_int_equal(culprit[0].ns, 40);
	bs_drain_destroy(log);
}

static void
wait_before_all_entries_is_wholly_unobserved(void **state)
{
	struct bs_drain_log *log = bs_drain_create(4, 1, 1000);
	struct bs_wait wait;

	(void)state;
	assert_non_null(log);
	bs_drain_wait(log, 1, 100, 400, &wait);
	assert_int_equal(wait.unobserved, 300);
	assert_int_equal(wait_sum(&wait), 300);
	bs_drain_wait(log, 1, 500, 500, &wait);
	assert_int_equal(wait_sum(&wait), 0);
	bs_drain_destroy(log);
}

static void
hang_noticed_afterwards_takes_the_time_since_the_last_call(void **state)
{
	struct bs_drain_log *log = bs_drain_create(16, 2, 0);
	struct bs_wait wait;

	(void)state;
	assert_non_null(log);
	bs_drain_set(log, 100, BS_DRAIN_SERVE, 1);
	bs_drain_set(log, 150, BS_DRAIN_SERVE, 1); /* still serving at 150 */
	bs_drain_insert(log, 20150, BS_DRAIN_STALLED);
	bs_drain_wait(log, 1, 100, 20200, &wait);
	assert_int_equal(wait.stalled, 20000);
	assert_int_equal(wait.congestion, 100);
	assert_int_equal(wait.contention, 0);
	bs_drain_destroy(log);
}

static void
interruption_begins_when_time_had_come_to(void **state)
{
	struct bs_drain_log *log = bs_drain_create(16, 2, 0);
	struct bs_wait wait;

	(void)state;
	assert_non_null(log);
	bs_drain_set(log, 100, BS_DRAIN_SERVE, 1);
	bs_drain_advance(log, 180);
	bs_drain_advance(log, 120); /* never back */
	bs_drain_insert(log, 400, BS_DRAIN_STALLED);
	bs_drain_wait(log, 1, 100, 450, &wait);
	assert_int_equal(wait.stalled, 220);
	assert_int_equal(wait.congestion, 80 + 50);
	bs_drain_destroy(log);
}

static void
slice_interrupted_before_its_first_ns_keeps_its_bytes(void **state)
{
	struct bs_drain_log *log = bs_drain_create(16, 2, 0);
	struct bs_drain_culprit culprit;

	(void)state;
	assert_non_null(log);
	bs_drain_set(log, 100, BS_DRAIN_SERVE, 1);
	bs_drain_account(log, 9, 90, 777);
	bs_drain_insert(log, 400, BS_DRAIN_PREEMPTED);
	bs_drain_set(log, 450, BS_DRAIN_SERVE, 2);
	assert_int_equal(bs_drain_culprits(log, BS_CAUSE_CONGESTION, 1, 100, 450, &culprit, 1), 1);
	assert_int_equal(culprit.bytes, 777);
	assert_int_equal(culprit.service, 9);
	assert_int_equal(culprit.ns, 50);
	bs_drain_destroy(log);
}

static void
flow_with_most_bytes_of_a_slice_is_named_among_many(void **state)
{
	struct bs_drain_log *log = bs_drain_create(16, 1, 0);
	struct bs_drain_culprit culprit;

	(void)state;
	assert_non_null(log);
	bs_drain_set(log, 0, BS_DRAIN_SERVE, 1);
	for (uint32_t i = 0; i < 1000; i++) {
		bs_drain_account(log, (uint16_t)(i % 100), i, 100);
		bs_drain_account(log, 300, 0xBEEF, 101);
	}
	bs_drain_set(log, 50, BS_DRAIN_PAUSE, 0);
	assert_int_equal(bs_drain_culprits(log, BS_CAUSE_CONGESTION, 1, 0, 50, &culprit, 1), 1);
	assert_int_equal(culprit.service, 300);
	assert_int_equal(culprit.flow_hash, 0xBEEF);
	assert_int_equal(culprit.bytes, 201000);
	bs_drain_destroy(log);
}

static void
culprits_are_cut_to_the_longest_that_fit(void **state)
{
	struct bs_drain_log *log = bs_drain_create(16, 3, 0);
	struct bs_drain_culprit culprit[2];

	(void)state;
	assert_non_null(log);
	bs_drain_set(log, 5, BS_DRAIN_SERVE, 1);
	bs_drain_set(log, 25, BS_DRAIN_SERVE, 2);
	bs_drain_set(log, 65, BS_DRAIN_SERVE, 3);
	assert_int_equal(bs_drain_culprits(log, BS_CAUSE_CONTENTION, 3, 0, 80, culprit, 2), 2);
	assert_int_equal(culprit[0].served, 2);
	assert_int_equal(culprit[0].ns, 40);
	assert_int_equal(culprit[0].service, BS_DRAIN_NO_SERVICE);
	assert_int_equal(culprit[1].served, 1);
	assert_int_equal(culprit[1].ns, 20);
	assert_int_equal(bs_drain_culprits(log, BS_CAUSE_HANG, 3, 0, 80, culprit, 2), 0);
	assert_int_equal(bs_drain_culprits(log, BS_CAUSE_CONTENTION, 3, 0, 80, culprit, 0), 0);
	bs_drain_destroy(log);
}

static void
pair_that_does_not_exist_counts_as_other(void **state)
{
	struct bs_drain_log *log = bs_drain_create(4, 1, 0);
	struct bs_wait wait;

	(void)state;
	assert_non_null(log);
	bs_drain_set(log, 10, BS_DRAIN_SERVE, 2);
	bs_drain_wait(log, 2, 0, 30, &wait);
	assert_int_equal(wait.contention, 30);
	bs_drain_destroy(log);
}

/* Each pair is served for 10 ns in turn; the last waited for them all, and its culprits sum up. */
static void
as_many_pairs_as_there_may_be_are_told_apart(void **state)
{
	const unsigned n = BS_DRAIN_SERVED_MAX;
	struct bs_drain_log *log = bs_drain_create(2 * n, n, 0);
	struct bs_drain_culprit culprits[BS_DRAIN_SERVED_MAX];
	struct bs_wait wait;
	uint64_t sum = 0;
	unsigned count;

	(void)state;
	assert_non_null(log);
	for (unsigned pair = 1; pair <= n; pair++)
		bs_drain_set(log, 10 * pair, BS_DRAIN_SERVE, pair);
	for (unsigned pair = 1; pair <= n; pair++) {
		bs_drain_wait(log, pair, 10, 10 * (n + 1), &wait);
		assert_int_equal(wait.congestion, 10);
		assert_int_equal(wait.contention, 10 * (n - 1));
	}
	count = bs_drain_culprits(log, BS_CAUSE_CONTENTION, n, 10, 10 * (n + 1), culprits, n);
	assert_int_equal(count, 65);
	for (unsigned i = 0; i < count; i++)
		sum += culprits[i].ns;
	assert_int_equal(sum, 10 * (n - 1));
	bs_drain_destroy(log);
}

static void
instant_before_the_last_call_counts_as_the_last(void **state)
{
	struct bs_drain_log *log = bs_drain_create(4, 1, 100);
	struct bs_wait wait;

	(void)state;
	assert_non_null(log);
	bs_drain_set(log, 200, BS_DRAIN_SERVE, 1);
	bs_drain_set(log, 150, BS_DRAIN_PAUSE, 0);
	bs_drain_wait(log, 1, 100, 260, &wait);
	assert_int_equal(wait.contention, 100);
	assert_int_equal(wait.pause, 60);
	assert_int_equal(wait_sum(&wait), 160);
	bs_drain_destroy(log);
}

static void
create_refuses_sizes_out_of_range(void **state)
{
	(void)state;
	errno = 0;
	assert_null(bs_drain_create(0, 1, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(bs_drain_create(1, 1, 0));
	assert_null(bs_drain_create((1u << 24) + 1, 1, 0));
	assert_null(bs_drain_create(16, BS_DRAIN_SERVED_MAX + 1, 0));
	bs_drain_destroy(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_equal_the_oracles_while_the_log_holds_all),
		cmocka_unit_test(known_parts_equal_the_oracles_when_the_log_wraps),
		cmocka_unit_test(culprits_equal_the_oracles),
		cmocka_unit_test(wrapped_log_names_only_culprits_it_still_holds),
		cmocka_unit_test(wait_before_all_entries_is_wholly_unobserved),
		cmocka_unit_test(hang_noticed_afterwards_takes_the_time_since_the_last_call),
		cmocka_unit_test(interruption_begins_when_time_had_come_to),
		cmocka_unit_test(slice_interrupted_before_its_first_ns_keeps_its_bytes),
		cmocka_unit_test(flow_with_most_bytes_of_a_slice_is_named_among_many),
		cmocka_unit_test(culprits_are_cut_to_the_longest_that_fit),
		cmocka_unit_test(pair_that_does_not_exist_counts_as_other),
		cmocka_unit_test(as_many_pairs_as_there_may_be_are_told_apart),
		cmocka_unit_test(instant_before_the_last_call_counts_as_the_last),
		cmocka_unit_test(create_refuses_sizes_out_of_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
