/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The carriers of the shim against frames built anew with checksums over every
 * byte, on thousands of seeded frames, in and out of tunnels, there and back
 * again; and against what nobody should send. More of tcp-option: tcp_edit_test.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "bs_carrier.h"
#include "bs_tcp_edit.h"
#include "wire_tunnel.h"

#define ROUNDS 3000u
#define HEADROOM 80u
#define RANDOM_BYTES(len) ((len)-12 < 160 ? (len)-12 : 160)

static const struct bs_shim sample = {
	.version = 1,
	.flags = BS_SHIM_RESPONSE,
	.class_ = 2,
	.rpc_id = 0x0001000000000042ull,
	.remaining = 1234567,
};

static const uint8_t shim_bytes[16] = {
	0x18, 0, 2, 0, 0, 1, 0, 0, 0, 0, 0, 0x42, 0x00, 0x12, 0xD6, 0x87};

static const struct bs_carrier_ops *
ops(enum bs_carrier carrier)
{
	return &bs_carriers[carrier];
}

/* As the parser sees the frame, tunnels looked through. */
static struct bs_packet
parsed(const struct frame *frame)
{
	struct bs_packet packet = {.data = frame->packet.data,
		.caplen = frame->packet.caplen,
		.len = frame->packet.len};

	assert_int_equal(bs_packet_parse_geneve(&packet), BS_PARSE_OK);
	/* look like partial ones by chance, 1 in 65536 */
	packet.l4_checksum_partial = packet.tunnel_checksum_partial = 0;
	return packet;
}

static void
assert_shim_equal(const struct bs_shim *a, const struct bs_shim *b)
{
	assert_int_equal(a->version, b->version);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->hops, b->hops);
	assert_int_equal(a->class_, b->class_);
	assert_true(a->rpc_id == b->rpc_id);
	assert_int_equal(a->remaining, b->remaining);
}

/* What the edit says of the frame is what the parser finds in it. */
static void
assert_described(const struct frame *frame)
{
	const struct bs_packet *said = &frame->packet, found = parsed(frame);

	assert_int_equal(said->l3, found.l3);
	assert_int_equal(said->l4, found.l4);
	assert_int_equal(said->payload, found.payload);
	assert_int_equal(said->payload_len, found.payload_len);
	assert_int_equal(said->shim, found.shim);
	assert_int_equal(said->announce, found.announce);
	assert_int_equal(said->ether_shim, found.ether_shim);
	assert_int_equal(said->geneve, found.geneve);
	assert_int_equal(said->geneve_shim, found.geneve_shim);
	if (said->geneve != 0)
		assert_int_equal(said->outer_l3, found.outer_l3);
}

/* A random frame that this carrier goes with, parsed. */
static struct frame
random_frame(enum bs_carrier carrier, bool tunneled, uint64_t *random)
{
	struct frame_want want = frame_random_want(HEADROOM, random);
	struct frame frame;

	want.udp = carrier == BS_CARRIER_UDP_OPTION ||
		   (carrier != BS_CARRIER_TCP_OPTION && frame_random(random) & 1);
	if (!want.udp) {
		want.tcp_flags = BS_TCP_ACK;
		frame_random_options(&want, 16, random);
	}
	want.payload %= 1300;
	frame = frame_build(&want, random);
	if (want.udp && frame_get16(frame.packet.data + frame_field(&frame)) == 0)
		frame_put16(frame_data(&frame) + frame_field(&frame), 0xFFFF);
	if (tunneled) {
		const struct tunnel_want tunnel = tunnel_random_want(random);

		return tunnel_build(&frame, &tunnel, random);
	}
	frame.packet = parsed(&frame);
	return frame;
}

