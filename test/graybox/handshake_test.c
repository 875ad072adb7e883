/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * May a flow be tagged? The announcement in handshakes, what is lowered to make
 * room for the shim, and when tagging is given up.
 */
#include "gb_shim.h"

#define PEER_REFUSES_S 600u

static const struct gb_setup negotiated = {.shim = NEGOTIATED};

/* The client's SYN and the service's answer pass, with or without announcement from the client. */
static void
open_flow(const struct gb *gb, struct gb_flow *flow, bool announced)
{
	struct frame in, out;

	gb_syn(&in, flow, GB_CLIENT, false, announced);
	flow->next[GB_CLIENT]++;
	gb_through(gb, GB_WIRE, &in, &out);
	gb_syn(&in, flow, GB_SERVER, true, false);
	flow->next[GB_SERVER]++;
	gb_through(gb, GB_LOCAL, &in, &out);
	gb_ack(&in, flow, GB_CLIENT);
	gb_through(gb, GB_WIRE, &in, &out);
}

static void
ask(const struct gb *gb, struct gb_flow *flow, uint32_t id)
{
	struct frame in, out;

	gb_message(&in, flow, GB_CLIENT, id, 100);
	gb_through(gb, GB_WIRE, &in, &out);
}

/* The response to a request passes: did it leave tagged? */
static bool
respond(const struct gb *gb, struct gb_flow *flow, uint32_t id)
{
	struct frame in, out;

	gb_message(&in, flow, GB_SERVER, id, 60);
	gb_through(gb, GB_LOCAL, &in, &out);
	if (out.n == in.n) {
		gb_assert_same(&in, &out);
		return false;
	}
	gb_assert_tagged(&in, &out);
	return true;
}

/* A request, which acknowledges all before it, and its response. */
static bool
is_tagged(const struct gb *gb, struct gb_flow *flow, uint32_t id)
{
	ask(gb, flow, id);
	return respond(gb, flow, id);
}

static unsigned
mss_of(const struct frame *frame)
{
	return gb_parse(frame).mss;
}

static bool
has_announcement(const struct frame *frame)
{
	return gb_parse(frame).tcp_options & BS_TCPOPT_ANNOUNCE;
}

/* --- announcing --------------------------------------------------------------------------- */

static void
a_peer_that_announced_is_answered_and_tagged_toward(void **state)
{
	struct gb *gb = gb_open(&negotiated);
	struct gb_flow flow = gb_flow(40000, 6379), same = flow;
	struct frame in, plain, out;

	(void)state;
	gb_syn(&in, &flow, GB_CLIENT, false, true);
	gb_syn(&plain, &same, GB_CLIENT, false, false);
	flow.next[GB_CLIENT]++;
	gb_through(gb, GB_WIRE, &in, &out);
	/* the service sees a SYN without announcement, its MSS less by the shim */
	assert_int_equal(out.n, plain.n);
	assert_int_equal(mss_of(&out), 1440);
	assert_true(gb_checksums_ok(&out));
	frame_set16(&plain, plain.l4 + 22, 1440);
	gb_checksums(&plain);
	gb_assert_same(&plain, &out);
	gb_syn(&in, &flow, GB_SERVER, true, false);
	flow.next[GB_SERVER]++;
	gb_through(gb, GB_LOCAL, &in, &out);
	assert_true(has_announcement(&out));
	assert_int_equal(mss_of(&out), 1460); /* nobody tags toward the service */
	assert_true(gb_checksums_ok(&out));
	gb_cut(&out, 20, BS_ANNOUNCE_BYTES);
	gb_assert_same(&in, &out);
	assert_true(is_tagged(gb, &flow, 1));
	assert_int_equal(gb_tag(gb, BS_TAG_ANNOUNCED), 1);
	assert_int_equal(gb_tag(gb, BS_TAG_MSS_CLAMPED), 1);
	gb_close_tags(gb);
}

static void
a_peer_that_did_not_announce_sees_nothing_of_us(void **state)
{
	struct gb *gb = gb_open(&negotiated);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame in, out;

	(void)state;
	gb_syn(&in, &flow, GB_CLIENT, false, false);
	flow.next[GB_CLIENT]++;
	gb_through(gb, GB_WIRE, &in, &out);
	gb_assert_same(&in, &out);
	gb_syn(&in, &flow, GB_SERVER, true, false);
	flow.next[GB_SERVER]++;
	gb_through(gb, GB_LOCAL, &in, &out);
	gb_assert_same(&in, &out);
	assert_false(is_tagged(gb, &flow, 1));
	assert_int_equal(gb_tag(gb, BS_TAG_NOT_NEGOTIATED), 1);
	assert_int_equal(gb_tag(gb, BS_TAG_ANNOUNCED), 0);
	assert_int_equal(gb_tag(gb, BS_TAG_MSS_CLAMPED), 0);
	gb_close_tags(gb);
}

