/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The drainer's log. One ring of state changes carries the time spent in each
 * state before the change; a second ring for each served pair carries the
 * pair's own serve intervals and the service time before each. All these times
 * are piecewise linear and non-decreasing, so a wait is the difference of two
 * readings, each found by a search back from the newest entry; what remains
 * after the pair's own service and the other states is contention.
 *
 * A pair's ring has as many places as the main one, which holds each of its
 * intervals too: whatever the main ring still knows, the pair's knows.
 */
#include "bs_drain.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES_MAX (1u << 24)
#define CACHE_LINE 64u

/* Slots of a sketch. Flows and services up to this many in a slice are exact. */
#define SKETCH_SLOTS 4u

/* Culprits that one question tells apart. */
#define ROWS 65u

struct carried {
	uint64_t bytes;
	uint32_t flow_hash;
	uint16_t service;
};

/*
 * Space-Saving (Metwally et al. 2005) weighted by bytes: a key that has no slot
 * takes over the lightest one with its bytes. The counts sum to all bytes, so a
 * key that carried more than half of them is always named.
 */
struct sketch {
	uint64_t bytes;
	struct carried slots[SKETCH_SLOTS];
};

/* From t on the drainer was in `state`. `ns`, but for SERVE: time in each state before t. */
struct entry {
	uint64_t t;
	uint64_t ns[BS_DRAIN_STATE_COUNT - 1];
	uint64_t bytes;	      /* the slice that began at t carried, once it is over */
	uint64_t heavy_bytes; /* of them by the heaviest service */
	uint32_t flow_hash;   /* its heaviest flow */
	uint16_t service;
	unsigned state : 4;
	unsigned served : 12;
};
static_assert(BS_DRAIN_SERVED_MAX < 1u << 12, "a pair's number fits an entry");
static_assert(sizeof(struct entry) == CACHE_LINE, "an entry is one cache line");

/* From t on the pair was served; own_ns: its service before t. */
struct interval {
	uint64_t t;
	uint64_t own_ns;
};

struct pair {
	struct interval *ring;
	uint64_t tail, head; /* held: tail <= i < head, at ring[i & mask] */
	uint64_t own_ns;     /* service in all intervals that are over */
};

struct bs_drain_log {
	uint64_t t_begin;		   /* of the state it is in */
	uint64_t t_last;		   /* of the last call */
	uint64_t ns[BS_DRAIN_STATE_COUNT]; /* before t_begin */
	uint64_t tail, head;		   /* as in struct pair; never empty */
	uint64_t mask;
	struct entry *ring;
	uint64_t t_start;
	unsigned served_max;
	uint8_t state;
	uint16_t served;
	struct sketch slice; /* what the current slice carried */
	struct interval *intervals;
	struct pair *pairs; /* [0] unused */
};

static void
sketch_add(struct sketch *sketch, uint16_t service, uint32_t flow_hash, uint64_t bytes)
{
	struct carried *lightest = &sketch->slots[0];

	if (bytes == 0)
		return;
	sketch->bytes += bytes;
	for (unsigned i = 0; i < SKETCH_SLOTS; i++) {
		struct carried *slot = &sketch->slots[i];

		if (slot->flow_hash == flow_hash && slot->service == service) {
			slot->bytes += bytes;
			return;
		}
		if (slot->bytes < lightest->bytes)
			lightest = slot;
	}
	lightest->bytes += bytes;
	lightest->flow_hash = flow_hash;
	lightest->service = service;
}

/* The heaviest service, its bytes, and the heaviest of its flows. */
static struct carried
sketch_heaviest(const struct sketch *sketch)
{
	struct carried best = {.service = BS_DRAIN_NO_SERVICE};
	uint64_t best_flow_bytes = 0;

	for (unsigned i = 0; i < SKETCH_SLOTS; i++) {
		const struct carried *slot = &sketch->slots[i];
		uint64_t bytes = 0;

		if (slot->bytes == 0)
			continue;
		for (unsigned k = 0; k < SKETCH_SLOTS; k++)
			if (sketch->slots[k].service == slot->service)
				bytes += sketch->slots[k].bytes;
		if (bytes > best.bytes ||
			(slot->service == best.service && slot->bytes > best_flow_bytes)) {
			best = *slot;
			best.bytes = bytes;
			best_flow_bytes = slot->bytes;
		}
	}
	return best;
}

static struct entry *
entry_at(const struct bs_drain_log *log, uint64_t i)
{
	return &log->ring[i & log->mask];
}

