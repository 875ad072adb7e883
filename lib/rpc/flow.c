/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The flow table: chained hash over a fixed array, and a timing wheel that finds
 * idle flows without touching the busy ones. A packet only writes t_last; when
 * a flow's slot comes round, it is forgotten or moved to where it is due.
 */
#include "track.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CLOSED_LINGER_NS 1000000000ull /* for stray packets after the end */
#define ONE_SIDED_NS 10000000000ull    /* not both ends speak, nothing is open: a scan, a flood */
#define ADVANCE_MAX 64u

/*
 * Flows looked at to make room for one, and moved in the wheel meanwhile. After
 * so many looks in vain, a full table of flows with RPCs open would cost as many
 * cache misses for each packet. A move is owed to a packet of that flow.
 */
#define EVICT_MAX 64u
#define EVICT_AGAIN_MAX 4u
#define EVICT_AGAIN_NS 10000000ull
#define EVICT_OPEN_NS 10000000000ull /* without a packet, flows go that have RPCs open, too */
#define EVICT_USED_NS 1000000000ull  /* and those that were not due yet, with nothing open */

static uint32_t
chunk_count(uint32_t flows)
{
	return flows / 16 < 256 ? 256 : flows / 16;
}

size_t
flow_table_bytes(uint32_t n)
{
	return n * (sizeof(struct flow) + sizeof(uint32_t)) + chunk_count(n) * sizeof(struct chunk);
}

int
flow_table_init(struct bs_tracker *tracker)
{
	uint32_t n = tracker->flow_max;
	uint32_t chunks = chunk_count(n);

	tracker->flow_mask = n - 1;
	tracker->flow_buckets = malloc(n * sizeof(uint32_t));
	tracker->flows = aligned_alloc(64, n * sizeof(struct flow));
	tracker->chunks = malloc(chunks * sizeof(struct chunk));
	if (tracker->flow_buckets == NULL || tracker->flows == NULL || tracker->chunks == NULL)
		return -ENOMEM;
	memset(tracker->flow_buckets, 0xff, n * sizeof(uint32_t));
	memset(tracker->flows, 0, n * sizeof(struct flow));
	for (uint32_t i = 0; i < n; i++)
		tracker->flows[i].bucket_next = i + 1 < n ? i + 1 : NONE;
	for (uint32_t i = 0; i < chunks; i++)
		tracker->chunks[i].next = i + 1 < chunks ? i + 1 : NONE;
	tracker->flow_free = tracker->chunk_free = 0;
	for (unsigned i = 0; i < WHEEL_SLOTS; i++)
		tracker->wheel[i].first = tracker->wheel[i].last = NONE;
	tracker->wheel_width_ns = tracker->config.idle_ns / (WHEEL_SLOTS / 2) + 1;
	return 0;
}

void
flow_table_fini(struct bs_tracker *tracker)
{
	free(tracker->flow_buckets);
	free(tracker->flows);
	free(tracker->chunks);
}

struct flow *
flow_find(struct bs_tracker *tracker, const struct bs_tuple *tuple, uint32_t hash)
{
	uint32_t at = tracker->flow_buckets[hash & tracker->flow_mask];

	while (at != NONE) {
		struct flow *flow = &tracker->flows[at];

		if (flow->hash == hash && memcmp(&flow->tuple, tuple, sizeof(flow->tuple)) == 0)
			return flow;
		at = flow->bucket_next;
	}
	return NULL;
}

/* Puts a flow where its timeout will find it: never further than half the wheel ahead. */
static void
wheel_insert(struct bs_tracker *tracker, struct flow *flow, uint64_t t_due)
{
	uint32_t at = index_of_flow(tracker, flow);
	uint64_t position = t_due / tracker->wheel_width_ns;
	uint64_t furthest = tracker->wheel_position + WHEEL_SLOTS - 1;

	if (position <= tracker->wheel_position)
		position = tracker->wheel_position + 1;
	if (position > furthest)
		position = furthest;
	flow->wheel_slot = (uint16_t)(position % WHEEL_SLOTS);
	flow->wheel_t_last = (uint32_t)flow->t_last;
	tracker->wheel_used[flow->wheel_slot / 64] |= 1ull << flow->wheel_slot % 64;
	flow->wheel_prev = tracker->wheel[flow->wheel_slot].last;
	flow->wheel_next = NONE;
	if (flow->wheel_prev != NONE)
		tracker->flows[flow->wheel_prev].wheel_next = at;
	else
		tracker->wheel[flow->wheel_slot].first = at;
	tracker->wheel[flow->wheel_slot].last = at;
}

