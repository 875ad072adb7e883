/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every key of the configuration: its kind, default, bounds and place. Users
 * read the same list in config/README.md; a test compares the two.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bs_packet.h"
#include "config_private.h"

#define CPU_MAX 1023u
#define SERVICE_NAME_BYTES 32u /* leaves room for ".app.out" and more in a buffer's name */

/* Of a field of struct bs_config, a type with a member, and an element of a list. */
#define AT(field)                                                                                  \
	.offset = offsetof(struct bs_config, field), .bytes = FIELD_BYTES(bs_config, field)
#define IN(type, field) .offset = offsetof(struct type, field), .bytes = FIELD_BYTES(type, field)
#define FIELD_BYTES(type, field) sizeof(((struct type *)0)->field)
#define ELEMENTS(type, list, counter)                                                              \
	.offset = offsetof(struct type, list), .bytes = sizeof(((struct type *)0)->list[0]),       \
	.count_offset = offsetof(struct type, counter),                                            \
	.count_max = sizeof(((struct type *)0)->list) / sizeof(((struct type *)0)->list[0])

_Static_assert(offsetof(struct bs_config_port, name) == 0, "a map stores names there");

static int
add_cpus(struct bs_config *config, unsigned first, unsigned last)
{
	for (unsigned cpu = first; cpu <= last; cpu++) {
		for (unsigned i = 0; i < config->eal.pipeline.count; i++) {
			if (config->eal.pipeline.cpus[i] == cpu)
				return -EEXIST;
		}
		if (config->eal.pipeline.count == BS_CONFIG_LCORES)
			return -ENOSPC;
		config->eal.pipeline.cpus[config->eal.pipeline.count++] = cpu;
	}
	return 0;
}

/* One CPU number at *text, which is moved behind it. */
static int
read_cpu(const char **text, unsigned *cpu)
{
	unsigned value = 0;

	if (!isdigit((unsigned char)**text))
		return -EINVAL;
	for (; isdigit((unsigned char)**text); (*text)++) {
		value = value * 10 + (unsigned)(**text - '0');
		if (value > CPU_MAX)
			return -ERANGE;
	}
	*cpu = value;
	return 0;
}

static int
parse_lcores(const char *text, struct bs_config *config)
{
	unsigned first, last;
	int ret;

	for (;; text++) {
		ret = read_cpu(&text, &first);
		last = first;
		if (ret == 0 && *text == '-') {
			text++;
			ret = read_cpu(&text, &last);
		}
		if (ret == 0 && last < first)
			ret = -EINVAL;
		if (ret == 0)
			ret = add_cpus(config, first, last);
		if (ret != 0 || *text == '\0')
			return ret;
		if (*text != ',')
			return -EINVAL;
	}
}

static int
set_lcores(
	struct config_reader *reader, const struct config_key *key, const json_t *value, void *base)
{
	struct bs_config *config = base;
	const char *text = json_string_value(value);

	if (json_is_null(value))
		return 0;
	if (text == NULL)
		return config_fail_value(reader, key, value, "not a list of CPUs");
	switch (parse_lcores(text, config)) {
	case 0:
		return 0;
	case -ERANGE:
		return config_fail_value(reader, key, value, "out of range");
	case -EEXIST:
		return config_fail_value(reader, key, value, "naming a CPU twice");
	case -ENOSPC:
		return config_fail_value(reader, key, value, "too long");
	default:
		return config_fail_value(reader, key, value, "not a list of CPUs");
	}
}

static int
set_collector(
	struct config_reader *reader, const struct config_key *key, const json_t *value, void *base)
{
	struct bs_config *config = base;

	config->eal.collector_cpu = -1;
	if (json_is_null(value))
		return 0;
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
		json_integer_value(value) > CPU_MAX)
		return config_fail_value(reader, key, value, "not a CPU");
	config->eal.collector_cpu = (int)json_integer_value(value);
	return 0;
}

static bool
copy_text(const json_t *value, char *out, size_t bytes)
{
	const char *text = json_string_value(value);

	if (text == NULL || text[0] == '\0' || strlen(text) >= bytes)
		return false;
	for (const char *p = text; *p != '\0'; p++) {
		if (iscntrl((unsigned char)*p))
			return false;
	}
	memcpy(out, text, strlen(text) + 1);
	return true;
}

static int
set_devices(
	struct config_reader *reader, const struct config_key *key, const json_t *value, void *base)
{
	struct bs_config_port *port = base;
	json_t *device;
	size_t index;

