/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bad input and bad luck: every packet that came in left, is queued, or is
 * counted for one reason, whatever it looks like; what is not understood leaves
 * as it came; no mbuf is lost. gb_close() checks the balance after every test.
 */
#include "gb_frames.h"
#include "gb_records.h"

#include <rte_mempool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* It comes in by a port and leaves by the other as it was. */
static void
assert_passes_unchanged(const struct gb *gb, unsigned port, const struct frame *frame)
{
	struct frame out;

	gb_inject(gb, port, frame);
	gb_turn(gb);
	assert_true(gb_take(gb, !port, &out));
	assert_int_equal(out.n, frame->n);
	assert_memory_equal(out.bytes, frame->bytes, frame->n);
	assert_false(gb_take(gb, !port, &out));
}

static uint64_t
parsed(const struct gb *gb, enum bs_parse parse)
{
	return gb_snapshot(gb)->parse[parse];
}

/* --- what is not understood --------------------------------------------------------- */

static void
other_protocols_pass_unchanged_both_ways(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.shim = "\"tag\": \"always\""});
	struct frame frame;

	(void)state;
	for (unsigned port = 0; port < 2; port++) {
		gb_arp(&frame);
		assert_passes_unchanged(gb, port, &frame);
		frame_ether(&frame, 0x88cc); /* LLDP */
		frame_fill(&frame, 0x11, 46);
		assert_passes_unchanged(gb, port, &frame);
		frame_ether(&frame, 0x0026); /* 802.3 with a length */
		frame_fill(&frame, 0x42, 46);
		assert_passes_unchanged(gb, port, &frame);
		frame_ether(&frame, 0x0800); /* ICMP echo */
		frame_ipv4(&frame, 1, 0x0a000001, 0x0a000002);
		frame_put(&frame, "\x08\0\x12\x34\0\1\0\1payload", 15);
		frame_end_ip(&frame);
		assert_passes_unchanged(gb, port, &frame);
		frame_ether(&frame, 0x0800); /* SCTP */
		frame_ipv4(&frame, 132, 0x0a000001, 0x0a000002);
		frame_fill(&frame, 0x33, 60);
		frame_end_ip(&frame);
		assert_passes_unchanged(gb, port, &frame);
		frame_ether(&frame, 0x86dd); /* ESP over IPv6 */
		frame_ipv6(&frame, 50, 1, 2);
		frame_fill(&frame, 0x44, 60);
		frame_end_ip(&frame);
		assert_passes_unchanged(gb, port, &frame);
	}
	assert_int_equal(parsed(gb, BS_PARSE_NOT_IP), 6);
	assert_int_equal(parsed(gb, BS_PARSE_ICMP), 2);
	assert_int_equal(parsed(gb, BS_PARSE_OTHER_L4), 2);
	assert_int_equal(parsed(gb, BS_PARSE_OPAQUE_EXT), 2);
	gb_close(gb);
}

static void
fragments_pass_unchanged(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame frame;

	(void)state;
	gb_message(&frame, &flow, GB_CLIENT, 7, 800);
	frame_set16(&frame, frame.l3 + 6, 0x2000); /* the first: more follow */
	assert_passes_unchanged(gb, GB_WIRE, &frame);
	frame_set16(&frame, frame.l3 + 6, 100); /* the last */
	assert_passes_unchanged(gb, GB_WIRE, &frame);
	assert_int_equal(parsed(gb, BS_PARSE_FRAGMENT), 2);
	assert_int_equal(parsed(gb, BS_PARSE_FRAGMENT_ALONE), 0);
	gb_close(gb);
}

