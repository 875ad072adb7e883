/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the owner of a flow must know of a packet that another lcore had last:
 * that it left, and after what waits; or that it was dropped, even before the
 * owner saw it. Told at once if that is this lcore, else through a ring.
 */
#include "dataplane.h"
#include "lcore.h"

static bool
put(struct bs_lcore *lcore, struct bs_lcore *owner, const struct bs_notice *notice)
{
	return rte_ring_sp_enqueue_elem(owner->notices[lcore->index], (void *)(uintptr_t)notice,
		       sizeof(*notice)) == 0;
}

static void
take(struct bs_lcore *lcore, const struct bs_notice *notice)
{
	const struct bs_departure *left = &notice->left;
	const struct bs_loss *lost = &notice->lost;

	if (!notice->dropped) {
		bs_tracker_stay(lcore->tracker, &left->handle, &left->stay);
		bs_tracker_departed(lcore->tracker, &left->handle, notice->t);
	} else {
		const struct bs_packet packet = {
			.tuple = lost->tuple,
			.hash = lost->hash,
			.direction = lost->direction,
			.seq = lost->seq,
			.payload_len = lost->payload_len,
		};

		bs_tracker_dropped(lcore->tracker, &packet, lost->buffer, lost->reason, notice->t);
	}
}

void
bs_tell_left(struct bs_lcore *lcore, struct bs_lcore *owner, const struct bs_departure *departure,
	uint64_t t)
{
	const struct bs_notice notice = {.t = t, .left = *departure};

	if (owner == lcore)
		take(lcore, &notice);
	else if (!put(lcore, owner, &notice))
		bs_count(&lcore->counters.departures_lost, 1);
}

void
bs_tell_dropped(struct bs_lcore *lcore, struct bs_lcore *owner, const struct bs_packet *packet,
	uint16_t buffer, enum bs_reason reason, uint64_t t)
{
	const struct bs_notice notice = {
		.t = t,
		.dropped = true,
		.lost = {.tuple = packet->tuple,
			.hash = packet->hash,
			.direction = packet->direction,
			.seq = packet->seq,
			.payload_len = packet->payload_len,
			.buffer = buffer,
			.reason = (uint16_t)reason},
	};

	if (packet->parse != BS_PARSE_OK)
		return;
	if (owner == lcore)
		take(lcore, &notice);
	else if (!put(lcore, owner, &notice))
		bs_count(&lcore->counters.drops_untold, 1);
}

void
bs_notices_poll(struct bs_lcore *lcore, unsigned from)
{
	struct bs_notice notices[BS_BURST];
	unsigned n = BS_BURST;

	/* what comes while it takes them has another turn */
	for (unsigned taken = 0; n == BS_BURST && taken < BS_NOTICES; taken += n) {
		n = rte_ring_sc_dequeue_burst_elem(
			lcore->notices[from], notices, sizeof(notices[0]), BS_BURST, NULL);
		for (unsigned i = 0; i < n; i++)
			take(lcore, &notices[i]);
	}
}
