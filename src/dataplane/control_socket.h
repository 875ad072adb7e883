/* SPDX-License-Identifier: BSD-3-Clause */
/* A listening unix socket in a directory that must be ours. Used by control.c only. */
#pragma once

#include <sys/types.h>
#include <sys/un.h>

#include "status.h"

struct control_socket {
	int fd; /* -1: none */
	struct sockaddr_un address;
	dev_t device; /* of the socket's file, to remove no other */
	ino_t inode;
};

/* 0, or -errno with a line in error: see bs_control_create. */
int control_socket_listen(
	struct control_socket *s, const char *path, char error[BS_STATUS_ERROR_BYTES]);
void control_socket_close(struct control_socket *s);
