/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The probe: what it makes of two samples, what it reads of real processes that
 * are stopped, computing, asleep or gone, and what it tells of a service that
 * is silent. Only the processes live in real time: they are looked at until
 * they are seen in their state, not waited for.
 */
#include "gb_frames.h"
#include "gb_records.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"
#include "probe_process.h"

#define PATIENCE_NS (15 * GB_S)

/* What the process is like now. */
static int
sample_now(int pid, struct bs_probe_sample *sample)
{
	memset(sample, 0, sizeof(*sample));
	return bs_probe_sample(pid, sample);
}

/* --- samples ------------------------------------------------------------------------ */

static unsigned
state_of(uint64_t cpu_ns, unsigned stopped, unsigned runnable_before, unsigned runnable_after)
{
	const struct bs_probe_sample before = {
		.cpu_ns = 1000, .threads = 4, .runnable = runnable_before};
	const struct bs_probe_sample after = {.cpu_ns = 1000 + cpu_ns,
		.threads = 4,
		.stopped = stopped,
		.runnable = runnable_after};

	return bs_probe_state(&before, &after, 20 * GB_MS);
}

static void
two_samples_say_what_a_service_did(void **state)
{
	(void)state;
	assert_int_equal(state_of(0, 0, 0, 0), BS_PROBE_ASLEEP);
	assert_int_equal(state_of(20 * GB_MS, 0, 1, 1), BS_PROBE_RUNNING);
	/* a quarter of one CPU is work, less is not */
	assert_int_equal(state_of(5 * GB_MS, 0, 0, 0), BS_PROBE_RUNNING);
	assert_int_equal(state_of(5 * GB_MS - 1, 0, 0, 0), BS_PROBE_ASLEEP);
	assert_int_equal(state_of(0, 4, 0, 0), BS_PROBE_STOPPED);
	/* only if all threads are */
	assert_int_equal(state_of(0, 3, 0, 0), BS_PROBE_ASLEEP);
	/* ready to run both times, and never on a CPU */
	assert_int_equal(state_of(0, 0, 1, 1), BS_PROBE_STARVED);
	assert_int_equal(state_of(0, 0, 0, 1), BS_PROBE_ASLEEP);
	assert_int_equal(state_of(0, 0, 1, 0), BS_PROBE_ASLEEP);
}

static void
threads_that_end_take_their_time_with_them(void **state)
{
	const struct bs_probe_sample before = {.cpu_ns = 500 * GB_MS, .threads = 2};
	const struct bs_probe_sample after = {.cpu_ns = 100 * GB_MS, .threads = 1};

	(void)state;
	assert_int_equal(bs_probe_state(&before, &after, 20 * GB_MS), BS_PROBE_ASLEEP);
}

static void
a_process_that_is_not_there_is_none(void **state)
{
	struct bs_probe_sample sample;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(sample_now(pid, &sample), -ESRCH);
	assert_int_equal(sample_now(-1, &sample), -ESRCH);
}

static void
this_process_is_seen_with_its_threads(void **state)
{
	struct bs_probe_sample sample;

	(void)state;
	assert_int_equal(sample_now(getpid(), &sample), 0);
	assert_true(sample.threads >= 1);
	assert_true(sample.cpu_ns > 0);
	assert_int_equal(sample.stopped, 0);
	assert_true(sample.runnable >= 1); /* the thread that asks */
}

/* --- real processes --------------------------------------------------------------------- */

static uint64_t
real_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * GB_S + (uint64_t)now.tv_nsec;
}

/* A process that sleeps, or computes; it goes with this one. */
static pid_t
start_process(bool computes)
{
	const pid_t parent = getpid();
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	for (;;) {
		if (!computes)
			pause();
	}
}

