/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Real records as inputs to begin with: records_seed DIRECTORY CAPTURE... puts what
 * the tracker tells of each capture into DIRECTORY/down, what the diagnosis
 * makes of that into DIRECTORY/up, and a journal of both into DIRECTORY/journal and
 * DIRECTORY/report.
 */
#include <libgen.h>

#include "bs_capture.h"
#include "bs_diag.h"
#include "bs_journal.h"
#include "bs_tracker.h"
#include "fuzz.h"

#define FILE_MAX 8000u /* a few RPCs: small inputs are fuzzed faster */

struct batch {
	_Alignas(8) uint8_t data[FILE_MAX];
	size_t bytes;
	uint32_t records;
};

static struct batch down, up;
static struct bs_diag *diag;

static void
append(struct batch *batch, const void *units, size_t bytes)
{
	if (batch->bytes + bytes > sizeof(batch->data))
		return;
	memcpy(batch->data + batch->bytes, units, bytes);
	batch->bytes += bytes;
	batch->records++;
}

static int
put(void *context, const void *units, unsigned count)
{
	(void)context;
	append(&down, units, (size_t)count * BS_UNIT_BYTES);
	bs_diag_feed(diag, units, (size_t)count * BS_UNIT_BYTES);
	return 0;
}

static void
verdict(void *context, const struct bs_rec_verdict *record, const struct bs_rpc_view *rpc)
{
	(void)context;
	append(&up, record, sizeof(*record));
	append(&up, rpc->rpc, sizeof(*rpc->rpc));
	append(&up, rpc->segments, rpc->rpc->segment_count * sizeof(rpc->segments[0]));
	append(&up, rpc->events, rpc->rpc->event_count * sizeof(rpc->events[0]));
}

static void
incident(void *context, const struct bs_rec_incident *record)
{
	(void)context;
	append(&up, record, sizeof(*record));
}

static void
threshold(void *context, const struct bs_rec_threshold *record)
{
	(void)context;
	append(&up, record, sizeof(*record));
}

static void
play(const char *path)
{
	const struct bs_diag_config diag_config = {.detect_ns = {0, 1, 1, 1, 1, 1},
		.settle_ns = 1,
		.output = {verdict, incident, threshold, NULL}};
	static struct bs_framers framers;
	struct bs_tracker_config config = {.max_flows = 4096,
		.max_rpcs = 4096,
		.frame_bytes = 1u << 20,
		.framers = &framers,
		.discover = true,
		.detect_ns = {0, 200000, 200000, 200000, 200000, 1000000},
		.idle_ns = 60000000000ull,
		.sink = {put, NULL}};
	char error[BS_CAPTURE_ERROR_BYTES];
	struct bs_capture *capture = bs_capture_open(path, error);
	struct bs_tracker *tracker;
	struct bs_packet packet;
	unsigned bad;

	if (capture == NULL)
		return;
	bs_framers_init(&framers, NULL, 0, &bad);
	diag = bs_diag_create(&diag_config);
	tracker = bs_tracker_create(&config);
	if (diag == NULL || tracker == NULL)
		abort();
	for (unsigned i = 0; i < 8; i++)
		bs_diag_slo(diag, i, NULL, 1); /* so that there are verdicts */
	while (bs_capture_next(capture, &packet) > 0) {
		const struct bs_arrival arrival = {
			.t_low = packet.t_ns, .t_poll = packet.t_ns, .exact = true};
		struct bs_tracked tracked;

		if (packet.parse == BS_PARSE_OK)
			bs_tracker_packet(tracker, &packet, &arrival, NULL, 0, &tracked);
		bs_diag_advance(diag, packet.t_ns);
	}
	bs_tracker_finish(tracker, packet.t_ns);
	bs_diag_advance(diag, packet.t_ns + 2000000000ull);
	bs_tracker_destroy(tracker);
	bs_diag_destroy(diag);
	bs_capture_close(capture);
}

static FILE *
open_in(const char *directory, const char *target, const char *name)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s/%s", directory, target, name);
	file = fopen(path, "wb");
	if (file == NULL) {
		perror(path);
		exit(1);
	}
	return file;
}

/* `prefix`: what the target has before the file. */
static void
write_journal(FILE *file, const uint8_t prefix[], size_t prefix_bytes)
{
	struct bs_journal_file head = {.byte_order = BS_JOURNAL_BYTE_ORDER,
		.version = BS_JOURNAL_VERSION,
		.node = 1,
		.journal = 1,
		.file = 1,
		.t_opened = 1,
		.first_block = 1};
	const struct batch *batches[] = {&down, &up};

	fwrite(prefix, 1, prefix_bytes, file);
	bs_journal_file_seal(&head);
	fwrite(&head, sizeof(head), 1, file);
	for (unsigned i = 0; i < 2; i++) {
		struct bs_journal_block block = {.bytes = (uint32_t)batches[i]->bytes,
			.records = batches[i]->records,
			.journal = 1,
			.sequence = i + 1};

		bs_journal_block_seal(&block, batches[i]->data);
		fwrite(&block, sizeof(block), 1, file);
		fwrite(batches[i]->data, batches[i]->bytes, 1, file);
	}
}

int
main(int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		const char *name = basename(argv[i]);
		FILE *file;

		down.bytes = up.bytes = down.records = up.records = 0;
		play(argv[i]);
		file = open_in(argv[1], "down", name);
		fputc((int)(down.bytes >> 8), file);
		fputc((int)(down.bytes & 0xff), file);
		fwrite(down.data, down.bytes, 1, file);
		fclose(file);
		file = open_in(argv[1], "up", name);
		fwrite(up.data, up.bytes, 1, file);
		fclose(file);
		file = open_in(argv[1], "journal", name);
		write_journal(file, (const uint8_t[]){8, 0}, 2); /* 297 bytes, nothing mended */
		fclose(file);
		file = open_in(argv[1], "report", name);
		write_journal(file, (const uint8_t[]){1}, 1);
		fclose(file);
	}
	return 0;
}
