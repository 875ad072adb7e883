/* SPDX-License-Identifier: BSD-3-Clause */
/* Text for people: what it says, that it fits, and that labels cannot drive the terminal. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "bs_report.h"
#include "report_sample.h"

static const struct bs_report_text ascii72 = {.width = 72};

/* A stream into memory; text() closes it and hands the text over. */
struct capture {
	FILE *out;
	char *bytes;
	size_t size;
};

static void
begin(struct capture *c)
{
	c->out = open_memstream(&c->bytes, &c->size);
	assert_non_null(c->out);
}

static const char *
text(struct capture *c)
{
	assert_int_equal(fclose(c->out), 0);
	return c->bytes;
}

static json_t *
sample_json(void)
{
	struct sample s;
	json_t *rpc;

	sample_init(&s);
	rpc = bs_report_rpc_json(&s.names, &s.view, &s.verdict);
	assert_non_null(rpc);
	return rpc;
}

/*
 * 72 columns: 23 for the numbers, 14 and 4 for causes and gaps, the 16 that a bar
 * wants; 15 are left for names. 203.5 ms over 16 cells: a cell is 12.7 ms, so all
 * but the hang are ticks.
 */
static void
rpc_is_drawn_as_the_text_written_by_hand(void **state)
{
	struct capture c;
	json_t *rpc = sample_json();

	(void)state;
	begin(&c);
	assert_int_equal(bs_report_rpc_text(c.out, rpc, &ascii72), 0);
	assert_string_equal(text(&c),
		"RPC 0001000000000007  kv  204 ms  LRANGE list:12 0 -1\n"
		" anomalous  slower than its SLO, evidence on its path\n"
		" because    hang in service (stopped): 203 ms above normal (0 ns), 75%\n"
		"            of the time; 50% sure\n"
		" or         compute in service\n"
		" via        congestion in kv.app.in\n"
		" see        packet 17\n"
		" between    10.99.0.1:40112 -> 10.99.0.2:6379, resp over tcp (guessed),\n"
		"            34 B -> 123 kB, 2 retransmissions\n"
		"     start       time  buffer           cause           0         204 ms\n"
		"      0 ns   <2.30 us  local.rx         congestion      |\n"
		"   2.30 us   =10.0 us  kv.app.in        contention      |\n"
		"   12.3 us    ~108 us  service          compute         |\n"
		"*   120 us    =203 ms  service          hang (stopped)  ################\n"
		"    203 ms    =400 us  net.response.b>  transfer                       |\n"
		"    203 ms    ~100 us  kv.app.in        contention                     |\n"
		" event      contention in kv.app.in: 10.0 us, 3 times; culprits: service\n"
		"            batch 75% (15.0 kB), flow 00abcdef 25%\n"
		" behind     contention in kv.app.in: rpc 0001000000000006\n");
	free(c.bytes);
	json_decref(rpc);
}

/* Five segments of 1, 2, 3, 4 and 6 cells, and halves: 16 ns are 16 cells at this width. */
static json_t *
staircase(void)
{
	static const int ends[] = {1, 3, 6, 10, 16};
	json_t *segments = json_array();
	int at = 0;

	for (unsigned i = 0; i < 5; i++) {
		json_array_append_new(segments,
			json_pack("{s:i,s:i,s:s,s:s,s:s}", "begin_ns", at, "end_ns", ends[i],
				"buffer", "12345678", "cause", "transfer", "quality", "exact"));
		at = ends[i];
	}
	return json_pack("{s:o}", "segments", segments);
}

static void
bars_are_as_long_as_their_segments_and_do_not_overlap(void **state)
{
	const struct bs_report_text options = {.width = 23 + 10 + 10 + 16};
	struct capture c;
	json_t *rpc = staircase();
	const char *at;

	(void)state;
	begin(&c);
	assert_int_equal(bs_report_rpc_text(c.out, rpc, &options), 0);
	at = strstr(text(&c), "cause     0");
	assert_non_null(at);
	assert_string_equal(strchr(at, '\n') + 1,
		"      0 ns      =1 ns  12345678  transfer  #\n"
		"      1 ns      =2 ns  12345678  transfer   ##\n"
		"      3 ns      =3 ns  12345678  transfer     ###\n"
		"      6 ns      =4 ns  12345678  transfer        ####\n"
		"     10 ns      =6 ns  12345678  transfer            ######\n");
	free(c.bytes);
	json_decref(rpc);
}

