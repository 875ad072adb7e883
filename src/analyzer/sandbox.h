/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the analyzer gives up before it reads the first record: it parses what
 * others sent, and needs nothing but what is open already.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct bs_sandbox {
	bool drop; /* become uid and gid, without supplementary groups */
	uid_t uid;
	gid_t gid;
	bool die_with_parent; /* SIGTERM when the parent ends */
	bool loose;	      /* no bounds, change of root, filter: for valgrind and debuggers */
	const int *keep;      /* descriptors that stay open beside stderr */
	unsigned keep_count;
};

/*
 * Bounds memory and descriptors, closes what is not kept, leaves the network, the
 * file system and all privileges behind for good, and at last forbids system
 * calls but those of bs_filter_load. Leaving network and file system needs
 * privileges: without them, the filter alone keeps it from both. A build with a
 * sanitizer, which reserves terabytes and reads /proc, is always loose. 0, or -errno with *step
 * naming what failed: then the process must not go on.
 */
int bs_sandbox_enter(const struct bs_sandbox *sandbox, const char **step);
