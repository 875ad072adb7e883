/* SPDX-License-Identifier: BSD-3-Clause */
/* The TSC as bs_clock_now_ns: anchored once to the wall clock, checked against the kernel's. */
#pragma once

#include <stdint.h>

#define BS_TSC_ERROR_MAX_PPM 1000u /* 0.1 % */

struct bs_tsc_clock {
	uint64_t hz;		/* measured against CLOCK_MONOTONIC_RAW */
	uint64_t error_ppm;	/* of that rate, in a second measurement */
	uint64_t eal_error_ppm; /* of the rate that EAL found, which may be rounded to 10 MHz */
};

/*
 * Measures the rate of the TSC against CLOCK_MONOTONIC_RAW for 100 ms, checks it
 * for as long again, and makes it the clock. 0, or -ERANGE when the check is off by more than
 * BS_TSC_ERROR_MAX_PPM: the TSC does not run evenly, and every duration would
 * be wrong. *clock is set in both cases. After rte_eal_init. Control thread.
 */
int bs_tsc_clock_start(struct bs_tsc_clock *clock);
