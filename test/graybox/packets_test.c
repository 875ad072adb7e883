/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames that are not plain, by hand: tags that hardware took out, headers and
 * messages spread over segments, chains that lie, lengths that are not there.
 * What leaves is compared byte by byte with what was on the wire.
 */
#include "gb_shim.h"

#define BIG_BYTES 90000u

static uint64_t
frames(const struct gb *gb, enum bs_frame_counter counter)
{
	return gb_snapshot(gb)->frame[counter];
}

static uint64_t
parsed(const struct gb *gb, enum bs_parse parse)
{
	return gb_snapshot(gb)->parse[parse];
}

/* It comes in by a port as this mbuf and leaves by the other as these bytes. */
static void
assert_leaves_as(
	const struct gb *gb, unsigned port, struct rte_mbuf *mbuf, const void *bytes, size_t n)
{
	static uint8_t out[BIG_BYTES];
	struct rte_mbuf *left = NULL;
	size_t at = 0;

	gb_turn(gb);
	gb_inject_mbuf(gb, port, mbuf);
	gb_turn(gb);
	left = gb_take_mbuf(gb, !port);
	assert_non_null(left);
	assert_int_equal(left->pkt_len, n);
	for (const struct rte_mbuf *m = left; m != NULL; m = m->next) {
		assert_true(at + m->data_len <= sizeof(out));
		memcpy(out + at, rte_pktmbuf_mtod(m, const void *), m->data_len);
		at += m->data_len;
	}
	rte_pktmbuf_free(left);
	assert_int_equal(at, n);
	assert_memory_equal(out, bytes, n);
}

/* --- VLAN tags ------------------------------------------------------------------------- */

/* As a NIC that strips hands it up: `tags` of the frame's tags are in the mbuf. */
static struct rte_mbuf *
stripped(const struct gb *gb, const struct frame *frame, bool outer, bool inner)
{
	const unsigned first = (unsigned)(frame->bytes[14] << 8 | frame->bytes[15]);
	const unsigned second = (unsigned)(frame->bytes[18] << 8 | frame->bytes[19]);
	const unsigned bytes = (outer + inner) * 4;
	struct frame bare = *frame;
	struct rte_mbuf *mbuf;

	memmove(bare.bytes + 12, bare.bytes + 12 + bytes, bare.n - 12 - bytes);
	bare.n -= bytes;
	mbuf = gb_mbuf(gb, bare.bytes, bare.n);
	mbuf->ol_flags |= RTE_MBUF_F_RX_VLAN;
	mbuf->vlan_tci = (uint16_t)(outer ? second : first);
	if (outer) {
		mbuf->ol_flags |= RTE_MBUF_F_RX_QINQ | RTE_MBUF_F_RX_QINQ_STRIPPED;
		mbuf->vlan_tci_outer = (uint16_t)first;
	}
	if (inner)
		mbuf->ol_flags |= RTE_MBUF_F_RX_VLAN_STRIPPED;
	return mbuf;
}

/* A second tag around the first, 802.1ad. */
static void
double_tag(struct frame *frame, unsigned tci)
{
	memmove(frame->bytes + 16, frame->bytes + 12, frame->n - 12);
	frame_set16(frame, 12, 0x88a8);
	frame_set16(frame, 14, tci);
	frame->n += 4;
	frame->l3 += 4;
	frame->l4 += 4;
}

