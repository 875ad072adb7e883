/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a receiver's window held up. Two things show that: it has no room for a
 * segment (seen from the sender's side), or bytes come one round trip after the
 * window came to allow them (seen from the receiver's side, where what is under
 * way to us is not known).
 */
#include "track.h"

#include <string.h>

#define PAUSE_MIN_NS 20000ull /* shorter closures of a window are how TCP works */
#define MSS_DEFAULT 536u      /* RFC 9293 3.7.1 */
#define LARGE 65536u	      /* bytes; larger windows are not looked at: speed comes first there */
#define SEND_NS 50000u	      /* what a sender needs to use a window that has opened */

/* The RPC whose bytes in direction d the window holds up. */
static struct rpc *
held_up(struct step *step, unsigned d)
{
	const struct flow *flow = step->flow;
	uint32_t at = flow->dir[d].in_message ? flow->dir[d].rpc : NONE;

	if (at == NONE && d == FROM_SERVICE)
		at = flow->rpc_open; /* its response has not begun */
	return at == NONE ? NULL : &step->tracker->rpcs[at];
}

/* Marks [begin, now], or makes the mark before longer if it reaches so far. */
static void
held_since(struct step *step, unsigned d, struct rpc *rpc, uint64_t begin, uint8_t quality)
{
	struct bs_mark mark;

	if (rpc->marks != NONE) {
		struct bs_mark *before = &step->tracker->marks[rpc->marks].mark;

		if (before->kind == BS_MARK_WINDOW && before->response == (d == FROM_SERVICE) &&
			before->begin <= begin && begin <= before->end) {
			before->end = step->t;
			before->packet = step->packet->number;
			if (quality == BS_QUALITY_ESTIMATED)
				before->quality = quality;
			return;
		}
	}
	if (step->t <= begin + PAUSE_MIN_NS)
		return;
	memset(&mark, 0, sizeof(mark));
	mark.begin = begin;
	mark.end = step->t;
	mark.packet = step->packet->number;
	mark.buffer = stream_receiver_buffer(d);
	mark.kind = BS_MARK_WINDOW;
	mark.cause = BS_CAUSE_PAUSE;
	mark.quality = quality;
	mark.response = d == FROM_SERVICE;
	rpc_mark(step->tracker, rpc, &mark);
}

void
window_look(struct step *step, unsigned d)
{
	struct direction *dir = &step->flow->dir[d];
	uint32_t mss = dir->mss != 0 ? dir->mss : MSS_DEFAULT;
	bool closed = (int32_t)(dir->window_end - dir->high) < (int32_t)mss;
	struct rpc *rpc;

	if (!dir->window_known || closed == (dir->t_closed != 0))
		return;
	if (closed) {
		dir->t_closed = step->t;
		count(step->tracker, BS_TRACK_ZERO_WINDOW, 1);
		return;
	}
	rpc = held_up(step, d);
	if (rpc != NULL)
		held_since(step, d, rpc, dir->t_closed, BS_QUALITY_EXACT);
	dir->t_closed = 0;
}

static void
edge_moved(struct window_edges *edges, uint32_t edge, uint64_t t)
{
	uint32_t newest = edges->edge[(edges->count - 1) % WINDOW_EDGES];

	if (edges->count > 0 && !seq_before(newest, edge))
		return;
	edges->edge[edges->count % WINDOW_EDGES] = edge;
	edges->t[edges->count % WINDOW_EDGES] = t;
	edges->count++;
}

/* When the window came to allow bytes up to `end`; 0: before the edges that are kept. */
static uint64_t
allowed_since(const struct window_edges *edges, uint32_t end)
{
	uint64_t t = 0;

	for (uint32_t i = 1; i <= edges->count && i <= WINDOW_EDGES; i++) {
		uint32_t at = (edges->count - i) % WINDOW_EDGES;

		if (seq_before(edges->edge[at], end))
			return t;
		t = edges->t[at];
	}
	return 0;
}

void
window_released(struct step *step, uint32_t end)
{
	const unsigned d = step->d;
	struct flow *flow = step->flow;
	const struct direction *dir = &flow->dir[d];
	uint64_t round_trip_ns, t;
	struct rpc *rpc;

	if (!dir->window_known || !dir->in_message || dir->window_end - end > LARGE)
		return;
	rpc = held_up(step, d);
	round_trip_ns = flow->round_trip[!d].min_ns;
	t = allowed_since(&flow->window[d], end);
	if (t == 0 || round_trip_ns == 0 || rpc == NULL ||
		step->t > t + round_trip_ns + round_trip_ns / 4 + SEND_NS)
		return;
	held_since(step, d, rpc, dir->t_progress, BS_QUALITY_ESTIMATED);
}

/*
 * Scaling is in force only if both SYNs offered it (RFC 7323 2.2). Of a
 * connection whose handshake was not seen it is unknown: then only zero means
 * that there is no room.
 */
void
window_advertised(struct step *step)
{
	const struct bs_packet *packet = step->packet;
	const struct direction *receiver = &step->flow->dir[step->d];
	struct direction *dir = &step->flow->dir[!step->d];
	unsigned scale = receiver->wscale;

	if (packet->tcp_flags & (BS_TCP_SYN | BS_TCP_RST) || seq_before(packet->ack, dir->acked))
		return;
	if (receiver->wscale == WSCALE_UNKNOWN || dir->wscale == WSCALE_UNKNOWN)
		scale = 14;
	else if (receiver->wscale == WSCALE_NONE || dir->wscale == WSCALE_NONE)
		scale = 0;
	dir->window_known = 1;
	dir->window_end = packet->ack + ((uint32_t)packet->window << scale);
	if (dir->window_end - packet->ack <= LARGE)
		edge_moved(&step->flow->window[!step->d], dir->window_end, step->t);
	window_look(step, !step->d);
}
