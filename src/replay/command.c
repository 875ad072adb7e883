/* SPDX-License-Identifier: BSD-3-Clause */
/* `bufscope replay`: its options, where its output goes, and its exit status. */
#include "command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bs_clock.h"
#include "head.h"
#include "options.h"
#include "output.h"
#include "replay.h"
#include "target.h"
#include "terminal.h"

struct values {
	struct replay_settings settings;
	struct output_options output;
	const char *config;
	const char *path; /* -o; NULL: standard output */
	bool fail_on_anomaly;
};

static int
take_format(void *context, const char *text, char error[BS_OPTION_ERROR_BYTES])
{
	return output_take_format(&((struct values *)context)->output, text, error);
}

static int
take_slo(void *context, const char *text, char error[BS_OPTION_ERROR_BYTES])
{
	return slo_take(&((struct values *)context)->settings.slos, text, error);
}

static int
take_port(void *context, const char *text, char error[BS_OPTION_ERROR_BYTES])
{
	struct replay_settings *settings = &((struct values *)context)->settings;
	const char *equals = strchr(text, '=');
	unsigned n = settings->port_count;
	char *end;
	long port;

	if (n == REPLAY_PORTS) {
		snprintf(error, BS_OPTION_ERROR_BYTES, "at most %u of them", REPLAY_PORTS);
		return -EINVAL;
	}
	port = equals != NULL && equals[1] >= '0' && equals[1] <= '9' ? strtol(equals + 1, &end, 10)
								      : 0;
	if (equals == text || port < 1 || port > UINT16_MAX || *end != '\0') {
		snprintf(error, BS_OPTION_ERROR_BYTES,
			"\"%s\" is not PROTO=PORT, with PORT 1 to 65535", text);
		return -EINVAL;
	}
	settings->ports[n].protocol = text;
	settings->ports[n].length = (size_t)(equals - text);
	settings->ports[n].port = (uint16_t)port;
	settings->port_count++;
	return 0;
}

static const struct bs_option options[] = {
	{"format", 'f', "FORMAT",
		"text (default), json (one object), or jsonl (one RPC a\n"
		"line, all of them).",
		BS_OPTION_TAKE, 0, take_format},
	{"slo", 's', "[SERVICE=]DURATION",
		"RPCs that take longer are anomalous; for all services or\n"
		"one. May be repeated.",
		BS_OPTION_TAKE, 0, take_slo},
	{"port", 'p', "PROTO=PORT",
		"What servers on PORT speak, as resp=7000; without it, it is\n"
		"guessed. May be repeated.",
		BS_OPTION_TAKE, 0, take_port},
	{"config", 'c', "FILE",
		"A configuration of bufscoped: its services, framing and\n"
		"thresholds are used.",
		BS_OPTION_TEXT, offsetof(struct values, config), NULL},
	{"all", 'a', NULL, "Every RPC, not only the anomalous and the slowest.", BS_OPTION_FLAG,
		offsetof(struct values, output.all), NULL},
	{"output", 'o', "FILE", "Where to write; standard output otherwise.", BS_OPTION_TEXT,
		offsetof(struct values, path), NULL},
	{"fail-on-anomaly", 0, NULL, "Exit with status 3 if an RPC was anomalous.", BS_OPTION_FLAG,
		offsetof(struct values, fail_on_anomaly), NULL},
};

static const struct bs_command command = {
	.name = "bufscope replay",
	.operands = "FILE...",
	.summary =
		"Finds the slow RPCs in captures (pcap, pcapng, gzip; - is standard input), and\n"
		"says which buffer made each slow and why. Several files are read as one, in\n"
		"order of time; packets are then numbered across them.\n"
		"\n"
		"Exit status: 0 done, 1 failed, 2 wrong usage, 3 see --fail-on-anomaly.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
};

static int
failed(const char *error)
{
	fprintf(stderr, "%s: %s\n", command.name, error);
	return BS_EXIT_FAILED;
}

static void
show_progress(void *context, const char *path, uint64_t done, uint64_t total)
{
	bs_report_progress(stderr, path, done, total, context);
}

static int
write_output(struct values *values, const struct replay *replay)
{
	const struct output output = {
		.findings = &replay->findings,
		.head = head_json(replay),
		.no_rpc = "no RPC found: --port PROTO=PORT names the protocol of a port\n",
		.head_text = head_text,
		.context = replay,
	};
	struct target target;
	char error[REPLAY_ERROR_BYTES];
	int result = target_open(&target, values->path);

	if (result == 0)
		result = output.head == NULL
				 ? -ENOMEM
				 : output_write(target.stream, &output, &values->output);
	json_decref((json_t *)output.head);
	result = target_close(&target, result);
	if (result == 0)
		return BS_EXIT_DONE;
	snprintf(error, sizeof(error), "cannot write %s: %s",
		values->path != NULL ? values->path : "standard output", strerror(-result));
	return failed(error);
}

static int
run(struct values *values)
{
	char error[REPLAY_ERROR_BYTES] = "";
	struct bs_report_text progress;
	struct replay *replay = calloc(1, sizeof(*replay));
	int status = BS_EXIT_FAILED;
	int result;

	if (replay == NULL)
		return failed(strerror(ENOMEM));
	bs_terminal(STDERR_FILENO, &progress);
	if (isatty(STDERR_FILENO) == 1) {
		values->settings.progress = show_progress;
		values->settings.progress_context = &progress;
	}
	result = replay_init(replay, &values->settings, error);
	if (result == 0)
		result = replay_read(replay, error);
	if (values->settings.progress != NULL)
		bs_report_progress(stderr, "", 1, 1, &progress);
	if (result == 0)
		result = replay_judge(replay, error);
	if (result != 0)
		failed(error);
	else
		status = write_output(values, replay);
	if (status == BS_EXIT_DONE && values->fail_on_anomaly && replay->findings.anomalies > 0)
		status = BS_EXIT_ANOMALY;
	replay_fini(replay);
	free(replay);
	return status;
}

int
replay_command(int argc, char **argv)
{
	struct values values = {.config = NULL};
	struct bs_config *config = NULL;
	char error[BS_CONFIG_ERROR_BYTES];
	int count = bs_options_read(&command, argc, argv, &values, stdout, stderr);
	int status;

	if (count == -2)
		return BS_EXIT_DONE;
	if (count <= 0) {
		if (count == 0)
			fprintf(stderr, "%s: no capture given (see %s --help)\n", command.name,
				command.name);
		return BS_EXIT_USAGE;
	}
	if (values.config != NULL) {
		config = calloc(1, sizeof(*config));
		if (config == NULL)
			return failed(strerror(ENOMEM));
		if (bs_config_load(values.config, config, error) != 0) {
			free(config);
			return failed(error);
		}
	}
	bs_terminal(STDOUT_FILENO, &values.output.text);
	values.output.text.color = values.output.text.color && values.path == NULL;
	values.settings.config = config;
	values.settings.paths = (const char *const *)&argv[1];
	values.settings.path_count = (unsigned)count;
	status = run(&values);
	free(config);
	return status;
}
