/* SPDX-License-Identifier: BSD-3-Clause */
/* See wiring.h. */
#include "wiring.h"

#include <errno.h>
#include <rte_ethdev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane.h"

#define LOG_ENTRIES 2048u
#define HANDOVER_PACKETS 1024u
#define OTHER_CLASS 255u /* behind every listed class */

static uint16_t
buffer_add(struct bs_dataplane *dataplane, const char *name, uint8_t properties, unsigned capacity,
	const char *quality)
{
	struct bs_buffer_info *info;

	for (unsigned i = 0; i < dataplane->buffer_count; i++) {
		if (strcmp(dataplane->buffers[i].name, name) == 0)
			return (uint16_t)(BS_BUFFER_FIRST_OWN + i);
	}
	if (dataplane->buffer_count == BS_SNAPSHOT_BUFFERS)
		return BS_BUFFER_NONE;
	info = &dataplane->buffers[dataplane->buffer_count];
	snprintf(info->name, sizeof(info->name), "%s", name);
	info->properties = properties;
	info->capacity = capacity;
	info->quality = quality;
	return (uint16_t)(BS_BUFFER_FIRST_OWN + dataplane->buffer_count++);
}

static void
name_port_buffers(struct bs_dataplane *dataplane, struct bs_port *port)
{
	char name[BS_NAME_BYTES];

	snprintf(name, sizeof(name), "%s.rx", port->name);
	port->rx_buffer =
		buffer_add(dataplane, name, BS_BUFFER_LOSSY | BS_BUFFER_POLLED, 0, "estimated");
	snprintf(name, sizeof(name), "%s.tx", port->name);
	port->tx_buffer = buffer_add(dataplane, name, 0, 0, "not observable");
}

/* The descriptors of a port wake the lcore that polls its first queue. */
static void
give_wait_fds(struct bs_lcore *lcore, struct bs_ingress *ingress)
{
	const struct bs_port *port = ingress->port;

	if (ingress->rx_queue != 0)
		return;
	for (unsigned i = 0; i < port->wait_fd_count && lcore->wait_fd_count < BS_LCORE_WAIT_FDS;
		i++) {
		lcore->wait_ingress[lcore->wait_fd_count] = ingress;
		lcore->wait_fds[lcore->wait_fd_count++] = port->wait_fds[i];
	}
}

/* Spreads the rx queues of all ports over the lcores. */
static void
give_rx_queues(struct bs_dataplane *dataplane)
{
	unsigned turn = 0;

	for (unsigned p = 0; p < dataplane->config.port_count; p++) {
		struct bs_port *port = &dataplane->ports[p];

		for (uint16_t q = 0; q < port->rx_queues; q++, turn++) {
			struct bs_lcore *lcore = dataplane->lcores[turn % dataplane->lcore_count];
			struct bs_ingress *ingress = &lcore->ingress[lcore->ingress_count++];

			ingress->port = port;
			ingress->rx_queue = q;
			ingress->buffer = port->rx_buffer;
			ingress->served = (uint16_t)lcore->ingress_count;
			ingress->t_short = dataplane->t_start;
			ingress->stamp = bs_stamp_create(port->id, &port->stamps);
			give_wait_fds(lcore, ingress);
		}
	}
}

static int
give_tx_queues(struct bs_dataplane *dataplane)
{
	/* all lcores may fill queues of one egress */
	const unsigned most = dataplane->lcore_count * (dataplane->config.service_count + 1);

	for (unsigned p = 0; p < dataplane->config.port_count; p++) {
		struct bs_port *port = &dataplane->ports[p];

		for (uint16_t q = 0; q < port->tx_queues; q++) {
			/* a single tx queue goes where its port is polled, so that idle wakes one
			 * lcore */
			struct bs_lcore *lcore =
				dataplane->lcores[(p + q) % dataplane->lcore_count];
			struct bs_egress *egress = &lcore->egress[lcore->egress_count++];

			egress->lcore = lcore;
			egress->port = port;
			egress->tx_queue = q;
			egress->tx_buffer = port->tx_buffer;
			egress->t_tokens = dataplane->t_start;
			egress->queues = calloc(most, sizeof(egress->queues[0]));
			egress->waiting = calloc((most + 63) / 64, sizeof(egress->waiting[0]));
			if (egress->queues == NULL || egress->waiting == NULL)
				return -ENOMEM;
		}
	}
	return 0;
}

