/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP as seen from the middle: which bytes are new, which were sent again and
 * why, what stands behind a hole, when a receiver's window had no room, what
 * was ACKed. Facts become marks on the RPC they held up (design section 6).
 */
#include "track.h"

#include <string.h>

#define DUPLICATE_NS 1000000ull /* the same packet twice within this is a copy of the capture's */
#define PAUSE_MIN_NS 20000ull   /* shorter closures of a window are how TCP works */
#define MSS_DEFAULT 536u        /* RFC 9293 3.7.1 */
#define STAMP_LEARN_TICKS 64u

static uint16_t
net_buffer(unsigned d, bool before)
{
	if (d == TO_SERVICE)
		return before ? BS_BUFFER_NET_REQUEST_BEFORE : BS_BUFFER_NET_REQUEST_AFTER;
	return before ? BS_BUFFER_NET_RESPONSE_BEFORE : BS_BUFFER_NET_RESPONSE_AFTER;
}

static uint16_t
receiver_buffer(unsigned d)
{
	return d == TO_SERVICE ? BS_BUFFER_SERVER_SOCKET_RX : BS_BUFFER_CLIENT_SOCKET_RX;
}

/* --- arrival ------------------------------------------------------------- */

/* Learns the tick of the sender's timestamp clock: 1, 4 or 10 ms are in use (RFC 7323 5.4). */
static void
stamp_learn(struct flow *flow, unsigned d, uint32_t tsval, uint64_t t)
{
	static const uint32_t ticks_ns[] = {1000000, 4000000, 10000000};
	uint32_t delta = tsval - flow->stamp[d].ts_first;
	uint64_t per_tick;

	if (delta < STAMP_LEARN_TICKS || delta > INT32_MAX)
		return;
	per_tick = (t - flow->stamp[d].t_first) / delta;
	for (unsigned i = 0; i < sizeof(ticks_ns) / sizeof(ticks_ns[0]); i++) {
		if (per_tick > ticks_ns[i] - ticks_ns[i] / 4 && per_tick < ticks_ns[i] + ticks_ns[i] / 4) {
			flow->stamp[d].tick_ns = ticks_ns[i];
			flow->stamp[d].offset_min_ns = INT64_MAX;
			return;
		}
	}
}

/* When its timestamp says it was sent, mapped to our clock by the least delay seen; 0: not known. */
static uint64_t
stamp_estimate(struct flow *flow, unsigned d, uint32_t tsval, uint64_t t_poll)
{
	uint32_t delta;
	int64_t sent_ns, offset_ns;

	if (flow->stamp[d].samples++ == 0) {
		flow->stamp[d].t_first = t_poll;
		flow->stamp[d].ts_first = tsval;
		return 0;
	}
	if (flow->stamp[d].tick_ns == 0) {
		stamp_learn(flow, d, tsval, t_poll);
		return 0;
	}
	delta = tsval - flow->stamp[d].ts_first;
	sent_ns = (int64_t)delta * flow->stamp[d].tick_ns;
	offset_ns = (int64_t)(t_poll - flow->stamp[d].t_first) - sent_ns;
	if (offset_ns < flow->stamp[d].offset_min_ns)
		flow->stamp[d].offset_min_ns = offset_ns;
	return flow->stamp[d].t_first + (uint64_t)(sent_ns + flow->stamp[d].offset_min_ns);
}

