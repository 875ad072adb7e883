/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The analyzer's journal over files in memory, which can be full, read-only,
 * broken or slow at will, and one test over real ones. The writing thread is not
 * started: the tests call what it calls, with a clock of their own.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bs_clock.h"
#include "journal.h"

#define T0 1700000000000000000ull
#define FILES 3u
#define FILE_BYTES BS_JOURNAL_FILE_BYTES_MIN
#define FIRST_FD 100

struct fake {
	uint8_t data[FILES][2 * FILE_BYTES];
	off_t size[FILES];
	off_t room;	/* of all files together */
	size_t at_most; /* bytes that one write takes */
	int error;	/* of all that changes a file; 0: none */
	int sync_error;
	unsigned writes, syncs;
};

static struct fake disk;

static ssize_t
fake_read(void *context, int fd, void *data, size_t bytes, off_t offset)
{
	off_t size = disk.size[fd - FIRST_FD];

	(void)context;
	if (offset >= size)
		return 0;
	if ((off_t)bytes > size - offset)
		bytes = (size_t)(size - offset);
	memcpy(data, disk.data[fd - FIRST_FD] + offset, bytes);
	return (ssize_t)bytes;
}

static ssize_t
fake_write(void *context, int fd, const void *data, size_t bytes, off_t offset)
{
	off_t *size = &disk.size[fd - FIRST_FD], used = 0;

	(void)context;
	disk.writes++;
	for (unsigned i = 0; i < FILES; i++)
		used += disk.size[i];
	if (bytes > disk.at_most)
		bytes = disk.at_most;
	if (offset + (off_t)bytes > *size + disk.room - used)
		bytes = (size_t)(*size + disk.room - used - offset);
	if (disk.error == 0 && bytes == 0)
		errno = ENOSPC;
	else
		errno = disk.error;
	if (errno != 0)
		return -1;
	assert_true(offset + (off_t)bytes <= (off_t)sizeof(disk.data[0]));
	memcpy(disk.data[fd - FIRST_FD] + offset, data, bytes);
	if (offset + (off_t)bytes > *size)
		*size = offset + (off_t)bytes;
	return (ssize_t)bytes;
}

static int
fake_truncate(void *context, int fd, off_t bytes)
{
	(void)context;
	errno = disk.error;
	if (errno != 0)
		return -1;
	disk.size[fd - FIRST_FD] = bytes;
	return 0;
}

static int
fake_sync(void *context, int fd)
{
	(void)context;
	(void)fd;
	disk.syncs++;
	errno = disk.sync_error;
	return errno != 0 ? -1 : 0;
}

static off_t
fake_size(void *context, int fd)
{
	(void)context;
	return disk.size[fd - FIRST_FD];
}

static const struct bs_journal_io fake_io = {
	fake_read, fake_write, fake_truncate, fake_sync, fake_size, NULL};
static const struct bs_journal_files fake_files = {FIRST_FD, FILES, FILE_BYTES, &fake_io};

static uint64_t clock_ns;

static uint64_t
read_clock(void)
{
	return clock_ns;
}

static void
put_hello(struct bs_journal *journal)
{
	struct bs_rec_hello hello = {
		.magic = BS_HELLO_MAGIC, .version = BS_RECORD_VERSION, .node = 6};
	struct bs_rec_name name = {.kind = BS_NAME_SERVICE, .number = 2, .name = "kv"};

	bs_record_head(&hello.head, BS_REC_HELLO, 0);
	bs_record_head(&name.head, BS_REC_NAME, 0);
	bs_journal_put(journal, &hello.head, sizeof(hello), clock_ns);
	bs_journal_put(journal, &name.head, sizeof(name), clock_ns);
}

/* A record with a number, by which it is known again. */
static void
put_number(struct bs_journal *journal, uint64_t number)
{
	struct bs_rec_loss loss = {.t = T0 + number, .ring_full = number};

	bs_record_head(&loss.head, BS_REC_LOSS, 0);
	bs_journal_put(journal, &loss.head, sizeof(loss), clock_ns);
}

/* As many as fill a block. */
static uint64_t
put_block(struct bs_journal *journal, uint64_t from)
{
	for (unsigned i = 0; i < BS_JOURNAL_BLOCK_BYTES / sizeof(struct bs_rec_loss); i++)
		put_number(journal, from++);
	bs_journal_hand_over(journal, clock_ns);
	return from;
}

