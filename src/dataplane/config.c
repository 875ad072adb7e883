/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loading, checking and comparing configurations. What keys there are is in
 * config_keys.c.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config_private.h"
#include "safe.h"

static int
parse(struct config_reader *reader, size_t bytes)
{
	json_error_t json_error;
	json_t *root;
	int ret;

	memset(reader->config, 0, sizeof(*reader->config));
	snprintf(reader->config->path, sizeof(reader->config->path), "%s", reader->file);
	root = json_loadb(reader->text, bytes, JSON_REJECT_DUPLICATES, &json_error);
	if (root == NULL) {
		snprintf(reader->error, BS_CONFIG_ERROR_BYTES, "%s:%d: not JSON: %s", reader->file,
			json_error.line, json_error.text);
		config_one_line(reader->error);
		return -EINVAL;
	}
	if (json_is_object(root))
		ret = config_read_object(reader, config_keys, root, reader->config);
	else
		ret = config_fail(reader, "must be an object (allowed: {...})");
	if (ret == 0)
		ret = config_check(reader);
	json_decref(root);
	return ret;
}

int
bs_config_parse(const char *path, const char *text, struct bs_config *config,
	char error[BS_CONFIG_ERROR_BYTES])
{
	struct config_reader reader = {
		.file = path, .text = text, .config = config, .error = error};

	error[0] = '\0';
	return parse(&reader, strlen(text));
}

__attribute__((format(printf, 4, 5))) static int
fail_file(const char *path, int code, char *error, const char *format, ...)
{
	int used = snprintf(error, BS_CONFIG_ERROR_BYTES, "%.256s: ", path);
	va_list args;

	va_start(args, format);
	vsnprintf(error + used, BS_CONFIG_ERROR_BYTES - (size_t)used, format, args);
	va_end(args);
	return code;
}

/* A descriptor of the file and its size, or -errno. */
static int
open_config(const char *path, size_t *bytes, char *error)
{
	char why[BS_SAFE_ERROR_BYTES];
	struct stat st;
	int code, fd = bs_safe_open(path, why);

	if (fd < 0) {
		snprintf(error, BS_CONFIG_ERROR_BYTES, "%s", why);
		return fd;
	}
	if (fstat(fd, &st) != 0)
		code = fail_file(path, -errno, error, "%s", strerror(errno));
	else if (st.st_size > (off_t)CONFIG_FILE_BYTES_MAX)
		code = fail_file(
			path, -EFBIG, error, "is larger than %u bytes", CONFIG_FILE_BYTES_MAX);
	else
		code = 0;
	if (code != 0) {
		close(fd);
		return code;
	}
	*bytes = (size_t)st.st_size;
	return fd;
}

/* At most `bytes` bytes of fd, NUL-terminated, for the caller to free. */
static int
read_all(int fd, size_t bytes, char **text)
{
	size_t used = 0;
	ssize_t got;

	*text = malloc(bytes + 1);
	if (*text == NULL)
		return -ENOMEM;
	do {
		got = read(fd, *text + used, bytes - used);
		if (got > 0)
			used += (size_t)got;
	} while (got > 0 || (got < 0 && errno == EINTR));
	if (got < 0)
		return -errno;
	(*text)[used] = '\0';
	return 0;
}

int
bs_config_load(const char *path, struct bs_config *config, char error[BS_CONFIG_ERROR_BYTES])
{
	struct config_reader reader = {.file = path, .config = config, .error = error};
	char *text = NULL;
	size_t bytes = 0;
	int ret, fd;

	error[0] = '\0';
	if (strlen(path) >= sizeof(config->path))
		return fail_file(path, -ENAMETOOLONG, error, "the path is too long");
	fd = open_config(path, &bytes, error);
	if (fd < 0)
		return fd;
	ret = read_all(fd, bytes, &text);
	close(fd);
	if (ret != 0) {
		fail_file(path, ret, error, "%s", strerror(-ret));
	} else if (strlen(text) != bytes) {
		ret = fail_file(
			path, -EINVAL, error, "holds a NUL byte, or was changed while it was read");
	} else {
		reader.text = text;
		ret = parse(&reader, bytes);
	}
	free(text);
	return ret;
}

static int
fail_reload(struct config_reader *reader)
{
	config_fail(reader, "cannot change without a restart (allowed in a reload: services' slo "
			    "and operations, detect, records)");
	return -EPERM;
}

static int compare(struct config_reader *reader, const struct config_key *keys, const char *now,
	const char *next);

static int
compare_lists(struct config_reader *reader, const struct config_key *key, const char *now,
	const char *next)
{
	unsigned count = *(const unsigned *)(const void *)(now + key->count_offset);

	if (memcmp(now + key->count_offset, next + key->count_offset, sizeof(count)) != 0)
		return fail_reload(reader);
	for (unsigned i = 0; i < count; i++) {
		size_t at = key->offset + i * key->bytes;
		bool map = key->kind == CONFIG_MAP;
		int ret;

		config_push(reader, map ? now + at : NULL, i);
		if (map && strcmp(now + at, next + at) != 0)
			return fail_reload(reader);
		ret = compare(reader, key->keys, now + at, next + at);
		if (ret != 0)
			return ret;
		config_pop(reader);
	}
	return 0;
}

/* By the table: what a key stored in one struct against what it stored in the other. */
static int
compare(struct config_reader *reader, const struct config_key *keys, const char *now,
	const char *next)
{
	int ret = 0;

	for (const struct config_key *key = keys; key->name != NULL; key++) {
		if (key->reload)
			continue;
		config_push(reader, key->name, 0);
		if (key->kind == CONFIG_OBJECT)
			ret = compare(reader, key->keys, now, next);
		else if (key->kind == CONFIG_LIST || key->kind == CONFIG_MAP)
			ret = compare_lists(reader, key, now, next);
		else if (memcmp(now + key->offset, next + key->offset, key->bytes) != 0)
			ret = fail_reload(reader);
		if (ret != 0)
			return ret;
		config_pop(reader);
	}
	return 0;
}

int
bs_config_reloadable(const struct bs_config *now, const struct bs_config *next,
	char error[BS_CONFIG_ERROR_BYTES])
{
	struct config_reader reader = {.file = next->path, .error = error};

	error[0] = '\0';
	if (memcmp(now->framing_names, next->framing_names, sizeof(now->framing_names)) != 0) {
		config_push(&reader, "framing", 0);
		return fail_reload(&reader);
	}
	return compare(&reader, config_keys, (const char *)now, (const char *)next);
}
