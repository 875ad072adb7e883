/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How an analyzer comes to bufscoped, and who may be one: the spawner's child,
 * or with analyzer.mode external who connects to <runtime>/analyzer.sock and is
 * root, the analyzer's user, or bufscoped's own. Uses no DPDK.
 */
#pragma once

#include <stdint.h>

#include "control_socket.h"
#include "identity.h"
#include "spawner.h"

struct bs_analyzer_link {
	const struct bs_config *config;
	struct bs_identity user; /* who it becomes, if bufscoped is root */
	uid_t own;		 /* bufscoped's uid */
	struct bs_spawner spawner;
	struct control_socket listener;
	uint64_t refused; /* who connected and may not be one */
};

/*
 * Finds out who the analyzer is, and in mode child starts its spawner, with the
 * files of the journal if there is one: before
 * any thread and EAL. config outlives the link. 0, or -errno with one line in
 * error: -ENOENT (no such user; no program bufscope-analyzer), or what
 * bs_journal_files_open or bs_spawner_start said. Main thread.
 */
int bs_analyzer_link_start(struct bs_analyzer_link *link, const struct bs_config *config,
	char error[BS_STATUS_ERROR_BYTES]);

/* In mode external: listens in the runtime directory. 0, or -errno with a line in error. */
int bs_analyzer_link_listen(struct bs_analyzer_link *link, const char *directory,
	const struct control_access *access, char error[BS_STATUS_ERROR_BYTES]);

/* Readable when bs_analyzer_link_take has something to do; -1: never. */
int bs_analyzer_link_fd(const struct bs_analyzer_link *link);

/*
 * Never waits. The SOCK_SEQPACKET socket of an analyzer that has come, which the
 * caller owns from then on. -EAGAIN: none has; -EACCES: one that may not be, which
 * is counted, closed and told on stderr (the 1st, 2nd, 4th, 8th ... time); else
 * what bs_spawner_poll or accept said.
 */
int bs_analyzer_link_take(struct bs_analyzer_link *link);

/* Ends spawner and analyzer, closes and removes the socket. */
void bs_analyzer_link_stop(struct bs_analyzer_link *link);
