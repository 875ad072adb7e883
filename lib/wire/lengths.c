/* SPDX-License-Identifier: BSD-3-Clause */
/* Lengths and checksums around an edit; see lengths.h. */
#include "lengths.h"
#include "bs_checksum.h"
#include "bytes.h"

#define IPV4_TOTAL_AT 2u
#define IPV4_CHECKSUM_AT 10u
#define IPV6_PAYLOAD_AT 4u
#define IPV6_BYTES 40u
#define LENGTH_MAX 65535u
#define UDP_BYTES 8u
#define UDP_LENGTH_AT 4u
#define UDP_CHECKSUM_AT 6u

static bool
is_ipv4(const uint8_t *data, unsigned l3)
{
	return data[l3] >> 4 == 4;
}

static unsigned
length_at(const uint8_t *data, unsigned l3)
{
	return l3 + (is_ipv4(data, l3) ? IPV4_TOTAL_AT : IPV6_PAYLOAD_AT);
}

enum bs_refusal
lengths_ip_room(const uint8_t *data, unsigned l3, unsigned bytes)
{
	unsigned length = get16(data + length_at(data, l3));

	if (length == 0)
		return BS_REFUSE_NO_LENGTH;
	if (length + bytes > LENGTH_MAX)
		return BS_REFUSE_IP_LENGTH;
	if (is_ipv4(data, l3) && get16(data + l3 + IPV4_CHECKSUM_AT) == 0xFFFF)
		return BS_REFUSE_CHECKSUM;
	return BS_REFUSE_NONE;
}

unsigned
lengths_ip_end(const uint8_t *data, unsigned l3)
{
	return l3 + get16(data + length_at(data, l3)) + (is_ipv4(data, l3) ? 0 : IPV6_BYTES);
}

bool
lengths_ip_holds(const uint8_t *data, unsigned l3, unsigned end)
{
	return lengths_ip_end(data, l3) >= end;
}

void
lengths_ip_grow(uint8_t *data, unsigned l3, int grown)
{
	uint8_t *length = data + length_at(data, l3);
	uint8_t *checksum = data + l3 + IPV4_CHECKSUM_AT;
	uint16_t before = get16(length), after = (uint16_t)(before + grown);

	put16(length, after);
	if (is_ipv4(data, l3))
		put16(checksum, bs_checksum_adjust(get16(checksum), before, after));
}

enum bs_refusal
lengths_tunnel_room(const struct bs_packet *packet, unsigned bytes)
{
	const uint8_t *udp;

	if (packet->geneve == 0)
		return BS_REFUSE_NONE;
	if (packet->tunnel_checksum_partial)
		return BS_REFUSE_PARTIAL;
	udp = packet->data + packet->geneve - UDP_BYTES;
	if (get16(udp + UDP_LENGTH_AT) == 0)
		return BS_REFUSE_NO_LENGTH;
	if (get16(udp + UDP_LENGTH_AT) + bytes > LENGTH_MAX)
		return BS_REFUSE_IP_LENGTH;
	return lengths_ip_room(packet->data, packet->outer_l3, bytes);
}

uint16_t
lengths_tunnel_sum(const struct bs_packet *packet, unsigned end)
{
	const uint8_t *udp;

	if (packet->geneve == 0)
		return 0;
	udp = packet->data + packet->geneve - UDP_BYTES;
	if (get16(udp + UDP_CHECKSUM_AT) == 0)
		return 0;
	return bs_checksum_sum(udp, end - (packet->geneve - UDP_BYTES));
}

void
lengths_tunnel_grow(
	const struct bs_packet *packet, uint8_t *data, int grown, uint16_t before, uint16_t after)
{
	uint16_t length, checksum;
	uint8_t *udp;

	if (packet->geneve == 0)
		return;
	udp = data + packet->geneve - UDP_BYTES;
	lengths_ip_grow(data, packet->outer_l3, grown);
	length = get16(udp + UDP_LENGTH_AT);
	put16(udp + UDP_LENGTH_AT, (uint16_t)(length + grown));
	checksum = get16(udp + UDP_CHECKSUM_AT);
	if (checksum == 0) /* none: RFC 768, for tunnels over IPv6 RFC 6935 */
		return;
	/* The length counts twice: in its field and in the pseudo-header. 0xFFFF stands for 0. */
	checksum = bs_checksum_adjust(checksum == 0xFFFF ? 0 : checksum,
		bs_checksum_fold((uint64_t)before + 2u * length),
		bs_checksum_fold((uint64_t)after + 2u * (unsigned)(length + grown)));
	put16(udp + UDP_CHECKSUM_AT, checksum == 0 ? 0xFFFF : checksum);
}
