/* SPDX-License-Identifier: BSD-3-Clause */
/* See sandbox.h. The order matters: a change of uid clears the parent-death signal. */
#include "sandbox.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define MEMORY_MAX_BYTES (1ull << 30)
#define DESCRIPTORS_MAX 32u

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
	__has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

static int
bound(int resource, rlim_t max)
{
	struct rlimit limit;

	if (getrlimit((__rlimit_resource_t)resource, &limit) != 0)
		return -errno;
	if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < max)
		max = limit.rlim_max;
	limit = (struct rlimit){max, max};
	return setrlimit((__rlimit_resource_t)resource, &limit) == 0 ? 0 : -errno;
}

static int
bound_all(void)
{
#ifndef SANITIZED
	int ret = bound(RLIMIT_AS, MEMORY_MAX_BYTES);

	if (ret != 0)
		return ret;
#endif
	return bound(RLIMIT_NOFILE, DESCRIPTORS_MAX);
}

static int
drop_to(uid_t uid, gid_t gid)
{
	if (geteuid() == 0 && setgroups(0, NULL) != 0)
		return -errno;
	if (setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0)
		return -errno;
	/* Trust is good: root must be out of reach. */
	if (uid != 0 && setuid(0) == 0)
		return -EPERM;
	return 0;
}

int
bs_sandbox_enter(const struct bs_sandbox *sandbox, const char **step)
{
	int ret;

	*step = "limit resources";
	ret = bound_all();
	if (ret != 0)
		return ret;
	if (sandbox->drop) {
		*step = "change uid and gid";
		ret = drop_to(sandbox->uid, sandbox->gid);
		if (ret != 0)
			return ret;
	}
	*step = "forbid new privileges";
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -errno;
	*step = "follow the parent's end";
	if (sandbox->die_with_parent && prctl(PR_SET_PDEATHSIG, SIGTERM) != 0)
		return -errno;
	return 0;
}
