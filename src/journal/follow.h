/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Follows a journal that is being written: gives its blocks as they come, each
 * once, from one file to the next.
 */
#pragma once

#include "bs_journal.h"

#define FOLLOW_FILES 16u
#define FOLLOW_ERROR_BYTES 512u

struct follow {
	int fds[FOLLOW_FILES];
	unsigned count;
	unsigned at;	     /* the file that is read */
	uint64_t file;	     /* its number */
	uint64_t offset;     /* where to read on in it */
	uint64_t journal;    /* of the newest block */
	uint64_t next_block; /* the number that it has to have */
	struct bs_journal_reader *reader;
	struct bs_journal_preamble *preamble; /* names told until now */
	uint64_t missing; /* blocks that were overwritten or damaged before they were read */
	uint64_t skipped_bytes;
};

/* Takes a block. 0, or -errno that ends follow_step. */
typedef int follow_take(void *context, const struct bs_journal_block *block, const void *records);

/*
 * Opens "<path>.0" to "<path>.<count - 1>" and moves to the end of the journal in
 * them; the names told there are in preamble. 0, or -errno with one line in
 * error. follow_close() is due in either case.
 */
int follow_open(
	struct follow *follow, const char *path, unsigned count, char error[FOLLOW_ERROR_BYTES]);

/* Gives what has come since. 0, or what take or the system said. */
int follow_step(struct follow *follow, follow_take *take, void *context);

void follow_close(struct follow *follow);
