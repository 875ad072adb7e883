/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The analyzer's filter of system calls: a child loads it and makes one call.
 * Numbers of calls are those of <sys/syscall.h>.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "filter.h"
#include "sanitized.h"

/* Status as of waitpid of a child that calls `act` behind the filter; its stderr in text. */
static int
status_behind_filter(void (*act)(void), char text[256])
{
	int ends[2], status;
	size_t used = 0;
	ssize_t got;
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(ends[1], STDERR_FILENO);
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || bs_filter_load() != 0)
			_exit(100);
		act();
		_exit(0);
	}
	close(ends[1]);
	while ((got = read(ends[0], text + used, 255 - used)) > 0)
		used += (size_t)got;
	text[used] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void
call_socket(void)
{
	socket(AF_INET, SOCK_STREAM, 0);
}

static void
call_openat(void)
{
	open("/etc/passwd", O_RDONLY);
}

static void
call_execve(void)
{
	execl("/bin/true", "true", NULL);
}

static void
call_fork(void)
{
	syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
}

static void
call_kill(void)
{
	kill(1, 0);
}

static void
call_tgkill(void)
{
	syscall(SYS_tgkill, 1, 1, 0);
}

static void
call_mmap(void)
{
	mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void
call_stat(void)
{
	struct stat st;

	fstatat(AT_FDCWD, "/etc/passwd", &st, 0);
}

static void
call_sigaction(void)
{
	signal(SIGSYS, SIG_IGN);
}

static void
call_ptrace(void)
{
	syscall(SYS_ptrace, 0, 0, NULL, NULL);
}

static void
any_other_call_is_named_and_ends_the_process(void **state)
{
	static const struct {
		void (*act)(void);
		int number;
	} calls[] = {
		{call_socket, SYS_socket},
		{call_openat, SYS_openat},
		{call_execve, SYS_execve},
		{call_fork, SYS_clone},
		{call_kill, SYS_kill},
		{call_tgkill, SYS_tgkill},
		{call_mmap, SYS_mmap},
		{call_stat, SYS_newfstatat},
		{call_sigaction, SYS_rt_sigaction},
		{call_ptrace, SYS_ptrace},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		char text[256];
		int status = status_behind_filter(calls[i].act, text), number = -1;

		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGSYS);
		assert_int_equal(
			sscanf(text, "bufscope-analyzer: forbidden system call %d", &number), 1);
		assert_int_equal(number, calls[i].number);
		assert_int_equal(text[strlen(text) - 1], '\n');
	}
}

static void *
forbidden_in_thread(void *context)
{
	call_socket();
	return context;
}

static void *
fill_memory(void *context)
{
	char *memory = malloc(64u << 20);

	if (memory == NULL)
		_exit(101);
	memset(memory, 1, 64u << 20);
	free(memory);
	return context;
}

static void
work_as_the_analyzer(void)
{
	struct stat st;
	pthread_t thread;

	fill_memory(NULL);
	if (fstat(STDERR_FILENO, &st) != 0)
		_exit(102);
	fprintf(stderr, "%s %d\n", strerror(ENOENT), getpid() > 0);
	if (pthread_create(&thread, NULL, fill_memory, NULL) != 0 ||
		pthread_join(thread, NULL) != 0)
		_exit(103);
}

static void
what_the_loop_needs_is_allowed(void **state)
{
	char text[256];
	int status = status_behind_filter(work_as_the_analyzer, text);

	(void)state;
	assert_string_equal(text, "No such file or directory 1\n");
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void
start_forbidden_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, forbidden_in_thread, NULL) == 0)
		pthread_join(thread, NULL);
}

static void
a_thread_is_bound_too(void **state)
{
	char text[256];
	int status = status_behind_filter(start_forbidden_thread, text);

	(void)state;
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSYS);
}

static void
abort_ends_it_as_ever(void **state)
{
	char text[256];
	int status = status_behind_filter(abort, text);

	(void)state;
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_other_call_is_named_and_ends_the_process),
		cmocka_unit_test(what_the_loop_needs_is_allowed),
		cmocka_unit_test(a_thread_is_bound_too),
		cmocka_unit_test(abort_ends_it_as_ever),
	};

	if (BS_SANITIZED)
		return 77; /* a sanitizer makes calls of its own */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
