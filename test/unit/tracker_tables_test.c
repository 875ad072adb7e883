/* SPDX-License-Identifier: BSD-3-Clause */
/* The tracker's tables under load: expiry, eviction, nothing but counters when they are full. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tracker_util.h"

static void
idle_flow_is_forgotten_and_a_busy_one_kept(void **state)
{
	struct rig *rig = rig_http();

	(void)state;
	rig_handshake(rig, 0);
	SEND(rig, .t = 10 * MS, .text = GET_A);
	rig->client_port++;
	rig_handshake(rig, 0);
	for (unsigned s = 1; s <= 59; s++) {
		SEND(rig, .t = s * SEC, .seq = s, .bytes = 1);
		for (unsigned i = 0; i < 4; i++)
			bs_tracker_advance(rig->tracker, T0 + s * SEC);
	}
	assert_int_equal(bs_tracker_flows(rig->tracker), 2);
	for (unsigned i = 0; i < 10; i++)
		bs_tracker_advance(rig->tracker, T0 + 62 * SEC);
	assert_int_equal(bs_tracker_flows(rig->tracker), 1);
	assert_int_equal(rig_counter(rig, BS_TRACK_FLOWS_EXPIRED), 1);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(rig->told[0].rpc.outcome, BS_OUTCOME_UNANSWERED);
	assert_true(bs_rpc_extent_ns(&rig->told[0].rpc) >= 60 * SEC);
	rig_free(rig);
}

static void
closed_and_half_open_flows_are_forgotten_soon(void **state)
{
	struct rig *rig = rig_http();

	(void)state;
	for (unsigned i = 0; i < 20; i++, rig->client_port++) {
		rig_handshake(rig, 0);
		SEND(rig, .t = 10 * MS, .flags = BS_TCP_FIN | BS_TCP_ACK);
		SEND(rig, .from = SERVER, .t = 11 * MS, .ack = 1, .flags = BS_TCP_FIN | BS_TCP_ACK);
	}
	for (unsigned i = 0; i < 20; i++, rig->client_port++)
		SEND(rig, .t = 12 * MS, .seq = -1u, .flags = BS_TCP_SYN);
	assert_int_equal(bs_tracker_flows(rig->tracker), 40);
	for (unsigned i = 0; i < 10; i++)
		bs_tracker_advance(rig->tracker, T0 + 2 * SEC);
	assert_int_equal(bs_tracker_flows(rig->tracker), 20);
	for (unsigned i = 0; i < 10; i++)
		bs_tracker_advance(rig->tracker, T0 + 12 * SEC);
	assert_int_equal(bs_tracker_flows(rig->tracker), 0);
	rig_free(rig);
}

/* A flood of SYNs pushes itself out, not the connections that are in use. */
static void
flood_of_syns_leaves_the_connections_in_use(void **state)
{
	struct rig *rig = rig_http();

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		rig->client_port = (uint16_t)(40000 + i);
		rig_handshake(rig, 0);
		SEND(rig, .t = 10 * MS, .text = GET_A);
	}
	for (unsigned i = 0; i < 5000; i++) {
		rig->client_address = 0x0b000000 + i;
		SEND(rig, .t = 20 * MS + i * MS, .seq = -1u, .flags = BS_TCP_SYN);
		assert_int_equal(rig->tracked.followed, 1);
	}
	assert_int_equal(bs_tracker_flows(rig->tracker), 64);
	assert_int_equal(rig_counter(rig, BS_TRACK_FLOWS_EVICTED), 5020 - 64);
	rig->client_address = 0x0a000001;
	for (unsigned i = 0; i < 20; i++) {
		rig->client_port = (uint16_t)(40000 + i);
		SEND(rig, .from = SERVER, .t = 10 * SEC, .ack = GET, .text = OK_5);
		SEND(rig, .t = 10 * SEC + MS, .seq = GET, .ack = OK);
	}
	assert_int_equal(rig->told_count, 20);
	rig_free(rig);
}

