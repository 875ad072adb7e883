/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of drivers by their names, beyond what they say of themselves. */
#pragma once

#include <stdbool.h>

/* Its peer is this host's kernel or another process: checksums may be left to us. */
bool bs_driver_has_virtual_peer(const char *driver);

/* It counts packets that its full ring drops (imissed). */
bool bs_driver_counts_missed(const char *driver);

/* It has no MTU: it hands on any length. net_pcap is one where it writes a file. */
bool bs_driver_takes_any_length(const char *driver);

/* It sends chains of segments, whatever its capabilities say. */
bool bs_driver_sends_chains(const char *driver);
