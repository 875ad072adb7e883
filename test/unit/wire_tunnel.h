/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Geneve tunnels around the frames of wire_frames.h (RFC 8926 section 3.4), with
 * all lengths and the outer checksum right, parsed.
 */
#pragma once

#include "wire_frames.h"

struct tunnel_want {
	bool v6;
	bool checksum;	       /* else the outer UDP checksum is 0 */
	bool ip;	       /* the inner packet has no Ethernet header */
	unsigned option_bytes; /* multiple of 4, at most 252: foreign options without data */
	unsigned trailer;      /* behind the outer IP packet */
};

#define TUNNEL_VNI "\x12\x34\x56"

static inline struct tunnel_want
tunnel_random_want(uint64_t *random)
{
	uint32_t bits = frame_random(random);

	return (struct tunnel_want){
		.v6 = bits & 1,
		.checksum = bits & 2,
		.ip = bits & 4,
		.option_bytes = bits >> 3 & 1 ? 4 + 4 * (bits >> 8 & 15) : 0,
		.trailer = bits >> 4 & 1 ? bits >> 16 & 7 : 0,
	};
}

/* The outer checksum as it must be: 0xFFFF stands for 0 (RFC 768). */
static inline unsigned
tunnel_checksum(const struct bs_packet *packet)
{
	unsigned sum = frame_l4_checksum(packet->data, packet->outer_l3, packet->geneve - 8, 17);

	return sum == 0 ? 0xFFFF : sum;
}

/* Puts `inner` into a tunnel and frees it. */
static inline struct frame
tunnel_build(struct frame *inner, const struct tunnel_want *want, uint64_t *random)
{
	const unsigned skip = want->ip ? inner->packet.l3 : 0;
	const unsigned inner_bytes = inner->packet.len - skip;
	const struct frame_want outer_want = {
		.v6 = want->v6,
		.udp = true,
		.payload = 8 + want->option_bytes + inner_bytes,
		.trailer = want->trailer,
		.headroom = inner->headroom,
	};
	struct frame outer = frame_build(&outer_want, random);
	struct bs_packet *packet = &outer.packet;
	uint8_t *data = frame_data(&outer), *header = data + packet->payload;
	const bool v6 = inner->packet.data[inner->packet.l3] >> 4 == 6;

	frame_put16(data + packet->l4 + 2, 6081);
	memset(header, 0, 8 + want->option_bytes);
	header[0] = (uint8_t)(want->option_bytes / 4);
	frame_put16(header + 2, !want->ip ? 0x6558 : v6 ? 0x86dd : 0x0800);
	memcpy(header + 4, TUNNEL_VNI, 3);
	for (unsigned at = 8; at < 8 + want->option_bytes; at += 4)
		memcpy(header + at, "\x01\x03\x01\x00", 4);
	memcpy(header + 8 + want->option_bytes, inner->packet.data + skip, inner_bytes);
	frame_put16(data + packet->l4 + 6, 0);
	if (want->checksum) {
		unsigned sum = frame_l4_checksum(data, packet->l3, packet->l4, 17);

		frame_put16(data + packet->l4 + 6, sum == 0 ? 0xFFFF : sum);
	}
	frame_free(inner);
	bs_packet_parse_geneve(packet);
	/* looks like one by chance, 1 in 65536 */
	packet->l4_checksum_partial = packet->tunnel_checksum_partial = 0;
	return outer;
}
