/* SPDX-License-Identifier: BSD-3-Clause */
/* See stamp.h. */
#define ALLOW_EXPERIMENTAL_API /* rte_eth_read_clock */

#include <errno.h>
#include <inttypes.h>
#include <rte_ethdev.h>
#include <rte_version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bs_clock.h"
#include "stamp.h"

#define READS 4u
#define HALF_MAX_NS 20000u /* a reading that took longer than twice this is of no use */
#define LEARN_NS (100 * BS_NS_PER_MS)
#define CHECK_NS BS_NS_PER_S
#define PAIRS_TO_LEARN 3u /* two intervals: each rate checks the other */

static int
read_epoch_us(uint16_t port, uint64_t *value)
{
	struct timespec now;

	(void)port;
	clock_gettime(CLOCK_REALTIME, &now);
	*value = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
	return 0;
}

static int
read_epoch_ns(uint16_t port, uint64_t *value)
{
	struct timespec now;

	(void)port;
	clock_gettime(CLOCK_REALTIME, &now);
	*value = (uint64_t)now.tv_sec * BS_NS_PER_S + (uint64_t)now.tv_nsec;
	return 0;
}

/*
 * Drivers that stamp with CLOCK_REALTIME and offer no way to read it; from which version on.
 * net_pcap: microseconds up to the version in which it got one (and went over to nanoseconds).
 */
static const struct {
	const char *driver;
	unsigned since; /* version; the ABI of another is another, so it is the one at run time */
	struct bs_stamp_source source;
} epoch_drivers[] = {
	{"net_pcap", 0, {read_epoch_us, 1000, "CLOCK_REALTIME in us"}},
	{"net_af_packet", RTE_VERSION_NUM(24, 11, 0, 0),
		{read_epoch_ns, 1, "CLOCK_REALTIME in ns"}},
};

struct bs_stamp_source
bs_stamp_source(uint16_t port, const char *driver, bool offload)
{
	const struct bs_stamp_source none = {NULL, 0, "none: the driver gives none"};
	const struct bs_stamp_source unknown = {
		NULL, 0, "none: the driver's clock cannot be read, so its unit is not known"};
	uint64_t value;

	/* whatever else it says before the port is started, there is something to read */
	if (rte_eth_read_clock(port, &value) != -ENOTSUP)
		return (struct bs_stamp_source){rte_eth_read_clock, 0, "the device's clock"};
	for (unsigned i = 0; i < RTE_DIM(epoch_drivers); i++) {
		if (strcmp(driver, epoch_drivers[i].driver) == 0 &&
			RTE_VERSION >= epoch_drivers[i].since)
			return epoch_drivers[i].source;
	}
	return offload ? unknown : none;
}

struct bs_stamp *
bs_stamp_create(uint16_t port, const struct bs_stamp_source *source)
{
	const int field = rte_mbuf_dynfield_lookup(RTE_MBUF_DYNFIELD_TIMESTAMP_NAME, NULL);
	const int bit = rte_mbuf_dynflag_lookup(RTE_MBUF_DYNFLAG_RX_TIMESTAMP_NAME, NULL);
	struct bs_stamp *stamp;

	if (source->read == NULL || field < 0 || bit < 0)
		return NULL;
	stamp = calloc(1, sizeof(*stamp));
	if (stamp == NULL)
		return NULL;
	stamp->port = port;
	stamp->source = *source;
	stamp->field = field;
	stamp->flag = 1ull << bit;
	return stamp;
}

void
bs_stamp_destroy(struct bs_stamp *stamp)
{
	free(stamp);
}

/* Adds a pair, of several readings the one that took least time. False: even that took long. */
static bool
read_pair(struct bs_stamp *stamp)
{
	uint64_t device = 0, t_ns = 0, half_ns = UINT64_MAX;

	for (unsigned i = 0; i < READS; i++) {
		const uint64_t t_before = bs_clock_now_ns();
		uint64_t value, took_ns;

		if (stamp->source.read(stamp->port, &value) != 0)
			return false;
		took_ns = bs_clock_now_ns() - t_before;
		if (took_ns / 2 >= half_ns)
			continue;
		device = value;
		half_ns = took_ns / 2;
		t_ns = t_before + half_ns;
	}
	if (half_ns > HALF_MAX_NS)
		return false;
	if (stamp->count == BS_STAMP_PAIRS) {
		memmove(&stamp->pairs[0], &stamp->pairs[1],
			(BS_STAMP_PAIRS - 1) * sizeof(stamp->pairs[0]));
		stamp->count--;
	}
	stamp->pairs[stamp->count].device = device;
	stamp->pairs[stamp->count].t_ns = t_ns;
	stamp->pairs[stamp->count++].half_ns = half_ns;
	return true;
}

