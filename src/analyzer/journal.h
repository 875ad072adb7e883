/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The analyzer's side of the journal (bs_journal.h): what came and what was
 * decided goes to files that bufscoped opened. The loop fills blocks and hands
 * them over to a thread of its own that writes them, so that a slow disk holds up
 * nothing; past a bound they are left out and counted. What the system refuses is
 * tried again, at longer and longer intervals.
 *
 * A block is handed over when it is full, when its first record is a second old,
 * or when the loop wants it written. After a kill -9 of everything all blocks
 * that were written are there; after a power failure those up to the last
 * fdatasync, at most a second before, as far as the disk keeps its word.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "bs_journal.h"

#define BS_JOURNAL_FILES 16u
#define BS_JOURNAL_FILE_BYTES_MIN (1u << 20)
#define BS_JOURNAL_QUEUE 16u /* blocks that wait to be written */

/* The system's calls, or a test's: as pread, pwrite, ftruncate, fdatasync, and the size. */
struct bs_journal_io {
	ssize_t (*read)(void *context, int fd, void *data, size_t bytes, off_t offset);
	ssize_t (*write)(void *context, int fd, const void *data, size_t bytes, off_t offset);
	int (*truncate)(void *context, int fd, off_t bytes);
	int (*sync)(void *context, int fd);
	off_t (*size)(void *context, int fd);
	void *context;
};

struct bs_journal_files {
	int first_fd; /* open for reading and writing, with those that follow it */
	unsigned count;
	uint64_t file_bytes;		/* most of one file, at least BS_JOURNAL_FILE_BYTES_MIN */
	const struct bs_journal_io *io; /* NULL: the system's */
};

struct bs_journal;

/*
 * Looks where the journal in the files ends, and goes on there: in the newest
 * file, behind its last whole block, or in another file if that is full or
 * damaged. What is not readable counts as empty. now_ns names a journal that
 * begins. The descriptors stay the caller's. NULL with errno EINVAL or ENOMEM.
 */
struct bs_journal *bs_journal_create(const struct bs_journal_files *files, uint64_t now_ns);
void bs_journal_destroy(struct bs_journal *journal); /* not started, or finished; NULL is fine */

#define BS_JOURNAL_DESCRIPTORS (BS_JOURNAL_FILES + 1)

/* What must stay open: descriptors to fds, and how many they are. None for NULL. */
unsigned bs_journal_descriptors(const struct bs_journal *journal, int fds[BS_JOURNAL_DESCRIPTORS]);

/* Starts the thread that writes. 0 or -errno. */
int bs_journal_start(struct bs_journal *journal);

/*
 * Hands over what there is and lets the thread end: true. It waits for what the
 * thread has to write, but not long; false if the thread hangs in the system:
 * then the journal must not be destroyed.
 */
bool bs_journal_finish(struct bs_journal *journal);

/* --- the loop -------------------------------------------------------------------- */

/*
 * Room in a block for one record with what belongs to it (`bytes`, at most that
 * of a VERDICT with the largest group), to be filled before the next call.
 * t: its bs_record_instant.
 */
void *bs_journal_reserve(struct bs_journal *journal, size_t bytes, uint64_t t, uint64_t now_ns);

/* A valid record, or an RPC with its group. */
void bs_journal_put(
	struct bs_journal *journal, const struct bs_record *record, size_t bytes, uint64_t now_ns);

/* Hands over what is a second old. */
void bs_journal_advance(struct bs_journal *journal, uint64_t now_ns);

/*
 * Hands over what there is, unless the thread is behind: then it waits until it
 * is full or old. A mark for bs_journal_has_written.
 */
uint64_t bs_journal_hand_over(struct bs_journal *journal, uint64_t now_ns);

/* Is all written that was handed over until the mark? */
bool bs_journal_has_written(const struct bs_journal *journal, uint64_t mark);

/* How it goes; head, t and reserved are cleared. */
void bs_journal_status(const struct bs_journal *journal, struct bs_rec_journal *status);

/* --- the thread, or a test --------------------------------------------------------- */

/* Does what is due. In how many ns it wants to be called again; UINT64_MAX: when there is more. */
uint64_t bs_journal_write(struct bs_journal *journal, uint64_t now_ns);
