/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Takes a socket's path without trusting what is there: the directory is
 * checked, a live socket is left alone, a dead one replaced. The directory is
 * locked meanwhile, or two starting instances could each remove the other's.
 */
#include "control_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "identity.h"
#include "safe.h"

#define BACKLOG 16

__attribute__((format(printf, 4, 5))) static int
fail(int code, const char *path, char *error, const char *format, ...)
{
	int used = snprintf(error, BS_STATUS_ERROR_BYTES, "%s: ", path);
	va_list args;

	va_start(args, format);
	vsnprintf(error + used, BS_STATUS_ERROR_BYTES - (size_t)used, format, args);
	va_end(args);
	return code;
}

/* A locked descriptor of the directory of path, or -errno. */
static int
lock_directory(const char *path, char *error)
{
	char directory[sizeof(((struct sockaddr_un *)0)->sun_path)], why[BS_SAFE_ERROR_BYTES];
	char *slash;
	int fd, code;

	snprintf(directory, sizeof(directory), "%s", path);
	slash = strrchr(directory, '/');
	if (slash == NULL || slash == directory)
		return fail(-EPERM, path, error, "the socket needs a directory of its own");
	*slash = '\0';
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		code = -errno;
		return fail(code, directory, error, "%s",
			code == -ENOTDIR || code == -ELOOP ? "not a directory, or a symbolic link"
							   : strerror(-code));
	}
	code = bs_safe_check(fd, directory, false, why);
	if (code != 0)
		snprintf(error, BS_STATUS_ERROR_BYTES, "%.*s", (int)BS_STATUS_ERROR_BYTES - 1, why);
	else if (flock(fd, LOCK_EX | LOCK_NB) != 0)
		code = fail(-EBUSY, directory, error, "another instance is starting here");
	else
		return fd;
	close(fd);
	return code;
}

static int
name_owner(int fd, const char *path, char *error)
{
	struct ucred owner = {0};
	socklen_t bytes = sizeof(owner);

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &bytes);
	return fail(-EADDRINUSE, path, error,
		"another instance listens here (pid %d, uid %u): stop it, or choose another "
		"eal.file_prefix",
		owner.pid, owner.uid);
}

/* Removes a socket of ours that nobody listens on; 0 if the path is free then. */
static int
remove_stale(
	const struct control_socket *s, int type, const struct control_access *access, char *error)
{
	const char *path = s->address.sun_path;
	struct stat st;
	int fd, code;

	if (lstat(path, &st) != 0)
		return errno == ENOENT ? 0 : fail(-errno, path, error, "%s", strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return fail(-EEXIST, path, error, "is there and not a socket: remove it");
	if (st.st_uid != 0 && st.st_uid != geteuid() && st.st_uid != access->owner)
		return fail(-EEXIST, path, error, "is there and belongs to uid %u: remove it",
			st.st_uid);
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fail(-errno, path, error, "%s", strerror(errno));
	if (connect(fd, (const struct sockaddr *)&s->address, sizeof(s->address)) == 0 ||
		errno == EAGAIN)
		code = name_owner(fd, path, error);
	else if (errno != ECONNREFUSED)
		code = fail(-errno, path, error, "%s", strerror(errno));
	else if (unlink(path) != 0)
		code = fail(-errno, path, error, "%s", strerror(errno));
	else
		code = 0;
	close(fd);
	return code;
}

int
control_access_plan(const struct bs_config *config, struct control_access *access,
	char error[BS_STATUS_ERROR_BYTES])
{
	struct bs_identity owner = {.uid = (uid_t)-1};

	*access = (struct control_access){(uid_t)-1, (gid_t)-1, config->control.mode};
	if (config->control.owner[0] != '\0' &&
		bs_identity_find(config->control.owner, &owner) != 0) {
		snprintf(error, BS_STATUS_ERROR_BYTES,
			"control.owner: there is no user \"%s\": add it, or name another",
			config->control.owner);
		return -ENOENT;
	}
	access->owner = owner.uid;
	if (config->control.group[0] != '\0' &&
		bs_identity_group(config->control.group, &access->group) != 0) {
		snprintf(error, BS_STATUS_ERROR_BYTES,
			"control.group: there is no group \"%s\": add it, or name another",
			config->control.group);
		return -ENOENT;
	}
	return 0;
}

int
control_access_apply(const struct control_access *access, const char *path)
{
	if (chmod(path, access->mode) != 0)
		return -errno;
	return lchown(path, access->owner, access->group) == 0 ? 0 : -errno;
}

/* Nobody can connect between bind and listen: by then owner and mode are right. */
static int
bind_and_listen(
	struct control_socket *s, int type, const struct control_access *access, char *error)
{
	const char *path = s->address.sun_path;
	struct stat st;
	int code;

	s->fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0 || bind(s->fd, (const struct sockaddr *)&s->address, sizeof(s->address)) != 0)
		return fail(-errno, path, error, "%s", strerror(errno));
	if (lstat(path, &st) != 0)
		return fail(-errno, path, error, "%s", strerror(errno));
	s->device = st.st_dev;
	s->inode = st.st_ino;
	code = control_access_apply(access, path);
	if (code != 0)
		return fail(code, path, error, "owner and mode: %s", strerror(-code));
	return listen(s->fd, BACKLOG) == 0 ? 0 : fail(-errno, path, error, "%s", strerror(errno));
}

int
control_socket_listen(struct control_socket *s, const char *path, int type,
	const struct control_access *access, char error[BS_STATUS_ERROR_BYTES])
{
	int directory, code;

	*s = (struct control_socket){.fd = -1, .address.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(s->address.sun_path))
		return fail(-ENAMETOOLONG, "control socket", error,
			"the path has more than %zu characters", sizeof(s->address.sun_path) - 1);
	memcpy(s->address.sun_path, path, strlen(path) + 1);
	directory = lock_directory(path, error);
	if (directory < 0)
		return directory;
	code = remove_stale(s, type, access, error);
	if (code == 0)
		code = bind_and_listen(s, type, access, error);
	if (code != 0)
		control_socket_close(s);
	close(directory);
	return code;
}

void
control_socket_close(struct control_socket *s)
{
	struct stat st;

	if (s->fd < 0)
		return;
	if (s->inode != 0 && lstat(s->address.sun_path, &st) == 0 && st.st_dev == s->device &&
		st.st_ino == s->inode)
		unlink(s->address.sun_path);
	close(s->fd);
	s->fd = -1;
}
