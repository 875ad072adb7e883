/* SPDX-License-Identifier: BSD-3-Clause */
/* See probe_find.h. */
#include "probe_find.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc_net.h"
#include "sock_diag.h"

#define NAMESPACES_MAX 1024u
#define VISIT_COST 64u /* of a namespace, against the budget */
#define BOUND_MAX 64u

enum phase { IDLE, NAMESPACES, HOLDERS };

struct bs_finder {
	struct bs_target **targets;
	unsigned target_count, target_max;
	enum phase phase;
	DIR *proc;
	DIR *fds;    /* of the process in hand; NULL = none */
	int pid;     /* in hand */
	ino_t netns; /* its */
	ino_t visited[NAMESPACES_MAX];
	unsigned visited_count;
	ino_t own;
};

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

void
bs_target_init(struct bs_target *target, const uint8_t address[16], uint16_t port)
{
	memset(target, 0, sizeof(*target));
	memcpy(target->address, address, sizeof(target->address));
	target->port = port;
	target->diag = -1;
}

void
bs_target_fini(struct bs_target *target)
{
	if (target->diag >= 0)
		close(target->diag);
	target->diag = -1;
}

/* --- in a namespace ------------------------------------------------------------------ */

/* What a thread does in a namespace, and comes back with. */
struct visit {
	struct bs_target *const *targets;
	unsigned count;
	ino_t netns;
	int fd; /* of the namespace; -1: the thread is in it */
	int ret;
};

static bool
holds(const struct ifaddrs *addresses, const uint8_t wanted[16])
{
	for (const struct ifaddrs *at = addresses; at != NULL; at = at->ifa_next) {
		const struct sockaddr *address = at->ifa_addr;

		if (address == NULL)
			continue;
		if (address->sa_family == AF_INET6 &&
			memcmp(&((const struct sockaddr_in6 *)address)->sin6_addr, wanted, 16) == 0)
			return true;
		if (address->sa_family == AF_INET && memcmp(wanted, mapped, 12) == 0 &&
			memcmp(&((const struct sockaddr_in *)address)->sin_addr, wanted + 12, 4) ==
				0)
			return true;
	}
	return false;
}

/* Does what listens there take what comes to this address? */
static bool
takes(const struct bs_sock *sock, const uint8_t wanted[16])
{
	static const uint8_t zero[16];
	const uint8_t *local = sock->ends.local;
	const bool v4 = memcmp(wanted, mapped, 12) == 0;

	if (memcmp(local, wanted, 16) == 0)
		return true;
	if (memcmp(local, zero, 16) == 0)
		return !v4 || !sock->v6_only;
	return v4 && memcmp(local, mapped, 12) == 0 && memcmp(local + 12, zero, 4) == 0;
}

/* A namespace as a sock_diag socket in it shows it, or without one (-1) a /proc/<pid>/net. */
struct view {
	int diag, proc;
};

/* Who listens, over TCP or else UDP. Returns how many sockets, or -errno. */
static int
find_sockets(const struct view *view, const struct bs_target *target,
	uint32_t inodes[BS_TARGET_SOCKETS], unsigned *transport)
{
	static const unsigned transports[] = {IPPROTO_TCP, IPPROTO_UDP};
	struct bs_sock socks[BOUND_MAX];
	unsigned count = 0;

	for (unsigned i = 0; i < 2 && count == 0; i++) {
		int bound = view->diag >= 0 ? bs_sock_diag_bound(view->diag, transports[i],
						      target->port, socks, BOUND_MAX)
					    : bs_proc_net_bound(view->proc, transports[i],
						      target->port, socks, BOUND_MAX);

		/* a kernel without udp_diag */
		if (bound == -ENOENT && i == 1)
			break;
		if (bound < 0)
			return bound;
		*transport = transports[i];
		for (int k = 0; k < bound && count < BS_TARGET_SOCKETS; k++) {
			if (socks[k].inode != 0 && takes(&socks[k], target->address))
				inodes[count++] = socks[k].inode;
		}
	}
	return (int)count;
}

/* Takes the place for the target's if it listens here; view->diag is taken then. */
static int
settle(struct bs_target *target, ino_t netns, struct view *view)
{
	uint32_t inodes[BS_TARGET_SOCKETS];
	unsigned transport = 0;
	int count = find_sockets(view, target, inodes, &transport);

	if (count < 0)
		return count;
	target->flags |= BS_FIND_ADDRESS;
	if (count == 0 && target->diag < 0) {
		/* a service may come: the namespace could not be entered later */
		target->netns = netns;
		target->diag = view->diag;
		view->diag = -1;
	}
	if (count == 0)
		return 0;
	if (target->flags & BS_FIND_SOCKET) {
		target->flags |= BS_FIND_AMBIGUOUS;
		return 0;
	}
	target->flags |= BS_FIND_SOCKET;
	target->netns = netns;
	target->transport = transport;
	memcpy(target->inodes, inodes, sizeof(inodes));
	target->inode_count = (unsigned)count;
	bs_target_fini(target);
	target->diag = view->diag;
	view->diag = -1;
	return 0;
}

