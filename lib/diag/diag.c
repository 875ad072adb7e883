/* SPDX-License-Identifier: BSD-3-Clause */
/* Records in, verdicts, incidents and thresholds out: see bs_diag.h. */
#include "bs_diag.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "hold.h"
#include "incident.h"
#include "interval.h"
#include "judge.h"
#include "normal.h"
#include "origin.h"
#include "service.h"
#include "terms.h"

#define DEFAULT_MADS 6.0
#define DEFAULT_SETTLE_NS (100 * NS_PER_MS)
#define HOLD_BYTES (16u << 20)
#define REVISE_FOR_NS NS_PER_S
#define REVISE_EVERY_NS (50 * NS_PER_MS)
#define THRESHOLD_EVERY_NS NS_PER_S
#define THRESHOLD_CHANGE_PERCENT 20u

/* A record may be dated this far ahead of the time we know; more is its error. */
#define AHEAD_NS (10 * NS_PER_S)

#define SLO_RULES 256u
#define OPEN_VERDICTS 4096u

struct slo_rule {
	uint64_t slo_ns;
	uint16_t service;
	uint8_t length;
	char match[BS_LABEL_BYTES];
};

/* The last verdict of an RPC that was told while in progress. */
struct open_verdict {
	uint64_t rpc_id;
	uint64_t incident_id;
	uint8_t revision;
};

/* Evidence that came since the last look at the verdicts given. */
struct dirty {
	bool any, own_buffers;
	bool service[DIAG_SERVICES];
	struct interval span;
};

struct service_counts {
	uint64_t rpcs, anomalous;
	uint64_t slo_ns;
	bool slo_given; /* by bs_diag_slo: NAME does not change it */
	uint64_t threshold_ns;
};

struct bs_diag {
	struct bs_diag_config config;
	struct normal *normal;
	struct services *services;
	struct episodes *episodes;
	struct incidents *incidents;
	struct hold *hold; /* live only */
	uint64_t now;	   /* live: of advance(); offline: the latest record */
	uint64_t last_due, t_revised, t_thresholds;
	struct dirty dirty;
	struct service_counts counts[DIAG_SERVICES];
	struct slo_rule rules[SLO_RULES];
	unsigned rule_count;
	struct open_verdict open[OPEN_VERDICTS];
	struct decided decided; /* the RPC judged last */
	uint64_t rejected, settled_early;
};

struct bs_diag *
bs_diag_create(const struct bs_diag_config *config)
{
	struct bs_diag *diag = calloc(1, sizeof(*diag));
	if (!diag)
		return NULL;

	diag->config = *config;
	if (!(config->outlier_mads > 0))
		diag->config.outlier_mads = DEFAULT_MADS;
	if (config->settle_ns == 0)
		diag->config.settle_ns = DEFAULT_SETTLE_NS;
	diag->normal = normal_create();
	diag->services = services_create(config->offline);
	diag->episodes = episodes_create(config->offline);
	diag->incidents =
		incidents_create(config->offline, config->output.incident, config->output.context);
	diag->hold = config->offline ? NULL : hold_create(HOLD_BYTES);
	if (!diag->normal || !diag->services || !diag->episodes || !diag->incidents ||
		(!diag->hold && !config->offline)) {
		bs_diag_destroy(diag);
		errno = ENOMEM;
		return NULL;
	}
	bs_diag_detect(diag, config->detect_ns);
	return diag;
}

void
bs_diag_destroy(struct bs_diag *diag)
{
	if (!diag)
		return;
	normal_destroy(diag->normal);
	services_destroy(diag->services);
	episodes_destroy(diag->episodes);
	incidents_destroy(diag->incidents);
	hold_destroy(diag->hold);
	free(diag);
}

void
bs_diag_detect(struct bs_diag *diag, const uint64_t detect_ns[6])
{
	memcpy(diag->config.detect_ns, detect_ns, sizeof(diag->config.detect_ns));
	services_detect(diag->services, detect_ns[BS_CAUSE_HANG]);
}

/* The rule for exactly this, or a free one; NULL: no room. */
static struct slo_rule *
slo_rule(struct bs_diag *diag, unsigned service, const char *match, size_t length)
{
	for (unsigned i = 0; i < diag->rule_count; i++) {
		struct slo_rule *rule = &diag->rules[i];
		if (rule->service == service && rule->length == length &&
			memcmp(rule->match, match, length) == 0)
			return rule;
	}
	return diag->rule_count < SLO_RULES ? &diag->rules[diag->rule_count++] : NULL;
}

