/* SPDX-License-Identifier: BSD-3-Clause */
/* See eal.h. */
#include "eal.h"

#include <ctype.h>
#include <errno.h>
#include <rte_common.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGS_MAX 64u

/* Hugepages of the default size. */
struct hugepages {
	uint64_t total, free, bytes_each;
};

static struct hugepages
look_at_hugepages(void)
{
	struct hugepages pages = {0};
	unsigned long long value;
	char line[128];
	FILE *file = fopen("/proc/meminfo", "re");

	if (file == NULL)
		return pages;
	while (fgets(line, sizeof(line), file) != NULL) {
		if (sscanf(line, "HugePages_Total: %llu", &value) == 1)
			pages.total = value;
		else if (sscanf(line, "HugePages_Free: %llu", &value) == 1)
			pages.free = value;
		else if (sscanf(line, "Hugepagesize: %llu kB", &value) == 1)
			pages.bytes_each = value * 1024;
	}
	fclose(file);
	return pages;
}

/* "(0-1,3)": the CPUs this process may run on. */
static void
all_cpus(char *text, size_t size)
{
	size_t at = (size_t)snprintf(text, size, "(");
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		CPU_ZERO(&set);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE && at + 8 < size; cpu++) {
		if (CPU_ISSET(cpu, &set))
			at += (size_t)snprintf(
				text + at, size - at, "%s%u", at > 1 ? "," : "", cpu);
	}
	snprintf(text + at, size - at, ")");
}

/* Main is lcore 0 and floats, the pipeline's follow on their CPUs, the collector is last. */
static void
lcore_map(const struct bs_config *config, struct bs_eal *eal, char *text, size_t size)
{
	char floating[256];
	size_t at;

	all_cpus(floating, sizeof(floating));
	at = (size_t)snprintf(text, size, "0@%s", floating);
	eal->pipeline_count = config->eal.cpu_count;
	for (unsigned i = 0; i < config->eal.cpu_count && at < size; i++) {
		eal->pipeline[i] = i + 1;
		at += (size_t)snprintf(text + at, size - at, ",%u@%u", i + 1, config->eal.cpus[i]);
	}
	eal->collector = config->eal.cpu_count + 1;
	if (config->eal.collector_cpu >= 0)
		snprintf(text + at, size - at, ",%u@%d", eal->collector, config->eal.collector_cpu);
	else
		snprintf(text + at, size - at, ",%u@%s", eal->collector, floating);
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

static int
choose_memory(const struct bs_config *config, struct bs_eal *eal, char *error)
{
	const struct hugepages pages = look_at_hugepages();
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
bs_eal_init(const struct bs_config *config, char *const *extra, unsigned extra_count,
	struct bs_eal *eal, char error[BS_EAL_ERROR_BYTES])
{
	char map[2048], memory[32], prefix[96];
	char *args[ARGS_MAX];
	int count = 0;

	if (check_extra(extra, extra_count, error) != 0)
		return -EINVAL;
	if (choose_memory(config, eal, error) != 0)
		return -ENOMEM;
	lcore_map(config, eal, map, sizeof(map));
	snprintf(memory, sizeof(memory), "%llu",
		(unsigned long long)(config->eal.memory_bytes >> 20));
	snprintf(prefix, sizeof(prefix), "--file-prefix=%s", config->eal.file_prefix);
	args[count++] = (char *)(uintptr_t) "bufscoped";
	args[count++] = (char *)(uintptr_t) "--lcores";
	args[count++] = map;
	args[count++] = (char *)(uintptr_t) "-m";
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
