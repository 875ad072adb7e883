/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON objects: all keys, unknown is null, and nothing hostile comes through. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "bs_report.h"
#include "escape.h"
#include "report_sample.h"

static json_t *
parse(const char *text)
{
	json_error_t error;
	json_t *json = json_loads(text, 0, &error);

	if (json == NULL)
		fail_msg("%d:%d: %s", error.line, error.column, error.text);
	return json;
}

static void
assert_json(const json_t *got, const char *wanted)
{
	json_t *want = parse(wanted);

	if (!json_equal(got, want)) {
		char *text = json_dumps(got, JSON_INDENT(1) | JSON_ENCODE_ANY);

		print_error("%s\n", text);
		free(text);
		fail_msg("differs from the object written by hand");
	}
	json_decref(want);
}

static void
rpc_with_a_verdict_is_the_object_written_by_hand(void **state)
{
	struct sample s;
	json_t *rpc;

	(void)state;
	sample_init(&s);
	rpc = bs_report_rpc_json(&s.names, &s.view, &s.verdict);
	assert_json(rpc,
		"{\"id\": \"0001000000000007\", \"service\": \"kv\","
		" \"operation\": \"LRANGE list:* * -*\", \"label\": \"LRANGE list:12 0 -1\","
		" \"protocol\": \"resp\", \"protocol_guessed\": true,"
		" \"client\": \"10.99.0.1:40112\", \"server\": \"10.99.0.2:6379\","
		" \"role_guessed\": false, \"transport\": \"tcp\", \"vlan\": [100],"
		" \"stream\": 4, \"tenant\": null, \"class\": 1, \"status\": null,"
		" \"trace_id\": null, \"parent_span_id\": null, \"kind\": \"unary\","
		" \"outcome\": \"answered\", \"tagged\": false,"
		" \"t_request_first\": \"1700000000000000000\","
		" \"t_request_last\": \"1700000000000000000\","
		" \"t_request_departure\": \"1700000000000012300\","
		" \"t_response_first\": \"1700000000203000000\","
		" \"t_response_last\": \"1700000000203400000\","
		" \"t_response_departure\": \"1700000000203500000\","
		" \"t_response_first_copy\": null,"
		" \"latency_ns\": 203500000, \"age_ns\": null, \"service_ns\": 202987700,"
		" \"early_ns\": null, \"ttfb_ns\": 203000000, \"connect_ns\": null,"
		" \"messages\": 2, \"max_gap_ns\": 202987700,"
		" \"segments\": ["
		"  {\"begin_ns\": 0, \"end_ns\": 2300, \"buffer\": \"local.rx\","
		"   \"cause\": \"congestion\", \"detail\": null, \"quality\": \"bound\","
		"   \"uncertainty_ns\": 2300, \"packet\": null,"
		"   \"culprit_kind\": null, \"culprit_id\": null},"
		"  {\"begin_ns\": 2300, \"end_ns\": 12300, \"buffer\": \"kv.app.in\","
		"   \"cause\": \"contention\", \"detail\": null, \"quality\": \"exact\","
		"   \"uncertainty_ns\": null, \"packet\": null,"
		"   \"culprit_kind\": null, \"culprit_id\": null},"
		"  {\"begin_ns\": 12300, \"end_ns\": 120000, \"buffer\": \"service\","
		"   \"cause\": \"compute\", \"detail\": null, \"quality\": \"estimated\","
		"   \"uncertainty_ns\": null, \"packet\": null,"
		"   \"culprit_kind\": null, \"culprit_id\": null},"
		"  {\"begin_ns\": 120000, \"end_ns\": 203000000, \"buffer\": \"service\","
		"   \"cause\": \"hang\", \"detail\": \"stopped\", \"quality\": \"exact\","
		"   \"uncertainty_ns\": null, \"packet\": null,"
		"   \"culprit_kind\": null, \"culprit_id\": null},"
		"  {\"begin_ns\": 203000000, \"end_ns\": 203400000,"
		"   \"buffer\": \"net.response.before\", \"cause\": \"transfer\","
		"   \"detail\": null, \"quality\": \"exact\", \"uncertainty_ns\": null,"
		"   \"packet\": 17, \"culprit_kind\": null, \"culprit_id\": null},"
		"  {\"begin_ns\": 203400000, \"end_ns\": 203500000, \"buffer\": \"kv.app.in\","
		"   \"cause\": \"contention\", \"detail\": null, \"quality\": \"estimated\","
		"   \"uncertainty_ns\": null, \"packet\": null,"
		"   \"culprit_kind\": \"rpc\", \"culprit_id\": \"0001000000000006\"}],"
		" \"segments_merged\": false,"
		" \"terms\": ["
		"  {\"buffer\": \"local.rx\", \"cause\": \"congestion\", \"ns\": 2300},"
		"  {\"buffer\": \"kv.app.in\", \"cause\": \"contention\", \"ns\": 110000},"
		"  {\"buffer\": \"service\", \"cause\": \"compute\", \"ns\": 107700},"
		"  {\"buffer\": \"service\", \"cause\": \"hang\", \"ns\": 202880000},"
		"  {\"buffer\": \"net.response.before\", \"cause\": \"transfer\","
		"   \"ns\": 400000}],"
		" \"request_bytes\": 34, \"response_bytes\": 123456, \"interim_responses\": 0,"
		" \"retransmissions\": 2, \"duplicates\": 0, \"capture_gaps\": 0,"
		" \"reordered\": 0,"
		" \"events\": [{\"type\": \"contention\", \"buffer\": \"kv.app.in\","
		"  \"detail\": null, \"quality\": \"exact\", \"upstream\": null,"
		"  \"t_begin\": \"1700000000000002300\", \"t_end\": \"1700000000000012300\","
		"  \"blocking_ns\": 10000, \"count\": 3, \"culprits\": ["
		"   {\"kind\": \"service\", \"id\": \"batch\", \"bytes\": 15000, \"ns\": 7500,"
		"    \"share\": 0.75},"
		"   {\"kind\": \"flow\", \"id\": \"00abcdef\", \"bytes\": 0, \"ns\": 2500,"
		"    \"share\": 0.25}]}],"
		" \"anomalous\": true, \"anomalous_by\": [\"slo\", \"evidence\"],"
		" \"baseline\": \"warm\", \"incident\": \"000000000000002a\","
		" \"root_cause\": {\"buffer\": \"service\", \"cause\": \"hang\","
		"  \"detail\": \"stopped\", \"excess_ns\": 202880000, \"share\": 0.75,"
		"  \"normal_ns\": 0, \"confidence\": 0.5,"
		"  \"alternatives\": [{\"buffer\": \"service\", \"cause\": \"compute\"}],"
		"  \"via\": [{\"buffer\": \"kv.app.in\", \"cause\": \"congestion\"}],"
		"  \"evidence\": [17], \"chronic\": false}}");
	json_decref(rpc);
}

