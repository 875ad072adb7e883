/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tracker's front: create, one entry for every packet, housekeeping,
 * counters. See bs_tracker.h for what it is and track.h for its parts.
 */
#include "track.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BS_X_TRACK_KEY(name, key, help) key,

static const char *const counter_keys[] = {BS_TRACK_COUNTERS(BS_X_TRACK_KEY)};

const char *
bs_track_counter_key(unsigned counter)
{
	return counter < BS_TRACK_COUNT ? counter_keys[counter] : "?";
}

static uint32_t
power_of_two(uint32_t n)
{
	uint32_t p = 64;

	while (p < n && p < 1u << 30)
		p <<= 1;
	return p;
}

static int
services_init(struct bs_tracker *tracker)
{
	tracker->services = calloc(BS_MAX_SERVICES + 1, sizeof(tracker->services[0]));
	tracker->discovered = calloc(BS_MAX_SERVICES, sizeof(tracker->discovered[0]));
	if (tracker->services == NULL || tracker->discovered == NULL)
		return -ENOMEM;
	if (tracker->config.discover && tracker->config.service_count > 0) {
		memcpy(tracker->discovered, tracker->config.services,
			tracker->config.service_count * sizeof(tracker->discovered[0]));
	}
	tracker->service_count = tracker->config.service_count;
	flow_services_init(tracker);
	for (unsigned i = 0; i <= BS_MAX_SERVICES; i++) {
		bs_record_head(&tracker->services[i].counters.head, BS_REC_SERVICE,
			tracker->config.source);
		tracker->services[i].counters.service = (uint16_t)i;
	}
	return 0;
}

size_t
bs_tracker_bytes(unsigned max_flows, unsigned max_rpcs, size_t frame_bytes)
{
	return flow_table_bytes(power_of_two(max_flows)) + rpc_table_bytes(power_of_two(max_rpcs)) +
	       frame_bytes;
}

struct bs_tracker *
bs_tracker_create(const struct bs_tracker_config *config)
{
	struct bs_tracker *tracker;

	if (config->framers == NULL || config->framers->count == 0 || config->sink.put == NULL ||
		config->service_count > BS_MAX_SERVICES || config->idle_ns == 0 ||
		config->frame_bytes == 0) {
		errno = EINVAL;
		return NULL;
	}
	tracker = calloc(1, sizeof(*tracker));
	if (tracker == NULL)
		return NULL;
	tracker->config = *config;
	tracker->sample_left = config->sample;
	tracker->flow_max = power_of_two(config->max_flows);
	tracker->rpc_mask = power_of_two(config->max_rpcs) - 1;
	tracker->frame_memory = bs_frame_memory_create(config->frame_bytes);
	if (tracker->frame_memory == NULL || services_init(tracker) != 0 ||
		flow_table_init(tracker) != 0 || rpc_table_init(tracker) != 0) {
		bs_tracker_destroy(tracker);
		errno = ENOMEM;
		return NULL;
	}
	return tracker;
}

void
bs_tracker_destroy(struct bs_tracker *tracker)
{
	if (tracker == NULL)
		return;
	flow_table_fini(tracker);
	rpc_table_fini(tracker);
	bs_frame_memory_destroy(tracker->frame_memory);
	free(tracker->services);
	free(tracker->discovered);
	free(tracker);
}

void
bs_tracker_prefetch(const struct bs_tracker *tracker, uint32_t hash)
{
	__builtin_prefetch(&tracker->flow_buckets[hash & tracker->flow_mask]);
}

void
bs_tracker_prefetch_flow(const struct bs_tracker *tracker, uint32_t hash)
{
	const uint32_t at = tracker->flow_buckets[hash & tracker->flow_mask];
	const uint8_t *flow;

	if (at == NONE)
		return;
	/* the rest is for messages that begin or end */
	flow = (const uint8_t *)&tracker->flows[at];
	for (size_t i = 0; i < offsetof(struct flow, tagging); i += 64)
		__builtin_prefetch(flow + i);
}

static void
datagram(struct step *step)
{
	const struct bs_packet *packet = step->packet;
	struct flow *flow = step->flow;
	uint32_t mark;

	if (packet->payload_len == 0)
		return;
	mark = bs_packet_mark(packet); /* some senders give all of theirs one IP ID */
	if (stream_is_duplicate(step, mark)) {
		count(step->tracker, BS_TRACK_DUPLICATES, 1);
		return;
	}
	step->tracked->new_data = 1;
	message_datagram(step, packet->data + packet->payload, packet->payload_cap);
	flow->dir[step->d].high = mark;
	stream_progressed(step);
}

void
bs_tracker_packet(struct bs_tracker *tracker, const struct bs_packet *packet,
	const struct bs_arrival *arrival, const struct bs_piece *more_payload, unsigned piece_count,
	struct bs_tracked *tracked)
{
	struct step step = {
		.tracker = tracker,
		.packet = packet,
		.tracked = tracked,
		.ack = packet->ack,
		.shim_id = arrival->shim_id,
	};
	struct flow *flow = flow_find(tracker, &packet->tuple, packet->hash);

