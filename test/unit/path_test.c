/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The critical path: one test for each kind of mark with the segments it must
 * give, written out; and random RPCs against an oracle that paints every
 * nanosecond by itself.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "bs_path.h"

#define ROUNDS 20000u
#define ORACLE_NS 600u

/* An answered RPC: request 1000-1100, handed on 1150, response 1400-1500, handed on 1580. */
static struct bs_rec_rpc
answered(void)
{
	struct bs_rec_rpc rpc;

	memset(&rpc, 0, sizeof(rpc));
	bs_record_head(&rpc.head, BS_REC_RPC, 3);
	rpc.id = 77;
	rpc.outcome = BS_OUTCOME_ANSWERED;
	rpc.t_request_first = 1000;
	rpc.t_request_last = 1100;
	rpc.t_request_departure = 1150;
	rpc.t_response_first = 1400;
	rpc.t_response_last = 1500;
	rpc.t_response_departure = 1580;
	rpc.t_end = 1600;
	return rpc;
}

static struct bs_mark
mark_of(unsigned kind, bool response, uint64_t begin, uint64_t end, unsigned buffer, unsigned cause)
{
	struct bs_mark mark;

	memset(&mark, 0, sizeof(mark));
	mark.kind = (uint8_t)kind;
	mark.response = response;
	mark.begin = begin;
	mark.end = end;
	mark.buffer = (uint16_t)buffer;
	mark.cause = (uint8_t)cause;
	mark.quality = BS_QUALITY_ESTIMATED;
	mark.packet = 42;
	mark.uncertainty_ns = 5;
	return mark;
}

struct want {
	uint64_t begin_ns, end_ns;
	unsigned buffer, cause;
};

static void
assert_tiled(const struct bs_rec_rpc *rpc, const struct bs_rec_segment *segments)
{
	struct bs_rpc_view view = {rpc, segments, NULL};
	unsigned bad = 999;

	assert_int_equal(bs_rpc_check_tiling(&view, &bad), 0);
}

static void
assert_path(struct bs_rec_rpc *rpc, const struct bs_mark *marks, unsigned mark_count,
	const struct want *want, unsigned want_count)
{
	struct bs_rec_segment segments[BS_RPC_MAX_SEGMENTS];
	unsigned n = bs_path_build(rpc, marks, mark_count, segments);

	assert_int_equal(n, want_count);
	assert_int_equal(rpc->segment_count, want_count);
	assert_int_equal(rpc->flags & BS_RPC_SEGMENTS_MERGED, 0);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(segments[i].head.type, BS_REC_SEGMENT);
		assert_int_equal(segments[i].head.source, 3);
		assert_int_equal(segments[i].rpc_id, 77);
		assert_int_equal(segments[i].begin_ns, want[i].begin_ns);
		assert_int_equal(segments[i].end_ns, want[i].end_ns);
		assert_int_equal(segments[i].buffer, want[i].buffer);
		assert_int_equal(segments[i].cause, want[i].cause);
	}
	assert_tiled(rpc, segments);
}

#define ASSERT_PATH(rpc, marks, count, ...)                                                        \
	do {                                                                                       \
		const struct want want_[] = {__VA_ARGS__};                                         \
		assert_path(rpc, marks, count, want_, sizeof(want_) / sizeof(want_[0]));           \
	} while (0)

#define REQUEST_COMES                                                                              \
	{                                                                                          \
		0, 100, BS_BUFFER_NET_REQUEST_BEFORE, BS_CAUSE_TRANSFER                            \
	}
#define UNSEEN(begin, end)                                                                         \
	{                                                                                          \
		begin, end, BS_BUFFER_NONE, BS_CAUSE_UNOBSERVED                                    \
	}
#define WORKS(begin, end)                                                                          \
	{                                                                                          \
		begin, end, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE                                    \
	}
#define RESPONSE_COMES                                                                             \
	{                                                                                          \
		400, 500, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_TRANSFER                         \
	}

static void
no_marks_give_the_phases(void **state)
{
	struct bs_rec_rpc rpc = answered();

	(void)state;
	ASSERT_PATH(&rpc, NULL, 0, REQUEST_COMES, UNSEEN(100, 150), WORKS(150, 400), RESPONSE_COMES,
		UNSEEN(500, 580));
}

