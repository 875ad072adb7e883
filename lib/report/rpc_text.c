/* SPDX-License-Identifier: BSD-3-Clause */
/* One RPC explained: what, why, and a waterfall of where its time went. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "bs_clock.h"
#include "bs_report.h"
#include "canvas.h"
#include "fields.h"

/* Columns of the waterfall: where numbers end, and names begin. */
#define START_END 10u
#define TIME_END 21u
#define BUFFER_AT 23u
#define NAME_MIN 8u
#define NAME_MAX 24u
#define BAR_WANTED 16u
#define BAR_MIN 4u

#define EIGHTHS 8u

static void
headline(struct canvas *c, const json_t *rpc)
{
	struct phrase p;
	uint64_t latency;
	const char *label = field_text(rpc, "label");

	phrase_init(&p);
	phrase_add(&p, "RPC %s  %s  ", field_text_or(rpc, "id", "?"),
		field_text_or(rpc, "service", "?"));
	if (field_number(rpc, "latency_ns", &latency)) {
		phrase_duration(&p, rpc, "latency_ns");
	} else {
		phrase_add(&p, "%s after ", field_text_or(rpc, "outcome", "?"));
		phrase_duration(&p, rpc, "age_ns");
	}
	canvas_color(c, CANVAS_BOLD);
	canvas_text(c, p.text);
	canvas_color(c, CANVAS_PLAIN);
	if (label != NULL) {
		canvas_text(c, "  ");
		canvas_text(c, label);
	}
	canvas_line(c);
}

static const char *
reason_words(const char *by)
{
	if (strcmp(by, "slo") == 0)
		return "slower than its SLO";
	if (strcmp(by, "evidence") == 0)
		return "evidence on its path";
	if (strcmp(by, "outlier") == 0)
		return "far from its operation's normal";
	return by;
}

static void
anomalous_line(struct canvas *c, const json_t *rpc)
{
	const json_t *anomalous = json_object_get(rpc, "anomalous");
	const char *baseline = field_text(rpc, "baseline");
	const json_t *by;
	struct phrase p;
	size_t i;

	if (!json_is_boolean(anomalous))
		return;
	phrase_init(&p);
	json_array_foreach(json_object_get(rpc, "anomalous_by"), i, by) if (json_is_string(by))
		phrase_add(&p, "%s%s", i > 0 ? ", " : "", reason_words(json_string_value(by)));
	if (baseline != NULL && strcmp(baseline, "cold") == 0)
		phrase_add(&p, "%s(few samples of what is normal)", p.length > 0 ? " " : "");
	if (json_is_true(anomalous))
		canvas_color(c, CANVAS_RED);
	canvas_labelled(c, json_is_true(anomalous) ? "anomalous" : "normal", p.text);
}

static void
blame_list(struct canvas *c, const char *word, const json_t *list)
{
	const json_t *blame;
	struct phrase p;
	size_t i;

	phrase_init(&p);
	json_array_foreach(list, i, blame)
	{
		phrase_add(&p, "%s", i > 0 ? ", " : "");
		phrase_blame(&p, blame);
	}
	if (p.length > 0)
		canvas_labelled(c, word, p.text);
}

static void
evidence_line(struct canvas *c, const json_t *list)
{
	const json_t *packet;
	struct phrase p;
	size_t i;

	phrase_init(&p);
	json_array_foreach(list, i, packet) if (json_is_integer(packet)) phrase_add(&p,
		"%spacket %" JSON_INTEGER_FORMAT, i > 0 ? ", " : "", json_integer_value(packet));
	if (p.length > 0)
		canvas_labelled(c, "see", p.text);
}

