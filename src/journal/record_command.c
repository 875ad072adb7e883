/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `bufscope record`: copies the blocks that a running instance adds to its
 * journal to a file that can be read alone.
 */
#include "record_command.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bs_clock.h"
#include "connect.h"
#include "follow.h"
#include "options.h"

#define STEP_MS 100
#define TAIL_NS (1200 * BS_NS_PER_MS) /* until what was made before the end is written, too */

struct values {
	const char *file_prefix, *socket, *path;
	uint64_t for_ns;
	bool wait;
};

static int
take_for(void *context, const char *text, char error[BS_OPTION_ERROR_BYTES])
{
	struct values *values = context;

	if (bs_duration_parse(text, &values->for_ns) == 0 && values->for_ns != 0)
		return 0;
	snprintf(error, BS_OPTION_ERROR_BYTES, "\"%s\" is no duration, as 30s or 10m", text);
	return -EINVAL;
}

static const struct bs_option options[] = {
	{"output", 'o', "FILE", "Where to; what is there is replaced. Required.", BS_OPTION_TEXT,
		offsetof(struct values, path), NULL},
	{"for", 0, "DURATION", "End by itself after this time, as 30s.", BS_OPTION_TAKE, 0,
		take_for},
	{"file-prefix", 0, "PREFIX", "eal.file_prefix of the instance; default bufscope.",
		BS_OPTION_TEXT, offsetof(struct values, file_prefix), NULL},
	{"socket", 0, "PATH", "Its control socket.", BS_OPTION_TEXT,
		offsetof(struct values, socket), NULL},
	{"wait", 0, NULL, "Wait up to 30 s for the instance to appear.", BS_OPTION_FLAG,
		offsetof(struct values, wait), NULL},
};

static const struct bs_command command = {
	.name = "bufscope record",
	.operands = "-o FILE",
	.summary = "Records what a running instance reports from now on, until SIGINT, SIGTERM or "
		   "the\n"
		   "end of --for, into one file for bufscope report. The instance must have a "
		   "journal\n"
		   "(analyzer.journal), which is read along; run this as its user.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
};

struct recorder {
	const char *path;
	FILE *out;
	bool begun;
	struct follow follow;
	uint64_t blocks, records, rpcs, bytes, unwritten;
};

static int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int
fail(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", command.name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return BS_EXIT_FAILED;
}

static uint64_t
now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * BS_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* --- the file ------------------------------------------------------------------------- */

static void
write_block(struct recorder *recorder, const struct bs_journal_block *block, const void *records)
{
	fwrite(block, sizeof(*block), 1, recorder->out);
	fwrite(records, 1, block->bytes, recorder->out);
	recorder->bytes += sizeof(*block) + block->bytes;
}

/* What the file begins with: its header, before the first block, and the names until then. */
static void
begin_file(struct recorder *recorder, const struct bs_journal_block *first)
{
	const struct bs_journal_preamble *names = recorder->follow.preamble;
	struct bs_journal_file file = {
		.node = names->node,
		.journal = first->journal,
		.file = recorder->follow.file,
		.t_opened = now_ns(CLOCK_REALTIME),
		.first_block = first->sequence,
	};

	bs_journal_file_seal(&file);
	fwrite(&file, sizeof(file), 1, recorder->out);
	recorder->bytes += sizeof(file);
	for (unsigned i = 0; i < bs_journal_preamble_blocks(names); i++) {
		struct bs_journal_block block;
		const void *records = bs_journal_preamble_block(
			names, i, first->journal, first->sequence, &block);

		write_block(recorder, &block, records);
	}
	recorder->begun = true;
}

static int
take(void *context, const struct bs_journal_block *block, const void *records)
{
	struct recorder *recorder = context;
	struct bs_journal_item item;
	size_t offset = 0;

	if (!recorder->begun)
		begin_file(recorder, block);
	write_block(recorder, block, records);
	recorder->blocks++;
	recorder->records += block->records;
	recorder->unwritten += block->lost;
	while (bs_journal_item_next(records, block->bytes, &offset, &item) == 1)
		recorder->rpcs +=
			item.record->type == BS_REC_RPC || item.record->type == BS_REC_BRIEF;
	return ferror(recorder->out) ? -errno : 0;
}

/* Is the file to be written one of those that are read? */
static bool
is_own_source(const struct recorder *recorder)
{
	struct stat target, source;

	if (stat(recorder->path, &target) != 0)
		return false;
	for (unsigned i = 0; i < recorder->follow.count; i++)
		if (fstat(recorder->follow.fds[i], &source) == 0 &&
			source.st_dev == target.st_dev && source.st_ino == target.st_ino)
			return true;
	return false;
}

