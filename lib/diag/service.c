/* SPDX-License-Identifier: BSD-3-Clause */
/* Concurrency, silences and probes of services: see service.h. */
#include "service.h"

#include <stdlib.h>

#include "diag.h"

#define RECENT 128u
#define RECENT_BRIEFS 64u

/* Overtakings that make a service concurrent: so many, and one in so many overlapping pairs. */
#define OVERTAKINGS 4u
#define OVERTAKING_PAIRS 20u
#define PAIRS_MAX 4096u

/* An ACK may be this late, so that a brief RPC was answered this long before its record. */
#define ACK_SLACK_NS (250 * NS_PER_MS)

/* Answers this close to the end of a silence ended it together. */
#define END_SLACK_NS NS_PER_MS

/* Records of several lcores come out of order by no more than this. */
#define DISORDER_NS NS_PER_S

/* Probes must cover this share of a silence to settle it. */
#define PROBE_COVER 4u

#define SILENCES_LIVE 512u
#define SILENCES_OFFLINE 8192u
#define PROBES_LIVE 1024u
#define PROBES_OFFLINE 16384u

struct silence {
	struct interval span; /* end UINT64_MAX: goes on */
	uint64_t older;	      /* number of the next older one of the service; 0 = none */
	uint64_t mover_id;
	uint64_t served_id, served_given; /* answered at its end, given earliest */
	uint64_t first_id;		  /* of those that waited in it */
	uint16_t source;
	bool many; /* at least two waited */
	bool void_;
};

/* What the kernel said of a stretch of time. */
struct probed {
	uint8_t state; /* enum bs_probe_state; 0: it said nothing, or too little */
	/* of every connection that waited */
	bool unaccepted, unread, unsent;
};

struct probe {
	struct interval span;
	uint64_t older;
	struct probed said;
};

struct service {
	struct waiting recent[RECENT];
	struct interval briefs[RECENT_BRIEFS]; /* given to answered */
	uint32_t recent_count, brief_count;    /* ever; the ring keeps the last */
	uint32_t overtakings, in_order;
	uint64_t silence, probe; /* number of the newest; 0 = none */
};

/* Rings by number (1, 2, ...): a number is held while it is among the newest `slots`. */
struct services {
	struct service service[DIAG_SERVICES];
	struct silence *silences;
	struct probe *probes;
	uint64_t silence_count, probe_count;
	uint32_t silence_slots, probe_slots;
	uint64_t hang_ns;
};

struct services *
services_create(bool offline)
{
	struct services *services = calloc(1, sizeof(*services));
	if (!services)
		return NULL;

	services->silence_slots = offline ? SILENCES_OFFLINE : SILENCES_LIVE;
	services->probe_slots = offline ? PROBES_OFFLINE : PROBES_LIVE;
	services->silences = calloc(services->silence_slots, sizeof(*services->silences));
	services->probes = calloc(services->probe_slots, sizeof(*services->probes));
	if (!services->silences || !services->probes) {
		services_destroy(services);
		return NULL;
	}
	return services;
}

void
services_destroy(struct services *services)
{
	if (!services)
		return;
	free(services->silences);
	free(services->probes);
	free(services);
}

void
services_detect(struct services *services, uint64_t hang_ns)
{
	services->hang_ns = ns_max(hang_ns, 1);
}

/* NULL for 0, and for one whose place a newer one took. */
static struct silence *
silence_at(const struct services *services, uint64_t number)
{
	if (number == 0 || services->silence_count - number >= services->silence_slots)
		return NULL;
	return &services->silences[number % services->silence_slots];
}

static const struct probe *
probe_at(const struct services *services, uint64_t number)
{
	if (number == 0 || services->probe_count - number >= services->probe_slots)
		return NULL;
	return &services->probes[number % services->probe_slots];
}

static bool
goes_on(const struct silence *silence)
{
	return silence->span.end == UINT64_MAX;
}

/* The silences of a service that may touch what is not before t, newest first. */
static struct silence *
next_silence(const struct services *services, uint64_t number, uint64_t t)
{
	struct silence *silence = silence_at(services, number);
	while (silence && silence->void_)
		silence = silence_at(services, silence->older);
	if (silence && ns_add(silence->span.end, DISORDER_NS) < t)
		return NULL;
	return silence;
}

static bool
inside(const struct silence *silence, uint64_t t)
{
	uint64_t slack = ns_min(END_SLACK_NS, interval_ns(silence->span) / 4);
	return t > ns_add(silence->span.begin, slack) && ns_add(t, slack) < silence->span.end;
}

