/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What was found, in captures or in journals: RPCs with their verdicts, services
 * and incidents, each with what its numbers mean. Output is made from this.
 */
#pragma once

#include "bs_histo.h"
#include "bs_names.h"
#include "groups.h"

#define FINDINGS_SERVICES (BS_MAX_SERVICES + 1) /* the last is "other" */

/* What is told of a service. */
struct findings_service {
	uint64_t outcomes[BS_OUTCOME_COUNT];
	uint8_t protocol;
	struct bs_histo latency, service;
};

/* One run of bufscoped, or one replay: a number means the same throughout. */
struct findings_run {
	struct findings_run *next;
	struct bs_names names;
	struct findings_service *services[FINDINGS_SERVICES]; /* NULL: no RPC */
};

struct findings_incident {
	struct bs_rec_incident record;
	const struct findings_run *run;
};

/* A service of one run or several, by name. */
struct findings_total {
	const char *name, *protocol;
	struct findings_service *service;
};

/* All zero: nothing. */
struct findings {
	struct groups groups;
	uint64_t anomalies; /* of them */
	struct findings_run *runs, *last_run;
	struct findings_incident *incidents;
	size_t incident_count, incident_room;
	struct findings_total *totals; /* by findings_total() */
	size_t total_count;
};

/* Another run, whose names are yet to be learned. NULL with errno ENOMEM. */
struct findings_run *findings_begin_run(struct findings *findings);

/* What is told of that service of a run; made when its first RPC comes up. NULL: no memory. */
struct findings_service *findings_service(
	struct findings_run *run, unsigned number, unsigned protocol);

/* Adds an RPC to what is told of its service. 0 or -ENOMEM. */
int findings_account(struct findings_run *run, const struct bs_rec_rpc *rpc);

/* A new or changed incident of the newest run. 0 or -ENOMEM. */
int findings_incident(struct findings *findings, const struct bs_rec_incident *incident);

/* When all is in: sums services of the same name. 0 or -ENOMEM. */
int findings_total(struct findings *findings);

void findings_free(struct findings *findings);