static void
utf8_bars_show_eighths_of_a_cell(void **state)
{
	const struct bs_report_text options = {.width = 43 + 16, .utf8 = true};
	struct capture c;
	json_t *rpc = json_pack("{s:[{s:i,s:i},{s:i,s:i}]}", "segments", "begin_ns", 0, "end_ns",
		11, "begin_ns", 11, "end_ns", 128);

	(void)state;
	begin(&c);
	assert_int_equal(bs_report_rpc_text(c.out, rpc, &options), 0);
	/* 11 eighths: a cell and three eighths; then from the nearest whole cell to the end */
	assert_non_null(strstr(text(&c), " █▍\n"));
	assert_non_null(strstr(c.bytes, "  ███████████████\n"));
	free(c.bytes);
	json_decref(rpc);
}

/* Columns of a line: UTF-8 tail bytes and escape sequences take none. */
static unsigned
columns(const char *line, size_t length)
{
	unsigned count = 0;

	for (size_t i = 0; i < length; i++) {
		if (line[i] == '\x1b') {
			while (line[i] != 'm')
				i++;
			continue;
		}
		if (((unsigned char)line[i] & 0xc0) != 0x80)
			count++;
	}
	return count;
}

static void
assert_fits(const char *lines, unsigned width)
{
	while (*lines != '\0') {
		size_t length = strcspn(lines, "\n");

		if (columns(lines, length) > width)
			fail_msg("wider than %u: %.*s", width, (int)length, lines);
		assert_int_equal(lines[length], '\n');
		lines += length + 1;
	}
}

static void
no_line_is_wider_than_the_terminal(void **state)
{
	json_t *rpc = sample_json();
	json_t *rpcs = json_pack("[O,O]", rpc, rpc);
	json_t *incident = json_pack("{s:s,s:{s:s,s:s},s:s}", "id", "000000000000002a", "origin",
		"buffer", "a-buffer-with-a-very-long-name.app.in", "cause", "contention", "advice",
		"supercalifragilisticexpialidociousandmuchlongerthanthewholeline "
		"of words that wrap around");

	(void)state;
	for (unsigned width = 40; width <= 150; width++)
		for (unsigned style = 0; style < 4; style++) {
			const struct bs_report_text options = {
				.width = width, .color = style & 1, .utf8 = style & 2};
			struct capture c;

			begin(&c);
			assert_int_equal(bs_report_rpc_text(c.out, rpc, &options), 0);
			assert_int_equal(bs_report_legend(c.out, &options), 0);
			assert_int_equal(bs_report_anomalies_table(c.out, rpcs, &options), 0);
			assert_int_equal(bs_report_incident_text(c.out, incident, &options), 0);
			assert_fits(text(&c), width);
			free(c.bytes);
		}
	json_decref(incident);
	json_decref(rpcs);
	json_decref(rpc);
}

static void
colours_are_reset_at_the_end_of_each_line(void **state)
{
	json_t *rpc = sample_json();

	(void)state;
	for (unsigned width = 40; width <= 90; width++) {
		const struct bs_report_text options = {.width = width, .color = true, .utf8 = true};
		struct capture c;
		bool plain = true;

		begin(&c);
		bs_report_rpc_text(c.out, rpc, &options);
		for (const char *at = text(&c); *at != '\0'; at++) {
			if (*at == '\x1b')
				plain = strncmp(at, "\x1b[0m", 4) == 0;
			if (*at == '\n')
				assert_true(plain);
		}
		free(c.bytes);
	}
	json_decref(rpc);
}

/* The object may not come from us: its label was not escaped. */
static void
hostile_label_is_shown_and_not_obeyed(void **state)
{
	const struct bs_report_text wide = {.width = 200, .utf8 = true};
	struct capture c;
	json_t *rpc = sample_json();
	json_t *rpcs = json_pack("[O]", rpc);

	(void)state;
	json_object_set_new(rpc, "label",
		json_string("\x1b[2J\r\n\xc2\x9b"
			    "A\xe2\x80\xae \xc3\xa4"));
	begin(&c);
	bs_report_rpc_text(c.out, rpc, &wide);
	bs_report_anomalies_table(c.out, rpcs, &wide);
	text(&c);
	for (const char *at = c.bytes; *at != '\0'; at++)
		assert_true(*at == '\n' || (unsigned char)*at >= 0x20);
	for (unsigned i = 0; i < 2; i++) {
		char *at =
			strstr(c.bytes, "\\x1b[2J\\x0d\\x0a\\xc2\\x9bA\\xe2\\x80\\xae \xc3\xa4\n");

		assert_non_null(at);
		*at = '.';
	}
	free(c.bytes);
	json_decref(rpcs);
	json_decref(rpc);
}

static void
ascii_terminal_gets_ascii_only(void **state)
{
	struct capture c;
	json_t *rpc = sample_json();

	(void)state;
	json_object_set_new(rpc, "label", json_string("caf\xc3\xa9"));
	begin(&c);
	bs_report_rpc_text(c.out, rpc, &ascii72);
	assert_non_null(strstr(text(&c), "204 ms  caf?\n"));
	for (const char *at = c.bytes; *at != '\0'; at++)
		assert_true((unsigned char)*at < 0x80);
	free(c.bytes);
	json_decref(rpc);
}

