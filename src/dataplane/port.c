/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports; see port.h. */
#include "port.h"
#include "drivers.h"
#include "log.h"
#include "topology.h"

#include <dirent.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <rte_bus_vdev.h>
#include <rte_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

BS_LOG_TOPIC("bufscope.port")

#define RX_DESCRIPTORS 1024u
#define TX_DESCRIPTORS 1024u
#define FD_MAX 1024
#define AF_PACKET_FRAME 2048u /* default of framesz */

/* Marks the packet sockets (AF_PACKET, AF_XDP) among our descriptors. */
static void
packet_sockets(bool set[FD_MAX])
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	memset(set, 0, FD_MAX * sizeof(set[0]));
	if (dir == NULL)
		return;
	while ((entry = readdir(dir)) != NULL) {
		int fd = (int)strtol(entry->d_name, NULL, 10), domain = 0;
		socklen_t len = sizeof(domain);

		if (fd > 2 && fd < FD_MAX &&
			getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
			(domain == AF_PACKET || domain == AF_XDP))
			set[fd] = true;
	}
	closedir(dir);
}

/* The PMDs do not name the descriptor they receive on: it is the one that appeared with the port.
 */
static void
find_wait_fds(struct bs_port *port, const bool before[FD_MAX])
{
	const unsigned max = sizeof(port->wait_fds) / sizeof(port->wait_fds[0]);
	bool after[FD_MAX];

	packet_sockets(after);
	port->wait_fd_count = 0;
	for (int fd = 0; fd < FD_MAX && port->wait_fd_count < max; fd++) {
		if (after[fd] && !before[fd])
			port->wait_fds[port->wait_fd_count++] = fd;
	}
}

static int
create_devices(struct bs_port *port, const struct bs_config_port *config, char *error)
{
	char name[RTE_ETH_NAME_MAX_LEN];

	for (unsigned i = 0; i < config->device_count; i++) {
		const char *device = config->device[i];
		const char *args = strchr(device, ',');
		int ret;

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(device, ","), device);
		if (rte_eth_dev_get_port_by_name(name, &port->id) == 0)
			continue; /* exists already */
		ret = rte_vdev_init(name, args == NULL ? "" : args + 1);
		if (ret != 0) {
			snprintf(error, BS_PORT_ERROR_BYTES,
				"ports.%s: device \"%s\" cannot be made: %s; check that the "
				"interface "
				"exists and is up, and that we may open it (root, CAP_NET_RAW)",
				config->name, device, rte_strerror(-ret));
			return ret;
		}
		port->created = true;
	}
	if (rte_eth_dev_get_port_by_name(name, &port->id) != 0) {
		snprintf(error, BS_PORT_ERROR_BYTES,
			"ports.%s: \"%s\" was made but is no Ethernet port", config->name, name);
		return -ENODEV;
	}
	return 0;
}

static int
configure_queues(struct bs_port *port, unsigned queues, struct rte_mempool *pool,
	const struct rte_eth_dev_info *info)
{
	const int socket = rte_eth_dev_socket_id(port->id);
	struct rte_eth_conf conf = {0};
	uint16_t rx_descriptors = RX_DESCRIPTORS, tx_descriptors = TX_DESCRIPTORS;
	int ret;

	port->rx_queues = (uint16_t)RTE_MIN(queues, (unsigned)info->max_rx_queues);
	port->tx_queues = (uint16_t)RTE_MIN(queues, (unsigned)info->max_tx_queues);
	if (port->rx_queues > 1 && info->flow_type_rss_offloads != 0) {
		port->rss = true;
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf =
			info->flow_type_rss_offloads &
			(RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP);
	} else {
		port->rx_queues = 1;
	}
	port->tx_checksums = info->tx_offload_capa &
			     (RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM);
	/*
	 * No checksum offload is asked for on the way in: we check none, and a virtual peer
	 * that hears of it leaves its own to us.
	 */
	port->stamps = bs_stamp_source(
		port->id, info->driver_name, info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_TIMESTAMP);
	if (port->stamps.read != NULL)
		conf.rxmode.offloads |= info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_TIMESTAMP;
	conf.txmode.offloads =
		(info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) | port->tx_checksums;
	ret = rte_eth_dev_configure(port->id, port->rx_queues, port->tx_queues, &conf);
	if (ret == 0)
		ret = rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &rx_descriptors, &tx_descriptors);
	for (uint16_t q = 0; ret == 0 && q < port->rx_queues; q++)
		ret = rte_eth_rx_queue_setup(
			port->id, q, rx_descriptors, (unsigned)socket, NULL, pool);
	for (uint16_t q = 0; ret == 0 && q < port->tx_queues; q++)
		ret = rte_eth_tx_queue_setup(port->id, q, tx_descriptors, (unsigned)socket, NULL);
	return ret;
}

