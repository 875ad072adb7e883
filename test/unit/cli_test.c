/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program bufscope, as a process, against a control socket that this test
 * serves while it waits.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control.h"
#include "fake_source.h"

#define OUTPUT_BYTES (1u << 20)
#define NOBODY 65534u

static char program[PATH_MAX];
static int program_fd; /* a user who cannot reach the build directory can still run it */

static const struct control_access owner_only = {(uid_t)-1, (gid_t)-1, 0600};

struct fixture {
	struct fake *fake;
	struct bs_control *control;
	char base[32], directory[96], path[128], prefix[32];
	char out[OUTPUT_BYTES], err[OUTPUT_BYTES];
};

static void
listen_now(struct fixture *f)
{
	char error[BS_STATUS_ERROR_BYTES];

	f->control = bs_control_create(f->path, &owner_only, &f->fake->source, error);
	assert_non_null(f->control);
}

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->base, "/tmp/bs_cli_XXXXXX");
	assert_non_null(mkdtemp(f->base));
	snprintf(f->prefix, sizeof(f->prefix), "cli_test_%d", getpid());
	snprintf(f->directory, sizeof(f->directory), "%s/dpdk", f->base);
	assert_int_equal(mkdir(f->directory, 0755), 0);
	snprintf(f->directory, sizeof(f->directory), "%s/dpdk/%s", f->base, f->prefix);
	assert_int_equal(mkdir(f->directory, 0700), 0);
	snprintf(f->path, sizeof(f->path), "%s/bufscope.sock", f->directory);
	assert_int_equal(setenv("RUNTIME_DIRECTORY", f->base, 1), 0);
	f->fake = fake_create(false);
	fake_anomaly(f->fake, 0x0001000000000002);
	fake_incident(f->fake, 5);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;
	char *slash;

	bs_control_destroy(f->control);
	assert_int_equal(rmdir(f->directory), 0);
	slash = strrchr(f->directory, '/');
	*slash = '\0';
	assert_int_equal(rmdir(f->directory), 0);
	assert_int_equal(rmdir(f->base), 0);
	fake_destroy(f->fake);
	free(f);
	return 0;
}

static void
read_back(FILE *file, char *text)
{
	size_t bytes;

	rewind(file);
	bytes = fread(text, 1, OUTPUT_BYTES - 1, file);
	text[bytes] = '\0';
	fclose(file);
}

static pid_t
start(char *const argv[], FILE *out, FILE *err, uid_t uid)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	if (dup2(fileno(out), STDOUT_FILENO) < 0 || dup2(fileno(err), STDERR_FILENO) < 0 ||
		(uid != 0 && setuid(uid) != 0))
		_exit(126);
	fexecve(program_fd, argv, environ);
	_exit(127);
}

/* Runs bufscope with up to six arguments, serving meanwhile; its exit status. */
static int
run_as(struct fixture *f, uid_t uid, int listen_late, ...)
{
	char *argv[8] = {program};
	FILE *out = tmpfile(), *err = tmpfile();
	int status = 0;
	pid_t pid;
	va_list args;

	va_start(args, listen_late);
	for (unsigned i = 1; i < 7 && (argv[i] = va_arg(args, char *)) != NULL; i++)
		;
	va_end(args);
	assert_non_null(out);
	assert_non_null(err);
	pid = start(argv, out, err, uid);
	if (listen_late)
		listen_now(f);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (f->control != NULL)
			bs_control_step(f->control, 5);
	}
	read_back(out, f->out);
	read_back(err, f->err);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

#define RUN(f, ...) run_as(f, 0, false, __VA_ARGS__, NULL)

static void
assert_one_line(const char *text)
{
	assert_true(strlen(text) > 0);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void
json_of_each_command_is_the_result_object(void **state)
{
	static const char *const names[][3] = {{"status", "/bufscope/status", ""},
		{"chain", "/bufscope/chain", ""}, {"services", "/bufscope/services", ""},
		{"anomalies", "/bufscope/anomalies", ""}, {"incidents", "/bufscope/incidents", ""},
		{"counters", "/bufscope/counters", ""}, {"lcores", "/bufscope/lcores", ""},
		{"offload", "/bufscope/offload", ""},
		{"explain", "/bufscope/rpc", "0001000000000002"}};
	struct fixture *f = *state;

	listen_now(f);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *params = names[i][2];
		char error[BS_STATUS_ERROR_BYTES];
		json_t *expected, *got;

		assert_int_equal(RUN(f, names[i][0], "--socket", f->path, "--json",
					 params[0] == '\0' ? NULL : params),
			0);
		assert_string_equal(f->err, "");
		got = json_loads(f->out, 0, NULL);
		assert_int_equal(
			bs_status_answer(&f->fake->source, names[i][1], params, &expected, error),
			0);
		assert_true(json_equal(got, expected));
		json_decref(got);
		json_decref(expected);
	}
}

