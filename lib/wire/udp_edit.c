/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The `udp-option` carrier: the only option in the surplus area, the bytes of the
 * IP packet behind the UDP length (RFC 9868 section 7). The UDP header stays as it
 * is; receivers that know nothing of options read up to its length.
 *
 * The OCS (section 9) is chosen so that the surplus area, its length added, sums to
 * nothing: who takes the IP length for that of the datagram still finds the UDP
 * checksum right.
 *
 * The whole packet moves to the front by what goes in behind it, so that room is
 * made at the same end as for all other carriers.
 */
#include <errno.h>
#include <string.h>

#include "bs_checksum.h"
#include "bytes.h"
#include "carriers.h"
#include "lengths.h"

#define PROTOCOL_UDP 17u
#define UDP_BYTES 8u
#define UDP_LENGTH_AT 4u
#define UDP_CHECKSUM_AT 6u
#define OCS_BYTES 2u
#define OPTION_EXPERIMENT 127u
#define OPTION_HEADER_BYTES 4u
#define OPTION_BYTES (OPTION_HEADER_BYTES + BS_SHIM_BYTES)

static unsigned
pad_of(const struct bs_packet *packet)
{
	return packet->payload_len & 1;
}

static unsigned
surplus_at(const struct bs_packet *packet)
{
	return packet->payload + packet->payload_len;
}

static bool
is_datagram(const struct bs_packet *packet)
{
	return packet->parse == BS_PARSE_OK && packet->l4_protocol == PROTOCOL_UDP &&
	       packet->payload == packet->l4 + UDP_BYTES && packet->payload <= packet->caplen;
}

/* Where what must move ends: everything up to the end of the tunnel's datagram counts in its sum.
 */
static unsigned
sum_end(const struct bs_packet *packet)
{
	return packet->geneve == 0
		       ? 0
		       : packet->geneve - UDP_BYTES +
				 get16(packet->data + packet->geneve - UDP_BYTES + UDP_LENGTH_AT);
}

unsigned
udp_edit_bytes(const struct bs_packet *packet)
{
	return pad_of(packet) + OCS_BYTES + OPTION_BYTES;
}

/* The surplus area for this packet. */
static void
surplus_write(const struct bs_packet *packet, uint8_t *out, const struct bs_shim *shim)
{
	unsigned bytes = udp_edit_bytes(packet), pad = pad_of(packet);
	uint8_t *ocs = out + pad, *option = ocs + OCS_BYTES;
	uint16_t sum;

	out[0] = 0;
	put16(ocs, 0);
	option[0] = OPTION_EXPERIMENT;
	option[1] = OPTION_BYTES;
	put16(option + 2, BS_SHIM_EXID);
	bs_shim_encode(shim, option + OPTION_HEADER_BYTES);
	sum = bs_checksum_fold((uint64_t)bs_checksum_sum(ocs, bytes - pad) + bytes);
	put16(ocs, sum == 0xFFFF ? 0xFFFF : (uint16_t)~sum);
}

int
udp_edit_read(const struct bs_packet *packet, struct bs_shim *shim)
{
	unsigned bytes = udp_edit_bytes(packet), pad = pad_of(packet);
	const uint8_t *surplus, *ocs;

	if (packet->shim == 0 || packet->l4_protocol != PROTOCOL_UDP)
		return -ENOENT;
	if (!is_datagram(packet) || surplus_at(packet) + bytes > packet->caplen ||
		packet->shim != surplus_at(packet) + pad + OCS_BYTES)
		return -EINVAL;
	surplus = packet->data + surplus_at(packet);
	ocs = surplus + pad;
	if (pad > 0 && surplus[0] != 0)
		return -EINVAL;
	/* An OCS of 0 says that there is none, which goes only with no UDP checksum. */
	if (get16(ocs) == 0) {
		if (get16(packet->data + packet->l4 + UDP_CHECKSUM_AT) != 0)
			return -EINVAL;
	} else if (bs_checksum_fold((uint64_t)bs_checksum_sum(ocs, bytes - pad) + bytes) !=
		   0xFFFF) {
		return -EINVAL;
	}
	return bs_shim_decode(
		packet->data + packet->shim + OPTION_HEADER_BYTES, BS_SHIM_BYTES, shim);
}

enum bs_refusal
udp_edit_room(const struct bs_packet *packet)
{
	enum bs_refusal refusal;
	unsigned end, bytes;

	if (!is_datagram(packet))
		return BS_REFUSE_OTHER;
	if (packet->l4_checksum_partial)
		return BS_REFUSE_PARTIAL;
	bytes = udp_edit_bytes(packet);
	refusal = lengths_ip_room(packet->data, packet->l3, bytes);
	if (refusal == BS_REFUSE_NONE)
		refusal = lengths_tunnel_room(packet, bytes);
	if (refusal != BS_REFUSE_NONE)
		return refusal;
	end = lengths_ip_end(packet->data, packet->l3);
	if (packet->shim != 0)
		return BS_REFUSE_PRESENT;
	if (end != surplus_at(packet))
		return BS_REFUSE_FOREIGN;
	if (end > packet->caplen || sum_end(packet) > packet->caplen)
		return BS_REFUSE_PIECES;
	if (end + bytes > UINT16_MAX)
		return BS_REFUSE_IP_LENGTH;
	return BS_REFUSE_NONE;
}

enum bs_refusal
udp_edit_tag(struct bs_packet *packet, uint8_t *front, const struct bs_shim *shim)
{
	unsigned bytes = udp_edit_bytes(packet), at = surplus_at(packet), end = sum_end(packet);
	enum bs_refusal refusal = udp_edit_room(packet);
	uint16_t before;

	if (refusal != BS_REFUSE_NONE)
		return refusal;
	before = lengths_tunnel_sum(packet, end);
	memmove(front, front + bytes, at);
	surplus_write(packet, front + at, shim);
	packet->data = front;
	packet->caplen += bytes;
	packet->len += bytes;
	packet->shim = (uint16_t)(at + bytes - OPTION_BYTES);
	lengths_ip_grow(front, packet->l3, (int)bytes);
	lengths_tunnel_grow(
		packet, front, (int)bytes, before, lengths_tunnel_sum(packet, end + bytes));
	return BS_REFUSE_NONE;
}

int
udp_edit_untag(struct bs_packet *packet, uint8_t *data)
{
	unsigned bytes = udp_edit_bytes(packet), at = surplus_at(packet), end = sum_end(packet);
	struct bs_shim shim;
	uint16_t before;

	if (udp_edit_read(packet, &shim) < 0 || packet->l4_checksum_partial ||
		packet->tunnel_checksum_partial || lengths_ip_end(data, packet->l3) != at + bytes ||
		end > packet->caplen)
		return -EINVAL;
	before = lengths_tunnel_sum(packet, end);
	memmove(data + bytes, data, at);
	packet->data = data + bytes;
	packet->caplen -= bytes;
	packet->len -= bytes;
	packet->shim = 0;
	lengths_ip_grow(data + bytes, packet->l3, -(int)bytes);
	lengths_tunnel_grow(
		packet, data + bytes, -(int)bytes, before, lengths_tunnel_sum(packet, end - bytes));
	return 0;
}
