/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hundred connections with RPCs open while a flood goes by, more than are looked
 * at to make room for one: none goes, none is shifted, who goes is counted by why. And
 * as many connections as a table of a million holds.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tracker_util.h"

#define LIVE_FLOWS 100u
#define LIVE_ADDRESS 0x0a000001u
#define FLOOD_ADDRESS 0x0b000000u

#ifdef __SANITIZE_ADDRESS__
#define MILLION 65536u /* slow: less will do */
#else
#define MILLION 1048576u
#endif
#define ROUNDS 20u /* half of them with requests, half with answers */

/* A service with its live connections, and a sink that looks at each RPC and forgets it. */
struct crowd {
	struct rig *rig;
	unsigned rounds;     /* RPCs of each live connection so far */
	uint64_t latency_ns; /* that all live ones have */
	unsigned answered;   /* live RPCs told so */
	unsigned put_out;    /* of others */
	uint64_t oldest_ns;  /* that those may be */
};

static int
look(void *context, const void *units, unsigned count)
{
	static const uint8_t live[4] = {10, 0, 0, 1};
	struct crowd *crowd = context;
	const struct bs_rec_rpc *rpc;

	assert_int_equal(rig_put(crowd->rig, units, count), 0);
	if (crowd->rig->told_count == 0)
		return 0; /* the service is silent */
	rpc = &crowd->rig->told[0].rpc;
	if (memcmp(rpc->ends.client + 12, live, sizeof(live)) == 0) {
		assert_int_equal(rpc->outcome, BS_OUTCOME_ANSWERED);
		assert_int_equal(told_latency(&crowd->rig->told[0]), crowd->latency_ns);
		assert_label(&crowd->rig->told[0], crowd->rounds % 2 ? "GET /b" : "GET /a");
		crowd->answered++;
	} else {
		assert_int_equal(rpc->outcome, BS_OUTCOME_IN_PROGRESS);
		assert_true(rpc->t_end - rpc->t_request_first >= SEC);
		assert_true(rpc->t_end - rpc->t_request_first <= crowd->oldest_ns);
		crowd->put_out++;
	}
	crowd->rig->told_count = 0;
	return 0;
}

static void
crowd_start(struct crowd *crowd, unsigned flows, unsigned rpcs)
{
	struct rig *rig = crowd->rig = rig_new("http1", 80);

	rig->config.max_flows = flows;
	rig->config.max_rpcs = rpcs;
	rig->config.sink.put = look;
	rig->config.sink.context = crowd;
	rig_start(rig);
	for (unsigned i = 0; i < LIVE_FLOWS; i++) {
		rig->client_port = (uint16_t)(1000 + i);
		rig_handshake(rig, 0);
	}
}

/* Each live connection's next request (by SERVER: its answer, and the ACK of that) at t. */
static void
live_say(struct crowd *crowd, unsigned from, uint64_t t)
{
	struct rig *rig = crowd->rig;
	const uint32_t asked = crowd->rounds * GET, answered = crowd->rounds * OK;

	rig->client_address = LIVE_ADDRESS;
	for (unsigned i = 0; i < LIVE_FLOWS; i++) {
		rig->client_port = (uint16_t)(1000 + i);
		if (from == CLIENT) {
			SEND(rig, .t = t, .seq = asked, .ack = answered,
				.text = crowd->rounds % 2 ? GET_B : GET_A);
		} else {
			SEND(rig, .from = SERVER, .t = t, .seq = answered, .ack = asked + GET,
				.text = OK_5);
			SEND(rig, .t = t, .seq = asked + GET, .ack = answered + OK);
		}
		assert_int_equal(rig->tracked.followed, 1);
	}
	if (from == SERVER)
		crowd->rounds++;
}

static void
flood_from(struct rig *rig, unsigned number)
{
	rig->client_address = FLOOD_ADDRESS + number;
	rig->client_port = (uint16_t)(1024 + number % 60000);
}

/*
 * SYNs in five seconds, each from another end, while every live connection
 * has a request open half of the time.
 */
static void
flood_of_syns(unsigned round, bool answered)
{
	enum { TABLE = 32768 };
	const unsigned flows = ROUNDS * round;
	const uint64_t step_ns = 5 * SEC / flows;
	struct crowd crowd = {.latency_ns = round * step_ns};
	size_t bytes = 0;
	struct rig *rig;

	crowd_start(&crowd, TABLE, 16384);
	rig = crowd.rig;
	for (unsigned i = 0; i < flows; i++) {
		const uint64_t t = 10 * MS + i * step_ns;

		if (i % round == 0)
			live_say(&crowd, i / round % 2 ? SERVER : CLIENT, t);
		flood_from(rig, i);
		SEND(rig, .t = t, .seq = -1u, .flags = BS_TCP_SYN);
		assert_int_equal(rig->tracked.followed, 1);
		if (answered)
			SEND(rig, .from = SERVER, .t = t, .seq = -1u,
				.flags = BS_TCP_SYN | BS_TCP_ACK);
		if (i % 32 == 0)
			bs_tracker_advance(rig->tracker, T0 + t);
		if (i == 2 * round)
			bytes = rig_heap_bytes();
	}
	assert_int_equal(rig_heap_bytes(), bytes);
	assert_int_equal(crowd.answered, 10 * LIVE_FLOWS);
	assert_int_equal(crowd.put_out, 0);
	assert_int_equal(rig_counter(rig, BS_TRACK_FLOWS_CREATED), LIVE_FLOWS + flows);
	assert_int_equal(rig_counter(rig, BS_TRACK_FLOWS_EVICTED), LIVE_FLOWS + flows - TABLE);
	assert_int_equal(rig_counter(rig, BS_TRACK_FLOWS_EVICTED_OPEN), 0);
	assert_int_equal(rig_counter(rig, BS_TRACK_FLOWS_EXPIRED), 0);
	assert_int_equal(rig_counter(rig, BS_TRACK_FLOWS_REFUSED), 0);
	assert_int_equal(bs_tracker_flows(rig->tracker), TABLE);
	assert_int_equal(rig_counter(rig, BS_TRACK_ORPHANS), 0);
	assert_int_equal(rig_counter(rig, BS_TRACK_RPCS), 10 * LIVE_FLOWS);
	rig_free(rig);
}

