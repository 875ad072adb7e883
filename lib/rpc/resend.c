/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes that were sent again, or came late: what held up the RPCs they are of.
 * A resend of what we let through was lost behind us, unless the receiver says
 * (DSACK, or an ACK too fast, or echoing too old a timestamp, to be for it) that
 * it had the first copy. What fills a hole was lost in front of us, unless it is older than what
 * overtook it.
 */
#include "track.h"

#include <string.h>

#define RTO_MIN_NS 200000000ull /* no less on Linux and BSD (RFC 6298 2.4 says 1 s) */

static void
mark_fill(struct bs_mark *mark, const struct step *step, uint64_t begin)
{
	memset(mark, 0, sizeof(*mark));
	mark->begin = begin;
	mark->end = step->t;
	mark->packet = step->packet->number;
	mark->kind = BS_MARK_RESEND;
	mark->cause = BS_CAUSE_DROP;
	mark->quality = BS_QUALITY_EXACT;
	mark->response = step->d == FROM_SERVICE;
}

/* --- resends of what we have seen ------------------------------------------ */

/* If one of our own buffers dropped bytes of this range, this is their resend. */
static bool
own_drop_ends(struct step *step, const struct rpc *rpc, uint32_t seq, uint32_t end)
{
	bool any = false;

	for (uint32_t at = rpc->marks; at != NONE; at = step->tracker->marks[at].next) {
		struct mark_node *node = &step->tracker->marks[at];

		if (!node->open || node->mark.response != (step->d == FROM_SERVICE) ||
			!seq_before(node->seq_begin, end) || !seq_before(seq, node->seq_end))
			continue;
		node->mark.end = step->t;
		node->mark.packet = step->packet->number;
		if (!seq_before(node->seq_begin, seq))
			node->seq_begin = end;
		else if (!seq_before(end, node->seq_end))
			node->seq_end = seq;
		node->open = seq_before(node->seq_begin, node->seq_end);
		any = true;
	}
	return any;
}

/* Of a whole message the time counts since it was; of a part, since new bytes last came. */
static uint64_t
lost_since(const struct step *step, const struct rpc *rpc)
{
	const unsigned d = step->d;

	if (!rpc->ended[d])
		return step->flow->dir[d].t_progress;
	return rpc->t_departure[d] > rpc->t_last[d] ? rpc->t_departure[d] : rpc->t_last[d];
}

/* The copy that counts is the latest before the ACK. */
static void
later_copy(struct step *step, struct rpc *rpc)
{
	const unsigned d = step->d;

	if (rpc->t_first_copy[d] == 0) {
		rpc->t_first_copy[d] = rpc->t_last[d];
		rpc->t_departure_copy[d] = rpc->t_departure[d];
	}
	rpc->t_last[d] = step->t;
	if (step->tracker->config.own_buffers) {
		own_departs_again(step->tracker, step->flow, rpc, d);
		step->tracked->handle.valid = 1;
	} else {
		rpc->t_departure[d] = step->t;
	}
}

static void
resent(struct step *step, struct rpc *rpc, uint32_t seq, uint32_t end)
{
	struct mark_node *node;
	struct bs_mark mark;

	rpc->retransmissions++;
	if (step->d == TO_SERVICE && rpc->t_first[FROM_SERVICE] != 0)
		return; /* it is being answered: the first copy has arrived */
	if (!own_drop_ends(step, rpc, seq, end)) {
		mark_fill(&mark, step, lost_since(step, rpc));
		mark.buffer = stream_net_buffer(step->d, false);
		node = rpc_mark(step->tracker, rpc, &mark);
		if (node != NULL) {
			node->seq_begin = seq;
			node->seq_end = end;
		}
	}
	if (rpc->ended[step->d])
		later_copy(step, rpc);
}