static void
terms_add_up_to_the_latency(void **state)
{
	struct sample s;
	json_t *rpc;
	const json_t *term;
	json_int_t sum = 0;
	size_t i;

	(void)state;
	sample_init(&s);
	rpc = bs_report_rpc_json(&s.names, &s.view, NULL);
	json_array_foreach(json_object_get(rpc, "terms"), i, term) sum +=
		json_integer_value(json_object_get(term, "ns"));
	assert_int_equal(sum, 203500000);
	assert_int_equal(sum, json_integer_value(json_object_get(rpc, "latency_ns")));
	json_decref(rpc);
}

static void
assert_null_keys(const json_t *object, const char *const *keys)
{
	for (; *keys != NULL; keys++)
		if (!json_is_null(json_object_get(object, *keys)))
			fail_msg("%s should be null", *keys);
}

static void
unknown_is_null_never_zero(void **state)
{
	static const char *const keys[] = {"operation", "label", "status", "t_response_first",
		"t_response_last", "t_response_departure", "latency_ns", "service_ns", "early_ns",
		"ttfb_ns", "anomalous", "anomalous_by", "baseline", "root_cause", "incident", NULL};
	struct sample s;
	json_t *rpc;

	(void)state;
	sample_init(&s);
	s.rpc.outcome = BS_OUTCOME_UNANSWERED;
	s.rpc.t_response_first = s.rpc.t_response_last = s.rpc.t_response_departure = 0;
	s.rpc.label_len = 0;
	rpc = bs_report_rpc_json(&s.names, &s.view, NULL);
	assert_null_keys(rpc, keys);
	assert_int_equal(json_integer_value(json_object_get(rpc, "age_ns")), 203600000);
	json_decref(rpc);
}

