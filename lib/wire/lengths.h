/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lengths and checksums of the IP and UDP headers above a place where bytes go
 * in or out: those of the packet, and those of the tunnel around it. Private to
 * lib/wire.
 */
#pragma once

#include "bs_carrier.h"

/* An IP header at data + l3: can its length grow by `bytes`? */
enum bs_refusal lengths_ip_room(const uint8_t *data, unsigned l3, unsigned bytes);

/* Is the IP length of the header at l3 enough to end at offset `end`? Nonzero lengths only. */
bool lengths_ip_holds(const uint8_t *data, unsigned l3, unsigned end);

/* Offset at which the IP packet ends; its length is not 0. */
unsigned lengths_ip_end(const uint8_t *data, unsigned l3);

/* Its length grew, or, negative, shrank. */
void lengths_ip_grow(uint8_t *data, unsigned l3, int grown);

/* Can the tunnel that the packet is in grow by `bytes`? Yes if it is in none. */
enum bs_refusal lengths_tunnel_room(const struct bs_packet *packet, unsigned bytes);

/*
 * The sum, not inverted, of the tunnel's datagram up to offset `end`, for before
 * and after an edit that leaves what is behind it as it is, and in its place: the
 * datagram grew, or shrank, by an even number, or `end` is its own. 0 if there is
 * no tunnel, or no checksum. Then its IP and UDP headers are put right.
 */
uint16_t lengths_tunnel_sum(const struct bs_packet *packet, unsigned end);
void lengths_tunnel_grow(
	const struct bs_packet *packet, uint8_t *data, int grown, uint16_t before, uint16_t after);
