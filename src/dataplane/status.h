/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What can be asked of bufscoped: one table of commands, each answered with a
 * JSON object made from a snapshot of the counters, the stored verdicts and the
 * configuration. The control socket sends the objects as they are, the DPDK
 * telemetry socket sends them flattened. Needs no DPDK.
 */
#pragma once

#include <jansson.h>

#include "bs_names.h"
#include "config.h"
#include "privileges.h"
#include "snapshot.h"
#include "store.h"

#define BS_STATUS_ERROR_BYTES 256u

/* An lcore whose last heartbeat is older than this is reported as hung: 10 sleeps of an idle one.
 */
#define BS_STATUS_HUNG_NS 100000000u

/* Most RPCs or incidents in one answer. */
#define BS_STATUS_PAGE 32u

/* Where answers come from. All pointers outlive their users; the functions may run on any thread.
 */
struct bs_status_source {
	/* Fills *snapshot (not zeroed before). 0 or -errno. */
	int (*snapshot)(void *context, struct bs_snapshot *snapshot);
	/* Injects a debug fault. 0, or -errno with a line in error. NULL: there are none. */
	int (*fault)(void *context, const char *kind, const char *value,
		char error[BS_STATUS_ERROR_BYTES]);
	void *context;
	struct bs_store *store;
	const struct bs_names *names;
	const struct bs_config *config;		/* only what a reload cannot change is read */
	const struct bs_privileges *privileges; /* NULL: not told */
	const char *analyzer_user;		/* who the analyzer is; NULL: not told */
};

struct bs_status_command {
	const char *name; /* "/bufscope/chain" */
	const char *list; /* the key of the answer that is a list to page through, or NULL */
	const char *help; /* under 64 characters, as rte_telemetry wants */
	int (*answer)(const struct bs_status_source *source, const struct bs_snapshot *snapshot,
		const char *params, json_t **result, char error[BS_STATUS_ERROR_BYTES]);
};

/* Ends with name NULL. */
extern const struct bs_status_command bs_status_commands[];

/*
 * Answers a command. params: what follows the first comma, NULL or "" for none.
 * 0 with the caller's reference in *result; or with one line in error -ENOENT
 * (no such command or RPC), -EINVAL (params), -EPERM (faults not allowed),
 * -ENOMEM, or what snapshot or fault returned. Any thread.
 */
int bs_status_answer(const struct bs_status_source *source, const char *command, const char *params,
	json_t **result, char error[BS_STATUS_ERROR_BYTES]);

/*
 * What keeps bufscoped from seeing or forwarding as it could: an array of
 * {"component", "when", "age_ns", "problem", "remedy"}, empty if all is well. when: "now", or
 * "past" if it has not happened for a minute; age_ns: since it last did, null where it is so
 * all the time. NULL: no memory.
 */
json_t *bs_status_problems(const struct bs_config *config, const struct bs_snapshot *snapshot);
