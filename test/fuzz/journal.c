/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A journal's file in pieces of any size: every byte is found to be something
 * once, in order, and what passes as records can be walked.
 *
 * Input: size of the pieces; whether CRCs are mended; the file.
 */
#include <stdalign.h>

#include "bs_journal.h"
#include "fuzz.h"
#include "journal_mend.h"

static void
walk(const struct bs_journal_found *found)
{
	struct bs_journal_item item;
	size_t offset = 0;

	while (bs_journal_item_next(found->records, found->block->bytes, &offset, &item) > 0)
		FUZZ_CHECK(offset <= found->block->bytes);
}

void
fuzz_one(const uint8_t *data, size_t bytes)
{
	struct fuzz_input input = {data, bytes};
	const size_t step = 1u + (size_t)fuzz_u8(&input) * 37u;
	const bool mended = fuzz_u8(&input) & 1u;
	struct bs_journal_reader *reader = bs_journal_reader_create();
	struct bs_journal_found found;
	enum bs_journal_step what = BS_JOURNAL_MORE;
	size_t total, at = 0;
	uint8_t *file = fuzz_take(&input, input.bytes, &total);
	uint64_t seen = 0;

	if (reader == NULL)
		abort();
	if (mended)
		journal_mend(file, total);
	while (what != BS_JOURNAL_END && what != BS_JOURNAL_REFUSED) {
		what = bs_journal_reader_next(reader, &found);
		if (what == BS_JOURNAL_MORE) {
			size_t room, n = total - at < step ? total - at : step;
			void *to = bs_journal_reader_room(reader, &room);

			FUZZ_CHECK(room > 0);
			n = n < room ? n : room;
			memcpy(to, file + at, n);
			at += n;
			bs_journal_reader_fill(reader, n);
		} else if (what != BS_JOURNAL_END && what != BS_JOURNAL_REFUSED) {
			FUZZ_CHECK(found.offset == seen);
			seen += found.bytes;
			if (what == BS_JOURNAL_BLOCK)
				walk(&found);
		}
	}
	FUZZ_CHECK(what == BS_JOURNAL_REFUSED || seen == total);
	bs_journal_reader_destroy(reader);
	free(file);
}
