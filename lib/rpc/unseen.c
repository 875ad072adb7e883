/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A response that was lost before it came to us: we see no hole, only silence
 * and then its resend, as if the service had been slow. What its sender did in
 * the meantime tells: a packet without payload that stands behind bytes which
 * we never saw, or IP IDs that leave one out.
 */
#include "track.h"

#include <string.h>

#define RTO_MIN_NS 200000000ull /* a lone segment is not sent again sooner (resend.c) */
#define ID_RUN 8u /* IDs in a row after which the sender counts one up for each packet */
#define ID_GAP_MAX 16u
#define MSS_MAX 1460u /* larger payloads are several packets in one */

/* How many IDs were left out. IPv4 only: RFC 6864 lets a sender choose any, so that it counts is
 * learned. */
static unsigned
ids_left_out(struct flow *flow, const struct bs_packet *packet)
{
	uint16_t step = (uint16_t)(packet->ip_id - flow->ip_id_last[FROM_SERVICE]);
	bool counts = flow->ip_id_run >= ID_RUN;

	if (packet->tuple.ip_version != 4 || packet->payload_len > MSS_MAX) {
		flow->ip_id_run = 0;
		return 0;
	}
	if (step == 1 && !counts)
		flow->ip_id_run++;
	else if (step != 1 && (!counts || step == 0 || step > ID_GAP_MAX))
		flow->ip_id_run = 0;
	return counts && step > 1 && step <= ID_GAP_MAX ? step - 1u : 0;
}

void
unseen_look(struct step *step)
{
	struct flow *flow = step->flow;
	const struct bs_packet *packet = step->packet;
	const struct direction *dir = &flow->dir[step->d];

	if (step->d == TO_SERVICE) {
		/* What was lost before new bytes of a request is no answer to them. */
		if (packet->payload_len > 0 &&
			seq_before(dir->high, packet->seq + packet->payload_len))
			flow->unseen = flow->unseen_ids = 0;
		return;
	}
	flow->unseen_ids = (uint8_t)(flow->unseen_ids + ids_left_out(flow, packet));
	if (flow->unseen_ids > ID_GAP_MAX)
		flow->unseen_ids = ID_GAP_MAX;
	if (dir->started && packet->payload_len == 0 && seq_before(dir->high, packet->seq) &&
		!(packet->tcp_flags & (BS_TCP_SYN | BS_TCP_FIN | BS_TCP_RST)))
		flow->unseen = 1;
}

/*
 * When the first copy would have come. If all that is known is that so many
 * packets were lost, it was sent no more timeouts earlier than that, each twice
 * the one before (RFC 6298 5.5), and a quarter for their coarse clock: what
 * passed before was the service's, and one of those lost an ACK.
 */
static uint64_t
first_copy(const struct flow *flow, const struct rpc *rpc, uint64_t t)
{
	const uint64_t due = rpc->t_departure[TO_SERVICE] + flow->round_trip[TO_SERVICE].min_ns;
	uint64_t timeouts = RTO_MIN_NS * ((1ull << flow->unseen_ids) - 1);

	timeouts += timeouts / 4 + flow->round_trip[TO_SERVICE].min_ns +
		    flow->round_trip[FROM_SERVICE].min_ns;
	return flow->unseen || t < due + timeouts ? due : t - timeouts;
}

/* The request was not resent because it was late: the ACK was lost with the response. */
static void
resends_explained(struct bs_tracker *tracker, const struct rpc *rpc)
{
	for (uint32_t at = rpc->marks; at != NONE; at = tracker->marks[at].next) {
		struct mark_node *node = &tracker->marks[at];

		if (node->spurious && !node->mark.response)
			node->mark.end = node->mark.begin;
	}
}

void
unseen_resent(struct step *step)
{
	struct bs_tracker *tracker = step->tracker;
	struct flow *flow = step->flow;
	struct rpc *rpcs[RANGE_RPCS];
	unsigned n;

	if (!(flow->unseen || flow->unseen_ids) || step->d != FROM_SERVICE ||
		step->packet->payload_len == 0)
		return;
	n = rpc_in_range(tracker, flow, FROM_SERVICE, step->first_seq,
		step->first_seq + step->packet->payload_len, rpcs);
	for (unsigned i = 0; i < n; i++) {
		struct rpc *rpc = rpcs[i];
		struct bs_mark mark;

		memset(&mark, 0, sizeof(mark));
		mark.begin = first_copy(flow, rpc, step->t);
		mark.end = step->t;
		if (rpc->t_departure[TO_SERVICE] == 0 || rpc->t_first[FROM_SERVICE] != step->t ||
			mark.end < mark.begin + RTO_MIN_NS)
			continue;
		mark.packet = step->packet->number;
		mark.buffer = stream_net_buffer(FROM_SERVICE, true);
		mark.kind = BS_MARK_RESEND;
		mark.cause = BS_CAUSE_DROP;
		mark.quality = BS_QUALITY_ESTIMATED;
		mark.uncertainty_ns = (uint32_t)(mark.end - mark.begin - RTO_MIN_NS > UINT32_MAX
							 ? UINT32_MAX
							 : mark.end - mark.begin - RTO_MIN_NS);
		mark.response = 1;
		resends_explained(tracker, rpc);
		rpc_mark(tracker, rpc, &mark);
		rpc->retransmissions++;
		count(tracker, BS_TRACK_RETRANSMISSIONS, 1);
	}
	flow->unseen = flow->unseen_ids = 0;
}
