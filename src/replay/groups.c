/* SPDX-License-Identifier: BSD-3-Clause */
#include "groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES (1u << 20)

static void *
allocate(struct groups *groups, size_t bytes)
{
	struct group_block *block = groups->blocks;
	void *data;

	if (block == NULL || block->size - block->used < bytes) {
		size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;

		block = malloc(sizeof(*block) + size);
		if (block == NULL)
			return NULL;
		block->next = groups->blocks;
		block->used = 0;
		block->size = size;
		groups->blocks = block;
	}
	data = (char *)block->data + block->used;
	block->used += bytes;
	return data;
}

const struct bs_rec_rpc *
groups_add(struct groups *groups, const struct findings_run *run, const void *group, size_t bytes)
{
	void *copy;

	if (groups->count == groups->room) {
		size_t room = groups->room > 0 ? 2 * groups->room : 1024;
		struct group *list = reallocarray(groups->list, room, sizeof(*list));

		if (list == NULL)
			return NULL;
		groups->list = list;
		groups->room = room;
	}
	copy = allocate(groups, bytes);
	if (copy == NULL)
		return NULL;
	memcpy(copy, group, bytes);
	groups->list[groups->count].rpc = copy;
	groups->list[groups->count].run = run;
	groups->list[groups->count].decided = false;
	groups->list[groups->count].bytes = bytes;
	groups->count++;
	return copy;
}

int
groups_replace(struct groups *groups, struct group *group, const void *records, size_t bytes)
{
	void *copy = allocate(groups, bytes);

	if (copy == NULL)
		return -ENOMEM;
	group->rpc = memcpy(copy, records, bytes);
	group->bytes = bytes;
	return 0;
}

static int
by_id(const void *a, const void *b)
{
	uint64_t x = ((const struct group *)a)->rpc->id;
	uint64_t y = ((const struct group *)b)->rpc->id;

	return (x > y) - (x < y);
}

void
groups_sort(struct groups *groups)
{
	if (groups->count > 0)
		qsort(groups->list, groups->count, sizeof(groups->list[0]), by_id);
}

struct bs_rpc_view
group_view(const struct group *group)
{
	struct bs_rpc_view view = {.rpc = group->rpc};

	view.segments = (const void *)(group->rpc + 1);
	view.events = (const void *)(view.segments + group->rpc->segment_count);
	return view;
}

void
groups_free(struct groups *groups)
{
	while (groups->blocks != NULL) {
		struct group_block *block = groups->blocks;

		groups->blocks = block->next;
		free(block);
	}
	free(groups->list);
	memset(groups, 0, sizeof(*groups));
}
