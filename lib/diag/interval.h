/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stretches of time and saturating sums. Instants come from records, which may
 * hold anything: nothing here wraps.
 */
#pragma once

#include <stdint.h>

#define NS_PER_US 1000ull
#define NS_PER_MS 1000000ull
#define NS_PER_S 1000000000ull

/* [begin, end) in ns since the epoch; begin <= end. */
struct interval {
	uint64_t begin, end;
};

static inline uint64_t
ns_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t
ns_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t
ns_add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* a - b, or 0 where that would be negative. */
static inline uint64_t
ns_sub(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static inline uint64_t
interval_ns(struct interval i)
{
	return ns_sub(i.end, i.begin);
}

static inline uint64_t
interval_overlap_ns(struct interval a, struct interval b)
{
	return ns_sub(ns_min(a.end, b.end), ns_max(a.begin, b.begin));
}
