/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checksums that a virtual peer left half done, on their way to a port that
 * completes them: the test is that port. It sums what the request says, as a
 * NIC does, and the frame must then be right.
 */
#include "bs_checksum.h"
#include "gb_shim.h"

#define BOTH (RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM)

/* What such a peer stores: the sum of the pseudo header (RFC 9293 3.1, RFC 8200 8.1). */
static struct frame
partial_of(const struct frame *right)
{
	const struct bs_packet packet = gb_parse(right);
	const bool v4 = packet.tuple.ip_version == 4;
	struct frame partial = *right;
	uint64_t sum = packet.l4_protocol + packet.payload - packet.l4 + packet.payload_len;

	for (unsigned i = 0; i < (v4 ? 8u : 32u); i += 2) {
		const uint8_t *word = right->bytes + packet.l3 + (v4 ? 12 : 8) + i;

		sum += (unsigned)(word[0] << 8 | word[1]);
	}
	while (sum > 0xffff)
		sum = (sum & 0xffff) + (sum >> 16);
	frame_set16(&partial, packet.l4 + (packet.l4_protocol == 6 ? 16 : 6), (unsigned)sum);
	return partial;
}

static struct rte_mbuf *
take_mbuf(const struct gb *gb, unsigned port)
{
	struct rte_mbuf *mbuf = gb_take_mbuf(gb, port);

	assert_non_null(mbuf);
	return mbuf;
}

/* Takes the frame and does what it asks of a NIC. */
static void
send_as_nic(struct rte_mbuf *mbuf, struct frame *out)
{
	const bool tcp = (mbuf->ol_flags & RTE_MBUF_F_TX_L4_MASK) == RTE_MBUF_F_TX_TCP_CKSUM;
	unsigned from = mbuf->l2_len + mbuf->l3_len, field = from + (tcp ? 16 : 6);
	uint64_t sum = 0;

	assert_true(tcp || (mbuf->ol_flags & RTE_MBUF_F_TX_L4_MASK) == RTE_MBUF_F_TX_UDP_CKSUM);
	memset(out, 0, sizeof(*out));
	out->n = mbuf->pkt_len;
	for (const struct rte_mbuf *m = mbuf; m != NULL; m = m->next) {
		memcpy(out->bytes + sum, rte_pktmbuf_mtod(m, const void *), m->data_len);
		sum += m->data_len;
	}
	assert_int_equal(sum, out->n);
	assert_int_equal(
		out->bytes[mbuf->l2_len] >> 4, (mbuf->ol_flags & RTE_MBUF_F_TX_IPV4) ? 4 : 6);
	assert_true(((mbuf->ol_flags & RTE_MBUF_F_TX_IPV4) != 0) !=
		    ((mbuf->ol_flags & RTE_MBUF_F_TX_IPV6) != 0));
	sum = 0;
	for (unsigned i = from; i < out->n; i++)
		sum += (i - from) % 2 == 0 ? (uint64_t)out->bytes[i] << 8 : out->bytes[i];
	while (sum > 0xffff)
		sum = (sum & 0xffff) + (sum >> 16);
	frame_set16(out, field, (unsigned)sum ^ 0xffff);
	rte_pktmbuf_free(mbuf);
}

/* A flow with an open request. */
static struct gb_flow
asked(const struct gb *gb, uint16_t port, unsigned ip_version, unsigned vlan)
{
	struct gb_flow flow = gb_flow(port, 6379);
	struct frame frame;

	flow.ip_version = ip_version;
	flow.vlan = vlan;
	if (ip_version == 6)
		flow.address[0] = 1, flow.address[1] = 2;
	gb_handshake(gb, &flow);
	gb_message(&frame, &flow, GB_CLIENT, 7, 100);
	gb_pass(gb, GB_WIRE, &frame);
	gb_drain(gb, GB_LOCAL);
	return flow;
}

static const char both_versions[] =
	"{\"name\": \"kv\", \"address\": \"10.0.0.2\", \"port\": 6379, \"protocol\": \"unit\"},"
	"{\"name\": \"k6\", \"address\": \"2001:db8::2\", \"port\": 6379, \"protocol\": \"unit\"}";

