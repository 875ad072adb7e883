/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of bufscope that ask a running bufscoped. */
#pragma once

/* A command of the program bufscope: argv[0] is its name; returns the exit status. */
struct bs_program {
	const char *name;
	const char *help; /* one line */
	int (*run)(int argc, char **argv);
};

/* Ends with name NULL. */
extern const struct bs_program bs_live_programs[];