static void
a_tag_that_hardware_took_out_is_part_of_the_flow_and_leaves_with_it(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame frame;

	(void)state;
	gb_connect(gb);
	flow.vlan = 0x6005; /* ID 5, priority 3 */
	gb_handshake(gb, &flow);
	gb_message(&frame, &flow, GB_CLIENT, 1, 100);
	assert_leaves_as(gb, GB_WIRE, stripped(gb, &frame, false, true), frame.bytes, frame.n);
	gb_message(&frame, &flow, GB_SERVER, 1, 60);
	assert_leaves_as(gb, GB_LOCAL, gb_mbuf(gb, frame.bytes, frame.n), frame.bytes, frame.n);
	gb_ack(&frame, &flow, GB_CLIENT);
	assert_leaves_as(gb, GB_WIRE, stripped(gb, &frame, false, true), frame.bytes, frame.n);
	gb_collect(gb, 1);
	assert_int_equal(gb_rpc(gb, 0).rpc->outcome, BS_OUTCOME_ANSWERED);
	assert_int_equal(gb_rpc(gb, 0).rpc->ends.vlan[0], 5);
	assert_int_equal(gb_snapshot(gb)->track[BS_TRACK_FLOWS_CREATED], 1);
	/* the same addresses and ports in another VLAN are another flow */
	flow.vlan = 6;
	gb_message(&frame, &flow, GB_CLIENT, 2, 100);
	assert_leaves_as(gb, GB_WIRE, stripped(gb, &frame, false, true), frame.bytes, frame.n);
	assert_int_equal(gb_snapshot(gb)->track[BS_TRACK_FLOWS_CREATED], 2);
	assert_int_equal(frames(gb, BS_FRAME_VLAN_RESTORED), 3);
	gb_close(gb);
}

static void
of_two_tags_both_or_the_outer_one_are_put_back(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame frame;

	(void)state;
	flow.vlan = 5;
	for (unsigned inner = 0; inner < 2; inner++) {
		gb_message(&frame, &flow, GB_CLIENT, 1, 100);
		double_tag(&frame, 0x2064);
		assert_leaves_as(
			gb, GB_WIRE, stripped(gb, &frame, true, inner), frame.bytes, frame.n);
		gb_arp(&frame); /* what is no IP is treated the same */
		memmove(frame.bytes + 16, frame.bytes + 12, frame.n - 12);
		frame_set16(&frame, 12, 0x8100);
		frame_set16(&frame, 14, 5);
		frame.n += 4;
		double_tag(&frame, 0x2064);
		assert_leaves_as(
			gb, GB_WIRE, stripped(gb, &frame, true, inner), frame.bytes, frame.n);
	}
	assert_int_equal(gb_snapshot(gb)->track[BS_TRACK_FLOWS_CREATED], 1);
	assert_int_equal(frames(gb, BS_FRAME_VLAN_RESTORED), 4);
	gb_close(gb);
}

static void
a_tag_that_finds_no_room_ends_the_packet_with_a_name(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct rte_mbuf *mbuf, *other;
	struct frame frame;

	(void)state;
	flow.vlan = 5;
	gb_message(&frame, &flow, GB_CLIENT, 1, 100);
	mbuf = stripped(gb, &frame, false, true);
	rte_pktmbuf_prepend(mbuf, rte_pktmbuf_headroom(mbuf));
	gb_inject_mbuf(gb, GB_WIRE, mbuf);
	mbuf = stripped(gb, &frame, false, true);
	rte_mbuf_refcnt_update(mbuf, 1);
	gb_inject_mbuf(gb, GB_WIRE, mbuf);
	gb_turn(gb);
	assert_int_equal(gb_reason(gb, BS_REASON_VLAN_LOST), 2);
	assert_int_equal(gb_drain(gb, GB_LOCAL), 0);
	rte_pktmbuf_free(mbuf);
	/* too short for any tag */
	for (unsigned n = 0; n < 14; n++) {
		mbuf = gb_mbuf(gb, frame.bytes, n);
		mbuf->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
		gb_inject_mbuf(gb, GB_WIRE, mbuf);
	}
	gb_turn(gb);
	assert_int_equal(gb_reason(gb, BS_REASON_RUNT), 14);
	/* addresses in two segments */
	other = stripped(gb, &frame, false, true);
	mbuf = gb_chain(gb, rte_pktmbuf_mtod(other, const void *), other->pkt_len, 5);
	mbuf->ol_flags = other->ol_flags;
	mbuf->vlan_tci = other->vlan_tci;
	rte_pktmbuf_free(other);
	assert_leaves_as(gb, GB_WIRE, mbuf, frame.bytes, frame.n);
	gb_close(gb);
}

/* --- headers and messages over segments ---------------------------------------------------- */

