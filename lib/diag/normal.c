/* SPDX-License-Identifier: BSD-3-Clause */
/* Normal values: see normal.h. */
#include "normal.h"

#include <errno.h>
#include <stdlib.h>

#include "bs_record.h"
#include "diag.h"
#include "interval.h"
#include "sketch.h"

/* Powers of two. Pages of sketches that are not used are never touched. */
#define OPERATION_SLOTS 4096u
#define TERM_SLOTS 16384u
#define COARSE_SLOTS 8192u
#define ADMITTED_SLOTS 32768u

#define LATENCY_CAUSE 15u /* no cause: the whole latency */

/* Anomalous RPCs that end within this teach a cold scope once. */
#define MOMENT_NS (20 * NS_PER_MS)

/* A shift is lasting after this long and so many RPCs. */
#define SHIFT_NS (60 * NS_PER_S)
#define SHIFT_RPCS 64u

/* Open addressing, no removal; key 0 is an empty slot. */
struct table {
	uint64_t *keys;
	struct sketch *sketches;
	uint32_t slots, used;
	uint64_t overflows;
};

/* How long the RPCs of an operation have been found anomalous. */
struct shift {
	uint64_t t_begin;
	uint64_t t_taught; /* end of the last one fed while cold */
	uint32_t anomalous, usual;
};

struct normal {
	struct table operations; /* latency, by operation and size */
	struct table terms;	 /* parts, by operation and size */
	struct table coarse;	 /* latency and parts, by service */
	struct shift shifts[OPERATION_SLOTS];
	uint64_t admitted[ADMITTED_SLOTS]; /* service and operation hash */
	uint32_t admitted_used;
	uint16_t operation_count[DIAG_SERVICES];
	uint64_t not_admitted;
};

static uint64_t
mix(uint64_t x)
{
	/* Finalizer of MurmurHash3 (public domain): every input bit moves every output bit. */
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	return x ^ x >> 33;
}

/* Exact: 1 bit that makes it not 0, service 9, size 5, cause 4, buffer 10, operation 32. */
static uint64_t
key_of(struct normal_scope scope, unsigned buffer, unsigned cause)
{
	return 1ull << 63 | (uint64_t)scope.service << 51 |
	       (uint64_t)(scope.size_class & 31) << 46 | (uint64_t)(cause & 15) << 42 |
	       (uint64_t)(buffer & 1023) << 32 | scope.operation;
}

static struct normal_scope
coarse_scope(unsigned service)
{
	return (struct normal_scope){.service = (uint16_t)service};
}

/* The slot of a key, or where it would go. The tables are never full, so that it ends. */
static uint32_t
slot_of(const uint64_t *keys, uint32_t slots, uint64_t key)
{
	uint32_t i = (uint32_t)mix(key) & (slots - 1);
	while (keys[i] != 0 && keys[i] != key)
		i = (i + 1) & (slots - 1);
	return i;
}

static struct sketch *
table_find(const struct table *table, uint64_t key)
{
	uint32_t i = slot_of(table->keys, table->slots, key);
	return table->keys[i] ? &table->sketches[i] : NULL;
}

static struct sketch *
table_get(struct table *table, uint64_t key)
{
	uint32_t i = slot_of(table->keys, table->slots, key);

	if (table->keys[i] == 0) {
		if (table->used >= table->slots / 4 * 3) {
			table->overflows++;
			return NULL;
		}
		table->keys[i] = key;
		table->used++;
	}
	return &table->sketches[i];
}

static int
table_init(struct table *table, uint32_t slots)
{
	table->slots = slots;
	table->keys = calloc(slots, sizeof(*table->keys));
	table->sketches = calloc(slots, sizeof(*table->sketches));
	return table->keys && table->sketches ? 0 : -ENOMEM;
}

static void
table_fini(struct table *table)
{
	free(table->keys);
	free(table->sketches);
}

