/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happens to the shim of a packet on its way through: taken off what comes
 * in, put on what goes to the wire, negotiated in the handshake, never to the harm
 * of the packet. Each packet that is left untagged counts for a reason. How a shim
 * travels is not known here: that is bs_carriers.
 */
#include <errno.h>
#include <rte_mbuf.h>
#include <string.h>

#include "bs_carrier.h"
#include "bs_clock.h"
#include "bs_icmp_edit.h"
#include "bs_tcp_edit.h"
#include "dataplane.h"
#include "lcore.h"
#include "port.h"

#define PEER_REFUSES_NS (600ull * BS_NS_PER_S)

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

static struct bs_tagging_peer *
datagram_peer(struct bs_lcore *lcore, const uint8_t address[16])
{
	uint64_t key = address_key(address);
	struct bs_tagging_peer *peer = &lcore->tagging_peers[key % BS_TAGGING_PEERS];

	if (peer->key != key)
		*peer = (struct bs_tagging_peer){.key = key};
	return peer;
}

/* --- edits --------------------------------------------------------------------- */

/* Takes all shims off. True if the sender of one is to be believed. */
static bool
untag(struct bs_shim_step *step)
{
	struct bs_packet *packet = step->packet;
	bool taken = false;

	for (unsigned carrier = 1; carrier < BS_CARRIER_COUNT; carrier++) {
		const struct bs_carrier_ops *ops = &bs_carriers[carrier];
		const unsigned bytes = ops->bytes(packet);
		struct bs_shim shim;

		if (ops->read(packet, &shim) == -ENOENT)
			continue;
		if (!bs_mbuf_is_ours(step->mbuf) ||
			ops->untag(packet, rte_pktmbuf_mtod(step->mbuf, uint8_t *)) != 0) {
			count_tag(step->lcore, BS_TAG_MALFORMED);
			continue;
		}
		rte_pktmbuf_adj(step->mbuf, (uint16_t)bytes);
		count_tag(step->lcore, BS_TAG_UNTAGGED);
		if (!step->from->trust_shim)
			count_tag(step->lcore, BS_TAG_UNTRUSTED);
		taken = true;
	}
	return taken && step->from->trust_shim;
}

uint64_t
bs_shim_adopt(const struct bs_port *from, const struct bs_packet *packet)
{
	struct bs_shim shim;

	return from->trust_shim && bs_carriers_read(packet, &shim) == 0 ? shim.rpc_id : 0;
}

void
bs_shim_parse(const struct bs_lcore *lcore, struct bs_packet *packet)
{
	const struct bs_config *config = &lcore->dataplane->config;

	if (config->shim.tcp == BS_CARRIER_GENEVE || config->shim.udp == BS_CARRIER_GENEVE)
		bs_packet_parse_geneve(packet);
	else
		bs_packet_parse(packet);
}

