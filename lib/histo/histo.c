/* SPDX-License-Identifier: BSD-3-Clause */
/* The buckets of the log-linear histogram and what is read from them. */
#include "bs_histo.h"

/*
 * Below 32 a bucket holds one value. From there the leading bit says which
 * block of 32 buckets, the 5 bits behind it which bucket.
 */
static unsigned
bucket_of(uint64_t value)
{
	unsigned shift;

	if (value < BS_HISTO_SUB_BUCKETS)
		return (unsigned)value;
	if (value >> BS_HISTO_VALUE_BITS)
		return BS_HISTO_BUCKETS - 1;
	shift = 63 - (unsigned)__builtin_clzll(value) - BS_HISTO_SUB_BITS;
	return shift * BS_HISTO_SUB_BUCKETS + (unsigned)(value >> shift);
}

static uint64_t
bucket_first(unsigned bucket)
{
	unsigned shift;

	if (bucket < BS_HISTO_SUB_BUCKETS)
		return bucket;
	shift = bucket / BS_HISTO_SUB_BUCKETS - 1;
	return (uint64_t)(bucket % BS_HISTO_SUB_BUCKETS + BS_HISTO_SUB_BUCKETS) << shift;
}

static uint64_t
bucket_last(unsigned bucket)
{
	return bucket == BS_HISTO_BUCKETS - 1 ? UINT64_MAX : bucket_first(bucket + 1) - 1;
}

static uint64_t
add_sticking(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/* To be called before count changes. */
static void
extend_range(struct bs_histo *histo, uint64_t min, uint64_t max)
{
	if (histo->count == 0 || min < histo->min)
		histo->min = min;
	if (histo->count == 0 || max > histo->max)
		histo->max = max;
}

void
bs_histo_add_n(struct bs_histo *histo, uint64_t value_ns, uint64_t n)
{
	uint64_t sum;

	if (n == 0)
		return;
	extend_range(histo, value_ns, value_ns);
	if (__builtin_mul_overflow(value_ns, n, &sum))
		sum = UINT64_MAX;
	histo->sum = add_sticking(histo->sum, sum);
	histo->count += n;
	histo->buckets[bucket_of(value_ns)] += n;
}

void
bs_histo_add(struct bs_histo *histo, uint64_t value_ns)
{
	bs_histo_add_n(histo, value_ns, 1);
}

void
bs_histo_merge(struct bs_histo *histo, const struct bs_histo *from)
{
	if (from->count == 0)
		return;
	extend_range(histo, from->min, from->max);
	histo->sum = add_sticking(histo->sum, from->sum);
	histo->count += from->count;
	for (unsigned i = 0; i < BS_HISTO_BUCKETS; i++)
		histo->buckets[i] += from->buckets[i];
}

/*
 * ceil(q n), from 1 to n. 0.07 * 100 is a little more than 7 in floating point:
 * so little is no reason for the next rank.
 */
static uint64_t
rank_of(double q, uint64_t n)
{
	double exact;
	uint64_t rank;

	if (q <= 0)
		return 1;
	if (!(q < 1))
		return n;
	exact = q * (double)n;
	if (exact >= (double)n)
		return n;
	rank = (uint64_t)exact;
	if (exact - (double)rank > exact * 1e-12)
		rank++;
	return rank > 0 ? rank : 1;
}

uint64_t
bs_histo_quantile(const struct bs_histo *histo, double q)
{
	uint64_t rank = rank_of(q, histo->count);
	uint64_t seen = 0;

	if (histo->count == 0)
		return 0;
	for (unsigned i = 0; i < BS_HISTO_BUCKETS; i++) {
		seen += histo->buckets[i];
		if (seen >= rank)
			return bucket_last(i) < histo->max ? bucket_last(i) : histo->max;
	}
	return histo->max;
}
