/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happens to the shim of a packet on its way through: taken off what comes
 * from the wire, put on what goes to it, negotiated in the handshake, never to
 * the harm of the packet. Each packet that is left untagged counts for a reason.
 */
#include <rte_mbuf.h>
#include <string.h>

#include "bs_checksum.h"
#include "bs_clock.h"
#include "bs_icmp_edit.h"
#include "bs_tcp_edit.h"
#include "dataplane.h"
#include "lcore.h"
#include "port.h"

#define PEER_REFUSES_NS (600ull * BS_NS_PER_S)
#define SEGMENTS_MAX 64u

static void
count_tag(struct bs_lcore *lcore, enum bs_tag_counter counter)
{
	bs_count(&lcore->counters.tag[counter], 1);
}

/* --- peers that refuse -------------------------------------------------------- */

/* Identity of an address in the table: a 64-bit mix; a clash costs a peer its tags for a while. */
static uint64_t
address_key(const uint8_t address[16])
{
	uint64_t half[2];

	memcpy(half, address, sizeof(half));
	half[0] = (half[0] ^ 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull;
	half[1] = (half[1] ^ half[0] >> 29) * 0x94d049bb133111ebull;
	return half[1] ^ half[1] >> 32;
}

static void
peer_refuses(struct bs_lcore *lcore, const uint8_t address[16], uint64_t t)
{
	uint64_t key = address_key(address);
	struct bs_refusing_peer *peer = &lcore->dataplane->refusing_peers[key % BS_REFUSING_PEERS];

	count_tag(lcore, BS_TAG_PATH_REFUSES);
	__atomic_store_n(&peer->key, key, __ATOMIC_RELAXED);
	__atomic_store_n(&peer->t_until, t + PEER_REFUSES_NS, __ATOMIC_RELAXED);
}

static bool
peer_is_refusing(const struct bs_lcore *lcore, const uint8_t address[16], uint64_t t)
{
	uint64_t key = address_key(address);
	const struct bs_refusing_peer *peer =
		&lcore->dataplane->refusing_peers[key % BS_REFUSING_PEERS];

	return __atomic_load_n(&peer->key, __ATOMIC_RELAXED) == key &&
	       __atomic_load_n(&peer->t_until, __ATOMIC_RELAXED) > t;
}

/* --- edits --------------------------------------------------------------------- */

static bool
mbuf_is_ours(const struct rte_mbuf *mbuf)
{
	return rte_mbuf_refcnt_read(mbuf) == 1 && RTE_MBUF_DIRECT(mbuf);
}

static void
complete_checksum(struct bs_shim_step *step)
{
	struct bs_packet *packet = step->packet;
	struct iovec payload[SEGMENTS_MAX];
	unsigned n = 0;

	payload[n].iov_base = rte_pktmbuf_mtod_offset(step->mbuf, void *, packet->payload);
	payload[n++].iov_len = packet->payload_cap;
	for (struct rte_mbuf *m = step->mbuf->next; m != NULL && n < SEGMENTS_MAX; m = m->next) {
		payload[n].iov_base = rte_pktmbuf_mtod(m, void *);
		payload[n++].iov_len = m->data_len;
	}
	if (bs_checksum_complete(packet, rte_pktmbuf_mtod(step->mbuf, uint8_t *), payload, n) == 0)
		count_tag(step->lcore, BS_TAG_CHECKSUM_COMPLETED);
}

static void
untag(struct bs_shim_step *step)
{
	if (!mbuf_is_ours(step->mbuf) ||
		bs_tcp_untag(step->packet, rte_pktmbuf_mtod(step->mbuf, uint8_t *)) != 0) {
		count_tag(step->lcore, BS_TAG_MALFORMED);
		return;
	}
	rte_pktmbuf_adj(step->mbuf, BS_SHIM_OPTION_BYTES);
	count_tag(step->lcore, BS_TAG_UNTAGGED);
	if (!step->from->trust_shim)
		count_tag(step->lcore, BS_TAG_UNTRUSTED);
}

uint64_t
bs_shim_adopt(const struct bs_port *from, const struct bs_packet *packet)
{
	struct bs_shim shim;

	if (!(packet->tcp_options & BS_TCPOPT_SHIM) || packet->tuple.transport != 6 ||
		!from->trust_shim ||
		bs_shim_option_decode(
			packet->data + packet->shim, packet->caplen - packet->shim, &shim) != 0)
		return 0;
	return shim.rpc_id;
}

/* A SYN or SYN-ACK from the wire: what does the peer offer, and what may the service send back? */
static void
syn_in(struct bs_shim_step *step)
{
	struct bs_packet *packet = step->packet;
	struct bs_tagging *tagging = step->tracked->tagging;
	const uint8_t *peer = packet->tuple.addr[packet->direction];
	const bool announced = packet->tcp_options & BS_TCPOPT_ANNOUNCE;
	const bool always = step->lcore->dataplane->config.shim.tag == BS_SHIM_ALWAYS;

	if (bs_tagging_syn_in(tagging, announced, packet->tcp_flags & BS_TCP_ACK))
		peer_refuses(step->lcore, peer, packet->t_ns);
	if (peer_is_refusing(step->lcore, peer, packet->t_ns))
		tagging->refused = 1;
	if (!mbuf_is_ours(step->mbuf))
		return;
	if (announced && bs_tcp_unannounce(packet, rte_pktmbuf_mtod(step->mbuf, uint8_t *)) == 0)
		rte_pktmbuf_adj(step->mbuf, BS_ANNOUNCE_BYTES);
	if (!tagging->refused && (always || announced) &&
		bs_tcp_mss_lower(packet, rte_pktmbuf_mtod(step->mbuf, uint8_t *), BS_SHIM_OPTION_BYTES) > 0)
		count_tag(step->lcore, BS_TAG_MSS_CLAMPED);
}

static void
syn_out(struct bs_shim_step *step)
{
	struct bs_packet *packet = step->packet;
	struct bs_tagging *tagging = step->tracked->tagging;
	const bool negotiated = step->lcore->dataplane->config.shim.tag == BS_SHIM_NEGOTIATED;
	const uint8_t *peer = packet->tuple.addr[!packet->direction];
	uint8_t *front;

	if (peer_is_refusing(step->lcore, peer, packet->t_ns))
		tagging->refused = 1;
	/* a SYN-ACK only answers a peer that announced */
	if ((packet->tcp_flags & BS_TCP_ACK) && !tagging->peer_announced)
		return;
	if (!bs_tagging_syn_out(tagging, negotiated))
		return;
	if (!mbuf_is_ours(step->mbuf) || rte_pktmbuf_headroom(step->mbuf) < BS_ANNOUNCE_BYTES ||
		bs_tcp_announce_room(packet) != BS_REFUSE_NONE) {
		tagging->we_announced = 0;
		return;
	}
	front = (uint8_t *)rte_pktmbuf_prepend(step->mbuf, BS_ANNOUNCE_BYTES);
	bs_tcp_announce(packet, front);
	count_tag(step->lcore, BS_TAG_ANNOUNCED);
}

/* Why this packet cannot be tagged; BS_TAG_TAGGED if it can. */
static enum bs_tag_counter
tag_verdict(const struct bs_shim_step *step)
{
	const struct bs_packet *packet = step->packet;
	const struct bs_tracked *tracked = step->tracked;
	const bool negotiated = step->lcore->dataplane->config.shim.tag == BS_SHIM_NEGOTIATED;
	const uint32_t frame_max = (uint32_t)step->to->mtu + packet->l3;

	if (packet->payload_len == 0)
		return BS_TAG_NO_PAYLOAD;
	if (tracked->resend)
		return BS_TAG_RESENT;
	if (!tracked->new_data)
		return BS_TAG_UNKNOWN_BOUNDARY;
	if (!bs_tagging_allowed(tracked->tagging, negotiated))
		return BS_TAG_NOT_NEGOTIATED;
	if (tracked->rpc_id == 0)
		return BS_TAG_NO_RPC;
	if (packet->len > frame_max)
		return BS_TAG_GSO;
	if (packet->len + BS_SHIM_OPTION_BYTES > frame_max)
		return BS_TAG_MTU;
	if (!mbuf_is_ours(step->mbuf) || rte_pktmbuf_headroom(step->mbuf) < BS_SHIM_OPTION_BYTES)
		return BS_TAG_SHARED;
	switch (bs_tcp_tag_room(packet)) {
	case BS_REFUSE_NONE:
		return BS_TAG_TAGGED;
	case BS_REFUSE_SIGNED:
		return BS_TAG_SIGNED;
	default:
		return BS_TAG_NO_ROOM;
	}
}

static void
tag(struct bs_shim_step *step)
{
	struct bs_packet *packet = step->packet;
	const struct bs_tracked *tracked = step->tracked;
	const uint32_t begin = packet->seq, end = packet->seq + packet->payload_len;
	const enum bs_tag_counter verdict = tag_verdict(step);
	struct bs_shim shim;

	count_tag(step->lcore, verdict);
	if (verdict == BS_TAG_RESENT && bs_tagging_resent(tracked->tagging, begin, end))
		peer_refuses(step->lcore, packet->tuple.addr[!packet->direction], packet->t_ns);
	if (verdict != BS_TAG_TAGGED)
		return;
	memset(&shim, 0, sizeof(shim));
	shim.version = BS_SHIM_VERSION;
	shim.flags = (uint8_t)((tracked->direction == 1 ? BS_SHIM_RESPONSE : 0) |
			       (tracked->more ? BS_SHIM_MORE : 0));
	shim.class_ = step->lcore->queues[step->to->index][tracked->service]->class_;
	shim.rpc_id = tracked->rpc_id;
	shim.remaining = tracked->remaining;
	bs_tcp_tag(packet, (uint8_t *)rte_pktmbuf_prepend(step->mbuf, BS_SHIM_OPTION_BYTES), &shim);
	bs_tagging_tagged(tracked->tagging, begin, end);
	bs_tracker_tagged(step->lcore->tracker, tracked);
	bs_count(&step->lcore->counters.tag[BS_TAG_BYTES], BS_SHIM_OPTION_BYTES);
}

/* An ACK from the wire: which tagged bytes arrived, and does it answer the SYN-ACK that was resent?
 */
static void
ack_in(struct bs_shim_step *step)
{
	const struct bs_packet *packet = step->packet;
	struct bs_tagging *tagging = step->tracked->tagging;

	for (unsigned i = 0; i < packet->sack_count; i++) {
		if ((int32_t)(packet->sack[i].begin - packet->ack) > 0)
			bs_tagging_sacked(tagging, packet->sack[i].begin, packet->sack[i].end);
	}
	if (bs_tagging_acked(tagging, packet->ack))
		peer_refuses(step->lcore, packet->tuple.addr[packet->direction], packet->t_ns);
}

void
bs_shim_edit(struct bs_shim_step *step)
{
	struct bs_packet *packet = step->packet;
	const bool off = step->lcore->dataplane->config.shim.tag == BS_SHIM_OFF ||
			 !step->lcore->dataplane->config.shim.tcp_option;

	if (packet->l4_checksum_partial && step->from->virtual_peer && mbuf_is_ours(step->mbuf))
		complete_checksum(step);
	if (packet->tuple.transport != 6)
		return;
	if (packet->tcp_options & BS_TCPOPT_SHIM)
		untag(step);
	if (off || !step->tracked->followed)
		return;
	if (packet->tcp_flags & BS_TCP_SYN) {
		if (step->from->is_wire)
			syn_in(step);
		else
			syn_out(step);
		return;
	}
	if (!step->from->is_wire)
		tag(step);
	else if (packet->tcp_flags & BS_TCP_ACK)
		ack_in(step);
}

void
bs_shim_icmp(struct bs_shim_step *step)
{
	const bool negotiated = step->lcore->dataplane->config.shim.tag == BS_SHIM_NEGOTIATED;
	struct bs_icmp_too_big too_big;
	struct bs_tagging *tagging;
	uint8_t *frame = rte_pktmbuf_mtod(step->mbuf, uint8_t *);

	if (!step->from->is_wire || step->lcore->dataplane->config.shim.tag == BS_SHIM_OFF ||
		bs_icmp_too_big_parse(frame, step->mbuf->data_len, &too_big) != 0)
		return;
	tagging = bs_tracker_tagging(step->lcore->tracker, &too_big.tuple);
	if (tagging == NULL || !bs_tagging_allowed(tagging, negotiated) ||
		!mbuf_is_ours(step->mbuf))
		return;
	bs_tagging_too_big(tagging);
	if (bs_icmp_mtu_lower(&too_big, frame, BS_SHIM_OPTION_BYTES) > 0)
		count_tag(step->lcore, BS_TAG_PTB_LOWERED);
}
