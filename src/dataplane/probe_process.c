/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of a process, and what they did between two looks: see probe_process.h. */
#include "probe_process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bs_record.h"

int
bs_probe_read_text(int dir, const char *path, char *text, size_t size)
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
	if (bs_probe_read_text(dir, path, text, sizeof(text)) <= 0)
		return '\0';
	end = strrchr(text, ')');
	return end == NULL || end[1] != ' ' ? '\0' : end[2];
}

static void
thread_sample(int dir, const char *thread, struct bs_probe_sample *sample)
{
	char path[64], text[96], state = thread_state(dir, thread);
	unsigned long long cpu_ns = 0;

	if (state == '\0')
		return; /* it has ended */
	snprintf(path, sizeof(path), "%.20s/schedstat", thread);
	if (bs_probe_read_text(dir, path, text, sizeof(text)) > 0 &&
		sscanf(text, "%llu", &cpu_ns) == 1)
		sample->cpu_ns += cpu_ns;
	sample->threads++;
	sample->stopped += state == 'T' || state == 't';
	sample->runnable += state == 'R';
}

int
bs_probe_sample(int pid, struct bs_probe_sample *sample)
{
	const unsigned before = sample->threads;
	char path[32];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (dir == NULL)
		return -ESRCH;
	while (sample->threads - before < BS_SAMPLE_THREADS && (entry = readdir(dir)) != NULL) {
		if (isdigit((unsigned char)entry->d_name[0]))
			thread_sample(dirfd(dir), entry->d_name, sample);
	}
	closedir(dir);
	return sample->threads == before ? -ESRCH : 0;
}

/* Counters of threads or cgroups that have gone take theirs with them. */
static uint64_t
grown(uint64_t before, uint64_t after)
{
	return after > before ? after - before : 0;
}

unsigned
bs_probe_state(const struct bs_probe_sample *before, const struct bs_probe_sample *after,
	uint64_t elapsed_ns)
{
	const uint64_t cpu_ns = grown(before->cpu_ns, after->cpu_ns);
	const uint64_t throttled_ns = grown(before->throttled_ns, after->throttled_ns);

	if (after->threads == 0)
		return BS_PROBE_UNKNOWN;
	if (cpu_ns >= elapsed_ns / 4 && cpu_ns >= throttled_ns)
		return BS_PROBE_RUNNING;
	if (after->frozen || after->stopped == after->threads)
		return BS_PROBE_STOPPED;
	if (throttled_ns > 0 && throttled_ns >= elapsed_ns / 4)
		return BS_PROBE_THROTTLED;
	if (after->runnable > 0 && before->runnable > 0)
		return BS_PROBE_STARVED;
	return BS_PROBE_ASLEEP;
}
