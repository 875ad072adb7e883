/* SPDX-License-Identifier: BSD-3-Clause */
/* See plan.h. */
#include "plan.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "bs_carrier.h"
#include "bs_clock.h"
#include "bs_tracker.h"
#include "drivers.h"

static json_t *
text_or_null(const char *text)
{
	return text[0] != '\0' ? json_string(text) : json_null();
}

static json_t *
number_or_null(uint64_t value)
{
	return value != 0 ? json_integer((json_int_t)value) : json_null();
}

/* "net_af_xdp" of "net_af_xdp0,iface=..."; nothing of a device that exists (a PCI address). */
static void
driver_name(const char *device, char driver[BS_CONFIG_TEXT])
{
	size_t length = strcspn(device, ",");

	if (strncmp(device, "net_", 4) != 0)
		length = 0;
	while (length > 0 && isdigit((unsigned char)device[length - 1]))
		length--;
	memcpy(driver, device, length);
	driver[length] = '\0';
}

static json_t *
port_json(const struct bs_config *config, unsigned index)
{
	const struct bs_config_port *port = &config->ports[index];
	const char *device = port->device[port->device_count - 1];
	const char *toward = "nothing";
	char driver[BS_CONFIG_TEXT];

	driver_name(device, driver);
	for (unsigned i = 0; i < config->path_count; i++) {
		if (config->paths[i].wire == index)
			toward = "clients";
		else if (config->paths[i].service == index)
			toward = "services";
	}
	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:b, s:o}", "port", port->name, "toward",
		toward, "device", device, "driver", text_or_null(driver), "losses_counted",
		driver[0] != '\0' ? json_boolean(bs_driver_counts_missed(driver)) : json_null(),
		"trust_shim", port->trust_shim, "rate_bps", number_or_null(port->rate_bps));
}

static json_t *
service_json(const struct bs_config_service *service)
{
	char endpoint[BS_ENDPOINT_TEXT_BYTES];

	return json_pack("{s:s, s:s, s:s, s:o, s:i, s:i, s:o}", "service", service->name,
		"endpoint", bs_endpoint_text(service->address, service->port, endpoint), "protocol",
		service->protocol, "slo_ns", number_or_null(service->slo_ns), "class_in",
		service->class_in, "class_out", service->class_out, "probe",
		!service->probe		       ? json_string("off")
		: service->pid_file[0] != '\0' ? json_string(service->pid_file)
					       : json_string("auto"));
}

static const char *
carrier_name(enum bs_carrier carrier)
{
	return carrier == BS_CARRIER_OFF ? "off" : bs_carriers[carrier].name;
}

static json_t *
shim_json(const struct bs_config *config)
{
	static const char *const tags[] = {[BS_SHIM_NEGOTIATED] = "negotiated",
		[BS_SHIM_ALWAYS] = "always",
		[BS_SHIM_OFF] = "off"};

	return json_pack("{s:s, s:s, s:s, s:i, s:i}", "tag", tags[config->shim.tag], "tcp",
		carrier_name(config->shim.tcp), "udp", carrier_name(config->shim.udp), "tcp_bytes",
		(int)bs_carriers[config->shim.tcp].bytes_max, "udp_bytes",
		(int)bs_carriers[config->shim.udp].bytes_max);
}

static json_t *
tables_json(const struct bs_config *config)
{
	return json_pack("{s:I, s:I, s:I}", "flows", (json_int_t)config->tables.flows, "rpcs",
		(json_int_t)config->tables.rpcs, "bytes_per_lcore",
		(json_int_t)bs_tracker_bytes(
			config->tables.flows, config->tables.rpcs, bs_config_frame_bytes(config)));
}

