/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RPC slots: made when a request begins, kept in the order of requests per
 * flow, and in a second list once they are done, put out when departed and, over
 * TCP, ACKed. Marks hang on them. Also what a service does: how many RPCs are
 * open at it, and since when it has not given a byte.
 */
#include "track.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Word of a departure may be lost; that it was ACKed long ago tells as much. */
#define DEPARTURE_LOST_NS 100000000ull

/* With the stays of both directions and a blocker, all marks fit a path. */
#define MARKS_PER_RPC (BS_PATH_MAX_MARKS - 2 * STAYS * STAY_PARTS - 1)

/*
 * Which RPCs make room when all slots are taken, and how many slots are looked at
 * for one; if none can go, for how long nobody looks again.
 */
#define EVICT_IDLE_NS 1000000000ull    /* no packet of its flow came for so long */
#define EVICT_SILENT_NS 10000000000ull /* or, of a flow in use, no byte of it */
#define EVICT_LOOKS 64u
#define EVICT_AGAIN_NS 10000000ull

size_t
rpc_table_bytes(uint32_t n)
{
	return n * (sizeof(struct rpc) + sizeof(struct mark_node) + sizeof(uint32_t));
}

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

__extension__ typedef unsigned __int128 uint128;

static uint32_t *
key_bucket(struct bs_tracker *tracker, uint32_t flow, uint64_t key)
{
	/* as tuples are hashed: protocol IDs are of the clients' choice */
	const uint128 mixed = (uint128)(key + bs_tuple_key[0]) * (flow + bs_tuple_key[1]);
	const uint64_t folded = (uint64_t)(mixed >> 64) ^ (uint64_t)mixed;

	return &tracker->rpc_buckets[folded >> 32 & tracker->rpc_mask];
}

struct service_state *
service_of(struct bs_tracker *tracker, const struct flow *flow)
{
	return &tracker->services[flow->service];
}

uint64_t
rpc_new_id(struct bs_tracker *tracker)
{
	return (uint64_t)tracker->config.node << 48 |
	       (((uint64_t)tracker->config.source << 40 | ++tracker->rpc_counter) &
		       0xffffffffffffull);
}

/* The ID that the packet brought, if the message that begins is the first in it; 0: none. */
static uint64_t
brought_id(const struct step *step)
{
	return step->in_first && step->flow->dir[step->d].message_begin == step->first_seq
		       ? step->shim_id
		       : 0;
}

static uint64_t
id_for(struct step *step, struct rpc *rpc)
{
	const uint64_t id = brought_id(step);

	rpc->tagged = id != 0;
	return id != 0 ? id : rpc_new_id(step->tracker);
}

void
rpc_response_label(struct step *step, struct rpc *rpc)
{
	const uint64_t id = brought_id(step);

	if (id == 0)
		return;
	if (!rpc->tagged && !step->tracker->config.own_buffers)
		rpc->id = id;
	rpc->tagged = 1;
}

/* Puts a new RPC behind the others of its flow. */
static void
flow_append(struct bs_tracker *tracker, struct flow *flow, struct rpc *rpc)
{
	const uint32_t at = index_of_rpc(tracker, rpc);
	struct rpc *before = flow->rpc_last == NONE ? NULL : &tracker->rpcs[flow->rpc_last];

	rpc->flow = index_of_flow(tracker, flow);
	rpc->prev = flow->rpc_last;
	rpc->next = NONE;
	if (before != NULL) {
		if (before->state != RPC_DONE && before->t_first[FROM_SERVICE] == 0 &&
			before->ack_at_request == rpc->ack_at_request)
			flow->pipelined = 1;
		before->next = at;
	} else {
		flow->rpc_first = at;
	}
	flow->rpc_last = at;
	if (flow->rpc_open == NONE)
		flow->rpc_open = at;
	if (flow->depart_first == NONE)
		flow->depart_first = at;
	flow->rpc_count++;
	rpc->first_of_flow = !flow->rpc_seen;
	flow->rpc_seen = 1;
	rpc->gap_before = flow->request_gap;
	rpc->refused_before = flow->refused;
	flow->request_gap = 0;
	flow->refused = 0;
}