static void
replay_without_own_buffers_has_three_phases(void **state)
{
	struct bs_rec_rpc rpc = answered();

	(void)state;
	rpc.t_request_departure = rpc.t_request_last;
	rpc.t_response_departure = rpc.t_response_last;
	ASSERT_PATH(&rpc, NULL, 0, REQUEST_COMES, WORKS(100, 400), RESPONSE_COMES);
}

static void
latency_zero_has_no_segments(void **state)
{
	struct bs_rec_rpc rpc = answered();

	(void)state;
	rpc.t_request_last = rpc.t_request_departure = 1000;
	rpc.t_response_first = rpc.t_response_last = rpc.t_response_departure = 1000;
	assert_path(&rpc, NULL, 0, NULL, 0);
}

static void
earlier_rpc_is_painted_between_departure_and_answer_only(void **state)
{
	struct bs_rec_rpc rpc = answered();
	struct bs_mark mark = mark_of(
		BS_MARK_EARLIER_RPC, false, 900, 1300, BS_BUFFER_SERVICE, BS_CAUSE_CONTENTION);

	(void)state;
	ASSERT_PATH(&rpc, &mark, 1, REQUEST_COMES, UNSEEN(100, 150),
		{150, 300, BS_BUFFER_SERVICE, BS_CAUSE_CONTENTION}, WORKS(300, 400), RESPONSE_COMES,
		UNSEEN(500, 580));
	mark.end = 5000;
	ASSERT_PATH(&rpc, &mark, 1, REQUEST_COMES, UNSEEN(100, 150),
		{150, 400, BS_BUFFER_SERVICE, BS_CAUSE_CONTENTION}, RESPONSE_COMES,
		UNSEEN(500, 580));
}

static void
window_of_the_client_holds_up_the_response(void **state)
{
	struct bs_rec_rpc rpc = answered();
	struct bs_mark mark = mark_of(
		BS_MARK_WINDOW, true, 1420, 1490, BS_BUFFER_CLIENT_SOCKET_RX, BS_CAUSE_PAUSE);

	(void)state;
	ASSERT_PATH(&rpc, &mark, 1, REQUEST_COMES, UNSEEN(100, 150), WORKS(150, 400),
		{400, 420, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_TRANSFER},
		{420, 490, BS_BUFFER_CLIENT_SOCKET_RX, BS_CAUSE_PAUSE},
		{490, 500, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_TRANSFER}, UNSEEN(500, 580));
}

static void
mark_of_the_request_ends_where_the_answer_begins(void **state)
{
	struct bs_rec_rpc rpc = answered();
	struct bs_mark mark = mark_of(
		BS_MARK_DISORDER, false, 1050, 9999, BS_BUFFER_SERVER_SOCKET_RX, BS_CAUSE_DISORDER);

	(void)state;
	ASSERT_PATH(&rpc, &mark, 1, {0, 50, BS_BUFFER_NET_REQUEST_BEFORE, BS_CAUSE_TRANSFER},
		{50, 400, BS_BUFFER_SERVER_SOCKET_RX, BS_CAUSE_DISORDER}, RESPONSE_COMES,
		UNSEEN(500, 580));
}

static void
mark_of_the_response_begins_at_departure_of_the_request(void **state)
{
	struct bs_rec_rpc rpc = answered();
	struct bs_mark mark =
		mark_of(BS_MARK_RESEND, true, 0, 1450, BS_BUFFER_NET_RESPONSE_AFTER, BS_CAUSE_DROP);

	(void)state;
	ASSERT_PATH(&rpc, &mark, 1, REQUEST_COMES, UNSEEN(100, 150),
		{150, 450, BS_BUFFER_NET_RESPONSE_AFTER, BS_CAUSE_DROP},
		{450, 500, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_TRANSFER}, UNSEEN(500, 580));
}

