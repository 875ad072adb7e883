/* SPDX-License-Identifier: BSD-3-Clause */
/* The bufscope command: hands over to the command that is named. */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "options.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv); /* argv[0] is the name */
	const char *help;
} commands[] = {
	{"replay", replay_command, "find the slow RPCs in captures, and why they were slow"},
};

static int
usage(FILE *out, int status)
{
	fputs("usage: bufscope COMMAND [OPTION]...\n\n", out);
	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		fprintf(out, "  %-12s %s\n", commands[i].name, commands[i].help);
	fputs("\nbufscope COMMAND --help says more.\n", out);
	return status;
}

int
main(int argc, char **argv)
{
	if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return usage(stdout, BS_EXIT_DONE);
	for (unsigned i = 0; argc >= 2 && i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	if (argc >= 2)
		fprintf(stderr, "bufscope: no command \"%s\"\n", argv[1]);
	return usage(stderr, BS_EXIT_USAGE);
}
