/* SPDX-License-Identifier: BSD-3-Clause */
/* See eal.h. */
#include "eal.h"

#include <ctype.h>
#include <errno.h>
#include <rte_common.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGS_MAX 64u
#define MEMORY_BYTES 128u /* RTE_MAX_NUMA_NODES times "0," and more */
#define MAP_BYTES (2 * BS_CPUS_TEXT_BYTES + BS_CONFIG_LCORES * 16)

/* Hugepages of the default size. */
struct hugepages {
	uint64_t total, free, bytes_each;
};

/* Takes the fields that a file of the kernel has; a node's file begins each line with "Node N ". */
static void
read_hugepages(const char *path, struct hugepages *pages)
{
	unsigned long long value;
	char line[128];
	FILE *file = fopen(path, "re");

	if (file == NULL)
		return;
	while (fgets(line, sizeof(line), file) != NULL) {
		const char *field = line;
		int skipped = 0;

		if (sscanf(line, "Node %*d %n", &skipped) == 0 && skipped > 0)
			field += skipped;
		if (sscanf(field, "HugePages_Total: %llu", &value) == 1)
			pages->total = value;
		else if (sscanf(field, "HugePages_Free: %llu", &value) == 1)
			pages->free = value;
		else if (sscanf(field, "Hugepagesize: %llu kB", &value) == 1)
			pages->bytes_each = value * 1024;
	}
	fclose(file);
}

/* Of a node, or of all. */
static struct hugepages
look_at_hugepages(int node)
{
	struct hugepages pages = {0};
	char path[64];

	read_hugepages("/proc/meminfo", &pages);
	if (node == BS_NODE_NONE)
		return pages;
	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/meminfo", node);
	read_hugepages(path, &pages);
	return pages;
}

/* Main is lcore 0, the pipeline's follow on their CPUs, the collector is last. */
static void
lcore_map(const struct bs_config *config, const struct bs_placement *placement, struct bs_eal *eal,
	char *text, size_t size)
{
	char others[BS_CPUS_TEXT_BYTES];
	size_t at;

	bs_cpus_text(&placement->others, others);
	at = (size_t)snprintf(text, size, "0@(%s)", others);
	eal->pipeline_count = placement->lcore_count;
	for (unsigned i = 0; i < placement->lcore_count; i++) {
		eal->pipeline[i] = i + 1;
		at += (size_t)snprintf(
			text + at, size - at, ",%u@%u", i + 1, placement->lcores[i].cpu);
	}
	eal->collector = placement->lcore_count + 1;
	if (config->eal.collector_cpu >= 0)
		snprintf(text + at, size - at, ",%u@%u", eal->collector, placement->collector.cpu);
	else
		snprintf(text + at, size - at, ",%u@(%s)", eal->collector, others);
}

static bool
names_pci(const struct bs_config *config)
{
	for (unsigned i = 0; i < config->port_count; i++) {
		for (unsigned k = 0; k < config->ports[i].device_count; k++) {
			const char *device = config->ports[i].device[k];
			unsigned domain, bus, slot, function;

			if (sscanf(device, "%x:%x:%x.%x", &domain, &bus, &slot, &function) == 4 ||
				sscanf(device, "%x:%x.%x", &bus, &slot, &function) == 3)
				return true;
		}
	}
	return false;
}

/* As "-m": EAL spreads it over the nodes; "--socket-mem": all of it on one, if that has it. */
static void
memory_args(const struct bs_config *config, const struct bs_placement *placement,
	const struct bs_eal *eal, char **option, char text[MEMORY_BYTES])
{
	const int node = placement->memory_node;
	const struct hugepages pages = look_at_hugepages(node);
	const unsigned long long megabytes = config->eal.memory_bytes >> 20;
	size_t at = 0;

	*option = (char *)(uintptr_t) "-m";
	if (eal->hugepages && node != BS_NODE_NONE &&
		pages.free * pages.bytes_each >= config->eal.memory_bytes) {
		*option = (char *)(uintptr_t) "--socket-mem";
		for (int i = 0; i < node && at + 32 < MEMORY_BYTES; i++)
			at += (size_t)snprintf(text + at, MEMORY_BYTES - at, "0,");
	}
	snprintf(text + at, MEMORY_BYTES - at, "%llu", megabytes);
}