static void
verdict_without_root_or_incident_says_so(void **state)
{
	struct sample s;
	json_t *rpc;

	(void)state;
	sample_init(&s);
	s.verdict.has_root = 0;
	s.verdict.anomalous_by = 0;
	s.verdict.baseline_warm = 0;
	s.verdict.incident_id = 0;
	rpc = bs_report_rpc_json(&s.names, &s.view, &s.verdict);
	assert_true(json_is_null(json_object_get(rpc, "root_cause")));
	assert_true(json_is_null(json_object_get(rpc, "incident")));
	assert_true(json_is_false(json_object_get(rpc, "anomalous")));
	assert_json(json_object_get(rpc, "anomalous_by"), "[]");
	assert_string_equal(json_string_value(json_object_get(rpc, "baseline")), "cold");
	json_decref(rpc);
}

static void
cold_baseline_without_a_normal_value_is_null(void **state)
{
	struct sample s;
	json_t *rpc;

	(void)state;
	sample_init(&s);
	s.verdict.baseline_warm = 0;
	rpc = bs_report_rpc_json(&s.names, &s.view, &s.verdict);
	assert_true(json_is_null(json_object_get(json_object_get(rpc, "root_cause"), "normal_ns")));
	json_decref(rpc);
}

static void
early_answer_has_early_ns_in_place_of_service_ns(void **state)
{
	struct sample s;
	json_t *rpc;

	(void)state;
	sample_init(&s);
	s.rpc.t_response_first = SAMPLE_T0 + 12000;
	rpc = bs_report_rpc_json(&s.names, &s.view, NULL);
	assert_int_equal(json_integer_value(json_object_get(rpc, "early_ns")), 300);
	assert_true(json_is_null(json_object_get(rpc, "service_ns")));
	json_decref(rpc);
}

static void
known_values_of_optional_fields_are_shown(void **state)
{
	struct sample s;
	json_t *rpc;

	(void)state;
	sample_init(&s);
	s.rpc.flags = BS_RPC_HAS_STATUS | BS_RPC_ROLE_GUESSED | BS_RPC_SEGMENTS_MERGED;
	s.rpc.status = -404;
	s.rpc.connect_ns = 77;
	s.rpc.ends.transport = 17;
	s.rpc.ends.vlan[0] = 0;
	s.rpc.service = BS_MAX_SERVICES;
	s.rpc.trace_id[0] = 0xa1;
	s.rpc.parent_span_id[7] = 0x0b;
	s.event.upstream = 41;
	s.event.detail = BS_DETAIL_FIRST_REASON + BS_REASON_APP_QUEUE_FULL;
	rpc = bs_report_rpc_json(&s.names, &s.view, NULL);
	assert_int_equal(json_integer_value(json_object_get(rpc, "status")), -404);
	assert_int_equal(json_integer_value(json_object_get(rpc, "connect_ns")), 77);
	assert_true(json_is_true(json_object_get(rpc, "role_guessed")));
	assert_true(json_is_true(json_object_get(rpc, "segments_merged")));
	assert_string_equal(json_string_value(json_object_get(rpc, "transport")), "udp");
	assert_string_equal(json_string_value(json_object_get(rpc, "service")), "other");
	assert_json(json_object_get(rpc, "vlan"), "[]");
	assert_string_equal(json_string_value(json_object_get(rpc, "trace_id")),
		"a1000000000000000000000000000000");
	assert_string_equal(
		json_string_value(json_object_get(rpc, "parent_span_id")), "000000000000000b");
	const json_t *event = json_array_get(json_object_get(rpc, "events"), 0);
	assert_string_equal(json_string_value(json_object_get(event, "upstream")), "local.rx");
	assert_string_equal(json_string_value(json_object_get(event, "detail")), "app_queue_full");
	json_decref(rpc);
}

static void
number_of_64_bits_is_null_rather_than_negative(void **state)
{
	struct sample s;
	json_t *rpc;

	(void)state;
	sample_init(&s);
	s.rpc.request_bytes = UINT64_MAX;
	s.rpc.response_bytes = INT64_MAX;
	rpc = bs_report_rpc_json(&s.names, &s.view, NULL);
	assert_true(json_is_null(json_object_get(rpc, "request_bytes")));
	assert_int_equal(json_integer_value(json_object_get(rpc, "response_bytes")), INT64_MAX);
	json_decref(rpc);
}

