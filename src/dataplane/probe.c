/* SPDX-License-Identifier: BSD-3-Clause */
/* Which services are looked at, and when; what is told of them. See probe.h. */
#include "probe.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bs_clock.h"
#include "collector.h"
#include "dataplane.h"
#include "probe_find.h"
#include "probe_piece.h"
#include "probe_process.h"
#include "snapshot.h"

/* How often a service is looked at: with nothing open at it, with RPCs open, while silent. */
#define LOOK_IDLE_MS 10
#define LOOK_OPEN_MS 2
#define LOOK_SILENT_MS 1

/* A look at many threads takes long: so many for each ms until the next. */
#define THREADS_PER_MS 32u

/*
 * A long silence is told piece by piece. The kernel accounts for a throttle when
 * it is over, once a period (100 ms unless set otherwise): pieces hold two.
 */
#define TELL_NS (20 * BS_NS_PER_MS)
#define TELL_QUOTA_NS (200 * BS_NS_PER_MS)

/* Pauses between searches for processes: twice as long each time, as nothing is found. */
#define SEARCH_FIRST_NS (2 * BS_NS_PER_S)
#define SEARCH_LAST_NS (16 * BS_NS_PER_S)
#define SEARCH_BUDGET 512u    /* system calls of a step */
#define SEARCH_AT_ONCE 50000u /* and of a whole search */

struct probed {
	unsigned service;
	bool by_file, wanted; /* wanted: it is to be searched for */
	struct bs_target target;
	uint64_t t_first; /* of the piece of a silence; 0 = not silent */
	uint64_t t_last;
	struct bs_probe_sample first, last;
	struct bs_cgroup cgroup; /* open while silent */
	struct bs_probe_piece piece;
	/* Written by this thread only, read by others. */
	uint32_t how, pid, more;
};

struct bs_probe {
	struct bs_dataplane *dataplane;
	struct bs_finder *finder;
	struct bs_cgroup_mounts mounts;
	struct probed *list;
	struct bs_target **targets; /* of the search that goes on */
	unsigned count;
	bool searching;
	uint64_t t_search; /* not before */
	uint64_t pause_ns;
};

static void
say(struct probed *probed, enum bs_probe_how how)
{
	const struct bs_target *target = &probed->target;
	uint32_t pid = target->pid_count > 0 ? (uint32_t)target->pids[0] : 0;

	__atomic_store_n(&probed->pid, pid, __ATOMIC_RELAXED);
	__atomic_store_n(&probed->more, pid != 0 ? target->pid_count - 1 : 0, __ATOMIC_RELAXED);
	__atomic_store_n(&probed->how, how, __ATOMIC_RELAXED);
}

struct bs_probe *
bs_probe_create(struct bs_dataplane *dataplane)
{
	const struct bs_config *config = &dataplane->config;
	struct bs_probe *probe = calloc(1, sizeof(*probe));

	if (probe == NULL)
		return NULL;
	probe->dataplane = dataplane;
	probe->pause_ns = SEARCH_FIRST_NS;
	probe->list = calloc(config->service_count, sizeof(*probe->list));
	probe->targets = calloc(config->service_count, sizeof(struct bs_target *));
	probe->finder = bs_finder_create(config->service_count);
	if (probe->list == NULL || probe->targets == NULL || probe->finder == NULL) {
		bs_probe_destroy(probe);
		return NULL;
	}
	bs_cgroup_mounts_read("/proc/self/mountinfo", &probe->mounts);
	for (unsigned i = 0; i < config->service_count; i++) {
		const struct bs_config_service *service = &config->services[i];
		struct probed *probed = &probe->list[probe->count];

		if (!service->probe)
			continue;
		probed->service = i;
		probed->by_file = service->pid_file[0] != '\0';
		probed->wanted = true;
		bs_target_init(&probed->target, service->address, service->port);
		say(probed, BS_PROBE_LOOKING);
		probe->count++;
	}
	return probe;
}

