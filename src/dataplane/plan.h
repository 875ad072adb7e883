/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What bufscoped would build from a configuration, told without building it: for
 * `bufscoped --check` and `bufscope check`. Whether devices exist and memory is
 * there shows only when it starts.
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "placement.h"

/*
 * {"path", "node", "file_prefix", "memory_bytes", "memory_node" (null: any), "hugepages",
 * "nodes", "threads": [{"thread", "cpus" (as "0-2,5"), "node" (null: several), "why"}], "tables":
 * {"flows", "rpcs", "bytes_per_lcore"}, "ports":
 * [{"port", "toward", "device", "driver" (null: a device that exists), "losses_counted" (null: the
 * driver will tell), "rate_bps"}], "services": [{"service", "address", "port", "protocol",
 * "slo_ns", "class_in", "class_out", "probe"}], "shim": {"tag", "tcp", "udp", "tcp_bytes",
 * "udp_bytes"}, "analyzer", "journal", "chain": [text]}. The caller owns it; NULL: no memory.
 */
json_t *bs_plan_json(const struct bs_config *config, const struct bs_placement *placement);

/* The same for people. */
void bs_plan_print(const json_t *plan, FILE *out);
