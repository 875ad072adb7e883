/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Incidents: what one origin did to many RPCs, in bounded memory. Victims of the
 * same origin whose intervals overlap, or nearly, belong to one. It is told from
 * the second victim on, and at once if the origin is a buffer of ours or a pause:
 * one RPC that was slow in its service or network is told by its verdict alone.
 */
#pragma once

#include <stdint.h>

#include "bs_record.h"
#include "interval.h"
#include "judge.h"

struct incidents;

/* NULL with errno ENOMEM. `report` may be NULL. */
struct incidents *incidents_create(
	bool offline, void (*report)(void *, const struct bs_rec_incident *), void *context);
void incidents_destroy(struct incidents *incidents);

/*
 * Counts a victim, once: `previous` is the incident that it was counted in
 * before (0: none), which it leaves if it now belongs to another. Returns the
 * id of the incident.
 */
uint64_t incidents_add(struct incidents *incidents, const struct judgement *judgement,
	uint64_t previous, uint64_t now);

/* The RPC turned out not to be a victim. */
void incidents_remove(struct incidents *incidents, uint64_t id, const struct judgement *judgement);

/* Live: reports what has changed, closes what has been quiet. */
void incidents_advance(struct incidents *incidents, uint64_t now);

/* Closes all. */
void incidents_finish(struct incidents *incidents);