int
bs_diag_slo(struct bs_diag *diag, unsigned service, const char *match, uint64_t slo_ns)
{
	if (service >= DIAG_SERVICES)
		return -ENOSPC;
	if (!match || !*match) {
		diag->counts[service].slo_ns = slo_ns;
		diag->counts[service].slo_given = true;
		return 0;
	}
	size_t length = strlen(match);
	if (length > BS_LABEL_BYTES)
		return -ENOSPC;
	struct slo_rule *rule = slo_rule(diag, service, match, length);
	if (!rule)
		return -ENOSPC;

	rule->service = (uint16_t)service;
	rule->slo_ns = slo_ns;
	rule->length = (uint8_t)length;
	memcpy(rule->match, match, length);
	return 0;
}

void
bs_diag_slo_clear(struct bs_diag *diag)
{
	diag->rule_count = 0;
	for (unsigned s = 0; s < DIAG_SERVICES; s++) {
		diag->counts[s].slo_ns = 0;
		diag->counts[s].slo_given = false;
	}
}

/* Of the longest match, else of the service. */
static uint64_t
slo_of(const struct bs_diag *diag, const struct bs_rec_rpc *rpc)
{
	uint64_t slo_ns = diag->counts[rpc->service].slo_ns;
	unsigned longest = 0;

	for (unsigned i = 0; i < diag->rule_count; i++) {
		const struct slo_rule *rule = &diag->rules[i];
		if (rule->service != rpc->service || rule->length <= longest ||
			rule->length > rpc->label_len ||
			memcmp(rule->match, rpc->label, rule->length) != 0)
			continue;
		longest = rule->length;
		slo_ns = rule->slo_ns;
	}
	return slo_ns;
}

static struct normal_scope
scope_of(struct bs_diag *diag, const struct bs_rec_rpc *rpc)
{
	return normal_scope_of(diag->normal, rpc->service, rpc->operation_hash,
		ns_add(rpc->request_bytes, rpc->response_bytes));
}

static void
judge(struct bs_diag *diag, const struct bs_rpc_view *rpc, struct terms *terms,
	struct judgement *judgement)
{
	struct judge with = {
		.config = &diag->config,
		.normal = diag->normal,
		.services = diag->services,
		.episodes = diag->episodes,
		.decided = &diag->decided,
		.slo_ns = slo_of(diag, rpc->rpc),
		.now = diag->now,
	};
	judge_rpc(&with, rpc, scope_of(diag, rpc->rpc), terms, judgement);
}

/* Answered in the ordinary way: its latency is a sample of the normal. */
static bool
typical(const struct bs_rec_rpc *rpc)
{
	return rpc->outcome == BS_OUTCOME_ANSWERED &&
	       (rpc->kind == BS_KIND_UNARY || rpc->kind == BS_KIND_CLIENT_STREAM);
}

static void
learn(struct bs_diag *diag, const struct bs_rec_rpc *rpc, const struct terms *terms)
{
	struct normal_part parts[BS_RPC_MAX_SEGMENTS];
	unsigned count = terms_parts(terms, parts);
	normal_feed(diag->normal, scope_of(diag, rpc), terms->extent_ns, parts, count);
}

static struct open_verdict *
open_verdict(struct bs_diag *diag, uint64_t rpc_id)
{
	return &diag->open[(rpc_id * 0x9e3779b97f4a7c15ull >> 32) % OPEN_VERDICTS];
}

/* Into its incident, or out of the one it was in; *verdict is the last one given of this RPC. */
static void
count_victim(struct bs_diag *diag, struct judgement *judgement, uint64_t previous)
{
	struct bs_rec_verdict *verdict = &judgement->verdict;

	if (verdict->anomalous_by && verdict->has_root)
		verdict->incident_id =
			incidents_add(diag->incidents, judgement, previous, diag->now);
	else if (previous)
		incidents_remove(diag->incidents, previous, judgement);
}

static void
output_verdict(const struct bs_diag *diag, const struct judgement *judgement)
{
	if (diag->config.output.verdict)
		diag->config.output.verdict(
			diag->config.output.context, &judgement->verdict, &judgement->rpc);
}

