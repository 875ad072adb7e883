/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What two samples of a process say it did; and cgroups, in a tree of files that
 * looks as cgroups(7) and proc(5) say: versions 1 and 2, quotas at any level,
 * frozen, mounted in part, and nonsense.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bs_record.h"
#include "probe_process.h"

#define MS 1000000ull

/* --- states ------------------------------------------------------------------------------ */

static unsigned
state_of(struct bs_probe_sample before, struct bs_probe_sample after)
{
	return bs_probe_state(&before, &after, 100 * MS);
}

#define AT(...) ((struct bs_probe_sample){.threads = 2, __VA_ARGS__})

static void
a_quota_that_was_used_up_is_told_from_want_of_a_cpu(void **state)
{
	(void)state;
	/* ready to run, and its cgroup held back for a quarter of the time or more */
	assert_int_equal(state_of(AT(.runnable = 1), AT(.runnable = 1)), BS_PROBE_STARVED);
	assert_int_equal(state_of(AT(.runnable = 1), AT(.runnable = 1, .throttled_ns = 25 * MS)),
		BS_PROBE_THROTTLED);
	assert_int_equal(
		state_of(AT(.runnable = 1), AT(.runnable = 1, .throttled_ns = 25 * MS - 1)),
		BS_PROBE_STARVED);
	/* held back for longer than it ran: that is what took the time */
	assert_int_equal(
		state_of(AT(), AT(.cpu_ns = 30 * MS, .throttled_ns = 70 * MS)), BS_PROBE_THROTTLED);
	assert_int_equal(
		state_of(AT(), AT(.cpu_ns = 60 * MS, .throttled_ns = 40 * MS)), BS_PROBE_RUNNING);
	/* a counter that began anew is none */
	assert_int_equal(
		state_of(AT(.throttled_ns = 500 * MS), AT(.throttled_ns = MS)), BS_PROBE_ASLEEP);
}

static void
a_frozen_cgroup_is_a_stop(void **state)
{
	(void)state;
	assert_int_equal(state_of(AT(), AT(.frozen = true)), BS_PROBE_STOPPED);
	assert_int_equal(state_of(AT(), AT(.stopped = 2)), BS_PROBE_STOPPED);
	assert_int_equal(state_of(AT(), AT(.stopped = 1)), BS_PROBE_ASLEEP);
	assert_int_equal(
		state_of(AT(), AT(.frozen = true, .throttled_ns = 90 * MS)), BS_PROBE_STOPPED);
}

static void
no_threads_are_no_state(void **state)
{
	(void)state;
	assert_int_equal(state_of((struct bs_probe_sample){0}, (struct bs_probe_sample){0}),
		BS_PROBE_UNKNOWN);
}

/* --- cgroups ------------------------------------------------------------------------------ */

static char root[64];

static const char *
in_root(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s%s", root, name);
	return path;
}

/* Writes a file, and the directories that it is in. */
static void
put(const char *name, const char *text)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s", in_root(name));
	for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static int
make_root(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/bs_cgroup_XXXXXX");
	return mkdtemp(root) == NULL;
}