static void
headers_cut_anywhere_are_followed_tagged_and_taken_off_again(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.shim = ALWAYS});
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame frame, out;
	size_t pieces = 0;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	for (size_t piece = 1; piece < 60; piece++, pieces++) {
		gb_message(&frame, &flow, GB_CLIENT, (uint32_t)piece, 60);
		assert_leaves_as(gb, GB_WIRE, gb_chain(gb, frame.bytes, frame.n, piece),
			frame.bytes, frame.n);
		gb_message(&frame, &flow, GB_SERVER, (uint32_t)piece, 61);
		gb_inject_mbuf(gb, GB_LOCAL, gb_chain(gb, frame.bytes, frame.n, piece));
		gb_turn(gb);
		assert_true(gb_take(gb, GB_WIRE, &out));
		gb_assert_tagged(&frame, &out);
		/* comes in again, in as many pieces: the shim of another instance */
		gb_inject_mbuf(gb, GB_WIRE, gb_chain(gb, out.bytes, out.n, piece));
		gb_turn(gb);
		assert_true(gb_take(gb, GB_LOCAL, &out));
		gb_assert_same(&frame, &out);
	}
	gb_ack(&frame, &flow, GB_CLIENT);
	gb_pass(gb, GB_WIRE, &frame);
	gb_collect(gb, 2);
	assert_int_equal(gb_tag(gb, BS_TAG_TAGGED), pieces);
	assert_int_equal(gb_tag(gb, BS_TAG_UNTAGGED), pieces);
	gb_close(gb);
}

static void
headers_that_cannot_be_put_into_one_segment_pass_unchanged(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.shim = ALWAYS});
	struct gb_flow flow = gb_flow(40000, 6379);
	struct rte_mbuf *mbuf;
	struct frame frame;

	(void)state;
	gb_message(&frame, &flow, GB_CLIENT, 1, 600);
	for (unsigned i = 0; i < 3; i++) {
		mbuf = gb_chain(gb, frame.bytes, frame.n, 30);
		if (i == 0) { /* no tailroom */
			mbuf->data_off = (uint16_t)(mbuf->buf_len - 30);
			memcpy(rte_pktmbuf_mtod(mbuf, void *), frame.bytes, 30);
		} else if (i == 1) { /* somebody else holds the first segment */
			rte_mbuf_refcnt_update(mbuf, 1);
		} else { /* or the second */
			rte_mbuf_refcnt_update(mbuf->next, 1);
		}
		struct rte_mbuf *held = i == 1 ? mbuf : mbuf->next;

		gb_turn(gb);
		gb_inject_mbuf(gb, GB_WIRE, mbuf);
		gb_turn(gb);
		struct frame out;

		assert_true(gb_take(gb, GB_LOCAL, &out));
		gb_assert_same(&frame, &out);
		if (i > 0)
			rte_pktmbuf_free_seg(held);
	}
	assert_int_equal(parsed(gb, BS_PARSE_SNAPPED), 3);
	gb_close(gb);
}

/* A message of `bytes` in one TCP segment over IPv4, total length as given; returns the frame's. */
static uint32_t
big_frame(uint8_t *out, struct gb_flow *flow, unsigned from, uint32_t id, uint32_t bytes)
{
	struct frame frame;
	uint32_t header, total;

	gb_tcp(&frame, flow, &(struct gb_tcp){.from = from, .flags = BS_TCP_ACK | BS_TCP_PSH});
	header = frame.n;
	total = header - 14 + bytes;
	frame_set16(&frame, frame.l3 + 2, total > UINT16_MAX ? 0 : total);
	frame_u32(&frame, bytes);
	frame_u32(&frame, id);
	memcpy(out, frame.bytes, frame.n);
	memset(out + frame.n, 'b', header + bytes - frame.n);
	flow->next[from] += bytes;
	return header + bytes;
}

