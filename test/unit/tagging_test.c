/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When a flow may be tagged, and when it gives up: the rules of bs_tagging.h,
 * each as the exchange of packets that it is about.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "bs_tagging.h"

#define MSS 1000u

/* A flow whose handshake has agreed on tags; we opened it. */
static struct bs_tagging
agreed(void)
{
	struct bs_tagging tagging = {0};

	assert_true(bs_tagging_syn_out(&tagging, true));
	assert_false(bs_tagging_syn_in(&tagging, true, true));
	assert_true(bs_tagging_allowed(&tagging, true));
	return tagging;
}

/* n segments of MSS bytes from `seq` leave with a shim. */
static void
send_tagged(struct bs_tagging *tagging, uint32_t seq, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		bs_tagging_tagged(tagging, seq + i * MSS, seq + (i + 1) * MSS);
}

static bool
resend(struct bs_tagging *tagging, uint32_t seq)
{
	return bs_tagging_resent(tagging, seq, seq + MSS);
}

/* --- the handshake ----------------------------------------------------------- */

static void
both_announced_may_tag(void **state)
{
	struct bs_tagging client = {0}, server = {0};

	(void)state;
	assert_true(bs_tagging_syn_out(&client, true));
	assert_false(bs_tagging_allowed(&client, true));
	assert_false(bs_tagging_syn_in(&server, true, false));
	assert_false(bs_tagging_allowed(&server, true));
	assert_true(bs_tagging_syn_out(&server, true));
	assert_true(bs_tagging_allowed(&server, true));
	assert_false(bs_tagging_syn_in(&client, true, true));
	assert_true(bs_tagging_allowed(&client, true));
	assert_false(bs_tagging_acked(&server, 1));
	assert_true(bs_tagging_allowed(&server, true));
}

static void
peer_that_does_not_announce_is_not_tagged_and_does_not_refuse(void **state)
{
	struct bs_tagging tagging = {0};

	(void)state;
	assert_true(bs_tagging_syn_out(&tagging, true));
	assert_false(bs_tagging_syn_in(&tagging, false, true));
	assert_false(bs_tagging_allowed(&tagging, true));
	assert_false(tagging.refused);
}

static void
mode_always_needs_no_agreement_and_announces_nothing(void **state)
{
	struct bs_tagging tagging = {0};

	(void)state;
	assert_false(bs_tagging_syn_out(&tagging, false));
	assert_true(bs_tagging_allowed(&tagging, false));
	assert_false(bs_tagging_syn_out(&tagging, false));
	assert_false(bs_tagging_syn_in(&tagging, false, true));
	assert_true(bs_tagging_allowed(&tagging, false));
}

static void
resent_syn_carries_no_announcement_and_refuses_if_only_it_is_answered(void **state)
{
	struct bs_tagging tagging = {0};

	(void)state;
	assert_true(bs_tagging_syn_out(&tagging, true));
	assert_false(bs_tagging_syn_out(&tagging, true));
	assert_false(bs_tagging_syn_out(&tagging, true));
	assert_true(bs_tagging_syn_in(&tagging, false, true));
	assert_false(bs_tagging_allowed(&tagging, true));
	assert_false(bs_tagging_syn_in(&tagging, false, true)); /* said once */
}

static void
resent_syn_with_the_first_one_answered_does_not_refuse(void **state)
{
	struct bs_tagging tagging = {0};

	(void)state;
	assert_true(bs_tagging_syn_out(&tagging, true));
	assert_false(bs_tagging_syn_out(&tagging, true));
	assert_false(bs_tagging_syn_in(&tagging, true, true));
	assert_false(
		bs_tagging_syn_in(&tagging, false, true)); /* the peer's own resend carries none */
	assert_true(bs_tagging_allowed(&tagging, true));
}

static void
resent_syn_ack_refuses_when_the_ack_comes(void **state)
{
	struct bs_tagging tagging = {0};

	(void)state;
	assert_false(bs_tagging_syn_in(&tagging, true, false));
	assert_true(bs_tagging_syn_out(&tagging, true));
	assert_false(bs_tagging_syn_out(&tagging, true));
	assert_true(bs_tagging_acked(&tagging, 1));
	assert_false(bs_tagging_allowed(&tagging, true));
	assert_false(bs_tagging_acked(&tagging, 2)); /* said once */
}

static void
refused_flow_announces_nothing(void **state)
{
	struct bs_tagging tagging = {.refused = 1};

	(void)state;
	assert_false(bs_tagging_syn_out(&tagging, true));
	assert_false(bs_tagging_allowed(&tagging, false));
}

