/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See privileges.h. The bounding set goes first, which needs a capability; then
 * uid and gid, for which glibc itself goes through all threads; then the
 * capabilities. Each of the two rounds of ours ends when /proc/self/task lists
 * no thread that has not done it.
 */
#include "privileges.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "capabilities.h"
#include "identity.h"

#define THREADS_MAX 512u
#define LOOK_AGAIN_NS 1000000l
#define LOOKS_MAX 2000u /* 2 s: a thread that has not come by then blocks the signal */

/* --- what is kept, and why --------------------------------------------------------- */

static bool
has_kernel_interfaces(const struct bs_config *config)
{
	for (unsigned i = 0; i < config->port_count; i++) {
		for (unsigned d = 0; d < config->ports[i].device_count; d++) {
			const char *device = config->ports[i].device[d];

			if (strncmp(device, "net_af_xdp", 10) == 0 ||
				strncmp(device, "net_af_packet", 13) == 0 ||
				strncmp(device, "net_tap", 7) == 0)
				return true;
		}
	}
	return false;
}

static bool
has_probed_services(const struct bs_config *config)
{
	for (unsigned i = 0; i < config->service_count; i++) {
		if (config->services[i].probe)
			return true;
	}
	return false;
}

static const struct {
	struct bs_kept kept;
	bool (*needed)(const struct bs_config *config);
} uses[] = {
	{{CAP_NET_ADMIN, "CAP_NET_ADMIN",
		 "take the XDP program and promiscuous mode off at the end"},
		has_kernel_interfaces},
	{{CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH",
		 "find another user's service, by its sockets or its pid file"},
		has_probed_services},
	{{CAP_SYS_PTRACE, "CAP_SYS_PTRACE",
		 "find another user's service, and see its threads if /proc hides them"},
		has_probed_services},
};

int
bs_privileges_plan(const struct bs_config *config, struct bs_privileges *privileges,
	char error[BS_PRIVILEGES_ERROR_BYTES])
{
	struct bs_identity user;
	char number[16];

	*privileges = (struct bs_privileges){.uid = (uid_t)-1, .gid = (gid_t)-1};
	snprintf(number, sizeof(number), "%u", geteuid());
	if (bs_identity_find(number, &user) == 0)
		snprintf(privileges->user, sizeof(privileges->user), "%s", user.name);
	privileges->wanted = config->privileges.drop;
	if (!privileges->wanted)
		return 0;
	for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
		if (uses[i].needed(config))
			privileges->kept[privileges->kept_count++] = uses[i].kept;
	}
	if (config->privileges.user[0] == '\0')
		return 0;
	if (bs_identity_find(config->privileges.user, &user) != 0) {
		snprintf(error, BS_PRIVILEGES_ERROR_BYTES,
			"privileges.user: there is no user \"%s\"; add it (adduser --system), or "
			"name another",
			config->privileges.user);
		return -ENOENT;
	}
	privileges->change_user = true;
	privileges->uid = user.uid;
	privileges->gid = user.gid;
	snprintf(privileges->user, sizeof(privileges->user), "%s", user.name);
	return 0;
}

/* --- every thread ------------------------------------------------------------------ */

enum { UNSEEN, ASKED, DONE };

/* What the handler is to do and who has done it. Written before any thread is asked. */
static struct {
	int (*act)(uint64_t keep);
	int error; /* of the thread that failed last */
	unsigned count;
	struct {
		pid_t tid;
		int state;
	} threads[THREADS_MAX];
} turn;

static void
on_signal(int number)
{
	const int saved = errno;
	const pid_t self = (pid_t)syscall(SYS_gettid);
	int ret;

	(void)number;
	ret = turn.act(0);
	if (ret != 0)
		__atomic_store_n(&turn.error, ret, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < THREADS_MAX; i++) {
		if (turn.threads[i].tid == self)
			__atomic_store_n(&turn.threads[i].state, DONE, __ATOMIC_RELEASE);
	}
	errno = saved;
}