struct normal *
normal_create(void)
{
	struct normal *normal = calloc(1, sizeof(*normal));

	if (!normal)
		return NULL;
	if (table_init(&normal->operations, OPERATION_SLOTS) < 0 ||
		table_init(&normal->terms, TERM_SLOTS) < 0 ||
		table_init(&normal->coarse, COARSE_SLOTS) < 0) {
		normal_destroy(normal);
		errno = ENOMEM;
		return NULL;
	}
	return normal;
}

void
normal_destroy(struct normal *normal)
{
	if (!normal)
		return;
	table_fini(&normal->operations);
	table_fini(&normal->terms);
	table_fini(&normal->coarse);
	free(normal);
}

static bool
admit(struct normal *normal, unsigned service, uint32_t operation)
{
	uint64_t key = 1ull << 63 | (uint64_t)service << 32 | operation;
	uint32_t i = slot_of(normal->admitted, ADMITTED_SLOTS, key);

	if (normal->admitted[i] == key)
		return true;
	if (normal->operation_count[service] >= NORMAL_OPERATIONS ||
		normal->admitted_used >= ADMITTED_SLOTS / 4 * 3) {
		normal->not_admitted++;
		return false;
	}
	normal->admitted[i] = key;
	normal->admitted_used++;
	normal->operation_count[service]++;
	return true;
}

struct normal_scope
normal_scope_of(struct normal *normal, unsigned service, uint32_t operation_hash, uint64_t bytes)
{
	/* Size class: log4 of the bytes. */
	unsigned log2_bytes = 63u - (unsigned)__builtin_clzll(bytes | 1);

	return (struct normal_scope){
		.service = (uint16_t)service,
		.size_class = (uint8_t)(log2_bytes / 2),
		.operation = admit(normal, service, operation_hash) ? operation_hash : 0,
	};
}

/* `rounds` of a latency sketch counts the RPCs it ever took. */
static struct sketch *
feed_latency(struct table *table, struct normal_scope scope, uint64_t latency_ns)
{
	struct sketch *sketch = table_get(table, key_of(scope, 0, LATENCY_CAUSE));
	if (sketch) {
		sketch_add(sketch, latency_ns, 1);
		sketch->rounds++;
	}
	return sketch;
}

/*
 * `rounds` of a part's sketch is how many RPCs of its latency sketch it has
 * taken; those between were RPCs without this part, 0 ns, added here.
 */
static void
catch_up(struct sketch *part, uint64_t rounds)
{
	if (part->rounds < rounds) {
		sketch_add(part, 0, rounds - part->rounds);
		part->rounds = rounds;
	}
}

static void
feed_part(struct table *table, struct normal_scope scope, const struct sketch *latency,
	const struct normal_part *part)
{
	struct sketch *sketch = table_get(table, key_of(scope, part->buffer, part->cause));

	if (!sketch || sketch->rounds == latency->rounds)
		return;
	catch_up(sketch, latency->rounds - 1);
	sketch_add(sketch, part->ns, 1);
	sketch->rounds++;
}

void
normal_feed(struct normal *normal, struct normal_scope scope, uint64_t latency_ns,
	const struct normal_part *parts, unsigned count)
{
	struct normal_scope wide = coarse_scope(scope.service);
	const struct sketch *fine = feed_latency(&normal->operations, scope, latency_ns);
	const struct sketch *coarse = feed_latency(&normal->coarse, wide, latency_ns);

	for (unsigned i = 0; i < count; i++) {
		if (fine)
			feed_part(&normal->terms, scope, fine, &parts[i]);
		if (coarse)
			feed_part(&normal->coarse, wide, coarse, &parts[i]);
	}
}

bool
normal_accepts(struct normal *normal, struct normal_scope scope, bool anomalous, uint64_t t)
{
	const struct table *table = &normal->operations;
	uint32_t i = slot_of(table->keys, table->slots, key_of(scope, 0, LATENCY_CAUSE));

	if (!table->keys[i])
		return true;
	struct shift *shift = &normal->shifts[i];
	if (!anomalous) {
		shift->usual++;
		if (shift->usual > shift->anomalous)
			shift->usual = shift->anomalous = 0;
		return true;
	}
	if (table->sketches[i].count < SKETCH_WARM) {
		if (t < ns_add(shift->t_taught, MOMENT_NS))
			return false;
		shift->t_taught = t;
		return true;
	}
	if (shift->anomalous++ == 0)
		shift->t_begin = t;
	return shift->anomalous >= SHIFT_RPCS && ns_sub(t, shift->t_begin) >= SHIFT_NS;
}

