/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Builds record streams for the tests of the diagnosis, and keeps what it says.
 * Times of tests count from T0.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bs_diag.h"

#define US 1000ull
#define MS 1000000ull
#define SEC 1000000000ull
#define T0 (1700000000ull * SEC)
#define OWN_QUEUE BS_BUFFER_FIRST_OWN
#define OWN_PORT (BS_BUFFER_FIRST_OWN + 1)

struct group {
	union {
		uint64_t align;
		unsigned char bytes[BS_RPC_GROUP_MAX_UNITS * BS_UNIT_BYTES];
	};
};

/* What the diagnosis said; verdicts and incidents are kept up to a bound, all are counted. */
struct heard {
	struct bs_diag *diag;
	unsigned verdicts, incidents, thresholds, opened, closed;
	uint64_t last_opened;
	struct bs_rec_verdict verdict[256];
	struct group group[256]; /* of those verdicts */
	struct bs_rec_incident incident[256];
	struct bs_rec_threshold threshold;
};

static inline void
hear_verdict(void *context, const struct bs_rec_verdict *verdict, const struct bs_rpc_view *rpc)
{
	struct heard *heard = context;
	assert_int_equal(verdict->rpc_id, rpc->rpc->id);
	if (heard->verdicts < 256) {
		unsigned char *to = heard->group[heard->verdicts].bytes;
		heard->verdict[heard->verdicts] = *verdict;
		memcpy(to, rpc->rpc, sizeof(*rpc->rpc));
		to += sizeof(*rpc->rpc);
		memcpy(to, rpc->segments, rpc->rpc->segment_count * sizeof(*rpc->segments));
		to += rpc->rpc->segment_count * sizeof(*rpc->segments);
		memcpy(to, rpc->events, rpc->rpc->event_count * sizeof(*rpc->events));
	}
	heard->verdicts++;
}

static inline void
hear_incident(void *context, const struct bs_rec_incident *incident)
{
	struct heard *heard = context;
	if (heard->incidents < 256)
		heard->incident[heard->incidents] = *incident;
	heard->incidents++;
	heard->closed += !incident->open;
	if (incident->open && incident->id > heard->last_opened) {
		heard->opened++;
		heard->last_opened = incident->id;
	}
}

static inline void
hear_threshold(void *context, const struct bs_rec_threshold *threshold)
{
	struct heard *heard = context;
	heard->threshold = *threshold;
	heard->thresholds++;
}

static inline struct heard *
heard_create(bool offline)
{
	struct heard *heard = calloc(1, sizeof(*heard));
	assert_non_null(heard);
	struct bs_diag_config config = {
		.detect_ns = {0, 200 * US, 200 * US, 200 * US, 200 * US, 1 * MS},
		.offline = offline,
		.output = {hear_verdict, hear_incident, hear_threshold, heard},
	};
	heard->diag = bs_diag_create(&config);
	assert_non_null(heard->diag);
	return heard;
}

static inline void
heard_destroy(struct heard *heard)
{
	bs_diag_destroy(heard->diag);
	free(heard);
}

/* The last verdict told of an RPC; NULL if none. */
static inline const struct bs_rec_verdict *
heard_of(const struct heard *heard, uint64_t id)
{
	const struct bs_rec_verdict *found = NULL;
	for (unsigned i = 0; i < heard->verdicts && i < 256; i++)
		if (heard->verdict[i].rpc_id == id)
			found = &heard->verdict[i];
	return found;
}

static inline struct bs_rec_rpc *
group_rpc(struct group *group)
{
	return (struct bs_rec_rpc *)(void *)group->bytes;
}

static inline struct bs_rec_segment *
group_segments(struct group *group)
{
	return (struct bs_rec_segment *)(void *)(group_rpc(group) + 1);
}

static inline size_t
group_bytes(struct group *group)
{
	return sizeof(struct bs_rec_rpc) +
	       group_rpc(group)->segment_count * sizeof(struct bs_rec_segment) +
	       group_rpc(group)->event_count * sizeof(struct bs_rec_event);
}

