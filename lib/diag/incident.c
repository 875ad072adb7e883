/* SPDX-License-Identifier: BSD-3-Clause */
/* Victims of one origin, gathered: see incident.h. */
#include "incident.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"

#define INCIDENTS_LIVE 128u
#define INCIDENTS_OFFLINE 2048u

#define JOIN_NS (50 * NS_PER_MS)
#define REPORT_NS (250 * NS_PER_MS)
#define QUIET_NS NS_PER_S

/* So many share an origin before it is an incident. */
#define TOLD_VICTIMS 2u

#define SERVICE_ANY UINT16_MAX

struct incident {
	uint64_t id; /* 0: free */
	struct interval span;
	struct bs_blame origin;
	uint16_t service; /* whose buffer it is; SERVICE_ANY if it belongs to none */
	uint16_t lcore;
	uint16_t detail;
	uint8_t culprit_count, worst_count;
	bool told; /* once, and then until it is closed */
	bool changed;
	uint64_t victims;
	uint64_t t_counted, t_reported;
	uint64_t worst_id[BS_INCIDENT_WORST];
	uint64_t worst_ns[BS_INCIDENT_WORST]; /* descending */
	uint8_t culprit_kind[JUDGE_CULPRITS];
	struct bs_culprit_share culprits[JUDGE_CULPRITS];
	uint32_t by_service[DIAG_SERVICES];
};

struct incidents {
	struct incident *pool;
	unsigned slots, used; /* used: slots before this one were ever taken */
	uint64_t last_id;
	bool offline;
	void (*report)(void *, const struct bs_rec_incident *);
	void *context;
};

struct incidents *
incidents_create(
	bool offline, void (*report)(void *, const struct bs_rec_incident *), void *context)
{
	struct incidents *incidents = calloc(1, sizeof(*incidents));
	if (!incidents)
		return NULL;

	incidents->slots = offline ? INCIDENTS_OFFLINE : INCIDENTS_LIVE;
	incidents->offline = offline;
	incidents->report = report;
	incidents->context = context;
	incidents->pool = calloc(incidents->slots, sizeof(*incidents->pool));
	if (!incidents->pool) {
		free(incidents);
		return NULL;
	}
	return incidents;
}

void
incidents_destroy(struct incidents *incidents)
{
	if (!incidents)
		return;
	free(incidents->pool);
	free(incidents);
}

/* The services with most victims, most first. */
static void
rank_services(const struct incident *incident, struct bs_rec_incident *record)
{
	for (unsigned s = 0; s < DIAG_SERVICES; s++) {
		uint32_t victims = incident->by_service[s];
		unsigned at = record->service_count;
		if (victims == 0)
			continue;
		while (at > 0 && record->by_service[at - 1].victims < victims) {
			if (at < BS_INCIDENT_SERVICES)
				record->by_service[at] = record->by_service[at - 1];
			at--;
		}
		if (at == BS_INCIDENT_SERVICES)
			continue;
		record->by_service[at].service = (uint16_t)s;
		record->by_service[at].victims = victims;
		if (record->service_count < BS_INCIDENT_SERVICES)
			record->service_count++;
	}
}

static void
rank_culprits(const struct incident *incident, struct bs_rec_incident *record)
{
	for (unsigned i = 0; i < incident->culprit_count; i++) {
		unsigned at = record->culprit_count;
		while (at > 0 && record->culprits[at - 1].ns < incident->culprits[i].ns) {
			if (at < BS_EVENT_CULPRITS) {
				record->culprits[at] = record->culprits[at - 1];
				record->culprit_kind[at] = record->culprit_kind[at - 1];
			}
			at--;
		}
		if (at == BS_EVENT_CULPRITS)
			continue;
		record->culprits[at] = incident->culprits[i];
		record->culprit_kind[at] = incident->culprit_kind[i];
		if (record->culprit_count < BS_EVENT_CULPRITS)
			record->culprit_count++;
	}
}

static void
report(struct incidents *incidents, struct incident *incident, bool open, uint64_t now)
{
	struct bs_rec_incident record = {
		.id = incident->id,
		.t_begin = incident->span.begin,
		.t_end = incident->span.end,
		.victims = incident->victims,
		.origin = incident->origin,
		.detail = incident->detail,
		.open = open,
		.worst_count = incident->worst_count,
	};

	incident->told = true;
	incident->changed = false;
	incident->t_reported = now;
	if (!incidents->report)
		return;
	bs_record_head(&record.head, BS_REC_INCIDENT, 0);
	memcpy(record.worst, incident->worst_id, sizeof(record.worst));
	rank_services(incident, &record);
	rank_culprits(incident, &record);
	incidents->report(incidents->context, &record);
}