/* Where the clients are on our side, our SYN announces, and what is tagged are requests. */
static void
our_own_syn_announces(void **state)
{
	struct gb *gb = gb_open(&negotiated);

	(void)state;
	for (unsigned answered = 0; answered < 2; answered++) {
		struct gb_flow flow = gb_flow((uint16_t)(40000 + answered), 6379);
		struct frame in, out;

		gb_syn(&in, &flow, GB_CLIENT, false, false);
		flow.next[GB_CLIENT]++;
		gb_through(gb, GB_LOCAL, &in, &out);
		assert_true(has_announcement(&out));
		assert_true(gb_checksums_ok(&out));
		gb_cut(&out, 20, BS_ANNOUNCE_BYTES);
		gb_assert_same(&in, &out);
		gb_syn(&in, &flow, GB_SERVER, true, answered);
		flow.next[GB_SERVER]++;
		gb_through(gb, GB_WIRE, &in, &out);
		assert_false(has_announcement(&out));
		assert_int_equal(mss_of(&out), answered ? 1440 : 1460);
		assert_true(gb_checksums_ok(&out));
		gb_message(&in, &flow, GB_CLIENT, 1, 100);
		gb_through(gb, GB_LOCAL, &in, &out);
		assert_int_equal(out.n, in.n + (answered ? BS_SHIM_OPTION_BYTES : 0));
	}
	gb_close_tags(gb);
}

static void
a_resent_syn_carries_no_announcement(void **state)
{
	struct gb *gb = gb_open(&negotiated);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame in, out;

	(void)state;
	gb_syn(&in, &flow, GB_CLIENT, false, false);
	gb_through(gb, GB_LOCAL, &in, &out);
	assert_true(has_announcement(&out));
	for (unsigned i = 0; i < 3; i++) {
		gb_syn(&in, &flow, GB_CLIENT, false, false);
		gb_through(gb, GB_LOCAL, &in, &out);
		gb_assert_same(&in, &out);
	}
	flow.next[GB_CLIENT]++;
	/* but the first one is answered: no harm done */
	gb_syn(&in, &flow, GB_SERVER, true, true);
	flow.next[GB_SERVER]++;
	gb_through(gb, GB_WIRE, &in, &out);
	gb_message(&in, &flow, GB_CLIENT, 1, 100);
	gb_through(gb, GB_LOCAL, &in, &out);
	gb_assert_tagged(&in, &out);
	assert_int_equal(gb_tag(gb, BS_TAG_PATH_REFUSES), 0);
	gb_close_tags(gb);
}

static void
a_path_that_answers_only_the_plain_syn_refuses_for_ten_minutes(void **state)
{
	struct gb *gb = gb_open(&negotiated);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame in, out;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		gb_syn(&in, &flow, GB_CLIENT, false, false);
		gb_through(gb, GB_LOCAL, &in, &out);
	}
	flow.next[GB_CLIENT]++;
	gb_syn(&in, &flow, GB_SERVER, true, false);
	flow.next[GB_SERVER]++;
	gb_through(gb, GB_WIRE, &in, &out);
	gb_assert_same(&in, &out);
	assert_int_equal(gb_tag(gb, BS_TAG_PATH_REFUSES), 1);
	gb_message(&in, &flow, GB_CLIENT, 1, 100);
	gb_through(gb, GB_LOCAL, &in, &out);
	gb_assert_same(&in, &out);
	/* nor is it announced to by the next connection, until the time is over */
	gb_time.now_ns += PEER_REFUSES_S * GB_S - 1;
	flow = gb_flow(40001, 6379);
	gb_syn(&in, &flow, GB_CLIENT, false, false);
	gb_through(gb, GB_LOCAL, &in, &out);
	gb_assert_same(&in, &out);
	gb_time.now_ns++;
	flow = gb_flow(40002, 6379);
	gb_syn(&in, &flow, GB_CLIENT, false, false);
	gb_through(gb, GB_LOCAL, &in, &out);
	assert_true(has_announcement(&out));
	gb_close_tags(gb);
}