static void
hostile_lengths_pass_unchanged_and_are_counted(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379), flow6 = flow;
	const struct {
		unsigned at, bytes, value; /* from the IP header */
		enum bs_parse parse;
	} bad[] = {
		{0, 1, 0x44, BS_PARSE_BAD_IP}, /* IPv4 header of 16 bytes */
		{0, 1, 0x4f, BS_PARSE_OK}, /* of 60: the payload reads as a TCP header, nobody's */
		{0, 1, 0x55, BS_PARSE_BAD_IP}, /* version 5 */
		{2, 2, 19, BS_PARSE_BAD_IP},   /* total shorter than the header */
		{2, 2, 20, BS_PARSE_BAD_L4},   /* nothing behind it */
		{2, 2, 39, BS_PARSE_BAD_L4},   /* TCP header cut by a byte */
		{2, 2, 141, BS_PARSE_CUT},     /* a byte more than there is */
		{2, 2, 65535, BS_PARSE_CUT},
		{32, 1, 0x40, BS_PARSE_BAD_L4}, /* TCP header of 16 bytes */
		{32, 1, 0x00, BS_PARSE_BAD_L4},
	};
	struct frame frame;

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const uint64_t before = parsed(gb, bad[i].parse);

		gb_message(&frame, &flow, GB_CLIENT, 7, 100);
		if (bad[i].bytes == 2)
			frame_set16(&frame, frame.l3 + bad[i].at, bad[i].value);
		else
			frame.bytes[frame.l3 + bad[i].at] = (uint8_t)bad[i].value;
		assert_passes_unchanged(gb, GB_WIRE, &frame);
		if (parsed(gb, bad[i].parse) != before + 1)
			fail_msg("case %u is not %s", i, bs_parse_key(bad[i].parse));
	}
	flow6.ip_version = 6;
	gb_message(&frame, &flow6, GB_CLIENT, 7, 100);
	frame_set16(&frame, frame.l3 + 4, 121);
	assert_passes_unchanged(gb, GB_WIRE, &frame);
	frame_ether(&frame, 0x0800);
	frame_ipv4(&frame, 17, 0x0a000001, 0x0a000002);
	frame_udp(&frame, 40000, 6379, 20);
	frame_fill(&frame, 'x', 19);
	frame_end_ip(&frame);
	assert_passes_unchanged(gb, GB_WIRE, &frame);
	frame_set16(&frame, frame.l4 + 4, 7);
	assert_passes_unchanged(gb, GB_WIRE, &frame);
	assert_int_equal(parsed(gb, BS_PARSE_CUT), 3);
	assert_int_equal(bs_tracker_flows(gb->dataplane->lcores[0]->tracker), 0);
	gb_close(gb);
}

/* --- what is no frame ------------------------------------------------------------------- */

static void
runts_end_and_are_counted(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct frame frame;

	(void)state;
	gb_arp(&frame);
	for (frame.n = 0; frame.n < 14; frame.n++)
		gb_inject(gb, GB_WIRE, &frame);
	gb_turn(gb);
	assert_int_equal(gb_reason(gb, BS_REASON_RUNT), 14);
	assert_int_equal(gb_drain(gb, GB_LOCAL), 0);
	frame.n = 14;
	assert_passes_unchanged(gb, GB_WIRE, &frame);
	gb_close(gb);
}

static void
every_shorter_frame_is_survived(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.shim = "\"tag\": \"always\""});
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame whole, frame;
	unsigned passed = 0;

	(void)state;
	gb_message(&whole, &flow, GB_CLIENT, 7, 100);
	for (frame = whole; frame.n > 0; frame.n--, passed++) {
		gb_inject(gb, GB_WIRE, &frame);
		gb_turn(gb);
		gb_inject(gb, GB_LOCAL, &frame);
		gb_turn(gb);
	}
	assert_int_equal(gb_reason(gb, BS_REASON_RUNT), 2 * 13);
	assert_int_equal(gb_drain(gb, GB_LOCAL), passed - 13);
	assert_int_equal(gb_drain(gb, GB_WIRE), passed - 13);
	gb_close(gb);
}

/* --- chains --------------------------------------------------------------------------------- */