/* The lcore that drains what `producer` sends to a port, and its egress there. */
static struct bs_egress *
egress_for(
	struct bs_dataplane *dataplane, const struct bs_port *port, const struct bs_lcore *producer)
{
	struct bs_egress *any = NULL;

	for (unsigned i = 0; i < dataplane->lcore_count; i++) {
		struct bs_lcore *lcore = dataplane->lcores[i];

		for (unsigned k = 0; k < lcore->egress_count; k++) {
			if (lcore->egress[k].port != port)
				continue;
			if (lcore == producer)
				return &lcore->egress[k];
			if (any == NULL)
				any = &lcore->egress[k];
		}
	}
	return any;
}

static void
egress_add(struct bs_egress *egress, struct bs_queue *queue)
{
	unsigned at = egress->queue_count++;

	/* queues of one buffer, each filled by another lcore, are one to the packets in them */
	for (unsigned i = 0; i < at && queue->served == 0; i++) {
		if (egress->queues[i]->buffer == queue->buffer)
			queue->served = egress->queues[i]->served;
	}
	if (queue->served == 0)
		queue->served = (uint16_t)++egress->served_count;
	while (at > 0 && egress->queues[at - 1]->class_ > queue->class_) {
		egress->queues[at] = egress->queues[at - 1];
		at--;
	}
	egress->queues[at] = queue;
}

static int
make_queue(struct bs_dataplane *dataplane, struct bs_lcore *producer, const struct bs_port *port,
	unsigned service)
{
	const struct bs_config *config = &dataplane->config;
	const bool in = !port->is_wire;
	const bool other = service == BS_SERVICE_OTHER;
	struct bs_egress *egress = egress_for(dataplane, port, producer);
	struct bs_queue *queue;
	char name[BS_NAME_BYTES];
	uint16_t buffer;

	if (egress == NULL)
		return -ENODEV;
	snprintf(name, sizeof(name), "%.*s.app.%s", (int)sizeof(name) - 9,
		other ? "other" : config->services[service].name, in ? "in" : "out");
	buffer = buffer_add(dataplane, name,
		BS_BUFFER_LOSSY | BS_BUFFER_CLASSES | BS_BUFFER_ORDERED | BS_BUFFER_POLLED,
		config->app_queue.size, "exact");
	queue = bs_queue_create(producer, buffer, dataplane->queue_count, config->app_queue.size);
	if (queue == NULL)
		return -ENOMEM;
	dataplane->queues[dataplane->queue_count++] = queue;
	queue->drainer = egress->lcore;
	queue->service = (uint16_t)service;
	queue->from = (uint8_t)port->peer->index;
	queue->class_ = other ? OTHER_CLASS
			: in  ? config->services[service].class_in
			      : config->services[service].class_out;
	producer->queues[port->index][service] = queue;
	egress_add(egress, queue);
	return 0;
}

static int
make_queues(struct bs_dataplane *dataplane)
{
	const struct bs_config *config = &dataplane->config;
	unsigned most = dataplane->lcore_count * config->port_count * (config->service_count + 1);
	int ret = 0;

	dataplane->queues = calloc(most, sizeof(dataplane->queues[0]));
	if (dataplane->queues == NULL)
		return -ENOMEM;
	for (unsigned l = 0; l < dataplane->lcore_count; l++) {
		struct bs_lcore *lcore = dataplane->lcores[l];

		bs_lcore_visit(lcore->lcore_id);
		lcore->queues = calloc(config->port_count, sizeof(lcore->queues[0]));
		if (lcore->queues == NULL)
			return -ENOMEM;
		for (unsigned p = 0; p < config->port_count; p++) {
			const struct bs_port *port = &dataplane->ports[p];

			if (port->peer == NULL)
				continue;
			for (unsigned s = 0; ret == 0 && s < config->service_count; s++)
				ret = make_queue(dataplane, lcore, port, s);
			if (ret == 0)
				ret = make_queue(dataplane, lcore, port, BS_SERVICE_OTHER);
			if (ret != 0)
				return ret;
		}
	}
	return 0;
}

