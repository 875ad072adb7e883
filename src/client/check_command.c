/* SPDX-License-Identifier: BSD-3-Clause */
/* `bufscope check`: is a configuration right, and what does it make? */
#include "check_command.h"

#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "plan.h"

struct values {
	bool json;
};

static const struct bs_option options[] = {
	{.name = "json",
		.kind = BS_OPTION_FLAG,
		.offset = offsetof(struct values, json),
		.help = "what it makes as a JSON object"},
};

static const struct bs_command command = {
	.name = "bufscope check",
	.operands = "FILE",
	.summary =
		"Says whether a configuration is right, with file, line and key where it is not,\n"
		"and what bufscoped would build from it here: CPUs, memory, ports, services, "
		"buffers.\n"
		"Whether devices exist and memory is there shows only when it starts.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
};

static int
check(const char *path, bool as_json)
{
	struct bs_config *config = malloc(sizeof(*config));
	char error[BS_CONFIG_ERROR_BYTES];
	struct bs_topology topology;
	struct bs_placement placement;
	json_t *plan;
	int ret;

	if (config == NULL || bs_config_load(path, config, error) != 0) {
		fprintf(stderr, "bufscope check: %s\n", config == NULL ? "out of memory" : error);
		free(config);
		return BS_EXIT_FAILED;
	}
	ret = bs_topology_read(config, &topology);
	if (ret != 0) {
		fprintf(stderr, "bufscope check: no CPUs can be read: %s\n", strerror(-ret));
		free(config);
		return BS_EXIT_FAILED;
	}
	bs_placement_make(config, &topology, &placement);
	plan = bs_plan_json(config, &placement);
	if (as_json) {
		json_dumpf(plan, stdout, JSON_INDENT(1));
		fputc('\n', stdout);
	} else {
		bs_plan_print(plan, stdout);
	}
	json_decref(plan);
	free(config);
	return BS_EXIT_DONE;
}

int
check_command(int argc, char **argv)
{
	struct values values = {0};
	int operands = bs_options_read(&command, argc, argv, &values, stdout, stderr);

	if (operands == -2)
		return BS_EXIT_DONE;
	if (operands == 1)
		return check(argv[1], values.json);
	if (operands >= 0)
		fprintf(stderr,
			"bufscope check: which configuration? (see bufscope check --help)\n");
	return BS_EXIT_USAGE;
}
