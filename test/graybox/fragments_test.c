/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IP fragments through the dataplane: they wait in their service's queue, on their
 * flow's lcore, and the RPC that they carry is seen; those of nobody pass and count.
 */
#include "frame_fragment.h"
#include "gb_frames.h"
#include "gb_records.h"

static const char both_versions[] =
	"{\"name\": \"kv\", \"address\": \"10.0.0.2\", \"port\": 53, \"protocol\": \"dns\"},"
	"{\"name\": \"k6\", \"address\": \"2001:db8::2\", \"port\": 53, \"protocol\": \"dns\"}";

/* A query for a.b, or its answer without a record, and padding: `bytes` in one UDP datagram. */
static void
udp_message(struct frame *frame, unsigned version, unsigned from, unsigned bytes)
{
	static const uint16_t ports[2] = {40000, 53};

	frame_ether(frame, version == 4 ? 0x0800 : 0x86dd);
	if (version == 4)
		frame_ipv4(frame, 17, 0x0a000001 + from, 0x0a000002 - from);
	else
		frame_ipv6(frame, 17, 1 + from, 2 - from);
	frame_udp(frame, ports[from], ports[!from], bytes);
	frame_put(frame, from == GB_SERVER ? "\x12\x34\x81\x80" : "\x12\x34\x01\x00", 4);
	frame_put(frame, "\0\1\0\0\0\0\0\0\1a\1b\0\0\1\0\1", 17);
	frame_fill(frame, 'u', bytes - 21);
	frame_end_ip(frame);
	gb_checksums(frame);
}

/* Passes it in pieces; each leaves as it came. */
static void
pass_in_pieces(
	const struct gb *gb, unsigned port, const struct frame *whole, uint32_t id, uint32_t piece)
{
	const uint32_t bytes = whole->n - whole->l4;

	for (uint32_t offset = 0; offset < bytes; offset += piece) {
		struct frame part, out;

		frame_fragment(&part, whole, id, offset, RTE_MIN(piece, bytes - offset),
			offset + piece < bytes);
		gb_inject(gb, port, &part);
		gb_turn(gb);
		gb_turn(gb);
		assert_true(gb_take(gb, !port, &out));
		assert_int_equal(out.n, part.n);
		assert_memory_equal(out.bytes, part.bytes, part.n);
	}
}

static uint64_t
packets_of(const struct gb *gb, const char *buffer)
{
	const struct bs_snapshot *snapshot = gb_snapshot(gb);

	return snapshot->buffers[gb_buffer(gb, buffer) - BS_BUFFER_FIRST_OWN].packets;
}

static void
rpcs_in_fragmented_datagrams_are_seen_in_their_services_queue(void **state)
{
	(void)state;
	for (unsigned lcores = 1; lcores <= 4; lcores += 3) {
		for (unsigned version = 4; version <= 6; version += 2) {
			struct gb *gb = gb_open(&(struct gb_setup){.services = both_versions,
				.lcores = lcores,
				.shim = "\"tag\": \"always\""});
			const char *name = version == 4 ? "kv.app.in" : "k6.app.in";
			struct frame whole;

			gb_connect(gb);
			gb_turn(gb);
			udp_message(&whole, version, GB_CLIENT, 3000);
			pass_in_pieces(gb, GB_WIRE, &whole, 1, 1400);
			assert_int_equal(packets_of(gb, name), 3);
			gb_time.now_ns += 50 * GB_US;
			udp_message(&whole, version, GB_SERVER, 2000);
			pass_in_pieces(gb, GB_LOCAL, &whole, 1, 1400);
			gb_turn(gb);
			gb_collect(gb, 2);
			assert_int_equal(gb_rpc(gb, 0).rpc->outcome, BS_OUTCOME_ANSWERED);
			assert_int_equal(gb_rpc(gb, 0).rpc->request_bytes, 3000);
			assert_int_equal(gb_rpc(gb, 0).rpc->response_bytes, 2000);
			assert_int_equal(gb_snapshot(gb)->parse[BS_PARSE_FRAGMENT], 5);
			assert_int_equal(gb_snapshot(gb)->parse[BS_PARSE_FRAGMENT_ALONE], 0);
			assert_int_equal(packets_of(gb, "other.app.in"), 0);
			gb_close(gb);
		}
	}
}

static void
a_fragmented_segment_is_part_of_its_stream(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.shim = "\"tag\": \"always\""});
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame frame;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	gb_message(&frame, &flow, GB_CLIENT, 7, 1400);
	pass_in_pieces(gb, GB_WIRE, &frame, 9, 480);
	gb_message(&frame, &flow, GB_SERVER, 7, 900);
	pass_in_pieces(gb, GB_LOCAL, &frame, 9, 480);
	gb_ack(&frame, &flow, GB_CLIENT);
	gb_pass(gb, GB_WIRE, &frame);
	gb_drain(gb, GB_LOCAL);
	gb_collect(gb, 2);
	assert_int_equal(gb_rpc(gb, 0).rpc->outcome, BS_OUTCOME_ANSWERED);
	assert_int_equal(gb_rpc(gb, 0).rpc->request_bytes, 1400);
	assert_int_equal(gb_rpc(gb, 0).rpc->response_bytes, 900);
	assert_int_equal(gb_snapshot(gb)->track[BS_TRACK_RETRANSMISSIONS], 0);
	assert_int_equal(gb_tag(gb, BS_TAG_TAGGED), 0);
	gb_close(gb);
}

static void
a_fragment_before_its_first_one_passes_and_is_nobodys(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.services = both_versions});
	struct frame whole, part, out;

	(void)state;
	udp_message(&whole, 4, GB_CLIENT, 3000);
	/* its payload reads as a header of the service */
	frame_set16(&whole, whole.l4 + 1400, 40000);
	frame_set16(&whole, whole.l4 + 1402, 53);
	frame_fragment(&part, &whole, 1, 1400, 1400, true);
	gb_pass(gb, GB_WIRE, &part);
	assert_true(gb_take(gb, GB_LOCAL, &out));
	assert_memory_equal(out.bytes, part.bytes, part.n);
	assert_int_equal(gb_snapshot(gb)->parse[BS_PARSE_FRAGMENT_ALONE], 1);
	assert_int_equal(bs_tracker_flows(gb->dataplane->lcores[0]->tracker), 0);
	assert_int_equal(packets_of(gb, "other.app.in"), 1);
	gb_close(gb);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		GB_TEST(rpcs_in_fragmented_datagrams_are_seen_in_their_services_queue),
		GB_TEST(a_fragmented_segment_is_part_of_its_stream),
		GB_TEST(a_fragment_before_its_first_one_passes_and_is_nobodys),
	};

	return cmocka_run_group_tests_name(
		"graybox_fragments", tests, gb_group_setup, gb_group_teardown);
}