static int
set_up(void **state)
{
	struct bs_journal *journal;

	memset(&disk, 0, sizeof(disk));
	disk.room = FILES * sizeof(disk.data[0]);
	disk.at_most = SIZE_MAX;
	clock_ns = T0;
	bs_clock_now_ns = read_clock;
	journal = bs_journal_create(&fake_files, clock_ns);
	if (journal != NULL)
		put_hello(journal);
	*state = journal;
	return journal == NULL ? -1 : 0;
}

static int
tear_down(void **state)
{
	bs_journal_destroy(*state);
	return 0;
}

static void
start_again(void **state)
{
	bs_journal_destroy(*state);
	*state = bs_journal_create(&fake_files, clock_ns);
	assert_non_null(*state);
}

/* What is in a file; numbers are those of put_number. */
struct content {
	struct bs_journal_file file;
	bool begun;
	unsigned blocks, repeats, damages, names;
	uint64_t first, last; /* number of a record; 0: none */
	uint64_t first_sequence, last_sequence;
	uint64_t lost;
	bool in_order;
};

static void
read_block(struct content *c, const struct bs_journal_found *found)
{
	struct bs_journal_item item;
	size_t offset = 0;
	int ret;

	c->blocks++;
	if (found->block->flags & BS_JOURNAL_REPEATS) {
		c->repeats++;
	} else {
		if (c->last_sequence != 0 && found->block->sequence != c->last_sequence + 1)
			c->in_order = false;
		if (c->first_sequence == 0)
			c->first_sequence = found->block->sequence;
		c->last_sequence = found->block->sequence;
	}
	c->lost += found->block->lost;
	while ((ret = bs_journal_item_next(found->records, found->block->bytes, &offset, &item)) ==
		1) {
		const struct bs_rec_loss *loss = (const void *)item.record;

		if (item.record->type == BS_REC_NAME)
			c->names++;
		if (item.record->type != BS_REC_LOSS)
			continue;
		if (c->last != 0 && loss->ring_full <= c->last)
			c->in_order = false;
		if (c->first == 0)
			c->first = loss->ring_full;
		c->last = loss->ring_full;
	}
	assert_int_equal(ret, 0);
}

static struct content
read_file(unsigned index)
{
	struct bs_journal_reader *reader = bs_journal_reader_create();
	struct bs_journal_found found;
	enum bs_journal_step step;
	struct content c = {.in_order = true};
	off_t at = 0;

	while ((step = bs_journal_reader_next(reader, &found)) != BS_JOURNAL_END) {
		size_t room;
		void *to;
		ssize_t n;

		switch (step) {
		case BS_JOURNAL_MORE:
			to = bs_journal_reader_room(reader, &room);
			n = fake_read(NULL, FIRST_FD + (int)index, to, room, at);
			bs_journal_reader_fill(reader, (size_t)n);
			at += n;
			break;
		case BS_JOURNAL_FILE:
			c.file = *found.file;
			c.begun = true;
			break;
		case BS_JOURNAL_BLOCK:
			read_block(&c, &found);
			break;
		default:
			c.damages++;
		}
	}
	bs_journal_reader_destroy(reader);
	return c;
}

static struct bs_rec_journal
status_of(const struct bs_journal *journal)
{
	struct bs_rec_journal status;

	bs_journal_status(journal, &status);
	return status;
}

static void
block_is_handed_over_when_a_second_old_or_full(void **state)
{
	struct bs_journal *journal = *state;
	struct content c;

	put_number(journal, 1);
	clock_ns += BS_NS_PER_S - 1;
	bs_journal_advance(journal, clock_ns);
	assert_int_equal(bs_journal_write(journal, clock_ns), UINT64_MAX);
	assert_int_equal(disk.writes, 0);
	clock_ns++;
	bs_journal_advance(journal, clock_ns);
	bs_journal_write(journal, clock_ns);
	c = read_file(0);
	assert_int_equal(c.last, 1);
	/* 1025 more: 1024 fill a block */
	for (unsigned i = 2; i <= 1026; i++)
		put_number(journal, i);
	bs_journal_write(journal, clock_ns);
	c = read_file(0);
	assert_int_equal(c.last, 1025);
	assert_true(c.in_order);
	assert_int_equal(c.damages, 0);
	assert_int_equal(status_of(journal).records, 2 + 1025);
}

static void
file_begins_with_its_node_and_the_names(void **state)
{
	struct content c;

	put_block(*state, 1);
	bs_journal_write(*state, clock_ns);
	c = read_file(0);
	assert_int_equal(c.file.node, 6);
	assert_int_equal(c.file.file, 1);
	assert_int_equal(c.file.journal, T0);
	assert_int_equal(c.file.first_block, 1);
	assert_int_equal(c.repeats, 1);
	/* as it begins, and as they came */
	assert_int_equal(c.names, 2);
}

