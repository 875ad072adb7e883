/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames written byte by byte for tests. Lengths are filled in by finish
 * functions, so that a test states only what it is about. Checksums stay 0.
 */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bs_packet.h"

#define FRAME_BYTES 4096

struct frame {
	uint8_t bytes[FRAME_BYTES];
	uint32_t n;
	uint32_t l3, l4; /* where the last IP and transport header begin */
};

static inline void
frame_put(struct frame *f, const void *bytes, size_t n)
{
	if (n > 0) /* of nothing, bytes may be NULL */
		memcpy(f->bytes + f->n, bytes, n);
	f->n += (uint32_t)n;
}

static inline void
frame_u8(struct frame *f, unsigned value)
{
	f->bytes[f->n++] = (uint8_t)value;
}

static inline void
frame_u16(struct frame *f, unsigned value)
{
	frame_u8(f, value >> 8 & 0xff);
	frame_u8(f, value & 0xff);
}

static inline void
frame_u32(struct frame *f, uint32_t value)
{
	frame_u16(f, value >> 16);
	frame_u16(f, value & 0xffff);
}

static inline void
frame_set16(struct frame *f, uint32_t at, unsigned value)
{
	f->bytes[at] = (uint8_t)(value >> 8);
	f->bytes[at + 1] = (uint8_t)value;
}

static inline void
frame_fill(struct frame *f, unsigned value, size_t n)
{
	memset(f->bytes + f->n, (int)value, n);
	f->n += (uint32_t)n;
}

static inline void
frame_ether(struct frame *f, unsigned type)
{
	memset(f, 0, sizeof(*f));
	frame_put(f, "\x02\0\0\0\0\x01\x02\0\0\0\0\x02", 12);
	frame_u16(f, type);
}

/* Behind an Ethertype 0x8100 or 0x88a8. */
static inline void
frame_vlan(struct frame *f, unsigned tci, unsigned next_type)
{
	frame_u16(f, tci);
	frame_u16(f, next_type);
}

/* 20 bytes; total length set by frame_end_ip. ID 0x1234, TTL 64. */
static inline void
frame_ipv4(struct frame *f, unsigned protocol, uint32_t from, uint32_t to)
{
	f->l3 = f->n;
	frame_u16(f, 0x4500);
	frame_u16(f, 0);
	frame_u16(f, 0x1234);
	frame_u16(f, 0x4000);
	frame_u8(f, 64);
	frame_u8(f, protocol);
	frame_u16(f, 0);
	frame_u32(f, from);
	frame_u32(f, to);
}

/* From 2001:db8::from to 2001:db8::to; payload length set by frame_end_ip. Hop limit 63. */
static inline void
frame_ipv6(struct frame *f, unsigned next, unsigned from, unsigned to)
{
	f->l3 = f->n;
	frame_u32(f, 0x60000000);
	frame_u16(f, 0);
	frame_u8(f, next);
	frame_u8(f, 63);
	frame_u32(f, 0x20010db8);
	frame_fill(f, 0, 8);
	frame_u32(f, from);
	frame_u32(f, 0x20010db8);
	frame_fill(f, 0, 8);
	frame_u32(f, to);
}

/* Sequence 0x01020304, acknowledgement 0x05060708, window 0x7210. options: a multiple of 4. */
static inline void
frame_tcp(
	struct frame *f, unsigned from, unsigned to, unsigned flags, const void *options, size_t n)
{
	f->l4 = f->n;
	frame_u16(f, from);
	frame_u16(f, to);
	frame_u32(f, 0x01020304);
	frame_u32(f, 0x05060708);
	frame_u8(f, (unsigned)(5 + n / 4) << 4);
	frame_u8(f, flags);
	frame_u16(f, 0x7210);
	frame_u32(f, 0);
	if (n > 0)
		frame_put(f, options, n);
}

static inline void
frame_udp(struct frame *f, unsigned from, unsigned to, unsigned payload_bytes)
{
	f->l4 = f->n;
	frame_u16(f, from);
	frame_u16(f, to);
	frame_u16(f, 8 + payload_bytes);
	frame_u16(f, 0);
}

/* All from the IP header to here is the IP packet. */
static inline void
frame_end_ip(struct frame *f)
{
	if (f->bytes[f->l3] >> 4 == 4)
		frame_set16(f, f->l3 + 2, f->n - f->l3);
	else
		frame_set16(f, f->l3 + 4, f->n - f->l3 - 40);
}

/* 10.0.0.1:40000 to 10.0.0.2:80, PSH ACK, over Ethernet. */
static inline void
frame_tcp4(struct frame *f, const void *options, size_t option_bytes, size_t payload_bytes)
{
	frame_ether(f, 0x0800);
	frame_ipv4(f, 6, 0x0a000001, 0x0a000002);
	frame_tcp(f, 40000, 80, BS_TCP_PSH | BS_TCP_ACK, options, option_bytes);
	frame_fill(f, 'x', payload_bytes);
	frame_end_ip(f);
}

typedef enum bs_parse frame_parser(struct bs_packet *packet);

/*
 * Parses the first caplen bytes, in a buffer of just that size, so that the
 * sanitizer sees a read past it. Everything parse has to set holds rubbish
 * before. packet->data is not valid afterwards.
 */
static inline enum bs_parse
frame_parse_with(const uint8_t *bytes, uint32_t caplen, uint32_t len, struct bs_packet *packet,
	frame_parser *parse)
{
	uint8_t *copy = malloc(caplen > 0 ? caplen : 1);
	enum bs_parse result;

	if (copy == NULL)
		abort();
	memcpy(copy, bytes, caplen);
	memset(packet, 0xa5, sizeof(*packet));
	packet->data = caplen > 0 ? copy : copy + 1;
	packet->caplen = caplen;
	packet->len = len;
	result = parse(packet);
	free(copy);
	packet->data = NULL;
	return result;
}

static inline enum bs_parse
frame_parse_cut(const struct frame *f, uint32_t caplen, uint32_t len, struct bs_packet *packet)
{
	return frame_parse_with(f->bytes, caplen, len, packet, bs_packet_parse);
}

static inline enum bs_parse
frame_parse(const struct frame *f, struct bs_packet *packet)
{
	return frame_parse_cut(f, f->n, f->n, packet);
}
