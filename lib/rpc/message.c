/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From bytes in order to messages, from messages to RPCs: runs the framer of a
 * flow, pairs what it finds, and keeps its feet when bytes are missing or make
 * no sense.
 */
#include "track.h"

#include <string.h>

static const struct bs_framer *
opaque_framer(const struct bs_tracker *tracker)
{
	return &tracker->config.framers->list[BS_PROTOCOL_OPAQUE];
}

/* --- what the packet carries, for the shim -------------------------------- */

void
message_packet_begins(struct step *step)
{
	const struct direction *dir = &step->flow->dir[step->d];
	struct bs_tracked *tracked = step->tracked;

	step->in_first = true;
	tracked->remaining = BS_SHIM_REMAINING_UNKNOWN;
	if (!dir->in_message || dir->rpc == NONE)
		return;
	tracked->rpc_id = step->tracker->rpcs[dir->rpc].id;
	tracked->rpc = dir->rpc;
	if (dir->skip_ends && dir->skip < BS_SHIM_REMAINING_UNKNOWN)
		tracked->remaining = (uint32_t)dir->skip;
}

static void
first_message_size(struct step *step, uint64_t bytes_to_come)
{
	uint64_t remaining = step->flow->dir[step->d].next - step->first_seq + bytes_to_come;

	if (step->in_first && remaining < BS_SHIM_REMAINING_UNKNOWN)
		step->tracked->remaining = (uint32_t)remaining;
}

/* --- pairing ------------------------------------------------------------- */

/*
 * After bytes of responses went missing, order alone does not tell what the
 * next response answers. A request says, by its ACK, which response bytes its
 * sender had: those before cannot be its answer. So the response answers the
 * last request whose ACK does not lie behind it, if that is one alone and no
 * request went missing after it; the earlier ones were answered in the gap.
 */
static struct rpc *
pair_after_gap(struct step *step, uint32_t response_begin)
{
	struct bs_tracker *tracker = step->tracker;
	struct flow *flow = step->flow;
	struct rpc *candidate = NULL;
	unsigned alike = 0;

	for (uint32_t at = flow->rpc_open; at != NONE; at = tracker->rpcs[at].next) {
		struct rpc *rpc = &tracker->rpcs[at];

		if (rpc->state == RPC_DONE || seq_before(response_begin, rpc->ack_at_request))
			continue;
		alike = candidate != NULL && rpc->ack_at_request == candidate->ack_at_request
			? alike + 1 : 1;
		candidate = rpc;
	}
	if (candidate == NULL)
		return NULL;
	if (alike > 1 || seq_before(flow->dir[TO_SERVICE].next, step->ack)
		|| (flow->hole[TO_SERVICE].gap_end != 0
			&& seq_before(candidate->end[TO_SERVICE], flow->hole[TO_SERVICE].gap_end)))
		candidate = NULL;
	for (uint32_t at = flow->rpc_open; at != NONE; at = tracker->rpcs[at].next) {
		struct rpc *rpc = &tracker->rpcs[at];

		if (rpc == candidate || seq_before(response_begin, rpc->ack_at_request))
			break;
		if (rpc->state != RPC_DONE) {
			rpc->gaps++;
			rpc->outcome = BS_OUTCOME_CUT;
			rpc->state = RPC_DONE;
			rpc->end[FROM_SERVICE] = response_begin;
		}
	}
	return candidate;
}

static struct rpc *
pair_response(struct step *step, const struct bs_frame *frame)
{
	struct bs_tracker *tracker = step->tracker;
	struct flow *flow = step->flow;
	struct direction *dir = &flow->dir[FROM_SERVICE];

	if (flow->framer->ops->pairing == BS_PAIR_BY_ID && frame->has_id) {
		dir->after_gap = 0;
		return rpc_find_key(tracker, flow, frame->id);
	}
	if (dir->after_gap) {
		dir->after_gap = 0;
		return pair_after_gap(step, dir->message_begin);
	}
	return flow->rpc_open == NONE ? NULL : &tracker->rpcs[flow->rpc_open];
}

