/* SPDX-License-Identifier: BSD-3-Clause */
#include "connect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PATH_BYTES sizeof(((struct sockaddr_un *)0)->sun_path)
#define RETRY_MS 20
#define PREFIX_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
#define ANSWER_BYTES_MAX (16u << 20)

/* Where EAL keeps its runtime files (section "EAL settings" of DPDK's guide): a variable or a path.
 */
static const struct {
	const char *variable, *path;
} bases[] = {
	{NULL, "/run"},
	{NULL, "/var/run"},
	{"RUNTIME_DIRECTORY", NULL},
	{"XDG_RUNTIME_DIR", NULL},
	{NULL, "/tmp"},
};

/* Who must let us in: the owner of the last part of path that can be seen. */
static int
fail_access(const char *path, char *error)
{
	char seen[PATH_BYTES];
	const struct passwd *owner;
	struct stat st;
	char *slash;

	snprintf(seen, sizeof(seen), "%s", path);
	while (stat(seen, &st) != 0) {
		slash = strrchr(seen, '/');
		if (slash == NULL || slash == seen) {
			snprintf(error, CONNECT_ERROR_BYTES, "%s: permission denied", path);
			return -EACCES;
		}
		*slash = '\0';
	}
	owner = getpwuid(st.st_uid);
	snprintf(error, CONNECT_ERROR_BYTES,
		"%s: permission denied: %s belongs to uid %u (%s); run this as that user or as "
		"root",
		path, seen, st.st_uid, owner == NULL ? "no name" : owner->pw_name);
	return -EACCES;
}

/* Anybody can put a socket into /tmp: what was found by searching must be root's or ours. */
static int
check_owner(int fd, const char *path, char *error)
{
	struct ucred owner = {.uid = (uid_t)-1};
	socklen_t bytes = sizeof(owner);

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &bytes);
	if (owner.uid == 0 || owner.uid == geteuid())
		return 0;
	snprintf(error, CONNECT_ERROR_BYTES,
		"%s: served by uid %u, neither root nor you; if you trust it: --socket %s", path,
		owner.uid, path);
	return -EPERM;
}

static int
open_path(const char *path, char *error)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int code, fd;

	if (strlen(path) >= sizeof(address.sun_path)) {
		snprintf(error, CONNECT_ERROR_BYTES,
			"the socket's path has more than %zu characters", PATH_BYTES - 1);
		return -ENAMETOOLONG;
	}
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	code = -errno;
	if (fd >= 0)
		close(fd);
	if (code == -EACCES)
		return fail_access(path, error);
	snprintf(error, CONNECT_ERROR_BYTES, "%s: %s", path,
		code == -ECONNREFUSED ? "nobody listens there any more: start bufscoped"
				      : strerror(-code));
	return code;
}

static bool
is_absent(int code)
{
	return code == -ENOENT || code == -ECONNREFUSED || code == -ENOTDIR;
}

/* Appends the prefixes of the instances under base/dpdk that have a control socket to text. */
static void
append_running(const char *base, char *text, size_t size)
{
	char path[PATH_BYTES + 16];
	const struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%.90s/dpdk", base);
	dir = opendir(path);
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		size_t used = strlen(text);

		snprintf(path, sizeof(path), "%.64s/bufscope.sock", entry->d_name);
		/* anybody can make directories in /tmp, of names that steer a terminal */
		if (strspn(entry->d_name, PREFIX_CHARACTERS) == strlen(entry->d_name) &&
			faccessat(dirfd(dir), path, F_OK, 0) == 0)
			snprintf(text + used, size - used, "%s%.64s", used > 0 ? ", " : "",
				entry->d_name);
	}
	if (dir != NULL)
		closedir(dir);
}

/* There is none of that prefix; names those of others, where they can be seen. */
static int
fail_absent(const char *file_prefix, char *error)
{
	char running[160] = "";

	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		const char *base =
			bases[i].variable == NULL ? bases[i].path : getenv(bases[i].variable);

		/* where there are both, /var/run is /run */
		if (base != NULL && strcmp(base, "/var/run") != 0)
			append_running(base, running, sizeof(running));
	}
	snprintf(error, CONNECT_ERROR_BYTES,
		"no bufscoped with file prefix \"%s\" runs here (looked in dpdk/ under /run, "
		"$RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR and /tmp%s%s): start it, or give "
		"--file-prefix or --socket",
		file_prefix, running[0] != '\0' ? "; there is: " : "", running);
	return -ENOENT;
}

/*
 * The first instance found. A directory that we may not enter does not end the
 * search: the instance looked for may be elsewhere.
 */