static void
chain_is_drawn_in_the_order_of_travel(void **state)
{
	static const char *const order[] = {"requests: wire -> local", "wire.rx ", "   v",
		"kv.app.in ", "   v", "local.tx ", "responses: local -> wire", "local.rx ", "   v",
		"kv.app.out ", "   v", "wire.tx "};
	struct fixture *f = *state;
	const char *at;

	fake_buffer(f->fake, "mempool", 8192, 100, 0, "exact");
	listen_now(f);
	assert_int_equal(RUN(f, "chain", "--socket", f->path), 0);
	at = f->out;
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		at = strstr(at, order[i]);
		assert_non_null(at);
		at++;
	}
	/* kv.app.in: 11 of 1024 is a tenth of the bar begun; mean wait 2.5 us by fake_buffer. */
	at = strstr(f->out, "kv.app.in ");
	assert_non_null(strstr(at, "[#         ]"));
	assert_true(strstr(at, "2.50 us") < strchr(at, '\n'));
	assert_true(strstr(at, "exact") < strchr(at, '\n'));
	at = strstr(f->out, "local.tx ");
	assert_true(strstr(at, "not observable") < strchr(at, '\n'));
	at = strstr(f->out, "resources\n");
	assert_non_null(at);
	assert_non_null(strstr(at, "mempool "));
}

static void
texts_name_what_matters(void **state)
{
	struct fixture *f = *state;

	listen_now(f);
	assert_int_equal(RUN(f, "explain", "--socket", f->path, "0001000000000002"), 0);
	assert_non_null(strstr(f->out, "kv.app.in"));
	assert_non_null(strstr(f->out, "hang"));
	assert_int_equal(RUN(f, "incidents", "--socket", f->path), 0);
	assert_non_null(strstr(f->out, "kv.app.in"));
	assert_int_equal(RUN(f, "anomalies", "--socket", f->path), 0);
	assert_non_null(strstr(f->out, "0001000000000002"));
	assert_int_equal(RUN(f, "services", "--socket", f->path), 0);
	assert_non_null(strstr(f->out, "kv"));
	assert_int_equal(RUN(f, "counters", "--socket", f->path), 0);
	assert_non_null(strstr(f->out, "dropped.app_queue_full"));
	assert_null(strstr(f->out, "fault_injected"));
	assert_int_equal(RUN(f, "lcores", "--socket", f->path), 0);
	assert_non_null(strstr(f->out, "collector"));
	assert_int_equal(RUN(f, "offload", "--socket", f->path), 0);
	assert_non_null(strstr(f->out, "software"));
	f->fake->snapshot.hugepages = false;
	assert_int_equal(RUN(f, "status", "--socket", f->path), 0);
	assert_non_null(strstr(f->out, "degraded"));
	assert_non_null(strstr(f->out, "not in hugepages"));
	assert_non_null(strstr(f->out, "sysctl vm.nr_hugepages"));
	/* Not on a terminal: top asks once. */
	assert_int_equal(RUN(f, "top", "--socket", f->path), 0);
	assert_non_null(strstr(f->out, "pid 4242"));
	assert_non_null(strstr(f->out, "0001000000000002"));
}

static void
older_entries_are_reached_by_offset(void **state)
{
	struct fixture *f = *state;
	json_t *got;

	for (uint64_t i = 10; i < 10 + BS_STATUS_PAGE; i++)
		fake_anomaly(f->fake, i);
	listen_now(f);
	assert_int_equal(RUN(f, "anomalies", "--socket", f->path), 0);
	assert_non_null(strstr(f->out, "32 of 33 shown; older: --offset 32"));
	assert_int_equal(RUN(f, "anomalies", "--socket", f->path, "--offset", "32", "--json"), 0);
	got = json_loads(f->out, 0, NULL);
	assert_int_equal(json_array_size(json_object_get(got, "anomalies")), 1);
	json_decref(got);
	assert_int_equal(RUN(f, "anomalies", "--socket", f->path, "--offset", "x"), 1);
	assert_string_equal(f->err, "bufscope anomalies: the offset must be a whole number "
				    "(allowed: 0 to 4294967295)\n");
}

