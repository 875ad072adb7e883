/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an analyzer says is well-formed once bs_record_next has passed it, but may
 * still be about things that are not there: it runs with no privileges because it
 * may have been taken over. These tell what cannot be true here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bs_record.h"

struct bs_plausible {
	unsigned service_count; /* services are numbered from 0 to below it; and "other" */
	unsigned buffer_count;	/* of ours, from BS_BUFFER_FIRST_OWN */
	uint64_t t_start;	/* of bufscoped: no RPC ended before it */
	uint64_t t_now;
};

/* Our clock and the analyzer's may drift apart by this until one hears the other again. */
#define BS_PLAUSIBLE_AHEAD_NS 10000000000ull

/*
 * A THRESHOLD: for a service that is there. An INCIDENT: of buffers and services
 * that are there, not later than now, and of no more victims by service than in
 * all. A VERDICT with its RPC, of the same id: of a service and buffers that are
 * there, ended between start and now, whose segments tile its time, with an excess
 * within that time. All have passed validation. Any thread.
 */
bool bs_plausible_threshold(
	const struct bs_plausible *here, const struct bs_rec_threshold *threshold);
bool bs_plausible_incident(const struct bs_plausible *here, const struct bs_rec_incident *incident);
bool bs_plausible_verdict(const struct bs_plausible *here, const struct bs_rec_verdict *verdict,
	const struct bs_rpc_view *rpc);
