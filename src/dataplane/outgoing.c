/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the port that a packet leaves by can take. Drivers drop what they cannot
 * send, silently or never to go on again; so it ends here, under a name.
 */
#include <rte_ethdev.h>

#include "dataplane.h"
#include "lcore.h"
#include "port.h"

/* It ends here, and its flow's owner hears of it. */
static void
end(struct bs_lcore *lcore, struct bs_lcore *owner, struct rte_mbuf *mbuf, const struct bs_port *to,
	enum bs_reason reason)
{
	struct bs_packet packet = {
		.data = rte_pktmbuf_mtod(mbuf, const uint8_t *),
		.caplen = mbuf->data_len,
		.len = mbuf->pkt_len,
	};

	bs_shim_parse(lcore, &packet);
	bs_tell_dropped(lcore, owner, &packet, to->tx_buffer, reason, lcore->t_turn);
	bs_count_ended(lcore, to->peer->index, reason, 1);
	rte_pktmbuf_free(mbuf);
}

/*
 * A driver that sends no chains copies the whole length from the first segment, past its end. One
 * that is no longer than the MTU has room there.
 */
static bool
linearize(struct bs_lcore *lcore, struct rte_mbuf *mbuf)
{
	if (!bs_mbuf_is_ours(mbuf) || rte_pktmbuf_linearize(mbuf) != 0)
		return false;
	bs_count(&lcore->counters.frame[BS_FRAME_LINEARIZED], 1);
	return true;
}

bool
bs_outgoing_fits(struct bs_lcore *lcore, struct rte_mbuf *mbuf, const struct bs_packet *packet,
	const struct bs_port *to)
{
	const uint32_t tags = RTE_MIN(packet->vlan_count, to->free_tags) * BS_VLAN_BYTES;

	if (mbuf->pkt_len <= to->frame_max + tags &&
		(mbuf->nb_segs == 1 || to->sends_chains || linearize(lcore, mbuf)))
		return true;
	end(lcore, lcore, mbuf, to, BS_REASON_TX_TOO_LONG);
	return false;
}

void
bs_outgoing_prepare(struct bs_lcore *lcore, struct bs_egress *egress)
{
	struct rte_mbuf **mbufs = egress->pending;
	unsigned done = 0;

	if (egress->port->tx_checksums == 0)
		return;
	while (done < egress->pending_count) {
		done += rte_eth_tx_prepare(egress->port->id, egress->tx_queue, &mbufs[done],
			(uint16_t)(egress->pending_count - done));
		if (done == egress->pending_count)
			break;
		end(lcore, egress->pending_queue->producer, mbufs[done], egress->port,
			BS_REASON_TX_PREPARE);
		egress->pending_count--;
		for (unsigned i = done; i < egress->pending_count; i++) {
			mbufs[i] = mbufs[i + 1];
			egress->pending_t_in[i] = egress->pending_t_in[i + 1];
		}
	}
}
