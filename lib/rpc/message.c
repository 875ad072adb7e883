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

/* What another framer knew of the connection means nothing to this one. */
static void
take_framer(struct flow *flow, const struct bs_framer *framer)
{
	if (flow->framer == framer)
		return;
	for (unsigned d = 0; d < 2; d++)
		flow_forget_frames(flow, d);
	memset(flow->frame.shared, 0, sizeof(flow->frame.shared));
	flow->framer = framer;
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

/* --- heads --------------------------------------------------------------- */

/* The response of an RPC, or a part of it, is what is in progress. */
static void
response_goes_on(struct step *step, struct rpc *rpc, const struct bs_frame *frame)
{
	struct direction *dir = &step->flow->dir[FROM_SERVICE];

	dir->rpc = index_of_rpc(step->tracker, rpc);
	if (rpc->t_first[FROM_SERVICE] == 0) {
		rpc_response_label(step, rpc);
		rpc->t_first[FROM_SERVICE] = dir->t_message;
		rpc->begin[FROM_SERVICE] = dir->message_begin;
	} else if (dir->t_message > rpc->t_last[FROM_SERVICE] + rpc->max_gap_ns) {
		rpc->max_gap_ns = dir->t_message - rpc->t_last[FROM_SERVICE];
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
response_begins(struct step *step, const struct bs_frame *frame)
{
	bool orphan;
	struct rpc *rpc = pair_response(step, frame, &orphan);

	if (rpc != NULL && !rpc->ended[FROM_SERVICE]) {
		response_goes_on(step, rpc, frame);
	} else if (orphan) {
		count(step->tracker, BS_TRACK_ORPHANS, 1);
		emit_orphan(step);
	}
}

/* Parts of what is not followed, or is over, belong to nothing. */
static void
part_begins(struct step *step, const struct bs_frame *frame)
{
	struct rpc *rpc = rpc_find_key(step->tracker, step->flow, frame->id);

	if (rpc == NULL || rpc->ended[step->d])
		return;
	if (step->d == FROM_SERVICE)
		response_goes_on(step, rpc, frame);
	else
		step->flow->dir[TO_SERVICE].rpc = index_of_rpc(step->tracker, rpc);
}

/* Over UDP, what was asked first was lost, or its answer. */
static void
mark_lost_query(struct step *step, struct rpc *rpc)
{
	struct bs_mark mark;

	memset(&mark, 0, sizeof(mark));
	mark.begin = rpc->t_last[TO_SERVICE];
	mark.end = step->t;
	mark.packet = step->packet->number;
	mark.buffer = BS_BUFFER_NET_REQUEST_AFTER;
	mark.kind = BS_MARK_RESEND;
	mark.cause = BS_CAUSE_DROP;
	mark.quality = BS_QUALITY_ESTIMATED;
	rpc_mark(step->tracker, rpc, &mark);
	rpc->t_last[TO_SERVICE] = step->t;
	rpc->end[TO_SERVICE] = step->flow->dir[TO_SERVICE].next;
}

/*
 * What is asked again with the same ID while it waits is one RPC. Over UDP it
 * counts from then; over TCP nothing was lost, somebody lost patience.
 */
static bool
asked_again(struct step *step, const struct bs_frame *frame, uint32_t operation_hash)
{
	struct bs_tracker *tracker = step->tracker;
	struct rpc *rpc = rpc_find_key(tracker, step->flow, frame->id);

	if (rpc == NULL || rpc->state != RPC_WAITING || rpc->operation_hash != operation_hash ||
		rpc->label_len != frame->label_len ||
		memcmp(rpc->label, frame->label, rpc->label_len) != 0)
		return false;
	count(tracker, BS_TRACK_RETRANSMISSIONS, 1);
	rpc->retransmissions++;
	if (step->flow->tuple.transport != 17)
		return true;
	mark_lost_query(step, rpc);
	step->tracked->rpc_id = rpc->id;
	step->tracked->rpc = index_of_rpc(tracker, rpc);
	step->tracked->resend = 1;
	if (tracker->config.own_buffers) {
		own_departs_again(tracker, step->flow, rpc, TO_SERVICE);
		step->tracked->handle.valid = 1;
	} else {
		rpc->t_departure[TO_SERVICE] = step->t;
	}
	return true;
}

static void
request_begins(struct step *step, const struct bs_frame *frame)
{
	struct direction *dir = &step->flow->dir[step->d];
	char operation[BS_FRAME_LABEL_BYTES];
	uint32_t operation_hash;
	struct rpc *rpc;

	bs_operation_template(frame->label, frame->label_len, operation, &operation_hash);
	if (frame->has_id &&
		(step->flow->tuple.transport == 17 || step->flow->framer->ops->id_is_retry) &&
		asked_again(step, frame, operation_hash))
		return;
	rpc = rpc_make(step, frame->id, frame->has_id);
	if (rpc == NULL) {
		rpc_refused(step->flow, frame->oneway);
		return;
	}
	dir->rpc = index_of_rpc(step->tracker, rpc);
	rpc->oneway = frame->oneway;
	rpc->answers = frame->answers;
	rpc->token = frame->token;
	rpc->label_len = frame->label_len;
	memcpy(rpc->label, frame->label, frame->label_len);
	rpc->operation_hash = operation_hash;
	if (frame->has_trace) {
		memcpy(rpc->trace_id, frame->trace_id, sizeof(rpc->trace_id));
		memcpy(rpc->parent_span_id, frame->parent_span_id, sizeof(rpc->parent_span_id));
	}
}

static void
interim(struct step *step, const struct bs_frame *frame)
{
	struct bs_tracker *tracker = step->tracker;
	const uint32_t open = step->flow->rpc_open;
	struct rpc *rpc = NULL;

	if (frame->has_id)
		rpc = rpc_find_key(tracker, step->flow, frame->id);
	else if (open != NONE && tracker->rpcs[open].refused_before == 0)
		rpc = &tracker->rpcs[open];
	if (rpc != NULL)
		rpc->interims++;
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
		interim(step, frame);
		break;
	case BS_ROLE_PUSH:
		add(&service_of(tracker, flow)->counters.pushed, 1);
		break;
	case BS_ROLE_CANCEL:
		rpc = rpc_find_key(tracker, flow, frame->id);
		if (rpc != NULL)
			rpc_give_up(tracker, rpc,
				rpc->outcome != BS_OUTCOME_COUNT
					? rpc->outcome /* it was answered early */
					: BS_OUTCOME_CANCELLED);
		break;
	case BS_ROLE_PART:
		part_begins(step, frame);
		break;
	case BS_ROLE_NONE:
		break;
	}
	dir->part = (frame->flags & BS_FRAME_PART) != 0;
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
	const bool part = dir->part;

	first_message_size(step, 0);
	step->in_first = false;
	dir->in_message = 0;
	dir->skip = 0;
	dir->skip_ends = 0;
	dir->part = 0;
	dir->rpc = NONE;
	if (rpc != NULL && part)
		rpc_part_ended(step, rpc);
	else if (rpc != NULL)
		rpc_message_ended(step, rpc, step->d, dir->next);
}

/* The stream stops making sense here: what was in progress is cut, until a message plausibly
 * begins. */
static void
message_lost(struct step *step)
{
	struct flow *flow = step->flow;
	struct direction *dir = &flow->dir[step->d];

	if (dir->rpc != NONE)
		rpc_give_up(step->tracker, &step->tracker->rpcs[dir->rpc], BS_OUTCOME_CUT);
	step->in_first = false;
	dir->rpc = NONE;
	dir->in_message = 0;
	dir->part = 0;
	dir->skip = 0;
	dir->skip_ends = 0;
	dir->until_close = 0;
	dir->resync = 1;
	if (step->d == TO_SERVICE)
		flow->request_gap = 1;
	else
		dir->after_gap = 1;
	flow_forget_frames(flow, step->d);
}

/* Opaque: bytes one way, then bytes the other, is an RPC. */
static void
turn_request(struct step *step, struct rpc *rpc)
{
	struct flow *flow = step->flow;

	if (flow->refused > 0 && !flow->turn_answered)
		return; /* more of what is not followed */
	if (rpc == NULL || flow->turn_answered) {
		if (rpc != NULL)
			rpc_message_ended(step, rpc, FROM_SERVICE, flow->dir[FROM_SERVICE].next);
		flow->turn_answered = 0;
		flow->refused = 0;
		rpc = rpc_make(step, 0, false);
		if (rpc == NULL) {
			rpc_refused(flow, 0);
			return;
		}
		bs_operation_template("", 0, rpc->label, &rpc->operation_hash);
	}
	step->tracked->rpc_id = rpc->id;
	step->tracked->rpc = index_of_rpc(step->tracker, rpc);
	rpc_message_ended(step, rpc, TO_SERVICE, flow->dir[TO_SERVICE].next);
}

static void
turn_response(struct step *step, struct rpc *rpc)
{
	struct flow *flow = step->flow;
	const struct direction *dir = &flow->dir[FROM_SERVICE];

	if (rpc == NULL) { /* the server speaks first, or answers what is not followed */
		flow->turn_answered = flow->refused > 0;
		return;
	}
	step->tracked->rpc_id = rpc->id;
	step->tracked->rpc = index_of_rpc(step->tracker, rpc);
	if (!flow->turn_answered) {
		rpc_response_label(step, rpc);
		flow->turn_answered = 1;
		rpc->t_first[FROM_SERVICE] = step->t;
		rpc->begin[FROM_SERVICE] = dir->message_begin;
		rpc->state = RPC_RESPONSE;
		rpc_no_longer_pending(step->tracker, rpc);
	}
	rpc->t_last[FROM_SERVICE] = step->t_release;
	rpc->end[FROM_SERVICE] = dir->next;
	rpc->stay_count[FROM_SERVICE] = 0; /* those of its last packet count */
	if (!step->tracker->config.own_buffers || step->detached)
		rpc->t_departure[FROM_SERVICE] = step->t_release;
	else
		step->tracked->handle.valid = 1;
}

static void
turn_bytes(struct step *step, uint32_t bytes)
{
	struct flow *flow = step->flow;
	struct direction *dir = &flow->dir[step->d];
	struct rpc *rpc = flow->rpc_open == NONE ? NULL : &step->tracker->rpcs[flow->rpc_open];

	dir->t_message = step->t;
	dir->message_begin = dir->next;
	dir->next += bytes;
	if (step->d == TO_SERVICE)
		turn_request(step, rpc);
	else
		turn_response(step, rpc);
}

/* Decides what a flow speaks, as long as only these bytes tell. */
static void
settle_framer(struct step *step, bool datagram, const uint8_t *data, uint32_t bytes)
{
	const struct bs_framers *framers = step->tracker->config.framers;
	const bool from_server = step->d == FROM_SERVICE;
	struct flow *flow = step->flow;

	if (flow->framer == NULL) {
		take_framer(flow, bs_framers_guess(framers, flow->tuple.port[!flow->client_end],
					  datagram, from_server, data, bytes));
		flow->protocol_guessed = 1;
	} else if (!flow->rpc_seen && !flow->dir[step->d].in_message) {
		take_framer(flow, bs_framers_settle(framers, flow->framer, datagram, from_server,
					  data, bytes));
	}
}

/* True if bytes may be fed: a framer is known and the direction makes sense. */
static bool
message_ready(struct step *step, const uint8_t *data, uint32_t bytes)
{
	struct direction *dir = &step->flow->dir[step->d];
	const struct bs_framer *framer;

	settle_framer(step, false, data, bytes);
	framer = step->flow->framer;
	if (!dir->resync || framer->ops->pairing == BS_PAIR_BY_TURN)
		return true;
	if (framer->ops->probe == NULL ||
		framer->ops->probe(framer, step->d == FROM_SERVICE, data, bytes) == 0)
		return false;
	dir->resync = 0;
	count(step->tracker, BS_TRACK_RESYNCS, 1);
	return true;
}

static void
message_begins(struct step *step)
{
	struct direction *dir = &step->flow->dir[step->d];

	dir->in_message = 1;
	dir->t_message = step->t;
	dir->message_begin = dir->next;
	dir->rpc = NONE;
	if (!step->in_first)
		step->tracked->more = 1;
}

static void
message_bad(struct step *step, uint32_t bytes)
{
	struct flow *flow = step->flow;

	count(step->tracker, BS_TRACK_BYTES_UNPARSED, bytes);
	message_lost(step);
	if (flow->protocol_guessed && !flow->rpc_seen)
		take_framer(flow, opaque_framer(step->tracker));
	flow->dir[step->d].next += bytes;
}

/* Lets the framer read on; returns the bytes used. */
static uint32_t
message_feed(struct step *step, const uint8_t *data, uint32_t bytes)
{
	struct flow *flow = step->flow;
	struct direction *dir = &flow->dir[step->d];
	struct bs_frame frame;
	uint32_t n;

	if (!dir->in_message)
		message_begins(step);
	memset(&frame, 0, offsetof(struct bs_frame, label));
	n = (uint32_t)flow->framer->ops->feed(
		flow->framer, &flow->frame, step->d == FROM_SERVICE, data, bytes, &frame);
	if (n == 0 || n > bytes || (frame.flags & BS_FRAME_BAD)) {
		message_bad(step, bytes);
		return bytes;
	}
	dir->next += n;
	if (frame.flags & BS_FRAME_HEAD)
		message_head(step, &frame);
	if (frame.until_close == BS_UNTIL_TUNNEL) {
		message_ends(step); /* what comes is another protocol, and no part of this RPC */
		flow->dir[!step->d].until_close = 1;
	}
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

/* Passes over bytes that nobody needs to look at; returns how many that were. */
static uint32_t
message_pass(struct step *step, uint32_t bytes)
{
	struct flow *flow = step->flow;
	struct direction *dir = &flow->dir[step->d];

	if (dir->skip > 0) {
		uint32_t n = bytes < dir->skip ? bytes : (uint32_t)dir->skip;

		dir->skip -= n;
		dir->next += n;
		if (dir->skip == 0 && dir->skip_ends)
			message_ends(step);
		return n;
	}
	if (dir->until_close) {
		dir->next += bytes;
		return bytes;
	}
	if (flow->framer != NULL && flow->framer->ops->pairing == BS_PAIR_BY_TURN) {
		turn_bytes(step, bytes);
		return bytes;
	}
	return 0;
}

void
message_bytes(struct step *step, const uint8_t *data, uint32_t bytes)
{
	while (bytes > 0) {
		uint32_t n = message_pass(step, bytes);

		if (n == 0 && !message_ready(step, data, bytes)) {
			count(step->tracker, BS_TRACK_BYTES_UNPARSED, bytes);
			n = bytes;
			step->flow->dir[step->d].next += n;
		} else if (n == 0 && step->flow->framer->ops->pairing != BS_PAIR_BY_TURN) {
			n = message_feed(step, data, bytes);
		}
		data += n;
		bytes -= n;
	}
}

void
message_unread(struct step *step, uint32_t bytes)
{
	while (bytes > 0) {
		uint32_t n = message_pass(step, bytes);

		if (n == 0) {
			message_gap(step, bytes); /* what it was part of was lost since */
			return;
		}
		bytes -= n;
	}
}

void
message_gap(struct step *step, uint32_t bytes)
{
	struct flow *flow = step->flow;
	struct direction *dir = &flow->dir[step->d];
	uint32_t at = dir->rpc;

	if (flow->framer != NULL && flow->framer->ops->pairing == BS_PAIR_BY_TURN)
		at = flow->rpc_open;
	if (at != NONE)
		step->tracker->rpcs[at].gaps++;
	dir->next += bytes;
	if (dir->until_close ||
		(flow->framer != NULL && flow->framer->ops->pairing == BS_PAIR_BY_TURN))
		return;
	if (bytes < dir->skip) {
		dir->skip -= bytes;
	} else if (bytes == dir->skip) {
		dir->skip = 0;
		if (dir->skip_ends)
			message_ends(step);
	} else {
		if (dir->skip_ends)
			message_ends(step); /* in the gap */
		message_lost(step);
	}
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
	if (step->d == FROM_SERVICE && flow->turn_answered && open != NULL) {
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

	settle_framer(step, true, data, bytes);
	if (step->d == FROM_SERVICE)
		service_moved(step);
	if (flow->framer->ops->datagram_feed == NULL)
		take_framer(flow, opaque_framer(step->tracker));
	step->first_seq = dir->next;
	step->in_first = true;
	step->tracked->remaining = step->packet->payload_len;
	if (flow->framer->ops->datagram_feed == NULL) {
		turn_bytes(step, bytes);
		return;
	}
	memset(&frame, 0, offsetof(struct bs_frame, label));
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
