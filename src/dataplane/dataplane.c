/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Builds the dataplane from its config, in the order of what needs what, and
 * takes it down in reverse; see dataplane.h. wiring.c connects lcores, queues
 * and ports.
 */
#include "dataplane.h"

#include <errno.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf_dyn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "bs_clock.h"
#include "collector.h"
#include "wiring.h"

#define MBUF_BYTES                                                                                 \
	(sizeof(struct rte_mbuf) + sizeof(struct bs_meta) + RTE_MBUF_DEFAULT_BUF_SIZE + 128)
#define POOL_SHARE 2u /* of the memory, the pool takes one part in so many */
#define POOL_CACHE 256u
#define FAULT_DROPS_MAX 65535u
#define FRAGMENTED_PER_LCORE 256u
#define FLOW_IDLE_NS (300ull * BS_NS_PER_S)

static int
register_flag(char *error)
{
	const struct rte_mbuf_dynflag flag = {.name = "bufscope_handle"};
	int bit = rte_mbuf_dynflag_register(&flag);

	if (bit < 0) {
		snprintf(error, BS_DATAPLANE_ERROR_BYTES, "no free mbuf flag: %s",
			rte_strerror(rte_errno));
		return -rte_errno;
	}
	bs_mbuf_handle_flag = 1ull << bit;
	return 0;
}

