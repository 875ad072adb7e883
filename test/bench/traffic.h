/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RPCs over TCP as packets, for benchmarks of the packet path: whole
 * connections from the handshake on, whose sequence numbers, ACKs, timestamps
 * and messages advance as real ones do. No packet is lost or late.
 *
 * Each message takes `packets` packets of `frame_bytes`. The flows go in groups:
 * one sends requests while the one before gets its responses, the packets of the
 * flows of a group in turn; a single flow has requests under way while responses
 * come back. With two groups a response is ACKed by the next request; flows of
 * more groups wait longer for that, so each message is followed by an ACK of its own.
 */
#pragma once

#include <stdint.h>

#include <rte_mbuf.h>

#define TRAFFIC_ROW_PORT 7000u
#define TRAFFIC_RESP_PORT 6379u
#define TRAFFIC_ADDRESS "10.2.0.1" /* of the service */

struct traffic_shape {
	uint16_t port; /* TRAFFIC_*_PORT: says which protocol */
	unsigned flows;
	unsigned packets; /* a message */
	unsigned frame_bytes;
};

struct traffic;

/* NULL when memory is short. The message has to fit its packets: 64 bytes are enough for one. */
struct traffic *traffic_create(const struct traffic_shape *shape);
void traffic_destroy(struct traffic *traffic);

/*
 * The next packets: each of the `count` mbufs of both sides is written whole.
 * to_service come from the wire, from_service from the service. Returns how many of
 * from_service were written: none until the first responses are due.
 * A dataplane that gets these in one turn sees every ACK behind the bytes it ACKs.
 */
unsigned traffic_next(struct traffic *traffic, struct rte_mbuf **to_service,
	struct rte_mbuf **from_service, unsigned count);

/*
 * The handshakes of the next `count` flows, SYN and SYN-ACK; returns of how many,
 * 0 once all flows have had theirs. Before the first traffic_next().
 */
unsigned traffic_handshake(struct traffic *traffic, struct rte_mbuf **to_service,
	struct rte_mbuf **from_service, unsigned count);
