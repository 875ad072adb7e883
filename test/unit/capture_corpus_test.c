/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Real captures: every file under $BUFSCOPE_PCAPS (by default ../shared/pcaps of
 * the tree) is read to its end, and gives as many packets as its TRUTH.jsonl,
 * made with other tools, says. Skipped where there are none.
 *
 * One kind of file is an exception and printed as such: libpcap refuses pcapng
 * with interfaces of several link types. Then the refusal has to say so.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fts.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bs_capture.h"

static char corpus[PATH_MAX];

#define MIXED_LINK_TYPES "different from the type of the first interface"

/*
 * Reads the file to its end and prints what went wrong. *packets is set, and
 * true returned, unless libpcap refused its mix of link types.
 */
static bool
read_all(const char *path, uint64_t *packets, unsigned *failures)
{
	char error[BS_CAPTURE_ERROR_BYTES];
	struct bs_capture *capture = bs_capture_open(path, error);
	struct bs_capture_info info;
	struct bs_packet p;
	uint64_t counts[BS_PARSE_COUNT] = {0}, sum = 0;
	bool mixed = false;
	int result;

	*packets = 0;
	if (capture == NULL) {
		print_message("%s\n", error);
		++*failures;
		return true;
	}
	while ((result = bs_capture_next(capture, &p)) == 1)
		counts[p.parse]++;
	bs_capture_info(capture, &info);
	if (result != 0 || info.truncated_at_packet != 0) {
		mixed = result == -EBADMSG &&
			strstr(bs_capture_error(capture), MIXED_LINK_TYPES) != NULL;
		print_message("%s%s\n", mixed ? "not read: " : "", bs_capture_error(capture));
		*failures += !mixed;
	}
	bs_capture_close(capture);
	for (unsigned i = 0; i < BS_PARSE_COUNT; i++)
		sum += counts[i];
	assert_int_equal(sum, info.packets);
	*packets = info.packets;
	return !mixed;
}

/* Files of TRUTH.jsonl: the packet counts agree. */
static void
known_captures_have_the_packets_that_other_tools_count(void **state)
{
	char path[PATH_MAX + 16], line[65536];
	unsigned files = 0, failures = 0;
	FILE *truth;

	(void)state;
	if (corpus[0] == '\0')
		skip();
	snprintf(path, sizeof(path), "%s/TRUTH.jsonl", corpus);
	truth = fopen(path, "r");
	assert_non_null(truth);
	while (fgets(line, sizeof(line), truth) != NULL) {
		json_t *row = json_loads(line, 0, NULL);
		const char *file = json_string_value(json_object_get(row, "file"));
		json_int_t expected = json_integer_value(json_object_get(row, "pkts"));

		assert_non_null(file);
		char full[2 * PATH_MAX];

		snprintf(full, sizeof(full), "%s/%s", corpus, file);
		uint64_t packets;

		if (read_all(full, &packets, &failures) && packets != (uint64_t)expected) {
			print_message("%s: %llu packets, expected %lld\n", file,
				(unsigned long long)packets, (long long)expected);
			failures++;
		}
		files++;
		json_decref(row);
	}
	fclose(truth);
	assert_true(files > 0);
	assert_int_equal(failures, 0);
}

static bool
is_capture(const char *name)
{
	return strstr(name, ".pcap") != NULL || strstr(name, ".cap") != NULL;
}

static void
every_capture_is_read_to_its_end(void **state)
{
	char *roots[] = {corpus, NULL};
	unsigned files = 0, failures = 0;
	FTS *tree;
	FTSENT *entry;

	(void)state;
	if (corpus[0] == '\0')
		skip();
	tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	assert_non_null(tree);
	while ((entry = fts_read(tree)) != NULL) {
		if (entry->fts_info != FTS_F || !is_capture(entry->fts_name))
			continue;
		uint64_t packets;

		if (read_all(entry->fts_path, &packets, &failures) && packets == 0) {
			print_message("%s: no packet\n", entry->fts_path);
			failures++;
		}
		files++;
	}
	fts_close(tree);
	assert_true(files > 0);
	assert_int_equal(failures, 0);
}

int
main(void)
{
	const char *directory = getenv("BUFSCOPE_PCAPS");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_captures_have_the_packets_that_other_tools_count),
		cmocka_unit_test(every_capture_is_read_to_its_end),
	};

	if (directory == NULL)
		directory = "../shared/pcaps";
	if (access(directory, R_OK) == 0)
		snprintf(corpus, sizeof(corpus), "%s", directory);
	else
		printf("skipped: no captures in %s (set BUFSCOPE_PCAPS)\n", directory);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
