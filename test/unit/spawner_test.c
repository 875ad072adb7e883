/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The spawner with real processes. This program is its own analyzer: started
 * with --fd it answers what the test sends on the socket. Every wait is for an
 * event (a descriptor, the end of a process), bounded by PATIENCE_MS.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "spawner.h"

#define PATIENCE_MS 20000

static char own_path[PATH_MAX];

/* Answers "pid" and "args"; "write" writes to its second file; "break" ends it as its filter would;
 * "hold" stops it.
 */
static void
fake_analyzer(int argc, char **argv)
{
	int fd = atoi(argv[2]);
	char text[256];
	ssize_t got;

	while ((got = recv(fd, text, sizeof(text) - 1, 0)) > 0) {
		text[got] = '\0';
		if (strcmp(text, "pid") == 0) {
			snprintf(text, sizeof(text), "%d", getpid());
		} else if (strcmp(text, "args") == 0) {
			int used = 0;

			for (int i = 3; i < argc; i++)
				used += snprintf(
					text + used, sizeof(text) - (size_t)used, "%s ", argv[i]);
			snprintf(text + used, sizeof(text) - (size_t)used, ".");
		} else if (strcmp(text, "break") == 0) {
			raise(SIGSYS);
		} else if (strcmp(text, "write") == 0) {
			snprintf(text, sizeof(text), "%zd", write(5, "x", 1));
		} else {
			raise(SIGSTOP);
		}
		send(fd, text, strlen(text), MSG_NOSIGNAL);
	}
	_exit(0); /* a leak check at exit would leave a helper process of its own */
}

static int
readable(int fd)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	return poll(&wait, 1, PATIENCE_MS);
}

/* The next analyzer's socket. */
static int
next_analyzer(struct bs_spawner *spawner)
{
	int fd;

	do {
		assert_int_equal(readable(spawner->control), 1);
		fd = bs_spawner_poll(spawner);
	} while (fd == -EAGAIN);
	return fd;
}

static const char *
ask(int fd, const char *question, char answer[256])
{
	ssize_t got;

	assert_int_equal(send(fd, question, strlen(question), MSG_NOSIGNAL), strlen(question));
	assert_int_equal(readable(fd), 1);
	got = recv(fd, answer, 255, 0);
	assert_true(got > 0);
	answer[got] = '\0';
	return answer;
}

static pid_t
pid_of(int fd)
{
	char answer[256];

	return atoi(ask(fd, "pid", answer));
}

/* A handle on a process that may end meanwhile. */
static int
handle(pid_t pid)
{
	int fd = pidfd_open(pid, 0);

	assert_true(fd >= 0);
	return fd;
}

/* Stops the analyzer: from then on it hears neither SIGTERM nor the end of its socket. */
static void
hold(int fd)
{
	pid_t pid = pid_of(fd);
	char path[64], state = '?';

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	assert_int_equal(send(fd, "hold", 4, MSG_NOSIGNAL), 4);
	while (state != 'T') {
		FILE *file = fopen(path, "r");

		sched_yield();
		assert_non_null(file);
		assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
		fclose(file);
	}
}

static void
assert_ends(int pidfd)
{
	assert_int_equal(readable(pidfd), 1);
	close(pidfd);
}

static void
assert_no_child_left(void)
{
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void
started_analyzer_answers_on_the_socket_handed_over(void **state)
{
	struct bs_spawner spawner;
	int fd, type;
	socklen_t size = sizeof(type);

	(void)state;
	assert_int_equal(bs_spawner_start(&spawner, own_path, 0, 0, NULL), 0);
	fd = next_analyzer(&spawner);
	assert_true(fd >= 0);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size), 0);
	assert_int_equal(type, SOCK_SEQPACKET);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_not_equal(pid_of(fd), getpid());
	assert_int_equal(spawner.restarts, 0);
	assert_int_equal(bs_spawner_poll(&spawner), -EAGAIN);
	close(fd);
	bs_spawner_stop(&spawner);
	assert_no_child_left();
}

