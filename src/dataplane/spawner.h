/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who keeps bufscope-analyzer running: a small process that bufscoped forks
 * before EAL init, while it has one thread and no hugepages. It starts the
 * analyzer with one end of a new socketpair, hands the other end to bufscoped,
 * and starts it again when it has died: after 100 ms, doubling to 5 s, from
 * 100 ms again once one has lived 10 s. When bufscoped ends, in whatever way, it
 * ends the analyzer and itself.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct bs_spawner {
	pid_t pid;	   /* of the spawner process; 0: not started */
	int pidfd;	   /* of the same */
	int control;	   /* readable when bs_spawner_poll has something to say */
	unsigned restarts; /* starts of the analyzer but the first, that poll has seen */
	bool gone;	   /* poll has seen that the process has died */
};

/* Open files that every analyzer is given: it may open none itself. */
struct bs_spawner_files {
	const int *fds; /* up to BS_SPAWNER_FILES; they stay the caller's */
	unsigned count;
	const char *option; /* told to it as "<option> FIRST,COUNT[,more]": its descriptors */
	const char *more;   /* NULL: nothing */
};
#define BS_SPAWNER_FILES 16u

/*
 * Forks the spawner. analyzer_path: the program, or NULL for the one next to
 * /proc/self/exe, else in PATH. As root, it is told to become uid and gid; else
 * these are ignored. files may be NULL: none. Call before any thread and before EAL. 0, or -ENOENT
 * or -EACCES when there is no such program to execute, or what socketpair, fork or pidfd_open said;
 * then *spawner is as not started.
 */
int bs_spawner_start(struct bs_spawner *spawner, const char *analyzer_path, uid_t uid, gid_t gid,
	const struct bs_spawner_files *files);

/*
 * Never waits. The SOCK_SEQPACKET socket of an analyzer that was started since,
 * the newest if there were several; the caller owns it, and closes the one it
 * had. -EAGAIN when there is none; -EPIPE when the spawner has died, and no
 * analyzer will come any more. One thread at a time.
 */
int bs_spawner_poll(struct bs_spawner *spawner);

/*
 * Ends the analyzer (SIGTERM, after 1 s SIGKILL) and the spawner, and waits for
 * both: 3 s at most. Does nothing when not started.
 */
void bs_spawner_stop(struct bs_spawner *spawner);
