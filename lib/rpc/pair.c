/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which request does a response answer? By the protocol's ID, or by order: then
 * nothing may be missing between, and where something is, the ACKs have to tell
 * or the pair is not made. A wrong pair is worse than none.
 *
 * Quiet commands are answered or not. Since answers come in order, those before
 * the request of an answer had none.
 */
#include "track.h"

static struct rpc *
rpc_of(const struct bs_tracker *tracker, uint32_t at)
{
	return at == NONE ? NULL : &tracker->rpcs[at];
}

/* May requests be missing behind this one, before the next that we know of? */
static bool
is_gap_behind(const struct bs_tracker *tracker, const struct flow *flow, const struct rpc *rpc)
{
	const struct rpc *next = rpc_of(tracker, rpc->next);

	if (next == NULL)
		return flow->request_gap || flow->refused > 0;
	return next->gap_before || next->refused_before > 0;
}

/* Those from the first open one on whose answer would have come before `begin`. */
static void
give_up_before(
	struct bs_tracker *tracker, struct flow *flow, const struct rpc *except, uint32_t begin)
{
	uint32_t at = flow->rpc_open;

	while (at != NONE) {
		struct rpc *rpc = &tracker->rpcs[at];

		at = rpc->next;
		if (rpc == except || seq_before(begin, rpc->ack_at_request))
			return;
		if (rpc->state == RPC_DONE)
			continue;
		rpc->gaps++;
		rpc_give_up(tracker, rpc, BS_OUTCOME_CUT);
	}
}

/* How many of the requests that are not followed were answered in a gap is not known. */
static void
forget_refused(struct bs_tracker *tracker, struct flow *flow)
{
	struct rpc *rpc = rpc_of(tracker, flow->rpc_open);
	uint32_t *refused = rpc != NULL ? &rpc->refused_before : &flow->refused;

	if (*refused == 0)
		return;
	*refused = 0;
	*(rpc != NULL ? &rpc->gap_before : &flow->request_gap) = 1;
}

/*
 * After bytes of responses went missing. A request says, by its ACK, which
 * response bytes its sender had: those before cannot be its answer. So the
 * response answers the last request whose ACK does not lie behind it, if that is
 * one alone and no request went missing after it; the earlier ones were answered
 * in the gap.
 */
static struct rpc *
pair_after_gap(struct step *step, uint32_t begin)
{
	struct bs_tracker *tracker = step->tracker;
	struct flow *flow = step->flow;
	struct rpc *candidate = NULL;
	unsigned alike = 0;

	for (uint32_t at = flow->rpc_open; at != NONE; at = tracker->rpcs[at].next) {
		struct rpc *rpc = &tracker->rpcs[at];

		if (rpc->state == RPC_DONE)
			continue;
		if (seq_before(begin, rpc->ack_at_request))
			break;
		alike = candidate != NULL && rpc->ack_at_request == candidate->ack_at_request
				? alike + 1
				: 1;
		candidate = rpc;
	}
	if (candidate != NULL && (alike > 1 || candidate->refused_before > 0 ||
					 seq_before(flow->dir[TO_SERVICE].next, step->ack) ||
					 is_gap_behind(tracker, flow, candidate)))
		candidate = NULL;
	give_up_before(tracker, flow, candidate, begin);
	if (candidate == NULL)
		forget_refused(tracker, flow);
	return candidate;
}

/*
 * All responses were seen, but requests may be missing in front of the first
 * open one. Its sender had the response bytes up to its ACK: what begins before
 * answers a missing one. One who waits for each answer before he asks again has
 * nothing else open; of one who does not, only the first request can be told.
 */
static struct rpc *
pair_after_missing(struct step *step, struct rpc *rpc, uint32_t begin)
{
	if (seq_before(begin, rpc->ack_at_request))
		return NULL;
	if (!step->flow->pipelined || (rpc->ack_at_request == begin && rpc->first_of_flow)) {
		rpc->gap_before = 0;
		return rpc;
	}
	give_up_before(step->tracker, step->flow, NULL, begin);
	return NULL;
}

/*
 * The first open request that this may answer, up to the first that must be
 * answered: by kind and the word it repeats, else by kind alone (errors repeat
 * none).
 */
static struct rpc *
pair_among_quiet(struct step *step, const struct bs_frame *frame)
{
	struct bs_tracker *tracker = step->tracker;
	struct rpc *by_kind = NULL, *rpc = NULL;

	for (uint32_t at = step->flow->rpc_open; at != NONE; at = rpc->next) {
		bool fits;

		rpc = &tracker->rpcs[at];
		if (rpc->state == RPC_DONE)
			continue;
		fits = rpc->answers == 0 || frame->answers == 0 || rpc->answers & frame->answers;
		if (fits && by_kind == NULL)
			by_kind = rpc;
		if (fits && (!rpc_is_quiet(rpc) || rpc->token == frame->token))
			return rpc;
		if (!rpc_is_quiet(rpc))
			break;
	}
	return by_kind != NULL ? by_kind : rpc;
}

static struct rpc *
pair_by_order(struct step *step, const struct bs_frame *frame, bool *orphan)
{
	struct flow *flow = step->flow;
	struct direction *dir = &flow->dir[FROM_SERVICE];
	struct rpc *rpc = rpc_of(step->tracker, flow->rpc_open);
	uint32_t *refused = rpc != NULL ? &rpc->refused_before : &flow->refused;

	if (dir->after_gap) {
		dir->after_gap = 0;
		return pair_after_gap(step, dir->message_begin);
	}
	if (*refused > 0) {
		(*refused)--; /* the answer to a request that is not followed */
		*orphan = false;
		return NULL;
	}
	if (rpc != NULL && rpc->gap_before)
		return pair_after_missing(step, rpc, dir->message_begin);
	return step->flow->quiet_open > 0 ? pair_among_quiet(step, frame) : rpc;
}

struct rpc *
pair_response(struct step *step, const struct bs_frame *frame, bool *orphan)
{
	struct rpc *rpc;

	*orphan = true;
	if (frame->has_id) {
		step->flow->dir[FROM_SERVICE].after_gap = 0;
		rpc = rpc_find_key(step->tracker, step->flow, frame->id);
	} else {
		rpc = pair_by_order(step, frame, orphan);
	}
	if (rpc != NULL && step->flow->quiet_open > 0)
		rpc_quiet_over(step->tracker, step->flow, index_of_rpc(step->tracker, rpc));
	return rpc;
}