static void
killed_analyzer_is_replaced_by_another(void **state)
{
	struct bs_spawner spawner;
	int first, second;
	pid_t killed;
	char byte;

	(void)state;
	assert_int_equal(bs_spawner_start(&spawner, own_path, 0, 0, NULL), 0);
	first = next_analyzer(&spawner);
	killed = pid_of(first);
	assert_int_equal(kill(killed, SIGKILL), 0);
	second = next_analyzer(&spawner);
	assert_true(second >= 0);
	assert_int_equal(spawner.restarts, 1);
	assert_int_not_equal(pid_of(second), killed);
	assert_int_equal(recv(first, &byte, 1, MSG_DONTWAIT), 0);
	assert_int_equal(kill(killed, 0), -1); /* reaped */
	assert_int_equal(errno, ESRCH);
	close(first);
	close(second);
	bs_spawner_stop(&spawner);
	assert_no_child_left();
}

/* stderr goes to a pipe from here on; its other end. */
static int
divert_stderr(int *before)
{
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	*before = dup(STDERR_FILENO);
	assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
	close(ends[1]);
	return ends[0];
}

static void
analyzer_that_broke_its_filter_is_reported_as_such(void **state)
{
	struct bs_spawner spawner;
	char text[256] = "";
	int fd, before, errors = divert_stderr(&before);
	ssize_t got;

	(void)state;
	assert_int_equal(bs_spawner_start(&spawner, own_path, 0, 0, NULL), 0);
	fd = next_analyzer(&spawner);
	assert_int_equal(send(fd, "break", 5, MSG_NOSIGNAL), 5);
	close(next_analyzer(&spawner)); /* another was started */
	got = read(errors, text, sizeof(text) - 1);
	dup2(before, STDERR_FILENO);
	close(before);
	assert_true(got > 0);
	assert_string_equal(text, "bufscoped: bufscope-analyzer broke its filter of system calls "
				  "(its last line says by which), next start in 100 ms\n");
	close(errors);
	close(fd);
	bs_spawner_stop(&spawner);
}

/* Value of a hexadecimal line of /proc/PID/status. */
static uint64_t
status_of(pid_t pid, const char *key)
{
	char path[64], line[256];
	uint64_t value = UINT64_MAX;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL) {
		if (strncmp(line, key, strlen(key)) == 0)
			value = strtoull(line + strlen(key), NULL, 16);
	}
	fclose(file);
	return value;
}

static void
spawner_keeps_what_starts_need_and_no_network(void **state)
{
	/* capability.h: dac_read_search, kill, setgid, setuid, setpcap, sys_chroot */
	const uint64_t keeps = 1u << 2 | 1u << 5 | 1u << 6 | 1u << 7 | 1u << 8 | 1u << 18;
	struct bs_spawner spawner;
	char path[64], its[64] = "", ours[64] = "";
	int fd;

	(void)state;
	assert_int_equal(bs_spawner_start(&spawner, own_path, 0, 0, NULL), 0);
	fd = next_analyzer(&spawner); /* by then it has dropped */
	assert_int_equal(status_of(spawner.pid, "CapPrm:") & ~keeps, 0);
	assert_int_equal(status_of(spawner.pid, "CapEff:") & ~keeps, 0);
	assert_int_equal(status_of(spawner.pid, "NoNewPrivs:"), 1);
	if (geteuid() == 0) {
		assert_int_equal(status_of(spawner.pid, "CapBnd:"), keeps);
		snprintf(path, sizeof(path), "/proc/%d/ns/net", spawner.pid);
		assert_true(readlink(path, its, sizeof(its) - 1) > 0);
		assert_true(readlink("/proc/self/ns/net", ours, sizeof(ours) - 1) > 0);
		assert_string_not_equal(its, ours);
	}
	close(fd);
	bs_spawner_stop(&spawner);
}

static void
analyzer_whose_socket_is_closed_is_replaced(void **state)
{
	struct bs_spawner spawner;

	(void)state;
	assert_int_equal(bs_spawner_start(&spawner, own_path, 0, 0, NULL), 0);
	close(next_analyzer(&spawner));
	close(next_analyzer(&spawner));
	assert_int_equal(spawner.restarts, 1);
	bs_spawner_stop(&spawner);
}

