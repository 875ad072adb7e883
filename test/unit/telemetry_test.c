/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands over DPDK's own telemetry socket, as dpdk-telemetry.py reads them. Needs EAL. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_eal.h>

#include "fake_source.h"
#include "telemetry.h"
#include "telemetry_flat.h"

#define SKIPPED 77

static struct fake *fake;
static int telemetry_fd;

static json_t *
ask(const char *request)
{
	static char answer[1 << 16];
	ssize_t got;
	json_t *json;

	assert_int_equal(send(telemetry_fd, request, strlen(request), 0), strlen(request));
	got = recv(telemetry_fd, answer, sizeof(answer), 0);
	assert_true(got > 0 && got < 16384);
	json = json_loadb(answer, (size_t)got, 0, NULL);
	assert_non_null(json);
	return json;
}

static void
every_command_answers_what_the_flattened_object_says(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 40; i++)
		fake_anomaly(fake, i);
	for (uint64_t i = 1; i <= 40; i++)
		fake_incident(fake, i);
	for (const struct bs_status_command *c = bs_status_commands; c->name != NULL; c++) {
		const char *params = strcmp(c->name, "/bufscope/rpc") == 0     ? "0000000000000007"
				     : strcmp(c->name, "/bufscope/fault") == 0 ? "hold,20ms"
				     : c->list != NULL			       ? "1"
									       : "";
		char request[128], error[BS_STATUS_ERROR_BYTES];
		json_t *full, *flat, *answer;

		snprintf(request, sizeof(request), "%s%s%s", c->name, params[0] == '\0' ? "" : ",",
			params);
		assert_int_equal(bs_status_answer(&fake->source, c->name, params, &full, error), 0);
		flat = bs_telemetry_flatten(full, c->list);
		answer = ask(request);
		assert_true(json_equal(json_object_get(answer, c->name), flat));
		json_decref(answer);
		json_decref(flat);
		json_decref(full);
	}
	assert_string_equal(fake->fault, "hold=20ms");
}

static void
what_is_refused_says_why(void **state)
{
	json_t *answer = ask("/bufscope/rpc,zz");
	json_t *error = json_object_get(json_object_get(answer, "/bufscope/rpc"), "error");

	(void)state;
	assert_string_equal(json_string_value(error), "an RPC-ID is 16 hex digits");
	json_decref(answer);
}

static void
a_second_registration_is_refused(void **state)
{
	(void)state;
	assert_int_equal(bs_telemetry_register(&fake->source), -EALREADY);
}

static int
start_eal(void)
{
	static char name[] = "telemetry_test", no_huge[] = "--no-huge", no_pci[] = "--no-pci";
	static char memory[] = "-m64", log[] = "--log-level=lib.eal:4", prefix[64], lcores[32];
	char *argv[] = {name, no_huge, memory, no_pci, log, prefix, lcores, NULL};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char hello[1024];

	snprintf(prefix, sizeof(prefix), "--file-prefix=bs_telemetry_test_%d", getpid());
	snprintf(lcores, sizeof(lcores), "--lcores=0@%d", sched_getcpu());
	if (rte_eal_init(7, argv) < 0)
		return -1;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/dpdk_telemetry.v2",
		rte_eal_get_runtime_dir());
	telemetry_fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	if (connect(telemetry_fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		return -1;
	return recv(telemetry_fd, hello, sizeof(hello), 0) > 0 ? 0 : -1;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_command_answers_what_the_flattened_object_says),
		cmocka_unit_test(what_is_refused_says_why),
		cmocka_unit_test(a_second_registration_is_refused),
	};
	char command[320];
	int ret;

	if (start_eal() != 0)
		return SKIPPED;
	fake = fake_create(true);
	ret = bs_telemetry_register(&fake->source);
	if (ret == 0)
		ret = cmocka_run_group_tests(tests, NULL, NULL);
	close(telemetry_fd);
	/* EAL leaves its directory behind. */
	snprintf(command, sizeof(command), "rm -r '%s'", rte_eal_get_runtime_dir());
	rte_eal_cleanup();
	return system(command) == 0 ? ret : 1;
}
