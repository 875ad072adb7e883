/* SPDX-License-Identifier: BSD-3-Clause */
#include "identity.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWN_USER "bufscope"
#define LEAST_USER "nobody"
#define LEAST_ID 65534u /* where there is no such user either */

/* All digits, and not the number that means "no change" to the kernel. */
static bool
parse_id(const char *text, unsigned *id)
{
	unsigned long long value;

	if (text[0] == '\0' || strspn(text, "0123456789") != strlen(text) || strlen(text) > 10)
		return false;
	value = strtoull(text, NULL, 10);
	*id = (unsigned)value;
	return value < UINT32_MAX;
}

int
bs_identity_find(const char *user, struct bs_identity *identity)
{
	const struct passwd *entry;
	unsigned id = 0;

	if (parse_id(user, &id))
		entry = getpwuid(id);
	else if ((entry = getpwnam(user)) == NULL)
		return -ENOENT;
	/* a number without an entry is its own group, as it would be in a container */
	identity->uid = entry == NULL ? id : entry->pw_uid;
	identity->gid = entry == NULL ? id : entry->pw_gid;
	snprintf(identity->name, sizeof(identity->name), "%s",
		entry == NULL ? user : entry->pw_name);
	return 0;
}

int
bs_identity_group(const char *group, gid_t *gid)
{
	const struct group *entry;

	if (parse_id(group, gid))
		return 0;
	entry = getgrnam(group);
	if (entry == NULL)
		return -ENOENT;
	*gid = entry->gr_gid;
	return 0;
}

void
bs_identity_analyzer(struct bs_identity *identity)
{
	if (bs_identity_find(OWN_USER, identity) == 0 ||
		bs_identity_find(LEAST_USER, identity) == 0)
		return;
	*identity = (struct bs_identity){.uid = LEAST_ID, .gid = LEAST_ID, .name = "65534"};
}
