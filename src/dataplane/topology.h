/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPUs and NUMA nodes that this process has, and the nodes of the devices it is to use. */
#pragma once

#include <sched.h>

#include "config.h"

#define BS_NODE_NONE (-1) /* a virtual device's, or one that nobody tells */

struct bs_topology {
	unsigned node_count; /* 1: there is nothing to choose */
	cpu_set_t possible;  /* CPUs that a thread of ours can be put on: those of the cpuset */
	cpu_set_t allowed;   /* of these, the ones it was started with */
	int cpu_node[CPU_SETSIZE]; /* of those possible */
	int port_node[BS_CONFIG_PORTS];
};

/*
 * Of this machine and the ports of a config. Looks at /sys and moves the calling thread
 * about for a moment; before there are others. 0, or -errno of sched_getaffinity.
 */
int bs_topology_read(const struct bs_config *config, struct bs_topology *topology);

/*
 * Of the hardware behind a device as the config names it: a PCI address, or a vdev with
 * "iface=" of a NIC that the kernel drives. BS_NODE_NONE: there is none. Control thread.
 */
int bs_topology_device_node(const char *device);

/* "0-2,5" of a set; cut if it does not fit. */
#define BS_CPUS_TEXT_BYTES 2560u /* every second of CPU_SETSIZE fits */
const char *bs_cpus_text(const cpu_set_t *set, char text[BS_CPUS_TEXT_BYTES]);
