/* SPDX-License-Identifier: BSD-3-Clause */
/* See watch_ports.h: how the watch sees a dataplane. */
#include "watch_ports.h"

#include <poll.h>
#include <rte_ethdev.h>
#include <rte_mempool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector.h"
#include "dataplane.h"

_Static_assert(BS_WATCH_NAME_BYTES == RTE_ETH_XSTATS_NAME_SIZE, "names of ethdev");

/* Drivers that count a queue's losses with the queue; others put all on queue 0, or on none. */
static const char *const queue_drivers[] = {
	"mlx5_pci",
	"net_bufnic",
};

static bool
counts_by_queue(const char *driver)
{
	for (unsigned i = 0; i < RTE_DIM(queue_drivers); i++) {
		if (strcmp(driver, queue_drivers[i]) == 0)
			return true;
	}
	return false;
}

/* --- a port ------------------------------------------------------------------------- */

/* By the names that ethdev gives them: since DPDK 25.11 they are in no struct. */
static void
read_queues(const struct bs_port *port, struct bs_watch_reading *reading)
{
	for (unsigned q = 0; q < BS_WATCH_QUEUES; q++) {
		char name[RTE_ETH_XSTATS_NAME_SIZE];
		uint64_t id, value;

		snprintf(name, sizeof(name), "rx_q%u_errors", q);
		if (rte_eth_xstats_get_id_by_name(port->id, name, &id) != 0)
			return;
		if (rte_eth_xstats_get_by_id(port->id, &id, &value, 1) == 1)
			reading->queue_missed[q] = value;
	}
}

static void
read_device(const struct bs_port *port, struct bs_watch_reading *reading)
{
	struct rte_eth_stats stats = {0};

	if (rte_eth_stats_get(port->id, &stats) == 0) {
		reading->missed = stats.imissed;
		reading->no_mbuf = stats.rx_nombuf;
		reading->errors = stats.ierrors;
	}
	if (counts_by_queue(port->driver))
		read_queues(port, reading);
	reading->link_up = bs_port_link_up(port);
}

static void
add_lcore(
	const struct bs_lcore *lcore, const struct bs_port *port, struct bs_watch_reading *reading)
{
	const struct bs_port_account *account = &lcore->accounts[port->index];
	const uint64_t turns = __atomic_load_n(&lcore->counters.polls, __ATOMIC_RELAXED);

	reading->gaps += __atomic_load_n(&account->gaps, __ATOMIC_RELAXED);
	reading->lost_before += __atomic_load_n(&account->lost_before, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < lcore->ingress_count; i++) {
		if (lcore->ingress[i].port != port)
			continue;
		reading->taken += __atomic_load_n(&lcore->ingress[i].packets, __ATOMIC_RELAXED);
		reading->rx_turns += turns;
	}
	for (unsigned i = 0; i < lcore->egress_count; i++) {
		const struct bs_egress *egress = &lcore->egress[i];

		if (egress->port != port)
			continue;
		reading->given += __atomic_load_n(&egress->tx_packets, __ATOMIC_RELAXED);
		reading->tx_turns += turns;
		/* held back by a rate of ours it is not refused */
		reading->refuses = reading->refuses ||
				   (egress->pending_count > 0 && egress->t_pause_begin != 0);
	}
}

/* May this thread look? Only whether there is something: it takes nothing. */
static bool
packets_wait(const struct bs_port *port)
{
	struct pollfd fds[RTE_DIM(port->wait_fds)];

	for (unsigned i = 0; i < port->wait_fd_count; i++)
		fds[i] = (struct pollfd){.fd = port->wait_fds[i], .events = POLLIN};
	if (poll(fds, port->wait_fd_count, 0) <= 0)
		return false;
	for (unsigned i = 0; i < port->wait_fd_count; i++) {
		if (fds[i].revents & POLLIN)
			return true;
	}
	return false;
}

static void
read_port(void *context, unsigned index, struct bs_watch_reading *reading)
{
	const struct bs_dataplane *dataplane = context;
	const struct bs_port *port = &dataplane->ports[index];

	memset(reading, 0, sizeof(*reading));
	read_device(port, reading);
	reading->waits = packets_wait(port);
	for (unsigned i = 0; i < dataplane->lcore_count; i++)
		add_lcore(dataplane->lcores[i], port, reading);
}

