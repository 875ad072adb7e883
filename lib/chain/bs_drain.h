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
#define BS_DRAIN_SERVED_MAX 512u
#define BS_DRAIN_OTHER 0u

/* The service of a slice for which no packet was accounted. */
#define BS_DRAIN_NO_SERVICE 0xFFFFu

enum bs_drain_state {
	BS_DRAIN_SERVE,
	BS_DRAIN_PAUSE,	    /* the next buffer takes nothing */
	BS_DRAIN_STALLED,   /* the thread was held */
	BS_DRAIN_PREEMPTED, /* the scheduler took its CPU */
	BS_DRAIN_SLEEP,	    /* it slept because all was idle */
	BS_DRAIN_STATE_COUNT
};

struct bs_drain_log;

/*
 * A log of `entries` state changes (2 to 2^24, rounded up to a power of two)
 * that starts at t_ns in SERVE(OTHER), for `served` pairs numbered 1..served (at
 * most BS_DRAIN_SERVED_MAX). Takes 64 + 16 * served bytes an entry. NULL with errno ENOMEM or
 * EINVAL. Control thread.
 */
struct bs_drain_log *bs_drain_create(unsigned entries, unsigned served, uint64_t t_ns);
void bs_drain_destroy(struct bs_drain_log *log); /* NULL is fine */

/*
 * From t_ns on the drainer is in `state`; `served` counts with SERVE only, and a
 * number that is no pair's is OTHER. A t_ns before the last call's counts as the
 * last call's. Setting the state it is in already adds nothing to the log, but
 * t_ns is the last call's time. A state that lasts 0 ns leaves no trace, nor does
 * what was accounted in it. Drainer only.
 */
void bs_drain_set(
	struct bs_drain_log *log, uint64_t t_ns, enum bs_drain_state state, unsigned served);

/*
 * Until t_ns it was in the state it is in: what is inserted next begins then, not
 * when the state was last set. A t_ns before the last call's does nothing. Drainer
 * only.
 */
void bs_drain_advance(struct bs_drain_log *log, uint64_t t_ns);

/*
 * After the fact: from t_begin (the time of the last call) to t_end it
 * was in `state` (a hang shows only when it is over), and from t_end on again in
 * what it was in before. Nothing happens unless t_end is later. Drainer only.
 */
void bs_drain_insert(struct bs_drain_log *log, uint64_t t_end, enum bs_drain_state state);

/*
 * What a slice of service carried, for the culprits: added to the current slice
 * of SERVE(served). Four (service, flow) keys a slice are kept exactly; of more,
 * one that carried over half of the bytes is still named. Drainer only.
 */
void bs_drain_account(
	struct bs_drain_log *log, uint16_t service, uint32_t flow_hash, uint64_t bytes);

/* The parts of one wait, in ns. They sum to t_out - t_in exactly. */
struct bs_wait {
	uint64_t congestion, contention, pause;
	uint64_t stalled, preempted, sleep;
	uint64_t unobserved;
};

/*
 * Splits the wait of a packet of pair `served` that entered at t_in and leaves
 * at t_out (t_in <= t_out). Of OTHER, all service is contention. Time before the
 * oldest entry held is unobserved. Drainer only. O(log entries).
 */
void bs_drain_wait(const struct bs_drain_log *log, unsigned served, uint64_t t_in, uint64_t t_out,
	struct bs_wait *wait);

/* One who took time in an interval. */
struct bs_drain_culprit {
	uint16_t served;    /* whom the drainer served instead, or the own pair for congestion */
	uint16_t service;   /* heaviest of the slices, by bytes; or BS_DRAIN_NO_SERVICE */
	uint32_t flow_hash; /* heaviest of the service's */
	uint64_t bytes;
	uint64_t ns;
};

/*
 * Who had the drainer between t_in and t_out, by time, largest first: for
 * CONTENTION all pairs but `served`, OTHER among them (their ns sum to the
 * wait's contention); for CONGESTION only `served`, one entry per heaviest
 * service of a slice; of either, past 65 the least takes in the others. A slice
 * that the interval cuts gives bytes in proportion. 0 for other causes. Returns
 * how many of max were filled. Reads the log entries of the interval: call it
 * only for a wait that passed its threshold. Drainer only.
 */
unsigned bs_drain_culprits(const struct bs_drain_log *log, enum bs_cause cause, unsigned served,
	uint64_t t_in, uint64_t t_out, struct bs_drain_culprit *out, unsigned max);