static void
own_waits_fill_what_is_otherwise_unobserved(void **state)
{
	struct bs_rec_rpc rpc = answered();
	struct bs_mark marks[] = {
		mark_of(BS_MARK_OWN_WAIT, false, 1100, 1150, 40, BS_CAUSE_HANG),
		mark_of(BS_MARK_OWN_WAIT, true, 1500, 1580, 41, BS_CAUSE_CONGESTION),
	};
	struct bs_rec_segment segments[BS_RPC_MAX_SEGMENTS];

	(void)state;
	marks[0].detail = BS_DETAIL_STALLED;
	marks[1].culprit_id = 9;
	marks[1].culprit_kind = BS_CULPRIT_FLOW;
	ASSERT_PATH(&rpc, marks, 2, REQUEST_COMES, {100, 150, 40, BS_CAUSE_HANG}, WORKS(150, 400),
		RESPONSE_COMES, {500, 580, 41, BS_CAUSE_CONGESTION});
	assert_int_equal(bs_path_build(&rpc, marks, 2, segments), 5);
	assert_int_equal(segments[0].quality, BS_QUALITY_EXACT);
	assert_int_equal(segments[1].detail, BS_DETAIL_STALLED);
	assert_int_equal(segments[1].quality, BS_QUALITY_ESTIMATED);
	assert_int_equal(segments[1].packet, 42);
	assert_int_equal(segments[1].uncertainty_ns, 5);
	assert_int_equal(segments[4].culprit_id, 9);
	assert_int_equal(segments[4].culprit_kind, BS_CULPRIT_FLOW);
}

static void
stronger_mark_covers_weaker_whatever_their_order(void **state)
{
	struct bs_rec_rpc rpc = answered();
	struct bs_mark marks[] = {
		mark_of(BS_MARK_OWN_DROP, true, 1500, 1550, 40, BS_CAUSE_DROP),
		mark_of(BS_MARK_OWN_WAIT, true, 1480, 1580, 41, BS_CAUSE_CONGESTION),
		mark_of(BS_MARK_RESEND, true, 1450, 1580, BS_BUFFER_NET_RESPONSE_AFTER,
			BS_CAUSE_DROP),
	};
	const struct bs_mark turned[] = {marks[2], marks[1], marks[0]};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		ASSERT_PATH(&rpc, i == 0 ? marks : turned, 3, REQUEST_COMES, UNSEEN(100, 150),
			WORKS(150, 400),
			{400, 450, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_TRANSFER},
			{450, 480, BS_BUFFER_NET_RESPONSE_AFTER, BS_CAUSE_DROP},
			{480, 500, 41, BS_CAUSE_CONGESTION}, {500, 550, 40, BS_CAUSE_DROP},
			{550, 580, 41, BS_CAUSE_CONGESTION});
	}
}

static void
of_two_equal_kinds_the_earlier_wins_and_neighbours_stay_apart(void **state)
{
	struct bs_rec_rpc rpc = answered();
	struct bs_mark marks[] = {
		mark_of(BS_MARK_RESEND, true, 1470, 1500, BS_BUFFER_NET_RESPONSE_AFTER,
			BS_CAUSE_DROP),
		mark_of(BS_MARK_RESEND, true, 1420, 1480, BS_BUFFER_NET_RESPONSE_BEFORE,
			BS_CAUSE_DROP),
		mark_of(BS_MARK_RESEND, true, 1500, 1520, BS_BUFFER_NET_RESPONSE_AFTER,
			BS_CAUSE_DROP),
	};

	(void)state;
	ASSERT_PATH(&rpc, marks, 3, REQUEST_COMES, UNSEEN(100, 150), WORKS(150, 400),
		{400, 420, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_TRANSFER},
		{420, 480, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_DROP},
		{480, 500, BS_BUFFER_NET_RESPONSE_AFTER, BS_CAUSE_DROP},
		{500, 520, BS_BUFFER_NET_RESPONSE_AFTER, BS_CAUSE_DROP}, UNSEEN(520, 580));
}

static void
marks_that_are_empty_or_turned_round_paint_nothing(void **state)
{
	struct bs_rec_rpc rpc = answered();
	struct bs_mark marks[] = {
		mark_of(BS_MARK_OWN_DROP, true, 1450, 1450, 40, BS_CAUSE_DROP),
		mark_of(BS_MARK_OWN_DROP, false, 1090, 1010, 40, BS_CAUSE_DROP),
		mark_of(BS_MARK_OWN_DROP, true, 1581, 2000, 40, BS_CAUSE_DROP),
	};

	(void)state;
	ASSERT_PATH(&rpc, marks, 3, REQUEST_COMES, UNSEEN(100, 150), WORKS(150, 400),
		RESPONSE_COMES, UNSEEN(500, 580));
}

