/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tracker infers where the packet itself is not to be seen: that a
 * first copy had arrived, that a response was lost before us, and that bytes
 * had waited for a window.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tracker_util.h"

#define RUN 10u /* RPCs of 2 ms, one every 10 ms, that show how the server numbers its packets */

/* RFC 3522 section 3.2: an ACK that echoes a stamp older than the resend's is for the first copy.
 */
static void
resend_is_spurious_if_its_ack_echoes_the_first_copy(void **state)
{
	(void)state;
	for (unsigned first_arrived = 0; first_arrived < 2; first_arrived++) {
		struct rig *rig = connected();

		SEND(rig, .t = 10 * MS, .text = GET_A, .has_ts = true, .tsval = 10);
		SEND(rig, .from = SERVER, .t = 12 * MS, .ack = GET, .text = OK_5, .has_ts = true,
			.tsval = 5000);
		SEND(rig, .from = SERVER, .t = 212 * MS, .ack = GET, .text = OK_5, .has_ts = true,
			.tsval = 5200);
		SEND(rig, .t = 215 * MS, .seq = GET, .ack = OK, .has_ts = true, .tsval = 215,
			.tsecr = first_arrived ? 5000 : 5200);
		assert_int_equal(rig->told_count, 1);
		assert_int_equal(told_latency(&rig->told[0]), first_arrived ? 2 * MS : 202 * MS);
		assert_int_equal(
			told_ns(&rig->told[0], BS_BUFFER_NET_RESPONSE_AFTER, BS_CAUSE_DROP),
			first_arrived ? 0 : 200 * MS);
		assert_int_equal(rig_counter(rig, BS_TRACK_SPURIOUS), first_arrived);
		rig_free(rig);
	}
}

/* Two resends, the first of them needed: its echo is older than the second's stamp. */
static void
echo_of_the_first_of_two_resends_does_not_make_it_spurious(void **state)
{
	struct rig *rig = connected();

	(void)state;
	SEND(rig, .t = 10 * MS, .text = GET_A, .has_ts = true, .tsval = 10);
	for (unsigned i = 0; i < 3; i++)
		SEND(rig, .from = SERVER, .t = (12 + 200 * i) * MS, .ack = GET, .text = OK_5,
			.has_ts = true, .tsval = 5000 + 200 * i);
	SEND(rig, .t = 415 * MS, .seq = GET, .ack = OK, .has_ts = true, .tsval = 415,
		.tsecr = 5200);
	assert_int_equal(rig->told_count, 1);
	assert_true(
		told_ns(&rig->told[0], BS_BUFFER_NET_RESPONSE_AFTER, BS_CAUSE_DROP) >= 200 * MS);
	rig_free(rig);
}

/* A connection on which RUN RPCs are done; the next may begin at RUN * 10 ms. */
static struct rig *
with_run(void)
{
	struct rig *rig = connected();

	for (unsigned i = 0; i < RUN; i++) {
		SEND(rig, .t = (10 * i + 4) * MS, .seq = i * GET, .ack = i * OK, .text = GET_A);
		SEND(rig, .from = SERVER, .t = (10 * i + 6) * MS, .seq = i * OK,
			.ack = (i + 1) * GET, .text = OK_5);
		SEND(rig, .t = (10 * i + 7) * MS, .seq = (i + 1) * GET, .ack = (i + 1) * OK);
	}
	rig->told_count = 0;
	return rig;
}

/* One RPC whose answer comes `wait` after the request; the server has sent `lost` packets before.
 */
static struct told
answered_after(struct rig *rig, uint64_t wait, unsigned lost)
{
	const uint64_t t = RUN * 10 * MS;
	struct told told;

	SEND(rig, .t = t, .seq = RUN * GET, .ack = RUN * OK, .text = GET_B);
	rig->ip_id[SERVER] = (uint16_t)(rig->ip_id[SERVER] + lost);
	SEND(rig, .from = SERVER, .t = t + wait, .seq = RUN * OK, .ack = (RUN + 1) * GET,
		.text = OK_5);
	SEND(rig, .t = t + wait + MS, .seq = (RUN + 1) * GET, .ack = (RUN + 1) * OK);
	assert_int_equal(rig->told_count, 1);
	told = rig->told[0];
	rig_free(rig);
	return told;
}