/*
 * Notes an RPC that waited in the silence, and whether it was the one served:
 * of those answered at its end, or waiting still, the one given earliest. True
 * if that changed.
 */
static bool
join_silence(struct silence *silence, const struct waiting *waiting)
{
	bool open = goes_on(silence);

	if (silence->void_ || waiting->t_given >= silence->span.end ||
		waiting->t_gone <= silence->span.begin)
		return false;
	if (silence->first_id == 0)
		silence->first_id = waiting->id;
	bool second = !silence->many && silence->first_id != waiting->id;
	silence->many = silence->many || second;

	bool candidate =
		open ? waiting->t_gone == UINT64_MAX
		     : waiting->t_first <= ns_add(silence->span.end, END_SLACK_NS) &&
				ns_add(waiting->t_first, END_SLACK_NS) >= silence->span.end;
	if (!candidate || silence->served_id == waiting->id)
		return second;
	if (silence->served_id != 0 && (waiting->t_given > silence->served_given ||
					       (waiting->t_given == silence->served_given &&
						       waiting->id != silence->mover_id)))
		return second;
	silence->served_id = waiting->id;
	silence->served_given = waiting->t_given;
	return true;
}

static unsigned
recent_held(const struct service *service)
{
	return service->recent_count < RECENT ? service->recent_count : RECENT;
}

static void
join_recent(const struct service *service, struct silence *silence)
{
	silence->served_id = 0;
	for (unsigned i = 0; i < recent_held(service); i++)
		join_silence(silence, &service->recent[i]);
}

static struct silence *
add_silence(struct services *services, struct service *service, struct interval span)
{
	uint64_t number = ++services->silence_count;
	struct silence *silence = &services->silences[number % services->silence_slots];

	*silence = (struct silence){.span = span, .older = service->silence};
	service->silence = number;
	return silence;
}

/*
 * Silences are told per lcore: an answer that came through another lcore cuts
 * the silence of the service in two.
 */
static bool
cut_silences(struct services *services, struct service *service, const struct waiting *waiting)
{
	uint64_t t = waiting->t_first;
	struct silence *silence = next_silence(services, service->silence, waiting->t_given);

	while (silence && !inside(silence, t))
		silence = next_silence(services, silence->older, waiting->t_given);
	if (t == 0 || !silence)
		return false;

	struct silence before = *silence;
	silence->span.end = t;
	silence->mover_id = waiting->id;
	silence->void_ = interval_ns(silence->span) < services->hang_ns;
	join_recent(service, silence);

	struct interval rest = {.begin = t, .end = before.span.end};
	if (interval_ns(rest) < services->hang_ns)
		return true;
	struct silence *after = add_silence(services, service, rest);
	after->mover_id = before.mover_id;
	after->source = before.source;
	join_recent(service, after);
	return true;
}

/*
 * Both waited through a silence and were answered from its backlog: a service
 * that was stopped may take up what has gathered in any order.
 */
static bool
silence_between(const struct services *services, const struct service *service,
	const struct waiting *earlier, const struct waiting *later)
{
	struct interval both = {.begin = later->t_given, .end = later->t_first};
	struct silence *silence = next_silence(services, service->silence, both.begin);

	for (; silence; silence = next_silence(services, silence->older, both.begin)) {
		uint64_t drained = ns_add(silence->span.end, interval_ns(silence->span));
		if (interval_overlap_ns(silence->span, both) > 0 && earlier->t_first <= drained)
			return true;
	}
	return false;
}

/* `later` was given clearly after `earlier` while that was open: was it answered clearly first? */
static void
compare_pair(struct services *services, struct service *service, const struct waiting *earlier,
	const struct waiting *later, uint64_t clearly_ns)
{
	if (earlier->t_first == 0 || later->t_first == 0 ||
		later->t_given < ns_add(earlier->t_given, clearly_ns) ||
		later->t_given >= earlier->t_first)
		return;
	if (ns_add(later->t_first, clearly_ns) >= earlier->t_first)
		service->in_order++;
	else if (!silence_between(services, service, earlier, later))
		service->overtakings++;
}

