/* SPDX-License-Identifier: BSD-3-Clause */
/* See topology.h. */
#include "topology.h"

#include <errno.h>
#include <numa.h>
#include <stdio.h>
#include <string.h>

/* A file of /sys with the number of a node, which is -1 for none. */
static int
read_node(const char *path)
{
	FILE *file = fopen(path, "re");
	int node = BS_NODE_NONE;

	if (file == NULL)
		return BS_NODE_NONE;
	if (fscanf(file, "%d", &node) != 1 || node < 0)
		node = BS_NODE_NONE;
	fclose(file);
	return node;
}

int
bs_topology_device_node(const char *device)
{
	unsigned domain = 0, bus, slot, function;
	const char *interface = strstr(device, "iface=");
	char path[BS_CONFIG_TEXT + 64];

	if (sscanf(device, "%x:%x:%x.%x", &domain, &bus, &slot, &function) == 4 ||
		sscanf(device, "%x:%x.%x", &bus, &slot, &function) == 3) {
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%04x:%02x:%02x.%x/numa_node",
			domain, bus, slot, function);
		return read_node(path);
	}
	if (interface == NULL)
		return BS_NODE_NONE;
	interface += strlen("iface=");
	snprintf(path, sizeof(path), "/sys/class/net/%.*s/device/numa_node",
		(int)strcspn(interface, ",/"), interface);
	return read_node(path);
}

static int
read_cpus(struct bs_topology *topology)
{
	cpu_set_t all;

	if (sched_getaffinity(0, sizeof(topology->allowed), &topology->allowed) != 0)
		return -errno;
	/* the kernel takes from a set what the cpuset lacks */
	memset(&all, 0xff, sizeof(all));
	topology->possible = topology->allowed;
	if (sched_setaffinity(0, sizeof(all), &all) != 0)
		return 0;
	if (sched_getaffinity(0, sizeof(all), &all) == 0)
		topology->possible = all;
	return sched_setaffinity(0, sizeof(topology->allowed), &topology->allowed) == 0 ? 0
											: -errno;
}

int
bs_topology_read(const struct bs_config *config, struct bs_topology *topology)
{
	int ret;

	memset(topology, 0, sizeof(*topology));
	ret = read_cpus(topology);
	if (ret != 0)
		return ret;
	topology->node_count = numa_available() < 0 ? 1 : (unsigned)numa_num_configured_nodes();
	for (int cpu = 0; cpu < CPU_SETSIZE && topology->node_count > 1; cpu++) {
		if (CPU_ISSET(cpu, &topology->possible))
			topology->cpu_node[cpu] = numa_node_of_cpu(cpu);
	}
	for (unsigned i = 0; i < BS_CONFIG_PORTS; i++)
		topology->port_node[i] = BS_NODE_NONE;
	for (unsigned i = 0; i < config->port_count && topology->node_count > 1; i++) {
		const struct bs_config_port *port = &config->ports[i];

		for (unsigned k = 0;
			k < port->device_count && topology->port_node[i] == BS_NODE_NONE; k++)
			topology->port_node[i] = bs_topology_device_node(port->device[k]);
	}
	return 0;
}

const char *
bs_cpus_text(const cpu_set_t *set, char text[BS_CPUS_TEXT_BYTES])
{
	size_t at = 0;

	text[0] = '\0';
	for (int cpu = 0; cpu < CPU_SETSIZE && at + 12 < BS_CPUS_TEXT_BYTES; cpu++) {
		int last = cpu;

		if (!CPU_ISSET(cpu, set))
			continue;
		while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, set))
			last++;
		at += (size_t)snprintf(
			text + at, BS_CPUS_TEXT_BYTES - at, "%s%d", at == 0 ? "" : ",", cpu);
		if (last > cpu)
			at += (size_t)snprintf(text + at, BS_CPUS_TEXT_BYTES - at, "-%d", last);
		cpu = last;
	}
	return text;
}
