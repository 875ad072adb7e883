/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a journal goes on after its writer was started again. Only headers are
 * read, but for the last block: what lies before the end is the reader's matter.
 */
#include <string.h>

#include "journal_private.h"

static bool
read_at(const struct bs_journal *journal, unsigned index, void *to, size_t bytes, uint64_t offset)
{
	return journal->io->read(journal->io->context, journal->first_fd + (int)index, to, bytes,
		       (off_t)offset) == (ssize_t)bytes;
}

/* The newest file's index; false if there is none. Notes the numbers of all. */
static bool
find_newest(struct bs_journal *journal, struct bs_journal_file *newest, unsigned *index)
{
	bool found = false;

	for (unsigned i = 0; i < journal->count; i++) {
		struct bs_journal_file file;

		if (!read_at(journal, i, &file, sizeof(file), 0) ||
			bs_journal_file_check(&file) != BS_JOURNAL_HEADER_GOOD)
			continue;
		journal->numbers[i] = file.file;
		if (!found || file.file > newest->file) {
			*newest = file;
			*index = i;
			found = true;
		}
	}
	return found;
}

/* The end of a file: behind its last whole block. */
struct end {
	uint64_t offset;
	uint64_t sequence; /* of the next block */
	bool clean;	   /* nothing but a torn block is behind it */
};

static struct end
find_end(struct bs_journal *journal, unsigned index, uint64_t first_block)
{
	off_t got = journal->io->size(journal->io->context, journal->first_fd + (int)index);
	uint64_t size = got > 0 ? (uint64_t)got : 0;
	struct end end = {sizeof(struct bs_journal_file), first_block, true}, before = end;
	struct bs_journal_block block;

	while (end.offset + sizeof(block) <= size &&
		read_at(journal, index, &block, sizeof(block), end.offset) &&
		bs_journal_block_check(&block) && block.journal == journal->id &&
		end.offset + sizeof(block) + block.bytes <= size) {
		before = end;
		end.offset += sizeof(block) + block.bytes;
		end.sequence = block.sequence + !(block.flags & BS_JOURNAL_REPEATS);
	}
	if (end.offset > before.offset) {
		uint8_t *records = journal->records; /* nothing is in it yet */

		read_at(journal, index, &block, sizeof(block), before.offset);
		if (!read_at(journal, index, records, block.bytes, before.offset + sizeof(block)) ||
			!bs_journal_records_check(&block, records))
			end = before;
	}
	end.clean = size < end.offset + 2 * (sizeof(block) + BS_JOURNAL_BLOCK_BYTES);
	return end;
}

void
journal_attach(struct bs_journal *journal, uint64_t now_ns)
{
	struct bs_journal_file newest;
	struct end end;
	unsigned index;

	journal->id = now_ns;
	journal->sequence = 1;
	if (!find_newest(journal, &newest, &index))
		return;
	journal->id = newest.journal;
	end = find_end(journal, index, newest.first_block);
	if (end.clean)
		journal->sequence = end.sequence;
	else /* the damage may hide blocks: no number may be used again */
		journal->id = now_ns;
	/* from which the next file is counted, if this one is not gone on with */
	journal->file = newest.file;
	journal->file_used = journal->file_bytes;
	journal->written.file = newest.file;
	journal->written.slot = index;
	journal->at = index;
	journal->offset = end.offset;
	if (end.clean && end.offset < journal->file_bytes &&
		journal->io->truncate(journal->io->context, journal->first_fd + (int)index,
			(off_t)end.offset) == 0)
		journal->file_used = end.offset;
}