static void
settle(struct bs_diag *diag, struct held *held)
{
	struct bs_rpc_view rpc;
	struct terms terms;
	struct judgement judgement;
	uint64_t previous = 0;
	size_t bytes;

	held->judged = true;
	held->t_judged = diag->now;
	if (bs_rpc_view(held_group(held), held->group_bytes, &rpc, &bytes) < 0)
		return;
	judge(diag, &rpc, &terms, &judgement);

	struct bs_rec_verdict *verdict = &judgement.verdict;
	bool in_progress = rpc.rpc->outcome == BS_OUTCOME_IN_PROGRESS;
	struct open_verdict *open = open_verdict(diag, rpc.rpc->id);
	if (open->rpc_id == rpc.rpc->id && rpc.rpc->id != 0) {
		previous = open->incident_id;
		verdict->revision = (uint8_t)(open->revision + 1);
		open->rpc_id = 0;
	}
	count_victim(diag, &judgement, previous);
	if (in_progress && verdict->anomalous_by)
		*open = (struct open_verdict){rpc.rpc->id, verdict->incident_id, verdict->revision};
	held->verdict = *verdict;
	if (verdict->anomalous_by) {
		diag->counts[rpc.rpc->service].anomalous += previous == 0;
		output_verdict(diag, &judgement);
	} else if (previous) {
		output_verdict(diag, &judgement);
	}

	bool odd = verdict->anomalous_by & (BS_BY_EVIDENCE | BS_BY_OUTLIER);
	if (typical(rpc.rpc) &&
		normal_accepts(diag->normal, scope_of(diag, rpc.rpc), odd, rpc.rpc->t_end))
		learn(diag, rpc.rpc, &terms);
}

static bool
same_answer(const struct bs_rec_verdict *a, const struct bs_rec_verdict *b)
{
	if (!blame_equal(a->root, b->root) || a->detail != b->detail ||
		a->alternative_count != b->alternative_count || a->via_count != b->via_count)
		return false;
	for (unsigned i = 0; i < a->alternative_count; i++)
		if (!blame_equal(a->alternatives[i], b->alternatives[i]))
			return false;
	for (unsigned i = 0; i < a->via_count; i++)
		if (!blame_equal(a->via[i], b->via[i]))
			return false;
	return true;
}

/* What seems lost before us may have been in our hands, too. */
static bool
touches_own_buffer(const struct bs_rpc_view *rpc)
{
	for (unsigned i = 0; i < rpc->rpc->segment_count; i++)
		if (origin_own_buffer(rpc->segments[i].buffer) ||
			rpc->segments[i].cause == BS_CAUSE_DROP)
			return true;
	return false;
}

/* Judges again what was judged, if evidence came that may concern it. */
static void
revise(void *context, struct held *held)
{
	struct bs_diag *diag = context;
	const struct dirty *dirty = &diag->dirty;
	struct bs_rpc_view rpc;
	struct terms terms;
	struct judgement judgement;
	size_t bytes;

	if (bs_rpc_view(held_group(held), held->group_bytes, &rpc, &bytes) < 0)
		return;
	struct interval life = {.begin = rpc.rpc->t_request_first, .end = rpc.rpc->t_end};
	if (interval_overlap_ns(life, dirty->span) == 0 ||
		diag->now >= ns_add(held->t_judged, REVISE_FOR_NS) ||
		!(dirty->service[rpc.rpc->service] ||
			(dirty->own_buffers && touches_own_buffer(&rpc))))
		return;

	judge(diag, &rpc, &terms, &judgement);
	struct bs_rec_verdict *verdict = &judgement.verdict;
	bool was = held->verdict.anomalous_by, is = verdict->anomalous_by;
	if ((!was && !is) || same_answer(verdict, &held->verdict) ||
		held->verdict.revision == UINT8_MAX)
		return;
	count_victim(diag, &judgement, held->verdict.incident_id);
	/* One told first as not anomalous was not told. */
	verdict->revision = (uint8_t)(held->verdict.revision + was);
	held->verdict = *verdict;
	struct open_verdict *open = open_verdict(diag, rpc.rpc->id);
	if (open->rpc_id == rpc.rpc->id) {
		open->incident_id = verdict->incident_id;
		open->revision = verdict->revision;
	}
	diag->counts[rpc.rpc->service].anomalous += (uint64_t)is - was;
	output_verdict(diag, &judgement);
}

static void
mark_dirty(struct bs_diag *diag, uint64_t begin, uint64_t end)
{
	struct dirty *dirty = &diag->dirty;

	/* What stood in a backlog was there as long again. */
	end = end ? ns_add(end, ns_sub(end, begin)) : UINT64_MAX;
	dirty->span.begin = dirty->any ? ns_min(dirty->span.begin, begin) : begin;
	dirty->span.end = dirty->any ? ns_max(dirty->span.end, end) : end;
	dirty->any = true;
}

