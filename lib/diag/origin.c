/* SPDX-License-Identifier: BSD-3-Clause */
/* From symptoms to origins: see origin.h. */
#include "origin.h"

#include <stdlib.h>
#include <string.h>

#define EPISODES_LIVE 1024u
#define EPISODES_OFFLINE 16384u

/* A drop may be stamped this long after the full queue that caused it. */
#define DROP_SLACK_NS (100 * NS_PER_US)

/* What went missing in our rx ring is seen missing once what was in it has been polled. */
#define RING_NS (100 * NS_PER_MS)

/* How long before a drop its queue may have begun to fill: who held it up most then is to blame. */
#define DROP_BUSY_NS (20 * NS_PER_MS)

struct episode {
	struct interval span; /* end UINT64_MAX: goes on */
	uint64_t older;	      /* number of the next older one of the buffer; 0 = none */
	uint16_t buffer;
	uint16_t upstream;
	uint16_t detail;
	uint16_t lcore;
	uint8_t type;
	uint8_t culprit_count;
	uint8_t culprit_kind[BS_EVENT_CULPRITS];
	struct bs_culprit_share culprits[BS_EVENT_CULPRITS];
};

/* A ring by number (1, 2, ...), chained by buffer, newest first. */
struct episodes {
	struct episode *ring;
	uint64_t count;
	uint32_t slots;
	uint64_t newest[BS_BUFFER_MAX];
};

struct episodes *
episodes_create(bool offline)
{
	struct episodes *episodes = calloc(1, sizeof(*episodes));
	if (!episodes)
		return NULL;

	episodes->slots = offline ? EPISODES_OFFLINE : EPISODES_LIVE;
	episodes->ring = calloc(episodes->slots, sizeof(*episodes->ring));
	if (!episodes->ring) {
		free(episodes);
		return NULL;
	}
	return episodes;
}

void
episodes_destroy(struct episodes *episodes)
{
	if (!episodes)
		return;
	free(episodes->ring);
	free(episodes);
}

static struct episode *
episode_at(const struct episodes *episodes, uint64_t number)
{
	if (number == 0 || episodes->count - number >= episodes->slots)
		return NULL;
	return &episodes->ring[number % episodes->slots];
}

static struct episode *
newest(const struct episodes *episodes, unsigned buffer)
{
	return episode_at(episodes, episodes->newest[buffer]);
}

static void
fill(struct episode *episode, const struct bs_rec_event *event)
{
	episode->span.begin = event->t_begin;
	episode->span.end = event->t_end ? event->t_end : UINT64_MAX;
	episode->type = event->type;
	episode->buffer = event->buffer;
	episode->upstream = event->upstream;
	episode->detail = event->detail;
	episode->lcore = event->head.source;
	episode->culprit_count = event->culprit_count;
	memcpy(episode->culprit_kind, event->culprit_kind, sizeof(episode->culprit_kind));
	memcpy(episode->culprits, event->culprits, sizeof(episode->culprits));
}

bool
episodes_feed(struct episodes *episodes, const struct bs_rec_event *event)
{
	if (event->buffer >= BS_BUFFER_MAX || event->type > BS_CAUSE_HANG ||
		event->culprit_count > BS_EVENT_CULPRITS ||
		(event->t_end && event->t_end < event->t_begin))
		return false;

	/* The end of one that was told while it went on. */
	struct episode *episode = newest(episodes, event->buffer);
	for (; episode; episode = episode_at(episodes, episode->older))
		if (episode->type == event->type && episode->span.begin == event->t_begin &&
			episode->lcore == event->head.source)
			break;
	if (!episode) {
		uint64_t number = ++episodes->count;
		episode = &episodes->ring[number % episodes->slots];
		episode->older = episodes->newest[event->buffer];
		episodes->newest[event->buffer] = number;
	}
	fill(episode, event);
	return true;
}

bool
origin_own_buffer(unsigned buffer)
{
	return buffer >= BS_BUFFER_FIRST_OWN || buffer == BS_BUFFER_HANDOVER ||
	       buffer == BS_BUFFER_MEMPOOL;
}

/*
 * How much of the span an episode explains: the stretch it lasted, and as long
 * again, in which the queue it left drains at half load.
 */
static uint64_t
explained_ns(const struct episode *episode, struct interval span, uint64_t now)
{
	struct interval reach = episode->span;

	if (reach.end == UINT64_MAX)
		reach.end = ns_max(now, reach.begin);
	reach.end = ns_add(reach.end, interval_ns(reach));
	return interval_overlap_ns(reach, span);
}

/* Episodes of one buffer of one type, and for PAUSE of one upstream, together. */
static uint64_t
sum_like(const struct episodes *episodes, unsigned buffer, const struct episode *like,
	struct interval span, uint64_t now)
{
	const struct episode *episode = newest(episodes, buffer);
	uint64_t sum = 0;

	for (; episode; episode = episode_at(episodes, episode->older))
		if (episode->type == like->type && episode->upstream == like->upstream)
			sum = ns_add(sum, explained_ns(episode, span, now));
	return sum;
}

/*
 * Of the episodes of the types (bits) that explain the span, the one that with
 * its likes explains most of `weigh`.
 */
static const struct episode *
best_weighed(const struct episodes *episodes, unsigned buffer, unsigned types, struct interval span,
	struct interval weigh, uint64_t now)
{
	const struct episode *episode = newest(episodes, buffer);
	const struct episode *best = NULL;
	uint64_t best_ns = 0;