static int
open_file(struct recorder *recorder)
{
	int fd;

	if (is_own_source(recorder))
		return fail("%s is a file of the journal itself: give another", recorder->path);
	fd = open(recorder->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	recorder->out = fd < 0 ? NULL : fdopen(fd, "w");
	if (recorder->out != NULL)
		return BS_EXIT_DONE;
	fail("cannot write %s: %s", recorder->path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return BS_EXIT_FAILED;
}

/* --- the run ---------------------------------------------------------------------------- */

static int
find_journal(struct recorder *recorder, int control)
{
	char error[CONNECT_ERROR_BYTES], why[FOLLOW_ERROR_BYTES];
	json_t *status = connect_ask(control, "/bufscope/status", NULL, error);
	const json_t *journal = json_object_get(status, "journal");
	const char *path = json_string_value(json_object_get(journal, "path"));
	json_int_t files = json_integer_value(json_object_get(journal, "files"));
	int ret = BS_EXIT_DONE;

	if (status == NULL)
		return fail("%s", error);
	if (path == NULL || files <= 0)
		ret = fail("the instance has no journal: set analyzer.journal to a path and "
			   "restart bufscoped");
	else if (follow_open(&recorder->follow, path, (unsigned)files, why) != 0)
		ret = fail("%s", why);
	json_decref(status);
	return ret;
}

static void
show_progress(const struct recorder *recorder, uint64_t since_ns)
{
	fprintf(stderr,
		"\r\x1b[K%" PRIu64 " s: %" PRIu64 " records, %" PRIu64 " RPCs, %" PRIu64
		" bytes (Ctrl-C ends it)",
		(uint64_t)(since_ns / BS_NS_PER_S), recorder->records, recorder->rpcs,
		recorder->bytes);
}

/* Until the end is due and what was made before it is written. 0 or -errno. */
static int
copy(struct recorder *recorder, const struct values *values, int signals, int control)
{
	struct pollfd fds[] = {
		{.fd = signals, .events = POLLIN},
		{.fd = control, .events = POLLIN}, /* it sends nothing: readable is its end */
	};
	bool terminal = isatty(STDERR_FILENO) == 1;
	uint64_t begin = now_ns(CLOCK_MONOTONIC), end = 0;
	int ret;

	for (;;) {
		uint64_t now;

		poll(fds, 2, STEP_MS);
		now = now_ns(CLOCK_MONOTONIC);
		ret = follow_step(&recorder->follow, take, recorder);
		if (ret == 0 && fflush(recorder->out) != 0)
			ret = -errno;
		if (ret != 0 || (end != 0 && (now >= end || fds[0].revents != 0)))
			break;
		if (end == 0 && (fds[0].revents != 0 || fds[1].revents != 0 ||
					(values->for_ns != 0 && now - begin >= values->for_ns))) {
			struct signalfd_siginfo info;

			end = now + TAIL_NS;
			if (fds[0].revents != 0 && read(signals, &info, sizeof(info)) < 0)
				break;
			if (fds[1].revents != 0)
				fail("bufscoped has ended");
			fds[1].fd = -1;
		}
		if (terminal)
			show_progress(recorder, now - begin);
	}
	if (terminal)
		fputs("\r\x1b[K", stderr);
	return ret;
}

static int
take_signals(void)
{
	sigset_t end;

	sigemptyset(&end);
	sigaddset(&end, SIGINT);
	sigaddset(&end, SIGTERM);
	sigprocmask(SIG_BLOCK, &end, NULL);
	return signalfd(-1, &end, SFD_CLOEXEC);
}

static int
record(struct recorder *recorder, const struct values *values, int control)
{
	int signals = take_signals(), ret;

	ret = find_journal(recorder, control);
	if (ret == BS_EXIT_DONE)
		ret = open_file(recorder);
	if (ret != BS_EXIT_DONE)
		return ret;
	ret = copy(recorder, values, signals, control);
	if (fclose(recorder->out) != 0 && ret == 0)
		ret = -errno;
	if (ret != 0)
		return fail("%s: %s; what was recorded until then is there", recorder->path,
			strerror(-ret));
	printf("%s: %" PRIu64 " blocks, %" PRIu64 " records, %" PRIu64 " RPCs, %" PRIu64
	       " bytes; lost: %" PRIu64 " records not written, %" PRIu64 " blocks missing\n",
		recorder->path, recorder->blocks, recorder->records, recorder->rpcs,
		recorder->bytes, recorder->unwritten, recorder->follow.missing);
	return BS_EXIT_DONE;
}

int
record_command(int argc, char **argv)
{
	struct values values = {.file_prefix = "bufscope"};
	int operands = bs_options_read(&command, argc, argv, &values, stdout, stderr);
	struct connect_target target = {values.socket, values.file_prefix, values.wait};
	struct recorder recorder = {.path = values.path};
	char error[CONNECT_ERROR_BYTES] = "out of memory";
	int control, status;

	if (operands < 0)
		return operands == -2 ? BS_EXIT_DONE : BS_EXIT_USAGE;
	if (operands > 0 || values.path == NULL) {
		fprintf(stderr, "%s: takes -o FILE and no operands (see %s --help)\n", command.name,
			command.name);
		return BS_EXIT_USAGE;
	}
	control = connect_open(&target, error);
	if (control < 0)
		return fail("%s", error);
	status = record(&recorder, &values, control);
	follow_close(&recorder.follow);
	close(control);
	return status;
}
