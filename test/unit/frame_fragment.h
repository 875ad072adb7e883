/* SPDX-License-Identifier: BSD-3-Clause */
/* Cuts fragments out of whole frames; see frame.h. */
#pragma once

#include "frame.h"

/*
 * `bytes` of what follows the IP header of `whole`, from `offset` (a multiple of 8)
 * on, as a fragment (RFC 791 section 3.2, RFC 8200 section 4.5).
 */
static inline void
frame_fragment(struct frame *out, const struct frame *whole, uint32_t id, uint32_t offset,
	uint32_t bytes, bool more)
{
	const bool v4 = whole->bytes[whole->l3] >> 4 == 4;
	const uint32_t header = v4 ? 20 : 40;

	memset(out, 0, sizeof(*out));
	frame_put(out, whole->bytes, whole->l3 + header);
	out->l3 = whole->l3;
	if (v4) {
		frame_set16(out, out->l3 + 4, id & 0xffff);
		frame_set16(out, out->l3 + 6, offset / 8 | (more ? 0x2000 : 0));
	} else {
		frame_u8(out, out->bytes[out->l3 + 6]);
		frame_u8(out, 0);
		frame_u16(out, offset | more);
		frame_u32(out, id);
		out->bytes[out->l3 + 6] = 44;
	}
	out->l4 = out->n;
	frame_put(out, whole->bytes + whole->l3 + header + offset, bytes);
	frame_end_ip(out);
}
