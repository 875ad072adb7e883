/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is asked over the control socket and over telemetry: a line of JSON, and
 * the parameters of each command.
 *
 * Input: command; then its parameters. The line is sent to a control socket as it is.
 */
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "control.h"
#include "fake_source.h"
#include "fuzz.h"
#include "telemetry_flat.h"

static struct fake *fake;
static struct bs_control *control;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static char directory[] = "/tmp/bs-fuzz.XXXXXX";

static void
end(void)
{
	bs_control_destroy(control);
	fake_destroy(fake);
	rmdir(directory);
}

static void
start(void)
{
	const struct control_access access = {geteuid(), getegid(), 0600};
	char error[BS_STATUS_ERROR_BYTES];

	fake = fake_create(true);
	if (mkdtemp(directory) == NULL)
		abort();
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", directory);
	control = bs_control_create(address.sun_path, &access, &fake->source, error);
	if (control == NULL) {
		fprintf(stderr, "%s\n", error);
		abort();
	}
	atexit(end);
}

/* Each answer to the lines is a line of JSON. */
static void
over_the_socket(const uint8_t *lines, size_t bytes)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	static char answers[1u << 18];
	ssize_t got;

	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		abort();
	if (bytes > 16384)
		bytes = 16384; /* what the socket takes without a reader */
	if (send(fd, lines, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 || shutdown(fd, SHUT_WR) != 0)
		bytes = 0;
	for (unsigned i = 0; i < 8; i++)
		FUZZ_CHECK(bs_control_step(control, 0) == 0);
	got = recv(fd, answers, sizeof(answers), MSG_DONTWAIT);
	if (got > 0) {
		const char *line_end = memchr(answers, '\n', (size_t)got);
		json_t *answer = line_end == NULL ? NULL
						  : json_loadb(answers,
							    (size_t)(line_end - answers), 0, NULL);

		FUZZ_CHECK(line_end == NULL || json_is_object(answer));
		json_decref(answer);
	}
	close(fd);
	for (unsigned i = 0; i < 2; i++)
		FUZZ_CHECK(bs_control_step(control, 0) == 0);
}

static void
by_parameters(unsigned command, const uint8_t *data, size_t bytes)
{
	char params[256], error[BS_STATUS_ERROR_BYTES] = "";
	json_t *answer = NULL, *flat;
	unsigned count = 0;

	while (bs_status_commands[count].name != NULL)
		count++;
	command %= count;
	bytes = bytes < sizeof(params) - 1 ? bytes : sizeof(params) - 1;
	memcpy(params, data, bytes);
	params[bytes] = '\0';
	if (bs_status_answer(
		    &fake->source, bs_status_commands[command].name, params, &answer, error) != 0) {
		FUZZ_CHECK(error[0] != '\0' && strchr(error, '\n') == NULL);
		return;
	}
	flat = bs_telemetry_flatten(answer, bs_status_commands[command].list);
	FUZZ_CHECK(flat != NULL);
	json_decref(flat);
	json_decref(answer);
}

void
fuzz_one(const uint8_t *data, size_t bytes)
{
	struct fuzz_input input = {data, bytes};
	unsigned command;

	if (fake == NULL)
		start();
	command = fuzz_u8(&input);
	by_parameters(command, input.data, input.bytes);
	over_the_socket(input.data, input.bytes);
}