	if (json_is_string(value)) {
		if (!copy_text(value, port->device[0], BS_CONFIG_TEXT))
			return config_fail_value(reader, key, value, "not a device");
		port->device_count = 1;
		return 0;
	}
	if (json_array_size(value) == 0 || json_array_size(value) > BS_CONFIG_DEVICES)
		return config_fail_value(reader, key, value, "not a device or list of devices");
	json_array_foreach(value, index, device)
	{
		config_push(reader, NULL, (unsigned)index);
		if (!copy_text(device, port->device[index], BS_CONFIG_TEXT))
			return config_fail_value(reader, key, device, "not a device");
		config_pop(reader);
	}
	port->device_count = (unsigned)index;
	return 0;
}

static int
set_port_index(
	struct config_reader *reader, const struct config_key *key, const json_t *value, void *base)
{
	const struct bs_config *config = reader->config;
	const char *name = json_string_value(value);

	for (unsigned i = 0; name != NULL && i < config->port_count; i++) {
		if (strcmp(config->ports[i].name, name) == 0) {
			memcpy((char *)base + key->offset, &i, sizeof(i));
			return 0;
		}
	}
	return config_fail_value(reader, key, value, "not a port");
}

static int
set_address(
	struct config_reader *reader, const struct config_key *key, const json_t *value, void *base)
{
	struct bs_config_service *service = base;

	if (!json_is_string(value) ||
		bs_address_parse(json_string_value(value), service->address) != 0)
		return config_fail_value(reader, key, value, "not an address");
	return 0;
}

static int
set_pid_file(
	struct config_reader *reader, const struct config_key *key, const json_t *value, void *base)
{
	struct bs_config_service *service = base;

	if (json_is_null(value))
		return 0;
	if (!copy_text(value, service->pid_file, sizeof(service->pid_file)) ||
		service->pid_file[0] != '/')
		return config_fail_value(reader, key, value, "not an absolute path");
	return 0;
}

static int
set_framing_name(
	struct config_reader *reader, const struct config_key *key, const json_t *value, void *base)
{
	struct bs_config *config = reader->config;
	struct bs_framing_row *row = base;
	char *name = config->framing_names[row - config->framing];

	if (!copy_text(value, name, sizeof(config->framing_names[0])))
		return config_fail_value(reader, key, value, "not a name");
	row->name = name;
	return 0;
}

/* "cafe": 1 to 8 bytes, all of whose bits count. */
static int
set_magic(
	struct config_reader *reader, const struct config_key *key, const json_t *value, void *base)
{
	struct bs_framing_row *row = base;
	const char *text = json_string_value(value);
	size_t digits = text == NULL ? 0 : strlen(text);

	if (digits < 2 || digits > 2 * sizeof(row->magic) || digits % 2 != 0 ||
		strspn(text, "0123456789abcdefABCDEF") != digits)
		return config_fail_value(reader, key, value, "not bytes");
	for (size_t i = 0; i < digits / 2; i++) {
		char byte[3] = {text[2 * i], text[2 * i + 1], '\0'};

		row->magic[i] = (uint8_t)strtoul(byte, NULL, 16);
		row->magic_mask[i] = 0xff;
	}
	row->magic_len = (uint8_t)(digits / 2);
	return 0;
}

enum { MODE_OFF, MODE_CHILD, MODE_EXTERNAL };

static int
set_analyzer_mode(
	struct config_reader *reader, const struct config_key *key, const json_t *value, void *base)
{
	struct bs_config *config = base;
	int mode = MODE_OFF, ret = config_read_word(reader, key, value, &mode);

	config->analyzer.child = mode == MODE_CHILD;
	config->analyzer.external = mode == MODE_EXTERNAL;
	return ret;
}

/* "0660": who may read and write, and so connect. */
static int
set_mode(
	struct config_reader *reader, const struct config_key *key, const json_t *value, void *base)
{
	struct bs_config *config = base;
	const char *text = json_string_value(value);
	size_t digits = text == NULL ? 0 : strlen(text);
	unsigned long mode;

	if (digits < 3 || digits > 4 || strspn(text, "01234567") != digits)
		return config_fail_value(reader, key, value, "not a mode");
	mode = strtoul(text, NULL, 8);
	if ((mode & ~0666ul) != 0 || (mode & 0600) != 0600)
		return config_fail_value(reader, key, value, "out of range");
	config->control.mode = (uint16_t)mode;
	return 0;
}

