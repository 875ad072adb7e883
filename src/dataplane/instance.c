/* SPDX-License-Identifier: BSD-3-Clause */
/* See instance.h. Where EAL has its runtime files: "EAL settings" of DPDK's programmer's guide. */
#include "instance.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "safe.h"

#define LOCK_NAME "bufscope.lock"
#define LONGEST_SOCKET "/dpdk_telemetry.v2:99"
#define TELEMETRY_NUMBERS 100u

__attribute__((format(printf, 4, 5))) static int
fail(int code, const char *path, char *error, const char *format, ...)
{
	int used = snprintf(error, BS_INSTANCE_ERROR_BYTES, "%.200s: ", path);
	va_list args;

	va_start(args, format);
	vsnprintf(error + used, BS_INSTANCE_ERROR_BYTES - (size_t)used, format, args);
	va_end(args);
	return code;
}

static const char *
base_directory(void)
{
	const char *base = getenv("RUNTIME_DIRECTORY");

	if (base != NULL)
		return base;
	if (getuid() == 0)
		return "/var/run";
	base = getenv("XDG_RUNTIME_DIR");
	return base != NULL ? base : "/tmp";
}

/* The directory `name` in `parent`, made if it is not there; path names it in errors. */
static int
open_below(int parent, const char *name, const char *path, uid_t user, char *error)
{
	struct stat st;
	int fd, code;

	if (mkdirat(parent, name, 0700) != 0 && errno != EEXIST)
		return fail(-errno, path, error, "cannot be made: %s", strerror(errno));
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return fail(-errno, path, error, "%s%s",
			errno == ENOTDIR || errno == ELOOP ? "not a directory, or a symbolic link"
							   : strerror(errno),
			errno == EACCES ? ": set XDG_RUNTIME_DIR to a directory of yours" : "");
	if (user != (uid_t)-1 && fstat(fd, &st) == 0 && st.st_uid == user &&
		fchown(fd, geteuid(), (gid_t)-1) != 0)
		code = fail(-errno, path, error, "chown: %s", strerror(errno));
	else
		code = bs_safe_check(fd, path, false, error);
	if (code == 0)
		return fd;
	close(fd);
	return code;
}

/* Opens base, base/dpdk and base/dpdk/prefix, each checked. The last one's descriptor, or -errno.
 */
static int
open_directories(const char *file_prefix, uid_t user, struct bs_instance *instance, char *error)
{
	const char *base = base_directory();
	int above, dpdk, fd;

	if (snprintf(instance->directory, sizeof(instance->directory), "%s/dpdk/%s", base,
		    file_prefix) +
			strlen(LONGEST_SOCKET) >=
		sizeof(((struct sockaddr_un *)0)->sun_path))
		return fail(-ENAMETOOLONG, instance->directory, error,
			"the name is too long for a socket in it: shorten eal.file_prefix, or "
			"choose another XDG_RUNTIME_DIR");
	above = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (above < 0)
		return fail(-errno, base, error, "%s: make it, or set XDG_RUNTIME_DIR to another",
			strerror(errno));
	fd = bs_safe_check(above, base, true, error);
	if (fd == 0) {
		char path[sizeof(((struct sockaddr_un *)0)->sun_path)];

		snprintf(path, sizeof(path), "%s/dpdk", base);
		fd = dpdk = open_below(above, "dpdk", path, (uid_t)-1, error);
		if (dpdk >= 0) {
			fd = open_below(dpdk, file_prefix, instance->directory, user, error);
			close(dpdk);
		}
	}
	close(above);
	return fd;
}

/* -EADDRINUSE, with the pid that its holder wrote into the lock. */
static int
name_holder(const struct bs_instance *instance, int lock, char *error)
{
	char text[16] = "";
	ssize_t got = pread(lock, text, sizeof(text) - 1, 0);

	text[got > 0 ? got : 0] = '\0';
	text[strspn(text, "0123456789")] = '\0';
	return fail(-EADDRINUSE, instance->directory, error,
		"another bufscoped (pid %s) runs with this eal.file_prefix: stop it, or give this "
		"one another",
		text[0] == '\0' ? "not known" : text);
}

