/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Floods of a million, beside connections in use: SYNs that nobody means,
 * connections that come, ask once and stay, requests that nobody answers. The
 * connections in use keep their RPCs, all that goes is counted by why, and memory
 * stays what it was.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tracker_util.h"

#define FLOOD 1000000u
#define LIVE 20u	  /* connections in use */
#define EVERY 1000u	  /* packets of the flood between two of their RPCs */
#define STEP_NS (10 * US) /* between two packets of the flood */
#define LIVE_RPCS (FLOOD / EVERY)

/* What was told: of the live connections (by the label), and of others by outcome. */
static struct tally {
	unsigned live, wrong, others[BS_OUTCOME_COUNT];
} tally;

static int
tally_put(void *context, const void *units, unsigned count)
{
	const struct bs_rec_rpc *rpc = units;
	const uint64_t expected = 2 * US;
	uint64_t latency = 0;

	(void)context;
	(void)count;
	if (rpc->head.type != BS_REC_RPC)
		return 0;
	if (rpc->label_len != 6 || memcmp(rpc->label, "GET /a", 6) != 0) {
		tally.others[rpc->outcome]++;
		return 0;
	}
	tally.live++;
	tally.wrong += rpc->outcome != BS_OUTCOME_ANSWERED || !bs_rpc_latency_ns(rpc, &latency) ||
		       latency != expected;
	return 0;
}

struct flood {
	struct rig *rig;
	uint64_t t;		/* of the next packet, after T0 */
	uint32_t streams[LIVE]; /* RPCs that each live connection has had */
};

static struct flood
flood_begin(unsigned max_flows, unsigned max_rpcs)
{
	struct flood flood = {.rig = rig_new("http1", 80)};
	struct rig *rig = flood.rig;

	memset(&tally, 0, sizeof(tally));
	rig->config.max_flows = max_flows;
	rig->config.max_rpcs = max_rpcs;
	rig->config.check = false;
	rig->config.sink.put = tally_put;
	rig_start(rig);
	for (unsigned i = 0; i < LIVE; i++) {
		rig->client_address = 0x0a000100 + i;
		rig_handshake(rig, flood.t);
		flood.t += 10 * MS;
	}
	return flood;
}

/* One of the live connections has an RPC, of 2 us. */
static void
live_rpc(struct flood *flood, unsigned number)
{
	struct rig *rig = flood->rig;
	const uint32_t done = flood->streams[number % LIVE]++;
	const uint64_t t = flood->t;

	rig->client_address = 0x0a000100 + number % LIVE;
	rig->client_port = 40000;
	SEND(rig, .t = t, .seq = done * GET, .ack = done * OK, .text = GET_A);
	SEND(rig, .from = SERVER, .t = t + 2 * US, .seq = done * OK, .ack = (done + 1) * GET,
		.text = OK_5);
	SEND(rig, .t = t + 3 * US, .seq = (done + 1) * GET, .ack = (done + 1) * OK);
	flood->t += 4 * US;
}

/* The flood's n-th client. */
static void
stranger(struct rig *rig, unsigned n)
{
	rig->client_address = 0x0b000000 + n / 50000;
	rig->client_port = (uint16_t)(1024 + n % 50000);
}

static void
flood_end(struct flood *flood, size_t bytes_before)
{
	struct rig *rig = flood->rig;
	const uint64_t *counters = bs_tracker_counters(rig->tracker);

	/* but for the bytes of the last packet, which the rig keeps */
	assert_true(rig_heap_bytes() < bytes_before + 4096);
	assert_int_equal(counters[BS_TRACK_FLOWS_CREATED],
		counters[BS_TRACK_FLOWS_EXPIRED] + counters[BS_TRACK_FLOWS_EVICTED] +
			counters[BS_TRACK_FLOWS_EVICTED_OPEN] + bs_tracker_flows(rig->tracker));
	bs_tracker_finish(rig->tracker, T0 + flood->t);
	assert_int_equal(tally.live, LIVE_RPCS);
	assert_int_equal(tally.wrong, 0);
	assert_int_equal(rig_counter(rig, BS_TRACK_ORPHANS), 0);
	rig_free(rig);
}