static int
choose_memory(const struct bs_config *config, struct bs_eal *eal, char *error)
{
	const struct hugepages pages = look_at_hugepages(BS_NODE_NONE);
	const uint64_t wanted = config->eal.memory_bytes;
	uint64_t missing;

	if (strcmp(config->eal.hugepages, "off") == 0) {
		eal->hugepages = false;
		return 0;
	}
	eal->hugepages = pages.free * pages.bytes_each >= wanted;
	if (eal->hugepages || strcmp(config->eal.hugepages, "auto") == 0)
		return 0;
	if (pages.bytes_each == 0) {
		snprintf(error, BS_EAL_ERROR_BYTES,
			"eal.hugepages: this kernel has none; set it to \"auto\" or \"off\"");
		return -ENOMEM;
	}
	missing =
		(wanted - pages.free * pages.bytes_each + pages.bytes_each - 1) / pages.bytes_each;
	snprintf(error, BS_EAL_ERROR_BYTES,
		"eal.hugepages: %llu MB are free, eal.memory wants %llu MB: run \"sysctl -w "
		"vm.nr_hugepages=%llu\" (soon after boot, or memory is too scattered), or set "
		"eal.hugepages to \"auto\"",
		(unsigned long long)(pages.free * pages.bytes_each >> 20),
		(unsigned long long)(wanted >> 20), (unsigned long long)(pages.total + missing));
	return -ENOMEM;
}

/* EAL's own texts went to the log above; this is what to do about them. */
static int
fail_init(const struct bs_eal *eal, char *error)
{
	const int code = rte_errno == 0 ? EBUSY : rte_errno;

	snprintf(error, BS_EAL_ERROR_BYTES, "EAL does not start (%s; it says more above)%s",
		rte_errno == 0 ? "no reason given" : rte_strerror(rte_errno),
		eal->hugepages ? ". If it lacks memory: a cgroup may forbid hugepages "
				 "(hugetlb.*.max); eal.hugepages \"off\" does without"
			       : "");
	return -code;
}

/* What the sockets and the lock of the instance rest on is not for arguments to change. */
static int
check_extra(char *const *extra, unsigned count, char *error)
{
	static const char *const ours[] = {"--file-prefix", "--proc-type"};

	for (unsigned i = 0; i < count; i++) {
		for (unsigned k = 0; k < RTE_DIM(ours); k++) {
			if (strncmp(extra[i], ours[k], strlen(ours[k])) != 0)
				continue;
			snprintf(error, BS_EAL_ERROR_BYTES,
				"%.60s is not for EAL to be told: the prefix is eal.file_prefix, "
				"and bufscoped is a primary process",
				extra[i]);
			return -EINVAL;
		}
	}
	return 0;
}

int
bs_eal_init(const struct bs_config *config, const struct bs_placement *placement,
	char *const *extra, unsigned extra_count, struct bs_eal *eal,
	char error[BS_EAL_ERROR_BYTES])
{
	char map[MAP_BYTES], memory[MEMORY_BYTES], prefix[96];
	char *args[ARGS_MAX];
	int count = 0;

	if (check_extra(extra, extra_count, error) != 0)
		return -EINVAL;
	if (choose_memory(config, eal, error) != 0)
		return -ENOMEM;
	lcore_map(config, placement, eal, map, sizeof(map));
	snprintf(prefix, sizeof(prefix), "--file-prefix=%s", config->eal.file_prefix);
	args[count++] = (char *)(uintptr_t) "bufscoped";
	args[count++] = (char *)(uintptr_t) "--lcores";
	args[count++] = map;
	memory_args(config, placement, eal, &args[count++], memory);
	args[count++] = memory;
	args[count++] = prefix;
	args[count++] = (char *)(uintptr_t)(eal->hugepages ? "--in-memory" : "--no-huge");
	/* Nothing to share: no files, and secondary processes are refused. EAL takes it together
	 * with either of these, but not both of them. */
	args[count++] = (char *)(uintptr_t) "--no-shconf";
	args[count++] = (char *)(uintptr_t) "--log-level=lib.eal:warning";
	if (!names_pci(config))
		args[count++] = (char *)(uintptr_t) "--no-pci";
	for (unsigned i = 0; i < extra_count && count < (int)ARGS_MAX; i++)
		args[count++] = extra[i];
	/* libxdp's dispatcher would need CAP_SYS_ADMIN to be taken off again; the program alone
	 * needs CAP_NET_ADMIN. */
	setenv("LIBXDP_SKIP_DISPATCHER", "1", 0);
	if (rte_eal_init(count, args) < 0)
		return fail_init(eal, error);
	return 0;
}
