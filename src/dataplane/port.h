/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports: from the device strings of the config to started ethdevs, and their statistics. */
#pragma once

#include <rte_ethdev.h>

#include "config.h"
#include "snapshot.h"
#include "stamp.h"

struct bs_port {
	char name[24];
	uint16_t id;	   /* of the ethdev */
	unsigned index;	   /* in the config */
	unsigned if_index; /* the kernel's interface that it is on; 0: none */
	uint16_t rx_queues, tx_queues;
	uint16_t mtu;	    /* of the interface behind it, where there is one */
	uint32_t frame_max; /* bytes that it can send, without VLAN tags; BS_PORT_ANY_LENGTH */
	uint8_t free_tags;  /* so many VLAN tags may come on top */
	bool sends_chains;
	bool created; /* vdevs were made by us, and go with us */
	bool is_wire; /* the wire end of a path; else the service end */
	bool trust_shim;
	bool virtual_peer;     /* may send partial checksums, and frames cut to its buffer */
	uint64_t tx_checksums; /* RTE_ETH_TX_OFFLOAD_{TCP,UDP}_CKSUM: those it makes */
	uint64_t rate_bps;
	uint16_t rx_buffer, tx_buffer; /* numbers in records */
	struct bs_port *peer;	       /* the other end of its path */
	int wait_fds[BS_CONFIG_DEVICES * 2];
	unsigned wait_fd_count; /* descriptors that become readable with a packet */
	char driver[32];
	int node; /* NUMA; of the NIC behind it, too. BS_NODE_NONE: none, or not told */
	bool missed_observable;
	bool rss;	       /* the device spreads flows over its rx queues */
	bool promiscuous_ours; /* switched on by us, and so off at the end */
	struct bs_stamp_source stamps;
	bool started;
};

#define BS_PORT_ANY_LENGTH (UINT32_MAX / 2)

#define BS_PORT_ERROR_BYTES 256u

/*
 * Creates the devices, configures `queues` rx and tx queues (fewer where the
 * device has fewer), and starts the port. 0, or -errno with one line in error that says
 * what to do. Control thread.
 */
int bs_port_start(struct bs_port *port, const struct bs_config_port *config, unsigned index,
	unsigned queues, struct rte_mempool *pool, char error[BS_PORT_ERROR_BYTES]);

/* Stops and closes it, and removes vdevs that start() made. Safe on a half-started port. */
void bs_port_stop(struct bs_port *port, const struct bs_config_port *config);

/* Any control thread. */
bool bs_port_link_up(const struct bs_port *port);

/* Its counters now; rx_missed etc. 0 where the PMD does not tell. Any control thread. */
void bs_port_snapshot(const struct bs_port *port, struct bs_snapshot_port *out);
