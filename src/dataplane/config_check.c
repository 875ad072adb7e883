/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What no single key shows: names that must resolve and things that must
 * differ from each other.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config_private.h"

static int
fail_at(struct config_reader *reader, const char *list, unsigned index, const char *key,
	const char *what)
{
	config_push(reader, list, 0);
	config_push(reader, NULL, index);
	if (key != NULL)
		config_push(reader, key, 0);
	return config_fail(reader, "%s", what);
}

/* A vdev's name ends at the comma; EAL refuses a second one of that name. */
static bool
same_device(const char *a, const char *b)
{
	size_t bytes = strcspn(a, ",");

	return bytes == strcspn(b, ",") && memcmp(a, b, bytes) == 0;
}

static bool
device_is_used_before(const struct bs_config *config, unsigned port, unsigned device)
{
	for (unsigned p = 0; p <= port; p++) {
		unsigned count = p == port ? device : config->ports[p].device_count;

		for (unsigned d = 0; d < count; d++) {
			if (same_device(
				    config->ports[p].device[d], config->ports[port].device[device]))
				return true;
		}
	}
	return false;
}

static int
check_ports(struct config_reader *reader)
{
	const struct bs_config *config = reader->config;

	for (unsigned p = 0; p < config->port_count; p++) {
		const struct bs_config_port *port = &config->ports[p];
		unsigned uses = 0;

		for (unsigned i = 0; i < config->path_count; i++)
			uses += (config->paths[i].wire == p) + (config->paths[i].service == p);
		config_push(reader, "ports", 0);
		config_push(reader, port->name, 0);
		if (uses != 1)
			return config_fail(reader, "is used %u times in paths (allowed: 1)", uses);
		for (unsigned d = 0; d < port->device_count; d++) {
			if (device_is_used_before(config, p, d))
				return config_fail(reader,
					"device %.64s is named twice (allowed: once in all ports)",
					port->device[d]);
		}
		config_pop(reader);
		config_pop(reader);
	}
	return 0;
}

static int
check_operations(struct config_reader *reader, unsigned index)
{
	const struct bs_config_service *service = &reader->config->services[index];

	for (unsigned i = 0; i < service->operation_count; i++) {
		for (unsigned j = 0; j < i; j++) {
			if (strcmp(service->operations[i].match, service->operations[j].match) == 0)
				return fail_at(reader, "services", index, "operations",
					"two operations have the same match (allowed: one each)");
		}
	}
	return 0;
}

static int
check_service(struct config_reader *reader, unsigned index, const struct bs_framers *framers)
{
	const struct bs_config_service *services = reader->config->services;
	const struct bs_config_service *service = &services[index];

	if (strcmp(service->name, "other") == 0)
		return fail_at(reader, "services", index, "name",
			"\"other\" stands for the traffic of no service (allowed: another name)");
	if (strcmp(service->protocol, "auto") != 0 &&
		bs_framers_find(framers, service->protocol) == NULL) {
		config_push(reader, "services", 0);
		config_push(reader, NULL, index);
		config_push(reader, "protocol", 0);
		config_fail(reader, "\"%s\" is not a protocol (allowed: auto", service->protocol);
		for (unsigned i = 0; i < framers->count; i++) {
			size_t used = strlen(reader->error);

			snprintf(reader->error + used, BS_CONFIG_ERROR_BYTES - used, ", %s%s",
				framers->list[i].name, i + 1 == framers->count ? ")" : "");
		}
		return -EINVAL;
	}
	for (unsigned i = 0; i < index; i++) {
		if (strcmp(services[i].name, service->name) == 0)
			return fail_at(reader, "services", index, "name",
				"is the name of an earlier service (allowed: one each)");
		if (services[i].port == service->port &&
			memcmp(services[i].address, service->address, 16) == 0)
			return fail_at(reader, "services", index, "port",
				"an earlier service has this address and port (allowed: one each)");
	}
	return check_operations(reader, index);
}

static int
check_privileges(struct config_reader *reader)
{
	if (reader->config->privileges.drop || reader->config->privileges.user[0] == '\0')
		return 0;
	config_push(reader, "privileges", 0);
	config_push(reader, "user", 0);
	return config_fail(reader, "only with privileges.drop (allowed: null, or drop true)");
}

static int
check_journal(struct config_reader *reader)
{
	const struct bs_config *config = reader->config;

	if (config->journal.path[0] == '\0')
		return 0;
	config_push(reader, "analyzer", 0);
	config_push(reader, "journal", 0);
	if (!config->analyzer.child)
		return config_fail(reader,
			"is written by an analyzer that bufscoped starts (allowed: null, or mode "
			"\"child\")");
	if (config->journal.bytes / config->journal.files < BS_CONFIG_JOURNAL_FILE_MIN) {
		config_push(reader, "size", 0);
		return config_fail(reader, "is too little for %u files (allowed: 1M for each)",
			config->journal.files);
	}
	config_pop(reader);
	config_pop(reader);
	return 0;
}

int
config_check(struct config_reader *reader)
{
	const struct bs_config *config = reader->config;
	struct bs_framers framers;
	unsigned bad = 0;
	int ret = check_ports(reader);

	if (ret == 0)
		ret = check_privileges(reader);
	if (ret == 0)
		ret = check_journal(reader);
	if (ret != 0)
		return ret;
	switch (bs_framers_init(&framers, config->framing, config->framing_count, &bad)) {
	case 0:
		break;
	case -EEXIST:
		return fail_at(reader, "framing", bad, "name",
			"is the name of another protocol (allowed: one each)");
	case -ENOSPC:
		return fail_at(reader, "framing", bad, NULL, "too many protocols");
	default:
		return fail_at(reader, "framing", bad, NULL,
			"makes no sense (allowed: length, id, magic and response inside the "
			"header; "
			"length.bytes of 1, 2, 3, 4 or 8)");
	}
	for (unsigned i = 0; i < config->service_count && ret == 0; i++)
		ret = check_service(reader, i, &framers);
	return ret;
}
