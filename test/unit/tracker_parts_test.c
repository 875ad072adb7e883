/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that come in parts, between those of others: as HTTP/2 streams do. The
 * protocol is made up: each frame is 8 characters and a body, `R01+0010` begins
 * request 1, with 10 bytes here; `A` an answer, `P` goes on, `I` is an interim
 * answer, `X` gives up, `N` is of the connection; `+` more parts follow, `.` none.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tracker_util.h"

struct parts_state {
	uint8_t have;
	char head[8];
};

static unsigned forgotten[2];

static size_t
parts_feed(const struct bs_framer *framer, struct bs_frame_conn *conn, bool from_server,
	const uint8_t *data, size_t bytes, struct bs_frame *frame)
{
	struct parts_state *state = (struct parts_state *)conn->dir[from_server].bytes;
	static const char kinds[] = "RAPIXN";
	static const uint8_t roles[] = {BS_ROLE_REQUEST, BS_ROLE_RESPONSE, BS_ROLE_PART,
		BS_ROLE_INTERIM, BS_ROLE_CANCEL, BS_ROLE_NONE};
	const char *kind;
	size_t n = 0;

	(void)framer;
	while (n < bytes && state->have < 8)
		state->head[state->have++] = (char)data[n++];
	if (state->have < 8)
		return n;
	state->have = 0;
	kind = strchr(kinds, state->head[0]);
	if (kind == NULL || *kind == '\0') {
		frame->flags = BS_FRAME_BAD;
		return n;
	}
	frame->flags = BS_FRAME_HEAD | BS_FRAME_SKIP | BS_FRAME_END;
	if (state->head[3] == '+')
		frame->flags |= BS_FRAME_PART;
	frame->role = roles[kind - kinds];
	frame->has_id = 1;
	frame->id = (uint64_t)(state->head[1] - '0') * 10 + (uint64_t)(state->head[2] - '0');
	frame->skip = strtoul(
		(char[]){state->head[4], state->head[5], state->head[6], state->head[7], '\0'},
		NULL, 10);
	frame->label_len = 3;
	memcpy(frame->label, state->head, 3);
	frame->has_trace = frame->id == 1;
	memset(frame->trace_id, 0x4b, sizeof(frame->trace_id));
	memset(frame->parent_span_id, 0xf0, sizeof(frame->parent_span_id));
	return n;
}

static int
parts_probe(const struct bs_framer *framer, bool from_server, const uint8_t *data, size_t bytes)
{
	(void)framer;
	(void)from_server;
	return bytes > 0 && strchr("RAPIXN", data[0]) != NULL;
}

static void
parts_forget(struct bs_frame_conn *conn, bool from_server)
{
	(void)conn;
	forgotten[from_server]++;
}

static const struct bs_framer_ops parts_ops = {
	.name = "parts",
	.pairing = BS_PAIR_BY_ID,
	.sibling = &bs_framer_http1,
	.feed = parts_feed,
	.probe = parts_probe,
	.forget = parts_forget,
};
static const struct bs_framer parts = {&parts_ops, "parts", NULL, 60};

static struct rig *
parts_rig(void)
{
	struct rig *rig = rig_new("http1", 80);

	rig->service.framer = &parts;
	rig_start(rig);
	rig_handshake(rig, 0);
	return rig;
}

static const struct told *
told_of(const struct rig *rig, const char *label)
{
	for (unsigned i = 0; i < rig->told_count; i++) {
		if (rig->told[i].rpc.label_len == strlen(label) &&
			memcmp(rig->told[i].rpc.label, label, strlen(label)) == 0)
			return &rig->told[i];
	}
	fail_msg("%s is not told", label);
	return NULL;
}

/*
 * Requests 1 and 2 are sent in turns of a part each; 2 is complete first, and
 * answered first.
 */
