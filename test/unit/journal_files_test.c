/* SPDX-License-Identifier: BSD-3-Clause */
/* The journal's files as root opens them: in a directory that others could have prepared. */
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
#include <unistd.h>

#include "bs_journal.h"
#include "journal_files.h"

#define FILES 3u

struct rig {
	char directory[64], path[80];
	int fds[FILES];
	char error[BS_JOURNAL_FILES_ERROR_BYTES];
};

static int
set_up(void **state)
{
	static struct rig rig;

	memset(&rig, 0, sizeof(rig));
	snprintf(rig.directory, sizeof(rig.directory), "/tmp/journal-files.XXXXXX");
	if (mkdtemp(rig.directory) == NULL)
		return -1;
	snprintf(rig.path, sizeof(rig.path), "%s/j", rig.directory);
	*state = &rig;
	return 0;
}

static const char *
name_of(const struct rig *rig, unsigned number, char name[96])
{
	snprintf(name, 96, "%s.%u", rig->path, number);
	return name;
}

static int
tear_down(void **state)
{
	const struct rig *rig = *state;
	char name[96];

	chmod(rig->directory, 0700);
	for (unsigned i = 0; i < FILES; i++)
		unlink(name_of(rig, i, name));
	return rmdir(rig->directory);
}

static int
open_all(struct rig *rig)
{
	rig->error[0] = '\0';
	return bs_journal_files_open(rig->path, FILES, rig->fds, rig->error);
}

static void
assert_refused(struct rig *rig, int code, const char *why)
{
	int next = dup(0);

	assert_int_equal(open_all(rig), code);
	if (strstr(rig->error, why) == NULL)
		fail_msg("\"%s\" does not say: %s", rig->error, why);
	/* nothing is left open */
	close(next);
	assert_int_equal(dup(0), next);
	close(next);
}

static void
files_are_made_for_us_alone_and_opened_again(void **state)
{
	struct rig *rig = *state;
	struct stat st;

	for (unsigned round = 0; round < 2; round++) {
		assert_int_equal(open_all(rig), 0);
		for (unsigned i = 0; i < FILES; i++) {
			assert_int_equal(fstat(rig->fds[i], &st), 0);
			assert_int_equal(st.st_mode, S_IFREG | 0600);
			assert_int_equal(fcntl(rig->fds[i], F_GETFD), FD_CLOEXEC);
			assert_int_equal(fcntl(rig->fds[i], F_GETFL) & O_ACCMODE, O_RDWR);
		}
		bs_journal_files_close(rig->fds, FILES);
	}
}

static void
directory_that_others_can_change_is_refused_unless_sticky(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(chmod(rig->directory, 0777), 0);
	assert_refused(rig, -EPERM, "others can write to this directory");
	assert_int_equal(chmod(rig->directory, 0770), 0);
	assert_refused(rig, -EPERM, "others can write to this directory");
	assert_int_equal(chmod(rig->directory, 01777), 0);
	assert_int_equal(open_all(rig), 0);
	bs_journal_files_close(rig->fds, FILES);
}

static void
directory_of_another_user_is_refused(void **state)
{
	struct rig *rig = *state;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(rig->directory, 65534, 0), 0);
	assert_refused(rig, -EPERM, "belongs to uid 65534");
}

static void
directory_that_is_not_there_is_named(void **state)
{
	struct rig *rig = *state;

	strcat(rig->path, "/k");
	assert_refused(rig, -ENOENT, "(mkdir it)");
	rig->path[strlen(rig->path) - 2] = '\0';
}

static void
link_is_not_followed(void **state)
{
	struct rig *rig = *state;
	char name[96];

	assert_int_equal(symlink("/tmp/journal-files.victim", name_of(rig, 1, name)), 0);
	assert_refused(rig, -ELOOP, "is a symbolic link: remove it");
	assert_int_equal(access("/tmp/journal-files.victim", F_OK), -1);
}

static void
second_name_of_a_file_is_refused(void **state)
{
	struct rig *rig = *state;
	char victim[96], name[96];

	close(open(name_of(rig, 0, victim), O_CREAT | O_WRONLY, 0600));
	assert_int_equal(link(victim, name_of(rig, 1, name)), 0);
	assert_refused(rig, -EINVAL, "is not a regular file with one name");
}

static void
fifo_is_refused_without_waiting(void **state)
{
	struct rig *rig = *state;
	char name[96];

	assert_int_equal(mkfifo(name_of(rig, 0, name), 0600), 0);
	assert_refused(rig, -EINVAL, "is not a regular file with one name");
}

static void
file_that_others_own_or_can_write_is_refused(void **state)
{
	struct rig *rig = *state;
	char name[96];
	int fd = open(name_of(rig, 2, name), O_CREAT | O_WRONLY, 0600);

	assert_int_equal(fchmod(fd, 0620), 0);
	assert_refused(rig, -EPERM, "others can write it (mode 0620)");
	if (geteuid() == 0) {
		assert_int_equal(fchmod(fd, 0600), 0);
		assert_int_equal(fchown(fd, 65534, 0), 0);
		assert_refused(rig, -EPERM, "belongs to uid 65534");
	}
	close(fd);
}

static void
file_that_is_no_journal_is_left_alone(void **state)
{
	struct rig *rig = *state;
	struct bs_journal_file head = {.file = 1};
	char name[96];
	int fd = open(name_of(rig, 1, name), O_CREAT | O_WRONLY, 0600);

	assert_int_equal(write(fd, "letters", 7), 7);
	assert_refused(rig, -EINVAL, "holds something else than a journal");
	bs_journal_file_seal(&head);
	assert_int_equal(pwrite(fd, &head, sizeof(head), 0), sizeof(head));
	assert_int_equal(open_all(rig), 0);
	bs_journal_files_close(rig->fds, FILES);
	close(fd);
}

static void
journal_of_another_instance_is_refused(void **state)
{
	struct rig *rig = *state;
	int fds[FILES];

	assert_int_equal(open_all(rig), 0);
	memcpy(fds, rig->fds, sizeof(fds));
	assert_refused(rig, -EBUSY, "is written by another bufscoped");
	bs_journal_files_close(fds, FILES);
	assert_int_equal(open_all(rig), 0);
	bs_journal_files_close(rig->fds, FILES);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(files_are_made_for_us_alone_and_opened_again),
		TEST(directory_that_others_can_change_is_refused_unless_sticky),
		TEST(directory_of_another_user_is_refused),
		TEST(directory_that_is_not_there_is_named),
		TEST(link_is_not_followed),
		TEST(second_name_of_a_file_is_refused),
		TEST(fifo_is_refused_without_waiting),
		TEST(file_that_others_own_or_can_write_is_refused),
		TEST(file_that_is_no_journal_is_left_alone),
		TEST(journal_of_another_instance_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
