/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration: defaults, each kind of refusal with its words, reload, the samples. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bs_packet.h"
#include "config_private.h"

#define PORTS "\"ports\":{\"w\":{\"device\":[\"net_null0\"]},\"s\":{\"device\":[\"net_null1\"]}}"
#define PATHS "\"paths\":[{\"wire\":\"w\",\"service\":\"s\"}]"
#define SERVICE "{\"name\":\"kv\",\"address\":\"10.0.0.1\",\"port\":6379}"
#define BASE PORTS "," PATHS ",\"services\":[" SERVICE "]"

#define CPUS_ALLOWED                                                                               \
	"(allowed: up to 64 CPUs of 0 to 1023, as \"0,1\" or \"0-3\", null: two near the ports)"

static struct bs_config config, other;
static char error[BS_CONFIG_ERROR_BYTES];

static void
assert_refused(const char *text, const char *message)
{
	assert_int_equal(bs_config_parse("f", text, &config, error), -EINVAL);
	assert_string_equal(error, message);
}

static void
assert_parses(const char *text, struct bs_config *out)
{
	int ret = bs_config_parse("f", text, out, error);

	assert_string_equal(error, "");
	assert_int_equal(ret, 0);
}

/* Expected values: the interface's table of defaults. */
static void
required_keys_alone_give_the_documented_defaults(void **state)
{
	(void)state;
	assert_parses("{" BASE "}", &config);
	assert_string_equal(config.path, "f");
	assert_int_equal(config.node, 1);
	assert_int_equal(config.eal.pipeline.count, 0);
	assert_int_equal(config.eal.collector_cpu, -1);
	assert_int_equal(config.eal.memory_bytes, 536870912);
	assert_string_equal(config.eal.hugepages, "auto");
	assert_string_equal(config.eal.file_prefix, "bufscope");
	assert_int_equal(config.shim.tag, BS_SHIM_NEGOTIATED);
	assert_int_equal(config.shim.tcp, BS_CARRIER_TCP_OPTION);
	assert_int_equal(config.shim.udp, BS_CARRIER_OFF);
	assert_int_equal(config.detect_ns[BS_CAUSE_DROP], 0);
	assert_int_equal(config.detect_ns[BS_CAUSE_PAUSE], 200000);
	assert_int_equal(config.detect_ns[BS_CAUSE_CONGESTION], 200000);
	assert_int_equal(config.detect_ns[BS_CAUSE_CONTENTION], 200000);
	assert_int_equal(config.detect_ns[BS_CAUSE_DISORDER], 200000);
	assert_int_equal(config.detect_ns[BS_CAUSE_HANG], 1000000);
	assert_int_equal(config.app_queue.size, 1024);
	assert_int_equal(config.app_queue.schedule, BS_SCHEDULE_PRIORITY);
	assert_int_equal(config.app_queue.quantum_bytes, 49152);
	assert_int_equal(config.tables.flows, 65536);
	assert_int_equal(config.tables.rpcs, 16384);
	assert_int_equal(config.records.per_second, 100000);
	assert_true(config.records.export_percent == 0.05);
	assert_int_equal(config.records.export_floor_bytes, 16384);
	assert_int_equal(config.records.sample, 0);
	assert_true(config.analyzer.child);
	assert_false(config.analyzer.external);
	assert_string_equal(config.analyzer.user, "");
	assert_string_equal(config.control.owner, "");
	assert_string_equal(config.control.group, "");
	assert_int_equal(config.control.mode, 0600);
	assert_true(config.privileges.drop);
	assert_string_equal(config.privileges.user, "");
	assert_false(config.faults);
	assert_int_equal(config.framing_count, 0);
	assert_int_equal(config.port_count, 2);
	assert_string_equal(config.ports[1].name, "s");
	assert_false(config.ports[0].trust_shim);
	assert_int_equal(config.ports[0].rate_bps, 0);
	assert_int_equal(config.services[0].slo_ns, 0);
	assert_string_equal(config.services[0].protocol, "auto");
	assert_string_equal(config.services[0].pid_file, "");
	assert_true(config.services[0].probe);
	assert_int_equal(config.services[0].class_in, 0);
}