	for (; episode; episode = episode_at(episodes, episode->older)) {
		if (!(types & 1u << episode->type))
			continue;
		if (best && best->type == episode->type && best->upstream == episode->upstream)
			continue;
		if (sum_like(episodes, buffer, episode, span, now) < interval_ns(span) / 2 ||
			interval_ns(span) == 0)
			continue;
		uint64_t ns = sum_like(episodes, buffer, episode, weigh, now);
		if (ns > best_ns || (ns == best_ns && episode->type == BS_CAUSE_HANG)) {
			best = episode;
			best_ns = ns;
		}
	}
	return best;
}

static const struct episode *
best_episode(const struct episodes *episodes, unsigned buffer, unsigned types, struct interval span,
	uint64_t now)
{
	return best_weighed(episodes, buffer, types, span, span, now);
}

static void
step(struct origin *origin, unsigned buffer, unsigned cause)
{
	origin->blame = (struct bs_blame){.buffer = (uint16_t)buffer, .cause = (uint8_t)cause};
	origin->via[origin->via_count++] = origin->blame;
	origin->detail = BS_DETAIL_NONE;
}

static void
note_culprits(struct origin *origin, const struct episode *episode)
{
	origin->culprit_count = episode->culprit_count;
	memcpy(origin->culprit_kind, episode->culprit_kind, sizeof(origin->culprit_kind));
	memcpy(origin->culprits, episode->culprits, sizeof(origin->culprits));
}

#define TYPE(name) (1u << BS_CAUSE_##name)

/* Why a buffer that made others pause was full: its own story, else more came than it drained. */
static bool
step_upstream(const struct episodes *episodes, const struct episode *pause, struct interval span,
	uint64_t now, struct origin *origin)
{
	unsigned buffer = pause->upstream;
	const struct episode *why = NULL;

	if (buffer == BS_BUFFER_NONE || buffer >= BS_BUFFER_MAX)
		return false;
	note_culprits(origin, pause);
	if (!origin_own_buffer(buffer)) {
		step(origin, buffer, BS_CAUSE_PAUSE);
		return false;
	}
	why = best_episode(episodes, buffer, TYPE(HANG) | TYPE(PAUSE), span, now);
	step(origin, buffer, why ? why->type : BS_CAUSE_CONGESTION);
	return why != NULL;
}

/* One step back; false where the way ends. */
static bool
step_back(
	const struct episodes *episodes, struct interval span, uint64_t now, struct origin *origin)
{
	struct bs_blame at = origin->blame;
	struct interval weigh = span;
	const struct episode *episode;

	if (at.cause == BS_CAUSE_PAUSE) {
		episode = best_episode(episodes, at.buffer, TYPE(PAUSE), span, now);
		return episode && step_upstream(episodes, episode, span, now, origin);
	}
	if (at.cause == BS_CAUSE_HANG) {
		episode = best_episode(episodes, at.buffer, TYPE(HANG), span, now);
		if (!episode)
			return false;
		note_culprits(origin, episode);
		origin->lcore = episode->lcore;
		if (episode->upstream != BS_BUFFER_NONE && episode->upstream < BS_BUFFER_MAX &&
			episode->upstream != at.buffer)
			step(origin, episode->upstream, BS_CAUSE_HANG);
		origin->detail = episode->detail;
		return false;
	}
	if (at.cause != BS_CAUSE_CONGESTION && at.cause != BS_CAUSE_DROP)
		return false;
	if (at.cause == BS_CAUSE_DROP)
		weigh.begin = ns_sub(weigh.begin, DROP_BUSY_NS);
	episode = best_weighed(episodes, at.buffer, TYPE(HANG) | TYPE(PAUSE), span, weigh, now);
	if (!episode)
		return false;
	step(origin, at.buffer, episode->type);
	return true;
}

/*
 * Bytes that did not come to us, in the buffer where that seems to have happened:
 * a device of ours may say that it dropped them.
 */
static const struct episode *
dropped_by_us(const struct episodes *episodes, struct bs_blame symptom, uint64_t t)
{
	const uint64_t count = episodes->count;
	const struct episode *best = NULL;

	for (uint64_t number = count; episode_at(episodes, number); number--) {
		const struct episode *episode = episode_at(episodes, number);

		if (episode->type == BS_CAUSE_DROP && episode->upstream == symptom.buffer &&
			episode->span.begin <= t && t <= ns_add(episode->span.end, RING_NS))
			best = episode;
	}
	return best;
}

void
origin_find(const struct episodes *episodes, struct bs_blame symptom, struct interval span,
	uint64_t now, struct origin *origin)
{
	*origin = (struct origin){.blame = symptom, .lcore = ORIGIN_LCORE_NONE};
	if (symptom.buffer >= BS_BUFFER_MAX)
		return;
	if (!origin_own_buffer(symptom.buffer)) {
		const struct episode *episode = NULL;

		if (symptom.cause == BS_CAUSE_DROP)
			episode = dropped_by_us(episodes, symptom, span.begin);
		if (!episode)
			return;
		step(origin, episode->buffer, BS_CAUSE_DROP);
		origin->detail = episode->detail;
	}
	/* A drop happened at an instant; what follows is the wait for its resend. */
	if (symptom.cause == BS_CAUSE_DROP) {
		span.begin = ns_sub(span.begin, DROP_SLACK_NS);
		span.end = ns_add(span.begin, 2 * DROP_SLACK_NS);
	}
	while (origin->via_count < BS_VERDICT_VIA && step_back(episodes, span, now, origin))
		;
}
