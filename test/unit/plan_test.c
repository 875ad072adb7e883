/* SPDX-License-Identifier: BSD-3-Clause */
/* What a configuration makes, as JSON and as text; worked out by hand from the text. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "plan.h"

static const char text[] =
	"{\"node\":7,\"eal\":{\"lcores\":\"2-3\",\"memory\":\"1G\",\"collector\":5},"
	"\"ports\":{\"wire\":{\"device\":[\"0000:3b:00.0\"],\"rate\":\"10G\"},"
	"\"local\":{\"device\":[\"net_af_packet0,iface=x\"]}},"
	"\"paths\":[{\"wire\":\"wire\",\"service\":\"local\"}],"
	"\"services\":[{\"name\":\"kv\",\"address\":\"10.0.0.2\",\"port\":6379,\"slo\":\"5ms\","
	"\"class\":{\"in\":1,\"out\":2},\"protocol\":\"resp\",\"probe\":\"off\"}],"
	"\"shim\":{\"tag\":\"always\",\"tcp\":\"ether\"}}";

static json_t *
plan(void)
{
	static struct bs_config config;
	static struct bs_topology topology = {.node_count = 2, .port_node = {1, BS_NODE_NONE}};
	static struct bs_placement placement;
	char error[BS_CONFIG_ERROR_BYTES];
	json_t *made;

	for (int cpu = 0; cpu < 8; cpu++) {
		CPU_SET(cpu, &topology.possible);
		topology.cpu_node[cpu] = cpu % 2;
	}
	topology.allowed = topology.possible;
	assert_int_equal(bs_config_parse("f", text, &config, error), 0);
	bs_placement_make(&config, &topology, &placement);
	made = bs_plan_json(&config, &placement);
	assert_non_null(made);
	return made;
}

static const json_t *
at(const json_t *made, const char *list, size_t index, const char *key)
{
	return json_object_get(json_array_get(json_object_get(made, list), index), key);
}

static void
ports_say_what_is_known_of_their_driver(void **state)
{
	json_t *made = plan();

	(void)state;
	assert_string_equal(json_string_value(at(made, "ports", 0, "toward")), "clients");
	assert_true(json_is_null(at(made, "ports", 0, "driver")));
	assert_true(json_is_null(at(made, "ports", 0, "losses_counted")));
	assert_int_equal(json_integer_value(at(made, "ports", 0, "rate_bps")), 10000000000);
	assert_string_equal(json_string_value(at(made, "ports", 1, "toward")), "services");
	assert_string_equal(json_string_value(at(made, "ports", 1, "driver")), "net_af_packet");
	assert_true(json_is_false(at(made, "ports", 1, "losses_counted")));
	assert_true(json_is_null(at(made, "ports", 1, "rate_bps")));
	json_decref(made);
}

static void
services_lcores_and_shim_are_those_of_the_text(void **state)
{
	json_t *made = plan();
	const json_t *shim = json_object_get(made, "shim");

	(void)state;
	assert_int_equal(json_array_size(json_object_get(made, "threads")), 5);
	assert_string_equal(json_string_value(at(made, "threads", 1, "thread")), "pipeline");
	assert_string_equal(json_string_value(at(made, "threads", 1, "cpus")), "3");
	assert_int_equal(json_integer_value(at(made, "threads", 1, "node")), 1);
	assert_string_equal(json_string_value(at(made, "threads", 1, "why")), "named");
	assert_string_equal(json_string_value(at(made, "threads", 2, "thread")), "collector");
	assert_string_equal(json_string_value(at(made, "threads", 2, "cpus")), "5");
	assert_string_equal(json_string_value(at(made, "threads", 4, "thread")), "analyzer");
	assert_string_equal(json_string_value(at(made, "threads", 4, "cpus")), "1,7");
	assert_int_equal(json_integer_value(json_object_get(made, "memory_node")), 1);
	assert_int_equal(json_integer_value(json_object_get(made, "memory_bytes")), 1 << 30);
	assert_string_equal(
		json_string_value(at(made, "services", 0, "endpoint")), "10.0.0.2:6379");
	assert_int_equal(json_integer_value(at(made, "services", 0, "slo_ns")), 5000000);
	assert_int_equal(json_integer_value(at(made, "services", 0, "class_out")), 2);
	assert_string_equal(json_string_value(at(made, "services", 0, "probe")), "off");
	assert_string_equal(json_string_value(json_object_get(shim, "tag")), "always");
	assert_string_equal(json_string_value(json_object_get(shim, "tcp")), "ether");
	assert_int_equal(json_integer_value(json_object_get(shim, "tcp_bytes")), 18);
	assert_string_equal(json_string_value(json_object_get(shim, "udp")), "off");
	assert_int_equal(json_integer_value(json_object_get(shim, "udp_bytes")), 0);
	json_decref(made);
}

static void
text_has_a_chain_for_each_service_and_for_nobodys(void **state)
{
	json_t *made = plan();
	char *printed = NULL;
	size_t bytes;
	FILE *out = open_memstream(&printed, &bytes);

	(void)state;
	assert_non_null(out);
	bs_plan_print(made, out);
	fclose(out);
	assert_non_null(strstr(printed, "f is right."));
	assert_non_null(
		strstr(printed, "threads   pipeline   CPU 2 of NUMA node 0: named, but port "
				"wire is on node 1: name CPUs of that, or none\n"));
	assert_non_null(strstr(printed, "memory    1024 MiB of NUMA node 1, half of it for "));
	assert_non_null(strstr(
		printed, "\n          main       CPU 1,7 of NUMA node 1: off the pipeline\n"));
	assert_non_null(strstr(printed, "its driver does not count what its full ring drops"));
	assert_non_null(strstr(printed, "TCP by ether, up to 18 bytes a packet; UDP untagged"));
	assert_non_null(strstr(printed, "wire.rx -> kv.app.in -> local.tx -> [kv] -> local.rx -> "
					"kv.app.out -> wire.tx\n"));
	assert_non_null(strstr(printed, "wire.rx -> other.app.in -> local.tx -> [other] -> "));
	free(printed);
	json_decref(made);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ports_say_what_is_known_of_their_driver),
		cmocka_unit_test(services_lcores_and_shim_are_those_of_the_text),
		cmocka_unit_test(text_has_a_chain_for_each_service_and_for_nobodys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