static int
create_pool(struct bs_dataplane *dataplane, int memory_node, char *error)
{
	uint64_t n = dataplane->config.eal.memory_bytes / POOL_SHARE / MBUF_BYTES;
	const uint16_t priv = RTE_ALIGN(sizeof(struct bs_meta), RTE_MBUF_PRIV_ALIGN);

	n = RTE_MIN(n, (uint64_t)1 << 20);
	dataplane->pool = rte_pktmbuf_pool_create("bufscope", (unsigned)n - 1, POOL_CACHE, priv,
		RTE_MBUF_DEFAULT_BUF_SIZE, memory_node);
	if (dataplane->pool == NULL && memory_node != SOCKET_ID_ANY)
		dataplane->pool = rte_pktmbuf_pool_create("bufscope", (unsigned)n - 1, POOL_CACHE,
			priv, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (dataplane->pool == NULL) {
		snprintf(error, BS_DATAPLANE_ERROR_BYTES,
			"eal.memory: no room for a pool of %u mbufs: %s; give more memory",
			(unsigned)n - 1, rte_strerror(rte_errno));
		return -ENOMEM;
	}
	return 0;
}

static int
load_framers(struct bs_dataplane *dataplane, char *error)
{
	struct bs_config *config = &dataplane->config;
	unsigned bad = 0;
	int ret;

	/* the rows point at their names, which moved with the copy of the config */
	for (unsigned i = 0; i < config->framing_count; i++)
		config->framing[i].name = config->framing_names[i];
	ret = bs_framers_init(&dataplane->framers, config->framing, config->framing_count, &bad);
	if (ret != 0) {
		snprintf(error, BS_DATAPLANE_ERROR_BYTES, "framing.%u: %s", bad, strerror(-ret));
		return ret;
	}
	for (unsigned i = 0; i < config->service_count; i++) {
		struct bs_tracker_service *service = &dataplane->services[i];
		const char *protocol = config->services[i].protocol;

		memcpy(service->address, config->services[i].address, sizeof(service->address));
		service->port = config->services[i].port;
		service->class_ = config->services[i].class_in;
		if (strcmp(protocol, "auto") == 0)
			continue;
		service->framer = bs_framers_find(&dataplane->framers, protocol);
		if (service->framer == NULL) {
			snprintf(error, BS_DATAPLANE_ERROR_BYTES,
				"services.%u.protocol: no protocol \"%s\" is known", i, protocol);
			return -ENOENT;
		}
	}
	return 0;
}

static int
start_ports(struct bs_dataplane *dataplane, char *error)
{
	const struct bs_config *config = &dataplane->config;
	char why[BS_PORT_ERROR_BYTES];

	for (unsigned i = 0; i < config->path_count; i++) {
		struct bs_port *wire = &dataplane->ports[config->paths[i].wire];
		struct bs_port *service = &dataplane->ports[config->paths[i].service];

		wire->peer = service;
		service->peer = wire;
		wire->is_wire = true;
	}
	for (unsigned i = 0; i < config->port_count; i++) {
		int ret;

		dataplane->port_list[i] = &dataplane->ports[i];
		ret = bs_port_start(&dataplane->ports[i], &config->ports[i], i,
			dataplane->lcore_count, dataplane->pool, why);
		if (ret != 0) {
			snprintf(error, BS_DATAPLANE_ERROR_BYTES, "%s", why);
			return ret;
		}
	}
	return 0;
}

static struct bs_lcore *
create_lcore(struct bs_dataplane *dataplane, unsigned index, unsigned lcore_id)
{
	const struct bs_config *config = &dataplane->config;
	struct bs_lcore *lcore = rte_zmalloc("bs_lcore", sizeof(*lcore), RTE_CACHE_LINE_SIZE);
	struct bs_tracker_config tracker = {
		.max_flows = config->tables.flows,
		.max_rpcs = config->tables.rpcs,
		.frame_bytes = bs_config_frame_bytes(config),
		.framers = &dataplane->framers,
		.services = dataplane->services,
		.service_count = config->service_count,
		.own_buffers = true,
		.node = config->node,
		.source = (uint16_t)index,
		.sample = config->records.sample,
		.idle_ns = FLOW_IDLE_NS,
		.check = getenv("BUFSCOPE_CHECK") != NULL,
		.sink = {bs_lcore_put, lcore},
	};
	char name[RTE_RING_NAMESIZE];

	if (lcore == NULL)
		return NULL;
	memcpy(tracker.detect_ns, config->detect_ns, sizeof(tracker.detect_ns));
	lcore->dataplane = dataplane;
	lcore->index = index;
	lcore->lcore_id = lcore_id;
	lcore->t_turn = lcore->heartbeat_ns = bs_clock_now_ns();
	lcore->doorbell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	lcore->tracker = bs_tracker_create(&tracker);
	lcore->fragments = bs_fragments_create(FRAGMENTED_PER_LCORE);
	snprintf(name, sizeof(name), "bsrec%u", index);
	lcore->records = rte_ring_create_elem(
		name, BS_UNIT_BYTES, BS_RING_UNITS, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	dataplane->lcores[index] = lcore;
	return lcore->doorbell < 0 || lcore->tracker == NULL || lcore->fragments == NULL ||
			       lcore->records == NULL
		       ? NULL
		       : lcore;
}

static void
destroy_lcore(struct bs_lcore *lcore)
{
	if (lcore == NULL)
		return;
	bs_wiring_fini(lcore);
	bs_tracker_destroy(lcore->tracker);
	bs_fragments_destroy(lcore->fragments);
	rte_ring_free(lcore->records);
	if (lcore->doorbell >= 0)
		close(lcore->doorbell);
	rte_free(lcore);
}

struct bs_dataplane *
bs_dataplane_create(const struct bs_config *config, const unsigned *lcore_ids, unsigned lcore_count,
	int memory_node, char error[BS_DATAPLANE_ERROR_BYTES])
{
	struct bs_dataplane *dataplane = calloc(1, sizeof(*dataplane));
	rte_cpuset_t home;

	if (dataplane == NULL) {
		snprintf(error, BS_DATAPLANE_ERROR_BYTES, "out of memory");
		return NULL;
	}
	rte_thread_get_affinity(&home);
	dataplane->config = *config;
	dataplane->lcore_count = lcore_count;
	dataplane->run_delay_ns = bs_run_delay_ns;
	dataplane->t_start = bs_clock_now_ns();
	if (register_flag(error) != 0 || load_framers(dataplane, error) != 0 ||
		create_pool(dataplane, memory_node, error) != 0 ||
		start_ports(dataplane, error) != 0)
		goto fail;
	snprintf(error, BS_DATAPLANE_ERROR_BYTES,
		"eal.memory: no room for flows, RPCs and queues; give more memory, or smaller "
		"queues (app_queue.size) and tables (tables.flows, tables.rpcs)");
	for (unsigned i = 0; i < lcore_count; i++) {
		bs_lcore_visit(lcore_ids[i]);
		if (create_lcore(dataplane, i, lcore_ids[i]) == NULL)
			goto fail;
	}
	if (bs_wiring_init(dataplane) != 0)
		goto fail;
	rte_thread_set_affinity(&home);
	dataplane->store = bs_store_create();
	dataplane->collector = bs_collector_create(dataplane);
	if (dataplane->store == NULL || dataplane->collector == NULL)
		goto fail;
	error[0] = '\0';
	return dataplane;
fail:
	bs_dataplane_destroy(dataplane);
	return NULL;
}

void
bs_dataplane_finish(struct bs_dataplane *dataplane, uint64_t t_ns)
{
	for (unsigned i = 0; i < dataplane->lcore_count; i++) {
		struct bs_lcore *lcore = dataplane->lcores[i];

		bs_wiring_drop_all(lcore);
		bs_tracker_finish(lcore->tracker, t_ns);
	}
}

void
bs_dataplane_destroy(struct bs_dataplane *dataplane)
{
	if (dataplane == NULL)
		return;
	bs_collector_destroy(dataplane->collector);
	for (unsigned i = 0; i < dataplane->config.port_count; i++)
		bs_port_stop(&dataplane->ports[i], &dataplane->config.ports[i]);
	for (unsigned i = 0; i < dataplane->lcore_count; i++)
		destroy_lcore(dataplane->lcores[i]);
	for (unsigned i = 0; i < dataplane->queue_count; i++)
		bs_queue_destroy(dataplane->queues[i]);
	free(dataplane->queues);
	bs_store_destroy(dataplane->store);
	rte_mempool_free(dataplane->pool);
	free(dataplane);
}

void
bs_dataplane_reload(struct bs_dataplane *dataplane, const struct bs_config *config)
{
	memcpy(dataplane->config.detect_ns, config->detect_ns, sizeof(config->detect_ns));
	dataplane->config.records = config->records;
	for (unsigned i = 0; i < config->service_count; i++) {
		struct bs_config_service *service = &dataplane->config.services[i];

		service->slo_ns = config->services[i].slo_ns;
		service->operation_count = config->services[i].operation_count;
		memcpy(service->operations, config->services[i].operations,
			sizeof(service->operations));
	}
	for (unsigned i = 0; i < dataplane->lcore_count; i++)
		bs_tracker_reload(
			dataplane->lcores[i]->tracker, config->detect_ns, config->records.sample);
	bs_collector_reload(dataplane->collector);
}

static int
fault_stall(struct bs_lcore *lcore, const char *value)
{
	uint64_t ns;

	if (bs_duration_parse(value, &ns) != 0 || ns == 0 || ns > BS_NS_PER_S)
		return -EINVAL;
	__atomic_store_n(&lcore->fault_stall_ns, ns, __ATOMIC_RELAXED);
	return 0;
}

static int
fault_drop(struct bs_lcore *lcore, const char *value)
{
	unsigned long count;
	char *end;

	errno = 0;
	count = strtoul(value, &end, 10);
	if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || count == 0 ||
		count > FAULT_DROPS_MAX)
		return -EINVAL;
	__atomic_store_n(&lcore->fault_drops, (uint32_t)count, __ATOMIC_RELAXED);
	return 0;
}

int
bs_dataplane_fault(struct bs_dataplane *dataplane, const char *kind, const char *value)
{
	struct bs_lcore *lcore = dataplane->lcores[0];
	int ret = -ENOENT;

	if (!dataplane->config.faults)
		return -EPERM;
	if (strcmp(kind, "stall") == 0)
		ret = fault_stall(lcore, value);
	else if (strcmp(kind, "drop") == 0)
		ret = fault_drop(lcore, value);
	if (ret == 0)
		bs_lcore_ring(lcore);
	return ret;
}
