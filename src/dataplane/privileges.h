/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What bufscoped gives up once its ports and sockets stand. Capabilities belong
 * to threads, and by then EAL has made many; so each thread is interrupted by a
 * signal and drops its own. Only the main thread keeps what later work needs.
 * Uses no DPDK, so that a test can watch it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "config.h"

/* One capability that the main thread keeps, and what it does with it. */
struct bs_kept {
	unsigned number; /* linux/capability.h */
	const char *name;
	const char *why;
};
#define BS_KEPT_MAX 8u

struct bs_privileges {
	bool wanted, dropped;
	bool change_user; /* to uid and gid, else -1 */
	uid_t uid;
	gid_t gid;
	char user[BS_CONFIG_USER]; /* who the process is once it has dropped */
	unsigned kept_count;
	struct bs_kept kept[BS_KEPT_MAX];
};

#define BS_PRIVILEGES_ERROR_BYTES 256u

/*
 * What will be dropped and kept, by the config; changes nothing. Before EAL, so
 * that a wrong user is told early. 0, or -ENOENT with one line in error if
 * privileges.user is no user.
 */
int bs_privileges_plan(const struct bs_config *config, struct bs_privileges *privileges,
	char error[BS_PRIVILEGES_ERROR_BYTES]);

/*
 * Drops: in every thread the bounding set but what is kept, and for good the way
 * to new privileges; then changes uid and gid if that is planned; then all
 * capabilities, but in the calling thread what is kept. Threads made later
 * inherit from those that made them. Does nothing if the plan says so. Main
 * thread, before lcores are launched. 0, or -errno with one line in error: then
 * the process must not go on.
 */
int bs_privileges_drop(struct bs_privileges *privileges, char error[BS_PRIVILEGES_ERROR_BYTES]);