static void
a_syn_without_room_is_left_as_it_is_and_the_flow_untagged(void **state)
{
	static const uint8_t full[40] = {2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3,
		3, 7, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
	struct gb *gb = gb_open(&negotiated);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame in, out;

	(void)state;
	gb_tcp(&in, &flow,
		&(struct gb_tcp){.from = GB_CLIENT,
			.flags = BS_TCP_SYN,
			.options = full,
			.option_bytes = sizeof(full)});
	flow.next[GB_CLIENT]++;
	gb_through(gb, GB_LOCAL, &in, &out);
	gb_assert_same(&in, &out);
	gb_syn(&in, &flow, GB_SERVER, true, true);
	flow.next[GB_SERVER]++;
	gb_through(gb, GB_WIRE, &in, &out);
	gb_message(&in, &flow, GB_CLIENT, 1, 100);
	gb_through(gb, GB_LOCAL, &in, &out);
	gb_assert_same(&in, &out);
	assert_int_equal(gb_tag(gb, BS_TAG_ANNOUNCED), 0);
	gb_close_tags(gb);
}

static void
always_needs_no_announcement_but_clamps(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.shim = ALWAYS});
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame in, out;

	(void)state;
	gb_syn(&in, &flow, GB_CLIENT, false, false);
	flow.next[GB_CLIENT]++;
	gb_through(gb, GB_WIRE, &in, &out);
	assert_int_equal(mss_of(&out), 1440);
	gb_syn(&in, &flow, GB_SERVER, true, false);
	flow.next[GB_SERVER]++;
	gb_through(gb, GB_LOCAL, &in, &out);
	gb_assert_same(&in, &out);
	assert_true(is_tagged(gb, &flow, 1));
	gb_close_tags(gb);
}

static void
off_is_off(void **state)
{
	static const char *const shims[] = {"\"tag\": \"off\"", ALWAYS ", \"tcp\": \"off\""};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct gb *gb = gb_open(&(struct gb_setup){.shim = shims[i]});
		struct gb_flow flow = gb_flow(40000, 6379);
		struct frame in, out;

		gb_syn(&in, &flow, GB_CLIENT, false, true);
		flow.next[GB_CLIENT]++;
		gb_through(gb, GB_WIRE, &in, &out);
		gb_assert_same(&in, &out);
		gb_syn(&in, &flow, GB_SERVER, true, false);
		flow.next[GB_SERVER]++;
		gb_through(gb, GB_LOCAL, &in, &out);
		gb_assert_same(&in, &out);
		assert_false(is_tagged(gb, &flow, 1));
		for (unsigned k = 0; k < BS_TAG_COUNT; k++)
			assert_int_equal(gb_tag(gb, k), 0);
		gb_close_tags(gb);
	}
}

/* --- giving up -------------------------------------------------------------------------------- */

/* The service sends the same bytes once more. */
static void
resend(const struct gb *gb, struct gb_flow *flow, uint32_t id, size_t bytes)
{
	struct frame in, out;

	flow->next[GB_SERVER] -= (uint32_t)bytes;
	gb_message(&in, flow, GB_SERVER, id, bytes);
	gb_through(gb, GB_LOCAL, &in, &out);
	gb_assert_same(&in, &out);
}

static void
what_was_sent_once_is_never_tagged_again(void **state)
{
	struct gb *gb = gb_open(&negotiated);
	struct gb_flow flow = gb_flow(40000, 6379);

	(void)state;
	open_flow(gb, &flow, true);
	assert_true(is_tagged(gb, &flow, 1));
	for (unsigned i = 0; i < 3; i++)
		resend(gb, &flow, 1, 60);
	assert_int_equal(gb_tag(gb, BS_TAG_RESENT), 3);
	/* one range, however often, is no sign */
	assert_int_equal(gb_tag(gb, BS_TAG_PATH_REFUSES), 0);
	assert_true(is_tagged(gb, &flow, 2));
	gb_close_tags(gb);
}

static void
two_tagged_ranges_resent_are_a_path_that_refuses(void **state)
{
	struct gb *gb = gb_open(&negotiated);
	struct gb_flow flow = gb_flow(40000, 6379), next = gb_flow(40001, 6379);
	struct frame in, out;

	(void)state;
	open_flow(gb, &flow, true);
	ask(gb, &flow, 1);
	ask(gb, &flow, 2);
	assert_true(respond(gb, &flow, 1));
	assert_true(respond(gb, &flow, 2));
	flow.next[GB_SERVER] -= 60;
	resend(gb, &flow, 1, 60);
	assert_int_equal(gb_tag(gb, BS_TAG_PATH_REFUSES), 0);
	flow.next[GB_SERVER] += 60;
	resend(gb, &flow, 2, 60);
	assert_int_equal(gb_tag(gb, BS_TAG_PATH_REFUSES), 1);
	assert_false(is_tagged(gb, &flow, 3));
	/* the peer's other connections go untagged from their handshake on */
	gb_syn(&in, &next, GB_CLIENT, false, true);
	next.next[GB_CLIENT]++;
	gb_through(gb, GB_WIRE, &in, &out);
	assert_int_equal(mss_of(&out), 1460);
	gb_syn(&in, &next, GB_SERVER, true, false);
	next.next[GB_SERVER]++;
	gb_through(gb, GB_LOCAL, &in, &out);
	gb_assert_same(&in, &out);
	assert_false(is_tagged(gb, &next, 1));
	gb_close_tags(gb);
}