/* Asks the kernel about the interface that a port was made on. False if there is none. */
static bool
ask_interface(unsigned if_index, unsigned long what, struct ifreq *request)
{
	int fd, ret;

	memset(request, 0, sizeof(*request));
	if (if_index == 0 || if_indextoname(if_index, request->ifr_name) == NULL)
		return false;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	ret = ioctl(fd, what, request);
	close(fd);
	return ret == 0;
}

/* Is that interface of the kernel promiscuous by its flags? False if there is none. */
static bool
is_promiscuous(unsigned if_index)
{
	struct ifreq request;

	return ask_interface(if_index, SIOCGIFFLAGS, &request) &&
	       (request.ifr_flags & IFF_PROMISC) != 0;
}

/* Of a frame in a ring of net_af_packet, what its header leaves. */
static uint32_t
af_packet_frame_max(const struct bs_config_port *config)
{
	const char *given = strstr(config->device[config->device_count - 1], "framesz=");
	const unsigned long bytes =
		given == NULL ? AF_PACKET_FRAME : strtoul(given + strlen("framesz="), NULL, 10);

	return (uint32_t)(bytes - TPACKET2_HDRLEN + sizeof(struct sockaddr_ll));
}

/* How long a frame may be that leaves by this port; what is longer, drivers lose without a word. */
static void
find_limits(struct bs_port *port, const struct bs_config_port *config,
	const struct rte_eth_dev_info *info)
{
	struct ifreq request;
	const bool has_interface = ask_interface(port->if_index, SIOCGIFMTU, &request);

	/* DPDK's is 1500 whatever the interface has */
	if (has_interface)
		port->mtu = (uint16_t)RTE_MIN(request.ifr_mtu, UINT16_MAX);
	else if (rte_eth_dev_get_mtu(port->id, &port->mtu) != 0)
		port->mtu = RTE_ETHER_MTU;
	port->sends_chains = (info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) ||
			     bs_driver_sends_chains(port->driver);
	port->frame_max = (uint32_t)port->mtu + RTE_ETHER_HDR_LEN;
	/* the kernel counts one tag as part of the link header */
	port->free_tags = has_interface ? 1 : BS_VLAN_DEPTH_MAX;
	if (bs_driver_takes_any_length(port->driver) ||
		(!has_interface && strcmp(port->driver, "net_pcap") == 0))
		port->frame_max = BS_PORT_ANY_LENGTH;
	else if (strcmp(port->driver, "net_af_packet") == 0)
		port->frame_max = RTE_MIN(port->frame_max, af_packet_frame_max(config));
	else if (strcmp(port->driver, "net_af_xdp") == 0)
		port->frame_max = RTE_MIN(port->frame_max, info->max_rx_pktlen);
}

