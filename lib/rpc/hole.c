/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes that came before the ones they follow. Only what a framer may want to
 * read is copied; of a body it is enough to know that it came and when.
 */
#include "track.h"

#include <string.h>

void
hole_free_chunks(struct bs_tracker *tracker, struct flow *flow, unsigned d)
{
	struct hole *hole = &flow->hole[d];

	if (hole->first != NONE) {
		tracker->chunks[hole->last].next = tracker->chunk_free;
		tracker->chunk_free = hole->first;
	}
	hole->first = hole->last = NONE;
	hole->count = 0;
}

bool
hole_covers(const struct bs_tracker *tracker, const struct hole *hole, uint32_t seq, uint32_t end)
{
	for (uint32_t at = hole->first; at != NONE; at = tracker->chunks[at].next) {
		const struct chunk *chunk = &tracker->chunks[at];

		if (seq_before(seq, chunk->seq))
			return false;
		if (seq_before(seq, chunk->seq + chunk->bytes))
			seq = chunk->seq + chunk->bytes;
		if (!seq_before(seq, end))
			return true;
	}
	return false;
}

/* Nobody will look at any of these bytes: they are of a body, or of a stream without messages. */
static bool
is_body(const struct flow *flow, unsigned d, uint32_t seq, uint32_t bytes)
{
	const struct direction *dir = &flow->dir[d];

	if (dir->until_close)
		return true;
	if (flow->framer != NULL && flow->framer->ops->pairing == BS_PAIR_BY_TURN)
		return true;
	return (uint64_t)(seq - dir->next) + bytes <= dir->skip;
}

static struct chunk *
chunk_new(struct bs_tracker *tracker, struct hole *hole, uint32_t seq)
{
	uint32_t at = tracker->chunk_free, *link = &hole->first;
	struct chunk *chunk;

	if (at == NONE || hole->count == CHUNKS_PER_DIRECTION)
		return NULL;
	if (hole->last != NONE && !seq_before(seq, tracker->chunks[hole->last].seq))
		link = &tracker->chunks[hole->last].next;
	while (*link != NONE && !seq_before(seq, tracker->chunks[*link].seq))
		link = &tracker->chunks[*link].next;
	chunk = &tracker->chunks[at];
	tracker->chunk_free = chunk->next;
	chunk->next = *link;
	*link = at;
	if (chunk->next == NONE)
		hole->last = at;
	hole->count++;
	chunk->seq = seq;
	return chunk;
}

static void
chunk_fill(struct chunk *chunk, const struct step *step, const uint8_t *data, uint32_t bytes,
	bool body)
{
	const struct bs_packet *packet = step->packet;

	chunk->bytes = bytes;
	chunk->unread = body;
	chunk->ack = step->ack;
	chunk->t = chunk->t_last = step->t;
	chunk->number = packet->number;
	chunk->ip_id = packet->ip_id;
	chunk->has_tsval = (packet->tcp_options & BS_TCPOPT_TIMESTAMP) != 0;
	chunk->tsval = packet->tsval;
	if (!body)
		memcpy(chunk->data, data, bytes);
}

static void
keep_piece(struct step *step, uint32_t seq, const uint8_t *data, uint32_t bytes)
{
	struct bs_tracker *tracker = step->tracker;
	struct hole *hole = &step->flow->hole[step->d];
	const bool body = is_body(step->flow, step->d, seq, bytes);

	if (body && hole->last != NONE) {
		struct chunk *last = &tracker->chunks[hole->last];

		if (last->unread && last->seq + last->bytes == seq &&
			bytes < INT32_MAX - last->bytes) {
			last->bytes += bytes;
			last->t_last = step->t;
			last->ack = step->ack;
			return;
		}
	}
	for (uint32_t done = 0, n; done < bytes; done += n) {
		struct chunk *chunk = chunk_new(tracker, hole, seq + done);

		if (chunk == NULL) {
			count(tracker, BS_TRACK_REASSEMBLY_FULL, bytes - done);
			return;
		}
		n = body || bytes - done < CHUNK_BYTES ? bytes - done : CHUNK_BYTES;
		chunk_fill(chunk, step, body ? NULL : data + done, n, body);
	}
}

