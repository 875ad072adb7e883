/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control socket: a stream socket in the instance's runtime directory, for
 * its owner and whom the config lets in. A request is a line of JSON,
 * {"command": "/bufscope/anomalies", "params": "32"}, and so is the answer:
 * {"result": {...}} or {"error": "..."}; requests of a connection are answered
 * in order. One thread drives it with bs_control_step(); nothing in it blocks.
 */
#pragma once

#include "control_socket.h"
#include "status.h"

#define BS_CONTROL_CLIENTS 16u	       /* one more replaces the one that was quiet for longest */
#define BS_CONTROL_REQUEST_BYTES 4096u /* a longer line ends the connection */
#define BS_CONTROL_BACKLOG_BYTES (1u << 20) /* a client that leaves more unread is dropped */

struct bs_control;

/*
 * Listens at path, for whom access lets in. The directory must be one that only
 * root or the caller can write, and no symbolic link. A socket of ours that
 * nobody listens on any more is replaced. source outlives the control. NULL with
 * errno and one line in error: EADDRINUSE (another instance listens; error names
 * its pid and uid), EEXIST (not a socket, or somebody else's), EPERM (directory),
 * EBUSY (another instance is starting here), ENAMETOOLONG, or what the system
 * said.
 */
struct bs_control *bs_control_create(const char *path, const struct control_access *access,
	const struct bs_status_source *source, char error[BS_STATUS_ERROR_BYTES]);

/* Closes all and removes the socket, if it is still this one. NULL is fine. */
void bs_control_destroy(struct bs_control *control);

/* Readable when bs_control_step has work; for poll loops. */
int bs_control_fd(const struct bs_control *control);

/*
 * Serves what is ready, waiting up to timeout_ms for it (0: not at all, -1: for
 * ever). 0, -EINTR when a signal came first, or what epoll_wait said. Driving
 * thread.
 */
int bs_control_step(struct bs_control *control, int timeout_ms);
