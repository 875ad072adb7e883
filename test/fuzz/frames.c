/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames through parser, framers, flows, pairing and paths; what comes out must
 * be valid records whose segments tile the latency.
 *
 * Input: mode; without DISCOVER the services, MODE_SERVICES of them: IPv4 address,
 * port, protocol; then frames: {time step, bits; length (16); the frame}.
 */
#include "bs_carrier.h"
#include "bs_packet.h"
#include "bs_tracker.h"
#include "fuzz.h"

#define T0 1700000000000000000ull
#define STEP_MAX 36u /* 2^36 ns: a minute */

/* mode; its two highest bits are the sampling */
#define DISCOVER 1u
#define OWN_BUFFERS 2u
#define TINY_TABLES 4u
#define MODE_SERVICES(mode) (1u + ((mode) >> 4 & 3u))

/* bits of a frame */
#define CUT 1u	      /* the last quarter is not there */
#define SPLIT 2u      /* its payload comes in pieces */
#define LEAVES 4u     /* it departs right away, */
#define WAITS 8u      /* or some frames later */
#define DROPPED 0x10u /* or not at all */
#define TAGGED 0x20u  /* with a shim */
#define TRUSTED 0x40u /* the shim that it brings names its RPC */
#define TUNNELS 0x80u /* Geneve is looked through */

#define SERVICES_MAX 4u
#define WAITING 8u

struct waiting {
	struct bs_track_handle handle;
	uint64_t t_in;
};

struct play {
	struct bs_tracker *tracker;
	struct bs_tracker_service services[SERVICES_MAX];
	struct waiting waiting[WAITING];
	unsigned waiting_next;
	unsigned mode;
	uint64_t t;
};

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

static void
read_services(struct play *play, struct fuzz_input *input)
{
	for (unsigned s = 0; s < MODE_SERVICES(play->mode); s++) {
		struct bs_tracker_service *service = &play->services[s];
		unsigned protocol;

		FUZZ_CHECK(bs_address_parse("0.0.0.0", service->address) == 0);
		for (unsigned i = 12; i < 16; i++)
			service->address[i] = fuzz_u8(input);
		service->port = fuzz_u16(input);
		protocol = fuzz_u8(input);
		service->framer = protocol < framers.count ? &framers.list[protocol] : NULL;
	}
}

