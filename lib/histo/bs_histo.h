/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log-linear histogram of durations, as in HdrHistogram: each power of two is
 * split into 32 buckets of equal width, so that a bucket is never wider than
 * 1/32 of its values. Fixed size, no allocation, any two can be merged.
 *
 * All zero is an empty histogram. One writer; who reads at the same time may
 * see an add half done.
 */
#pragma once

#include <stdint.h>

#define BS_HISTO_SUB_BITS 5u
#define BS_HISTO_SUB_BUCKETS (1u << BS_HISTO_SUB_BITS)

/* Values from 2^42 ns (73 min) on share the last bucket; min, max and sum keep them. */
#define BS_HISTO_VALUE_BITS 42u
#define BS_HISTO_BUCKETS ((BS_HISTO_VALUE_BITS - BS_HISTO_SUB_BITS + 1) * BS_HISTO_SUB_BUCKETS)

struct bs_histo {
	uint64_t count;
	uint64_t sum; /* ns; sticks at UINT64_MAX */
	uint64_t min; /* ns; 0 while empty */
	uint64_t max; /* ns */
	uint64_t buckets[BS_HISTO_BUCKETS];
};

/* Counts a value, once or n times (n may be 0). */
void bs_histo_add(struct bs_histo *histo, uint64_t value_ns);
void bs_histo_add_n(struct bs_histo *histo, uint64_t value_ns, uint64_t n);

/* Adds all that `from` has counted. */
void bs_histo_merge(struct bs_histo *histo, const struct bs_histo *from);

/*
 * The value, in ns, that at least the fraction q of all values does not exceed:
 * of n values in order, the one of rank ceil(q n), at least 1, rounded up to
 * the end of its bucket and never above max. So the exact value v gives a
 * result r with v <= r <= v + v / 32 (for v below 2^42). q below 0 counts as 0,
 * above 1 or not a number as 1. 0 when empty.
 */
uint64_t bs_histo_quantile(const struct bs_histo *histo, double q);