/* An RPC of service 0, operation 7, 100 bytes, on connection `connection`. */
static inline void
group_begin(struct group *group, uint64_t id, unsigned connection, uint64_t t)
{
	struct bs_rec_rpc *rpc = group_rpc(group);
	memset(group, 0, sizeof(*group));
	bs_record_head(&rpc->head, BS_REC_RPC, 0);
	rpc->id = id;
	rpc->ends.client_port = (uint16_t)(1024 + connection);
	rpc->ends.transport = 6;
	rpc->ends.ip_version = 4;
	rpc->t_request_first = t;
	rpc->operation_hash = 7;
	rpc->request_bytes = 60;
	rpc->response_bytes = 40;
	rpc->outcome = BS_OUTCOME_ANSWERED;
	rpc->kind = BS_KIND_UNARY;
}

/* The next segment, as long as ns. */
static inline struct bs_rec_segment *
group_add(struct group *group, unsigned buffer, unsigned cause, uint64_t ns)
{
	struct bs_rec_rpc *rpc = group_rpc(group);
	struct bs_rec_segment *segment = &group_segments(group)[rpc->segment_count];
	uint64_t begin = rpc->segment_count ? segment[-1].end_ns : 0;
	bs_record_head(&segment->head, BS_REC_SEGMENT, 0);
	segment->rpc_id = rpc->id;
	segment->begin_ns = begin;
	segment->end_ns = begin + ns;
	segment->buffer = (uint16_t)buffer;
	segment->cause = (uint8_t)cause;
	rpc->segment_count++;
	return segment;
}

/* Instants that fit the segments: time with the service is from the first to the last of its. */
static inline void
group_end(struct group *group)
{
	struct bs_rec_rpc *rpc = group_rpc(group);
	const struct bs_rec_segment *segments = group_segments(group);
	uint64_t t = rpc->t_request_first, end = 0, given = 0, first = 0;
	bool answered = rpc->outcome == BS_OUTCOME_ANSWERED;

	for (unsigned i = 0; i < rpc->segment_count; i++) {
		bool service = segments[i].buffer == BS_BUFFER_SERVICE;
		given = service && !first ? segments[i].begin_ns : given;
		first = service ? segments[i].end_ns : first;
		end = segments[i].end_ns;
	}
	rpc->t_request_last = t;
	if (segments[0].buffer == BS_BUFFER_NET_REQUEST_BEFORE)
		rpc->t_request_last += segments[0].end_ns;
	rpc->t_request_departure = t + given;
	if (rpc->t_request_departure < rpc->t_request_last)
		rpc->t_request_departure = rpc->t_request_last;
	if (first < rpc->t_request_departure - t)
		first = rpc->t_request_departure - t;
	rpc->t_end = t + end;
	if (answered) {
		rpc->t_response_first = t + first;
		rpc->t_response_last = rpc->t_response_departure = t + end;
	}
}

static inline void
group_feed(struct heard *heard, struct group *group)
{
	struct bs_rpc_view view;
	size_t bytes;
	unsigned bad;
	group_end(group);
	assert_int_equal(bs_rpc_view(group->bytes, group_bytes(group), &view, &bytes), 0);
	assert_int_equal(bs_rpc_check_tiling(&view, &bad), 0);
	assert_int_equal(bs_diag_feed(heard->diag, &group_rpc(group)->head, group_bytes(group)), 0);
}

/* Transfer 10 us, `ns` in (buffer, cause), 10 us of transfer; the service computes 100 us. */
static inline void
group_simple(struct group *group, uint64_t id, unsigned connection, uint64_t t, unsigned buffer,
	unsigned cause, uint64_t ns)
{
	group_begin(group, id, connection, t);
	group_add(group, BS_BUFFER_NET_REQUEST_BEFORE, BS_CAUSE_TRANSFER, 10 * US);
	if (buffer != BS_BUFFER_SERVICE) {
		group_add(group, buffer, cause, ns);
		group_add(group, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 100 * US);
	} else {
		group_add(group, buffer, cause, ns);
	}
	group_add(group, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_TRANSFER, 10 * US);
	group_end(group);
}