/* The least squares line through the pairs, and how far they lie off it. */
static void
fit(struct bs_stamp *stamp)
{
	double x_mean = 0, y_mean = 0, xx = 0, xy = 0, off_ns = 0;

	for (unsigned i = 0; i < stamp->count; i++) {
		x_mean += (double)(stamp->pairs[i].device - stamp->pairs[0].device) / stamp->count;
		y_mean += (double)(stamp->pairs[i].t_ns - stamp->pairs[0].t_ns) / stamp->count;
	}
	for (unsigned i = 0; i < stamp->count; i++) {
		const double x = (double)(stamp->pairs[i].device - stamp->pairs[0].device) - x_mean;
		const double y = (double)(stamp->pairs[i].t_ns - stamp->pairs[0].t_ns) - y_mean;

		xx += x * x;
		xy += x * y;
	}
	stamp->ns_per_tick = xy / xx;
	stamp->base_ns = y_mean - stamp->ns_per_tick * x_mean;
	for (unsigned i = 0; i < stamp->count; i++) {
		const double x = (double)(stamp->pairs[i].device - stamp->pairs[0].device);
		const double y = (double)(stamp->pairs[i].t_ns - stamp->pairs[0].t_ns);
		const double d = stamp->base_ns + stamp->ns_per_tick * x - y;

		off_ns = RTE_MAX(off_ns, (d < 0 ? -d : d) + (double)stamp->pairs[i].half_ns);
	}
	/* a tick is the least that a stamp tells, unless the clock is known to be coarser */
	stamp->uncertainty_ns =
		(uint64_t)(off_ns + stamp->ns_per_tick) + 1 +
		(stamp->ns_per_tick < (double)stamp->source.grain_ns ? stamp->source.grain_ns : 0);
}

uint64_t
bs_stamp_time(const struct bs_stamp *stamp, uint64_t value)
{
	const double ticks = value >= stamp->pairs[0].device
				     ? (double)(value - stamp->pairs[0].device)
				     : -(double)(stamp->pairs[0].device - value);
	const double ns = stamp->base_ns + ticks * stamp->ns_per_tick;

	/* a stamp of another clock altogether may be anywhere: then it is none */
	if (ns < -9e18 || ns > 9e18 || (ns < 0 && (uint64_t)-ns >= stamp->pairs[0].t_ns))
		return 1;
	return ns < 0 ? stamp->pairs[0].t_ns - (uint64_t)-ns : stamp->pairs[0].t_ns + (uint64_t)ns;
}

/*
 * Does the newest pair lie on what the ones before it say, within 0.1 % of the
 * time since the last and what reading leaves open?
 */
static bool
newest_fits(const struct bs_stamp *stamp)
{
	const unsigned n = stamp->count - 1;
	const uint64_t ticks = stamp->pairs[n].device - stamp->pairs[n - 1].device;
	const uint64_t ns = stamp->pairs[n].t_ns - stamp->pairs[n - 1].t_ns;
	const uint64_t open_ns =
		stamp->pairs[n].half_ns + stamp->pairs[n - 1].half_ns + 2 * stamp->source.grain_ns;
	double expected_ns;

	if (stamp->pairs[n].device <= stamp->pairs[n - 1].device ||
		stamp->pairs[n].t_ns <= stamp->pairs[n - 1].t_ns)
		return false;
	if (stamp->count < PAIRS_TO_LEARN)
		return true; /* nothing to go by yet */
	expected_ns =
		stamp->state == BS_STAMP_GOOD
			? (double)ticks * stamp->ns_per_tick
			: (double)ticks *
				  (double)(stamp->pairs[n - 1].t_ns - stamp->pairs[0].t_ns) /
				  (double)(stamp->pairs[n - 1].device - stamp->pairs[0].device);
	expected_ns -= (double)ns;
	return (expected_ns < 0 ? -expected_ns : expected_ns) <=
	       (double)ns * BS_STAMP_ERROR_MAX_PPM / 1e6 + (double)open_ns;
}

void
bs_stamp_check(struct bs_stamp *stamp, uint64_t t_ns)
{
	if (t_ns < stamp->t_next)
		return;
	stamp->t_next = t_ns + LEARN_NS;
	if (!read_pair(stamp) || stamp->count < 2)
		return;
	if (!newest_fits(stamp)) {
		stamp->refusals++;
		stamp->state = BS_STAMP_LEARNING;
		stamp->pairs[0] = stamp->pairs[stamp->count - 1];
		stamp->count = 1;
		return;
	}
	if (stamp->count < PAIRS_TO_LEARN)
		return;
	fit(stamp);
	stamp->state = BS_STAMP_GOOD;
	stamp->t_next = t_ns + CHECK_NS;
}

void
bs_stamp_text(const struct bs_stamp_source *source, const struct bs_stamp *stamp,
	char text[BS_STAMP_TEXT_BYTES])
{
	if (stamp == NULL)
		snprintf(text, BS_STAMP_TEXT_BYTES, "%s",
			source->read == NULL ? source->text : "none: the driver gives none");
	else if (stamp->state == BS_STAMP_GOOD)
		snprintf(text, BS_STAMP_TEXT_BYTES, "used: %s, within %" PRIu64 " ns", source->text,
			stamp->uncertainty_ns);
	else if (stamp->refusals > 0)
		snprintf(text, BS_STAMP_TEXT_BYTES,
			"refused: %s did not run evenly, %" PRIu64 " times; measured again",
			source->text, stamp->refusals);
	else
		snprintf(text, BS_STAMP_TEXT_BYTES, "not yet: %s is being measured", source->text);
}
