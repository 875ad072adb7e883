/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the analyzer gives up before it reads the first record: it parses what
 * others sent, and needs nothing but its socket.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct bs_sandbox {
	bool drop; /* become uid and gid, without supplementary groups */
	uid_t uid;
	gid_t gid;
	bool die_with_parent; /* SIGTERM when the parent ends */
};

/*
 * Bounds memory (not in a build with a sanitizer, which reserves terabytes) and
 * descriptors, drops privileges for good, forbids to regain any. 0, or -errno
 * with *step naming what failed: then the process must not go on.
 */
int bs_sandbox_enter(const struct bs_sandbox *sandbox, const char **step);