static void
the_port_completes_what_it_offers_to_with_the_shim_in_it(void **state)
{
	static const struct {
		unsigned ip_version, vlan;
		size_t piece;
	} cases[] = {
		{4, 0, 9000}, {6, 0, 9000}, {4, 5, 9000}, {6, 5, 9000}, {4, 0, 80}, {6, 7, 101}};
	struct gb *gb = gb_open(&(struct gb_setup){.shim = ALWAYS, .services = both_versions});

	(void)state;
	gb->dataplane->ports[GB_WIRE].tx_checksums = BOTH;
	for (unsigned i = 0; i < RTE_DIM(cases); i++) {
		struct gb_flow flow =
			asked(gb, (uint16_t)(40000 + i), cases[i].ip_version, cases[i].vlan);
		struct frame right, partial, out;
		struct rte_mbuf *mbuf;

		gb_message(&right, &flow, GB_SERVER, 7, 300);
		partial = partial_of(&right);
		gb_inject_mbuf(
			gb, GB_LOCAL, gb_chain(gb, partial.bytes, partial.n, cases[i].piece));
		gb_turn(gb);
		mbuf = take_mbuf(gb, GB_WIRE);
		assert_int_equal(mbuf->l2_len, cases[i].vlan != 0 ? 18 : 14);
		assert_int_equal(mbuf->l3_len, cases[i].ip_version == 4 ? 20 : 40);
		send_as_nic(mbuf, &out);
		gb_assert_tagged(&right, &out);
		assert_int_equal(gb_snapshot(gb)->frame[BS_FRAME_CHECKSUM_BY_PORT], i + 1);
	}
	assert_int_equal(gb_tag(gb, BS_TAG_CHECKSUM_COMPLETED), 0);
	gb_close(gb);
}

static void
udp(struct frame *frame, unsigned ip_version)
{
	frame_ether(frame, ip_version == 4 ? 0x0800 : 0x86dd);
	if (ip_version == 4)
		frame_ipv4(frame, 17, 0x0a000001, 0x0a000002);
	else
		frame_ipv6(frame, 17, 1, 2);
	frame_udp(frame, 40000, 53, 11);
	frame_put(frame, "what is it?", 11);
	frame_end_ip(frame);
	gb_checksums(frame);
}

static void
udp_is_left_to_a_port_that_offers_it_and_completed_here_else(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct frame right, partial, out;

	(void)state;
	for (unsigned version = 4; version <= 6; version += 2) {
		udp(&right, version);
		partial = partial_of(&right);
		gb->dataplane->ports[GB_LOCAL].tx_checksums = RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
		gb_pass(gb, GB_WIRE, &partial);
		send_as_nic(take_mbuf(gb, GB_LOCAL), &out);
		gb_assert_same(&right, &out);
		gb->dataplane->ports[GB_LOCAL].tx_checksums = RTE_ETH_TX_OFFLOAD_TCP_CKSUM;
		gb_through(gb, GB_WIRE, &partial, &out);
		gb_assert_same(&right, &out);
	}
	assert_int_equal(gb_snapshot(gb)->frame[BS_FRAME_CHECKSUM_BY_PORT], 2);
	assert_int_equal(gb_tag(gb, BS_TAG_CHECKSUM_COMPLETED), 2);
	gb_close(gb);
}

static void
behind_extension_headers_it_is_completed_here(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct frame right, partial, out;
	uint64_t sum = 0;

	(void)state;
	gb->dataplane->ports[GB_LOCAL].tx_checksums = BOTH;
	frame_ether(&right, 0x86dd);
	frame_ipv6(&right, 60, 1, 2);
	frame_put(&right, "\x06\0\x01\x04\0\0\0\0", 8); /* destination options: PadN */
	frame_tcp(&right, 40000, 6379, BS_TCP_ACK, NULL, 0);
	frame_fill(&right, 'x', 33);
	frame_end_ip(&right);
	for (unsigned i = 0; i < 32; i++)
		sum += right.bytes[right.l3 + 8 + i] << (i % 2 == 0 ? 8 : 0);
	sum += 6 + 53;
	for (uint32_t i = right.l4; i < right.n; i++)
		sum += right.bytes[i] << ((i - right.l4) % 2 == 0 ? 8 : 0);
	while (sum > 0xffff)
		sum = (sum & 0xffff) + (sum >> 16);
	frame_set16(&right, right.l4 + 16, (unsigned)sum ^ 0xffff);
	assert_true(gb_checksums_ok(&right));
	partial = partial_of(&right);
	gb_through(gb, GB_WIRE, &partial, &out);
	gb_assert_same(&right, &out);
	assert_int_equal(gb_tag(gb, BS_TAG_CHECKSUM_COMPLETED), 1);
	gb_close(gb);
}

