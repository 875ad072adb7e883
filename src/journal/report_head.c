/* SPDX-License-Identifier: BSD-3-Clause */
#include "report_head.h"

#include <inttypes.h>
#include <string.h>

#include "bs_clock.h"
#include "instant.h"
#include "output.h"

static json_t *
number(uint64_t value)
{
	return value <= INT64_MAX ? json_integer((json_int_t)value) : json_null();
}

static json_t *
damages_json(const struct input *input)
{
	json_t *damages = json_array();

	for (unsigned i = 0; i < INPUT_DAMAGES && i < input->damage_count; i++) {
		const struct input_damage *damage = &input->damages[i];

		json_array_append_new(
			damages, json_pack("{s:o, s:o, s:s}", "offset", number(damage->offset),
					 "bytes", number(damage->bytes), "what", damage->what));
	}
	return damages;
}

static json_t *
input_json(const struct input *input)
{
	return json_pack("{s:o, s:n, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"path", output_text(input->path), "vantage", "bytes", number(input->file_bytes),
		"node", input->has_file ? number(input->file.node) : json_null(), "journal",
		input->has_file ? json_sprintf("%" PRIu64, input->file.journal) : json_null(),
		"file", input->has_file ? number(input->file.file) : json_null(), "blocks",
		number(input->blocks), "repeated_blocks", number(input->repeated), "records",
		number(input->records), "t_first", output_instant(input->t_first), "t_last",
		output_instant(input->t_last), "damages", number(input->damage_count),
		"skipped_bytes", number(input->skipped_bytes), "damaged", damages_json(input));
}

#define X_KEY(field, key, help) key,
#define X_VALUE(field, key, help) report->counters.field,

json_t *
report_head_json(const struct report *report)
{
	static const char *const keys[] = {REPORT_COUNTERS(X_KEY)};
	const uint64_t values[] = {REPORT_COUNTERS(X_VALUE)};
	json_t *inputs = json_array(), *counters = json_object();

	for (unsigned i = 0; i < report->inputs.count; i++)
		json_array_append_new(inputs, input_json(&report->inputs.list[i]));
	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		json_object_set_new(counters, keys[i], number(values[i]));
	return json_pack("{s:o, s:n, s:o}", "inputs", inputs, "clock", "counters", counters);
}

static void
text_input(FILE *out, const struct input *input)
{
	char path[1024], first[INSTANT_TEXT_BYTES], last[INSTANT_TEXT_BYTES];
	char duration[BS_DURATION_TEXT_BYTES];

	bs_report_escape(input->path, strlen(input->path), path, sizeof(path));
	if (input->file_bytes == 0) {
		fprintf(out, "%s: empty\n", path);
		return;
	}
	fprintf(out, "%s: %" PRIu64 " blocks, %" PRIu64 " records", path, input->blocks,
		input->records);
	if (input->t_last != 0)
		fprintf(out, ", %s to %s (%s)", instant_text(input->t_first, first),
			instant_text(input->t_last, last),
			bs_duration_text(input->t_last - input->t_first, duration));
	if (input->repeated > 0)
		fprintf(out, "; %" PRIu64 " blocks are in another file, too", input->repeated);
	fputc('\n', out);
	if (input->damage_count > 0)
		fprintf(out, "  damaged: %" PRIu64 " bytes in %" PRIu64 " places skipped\n",
			input->skipped_bytes, input->damage_count);
}

void
report_head_text(FILE *out, const void *context)
{
	const struct report *report = context;
	uint64_t unsent = report->counters.ring_full + report->counters.over_budget +
			  report->counters.socket_full;

	for (unsigned i = 0; i < report->inputs.count; i++)
		text_input(out, &report->inputs.list[i]);
	if (report->counters.missing_blocks > 0)
		fprintf(out, "missing: %" PRIu64 " blocks between those that are there\n",
			report->counters.missing_blocks);
	if (report->counters.unwritten_records > 0)
		fprintf(out, "lost: %" PRIu64 " records were not written (disk full or slow)\n",
			report->counters.unwritten_records);
	if (unsent > 0)
		fprintf(out,
			"lost: %" PRIu64 " records did not reach the analyzer (%" PRIu64
			" over records.per_second): counts of RPCs are too low\n",
			unsent, report->counters.over_budget);
	if (report->counters.brief_over_slo > 0)
		fprintf(out,
			"over --slo: %" PRIu64 " RPCs more, of which only a summary was kept\n",
			report->counters.brief_over_slo);
}