static void
close_incident(struct incidents *incidents, struct incident *incident, uint64_t now)
{
	if (incident->told)
		report(incidents, incident, false, now);
	incident->id = 0;
}

/* Buffers that each service has of its own are told apart by the service. */
static uint16_t
owner(const struct judgement *judgement)
{
	switch (judgement->origin.buffer) {
	case BS_BUFFER_SERVICE:
	case BS_BUFFER_SERVER_ACCEPT:
	case BS_BUFFER_SERVER_SOCKET_RX:
	case BS_BUFFER_SERVER_SOCKET_TX:
		return judgement->service;
	default:
		return SERVICE_ANY;
	}
}

static bool
same_origin(const struct incident *incident, const struct judgement *judgement)
{
	if (incident->origin.cause != judgement->origin.cause ||
		incident->service != owner(judgement))
		return false;
	/* A thread that hangs stops draining all its buffers. */
	if (incident->lcore != ORIGIN_LCORE_NONE && judgement->lcore != ORIGIN_LCORE_NONE)
		return incident->lcore == judgement->lcore;
	return incident->origin.buffer == judgement->origin.buffer;
}

static struct incident *
find(struct incidents *incidents, const struct judgement *judgement)
{
	for (unsigned i = 0; i < incidents->used; i++) {
		struct incident *incident = &incidents->pool[i];
		if (incident->id != 0 && same_origin(incident, judgement) &&
			judgement->span.begin <= ns_add(incident->span.end, JOIN_NS) &&
			ns_add(judgement->span.end, JOIN_NS) >= incident->span.begin)
			return incident;
	}
	return NULL;
}

static struct incident *
by_id(struct incidents *incidents, uint64_t id)
{
	for (unsigned i = 0; id != 0 && i < incidents->used; i++)
		if (incidents->pool[i].id == id)
			return &incidents->pool[i];
	return NULL;
}

/*
 * What a buffer of ours did, or a receiver that does not read, is an incident
 * whoever it hit. That a single RPC met a loss or had much to compute is not.
 */
static bool
worth_telling(const struct incident *incident)
{
	return incident->told || incident->victims >= TOLD_VICTIMS ||
	       incident->origin.cause == BS_CAUSE_PAUSE ||
	       origin_own_buffer(incident->origin.buffer);
}

static bool
rather_given_up(const struct incident *a, const struct incident *b)
{
	return a->told != b->told ? !a->told : a->t_counted < b->t_counted;
}

/* A free slot, or that of the incident, rather of an untold one, quiet longest, closed for it. */
static struct incident *
take_slot(struct incidents *incidents, uint64_t now)
{
	struct incident *quiet = &incidents->pool[0];

	for (unsigned i = 0; i < incidents->used; i++) {
		struct incident *incident = &incidents->pool[i];
		if (incident->id == 0)
			return incident;
		if (rather_given_up(incident, quiet))
			quiet = incident;
	}
	if (incidents->used < incidents->slots)
		return &incidents->pool[incidents->used++];
	close_incident(incidents, quiet, now);
	return quiet;
}

static struct incident *
open_incident(struct incidents *incidents, const struct judgement *judgement, uint64_t now)
{
	struct incident *incident = take_slot(incidents, now);

	*incident = (struct incident){
		.id = ++incidents->last_id,
		.span = judgement->span,
		.origin = judgement->origin,
		.service = owner(judgement),
		.lcore = judgement->lcore,
	};
	return incident;
}

static void
forget_worst(struct incident *incident, uint64_t rpc_id)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < incident->worst_count; i++) {
		if (incident->worst_id[i] == rpc_id)
			continue;
		incident->worst_id[kept] = incident->worst_id[i];
		incident->worst_ns[kept++] = incident->worst_ns[i];
	}
	for (unsigned i = kept; i < BS_INCIDENT_WORST; i++)
		incident->worst_id[i] = 0;
	incident->worst_count = (uint8_t)kept;
}

