/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RPC slots: made when a request begins, kept in the order of requests per
 * flow, put out when answered, departed and, over TCP, ACKed. Marks hang on
 * them. Also what a service does: how many RPCs are open at it, and since when
 * it has not given a byte.
 */
#include "track.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WALK_MAX 64u /* RPCs of a flow looked at for one packet */
#define MARKS_PER_RPC 48u

int
rpc_table_init(struct bs_tracker *tracker)
{
	uint32_t n = tracker->rpc_mask + 1;

	tracker->rpc_buckets = malloc(n * sizeof(uint32_t));
	tracker->rpcs = calloc(n, sizeof(struct rpc));
	tracker->marks = malloc(n * sizeof(struct mark_node));
	if (tracker->rpc_buckets == NULL || tracker->rpcs == NULL || tracker->marks == NULL)
		return -ENOMEM;
	memset(tracker->rpc_buckets, 0xff, n * sizeof(uint32_t));
	for (uint32_t i = 0; i < n; i++) {
		tracker->rpcs[i].next = i + 1 < n ? i + 1 : NONE;
		tracker->marks[i].next = i + 1 < n ? i + 1 : NONE;
	}
	tracker->rpc_free = 0;
	tracker->mark_free = 0;
	return 0;
}

void
rpc_table_fini(struct bs_tracker *tracker)
{
	free(tracker->rpc_buckets);
	free(tracker->rpcs);
	free(tracker->marks);
}

static uint32_t *
key_bucket(struct bs_tracker *tracker, uint32_t flow, uint64_t key)
{
	uint64_t mixed = (key ^ ((uint64_t)flow << 32)) * 0x9e3779b97f4a7c15ull;

	return &tracker->rpc_buckets[(mixed >> 32) & tracker->rpc_mask];
}

struct service_state *
service_of(struct bs_tracker *tracker, const struct flow *flow)
{
	return &tracker->services[flow->service];
}

