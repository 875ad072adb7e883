/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of journals: found by name or prefix, in the order in which they were written. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "bs_journal.h"

#define INPUT_DAMAGES 16u /* that are kept of a file, to be told */

struct input_damage {
	uint64_t offset, bytes;
	const char *what;
};

struct input {
	char *path;
	int fd;
	uint64_t file_bytes;
	/* what it holds, filled in by reading */
	bool has_file, read;
	struct bs_journal_file file;
	uint64_t blocks, records, repeated; /* repeated: blocks that another file had, too */
	uint64_t t_first, t_last;
	struct input_damage damages[INPUT_DAMAGES];
	uint64_t damage_count, skipped_bytes;
	/* the order: journal, then number of its first block */
	uint64_t journal, sequence;
};

/* All zero: none. */
struct inputs {
	struct input *list;
	unsigned count, room;
	unsigned failed; /* that were named, but cannot be read; told */
};

/*
 * Opens what is named: a file, or, where there is none of that name, all
 * "<path>.<number>". What cannot be opened is told in a line on err, after
 * `program`. 0, or -ENOMEM.
 */
int inputs_open(struct inputs *inputs, const char *const *paths, unsigned count,
	const char *program, FILE *err);

/* Brings them into order by looking at their beginnings. The reader is used for that. */
void inputs_sort(struct inputs *inputs, struct bs_journal_reader *reader);

/*
 * The next step of a reader through a file: reads what it needs at *offset. END
 * also where the system refuses to read; then *error is errno, else 0.
 */
enum bs_journal_step input_next(struct input *input, struct bs_journal_reader *reader,
	uint64_t *offset, struct bs_journal_found *found, int *error);

/* Notes damage of a file. */
void input_damaged(struct input *input, uint64_t offset, uint64_t bytes, const char *what);

void inputs_close(struct inputs *inputs);
