/* SPDX-License-Identifier: BSD-3-Clause */
/* Against sorted arrays: quantiles, sums, merges, decay. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bs_histo.h"

#define VALUES 5000u

static struct bs_histo histo, other;

static uint64_t
next_random(uint64_t *random)
{
	*random ^= *random << 13; /* Marsaglia's xorshift64 */
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random;
}

/* 42 random bits, shifted right by less than `bits`: all magnitudes alike. */
static void
random_values(uint64_t *values, unsigned count, unsigned bits, uint64_t seed)
{
	for (unsigned i = 0; i < count; i++) {
		unsigned shift = (unsigned)(next_random(&seed) >> 32) % bits;

		values[i] = (next_random(&seed) >> 22) >> shift;
	}
}

static int
compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int
clear(void **state)
{
	(void)state;
	memset(&histo, 0, sizeof(histo));
	memset(&other, 0, sizeof(other));
	return 0;
}

static void
assert_quantiles_of(const uint64_t *sorted, uint64_t count)
{
	/* In thousandths, so that the rank is exact: ceil(q n / 1000). */
	static const unsigned quantiles[] = {0, 1, 70, 250, 500, 900, 990, 999, 1000};

	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
		uint64_t rank = (quantiles[i] * count + 999) / 1000;
		uint64_t exact = sorted[rank > 0 ? rank - 1 : 0];
		uint64_t got = bs_histo_quantile(&histo, quantiles[i] / 1000.0);

		assert_true(got >= exact);
		assert_true(got <= exact + exact / 32);
		assert_true(got <= sorted[count - 1]);
	}
}

static void
empty_histogram_answers_zero(void **state)
{
	(void)state;
	assert_int_equal(bs_histo_quantile(&histo, 0.5), 0);
	bs_histo_add_n(&histo, 7, 0);
	bs_histo_merge(&histo, &other);
	assert_int_equal(histo.count, 0);
	assert_int_equal(histo.sum, 0);
	assert_int_equal(histo.min, 0);
	assert_int_equal(histo.max, 0);
}

static void
quantiles_are_within_a_32nd_of_sorted_values(void **state)
{
	static uint64_t values[VALUES];

	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		uint64_t sum = 0;

		clear(NULL);
		random_values(values, VALUES, 42, seed * 0x9e3779b97f4a7c15ull);
		for (unsigned i = 0; i < VALUES; i++) {
			bs_histo_add(&histo, values[i]);
			sum += values[i];
		}
		qsort(values, VALUES, sizeof(values[0]), compare);
		assert_int_equal(histo.count, VALUES);
		assert_int_equal(histo.sum, sum);
		assert_int_equal(histo.min, values[0]);
		assert_int_equal(histo.max, values[VALUES - 1]);
		assert_quantiles_of(values, VALUES);
	}
}

static void
every_edge_of_a_bucket_keeps_the_bound(void **state)
{
	(void)state;
	for (unsigned bit = 0; bit < BS_HISTO_VALUE_BITS; bit++) {
		for (uint64_t mantissa = 32; mantissa < 64; mantissa++) {
			for (int off = -1; off <= 1; off++) {
				uint64_t value = ((mantissa << bit) >> 5) + (uint64_t)off;

				if (value == UINT64_MAX || value >> BS_HISTO_VALUE_BITS)
					continue;
				memset(&histo, 0, sizeof(histo));
				bs_histo_add(&histo, value);
				bs_histo_add(&histo, 1ull << BS_HISTO_VALUE_BITS);
				uint64_t got = bs_histo_quantile(&histo, 0.5);

				assert_true(got >= value && got <= value + value / 32);
			}
		}
	}
}

static void
values_below_64_are_exact(void **state)
{
	(void)state;
	for (uint64_t value = 0; value < 64; value++)
		bs_histo_add(&histo, value);
	for (unsigned value = 0; value < 64; value++)
		assert_int_equal(bs_histo_quantile(&histo, (value + 1) / 64.0), value);
}

static void
largest_values_are_counted_and_kept_as_max(void **state)
{
	(void)state;
	bs_histo_add(&histo, 1ull << 50);
	bs_histo_add(&histo, UINT64_MAX - 5);
	bs_histo_add(&histo, UINT64_MAX);
	assert_int_equal(histo.count, 3);
	assert_true(histo.max == UINT64_MAX);
	assert_true(histo.sum == UINT64_MAX);
	assert_true(bs_histo_quantile(&histo, 0.01) == UINT64_MAX);
	bs_histo_add_n(&histo, 1ull << 40, 1ull << 40);
	assert_true(histo.sum == UINT64_MAX);
}

static void
quantile_outside_its_range_is_the_nearest(void **state)
{
	(void)state;
	bs_histo_add(&histo, 10);
	bs_histo_add(&histo, 20);
	assert_int_equal(bs_histo_quantile(&histo, -1), 10);
	assert_int_equal(bs_histo_quantile(&histo, 0), 10);
	assert_int_equal(bs_histo_quantile(&histo, 2), 20);
	assert_int_equal(bs_histo_quantile(&histo, (double)NAN), 20);
	assert_int_equal(bs_histo_quantile(&histo, (double)INFINITY), 20);
}

static void
rank_is_not_one_up_by_rounding(void **state)
{
	(void)state;
	for (uint64_t value = 1; value <= 50; value++)
		bs_histo_add_n(&histo, value, 2);
	assert_int_equal(bs_histo_quantile(&histo, 0.07), 4); /* rank 7 of 1 1 2 2 3 3 4 */
	assert_int_equal(bs_histo_quantile(&histo, 0.14), 7);
	assert_int_equal(bs_histo_quantile(&histo, 0.141), 8);
	assert_int_equal(bs_histo_quantile(&histo, 0.58), 29);
}

static void
add_n_is_add_n_times(void **state)
{
	(void)state;
	for (uint64_t value = 3; value < 1000000; value = value * 3 + 1) {
		bs_histo_add_n(&histo, value, 17);
		for (unsigned i = 0; i < 17; i++)
			bs_histo_add(&other, value);
	}
	assert_memory_equal(&histo, &other, sizeof(histo));
}

static void
merged_histograms_are_one_of_all_values(void **state)
{
	static uint64_t values[VALUES];
	static struct bs_histo both;

	(void)state;
	memset(&both, 0, sizeof(both));
	random_values(values, VALUES, 42, 99);
	for (unsigned i = 0; i < VALUES; i++) {
		bs_histo_add(i % 3 == 0 ? &histo : &other, values[i]);
		bs_histo_add(&both, values[i]);
	}
	bs_histo_merge(&histo, &other);
	assert_memory_equal(&histo, &both, sizeof(both));
	memset(&other, 0, sizeof(other));
	bs_histo_merge(&histo, &other);
	assert_memory_equal(&histo, &both, sizeof(both));
	bs_histo_merge(&other, &both);
	assert_memory_equal(&other, &both, sizeof(both));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(empty_histogram_answers_zero, clear),
		cmocka_unit_test_setup(quantiles_are_within_a_32nd_of_sorted_values, clear),
		cmocka_unit_test_setup(every_edge_of_a_bucket_keeps_the_bound, clear),
		cmocka_unit_test_setup(values_below_64_are_exact, clear),
		cmocka_unit_test_setup(largest_values_are_counted_and_kept_as_max, clear),
		cmocka_unit_test_setup(quantile_outside_its_range_is_the_nearest, clear),
		cmocka_unit_test_setup(rank_is_not_one_up_by_rounding, clear),
		cmocka_unit_test_setup(add_n_is_add_n_times, clear),
		cmocka_unit_test_setup(merged_histograms_are_one_of_all_values, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