static int
remove_root(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

/* Mounts, as mountinfo lists them: "kind root point". */
static void
mounts_of(struct bs_cgroup_mounts *mounts, const char *const (*list)[3], unsigned count)
{
	char text[4096] = "21 1 8:1 / / rw - ext4 /dev/sda rw\n";

	for (unsigned i = 0; i < count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			"3%u 21 0:3%u %s %s%s rw,nosuid shared:7 - %s cgroup rw%s%s\n", i, i,
			list[i][1], root, list[i][2],
			strcmp(list[i][0], "v2") == 0 ? "cgroup2" : "cgroup",
			strcmp(list[i][0], "v2") == 0 ? "" : ",",
			strcmp(list[i][0], "v2") == 0 ? "" : list[i][0]);
	put("/mountinfo", text);
	bs_cgroup_mounts_read(in_root("/mountinfo"), mounts);
}

static struct bs_probe_sample
sampled(const struct bs_cgroup_mounts *mounts, const char *of_process, unsigned quotas)
{
	struct bs_probe_sample sample = {.threads = 1};
	struct bs_cgroup cgroup;

	put("/cgroup", of_process);
	bs_cgroup_open(&cgroup, mounts, in_root("/cgroup"));
	assert_int_equal(cgroup.stat_count, quotas);
	bs_cgroup_sample(&cgroup, &sample);
	bs_cgroup_close(&cgroup);
	return sample;
}

#define STAT_V2 "usage_usec 9\nnr_periods 3\nnr_throttled 2\nthrottled_usec "

static void
version_2_tells_quota_and_freezer_of_all_levels(void **state)
{
	static const char *const list[][3] = {{"v2", "/", "/fs"}};
	struct bs_cgroup_mounts mounts;
	struct bs_probe_sample sample;

	(void)state;
	mounts_of(&mounts, list, 1);
	assert_int_equal(mounts.count, 1);
	put("/fs/cgroup.procs", "");
	put("/fs/pod/cpu.max", "50000 100000\n");
	put("/fs/pod/cpu.stat", STAT_V2 "1500\n");
	put("/fs/pod/kv/cpu.max", "max 100000\n");
	put("/fs/pod/kv/cpu.stat", STAT_V2 "77\n");
	put("/fs/pod/kv/cgroup.events", "populated 1\nfrozen 0\n");
	sample = sampled(&mounts, "0::/pod/kv\n", 1); /* the one without a quota is not read */
	assert_int_equal(sample.throttled_ns, 1500000);
	assert_false(sample.frozen);
	put("/fs/pod/kv/cpu.max", "20000 100000\n");
	put("/fs/pod/kv/cgroup.events", "populated 1\nfrozen 1\n");
	sample = sampled(&mounts, "0::/pod/kv\n", 2);
	assert_int_equal(sample.throttled_ns, 1577000);
	assert_true(sample.frozen);
}

static void
version_1_tells_them_by_controller(void **state)
{
	static const char *const list[][3] = {{"memory", "/", "/memory"},
		{"cpu,cpuacct", "/", "/cpu"}, {"freezer", "/", "/freezer"},
		{"v2", "/", "/unified"}};
	struct bs_cgroup_mounts mounts;
	struct bs_probe_sample sample;
	static const char of_process[] = "5:memory:/x\n4:cpu,cpuacct:/kv\n3:freezer:/kv\n0::/kv\n";

	(void)state;
	mounts_of(&mounts, list, 4);
	assert_int_equal(mounts.count, 3);
	put("/cpu/kv/cpu.cfs_quota_us", "20000\n");
	put("/cpu/kv/cpu.stat", "nr_periods 1\nnr_throttled 1\nthrottled_time 4242\n");
	put("/freezer/kv/freezer.state", "THAWED\n");
	put("/unified/kv/cgroup.events", "populated 1\nfrozen 0\n");
	sample = sampled(&mounts, of_process, 1);
	assert_int_equal(sample.throttled_ns, 4242);
	assert_false(sample.frozen);
	put("/freezer/kv/freezer.state", "FROZEN\n");
	assert_true(sampled(&mounts, of_process, 1).frozen);
	put("/cpu/kv/cpu.cfs_quota_us", "-1\n");
	put("/freezer/kv/freezer.state", "THAWED\n");
	put("/unified/kv/cgroup.events", "frozen 1\n");
	sample = sampled(&mounts, of_process, 0);
	assert_int_equal(sample.throttled_ns, 0);
	assert_true(sample.frozen);
}

/* In a container only a part is mounted; a mount may be hidden by another. */
static void
a_part_that_is_mounted_is_found_below_its_root(void **state)
{
	static const char *const list[][3] = {
		{"v2", "/", "/hidden"}, {"v2", "/other", "/o"}, {"v2", "/pod", "/inside"}};
	struct bs_cgroup_mounts mounts;

	(void)state;
	mounts_of(&mounts, list, 3);
	put("/inside/kv/cpu.max", "1000 2000\n");
	put("/inside/kv/cpu.stat", STAT_V2 "3\n");
	put("/o/kv/cpu.max", "1000 2000\n");
	put("/o/kv/cpu.stat", STAT_V2 "5\n");
	assert_int_equal(sampled(&mounts, "0::/pod/kv\n", 1).throttled_ns, 3000);
	assert_int_equal(sampled(&mounts, "0::/podkv\n", 0).throttled_ns, 0);
}

static void
what_leads_out_or_makes_no_sense_is_left_out(void **state)
{
	static const char *const list[][3] = {{"v2", "/", "/fs"}};
	static const char *const lines[] = {"", "\n", "0", "0:", "0::", "::", "0::/../pod/kv\n",
		"0::/pod/../pod/kv\n", "0::/gone\n", "1:cpu:/pod/kv\n", "0::/pod/kv"};
	struct bs_cgroup_mounts mounts;
	char longest[2000];

	(void)state;
	mounts_of(&mounts, list, 1);
	put("/fs/pod/kv/cpu.max", "1 2\n");
	put("/fs/pod/kv/cpu.stat", STAT_V2 "-7\nthrottled_usec\n");
	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_int_equal(sampled(&mounts, lines[i], 0).throttled_ns, 0);
	memset(longest, 'x', sizeof(longest));
	memcpy(longest, "0::/", 4);
	longest[sizeof(longest) - 1] = '\0';
	longest[sizeof(longest) - 2] = '\n';
	sampled(&mounts, longest, 0);
	put("/mountinfo", "- - -\n1 2 3 / /x - cgroup2\n - cgroup2 cgroup rw\n");
	bs_cgroup_mounts_read(in_root("/mountinfo"), &mounts);
	assert_int_equal(mounts.count, 0);
	bs_cgroup_mounts_read(in_root("/none"), &mounts);
	assert_int_equal(mounts.count, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_quota_that_was_used_up_is_told_from_want_of_a_cpu),
		cmocka_unit_test(a_frozen_cgroup_is_a_stop),
		cmocka_unit_test(no_threads_are_no_state),
		cmocka_unit_test_setup_teardown(
			version_2_tells_quota_and_freezer_of_all_levels, make_root, remove_root),
		cmocka_unit_test_setup_teardown(
			version_1_tells_them_by_controller, make_root, remove_root),
		cmocka_unit_test_setup_teardown(
			a_part_that_is_mounted_is_found_below_its_root, make_root, remove_root),
		cmocka_unit_test_setup_teardown(
			what_leads_out_or_makes_no_sense_is_left_out, make_root, remove_root),
	};

	return cmocka_run_group_tests_name("probe_process", tests, NULL, NULL);
}
