/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `bufscope report` on journals that the test writes: which of several tellings
 * of an RPC counts, runs, overlaps, times, damage, exit status.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bs_clock.h"
#include "bs_journal.h"
#include "instant.h"
#include "report_command.h"

#define T0 (1700000000ull * BS_NS_PER_S)
#define JOURNAL 55u
#define MAX_FILES 6u

struct rig {
	char directory[64];
	/* the block in hand */
	alignas(8) uint8_t records[BS_JOURNAL_BLOCK_BYTES];
	struct bs_journal_block block;
	FILE *file;
	char errors[4096];
};

static struct rig rig;

static int
set_up(void **state)
{
	(void)state;
	memset(&rig, 0, sizeof(rig));
	snprintf(rig.directory, sizeof(rig.directory), "/tmp/report-test.XXXXXX");
	return mkdtemp(rig.directory) == NULL ? -1 : chdir(rig.directory);
}

static int
tear_down(void **state)
{
	char name[16];

	(void)state;
	for (unsigned i = 0; i < MAX_FILES; i++) {
		snprintf(name, sizeof(name), "j.%u", i);
		unlink(name);
	}
	unlink("out");
	unlink("err");
	return chdir("/") == 0 ? rmdir(rig.directory) : -1;
}

/* --- writing ------------------------------------------------------------------------ */

static void
begin(const char *name, uint64_t first_block)
{
	struct bs_journal_file file = {
		.node = 1, .journal = JOURNAL, .file = first_block, .first_block = first_block};

	rig.file = fopen(name, "w");
	assert_non_null(rig.file);
	bs_journal_file_seal(&file);
	fwrite(&file, sizeof(file), 1, rig.file);
}

static void
add(void *record, enum bs_record_type type, size_t bytes)
{
	bs_record_head(record, type, 0);
	memcpy(rig.records + rig.block.bytes, record, bytes);
	rig.block.bytes += (uint32_t)bytes;
}

static void
end_block(uint64_t sequence)
{
	rig.block.journal = JOURNAL;
	rig.block.sequence = sequence;
	bs_journal_block_seal(&rig.block, rig.records);
	fwrite(&rig.block, sizeof(rig.block), 1, rig.file);
	fwrite(rig.records, 1, rig.block.bytes, rig.file);
	memset(&rig.block, 0, sizeof(rig.block));
}

static void
end(void)
{
	fclose(rig.file);
}

static void
add_run(uint64_t pid, uint16_t number, const char *service)
{
	struct bs_rec_hello hello = {.magic = BS_HELLO_MAGIC,
		.version = BS_RECORD_VERSION,
		.node = 1,
		.t_start = T0,
		.pid = pid};
	struct bs_rec_name name = {.kind = BS_NAME_SERVICE, .number = number};

	snprintf(name.name, sizeof(name.name), "%s", service);
	add(&hello, BS_REC_HELLO, sizeof(hello));
	add(&name, BS_REC_NAME, sizeof(name));
}

/* An RPC that the service worked on; with a verdict before it if `by` is not ~0. */
static void
add_rpc(uint64_t id, uint16_t service, uint64_t t, uint64_t latency_ns, unsigned by)
{
	struct bs_rec_rpc rpc = {
		.id = id,
		.ends = {.transport = 6, .ip_version = 4},
		.t_request_first = t,
		.t_request_last = t,
		.t_request_departure = t,
		.t_response_first = t + latency_ns,
		.t_response_last = t + latency_ns,
		.t_response_departure = t + latency_ns,
		.t_end = t + latency_ns,
		.segment_count = 1,
		.service = service,
		.outcome = BS_OUTCOME_ANSWERED,
	};
	struct bs_rec_segment segment = {.rpc_id = id,
		.end_ns = latency_ns,
		.buffer = BS_BUFFER_SERVICE,
		.cause = BS_CAUSE_COMPUTE};
	struct bs_rec_verdict verdict = {.rpc_id = id,
		.anomalous_by = (uint8_t)by,
		.has_root = 1,
		.root = {.buffer = BS_BUFFER_SERVICE, .cause = BS_CAUSE_HANG}};

	if (by != ~0u)
		add(&verdict, BS_REC_VERDICT, sizeof(verdict));
	add(&rpc, BS_REC_RPC, sizeof(rpc));
	add(&segment, BS_REC_SEGMENT, sizeof(segment));
}

static void
add_brief(uint16_t service, uint64_t t, uint32_t latency_ns)
{
	struct bs_rec_brief brief = {.t_end = t,
		.service = service,
		.outcome = BS_OUTCOME_ANSWERED,
		.request_ns = latency_ns / 4,
		.service_ns = latency_ns - latency_ns / 4};

	add(&brief, BS_REC_BRIEF, sizeof(brief));
}

