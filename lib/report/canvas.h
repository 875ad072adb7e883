/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines of text that are never wider than the terminal and hold nothing that a
 * terminal would obey, whatever is put into them. A line is built from the left
 * and written when it is complete; what does not fit is cut, with a mark.
 */
#pragma once

#include <stddef.h>

#include "bs_report.h"

enum canvas_color {
	CANVAS_PLAIN,
	CANVAS_BOLD,
	CANVAS_DIM,
	CANVAS_RED,
	CANVAS_GREEN,
	CANVAS_YELLOW,
	CANVAS_COLOR_COUNT
};

#define CANVAS_LINE_BYTES 4096u

struct canvas {
	FILE *out;
	unsigned width;
	bool color, utf8;
	bool clipped;
	bool stale; /* the code of the current colour may have been cut off */
	int error;  /* 0, or -EIO once writing failed */
	unsigned column;
	size_t length;	  /* bytes in line */
	size_t last_cell; /* where the last character begins */
	unsigned last_column;
	enum canvas_color current;
	char line[CANVAS_LINE_BYTES];
};

void canvas_init(struct canvas *c, FILE *out, const struct bs_report_text *options);

/* Text of unknown origin: escaped, and cut at the end of the line. */
void canvas_text(struct canvas *c, const char *text);

/* The same, at most `cells` columns wide. */
void canvas_text_within(struct canvas *c, const char *text, unsigned cells);

/* Words, on as many lines as it takes; those after the first begin at column `indent`. */
void canvas_wrapped(struct canvas *c, const char *text, unsigned indent);

/* Where the text of canvas_labelled() begins. */
#define CANVAS_LABEL_END 12u

/* A whole line, or more: a word on the left, and a text beside it, wrapped. */
void canvas_labelled(struct canvas *c, const char *word, const char *text);

/* A symbol of ours, one column wide, and what stands for it in ASCII. */
void canvas_symbol(struct canvas *c, const char *utf8, char ascii);

/* Blanks up to that column; none if it has been reached. */
void canvas_to(struct canvas *c, unsigned column);

/* Text that ends before that column, blanks on its left. */
void canvas_right(struct canvas *c, const char *text, unsigned column);

/* What follows, to the end of the line, has this colour. */
void canvas_color(struct canvas *c, enum canvas_color color);

/* Writes the line, without blanks at its end, and begins the next. */
void canvas_line(struct canvas *c);

/* Columns that canvas_text() would take on a line without end. */
unsigned canvas_columns(const struct canvas *c, const char *text);
