/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The newest verdicts and incidents. All memory is taken at create; a table of
 * slots and a list of slot numbers by age, newest first, keep both bounded.
 */
#include "store.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct anomaly {
	struct bs_rec_verdict verdict;
	struct bs_rec_rpc rpc;
	struct bs_rec_segment segments[BS_RPC_MAX_SEGMENTS];
	struct bs_rec_event events[BS_RPC_MAX_EVENTS];
};

/* Which slots are used, by age. ids[] of each slot is apart, so that a search touches little. */
struct ages {
	uint64_t *ids;
	uint16_t *order; /* slots, newest first; those from count on are free */
	unsigned count, max;
};

struct bs_store {
	pthread_mutex_t lock;
	struct ages anomaly_ages, incident_ages;
	uint64_t anomaly_ids[BS_STORE_ANOMALIES], incident_ids[BS_STORE_INCIDENTS];
	uint16_t anomaly_order[BS_STORE_ANOMALIES], incident_order[BS_STORE_INCIDENTS];
	struct anomaly anomalies[BS_STORE_ANOMALIES];
	struct bs_rec_incident incidents[BS_STORE_INCIDENTS];
};

static void
ages_init(struct ages *ages, uint64_t *ids, uint16_t *order, unsigned max)
{
	*ages = (struct ages){.ids = ids, .order = order, .max = max};
	for (unsigned i = 0; i < max; i++)
		order[i] = (uint16_t)i;
}

/* Position in order of the slot that holds id; count if none does. */
static unsigned
ages_find(const struct ages *ages, uint64_t id)
{
	unsigned i = 0;

	while (i < ages->count && ages->ids[ages->order[i]] != id)
		i++;
	return i;
}

/* The slot of id; if there is none yet, the oldest or a free one becomes the newest. */
static unsigned
ages_take(struct ages *ages, uint64_t id)
{
	unsigned at = ages_find(ages, id);
	uint16_t slot;

	if (at < ages->count)
		return ages->order[at];
	if (ages->count < ages->max)
		ages->count++;
	slot = ages->order[ages->count - 1];
	memmove(ages->order + 1, ages->order, (ages->count - 1) * sizeof(*ages->order));
	ages->order[0] = slot;
	ages->ids[slot] = id;
	return slot;
}

static void
ages_drop(struct ages *ages, uint64_t id)
{
	unsigned at = ages_find(ages, id);
	uint16_t slot;

	if (at == ages->count)
		return;
	slot = ages->order[at];
	ages->count--;
	memmove(ages->order + at, ages->order + at + 1, (ages->count - at) * sizeof(*ages->order));
	ages->order[ages->count] = slot;
}

struct bs_store *
bs_store_create(void)
{
	struct bs_store *store = calloc(1, sizeof(*store));
	int code;

	if (store == NULL)
		return NULL;
	code = pthread_mutex_init(&store->lock, NULL);
	if (code != 0) {
		free(store);
		errno = code;
		return NULL;
	}
	ages_init(
		&store->anomaly_ages, store->anomaly_ids, store->anomaly_order, BS_STORE_ANOMALIES);
	ages_init(&store->incident_ages, store->incident_ids, store->incident_order,
		BS_STORE_INCIDENTS);
	return store;
}

void
bs_store_destroy(struct bs_store *store)
{
	if (store == NULL)
		return;
	pthread_mutex_destroy(&store->lock);
	free(store);
}

int
bs_store_verdict(
	struct bs_store *store, const struct bs_rec_verdict *verdict, const struct bs_rpc_view *rpc)
{
	struct anomaly *anomaly;

	if (rpc->rpc->segment_count > BS_RPC_MAX_SEGMENTS ||
		rpc->rpc->event_count > BS_RPC_MAX_EVENTS)
		return -EINVAL;
	pthread_mutex_lock(&store->lock);
	if (verdict->anomalous_by == 0) {
		ages_drop(&store->anomaly_ages, verdict->rpc_id);
	} else {
		anomaly = &store->anomalies[ages_take(&store->anomaly_ages, verdict->rpc_id)];
		anomaly->verdict = *verdict;
		anomaly->rpc = *rpc->rpc;
		if (rpc->rpc->segment_count > 0)
			memcpy(anomaly->segments, rpc->segments,
				rpc->rpc->segment_count * sizeof(anomaly->segments[0]));
		if (rpc->rpc->event_count > 0)
			memcpy(anomaly->events, rpc->events,
				rpc->rpc->event_count * sizeof(anomaly->events[0]));
	}
	pthread_mutex_unlock(&store->lock);
	return 0;
}

void
bs_store_incident(struct bs_store *store, const struct bs_rec_incident *incident)
{
	pthread_mutex_lock(&store->lock);
	store->incidents[ages_take(&store->incident_ages, incident->id)] = *incident;
	pthread_mutex_unlock(&store->lock);
}

static void
visit_anomaly(const struct bs_store *store, unsigned at,
	void (*visit)(
		void *context, const struct bs_rec_verdict *verdict, const struct bs_rpc_view *rpc),
	void *context)
{
	const struct anomaly *anomaly = &store->anomalies[store->anomaly_order[at]];
	const struct bs_rpc_view view = {&anomaly->rpc, anomaly->segments, anomaly->events};

	visit(context, &anomaly->verdict, &view);
}

/* One behind the last position of a page. */
static unsigned
page_end(const struct ages *ages, unsigned offset, unsigned max)
{
	if (offset >= ages->count)
		return offset;
	return max < ages->count - offset ? offset + max : ages->count;
}

unsigned
bs_store_anomalies(struct bs_store *store, unsigned offset, unsigned max,
	void (*visit)(
		void *context, const struct bs_rec_verdict *verdict, const struct bs_rpc_view *rpc),
	void *context)
{
	unsigned total;

	pthread_mutex_lock(&store->lock);
	total = store->anomaly_ages.count;
	for (unsigned i = offset; i < page_end(&store->anomaly_ages, offset, max); i++)
		visit_anomaly(store, i, visit, context);
	pthread_mutex_unlock(&store->lock);
	return total;
}

unsigned
bs_store_incidents(struct bs_store *store, unsigned offset, unsigned max,
	void (*visit)(void *context, const struct bs_rec_incident *incident), void *context)
{
	unsigned total;

	pthread_mutex_lock(&store->lock);
	total = store->incident_ages.count;
	for (unsigned i = offset; i < page_end(&store->incident_ages, offset, max); i++)
		visit(context, &store->incidents[store->incident_order[i]]);
	pthread_mutex_unlock(&store->lock);
	return total;
}

int
bs_store_find(struct bs_store *store, uint64_t rpc_id,
	void (*visit)(
		void *context, const struct bs_rec_verdict *verdict, const struct bs_rpc_view *rpc),
	void *context)
{
	unsigned at;
	int ret = -ENOENT;

	pthread_mutex_lock(&store->lock);
	at = ages_find(&store->anomaly_ages, rpc_id);
	if (at < store->anomaly_ages.count) {
		visit_anomaly(store, at, visit, context);
		ret = 0;
	}
	pthread_mutex_unlock(&store->lock);
	return ret;
}
