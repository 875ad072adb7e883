/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The collector lcore: drains the pipeline's record rings, keeps within the
 * budget, streams batches to the analyzer and takes its verdicts; watches the
 * pipeline's heartbeats and the services' silences. It never waits for anybody.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bs_record.h"

struct bs_collector;
struct bs_dataplane;

/* NULL with errno. Control thread. */
struct bs_collector *bs_collector_create(struct bs_dataplane *dataplane);
void bs_collector_destroy(struct bs_collector *collector); /* NULL is fine */

/* One turn: returns the records moved. The collector lcore, or a test. */
unsigned bs_collector_turn(struct bs_collector *collector);

/* Turns until stopped. For rte_eal_remote_launch. Returns 0. */
int bs_collector_run(void *collector);
void bs_collector_stop(struct bs_collector *collector); /* any thread */

/* From now on talk to the analyzer at fd, which becomes the collector's. Any thread. */
void bs_collector_connect(struct bs_collector *collector, int fd);

/* Names, SLOs and rates are to be told anew. Any thread. */
void bs_collector_reload(struct bs_collector *collector);

/* Adds a record from a control thread (the probe's). 0, or -ENOBUFS. One such thread. */
int bs_collector_put(struct bs_collector *collector, const void *units, unsigned count);

struct bs_collector_status {
	bool connected;
	uint64_t heartbeat_ns; /* when its last turn began */
	uint64_t t_refused;    /* since when the analyzer takes no batch; 0: it does */
	uint64_t records_sent, record_bytes;
	uint64_t bad_records;	 /* from the analyzer, that did not validate */
	uint64_t rejected;	 /* from the analyzer, about what cannot be: see plausible.h */
	struct bs_rec_loss loss; /* since start */
	struct bs_rec_journal journal; /* what the analyzer said last; t 0: nothing */
};
void bs_collector_status(const struct bs_collector *collector, struct bs_collector_status *status);
