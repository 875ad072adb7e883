/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which flow does an IP fragment belong to? Only the first one of a datagram has
 * ports; the others are tied to it by source, destination, identification and
 * protocol (RFC 791 section 3.2, RFC 8200 section 4.5), and by VLAN. Nothing is
 * held or put together: a fragment that comes before its first one stays nobody's.
 */
#pragma once

#include "bs_packet.h"

struct bs_fragments;

/*
 * A table that remembers up to `max` datagrams (rounded up to a power of two, at
 * least 4) for BS_FRAGMENTS_NS each; when it is full the oldest go. NULL with
 * errno ENOMEM.
 */
struct bs_fragments *bs_fragments_create(unsigned max);
void bs_fragments_destroy(struct bs_fragments *table); /* NULL is fine */

/* How long fragments of one datagram may be apart: what Linux waits (ipfrag_time). */
#define BS_FRAGMENTS_NS 30000000000ull

/*
 * Takes a packet of which parse() returned BS_PARSE_FRAGMENT, at packet->t_ns.
 * True: it has the tuple, hash and direction of its flow now, and is described as
 * the piece of its flow that it is:
 *   TCP    payload is what of the segment's payload lies in it, seq of its first
 *          byte; flags, ACK and window are the segment's (SYN and RST with the
 *          first, FIN with the last fragment).
 *   UDP    the first one: payload_len is that of the whole datagram, payload_cap
 *          what there is in it. Later ones: no payload.
 * False: it is not known, and unchanged: the first one was not seen, does not hold
 * the whole transport header, or carries another protocol. One thread per table.
 */
bool bs_fragments_resolve(struct bs_fragments *table, struct bs_packet *packet);
