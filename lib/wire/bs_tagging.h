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

#define BS_TAGGING_ASKED 3u

struct bs_tagging {
	union {
		struct {				   /* TCP */
			uint32_t tagged_begin, tagged_end; /* tagged bytes not yet ACKed (out) */
			/* of those: around what was sent again, or is excused */
			uint32_t resent_begin, resent_end;
			uint32_t full_bytes; /* of the largest tagged packet so far */
			uint32_t small_end;  /* behind it only packets of that size are tagged */
			uint32_t passed_end; /* with `passed`: up to here such have arrived */
		};
		struct {				  /* UDP */
			uint32_t asked[BS_TAGGING_ASKED]; /* marks of the last requests */
			uint32_t again; /* the last RPC that was asked again: end of its ID */
		};
	};
	uint8_t peer_announced; /* a SYN or SYN-ACK from the wire carried the announcement */
	uint8_t we_announced;
	uint8_t syn_sent;      /* SYNs or SYN-ACKs let out to the wire so far */
	uint8_t answered;      /* the other end has answered ours */
	uint8_t refused;       /* given up */
	uint8_t resent_tagged; /* tagged ranges resent since bytes sent once, tagged, arrived */
	uint8_t has_tagged;    /* TCP: bytes not yet ACKed; UDP: ever */
	uint8_t passed;	       /* TCP: a path for full packets with tags is proven */
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
	return !tagging->refused &&
	       (!negotiated || (tagging->we_announced && tagging->peer_announced));
}

/* The range [begin, end) leaves with a shim. */
void bs_tagging_tagged(struct bs_tagging *tagging, uint32_t begin, uint32_t end);

/*
 * The sender resends [begin, end). True if with this the flow gives up tagging
 * (path refuses): the second tagged range resent with no tagged range ACKed
 * between. The same bytes sent a third time are not another range, and what is
 * resent below tagged packets of full size that are known to have arrived does
 * not count: that path loses at random. (Small ones say nothing: where the MTU is
 * less than it seems, they arrive.)
 */
bool bs_tagging_resent(struct bs_tagging *tagging, uint32_t begin, uint32_t end);

/* An ICMP too-big went to the sender: what it resends now is no sign of a path that refuses. */
void bs_tagging_too_big(struct bs_tagging *tagging);

/*
 * An ACK without SYN came from the wire. True if this makes the peer count as
 * path_refuses: it answers our SYN-ACK, which was resent without announcement
 * (which of the two it answers it does not say: the doubt goes against tagging).
 */
bool bs_tagging_acked(struct bs_tagging *tagging, uint32_t ack);

/*
 * It also reported [begin, end), above the ACK, as received (RFC 2018). Call for
 * each block of an ACK, before what is resent because of it comes: it tells
 * random loss within one window from a path that loses whatever is tagged.
 */
void bs_tagging_sacked(struct bs_tagging *tagging, uint32_t begin, uint32_t end);

/*
 * UDP has no handshake and no ACKs. A flow is agreed upon once a shim came in by
 * it, from a port that is trusted: its other end began, so it takes off what comes
 * back. What tells of a path that refuses is that the same request comes again.
 */

/* A shim of the other end came. */
void bs_tagging_peer_tags(struct bs_tagging *tagging);

/*
 * A request, in or out, with payload of this mark (bs_packet_mark), of this RPC
 * as far as known. `again`: the tracker knows that it was asked before. True if it
 * was, so or among the last BS_TAGGING_ASKED of the flow: neither it nor its
 * answer is to be tagged.
 */
bool bs_tagging_asked(struct bs_tagging *tagging, uint32_t mark, uint64_t rpc_id, bool again);

/* Is this the RPC that was last asked again? */
bool bs_tagging_is_again(const struct bs_tagging *tagging, uint64_t rpc_id);

/*
 * What became of the datagrams of one peer, whose flows are often of one request
 * each. Both counts are halved now and then.
 */
struct bs_tagging_peer {
	uint64_t key; /* of the peer; the owner's of the table */
	uint32_t tagged, again;
};

/* A datagram to the peer left with a shim. */
void bs_tagging_peer_tagged(struct bs_tagging_peer *peer);

/*
 * One was asked again in a flow that had tagged ones. True if the peer counts as
 * path_refuses now: the second one, and of four tagged one at least. A path that
 * loses this much at random loses its tags, not more.
 */
bool bs_tagging_peer_again(struct bs_tagging_peer *peer);
