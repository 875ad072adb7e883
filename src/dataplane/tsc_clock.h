/* SPDX-License-Identifier: BSD-3-Clause */
/* The TSC as bs_clock_now_ns: anchored once to the wall clock, checked against the kernel's. */
#pragma once

#include <stdint.h>

#define BS_TSC_ERROR_MAX_PPM 1000u /* 0.1 % */

/*
 * Measures the TSC against CLOCK_MONOTONIC_RAW for 100 ms and makes it the
 * clock. 0, or -ERANGE when it is off by more than BS_TSC_ERROR_MAX_PPM: then
 * every duration would be. *error_ppm and *hz are set in both cases. After
 * rte_eal_init. Control thread.
 */
int bs_tsc_clock_start(uint64_t *hz, uint64_t *error_ppm);
