/* SPDX-License-Identifier: BSD-3-Clause */
/* See tsc_clock.h. */
#include "tsc_clock.h"

#include <errno.h>
#include <rte_cpuflags.h>
#include <rte_cycles.h>
#include <time.h>

#include "bs_clock.h"

#define MEASURE_NS 100000000ull
#define READS 8u
#define READ_MAX_NS 20000ull /* readings of the clocks further apart than this are of no use */

static struct bs_clock_follow follow;

/*
 * The scale in use is the one at `turn` modulo two; the next is written beside it
 * and then published. Who reads begins again if it was overtaken meanwhile.
 */
static struct bs_clock_scale scales[2];
static unsigned turn;

static uint64_t
tsc_now_ns(void)
{
	for (;;) {
		const unsigned now = __atomic_load_n(&turn, __ATOMIC_ACQUIRE);
		const uint64_t ns = bs_clock_scale_ns(&scales[now % 2], rte_rdtsc());

		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&turn, __ATOMIC_RELAXED) == now)
			return ns;
	}
}

static void
publish(const struct bs_clock_scale *scale)
{
	scales[(turn + 1) % 2] = *scale;
	__atomic_store_n(&turn, turn + 1, __ATOMIC_RELEASE);
}

static uint64_t
kernel_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * BS_NS_PER_S + (uint64_t)now.tv_nsec;
}

/* All three at one instant: of several reads the one that took least time. False: even that
 * took long. */
static bool
read_clocks(struct bs_clock_reading *reading)
{
	uint64_t best_ns = UINT64_MAX;

	for (unsigned i = 0; i < READS; i++) {
		const uint64_t before_ns = kernel_ns(CLOCK_MONOTONIC_RAW);
		const uint64_t ticks = rte_rdtsc_precise();
		const uint64_t wall_ns = kernel_ns(CLOCK_REALTIME);
		const uint64_t took_ns = kernel_ns(CLOCK_MONOTONIC_RAW) - before_ns;

		if (took_ns >= best_ns)
			continue;
		best_ns = took_ns;
		*reading = (struct bs_clock_reading){ticks, before_ns + took_ns / 2, wall_ns};
	}
	return best_ns <= READ_MAX_NS;
}

static void
measure(struct bs_clock_reading *from, struct bs_clock_reading *to)
{
	const struct timespec pause = {0, (long)MEASURE_NS};

	read_clocks(from);
	do
		nanosleep(&pause, NULL);
	while (!read_clocks(to));
}

static bool
tsc_is_invariant(void)
{
#ifdef RTE_ARCH_X86
	return rte_cpu_get_flag_enabled(RTE_CPUFLAG_INVTSC) == 1;
#else
	return true; /* architected timers have one rate */
#endif
}

static void
tell(struct bs_tsc_clock *clock)
{
	clock->hz = follow.hz;
	clock->error_ppm = follow.error_ppm;
	clock->uneven = follow.uneven;
	clock->wall_offset_ns = follow.wall_offset_ns;
	clock->wall_steps = follow.wall_steps;
}

int
bs_tsc_clock_start(struct bs_tsc_clock *clock)
{
	struct bs_clock_reading from, to;
	uint64_t ticks, ns;

	measure(&from, &to);
	ticks = to.ticks - from.ticks;
	ns = to.steady_ns - from.steady_ns;
	clock->eal_error_ppm = bs_clock_error_ppm(rte_get_tsc_hz(), ticks, ns);
	clock->invariant = tsc_is_invariant();
	if (bs_clock_follow_start(&follow,
		    (uint64_t)((bs_uint128)ticks * BS_NS_PER_S / (ns == 0 ? 1 : ns)), &from) != 0)
		return -ERANGE;
	measure(&from, &to);
	bs_clock_follow_step(&follow, &to);
	publish(&follow.scale);
	tell(clock);
	bs_clock_now_ns = tsc_now_ns;
	return clock->error_ppm > BS_CLOCK_ERROR_MAX_PPM ? -ERANGE : 0;
}

void
bs_tsc_clock_check(struct bs_tsc_clock *clock)
{
	struct bs_clock_reading reading;

	if (!read_clocks(&reading) || !bs_clock_follow_step(&follow, &reading))
		return;
	publish(&follow.scale);
	tell(clock);
}
