/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The probe and real sockets: a service that really listens on the loopback,
 * found by its socket, and what is told of its queues while the dataplane, fed
 * with frames of that very connection, sees no answer. The service is a child
 * that does what its mode says; the kernel's queues are looked at until they are
 * so, not waited for.
 */
#include "gb_frames.h"
#include "gb_records.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

#define BACKLOG 5
#define REQUEST 100u
#define LOOPBACK 0x7f000001u
#define MANY (16u << 20)

enum mode {
	LISTENS = 1, /* and does not accept */
	ACCEPTS,     /* and does not read */
	READS,	     /* and does not answer */
	ANSWERS,     /* more than its client takes */
	DATAGRAMS,   /* UDP: is bound */
};

struct service {
	pid_t pid;
	uint16_t port;
	int said; /* a byte for each step that it has made */
};

static void
step_made(int to)
{
	if (write(to, "x", 1) != 1)
		_exit(1);
}

/* In the child. */
static void
serve(enum mode mode, int listener, int to)
{
	static char bytes[MANY];
	int fd;

	step_made(to);
	if (mode == LISTENS || mode == DATAGRAMS)
		return;
	fd = accept(listener, NULL, NULL);
	step_made(to);
	if (fd < 0 || mode == ACCEPTS)
		return;
	if (recv(fd, bytes, REQUEST, MSG_WAITALL) != (ssize_t)REQUEST)
		_exit(1);
	step_made(to);
	if (mode == ANSWERS && send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		step_made(to);
}

static int
listen_at(enum mode mode, uint16_t *port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(LOOPBACK),
		.sin_port = htons(*port)};
	socklen_t bytes = sizeof(address);
	int fd = socket(AF_INET, mode == DATAGRAMS ? SOCK_DGRAM : SOCK_STREAM, 0), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
		(mode != DATAGRAMS && listen(fd, BACKLOG) != 0) ||
		getsockname(fd, (struct sockaddr *)&address, &bytes) != 0)
		_exit(1);
	*port = ntohs(address.sin_port);
	return fd;
}

/* A byte of the child: it has made the next step. */
static void
hear(const struct service *service)
{
	char byte;

	assert_int_equal(read(service->said, &byte, 1), 1);
}

/* Listens when this returns; port 0: any. It goes with this process. */
static struct service
start_service(enum mode mode, uint16_t port)
{
	struct service service = {.port = port};
	const pid_t parent = getpid();
	int said[2];

	assert_int_equal(pipe2(said, O_CLOEXEC), 0);
	service.pid = fork();
	assert_true(service.pid >= 0);
	if (service.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(0);
		int listener = listen_at(mode, &port);

		if (write(said[1], &port, sizeof(port)) != sizeof(port))
			_exit(1);
		serve(mode, listener, said[1]);
		for (;;)
			pause();
	}
	close(said[1]);
	service.said = said[0];
	assert_int_equal(
		read(service.said, &service.port, sizeof(service.port)), sizeof(service.port));
	hear(&service);
	return service;
}

static void
end_service(struct service *service)
{
	kill(service->pid, SIGKILL);
	assert_int_equal(waitpid(service->pid, NULL, 0), service->pid);
	close(service->said);
}

/* A connection to it; *port: its own. */
static int
connect_to(const struct service *service, uint16_t *port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(LOOPBACK),
		.sin_port = htons(service->port)};
	socklen_t bytes = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
	*port = ntohs(address.sin_port);
	return fd;
}

static struct gb *
open_at(uint16_t port, const char *probe)
{
	static char services[512];
	struct gb *gb;

	snprintf(services, sizeof(services),
		"{\"name\": \"far\", \"address\": \"192.0.2.77\", \"port\": 7, \"probe\": \"%s\"},"
		"{\"name\": \"kv\", \"address\": \"127.0.0.1\", \"port\": %u, \"protocol\": "
		"\"unit\", \"probe\": \"%s\"}",
		probe, port, probe);
	gb = gb_open(&(struct gb_setup){.services = services});
	gb_connect(gb);
	return gb;
}