static void
given_values_land_where_they_belong(void **state)
{
	static const uint8_t v6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1};

	(void)state;
	assert_parses(
		"{\"node\":7,\"eal\":{\"lcores\":\"2-4,9\",\"memory\":1073741824,"
		"\"collector\":5},"
		"\"ports\":{\"s\":{\"device\":[\"net_a\",\"net_b,x=1\"],\"rate\":\"50M\"},"
		"\"w\":{\"device\":\"0000:01:00.0\",\"rate\":9000,\"trust_shim\":true}}," PATHS
		",\"framing\":[{\"name\":\"mine\",\"header\":12,"
		"\"length\":{\"at\":4,\"bytes\":4,\"endian\":\"little\",\"adds\":-2},"
		"\"id\":{\"at\":8,\"bytes\":4},\"magic\":{\"at\":0,\"bytes\":\"cafe\"},"
		"\"response\":{\"at\":2,\"mask\":128,\"value\":128},"
		"\"oneway\":{\"at\":3,\"mask\":1,\"value\":0,\"otherwise\":true},"
		"\"operation\":{\"at\":10,\"bytes\":2,\"endian\":\"little\"}}],"
		"\"services\":[{\"name\":\"kv\",\"address\":\"2001:db8::1\",\"port\":9,"
		"\"protocol\":\"mine\",\"slo\":\"1.5ms\",\"class\":{\"in\":1,\"out\":2},"
		"\"tenant\":\"t\",\"pid_file\":\"/run/kv.pid\",\"probe\":\"off\","
		"\"operations\":[{\"match\":\"GET\",\"slo\":\"2s\"}]}],"
		"\"shim\":{\"tag\":\"off\",\"tcp\":\"off\",\"udp\":\"udp-option\"},\"analyzer\":{"
		"\"mode\":\"external\","
		"\"user\":\"an\"},"
		"\"control\":{\"owner\":\"me\",\"group\":\"4\",\"mode\":\"0660\"},"
		"\"privileges\":{\"drop\":true,\"user\":\"us\"},\"records\":{\"sample\":3},"
		"\"debug\":{\"faults\":true}}",
		&config);
	assert_int_equal(config.node, 7);
	assert_int_equal(config.eal.pipeline.count, 4);
	assert_int_equal(config.eal.pipeline.cpus[2], 4);
	assert_int_equal(config.eal.pipeline.cpus[3], 9);
	assert_int_equal(config.eal.collector_cpu, 5);
	assert_int_equal(config.eal.memory_bytes, 1073741824);
	assert_string_equal(config.ports[0].device[1], "net_b,x=1");
	assert_int_equal(config.ports[0].device_count, 2);
	assert_int_equal(config.ports[0].rate_bps, 50000000);
	assert_int_equal(config.ports[1].rate_bps, 9000);
	assert_true(config.ports[1].trust_shim);
	assert_int_equal(config.paths[0].wire, 1);
	assert_int_equal(config.paths[0].service, 0);
	assert_string_equal(config.framing[0].name, "mine");
	assert_int_equal(config.framing[0].length_adds, -2);
	assert_true(config.framing[0].length_little);
	assert_false(config.framing[0].id_little);
	assert_int_equal(config.framing[0].magic_len, 2);
	assert_int_equal(config.framing[0].magic[1], 0xfe);
	assert_int_equal(config.framing[0].magic_mask[1], 0xff);
	assert_int_equal(config.framing[0].response.mask, 128);
	assert_int_equal(config.framing[0].oneway.at, 3);
	assert_true(config.framing[0].oneway.otherwise);
	assert_int_equal(config.framing[0].push.mask, 0);
	assert_int_equal(config.framing[0].operation_at, 10);
	assert_int_equal(config.framing[0].operation_bytes, 2);
	assert_true(config.framing[0].operation_little);
	assert_memory_equal(config.services[0].address, v6, 16);
	assert_int_equal(config.services[0].slo_ns, 1500000);
	assert_int_equal(config.services[0].class_in, 1);
	assert_int_equal(config.services[0].class_out, 2);
	assert_string_equal(config.services[0].tenant, "t");
	assert_string_equal(config.services[0].pid_file, "/run/kv.pid");
	assert_false(config.services[0].probe);
	assert_string_equal(config.services[0].operations[0].match, "GET");
	assert_int_equal(config.services[0].operations[0].slo_ns, 2000000000);
	assert_int_equal(config.shim.tag, BS_SHIM_OFF);
	assert_int_equal(config.shim.tcp, BS_CARRIER_OFF);
	assert_int_equal(config.shim.udp, BS_CARRIER_UDP_OPTION);
	assert_false(config.analyzer.child);
	assert_true(config.analyzer.external);
	assert_string_equal(config.analyzer.user, "an");
	assert_string_equal(config.control.owner, "me");
	assert_string_equal(config.control.group, "4");
	assert_int_equal(config.control.mode, 0660);
	assert_string_equal(config.privileges.user, "us");
	assert_int_equal(config.records.sample, 3);
	assert_true(config.faults);
}