static void
unanswered_is_tiled_to_its_age_in_the_phase_it_is_in(void **state)
{
	struct bs_rec_rpc rpc = answered();
	struct bs_mark mark = mark_of(
		BS_MARK_RESEND, false, 1200, 1300, BS_BUFFER_NET_REQUEST_AFTER, BS_CAUSE_DROP);

	(void)state;
	rpc.outcome = BS_OUTCOME_UNANSWERED;
	rpc.t_response_first = rpc.t_response_last = rpc.t_response_departure = 0;
	ASSERT_PATH(&rpc, &mark, 1, REQUEST_COMES, UNSEEN(100, 150), WORKS(150, 200),
		{200, 300, BS_BUFFER_NET_REQUEST_AFTER, BS_CAUSE_DROP}, WORKS(300, 600));
	rpc.t_request_departure = 0; /* in our buffers still */
	ASSERT_PATH(&rpc, NULL, 0, REQUEST_COMES, UNSEEN(100, 600));
	rpc.t_request_last = 0; /* still coming */
	ASSERT_PATH(&rpc, NULL, 0, {0, 600, BS_BUFFER_NET_REQUEST_BEFORE, BS_CAUSE_TRANSFER});
	rpc = answered();
	rpc.outcome = BS_OUTCOME_RESET;
	rpc.t_response_last = rpc.t_response_departure = 0;
	ASSERT_PATH(&rpc, NULL, 0, REQUEST_COMES, UNSEEN(100, 150), WORKS(150, 400),
		{400, 600, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_TRANSFER});
}

static void
unknown_departure_leaves_the_time_to_the_answer_unobserved(void **state)
{
	struct bs_rec_rpc rpc = answered();

	(void)state;
	rpc.t_request_departure = 0;
	ASSERT_PATH(
		&rpc, NULL, 0, REQUEST_COMES, UNSEEN(100, 400), RESPONSE_COMES, UNSEEN(500, 580));
}

static void
early_answer_leaves_no_time_to_the_service(void **state)
{
	struct bs_rec_rpc rpc = answered();

	(void)state;
	/* 413 while the body is coming: begins at 1060, the request ends at 1100 */
	rpc.t_response_first = 1060;
	rpc.t_request_departure = 1100;
	ASSERT_PATH(&rpc, NULL, 0, REQUEST_COMES,
		{100, 500, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_TRANSFER}, UNSEEN(500, 580));
	/* even complete before it */
	rpc.t_response_last = rpc.t_response_departure = 1080;
	ASSERT_PATH(&rpc, NULL, 0, {0, 80, BS_BUFFER_NET_REQUEST_BEFORE, BS_CAUSE_TRANSFER});
	/* and the request never ends */
	rpc.t_request_last = rpc.t_request_departure = 0;
	ASSERT_PATH(&rpc, NULL, 0, {0, 60, BS_BUFFER_NET_REQUEST_BEFORE, BS_CAUSE_TRANSFER},
		{60, 80, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_TRANSFER});
}

static void
orphan_is_tiled_from_its_own_first_byte(void **state)
{
	struct bs_rec_rpc rpc = answered();
	struct bs_mark mark = mark_of(
		BS_MARK_WINDOW, true, 1420, 1430, BS_BUFFER_CLIENT_SOCKET_RX, BS_CAUSE_PAUSE);

	(void)state;
	rpc.outcome = BS_OUTCOME_ORPHAN_RESPONSE;
	rpc.t_request_first = rpc.t_request_last = rpc.t_request_departure = 0;
	rpc.t_response_last = rpc.t_response_departure = 0;
	ASSERT_PATH(&rpc, &mark, 1, {0, 20, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_TRANSFER},
		{20, 30, BS_BUFFER_CLIENT_SOCKET_RX, BS_CAUSE_PAUSE},
		{30, 200, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_TRANSFER});
}