/* One frame with what the PMD says of its checksum. */
static void
pass_flagged(const struct gb *gb, const struct frame *in, uint64_t flags, struct frame *out)
{
	struct rte_mbuf *mbuf = gb_mbuf(gb, in->bytes, in->n);

	mbuf->ol_flags |= flags;
	gb_inject_mbuf(gb, GB_WIRE, mbuf);
	gb_turn(gb);
	assert_true(gb_take(gb, GB_LOCAL, out));
}

static void
what_the_driver_says_of_a_checksum_counts(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame right, other, out;

	(void)state;
	gb_message(&right, &flow, GB_CLIENT, 7, 100);
	/* "not correct in the packet data, but verified": whatever the field holds, any port */
	other = right;
	frame_set16(&other, other.l4 + 16, 0x1234);
	gb->dataplane->ports[GB_WIRE].virtual_peer = false;
	pass_flagged(gb, &other, RTE_MBUF_F_RX_L4_CKSUM_NONE, &out);
	gb_assert_same(&right, &out);
	/* found wrong by hardware, or unknown: stays wrong */
	pass_flagged(gb, &other, RTE_MBUF_F_RX_L4_CKSUM_BAD, &out);
	gb_assert_same(&other, &out);
	pass_flagged(gb, &other, 0, &out);
	gb_assert_same(&other, &out);
	/* no virtual peer: that it looks partial says nothing */
	other = partial_of(&right);
	pass_flagged(gb, &other, 0, &out);
	gb_assert_same(&other, &out);
	gb->dataplane->ports[GB_WIRE].virtual_peer = true;
	pass_flagged(gb, &other, RTE_MBUF_F_RX_L4_CKSUM_GOOD, &out);
	gb_assert_same(&other, &out);
	pass_flagged(gb, &other, RTE_MBUF_F_RX_L4_CKSUM_BAD, &out);
	gb_assert_same(&right, &out);
	/* UDP over IPv4 without a checksum keeps none */
	udp(&right, 4);
	frame_set16(&right, right.l4 + 6, 0);
	pass_flagged(gb, &right, RTE_MBUF_F_RX_L4_CKSUM_NONE, &out);
	gb_assert_same(&right, &out);
	assert_int_equal(gb_tag(gb, BS_TAG_CHECKSUM_COMPLETED), 2);
	gb_close(gb);
}

static void
a_request_that_came_with_the_packet_is_not_passed_on(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct rte_mbuf *mbuf;
	struct frame frame;

	(void)state;
	gb_message(&frame, &flow, GB_CLIENT, 7, 100);
	mbuf = gb_mbuf(gb, frame.bytes, frame.n);
	mbuf->ol_flags |= RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_TCP_CKSUM | RTE_MBUF_F_TX_TCP_SEG;
	gb_inject_mbuf(gb, GB_WIRE, mbuf);
	gb_turn(gb);
	mbuf = take_mbuf(gb, GB_LOCAL);
	assert_int_equal(mbuf->ol_flags & RTE_MBUF_F_TX_OFFLOAD_MASK, 0);
	rte_pktmbuf_free(mbuf);
	gb_close(gb);
}

/* --- a driver that refuses -------------------------------------------------------------- */

/* Refuses frames of odd length, as rte_eth_tx_prepare() does: stops there. */
static uint16_t
refuse_odd(void *queue, struct rte_mbuf **mbufs, uint16_t count)
{
	(void)queue;
	for (uint16_t i = 0; i < count; i++) {
		if (mbufs[i]->pkt_len % 2 == 1) {
			rte_errno = EINVAL;
			return i;
		}
	}
	return count;
}

