/* SPDX-License-Identifier: BSD-3-Clause */
/* Options: forms they come in, mistakes and how they are told, help from the same table. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

struct values {
	bool all;
	const char *output;
	char taken[32];
};

static int
take(void *context, const char *text, char error[BS_OPTION_ERROR_BYTES])
{
	struct values *values = context;

	if (strcmp(text, "bad") == 0) {
		snprintf(error, BS_OPTION_ERROR_BYTES, "\"%s\" is not a port", text);
		return -EINVAL;
	}
	strncat(values->taken, text, sizeof(values->taken) - strlen(values->taken) - 1);
	return 0;
}

static const struct bs_option options[] = {
	{"all", 'a', NULL, "Everything.", BS_OPTION_FLAG, offsetof(struct values, all), NULL},
	{"output", 'o', "FILE", "Where to.\nNot here.", BS_OPTION_TEXT,
		offsetof(struct values, output), NULL},
	{"port", 0, "N", "Which.", BS_OPTION_TAKE, 0, take},
};
static const struct bs_command command = {"prog cmd", "FILE...", "Does things.", options, 3};

/* Reads a command line written with blanks; what was said goes to said. */
static int
read_line(const char *line, struct values *values, char *argv[16], char said[1024])
{
	static char copy[256];
	FILE *stream = fmemopen(said, 1024, "w");
	char *rest = copy;
	int argc = 0, result;

	memset(values, 0, sizeof(*values));
	snprintf(copy, sizeof(copy), "%s", line);
	argv[argc++] = (char *)"cmd";
	while (argc < 15 && rest != NULL && *rest != '\0')
		argv[argc++] = strsep(&rest, " ");
	argv[argc] = NULL;
	result = bs_options_read(&command, argc, argv, values, stream, stream);
	fclose(stream);
	return result;
}

static void
options_and_operands_may_be_mixed(void **state)
{
	struct values v;
	char *argv[16], said[1024];

	(void)state;
	assert_int_equal(read_line("a --all b -o out -", &v, argv, said), 3);
	assert_true(v.all);
	assert_string_equal(v.output, "out");
	assert_string_equal(argv[1], "a");
	assert_string_equal(argv[2], "b");
	assert_string_equal(argv[3], "-");
}

static void
value_may_be_joined_or_follow(void **state)
{
	struct values v;
	char *argv[16], said[1024];

	(void)state;
	assert_int_equal(read_line("--output=x --port 1 --port=2", &v, argv, said), 0);
	assert_string_equal(v.output, "x");
	assert_string_equal(v.taken, "12");
	assert_int_equal(read_line("-ox=y", &v, argv, said), 0);
	assert_string_equal(v.output, "x=y");
	assert_int_equal(read_line("--output=", &v, argv, said), 0);
	assert_string_equal(v.output, "");
}

static void
two_dashes_end_the_options(void **state)
{
	struct values v;
	char *argv[16], said[1024];

	(void)state;
	assert_int_equal(read_line("-- --all -x", &v, argv, said), 2);
	assert_false(v.all);
	assert_string_equal(argv[1], "--all");
	assert_string_equal(argv[2], "-x");
}

static void
mistakes_are_told_in_one_line(void **state)
{
	static const char *const lines[][2] = {
		{"--al", "prog cmd: --al: no such option (see prog cmd --help)\n"},
		{"--alll", "prog cmd: --alll: no such option (see prog cmd --help)\n"},
		{"-x", "prog cmd: -x: no such option (see prog cmd --help)\n"},
		{"--all=1", "prog cmd: --all: takes no value (see prog cmd --help)\n"},
		{"f -o", "prog cmd: -o: needs a value (see prog cmd --help)\n"},
		{"--port bad", "prog cmd: --port: \"bad\" is not a port (see prog cmd --help)\n"},
	};
	struct values v;
	char *argv[16], said[1024];

	(void)state;
	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(read_line(lines[i][0], &v, argv, said), -1);
		assert_string_equal(said, lines[i][1]);
	}
}

static void
help_has_every_option(void **state)
{
	struct values v;
	char *argv[16], said[1024];

	(void)state;
	assert_int_equal(read_line("x --help --nonsense", &v, argv, said), -2);
	assert_string_equal(said, "usage: prog cmd [OPTION]... FILE...\n"
				  "\n"
				  "Does things.\n"
				  "\n"
				  "  -a, --all                 Everything.\n"
				  "  -o, --output FILE         Where to.\n"
				  "                            Not here.\n"
				  "      --port N              Which.\n"
				  "  -h, --help                This text.\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_and_operands_may_be_mixed),
		cmocka_unit_test(value_may_be_joined_or_follow),
		cmocka_unit_test(two_dashes_end_the_options),
		cmocka_unit_test(mistakes_are_told_in_one_line),
		cmocka_unit_test(help_has_every_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