static void
more_marks_than_segments_are_merged_and_flagged(void **state)
{
	struct bs_rec_rpc rpc = answered();
	struct bs_rec_segment segments[BS_RPC_MAX_SEGMENTS];
	struct bs_mark marks[BS_PATH_MAX_MARKS];
	uint64_t drops = 0, all = 0;

	(void)state;
	/* 60 losses of 2 ns, 4 ns apart: drop, transfer, drop, transfer ... */
	for (unsigned i = 0; i < 60; i++)
		marks[i] = mark_of(BS_MARK_RESEND, true, 1160 + 4 * i, 1162 + 4 * i,
			BS_BUFFER_NET_RESPONSE_AFTER, BS_CAUSE_DROP);
	assert_int_equal(bs_path_build(&rpc, marks, 60, segments), BS_RPC_MAX_SEGMENTS);
	assert_true(rpc.flags & BS_RPC_SEGMENTS_MERGED);
	assert_tiled(&rpc, segments);

	/* 60 losses back to back: neighbours of one place, so nothing but their borders is lost */
	rpc = answered();
	for (unsigned i = 0; i < 60; i++)
		marks[i] = mark_of(BS_MARK_RESEND, true, 1400 + 3 * i, 1403 + 3 * i,
			BS_BUFFER_NET_RESPONSE_AFTER, BS_CAUSE_DROP);
	marks[7].packet = 99;
	marks[8].quality = BS_QUALITY_BOUND;
	assert_int_equal(bs_path_build(&rpc, marks, 60, segments), BS_RPC_MAX_SEGMENTS);
	assert_true(rpc.flags & BS_RPC_SEGMENTS_MERGED);
	assert_tiled(&rpc, segments);
	for (unsigned i = 0; i < rpc.segment_count; i++) {
		all += segments[i].end_ns - segments[i].begin_ns;
		if (segments[i].cause == BS_CAUSE_DROP)
			drops += segments[i].end_ns - segments[i].begin_ns;
	}
	assert_int_equal(all, 580);
	assert_int_equal(drops, 180);
	assert_int_equal(segments[3].cause,
		BS_CAUSE_DROP); /* the merged ones: as late and as unsure as any */
	assert_int_equal(segments[3].packet, 99);
	assert_int_equal(segments[3].quality, BS_QUALITY_BOUND);
}

/* --- the oracle ------------------------------------------------------------- */

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

/* Which phase nanosecond t is in: the first whose end is known and lies behind t. */
static unsigned
oracle_phase(const struct bs_rec_rpc *rpc, uint64_t t)
{
	const uint64_t ends[] = {rpc->t_request_last, rpc->t_request_departure,
		rpc->t_response_first, rpc->t_response_last, rpc->t_response_departure};
	unsigned phase = 0;

	/* phase p is over when its end is, or if that is not known, the next known one */
	for (unsigned p = 0; p < 4; p++) {
		bool over = false, later_known = false;

		for (unsigned q = p; q < 5 && !later_known; q++) {
			later_known = ends[q] != 0;
			over = later_known && ends[q] <= t;
		}
		if (!over)
			break;
		phase = p + 1;
	}
	return phase;
}

static int
oracle_mark(const struct bs_rec_rpc *rpc, const struct bs_mark *marks, unsigned count, uint64_t t)
{
	const unsigned phase = oracle_phase(rpc, t);
	int best = -1;

	for (unsigned i = 0; i < count; i++) {
		bool may = marks[i].response ? phase >= 2 : phase <= 2;

		if (marks[i].kind == BS_MARK_EARLIER_RPC && phase < 2)
			may = false;
		if (!may || t < marks[i].begin || t >= marks[i].end)
			continue;
		if (best < 0 || marks[i].kind > marks[best].kind ||
			(marks[i].kind == marks[best].kind && marks[i].begin < marks[best].begin))
			best = (int)i;
	}
	return best;
}

static struct bs_rec_rpc
random_rpc(uint64_t *seed)
{
	struct bs_rec_rpc rpc = answered();
	uint64_t t = 1000;
	uint64_t *const instants[] = {&rpc.t_request_last, &rpc.t_request_departure,
		&rpc.t_response_first, &rpc.t_response_last, &rpc.t_response_departure};
	unsigned reached = below(seed, 4) == 0 ? below(seed, 5) : 5;

	rpc.t_request_first = t;
	for (unsigned i = 0; i < 5; i++) {
		t += below(seed, 3) == 0 ? 0 : below(seed, 100);
		*instants[i] = i < reached ? t : 0;
	}
	rpc.t_end = t + below(seed, 50);
	rpc.outcome = reached == 5 ? BS_OUTCOME_ANSWERED : BS_OUTCOME_UNANSWERED;
	if (reached == 5 && below(seed, 8) == 0)
		rpc.t_request_departure = 0;
	return rpc;
}