static void
messages_in_several_segments_are_followed(void **state)
{
	static const size_t pieces[] = {54, 60, 62, 90, 153};
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame frame, out;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	for (uint32_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		gb_message(&frame, &flow, GB_CLIENT, i, 100);
		gb_inject_mbuf(gb, GB_WIRE, gb_chain(gb, frame.bytes, frame.n, pieces[i]));
		gb_turn(gb);
		assert_true(gb_take(gb, GB_LOCAL, &out));
		assert_memory_equal(out.bytes, frame.bytes, frame.n);
		gb_message(&frame, &flow, GB_SERVER, i, 60);
		gb_inject_mbuf(gb, GB_LOCAL, gb_chain(gb, frame.bytes, frame.n, pieces[i]));
		gb_turn(gb);
		gb_ack(&frame, &flow, GB_CLIENT);
		gb_pass(gb, GB_WIRE, &frame);
		gb_drain(gb, GB_LOCAL);
		gb_collect(gb, 1);
		assert_int_equal(gb_rpc(gb, i).rpc->outcome, BS_OUTCOME_ANSWERED);
		assert_int_equal(gb_rpc(gb, i).rpc->request_bytes, 100);
		assert_int_equal(gb_rpc(gb, i).rpc->response_bytes, 60);
	}
	assert_int_equal(gb_snapshot(gb)->track[BS_TRACK_BYTES_UNPARSED], 0);
	gb_close(gb);
}

static void
headers_in_several_segments_are_put_into_one(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.shim = "\"tag\": \"always\""});
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame frame, out;

	(void)state;
	gb_message(&frame, &flow, GB_SERVER, 7, 100);
	for (size_t piece = 1; piece < 54; piece++) {
		gb_inject_mbuf(gb, GB_LOCAL, gb_chain(gb, frame.bytes, frame.n, piece));
		gb_turn(gb);
		assert_true(gb_take(gb, GB_WIRE, &out));
		assert_int_equal(out.n, frame.n);
		assert_memory_equal(out.bytes, frame.bytes, frame.n);
	}
	assert_int_equal(parsed(gb, BS_PARSE_OK), 53);
	assert_int_equal(gb_snapshot(gb)->frame[BS_FRAME_GATHERED], 53);
	gb_close(gb);
}

static void
a_chain_of_many_short_segments_is_survived(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame frame, out;
	struct rte_mbuf *head;

	(void)state;
	gb_handshake(gb, &flow);
	gb_message(&frame, &flow, GB_CLIENT, 7, 200);
	head = gb_mbuf(gb, frame.bytes, 54);
	for (unsigned at = 54; at < frame.n; at++) {
		/* an empty one before each byte */
		assert_int_equal(rte_pktmbuf_chain(head, gb_mbuf(gb, frame.bytes, 0)), 0);
		assert_int_equal(rte_pktmbuf_chain(head, gb_mbuf(gb, frame.bytes + at, 1)), 0);
		if (head->nb_segs > 250)
			break;
	}
	gb_inject_mbuf(gb, GB_WIRE, head);
	gb_turn(gb);
	assert_true(gb_take(gb, GB_LOCAL, &out));
	gb_close(gb);
}

static void
lengths_that_disagree_with_the_chain_are_counted(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct rte_mbuf *mbufs[6];
	struct frame frame;

	(void)state;
	gb_message(&frame, &flow, GB_CLIENT, 7, 100);
	for (unsigned i = 0; i < 4; i++)
		mbufs[i] = gb_chain(gb, frame.bytes, frame.n, 80);
	mbufs[4] = gb_mbuf(gb, frame.bytes, frame.n);
	mbufs[5] = gb_mbuf(gb, frame.bytes, frame.n);
	mbufs[0]->nb_segs = 3;
	mbufs[1]->pkt_len++;
	mbufs[2]->pkt_len--;
	mbufs[3]->next->data_len = 0;
	mbufs[4]->pkt_len = 1500; /* a single segment, too */
	mbufs[5]->pkt_len = 100;
	for (unsigned i = 0; i < 6; i++)
		gb_inject_mbuf(gb, GB_WIRE, mbufs[i]);
	gb_turn(gb);
	assert_int_equal(gb_drain(gb, GB_LOCAL), 0);
	assert_int_equal(gb_reason(gb, BS_REASON_BAD_CHAIN), 6);
	gb_close(gb);
}