static struct normal_value
value_of(struct sketch *sketch, double mads, enum normal_level level)
{
	sketch_refresh(sketch);
	return (struct normal_value){
		.median_ns = sketch->median_ns,
		.envelope_ns = sketch_envelope(sketch, mads),
		.level = level,
	};
}

static struct sketch *
warm_latency(const struct table *table, struct normal_scope scope)
{
	struct sketch *sketch = table_find(table, key_of(scope, 0, LATENCY_CAUSE));
	return sketch && sketch->count >= SKETCH_WARM ? sketch : NULL;
}

struct normal_value
normal_latency(struct normal *normal, struct normal_scope scope, double mads)
{
	struct sketch *sketch = warm_latency(&normal->operations, scope);
	if (sketch)
		return value_of(sketch, mads, NORMAL_FINE);
	sketch = warm_latency(&normal->coarse, coarse_scope(scope.service));
	if (sketch)
		return value_of(sketch, mads, NORMAL_COARSE);
	return (struct normal_value){0};
}

/* False if the part may have found no room, so that nothing can be said. */
static bool
part_value(const struct table *table, struct normal_scope scope, const struct sketch *latency,
	unsigned buffer, unsigned cause, double mads, struct normal_value *value)
{
	struct sketch *sketch = table_find(table, key_of(scope, buffer, cause));

	if (!sketch)
		return table->overflows == 0;
	catch_up(sketch, latency->rounds);
	*value = value_of(sketch, mads, value->level);
	return true;
}

struct normal_value
normal_term(struct normal *normal, struct normal_scope scope, unsigned buffer, unsigned cause,
	double mads)
{
	struct normal_value value = {.level = NORMAL_FINE};
	const struct sketch *latency = warm_latency(&normal->operations, scope);
	if (latency && part_value(&normal->terms, scope, latency, buffer, cause, mads, &value))
		return value;

	struct normal_scope wide = coarse_scope(scope.service);
	value = (struct normal_value){.level = NORMAL_COARSE};
	latency = warm_latency(&normal->coarse, wide);
	if (latency && part_value(&normal->coarse, wide, latency, buffer, cause, mads, &value))
		return value;
	return (struct normal_value){0};
}

uint64_t
normal_service_quantile(const struct normal *normal, unsigned service, double q)
{
	return normal_part_quantile(normal, service, 0, LATENCY_CAUSE, q);
}

uint64_t
normal_part_quantile(
	const struct normal *normal, unsigned service, unsigned buffer, unsigned cause, double q)
{
	const struct sketch *sketch =
		table_find(&normal->coarse, key_of(coarse_scope(service), buffer, cause));
	return sketch ? sketch_quantile(sketch, q) : 0;
}

bool
normal_service_warm(const struct normal *normal, unsigned service)
{
	return warm_latency(&normal->coarse, coarse_scope(service)) != NULL;
}

void
normal_envelopes(struct normal *normal, double mads, uint64_t floor_ns, uint64_t *envelope_ns)
{
	const struct table *table = &normal->operations;

	for (unsigned s = 0; s < DIAG_SERVICES; s++)
		envelope_ns[s] = UINT64_MAX;
	for (uint32_t i = 0; i < table->slots; i++) {
		if (!table->keys[i] || table->sketches[i].count < SKETCH_WARM)
			continue;
		struct normal_value value = value_of(&table->sketches[i], mads, NORMAL_FINE);
		uint64_t limit = ns_max(value.envelope_ns, ns_add(value.median_ns, floor_ns));
		uint64_t *least = &envelope_ns[table->keys[i] >> 51 & 511];
		*least = ns_min(*least, limit);
	}
}

uint64_t
normal_overflows(const struct normal *normal)
{
	return normal->operations.overflows + normal->terms.overflows + normal->coarse.overflows +
	       normal->not_admitted;
}