/* Segments that the oracle sees, in marks and phases; -1 - phase where there is no mark. */
static unsigned
oracle_runs(const struct bs_rec_rpc *rpc, const struct bs_mark *marks, unsigned count,
	int who[ORACLE_NS], uint64_t begin[ORACLE_NS + 1])
{
	const uint64_t extent = bs_rpc_extent_ns(rpc);
	unsigned n = 0;

	for (uint64_t t = 0; t < extent; t++) {
		int mark = oracle_mark(rpc, marks, count, rpc->t_request_first + t);
		int phase = (int)oracle_phase(rpc, rpc->t_request_first + t);
		int at = mark >= 0    ? mark
			 : phase == 4 ? -2
				      : -1 - phase; /* 1 and 4 are one place */

		if (n > 0 && who[n - 1] == at)
			continue;
		who[n] = at;
		begin[n++] = t;
	}
	begin[n] = extent;
	return n;
}

static void
random_marks_are_painted_as_the_oracle_does(void **state)
{
	static const unsigned phase_buffer[] = {BS_BUFFER_NET_REQUEST_BEFORE, BS_BUFFER_NONE,
		BS_BUFFER_SERVICE, BS_BUFFER_NET_RESPONSE_BEFORE, BS_BUFFER_NONE};
	uint64_t seed = 0x5eed5eed5eedull;
	unsigned merged = 0, exact = 0;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct bs_rec_rpc rpc = random_rpc(&seed);
		struct bs_rec_segment segments[BS_RPC_MAX_SEGMENTS];
		struct bs_mark marks[BS_PATH_MAX_MARKS];
		unsigned count = below(&seed, 8) == 0 ? BS_PATH_MAX_MARKS : below(&seed, 9), n,
			 runs;
		uint64_t begin[ORACLE_NS + 1];
		int who[ORACLE_NS];

		for (unsigned i = 0; i < count; i++) {
			uint64_t t = 950 + below(&seed, 400);

			/* every mark its own buffer: no two are the same place */
			marks[i] = mark_of(below(&seed, BS_MARK_KIND_COUNT), below(&seed, 2), t,
				t + below(&seed, count > 8 ? 8 : 60), 100 + i, BS_CAUSE_PAUSE);
		}
		runs = oracle_runs(&rpc, marks, count, who, begin);
		n = bs_path_build(&rpc, marks, count, segments);
		assert_tiled(&rpc, segments);
		if (runs > BS_RPC_MAX_SEGMENTS) {
			assert_true(rpc.flags & BS_RPC_SEGMENTS_MERGED);
			merged++;
			continue;
		}
		exact++;
		assert_int_equal(n, runs);
		assert_int_equal(rpc.flags & BS_RPC_SEGMENTS_MERGED, 0);
		for (unsigned i = 0; i < n; i++) {
			assert_int_equal(segments[i].begin_ns, begin[i]);
			assert_int_equal(segments[i].end_ns, begin[i + 1]);
			assert_int_equal(segments[i].buffer,
				who[i] >= 0 ? 100 + (unsigned)who[i] : phase_buffer[-1 - who[i]]);
		}
	}
	assert_true(merged > 400 && exact > 10000); /* both were tried */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_marks_give_the_phases),
		cmocka_unit_test(replay_without_own_buffers_has_three_phases),
		cmocka_unit_test(latency_zero_has_no_segments),
		cmocka_unit_test(earlier_rpc_is_painted_between_departure_and_answer_only),
		cmocka_unit_test(window_of_the_client_holds_up_the_response),
		cmocka_unit_test(mark_of_the_request_ends_where_the_answer_begins),
		cmocka_unit_test(mark_of_the_response_begins_at_departure_of_the_request),
		cmocka_unit_test(own_waits_fill_what_is_otherwise_unobserved),
		cmocka_unit_test(stronger_mark_covers_weaker_whatever_their_order),
		cmocka_unit_test(of_two_equal_kinds_the_earlier_wins_and_neighbours_stay_apart),
		cmocka_unit_test(marks_that_are_empty_or_turned_round_paint_nothing),
		cmocka_unit_test(unanswered_is_tiled_to_its_age_in_the_phase_it_is_in),
		cmocka_unit_test(unknown_departure_leaves_the_time_to_the_answer_unobserved),
		cmocka_unit_test(early_answer_leaves_no_time_to_the_service),
		cmocka_unit_test(orphan_is_tiled_from_its_own_first_byte),
		cmocka_unit_test(more_marks_than_segments_are_merged_and_flagged),
		cmocka_unit_test(random_marks_are_painted_as_the_oracle_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
