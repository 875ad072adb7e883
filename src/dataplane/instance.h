/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The runtime directory of an instance, <base>/dpdk/<file_prefix>: where EAL puts
 * its telemetry socket and we ours. It is taken before EAL starts, so that a
 * second instance of one prefix is told so before it touches a port, and given
 * back after EAL has ended, so that nothing is left behind.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "control_socket.h"

#define BS_INSTANCE_ERROR_BYTES 512u

struct bs_instance {
	char directory[PATH_MAX];
	char telemetry[256]; /* this process's DPDK telemetry socket; "": not known */
	uid_t user;	     /* who will own it; -1: as it is */
	int fd;		     /* of the directory */
	int lock;	     /* of its lock file; -1: not taken */
	bool taken;	     /* all of the above */
};

/*
 * Makes the directory as EAL would, checks that only root and the caller can
 * change it and those above it (a base with the sticky bit, such as /tmp, will
 * do), and locks it until bs_instance_release or the end of the process. user: who
 * bufscoped will become (-1: stays), and may have left the directory as its own.
 * 0, or -errno with one line in error: -EADDRINUSE (another bufscoped has it;
 * error names its pid), -EPERM (unsafe; error says how to mend it), -ENAMETOOLONG
 * (no room for a socket's name), or what the system said. Main thread.
 */
int bs_instance_take(const char *file_prefix, uid_t user, struct bs_instance *instance,
	char error[BS_INSTANCE_ERROR_BYTES]);

/*
 * Gives DPDK's telemetry socket to whom access says, and lets these pass through
 * the directory and the one above it: search permission, not more. The user given
 * to bs_instance_take owns it from then on, and can so remove the sockets at the
 * end. 0, or -errno with one line in error.
 */
int bs_instance_open(struct bs_instance *instance, const struct control_access *access,
	char error[BS_INSTANCE_ERROR_BYTES]);

/*
 * Removes the files of telemetry socket and lock, and the directory and that above
 * it if they are empty. Nothing if it was not taken. Main thread, after EAL.
 */
void bs_instance_release(struct bs_instance *instance);