static void
what_the_driver_refuses_is_counted_and_the_rest_leaves_in_order(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct bs_port *port = &gb->dataplane->ports[GB_LOCAL];
	struct frame frame, out;
	unsigned taken = 0;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	port->tx_checksums = BOTH;
	rte_eth_fp_ops[port->id].tx_pkt_prepare = refuse_odd;
	for (unsigned i = 0; i < BS_BURST; i++) {
		gb_message(&frame, &flow, GB_CLIENT, i, 40 + i);
		gb_inject(gb, GB_WIRE, &frame);
	}
	gb_turn(gb);
	while (gb_take(gb, GB_LOCAL, &out)) {
		assert_int_equal(out.n, 54 + 40 + 2 * taken);
		taken++;
	}
	assert_int_equal(taken, BS_BURST / 2);
	assert_int_equal(gb_reason(gb, BS_REASON_TX_PREPARE), BS_BURST / 2);
	/* all of a burst */
	for (unsigned i = 0; i < BS_BURST; i++) {
		gb_message(&frame, &flow, GB_CLIENT, BS_BURST + i, 41);
		gb_inject(gb, GB_WIRE, &frame);
	}
	gb_turn(gb);
	assert_int_equal(gb_drain(gb, GB_LOCAL), 0);
	assert_int_equal(gb_reason(gb, BS_REASON_TX_PREPARE), BS_BURST / 2 + BS_BURST);
	gb_message(&frame, &flow, GB_CLIENT, 100, 40);
	gb_pass(gb, GB_WIRE, &frame);
	assert_int_equal(gb_drain(gb, GB_LOCAL), 1);
	rte_eth_fp_ops[port->id].tx_pkt_prepare = NULL;
	gb_close(gb);
}

static void
the_rpc_of_a_refused_packet_knows_why_it_waited(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct bs_port *port = &gb->dataplane->ports[GB_LOCAL];
	struct bs_rpc_view rpc;
	struct frame frame;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	port->tx_checksums = BOTH;
	rte_eth_fp_ops[port->id].tx_pkt_prepare = refuse_odd;
	gb_message(&frame, &flow, GB_CLIENT, 7, 101);
	gb_pass(gb, GB_WIRE, &frame);
	rte_eth_fp_ops[port->id].tx_pkt_prepare = NULL;
	gb_run(gb, GB_T0 + 200 * GB_MS, 50 * GB_US);
	flow.next[GB_CLIENT] -= 101;
	gb_message(&frame, &flow, GB_CLIENT, 7, 101);
	gb_pass(gb, GB_WIRE, &frame);
	gb_run(gb, GB_T0 + 201 * GB_MS, 50 * GB_US);
	gb_message(&frame, &flow, GB_SERVER, 7, 60);
	gb_pass(gb, GB_LOCAL, &frame);
	gb_ack(&frame, &flow, GB_CLIENT);
	gb_pass(gb, GB_WIRE, &frame);
	gb_collect(gb, 1);
	rpc = gb_rpc(gb, 0);
	gb_assert_parts(&rpc,
		{200 * GB_MS, gb_buffer(gb, "local.tx"), BS_CAUSE_DROP,
			BS_DETAIL_FIRST_REASON + BS_REASON_TX_PREPARE},
		{GB_MS, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0});
	gb_close(gb);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		GB_TEST(the_port_completes_what_it_offers_to_with_the_shim_in_it),
		GB_TEST(udp_is_left_to_a_port_that_offers_it_and_completed_here_else),
		GB_TEST(behind_extension_headers_it_is_completed_here),
		GB_TEST(what_the_driver_says_of_a_checksum_counts),
		GB_TEST(a_request_that_came_with_the_packet_is_not_passed_on),
		GB_TEST(what_the_driver_refuses_is_counted_and_the_rest_leaves_in_order),
		GB_TEST(the_rpc_of_a_refused_packet_knows_why_it_waited),
	};

	return cmocka_run_group_tests_name(
		"graybox_checksum", tests, gb_group_setup, gb_group_teardown);
}
