/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What our own buffers did to the packets that completed messages: how long
 * they stayed in each, when they left, which were dropped, which went out with a
 * shim. Told by the dataplane.
 */
#include "track.h"

#include <string.h>

static struct flow *
handle_flow(struct bs_tracker *tracker, const struct bs_track_handle *handle)
{
	struct flow *flow = &tracker->flows[handle->flow];

	return flow->state == FLOW_FREE || flow->generation != handle->generation ? NULL : flow;
}

unsigned
own_stay_marks(const struct bs_stay *stay, bool response, struct bs_mark marks[STAY_PARTS])
{
	const struct {
		uint64_t ns;
		uint8_t cause;
		uint8_t detail;
	} parts[STAY_PARTS] = {
		{stay->stalled, BS_CAUSE_HANG, BS_DETAIL_STALLED},
		{stay->preempted, BS_CAUSE_HANG, BS_DETAIL_PREEMPTED},
		{stay->sleep, BS_CAUSE_HANG, BS_DETAIL_SLEEP},
		{stay->pause, BS_CAUSE_PAUSE, BS_DETAIL_NONE},
		{stay->contention, BS_CAUSE_CONTENTION, BS_DETAIL_NONE},
		{stay->congestion, BS_CAUSE_CONGESTION, BS_DETAIL_NONE},
		{stay->unobserved, BS_CAUSE_UNOBSERVED, BS_DETAIL_NONE},
	};
	uint64_t t = stay->t_in;
	unsigned n = 0;

	for (unsigned i = 0; i < STAY_PARTS; i++) {
		if (parts[i].ns == 0)
			continue;
		memset(&marks[n], 0, sizeof(marks[n]));
		marks[n].begin = t;
		t += parts[i].ns;
		marks[n].end = t;
		marks[n].buffer = stay->buffer;
		marks[n].kind = BS_MARK_OWN_WAIT;
		marks[n].cause = parts[i].cause;
		marks[n].detail = parts[i].detail;
		marks[n].quality = stay->quality;
		marks[n].uncertainty_ns = stay->uncertainty_ns;
		marks[n].response = response;
		if (parts[i].cause == BS_CAUSE_CONTENTION ||
			parts[i].cause == BS_CAUSE_CONGESTION) {
			marks[n].culprit_id = stay->culprit_id;
			marks[n].culprit_kind = stay->culprit_kind;
		}
		n++;
	}
	return n;
}

/* Moves what a packet waited for into marks, so that further waits find room. */
static void
stays_to_marks(struct bs_tracker *tracker, struct rpc *rpc, unsigned d)
{
	struct bs_mark marks[STAY_PARTS];

	for (unsigned i = 0; i < rpc->stay_count[d]; i++) {
		unsigned n = own_stay_marks(&rpc->stay[d][i], d == FROM_SERVICE, marks);

		for (unsigned k = 0; k < n; k++)
			rpc_mark(tracker, rpc, &marks[k]);
	}
	rpc->stay_count[d] = 0;
}

void
own_departs_again(struct bs_tracker *tracker, struct flow *flow, struct rpc *rpc, unsigned d)
{
	stays_to_marks(tracker, rpc, d);
	rpc->t_departure[d] = 0;
	rpc->departed[d] = 0;
	rpc->dropped[d] = 0;
	if (d == TO_SERVICE)
		flow->depart_first = flow->rpc_first;
}

/* Is the packet of this handle the one that completes the RPC's message, or the turn so far? */
static bool
is_carried(const struct flow *flow, const struct rpc *rpc, const struct bs_track_handle *handle)
{
	const unsigned d = handle->direction;

	if (rpc->departed[d] || rpc->dropped[d] || rpc->t_first[d] == 0)
		return false;
	if (rpc->ended[d])
		return !seq_before(handle->seq_end, rpc->end[d]);
	return flow->framer != NULL && flow->framer->ops->pairing == BS_PAIR_BY_TURN &&
	       rpc->end[d] == handle->seq_end;
}

/* RPCs whose message left with the packet, or will: those done, for a response; else by request. */
static unsigned
carried(struct bs_tracker *tracker, const struct flow *flow, const struct bs_track_handle *handle,
	struct rpc *found[WALK_MAX])
{
	const unsigned d = handle->direction;
	const bool response = d == FROM_SERVICE;
	const bool stream = flow->tuple.transport == 6;
	uint32_t at = response ? flow->done_first : flow->depart_first;
	unsigned n = 0;

	for (unsigned i = 0; at != NONE && i + 1 < WALK_MAX; i++) {
		struct rpc *rpc = &tracker->rpcs[at];

		at = response ? rpc->done_next : rpc->next;
		if (is_carried(flow, rpc, handle))
			found[n++] = rpc;
		else if (stream && !rpc->in_parts[d] && rpc->ended[d] &&
			 seq_before(handle->seq_end, rpc->end[d]))
			break; /* and so end all that follow */
	}
	if (response && flow->rpc_open != NONE &&
		is_carried(flow, &tracker->rpcs[flow->rpc_open], handle))
		found[n++] = &tracker->rpcs[flow->rpc_open];
	return n;
}