void
resend_seen(struct step *step, uint32_t seq, uint32_t end)
{
	struct flow *flow = step->flow;
	const struct direction *dir = &flow->dir[step->d];
	struct round_trip *round_trip = &flow->round_trip[step->d];
	const bool arrived = !seq_before(dir->acked, end);
	struct rpc *rpcs[RANGE_RPCS];
	unsigned n = rpc_in_range(step->tracker, flow, step->d, seq, end, rpcs);

	step->tracked->resend = 1;
	count(step->tracker, arrived ? BS_TRACK_SPURIOUS : BS_TRACK_RETRANSMISSIONS, 1);
	if (!arrived) {
		if (seq_before(seq, round_trip->seq))
			round_trip->t_sent = 0; /* Karn: an ACK could be for either copy */
		if (round_trip->t_resend == 0) {
			round_trip->resend_stamped =
				(step->packet->tcp_options & BS_TCPOPT_TIMESTAMP) != 0;
			round_trip->resend_tsval = step->packet->tsval;
		}
		round_trip->t_resend = step->t;
		round_trip->resend_begin = seq;
		round_trip->resend_end = end;
	}
	for (unsigned i = 0; i < n; i++) {
		if (arrived)
			rpcs[i]->duplicates++;
		else if (seq_before(seq, dir->next))
			resent(step, rpcs[i], seq, end);
		else
			rpcs[i]->retransmissions++; /* behind a hole: that is what holds it up */
	}
}

/* --- what filled a hole --------------------------------------------------- */

/*
 * Was the packet in hand sent before what overtook it? Its timestamp says, or
 * its IPv4 ID; where neither does, a resend that nothing can have asked for (no
 * ACK since, no timeout) is none.
 */
static bool
is_older(const struct step *step, const struct chunk *behind)
{
	const struct bs_packet *packet = step->packet;

	if (behind->has_tsval && (packet->tcp_options & BS_TCPOPT_TIMESTAMP) &&
		behind->tsval != packet->tsval)
		return seq_before(packet->tsval, behind->tsval);
	if (packet->tuple.ip_version == 4 && packet->ip_id != behind->ip_id)
		return (int16_t)(packet->ip_id - behind->ip_id) < 0;
	return step->flow->hole[step->d].acks == 0 && step->t < behind->t + RTO_MIN_NS;
}

/* The bytes that came late were sent no later than those behind them. */
static void
first_seen_at(struct step *step, struct rpc *rpc, uint64_t t)
{
	if (step->d == FROM_SERVICE && t < rpc->t_first[TO_SERVICE])
		t = rpc->t_first[TO_SERVICE];
	if (rpc->t_first[step->d] > t && !seq_before(rpc->begin[step->d], step->first_seq))
		rpc->t_first[step->d] = t;
}

/* The message in hand that begins in the packet began no later than t. */
static void
message_seen_at(struct step *step, uint64_t t)
{
	struct direction *dir = &step->flow->dir[step->d];

	if (dir->in_message && !seq_before(dir->message_begin, step->first_seq) &&
		dir->t_message > t)
		dir->t_message = t;
}

bool
resend_missed(struct step *step)
{
	struct missed *missed = &step->flow->missed[step->d];
	const uint32_t end = step->first_seq + step->packet->payload_len;
	struct rpc *rpcs[RANGE_RPCS];
	struct bs_mark mark;
	unsigned n;

	if (missed->t == 0 || !seq_before(missed->seq_begin, end) ||
		!seq_before(step->first_seq, missed->seq_end))
		return false;
	n = rpc_in_range(step->tracker, step->flow, step->d, step->first_seq, end, rpcs);
	count(step->tracker, BS_TRACK_RETRANSMISSIONS, 1);
	message_seen_at(step, missed->t);
	mark_fill(&mark, step, missed->t);
	mark.kind = BS_MARK_OWN_DROP;
	mark.buffer = missed->buffer;
	mark.detail = missed->detail;
	for (unsigned i = 0; i < n; i++) {
		rpc_mark(step->tracker, rpcs[i], &mark);
		rpcs[i]->retransmissions++;
		first_seen_at(step, rpcs[i], missed->t);
	}
	if (seq_before(end, missed->seq_end))
		missed->seq_begin = end;
	else
		missed->t = 0;
	return true;
}

void
resend_filled(struct step *step, const struct chunk *behind)
{
	struct bs_tracker *tracker = step->tracker;
	const bool older = is_older(step, behind);
	struct rpc *rpcs[RANGE_RPCS];
	struct bs_mark mark;
	unsigned n = rpc_in_range(tracker, step->flow, step->d, step->first_seq,
		step->first_seq + step->packet->payload_len, rpcs);

	count(tracker, older ? BS_TRACK_OUT_OF_ORDER : BS_TRACK_RETRANSMISSIONS, 1);
	step->tracked->lost_before = !older;
	message_seen_at(step, behind->t);
	mark_fill(&mark, step, behind->t);
	mark.quality = BS_QUALITY_ESTIMATED;
	mark.buffer = older ? stream_receiver_buffer(step->d) : stream_net_buffer(step->d, true);
	if (older) {
		mark.kind = BS_MARK_DISORDER;
		mark.cause = BS_CAUSE_DISORDER;
	}
	for (unsigned i = 0; i < n; i++) {
		struct mark_node *node = rpc_mark(tracker, rpcs[i], &mark);

		if (older)
			rpcs[i]->reordered++;
		else
			rpcs[i]->retransmissions++;
		if (node != NULL) {
			node->seq_begin = step->first_seq;
			node->seq_end = step->first_seq + step->packet->payload_len;
		}
		first_seen_at(step, rpcs[i], behind->t);
	}
}

