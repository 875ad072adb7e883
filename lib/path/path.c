/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Paints the marks of an RPC over the phases of its life and cuts the result
 * into segments. The tracker calls it once, when an RPC that is worth telling
 * ends; see bs_path.h.
 */
#include "bs_path.h"

#include <string.h>

#define PHASES 5u
#define POINTS_MAX (PHASES + 1u + 2u * BS_PATH_MAX_MARKS)

static const struct {
	uint16_t buffer;
	uint8_t cause;
} phase_default[PHASES] = {
	{BS_BUFFER_NET_REQUEST_BEFORE, BS_CAUSE_TRANSFER},
	{BS_BUFFER_NONE, BS_CAUSE_UNOBSERVED},
	{BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE},
	{BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_TRANSFER},
	{BS_BUFFER_NONE, BS_CAUSE_UNOBSERVED},
};

static uint64_t
clamp(uint64_t t, uint64_t low, uint64_t high)
{
	return t < low ? low : t > high ? high : t;
}

/* Where the segments count from: the first byte seen of it, as bs_rpc_extent_ns does. */
static uint64_t
origin_of(const struct bs_rec_rpc *rpc)
{
	return rpc->t_request_first != 0 ? rpc->t_request_first : rpc->t_response_first;
}

/*
 * Ends of the phases, monotone, within [origin, end]. A phase that was not
 * reached lasts to the end; one that was passed unseen (a later instant is
 * known) belongs to the one before.
 */
static void
phase_bounds(const struct bs_rec_rpc *rpc, uint64_t bounds[PHASES + 1])
{
	const uint64_t origin = origin_of(rpc), end = origin + bs_rpc_extent_ns(rpc);
	const uint64_t instants[PHASES] = {
		rpc->t_request_last,
		rpc->t_request_departure,
		rpc->t_response_first,
		rpc->t_response_last,
		rpc->t_response_departure,
	};
	uint64_t later = end;

	for (unsigned i = PHASES; i > 0; i--) {
		if (instants[i - 1] != 0)
			later = instants[i - 1];
		bounds[i] = later;
	}
	bounds[0] = origin;
	for (unsigned i = 1; i < PHASES; i++)
		bounds[i] = clamp(bounds[i], bounds[i - 1], end);
	bounds[PHASES] = end;
}

/* The part of a mark that can be on the critical path. */
static void
mark_clip(const struct bs_mark *mark, const uint64_t bounds[PHASES + 1], uint64_t *begin,
	uint64_t *end)
{
	uint64_t low = mark->response ? bounds[2] : bounds[0];
	uint64_t high = mark->response ? bounds[PHASES] : bounds[3];

	if (mark->kind == BS_MARK_EARLIER_RPC)
		low = bounds[2];
	*begin = clamp(mark->begin, low, high);
	*end = clamp(mark->end, low, high);
}

static void
point_insert(uint64_t *points, unsigned *count, uint64_t t)
{
	unsigned at = *count;

	while (at > 0 && points[at - 1] > t)
		at--;
	if (at > 0 && points[at - 1] == t)
		return;
	memmove(&points[at + 1], &points[at], (*count - at) * sizeof(points[0]));
	points[at] = t;
	(*count)++;
}

static unsigned
collect_points(const struct bs_mark *marks, unsigned count, const uint64_t bounds[PHASES + 1],
	uint64_t points[POINTS_MAX])
{
	unsigned n = 0;

	for (unsigned i = 0; i <= PHASES; i++)
		point_insert(points, &n, bounds[i]);
	for (unsigned i = 0; i < count; i++) {
		uint64_t begin, end;

		mark_clip(&marks[i], bounds, &begin, &end);
		point_insert(points, &n, begin);
		point_insert(points, &n, end);
	}
	return n;
}

/* The strongest mark over t, the earlier of two equals, then the first given; NULL: none. */
static const struct bs_mark *
strongest_at(
	const struct bs_mark *marks, unsigned count, const uint64_t bounds[PHASES + 1], uint64_t t)
{
	const struct bs_mark *best = NULL;

	for (unsigned i = 0; i < count; i++) {
		uint64_t begin, end;

		mark_clip(&marks[i], bounds, &begin, &end);
		if (t < begin || t >= end)
			continue;
		if (best == NULL || marks[i].kind > best->kind ||
			(marks[i].kind == best->kind && marks[i].begin < best->begin))
			best = &marks[i];
	}
	return best;
}

