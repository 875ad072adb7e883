/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The whole dataplane: ports, pipeline lcores, their queues, the collector.
 * Built from a config on an initialised EAL, run by remote launch, or turn by
 * turn by a test. Control thread, unless a function says otherwise.
 */
#pragma once

#include "bs_framer.h"
#include "config.h"
#include "lcore.h"
#include "port.h"
#include "snapshot.h"
#include "store.h"

#define BS_REFUSING_PEERS 256u
#define BS_DATAPLANE_ERROR_BYTES 512u

/* A peer whose path does not carry tagged packets: read and written by all lcores, racily. */
struct bs_refusing_peer {
	uint64_t key;
	uint64_t t_until;
};

/* A buffer of ours: its number is BS_BUFFER_FIRST_OWN + its place in the list. */
struct bs_buffer_info {
	char name[BS_NAME_BYTES];
	uint8_t properties;
	uint32_t capacity;
	const char *quality; /* of its waits; "not observable" */
};

struct bs_collector;

struct bs_dataplane {
	struct bs_config config;
	struct bs_framers framers;
	struct bs_tracker_service services[BS_MAX_SERVICES];
	struct rte_mempool *pool;
	struct bs_port ports[BS_CONFIG_PORTS];
	struct bs_port *port_list[BS_CONFIG_PORTS];
	struct bs_lcore *lcores[BS_CONFIG_LCORES];
	unsigned lcore_count;
	struct bs_buffer_info buffers[BS_SNAPSHOT_BUFFERS];
	unsigned buffer_count;
	struct bs_queue **queues; /* all of them */
	unsigned queue_count;
	struct bs_refusing_peer refusing_peers[BS_REFUSING_PEERS];
	struct bs_collector *collector;
	struct bs_store *store;
	uint64_t t_start;
	bool hugepages;
	/* How long this thread has waited for a CPU, ns; a test's returns 0. */
	uint64_t (*run_delay_ns)(void);
};

/*
 * Everything from the config: pool, ports, lcores, queues, collector. lcore_ids are the
 * EAL lcores of the pipeline (a test gives any numbers); their tables and rings are on their
 * nodes, packets on memory_node (SOCKET_ID_ANY: any), the rest where this thread is. NULL
 * with one line in error that says what is wrong and what to do. Main thread.
 */
struct bs_dataplane *bs_dataplane_create(const struct bs_config *config, const unsigned *lcore_ids,
	unsigned lcore_count, int memory_node, char error[BS_DATAPLANE_ERROR_BYTES]);

/* Stops ports, frees all, counts what was still queued. Lcores must have stopped. NULL is fine. */
void bs_dataplane_destroy(struct bs_dataplane *dataplane);

/* Takes over what a reload may change. */
void bs_dataplane_reload(struct bs_dataplane *dataplane, const struct bs_config *config);

/* Copies all counters. Any control thread. */
void bs_dataplane_snapshot(const struct bs_dataplane *dataplane, struct bs_snapshot *snapshot);

/*
 * A debug fault, refused with -EPERM unless the config allows them, of the first pipeline
 * lcore. kind "stall": it stays away for that long ("20ms", at most 1s); "drop": it drops
 * so many packets of services (1 to 65535). 0, -EINVAL (value), -ENOENT (kind).
 */
int bs_dataplane_fault(struct bs_dataplane *dataplane, const char *kind, const char *value);

/* Puts open RPCs out and drops what is queued; for the last counters. Lcores must have stopped. */
void bs_dataplane_finish(struct bs_dataplane *dataplane, uint64_t t_ns);

/* Time on a run queue so far of the calling thread, from the scheduler's account, ns. */
uint64_t bs_run_delay_ns(void);
