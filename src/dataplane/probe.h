/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The probe: when a service of this host is silent although RPCs are open at
 * it, asks the kernel what its threads do (stopped, waiting for a CPU, out of
 * quota, on a CPU, asleep) and what stands in its sockets. Finds the process by
 * its pid file, else by its listening socket (probe_find.h). Control thread, but
 * for bs_probe_snapshot.
 */
#pragma once

#include <stdint.h>

struct bs_dataplane;
struct bs_probe;
struct bs_snapshot;

/* NULL with errno. */
struct bs_probe *bs_probe_create(struct bs_dataplane *dataplane);
void bs_probe_destroy(struct bs_probe *probe); /* NULL is fine */

/*
 * Searches for all processes at once, within a bound of about 100 ms: to be called while
 * the program still has the capabilities that this takes (probe_find.h). Sockets in
 * the services' namespaces stay open from then on.
 */
void bs_probe_find(struct bs_probe *probe, uint64_t t_ns);

/*
 * Looks once at every service that is silent, and gives what it saw to the
 * collector; goes on with a search for processes not found. Returns in how many
 * ms it wants to look again: soon while one is silent, -1 if no service is
 * probed.
 */
int bs_probe_step(struct bs_probe *probe, uint64_t t_ns);

/* Fills in how each service is probed. Any thread. */
void bs_probe_snapshot(const struct bs_probe *probe, struct bs_snapshot *snapshot);