int
bs_port_start(struct bs_port *port, const struct bs_config_port *config, unsigned index,
	unsigned queues, struct rte_mempool *pool, char error[BS_PORT_ERROR_BYTES])
{
	struct rte_eth_dev_info info;
	bool before[FD_MAX];
	int ret;

	snprintf(port->name, sizeof(port->name), "%s", config->name);
	port->index = index;
	port->trust_shim = config->trust_shim;
	port->rate_bps = config->rate_bps;
	packet_sockets(before);
	ret = create_devices(port, config, error);
	if (ret != 0)
		return ret;
	ret = rte_eth_dev_info_get(port->id, &info);
	port->if_index = ret == 0 ? info.if_index : 0;
	/* before the start, which switches it off */
	port->promiscuous_ours = ret == 0 && !is_promiscuous(port->if_index);
	if (ret == 0)
		ret = configure_queues(port, queues, pool, &info);
	if (ret == 0)
		ret = rte_eth_dev_start(port->id);
	if (ret != 0) {
		snprintf(error, BS_PORT_ERROR_BYTES,
			"ports.%s: \"%s\" does not start: %s (the driver may say why above); is "
			"its interface up, and are there mbufs enough for its rings (eal.memory)?",
			config->name, config->device[config->device_count - 1], rte_strerror(-ret));
		return ret;
	}
	port->started = true;
	snprintf(port->driver, sizeof(port->driver), "%s", info.driver_name);
	/* a vdev takes the node of whoever makes it for its own */
	port->node = port->created
			     ? bs_topology_device_node(config->device[config->device_count - 1])
			     : rte_eth_dev_socket_id(port->id);
	port->virtual_peer = bs_driver_has_virtual_peer(port->driver);
	port->missed_observable = bs_driver_counts_missed(port->driver);
	if (rte_eth_promiscuous_enable(port->id) != 0)
		BS_LOG(DEBUG, "ports.%s: no promiscuous mode\n", config->name);
	if (queues > 1 && !port->rss)
		BS_LOG(NOTICE,
			"ports.%s: %s offers no RSS: its packets come by one lcore, which hands "
			"those of other lcores' flows over to them\n",
			port->name, port->driver);
	find_limits(port, config, &info);
	find_wait_fds(port, before);
	return 0;
}

void
bs_port_stop(struct bs_port *port, const struct bs_config_port *config)
{
	if (port->started) {
		if (port->promiscuous_ours)
			rte_eth_promiscuous_disable(port->id);
		if (rte_eth_dev_stop(port->id) != 0)
			BS_LOG(WARNING, "ports.%s: does not stop\n", port->name);
		if (port->created)
			rte_eth_dev_close(port->id);
		port->started = false;
	}
	for (unsigned i = config->device_count; port->created && i > 0; i--) {
		char name[RTE_ETH_NAME_MAX_LEN];
		const char *device = config->device[i - 1];

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(device, ","), device);
		rte_vdev_uninit(name);
	}
	port->created = false;
}

/* Asks the kernel where it can: drivers on its interfaces (af_xdp, af_packet) always say up. */
bool
bs_port_link_up(const struct bs_port *port)
{
	struct rte_eth_link link = {0};
	struct ifreq request;

	if (port->if_index != 0)
		return ask_interface(port->if_index, SIOCGIFFLAGS, &request) &&
		       (request.ifr_flags & IFF_RUNNING) != 0;
	return rte_eth_link_get_nowait(port->id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

void
bs_port_snapshot(const struct bs_port *port, struct bs_snapshot_port *out)
{
	struct rte_eth_stats stats = {0};

	memset(out, 0, sizeof(*out));
	snprintf(out->name, sizeof(out->name), "%s", port->name);
	snprintf(out->driver, sizeof(out->driver), "%s", port->driver);
	if (rte_eth_dev_get_name_by_port(port->id, out->device) != 0)
		out->device[0] = '\0';
	out->numa = port->node;
	out->mtu = port->mtu;
	out->queues = port->rx_queues;
	out->rate_bps = port->rate_bps;
	out->rx_missed_observable = port->missed_observable;
	out->rss = port->rss;
	out->link_up = bs_port_link_up(port);
	if (rte_eth_stats_get(port->id, &stats) != 0)
		return;
	out->rx_packets = stats.ipackets;
	out->rx_bytes = stats.ibytes;
	out->tx_packets = stats.opackets;
	out->tx_bytes = stats.obytes;
	out->rx_missed = stats.imissed;
	out->rx_nombuf = stats.rx_nombuf;
	out->rx_errors = stats.ierrors;
}
