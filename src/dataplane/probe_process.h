/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the kernel says of a process: the states and CPU time of its threads
 * (proc(5)), and whether its cgroup has used up its CPU quota or is frozen
 * (cgroups(7)). Plain POSIX. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the kernel says of all threads of some processes at one instant. */
struct bs_probe_sample {
	uint64_t cpu_ns;       /* used so far, all threads */
	uint64_t throttled_ns; /* their cgroups so far, for want of quota */
	unsigned threads, stopped, runnable;
	bool frozen;
};

/*
 * Adds the threads of /proc/<pid>/task, the first BS_SAMPLE_THREADS of them. 0, or
 * -ESRCH if there is no such process.
 */
#define BS_SAMPLE_THREADS 256u
int bs_probe_sample(int pid, struct bs_probe_sample *sample);

/* enum bs_probe_state of the time between two samples, elapsed_ns apart. */
unsigned bs_probe_state(const struct bs_probe_sample *before, const struct bs_probe_sample *after,
	uint64_t elapsed_ns);

/* First line of a small file, without its newline. Bytes, or -errno. */
int bs_probe_read_text(int dir, const char *path, char *text, size_t size);

/* --- cgroups: version 2, and the cpu and freezer controllers of version 1 --- */

#define BS_CGROUP_MOUNTS 16u
#define BS_CGROUP_LEVELS 8u
#define BS_CGROUP_PATH 256u

enum bs_cgroup_kind { BS_CGROUP_V2, BS_CGROUP_CPU, BS_CGROUP_FREEZER };

struct bs_cgroup_mounts {
	struct bs_cgroup_mount {
		enum bs_cgroup_kind kind;
		char root[BS_CGROUP_PATH]; /* the cgroup that is mounted */
		char point[BS_CGROUP_PATH];
	} list[BS_CGROUP_MOUNTS];
	unsigned count;
};

/* What a mountinfo file (proc(5)) says; nothing, where it cannot be read. */
void bs_cgroup_mounts_read(const char *mountinfo, struct bs_cgroup_mounts *mounts);

/* A cgroup, opened to be read often. */
struct bs_cgroup {
	int stats[BS_CGROUP_LEVELS]; /* cpu.stat of it and what it is in, if they have a quota */
	unsigned stat_count;
	int freezers[2]; /* of version 1 and 2: both can freeze it */
	unsigned freezer_count;
};

/*
 * The cgroup that a file like /proc/<pid>/cgroup names; what is not mounted or
 * readable is left out, and levels above the first BS_CGROUP_LEVELS with a quota.
 */
void bs_cgroup_open(
	struct bs_cgroup *cgroup, const struct bs_cgroup_mounts *mounts, const char *file);
void bs_cgroup_close(struct bs_cgroup *cgroup);

/* Fills throttled_ns and frozen. Time is accounted when it is over: a throttle ends first. */
void bs_cgroup_sample(const struct bs_cgroup *cgroup, struct bs_probe_sample *sample);