static void
wheel_remove(struct bs_tracker *tracker, struct flow *flow)
{
	const unsigned slot = flow->wheel_slot;

	if (flow->wheel_prev != NONE)
		tracker->flows[flow->wheel_prev].wheel_next = flow->wheel_next;
	else
		tracker->wheel[slot].first = flow->wheel_next;
	if (flow->wheel_next != NONE)
		tracker->flows[flow->wheel_next].wheel_prev = flow->wheel_prev;
	else
		tracker->wheel[slot].last = flow->wheel_prev;
	if (tracker->wheel[slot].first == NONE)
		tracker->wheel_used[slot / 64] &= ~(1ull << slot % 64);
}

/* The position of the first slot behind `position` that has flows; UINT64_MAX: there is none. */
static uint64_t
wheel_next_used(const struct bs_tracker *tracker, uint64_t position)
{
	const uint64_t end = tracker->wheel_position + WHEEL_SLOTS;

	for (position++; position < end; position = (position | 63) + 1) {
		const unsigned slot = position % WHEEL_SLOTS;
		const uint64_t used = tracker->wheel_used[slot / 64] >> slot % 64;

		if (used != 0) {
			position += (unsigned)__builtin_ctzll(used);
			return position < end ? position : UINT64_MAX;
		}
	}
	return UINT64_MAX;
}

/* Have both ends spoken? That a SYN was answered does not tell: its sender may not exist. */
static bool
is_two_sided(const struct flow *flow)
{
	return flow->sent == 3 && !(flow->isn_known[FROM_SERVICE] &&
					  flow->dir[FROM_SERVICE].acked == flow->isn[FROM_SERVICE]);
}

static uint64_t
flow_due(const struct bs_tracker *tracker, const struct flow *flow)
{
	uint64_t linger = tracker->config.idle_ns;

	if (flow->state == FLOW_CLOSED && linger > CLOSED_LINGER_NS)
		linger = CLOSED_LINGER_NS;
	else if (linger > ONE_SIDED_NS && flow->rpc_first == NONE && !is_two_sided(flow))
		linger = ONE_SIDED_NS;
	return flow->t_last + linger;
}

static void
wheel_move(struct bs_tracker *tracker, struct flow *flow)
{
	wheel_remove(tracker, flow);
	wheel_insert(tracker, flow, flow_due(tracker, flow));
}

void
flow_closed(struct bs_tracker *tracker, struct flow *flow)
{
	if (flow->state == FLOW_CLOSED)
		return;
	flow->state = FLOW_CLOSED;
	wheel_move(tracker, flow);
}

void
flow_asked(struct bs_tracker *tracker, struct flow *flow, uint64_t t)
{
	if (t > flow->t_last)
		flow->t_last = t;
	wheel_move(tracker, flow);
}

static void
reset_stream(struct flow *flow, unsigned d)
{
	memset(&flow->dir[d], 0, sizeof(flow->dir[d]));
	flow->dir[d].rpc = NONE;
	flow->dir[d].wscale = WSCALE_UNKNOWN;
	memset(&flow->hole[d], 0, sizeof(flow->hole[d]));
	flow->hole[d].first = flow->hole[d].last = NONE;
	memset(&flow->missed[d], 0, sizeof(flow->missed[d]));
	memset(&flow->stamp[d], 0, sizeof(flow->stamp[d]));
	memset(&flow->round_trip[d], 0, sizeof(flow->round_trip[d]));
	flow->isn_known[d] = 0;
	flow->ip_id_last[d] = 0;
	flow->ip_id_run = flow->unseen = flow->unseen_ids = 0;
	flow->window[d].count = 0;
}

