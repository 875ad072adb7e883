/* SPDX-License-Identifier: BSD-3-Clause */
/* See tsc_clock.h. */
#include "tsc_clock.h"

#include <errno.h>
#include <rte_cycles.h>
#include <time.h>

#include "bs_clock.h"

#define MEASURE_NS 100000000ull
#define READS 8u

static struct bs_clock_scale scale;

static uint64_t
tsc_now_ns(void)
{
	return bs_clock_scale_ns(&scale, rte_rdtsc());
}

static uint64_t
kernel_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * BS_NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Both clocks at one instant: of several reads the one that took least time in between. */
static void
read_both(clockid_t id, uint64_t *tsc, uint64_t *ns)
{
	uint64_t best = UINT64_MAX;

	for (unsigned i = 0; i < READS; i++) {
		uint64_t before = rte_rdtsc_precise();
		uint64_t between = kernel_ns(id);
		uint64_t after = rte_rdtsc_precise();

		if (after - before >= best)
			continue;
		best = after - before;
		*tsc = before + best / 2;
		*ns = between;
	}
}

/* Ticks and ns that pass while this thread sleeps. */
static void
measure(uint64_t *ticks, uint64_t *ns)
{
	const struct timespec pause = {0, (long)MEASURE_NS};
	uint64_t tsc[2], raw[2];

	read_both(CLOCK_MONOTONIC_RAW, &tsc[0], &raw[0]);
	nanosleep(&pause, NULL);
	read_both(CLOCK_MONOTONIC_RAW, &tsc[1], &raw[1]);
	*ticks = tsc[1] - tsc[0];
	*ns = raw[1] - raw[0];
}

int
bs_tsc_clock_start(struct bs_tsc_clock *clock)
{
	uint64_t ticks, ns, wall_tsc, wall_ns;

	measure(&ticks, &ns);
	clock->hz = (uint64_t)((double)ticks * (double)BS_NS_PER_S / (double)ns);
	clock->eal_error_ppm = bs_clock_error_ppm(rte_get_tsc_hz(), ticks, ns);
	measure(&ticks, &ns);
	clock->error_ppm = bs_clock_error_ppm(clock->hz, ticks, ns);
	read_both(CLOCK_REALTIME, &wall_tsc, &wall_ns);
	if (bs_clock_scale_init(&scale, clock->hz, wall_tsc, wall_ns) != 0)
		return -ERANGE;
	bs_clock_now_ns = tsc_now_ns;
	return clock->error_ppm > BS_TSC_ERROR_MAX_PPM ? -ERANGE : 0;
}