static void
a_million_syns_leave_connections_in_use(void **state)
{
	struct flood flood = flood_begin(8192, 1024);
	struct rig *rig = flood.rig;
	const size_t bytes = rig_heap_bytes();

	(void)state;
	for (unsigned n = 0; n < FLOOD; n++, flood.t += STEP_NS) {
		stranger(rig, n);
		SEND(rig, .t = flood.t, .seq = -1u, .flags = BS_TCP_SYN);
		if (n % EVERY == EVERY - 1)
			live_rpc(&flood, n / EVERY);
		if (n % 100 == 0)
			bs_tracker_advance(rig->tracker, T0 + flood.t);
	}
	assert_int_equal(rig_counter(rig, BS_TRACK_FLOWS_CREATED), FLOOD + LIVE);
	assert_int_equal(rig_counter(rig, BS_TRACK_FLOWS_EVICTED_OPEN), 0);
	assert_int_equal(rig_counter(rig, BS_TRACK_FLOWS_REFUSED), 0);
	assert_int_equal(rig_counter(rig, BS_TRACK_RPCS), LIVE_RPCS);
	flood_end(&flood, bytes);
}

/* Each is a whole handshake, a request and its answer; then it idles. */
static void
a_million_connections_push_out_the_idlest(void **state)
{
	struct flood flood = flood_begin(8192, 1024);
	struct rig *rig = flood.rig;
	const size_t bytes = rig_heap_bytes();
	const unsigned connections = FLOOD / 5; /* of five packets */

	(void)state;
	for (unsigned n = 0; n < connections; n++, flood.t += STEP_NS) {
		stranger(rig, n);
		SEND(rig, .t = flood.t, .seq = -1u, .flags = BS_TCP_SYN);
		SEND(rig, .from = SERVER, .t = flood.t, .seq = -1u,
			.flags = BS_TCP_SYN | BS_TCP_ACK);
		SEND(rig, .t = flood.t, .text = GET_B);
		SEND(rig, .from = SERVER, .t = flood.t, .ack = GET, .text = OK_5);
		SEND(rig, .t = flood.t, .seq = GET, .ack = OK);
		if (n % (EVERY / 5) == EVERY / 5 - 1)
			live_rpc(&flood, n / (EVERY / 5));
	}
	assert_int_equal(tally.others[BS_OUTCOME_ANSWERED], connections);
	assert_int_equal(rig_counter(rig, BS_TRACK_FLOWS_CREATED), connections + LIVE);
	assert_int_equal(rig_counter(rig, BS_TRACK_FLOWS_EVICTED_OPEN), 0);
	assert_int_equal(rig_counter(rig, BS_TRACK_FLOWS_REFUSED), 0);
	assert_true(rig_counter(rig, BS_TRACK_FLOWS_EVICTED) > connections - 8192 - 1);
	flood_end(&flood, bytes);
}

/* Of 4000 connections, over and over; the service answers none of them. */
static void
a_million_requests_never_answered_make_room_in_their_turn(void **state)
{
	struct flood flood = flood_begin(8192, 1024);
	struct rig *rig = flood.rig;
	const unsigned clients = 4000;
	const size_t bytes = rig_heap_bytes();
	uint64_t followed;

	(void)state;
	for (unsigned n = 0; n < FLOOD; n++, flood.t += STEP_NS) {
		stranger(rig, n % clients);
		SEND(rig, .t = flood.t, .seq = n / clients * GET, .text = GET_B);
		/* now what has filled the table is old enough to go */
		if (n % EVERY == EVERY - 1) {
			flood.t += 1100 * MS;
			live_rpc(&flood, n / EVERY);
		}
	}
	followed = rig_counter(rig, BS_TRACK_RPCS) - LIVE_RPCS;
	assert_int_equal(followed + rig_counter(rig, BS_TRACK_RPCS_REFUSED), FLOOD);
	assert_true(rig_counter(rig, BS_TRACK_RPCS_EVICTED) > 0);
	flood_end(&flood, bytes);
	assert_int_equal(tally.others[BS_OUTCOME_ANSWERED], 0);
	assert_int_equal(tally.others[BS_OUTCOME_IN_PROGRESS] + tally.others[BS_OUTCOME_UNANSWERED],
		followed);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_million_syns_leave_connections_in_use),
		cmocka_unit_test(a_million_connections_push_out_the_idlest),
		cmocka_unit_test(a_million_requests_never_answered_make_room_in_their_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