struct refusal {
	const char *text, *message;
};

static void
each_wrong_value_is_refused_with_place_reason_and_what_is_allowed(void **state)
{
	static const struct refusal refusals[] = {
		{"{\n\"node\": x}", "f:2: not JSON: invalid token near 'x'"},
		{"{\"node\":1,\n\"node\":2}",
			"f:2: not JSON: duplicate object key near '\"node\"'"},
		{"{\"a\\\n\"}", "f:2: not JSON: invalid escape near '\"a\\?'"},
		{"[1]", "f:1: must be an object (allowed: {...})"},
		{"{" BASE ",\n\"nod\":1}",
			"f:2: nod: unknown key (allowed: node, eal, ports, paths, framing, "
			"services, "
			"shim, detect, app_queue, tables, records, analyzer, control, privileges, "
			"offload, "
			"debug)"},
		{"{" BASE ",\n\"shim\":{\"tag\":\"off\",\n\"tpc\":\"off\"}}",
			"f:3: shim.tpc: unknown key (allowed: tag, tcp, udp)"},
		{"{" PORTS "," PATHS "}",
			"f:1: services: required key is missing (allowed: 0 to 256 entries)"},
		{"{" PORTS "," PATHS ",\"services\":[" SERVICE ",\n{\"name\":\"a\","
		 "\"address\":\"1.1.1.1\"}]}",
			"f:2: services[1].port: required key is missing (allowed: 1 to 65535)"},
		{"{" BASE ",\"node\":0}", "f:1: node: 0 is out of range (allowed: 1 to 65535)"},
		{"{" BASE ",\"node\":\"1\"}",
			"f:1: node: \"1\" is not a whole number (allowed: 1 to 65535)"},
		{"{" BASE ",\"node\":1.5}",
			"f:1: node: 1.5 is not a whole number (allowed: 1 to 65535)"},
		{"{" BASE ",\"eal\":{\"memory\":\"12X\"}}",
			"f:1: eal.memory: \"12X\" is not a size as \"512M\" (allowed: 32M to 1T)"},
		{"{" BASE ",\"eal\":{\"memory\":\"9999999999999999999\"}}",
			"f:1: eal.memory: \"9999999999999999999\" is not a size as \"512M\" "
			"(allowed: 32M to 1T)"},
		{"{" BASE ",\"eal\":{\"memory\":\"1M\"}}",
			"f:1: eal.memory: \"1M\" is out of range (allowed: 32M to 1T)"},
		{"{" BASE ",\"eal\":{\"hugepages\":\"yes\"}}",
			"f:1: eal.hugepages: \"yes\" is not known (allowed: auto, on, off)"},
		{"{" BASE ",\"eal\":{\"file_prefix\":\"a/b\"}}",
			"f:1: eal.file_prefix: \"a/b\" is not a name "
			"(allowed: 1 to 63 letters, digits, _ and -)"},
		{"{" BASE ",\"eal\":{\"lcores\":\"1024\"}}",
			"f:1: eal.lcores: \"1024\" is out of range " CPUS_ALLOWED},
		{"{" BASE ",\"eal\":{\"lcores\":\"0-2,1\"}}",
			"f:1: eal.lcores: \"0-2,1\" is naming a CPU twice " CPUS_ALLOWED},
		{"{" BASE ",\"eal\":{\"lcores\":\"0-64\"}}",
			"f:1: eal.lcores: \"0-64\" is too long " CPUS_ALLOWED},
		{"{" BASE ",\"eal\":{\"lcores\":\"3-1\"}}",
			"f:1: eal.lcores: \"3-1\" is not a list of CPUs " CPUS_ALLOWED},
		{"{" BASE ",\"eal\":{\"collector\":-1}}",
			"f:1: eal.collector: -1 is not a CPU "
			"(allowed: a CPU of 0 to 1023, null: those that the pipeline leaves)"},
		{"{" BASE ",\"eal\":[]}", "f:1: eal: [] is not an object (allowed: lcores, memory, "
					  "hugepages, file_prefix, collector)"},
		{"{" BASE ",\"tables\":{\"flows\":512}}",
			"f:1: tables.flows: 512 is out of range "
			"(allowed: 1024 to 4194304, a power of two)"},
		{"{" BASE ",\"tables\":{\"rpcs\":10000}}",
			"f:1: tables.rpcs: 10000 is not a power of two "
			"(allowed: 1024 to 1048576, a power of two)"},
		{"{" BASE ",\"app_queue\":{\"size\":1000}}",
			"f:1: app_queue.size: 1000 is not a power of two "
			"(allowed: 2 to 65536, a power of two)"},
		{"{" BASE ",\"detect\":{\"hang\":\"1 ms\"}}",
			"f:1: detect.hang: \"1 ms\" is not a duration as \"5ms\" (allowed: 1ns to "
			"1h)"},
		{"{" BASE ",\"detect\":{\"hang\":\"0ns\"}}",
			"f:1: detect.hang: \"0ns\" is out of range (allowed: 1ns to 1h)"},
		{"{" BASE ",\"records\":{\"export_percent\":101}}",
			"f:1: records.export_percent: 101 is out of range (allowed: 0 to 100)"},
		{"{" BASE ",\"debug\":{\"faults\":1}}",
			"f:1: debug.faults: 1 is not true or false (allowed: true, false)"},
		{"{" BASE ",\"analyzer\":{\"mode\":\"on\"}}",
			"f:1: analyzer.mode: \"on\" is not known (allowed: child, external, off)"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		assert_refused(refusals[i].text, refusals[i].message);
}

static void
users_and_modes_that_make_no_sense_are_refused(void **state)
{
	static const struct refusal refusals[] = {
		{"{" BASE ",\"control\":{\"mode\":\"0777\"}}",
			"f:1: control.mode: \"0777\" is out of range (allowed: 0600 to 0666 in "
			"octal, "
			"without x bits)"},
		{"{" BASE ",\"control\":{\"mode\":\"0060\"}}",
			"f:1: control.mode: \"0060\" is out of range (allowed: 0600 to 0666 in "
			"octal, "
			"without x bits)"},
		{"{" BASE ",\"control\":{\"mode\":384}}",
			"f:1: control.mode: 384 is not a mode (allowed: 0600 to 0666 in octal, "
			"without x bits)"},
		{"{" BASE ",\"privileges\":{\"user\":\"a b\"}}",
			"f:1: privileges.user: \"a b\" is not a name (allowed: 1 to 32 letters, "
			"digits, _ and -, null)"},
		{"{" BASE ",\"privileges\":{\"drop\":false,\"user\":\"us\"}}",
			"f:1: privileges.user: only with privileges.drop (allowed: null, or drop "
			"true)"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		assert_refused(refusals[i].text, refusals[i].message);
}

static void
ports_paths_and_services_that_do_not_fit_each_other_are_refused(void **state)
{
	static const struct refusal refusals[] = {
		{"{\"ports\":{\"w\":{\"device\":[\"a\"]}}," PATHS ",\"services\":[]}",
			"f:1: ports: has 1 entries (allowed: 2 to 16)"},
		{"{\"ports\":{\"w\":{\"device\":[]},\"s\":{\"device\":[\"b\"]}}," PATHS
		 ",\"services\":[]}",
			"f:1: ports.w.device: [] is not a device or list of devices (allowed: 1 to "
			"4 "
			"texts of 1 to 127 characters; the last is the port)"},
		{"{\"ports\":{\"w\":{\"device\":[\"a,x=1\"]},\n\"s\":{\"device\":[\"a\"]}}," PATHS
		 ",\"services\":[]}",
			"f:2: ports.s: device a is named twice (allowed: once in all ports)"},
		{"{\"ports\":{\"w\":{\"device\":[\"a\"],\"rate\":\"50\"},\"s\":{\"device\":[\"b\"]}"
		 "}"
		 "," PATHS ",\"services\":[]}",
			"f:1: ports.w.rate: \"50\" is out of range (allowed: 8k to 1T, null)"},
		{"{" PORTS ",\"paths\":[{\"wire\":\"w\",\"service\":\"q\"}],\"services\":[]}",
			"f:1: paths[0].service: \"q\" is not a port (allowed: a name under ports)"},
		{"{" PORTS ",\"paths\":[{\"wire\":\"w\",\"service\":\"w\"}],\"services\":[]}",
			"f:1: ports.w: is used 2 times in paths (allowed: 1)"},
		{"{" PORTS "," PATHS ",\"services\":[" SERVICE ",\n" SERVICE "]}",
			"f:2: services[1].name: is the name of an earlier service "
			"(allowed: one each)"},
		{"{" PORTS "," PATHS ",\"services\":[" SERVICE ",\n{\"name\":\"kv2\",\n"
		 "\"address\":\"10.0.0.1\",\n\"port\":6379}]}",
			"f:4: services[1].port: an earlier service has this address and port "
			"(allowed: one each)"},
		{"{" PORTS "," PATHS ",\"services\":[{\"name\":\"other\",\"address\":\"10.0.0.1\","
		 "\"port\":1}]}",
			"f:1: services[0].name: \"other\" stands for the traffic of no service "
			"(allowed: another name)"},
		{"{" PORTS "," PATHS ",\"services\":[{\"name\":\"a\",\"address\":\"10.0.0.256\","
		 "\"port\":1}]}",
			"f:1: services[0].address: \"10.0.0.256\" is not an address "
			"(allowed: an IPv4 or IPv6 address)"},
		{"{" PORTS "," PATHS ",\"services\":[{\"name\":\"a\",\"address\":\"10.0.0.1\","
		 "\"port\":1,\"pid_file\":\"kv.pid\"}]}",
			"f:1: services[0].pid_file: \"kv.pid\" is not an absolute path "
			"(allowed: an absolute path of up to 127 characters, null)"},
		{"{" PORTS "," PATHS ",\"services\":[{\"name\":\"a\",\"address\":\"10.0.0.1\","
		 "\"port\":1,\"operations\":[{\"match\":\"A\",\"slo\":\"1s\"},"
		 "{\"match\":\"A\",\"slo\":\"1s\"}]}]}",
			"f:1: services[0].operations: two operations have the same match "
			"(allowed: one each)"},
		{"{" BASE ",\"framing\":[{\"name\":\"resp\",\"header\":4,"
		 "\"length\":{\"at\":0,\"bytes\":4}}]}",
			"f:1: framing[0].name: is the name of another protocol (allowed: one "
			"each)"},
		{"{" BASE ",\"framing\":[{\"name\":\"x\",\"header\":4,"
		 "\"length\":{\"at\":2,\"bytes\":4}}]}",
			"f:1: framing[0]: makes no sense (allowed: length, id, magic and response "
			"inside the header; length.bytes of 1, 2, 3, 4 or 8)"},
		{"{" BASE ",\"framing\":[{\"name\":\"x\",\"header\":4,"
		 "\"length\":{\"at\":0,\"bytes\":4},\"magic\":{\"bytes\":\"abc\"}}]}",
			"f:1: framing[0].magic.bytes: \"abc\" is not bytes "
			"(allowed: 1 to 8 bytes as hex digits)"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		assert_refused(refusals[i].text, refusals[i].message);
	assert_int_equal(bs_config_parse("f",
				 "{" PORTS "," PATHS ",\"services\":[{\"name\":\"a\","
				 "\"address\":\"10.0.0.1\",\"port\":1,\"protocol\":\"respp\"}]}",
				 &config, error),
		-EINVAL);
	assert_non_null(strstr(
		error, "f:1: services[0].protocol: \"respp\" is not a protocol (allowed: auto, "));
	assert_non_null(strstr(error, ", resp"));
	assert_int_equal(error[strlen(error) - 1], ')');
}

static void
what_is_not_built_yet_is_refused_by_name_unless_null_or_off(void **state)
{
	static const struct refusal refusals[] = {
		{"{" BASE ",\"analyzer\":{\"otlp\":{}}}",
			"f:1: analyzer.otlp: {} is not built yet (allowed: null)"},
		{"{" BASE ",\"analyzer\":{\"prometheus\":9100}}",
			"f:1: analyzer.prometheus: 9100 is not built yet (allowed: null)"},
		{"{" BASE ",\"offload\":{\"mode\":\"mark\"}}",
			"f:1: offload.mode: \"mark\" is not built yet (allowed: auto, off)"},
		{"{" PORTS "," PATHS ",\"services\":\"auto\"}",
			"f:1: services: \"auto\" is not built yet (allowed: 0 to 256 entries)"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		assert_refused(refusals[i].text, refusals[i].message);
	assert_parses("{" BASE ",\"analyzer\":{\"mode\":\"off\",\"journal\":null,\"otlp\":null},"
		      "\"shim\":{\"udp\":\"off\"},\"offload\":{\"mode\":\"off\"}}",
		&config);
	assert_false(config.analyzer.child);
}

static void
a_journal_is_a_path_or_an_object_with_one(void **state)
{
	static const struct refusal refusals[] = {
		{"{" BASE ",\"analyzer\":{\"journal\":\"var/j\"}}",
			"f:1: analyzer.journal.path: \"var/j\" is not an absolute path of a file "
			"(allowed: an absolute path of up to 123 characters)"},
		{"{" BASE ",\"analyzer\":{\"journal\":\"/var/\"}}",
			"f:1: analyzer.journal.path: \"/var/\" is not an absolute path of a file "
			"(allowed: an absolute path of up to 123 characters)"},
		{"{" BASE ",\"analyzer\":{\"journal\":7}}",
			"f:1: analyzer.journal: 7 is not a path or an object (allowed: an absolute "
			"path, {\"path\": ...}, null)"},
		{"{" BASE ",\"analyzer\":{\"journal\":{\"size\":\"4M\"}}}",
			"f:1: analyzer.journal.path: required key is missing (allowed: an absolute "
			"path of up to 123 characters)"},
		{"{" BASE ",\"analyzer\":{\"journal\":{\"path\":\"/j\",\"size\":\"7M\"}}}",
			"f:1: analyzer.journal.size: is too little for 8 files (allowed: 1M for "
			"each)"},
		{"{" BASE ",\"analyzer\":{\"journal\":{\"path\":\"/j\",\"files\":1}}}",
			"f:1: analyzer.journal.files: 1 is out of range (allowed: 2 to 16)"},
		{"{" BASE ",\"analyzer\":{\"mode\":\"off\",\"journal\":\"/j\"}}",
			"f:1: analyzer.journal: is written by an analyzer that bufscoped starts "
			"(allowed: null, or mode \"child\")"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		assert_refused(refusals[i].text, refusals[i].message);
	assert_parses("{" BASE "}", &config);
	assert_string_equal(config.journal.path, "");
	assert_parses("{" BASE ",\"analyzer\":{\"journal\":\"/var/j\"}}", &config);
	assert_string_equal(config.journal.path, "/var/j");
	assert_int_equal(config.journal.bytes, 256u << 20);
	assert_int_equal(config.journal.files, 8);
	assert_parses("{" BASE ",\"analyzer\":{\"journal\":{\"path\":\"/j\",\"size\":\"4M\","
		      "\"files\":4}}}",
		&config);
	assert_int_equal(config.journal.bytes, 4u << 20);
	assert_int_equal(config.journal.files, 4);
}

static void
a_line_is_found_behind_texts_and_lists_that_look_like_keys(void **state)
{
	(void)state;
	assert_refused("{\n\"eal\": {\"file_prefix\":\n\"x\",\n\"lcores\": \"0\"},\n" PORTS
		       ",\n" PATHS
		       ",\n\"services\": [\n{\"name\": \"a\", \"tenant\": \"}],{\\\"slo\\\":\",\n"
		       "\"address\": \"1.1.1.1\", \"port\": 1},\n{\"name\": \"b\",\n"
		       "\"address\": \"1.1.1.2\", \"port\": 1,\n\"slo\": 5}]\n}",
		"f:12: services[1].slo: 5 is not a duration as \"5ms\" (allowed: 1us to 1h, null)");
}

static void
a_reload_may_change_slos_operations_detect_and_records_only(void **state)
{
	(void)state;
	assert_parses("{" BASE "}", &config);
	assert_parses("{" PORTS "," PATHS ",\"services\":[{\"name\":\"kv\","
		      "\"address\":\"10.0.0.1\",\"port\":6379,\"slo\":\"1ms\","
		      "\"operations\":[{\"match\":\"GET\",\"slo\":\"2ms\"}]}],"
		      "\"detect\":{\"hang\":\"2ms\"},\"records\":{\"sample\":5}}",
		&other);
	assert_int_equal(bs_config_reloadable(&config, &other, error), 0);

	assert_parses("{" PORTS "," PATHS ",\"services\":[{\"name\":\"kv\","
		      "\"address\":\"10.0.0.1\",\"port\":6379,\"class\":{\"out\":1}}]}",
		&other);
	assert_int_equal(bs_config_reloadable(&config, &other, error), -EPERM);
	assert_string_equal(error,
		"f: services[0].class.out: cannot change without a restart (allowed in a reload: "
		"services' slo and operations, detect, records)");

	assert_parses("{" BASE ",\"eal\":{\"lcores\":\"0\"}}", &other);
	assert_int_equal(bs_config_reloadable(&config, &other, error), -EPERM);
	assert_non_null(strstr(error, "f: eal.lcores: "));

	assert_parses("{" PORTS "," PATHS ",\"services\":[]}", &other);
	assert_int_equal(bs_config_reloadable(&config, &other, error), -EPERM);
	assert_non_null(strstr(error, "f: services: "));
}

static char directory[] = "/tmp/bs_config_XXXXXX";

static const char *
write_file(const char *name, const char *text, size_t bytes, mode_t mode)
{
	static char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, bytes), bytes);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	return path;
}

static void
assert_file_refused(const char *path, int code, const char *why)
{
	char expected[BS_CONFIG_ERROR_BYTES];
	size_t used;

	snprintf(expected, sizeof(expected), "%s: %s", path, why);
	/* a remedy ends with what to apply it to */
	used = strlen(expected);
	if (code == -EPERM)
		snprintf(expected + used, sizeof(expected) - used, " %s", path);
	assert_int_equal(bs_config_load(path, &config, error), code);
	assert_string_equal(error, expected);
}

static void
a_file_that_is_unsafe_or_not_a_file_is_refused(void **state)
{
	static const char text[] = "{" BASE "}";
	char link[64], fifo[64];

	(void)state;
	assert_non_null(mkdtemp(directory));
	assert_int_equal(
		bs_config_load(write_file("ok", text, strlen(text), 0644), &config, error), 0);
	assert_file_refused(write_file("group", text, strlen(text), 0664), -EPERM,
		"others can write it (mode 0664): chmod go-w");
	assert_file_refused(write_file("world", text, strlen(text), 0602), -EPERM,
		"others can write it (mode 0602): chmod go-w");
	assert_file_refused(write_file("nul", "{\0}", 3, 0644), -EINVAL,
		"holds a NUL byte, or was changed while it was read");
	snprintf(link, sizeof(link), "%s/link", directory);
	assert_int_equal(symlink("ok", link), 0);
	assert_file_refused(link, -ELOOP, "is a symbolic link: give the file itself");
	snprintf(fifo, sizeof(fifo), "%s/fifo", directory);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_file_refused(fifo, -EINVAL, "is not a regular file");
	assert_file_refused("/nonexistent/x", -ENOENT, "No such file or directory");
	if (geteuid() == 0) {
		const char *path = write_file("uid", text, strlen(text), 0644);

		assert_int_equal(chown(path, 12345, 0), 0);
		assert_file_refused(path, -EPERM,
			"belongs to uid 12345, and must to root or the caller: chown root");
	}
	assert_int_equal(system("rm -r /tmp/bs_config_??????"), 0);
}

/* Loads DIR/ok with DIR of that mode. */
static int
load_from_directory(const char *parent, mode_t mode)
{
	static const char good[] = "{" BASE "}";
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/ok", parent);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, good, strlen(good)), strlen(good));
	close(fd);
	assert_int_equal(chmod(parent, mode), 0);
	return bs_config_load(path, &config, error);
}

static void
a_file_that_others_can_replace_in_its_directory_is_refused(void **state)
{
	char parent[] = "/tmp/bs_config_XXXXXX", expected[BS_CONFIG_ERROR_BYTES];

	(void)state;
	assert_non_null(mkdtemp(parent));
	assert_int_equal(load_from_directory(parent, 0755), 0);
	/* as /tmp: there only the owner can replace a file */
	assert_int_equal(load_from_directory(parent, 01777), 0);
	assert_int_equal(load_from_directory(parent, 0777), -EPERM);
	snprintf(expected, sizeof(expected),
		"%s: others can write to this directory (mode 0777): chmod go-w %s", parent,
		parent);
	assert_string_equal(error, expected);
	assert_int_equal(load_from_directory(parent, 0770), -EPERM);
	if (geteuid() == 0) {
		assert_int_equal(chown(parent, 12345, 0), 0);
		assert_int_equal(load_from_directory(parent, 0755), -EPERM);
		assert_non_null(strstr(error, "belongs to uid 12345"));
	}
	assert_int_equal(system("rm -r /tmp/bs_config_??????"), 0);
}

static char text[32768];

static const char *
read_sample(const char *name)
{
	char path[512];
	size_t bytes;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", BS_CONFIG_SAMPLES, name);
	file = fopen(path, "r");
	assert_non_null(file);
	bytes = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[bytes] = '\0';
	return text;
}

static void
every_annotated_sample_parses(void **state)
{
	static const char *const names[] = {
		"demo.json", "dns.json", "memcached.json", "nginx.json", "external.json"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char entry[64];

		assert_parses(read_sample(names[i]), &config);
		snprintf(entry, sizeof(entry), "| `%s` |", names[i]);
		assert_non_null(strstr(read_sample("README.md"), entry));
	}
}

/* Each key has a row "| `path` | `default` |" or "| `path` | required |"; returns their number. */
static unsigned
assert_documented(const char *readme, const struct config_key *keys, const char *prefix)
{
	unsigned count = 0;

	for (const struct config_key *key = keys; key->name != NULL; key++) {
		char path[128], row[256];

		snprintf(path, sizeof(path), "%s%s", prefix, key->name);
		if (key->keys != NULL) {
			strcat(path, key->kind == CONFIG_LIST  ? "[]."
				     : key->kind == CONFIG_MAP ? ".NAME."
							       : ".");
			count += assert_documented(readme, key->keys, path);
			continue;
		}
		if (key->fallback == NULL)
			snprintf(row, sizeof(row), "\n| `%s` | required |", path);
		else
			snprintf(row, sizeof(row), "\n| `%s` | `%s` |", path, key->fallback);
		if (strstr(readme, row) == NULL)
			fail_msg("config/README.md has no row%s", row);
		count++;
	}
	return count;
}

static void
the_readme_lists_exactly_the_keys_there_are_with_their_defaults(void **state)
{
	const char *readme = read_sample("README.md");
	const char *row = strstr(readme, "## Keys");
	unsigned rows = 0;

	(void)state;
	assert_non_null(row);
	while ((row = strstr(row, "\n| `")) != NULL) {
		rows++;
		row++;
	}
	assert_int_equal(assert_documented(readme, config_keys, ""), rows);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(required_keys_alone_give_the_documented_defaults),
		cmocka_unit_test(given_values_land_where_they_belong),
		cmocka_unit_test(each_wrong_value_is_refused_with_place_reason_and_what_is_allowed),
		cmocka_unit_test(users_and_modes_that_make_no_sense_are_refused),
		cmocka_unit_test(ports_paths_and_services_that_do_not_fit_each_other_are_refused),
		cmocka_unit_test(what_is_not_built_yet_is_refused_by_name_unless_null_or_off),
		cmocka_unit_test(a_journal_is_a_path_or_an_object_with_one),
		cmocka_unit_test(a_line_is_found_behind_texts_and_lists_that_look_like_keys),
		cmocka_unit_test(a_reload_may_change_slos_operations_detect_and_records_only),
		cmocka_unit_test(a_file_that_is_unsafe_or_not_a_file_is_refused),
		cmocka_unit_test(a_file_that_others_can_replace_in_its_directory_is_refused),
		cmocka_unit_test(every_annotated_sample_parses),
		cmocka_unit_test(the_readme_lists_exactly_the_keys_there_are_with_their_defaults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
