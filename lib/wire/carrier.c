/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of carriers; see bs_carrier.h. */
#include <errno.h>

#include "bs_tcp_edit.h"
#include "carriers.h"

static unsigned
tcp_bytes(const struct bs_packet *packet)
{
	(void)packet;
	return BS_SHIM_OPTION_BYTES;
}

static int
tcp_read(const struct bs_packet *packet, struct bs_shim *shim)
{
	if (!(packet->tcp_options & BS_TCPOPT_SHIM))
		return -ENOENT;
	return bs_shim_option_decode(
		packet->data + packet->shim, packet->payload - packet->shim, shim);
}

const struct bs_carrier_ops bs_carriers[BS_CARRIER_COUNT] = {
	[BS_CARRIER_TCP_OPTION] = {"tcp-option", BS_SHIM_OPTION_BYTES, tcp_bytes, tcp_read,
		bs_tcp_tag_room, bs_tcp_tag, bs_tcp_untag},
	[BS_CARRIER_UDP_OPTION] = {"udp-option", UDP_EDIT_BYTES_MAX, udp_edit_bytes, udp_edit_read,
		udp_edit_room, udp_edit_tag, udp_edit_untag},
	[BS_CARRIER_ETHER] = {"ether", ETHER_EDIT_BYTES, ether_edit_bytes, ether_edit_read,
		ether_edit_room, ether_edit_tag, ether_edit_untag},
	[BS_CARRIER_GENEVE] = {"geneve", GENEVE_EDIT_BYTES, geneve_edit_bytes, geneve_edit_read,
		geneve_edit_room, geneve_edit_tag, geneve_edit_untag},
};

int
bs_carriers_read(const struct bs_packet *packet, struct bs_shim *shim)
{
	if (!bs_carrier_any(packet))
		return -ENOENT;
	for (unsigned carrier = 1; carrier < BS_CARRIER_COUNT; carrier++) {
		if (bs_carriers[carrier].read(packet, shim) == 0)
			return 0;
	}
	return -ENOENT;
}