/* 1 if the thread has acted, 0 if it will, -errno. */
static int
ask_thread(pid_t tid, int number)
{
	unsigned i = 0;

	while (i < turn.count && turn.threads[i].tid != tid)
		i++;
	if (i == THREADS_MAX)
		return -E2BIG;
	if (i < turn.count)
		return __atomic_load_n(&turn.threads[i].state, __ATOMIC_ACQUIRE) == DONE;
	turn.threads[i].state = ASKED;
	turn.threads[i].tid = tid;
	turn.count++;
	/* one that has ended meanwhile is not listed any more next time */
	return syscall(SYS_tgkill, getpid(), tid, number) == 0 || errno == ESRCH ? 0 : -errno;
}

/* How many threads but this one have yet to act, or -errno. */
static int
ask_all(int number)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	int missing = 0, ret = 0;

	if (dir == NULL)
		return -errno;
	while (ret >= 0 && (entry = readdir(dir)) != NULL) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid == 0 || tid == (pid_t)syscall(SYS_gettid))
			continue;
		ret = ask_thread(tid, number);
		missing += ret == 0;
	}
	closedir(dir);
	return ret < 0 ? ret : missing;
}

/* act(0) in every other thread. */
static int
in_other_threads(int (*act)(uint64_t keep))
{
	const struct timespec pause = {0, LOOK_AGAIN_NS};
	const int number = SIGRTMAX - 1;
	struct sigaction ours = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;
	int missing = 1;

	memset(&turn, 0, sizeof(turn));
	turn.act = act;
	sigemptyset(&ours.sa_mask);
	if (sigaction(number, &ours, &before) != 0)
		return -errno;
	for (unsigned i = 0; i < LOOKS_MAX && missing > 0; i++) {
		missing = ask_all(number);
		if (missing > 0)
			nanosleep(&pause, NULL);
	}
	/* with a signal still on its way, its default would end the process */
	if (missing == 0)
		sigaction(number, &before, NULL);
	if (missing != 0)
		return missing < 0 ? missing : -ETIMEDOUT;
	return __atomic_load_n(&turn.error, __ATOMIC_RELAXED);
}

/* --- drop -------------------------------------------------------------------------- */

static int
change_user(const struct bs_privileges *privileges)
{
	/* of this thread only: the others lose all of theirs by the change */
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0 || setgroups(0, NULL) != 0 ||
		setresgid(privileges->gid, privileges->gid, privileges->gid) != 0 ||
		setresuid(privileges->uid, privileges->uid, privileges->uid) != 0)
		return -errno;
	return prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) == 0 ? 0 : -errno;
}

static int
drop(const struct bs_privileges *privileges, uint64_t keep, const char **step)
{
	int ret;

	*step = "bound the capabilities";
	ret = in_other_threads(bs_capabilities_bound);
	if (ret == 0)
		ret = bs_capabilities_bound(keep);
	if (ret != 0)
		return ret;
	if (privileges->change_user) {
		*step = "become privileges.user";
		ret = change_user(privileges);
		if (ret != 0)
			return ret;
	}
	*step = "drop the capabilities";
	ret = in_other_threads(bs_capabilities_keep);
	return ret != 0 ? ret : bs_capabilities_keep(keep);
}

/* Started without it, we need not say that we keep it. */
static void
keep_what_is_there(struct bs_privileges *privileges)
{
	const uint64_t permitted = bs_capabilities_permitted();
	unsigned count = 0;

	for (unsigned i = 0; i < privileges->kept_count; i++) {
		if ((permitted & BS_CAPABILITY(privileges->kept[i].number)) != 0)
			privileges->kept[count++] = privileges->kept[i];
	}
	privileges->kept_count = count;
}

int
bs_privileges_drop(struct bs_privileges *privileges, char error[BS_PRIVILEGES_ERROR_BYTES])
{
	uint64_t keep = 0;
	const char *step;
	int ret;

	if (!privileges->wanted)
		return 0;
	keep_what_is_there(privileges);
	for (unsigned i = 0; i < privileges->kept_count; i++)
		keep |= BS_CAPABILITY(privileges->kept[i].number);
	ret = drop(privileges, keep, &step);
	if (ret != 0)
		snprintf(error, BS_PRIVILEGES_ERROR_BYTES,
			"cannot %s: %s; to go on with all of them, set privileges.drop to false",
			step, strerror(-ret));
	privileges->dropped = ret == 0;
	return ret;
}