/* Is the file that we hold locked still the one with the lock's name? It may have been removed. */
static bool
is_in_place(const struct bs_instance *instance, int lock)
{
	struct stat ours, there;

	return fstat(lock, &ours) == 0 &&
	       fstatat(instance->fd, LOCK_NAME, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
	       ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

static int
take_lock(struct bs_instance *instance, char *error)
{
	for (;;) {
		int code, lock = openat(instance->fd, LOCK_NAME,
				  O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

		if (lock < 0)
			return fail(-errno, instance->directory, error, LOCK_NAME ": %s",
				strerror(errno));
		if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
			code = errno == EWOULDBLOCK ? name_holder(instance, lock, error)
						    : fail(-errno, instance->directory, error,
							      LOCK_NAME ": %s", strerror(errno));
			close(lock);
			return code;
		}
		if (is_in_place(instance, lock)) {
			instance->lock = lock;
			/* for name_holder alone; a full disk costs the name */
			if (ftruncate(lock, 0) == 0)
				dprintf(lock, "%d\n", getpid());
			return 0;
		}
		close(lock);
	}
}

int
bs_instance_take(const char *file_prefix, uid_t user, struct bs_instance *instance,
	char error[BS_INSTANCE_ERROR_BYTES])
{
	int ret;

	*instance = (struct bs_instance){.fd = -1, .lock = -1, .user = user};
	instance->fd = open_directories(file_prefix, user, instance, error);
	if (instance->fd < 0)
		return instance->fd;
	ret = take_lock(instance, error);
	instance->taken = ret == 0;
	if (ret != 0) {
		close(instance->fd);
		instance->fd = -1;
	}
	return ret;
}

/* Adds the x bits for whom mode lets in, and gives the directory to its new owner. */
static int
let_through(int fd, const struct control_access *access, bool anybody, uid_t user)
{
	struct stat st;
	mode_t more = 0;

	if (fstat(fd, &st) != 0)
		return -errno;
	/* an owner or group of the sockets that is not the directory's is one of its others */
	if ((access->mode & 0066) != 0 || access->owner != (uid_t)-1 || anybody)
		more = S_IXOTH;
	if (more != 0 && fchmod(fd, (st.st_mode & 07777) | more) != 0)
		return -errno;
	return fchown(fd, user, (gid_t)-1) == 0 ? 0 : -errno;
}

/* Is it this process that listens at path? */
static bool
is_ours(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct ucred peer = {0};
	socklen_t bytes = sizeof(peer);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool ours;

	if (fd < 0)
		return false;
	snprintf(address.sun_path, sizeof(address.sun_path), "%.*s",
		(int)sizeof(address.sun_path) - 1, path);
	ours = connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.pid == getpid();
	close(fd);
	return ours;
}

/* The path of this process's DPDK telemetry socket, which bears a number when another process has
 * one of that prefix. False if there is none. */
static bool
find_telemetry(struct bs_instance *instance)
{
	char *path = instance->telemetry;

	for (unsigned i = 0; i < TELEMETRY_NUMBERS; i++) {
		int used =
			snprintf(path, PATH_MAX, "%.200s/dpdk_telemetry.v2", instance->directory);

		if (i > 0)
			snprintf(path + used, sizeof(instance->telemetry) - (size_t)used, ":%u", i);
		if (is_ours(path))
			return true;
	}
	path[0] = '\0';
	return false;
}

int
bs_instance_open(struct bs_instance *instance, const struct control_access *access,
	char error[BS_INSTANCE_ERROR_BYTES])
{
	int above = openat(instance->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int ret = above < 0 ? -errno : 0;

	if (ret == 0 && find_telemetry(instance))
		ret = control_access_apply(access, instance->telemetry);
	if (ret == 0)
		ret = let_through(above, access, instance->user != (uid_t)-1, (uid_t)-1);
	if (ret == 0)
		ret = let_through(instance->fd, access, false, instance->user);
	if (above >= 0)
		close(above);
	return ret == 0 ? 0
			: fail(ret, instance->directory, error, "owner and mode: %s",
				  strerror(-ret));
}

void
bs_instance_release(struct bs_instance *instance)
{
	char above[PATH_MAX];

	if (!instance->taken)
		return;
	/* EAL does so at exit(), when it is too late for the directory */
	if (instance->telemetry[0] != '\0' || find_telemetry(instance))
		unlink(instance->telemetry);
	unlinkat(instance->fd, LOCK_NAME, 0);
	snprintf(above, sizeof(above), "%s", instance->directory);
	*strrchr(above, '/') = '\0';
	/* others' files keep their directories */
	if (rmdir(instance->directory) == 0)
		rmdir(above);
	close(instance->lock);
	close(instance->fd);
	*instance = (struct bs_instance){.fd = -1, .lock = -1};
}