/* All lengths and checksums of a frame, by each byte of it. */
static void
assert_frame_right(const struct frame *frame)
{
	const struct bs_packet *packet = &frame->packet;
	const uint8_t *data = packet->data;
	const bool udp = packet->l4_protocol == 17;
	unsigned sum = frame_l4_checksum(data, packet->l3, packet->l4, packet->l4_protocol);

	/* With the IP length for that of the datagram: also what RFC 9868's OCS is for. */
	assert_int_equal(frame_get16(data + packet->l4 + (udp ? 6 : 16)) % 0xFFFF, sum % 0xFFFF);
	if (data[packet->l3] >> 4 == 4)
		assert_int_equal(
			frame_get16(data + packet->l3 + 10), frame_ip_checksum(data, packet->l3));
	if (packet->geneve == 0)
		return;
	if (frame_get16(data + packet->geneve - 2) != 0)
		assert_int_equal(frame_get16(data + packet->geneve - 2), tunnel_checksum(packet));
	if (data[packet->outer_l3] >> 4 == 4)
		assert_int_equal(frame_get16(data + packet->outer_l3 + 10),
			frame_ip_checksum(data, packet->outer_l3));
}

/* Tags and untags; every step is right, and in the end every byte is back. */
static void
assert_round_trip(struct frame *frame, enum bs_carrier carrier)
{
	const struct bs_packet before = frame->packet;
	const unsigned bytes = ops(carrier)->bytes(&before);
	uint8_t original[FRAME_BYTES_MAX];
	struct bs_shim shim;

	memcpy(original, before.data, before.len);
	assert_int_equal(ops(carrier)->read(&frame->packet, &shim), -ENOENT);
	assert_int_equal(ops(carrier)->tag(&frame->packet, frame_data(frame) - bytes, &sample),
		BS_REFUSE_NONE);
	assert_true(bytes <= ops(carrier)->bytes_max);
	assert_int_equal(frame->packet.len, before.len + bytes);
	assert_int_equal(frame->packet.caplen, before.caplen + bytes);
	assert_int_equal(frame->packet.payload_len, before.payload_len);
	assert_ptr_equal(frame->packet.data, before.data - bytes);
	assert_described(frame);
	assert_frame_right(frame);
	assert_true(bs_carrier_any(&frame->packet));
	memset(&shim, 0, sizeof(shim));
	assert_int_equal(ops(carrier)->read(&frame->packet, &shim), 0);
	assert_shim_equal(&shim, &sample);
	assert_int_equal(ops(carrier)->bytes(&frame->packet), bytes);
	assert_int_equal(ops(carrier)->room(&frame->packet), BS_REFUSE_PRESENT);

	assert_int_equal(ops(carrier)->untag(&frame->packet, frame_data(frame)), 0);
	assert_int_equal(frame->packet.len, before.len);
	assert_memory_equal(frame->packet.data, original, before.len);
	assert_described(frame);
	assert_false(bs_carrier_any(&frame->packet));
	assert_int_equal(ops(carrier)->untag(&frame->packet, frame_data(frame)), -EINVAL);
	assert_memory_equal(frame->packet.data, original, before.len);
}

static void
every_carrier_there_and_back_with_all_lengths_and_checksums_right(void **state)
{
	uint64_t random = 51;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned carrier = 1; carrier < BS_CARRIER_COUNT; carrier++) {
			bool tunneled = carrier == BS_CARRIER_GENEVE || round & 1;
			struct frame frame = random_frame(carrier, tunneled, &random);

			assert_round_trip(&frame, carrier);
			frame_free(&frame);
		}
	}
}

static void
wrong_checksums_stay_wrong_and_come_back(void **state)
{
	uint64_t random = 52;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned carrier = 1; carrier < BS_CARRIER_COUNT; carrier++) {
			struct frame frame = random_frame(carrier, round & 1, &random);
			uint8_t original[FRAME_BYTES_MAX], *data = frame_data(&frame);
			const unsigned bytes = ops(carrier)->bytes(&frame.packet);

			if (frame.packet.geneve != 0)
				frame_put16(data + frame.packet.geneve - 2, frame_random(&random));
			if (data[frame.packet.l3] >> 4 == 4)
				frame_put16(data + frame.packet.l3 + 10, frame_random(&random));
			frame_put16(data + frame_field(&frame), frame_random(&random));
			frame.packet = parsed(&frame);
			memcpy(original, data, frame.packet.len);
			if (ops(carrier)->tag(&frame.packet, data - bytes, &sample) ==
				BS_REFUSE_NONE)
				assert_int_equal(
					ops(carrier)->untag(&frame.packet, data - bytes), 0);
			assert_memory_equal(data, original, frame.packet.len);
			frame_free(&frame);
		}
	}
}

