/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The result of a replay as JSON, written piece by piece so that a capture with
 * millions of RPCs needs no tree of them, and as text.
 */
#include "output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bs_clock.h"

#define SLOWEST 10u
#define TABLE_ROWS 20u
#define EXPLAINED 3u

/* Where output goes; the first error sticks. */
struct writer {
	FILE *out;
	const struct replay *replay;
	int error;
};

static json_t *
rpc_json(const struct replay *replay, const struct group *group)
{
	struct bs_rpc_view view = group_view(group);

	return bs_report_rpc_json(&replay->names, &view, &group->verdict);
}

/* Writes and gives up a value; NULL: there was no memory for it. */
static void
write_json(struct writer *w, json_t *json)
{
	if (json == NULL)
		w->error = w->error != 0 ? w->error : -ENOMEM;
	else if (json_dumpf(json, w->out,
			 JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(6)) != 0)
		w->error = w->error != 0 ? w->error : -EIO;
	json_decref(json);
}

/* The groups that a list shows; its array is to be freed. */
struct selection {
	const struct group **groups;
	size_t count;
};

static int
select_anomalies(const struct replay *replay, struct selection *s)
{
	s->count = 0;
	s->groups = malloc((replay->anomalies + 1) * sizeof(s->groups[0]));
	if (s->groups == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < replay->groups.count; i++)
		if (replay->groups.list[i].verdict.anomalous_by != 0)
			s->groups[s->count++] = &replay->groups.list[i];
	return 0;
}

static uint64_t
latency_of(const struct group *group)
{
	uint64_t latency;

	bs_rpc_latency_ns(group->rpc, &latency);
	return latency;
}

/* The answered ones that took longest, longest first; equal ones in order of time. */
static int
select_slowest(const struct replay *replay, struct selection *s)
{
	s->count = 0;
	s->groups = calloc(SLOWEST + 1, sizeof(s->groups[0]));
	if (s->groups == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < replay->groups.count; i++) {
		const struct group *group = &replay->groups.list[i];
		uint64_t latency = latency_of(group);
		size_t at = s->count;

		if (group->rpc->outcome != BS_OUTCOME_ANSWERED)
			continue;
		for (; at > 0 && latency_of(s->groups[at - 1]) < latency; at--)
			s->groups[at] = s->groups[at - 1];
		s->groups[at] = group;
		if (s->count < SLOWEST)
			s->count++;
	}
	return 0;
}

static void
write_selection(struct writer *w, const char *key, int failed, struct selection *s)
{
	if (failed != 0) {
		w->error = failed;
		return;
	}
	fprintf(w->out, ",\n\"%s\":[", key);
	for (size_t i = 0; i < s->count && w->error == 0; i++) {
		fputs(i > 0 ? ",\n " : "\n ", w->out);
		write_json(w, rpc_json(w->replay, s->groups[i]));
	}
	fputs("]", w->out);
	free(s->groups);
}

static json_t *
instant(uint64_t t)
{
	return t != 0 ? json_sprintf("%" PRIu64, t) : json_null();
}

/* Paths and messages may hold any bytes. */
static json_t *
clean(const char *text)
{
	char out[1024];

	return json_stringn(out, bs_report_escape(text, strlen(text), out, sizeof(out)));
}