static void
many_syns_do_not_wrap_to_a_first_one(void **state)
{
	struct bs_tagging tagging = {0};

	(void)state;
	assert_true(bs_tagging_syn_out(&tagging, true));
	for (unsigned i = 0; i < 300; i++)
		assert_false(bs_tagging_syn_out(&tagging, true));
}

/* --- resends ------------------------------------------------------------------ */

static void
two_resent_ranges_with_nothing_acked_between_refuse(void **state)
{
	struct bs_tagging tagging = agreed();

	(void)state;
	send_tagged(&tagging, 5000, 4);
	assert_false(resend(&tagging, 5000));
	assert_true(resend(&tagging, 6000));
	assert_false(bs_tagging_allowed(&tagging, true));
	assert_false(bs_tagging_allowed(&tagging, false));
	assert_false(resend(&tagging, 7000)); /* said once */
}

static void
same_bytes_sent_a_third_time_are_one_range(void **state)
{
	struct bs_tagging tagging = agreed();

	(void)state;
	send_tagged(&tagging, 5000, 1);
	for (unsigned i = 0; i < 10; i++)
		assert_false(resend(&tagging, 5000)); /* the peer is down: timeout after timeout */
	assert_true(bs_tagging_allowed(&tagging, true));
}

static void
ack_of_what_was_resent_is_no_sign_that_tags_pass(void **state)
{
	struct bs_tagging tagging = agreed();

	(void)state;
	/* one segment a message: tagged, lost, sent again without a tag, ACKed; twice */
	send_tagged(&tagging, 5000, 1);
	assert_false(resend(&tagging, 5000));
	assert_false(bs_tagging_acked(&tagging, 6000));
	send_tagged(&tagging, 6000, 1);
	assert_true(resend(&tagging, 6000));
}

static void
tagged_range_acked_between_two_resends_does_not_refuse(void **state)
{
	struct bs_tagging tagging = agreed();

	(void)state;
	for (uint32_t seq = 5000; seq < 5000 + 400 * MSS; seq += 4 * MSS) {
		send_tagged(&tagging, seq, 4);
		assert_false(resend(&tagging, seq)); /* lost at random */
		assert_false(bs_tagging_acked(&tagging, seq + 4 * MSS));
	}
	assert_true(bs_tagging_allowed(&tagging, true));
}

static void
two_random_losses_in_one_window_do_not_refuse_once_sacked(void **state)
{
	struct bs_tagging tagging = agreed();

	(void)state;
	send_tagged(&tagging, 5000, 10);
	/* segments 1 and 3 are lost; 2 and 4 to 10 are reported */
	bs_tagging_sacked(&tagging, 6000, 7000);
	bs_tagging_sacked(&tagging, 8000, 11000);
	assert_false(resend(&tagging, 5000));
	bs_tagging_sacked(&tagging, 8000, 15000);
	assert_false(resend(&tagging, 7000));
	assert_true(bs_tagging_allowed(&tagging, true));
	/* the same without a word between: two ranges */
	tagging = agreed();
	send_tagged(&tagging, 5000, 10);
	assert_false(resend(&tagging, 5000));
	assert_true(resend(&tagging, 7000));
}

static void
losses_below_full_tagged_packets_that_arrived_do_not_refuse(void **state)
{
	struct bs_tagging tagging = agreed();

	(void)state;
	send_tagged(&tagging, 5000, 20);
	/* segments 1, 3, 5 and 19 are lost; the sender resends three at once */
	bs_tagging_sacked(&tagging, 10000, 23000);
	assert_false(resend(&tagging, 5000));
	assert_false(resend(&tagging, 7000));
	assert_false(resend(&tagging, 9000));
	assert_false(
		resend(&tagging, 23000)); /* nothing behind it was seen: the first that counts */
	assert_true(bs_tagging_allowed(&tagging, true));
	assert_true(resend(&tagging, 24000));
}

/* A path whose MTU is less than it says: what is small gets through, what is full does not. */
static void
small_tagged_packets_that_arrive_do_not_excuse_the_loss_of_full_ones(void **state)
{
	struct bs_tagging tagging = agreed();

	(void)state;
	bs_tagging_tagged(&tagging, 4800, 5000);
	send_tagged(&tagging, 5000, 4);
	bs_tagging_tagged(&tagging, 9000, 9300);
	bs_tagging_tagged(&tagging, 9300, 9500);
	bs_tagging_sacked(&tagging, 9000, 9500);
	assert_false(resend(&tagging, 5000));
	assert_true(resend(&tagging, 6000));
}

