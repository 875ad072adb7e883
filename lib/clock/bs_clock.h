/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time, as the rest of BufScope sees it: one function pointer, nanoseconds
 * since the Unix epoch, never going backwards. The program sets the pointer
 * (bufscoped: the TSC, which follows the wall clock; replay: the capture);
 * a test sets it to a variable that it steps. Nothing in lib/ calls it: there,
 * time is an argument.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ISO C has no such type, hence the __extension__. */
__extension__ typedef unsigned __int128 bs_uint128;

#define BS_NS_PER_US 1000ull
#define BS_NS_PER_MS 1000000ull
#define BS_NS_PER_S 1000000000ull

/* Now, in ns since the Unix epoch. Set before the first lcore starts; any thread may call it. */
extern uint64_t (*bs_clock_now_ns)(void);

/* Ticks of a free-running counter turned into ns: ns = base_ns + (ticks - base_ticks) * mult >>
 * shift. */
struct bs_clock_scale {
	uint64_t base_ticks;
	uint64_t base_ns;
	uint64_t mult;
	uint32_t shift;
};

/*
 * Scale for a counter of ticks_hz that reads base_ticks at base_ns.
 * 0, or -EINVAL when ticks_hz is 0. bs_clock_scale_ns is then within 1 ns of exact.
 */
int bs_clock_scale_init(
	struct bs_clock_scale *scale, uint64_t ticks_hz, uint64_t base_ticks, uint64_t base_ns);

static inline uint64_t
bs_clock_scale_ns(const struct bs_clock_scale *scale, uint64_t ticks)
{
	bs_uint128 delta = ticks - scale->base_ticks;

	return scale->base_ns + (uint64_t)((delta * scale->mult) >> scale->shift);
}

/*
 * How far a measured rate is from the expected one, in ppm (absolute value).
 * delta_ticks of a counter said to run at ticks_hz passed in delta_ns of a reference clock.
 * UINT64_MAX when it cannot be told (ticks_hz or delta_ns is 0) or is larger.
 */
uint64_t bs_clock_error_ppm(uint64_t ticks_hz, uint64_t delta_ticks, uint64_t delta_ns);

/* A counter, the steady clock that judges it, and the wall clock, read at one instant. */
struct bs_clock_reading {
	uint64_t ticks;
	uint64_t steady_ns; /* CLOCK_MONOTONIC_RAW: slewed by nobody */
	uint64_t wall_ns;   /* CLOCK_REALTIME: may be slewed and stepped */
};

#define BS_CLOCK_ERROR_MAX_PPM 1000u /* 0.1 %: a counter further off runs unevenly */
#define BS_CLOCK_SLEW_MAX_PPM 200u
#define BS_CLOCK_STEP_NS (100 * BS_NS_PER_MS)

/*
 * A clock made of a free-running counter that follows the wall clock: its rate
 * is what the counter did against the steady clock so far, and it drifts toward
 * the wall clock by at most BS_CLOCK_SLEW_MAX_PPM. So a duration is wrong by no
 * more than that, the clock never jumps when the wall clock is stepped, and
 * after days its instants are still those of the logs around it. One thread.
 */
struct bs_clock_follow {
	struct bs_clock_scale scale; /* from the last reading on */
	uint64_t hz;
	uint64_t error_ppm;	/* of the counter over the last interval, against hz before it */
	uint64_t uneven;	/* intervals in which it was beyond BS_CLOCK_ERROR_MAX_PPM */
	int64_t wall_offset_ns; /* wall clock less this clock at the last reading */
	uint64_t wall_steps;	/* times that changed by more than BS_CLOCK_STEP_NS at once */
	struct bs_clock_reading first, last;
};

/*
 * Starts at the wall clock of `first`. 0, or -EINVAL (hz is 0).
 */
int bs_clock_follow_start(
	struct bs_clock_follow *follow, uint64_t hz, const struct bs_clock_reading *first);

/*
 * Takes a later reading: true if follow->scale is new. Readings less than 100 ms
 * of the steady clock behind the last one taken change nothing.
 */
bool bs_clock_follow_step(struct bs_clock_follow *follow, const struct bs_clock_reading *reading);

/*
 * Durations as text: a decimal number (fraction allowed) and a unit ns, us, ms,
 * s, m or h: "200us", "1.5ms". No sign, no spaces.
 * 0, or -EINVAL (not of that form, or not a whole number of ns) or -ERANGE (does not
 * fit 63 bits of ns). *out_ns is written on success only. Any thread.
 */
int bs_duration_parse(const char *text, uint64_t *out_ns);

#define BS_DURATION_TEXT_BYTES 24

/*
 * "0 ns", "850 ns", "12.3 us", "4.56 ms", "1.20 s": three significant digits.
 * From 1000 s on whole seconds. Rounds to nearest. Returns buf. Any thread.
 */
char *bs_duration_text(uint64_t ns, char buf[BS_DURATION_TEXT_BYTES]);