static void
end_process(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Is it seen in that state, over 10 ms of real time at least, before patience ends? */
static bool
is_seen(pid_t pid, unsigned state)
{
	const uint64_t t_end = real_now_ns() + PATIENCE_NS;

	while (real_now_ns() < t_end) {
		const uint64_t t_begin = real_now_ns();
		struct bs_probe_sample before, after;

		assert_int_equal(sample_now(pid, &before), 0);
		while (real_now_ns() < t_begin + 10 * GB_MS)
			sched_yield();
		assert_int_equal(sample_now(pid, &after), 0);
		if (bs_probe_state(&before, &after, real_now_ns() - t_begin) == state)
			return true;
	}
	return false;
}

static void
a_real_process_is_seen_asleep_stopped_and_computing(void **state)
{
	pid_t pid = start_process(false);

	(void)state;
	assert_true(is_seen(pid, BS_PROBE_ASLEEP));
	kill(pid, SIGSTOP);
	assert_true(is_seen(pid, BS_PROBE_STOPPED));
	kill(pid, SIGCONT);
	assert_true(is_seen(pid, BS_PROBE_ASLEEP));
	end_process(pid);
	pid = start_process(true);
	assert_true(is_seen(pid, BS_PROBE_RUNNING));
	kill(pid, SIGSTOP);
	assert_true(is_seen(pid, BS_PROBE_STOPPED));
	end_process(pid);
}

/* --- what it tells ------------------------------------------------------------------------- */

static char pid_path[128];

static void
write_pid(const char *text)
{
	FILE *file;

	snprintf(pid_path, sizeof(pid_path), "%s/kv.pid", getenv("RUNTIME_DIRECTORY"));
	file = fopen(pid_path, "we");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

/* A dataplane whose service has its pid in that file, and an RPC open at it since GB_T0. */
static struct gb *
open_probed(struct gb_flow *flow)
{
	static char services[512];
	struct gb *gb;
	struct frame frame;

	snprintf(pid_path, sizeof(pid_path), "%s/kv.pid", getenv("RUNTIME_DIRECTORY"));
	snprintf(services, sizeof(services),
		"{\"name\": \"other1\", \"address\": \"10.0.0.9\", \"port\": 1},"
		"{\"name\": \"kv\", \"address\": \"10.0.0.2\", \"port\": 6379, \"protocol\": "
		"\"unit\","
		" \"pid_file\": \"%s\"}",
		pid_path);
	gb = gb_open(&(struct gb_setup){.services = services});
	*flow = gb_flow(40000, 6379);
	gb_connect(gb);
	gb_handshake(gb, flow);
	gb_message(&frame, flow, GB_CLIENT, 7, 100);
	gb_pass(gb, GB_WIRE, &frame);
	return gb;
}

static void
respond(struct gb *gb, struct gb_flow *flow)
{
	struct frame frame;

	gb_message(&frame, flow, GB_SERVER, 7, 60);
	gb_pass(gb, GB_LOCAL, &frame);
}

/* Probes at this time after GB_T0. */
static int
step_at(struct gb *gb, struct bs_probe *probe, uint64_t ns)
{
	gb_run(gb, GB_T0 + ns, 90 * GB_US);
	return bs_probe_step(probe, gb_time.now_ns);
}

static void
a_silent_service_that_is_stopped_is_told_piece_by_piece(void **state)
{
	const pid_t pid = start_process(false);
	const struct bs_rec_probe *told;
	struct gb_flow flow;
	struct bs_probe *probe;
	struct gb *gb;
	char text[32];

	(void)state;
	snprintf(text, sizeof(text), "%d\n", (int)pid);
	write_pid(text);
	kill(pid, SIGSTOP);
	assert_true(is_seen(pid, BS_PROBE_STOPPED));
	gb = open_probed(&flow);
	probe = bs_probe_create(gb->dataplane);
	assert_non_null(probe);
	/* silent is who has an RPC open and gives no byte for detect.hang: 1 ms */
	assert_true(step_at(gb, probe, GB_MS) > 1);
	assert_int_equal(step_at(gb, probe, 2 * GB_MS), 1);
	assert_int_equal(step_at(gb, probe, 21 * GB_MS), 1);
	gb_collect(gb, 1);
	assert_int_equal(gb_record_count(gb, BS_REC_PROBE), 0);
	assert_int_equal(step_at(gb, probe, 22 * GB_MS), 1); /* 20 ms of it are a piece */
	gb_collect(gb, 1);
	told = gb_record(gb, BS_REC_PROBE, 0);
	assert_non_null(told);
	assert_int_equal(told->t_begin, GB_T0 + 2 * GB_MS);
	assert_int_equal(told->t_end, GB_T0 + 22 * GB_MS);
	assert_int_equal(told->state, BS_PROBE_STOPPED);
	assert_int_equal(told->service, 1);
	assert_int_equal(told->threads, 1);
	assert_int_equal(told->cpu_ns, 0);
	assert_int_equal(step_at(gb, probe, 30 * GB_MS), 1);
	respond(gb, &flow);
	assert_true(step_at(gb, probe, 31 * GB_MS) > 1);
	gb_collect(gb, 1);
	told = gb_record(gb, BS_REC_PROBE, 1);
	assert_non_null(told);
	assert_int_equal(told->t_begin, GB_T0 + 22 * GB_MS);
	assert_int_equal(told->t_end, GB_T0 + 30 * GB_MS);
	assert_int_equal(gb_record_count(gb, BS_REC_PROBE), 2);
	bs_probe_destroy(probe);
	gb_close(gb);
	end_process(pid);
}

static void
a_pid_file_that_names_no_process_is_no_evidence(void **state)
{
	static const char *const texts[] = {
		"", "\n", "redis", "-5", "0", "12x", "4194304", "99999999999999999999", " "};
	struct gb_flow flow;
	struct gb *gb;
	struct bs_probe *probe;
	uint64_t t = 2 * GB_MS;

	(void)state;
	write_pid("");
	gb = open_probed(&flow);
	probe = bs_probe_create(gb->dataplane);
	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++, t += 21 * GB_MS) {
		write_pid(texts[i]);
		assert_int_equal(step_at(gb, probe, t), 1);
	}
	unlink(pid_path);
	assert_int_equal(step_at(gb, probe, t + 21 * GB_MS), 1);
	assert_int_equal(mkdir(pid_path, 0700), 0);
	assert_int_equal(step_at(gb, probe, t + 42 * GB_MS), 1);
	rmdir(pid_path);
	gb_collect(gb, 1);
	assert_int_equal(gb_record_count(gb, BS_REC_PROBE), 0);
	bs_probe_destroy(probe);
	gb_close(gb);
}

static void
a_service_that_was_restarted_is_found_again(void **state)
{
	pid_t pid = start_process(false);
	const struct bs_rec_probe *told;
	struct gb_flow flow;
	struct bs_probe *probe;
	struct gb *gb;
	char text[32];

	(void)state;
	snprintf(text, sizeof(text), "%d", (int)pid);
	write_pid(text);
	gb = open_probed(&flow);
	probe = bs_probe_create(gb->dataplane);
	assert_int_equal(step_at(gb, probe, 2 * GB_MS), 1);
	end_process(pid);
	assert_int_equal(step_at(gb, probe, 3 * GB_MS), 1); /* gone, and not there again */
	pid = start_process(false);
	kill(pid, SIGSTOP);
	assert_true(is_seen(pid, BS_PROBE_STOPPED));
	snprintf(text, sizeof(text), "%d", (int)pid);
	write_pid(text);
	assert_int_equal(step_at(gb, probe, 4 * GB_MS), 1);
	assert_int_equal(step_at(gb, probe, 24 * GB_MS), 1);
	gb_collect(gb, 1);
	/* nothing of the one is told as of the other */
	assert_int_equal(gb_record_count(gb, BS_REC_PROBE), 1);
	told = gb_record(gb, BS_REC_PROBE, 0);
	assert_int_equal(told->t_begin, GB_T0 + 4 * GB_MS);
	assert_int_equal(told->state, BS_PROBE_STOPPED);
	bs_probe_destroy(probe);
	gb_close(gb);
	end_process(pid);
}

static void *
use_cpu(void *context)
{
	struct timespec used;
	char go;

	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	while (used.tv_sec == 0 && used.tv_nsec < 30000000);
	while (read(*(int *)context, &go, 1) < 0)
		continue;
	return NULL;
}

/* A process with a thread that has used 30 ms, and ends when a byte is written. */
static pid_t
start_with_thread(int *go)
{
	const pid_t parent = getpid();
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		pthread_t thread;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent || pthread_create(&thread, NULL, use_cpu, &ends[0]) != 0)
			_exit(1);
		for (;;)
			pause();
	}
	close(ends[0]);
	*go = ends[1];
	return pid;
}

