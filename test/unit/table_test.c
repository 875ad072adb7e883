/* SPDX-License-Identifier: BSD-3-Clause */
/* Columns align, lines do not end in spaces, and hostile text cannot reach the terminal. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "table.h"

static void
columns_align_and_control_characters_are_replaced(void **state)
{
	static const struct table_column columns[] = {
		{"name", false}, {"n", true}, {"what", false}};
	json_t *rows = json_array();
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	(void)state;
	table_row(rows, 3, "a", "12345", "x");
	table_row(rows, 3, "\033[2Jlong", "7", "");
	table_row(rows, 3, "", "", "");
	table_print(out, columns, 3, rows, 1);
	fclose(out);
	assert_string_equal(text, " name          n  what\n"
				  " a         12345  x\n"
				  " ?[2Jlong      7\n"
				  "\n");
	free(text);
	json_decref(rows);
}

static void
values_of_any_type_have_a_text(void **state)
{
	json_t *object = json_pack("{s:s, s:i, s:b, s:n, s:I, s:i}", "s", "word", "i", -3, "b", 1,
		"null", "ns", (json_int_t)1500000, "negative", -1);
	char buf[TABLE_TEXT_BYTES];

	(void)state;
	assert_string_equal(table_text(object, "s", buf), "word");
	assert_string_equal(table_text(object, "i", buf), "-3");
	assert_string_equal(table_text(object, "b", buf), "yes");
	assert_string_equal(table_text(object, "null", buf), "-");
	assert_string_equal(table_text(object, "absent", buf), "-");
	assert_string_equal(table_text(NULL, "absent", buf), "-");
	assert_string_equal(table_duration(object, "ns", buf), "1.50 ms");
	assert_string_equal(table_duration(object, "negative", buf), "-");
	assert_string_equal(table_duration(object, "s", buf), "-");
	json_decref(object);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_align_and_control_characters_are_replaced),
		cmocka_unit_test(values_of_any_type_have_a_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
