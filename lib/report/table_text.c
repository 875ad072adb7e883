/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists for people: anomalies and services as aligned tables, an incident, progress. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "bs_report.h"
#include "canvas.h"
#include "fields.h"

#define COLUMNS_MAX 12u
#define SHRUNK_MIN 6u

struct column {
	const char *title;
	void (*cell)(struct phrase *p, const json_t *row);
	bool right;
	bool shrinks;	     /* gives up room when the terminal is narrow */
	unsigned from_width; /* shown from this width on */
};

static void
id_cell(struct phrase *p, const json_t *row)
{
	phrase_add(p, "%s", field_text_or(row, "id", "?"));
}

static void
service_cell(struct phrase *p, const json_t *row)
{
	phrase_add(p, "%s", field_text_or(row, "service", "?"));
}

static void
took_cell(struct phrase *p, const json_t *row)
{
	uint64_t ns;

	if (!field_number(row, "latency_ns", &ns))
		phrase_add(p, ">");
	phrase_duration(p, row, field_number(row, "latency_ns", &ns) ? "latency_ns" : "age_ns");
}

static void
why_cell(struct phrase *p, const json_t *row)
{
	const json_t *root = json_object_get(row, "root_cause");
	const json_t *blame;
	size_t i;

	phrase_add(p, "%s", field_text_or(root, "cause", "-"));
	json_array_foreach(json_object_get(root, "alternatives"), i, blame)
		phrase_add(p, "/%s", field_text_or(blame, "cause", "?"));
}

static void
where_cell(struct phrase *p, const json_t *row)
{
	phrase_add(p, "%s", field_text_or(json_object_get(row, "root_cause"), "buffer", "-"));
}

static void
excess_cell(struct phrase *p, const json_t *row)
{
	const json_t *root = json_object_get(row, "root_cause");

	if (json_is_object(root))
		phrase_duration(p, root, "excess_ns");
	else
		phrase_add(p, "-");
}

static void
sure_cell(struct phrase *p, const json_t *row)
{
	double confidence;

	if (field_real(json_object_get(row, "root_cause"), "confidence", &confidence))
		phrase_add(p, "%.0f%%", confidence * 100);
	else
		phrase_add(p, "-");
}

static void
by_cell(struct phrase *p, const json_t *row)
{
	const json_t *by;
	size_t i;

	json_array_foreach(json_object_get(row, "anomalous_by"), i, by) if (json_is_string(by))
		phrase_add(p, "%s%s", i > 0 ? "," : "", json_string_value(by));
}

static void
when_cell(struct phrase *p, const json_t *row)
{
	phrase_instant(p, row, "t_request_first", true);
}

static void
label_cell(struct phrase *p, const json_t *row)
{
	phrase_add(p, "%s", field_text_or(row, "label", "-"));
}

static void
protocol_cell(struct phrase *p, const json_t *row)
{
	phrase_add(p, "%s", field_text_or(row, "protocol", "?"));
}

static void
count_cell(struct phrase *p, const json_t *row, const char *key)
{
	uint64_t count;

	if (field_number(row, key, &count))
		phrase_add(p, "%" PRIu64, count);
	else
		phrase_add(p, "?");
}

static void
rpcs_cell(struct phrase *p, const json_t *row)
{
	count_cell(p, row, "rpcs");
}

static void
answered_cell(struct phrase *p, const json_t *row)
{
	count_cell(p, row, "answered");
}

static void
unanswered_cell(struct phrase *p, const json_t *row)
{
	count_cell(p, row, "unanswered");
}

static void
open_cell(struct phrase *p, const json_t *row)
{
	count_cell(p, row, "in_progress");
}

static void
quantile_cell(struct phrase *p, const json_t *row, const char *of, const char *key)
{
	const json_t *quantiles = json_object_get(row, of);

	if (json_is_object(quantiles))
		phrase_duration(p, quantiles, key);
	else
		phrase_add(p, "-");
}

