/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ICMP "too big" on its way to a sender whose packets we tag: what the path
 * takes is less by the shim for what the sender makes, so its MTU is lowered
 * before the sender sees it.
 *
 * The packet quoted in the error may be a tagged one. It is left as it is: the
 * sender finds the connection by the quoted addresses, ports and sequence
 * number (the IP header and the first 8 bytes behind it, RFC 792), and a shim
 * changes none of them; of these bytes only the IP length differs, which counts
 * only where the MTU field is 0 (RFC 1191 section 5), and then we lower nothing.
 *
 * Nothing is kept: any thread may call everything.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "bs_packet.h"

/*
 * The least MTU that lowering leaves, bytes: for IPv4 the smallest that RFC 1191
 * section 7.1 knows a network of (one that says 68, the smallest allowed, keeps
 * it); for IPv6 the least that every link has (RFC 8200 section 5).
 */
#define BS_ICMP_MTU_FLOOR_V4 296u
#define BS_ICMP_MTU_FLOOR_V6 1280u

struct bs_icmp_too_big {
	struct bs_tuple tuple; /* flow of the quoted packet, with the VLANs of the frame */
	uint8_t direction;     /* the end of tuple that sent the quoted packet */
	uint32_t seq;	       /* of the quoted TCP segment; 0 for UDP */
	uint32_t mtu;	       /* as in the field */
	uint32_t icmp_at;      /* offset of the ICMP header from the frame's first byte */
	uint32_t mtu_at;       /* likewise of the MTU field: 2 bytes in ICMP, 4 in ICMPv6 */
};

/*
 * Reads an Ethernet frame of `len` bytes, up to three VLAN tags: ICMP type 3
 * code 4 (RFC 1191 section 4) or ICMPv6 type 2 (RFC 4443 section 3.2) about a
 * TCP or UDP packet. 0, or -EINVAL (it is none, it or the quote is too short, or
 * a fragment) with *out untouched. Does not check the ICMP checksum.
 */
int bs_icmp_too_big_parse(const uint8_t *frame, size_t len, struct bs_icmp_too_big *out);

/*
 * Lowers the MTU of a frame that was parsed into *too_big by `bytes`, what the
 * carrier adds, not below the floor, and adjusts the checksum. Returns by
 * how many bytes it was lowered: all of them, or fewer, or 0 (then full segments
 * of that flow do not fit with a shim, and tagging them is of no use).
 */
unsigned bs_icmp_mtu_lower(struct bs_icmp_too_big *too_big, uint8_t *frame, unsigned bytes);
