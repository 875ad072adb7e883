/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When what bufscoped loses, refuses or finds wrong last happened. The counters
 * say only how often since the start; looked at once a second, this tells what
 * goes on from what is over.
 */
#pragma once

#include "bs_clock.h"
#include "snapshot.h"

/* A trouble that has not grown for so long is over. */
#define BS_TROUBLE_OVER_NS (60 * BS_NS_PER_S)

struct bs_troubles {
	uint64_t counts[BS_TROUBLE_COUNT]; /* as last seen */
	uint64_t t_last[BS_TROUBLE_COUNT]; /* when it was seen to have grown; 0: never */
};

/* How often, as the snapshot counts it. */
uint64_t bs_trouble_count(const struct bs_snapshot *snapshot, enum bs_trouble trouble);

/* Compares with the last look. One thread; t_last may be read by others, racily. */
void bs_troubles_step(struct bs_troubles *troubles, const struct bs_snapshot *snapshot);
