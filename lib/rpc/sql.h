/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first word of an SQL text, in capitals, byte by byte: what a label may tell of
 * it. All zero is the initial state.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SQL_WORD_BYTES 23u

struct sql_word {
	uint8_t bytes;
	char text[SQL_WORD_BYTES + 1]; /* ends with NUL; empty: the text begins with none */
};

/* True: the word is complete, or there is none; the bytes that follow do not matter. */
static inline bool
sql_word_byte(struct sql_word *word, uint8_t byte)
{
	const char c = (char)(byte >= 'a' && byte <= 'z' ? byte - 'a' + 'A' : byte);

	if (c >= 'A' && c <= 'Z' && word->bytes < SQL_WORD_BYTES) {
		word->text[word->bytes++] = c;
		return false;
	}
	return word->bytes > 0 || (c != ' ' && c != '\n' && c != '\t' && c != '\r');
}
