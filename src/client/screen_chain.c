/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The chain as a picture: one stage below the other in the order of travel, all
 * parallel buffers of a stage side by side in its lines.
 */
#include <stdbool.h>
#include <string.h>

#include "screen.h"
#include "table.h"

#define BAR 10u

/* "wire.rx" is named so, or "wire.rx.<n>" for one of several. */
static bool
ends_part(const char *at)
{
	return *at == '\0' || *at == '.';
}

static bool
is_port_buffer(const char *name, const char *port, const char *side)
{
	size_t bytes = strlen(port);

	return strncmp(name, port, bytes) == 0 && strncmp(name + bytes, side, strlen(side)) == 0 &&
	       ends_part(name + bytes + strlen(side));
}

static bool
is_queue(const char *name, const char *side)
{
	const char *at = strstr(name, side);

	return at != NULL && ends_part(at + strlen(side));
}

static bool
is_handover(const char *name)
{
	return strncmp(name, "handover", 8) == 0;
}

static const char *
bar(const json_t *buffer, char out[BAR + 3])
{
	const json_t *capacity = json_object_get(buffer, "capacity");
	json_int_t size = json_integer_value(capacity);
	json_int_t fill = json_integer_value(json_object_get(buffer, "occupancy"));

	memset(out, ' ', BAR + 2);
	out[0] = '[';
	out[BAR + 1] = ']';
	out[BAR + 2] = '\0';
	if (size <= 0 || fill < 0 || fill > size)
		return size <= 0 ? "" : out;
	/* Rounded up: a queue that is not empty shows it. */
	memset(out + 1, '#', (size_t)((fill * (json_int_t)BAR + size - 1) / size));
	return out;
}

static void
add_buffer(json_t *rows, const json_t *buffer)
{
	char fill[TABLE_TEXT_BYTES], capacity[TABLE_TEXT_BYTES], most[TABLE_TEXT_BYTES],
		packets[TABLE_TEXT_BYTES], dropped[TABLE_TEXT_BYTES], mean[TABLE_TEXT_BYTES],
		max[TABLE_TEXT_BYTES], name[TABLE_TEXT_BYTES], quality[TABLE_TEXT_BYTES],
		bar_text[BAR + 3];

	table_row(rows, 10, table_text(buffer, "buffer", name), bar(buffer, bar_text),
		table_text(buffer, "occupancy", fill), table_text(buffer, "occupancy_max", most),
		table_text(buffer, "capacity", capacity), table_text(buffer, "packets", packets),
		table_text(buffer, "dropped", dropped),
		table_duration(buffer, "wait_mean_ns", mean),
		table_duration(buffer, "wait_max_ns", max), table_text(buffer, "quality", quality));
}

/* One row that leads from stage to stage. */
static void
add_arrow(json_t *rows)
{
	table_row(rows, 10, "   v", "", "", "", "", "", "", "", "", "");
}

enum stage { STAGE_RX, STAGE_HANDOVER, STAGE_QUEUE, STAGE_TX, STAGE_COUNT };

static bool
in_stage(const char *name, enum stage stage, const char *from, const char *to, const char *queue)
{
	switch (stage) {
	case STAGE_RX:
		return is_port_buffer(name, from, ".rx");
	case STAGE_HANDOVER:
		return is_handover(name);
	case STAGE_QUEUE:
		return is_queue(name, queue);
	default:
		return is_port_buffer(name, to, ".tx");
	}
}

static const struct table_column columns[] = {{"buffer", false}, {"fill", false}, {"now", true},
	{"most", true}, {"of", true}, {"packets", true}, {"dropped", true}, {"mean wait", true},
	{"max wait", true}, {"quality", false}};

static void
draw_way(FILE *out, const json_t *buffers, const char *what, const char *from, const char *to,
	const char *queue)
{
	json_t *rows = json_array(), *buffer;
	size_t index;

	for (unsigned stage = 0; stage < STAGE_COUNT; stage++) {
		bool first = true;

		json_array_foreach(buffers, index, buffer)
		{
			const char *name = json_string_value(json_object_get(buffer, "buffer"));

			if (name == NULL || !in_stage(name, stage, from, to, queue))
				continue;
			if (first && json_array_size(rows) > 0)
				add_arrow(rows);
			first = false;
			add_buffer(rows, buffer);
		}
	}
	fprintf(out, "%s: %s -> %s\n", what, from, to);
	table_print(out, columns, 10, rows, 2);
	json_decref(rows);
}

/* What lies on no way: pools, and buffers of names not known here. */
static void
draw_rest(FILE *out, const json_t *buffers, const json_t *paths)
{
	json_t *rows = json_array(), *buffer, *path;
	size_t index, p;

	json_array_foreach(buffers, index, buffer)
	{
		const char *name = json_string_value(json_object_get(buffer, "buffer"));
		bool drawn = name == NULL || is_handover(name) || is_queue(name, ".app.in") ||
			     is_queue(name, ".app.out");

		json_array_foreach(paths, p, path)
		{
			const char *wire = json_string_value(json_object_get(path, "wire"));
			const char *local = json_string_value(json_object_get(path, "service"));

			if (!drawn && wire != NULL && local != NULL)
				drawn = is_port_buffer(name, wire, ".rx") ||
					is_port_buffer(name, wire, ".tx") ||
					is_port_buffer(name, local, ".rx") ||
					is_port_buffer(name, local, ".tx");
		}
		if (!drawn)
			add_buffer(rows, buffer);
	}
	if (json_array_size(rows) > 0) {
		fprintf(out, "\nresources\n");
		table_print(out, columns, 10, rows, 2);
	}
	json_decref(rows);
}

void
screen_chain(FILE *out, const json_t *result, const struct bs_report_text *options)
{
	const json_t *buffers = json_object_get(result, "buffers");
	const json_t *paths = json_object_get(result, "paths");
	json_t *path;
	size_t index;

	(void)options;
	json_array_foreach(paths, index, path)
	{
		const char *wire = json_string_value(json_object_get(path, "wire"));
		const char *local = json_string_value(json_object_get(path, "service"));

		if (wire == NULL || local == NULL)
			continue;
		fputs(index == 0 ? "" : "\n", out);
		draw_way(out, buffers, "requests", wire, local, ".app.in");
		fputc('\n', out);
		draw_way(out, buffers, "responses", local, wire, ".app.out");
	}
	draw_rest(out, buffers, paths);
}
