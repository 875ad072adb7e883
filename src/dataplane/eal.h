/* SPDX-License-Identifier: BSD-3-Clause */
/* From the `eal` section of the config to an initialised EAL. */
#pragma once

#include "placement.h"

struct bs_eal {
	unsigned pipeline[BS_CONFIG_LCORES]; /* lcore IDs */
	unsigned pipeline_count;
	unsigned collector; /* lcore ID */
	bool hugepages;
};

#define BS_EAL_ERROR_BYTES 256u

/*
 * Initialises EAL: hugepages if the config wants them or they are there and
 * enough, threads and memory where placement says, no PCI scan unless a port names a PCI device,
 * nothing shared with other processes; extra (extra_count) are arguments for EAL itself. 0, or
 * -errno with one line in error that says what to do. Main thread, once.
 */
int bs_eal_init(const struct bs_config *config, const struct bs_placement *placement,
	char *const *extra, unsigned extra_count, struct bs_eal *eal,
	char error[BS_EAL_ERROR_BYTES]);