/* --- reading --------------------------------------------------------------------------- */

/* Runs the command; its exit status. What it says on stderr is in rig.errors. */
static int
report(const char *line)
{
	char copy[256], *rest = copy, *argv[16] = {(char *)"report"};
	int argc = 1, status;
	ssize_t got;
	pid_t pid;
	int fd;

	snprintf(copy, sizeof(copy), "%s", line);
	while (argc < 15 && rest != NULL)
		argv[argc++] = strsep(&rest, " ");
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		fd = open("err", O_CREAT | O_TRUNC | O_WRONLY, 0600);
		dup2(fd, STDERR_FILENO);
		fd = open("out", O_CREAT | O_TRUNC | O_WRONLY, 0600);
		dup2(fd, STDOUT_FILENO);
		status = report_command(argc, argv);
		fflush(NULL);
		_exit(status);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	fd = open("err", O_RDONLY);
	got = read(fd, rig.errors, sizeof(rig.errors) - 1);
	close(fd);
	assert_true(got >= 0);
	rig.errors[got] = '\0';
	return WEXITSTATUS(status);
}

/* The answer in JSON; the caller's. */
static json_t *
report_json(const char *arguments)
{
	char line[256];
	json_t *answer;

	snprintf(line, sizeof(line), "--format json %s", arguments);
	assert_int_equal(report(line), 0);
	answer = json_load_file("out", JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(answer);
	return answer;
}

static json_int_t
counter(const json_t *answer, const char *name)
{
	const json_t *value = json_object_get(json_object_get(answer, "counters"), name);

	assert_true(json_is_integer(value));
	return json_integer_value(value);
}

static json_int_t
answered(const json_t *answer, const char *service)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(answer, "services"), i, one)
	{
		if (strcmp(json_string_value(json_object_get(one, "service")), service) == 0)
			return json_integer_value(json_object_get(one, "answered"));
	}
	return -1;
}

static size_t
anomalies(const json_t *answer)
{
	return json_array_size(json_object_get(answer, "anomalies"));
}

/* --- tests -------------------------------------------------------------------------------- */

static void
last_verdict_counts_and_else_the_last_telling(void **state)
{
	json_t *answer;
	const json_t *slowest, *anomaly;

	(void)state;
	begin("j.0", 1);
	add_run(10, 0, "kv");
	add_rpc(1, 0, T0, 1000000, ~0u);
	add_rpc(2, 0, T0, 2000000, ~0u);
	add_rpc(3, 0, T0, 3000000, BS_BY_EVIDENCE);
	end_block(1);
	add_rpc(1, 0, T0, 1000000, BS_BY_OUTLIER);
	add_rpc(2, 0, T0, 4000000, ~0u);
	add_rpc(3, 0, T0, 3000000, 0); /* revised: not anomalous */
	add_rpc(3, 0, T0, 5000000, ~0u);
	add_brief(0, T0, 800);
	end_block(2);
	end();
	answer = report_json("j.0");
	assert_int_equal(answered(answer, "kv"), 4);
	assert_int_equal(anomalies(answer), 1);
	anomaly = json_array_get(json_object_get(answer, "anomalies"), 0);
	assert_string_equal(json_string_value(json_object_get(anomaly, "id")), "0000000000000001");
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(anomaly, "root_cause"), "cause")),
		"hang");
	slowest = json_object_get(answer, "slowest");
	assert_int_equal(json_array_size(slowest), 3);
	assert_int_equal(
		json_integer_value(json_object_get(json_array_get(slowest, 0), "latency_ns")),
		4000000);
	assert_int_equal(
		json_integer_value(json_object_get(json_array_get(slowest, 1), "latency_ns")),
		3000000);
	/* one that was not decided has a cause of its own, too */
	assert_true(json_is_object(json_object_get(json_array_get(slowest, 0), "root_cause")));
	json_decref(answer);
}

static void
numbers_of_different_runs_are_not_mixed(void **state)
{
	json_t *answer;

	(void)state;
	begin("j.0", 1);
	add_run(10, 0, "kv");
	add_rpc(1, 0, T0, 1000000, BS_BY_SLO);
	add_brief(0, T0, 800);
	end_block(1);
	add_run(11, 0, "web");
	add_rpc(1, 0, T0, 2000000, ~0u);
	add_run(11, 0, "web"); /* told again: the same run */
	add_run(12, 3, "kv");
	add_brief(3, T0, 800);
	end_block(2);
	end();
	answer = report_json("j.0");
	assert_int_equal(counter(answer, "runs"), 3);
	assert_int_equal(answered(answer, "kv"), 3);
	assert_int_equal(answered(answer, "web"), 1);
	assert_int_equal(anomalies(answer), 1);
	json_decref(answer);
}

