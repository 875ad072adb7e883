/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is dropped, in every thread: children with threads drop, and what
 * /proc/PID/task/TID/status says of each is compared with capabilities(7).
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capabilities.h"
#include "privileges.h"

#define THREADS 4

static struct bs_config config;
static struct bs_privileges privileges;
static char error[BS_PRIVILEGES_ERROR_BYTES];

/* A config with one device, which asks for the drop. */
static void
plan(const char *device, const char *user)
{
	memset(&config, 0, sizeof(config));
	config.privileges.drop = true;
	config.port_count = 1;
	config.ports[0].device_count = 1;
	snprintf(config.ports[0].device[0], sizeof(config.ports[0].device[0]), "%s", device);
	snprintf(config.privileges.user, sizeof(config.privileges.user), "%s", user);
}

static void *
wait_for_ever(void *blocked)
{
	sigset_t all;

	if (blocked != NULL) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, NULL);
	}
	for (;;)
		pause();
	return NULL;
}

static void
start_thread(void *blocked)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, wait_for_ever, blocked) != 0)
		_exit(100);
}

/* The hex or decimal number behind a key in a thread's status. */
static uint64_t
status_of(const char *tid, const char *key, int base)
{
	char path[300], line[256];
	uint64_t value = UINT64_MAX;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", tid);
	file = fopen(path, "r");
	if (file == NULL)
		_exit(101);
	while (fgets(line, sizeof(line), file) != NULL) {
		if (strncmp(line, key, strlen(key)) == 0)
			value = strtoull(line + strlen(key), NULL, base);
	}
	fclose(file);
	return value;
}

/* How many threads have these; a thread that does not ends the process. */
static unsigned
check_threads(uint64_t main_keeps, unsigned uid)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	unsigned count = 0;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		uint64_t keeps = atoi(entry->d_name) == getpid() ? main_keeps : 0;

		if (entry->d_name[0] == '.')
			continue;
		if (status_of(entry->d_name, "CapPrm:", 16) != keeps ||
			status_of(entry->d_name, "CapEff:", 16) != keeps ||
			status_of(entry->d_name, "CapInh:", 16) != 0 ||
			status_of(entry->d_name, "CapAmb:", 16) != 0 ||
			status_of(entry->d_name, "CapBnd:", 16) != keeps ||
			status_of(entry->d_name, "NoNewPrivs:", 10) != 1 ||
			status_of(entry->d_name, "Uid:", 10) != uid)
			_exit(102);
		count++;
	}
	return count;
}

static int
exit_status_of(void (*child)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		child();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void
drop_with_threads(void)
{
	for (int i = 0; i < THREADS; i++)
		start_thread(NULL);
	if (bs_privileges_plan(&config, &privileges, error) != 0 ||
		bs_privileges_drop(&privileges, error) != 0)
		_exit(103);
	start_thread(NULL); /* by a thread that keeps something: its own business */
}

static void
drop_all(void)
{
	plan("net_null0", "");
	drop_with_threads();
	if (check_threads(0, getuid()) != THREADS + 2)
		_exit(104);
}

static void
drop_to_nobody(void)
{
	plan("net_null0", "65534");
	drop_with_threads();
	if (check_threads(0, 65534) != THREADS + 2 || setuid(0) == 0)
		_exit(104);
}

static void
drop_but_net_admin(void)
{
	plan("net_af_xdp0,iface=x", "65534");
	for (int i = 0; i < THREADS; i++)
		start_thread(NULL);
	if (bs_privileges_plan(&config, &privileges, error) != 0 ||
		bs_privileges_drop(&privileges, error) != 0)
		_exit(103);
	if (check_threads(BS_CAPABILITY(CAP_NET_ADMIN), 65534) != THREADS + 1)
		_exit(104);
	if (privileges.kept_count != 1 || strcmp(privileges.kept[0].name, "CAP_NET_ADMIN") != 0)
		_exit(105);
}

static void
drop_with_a_thread_that_blocks_signals(void)
{
	plan("net_null0", "");
	start_thread(&config);
	if (bs_privileges_plan(&config, &privileges, error) != 0)
		_exit(103);
	if (bs_privileges_drop(&privileges, error) != -ETIMEDOUT || privileges.dropped ||
		strstr(error, "set privileges.drop to false") == NULL)
		_exit(104);
}

static void
every_thread_loses_all_that_is_not_kept(void **state)
{
	(void)state;
	assert_int_equal(exit_status_of(drop_all), 0);
}

static void
only_the_main_thread_keeps_what_kernel_interfaces_need(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(exit_status_of(drop_but_net_admin), 0);
}

static void
the_user_given_is_that_of_every_thread_for_good(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(exit_status_of(drop_to_nobody), 0);
}

static void
a_thread_that_cannot_be_reached_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(exit_status_of(drop_with_a_thread_that_blocks_signals), 0);
}

static void
without_drop_nothing_changes(void **state)
{
	uint64_t before = bs_capabilities_permitted();

	(void)state;
	plan("net_null0", "");
	config.privileges.drop = false;
	assert_int_equal(bs_privileges_plan(&config, &privileges, error), 0);
	assert_int_equal(bs_privileges_drop(&privileges, error), 0);
	assert_false(privileges.dropped);
	assert_int_equal(bs_capabilities_permitted(), before);
	assert_int_equal(privileges.kept_count, 0);
}

static void
a_user_that_is_not_there_is_told_before_anything_is_dropped(void **state)
{
	(void)state;
	plan("net_null0", "no-such-user");
	assert_int_equal(bs_privileges_plan(&config, &privileges, error), -ENOENT);
	assert_string_equal(error,
		"privileges.user: there is no user \"no-such-user\"; add it (adduser --system), or "
		"name another");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_thread_loses_all_that_is_not_kept),
		cmocka_unit_test(only_the_main_thread_keeps_what_kernel_interfaces_need),
		cmocka_unit_test(the_user_given_is_that_of_every_thread_for_good),
		cmocka_unit_test(a_thread_that_cannot_be_reached_is_an_error),
		cmocka_unit_test(without_drop_nothing_changes),
		cmocka_unit_test(a_user_that_is_not_there_is_told_before_anything_is_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
