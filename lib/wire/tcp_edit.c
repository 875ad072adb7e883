/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Options into and out of TCP headers; see bs_tcp_edit.h.
 *
 * Inserting moves link, IP and fixed TCP header to the front and leaves payload
 * and other options where they are. An option is a multiple of 4 bytes, so what
 * stands behind it keeps its place in the 16-bit words of the checksum, and the
 * sum changes by the option, the data offset and the length in the pseudo-header.
 */
#include <errno.h>
#include <string.h>

#include "bs_checksum.h"
#include "bs_tcp_edit.h"
#include "bytes.h"
#include "lengths.h"

#define PROTOCOL_TCP 6u
#define TCP_FIXED_BYTES 20u
#define TCP_HEADER_MAX 60u
#define TCP_OFFSET_AT 12u
#define TCP_CHECKSUM_AT 16u
#define OPTION_END 0u
#define OPTION_NOP 1u
#define OPTION_MSS 2u
#define OPTION_MSS_BYTES 4u

/* The headers are where the offsets say, in one piece, and the last is TCP's. */
static bool
has_tcp_header(const struct bs_packet *packet)
{
	return packet->parse == BS_PARSE_OK && packet->l4_protocol == PROTOCOL_TCP &&
	       packet->l4 >= packet->l3 + TCP_FIXED_BYTES &&
	       packet->payload >= packet->l4 + TCP_FIXED_BYTES &&
	       packet->payload <= packet->l4 + TCP_HEADER_MAX && packet->payload <= packet->caplen;
}

static enum bs_refusal
option_room(const struct bs_packet *packet, unsigned present, unsigned bytes)
{
	enum bs_refusal refusal;

	if (!has_tcp_header(packet))
		return BS_REFUSE_OTHER;
	if (packet->l4_checksum_partial)
		return BS_REFUSE_PARTIAL;
	if (packet->tcp_options & BS_TCPOPT_MALFORMED)
		return BS_REFUSE_MALFORMED;
	if (packet->tcp_options & BS_TCPOPT_MD5_AO)
		return BS_REFUSE_SIGNED;
	if (packet->tcp_options & BS_TCPOPT_FOREIGN_EXP)
		return BS_REFUSE_FOREIGN;
	if (packet->tcp_options & present)
		return BS_REFUSE_PRESENT;
	if (packet->payload - packet->l4 + bytes > TCP_HEADER_MAX)
		return BS_REFUSE_FULL;
	if (get16(packet->data + packet->l4 + TCP_CHECKSUM_AT) == 0xFFFF)
		return BS_REFUSE_CHECKSUM;
	refusal = lengths_ip_room(packet->data, packet->l3, bytes);
	return refusal != BS_REFUSE_NONE ? refusal : lengths_tunnel_room(packet, bytes);
}

/*
 * Writes the lengths and checksums of headers that grew (or, negative, shrank)
 * by an option whose bytes sum to `sum` in the words of the TCP header.
 */
static void
resize(const struct bs_packet *packet, uint8_t *data, int grown, uint16_t sum)
{
	uint8_t *tcp = data + packet->l4;
	uint16_t offset_before = get16(tcp + TCP_OFFSET_AT);
	uint16_t offset_after = (uint16_t)(offset_before + grown / 4 * (1 << 12));
	uint64_t before = offset_before, after = offset_after;

	lengths_ip_grow(data, packet->l3, grown);
	put16(tcp + TCP_OFFSET_AT, offset_after);
	/* The length in the pseudo-header differs by a constant, IPv4 or IPv6. */
	if (grown > 0)
		after += (uint64_t)sum + (unsigned)grown;
	else
		before += (uint64_t)sum + (unsigned)-grown;
	put16(tcp + TCP_CHECKSUM_AT, bs_checksum_adjust(get16(tcp + TCP_CHECKSUM_AT),
					     bs_checksum_fold(before), bs_checksum_fold(after)));
}

