/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the analyzer has said lately, kept by bufscoped: the newest anomalies
 * with their RPCs, the newest incidents. Bounded; the oldest goes. Written by
 * the collector, read by telemetry and control threads, under a lock that no
 * pipeline lcore takes.
 */
#pragma once

#include "bs_record.h"

struct bs_store;

#define BS_STORE_ANOMALIES 1024u
#define BS_STORE_INCIDENTS 256u

struct bs_store *bs_store_create(void); /* NULL with errno */
void bs_store_destroy(struct bs_store *store);

/*
 * Takes a copy. A later verdict of the same RPC (a revision) replaces the
 * earlier in its place; if it says "not anomalous", the RPC leaves. 0, or
 * -EINVAL if the group is larger than groups may be. Collector.
 */
int bs_store_verdict(struct bs_store *store, const struct bs_rec_verdict *verdict,
	const struct bs_rpc_view *rpc);

/* Takes a copy; an incident of the same id replaces the earlier in its place. Collector. */
void bs_store_incident(struct bs_store *store, const struct bs_rec_incident *incident);

/*
 * Calls visit for up to `max` anomalies, newest first, beginning with number
 * `offset`; visit runs under the lock. Returns how many are held in all.
 */
unsigned bs_store_anomalies(struct bs_store *store, unsigned offset, unsigned max,
	void (*visit)(
		void *context, const struct bs_rec_verdict *verdict, const struct bs_rpc_view *rpc),
	void *context);
unsigned bs_store_incidents(struct bs_store *store, unsigned offset, unsigned max,
	void (*visit)(void *context, const struct bs_rec_incident *incident), void *context);

/* Calls visit with the anomaly of that RPC-ID. 0, or -ENOENT. */
int bs_store_find(struct bs_store *store, uint64_t rpc_id,
	void (*visit)(
		void *context, const struct bs_rec_verdict *verdict, const struct bs_rpc_view *rpc),
	void *context);
