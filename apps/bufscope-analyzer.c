/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bufscope-analyzer: the diagnosis as a process of its own, started by
 * bufscoped's spawner with --fd, or by hand with --socket. Ends with 0 when
 * bufscoped closes the socket or on SIGTERM or SIGINT; 1 on failure; 2 on wrong
 * usage.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "bs_clock.h"
#include "identity.h"
#include "loop.h"
#include "options.h"
#include "sandbox.h"

#define STEP_MS 20

struct options {
	int fd; /* -1: not given */
	const char *socket;
	struct bs_journal_files journal; /* count 0: none */
	struct bs_sandbox sandbox;
	bool has_uid, has_gid;
};

/* CLOCK_MONOTONIC, moved once to the epoch: never goes back, whatever sets the wall clock. */
static uint64_t epoch_ns;

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
	return epoch_ns + read_clock(CLOCK_MONOTONIC);
}

static int
read_number(const char *text, uint64_t max, uint64_t *out, char error[BS_OPTION_ERROR_BYTES])
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *out <= max)
		return 0;
	snprintf(error, BS_OPTION_ERROR_BYTES, "\"%.64s\" is not a number from 0 to %" PRIu64, text,
		max);
	return -EINVAL;
}

static int
take_fd(void *context, const char *text, char error[BS_OPTION_ERROR_BYTES])
{
	struct options *options = context;
	uint64_t number;
	int ret = read_number(text, INT_MAX, &number, error);

	if (ret == 0)
		options->fd = (int)number;
	return ret;
}

/* The largest value means "no change" to the kernel. */
static int
take_uid(void *context, const char *text, char error[BS_OPTION_ERROR_BYTES])
{
	struct options *options = context;
	uint64_t number;
	int ret = read_number(text, UINT32_MAX - 1, &number, error);

	options->has_uid = ret == 0;
	if (ret == 0)
		options->sandbox.uid = (uid_t)number;
	return ret;
}

static int
take_gid(void *context, const char *text, char error[BS_OPTION_ERROR_BYTES])
{
	struct options *options = context;
	uint64_t number;
	int ret = read_number(text, UINT32_MAX - 1, &number, error);

	options->has_gid = ret == 0;
	if (ret == 0)
		options->sandbox.gid = (gid_t)number;
	return ret;
}

/* "FIRST,COUNT,BYTES" */
static int
take_journal(void *context, const char *text, char error[BS_OPTION_ERROR_BYTES])
{
	struct bs_journal_files *files = &((struct options *)context)->journal;
	char rest;

	if (sscanf(text, "%d,%u,%" SCNu64 "%c", &files->first_fd, &files->count, &files->file_bytes,
		    &rest) == 3 &&
		files->first_fd >= 0 && files->count > 0 && files->count <= BS_JOURNAL_FILES &&
		files->file_bytes >= BS_JOURNAL_FILE_BYTES_MIN && files->file_bytes <= INT64_MAX)
		return 0;
	snprintf(error, BS_OPTION_ERROR_BYTES,
		"\"%.64s\" is not FIRST,COUNT,BYTES: up to %u descriptors of at least %u bytes",
		text, BS_JOURNAL_FILES, BS_JOURNAL_FILE_BYTES_MIN);
	return -EINVAL;
}

static const struct bs_option known[] = {
	{.name = "fd",
		.argument = "N",
		.kind = BS_OPTION_TAKE,
		.take = take_fd,
		.help = "connected SOCK_SEQPACKET socket, inherited from bufscoped"},
	{.name = "socket",
		.argument = "PATH",
		.kind = BS_OPTION_TEXT,
		.offset = offsetof(struct options, socket),
		.help = "connect to bufscoped's socket (analyzer.mode external)"},
	{.name = "journal",
		.argument = "FIRST,COUNT,BYTES",
		.kind = BS_OPTION_TAKE,
		.take = take_journal,
		.help = "write a journal to COUNT inherited descriptors from\n"
			"FIRST on, each to be filled with at most BYTES"},
	{.name = "uid",
		.argument = "N",
		.kind = BS_OPTION_TAKE,
		.take = take_uid,
		.help = "become this user, by number (as root; else bufscope if\n"
			"there is such a user, else nobody)"},
	{.name = "gid",
		.argument = "N",
		.kind = BS_OPTION_TAKE,
		.take = take_gid,
		.help = "and this group; both or neither"},
	{.name = "loose",
		.kind = BS_OPTION_FLAG,
		.offset = offsetof(struct options, sandbox.loose),
		.help = "no bounds, no change of root, no filter of system\n"
			"calls: for valgrind and debuggers"},
};

static const struct bs_command command = {
	.name = "bufscope-analyzer",
	.operands = "",
	.summary =
		"The diagnosis, as a process of its own: bufscoped starts it. By hand, give --fd\n"
		"or --socket.",
	.options = known,
	.option_count = sizeof(known) / sizeof(known[0]),
};

static int
complain(const char *text)
{
	fprintf(stderr, "bufscope-analyzer: %s (see bufscope-analyzer --help)\n", text);
	return -1;
}

/* As bs_options_read(): 0 to go on. */
static int
read_options(int argc, char **argv, struct options *options)
{
	int operands = bs_options_read(&command, argc, argv, options, stdout, stderr);

	if (operands < 0)
		return operands;
	if (operands > 0)
		return complain("takes no operands");
	if ((options->fd >= 0) == (options->socket != NULL))
		return complain("give --fd or --socket, one of them");
	if (options->has_uid != options->has_gid)
		return complain("give --uid and --gid, or neither");
	options->sandbox.drop = options->has_uid || geteuid() == 0;
	if (options->sandbox.drop && !options->has_uid) {
		struct bs_identity user;

		bs_identity_analyzer(&user);
		options->sandbox.uid = user.uid;
		options->sandbox.gid = user.gid;
	}
	options->sandbox.die_with_parent = options->fd >= 0;
	return 0;
}

