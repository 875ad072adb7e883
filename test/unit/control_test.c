/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control socket: requests of any kind, clients that misbehave, paths that
 * are not ours. Client and server run in one thread, step by step.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "control.h"
#include "fake_source.h"

static const struct control_access owner_only = {(uid_t)-1, (gid_t)-1, 0600};

struct fixture {
	struct fake *fake;
	struct bs_control *control;
	char directory[32], path[64];
	char error[BS_STATUS_ERROR_BYTES];
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->directory, "/tmp/bs_control_XXXXXX");
	assert_non_null(mkdtemp(f->directory));
	snprintf(f->path, sizeof(f->path), "%s/bufscope.sock", f->directory);
	f->fake = fake_create(true);
	f->control = bs_control_create(f->path, &owner_only, &f->fake->source, f->error);
	assert_non_null(f->control);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	bs_control_destroy(f->control);
	assert_int_equal(access(f->path, F_OK), -1);
	assert_int_equal(rmdir(f->directory), 0);
	fake_destroy(f->fake);
	free(f);
	return 0;
}

static int
dial(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, path);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* Steps until nothing is ready; bounded, since a server that spins must not hang the test. */
static void
serve(struct fixture *f)
{
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(bs_control_step(f->control, 0), 0);
}

static void
put(int fd, const void *data, size_t bytes)
{
	assert_int_equal(send(fd, data, bytes, MSG_NOSIGNAL), bytes);
}

static json_t *
get(struct fixture *f, int fd)
{
	static char line[1 << 20];
	size_t used = 0;
	json_t *answer;

	for (unsigned i = 0; i < 4096; i++) {
		ssize_t got;

		bs_control_step(f->control, 0);
		got = recv(fd, line + used, 1, 0);
		while (got == 1 && line[used] != '\n') {
			used++;
			got = recv(fd, line + used, 1, 0);
		}
		if (got == 1)
			break;
	}
	assert_int_equal(line[used], '\n');
	answer = json_loadb(line, used, 0, NULL);
	assert_non_null(answer);
	return answer;
}

static json_t *
ask(struct fixture *f, int fd, const char *request)
{
	put(fd, request, strlen(request));
	put(fd, "\n", 1);
	return get(f, fd);
}

static void
assert_error(struct fixture *f, int fd, const char *request, const char *expected)
{
	json_t *answer = ask(f, fd, request);
	const char *error = json_string_value(json_object_get(answer, "error"));

	assert_non_null(error);
	assert_int_equal(json_object_size(answer), 1);
	if (strncmp(error, expected, strlen(expected)) != 0)
		assert_string_equal(error, expected);
	json_decref(answer);
}

static bool
is_closed(struct fixture *f, int fd)
{
	char buffer[4096];
	ssize_t got;

	serve(f);
	while ((got = recv(fd, buffer, sizeof(buffer), 0)) > 0)
		serve(f);
	return got == 0 || errno == ECONNRESET;
}

static void
each_command_is_answered_with_its_result(void **state)
{
	struct fixture *f = *state;
	int fd = dial(f->path);

	for (const struct bs_status_command *c = bs_status_commands; c->name != NULL; c++) {
		const char *params = strcmp(c->name, "/bufscope/rpc") == 0     ? "00000000000000aa"
				     : strcmp(c->name, "/bufscope/fault") == 0 ? "hold,20ms"
									       : "";
		char request[128];
		json_t *answer, *result;

		fake_anomaly(f->fake, 0xaa);
		snprintf(request, sizeof(request), "{\"command\":\"%s\",\"params\":\"%s\"}",
			c->name, params);
		answer = ask(f, fd, request);
		result = json_object_get(answer, "result");
		assert_true(json_is_object(result));
		assert_int_equal(json_object_size(answer), 1);
		if (c->list != NULL)
			assert_true(json_is_array(json_object_get(result, c->list)));
		json_decref(answer);
	}
	assert_string_equal(f->fake->fault, "hold=20ms");
	close(fd);
}