/* --- anything -------------------------------------------------------------------------------- */

static uint32_t
random_next(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u; /* Numerical Recipes' LCG */
	return *seed >> 8;
}

/* A frame of a flow with some bytes changed, some cut off, in one segment or several. */
static struct rte_mbuf *
random_mbuf(const struct gb *gb, struct gb_flow *flow, unsigned from, uint32_t *seed,
	struct frame *frame)
{
	static const uint8_t options[] = {253, 20, 0xb5, 0xc0, 0x10, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6,
		7, 0, 0, 0, 100, 253, 4, 0xb5, 0xc1, 2, 4, 5, 0xb4};
	const unsigned option_bytes = random_next(seed) % 8 * 4;
	unsigned changes = random_next(seed) % 4;

	flow->ip_version = random_next(seed) % 3 == 0 ? 6 : 4;
	gb_tcp(frame, flow,
		&(struct gb_tcp){.from = from,
			.flags = random_next(seed) % 4 == 0 ? random_next(seed) & 0x3f : BS_TCP_ACK,
			.seq = random_next(seed) % 200,
			.options = options,
			.option_bytes = option_bytes,
			.payload = "\0\0\0\x28\0\0\0\7and then there is whatever comes to mind",
			.payload_bytes = random_next(seed) % 50});
	while (changes-- > 0)
		frame->bytes[random_next(seed) % (changes == 0 ? 20 + frame->l4 : frame->n)] =
			(uint8_t)random_next(seed);
	if (random_next(seed) % 5 == 0)
		frame->n = random_next(seed) % (frame->n + 1);
	if (random_next(seed) % 4 == 0 && frame->n > 0)
		return gb_chain(gb, frame->bytes, frame->n, 1 + random_next(seed) % frame->n);
	return gb_mbuf(gb, frame->bytes, frame->n);
}

/* With the shim off nothing changes but checksums completed and shims taken off. */
static void
whatever_comes_is_counted_or_leaves(void **state)
{
	static const char *const shims[] = {
		"\"tag\": \"off\"", "\"tag\": \"always\"", "\"tag\": \"negotiated\""};

	(void)state;
	for (unsigned mode = 0; mode < 3; mode++) {
		struct gb *gb = gb_open(&(struct gb_setup){.shim = shims[mode]});
		struct gb_flow flow = gb_flow(40000, 6379);
		struct frame in, out;
		uint32_t seed = 20261130 + mode;

		for (unsigned i = 0; i < 20000; i++) {
			const unsigned port = random_next(&seed) % 2;
			const uint64_t *ended =
				&gb->dataplane->lcores[0]->accounts[port].reasons[BS_REASON_RUNT];
			const uint64_t before = *ended;
			const uint64_t *tag = gb->dataplane->lcores[0]->counters.tag;
			const uint64_t changed =
				tag[BS_TAG_UNTAGGED] + tag[BS_TAG_CHECKSUM_COMPLETED];

			gb_inject_mbuf(gb, port, random_mbuf(gb, &flow, port, &seed, &in));
			gb_time.now_ns += 5 * GB_US;
			gb_turn(gb);
			if (!gb_take(gb, !port, &out)) {
				assert_int_equal(*ended, before + 1);
				assert_true(in.n < 14);
			} else if (mode == 0 &&
				   tag[BS_TAG_UNTAGGED] + tag[BS_TAG_CHECKSUM_COMPLETED] ==
					   changed) {
				assert_int_equal(out.n, in.n);
				assert_memory_equal(out.bytes, in.bytes, in.n);
			}
		}
		assert_null(gb_check_packets(gb));
		gb_close(gb);
	}
}

/* --- no room ------------------------------------------------------------------------------------
 */