static void
response_begins(struct step *step, const struct bs_frame *frame)
{
	struct bs_tracker *tracker = step->tracker;
	struct direction *dir = &step->flow->dir[step->d];
	struct rpc *rpc = pair_response(step, frame);

	if (rpc == NULL || rpc->state == RPC_DONE) {
		count(tracker, BS_TRACK_ORPHANS, 1);
		emit_orphan(step);
		return;
	}
	dir->rpc = index_of_rpc(tracker, rpc);
	if (rpc->t_first[FROM_SERVICE] == 0) {
		rpc->t_first[FROM_SERVICE] = dir->t_message;
		rpc->begin[FROM_SERVICE] = dir->message_begin;
	}
	if (rpc->state == RPC_REQUEST)
		rpc->early = 1;
	else
		rpc->state = RPC_RESPONSE;
	if (frame->has_status) {
		rpc->has_status = 1;
		rpc->status = frame->status;
	}
}

static void
request_begins(struct step *step, const struct bs_frame *frame)
{
	struct bs_tracker *tracker = step->tracker;
	struct direction *dir = &step->flow->dir[step->d];
	char operation[BS_FRAME_LABEL_BYTES];
	struct rpc *rpc;

	if (step->flow->tuple.transport == 17 && frame->has_id) {
		rpc = rpc_find_key(tracker, step->flow, frame->id);
		if (rpc != NULL && rpc->state == RPC_WAITING) {
			rpc->retransmissions++; /* the query asked again: one RPC */
			count(tracker, BS_TRACK_RETRANSMISSIONS, 1);
			return;
		}
	}
	rpc = rpc_make(step, frame->id, frame->has_id);
	if (rpc == NULL)
		return;
	dir->rpc = index_of_rpc(tracker, rpc);
	rpc->oneway = frame->oneway;
	rpc->label_len = frame->label_len < BS_LABEL_BYTES ? frame->label_len : BS_LABEL_BYTES;
	memcpy(rpc->label, frame->label, rpc->label_len);
	bs_operation_template(rpc->label, rpc->label_len, operation, &rpc->operation_hash);
}

static unsigned
role_of(const struct step *step, const struct bs_frame *frame)
{
	if (frame->role != BS_ROLE_BY_DIRECTION)
		return frame->role;
	return step->d == TO_SERVICE ? BS_ROLE_REQUEST : BS_ROLE_RESPONSE;
}

static void
message_head(struct step *step, const struct bs_frame *frame)
{
	struct bs_tracker *tracker = step->tracker;
	struct flow *flow = step->flow;
	struct direction *dir = &flow->dir[step->d];
	struct rpc *rpc;

	switch (role_of(step, frame)) {
	case BS_ROLE_REQUEST:
		if (step->d == TO_SERVICE)
			request_begins(step, frame);
		break;
	case BS_ROLE_RESPONSE:
		if (step->d == FROM_SERVICE)
			response_begins(step, frame);
		break;
	case BS_ROLE_INTERIM:
		if (flow->rpc_open != NONE)
			tracker->rpcs[flow->rpc_open].interims++;
		break;
	case BS_ROLE_PUSH:
		service_of(tracker, flow)->counters.pushed++;
		break;
	case BS_ROLE_CANCEL:
		rpc = rpc_find_key(tracker, flow, frame->id);
		if (rpc != NULL && rpc->state != RPC_DONE) {
			rpc->outcome = BS_OUTCOME_CANCELLED;
			rpc_message_ended(step, rpc, FROM_SERVICE, flow->dir[FROM_SERVICE].next);
		}
		break;
	}
	if (dir->rpc != NONE && step->in_first && step->tracked->rpc_id == 0) {
		step->tracked->rpc_id = tracker->rpcs[dir->rpc].id;
		step->tracked->rpc = dir->rpc;
	}
}

/* --- bytes --------------------------------------------------------------- */

static void
message_ends(struct step *step)
{
	struct direction *dir = &step->flow->dir[step->d];
	struct rpc *rpc = dir->rpc == NONE ? NULL : &step->tracker->rpcs[dir->rpc];

	first_message_size(step, 0);
	step->in_first = false;
	dir->in_message = 0;
	dir->skip = 0;
	dir->skip_ends = 0;
	dir->rpc = NONE;
	if (rpc != NULL)
		rpc_message_ended(step, rpc, step->d, dir->next);
}