/* Both representations of zero: the outer UDP checksum may be 0xFFFF, and may become so. */
static void
outer_checksum_never_becomes_zero(void **state)
{
	uint64_t random = 53;

	(void)state;
	for (unsigned sum = 0; sum < 0x10000; sum++) {
		struct frame_want want = {.headroom = 20, .payload = 1, .tcp_flags = BS_TCP_ACK};
		struct tunnel_want tunnel = {.checksum = true};
		struct frame inner, frame;
		uint8_t *data, original[256];

		if (sum > 64 && sum < 0xFF00 && sum % 61 != 0)
			continue;
		inner = frame_build(&want, &random);
		frame = tunnel_build(&inner, &tunnel, &random);
		data = frame_data(&frame);
		frame_put16(data + frame.packet.geneve - 2, sum);
		frame.packet = parsed(&frame);
		memcpy(original, data, frame.packet.len);
		assert_int_equal(ops(BS_CARRIER_GENEVE)->room(&frame.packet), BS_REFUSE_NONE);
		ops(BS_CARRIER_GENEVE)->tag(&frame.packet, data - 20, &sample);
		assert_int_equal(
			frame_get16(frame.packet.data + frame.packet.geneve - 2) == 0, sum == 0);
		ops(BS_CARRIER_GENEVE)->untag(&frame.packet, data - 20);
		assert_memory_equal(data, original, frame.packet.len);
		frame_free(&frame);
	}
}

/* --- bytes ------------------------------------------------------------------------ */

static void
ether_is_the_frame_with_ethertype_and_shim_behind_the_macs(void **state)
{
	uint64_t random = 54;

	(void)state;
	for (unsigned round = 0; round < 100; round++) {
		struct frame frame = random_frame(BS_CARRIER_ETHER, round & 1, &random);
		const unsigned len = frame.packet.len;
		uint8_t expected[FRAME_BYTES_MAX + 18];

		memcpy(expected, frame.packet.data, 12);
		memcpy(expected + 12, "\x88\xb5", 2);
		memcpy(expected + 14, shim_bytes, 16);
		memcpy(expected + 30, frame.packet.data + 12, len - 12);
		ops(BS_CARRIER_ETHER)->tag(&frame.packet, frame_data(&frame) - 18, &sample);
		assert_int_equal(frame.packet.len, len + 18);
		assert_memory_equal(frame.packet.data, expected, len + 18);
		frame_free(&frame);
	}
}

/*
 * RFC 9868 by hand. The words of the option: 7f14 b5c0 1800 0200 0001 0000 0000
 * 0042 0012 d687; their sum is 225b0. With the surplus area's 22 bytes it is 225c6,
 * folded 25c8, inverted da37; with its 23 bytes, one for alignment, da36.
 */