static void
option_insert(struct bs_packet *packet, uint8_t *front, const uint8_t *option, unsigned bytes)
{
	unsigned at = packet->l4 + TCP_FIXED_BYTES;
	uint16_t tunnel_sum = lengths_tunnel_sum(packet, packet->payload);

	memmove(front, front + bytes, at);
	memcpy(front + at, option, bytes);
	packet->data = front;
	packet->caplen += bytes;
	packet->len += bytes;
	packet->payload = (uint16_t)(packet->payload + bytes);
	resize(packet, front, (int)bytes, bs_checksum_sum(option, bytes));
	lengths_tunnel_grow(
		packet, front, (int)bytes, tunnel_sum, lengths_tunnel_sum(packet, packet->payload));
}

/* The checks of a removal: an option of `bytes` bytes stands at `at`. */
static bool
is_removable(const struct bs_packet *packet, unsigned at, unsigned bytes)
{
	if (!has_tcp_header(packet) || packet->l4_checksum_partial ||
		packet->tunnel_checksum_partial || at < packet->l4 + TCP_FIXED_BYTES ||
		at + bytes > packet->payload)
		return false;
	return lengths_ip_holds(packet->data, packet->l3, packet->payload);
}

static void
option_remove(struct bs_packet *packet, uint8_t *data, unsigned at, unsigned bytes)
{
	uint16_t tunnel_sum = lengths_tunnel_sum(packet, packet->payload);
	uint16_t sum = bs_checksum_sum(data + at, bytes);

	if ((at - packet->l4) & 1)
		sum = __builtin_bswap16(sum);
	memmove(data + bytes, data, at);
	packet->data = data + bytes;
	packet->caplen -= bytes;
	packet->len -= bytes;
	packet->payload = (uint16_t)(packet->payload - bytes);
	resize(packet, data + bytes, -(int)bytes, sum);
	lengths_tunnel_grow(packet, data + bytes, -(int)bytes, tunnel_sum,
		lengths_tunnel_sum(packet, packet->payload));
}

enum bs_refusal
bs_tcp_tag_room(const struct bs_packet *packet)
{
	return option_room(packet, BS_TCPOPT_SHIM, BS_SHIM_OPTION_BYTES);
}

enum bs_refusal
bs_tcp_tag(struct bs_packet *packet, uint8_t *front, const struct bs_shim *shim)
{
	uint8_t option[BS_SHIM_OPTION_BYTES];
	enum bs_refusal refusal = bs_tcp_tag_room(packet);

	if (refusal != BS_REFUSE_NONE)
		return refusal;
	bs_shim_option_encode(shim, option);
	option_insert(packet, front, option, sizeof(option));
	packet->shim = (uint16_t)(packet->l4 + TCP_FIXED_BYTES);
	packet->tcp_options |= BS_TCPOPT_SHIM;
	if (packet->tcp_options & BS_TCPOPT_ANNOUNCE)
		packet->announce = (uint16_t)(packet->announce + sizeof(option));
	return BS_REFUSE_NONE;
}

int
bs_tcp_untag(struct bs_packet *packet, uint8_t *data)
{
	struct bs_shim shim;
	unsigned at = packet->shim;

	if (!(packet->tcp_options & BS_TCPOPT_SHIM) ||
		!is_removable(packet, at, BS_SHIM_OPTION_BYTES) ||
		bs_shim_option_decode(data + at, packet->payload - at, &shim) < 0)
		return -EINVAL;
	option_remove(packet, data, at, BS_SHIM_OPTION_BYTES);
	packet->shim = 0;
	packet->tcp_options &= (uint16_t)~BS_TCPOPT_SHIM;
	if (packet->tcp_options & BS_TCPOPT_ANNOUNCE && packet->announce > at)
		packet->announce = (uint16_t)(packet->announce - BS_SHIM_OPTION_BYTES);
	return 0;
}

enum bs_refusal
bs_tcp_announce_room(const struct bs_packet *packet)
{
	if (has_tcp_header(packet) && !(packet->tcp_flags & BS_TCP_SYN))
		return BS_REFUSE_NOT_SYN;
	return option_room(packet, BS_TCPOPT_ANNOUNCE, BS_ANNOUNCE_BYTES);
}