static void
table_full_of_busy_flows_refuses_and_counts(void **state)
{
	struct rig *rig = rig_http();

	(void)state;
	for (unsigned i = 0; i < 64; i++, rig->client_port++) {
		rig_handshake(rig, 0);
		SEND(rig, .t = 10 * MS, .text = GET_A);
	}
	SEND(rig, .t = 20 * MS, .text = GET_A);
	assert_int_equal(rig->tracked.followed, 0);
	assert_int_equal(rig->tracked.service, BS_SERVICE_OTHER);
	assert_null(rig->tracked.tagging);
	assert_int_equal(rig_counter(rig, BS_TRACK_FLOWS_REFUSED), 1);
	rig->client_port = 40000;
	assert_int_equal(SEND(rig, .t = 21 * MS, .seq = GET, .text = GET_B).followed, 1);
	rig_free(rig);
}

/* Requests for which there was no slot are answered, too: their answers must not be the next one's.
 */
static void
refused_requests_do_not_shift_the_answers(void **state)
{
	struct rig *rig = rig_new("http1", 80);

	(void)state;
	rig->config.max_rpcs = 64;
	rig_start(rig);
	rig_handshake(rig, 0);
	for (unsigned i = 0; i < 50; i++) /* more than half of all slots */
		SEND(rig, .t = (10 + i) * MS, .seq = i * GET, .text = GET_A);
	assert_int_equal(rig_counter(rig, BS_TRACK_RPCS_REFUSED), 18);
	for (unsigned i = 0; i < 32; i++)
		SEND(rig, .from = SERVER, .t = (100 + i) * MS, .seq = i * OK, .ack = 50 * GET,
			.text = OK_5);
	SEND(rig, .t = 200 * MS, .seq = 50 * GET, .ack = 32 * OK, .text = GET_B);
	for (unsigned i = 32; i < 51; i++)
		SEND(rig, .from = SERVER, .t = (300 + i) * MS, .seq = i * OK, .ack = 51 * GET,
			.text = OK_5);
	SEND(rig, .t = 400 * MS, .seq = 51 * GET, .ack = 51 * OK);
	assert_int_equal(rig->told_count, 33);
	for (unsigned i = 0; i < 32; i++)
		assert_int_equal(told_latency(&rig->told[i]), 90 * MS);
	assert_label(&rig->told[32], "GET /b");
	assert_int_equal(told_latency(&rig->told[32]), 150 * MS);
	assert_int_equal(rig_counter(rig, BS_TRACK_ORPHANS), 0);
	rig_free(rig);
}

static void
traffic_of_no_given_service_is_not_followed(void **state)
{
	struct rig *rig = rig_http();

	(void)state;
	rig->client_address = 0x0a000002; /* from the service to a port of its own */
	rig->client_port = 80;
	rig->service.port = 9999;
	SEND(rig, .t = MS, .seq = -1u, .flags = BS_TCP_SYN);
	assert_int_equal(rig->tracked.followed, 1);
	assert_int_equal(rig->tracked.direction, 1);
	rig->client_port = 82;
	SEND(rig, .t = MS, .seq = -1u, .flags = BS_TCP_SYN);
	assert_int_equal(rig->tracked.followed, 0);
	rig_free(rig);
}