static void
p50_cell(struct phrase *p, const json_t *row)
{
	quantile_cell(p, row, "latency_ns", "p50");
}

static void
p90_cell(struct phrase *p, const json_t *row)
{
	quantile_cell(p, row, "latency_ns", "p90");
}

static void
p99_cell(struct phrase *p, const json_t *row)
{
	quantile_cell(p, row, "latency_ns", "p99");
}

static void
max_cell(struct phrase *p, const json_t *row)
{
	quantile_cell(p, row, "latency_ns", "max");
}

static void
service_p50_cell(struct phrase *p, const json_t *row)
{
	quantile_cell(p, row, "service_ns", "p50");
}

static const struct column anomaly_columns[] = {
	{"RPC", id_cell, false, false, 0},
	{"WHEN", when_cell, false, false, 120},
	{"SERVICE", service_cell, false, true, 0},
	{"TOOK", took_cell, true, false, 0},
	{"CAUSE", why_cell, false, true, 0},
	{"BUFFER", where_cell, false, true, 0},
	{"EXCESS", excess_cell, true, false, 60},
	{"SURE", sure_cell, true, false, 60},
	{"BY", by_cell, false, false, 120},
	{"LABEL", label_cell, false, true, 100},
};

static const struct column service_columns[] = {
	{"SERVICE", service_cell, false, true, 0},
	{"PROTOCOL", protocol_cell, false, true, 100},
	{"RPCS", rpcs_cell, true, false, 0},
	{"ANSWERED", answered_cell, true, false, 100},
	{"UNANSWERED", unanswered_cell, true, false, 60},
	{"OPEN", open_cell, true, false, 60},
	{"P50", p50_cell, true, false, 0},
	{"P90", p90_cell, true, false, 80},
	{"P99", p99_cell, true, false, 0},
	{"MAX", max_cell, true, false, 80},
	{"SERVICE P50", service_p50_cell, true, false, 120},
};

/* Those columns that this terminal shows, and their widths. */
struct layout {
	const struct column *columns[COLUMNS_MAX];
	unsigned cells[COLUMNS_MAX];
	unsigned count;
};

static void
fit(struct layout *l, unsigned width)
{
	for (;;) {
		unsigned total = 2 * (l->count - 1);
		unsigned widest = l->count;

		for (unsigned i = 0; i < l->count; i++) {
			total += l->cells[i];
			if (l->columns[i]->shrinks && l->cells[i] > SHRUNK_MIN &&
				(widest == l->count || l->cells[i] > l->cells[widest]))
				widest = i;
		}
		if (total <= width || widest == l->count)
			return;
		l->cells[widest]--;
	}
}

static void
lay_out(struct layout *l, const struct canvas *c, const struct column *columns, unsigned count,
	const json_t *rows)
{
	l->count = 0;
	for (unsigned i = 0; i < count; i++) {
		const json_t *row;
		unsigned cells = (unsigned)strlen(columns[i].title);
		size_t r;

		if (columns[i].from_width > c->width)
			continue;
		json_array_foreach(rows, r, row)
		{
			struct phrase p;
			unsigned wanted;

			phrase_init(&p);
			columns[i].cell(&p, row);
			wanted = canvas_columns(c, p.text);
			if (wanted > cells)
				cells = wanted;
		}
		l->columns[l->count] = &columns[i];
		l->cells[l->count++] = cells;
	}
	fit(l, c->width);
}

static void
draw_row(struct canvas *c, const struct layout *l, const json_t *row)
{
	unsigned at = 0;

	for (unsigned i = 0; i < l->count; i++) {
		struct phrase p;

		phrase_init(&p);
		if (row != NULL)
			l->columns[i]->cell(&p, row);
		else
			phrase_add(&p, "%s", l->columns[i]->title);
		canvas_to(c, at);
		if (l->columns[i]->right)
			canvas_right(c, p.text, at + l->cells[i]);
		else
			canvas_text_within(c, p.text, l->cells[i]);
		at += l->cells[i] + 2;
	}
	canvas_line(c);
}

