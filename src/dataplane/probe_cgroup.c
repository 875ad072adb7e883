/* SPDX-License-Identifier: BSD-3-Clause */
/* The cgroup of a process, found and read: see probe_process.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe_process.h"

#define LINE_BYTES 1024u
#define STAT_BYTES 1024u

/* Is the word among those that commas separate? */
static bool
has_word(const char *list, const char *word)
{
	const size_t bytes = strlen(word);

	for (; list != NULL; list = strchr(list, ',')) {
		list += *list == ',';
		if (strncmp(list, word, bytes) == 0 && (list[bytes] == ',' || list[bytes] == '\0'))
			return true;
	}
	return false;
}

static bool
kind_of(const char *type, const char *options, enum bs_cgroup_kind *kind)
{
	if (strcmp(type, "cgroup2") == 0)
		*kind = BS_CGROUP_V2;
	else if (strcmp(type, "cgroup") == 0 && has_word(options, "cpu"))
		*kind = BS_CGROUP_CPU;
	else if (strcmp(type, "cgroup") == 0 && has_word(options, "freezer"))
		*kind = BS_CGROUP_FREEZER;
	else
		return false;
	return true;
}

/* "36 35 98:0 /root /point options fields... - type source superoptions" */
static void
read_mount(const char *line, struct bs_cgroup_mounts *mounts)
{
	struct bs_cgroup_mount *mount = &mounts->list[mounts->count];
	char type[32], options[256];
	const char *rest = strstr(line, " - ");

	if (rest == NULL || sscanf(rest, " - %31s %*s %255s", type, options) != 2 ||
		!kind_of(type, options, &mount->kind) ||
		sscanf(line, "%*s %*s %*s %255s %255s", mount->root, mount->point) != 2)
		return;
	/* cut, or written with escapes */
	if (strlen(mount->root) < BS_CGROUP_PATH - 1 && strlen(mount->point) < BS_CGROUP_PATH - 1 &&
		strchr(mount->root, '\\') == NULL && strchr(mount->point, '\\') == NULL)
		mounts->count++;
}

void
bs_cgroup_mounts_read(const char *mountinfo, struct bs_cgroup_mounts *mounts)
{
	FILE *file = fopen(mountinfo, "re");
	char line[LINE_BYTES];

	mounts->count = 0;
	if (file == NULL)
		return;
	while (mounts->count < BS_CGROUP_MOUNTS && fgets(line, sizeof(line), file) != NULL)
		read_mount(line, mounts);
	fclose(file);
}

/* Where a cgroup is below a mount; false: it is not. */
static bool
directory_of(const struct bs_cgroup_mount *mount, const char *path, char out[2 * BS_CGROUP_PATH])
{
	const size_t bytes = strcmp(mount->root, "/") == 0 ? 0 : strlen(mount->root);

	if (strncmp(path, mount->root, bytes) != 0 || (path[bytes] != '/' && path[bytes] != '\0') ||
		strstr(path, "/..") != NULL)
		return false;
	snprintf(out, 2 * BS_CGROUP_PATH, "%s%s", mount->point,
		strcmp(path + bytes, "/") == 0 ? "" : path + bytes);
	return true;
}