static json_t *
chain_json(const struct bs_config *config)
{
	json_t *chain = json_array();

	for (unsigned i = 0; i < config->path_count; i++) {
		const char *wire = config->ports[config->paths[i].wire].name;
		const char *local = config->ports[config->paths[i].service].name;

		for (unsigned s = 0; s <= config->service_count; s++) {
			const char *name =
				s == config->service_count ? "other" : config->services[s].name;

			json_array_append_new(chain,
				json_sprintf("%s.rx -> %s.app.in -> %s.tx -> [%s] -> %s.rx -> "
					     "%s.app.out -> %s.tx",
					wire, name, local, name, local, name, wire));
		}
	}
	return chain;
}

static json_t *
thread_json(const char *thread, const char *cpus, int node, const char *why)
{
	return json_pack("{s:s, s:s, s:o, s:s}", "thread", thread, "cpus", cpus, "node",
		node == BS_NODE_NONE ? json_null() : json_integer(node), "why", why);
}

static json_t *
lcore_json(const struct bs_config *config, const char *thread, const struct bs_placed_lcore *lcore)
{
	char cpu[16], why[BS_PLACED_TEXT_BYTES];

	snprintf(cpu, sizeof(cpu), "%u", lcore->cpu);
	return thread_json(thread, cpu, lcore->node, bs_placed_text(config, lcore, why));
}

static json_t *
threads_json(const struct bs_config *config, const struct bs_placement *placement)
{
	const char *others[] = {"collector", "main", "analyzer"};
	char cpus[BS_CPUS_TEXT_BYTES];
	json_t *threads = json_array();

	for (unsigned i = 0; i < placement->lcore_count; i++)
		json_array_append_new(
			threads, lcore_json(config, "pipeline", &placement->lcores[i]));
	if (config->eal.collector_cpu >= 0)
		json_array_append_new(
			threads, lcore_json(config, "collector", &placement->collector));
	bs_cpus_text(&placement->others, cpus);
	for (unsigned i = config->eal.collector_cpu >= 0 ? 1 : 0; i < 3; i++) {
		if (i == 2 && !config->analyzer.child)
			continue;
		json_array_append_new(
			threads, thread_json(others[i], cpus, placement->others_node,
					 placement->others_share
						 ? "shared with the pipeline, which leaves none"
						 : "off the pipeline"));
	}
	return threads;
}

json_t *
bs_plan_json(const struct bs_config *config, const struct bs_placement *placement)
{
	json_t *ports = json_array(), *services = json_array();
	const char *analyzer = config->analyzer.child	   ? "child"
			       : config->analyzer.external ? "external"
							   : "off";

	for (unsigned i = 0; i < config->port_count; i++)
		json_array_append_new(ports, port_json(config, i));
	for (unsigned i = 0; i < config->service_count; i++)
		json_array_append_new(services, service_json(&config->services[i]));
	return json_pack(
		"{s:s, s:i, s:s, s:I, s:o, s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o}",
		"path", config->path, "node", config->node, "file_prefix", config->eal.file_prefix,
		"memory_bytes", (json_int_t)config->eal.memory_bytes, "memory_node",
		placement->memory_node == BS_NODE_NONE ? json_null()
						       : json_integer(placement->memory_node),
		"hugepages", config->eal.hugepages, "nodes", (int)placement->node_count, "threads",
		threads_json(config, placement), "tables", tables_json(config), "ports", ports,
		"services", services, "shim", shim_json(config), "analyzer", analyzer, "journal",
		text_or_null(config->journal.path), "chain", chain_json(config));
}

/* --- for people ------------------------------------------------------------------- */

static const char *
text_of(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_string(value) ? json_string_value(value) : "none";
}