static void
garbage_gets_an_error_and_the_connection_lives_on(void **state)
{
	static const char not_request[] =
		"not a request, {\"command\": \"...\", \"params\": \"...\"}: ";
	struct fixture *f = *state;
	int fd = dial(f->path);
	json_t *answer;

	assert_error(f, fd, "", not_request);
	assert_error(f, fd, "hello", not_request);
	assert_error(f, fd, "[]", not_request);
	assert_error(f, fd, "{\"command\":1}", not_request);
	assert_error(f, fd, "{\"params\":\"x\"}", not_request);
	assert_error(f, fd, "{\"command\":\"/bufscope/chain\",\"more\":1}", not_request);
	assert_error(f, fd, "{\"command\":\"a\",\"command\":\"b\"}", not_request);
	assert_error(f, fd, "\xff\xfe\x01", not_request);
	assert_error(f, fd, "{\"command\":\"/bufscope/reload\"}", "there is no such command");
	assert_error(
		f, fd, "{\"command\":\"/bufscope/chain\",\"params\":\"x\"}", "the offset must");
	put(fd, "\0\n", 2);
	json_decref(get(f, fd));
	answer = ask(f, fd, "{\"command\":\"/bufscope/chain\"}");
	assert_true(json_is_object(json_object_get(answer, "result")));
	json_decref(answer);
	close(fd);
}

static void
requests_in_pieces_and_several_at_once_are_answered_in_order(void **state)
{
	static const char requests[] = "{\"command\":\"/bufscope/nothing\"}\n"
				       "{\"command\":\"/bufscope/counters\"}\n{\"comm";
	struct fixture *f = *state;
	int fd = dial(f->path);
	json_t *answer;

	put(fd, requests, strlen(requests));
	answer = get(f, fd);
	assert_true(json_is_string(json_object_get(answer, "error")));
	json_decref(answer);
	answer = get(f, fd);
	assert_true(json_is_object(json_object_get(answer, "result")));
	json_decref(answer);
	serve(f);
	answer = ask(f, fd, "and\":\"/bufscope/status\"}");
	assert_true(json_is_object(json_object_get(answer, "result")));
	json_decref(answer);
	close(fd);
}

static void
an_answer_still_comes_after_the_client_shut_its_side(void **state)
{
	static const char request[] = "{\"command\":\"/bufscope/status\"}\n";
	struct fixture *f = *state;
	int fd = dial(f->path);
	json_t *answer;

	put(fd, request, strlen(request));
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	answer = get(f, fd);
	assert_true(json_is_object(json_object_get(answer, "result")));
	json_decref(answer);
	assert_true(is_closed(f, fd));
	close(fd);
}

static void
a_request_longer_than_the_bound_ends_its_connection_only(void **state)
{
	struct fixture *f = *state;
	int fd = dial(f->path), other = dial(f->path);
	char request[BS_CONTROL_REQUEST_BYTES + 1];
	json_t *answer;

	memset(request, ' ', sizeof(request));
	/* One byte less than the bound, and the newline, still fit. */
	memcpy(request, "{\"command\":\"/bufscope/status\"}", 31);
	request[30] = ' ';
	request[BS_CONTROL_REQUEST_BYTES - 1] = '\n';
	put(fd, request, BS_CONTROL_REQUEST_BYTES);
	answer = get(f, fd);
	assert_non_null(json_object_get(answer, "result"));
	json_decref(answer);

	request[BS_CONTROL_REQUEST_BYTES - 1] = ' ';
	put(fd, request, BS_CONTROL_REQUEST_BYTES);
	answer = get(f, fd);
	assert_string_equal(json_string_value(json_object_get(answer, "error")),
		"the request is longer than 4096 bytes");
	json_decref(answer);
	assert_true(is_closed(f, fd));
	json_decref(ask(f, other, "{\"command\":\"/bufscope/status\"}"));
	close(fd);
	close(other);
}

static void
a_client_that_never_reads_is_dropped_and_others_are_served(void **state)
{
	static const char request[] = "{\"command\":\"/bufscope/chain\"}\n";
	struct fixture *f = *state;
	int fd = dial(f->path), other = dial(f->path);
	unsigned sent = 0;

	/* An answer takes more than 1 KiB; the kernel and the backlog hold bounded amounts. */
	while (sent < 10000 && send(fd, request, strlen(request), MSG_NOSIGNAL) > 0) {
		sent++;
		bs_control_step(f->control, 0);
	}
	assert_true(sent < 10000);
	json_decref(ask(f, other, "{\"command\":\"/bufscope/status\"}"));
	assert_true(is_closed(f, fd));
	close(fd);
	close(other);
}

