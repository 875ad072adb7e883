/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When did a packet arrive that was found by polling? Between the poll before
 * and this one; the sender's TCP timestamp (RFC 7323) narrows that down: mapped
 * to our clock by the least delay seen of late, it says when the packet would
 * have come on a path without queues. A device's calibrated stamp says it better.
 */
#include "track.h"

#define LEARN_TICKS 64u
/* The floor is the least of the last one to two windows, so that clocks that drift apart by 50 ppm
 * stay within half a millisecond. */
#define FLOOR_WINDOW_NS 10000000000ull

/* Learns the tick of the sender's timestamp clock: 1, 4 or 10 ms are in use (RFC 7323 5.4). */
static void
stamp_learn(struct stamp *stamp, uint32_t tsval, uint64_t t_poll)
{
	static const uint32_t ticks_ns[] = {1000000, 4000000, 10000000};
	uint32_t delta = tsval - stamp->ts_base;
	uint64_t per_tick;

	if (delta < LEARN_TICKS || delta > INT32_MAX || t_poll < stamp->t_base)
		return;
	per_tick = (t_poll - stamp->t_base) / delta;
	for (unsigned i = 0; i < sizeof(ticks_ns) / sizeof(ticks_ns[0]); i++) {
		if (per_tick <= ticks_ns[i] - ticks_ns[i] / 4 ||
			per_tick >= ticks_ns[i] + ticks_ns[i] / 4)
			continue;
		stamp->tick_ns = ticks_ns[i];
		stamp->ts_base = tsval;
		stamp->t_base = stamp->t_window = t_poll;
		stamp->floor_ns = stamp->floor_next_ns = 0;
		return;
	}
}

/*
 * How long before t_poll the packet would have come without queues; false: not
 * known. The base moves with the window: differences stay far from overflow
 * whatever the sender puts into its timestamps.
 */
static bool
stamp_estimate(struct stamp *stamp, uint32_t tsval, uint64_t t_poll, uint64_t *before_poll_ns)
{
	int64_t sent_ns, offset_ns;

	if (stamp->samples == 0) {
		stamp->samples = 1;
		stamp->t_base = t_poll;
		stamp->ts_base = tsval;
		return false;
	}
	if (stamp->tick_ns == 0) {
		stamp_learn(stamp, tsval, t_poll);
		return false;
	}
	sent_ns = (int64_t)(int32_t)(tsval - stamp->ts_base) * stamp->tick_ns;
	offset_ns = (int64_t)(t_poll - stamp->t_base) - sent_ns;
	if (t_poll > stamp->t_window + FLOOR_WINDOW_NS) {
		stamp->floor_ns = t_poll > stamp->t_window + 2 * FLOOR_WINDOW_NS
					  ? offset_ns
					  : stamp->floor_next_ns;
		stamp->floor_next_ns = offset_ns;
		stamp->t_window = t_poll;
		stamp->t_base += (uint64_t)sent_ns;
		stamp->ts_base = tsval;
	}
	if (offset_ns < stamp->floor_ns)
		stamp->floor_ns = offset_ns;
	if (offset_ns < stamp->floor_next_ns)
		stamp->floor_next_ns = offset_ns;
	*before_poll_ns = (uint64_t)(offset_ns - stamp->floor_ns);
	return true;
}

void
arrival_estimate(struct step *step, const struct bs_arrival *arrival)
{
	struct bs_tracked *tracked = step->tracked;
	const struct bs_packet *packet = step->packet;
	struct stamp *stamp = &step->flow->stamp[step->d];
	uint64_t low = arrival->t_low, width, before_poll;

	if (arrival->exact || low >= arrival->t_poll) {
		tracked->t_arrival = arrival->exact ? low : arrival->t_poll;
		tracked->quality = BS_QUALITY_EXACT;
		return;
	}
	/* packets of a flow do not overtake each other on their way to us */
	if (step->flow->t_last > low && step->flow->t_last < arrival->t_poll)
		low = step->flow->t_last;
	if (arrival->t_stamp != 0) {
		tracked->t_arrival = arrival->t_stamp > low ? arrival->t_stamp : low;
		tracked->quality = BS_QUALITY_ESTIMATED;
		tracked->uncertainty_ns = arrival->stamp_uncertainty_ns;
		return;
	}
	width = arrival->t_poll - low;
	if ((packet->tcp_options & BS_TCPOPT_TIMESTAMP) &&
		stamp_estimate(stamp, packet->tsval, arrival->t_poll, &before_poll) &&
		width > stamp->tick_ns) {
		/* the middle of the tick */
		before_poll =
			before_poll > stamp->tick_ns / 2 ? before_poll - stamp->tick_ns / 2 : 0;
		if (before_poll > width)
			before_poll = width;
		tracked->t_arrival = arrival->t_poll - before_poll;
		tracked->quality = BS_QUALITY_ESTIMATED;
		tracked->uncertainty_ns = stamp->tick_ns / 2;
		return;
	}
	tracked->t_arrival = low + width / 2;
	tracked->quality = BS_QUALITY_BOUND;
	tracked->uncertainty_ns = width / 2 > UINT32_MAX ? UINT32_MAX : (uint32_t)(width / 2);
}