/* --- resends for nothing ---------------------------------------------------- */

/* The first copy is the one that counted, if none of the later ones was needed. */
static void
first_copy_counts(struct bs_tracker *tracker, struct rpc *rpc, unsigned d)
{
	for (uint32_t at = rpc->marks; at != NONE; at = tracker->marks[at].next) {
		const struct mark_node *node = &tracker->marks[at];

		if (node->mark.response == (d == FROM_SERVICE) && !node->spurious &&
			(node->mark.kind == BS_MARK_RESEND || node->mark.kind == BS_MARK_OWN_DROP))
			return;
	}
	if (rpc->t_first_copy[d] == 0)
		return;
	rpc->t_last[d] = rpc->t_first_copy[d];
	rpc->t_departure[d] = rpc->t_departure_copy[d];
	rpc->departed[d] = rpc->t_departure_copy[d] != 0;
	rpc->t_first_copy[d] = rpc->t_departure_copy[d] = 0;
	rpc->stay_count[d] = 0;
}

static void
was_spurious(struct step *step, unsigned d, uint32_t begin, uint32_t end)
{
	struct bs_tracker *tracker = step->tracker;
	struct rpc *rpcs[RANGE_RPCS];
	unsigned n = rpc_in_range(tracker, step->flow, d, begin, end, rpcs);
	bool any = false;

	for (unsigned i = 0; i < n; i++) {
		bool found = false;

		for (uint32_t at = rpcs[i]->marks; at != NONE; at = tracker->marks[at].next) {
			struct mark_node *node = &tracker->marks[at];

			if (node->spurious || node->mark.kind != BS_MARK_RESEND ||
				node->mark.response != (d == FROM_SERVICE) ||
				!seq_before(node->seq_begin, end) ||
				!seq_before(begin, node->seq_end))
				continue;
			node->spurious = 1;
			node->mark.cause = BS_CAUSE_CONGESTION;
			node->mark.quality = BS_QUALITY_ESTIMATED;
			found = true;
		}
		if (found)
			first_copy_counts(tracker, rpcs[i], d);
		any |= found;
	}
	if (any)
		count(tracker, BS_TRACK_SPURIOUS, 1);
}

/* RFC 2883 section 4: the first block lies below the ACK, or within the second. */
static bool
has_dsack(const struct bs_packet *packet)
{
	if (packet->sack_count == 0)
		return false;
	if (!seq_before(packet->ack, packet->sack[0].end))
		return true;
	return packet->sack_count > 1 &&
	       !seq_before(packet->sack[0].begin, packet->sack[1].begin) &&
	       !seq_before(packet->sack[1].end, packet->sack[0].end);
}

void
resend_judge(struct step *step, unsigned d)
{
	const struct bs_packet *packet = step->packet;
	struct round_trip *round_trip = &step->flow->round_trip[d];
	bool echoes_older;

	if (has_dsack(packet))
		was_spurious(step, d, packet->sack[0].begin, packet->sack[0].end);
	if (round_trip->t_resend == 0 || seq_before(packet->ack, round_trip->resend_end))
		return;
	/* An ACK of the resend would echo its timestamp (Eifel detection, RFC 3522 3.2, step 4). */
	echoes_older = round_trip->resend_stamped && (packet->tcp_options & BS_TCPOPT_TIMESTAMP) &&
		       seq_before(packet->tsecr, round_trip->resend_tsval);
	/* half the least round trip seen: an ACK of the resend itself cannot be so fast */
	if (echoes_older || step->t < round_trip->t_resend + round_trip->min_ns / 2)
		was_spurious(step, d, round_trip->resend_begin, round_trip->resend_end);
	round_trip->t_resend = 0;
}
