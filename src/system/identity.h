/* SPDX-License-Identifier: BSD-3-Clause */
/* Users and groups by name or number. Reads the system's databases: not after a change of root. */
#pragma once

#include <sys/types.h>

struct bs_identity {
	uid_t uid;
	gid_t gid;     /* the user's primary group */
	char name[33]; /* the number, where the database has no name */
};

/* Who a user is, given as a name or a number. 0, or -ENOENT. */
int bs_identity_find(const char *user, struct bs_identity *identity);

/* Likewise a group's number. 0, or -ENOENT. */
int bs_identity_group(const char *group, gid_t *gid);

/* Who the analyzer is if the configuration does not say: bufscope if there is such a user, else
 * nobody. */
void bs_identity_analyzer(struct bs_identity *identity);
