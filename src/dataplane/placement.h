/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which CPU and NUMA node each thread and the memory get: what the config names, and for the rest
 * the CPUs near the ports. lcore i polls port i first, so it is placed near that one; what
 * does no work for packets keeps off the pipeline's CPUs.
 */
#pragma once

#include "topology.h"

#define BS_PLACED_LCORES 2u /* of the pipeline, where the config leaves it open */

/* Why a CPU. */
enum bs_placed {
	BS_PLACED_NAMED,   /* by the config */
	BS_PLACED_AFAR,	   /* by the config, on a node that none of the ports is on */
	BS_PLACED_MISSING, /* by the config, but we may not use it */
	BS_PLACED_NEAR,	   /* to a port */
	BS_PLACED_CROWDED, /* on another node, as the port's has no CPU left */
	BS_PLACED_ANY,	   /* no port is on a node, or there is one node: the first that is left */
};

struct bs_placed_lcore {
	unsigned cpu;
	int node;
	enum bs_placed why;
	unsigned port; /* index, with AFAR, NEAR and CROWDED */
	int port_node; /* its node, likewise */
};

struct bs_placement {
	unsigned node_count;
	cpu_set_t possible; /* as in the topology */
	struct bs_placed_lcore lcores[BS_CONFIG_LCORES];
	unsigned lcore_count;
	struct bs_placed_lcore collector; /* if the config names its CPU */
	cpu_set_t others;  /* main, EAL's control threads, the analyzer; the collector if open */
	int others_node;   /* BS_NODE_NONE: several */
	bool others_share; /* with the pipeline: it leaves no CPU */
	int memory_node;   /* of packets, and of heap and EAL memory at first; BS_NODE_NONE: any */
};

/* Pure. topology->allowed is not empty. */
void bs_placement_make(const struct bs_config *config, const struct bs_topology *topology,
	struct bs_placement *placement);

/* 0, or -ENODEV with one line in error about a CPU that the config names and we may not use. */
int bs_placement_check(const struct bs_placement *placement, char error[BS_CONFIG_ERROR_BYTES]);

/* "near port wire", for an lcore of the pipeline or the collector's. */
#define BS_PLACED_TEXT_BYTES 160u
const char *bs_placed_text(const struct bs_config *config, const struct bs_placed_lcore *lcore,
	char text[BS_PLACED_TEXT_BYTES]);
