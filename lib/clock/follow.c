/* SPDX-License-Identifier: BSD-3-Clause */
/* How a counter's clock follows the wall clock without ever jumping; see bs_clock.h. */
#include <errno.h>
#include <string.h>

#include "bs_clock.h"

#define INTERVAL_MIN_NS (100 * BS_NS_PER_MS)
#define CATCH_UP_NS ((int64_t)(10 * BS_NS_PER_S)) /* an offset is to be gone after so long */
#define PPM 1000000

int
bs_clock_follow_start(
	struct bs_clock_follow *follow, uint64_t hz, const struct bs_clock_reading *first)
{
	memset(follow, 0, sizeof(*follow));
	follow->hz = hz;
	follow->first = follow->last = *first;
	return bs_clock_scale_init(&follow->scale, hz, first->ticks, first->wall_ns);
}

static uint64_t
rate_hz(const struct bs_clock_reading *from, const struct bs_clock_reading *to)
{
	const uint64_t ns = to->steady_ns - from->steady_ns;

	return (uint64_t)(((bs_uint128)(to->ticks - from->ticks) * BS_NS_PER_S + ns / 2) / ns);
}

/* How fast this clock is to run while it follows, ppm above the steady clock. */
static int64_t
slew_ppm(int64_t offset_ns)
{
	const int64_t max = BS_CLOCK_SLEW_MAX_PPM;

	if (offset_ns > CATCH_UP_NS || offset_ns < -CATCH_UP_NS)
		return offset_ns > 0 ? max : -max;
	offset_ns = offset_ns * PPM / CATCH_UP_NS;
	return offset_ns > max ? max : offset_ns < -max ? -max : offset_ns;
}

bool
bs_clock_follow_step(struct bs_clock_follow *follow, const struct bs_clock_reading *reading)
{
	const struct bs_clock_reading last = follow->last;
	uint64_t now_ns, hz;
	int64_t offset_ns, ppm;

	if (reading->steady_ns < last.steady_ns + INTERVAL_MIN_NS || reading->ticks <= last.ticks)
		return false;
	follow->error_ppm = bs_clock_error_ppm(
		follow->hz, reading->ticks - last.ticks, reading->steady_ns - last.steady_ns);
	if (follow->error_ppm > BS_CLOCK_ERROR_MAX_PPM) {
		follow->uneven++;
		follow->first = last; /* what it did before says nothing any more */
	}
	hz = rate_hz(&follow->first, reading);
	now_ns = bs_clock_scale_ns(&follow->scale, reading->ticks);
	offset_ns = (int64_t)(reading->wall_ns - now_ns);
	if (offset_ns - follow->wall_offset_ns > (int64_t)BS_CLOCK_STEP_NS ||
		follow->wall_offset_ns - offset_ns > (int64_t)BS_CLOCK_STEP_NS)
		follow->wall_steps++;
	follow->wall_offset_ns = offset_ns;
	follow->last = *reading;
	if (hz == 0)
		return false;
	follow->hz = hz;
	ppm = slew_ppm(offset_ns);
	/* fewer ticks to its second, and the clock runs faster */
	hz = (uint64_t)((bs_uint128)hz * PPM / (bs_uint128)(PPM + ppm));
	return bs_clock_scale_init(&follow->scale, hz, reading->ticks, now_ns) == 0;
}
