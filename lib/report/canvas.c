/* SPDX-License-Identifier: BSD-3-Clause */
#include "canvas.h"

#include <errno.h>
#include <string.h>

#include "escape.h"

/* Room in the line for a colour, its reset and the end of the line. */
#define TAIL_BYTES 32u

/* Characters from here on may be drawn two columns wide; they count as such. */
#define WIDE_FROM 0x1100u

#define NO_BREAK_SPACE 0xa0u

static const char *const color_codes[CANVAS_COLOR_COUNT] = {
	[CANVAS_PLAIN] = "\x1b[0m",
	[CANVAS_BOLD] = "\x1b[1m",
	[CANVAS_DIM] = "\x1b[2m",
	[CANVAS_RED] = "\x1b[1;31m",
	[CANVAS_GREEN] = "\x1b[32m",
	[CANVAS_YELLOW] = "\x1b[33m",
};

void
canvas_init(struct canvas *c, FILE *out, const struct bs_report_text *options)
{
	memset(c, 0, offsetof(struct canvas, line));
	c->out = out;
	c->color = options->color;
	c->utf8 = options->utf8;
	c->width = options->width;
	if (c->width < BS_REPORT_WIDTH_MIN)
		c->width = BS_REPORT_WIDTH_MIN;
	if (c->width > BS_REPORT_WIDTH_MAX)
		c->width = BS_REPORT_WIDTH_MAX;
}

/* Replaces the last character of a line that cannot take the next. */
static void
clip(struct canvas *c)
{
	const char *mark = c->utf8 ? "…" : ">";

	if (c->clipped)
		return;
	c->clipped = true;
	if (c->column == c->width) {
		c->length = c->last_cell;
		c->column = c->last_column;
		c->stale = true;
	}
	memcpy(c->line + c->length, mark, strlen(mark));
	c->length += strlen(mark);
	c->column++;
}

static void
put(struct canvas *c, const char *bytes, size_t count, unsigned cells)
{
	if (c->clipped)
		return;
	if (c->column + cells > c->width || c->length + count + TAIL_BYTES > sizeof(c->line)) {
		clip(c);
		return;
	}
	c->last_cell = c->length;
	c->last_column = c->column;
	memcpy(c->line + c->length, bytes, count);
	c->length += count;
	c->column += cells;
}

/*
 * The next character of a text as it is shown: its bytes in out, its columns in
 * *cells. Returns the bytes of the text it stands for.
 */
static size_t
shown(const struct canvas *c, const char *text, size_t bytes, char out[4 * ESCAPE_MAX + 1],
	unsigned *cells)
{
	uint32_t code = 0;
	size_t step = escape_decode(text, bytes, &code);

	if (step == 0)
		step = 1;
	if (code == NO_BREAK_SPACE || (code >= 0x80 && !c->utf8)) {
		out[0] = code == NO_BREAK_SPACE ? ' ' : '?';
		out[1] = '\0';
		*cells = 1;
		return step;
	}
	*cells = (unsigned)bs_report_escape(text, step, out, 4 * ESCAPE_MAX + 1);
	if (code != 0 && escape_printable(code))
		*cells = code >= WIDE_FROM ? 2 : 1;
	return step;
}

void
canvas_text_within(struct canvas *c, const char *text, unsigned cells)
{
	size_t bytes = strlen(text);
	unsigned end = c->column + cells;
	unsigned width = c->width;

	if (end < width)
		c->width = end;
	for (size_t at = 0; at < bytes && !c->clipped;) {
		char out[4 * ESCAPE_MAX + 1];
		unsigned taken;

		at += shown(c, text + at, bytes - at, out, &taken);
		put(c, out, strlen(out), taken);
	}
	if (c->width != width && c->column < width)
		c->clipped = false; /* only this text was cut, not the line */
	c->width = width;
}

void
canvas_text(struct canvas *c, const char *text)
{
	canvas_text_within(c, text, c->width);
}

unsigned
canvas_columns(const struct canvas *c, const char *text)
{
	size_t bytes = strlen(text);
	unsigned columns = 0;

	for (size_t at = 0; at < bytes;) {
		char out[4 * ESCAPE_MAX + 1];
		unsigned cells;

		at += shown(c, text + at, bytes - at, out, &cells);
		columns += cells;
	}
	return columns;
}

void
canvas_wrapped(struct canvas *c, const char *text, unsigned indent)
{
	while (*text != '\0') {
		char word[256];
		size_t length = strcspn(text, " ");
		size_t bytes = length < sizeof(word) ? length : sizeof(word) - 1;

		memcpy(word, text, bytes);
		word[bytes] = '\0';
		if (c->column > indent) {
			if (c->column + 1 + canvas_columns(c, word) > c->width) {
				enum canvas_color color = c->current;

				canvas_line(c);
				canvas_color(c, color);
				canvas_to(c, indent);
			} else {
				put(c, " ", 1, 1);
			}
		}
		canvas_text(c, word);
		text += length + strspn(text + length, " ");
	}
}

void
canvas_labelled(struct canvas *c, const char *word, const char *text)
{
	canvas_text(c, " ");
	canvas_text(c, word);
	canvas_to(c, CANVAS_LABEL_END);
	canvas_wrapped(c, text, CANVAS_LABEL_END);
	canvas_line(c);
}

void
canvas_symbol(struct canvas *c, const char *utf8, char ascii)
{
	if (c->utf8)
		put(c, utf8, strlen(utf8), 1);
	else
		put(c, &ascii, 1, 1);
}

void
canvas_to(struct canvas *c, unsigned column)
{
	while (c->column < column && !c->clipped)
		put(c, " ", 1, 1);
}

void
canvas_right(struct canvas *c, const char *text, unsigned column)
{
	unsigned columns = canvas_columns(c, text);

	if (c->column + columns < column)
		canvas_to(c, column - columns);
	canvas_text(c, text);
}

void
canvas_color(struct canvas *c, enum canvas_color color)
{
	const char *code = color_codes[color];

	if (!c->color || (c->current == color && !c->stale))
		return;
	c->stale = false;
	if (color != CANVAS_PLAIN && c->length + TAIL_BYTES > sizeof(c->line))
		return;
	if (c->current != CANVAS_PLAIN && color != CANVAS_PLAIN)
		canvas_color(c, CANVAS_PLAIN);
	memcpy(c->line + c->length, code, strlen(code));
	c->length += strlen(code);
	c->current = color;
}

void
canvas_line(struct canvas *c)
{
	while (c->length > 0 && c->line[c->length - 1] == ' ')
		c->length--;
	canvas_color(c, CANVAS_PLAIN);
	c->line[c->length++] = '\n';
	if (fwrite(c->line, 1, c->length, c->out) != c->length)
		c->error = -EIO;
	c->length = 0;
	c->column = 0;
	c->last_cell = 0;
	c->last_column = 0;
	c->clipped = false;
}
