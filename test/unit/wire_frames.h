/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ethernet frames for the tests of lib/wire, made from a seed: VLANs, both IP
 * versions, options, payload of any length, good and bad checksums. A frame lies
 * at the very end of a heap block that holds its headroom and no byte more, so
 * that a sanitizer sees a read or write past either end. Checksums here are
 * computed byte by byte over the whole, apart from the code under test.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bs_packet.h"

#define FRAME_BYTES_MAX 2048u

struct frame {
	uint8_t *block; /* headroom, frame */
	unsigned headroom;
	struct bs_packet packet;
};

/* What to build; zero is IPv4 TCP without options and payload, checksum right. */
struct frame_want {
	unsigned vlans;
	bool v6;
	unsigned ip_extra; /* bytes of IPv4 options or IPv6 destination options: multiple of 4, 8 */
	bool udp;
	uint8_t tcp_flags;
	uint8_t options[40];
	unsigned option_bytes; /* multiple of 4 */
	unsigned payload;
	unsigned trailer; /* bytes behind the IP packet */
	unsigned headroom;
};

static inline uint32_t
frame_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull; /* Knuth's MMIX */
	return (uint32_t)(*state >> 32);
}

static inline void
frame_put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static inline unsigned
frame_get16(const uint8_t *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

/* Sum of 16-bit words one by one, end-around carry at each step. */
static inline unsigned
frame_sum(unsigned sum, const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		sum += i & 1 ? bytes[i] : (unsigned)bytes[i] << 8;
		if (sum > 0xFFFF)
			sum -= 0xFFFF;
	}
	return sum;
}

/* The transport checksum that a frame should have, from its bytes and the IP length alone. */
static inline unsigned
frame_l4_checksum(const uint8_t *data, unsigned l3, unsigned l4, unsigned protocol)
{
	bool v6 = data[l3] >> 4 == 6;
	unsigned ip_end = l3 + (v6 ? 40 + frame_get16(data + l3 + 4) : frame_get16(data + l3 + 2));
	unsigned len = ip_end - l4;
	unsigned field = l4 + (protocol == 17 ? 6 : 16);
	uint8_t pseudo[40] = {0};
	uint8_t zero[2] = {0, 0};
	unsigned sum;

	if (v6) { /* RFC 8200 section 8.1 */
		memcpy(pseudo, data + l3 + 8, 32);
		frame_put16(pseudo + 32, len >> 16);
		frame_put16(pseudo + 34, len & 0xffff);
		pseudo[39] = (uint8_t)protocol;
	} else { /* RFC 9293 section 3.1 */
		memcpy(pseudo, data + l3 + 12, 8);
		pseudo[9] = (uint8_t)protocol;
		frame_put16(pseudo + 10, len);
	}
	sum = frame_sum(0, pseudo, sizeof(pseudo));
	sum = frame_sum(sum, data + l4, field - l4);
	sum = frame_sum(sum, zero, sizeof(zero));
	sum = frame_sum(sum, data + field + 2, ip_end - field - 2);
	return 0xFFFF - sum;
}

static inline unsigned
frame_ip_checksum(const uint8_t *data, unsigned l3)
{
	unsigned len = (data[l3] & 15u) * 4;
	unsigned sum = frame_sum(0, data + l3, 10);

	return 0xFFFF - frame_sum(sum, data + l3 + 12, len - 12);
}

static inline unsigned
frame_field(const struct frame *frame)
{
	return frame->packet.l4 + (frame->packet.l4_protocol == 17 ? 6u : 16u);
}

/* Link and IP headers; returns the offset behind them. */
static inline unsigned
frame_lower(uint8_t *data, const struct frame_want *want, struct bs_packet *packet, unsigned l4_len)
{
	unsigned at = 12, protocol = want->udp ? 17 : 6;

	for (unsigned i = 0; i < want->vlans; i++) {
		frame_put16(data + at, i + 1 < want->vlans ? 0x88a8 : 0x8100);
		at += 4;
	}
	frame_put16(data + at, want->v6 ? 0x86dd : 0x0800);
	at += 2;
	packet->l3 = (uint16_t)at;
	if (want->v6) {
		data[at] = 0x60;
		frame_put16(data + at + 4, want->ip_extra + l4_len);
		data[at + 6] = (uint8_t)(want->ip_extra > 0 ? 60 : protocol);
		at += 40;
		if (want->ip_extra > 0) {
			memset(data + at, 0, want->ip_extra); /* Pad1 */
			data[at] = (uint8_t)protocol;
			data[at + 1] = (uint8_t)(want->ip_extra / 8 - 1);
			at += want->ip_extra;
		}
	} else {
		data[at] = (uint8_t)(0x45 + want->ip_extra / 4);
		frame_put16(data + at + 2, 20 + want->ip_extra + l4_len);
		frame_put16(data + at + 6, 0x4000);
		data[at + 9] = (uint8_t)protocol;
		memset(data + at + 20, 1, want->ip_extra); /* no-operation */
		frame_put16(data + at + 10, frame_ip_checksum(data, at));
		at += 20 + want->ip_extra;
	}
	return at;
}

