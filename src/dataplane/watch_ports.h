/* SPDX-License-Identifier: BSD-3-Clause */
/* The watch (watch.h) over the ports and the pool of a dataplane. Control thread, but for the
 * snapshot. */
#pragma once

#include "watch.h"

struct bs_dataplane;
struct bs_snapshot;

/*
 * What it finds goes to the collector (bs_collector_put: by the thread that steps
 * it). NULL with errno. To be destroyed before the dataplane.
 */
struct bs_watch *bs_watch_ports(struct bs_dataplane *dataplane, uint64_t t_ns);

/* Fills in what was found. Any thread. */
void bs_watch_snapshot(const struct bs_watch *watch, struct bs_snapshot *snapshot);