/* Blocks 1 to 4 in j.1 and j.0, in this order; 2 and 3 again in j.2. */
static void
write_three(void)
{
	static const struct {
		const char *name;
		unsigned from, to;
	} files[] = {{"j.1", 1, 2}, {"j.0", 3, 4}, {"j.2", 2, 3}};

	for (unsigned f = 0; f < 3; f++) {
		begin(files[f].name, files[f].from);
		add_run(10, 0, "kv");
		rig.block.flags = BS_JOURNAL_REPEATS;
		end_block(files[f].from);
		for (unsigned b = files[f].from; b <= files[f].to; b++) {
			add_brief(0, T0 + b * BS_NS_PER_S, 1000 * b);
			end_block(b);
		}
		end();
	}
}

static void
files_are_ordered_and_a_block_counts_once(void **state)
{
	static const char *const orders[] = {"j.0 j.1 j.2", "j.2 j.1 j.0", "j", "j.2 j"};
	json_t *answer;

	(void)state;
	write_three();
	for (unsigned i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		answer = report_json(orders[i]);
		assert_int_equal(answered(answer, "kv"), 4);
		assert_int_equal(counter(answer, "missing_blocks"), 0);
		assert_int_equal(counter(answer, "runs"), 1);
		json_decref(answer);
	}
	answer = report_json("j.0 j.2");
	assert_int_equal(answered(answer, "kv"), 3);
	assert_int_equal(counter(answer, "repeated_blocks"), 1);
	json_decref(answer);
	/* without what lies between */
	unlink("j.2");
	begin("j.0", 4);
	add_brief(0, T0, 1000);
	end_block(4);
	end();
	answer = report_json("j");
	assert_int_equal(counter(answer, "missing_blocks"), 1);
	json_decref(answer);
}

static void
time_bounds_hold_by_the_end_of_the_rpc(void **state)
{
	static const struct {
		const char *arguments;
		json_int_t answered, outside;
	} cases[] = {
		{"j.0", 3, 0},
		{"--since 1700000002000000000 j.0", 2, 1},
		{"--until 1700000002000000000 j.0", 2, 1},
		{"--since 1700000002000000000 --until 1700000002000000000 j.0", 1, 2},
		{"--last 1s j.0", 2, 1},
		{"--last 1h j.0", 3, 0},
		{"--since 2023-11-14T22:13:22Z j.0", 2, 1},
	};

	(void)state;
	begin("j.0", 1);
	add_run(10, 0, "kv");
	for (unsigned i = 1; i <= 3; i++)
		add_brief(0, T0 + i * BS_NS_PER_S, 1000);
	rig.block.t_last = T0 + 3 * BS_NS_PER_S;
	end_block(1);
	end();
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *answer = report_json(cases[i].arguments);

		assert_int_equal(answered(answer, "kv"), cases[i].answered);
		assert_int_equal(counter(answer, "outside"), cases[i].outside);
		json_decref(answer);
	}
	assert_int_equal(report("--last 1s --since 13:00 j.0"), 2);
	assert_int_equal(report("--since yesterday j.0"), 2);
}

static void
slo_makes_anomalous_what_took_longer(void **state)
{
	json_t *answer;

	(void)state;
	begin("j.0", 1);
	add_run(10, 0, "kv");
	add_rpc(1, 0, T0, 1000000, ~0u);
	add_rpc(2, 0, T0, 3000000, 0);
	add_rpc(3, 0, T0, 4000000, ~0u);
	add_brief(0, T0, 2500000);
	end_block(1);
	end();
	answer = report_json("--slo kv=2ms j.0");
	assert_int_equal(anomalies(answer), 2);
	assert_int_equal(counter(answer, "brief_over_slo"), 1);
	json_decref(answer);
	assert_int_equal(report("--fail-on-anomaly --slo 2ms j.0"), 3);
	assert_int_equal(report("--fail-on-anomaly j.0"), 0);
	assert_int_equal(report("--slo web=2ms j.0"), 1);
	assert_non_null(strstr(rig.errors, "no service \"web\""));
}

/* Changes one byte of a file. */
static void
damage(const char *name, long offset)
{
	FILE *file = fopen(name, "r+");
	int byte;

	assert_non_null(file);
	fseek(file, offset, SEEK_SET);
	byte = fgetc(file);
	fseek(file, offset, SEEK_SET);
	fputc(byte ^ 0x10, file);
	fclose(file);
}