static void
learn_concurrency(struct services *services, struct service *service, const struct waiting *waiting,
	uint64_t service_p50_ns)
{
	uint64_t clearly_ns = ns_max(NS_PER_MS, ns_add(service_p50_ns, service_p50_ns));

	for (unsigned i = 0; i < recent_held(service); i++) {
		const struct waiting *other = &service->recent[i];
		if (other->connection == waiting->connection)
			continue;
		if (other->t_given < waiting->t_given)
			compare_pair(services, service, other, waiting, clearly_ns);
		else
			compare_pair(services, service, waiting, other, clearly_ns);
	}

	unsigned briefs =
		service->brief_count < RECENT_BRIEFS ? service->brief_count : RECENT_BRIEFS;
	for (unsigned i = 0; i < briefs; i++) {
		struct waiting brief = {
			.t_given = service->briefs[i].begin, .t_first = service->briefs[i].end};
		/* Unknown connection: it tells only if it overtakes, since order is the rule there.
		 */
		if (brief.t_given > waiting->t_given &&
			ns_add(brief.t_first, clearly_ns) < waiting->t_first)
			compare_pair(services, service, waiting, &brief, clearly_ns);
	}

	if (service->overtakings + service->in_order > PAIRS_MAX) {
		service->overtakings /= 2;
		service->in_order /= 2;
	}
}

/* Keeps the newest, each RPC once. */
static void
remember(struct service *service, const struct waiting *waiting)
{
	for (unsigned i = 0; i < recent_held(service); i++) {
		if (service->recent[i].id == waiting->id) {
			service->recent[i] = *waiting;
			return;
		}
	}
	service->recent[service->recent_count++ % RECENT] = *waiting;
	if (service->recent_count == UINT32_MAX)
		service->recent_count = RECENT;
}

bool
services_feed(struct services *services, unsigned number, const struct waiting *waiting,
	uint64_t service_p50_ns)
{
	struct service *service = &services->service[number];

	learn_concurrency(services, service, waiting, service_p50_ns);
	remember(service, waiting);

	bool changed = cut_silences(services, service, waiting);
	struct silence *silence = next_silence(services, service->silence, waiting->t_given);
	for (; silence; silence = next_silence(services, silence->older, waiting->t_given))
		changed |= join_silence(silence, waiting);
	return changed;
}

void
services_feed_brief(
	struct services *services, unsigned number, uint64_t t_given, uint64_t t_answered)
{
	struct service *service = &services->service[number];

	service->briefs[service->brief_count++ % RECENT_BRIEFS] =
		(struct interval){.begin = ns_sub(t_given, ACK_SLACK_NS), .end = t_answered};
	if (service->brief_count == UINT32_MAX)
		service->brief_count = RECENT_BRIEFS;
}

/*
 * The silence that a record is about again: one that went on (the same lcore
 * says how it ended), or the only one that it overlaps (another lcore saw it
 * too). *several: it overlaps more, which are parts of it cut by answers.
 */
static struct silence *
same_silence(const struct services *services, const struct service *service, struct interval span,
	unsigned source, bool *several)
{
	struct silence *found = NULL;
	struct silence *silence = next_silence(services, service->silence, span.begin);

	*several = false;
	for (; silence; silence = next_silence(services, silence->older, span.begin)) {
		if (interval_overlap_ns(silence->span, span) == 0)
			continue;
		if (goes_on(silence) && silence->source == source)
			return silence;
		*several = found != NULL;
		found = silence;
	}
	return found;
}

bool
services_silence(struct services *services, const struct bs_rec_silence *record)
{
	struct interval span = {record->t_begin, record->t_end ? record->t_end : UINT64_MAX};
	unsigned source = record->head.source;
	bool several;

	if (record->service >= DIAG_SERVICES || span.end < span.begin)
		return false;
	if (interval_ns(span) < services->hang_ns)
		return true;

	struct service *service = &services->service[record->service];
	struct silence *silence = same_silence(services, service, span, source, &several);
	if (!silence) {
		silence = add_silence(services, service, span);
	} else if (goes_on(silence) && silence->source == source) {
		silence->span.end = span.end;
	} else if (several) {
		return true;
	} else {
		silence->span.begin = ns_min(silence->span.begin, span.begin);
		if (!goes_on(silence))
			silence->span.end = ns_max(silence->span.end, span.end);
	}
	silence->source = (uint16_t)source;
	silence->mover_id = record->mover_id;
	silence->many = silence->many || record->pending >= 2;
	for (unsigned i = 0; i < recent_held(service); i++)
		cut_silences(services, service, &service->recent[i]);
	join_recent(service, silence);
	return true;
}

