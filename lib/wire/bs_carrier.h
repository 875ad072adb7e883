/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the shim travels: one table of carriers with one set of edits, so that who
 * tags has no logic of any of them.
 *
 *   tcp-option  kind 253, ExID 0xB5C0, right behind the fixed TCP header (RFC 6994)
 *   udp-option  kind 127, ExID 0xB5C0, behind the payload, with OCS (RFC 9868)
 *   ether       Ethertype 0x88B5 and the shim between MACs and Ethertype
 *   geneve      option class 0xFFB5, type 1, in the tunnel's header (RFC 8926)
 *
 * All of them take an Ethernet frame of which parse() returned BS_PARSE_OK, and
 * the same bytes writable; headers up to the payload lie in one piece, and for
 * udp-option all of it. They check everything first: when one refuses, nothing is
 * written. What is in front of the shim moves to the front; lengths and checksums
 * are adjusted by what changed, so that a wrong checksum stays wrong. What goes in
 * and comes out again leaves the frame as it was to the byte. Afterwards the
 * packet describes the edited frame. Nothing is kept: any thread may call everything.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bs_packet.h"
#include "bs_shim.h"

enum bs_carrier {
	BS_CARRIER_OFF,
	BS_CARRIER_TCP_OPTION,
	BS_CARRIER_UDP_OPTION,
	BS_CARRIER_ETHER,
	BS_CARRIER_GENEVE,
	BS_CARRIER_COUNT
};

/* Why a packet cannot take what should go into it. */
enum bs_refusal {
	BS_REFUSE_NONE,	     /* it can */
	BS_REFUSE_OTHER,     /* no packet of the kind that the carrier goes with (behind an AH there
				is none) */
	BS_REFUSE_PARTIAL,   /* the checksum is yet to be completed (bs_checksum.h) */
	BS_REFUSE_MALFORMED, /* its option list does not parse */
	BS_REFUSE_SIGNED,    /* TCP-MD5 or TCP-AO */
	BS_REFUSE_FOREIGN,   /* somebody else's experimental TCP option, or any UDP option */
	BS_REFUSE_PRESENT,   /* carries this already */
	BS_REFUSE_NOT_SYN,   /* announcements only: not a SYN or SYN-ACK */
	BS_REFUSE_FULL, /* the TCP header would exceed 60 bytes (RFC 9293 section 3.1), Geneve's
			   options 252 (RFC 8926 section 3.4) */
	BS_REFUSE_NO_LENGTH, /* IP length 0: IPv6 jumbogram (RFC 2675) or segmentation offload */
	BS_REFUSE_IP_LENGTH, /* an IP or UDP length would exceed 65535 */
	BS_REFUSE_CHECKSUM,  /* a checksum of 0xFFFF, which nobody computes and which no
			      * adjustment can restore: its twin 0 would come out */
	BS_REFUSE_PIECES,    /* its last byte lies in another piece than its first */
	BS_REFUSE_COUNT
};

struct bs_carrier_ops {
	const char *name; /* as in the configuration */
	unsigned bytes_max;
	/* Bytes that it adds to this packet, or takes off it. */
	unsigned (*bytes)(const struct bs_packet *packet);
	/*
	 * Reads the shim that this carrier brings: 0, -ENOENT (none), or -EINVAL (there is one, of
	 * another version, or the checksum that is its own does not hold) with *shim untouched.
	 */
	int (*read)(const struct bs_packet *packet, struct bs_shim *shim);
	/* Whether the packet can take a shim, or why not. The MTU is the caller's to check. */
	enum bs_refusal (*room)(const struct bs_packet *packet);
	/*
	 * Puts it in. `front` is packet->data less bytes(), of which the caller has made room; the
	 * frame begins there afterwards. Returns what room() says.
	 */
	enum bs_refusal (*tag)(
		struct bs_packet *packet, uint8_t *front, const struct bs_shim *shim);
	/*
	 * Takes it off. `data` is packet->data; the frame begins bytes() later afterwards. 0, or
	 * -EINVAL: nothing that read() can read, lengths that cannot be, or a checksum yet to be
	 * completed.
	 */
	int (*untag)(struct bs_packet *packet, uint8_t *data);
};

/* By enum bs_carrier; that of OFF is empty. */
extern const struct bs_carrier_ops bs_carriers[BS_CARRIER_COUNT];

/* Reads the shim of whatever carrier brings a readable one; of several, the first. 0 or -ENOENT. */
int bs_carriers_read(const struct bs_packet *packet, struct bs_shim *shim);

/* True if parse() has found a shim of any carrier. */
static inline bool
bs_carrier_any(const struct bs_packet *packet)
{
	return (packet->shim | packet->ether_shim | packet->geneve_shim) != 0;
}
