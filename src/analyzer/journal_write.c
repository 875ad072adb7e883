/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread's half: writes what was handed over, in order, until the system
 * takes it. A block that did not go through as a whole is written again from its
 * beginning, at the same place.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bs_clock.h"
#include "journal_private.h"

#define SYNC_NS BS_NS_PER_S
#define RETRY_MIN_NS (100 * BS_NS_PER_MS)
#define RETRY_MAX_NS (5 * BS_NS_PER_S)

static ssize_t
system_read(void *context, int fd, void *data, size_t bytes, off_t offset)
{
	(void)context;
	return pread(fd, data, bytes, offset);
}

static ssize_t
system_write(void *context, int fd, const void *data, size_t bytes, off_t offset)
{
	(void)context;
	return pwrite(fd, data, bytes, offset);
}

static int
system_truncate(void *context, int fd, off_t bytes)
{
	(void)context;
	return ftruncate(fd, bytes);
}

static int
system_sync(void *context, int fd)
{
	(void)context;
	return fdatasync(fd);
}

static off_t
system_size(void *context, int fd)
{
	struct stat st;

	(void)context;
	return fstat(fd, &st) == 0 ? st.st_size : -1;
}

const struct bs_journal_io journal_system_io = {
	system_read, system_write, system_truncate, system_sync, system_size, NULL};

static void
count(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

/* Says it when it begins, once a second at most: a disk that is nearly full comes and goes. */
static void
fail(struct bs_journal *journal, const char *call, uint64_t now_ns)
{
	int error = errno;

	count(&journal->written.errors, 1);
	__atomic_store_n(&journal->written.error, (uint32_t)error, __ATOMIC_RELAXED);
	__atomic_store_n(&journal->written.last_error, (uint32_t)error, __ATOMIC_RELAXED);
	if (journal->delay_ns == 0 &&
		(journal->t_logged == 0 || now_ns - journal->t_logged >= BS_NS_PER_S)) {
		fprintf(stderr,
			"bufscope-analyzer: journal: %s of file .%u: %s; tried again, what does "
			"not fit meanwhile is counted (journal_lost_records)\n",
			call, journal->at, strerror(error));
		journal->t_logged = now_ns;
	}
	journal->delay_ns = journal->delay_ns == 0 ? RETRY_MIN_NS : 2 * journal->delay_ns;
	if (journal->delay_ns > RETRY_MAX_NS)
		journal->delay_ns = RETRY_MAX_NS;
	journal->t_retry = now_ns + journal->delay_ns;
}

static void
succeed(struct bs_journal *journal)
{
	journal->delay_ns = 0;
	__atomic_store_n(&journal->written.error, 0, __ATOMIC_RELAXED);
}

static int
fd_of(const struct bs_journal *journal)
{
	return journal->first_fd + (int)journal->at;
}

static void
sync_file(struct bs_journal *journal, uint64_t now_ns)
{
	journal->dirty = false;
	journal->t_synced = now_ns;
	if (journal->io->sync(journal->io->context, fd_of(journal)) != 0)
		fail(journal, "fdatasync", now_ns);
}

/* To the file that is written longest ago, emptied. False if it cannot be. */
static bool
switch_file(struct bs_journal *journal, uint64_t number, uint64_t now_ns)
{
	unsigned oldest = 0;

	if (journal->dirty)
		sync_file(journal, now_ns);
	for (unsigned i = 1; i < journal->count; i++)
		if (journal->numbers[i] < journal->numbers[oldest])
			oldest = i;
	journal->at = oldest;
	journal->offset = 0;
	__atomic_store_n(&journal->written.slot, oldest, __ATOMIC_RELAXED);
	if (journal->io->truncate(journal->io->context, fd_of(journal), 0) != 0) {
		fail(journal, "ftruncate", now_ns);
		return false;
	}
	journal->numbers[oldest] = number;
	journal->switched = true;
	return true;
}

static bool
write_slot(struct bs_journal *journal, const struct journal_slot *slot, uint64_t now_ns)
{
	size_t done = 0;

	while (done < slot->bytes) {
		ssize_t n = journal->io->write(journal->io->context, fd_of(journal),
			slot->data + done, slot->bytes - done, (off_t)(journal->offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			if (n == 0)
				errno = ENOSPC;
			fail(journal, "write", now_ns);
			return false;
		}
		done += (size_t)n;
	}
	journal->offset += done;
	journal->dirty = true;
	succeed(journal);
	count(&journal->written.blocks, 1);
	count(&journal->written.bytes, done);
	count(&journal->written.records, slot->records);
	if (slot->file != 0)
		__atomic_store_n(&journal->written.file, slot->file, __ATOMIC_RELAXED);
	return true;
}

uint64_t
bs_journal_write(struct bs_journal *journal, uint64_t now_ns)
{
	uint64_t head = __atomic_load_n(&journal->head, __ATOMIC_ACQUIRE);

	if (journal->delay_ns != 0 && now_ns < journal->t_retry)
		return journal->t_retry - now_ns;
	while (journal->tail != head) {
		const struct journal_slot *slot = &journal->slots[journal->tail % BS_JOURNAL_QUEUE];

		if ((slot->file != 0 && !journal->switched &&
			    !switch_file(journal, slot->file, now_ns)) ||
			!write_slot(journal, slot, now_ns))
			return journal->delay_ns;
		journal->switched = false;
		__atomic_store_n(&journal->tail, journal->tail + 1, __ATOMIC_RELEASE);
	}
	if (!journal->dirty)
		return UINT64_MAX;
	if (now_ns - journal->t_synced < SYNC_NS)
		return SYNC_NS - (now_ns - journal->t_synced);
	sync_file(journal, now_ns);
	return UINT64_MAX;
}

void *
journal_run(void *context)
{
	struct bs_journal *journal = context;
	struct pollfd more = {.fd = journal->wake, .events = POLLIN};

	for (;;) {
		bool stop = __atomic_load_n(&journal->stop, __ATOMIC_ACQUIRE);
		uint64_t ns = bs_journal_write(journal, bs_clock_now_ns());
		eventfd_t woken;

		if (stop)
			break;
		/* rounded up, so as not to spin; a failure waits, whatever comes meanwhile */
		ns = ns == UINT64_MAX ? ns : ns / BS_NS_PER_MS + 1;
		if (poll(&more, 1, ns == UINT64_MAX ? -1 : (int)ns) > 0)
			eventfd_read(journal->wake, &woken);
	}
	if (journal->dirty)
		sync_file(journal, bs_clock_now_ns());
	return NULL;
}