enum bs_refusal
bs_tcp_announce(struct bs_packet *packet, uint8_t *front)
{
	static const uint8_t option[BS_ANNOUNCE_BYTES] = {BS_TCP_OPTION_EXPERIMENT,
		BS_ANNOUNCE_BYTES, BS_ANNOUNCE_EXID >> 8, BS_ANNOUNCE_EXID & 0xff};
	enum bs_refusal refusal = bs_tcp_announce_room(packet);

	if (refusal != BS_REFUSE_NONE)
		return refusal;
	option_insert(packet, front, option, sizeof(option));
	packet->announce = (uint16_t)(packet->l4 + TCP_FIXED_BYTES);
	packet->tcp_options |= BS_TCPOPT_ANNOUNCE;
	if (packet->tcp_options & BS_TCPOPT_SHIM)
		packet->shim = (uint16_t)(packet->shim + sizeof(option));
	return BS_REFUSE_NONE;
}

int
bs_tcp_unannounce(struct bs_packet *packet, uint8_t *data)
{
	unsigned at = packet->announce;

	if (!(packet->tcp_options & BS_TCPOPT_ANNOUNCE) ||
		!is_removable(packet, at, BS_ANNOUNCE_BYTES) ||
		data[at] != BS_TCP_OPTION_EXPERIMENT || data[at + 1] != BS_ANNOUNCE_BYTES ||
		get16(data + at + 2) != BS_ANNOUNCE_EXID)
		return -EINVAL;
	option_remove(packet, data, at, BS_ANNOUNCE_BYTES);
	packet->announce = 0;
	packet->tcp_options &= (uint16_t)~BS_TCPOPT_ANNOUNCE;
	if (packet->tcp_options & BS_TCPOPT_SHIM && packet->shim > at)
		packet->shim = (uint16_t)(packet->shim - BS_ANNOUNCE_BYTES);
	return 0;
}

/* Offset of the last MSS option, which is the one that receivers obey; 0 if there is none. */
static unsigned
mss_option_at(const struct bs_packet *packet)
{
	unsigned at = packet->l4 + TCP_FIXED_BYTES, found = 0;

	while (at + 2 <= packet->payload && packet->data[at] != OPTION_END) {
		unsigned kind = packet->data[at];
		unsigned bytes = kind == OPTION_NOP ? 1 : packet->data[at + 1];

		if (bytes == 0 || at + bytes > packet->payload)
			return 0;
		if (kind == OPTION_MSS && bytes == OPTION_MSS_BYTES)
			found = at;
		at += bytes;
	}
	return found;
}

unsigned
bs_tcp_mss_lower(struct bs_packet *packet, uint8_t *data, unsigned bytes)
{
	uint16_t before, after, tunnel_sum;
	uint8_t *checksum;
	unsigned at, odd;

	if (!has_tcp_header(packet) || !(packet->tcp_flags & BS_TCP_SYN) ||
		packet->l4_checksum_partial || packet->tunnel_checksum_partial ||
		packet->tcp_options & (BS_TCPOPT_MALFORMED | BS_TCPOPT_MD5_AO))
		return 0;
	at = mss_option_at(packet);
	if (at == 0)
		return 0;
	before = get16(data + at + 2);
	if (before <= BS_TCP_MSS_FLOOR)
		return 0;
	after = (uint16_t)(before < BS_TCP_MSS_FLOOR + bytes ? BS_TCP_MSS_FLOOR : before - bytes);
	tunnel_sum = lengths_tunnel_sum(packet, packet->payload);
	put16(data + at + 2, after);
	packet->mss = after;

	/* Astride two words of the checksum, the bytes of the value count swapped. */
	odd = (at - packet->l4) & 1;
	checksum = data + packet->l4 + TCP_CHECKSUM_AT;
	put16(checksum,
		bs_checksum_adjust(get16(checksum), odd ? __builtin_bswap16(before) : before,
			odd ? __builtin_bswap16(after) : after));
	lengths_tunnel_grow(
		packet, data, 0, tunnel_sum, lengths_tunnel_sum(packet, packet->payload));
	return before - after;
}
