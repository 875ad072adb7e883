/* SPDX-License-Identifier: BSD-3-Clause */
/* Decayed log-linear distributions: see sketch.h. */
#include "sketch.h"

#include <math.h>
#include <string.h>

#define FIRST_OCTAVE 10u
#define SUB_BITS 3u
#define SUB (1u << SUB_BITS)
#define MAD_FLOOR 0.22314355131420976 /* ln 1.25 */
#define BIN_LOG (M_LN2 / SUB)	      /* width of a bin in the log domain, on average */

static unsigned
bin_of(uint64_t ns)
{
	if (ns < 1ull << FIRST_OCTAVE)
		return 0;
	unsigned octave = 63u - (unsigned)__builtin_clzll(ns);
	unsigned sub = (unsigned)(ns >> (octave - SUB_BITS)) & (SUB - 1);
	unsigned bin = 1 + (octave - FIRST_OCTAVE) * SUB + sub;
	return bin < SKETCH_BINS ? bin : SKETCH_BINS - 1;
}

static uint64_t
bin_middle_ns(unsigned bin)
{
	if (bin == 0)
		return 0;
	unsigned octave = FIRST_OCTAVE + (bin - 1) / SUB;
	uint64_t width = 1ull << (octave - SUB_BITS);
	return (1ull << octave) + ((bin - 1) % SUB) * width + width / 2;
}

/* Odd counts are rounded up and down in turn, so that thin tails fade but do not vanish at once. */
static void
halve(struct sketch *sketch)
{
	uint32_t count = 0;
	for (unsigned i = 0; i < SKETCH_BINS; i++) {
		unsigned up = (i + sketch->halvings) & 1;
		sketch->bins[i] = (uint16_t)((sketch->bins[i] + up) / 2);
		count += sketch->bins[i];
	}
	sketch->count = count;
	sketch->halvings++;
}

void
sketch_add(struct sketch *sketch, uint64_t ns, uint64_t count)
{
	unsigned bin = bin_of(ns);

	if (count >= 2ull * SKETCH_WINDOW) {
		memset(sketch->bins, 0, sizeof(sketch->bins));
		sketch->count = 0;
		count = SKETCH_WINDOW / 2;
	}
	while (count > 0) {
		uint32_t room = SKETCH_WINDOW - sketch->count;
		uint32_t now = count < room ? (uint32_t)count : room;
		sketch->bins[bin] = (uint16_t)(sketch->bins[bin] + now);
		sketch->count += now;
		sketch->stale += now;
		count -= now;
		if (sketch->count >= SKETCH_WINDOW)
			halve(sketch);
	}
}

static unsigned
quantile_bin(const struct sketch *sketch, double q)
{
	double wanted = q * sketch->count;
	uint32_t below = 0;

	for (unsigned i = 0; i < SKETCH_BINS; i++) {
		below += sketch->bins[i];
		if (below > 0 && below >= wanted)
			return i;
	}
	return 0;
}

uint64_t
sketch_quantile(const struct sketch *sketch, double q)
{
	return bin_middle_ns(quantile_bin(sketch, q));
}

void
sketch_refresh(struct sketch *sketch)
{
	if (sketch->stale * 16 < sketch->count || sketch->stale == 0)
		return;
	sketch->stale = 0;

	unsigned median = quantile_bin(sketch, 0.5);
	uint32_t near = sketch->bins[median];
	unsigned distance = 0;
	while (near * 2 < sketch->count) {
		distance++;
		if (median >= distance)
			near += sketch->bins[median - distance];
		if (median + distance < SKETCH_BINS)
			near += sketch->bins[median + distance];
	}
	sketch->median_ns = bin_middle_ns(median);
	sketch->mad_bins = (uint16_t)distance;
}

uint64_t
sketch_envelope(const struct sketch *sketch, double mads)
{
	double mad = sketch->mad_bins * BIN_LOG;
	double limit = (double)sketch->median_ns * exp(mads * (mad > MAD_FLOOR ? mad : MAD_FLOOR));
	return limit < 9e18 ? (uint64_t)limit : UINT64_MAX;
}
