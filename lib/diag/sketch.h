/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A decayed distribution of durations in 448 bytes: log-linear bins, 8 an
 * octave, from 1 us to 137 s. Not bs_histo, which keeps percentiles to a few per
 * cent over the whole range: here thousands are held at once, only the median,
 * its MAD and a p99 are read, and what is below 1 us makes nothing slow.
 *
 * Decay: past 2048 samples all bins are halved, so that the last 1024 to 2048
 * samples count.
 */
#pragma once

#include <stdint.h>

#define SKETCH_BINS 218u
#define SKETCH_WINDOW 2048u
#define SKETCH_WARM 32u

struct sketch {
	uint64_t median_ns; /* cached, refreshed by sketch_refresh() */
	uint64_t rounds;    /* samples ever added to the sketch that paces this one, see normal.c */
	uint32_t count;	    /* sum of the bins */
	uint32_t stale;	    /* samples since the cached values were made */
	uint16_t mad_bins;  /* cached: median distance from the median, in bins */
	uint16_t halvings;
	uint16_t bins[SKETCH_BINS];
};

/* Adds `count` samples of ns. */
void sketch_add(struct sketch *sketch, uint64_t ns, uint64_t count);

/* Renews the cached median and MAD once a sixteenth of the samples is new. */
void sketch_refresh(struct sketch *sketch);

/* Quantile, 0 < q <= 1: the middle of its bin, ns; 0 when empty or below 1 us. */
uint64_t sketch_quantile(const struct sketch *sketch, double q);

/*
 * median * exp(mads * MAD), MAD of the logarithm but at least ln 1.25: what a
 * sample of this distribution does not exceed but by rare chance.
 */
uint64_t sketch_envelope(const struct sketch *sketch, double mads);
