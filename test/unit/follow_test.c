/* SPDX-License-Identifier: BSD-3-Clause */
/* Following a journal: its files are written by the test between the steps. */
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
#include <unistd.h>

#include "follow.h"

#define JOURNAL 55u
#define FILES 2u
#define BLOCK (sizeof(struct bs_journal_block) + sizeof(struct bs_rec_loss))

static struct {
	char directory[64], path[80];
	struct follow follow;
	int fds[FILES];
	uint64_t taken[64];
	unsigned count;
} rig;

static void
write_file(unsigned index, uint64_t number, uint64_t first)
{
	struct bs_journal_file file = {
		.node = 1, .journal = JOURNAL, .file = number, .first_block = first};
	struct {
		struct bs_journal_block head;
		struct bs_rec_hello hello;
		struct bs_rec_name name;
	} names = {.head = {.bytes = 256,
			   .records = 2,
			   .journal = JOURNAL,
			   .sequence = first,
			   .flags = BS_JOURNAL_REPEATS},
		.hello = {.magic = BS_HELLO_MAGIC, .version = BS_RECORD_VERSION},
		.name = {.kind = BS_NAME_SERVICE, .number = 4, .name = "kv"}};

	bs_journal_file_seal(&file);
	bs_record_head(&names.hello.head, BS_REC_HELLO, 0);
	bs_record_head(&names.name.head, BS_REC_NAME, 0);
	bs_journal_block_seal(&names.head, &names.hello);
	assert_int_equal(ftruncate(rig.fds[index], 0), 0);
	lseek(rig.fds[index], 0, SEEK_SET);
	assert_int_equal(write(rig.fds[index], &file, sizeof(file)), sizeof(file));
	assert_int_equal(write(rig.fds[index], &names, sizeof(names)), sizeof(names));
}

/* The first `bytes` of a block. */
static void
write_part(unsigned index, uint64_t sequence, size_t bytes)
{
	struct {
		struct bs_journal_block head;
		struct bs_rec_loss loss;
	} block = {.head = {.bytes = sizeof(block.loss),
			   .records = 1,
			   .journal = JOURNAL,
			   .sequence = sequence}};

	bs_record_head(&block.loss.head, BS_REC_LOSS, 0);
	block.loss.t = sequence;
	bs_journal_block_seal(&block.head, &block.loss);
	assert_int_equal(write(rig.fds[index], &block, bytes), bytes);
}

static void
write_block(unsigned index, uint64_t sequence)
{
	write_part(index, sequence, BLOCK);
}

static int
set_up(void **state)
{
	(void)state;
	memset(&rig, 0, sizeof(rig));
	snprintf(rig.directory, sizeof(rig.directory), "/tmp/follow-test.XXXXXX");
	if (mkdtemp(rig.directory) == NULL)
		return -1;
	snprintf(rig.path, sizeof(rig.path), "%s/j", rig.directory);
	for (unsigned i = 0; i < FILES; i++) {
		char name[96];

		snprintf(name, sizeof(name), "%s.%u", rig.path, i);
		rig.fds[i] = open(name, O_CREAT | O_RDWR, 0600);
	}
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	follow_close(&rig.follow);
	for (unsigned i = 0; i < FILES; i++) {
		char name[96];

		snprintf(name, sizeof(name), "%s.%u", rig.path, i);
		unlink(name);
		close(rig.fds[i]);
	}
	return rmdir(rig.directory);
}

static int
take(void *context, const struct bs_journal_block *block, const void *records)
{
	(void)context;
	assert_int_equal(((const struct bs_rec_loss *)records)->t, block->sequence);
	rig.taken[rig.count++] = block->sequence;
	return 0;
}

static void
start(void)
{
	char error[FOLLOW_ERROR_BYTES];

	assert_int_equal(follow_open(&rig.follow, rig.path, FILES, error), 0);
}

/* What one step gives: blocks from..to, or none if to is 0. */
static void
assert_step(uint64_t from, uint64_t to)
{
	rig.count = 0;
	assert_int_equal(follow_step(&rig.follow, take, NULL), 0);
	assert_int_equal(rig.count, to == 0 ? 0 : to - from + 1);
	for (unsigned i = 0; i < rig.count; i++)
		assert_int_equal(rig.taken[i], from + i);
}

static void
only_what_comes_after_the_start_is_given(void **state)
{
	(void)state;
	write_file(0, 7, 1);
	write_block(0, 1);
	write_block(0, 2);
	start();
	assert_int_equal(rig.follow.preamble->bytes, 256);
	assert_step(0, 0);
	write_block(0, 3);
	write_block(0, 4);
	assert_step(3, 4);
	assert_step(0, 0);
	assert_int_equal(rig.follow.missing, 0);
}

static void
journal_that_is_empty_yet_is_waited_for(void **state)
{
	(void)state;
	start();
	assert_step(0, 0);
	write_file(1, 1, 1);
	write_block(1, 1);
	assert_step(1, 1);
	assert_int_equal(rig.follow.preamble->bytes, 256);
}

static void
next_file_is_gone_on_with(void **state)
{
	(void)state;
	write_file(0, 7, 1);
	write_block(0, 1);
	start();
	write_block(0, 2);
	write_file(1, 8, 3);
	write_block(1, 3);
	assert_step(2, 3);
	/* and the first again, emptied */
	write_block(1, 4);
	write_file(0, 9, 5);
	write_block(0, 5);
	assert_step(4, 5);
	assert_int_equal(rig.follow.missing, 0);
}

static void
blocks_overwritten_before_they_were_read_are_missing(void **state)
{
	(void)state;
	write_file(0, 7, 1);
	write_block(0, 1);
	start();
	write_block(0, 2);
	write_file(1, 8, 3);
	write_block(1, 3);
	write_file(0, 9, 4);
	write_block(0, 4);
	assert_step(3, 4);
	assert_int_equal(rig.follow.missing, 1);
}

static void
block_that_was_torn_is_taken_as_it_is_written_anew(void **state)
{
	(void)state;
	write_file(0, 7, 1);
	start();
	write_part(0, 1, BLOCK - 10);
	assert_step(0, 0);
	/* as after a restart of the writer: cut off, and another in its place */
	assert_int_equal(ftruncate(rig.fds[0], 64 + 64 + 256), 0);
	lseek(rig.fds[0], 0, SEEK_END);
	write_block(0, 1);
	write_block(0, 2);
	assert_step(1, 2);
	assert_int_equal(rig.follow.skipped_bytes, 0);
}

static void
files_that_are_not_there_are_named(void **state)
{
	char error[FOLLOW_ERROR_BYTES];

	(void)state;
	assert_int_equal(follow_open(&rig.follow, rig.path, FILES + 1, error), -ENOENT);
	assert_non_null(strstr(error, "/j.2: No such file"));
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(only_what_comes_after_the_start_is_given),
		TEST(journal_that_is_empty_yet_is_waited_for),
		TEST(next_file_is_gone_on_with),
		TEST(blocks_overwritten_before_they_were_read_are_missing),
		TEST(block_that_was_torn_is_taken_as_it_is_written_anew),
		TEST(files_that_are_not_there_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