static void
label_of_any_bytes_gives_json_that_can_be_read_back(void **state)
{
	struct sample s;

	(void)state;
	sample_init(&s);
	for (unsigned first = 0; first < 256; first += 96) {
		json_t *rpc, *again;
		char *text;
		const char *label;

		for (unsigned i = 0; i < 96; i++)
			s.rpc.label[i] = (char)(first + i);
		s.rpc.label_len = 96;
		rpc = bs_report_rpc_json(&s.names, &s.view, NULL);
		assert_non_null(rpc);
		text = json_dumps(rpc, 0);
		again = parse(text);
		assert_true(json_equal(rpc, again));
		label = json_string_value(json_object_get(rpc, "label"));
		for (; *label != '\0'; label++)
			assert_in_range((unsigned char)*label, 0x20, 0x7e);
		free(text);
		json_decref(again);
		json_decref(rpc);
	}
}

static void
incident_is_the_object_written_by_hand(void **state)
{
	struct sample s;
	struct bs_rec_incident in = {.id = 42,
		.t_begin = SAMPLE_T0,
		.t_end = SAMPLE_T0 + 5,
		.victims = 3,
		.origin = {BS_BUFFER_SERVICE, BS_CAUSE_HANG, 0},
		.detail = BS_DETAIL_STOPPED,
		.culprit_count = 1,
		.culprit_kind = {BS_CULPRIT_LCORE},
		.culprits = {{.id = 2, .bytes = 9, .ns = 5}},
		.service_count = 2,
		.by_service = {{.service = 0, .victims = 2}, {.service = 3, .victims = 1}},
		.worst_count = 1,
		.worst = {7}};
	json_t *json;

	(void)state;
	sample_init(&s);
	json = bs_report_incident_json(&s.names, &in, "look\nthere");
	assert_json(json,
		"{\"id\": \"000000000000002a\", \"origin\": {\"buffer\": \"service\","
		" \"cause\": \"hang\", \"detail\": \"stopped\"}, \"open\": false,"
		" \"t_begin\": \"1700000000000000000\", \"t_end\": \"1700000000000000005\","
		" \"victims\": 3, \"by_service\": {\"kv\": 2, \"batch\": 1},"
		" \"worst\": [\"0000000000000007\"], \"culprits\": [{\"kind\": \"lcore\","
		" \"id\": \"2\", \"bytes\": 9, \"ns\": 5, \"share\": null}],"
		" \"advice\": \"look\\\\x0athere\"}");
	json_decref(json);
	in.open = 1;
	json = bs_report_incident_json(&s.names, &in, NULL);
	assert_true(json_is_null(json_object_get(json, "t_end")));
	assert_true(json_is_null(json_object_get(json, "advice")));
	json_decref(json);
}

static void
service_without_measurements_has_null_quantiles(void **state)
{
	const struct bs_report_service service = {.service = "kv\xff",
		.rpcs = 4,
		.answered = 3,
		.unanswered = 1,
		.latency_ns = {.count = 3, .min = 1, .p50 = 2, .p90 = 3, .p99 = 4, .max = 5}};
	json_t *json;

	(void)state;
	json = bs_report_service_json(&service);
	assert_json(json,
		"{\"service\": \"kv\\\\xff\", \"protocol\": null, \"rpcs\": 4,"
		" \"answered\": 3, \"unanswered\": 1, \"oneway\": 0, \"orphan_responses\": 0,"
		" \"in_progress\": 0, \"pushed\": 0, \"cancelled\": 0, \"reset\": 0,"
		" \"cut\": 0, \"latency_ns\": {\"min\": 1, \"p50\": 2, \"p90\": 3,"
		" \"p99\": 4, \"max\": 5}, \"service_ns\": null}");
	json_decref(json);
}

