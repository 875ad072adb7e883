/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop's half: blocks are filled and handed over. Files change here, by
 * count: all that was handed over is written in the end, so this side knows how
 * full a file will be.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "bs_clock.h"
#include "journal_private.h"

#define BLOCK_AGE_NS BS_NS_PER_S
#define HURRY_BLOCKS (BS_JOURNAL_QUEUE / 2) /* so many waiting: only full and old blocks */
#define FINISH_MS 700
#define STACK_BYTES (256u << 10)

struct bs_journal *
bs_journal_create(const struct bs_journal_files *files, uint64_t now_ns)
{
	struct bs_journal *journal;

	if (files->count == 0 || files->count > BS_JOURNAL_FILES ||
		files->file_bytes < BS_JOURNAL_FILE_BYTES_MIN) {
		errno = EINVAL;
		return NULL;
	}
	journal = calloc(1, sizeof(*journal));
	if (journal == NULL)
		return NULL;
	journal->io = files->io != NULL ? files->io : &journal_system_io;
	journal->first_fd = files->first_fd;
	journal->count = files->count;
	journal->file_bytes = files->file_bytes;
	journal->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (journal->wake < 0) {
		free(journal);
		return NULL;
	}
	journal_attach(journal, now_ns);
	return journal;
}

void
bs_journal_destroy(struct bs_journal *journal)
{
	if (journal == NULL)
		return;
	close(journal->wake);
	free(journal);
}

unsigned
bs_journal_descriptors(const struct bs_journal *journal, int fds[BS_JOURNAL_DESCRIPTORS])
{
	unsigned count = 0;

	if (journal == NULL)
		return 0;
	while (count < journal->count) {
		fds[count] = journal->first_fd + (int)count;
		count++;
	}
	fds[count++] = journal->wake;
	return count;
}

int
bs_journal_start(struct bs_journal *journal)
{
	pthread_attr_t attributes;
	int ret = pthread_attr_init(&attributes);

	if (ret != 0)
		return -ret;
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	ret = pthread_create(&journal->thread, &attributes, journal_run, journal);
	pthread_attr_destroy(&attributes);
	journal->started = ret == 0;
	return -ret;
}

static void
wake(const struct bs_journal *journal)
{
	eventfd_write(journal->wake, 1);
}

/* --- handing over ------------------------------------------------------------------- */

static struct journal_slot *
next_slot(struct bs_journal *journal)
{
	struct journal_slot *slot = &journal->slots[journal->head % BS_JOURNAL_QUEUE];

	slot->bytes = 0;
	slot->records = 0;
	slot->file = 0;
	return slot;
}

static void
append(struct journal_slot *slot, const void *data, size_t bytes)
{
	memcpy(slot->data + slot->bytes, data, bytes);
	slot->bytes += bytes;
}

static void
push(struct bs_journal *journal, const struct journal_slot *slot)
{
	journal->file_used += slot->bytes;
	__atomic_store_n(&journal->head, journal->head + 1, __ATOMIC_RELEASE);
}

/* Begins another file in the slots: its header and what its numbers mean. */
static void
begin_file(struct bs_journal *journal, unsigned blocks, uint64_t now_ns)
{
	struct bs_journal_file file = {
		.node = journal->preamble.node,
		.journal = journal->id,
		.file = ++journal->file,
		.t_opened = now_ns,
		.first_block = journal->sequence,
	};

	bs_journal_file_seal(&file);
	journal->file_used = 0;
	for (unsigned i = 0; i < blocks || i == 0; i++) {
		struct journal_slot *slot = next_slot(journal);
		struct bs_journal_block block;
		const void *records;

		if (i == 0) {
			slot->file = file.file;
			append(slot, &file, sizeof(file));
		}
		if (blocks > 0) {
			records = bs_journal_preamble_block(
				&journal->preamble, i, journal->id, journal->sequence, &block);
			append(slot, &block, sizeof(block));
			append(slot, records, block.bytes);
		}
		push(journal, slot);
	}
}

static uint64_t
waiting(const struct bs_journal *journal)
{
	return journal->head - __atomic_load_n(&journal->tail, __ATOMIC_ACQUIRE);
}

static void
lose(struct bs_journal *journal)
{
	const struct bs_journal_block *block = &journal->block;

	if (__builtin_add_overflow(journal->lost, block->records, &journal->lost))
		journal->lost = UINT32_MAX;
	journal->lost_records += block->records;
	journal->lost_bytes += block->bytes;
}

