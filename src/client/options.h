/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Options of bufscope's commands. A command describes its options in one table,
 * from which they are read and --help is written, so that neither can lack what
 * the other has.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Exit status of every command. */
#define BS_EXIT_DONE 0
#define BS_EXIT_FAILED 1
#define BS_EXIT_USAGE 2
#define BS_EXIT_ANOMALY 3

#define BS_OPTION_ERROR_BYTES 256u

/* Where a value goes: offset into the command's struct of values. */
enum bs_option_kind {
	BS_OPTION_FLAG, /* bool, set to true */
	BS_OPTION_TEXT, /* const char *, points into argv */
	BS_OPTION_TAKE, /* given to take(); may come more than once */
};

struct bs_option {
	const char *name;     /* long name, without dashes */
	char letter;	      /* short name, or 0 */
	const char *argument; /* what --help calls its value; NULL for a flag */
	const char *help;
	enum bs_option_kind kind;
	size_t offset;
	/* values is the command's struct. 0, or -EINVAL with one line in error: what is wrong and
	 * allowed. */
	int (*take)(void *values, const char *text, char error[BS_OPTION_ERROR_BYTES]);
};

struct bs_command {
	const char *name;     /* "bufscope replay" */
	const char *operands; /* "FILE...", or "" */
	const char *summary;  /* one line or more, for --help */
	const struct bs_option *options;
	unsigned option_count;
};

/*
 * Reads the options in argv[1..argc) into *values; texts point into argv. Options
 * and operands may be mixed; "--" ends the options, "-" is an operand. Operands
 * are moved to argv[1..], their number is returned. -1: a mistake, told in one
 * line on err (exit with BS_EXIT_USAGE); -2: --help was asked for and written to
 * out (exit with BS_EXIT_DONE).
 */
int bs_options_read(const struct bs_command *command, int argc, char **argv, void *values,
	FILE *out, FILE *err);

/* The text of --help. */
void bs_options_help(const struct bs_command *command, FILE *out);
