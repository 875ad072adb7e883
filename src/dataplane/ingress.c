/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way in: polls rx queues, parses a burst, gives packets of other lcores'
 * flows to their owners, and takes its own through tracking and shim to the
 * application queues. What is not understood goes the same way, unchanged.
 */
#include <rte_ethdev.h>
#include <rte_prefetch.h>
#include <string.h>

#include "bs_icmp_edit.h"
#include "dataplane.h"
#include "lcore.h"
#include "port.h"

#define PREFETCH_AHEAD 4u

/* A burst on its way through the lcore. */
struct burst {
	struct bs_port *from;
	struct rte_mbuf *mbufs[BS_BURST];
	struct bs_packet packets[BS_BURST];
	unsigned count;
	uint64_t t_low, t_poll;
	uint64_t hang_ns; /* of the poll gap: the poller was not there */
	uint8_t hang_state;
	const struct bs_drain_log *rx_log; /* NULL: polled by another lcore */
	struct bs_ingress *ingress;	   /* likewise */
	const struct bs_stamp *stamp;	   /* of the device; NULL: none, or looked at already */
	bool may_have_stamps;		   /* by the device, or handed over with the packets */
	uint64_t t_here;	/* when this lcore took it: t_poll, or later if handed over */
	struct bs_stay rx_stay; /* of the last packet asked about; t_out 0: none yet */
	uint64_t waits, wait_ns_sum, wait_ns_max;
};

static void
discard(struct bs_lcore *lcore, const struct bs_port *from, struct rte_mbuf *mbuf,
	enum bs_reason reason)
{
	bs_count_ended(lcore, from->index, reason, 1);
	rte_pktmbuf_free(mbuf);
}

static void
parse_mbuf(const struct bs_lcore *lcore, struct rte_mbuf *mbuf, struct bs_packet *packet)
{
	packet->data = rte_pktmbuf_mtod(mbuf, const uint8_t *);
	packet->caplen = mbuf->data_len;
	packet->len = mbuf->pkt_len;
	packet->hash = 0;
	bs_shim_parse(lcore, packet);
}

/* What is neither TCP nor UDP belongs to a flow if it is a part of one, or quotes one. */
static void
find_flow(struct bs_lcore *lcore, struct bs_packet *packet)
{
	struct bs_icmp_too_big too_big;

	if (packet->parse == BS_PARSE_FRAGMENT) {
		if (bs_fragments_resolve(lcore->fragments, packet))
			return;
		packet->parse = BS_PARSE_FRAGMENT_ALONE;
	}
	packet->hash = 0;
	if (packet->parse == BS_PARSE_ICMP &&
		bs_icmp_too_big_parse(packet->data, packet->caplen, &too_big) == 0)
		packet->hash = bs_tuple_hash(&too_big.tuple);
}

/* Parses; drops what is no frame at all. */
static bool
parse(struct bs_lcore *lcore, const struct burst *burst, struct rte_mbuf *mbuf,
	struct bs_packet *packet)
{
	enum bs_reason reason;

	if (unlikely(!bs_incoming_is_plain(mbuf)) && !bs_incoming_mend(lcore, mbuf, &reason)) {
		discard(lcore, burst->from, mbuf, reason);
		return false;
	}
	packet->t_ns = burst->t_poll;
	packet->number = 0;
	parse_mbuf(lcore, mbuf, packet);
	if (likely(packet->parse == BS_PARSE_OK))
		return true;
	if (packet->parse == BS_PARSE_RUNT) {
		discard(lcore, burst->from, mbuf, BS_REASON_RUNT);
		return false;
	}
	if (packet->parse == BS_PARSE_SNAPPED && bs_incoming_gather(lcore, mbuf))
		parse_mbuf(lcore, mbuf, packet);
	if (packet->parse != BS_PARSE_OK)
		find_flow(lcore, packet);
	return true;
}

/* The payload behind the first segment. */
static unsigned
further_payload(const struct rte_mbuf *mbuf, const struct bs_packet *packet,
	struct bs_piece pieces[BS_SEGMENTS_MAX])
{
	uint32_t left = packet->payload_len - packet->payload_cap;
	unsigned n = 0;

