/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gives a fuzzed journal right checksums, so that the fuzzer gets past them:
 * somebody who makes up a journal can, too.
 */
#pragma once

#include "bs_journal.h"
#include "fuzz.h"

/* Seals whatever looks like a header where one would be. */
static inline void
journal_mend(uint8_t *file, size_t bytes)
{
	struct bs_journal_file head;
	struct bs_journal_block block;
	size_t at = sizeof(head);

	if (bytes < sizeof(head))
		return;
	memcpy(&head, file, sizeof(head));
	bs_journal_file_seal(&head);
	memcpy(file, &head, sizeof(head));
	while (at + sizeof(block) <= bytes) {
		memcpy(&block, file + at, sizeof(block));
		if (block.bytes > bytes - at - sizeof(block))
			return;
		bs_journal_block_seal(&block, file + at + sizeof(block));
		memcpy(file + at, &block, sizeof(block));
		at += sizeof(block) + block.bytes;
	}
}
