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

#define CLOSED_LINGER_NS 1000000000ull
#define ADVANCE_MAX 64u

static uint32_t
chain_all(uint32_t *next, size_t stride, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		*(uint32_t *)((uint8_t *)next + i * stride) = i + 1 < n ? i + 1 : NONE;
	return 0;
}

int
flow_table_init(struct bs_tracker *tracker)
{
	uint32_t n = tracker->flow_max;
	uint32_t chunks = n / 16 < 256 ? 256 : n / 16;

	tracker->flow_mask = n - 1;
	tracker->flow_buckets = malloc(n * sizeof(uint32_t));
	tracker->flows = aligned_alloc(64, n * sizeof(struct flow));
	tracker->chunks = malloc(chunks * sizeof(struct chunk));
	if (tracker->flow_buckets == NULL || tracker->flows == NULL || tracker->chunks == NULL)
		return -ENOMEM;
	memset(tracker->flow_buckets, 0xff, n * sizeof(uint32_t));
	memset(tracker->flows, 0, n * sizeof(struct flow));
	tracker->flow_free = chain_all(&tracker->flows[0].bucket_next, sizeof(struct flow), n);
	tracker->chunk_free = chain_all(&tracker->chunks[0].next, sizeof(struct chunk), chunks);
	memset(tracker->wheel, 0xff, sizeof(tracker->wheel));
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
	flow->wheel_prev = NONE;
	flow->wheel_next = tracker->wheel[flow->wheel_slot];
	if (flow->wheel_next != NONE)
		tracker->flows[flow->wheel_next].wheel_prev = at;
	tracker->wheel[flow->wheel_slot] = at;
}

static void
wheel_remove(struct bs_tracker *tracker, struct flow *flow)
{
	if (flow->wheel_prev != NONE)
		tracker->flows[flow->wheel_prev].wheel_next = flow->wheel_next;
	else
		tracker->wheel[flow->wheel_slot] = flow->wheel_next;
	if (flow->wheel_next != NONE)
		tracker->flows[flow->wheel_next].wheel_prev = flow->wheel_prev;
}

static uint64_t
flow_due(const struct bs_tracker *tracker, const struct flow *flow)
{
	uint64_t linger = flow->state == FLOW_CLOSED ? CLOSED_LINGER_NS : tracker->config.idle_ns;

	return flow->t_last + linger;
}

void
flow_drop_chunks(struct bs_tracker *tracker, struct flow *flow, unsigned d)
{
	uint32_t at = flow->hole[d].first;

	while (at != NONE) {
		uint32_t next = tracker->chunks[at].next;

		tracker->chunks[at].next = tracker->chunk_free;
		tracker->chunk_free = at;
		at = next;
	}
	flow->hole[d].first = flow->hole[d].last = NONE;
	flow->hole[d].count = 0;
}

void
flow_reset_stream(struct flow *flow, unsigned d)
{
	memset(&flow->dir[d], 0, sizeof(flow->dir[d]));
	flow->dir[d].rpc = NONE;
	flow->hole[d].first = flow->hole[d].last = NONE;
	flow->hole[d].count = 0;
	memset(&flow->stamp[d], 0, sizeof(flow->stamp[d]));
	memset(&flow->frame.dir[d], 0, sizeof(flow->frame.dir[d]));
}

/* Index of the given service at an end, or BS_SERVICE_OTHER. */
static unsigned
service_at_end(const struct bs_tracker *tracker, const struct bs_tuple *tuple, unsigned end)
{
	const struct bs_tracker_service *list =
		tracker->config.discover ? tracker->discovered : tracker->config.services;

	for (unsigned i = 0; i < tracker->service_count; i++) {
		if (list[i].port == tuple->port[end]
			&& memcmp(list[i].address, tuple->addr[end], sizeof(list[i].address)) == 0)
			return i;
	}
	return BS_SERVICE_OTHER;
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
		const uint16_t *ports = framer->row != NULL ? framer->row->ports : framer->ops->ports;

		for (unsigned k = 0; k < 4 && ports[k] != 0; k++) {
			if (ports[k] == port)
				return true;
		}
	}
	return framer_of_port(tracker, port) != NULL;
}

/* Which end serves: the handshake says; else a known port; else the lower port. */
static unsigned
guess_server_end(const struct bs_tracker *tracker, const struct bs_packet *packet, bool *guessed)
{
	const struct bs_tuple *tuple = &packet->tuple;

	*guessed = false;
	if (tuple->transport == 6 && (packet->tcp_flags & BS_TCP_SYN))
		return packet->tcp_flags & BS_TCP_ACK ? packet->direction : !packet->direction;
	*guessed = true;
	for (unsigned end = 0; end < 2; end++) {
		if (usual_port(tracker, tuple->port[end]) && !usual_port(tracker, tuple->port[!end]))
			return end;
	}
	if (tuple->port[0] == tuple->port[1])
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
	memcpy(tracker->discovered[service].address, tuple->addr[end], 16);
	tracker->discovered[service].port = tuple->port[end];
	tracker->discovered[service].framer = framer_of_port(tracker, tuple->port[end]);
	emit_service_name(tracker, service);
	return service;
}

