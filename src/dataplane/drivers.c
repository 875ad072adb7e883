/* SPDX-License-Identifier: BSD-3-Clause */
/* See drivers.h. */
#include "drivers.h"

#include <string.h>

/* Drivers whose peer is this host's kernel or another process: checksums may be left to us. */
static const char *const virtual_drivers[] = {
	"net_af_xdp",
	"net_af_packet",
	"net_tap",
	"net_memif",
	"net_vhost",
	"net_virtio_user",
	"net_virtio",
	"net_pcap",
	"net_ring",
};
/* Drivers that fill imissed. */
static const char *const missed_drivers[] = {
	"net_af_xdp",
	"mlx5_pci",
	"net_ice",
	"net_i40e",
	"net_sfc_efx",
	"net_cn9k",
	"net_cn10k",
	"net_bnxt",
	"net_cxgbe",
	"net_nfp_pf",
	"net_hns3",
	"net_ionic",
	"net_ena",
	"net_ixgbe",
	"net_e1000_igb",
	"net_bufnic",
};

/* Drivers that have no MTU: they hand on any length. net_pcap is one where it writes a file. */
static const char *const any_length_drivers[] = {
	"net_ring",
	"net_null",
	"net_memif",
	"net_vhost",
	"net_virtio_user",
};
/* Drivers that send chains and do not say so. */
static const char *const chain_drivers[] = {
	"net_null",
	"net_pcap",
};

#define IN(driver, list) in(driver, list, sizeof(list) / sizeof((list)[0]))

static bool
in(const char *driver, const char *const *list, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (strcmp(driver, list[i]) == 0)
			return true;
	}
	return false;
}

bool
bs_driver_has_virtual_peer(const char *driver)
{
	return IN(driver, virtual_drivers);
}

bool
bs_driver_counts_missed(const char *driver)
{
	return IN(driver, missed_drivers);
}

bool
bs_driver_takes_any_length(const char *driver)
{
	return IN(driver, any_length_drivers);
}

bool
bs_driver_sends_chains(const char *driver)
{
	return IN(driver, chain_drivers);
}
