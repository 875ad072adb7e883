/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds a running bufscoped and asks it over its control socket. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#define CONNECT_ERROR_BYTES 512u

/* How long --wait waits for an instance, and any command for an answer. */
#define CONNECT_WAIT_MS 30000
#define CONNECT_ANSWER_MS 5000

struct connect_target {
	const char *socket;	 /* path, or NULL to search */
	const char *file_prefix; /* of the instance searched for */
	bool wait;		 /* until it is there */
};

/*
 * A descriptor for connect_ask. Searched are the runtime directories that EAL
 * uses; found there, the instance must belong to root or the caller. -errno with
 * one line in error: ENOENT (there is none), EACCES (error names the path, its
 * owner and what to do), EPERM (belongs to someone else), or what the system said.
 */
int connect_open(const struct connect_target *target, char error[CONNECT_ERROR_BYTES]);

/* The result of a command; the caller owns it. NULL with one line in error. */
json_t *connect_ask(
	int fd, const char *command, const char *params, char error[CONNECT_ERROR_BYTES]);
