/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Edits of TCP headers in place: the shim in and out, its announcement in and
 * out, the MSS lowered. Each touches headers only, moves those before the option
 * rather than the payload behind it, and adjusts checksums by what changed, so
 * that a wrong checksum stays as wrong as it was. What goes in and comes out
 * again leaves the frame as it was to the byte.
 *
 * All of them take a packet of which parse() returned BS_PARSE_OK, and the same
 * bytes writable; the headers up to the payload lie in one piece. They check
 * everything first: when one refuses, nothing is written. Afterwards the packet
 * describes the edited frame. Nothing is kept: any thread may call everything.
 */
#pragma once

#include <stdint.h>

#include "bs_packet.h"
#include "bs_shim.h"

/* Why an option cannot go into a packet. */
enum bs_tcp_refusal {
	BS_TCP_REFUSE_NONE,    /* it can */
	BS_TCP_REFUSE_NOT_TCP, /* not a whole TCP header that parse() understood (behind an AH none
				  is) */
	BS_TCP_REFUSE_PARTIAL, /* the checksum is yet to be completed (bs_checksum.h) */
	BS_TCP_REFUSE_MALFORMED,   /* its option list does not parse */
	BS_TCP_REFUSE_SIGNED,	   /* TCP-MD5 or TCP-AO */
	BS_TCP_REFUSE_FOREIGN,	   /* carries somebody else's experimental option */
	BS_TCP_REFUSE_PRESENT,	   /* carries this option already */
	BS_TCP_REFUSE_NOT_SYN,	   /* announcements only: not a SYN or SYN-ACK */
	BS_TCP_REFUSE_HEADER_FULL, /* the TCP header would exceed 60 bytes (RFC 9293 section 3.1) */
	BS_TCP_REFUSE_NO_LENGTH,   /* IP length 0: IPv6 jumbogram (RFC 2675) or segmentation offload
				    */
	BS_TCP_REFUSE_IP_LENGTH,   /* the IP length would exceed 65535 */
	BS_TCP_REFUSE_CHECKSUM,	   /* a checksum of 0xFFFF, which nobody computes and which no
				    * adjustment can restore: its twin 0 would come out */
	BS_TCP_REFUSE_COUNT
};

/* Whether the packet can take a shim, or why not. The MTU is the caller's to check. */
enum bs_tcp_refusal bs_tcp_tag_room(const struct bs_packet *packet);

/*
 * Puts the shim right behind the fixed TCP header. `front` is packet->data less
 * BS_SHIM_OPTION_BYTES, of which the caller has made room; the frame begins
 * there afterwards. Returns what tag_room() says.
 */
enum bs_tcp_refusal bs_tcp_tag(
	struct bs_packet *packet, uint8_t *front, const struct bs_shim *shim);

/*
 * Takes the shim off, wherever in the options it stands (packet->shim). `data`
 * is packet->data; the frame begins BS_SHIM_OPTION_BYTES later afterwards. 0, or
 * -EINVAL: no shim that can be read, IP length 0 or too short, or a checksum yet
 * to be completed.
 */
int bs_tcp_untag(struct bs_packet *packet, uint8_t *data);

/* The same for the announcement in a SYN or SYN-ACK, BS_ANNOUNCE_BYTES long. */
enum bs_tcp_refusal bs_tcp_announce_room(const struct bs_packet *packet);
enum bs_tcp_refusal bs_tcp_announce(struct bs_packet *packet, uint8_t *front);
int bs_tcp_unannounce(struct bs_packet *packet, uint8_t *data);

/*
 * The least MSS that clamping leaves, bytes: what Linux takes for the least a
 * path can have, 68 bytes of RFC 791 and full TCP options considered. A SYN that
 * offers less gets what it asks for.
 */
#define BS_TCP_MSS_FLOOR 88u

/*
 * Lowers the MSS option of a SYN or SYN-ACK (RFC 9293 section 3.7.1) by
 * BS_SHIM_OPTION_BYTES, so that a full segment fits the path with a shim in it;
 * not below the floor. `data` is packet->data. Returns by how many bytes it was
 * lowered: all of them, or fewer, or 0 (no SYN, no MSS option, options signed or
 * malformed, checksum yet to be completed); then full segments may not fit.
 */
unsigned bs_tcp_mss_lower(struct bs_packet *packet, uint8_t *data);