void
stream_arrival(struct step *step, const struct bs_arrival *arrival)
{
	struct bs_tracked *tracked = step->tracked;
	const struct bs_packet *packet = step->packet;
	uint64_t low = arrival->t_low, estimate = 0;
	uint32_t tick;

	if (arrival->exact || low >= arrival->t_poll) {
		tracked->t_arrival = arrival->exact ? low : arrival->t_poll;
		tracked->quality = BS_QUALITY_EXACT;
		return;
	}
	if (step->flow->t_last > low && step->flow->t_last < arrival->t_poll)
		low = step->flow->t_last;
	if (packet->tcp_options & BS_TCPOPT_TIMESTAMP)
		estimate = stamp_estimate(step->flow, step->d, packet->tsval, arrival->t_poll);
	tick = step->flow->stamp[step->d].tick_ns;
	if (estimate != 0 && arrival->t_poll - low > tick) {
		estimate += tick / 2;
		tracked->t_arrival = estimate < low ? low
			: estimate > arrival->t_poll ? arrival->t_poll
						     : estimate;
		tracked->quality = BS_QUALITY_ESTIMATED;
		tracked->uncertainty_ns = tick / 2;
		return;
	}
	tracked->t_arrival = low + (arrival->t_poll - low) / 2;
	tracked->quality = BS_QUALITY_BOUND;
	tracked->uncertainty_ns = (uint32_t)((arrival->t_poll - low) / 2 > UINT32_MAX
			? UINT32_MAX
			: (arrival->t_poll - low) / 2);
}

/* --- windows ------------------------------------------------------------- */

/* Has the receiver of direction d no room for a segment? Sets or clears t_closed, marks a closure that ends. */
static void
window_look(struct step *step, unsigned d)
{
	struct direction *dir = &step->flow->dir[d];
	uint32_t mss = dir->mss != 0 ? dir->mss : MSS_DEFAULT;
	bool closed = (int32_t)(dir->window_end - dir->high) < (int32_t)mss;
	struct bs_mark mark;
	struct rpc *rpc;

	if (!dir->window_known || closed == (dir->t_closed != 0))
		return;
	if (closed) {
		dir->t_closed = step->t;
		count(step->tracker, BS_TRACK_ZERO_WINDOW, 1);
		return;
	}
	if (step->t > dir->t_closed + PAUSE_MIN_NS && dir->in_message && dir->rpc != NONE) {
		rpc = &step->tracker->rpcs[dir->rpc];
		memset(&mark, 0, sizeof(mark));
		mark.begin = dir->t_closed;
		mark.end = step->t;
		mark.packet = step->packet->number;
		mark.buffer = receiver_buffer(d);
		mark.kind = BS_MARK_WINDOW;
		mark.cause = BS_CAUSE_PAUSE;
		mark.quality = BS_QUALITY_EXACT;
		mark.response = d == FROM_SERVICE;
		rpc_mark(step->tracker, rpc, &mark);
	}
	dir->t_closed = 0;
}

/* --- resends ------------------------------------------------------------- */

/* A copy of bytes that we have let through before. */
static void
resend_seen(struct step *step, uint32_t seq, uint32_t end)
{
	struct bs_tracker *tracker = step->tracker;
	struct flow *flow = step->flow;
	struct direction *dir = &flow->dir[step->d];
	struct rpc *rpc = rpc_at(tracker, flow, step->d, seq);
	bool response = step->d == FROM_SERVICE, last;
	struct mark_node *node;
	struct bs_mark mark;
	uint32_t at;

	step->tracked->resend = 1;
	if (!seq_before(dir->acked, end)) {
		count(tracker, BS_TRACK_SPURIOUS, 1);
		if (rpc != NULL)
			rpc->duplicates++;
		return;
	}
	count(tracker, BS_TRACK_RETRANSMISSIONS, 1);
	if (rpc == NULL)
		return;
	rpc->retransmissions++;
	for (at = rpc->marks; at != NONE; at = tracker->marks[at].next) {
		node = &tracker->marks[at];
		if (node->open && node->mark.response == response && !seq_before(node->seq_begin, seq)
			&& seq_before(node->seq_begin, end)) {
			/* our own drop, now made good */
			node->mark.end = step->t;
			node->mark.packet = step->packet->number;
			node->open = 0;
			goto moved;
		}
	}
	memset(&mark, 0, sizeof(mark));
	last = rpc->ended[step->d] && !seq_before(end, rpc->end[step->d]);
	mark.begin = last && rpc->t_departure[step->d] != 0 ? rpc->t_departure[step->d]
		: last						? rpc->t_last[step->d]
								: rpc->t_first[step->d];
	mark.end = step->t;
	mark.packet = step->packet->number;
	mark.buffer = net_buffer(step->d, false);
	mark.kind = BS_MARK_RESEND;
	mark.cause = BS_CAUSE_DROP;
	mark.quality = BS_QUALITY_EXACT;
	mark.response = response;
	node = rpc_mark(tracker, rpc, &mark);
	if (node != NULL) {
		node->seq_begin = seq;
		node->seq_end = end;
	}
moved:
	/* The copy that counts is the last one before the ACK; a request's only if it is not yet answered. */
	if (!rpc->ended[step->d] || (!response && rpc->t_first[FROM_SERVICE] != 0))
		return;
	if (response && rpc->t_first_copy == 0)
		rpc->t_first_copy = rpc->t_last[FROM_SERVICE];
	rpc->t_last[step->d] = step->t;
	if (tracker->config.own_buffers) {
		rpc_departs_again(tracker, flow, rpc, step->d);
		step->tracked->handle.valid = 1;
	} else {
		rpc->t_departure[step->d] = step->t;
	}
}