static void
rpc_without_an_answer_or_a_verdict_is_told_by_its_age(void **state)
{
	struct capture c;
	json_t *rpc = json_pack("{s:s,s:s,s:n,s:i,s:n,s:s}", "id", "0000000000000001", "outcome",
		"unanswered", "latency_ns", "age_ns", 5000000, "anomalous", "service", "kv");

	(void)state;
	begin(&c);
	bs_report_rpc_text(c.out, rpc, &ascii72);
	assert_string_equal(text(&c), "RPC 0000000000000001  kv  unanswered after 5.00 ms\n"
				      " between    ? -> ?, ? over ?\n");
	free(c.bytes);
	json_decref(rpc);
}

static void
anomaly_without_a_root_cause_says_not_known(void **state)
{
	const struct bs_report_text wide = {.width = 100};
	struct capture c;
	json_t *rpc = json_pack(
		"{s:b,s:[s],s:s}", "anomalous", 1, "anomalous_by", "outlier", "baseline", "cold");

	(void)state;
	begin(&c);
	bs_report_rpc_text(c.out, rpc, &wide);
	text(&c);
	assert_non_null(strstr(c.bytes, " anomalous  far from its operation's normal (few "
					"samples of what is normal)\n"));
	assert_non_null(strstr(c.bytes, " because    not known\n"));
	free(c.bytes);
	json_decref(rpc);
}

/* Every value of the sample is replaced by each wrong type in turn. */
static void
keys_of_the_wrong_type_count_as_unknown(void **state)
{
	json_t *sample = sample_json();
	json_t *wrong = json_pack("[n,b,i,f,s,[n,i],{s:n},[{s:i,s:s}]]", 1, -5, 1e300, "text", 3,
		"buffer", "begin_ns", -1, "end_ns", "x");
	const json_t *value;
	const char *key;
	size_t i;

	(void)state;
	json_object_foreach(sample, key, value) json_array_foreach(wrong, i, value)
	{
		struct capture c;
		json_t *rpc = json_copy(sample);
		json_t *rpcs = json_pack("[O,O]", rpc, value);

		json_object_set(rpc, key, json_array_get(wrong, i));
		begin(&c);
		assert_int_equal(bs_report_rpc_text(c.out, rpc, &ascii72), 0);
		assert_int_equal(bs_report_anomalies_table(c.out, rpcs, &ascii72), 0);
		assert_int_equal(bs_report_services_table(c.out, rpcs, &ascii72), 0);
		assert_int_equal(bs_report_incident_text(c.out, rpc, &ascii72), 0);
		assert_fits(text(&c), 72);
		free(c.bytes);
		json_decref(rpcs);
		json_decref(rpc);
	}
	json_decref(wrong);
	json_decref(sample);
}

static void
what_is_no_object_or_array_is_refused(void **state)
{
	json_t *number = json_integer(1);

	(void)state;
	assert_int_equal(bs_report_rpc_text(stdout, number, &ascii72), -EINVAL);
	assert_int_equal(bs_report_rpc_text(stdout, NULL, &ascii72), -EINVAL);
	assert_int_equal(bs_report_incident_text(stdout, number, &ascii72), -EINVAL);
	assert_int_equal(bs_report_anomalies_table(stdout, number, &ascii72), -EINVAL);
	assert_int_equal(bs_report_services_table(stdout, NULL, &ascii72), -EINVAL);
	json_decref(number);
}

static void
stream_that_fails_is_reported(void **state)
{
	FILE *full = fopen("/dev/full", "w");
	json_t *rpc = sample_json();

	(void)state;
	assert_non_null(full);
	setvbuf(full, NULL, _IONBF, 0);
	assert_int_equal(bs_report_rpc_text(full, rpc, &ascii72), -EIO);
	fclose(full);
	json_decref(rpc);
}

static void
anomalies_are_aligned_and_narrow_terminals_shorten_names(void **state)
{
	struct capture c;
	json_t *rpc = sample_json();
	json_t *open = json_pack("{s:s,s:s,s:n,s:i}", "id", "0001000000000008", "service", "web",
		"latency_ns", "age_ns", 1000);
	json_t *rpcs = json_pack("[O,O]", rpc, open);
	const struct bs_report_text narrow = {.width = 56};

	(void)state;
	begin(&c);
	bs_report_anomalies_table(c.out, rpcs, &ascii72);
	bs_report_anomalies_table(c.out, rpcs, &narrow);
	assert_string_equal(text(&c),
		"RPC               SERVICE      TOOK  CAUSE         BUFFER   EXCESS  SURE\n"
		"0001000000000007  kv         204 ms  hang/compute  service  203 ms   50%\n"
		"0001000000000008  web      >1.00 us  -             -             -     -\n"
		"RPC               SERVICE      TOOK  CAUSE       BUFFER\n"
		"0001000000000007  kv         204 ms  hang/comp>  service\n"
		"0001000000000008  web      >1.00 us  -           -\n");
	free(c.bytes);
	json_decref(rpcs);
	json_decref(open);
	json_decref(rpc);
}

