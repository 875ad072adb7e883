/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A journal that somebody made: `bufscope report` reads it to its end, and what
 * it finds can be written: JSON is JSON, and text has nothing in it that a
 * terminal would obey.
 *
 * Input: bits; the file.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "journal_mend.h"
#include "output.h"
#include "report.h"
#include "report_head.h"

#define ALL 1u	  /* every RPC is written */
#define NARROW 2u /* into few columns */
#define LAST 4u	  /* only what is of the last second */
#define UTF8 0x10u
#define HAS_SLO 8u /* each RPC is too slow */

static void
check_json(const char *text, size_t bytes)
{
	json_t *parsed = json_loadb(text, bytes, 0, NULL);

	FUZZ_CHECK(json_is_object(parsed));
	json_decref(parsed);
}

static void
check_lines(const char *text, size_t bytes)
{
	while (bytes > 0) {
		const char *end = memchr(text, '\n', bytes);

		FUZZ_CHECK(end != NULL);
		check_json(text, (size_t)(end - text));
		bytes -= (size_t)(end + 1 - text);
		text = end + 1;
	}
}

static void
check_text(const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		FUZZ_CHECK(text[i] == '\n' || ((unsigned char)text[i] >= ' ' && text[i] != 0x7f));
}

static void
show(const struct report *report, unsigned bits)
{
	json_t *head = report_head_json(report);
	const struct output output = {
		.findings = &report->findings,
		.head = head,
		.no_rpc = "none\n",
		.head_text = report_head_text,
		.context = report,
	};
	struct output_options options = {.all = bits & ALL,
		.text = {.width = bits & NARROW ? 60 : 160, .utf8 = bits & UTF8}};
	static void (*const checks[])(const char *text, size_t bytes) = {
		[OUTPUT_TEXT] = check_text,
		[OUTPUT_JSON] = check_json,
		[OUTPUT_JSONL] = check_lines,
	};

	FUZZ_CHECK(head != NULL);
	for (unsigned format = OUTPUT_TEXT; format <= OUTPUT_JSONL; format++) {
		char *text = NULL;
		size_t bytes = 0;
		FILE *out = open_memstream(&text, &bytes);

		options.format = format;
		if (out == NULL)
			abort();
		FUZZ_CHECK(output_write(out, &output, &options) == 0);
		fclose(out);
		checks[format](text, bytes);
		free(text);
	}
	json_decref(head);
}

void
fuzz_one(const uint8_t *data, size_t bytes)
{
	struct fuzz_input input = {data, bytes};
	const unsigned bits = fuzz_u8(&input);
	struct bs_journal_reader *reader = bs_journal_reader_create();
	struct report *report = calloc(1, sizeof(*report));
	struct report_settings settings = {.since = 0};
	char path[32], error[REPORT_ERROR_BYTES] = "", error_slo[BS_OPTION_ERROR_BYTES];
	const char *const paths[] = {path};
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	size_t total;
	uint8_t *file = fuzz_take(&input, input.bytes, &total);

	if (fd < 0 || reader == NULL || report == NULL)
		abort();
	journal_mend(file, total);
	if (write(fd, file, total) != (ssize_t)total)
		abort();
	free(file);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	FUZZ_CHECK(inputs_open(&report->inputs, paths, 1, "fuzz", stderr) == 0);
	FUZZ_CHECK(report->inputs.count == 1);
	report->settings = &settings;
	if (bits & HAS_SLO)
		FUZZ_CHECK(slo_take(&settings.slos, "1ns", error_slo) == 0);
	inputs_sort(&report->inputs, reader);
	if (bits & LAST) {
		const uint64_t newest = report_newest(report, reader);

		settings.since = newest > 1000000000ull ? newest - 1000000000ull : 0;
	}
	FUZZ_CHECK(report_read(report, reader, error) == 0);
	show(report, bits);
	report_fini(report);
	free(report);
	bs_journal_reader_destroy(reader);
	close(fd);
}
