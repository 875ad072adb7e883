/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The analyzer's loop: batches of records in from bufscoped, through the
 * diagnosis, batches of thresholds, verdicts and incidents out. It never waits
 * for bufscoped to read: what does not fit into the bounded queue of batches to
 * send is counted and left out. With a journal, verdicts are told when they are
 * written down there: what was told once is found again.
 *
 * One thread. Time is bs_clock_now_ns, of which only differences count: what
 * time it is say the records, of which the first is believed, later ones only
 * within seconds of what our clock makes of those before.
 */
#pragma once

#include <stdint.h>

#include "bs_diag.h"
#include "journal.h"

struct bs_analyzer;

/* One datagram is one batch, in both directions. */
struct bs_analyzer_counters {
	uint64_t batches;     /* taken */
	uint64_t records;     /* of them, given to the diagnosis; an RPC with its group is one */
	uint64_t malformed;   /* batches of which a part was skipped */
	uint64_t ahead;	      /* records left out: dated seconds ahead of all others */
	uint64_t slo_refused; /* SLOs for which the diagnosis had no room */
	uint64_t batches_sent;
	uint64_t records_sent;	 /* an RPC's group behind its verdict not counted */
	uint64_t records_unsent; /* did not fit into the queue */
};

/*
 * fd: a connected SOCK_SEQPACKET socket; stop_fd: readable when the loop is to
 * end, or -1. Both stay the caller's, and must outlive the analyzer. The config
 * is copied, its output replaced by ours. journal: where all that is taken and
 * decided is written down, or NULL; the caller's, too. Malformed batches are reported on
 * stderr, one line a second at most. NULL with errno ENOMEM.
 */
struct bs_analyzer *bs_analyzer_create(
	int fd, int stop_fd, const struct bs_diag_config *config, struct bs_journal *journal);
void bs_analyzer_destroy(struct bs_analyzer *analyzer); /* NULL is fine */

/*
 * Waits up to timeout_ms for something to do, does it, and lets the diagnosis
 * know what time it is. 1: call again. 0: the other end has closed, or stop_fd
 * is readable. Else what poll, recv or send said, as -errno.
 */
int bs_analyzer_step(struct bs_analyzer *analyzer, int timeout_ms);

/* Counters since create. The pointer lives as long as the analyzer. */
const struct bs_analyzer_counters *bs_analyzer_counters(const struct bs_analyzer *analyzer);
