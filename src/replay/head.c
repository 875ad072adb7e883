/* SPDX-License-Identifier: BSD-3-Clause */
#include "head.h"

#include <inttypes.h>
#include <string.h>

#include "bs_clock.h"
#include "output.h"

static json_t *
input_json(const struct replay_input *input)
{
	const struct bs_capture_info *info = &input->info;
	json_t *cut = info->truncated_at_packet != 0
			      ? json_integer((json_int_t)info->truncated_at_packet)
			      : json_null();
	json_t *error = input->error[0] != '\0' ? output_text(input->error) : json_null();

	return json_pack("{s:o, s:n, s:I, s:I, s:o, s:[s], s:o, s:o, s:I, s:o}", "path",
		output_text(input->path), "vantage", "packets", (json_int_t)info->packets, "bytes",
		(json_int_t)info->bytes, "truncated_at_packet", cut, "link_types", info->link_type,
		"t_first", output_instant(info->t_first), "t_last", output_instant(info->t_last),
		"backwards", (json_int_t)input->backwards, "error", error);
}

static json_t *
counters_json(const struct replay *replay)
{
	json_t *counters = json_object();

	for (unsigned i = 0; i < BS_PARSE_COUNT; i++)
		json_object_set_new(
			counters, bs_parse_key(i), json_integer((json_int_t)replay->parses[i]));
	json_object_set_new(
		counters, "not_followed", json_integer((json_int_t)replay->not_followed));
	return counters;
}

static json_t *
tracking_json(const struct replay *replay)
{
	const uint64_t *counts = bs_tracker_counters(replay->tracker);
	json_t *tracking = json_object();

	for (unsigned i = 0; i < BS_TRACK_COUNT; i++)
		json_object_set_new(
			tracking, bs_track_counter_key(i), json_integer((json_int_t)counts[i]));
	json_object_set_new(tracking, "bad_records", json_integer((json_int_t)replay->bad_records));
	return tracking;
}

json_t *
head_json(const struct replay *replay)
{
	json_t *inputs = json_array();

	for (unsigned i = 0; i < replay->input_count; i++)
		json_array_append_new(inputs, input_json(&replay->inputs[i]));
	return json_pack("{s:o, s:n, s:o, s:o}", "inputs", inputs, "clock", "counters",
		counters_json(replay), "tracking", tracking_json(replay));
}

static void
text_input(FILE *out, const struct replay_input *input)
{
	const struct bs_capture_info *info = &input->info;
	char duration[BS_DURATION_TEXT_BYTES];
	char text[1024];

	bs_report_escape(input->path, strlen(input->path), text, sizeof(text));
	fprintf(out, "%s: %" PRIu64 " packets, %" PRIu64 " bytes, %s, %s\n", text, info->packets,
		info->bytes, bs_duration_text(info->t_last - info->t_first, duration),
		info->link_type);
	bs_report_escape(input->error, strlen(input->error), text, sizeof(text));
	if (text[0] != '\0')
		fprintf(out, "  ends early: %s\n", text);
	if (input->backwards > 0)
		fprintf(out, "  time went backwards %" PRIu64 " times\n", input->backwards);
}

void
head_text(FILE *out, const void *context)
{
	const struct replay *replay = context;

	for (unsigned i = 0; i < replay->input_count; i++)
		text_input(out, &replay->inputs[i]);
}