/* --- services and roles ---------------------------------------------------- */

static const struct bs_tracker_service *
services(const struct bs_tracker *tracker)
{
	return tracker->config.discover ? tracker->discovered : tracker->config.services;
}

/* The slot of a service end, or the free one where it belongs. */
static uint16_t *
service_slot(struct bs_tracker *tracker, const uint8_t address[16], uint16_t port)
{
	const struct bs_tracker_service *list = services(tracker);
	uint64_t high, low, mixed;

	memcpy(&high, address, sizeof(high));
	memcpy(&low, address + sizeof(high), sizeof(low));
	mixed = (high * 31 + low + port) * 0x9e3779b97f4a7c15ull;
	for (uint32_t i = (uint32_t)(mixed >> 32);; i++) {
		uint16_t *slot = &tracker->service_slots[i % SERVICE_SLOTS];

		if (*slot == 0 || (list[*slot - 1].port == port &&
					  memcmp(list[*slot - 1].address, address, 16) == 0))
			return slot;
	}
}

/* Index of the given service at an end, or BS_SERVICE_OTHER. */
static unsigned
service_at_end(struct bs_tracker *tracker, const struct bs_tuple *tuple, unsigned end)
{
	const uint16_t *slot = service_slot(tracker, tuple->addr[end], tuple->port[end]);

	return *slot == 0 ? BS_SERVICE_OTHER : *slot - 1u;
}

void
flow_services_init(struct bs_tracker *tracker)
{
	const struct bs_tracker_service *list = services(tracker);

	for (unsigned i = 0; i < tracker->service_count; i++) {
		uint16_t *slot = service_slot(tracker, list[i].address, list[i].port);

		if (*slot == 0)
			*slot = (uint16_t)(i + 1);
	}
}

static const struct bs_framer *
framer_of_port(const struct bs_tracker *tracker, uint16_t port)
{
	for (unsigned i = 0; i < tracker->config.port_count; i++) {
		if (tracker->config.ports[i].port == port)
			return tracker->config.ports[i].framer;
	}
	return NULL;
}

/* Is this port one that a protocol usually listens on? */
static bool
usual_port(const struct bs_tracker *tracker, uint16_t port)
{
	const struct bs_framers *framers = tracker->config.framers;

	for (unsigned i = 0; i < framers->count; i++) {
		const struct bs_framer *framer = &framers->list[i];
		const uint16_t *ports =
			framer->row != NULL ? framer->row->ports : framer->ops->ports;

		for (unsigned k = 0; k < 4 && ports[k] != 0; k++) {
			if (ports[k] == port)
				return true;
		}
	}
	return framer_of_port(tracker, port) != NULL;
}

/* Does the payload make sense as a message from the server, or to it? 1, -1; 0: both or neither. */
static int
from_server_by_content(const struct bs_tracker *tracker, const struct bs_packet *packet)
{
	const struct bs_framer *opaque = &tracker->config.framers->list[BS_PROTOCOL_OPAQUE];
	const uint8_t *payload = packet->data + packet->payload;
	const bool udp = packet->tuple.transport != 6;
	const struct bs_framer *as[2];
	struct bs_frame frame;

	if (packet->payload_cap == 0)
		return 0;
	for (unsigned from = 0; from < 2; from++) {
		uint16_t port = packet->tuple.port[from ? packet->direction : !packet->direction];

		as[from] = bs_framers_guess(
			tracker->config.framers, port, udp, from, payload, packet->payload_cap);
	}
	if ((as[0] == opaque) != (as[1] == opaque))
		return as[0] == opaque ? 1 : -1;
	memset(&frame, 0, sizeof(frame));
	if (!udp || as[0]->ops->datagram_feed == NULL ||
		!as[0]->ops->datagram_feed(as[0], false, payload, packet->payload_cap, &frame))
		return 0;
	return frame.role == BS_ROLE_RESPONSE ? 1 : frame.role == BS_ROLE_REQUEST ? -1 : 0;
}

