/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The segments of an RPC summed by (buffer, cause): what is compared with the
 * normal values, and blamed.
 */
#pragma once

#include <stdint.h>

#include "bs_record.h"
#include "interval.h"
#include "normal.h"
#include "service.h"

struct term {
	struct bs_blame blame;
	uint16_t key_buffer; /* under which its normal value is kept */
	uint64_t ns;
	struct interval span; /* instants: from its first begin to its last end */
	const struct bs_rec_segment *longest;
	struct normal_value normal;
	uint64_t excess_ns;
};

struct terms {
	struct term term[BS_RPC_MAX_SEGMENTS];
	unsigned count;
	uint64_t extent_ns; /* latency or age */
};

/* Out-of-range segments are clipped to the extent, so that no term exceeds it. */
void terms_make(struct terms *terms, const struct bs_rpc_view *rpc);

/* The stretches of one (buffer, cause), instants. Returns how many, at most `max`. */
unsigned terms_spans(
	const struct bs_rpc_view *rpc, struct bs_blame blame, struct interval *spans, unsigned max);

/* The terms as samples for the normal values: at most BS_RPC_MAX_SEGMENTS. */
unsigned terms_parts(const struct terms *terms, struct normal_part *parts);

/* The same for an RPC that is told in brief: at most 3. */
unsigned terms_brief_parts(const struct bs_rec_brief *brief, struct normal_part *parts);

/* False for a message that no service was asked to answer, or that may wait for long by design. */
bool terms_waiting(const struct bs_rec_rpc *rpc, struct waiting *waiting);
