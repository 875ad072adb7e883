/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The spawner and its two sides: calls for bufscoped, and the process itself.
 * That process waits in one poll() for all that can happen to it: bufscoped has
 * gone, SIGTERM, the analyzer has died, a delay is over. It reads no clock; the
 * kernel's timer says when.
 */
#include "spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capabilities.h"

#define PROGRAM "bufscope-analyzer"
#define DELAY_FIRST_MS 100u
#define DELAY_MAX_MS 5000u
#define SETTLED_MS 10000u
#define ANALYZER_GRACE_MS 1000
#define SPAWNER_GRACE_MS 3000
#define CONTROL_FD 3
#define FILES_FD 4 /* the first of them */

/* Sent with each socket. */
struct offer {
	uint32_t restarts;
};

/* The spawner process. */
struct keeper {
	const char *path;
	bool drop; /* tell the analyzer to become uid and gid */
	uid_t uid;
	gid_t gid;
	const struct bs_spawner_files *files; /* in FILES_FD and on; NULL: none */
	int control, signals, timer;
	pid_t analyzer; /* 0: none */
	int pidfd;	/* of the analyzer; -1: none */
	unsigned delay_ms;
	uint32_t starts;
};

/* One-shot; the timer's end means "start" without an analyzer, "settled" with one. */
static void
arm(const struct keeper *keeper, unsigned ms)
{
	struct itimerspec when = {
		.it_value = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000},
	};

	timerfd_settime(keeper->timer, 0, &when, NULL);
}

static void
retry_later(struct keeper *keeper)
{
	arm(keeper, keeper->delay_ms);
	keeper->delay_ms *= 2;
	if (keeper->delay_ms > DELAY_MAX_MS)
		keeper->delay_ms = DELAY_MAX_MS;
}

static void __attribute__((noreturn))
become_analyzer(const struct keeper *keeper, int fd, pid_t spawner)
{
	const struct bs_spawner_files *files = keeper->files;
	char fd_text[16], uid_text[16], gid_text[16], files_text[64];
	const char *args[10] = {keeper->path, "--fd", fd_text};
	unsigned count = 3;
	sigset_t none;

	/* Cleared by a change of uid: the analyzer sets it again. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != spawner)
		_exit(0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	fcntl(fd, F_SETFD, 0);
	snprintf(fd_text, sizeof(fd_text), "%d", fd);
	if (keeper->drop) {
		snprintf(uid_text, sizeof(uid_text), "%u", keeper->uid);
		snprintf(gid_text, sizeof(gid_text), "%u", keeper->gid);
		args[count++] = "--uid";
		args[count++] = uid_text;
		args[count++] = "--gid";
		args[count++] = gid_text;
	}
	if (files != NULL) {
		for (unsigned i = 0; i < files->count; i++)
			fcntl(FILES_FD + (int)i, F_SETFD, 0);
		snprintf(files_text, sizeof(files_text), "%d,%u%s%s", FILES_FD, files->count,
			files->more != NULL ? "," : "", files->more != NULL ? files->more : "");
		args[count++] = files->option;
		args[count++] = files_text;
	}
	execv(keeper->path, (char *const *)args);
	dprintf(STDERR_FILENO, "bufscoped: cannot execute %s: %s\n", keeper->path, strerror(errno));
	_exit(127);
}

/* Hands bufscoped its end of the analyzer's socket. False if bufscoped does not take them. */
static bool
hand_over(const struct keeper *keeper, int fd)
{
	struct offer offer = {keeper->starts};
	struct iovec data = {&offer, sizeof(offer)};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} space = {.bytes = {0}};
	struct msghdr message = {
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = space.bytes,
		.msg_controllen = sizeof(space.bytes),
	};
	struct cmsghdr *rights = CMSG_FIRSTHDR(&message);

	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(rights), &fd, sizeof(int));
	return sendmsg(keeper->control, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static void
start_analyzer(struct keeper *keeper)
{
	pid_t spawner = getpid();
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
		retry_later(keeper);
		return;
	}
	keeper->analyzer = fork();
	if (keeper->analyzer == 0)
		become_analyzer(keeper, ends[1], spawner);
	close(ends[1]);
	if (keeper->analyzer > 0) {
		keeper->pidfd = pidfd_open(keeper->analyzer, 0);
		if (keeper->pidfd < 0) {
			kill(keeper->analyzer, SIGKILL);
			waitpid(keeper->analyzer, NULL, 0);
			keeper->analyzer = 0;
		}
	}
	if (keeper->analyzer <= 0) {
		keeper->analyzer = 0;
		retry_later(keeper);
	} else {
		arm(keeper, SETTLED_MS);
		/* An analyzer whose socket bufscoped does not take reads its end and goes. */
		if (hand_over(keeper, ends[0]))
			keeper->starts++;
	}
	close(ends[0]);
}