static inline void
feed_simple(struct heard *heard, uint64_t id, unsigned connection, uint64_t t, unsigned buffer,
	unsigned cause, uint64_t ns)
{
	struct group group;
	group_simple(&group, id, connection, t, buffer, cause, ns);
	group_feed(heard, &group);
}

/* `count` RPCs of 100 us with the service, 120 us in all, one a millisecond up to t. */
static inline void
feed_usual(struct heard *heard, uint64_t first_id, unsigned count, uint64_t t)
{
	for (unsigned i = 0; i < count; i++) {
		uint64_t at = t - (count - i) * MS;
		feed_simple(heard, first_id + i, i % 4, at, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE,
			100 * US);
		bs_diag_advance(heard->diag, at);
	}
}

static inline struct bs_rec_verdict
judge_group(struct heard *heard, struct group *group)
{
	struct bs_rpc_view view;
	struct bs_rec_verdict verdict;
	size_t bytes;
	assert_int_equal(bs_rpc_view(group->bytes, group_bytes(group), &view, &bytes), 0);
	bs_diag_judge(heard->diag, &view, &verdict);
	return verdict;
}

static inline void
feed_silence(struct heard *heard, uint64_t begin, uint64_t end, uint64_t mover, uint32_t pending,
	unsigned lcore)
{
	struct bs_rec_silence silence = {
		.t_begin = begin, .t_end = end, .mover_id = mover, .pending = pending};
	bs_record_head(&silence.head, BS_REC_SILENCE, lcore);
	assert_int_equal(bs_diag_feed(heard->diag, &silence.head, sizeof(silence)), 0);
}

static inline void
feed_probe(struct heard *heard, uint64_t begin, uint64_t end, unsigned state)
{
	struct bs_rec_probe probe = {
		.t_begin = begin, .t_end = end, .threads = 1, .state = (uint8_t)state};
	bs_record_head(&probe.head, BS_REC_PROBE, 0);
	assert_int_equal(bs_diag_feed(heard->diag, &probe.head, sizeof(probe)), 0);
}

/* A probe that looked at sockets: of `connections`, these were so all the time. */
static inline void
feed_sockets(struct heard *heard, uint64_t begin, uint64_t end, unsigned state,
	unsigned connections, unsigned unread, unsigned unaccepted, unsigned unsent)
{
	struct bs_rec_probe probe = {.t_begin = begin,
		.t_end = end,
		.threads = 1,
		.state = (uint8_t)state,
		.connections = (uint8_t)connections,
		.unread = (uint8_t)unread,
		.unaccepted = (uint8_t)unaccepted,
		.unsent = (uint8_t)unsent};
	bs_record_head(&probe.head, BS_REC_PROBE, 0);
	assert_int_equal(bs_diag_feed(heard->diag, &probe.head, sizeof(probe)), 0);
}

static inline void
feed_episode(struct heard *heard, unsigned buffer, unsigned type, uint64_t begin, uint64_t end,
	unsigned upstream, unsigned lcore)
{
	struct bs_rec_event event = {.t_begin = begin,
		.t_end = end,
		.buffer = (uint16_t)buffer,
		.type = (uint8_t)type,
		.upstream = (uint16_t)upstream,
		.count = 1};
	bs_record_head(&event.head, BS_REC_EVENT, lcore);
	assert_int_equal(bs_diag_feed(heard->diag, &event.head, sizeof(event)), 0);
}

static inline void
assert_blame(struct bs_blame blame, unsigned buffer, unsigned cause)
{
	assert_int_equal(blame.buffer, buffer);
	assert_int_equal(blame.cause, cause);
}

#define assert_alternative(verdict, buffer, cause)                                                 \
	do {                                                                                       \
		assert_int_equal((verdict)->alternative_count, 1);                                 \
		assert_blame((verdict)->alternatives[0], buffer, cause);                           \
	} while (0)