	for (const struct rte_mbuf *m = mbuf->next; m != NULL && left > 0 && n < BS_SEGMENTS_MAX;
		m = m->next) {
		pieces[n].data = rte_pktmbuf_mtod(m, const uint8_t *);
		pieces[n].bytes = RTE_MIN((uint32_t)m->data_len, left);
		left -= pieces[n].bytes;
		n++;
	}
	return n;
}

/* A packet of several segments. Apart, since its pieces take more of the stack than all else. */
static __rte_noinline void
track_chain(struct bs_lcore *lcore, const struct rte_mbuf *mbuf, const struct bs_packet *packet,
	const struct bs_arrival *arrival, struct bs_tracked *tracked)
{
	struct bs_piece pieces[BS_SEGMENTS_MAX];
	unsigned n = further_payload(mbuf, packet, pieces);

	bs_tracker_packet(lcore->tracker, packet, arrival, pieces, n, tracked);
}

/* The wait in the rx ring of a packet that another lcore polled and handed over. */
static void
fill_foreign_rx_stay(struct bs_stay *stay, const struct burst *burst, uint64_t t_arrival)
{
	const uint64_t wait_ns = burst->t_poll - t_arrival;
	const uint64_t hang_ns = RTE_MIN(burst->hang_ns, wait_ns);

	memset(stay, 0, sizeof(*stay));
	stay->t_in = t_arrival;
	stay->t_out = burst->t_poll;
	stay->buffer = burst->from->rx_buffer;
	stay->stalled = burst->hang_state == BS_DRAIN_STALLED ? hang_ns : 0;
	stay->preempted = burst->hang_state == BS_DRAIN_PREEMPTED ? hang_ns : 0;
	stay->sleep = burst->hang_state == BS_DRAIN_SLEEP ? hang_ns : 0;
	stay->contention = wait_ns - hang_ns;
}

static uint32_t
stamp_uncertainty(const struct bs_stamp *stamp)
{
	return (uint32_t)RTE_MIN(stamp->uncertainty_ns, (uint64_t)UINT32_MAX);
}

/* The device's stamp of a packet, if it lies where the packet can have come; else 0. */
static uint64_t
stamped(struct bs_lcore *lcore, const struct burst *burst, const struct rte_mbuf *mbuf)
{
	const uint64_t t = bs_stamp_of(burst->stamp, mbuf);

	if (t == 0)
		return 0;
	if (t + burst->stamp->uncertainty_ns < burst->t_low ||
		t > burst->t_poll + burst->stamp->uncertainty_ns) {
		bs_count(&lcore->counters.frame[BS_FRAME_STAMP_REJECTED], 1);
		return 0;
	}
	bs_count(&lcore->counters.frame[BS_FRAME_STAMPED], 1);
	return RTE_MIN(RTE_MAX(t, burst->t_low), burst->t_poll);
}

static __rte_noinline void
add_stamp(struct bs_lcore *lcore, const struct burst *burst, struct rte_mbuf *mbuf,
	struct bs_arrival *arrival)
{
	if (burst->stamp != NULL) {
		arrival->t_stamp = stamped(lcore, burst, mbuf);
		arrival->stamp_uncertainty_ns = stamp_uncertainty(burst->stamp);
	} else {
		arrival->t_stamp = bs_meta(mbuf)->t_stamp;
		arrival->stamp_uncertainty_ns = bs_meta(mbuf)->stamp_uncertainty_ns;
	}
}

/* What the completing packet of a message waited in the rx ring for. Most of a burst came together.
 */
static void
tell_rx_stay(struct bs_lcore *lcore, struct burst *burst, const struct bs_tracked *tracked)
{
	struct bs_stay *stay = &burst->rx_stay;

	if (stay->t_out == 0 || stay->t_in != tracked->t_arrival) {
		if (burst->rx_log != NULL)
			bs_stay_fill(stay, burst->rx_log, burst->ingress->served,
				burst->ingress->buffer, tracked->t_arrival, burst->t_poll);
		else
			fill_foreign_rx_stay(stay, burst, tracked->t_arrival);
	}
	stay->quality = tracked->quality;
	stay->uncertainty_ns = tracked->uncertainty_ns;
	bs_tracker_stay(lcore->tracker, &tracked->handle, stay);
}