	memset(tracked, 0, sizeof(*tracked));
	tracked->service = BS_SERVICE_OTHER;
	tracked->remaining = BS_SHIM_REMAINING_UNKNOWN;
	tracked->t_arrival = arrival->t_poll;
	if (flow == NULL) {
		flow = flow_make(tracker, packet, arrival->t_poll);
		if (flow == NULL)
			return;
	}
	step.flow = flow;
	step.d = packet->direction != flow->client_end;
	tracked->followed = 1;
	tracked->service = flow->service;
	tracked->direction = (uint8_t)step.d;
	tracked->tagging = &flow->tagging;
	arrival_estimate(&step, arrival);
	step.t = step.t_release = tracked->t_arrival;
	if (packet->tuple.transport == 6)
		stream_packet(&step, more_payload, piece_count);
	else
		datagram(&step);
	flow->sent |= (uint8_t)(1u << step.d);
	if (step.t > flow->t_last)
		flow->t_last = step.t;
	tracked->handle.flow = index_of_flow(tracker, flow);
	tracked->handle.generation = flow->generation;
	tracked->handle.direction = (uint8_t)step.d;
	tracked->handle.seq_end = flow->dir[step.d].next;
	tracked->handle.seq_begin = packet->tuple.transport == 6
					    ? packet->seq
					    : tracked->handle.seq_end - packet->payload_len;
	if (flow->done_first != NONE)
		rpc_settle(tracker, flow, step.t);
}

struct bs_tagging *
bs_tracker_tagging(struct bs_tracker *tracker, const struct bs_tuple *tuple)
{
	struct flow *flow = flow_find(tracker, tuple, bs_tuple_hash(tuple));

	return flow == NULL ? NULL : &flow->tagging;
}

static void
count_refused_memory(struct bs_tracker *tracker)
{
	const uint64_t refused = bs_frame_memory_refused(tracker->frame_memory);

	count(tracker, BS_TRACK_FRAME_MEMORY_FULL,
		refused - tracker->counters[BS_TRACK_FRAME_MEMORY_FULL]);
}

void
bs_tracker_advance(struct bs_tracker *tracker, uint64_t t_ns)
{
	flow_advance(tracker, t_ns);
	count_refused_memory(tracker);
}

void
bs_tracker_finish(struct bs_tracker *tracker, uint64_t t_ns)
{
	count_refused_memory(tracker);
	for (uint32_t i = 0; i < tracker->flow_max; i++) {
		struct flow *flow = &tracker->flows[i];

		if (flow->state == FLOW_OPEN)
			flow_forget(tracker, flow, BS_OUTCOME_IN_PROGRESS, t_ns);
		else if (flow->state == FLOW_CLOSED)
			flow_forget(tracker, flow, BS_OUTCOME_UNANSWERED, flow->t_last);
	}
}

void
bs_tracker_threshold(struct bs_tracker *tracker, unsigned service, uint64_t latency_ns)
{
	if (service <= BS_MAX_SERVICES)
		__atomic_store_n(
			&tracker->services[service].threshold_ns, latency_ns, __ATOMIC_RELAXED);
}

void
bs_tracker_reload(struct bs_tracker *tracker, const uint64_t detect_ns[6], uint32_t sample)
{
	for (unsigned i = 0; i < 6; i++)
		__atomic_store_n(&tracker->config.detect_ns[i], detect_ns[i], __ATOMIC_RELAXED);
	__atomic_store_n(&tracker->sample_left, sample, __ATOMIC_RELAXED);
	__atomic_store_n(&tracker->config.sample, sample, __ATOMIC_RELAXED);
}

const uint64_t *
bs_tracker_counters(const struct bs_tracker *tracker)
{
	return tracker->counters;
}

void
bs_tracker_service_counters(
	const struct bs_tracker *tracker, unsigned service, struct bs_rec_service *out)
{
	*out = tracker->services[service].counters;
	out->in_progress = __atomic_load_n(&tracker->services[service].pending, __ATOMIC_RELAXED);
}

const struct bs_histo *
bs_tracker_histo(const struct bs_tracker *tracker, unsigned service, enum bs_tracker_histo which)
{
	return &tracker->services[service].histos[which];
}

void
bs_tracker_silence(
	const struct bs_tracker *tracker, unsigned service, struct bs_tracker_silence *out)
{
	const struct service_state *state = &tracker->services[service];
	uint64_t moved = __atomic_load_n(&state->t_last_move, __ATOMIC_RELAXED);
	uint64_t since = __atomic_load_n(&state->t_pending_since, __ATOMIC_RELAXED);

	out->pending = __atomic_load_n(&state->pending, __ATOMIC_RELAXED);
	out->t_since = moved > since ? moved : since;
}

/* False if the place was given to another flow meanwhile. */
static bool
waiting_ends(const struct flow *flow, unsigned service, struct bs_ends *ends)
{
	const uint32_t generation = __atomic_load_n(&flow->generation, __ATOMIC_ACQUIRE);

	if (__atomic_load_n(&flow->pending, __ATOMIC_RELAXED) == 0 || flow->service != service)
		return false;
	flow_ends(flow, ends);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return generation == __atomic_load_n(&flow->generation, __ATOMIC_RELAXED);
}

void
bs_tracker_waiting(
	const struct bs_tracker *tracker, unsigned service, struct bs_tracker_waiting *out)
{
	const struct service_state *state = &tracker->services[service];
	uint32_t told[BS_TRACKER_WAITING];

	out->count = 0;
	out->flows = __atomic_load_n(&state->waiting_flows, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < BS_TRACKER_WAITING; i++) {
		uint32_t at = __atomic_load_n(&state->waiting[i], __ATOMIC_RELAXED);
		bool again = false;

		for (unsigned k = 0; k < out->count; k++)
			again = again || told[k] == at;
		if (again || !waiting_ends(&tracker->flows[at], service, &out->ends[out->count]))
			continue;
		told[out->count++] = at;
	}
}

unsigned
bs_tracker_flows(const struct bs_tracker *tracker)
{
	return __atomic_load_n(&tracker->flow_count, __ATOMIC_RELAXED);
}

unsigned
bs_tracker_open_rpcs(const struct bs_tracker *tracker)
{
	return __atomic_load_n(&tracker->rpc_count, __ATOMIC_RELAXED);
}
