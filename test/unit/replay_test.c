/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `bufscope replay` on captures written here: DNS over UDP, one datagram a
 * message, so that every expected value is a difference of two stamps.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "frame.h"

#define T0 1700000000000000000ull
#define CLIENT 0x0a000001u
#define SERVER 0x0a000002u /* 10.0.0.2 */

static char directory[] = "/tmp/replay_test.XXXXXX";

static const char *
in_directory(const char *name)
{
	static char paths[8][128];
	static unsigned next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
	return path;
}

/* pcap with ns stamps: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-04.html */
static FILE *
pcap_begin(const char *name)
{
	static const uint32_t header[] = {0xa1b23c4d, 4 << 16 | 2, 0, 0, 65535, 1};
	FILE *file = fopen(in_directory(name), "w");

	assert_non_null(file);
	assert_int_equal(fwrite(header, sizeof(header), 1, file), 1);
	return file;
}

static void
pcap_frame(FILE *file, uint64_t t, const struct frame *f)
{
	const uint32_t header[] = {
		(uint32_t)(t / 1000000000), (uint32_t)(t % 1000000000), f->n, f->n};

	assert_int_equal(fwrite(header, sizeof(header), 1, file), 1);
	assert_int_equal(fwrite(f->bytes, f->n, 1, file), 1);
}

/* A query for, or the answer to, "<label>.test" A (RFC 1035 section 4), between ports. */
static struct frame
dns(bool answer, unsigned id, const char *label, unsigned client_port)
{
	struct frame f;

	frame_ether(&f, 0x0800);
	frame_ipv4(&f, 17, answer ? SERVER : CLIENT, answer ? CLIENT : SERVER);
	frame_udp(&f, answer ? 53 : client_port, answer ? client_port : 53,
		(unsigned)(12 + 1 + strlen(label) + 6 + 4));
	frame_u16(&f, id);
	frame_u16(&f, answer ? 0x8180 : 0x0100);
	frame_u16(&f, 1);
	frame_u16(&f, 0);
	frame_u16(&f, 0);
	frame_u16(&f, 0);
	frame_u8(&f, (unsigned)strlen(label));
	frame_put(&f, label, strlen(label));
	frame_put(&f, "\4test", 6);
	frame_u16(&f, 1);
	frame_u16(&f, 1);
	frame_end_ip(&f);
	return f;
}

/* Runs the command with blanks between its arguments; "%" stands for the directory. */
static int
run(const char *line)
{
	char copy[512], *argv[24], *rest = copy;
	char words[24][128];
	int argc = 0;

	snprintf(copy, sizeof(copy), "replay %s", line);
	for (char *word; argc < 23 && (word = strsep(&rest, " ")) != NULL; argc++) {
		char *percent = strchr(word, '%');

		if (percent != NULL)
			snprintf(words[argc], sizeof(words[0]), "%.*s%s%s", (int)(percent - word),
				word, directory, percent + 1);
		else
			snprintf(words[argc], sizeof(words[0]), "%s", word);
		argv[argc] = words[argc];
	}
	argv[argc] = NULL;
	return replay_command(argc, argv);
}

static json_t *
run_json(const char *line, int status)
{
	char with_output[512];
	json_error_t error;
	json_t *json;

	snprintf(with_output, sizeof(with_output), "--format json -o %%/out.json %s", line);
	assert_int_equal(run(with_output), status);
	json = json_load_file(in_directory("out.json"), 0, &error);
	if (json == NULL)
		fail_msg("line %d: %s", error.line, error.text);
	return json;
}

static const json_t *
at(const json_t *json, const char *key, size_t index)
{
	const json_t *element = json_array_get(json_object_get(json, key), index);

	if (element == NULL)
		fail_msg("%s[%zu] is missing", key, index);
	return element;
}

static void
assert_number(const json_t *json, const char *key, json_int_t value)
{
	const json_t *number = json_object_get(json, key);

	if (!json_is_integer(number))
		fail_msg("%s is no number", key);
	assert_int_equal(json_integer_value(number), value);
}

static void
assert_text(const json_t *json, const char *key, const char *text)
{
	const char *value = json_string_value(json_object_get(json, key));

	if (value == NULL)
		fail_msg("%s is no text", key);
	assert_string_equal(value, text);
}

