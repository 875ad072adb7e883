/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The writer knows nothing of us: a file may be emptied and used again while it
 * is read. Then its number has changed; what was not read is missing, which the
 * numbers of the blocks tell.
 */
#include "follow.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number of a file; 0: it has none now. */
static uint64_t
number_of(const struct follow *follow, unsigned index)
{
	struct bs_journal_file file;

	if (pread(follow->fds[index], &file, sizeof(file), 0) != (ssize_t)sizeof(file) ||
		bs_journal_file_check(&file) != BS_JOURNAL_HEADER_GOOD)
		return 0;
	return file.file;
}

/* Moves to the first file behind the number, or to the newest; false if there is none. */
static bool
move_on(struct follow *follow, uint64_t number, bool newest)
{
	uint64_t best = 0;

	for (unsigned i = 0; i < follow->count; i++) {
		uint64_t own = number_of(follow, i);

		if (own <= number || (best != 0 && (newest ? own < best : own > best)))
			continue;
		best = own;
		follow->at = i;
	}
	if (best == 0)
		return false;
	follow->file = best;
	follow->offset = 0;
	bs_journal_reader_restart(follow->reader);
	return true;
}

static int
take_names(void *context, const struct bs_journal_block *block, const void *records)
{
	struct follow *follow = context;
	struct bs_journal_item item;
	size_t offset = 0;

	while (bs_journal_item_next(records, block->bytes, &offset, &item) == 1)
		bs_journal_preamble_take(follow->preamble, item.record);
	return 0;
}

static int
take_block(struct follow *follow, const struct bs_journal_found *found, follow_take *take,
	void *context)
{
	const struct bs_journal_block *block = found->block;

	if ((block->flags & BS_JOURNAL_REPEATS) != 0)
		return take_names(follow, block, found->records);
	if (block->journal == follow->journal) {
		if (block->sequence < follow->next_block)
			return 0;
		follow->missing += block->sequence - follow->next_block;
	}
	follow->journal = block->journal;
	follow->next_block = block->sequence + 1;
	return take(context, block, found->records);
}

/* Reads the file to where it ends now. */
static int
read_on(struct follow *follow, follow_take *take, void *context)
{
	struct bs_journal_found found;
	size_t room;
	void *to;
	ssize_t got;
	int ret;

	for (;;) {
		switch (bs_journal_reader_next(follow->reader, &found)) {
		case BS_JOURNAL_MORE:
			to = bs_journal_reader_room(follow->reader, &room);
			got = pread(follow->fds[follow->at], to, room, (off_t)follow->offset);
			if (got < 0)
				return -errno;
			if (got == 0) {
				/* a block that is not whole yet may be written anew */
				follow->offset = bs_journal_reader_rewind(follow->reader);
				return 0;
			}
			bs_journal_reader_fill(follow->reader, (size_t)got);
			follow->offset += (uint64_t)got;
			break;
		case BS_JOURNAL_BLOCK:
			ret = take_block(follow, &found, take, context);
			if (ret != 0)
				return ret;
			break;
		case BS_JOURNAL_DAMAGE:
			follow->skipped_bytes += found.bytes;
			break;
		case BS_JOURNAL_FILE:
			break;
		default:
			return -EBADMSG;
		}
	}
}

/* Is there a file behind the one that is read? That one is complete then. */
static bool
has_next(const struct follow *follow)
{
	for (unsigned i = 0; i < follow->count; i++)
		if (number_of(follow, i) > follow->file)
			return true;
	return false;
}

int
follow_step(struct follow *follow, follow_take *take, void *context)
{
	for (;;) {
		bool complete = has_next(follow); /* looked at before the end is read */
		int ret = 0;

		if (follow->file != 0 && number_of(follow, follow->at) == follow->file)
			ret = read_on(follow, take, context);
		if (ret != 0 || !complete)
			return ret;
		move_on(follow, follow->file, false);
	}
}

int
follow_open(struct follow *follow, const char *path, unsigned count, char error[FOLLOW_ERROR_BYTES])
{
	int ret;

	memset(follow, 0, sizeof(*follow));
	follow->reader = bs_journal_reader_create();
	follow->preamble = calloc(1, sizeof(*follow->preamble));
	if (follow->reader == NULL || follow->preamble == NULL) {
		snprintf(error, FOLLOW_ERROR_BYTES, "out of memory");
		return -ENOMEM;
	}
	for (unsigned i = 0; i < count && i < FOLLOW_FILES; i++) {
		char name[PATH_MAX];
		int fd;

		snprintf(name, sizeof(name), "%s.%u", path, i);
		fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0) {
			ret = -errno;
			snprintf(error, FOLLOW_ERROR_BYTES, "%.256s: %s%s", name, strerror(errno),
				errno == EACCES ? ": run this as the user of bufscoped" : "");
			return ret;
		}
		follow->fds[follow->count++] = fd;
	}
	if (!move_on(follow, 0, true))
		return 0; /* nothing is written yet */
	ret = read_on(follow, take_names, follow);
	if (ret != 0)
		snprintf(error, FOLLOW_ERROR_BYTES, "%.256s.%u: %s", path, follow->at,
			ret == -EBADMSG ? "not a journal of this version" : strerror(-ret));
	follow->missing = follow->skipped_bytes = 0;
	return ret;
}

void
follow_close(struct follow *follow)
{
	for (unsigned i = 0; i < follow->count; i++)
		close(follow->fds[i]);
	bs_journal_reader_destroy(follow->reader);
	free(follow->preamble);
	memset(follow, 0, sizeof(*follow));
}