static void
every_analyzer_is_given_the_files(void **state)
{
	int first = memfd_create("first", MFD_CLOEXEC),
	    second = memfd_create("second", MFD_CLOEXEC);
	int fds[2];
	struct bs_spawner_files files = {fds, 2, "--files", "more"};
	struct bs_spawner spawner;
	char answer[256];
	struct stat st;

	(void)state;
	/* where the spawner wants to have them, in the other order, and its control between */
	fds[0] = fcntl(first, F_DUPFD_CLOEXEC, 5);
	fds[1] = fcntl(second, F_DUPFD_CLOEXEC, 4);
	assert_int_equal(bs_spawner_start(&spawner, own_path, 0, 0, &files), 0);
	for (unsigned i = 0; i < 2; i++) {
		int fd = next_analyzer(&spawner);

		assert_non_null(strstr(ask(fd, "args", answer), "--files 4,2,more ."));
		assert_string_equal(ask(fd, "write", answer), "1");
		assert_int_equal(kill(pid_of(fd), SIGKILL), 0);
		close(fd);
	}
	bs_spawner_stop(&spawner);
	assert_int_equal(fstat(first, &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(fstat(second, &st), 0);
	assert_int_equal(st.st_size, 2);
	close(fds[0]);
	close(fds[1]);
	close(first);
	close(second);
}

static void
stop_ends_both_processes(void **state)
{
	struct bs_spawner spawner;
	int fd, spawner_handle, analyzer_handle;

	(void)state;
	assert_int_equal(bs_spawner_start(&spawner, own_path, 0, 0, NULL), 0);
	fd = next_analyzer(&spawner);
	spawner_handle = handle(spawner.pid);
	analyzer_handle = handle(pid_of(fd));
	bs_spawner_stop(&spawner);
	assert_int_equal(spawner.pid, 0);
	assert_ends(spawner_handle);
	assert_ends(analyzer_handle);
	assert_no_child_left();
	bs_spawner_stop(&spawner); /* again: nothing */
	close(fd);
}

static void
stop_kills_an_analyzer_that_does_not_go(void **state)
{
	struct bs_spawner spawner;
	int fd, analyzer_handle;

	(void)state;
	assert_int_equal(bs_spawner_start(&spawner, own_path, 0, 0, NULL), 0);
	fd = next_analyzer(&spawner);
	analyzer_handle = handle(pid_of(fd));
	hold(fd);
	bs_spawner_stop(&spawner);
	assert_ends(analyzer_handle);
	assert_no_child_left();
	close(fd);
}

/* A bufscoped that tells who was started, and hangs. */
static void
start_and_hang(int tell, bool held)
{
	struct bs_spawner spawner;
	pid_t pids[2];
	int fd;

	if (bs_spawner_start(&spawner, own_path, 0, 0, NULL) != 0)
		_exit(1);
	if (readable(spawner.control) != 1)
		_exit(1);
	fd = bs_spawner_poll(&spawner);
	pids[0] = spawner.pid;
	pids[1] = pid_of(fd);
	if (held)
		hold(fd);
	if (write(tell, pids, sizeof(pids)) != sizeof(pids))
		_exit(1);
	for (;;)
		pause();
}

static void
check_killed_parent_leaves_no_orphan(bool held)
{
	int tell[2], spawner_handle, analyzer_handle;
	pid_t parent, pids[2];

	/* Orphans become ours, so that they can be seen and reaped. */
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	assert_int_equal(pipe2(tell, O_CLOEXEC), 0);
	parent = fork();
	if (parent == 0)
		start_and_hang(tell[1], held);
	close(tell[1]);
	assert_int_equal(read(tell[0], pids, sizeof(pids)), sizeof(pids));
	spawner_handle = handle(pids[0]);
	analyzer_handle = handle(pids[1]);
	assert_int_equal(kill(parent, SIGKILL), 0);
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	assert_ends(analyzer_handle);
	assert_ends(spawner_handle);
	while (waitpid(-1, NULL, 0) > 0)
		;
	assert_no_child_left();
	close(tell[0]);
}

static void
killed_parent_leaves_no_orphan(void **state)
{
	(void)state;
	check_killed_parent_leaves_no_orphan(false);
}

static void
killed_parent_leaves_no_orphan_even_if_the_analyzer_is_stopped(void **state)
{
	(void)state;
	check_killed_parent_leaves_no_orphan(true);
}

static void
killed_spawner_is_reported_and_takes_its_analyzer_along(void **state)
{
	struct bs_spawner spawner;
	int fd, analyzer_handle;

	(void)state;
	assert_int_equal(bs_spawner_start(&spawner, own_path, 0, 0, NULL), 0);
	fd = next_analyzer(&spawner);
	analyzer_handle = handle(pid_of(fd));
	assert_int_equal(kill(spawner.pid, SIGKILL), 0);
	assert_int_equal(next_analyzer(&spawner), -EPIPE);
	assert_int_equal(bs_spawner_poll(&spawner), -EPIPE);
	assert_true(spawner.gone);
	assert_ends(analyzer_handle);
	close(fd);
	bs_spawner_stop(&spawner);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

static uint64_t
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void
analyzer_that_dies_at_once_is_started_ever_more_slowly(void **state)
{
	static const unsigned delays_ms[] = {0, 100, 200, 400};
	struct bs_spawner spawner;
	uint64_t t_start = now_ms(), delay_ms = 0;

	(void)state;
	assert_int_equal(bs_spawner_start(&spawner, "/bin/false", 0, 0, NULL), 0);
	for (unsigned i = 0; i < sizeof(delays_ms) / sizeof(delays_ms[0]); i++) {
		close(next_analyzer(&spawner));
		delay_ms += delays_ms[i];
		assert_true(now_ms() - t_start >= delay_ms);
		assert_int_equal(spawner.restarts, i);
	}
	bs_spawner_stop(&spawner);
	assert_no_child_left();
}

static void
poll_gives_the_newest_of_several(void **state)
{
	struct bs_spawner spawner;
	int fd, one = 0, pending = 0;

	(void)state;
	assert_int_equal(bs_spawner_start(&spawner, "/bin/false", 0, 0, NULL), 0);
	assert_int_equal(readable(spawner.control), 1);
	assert_int_equal(ioctl(spawner.control, FIONREAD, &one), 0);
	while (pending < 2 * one) { /* two starts wait to be taken */
		assert_int_equal(readable(spawner.control), 1);
		assert_int_equal(ioctl(spawner.control, FIONREAD, &pending), 0);
		sched_yield();
	}
	fd = bs_spawner_poll(&spawner);
	assert_true(fd >= 0);
	assert_true(spawner.restarts >= 1);
	close(fd);
	bs_spawner_stop(&spawner);
}

static void
root_tells_the_analyzer_whom_to_become(void **state)
{
	struct bs_spawner spawner;
	char answer[256];
	int fd;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(bs_spawner_start(&spawner, own_path, 65534, 65533, NULL), 0);
	fd = next_analyzer(&spawner);
	assert_string_equal(ask(fd, "args", answer), "--uid 65534 --gid 65533 .");
	close(fd);
	bs_spawner_stop(&spawner);
}

static void
program_that_cannot_be_executed_is_refused(void **state)
{
	struct bs_spawner spawner;

	(void)state;
	assert_int_equal(bs_spawner_start(&spawner, "/nonexistent/analyzer", 0, 0, NULL), -ENOENT);
	assert_int_equal(spawner.pid, 0);
	assert_int_equal(bs_spawner_start(&spawner, "/proc/self/status", 0, 0, NULL), -EACCES);
	bs_spawner_stop(&spawner);
	assert_no_child_left();
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(started_analyzer_answers_on_the_socket_handed_over),
		cmocka_unit_test(killed_analyzer_is_replaced_by_another),
		cmocka_unit_test(analyzer_that_broke_its_filter_is_reported_as_such),
		cmocka_unit_test(spawner_keeps_what_starts_need_and_no_network),
		cmocka_unit_test(analyzer_whose_socket_is_closed_is_replaced),
		cmocka_unit_test(every_analyzer_is_given_the_files),
		cmocka_unit_test(stop_ends_both_processes),
		cmocka_unit_test(stop_kills_an_analyzer_that_does_not_go),
		cmocka_unit_test(killed_parent_leaves_no_orphan),
		cmocka_unit_test(killed_parent_leaves_no_orphan_even_if_the_analyzer_is_stopped),
		cmocka_unit_test(killed_spawner_is_reported_and_takes_its_analyzer_along),
		cmocka_unit_test(analyzer_that_dies_at_once_is_started_ever_more_slowly),
		cmocka_unit_test(poll_gives_the_newest_of_several),
		cmocka_unit_test(root_tells_the_analyzer_whom_to_become),
		cmocka_unit_test(program_that_cannot_be_executed_is_refused),
	};

	if (argc > 2 && strcmp(argv[1], "--fd") == 0)
		fake_analyzer(argc, argv);
	if (readlink("/proc/self/exe", own_path, sizeof(own_path) - 1) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
