/* SPDX-License-Identifier: BSD-3-Clause */
/* `bufscope report`: its options, warnings and exit status. */
#include "report_command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bs_clock.h"
#include "instant.h"
#include "options.h"
#include "output.h"
#include "report.h"
#include "report_head.h"
#include "target.h"
#include "terminal.h"

#define WARNINGS 5u /* of damage, a file */

struct values {
	struct report_settings settings;
	struct output_options output;
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
take_instant(const char *text, uint64_t *t, char error[BS_OPTION_ERROR_BYTES])
{
	uint64_t now_ns = (uint64_t)time(NULL) * BS_NS_PER_S;

	if (instant_parse(text, now_ns, t) == 0 && *t != 0)
		return 0;
	snprintf(error, BS_OPTION_ERROR_BYTES,
		"\"%s\" is no time, as \"2026-12-01 13:45:06\" (UTC with Z), 13:45, or ns since "
		"1970",
		text);
	return -EINVAL;
}

static int
take_since(void *context, const char *text, char error[BS_OPTION_ERROR_BYTES])
{
	return take_instant(text, &((struct values *)context)->settings.since, error);
}

static int
take_until(void *context, const char *text, char error[BS_OPTION_ERROR_BYTES])
{
	return take_instant(text, &((struct values *)context)->settings.until, error);
}

static int
take_last(void *context, const char *text, char error[BS_OPTION_ERROR_BYTES])
{
	uint64_t *last_ns = &((struct values *)context)->settings.last_ns;

	if (bs_duration_parse(text, last_ns) == 0 && *last_ns != 0)
		return 0;
	snprintf(error, BS_OPTION_ERROR_BYTES, "\"%s\" is no duration, as 10m or 90s", text);
	return -EINVAL;
}

static const struct bs_option options[] = {
	{"format", 'f', "FORMAT",
		"text (default), json (one object), or jsonl (one RPC a\n"
		"line, all that were told in full).",
		BS_OPTION_TAKE, 0, take_format},
	{"since", 0, "TIME",
		"Only RPCs that ended since then: \"2026-12-01 13:45:06\"\n"
		"(local time, UTC with Z), 13:45 (today), or ns since 1970.",
		BS_OPTION_TAKE, 0, take_since},
	{"until", 0, "TIME", "Only RPCs that ended until then.", BS_OPTION_TAKE, 0, take_until},
	{"last", 0, "DURATION", "Only those of this time before the newest record, as 10m.",
		BS_OPTION_TAKE, 0, take_last},
	{"slo", 's', "[SERVICE=]DURATION",
		"RPCs that took longer are anomalous, too; for all services\n"
		"or one. May be repeated.",
		BS_OPTION_TAKE, 0, take_slo},
	{"all", 'a', NULL, "Every RPC told in full, not only the anomalous and slowest.",
		BS_OPTION_FLAG, offsetof(struct values, output.all), NULL},
	{"output", 'o', "FILE", "Where to write; standard output otherwise.", BS_OPTION_TEXT,
		offsetof(struct values, path), NULL},
	{"fail-on-anomaly", 0, NULL, "Exit with status 3 if an RPC was anomalous.", BS_OPTION_FLAG,
		offsetof(struct values, fail_on_anomaly), NULL},
};

static const struct bs_command command = {
	.name = "bufscope report",
	.operands = "FILE...",
	.summary =
		"Says from journals what replay says from captures: the slow RPCs, with the\n"
		"verdicts that were given live, services and incidents. FILE is one file of a\n"
		"journal, or what its files have before the last dot (analyzer.journal): then all\n"
		"of them. What is damaged is skipped and told.\n"
		"\n"
		"Exit status: 0 done, also if a part could not be read; 1 failed, or nothing\n"
		"could be read; 2 wrong usage; 3 see --fail-on-anomaly.",
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

static void
warn(void *context, const struct input *input, uint64_t offset, uint64_t bytes, const char *what)
{
	const struct values *values = context;

	if (input->damage_count > WARNINGS + 1)
		return;
	if (values->settings.progress != NULL)
		show_progress(values->settings.progress_context, "", 1, 1);
	if (input->damage_count > WARNINGS)
		fprintf(stderr, "%s: %s: more damage, see \"damages\" of --format json\n",
			command.name, input->path);
	else
		fprintf(stderr, "%s: %s: offset %" PRIu64 ": %s, %" PRIu64 " bytes skipped\n",
			command.name, input->path, offset, what, bytes);
}

static int
write_output(struct values *values, const struct report *report)
{
	const struct output output = {
		.findings = &report->findings,
		.head = report_head_json(report),
		.no_rpc = report->counters.outside > 0
				  ? "no RPC in this time: see --since, --until, --last\n"
				  : "no RPC in the journal\n",
		.head_text = report_head_text,
		.context = report,
	};
	struct target target;
	char error[REPORT_ERROR_BYTES];
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

/* Nothing that could be read, although there was something? */
static bool
is_unreadable(const struct report *report)
{
	uint64_t files = 0;

	for (unsigned i = 0; i < report->inputs.count; i++)
		files += report->inputs.list[i].has_file;
	return files == 0 && report->counters.blocks == 0 &&
	       (report->counters.damages > 0 || report->inputs.failed > 0);
}

static int
read_all(struct values *values, struct report *report, struct bs_journal_reader *reader)
{
	const struct report_settings *settings = &values->settings;
	char error[REPORT_ERROR_BYTES] = "";
	const char *missing;
	uint64_t newest;
	int result, length;

	if (settings->last_ns != 0) {
		newest = report_newest(report, reader);
		if (newest > settings->last_ns)
			values->settings.since = newest - settings->last_ns;
	}
	result = report_read(report, reader, error);
	if (settings->progress != NULL)
		settings->progress(settings->progress_context, "", 1, 1);
	if (result != 0)
		return failed(error);
	if (is_unreadable(report))
		return failed("nothing could be read");
	missing = slo_not_found(&settings->slos, &length);
	if (missing == NULL)
		return BS_EXIT_DONE;
	snprintf(error, sizeof(error),
		"--slo: no service \"%.*s\" in the journal: without --slo, the services are "
		"listed by name",
		length, missing);
	return failed(error);
}

static int
run(struct values *values, const char *const *paths, unsigned count)
{
	struct bs_journal_reader *reader = bs_journal_reader_create();
	struct report *report = calloc(1, sizeof(*report));
	struct bs_report_text progress;
	int status = BS_EXIT_FAILED;

	bs_terminal(STDERR_FILENO, &progress);
	if (isatty(STDERR_FILENO) == 1) {
		values->settings.progress = show_progress;
		values->settings.progress_context = &progress;
	}
	values->settings.damage = warn;
	values->settings.damage_context = values;
	if (reader == NULL || report == NULL ||
		inputs_open(&report->inputs, paths, count, command.name, stderr) != 0) {
		failed(strerror(ENOMEM));
	} else {
		report->settings = &values->settings;
		inputs_sort(&report->inputs, reader);
		status = read_all(values, report, reader);
		if (status == BS_EXIT_DONE)
			status = write_output(values, report);
		if (status == BS_EXIT_DONE && values->fail_on_anomaly &&
			report->findings.anomalies > 0)
			status = BS_EXIT_ANOMALY;
	}
	if (report != NULL)
		report_fini(report);
	free(report);
	bs_journal_reader_destroy(reader);
	return status;
}

int
report_command(int argc, char **argv)
{
	struct values values = {.path = NULL};
	int count = bs_options_read(&command, argc, argv, &values, stdout, stderr);

	if (count == -2)
		return BS_EXIT_DONE;
	if (count > 0 && values.settings.last_ns != 0 && values.settings.since != 0) {
		fprintf(stderr, "%s: --last and --since exclude each other (see %s --help)\n",
			command.name, command.name);
		return BS_EXIT_USAGE;
	}
	if (count <= 0) {
		if (count == 0)
			fprintf(stderr, "%s: no journal given (see %s --help)\n", command.name,
				command.name);
		return BS_EXIT_USAGE;
	}
	bs_terminal(STDOUT_FILENO, &values.output.text);
	values.output.text.color = values.output.text.color && values.path == NULL;
	return run(&values, (const char *const *)&argv[1], (unsigned)count);
}