/* The client ACKs nothing from `begin` on, but reports to have got responses 2 to `last`. */
static void
report(const struct gb *gb, struct gb_flow *flow, uint32_t begin, uint32_t last)
{
	struct frame options = {.n = 0}, in, out;

	frame_put(&options, "\1\1\5\12", 4); /* SACK, one block (RFC 2018) */
	frame_u32(&options, begin + 60);
	frame_u32(&options, begin + last * 60);
	flow->next[GB_SERVER] = begin;
	gb_tcp(&in, flow,
		&(struct gb_tcp){.from = GB_CLIENT,
			.flags = BS_TCP_ACK,
			.options = options.bytes,
			.option_bytes = options.n});
	gb_through(gb, GB_WIRE, &in, &out);
}

/* Responses 1 and 5 of six are lost, with tags, and others arrive with theirs: no more than luck.
 */
static void
random_loss_in_one_window_is_no_path_that_refuses(void **state)
{
	struct gb *gb = gb_open(&negotiated);
	struct gb_flow flow = gb_flow(40000, 6379);
	uint32_t begin;

	(void)state;
	open_flow(gb, &flow, true);
	for (uint32_t id = 1; id <= 6; id++)
		ask(gb, &flow, id);
	begin = flow.next[GB_SERVER];
	for (uint32_t id = 1; id <= 6; id++)
		assert_true(respond(gb, &flow, id));
	report(gb, &flow, begin, 3);
	flow.next[GB_SERVER] = begin + 60;
	resend(gb, &flow, 1, 60);
	report(gb, &flow, begin, 4);
	flow.next[GB_SERVER] = begin + 5 * 60;
	resend(gb, &flow, 5, 60);
	assert_int_equal(gb_tag(gb, BS_TAG_RESENT), 2);
	assert_int_equal(gb_tag(gb, BS_TAG_PATH_REFUSES), 0);
	flow.next[GB_SERVER] = begin + 6 * 60;
	assert_true(is_tagged(gb, &flow, 7));
	gb_close_tags(gb);
}

static void
an_ack_of_tagged_bytes_between_is_a_path_that_carries_them(void **state)
{
	struct gb *gb = gb_open(&negotiated);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame in, out;

	(void)state;
	open_flow(gb, &flow, true);
	for (uint32_t id = 1; id < 9; id++) {
		/* one is resent, the next arrives */
		assert_true(is_tagged(gb, &flow, id));
		if (id % 2 == 1)
			resend(gb, &flow, id, 60);
		gb_ack(&in, &flow, GB_CLIENT);
		gb_through(gb, GB_WIRE, &in, &out);
	}
	assert_int_equal(gb_tag(gb, BS_TAG_PATH_REFUSES), 0);
	gb_close_tags(gb);
}

/* --- ICMP ----------------------------------------------------------------------------------------
 */

/* A router tells the sender of a response that its packet of a flow was too big for `mtu`. */
static void
too_big(struct frame *frame, const struct gb_flow *flow, unsigned mtu)
{
	struct gb_flow quoted = *flow;
	struct frame packet;
	uint32_t sum = 0, icmp;

	quoted.next[GB_SERVER] -= 60;
	gb_data(&packet, &quoted, GB_SERVER, NULL, 0);
	frame_ether(frame, 0x0800);
	frame_ipv4(frame, 1, 0x0a0000fe, 0x0a000002);
	icmp = frame->n;
	frame_u16(frame, 0x0304);
	frame_u16(frame, 0);
	frame_u16(frame, 0);
	frame_u16(frame, mtu);
	frame_put(frame, packet.bytes + packet.l3, 28);
	frame_end_ip(frame);
	for (uint32_t i = icmp; i < frame->n; i += 2)
		sum += (uint32_t)(frame->bytes[i] << 8 | frame->bytes[i + 1]);
	while (sum > 0xffff)
		sum = (sum & 0xffff) + (sum >> 16);
	frame_set16(frame, icmp + 2, ~sum & 0xffff);
}