static void
root_lines(struct canvas *c, const json_t *rpc)
{
	const json_t *root = json_object_get(rpc, "root_cause");
	struct phrase p;
	double share, confidence;
	uint64_t normal;

	phrase_init(&p);
	if (!json_is_object(root)) {
		if (json_is_true(json_object_get(rpc, "anomalous"))) {
			phrase_add(&p, "not known");
			canvas_labelled(c, "because", p.text);
		}
		return;
	}
	phrase_blame(&p, root);
	phrase_add(&p, ": ");
	phrase_duration(&p, root, "excess_ns");
	phrase_add(&p, " above normal");
	if (field_number(root, "normal_ns", &normal)) {
		phrase_add(&p, " (");
		phrase_ns(&p, normal);
		phrase_add(&p, ")");
	}
	if (field_real(root, "share", &share))
		phrase_add(&p, ", %.3g%% of the time", share * 100);
	if (field_real(root, "confidence", &confidence))
		phrase_add(&p, "; %.0f%% sure", confidence * 100);
	if (json_is_true(json_object_get(root, "chronic")))
		phrase_add(&p, "; chronic");
	canvas_color(c, CANVAS_RED);
	canvas_labelled(c, "because", p.text);
	blame_list(c, "or", json_object_get(root, "alternatives"));
	blame_list(c, "via", json_object_get(root, "via"));
	evidence_line(c, json_object_get(root, "evidence"));
}

static void
exchange_line(struct canvas *c, const json_t *rpc)
{
	static const char *const counts[][2] = {
		{"retransmissions", "retransmissions"},
		{"duplicates", "duplicates"},
		{"capture_gaps", "gaps in the capture"},
		{"reordered", "reordered"},
		{"interim_responses", "interim responses"},
	};
	struct phrase p;
	uint64_t request, response;

	phrase_init(&p);
	phrase_add(&p, "%s -> %s, ", field_text_or(rpc, "client", "?"),
		field_text_or(rpc, "server", "?"));
	phrase_add(&p, "%s over %s", field_text_or(rpc, "protocol", "?"),
		field_text_or(rpc, "transport", "?"));
	if (json_is_true(json_object_get(rpc, "protocol_guessed")))
		phrase_add(&p, " (guessed)");
	if (field_number(rpc, "request_bytes", &request) &&
		field_number(rpc, "response_bytes", &response)) {
		phrase_add(&p, ", ");
		phrase_bytes(&p, request);
		phrase_add(&p, " -> ");
		phrase_bytes(&p, response);
	}
	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		uint64_t count;

		if (field_number(rpc, counts[i][0], &count) && count > 0)
			phrase_add(&p, ", %" PRIu64 " %s", count, counts[i][1]);
	}
	canvas_labelled(c, "between", p.text);
}

/* Where the columns of a waterfall are. */
struct waterfall {
	uint64_t extent_ns;
	unsigned buffer_cells, cause_cells;
	unsigned bar_at, bar_cells; /* bar_cells 0: too narrow for bars */
	const json_t *root;
};

static void
cause_words(struct phrase *p, const json_t *segment)
{
	const char *detail = field_text(segment, "detail");

	phrase_init(p);
	phrase_add(p, "%s", field_text_or(segment, "cause", "?"));
	if (detail != NULL)
		phrase_add(p, " (%s)", detail);
}

static unsigned
larger(unsigned a, unsigned b)
{
	return a > b ? a : b;
}

static void
lay_out(struct waterfall *w, const struct canvas *c, const json_t *segments)
{
	unsigned room = c->width - BUFFER_AT;
	const json_t *segment;
	size_t i;

	w->buffer_cells = w->cause_cells = NAME_MIN;
	json_array_foreach(segments, i, segment)
	{
		struct phrase p;
		uint64_t end;

		cause_words(&p, segment);
		w->cause_cells = larger(w->cause_cells, canvas_columns(c, p.text));
		w->buffer_cells = larger(
			w->buffer_cells, canvas_columns(c, field_text_or(segment, "buffer", "?")));
		if (field_number(segment, "end_ns", &end) && end > w->extent_ns)
			w->extent_ns = end;
	}
	if (w->buffer_cells > NAME_MAX)
		w->buffer_cells = NAME_MAX;
	if (w->cause_cells > NAME_MAX)
		w->cause_cells = NAME_MAX;
	while (w->buffer_cells + w->cause_cells + 4 + BAR_WANTED > room &&
		larger(w->buffer_cells, w->cause_cells) > NAME_MIN) {
		if (w->buffer_cells > w->cause_cells)
			w->buffer_cells--;
		else
			w->cause_cells--;
	}
	w->bar_at = BUFFER_AT + w->buffer_cells + 2 + w->cause_cells + 2;
	if (w->bar_at + BAR_MIN <= c->width)
		w->bar_cells = c->width - w->bar_at;
}