static void
one_client_too_many_replaces_the_one_that_was_quiet_for_longest(void **state)
{
	struct fixture *f = *state;
	int fds[BS_CONTROL_CLIENTS], extra;

	for (unsigned i = 0; i < BS_CONTROL_CLIENTS; i++) {
		fds[i] = dial(f->path);
		json_decref(ask(f, fds[i], "{\"command\":\"/bufscope/status\"}"));
	}
	json_decref(ask(f, fds[0], "{\"command\":\"/bufscope/status\"}"));
	extra = dial(f->path);
	json_decref(ask(f, extra, "{\"command\":\"/bufscope/status\"}"));
	assert_true(is_closed(f, fds[1]));
	for (unsigned i = 0; i < BS_CONTROL_CLIENTS; i++) {
		if (i != 1)
			json_decref(ask(f, fds[i], "{\"command\":\"/bufscope/status\"}"));
		close(fds[i]);
	}
	close(extra);
}

static void
only_the_owner_can_open_the_socket(void **state)
{
	struct fixture *f = *state;
	struct stat st;

	assert_int_equal(stat(f->path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void
assert_refused(struct fixture *f, const char *path, int code, const char *format)
{
	char expected[BS_STATUS_ERROR_BYTES];

	errno = 0;
	assert_null(bs_control_create(path, &owner_only, &f->fake->source, f->error));
	assert_int_equal(errno, code);
	snprintf(expected, sizeof(expected), "%s: %s", path, format);
	assert_string_equal(f->error, expected);
}

static void
a_second_instance_is_told_who_has_the_socket(void **state)
{
	struct fixture *f = *state;
	char why[160];
	int fd;

	snprintf(why, sizeof(why),
		"another instance listens here (pid %d, uid %u): stop it, or choose another "
		"eal.file_prefix",
		getpid(), getuid());
	assert_refused(f, f->path, EADDRINUSE, why);
	fd = dial(f->path);
	json_decref(ask(f, fd, "{\"command\":\"/bufscope/status\"}"));
	close(fd);
}

static void
a_stale_socket_is_replaced_and_any_other_file_is_not(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct bs_control *control;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/stale", f->directory);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	control = bs_control_create(address.sun_path, &owner_only, &f->fake->source, f->error);
	assert_non_null(control);
	close(dial(address.sun_path));
	bs_control_destroy(control);
	assert_int_equal(access(address.sun_path, F_OK), -1);

	fd = open(address.sun_path, O_CREAT | O_WRONLY, 0600);
	close(fd);
	assert_refused(f, address.sun_path, EEXIST, "is there and not a socket: remove it");
	assert_int_equal(unlink(address.sun_path), 0);
	assert_int_equal(symlink("bufscope.sock", address.sun_path), 0);
	assert_refused(f, address.sun_path, EEXIST, "is there and not a socket: remove it");
	assert_int_equal(unlink(address.sun_path), 0);
}

static void
a_socket_of_somebody_else_is_not_replaced(void **state)
{
	struct fixture *f = *state;
	struct control_access access = owner_only;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct bs_control *control;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/stale", f->directory);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	if (chown(address.sun_path, 12345, (gid_t)-1) == 0) { /* as root */
		assert_refused(f, address.sun_path, EEXIST,
			"is there and belongs to uid 12345: remove it");
		/* unless it is who the configuration gives it to: then it was ours */
		access.owner = 12345;
		control = bs_control_create(address.sun_path, &access, &f->fake->source, f->error);
		assert_non_null(control);
		bs_control_destroy(control);
	} else {
		assert_int_equal(unlink(address.sun_path), 0);
	}
}

static void
owner_group_and_mode_are_those_of_the_configuration(void **state)
{
	struct fixture *f = *state;
	struct control_access access;
	struct bs_control *control;
	struct stat st;
	char path[64];

	f->fake->config.control.mode = 0660;
	strcpy(f->fake->config.control.group, geteuid() == 0 ? "4" : "");
	strcpy(f->fake->config.control.owner, geteuid() == 0 ? "12345" : "");
	assert_int_equal(control_access_plan(&f->fake->config, &access, f->error), 0);
	snprintf(path, sizeof(path), "%s/s", f->directory);
	control = bs_control_create(path, &access, &f->fake->source, f->error);
	assert_non_null(control);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	if (geteuid() == 0) {
		assert_int_equal(st.st_uid, 12345);
		assert_int_equal(st.st_gid, 4);
	}
	bs_control_destroy(control);

	strcpy(f->fake->config.control.group, "no-such-group");
	assert_int_equal(control_access_plan(&f->fake->config, &access, f->error), -ENOENT);
	assert_string_equal(f->error,
		"control.group: there is no group \"no-such-group\": add it, or name another");
	strcpy(f->fake->config.control.owner, "no-such-user");
	assert_int_equal(control_access_plan(&f->fake->config, &access, f->error), -ENOENT);
	assert_string_equal(f->error,
		"control.owner: there is no user \"no-such-user\": add it, or name another");
}

static void
a_socket_that_another_took_over_is_not_removed(void **state)
{
	struct fixture *f = *state;
	struct bs_control *second;

	assert_int_equal(unlink(f->path), 0);
	second = bs_control_create(f->path, &owner_only, &f->fake->source, f->error);
	assert_non_null(second);
	bs_control_destroy(f->control);
	assert_int_equal(access(f->path, F_OK), 0);
	f->control = second;
}

static void
a_directory_that_others_can_write_or_that_is_a_link_is_refused(void **state)
{
	struct fixture *f = *state;
	char directory[64], path[128], link[64], why[256];
	int fd;

	snprintf(directory, sizeof(directory), "%s/open", f->directory);
	snprintf(link, sizeof(link), "%s/link", f->directory);
	snprintf(path, sizeof(path), "%s/s", directory);
	assert_int_equal(mkdir(directory, 0700), 0);
	assert_int_equal(chmod(directory, 0777), 0);
	assert_null(bs_control_create(path, &owner_only, &f->fake->source, f->error));
	assert_int_equal(errno, EPERM);
	snprintf(why, sizeof(why),
		"%s: others can write to this directory (mode 0777): chmod go-w %s", directory,
		directory);
	assert_string_equal(f->error, why);

	assert_int_equal(chmod(directory, 0700), 0);
	assert_int_equal(symlink("open", link), 0);
	snprintf(path, sizeof(path), "%s/s", link);
	assert_null(bs_control_create(path, &owner_only, &f->fake->source, f->error));
	snprintf(why, sizeof(why), "%s: not a directory, or a symbolic link", link);
	assert_string_equal(f->error, why);

	snprintf(path, sizeof(path), "%s/s", directory);
	fd = open(directory, O_RDONLY);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_null(bs_control_create(path, &owner_only, &f->fake->source, f->error));
	assert_int_equal(errno, EBUSY);
	close(fd);
	if (geteuid() == 0) {
		assert_int_equal(chown(directory, 12345, 0), 0);
		assert_null(bs_control_create(path, &owner_only, &f->fake->source, f->error));
		assert_int_equal(errno, EPERM);
		snprintf(why, sizeof(why),
			"%s: belongs to uid 12345, and must to root or the caller: chown root %s",
			directory, directory);
		assert_string_equal(f->error, why);
	}
	assert_int_equal(unlink(link), 0);
	assert_int_equal(rmdir(directory), 0);
}

static void
paths_that_cannot_be_are_refused(void **state)
{
	struct fixture *f = *state;
	char path[200];

	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	assert_null(bs_control_create(path, &owner_only, &f->fake->source, f->error));
	assert_int_equal(errno, ENAMETOOLONG);
	assert_refused(f, "socket", EPERM, "the socket needs a directory of its own");
	assert_null(bs_control_create("/nonexistent/s", &owner_only, &f->fake->source, f->error));
	assert_string_equal(f->error, "/nonexistent: No such file or directory");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_command_is_answered_with_its_result),
		TEST(garbage_gets_an_error_and_the_connection_lives_on),
		TEST(requests_in_pieces_and_several_at_once_are_answered_in_order),
		TEST(an_answer_still_comes_after_the_client_shut_its_side),
		TEST(a_request_longer_than_the_bound_ends_its_connection_only),
		TEST(a_client_that_never_reads_is_dropped_and_others_are_served),
		TEST(one_client_too_many_replaces_the_one_that_was_quiet_for_longest),
		TEST(only_the_owner_can_open_the_socket),
		TEST(a_second_instance_is_told_who_has_the_socket),
		TEST(a_stale_socket_is_replaced_and_any_other_file_is_not),
		TEST(a_socket_of_somebody_else_is_not_replaced),
		TEST(owner_group_and_mode_are_those_of_the_configuration),
		TEST(a_socket_that_another_took_over_is_not_removed),
		TEST(a_directory_that_others_can_write_or_that_is_a_link_is_refused),
		TEST(paths_that_cannot_be_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
