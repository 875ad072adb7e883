/* SPDX-License-Identifier: BSD-3-Clause */
/* `bufscope replay`: its options, where its output goes, and its exit status. */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bs_clock.h"
#include "options.h"
#include "output.h"
#include "replay.h"
#include "terminal.h"

#define TEMPORARY_SUFFIX ".XXXXXX"

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
	static const char *const formats[] = {
		[OUTPUT_TEXT] = "text",
		[OUTPUT_JSON] = "json",
		[OUTPUT_JSONL] = "jsonl",
	};
	struct values *values = context;

	for (unsigned i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (strcmp(text, formats[i]) == 0) {
			values->output.format = (enum output_format)i;
			return 0;
		}
	snprintf(error, BS_OPTION_ERROR_BYTES, "\"%s\" is none of text, json, jsonl", text);
	return -EINVAL;
}

static int
take_slo(void *context, const char *text, char error[BS_OPTION_ERROR_BYTES])
{
	struct replay_settings *settings = &((struct values *)context)->settings;
	const char *equals = strrchr(text, '=');
	const char *duration = equals != NULL ? equals + 1 : text;
	unsigned n = settings->slo_count;

	if (n == REPLAY_SLOS) {
		snprintf(error, BS_OPTION_ERROR_BYTES, "at most %u of them", REPLAY_SLOS);
		return -EINVAL;
	}
	if (equals == text || bs_duration_parse(duration, &settings->slos[n].slo_ns) != 0 ||
		settings->slos[n].slo_ns == 0) {
		snprintf(error, BS_OPTION_ERROR_BYTES,
			"\"%s\" is not [SERVICE=]DURATION, as 5ms or kv=1.5s", text);
		return -EINVAL;
	}
	settings->slos[n].service = text;
	settings->slos[n].length = equals != NULL ? (size_t)(equals - text) : 0;
	settings->slo_count++;
	return 0;
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

/* An output file appears under its name when it is complete; until then it has another. */
struct target {
	FILE *stream;
	const char *path;
	char *temporary; /* NULL: path is written to itself */
};

static int
target_open(struct target *target, const char *path)
{
	struct stat status;
	mode_t mask;
	int fd;

	memset(target, 0, sizeof(*target));
	target->path = path;
	if (path == NULL) {
		target->stream = stdout;
		return 0;
	}
	if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
		target->stream = fopen(path, "w");
		return target->stream != NULL ? 0 : -errno;
	}
	if (asprintf(&target->temporary, "%s" TEMPORARY_SUFFIX, path) < 0) {
		target->temporary = NULL;
		return -ENOMEM;
	}
	fd = mkstemp(target->temporary);
	if (fd < 0)
		return -errno;
	target->stream = fdopen(fd, "w");
	if (target->stream == NULL) {
		int error = -errno;

		close(fd);
		unlink(target->temporary);
		return error;
	}
	mask = umask(0);
	umask(mask);
	return fchmod(fd, 0666 & ~mask) == 0 ? 0 : -errno;
}

/* Puts the file in place if all went well until now, else removes it. 0 or -errno. */
static int
target_close(struct target *target, int result)
{
	if (target->path != NULL && target->stream != NULL && fclose(target->stream) != 0 &&
		result == 0)
		result = -errno;
	if (target->temporary != NULL && target->stream != NULL) {
		if (result == 0 && rename(target->temporary, target->path) != 0)
			result = -errno;
		if (result != 0)
			unlink(target->temporary);
	}
	free(target->temporary);
	return result;
}

static void
show_progress(void *context, const char *path, uint64_t done, uint64_t total)
{
	bs_report_progress(stderr, path, done, total, context);
}

static int
write_output(struct values *values, const struct replay *replay)
{
	struct target target;
	char error[REPLAY_ERROR_BYTES];
	int result = target_open(&target, values->path);

	if (result == 0)
		result = output_write(target.stream, replay, &values->output);
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
	if (status == BS_EXIT_DONE && values->fail_on_anomaly && replay->anomalies > 0)
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
