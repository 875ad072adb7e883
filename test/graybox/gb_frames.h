/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP connections between a client on the wire and a service: frames with
 * right lengths and checksums, each end's sequence numbers kept. Messages are
 * of the protocol "unit" of the harness's configuration: 4 bytes length of the
 * whole message, 4 bytes ID, any body.
 */
#pragma once

#include "graybox.h"

#define GB_CLIENT 0u /* ends; also the port that their packets come in by */
#define GB_SERVER 1u
#define GB_MESSAGE_HEADER 8u

struct gb_flow {
	unsigned ip_version; /* 4 or 6 */
	uint32_t address[2]; /* IPv6: the last 32 bits, behind 2001:db8:: */
	uint16_t port[2];
	uint32_t next[2]; /* sequence number of each end's next byte */
	uint16_t window[2];
	uint16_t ip_id; /* of the next packet, either end */
	unsigned vlan;	/* 0: none */
};

/* A connection of 10.0.0.1:client_port with 10.0.0.2:service_port. */
struct gb_flow gb_flow(uint16_t client_port, uint16_t service_port);

/* One segment of a flow, apart from what the flow knows. */
struct gb_tcp {
	unsigned from;
	unsigned flags;
	uint32_t seq; /* counted from the flow's next */
	const void *options;
	size_t option_bytes; /* a multiple of 4 */
	const void *payload;
	size_t payload_bytes;
};

/* Builds it; the flow's sequence numbers stay as they are. */
void gb_tcp(struct frame *frame, struct gb_flow *flow, const struct gb_tcp *tcp);

/* The next payload of one end, as one segment; the flow goes on behind it. */
void gb_data(
	struct frame *frame, struct gb_flow *flow, unsigned from, const void *payload, size_t n);
void gb_ack(struct frame *frame, struct gb_flow *flow, unsigned from);

/* A whole message, body and all, as the next payload of one end. */
void gb_message(
	struct frame *frame, struct gb_flow *flow, unsigned from, uint32_t id, size_t bytes);

/* SYN, SYN-ACK and ACK pass, now; what comes out is freed. */
void gb_handshake(const struct gb *gb, struct gb_flow *flow);

/* An ARP request, 42 bytes. */
void gb_arp(struct frame *frame);

/* Writes IPv4 and TCP or UDP checksums into a frame by RFC 1071, independently of lib/wire. */
void gb_checksums(struct frame *frame);

/* Are all checksums of the frame right, by bs_checksum_ok()? */
bool gb_checksums_ok(const struct frame *frame);

/* Parses a frame that was taken. */
struct bs_packet gb_parse(const struct frame *frame);