static void
segment_fill(struct bs_rec_segment *segment, const struct bs_rec_rpc *rpc,
	const struct bs_mark *mark, unsigned phase)
{
	memset(segment, 0, sizeof(*segment));
	bs_record_head(&segment->head, BS_REC_SEGMENT, rpc->head.source);
	segment->rpc_id = rpc->id;
	if (mark == NULL) {
		segment->buffer = phase_default[phase].buffer;
		segment->cause = phase_default[phase].cause;
		segment->quality = BS_QUALITY_EXACT;
		return;
	}
	segment->buffer = mark->buffer;
	segment->cause = mark->cause;
	segment->detail = mark->detail;
	segment->quality = mark->quality;
	segment->uncertainty_ns = mark->uncertainty_ns;
	segment->packet = mark->packet;
	segment->culprit_id = mark->culprit_id;
	segment->culprit_kind = mark->culprit_kind;
}

/* Makes one of two neighbours: the first grows over the second and is no surer than either. */
static void
segment_join(struct bs_rec_segment *first, const struct bs_rec_segment *second)
{
	first->end_ns = second->end_ns;
	if (first->detail != second->detail)
		first->detail = BS_DETAIL_NONE;
	if (second->packet > first->packet)
		first->packet = second->packet;
	if (second->quality > first->quality)
		first->quality = second->quality;
	if (second->uncertainty_ns > first->uncertainty_ns)
		first->uncertainty_ns = second->uncertainty_ns;
	if (first->culprit_kind == BS_CULPRIT_NONE) {
		first->culprit_kind = second->culprit_kind;
		first->culprit_id = second->culprit_id;
	}
}

static bool
is_same_place(const struct bs_rec_segment *a, const struct bs_rec_segment *b)
{
	return a->buffer == b->buffer && a->cause == b->cause;
}

static void
remove_at(struct bs_rec_segment *segments, unsigned *count, unsigned at)
{
	memmove(&segments[at], &segments[at + 1], (*count - at - 1) * sizeof(segments[0]));
	(*count)--;
}

/* Makes room for one more: joins neighbours of equal place, else gives the shortest to a neighbour.
 */
static void
make_room(struct bs_rec_segment *segments, unsigned *count)
{
	unsigned shortest = 0;

	for (unsigned i = 1; i < *count; i++) {
		if (is_same_place(&segments[i - 1], &segments[i])) {
			segment_join(&segments[i - 1], &segments[i]);
			remove_at(segments, count, i);
			return;
		}
		if (segments[i].end_ns - segments[i].begin_ns <
			segments[shortest].end_ns - segments[shortest].begin_ns)
			shortest = i;
	}
	if (shortest == 0)
		segments[1].begin_ns = segments[0].begin_ns;
	else
		segments[shortest - 1].end_ns = segments[shortest].end_ns;
	remove_at(segments, count, shortest);
}

unsigned
bs_path_build(struct bs_rec_rpc *rpc, const struct bs_mark *marks, unsigned count,
	struct bs_rec_segment segments[BS_RPC_MAX_SEGMENTS])
{
	const struct bs_mark *mark, *mark_before = NULL;
	uint64_t bounds[PHASES + 1], points[POINTS_MAX];
	unsigned n = 0, phase = 0, point_count;

	if (count > BS_PATH_MAX_MARKS)
		count = BS_PATH_MAX_MARKS;
	phase_bounds(rpc, bounds);
	point_count = collect_points(marks, count, bounds, points);
	for (unsigned i = 0; i + 1 < point_count; i++) {
		struct bs_rec_segment segment;

		while (phase + 1 < PHASES && points[i] >= bounds[phase + 1])
			phase++;
		mark = strongest_at(marks, count, bounds, points[i]);
		segment_fill(&segment, rpc, mark, phase);
		segment.begin_ns = points[i] - bounds[0];
		segment.end_ns = points[i + 1] - bounds[0];
		/* cut at points that are nothing to it */
		if (n > 0 && mark == mark_before && is_same_place(&segments[n - 1], &segment)) {
			segments[n - 1].end_ns = segment.end_ns;
			continue;
		}
		mark_before = mark;
		if (n == BS_RPC_MAX_SEGMENTS) {
			make_room(segments, &n);
			rpc->flags |= BS_RPC_SEGMENTS_MERGED;
		}
		segments[n++] = segment;
	}
	rpc->segment_count = (uint16_t)n;
	return n;
}
