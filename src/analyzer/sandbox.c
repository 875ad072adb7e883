/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See sandbox.h. The order matters: network, root and bounding set need
 * privileges, a change of uid clears the parent-death signal, and the filter
 * forbids all of it.
 */
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "capabilities.h"
#include "filter.h"
#include "sanitized.h"

#define MEMORY_MAX_BYTES (1ull << 30)
#define DESCRIPTORS_MAX 32u

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
	int ret = bound(RLIMIT_CORE, 0); /* it would hold what others sent */

	if (ret == 0)
		ret = bound(RLIMIT_AS, MEMORY_MAX_BYTES);
	return ret == 0 ? bound(RLIMIT_NOFILE, DESCRIPTORS_MAX) : ret;
}

/* Closes all but stderr and what is kept; stdin and stdout become /dev/null. */
static int
close_others(const struct bs_sandbox *sandbox)
{
	unsigned from = STDERR_FILENO + 1;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		return -errno;
	for (;;) {
		unsigned next = UINT32_MAX; /* the first of the rest that stays */

		for (unsigned i = 0; i < sandbox->keep_count; i++) {
			unsigned kept = (unsigned)sandbox->keep[i];

			if (kept >= from && kept < next)
				next = kept;
		}
		if (next > from && close_range(from, next - 1, 0) != 0)
			return -errno;
		if (next == UINT32_MAX)
			return 0;
		from = next + 1;
	}
}

static bool
may(unsigned capability)
{
	return (bs_capabilities_permitted() & BS_CAPABILITY(capability)) != 0;
}

/* An empty namespace, unless we are in one already or may not. */
static int
leave_network(void)
{
	return !may(CAP_SYS_ADMIN) || unshare(CLONE_NEWNET) == 0 ? 0 : -errno;
}

/* The root becomes a directory that has been removed: it is empty, and nothing can be made in it.
 */
static int
leave_file_system(void)
{
	static const char *const places[] = {"/run", "/tmp", "/dev/shm"};
	int ret = 0;

	if (!may(CAP_SYS_CHROOT))
		return 0;
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s/bufscope-XXXXXX", places[i]);
		if (mkdtemp(path) == NULL) {
			ret = -errno;
			continue;
		}
		ret = chdir(path) == 0 ? 0 : -errno;
		rmdir(path);
		if (ret == 0 && (chroot(".") != 0 || chdir("/") != 0))
			ret = -errno;
		return ret;
	}
	return ret;
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

/* Nobody of the same uid may look into it, or trace it. */
static int
hide(void)
{
	return prctl(PR_SET_DUMPABLE, 0) == 0 ? 0 : -errno;
}

static int
follow_parent(void)
{
	return prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 ? 0 : -errno;
}

int
bs_sandbox_enter(const struct bs_sandbox *sandbox, const char **step)
{
	const bool strict = !sandbox->loose && !BS_SANITIZED;
	int ret;

#define STEP(name, call)                                                                           \
	do {                                                                                       \
		*step = (name);                                                                    \
		ret = (call);                                                                      \
		if (ret != 0)                                                                      \
			return ret;                                                                \
	} while (0)

	STEP("limit resources", strict ? bound_all() : 0);
	STEP("close descriptors", close_others(sandbox));
	STEP("leave the network", leave_network());
	STEP("leave the file system", strict ? leave_file_system() : 0);
	STEP("bound capabilities", bs_capabilities_bound(0));
	STEP("change uid and gid", sandbox->drop ? drop_to(sandbox->uid, sandbox->gid) : 0);
	STEP("drop capabilities", bs_capabilities_keep(0));
	STEP("hide", strict ? hide() : 0);
	STEP("follow the parent's end", sandbox->die_with_parent ? follow_parent() : 0);
	STEP("filter system calls", strict ? bs_filter_load() : 0);
#undef STEP
	return 0;
}
