/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP as seen from the middle: which bytes are new, what stands behind a hole,
 * what was ACKed, how a connection begins and ends. Facts become marks on the
 * RPC they held up (design section 6).
 */
#include "track.h"

#include <string.h>

#define DUPLICATE_NS 1000000ull /* the same packet twice within this is a copy of the capture's */
#define COPY_NS 100000000ull	/* if all of it says so; below any retransmission timeout */
#define MSS_MAX 1460u		/* larger payloads are segments merged on their way */

uint16_t
stream_net_buffer(unsigned d, bool before)
{
	if (d == TO_SERVICE)
		return before ? BS_BUFFER_NET_REQUEST_BEFORE : BS_BUFFER_NET_REQUEST_AFTER;
	return before ? BS_BUFFER_NET_RESPONSE_BEFORE : BS_BUFFER_NET_RESPONSE_AFTER;
}

uint16_t
stream_receiver_buffer(unsigned d)
{
	return d == TO_SERVICE ? BS_BUFFER_SERVER_SOCKET_RX : BS_BUFFER_CLIENT_SOCKET_RX;
}

/* --- data ---------------------------------------------------------------- */

/* Payload from the first byte not yet seen, in order; what the capture left out is a gap. */
static void
data_in_order(struct step *step, const struct bs_piece *pieces, unsigned piece_count)
{
	const struct bs_packet *packet = step->packet;
	struct direction *dir = &step->flow->dir[step->d];
	uint32_t end = step->first_seq + packet->payload_len, at = step->first_seq;

	hole_deliver(step, at, packet->data + packet->payload, packet->payload_cap);
	at += packet->payload_cap;
	for (unsigned i = 0; i < piece_count; i++) {
		hole_deliver(step, at, pieces[i].data, pieces[i].bytes);
		at += pieces[i].bytes;
	}
	if (seq_before(dir->next, end))
		message_gap(step, end - dir->next);
}

/*
 * The last bytes once more, in the same packet: with its IP ID, or where there is
 * none its timestamp, soon; or both, within less than any timeout. A sender makes
 * a new packet of what it sends again, and not within the tick.
 */
bool
stream_is_duplicate(const struct step *step, uint32_t high)
{
	const struct bs_packet *packet = step->packet;
	const struct flow *flow = step->flow;
	const struct direction *dir = &flow->dir[step->d];
	const bool has_id = packet->tuple.ip_version == 4 && packet->ip_id != 0;
	const bool same_tick = (packet->tcp_options & BS_TCPOPT_TIMESTAMP) &&
			       packet->tsval == flow->tsval_new[step->d];

	if (high != dir->high || dir->t_progress == 0)
		return false;
	if (has_id && packet->ip_id != flow->ip_id_new[step->d])
		return false;
	if (!has_id && !same_tick)
		return false;
	return step->t < dir->t_progress + (has_id && same_tick ? COPY_NS : DUPLICATE_NS);
}

void
stream_progressed(struct step *step)
{
	struct flow *flow = step->flow;

	flow->dir[step->d].t_progress = step->t;
	flow->ip_id_new[step->d] = step->packet->ip_id;
	flow->tsval_new[step->d] = step->packet->tsval;
}

/* A stream that we join: its first byte is somewhere in a message, and messages came before. */
static void
join_stream(struct flow *flow, unsigned d, uint32_t seq)
{
	struct direction *dir = &flow->dir[d];

	dir->started = 1;
	dir->next = dir->high = dir->acked = seq;
	dir->resync = 1;
	if (d == TO_SERVICE)
		flow->request_gap = 1;
}

/* RFC 9293 3.8.4: an old byte, or none, in front of what is expected, to make the other end answer.
 */
static bool
is_keepalive(const struct step *step)
{
	const struct direction *dir = &step->flow->dir[step->d];
	const struct bs_packet *packet = step->packet;

	return dir->started && packet->payload_len <= 1 && packet->seq == dir->next - 1 &&
	       dir->acked == dir->next && !dir->in_message &&
	       !(packet->tcp_flags & (BS_TCP_SYN | BS_TCP_FIN | BS_TCP_RST));
}