/* Found there before, and looked at again. */
static bool
is_known(const struct bs_target *target, ino_t netns)
{
	return target->inode_count > 0 && target->netns == netns;
}

static int
look_around(const struct visit *visit)
{
	struct view view = {.diag = -1, .proc = -1};
	struct ifaddrs *addresses;
	int ret = 0;

	if (getifaddrs(&addresses) != 0)
		return -errno;
	for (unsigned i = 0; i < visit->count && ret == 0; i++) {
		struct bs_target *target = visit->targets[i];

		if (is_known(target, visit->netns) || !holds(addresses, target->address))
			continue;
		if (view.diag < 0)
			view.diag = bs_sock_diag_open();
		ret = view.diag < 0 ? view.diag : settle(target, visit->netns, &view);
	}
	if (view.diag >= 0)
		close(view.diag);
	freeifaddrs(addresses);
	return ret;
}

/* What can be seen of a namespace that may not be entered. */
static int
look_from_outside(int pid, const struct visit *visit)
{
	struct view view = {.diag = -1};
	char path[40];
	int ret = 0;

	snprintf(path, sizeof(path), "/proc/%d/net", pid);
	view.proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (view.proc < 0)
		return -errno;
	for (unsigned i = 0; i < visit->count && ret == 0; i++) {
		struct bs_target *target = visit->targets[i];

		if (!is_known(target, visit->netns) &&
			bs_proc_net_holds(view.proc, target->address))
			ret = settle(target, visit->netns, &view);
	}
	close(view.proc);
	return ret;
}

/* A thread of its own: what fails on the way back to our namespace ends with it. */
static void *
visit_thread(void *context)
{
	struct visit *visit = context;

	if (visit->fd >= 0 && setns(visit->fd, CLONE_NEWNET) != 0)
		visit->ret = -errno;
	else
		visit->ret = look_around(visit);
	return NULL;
}

/* Looks for the targets in the namespace of a process. 0 or -errno. */
static int
visit(struct bs_finder *finder, int pid, ino_t netns, struct bs_target *const *targets,
	unsigned count)
{
	struct visit visit = {.targets = targets, .count = count, .netns = netns, .fd = -1};
	pthread_t thread;
	char path[40];

	if (netns == finder->own)
		return look_around(&visit);
	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	visit.fd = open(path, O_RDONLY | O_CLOEXEC);
	if (visit.fd < 0)
		return -errno;
	visit.ret = -pthread_create(&thread, NULL, visit_thread, &visit);
	if (visit.ret == 0)
		pthread_join(thread, NULL);
	close(visit.fd);
	return visit.ret == -EPERM ? look_from_outside(pid, &visit) : visit.ret;
}

/* --- the search ----------------------------------------------------------------------- */

struct bs_finder *
bs_finder_create(unsigned max)
{
	struct bs_finder *finder = calloc(1, sizeof(*finder));
	struct stat own;

	if (finder == NULL)
		return NULL;
	finder->target_max = max;
	finder->targets = calloc(max, sizeof(struct bs_target *));
	finder->proc = opendir("/proc");
	if (finder->targets == NULL || finder->proc == NULL) {
		bs_finder_destroy(finder);
		return NULL;
	}
	if (stat("/proc/self/ns/net", &own) == 0)
		finder->own = own.st_ino;
	return finder;
}

static void
leave_process(struct bs_finder *finder)
{
	if (finder->fds != NULL)
		closedir(finder->fds);
	finder->fds = NULL;
}

void
bs_finder_destroy(struct bs_finder *finder)
{
	if (finder == NULL)
		return;
	leave_process(finder);
	if (finder->proc != NULL)
		closedir(finder->proc);
	free(finder->targets);
	free(finder);
}

static void
note(struct bs_finder *finder, unsigned flags)
{
	for (unsigned i = 0; i < finder->target_count; i++)
		finder->targets[i]->flags |= flags;
}

/* The namespace that it was found in before, without entering it anew. */
static void
look_again(struct bs_target *target)
{
	struct view view = {.diag = target->diag, .proc = -1};

	if (view.diag < 0)
		return;
	target->diag = -1; /* given back, also where nothing listens now */
	settle(target, target->netns, &view);
	if (view.diag >= 0)
		close(view.diag); /* the kernel does not answer it */
}

void
bs_finder_begin(struct bs_finder *finder, struct bs_target *const *targets, unsigned count)
{
	leave_process(finder);
	finder->visited_count = 0;
	finder->target_count = count < finder->target_max ? count : finder->target_max;
	for (unsigned i = 0; i < finder->target_count; i++) {
		finder->targets[i] = targets[i];
		targets[i]->flags = targets[i]->inode_count = targets[i]->pid_count = 0;
		look_again(targets[i]);
	}
	rewinddir(finder->proc);
	finder->phase = count > 0 ? NAMESPACES : IDLE;
}

