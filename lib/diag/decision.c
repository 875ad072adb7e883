/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments cut and named as decided: see decision.h. */
#include "decision.h"

#include <string.h>

/* Two stretches cut a segment into no more than this. */
#define PIECES_MAX (2 * DECISIONS_MAX + 1)

/* A part of a segment, offsets; decision is NULL where nothing was decided. */
struct piece {
	struct interval offset;
	const struct decision *decision;
};

struct writer {
	const struct bs_rec_rpc *rpc;
	const struct decision *decisions;
	unsigned decision_count;
	struct bs_rec_segment *segments;
	unsigned count;
	bool any, merged;
	/* By cause: none, or what its event tells. */
	struct bs_rec_event event[BS_CAUSE_HANG + 1];
};

/* From `offset` on, as far as one decision, or none, reaches. */
static struct piece
next_piece(const struct writer *writer, uint64_t offset, uint64_t end)
{
	struct piece piece = {.offset = {.begin = offset, .end = end}};

	for (unsigned i = 0; i < writer->decision_count; i++) {
		const struct decision *decision = &writer->decisions[i];
		uint64_t begin = ns_sub(decision->span.begin, writer->rpc->t_request_first);
		uint64_t until = ns_sub(decision->span.end, writer->rpc->t_request_first);

		if (begin <= offset && offset < until) {
			piece.decision = decision;
			piece.offset.end = ns_min(end, until);
			return piece;
		}
		if (begin > offset && begin < until)
			piece.offset.end = ns_min(piece.offset.end, begin);
	}
	return piece;
}

static unsigned
cut(const struct writer *writer, const struct bs_rec_segment *segment,
	struct piece pieces[PIECES_MAX])
{
	unsigned count = 0;

	if (segment->buffer == BS_BUFFER_SERVICE && segment->cause == BS_CAUSE_COMPUTE) {
		uint64_t at = segment->begin_ns;
		while (at < segment->end_ns && count < PIECES_MAX) {
			pieces[count] = next_piece(writer, at, segment->end_ns);
			at = pieces[count++].offset.end;
		}
	}
	if (count == 0)
		pieces[count++] = (struct piece){
			.offset = {.begin = segment->begin_ns, .end = segment->end_ns}};
	return count;
}

/* Makes one of all: what most of it was. */
static void
merge(struct writer *writer, struct piece *pieces, unsigned count)
{
	struct interval whole = {pieces[0].offset.begin, pieces[count - 1].offset.end};
	unsigned longest = 0;

	for (unsigned i = 1; i < count; i++)
		if (interval_ns(pieces[i].offset) > interval_ns(pieces[longest].offset))
			longest = i;
	pieces[0] = (struct piece){.offset = whole, .decision = pieces[longest].decision};
	writer->merged = true;
}

static void
note_event(struct writer *writer, const struct bs_rec_segment *segment)
{
	struct bs_rec_event *event = &writer->event[segment->cause];
	uint64_t t = writer->rpc->t_request_first;

	if (event->count == 0) {
		bs_record_head(&event->head, BS_REC_EVENT, segment->head.source);
		event->rpc_id = writer->rpc->id;
		event->t_begin = UINT64_MAX;
		event->buffer = segment->buffer;
		event->detail = segment->detail;
		event->type = segment->cause;
		event->quality = segment->quality;
		event->culprit_count = segment->culprit_kind != BS_CULPRIT_NONE;
		event->culprit_kind[0] = segment->culprit_kind;
		event->culprits[0].id = segment->culprit_id;
	}
	event->t_begin = ns_min(event->t_begin, ns_add(t, segment->begin_ns));
	event->t_end = ns_max(event->t_end, ns_add(t, segment->end_ns));
	event->blocking_ns = ns_add(event->blocking_ns, segment->end_ns - segment->begin_ns);
	if (event->culprit_count)
		event->culprits[0].ns = event->blocking_ns;
	event->count++;
}

static void
put_piece(struct writer *writer, const struct bs_rec_segment *segment, const struct piece *piece)
{
	struct bs_rec_segment *out = &writer->segments[writer->count++];

	*out = *segment;
	out->begin_ns = piece->offset.begin;
	out->end_ns = piece->offset.end;
	if (!piece->decision)
		return;
	out->buffer = piece->decision->blame.buffer;
	out->cause = piece->decision->blame.cause;
	out->detail = piece->decision->detail;
	if (piece->decision->culprit_id) {
		out->culprit_kind = BS_CULPRIT_RPC;
		out->culprit_id = piece->decision->culprit_id;
	}
	note_event(writer, out);
	writer->any = true;
}

static void
put_segment(struct writer *writer, const struct bs_rec_segment *segment, unsigned still_to_come)
{
	struct piece pieces[PIECES_MAX];
	unsigned count = cut(writer, segment, pieces);

	if (writer->count + count + still_to_come > BS_RPC_MAX_SEGMENTS) {
		merge(writer, pieces, count);
		count = 1;
	}
	for (unsigned i = 0; i < count; i++)
		put_piece(writer, segment, &pieces[i]);
}

static bool
has_event(const struct bs_rpc_view *rpc, unsigned buffer, unsigned cause)
{
	for (unsigned i = 0; i < rpc->rpc->event_count; i++)
		if (rpc->events[i].buffer == buffer && rpc->events[i].type == cause)
			return true;
	return false;
}

static unsigned
put_events(const struct writer *writer, const struct bs_rpc_view *rpc, const uint64_t detect_ns[6],
	struct bs_rec_event *events)
{
	unsigned count = rpc->rpc->event_count;

	if (count > 0)
		memcpy(events, rpc->events, count * sizeof(*events));
	for (unsigned cause = 0; cause <= BS_CAUSE_HANG && count < BS_RPC_MAX_EVENTS; cause++) {
		const struct bs_rec_event *event = &writer->event[cause];
		if (event->count > 0 && event->blocking_ns >= detect_ns[cause] &&
			!has_event(rpc, event->buffer, cause))
			events[count++] = *event;
	}
	return count;
}

bool
decided_write(struct decided *decided, struct bs_rpc_view *rpc, const struct decision *decisions,
	unsigned count, const uint64_t detect_ns[6])
{
	struct bs_rec_rpc *out = (void *)decided->units;
	struct writer writer = {
		.rpc = rpc->rpc,
		.decisions = decisions,
		.decision_count = count,
		.segments = (void *)(out + 1),
	};

	for (unsigned i = 0; i < rpc->rpc->segment_count; i++)
		put_segment(&writer, &rpc->segments[i], rpc->rpc->segment_count - i - 1);
	if (!writer.any)
		return false;

	struct bs_rec_event *events = (void *)(writer.segments + writer.count);
	*out = *rpc->rpc;
	out->segment_count = (uint16_t)writer.count;
	out->event_count = (uint16_t)put_events(&writer, rpc, detect_ns, events);
	if (writer.merged)
		out->flags |= BS_RPC_SEGMENTS_MERGED;
	*rpc = (struct bs_rpc_view){.rpc = out, .segments = writer.segments, .events = events};
	return true;
}
