/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Edits of TCP headers in place: the shim in and out (the `tcp-option` carrier of
 * bs_carrier.h), its announcement in and out, the MSS lowered. Each touches headers
 * only, moves those before the option rather than the payload behind it, and
 * adjusts checksums by what changed, so that a wrong checksum stays as wrong as it
 * was. What goes in and comes out again leaves the frame as it was to the byte.
 * Inside a Geneve tunnel the outer lengths and checksums are kept right, too.
 *
 * All of them take a packet of which parse() returned BS_PARSE_OK, and the same
 * bytes writable; the headers up to the payload lie in one piece. They check
 * everything first: when one refuses, nothing is written. Afterwards the packet
 * describes the edited frame. Nothing is kept: any thread may call everything.
 */
#pragma once

#include <stdint.h>

#include "bs_carrier.h"
#include "bs_packet.h"
#include "bs_shim.h"

/* Whether the packet can take a shim, or why not. The MTU is the caller's to check. */
enum bs_refusal bs_tcp_tag_room(const struct bs_packet *packet);

/*
 * Puts the shim right behind the fixed TCP header. `front` is packet->data less
 * BS_SHIM_OPTION_BYTES, of which the caller has made room; the frame begins
 * there afterwards. Returns what tag_room() says.
 */
enum bs_refusal bs_tcp_tag(struct bs_packet *packet, uint8_t *front, const struct bs_shim *shim);

/*
 * Takes the shim off, wherever in the options it stands (packet->shim). `data`
 * is packet->data; the frame begins BS_SHIM_OPTION_BYTES later afterwards. 0, or
 * -EINVAL: no shim that can be read, IP length 0 or too short, or a checksum yet
 * to be completed.
 */
int bs_tcp_untag(struct bs_packet *packet, uint8_t *data);

/* The same for the announcement in a SYN or SYN-ACK, BS_ANNOUNCE_BYTES long. */
enum bs_refusal bs_tcp_announce_room(const struct bs_packet *packet);
enum bs_refusal bs_tcp_announce(struct bs_packet *packet, uint8_t *front);
int bs_tcp_unannounce(struct bs_packet *packet, uint8_t *data);

/*
 * The least MSS that clamping leaves, bytes: what Linux takes for the least a
 * path can have, 68 bytes of RFC 791 and full TCP options considered. A SYN that
 * offers less gets what it asks for.
 */
#define BS_TCP_MSS_FLOOR 88u

/*
 * Lowers the MSS option of a SYN or SYN-ACK (RFC 9293 section 3.7.1) by `bytes`,
 * what the carrier adds, so that a full segment fits the path with a shim in it;
 * not below the floor. `data` is packet->data. Returns by how many bytes it was
 * lowered: all of them, or fewer, or 0 (no SYN, no MSS option, options signed or
 * malformed, checksum yet to be completed); then full segments may not fit.
 */
unsigned bs_tcp_mss_lower(struct bs_packet *packet, uint8_t *data, unsigned bytes);