/* The current state ends at t > t_begin: its time and its slice go to the books. */
static void
close_state(struct bs_drain_log *log, uint64_t t)
{
	uint64_t ns = t - log->t_begin;

	log->ns[log->state] += ns;
	if (log->served != BS_DRAIN_OTHER)
		log->pairs[log->served].own_ns += ns;
	if (log->slice.bytes > 0) {
		struct entry *entry = entry_at(log, log->head - 1);
		struct carried heaviest = sketch_heaviest(&log->slice);

		entry->bytes = log->slice.bytes;
		entry->heavy_bytes = heaviest.bytes;
		entry->flow_hash = heaviest.flow_hash;
		entry->service = heaviest.service;
		memset(&log->slice, 0, sizeof(log->slice));
	}
}

static void
open_state(struct bs_drain_log *log, uint64_t t, uint8_t state, uint16_t served)
{
	struct entry *entry = entry_at(log, log->head);

	if (log->head - log->tail > log->mask)
		log->tail++;
	log->head++;
	entry->t = t;
	memcpy(entry->ns, &log->ns[1], sizeof(entry->ns));
	entry->bytes = 0;
	entry->heavy_bytes = 0;
	entry->service = BS_DRAIN_NO_SERVICE;
	entry->flow_hash = 0;
	entry->state = state & 0xfu;
	entry->served = served & 0xfffu;
	if (served != BS_DRAIN_OTHER) {
		struct pair *pair = &log->pairs[served];

		if (pair->head - pair->tail > log->mask)
			pair->tail++;
		pair->ring[pair->head++ & log->mask] = (struct interval){t, pair->own_ns};
	}
	log->t_begin = t;
	log->state = state;
	log->served = served;
}

/*
 * The state that began last has lasted no time: the log is as if it had not
 * been, and the state before it goes on. False when there is none before it.
 */
static bool
take_back(struct bs_drain_log *log)
{
	const struct entry *entry;

	if (log->served != BS_DRAIN_OTHER)
		log->pairs[log->served].head--;
	memset(&log->slice, 0, sizeof(log->slice));
	if (--log->head == log->tail)
		return false;
	entry = entry_at(log, log->head - 1);
	log->ns[entry->state] -= log->t_begin - entry->t;
	if (entry->served != BS_DRAIN_OTHER)
		log->pairs[entry->served].own_ns -= log->t_begin - entry->t;
	if (entry->bytes > 0) {
		log->slice.bytes = entry->bytes;
		log->slice.slots[0] = (struct carried){
			.bytes = entry->heavy_bytes,
			.flow_hash = entry->flow_hash,
			.service = entry->service,
		};
	}
	log->t_begin = entry->t;
	log->state = entry->state;
	log->served = entry->served;
	return true;
}

static void
change(struct bs_drain_log *log, uint64_t t, uint8_t state, uint16_t served)
{
	bool running = true;

	if (state == log->state && served == log->served)
		return;
	if (t == log->t_begin) {
		running = take_back(log);
		if (running && state == log->state && served == log->served)
			return;
	}
	if (running)
		close_state(log, t);
	open_state(log, t, state, served);
}