static void
a_message_of_64_kib_in_31_segments_reaches_the_framer(void **state)
{
	static uint8_t big[BIG_BYTES];
	struct gb *gb = gb_open(&(struct gb_setup){.shim = ALWAYS});
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame frame;
	uint32_t n;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	n = big_frame(big, &flow, GB_CLIENT, 1, 65172); /* 65226 bytes, as in pains.md L4 */
	assert_int_equal(n, 65226);
	assert_leaves_as(gb, GB_WIRE, gb_chain(gb, big, n, 2048), big, n);
	/* a second message begins in the last bytes of the last segment */
	n = big_frame(big, &flow, GB_SERVER, 1, 65000 - 8);
	memcpy(big + n, "\0\0\0\x3c\0\0\0\x02", 8);
	big[16] = (65000 + 40) >> 8;
	big[17] = (65000 + 40) & 0xff;
	flow.next[GB_SERVER] += 8;
	gb_message(&frame, &flow, GB_CLIENT, 2, 60);
	gb_pass(gb, GB_WIRE, &frame);
	gb_drain(gb, GB_LOCAL);
	assert_leaves_as(gb, GB_LOCAL, gb_chain(gb, big, n + 8, 2048), big, n + 8);
	memset(&frame, 'x', 52);
	gb_data(&frame, &flow, GB_SERVER, big + 100, 52);
	gb_pass(gb, GB_LOCAL, &frame);
	gb_ack(&frame, &flow, GB_CLIENT);
	gb_pass(gb, GB_WIRE, &frame);
	gb_collect(gb, 2);
	assert_int_equal(gb_rpc(gb, 0).rpc->request_bytes, 65172);
	assert_int_equal(gb_rpc(gb, 0).rpc->response_bytes, 65000 - 8);
	assert_int_equal(gb_rpc(gb, 1).rpc->response_bytes, 60);
	assert_int_equal(gb_tag(gb, BS_TAG_GSO), 1);
	gb_close(gb);
}

static void
ip_total_length_0_takes_the_frames_and_stays_untagged(void **state)
{
	static uint8_t big[BIG_BYTES];
	struct gb *gb = gb_open(&(struct gb_setup){.shim = ALWAYS});
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame frame;
	uint32_t n;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	/* BIG TCP over IPv4: 80066 bytes, as in the capture of pains.md L3 */
	n = big_frame(big, &flow, GB_CLIENT, 1, 80012);
	assert_int_equal(n, 80066);
	assert_leaves_as(gb, GB_WIRE, gb_chain(gb, big, n, 2000), big, n);
	/* segmentation offload leaves it 0 in a short one, too */
	gb_message(&frame, &flow, GB_SERVER, 1, 60);
	frame_set16(&frame, frame.l3 + 2, 0);
	assert_leaves_as(gb, GB_LOCAL, gb_mbuf(gb, frame.bytes, frame.n), frame.bytes, frame.n);
	gb_ack(&frame, &flow, GB_CLIENT);
	gb_pass(gb, GB_WIRE, &frame);
	gb_collect(gb, 2);
	assert_int_equal(gb_rpc(gb, 0).rpc->request_bytes, 80012);
	assert_int_equal(gb_rpc(gb, 0).rpc->response_bytes, 60);
	assert_int_equal(gb_tag(gb, BS_TAG_NO_ROOM), 1);
	assert_int_equal(gb_tag(gb, BS_TAG_TAGGED), 0);
	gb_close(gb);
}

static void
a_chain_shorter_than_it_says_is_counted_and_not_walked(void **state)
{
	static uint8_t big[BIG_BYTES];
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct rte_mbuf *mbuf;

	(void)state;
	big_frame(big, &flow, GB_CLIENT, 1, 80012);
	mbuf = gb_chain(gb, big, 14530, 2048); /* 80066 cut to 16 bits: pains.md L3 */
	mbuf->pkt_len = 80066;
	gb_inject_mbuf(gb, GB_WIRE, mbuf);
	gb_turn(gb);
	assert_int_equal(gb_reason(gb, BS_REASON_BAD_CHAIN), 1);
	assert_int_equal(gb_drain(gb, GB_LOCAL), 0);
	gb_close(gb);
}

static void
frames_of_no_bytes_are_runts(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct rte_mbuf *mbuf;

	(void)state;
	gb_inject_mbuf(gb, GB_WIRE, gb_mbuf(gb, "", 0));
	mbuf = gb_mbuf(gb, "", 0);
	rte_pktmbuf_chain(mbuf, gb_mbuf(gb, "", 0));
	gb_inject_mbuf(gb, GB_LOCAL, mbuf);
	gb_turn(gb);
	assert_int_equal(gb_reason(gb, BS_REASON_RUNT), 2);
	gb_close(gb);
}

