/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bufscope-analyzer as a process: how it ends, what it says to wrong usage,
 * what it gave up. Found in the build directory next to this test's.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sanitized.h"
#include "spawner.h"

#define PATIENCE_MS 20000

static char program[PATH_MAX];

struct child {
	pid_t pid;
	int socket; /* our end; -1: none */
	int errors; /* its stderr */
};

/* Starts it with the arguments, and "--fd N" before them if it gets a socket. */
static struct child
start(int with_socket, const char *const *args)
{
	struct child child = {.socket = -1};
	const char *all[16] = {program};
	unsigned count = 1;
	char fd_text[16];
	int ends[2] = {-1, -1}, errors[2];

	assert_int_equal(pipe2(errors, O_CLOEXEC), 0);
	if (with_socket) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
		snprintf(fd_text, sizeof(fd_text), "%d", ends[1]);
		all[count++] = "--fd";
		all[count++] = fd_text;
	}
	while (*args != NULL)
		all[count++] = *args++;
	child.pid = fork();
	assert_true(child.pid >= 0);
	if (child.pid == 0) {
		dup2(errors[1], STDERR_FILENO);
		if (with_socket)
			fcntl(ends[1], F_SETFD, 0);
		execv(program, (char *const *)all);
		_exit(126);
	}
	close(errors[1]);
	child.errors = errors[0];
	if (with_socket) {
		close(ends[1]);
		child.socket = ends[0];
	}
	return child;
}

/* Its exit status, and all that it said on stderr. */
static int
finish(struct child *child, char text[4096])
{
	size_t used = 0;
	int status;

	for (;;) {
		struct pollfd wait = {.fd = child->errors, .events = POLLIN};
		ssize_t got;

		assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
		got = read(child->errors, text + used, 4095 - used);
		assert_true(got >= 0);
		if (got == 0)
			break;
		used += (size_t)got;
	}
	text[used] = '\0';
	assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
	close(child->errors);
	if (child->socket >= 0)
		close(child->socket);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void
closed_socket_ends_it_with_0_and_a_status_line(void **state)
{
	const char *args[] = {NULL};
	char text[4096];
	struct child child = start(1, args);

	(void)state;
	close(child.socket);
	child.socket = -1;
	assert_int_equal(finish(&child, text), 0);
	assert_non_null(strstr(text, "ended; in: 0 batches"));
}

/* A malformed batch is answered by a line: by then it is past its start. */
static void
wait_until_it_reads(struct child *child)
{
	struct pollfd wait = {.fd = child->errors, .events = POLLIN};

	assert_int_equal(send(child->socket, "garbage", 7, MSG_NOSIGNAL), 7);
	assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
}

static void
sigterm_ends_it_with_0_after_garbage(void **state)
{
	const char *args[] = {NULL};
	char text[4096];
	struct child child = start(1, args);

	(void)state;
	wait_until_it_reads(&child);
	assert_int_equal(kill(child.pid, SIGTERM), 0);
	assert_int_equal(finish(&child, text), 0);
	assert_non_null(strstr(text, "malformed record of type 103 at offset 0"));
	assert_non_null(strstr(text, "1 malformed"));
}

/* The value of a line of /proc/PID/status. */
static void
status_of(pid_t pid, const char *key, char value[128])
{
	char path[64], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "r");
	assert_non_null(file);
	value[0] = '\0';
	while (fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, key, strlen(key)) == 0)
			snprintf(value, 128, "%.127s", line + strlen(key));
	fclose(file);
}

static void
root_becomes_the_user_given_and_can_gain_nothing(void **state)
{
	const char *args[] = {"--uid", "65534", "--gid", "65533", NULL};
	char text[4096], value[128];
	struct child child;

	(void)state;
	if (geteuid() != 0)
		skip();
	child = start(1, args);
	wait_until_it_reads(&child);
	status_of(child.pid, "Uid:", value);
	assert_string_equal(value, "\t65534\t65534\t65534\t65534\n");
	status_of(child.pid, "Gid:", value);
	assert_string_equal(value, "\t65533\t65533\t65533\t65533\n");
	status_of(child.pid, "Groups:", value);
	assert_null(strpbrk(value, "0123456789"));
	status_of(child.pid, "NoNewPrivs:", value);
	assert_string_equal(value, "\t1\n");
	status_of(child.pid, "CapEff:", value);
	assert_string_equal(value, "\t0000000000000000\n");
	status_of(child.pid, "CapBnd:", value);
	assert_string_equal(value, "\t0000000000000000\n");
	kill(child.pid, SIGTERM);
	assert_int_equal(finish(&child, text), 0);
}

/* How many descriptors a process has open. */
static unsigned
descriptors_of(pid_t pid)
{
	char path[64];
	unsigned count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	assert_non_null(dir);
	while (readdir(dir) != NULL)
		count++;
	closedir(dir);
	return count - 2; /* "." and ".." */
}

