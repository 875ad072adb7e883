/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets, stays, departures and drops at random, most of them impossible: every
 * record is valid and every path a tiling (the rig checks each), and afterwards
 * nothing of the tables is missing.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tracker_util.h"

#define PACKETS 20000u
#define ROUNDS 8u
#define HANDLES 16u

static uint64_t
next_random(uint64_t *state)
{
	*state ^= *state << 13; /* Marsaglia's xorshift64 */
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static unsigned
below(uint64_t *state, unsigned n)
{
	return (unsigned)(next_random(state) >> 20) % n;
}

/* Of the client, of the server, and of neither. */
static const char *const texts[][6] = {
	{GET_A, GET_B, GET_A GET_B, "POST /p HTTP/1.1\r\nContent-Length: 99\r\n\r\n",
		"*1\r\n$4\r\nPING\r\n", "GET /c H"},
	{OK_5, OK_5 OK_5, OK_HEAD, "HTTP/1.0 200 OK\r\n\r\n", "+PONG\r\n", OK_5},
	{"TTP/1.1\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 101 S\r\nUpgrade: x\r\n\r\n",
		"\r\n\r\n", "HTTP/1.1 200 OK\r\n", "\0"},
};

/* Mostly next to what came before, so that streams get somewhere; sometimes anywhere. */
static struct seg
random_seg(uint64_t *seed, uint32_t next[2], uint64_t t)
{
	static const unsigned flags[] = {0, 0, 0, 0, 0, 0, 0, 0, BS_TCP_SYN,
		BS_TCP_SYN | BS_TCP_ACK, BS_TCP_FIN | BS_TCP_ACK, BS_TCP_RST,
		BS_TCP_RST | BS_TCP_ACK, BS_TCP_ACK};
	struct seg seg = {.from = below(seed, 2), .t = t};
	uint32_t bytes;

	seg.flags = below(seed, 12) > 0 ? 0 : flags[below(seed, sizeof(flags) / sizeof(flags[0]))];
	seg.seq = next[seg.from];
	seg.ack = next[!seg.from];
	if (below(seed, 3) > 0)
		seg.text = texts[below(seed, 5) > 0 ? seg.from : below(seed, 3)][below(seed, 6)];
	if (below(seed, 8) == 0)
		seg.bytes = below(seed, 1400);
	bytes = seg.text != NULL && strlen(seg.text) > seg.bytes ? (uint32_t)strlen(seg.text)
								 : seg.bytes;
	if (below(seed, 10) == 0 && bytes > 0)
		seg.cap = 1 + below(seed, bytes);
	switch (below(seed, 12)) {
	case 0:
		seg.seq -= below(seed, 3000); /* again */
		break;
	case 1:
		seg.seq += below(seed, 3000); /* a hole */
		break;
	case 2:
		seg.ack += below(seed, 3000) - 1500;
		break;
	case 3:
		if (below(seed, 20) == 0)
			seg.seq = seg.ack = (uint32_t)next_random(seed);
		break;
	default:
		next[seg.from] += bytes;
	}
	seg.window = 1 + below(seed, 3) * below(seed, 30000);
	seg.window_zero = below(seed, 20) == 0;
	seg.has_ts = below(seed, 2);
	seg.tsval = (uint32_t)(t / MS) - (below(seed, 10) == 0 ? below(seed, 500) : 0);
	seg.tsecr = seg.tsval - below(seed, 300);
	seg.ip_id_zero = below(seed, 5) == 0;
	seg.sacks = seg.has_ts ? below(seed, 3) : below(seed, 4);
	for (unsigned i = 0; i < seg.sacks; i++) {
		seg.sack[i][0] = seg.ack + below(seed, 4000) - 2000;
		seg.sack[i][1] = seg.sack[i][0] + below(seed, 2000);
	}
	if (below(seed, 2) == 0)
		seg.t_low = t > 30 * MS ? t - below(seed, 30 * MS) - 1 : 1;
	if (below(seed, 9) == 0)
		seg.shim_id = next_random(seed);
	return seg;
}

static void
random_own(
	struct rig *rig, uint64_t *seed, const struct bs_track_handle handles[HANDLES], uint64_t t)
{
	const struct bs_track_handle *handle = &handles[below(seed, HANDLES)];
	struct bs_stay stay = {.t_in = T0 + t, .t_out = T0 + t, .buffer = 40};

	if (handle->valid && below(seed, 2)) {
		stay.congestion = below(seed, MS);
		stay.stalled = below(seed, MS);
		stay.t_in -= stay.congestion + stay.stalled;
		bs_tracker_stay(rig->tracker, handle, &stay);
	}
	if (handle->valid && below(seed, 2))
		bs_tracker_departed(rig->tracker, handle, T0 + t - below(seed, MS));
	if (below(seed, 10) == 0) {
		rig->packet.data = rig->bytes;
		bs_tracker_dropped(
			rig->tracker, &rig->packet, 41, BS_REASON_APP_QUEUE_FULL, T0 + t);
	}
}

static void
run_at_random(const char *protocol, bool own_buffers, uint64_t seed, uint64_t *evicted)
{
	struct rig *rig = rig_new(protocol, 80);
	struct bs_track_handle handles[HANDLES] = {0};
	uint32_t next[40][2] = {0};
	uint64_t t = SEC, full;

	rig->config.own_buffers = own_buffers;
	rig->config.idle_ns = (seed & 1 ? 5 : 60) * SEC;
	rig->config.max_rpcs = 64;
	rig_start(rig);
	for (unsigned i = 0; i < PACKETS; i++) {
		/* 100 connections: more than the table has, of 40 states */
		unsigned connection = below(&seed, 8) > 0 ? below(&seed, 8) : below(&seed, 100);

		rig->client_port = (uint16_t)(40000 + connection);
		rig->isn[CLIENT] = 0u - 5000 + connection * 100;
		t += below(&seed, 20) == 0 ? below(&seed, 300 * MS) : below(&seed, 2 * MS);
		rig_send(rig, random_seg(&seed, next[connection % 40], t));
		handles[below(&seed, HANDLES)] = rig->tracked.handle;
		if (own_buffers)
			random_own(rig, &seed, handles, t);
		if (below(&seed, 50) == 0)
			bs_tracker_advance(rig->tracker, T0 + t);
		rig->told_count = rig->silence_count = rig->name_count = rig->brief_count = 0;
	}
	bs_tracker_finish(rig->tracker, T0 + t + SEC);
	assert_int_equal(bs_tracker_flows(rig->tracker), 0);
	assert_int_equal(bs_tracker_open_rpcs(rig->tracker), 0);
	assert_true(rig_counter(rig, BS_TRACK_RPCS) > 1000);
	*evicted += rig_counter(rig, BS_TRACK_RPCS_EVICTED);
	rig->told_count = 0;
	full = rig_counter(rig, BS_TRACK_REASSEMBLY_FULL);

	/* All chunks, slots and flows are there again. */
	for (unsigned flow = 0; flow < 64; flow++) {
		rig->client_port = (uint16_t)(50000 + flow);
		SEND(rig, .t = t + 10 * SEC, .seq = -1u, .flags = BS_TCP_SYN);
		assert_int_equal(rig->tracked.followed, 1);
		for (unsigned i = 1; flow < 4 && i <= 64; i++)
			SEND(rig, .t = t + 11 * SEC, .seq = i * 1000, .bytes = 1);
	}
	assert_int_equal(rig_counter(rig, BS_TRACK_REASSEMBLY_FULL), full);
	bs_tracker_finish(rig->tracker, T0 + t + 20 * SEC);
	assert_int_equal(bs_tracker_open_rpcs(rig->tracker), 0);
	rig_free(rig);
}

static void
anything_at_all_leaves_valid_records_and_whole_tables(void **state)
{
	static const char *const protocols[] = {"http1", "resp", "opaque", NULL};

	uint64_t evicted = 0;

	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++)
		run_at_random(protocols[i % 4], i / 4 % 2, 0x9e3779b97f4a7c15ull + i, &evicted);
	assert_true(evicted > 100);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(anything_at_all_leaves_valid_records_and_whole_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