void
bs_probe_destroy(struct bs_probe *probe)
{
	if (probe == NULL)
		return;
	for (unsigned i = 0; i < probe->count; i++) {
		bs_cgroup_close(&probe->list[i].cgroup);
		bs_target_fini(&probe->list[i].target);
	}
	bs_finder_destroy(probe->finder);
	free(probe->targets);
	free(probe->list);
	free(probe);
}

/* --- whose process it is ---------------------------------------------------------------- */

static int
pid_of(const char *file)
{
	char text[32], *end;
	long pid;

	if (bs_probe_read_text(AT_FDCWD, file, text, sizeof(text)) <= 0)
		return 0;
	pid = strtol(text, &end, 10);
	return pid > 0 && pid < 1 << 22 && (*end == '\0' || isspace((unsigned char)*end)) ? (int)pid
											  : 0;
}

/* The process that the file names, and its sockets if they can be seen. False: there is none. */
static bool
take_pid_file(struct bs_probe *probe, struct probed *probed)
{
	struct bs_target *target = &probed->target;
	struct bs_probe_sample sample = {.threads = 0};
	int pid = pid_of(probe->dataplane->config.services[probed->service].pid_file);

	target->pid_count = 0;
	probed->wanted = pid == 0 || bs_probe_sample(pid, &sample) != 0;
	if (probed->wanted) {
		say(probed, BS_PROBE_NO_PID);
		return false;
	}
	bs_finder_enter(probe->finder, pid, target);
	target->pids[0] = pid;
	target->pid_count = 1;
	say(probed, BS_PROBE_PID_FILE);
	return true;
}

/* What a search came to. */
static enum bs_probe_how
found_how(const struct bs_target *target)
{
	if (target->pid_count > 0)
		return target->diag >= 0 ? BS_PROBE_SOCKET : BS_PROBE_THREADS;
	if (target->flags & BS_FIND_AMBIGUOUS)
		return BS_PROBE_AMBIGUOUS;
	if (target->flags & BS_FIND_SOCKET)
		return target->flags & BS_FIND_NO_LOOK ? BS_PROBE_NO_LOOK : BS_PROBE_HIDDEN;
	if (target->flags & BS_FIND_ADDRESS)
		return BS_PROBE_NO_LISTENER;
	if (target->flags & BS_FIND_NO_LOOK)
		return BS_PROBE_NO_LOOK;
	return target->flags & BS_FIND_NO_ENTER ? BS_PROBE_NO_ENTER : BS_PROBE_ELSEWHERE;
}

static void
end_search(struct bs_probe *probe, uint64_t t)
{
	bool all = true;

	for (unsigned i = 0; i < probe->count; i++) {
		struct probed *probed = &probe->list[i];

		if (!probed->wanted || probed->by_file)
			continue;
		probed->wanted = probed->target.pid_count == 0;
		all = all && !probed->wanted;
		say(probed, found_how(&probed->target));
		/* a namespace without processes must not live on by our socket for long */
		if (probed->target.inode_count == 0 && probe->pause_ns >= SEARCH_LAST_NS &&
			!bs_finder_saw(probe->finder, probed->target.netns))
			bs_target_fini(&probed->target);
	}
	probe->searching = false;
	probe->t_search = t + probe->pause_ns;
	probe->pause_ns = all ? SEARCH_FIRST_NS : RTE_MIN(probe->pause_ns * 2, SEARCH_LAST_NS);
}

/* It has ended, or another has its place: the search begins anew, soon. */
static void
lose(struct bs_probe *probe, struct probed *probed)
{
	bs_cgroup_close(&probed->cgroup);
	probed->t_first = 0;
	if (!probed->wanted)
		probe->pause_ns = SEARCH_FIRST_NS;
	probed->wanted = true;
	probed->target.pid_count = 0;
	say(probed, probed->by_file ? BS_PROBE_NO_PID : BS_PROBE_LOOKING);
}

