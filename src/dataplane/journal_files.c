/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See journal_files.h. The directory is opened step by step, without following
 * links that others could have put there; files are opened relative to it.
 */
#include "journal_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bs_journal.h"
#include "safe.h"

#define LOCK_WAIT_MS 3000
#define LOCK_STEP_MS 50

__attribute__((format(printf, 3, 4))) static int
fail(char *error, int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, BS_JOURNAL_FILES_ERROR_BYTES, format, args);
	va_end(args);
	return code;
}

/* Can nobody else change it? In a sticky directory others cannot touch what is ours. */
static int
check(int fd, const char *path, char *error)
{
	char text[BS_SAFE_ERROR_BYTES];
	int ret = bs_safe_check(fd, path, true, text);

	return ret == 0 ? 0 : fail(error, ret, "analyzer.journal: %s", text);
}

/* The directory of a path; each on the way is checked. A descriptor, or -errno. */
static int
open_directory(const char *path, char *error)
{
	char named[PATH_MAX], real[PATH_MAX];
	char *end, *rest, *name;
	int fd, ret;

	snprintf(named, sizeof(named), "%s", path);
	end = strrchr(named, '/');
	end[end == named] = '\0';
	/* links among the directories are followed here, and none is left */
	if (realpath(named, real) == NULL)
		return fail(error, -errno, "analyzer.journal: directory %s: %s%s", named,
			strerror(errno), errno == ENOENT ? " (mkdir it)" : "");
	fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	ret = fd < 0 ? -errno : check(fd, "/", error);
	rest = real + 1;
	while (ret == 0 && (name = strsep(&rest, "/")) != NULL && *name != '\0') {
		int next = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (rest != NULL)
			rest[-1] = '\0'; /* real is the path until here */
		ret = next < 0 ? fail(error, -errno, "analyzer.journal: directory %s: %s", real,
					 strerror(errno))
			       : check(next, real, error);
		if (rest != NULL)
			rest[-1] = '/';
		close(fd);
		fd = next;
	}
	if (ret == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return ret;
}

/* Is the open file one that we may write to? */
static int
check_file(int fd, const char *name, char *error)
{
	struct bs_journal_file head;
	struct stat st;
	int ret = check(fd, name, error);

	if (ret != 0)
		return ret;
	if (fstat(fd, &st) != 0)
		return fail(error, -errno, "analyzer.journal: %s: %s", name, strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
		return fail(error, -EINVAL,
			"analyzer.journal: %s is not a regular file with one name: remove it, or "
			"use another path",
			name);
	if (st.st_size == 0)
		return 0;
	memset(&head, 0, sizeof(head));
	if (pread(fd, &head, sizeof(head), 0) < 0 ||
		bs_journal_file_check(&head) == BS_JOURNAL_HEADER_FOREIGN)
		return fail(error, -EINVAL,
			"analyzer.journal: %s holds something else than a journal: move it away, "
			"or use another path",
			name);
	return 0;
}

static int
open_file(int directory, const char *path, unsigned number, char *error)
{
	char name[PATH_MAX];
	int fd, ret;

	snprintf(name, sizeof(name), "%s.%u", path, number);
	fd = openat(directory, strrchr(name, '/') + 1,
		O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
	if (fd < 0)
		return fail(error, -errno, "analyzer.journal: %s %s", name,
			errno == ELOOP ? "is a symbolic link: remove it" : strerror(errno));
	ret = check_file(fd, name, error);
	if (ret == 0)
		return fd;
	close(fd);
	return ret;
}

/* An analyzer of a bufscoped that was killed needs a moment to see it. */
static int
lock(int fd, const char *path, char *error)
{
	for (int waited = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; waited += LOCK_STEP_MS) {
		if (errno != EWOULDBLOCK)
			return fail(error, -errno, "analyzer.journal: %s: cannot lock: %s", path,
				strerror(errno));
		if (waited >= LOCK_WAIT_MS)
			return fail(error, -EBUSY,
				"analyzer.journal: %s is written by another bufscoped: give "
				"each instance its own path",
				path);
		poll(NULL, 0, LOCK_STEP_MS);
	}
	return 0;
}

int
bs_journal_files_open(
	const char *path, unsigned count, int *fds, char error[BS_JOURNAL_FILES_ERROR_BYTES])
{
	int directory = open_directory(path, error), ret = 0;
	unsigned opened = 0;

	if (directory < 0)
		return directory;
	while (opened < count && ret == 0) {
		fds[opened] = open_file(directory, path, opened, error);
		if (fds[opened] < 0)
			ret = fds[opened];
		else
			opened++;
	}
	close(directory);
	if (ret == 0)
		ret = lock(fds[0], path, error);
	if (ret != 0)
		bs_journal_files_close(fds, opened);
	return ret;
}

void
bs_journal_files_close(int *fds, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		close(fds[i]);
}