static void
extension_headers_are_passed_over_and_the_shim_goes_behind_them(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.shim = ALWAYS,
		.services = "{\"name\": \"k6\", \"address\": \"2001:db8::2\", \"port\": 6379,"
			    " \"protocol\": \"unit\"}"});
	struct frame frame, out, back;
	uint64_t sum = 0;

	(void)state;
	frame_ether(&frame, 0x86dd);
	frame_ipv6(&frame, 0, 1, 2);
	frame_put(&frame, "\x3c\0\x01\x04\0\0\0\0", 8);			   /* hop-by-hop: PadN */
	frame_put(&frame, "\x2c\x01\x01\x0c\0\0\0\0\0\0\0\0\0\0\0\0", 16); /* destination */
	frame_put(&frame, "\x06\0\0\0\x12\x34\x56\x78", 8);		   /* atomic fragment */
	frame_tcp(&frame, 40000, 6379, BS_TCP_ACK, NULL, 0);
	frame_put(&frame, "\0\0\0\x20\0\0\0\x07", 8);
	frame_fill(&frame, 'x', 24);
	frame_end_ip(&frame);
	for (uint32_t i = frame.l3 + 8; i < frame.l3 + 40; i++)
		sum += frame.bytes[i] << ((i - frame.l3) % 2 == 0 ? 8 : 0);
	sum += 6 + 52;
	for (uint32_t i = frame.l4; i < frame.n; i++)
		sum += frame.bytes[i] << ((i - frame.l4) % 2 == 0 ? 8 : 0);
	while (sum > 0xffff)
		sum = (sum & 0xffff) + (sum >> 16);
	frame_set16(&frame, frame.l4 + 16, (unsigned)sum ^ 0xffff);
	/* the client is on this side, so that its request is tagged */
	gb_through(gb, GB_LOCAL, &frame, &out);
	assert_int_equal(out.n, frame.n + BS_SHIM_OPTION_BYTES);
	assert_int_equal(gb_parse(&out).shim, frame.l4 + 20);
	assert_true(gb_checksums_ok(&out));
	gb_through(gb, GB_WIRE, &out, &back);
	gb_assert_same(&frame, &back);
	gb_close(gb);
}

/* --- what a port can send ------------------------------------------------------------------- */

static void
a_frame_beyond_the_mtu_ends_with_a_name_and_its_rpc_knows(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct bs_port *local = &gb->dataplane->ports[GB_LOCAL];
	struct bs_rpc_view rpc;
	struct frame frame;

	(void)state;
	gb_connect(gb);
	local->frame_max = 1514;
	local->free_tags = 1;
	gb_handshake(gb, &flow);
	gb_message(&frame, &flow, GB_CLIENT, 1, 1460);
	assert_leaves_as(gb, GB_WIRE, gb_mbuf(gb, frame.bytes, frame.n), frame.bytes, frame.n);
	gb_message(&frame, &flow, GB_CLIENT, 2, 1461);
	gb_pass(gb, GB_WIRE, &frame);
	assert_int_equal(gb_reason(gb, BS_REASON_TX_TOO_LONG), 1);
	assert_int_equal(gb_drain(gb, GB_LOCAL), 0);
	gb_run(gb, GB_T0 + 100 * GB_MS, 50 * GB_US);
	/* resent in two */
	flow.next[GB_CLIENT] -= 1461;
	for (unsigned i = 0; i < 2; i++) {
		struct frame part;

		gb_data(&part, &flow, GB_CLIENT, frame.bytes + 54 + i * 1400, i == 0 ? 1400 : 61);
		gb_pass(gb, GB_WIRE, &part);
	}
	gb_message(&frame, &flow, GB_SERVER, 1, 60);
	gb_pass(gb, GB_LOCAL, &frame);
	gb_message(&frame, &flow, GB_SERVER, 2, 60);
	gb_pass(gb, GB_LOCAL, &frame);
	gb_ack(&frame, &flow, GB_CLIENT);
	gb_pass(gb, GB_WIRE, &frame);
	gb_collect(gb, 2);
	rpc = gb_rpc(gb, 1);
	assert_int_equal(rpc.segments[0].buffer, gb_buffer(gb, "local.tx"));
	assert_int_equal(rpc.segments[0].cause, BS_CAUSE_DROP);
	assert_int_equal(rpc.segments[0].detail, BS_DETAIL_FIRST_REASON + BS_REASON_TX_TOO_LONG);
	gb_drain(gb, GB_LOCAL);
	/* one tag goes on top, a second does not */
	flow.vlan = 5;
	gb_message(&frame, &flow, GB_CLIENT, 3, 1460);
	assert_leaves_as(gb, GB_WIRE, gb_mbuf(gb, frame.bytes, frame.n), frame.bytes, frame.n);
	double_tag(&frame, 100);
	gb_inject(gb, GB_WIRE, &frame);
	gb_turn(gb);
	assert_int_equal(gb_reason(gb, BS_REASON_TX_TOO_LONG), 2);
	gb_close(gb);
}

