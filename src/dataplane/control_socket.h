/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A listening unix socket in a directory that must be ours, and who may connect
 * to it. The instance has up to three such sockets: of control, of an analyzer
 * started by hand, and DPDK's own.
 */
#pragma once

#include <sys/types.h>
#include <sys/un.h>

#include "status.h"

/* Whose a socket is. A number of -1 leaves what bind() gave it. */
struct control_access {
	uid_t owner;
	gid_t group;
	mode_t mode;
};

struct control_socket {
	int fd; /* -1: none */
	struct sockaddr_un address;
	dev_t device; /* of the socket's file, to remove no other */
	ino_t inode;
};

/* From `control` of the config. 0, or -ENOENT with one line in error: no such user or group. */
int control_access_plan(const struct bs_config *config, struct control_access *access,
	char error[BS_STATUS_ERROR_BYTES]);

/* Gives the file at path, in a directory of ours, to whom access says. 0 or -errno. */
int control_access_apply(const struct control_access *access, const char *path);

/*
 * type: SOCK_STREAM or SOCK_SEQPACKET. 0, or -errno with a line in error: see
 * bs_control_create.
 */
int control_socket_listen(struct control_socket *s, const char *path, int type,
	const struct control_access *access, char error[BS_STATUS_ERROR_BYTES]);

/* Removes the file too, if it is still this socket. */
void control_socket_close(struct control_socket *s);