/* Three lookups of 1.000001, 2 and 3 ms, one without an answer, one frame that is not IP. */
static void
write_lookups(void)
{
	FILE *file = pcap_begin("lookups.pcap");
	struct frame f;

	f = dns(false, 1, "a", 40001), pcap_frame(file, T0, &f);
	f = dns(true, 1, "a", 40001), pcap_frame(file, T0 + 1000001, &f);
	f = dns(false, 2, "b", 40001), pcap_frame(file, T0 + 10000000, &f);
	f = dns(false, 3, "c", 40001), pcap_frame(file, T0 + 10500000, &f);
	f = dns(true, 3, "c", 40001), pcap_frame(file, T0 + 12500000, &f);
	f = dns(true, 2, "b", 40001), pcap_frame(file, T0 + 13000000, &f);
	frame_ether(&f, 0x0806);
	frame_fill(&f, 0, 46);
	pcap_frame(file, T0 + 14000000, &f);
	f = dns(false, 4, "d", 40001), pcap_frame(file, T0 + 20000000, &f);
	fclose(file);
}

static void
lookups_have_their_latency_to_the_nanosecond(void **state)
{
	static const json_int_t latencies[] = {1000001, 3000000, 2000000};
	json_t *json;

	(void)state;
	write_lookups();
	json = run_json("--all %/lookups.pcap", 0);
	for (size_t i = 0; i < 3; i++) {
		const json_t *rpc = at(json, "rpcs", i);

		assert_number(rpc, "latency_ns", latencies[i]);
		assert_text(rpc, "outcome", "answered");
		assert_text(rpc, "protocol", "dns");
	}
	assert_text(at(json, "rpcs", 0), "t_request_first", "1700000000000000000");
	assert_text(at(json, "rpcs", 0), "t_response_last", "1700000000001000001");
	assert_true(json_is_null(json_object_get(at(json, "rpcs", 3), "latency_ns")));
	assert_int_equal(json_array_size(json_object_get(json, "rpcs")), 4);
	json_decref(json);
}

static void
every_packet_is_in_one_counter_and_every_rpc_in_one_service(void **state)
{
	json_t *json;
	const json_t *service, *latency, *input;

	(void)state;
	write_lookups();
	json = run_json("%/lookups.pcap", 0);
	assert_number(json_object_get(json, "counters"), "tcp_udp", 7);
	assert_number(json_object_get(json, "counters"), "not_ip", 1);
	assert_number(json_object_get(json, "counters"), "not_followed", 0);
	input = at(json, "inputs", 0);
	assert_number(input, "packets", 8);
	assert_text(input, "t_last", "1700000000020000000");
	assert_true(json_is_null(json_object_get(input, "truncated_at_packet")));
	assert_text(input, "path", in_directory("lookups.pcap"));
	assert_string_equal(json_string_value(at(input, "link_types", 0)), "EN10MB");
	service = at(json, "services", 0);
	assert_number(service, "rpcs", 4);
	assert_number(service, "answered", 3);
	latency = json_object_get(service, "latency_ns");
	assert_number(latency, "min", 1000001);
	assert_number(latency, "max", 3000000);
	assert_null(json_object_get(json, "rpcs"));
	assert_number(at(json, "slowest", 0), "latency_ns", 3000000);
	assert_number(at(json, "slowest", 2), "latency_ns", 1000001);
	assert_int_equal(json_array_size(json_object_get(json, "slowest")), 3);
	json_decref(json);
}

static void
rpc_over_its_slo_is_anomalous_and_can_be_the_exit_status(void **state)
{
	json_t *json;

	(void)state;
	write_lookups();
	json = run_json("--slo 2500us --fail-on-anomaly %/lookups.pcap", 3);
	assert_text(at(json, "anomalies", 0), "label", "A b.test");
	assert_text(at(at(json, "anomalies", 0), "segments", 0), "buffer", "service");
	json_decref(json);
	json = run_json("--slo 2500us %/lookups.pcap", 0);
	assert_true(json_array_size(json_object_get(json, "anomalies")) >= 1);
	json_decref(json);
}