static void
partial_ack_over_a_range_sent_once_does_not_refuse(void **state)
{
	struct bs_tagging tagging = agreed();

	(void)state;
	/* no SACK (RFC 6582): each partial ACK tells of the next hole */
	send_tagged(&tagging, 5000, 10);
	assert_false(resend(&tagging, 5000));
	assert_false(bs_tagging_acked(&tagging, 7000));
	assert_false(resend(&tagging, 7000));
	assert_false(bs_tagging_acked(&tagging, 15000));
	assert_true(bs_tagging_allowed(&tagging, true));
}

static void
path_that_loses_all_tags_refuses_also_after_a_tail_probe(void **state)
{
	struct bs_tagging tagging = agreed();

	(void)state;
	/* RFC 8985 7: the probe sends the last segment again, the timeout then the first */
	send_tagged(&tagging, 5000, 10);
	assert_false(resend(&tagging, 14000));
	bs_tagging_sacked(&tagging, 14000, 15000); /* the probe, without a tag, has arrived */
	assert_true(resend(&tagging, 5000));
}

static void
sack_of_resent_bytes_or_below_the_tagged_ones_says_nothing(void **state)
{
	struct bs_tagging tagging = agreed();

	(void)state;
	send_tagged(&tagging, 5000, 4);
	assert_false(resend(&tagging, 6000));
	bs_tagging_sacked(&tagging, 6000, 7000);
	bs_tagging_sacked(&tagging, 3000, 5000);
	bs_tagging_sacked(&tagging, 9000, 9500);
	assert_true(resend(&tagging, 8000));
	bs_tagging_sacked(&(struct bs_tagging){0}, 1, 2);
}

static void
resend_of_bytes_that_were_not_tagged_is_not_counted(void **state)
{
	struct bs_tagging tagging = agreed();

	(void)state;
	assert_false(resend(&tagging, 1000));
	send_tagged(&tagging, 5000, 2);
	assert_false(resend(&tagging, 4000));
	assert_false(resend(&tagging, 7000));
	assert_false(bs_tagging_resent(&tagging, 4500, 5500)); /* half of it: counted */
	assert_true(resend(&tagging, 6000));
}

static void
too_big_excuses_what_was_on_its_way_but_not_what_follows(void **state)
{
	struct bs_tagging tagging = agreed();

	(void)state;
	send_tagged(&tagging, 5000, 10);
	bs_tagging_too_big(&tagging);
	for (uint32_t seq = 5000; seq < 15000; seq += MSS)
		assert_false(resend(&tagging, seq));
	assert_true(bs_tagging_allowed(&tagging, true));
	/* excused bytes that arrive say nothing either */
	assert_false(bs_tagging_acked(&tagging, 15000));
	send_tagged(&tagging, 15000, 2);
	assert_false(resend(&tagging, 15000));
	assert_true(resend(&tagging, 16000));
	/* none on its way: nothing to excuse */
	tagging = agreed();
	bs_tagging_too_big(&tagging);
	send_tagged(&tagging, 5000, 2);
	assert_false(resend(&tagging, 5000));
	assert_true(resend(&tagging, 6000));
}

static void
old_ack_changes_nothing(void **state)
{
	struct bs_tagging tagging = agreed();

	(void)state;
	send_tagged(&tagging, 5000, 4);
	assert_false(resend(&tagging, 5000));
	assert_false(bs_tagging_acked(&tagging, 4000));
	assert_false(bs_tagging_acked(&tagging, 5000));
	assert_true(resend(&tagging, 6000));
}

static void
rules_hold_across_the_wrap_of_sequence_numbers(void **state)
{
	(void)state;
	for (uint32_t base = 0u - 12u * MSS; base != 2u * MSS; base += MSS) {
		struct bs_tagging tagging = agreed();

		send_tagged(&tagging, base, 10);
		assert_false(resend(&tagging, base));
		assert_false(bs_tagging_acked(&tagging, base + 3 * MSS));
		assert_false(resend(&tagging, base + 3 * MSS));
		bs_tagging_sacked(&tagging, base + 5 * MSS, base + 6 * MSS);
		assert_false(resend(&tagging, base + 4 * MSS));
		assert_false(resend(&tagging, base + 7 * MSS));
		assert_true(resend(&tagging, base + 9 * MSS));
	}
}

/* --- UDP ---------------------------------------------------------------------------- */

static void
datagram_flow_is_agreed_upon_once_the_peer_tags(void **state)
{
	struct bs_tagging tagging = {0};

	(void)state;
	assert_false(bs_tagging_allowed(&tagging, true));
	assert_true(bs_tagging_allowed(&tagging, false));
	bs_tagging_peer_tags(&tagging);
	assert_true(bs_tagging_allowed(&tagging, true));
	tagging.refused = 1;
	assert_false(bs_tagging_allowed(&tagging, true));
}

