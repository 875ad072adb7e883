/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The probe: when a service of this host is silent although RPCs are open at
 * it, asks the kernel what its threads do: stopped, waiting for a CPU, on one,
 * or asleep. Only for services whose config names a pid file. Control thread.
 */
#pragma once

#include <stdint.h>

struct bs_dataplane;
struct bs_probe;

/* NULL with errno. */
struct bs_probe *bs_probe_create(struct bs_dataplane *dataplane);
void bs_probe_destroy(struct bs_probe *probe); /* NULL is fine */

/*
 * Looks once at every service that is silent, and gives what it saw to the
 * collector. Returns in how many ms it wants to look again: soon while one is
 * silent, -1 if no service is probed.
 */
int bs_probe_step(struct bs_probe *probe, uint64_t t_ns);

/* What the kernel says of all threads of a process at one instant. */
struct bs_probe_sample {
	uint64_t cpu_ns;       /* used so far, all threads */
	uint64_t run_delay_ns; /* waited for a CPU so far, all threads */
	unsigned threads, stopped, runnable;
};

/*
 * Reads /proc/<pid>/task. 0, or -ESRCH if there is no such process.
 */
int bs_probe_sample(int pid, struct bs_probe_sample *sample);

/* enum bs_probe_state of the time between two samples, elapsed_ns apart. */
unsigned bs_probe_state(const struct bs_probe_sample *before, const struct bs_probe_sample *after,
	uint64_t elapsed_ns);
