/* SPDX-License-Identifier: BSD-3-Clause */
/* The verdict of one RPC: see judge.h and design sections 2.4, 2.5. */
#include "judge.h"

#include "diag.h"

/* A part is above its normal if it exceeds median + 3 MAD of its logarithm. */
#define TERM_MADS 3.0

/* What a part must take of the operation's median, and of the RPC to be its cause. */
#define MEANINGFUL 5u

/*
 * Confidence is that the root is right, a product: of how much of all that is
 * above normal the root makes up; of how exactly its time is known; of how well
 * the normal value is known; and of how many causes the evidence leaves.
 */
static const double quality_factor[BS_QUALITY_COUNT] = {0.97, 0.9, 0.75};
static const double level_factor[] = {
	[NORMAL_COLD] = 0.7, [NORMAL_COARSE] = 0.85, [NORMAL_FINE] = 1.0};
static const double set_factor[] = {1.0, 0.6, 0.4, 0.3, 0.25};

/* What is known of the RPC's time with its service. */
struct service_story {
	struct reading compute; /* of time in (service, compute) */
	struct reading blocked; /* of waiting for an earlier RPC */
	bool crowded;		/* other RPCs were there */
};

static bool
outlier_cause(unsigned cause)
{
	return cause == BS_CAUSE_CONGESTION || cause == BS_CAUSE_COMPUTE ||
	       cause == BS_CAUSE_TRANSFER;
}

/* Streams, pushes and long polls may last: their total says nothing. */
static bool
judged_by_total(const struct bs_rec_rpc *rpc)
{
	return (rpc->kind == BS_KIND_UNARY || rpc->kind == BS_KIND_CLIENT_STREAM) &&
	       rpc->outcome != BS_OUTCOME_PUSHED && rpc->outcome != BS_OUTCOME_ORPHAN_RESPONSE;
}

static void
compare_with_normal(const struct judge *judge, struct normal_scope scope, struct terms *terms)
{
	for (unsigned i = 0; i < terms->count; i++) {
		struct term *term = &terms->term[i];
		term->normal = normal_term(
			judge->normal, scope, term->key_buffer, term->blame.cause, TERM_MADS);
		term->excess_ns = ns_sub(term->ns, term->normal.median_ns);
	}
}

static struct reading
read_term(const struct judge *judge, const struct bs_rpc_view *rpc, const struct term *term,
	const struct waiting *waiting)
{
	struct interval spans[BS_RPC_MAX_SEGMENTS];
	unsigned count = terms_spans(rpc, term->blame, spans, BS_RPC_MAX_SEGMENTS);
	unsigned service = rpc->rpc->service;
	uint64_t p99_ns = normal_part_quantile(
		judge->normal, service, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0.99);

	return services_read(judge->services, service, waiting, spans, count, term->excess_ns,
		p99_ns, judge->now);
}

static void
read_service(const struct judge *judge, const struct bs_rpc_view *rpc, const struct terms *terms,
	struct service_story *story)
{
	struct waiting waiting;

	*story = (struct service_story){0};
	if (!terms_waiting(rpc->rpc, &waiting))
		return;
	for (unsigned i = 0; i < terms->count; i++) {
		const struct term *term = &terms->term[i];
		/* A little more than normal needs no explanation, and would get a chance one. */
		if (term->blame.buffer != BS_BUFFER_SERVICE || term->excess_ns < DIAG_FLOOR_NS)
			continue;
		if (term->blame.cause == BS_CAUSE_CONTENTION)
			story->blocked = read_term(judge, rpc, term, &waiting);
		if (term->blame.cause != BS_CAUSE_COMPUTE)
			continue;
		story->compute = read_term(judge, rpc, term, &waiting);
		story->crowded = waiting.pending >= 1;
	}
}

/*
 * What the silence rule decides. Left as compute: what it does not explain, what
 * may be a hang or not, and the working of the service.
 */