/* The stream stops making sense here: what was in progress is cut, until a message plausibly begins. */
static void
message_lost(struct step *step)
{
	struct flow *flow = step->flow;
	struct direction *dir = &flow->dir[step->d];
	struct rpc *rpc = dir->rpc == NONE ? NULL : &step->tracker->rpcs[dir->rpc];

	if (rpc != NULL) {
		rpc->outcome = BS_OUTCOME_CUT;
		rpc->gaps++;
		message_ends(step);
		if (rpc->state != RPC_DONE)
			rpc_message_ended(step, rpc, FROM_SERVICE, flow->dir[FROM_SERVICE].next);
	}
	dir->in_message = 0;
	dir->skip = 0;
	dir->skip_ends = 0;
	dir->until_close = 0;
	dir->resync = 1;
	dir->after_gap = 1;
	memset(&flow->frame.dir[step->d], 0, sizeof(flow->frame.dir[step->d]));
}

/* Opaque: bytes one way, then bytes the other, is an RPC. */
static void
turn_bytes(struct step *step, uint32_t bytes)
{
	struct bs_tracker *tracker = step->tracker;
	struct flow *flow = step->flow;
	struct direction *dir = &flow->dir[step->d];
	struct rpc *rpc = flow->rpc_open == NONE ? NULL : &tracker->rpcs[flow->rpc_open];

	dir->t_message = step->t;
	dir->message_begin = dir->next;
	dir->next += bytes;
	if (step->d == TO_SERVICE && (rpc == NULL || flow->turn_answered)) {
		if (rpc != NULL)
			rpc_message_ended(step, rpc, FROM_SERVICE, flow->dir[FROM_SERVICE].next);
		flow->turn_answered = 0;
		rpc = rpc_make(step, 0, false);
		if (rpc != NULL)
			bs_operation_template("", 0, rpc->label, &rpc->operation_hash);
	}
	if (rpc == NULL)
		return;
	step->tracked->rpc_id = rpc->id;
	step->tracked->rpc = index_of_rpc(tracker, rpc);
	if (step->d == TO_SERVICE) {
		rpc_message_ended(step, rpc, TO_SERVICE, dir->next);
		return;
	}
	if (!flow->turn_answered) {
		flow->turn_answered = 1;
		rpc->t_first[FROM_SERVICE] = step->t;
		rpc->begin[FROM_SERVICE] = dir->message_begin;
		rpc->state = RPC_RESPONSE;
	}
	rpc->t_last[FROM_SERVICE] = step->t;
	rpc->end[FROM_SERVICE] = dir->next;
	if (tracker->config.own_buffers)
		step->tracked->handle.valid = 1;
	else
		rpc->t_departure[FROM_SERVICE] = step->t;
}

/* True if bytes may be fed: a framer is known and the direction makes sense. */
static bool
message_ready(struct step *step, const uint8_t *data, uint32_t bytes)
{
	struct flow *flow = step->flow;
	struct direction *dir = &flow->dir[step->d];
	const struct bs_framer *framer = flow->framer;

	if (framer == NULL) {
		framer = bs_framers_guess(step->tracker->config.framers,
			flow->tuple.port[!flow->client_end], false, step->d == FROM_SERVICE, data, bytes);
		flow->framer = framer;
		flow->protocol_guessed = 1;
	}
	if (!dir->resync || framer->ops->pairing == BS_PAIR_BY_TURN)
		return true;
	if (framer->ops->probe == NULL
		|| framer->ops->probe(framer, step->d == FROM_SERVICE, data, bytes) == 0)
		return false;
	dir->resync = 0;
	count(step->tracker, BS_TRACK_RESYNCS, 1);
	return true;
}

/* Lets the framer read on; returns the bytes used. */
static uint32_t
message_feed(struct step *step, const uint8_t *data, uint32_t bytes)
{
	struct flow *flow = step->flow;
	struct direction *dir = &flow->dir[step->d];
	struct bs_frame frame;
	uint32_t n;

	if (!dir->in_message) {
		dir->in_message = 1;
		dir->t_message = step->t;
		dir->message_begin = dir->next;
		dir->rpc = NONE;
		if (!step->in_first)
			step->tracked->more = 1;
	}
	memset(&frame, 0, sizeof(frame));
	n = (uint32_t)flow->framer->ops->feed(
		flow->framer, &flow->frame, step->d == FROM_SERVICE, data, bytes, &frame);
	if (frame.flags & BS_FRAME_BAD) {
		count(step->tracker, BS_TRACK_BYTES_UNPARSED, bytes);
		message_lost(step);
		if (flow->protocol_guessed && flow->rpc_first == NONE)
			flow->framer = opaque_framer(step->tracker);
		dir->next += bytes;
		return bytes;
	}
	dir->next += n;
	if (frame.flags & BS_FRAME_HEAD)
		message_head(step, &frame);
	dir->until_close = frame.until_close != 0;
	if (frame.flags & BS_FRAME_SKIP) {
		dir->skip = frame.skip;
		dir->skip_ends = (frame.flags & BS_FRAME_END) != 0;
		if (dir->skip_ends) {
			first_message_size(step, frame.skip);
			if (frame.skip == 0)
				message_ends(step);
		}
	} else if (frame.flags & BS_FRAME_END) {
		message_ends(step);
	}
	return n;
}