/* x of extent in eighths of a cell, rounded. */
static unsigned
scaled(const struct waterfall *w, uint64_t x)
{
	double eighths = (double)(w->bar_cells * EIGHTHS);

	if (x > w->extent_ns)
		x = w->extent_ns;
	return (unsigned)((double)x * eighths / (double)w->extent_ns + 0.5);
}

/* A segment too short for a cell leaves its neighbours their cells and is a tick. */
static void
draw_bar(struct canvas *c, const struct waterfall *w, uint64_t begin, uint64_t end)
{
	static const char *const parts[EIGHTHS] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	unsigned shortest = c->utf8 ? 1 : EIGHTHS / 2;
	unsigned from, to, cell;
	bool tick;

	if (w->bar_cells == 0 || w->extent_ns == 0 || end < begin)
		return;
	from = scaled(w, begin);
	to = scaled(w, end);
	tick = to - from < shortest;
	cell = (from + EIGHTHS / 2) / EIGHTHS;
	if (cell >= w->bar_cells)
		cell = w->bar_cells - 1;
	from = cell * EIGHTHS;
	if (!c->utf8)
		to = (to + EIGHTHS / 2) / EIGHTHS * EIGHTHS;
	canvas_to(c, w->bar_at + cell);
	if (tick || to <= from) {
		canvas_symbol(c, "▏", '|');
		return;
	}
	for (; from + EIGHTHS <= to; from += EIGHTHS)
		canvas_symbol(c, "█", '#');
	if (to > from)
		canvas_symbol(c, parts[to - from], '#');
}

static enum canvas_color
cause_color(const char *cause)
{
	if (strcmp(cause, "compute") == 0 || strcmp(cause, "transfer") == 0)
		return CANVAS_GREEN;
	return strcmp(cause, "unobserved") == 0 ? CANVAS_DIM : CANVAS_YELLOW;
}

static char
quality_mark(const json_t *segment)
{
	const char *quality = field_text_or(segment, "quality", "");

	if (strcmp(quality, "exact") == 0)
		return '=';
	if (strcmp(quality, "estimated") == 0)
		return '~';
	return strcmp(quality, "bound") == 0 ? '<' : '?';
}

static void
segment_row(struct canvas *c, const struct waterfall *w, const json_t *segment)
{
	const char *buffer = field_text_or(segment, "buffer", "?");
	const char *cause = field_text_or(segment, "cause", "?");
	bool root = strcmp(buffer, field_text_or(w->root, "buffer", "")) == 0 &&
		    strcmp(cause, field_text_or(w->root, "cause", "")) == 0;
	char duration[BS_DURATION_TEXT_BYTES];
	uint64_t begin = 0, end = 0;
	struct phrase p;

	field_number(segment, "begin_ns", &begin);
	field_number(segment, "end_ns", &end);
	if (root)
		canvas_text(c, "*");
	canvas_right(c, bs_duration_text(begin, duration), START_END);
	phrase_init(&p);
	phrase_add(&p, "%c%s", quality_mark(segment),
		bs_duration_text(end > begin ? end - begin : 0, duration));
	canvas_right(c, p.text, TIME_END);
	canvas_to(c, BUFFER_AT);
	canvas_text_within(c, buffer, w->buffer_cells);
	canvas_to(c, BUFFER_AT + w->buffer_cells + 2);
	canvas_color(c, root ? CANVAS_RED : cause_color(cause));
	cause_words(&p, segment);
	canvas_text_within(c, p.text, w->cause_cells);
	draw_bar(c, w, begin, end);
	canvas_line(c);
}