static unsigned
read_names(void *context, unsigned index, char (*names)[BS_WATCH_NAME_BYTES], unsigned max)
{
	const struct bs_dataplane *dataplane = context;
	const uint16_t port = dataplane->ports[index].id;
	struct rte_eth_xstat_name *list;
	int count = rte_eth_xstats_get_names(port, NULL, 0);

	if (count <= 0)
		return 0;
	list = calloc((size_t)count, sizeof(*list));
	if (list == NULL)
		return 0;
	count = RTE_MIN(rte_eth_xstats_get_names(port, list, (unsigned)count), count);
	for (int i = 0; i < count && (unsigned)i < max; i++)
		memcpy(names[i], list[i].name, sizeof(names[i]));
	free(list);
	return count < 0 ? 0 : (unsigned)count;
}

static int
read_values(void *context, unsigned index, const uint64_t *ids, uint64_t *values, unsigned count)
{
	const struct bs_dataplane *dataplane = context;
	int ret = rte_eth_xstats_get_by_id(dataplane->ports[index].id, ids, values, count);

	return ret == (int)count ? 0 : -EIO;
}

/* --- the pool ----------------------------------------------------------------------- */

static void
read_pool(void *context, struct bs_watch_pool *pool)
{
	const struct bs_dataplane *dataplane = context;
	uint32_t in[BS_SNAPSHOT_BUFFERS] = {0};

	memset(pool, 0, sizeof(*pool));
	pool->size = dataplane->pool->size;
	pool->in_use = rte_mempool_in_use_count(dataplane->pool);
	for (unsigned i = 0; i < dataplane->queue_count; i++) {
		const struct bs_queue *queue = dataplane->queues[i];
		const uint32_t count = rte_ring_count(queue->ring);
		const unsigned buffer = queue->buffer - BS_BUFFER_FIRST_OWN;

		pool->queued += count;
		if (buffer >= BS_SNAPSHOT_BUFFERS)
			continue;
		in[buffer] += count;
		if (in[buffer] > pool->top) {
			pool->top = in[buffer];
			pool->top_buffer = queue->buffer;
			pool->top_class = queue->class_;
		}
	}
	for (unsigned i = 0; i < dataplane->lcore_count; i++) {
		const struct bs_lcore *lcore = dataplane->lcores[i];

		for (unsigned k = 0; k < lcore->egress_count; k++)
			pool->queued += lcore->egress[k].pending_count;
		for (unsigned k = 0; k < dataplane->lcore_count; k++) {
			if (lcore->handover[k] != NULL)
				pool->queued += rte_ring_count(lcore->handover[k]);
		}
	}
}

/* --- both --------------------------------------------------------------------------- */

static void
tell(void *context, const struct bs_rec_event *event)
{
	const struct bs_dataplane *dataplane = context;

	bs_collector_put(dataplane->collector, event, BS_UNITS_OF(struct bs_rec_event));
}

struct bs_watch *
bs_watch_ports(struct bs_dataplane *dataplane, uint64_t t_ns)
{
	const struct bs_watch_ops ops = {
		.port = read_port,
		.names = read_names,
		.values = read_values,
		.pool = read_pool,
		.tell = tell,
		.context = dataplane,
	};
	struct bs_watch_port ports[BS_CONFIG_PORTS];

	for (unsigned i = 0; i < dataplane->config.port_count; i++) {
		const struct bs_port *port = &dataplane->ports[i];

		ports[i] = (struct bs_watch_port){
			.rx_buffer = port->rx_buffer,
			.tx_buffer = port->tx_buffer,
			.before = port->is_wire ? BS_BUFFER_NET_REQUEST_BEFORE
						: BS_BUFFER_NET_RESPONSE_BEFORE,
			.missed_observable = port->missed_observable,
			.by_queue = counts_by_queue(port->driver),
		};
		snprintf(ports[i].driver, sizeof(ports[i].driver), "%s", port->driver);
	}
	return bs_watch_create(&ops, ports, dataplane->config.port_count, t_ns);
}

void
bs_watch_snapshot(const struct bs_watch *watch, struct bs_snapshot *snapshot)
{
	for (unsigned i = 0; i < snapshot->port_count; i++)
		bs_watch_port(watch, i, &snapshot->ports[i].watched);
	bs_watch_pool(watch, &snapshot->pool);
}
