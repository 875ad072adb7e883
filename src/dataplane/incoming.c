/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames as drivers hand them up, made into what was on the wire: a chain that is
 * what it says, VLAN tags that hardware or the kernel took out put back, headers
 * in one piece. Runs only for mbufs that are not plain.
 */
#include <rte_ether.h>
#include <rte_mbuf.h>
#include <string.h>

#include "lcore.h"

#define TAG_AT (2u * RTE_ETHER_ADDR_LEN)
#define STRIPPED (RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_QINQ_STRIPPED)

/* A length that the segments do not have must not be walked to: the driver cut it to 16 bits. */
static bool
chain_consistent(const struct rte_mbuf *mbuf)
{
	uint32_t sum = 0;
	unsigned segments = 0;

	for (const struct rte_mbuf *m = mbuf; m != NULL && segments <= mbuf->nb_segs; m = m->next) {
		sum += m->data_len;
		segments++;
	}
	return sum == mbuf->pkt_len && segments == mbuf->nb_segs;
}

bool
bs_incoming_gather(struct bs_lcore *lcore, struct rte_mbuf *mbuf)
{
	const uint32_t want = RTE_MIN(mbuf->pkt_len, BS_HEADERS_BYTES);

	if (mbuf->data_len >= want || !bs_mbuf_is_ours(mbuf) ||
		(uint32_t)mbuf->data_len + rte_pktmbuf_tailroom(mbuf) < want)
		return false;
	while (mbuf->data_len < want) {
		struct rte_mbuf *from = mbuf->next;
		const uint16_t n =
			(uint16_t)RTE_MIN(want - mbuf->data_len, (uint32_t)from->data_len);

		if (rte_mbuf_refcnt_read(from) != 1)
			return false;
		memcpy(rte_pktmbuf_mtod_offset(mbuf, uint8_t *, mbuf->data_len),
			rte_pktmbuf_mtod(from, const uint8_t *), n);
		mbuf->data_len += n;
		from->data_off += n;
		from->data_len -= n;
		if (from->data_len == 0) {
			mbuf->next = from->next;
			mbuf->nb_segs--;
			from->next = NULL;
			rte_pktmbuf_free_seg(from);
		}
	}
	bs_count(&lcore->counters.frame[BS_FRAME_GATHERED], 1);
	return true;
}

static uint8_t *
put_tag(uint8_t *at, uint16_t type, uint16_t tci)
{
	const uint8_t tag[] = {
		(uint8_t)(type >> 8), (uint8_t)type, (uint8_t)(tci >> 8), (uint8_t)tci};

	memcpy(at, tag, sizeof(tag));
	return at + sizeof(tag);
}

/*
 * Of the outer of two tags an mbuf does not say the type: 802.1ad, as the standard has it for two.
 * False: there is no room for the tags, or the bytes are somebody else's.
 */
static bool
restore_vlans(struct bs_lcore *lcore, struct rte_mbuf *mbuf)
{
	const bool outer = mbuf->ol_flags & RTE_MBUF_F_RX_QINQ_STRIPPED;
	const bool inner = mbuf->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED;
	uint8_t *front, *at;

	if (!bs_mbuf_is_ours(mbuf) || mbuf->data_len < TAG_AT)
		return false;
	front = (uint8_t *)rte_pktmbuf_prepend(
		mbuf, (uint16_t)((outer + inner) * sizeof(struct rte_vlan_hdr)));
	if (front == NULL)
		return false;
	memmove(front, front + (outer + inner) * sizeof(struct rte_vlan_hdr), TAG_AT);
	at = front + TAG_AT;
	if (outer)
		at = put_tag(at, RTE_ETHER_TYPE_QINQ, mbuf->vlan_tci_outer);
	if (inner)
		put_tag(at, RTE_ETHER_TYPE_VLAN, mbuf->vlan_tci);
	mbuf->ol_flags &= ~STRIPPED;
	bs_count(&lcore->counters.frame[BS_FRAME_VLAN_RESTORED], 1);
	return true;
}

bool
bs_incoming_mend(struct bs_lcore *lcore, struct rte_mbuf *mbuf, enum bs_reason *reason)
{
	*reason = BS_REASON_BAD_CHAIN;
	if (!chain_consistent(mbuf))
		return false;
	if (!(mbuf->ol_flags & STRIPPED))
		return true;
	*reason = BS_REASON_RUNT;
	if (mbuf->pkt_len < RTE_ETHER_HDR_LEN)
		return false;
	/* without its tag it would leave into another network */
	*reason = BS_REASON_VLAN_LOST;
	if (mbuf->data_len < TAG_AT && !bs_incoming_gather(lcore, mbuf))
		return false;
	return restore_vlans(lcore, mbuf);
}
