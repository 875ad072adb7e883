/* SPDX-License-Identifier: BSD-3-Clause */
/* Are lcores, pool and ports on one NUMA node? A remote one costs every packet a hop. */
#include <numa.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mempool.h>

#include "dataplane.h"
#include "eal.h"
#include "log.h"

BS_LOG_TOPIC("bufscope.numa")

void
bs_numa_check(const struct bs_dataplane *dataplane)
{
	int node = -1;

	if (numa_available() < 0 || numa_max_node() == 0)
		return;
	for (unsigned i = 0; i < dataplane->config.port_count && node < 0; i++)
		node = rte_eth_dev_socket_id(dataplane->ports[i].id);
	if (node < 0)
		return; /* virtual devices are on none */
	for (unsigned i = 0; i < dataplane->config.port_count; i++) {
		int of_port = rte_eth_dev_socket_id(dataplane->ports[i].id);

		if (of_port >= 0 && of_port != node)
			BS_LOG(WARNING,
				"port %s is on NUMA node %d, the first port on %d: pair ports of "
				"one node\n",
				dataplane->ports[i].name, of_port, node);
	}
	for (unsigned i = 0; i < dataplane->lcore_count; i++) {
		int cpu = rte_lcore_to_cpu_id((int)dataplane->lcores[i]->lcore_id);

		if (numa_node_of_cpu(cpu) != node)
			BS_LOG(WARNING,
				"lcore on CPU %d is on NUMA node %d, the ports on %d: name CPUs of "
				"that node in eal.lcores\n",
				cpu, numa_node_of_cpu(cpu), node);
	}
	if (dataplane->pool->socket_id != SOCKET_ID_ANY && dataplane->pool->socket_id != node)
		BS_LOG(WARNING, "the mbuf pool is on NUMA node %d, the ports on %d\n",
			dataplane->pool->socket_id, node);
}
