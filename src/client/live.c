/* SPDX-License-Identifier: BSD-3-Clause */
#include "live.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "connect.h"
#include "options.h"
#include "screen.h"
#include "terminal.h"

#define REFRESH_MS 1000

struct values {
	const char *file_prefix, *socket, *offset;
	bool json, wait;
};

static const struct bs_option list_options[] = {
	{.name = "file-prefix",
		.argument = "PREFIX",
		.kind = BS_OPTION_TEXT,
		.offset = offsetof(struct values, file_prefix),
		.help = "eal.file_prefix of the instance; default bufscope"},
	{.name = "socket",
		.argument = "PATH",
		.kind = BS_OPTION_TEXT,
		.offset = offsetof(struct values, socket),
		.help = "its control socket"},
	{.name = "json",
		.kind = BS_OPTION_FLAG,
		.offset = offsetof(struct values, json),
		.help = "the answer as a JSON object"},
	{.name = "wait",
		.kind = BS_OPTION_FLAG,
		.offset = offsetof(struct values, wait),
		.help = "wait up to 30 s for the instance to appear"},
	{.name = "offset",
		.argument = "N",
		.kind = BS_OPTION_TEXT,
		.offset = offsetof(struct values, offset),
		.help = "leave out the first N"},
};
/* Without the last. */
#define COMMON_COUNT (sizeof(list_options) / sizeof(list_options[0]) - 1)

struct live_command {
	struct bs_command command;
	const char *asked; /* of bufscoped; NULL: top */
	screen_draw *draw;
};

/* name, pages, operands, summary (one line), what is asked, screen. */
#define LIVE_COMMANDS(X)                                                                           \
	X("top", 0, "", "services and newest anomalies; anew each second on a terminal", NULL,     \
		screen_top)                                                                        \
	X("anomalies", 1, "", "the newest anomalous RPCs and what made each slow",                 \
		"/bufscope/anomalies", screen_anomalies)                                           \
	X("incidents", 1, "", "the newest incidents: an origin, its victims, what to do",          \
		"/bufscope/incidents", screen_incidents)                                           \
	X("explain", 0, "RPC-ID", "where the time of an anomalous RPC went", "/bufscope/rpc",      \
		screen_rpc)                                                                        \
	X("chain", 1, "", "the buffers that packets cross: fill, drops, waits", "/bufscope/chain", \
		screen_chain)                                                                      \
	X("services", 1, "", "RPCs of each service", "/bufscope/services", screen_services)        \
	X("offload", 1, "", "what the NICs do for each port, or why nothing", "/bufscope/offload", \
		screen_offload)                                                                    \
	X("counters", 0, "", "packets, drops, shims and records by reason", "/bufscope/counters",  \
		screen_counters)                                                                   \
	X("lcores", 1, "", "what each lcore spends its time on", "/bufscope/lcores",               \
		screen_lcores)                                                                     \
	X("status", 0, "", "whether bufscoped is well, and what to do if not", "/bufscope/status", \
		screen_status)

#define X_COMMAND(name_text, pages, operands_text, summary_text, asked, screen)                    \
	{{"bufscope " name_text, operands_text, summary_text, list_options,                        \
		 COMMON_COUNT + (pages)},                                                          \
		asked, screen},

static const struct live_command commands[] = {LIVE_COMMANDS(X_COMMAND)};

static const struct live_command *
find_command(const char *name)
{
	const struct live_command *found = commands;

	while (strcmp(found->command.name + strlen("bufscope "), name) != 0)
		found++;
	return found;
}

/* The three answers of top, and how fast packets came since `before` (may be NULL). */
static json_t *
ask_top(int fd, const json_t *before, char error[CONNECT_ERROR_BYTES])
{
	json_t *status = connect_ask(fd, "/bufscope/status", NULL, error);
	json_t *services = status ? connect_ask(fd, "/bufscope/services", NULL, error) : NULL;
	json_t *anomalies = services ? connect_ask(fd, "/bufscope/anomalies", NULL, error) : NULL;
	const json_t *old = json_object_get(before, "status");
	json_t *top;
	json_int_t ns = json_integer_value(json_object_get(status, "uptime_ns")) -
			json_integer_value(json_object_get(old, "uptime_ns"));
	json_int_t packets = json_integer_value(json_object_get(status, "rx_packets")) -
			     json_integer_value(json_object_get(old, "rx_packets"));

	if (anomalies == NULL) {
		json_decref(status);
		json_decref(services);
		return NULL;
	}
	top = json_pack(
		"{s:o, s:o, s:o}", "status", status, "services", services, "anomalies", anomalies);
	if (before != NULL && ns > 0)
		json_object_set_new(top, "rx_per_s",
			json_integer((json_int_t)((double)packets * 1e9 / (double)ns)));
	return top;
}

static json_t *
ask(int fd, const struct live_command *command, const char *params, const json_t *before,
	char error[CONNECT_ERROR_BYTES])
{
	if (command->asked == NULL)
		return ask_top(fd, before, error);
	return connect_ask(fd, command->asked, params, error);
}

static void
show(const struct live_command *command, const struct values *values, const json_t *result)
{
	struct bs_report_text options;

	bs_terminal(STDOUT_FILENO, &options);
	if (values->json) {
		json_dumpf(result, stdout, JSON_INDENT(2));
		putchar('\n');
	} else {
		command->draw(stdout, result, &options);
	}
}

static int
fail(const struct live_command *command, const char *error)
{
	fprintf(stderr, "%s: %s\n", command->command.name, error);
	return BS_EXIT_FAILED;
}

/* Asks once, or for top on a terminal until the instance ends or the user does. */
static int
run_command(const struct live_command *command, const struct values *values, const char *params)
{
	const struct connect_target target = {values->socket, values->file_prefix, values->wait};
	bool again = command->asked == NULL && !values->json && isatty(STDOUT_FILENO) == 1;
	char error[CONNECT_ERROR_BYTES] = "out of memory";
	json_t *result = NULL;
	int fd = connect_open(&target, error);

	if (fd < 0)
		return fail(command, error);
	do {
		json_t *next = ask(fd, command, params, result, error);

		json_decref(result);
		result = next;
		if (result == NULL)
			break;
		if (again)
			fputs("\033[H\033[J", stdout);
		show(command, values, result);
		fflush(stdout);
		if (again)
			poll(NULL, 0, REFRESH_MS);
	} while (again);
	close(fd);
	json_decref(result);
	if (result == NULL)
		return fail(command, error);
	return ferror(stdout) ? fail(command, strerror(errno)) : BS_EXIT_DONE;
}

static int
run(int argc, char **argv)
{
	const struct live_command *command = find_command(argv[0]);
	struct values values = {.file_prefix = "bufscope"};
	int expected = command->command.operands[0] != '\0' ? 1 : 0;
	int operands = bs_options_read(&command->command, argc, argv, &values, stdout, stderr);

	if (operands < 0)
		return operands == -2 ? BS_EXIT_DONE : BS_EXIT_USAGE;
	if (operands != expected) {
		fprintf(stderr, "%s: takes %s (see %s --help)\n", command->command.name,
			expected == 1 ? "one RPC-ID" : "no operands", command->command.name);
		return BS_EXIT_USAGE;
	}
	return run_command(command, &values, expected == 1 ? argv[1] : values.offset);
}

#define X_PROGRAM(name, pages, operands, summary, asked, screen) {name, summary, run},

const struct bs_program bs_live_programs[] = {LIVE_COMMANDS(X_PROGRAM){NULL, NULL, NULL}};
