/* SPDX-License-Identifier: BSD-3-Clause */
/* The runtime directory of an instance: made, checked, locked, given back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "instance.h"

#define NO_USER ((uid_t)-1)

static char base[32], directory[64], error[BS_INSTANCE_ERROR_BYTES];

static int
setup(void **state)
{
	(void)state;
	strcpy(base, "/tmp/bs_inst_XXXXXX");
	if (mkdtemp(base) == NULL || setenv("RUNTIME_DIRECTORY", base, 1) != 0)
		return -1;
	snprintf(directory, sizeof(directory), "%s/dpdk/one", base);
	return 0;
}

static int
teardown(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", base);
	return system(command);
}

static mode_t
mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_mode & 07777;
}

static void
taken_directory_is_ours_alone_and_is_gone_when_it_is_released(void **state)
{
	struct bs_instance instance;
	char dpdk[64];

	(void)state;
	assert_int_equal(bs_instance_take("one", NO_USER, &instance, error), 0);
	assert_string_equal(instance.directory, directory);
	assert_int_equal(mode_of(directory), 0700);
	bs_instance_release(&instance);
	snprintf(dpdk, sizeof(dpdk), "%s/dpdk", base);
	assert_int_equal(access(dpdk, F_OK), -1);
	bs_instance_release(&instance); /* again: nothing */
}

static void
second_instance_of_a_prefix_is_told_the_pid_and_another_prefix_is_free(void **state)
{
	struct bs_instance first, second;
	char expected[BS_INSTANCE_ERROR_BYTES];

	(void)state;
	assert_int_equal(bs_instance_take("one", NO_USER, &first, error), 0);
	assert_int_equal(bs_instance_take("one", NO_USER, &second, error), -EADDRINUSE);
	snprintf(expected, sizeof(expected),
		"%s: another bufscoped (pid %d) runs with this eal.file_prefix: stop it, or give "
		"this one another",
		directory, getpid());
	assert_string_equal(error, expected);
	bs_instance_release(&second); /* was not taken: the first one's stays */
	assert_int_equal(access(directory, F_OK), 0);
	assert_int_equal(bs_instance_take("two", NO_USER, &second, error), 0);
	bs_instance_release(&first);
	assert_int_equal(access(second.directory, F_OK), 0);
	bs_instance_release(&second);
}

static void
lock_of_a_killed_instance_holds_nobody(void **state)
{
	struct bs_instance instance;
	pid_t pid = fork();
	int status;

	(void)state;
	if (pid == 0)
		_exit(bs_instance_take("one", NO_USER, &instance, error) == 0 ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(bs_instance_take("one", NO_USER, &instance, error), 0);
	bs_instance_release(&instance);
	assert_int_equal(access(directory, F_OK), -1);
}

static void
unsafe_directories_are_refused_with_the_command_that_mends_them(void **state)
{
	struct bs_instance instance;
	char expected[BS_INSTANCE_ERROR_BYTES];

	(void)state;
	/* as /tmp: sticky will do */
	assert_int_equal(chmod(base, 01777), 0);
	assert_int_equal(bs_instance_take("one", NO_USER, &instance, error), 0);
	bs_instance_release(&instance);
	assert_int_equal(chmod(base, 0777), 0);
	assert_int_equal(bs_instance_take("one", NO_USER, &instance, error), -EPERM);
	snprintf(expected, sizeof(expected),
		"%s: others can write to this directory (mode 0777): chmod go-w %s", base, base);
	assert_string_equal(error, expected);
	assert_int_equal(chmod(base, 0700), 0);
	if (geteuid() != 0)
		return;
	assert_int_equal(bs_instance_take("one", NO_USER, &instance, error), 0);
	assert_int_equal(chown(directory, 12345, (gid_t)-1), 0);
	assert_int_equal(bs_instance_take("one", NO_USER, &instance, error), -EPERM);
	assert_non_null(strstr(error, "belongs to uid 12345"));
	/* who bufscoped becomes may have left it */
	assert_int_equal(bs_instance_take("one", 12345, &instance, error), -EADDRINUSE);
}

static void
sockets_others_may_use_can_be_reached_and_not_listed(void **state)
{
	const struct control_access alone = {NO_USER, (gid_t)-1, 0600};
	const struct control_access group = {NO_USER, 12345, 0660};
	struct bs_instance instance;
	char dpdk[64];

	(void)state;
	snprintf(dpdk, sizeof(dpdk), "%s/dpdk", base);
	assert_int_equal(bs_instance_take("one", NO_USER, &instance, error), 0);
	assert_int_equal(bs_instance_open(&instance, &alone, error), 0);
	assert_int_equal(mode_of(directory), 0700);
	assert_int_equal(mode_of(dpdk), 0700);
	assert_int_equal(bs_instance_open(&instance, &group, error), 0);
	assert_int_equal(mode_of(directory), 0701);
	assert_int_equal(mode_of(dpdk), 0701);
	bs_instance_release(&instance);
}

static void
name_with_no_room_for_sockets_is_refused(void **state)
{
	struct bs_instance instance;
	char prefix[90];

	(void)state;
	memset(prefix, 'x', sizeof(prefix) - 1);
	prefix[sizeof(prefix) - 1] = '\0';
	assert_int_equal(bs_instance_take(prefix, NO_USER, &instance, error), -ENAMETOOLONG);
	assert_non_null(strstr(error, "shorten eal.file_prefix"));
	assert_int_equal(setenv("RUNTIME_DIRECTORY", "/nonexistent", 1), 0);
	assert_int_equal(bs_instance_take("one", NO_USER, &instance, error), -ENOENT);
	assert_string_equal(error, "/nonexistent: No such file or directory: make it, or set "
				   "XDG_RUNTIME_DIR to another");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(taken_directory_is_ours_alone_and_is_gone_when_it_is_released),
		TEST(second_instance_of_a_prefix_is_told_the_pid_and_another_prefix_is_free),
		TEST(lock_of_a_killed_instance_holds_nobody),
		TEST(unsafe_directories_are_refused_with_the_command_that_mends_them),
		TEST(sockets_others_may_use_can_be_reached_and_not_listed),
		TEST(name_with_no_room_for_sockets_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
