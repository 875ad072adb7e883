/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The side ring of entry times. Producer and consumer each own one index and
 * publish it with release; the other reads it with acquire, and keeps what it
 * read until that no longer suffices, so that the line moves once per lap and
 * not per packet.
 */
#include "bs_entries.h"

#include <assert.h>
#include <errno.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define BURSTS_MAX (1u << 24)
#define CACHE_LINE 64u

struct burst {
	uint64_t t;
	uint64_t count;
};

struct bs_entries {
	/* Read by both. */
	struct burst *ring;
	uint64_t mask;

	/* Producer writes. */
	alignas(CACHE_LINE) _Atomic uint64_t head;
	uint64_t tail_seen;

	/* Consumer writes. */
	alignas(CACHE_LINE) _Atomic uint64_t tail;
	uint64_t head_seen;
	uint64_t left; /* packets of the burst at tail that have not left; 0: it was not begun */
};
static_assert(offsetof(struct bs_entries, head) % CACHE_LINE == 0, "producer's own line");
static_assert(offsetof(struct bs_entries, tail) % CACHE_LINE == 0, "consumer's own line");

struct bs_entries *
bs_entries_create(unsigned bursts)
{
	struct bs_entries *entries;
	size_t places = 2;

	if (bursts == 0 || bursts > BURSTS_MAX) {
		errno = EINVAL;
		return NULL;
	}
	while (places / 2 < bursts)
		places *= 2;
	entries = aligned_alloc(CACHE_LINE, sizeof(*entries));
	if (entries == NULL)
		return NULL;
	memset(entries, 0, sizeof(*entries));
	entries->ring = calloc(places, sizeof(*entries->ring));
	if (entries->ring == NULL) {
		free(entries);
		errno = ENOMEM;
		return NULL;
	}
	entries->mask = places - 1;
	return entries;
}

void
bs_entries_destroy(struct bs_entries *entries)
{
	if (entries == NULL)
		return;
	free(entries->ring);
	free(entries);
}

int
bs_entries_push(struct bs_entries *entries, uint64_t t_ns, unsigned count)
{
	uint64_t head = atomic_load_explicit(&entries->head, memory_order_relaxed);

	if (count == 0)
		return 0;
	if (head - entries->tail_seen > entries->mask) {
		entries->tail_seen = atomic_load_explicit(&entries->tail, memory_order_acquire);
		if (head - entries->tail_seen > entries->mask)
			return -ENOBUFS;
	}
	entries->ring[head & entries->mask] = (struct burst){t_ns, count};
	atomic_store_explicit(&entries->head, head + 1, memory_order_release);
	return 0;
}

uint64_t
bs_entries_oldest(const struct bs_entries *entries)
{
	uint64_t tail = atomic_load_explicit(&entries->tail, memory_order_relaxed);

	if (tail == entries->head_seen &&
		tail == atomic_load_explicit(&entries->head, memory_order_acquire))
		return 0;
	return entries->ring[tail & entries->mask].t;
}

uint64_t
bs_entries_pop(struct bs_entries *entries)
{
	uint64_t tail = atomic_load_explicit(&entries->tail, memory_order_relaxed);
	const struct burst *burst = &entries->ring[tail & entries->mask];
	uint64_t t;

	if (entries->left == 0) {
		if (tail == entries->head_seen) {
			entries->head_seen =
				atomic_load_explicit(&entries->head, memory_order_acquire);
			if (tail == entries->head_seen)
				return 0;
		}
		entries->left = burst->count;
	}
	t = burst->t;
	if (--entries->left == 0)
		atomic_store_explicit(&entries->tail, tail + 1, memory_order_release);
	return t;
}