static void
what_is_queued_at_the_end_is_counted(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.room = {[GB_LOCAL] = 4}});
	struct frame frame;

	(void)state;
	gb_arp(&frame);
	for (unsigned i = 0; i < 4 + 32 + 10; i++)
		gb_inject(gb, GB_WIRE, &frame);
	gb_turn(gb);
	gb_turn(gb);
	assert_int_equal(gb_snapshot(gb)->queued, 42);
	bs_dataplane_finish(gb->dataplane, gb_time.now_ns);
	/* 28 of the first burst were in hand */
	assert_int_equal(gb_reason(gb, BS_REASON_TX_REFUSED), 28);
	assert_int_equal(gb_reason(gb, BS_REASON_SHUTDOWN), 14);
	gb_close(gb);
}

/* A capture of n ARP requests, as net_pcap reads it. */
static void
write_capture(const char *path, unsigned n)
{
	const uint32_t file_head[] = {0xa1b2c3d4, 0x00040002, 0, 0, 65535, 1};
	FILE *file = fopen(path, "wbe");
	struct frame frame;

	assert_non_null(file);
	gb_arp(&frame);
	assert_int_equal(fwrite(file_head, sizeof(file_head), 1, file), 1);
	for (unsigned i = 0; i < n; i++) {
		const uint32_t head[] = {1700000000, i, frame.n, frame.n};

		assert_int_equal(fwrite(head, sizeof(head), 1, file), 1);
		assert_int_equal(fwrite(frame.bytes, frame.n, 1, file), 1);
	}
	assert_int_equal(fclose(file), 0);
}

/* net_pcap takes an mbuf from the pool for each packet, and drops the one it finds none for. */
static void
an_empty_pool_costs_packets_that_are_counted(void **state)
{
	char path[128], device[256];
	struct rte_mbuf **all;
	unsigned held = 0;
	struct gb *gb;

	(void)state;
	snprintf(path, sizeof(path), "%s/c.pcap", getenv("RUNTIME_DIRECTORY"));
	write_capture(path, 100);
	snprintf(device, sizeof(device), "net_pcap_gb,rx_pcap=%s", path);
	gb = gb_open(&(struct gb_setup){.wire_device = device});
	all = calloc(gb->pool_free, sizeof(all[0]));
	assert_non_null(all);
	gb_turn(gb);
	assert_int_equal(gb_drain(gb, GB_LOCAL), 32);
	while (held < gb->pool_free && (all[held] = rte_pktmbuf_alloc(gb->dataplane->pool)) != NULL)
		held++;
	gb_turn(gb);
	gb_turn(gb);
	gb_turn(gb);
	assert_int_equal(gb_drain(gb, GB_LOCAL), 0);
	assert_int_equal(gb_reason(gb, BS_REASON_RX_NO_MBUF), 3);
	rte_pktmbuf_free_bulk(all, held);
	free(all);
	gb_turn(gb);
	gb_turn(gb);
	gb_turn(gb);
	assert_int_equal(gb_drain(gb, GB_LOCAL), 100 - 32 - 3);
	assert_int_equal(gb_snapshot(gb)->rx_packets, 97);
	gb_close(gb);
	unlink(path);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		GB_TEST(other_protocols_pass_unchanged_both_ways),
		GB_TEST(fragments_pass_unchanged),
		GB_TEST(hostile_lengths_pass_unchanged_and_are_counted),
		GB_TEST(runts_end_and_are_counted),
		GB_TEST(every_shorter_frame_is_survived),
		GB_TEST(messages_in_several_segments_are_followed),
		GB_TEST(headers_in_several_segments_are_put_into_one),
		GB_TEST(a_chain_of_many_short_segments_is_survived),
		GB_TEST(lengths_that_disagree_with_the_chain_are_counted),
		GB_TEST(whatever_comes_is_counted_or_leaves),
		GB_TEST(what_is_queued_at_the_end_is_counted),
		GB_TEST(an_empty_pool_costs_packets_that_are_counted),
	};

	return cmocka_run_group_tests_name(
		"graybox_account", tests, gb_group_setup, gb_group_teardown);
}
