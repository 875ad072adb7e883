/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes what was decided of an RPC's time with its service into its segments,
 * so that they, their sums and the verdict tell the same: design section 2.5.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bs_record.h"
#include "interval.h"

#define DECISIONS_MAX 2u

/* What the time in (service, compute) of a stretch was. */
struct decision {
	struct interval span; /* instants */
	uint64_t culprit_id;  /* of an RPC; 0 = none */
	uint16_t detail;
	struct bs_blame blame; /* cause: up to HANG */
};

/* A group of records. */
struct decided {
	uint64_t units[BS_RPC_GROUP_MAX_UNITS * BS_UNIT_BYTES / sizeof(uint64_t)];
};

/*
 * The group of *rpc with the decisions (at most DECISIONS_MAX, in order, apart)
 * written into it, cut at their bounds; an event for each cause, if it reaches
 * detect_ns and there is room. A tiling stays a tiling of the same extent. A
 * segment whose pieces find no room keeps its bounds and gets what most of it
 * was. Points *rpc to it; false, and *rpc as it was, where nothing was decided.
 */
bool decided_write(struct decided *decided, struct bs_rpc_view *rpc,
	const struct decision *decisions, unsigned count, const uint64_t detect_ns[6]);