/* The same request over the real connection and through the dataplane. */
static void
request(struct gb *gb, int fd, uint16_t client_port, uint16_t service_port)
{
	struct gb_flow flow = gb_flow(client_port, service_port);
	static const char bytes[REQUEST];
	struct frame frame;

	flow.address[0] = flow.address[1] = LOOPBACK;
	gb_handshake(gb, &flow);
	gb_message(&frame, &flow, GB_CLIENT, 7, REQUEST);
	gb_pass(gb, GB_WIRE, &frame);
	assert_int_equal(send(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
}

static struct bs_snapshot_probe
how_probed(struct gb *gb, const struct bs_probe *probe, unsigned service)
{
	static struct bs_snapshot snapshot;

	bs_dataplane_snapshot(gb->dataplane, &snapshot);
	bs_probe_snapshot(probe, &snapshot);
	return snapshot.probes[service];
}

static int
step_at(struct gb *gb, struct bs_probe *probe, uint64_t ns)
{
	gb_run(gb, GB_T0 + ns, 90 * GB_US);
	return bs_probe_step(probe, gb_time.now_ns);
}

/* What is told of a silence of 20 ms from `ns` on. */
static const struct bs_rec_probe *
told_from(struct gb *gb, struct bs_probe *probe, uint64_t ns, unsigned number)
{
	for (unsigned i = 0; i <= 20; i += 5)
		step_at(gb, probe, ns + i * GB_MS);
	gb_collect(gb, 1);
	assert_int_equal(gb_record_count(gb, BS_REC_PROBE), number + 1);
	return gb_record(gb, BS_REC_PROBE, number);
}

/* --- found ---------------------------------------------------------------------------- */

static void
a_service_is_found_by_its_socket_and_its_address(void **state)
{
	struct service service = start_service(LISTENS, 0);
	struct gb *gb = open_at(service.port, "auto");
	struct bs_probe *probe = bs_probe_create(gb->dataplane);
	struct bs_snapshot_probe how;

	(void)state;
	assert_int_equal(how_probed(gb, probe, 1).how, BS_PROBE_LOOKING);
	bs_probe_find(probe, GB_T0);
	how = how_probed(gb, probe, 1);
	assert_int_equal(how.how, BS_PROBE_SOCKET);
	assert_int_equal(how.pid, service.pid);
	assert_int_equal(how.more, 0);
	/* documentation addresses (RFC 5737) are nobody's, as far as may be seen */
	how = how_probed(gb, probe, 0);
	assert_true(how.how == BS_PROBE_ELSEWHERE || how.how == BS_PROBE_NO_LOOK ||
		    how.how == BS_PROBE_NO_ENTER);
	assert_int_equal(how.pid, 0);
	bs_probe_destroy(probe);
	gb_close(gb);
	end_service(&service);
}

static void
a_search_step_by_step_finds_the_same(void **state)
{
	struct service service = start_service(LISTENS, 0);
	struct gb *gb = open_at(service.port, "auto");
	struct bs_probe *probe = bs_probe_create(gb->dataplane);
	unsigned steps = 0;

	(void)state;
	/* while it searches it wants to go on soon */
	while (how_probed(gb, probe, 1).how == BS_PROBE_LOOKING && steps++ < 10000)
		assert_in_range(step_at(gb, probe, steps * GB_MS), 1, 2000);
	assert_int_equal(how_probed(gb, probe, 1).how, BS_PROBE_SOCKET);
	assert_int_equal(how_probed(gb, probe, 1).pid, service.pid);
	bs_probe_destroy(probe);
	gb_close(gb);
	end_service(&service);
}

static void
a_service_over_udp_is_found_too(void **state)
{
	struct service service = start_service(DATAGRAMS, 0);
	struct gb *gb = open_at(service.port, "auto");
	struct bs_probe *probe = bs_probe_create(gb->dataplane);

	(void)state;
	bs_probe_find(probe, GB_T0);
	assert_int_equal(how_probed(gb, probe, 1).how, BS_PROBE_SOCKET);
	assert_int_equal(how_probed(gb, probe, 1).pid, service.pid);
	bs_probe_destroy(probe);
	gb_close(gb);
	end_service(&service);
}

static void
a_service_that_was_restarted_is_found_again(void **state)
{
	struct service service = start_service(LISTENS, 0);
	struct gb *gb = open_at(service.port, "auto");
	struct bs_probe *probe = bs_probe_create(gb->dataplane);
	const uint16_t port = service.port;

	(void)state;
	bs_probe_find(probe, GB_T0);
	assert_int_equal(how_probed(gb, probe, 1).pid, service.pid);
	end_service(&service);
	bs_probe_find(probe, GB_T0 + 3 * GB_S);
	assert_int_equal(how_probed(gb, probe, 1).how, BS_PROBE_NO_LISTENER);
	assert_int_equal(how_probed(gb, probe, 1).pid, 0);
	service = start_service(LISTENS, port);
	/* not at once: a search takes its time, nothing found doubles the pause */
	bs_probe_find(probe, GB_T0 + 3 * GB_S + GB_MS);
	assert_int_equal(how_probed(gb, probe, 1).pid, 0);
	bs_probe_find(probe, GB_T0 + 12 * GB_S);
	assert_int_equal(how_probed(gb, probe, 1).how, BS_PROBE_SOCKET);
	assert_int_equal(how_probed(gb, probe, 1).pid, service.pid);
	bs_probe_destroy(probe);
	gb_close(gb);
	end_service(&service);
}

static void
off_is_off(void **state)
{
	struct gb *gb = open_at(1, "off");
	struct bs_probe *probe = bs_probe_create(gb->dataplane);

	(void)state;
	bs_probe_find(probe, GB_T0);
	assert_int_equal(bs_probe_step(probe, GB_T0), -1);
	assert_int_equal(how_probed(gb, probe, 1).how, BS_PROBE_OFF);
	bs_probe_destroy(probe);
	bs_probe_destroy(NULL);
	gb_close(gb);
}

/* --- its queues -------------------------------------------------------------------------- */

/* The service in its mode, its connection, and a request that it does not answer. */
struct scene {
	struct service service;
	struct gb *gb;
	struct bs_probe *probe;
	int fd;
	uint16_t port;
};

static struct scene
open_scene(enum mode mode, unsigned steps)
{
	struct scene scene = {.service = start_service(mode, 0)};

	scene.gb = open_at(scene.service.port, "auto");
	scene.probe = bs_probe_create(scene.gb->dataplane);
	bs_probe_find(scene.probe, GB_T0);
	scene.fd = connect_to(&scene.service, &scene.port);
	request(scene.gb, scene.fd, scene.port, scene.service.port);
	for (unsigned i = 0; i < steps; i++)
		hear(&scene.service);
	return scene;
}

static void
close_scene(struct scene *scene)
{
	bs_probe_destroy(scene->probe);
	gb_close(scene->gb);
	close(scene->fd);
	end_service(&scene->service);
}

static void
a_connection_that_is_not_accepted_is_told(void **state)
{
	struct scene scene = open_scene(LISTENS, 0);
	const struct bs_rec_probe *told = told_from(scene.gb, scene.probe, 2 * GB_MS, 0);

	(void)state;
	assert_int_equal(told->service, 1);
	assert_int_equal(told->state, BS_PROBE_ASLEEP);
	assert_int_equal(told->threads, 1);
	assert_int_equal(told->connections, 1);
	assert_int_equal(told->unaccepted, 1);
	assert_int_equal(told->unread, 1);
	assert_int_equal(told->unsent, 0);
	assert_int_equal(told->recv_q, REQUEST);
	assert_int_equal(told->send_q, 0);
	assert_int_equal(told->accept_q, 1);
	assert_int_equal(told->accept_max, BACKLOG);
	close_scene(&scene);
}

static void
a_request_that_is_not_read_is_told(void **state)
{
	struct scene scene = open_scene(ACCEPTS, 1);
	const struct bs_rec_probe *told = told_from(scene.gb, scene.probe, 2 * GB_MS, 0);

	(void)state;
	assert_int_equal(told->connections, 1);
	assert_int_equal(told->unaccepted, 0);
	assert_int_equal(told->unread, 1);
	assert_int_equal(told->recv_q, REQUEST);
	assert_int_equal(told->accept_q, 0);
	close_scene(&scene);
}

static void
a_request_that_was_read_is_not_unread(void **state)
{
	struct scene scene = open_scene(READS, 2);
	const struct bs_rec_probe *told = told_from(scene.gb, scene.probe, 2 * GB_MS, 0);

	(void)state;
	assert_int_equal(told->connections, 1);
	assert_int_equal(told->unread, 0);
	assert_int_equal(told->unsent, 0);
	assert_int_equal(told->recv_q, 0);
	close_scene(&scene);
}

static void
an_answer_that_stays_in_its_socket_is_told(void **state)
{
	struct scene scene = open_scene(ANSWERS, 3);
	const struct bs_rec_probe *told = told_from(scene.gb, scene.probe, 2 * GB_MS, 0);
	int there = 0;

	(void)state;
	assert_int_equal(ioctl(scene.fd, FIONREAD, &there), 0);
	assert_true(there > 0); /* and not taken */
	assert_int_equal(told->unsent, 1);
	assert_int_equal(told->unread, 0);
	assert_true(told->send_q > 0);
	close_scene(&scene);
}

/* Of two that wait, one connection is only the dataplane's: it cannot be looked at. */
static void
a_connection_that_the_kernel_does_not_know_leaves_all_open(void **state)
{
	struct scene scene = open_scene(ACCEPTS, 1);
	struct gb_flow flow = gb_flow(9, scene.service.port);
	const struct bs_rec_probe *told;
	struct frame frame;

	(void)state;
	flow.address[0] = flow.address[1] = LOOPBACK;
	gb_handshake(scene.gb, &flow);
	gb_message(&frame, &flow, GB_CLIENT, 8, REQUEST);
	gb_pass(scene.gb, GB_WIRE, &frame);
	told = told_from(scene.gb, scene.probe, 2 * GB_MS, 0);
	assert_int_equal(told->connections, 2);
	assert_int_equal(told->unread, 1);
	close_scene(&scene);
}

/* Nothing of the one is told as of the other. */
static void
another_that_listens_in_its_place_is_noticed_while_silent(void **state)
{
	struct scene scene = open_scene(LISTENS, 0);
	const uint16_t port = scene.service.port;

	(void)state;
	step_at(scene.gb, scene.probe, 2 * GB_MS);
	end_service(&scene.service);
	scene.service = start_service(LISTENS, port);
	step_at(scene.gb, scene.probe, 7 * GB_MS);
	assert_int_equal(how_probed(scene.gb, scene.probe, 1).how, BS_PROBE_LOOKING);
	for (unsigned i = 0; i <= 20; i++)
		step_at(scene.gb, scene.probe, (8 + i) * GB_MS);
	gb_collect(scene.gb, 1);
	assert_int_equal(gb_record_count(scene.gb, BS_REC_PROBE), 0);
	bs_probe_find(scene.probe, GB_T0 + 12 * GB_S);
	assert_int_equal(how_probed(scene.gb, scene.probe, 1).pid, scene.service.pid);
	close_scene(&scene);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		GB_TEST(a_service_is_found_by_its_socket_and_its_address),
		GB_TEST(a_search_step_by_step_finds_the_same),
		GB_TEST(a_service_over_udp_is_found_too),
		GB_TEST(a_service_that_was_restarted_is_found_again),
		GB_TEST(off_is_off),
		GB_TEST(a_connection_that_is_not_accepted_is_told),
		GB_TEST(a_request_that_is_not_read_is_told),
		GB_TEST(a_request_that_was_read_is_not_unread),
		GB_TEST(an_answer_that_stays_in_its_socket_is_told),
		GB_TEST(a_connection_that_the_kernel_does_not_know_leaves_all_open),
		GB_TEST(another_that_listens_in_its_place_is_noticed_while_silent),
	};

	return cmocka_run_group_tests_name(
		"graybox_probe_sockets", tests, gb_group_setup, gb_group_teardown);
}