static void
udp_options_are_as_computed_by_hand(void **state)
{
	static const uint8_t even[22] = {0xda, 0x37, 127, 20, 0xb5, 0xc0, 0x18, 0, 2, 0, 0, 1, 0, 0,
		0, 0, 0, 0x42, 0x00, 0x12, 0xd6, 0x87};
	static const uint8_t odd[23] = {0, 0xda, 0x36, 127, 20, 0xb5, 0xc0, 0x18, 0, 2, 0, 0, 1, 0,
		0, 0, 0, 0, 0x42, 0x00, 0x12, 0xd6, 0x87};
	uint64_t random = 55;

	(void)state;
	for (unsigned i = 0; i < 16; i++) {
		struct frame_want want = {.udp = true,
			.v6 = i & 1,
			.vlans = i >> 1 & 1,
			.payload = 30 + (i >> 2 & 1),
			.trailer = i >> 3 & 1 ? 5 : 0,
			.headroom = 23};
		struct frame frame = frame_build(&want, &random);
		const unsigned bytes = want.payload & 1 ? 23 : 22;
		uint8_t before[256], *data = frame_data(&frame), *ip;
		const unsigned at = frame.packet.payload + want.payload;

		memcpy(before, data, frame.packet.len);
		assert_int_equal(ops(BS_CARRIER_UDP_OPTION)->bytes(&frame.packet), bytes);
		assert_int_equal(
			ops(BS_CARRIER_UDP_OPTION)->tag(&frame.packet, data - bytes, &sample),
			BS_REFUSE_NONE);
		data -= bytes;
		assert_memory_equal(data + at, bytes == 22 ? even : odd, bytes);
		assert_memory_equal(data + at + bytes, before + at, want.trailer);
		/* the UDP header and its data are as they were; the IP packet is longer */
		assert_memory_equal(
			data + frame.packet.l4, before + frame.packet.l4, at - frame.packet.l4);
		ip = data + frame.packet.l3;
		assert_int_equal(frame_get16(ip + (want.v6 ? 4 : 2)),
			8 + want.payload + bytes + (want.v6 ? 0 : 20));
		frame_free(&frame);
	}
}

static void
geneve_option_comes_first_and_is_not_critical(void **state)
{
	static const uint8_t head[4] = {0xff, 0xb5, 1, 4};
	uint64_t random = 56;

	(void)state;
	for (unsigned round = 0; round < 200; round++) {
		struct frame frame = random_frame(BS_CARRIER_GENEVE, true, &random);
		const unsigned at = frame.packet.geneve + 8u, len = frame.packet.len;
		uint8_t before[FRAME_BYTES_MAX], *data = frame_data(&frame);

		memcpy(before, data, len);
		assert_memory_equal(frame.packet.tuple.vni, TUNNEL_VNI, 3);
		ops(BS_CARRIER_GENEVE)->tag(&frame.packet, data - 20, &sample);
		data -= 20;
		assert_memory_equal(data + at, head, 4);
		assert_memory_equal(data + at + 4, shim_bytes, 16);
		assert_memory_equal(data + at + 20, before + at, len - at);
		assert_int_equal(data[at - 8], before[at - 8] + 5); /* units of 4 bytes */
		assert_memory_equal(data + at - 7, before + at - 7, 7);
		frame_free(&frame);
	}
}

/* Announcements and the MSS inside a tunnel: its headers follow. */
static void
tcp_edits_in_a_tunnel_keep_its_lengths_and_checksums_right(void **state)
{
	static const uint8_t mss[4] = {2, 4, 1460 >> 8, 1460 & 0xff};
	uint64_t random = 57;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct frame_want want = frame_random_want(HEADROOM, &random);
		const struct tunnel_want tunnel = tunnel_random_want(&random);
		uint8_t original[FRAME_BYTES_MAX];
		struct frame inner, frame;
		unsigned len;

		want.tcp_flags = BS_TCP_SYN;
		want.option_bytes = 4;
		memcpy(want.options, mss, 4);
		inner = frame_build(&want, &random);
		frame = tunnel_build(&inner, &tunnel, &random);
		len = frame.packet.len;
		memcpy(original, frame.packet.data, len);
		assert_int_equal(
			bs_tcp_announce(&frame.packet, frame_data(&frame) - 4), BS_REFUSE_NONE);
		assert_described(&frame);
		assert_frame_right(&frame);
		assert_int_equal(bs_tcp_unannounce(&frame.packet, frame_data(&frame)), 0);
		assert_memory_equal(frame.packet.data, original, len);
		assert_int_equal(bs_tcp_mss_lower(&frame.packet, frame_data(&frame), 20), 20);
		assert_frame_right(&frame);
		frame_free(&frame);
	}
}