static void
reap_analyzer(struct keeper *keeper)
{
	int status = 0;

	waitpid(keeper->analyzer, &status, 0);
	close(keeper->pidfd);
	keeper->pidfd = -1;
	keeper->analyzer = 0;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		dprintf(STDERR_FILENO,
			"bufscoped: " PROGRAM " broke its filter of system calls (its last line "
			"says by which), next start in %u ms\n",
			keeper->delay_ms);
	else
		dprintf(STDERR_FILENO,
			"bufscoped: " PROGRAM " ended (%s %d), next start in %u ms\n",
			WIFSIGNALED(status) ? "signal" : "status",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
			keeper->delay_ms);
	retry_later(keeper);
}

static void
end_analyzer(const struct keeper *keeper)
{
	struct pollfd gone = {.fd = keeper->pidfd, .events = POLLIN};

	if (keeper->analyzer == 0)
		return;
	kill(keeper->analyzer, SIGTERM);
	if (poll(&gone, 1, ANALYZER_GRACE_MS) <= 0)
		kill(keeper->analyzer, SIGKILL);
	waitpid(keeper->analyzer, NULL, 0);
}

static void
keep(struct keeper *keeper)
{
	start_analyzer(keeper);
	for (;;) {
		struct pollfd fds[] = {
			{.fd = keeper->control, .events = POLLIN},
			{.fd = keeper->signals, .events = POLLIN},
			{.fd = keeper->timer, .events = POLLIN},
			{.fd = keeper->pidfd, .events = POLLIN},
		};
		uint64_t expirations;

		if (poll(fds, 4, -1) < 0 && errno != EINTR)
			return;
		/* bufscoped sends nothing: whatever is to be read there is the end. */
		if (fds[0].revents != 0 || fds[1].revents != 0)
			return;
		if (fds[3].revents != 0) {
			reap_analyzer(keeper);
			continue; /* and has armed the timer anew */
		}
		if (fds[2].revents == 0)
			continue;
		if (read(keeper->timer, &expirations, sizeof(expirations)) < 0)
			continue;
		if (keeper->analyzer == 0)
			start_analyzer(keeper);
		else
			keeper->delay_ms = DELAY_FIRST_MS;
	}
}

/* Ctrl-C and SIGHUP go to the whole group, but are for bufscoped. Returns the fd for SIGTERM. */
static int
take_signals(void)
{
	static const int ignored[] = {SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2};
	sigset_t terminate;

	for (unsigned i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	signal(SIGTERM, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&terminate);
	sigaddset(&terminate, SIGTERM);
	sigprocmask(SIG_SETMASK, &terminate, NULL);
	return signalfd(-1, &terminate, SFD_CLOEXEC);
}

/*
 * Keeps what it takes to make an analyzer another user in an empty root, to end
 * that one, and to reach the program where it is. An empty network namespace is
 * made here, for all analyzers, since that would take CAP_SYS_ADMIN.
 */
static bool
drop_rest(void)
{
	const uint64_t keep = BS_CAPABILITY(CAP_SETUID) | BS_CAPABILITY(CAP_SETGID) |
			      BS_CAPABILITY(CAP_SETPCAP) | BS_CAPABILITY(CAP_SYS_CHROOT) |
			      BS_CAPABILITY(CAP_KILL) | BS_CAPABILITY(CAP_DAC_READ_SEARCH);
	const uint64_t had = bs_capabilities_permitted();

	if ((had & BS_CAPABILITY(CAP_SYS_ADMIN)) != 0 && unshare(CLONE_NEWNET) != 0)
		return false;
	return bs_capabilities_bound(keep) == 0 && bs_capabilities_keep(keep) == 0;
}

/*
 * Moves the control and the files to where they are from now on, and closes all
 * else of bufscoped's, above all its end of the control. False on failure.
 */
static bool
keep_descriptors(struct keeper *keeper)
{
	unsigned count = keeper->files != NULL ? keeper->files->count : 0;
	int above = FILES_FD + (int)count, moved[BS_SPAWNER_FILES + 1];

	if (count > BS_SPAWNER_FILES)
		return false;
	/* First out of the way: a place may be taken by what is yet to be moved. */
	for (unsigned i = 0; i <= count; i++) {
		int fd = i < count ? keeper->files->fds[i] : keeper->control;

		moved[i] = fcntl(fd, F_DUPFD_CLOEXEC, above);
		if (moved[i] < 0)
			return false;
	}
	for (unsigned i = 0; i <= count; i++) {
		int to = i < count ? FILES_FD + (int)i : CONTROL_FD;

		if (dup3(moved[i], to, O_CLOEXEC) < 0)
			return false;
	}
	keeper->control = CONTROL_FD;
	return close_range((unsigned)above, ~0u, 0) == 0;
}

static void __attribute__((noreturn)) become_spawner(struct keeper *keeper, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(0);
	prctl(PR_SET_NAME, "bufscope-spawn");
	if (!keep_descriptors(keeper))
		_exit(1);
	keeper->signals = take_signals();
	keeper->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (keeper->signals < 0 || keeper->timer < 0)
		_exit(1);
	if (!drop_rest()) {
		dprintf(STDERR_FILENO, "bufscoped: the spawner cannot drop privileges: %s\n",
			strerror(errno));
		_exit(1);
	}
	keep(keeper);
	end_analyzer(keeper);
	_exit(0);
}

/* The program next to our own, else in an absolute directory of PATH. False if there is none. */
static bool
find_analyzer(char path[PATH_MAX])
{
	const char *from = getenv("PATH");
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - sizeof("/" PROGRAM));

	while (length > 0 && path[length - 1] != '/')
		length--;
	if (length > 0) {
		memcpy(path + length, PROGRAM, sizeof(PROGRAM));
		if (access(path, X_OK) == 0)
			return true;
	}
	while (from != NULL && *from != '\0') {
		int span = (int)strcspn(from, ":");

		if (from[0] == '/' && span + sizeof("/" PROGRAM) <= PATH_MAX) {
			snprintf(path, PATH_MAX, "%.*s/" PROGRAM, span, from);
			if (access(path, X_OK) == 0)
				return true;
		}
		from += span + (from[span] == ':');
	}
	return false;
}

