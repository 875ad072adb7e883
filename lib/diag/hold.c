/* SPDX-License-Identifier: BSD-3-Clause */
/* A ring of RPC groups: see hold.h. */
#include "hold.h"

#include <stdlib.h>
#include <string.h>

#define ALIGN 64u

/* Positions grow for ever; the place is position % size. Entries do not wrap. */
struct hold {
	unsigned char *ring;
	uint64_t size;
	uint64_t tail, head; /* oldest, and where the next goes */
	uint64_t due;	     /* all before it are judged */
};

_Static_assert(sizeof(struct held) % 8 == 0, "groups are 8-byte aligned, as records must be");

struct hold *
hold_create(size_t bytes)
{
	struct hold *hold = calloc(1, sizeof(*hold));
	if (!hold)
		return NULL;

	hold->size = bytes / ALIGN * ALIGN;
	hold->ring = aligned_alloc(ALIGN, hold->size);
	if (!hold->ring) {
		free(hold);
		return NULL;
	}
	return hold;
}

void
hold_destroy(struct hold *hold)
{
	if (!hold)
		return;
	free(hold->ring);
	free(hold);
}

static struct held *
at(const struct hold *hold, uint64_t position)
{
	return (struct held *)(void *)(hold->ring + position % hold->size);
}

/* The entry at or after *position, which is moved past gaps; NULL at the end. */
static struct held *
entry(const struct hold *hold, uint64_t *position)
{
	while (*position < hold->head) {
		uint64_t left = hold->size - *position % hold->size;
		if (left >= sizeof(struct held) && !at(hold, *position)->gap)
			return at(hold, *position);
		*position += left;
	}
	return NULL;
}

struct held *
hold_push(struct hold *hold, const void *group, size_t group_bytes)
{
	uint64_t bytes = (sizeof(struct held) + group_bytes + ALIGN - 1) / ALIGN * ALIGN;
	uint64_t left = hold->size - hold->head % hold->size;
	uint64_t gap = left < bytes ? left : 0;

	if (hold->size - (hold->head - hold->tail) < gap + bytes)
		return NULL;
	if (gap >= sizeof(struct held))
		at(hold, hold->head)->gap = true;
	hold->head += gap;

	struct held *held = at(hold, hold->head);
	memset(held, 0, sizeof(*held));
	held->bytes = bytes;
	held->group_bytes = group_bytes;
	memcpy(held + 1, group, group_bytes);
	hold->head += bytes;
	return held;
}

struct held *
hold_oldest(struct hold *hold)
{
	return entry(hold, &hold->tail);
}

void
hold_pop(struct hold *hold)
{
	struct held *held = entry(hold, &hold->tail);
	if (held)
		hold->tail += held->bytes;
	if (hold->due < hold->tail)
		hold->due = hold->tail;
}

struct held *
hold_next_due(struct hold *hold)
{
	struct held *held = entry(hold, &hold->due);
	while (held && held->judged) {
		hold->due += held->bytes;
		held = entry(hold, &hold->due);
	}
	return held;
}

void
hold_each_judged(struct hold *hold, void (*visit)(void *context, struct held *held), void *context)
{
	uint64_t position = hold->tail;
	struct held *held = entry(hold, &position);

	while (held && held->judged) {
		visit(context, held);
		position += held->bytes;
		held = entry(hold, &position);
	}
}
