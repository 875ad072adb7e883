/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * May this packet be tagged? The state per flow that keeps the shim from ever
 * making a black hole (design section 4): negotiation in the handshake, and
 * giving up on a path that loses tagged bytes. Directions: `out` is toward the
 * wire (we tag), `in` is from it. Pure state; the dataplane does the edits.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct bs_tagging {
	uint32_t tagged_begin, tagged_end; /* tagged bytes not yet ACKed (out) */
	uint32_t resent_end;     /* of those, the ones before this were sent again, or are excused */
	uint8_t peer_announced;  /* a SYN or SYN-ACK from the wire carried the announcement */
	uint8_t we_announced;
	uint8_t syn_sent;        /* SYNs or SYN-ACKs let out to the wire so far */
	uint8_t resent_syn_answered; /* only the SYN without announcement was answered */
	uint8_t refused;         /* given up */
	uint8_t resent_tagged;   /* tagged ranges resent since the last tagged range was ACKed */
	uint8_t has_tagged;
	uint8_t pad;
};

/* A SYN or SYN-ACK is about to leave to the wire. True: announce in it. */
bool bs_tagging_syn_out(struct bs_tagging *tagging, bool negotiated);

/*
 * A SYN or SYN-ACK came from the wire. `answer`: it is a SYN-ACK. True if this
 * makes the peer count as path_refuses: our announcement was resent without,
 * and only that was answered.
 */
bool bs_tagging_syn_in(struct bs_tagging *tagging, bool announced, bool answer);

/* May data out be tagged as far as the flow is concerned? */
static inline bool
bs_tagging_allowed(const struct bs_tagging *tagging, bool negotiated)
{
	return !tagging->refused
		&& (!negotiated || (tagging->we_announced && tagging->peer_announced));
}

/* The range [begin, end) leaves with a shim. */
void bs_tagging_tagged(struct bs_tagging *tagging, uint32_t begin, uint32_t end);

/* The sender resends [begin, end). True if with this the flow gives up tagging (path refuses). */
bool bs_tagging_resent(struct bs_tagging *tagging, uint32_t begin, uint32_t end);

/* An ICMP too-big went to the sender: what it resends now is no sign of a path that refuses. */
void bs_tagging_too_big(struct bs_tagging *tagging);

/* An ACK came from the wire. */
void bs_tagging_acked(struct bs_tagging *tagging, uint32_t ack);
