/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands of status.h on DPDK's telemetry socket, so that dpdk-telemetry.py
 * alone shows live anomalies. The callbacks run on rte_telemetry's threads.
 */
#pragma once

#include "status.h"

/*
 * Registers all commands; "/bufscope/fault" only where the configuration allows
 * faults. source lives until bs_telemetry_withdraw. A second call is -EALREADY. 0, or what
 * rte_telemetry said. Main thread, after rte_eal_init.
 */
int bs_telemetry_register(const struct bs_status_source *source);

/*
 * From now on each command is answered by an error: rte_telemetry cannot unregister,
 * and its threads go on. None is being answered from the source when this returns.
 * Main thread; also where nothing was registered.
 */
void bs_telemetry_withdraw(void);