static bool
is_gone(const struct probed *probed)
{
	char path[32];

	if (probed->target.pid_count == 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d", probed->target.pids[0]);
	return access(path, F_OK) != 0;
}

static void
begin_search(struct bs_probe *probe, uint64_t t)
{
	unsigned count = 0;

	for (unsigned i = 0; i < probe->count; i++) {
		struct probed *probed = &probe->list[i];

		if (!probed->wanted && is_gone(probed))
			lose(probe, probed);
		if (!probed->wanted || (probed->by_file && take_pid_file(probe, probed)))
			continue;
		if (!probed->by_file)
			probe->targets[count++] = &probed->target;
	}
	bs_finder_begin(probe->finder, probe->targets, count);
	probe->searching = count > 0;
	probe->t_search = t + SEARCH_FIRST_NS;
}

static void
search(struct bs_probe *probe, uint64_t t, unsigned budget)
{
	if (!probe->searching && t >= probe->t_search)
		begin_search(probe, t);
	if (probe->searching && bs_finder_step(probe->finder, budget))
		end_search(probe, t);
}

void
bs_probe_find(struct bs_probe *probe, uint64_t t_ns)
{
	search(probe, t_ns, SEARCH_AT_ONCE);
}

/* --- what it does ------------------------------------------------------------------------ */

enum attention { IDLE, OPEN, SILENT };

/* Are RPCs open at it, on any lcore, and has no byte come for so long, on all? */
static enum attention
attention_for(const struct bs_probe *probe, unsigned service, uint64_t t)
{
	const struct bs_dataplane *dataplane = probe->dataplane;
	uint64_t since = 0;
	uint32_t pending = 0;

	for (unsigned i = 0; i < dataplane->lcore_count; i++) {
		struct bs_tracker_silence silence;

		bs_tracker_silence(dataplane->lcores[i]->tracker, service, &silence);
		pending += silence.pending;
		if (silence.t_since > since)
			since = silence.t_since;
	}
	if (pending == 0)
		return IDLE;
	return t > since + dataplane->config.detect_ns[BS_CAUSE_HANG] ? SILENT : OPEN;
}

/* Its threads now; -ESRCH if none of its processes is there. What was asked of sockets stays. */
static int
sample_threads(struct probed *probed, struct bs_probe_sample *sample)
{
	struct bs_target *target = &probed->target;
	unsigned left = 0;

	memset(sample, 0, sizeof(*sample));
	for (unsigned i = 0; i < target->pid_count; i++) {
		if (bs_probe_sample(target->pids[i], sample) == 0)
			target->pids[left++] = target->pids[i];
	}
	/* those that are left are looked at until a search says who took their place */
	if (left < target->pid_count)
		probed->wanted = true;
	target->pid_count = left;
	return left == 0 ? -ESRCH : 0;
}

static void
tell(const struct bs_probe *probe, struct probed *probed)
{
	const struct bs_probe_sample *first = &probed->first, *last = &probed->last;
	struct bs_rec_probe record;

	if (probed->t_last == probed->t_first)
		return;
	memset(&record, 0, sizeof(record));
	bs_record_head(&record.head, BS_REC_PROBE, 0);
	record.t_begin = probed->t_first;
	record.t_end = probed->t_last;
	/* threads that ended have taken theirs out of the sum */
	if (last->cpu_ns > first->cpu_ns)
		record.cpu_ns = last->cpu_ns - first->cpu_ns;
	/* of several CPUs, and of what lies behind the last look */
	if (last->throttled_ns > first->throttled_ns)
		record.throttled_ns = RTE_MIN(
			last->throttled_ns - first->throttled_ns, probed->t_last - probed->t_first);
	record.threads = (uint16_t)RTE_MIN(last->threads, UINT16_MAX);
	record.service = (uint16_t)probed->service;
	record.state = (uint8_t)bs_probe_state(first, last, probed->t_last - probed->t_first);
	bs_probe_piece_tell(&probed->piece, &record);
	bs_collector_put(probe->dataplane->collector, &record, BS_UNITS_OF(struct bs_rec_probe));
	probed->t_first = probed->t_last;
	probed->first = probed->last;
	bs_probe_piece_begin(&probed->piece);
}

/* The service gave a byte, or has nothing to give. */
static void
end_silence(struct bs_probe *probe, struct probed *probed)
{
	if (probed->t_first == 0)
		return;
	/* now that it ran, a throttle that was not over at the last look is accounted for */
	if (probed->cgroup.stat_count > 0) {
		struct bs_probe_sample now;

		bs_cgroup_sample(&probed->cgroup, &now);
		probed->last.throttled_ns = now.throttled_ns;
	}
	tell(probe, probed);
	bs_cgroup_close(&probed->cgroup);
	probed->t_first = 0;
}

static void
begin_silence(struct bs_probe *probe, struct probed *probed)
{
	char path[40];

	bs_probe_piece_begin(&probed->piece);
	bs_cgroup_close(&probed->cgroup);
	if (probed->target.pid_count == 0)
		return;
	snprintf(path, sizeof(path), "/proc/%d/cgroup", probed->target.pids[0]);
	bs_cgroup_open(&probed->cgroup, &probe->mounts, path);
}

/* Is there anything to look at? */
static bool
can_look(const struct probed *probed)
{
	return probed->by_file || probed->target.pid_count > 0 ||
	       (probed->target.inode_count > 0 && probed->target.diag >= 0);
}

/* Looks at a silent service. */
static void
look(struct bs_probe *probe, struct probed *probed, uint64_t t)
{
	struct bs_probe_sample sample;
	const bool first = probed->t_first == 0;

	if (sample_threads(probed, &sample) != 0) {
		/* a new process, or none yet; sockets may be seen where processes are not */
		if (!first && probed->first.threads > 0)
			lose(probe, probed);
		if (probed->by_file &&
			(!take_pid_file(probe, probed) || sample_threads(probed, &sample) != 0))
			return;
		if (!can_look(probed))
			return;
	}
	if (probed->t_first == 0)
		begin_silence(probe, probed);
	bs_cgroup_sample(&probed->cgroup, &sample);
	if (!bs_probe_piece_look(
		    &probed->piece, probe->dataplane, probed->service, &probed->target)) {
		lose(probe, probed);
		return;
	}
	if (probed->t_first == 0) {
		probed->t_first = t;
		probed->first = sample;
	}
	probed->t_last = t;
	probed->last = sample;
	if (t - probed->t_first >= (probed->cgroup.stat_count > 0 ? TELL_QUOTA_NS : TELL_NS))
		tell(probe, probed);
}

int
bs_probe_step(struct bs_probe *probe, uint64_t t_ns)
{
	int again_ms = (int)(SEARCH_FIRST_NS / BS_NS_PER_MS);

	if (probe->count == 0)
		return -1;
	search(probe, t_ns, SEARCH_BUDGET);
	for (unsigned i = 0; i < probe->count; i++) {
		struct probed *probed = &probe->list[i];
		enum attention attention;

		if (!can_look(probed))
			continue;
		attention = attention_for(probe, probed->service, t_ns);
		if (attention != SILENT) {
			end_silence(probe, probed);
			again_ms =
				RTE_MIN(again_ms, attention == OPEN ? LOOK_OPEN_MS : LOOK_IDLE_MS);
			continue;
		}
		look(probe, probed, t_ns);
		again_ms = RTE_MIN(
			again_ms, LOOK_SILENT_MS + (int)(probed->last.threads / THREADS_PER_MS));
	}
	return probe->searching ? RTE_MIN(again_ms, LOOK_IDLE_MS) : again_ms;
}

void
bs_probe_snapshot(const struct bs_probe *probe, struct bs_snapshot *snapshot)
{
	for (unsigned i = 0; i < probe->count; i++) {
		const struct probed *probed = &probe->list[i];
		struct bs_snapshot_probe *out = &snapshot->probes[probed->service];

		out->how = (enum bs_probe_how)__atomic_load_n(&probed->how, __ATOMIC_RELAXED);
		out->pid = __atomic_load_n(&probed->pid, __ATOMIC_RELAXED);
		out->more = __atomic_load_n(&probed->more, __ATOMIC_RELAXED);
	}
}
