/* SPDX-License-Identifier: BSD-3-Clause */
#include "target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMPORARY_SUFFIX ".XXXXXX"

int
target_open(struct target *target, const char *path)
{
	struct stat status;
	mode_t mask;
	int fd;

	memset(target, 0, sizeof(*target));
	target->path = path;
	if (path == NULL) {
		target->stream = stdout;
		return 0;
	}
	if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
		target->stream = fopen(path, "w");
		return target->stream != NULL ? 0 : -errno;
	}
	if (asprintf(&target->temporary, "%s" TEMPORARY_SUFFIX, path) < 0) {
		target->temporary = NULL;
		return -ENOMEM;
	}
	fd = mkstemp(target->temporary);
	if (fd < 0)
		return -errno;
	target->stream = fdopen(fd, "w");
	if (target->stream == NULL) {
		int error = -errno;

		close(fd);
		unlink(target->temporary);
		return error;
	}
	mask = umask(0);
	umask(mask);
	return fchmod(fd, 0666 & ~mask) == 0 ? 0 : -errno;
}

int
target_close(struct target *target, int result)
{
	if (target->path != NULL && target->stream != NULL && fclose(target->stream) != 0 &&
		result == 0)
		result = -errno;
	if (target->temporary != NULL && target->stream != NULL) {
		if (result == 0 && rename(target->temporary, target->path) != 0)
			result = -errno;
		if (result != 0)
			unlink(target->temporary);
	}
	free(target->temporary);
	return result;
}
