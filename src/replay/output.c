/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Findings as JSON, written piece by piece so that millions of RPCs need no tree
 * of them, and as text.
 */
#include "output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bs_diag.h"

#define SLOWEST 10u
#define TABLE_ROWS 20u
#define EXPLAINED 3u

/* Where output goes; the first error sticks. */
struct writer {
	FILE *out;
	const struct output *output;
	const struct findings *findings;
	int error;
};

int
output_take_format(
	struct output_options *options, const char *text, char error[BS_OPTION_ERROR_BYTES])
{
	static const char *const formats[] = {
		[OUTPUT_TEXT] = "text",
		[OUTPUT_JSON] = "json",
		[OUTPUT_JSONL] = "jsonl",
	};

	for (unsigned i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (strcmp(text, formats[i]) == 0) {
			options->format = (enum output_format)i;
			return 0;
		}
	snprintf(error, BS_OPTION_ERROR_BYTES, "\"%s\" is none of text, json, jsonl", text);
	return -EINVAL;
}

static json_t *
rpc_json(const struct group *group)
{
	struct bs_rpc_view view = group_view(group);

	return bs_report_rpc_json(&group->run->names, &view, &group->verdict);
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
select_anomalies(const struct findings *findings, struct selection *s)
{
	s->count = 0;
	s->groups = malloc((findings->anomalies + 1) * sizeof(s->groups[0]));
	if (s->groups == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < findings->groups.count; i++)
		if (findings->groups.list[i].verdict.anomalous_by != 0)
			s->groups[s->count++] = &findings->groups.list[i];
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
select_slowest(const struct findings *findings, struct selection *s)
{
	s->count = 0;
	s->groups = calloc(SLOWEST + 1, sizeof(s->groups[0]));
	if (s->groups == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < findings->groups.count; i++) {
		const struct group *group = &findings->groups.list[i];
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
		write_json(w, rpc_json(s->groups[i]));
	}
	fputs("]", w->out);
	free(s->groups);
}

json_t *
output_instant(uint64_t t)
{
	return t != 0 ? json_sprintf("%" PRIu64, t) : json_null();
}

json_t *
output_text(const char *text)
{
	char out[1024];

	return json_stringn(out, bs_report_escape(text, strlen(text), out, sizeof(out)));
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
service_json(const struct findings_total *total)
{
	const struct findings_service *s = total->service;
	const uint64_t *n = s->outcomes;
	struct bs_report_service report = {
		.service = total->name,
		.protocol = total->protocol,
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
services_json(const struct findings *findings)
{
	json_t *services = json_array();

	for (size_t i = 0; i < findings->total_count; i++)
		if (json_array_append_new(services, service_json(&findings->totals[i])) != 0) {
			json_decref(services);
			return NULL;
		}
	return services;
}

static json_t *
incident_json(const struct findings_incident *incident)
{
	const struct bs_rec_incident *record = &incident->record;

	return bs_report_incident_json(
		&incident->run->names, record, bs_diag_advice(&record->origin, record->detail));
}

/* The head's members, one a line, those of a list likewise. */
static void
write_head(struct writer *w)
{
	const char *key;
	const json_t *value, *element;
	size_t i;

	json_object_foreach((json_t *)w->output->head, key, value)
	{
		fprintf(w->out, ",\n\"%s\":", key);
		if (!json_is_array(value)) {
			write_json(w, json_incref((json_t *)value));
			continue;
		}
		fputs("[", w->out);
		json_array_foreach(value, i, element)
		{
			fputs(i > 0 ? ",\n " : "", w->out);
			write_json(w, json_incref((json_t *)element));
		}
		fputs("]", w->out);
	}
}

static void
write_object(struct writer *w, bool all)
{
	const struct findings *findings = w->findings;
	struct selection selection;
	int failed;

	fprintf(w->out, "{\"version\":\"%s\"", BS_VERSION);
	write_head(w);
	fputs(",\n\"services\":", w->out);
	write_json(w, services_json(findings));
	failed = select_anomalies(findings, &selection);
	write_selection(w, "anomalies", failed, &selection);
	fputs(",\n\"incidents\":[", w->out);
	for (size_t i = 0; i < findings->incident_count; i++) {
		fputs(i > 0 ? ",\n " : "\n ", w->out);
		write_json(w, incident_json(&findings->incidents[i]));
	}
	fputs("]", w->out);
	failed = select_slowest(findings, &selection);
	write_selection(w, "slowest", failed, &selection);
	if (all) {
		fputs(",\n\"rpcs\":[", w->out);
		for (size_t i = 0; i < findings->groups.count && w->error == 0; i++) {
			fputs(i > 0 ? ",\n " : "\n ", w->out);
			write_json(w, rpc_json(&findings->groups.list[i]));
		}
		fputs("]", w->out);
	}
	fputs("}\n", w->out);
}

static void
write_lines(struct writer *w)
{
	for (size_t i = 0; i < w->findings->groups.count && w->error == 0; i++) {
		write_json(w, rpc_json(&w->findings->groups.list[i]));
		fputc('\n', w->out);
	}
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
selection_json(const struct selection *s, size_t most)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->count && i < most; i++)
		if (json_array_append_new(list, rpc_json(s->groups[i])) != 0) {
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

/* Also those of which only a summary was kept. */
static uint64_t
all_rpcs(const struct findings *findings)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < findings->total_count; i++)
		for (unsigned o = 0; o < BS_OUTCOME_COUNT; o++)
			sum += findings->totals[i].service->outcomes[o];
	return sum;
}

/* The worst anomalies as a table and the worst of them explained; without any, the slowest RPC. */
static void
text_anomalies(struct writer *w, const struct bs_report_text *text)
{
	const struct findings *findings = w->findings;
	struct selection s;
	json_t *rpcs;
	bool any;
	int failed = select_anomalies(findings, &s);

	if (failed == 0 && s.count == 0) {
		free(s.groups);
		failed = select_slowest(findings, &s);
	}
	if (failed != 0) {
		w->error = failed;
		return;
	}
	any = findings->anomalies > 0;
	fprintf(w->out, "\n%" PRIu64 " of %" PRIu64 " RPCs anomalous%s\n", findings->anomalies,
		all_rpcs(findings), any ? "" : "; the slowest:");
	if (any)
		qsort(s.groups, s.count, sizeof(s.groups[0]), by_excess);
	rpcs = selection_json(&s, any ? TABLE_ROWS : 1);
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
	for (size_t i = 0; i < w->findings->incident_count; i++) {
		json_t *incident = incident_json(&w->findings->incidents[i]);

		fputc('\n', w->out);
		if (bs_report_incident_text(w->out, incident, text) != 0)
			w->error = -ENOMEM;
		json_decref(incident);
	}
}

static void
text_all(struct writer *w, const struct bs_report_text *text)
{
	for (size_t i = 0; i < w->findings->groups.count && w->error == 0; i++) {
		json_t *rpc = rpc_json(&w->findings->groups.list[i]);

		fputc('\n', w->out);
		if (bs_report_rpc_text(w->out, rpc, text) != 0)
			w->error = -ENOMEM;
		json_decref(rpc);
	}
}

static void
write_text(struct writer *w, const struct output_options *options)
{
	const struct findings *findings = w->findings;
	json_t *services;

	w->output->head_text(w->out, w->output->context);
	if (findings->total_count == 0) {
		fputs(w->output->no_rpc, w->out);
		return;
	}
	services = services_json(findings);
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
output_write(FILE *out, const struct output *output, const struct output_options *options)
{
	struct writer w = {.out = out, .output = output, .findings = output->findings};

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
