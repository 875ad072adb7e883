/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a configuration to a dataplane and on to the next one: what cannot be
 * built says why and leaves nothing behind; what a reload changes counts from
 * then on. And RPCs over UDP, which are not followed by connection.
 */
#include "gb_frames.h"
#include "gb_records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So many services. */
static const char *
services(unsigned count)
{
	static char text[65536];
	size_t at = 0;

	for (unsigned i = 0; i < count; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at,
			"%s{\"name\": \"s%u\", \"address\": \"10.0.0.2\", \"port\": %u}",
			i ? "," : "", i, 1000 + i);
	return text;
}

static void
assert_says(const char *error, const char *words)
{
	if (error == NULL)
		fail_msg("it can be built");
	else if (strstr(error, words) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", error, words);
}

static void
what_cannot_be_built_says_why_and_leaves_nothing(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_says(gb_open_error(&(struct gb_setup){.wire_device = "net_nosuch0"}),
			"ports.wire: device \"net_nosuch0\"");
		assert_says(gb_open_error(&(struct gb_setup){.memory = "1G"}), "eal.memory");
		/* 516 rings of half a megabyte do not fit */
		assert_says(gb_open_error(&(struct gb_setup){.services = services(128),
				    .more = ", \"app_queue\": {\"size\": 65536}"}),
			"eal.memory");
		assert_null(gb_open_error(&(struct gb_setup){.services = services(128)}));
	}
}

/* All that the configuration can list, each with queues from both lcores to both ports. */
static void
many_services_are_kept_apart(void **state)
{
	struct gb *gb =
		gb_open(&(struct gb_setup){.services = services(BS_MAX_SERVICES), .lcores = 2});
	struct frame frame;

	(void)state;
	for (uint16_t i = 0; i < BS_MAX_SERVICES; i++) {
		struct gb_flow flow = gb_flow((uint16_t)(40000 + i * 7), (uint16_t)(1000 + i));

		for (unsigned k = 0; k <= i; k++) {
			gb_ack(&frame, &flow, GB_CLIENT);
			gb_pass(gb, GB_WIRE, &frame);
			gb_turn(gb);
		}
		assert_int_equal(gb_drain(gb, GB_LOCAL), i + 1);
	}
	for (unsigned i = 0; i < BS_MAX_SERVICES; i++) {
		const struct bs_snapshot *snapshot = gb_snapshot(gb);
		char name[BS_NAME_BYTES];
		unsigned at;

		snprintf(name, sizeof(name), "s%u.app.in", i);
		at = gb_buffer(gb, name) - BS_BUFFER_FIRST_OWN;
		assert_int_equal(snapshot->buffers[at].packets, i + 1);
	}
	gb_close(gb);
}

/*
 * The last of 256 services waits behind another lcore's packets of its own service: that is
 * congestion, whoever put them there; and behind those of the first: contention.
 */
static void
queues_of_one_service_from_two_lcores_are_one_buffer(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){
		.services = services(BS_MAX_SERVICES), .lcores = 2, .room = {[GB_LOCAL] = 128}});
	const struct bs_dataplane *dataplane = gb->dataplane;
	const struct bs_queue *own, *other, *first;

	(void)state;
	own = dataplane->lcores[0]->queues[GB_LOCAL][BS_MAX_SERVICES - 1];
	other = dataplane->lcores[1]->queues[GB_LOCAL][BS_MAX_SERVICES - 1];
	first = dataplane->lcores[0]->queues[GB_LOCAL][0];
	assert_ptr_not_equal(own, other);
	assert_int_equal(own->served, other->served);
	assert_int_not_equal(own->served, first->served);
	assert_int_equal(own->buffer, other->buffer);
	assert_in_range(own->served, 1, BS_MAX_SERVICES + 1);
	gb_close(gb);
}

