/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations are compared with what is normal for them, so /user/17 and
 * /user/18 must be the same operation: what varies from call to call is
 * replaced before the label becomes a key.
 */
#include <string.h>

#include "bs_framer.h"

#define UUID_BYTES 36u /* 8-4-4-4-12, RFC 9562 section 4 */
#define HEX_BYTES_MIN 8u

static bool
is_digit(char c)
{
	return (unsigned char)(c - '0') < 10;
}

static bool
is_letter(char c)
{
	return (unsigned char)((c | 0x20) - 'a') < 26;
}

static bool
is_hex(char c)
{
	return is_digit(c) || (unsigned char)((c | 0x20) - 'a') < 6;
}

static bool
is_uuid(const char *text, size_t len)
{
	if (len < UUID_BYTES)
		return false;
	for (size_t i = 0; i < UUID_BYTES; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? text[i] != '-' : !is_hex(text[i]))
			return false;
	}
	return len == UUID_BYTES || !(is_digit(text[UUID_BYTES]) || is_letter(text[UUID_BYTES]));
}

/* Copies a run of letters and digits, each run of digits in it as one '*'. */
static size_t
copy_word(const char *word, size_t len, char *out, size_t room)
{
	size_t used = 0;

	for (size_t i = 0; i < len && used < room; i++) {
		if (!is_digit(word[i]))
			out[used++] = word[i];
		else if (i == 0 || !is_digit(word[i - 1]))
			out[used++] = '*';
	}
	return used;
}

/* FNV-1a; 0 is kept for "no operation". */
static uint32_t
hash_text(const char *text, size_t len)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (uint8_t)text[i]) * 16777619u;
	return hash != 0 ? hash : 1;
}

size_t
bs_operation_template(const char *label, size_t len, char out[BS_FRAME_LABEL_BYTES], uint32_t *hash)
{
	size_t used = 0, at = 0;

	while (at < len && label[at] != '?' && used < BS_FRAME_LABEL_BYTES) {
		size_t word = 0;
		bool hex = true, digit = false;

		if (is_uuid(label + at, len - at)) {
			out[used++] = '*';
			at += UUID_BYTES;
			continue;
		}
		while (at + word < len &&
			(is_digit(label[at + word]) || is_letter(label[at + word]))) {
			hex = hex && is_hex(label[at + word]);
			digit = digit || is_digit(label[at + word]);
			word++;
		}
		if (word == 0) {
			out[used++] = label[at++];
			continue;
		}
		if (hex && digit && word >= HEX_BYTES_MIN)
			out[used++] = '*';
		else
			used += copy_word(
				label + at, word, out + used, BS_FRAME_LABEL_BYTES - used);
		at += word;
	}
	*hash = hash_text(out, used);
	return used;
}