static int
search(const char *file_prefix, char *error)
{
	bool denied = false;

	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		const char *base =
			bases[i].variable == NULL ? bases[i].path : getenv(bases[i].variable);
		char path[PATH_BYTES], unused[CONNECT_ERROR_BYTES];
		int fd, code;

		if (base == NULL || snprintf(path, sizeof(path), "%s/dpdk/%s/bufscope.sock", base,
					    file_prefix) >= (int)sizeof(path))
			continue;
		fd = open_path(path, denied ? unused : error);
		denied = denied || fd == -EACCES;
		if (fd == -EACCES || is_absent(fd))
			continue;
		code = fd < 0 ? fd : check_owner(fd, path, error);
		if (code == 0)
			return fd;
		if (fd >= 0)
			close(fd);
		return code;
	}
	if (denied)
		return -EACCES;
	return fail_absent(file_prefix, error);
}

static int64_t
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int
connect_open(const struct connect_target *target, char error[CONNECT_ERROR_BYTES])
{
	int64_t end = now_ms() + (target->wait ? CONNECT_WAIT_MS : 0);
	int fd;

	for (;;) {
		fd = target->socket != NULL ? open_path(target->socket, error)
					    : search(target->file_prefix, error);
		if (!is_absent(fd) || now_ms() >= end)
			return fd;
		poll(NULL, 0, RETRY_MS);
	}
}

static int
send_request(int fd, const char *command, const char *params)
{
	json_t *request = json_pack("{s:s, s:s}", "command", command, "params", params);
	char *text = request == NULL ? NULL : json_dumps(request, JSON_COMPACT);
	size_t bytes = text == NULL ? 0 : strlen(text);
	int ret = text == NULL ? -ENOMEM : 0;

	json_decref(request);
	if (ret == 0) {
		text[bytes++] = '\n'; /* in place of the NUL */
		if (send(fd, text, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
			ret = -EPIPE;
	}
	free(text);
	return ret;
}

/* A line of at most ANSWER_BYTES_MAX into *line, for the caller to free; its length, or -errno. */
static ssize_t
receive_line(int fd, char **line)
{
	size_t used = 0, room = 0;
	int64_t end = now_ms() + CONNECT_ANSWER_MS;

	*line = NULL;
	for (;;) {
		struct pollfd wait = {.fd = fd, .events = POLLIN};
		int64_t left = end - now_ms();
		ssize_t got;

		if (used == room) {
			char *larger;

			if (room >= ANSWER_BYTES_MAX)
				return -EMSGSIZE;
			larger = realloc(*line, room + 65536);
			if (larger == NULL)
				return -ENOMEM;
			*line = larger;
			room += 65536;
		}
		if (left <= 0 || poll(&wait, 1, (int)left) == 0)
			return -ETIMEDOUT;
		got = recv(fd, *line + used, room - used, MSG_DONTWAIT);
		if (got == 0)
			return -EPIPE;
		if (got < 0) {
			if (errno == EAGAIN || errno == EINTR)
				continue;
			return -errno;
		}
		used += (size_t)got;
		if ((*line)[used - 1] == '\n')
			return (ssize_t)used;
	}
}

json_t *
connect_ask(int fd, const char *command, const char *params, char error[CONNECT_ERROR_BYTES])
{
	char *line = NULL;
	ssize_t bytes = send_request(fd, command, params == NULL ? "" : params);
	json_t *answer, *result;
	const char *refusal;

	if (bytes == 0)
		bytes = receive_line(fd, &line);
	if (bytes == -ETIMEDOUT) {
		free(line);
		snprintf(error, CONNECT_ERROR_BYTES,
			"bufscoped does not answer within %d s: its main thread is stopped or gets "
			"no CPU time (top -H); DPDK's telemetry, of another thread, may still "
			"answer",
			CONNECT_ANSWER_MS / 1000);
		return NULL;
	}
	if (bytes < 0) {
		free(line);
		snprintf(error, CONNECT_ERROR_BYTES, "bufscoped does not answer: %s",
			bytes == -EPIPE ? "it closed the connection" : strerror((int)-bytes));
		return NULL;
	}
	answer = json_loadb(line, (size_t)bytes, JSON_REJECT_DUPLICATES, NULL);
	free(line);
	result = json_incref(json_object_get(answer, "result"));
	refusal = json_string_value(json_object_get(answer, "error"));
	if (!json_is_object(result)) {
		snprintf(error, CONNECT_ERROR_BYTES, "%s",
			refusal != NULL ? refusal : "bufscoped's answer makes no sense");
		json_decref(result);
		result = NULL;
	}
	json_decref(answer);
	return result;
}