static inline struct frame
frame_build(const struct frame_want *want, uint64_t *random)
{
	struct frame frame = {.headroom = want->headroom};
	struct bs_packet *packet = &frame.packet;
	uint8_t data[FRAME_BYTES_MAX];
	unsigned l4_header = want->udp ? 8 : 20 + want->option_bytes;
	unsigned l4_len = l4_header + want->payload;
	unsigned at;

	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)frame_random(random);
	packet->l4 = (uint16_t)frame_lower(data, want, packet, l4_len);
	at = packet->l4;
	if (want->udp) {
		frame_put16(data + at + 4, l4_len);
	} else {
		data[at + 12] = (uint8_t)(l4_header / 4 << 4);
		data[at + 13] = want->tcp_flags;
		memcpy(data + at + 20, want->options, want->option_bytes);
	}
	packet->parse = BS_PARSE_OK;
	packet->l4_protocol = want->udp ? 17 : 6;
	packet->tuple.transport = (uint8_t)packet->l4_protocol;
	packet->tuple.ip_version = want->v6 ? 6 : 4;
	packet->vlan_count = (uint8_t)want->vlans;
	packet->tcp_flags = want->tcp_flags;
	packet->payload = (uint16_t)(at + l4_header);
	packet->payload_len = packet->payload_cap = want->payload;
	packet->caplen = packet->len = packet->payload + want->payload + want->trailer;
	frame_put16(data + frame_field(&frame),
		frame_l4_checksum(data, packet->l3, packet->l4, packet->l4_protocol));

	frame.block = malloc(want->headroom + packet->caplen);
	memset(frame.block, 0xEE, want->headroom);
	memcpy(frame.block + want->headroom, data, packet->caplen);
	packet->data = frame.block + want->headroom;
	return frame;
}

static inline uint8_t *
frame_data(const struct frame *frame)
{
	return frame->block + (frame->packet.data - frame->block);
}

static inline void
frame_free(struct frame *frame)
{
	free(frame->block);
	frame->block = NULL;
}

/*
 * Appends options to want->options until `limit` bytes at most: the common ones
 * with NOPs between them, so that they begin at odd offsets too; padded to 4.
 */
static inline void
frame_random_options(struct frame_want *want, unsigned limit, uint64_t *random)
{
	static const uint8_t known[][10] = {
		{1},
		{3, 3, 7},
		{4, 2},
		{8, 10, 1, 2, 3, 4, 5, 6, 7, 8},
		{5, 10, 9, 8, 7, 6, 5, 4, 3, 2},
		{1},
	};

	while (frame_random(random) % 5 != 0) {
		const uint8_t *option = known[frame_random(random) % 6];
		unsigned len = option[0] == 1 ? 1 : option[1];

		if (want->option_bytes + len > limit)
			break;
		memcpy(want->options + want->option_bytes, option, len);
		want->option_bytes += len;
	}
	while (want->option_bytes % 4 != 0 && want->option_bytes < 40)
		want->options[want->option_bytes++] = 1;
}

static inline struct frame_want
frame_random_want(unsigned headroom, uint64_t *random)
{
	struct frame_want want = {
		.vlans = frame_random(random) % 3,
		.v6 = frame_random(random) & 1,
		.payload = frame_random(random) % 1400,
		.headroom = headroom,
	};

	want.ip_extra = frame_random(random) % 3 * (want.v6 ? 8 : 4);
	if (frame_random(random) % 4 == 0)
		want.payload %= 20;
	if (frame_random(random) % 4 == 0)
		want.trailer = frame_random(random) % 8;
	return want;
}