static unsigned
decide(const struct reading *reading, struct decision decisions[DECISIONS_MAX])
{
	if (reading->kind == READING_NONE || reading->blame.buffer == BS_BUFFER_NONE)
		return 0;
	decisions[0] = (struct decision){
		.span = reading->silence,
		.culprit_id = reading->culprit_id,
		.detail = reading->detail,
		.blame = reading->blame,
	};
	decisions[1] = (struct decision){
		.span = reading->backlog,
		.culprit_id = reading->culprit_id,
		.blame = {.buffer = BS_BUFFER_SERVICE, .cause = BS_CAUSE_CONGESTION},
	};
	return 2;
}

static bool
above_normal(const struct term *term)
{
	return term->excess_ns > 0 && term->ns > term->normal.envelope_ns;
}

static bool
has_evidence(const struct judge *judge, const struct terms *terms, uint64_t p50_ns)
{
	uint64_t by_cause[BS_CAUSE_COUNT] = {0};

	for (unsigned i = 0; i < terms->count; i++) {
		const struct term *term = &terms->term[i];
		if (above_normal(term))
			by_cause[term->blame.cause] =
				ns_add(by_cause[term->blame.cause], term->excess_ns);
	}
	for (unsigned cause = BS_CAUSE_DROP; cause <= BS_CAUSE_HANG; cause++) {
		uint64_t limit = ns_max(judge->config->detect_ns[cause], p50_ns / MEANINGFUL);
		if (cause != BS_CAUSE_CONGESTION && by_cause[cause] >= ns_max(limit, 1))
			return true;
	}
	return false;
}

/* What is left without the excess of other causes is beyond the envelope. */
static bool
is_outlier(const struct terms *terms, const struct normal_value *latency)
{
	uint64_t plain_ns = terms->extent_ns;

	for (unsigned i = 0; i < terms->count; i++)
		if (!outlier_cause(terms->term[i].blame.cause))
			plain_ns = ns_sub(plain_ns, terms->term[i].excess_ns);
	return latency->level != NORMAL_COLD && plain_ns > latency->envelope_ns &&
	       ns_sub(plain_ns, latency->median_ns) >= DIAG_FLOOR_NS;
}

static unsigned
anomalous_by(const struct judge *judge, const struct bs_rec_rpc *rpc, const struct terms *terms,
	const struct normal_value *latency)
{
	unsigned by = 0;

	if (has_evidence(judge, terms, latency->median_ns))
		by |= BS_BY_EVIDENCE;
	if (!judged_by_total(rpc))
		return by;
	if (judge->slo_ns && terms->extent_ns > judge->slo_ns)
		by |= BS_BY_SLO;
	if (is_outlier(terms, latency))
		by |= BS_BY_OUTLIER;
	return by;
}

/*
 * The largest excess wins. Where nothing is much above normal, the RPC is slow
 * because it always is: then the largest part.
 */
static struct term *
choose_root(struct terms *terms)
{
	struct term *excess = NULL, *part = NULL;

	for (unsigned i = 0; i < terms->count; i++) {
		struct term *term = &terms->term[i];
		if (!excess || term->excess_ns > excess->excess_ns)
			excess = term;
		if (!part || term->ns > part->ns)
			part = term;
	}
	return excess && excess->excess_ns >= terms->extent_ns / MEANINGFUL ? excess : part;
}

static void
add_alternative(struct bs_rec_verdict *verdict, unsigned buffer, unsigned cause)
{
	verdict->alternatives[verdict->alternative_count++] =
		(struct bs_blame){.buffer = (uint16_t)buffer, .cause = (uint8_t)cause};
}

static void
add_via(struct judgement *judgement, unsigned buffer, unsigned cause)
{
	struct bs_rec_verdict *verdict = &judgement->verdict;
	judgement->origin = (struct bs_blame){.buffer = (uint16_t)buffer, .cause = (uint8_t)cause};
	verdict->via[verdict->via_count++] = judgement->origin;
}

static void
add_culprit(struct judgement *judgement, unsigned kind, uint64_t id, uint64_t bytes, uint64_t ns)
{
	if (kind == BS_CULPRIT_NONE || kind >= BS_CULPRIT_COUNT)
		return;
	for (unsigned i = 0; i < judgement->culprit_count; i++) {
		struct bs_culprit_share *share = &judgement->culprits[i];
		if (judgement->culprit_kind[i] != kind || share->id != id)
			continue;
		share->bytes = ns_max(share->bytes, bytes);
		share->ns = ns_max(share->ns, ns);
		return;
	}
	if (judgement->culprit_count == JUDGE_CULPRITS)
		return;
	unsigned i = judgement->culprit_count++;
	judgement->culprit_kind[i] = (uint8_t)kind;
	judgement->culprits[i] = (struct bs_culprit_share){.id = id, .bytes = bytes, .ns = ns};
}