/* The block to the thread, or to nowhere when that has too much already. */
static void
hand_over(struct bs_journal *journal, uint64_t now_ns)
{
	struct bs_journal_block *block = &journal->block;
	bool begins = journal->file == 0 ||
		      journal->file_used + sizeof(*block) + block->bytes > journal->file_bytes;
	unsigned repeats = begins ? bs_journal_preamble_blocks(&journal->preamble) : 0;
	unsigned needed = 1 + repeats + (begins && repeats == 0);
	struct journal_slot *slot;

	if (waiting(journal) + needed > BS_JOURNAL_QUEUE) {
		lose(journal);
	} else {
		if (begins)
			begin_file(journal, repeats, now_ns);
		slot = next_slot(journal);
		block->journal = journal->id;
		block->sequence = journal->sequence++;
		block->lost = journal->lost;
		journal->lost = 0;
		bs_journal_block_seal(block, journal->records);
		slot->records = block->records;
		append(slot, block, sizeof(*block));
		append(slot, journal->records, block->bytes);
		push(journal, slot);
		wake(journal);
	}
	memset(block, 0, sizeof(*block));
}

void *
bs_journal_reserve(struct bs_journal *journal, size_t bytes, uint64_t t, uint64_t now_ns)
{
	struct bs_journal_block *block = &journal->block;
	void *place;

	if (block->bytes + bytes > sizeof(journal->records))
		hand_over(journal, now_ns);
	if (block->records == 0)
		journal->t_begun = now_ns;
	if (t != 0 && (block->t_first == 0 || t < block->t_first))
		block->t_first = t;
	if (t > block->t_last)
		block->t_last = t;
	place = journal->records + block->bytes;
	block->bytes += (uint32_t)bytes;
	block->records++;
	return place;
}

void
bs_journal_put(
	struct bs_journal *journal, const struct bs_record *record, size_t bytes, uint64_t now_ns)
{
	memcpy(bs_journal_reserve(journal, bytes, bs_record_instant(record), now_ns), record,
		bytes);
	bs_journal_preamble_take(&journal->preamble, record);
}

void
bs_journal_advance(struct bs_journal *journal, uint64_t now_ns)
{
	if (journal->block.records > 0 && now_ns - journal->t_begun >= BLOCK_AGE_NS)
		hand_over(journal, now_ns);
}

uint64_t
bs_journal_hand_over(struct bs_journal *journal, uint64_t now_ns)
{
	if (journal->block.records == 0)
		return journal->head;
	/* Behind as it is, the thread would not be helped by many small blocks. */
	if (waiting(journal) >= HURRY_BLOCKS && journal->block.bytes < sizeof(journal->records))
		return journal->head + 1;
	hand_over(journal, now_ns);
	return journal->head;
}

bool
bs_journal_has_written(const struct bs_journal *journal, uint64_t mark)
{
	return __atomic_load_n(&journal->tail, __ATOMIC_ACQUIRE) >= mark;
}

bool
bs_journal_finish(struct bs_journal *journal)
{
	struct timespec end;

	if (journal->block.records > 0)
		hand_over(journal, bs_clock_now_ns());
	__atomic_store_n(&journal->stop, true, __ATOMIC_RELEASE);
	wake(journal);
	if (!journal->started)
		return true;
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += FINISH_MS * 1000000l;
	end.tv_sec += end.tv_nsec / 1000000000l;
	end.tv_nsec %= 1000000000l;
	return pthread_clockjoin_np(journal->thread, NULL, CLOCK_MONOTONIC, &end) == 0;
}

#define LOAD(field) __atomic_load_n(&journal->written.field, __ATOMIC_RELAXED)

void
bs_journal_status(const struct bs_journal *journal, struct bs_rec_journal *status)
{
	*status = (struct bs_rec_journal){
		.file = LOAD(file),
		.blocks = LOAD(blocks),
		.bytes = LOAD(bytes),
		.records = LOAD(records),
		.lost_records = journal->lost_records,
		.lost_bytes = journal->lost_bytes,
		.errors = LOAD(errors),
		.error = LOAD(error),
		.slot = LOAD(slot),
		.last_error = LOAD(last_error),
	};
}