static void
slo_of_one_service_is_found_by_its_name(void **state)
{
	json_t *json;

	(void)state;
	write_lookups();
	json = run_json("--slo 10.0.0.2:53=1us --slo 1h --fail-on-anomaly %/lookups.pcap", 3);
	assert_true(json_array_size(json_object_get(json, "anomalies")) >= 3);
	json_decref(json);
	assert_int_equal(run("--slo nobody=1ms -o %/none %/lookups.pcap"), 1);
	assert_int_equal(access(in_directory("none"), F_OK), -1);
}

static void
two_files_are_read_as_one_in_order_of_time(void **state)
{
	FILE *queries = pcap_begin("queries.pcap"), *answers = pcap_begin("answers.pcap");
	struct frame f;
	json_t *json;

	(void)state;
	for (unsigned i = 1; i <= 3; i++) {
		f = dns(false, i, "x", 40002), pcap_frame(queries, T0 + i * 1000000, &f);
		f = dns(true, i, "x", 40002), pcap_frame(answers, T0 + i * 1000000 + 77, &f);
	}
	fclose(queries);
	fclose(answers);
	json = run_json("--all %/answers.pcap %/queries.pcap", 0);
	for (size_t i = 0; i < 3; i++)
		assert_number(at(json, "rpcs", i), "latency_ns", 77);
	json_decref(json);
}

static void
packet_older_than_the_one_before_is_counted_and_takes_its_time(void **state)
{
	FILE *file = pcap_begin("back.pcap");
	struct frame f;
	json_t *json;

	(void)state;
	f = dns(false, 1, "x", 40003), pcap_frame(file, T0 + 500, &f);
	f = dns(true, 1, "x", 40003), pcap_frame(file, T0, &f);
	fclose(file);
	json = run_json("--all %/back.pcap", 0);
	assert_number(at(json, "inputs", 0), "backwards", 1);
	assert_number(at(json, "rpcs", 0), "latency_ns", 0);
	json_decref(json);
}

static void
file_cut_short_gives_what_is_before_the_cut(void **state)
{
	struct stat status;
	json_t *json;

	(void)state;
	write_lookups();
	assert_int_equal(stat(in_directory("lookups.pcap"), &status), 0);
	assert_int_equal(truncate(in_directory("lookups.pcap"), status.st_size - 1), 0);
	json = run_json("%/lookups.pcap", 0);
	assert_number(at(json, "inputs", 0), "packets", 7);
	assert_number(at(json, "inputs", 0), "truncated_at_packet", 8);
	assert_number(at(json, "services", 0), "rpcs", 3);
	json_decref(json);
}

static char *
contents(const char *name)
{
	static char text[65536];
	FILE *file = fopen(in_directory(name), "r");

	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	return text;
}

static void
hostile_name_in_a_query_does_not_reach_the_terminal(void **state)
{
	static const char *const formats[] = {"text", "json", "jsonl"};
	FILE *file = pcap_begin("hostile.pcap");
	struct frame f;

	(void)state;
	f = dns(false, 1, "\x1b[2J\r\xff\x9b", 40004), pcap_frame(file, T0, &f);
	f = dns(true, 1, "\x1b[2J\r\xff\x9b", 40004), pcap_frame(file, T0 + 9, &f);
	fclose(file);
	for (unsigned i = 0; i < 3; i++) {
		char line[128];

		snprintf(line, sizeof(line), "--all --format %s -o %%/out %%/hostile.pcap",
			formats[i]);
		assert_int_equal(run(line), 0);
		for (const char *c = contents("out"); *c != '\0'; c++)
			assert_true(*c == '\n' || (*c >= 0x20 && *c < 0x7f));
		assert_non_null(strcasestr(contents("out"), "[2J"));
	}
}

static void
jsonl_has_one_line_for_each_rpc(void **state)
{
	unsigned lines = 0;
	char *rest, *line;

	(void)state;
	write_lookups();
	assert_int_equal(run("--format jsonl -o %/out %/lookups.pcap"), 0);
	rest = contents("out");
	while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
		json_t *rpc = json_loads(line, 0, NULL);

		assert_non_null(rpc);
		json_decref(rpc);
		lines++;
	}
	assert_int_equal(lines, 4);
}

