/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every edit of a frame: what goes in comes out again to the byte, a checksum that
 * was right is right with it and a wrong one wrong, what refuses writes nothing, and
 * a hostile shim breaks nothing.
 *
 * Input: carrier, bits, 12 bytes of shim; the frame.
 */
#include <errno.h>

#include "bs_carrier.h"
#include "bs_checksum.h"
#include "bs_icmp_edit.h"
#include "bs_tcp_edit.h"
#include "fuzz.h"

#define ROOM 64u
#define PARTIAL_IS_WHOLE 1u
#define GENEVE 2u

struct frame {
	uint8_t *block; /* ROOM bytes, then the frame */
	size_t bytes;
};

static void
parse(struct bs_packet *packet, const uint8_t *data, size_t bytes, unsigned bits)
{
	memset(packet, 0, sizeof(*packet));
	packet->data = data;
	packet->caplen = packet->len = (uint32_t)bytes;
	if (bits & GENEVE)
		bs_packet_parse_geneve(packet);
	else
		bs_packet_parse(packet);
	if (bits & PARTIAL_IS_WHOLE)
		packet->l4_checksum_partial = packet->tunnel_checksum_partial = 0;
}

/* Of the inner packet, if there is a tunnel. What the frame lacks of it counts as wrong. */
static bool
checksum_right(const struct bs_packet *packet)
{
	const struct iovec payload = {(void *)(uintptr_t)(packet->data + packet->payload),
		packet->caplen - packet->payload};

	return bs_checksum_ok(packet, &payload, 1);
}

static struct frame
copy_of(const uint8_t *data, size_t bytes)
{
	struct frame frame = {malloc(ROOM + bytes), bytes};

	if (frame.block == NULL)
		abort();
	memset(frame.block, 0xa5, ROOM);
	memcpy(frame.block + ROOM, data, bytes);
	return frame;
}

static void
round_trip(unsigned carrier, unsigned bits, const struct bs_shim *shim, const uint8_t *data,
	size_t bytes)
{
	const struct bs_carrier_ops *ops = &bs_carriers[carrier];
	struct frame frame = copy_of(data, bytes);
	uint8_t *front;
	struct bs_packet packet;
	struct bs_shim back;
	unsigned added;
	bool right;

	parse(&packet, frame.block + ROOM, bytes, bits);
	if (packet.parse != BS_PARSE_OK)
		goto out;
	right = checksum_right(&packet);
	added = ops->bytes(&packet);
	FUZZ_CHECK(added <= ops->bytes_max && added <= ROOM);
	front = frame.block + ROOM - added;
	if (ops->room(&packet) != BS_REFUSE_NONE) {
		FUZZ_CHECK(ops->tag(&packet, front, shim) == ops->room(&packet));
		FUZZ_CHECK(memcmp(frame.block + ROOM, data, bytes) == 0);
		goto out;
	}
	FUZZ_CHECK(ops->tag(&packet, front, shim) == BS_REFUSE_NONE);
	FUZZ_CHECK(packet.data == front);
	parse(&packet, front, bytes + added, bits);
	FUZZ_CHECK(packet.parse == BS_PARSE_OK);
	FUZZ_CHECK(ops->read(&packet, &back) == 0);
	FUZZ_CHECK(back.rpc_id == shim->rpc_id && back.remaining == shim->remaining);
	FUZZ_CHECK(ops->bytes(&packet) == added);
	FUZZ_CHECK(checksum_right(&packet) == right);
	FUZZ_CHECK(ops->untag(&packet, front) == 0);
	FUZZ_CHECK(packet.data == frame.block + ROOM);
	FUZZ_CHECK(memcmp(frame.block + ROOM, data, bytes) == 0);
out:
	free(frame.block);
}

/* A frame that brings shims, or says so. */
static void
take_off(unsigned bits, const uint8_t *data, size_t bytes)
{
	struct frame frame = copy_of(data, bytes);
	uint8_t *at = frame.block + ROOM;
	struct bs_packet packet;

	parse(&packet, at, bytes, bits);
	for (unsigned carrier = 1; packet.parse == BS_PARSE_OK && carrier < BS_CARRIER_COUNT;
		carrier++) {
		const struct bs_carrier_ops *ops = &bs_carriers[carrier];
		const unsigned taken = ops->bytes(&packet);
		const bool right = checksum_right(&packet);
		struct bs_shim shim;

		if (ops->read(&packet, &shim) != 0) {
			FUZZ_CHECK(ops->untag(&packet, at) == -EINVAL);
			FUZZ_CHECK(at != frame.block + ROOM || memcmp(at, data, bytes) == 0);
			continue;
		}
		if (ops->untag(&packet, at) != 0)
			continue;
		FUZZ_CHECK(checksum_right(&packet) == right);
		at += taken;
		FUZZ_CHECK(packet.data == at);
		FUZZ_CHECK(packet.caplen == (size_t)(frame.block + ROOM + bytes - at));
	}
	free(frame.block);
}

static void
handshake(unsigned bits, const uint8_t *data, size_t bytes)
{
	struct frame frame = copy_of(data, bytes);
	uint8_t *at = frame.block + ROOM;
	struct bs_packet packet;

	parse(&packet, at, bytes, bits);
	if (packet.parse == BS_PARSE_OK && packet.tuple.transport == 6) {
		if (bs_tcp_announce(&packet, at - BS_ANNOUNCE_BYTES) == BS_REFUSE_NONE) {
			at -= BS_ANNOUNCE_BYTES;
			FUZZ_CHECK(bs_tcp_unannounce(&packet, at) == 0);
			FUZZ_CHECK(memcmp(frame.block + ROOM, data, bytes) == 0);
		} else if (bs_tcp_unannounce(&packet, at) == 0) {
			at += BS_ANNOUNCE_BYTES;
		}
	}
	free(frame.block);
	frame = copy_of(data, bytes);
	parse(&packet, frame.block + ROOM, bytes, bits);
	if (packet.parse == BS_PARSE_OK && packet.tuple.transport == 6)
		FUZZ_CHECK(bs_tcp_mss_lower(&packet, frame.block + ROOM, bits) <= bits);
	free(frame.block);
}

static void
too_big(unsigned bits, const uint8_t *data, size_t bytes)
{
	struct frame frame = copy_of(data, bytes);
	struct bs_icmp_too_big message;

	if (bs_icmp_too_big_parse(frame.block + ROOM, bytes, &message) == 0)
		FUZZ_CHECK(bs_icmp_mtu_lower(&message, frame.block + ROOM, bits) <= bits);
	free(frame.block);
}

void
fuzz_one(const uint8_t *data, size_t bytes)
{
	struct fuzz_input input = {data, bytes};
	const unsigned carrier = 1 + fuzz_u8(&input) % (BS_CARRIER_COUNT - 1),
		       bits = fuzz_u8(&input);
	struct bs_shim shim = {.version = BS_SHIM_VERSION};

	for (unsigned i = 0; i < 8; i++)
		shim.rpc_id = shim.rpc_id << 8 | fuzz_u8(&input);
	for (unsigned i = 0; i < 4; i++)
		shim.remaining = shim.remaining << 8 | fuzz_u8(&input);
	round_trip(carrier, bits, &shim, input.data, input.bytes);
	take_off(bits, input.data, input.bytes);
	handshake(bits, input.data, input.bytes);
	too_big(bits, input.data, input.bytes);
}