static int
make_rings(struct bs_dataplane *dataplane, struct bs_lcore *to)
{
	char name[RTE_RING_NAMESIZE];

	for (unsigned from = 0; from < dataplane->lcore_count; from++) {
		if (from == to->index)
			continue;
		snprintf(name, sizeof(name), "bsho%u.%u", from, to->index);
		to->handover[from] = rte_ring_create(
			name, HANDOVER_PACKETS, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
		snprintf(name, sizeof(name), "bsnote%u.%u", from, to->index);
		to->notices[from] = rte_ring_create_elem(name, sizeof(struct bs_notice), BS_NOTICES,
			SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
		if (to->handover[from] == NULL || to->notices[from] == NULL)
			return -ENOMEM;
	}
	return 0;
}

/* One log per drainer, with as many pairs as it serves. */
static int
make_logs(struct bs_dataplane *dataplane, struct bs_lcore *lcore)
{
	lcore->rx_log = bs_drain_create(LOG_ENTRIES,
		lcore->ingress_count == 0 ? 1 : lcore->ingress_count, dataplane->t_start);
	if (lcore->rx_log == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < lcore->egress_count; i++) {
		struct bs_egress *egress = &lcore->egress[i];

		egress->log = bs_drain_create(LOG_ENTRIES,
			egress->served_count == 0 ? 1 : egress->served_count, dataplane->t_start);
		if (egress->log == NULL)
			return -ENOMEM;
	}
	return 0;
}

int
bs_wiring_init(struct bs_dataplane *dataplane)
{
	int ret;

	for (unsigned p = 0; p < dataplane->config.port_count; p++)
		name_port_buffers(dataplane, &dataplane->ports[p]);
	give_rx_queues(dataplane);
	ret = give_tx_queues(dataplane);
	if (ret == 0)
		ret = make_queues(dataplane);
	for (unsigned i = 0; ret == 0 && i < dataplane->lcore_count; i++) {
		bs_lcore_visit(dataplane->lcores[i]->lcore_id);
		ret = make_rings(dataplane, dataplane->lcores[i]);
		if (ret == 0)
			ret = make_logs(dataplane, dataplane->lcores[i]);
	}
	return ret;
}

static void
drop_ring(struct bs_lcore *lcore, struct rte_ring *ring)
{
	struct rte_mbuf *mbuf;

	while (ring != NULL && rte_ring_sc_dequeue(ring, (void **)&mbuf) == 0) {
		const unsigned from = bs_meta(mbuf)->port;

		bs_count(&lcore->accounts[from].taken_over, 1);
		bs_count_ended(lcore, from, BS_REASON_SHUTDOWN, 1);
		rte_pktmbuf_free(mbuf);
	}
}

void
bs_wiring_drop_all(struct bs_lcore *lcore)
{
	for (unsigned i = 0; i < lcore->egress_count; i++)
		bs_egress_drop_all(lcore, &lcore->egress[i]);
	for (unsigned i = 0; i < BS_CONFIG_LCORES; i++)
		drop_ring(lcore, lcore->handover[i]);
}

void
bs_wiring_fini(struct bs_lcore *lcore)
{
	bs_wiring_drop_all(lcore);
	for (unsigned i = 0; i < lcore->egress_count; i++) {
		bs_drain_destroy(lcore->egress[i].log);
		free(lcore->egress[i].queues);
		free(lcore->egress[i].waiting);
	}
	for (unsigned i = 0; i < lcore->ingress_count; i++)
		bs_stamp_destroy(lcore->ingress[i].stamp);
	for (unsigned i = 0; i < BS_CONFIG_LCORES; i++) {
		rte_ring_free(lcore->handover[i]);
		rte_ring_free(lcore->notices[i]);
	}
	bs_drain_destroy(lcore->rx_log);
	free(lcore->queues);
}
