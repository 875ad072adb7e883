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
	char directory[sizeof(((struct sockaddr_un *)0)->sun_path)];
	char *slash;
	struct stat st;
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
	if (fstat(fd, &st) != 0)
		code = fail(-errno, directory, error, "%s", strerror(errno));
	else if (st.st_uid != 0 && st.st_uid != geteuid())
		code = fail(-EPERM, directory, error, "belongs to uid %u", st.st_uid);
	else if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		code = fail(-EPERM, directory, error, "others can write it: chmod go-w");
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

/* Removes a socket that nobody listens on; 0 if the path is free then. */
static int
remove_stale(const struct sockaddr_un *address, char *error)
{
	const char *path = address->sun_path;
	struct stat st;
	int fd, code;

	if (lstat(path, &st) != 0)
		return errno == ENOENT ? 0 : fail(-errno, path, error, "%s", strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return fail(-EEXIST, path, error, "is there and not a socket: remove it");
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fail(-errno, path, error, "%s", strerror(errno));
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno == EAGAIN)
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

/* Nobody can connect between bind and listen: by then the mode is right. */
static int
bind_and_listen(struct control_socket *s, char *error)
{
	const char *path = s->address.sun_path;
	struct stat st;

	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->fd < 0 || bind(s->fd, (const struct sockaddr *)&s->address, sizeof(s->address)) != 0)
		return fail(-errno, path, error, "%s", strerror(errno));
	if (lstat(path, &st) != 0)
		return fail(-errno, path, error, "%s", strerror(errno));
	s->device = st.st_dev;
	s->inode = st.st_ino;
	if (chmod(path, 0600) != 0 || listen(s->fd, 16) != 0)
		return fail(-errno, path, error, "%s", strerror(errno));
	return 0;
}

int
control_socket_listen(struct control_socket *s, const char *path, char error[BS_STATUS_ERROR_BYTES])
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
	code = remove_stale(&s->address, error);
	if (code == 0)
		code = bind_and_listen(s, error);
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
