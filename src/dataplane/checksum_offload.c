/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP and UDP checksums that a virtual peer left to hardware that is not there
 * (the field holds the sum of the pseudo header, or the PMD says that data and
 * checksum do not belong together): completed by the port that the packet leaves
 * by where that offers it, else here, over the whole payload.
 *
 * Edits adjust a checksum by what they change, so one that is not complete must
 * be settled before them. For the port it is enough to say so: it sums the packet
 * as it leaves, and the field, which it takes for the sum of the pseudo header, is
 * written after the edits.
 */
#include <rte_mbuf.h>

#include "bs_checksum.h"
#include "dataplane.h"
#include "lcore.h"
#include "port.h"

#define TRANSPORT_TCP 6u
#define TRANSPORT_UDP 17u
#define TCP_CHECKSUM_AT 16u
#define UDP_CHECKSUM_AT 6u
#define IPV6_BYTES 40u

static uint8_t *
checksum_field(const struct bs_shim_step *step)
{
	const struct bs_packet *packet = step->packet;

	return rte_pktmbuf_mtod_offset(step->mbuf, uint8_t *,
		packet->l4 +
			(packet->l4_protocol == TRANSPORT_TCP ? TCP_CHECKSUM_AT : UDP_CHECKSUM_AT));
}

/*
 * What the PMD says of the transport checksum. In a tunnel it is not said of which of the two, so
 * nothing is believed.
 */
static uint64_t
said_by_port(const struct bs_shim_step *step)
{
	return step->packet->geneve != 0 ? RTE_MBUF_F_RX_L4_CKSUM_UNKNOWN
					 : step->mbuf->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;
}

/* Is the checksum yet to be made? A field that looks like the pseudo header's sum may be whole by
 * chance; a device that has checked it knows. */
static bool
is_incomplete(const struct bs_shim_step *step)
{
	const struct bs_packet *packet = step->packet;
	const uint8_t *field;

	if (said_by_port(step) != RTE_MBUF_F_RX_L4_CKSUM_NONE)
		return packet->l4_checksum_partial;
	field = checksum_field(step);
	/* 0 in UDP over IPv4 is no checksum at all (RFC 768) */
	return packet->l4_protocol == TRANSPORT_TCP || packet->tuple.ip_version == 6 ||
	       (field[0] | field[1]) != 0;
}

/* Only the TCP option leaves the headers where a port that sums looks for them. */
static bool
gets_other_carrier(const struct bs_shim_step *step)
{
	const struct bs_config *config = &step->lcore->dataplane->config;
	const enum bs_carrier carrier =
		step->packet->l4_protocol == TRANSPORT_TCP ? config->shim.tcp : config->shim.udp;

	return step->to->is_wire && config->shim.tag != BS_SHIM_OFF && carrier != BS_CARRIER_OFF &&
	       carrier != BS_CARRIER_TCP_OPTION;
}

/*
 * May the port do it? Not all find the transport header behind IPv6 extension headers, or take the
 * length from what is not an IP length (segmentation offload).
 */
static bool
port_can(const struct bs_shim_step *step)
{
	const struct bs_packet *packet = step->packet;
	const uint8_t *ip = packet->data + packet->l3;
	const uint64_t wanted = packet->l4_protocol == TRANSPORT_TCP ? RTE_ETH_TX_OFFLOAD_TCP_CKSUM
								     : RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
	const unsigned ip_bytes = packet->tuple.ip_version == 4 ? (ip[0] & 0xfu) * 4 : IPV6_BYTES;
	const unsigned length_at = packet->tuple.ip_version == 4 ? 2 : 4;

	return (step->to->tx_checksums & wanted) != 0 && !gets_other_carrier(step) &&
	       packet->l3 == BS_ETHER_BYTES + packet->vlan_count * BS_VLAN_BYTES &&
	       packet->l4 == packet->l3 + ip_bytes && (ip[length_at] | ip[length_at + 1]) != 0;
}

static void
complete_here(struct bs_shim_step *step, struct bs_packet *packet)
{
	struct iovec payload[BS_SEGMENTS_MAX];
	unsigned n = 0;

	payload[n].iov_base = rte_pktmbuf_mtod_offset(step->mbuf, void *, packet->payload);
	payload[n++].iov_len = packet->payload_cap;
	for (struct rte_mbuf *m = step->mbuf->next; m != NULL && n < BS_SEGMENTS_MAX; m = m->next) {
		payload[n].iov_base = rte_pktmbuf_mtod(m, void *);
		payload[n++].iov_len = m->data_len;
	}
	if (bs_checksum_complete(packet, rte_pktmbuf_mtod(step->mbuf, uint8_t *), payload, n) == 0)
		bs_count(&step->lcore->counters.tag[BS_TAG_CHECKSUM_COMPLETED], 1);
}

/*
 * The outer checksum of a tunnel is right for a completed inner one already (Linux calls it local
 * checksum offload).
 */
static void
complete_outer(struct bs_shim_step *step)
{
	struct bs_packet *packet = step->packet, outer = *packet;

	if (bs_packet_parse(&outer) != BS_PARSE_OK)
		return;
	complete_here(step, &outer);
	packet->tunnel_checksum_partial = outer.l4_checksum_partial;
}

void
bs_checksum_settle(struct bs_shim_step *step)
{
	struct bs_packet *packet = step->packet;

	/* nobody leaves one to us, or the port has checked it: by chance it looks like one */
	if (!step->from->virtual_peer)
		packet->l4_checksum_partial = packet->tunnel_checksum_partial = 0;
	if (said_by_port(step) == RTE_MBUF_F_RX_L4_CKSUM_GOOD)
		packet->l4_checksum_partial = 0;
	if (!bs_mbuf_is_ours(step->mbuf))
		return;
	if (is_incomplete(step)) {
		if (port_can(step)) {
			step->checksum_by_port = true;
			packet->l4_checksum_partial = 0;
		} else {
			complete_here(step, packet);
		}
	}
	if (packet->tunnel_checksum_partial)
		complete_outer(step);
}

void
bs_checksum_request(struct bs_shim_step *step)
{
	struct rte_mbuf *mbuf = step->mbuf;
	const struct bs_packet *packet = step->packet;
	const bool v4 = packet->tuple.ip_version == 4;
	uint8_t *ip = rte_pktmbuf_mtod_offset(mbuf, uint8_t *, packet->l3);
	uint8_t *field = checksum_field(step);
	uint16_t sum;

	sum = bs_checksum_fold((uint64_t)bs_checksum_sum(ip + (v4 ? 12 : 8), v4 ? 8 : 32) +
			       packet->l4_protocol + packet->payload - packet->l4 +
			       packet->payload_len);
	field[0] = (uint8_t)(sum >> 8);
	field[1] = (uint8_t)sum;
	mbuf->tx_offload = 0;
	mbuf->l2_len = packet->l3;
	mbuf->l3_len = (uint16_t)(packet->l4 - packet->l3);
	mbuf->ol_flags |= (v4 ? RTE_MBUF_F_TX_IPV4 : RTE_MBUF_F_TX_IPV6) |
			  (packet->l4_protocol == TRANSPORT_TCP ? RTE_MBUF_F_TX_TCP_CKSUM
								: RTE_MBUF_F_TX_UDP_CKSUM);
	bs_count(&step->lcore->counters.frame[BS_FRAME_CHECKSUM_BY_PORT], 1);
}
