/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The journal against the disk: MB/s of the analyzer's writer, through its thread
 * and with its syncs, against plain writes of the same bytes with the same syncs;
 * and records/s of the reader with every record validated. By the wall clock and
 * by CPU time, which also counts where the machine is not ours alone. usage:
 * journal_bench [DIRECTORY [MB]]; the default is the working directory and 256.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bs_clock.h"
#include "journal.h"

#define ROUNDS 3u
#define WRITE_BYTES (1u << 16)
#define AHEAD 12u /* blocks that may wait */

struct rate {
	uint64_t wall_ns, cpu_ns;
};

static uint64_t
read_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * BS_NS_PER_S + (uint64_t)t.tv_nsec;
}

static uint64_t
now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

static struct rate
begin_measure(void)
{
	return (struct rate){now_ns(), read_clock(CLOCK_PROCESS_CPUTIME_ID)};
}

static struct rate
end_measure(struct rate begin)
{
	return (struct rate){
		now_ns() - begin.wall_ns, read_clock(CLOCK_PROCESS_CPUTIME_ID) - begin.cpu_ns};
}

static void
die(const char *what)
{
	perror(what);
	exit(1);
}

static double
per_us(uint64_t count, uint64_t ns)
{
	return (double)count * 1e3 / (double)ns;
}

static int
open_in(const char *directory, const char *name)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		die(path);
	unlink(path);
	return fd;
}

static struct rate
plain(const char *directory, uint64_t bytes)
{
	static uint8_t data[WRITE_BYTES];
	struct rate begin = begin_measure();
	uint64_t synced = begin.wall_ns;
	int fd = open_in(directory, "plain.bench");

	memset(data, 0x5a, sizeof(data));
	for (uint64_t done = 0; done < bytes; done += sizeof(data)) {
		if (pwrite(fd, data, sizeof(data), (off_t)done) != (ssize_t)sizeof(data))
			die("pwrite");
		if (now_ns() - synced >= BS_NS_PER_S) {
			fdatasync(fd);
			synced = now_ns();
		}
	}
	fdatasync(fd);
	close(fd);
	return end_measure(begin);
}

/* BRIEF records, as most are; none is to be lost. Leaves the file in *fd. */
static struct rate
journal(const char *directory, uint64_t bytes, int *fd)
{
	struct bs_journal_files files = {.count = 1, .file_bytes = 2 * bytes};
	struct bs_rec_brief brief = {.t_end = 1, .outcome = BS_OUTCOME_ANSWERED};
	struct bs_rec_journal status;
	struct rate begin = begin_measure();
	struct bs_journal *writer;
	uint64_t mark = 0;

	*fd = files.first_fd = open_in(directory, "journal.bench");
	writer = bs_journal_create(&files, now_ns());
	if (writer == NULL || bs_journal_start(writer) != 0)
		die("journal");
	bs_record_head(&brief.head, BS_REC_BRIEF, 0);
	for (uint64_t done = 0; done < bytes; done += sizeof(brief)) {
		bs_journal_put(writer, &brief.head, sizeof(brief), begin.wall_ns);
		if ((done + sizeof(brief)) % WRITE_BYTES != 0)
			continue;
		/* the loop would go on; here all is to be written */
		mark = bs_journal_hand_over(writer, begin.wall_ns);
		while (!bs_journal_has_written(writer, mark < AHEAD ? 0 : mark - AHEAD))
			sched_yield();
	}
	while (!bs_journal_finish(writer))
		continue; /* the last sync takes its time */
	bs_journal_status(writer, &status);
	if (status.lost_records != 0)
		printf("%" PRIu64 " records were lost\n", status.lost_records);
	bs_journal_destroy(writer);
	fdatasync(*fd);
	return end_measure(begin);
}

static struct rate
read_back(int fd, uint64_t expected)
{
	struct bs_journal_reader *reader = bs_journal_reader_create();
	struct bs_journal_found found;
	enum bs_journal_step step;
	struct rate begin = begin_measure(), rate;
	uint64_t records = 0;
	off_t at = 0;

	while ((step = bs_journal_reader_next(reader, &found)) != BS_JOURNAL_END) {
		struct bs_journal_item item;
		size_t offset = 0;

		if (step == BS_JOURNAL_MORE) {
			size_t room;
			void *to = bs_journal_reader_room(reader, &room);
			ssize_t got = pread(fd, to, room, at);

			if (got < 0)
				die("pread");
			bs_journal_reader_fill(reader, (size_t)got);
			at += got;
		}
		if (step != BS_JOURNAL_BLOCK)
			continue;
		while (bs_journal_item_next(found.records, found.block->bytes, &offset, &item) == 1)
			records++;
	}
	rate = end_measure(begin);
	bs_journal_reader_destroy(reader);
	if (records != expected)
		printf("%" PRIu64 " records read, not %" PRIu64 "\n", records, expected);
	return rate;
}

int
main(int argc, char **argv)
{
	const char *directory = argc > 1 ? argv[1] : ".";
	uint64_t bytes = (argc > 2 ? strtoull(argv[2], NULL, 10) : 256) << 20;

	bs_clock_now_ns = now_ns;
	printf("%u MB of blocks of 64 KiB; MB/s and M records/s, by wall clock (by CPU time)\n",
		(unsigned)(bytes >> 20));
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t records = bytes / sizeof(struct bs_rec_brief);
		struct rate direct = plain(directory, bytes), written, read;
		int fd;

		written = journal(directory, bytes, &fd);
		read = read_back(fd, records);
		close(fd);
		printf("plain writes %6.0f (%6.0f)   journal %6.0f (%6.0f): %3.0f %%   reader "
		       "%5.1f "
		       "(%5.1f)\n",
			per_us(bytes, direct.wall_ns), per_us(bytes, direct.cpu_ns),
			per_us(bytes, written.wall_ns), per_us(bytes, written.cpu_ns),
			100.0 * (double)direct.wall_ns / (double)written.wall_ns,
			per_us(records, read.wall_ns), per_us(records, read.cpu_ns));
	}
	return 0;
}