static void
request_of_the_last_three_is_known_again_and_so_is_its_rpc(void **state)
{
	struct bs_tagging tagging = {0};

	(void)state;
	for (uint32_t mark = 1; mark <= 4; mark++)
		assert_false(bs_tagging_asked(&tagging, mark, 100 + mark, false));
	assert_false(bs_tagging_is_again(&tagging, 104));
	assert_true(bs_tagging_asked(&tagging, 3, 203, false));
	assert_true(bs_tagging_is_again(&tagging, 203));
	assert_false(bs_tagging_is_again(&tagging, 103));
	assert_true(bs_tagging_asked(&tagging, 2, 202, false));
	assert_false(bs_tagging_asked(&tagging, 1, 201, false)); /* the fourth last: forgotten */
	assert_true(bs_tagging_asked(&tagging, 77, 1ull << 48 | 7, true)); /* said so */
	assert_true(bs_tagging_is_again(&tagging, 1ull << 48 | 7));
	assert_false(bs_tagging_is_again(&(struct bs_tagging){0}, 0));
}

static void
peer_that_asks_each_datagram_again_refuses_at_the_second(void **state)
{
	struct bs_tagging_peer peer = {0};

	(void)state;
	bs_tagging_peer_tagged(&peer);
	assert_false(bs_tagging_peer_again(&peer));
	bs_tagging_peer_tagged(&peer);
	assert_true(bs_tagging_peer_again(&peer));
}

static void
peer_that_asks_one_of_five_again_does_not_refuse_and_one_of_three_does(void **state)
{
	(void)state;
	for (unsigned every = 3; every <= 5; every += 2) {
		struct bs_tagging_peer peer = {0};
		bool refuses = false;

		for (unsigned i = 1; i <= 1000; i++) {
			bs_tagging_peer_tagged(&peer);
			if (i % every == 0)
				refuses |= bs_tagging_peer_again(&peer);
		}
		assert_int_equal(refuses, every == 3);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_announced_may_tag),
		cmocka_unit_test(peer_that_does_not_announce_is_not_tagged_and_does_not_refuse),
		cmocka_unit_test(mode_always_needs_no_agreement_and_announces_nothing),
		cmocka_unit_test(
			resent_syn_carries_no_announcement_and_refuses_if_only_it_is_answered),
		cmocka_unit_test(resent_syn_with_the_first_one_answered_does_not_refuse),
		cmocka_unit_test(resent_syn_ack_refuses_when_the_ack_comes),
		cmocka_unit_test(refused_flow_announces_nothing),
		cmocka_unit_test(many_syns_do_not_wrap_to_a_first_one),
		cmocka_unit_test(two_resent_ranges_with_nothing_acked_between_refuse),
		cmocka_unit_test(same_bytes_sent_a_third_time_are_one_range),
		cmocka_unit_test(ack_of_what_was_resent_is_no_sign_that_tags_pass),
		cmocka_unit_test(tagged_range_acked_between_two_resends_does_not_refuse),
		cmocka_unit_test(two_random_losses_in_one_window_do_not_refuse_once_sacked),
		cmocka_unit_test(losses_below_full_tagged_packets_that_arrived_do_not_refuse),
		cmocka_unit_test(
			small_tagged_packets_that_arrive_do_not_excuse_the_loss_of_full_ones),
		cmocka_unit_test(partial_ack_over_a_range_sent_once_does_not_refuse),
		cmocka_unit_test(path_that_loses_all_tags_refuses_also_after_a_tail_probe),
		cmocka_unit_test(sack_of_resent_bytes_or_below_the_tagged_ones_says_nothing),
		cmocka_unit_test(resend_of_bytes_that_were_not_tagged_is_not_counted),
		cmocka_unit_test(too_big_excuses_what_was_on_its_way_but_not_what_follows),
		cmocka_unit_test(old_ack_changes_nothing),
		cmocka_unit_test(rules_hold_across_the_wrap_of_sequence_numbers),
		cmocka_unit_test(datagram_flow_is_agreed_upon_once_the_peer_tags),
		cmocka_unit_test(request_of_the_last_three_is_known_again_and_so_is_its_rpc),
		cmocka_unit_test(peer_that_asks_each_datagram_again_refuses_at_the_second),
		cmocka_unit_test(
			peer_that_asks_one_of_five_again_does_not_refuse_and_one_of_three_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
