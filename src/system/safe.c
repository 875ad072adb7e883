/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The directory is opened first and the file in it, so that what was checked is
 * what is opened, whatever is renamed meanwhile.
 */
#include "safe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_SHOWN 160 /* of a path named twice in a line */

__attribute__((format(printf, 4, 5))) static int
fail(int code, const char *path, char *error, const char *format, ...)
{
	int used = snprintf(error, BS_SAFE_ERROR_BYTES, "%.*s: ", PATH_SHOWN, path);
	va_list args;

	va_start(args, format);
	vsnprintf(error + used, BS_SAFE_ERROR_BYTES - (size_t)used, format, args);
	va_end(args);
	return code;
}

int
bs_safe_check(int fd, const char *path, bool sticky_ok, char error[BS_SAFE_ERROR_BYTES])
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return fail(-errno, path, error, "%s", strerror(errno));
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return fail(-EPERM, path, error,
			"belongs to uid %u, and must to root or the caller: chown root %.*s",
			st.st_uid, PATH_SHOWN, path);
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) == 0 ||
		(sticky_ok && S_ISDIR(st.st_mode) && (st.st_mode & S_ISVTX) != 0))
		return 0;
	return fail(-EPERM, path, error, "others can write %s (mode %04o): chmod go-w %.*s",
		S_ISDIR(st.st_mode) ? "to this directory" : "it", st.st_mode & 07777, PATH_SHOWN,
		path);
}

/* The directory of a path, and where in path its last part begins. A descriptor or -errno. */
static int
open_directory(const char *path, const char **last, char directory[PATH_MAX], char *error)
{
	const char *slash = strrchr(path, '/');
	int fd;

	*last = slash == NULL ? path : slash + 1;
	if (slash == NULL)
		snprintf(directory, PATH_MAX, ".");
	else if (slash == path)
		snprintf(directory, PATH_MAX, "/");
	else if (slash - path < PATH_MAX)
		snprintf(directory, PATH_MAX, "%.*s", (int)(slash - path), path);
	else
		return fail(-ENAMETOOLONG, path, error, "the path is too long");
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 ? fd : fail(-errno, path, error, "%s", strerror(errno));
}

static int
open_in(int directory, const char *last, const char *path, char *error)
{
	struct stat st;
	int code, fd = openat(directory, last, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0) {
		code = -errno;
		return fail(code, path, error, "%s",
			code == -ELOOP ? "is a symbolic link: give the file itself"
				       : strerror(-code));
	}
	if (fstat(fd, &st) != 0)
		code = fail(-errno, path, error, "%s", strerror(errno));
	else if (!S_ISREG(st.st_mode))
		code = fail(-EINVAL, path, error, "is not a regular file");
	else
		code = bs_safe_check(fd, path, false, error);
	if (code == 0)
		return fd;
	close(fd);
	return code;
}

int
bs_safe_open(const char *path, char error[BS_SAFE_ERROR_BYTES])
{
	char name[PATH_MAX];
	const char *last;
	int directory, ret;

	directory = open_directory(path, &last, name, error);
	if (directory < 0)
		return directory;
	ret = bs_safe_check(directory, name, true, error);
	if (ret == 0)
		ret = open_in(directory, last, path, error);
	close(directory);
	return ret;
}
