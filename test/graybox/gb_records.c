/* SPDX-License-Identifier: BSD-3-Clause */
/* See gb_records.h. */
#include "gb_records.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bs_record.h"

void
gb_connect(struct gb *gb)
{
	int ends[2];

	if (gb->analyzer >= 0)
		close(gb->analyzer);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	gb->analyzer = ends[0];
	bs_collector_connect(gb->dataplane->collector, ends[1]);
}

/* --- in ---------------------------------------------------------------------------- */

static void
keep(struct gb *gb, const void *record, size_t bytes)
{
	struct gb_record *kept;

	gb->records = realloc(gb->records, (gb->record_count + 1) * sizeof(gb->records[0]));
	assert_non_null(gb->records);
	kept = &gb->records[gb->record_count++];
	kept->bytes = bytes;
	kept->units = malloc(bytes);
	assert_non_null(kept->units);
	memcpy(kept->units, record, bytes);
}

const char *
gb_read_batch(struct gb *gb, const void *batch, size_t bytes)
{
	const uint8_t *data = batch;
	const struct bs_record *record;
	size_t offset = 0;
	int error = 0;

	while ((record = bs_record_next(batch, bytes, &offset, &error)) != NULL) {
		size_t at = (size_t)((const uint8_t *)record - data), group_bytes = offset - at;
		struct bs_rpc_view view;
		unsigned bad;

		if (record->type == BS_REC_SEGMENT)
			return "a segment outside of a group";
		if (record->type == BS_REC_RPC) {
			if (bs_rpc_view(record, bytes - at, &view, &group_bytes) != 0)
				return "an RPC that is no whole group";
			if (bs_rpc_check_tiling(&view, &bad) != 0)
				return "segments that do not tile the latency";
			offset = at + group_bytes;
		}
		keep(gb, record, group_bytes);
	}
	return error == 0 ? NULL : "a record that is none";
}

void
gb_collect(struct gb *gb, unsigned turns)
{
	static uint64_t batch[BS_BATCH_MAX_BYTES / sizeof(uint64_t)];

	for (unsigned i = 0; i < turns; i++) {
		bs_collector_turn(gb->dataplane->collector);
		for (;;) {
			ssize_t n = recv(gb->analyzer, batch, sizeof(batch), MSG_DONTWAIT);
			const char *wrong;

			if (n <= 0)
				break;
			wrong = gb_read_batch(gb, batch, (size_t)n);
			if (wrong != NULL)
				fail_msg("the collector sent %s", wrong);
		}
	}
}

void
gb_forget(struct gb *gb)
{
	for (size_t i = 0; i < gb->record_count; i++)
		free(gb->records[i].units);
	free(gb->records);
	gb->records = NULL;
	gb->record_count = 0;
}

/* --- asked for ------------------------------------------------------------------------ */

const void *
gb_record(const struct gb *gb, unsigned type, unsigned n)
{
	for (size_t i = 0; i < gb->record_count; i++) {
		const struct bs_record *record = (const void *)gb->records[i].units;

		if (record->type == type && n-- == 0)
			return record;
	}
	return NULL;
}

unsigned
gb_record_count(const struct gb *gb, unsigned type)
{
	unsigned n = 0;

	while (gb_record(gb, type, n) != NULL)
		n++;
	return n;
}

struct bs_rpc_view
gb_rpc(const struct gb *gb, unsigned n)
{
	const struct bs_rec_rpc *rpc = gb_record(gb, BS_REC_RPC, n);
	struct bs_rpc_view view = {0};
	size_t bytes;

	if (rpc == NULL)
		fail_msg("no RPC number %u", n);
	else
		assert_int_equal(bs_rpc_view(rpc, BS_RPC_GROUP_MAX_UNITS * (size_t)BS_UNIT_BYTES,
					 &view, &bytes),
			0);
	return view;
}

const struct bs_rec_event *
gb_episode(const struct gb *gb, unsigned type, uint16_t buffer, unsigned n)
{
	const struct bs_rec_event *event;

	for (unsigned i = 0; (event = gb_record(gb, BS_REC_EVENT, i)) != NULL; i++) {
		if (event->type == type && event->buffer == buffer && n-- == 0)
			return event;
	}
	return NULL;
}

const struct bs_rec_event *
gb_event(const struct bs_rpc_view *rpc, unsigned type, uint16_t buffer)
{
	for (unsigned i = 0; i < rpc->rpc->event_count; i++) {
		if (rpc->events[i].type == type && rpc->events[i].buffer == buffer)
			return &rpc->events[i];
	}
	return NULL;
}

const char *
gb_check_parts(const struct bs_rpc_view *rpc, const struct gb_part *parts, unsigned count)
{
	static char text[8192];
	size_t at = 0;
	unsigned bad = 0;
	bool same = rpc->rpc->segment_count == count;

	if (bs_rpc_check_tiling(rpc, &bad) != 0)
		return "the segments do not tile the latency";
	for (unsigned i = 0; i < count && same; i++) {
		const struct bs_rec_segment *segment = &rpc->segments[i];

		same = segment->end_ns - segment->begin_ns == parts[i].ns &&
		       segment->buffer == parts[i].buffer && segment->cause == parts[i].cause &&
		       segment->detail == parts[i].detail;
	}
	if (same)
		return NULL;
	for (unsigned i = 0; i < rpc->rpc->segment_count && at < sizeof(text) - 160; i++) {
		const struct bs_rec_segment *segment = &rpc->segments[i];

		at += (size_t)snprintf(text + at, sizeof(text) - at, "is %llu ns buffer %u %s %s\n",
			(unsigned long long)(segment->end_ns - segment->begin_ns), segment->buffer,
			bs_cause_text(segment->cause), bs_detail_text(segment->detail));
	}
	for (unsigned i = 0; i < count && at < sizeof(text) - 160; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at,
			"not %llu ns buffer %u %s %s\n", (unsigned long long)parts[i].ns,
			parts[i].buffer, bs_cause_text(parts[i].cause),
			bs_detail_text(parts[i].detail));
	return text;
}