/* A DSACK (RFC 2883): the receiver had these bytes already, so the resend was for nothing. */
static void
resend_was_spurious(struct step *step, unsigned d, uint32_t begin, uint32_t end)
{
	struct bs_tracker *tracker = step->tracker;
	struct rpc *rpc = rpc_at(tracker, step->flow, d, begin);

	if (rpc == NULL)
		return;
	for (uint32_t at = rpc->marks; at != NONE; at = tracker->marks[at].next) {
		struct mark_node *node = &tracker->marks[at];

		if (node->mark.kind != BS_MARK_RESEND || node->mark.cause != BS_CAUSE_DROP
			|| node->mark.response != (d == FROM_SERVICE)
			|| seq_before(node->seq_begin, begin) || !seq_before(node->seq_begin, end))
			continue;
		count(tracker, BS_TRACK_SPURIOUS, 1);
		node->mark.cause = BS_CAUSE_CONGESTION;
		node->mark.quality = BS_QUALITY_ESTIMATED;
		if (d == FROM_SERVICE && rpc->t_first_copy != 0 && rpc->marks == at) {
			/* the first copy is the one that counted */
			rpc->t_last[d] = rpc->t_first_copy;
			rpc->t_departure[d] = rpc->t_first_copy;
			rpc->t_first_copy = 0;
		}
	}
}

/* --- holes --------------------------------------------------------------- */

static void
hole_keep(struct step *step, uint32_t seq, const uint8_t *data, uint32_t bytes)
{
	struct bs_tracker *tracker = step->tracker;
	struct flow *flow = step->flow;
	uint32_t *link = &flow->hole[step->d].first, at;
	struct chunk *chunk;

	while (bytes > 0) {
		uint32_t n = bytes < CHUNK_BYTES ? bytes : CHUNK_BYTES;

		if (tracker->chunk_free == NONE || flow->hole[step->d].count == CHUNKS_PER_DIRECTION) {
			count(tracker, BS_TRACK_REASSEMBLY_FULL, bytes);
			return;
		}
		while (*link != NONE && seq_before(tracker->chunks[*link].seq, seq))
			link = &tracker->chunks[*link].next;
		at = tracker->chunk_free;
		chunk = &tracker->chunks[at];
		tracker->chunk_free = chunk->next;
		chunk->next = *link;
		*link = at;
		chunk->seq = seq;
		chunk->bytes = n;
		chunk->ack = step->ack;
		chunk->t = step->t;
		chunk->number = step->packet->number;
		chunk->ip_id = step->packet->ip_id;
		chunk->has_tsval = (step->packet->tcp_options & BS_TCPOPT_TIMESTAMP) != 0;
		chunk->tsval = step->packet->tsval;
		memcpy(chunk->data, data, n);
		flow->hole[step->d].count++;
		seq += n;
		data += n;
		bytes -= n;
	}
}

