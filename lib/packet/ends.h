/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two ends of a flow as numbers: their order and their hash, for the parser,
 * which has them in registers, and for tuples that come from elsewhere.
 */
#pragma once

#include <stdint.h>

#include "bs_packet.h"
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

/* An address times its four words of the key. Mapped IPv4 has but one word that is not 0. */
static inline uint64_t
end_mix(const struct flow_end *end, const uint64_t key[4])
{
	const uint64_t low = end->low ^ MAPPED_IPV4;

	return (end->high >> 32) * key[0] + (uint32_t)end->high * key[1] + (low >> 32) * key[2] +
	       (uint32_t)low * key[3];
}

/*
 * Multilinear: 32-bit words, each times a 64-bit word of the key, of which one
 * waits for no other. For a key that is secret and random, two tuples of anybody's
 * choice have the same sum with a probability of 2^-33 at most: they differ in a
 * word, the difference is odd but for at most 31 factors of 2, and so the key's word
 * alone makes of it 2^33 values or more, all alike probable. (Lemire, Kaser:
 * Strongly universal string hashing is fast, 2014, section 3.) The finalizer
 * (xorshift, multiply) carries the sum to all bits that are returned, also where
 * many tuples differ by the same step. Ends are in order.
 */
static inline uint32_t
ends_hash(const struct flow_end *a, const struct flow_end *b, uint16_t outer_vlan,
	uint16_t inner_vlan, unsigned transport, unsigned vni)
{
	const uint32_t ports = a->port | (uint32_t)b->port << 16;
	const uint32_t vlans = outer_vlan | (uint32_t)inner_vlan << 16;
	const uint32_t kind = (transport & 0xff) | vni << 8;
	uint64_t sum = end_mix(a, &bs_tuple_key[0]) + end_mix(b, &bs_tuple_key[4]) +
		       ports * bs_tuple_key[8] + vlans * bs_tuple_key[9] + kind * bs_tuple_key[10];
	uint32_t hash;

	sum ^= sum >> 32;
	sum *= 0xe7037ed1a0b428dbull;
	hash = (uint32_t)(sum >> 32);
	return hash + (hash == 0);
}
