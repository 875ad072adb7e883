/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <string.h>

#define HELP_COLUMN 28

static void
help_line(FILE *out, const struct bs_option *o)
{
	int used = fprintf(out, "  %c%c%c --%s", o->letter != 0 ? '-' : ' ',
		o->letter != 0 ? o->letter : ' ', o->letter != 0 ? ',' : ' ', o->name);
	const char *line = o->help;

	if (o->argument != NULL)
		used += fprintf(out, " %s", o->argument);
	if (used > HELP_COLUMN - 2) {
		fputc('\n', out);
		used = 0;
	}
	for (;;) {
		size_t length = strcspn(line, "\n");

		fprintf(out, "%*s%.*s\n", HELP_COLUMN - used, "", (int)length, line);
		if (line[length] == '\0')
			return;
		line += length + 1;
		used = 0;
	}
}

void
bs_options_help(const struct bs_command *command, FILE *out)
{
	static const struct bs_option help = {.name = "help", .letter = 'h', .help = "This text."};

	fprintf(out, "usage: %s [OPTION]... %s\n\n%s\n\n", command->name, command->operands,
		command->summary);
	for (unsigned i = 0; i < command->option_count; i++)
		help_line(out, &command->options[i]);
	help_line(out, &help);
}

static int
mistake(const struct bs_command *command, FILE *err, const char *option, size_t length,
	const char *what)
{
	fprintf(err, "%s: %.*s: %s (see %s --help)\n", command->name, (int)length, option, what,
		command->name);
	return -1;
}

/* The option that an argument names; *value is what is joined to it ("--name=value", "-nvalue"). */
static const struct bs_option *
find(const struct bs_command *command, const char *argument, size_t *length, const char **value)
{
	bool is_long = argument[1] == '-';
	const char *name = argument + (is_long ? 2 : 1);

	*length = is_long ? strcspn(argument, "=") : 2;
	*value = NULL;
	if (is_long && argument[*length] == '=')
		*value = argument + *length + 1;
	else if (!is_long && argument[2] != '\0')
		*value = argument + 2;
	for (unsigned i = 0; i < command->option_count; i++) {
		const struct bs_option *o = &command->options[i];

		if (is_long ? strlen(o->name) == *length - 2 &&
					memcmp(o->name, name, *length - 2) == 0
			    : o->letter == name[0])
			return o;
	}
	return NULL;
}

/* Reads the option at argv[*at]; 0, or -1 with the mistake told. */
static int
read_option(
	const struct bs_command *command, int argc, char **argv, int *at, void *values, FILE *err)
{
	const char *argument = argv[*at];
	const char *value;
	size_t length;
	const struct bs_option *o = find(command, argument, &length, &value);
	char *slot = values;

	if (o == NULL)
		return mistake(command, err, argument, length, "no such option");
	slot += o->offset;
	if (o->kind == BS_OPTION_FLAG) {
		if (value != NULL)
			return mistake(command, err, argument, length, "takes no value");
		*(bool *)slot = true;
		return 0;
	}
	if (value == NULL && *at + 1 < argc)
		value = argv[++*at];
	if (value == NULL)
		return mistake(command, err, argument, length, "needs a value");
	if (o->kind == BS_OPTION_TEXT) {
		*(const char **)slot = value;
	} else {
		char error[BS_OPTION_ERROR_BYTES] = "";

		if (o->take(values, value, error) != 0)
			return mistake(command, err, argument, length, error);
	}
	return 0;
}

int
bs_options_read(
	const struct bs_command *command, int argc, char **argv, void *values, FILE *out, FILE *err)
{
	bool ended = false;
	int operands = 0;

	for (int at = 1; at < argc; at++) {
		const char *argument = argv[at];

		if (ended || argument[0] != '-' || argument[1] == '\0') {
			argv[1 + operands++] = argv[at];
		} else if (strcmp(argument, "--") == 0) {
			ended = true;
		} else if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0) {
			bs_options_help(command, out);
			return -2;
		} else if (read_option(command, argc, argv, &at, values, err) != 0) {
			return -1;
		}
	}
	return operands;
}