static void
deliver(struct step *step, uint32_t seq, const uint8_t *data, uint32_t bytes)
{
	struct direction *dir = &step->flow->dir[step->d];
	uint32_t old = dir->next - seq;

	if (old >= bytes)
		return;
	message_bytes(step, data + old, bytes - old);
}

/* Gives on what has become contiguous behind a filled (or given up) hole. */
static void
hole_drain(struct step *step)
{
	struct bs_tracker *tracker = step->tracker;
	struct flow *flow = step->flow;
	const struct step saved = *step;
	uint32_t at;

	while ((at = flow->hole[step->d].first) != NONE) {
		struct chunk *chunk = &tracker->chunks[at];

		if (seq_before(flow->dir[step->d].next, chunk->seq))
			break;
		step->t = chunk->t;
		step->t_release = saved.from_chunk || saved.t < chunk->t ? chunk->t : saved.t;
		step->number = chunk->number;
		step->ack = chunk->ack;
		step->shim_id = 0;
		step->from_chunk = true;
		deliver(step, chunk->seq, chunk->data, chunk->bytes);
		flow->hole[step->d].first = chunk->next;
		flow->hole[step->d].count--;
		chunk->next = tracker->chunk_free;
		tracker->chunk_free = at;
	}
	*step = saved;
}

/* The packet in hand fills a hole whose bytes we never saw: late, or lost before us and resent? */
static void
hole_filled(struct step *step, uint32_t seq, const struct chunk *behind)
{
	struct bs_tracker *tracker = step->tracker;
	const struct bs_packet *packet = step->packet;
	struct rpc *rpc = rpc_at(tracker, step->flow, step->d, seq);
	bool older = false;
	struct bs_mark mark;

	if (behind->has_tsval && (packet->tcp_options & BS_TCPOPT_TIMESTAMP)
		&& behind->tsval != packet->tsval)
		older = (int32_t)(packet->tsval - behind->tsval) < 0;
	else if (packet->tuple.ip_version == 4)
		older = (int16_t)(packet->ip_id - behind->ip_id) < 0;
	count(tracker, older ? BS_TRACK_OUT_OF_ORDER : BS_TRACK_RETRANSMISSIONS, 1);
	if (rpc == NULL)
		return;
	if (older)
		rpc->reordered++;
	else
		rpc->retransmissions++;
	memset(&mark, 0, sizeof(mark));
	mark.begin = behind->t;
	mark.end = step->t;
	mark.packet = packet->number;
	mark.buffer = older ? receiver_buffer(step->d) : net_buffer(step->d, true);
	mark.kind = older ? BS_MARK_DISORDER : BS_MARK_RESEND;
	mark.cause = older ? BS_CAUSE_DISORDER : BS_CAUSE_DROP;
	mark.quality = BS_QUALITY_ESTIMATED;
	mark.response = step->d == FROM_SERVICE;
	rpc_mark(tracker, rpc, &mark);
	if (rpc->t_first[step->d] > behind->t)
		rpc->t_first[step->d] = behind->t;
}

/* What stands before the first chunk will not come: it was ACKed, so we just did not see it. */
static void
hole_give_up(struct step *step)
{
	struct flow *flow = step->flow;
	struct direction *dir = &flow->dir[step->d];
	uint32_t at = flow->hole[step->d].first;
	uint32_t to = at != NONE ? step->tracker->chunks[at].seq : dir->acked;

	if (!seq_before(dir->next, to))
		return;
	count(step->tracker, BS_TRACK_CAPTURE_GAPS, 1);
	flow->hole[step->d].gap_end = to;
	message_gap(step, to - dir->next);
	if (seq_before(dir->high, to))
		dir->high = to;
	hole_drain(step);
}

void
stream_give_up_holes(struct bs_tracker *tracker, struct flow *flow, uint64_t t)
{
	struct bs_packet none = {.t_ns = t};
	struct bs_tracked tracked = {0};

	for (unsigned d = 0; d < 2; d++) {
		struct step step = {.tracker = tracker, .flow = flow, .packet = &none, .tracked = &tracked,
			.d = d, .t = t, .t_release = t, .from_chunk = true};

		for (unsigned i = 0; flow->hole[d].first != NONE && i <= CHUNKS_PER_DIRECTION; i++)
			hole_give_up(&step);
	}
}

