/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the drainer's log costs where it is on the packet path: TSC cycles and
 * ns a call of set, account and wait. The schedule is fixed: a drainer that
 * goes round its pairs, a burst of packets each.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <x86intrin.h>

#include "bs_drain.h"

#define ENTRIES 4096u
#define PAIRS 8u
#define CALLS 4000000u
#define ROUNDS 5u

struct stamp {
	uint64_t cycles;
	struct timespec t;
};

static struct stamp
stamp(void)
{
	struct stamp now;

	clock_gettime(CLOCK_MONOTONIC, &now.t);
	now.cycles = __rdtsc();
	return now;
}

static void
report(const char *what, const struct stamp *from, unsigned calls)
{
	struct stamp to = stamp();
	double ns = (double)(to.t.tv_sec - from->t.tv_sec) * 1e9 +
		    (double)(to.t.tv_nsec - from->t.tv_nsec);

	printf("%-24s %7.1f cycles %7.1f ns\n", what, (double)(to.cycles - from->cycles) / calls,
		ns / calls);
}

static uint64_t
run_set(struct bs_drain_log *log, uint64_t t)
{
	struct stamp from = stamp();

	for (unsigned i = 0; i < CALLS; i++)
		bs_drain_set(log, t += 100, BS_DRAIN_SERVE, i % (PAIRS + 1));
	report("set, another state", &from, CALLS);
	return t;
}

static uint64_t
run_set_same(struct bs_drain_log *log, uint64_t t)
{
	struct stamp from;

	bs_drain_set(log, t, BS_DRAIN_SERVE, 1);
	from = stamp();
	for (unsigned i = 0; i < CALLS; i++)
		bs_drain_set(log, t += 100, BS_DRAIN_SERVE, 1);
	report("set, the same state", &from, CALLS);
	return t;
}

static uint64_t
run_account(struct bs_drain_log *log, uint64_t t, unsigned flows)
{
	struct stamp from;
	char what[32];

	snprintf(what, sizeof(what), "account, %u flow%s", flows, flows > 1 ? "s" : "");
	bs_drain_set(log, t += 100, BS_DRAIN_SERVE, 2);
	from = stamp();
	for (unsigned i = 0; i < CALLS; i++)
		bs_drain_account(log, 1, i % flows, 1500);
	report(what, &from, CALLS);
	return t;
}

static void
run_wait(const struct bs_drain_log *log, uint64_t t, uint64_t wait_ns)
{
	struct stamp from = stamp();
	uint64_t sum = 0;
	char what[40];

	snprintf(what, sizeof(what), "wait of %" PRIu64 " ns", wait_ns);
	for (unsigned i = 0; i < CALLS; i++) {
		struct bs_wait wait;

		bs_drain_wait(log, 1 + i % PAIRS, t - wait_ns - i % 64, t, &wait);
		sum += wait.congestion + wait.contention + wait.unobserved;
	}
	report(what, &from, CALLS);
	if (sum < (uint64_t)CALLS * wait_ns)
		abort(); /* also keeps the calls */
}

int
main(void)
{
	struct bs_drain_log *log = bs_drain_create(ENTRIES, PAIRS, 0);
	uint64_t t = 0;

	if (log == NULL) {
		perror("bs_drain_create");
		return 1;
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		printf("round %u\n", round + 1);
		t = run_set_same(log, t);
		t = run_account(log, t, 1);
		t = run_account(log, t, 4);
		t = run_account(log, t, 64);
		t = run_set(log, t);
		run_wait(log, t, 500);
		run_wait(log, t, 10000);
		run_wait(log, t, 300000);
	}
	bs_drain_destroy(log);
	return 0;
}
