/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A wait explains itself. The drainer of buffers (one thread, the only writer
 * and reader of its log) notes what it does when that changes. A packet brings
 * only the time it entered; on leaving, the log says what the drainer did
 * meanwhile, and the wait splits into parts that add up to the nanosecond:
 *
 *   serving the packet's own (buffer, class)       congestion
 *   serving anything else, or nothing in particular  contention
 *   blocked by the next buffer                      pause
 *   not there: stalled, preempted, asleep           hang
 *   the log has wrapped                             unobserved
 *
 * Precedence: hang over pause over serve. All instants are ns of bs_clock and
 * never decrease from call to call. Nothing here allocates after create.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "bs_vocab.h"

/* (buffer, class) pairs that one drainer serves; 0 is "nothing of these" (polling, other work). */
#define BS_DRAIN_SERVED_MAX 64u
#define BS_DRAIN_OTHER 0u

enum bs_drain_state {
	BS_DRAIN_SERVE,
	BS_DRAIN_PAUSE,     /* the next buffer takes nothing */
	BS_DRAIN_STALLED,   /* the thread was held */
	BS_DRAIN_PREEMPTED, /* the scheduler took its CPU */
	BS_DRAIN_SLEEP,     /* it slept because all was idle */
	BS_DRAIN_STATE_COUNT
};

struct bs_drain_log;

/*
 * A log of `entries` state changes (rounded up to a power of two, >= 2) that
 * starts at t_ns in SERVE(OTHER), for `served` pairs numbered 1..served.
 * NULL with errno ENOMEM or EINVAL. Control thread.
 */
struct bs_drain_log *bs_drain_create(unsigned entries, unsigned served, uint64_t t_ns);
void bs_drain_destroy(struct bs_drain_log *log); /* NULL is fine */

/*
 * From t_ns on the drainer is in `state`; `served` counts with SERVE only.
 * Setting the state it is in already writes nothing. Drainer only.
 */
void bs_drain_set(struct bs_drain_log *log, uint64_t t_ns, enum bs_drain_state state, unsigned served);

/*
 * After the fact: from t_begin (the last call's time) to t_end it was in
 * `state` (a hang shows only when it is over), and from t_end on again in what
 * it was in before. Drainer only.
 */
void bs_drain_insert(struct bs_drain_log *log, uint64_t t_end, enum bs_drain_state state);

/* What a slice of service carried, for the culprits: added to the current slice of SERVE(served). */
void bs_drain_account(struct bs_drain_log *log, uint16_t service, uint32_t flow_hash, uint64_t bytes);

/* The parts of one wait, in ns. They sum to t_out - t_in exactly. */
struct bs_wait {
	uint64_t congestion, contention, pause;
	uint64_t stalled, preempted, sleep;
	uint64_t unobserved;
};

/*
 * Splits the wait of a packet of pair `served` that entered at t_in and leaves
 * at t_out (t_in <= t_out; t_out not before the last call's time). Drainer only.
 * O(log entries).
 */
void bs_drain_wait(const struct bs_drain_log *log, unsigned served, uint64_t t_in, uint64_t t_out,
	struct bs_wait *wait);

/* One who took time in an interval. */
struct bs_drain_culprit {
	uint16_t served;    /* whom the drainer served instead, or the own pair for congestion */
	uint16_t service;   /* heaviest of the slices, by bytes */
	uint32_t flow_hash; /* likewise */
	uint64_t bytes;
	uint64_t ns;
};

/*
 * Who had the drainer between t_in and t_out, by time, largest first: for
 * `contention` all pairs but `served`, for `congestion` only `served` (one
 * entry per service). Returns how many of max were filled. Reads the log
 * entries of the interval: call it only for a wait that passed its threshold.
 */
unsigned bs_drain_culprits(const struct bs_drain_log *log, enum bs_cause cause, unsigned served,
	uint64_t t_in, uint64_t t_out, struct bs_drain_culprit *out, unsigned max);

/* Time in each state since create, up to t_ns; sums to t_ns - start. Drainer only. */
void bs_drain_totals(
	const struct bs_drain_log *log, uint64_t t_ns, uint64_t ns[BS_DRAIN_STATE_COUNT]);

static inline uint64_t
bs_wait_sum(const struct bs_wait *wait)
{
	return wait->congestion + wait->contention + wait->pause + wait->stalled + wait->preempted
		+ wait->sleep + wait->unobserved;
}