static void
shims_of_several_carriers_come_off_in_any_order(void **state)
{
	uint64_t random = 58;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned l4 = round & 1 ? BS_CARRIER_UDP_OPTION : BS_CARRIER_TCP_OPTION;
		unsigned on[3] = {l4, BS_CARRIER_ETHER, BS_CARRIER_GENEVE};
		struct frame frame = random_frame(l4, true, &random);
		uint8_t original[FRAME_BYTES_MAX];
		const unsigned len = frame.packet.len;

		memcpy(original, frame.packet.data, len);
		for (unsigned i = 0; i < 6; i++) {
			/* each on once, then each off once */
			unsigned k = (i < 3 ? i + round : i * (1 + round / 2 % 2) + round / 3) % 3;
			const struct bs_carrier_ops *carrier = ops(on[k]);

			if (i < 3)
				assert_int_equal(
					carrier->tag(&frame.packet,
						frame_data(&frame) - carrier->bytes(&frame.packet),
						&sample),
					BS_REFUSE_NONE);
			else
				assert_int_equal(
					carrier->untag(&frame.packet, frame_data(&frame)), 0);
			assert_described(&frame);
			assert_frame_right(&frame);
		}
		assert_int_equal(frame.packet.len, len);
		assert_memory_equal(frame.packet.data, original, len);
		frame_free(&frame);
	}
}

/* --- refused ---------------------------------------------------------------------- */

static void
assert_refused(struct frame *frame, enum bs_carrier carrier, enum bs_refusal reason)
{
	const struct bs_packet before = frame->packet;
	uint8_t *block = malloc(frame->headroom + before.caplen);

	memcpy(block, frame->block, frame->headroom + before.caplen);
	assert_int_equal(ops(carrier)->room(&frame->packet), reason);
	assert_int_equal(ops(carrier)->tag(&frame->packet,
				 frame_data(frame) - ops(carrier)->bytes(&before), &sample),
		reason);
	assert_memory_equal(frame->block, block, frame->headroom + before.caplen);
	assert_memory_equal(&frame->packet, &before, sizeof(before));
	free(block);
	frame_free(frame);
}

static void
udp_options_refuse_what_they_would_spoil(void **state)
{
	const struct frame_want want = {.udp = true, .payload = 40, .headroom = 23};
	const struct frame_want tcp = {.payload = 40, .headroom = 23};
	const enum bs_carrier udp = BS_CARRIER_UDP_OPTION;
	uint64_t random = 61;
	struct frame frame = frame_build(&tcp, &random);

	(void)state;
	assert_refused(&frame, udp, BS_REFUSE_OTHER);
	frame = frame_build(&want, &random);
	frame.packet.parse = BS_PARSE_FRAGMENT;
	assert_refused(&frame, udp, BS_REFUSE_OTHER);
	frame = frame_build(&want, &random);
	frame.packet.l4_checksum_partial = 1;
	assert_refused(&frame, udp, BS_REFUSE_PARTIAL);
	/* a surplus area of others, FRAG or whatever */
	frame = frame_build(&want, &random);
	frame_put16(frame_data(&frame) + frame.packet.l4 + 4, 8 + 30);
	frame.packet = parsed(&frame);
	assert_int_equal(frame.packet.payload_len, 30);
	assert_refused(&frame, udp, BS_REFUSE_FOREIGN);
	frame = frame_build(&want, &random);
	frame_put16(frame_data(&frame) + frame.packet.l3 + 10, 0xFFFF);
	assert_refused(&frame, udp, BS_REFUSE_CHECKSUM);
	/* the last bytes are in another segment */
	frame = frame_build(&want, &random);
	frame.packet.caplen -= 1;
	assert_refused(&frame, udp, BS_REFUSE_PIECES);
	/* 65535 less 21 bytes: one too many */
	frame = frame_build(&want, &random);
	frame_put16(frame_data(&frame) + frame.packet.l3 + 2, 65514);
	frame.packet.payload_len = 65514 - 28;
	assert_refused(&frame, udp, BS_REFUSE_IP_LENGTH);
}