/*
 * Which end serves: the handshake says; else a port that a protocol usually has;
 * else an end that is known to serve; else what is said; else who speaks first
 * over UDP, the lower port over TCP.
 */
static unsigned
guess_server_end(struct bs_tracker *tracker, const struct bs_packet *packet, bool *guessed)
{
	const struct bs_tuple *tuple = &packet->tuple;
	bool usual[2], known[2];
	int said;

	*guessed = false;
	if (tuple->transport == 6 && (packet->tcp_flags & BS_TCP_SYN))
		return packet->tcp_flags & BS_TCP_ACK ? packet->direction : !packet->direction;
	*guessed = true;
	for (unsigned end = 0; end < 2; end++) {
		usual[end] = usual_port(tracker, tuple->port[end]);
		known[end] = service_at_end(tracker, tuple, end) != BS_SERVICE_OTHER;
	}
	if (usual[0] != usual[1])
		return usual[1];
	if (known[0] != known[1])
		return known[1];
	said = from_server_by_content(tracker, packet);
	if (said != 0)
		return said > 0 ? packet->direction : !packet->direction;
	if (tuple->transport != 6 || tuple->port[0] == tuple->port[1])
		return !packet->direction;
	return tuple->port[1] < tuple->port[0];
}

static unsigned
service_discover(struct bs_tracker *tracker, const struct bs_tuple *tuple, unsigned end)
{
	unsigned service = service_at_end(tracker, tuple, end);

	if (service != BS_SERVICE_OTHER || tracker->service_count == BS_MAX_SERVICES)
		return service;
	service = tracker->service_count++;
	*service_slot(tracker, tuple->addr[end], tuple->port[end]) = (uint16_t)(service + 1);
	memcpy(tracker->discovered[service].address, tuple->addr[end], 16);
	tracker->discovered[service].port = tuple->port[end];
	tracker->discovered[service].framer = framer_of_port(tracker, tuple->port[end]);
	emit_service_name(tracker, service);
	return service;
}

/* Of which service a connection is, and which of its ends is the client. */
struct role {
	unsigned service, client_end;
	bool guessed;
};

/* False: nobody asked to follow it. */
static bool
find_role(struct bs_tracker *tracker, const struct bs_packet *packet, struct role *role)
{
	unsigned end;

	role->guessed = false;
	if (tracker->config.discover) {
		end = guess_server_end(tracker, packet, &role->guessed);
		role->service = service_discover(tracker, &packet->tuple, end);
	} else {
		/* a given service may be the client of another: then the handshake says */
		unsigned at[2] = {service_at_end(tracker, &packet->tuple, 0),
			service_at_end(tracker, &packet->tuple, 1)};

		if (at[0] == BS_SERVICE_OTHER && at[1] == BS_SERVICE_OTHER)
			return false;
		end = at[0] == BS_SERVICE_OTHER;
		if (at[0] != BS_SERVICE_OTHER && at[1] != BS_SERVICE_OTHER)
			end = guess_server_end(tracker, packet, &role->guessed);
		role->service = at[end];
	}
	role->client_end = !end;
	return true;
}

static void
take_role(struct bs_tracker *tracker, struct flow *flow, const struct role *role)
{
	flow->service = (uint16_t)role->service;
	flow->client_end = (uint8_t)role->client_end;
	flow->role_guessed = role->guessed;
	flow->framer =
		role->service == BS_SERVICE_OTHER ? NULL : services(tracker)[role->service].framer;
	flow->protocol_guessed = 0;
}

/* --- making and forgetting -------------------------------------------------- */

/* Has it had packets, or a request, since it was put at this position of the wheel? */
static bool
is_misplaced(const struct bs_tracker *tracker, const struct flow *flow, uint64_t position)
{
	return flow->wheel_t_last != (uint32_t)flow->t_last ||
	       (flow_due(tracker, flow) / tracker->wheel_width_ns > position &&
		       position + 1 < tracker->wheel_position + WHEEL_SLOTS);
}