/* What it waited in the handover ring for. */
static void
tell_handover_stay(
	struct bs_lcore *lcore, const struct burst *burst, const struct bs_tracked *tracked)
{
	struct bs_stay stay;

	bs_stay_fill(&stay, lcore->rx_log, BS_DRAIN_OTHER, BS_BUFFER_HANDOVER, burst->t_poll,
		burst->t_here);
	bs_tracker_stay(lcore->tracker, &tracked->handle, &stay);
}

static void
account_rx_waits(struct bs_ingress *ingress, const struct burst *burst)
{
	bs_count(&ingress->waits, burst->waits);
	bs_count(&ingress->wait_ns_sum, burst->wait_ns_sum);
	if (burst->wait_ns_max > ingress->wait_ns_max)
		__atomic_store_n(&ingress->wait_ns_max, burst->wait_ns_max, __ATOMIC_RELAXED);
}

/* Follows a packet, or a fragment of one, with its flow; what it completes is named in its mbuf. */
static void
follow(struct bs_lcore *lcore, struct burst *burst, struct rte_mbuf *mbuf,
	const struct bs_packet *packet, struct bs_tracked *tracked)
{
	struct bs_arrival arrival = {.t_low = burst->t_low, .t_poll = burst->t_poll};
	uint64_t wait_ns;

	if (unlikely(burst->may_have_stamps))
		add_stamp(lcore, burst, mbuf, &arrival);
	if (packet->parse == BS_PARSE_OK)
		arrival.shim_id = bs_shim_adopt(burst->from, packet);
	if (likely(mbuf->nb_segs == 1))
		bs_tracker_packet(lcore->tracker, packet, &arrival, NULL, 0, tracked);
	else
		track_chain(lcore, mbuf, packet, &arrival, tracked);
	if (tracked->handle.valid) {
		bs_meta(mbuf)->handle = tracked->handle;
		mbuf->ol_flags |= bs_mbuf_handle_flag;
		tell_rx_stay(lcore, burst, tracked);
		if (burst->ingress == NULL)
			tell_handover_stay(lcore, burst, tracked);
	}
	if (unlikely(tracked->gap | tracked->lost_before)) {
		struct bs_port_account *account = &lcore->accounts[burst->from->index];

		bs_count(&account->gaps, tracked->gap);
		bs_count(&account->lost_before, tracked->lost_before);
	}
	wait_ns = burst->t_poll - tracked->t_arrival;
	burst->waits++;
	burst->wait_ns_sum += wait_ns;
	if (wait_ns > burst->wait_ns_max)
		burst->wait_ns_max = wait_ns;
}

static void
edit(struct bs_shim_step *step)
{
	if (unlikely(!bs_checksum_looks_whole(step->mbuf, step->packet)))
		bs_checksum_settle(step);
	bs_shim_edit(step);
	if (unlikely(step->checksum_by_port))
		bs_checksum_request(step);
}

/* Follows one packet of this lcore's, edits its shim, and stages it for its way out. */
static void
take(struct bs_lcore *lcore, struct burst *burst, unsigned at)
{
	struct rte_mbuf *mbuf = burst->mbufs[at];
	struct bs_packet *packet = &burst->packets[at];
	struct bs_tracked tracked;
	struct bs_shim_step step = {
		.lcore = lcore,
		.mbuf = mbuf,
		.packet = packet,
		.tracked = &tracked,
		.from = burst->from,
		.to = burst->from->peer,
	};
	unsigned service = BS_SERVICE_OTHER;

	mbuf->ol_flags &= ~(bs_mbuf_handle_flag | RTE_MBUF_F_TX_OFFLOAD_MASK);
	bs_count(&lcore->counters.parse[packet->parse], 1);
	if (packet->parse == BS_PARSE_OK || packet->parse == BS_PARSE_FRAGMENT) {
		follow(lcore, burst, mbuf, packet, &tracked);
		service = tracked.service;
		/* a part of a packet is not edited */
		if (likely(packet->parse == BS_PARSE_OK))
			edit(&step);
	} else if (packet->parse == BS_PARSE_ICMP) {
		bs_shim_icmp(&step);
	}
	if (likely(mbuf->pkt_len <= step.to->frame_max && mbuf->nb_segs == 1) ||
		bs_outgoing_fits(lcore, mbuf, packet, step.to))
		bs_queue_stage(lcore, lcore->queues[step.to->index][service], mbuf);
}