static json_t *
input_json(const struct replay_input *input)
{
	const struct bs_capture_info *info = &input->info;
	json_t *cut = info->truncated_at_packet != 0
			      ? json_integer((json_int_t)info->truncated_at_packet)
			      : json_null();
	json_t *error = input->error[0] != '\0' ? clean(input->error) : json_null();

	return json_pack("{s:o, s:n, s:I, s:I, s:o, s:[s], s:o, s:o, s:I, s:o}", "path",
		clean(input->path), "vantage", "packets", (json_int_t)info->packets, "bytes",
		(json_int_t)info->bytes, "truncated_at_packet", cut, "link_types", info->link_type,
		"t_first", instant(info->t_first), "t_last", instant(info->t_last), "backwards",
		(json_int_t)input->backwards, "error", error);
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

static struct bs_report_quantiles
quantiles(const struct bs_histo *histo)
{
	return (struct bs_report_quantiles){
		.count = histo->count,
		.min = histo->min,
		.p50 = bs_histo_quantile(histo, 0.5),
		.p90 = bs_histo_quantile(histo, 0.9),
		.p99 = bs_histo_quantile(histo, 0.99),
		.max = histo->max,
	};
}

static json_t *
service_json(const struct replay *replay, unsigned number)
{
	const struct replay_service *s = replay->services[number];
	const uint64_t *n = s->outcomes;
	struct bs_report_service report = {
		.service = bs_names_service(&replay->names, number),
		.protocol = bs_names_protocol(&replay->names, s->protocol),
		.answered = n[BS_OUTCOME_ANSWERED],
		.unanswered = n[BS_OUTCOME_UNANSWERED],
		.oneway = n[BS_OUTCOME_ONEWAY],
		.orphan_responses = n[BS_OUTCOME_ORPHAN_RESPONSE],
		.in_progress = n[BS_OUTCOME_IN_PROGRESS],
		.pushed = n[BS_OUTCOME_PUSHED],
		.cancelled = n[BS_OUTCOME_CANCELLED],
		.reset = n[BS_OUTCOME_RESET],
		.cut = n[BS_OUTCOME_CUT],
		.latency_ns = quantiles(&s->latency),
		.service_ns = quantiles(&s->service),
	};

	report.rpcs = report.answered + report.unanswered + report.oneway + report.in_progress +
		      report.cancelled + report.reset + report.cut;
	return bs_report_service_json(&report);
}

static json_t *
services_json(const struct replay *replay)
{
	json_t *services = json_array();

	for (unsigned i = 0; i < REPLAY_SERVICES; i++)
		if (replay->services[i] != NULL &&
			json_array_append_new(services, service_json(replay, i)) != 0) {
			json_decref(services);
			return NULL;
		}
	return services;
}

static json_t *
incident_json(const struct replay *replay, size_t number)
{
	const struct bs_rec_incident *incident = &replay->incidents[number];

	return bs_report_incident_json(
		&replay->names, incident, bs_diag_advice(&incident->origin, incident->detail));
}

static void
write_object(struct writer *w, bool all)
{
	const struct replay *replay = w->replay;
	struct selection selection;
	int failed;

	fprintf(w->out, "{\"version\":\"%s\",\n\"inputs\":[", BS_VERSION);
	for (unsigned i = 0; i < replay->input_count; i++) {
		fputs(i > 0 ? ",\n " : "", w->out);
		write_json(w, input_json(&replay->inputs[i]));
	}
	fputs("],\n\"clock\":null,\n\"counters\":", w->out);
	write_json(w, counters_json(replay));
	fputs(",\n\"tracking\":", w->out);
	write_json(w, tracking_json(replay));
	fputs(",\n\"services\":", w->out);
	write_json(w, services_json(replay));
	failed = select_anomalies(replay, &selection);
	write_selection(w, "anomalies", failed, &selection);
	fputs(",\n\"incidents\":[", w->out);
	for (size_t i = 0; i < replay->incident_count; i++) {
		fputs(i > 0 ? ",\n " : "\n ", w->out);
		write_json(w, incident_json(replay, i));
	}
	fputs("]", w->out);
	failed = select_slowest(replay, &selection);
	write_selection(w, "slowest", failed, &selection);
	if (all) {
		fputs(",\n\"rpcs\":[", w->out);
		for (size_t i = 0; i < replay->groups.count && w->error == 0; i++) {
			fputs(i > 0 ? ",\n " : "\n ", w->out);
			write_json(w, rpc_json(replay, &replay->groups.list[i]));
		}
		fputs("]", w->out);
	}
	fputs("}\n", w->out);
}

static void
write_lines(struct writer *w)
{
	for (size_t i = 0; i < w->replay->groups.count && w->error == 0; i++) {
		write_json(w, rpc_json(w->replay, &w->replay->groups.list[i]));
		fputc('\n', w->out);
	}
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

static int
by_excess(const void *a, const void *b)
{
	const struct group *x = *(const struct group *const *)a;
	const struct group *y = *(const struct group *const *)b;
	uint64_t ex = x->verdict.excess_ns, ey = y->verdict.excess_ns;

	if (ex != ey)
		return ex < ey ? 1 : -1;
	return (x->rpc->id > y->rpc->id) - (x->rpc->id < y->rpc->id);
}

static json_t *
selection_json(const struct replay *replay, const struct selection *s, size_t most)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->count && i < most; i++)
		if (json_array_append_new(list, rpc_json(replay, s->groups[i])) != 0) {
			json_decref(list);
			return NULL;
		}
	return list;
}