static bool
is_blame(struct bs_blame blame, unsigned buffer, unsigned cause)
{
	return blame.buffer == buffer && blame.cause == cause;
}

/* Is this what a reading makes of time in (service, compute)? The rest of it is not. */
static bool
is_told_by(const struct reading *reading, struct bs_blame blame)
{
	if (reading->kind == READING_NONE)
		return false;
	if (reading->blame.buffer == BS_BUFFER_NONE)
		return is_blame(blame, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	return blame_equal(blame, reading->blame) ||
	       (reading->kind == READING_AFTERMATH &&
		       is_blame(blame, BS_BUFFER_SERVICE, BS_CAUSE_CONGESTION));
}

/* What else the evidence leaves possible. */
static void
add_alternatives(struct bs_rec_verdict *verdict, const struct reading *reading)
{
	unsigned buffer = reading->kind == READING_BUSY ? reading->blame.buffer : BS_BUFFER_SERVICE;

	if (reading->kind == READING_SET || reading->hang_possible)
		add_alternative(verdict, buffer, BS_CAUSE_HANG);
	/* The first copy may have been lost before we saw it. */
	if (reading->kind == READING_UNSENT)
		add_alternative(verdict, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_DROP);
}

/* The root is time with the service, or next to it: what the silence rule makes of it. */
static void
explain_service(
	struct judgement *judgement, const struct service_story *story, const struct term *root)
{
	bool blocked = is_blame(root->blame, BS_BUFFER_SERVICE, BS_CAUSE_CONTENTION);
	const struct reading *reading = blocked ? &story->blocked : &story->compute;
	bool behind = reading->kind == READING_BEHIND;
	struct bs_blame origin = {.buffer = BS_BUFFER_SERVICE, .cause = BS_CAUSE_COMPUTE};

	if (reading->kind == READING_NONE || !(blocked || is_told_by(reading, root->blame))) {
		if (is_blame(root->blame, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE) && story->crowded)
			add_alternative(
				&judgement->verdict, BS_BUFFER_SERVICE, BS_CAUSE_CONGESTION);
		return;
	}
	if (reading->blame.buffer != BS_BUFFER_NONE && !behind)
		origin = reading->blame;
	judgement->span = reading->silence;
	judgement->origin_detail = reading->detail;
	if (blame_equal(root->blame, origin))
		judgement->verdict.detail = reading->detail;
	else
		add_via(judgement, origin.buffer, origin.cause);
	if (!blocked)
		add_alternatives(&judgement->verdict, reading);
	if (behind)
		add_culprit(judgement, BS_CULPRIT_RPC, reading->culprit_id, 0,
			interval_ns(reading->silence));
}

static void
explain_own(const struct judge *judge, struct judgement *judgement, const struct term *root)
{
	struct origin origin;

	origin_find(judge->episodes, root->blame, root->span, judge->now, &origin);
	for (unsigned i = 0; i < origin.via_count; i++)
		add_via(judgement, origin.via[i].buffer, origin.via[i].cause);
	judgement->lcore = origin.lcore;
	if (origin.via_count > 0)
		judgement->origin_detail = origin.detail;
	for (unsigned i = 0; i < origin.culprit_count; i++)
		add_culprit(judgement, origin.culprit_kind[i], origin.culprits[i].id,
			origin.culprits[i].bytes, origin.culprits[i].ns);
}

/* Culprits and packets that the RPC's own group tells of the root. */
static void
explain_group(struct judgement *judgement, const struct term *root)
{
	const struct bs_rpc_view *rpc = &judgement->rpc;
	struct bs_rec_verdict *verdict = &judgement->verdict;

	for (unsigned i = 0; i < rpc->rpc->segment_count && i < BS_RPC_MAX_SEGMENTS; i++) {
		const struct bs_rec_segment *segment = &rpc->segments[i];
		if (segment->buffer != root->blame.buffer || segment->cause != root->blame.cause)
			continue;
		add_culprit(judgement, segment->culprit_kind, segment->culprit_id, 0,
			ns_sub(segment->end_ns, segment->begin_ns));
		if (segment->packet && verdict->evidence_count < BS_VERDICT_EVIDENCE)
			verdict->evidence[verdict->evidence_count++] = segment->packet;
	}
	for (unsigned i = 0; i < rpc->rpc->event_count && i < BS_RPC_MAX_EVENTS; i++) {
		const struct bs_rec_event *event = &rpc->events[i];
		if (event->buffer != root->blame.buffer || event->type != root->blame.cause)
			continue;
		for (unsigned c = 0; c < event->culprit_count && c < BS_EVENT_CULPRITS; c++)
			add_culprit(judgement, event->culprit_kind[c], event->culprits[c].id,
				event->culprits[c].bytes, event->culprits[c].ns);
	}
}

static uint32_t
confidence_ppm(const struct terms *terms, const struct term *root, unsigned alternatives)
{
	double above = 0;

	for (unsigned i = 0; i < terms->count; i++)
		above += (double)terms->term[i].excess_ns;
	double dominance = above > 0 ? (double)root->excess_ns / above : 0;
	unsigned quality = root->longest->quality;
	double sure = dominance * level_factor[root->normal.level] * set_factor[alternatives] *
		      quality_factor[quality < BS_QUALITY_COUNT ? quality : BS_QUALITY_BOUND];
	return (uint32_t)(sure * 1e6);
}

static void
blame_root(const struct judge *judge, const struct terms *terms, const struct service_story *story,
	const struct term *root, struct judgement *judgement)
{
	struct bs_rec_verdict *verdict = &judgement->verdict;

	verdict->has_root = 1;
	verdict->root = root->blame;
	verdict->detail = root->longest->detail;
	verdict->excess_ns = root->excess_ns;
	verdict->normal_ns = root->normal.median_ns;
	verdict->share_ppm =
		terms->extent_ns
			? (uint32_t)((double)root->excess_ns / (double)terms->extent_ns * 1e6)
			: 0;
	verdict->chronic =
		root->normal.median_ns >= DIAG_FLOOR_NS && root->normal.median_ns >= root->ns / 2;
	judgement->origin = root->blame;
	judgement->origin_detail = verdict->detail;
	judgement->span = root->span;

	explain_group(judgement, root);
	if (root->blame.buffer == BS_BUFFER_SERVICE || is_told_by(&story->compute, root->blame))
		explain_service(judgement, story, root);
	else
		explain_own(judge, judgement, root);
	verdict->confidence_ppm = confidence_ppm(terms, root, verdict->alternative_count);
}

void
judge_rpc(const struct judge *judge, const struct bs_rpc_view *rpc, struct normal_scope scope,
	struct terms *terms, struct judgement *judgement)
{
	struct bs_rec_verdict *verdict = &judgement->verdict;
	struct normal_value latency =
		normal_latency(judge->normal, scope, judge->config->outlier_mads);
	struct decision decisions[DECISIONS_MAX];
	struct service_story story;

	*judgement = (struct judgement){
		.rpc = *rpc,
		.service = rpc->rpc->service,
		.lcore = ORIGIN_LCORE_NONE,
		.latency_ns = bs_rpc_extent_ns(rpc->rpc),
	};
	bs_record_head(&verdict->head, BS_REC_VERDICT, 0);
	verdict->rpc_id = rpc->rpc->id;
	verdict->t = judge->now;
	verdict->baseline_warm = latency.level != NORMAL_COLD;

	terms_make(terms, rpc);
	compare_with_normal(judge, scope, terms);
	read_service(judge, rpc, terms, &story);
	unsigned count = decide(&story.compute, decisions);
	if (decided_write(
		    judge->decided, &judgement->rpc, decisions, count, judge->config->detect_ns)) {
		terms_make(terms, &judgement->rpc);
		compare_with_normal(judge, scope, terms);
	}
	verdict->anomalous_by = (uint8_t)anomalous_by(judge, rpc->rpc, terms, &latency);

	const struct term *root = choose_root(terms);
	if (root)
		blame_root(judge, terms, &story, root, judgement);
}