bool
bs_finder_saw(const struct bs_finder *finder, ino_t netns)
{
	for (unsigned i = 0; i < finder->visited_count; i++) {
		if (finder->visited[i] == netns)
			return true;
	}
	return false;
}

/* The next process of /proc and its namespace; false at the end. */
static bool
next_process(struct bs_finder *finder)
{
	struct dirent *entry;

	while ((entry = readdir(finder->proc)) != NULL) {
		char path[300];
		struct stat netns;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		finder->pid = (int)strtol(entry->d_name, NULL, 10);
		finder->netns = 0;
		snprintf(path, sizeof(path), "%s/ns/net", entry->d_name);
		if (fstatat(dirfd(finder->proc), path, &netns, 0) == 0)
			finder->netns = netns.st_ino;
		else if (errno == EACCES || errno == EPERM)
			note(finder, BS_FIND_NO_LOOK);
		return true;
	}
	return false;
}

/* Returns what it cost. */
static unsigned
visit_next(struct bs_finder *finder)
{
	int ret;

	if (finder->netns == 0 || bs_finder_saw(finder, finder->netns) ||
		finder->visited_count == NAMESPACES_MAX)
		return 2;
	finder->visited[finder->visited_count++] = finder->netns;
	ret = visit(finder, finder->pid, finder->netns, finder->targets, finder->target_count);
	if (ret == -EPERM || ret == -EACCES)
		note(finder, BS_FIND_NO_ENTER);
	return VISIT_COST;
}

static bool
has_targets(const struct bs_finder *finder, ino_t netns)
{
	for (unsigned i = 0; i < finder->target_count; i++) {
		if (finder->targets[i]->inode_count > 0 && finder->targets[i]->netns == netns)
			return true;
	}
	return false;
}

static void
open_process(struct bs_finder *finder)
{
	char path[40];

	if (finder->netns == 0 || !has_targets(finder, finder->netns))
		return;
	snprintf(path, sizeof(path), "/proc/%d/fd", finder->pid);
	finder->fds = opendir(path);
	if (finder->fds == NULL && (errno == EACCES || errno == EPERM))
		note(finder, BS_FIND_NO_LOOK);
}

static void
note_holder(struct bs_target *target, int pid, uint32_t inode)
{
	for (unsigned i = 0; i < target->inode_count; i++) {
		if (target->inodes[i] != inode)
			continue;
		if (target->pid_count > 0 && target->pids[target->pid_count - 1] == pid)
			return;
		if (target->pid_count < BS_TARGET_PIDS)
			target->pids[target->pid_count++] = pid;
		return;
	}
}

/* One descriptor of the process in hand; none: the next process. */
static void
look_at_descriptor(struct bs_finder *finder)
{
	struct dirent *entry = readdir(finder->fds);
	unsigned inode;
	char text[64];
	ssize_t n;

	if (entry == NULL) {
		leave_process(finder);
		return;
	}
	n = readlinkat(dirfd(finder->fds), entry->d_name, text, sizeof(text) - 1);
	if (n < 0) {
		if (errno == EACCES || errno == EPERM)
			note(finder, BS_FIND_NO_LOOK);
		return;
	}
	text[n] = '\0';
	if (sscanf(text, "socket:[%u]", &inode) != 1)
		return;
	for (unsigned i = 0; i < finder->target_count; i++) {
		if (finder->targets[i]->netns == finder->netns)
			note_holder(finder->targets[i], finder->pid, inode);
	}
}

/* What is found in several places is not found. */
static void
forget_ambiguous(struct bs_finder *finder)
{
	for (unsigned i = 0; i < finder->target_count; i++) {
		struct bs_target *target = finder->targets[i];

		if ((target->flags & BS_FIND_AMBIGUOUS) == 0)
			continue;
		bs_target_fini(target);
		target->netns = 0;
		target->inode_count = 0;
	}
}

static void
next_phase(struct bs_finder *finder)
{
	finder->phase = finder->phase == NAMESPACES ? HOLDERS : IDLE;
	rewinddir(finder->proc);
	forget_ambiguous(finder);
}

bool
bs_finder_step(struct bs_finder *finder, unsigned budget)
{
	unsigned used = 0;

	while (finder->phase != IDLE && used < budget) {
		if (finder->fds != NULL) {
			look_at_descriptor(finder);
			used++;
		} else if (!next_process(finder)) {
			next_phase(finder);
		} else if (finder->phase == NAMESPACES) {
			used += visit_next(finder);
		} else {
			open_process(finder);
			used += 2;
		}
	}
	return finder->phase == IDLE;
}

int
bs_finder_enter(struct bs_finder *finder, int pid, struct bs_target *target)
{
	struct bs_target *const targets[] = {target};
	struct stat netns;
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	if (stat(path, &netns) != 0)
		return -errno;
	bs_target_fini(target);
	target->flags = target->inode_count = 0;
	target->netns = 0;
	return visit(finder, pid, netns.st_ino, targets, 1);
}
