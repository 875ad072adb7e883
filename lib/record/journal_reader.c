/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the blocks in a file that may be damaged or hostile. A header whose
 * checksum is right is believed as to its length, so that each byte is summed at
 * most once as part of a block, and the search for the next header costs no more
 * than a checksum of one unit for each magic.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "journal_format.h"

/* Room for the largest block with much to spare: few moves of what is left over. */
#define BUFFER_BYTES (16u * BS_JOURNAL_BLOCK_BYTES)

struct bs_journal_reader {
	uint64_t offset; /* in the file, of data[begin] */
	size_t begin, end;
	bool ended;	/* all is in data */
	bool have_file; /* its header was dealt with */
	bool refused;
	struct {
		uint64_t offset, bytes; /* bytes 0: none */
		enum bs_journal_damage what;
	} skipped;
	struct bs_journal_file file;
	alignas(64) uint8_t data[BUFFER_BYTES];
};

#define X_TEXT(name, text) text,
static const char *const damage_texts[] = {BS_JOURNAL_DAMAGES(X_TEXT)};

const char *
bs_journal_damage_text(unsigned damage)
{
	return damage < BS_JOURNAL_DAMAGE_COUNT ? damage_texts[damage] : "?";
}

struct bs_journal_reader *
bs_journal_reader_create(void)
{
	struct bs_journal_reader *reader = aligned_alloc(64, sizeof(*reader));

	if (reader == NULL)
		errno = ENOMEM;
	else
		bs_journal_reader_restart(reader);
	return reader;
}

void
bs_journal_reader_destroy(struct bs_journal_reader *reader)
{
	free(reader);
}

void
bs_journal_reader_restart(struct bs_journal_reader *reader)
{
	memset(reader, 0, offsetof(struct bs_journal_reader, data));
}

/* Brings what is left to the beginning, where records are aligned again. */
static void
compact(struct bs_journal_reader *reader)
{
	memmove(reader->data, reader->data + reader->begin, reader->end - reader->begin);
	reader->end -= reader->begin;
	reader->begin = 0;
}

void *
bs_journal_reader_room(struct bs_journal_reader *reader, size_t *bytes)
{
	compact(reader);
	*bytes = sizeof(reader->data) - reader->end;
	return reader->data + reader->end;
}

void
bs_journal_reader_fill(struct bs_journal_reader *reader, size_t bytes)
{
	reader->end += bytes;
	if (bytes == 0)
		reader->ended = true;
}

uint64_t
bs_journal_reader_rewind(struct bs_journal_reader *reader)
{
	reader->begin = reader->end = 0;
	reader->ended = false;
	return reader->offset;
}

static void
consume(struct bs_journal_reader *reader, size_t bytes)
{
	reader->begin += bytes;
	reader->offset += bytes;
}

static void
skip(struct bs_journal_reader *reader, size_t bytes, enum bs_journal_damage what)
{
	if (reader->skipped.bytes == 0) {
		reader->skipped.offset = reader->offset;
		reader->skipped.what = what;
	}
	reader->skipped.bytes += bytes;
	consume(reader, bytes);
}

static enum bs_journal_step
tell_damage(struct bs_journal_reader *reader, struct bs_journal_found *found)
{
	*found = (struct bs_journal_found){
		.offset = reader->skipped.offset,
		.bytes = reader->skipped.bytes,
		.damage = reader->skipped.what,
	};
	reader->skipped.bytes = 0;
	return BS_JOURNAL_DAMAGE;
}

/* Moves to where the next header could begin, in what is there. */
static void
search(struct bs_journal_reader *reader, enum bs_journal_damage what)
{
	const uint8_t *from = reader->data + reader->begin + 1;
	size_t left = reader->end - reader->begin - 1;
	const uint8_t *hit = memmem(from, left, journal_block_magic, sizeof(journal_block_magic));
	size_t keep = 0;

	/* the end may be a part of a magic */
	if (hit == NULL && !reader->ended)
		keep = left < sizeof(journal_block_magic) - 1 ? left
							      : sizeof(journal_block_magic) - 1;
	skip(reader, hit != NULL ? (size_t)(hit - from) + 1 : left + 1 - keep, what);
}

/* FILE or REFUSED; MORE; BLOCK: go on with the blocks, the header is skipped or not there. */
static enum bs_journal_step
next_file(struct bs_journal_reader *reader, struct bs_journal_found *found)
{
	if (reader->end - reader->begin < sizeof(reader->file) && !reader->ended)
		return BS_JOURNAL_MORE;
	reader->have_file = true;
	if (reader->end - reader->begin < sizeof(reader->file))
		return BS_JOURNAL_BLOCK;
	memcpy(&reader->file, reader->data + reader->begin, sizeof(reader->file));
	*found = (struct bs_journal_found){
		.bytes = sizeof(reader->file),
		.file = &reader->file,
		.header = bs_journal_file_check(&reader->file),
	};
	switch (found->header) {
	case BS_JOURNAL_HEADER_GOOD:
		consume(reader, sizeof(reader->file));
		return BS_JOURNAL_FILE;
	case BS_JOURNAL_HEADER_ORDER:
	case BS_JOURNAL_HEADER_VERSION:
		reader->refused = true;
		return BS_JOURNAL_REFUSED;
	default:
		search(reader, BS_JOURNAL_DAMAGE_HEADER);
		return BS_JOURNAL_BLOCK;
	}
}

/* A block whose header is right is at begin, all of it. True: *step tells what was found. */
static bool
take_block(struct bs_journal_reader *reader, struct bs_journal_found *found,
	enum bs_journal_step *step)
{
	const struct bs_journal_block *block;
	size_t bytes;

	if (reader->begin % alignof(struct bs_journal_block) != 0)
		compact(reader);
	block = (const void *)(reader->data + reader->begin);
	bytes = sizeof(*block) + block->bytes;
	if (!bs_journal_records_check(block, block + 1)) {
		skip(reader, bytes, BS_JOURNAL_DAMAGE_CRC);
		return false;
	}
	if (reader->skipped.bytes > 0) {
		*step = tell_damage(reader, found);
		return true;
	}
	*found = (struct bs_journal_found){
		.offset = reader->offset,
		.bytes = bytes,
		.block = block,
		.records = block + 1,
	};
	consume(reader, bytes);
	*step = BS_JOURNAL_BLOCK;
	return true;
}

enum bs_journal_step
bs_journal_reader_next(struct bs_journal_reader *reader, struct bs_journal_found *found)
{
	struct bs_journal_block block;
	enum bs_journal_step step;

	if (!reader->have_file) {
		step = next_file(reader, found);
		if (step != BS_JOURNAL_BLOCK)
			return step;
	}
	while (!reader->refused) {
		size_t left = reader->end - reader->begin;

		if (left == 0 && reader->ended)
			return reader->skipped.bytes > 0 ? tell_damage(reader, found)
							 : BS_JOURNAL_END;
		if (left < sizeof(block) && !reader->ended)
			return BS_JOURNAL_MORE;
		if (left < sizeof(block)) {
			skip(reader, left, BS_JOURNAL_DAMAGE_TORN);
			continue;
		}
		memcpy(&block, reader->data + reader->begin, sizeof(block));
		if (!bs_journal_block_check(&block)) {
			search(reader, BS_JOURNAL_DAMAGE_NO_BLOCK);
		} else if (left - sizeof(block) < block.bytes) {
			if (!reader->ended)
				return BS_JOURNAL_MORE;
			skip(reader, left, BS_JOURNAL_DAMAGE_TORN);
		} else if (take_block(reader, found, &step)) {
			return step;
		}
	}
	return BS_JOURNAL_END;
}