static long long
number_of(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

/* On a machine with one NUMA node, nodes are not worth a word. */
static void
print_node(const json_t *plan, const json_t *node, FILE *out)
{
	if (number_of(plan, "nodes") < 2)
		return;
	if (json_is_null(node))
		fputs(" of several NUMA nodes", out);
	else
		fprintf(out, " of NUMA node %" JSON_INTEGER_FORMAT, json_integer_value(node));
}

static void
print_threads(const json_t *plan, FILE *out)
{
	const json_t *thread;
	size_t i;

	json_array_foreach(json_object_get(plan, "threads"), i, thread)
	{
		fprintf(out, "%-9s %-10s CPU %s", i == 0 ? "threads" : "",
			text_of(thread, "thread"), text_of(thread, "cpus"));
		print_node(plan, json_object_get(thread, "node"), out);
		fprintf(out, ": %s\n", text_of(thread, "why"));
	}
}

static void
print_ports(const json_t *plan, FILE *out)
{
	const json_t *port;
	size_t i;

	json_array_foreach(json_object_get(plan, "ports"), i, port)
	{
		const json_t *counted = json_object_get(port, "losses_counted");

		fprintf(out, "%-9s %-10s toward %s: %s\n", i == 0 ? "ports" : "",
			text_of(port, "port"), text_of(port, "toward"), text_of(port, "device"));
		if (json_is_false(counted))
			fprintf(out, "%-20s its driver does not count what its full ring drops\n",
				"");
		if (number_of(port, "rate_bps") != 0)
			fprintf(out, "%-20s sends at most %lld bits/s\n", "",
				number_of(port, "rate_bps"));
	}
}

static void
print_services(const json_t *plan, FILE *out)
{
	const json_t *service;
	size_t i;

	json_array_foreach(json_object_get(plan, "services"), i, service)
	{
		const uint64_t slo_ns = (uint64_t)number_of(service, "slo_ns");
		char slo[BS_DURATION_TEXT_BYTES];

		fprintf(out, "%-9s %-10s %s, %s, class %lld in and %lld out, SLO %s, probe %s\n",
			i == 0 ? "services" : "", text_of(service, "service"),
			text_of(service, "endpoint"), text_of(service, "protocol"),
			number_of(service, "class_in"), number_of(service, "class_out"),
			slo_ns == 0 ? "none" : bs_duration_text(slo_ns, slo),
			text_of(service, "probe"));
	}
}

static void
print_carrier(
	const json_t *shim, const char *transport, const char *key, const char *bytes, FILE *out)
{
	if (number_of(shim, bytes) == 0)
		fprintf(out, "; %s untagged", transport);
	else
		fprintf(out, "; %s by %s, up to %lld bytes a packet", transport, text_of(shim, key),
			number_of(shim, bytes));
}

void
bs_plan_print(const json_t *plan, FILE *out)
{
	const json_t *shim = json_object_get(plan, "shim"), *line;
	const json_t *tables = json_object_get(plan, "tables");
	size_t i;

	fprintf(out, "%s is right. It makes:\n\n", text_of(plan, "path"));
	fprintf(out, "instance  node %lld, file prefix %s\n", number_of(plan, "node"),
		text_of(plan, "file_prefix"));
	fprintf(out, "memory    %lld MiB", number_of(plan, "memory_bytes") >> 20);
	print_node(plan, json_object_get(plan, "memory_node"), out);
	fprintf(out, ", half of it for packets; hugepages %s\n", text_of(plan, "hugepages"));
	print_threads(plan, out);
	fprintf(out, "tables    %lld flows and %lld RPCs, %lld MiB for each pipeline CPU\n",
		number_of(tables, "flows"), number_of(tables, "rpcs"),
		number_of(tables, "bytes_per_lcore") >> 20);
	print_ports(plan, out);
	print_services(plan, out);
	fprintf(out, "shim      %s", text_of(shim, "tag"));
	print_carrier(shim, "TCP", "tcp", "tcp_bytes", out);
	print_carrier(shim, "UDP", "udp", "udp_bytes", out);
	fprintf(out, "\nanalyzer  %s; journal %s\n\n", text_of(plan, "analyzer"),
		text_of(plan, "journal"));
	json_array_foreach(json_object_get(plan, "chain"), i, line)
		fprintf(out, "%s\n", json_string_value(line));
}
