/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A buddy allocator (Knuth, The Art of Computer Programming 1, section 2.5) over
 * memory of fixed size. A block of order k is 64 << k bytes, at a multiple of
 * that; freed, it is joined with its buddy if that is free as well. What order
 * the block at a place has stands in a byte of its own, outside of the memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bs_framer.h"

#define UNIT_SHIFT 6u
#define UNIT (1u << UNIT_SHIFT)
#define ORDERS 26u /* up to 2 GiB */
#define FREE 0x80u /* bit of a block's order */
#define INSIDE 0x7fu
#define NONE UINT32_MAX

/* In the first bytes of a free block; places are in units. */
struct free_block {
	uint32_t prev, next;
};

struct bs_frame_memory {
	uint32_t first[ORDERS]; /* free blocks of each order */
	unsigned top;
	size_t used;
	uint64_t refused;
	uint8_t *bytes;
	uint8_t *order; /* by unit: of the block that begins there, or INSIDE */
};

static struct free_block *
free_at(const struct bs_frame_memory *memory, uint32_t place)
{
	return (struct free_block *)(void *)(memory->bytes + ((size_t)place << UNIT_SHIFT));
}

static void
free_push(struct bs_frame_memory *memory, uint32_t place, unsigned order)
{
	struct free_block *block = free_at(memory, place);

	block->prev = NONE;
	block->next = memory->first[order];
	if (block->next != NONE)
		free_at(memory, block->next)->prev = place;
	memory->first[order] = place;
	memory->order[place] = (uint8_t)(order | FREE);
}

static void
free_remove(struct bs_frame_memory *memory, uint32_t place, unsigned order)
{
	const struct free_block *block = free_at(memory, place);

	if (block->prev != NONE)
		free_at(memory, block->prev)->next = block->next;
	else
		memory->first[order] = block->next;
	if (block->next != NONE)
		free_at(memory, block->next)->prev = block->prev;
	memory->order[place] = INSIDE;
}

static unsigned
order_of(size_t bytes)
{
	unsigned order = 0;

	while (order < ORDERS && (size_t)UNIT << order < bytes)
		order++;
	return order;
}

struct bs_frame_memory *
bs_frame_memory_create(size_t bytes)
{
	struct bs_frame_memory *memory;
	unsigned top = order_of(bytes);

	if (bytes == 0 || top >= ORDERS) {
		errno = EINVAL;
		return NULL;
	}
	memory = calloc(1, sizeof(*memory));
	if (memory == NULL)
		return NULL;
	memory->top = top;
	memory->bytes = malloc((size_t)UNIT << top);
	memory->order = malloc((size_t)1 << top);
	if (memory->bytes == NULL || memory->order == NULL) {
		bs_frame_memory_destroy(memory);
		errno = ENOMEM;
		return NULL;
	}
	memset(memory->order, INSIDE, (size_t)1 << top);
	for (unsigned i = 0; i < ORDERS; i++)
		memory->first[i] = NONE;
	free_push(memory, 0, top);
	return memory;
}

void
bs_frame_memory_destroy(struct bs_frame_memory *memory)
{
	if (memory == NULL)
		return;
	free(memory->bytes);
	free(memory->order);
	free(memory);
}

void *
bs_frame_alloc(struct bs_frame_memory *memory, size_t bytes)
{
	const unsigned order = order_of(bytes);
	unsigned from = order;
	uint32_t place;

	while (from <= memory->top && memory->first[from] == NONE)
		from++;
	if (from > memory->top) {
		memory->refused++;
		return NULL;
	}
	place = memory->first[from];
	free_remove(memory, place, from);
	while (from > order) {
		from--;
		free_push(memory, place + (1u << from), from);
	}
	memory->order[place] = (uint8_t)order;
	memory->used += (size_t)UNIT << order;
	return free_at(memory, place);
}

static uint32_t
place_of(const struct bs_frame_memory *memory, const void *block)
{
	return (uint32_t)((size_t)((const uint8_t *)block - memory->bytes) >> UNIT_SHIFT);
}

void *
bs_frame_realloc(struct bs_frame_memory *memory, void *block, size_t bytes)
{
	size_t before;
	void *larger;

	if (block == NULL)
		return bs_frame_alloc(memory, bytes);
	before = (size_t)UNIT << memory->order[place_of(memory, block)];
	if (bytes <= before)
		return block;
	larger = bs_frame_alloc(memory, bytes);
	if (larger == NULL)
		return NULL;
	memcpy(larger, block, before);
	bs_frame_free(memory, block);
	return larger;
}

void
bs_frame_free(struct bs_frame_memory *memory, void *block)
{
	uint32_t place;
	unsigned order;

	if (block == NULL)
		return;
	place = place_of(memory, block);
	order = memory->order[place];
	memory->order[place] = INSIDE;
	memory->used -= (size_t)UNIT << order;
	while (order < memory->top) {
		const uint32_t buddy = place ^ (1u << order);

		if (memory->order[buddy] != (order | FREE))
			break;
		free_remove(memory, buddy, order);
		place &= ~(1u << order);
		order++;
	}
	free_push(memory, place, order);
}

size_t
bs_frame_memory_used(const struct bs_frame_memory *memory)
{
	return memory->used;
}

uint64_t
bs_frame_memory_refused(const struct bs_frame_memory *memory)
{
	return memory->refused;
}