static void
a_driver_that_sends_no_chains_gets_none(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct bs_port *local = &gb->dataplane->ports[GB_LOCAL];
	struct rte_mbuf *mbuf, *left = NULL;
	struct frame frame;

	(void)state;
	local->sends_chains = false;
	gb_message(&frame, &flow, GB_CLIENT, 1, 1400);
	gb_inject_mbuf(gb, GB_WIRE, gb_chain(gb, frame.bytes, frame.n, 100));
	gb_turn(gb);
	left = gb_take_mbuf(gb, GB_LOCAL);
	assert_non_null(left);
	assert_int_equal(left->nb_segs, 1);
	assert_int_equal(left->data_len, frame.n);
	assert_memory_equal(rte_pktmbuf_mtod(left, const void *), frame.bytes, frame.n);
	rte_pktmbuf_free(left);
	assert_int_equal(frames(gb, BS_FRAME_LINEARIZED), 1);
	/* no room in the first segment, or not ours to write to */
	gb_message(&frame, &flow, GB_CLIENT, 2, 3000);
	gb_inject_mbuf(gb, GB_WIRE, gb_chain(gb, frame.bytes, frame.n, 1000));
	gb_turn(gb);
	gb_message(&frame, &flow, GB_CLIENT, 3, 1400);
	mbuf = gb_chain(gb, frame.bytes, frame.n, 1000);
	rte_mbuf_refcnt_update(mbuf, 1);
	gb_inject_mbuf(gb, GB_WIRE, mbuf);
	gb_turn(gb);
	assert_int_equal(gb_reason(gb, BS_REASON_TX_TOO_LONG), 2);
	assert_int_equal(gb_drain(gb, GB_LOCAL), 0);
	rte_pktmbuf_free_seg(mbuf);
	gb_close(gb);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		GB_TEST(a_tag_that_hardware_took_out_is_part_of_the_flow_and_leaves_with_it),
		GB_TEST(of_two_tags_both_or_the_outer_one_are_put_back),
		GB_TEST(a_tag_that_finds_no_room_ends_the_packet_with_a_name),
		GB_TEST(headers_cut_anywhere_are_followed_tagged_and_taken_off_again),
		GB_TEST(headers_that_cannot_be_put_into_one_segment_pass_unchanged),
		GB_TEST(a_message_of_64_kib_in_31_segments_reaches_the_framer),
		GB_TEST(ip_total_length_0_takes_the_frames_and_stays_untagged),
		GB_TEST(a_chain_shorter_than_it_says_is_counted_and_not_walked),
		GB_TEST(frames_of_no_bytes_are_runts),
		GB_TEST(extension_headers_are_passed_over_and_the_shim_goes_behind_them),
		GB_TEST(a_frame_beyond_the_mtu_ends_with_a_name_and_its_rpc_knows),
		GB_TEST(a_driver_that_sends_no_chains_gets_none),
	};

	return cmocka_run_group_tests_name(
		"graybox_packets", tests, gb_group_setup, gb_group_teardown);
}