static void
hold_group(struct bs_diag *diag, const struct bs_rec_rpc *rpc, size_t bytes)
{
	struct held *held;

	while (!(held = hold_push(diag->hold, rpc, bytes))) {
		struct held *oldest = hold_oldest(diag->hold);
		if (!oldest->judged) {
			diag->settled_early++;
			settle(diag, oldest);
		}
		hold_pop(diag->hold);
	}
	if (diag->now == 0)
		diag->now = rpc->t_end;
	uint64_t t = ns_min(ns_max(rpc->t_end, diag->now), ns_add(diag->now, AHEAD_NS));
	diag->last_due = ns_max(diag->last_due, ns_add(t, diag->config.settle_ns));
	held->t_due = diag->last_due;
}

static int
feed_rpc(struct bs_diag *diag, const struct bs_record *record, size_t bytes)
{
	struct bs_rpc_view view;
	struct waiting waiting;
	size_t group_bytes;

	int ret = bs_rpc_view(record, bytes, &view, &group_bytes);
	if (ret < 0)
		return ret;
	const struct bs_rec_rpc *rpc = view.rpc;
	if (rpc->outcome != BS_OUTCOME_IN_PROGRESS)
		diag->counts[rpc->service].rpcs++;
	if (terms_waiting(rpc, &waiting)) {
		uint64_t p50_ns = normal_part_quantile(
			diag->normal, rpc->service, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0.5);
		if (services_feed(diag->services, rpc->service, &waiting, p50_ns)) {
			diag->dirty.service[rpc->service] = true;
			mark_dirty(diag, waiting.t_given, waiting.t_first);
		}
	}
	if (!diag->config.offline) {
		hold_group(diag, rpc, group_bytes);
		return 0;
	}
	diag->now = ns_max(diag->now, rpc->t_end);
	if (typical(rpc)) {
		struct terms terms;
		terms_make(&terms, &view);
		learn(diag, rpc, &terms);
	}
	return 0;
}

static void
feed_brief(struct bs_diag *diag, const struct bs_rec_brief *brief)
{
	struct normal_part parts[3];

	if (brief->service >= DIAG_SERVICES) {
		diag->rejected++;
		return;
	}
	diag->counts[brief->service].rpcs++;
	if (brief->outcome != BS_OUTCOME_ANSWERED)
		return;
	uint64_t from_service_ns = (uint64_t)brief->service_ns + brief->response_ns + brief->out_ns;
	uint64_t latency_ns = from_service_ns + brief->request_ns + brief->in_ns;
	struct normal_scope scope = normal_scope_of(diag->normal, brief->service,
		brief->operation_hash, (uint64_t)brief->request_bytes + brief->response_bytes);

	normal_feed(diag->normal, scope, latency_ns, parts, terms_brief_parts(brief, parts));
	normal_accepts(diag->normal, scope, false, brief->t_end);
	services_feed_brief(diag->services, brief->service, ns_sub(brief->t_end, from_service_ns),
		brief->t_end);
}

static bool
feed_evidence(struct bs_diag *diag, const struct bs_record *record)
{
	if (record->type == BS_REC_SILENCE) {
		const struct bs_rec_silence *silence = (const void *)record;
		if (!services_silence(diag->services, silence))
			return false;
		diag->dirty.service[silence->service] = true;
		mark_dirty(diag, silence->t_begin, silence->t_end);
	} else if (record->type == BS_REC_PROBE) {
		const struct bs_rec_probe *probe = (const void *)record;
		if (!services_probe(diag->services, probe))
			return false;
		diag->dirty.service[probe->service] = true;
		mark_dirty(diag, probe->t_begin, probe->t_end);
	} else {
		const struct bs_rec_event *event = (const void *)record;
		if (event->rpc_id != 0)
			return true;
		if (!episodes_feed(diag->episodes, event))
			return false;
		diag->dirty.own_buffers = true;
		mark_dirty(diag, event->t_begin, event->t_end);
	}
	return true;
}

static void
feed_name(struct bs_diag *diag, const struct bs_rec_name *name)
{
	if (name->kind != BS_NAME_SERVICE)
		return;
	if (name->number >= DIAG_SERVICES)
		diag->rejected++;
	else if (!diag->counts[name->number].slo_given)
		diag->counts[name->number].slo_ns = name->slo_ns;
}

int
bs_diag_feed(struct bs_diag *diag, const struct bs_record *record, size_t bytes)
{
	switch (record->type) {
	case BS_REC_RPC:
		return feed_rpc(diag, record, bytes);
	case BS_REC_BRIEF:
		feed_brief(diag, (const void *)record);
		return 0;
	case BS_REC_SILENCE:
	case BS_REC_PROBE:
	case BS_REC_EVENT:
		if (!feed_evidence(diag, record))
			diag->rejected++;
		return 0;
	case BS_REC_NAME:
		feed_name(diag, (const void *)record);
		return 0;
	default:
		return 0; /* counters and the like say nothing of single RPCs */
	}
}