bool
services_probe(struct services *services, const struct bs_rec_probe *record)
{
	if (record->service >= DIAG_SERVICES || record->t_end < record->t_begin)
		return false;

	struct service *service = &services->service[record->service];
	uint64_t number = ++services->probe_count;
	bool any = record->connections > 0;
	services->probes[number % services->probe_slots] = (struct probe){
		.span = {record->t_begin, record->t_end},
		.older = service->probe,
		.said =
			{
				.state = record->state,
				.unaccepted = any && record->unaccepted == record->connections,
				.unread = any && record->unread == record->connections,
				.unsent = any && record->unsent == record->connections,
			},
	};
	service->probe = number;
	return true;
}

bool
services_concurrent(const struct services *services, unsigned number)
{
	const struct service *service = &services->service[number];
	return service->overtakings >= OVERTAKINGS &&
	       (uint64_t)service->overtakings * OVERTAKING_PAIRS >=
		       (uint64_t)service->overtakings + service->in_order;
}

/* What the kernel said for most of the silence. */
static struct probed
probed(const struct services *services, const struct service *service, struct interval span)
{
	uint64_t ns[BS_PROBE_STATE_COUNT] = {0};
	uint64_t covered = 0, unaccepted = 0, unread = 0, unsent = 0;
	struct probed said = {0};
	const struct probe *probe = probe_at(services, service->probe);

	for (; probe && ns_add(probe->span.end, DISORDER_NS) >= span.begin;
		probe = probe_at(services, probe->older)) {
		uint64_t overlap = interval_overlap_ns(probe->span, span);
		if (probe->said.state >= BS_PROBE_STATE_COUNT)
			continue;
		ns[probe->said.state] = ns_add(ns[probe->said.state], overlap);
		covered = ns_add(covered, overlap);
		unaccepted = ns_add(unaccepted, probe->said.unaccepted ? overlap : 0);
		unread = ns_add(unread, probe->said.unread ? overlap : 0);
		unsent = ns_add(unsent, probe->said.unsent ? overlap : 0);
	}
	if (covered < interval_ns(span) / PROBE_COVER)
		return said;
	for (uint8_t i = BS_PROBE_STOPPED; i < BS_PROBE_STATE_COUNT; i++)
		if (ns[i] > ns[said.state])
			said.state = i;
	said.unaccepted = unaccepted > covered / 2;
	said.unread = unread > covered / 2;
	said.unsent = unsent > covered / 2;
	return said;
}

static struct interval
silent(const struct silence *silence, uint64_t now)
{
	struct interval span = silence->span;
	span.end = goes_on(silence) ? ns_max(now, span.begin) : span.end;
	return span;
}

/*
 * Up to half load a backlog drains in no more time than it gathered in. An RPC
 * that found the service empty does not wait for one.
 */
static struct interval
backlog(const struct silence *silence, const struct waiting *waiting, uint64_t now)
{
	struct interval in = silent(silence, now);
	return (struct interval){
		.begin = in.end,
		.end = waiting->pending >= 1 ? ns_add(in.end, interval_ns(in)) : in.end,
	};
}

/* How much of the spans lies in the silence, and how much in the time its backlog needs to drain.
 */
static void
cover(const struct silence *silence, const struct waiting *waiting, const struct interval *spans,
	unsigned count, uint64_t now, uint64_t *in_ns, uint64_t *after_ns)
{
	struct interval in = silent(silence, now);
	struct interval after = backlog(silence, waiting, now);

	*in_ns = *after_ns = 0;
	for (unsigned i = 0; i < count; i++) {
		*in_ns = ns_add(*in_ns, interval_overlap_ns(in, spans[i]));
		*after_ns = ns_add(*after_ns, interval_overlap_ns(after, spans[i]));
	}
}

static void
blame(struct reading *reading, enum reading_kind kind, unsigned buffer, unsigned cause,
	unsigned detail)
{
	reading->kind = kind;
	reading->blame = (struct bs_blame){.buffer = (uint16_t)buffer, .cause = (uint8_t)cause};
	reading->detail = (uint16_t)detail;
}

/* What kind of hang a state of its threads is; NONE: it is none. */
static unsigned
hang_detail(unsigned state)
{
	static const uint8_t details[BS_PROBE_STATE_COUNT] = {
		[BS_PROBE_STOPPED] = BS_DETAIL_STOPPED,
		[BS_PROBE_STARVED] = BS_DETAIL_STARVED,
		[BS_PROBE_THROTTLED] = BS_DETAIL_THROTTLED,
	};
	return details[state];
}

/*
 * Where sockets say that the request, or its answer, stood: before it was known
 * to the service, or after. False if they leave that open.
 */
