/* SPDX-License-Identifier: BSD-3-Clause */
/* See bs_fragments.h. */
#include <errno.h>
#include <stdlib.h>

#include "bs_fragments.h"
#include "load.h"

#define WAYS 4u
#define SCRATCH_BYTES 512u /* of a first fragment; its headers must lie within */
#define IPV6_BYTES 40u
#define UDP_BYTES 8u
#define EXTENSIONS_MAX 8u

#define IPV4_MORE 0x2000
#define IPV4_OFFSET 0x1fff
#define IPV4_KEPT 0xc000 /* reserved, DF */
#define IPV6_MORE 0x0001
#define IPV6_OFFSET 0xfff8

enum {
	PROTO_HOP_BY_HOP = 0,
	PROTO_TCP = 6,
	PROTO_UDP = 17,
	PROTO_ROUTING = 43,
	PROTO_FRAGMENT = 44,
	PROTO_DESTINATION = 60,
};

/* Where a fragment's part of the datagram lies, offsets from data, and where it goes. */
struct piece {
	uint32_t at, end;
	uint32_t offset;
	uint32_t id;
	uint32_t field; /* offset of the 16 bits with offset and "more" */
	bool more;
};

/* A datagram whose first fragment was seen. */
struct datagram {
	struct bs_tuple tuple; /* without ports */
	uint32_t id;
	uint8_t direction;
	bool used;
	uint64_t t_last;
	struct bs_packet first; /* as its fragment was resolved; no data */
	uint32_t skip;		/* bytes in front of the payload */
};

struct bs_fragments {
	uint32_t mask; /* of sets */
	struct datagram datagrams[];
};

struct bs_fragments *
bs_fragments_create(unsigned max)
{
	struct bs_fragments *table;
	uint32_t sets = 1;

	while (sets * WAYS < max)
		sets *= 2;
	table = calloc(1, sizeof(*table) + (size_t)sets * WAYS * sizeof(table->datagrams[0]));
	if (table == NULL) {
		errno = ENOMEM;
		return NULL;
	}
	table->mask = sets - 1;
	return table;
}

void
bs_fragments_destroy(struct bs_fragments *table)
{
	free(table);
}

static bool
locate_ipv4(const struct bs_packet *packet, struct piece *piece)
{
	const uint8_t *ip = packet->data + packet->l3;
	uint32_t total = load_be16(ip + 2);
	uint16_t field = load_be16(ip + 6);

	piece->at = packet->l3 + (ip[0] & 0xfu) * 4;
	piece->end = total != 0 ? packet->l3 + total : packet->len;
	piece->offset = (field & IPV4_OFFSET) * 8u;
	piece->more = (field & IPV4_MORE) != 0;
	piece->id = load_be16(ip + 4);
	piece->field = packet->l3 + 6u;
	return true;
}

/* parse() has walked the same headers, within cap. */
static bool
locate_ipv6(const struct bs_packet *packet, uint32_t cap, struct piece *piece)
{
	const uint8_t *ip = packet->data + packet->l3;
	uint32_t length = load_be16(ip + 4), at = packet->l3 + IPV6_BYTES;
	uint8_t next = ip[6];

	for (unsigned n = 0; n <= EXTENSIONS_MAX && at + 8 <= cap; n++) {
		const uint8_t *header = packet->data + at;

		if (next == PROTO_FRAGMENT) {
			uint16_t field = load_be16(header + 2);

			piece->at = at + 8;
			piece->end = length != 0 ? packet->l3 + IPV6_BYTES + length : packet->len;
			piece->offset = field & IPV6_OFFSET;
			piece->more = (field & IPV6_MORE) != 0;
			piece->id = load_be32(header + 4);
			piece->field = at + 2;
			return true;
		}
		if (next != PROTO_HOP_BY_HOP && next != PROTO_ROUTING && next != PROTO_DESTINATION)
			return false;
		next = header[0];
		at += (header[1] + 1u) * 8;
	}
	return false;
}

static bool
is_of(const struct datagram *datagram, const struct bs_packet *packet, uint32_t id)
{
	return datagram->used && datagram->id == id && datagram->direction == packet->direction &&
	       packet->t_ns < datagram->t_last + BS_FRAGMENTS_NS &&
	       memcmp(&datagram->tuple, &packet->tuple, sizeof(packet->tuple)) == 0;
}

static struct datagram *
set_of(struct bs_fragments *table, const struct bs_packet *packet, uint32_t id)
{
	uint32_t mix = (packet->hash ^ id * 0x9e3779b1u) * 0x85ebca6bu;

	return &table->datagrams[(mix >> 16 & table->mask) * WAYS];
}

/* Its place if it is known, else that of an unused one or of the oldest. */
static struct datagram *
place_for(struct bs_fragments *table, const struct bs_packet *packet, uint32_t id)
{
	struct datagram *set = set_of(table, packet, id), *oldest = set;

	for (unsigned i = 0; i < WAYS; i++) {
		if (is_of(&set[i], packet, id))
			return &set[i];
	}
	for (unsigned i = 0; i < WAYS; i++) {
		if (!set[i].used)
			return &set[i];
		if (set[i].t_last < oldest->t_last)
			oldest = &set[i];
	}
	return oldest;
}