static void
note_worst(struct incident *incident, uint64_t rpc_id, uint64_t latency_ns)
{
	forget_worst(incident, rpc_id);

	unsigned at = incident->worst_count;
	while (at > 0 && incident->worst_ns[at - 1] < latency_ns) {
		if (at < BS_INCIDENT_WORST) {
			incident->worst_id[at] = incident->worst_id[at - 1];
			incident->worst_ns[at] = incident->worst_ns[at - 1];
		}
		at--;
	}
	if (at == BS_INCIDENT_WORST)
		return;
	incident->worst_id[at] = rpc_id;
	incident->worst_ns[at] = latency_ns;
	if (incident->worst_count < BS_INCIDENT_WORST)
		incident->worst_count++;
}

/* The victims tell of the same doing, so the longest account of a culprit counts, not the sum. */
static void
note_culprit(struct incident *incident, unsigned kind, const struct bs_culprit_share *share)
{
	unsigned least = 0;

	for (unsigned i = 0; i < incident->culprit_count; i++) {
		struct bs_culprit_share *held = &incident->culprits[i];
		if (incident->culprit_kind[i] == kind && held->id == share->id) {
			held->ns = ns_max(held->ns, share->ns);
			held->bytes = ns_max(held->bytes, share->bytes);
			return;
		}
		if (held->ns < incident->culprits[least].ns)
			least = i;
	}
	if (incident->culprit_count < JUDGE_CULPRITS)
		least = incident->culprit_count++;
	else if (incident->culprits[least].ns >= share->ns)
		return;
	incident->culprit_kind[least] = (uint8_t)kind;
	incident->culprits[least] = *share;
}

static void
leave(struct incident *incident, const struct judgement *judgement)
{
	if (incident->victims > 0)
		incident->victims--;
	if (incident->by_service[judgement->service] > 0)
		incident->by_service[judgement->service]--;
	forget_worst(incident, judgement->verdict.rpc_id);
	incident->changed = true;
}

uint64_t
incidents_add(struct incidents *incidents, const struct judgement *judgement, uint64_t previous,
	uint64_t now)
{
	struct incident *incident = find(incidents, judgement);

	if (!incident)
		incident = open_incident(incidents, judgement, now);
	if (incident->id != previous) {
		struct incident *left = by_id(incidents, previous);
		if (left)
			leave(left, judgement);
		incident->victims++;
		if (incident->by_service[judgement->service] < UINT32_MAX)
			incident->by_service[judgement->service]++;
	}
	incident->t_counted = now;
	incident->span.begin = ns_min(incident->span.begin, judgement->span.begin);
	incident->span.end = ns_max(incident->span.end, judgement->span.end);
	if (incident->detail == BS_DETAIL_NONE)
		incident->detail = judgement->origin_detail;
	if (incident->lcore == ORIGIN_LCORE_NONE)
		incident->lcore = judgement->lcore;
	note_worst(incident, judgement->verdict.rpc_id, judgement->latency_ns);
	for (unsigned i = 0; i < judgement->culprit_count; i++)
		note_culprit(incident, judgement->culprit_kind[i], &judgement->culprits[i]);

	incident->changed = true;
	if (worth_telling(incident) &&
		(!incident->told ||
			(!incidents->offline && now >= ns_add(incident->t_reported, REPORT_NS))))
		report(incidents, incident, true, now);
	return incident->id;
}

void
incidents_remove(struct incidents *incidents, uint64_t id, const struct judgement *judgement)
{
	struct incident *incident = by_id(incidents, id);
	if (incident)
		leave(incident, judgement);
}

void
incidents_advance(struct incidents *incidents, uint64_t now)
{
	for (unsigned i = 0; i < incidents->used; i++) {
		struct incident *incident = &incidents->pool[i];
		if (incident->id == 0)
			continue;
		if (now >= ns_add(incident->t_counted, QUIET_NS))
			close_incident(incidents, incident, now);
		else if (incident->told && incident->changed &&
			 now >= ns_add(incident->t_reported, REPORT_NS))
			report(incidents, incident, true, now);
	}
}

void
incidents_finish(struct incidents *incidents)
{
	for (unsigned i = 0; i < incidents->used; i++)
		if (incidents->pool[i].id != 0)
			close_incident(
				incidents, &incidents->pool[i], incidents->pool[i].t_counted);
}
