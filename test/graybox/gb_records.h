/* SPDX-License-Identifier: BSD-3-Clause */
/* What the collector sends to the analyzer, validated as the analyzer would. */
#pragma once

#include "graybox.h"

/* Connects the collector to us; what was read before stays. */
void gb_connect(struct gb *gb);

/* Turns the collector so often and reads all it sends. Fails the test on a record that is none. */
void gb_collect(struct gb *gb, unsigned turns);

/* Forgets what was read. */
void gb_forget(struct gb *gb);

/* Reads one batch into gb->records. NULL, or what is wrong with it. */
const char *gb_read_batch(struct gb *gb, const void *batch, size_t bytes);

/* The n-th record of that type (from 0); events and segments of RPCs do not count. NULL: no more.
 */
const void *gb_record(const struct gb *gb, unsigned type, unsigned n);
unsigned gb_record_count(const struct gb *gb, unsigned type);

/* The n-th RPC with its segments and events. Fails the test if there is none. */
struct bs_rpc_view gb_rpc(const struct gb *gb, unsigned n);

/* The n-th event of that type that is no RPC's: an episode of a buffer. NULL: no more. */
const struct bs_rec_event *gb_episode(
	const struct gb *gb, unsigned type, uint16_t buffer, unsigned n);

/* A segment that is expected: how long, where, why. */
struct gb_part {
	uint64_t ns;
	uint16_t buffer;
	uint8_t cause;
	uint8_t detail;
};

/* NULL, or how the segments of an RPC differ from these, in order; and that they tile. */
const char *gb_check_parts(
	const struct bs_rpc_view *rpc, const struct gb_part *parts, unsigned count);
#define gb_assert_parts(rpc, ...)                                                                  \
	do {                                                                                       \
		const struct gb_part gb_parts[] = {__VA_ARGS__};                                   \
		const char *gb_differ =                                                            \
			gb_check_parts((rpc), gb_parts, sizeof(gb_parts) / sizeof(gb_parts[0]));   \
                                                                                                   \
		if (gb_differ != NULL)                                                             \
			fail_msg("%s", gb_differ);                                                 \
	} while (0)

/* The event of that type and buffer of an RPC; NULL if it has none. */
const struct bs_rec_event *gb_event(const struct bs_rpc_view *rpc, unsigned type, uint16_t buffer);