static void
parts_of_two_rpcs_lie_between_each_other(void **state)
{
	struct rig *rig = parts_rig();
	const struct told *one, *two;

	(void)state;
	SEND(rig, .t = 10 * MS, .text = "R01+0002aa");
	SEND(rig, .t = 11 * MS, .seq = 10, .text = "R02+0003bbb");
	SEND(rig, .t = 13 * MS, .seq = 21, .text = "P02.0000");
	SEND(rig, .t = 14 * MS, .seq = 29, .text = "P01.0001a");
	SEND(rig, .from = SERVER, .t = 20 * MS, .ack = 38, .text = "A02+0001b");
	SEND(rig, .from = SERVER, .t = 21 * MS, .seq = 9, .ack = 38, .text = "A01+0001a");
	SEND(rig, .from = SERVER, .t = 26 * MS, .seq = 18, .ack = 38, .text = "P02.0004bbbb");
	SEND(rig, .from = SERVER, .t = 29 * MS, .seq = 30, .ack = 38, .text = "P01.0000");
	SEND(rig, .t = 30 * MS, .seq = 38, .ack = 38);
	assert_int_equal(rig->told_count, 2);
	one = told_of(rig, "R01");
	two = told_of(rig, "R02");
	assert_int_equal(one->rpc.outcome, BS_OUTCOME_ANSWERED);
	assert_int_equal(one->rpc.t_request_first, T0 + 10 * MS);
	assert_int_equal(one->rpc.t_request_last, T0 + 14 * MS);
	assert_int_equal(one->rpc.t_response_first, T0 + 21 * MS);
	assert_int_equal(one->rpc.t_response_last, T0 + 29 * MS);
	assert_int_equal(one->rpc.max_gap_ns, 8 * MS);
	assert_int_equal(one->rpc.request_bytes, 19);
	assert_int_equal(one->rpc.response_bytes, 17);
	assert_int_equal(two->rpc.outcome, BS_OUTCOME_ANSWERED);
	assert_int_equal(two->rpc.t_request_last, T0 + 13 * MS);
	assert_int_equal(two->rpc.t_response_first, T0 + 20 * MS);
	assert_int_equal(two->rpc.t_response_last, T0 + 26 * MS);
	assert_int_equal(two->rpc.max_gap_ns, 6 * MS);
	assert_int_equal(two->rpc.request_bytes, 19);
	assert_int_equal(two->rpc.response_bytes, 21);
	rig_free(rig);
}

/* The longest of three gaps is the one that is told. */
static void
a_stream_has_its_longest_gap(void **state)
{
	static const uint64_t at_ms[] = {20, 23, 63, 64};
	struct rig *rig = parts_rig();
	const struct told *told;

	(void)state;
	SEND(rig, .t = 10 * MS, .text = "R01.0000");
	for (unsigned i = 0; i < 4; i++)
		SEND(rig, .from = SERVER, .t = at_ms[i] * MS, .seq = 8 * i, .ack = 8,
			.text = i == 0	 ? "A01+0000"
				: i == 3 ? "P01.0000"
					 : "P01+0000");
	SEND(rig, .t = 70 * MS, .seq = 8, .ack = 32);
	told = told_of(rig, "R01");
	assert_int_equal(told->rpc.max_gap_ns, 40 * MS);
	assert_int_equal(told_latency(told), 54 * MS);
	rig_free(rig);
}

/* The answer begins while the request still comes. */
static void
an_early_answer_waits_for_its_request(void **state)
{
	struct rig *rig = parts_rig();
	const struct told *told;

	(void)state;
	SEND(rig, .t = 10 * MS, .text = "R01+0000");
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = 8, .text = "A01.0000");
	SEND(rig, .t = 13 * MS, .seq = 8, .ack = 8);
	assert_int_equal(rig->told_count, 0);
	SEND(rig, .t = 15 * MS, .seq = 8, .ack = 8, .text = "P01.0000");
	SEND(rig, .t = 16 * MS, .seq = 16, .ack = 8);
	told = told_of(rig, "R01");
	assert_int_equal(told->rpc.outcome, BS_OUTCOME_ANSWERED);
	assert_true(told->rpc.flags & BS_RPC_RESPONSE_EARLY);
	assert_int_equal(told->rpc.t_request_last, T0 + 15 * MS);
	rig_free(rig);
}

