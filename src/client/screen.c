/* SPDX-License-Identifier: BSD-3-Clause */
#include "screen.h"

#include <stdbool.h>
#include <string.h>

#include "table.h"

/* COUNTED: null is what a driver does not count. */
enum form { FORM_TEXT, FORM_NUMBER, FORM_DURATION, FORM_COUNTED };

/* A column that shows a key of each object of a list. */
struct field {
	const char *heading, *key;
	enum form form;
};

#define FIELDS_MAX 16u
#define NOT_OBSERVABLE "not observable"

static const char *
field_text(const json_t *object, const struct field *field, char buf[TABLE_TEXT_BYTES])
{
	if (field->form == FORM_DURATION)
		return table_duration(object, field->key, buf);
	if (field->form == FORM_COUNTED && json_is_null(json_object_get(object, field->key)))
		return NOT_OBSERVABLE;
	return table_text(object, field->key, buf);
}

static void
draw_list(
	FILE *out, const json_t *list, const struct field *fields, unsigned count, unsigned indent)
{
	struct table_column columns[FIELDS_MAX];
	json_t *rows = json_array(), *object;
	size_t index;

	for (unsigned i = 0; i < count; i++)
		columns[i] = (struct table_column){fields[i].heading, fields[i].form != FORM_TEXT};
	json_array_foreach(list, index, object)
	{
		json_t *row = json_array();
		char buf[TABLE_TEXT_BYTES];

		for (unsigned i = 0; i < count; i++)
			json_array_append_new(
				row, json_string(field_text(object, &fields[i], buf)));
		json_array_append_new(rows, row);
	}
	table_print(out, columns, count, rows, indent);
	json_decref(rows);
}

#define DRAW_LIST(out, list, fields, indent)                                                       \
	draw_list(out, list, fields, sizeof(fields) / sizeof((fields)[0]), indent)

static void
say_more(FILE *out, const json_t *result, const char *list)
{
	const json_t *next = json_object_get(result, "next");

	if (json_is_integer(next))
		fprintf(out,
			"%zu of %" JSON_INTEGER_FORMAT
			" shown; older: --offset %" JSON_INTEGER_FORMAT "\n",
			json_array_size(json_object_get(result, list)),
			json_integer_value(json_object_get(result, "total")),
			json_integer_value(next));
}

void
screen_anomalies(FILE *out, const json_t *result, const struct bs_report_text *options)
{
	const json_t *rpcs = json_object_get(result, "anomalies");

	if (json_array_size(rpcs) == 0)
		fprintf(out, "no anomalies\n");
	else
		bs_report_anomalies_table(out, rpcs, options);
	say_more(out, result, "anomalies");
}

void
screen_incidents(FILE *out, const json_t *result, const struct bs_report_text *options)
{
	const json_t *incidents = json_object_get(result, "incidents");
	json_t *incident;
	size_t index;

	if (json_array_size(incidents) == 0)
		fprintf(out, "no incidents\n");
	json_array_foreach(incidents, index, incident)
	{
		fputs(index == 0 ? "" : "\n", out);
		bs_report_incident_text(out, incident, options);
	}
	say_more(out, result, "incidents");
}

void
screen_rpc(FILE *out, const json_t *result, const struct bs_report_text *options)
{
	bs_report_rpc_text(out, result, options);
	bs_report_legend(out, options);
}

void
screen_services(FILE *out, const json_t *result, const struct bs_report_text *options)
{
	bs_report_services_table(out, json_object_get(result, "services"), options);
	say_more(out, result, "services");
}

void
screen_offload(FILE *out, const json_t *result, const struct bs_report_text *options)
{
	static const struct field fields[] = {
		{"port", "port", FORM_TEXT},
		{"driver", "driver", FORM_TEXT},
		{"flows by", "flows_by", FORM_TEXT},
		{"rules", "rules", FORM_NUMBER},
		{"why", "reason", FORM_TEXT},
	};

	(void)options;
	DRAW_LIST(out, json_object_get(result, "ports"), fields, 0);
}

void
screen_lcores(FILE *out, const json_t *result, const struct bs_report_text *options)
{
	static const struct field fields[] = {
		{"lcore", "lcore", FORM_NUMBER},
		{"cpu", "cpu", FORM_NUMBER},
		{"role", "role", FORM_TEXT},
		{"hung", "hung", FORM_TEXT},
		{"packets", "packets", FORM_NUMBER},
		{"pause", "pause_ns", FORM_DURATION},
		{"stalled", "stalled_ns", FORM_DURATION},
		{"preempted", "preempted_ns", FORM_DURATION},
		{"sleep", "sleep_ns", FORM_DURATION},
		{"flows", "flows", FORM_NUMBER},
		{"open", "rpcs_open", FORM_NUMBER},
		{"lost", "records_lost", FORM_NUMBER},
	};

	(void)options;
	DRAW_LIST(out, json_object_get(result, "lcores"), fields, 0);
}

static unsigned
add_counters(json_t *rows, const json_t *object, const char *prefix)
{
	unsigned zeros = 0;
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)object, key, value)
	{
		char name[96], text[TABLE_TEXT_BYTES];

		snprintf(name, sizeof(name), "%s%s", prefix, key);
		if (json_is_array(value)) {
			continue;
		} else if (json_is_null(value)) {
			table_row(rows, 2, name, NOT_OBSERVABLE);
		} else if (json_is_object(value)) {
			strncat(name, ".", sizeof(name) - strlen(name) - 1);
			if (strlen(prefix) < sizeof(name) / 2)
				zeros += add_counters(rows, value, name);
		} else if (json_integer_value(value) == 0) {
			zeros++;
		} else {
			table_row(rows, 2, name, table_text(object, key, text));
		}
	}
	return zeros;
}

