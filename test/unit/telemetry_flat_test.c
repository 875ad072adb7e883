/* SPDX-License-Identifier: BSD-3-Clause */
/* Full answers made small: what rte_telemetry 22.11 cannot carry never comes out. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>

#include "fake_source.h"
#include "telemetry_flat.h"

static void
assert_flattens(const char *text, const char *list, const char *expected)
{
	json_t *answer = json_loads(text, 0, NULL), *flat;
	char *got;

	assert_non_null(answer);
	flat = bs_telemetry_flatten(answer, list);
	got = json_dumps(flat, JSON_COMPACT);
	assert_string_equal(got, expected);
	free(got);
	json_decref(flat);
	json_decref(answer);
}

static void
null_is_left_out_true_is_1_and_a_real_becomes_percent(void **state)
{
	(void)state;
	assert_flattens("{\"a\":null,\"b\":true,\"c\":false,\"share\":0.785,\"n\":-3,\"s\":\"x\"}",
		NULL, "{\"b\":1,\"c\":0,\"share_percent\":79,\"n\":-3,\"s\":\"x\"}");
}

static void
objects_get_the_outer_key_as_prefix_and_root_cause_is_root(void **state)
{
	(void)state;
	assert_flattens("{\"origin\":{\"buffer\":\"b\",\"cause\":\"hang\"},"
			"\"root_cause\":{\"buffer\":\"c\",\"cause\":\"drop\",\"excess_ns\":5,"
			"\"confidence\":0.9}}",
		NULL,
		"{\"origin_buffer\":\"b\",\"origin_cause\":\"hang\",\"root_buffer\":\"c\","
		"\"root_cause\":\"drop\",\"root_excess_ns\":5,\"root_confidence_percent\":90}");
}

static void
a_list_becomes_numbered_members_and_lists_in_entries_are_left_out(void **state)
{
	(void)state;
	assert_flattens("{\"total\":9,\"offset\":3,\"next\":5,\"l\":[{\"a\":1,\"deep\":[1,2]},"
			"{\"a\":2}]}",
		"l", "{\"total\":9,\"0\":{\"a\":1},\"1\":{\"a\":2},\"next\":5}");
	assert_flattens("{\"total\":2,\"offset\":0,\"next\":null,\"l\":[{\"a\":1},{\"a\":2}]}", "l",
		"{\"total\":2,\"0\":{\"a\":1},\"1\":{\"a\":2}}");
	assert_flattens("{\"id\":\"x\",\"ports\":[{\"p\":1}],\"worst\":[\"q\",\"r\"],\"none\":[]}",
		NULL,
		"{\"id\":\"x\",\"ports\":{\"0\":{\"p\":1}},\"worst\":{\"0\":\"q\",\"1\":\"r\"}}");
}

static void
keys_and_texts_are_brought_into_the_allowed_form(void **state)
{
	char text[400], expected[200];

	(void)state;
	assert_flattens(
		"{\"net.rx-ring\":1,\"a/b c_9\":2}", NULL, "{\"net_rx_ring\":1,\"a/b c_9\":2}");
	/* 126 x and a character of two bytes: 128 do not fit, and half a character must not stay.
	 */
	memset(text, 'x', sizeof(text));
	memcpy(text, "{\"t\":\"", 6);
	strcpy(text + 6 + 126, "\xc3\xa9zz\"}");
	memset(expected, 'x', sizeof(expected));
	memcpy(expected, "{\"t\":\"", 6);
	strcpy(expected + 6 + 126, "\"}");
	assert_flattens(text, NULL, expected);
}

/* As rte_telemetry 22.11 demands it. */
static void
assert_carried(const json_t *object, unsigned depth)
{
	const char *key;
	json_t *value;

	assert_true(json_is_object(object));
	assert_true(json_object_size(object) <= 256);
	json_object_foreach((json_t *)object, key, value)
	{
		for (const char *p = key; *p != '\0'; p++)
			assert_true(
				isalnum((unsigned char)*p) || *p == '_' || *p == '/' || *p == ' ');
		if (json_is_string(value))
			assert_true(json_string_length(value) < 128);
		else if (json_is_object(value))
			assert_carried(value, depth + 1);
		else
			assert_true(json_is_integer(value));
	}
	assert_true(depth <= 2);
}