static void
files_are_filled_in_turn_and_the_oldest_is_emptied(void **state)
{
	struct content c[FILES];
	uint64_t number = 1;
	unsigned newest = 0;

	for (unsigned i = 0; i < 60; i++) {
		number = put_block(*state, number);
		bs_journal_write(*state, clock_ns);
	}
	for (unsigned i = 0; i < FILES; i++) {
		c[i] = read_file(i);
		assert_true(disk.size[i] <= (off_t)FILE_BYTES);
		assert_int_equal(c[i].repeats, 1);
		assert_true(c[i].in_order);
		assert_int_equal(c[i].damages, 0);
		assert_int_equal(c[i].file.first_block, c[i].first_sequence);
		newest = c[i].file.file > c[newest].file.file ? i : newest;
	}
	/* 15 blocks of 65600 bytes fit 1 MiB behind what a file begins with: 60 blocks, 4 files */
	assert_int_equal(c[newest].file.file, 4);
	assert_int_equal(newest, 0);
	assert_int_equal(c[1].file.file, 2);
	assert_int_equal(c[2].file.file, 3);
	assert_int_equal(c[newest].last, number - 1);
	assert_int_equal(c[2].last + 1, c[newest].first);
	assert_int_equal(c[2].last_sequence + 1, c[newest].first_sequence);
	assert_int_equal(status_of(*state).slot, newest);
}

static void
short_writes_are_continued(void **state)
{
	struct content c;

	disk.at_most = 1000;
	put_block(*state, 1);
	bs_journal_write(*state, clock_ns);
	c = read_file(0);
	assert_int_equal(c.last, 1024);
	assert_int_equal(c.damages, 0);
	assert_int_equal(status_of(*state).errors, 0);
}

/* Blocks are put until more than the queue holds; the time between is too short for a retry. */
static uint64_t
put_too_many(struct bs_journal *journal, uint64_t number)
{
	for (unsigned i = 0; i < BS_JOURNAL_QUEUE + 5; i++) {
		number = put_block(journal, number);
		bs_journal_write(journal, clock_ns);
		clock_ns += BS_NS_PER_MS;
	}
	return number;
}

static void
full_disk_is_counted_and_left_behind_when_there_is_room(void **state)
{
	struct bs_journal *journal = *state;
	struct bs_rec_journal status;
	struct content c;
	uint64_t number = put_block(journal, 1);

	bs_journal_write(journal, clock_ns);
	disk.room = 100000; /* in the middle of the second block */
	number = put_too_many(journal, number);
	status = status_of(journal);
	assert_int_equal(status.error, ENOSPC);
	assert_int_equal(status.errors, 1);
	/* the file's end and the queue are full: five blocks, or more where names need room */
	assert_true(status.lost_records >= 5 * 1024 - 2);
	assert_int_equal(status.lost_bytes, 64 * status.lost_records);
	c = read_file(0);
	assert_int_equal(c.last, 1024);
	assert_int_equal(c.damages, 1);

	disk.room = FILES * sizeof(disk.data[0]);
	clock_ns += BS_NS_PER_S;
	number = put_block(journal, number); /* finds the queue full, still */
	bs_journal_write(journal, clock_ns);
	put_block(journal, number);
	bs_journal_write(journal, clock_ns);
	status = status_of(journal);
	assert_int_equal(status.error, 0);
	assert_int_equal(status.last_error, ENOSPC);
	assert_int_equal(read_file(0).damages, 0);
	c = read_file(1);
	assert_int_equal(c.damages, 0);
	assert_true(c.in_order);
	assert_int_equal(c.last, number + 1023);
	/* said where it is missing */
	assert_int_equal(read_file(0).lost + c.lost, status.lost_records);
}

static void
small_blocks_wait_when_the_thread_is_behind(void **state)
{
	struct bs_journal *journal = *state;
	uint64_t mark;

	/* as many as may wait, the first with the file's beginning before it */
	for (unsigned i = 1; i <= BS_JOURNAL_QUEUE / 2 - 1; i++) {
		put_number(journal, i);
		bs_journal_hand_over(journal, clock_ns);
	}
	put_number(journal, 100);
	mark = bs_journal_hand_over(journal, clock_ns);
	put_number(journal, 101);
	bs_journal_hand_over(journal, clock_ns);
	bs_journal_write(journal, clock_ns);
	assert_int_equal(read_file(0).last, 7);
	assert_false(bs_journal_has_written(journal, mark));
	/* one block, not two */
	bs_journal_hand_over(journal, clock_ns);
	bs_journal_write(journal, clock_ns);
	assert_true(bs_journal_has_written(journal, mark));
	assert_int_equal(read_file(0).last, 101);
	assert_int_equal(status_of(journal).blocks, 1 + 7 + 1);
}