void
bs_tracker_tagged(struct bs_tracker *tracker, const struct bs_tracked *tracked)
{
	struct rpc *rpc = &tracker->rpcs[tracked->rpc];

	if (rpc->id == tracked->rpc_id)
		rpc->tagged = 1;
}

void
bs_tracker_stay(struct bs_tracker *tracker, const struct bs_track_handle *handle,
	const struct bs_stay *stay)
{
	struct flow *flow = handle_flow(tracker, handle);
	const unsigned d = handle->direction;
	struct rpc *rpcs[WALK_MAX];
	unsigned n = flow == NULL ? 0 : carried(tracker, flow, handle, rpcs);

	for (unsigned i = 0; i < n; i++) {
		/* what an earlier packet completed, which has yet to leave, did not wait with this
		 * one */
		if (rpcs[i]->ended[d] && !seq_before(handle->seq_begin, rpcs[i]->end[d]))
			continue;
		if (rpcs[i]->stay_count[d] == STAYS)
			stays_to_marks(tracker, rpcs[i], d);
		rpcs[i]->stay[d][rpcs[i]->stay_count[d]++] = *stay;
	}
}

/* Word of departures may come late, from another lcore: never earlier than what left arrived. */
void
bs_tracker_departed(struct bs_tracker *tracker, const struct bs_track_handle *handle, uint64_t t_ns)
{
	struct flow *flow = handle_flow(tracker, handle);
	const unsigned d = handle->direction;
	struct rpc *rpcs[WALK_MAX];
	unsigned n = flow == NULL ? 0 : carried(tracker, flow, handle, rpcs);

	if (flow == NULL)
		return;
	for (unsigned i = 0; i < n; i++) {
		rpcs[i]->t_departure[d] = t_ns > rpcs[i]->t_last[d] ? t_ns : rpcs[i]->t_last[d];
		rpcs[i]->departed[d] = rpcs[i]->ended[d];
	}
	while (d == TO_SERVICE && flow->depart_first != NONE &&
		tracker->rpcs[flow->depart_first].departed[d])
		flow->depart_first = tracker->rpcs[flow->depart_first].next;
	rpc_settle(tracker, flow, t_ns);
}

/* A row of packets that the same queue dropped is one mark: true if these bytes only prolong it. */
static bool
drop_goes_on(struct bs_tracker *tracker, const struct rpc *rpc, const struct bs_mark *mark,
	uint32_t seq, uint32_t end)
{
	for (uint32_t at = rpc->marks; at != NONE; at = tracker->marks[at].next) {
		struct mark_node *node = &tracker->marks[at];

		if (node->open && node->seq_end == seq && node->mark.response == mark->response &&
			node->mark.buffer == mark->buffer && node->mark.detail == mark->detail) {
			node->seq_end = end;
			return true;
		}
	}
	return false;
}

/* Bytes that never came here: kept until their resend does. */
static void
note_missed(struct flow *flow, unsigned d, uint32_t seq, uint32_t end, const struct bs_mark *mark)
{
	struct missed *missed = &flow->missed[d];

	if (missed->t == 0 || missed->buffer != mark->buffer) {
		*missed = (struct missed){mark->begin, seq, end, mark->buffer, mark->detail};
		return;
	}
	if (seq_before(seq, missed->seq_begin))
		missed->seq_begin = seq;
	if (seq_before(missed->seq_end, end))
		missed->seq_end = end;
	if (mark->begin < missed->t)
		missed->t = mark->begin;
}

void
bs_tracker_dropped(struct bs_tracker *tracker, const struct bs_packet *packet, uint16_t buffer,
	unsigned reason, uint64_t t_ns)
{
	struct flow *flow = flow_find(tracker, &packet->tuple, packet->hash);
	const uint32_t seq = packet->seq, end = packet->seq + packet->payload_len;
	struct rpc *rpcs[RANGE_RPCS];
	struct mark_node *node;
	struct bs_mark mark;
	unsigned d, n;

	if (flow == NULL || packet->payload_len == 0 || packet->tuple.transport != 6)
		return;
	d = packet->direction != flow->client_end;
	memset(&mark, 0, sizeof(mark));
	mark.begin = mark.end = t_ns;
	mark.buffer = buffer;
	mark.detail = (uint16_t)(BS_DETAIL_FIRST_REASON + reason);
	mark.kind = BS_MARK_OWN_DROP;
	mark.cause = BS_CAUSE_DROP;
	mark.quality = BS_QUALITY_EXACT;
	mark.response = d == FROM_SERVICE;
	if (seq_before(flow->dir[d].next, end) && !hole_covers(tracker, &flow->hole[d], seq, end)) {
		note_missed(flow, d, seq, end, &mark);
		return;
	}
	n = rpc_in_range(tracker, flow, d, seq, end, rpcs);
	for (unsigned i = 0; i < n; i++) {
		if (rpcs[i]->ended[d] && !rpcs[i]->departed[d] && !seq_before(end, rpcs[i]->end[d]))
			rpcs[i]->dropped[d] = 1;
		if (drop_goes_on(tracker, rpcs[i], &mark, seq, end))
			continue;
		node = rpc_mark(tracker, rpcs[i], &mark);
		if (node == NULL)
			continue;
		node->seq_begin = seq;
		node->seq_end = end;
		node->open = 1;
	}
}