static void
a_reload_counts_from_then_on(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct bs_config *next = malloc(sizeof(*next));
	const uint16_t rx = gb_buffer(gb, "wire.rx");
	char error[BS_CONFIG_ERROR_BYTES];

	(void)state;
	assert_non_null(next);
	gb_connect(gb);
	gb_turn(gb);
	gb_time.now_ns += 20 * GB_MS;
	gb_turn(gb);
	gb_collect(gb, 1);
	assert_non_null(gb_episode(gb, BS_CAUSE_HANG, rx, 0));
	assert_int_equal(
		gb_configure(&(struct gb_setup){.more = ", \"detect\": {\"hang\": \"30ms\"},"
							" \"records\": {\"per_second\": 1}"},
			next, error),
		0);
	bs_dataplane_reload(gb->dataplane, next);
	free(next);
	gb_time.now_ns += 20 * GB_MS;
	gb_turn(gb);
	gb_collect(gb, 1);
	assert_null(gb_episode(gb, BS_CAUSE_HANG, rx, 1));
	/* both ports' rings hang, for one of which there is a record a second */
	gb_time.now_ns += 30 * GB_MS;
	gb_turn(gb);
	gb_collect(gb, 1);
	assert_non_null(gb_episode(gb, BS_CAUSE_HANG, rx, 1));
	assert_null(gb_episode(gb, BS_CAUSE_HANG, gb_buffer(gb, "local.rx"), 1));
	assert_int_equal(gb_record_count(gb, BS_REC_HELLO), 2);
	gb_close(gb);
}

/* A query for a.b, or its answer without a record, as UDP. */
static void
dns(struct frame *frame, unsigned id, bool answer)
{
	const uint32_t client = 0x0a000001, server = 0x0a000002;

	frame_ether(frame, 0x0800);
	frame_ipv4(frame, 17, answer ? server : client, answer ? client : server);
	frame_udp(frame, answer ? 53 : 40000, answer ? 40000 : 53, 21);
	frame_u16(frame, id);
	frame_u16(frame, answer ? 0x8180 : 0x0100);
	frame_put(frame, "\0\1\0\0\0\0\0\0\1a\1b\0\0\1\0\1", 17);
	frame_end_ip(frame);
	gb_checksums(frame);
}

static void
a_query_over_udp_is_followed_through_our_buffers(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){
		.services = "{\"name\": \"ns\", \"address\": \"10.0.0.2\", \"port\": 53,"
			    " \"protocol\": \"dns\"}",
		.room = {4, 4},
	});
	const uint16_t in = gb_buffer(gb, "ns.app.in"), out = gb_buffer(gb, "ns.app.out");
	struct bs_rpc_view rpc;
	struct frame frame;

	(void)state;
	gb_connect(gb);
	gb_arp(&frame);
	for (unsigned i = 0; i < 8; i++)
		gb_inject(gb, i % 2, &frame);
	gb_turn(gb);
	/* both ways are blocked: 300 us in, then 200 us of service, then 400 us out */
	dns(&frame, 77, false);
	gb_pass(gb, GB_WIRE, &frame);
	gb_run(gb, GB_T0 + 250 * GB_US, 50 * GB_US);
	gb_drain(gb, GB_LOCAL);
	gb_run(gb, GB_T0 + 500 * GB_US, 50 * GB_US);
	dns(&frame, 77, true);
	gb_pass(gb, GB_LOCAL, &frame);
	gb_run(gb, GB_T0 + 850 * GB_US, 50 * GB_US);
	gb_drain(gb, GB_WIRE);
	gb_run(gb, GB_T0 + 900 * GB_US, 50 * GB_US);
	gb_collect(gb, 1);
	rpc = gb_rpc(gb, 0);
	assert_int_equal(rpc.rpc->outcome, BS_OUTCOME_ANSWERED);
	assert_int_equal(rpc.rpc->ends.transport, 17);
	gb_assert_parts(&rpc, {300 * GB_US, in, BS_CAUSE_PAUSE, 0},
		{200 * GB_US, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0},
		{400 * GB_US, out, BS_CAUSE_PAUSE, 0});
	assert_non_null(gb_event(&rpc, BS_CAUSE_PAUSE, in));
	assert_non_null(gb_event(&rpc, BS_CAUSE_PAUSE, out));
	gb_close(gb);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		GB_TEST(what_cannot_be_built_says_why_and_leaves_nothing),
		GB_TEST(many_services_are_kept_apart),
		GB_TEST(queues_of_one_service_from_two_lcores_are_one_buffer),
		GB_TEST(a_reload_counts_from_then_on),
		GB_TEST(a_query_over_udp_is_followed_through_our_buffers),
	};

	return cmocka_run_group_tests_name(
		"graybox_build", tests, gb_group_setup, gb_group_teardown);
}
