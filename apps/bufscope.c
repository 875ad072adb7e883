/* SPDX-License-Identifier: BSD-3-Clause */
/* bufscope: one program, many commands; the first argument says which. */
#include <stdio.h>
#include <string.h>

#include "check_command.h"
#include "command.h"
#include "live.h"
#include "options.h"
#include "record_command.h"
#include "report_command.h"

static const struct bs_program offline_programs[] = {
	{"check", "whether a configuration is right, and what it makes", check_command},
	{"replay", "find the slow RPCs in captures, and why they were slow", replay_command},
	{"record", "write what an instance reports from now on to a file", record_command},
	{"report", "the same from journals, with the verdicts given live", report_command},
	{NULL, NULL, NULL},
};

static const struct bs_program *const tables[] = {bs_live_programs, offline_programs};

#define TABLES (sizeof(tables) / sizeof(tables[0]))

static void
print_usage(FILE *out)
{
	fputs("usage: bufscope COMMAND [OPTION]...\n\n", out);
	for (size_t i = 0; i < TABLES; i++) {
		for (const struct bs_program *p = tables[i]; p->name != NULL; p++)
			fprintf(out, "  %-10s %s\n", p->name, p->help);
	}
	fputs("\nbufscope COMMAND --help tells the command's options.\n", out);
}

int
main(int argc, char **argv)
{
	if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		print_usage(stdout);
		return BS_EXIT_DONE;
	}
	for (size_t i = 0; argc >= 2 && i < TABLES; i++) {
		for (const struct bs_program *p = tables[i]; p->name != NULL; p++) {
			if (strcmp(p->name, argv[1]) == 0)
				return p->run(argc - 1, argv + 1);
		}
	}
	if (argc >= 2)
		fprintf(stderr, "bufscope: there is no command %s (see bufscope --help)\n",
			argv[1]);
	else
		print_usage(stderr);
	return BS_EXIT_USAGE;
}