static void
response_lost_before_us_is_known_by_the_ip_id_left_out(void **state)
{
	struct told told = answered_after(with_run(), 240 * MS, 1);

	(void)state;
	/* It cannot have come sooner than the handshake's round trip of 1 ms. */
	ASSERT_SEGMENT(&told, 0, 0, MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	ASSERT_SEGMENT(&told, 1, MS, 240 * MS, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_DROP);
	assert_int_equal(told.segments[1].quality, BS_QUALITY_ESTIMATED);
	assert_int_equal(told.rpc.retransmissions, 1);
}

/* One lost packet explains one timeout of 200 ms (and a quarter), two 200 and 400, not a slow
 * service. */
static void
lost_response_explains_no_more_than_its_timeouts(void **state)
{
	struct told told = answered_after(with_run(), 2000 * MS, 1);
	uint64_t drop = told_ns(&told, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_DROP);

	(void)state;
	assert_in_range(drop, 250 * MS, 253 * MS);
	assert_int_equal(told_ns(&told, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE), 2000 * MS - drop);
	told = answered_after(with_run(), 2000 * MS, 2);
	drop = told_ns(&told, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_DROP);
	assert_in_range(drop, 750 * MS, 753 * MS);
}

static void
slow_answer_is_the_service_where_no_id_is_left_out_or_no_timeout_has_passed(void **state)
{
	struct told told = answered_after(with_run(), 300 * MS, 0);

	(void)state;
	assert_int_equal(told_ns(&told, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE), 300 * MS);
	told = answered_after(with_run(), 150 * MS, 1);
	assert_int_equal(told_ns(&told, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE), 150 * MS);
	/* Many at once: the server numbers the packets of other connections too. */
	told = answered_after(with_run(), 300 * MS, 200);
	assert_int_equal(told_ns(&told, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE), 300 * MS);
}

static void
ids_that_do_not_count_say_nothing(void **state)
{
	struct rig *rig = connected();
	uint64_t latency;

	(void)state;
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .from = SERVER, .t = 310 * MS, .ack = GET, .text = OK_5, .ip_id = 9100);
	SEND(rig, .t = 311 * MS, .seq = GET, .ack = OK);
	latency = told_latency(&rig->told[0]);
	assert_int_equal(told_ns(&rig->told[0], BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE), latency);
	rig_free(rig);
}

/*
 * Also where IP has no ID: the server's ACK of the resent request stands behind
 * bytes that never came. That the request was resent is explained by that.
 */
static void
response_lost_before_us_is_known_by_the_sequence_number_of_an_ack(void **state)
{
	struct rig *rig = connected();

	(void)state;
	SEND(rig, .t = 10 * MS, .text = GET_A);
	SEND(rig, .t = 220 * MS, .text = GET_A);
	SEND(rig, .from = SERVER, .t = 221 * MS, .seq = OK, .ack = GET, .sacks = 1,
		.sack = {{0, GET}});
	SEND(rig, .from = SERVER, .t = 230 * MS, .ack = GET, .text = OK_5);
	SEND(rig, .t = 231 * MS, .seq = GET, .ack = OK);
	assert_int_equal(rig->told_count, 1);
	ASSERT_SEGMENT(&rig->told[0], 0, 0, MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
	ASSERT_SEGMENT(
		&rig->told[0], 1, MS, 220 * MS, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_DROP);
	rig_free(rig);
}

/*
 * A window of 2048 bytes takes two segments of 1000. On the receiver's side the
 * third comes one round trip (1 ms) after the ACK that allowed it: what came
 * since the second was the window. Later than that, it was not.
 */
static void
bytes_a_round_trip_after_the_window_allowed_them_had_waited_for_it(void **state)
{
	(void)state;
	for (unsigned late = 0; late < 2; late++) {
		const uint64_t third = late ? 17000 * US : 13100 * US;
		struct rig *rig = connected();

		SEND(rig, .t = 10 * MS, .text = GET_A, .window = 16);
		SEND(rig, .from = SERVER, .t = 12000 * US, .ack = GET, .text = OK_HEAD,
			.bytes = 1000);
		SEND(rig, .from = SERVER, .t = 12020 * US, .seq = 1000, .ack = GET, .bytes = 1000);
		SEND(rig, .t = 12100 * US, .seq = GET, .ack = 2000, .window = 16);
		SEND(rig, .from = SERVER, .t = third, .seq = 2000, .ack = GET, .bytes = 1000);
		SEND(rig, .t = third + US, .seq = GET, .ack = 3000, .window = 16);
		assert_int_equal(rig->told_count, 1);
		/* From 12.02 ms: until 13.1 ms, or only until it had room again at 12.1 ms. */
		assert_int_equal(told_ns(&rig->told[0], BS_BUFFER_CLIENT_SOCKET_RX, BS_CAUSE_PAUSE),
			late ? 80 * US : 1080 * US);
		rig_free(rig);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resend_is_spurious_if_its_ack_echoes_the_first_copy),
		cmocka_unit_test(echo_of_the_first_of_two_resends_does_not_make_it_spurious),
		cmocka_unit_test(response_lost_before_us_is_known_by_the_ip_id_left_out),
		cmocka_unit_test(lost_response_explains_no_more_than_its_timeouts),
		cmocka_unit_test(
			slow_answer_is_the_service_where_no_id_is_left_out_or_no_timeout_has_passed),
		cmocka_unit_test(ids_that_do_not_count_say_nothing),
		cmocka_unit_test(response_lost_before_us_is_known_by_the_sequence_number_of_an_ack),
		cmocka_unit_test(
			bytes_a_round_trip_after_the_window_allowed_them_had_waited_for_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