void
rpc_no_longer_pending(struct bs_tracker *tracker, struct rpc *rpc)
{
	struct flow *flow = &tracker->flows[rpc->flow];
	struct service_state *service = service_of(tracker, flow);

	if (!rpc->counted_pending)
		return;
	rpc->counted_pending = 0;
	__atomic_store_n(&service->pending, service->pending - 1, __ATOMIC_RELAXED);
	__atomic_store_n(&flow->pending, flow->pending - 1, __ATOMIC_RELAXED);
	if (flow->pending == 0)
		__atomic_store_n(
			&service->waiting_flows, service->waiting_flows - 1, __ATOMIC_RELAXED);
}

static void
rpc_is_pending(struct bs_tracker *tracker, struct flow *flow, struct rpc *rpc)
{
	struct service_state *service = service_of(tracker, flow);

	rpc->counted_pending = 1;
	__atomic_store_n(&service->pending, service->pending + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&flow->pending, flow->pending + 1, __ATOMIC_RELAXED);
	if (flow->pending > 1)
		return;
	__atomic_store_n(&service->waiting_flows, service->waiting_flows + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&service->waiting[service->waiting_next++ % BS_TRACKER_WAITING],
		index_of_flow(tracker, flow), __ATOMIC_RELAXED);
}

/* The first RPC from `at` on that waits for an answer. */
static uint32_t
skip_done(const struct bs_tracker *tracker, uint32_t at)
{
	while (at != NONE && tracker->rpcs[at].state == RPC_DONE)
		at = tracker->rpcs[at].next;
	return at;
}

/* No more will come of it but ACKs, copies and its departure. */
static void
rpc_done(struct bs_tracker *tracker, struct rpc *rpc)
{
	struct flow *flow = &tracker->flows[rpc->flow];
	const uint32_t at = index_of_rpc(tracker, rpc);

	rpc_no_longer_pending(tracker, rpc);
	if (rpc->oneway == BS_ONEWAY_UNLESS_ANSWERED && rpc->ended[TO_SERVICE])
		flow->quiet_open--;
	rpc->state = RPC_DONE;
	flow->rpc_open = skip_done(tracker, flow->rpc_open);
	rpc->done_prev = flow->done_last;
	rpc->done_next = NONE;
	if (flow->done_last != NONE)
		tracker->rpcs[flow->done_last].done_next = at;
	else
		flow->done_first = at;
	flow->done_last = at;
}

void
rpc_give_up(struct bs_tracker *tracker, struct rpc *rpc, unsigned outcome)
{
	struct flow *flow = &tracker->flows[rpc->flow];

	if (rpc->state == RPC_DONE)
		return;
	rpc->outcome = (uint8_t)outcome;
	for (unsigned d = 0; d < 2; d++) {
		if (flow->dir[d].rpc == index_of_rpc(tracker, rpc))
			flow->dir[d].rpc = NONE;
	}
	rpc_done(tracker, rpc);
}

void
rpc_quiet_over(struct bs_tracker *tracker, struct flow *flow, uint32_t until)
{
	uint32_t at = flow->rpc_open;

	for (unsigned i = 0; i < WALK_MAX && flow->quiet_open > 0 && at != until; i++) {
		struct rpc *rpc = &tracker->rpcs[at];

		if (rpc_is_quiet(rpc)) {
			rpc->outcome = BS_OUTCOME_ONEWAY;
			rpc_done(tracker, rpc);
			if (until == NONE)
				return;
		}
		at = rpc->next;
		if (at == NONE)
			return;
	}
}