struct bs_drain_log *
bs_drain_create(unsigned entries, unsigned served, uint64_t t_ns)
{
	struct bs_drain_log *log;
	size_t count = 2;

	if (entries < 2 || entries > ENTRIES_MAX || served > BS_DRAIN_SERVED_MAX) {
		errno = EINVAL;
		return NULL;
	}
	while (count < entries)
		count *= 2;
	log = aligned_alloc(CACHE_LINE, (sizeof(*log) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
	if (log == NULL)
		return NULL;
	memset(log, 0, sizeof(*log));
	log->ring = aligned_alloc(CACHE_LINE, count * sizeof(*log->ring));
	/* One place more, so that no pair is no special case. */
	log->intervals = calloc(count * served + 1, sizeof(*log->intervals));
	log->pairs = calloc(served + 1, sizeof(*log->pairs));
	if (log->ring == NULL || log->intervals == NULL || log->pairs == NULL) {
		bs_drain_destroy(log);
		errno = ENOMEM;
		return NULL;
	}
	/* Its pages are touched here, not by the first packets. */
	memset(log->ring, 0, count * sizeof(*log->ring));
	for (unsigned i = 1; i <= served; i++)
		log->pairs[i].ring = log->intervals + count * (i - 1);
	log->mask = count - 1;
	log->served_max = served;
	log->t_start = t_ns;
	log->t_last = t_ns;
	open_state(log, t_ns, BS_DRAIN_SERVE, BS_DRAIN_OTHER);
	return log;
}

void
bs_drain_destroy(struct bs_drain_log *log)
{
	if (log == NULL)
		return;
	free(log->pairs);
	free(log->intervals);
	free(log->ring);
	free(log);
}

void
bs_drain_advance(struct bs_drain_log *log, uint64_t t_ns)
{
	if (t_ns > log->t_last)
		log->t_last = t_ns;
}

void
bs_drain_set(struct bs_drain_log *log, uint64_t t_ns, enum bs_drain_state state, unsigned served)
{
	if (state != BS_DRAIN_SERVE || served > log->served_max)
		served = BS_DRAIN_OTHER;
	bs_drain_advance(log, t_ns);
	change(log, log->t_last, (uint8_t)state, (uint16_t)served);
}

void
bs_drain_insert(struct bs_drain_log *log, uint64_t t_end, enum bs_drain_state state)
{
	uint64_t t_begin = log->t_last;
	struct sketch slice = log->slice;
	uint8_t resumed_state = log->state;
	uint16_t resumed_served = log->served;
	bool begun = log->t_begin < t_begin;

	if (t_end <= t_begin)
		return;
	log->t_last = t_end;
	change(log, t_begin, (uint8_t)state, BS_DRAIN_OTHER);
	change(log, t_end, resumed_state, resumed_served);
	/* What was accounted before the first ns of a slice belongs to what follows the hang. */
	if (!begun)
		log->slice = slice;
}

void
bs_drain_account(struct bs_drain_log *log, uint16_t service, uint32_t flow_hash, uint64_t bytes)
{
	sketch_add(&log->slice, service, flow_hash, bytes);
}

/*
 * In a ring whose items of `stride` bytes begin with their instant: the number
 * of the first item held that is later than t; head if none is. Most waits are
 * short, so it goes back from the newest in doubling steps.
 */
static uint64_t
first_after(
	const void *ring, size_t stride, uint64_t mask, uint64_t tail, uint64_t head, uint64_t t)
{
	const char *base = ring;
	uint64_t low = tail, high = head, step = 1;

	while (high > tail) {
		uint64_t probe = high - tail > step ? high - step : tail;

		if (*(const uint64_t *)(const void *)(base + (probe & mask) * stride) <= t) {
			low = probe + 1;
			break;
		}
		high = probe;
		step *= 2;
	}
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (*(const uint64_t *)(const void *)(base + (middle & mask) * stride) <= t)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint64_t
entry_after(const struct bs_drain_log *log, uint64_t t)
{
	return first_after(log->ring, sizeof(struct entry), log->mask, log->tail, log->head, t);
}

/* Service of the pair before t, which the main ring still covers. */
static uint64_t
own_before(const struct bs_drain_log *log, unsigned served, uint64_t t)
{
	const struct pair *pair = &log->pairs[served];
	const struct interval *interval;
	uint64_t after, end_ns, ns;

	if (pair->head == pair->tail)
		return pair->own_ns;
	after = first_after(
		pair->ring, sizeof(struct interval), log->mask, pair->tail, pair->head, t);
	if (after == pair->tail)
		return pair->ring[after & log->mask].own_ns;
	interval = &pair->ring[(after - 1) & log->mask];
	ns = interval->own_ns + (t - interval->t);
	if (after < pair->head)
		end_ns = pair->ring[after & log->mask].own_ns;
	else if (log->served == served)
		return ns;
	else
		end_ns = pair->own_ns;
	return ns < end_ns ? ns : end_ns;
}

static uint64_t
state_before(const struct entry *entry, enum bs_drain_state state, uint64_t t)
{
	return entry->ns[state - 1] + (entry->state == state ? t - entry->t : 0);
}

void
bs_drain_wait(const struct bs_drain_log *log, unsigned served, uint64_t t_in, uint64_t t_out,
	struct bs_wait *wait)
{
	uint64_t t_oldest = entry_at(log, log->tail)->t;
	const struct entry *in, *out;
	uint64_t ns[BS_DRAIN_STATE_COUNT];

	memset(wait, 0, sizeof(*wait));
	if (t_in < t_oldest) {
		uint64_t t_known = t_out < t_oldest ? t_out : t_oldest;

		wait->unobserved = t_known > t_in ? t_known - t_in : 0;
		t_in = t_known;
	}
	if (t_out <= t_in)
		return;
	in = entry_at(log, entry_after(log, t_in) - 1);
	out = entry_at(log, entry_after(log, t_out) - 1);
	ns[BS_DRAIN_SERVE] = t_out - t_in;
	for (unsigned s = BS_DRAIN_SERVE + 1; s < BS_DRAIN_STATE_COUNT; s++) {
		ns[s] = state_before(out, s, t_out) - state_before(in, s, t_in);
		ns[BS_DRAIN_SERVE] -= ns[s];
	}
	if (served != BS_DRAIN_OTHER && served <= log->served_max)
		wait->congestion = own_before(log, served, t_out) - own_before(log, served, t_in);
	wait->contention = ns[BS_DRAIN_SERVE] - wait->congestion;
	wait->pause = ns[BS_DRAIN_PAUSE];
	wait->stalled = ns[BS_DRAIN_STALLED];
	wait->preempted = ns[BS_DRAIN_PREEMPTED];
	wait->sleep = ns[BS_DRAIN_SLEEP];
}

/* What one culprit took, while the slices are gone through. */
struct row {
	uint16_t key; /* the pair, or for congestion the service */
	uint64_t ns;
	uint64_t bytes;
	struct sketch slices;
};

/* bytes * part / whole, rounded down, for part <= whole. */
static uint64_t
portion(uint64_t bytes, uint64_t part, uint64_t whole)
{
	return (uint64_t)((__extension__(unsigned __int128) bytes) * part / whole);
}

/* The row of that key; when all are taken, the least one goes on under that key. */
static struct row *
row_of(struct row *rows, unsigned *count, uint16_t key)
{
	struct row *least = &rows[0];

	for (unsigned i = 0; i < *count; i++) {
		if (rows[i].key == key)
			return &rows[i];
		if (rows[i].ns < least->ns)
			least = &rows[i];
	}
	if (*count < ROWS)
		least = &rows[(*count)++];
	least->key = key;
	return least;
}

/* Adds what entry i of the log took between t_in and t_out. */
static void
add_slice(const struct bs_drain_log *log, uint64_t i, uint64_t t_in, uint64_t t_out,
	bool by_service, struct row *rows, unsigned *count)
{
	const struct entry *entry = entry_at(log, i);
	bool over = i + 1 < log->head;
	uint64_t t_end = over ? entry_at(log, i + 1)->t : t_out;
	uint64_t begin = entry->t > t_in ? entry->t : t_in;
	uint64_t end = t_end < t_out ? t_end : t_out;
	struct carried heaviest = {entry->heavy_bytes, entry->flow_hash, entry->service};
	uint64_t bytes = entry->bytes;
	struct row *row;

	if (end <= begin)
		return;
	if (!over) {
		heaviest = sketch_heaviest(&log->slice);
		bytes = log->slice.bytes;
	}
	row = row_of(rows, count, by_service ? heaviest.service : entry->served);
	row->ns += end - begin;
	row->bytes += portion(bytes, end - begin, t_end - entry->t);
	sketch_add(&row->slices, heaviest.service, heaviest.flow_hash,
		portion(heaviest.bytes, end - begin, t_end - entry->t));
}

static int
row_compare(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return (a->key > b->key) - (a->key < b->key);
}

unsigned
bs_drain_culprits(const struct bs_drain_log *log, enum bs_cause cause, unsigned served,
	uint64_t t_in, uint64_t t_out, struct bs_drain_culprit *out, unsigned max)
{
	bool by_service = cause == BS_CAUSE_CONGESTION;
	struct row rows[ROWS];
	unsigned count = 0;
	uint64_t i;

	if (!by_service && cause != BS_CAUSE_CONTENTION)
		return 0;
	memset(rows, 0, sizeof(rows));
	i = entry_after(log, t_in);
	if (i > log->tail)
		i--;
	for (; i < log->head && entry_at(log, i)->t < t_out; i++) {
		const struct entry *entry = entry_at(log, i);
		bool own = served != BS_DRAIN_OTHER && entry->served == served;

		if (entry->state == BS_DRAIN_SERVE && own == by_service)
			add_slice(log, i, t_in, t_out, by_service, rows, &count);
	}
	qsort(rows, count, sizeof(rows[0]), row_compare);
	if (count > max)
		count = max;
	for (unsigned k = 0; k < count; k++) {
		struct carried heaviest = sketch_heaviest(&rows[k].slices);

		out[k] = (struct bs_drain_culprit){
			.served = (uint16_t)(by_service ? served : rows[k].key),
			.service = by_service ? rows[k].key : heaviest.service,
			.flow_hash = heaviest.flow_hash,
			.bytes = rows[k].bytes,
			.ns = rows[k].ns,
		};
	}
	return count;
}