static void
explain(struct writer *w, const json_t *rpcs, size_t most, const struct bs_report_text *text)
{
	const json_t *rpc;
	size_t i;

	json_array_foreach(rpcs, i, rpc)
	{
		if (i == most)
			break;
		fputc('\n', w->out);
		bs_report_rpc_text(w->out, rpc, text);
	}
	if (i > 0)
		bs_report_legend(w->out, text);
}

/* The worst anomalies as a table and the worst of them explained; without any, the slowest RPC. */
static void
text_anomalies(struct writer *w, const struct bs_report_text *text)
{
	const struct replay *replay = w->replay;
	struct selection s;
	json_t *rpcs;
	bool any;
	int failed = select_anomalies(replay, &s);

	if (failed == 0 && s.count == 0) {
		free(s.groups);
		failed = select_slowest(replay, &s);
	}
	if (failed != 0) {
		w->error = failed;
		return;
	}
	any = replay->anomalies > 0;
	fprintf(w->out, "\n%" PRIu64 " of %zu RPCs anomalous%s\n", replay->anomalies,
		replay->groups.count, any ? "" : "; the slowest:");
	if (any)
		qsort(s.groups, s.count, sizeof(s.groups[0]), by_excess);
	rpcs = selection_json(replay, &s, any ? TABLE_ROWS : 1);
	if (rpcs == NULL) {
		w->error = -ENOMEM;
	} else {
		if (any)
			bs_report_anomalies_table(w->out, rpcs, text);
		if (s.count > TABLE_ROWS && any)
			fprintf(w->out, "... and %zu more (--format json has all)\n",
				s.count - TABLE_ROWS);
		explain(w, rpcs, EXPLAINED, text);
	}
	json_decref(rpcs);
	free(s.groups);
}

static void
text_incidents(struct writer *w, const struct bs_report_text *text)
{
	for (size_t i = 0; i < w->replay->incident_count; i++) {
		json_t *incident = incident_json(w->replay, i);

		fputc('\n', w->out);
		if (bs_report_incident_text(w->out, incident, text) != 0)
			w->error = -ENOMEM;
		json_decref(incident);
	}
}

static void
text_all(struct writer *w, const struct bs_report_text *text)
{
	for (size_t i = 0; i < w->replay->groups.count && w->error == 0; i++) {
		json_t *rpc = rpc_json(w->replay, &w->replay->groups.list[i]);

		fputc('\n', w->out);
		if (bs_report_rpc_text(w->out, rpc, text) != 0)
			w->error = -ENOMEM;
		json_decref(rpc);
	}
}

static void
write_text(struct writer *w, const struct output_options *options)
{
	const struct replay *replay = w->replay;
	json_t *services;

	for (unsigned i = 0; i < replay->input_count; i++)
		text_input(w->out, &replay->inputs[i]);
	if (replay->groups.count == 0) {
		fputs("no RPC found: --port PROTO=PORT names the protocol of a port\n", w->out);
		return;
	}
	services = services_json(replay);
	fputc('\n', w->out);
	if (bs_report_services_table(w->out, services, &options->text) != 0)
		w->error = -ENOMEM;
	json_decref(services);
	text_anomalies(w, &options->text);
	text_incidents(w, &options->text);
	if (options->all)
		text_all(w, &options->text);
}

int
output_write(FILE *out, const struct replay *replay, const struct output_options *options)
{
	struct writer w = {.out = out, .replay = replay};

	switch (options->format) {
	case OUTPUT_TEXT:
		write_text(&w, options);
		break;
	case OUTPUT_JSON:
		write_object(&w, options->all);
		break;
	case OUTPUT_JSONL:
		write_lines(&w);
		break;
	}
	if (fflush(out) != 0)
		return -errno;
	return ferror(out) ? -EIO : w.error;
}