static int
open_in(const char *directory, const char *name)
{
	char path[3 * BS_CGROUP_PATH];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static bool
has_quota(const char *directory, enum bs_cgroup_kind kind)
{
	char path[3 * BS_CGROUP_PATH], text[64];

	snprintf(path, sizeof(path), "%s/%s", directory,
		kind == BS_CGROUP_V2 ? "cpu.max" : "cpu.cfs_quota_us");
	/* "max 100000", or -1: no quota */
	return bs_probe_read_text(AT_FDCWD, path, text, sizeof(text)) > 0 && text[0] >= '0' &&
	       text[0] <= '9';
}

/* Those with a quota, from `directory` up to where it is mounted. */
static void
open_stats(struct bs_cgroup *cgroup, const struct bs_cgroup_mount *mount, char *directory)
{
	const size_t top = strlen(mount->point);

	for (;;) {
		char *slash;
		int fd = -1;

		if (cgroup->stat_count < BS_CGROUP_LEVELS && has_quota(directory, mount->kind))
			fd = open_in(directory, "cpu.stat");
		if (fd >= 0)
			cgroup->stats[cgroup->stat_count++] = fd;
		slash = strrchr(directory, '/');
		if (strlen(directory) <= top || slash == NULL)
			return;
		*slash = '\0';
	}
}

static void
open_freezer(struct bs_cgroup *cgroup, const char *directory, enum bs_cgroup_kind kind)
{
	int fd = -1;

	if (cgroup->freezer_count < sizeof(cgroup->freezers) / sizeof(cgroup->freezers[0]))
		fd = open_in(directory, kind == BS_CGROUP_V2 ? "cgroup.events" : "freezer.state");
	if (fd >= 0)
		cgroup->freezers[cgroup->freezer_count++] = fd;
}

static void
open_at(struct bs_cgroup *cgroup, const struct bs_cgroup_mounts *mounts, enum bs_cgroup_kind kind,
	const char *path)
{
	char directory[2 * BS_CGROUP_PATH];

	for (unsigned i = 0; i < mounts->count; i++) {
		const struct bs_cgroup_mount *mount = &mounts->list[i];

		if (mount->kind != kind || !directory_of(mount, path, directory) ||
			access(directory, X_OK) != 0)
			continue;
		if (kind != BS_CGROUP_CPU)
			open_freezer(cgroup, directory, kind);
		if (kind != BS_CGROUP_FREEZER)
			open_stats(cgroup, mount, directory);
		return;
	}
}

void
bs_cgroup_open(struct bs_cgroup *cgroup, const struct bs_cgroup_mounts *mounts, const char *file)
{
	char line[LINE_BYTES];
	FILE *lines = fopen(file, "re");

	cgroup->stat_count = cgroup->freezer_count = 0;
	if (lines == NULL)
		return;
	/* "4:cpu,cpuacct:/path"; version 2: "0::/path" */
	while (fgets(line, sizeof(line), lines) != NULL) {
		char *controllers = strchr(line, ':');
		char *path = controllers == NULL ? NULL : strchr(controllers + 1, ':');

		if (path == NULL || strchr(line, '\n') == NULL || strlen(path) > BS_CGROUP_PATH)
			continue;
		line[strcspn(line, "\n")] = '\0';
		*path++ = '\0';
		controllers++;
		if (controllers[0] == '\0')
			open_at(cgroup, mounts, BS_CGROUP_V2, path);
		else if (has_word(controllers, "cpu"))
			open_at(cgroup, mounts, BS_CGROUP_CPU, path);
		else if (has_word(controllers, "freezer"))
			open_at(cgroup, mounts, BS_CGROUP_FREEZER, path);
	}
	fclose(lines);
}

void
bs_cgroup_close(struct bs_cgroup *cgroup)
{
	for (unsigned i = 0; i < cgroup->stat_count; i++)
		close(cgroup->stats[i]);
	for (unsigned i = 0; i < cgroup->freezer_count; i++)
		close(cgroup->freezers[i]);
	cgroup->stat_count = cgroup->freezer_count = 0;
}

/* The number behind a name at the start of a line; 0 where there is none. */
static uint64_t
number_of(const char *text, const char *name)
{
	const size_t bytes = strlen(name);

	for (; text != NULL; text = strchr(text, '\n')) {
		text += *text == '\n';
		if (strncmp(text, name, bytes) == 0 && text[bytes] == ' ')
			return strtoull(text + bytes + 1, NULL, 10);
	}
	return 0;
}

static bool
read_again(int fd, char text[STAT_BYTES])
{
	ssize_t n = pread(fd, text, STAT_BYTES - 1, 0);

	text[n < 0 ? 0 : n] = '\0';
	return n > 0;
}

void
bs_cgroup_sample(const struct bs_cgroup *cgroup, struct bs_probe_sample *sample)
{
	char text[STAT_BYTES];

	sample->throttled_ns = 0;
	sample->frozen = false;
	for (unsigned i = 0; i < cgroup->stat_count; i++) {
		if (read_again(cgroup->stats[i], text))
			sample->throttled_ns += number_of(text, "throttled_usec") * 1000 +
						number_of(text, "throttled_time");
	}
	for (unsigned i = 0; i < cgroup->freezer_count; i++) {
		if (read_again(cgroup->freezers[i], text) &&
			(number_of(text, "frozen") == 1 || strncmp(text, "FROZEN", 6) == 0))
			sample->frozen = true;
	}
}