static int
set_journal_path(
	struct config_reader *reader, const struct config_key *key, const json_t *value, void *base)
{
	struct bs_config *config = base;
	const size_t suffix = sizeof(".99") - 1;

	if (copy_text(value, config->journal.path, sizeof(config->journal.path) - suffix) &&
		config->journal.path[0] == '/' &&
		config->journal.path[strlen(config->journal.path) - 1] != '/')
		return 0;
	return config_fail_value(reader, key, value, "not an absolute path of a file");
}

/* A text stands for an object with this path. */
static int
set_journal(
	struct config_reader *reader, const struct config_key *key, const json_t *value, void *base)
{
	json_t *object;
	int ret;

	if (json_is_null(value))
		return 0;
	if (json_is_object(value))
		return config_read_object(reader, key->keys, value, base);
	if (!json_is_string(value))
		return config_fail_value(reader, key, value, "not a path or an object");
	object = json_pack("{s:O}", "path", value);
	ret = object == NULL ? config_fail(reader, "out of memory")
			     : config_read_object(reader, key->keys, object, base);
	json_decref(object);
	return ret;
}

/* hugepages is kept as its word. */
static int
set_hugepages(
	struct config_reader *reader, const struct config_key *key, const json_t *value, void *base)
{
	struct bs_config *config = base;
	int number, ret = config_read_word(reader, key, value, &number);

	if (ret == 0)
		snprintf(config->eal.hugepages, sizeof(config->eal.hugepages), "%s",
			json_string_value(value));
	return ret;
}

static const struct config_word hugepages_words[] = {{"auto", 0}, {"on", 1}, {"off", 2}, {NULL, 0}};
static const struct config_word endian_words[] = {{"big", 0}, {"little", 1}, {NULL, 0}};
static const struct config_word tag_words[] = {{"negotiated", BS_SHIM_NEGOTIATED},
	{"always", BS_SHIM_ALWAYS}, {"off", BS_SHIM_OFF}, {NULL, 0}};
static const struct config_word tcp_words[] = {{"tcp-option", BS_CARRIER_TCP_OPTION},
	{"ether", BS_CARRIER_ETHER}, {"geneve", BS_CARRIER_GENEVE}, {"off", BS_CARRIER_OFF},
	{NULL, 0}};
static const struct config_word udp_words[] = {{"udp-option", BS_CARRIER_UDP_OPTION},
	{"ether", BS_CARRIER_ETHER}, {"geneve", BS_CARRIER_GENEVE}, {"off", BS_CARRIER_OFF},
	{NULL, 0}};
static const struct config_word schedule_words[] = {
	{"priority", BS_SCHEDULE_PRIORITY}, {"drr", BS_SCHEDULE_DRR}, {NULL, 0}};
static const struct config_word mode_words[] = {
	{"child", MODE_CHILD}, {"external", MODE_EXTERNAL}, {"off", MODE_OFF}, {NULL, 0}};
static const struct config_word offload_words[] = {
	{"auto", 0}, {"off", 1}, {NULL, CONFIG_WORD_NOT_BUILT}};
static const struct config_word probe_words[] = {{"auto", 1}, {"off", 0}, {NULL, 0}};
static const struct config_word services_words[] = {{"auto", CONFIG_WORD_NOT_BUILT}, {NULL, 0}};

static const struct config_key eal_keys[] = {
	{"lcores", CONFIG_OWN, "null", .set = set_lcores, AT(eal.pipeline),
		.allowed = "up to 64 CPUs of 0 to 1023, as \"0,1\" or \"0-3\", null: two near the "
			   "ports"},
	{"memory", CONFIG_SIZE, "\"512M\"", .min = "32M", .max = "1T", AT(eal.memory_bytes)},
	{"hugepages", CONFIG_WORD, "\"auto\"", .words = hugepages_words, .set = set_hugepages,
		AT(eal.hugepages)},
	{"file_prefix", CONFIG_NAME, "\"bufscope\"", AT(eal.file_prefix)},
	{"collector", CONFIG_OWN, "null", .set = set_collector, AT(eal.collector_cpu),
		.allowed = "a CPU of 0 to 1023, null: those that the pipeline leaves"},
	{NULL},
};

static const struct config_key port_keys[] = {
	{"device", CONFIG_OWN, .set = set_devices, IN(bs_config_port, device),
		.allowed = "1 to 4 texts of 1 to 127 characters; the last is the port"},
	{"trust_shim", CONFIG_BOOL, "false", IN(bs_config_port, trust_shim)},
	{"rate", CONFIG_RATE, "null", .null_ok = true, .min = "8k", .max = "1T",
		IN(bs_config_port, rate_bps)},
	{NULL},
};