static void
damage_is_told_with_file_and_offset_and_read_around(void **state)
{
	json_t *answer;

	(void)state;
	begin("j.0", 1);
	for (unsigned b = 1; b <= 4; b++) {
		add_brief(0, T0, 1000);
		end_block(b);
	}
	end();
	damage("j.0", 64 + 128 + 64 + 5); /* records of the second */
	assert_int_equal(truncate("j.0", 64 + 4 * 128 - 1), 0);
	answer = report_json("j.0");
	assert_string_equal(rig.errors,
		"bufscope report: j.0: offset 192: block's CRC is wrong, 128 bytes skipped\n"
		"bufscope report: j.0: offset 448: block torn: the file ends in it, 127 bytes "
		"skipped\n");
	assert_int_equal(counter(answer, "blocks"), 2);
	assert_int_equal(counter(answer, "damages"), 2);
	assert_int_equal(counter(answer, "skipped_bytes"), 255);
	assert_int_equal(counter(answer, "missing_blocks"), 1);
	json_decref(answer);
}

static void
hostile_records_in_a_right_block_cost_its_rest(void **state)
{
	struct bs_rec_verdict lone = {.rpc_id = 1};
	json_t *answer;

	(void)state;
	begin("j.0", 1);
	add_brief(0, T0, 1000);
	add(&lone, BS_REC_VERDICT, sizeof(lone));
	add_brief(0, T0, 1000);
	end_block(1);
	add_brief(0, T0, 1000);
	end_block(UINT64_MAX);
	end();
	answer = report_json("j.0");
	assert_int_equal(counter(answer, "records"), 2);
	assert_string_equal(rig.errors,
		"bufscope report: j.0: offset 192: no valid record, in a block whose CRC is right, "
		"256 bytes skipped\n");
	json_decref(answer);
}

static void
exit_status_is_1_only_if_nothing_can_be_read(void **state)
{
	FILE *file;

	(void)state;
	write_three();
	file = fopen("j.3", "w");
	for (unsigned i = 0; i < 1000; i++)
		fputs("no journal", file);
	fclose(file);
	assert_int_equal(report("j"), 0);
	assert_string_equal(
		rig.errors, "bufscope report: j.3: offset 0: not a journal, 10000 bytes skipped\n");
	assert_int_equal(report("j.3"), 1);
	assert_non_null(strstr(rig.errors, "bufscope report: nothing could be read\n"));
	assert_int_equal(report("k j.0"), 0);
	assert_non_null(strstr(rig.errors, "k: there is no such file, and no k.0 of a journal"));
	assert_int_equal(report("k"), 1);
	assert_int_equal(report("/tmp"), 1);
	assert_non_null(strstr(rig.errors, "/tmp: not a regular file"));
	/* files that are not used yet are no damage */
	fclose(fopen("j.3", "w"));
	assert_int_equal(report("j.3"), 0);
	assert_string_equal(rig.errors, "");
}

static void
instants_are_read_as_people_write_them(void **state)
{
	static const struct {
		const char *text;
		uint64_t t;
	} cases[] = {
		{"2023-11-14T22:13:20Z", 1700000000ull * BS_NS_PER_S},
		{"2023-11-14 22:13:20", 1700000000ull * BS_NS_PER_S},
		{"2023-11-14 22:13:20.25", 1700000000250000000ull},
		{"2023-11-14 22:13Z", 1699999980ull * BS_NS_PER_S},
		{"22:13", 1699999980ull * BS_NS_PER_S},
		{"1700000000250000000", 1700000000250000000ull},
	};
	static const char *const wrong[] = {"", "now", "2023-11-14", "25:00", "2023-13-01 00:00",
		"22:13:", "22:13:61", "22:13:20.5x", "2023-11-14 22:13:20 Z", "-5",
		"99999999999999999999", "9999-01-01 00:00"};
	char text[INSTANT_TEXT_BYTES];
	uint64_t t;

	(void)state;
	setenv("TZ", "UTC", 1);
	tzset();
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(instant_parse(cases[i].text, T0, &t), 0);
		assert_int_equal(t, cases[i].t);
	}
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (instant_parse(wrong[i], T0, &t) == 0)
			fail_msg("\"%s\" is taken", wrong[i]);
	assert_string_equal(instant_text(1700000000250000000ull, text), "2023-11-14 22:13:20.250");
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(last_verdict_counts_and_else_the_last_telling),
		TEST(numbers_of_different_runs_are_not_mixed),
		TEST(files_are_ordered_and_a_block_counts_once),
		TEST(time_bounds_hold_by_the_end_of_the_rpc),
		TEST(slo_makes_anomalous_what_took_longer),
		TEST(damage_is_told_with_file_and_offset_and_read_around),
		TEST(hostile_records_in_a_right_block_cost_its_rest),
		TEST(exit_status_is_1_only_if_nothing_can_be_read),
		cmocka_unit_test(instants_are_read_as_people_write_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