/* The least latency of a service that a verdict might blame; UINT64_MAX: not known. */
static uint64_t
wanted_ns(const struct bs_diag *diag, unsigned service, uint64_t envelope_ns)
{
	const struct service_counts *counts = &diag->counts[service];
	uint64_t wanted = envelope_ns;

	if (counts->slo_ns)
		wanted = ns_min(wanted, counts->slo_ns);
	for (unsigned i = 0; i < diag->rule_count; i++)
		if (diag->rules[i].service == service && diag->rules[i].slo_ns)
			wanted = ns_min(wanted, diag->rules[i].slo_ns);
	return wanted;
}

static void
send_thresholds(struct bs_diag *diag)
{
	uint64_t envelope_ns[DIAG_SERVICES];

	if (!diag->config.output.threshold ||
		diag->now < ns_add(diag->t_thresholds, THRESHOLD_EVERY_NS))
		return;
	diag->t_thresholds = diag->now;
	normal_envelopes(diag->normal, diag->config.outlier_mads, DIAG_FLOOR_NS, envelope_ns);

	for (unsigned s = 0; s < BS_MAX_SERVICES; s++) {
		uint64_t *sent = &diag->counts[s].threshold_ns;
		uint64_t wanted = wanted_ns(diag, s, envelope_ns[s]);
		uint64_t change = wanted > *sent ? wanted - *sent : *sent - wanted;
		if (wanted == UINT64_MAX || change <= *sent / 100 * THRESHOLD_CHANGE_PERCENT)
			continue;
		struct bs_rec_threshold record = {.latency_ns = wanted, .service = (uint16_t)s};
		bs_record_head(&record.head, BS_REC_THRESHOLD, 0);
		*sent = wanted;
		diag->config.output.threshold(diag->config.output.context, &record);
	}
}

void
bs_diag_advance(struct bs_diag *diag, uint64_t t_ns)
{
	struct held *held;

	if (diag->config.offline)
		return;
	diag->now = ns_max(diag->now, t_ns);
	while ((held = hold_next_due(diag->hold)) && held->t_due <= diag->now)
		settle(diag, held);

	if (diag->dirty.any && diag->now >= ns_add(diag->t_revised, REVISE_EVERY_NS)) {
		hold_each_judged(diag->hold, revise, diag);
		diag->dirty = (struct dirty){0};
		diag->t_revised = diag->now;
	}
	while ((held = hold_oldest(diag->hold)) && held->judged &&
		diag->now >= ns_add(held->t_judged, REVISE_FOR_NS))
		hold_pop(diag->hold);

	incidents_advance(diag->incidents, diag->now);
	send_thresholds(diag);
}

void
bs_diag_judge(struct bs_diag *diag, struct bs_rpc_view *rpc, struct bs_rec_verdict *verdict)
{
	struct terms terms;
	struct judgement judgement;

	judge(diag, rpc, &terms, &judgement);
	count_victim(diag, &judgement, 0);
	if (judgement.verdict.anomalous_by)
		diag->counts[rpc->rpc->service].anomalous++;
	output_verdict(diag, &judgement);
	*verdict = judgement.verdict;
	*rpc = judgement.rpc;
}

void
bs_diag_finish(struct bs_diag *diag)
{
	incidents_finish(diag->incidents);
}

bool
bs_diag_service(const struct bs_diag *diag, unsigned service, struct bs_diag_service *out)
{
	if (service >= DIAG_SERVICES || diag->counts[service].rpcs == 0)
		return false;
	*out = (struct bs_diag_service){
		.rpcs = diag->counts[service].rpcs,
		.p50_ns = normal_service_quantile(diag->normal, service, 0.5),
		.p99_ns = normal_service_quantile(diag->normal, service, 0.99),
		.service_p50_ns = normal_part_quantile(
			diag->normal, service, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0.5),
		.concurrent = services_concurrent(diag->services, service),
		.warm = normal_service_warm(diag->normal, service),
		.anomalous = diag->counts[service].anomalous,
	};
	return true;
}

void
bs_diag_counters(const struct bs_diag *diag, struct bs_diag_counters *out)
{
	*out = (struct bs_diag_counters){
		.rejected = diag->rejected,
		.overflows = normal_overflows(diag->normal),
		.settled_early = diag->settled_early,
	};
}
