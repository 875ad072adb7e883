/* SPDX-License-Identifier: BSD-3-Clause */
#include "bs_report.h"
#include "escape.h"

#include <string.h>

static bool
is_tail(const char *in, unsigned count)
{
	for (unsigned i = 1; i < count; i++)
		if (((uint8_t)in[i] & 0xc0) != 0x80)
			return false;
	return true;
}

unsigned
escape_decode(const char *in, size_t bytes, uint32_t *code)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	uint8_t first = (uint8_t)in[0];
	unsigned length;
	uint32_t c;

	if (first < 0x80) {
		*code = first;
		return 1;
	}
	if (first < 0xc0 || first > 0xf7)
		return 0;
	length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
	if (bytes < length || !is_tail(in, length))
		return 0;
	c = first & (0x7fu >> length);
	for (unsigned i = 1; i < length; i++)
		c = c << 6 | ((uint8_t)in[i] & 0x3fu);
	if (c < least[length] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*code = c;
	return length;
}

bool
escape_printable(uint32_t code)
{
	static const struct {
		uint32_t first, last;
	} hidden[] = {
		{0x00, 0x1f},	    /* C0 controls */
		{0x7f, 0x9f},	    /* DEL, C1 controls */
		{0xad, 0xad},	    /* soft hyphen */
		{0x300, 0x36f},	    /* combining marks: they pile up on what is beside them */
		{0x61c, 0x61c},	    /* Arabic letter mark */
		{0x180e, 0x180e},   /* Mongolian vowel separator */
		{0x200b, 0x200f},   /* zero width, direction marks */
		{0x2028, 0x202e},   /* line and paragraph separator, direction embedding */
		{0x2060, 0x206f},   /* word joiner to deprecated format characters */
		{0xfe00, 0xfe0f},   /* variation selectors */
		{0xfeff, 0xfeff},   /* byte order mark */
		{0xfff0, 0xffff},   /* specials */
		{0xe0000, 0x10ffff} /* tags, private use */
	};

	for (unsigned i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		if (code >= hidden[i].first && code <= hidden[i].last)
			return false;
	return true;
}

size_t
bs_report_escape(const char *in, size_t bytes, char *out, size_t size)
{
	static const char digits[] = "0123456789abcdef";
	size_t at = 0, length = 0;

	while (at < bytes) {
		uint32_t code = 0;
		unsigned step = escape_decode(in + at, bytes - at, &code);
		bool plain = step > 0 && escape_printable(code);

		if (step == 0)
			step = 1;
		if (length + (plain ? step : step * ESCAPE_MAX) >= size)
			break;
		if (plain) {
			memcpy(out + length, in + at, step);
			length += step;
		}
		for (unsigned i = 0; !plain && i < step; i++) {
			uint8_t byte = (uint8_t)in[at + i];

			out[length++] = '\\';
			out[length++] = 'x';
			out[length++] = digits[byte >> 4];
			out[length++] = digits[byte & 15];
		}
		at += step;
	}
	out[length] = '\0';
	return length;
}