/* --- data ---------------------------------------------------------------- */

/* Payload from the first byte not yet seen, in order; what the capture left out is a gap. */
static void
data_in_order(struct step *step, const struct bs_piece *pieces, unsigned piece_count)
{
	const struct bs_packet *packet = step->packet;
	struct direction *dir = &step->flow->dir[step->d];
	uint32_t end = step->first_seq + packet->payload_len, at = step->first_seq;

	deliver(step, at, packet->data + packet->payload, packet->payload_cap);
	at += packet->payload_cap;
	for (unsigned i = 0; i < piece_count; i++) {
		deliver(step, at, pieces[i].data, pieces[i].bytes);
		at += pieces[i].bytes;
	}
	if (seq_before(dir->next, end))
		message_gap(step, end - dir->next);
}

static bool
is_duplicate(const struct step *step, uint32_t end)
{
	const struct bs_packet *packet = step->packet;
	const struct flow *flow = step->flow;

	return packet->tuple.ip_version == 4 && packet->ip_id != 0
		&& packet->ip_id == flow->ip_id_last[step->d] && end == flow->dir[step->d].high
		&& step->t < flow->t_last + DUPLICATE_NS;
}

static void
stream_data(struct step *step, const struct bs_piece *pieces, unsigned piece_count)
{
	const struct bs_packet *packet = step->packet;
	struct flow *flow = step->flow;
	struct direction *dir = &flow->dir[step->d];
	uint32_t seq = packet->seq, end = seq + packet->payload_len, behind;
	struct chunk first;

	step->first_seq = seq;
	if (!dir->started) {
		dir->started = 1;
		dir->next = dir->high = dir->acked = seq;
		dir->resync = 1;
	}
	if (packet->payload_len <= 1 && end == dir->next && !dir->in_message && dir->acked == dir->next) {
		count(step->tracker, BS_TRACK_KEEPALIVES, 1); /* RFC 9293 3.8.4 */
		return;
	}
	if (!seq_before(dir->next, end)) {
		if (is_duplicate(step, end)) {
			count(step->tracker, BS_TRACK_DUPLICATES, 1);
			return;
		}
		resend_seen(step, seq, end);
		return;
	}
	if (packet->payload_len > dir->mss)
		dir->mss = (uint16_t)(packet->payload_len > 1460 ? 1460 : packet->payload_len);
	if (seq_before(dir->next, seq)) {
		if (seq_before(dir->high, end))
			dir->high = end;
		hole_keep(step, seq, packet->data + packet->payload, packet->payload_cap);
		for (unsigned i = 0, at = seq + packet->payload_cap; i < piece_count; i++) {
			hole_keep(step, at, pieces[i].data, pieces[i].bytes);
			at += pieces[i].bytes;
		}
		return;
	}
	step->tracked->new_data = seq == dir->high && seq == dir->next;
	if (seq == dir->next)
		message_packet_begins(step);
	if (seq_before(dir->high, end))
		dir->high = end;
	behind = flow->hole[step->d].first;
	if (behind == NONE) {
		data_in_order(step, pieces, piece_count);
		return;
	}
	memcpy(&first, &step->tracker->chunks[behind], offsetof(struct chunk, data));
	data_in_order(step, pieces, piece_count);
	hole_filled(step, seq, &first);
	hole_drain(step);
}

/* --- ACKs and the handshake ---------------------------------------------- */