static const struct config_key path_keys[] = {
	{"wire", CONFIG_OWN, .set = set_port_index, IN(bs_config_path, wire),
		.allowed = "a name under ports"},
	{"service", CONFIG_OWN, .set = set_port_index, IN(bs_config_path, service),
		.allowed = "a name under ports"},
	{NULL},
};

static const struct config_key class_keys[] = {
	{"in", CONFIG_NUMBER, "0", .min = "0", .max = "7", IN(bs_config_service, class_in)},
	{"out", CONFIG_NUMBER, "0", .min = "0", .max = "7", IN(bs_config_service, class_out)},
	{NULL},
};

static const struct config_key operation_keys[] = {
	{"match", CONFIG_TEXT, IN(bs_config_operation, match)},
	{"slo", CONFIG_DURATION, .min = "1us", .max = "1h", IN(bs_config_operation, slo_ns)},
	{NULL},
};

static const struct config_key service_keys[] = {
	{"name", CONFIG_NAME, .offset = offsetof(struct bs_config_service, name),
		.bytes = SERVICE_NAME_BYTES},
	{"address", CONFIG_OWN, .set = set_address, IN(bs_config_service, address),
		.allowed = "an IPv4 or IPv6 address"},
	{"port", CONFIG_NUMBER, .min = "1", .max = "65535", IN(bs_config_service, port)},
	{"protocol", CONFIG_NAME, "\"auto\"", IN(bs_config_service, protocol)},
	{"slo", CONFIG_DURATION, "null", .null_ok = true, .reload = true, .min = "1us", .max = "1h",
		IN(bs_config_service, slo_ns)},
	{"class", CONFIG_OBJECT, "{}", .keys = class_keys},
	{"tenant", CONFIG_TEXT, "null", .null_ok = true, IN(bs_config_service, tenant)},
	{"probe", CONFIG_WORD, "\"auto\"", .words = probe_words, IN(bs_config_service, probe)},
	{"pid_file", CONFIG_OWN, "null", .set = set_pid_file, IN(bs_config_service, pid_file),
		.allowed = "an absolute path of up to 127 characters, null"},
	{"operations", CONFIG_LIST, "[]", .reload = true, .keys = operation_keys,
		ELEMENTS(bs_config_service, operations, operation_count)},
	{NULL},
};

static const struct config_key length_keys[] = {
	{"at", CONFIG_NUMBER, .min = "0", .max = "63", IN(bs_framing_row, length_at)},
	{"bytes", CONFIG_NUMBER, .min = "1", .max = "8", IN(bs_framing_row, length_bytes)},
	{"endian", CONFIG_WORD, "\"big\"", .words = endian_words,
		IN(bs_framing_row, length_little)},
	{"adds", CONFIG_NUMBER, "0", .min = "-65536", .max = "65536",
		IN(bs_framing_row, length_adds)},
	{NULL},
};

static const struct config_key id_keys[] = {
	{"at", CONFIG_NUMBER, "0", .min = "0", .max = "63", IN(bs_framing_row, id_at)},
	{"bytes", CONFIG_NUMBER, "0", .min = "0", .max = "8", IN(bs_framing_row, id_bytes)},
	{"endian", CONFIG_WORD, "\"big\"", .words = endian_words, IN(bs_framing_row, id_little)},
	{NULL},
};

static const struct config_key magic_keys[] = {
	{"at", CONFIG_NUMBER, "0", .min = "0", .max = "63", IN(bs_framing_row, magic_at)},
	{"bytes", CONFIG_OWN, .set = set_magic,
		.offset = offsetof(struct bs_framing_row, magic_len),
		.bytes = offsetof(struct bs_framing_row, magic_at) -
			 offsetof(struct bs_framing_row, magic_len),
		.allowed = "1 to 8 bytes as hex digits"},
	{NULL},
};

#define FRAMING_TEST(test)                                                                         \
	static const struct config_key test##_keys[] = {                                           \
		{"at", CONFIG_NUMBER, .min = "0", .max = "63", IN(bs_framing_row, test.at)},       \
		{"mask", CONFIG_NUMBER, .min = "1", .max = "255", IN(bs_framing_row, test.mask)},  \
		{"value", CONFIG_NUMBER, .min = "0", .max = "255",                                 \
			IN(bs_framing_row, test.value)},                                           \
		{"otherwise", CONFIG_BOOL, "false", IN(bs_framing_row, test.otherwise)},           \
		{NULL},                                                                            \
	}