/* Bytes never seen before, of which the first is next in order. */
static void
data_next(struct step *step, const struct bs_piece *pieces, unsigned piece_count)
{
	struct flow *flow = step->flow;
	struct direction *dir = &flow->dir[step->d];
	struct round_trip *round_trip = &flow->round_trip[step->d];
	const struct hole *hole = &flow->hole[step->d];
	const uint32_t end = step->first_seq + step->packet->payload_len;
	const uint32_t behind = hole->first;
	struct chunk first;

	step->tracked->new_data = step->first_seq == dir->high && step->first_seq == dir->next;
	if (step->first_seq == dir->next)
		message_packet_begins(step);
	if (seq_before(dir->high, end))
		dir->high = end;
	if (round_trip->t_sent == 0) {
		round_trip->t_sent = step->t;
		round_trip->seq = end;
	}
	window_released(step, end);
	stream_progressed(step);
	if (behind == NONE || !seq_before(dir->next, step->tracker->chunks[behind].seq)) {
		data_in_order(step, pieces, piece_count);
		resend_missed(step);
	} else {
		memcpy(&first, &step->tracker->chunks[behind], offsetof(struct chunk, data));
		data_in_order(step, pieces, piece_count);
		if (!resend_missed(step))
			resend_filled(step, &first);
	}
	hole_drain(step);
}

/* A response that ACKs request bytes which may yet come, in the wrong order, waits for them. */
static bool
is_ahead_of_request(const struct step *step)
{
	const struct flow *flow = step->flow;

	return step->d == FROM_SERVICE && flow->hole[TO_SERVICE].patience > 0 &&
	       seq_before(flow->dir[TO_SERVICE].next, step->packet->ack);
}

static void
stream_data(struct step *step, const struct bs_piece *pieces, unsigned piece_count)
{
	const struct bs_packet *packet = step->packet;
	struct flow *flow = step->flow;
	struct direction *dir = &flow->dir[step->d];
	const uint32_t seq = step->first_seq, end = seq + packet->payload_len;

	if (!dir->started)
		join_stream(flow, step->d, seq);
	if (!seq_before(dir->next, end) ||
		hole_covers(step->tracker, &flow->hole[step->d], seq, end)) {
		if (stream_is_duplicate(step, end))
			count(step->tracker, BS_TRACK_DUPLICATES, 1);
		else
			resend_seen(step, seq, end);
		return;
	}
	if (step->d == FROM_SERVICE)
		service_moved(step);
	if (packet->payload_len > dir->mss)
		dir->mss =
			(uint16_t)(packet->payload_len > MSS_MAX ? MSS_MAX : packet->payload_len);
	if (!seq_before(dir->next, seq) && !is_ahead_of_request(step)) {
		data_next(step, pieces, piece_count);
		return;
	}
	step->tracked->gap = seq_before(dir->high, seq);
	if (seq_before(dir->high, end))
		dir->high = end;
	stream_progressed(step);
	hole_keep(step, pieces, piece_count);
}

/* --- ACKs ---------------------------------------------------------------- */

/* The ACK of a handshake stands where a stream begins: nothing came before. */
static void
join_at_ack(struct step *step, unsigned d)
{
	const struct bs_packet *packet = step->packet;
	struct flow *flow = step->flow;
	const struct direction *own = &flow->dir[step->d];

	join_stream(flow, d, packet->ack);
	if (!(packet->tcp_flags & BS_TCP_SYN) &&
		!(flow->isn_known[step->d] && own->next == flow->isn[step->d] + 1 &&
			packet->seq == own->next))
		return;
	flow->dir[d].resync = 0;
	flow->request_gap = 0;
}

/*
 * Times one stretch of bytes after the other until it is ACKed. The first must be
 * the handshake's, which is ACKed at once: if all that is known are delayed
 * ACKs, the least of them says nothing.
 */
static void
round_trip_look(struct step *step, unsigned d)
{
	const struct flow *flow = step->flow;
	struct round_trip *round_trip = &step->flow->round_trip[d];
	const bool handshake = flow->isn_known[d] && round_trip->seq == flow->isn[d] + 1;
	uint64_t ns;

	if (round_trip->t_sent == 0 || seq_before(step->packet->ack, round_trip->seq))
		return;
	ns = step->t > round_trip->t_sent ? step->t - round_trip->t_sent : 0;
	round_trip->t_sent = 0;
	if (ns == 0 || ns > UINT32_MAX)
		return;
	if (handshake || (round_trip->min_ns != 0 && ns < round_trip->min_ns))
		round_trip->min_ns = (uint32_t)ns;
}