static void
stream_ack(struct step *step)
{
	const struct bs_packet *packet = step->packet;
	struct flow *flow = step->flow;
	struct direction *other = &flow->dir[!step->d];
	uint8_t scale = flow->dir[step->d].wscale_known && other->wscale_known
		? flow->dir[step->d].wscale : 0;
	bool scale_known = flow->dir[step->d].wscale_known || packet->window == 0;

	if (!other->started) {
		other->started = 1;
		other->resync = 1;
		other->next = other->high = other->acked = packet->ack;
	}
	if (packet->sack_count > 0 && !seq_before(packet->ack, packet->sack[0].end))
		resend_was_spurious(step, !step->d, packet->sack[0].begin, packet->sack[0].end);
	if (seq_before(other->acked, packet->ack)) {
		other->acked = packet->ack;
		if (seq_before(other->next, packet->ack) && flow->gap_patience == 0)
			flow->gap_patience = GAP_PATIENCE + 1;
	}
	if (scale_known && !seq_before(packet->ack, other->acked)
		&& !(packet->tcp_flags & (BS_TCP_SYN | BS_TCP_RST))) {
		other->window_known = 1;
		other->window_end = packet->ack + ((uint32_t)packet->window << scale);
		window_look(step, !step->d);
	}
}

static void
stream_syn(struct step *step)
{
	const struct bs_packet *packet = step->packet;
	struct flow *flow = step->flow;
	struct direction *dir = &flow->dir[step->d];

	if (dir->started && dir->next == packet->seq + 1)
		return; /* resent */
	if (!(packet->tcp_flags & BS_TCP_ACK)) {
		if (dir->started) {
			rpc_end_all(step->tracker, flow, BS_OUTCOME_UNANSWERED, step->t);
			for (unsigned d = 0; d < 2; d++) {
				flow_drop_chunks(step->tracker, flow, d);
				flow_reset_stream(flow, d);
			}
			memset(&flow->frame, 0, sizeof(flow->frame));
			memset(&flow->tagging, 0, sizeof(flow->tagging));
		}
		flow->state = FLOW_OPEN;
		flow->t_syn = step->t;
		flow->connect_ns = 0;
	} else if (flow->t_syn != 0 && flow->connect_ns == 0 && step->t > flow->t_syn) {
		flow->connect_ns = step->t - flow->t_syn;
	}
	if (dir->started)
		flow_reset_stream(flow, step->d); /* SYN-ACK with another sequence number */
	dir->started = 1;
	dir->next = dir->high = dir->acked = packet->seq + 1;
	dir->wscale_known = 1;
	dir->wscale = packet->tcp_options & BS_TCPOPT_WSCALE ? packet->wscale : 0;
}

void
stream_close(struct step *step, bool reset)
{
	struct flow *flow = step->flow;

	message_close(step);
	if (!reset) {
		struct direction *dir = &flow->dir[step->d];
		uint32_t fin = step->packet->seq + step->packet->payload_len;

		if (!dir->fin && dir->next == fin) {
			dir->next++; /* FIN takes a sequence number */
			dir->high = dir->next;
		}
		dir->fin = 1;
		if (!flow->dir[!step->d].fin)
			return;
	}
	flow->state = FLOW_CLOSED;
	if (reset) {
		stream_give_up_holes(step->tracker, flow, step->t);
		rpc_end_all(step->tracker, flow, BS_OUTCOME_RESET, step->t);
	}
}

void
stream_packet(struct step *step, const struct bs_piece *pieces, unsigned piece_count)
{
	const struct bs_packet *packet = step->packet;
	struct flow *flow = step->flow;

	if (packet->tcp_flags & BS_TCP_SYN)
		stream_syn(step);
	if (packet->tcp_flags & BS_TCP_ACK)
		stream_ack(step);
	if (packet->payload_len > 0 && !(packet->tcp_flags & BS_TCP_SYN)) {
		stream_data(step, pieces, piece_count);
		window_look(step, step->d);
	}
	if (flow->gap_patience > 0 && --flow->gap_patience == 0) {
		struct step gap = *step;

		for (gap.d = 0; gap.d < 2; gap.d++) {
			if (seq_before(flow->dir[gap.d].next, flow->dir[gap.d].acked))
				hole_give_up(&gap);
		}
	}
	if (packet->tcp_flags & (BS_TCP_FIN | BS_TCP_RST))
		stream_close(step, packet->tcp_flags & BS_TCP_RST);
	flow->ip_id_last[step->d] = packet->ip_id;
}