/* The inherited socket, if it is one. -1, and has said why. */
static int
use_fd(int fd)
{
	int type = 0;
	socklen_t size = sizeof(type);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET) {
		fprintf(stderr,
			"bufscope-analyzer: --fd %d: not a SOCK_SEQPACKET socket: bufscoped gives "
			"one; by hand use --socket\n",
			fd);
		return -1;
	}
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	return fd;
}

/* The socket at a path, connected. -1, and has said why. */
static int
connect_to(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof(address.sun_path)) {
		fprintf(stderr, "bufscope-analyzer: --socket %s: longer than %zu bytes\n", path,
			sizeof(address.sun_path) - 1);
		return -1;
	}
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (const void *)&address, sizeof(address)) != 0) {
		fprintf(stderr,
			"bufscope-analyzer: cannot connect to %s: %s (is bufscoped running, with "
			"analyzer.mode external?)\n",
			path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

/* A descriptor that is readable once SIGTERM or SIGINT has come. */
static int
take_signals(void)
{
	sigset_t end;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* the limit is told by write, too */
	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	sigaddset(&end, SIGINT);
	sigprocmask(SIG_BLOCK, &end, NULL);
	return signalfd(-1, &end, SFD_CLOEXEC);
}

static int
run(int fd, int stop_fd, struct bs_journal *journal)
{
	/* As in the configuration's "detect" when it says nothing. */
	static const struct bs_diag_config config = {
		.detect_ns =
			{
				[BS_CAUSE_PAUSE] = 200 * BS_NS_PER_US,
				[BS_CAUSE_CONGESTION] = 200 * BS_NS_PER_US,
				[BS_CAUSE_CONTENTION] = 200 * BS_NS_PER_US,
				[BS_CAUSE_DISORDER] = 200 * BS_NS_PER_US,
				[BS_CAUSE_HANG] = BS_NS_PER_MS,
			},
	};
	struct bs_analyzer *analyzer = bs_analyzer_create(fd, stop_fd, &config, journal);
	const struct bs_analyzer_counters *counters;
	int ret;

	if (analyzer == NULL) {
		perror("bufscope-analyzer: no memory");
		return EXIT_FAILURE;
	}
	do
		ret = bs_analyzer_step(analyzer, STEP_MS);
	while (ret == 1);
	if (ret < 0)
		fprintf(stderr, "bufscope-analyzer: socket: %s\n", strerror(-ret));
	counters = bs_analyzer_counters(analyzer);
	fprintf(stderr,
		"bufscope-analyzer: ended; in: %" PRIu64 " batches, %" PRIu64 " records, %" PRIu64
		" malformed, %" PRIu64 " ahead, %" PRIu64 " slo_refused; out: %" PRIu64
		" batches, %" PRIu64 " records, %" PRIu64 " unsent\n",
		counters->batches, counters->records, counters->malformed, counters->ahead,
		counters->slo_refused, counters->batches_sent, counters->records_sent,
		counters->records_unsent);
	bs_analyzer_destroy(analyzer);
	return ret == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int
main(int argc, char **argv)
{
	struct options options = {.fd = -1};
	struct bs_journal *journal = NULL;
	const char *step;
	int fd, stop_fd, error, status, keep[2 + BS_JOURNAL_DESCRIPTORS];

	status = read_options(argc, argv, &options);
	if (status < 0)
		return status == -2 ? BS_EXIT_DONE : BS_EXIT_USAGE;
	epoch_ns = read_clock(CLOCK_REALTIME) - read_clock(CLOCK_MONOTONIC);
	bs_clock_now_ns = now_ns;
	stop_fd = take_signals();
	if (stop_fd < 0) {
		perror("bufscope-analyzer: signalfd");
		return EXIT_FAILURE;
	}
	if (options.socket != NULL) {
		fd = connect_to(options.socket);
		if (fd < 0)
			return EXIT_FAILURE;
	} else {
		fd = use_fd(options.fd);
		if (fd < 0)
			return BS_EXIT_USAGE;
	}
	if (options.journal.count > 0) {
		journal = bs_journal_create(&options.journal, now_ns());
		if (journal == NULL) {
			perror("bufscope-analyzer: journal");
			return EXIT_FAILURE;
		}
	}
	keep[0] = fd;
	keep[1] = stop_fd;
	options.sandbox.keep = keep;
	options.sandbox.keep_count = 2 + bs_journal_descriptors(journal, &keep[2]);
	error = bs_sandbox_enter(&options.sandbox, &step);
	if (error != 0) {
		fprintf(stderr, "bufscope-analyzer: cannot %s: %s\n", step, strerror(-error));
		return EXIT_FAILURE;
	}
	/* Its thread is started behind the sandbox, which it inherits. */
	if (journal != NULL) {
		error = bs_journal_start(journal);
		if (error != 0) {
			fprintf(stderr,
				"bufscope-analyzer: cannot start the journal's thread: %s\n",
				strerror(-error));
			return EXIT_FAILURE;
		}
	}
	status = run(fd, stop_fd, journal);
	/* a thread that hangs in the system goes with the process */
	if (journal == NULL || bs_journal_finish(journal))
		bs_journal_destroy(journal);
	return status;
}
