/* SPDX-License-Identifier: BSD-3-Clause */
/* See placement.h. */
#include "placement.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The lowest CPU of a set that is on a node (BS_NODE_NONE: on any); -1: there is none. */
static int
lowest(const struct bs_topology *topology, const cpu_set_t *set, int node)
{
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, set) &&
			(node == BS_NODE_NONE || topology->cpu_node[cpu] == node))
			return cpu;
	}
	return -1;
}

/* The first port on a node, port_count if there is none. */
static unsigned
first_port_on_any(const struct bs_config *config, const struct bs_topology *topology)
{
	unsigned port = 0;

	while (port < config->port_count && topology->port_node[port] == BS_NODE_NONE)
		port++;
	return port;
}

static struct bs_placed_lcore
take_named(const struct bs_config *config, const struct bs_topology *topology, unsigned cpu)
{
	struct bs_placed_lcore lcore = {.cpu = cpu,
		.node = topology->cpu_node[cpu],
		.why = BS_PLACED_NAMED,
		.port = first_port_on_any(config, topology)};

	if (!CPU_ISSET(cpu, &topology->possible)) {
		lcore.why = BS_PLACED_MISSING;
		return lcore;
	}
	if (lcore.port == config->port_count)
		return lcore;
	lcore.port_node = topology->port_node[lcore.port];
	lcore.why = BS_PLACED_AFAR;
	for (unsigned i = 0; i < config->port_count; i++) {
		if (topology->port_node[i] == lcore.node)
			lcore.why = BS_PLACED_NAMED;
	}
	return lcore;
}

/* For lcore number i, which polls port i first; home: where a port on no node is served. */
static struct bs_placed_lcore
take_open(const struct bs_config *config, const struct bs_topology *topology, unsigned i,
	const cpu_set_t *left, int home)
{
	struct bs_placed_lcore lcore = {.why = BS_PLACED_NEAR, .port = i % config->port_count};
	int cpu;

	if (topology->port_node[lcore.port] == BS_NODE_NONE)
		lcore.port = first_port_on_any(config, topology);
	if (lcore.port == config->port_count) {
		lcore.why = BS_PLACED_ANY;
		cpu = lowest(topology, left, home);
	} else {
		lcore.port_node = topology->port_node[lcore.port];
		cpu = lowest(topology, left, lcore.port_node);
		if (cpu < 0)
			lcore.why = BS_PLACED_CROWDED;
	}
	if (cpu < 0)
		cpu = lowest(topology, left, BS_NODE_NONE);
	lcore.cpu = (unsigned)cpu;
	lcore.node = topology->cpu_node[cpu];
	return lcore;
}

static void
place_pipeline(const struct bs_config *config, const struct bs_topology *topology, cpu_set_t *left,
	struct bs_placement *placement)
{
	const unsigned port = first_port_on_any(config, topology);
	int home = port < config->port_count ? topology->port_node[port] : BS_NODE_NONE;

	placement->lcore_count = config->eal.pipeline.count;
	if (placement->lcore_count == 0) {
		const unsigned most = (unsigned)CPU_COUNT(left);

		placement->lcore_count = most < BS_PLACED_LCORES ? most : BS_PLACED_LCORES;
	}
	for (unsigned i = 0; i < placement->lcore_count; i++) {
		placement->lcores[i] =
			config->eal.pipeline.count > 0
				? take_named(config, topology, config->eal.pipeline.cpus[i])
				: take_open(config, topology, i, left, home);
		CPU_CLR(placement->lcores[i].cpu, left);
		if (home == BS_NODE_NONE)
			home = placement->lcores[i].node;
	}
	placement->memory_node = topology->node_count > 1 ? home : BS_NODE_NONE;
}

/* Those of a set on a node, or all of it if none is. */
static cpu_set_t
nearest(const struct bs_topology *topology, const cpu_set_t *set, int node)
{
	cpu_set_t near = *set;

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (topology->cpu_node[cpu] != node)
			CPU_CLR(cpu, &near);
	}
	return CPU_COUNT(&near) > 0 ? near : *set;
}