static void
failures_are_tried_again_later_and_later(void **state)
{
	static const int errors[] = {EIO, EROFS, EBADF, EFBIG};
	uint64_t ms = 100, number = 1;

	for (unsigned i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		disk.error = errors[i];
		number = put_block(*state, number);
		assert_int_equal(bs_journal_write(*state, clock_ns), ms * BS_NS_PER_MS);
		assert_int_equal(status_of(*state).error, errors[i]);
		/* not before that */
		clock_ns += ms * BS_NS_PER_MS - 1;
		assert_int_equal(bs_journal_write(*state, clock_ns), 1);
		assert_int_equal(status_of(*state).errors, i + 1);
		clock_ns++;
		ms *= 2;
	}
	for (unsigned i = 0; i < 10; i++)
		clock_ns += bs_journal_write(*state, clock_ns);
	assert_int_equal(bs_journal_write(*state, clock_ns), 5 * BS_NS_PER_S);
	disk.error = 0;
	clock_ns += 5 * BS_NS_PER_S;
	bs_journal_write(*state, clock_ns);
	assert_int_equal(read_file(0).last, number - 1);
	assert_int_equal(status_of(*state).error, 0);
	assert_int_equal(status_of(*state).lost_records, 0);
}

static void
disk_is_synced_once_a_second_and_before_another_file(void **state)
{
	uint64_t number = put_block(*state, 1);

	disk.sync_error = EIO;
	bs_journal_write(*state, clock_ns);
	assert_int_equal(disk.syncs, 1);
	assert_int_equal(status_of(*state).error, EIO);
	disk.sync_error = 0;
	clock_ns += BS_NS_PER_S / 2;
	number = put_block(*state, number);
	assert_int_equal(bs_journal_write(*state, clock_ns), BS_NS_PER_S / 2);
	assert_int_equal(disk.syncs, 1);
	assert_int_equal(status_of(*state).error, 0);
	clock_ns += BS_NS_PER_S / 2;
	assert_int_equal(bs_journal_write(*state, clock_ns), UINT64_MAX);
	assert_int_equal(disk.syncs, 2);
	for (unsigned i = 0; i < 14; i++) {
		number = put_block(*state, number);
		bs_journal_write(*state, clock_ns);
	}
	assert_true(read_file(1).begun);
	assert_int_equal(disk.syncs, 3);
}

static void
mark_is_reached_when_the_block_is_written(void **state)
{
	uint64_t mark;

	put_number(*state, 1);
	mark = bs_journal_hand_over(*state, clock_ns);
	assert_false(bs_journal_has_written(*state, mark));
	bs_journal_write(*state, clock_ns);
	assert_true(bs_journal_has_written(*state, mark));
}

static void
writer_started_again_goes_on_behind_the_last_block(void **state)
{
	struct content c;

	put_block(*state, 1);
	bs_journal_write(*state, clock_ns);
	start_again(state);
	put_hello(*state);
	put_block(*state, 5000);
	bs_journal_write(*state, clock_ns);
	c = read_file(0);
	assert_int_equal(c.file.file, 1);
	assert_int_equal(c.last, 5000 + 1023);
	assert_true(c.in_order);
	assert_int_equal(c.damages, 0);
	assert_false(read_file(1).begun);
}

static void
torn_block_is_cut_off_and_written_over(void **state)
{
	uint64_t number = put_block(*state, 1);
	struct content c;

	bs_journal_write(*state, clock_ns);
	disk.room = disk.size[0] + 5000;
	put_block(*state, number);
	bs_journal_write(*state, clock_ns);
	assert_int_equal(read_file(0).damages, 1);
	disk.room = FILES * sizeof(disk.data[0]);
	start_again(state);
	put_number(*state, 9000);
	bs_journal_hand_over(*state, clock_ns);
	bs_journal_write(*state, clock_ns);
	c = read_file(0);
	assert_int_equal(c.damages, 0);
	assert_int_equal(c.last, 9000);
	assert_true(c.in_order);
}