static bool
read_sockets(struct probed said, const struct waiting *waiting, struct reading *reading)
{
	if (said.unaccepted && waiting->connects) {
		blame(reading, READING_UNACCEPTED, BS_BUFFER_SERVER_ACCEPT, BS_CAUSE_CONGESTION,
			BS_DETAIL_NONE);
	} else if (said.unsent) {
		blame(reading, READING_UNSENT, BS_BUFFER_SERVER_SOCKET_TX, BS_CAUSE_CONGESTION,
			BS_DETAIL_NONE);
	} else if (said.unread && said.state == BS_PROBE_ASLEEP) {
		blame(reading, READING_UNREAD, BS_BUFFER_SERVER_SOCKET_RX, BS_CAUSE_HANG,
			BS_DETAIL_UNREAD);
	} else if (said.unread) {
		blame(reading, READING_BUSY, BS_BUFFER_SERVER_SOCKET_RX, BS_CAUSE_CONTENTION,
			BS_DETAIL_NONE);
		reading->hang_possible = said.state != BS_PROBE_RUNNING;
	} else {
		return false;
	}
	return true;
}

/* Whether nobody of many was served, although the service answers side by side. */
static bool
nobody_served(const struct services *services, const struct silence *silence, uint64_t ns,
	uint64_t p99_ns)
{
	uint64_t limit = p99_ns > UINT64_MAX / 10 ? UINT64_MAX : p99_ns * 10;
	return silence->many && ns >= ns_max(services->hang_ns, limit);
}

static struct reading
interpret(const struct services *services, const struct service *service,
	const struct silence *silence, const struct waiting *waiting, bool concurrent,
	uint64_t p99_ns, uint64_t now)
{
	struct reading reading = {.silence = silent(silence, now), .detail = BS_DETAIL_NONE};
	uint64_t served = silence->served_id ? silence->served_id : silence->mover_id;
	struct probed said = probed(services, service, reading.silence);
	unsigned hang = hang_detail(said.state);
	bool running = said.state == BS_PROBE_RUNNING;

	if (hang != BS_DETAIL_NONE) {
		blame(&reading, READING_HANG, BS_BUFFER_SERVICE, BS_CAUSE_HANG, hang);
	} else if (read_sockets(said, waiting, &reading)) {
		return reading;
	} else if (concurrent && !running &&
		   nobody_served(services, silence, interval_ns(reading.silence), p99_ns)) {
		blame(&reading, READING_HANG, BS_BUFFER_SERVICE, BS_CAUSE_HANG, BS_DETAIL_NONE);
	} else if (!concurrent && served != waiting->id && served != 0 &&
		   (silence->many || waiting->t_given >= reading.silence.end)) {
		blame(&reading, READING_BEHIND, BS_BUFFER_SERVICE, BS_CAUSE_CONGESTION,
			BS_DETAIL_NONE);
		reading.culprit_id = served;
		reading.hang_possible = !running;
	} else {
		reading.kind = running ? READING_COMPUTE : READING_SET;
	}
	return reading;
}

struct reading
services_read(const struct services *services, unsigned number, const struct waiting *waiting,
	const struct interval *spans, unsigned span_count, uint64_t excess_ns, uint64_t p99_ns,
	uint64_t now)
{
	const struct service *service = &services->service[number];
	const struct silence *best = NULL;
	uint64_t best_in = 0, best_after = 0;
	struct silence *silence = next_silence(services, service->silence, 0);

	/* A backlog outlasts its silence: all that are held are looked at. */
	for (; silence; silence = next_silence(services, silence->older, 0)) {
		uint64_t in_ns, after_ns;
		cover(silence, waiting, spans, span_count, now, &in_ns, &after_ns);
		if (ns_add(in_ns, after_ns) > ns_add(best_in, best_after)) {
			best = silence;
			best_in = in_ns;
			best_after = after_ns;
		}
	}
	/* Against a halving, not a doubling: the excess may be anything. */
	if (!best || ns_add(best_in, best_after) < excess_ns - excess_ns / 2)
		return (struct reading){.kind = READING_NONE};

	struct reading reading = interpret(services, service, best, waiting,
		services_concurrent(services, number), p99_ns, now);
	if (best_in >= excess_ns - excess_ns / 2)
		return reading;
	/* Mostly after the silence: it stood behind those that had gathered. */
	reading.backlog = backlog(best, waiting, now);
	if (reading.kind == READING_HANG || reading.kind == READING_UNREAD)
		reading.kind = READING_AFTERMATH;
	else if (reading.kind != READING_BEHIND)
		reading.kind = READING_NONE;
	return reading;
}