int
bs_spawner_start(struct bs_spawner *spawner, const char *analyzer_path, uid_t uid, gid_t gid,
	const struct bs_spawner_files *files)
{
	char found[PATH_MAX];
	struct keeper keeper = {
		.path = analyzer_path,
		.drop = geteuid() == 0,
		.uid = uid,
		.gid = gid,
		.files = files,
		.pidfd = -1,
		.delay_ms = DELAY_FIRST_MS,
	};
	pid_t parent = getpid();
	int ends[2], error;

	*spawner = (struct bs_spawner){.pidfd = -1, .control = -1};
	if (analyzer_path == NULL) {
		if (!find_analyzer(found))
			return -ENOENT;
		keeper.path = found;
	} else if (access(analyzer_path, X_OK) != 0) {
		return -errno;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return -errno;
	spawner->pid = fork();
	if (spawner->pid == 0) {
		keeper.control = ends[1];
		become_spawner(&keeper, parent);
	}
	error = -errno;
	close(ends[1]);
	if (spawner->pid > 0) {
		spawner->control = ends[0];
		spawner->pidfd = pidfd_open(spawner->pid, 0);
		if (spawner->pidfd >= 0)
			return 0;
		error = -errno;
		kill(spawner->pid, SIGKILL);
		waitpid(spawner->pid, NULL, 0);
	}
	close(ends[0]);
	*spawner = (struct bs_spawner){.pidfd = -1, .control = -1};
	return error;
}

/* The descriptor in a message of the spawner's; -1 if it has none. */
static int
descriptor_of(struct msghdr *message)
{
	struct cmsghdr *rights = CMSG_FIRSTHDR(message);
	int fd;

	if (rights == NULL || rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS ||
		rights->cmsg_len != CMSG_LEN(sizeof(int)))
		return -1;
	memcpy(&fd, CMSG_DATA(rights), sizeof(int));
	return fd;
}

int
bs_spawner_poll(struct bs_spawner *spawner)
{
	int newest = -1;

	for (;;) {
		struct offer offer;
		struct iovec data = {&offer, sizeof(offer)};
		union {
			char bytes[CMSG_SPACE(sizeof(int))];
			struct cmsghdr align;
		} space;
		struct msghdr message = {
			.msg_iov = &data,
			.msg_iovlen = 1,
			.msg_control = space.bytes,
			.msg_controllen = sizeof(space.bytes),
		};
		ssize_t got = recvmsg(spawner->control, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		int fd;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN)
			return newest >= 0 ? newest : -EAGAIN;
		if (got != sizeof(offer)) { /* the next poll says so again */
			spawner->gone = true;
			return newest >= 0 ? newest : -EPIPE;
		}
		fd = descriptor_of(&message);
		if (fd < 0)
			continue; /* no descriptor was free here: that analyzer reads its end */
		if (newest >= 0)
			close(newest);
		newest = fd;
		spawner->restarts = offer.restarts;
	}
}

void
bs_spawner_stop(struct bs_spawner *spawner)
{
	struct pollfd gone = {.fd = spawner->pidfd, .events = POLLIN};

	if (spawner->pid <= 0)
		return;
	close(spawner->control);
	if (poll(&gone, 1, SPAWNER_GRACE_MS) <= 0)
		kill(spawner->pid, SIGKILL);
	waitpid(spawner->pid, NULL, 0);
	close(spawner->pidfd);
	*spawner = (struct bs_spawner){.pidfd = -1, .control = -1};
}
