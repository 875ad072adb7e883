/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an analyzer answers, taken apart: verdicts and incidents go to the store,
 * thresholds to whoever judges by them. The analyzer may have been taken over, so
 * a batch is taken only if all of it is valid records, and of these only what is
 * plausible.
 */
#pragma once

#include "plausible.h"
#include "store.h"

struct bs_answers {
	struct bs_store *store;
	void (*threshold)(void *context, unsigned service, uint64_t latency_ns);
	void *context;
	struct bs_rec_journal journal; /* what was said of it last */
	uint64_t bad;		       /* batches that are not valid, records that are no answers */
	uint64_t rejected; /* records about what cannot be; others may read both, racily */
};

/* Takes a batch of `bytes` at an address that is a multiple of 8. One thread. */
void bs_answers_take(struct bs_answers *answers, const struct bs_plausible *here, const void *batch,
	size_t bytes);
