/* SPDX-License-Identifier: BSD-3-Clause */
/* One dotted log topic per file that logs: BS_LOG_TOPIC(bufscope.port). Never used in packet code. */
#pragma once

#include <rte_log.h>

#define BS_LOG_TOPIC(topic) RTE_LOG_REGISTER(bs_logtype, topic, NOTICE)

#define BS_LOG(level, format, ...)                                                                 \
	rte_log(RTE_LOG_##level, (uint32_t)bs_logtype, "bufscope: " format "\n", ##__VA_ARGS__)