static void
syns_leave_live_rpcs_as_they_are(void **state)
{
	(void)state;
	flood_of_syns(10000, false);
}

static void
syns_answered_to_nobody_leave_live_rpcs_as_they_are(void **state)
{
	(void)state;
	flood_of_syns(10000, true);
}

/*
 * Ten thousand requests a second that nobody answers, six times as many as there are
 * slots. Each goes before it is as old as all slots are requests; what live
 * connections wait for stays.
 */
static void
requests_never_answered_put_out_the_oldest(void **state)
{
	enum { SLOTS = 16384, REQUESTS = 100000, ROUND = REQUESTS / ROUNDS };
	struct crowd crowd = {.latency_ns = 500 * MS, .oldest_ns = (SLOTS + LIVE_FLOWS) * 100 * US};
	size_t bytes = 0;
	struct rig *rig;

	(void)state;
	crowd_start(&crowd, 131072, SLOTS);
	rig = crowd.rig;
	for (unsigned i = 0; i < REQUESTS; i++) {
		const uint64_t t = 10 * MS + i * 100 * US;

		if (i % ROUND == 0)
			live_say(&crowd, i / ROUND % 2 ? SERVER : CLIENT, t);
		flood_from(rig, i);
		SEND(rig, .t = t, .text = GET_C);
		if (i % 32 == 0)
			bs_tracker_advance(rig->tracker, T0 + t);
		if (i == 2 * ROUND)
			bytes = rig_heap_bytes();
	}
	assert_int_equal(rig_heap_bytes(), bytes);
	assert_int_equal(crowd.answered, 10 * LIVE_FLOWS);
	assert_int_equal(crowd.put_out, REQUESTS - SLOTS);
	assert_int_equal(rig_counter(rig, BS_TRACK_RPCS), REQUESTS + 10 * LIVE_FLOWS);
	assert_int_equal(rig_counter(rig, BS_TRACK_RPCS_EVICTED), REQUESTS - SLOTS);
	assert_int_equal(rig_counter(rig, BS_TRACK_RPCS_REFUSED), 0);
	assert_int_equal(bs_tracker_open_rpcs(rig->tracker), SLOTS);
	assert_int_equal(rig_counter(rig, BS_TRACK_FLOWS_EVICTED), 0);
	assert_int_equal(rig_counter(rig, BS_TRACK_ORPHANS), 0);
	rig_free(rig);
}

/* All of them are kept; each goes on with an RPC; the memory is what was said. */
static void
million_connections_fit_a_table_of_a_million(void **state)
{
	struct rig *rig = rig_new("http1", 80);
	size_t bytes, said;

	(void)state;
	rig->config.max_flows = MILLION;
	rig->config.max_rpcs = 1024;
	said = bs_tracker_bytes(MILLION, 1024, rig->config.frame_bytes);
	bytes = rig_heap_bytes();
	rig_start(rig);
	if (bytes != 0) {
		assert_true(rig_heap_bytes() - bytes >= said);
		assert_true(rig_heap_bytes() - bytes - said < said / 100);
	}
	for (unsigned i = 0; i < MILLION; i++) {
		flood_from(rig, i);
		SEND(rig, .t = i * US, .text = GET_A);
		SEND(rig, .from = SERVER, .t = i * US + US, .ack = GET, .text = OK_5);
		SEND(rig, .t = i * US + 2 * US, .seq = GET, .ack = OK);
		assert_int_equal(rig->told_count, 1);
		rig->told_count = 0;
	}
	for (unsigned i = 0; i < MILLION; i += 7) {
		flood_from(rig, i);
		SEND(rig, .t = 2 * SEC, .seq = GET, .ack = OK, .text = GET_B);
		SEND(rig, .from = SERVER, .t = 2 * SEC + 3 * MS, .seq = OK, .ack = 2 * GET,
			.text = OK_5);
		SEND(rig, .t = 2 * SEC + 4 * MS, .seq = 2 * GET, .ack = 2 * OK);
		assert_int_equal(rig->told_count, 1);
		assert_int_equal(told_latency(&rig->told[0]), 3 * MS);
		rig->told_count = 0;
	}
	assert_int_equal(bs_tracker_flows(rig->tracker), MILLION);
	assert_int_equal(rig_counter(rig, BS_TRACK_FLOWS_CREATED), MILLION);
	assert_int_equal(rig_counter(rig, BS_TRACK_FLOWS_EVICTED), 0);
	assert_int_equal(rig_counter(rig, BS_TRACK_FLOWS_REFUSED), 0);
	/* the next connection takes the place of the one that is idle for longest: the second */
	flood_from(rig, MILLION);
	SEND(rig, .t = 3 * SEC, .seq = -1u, .flags = BS_TCP_SYN);
	assert_int_equal(rig->tracked.followed, 1);
	assert_int_equal(rig_counter(rig, BS_TRACK_FLOWS_EVICTED), 1);
	rig_free(rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(syns_leave_live_rpcs_as_they_are),
		cmocka_unit_test(syns_answered_to_nobody_leave_live_rpcs_as_they_are),
		cmocka_unit_test(requests_never_answered_put_out_the_oldest),
		cmocka_unit_test(million_connections_fit_a_table_of_a_million),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