void
hole_keep(struct step *step, const struct bs_piece *pieces, unsigned piece_count)
{
	const struct bs_packet *packet = step->packet;
	const struct flow *flow = step->flow;
	uint32_t at = step->first_seq;

	if (flow->hole[step->d].first == NONE)
		step->flow->hole[step->d].acks = 0;
	if (is_body(flow, step->d, at, packet->payload_len)) {
		keep_piece(step, at, NULL, packet->payload_len);
		return;
	}
	keep_piece(step, at, packet->data + packet->payload, packet->payload_cap);
	at += packet->payload_cap;
	for (unsigned i = 0; i < piece_count; i++) {
		keep_piece(step, at, pieces[i].data, pieces[i].bytes);
		at += pieces[i].bytes;
	}
}

void
hole_deliver(struct step *step, uint32_t seq, const uint8_t *data, uint32_t bytes)
{
	uint32_t old = step->flow->dir[step->d].next - seq;

	if (old < bytes)
		message_bytes(step, data + old, bytes - old);
}

/*
 * May the first chunk be delivered? Not across a hole; and a response not
 * before the request bytes that its packet ACKs, as long as these may come: a
 * capture may have them in the wrong order.
 */
static bool
is_due(const struct flow *flow, unsigned d, const struct chunk *chunk)
{
	if (seq_before(flow->dir[d].next, chunk->seq))
		return false;
	return d == TO_SERVICE || flow->hole[TO_SERVICE].patience == 0 ||
	       !seq_before(flow->dir[TO_SERVICE].next, chunk->ack);
}

void
hole_drain(struct step *step)
{
	struct bs_tracker *tracker = step->tracker;
	struct flow *flow = step->flow;
	struct hole *hole = &flow->hole[step->d];
	struct step saved;

	if (hole->first == NONE)
		return;
	saved = *step;
	step->shim_id = 0;
	while (hole->first != NONE) {
		const uint32_t at = hole->first;
		struct chunk *chunk = &tracker->chunks[at];
		uint32_t old;

		if (!is_due(flow, step->d, chunk))
			break;
		step->t = chunk->t;
		step->t_release =
			saved.detached || saved.t < chunk->t_last ? chunk->t_last : saved.t;
		step->ack = chunk->ack;
		old = flow->dir[step->d].next - chunk->seq;
		if (!chunk->unread)
			hole_deliver(step, chunk->seq, chunk->data, chunk->bytes);
		else if (old < chunk->bytes)
			message_unread(step, chunk->bytes - old);
		hole->first = chunk->next;
		if (hole->first == NONE)
			hole->last = NONE;
		hole->count--;
		chunk->next = tracker->chunk_free;
		tracker->chunk_free = at;
	}
	/* in_first stays as it has become: the messages are behind each other */
	step->t = saved.t;
	step->t_release = saved.t_release;
	step->ack = saved.ack;
	step->shim_id = saved.shim_id;
}

void
hole_give_up(struct step *step, uint32_t to)
{
	struct direction *dir = &step->flow->dir[step->d];
	const struct hole *hole = &step->flow->hole[step->d];

	if (hole->first != NONE && seq_before(step->tracker->chunks[hole->first].seq, to))
		to = step->tracker->chunks[hole->first].seq;
	if (dir->fin && seq_before(hole->fin_seq, to))
		to = hole->fin_seq;
	if (seq_before(dir->next, to)) {
		count(step->tracker, BS_TRACK_CAPTURE_GAPS, 1);
		message_gap(step, to - dir->next);
		if (seq_before(dir->high, to))
			dir->high = to;
	}
	hole_drain(step);
}
