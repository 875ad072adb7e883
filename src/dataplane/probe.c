/* SPDX-License-Identifier: BSD-3-Clause */
/* See probe.h. */
#include "probe.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector.h"
#include "dataplane.h"

/* How often a service is looked at: with nothing open at it, with RPCs open, while silent. */
#define LOOK_IDLE_MS 10
#define LOOK_OPEN_MS 2
#define LOOK_SILENT_MS 1
#define TELL_NS 20000000ull /* a long silence is told piece by piece */

struct probed {
	unsigned service;
	int pid;	  /* 0: not known */
	uint64_t t_first; /* of the samples of this silence; 0 = not silent */
	uint64_t t_last;
	struct bs_probe_sample first, last;
};

struct bs_probe {
	struct bs_dataplane *dataplane;
	struct probed list[BS_MAX_SERVICES];
	unsigned count;
};

struct bs_probe *
bs_probe_create(struct bs_dataplane *dataplane)
{
	struct bs_probe *probe = calloc(1, sizeof(*probe));

	if (probe == NULL)
		return NULL;
	probe->dataplane = dataplane;
	for (unsigned i = 0; i < dataplane->config.service_count; i++) {
		if (dataplane->config.services[i].pid_file[0] != '\0')
			probe->list[probe->count++].service = i;
	}
	return probe;
}

void
bs_probe_destroy(struct bs_probe *probe)
{
	free(probe);
}

/* First line of a small file, without its newline. Bytes, or -errno. */
static int
read_text(int dir, const char *path, char *text, size_t size)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, text, size - 1);
	close(fd);
	if (n < 0)
		return -EIO;
	text[n] = '\0';
	return (int)n;
}

/* The state letter behind the name in parentheses, which may hold anything (proc(5)). */
static char
thread_state(int dir, const char *thread)
{
	char path[64], text[512];
	const char *end;

	snprintf(path, sizeof(path), "%.20s/stat", thread);
	if (read_text(dir, path, text, sizeof(text)) <= 0)
		return '\0';
	end = strrchr(text, ')');
	return end == NULL || end[1] != ' ' ? '\0' : end[2];
}

static void
thread_sample(int dir, const char *thread, struct bs_probe_sample *sample)
{
	unsigned long long cpu_ns = 0, delay_ns = 0;
	char path[64], text[96], state = thread_state(dir, thread);

	if (state == '\0')
		return; /* it has ended */
	snprintf(path, sizeof(path), "%.20s/schedstat", thread);
	if (read_text(dir, path, text, sizeof(text)) > 0 &&
		sscanf(text, "%llu %llu", &cpu_ns, &delay_ns) == 2) {
		sample->cpu_ns += cpu_ns;
		sample->run_delay_ns += delay_ns;
	}
	sample->threads++;
	sample->stopped += state == 'T' || state == 't';
	sample->runnable += state == 'R';
}

int
bs_probe_sample(int pid, struct bs_probe_sample *sample)
{
	char path[32];
	struct dirent *entry;
	DIR *dir;

	memset(sample, 0, sizeof(*sample));
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (dir == NULL)
		return -ESRCH;
	while ((entry = readdir(dir)) != NULL) {
		if (isdigit((unsigned char)entry->d_name[0]))
			thread_sample(dirfd(dir), entry->d_name, sample);
	}
	closedir(dir);
	return sample->threads == 0 ? -ESRCH : 0;
}

unsigned
bs_probe_state(const struct bs_probe_sample *before, const struct bs_probe_sample *after,
	uint64_t elapsed_ns)
{
	uint64_t cpu_ns = after->cpu_ns - before->cpu_ns;

	if (after->cpu_ns >= before->cpu_ns && cpu_ns >= elapsed_ns / 4)
		return BS_PROBE_RUNNING;
	if (after->stopped == after->threads)
		return BS_PROBE_STOPPED;
	if (after->runnable > 0 && before->runnable > 0)
		return BS_PROBE_STARVED;
	return BS_PROBE_ASLEEP;
}

static int
pid_of(const char *file)
{
	char text[32], *end;
	long pid;

	if (read_text(AT_FDCWD, file, text, sizeof(text)) <= 0)
		return 0;
	pid = strtol(text, &end, 10);
	return pid > 0 && pid < 1 << 22 && (*end == '\0' || isspace((unsigned char)*end)) ? (int)pid
											  : 0;
}

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

static void
tell(const struct bs_probe *probe, struct probed *probed)
{
	struct bs_rec_probe record;

	if (probed->t_last == probed->t_first)
		return;
	memset(&record, 0, sizeof(record));
	bs_record_head(&record.head, BS_REC_PROBE, 0);
	record.t_begin = probed->t_first;
	record.t_end = probed->t_last;
	/* threads that ended have taken theirs out of the sum */
	if (probed->last.cpu_ns > probed->first.cpu_ns)
		record.cpu_ns = probed->last.cpu_ns - probed->first.cpu_ns;
	record.threads = probed->last.threads;
	record.service = (uint16_t)probed->service;
	record.state = (uint8_t)bs_probe_state(
		&probed->first, &probed->last, probed->t_last - probed->t_first);
	bs_collector_put(probe->dataplane->collector, &record, BS_UNITS_OF(struct bs_rec_probe));
	probed->t_first = probed->t_last;
	probed->first = probed->last;
}

static enum attention
look(struct bs_probe *probe, struct probed *probed, uint64_t t)
{
	enum attention attention = attention_for(probe, probed->service, t);
	struct bs_probe_sample sample;

	if (attention != SILENT) {
		if (probed->t_first != 0)
			tell(probe, probed);
		probed->t_first = 0;
		return attention;
	}
	if (probed->pid == 0 || bs_probe_sample(probed->pid, &sample) != 0) {
		/* a new process, or none yet */
		probed->pid = pid_of(probe->dataplane->config.services[probed->service].pid_file);
		if (probed->pid == 0 || bs_probe_sample(probed->pid, &sample) != 0)
			return SILENT;
		probed->t_first = 0;
	}
	if (probed->t_first == 0) {
		probed->t_first = t;
		probed->first = sample;
	}
	probed->t_last = t;
	probed->last = sample;
	if (t - probed->t_first >= TELL_NS)
		tell(probe, probed);
	return SILENT;
}

int
bs_probe_step(struct bs_probe *probe, uint64_t t_ns)
{
	static const int again_ms[] = {
		[IDLE] = LOOK_IDLE_MS, [OPEN] = LOOK_OPEN_MS, [SILENT] = LOOK_SILENT_MS};
	enum attention most = IDLE;

	for (unsigned i = 0; i < probe->count; i++) {
		enum attention attention = look(probe, &probe->list[i], t_ns);

		most = attention > most ? attention : most;
	}
	return probe->count == 0 ? -1 : again_ms[most];
}