/* Interim answers and cancels are those of the RPC they name, not of the first that waits. */
static void
interims_and_cancels_go_by_id(void **state)
{
	struct rig *rig = parts_rig();

	(void)state;
	SEND(rig, .t = 10 * MS, .text = "R01.0000R02.0000R03.0000");
	SEND(rig, .from = SERVER, .t = 11 * MS, .ack = 24, .text = "I02.0000");
	SEND(rig, .from = SERVER, .t = 12 * MS, .seq = 8, .ack = 24, .text = "N00.0004ping");
	SEND(rig, .from = SERVER, .t = 14 * MS, .seq = 20, .ack = 24, .text = "A02.0000A01.0000");
	SEND(rig, .t = 15 * MS, .seq = 24, .ack = 36, .text = "X03.0000");
	SEND(rig, .t = 16 * MS, .seq = 32, .ack = 36);
	assert_int_equal(rig->told_count, 3);
	assert_int_equal(told_of(rig, "R01")->rpc.interim_responses, 0);
	assert_int_equal(told_of(rig, "R02")->rpc.interim_responses, 1);
	assert_int_equal(told_of(rig, "R02")->rpc.outcome, BS_OUTCOME_ANSWERED);
	assert_int_equal(told_of(rig, "R03")->rpc.outcome, BS_OUTCOME_CANCELLED);
	assert_int_equal(rig_counter(rig, BS_TRACK_ORPHANS), 0);
	rig_free(rig);
}

/* Joined late: parts of streams that began before are no orphans, and belong to nobody. */
static void
parts_of_unknown_rpcs_are_passed_over(void **state)
{
	struct rig *rig = parts_rig();

	(void)state;
	SEND(rig, .t = 10 * MS, .text = "P07+0000R01.0000");
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = 16, .text = "P07.0009.........A01.0000");
	SEND(rig, .t = 13 * MS, .seq = 16, .ack = 25);
	assert_int_equal(rig->told_count, 1);
	assert_int_equal(told_of(rig, "R01")->rpc.response_bytes, 8);
	assert_int_equal(rig_counter(rig, BS_TRACK_ORPHANS), 0);
	rig_free(rig);
}

/* A stream that ends with its connection in the middle has the parts that came. */
static void
an_unfinished_stream_is_told_as_far_as_it_came(void **state)
{
	struct rig *rig = parts_rig();
	const struct told *told;

	(void)state;
	SEND(rig, .t = 10 * MS, .text = "R01.0000");
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = 8, .text = "A01+0000");
	SEND(rig, .from = SERVER, .t = 19 * MS, .seq = 8, .ack = 8, .text = "P01+0002xx");
	SEND(rig, .from = SERVER, .t = 21 * MS, .seq = 18, .ack = 8, .flags = BS_TCP_RST);
	told = told_of(rig, "R01");
	assert_int_equal(told->rpc.outcome, BS_OUTCOME_RESET);
	assert_int_equal(told->rpc.response_bytes, 18);
	assert_int_equal(told->rpc.max_gap_ns, 7 * MS);
	rig_free(rig);
}

static void
the_trace_of_a_request_is_kept(void **state)
{
	struct rig *rig = parts_rig();
	uint8_t expected[16];

	(void)state;
	SEND(rig, .t = 10 * MS, .text = "R01.0000R02.0000");
	SEND(rig, .from = SERVER, .t = 12 * MS, .ack = 16, .text = "A01.0000A02.0000");
	SEND(rig, .t = 13 * MS, .seq = 16, .ack = 16);
	memset(expected, 0x4b, sizeof(expected));
	assert_memory_equal(told_of(rig, "R01")->rpc.trace_id, expected, 16);
	memset(expected, 0xf0, sizeof(expected));
	assert_memory_equal(told_of(rig, "R01")->rpc.parent_span_id, expected, 8);
	memset(expected, 0, sizeof(expected));
	assert_memory_equal(told_of(rig, "R02")->rpc.trace_id, expected, 16);
	assert_memory_equal(told_of(rig, "R02")->rpc.parent_span_id, expected, 8);
	rig_free(rig);
}

