/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the processes that listen at an address of this host, containers
 * included: the network namespace whose interfaces hold the address, the sockets
 * that listen there, the processes that have them open. Piece by piece, so that
 * a host with many processes holds nobody up. One thread.
 *
 * What it needs beyond the rights of any process: CAP_SYS_PTRACE to see the
 * namespaces and descriptors of others' processes, CAP_DAC_READ_SEARCH where
 * they are other users', CAP_SYS_ADMIN to enter their namespaces.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define BS_TARGET_SOCKETS 16u
#define BS_TARGET_PIDS 32u

/* What stands against a search. */
#define BS_FIND_NO_LOOK 1u    /* a process' namespace or descriptors may not be seen */
#define BS_FIND_NO_ENTER 2u   /* a namespace may not be entered */
#define BS_FIND_ADDRESS 4u    /* a namespace holds the address */
#define BS_FIND_SOCKET 8u     /* something listens */
#define BS_FIND_AMBIGUOUS 16u /* in more than one namespace: nothing is found */

struct bs_target {
	uint8_t address[16]; /* IPv4 mapped */
	uint16_t port;
	/* Found: */
	unsigned flags;
	ino_t netns;
	int diag; /* sock_diag socket in netns, the target's, which keeps netns alive; -1 = none */
	unsigned transport;
	uint32_t inodes[BS_TARGET_SOCKETS];
	unsigned inode_count; /* 0: nothing listens */
	int pids[BS_TARGET_PIDS];
	unsigned pid_count;
};

void bs_target_init(struct bs_target *target, const uint8_t address[16], uint16_t port);
void bs_target_fini(struct bs_target *target);

struct bs_finder;

/* NULL with errno. `max`: targets of one search. */
struct bs_finder *bs_finder_create(unsigned max);
void bs_finder_destroy(struct bs_finder *finder); /* NULL is fine */

/*
 * Begins a search for targets (count of them, until it has ended): what was found of
 * them is forgotten, but for diag. A search that goes on is given up.
 */
void bs_finder_begin(struct bs_finder *finder, struct bs_target *const *targets, unsigned count);

/* Goes on for about `budget` system calls. True: there is no search, or it has ended. */
bool bs_finder_step(struct bs_finder *finder, unsigned budget);

/* Was a process seen in that namespace by the last search? */
bool bs_finder_saw(const struct bs_finder *finder, ino_t netns);

/*
 * Looks for the target's sockets in the namespace of this process only; fills all but
 * pids. 0, or -errno.
 */
int bs_finder_enter(struct bs_finder *finder, int pid, struct bs_target *target);
