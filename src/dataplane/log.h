/* SPDX-License-Identifier: BSD-3-Clause */
/* One dotted log topic per file that logs: BS_LOG_TOPIC("bufscope.port"). Never used in packet
 * code. */
#pragma once

#include <rte_common.h>
#include <rte_log.h>

#define BS_LOG_TOPIC(topic)                                                                        \
	static int bs_logtype;                                                                     \
	RTE_INIT(bs_log_register)                                                                  \
	{                                                                                          \
		bs_logtype = rte_log_register_type_and_pick_level(topic, RTE_LOG_NOTICE);          \
	}

#define BS_LOG(level, ...) rte_log(RTE_LOG_##level, (uint32_t)bs_logtype, "bufscope: " __VA_ARGS__)