static void
store_be16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/*
 * Reads a first fragment as if it were the whole datagram: a copy of its headers
 * that say so is parsed. *whole has no data.
 */
static bool
read_first(const struct bs_packet *packet, const struct piece *piece, struct bs_packet *whole)
{
	uint8_t scratch[SCRATCH_BYTES];
	const uint32_t cap = packet->caplen < packet->len ? packet->caplen : packet->len;
	const uint32_t base = packet->l3 + (packet->tuple.ip_version == 4 ? 0 : IPV6_BYTES);
	uint32_t length = piece->end - base;
	const uint32_t ends = piece->end < cap ? piece->end : cap;

	memset(whole, 0, sizeof(*whole));
	whole->caplen = ends < SCRATCH_BYTES ? ends : SCRATCH_BYTES;
	memcpy(scratch, packet->data, whole->caplen);
	if (packet->l4_protocol == PROTO_UDP) {
		if (whole->caplen < piece->at + UDP_BYTES)
			return false;
		length = piece->at - base + load_be16(scratch + piece->at + 4);
		if (length > UINT16_MAX || base + length < piece->end)
			return false;
	}
	if (packet->tuple.ip_version == 4) {
		store_be16(scratch + packet->l3 + 2, length);
		store_be16(scratch + piece->field, load_be16(scratch + piece->field) & IPV4_KEPT);
	} else {
		store_be16(scratch + packet->l3 + 4, length);
		store_be16(scratch + piece->field, 0);
	}
	whole->data = scratch;
	whole->len = base + length > packet->len ? base + length : packet->len;
	if (bs_packet_parse_ip(whole, packet->l3) != BS_PARSE_OK)
		return false;
	/* it began behind the VLAN tags, and the tunnel */
	memcpy(whole->tuple.vlan, packet->tuple.vlan, sizeof(whole->tuple.vlan));
	memcpy(whole->tuple.vni, packet->tuple.vni, sizeof(whole->tuple.vni));
	whole->hash = bs_tuple_hash(&whole->tuple);
	whole->vlan_count = packet->vlan_count;
	whole->l4_checksum_partial = 0;
	whole->payload_cap = ends > whole->payload ? ends - whole->payload : 0;
	whole->data = NULL;
	return true;
}

/* What the caller has set, and that it is a fragment, stays. */
static void
describe(struct bs_packet *packet, const struct bs_packet *as)
{
	struct bs_packet before = *packet;

	*packet = *as;
	packet->t_ns = before.t_ns;
	packet->number = before.number;
	packet->data = before.data;
	packet->caplen = before.caplen;
	packet->len = before.len;
	packet->ip_id = before.ip_id;
	packet->ttl = before.ttl;
	packet->parse = BS_PARSE_FRAGMENT;
}

static bool
resolve_first(struct bs_fragments *table, struct bs_packet *packet, const struct piece *piece)
{
	struct datagram *datagram = place_for(table, packet, piece->id);
	struct bs_packet whole;

	if (!read_first(packet, piece, &whole))
		return false;
	datagram->tuple = packet->tuple;
	datagram->id = piece->id;
	datagram->direction = packet->direction;
	datagram->used = true;
	datagram->t_last = packet->t_ns;
	datagram->first = whole;
	datagram->skip = whole.payload - piece->at;
	describe(packet, &whole);
	packet->tcp_flags &= (uint8_t)~BS_TCP_FIN;
	return true;
}

static bool
resolve_later(struct bs_fragments *table, struct bs_packet *packet, const struct piece *piece)
{
	struct datagram *datagram = place_for(table, packet, piece->id);
	const uint32_t cap = packet->caplen < piece->end ? packet->caplen : piece->end;
	struct bs_packet later;

	if (!is_of(datagram, packet, piece->id) || piece->offset < datagram->skip)
		return false;
	datagram->t_last = packet->t_ns;
	later = datagram->first;
	later.payload = (uint16_t)piece->at;
	later.payload_len = later.payload_cap = 0;
	if (later.l4_protocol == PROTO_TCP) {
		later.payload_len = piece->end - piece->at;
		later.payload_cap = cap > piece->at ? cap - piece->at : 0;
		later.seq +=
			(later.tcp_flags & BS_TCP_SYN ? 1 : 0) + piece->offset - datagram->skip;
		later.tcp_flags &= (uint8_t) ~(BS_TCP_SYN | BS_TCP_RST);
		if (piece->more)
			later.tcp_flags &= (uint8_t)~BS_TCP_FIN;
	}
	describe(packet, &later);
	return true;
}

bool
bs_fragments_resolve(struct bs_fragments *table, struct bs_packet *packet)
{
	const uint32_t cap = packet->caplen < packet->len ? packet->caplen : packet->len;
	struct piece piece;

	if (!(packet->tuple.ip_version == 4 ? locate_ipv4(packet, &piece)
					    : locate_ipv6(packet, cap, &piece)) ||
		piece.at > piece.end || piece.at > cap)
		return false;
	return piece.offset == 0 ? resolve_first(table, packet, &piece)
				 : resolve_later(table, packet, &piece);
}