static void
an_instance_is_found_by_its_file_prefix(void **state)
{
	struct fixture *f = *state;

	listen_now(f);
	assert_int_equal(RUN(f, "status", "--file-prefix", f->prefix), 0);
	assert_non_null(strstr(f->out, "pid 4242"));
	assert_int_equal(RUN(f, "status", "--file-prefix", "cli_test_no_such"), 1);
	assert_one_line(f->err);
	assert_non_null(strstr(f->err, "no bufscoped with file prefix \"cli_test_no_such\""));
	/* and it says which there are */
	assert_non_null(strstr(strstr(f->err, "; there is: "), f->prefix));
}

static void
no_instance_is_one_line_and_status_1_and_wait_waits_for_it(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(RUN(f, "status", "--socket", f->path), 1);
	assert_string_equal(f->out, "");
	assert_one_line(f->err);
	assert_non_null(strstr(f->err, "No such file or directory"));
	assert_int_equal(
		run_as(f, 0, true, "status", "--wait", "--file-prefix", f->prefix, NULL), 0);
	assert_non_null(strstr(f->out, "pid 4242"));
}

static void
an_rpc_that_is_not_held_is_status_1(void **state)
{
	struct fixture *f = *state;

	listen_now(f);
	assert_int_equal(RUN(f, "explain", "--socket", f->path, "00010000000000ff"), 1);
	assert_string_equal(f->err,
		"bufscope explain: RPC 00010000000000ff is not among the newest "
		"1024 anomalies\n");
}

static void
denied_access_names_path_owner_and_remedy(void **state)
{
	struct fixture *f = *state;
	char expected[512];

	if (geteuid() != 0)
		skip();
	listen_now(f);
	assert_int_equal(chmod(f->base, 0755), 0);
	assert_int_equal(run_as(f, NOBODY, false, "status", "--socket", f->path, NULL), 1);
	snprintf(expected, sizeof(expected),
		"bufscope status: %s: permission denied: %s belongs to uid 0 (root); run this as "
		"that user or as root\n",
		f->path, f->directory);
	assert_string_equal(f->err, expected);
}

static void
a_socket_found_by_searching_that_another_user_serves_is_not_trusted(void **state)
{
	struct fixture *f = *state;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(f->base, 0755), 0);
	assert_int_equal(chown(f->directory, NOBODY, 0), 0);
	assert_int_equal(seteuid(NOBODY), 0);
	listen_now(f);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(RUN(f, "status", "--file-prefix", f->prefix), 1);
	assert_one_line(f->err);
	assert_non_null(strstr(f->err, "served by uid 65534, neither root nor you"));
	assert_int_equal(RUN(f, "status", "--socket", f->path), 0);
}

static void
wrong_usage_is_status_2_and_help_lists_every_option(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(RUN(f, "explode"), 2);
	assert_one_line(f->err);
	assert_int_equal(RUN(f, "status", "--offset", "1"), 2);
	assert_int_equal(RUN(f, "status", "more"), 2);
	assert_int_equal(RUN(f, "explain"), 2);
	assert_one_line(f->err);
	assert_int_equal(RUN(f, "anomalies", "--help"), 0);
	assert_non_null(strstr(f->out, "usage: bufscope anomalies"));
	assert_non_null(strstr(f->out, "--file-prefix PREFIX"));
	assert_non_null(strstr(f->out, "--socket PATH"));
	assert_non_null(strstr(f->out, "--json"));
	assert_non_null(strstr(f->out, "--wait"));
	assert_non_null(strstr(f->out, "--offset N"));
	assert_int_equal(RUN(f, "--help"), 0);
	assert_non_null(strstr(f->out, "  incidents "));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(json_of_each_command_is_the_result_object),
		TEST(chain_is_drawn_in_the_order_of_travel),
		TEST(texts_name_what_matters),
		TEST(older_entries_are_reached_by_offset),
		TEST(an_instance_is_found_by_its_file_prefix),
		TEST(no_instance_is_one_line_and_status_1_and_wait_waits_for_it),
		TEST(an_rpc_that_is_not_held_is_status_1),
		TEST(denied_access_names_path_owner_and_remedy),
		TEST(a_socket_found_by_searching_that_another_user_serves_is_not_trusted),
		TEST(wrong_usage_is_status_2_and_help_lists_every_option),
	};

	char own[PATH_MAX - 32];
	ssize_t bytes = readlink("/proc/self/exe", own, sizeof(own) - 1);

	if (bytes < 0)
		return 1;
	own[bytes] = '\0';
	*strrchr(own, '/') = '\0';
	snprintf(program, sizeof(program), "%s/../../apps/bufscope", own);
	program_fd = open(program, O_RDONLY | O_CLOEXEC);
	if (program_fd < 0) {
		perror(program);
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