static void
unlink_done(struct bs_tracker *tracker, struct flow *flow, const struct rpc *rpc)
{
	if (rpc->done_prev != NONE)
		tracker->rpcs[rpc->done_prev].done_next = rpc->done_next;
	else
		flow->done_first = rpc->done_next;
	if (rpc->done_next != NONE)
		tracker->rpcs[rpc->done_next].done_prev = rpc->done_prev;
	else
		flow->done_last = rpc->done_prev;
}

static void
unlink_flow(struct bs_tracker *tracker, struct flow *flow, const struct rpc *rpc)
{
	const uint32_t at = index_of_rpc(tracker, rpc);

	if (flow->rpc_open == at)
		flow->rpc_open = skip_done(tracker, rpc->next);
	if (flow->depart_first == at)
		flow->depart_first = rpc->next;
	for (unsigned d = 0; d < 2; d++) {
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
	flow->rpc_count--;
}

static void
rpc_release(struct bs_tracker *tracker, struct rpc *rpc)
{
	struct flow *flow = &tracker->flows[rpc->flow];
	uint32_t at = index_of_rpc(tracker, rpc), mark = rpc->marks;

	rpc_no_longer_pending(tracker, rpc);
	if (rpc->state == RPC_DONE)
		unlink_done(tracker, flow, rpc);
	unlink_flow(tracker, flow, rpc);
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

/* What an RPC that ends before its time came to, if that is not decided: `outcome`. */
static void
decide_outcome(struct bs_tracker *tracker, struct flow *flow, struct rpc *rpc, unsigned outcome)
{
	if (flow->turn_answered && flow->rpc_open == index_of_rpc(tracker, rpc)) {
		rpc->outcome = BS_OUTCOME_ANSWERED;
		rpc->bytes[FROM_SERVICE] =
			(uint32_t)(rpc->end[FROM_SERVICE] - rpc->begin[FROM_SERVICE]);
		flow->turn_answered = 0;
	}
	if (rpc->outcome == BS_OUTCOME_COUNT)
		rpc->outcome = rpc_is_quiet(rpc) ? BS_OUTCOME_ONEWAY : (uint8_t)outcome;
}

/* --- room for others ------------------------------------------------------- */

/* One connection must not take the slots of all others. */
static bool
has_share(const struct bs_tracker *tracker, const struct flow *flow)
{
	return flow->rpc_count <= tracker->rpc_mask / 2;
}

static bool
has_room(const struct bs_tracker *tracker, const struct flow *flow)
{
	return tracker->rpc_free != NONE && has_share(tracker, flow);
}

/* Is nothing to be expected of an RPC? The packet in hand does not count for its flow yet. */
static bool
is_abandoned(const struct step *step, const struct rpc *rpc)
{
	const struct bs_tracker *tracker = step->tracker;
	const struct flow *flow = &tracker->flows[rpc->flow];
	const uint32_t at = index_of_rpc(tracker, rpc);
	uint64_t t_last = 0;

	if (flow != step->flow && step->t > flow->t_last && step->t - flow->t_last >= EVICT_IDLE_NS)
		return true;
	for (unsigned d = 0; d < 2; d++) {
		const struct direction *dir = &flow->dir[d];
		const uint64_t t = dir->rpc == at ? dir->t_progress : rpc->t_last[d];

		t_last = t > t_last ? t : t_last;
		t_last = rpc->t_first[d] > t_last ? rpc->t_first[d] : t_last;
	}
	return step->t > t_last && step->t - t_last >= EVICT_SILENT_NS;
}

void
rpc_refused(struct flow *flow, unsigned oneway)
{
	flow->rpc_seen = 1;
	if (oneway == 0)
		flow->refused++;
	else if (oneway == BS_ONEWAY_UNLESS_ANSWERED)
		flow->request_gap = flow->pipelined = 1;
}

/*
 * The answer to an RPC that is given up may yet come. By order it must not be
 * taken for that of the next: which one is not followed is told to that.
 */
static void
keep_place(struct bs_tracker *tracker, struct flow *flow, const struct rpc *rpc)
{
	const uint32_t at = skip_done(tracker, rpc->next);
	struct rpc *next = at == NONE ? NULL : &tracker->rpcs[at];
	uint32_t *refused = next != NULL ? &next->refused_before : &flow->refused;
	uint8_t *gap = next != NULL ? &next->gap_before : &flow->request_gap;

	if (rpc->t_first[FROM_SERVICE] != 0 || rpc->has_key)
		return;
	*refused += rpc->refused_before + (rpc->oneway == 0);
	*gap |= rpc->gap_before;
	if (rpc->oneway == BS_ONEWAY_UNLESS_ANSWERED)
		*gap = flow->pipelined = 1;
}

/* Puts out an RPC before its time, so that others find room. */
static void
rpc_put_out(struct bs_tracker *tracker, struct rpc *rpc, uint64_t t)
{
	struct flow *flow = &tracker->flows[rpc->flow];

	if (rpc->state != RPC_DONE) {
		keep_place(tracker, flow, rpc);
		decide_outcome(tracker, flow, rpc, BS_OUTCOME_IN_PROGRESS);
		rpc_done(tracker, rpc);
	}
	emit_rpc(tracker, flow, rpc, t);
	rpc_release(tracker, rpc);
	count(tracker, BS_TRACK_RPCS_EVICTED, 1);
}

/*
 * Makes room for an RPC of the flow in hand: in its share if it has used that up,
 * else anywhere. The hand goes round, so that of those that nobody answers, which
 * took slot by slot, the oldest is found first.
 */
static bool
rpc_evict(const struct step *step)
{
	struct bs_tracker *tracker = step->tracker;
	const bool own = !has_share(tracker, step->flow);

	if (!own && step->t - tracker->t_rpc_evict_failed < EVICT_AGAIN_NS)
		return false;
	for (unsigned i = 0; i < (own ? 1 : EVICT_LOOKS); i++) {
		struct rpc *rpc = &tracker->rpcs[own ? step->flow->rpc_first : tracker->rpc_hand];

		tracker->rpc_hand = (tracker->rpc_hand + !own) & tracker->rpc_mask;
		if (is_abandoned(step, rpc)) {
			rpc_put_out(tracker, rpc, step->t);
			return true;
		}
	}
	if (!own)
		tracker->t_rpc_evict_failed = step->t;
	return false;
}

struct rpc *
rpc_make(struct step *step, uint64_t key, bool has_key)
{
	struct bs_tracker *tracker = step->tracker;
	struct flow *flow = step->flow;
	const struct direction *dir = &flow->dir[TO_SERVICE];
	uint32_t at, *bucket;
	struct rpc *rpc;

	if (!has_room(tracker, flow) && !rpc_evict(step)) {
		count(tracker, BS_TRACK_RPCS_REFUSED, 1);
		return NULL;
	}
	at = tracker->rpc_free;
	rpc = &tracker->rpcs[at];
	tracker->rpc_free = rpc->next;
	memset(rpc, 0, offsetof(struct rpc, label));
	rpc->id = id_for(step, rpc);
	rpc->marks = NONE;
	rpc->done_prev = rpc->done_next = NONE;
	rpc->state = RPC_REQUEST;
	rpc->outcome = BS_OUTCOME_COUNT;
	rpc->begin[TO_SERVICE] = dir->message_begin;
	rpc->t_first[TO_SERVICE] = dir->t_message;
	rpc->ack_at_request = step->ack;
	flow_append(tracker, flow, rpc);
	if (rpc->first_of_flow)
		flow_asked(tracker, flow, step->t);
	rpc->has_key = has_key;
	rpc->key = key;
	if (has_key) {
		bucket = key_bucket(tracker, rpc->flow, key);
		rpc->bucket_next = *bucket;
		*bucket = at;
	}
	__atomic_store_n(&tracker->rpc_count, tracker->rpc_count + 1, __ATOMIC_RELAXED);
	add(&service_of(tracker, flow)->counters.rpcs, 1);
	count(tracker, BS_TRACK_RPCS, 1);
	return rpc;
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

/* Where the bytes of direction d that are an RPC's end, as far as they came. */
static uint32_t
end_so_far(const struct bs_tracker *tracker, const struct flow *flow, const struct rpc *rpc,
	unsigned d)
{
	const bool turn = flow->framer != NULL && flow->framer->ops->pairing == BS_PAIR_BY_TURN;

	if (flow->dir[d].rpc == index_of_rpc(tracker, rpc))
		return flow->dir[d].next;
	return rpc->ended[d] || turn ? rpc->end[d] : rpc->begin[d];
}

unsigned
rpc_in_range(struct bs_tracker *tracker, const struct flow *flow, unsigned d, uint32_t begin,
	uint32_t end, struct rpc *found[RANGE_RPCS])
{
	uint32_t at = flow->rpc_last;
	unsigned n = 0;

	for (unsigned i = 0; at != NONE && i < WALK_MAX && n < RANGE_RPCS; i++) {
		struct rpc *rpc = &tracker->rpcs[at];

		at = rpc->prev;
		if (rpc->t_first[d] != 0 && seq_before(rpc->begin[d], end) &&
			seq_before(begin, end_so_far(tracker, flow, rpc, d)))
			found[n++] = rpc;
	}
	return n;
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
	node->open = node->spurious = 0;
	node->next = rpc->marks;
	rpc->marks = at;
	rpc->mark_count++;
	return node;
}

static void
request_ended(struct step *step, struct rpc *rpc)
{
	struct flow *flow = step->flow;
	struct service_state *service = service_of(step->tracker, flow);

	if (rpc->state == RPC_DONE)
		return;
	if (rpc->oneway == BS_ONEWAY) {
		rpc->outcome = BS_OUTCOME_ONEWAY;
		flow->request_gap |=
			rpc->gap_before; /* what is missing is missing before the next */
		flow->refused += rpc->refused_before;
		rpc_done(step->tracker, rpc);
		return;
	}
	if (rpc->oneway == BS_ONEWAY_UNLESS_ANSWERED && flow->quiet_open++ == QUIET_MAX)
		rpc_quiet_over(step->tracker, flow, NONE);
	if (rpc->ended[FROM_SERVICE]) {
		rpc_done(step->tracker, rpc);
		return;
	}
	if (rpc->state == RPC_REQUEST)
		rpc->state = rpc->early ? RPC_RESPONSE : RPC_WAITING;
	if (rpc->oneway)
		return; /* the service does not owe an answer */
	if (rpc->counted_pending || flow->turn_answered)
		return;
	rpc->pending = service->pending;
	if (service->pending == 0)
		__atomic_store_n(&service->t_pending_since, step->t_release, __ATOMIC_RELAXED);
	rpc_is_pending(step->tracker, flow, rpc);
}

static void
response_ended(struct step *step, struct rpc *rpc)
{
	struct bs_tracker *tracker = step->tracker;
	struct flow *flow = step->flow;

	if (rpc->state == RPC_DONE)
		return;
	rpc_no_longer_pending(tracker, rpc);
	if (rpc->outcome == BS_OUTCOME_COUNT)
		rpc->outcome = BS_OUTCOME_ANSWERED;
	if (!rpc->ended[TO_SERVICE])
		return; /* early answer: it goes on with the request */
	rpc_done(tracker, rpc);
	if (flow->framer->ops->pairing == BS_PAIR_BY_ORDER && flow->rpc_open != NONE) {
		struct rpc *next = &tracker->rpcs[flow->rpc_open];

		next->t_earlier_finish = rpc->t_last[FROM_SERVICE];
		next->blocker_id = rpc->id;
	}
}

void
rpc_message_ended(struct step *step, struct rpc *rpc, unsigned d, uint32_t seq_end)
{
	struct bs_tracker *tracker = step->tracker;
	struct flow *flow = step->flow;
	const bool turn_over = flow->framer->ops->pairing == BS_PAIR_BY_TURN && d == FROM_SERVICE;

	if (d == TO_SERVICE && rpc->ended[d] && flow->depart_first == NONE)
		flow->depart_first = index_of_rpc(tracker, rpc); /* a turn goes on */
	rpc->ended[d] = 1;
	rpc->end[d] = seq_end;
	if (rpc->in_parts[d])
		rpc->bytes[d] += (uint32_t)(seq_end - flow->dir[d].message_begin);
	else
		rpc->bytes[d] = (uint32_t)(seq_end - rpc->begin[d]);
	if (!turn_over) {
		rpc->t_last[d] = step->t_release;
		rpc->departed[d] = 0;
		rpc->stay_count[d] = 0;
		if (!tracker->config.own_buffers || step->detached || d != step->d) {
			rpc->t_departure[d] = rpc->t_last[d];
			rpc->departed[d] = 1;
		} else {
			step->tracked->handle.valid = 1;
		}
	}
	if (d == TO_SERVICE)
		request_ended(step, rpc);
	else
		response_ended(step, rpc);
}

void
rpc_part_ended(struct step *step, struct rpc *rpc)
{
	const struct direction *dir = &step->flow->dir[step->d];

	rpc->in_parts[step->d] = 1;
	rpc->t_last[step->d] = step->t_release;
	rpc->end[step->d] = dir->next;
	rpc->bytes[step->d] += (uint32_t)(dir->next - dir->message_begin);
}

static bool
is_settled(const struct flow *flow, const struct rpc *rpc, uint64_t t)
{
	const bool turn = flow->framer->ops->pairing == BS_PAIR_BY_TURN;

	if (rpc->outcome == BS_OUTCOME_ONEWAY)
		return rpc->departed[TO_SERVICE] || t > rpc->t_last[TO_SERVICE] + DEPARTURE_LOST_NS;
	if (rpc->outcome != BS_OUTCOME_ANSWERED)
		return true;
	if (flow->tuple.transport == 6 &&
		seq_before(flow->dir[FROM_SERVICE].acked, rpc->end[FROM_SERVICE]))
		return false;
	return rpc->departed[FROM_SERVICE] || turn ||
	       t > rpc->t_last[FROM_SERVICE] + DEPARTURE_LOST_NS;
}

void
rpc_settle(struct bs_tracker *tracker, struct flow *flow, uint64_t t)
{
	uint32_t at = flow->done_first;

	for (unsigned i = 0; at != NONE && i < WALK_MAX; i++) {
		struct rpc *rpc = &tracker->rpcs[at];

		at = rpc->done_next;
		if (!is_settled(flow, rpc, t))
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

		decide_outcome(tracker, flow, rpc, outcome);
		emit_rpc(tracker, flow, rpc, t);
		rpc_release(tracker, rpc);
	}
	flow->quiet_open = 0;
}

/* Was the service silent until now, although RPCs were open at it? */
void
service_moved(struct step *step)
{
	struct bs_tracker *tracker = step->tracker;
	const struct flow *flow = step->flow;
	struct service_state *service = service_of(tracker, flow);
	uint64_t since = service->t_last_move > service->t_pending_since ? service->t_last_move
									 : service->t_pending_since;
	uint32_t mover =
		flow->dir[FROM_SERVICE].rpc != NONE ? flow->dir[FROM_SERVICE].rpc : flow->rpc_open;

	if (service->pending > 0 && since != 0 &&
		step->t >= since + tracker->config.detect_ns[BS_CAUSE_HANG])
		emit_silence(tracker, flow->service, since, step->t,
			mover == NONE ? 0 : tracker->rpcs[mover].id);
	if (step->t > service->t_last_move)
		__atomic_store_n(&service->t_last_move, step->t, __ATOMIC_RELAXED);
}
