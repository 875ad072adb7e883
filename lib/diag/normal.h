/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is normal: per (service, operation, size class) the latency, and per
 * (service, operation, size class, buffer, cause) the time spent there; while
 * that is cold, the same without operation and size class. Fixed tables: what
 * finds no room is counted and judged by the coarser key.
 *
 * A part that an RPC does not have is a part of 0 ns: the normal value of a
 * buffer that is rarely waited in is 0, however long the rare waits are.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define NORMAL_OPERATIONS 256u /* a service; the rest share one key */

enum normal_level {
	NORMAL_COLD,   /* nothing known: median and envelope are 0 */
	NORMAL_COARSE, /* of the service */
	NORMAL_FINE,   /* of the operation and size */
};

struct normal_value {
	uint64_t median_ns;
	uint64_t envelope_ns;
	enum normal_level level;
};

/* Whose normal value: service is below DIAG_SERVICES. */
struct normal_scope {
	uint16_t service;
	uint8_t size_class;
	uint32_t operation; /* as admitted; 0: all others of the service */
};

struct normal_part {
	uint64_t ns;
	uint16_t buffer; /* below BS_BUFFER_MAX */
	uint8_t cause;
};

struct normal;

struct normal *normal_create(void); /* NULL with errno ENOMEM */
void normal_destroy(struct normal *normal);

/* The scope of an RPC of `bytes` bytes in both directions; admits its operation while there is
 * room. */
struct normal_scope normal_scope_of(
	struct normal *normal, unsigned service, uint32_t operation_hash, uint64_t bytes);

/* Learns from one RPC. Of parts with the same (buffer, cause) only the first counts. */
void normal_feed(struct normal *normal, struct normal_scope scope, uint64_t latency_ns,
	const struct normal_part *parts, unsigned count);

/*
 * Live: whether an RPC that ended at t is fed. Anomalous ones are only where
 * nothing better is known: while the scope is cold, and then not the crowd of
 * one bad moment; and when it has been like that for a minute: a lasting shift
 * is the new normal. Called once for each RPC.
 */
bool normal_accepts(struct normal *normal, struct normal_scope scope, bool anomalous, uint64_t t);

struct normal_value normal_latency(struct normal *normal, struct normal_scope scope, double mads);
struct normal_value normal_term(struct normal *normal, struct normal_scope scope, unsigned buffer,
	unsigned cause, double mads);

/* Quantile of the latency of a whole service, and of a part of it; 0 while nothing is known. */
uint64_t normal_service_quantile(const struct normal *normal, unsigned service, double q);
uint64_t normal_part_quantile(
	const struct normal *normal, unsigned service, unsigned buffer, unsigned cause, double q);
bool normal_service_warm(const struct normal *normal, unsigned service);

/*
 * Least envelope of the warm operations of each service, at least its median +
 * floor_ns; UINT64_MAX where none is warm. Walks all operations.
 */
void normal_envelopes(struct normal *normal, double mads, uint64_t floor_ns, uint64_t *envelope_ns);

/* Samples that found no room in a table, since create. */
uint64_t normal_overflows(const struct normal *normal);