static void
services_are_aligned(void **state)
{
	static const struct bs_report_service kv = {.service = "kv",
		.protocol = "resp",
		.rpcs = 1000,
		.unanswered = 1,
		.in_progress = 4,
		.latency_ns = {999, 80000, 120000, 300000, 2000000, 203000000}};
	static const struct bs_report_service web = {.service = "web", .rpcs = 7};
	struct capture c;
	json_t *services = json_array();

	(void)state;
	json_array_append_new(services, bs_report_service_json(&kv));
	json_array_append_new(services, bs_report_service_json(&web));
	begin(&c);
	bs_report_services_table(c.out, services, &ascii72);
	assert_string_equal(text(&c), "SERVICE  RPCS  UNANSWERED  OPEN     P50      P99\n"
				      "kv       1000           1     4  120 us  2.00 ms\n"
				      "web         7           0     0       -        -\n");
	free(c.bytes);
	json_decref(services);
}

static void
incident_is_drawn_as_the_text_written_by_hand(void **state)
{
	struct capture c;
	json_t *incident = json_pack(
		"{s:s,s:{s:s,s:s,s:s},s:s,s:s,s:i,s:{s:i,s:i},s:[s,s],s:[{s:s,s:s,s:i}],s:s}", "id",
		"000000000000002a", "origin", "buffer", "service", "cause", "hang", "detail",
		"stopped", "t_begin", "1700000000123000000", "t_end", "1700000000323000000",
		"victims", 1234, "by_service", "kv", 1200, "web", 34, "worst", "0000000000000007",
		"0000000000000008", "culprits", "kind", "lcore", "id", "2", "bytes", 0, "advice",
		"See who sent the service SIGSTOP: a debugger, a checkpoint, or a supervisor.");

	(void)state;
	begin(&c);
	assert_int_equal(bs_report_incident_text(c.out, incident, &ascii72), 0);
	/* date -u -d @1700000000: 2023-11-14 22:13:20 */
	assert_string_equal(text(&c),
		"INCIDENT 000000000000002a  hang in service (stopped)\n"
		" from       2023-11-14 22:13:20.123 UTC, for 200 ms\n"
		" victims    1234 RPCs, kv 1200, web 34\n"
		" worst      0000000000000007 0000000000000008\n"
		" culprits   lcore 2\n"
		" advice     See who sent the service SIGSTOP: a debugger, a checkpoint,\n"
		"            or a supervisor.\n");
	free(c.bytes);
	json_decref(incident);
}

static void
progress_fills_up_and_vanishes(void **state)
{
	struct capture c;

	(void)state;
	begin(&c);
	assert_int_equal(bs_report_progress(c.out, "a\nfile", 1, 4, &ascii72), 0);
	assert_int_equal(bs_report_progress(c.out, "file", 4, 4, &ascii72), 0);
	assert_string_equal(text(&c), "\r\x1b[K[#####               ]  25 % a\\x0afile"
				      "\r\x1b[K");
	free(c.bytes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rpc_is_drawn_as_the_text_written_by_hand),
		cmocka_unit_test(bars_are_as_long_as_their_segments_and_do_not_overlap),
		cmocka_unit_test(utf8_bars_show_eighths_of_a_cell),
		cmocka_unit_test(no_line_is_wider_than_the_terminal),
		cmocka_unit_test(colours_are_reset_at_the_end_of_each_line),
		cmocka_unit_test(hostile_label_is_shown_and_not_obeyed),
		cmocka_unit_test(ascii_terminal_gets_ascii_only),
		cmocka_unit_test(rpc_without_an_answer_or_a_verdict_is_told_by_its_age),
		cmocka_unit_test(anomaly_without_a_root_cause_says_not_known),
		cmocka_unit_test(keys_of_the_wrong_type_count_as_unknown),
		cmocka_unit_test(what_is_no_object_or_array_is_refused),
		cmocka_unit_test(stream_that_fails_is_reported),
		cmocka_unit_test(anomalies_are_aligned_and_narrow_terminals_shorten_names),
		cmocka_unit_test(services_are_aligned),
		cmocka_unit_test(incident_is_drawn_as_the_text_written_by_hand),
		cmocka_unit_test(progress_fills_up_and_vanishes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