static unsigned
owner_of(const struct bs_lcore *lcore, uint32_t hash)
{
	return (unsigned)(((uint64_t)hash * lcore->dataplane->lcore_count) >> 32);
}

/* Gives a packet to the lcore that owns its flow. */
static void
hand_over(struct bs_lcore *lcore, struct burst *burst, unsigned at, unsigned owner_index)
{
	struct bs_lcore *owner = lcore->dataplane->lcores[owner_index];
	struct rte_mbuf *mbuf = burst->mbufs[at];
	struct bs_meta *meta = bs_meta(mbuf);

	meta->t_low = burst->t_low;
	meta->t_poll = burst->t_poll;
	meta->t_stamp = burst->stamp == NULL ? 0 : stamped(lcore, burst, mbuf);
	meta->stamp_uncertainty_ns = burst->stamp == NULL ? 0 : stamp_uncertainty(burst->stamp);
	meta->hang_ns = burst->hang_ns;
	meta->hang_state = burst->hang_state;
	meta->port = (uint16_t)burst->from->index;
	if (rte_ring_sp_enqueue(owner->handover[lcore->index], mbuf) == 0) {
		bs_count(&lcore->accounts[burst->from->index].handed_over, 1);
		return;
	}
	bs_tell_dropped(lcore, owner, &burst->packets[at], BS_BUFFER_HANDOVER,
		BS_REASON_HANDOVER_FULL, burst->t_here);
	discard(lcore, burst->from, mbuf, BS_REASON_HANDOVER_FULL);
	bs_drops_add(&lcore->handover_drops, BS_REASON_HANDOVER_FULL, 1, burst->t_here);
}

static void
ring_owners(const struct bs_lcore *lcore, uint64_t owners)
{
	for (; owners != 0; owners &= owners - 1)
		bs_lcore_ring(lcore->dataplane->lcores[__builtin_ctzll(owners)]);
}

/* Parses a burst, then takes or hands over each packet. Packets parse() drops leave the burst. */
static void
process(struct bs_lcore *lcore, struct burst *burst, bool may_hand_over)
{
	uint64_t owners = 0; /* that got something, one bit each */
	unsigned kept = 0;

	burst->rx_stay.t_out = 0;
	burst->waits = burst->wait_ns_sum = burst->wait_ns_max = 0;
	for (unsigned i = 0; i < burst->count && i < PREFETCH_AHEAD; i++)
		rte_prefetch0(rte_pktmbuf_mtod(burst->mbufs[i], const void *));
	for (unsigned i = 0; i < burst->count; i++) {
		struct rte_mbuf *mbuf = burst->mbufs[i];

		if (i + PREFETCH_AHEAD < burst->count)
			rte_prefetch0(
				rte_pktmbuf_mtod(burst->mbufs[i + PREFETCH_AHEAD], const void *));
		if (!parse(lcore, burst, mbuf, &burst->packets[kept]))
			continue;
		bs_tracker_prefetch(lcore->tracker, burst->packets[kept].hash);
		burst->mbufs[kept++] = mbuf;
	}
	for (unsigned i = 0; i < kept && i < PREFETCH_AHEAD; i++)
		bs_tracker_prefetch_flow(lcore->tracker, burst->packets[i].hash);
	for (unsigned i = 0; i < kept; i++) {
		unsigned owner = may_hand_over && burst->packets[i].hash != 0
					 ? owner_of(lcore, burst->packets[i].hash)
					 : lcore->index;

		if (i + PREFETCH_AHEAD < kept)
			bs_tracker_prefetch_flow(
				lcore->tracker, burst->packets[i + PREFETCH_AHEAD].hash);
		if (owner == lcore->index) {
			take(lcore, burst, i);
		} else {
			hand_over(lcore, burst, i, owner);
			owners |= 1ull << owner;
		}
	}
	if (burst->ingress != NULL)
		account_rx_waits(burst->ingress, burst);
	ring_owners(lcore, owners);
	bs_queues_flush(lcore, burst->t_here);
}

