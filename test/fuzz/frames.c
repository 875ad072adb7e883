/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames through parser, framers, flows, pairing and paths; what comes out must
 * be valid records whose segments tile the latency.
 *
 * Input: mode; without DISCOVER the service: IPv4 address, port, protocol; then
 * frames: {time step, bits; length (16); the frame}.
 */
#include "bs_packet.h"
#include "bs_tracker.h"
#include "fuzz.h"

#define T0 1700000000000000000ull
#define STEP_MAX 36u /* 2^36 ns: a minute */
#define DISCOVER 1u
#define OWN_BUFFERS 2u
#define TINY_TABLES 4u
#define CUT 1u	  /* of the frame, the last quarter is not there */
#define SPLIT 2u  /* its payload comes in pieces */
#define LEAVES 4u /* it departs right away */

static struct bs_framers framers;

static int
put(void *context, const void *units, unsigned count)
{
	const size_t bytes = (size_t)count * BS_UNIT_BYTES;
	const struct bs_record *head = units;
	struct bs_rpc_view view;
	size_t offset = 0, group;
	unsigned bad = 0;
	int error = 0;

	(void)context;
	while (bs_record_next(units, bytes, &offset, &error) != NULL)
		continue;
	FUZZ_CHECK(error == 0);
	FUZZ_CHECK(offset == bytes);
	if (head->type != BS_REC_RPC)
		return 0;
	FUZZ_CHECK(bs_rpc_view(units, bytes, &view, &group) == 0);
	FUZZ_CHECK(group == bytes);
	FUZZ_CHECK(bs_rpc_check_tiling(&view, &bad) == 0);
	return 0;
}

static struct bs_tracker *
create(unsigned mode, struct fuzz_input *input)
{
	static struct bs_tracker_service service;
	struct bs_tracker_config config = {
		.max_flows = mode & TINY_TABLES ? 1 : 256,
		.max_rpcs = mode & TINY_TABLES ? 1 : 256,
		.framers = &framers,
		.services = &service,
		.service_count = 1,
		.discover = mode & DISCOVER,
		.own_buffers = mode & OWN_BUFFERS,
		.detect_ns = {0, 200000, 200000, 200000, 200000, 1000000},
		.idle_ns = 60000000000ull,
		.sample = mode >> 6,
		.check = true,
		.sink = {put, NULL},
	};
	unsigned bad;

	if (framers.count == 0)
		FUZZ_CHECK(bs_framers_init(&framers, NULL, 0, &bad) == 0);
	if (!(mode & DISCOVER)) {
		unsigned protocol;

		FUZZ_CHECK(bs_address_parse("0.0.0.0", service.address) == 0);
		for (unsigned i = 12; i < 16; i++)
			service.address[i] = fuzz_u8(input);
		service.port = fuzz_u16(input);
		protocol = fuzz_u8(input);
		service.framer = protocol < framers.count ? &framers.list[protocol] : NULL;
	}
	return bs_tracker_create(&config);
}

static void
leave(struct bs_tracker *tracker, const struct bs_packet *packet, const struct bs_tracked *tracked,
	bool dropped)
{
	const struct bs_stay stay = {.t_in = packet->t_ns,
		.t_out = packet->t_ns + 3000,
		.congestion = 1000,
		.pause = 1500,
		.stalled = 500,
		.buffer = BS_BUFFER_FIRST_OWN};

	if (dropped) {
		bs_tracker_dropped(tracker, packet, BS_BUFFER_FIRST_OWN, 1, packet->t_ns + 3000);
	} else if (tracked->handle.valid) {
		bs_tracker_stay(tracker, &tracked->handle, &stay);
		bs_tracker_departed(tracker, &tracked->handle, stay.t_out);
	}
}

static void
feed(struct bs_tracker *tracker, unsigned mode, uint64_t t, unsigned bits, const uint8_t *frame,
	size_t bytes)
{
	const size_t kept = bits & CUT ? bytes - bytes / 4 : bytes;
	struct bs_packet packet = {
		.t_ns = t, .data = frame, .caplen = (uint32_t)kept, .len = (uint32_t)bytes};
	const struct bs_arrival arrival = {
		.t_low = t - 1000, .t_poll = t, .exact = !(mode & OWN_BUFFERS)};
	struct bs_tracked tracked;
	struct bs_piece pieces[2];

	if ((bits & 0x80u ? bs_packet_parse_geneve(&packet) : bs_packet_parse(&packet)) !=
		BS_PARSE_OK)
		return;
	FUZZ_CHECK(packet.payload_cap <= packet.payload_len);
	FUZZ_CHECK(packet.payload_cap == 0 || packet.payload + packet.payload_cap <= kept);
	FUZZ_CHECK(bs_tuple_hash(&packet.tuple) == packet.hash);
	if (bits & SPLIT && packet.payload_cap > 2 && packet.tuple.transport == 6) {
		const uint8_t *payload = packet.data + packet.payload;
		const uint32_t first = packet.payload_cap / 3,
			       second = (packet.payload_cap - first) / 2;

		pieces[0] = (struct bs_piece){payload + first, second};
		pieces[1] = (struct bs_piece){
			payload + first + second, packet.payload_cap - first - second};
		packet.payload_cap = first;
		bs_tracker_packet(tracker, &packet, &arrival, pieces, 2, &tracked);
	} else {
		bs_tracker_packet(tracker, &packet, &arrival, NULL, 0, &tracked);
	}
	if (mode & OWN_BUFFERS && bits & LEAVES)
		leave(tracker, &packet, &tracked, bits & 0x40u);
}

void
fuzz_one(const uint8_t *data, size_t bytes)
{
	struct fuzz_input input = {data, bytes};
	const unsigned mode = fuzz_u8(&input);
	struct bs_tracker *tracker = create(mode, &input);
	uint64_t t = T0;

	if (tracker == NULL)
		abort();
	while (input.bytes > 0) {
		const unsigned step = fuzz_u8(&input), bits = fuzz_u8(&input);
		const size_t want = fuzz_u16(&input);
		size_t got;
		uint8_t *frame = fuzz_take(&input, want, &got);

		t += 1ull << step % STEP_MAX;
		feed(tracker, mode, t, bits, frame, got);
		bs_tracker_advance(tracker, t);
		free(frame);
	}
	bs_tracker_finish(tracker, t);
	FUZZ_CHECK(bs_tracker_flows(tracker) == 0);
	FUZZ_CHECK(bs_tracker_open_rpcs(tracker) == 0);
	bs_tracker_destroy(tracker);
}