static void
ether_refuses_what_is_no_ethernet_frame(void **state)
{
	const struct frame_want want = {.udp = true, .payload = 40, .headroom = 23};
	uint64_t random = 62;
	struct frame frame = frame_build(&want, &random);

	(void)state;
	frame.packet.parse = BS_PARSE_ICMP;
	assert_refused(&frame, BS_CARRIER_ETHER, BS_REFUSE_OTHER);
	frame = frame_build(&want, &random);
	frame_put16(frame_data(&frame) + 12, 0x0000); /* Linux cooked capture, say */
	assert_refused(&frame, BS_CARRIER_ETHER, BS_REFUSE_OTHER);
}

static void
geneve_refuses_without_tunnel_or_room(void **state)
{
	const struct frame_want want = {.payload = 40, .headroom = 23};
	const struct { /* foreign option bytes, of at most 252 */
		unsigned bytes;
		enum bs_refusal refusal;
	} cases[] = {{232, BS_REFUSE_NONE}, {236, BS_REFUSE_FULL}, {252, BS_REFUSE_FULL}};
	uint64_t random = 63;
	struct frame frame = frame_build(&want, &random), inner;

	(void)state;
	assert_refused(&frame, BS_CARRIER_GENEVE, BS_REFUSE_OTHER);
	inner = frame_build(&want, &random);
	frame = tunnel_build(&inner, &(struct tunnel_want){.checksum = true}, &random);
	frame.packet.tunnel_checksum_partial = 1;
	assert_refused(&frame, BS_CARRIER_GENEVE, BS_REFUSE_PARTIAL);
	for (unsigned i = 0; i < 3; i++) {
		struct tunnel_want tunnel = {.option_bytes = cases[i].bytes};

		inner = frame_build(&want, &random);
		frame = tunnel_build(&inner, &tunnel, &random);
		assert_true(frame.packet.geneve != 0);
		if (cases[i].refusal != BS_REFUSE_NONE) {
			assert_refused(&frame, BS_CARRIER_GENEVE, cases[i].refusal);
			continue;
		}
		assert_round_trip(&frame, BS_CARRIER_GENEVE);
		frame_free(&frame);
	}
}

/* --- hostile ---------------------------------------------------------------------- */

/* A frame tagged by the carrier; with `off` the offset of its 16 bytes from the first. */
static struct frame
tagged_frame(enum bs_carrier carrier, unsigned *off, uint64_t *random)
{
	struct frame frame = random_frame(carrier, carrier == BS_CARRIER_GENEVE, random);
	const struct bs_packet *packet = &frame.packet;

	assert_int_equal(ops(carrier)->tag(&frame.packet,
				 frame_data(&frame) - ops(carrier)->bytes(packet), &sample),
		BS_REFUSE_NONE);
	*off = carrier == BS_CARRIER_ETHER    ? packet->ether_shim
	       : carrier == BS_CARRIER_GENEVE ? packet->geneve_shim + 4u
					      : packet->shim + 4u;
	return frame;
}

static void
assert_not_untagged(struct frame *frame, enum bs_carrier carrier, int error)
{
	uint8_t before[FRAME_BYTES_MAX];
	struct bs_shim shim;

	memcpy(before, frame->packet.data, frame->packet.len);
	assert_int_equal(ops(carrier)->read(&frame->packet, &shim), error);
	assert_int_equal(ops(carrier)->untag(&frame->packet, frame_data(frame)), -EINVAL);
	assert_memory_equal(frame->packet.data, before, frame->packet.len);
	frame_free(frame);
}