/* BS_NODE_NONE: of several. */
static int
node_of_all(const struct bs_topology *topology, const cpu_set_t *set)
{
	const int node = topology->cpu_node[lowest(topology, set, BS_NODE_NONE)];
	const cpu_set_t near = nearest(topology, set, node);

	return CPU_EQUAL(&near, set) ? node : BS_NODE_NONE;
}

void
bs_placement_make(const struct bs_config *config, const struct bs_topology *topology,
	struct bs_placement *placement)
{
	const int collector = config->eal.collector_cpu;
	cpu_set_t left = topology->allowed, beside;

	memset(placement, 0, sizeof(*placement));
	placement->node_count = topology->node_count;
	placement->possible = topology->possible;
	/* to itself, if there is another */
	if (collector >= 0) {
		placement->collector = (struct bs_placed_lcore){.cpu = (unsigned)collector,
			.node = topology->cpu_node[collector],
			.why = CPU_ISSET(collector, &topology->possible) ? BS_PLACED_NAMED
									 : BS_PLACED_MISSING};
		if (CPU_COUNT(&left) > 1)
			CPU_CLR(collector, &left);
	}
	place_pipeline(config, topology, &left, placement);
	beside = left;
	if (collector >= 0 && CPU_COUNT(&beside) == 0 && CPU_ISSET(collector, &topology->allowed))
		CPU_SET(collector, &beside);
	for (unsigned i = 0; i < placement->lcore_count; i++)
		CPU_CLR(placement->lcores[i].cpu, &beside);
	placement->others_share = CPU_COUNT(&beside) == 0;
	placement->others = placement->others_share
				    ? topology->allowed
				    : nearest(topology, &beside, placement->memory_node);
	placement->others_node = node_of_all(topology, &placement->others);
}

int
bs_placement_check(const struct bs_placement *placement, char error[BS_CONFIG_ERROR_BYTES])
{
	char possible[BS_CPUS_TEXT_BYTES];
	const struct bs_placed_lcore *missing = NULL;

	if (placement->collector.why == BS_PLACED_MISSING)
		missing = &placement->collector;
	for (unsigned i = placement->lcore_count; i-- > 0;) {
		if (placement->lcores[i].why == BS_PLACED_MISSING)
			missing = &placement->lcores[i];
	}
	if (missing == NULL)
		return 0;
	snprintf(error, BS_CONFIG_ERROR_BYTES,
		"%s: CPU %u is not among those that this process may use (%.128s): name one of "
		"them, or widen its cpuset",
		missing == &placement->collector ? "eal.collector" : "eal.lcores", missing->cpu,
		bs_cpus_text(&placement->possible, possible));
	return -ENODEV;
}

const char *
bs_placed_text(const struct bs_config *config, const struct bs_placed_lcore *lcore,
	char text[BS_PLACED_TEXT_BYTES])
{
	const char *port = lcore->port < config->port_count ? config->ports[lcore->port].name : "";

	switch (lcore->why) {
	case BS_PLACED_NAMED:
		snprintf(text, BS_PLACED_TEXT_BYTES, "named");
		break;
	case BS_PLACED_AFAR:
		snprintf(text, BS_PLACED_TEXT_BYTES,
			"named, but port %s is on node %d: name CPUs of that, or none", port,
			lcore->port_node);
		break;
	case BS_PLACED_MISSING:
		snprintf(text, BS_PLACED_TEXT_BYTES,
			"named, but not there for this process: bufscoped will not start");
		break;
	case BS_PLACED_NEAR:
		snprintf(text, BS_PLACED_TEXT_BYTES, "near port %s", port);
		break;
	case BS_PLACED_CROWDED:
		snprintf(text, BS_PLACED_TEXT_BYTES,
			"port %s is on node %d, which has no CPU left for us", port,
			lcore->port_node);
		break;
	case BS_PLACED_ANY:
		snprintf(text, BS_PLACED_TEXT_BYTES, "the first that is left");
		break;
	}
	return text;
}