static int
draw_table(FILE *out, const json_t *rows, const struct bs_report_text *options,
	const struct column *columns, unsigned count)
{
	struct canvas c;
	struct layout l;
	const json_t *row;
	size_t i;

	if (!json_is_array(rows))
		return -EINVAL;
	canvas_init(&c, out, options);
	lay_out(&l, &c, columns, count, rows);
	canvas_color(&c, CANVAS_BOLD);
	draw_row(&c, &l, NULL);
	json_array_foreach(rows, i, row) draw_row(&c, &l, row);
	return c.error;
}

int
bs_report_anomalies_table(FILE *out, const json_t *rpcs, const struct bs_report_text *options)
{
	return draw_table(out, rpcs, options, anomaly_columns,
		sizeof(anomaly_columns) / sizeof(anomaly_columns[0]));
}

int
bs_report_services_table(FILE *out, const json_t *services, const struct bs_report_text *options)
{
	return draw_table(out, services, options, service_columns,
		sizeof(service_columns) / sizeof(service_columns[0]));
}

static void
incident_headline(struct canvas *c, const json_t *incident)
{
	struct phrase p;

	canvas_color(c, CANVAS_BOLD);
	canvas_text(c, "INCIDENT ");
	canvas_text(c, field_text_or(incident, "id", "?"));
	canvas_text(c, " ");
	phrase_init(&p);
	phrase_blame(&p, json_object_get(incident, "origin"));
	canvas_wrapped(c, p.text, CANVAS_LABEL_END);
	canvas_line(c);
}

static void
incident_times(struct canvas *c, const json_t *incident)
{
	uint64_t begin, end;
	struct phrase p;

	phrase_init(&p);
	phrase_instant(&p, incident, "t_begin", false);
	if (field_instant(incident, "t_begin", &begin) && field_instant(incident, "t_end", &end) &&
		end >= begin) {
		phrase_add(&p, ", for ");
		phrase_ns(&p, end - begin);
	} else if (json_is_true(json_object_get(incident, "open"))) {
		phrase_add(&p, ", still going on");
	}
	canvas_labelled(c, "from", p.text);
}

static void
incident_victims(struct canvas *c, const json_t *incident)
{
	/* jansson has no iteration over a const object */
	json_t *services = json_object_get(incident, "by_service");
	const json_t *worst = json_object_get(incident, "worst");
	const json_t *value;
	const char *name;
	struct phrase p;
	size_t i;

	phrase_init(&p);
	count_cell(&p, incident, "victims");
	phrase_add(&p, "%s", strcmp(p.text, "1") == 0 ? " RPC" : " RPCs");
	json_object_foreach(services, name, value)
		phrase_add(&p, ", %s %" JSON_INTEGER_FORMAT, name, json_integer_value(value));
	canvas_labelled(c, "victims", p.text);
	phrase_init(&p);
	json_array_foreach(worst, i, value) if (json_is_string(value))
		phrase_add(&p, "%s%s", i > 0 ? " " : "", json_string_value(value));
	if (p.length > 0)
		canvas_labelled(c, "worst", p.text);
}

int
bs_report_incident_text(FILE *out, const json_t *incident, const struct bs_report_text *options)
{
	struct canvas c;
	struct phrase p;

	if (!json_is_object(incident))
		return -EINVAL;
	canvas_init(&c, out, options);
	incident_headline(&c, incident);
	incident_times(&c, incident);
	incident_victims(&c, incident);
	phrase_init(&p);
	phrase_culprits(&p, json_object_get(incident, "culprits"));
	if (p.length > 0)
		canvas_labelled(&c, "culprits", p.text);
	if (field_text(incident, "advice") != NULL)
		canvas_labelled(&c, "advice", field_text(incident, "advice"));
	return c.error;
}
