/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RPC groups that wait for evidence of others, and those judged lately, whose
 * verdict may still be revised: a ring of bytes, first in, first out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bs_record.h"

/* Followed by the group. */
struct held {
	uint64_t bytes; /* of this entry, its end padding included */
	uint64_t group_bytes;
	uint64_t t_due;
	uint64_t t_judged;
	struct bs_rec_verdict verdict; /* the last given; rpc_id 0 before */
	bool judged;
	bool gap; /* nothing: the rest of the ring was too short for the next group */
};

struct hold;

struct hold *hold_create(size_t bytes); /* NULL with errno ENOMEM */
void hold_destroy(struct hold *hold);

/* A copy of the group, or NULL while there is no room: take out the oldest and try again. */
struct held *hold_push(struct hold *hold, const void *group, size_t group_bytes);

/* The oldest; NULL when empty. Takes it out: hold_pop(). */
struct held *hold_oldest(struct hold *hold);
void hold_pop(struct hold *hold);

/* The oldest that was not judged; NULL when there is none. */
struct held *hold_next_due(struct hold *hold);

/* Calls visit for every judged one, oldest first. */
void hold_each_judged(
	struct hold *hold, void (*visit)(void *context, struct held *held), void *context);

static inline const void *
held_group(const struct held *held)
{
	return held + 1;
}