static void
bump(uint64_t *counter)
{
	__atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

struct rpc *
rpc_make(struct step *step, uint64_t key, bool has_key)
{
	struct bs_tracker *tracker = step->tracker;
	struct flow *flow = step->flow;
	const struct direction *dir = &flow->dir[TO_SERVICE];
	uint32_t at = tracker->rpc_free, *bucket;
	struct rpc *rpc;

	if (at == NONE) {
		count(tracker, BS_TRACK_RPCS_REFUSED, 1);
		return NULL;
	}
	rpc = &tracker->rpcs[at];
	tracker->rpc_free = rpc->next;
	memset(rpc, 0, offsetof(struct rpc, label));
	rpc->id = step->shim_id != 0
		? step->shim_id
		: ((uint64_t)tracker->config.node << 48)
			| (((uint64_t)tracker->config.source << 40 | ++tracker->rpc_counter)
				& 0xffffffffffffull);
	rpc->flow = index_of_flow(tracker, flow);
	rpc->marks = NONE;
	rpc->state = RPC_REQUEST;
	rpc->outcome = BS_OUTCOME_COUNT;
	rpc->begin[TO_SERVICE] = dir->message_begin;
	rpc->t_first[TO_SERVICE] = dir->t_message;
	rpc->ack_at_request = step->ack;
	rpc->first_of_flow = flow->rpc_last == NONE && flow->connect_ns != 0;
	rpc->prev = flow->rpc_last;
	rpc->next = NONE;
	if (flow->rpc_last != NONE)
		tracker->rpcs[flow->rpc_last].next = at;
	else
		flow->rpc_first = at;
	flow->rpc_last = at;
	if (flow->rpc_open == NONE)
		flow->rpc_open = at;
	for (unsigned d = 0; d < 2; d++) {
		if (flow->depart_first[d] == NONE)
			flow->depart_first[d] = at;
	}
	rpc->has_key = has_key;
	rpc->key = key;
	if (has_key) {
		bucket = key_bucket(tracker, rpc->flow, key);
		rpc->bucket_next = *bucket;
		*bucket = at;
	}
	__atomic_store_n(&tracker->rpc_count, tracker->rpc_count + 1, __ATOMIC_RELAXED);
	bump(&service_of(tracker, flow)->counters.rpcs);
	count(tracker, BS_TRACK_RPCS, 1);
	return rpc;
}

static void
pending_leave(struct bs_tracker *tracker, struct flow *flow, struct rpc *rpc)
{
	struct service_state *service = service_of(tracker, flow);

	if (!rpc->counted_pending)
		return;
	rpc->counted_pending = 0;
	__atomic_store_n(&service->pending, service->pending - 1, __ATOMIC_RELAXED);
}

/* The first RPC from `at` on that waits for an answer. */
static uint32_t
skip_done(const struct bs_tracker *tracker, uint32_t at)
{
	while (at != NONE && tracker->rpcs[at].state == RPC_DONE)
		at = tracker->rpcs[at].next;
	return at;
}

void
rpc_release(struct bs_tracker *tracker, struct rpc *rpc)
{
	struct flow *flow = &tracker->flows[rpc->flow];
	uint32_t at = index_of_rpc(tracker, rpc), mark = rpc->marks;

	pending_leave(tracker, flow, rpc);
	if (flow->rpc_open == at)
		flow->rpc_open = skip_done(tracker, rpc->next);
	for (unsigned d = 0; d < 2; d++) {
		if (flow->depart_first[d] == at)
			flow->depart_first[d] = rpc->next;
		if (flow->dir[d].rpc == at)
			flow->dir[d].rpc = NONE;
	}
	if (rpc->prev != NONE)
		tracker->rpcs[rpc->prev].next = rpc->next;
	else
		flow->rpc_first = rpc->next;
	if (rpc->next != NONE)
		tracker->rpcs[rpc->next].prev = rpc->prev;
	else
		flow->rpc_last = rpc->prev;
	if (rpc->has_key) {
		uint32_t *link = key_bucket(tracker, rpc->flow, rpc->key);

		while (*link != at)
			link = &tracker->rpcs[*link].bucket_next;
		*link = rpc->bucket_next;
	}
	while (mark != NONE) {
		uint32_t next = tracker->marks[mark].next;

		tracker->marks[mark].next = tracker->mark_free;
		tracker->mark_free = mark;
		mark = next;
	}
	rpc->state = RPC_FREE;
	rpc->next = tracker->rpc_free;
	tracker->rpc_free = at;
	__atomic_store_n(&tracker->rpc_count, tracker->rpc_count - 1, __ATOMIC_RELAXED);
}

struct rpc *
rpc_find_key(struct bs_tracker *tracker, const struct flow *flow, uint64_t key)
{
	uint32_t flow_index = index_of_flow(tracker, flow);
	uint32_t at = *key_bucket(tracker, flow_index, key);
	struct rpc *found = NULL;

	/* newest first in the chain; an ID used again while open answers the oldest */
	for (; at != NONE; at = tracker->rpcs[at].bucket_next) {
		struct rpc *rpc = &tracker->rpcs[at];

		if (rpc->flow == flow_index && rpc->key == key && rpc->state != RPC_DONE)
			found = rpc;
	}
	return found;
}

struct rpc *
rpc_at(struct bs_tracker *tracker, const struct flow *flow, unsigned d, uint32_t seq)
{
	uint32_t at = flow->rpc_last;

	for (unsigned i = 0; at != NONE && i < WALK_MAX; at = tracker->rpcs[at].prev, i++) {
		struct rpc *rpc = &tracker->rpcs[at];

		if (rpc->t_first[d] == 0 || seq_before(seq, rpc->begin[d]))
			continue;
		if (flow->dir[d].rpc == at || (rpc->ended[d] && seq_before(seq, rpc->end[d])))
			return rpc;
		if (flow->framer != NULL && flow->framer->ops->pairing == BS_PAIR_BY_TURN
			&& seq_before(seq, rpc->end[d]))
			return rpc;
	}
	return NULL;
}

struct mark_node *
rpc_mark(struct bs_tracker *tracker, struct rpc *rpc, const struct bs_mark *mark)
{
	uint32_t at = tracker->mark_free;
	struct mark_node *node;

	if (at == NONE || rpc->mark_count == MARKS_PER_RPC) {
		count(tracker, BS_TRACK_MARKS_LOST, 1);
		return NULL;
	}
	node = &tracker->marks[at];
	tracker->mark_free = node->next;
	node->mark = *mark;
	node->seq_begin = node->seq_end = 0;
	node->open = 0;
	node->next = rpc->marks;
	rpc->marks = at;
	rpc->mark_count++;
	return node;
}

static void
request_ended(struct bs_tracker *tracker, struct flow *flow, struct rpc *rpc, uint64_t t)
{
	struct service_state *service = service_of(tracker, flow);

	if (rpc->oneway) {
		rpc->outcome = BS_OUTCOME_ONEWAY;
		rpc->state = RPC_DONE;
		flow->rpc_open = skip_done(tracker, flow->rpc_open);
		return;
	}
	if (rpc->early && rpc->ended[FROM_SERVICE]) {
		rpc->state = RPC_DONE;
		flow->rpc_open = skip_done(tracker, flow->rpc_open);
		return;
	}
	if (rpc->state == RPC_REQUEST)
		rpc->state = rpc->early ? RPC_RESPONSE : RPC_WAITING;
	if (!rpc->counted_pending && !rpc->ended[FROM_SERVICE]) {
		rpc->counted_pending = 1;
		rpc->pending = service->pending;
		if (service->pending == 0)
			__atomic_store_n(&service->t_pending_since, t, __ATOMIC_RELAXED);
		__atomic_store_n(&service->pending, service->pending + 1, __ATOMIC_RELAXED);
	}
}

static void
response_ended(struct bs_tracker *tracker, struct flow *flow, struct rpc *rpc)
{
	uint32_t next;

	pending_leave(tracker, flow, rpc);
	if (rpc->outcome == BS_OUTCOME_COUNT)
		rpc->outcome = BS_OUTCOME_ANSWERED;
	if (!rpc->ended[TO_SERVICE] && rpc->outcome == BS_OUTCOME_ANSWERED)
		return; /* early answer: it goes on with the request */
	rpc->state = RPC_DONE;
	flow->rpc_open = skip_done(tracker, flow->rpc_open);
	next = flow->rpc_open;
	if (flow->framer->ops->pairing == BS_PAIR_BY_ORDER && next != NONE) {
		tracker->rpcs[next].t_earlier_finish = rpc->t_last[FROM_SERVICE];
		tracker->rpcs[next].blocker_id = rpc->id;
	}
}

void
rpc_message_ended(struct step *step, struct rpc *rpc, unsigned d, uint32_t seq_end)
{
	struct bs_tracker *tracker = step->tracker;
	struct flow *flow = step->flow;

	rpc->ended[d] = 1;
	rpc->end[d] = seq_end;
	rpc->bytes[d] = (uint32_t)(seq_end - rpc->begin[d]);
	if (d == TO_SERVICE || flow->framer->ops->pairing != BS_PAIR_BY_TURN)
		rpc->t_last[d] = step->t_release;
	if (!tracker->config.own_buffers) {
		rpc->t_departure[d] = rpc->t_last[d];
		rpc->departed[d] = 1;
	} else if (d == step->d) {
		step->tracked->handle.valid = 1;
	}
	if (d == TO_SERVICE)
		request_ended(tracker, flow, rpc, step->t);
	else
		response_ended(tracker, flow, rpc);
}

static bool
rpc_settled(const struct bs_tracker *tracker, const struct flow *flow, const struct rpc *rpc)
{
	if (rpc->state != RPC_DONE)
		return false;
	if (rpc->outcome == BS_OUTCOME_ONEWAY)
		return rpc->departed[TO_SERVICE];
	if (rpc->outcome != BS_OUTCOME_ANSWERED)
		return true;
	if (tracker->config.own_buffers
		&& !(rpc->departed[FROM_SERVICE] || flow->framer->ops->pairing == BS_PAIR_BY_TURN))
		return false;
	return flow->tuple.transport != 6
		|| !seq_before(flow->dir[FROM_SERVICE].acked, rpc->end[FROM_SERVICE]);
}

void
rpc_settle(struct bs_tracker *tracker, struct flow *flow, uint64_t t)
{
	uint32_t at = flow->rpc_first;

	for (unsigned i = 0; at != NONE && i < WALK_MAX; i++) {
		struct rpc *rpc = &tracker->rpcs[at];

		at = rpc->next;
		if (!rpc_settled(tracker, flow, rpc))
			continue;
		emit_rpc(tracker, flow, rpc, t);
		rpc_release(tracker, rpc);
	}
}

void
rpc_end_all(struct bs_tracker *tracker, struct flow *flow, unsigned outcome, uint64_t t)
{
	while (flow->rpc_first != NONE) {
		struct rpc *rpc = &tracker->rpcs[flow->rpc_first];

		if (flow->turn_answered && flow->rpc_open == flow->rpc_first) {
			rpc->outcome = BS_OUTCOME_ANSWERED;
			rpc->bytes[FROM_SERVICE] =
				(uint32_t)(rpc->end[FROM_SERVICE] - rpc->begin[FROM_SERVICE]);
		}
		if (rpc->outcome == BS_OUTCOME_COUNT)
			rpc->outcome = (uint8_t)outcome;
		emit_rpc(tracker, flow, rpc, t);
		rpc_release(tracker, rpc);
	}
}

/* The service gave a byte: was it silent until now? */
void
service_moved(struct step *step, const struct rpc *mover)
{
	struct service_state *service = service_of(step->tracker, step->flow);
	uint64_t since = service->t_last_move > service->t_pending_since ? service->t_last_move
									 : service->t_pending_since;
	uint32_t first = step->flow->rpc_open;

	if (mover == NULL && first != NONE)
		mover = &step->tracker->rpcs[first];
	if (service->pending > 0 && since != 0
		&& step->t >= since + step->tracker->config.detect_ns[BS_CAUSE_HANG])
		emit_silence(step->tracker, step->flow->service, since, step->t,
			mover == NULL ? 0 : mover->id);
	if (step->t > service->t_last_move)
		__atomic_store_n(&service->t_last_move, step->t, __ATOMIC_RELAXED);
}

/* --- our own buffers ----------------------------------------------------- */

static struct flow *
handle_flow(struct bs_tracker *tracker, const struct bs_track_handle *handle)
{
	struct flow *flow = &tracker->flows[handle->flow];

	return flow->state == FLOW_FREE || flow->generation != handle->generation ? NULL : flow;
}

unsigned
rpc_stay_marks(const struct bs_stay *stay, bool response, struct bs_mark marks[STAY_PARTS])
{
	const struct {
		uint32_t ns;
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
		if (parts[i].cause == BS_CAUSE_CONTENTION || parts[i].cause == BS_CAUSE_CONGESTION) {
			marks[n].culprit_id = stay->culprit_id;
			marks[n].culprit_kind = stay->culprit_kind;
		}
		n++;
	}
	return n;
}

/* Moves what a packet waited for into marks, so that a later copy's waits find room. */
static void
stays_to_marks(struct bs_tracker *tracker, struct rpc *rpc, unsigned d)
{
	struct bs_mark marks[STAY_PARTS];

	for (unsigned i = 0; i < rpc->stay_count[d]; i++) {
		unsigned n = rpc_stay_marks(&rpc->stay[d][i], d == FROM_SERVICE, marks);

		for (unsigned k = 0; k < n; k++)
			rpc_mark(tracker, rpc, &marks[k]);
	}
	rpc->stay_count[d] = 0;
}

void
rpc_departs_again(struct bs_tracker *tracker, struct flow *flow, struct rpc *rpc, unsigned d)
{
	stays_to_marks(tracker, rpc, d);
	rpc->departed[d] = 0;
	rpc->t_departure[d] = 0;
	flow->depart_first[d] = flow->rpc_first;
}

void
bs_tracker_tagged(struct bs_tracker *tracker, const struct bs_tracked *tracked)
{
	struct rpc *rpc = &tracker->rpcs[tracked->rpc];

	if (rpc->id == tracked->rpc_id)
		rpc->tagged = 1;
}

void
bs_tracker_stay(
	struct bs_tracker *tracker, const struct bs_track_handle *handle, const struct bs_stay *stay)
{
	struct flow *flow = handle_flow(tracker, handle);
	unsigned d = handle->direction;
	uint32_t at;

	if (flow == NULL)
		return;
	at = flow->depart_first[d];
	for (unsigned i = 0; at != NONE && i < WALK_MAX; at = tracker->rpcs[at].next, i++) {
		struct rpc *rpc = &tracker->rpcs[at];

		if (!rpc->ended[d] || rpc->departed[d] || seq_before(handle->seq_end, rpc->end[d]))
			continue;
		if (rpc->stay_count[d] == STAYS)
			stays_to_marks(tracker, rpc, d);
		rpc->stay[d][rpc->stay_count[d]++] = *stay;
	}
}

void
bs_tracker_departed(struct bs_tracker *tracker, const struct bs_track_handle *handle, uint64_t t_ns)
{
	struct flow *flow = handle_flow(tracker, handle);
	unsigned d = handle->direction;
	uint32_t at;

	if (flow == NULL)
		return;
	at = flow->depart_first[d];
	for (unsigned i = 0; at != NONE && i < WALK_MAX; at = tracker->rpcs[at].next, i++) {
		struct rpc *rpc = &tracker->rpcs[at];

		if (!rpc->ended[d] && rpc->end[d] == handle->seq_end && rpc->t_first[d] != 0)
			rpc->t_departure[d] = t_ns; /* a turn, still open */
		if (!rpc->departed[d]
			&& (!rpc->ended[d] || seq_before(handle->seq_end, rpc->end[d])))
			continue;
		if (!rpc->departed[d])
			rpc->t_departure[d] = t_ns;
		rpc->departed[d] = 1;
		if (flow->depart_first[d] == at)
			flow->depart_first[d] = rpc->next;
	}
	rpc_settle(tracker, flow, t_ns);
}

void
bs_tracker_dropped(struct bs_tracker *tracker, const struct bs_packet *packet, uint16_t buffer,
	unsigned reason, uint64_t t_ns)
{
	struct flow *flow = flow_find(tracker, &packet->tuple, packet->hash);
	struct mark_node *node;
	struct bs_mark mark;
	struct rpc *rpc;
	unsigned d;

	if (flow == NULL || packet->payload_len == 0 || packet->tuple.transport != 6)
		return;
	d = packet->direction != flow->client_end;
	rpc = rpc_at(tracker, flow, d, packet->seq);
	if (rpc == NULL)
		return;
	memset(&mark, 0, sizeof(mark));
	mark.begin = t_ns;
	mark.end = t_ns;
	mark.buffer = buffer;
	mark.detail = (uint16_t)(BS_DETAIL_FIRST_REASON + reason);
	mark.kind = BS_MARK_OWN_DROP;
	mark.cause = BS_CAUSE_DROP;
	mark.quality = BS_QUALITY_EXACT;
	mark.response = d == FROM_SERVICE;
	node = rpc_mark(tracker, rpc, &mark);
	if (node == NULL)
		return;
	node->seq_begin = packet->seq;
	node->seq_end = packet->seq + packet->payload_len;
	node->open = 1;
}
