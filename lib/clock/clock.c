/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Conversions between counter ticks, nanoseconds and text. All of it is integer
 * arithmetic, so that a value read back is the value that was written.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bs_clock.h"

#define PPM 1000000ull

uint64_t (*bs_clock_now_ns)(void);

int
bs_clock_scale_init(
	struct bs_clock_scale *scale, uint64_t ticks_hz, uint64_t base_ticks, uint64_t base_ns)
{
	/* 10^9 < 2^30: shifted by 97 it still fits 128 bits. */
	uint32_t shift = 97;
	bs_uint128 mult;

	if (ticks_hz == 0)
		return -EINVAL;
	/* The largest multiplier of 64 bits: its rounding error stays below 2^-63 of the result. */
	for (;;) {
		mult = (((bs_uint128)BS_NS_PER_S << shift) + ticks_hz / 2) / ticks_hz;
		if (mult <= UINT64_MAX)
			break;
		shift--;
	}
	scale->base_ticks = base_ticks;
	scale->base_ns = base_ns;
	scale->mult = (uint64_t)mult;
	scale->shift = shift;
	return 0;
}

uint64_t
bs_clock_error_ppm(uint64_t ticks_hz, uint64_t delta_ticks, uint64_t delta_ns)
{
	bs_uint128 measured = (bs_uint128)delta_ticks * BS_NS_PER_S;
	bs_uint128 expected = (bs_uint128)ticks_hz * delta_ns;
	bs_uint128 error = measured > expected ? measured - expected : expected - measured;
	bs_uint128 ppm;

	if (error <= ~(bs_uint128)0 / PPM) {
		if (expected == 0)
			return UINT64_MAX;
		ppm = error * PPM / expected;
	} else {
		/* Too large to multiply; expected is smaller than error or of its size. */
		if (expected < PPM)
			return UINT64_MAX;
		ppm = error / (expected / PPM);
	}
	return ppm > UINT64_MAX ? UINT64_MAX : (uint64_t)ppm;
}

static const struct {
	char text[4];
	uint64_t ns;
} duration_units[] = {
	{"ns", 1},
	{"us", BS_NS_PER_US},
	{"ms", BS_NS_PER_MS},
	{"s", BS_NS_PER_S},
	{"m", 60 * BS_NS_PER_S},
	{"h", 3600 * BS_NS_PER_S},
};

/*
 * Digits at *text up to the first other byte, as a number that sticks at
 * UINT64_MAX. Returns how many digits there were.
 */
static size_t
take_digits(const char **text, uint64_t *value)
{
	const char *p = *text;
	uint64_t v = 0;

	for (; *p >= '0' && *p <= '9'; p++) {
		uint64_t digit = (uint64_t)(*p - '0');

		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, digit, &v))
			v = UINT64_MAX;
	}
	size_t digits = (size_t)(p - *text);

	*text = p;
	*value = v;
	return digits;
}

/*
 * The fraction at *text (behind the point) of a unit: fraction = num / den.
 * Zeros at its end do not count. False if there is no digit, or so many that
 * no unit makes whole nanoseconds of them (an hour has 13 decimals).
 */
static int
take_fraction(const char **text, uint64_t *num, uint64_t *den)
{
	const char *begin = *text;
	size_t digits = strspn(begin, "0123456789");
	size_t significant = digits;

	*text += digits;
	*num = 0;
	*den = 1;
	if (digits == 0)
		return 0;
	while (significant > 0 && begin[significant - 1] == '0')
		significant--;
	if (significant > 13)
		return 0;
	for (size_t i = 0; i < significant; i++) {
		*num = *num * 10 + (uint64_t)(begin[i] - '0');
		*den *= 10;
	}
	return 1;
}

int
bs_duration_parse(const char *text, uint64_t *out_ns)
{
	uint64_t whole, num = 0, den = 1;

	if (take_digits(&text, &whole) == 0)
		return -EINVAL;
	if (*text == '.') {
		text++;
		if (!take_fraction(&text, &num, &den))
			return -EINVAL;
	}
	for (size_t i = 0; i < sizeof(duration_units) / sizeof(duration_units[0]); i++) {
		if (strcmp(text, duration_units[i].text) != 0)
			continue;
		uint64_t unit = duration_units[i].ns;
		bs_uint128 part = (bs_uint128)num * unit;
		bs_uint128 ns = (bs_uint128)whole * unit + part / den;

		if (part % den != 0)
			return -EINVAL;
		if (ns > INT64_MAX)
			return -ERANGE;
		*out_ns = (uint64_t)ns;
		return 0;
	}
	return -EINVAL;
}

static uint64_t
divide_rounded(uint64_t value, uint64_t divisor)
{
	return value / divisor + (value % divisor >= divisor - value % divisor);
}

char *
bs_duration_text(uint64_t ns, char buf[BS_DURATION_TEXT_BYTES])
{
	static const struct {
		unsigned div;
		int decimals;
	} forms[] = {{100, 2}, {10, 1}, {1, 0}};

	if (ns < BS_NS_PER_US) {
		snprintf(buf, BS_DURATION_TEXT_BYTES, "%" PRIu64 " ns", ns);
		return buf;
	}
	/* The first form of at most three digits after rounding: 999.6 us is 1.00 ms. */
	for (size_t unit = 1; unit <= 3; unit++) {
		for (size_t i = 0; i < 3; i++) {
			unsigned div = forms[i].div;
			uint64_t q = divide_rounded(ns, duration_units[unit].ns / div);

			if (q >= 1000)
				continue;
			snprintf(buf, BS_DURATION_TEXT_BYTES, "%u%s%.*u %s", (unsigned)q / div,
				div > 1 ? "." : "", forms[i].decimals, (unsigned)q % div,
				duration_units[unit].text);
			return buf;
		}
	}
	snprintf(buf, BS_DURATION_TEXT_BYTES, "%" PRIu64 " s", divide_rounded(ns, BS_NS_PER_S));
	return buf;
}