static void
waterfall(struct canvas *c, const json_t *rpc)
{
	const json_t *segments = json_object_get(rpc, "segments");
	const json_t *segment;
	struct waterfall w = {.root = json_object_get(rpc, "root_cause")};
	char duration[BS_DURATION_TEXT_BYTES];
	size_t i;

	if (json_array_size(segments) == 0)
		return;
	lay_out(&w, c, segments);
	canvas_color(c, CANVAS_DIM);
	canvas_right(c, "start", START_END);
	canvas_right(c, "time", TIME_END);
	canvas_to(c, BUFFER_AT);
	canvas_text(c, "buffer");
	canvas_to(c, BUFFER_AT + w.buffer_cells + 2);
	canvas_text(c, "cause");
	if (w.bar_cells > 0) {
		canvas_to(c, w.bar_at);
		canvas_text(c, "0");
		canvas_right(c, bs_duration_text(w.extent_ns, duration), c->width);
	}
	canvas_line(c);
	json_array_foreach(segments, i, segment) segment_row(c, &w, segment);
}

static void
event_lines(struct canvas *c, const json_t *events)
{
	const json_t *event;
	size_t i;

	json_array_foreach(events, i, event)
	{
		const json_t *culprits = json_object_get(event, "culprits");
		uint64_t count;
		struct phrase p;

		phrase_init(&p);
		phrase_blame(&p, event);
		phrase_add(&p, ": ");
		phrase_duration(&p, event, "blocking_ns");
		if (field_number(event, "count", &count) && count > 1)
			phrase_add(&p, ", %" PRIu64 " times", count);
		if (field_text(event, "upstream") != NULL)
			phrase_add(&p, ", blocked by %s", field_text(event, "upstream"));
		if (json_array_size(culprits) > 0) {
			phrase_add(&p, "; culprits: ");
			phrase_culprits(&p, culprits);
		}
		canvas_labelled(c, "event", p.text);
	}
}

/* Whom single segments blame: an earlier RPC of the connection, mostly. */
static void
segment_culprits(struct canvas *c, const json_t *segments)
{
	const json_t *segment;
	size_t i;

	json_array_foreach(segments, i, segment)
	{
		struct phrase p;

		if (field_text(segment, "culprit_kind") == NULL)
			continue;
		phrase_init(&p);
		phrase_blame(&p, segment);
		phrase_add(&p, ": %s %s", field_text(segment, "culprit_kind"),
			field_text_or(segment, "culprit_id", "?"));
		canvas_labelled(c, "behind", p.text);
	}
}

int
bs_report_rpc_text(FILE *out, const json_t *rpc, const struct bs_report_text *options)
{
	struct canvas c;

	if (!json_is_object(rpc))
		return -EINVAL;
	canvas_init(&c, out, options);
	headline(&c, rpc);
	anomalous_line(&c, rpc);
	root_lines(&c, rpc);
	exchange_line(&c, rpc);
	waterfall(&c, rpc);
	event_lines(&c, json_object_get(rpc, "events"));
	segment_culprits(&c, json_object_get(rpc, "segments"));
	return c.error;
}

int
bs_report_legend(FILE *out, const struct bs_report_text *options)
{
	struct canvas c;

	canvas_init(&c, out, options);
	canvas_color(&c, CANVAS_DIM);
	canvas_wrapped(&c,
		"time: = exact, ~ estimated, < bound (drawn at its middle); * root cause; | very "
		"short",
		0);
	canvas_line(&c);
	return c.error;
}