static void
stream_ack(struct step *step)
{
	const struct bs_packet *packet = step->packet;
	struct flow *flow = step->flow;
	const unsigned d = !step->d; /* whose bytes are ACKed */
	struct direction *dir = &flow->dir[d];
	struct hole *hole = &flow->hole[d];

	if (!dir->started)
		join_at_ack(step, d);
	resend_judge(step, d);
	round_trip_look(step, d);
	if (hole->first != NONE)
		hole->acks++;
	if (seq_before(dir->acked, packet->ack))
		dir->acked = packet->ack;
	if (seq_before(dir->next, dir->acked) && hole->patience == 0) {
		hole->patience = GAP_PATIENCE + 1;
		hole->t_acked = step->t;
	}
	window_advertised(step);
}

/* --- beginning and end --------------------------------------------------- */

static void
begin_stream(struct flow *flow, unsigned d, uint32_t isn, uint8_t wscale, uint64_t t)
{
	struct direction *dir = &flow->dir[d];

	flow->round_trip[d].t_sent = t;
	flow->round_trip[d].seq = isn + 1;
	dir->started = 1;
	dir->next = dir->high = isn + 1;
	dir->acked = isn;
	dir->wscale = wscale;
	flow->isn[d] = isn;
	flow->isn_known[d] = 1;
}

/* The tuple is used again, and who is the client may be known better now. */
static void
begin_again(struct step *step)
{
	struct flow *flow = step->flow;

	flow_reopen(step->tracker, flow, step->packet, step->t);
	step->d = step->packet->direction != flow->client_end;
	step->tracked->direction = (uint8_t)step->d;
	step->tracked->service = flow->service;
}

/*
 * A SYN on an open connection is a late copy, or of a new one, or forged (RFC
 * 5961 4): it is believed when the other end answers it, or when data follows.
 */
static void
stream_syn(struct step *step)
{
	const struct bs_packet *packet = step->packet;
	struct flow *flow = step->flow;
	struct direction *dir = &flow->dir[step->d];
	uint8_t wscale = packet->tcp_options & BS_TCPOPT_WSCALE ? packet->wscale : WSCALE_NONE;

	if (flow->isn_known[step->d] && flow->isn[step->d] == packet->seq) {
		flow->round_trip[step->d].t_sent = 0;
		return; /* resent */
	}
	if (!(packet->tcp_flags & BS_TCP_ACK)) {
		if (flow->state == FLOW_OPEN && (dir->started || flow->dir[!step->d].started)) {
			if (!flow->syn_waits || flow->syn_seq != packet->seq)
				flow->t_syn = step->t;
			flow->syn_waits = 1;
			flow->syn_seq = packet->seq;
			flow->syn_wscale = wscale;
			return;
		}
		if (flow->state == FLOW_CLOSED)
			begin_again(step);
		flow->t_syn = step->t;
	} else if (flow->syn_waits && packet->ack == flow->syn_seq + 1) {
		uint64_t t_syn = flow->t_syn;
		uint32_t isn = flow->syn_seq;
		uint8_t syn_wscale = flow->syn_wscale;

		begin_again(step);
		begin_stream(flow, !step->d, isn, syn_wscale, t_syn);
		flow->t_syn = t_syn;
	} else if (dir->started &&
		   (!flow->isn_known[step->d] || dir->next != flow->isn[step->d] + 1)) {
		return; /* it answers nothing, and data has come */
	}
	if ((packet->tcp_flags & BS_TCP_ACK) && flow->t_syn != 0 && flow->connect_ns == 0 &&
		step->t > flow->t_syn)
		flow->connect_ns = step->t - flow->t_syn;
	begin_stream(flow, step->d, packet->seq, wscale, step->t);
}

/* The end of step->d's stream, once all before it has been delivered. */
static void
stream_end(struct step *step)
{
	struct flow *flow = step->flow;
	struct direction *dir = &flow->dir[step->d];

	if (!dir->fin || dir->ended || dir->next != flow->hole[step->d].fin_seq)
		return;
	dir->ended = 1;
	message_close(step);
	dir->next++; /* FIN takes a sequence number */
	if (seq_before(dir->high, dir->next))
		dir->high = dir->next;
	if (flow->dir[!step->d].ended)
		flow_closed(step->tracker, flow);
}