static void
each_of_many_given_services_is_found(void **state)
{
	static struct bs_tracker_service services[BS_MAX_SERVICES];
	struct rig *rig = rig_new("http1", 80);

	(void)state;
	for (unsigned i = 0; i < BS_MAX_SERVICES; i++) {
		services[i] = rig->service;
		services[i].port = (uint16_t)(1000 + i / 2);
		services[i].address[15] = (uint8_t)(2 + i % 2);
	}
	services[100] = services[4]; /* given twice: the first counts */
	rig->config.services = services;
	rig->config.service_count = BS_MAX_SERVICES;
	rig_start(rig);
	for (unsigned i = 0; i < BS_MAX_SERVICES; i += 2) {
		rig->service.port = (uint16_t)(1000 + i / 2);
		SEND(rig, .t = MS, .seq = -1u, .flags = BS_TCP_SYN);
		if (i == 100)
			assert_int_equal(rig->tracked.followed, 0);
		else
			assert_int_equal(rig->tracked.service, i);
		if (i != 4)
			continue;
		rig->service.port = 2000;
		SEND(rig, .t = MS, .seq = -1u, .flags = BS_TCP_SYN);
		assert_int_equal(rig->tracked.followed, 0);
	}
	rig_free(rig);
}

static void
discovered_services_are_named_once_and_roles_follow_the_handshake(void **state)
{
	struct rig *rig = rig_new(NULL, 9999);

	(void)state;
	rig->config.discover = true;
	rig->config.service_count = 0;
	rig_start(rig);
	/* joined: the lower port is taken for the server's, and said to be guessed */
	rig->client_port = 7000;
	SEND(rig, .from = SERVER, .t = MS, .seq = 5);
	assert_int_equal(rig->name_count, 1);
	assert_string_equal(rig->names[0].name, "10.0.0.1:7000");
	SEND(rig, .t = 2 * MS, .flags = BS_TCP_RST, .seq = 0);
	rig_handshake(rig, 10 * MS);
	assert_int_equal(rig->name_count, 2);
	assert_string_equal(rig->names[1].name, "10.0.0.2:9999");
	assert_int_equal(rig->names[1].kind, BS_NAME_SERVICE);
	assert_int_equal(rig->names[1].number, 1);
	assert_int_equal(rig->names[1].port, 9999);
	SEND(rig, .t = 20 * MS, .text = GET_A);
	assert_int_equal(rig->tracked.service, 1);
	assert_int_equal(rig->tracked.direction, 0);
	SEND(rig, .from = SERVER, .t = 22 * MS, .ack = GET, .text = OK_5);
	SEND(rig, .t = 23 * MS, .seq = GET, .ack = OK);
	rig->client_port = 7001;
	rig_handshake(rig, 30 * MS);
	assert_int_equal(rig->name_count, 2);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(rig->told[0].rpc.flags & BS_RPC_ROLE_GUESSED, 0);
	assert_true(rig->told[0].rpc.flags & BS_RPC_PROTOCOL_GUESSED);
	assert_int_equal(rig->told[0].rpc.service, 1);
	rig_free(rig);
}

/* Where no port says who serves: what is said, then what is known, then who speaks first. */
static void
roles_without_a_handshake_follow_the_content(void **state)
{
	const char query[] = "\0\7\1\0\0\1\0\0\0\0\0\0\3abc\0\0\1\0\1";
	const char answer[] = "\0\7\x81\x80\0\1\0\0\0\0\0\0\3abc\0\0\1\0\1";
	struct rig *rig = rig_new(NULL, 53000);

	(void)state;
	rig->config.discover = true;
	rig->config.service_count = 0;
	rig_start(rig);
	rig->client_port = 40000;
	rig_datagram(rig, SERVER, MS, answer, sizeof(answer) - 1);
	assert_int_equal(rig->tracked.direction, 1);
	rig->client_port = 41000;
	rig_datagram(rig, CLIENT, MS, query, sizeof(query) - 1);
	assert_int_equal(rig->tracked.direction, 0);
	rig->client_port = 42000;
	rig_datagram(rig, SERVER, MS, "?", 1); /* known by now */
	assert_int_equal(rig->tracked.direction, 1);
	rig->service.port = 53001;
	rig_datagram(rig, CLIENT, MS, "?", 1); /* speaks first */
	assert_int_equal(rig->tracked.direction, 0);
	rig->service.port = 45000;
	SEND(rig, .from = SERVER, .t = 2 * MS, .ack = GET, .text = OK_5);
	assert_int_equal(rig->tracked.direction, 1);
	SEND(rig, .t = 3 * MS, .seq = GET, .ack = OK, .text = GET_A);
	assert_int_equal(rig->tracked.direction, 0);
	assert_int_equal(rig->name_count, 3);
	rig_free(rig);
}