/* If the poll gap was long, how much of it the lcore was not there. */
static void
explain_gap(struct bs_lcore *lcore, struct burst *burst)
{
	struct bs_wait wait;

	burst->hang_ns = 0;
	if (burst->t_poll - burst->t_low < BS_STALL_NS)
		return;
	bs_drain_wait(lcore->rx_log, burst->ingress->served, burst->t_low, burst->t_poll, &wait);
	burst->hang_state = wait.stalled >= wait.preempted && wait.stalled >= wait.sleep
				    ? BS_DRAIN_STALLED
			    : wait.preempted >= wait.sleep ? BS_DRAIN_PREEMPTED
							   : BS_DRAIN_SLEEP;
	burst->hang_ns = wait.stalled + wait.preempted + wait.sleep;
}

unsigned
bs_ingress_poll(struct bs_lcore *lcore, struct bs_ingress *ingress)
{
	struct burst burst;
	uint64_t t_before = lcore->t_turn, bytes = 0;

	burst.count = rte_eth_rx_burst(ingress->port->id, ingress->rx_queue, burst.mbufs, BS_BURST);
	if (burst.count == 0) {
		ingress->t_short = t_before;
		return 0;
	}
	bs_drain_set(lcore->rx_log, t_before, BS_DRAIN_SERVE, ingress->served);
	burst.from = ingress->port;
	burst.ingress = ingress;
	burst.stamp = ingress->stamp;
	burst.may_have_stamps = ingress->stamp != NULL;
	burst.rx_log = lcore->rx_log;
	burst.t_low = ingress->t_short;
	burst.t_poll = burst.t_here = bs_lcore_now(lcore);
	if (burst.count < BS_BURST)
		ingress->t_short = t_before;
	for (unsigned i = 0; i < burst.count; i++)
		bytes += burst.mbufs[i]->pkt_len;
	bs_count(&ingress->packets, burst.count);
	bs_count(&ingress->bytes, bytes);
	bs_count(&lcore->counters.bursts, 1);
	explain_gap(lcore, &burst);
	process(lcore, &burst, lcore->dataplane->lcore_count > 1);
	bs_lcore_now(lcore);
	return burst.count;
}

unsigned
bs_handover_poll(struct bs_lcore *lcore)
{
	const struct bs_dataplane *dataplane = lcore->dataplane;
	unsigned moved = 0;

	for (unsigned i = 0; i < dataplane->lcore_count; i++) {
		struct rte_mbuf *mbufs[BS_BURST];
		unsigned n, begin = 0;
		uint64_t t_here;

		if (lcore->handover[i] == NULL)
			continue;
		n = rte_ring_sc_dequeue_burst(lcore->handover[i], (void **)mbufs, BS_BURST, NULL);
		t_here = n > 0 ? bs_lcore_now(lcore) : 0;
		moved += n;
		/* what was dropped before these is known before them: they may bring its resend */
		bs_notices_poll(lcore, i);
		/* packets of one burst there are one burst here */
		while (begin < n) {
			const struct bs_meta *meta = bs_meta(mbufs[begin]);
			struct burst burst;
			unsigned end = begin;

			burst.count = 0;
			burst.from = dataplane->port_list[meta->port];
			burst.ingress = NULL;
			burst.stamp = NULL;
			burst.may_have_stamps = true;
			burst.rx_log = NULL;
			burst.t_low = meta->t_low;
			burst.t_poll = meta->t_poll;
			burst.t_here = t_here;
			burst.hang_ns = meta->hang_ns;
			burst.hang_state = meta->hang_state;
			while (end < n && bs_meta(mbufs[end])->t_poll == burst.t_poll &&
				bs_meta(mbufs[end])->port == meta->port)
				burst.mbufs[burst.count++] = mbufs[end++];
			begin = end;
			bs_count(&lcore->accounts[burst.from->index].taken_over, burst.count);
			process(lcore, &burst, false);
		}
	}
	if (moved > 0)
		bs_lcore_now(lcore);
	return moved;
}