static json_t *
flat_answer(struct fake *fake, const struct bs_status_command *command, const char *params)
{
	char error[BS_STATUS_ERROR_BYTES];
	json_t *full, *flat;
	char *text;

	assert_int_equal(bs_status_answer(&fake->source, command->name, params, &full, error), 0);
	flat = bs_telemetry_flatten(full, command->list);
	json_decref(full);
	assert_carried(flat, 0);
	text = json_dumps(flat, JSON_COMPACT);
	assert_true(strlen(text) + strlen(command->name) + 5 < 16384);
	free(text);
	return flat;
}

static void
the_largest_answers_fit_and_next_leads_through_the_whole_list(void **state)
{
	struct fake *fake = fake_create(false);

	(void)state;
	for (uint64_t i = 1; i <= 200; i++)
		fake_anomaly(fake, i);
	for (uint64_t i = 1; i <= 100; i++)
		fake_incident(fake, i);
	fake->snapshot.port_count = BS_CONFIG_PORTS;
	fake->snapshot.lcore_count = BS_CONFIG_LCORES;
	fake->snapshot.service_count = BS_MAX_SERVICES;
	while (fake->snapshot.buffer_count < BS_SNAPSHOT_BUFFERS)
		fake_buffer(fake, "a-name-that-is-as-long-as-a-name-may-be.app.in", 9, 1, 0xff,
			"exact");
	for (const struct bs_status_command *c = bs_status_commands; c->name != NULL; c++) {
		const char *rpc = strcmp(c->name, "/bufscope/rpc") == 0 ? "0000000000000007" : "";
		char offset[24] = "";
		json_int_t total, seen = 0;
		json_t *flat;

		if (strcmp(c->name, "/bufscope/fault") == 0)
			continue;
		if (c->list == NULL) {
			json_decref(flat_answer(fake, c, rpc));
			continue;
		}
		do {
			json_int_t next;

			flat = flat_answer(fake, c, offset);
			total = json_integer_value(json_object_get(flat, "total"));
			next = json_integer_value(json_object_get(flat, "next"));
			seen += (json_int_t)json_object_size(flat) - 1 - (next != 0);
			if (next != 0)
				assert_int_equal(next, seen);
			snprintf(offset, sizeof(offset), "%lld", next == 0 ? -1 : next);
			json_decref(flat);
		} while (offset[0] != '-');
		assert_int_equal(seen, total);
	}
	fake_destroy(fake);
}

static void
an_rpc_keeps_its_segments_and_its_flat_root(void **state)
{
	const struct bs_status_command *command = bs_status_commands;
	struct fake *fake = fake_create(false);
	json_t *flat, *segments;

	(void)state;
	while (strcmp(command->name, "/bufscope/rpc") != 0)
		command++;
	fake_anomaly(fake, 2);
	flat = flat_answer(fake, command, "0000000000000002");
	assert_string_equal(json_string_value(json_object_get(flat, "root_buffer")), "kv.app.in");
	assert_string_equal(json_string_value(json_object_get(flat, "root_cause")), "hang");
	assert_int_equal(json_integer_value(json_object_get(flat, "root_excess_ns")), 3900000);
	assert_int_equal(json_integer_value(json_object_get(flat, "root_confidence_percent")), 94);
	segments = json_object_get(flat, "segments");
	assert_int_equal(json_object_size(segments), 2);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(segments, "1"), "begin_ns")),
		4000000);
	json_decref(flat);
	fake_destroy(fake);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(null_is_left_out_true_is_1_and_a_real_becomes_percent),
		cmocka_unit_test(objects_get_the_outer_key_as_prefix_and_root_cause_is_root),
		cmocka_unit_test(a_list_becomes_numbered_members_and_lists_in_entries_are_left_out),
		cmocka_unit_test(keys_and_texts_are_brought_into_the_allowed_form),
		cmocka_unit_test(the_largest_answers_fit_and_next_leads_through_the_whole_list),
		cmocka_unit_test(an_rpc_keeps_its_segments_and_its_flat_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