static void
it_sees_neither_files_nor_network_nor_what_we_had_open(void **state)
{
	const char *args[] = {NULL};
	char text[4096], value[128], path[64], there[PATH_MAX], own[64] = "", its[64] = "";
	struct child child;
	int stray = dup(STDERR_FILENO); /* not close-on-exec: it inherits this */

	(void)state;
	if (geteuid() != 0 || BS_SANITIZED)
		skip();
	child = start(1, args);
	wait_until_it_reads(&child);
	close(stray);
	/* as nobody was named, it is nobody: not root */
	status_of(child.pid, "Uid:", value);
	assert_int_not_equal(atoi(value + 1), 0);
	status_of(child.pid, "Seccomp:", value);
	assert_string_equal(value, "\t2\n");
	assert_int_equal(descriptors_of(child.pid), 5); /* 0 to 2, the socket, signals */
	snprintf(path, sizeof(path), "/proc/%d/root", child.pid);
	assert_true(readlink(path, there, sizeof(there) - 1) > 0);
	assert_non_null(strstr(there, "/bufscope-"));
	assert_int_equal(access(there, F_OK), -1);
	snprintf(path, sizeof(path), "/proc/%d/ns/net", child.pid);
	assert_true(readlink(path, its, sizeof(its) - 1) > 0);
	assert_true(readlink("/proc/self/ns/net", own, sizeof(own) - 1) > 0);
	assert_string_not_equal(its, own);
	kill(child.pid, SIGTERM);
	assert_int_equal(finish(&child, text), 0);
}

static void
loose_has_no_filter_but_no_privileges_either(void **state)
{
	const char *args[] = {"--loose", NULL};
	char text[4096], value[128];
	struct child child = start(1, args);

	(void)state;
	wait_until_it_reads(&child);
	status_of(child.pid, "Seccomp:", value);
	assert_string_equal(value, "\t0\n");
	status_of(child.pid, "CapEff:", value);
	assert_string_equal(value, "\t0000000000000000\n");
	kill(child.pid, SIGTERM);
	assert_int_equal(finish(&child, text), 0);
}

static void
wrong_usage_ends_with_2(void **state)
{
	static const char *const wrong[][6] = {
		{NULL},
		{"--fd", "x", NULL},
		{"--fd", "-1", NULL},
		{"--fd", "99999999999", NULL},
		{"--fd", "0", NULL}, /* not such a socket */
		{"--fd", "200", NULL},
		{"--fd", "3", "--socket", "/x", NULL},
		{"--socket", "/x", "--uid", "1", NULL},
		{"--socket", "/x", "stray", NULL},
		{"--nonsense", NULL},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char text[4096];
		struct child child = start(0, wrong[i]);

		assert_int_equal(finish(&child, text), 2);
		assert_true(strlen(text) > 0);
	}
}

static void
socket_that_is_not_there_ends_with_1_and_says_which(void **state)
{
	const char *args[] = {"--socket", "/nonexistent/bufscope", NULL};
	char text[4096];
	struct child child = start(0, args);

	(void)state;
	assert_int_equal(finish(&child, text), 1);
	assert_non_null(strstr(text, "/nonexistent/bufscope"));
	assert_non_null(strstr(text, "No such file"));
}

/* The only child of the spawner. */
static pid_t
analyzer_of(pid_t spawner)
{
	char path[64], text[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", spawner, spawner);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	return atoi(text);
}

static void
analyzer_of_another_user_ends_when_its_spawner_is_killed(void **state)
{
	struct bs_spawner spawner;
	struct pollfd wait = {.events = POLLIN};
	int fd, untaken;

	(void)state;
	assert_int_equal(bs_spawner_start(&spawner, program, 65534, 65533, NULL), 0);
	wait.fd = spawner.control;
	assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
	fd = bs_spawner_poll(&spawner);
	assert_true(fd >= 0);
	/* Once it has taken a batch it is past all that it does at its start. */
	assert_int_equal(send(fd, "garbage", 7, MSG_NOSIGNAL), 7);
	do {
		sched_yield();
		assert_int_equal(ioctl(fd, TIOCOUTQ, &untaken), 0);
	} while (untaken > 0);
	wait.fd = pidfd_open(analyzer_of(spawner.pid), 0);
	assert_true(wait.fd >= 0);
	assert_int_equal(kill(spawner.pid, SIGKILL), 0);
	/* The socket stays open here: only the parent-death signal can end it. */
	assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
	close(wait.fd);
	close(fd);
	bs_spawner_stop(&spawner);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closed_socket_ends_it_with_0_and_a_status_line),
		cmocka_unit_test(sigterm_ends_it_with_0_after_garbage),
		cmocka_unit_test(root_becomes_the_user_given_and_can_gain_nothing),
		cmocka_unit_test(it_sees_neither_files_nor_network_nor_what_we_had_open),
		cmocka_unit_test(loose_has_no_filter_but_no_privileges_either),
		cmocka_unit_test(wrong_usage_ends_with_2),
		cmocka_unit_test(socket_that_is_not_there_ends_with_1_and_says_which),
		cmocka_unit_test(analyzer_of_another_user_ends_when_its_spawner_is_killed),
	};
	char own[PATH_MAX - 64];
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);

	if (length < 0)
		return 1;
	own[length] = '\0';
	*strrchr(own, '/') = '\0';
	snprintf(program, sizeof(program), "%s/../../apps/bufscope-analyzer", own);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
