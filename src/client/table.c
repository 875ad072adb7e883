/* SPDX-License-Identifier: BSD-3-Clause */
#include "table.h"

#include <stdarg.h>
#include <string.h>

#include "bs_clock.h"

#define COLUMNS_MAX 16u

/* Spaces are held back in *gap until something follows, so that no line ends with them. */
static void
print_cell(FILE *out, const char *text, size_t width, bool right, size_t *gap)
{
	size_t bytes = strlen(text), pad = width > bytes ? width - bytes : 0;

	if (right || bytes == 0)
		*gap += pad;
	if (bytes > 0) {
		fprintf(out, "%*s", (int)*gap, "");
		*gap = right ? 0 : pad;
	}
	for (; *text != '\0'; text++)
		fputc(*text >= ' ' && *text <= '~' ? *text : '?', out);
	*gap += 2;
}

void
table_print(FILE *out, const struct table_column *columns, unsigned count, const json_t *rows,
	unsigned indent)
{
	size_t width[COLUMNS_MAX] = {0}, gap = indent, index;
	json_t *row;

	for (unsigned c = 0; c < count && c < COLUMNS_MAX; c++) {
		width[c] = strlen(columns[c].heading);
		json_array_foreach(rows, index, row)
		{
			size_t bytes = json_string_length(json_array_get(row, c));

			width[c] = bytes > width[c] ? bytes : width[c];
		}
		print_cell(out, columns[c].heading, width[c], columns[c].right, &gap);
	}
	fputc('\n', out);
	json_array_foreach(rows, index, row)
	{
		gap = indent;
		for (unsigned c = 0; c < count && c < COLUMNS_MAX; c++) {
			const char *text = json_string_value(json_array_get(row, c));

			print_cell(
				out, text == NULL ? "?" : text, width[c], columns[c].right, &gap);
		}
		fputc('\n', out);
	}
}

void
table_row(json_t *rows, unsigned count, ...)
{
	json_t *row = json_array();
	va_list args;

	va_start(args, count);
	for (unsigned i = 0; i < count; i++)
		json_array_append_new(row, json_string(va_arg(args, const char *)));
	va_end(args);
	json_array_append_new(rows, row);
}

const char *
table_text(const json_t *obj, const char *key, char buf[TABLE_TEXT_BYTES])
{
	const json_t *value = json_object_get(obj, key);

	if (json_is_string(value))
		return json_string_value(value);
	if (json_is_boolean(value))
		return json_is_true(value) ? "yes" : "no";
	if (!json_is_integer(value))
		return "-";
	snprintf(buf, TABLE_TEXT_BYTES, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	return buf;
}

const char *
table_duration(const json_t *obj, const char *key, char buf[TABLE_TEXT_BYTES])
{
	const json_t *value = json_object_get(obj, key);
	_Static_assert(TABLE_TEXT_BYTES >= BS_DURATION_TEXT_BYTES, "a duration fits");

	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return "-";
	return bs_duration_text((uint64_t)json_integer_value(value), buf);
}
