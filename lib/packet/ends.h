/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two ends of a flow as numbers: their order and their hash, for the parser,
 * which has them in registers, and for tuples that come from elsewhere.
 */
#pragma once

#include <stdint.h>

#include "load.h"

/* An IPv4 address in its IPv6 form, ::ffff:a.b.c.d (RFC 4291 2.5.5.2), lower half. */
#define MAPPED_IPV4 0xffff00000000ull

struct flow_end {
	uint64_t high, low; /* address as a big-endian number */
	uint16_t port;
};

/*
 * Puts the lower end first and returns 1 if that swapped them. Without a
 * branch: the two directions of a flow alternate, which predictors get wrong.
 */
static inline unsigned
ends_order(struct flow_end *a, struct flow_end *b)
{
	unsigned low_over = (a->low > b->low) | ((a->low == b->low) & (a->port > b->port));
	unsigned over = (a->high > b->high) | ((a->high == b->high) & low_over);
	uint64_t mask = -(uint64_t)over;
	uint64_t high = (a->high ^ b->high) & mask;
	uint64_t low = (a->low ^ b->low) & mask;
	uint16_t port = (uint16_t)((a->port ^ b->port) & mask);

	a->high ^= high;
	b->high ^= high;
	a->low ^= low;
	b->low ^= low;
	a->port = (uint16_t)(a->port ^ port);
	b->port = (uint16_t)(b->port ^ port);
	return over;
}

/*
 * Multilinear: one odd constant a word, no multiplication waits for another.
 * The sum is good in its high bits only; the finalizer (xorshift, multiply)
 * carries them to all bits that are returned. Ends are in order.
 */
static inline uint32_t
ends_hash(const struct flow_end *a, const struct flow_end *b, unsigned outer_vlan,
	unsigned inner_vlan, unsigned transport)
{
	uint64_t rest = (uint64_t)a->port << 48 | (uint64_t)b->port << 32 |
			(uint64_t)(outer_vlan & 0xfff) << 20 | (uint64_t)(inner_vlan & 0xfff) << 8 |
			(transport & 0xff);
	uint64_t sum = a->high * 0x9e3779b97f4a7c15ull + a->low * 0xbf58476d1ce4e5b9ull +
		       b->high * 0x94d049bb133111ebull + b->low * 0xd6e8feb86659fd93ull +
		       rest * 0xa0761d6478bd642full;
	uint32_t hash;

	sum ^= sum >> 32;
	sum *= 0xe7037ed1a0b428dbull;
	hash = (uint32_t)(sum >> 32);
	return hash + (hash == 0);
}