static void
create(struct play *play, struct fuzz_input *input)
{
	const unsigned mode = play->mode;
	struct bs_tracker_config config = {
		.max_flows = mode & TINY_TABLES ? 1 : 256,
		.max_rpcs = mode & TINY_TABLES ? 1 : 256,
		.frame_bytes = mode & TINY_TABLES ? 1 : 1u << 20,
		.framers = &framers,
		.services = play->services,
		.service_count = mode & DISCOVER ? 0 : MODE_SERVICES(mode),
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
	if (!(mode & DISCOVER))
		read_services(play, input);
	play->tracker = bs_tracker_create(&config);
	if (play->tracker == NULL)
		abort();
	for (unsigned s = 1; s < config.service_count; s++)
		bs_tracker_threshold(play->tracker, s, 1000000);
}

/* It was in a buffer of ours until now. */
static void
depart(struct play *play, const struct bs_track_handle *handle, uint64_t t_in)
{
	const uint64_t wait = play->t - t_in, third = wait / 3;
	const struct bs_stay stay = {.t_in = t_in,
		.t_out = play->t,
		.congestion = third,
		.stalled = third,
		.pause = wait - 2 * third,
		.buffer = BS_BUFFER_FIRST_OWN};

	bs_tracker_stay(play->tracker, handle, &stay);
	bs_tracker_departed(play->tracker, handle, play->t);
}

static void
leave(struct play *play, unsigned bits, const struct bs_packet *packet,
	const struct bs_tracked *tracked)
{
	struct waiting *place = &play->waiting[play->waiting_next];

	if (bits & TAGGED && tracked->followed && tracked->rpc_id != 0)
		bs_tracker_tagged(play->tracker, tracked);
	if (bits & DROPPED) {
		bs_tracker_dropped(play->tracker, packet, BS_BUFFER_FIRST_OWN, 1, play->t + 3000);
	} else if (tracked->handle.valid && bits & LEAVES) {
		depart(play, &tracked->handle, tracked->t_arrival);
	} else if (tracked->handle.valid && bits & WAITS) {
		if (place->handle.valid)
			depart(play, &place->handle, place->t_in);
		*place = (struct waiting){tracked->handle, tracked->t_arrival};
		play->waiting_next = (play->waiting_next + 1) % WAITING;
	}
}

static void
feed(struct play *play, unsigned bits, const uint8_t *frame, size_t bytes)
{
	const size_t kept = bits & CUT ? bytes - bytes / 4 : bytes;
	struct bs_packet packet = {
		.t_ns = play->t, .data = frame, .caplen = (uint32_t)kept, .len = (uint32_t)bytes};
	struct bs_arrival arrival = {
		.t_low = play->t - 1000, .t_poll = play->t, .exact = !(play->mode & OWN_BUFFERS)};
	struct bs_tracked tracked;
	struct bs_shim shim;

	if ((bits & TUNNELS ? bs_packet_parse_geneve(&packet) : bs_packet_parse(&packet)) !=
		BS_PARSE_OK)
		return;
	FUZZ_CHECK(packet.payload_cap <= packet.payload_len);
	FUZZ_CHECK(packet.payload_cap == 0 || packet.payload + packet.payload_cap <= kept);
	FUZZ_CHECK(bs_tuple_hash(&packet.tuple) == packet.hash);
	if (bits & TRUSTED && bs_carriers_read(&packet, &shim) == 0)
		arrival.shim_id = shim.rpc_id;
	if (bits & SPLIT && packet.payload_cap > 2 && packet.tuple.transport == 6) {
		const uint8_t *payload = packet.data + packet.payload;
		const uint32_t first = packet.payload_cap / 3,
			       second = (packet.payload_cap - first) / 2;
		const struct bs_piece pieces[] = {{payload + first, second},
			{payload + first + second, packet.payload_cap - first - second}};

		packet.payload_cap = first;
		bs_tracker_packet(play->tracker, &packet, &arrival, pieces, 2, &tracked);
	} else {
		bs_tracker_packet(play->tracker, &packet, &arrival, NULL, 0, &tracked);
	}
	FUZZ_CHECK(tracked.service <= BS_SERVICE_OTHER);
	if (play->mode & OWN_BUFFERS)
		leave(play, bits, &packet, &tracked);
}

static void
look(const struct play *play)
{
	struct bs_tracker_silence silence;
	struct bs_tracker_waiting waiting;

	bs_tracker_silence(play->tracker, 0, &silence);
	bs_tracker_waiting(play->tracker, 0, &waiting);
	FUZZ_CHECK(waiting.count <= BS_TRACKER_WAITING && waiting.count <= waiting.flows);
}

void
fuzz_one(const uint8_t *data, size_t bytes)
{
	struct fuzz_input input = {data, bytes};
	struct play play = {.t = T0, .mode = fuzz_u8(&input)};

	create(&play, &input);
	while (input.bytes > 0) {
		const unsigned step = fuzz_u8(&input), bits = fuzz_u8(&input);
		const size_t want = fuzz_u16(&input);
		size_t got;
		uint8_t *frame = fuzz_take(&input, want, &got);

		play.t += 1ull << step % STEP_MAX;
		feed(&play, bits, frame, got);
		bs_tracker_advance(play.tracker, play.t);
		free(frame);
	}
	look(&play);
	bs_tracker_finish(play.tracker, play.t);
	FUZZ_CHECK(bs_tracker_flows(play.tracker) == 0);
	FUZZ_CHECK(bs_tracker_open_rpcs(play.tracker) == 0);
	bs_tracker_destroy(play.tracker);
}
