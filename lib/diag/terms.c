/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments summed by (buffer, cause): see terms.h. */
#include "terms.h"

#include <string.h>

/* Transfer is kept by direction, not by buffer, as brief RPCs tell no more than that. */
#define REQUEST_TRANSFER BS_BUFFER_NET_REQUEST_BEFORE
#define RESPONSE_TRANSFER BS_BUFFER_NET_RESPONSE_BEFORE

static struct interval
clip(const struct bs_rec_segment *segment, uint64_t extent_ns)
{
	struct interval offset;
	offset.begin = ns_min(segment->begin_ns, extent_ns);
	offset.end = ns_max(ns_min(segment->end_ns, extent_ns), offset.begin);
	return offset;
}

static uint16_t
key_buffer(const struct bs_rec_rpc *rpc, const struct bs_rec_segment *segment)
{
	if (segment->cause != BS_CAUSE_TRANSFER)
		return segment->buffer;
	uint64_t request_ns = ns_sub(rpc->t_request_last, rpc->t_request_first);
	return segment->begin_ns < request_ns ? REQUEST_TRANSFER : RESPONSE_TRANSFER;
}

void
terms_make(struct terms *terms, const struct bs_rpc_view *view)
{
	const struct bs_rec_rpc *rpc = view->rpc;

	terms->count = 0;
	terms->extent_ns = bs_rpc_extent_ns(rpc);
	for (unsigned i = 0; i < rpc->segment_count && i < BS_RPC_MAX_SEGMENTS; i++) {
		const struct bs_rec_segment *segment = &view->segments[i];
		struct interval offset = clip(segment, terms->extent_ns);
		struct bs_blame blame = {.buffer = segment->buffer, .cause = segment->cause};
		uint16_t key = key_buffer(rpc, segment);
		struct interval span = {
			.begin = ns_add(rpc->t_request_first, offset.begin),
			.end = ns_add(rpc->t_request_first, offset.end),
		};
		struct term *term = terms->term;
		struct term *end = terms->term + terms->count;

		while (term < end && (!(term->blame.buffer == blame.buffer &&
					      term->blame.cause == blame.cause) ||
					     term->key_buffer != key))
			term++;
		if (term == end) {
			*term = (struct term){.blame = blame,
				.key_buffer = key,
				.span = span,
				.longest = segment};
			terms->count++;
		}
		term->ns = ns_min(ns_add(term->ns, interval_ns(offset)), terms->extent_ns);
		term->span.begin = ns_min(term->span.begin, span.begin);
		term->span.end = ns_max(term->span.end, span.end);
		if (interval_ns(offset) > interval_ns(clip(term->longest, terms->extent_ns)))
			term->longest = segment;
	}
}

unsigned
terms_spans(
	const struct bs_rpc_view *view, struct bs_blame blame, struct interval *spans, unsigned max)
{
	uint64_t extent_ns = bs_rpc_extent_ns(view->rpc);
	uint64_t t = view->rpc->t_request_first;
	unsigned count = 0;

	for (unsigned i = 0; i < view->rpc->segment_count && count < max; i++) {
		const struct bs_rec_segment *segment = &view->segments[i];
		if (segment->buffer != blame.buffer || segment->cause != blame.cause)
			continue;
		struct interval offset = clip(segment, extent_ns);
		spans[count++] = (struct interval){
			.begin = ns_add(t, offset.begin), .end = ns_add(t, offset.end)};
	}
	return count;
}

unsigned
terms_parts(const struct terms *terms, struct normal_part *parts)
{
	for (unsigned i = 0; i < terms->count; i++)
		parts[i] = (struct normal_part){
			.ns = terms->term[i].ns,
			.buffer = terms->term[i].key_buffer,
			.cause = terms->term[i].blame.cause,
		};
	return terms->count;
}

/*
 * The waits in our own buffers, a sum without names, are left out: were they
 * long enough to be an event, the RPC would not be told in brief.
 */
unsigned
terms_brief_parts(const struct bs_rec_brief *brief, struct normal_part *parts)
{
	parts[0] = (struct normal_part){brief->request_ns, REQUEST_TRANSFER, BS_CAUSE_TRANSFER};
	parts[1] = (struct normal_part){brief->service_ns, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE};
	parts[2] = (struct normal_part){brief->response_ns, RESPONSE_TRANSFER, BS_CAUSE_TRANSFER};
	return 3;
}

/* Murmur-like mixing, 8 bytes at a time: only equality matters, and 2^-64 for chance. */
static uint64_t
hash_ends(const struct bs_ends *ends)
{
	uint64_t words[sizeof(*ends) / 8];
	uint64_t hash = 0;

	memcpy(words, ends, sizeof(words));
	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 32;
	}
	return hash;
}

bool
terms_waiting(const struct bs_rec_rpc *rpc, struct waiting *waiting)
{
	if (rpc->kind == BS_KIND_LONG_POLL || rpc->kind == BS_KIND_PUSH ||
		rpc->outcome == BS_OUTCOME_ONEWAY || rpc->outcome == BS_OUTCOME_PUSHED ||
		rpc->outcome == BS_OUTCOME_ORPHAN_RESPONSE)
		return false;

	uint64_t t_given =
		rpc->t_request_departure ? rpc->t_request_departure : rpc->t_request_last;
	if (t_given == 0 || (rpc->t_response_first && rpc->t_response_first < t_given))
		return false;

	*waiting = (struct waiting){
		.id = rpc->id,
		.connection = hash_ends(&rpc->ends),
		.t_given = t_given,
		.t_first = rpc->t_response_first,
		.t_gone = rpc->t_response_first			   ? rpc->t_response_first
			  : rpc->outcome == BS_OUTCOME_IN_PROGRESS ? UINT64_MAX
								   : rpc->t_end,
		.pending = rpc->pending,
		.connects = rpc->connect_ns != 0,
	};
	return true;
}