/* Sets service, roles and framer of a new flow. False: nobody asked to follow it. */
static bool
flow_classify(struct bs_tracker *tracker, struct flow *flow, const struct bs_packet *packet)
{
	const struct bs_tracker_service *list = tracker->config.services;
	bool guessed = false;
	unsigned end, service;

	for (end = 0; end < 2; end++) {
		service = service_at_end(tracker, &packet->tuple, end);
		if (service != BS_SERVICE_OTHER)
			break;
	}
	if (tracker->config.discover) {
		list = tracker->discovered;
		end = guess_server_end(tracker, packet, &guessed);
		service = service_discover(tracker, &packet->tuple, end);
	} else if (end == 2) {
		return false;
	}
	flow->service = (uint16_t)service;
	flow->client_end = (uint8_t)!end;
	flow->role_guessed = guessed;
	flow->framer = service == BS_SERVICE_OTHER ? NULL : list[service].framer;
	return true;
}

/* Takes the flow that is due first and has nothing open. */
static bool
flow_evict(struct bs_tracker *tracker, uint64_t t)
{
	for (unsigned i = 1; i <= WHEEL_SLOTS; i++) {
		uint32_t at = tracker->wheel[(tracker->wheel_position + i) % WHEEL_SLOTS];

		for (unsigned step = 0; at != NONE && step < 16; step++) {
			struct flow *flow = &tracker->flows[at];

			if (flow->rpc_open == NONE) {
				flow_forget(tracker, flow, t);
				count(tracker, BS_TRACK_FLOWS_EVICTED, 1);
				return true;
			}
			at = flow->wheel_next;
		}
	}
	return false;
}

struct flow *
flow_make(struct bs_tracker *tracker, const struct bs_packet *packet, uint64_t t)
{
	struct flow probe, *flow;
	uint32_t generation, at, *bucket;

	memset(&probe, 0, sizeof(probe));
	if (!flow_classify(tracker, &probe, packet))
		return NULL;
	if (tracker->flow_free == NONE && !flow_evict(tracker, t)) {
		count(tracker, BS_TRACK_FLOWS_REFUSED, 1);
		return NULL;
	}
	at = tracker->flow_free;
	flow = &tracker->flows[at];
	tracker->flow_free = flow->bucket_next;
	generation = flow->generation + 1;
	*flow = probe;
	flow->generation = generation;
	flow->tuple = packet->tuple;
	flow->hash = packet->hash;
	flow->state = FLOW_OPEN;
	flow->t_last = t;
	flow->stream = tracker->stream_counter++;
	flow->rpc_first = flow->rpc_last = flow->rpc_open = NONE;
	flow->depart_first[0] = flow->depart_first[1] = NONE;
	flow_reset_stream(flow, TO_SERVICE);
	flow_reset_stream(flow, FROM_SERVICE);
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
flow_forget(struct bs_tracker *tracker, struct flow *flow, uint64_t t)
{
	uint32_t at = index_of_flow(tracker, flow);
	uint32_t *link = &tracker->flow_buckets[flow->hash & tracker->flow_mask];

	stream_give_up_holes(tracker, flow, t);
	rpc_end_all(tracker, flow, BS_OUTCOME_UNANSWERED, t);
	flow_drop_chunks(tracker, flow, TO_SERVICE);
	flow_drop_chunks(tracker, flow, FROM_SERVICE);
	while (*link != at)
		link = &tracker->flows[*link].bucket_next;
	*link = flow->bucket_next;
	wheel_remove(tracker, flow);
	flow->state = FLOW_FREE;
	flow->bucket_next = tracker->flow_free;
	tracker->flow_free = at;
	__atomic_store_n(&tracker->flow_count, tracker->flow_count - 1, __ATOMIC_RELAXED);
}

void
flow_advance(struct bs_tracker *tracker, uint64_t t)
{
	uint64_t now = t / tracker->wheel_width_ns;
	unsigned left = ADVANCE_MAX;

	if (tracker->flow_count == 0)
		return;
	while (tracker->wheel_position < now && left > 0) {
		uint32_t at = tracker->wheel[(tracker->wheel_position + 1) % WHEEL_SLOTS];

		if (at == NONE) {
			tracker->wheel_position++;
			left--;
			continue;
		}
		for (; at != NONE && left > 0; left--) {
			struct flow *flow = &tracker->flows[at];

			at = flow->wheel_next;
			if (flow_due(tracker, flow) <= t) {
				flow_forget(tracker, flow, t);
				count(tracker, BS_TRACK_FLOWS_EXPIRED, 1);
			} else {
				wheel_remove(tracker, flow);
				/* not into the slot being emptied: that is position + 1 */
				tracker->wheel_position++;
				wheel_insert(tracker, flow, flow_due(tracker, flow));
				tracker->wheel_position--;
			}
		}
	}
}