static void
names_are_learned_and_unknown_numbers_are_named_as_such(void **state)
{
	struct bs_names names;

	(void)state;
	bs_names_init(&names);
	assert_string_equal(bs_names_buffer(&names, BS_BUFFER_SERVICE), "service");
	assert_string_equal(bs_names_buffer(&names, 41), "buffer#41");
	assert_string_equal(bs_names_buffer(&names, 1024), "?");
	assert_string_equal(bs_names_service(&names, 3), "service#3");
	assert_string_equal(bs_names_service(&names, 256), "other");
	assert_string_equal(bs_names_service(&names, 257), "?");
	assert_string_equal(bs_names_protocol(&names, 7), "protocol#7");
	assert_string_equal(bs_names_protocol(&names, 256), "?");

	sample_name(&names, BS_NAME_BUFFER, 41, "local.rx");
	sample_name(&names, BS_NAME_BUFFER, 41, "local0.rx");
	sample_name(&names, BS_NAME_BUFFER, 41, "");
	sample_name(&names, BS_NAME_BUFFER, BS_BUFFER_SERVICE, "mine");
	sample_name(&names, BS_NAME_BUFFER, 1024, "far");
	sample_name(&names, BS_NAME_SERVICE, 3, "kv\x1b[2J");
	sample_name(&names, BS_NAME_PROTOCOL, 7, "resp");
	assert_string_equal(bs_names_buffer(&names, 41), "local0.rx");
	assert_string_equal(bs_names_buffer(&names, BS_BUFFER_SERVICE), "service");
	assert_string_equal(bs_names_service(&names, 3), "kv\\x1b[2J");
	assert_string_equal(bs_names_protocol(&names, 7), "resp");
}

/* Valid and invalid sequences: RFC 3629 section 4, and its examples of section 10. */
static void
escape_keeps_valid_utf8_and_writes_the_rest_as_bytes(void **state)
{
	static const char *const cases[][2] = {
		{"plain \\x", "plain \\x"},
		{"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x90\xa2",
			"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x90\xa2"},
		{"\x01\x7f\t", "\\x01\\x7f\\x09"},
		{"\xc0\x80", "\\xc0\\x80"},		      /* NUL in two bytes */
		{"\xe0\x80\xaf", "\\xe0\\x80\\xaf"},	      /* overlong */
		{"\xf0\x82\x82\xac", "\\xf0\\x82\\x82\\xac"}, /* overlong */
		{"\xed\xa0\x80", "\\xed\\xa0\\x80"},	      /* surrogate */
		{"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}, /* past U+10FFFF */
		{"\xe2\x82", "\\xe2\\x82"},		      /* cut */
		{"\xe2\x82x", "\\xe2\\x82x"},		      /* cut, then more */
		{"\x80\xff", "\\x80\\xff"},		      /* no first byte */
		{"\xc2\x9b", "\\xc2\\x9b"},		      /* CSI, as one C1 control */
		{"\xe2\x80\xae", "\\xe2\\x80\\xae"},	      /* right-to-left override */
	};
	char out[64];

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *in = cases[i][0];

		assert_int_equal(
			bs_report_escape(in, strlen(in), out, sizeof(out)), strlen(cases[i][1]));
		assert_string_equal(out, cases[i][1]);
	}
}

static void
escape_never_cuts_a_character_or_an_escape(void **state)
{
	char out[8];

	(void)state;
	assert_int_equal(bs_report_escape("a\xff", 2, out, 5), 1);
	assert_string_equal(out, "a");
	assert_int_equal(bs_report_escape("a\xff", 2, out, 6), 5);
	assert_int_equal(bs_report_escape("ab\xe2\x82\xac", 5, out, 5), 2);
	assert_int_equal(bs_report_escape("ab\xe2\x82\xac", 5, out, 6), 5);
	assert_int_equal(bs_report_escape("abc", 3, out, 1), 0);
	assert_string_equal(out, "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rpc_with_a_verdict_is_the_object_written_by_hand),
		cmocka_unit_test(terms_add_up_to_the_latency),
		cmocka_unit_test(unknown_is_null_never_zero),
		cmocka_unit_test(verdict_without_root_or_incident_says_so),
		cmocka_unit_test(cold_baseline_without_a_normal_value_is_null),
		cmocka_unit_test(early_answer_has_early_ns_in_place_of_service_ns),
		cmocka_unit_test(known_values_of_optional_fields_are_shown),
		cmocka_unit_test(number_of_64_bits_is_null_rather_than_negative),
		cmocka_unit_test(label_of_any_bytes_gives_json_that_can_be_read_back),
		cmocka_unit_test(incident_is_the_object_written_by_hand),
		cmocka_unit_test(service_without_measurements_has_null_quantiles),
		cmocka_unit_test(names_are_learned_and_unknown_numbers_are_named_as_such),
		cmocka_unit_test(escape_keeps_valid_utf8_and_writes_the_rest_as_bytes),
		cmocka_unit_test(escape_never_cuts_a_character_or_an_escape),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