FRAMING_TEST(response);
FRAMING_TEST(none);
FRAMING_TEST(oneway);
FRAMING_TEST(push);
FRAMING_TEST(error);

static const struct config_key status_keys[] = {
	{"at", CONFIG_NUMBER, .min = "0", .max = "63", IN(bs_framing_row, status_at)},
	{"bytes", CONFIG_NUMBER, .min = "1", .max = "4", IN(bs_framing_row, status_bytes)},
	{"endian", CONFIG_WORD, "\"big\"", .words = endian_words,
		IN(bs_framing_row, status_little)},
	{NULL},
};

static const struct config_key operation_code_keys[] = {
	{"at", CONFIG_NUMBER, .min = "0", .max = "63", IN(bs_framing_row, operation_at)},
	{"bytes", CONFIG_NUMBER, .min = "1", .max = "4", IN(bs_framing_row, operation_bytes)},
	{"endian", CONFIG_WORD, "\"big\"", .words = endian_words,
		IN(bs_framing_row, operation_little)},
	{NULL},
};

static const struct config_key framing_keys[] = {
	{"name", CONFIG_OWN, .set = set_framing_name, .allowed = "1 to 23 characters"},
	{"header", CONFIG_NUMBER, .min = "1", .max = "64", IN(bs_framing_row, header)},
	{"length", CONFIG_OBJECT, .keys = length_keys},
	{"id", CONFIG_OBJECT, "{}", .keys = id_keys},
	{"magic", CONFIG_OBJECT, "null", .null_ok = true, .keys = magic_keys},
	{"response", CONFIG_OBJECT, "null", .null_ok = true, .keys = response_keys},
	{"none", CONFIG_OBJECT, "null", .null_ok = true, .keys = none_keys},
	{"oneway", CONFIG_OBJECT, "null", .null_ok = true, .keys = oneway_keys},
	{"push", CONFIG_OBJECT, "null", .null_ok = true, .keys = push_keys},
	{"error", CONFIG_OBJECT, "null", .null_ok = true, .keys = error_keys},
	{"status", CONFIG_OBJECT, "null", .null_ok = true, .keys = status_keys},
	{"operation", CONFIG_OBJECT, "null", .null_ok = true, .keys = operation_code_keys},
	{"length_max", CONFIG_SIZE, "null", .null_ok = true, .min = "1", .max = "1G",
		IN(bs_framing_row, length_max)},
	{NULL},
};

static const struct config_key shim_keys[] = {
	{"tag", CONFIG_WORD, "\"negotiated\"", .words = tag_words, AT(shim.tag)},
	{"tcp", CONFIG_WORD, "\"tcp-option\"", .words = tcp_words, AT(shim.tcp)},
	{"udp", CONFIG_WORD, "\"off\"", .words = udp_words, AT(shim.udp)},
	{NULL},
};

