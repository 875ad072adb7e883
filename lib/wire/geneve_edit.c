/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The `geneve` carrier: the first option of the tunnel that the packet is in (RFC
 * 8926 section 3.5), not critical, so that tunnel endpoints that do not know it
 * pass over it. The packet in the tunnel stays as it is.
 */
#include <errno.h>
#include <string.h>

#include "bytes.h"
#include "carriers.h"
#include "lengths.h"

#define OPTIONS_MASK 0x3fu /* of the first byte: length of the options in units of 4 bytes */
#define OPTIONS_UNITS_MAX 63u
#define OPTION_HEADER_BYTES 4u
#define OPTION_UNITS (GENEVE_EDIT_BYTES / 4)

/* All that lies behind the shim, by `moved` further from the frame's first byte. */
static void
offsets_move(struct bs_packet *packet, int moved)
{
	uint16_t *offsets[] = {
		&packet->l3, &packet->l4, &packet->payload, &packet->shim, &packet->announce};

	for (unsigned i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		if (*offsets[i] != 0)
			*offsets[i] = (uint16_t)(*offsets[i] + moved);
	}
}

static bool
is_tunneled(const struct bs_packet *packet)
{
	return packet->parse == BS_PARSE_OK && packet->geneve != 0 &&
	       packet->l3 >= packet->geneve + BS_GENEVE_BYTES && packet->payload <= packet->caplen;
}

unsigned
geneve_edit_bytes(const struct bs_packet *packet)
{
	(void)packet;
	return GENEVE_EDIT_BYTES;
}

int
geneve_edit_read(const struct bs_packet *packet, struct bs_shim *shim)
{
	if (packet->geneve_shim == 0)
		return -ENOENT;
	if (!is_tunneled(packet) || packet->geneve_shim < packet->geneve + BS_GENEVE_BYTES ||
		packet->geneve_shim + GENEVE_EDIT_BYTES > packet->l3)
		return -EINVAL;
	return bs_shim_decode(
		packet->data + packet->geneve_shim + OPTION_HEADER_BYTES, BS_SHIM_BYTES, shim);
}

enum bs_refusal
geneve_edit_room(const struct bs_packet *packet)
{
	if (!is_tunneled(packet))
		return BS_REFUSE_OTHER;
	if (packet->geneve_shim != 0)
		return BS_REFUSE_PRESENT;
	if ((packet->data[packet->geneve] & OPTIONS_MASK) + OPTION_UNITS > OPTIONS_UNITS_MAX)
		return BS_REFUSE_FULL;
	return lengths_tunnel_room(packet, GENEVE_EDIT_BYTES);
}

enum bs_refusal
geneve_edit_tag(struct bs_packet *packet, uint8_t *front, const struct bs_shim *shim)
{
	enum bs_refusal refusal = geneve_edit_room(packet);
	const unsigned at = packet->geneve + BS_GENEVE_BYTES;
	uint8_t *option = front + at;
	uint16_t before;

	if (refusal != BS_REFUSE_NONE)
		return refusal;
	before = lengths_tunnel_sum(packet, at);
	memmove(front, front + GENEVE_EDIT_BYTES, at);
	put16(option, BS_GENEVE_CLASS);
	option[2] = BS_GENEVE_TYPE;
	option[3] = BS_SHIM_BYTES / 4;
	bs_shim_encode(shim, option + OPTION_HEADER_BYTES);
	front[packet->geneve] = (uint8_t)(front[packet->geneve] + OPTION_UNITS);
	offsets_move(packet, (int)GENEVE_EDIT_BYTES);
	packet->data = front;
	packet->caplen += GENEVE_EDIT_BYTES;
	packet->len += GENEVE_EDIT_BYTES;
	packet->geneve_shim = (uint16_t)at;
	lengths_tunnel_grow(packet, front, (int)GENEVE_EDIT_BYTES, before,
		lengths_tunnel_sum(packet, at + GENEVE_EDIT_BYTES));
	return BS_REFUSE_NONE;
}

int
geneve_edit_untag(struct bs_packet *packet, uint8_t *data)
{
	const unsigned at = packet->geneve_shim;
	uint8_t *after = data + GENEVE_EDIT_BYTES;
	struct bs_shim shim;
	uint16_t before;

	if (geneve_edit_read(packet, &shim) < 0 || packet->tunnel_checksum_partial ||
		(data[packet->geneve] & OPTIONS_MASK) < OPTION_UNITS ||
		!lengths_ip_holds(data, packet->outer_l3, packet->l3))
		return -EINVAL;
	before = lengths_tunnel_sum(packet, at + GENEVE_EDIT_BYTES);
	memmove(after, data, at);
	after[packet->geneve] = (uint8_t)(after[packet->geneve] - OPTION_UNITS);
	offsets_move(packet, -(int)GENEVE_EDIT_BYTES);
	packet->data = after;
	packet->caplen -= GENEVE_EDIT_BYTES;
	packet->len -= GENEVE_EDIT_BYTES;
	packet->geneve_shim = 0;
	lengths_tunnel_grow(
		packet, after, -(int)GENEVE_EDIT_BYTES, before, lengths_tunnel_sum(packet, at));
	return 0;
}