/* For what is delivered on its own, not with the packet in hand. */
static struct step
step_apart(const struct step *step, unsigned d, uint64_t t, struct bs_tracked *scratch)
{
	struct step apart = *step;

	memset(scratch, 0, sizeof(*scratch));
	apart.tracked = scratch;
	apart.d = d;
	apart.t = apart.t_release = t;
	apart.shim_id = 0;
	apart.detached = true;
	apart.in_first = false;
	return apart;
}

/* Bytes that were ACKed and have not come for a while were not captured: they came when they were
 * ACKed. */
static void
stream_gaps(struct step *step)
{
	struct flow *flow = step->flow;
	struct bs_tracked scratch;

	for (unsigned d = 0; d < 2; d++) {
		struct hole *hole = &flow->hole[d];

		if (hole->patience == 0)
			continue;
		if (!seq_before(flow->dir[d].next, flow->dir[d].acked)) {
			hole->patience = 0;
		} else if (--hole->patience == 0) {
			struct step apart = step_apart(step, d, hole->t_acked, &scratch);

			hole_give_up(&apart, flow->dir[d].acked);
			stream_end(&apart);
		}
	}
	if (flow->hole[FROM_SERVICE].first != NONE) {
		struct step apart = step_apart(step, FROM_SERVICE, step->t, &scratch);

		hole_drain(&apart);
		stream_end(&apart);
	}
}

void
stream_give_up_holes(struct bs_tracker *tracker, struct flow *flow, uint64_t t)
{
	struct bs_packet none = {.t_ns = t};
	struct bs_tracked scratch;
	struct step step = {.tracker = tracker, .flow = flow, .packet = &none};

	for (unsigned d = 0; d < 2; d++) {
		struct hole *hole = &flow->hole[d];
		struct step apart =
			step_apart(&step, d, hole->patience > 0 ? hole->t_acked : t, &scratch);

		hole->patience = 0;
		while (hole->first != NONE) {
			const uint32_t at = hole->first;
			const struct chunk *chunk = &tracker->chunks[at];

			apart.t = apart.t_release = chunk->t;
			hole_give_up(&apart, chunk->seq);
			if (hole->first == at) /* behind the FIN: of no stream */
				hole_free_chunks(tracker, flow, d);
		}
		if (seq_before(flow->dir[d].next, flow->dir[d].acked))
			hole_give_up(&apart, flow->dir[d].acked);
	}
}

static void
stream_reset(struct step *step)
{
	struct flow *flow = step->flow;

	stream_give_up_holes(step->tracker, flow, step->t);
	rpc_end_all(step->tracker, flow, BS_OUTCOME_RESET, step->t);
	flow_closed(step->tracker, flow);
}

void
stream_packet(struct step *step, const struct bs_piece *pieces, unsigned piece_count)
{
	const struct bs_packet *packet = step->packet;
	struct flow *flow = step->flow;

	step->first_seq = packet->seq + ((packet->tcp_flags & BS_TCP_SYN) != 0);
	if (packet->tcp_flags & BS_TCP_SYN)
		stream_syn(step);
	else if (flow->syn_waits && packet->payload_len > 0 && packet->seq == flow->syn_seq + 1 &&
		 packet->seq != flow->dir[step->d].next) {
		uint32_t isn = flow->syn_seq;

		begin_again(step);
		begin_stream(flow, step->d, isn, WSCALE_UNKNOWN, step->t);
	}
	if (packet->tcp_flags & BS_TCP_ACK) {
		stream_ack(step);
		if (flow->done_first != NONE)
			rpc_settle(
				step->tracker, flow, step->t); /* room for what the packet brings */
	}
	unseen_look(step);
	if (is_keepalive(step)) {
		count(step->tracker, BS_TRACK_KEEPALIVES, 1);
	} else if (packet->payload_len > 0) {
		stream_data(step, pieces, piece_count);
		unseen_resent(step);
		window_look(step, step->d);
	}
	if (packet->tcp_flags & BS_TCP_FIN) {
		flow->dir[step->d].fin = 1;
		flow->hole[step->d].fin_seq = step->first_seq + packet->payload_len;
	}
	stream_end(step);
	stream_gaps(step);
	if (packet->tcp_flags & BS_TCP_RST)
		stream_reset(step);
	flow->ip_id_last[step->d] = packet->ip_id;
}