static void
config_names_services_and_sets_their_slo(void **state)
{
	FILE *file = fopen(in_directory("config.json"), "w");
	json_t *json;

	(void)state;
	write_lookups();
	assert_non_null(file);
	fputs("{\"ports\":{\"w\":{\"device\":[\"net_null0\"]},\"s\":{\"device\":[\"net_null1\"]}}"
	      ","
	      "\"paths\":[{\"wire\":\"w\",\"service\":\"s\"}],"
	      "\"services\":[{\"name\":\"names\",\"address\":\"10.0.0.2\",\"port\":53,"
	      "\"protocol\":\"dns\",\"slo\":\"2500us\"}]}",
		file);
	fclose(file);
	assert_int_equal(chmod(in_directory("config.json"), 0600), 0);
	json = run_json("--config %/config.json --fail-on-anomaly %/lookups.pcap", 3);
	assert_text(at(json, "services", 0), "service", "names");
	assert_true(json_is_false(json_object_get(at(json, "slowest", 0), "protocol_guessed")));
	json_decref(json);
}

static void
wrong_usage_is_status_2_and_failure_1(void **state)
{
	(void)state;
	write_lookups();
	assert_int_equal(run("--help"), 0);
	assert_int_equal(run("--format json"), 2);
	assert_int_equal(run("--format yaml %/lookups.pcap"), 2);
	assert_int_equal(run("--slo fast %/lookups.pcap"), 2);
	assert_int_equal(run("--slo =1ms %/lookups.pcap"), 2);
	assert_int_equal(run("--slo 0ms %/lookups.pcap"), 2);
	assert_int_equal(run("--port dns=65536 %/lookups.pcap"), 2);
	assert_int_equal(run("--port dns=53x %/lookups.pcap"), 2);
	assert_int_equal(run("--port =53 %/lookups.pcap"), 2);
	assert_int_equal(run("--port dns %/lookups.pcap"), 2);
	assert_int_equal(run("--port nothing=53 %/lookups.pcap"), 1);
	assert_int_equal(run("%/missing.pcap"), 1);
	assert_int_equal(run("--config %/missing.json %/lookups.pcap"), 1);
	assert_int_equal(run("-o /dev/full %/lookups.pcap"), 1);
	assert_int_equal(run("-o %/missing/out %/lookups.pcap"), 1);
}

static void
output_that_failed_leaves_the_file_that_was_there(void **state)
{
	FILE *file = fopen(in_directory("kept"), "w");

	(void)state;
	assert_non_null(file);
	fputs("old\n", file);
	fclose(file);
	assert_int_equal(run("-o %/kept %/missing.pcap"), 1);
	assert_string_equal(contents("kept"), "old\n");
	write_lookups();
	assert_int_equal(run("--format jsonl -o %/kept %/lookups.pcap"), 0);
	assert_ptr_equal(strstr(contents("kept"), "{\"id\":"), contents("kept"));
}

static int
make_directory(void **state)
{
	(void)state;
	return setenv("LC_ALL", "C", 1) == 0 && mkdtemp(directory) != NULL ? 0 : -1;
}

static int
remove_directory(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", directory);
	return system(command);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lookups_have_their_latency_to_the_nanosecond),
		cmocka_unit_test(every_packet_is_in_one_counter_and_every_rpc_in_one_service),
		cmocka_unit_test(rpc_over_its_slo_is_anomalous_and_can_be_the_exit_status),
		cmocka_unit_test(slo_of_one_service_is_found_by_its_name),
		cmocka_unit_test(two_files_are_read_as_one_in_order_of_time),
		cmocka_unit_test(packet_older_than_the_one_before_is_counted_and_takes_its_time),
		cmocka_unit_test(file_cut_short_gives_what_is_before_the_cut),
		cmocka_unit_test(hostile_name_in_a_query_does_not_reach_the_terminal),
		cmocka_unit_test(jsonl_has_one_line_for_each_rpc),
		cmocka_unit_test(config_names_services_and_sets_their_slo),
		cmocka_unit_test(wrong_usage_is_status_2_and_failure_1),
		cmocka_unit_test(output_that_failed_leaves_the_file_that_was_there),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