static void
another_version_is_left_alone(void **state)
{
	uint64_t random = 71;

	(void)state;
	for (unsigned carrier = 1; carrier < BS_CARRIER_COUNT; carrier++) {
		for (unsigned version = 0; version < 16; version++) {
			unsigned at;
			struct frame frame = tagged_frame(carrier, &at, &random);

			if (version == 1) {
				frame_free(&frame);
				continue;
			}
			frame_data(&frame)[at] = (uint8_t)(version << 4);
			assert_not_untagged(&frame, carrier, -EINVAL);
			/* and the parser takes such an Ethertype for somebody else's */
			if (carrier != BS_CARRIER_ETHER)
				continue;
			frame = tagged_frame(carrier, &at, &random);
			frame_data(&frame)[at] = (uint8_t)(version << 4);
			assert_int_equal(bs_packet_parse(&frame.packet), BS_PARSE_NOT_IP);
			assert_int_equal(frame.packet.ether_shim, 0);
			frame_free(&frame);
		}
	}
}

static void
udp_option_with_a_wrong_checksum_is_left_alone(void **state)
{
	uint64_t random = 72;

	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		unsigned at, surplus;
		struct frame frame = tagged_frame(BS_CARRIER_UDP_OPTION, &at, &random);
		const unsigned bytes = ops(BS_CARRIER_UDP_OPTION)->bytes(&frame.packet);

		surplus = frame.packet.payload + frame.packet.payload_len;
		/* any bit of the surplus area but those of kind, length and ExID, which make it
		 * ours */
		at = surplus + frame_random(&random) % bytes;
		frame_data(&frame)[at] ^= (uint8_t)(1u << frame_random(&random) % 8);
		frame.packet = parsed(&frame);
		if (frame.packet.shim == 0) {
			assert_not_untagged(&frame, BS_CARRIER_UDP_OPTION, -ENOENT);
			continue;
		}
		assert_not_untagged(&frame, BS_CARRIER_UDP_OPTION, -EINVAL);
	}
}

/* RFC 9868 section 9: an OCS of 0 is none, and there may be none where UDP has none. */
static void
udp_option_without_checksum_goes_with_udp_without_checksum(void **state)
{
	const struct frame_want want = {.udp = true, .payload = 40, .headroom = 23};
	uint64_t random = 73;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct frame frame = frame_build(&want, &random);
		uint8_t *data = frame_data(&frame);
		struct bs_shim shim;

		if (i == 0)
			frame_put16(data + frame.packet.l4 + 6, 0);
		assert_int_equal(ops(BS_CARRIER_UDP_OPTION)->tag(&frame.packet, data - 22, &sample),
			BS_REFUSE_NONE);
		/* ours has one nevertheless */
		assert_int_not_equal(frame_get16(data - 22 + frame.packet.payload + 40), 0);
		frame_put16(data - 22 + frame.packet.payload + 40, 0);
		if (i == 1) {
			assert_not_untagged(&frame, BS_CARRIER_UDP_OPTION, -EINVAL);
			continue;
		}
		assert_int_equal(ops(BS_CARRIER_UDP_OPTION)->read(&frame.packet, &shim), 0);
		assert_int_equal(ops(BS_CARRIER_UDP_OPTION)->untag(&frame.packet, data - 22), 0);
		frame_free(&frame);
	}
}

static void
udp_option_beside_others_is_not_ours(void **state)
{
	uint64_t random = 74;
	const unsigned more[] = {1, 2, 4, 20}; /* bytes of further options */

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct frame_want want = {.udp = true, .payload = 40 + 22 + more[i]};
		struct frame frame = frame_build(&want, &random);
		uint8_t *data = frame_data(&frame);

		frame_put16(data + frame.packet.l4 + 4, 8 + 40);
		memcpy(data + frame.packet.payload + 42, "\x7f\x14\xb5\xc0", 4);
		frame.packet = parsed(&frame);
		assert_int_equal(frame.packet.payload_len, 40);
		assert_int_equal(frame.packet.shim, 0);
		assert_not_untagged(&frame, BS_CARRIER_UDP_OPTION, -ENOENT);
	}
}