void
message_bytes(struct step *step, const uint8_t *data, uint32_t bytes)
{
	struct direction *dir = &step->flow->dir[step->d];

	if (step->d == FROM_SERVICE)
		service_moved(step, dir->rpc == NONE ? NULL : &step->tracker->rpcs[dir->rpc]);
	while (bytes > 0) {
		uint32_t n = bytes;

		if (dir->skip > 0) {
			if (n > dir->skip)
				n = (uint32_t)dir->skip;
			dir->skip -= n;
			dir->next += n;
			if (dir->skip == 0 && dir->skip_ends)
				message_ends(step);
		} else if (dir->until_close) {
			dir->next += n;
		} else if (!message_ready(step, data, bytes)) {
			count(step->tracker, BS_TRACK_BYTES_UNPARSED, bytes);
			dir->next += n;
		} else if (step->flow->framer->ops->pairing == BS_PAIR_BY_TURN) {
			turn_bytes(step, n);
		} else {
			n = message_feed(step, data, bytes);
		}
		data += n;
		bytes -= n;
	}
}

void
message_gap(struct step *step, uint32_t bytes)
{
	struct flow *flow = step->flow;
	struct direction *dir = &flow->dir[step->d];
	struct rpc *rpc = dir->rpc == NONE ? NULL : &step->tracker->rpcs[dir->rpc];

	dir->next += bytes;
	if (dir->until_close || (flow->framer != NULL && flow->framer->ops->pairing == BS_PAIR_BY_TURN))
		return;
	if (dir->skip < bytes) {
		if (dir->skip_ends && rpc != NULL) {
			/* it ended in the gap */
			rpc->gaps++;
			message_ends(step);
		}
		message_lost(step);
		return;
	}
	if (rpc != NULL)
		rpc->gaps++;
	dir->skip -= bytes;
	if (dir->skip == 0 && dir->skip_ends)
		message_ends(step);
}

void
message_close(struct step *step)
{
	struct flow *flow = step->flow;
	struct direction *dir = &flow->dir[step->d];
	struct rpc *open = flow->rpc_open == NONE ? NULL : &step->tracker->rpcs[flow->rpc_open];

	if (dir->until_close && dir->in_message) {
		message_ends(step);
		dir->until_close = 0;
	}
	if (flow->turn_answered && open != NULL) {
		flow->turn_answered = 0;
		rpc_message_ended(step, open, FROM_SERVICE, flow->dir[FROM_SERVICE].next);
	}
}

void
message_datagram(struct step *step, const uint8_t *data, uint32_t bytes)
{
	struct flow *flow = step->flow;
	struct direction *dir = &flow->dir[step->d];
	struct bs_frame frame;

	if (flow->framer == NULL) {
		flow->framer = bs_framers_guess(step->tracker->config.framers,
			flow->tuple.port[!flow->client_end], true, step->d == FROM_SERVICE, data, bytes);
		flow->protocol_guessed = 1;
	}
	if (step->d == FROM_SERVICE)
		service_moved(step, NULL);
	step->first_seq = dir->next;
	step->in_first = true;
	step->tracked->remaining = step->packet->payload_len;
	if (flow->framer->ops->datagram_feed == NULL) {
		turn_bytes(step, bytes);
		return;
	}
	memset(&frame, 0, sizeof(frame));
	dir->t_message = step->t;
	dir->message_begin = dir->next;
	dir->rpc = NONE;
	dir->next += step->packet->payload_len;
	if (!flow->framer->ops->datagram_feed(
		    flow->framer, step->d == FROM_SERVICE, data, bytes, &frame)) {
		count(step->tracker, BS_TRACK_BYTES_UNPARSED, step->packet->payload_len);
		return;
	}
	message_head(step, &frame);
	message_ends(step);
}