static void
full_sink_costs_records_and_is_counted(void **state)
{
	struct rig *rig = rig_http();

	(void)state;
	rig->full = true;
	rig_handshake(rig, 0);
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = OK_5);
	SEND(rig, .t = 13 * MS, .seq = GET, .ack = OK);
	assert_int_equal(rig_counter(rig, BS_TRACK_RECORDS_LOST), 1);
	assert_int_equal(rig_counter(rig, BS_TRACK_RECORDS), 0);
	assert_int_equal(bs_tracker_open_rpcs(rig->tracker), 0);
	rig->full = false;
	SEND(rig, .t = 20 * MS, .seq = GET, .ack = OK, .text = GET_B);
	SEND(rig, .from = SERVER, .t = 22 * MS, .seq = OK, .ack = 2 * GET, .text = OK_5);
	SEND(rig, .t = 23 * MS, .seq = 2 * GET, .ack = 2 * OK);
	assert_int_equal(rig->told_count, 1);
	rig_free(rig);
}

/* In section 4: 1387 bytes a flow and 256 for its framer, 964 an RPC. */
static void
tables_take_what_the_guide_says(void **state)
{
	(void)state;
	assert_int_equal(
		bs_tracker_bytes(131072, 1024, 0) - bs_tracker_bytes(65536, 1024, 0), 65536 * 1387);
	assert_int_equal(
		bs_tracker_bytes(1024, 2048, 0) - bs_tracker_bytes(1024, 1024, 0), 1024 * 964);
	assert_int_equal(
		bs_tracker_bytes(1024, 1024, 4096) - bs_tracker_bytes(1024, 1024, 0), 4096);
}

static void
create_refuses_what_makes_no_sense(void **state)
{
	struct rig *rig = rig_new("http1", 80);
	struct bs_tracker_config good = rig->config, bad;

	(void)state;
	rig_start(rig);
	bad = good;
	bad.framers = NULL;
	assert_null(bs_tracker_create(&bad));
	bad = good;
	bad.sink.put = NULL;
	assert_null(bs_tracker_create(&bad));
	bad = good;
	bad.service_count = BS_MAX_SERVICES + 1;
	assert_null(bs_tracker_create(&bad));
	bad = good;
	bad.idle_ns = 0;
	assert_null(bs_tracker_create(&bad));
	bs_tracker_destroy(NULL);
	for (unsigned i = 0; i < BS_TRACK_COUNT; i++)
		assert_string_not_equal(bs_track_counter_key(i), "?");
	assert_string_equal(bs_track_counter_key(BS_TRACK_COUNT), "?");
	rig_free(rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(idle_flow_is_forgotten_and_a_busy_one_kept),
		cmocka_unit_test(closed_and_half_open_flows_are_forgotten_soon),
		cmocka_unit_test(flood_of_syns_leaves_the_connections_in_use),
		cmocka_unit_test(table_full_of_busy_flows_refuses_and_counts),
		cmocka_unit_test(refused_requests_do_not_shift_the_answers),
		cmocka_unit_test(traffic_of_no_given_service_is_not_followed),
		cmocka_unit_test(each_of_many_given_services_is_found),
		cmocka_unit_test(discovered_services_are_named_once_and_roles_follow_the_handshake),
		cmocka_unit_test(roles_without_a_handshake_follow_the_content),
		cmocka_unit_test(full_sink_costs_records_and_is_counted),
		cmocka_unit_test(tables_take_what_the_guide_says),
		cmocka_unit_test(create_refuses_what_makes_no_sense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
