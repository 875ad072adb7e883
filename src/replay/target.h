/* SPDX-License-Identifier: BSD-3-Clause */
/* A file of output: it appears under its name when it is complete. */
#pragma once

#include <stdio.h>

struct target {
	FILE *stream;
	const char *path;
	char *temporary; /* NULL: path is written to itself */
};

/* path NULL: standard output. What is no regular file is written to itself. 0 or -errno. */
int target_open(struct target *target, const char *path);

/* Puts the file in place if all went well until now (result 0), else removes it. 0 or -errno. */
int target_close(struct target *target, int result);