void
screen_counters(FILE *out, const json_t *result, const struct bs_report_text *options)
{
	static const struct table_column columns[] = {{"counter", false}, {"since start", true}};
	static const struct field fields[] = {
		{"port", "port", FORM_TEXT},
		{"packets in", "rx_packets", FORM_NUMBER},
		{"= forwarded", "forwarded", FORM_NUMBER},
		{"+ dropped", "ended", FORM_NUMBER},
		{"+ queued", "queued", FORM_NUMBER},
		{"+ unaccounted", "unaccounted", FORM_NUMBER},
		{"packets out", "tx_packets", FORM_NUMBER},
		{"handed over", "handed_over", FORM_NUMBER},
	};
	const json_t *ports = json_object_get(result, "ports");
	json_t *rows = json_array(), *port;
	unsigned zeros = add_counters(rows, result, "");
	size_t index;

	(void)options;
	json_array_foreach(ports, index, port)
	{
		char prefix[40];

		snprintf(prefix, sizeof(prefix), "%s.",
			json_string_value(json_object_get(port, "port")));
		zeros += add_counters(rows, json_object_get(port, "dropped"), prefix);
		zeros += add_counters(rows, json_object_get(port, "found"), prefix);
	}
	DRAW_LIST(out, ports, fields, 0);
	fputc('\n', out);
	table_print(out, columns, 2, rows, 0);
	fprintf(out, "%u others are 0\n", zeros);
	json_decref(rows);
}

static void
draw_head(FILE *out, const json_t *status)
{
	static const struct field fields[] = {
		{"where", "component", FORM_TEXT},
		{"when", "when", FORM_TEXT},
		{"ago", "age_ns", FORM_DURATION},
		{"what is wrong", "problem", FORM_TEXT},
		{"what to do", "remedy", FORM_TEXT},
	};
	const json_t *analyzer = json_object_get(status, "analyzer");
	const json_t *records = json_object_get(status, "records");
	const json_t *problems = json_object_get(status, "problems");
	const json_t *journal = json_object_get(status, "journal");
	char text[8][TABLE_TEXT_BYTES];

	fprintf(out, "bufscoped %s: %s, pid %s, up %s, %s packets in, %s out, %s queued\n",
		table_text(status, "file_prefix", text[0]), table_text(status, "state", text[1]),
		table_text(status, "pid", text[2]), table_duration(status, "uptime_ns", text[3]),
		table_text(status, "rx_packets", text[4]),
		table_text(status, "tx_packets", text[5]), table_text(status, "queued", text[6]));
	fprintf(out, "analyzer: %s, %s, %s restarts; records: %s sent, %s lost\n",
		table_text(analyzer, "mode", text[0]),
		json_is_true(json_object_get(analyzer, "connected")) ? "connected"
								     : "not connected",
		table_text(analyzer, "restarts", text[1]), table_text(records, "sent", text[2]),
		table_text(records, "lost", text[3]));
	if (json_is_object(journal))
		fprintf(out, "journal: %s.%s, %s bytes and %s records written, %s records lost\n",
			table_text(journal, "path", text[0]), table_text(journal, "slot", text[1]),
			table_text(journal, "journal_bytes", text[2]),
			table_text(journal, "journal_records", text[3]),
			table_text(journal, "journal_lost_records", text[4]));
	if (json_array_size(problems) > 0)
		DRAW_LIST(out, problems, fields, 2);
}

void
screen_status(FILE *out, const json_t *result, const struct bs_report_text *options)
{
	static const struct field fields[] = {
		{"port", "port", FORM_TEXT},
		{"driver", "driver", FORM_TEXT},
		{"link up", "link_up", FORM_TEXT},
		{"rx packets", "rx_packets", FORM_NUMBER},
		{"tx packets", "tx_packets", FORM_NUMBER},
		{"missed", "rx_missed", FORM_COUNTED},
		{"no mbuf", "rx_nombuf", FORM_NUMBER},
		{"errors", "rx_errors", FORM_NUMBER},
		{"dropped", "dropped", FORM_NUMBER},
		{"queued", "queued", FORM_NUMBER},
		{"unaccounted", "unaccounted", FORM_NUMBER},
		{"handed over", "handed_over", FORM_NUMBER},
		{"rate", "rate_bps", FORM_NUMBER},
		{"device", "device", FORM_TEXT},
	};

	(void)options;
	draw_head(out, result);
	DRAW_LIST(out, json_object_get(result, "ports"), fields, 2);
}

void
screen_top(FILE *out, const json_t *result, const struct bs_report_text *options)
{
	const json_t *rate = json_object_get(result, "rx_per_s");

	draw_head(out, json_object_get(result, "status"));
	if (json_is_integer(rate))
		fprintf(out, "%" JSON_INTEGER_FORMAT " packets/s in\n", json_integer_value(rate));
	fputc('\n', out);
	screen_services(out, json_object_get(result, "services"), options);
	fputc('\n', out);
	screen_anomalies(out, json_object_get(result, "anomalies"), options);
}
