/* SPDX-License-Identifier: BSD-3-Clause */
/* The TSC as bs_clock_now_ns: follows the wall clock, checked against the kernel's steady one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct bs_tsc_clock {
	uint64_t hz;		/* measured against CLOCK_MONOTONIC_RAW, since start */
	uint64_t error_ppm;	/* of that rate, in the last measurement */
	uint64_t eal_error_ppm; /* of the rate that EAL found, which may be rounded to 10 MHz */
	uint64_t uneven;	/* measurements that were off by more than 0.1 % */
	int64_t wall_offset_ns; /* CLOCK_REALTIME less this clock */
	uint64_t wall_steps;	/* times that jumped: somebody set the time */
	bool invariant;		/* the CPU says that its rate never changes and it never stops */
};

/*
 * Measures the rate of the TSC against CLOCK_MONOTONIC_RAW for 100 ms, checks it
 * for as long again, and makes it the clock. 0, or -ERANGE when the check is off
 * by more than BS_CLOCK_ERROR_MAX_PPM: the TSC does not run evenly, and every
 * duration would be wrong. *clock is set in both cases. After rte_eal_init. Control thread.
 */
int bs_tsc_clock_start(struct bs_tsc_clock *clock);

/*
 * Once a second: measures again, refines the rate, and lets the clock follow the
 * wall clock by at most BS_CLOCK_SLEW_MAX_PPM; it never jumps. A reading that was
 * disturbed (the thread was preempted meanwhile) is left out. The thread of start().
 */
void bs_tsc_clock_check(struct bs_tsc_clock *clock);