static void
last_block_with_a_wrong_crc_is_written_over(void **state)
{
	put_block(*state, 1);
	put_number(*state, 2000);
	bs_journal_hand_over(*state, clock_ns);
	bs_journal_write(*state, clock_ns);
	disk.data[0][disk.size[0] - 1] ^= 1;
	start_again(state);
	put_number(*state, 9000);
	bs_journal_hand_over(*state, clock_ns);
	bs_journal_write(*state, clock_ns);
	assert_int_equal(read_file(0).damages, 0);
	assert_int_equal(read_file(0).last, 9000);
}

static void
blocks_behind_damage_are_left_alone(void **state)
{
	uint64_t number = 1;
	struct content c;
	off_t size;

	for (unsigned i = 0; i < 6; i++)
		number = put_block(*state, number);
	bs_journal_write(*state, clock_ns);
	size = disk.size[0];
	disk.data[0][64 + 10]++; /* the first block's header */
	clock_ns += 7;
	start_again(state);
	put_number(*state, 9000);
	bs_journal_hand_over(*state, clock_ns);
	bs_journal_write(*state, clock_ns);
	assert_int_equal(disk.size[0], size);
	c = read_file(1);
	assert_int_equal(c.file.file, 2);
	assert_int_equal(c.last, 9000);
	/* a journal of its own: its numbers must not be taken for those of the hidden blocks */
	assert_int_equal(c.file.journal, T0 + 7);
}

static void
newest_file_is_found_whatever_its_place(void **state)
{
	uint64_t number = 1;

	for (unsigned i = 0; i < 50; i++) {
		number = put_block(*state, number);
		bs_journal_write(*state, clock_ns);
	}
	assert_int_equal(read_file(0).file.file, 4);
	start_again(state);
	put_number(*state, number);
	bs_journal_hand_over(*state, clock_ns);
	bs_journal_write(*state, clock_ns);
	assert_int_equal(read_file(0).file.file, 4);
	assert_int_equal(read_file(0).last, number);
	/* what is no journal counts as empty, and is the next to be used */
	memset(disk.data[2], 'x', 64);
	start_again(state);
	for (unsigned i = 0; i < 14; i++) {
		number = put_block(*state, number);
		bs_journal_write(*state, clock_ns);
	}
	assert_int_equal(read_file(2).file.file, 5);
}

static void
wrong_settings_are_refused(void **state)
{
	struct bs_journal_files files = fake_files;

	(void)state;
	files.count = 0;
	assert_null(bs_journal_create(&files, T0));
	assert_int_equal(errno, EINVAL);
	files.count = BS_JOURNAL_FILES + 1;
	assert_null(bs_journal_create(&files, T0));
	files = fake_files;
	files.file_bytes--;
	assert_null(bs_journal_create(&files, T0));
}

/* The thread, on a file in memory: finish() writes all that is there. */
static void
thread_writes_to_real_files_until_the_end(void **state)
{
	int fd = memfd_create("journal", MFD_CLOEXEC);
	const struct bs_journal_files files = {fd, 1, FILE_BYTES, NULL};
	struct bs_journal *journal = bs_journal_create(&files, T0);

	(void)state;
	assert_non_null(journal);
	put_hello(journal);
	for (uint64_t n = 1; n < 8000; n += 1024)
		put_block(journal, n);
	put_number(journal, 9999);
	assert_int_equal(bs_journal_start(journal), 0);
	assert_true(bs_journal_finish(journal));
	bs_journal_destroy(journal);
	disk.size[0] = pread(fd, disk.data[0], sizeof(disk.data[0]), 0);
	assert_int_equal(read_file(0).last, 9999);
	assert_int_equal(read_file(0).damages, 0);
	close(fd);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(block_is_handed_over_when_a_second_old_or_full),
		TEST(file_begins_with_its_node_and_the_names),
		TEST(files_are_filled_in_turn_and_the_oldest_is_emptied),
		TEST(short_writes_are_continued),
		TEST(full_disk_is_counted_and_left_behind_when_there_is_room),
		TEST(small_blocks_wait_when_the_thread_is_behind),
		TEST(failures_are_tried_again_later_and_later),
		TEST(disk_is_synced_once_a_second_and_before_another_file),
		TEST(mark_is_reached_when_the_block_is_written),
		TEST(writer_started_again_goes_on_behind_the_last_block),
		TEST(torn_block_is_cut_off_and_written_over),
		TEST(last_block_with_a_wrong_crc_is_written_over),
		TEST(blocks_behind_damage_are_left_alone),
		TEST(newest_file_is_found_whatever_its_place),
		TEST(wrong_settings_are_refused),
		TEST(thread_writes_to_real_files_until_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
