/* SPDX-License-Identifier: BSD-3-Clause */
/* Columns of text, aligned when all rows are known. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* A column's heading; numbers stand to the right. */
struct table_column {
	const char *heading;
	bool right;
};

/*
 * Prints the rows (an array of arrays of strings, as many as there are columns)
 * under the headings, each line after `indent` spaces. Control characters and
 * bytes beyond ASCII are shown as "?".
 */
void table_print(FILE *out, const struct table_column *columns, unsigned count, const json_t *rows,
	unsigned indent);

/* Appends a row of `count` strings. */
void table_row(json_t *rows, unsigned count, ...);

#define TABLE_TEXT_BYTES 32u

/* The text of obj[key]: a number, "-" for null, "yes" or "no"; buf is used for numbers. */
const char *table_text(const json_t *obj, const char *key, char buf[TABLE_TEXT_BYTES]);

/* The same for a duration in ns. */
const char *table_duration(const json_t *obj, const char *key, char buf[TABLE_TEXT_BYTES]);