static bool
is_idle(const struct flow *flow, uint64_t t, uint64_t idle_ns)
{
	return t > flow->t_last && t - flow->t_last >= idle_ns;
}

/* Of an opaque flow, the last turn stays until the next; what has been answered is not open. */
static bool
has_open(const struct flow *flow)
{
	return flow->rpc_count > flow->turn_answered;
}

/*
 * Of the flows that are due first: the first that has nothing open; else the
 * first that has, but is idle; else, of those that were used since they were put in
 * the wheel, that which is now due first, if it rests and has nothing open; NULL:
 * there is none. Those are put right.
 */
static struct flow *
find_evictable(struct bs_tracker *tracker, uint64_t t)
{
	const bool again = t - tracker->t_flow_evict_long < EVICT_AGAIN_NS;
	uint64_t position = wheel_next_used(tracker, tracker->wheel_position);
	unsigned left = again ? EVICT_AGAIN_MAX : EVICT_MAX, moves = EVICT_MAX;
	struct flow *idle = NULL, *rests = NULL;

	for (; position != UINT64_MAX && left > 0 && moves > 0;
		position = wheel_next_used(tracker, position)) {
		uint32_t at = tracker->wheel[position % WHEEL_SLOTS].first;

		while (at != NONE && left > 0 && moves > 0) {
			struct flow *flow = &tracker->flows[at];
			const bool open = has_open(flow);

			at = flow->wheel_next;
			if (is_misplaced(tracker, flow, position)) {
				wheel_move(tracker, flow);
				moves--;
				if (!open && is_idle(flow, t, EVICT_USED_NS) &&
					(rests == NULL ||
						flow_due(tracker, flow) < flow_due(tracker, rests)))
					rests = flow;
				continue;
			}
			if (!open)
				return flow;
			if (idle == NULL && is_idle(flow, t, EVICT_OPEN_NS))
				idle = flow;
			left--;
		}
	}
	if (!again && left == 0)
		tracker->t_flow_evict_long = t;
	return idle != NULL ? idle : rests;
}

/* Makes room for a flow. */
static bool
flow_evict(struct bs_tracker *tracker, uint64_t t)
{
	struct flow *flow = find_evictable(tracker, t);

	if (flow == NULL)
		return false;
	count(tracker, has_open(flow) ? BS_TRACK_FLOWS_EVICTED_OPEN : BS_TRACK_FLOWS_EVICTED, 1);
	flow_forget(tracker, flow, BS_OUTCOME_IN_PROGRESS, t);
	return true;
}

static void
flow_clear_rpcs(struct flow *flow)
{
	flow->rpc_first = flow->rpc_last = flow->rpc_open = NONE;
	flow->done_first = flow->done_last = flow->depart_first = NONE;
}

struct flow *
flow_make(struct bs_tracker *tracker, const struct bs_packet *packet, uint64_t t)
{
	uint32_t generation, at, *bucket;
	struct flow *flow;
	struct role role;

	if (!find_role(tracker, packet, &role))
		return NULL;
	if (tracker->flow_free == NONE && !flow_evict(tracker, t)) {
		count(tracker, BS_TRACK_FLOWS_REFUSED, 1);
		return NULL;
	}
	at = tracker->flow_free;
	flow = &tracker->flows[at];
	tracker->flow_free = flow->bucket_next;
	generation = flow->generation + 1;
	memset(flow, 0, sizeof(*flow));
	take_role(tracker, flow, &role);
	flow->generation = generation;
	flow->tuple = packet->tuple;
	flow->hash = packet->hash;
	flow->state = FLOW_OPEN;
	flow->t_last = t;
	flow->stream = tracker->stream_counter++;
	flow->frame.memory = tracker->frame_memory;
	flow_clear_rpcs(flow);
	reset_stream(flow, TO_SERVICE);
	reset_stream(flow, FROM_SERVICE);
	bucket = &tracker->flow_buckets[packet->hash & tracker->flow_mask];
	flow->bucket_next = *bucket;
	*bucket = at;
	if (tracker->flow_count == 0)
		tracker->wheel_position = t / tracker->wheel_width_ns;
	wheel_insert(tracker, flow, flow_due(tracker, flow));
	__atomic_store_n(&tracker->flow_count, tracker->flow_count + 1, __ATOMIC_RELAXED);
	count(tracker, BS_TRACK_FLOWS_CREATED, 1);
	return flow;
}