static void
cpu_time_that_left_with_a_thread_is_not_told_as_used(void **state)
{
	const uint64_t t_end = real_now_ns() + PATIENCE_NS;
	const struct bs_rec_probe *told;
	struct bs_probe_sample sample = {.cpu_ns = 0};
	struct gb_flow flow;
	struct bs_probe *probe;
	struct gb *gb;
	char text[32];
	int go;
	pid_t pid = start_with_thread(&go);

	(void)state;
	snprintf(text, sizeof(text), "%d", (int)pid);
	write_pid(text);
	gb = open_probed(&flow);
	probe = bs_probe_create(gb->dataplane);
	while (sample.cpu_ns < 30 * GB_MS && real_now_ns() < t_end)
		assert_int_equal(sample_now(pid, &sample), 0);
	assert_int_equal(step_at(gb, probe, 2 * GB_MS), 1);
	assert_int_equal(write(go, "g", 1), 1);
	while (sample.threads != 1 && real_now_ns() < t_end)
		assert_int_equal(sample_now(pid, &sample), 0);
	assert_int_equal(sample.threads, 1);
	assert_int_equal(step_at(gb, probe, 22 * GB_MS), 1);
	gb_collect(gb, 1);
	told = gb_record(gb, BS_REC_PROBE, 0);
	assert_non_null(told);
	assert_int_equal(told->state, BS_PROBE_ASLEEP);
	assert_int_equal(told->cpu_ns, 0);
	bs_probe_destroy(probe);
	gb_close(gb);
	close(go);
	end_process(pid);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		GB_TEST(two_samples_say_what_a_service_did),
		GB_TEST(threads_that_end_take_their_time_with_them),
		GB_TEST(a_process_that_is_not_there_is_none),
		GB_TEST(this_process_is_seen_with_its_threads),
		GB_TEST(a_real_process_is_seen_asleep_stopped_and_computing),
		GB_TEST(a_silent_service_that_is_stopped_is_told_piece_by_piece),
		GB_TEST(a_pid_file_that_names_no_process_is_no_evidence),
		GB_TEST(a_service_that_was_restarted_is_found_again),
		GB_TEST(cpu_time_that_left_with_a_thread_is_not_told_as_used),
	};

	return cmocka_run_group_tests_name(
		"graybox_probe", tests, gb_group_setup, gb_group_teardown);
}
