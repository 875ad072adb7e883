/* SPDX-License-Identifier: BSD-3-Clause */
/* Flow keys, endpoints and payloads outside the parser: their hashes, and addresses as text. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

#include "bs_packet.h"
#include "ends.h"

#define MARK_BYTES 64u

/* The digits of pi behind the point, 64 bits a word. */
uint64_t bs_tuple_key[BS_TUPLE_KEY_WORDS] = {
	0x243f6a8885a308d3ull,
	0x13198a2e03707344ull,
	0xa4093822299f31d0ull,
	0x082efa98ec4e6c89ull,
	0x452821e638d01377ull,
	0xbe5466cf34e90c6cull,
	0xc0ac29b7c97c50ddull,
	0x3f84d5b5b5470917ull,
	0x9216d5d98979fb1bull,
	0xd1310ba698dfb5acull,
	0x2ffd72dbd01adfb7ull,
};

static const uint8_t mapped_prefix[12] = {[10] = 0xff, [11] = 0xff};

uint32_t
bs_tuple_hash(const struct bs_tuple *tuple)
{
	struct flow_end end[2];

	for (unsigned i = 0; i < 2; i++) {
		end[i].high = load_be64(tuple->addr[i]);
		end[i].low = load_be64(tuple->addr[i] + 8);
		end[i].port = tuple->port[i];
	}
	ends_order(&end[0], &end[1]);
	return ends_hash(&end[0], &end[1], tuple->vlan[0], tuple->vlan[1], tuple->transport,
		(unsigned)tuple->vni[0] << 16 | (unsigned)tuple->vni[1] << 8 | tuple->vni[2]);
}

uint32_t
bs_packet_mark(const struct bs_packet *packet)
{
	const uint8_t *payload = packet->data + packet->payload;
	uint32_t mark = 2166136261u ^ packet->payload_len;

	for (uint32_t i = 0; i < packet->payload_cap && i < MARK_BYTES; i++)
		mark = (mark ^ payload[i]) * 16777619u;
	return mark;
}

char *
bs_endpoint_text(const uint8_t addr[16], uint16_t port, char buf[BS_ENDPOINT_TEXT_BYTES])
{
	char host[INET6_ADDRSTRLEN];

	if (memcmp(addr, mapped_prefix, sizeof(mapped_prefix)) == 0) {
		inet_ntop(AF_INET, addr + sizeof(mapped_prefix), host, sizeof(host));
		snprintf(buf, BS_ENDPOINT_TEXT_BYTES, "%s:%u", host, port);
	} else {
		inet_ntop(AF_INET6, addr, host, sizeof(host));
		snprintf(buf, BS_ENDPOINT_TEXT_BYTES, "[%s]:%u", host, port);
	}
	return buf;
}

int
bs_address_parse(const char *text, uint8_t addr[16])
{
	uint8_t parsed[16];

	if (inet_pton(AF_INET6, text, parsed) != 1) {
		memcpy(parsed, mapped_prefix, sizeof(mapped_prefix));
		if (inet_pton(AF_INET, text, parsed + sizeof(mapped_prefix)) != 1)
			return -EINVAL;
	}
	memcpy(addr, parsed, sizeof(parsed));
	return 0;
}