void
flow_forget_frames(struct flow *flow, unsigned d)
{
	if (flow->framer != NULL && flow->framer->ops->forget != NULL)
		flow->framer->ops->forget(&flow->frame, d == FROM_SERVICE);
	memset(&flow->frame.dir[d], 0, sizeof(flow->frame.dir[d]));
}

/* What is open of the connection ends with it. */
static void
flow_end(struct bs_tracker *tracker, struct flow *flow, unsigned outcome, uint64_t t)
{
	stream_give_up_holes(tracker, flow, t);
	rpc_end_all(tracker, flow, outcome, t);
	for (unsigned d = 0; d < 2; d++) {
		hole_free_chunks(tracker, flow, d);
		flow_forget_frames(flow, d);
	}
}

void
flow_reopen(
	struct bs_tracker *tracker, struct flow *flow, const struct bs_packet *packet, uint64_t t)
{
	struct role role;

	flow_end(tracker, flow, BS_OUTCOME_UNANSWERED, t);
	for (unsigned d = 0; d < 2; d++)
		reset_stream(flow, d);
	memset(flow->frame.shared, 0, sizeof(flow->frame.shared));
	memset(&flow->tagging, 0, sizeof(flow->tagging));
	if (find_role(tracker, packet, &role))
		take_role(tracker, flow, &role);
	flow->state = FLOW_OPEN;
	flow->generation++;
	flow->stream = tracker->stream_counter++;
	flow->t_syn = flow->connect_ns = 0;
	flow->refused = 0;
	flow->request_gap = flow->pipelined = flow->rpc_seen = flow->turn_answered = 0;
	flow->syn_waits = flow->sent = 0;
	wheel_move(tracker, flow);
}

void
flow_forget(struct bs_tracker *tracker, struct flow *flow, unsigned outcome, uint64_t t)
{
	uint32_t at = index_of_flow(tracker, flow);
	uint32_t *link = &tracker->flow_buckets[flow->hash & tracker->flow_mask];

	flow_end(tracker, flow, outcome, t);
	while (*link != at)
		link = &tracker->flows[*link].bucket_next;
	*link = flow->bucket_next;
	wheel_remove(tracker, flow);
	flow->state = FLOW_FREE;
	flow->bucket_next = tracker->flow_free;
	tracker->flow_free = at;
	__atomic_store_n(&tracker->flow_count, tracker->flow_count - 1, __ATOMIC_RELAXED);
}

/* Of a connection that ended, what is open ended then, not when that was noticed. */
static void
flow_expire(struct bs_tracker *tracker, struct flow *flow, uint64_t t)
{
	flow_forget(tracker, flow, BS_OUTCOME_UNANSWERED,
		flow->state == FLOW_CLOSED && flow->t_last < t ? flow->t_last : t);
	count(tracker, BS_TRACK_FLOWS_EXPIRED, 1);
}

void
flow_advance(struct bs_tracker *tracker, uint64_t t)
{
	uint64_t now = t / tracker->wheel_width_ns;
	unsigned left = ADVANCE_MAX;

	if (tracker->flow_count == 0)
		return;
	while (tracker->wheel_position < now && left > 0) {
		uint32_t at = tracker->wheel[(tracker->wheel_position + 1) % WHEEL_SLOTS].first;

		if (at == NONE) {
			tracker->wheel_position++;
			left--;
			continue;
		}
		for (; at != NONE && left > 0; left--) {
			struct flow *flow = &tracker->flows[at];

			at = flow->wheel_next;
			if (flow_due(tracker, flow) <= t) {
				flow_expire(tracker, flow, t);
			} else {
				/* not into the slot being emptied: that is position + 1 */
				tracker->wheel_position++;
				wheel_move(tracker, flow);
				tracker->wheel_position--;
			}
		}
	}
}
