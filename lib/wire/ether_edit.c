/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The `ether` carrier: Ethertype 0x88B5 and the shim between the MACs and the
 * frame's own Ethertype, VLAN tags and all. No length or checksum knows of it;
 * only peers of the same link can take it off.
 */
#include <errno.h>
#include <string.h>

#include "bytes.h"
#include "carriers.h"

#define MACS_BYTES 12u
#define TYPE_IPV4 0x0800u
#define TYPE_IPV6 0x86DDu
#define TYPE_VLAN 0x8100u
#define TYPE_SVLAN 0x88A8u

unsigned
ether_edit_bytes(const struct bs_packet *packet)
{
	(void)packet;
	return ETHER_EDIT_BYTES;
}

/* All that lies behind the MACs, by `moved` further from the frame's first byte. */
static void
offsets_move(struct bs_packet *packet, int moved)
{
	uint16_t *offsets[] = {&packet->l3, &packet->l4, &packet->payload, &packet->shim,
		&packet->announce, &packet->geneve, &packet->geneve_shim};

	for (unsigned i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		if (*offsets[i] != 0)
			*offsets[i] = (uint16_t)(*offsets[i] + moved);
	}
	if (packet->geneve != 0)
		packet->outer_l3 = (uint16_t)(packet->outer_l3 + moved);
}

int
ether_edit_read(const struct bs_packet *packet, struct bs_shim *shim)
{
	if (packet->ether_shim == 0)
		return -ENOENT;
	if (packet->ether_shim != BS_ETHER_BYTES ||
		packet->caplen < BS_ETHER_BYTES + ETHER_EDIT_BYTES)
		return -EINVAL;
	return bs_shim_decode(packet->data + packet->ether_shim, BS_SHIM_BYTES, shim);
}

enum bs_refusal
ether_edit_room(const struct bs_packet *packet)
{
	unsigned type;

	if (packet->parse != BS_PARSE_OK || packet->l3 < BS_ETHER_BYTES ||
		packet->caplen < BS_ETHER_BYTES)
		return BS_REFUSE_OTHER;
	if (packet->ether_shim != 0)
		return BS_REFUSE_PRESENT;
	type = get16(packet->data + MACS_BYTES);
	if (type != TYPE_IPV4 && type != TYPE_IPV6 && type != TYPE_VLAN && type != TYPE_SVLAN)
		return BS_REFUSE_OTHER; /* no Ethernet frame */
	if (packet->payload + ETHER_EDIT_BYTES > UINT16_MAX)
		return BS_REFUSE_FULL;
	return BS_REFUSE_NONE;
}

enum bs_refusal
ether_edit_tag(struct bs_packet *packet, uint8_t *front, const struct bs_shim *shim)
{
	enum bs_refusal refusal = ether_edit_room(packet);

	if (refusal != BS_REFUSE_NONE)
		return refusal;
	memmove(front, front + ETHER_EDIT_BYTES, MACS_BYTES);
	put16(front + MACS_BYTES, BS_ETHER_SHIM_TYPE);
	bs_shim_encode(shim, front + BS_ETHER_BYTES);
	offsets_move(packet, (int)ETHER_EDIT_BYTES);
	packet->data = front;
	packet->caplen += ETHER_EDIT_BYTES;
	packet->len += ETHER_EDIT_BYTES;
	packet->ether_shim = BS_ETHER_BYTES;
	return BS_REFUSE_NONE;
}

int
ether_edit_untag(struct bs_packet *packet, uint8_t *data)
{
	struct bs_shim shim;

	if (packet->parse != BS_PARSE_OK || ether_edit_read(packet, &shim) < 0)
		return -EINVAL;
	memmove(data + ETHER_EDIT_BYTES, data, MACS_BYTES);
	offsets_move(packet, -(int)ETHER_EDIT_BYTES);
	packet->data = data + ETHER_EDIT_BYTES;
	packet->caplen -= ETHER_EDIT_BYTES;
	packet->len -= ETHER_EDIT_BYTES;
	packet->ether_shim = 0;
	return 0;
}