/* Live: request 1 goes on when 2 has left; its own last part's departure is its departure. */
static void
departures_find_their_rpc_among_parts(void **state)
{
	struct rig *rig = rig_new("http1", 80);
	struct bs_track_handle two, one;

	(void)state;
	rig->service.framer = &parts;
	rig->config.own_buffers = true;
	rig_start(rig);
	rig_handshake(rig, 0);
	SEND(rig, .t = 10 * MS, .text = "R01+0000");
	two = SEND(rig, .t = 11 * MS, .seq = 8, .text = "R02.0000").handle;
	one = SEND(rig, .t = 12 * MS, .seq = 16, .text = "P01.0000").handle;
	assert_true(two.valid && one.valid);
	bs_tracker_departed(rig->tracker, &two, T0 + 13 * MS);
	bs_tracker_departed(rig->tracker, &one, T0 + 14 * MS);
	two = SEND(rig, .from = SERVER, .t = 20 * MS, .ack = 24, .text = "A01.0000A02.0000").handle;
	bs_tracker_departed(rig->tracker, &two, T0 + 21 * MS);
	SEND(rig, .t = 22 * MS, .seq = 24, .ack = 16);
	assert_int_equal(told_of(rig, "R02")->rpc.t_request_departure, T0 + 13 * MS);
	assert_int_equal(told_of(rig, "R01")->rpc.t_request_departure, T0 + 14 * MS);
	assert_int_equal(told_of(rig, "R01")->rpc.t_response_departure, T0 + 21 * MS);
	rig_free(rig);
}

/* What a framer keeps is given back with the flow, and where its stream makes no sense. */
static void
framers_are_told_to_forget(void **state)
{
	struct rig *rig = parts_rig();

	(void)state;
	forgotten[0] = forgotten[1] = 0;
	SEND(rig, .t = 10 * MS, .text = "R01.0000");
	SEND(rig, .t = 11 * MS, .seq = 8, .text = "????????");
	assert_int_equal(forgotten[0], 1);
	assert_int_equal(forgotten[1], 0);
	SEND(rig, .t = 12 * MS, .seq = 16, .flags = BS_TCP_RST);
	bs_tracker_finish(rig->tracker, T0 + 20 * MS);
	assert_int_equal(forgotten[0], 2);
	assert_int_equal(forgotten[1], 1);
	rig_free(rig);
}

/* The server's first words were none of an RPC; then the client turns out to speak another
 * protocol. */
static void
a_framer_that_gives_way_forgets_both_directions(void **state)
{
	struct rig *rig = parts_rig();

	(void)state;
	SEND(rig, .from = SERVER, .t = 10 * MS, .text = "N00.0000");
	forgotten[0] = forgotten[1] = 0;
	SEND(rig, .t = 11 * MS, .ack = 8, .text = GET_A);
	assert_int_equal(forgotten[0], 1);
	assert_int_equal(forgotten[1], 1);
	SEND(rig, .from = SERVER, .t = 12 * MS, .seq = 8, .ack = GET, .text = OK_5);
	SEND(rig, .t = 13 * MS, .seq = GET, .ack = 8 + OK);
	assert_int_equal(told_of(rig, "GET /a")->rpc.outcome, BS_OUTCOME_ANSWERED);
	rig_free(rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_of_two_rpcs_lie_between_each_other),
		cmocka_unit_test(a_stream_has_its_longest_gap),
		cmocka_unit_test(an_early_answer_waits_for_its_request),
		cmocka_unit_test(interims_and_cancels_go_by_id),
		cmocka_unit_test(parts_of_unknown_rpcs_are_passed_over),
		cmocka_unit_test(an_unfinished_stream_is_told_as_far_as_it_came),
		cmocka_unit_test(the_trace_of_a_request_is_kept),
		cmocka_unit_test(departures_find_their_rpc_among_parts),
		cmocka_unit_test(framers_are_told_to_forget),
		cmocka_unit_test(a_framer_that_gives_way_forgets_both_directions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
