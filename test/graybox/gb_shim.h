/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of the shim share: packets with shims and announcements, and what becomes of them.
 */
#pragma once

#include "bs_shim.h"
#include "gb_frames.h"
#include "gb_records.h"

#define ALWAYS "\"tag\": \"always\""
#define NEGOTIATED "\"tag\": \"negotiated\""

static const uint8_t gb_mss_1460[4] = {2, 4, 1460 >> 8, 1460 & 0xff};
static const uint8_t gb_mss_announced[8] = {253, 4, 0xb5, 0xc1, 2, 4, 1460 >> 8, 1460 & 0xff};

/* A SYN of one end, or its answer by the other, as it enters by a port. */
static inline void
gb_syn(struct frame *frame, struct gb_flow *flow, unsigned from, bool answer, bool announced)
{
	gb_tcp(frame, flow,
		&(struct gb_tcp){
			.from = from,
			.flags = BS_TCP_SYN | (answer ? BS_TCP_ACK : 0),
			.options = announced ? gb_mss_announced : gb_mss_1460,
			.option_bytes = announced ? 8 : 4,
		});
}

/* In by a port, out by the other, now. */
static inline void
gb_through(const struct gb *gb, unsigned port, const struct frame *in, struct frame *out)
{
	gb_pass(gb, port, in);
	assert_true(gb_take(gb, !port, out));
	assert_false(gb_take(gb, !port, &(struct frame){0}));
}

/* `bytes` bytes less, from offset `at` of the TCP header on, with all lengths and checksums right.
 */
static inline void
gb_cut(struct frame *frame, unsigned at, unsigned bytes)
{
	const struct bs_packet packet = gb_parse(frame);
	uint8_t *from = frame->bytes + packet.l4 + at;

	memmove(from, from + bytes, frame->n - packet.l4 - at - bytes);
	frame->n -= bytes;
	frame->l3 = packet.l3;
	frame->l4 = packet.l4;
	frame->bytes[packet.l4 + 12] = (uint8_t)(frame->bytes[packet.l4 + 12] - (bytes / 4 << 4));
	frame_end_ip(frame);
	gb_checksums(frame);
}

/* The packet left with a shim, which is returned, and is otherwise as it came. */
static inline struct bs_shim
gb_assert_tagged(const struct frame *in, const struct frame *out)
{
	const struct bs_packet packet = gb_parse(out);
	struct frame bare = *out;
	struct bs_shim shim;

	assert_int_equal(out->n, in->n + BS_SHIM_OPTION_BYTES);
	assert_true(packet.tcp_options & BS_TCPOPT_SHIM);
	assert_int_equal(packet.shim, packet.l4 + 20);
	assert_int_equal(
		bs_shim_option_decode(out->bytes + packet.shim, BS_SHIM_OPTION_BYTES, &shim), 0);
	assert_true(gb_checksums_ok(out));
	gb_cut(&bare, 20, BS_SHIM_OPTION_BYTES);
	assert_int_equal(bare.n, in->n);
	assert_memory_equal(bare.bytes, in->bytes, in->n);
	return shim;
}

static inline void
gb_assert_same(const struct frame *in, const struct frame *out)
{
	assert_int_equal(out->n, in->n);
	assert_memory_equal(out->bytes, in->bytes, in->n);
}

/* All tag counters of all dataplanes of this program so far. */
static uint64_t gb_tags_seen[BS_TAG_COUNT];

/* The counters that move in the tests of the handshake; most others do in those of the shim. */
static inline bool
gb_tag_is_of_handshake(unsigned counter)
{
	return counter == BS_TAG_ANNOUNCED || counter == BS_TAG_RESENT ||
	       counter == BS_TAG_NOT_NEGOTIATED || counter == BS_TAG_PATH_REFUSES ||
	       counter == BS_TAG_MSS_CLAMPED || counter == BS_TAG_PTB_LOWERED;
}

/* Those that only move where there is another carrier than tcp-option. */
static inline bool
gb_tag_is_of_carriers(unsigned counter)
{
	return counter == BS_TAG_NO_TUNNEL;
}

static inline void
gb_close_tags(struct gb *gb)
{
	for (unsigned i = 0; i < BS_TAG_COUNT; i++)
		gb_tags_seen[i] += gb_tag(gb, i);
	gb_close(gb);
}