/* How packets of this transport are tagged. */
static enum bs_carrier
carrier_of(const struct bs_shim_step *step, unsigned transport)
{
	const struct bs_config *config = &step->lcore->dataplane->config;

	if (config->shim.tag == BS_SHIM_OFF)
		return BS_CARRIER_OFF;
	return transport == 6 ? config->shim.tcp : config->shim.udp;
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
	const unsigned bytes = bs_carriers[carrier_of(step, 6)].bytes_max;

	if (bs_tagging_syn_in(tagging, announced, packet->tcp_flags & BS_TCP_ACK))
		peer_refuses(step->lcore, peer, packet->t_ns);
	if (peer_is_refusing(step->lcore, peer, packet->t_ns))
		tagging->refused = 1;
	if (!bs_mbuf_is_ours(step->mbuf))
		return;
	if (announced && bs_tcp_unannounce(packet, rte_pktmbuf_mtod(step->mbuf, uint8_t *)) == 0)
		rte_pktmbuf_adj(step->mbuf, BS_ANNOUNCE_BYTES);
	if (!tagging->refused && (always || announced) &&
		bs_tcp_mss_lower(packet, rte_pktmbuf_mtod(step->mbuf, uint8_t *), bytes) > 0)
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
	if (!bs_mbuf_is_ours(step->mbuf) || rte_pktmbuf_headroom(step->mbuf) < BS_ANNOUNCE_BYTES ||
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
tag_verdict(const struct bs_shim_step *step, const struct bs_carrier_ops *carrier)
{
	const struct bs_packet *packet = step->packet;
	const struct bs_tracked *tracked = step->tracked;
	const bool negotiated = step->lcore->dataplane->config.shim.tag == BS_SHIM_NEGOTIATED;
	const uint32_t link = packet->geneve != 0 ? packet->outer_l3 : packet->l3;
	const uint32_t frame_max = (uint32_t)step->to->mtu + link, bytes = carrier->bytes(packet);

	if (packet->payload_len == 0)
		return BS_TAG_NO_PAYLOAD;
	if (tracked->resend || (packet->tuple.transport == 17 &&
				       bs_tagging_is_again(tracked->tagging, tracked->rpc_id)))
		return BS_TAG_RESENT;
	if (!tracked->new_data)
		return BS_TAG_UNKNOWN_BOUNDARY;
	if (!bs_tagging_allowed(tracked->tagging, negotiated))
		return BS_TAG_NOT_NEGOTIATED;
	if (tracked->rpc_id == 0)
		return BS_TAG_NO_RPC;
	if (packet->len > frame_max)
		return BS_TAG_GSO;
	if (packet->len + bytes > frame_max)
		return BS_TAG_MTU;
	if (!bs_mbuf_is_ours(step->mbuf) || rte_pktmbuf_headroom(step->mbuf) < bytes)
		return BS_TAG_SHARED;
	switch (carrier->room(packet)) {
	case BS_REFUSE_NONE:
		return BS_TAG_TAGGED;
	case BS_REFUSE_SIGNED:
		return BS_TAG_SIGNED;
	case BS_REFUSE_OTHER:
		return BS_TAG_NO_TUNNEL;
	case BS_REFUSE_PIECES:
		return BS_TAG_SHARED;
	default:
		return BS_TAG_NO_ROOM;
	}
}

/* Puts the shim on if nothing speaks against it. Returns what did. */
static enum bs_tag_counter
tag(struct bs_shim_step *step)
{
	struct bs_packet *packet = step->packet;
	const struct bs_tracked *tracked = step->tracked;
	const struct bs_carrier_ops *carrier =
		&bs_carriers[carrier_of(step, packet->tuple.transport)];
	const enum bs_tag_counter verdict = tag_verdict(step, carrier);
	const unsigned bytes = carrier->bytes(packet);
	struct bs_shim shim;

	count_tag(step->lcore, verdict);
	if (verdict != BS_TAG_TAGGED)
		return verdict;
	memset(&shim, 0, sizeof(shim));
	shim.version = BS_SHIM_VERSION;
	shim.flags = (uint8_t)((tracked->direction == 1 ? BS_SHIM_RESPONSE : 0) |
			       (tracked->more ? BS_SHIM_MORE : 0));
	shim.class_ = step->lcore->queues[step->to->index][tracked->service]->class_;
	shim.rpc_id = tracked->rpc_id;
	shim.remaining = tracked->remaining;
	carrier->tag(packet, (uint8_t *)rte_pktmbuf_prepend(step->mbuf, (uint16_t)bytes), &shim);
	bs_tracker_tagged(step->lcore->tracker, tracked);
	bs_count(&step->lcore->counters.tag[BS_TAG_BYTES], bytes);
	return verdict;
}

static void
segment_out(struct bs_shim_step *step)
{
	const struct bs_packet *packet = step->packet;
	struct bs_tagging *tagging = step->tracked->tagging;
	const uint32_t begin = packet->seq, end = packet->seq + packet->payload_len;

	switch (tag(step)) {
	case BS_TAG_TAGGED:
		bs_tagging_tagged(tagging, begin, end);
		break;
	case BS_TAG_RESENT:
		if (bs_tagging_resent(tagging, begin, end))
			peer_refuses(
				step->lcore, packet->tuple.addr[!packet->direction], packet->t_ns);
		break;
	default:
		break;
	}
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

/*
 * A datagram, by either port. `trusted`: it brought a shim, from a port that is trusted. That a
 * request comes again is all the evidence there is of a path that loses tagged ones.
 */
static void
datagram(struct bs_shim_step *step, bool trusted)
{
	const struct bs_packet *packet = step->packet;
	const struct bs_tracked *tracked = step->tracked;
	struct bs_tagging *tagging = tracked->tagging;
	const uint8_t *peer = packet->tuple.addr[packet->direction ^ !step->from->is_wire];

	if (packet->payload_len == 0)
		return;
	if (trusted && step->from->is_wire)
		bs_tagging_peer_tags(tagging);
	if (tracked->direction == 0 &&
		bs_tagging_asked(
			tagging, bs_packet_mark(packet), tracked->rpc_id, tracked->resend) &&
		tagging->has_tagged && bs_tagging_peer_again(datagram_peer(step->lcore, peer)))
		peer_refuses(step->lcore, peer, packet->t_ns);
	if (peer_is_refusing(step->lcore, peer, packet->t_ns))
		tagging->refused = 1;
	if (step->from->is_wire || tag(step) != BS_TAG_TAGGED)
		return;
	tagging->has_tagged = 1;
	bs_tagging_peer_tagged(datagram_peer(step->lcore, peer));
}

void
bs_shim_edit(struct bs_shim_step *step)
{
	struct bs_packet *packet = step->packet;
	bool trusted = false;

	if (bs_carrier_any(packet))
		trusted = untag(step);
	if (!step->tracked->followed || carrier_of(step, packet->tuple.transport) == BS_CARRIER_OFF)
		return;
	if (packet->tuple.transport == 17) {
		datagram(step, trusted);
	} else if (packet->tcp_flags & BS_TCP_SYN) {
		if (step->from->is_wire)
			syn_in(step);
		else
			syn_out(step);
	} else if (!step->from->is_wire) {
		segment_out(step);
	} else if (packet->tcp_flags & BS_TCP_ACK) {
		ack_in(step);
	}
}

void
bs_shim_icmp(struct bs_shim_step *step)
{
	const bool negotiated = step->lcore->dataplane->config.shim.tag == BS_SHIM_NEGOTIATED;
	struct bs_icmp_too_big too_big;
	struct bs_tagging *tagging;
	uint8_t *frame = rte_pktmbuf_mtod(step->mbuf, uint8_t *);
	enum bs_carrier carrier;

	if (!step->from->is_wire ||
		bs_icmp_too_big_parse(frame, step->mbuf->data_len, &too_big) != 0)
		return;
	carrier = carrier_of(step, too_big.tuple.transport);
	if (carrier == BS_CARRIER_OFF)
		return;
	tagging = bs_tracker_tagging(step->lcore->tracker, &too_big.tuple);
	if (tagging == NULL || !bs_tagging_allowed(tagging, negotiated) ||
		!bs_mbuf_is_ours(step->mbuf))
		return;
	if (too_big.tuple.transport == 6)
		bs_tagging_too_big(tagging);
	if (bs_icmp_mtu_lower(&too_big, frame, bs_carriers[carrier].bytes_max) > 0)
		count_tag(step->lcore, BS_TAG_PTB_LOWERED);
}