#define DETECT(text, cause, fallback_json)                                                         \
	{                                                                                          \
		text, CONFIG_DURATION, fallback_json, .min = "1ns", .max = "1h",                   \
						      AT(detect_ns[BS_CAUSE_##cause])              \
	}

static const struct config_key detect_keys[] = {
	DETECT("congestion", CONGESTION, "\"200us\""),
	DETECT("contention", CONTENTION, "\"200us\""),
	DETECT("disorder", DISORDER, "\"200us\""),
	DETECT("hang", HANG, "\"1ms\""),
	DETECT("pause", PAUSE, "\"200us\""),
	{NULL},
};

static const struct config_key app_queue_keys[] = {
	{"size", CONFIG_NUMBER, "1024", .min = "2", .max = "65536", .power_of_two = true,
		AT(app_queue.size)},
	{"schedule", CONFIG_WORD, "\"priority\"", .words = schedule_words, AT(app_queue.schedule)},
	{"quantum_bytes", CONFIG_NUMBER, "49152", .min = "64", .max = "16777216",
		AT(app_queue.quantum_bytes)},
	{NULL},
};

static const struct config_key tables_keys[] = {
	{"flows", CONFIG_NUMBER, "65536", .min = "1024", .max = "4194304", .power_of_two = true,
		AT(tables.flows)},
	{"rpcs", CONFIG_NUMBER, "16384", .min = "1024", .max = "1048576", .power_of_two = true,
		AT(tables.rpcs)},
	{NULL},
};

static const struct config_key records_keys[] = {
	{"per_second", CONFIG_NUMBER, "100000", .min = "1", .max = "10000000",
		AT(records.per_second)},
	{"export_percent", CONFIG_REAL, "0.05", .min = "0", .max = "100",
		AT(records.export_percent)},
	{"export_floor", CONFIG_SIZE, "\"16k\"", .min = "0", .max = "1G",
		AT(records.export_floor_bytes)},
	{"sample", CONFIG_NUMBER, "0", .min = "0", .max = "1000000", AT(records.sample)},
	{NULL},
};

static const struct config_key journal_keys[] = {
	{"path", CONFIG_OWN, .set = set_journal_path, AT(journal.path),
		.allowed = "an absolute path of up to 123 characters"},
	{"size", CONFIG_SIZE, "\"256M\"", .min = "2M", .max = "64G", AT(journal.bytes)},
	{"files", CONFIG_NUMBER, "8", .min = "2", .max = "16", AT(journal.files)},
	{NULL},
};

static const struct config_key analyzer_keys[] = {
	{"mode", CONFIG_WORD, "\"child\"", .words = mode_words, .set = set_analyzer_mode,
		.offset = offsetof(struct bs_config, analyzer.child),
		.bytes = offsetof(struct bs_config, analyzer.user) -
			 offsetof(struct bs_config, analyzer.child)},
	{"user", CONFIG_NAME, "null", .null_ok = true, AT(analyzer.user)},
	{"journal", CONFIG_OBJECT, "null", .null_ok = true, .set = set_journal,
		.keys = journal_keys, .allowed = "an absolute path, {\"path\": ...}, null"},
	{"otlp", CONFIG_NOT_BUILT, "null"},
	{"prometheus", CONFIG_NOT_BUILT, "null"},
	{NULL},
};

static const struct config_key control_keys[] = {
	{"owner", CONFIG_NAME, "null", .null_ok = true, AT(control.owner)},
	{"group", CONFIG_NAME, "null", .null_ok = true, AT(control.group)},
	{"mode", CONFIG_OWN, "\"0600\"", .set = set_mode, AT(control.mode),
		.allowed = "0600 to 0666 in octal, without x bits"},
	{NULL},
};

static const struct config_key privileges_keys[] = {
	{"drop", CONFIG_BOOL, "true", AT(privileges.drop)},
	{"user", CONFIG_NAME, "null", .null_ok = true, AT(privileges.user)},
	{NULL},
};

static const struct config_key offload_keys[] = {
	{"mode", CONFIG_WORD, "\"auto\"", .words = offload_words},
	{NULL},
};

static const struct config_key debug_keys[] = {
	{"faults", CONFIG_BOOL, "false", AT(faults)},
	{NULL},
};

/* ports come before paths, and framing before services: they are referred to. */
const struct config_key config_keys[] = {
	{"node", CONFIG_NUMBER, "1", .min = "1", .max = "65535", AT(node)},
	{"eal", CONFIG_OBJECT, "{}", .keys = eal_keys},
	{"ports", CONFIG_MAP, .keys = port_keys, .count_min = 2,
		ELEMENTS(bs_config, ports, port_count)},
	{"paths", CONFIG_LIST, .keys = path_keys, .count_min = 1,
		ELEMENTS(bs_config, paths, path_count)},
	{"framing", CONFIG_LIST, "[]", .keys = framing_keys,
		ELEMENTS(bs_config, framing, framing_count)},
	{"services", CONFIG_LIST, .keys = service_keys, .words = services_words,
		ELEMENTS(bs_config, services, service_count)},
	{"shim", CONFIG_OBJECT, "{}", .keys = shim_keys},
	{"detect", CONFIG_OBJECT, "{}", .reload = true, .keys = detect_keys},
	{"app_queue", CONFIG_OBJECT, "{}", .keys = app_queue_keys},
	{"tables", CONFIG_OBJECT, "{}", .keys = tables_keys},
	{"records", CONFIG_OBJECT, "{}", .reload = true, .keys = records_keys},
	{"analyzer", CONFIG_OBJECT, "{}", .keys = analyzer_keys},
	{"control", CONFIG_OBJECT, "{}", .keys = control_keys},
	{"privileges", CONFIG_OBJECT, "{}", .keys = privileges_keys},
	{"offload", CONFIG_OBJECT, "{}", .keys = offload_keys},
	{"debug", CONFIG_OBJECT, "{}", .keys = debug_keys},
	{NULL},
};