/* Cut anywhere, as bytes and as frames: nothing is read or written past what is there. */
static void
tagged_frames_cut_anywhere_never_come_apart(void **state)
{
	uint64_t random = 75;

	(void)state;
	for (unsigned round = 0; round < 4 * BS_CARRIER_COUNT; round++) {
		unsigned carrier = 1 + round % (BS_CARRIER_COUNT - 1), at;
		struct frame frame = tagged_frame(carrier, &at, &random);

		for (unsigned cut = 0; cut < frame.packet.len; cut++) {
			uint8_t *copy = malloc(cut + 1);
			struct bs_packet packet = {.data = copy + 1, .caplen = cut};
			struct bs_shim shim;

			packet.len = cut % 2 ? cut : frame.packet.len;
			memcpy(copy + 1, frame.packet.data, cut);
			bs_packet_parse_geneve(&packet);
			for (unsigned k = 1; k < BS_CARRIER_COUNT; k++) {
				ops(k)->read(&packet, &shim);
				ops(k)->room(&packet);
				if (packet.parse == BS_PARSE_OK &&
					ops(k)->untag(&packet, copy + 1) == 0)
					break;
			}
			free(copy);
		}
		frame_free(&frame);
	}
}

/* Any bytes changed: no carrier reads or writes outside, and refused means untouched. */
static void
tagged_frames_with_random_bytes_changed_do_no_harm(void **state)
{
	uint64_t random = 76;

	(void)state;
	for (unsigned round = 0; round < 4 * ROUNDS; round++) {
		unsigned carrier = 1 + round % (BS_CARRIER_COUNT - 1), at;
		struct frame frame = tagged_frame(carrier, &at, &random);
		uint8_t *data = frame_data(&frame), before[FRAME_BYTES_MAX];
		const unsigned len = frame.packet.len;

		for (unsigned i = 0; i < 1 + round % 4; i++)
			data[12 + frame_random(&random) % RANDOM_BYTES(len)] =
				(uint8_t)frame_random(&random);
		bs_packet_parse_geneve(&frame.packet);
		memcpy(before, data, len);
		for (unsigned k = 1; k < BS_CARRIER_COUNT; k++) {
			if (ops(k)->untag(&frame.packet, data) == 0) {
				assert_ptr_equal(frame.packet.data + frame.packet.len, data + len);
				break;
			}
			assert_memory_equal(data, before, len);
		}
		frame_free(&frame);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_carrier_there_and_back_with_all_lengths_and_checksums_right),
		cmocka_unit_test(wrong_checksums_stay_wrong_and_come_back),
		cmocka_unit_test(outer_checksum_never_becomes_zero),
		cmocka_unit_test(ether_is_the_frame_with_ethertype_and_shim_behind_the_macs),
		cmocka_unit_test(udp_options_are_as_computed_by_hand),
		cmocka_unit_test(geneve_option_comes_first_and_is_not_critical),
		cmocka_unit_test(tcp_edits_in_a_tunnel_keep_its_lengths_and_checksums_right),
		cmocka_unit_test(shims_of_several_carriers_come_off_in_any_order),
		cmocka_unit_test(udp_options_refuse_what_they_would_spoil),
		cmocka_unit_test(ether_refuses_what_is_no_ethernet_frame),
		cmocka_unit_test(geneve_refuses_without_tunnel_or_room),
		cmocka_unit_test(another_version_is_left_alone),
		cmocka_unit_test(udp_option_with_a_wrong_checksum_is_left_alone),
		cmocka_unit_test(udp_option_without_checksum_goes_with_udp_without_checksum),
		cmocka_unit_test(udp_option_beside_others_is_not_ours),
		cmocka_unit_test(tagged_frames_cut_anywhere_never_come_apart),
		cmocka_unit_test(tagged_frames_with_random_bytes_changed_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