static void
a_too_big_is_lowered_by_the_shim(void **state)
{
	struct gb *gb = gb_open(&negotiated);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame in, out, expected;

	(void)state;
	open_flow(gb, &flow, true);
	ask(gb, &flow, 1);
	ask(gb, &flow, 2);
	assert_true(respond(gb, &flow, 1));
	assert_true(respond(gb, &flow, 2));
	too_big(&in, &flow, 1400);
	too_big(&expected, &flow, 1380);
	gb_through(gb, GB_WIRE, &in, &out);
	gb_assert_same(&expected, &out);
	assert_int_equal(gb_tag(gb, BS_TAG_PTB_LOWERED), 1);
	/* what is resent because of it is no sign of a path that refuses */
	flow.next[GB_SERVER] -= 60;
	resend(gb, &flow, 1, 60);
	flow.next[GB_SERVER] += 60;
	resend(gb, &flow, 2, 60);
	assert_int_equal(gb_tag(gb, BS_TAG_PATH_REFUSES), 0);
	gb_close_tags(gb);
}

static void
a_too_big_of_a_flow_that_is_not_tagged_is_not_lowered(void **state)
{
	struct gb *gb = gb_open(&negotiated);
	struct gb_flow flow = gb_flow(40000, 6379), unknown = gb_flow(40001, 6379);
	struct frame in, out;

	(void)state;
	open_flow(gb, &flow, false);
	assert_false(is_tagged(gb, &flow, 1));
	too_big(&in, &flow, 1400);
	gb_through(gb, GB_WIRE, &in, &out);
	gb_assert_same(&in, &out);
	too_big(&in, &unknown, 1400);
	gb_through(gb, GB_WIRE, &in, &out);
	gb_assert_same(&in, &out);
	assert_int_equal(gb_tag(gb, BS_TAG_PTB_LOWERED), 0);
	gb_close_tags(gb);
}

/* The error comes from a router, but is of the flow: it goes to the lcore that knows it. */
static void
a_too_big_finds_the_flows_owner(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.shim = ALWAYS, .lcores = 2});
	struct frame in, out, expected;

	(void)state;
	for (uint16_t port = 40000; port < 40016; port++) {
		struct gb_flow flow = gb_flow(port, 6379);

		gb_handshake(gb, &flow);
		too_big(&in, &flow, 1400);
		too_big(&expected, &flow, 1380);
		gb_inject(gb, GB_WIRE, &in);
		gb_turn(gb);
		gb_turn(gb);
		assert_true(gb_take(gb, GB_LOCAL, &out));
		gb_assert_same(&expected, &out);
	}
	assert_in_range(bs_tracker_flows(gb->dataplane->lcores[0]->tracker), 1, 15);
	gb_close_tags(gb);
}

static void
every_counter_of_these_has_moved(void **state)
{
	(void)state;
	for (unsigned i = 0; i < BS_TAG_COUNT; i++) {
		if (gb_tag_is_of_handshake(i) && gb_tags_seen[i] == 0)
			fail_msg("nothing counts %s", bs_tag_counter_key(i));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		GB_TEST(a_peer_that_announced_is_answered_and_tagged_toward),
		GB_TEST(a_peer_that_did_not_announce_sees_nothing_of_us),
		GB_TEST(our_own_syn_announces),
		GB_TEST(a_resent_syn_carries_no_announcement),
		GB_TEST(a_path_that_answers_only_the_plain_syn_refuses_for_ten_minutes),
		GB_TEST(a_syn_without_room_is_left_as_it_is_and_the_flow_untagged),
		GB_TEST(always_needs_no_announcement_but_clamps),
		GB_TEST(off_is_off),
		GB_TEST(what_was_sent_once_is_never_tagged_again),
		GB_TEST(two_tagged_ranges_resent_are_a_path_that_refuses),
		GB_TEST(random_loss_in_one_window_is_no_path_that_refuses),
		GB_TEST(an_ack_of_tagged_bytes_between_is_a_path_that_carries_them),
		GB_TEST(a_too_big_is_lowered_by_the_shim),
		GB_TEST(a_too_big_of_a_flow_that_is_not_tagged_is_not_lowered),
		GB_TEST(a_too_big_finds_the_flows_owner),
		cmocka_unit_test(every_counter_of_these_has_moved),
	};

	return cmocka_run_group_tests_name(
		"graybox_handshake", tests, gb_group_setup, gb_group_teardown);
}
