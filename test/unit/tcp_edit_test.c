/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP header edits against frames built anew with checksums over every byte, on
 * thousands of seeded frames, there and back again.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "bs_tcp_edit.h"
#include "wire_frames.h"

#define ROUNDS 5000u

static const struct bs_shim sample = {
	.version = 1,
	.flags = BS_SHIM_RESPONSE,
	.class_ = 2,
	.rpc_id = 0x0001000000000042ull,
	.remaining = 1234567,
};

static const uint8_t shim_option[20] = {
	253, 20, 0xB5, 0xC0, 0x18, 0, 2, 0, 0, 1, 0, 0, 0, 0, 0, 0x42, 0x00, 0x12, 0xD6, 0x87};
static const uint8_t announce_option[4] = {253, 4, 0xB5, 0xC1};

/* By how much a frame's TCP checksum is off, modulo 2^16 - 1. */
static unsigned
checksum_error(const uint8_t *data, unsigned l3, unsigned l4)
{
	unsigned right = frame_l4_checksum(data, l3, l4, 6);

	return (frame_get16(data + l4 + 16) + 0xFFFF - right) % 0xFFFF;
}

static unsigned
ip_checksum_error(const uint8_t *data, unsigned l3)
{
	if (data[l3] >> 4 == 6)
		return 0;
	return (frame_get16(data + l3 + 10) + 0xFFFF - frame_ip_checksum(data, l3)) % 0xFFFF;
}

/*
 * The frame with `option` at offset `at`, lengths put right and the checksums
 * computed over all of it. Returns its length.
 */
static unsigned
reference_insert(
	const struct frame *frame, const uint8_t *option, unsigned bytes, unsigned at, uint8_t *out)
{
	const struct bs_packet *packet = &frame->packet;
	unsigned l3 = packet->l3, l4 = packet->l4;

	memcpy(out, packet->data, at);
	memcpy(out + at, option, bytes);
	memcpy(out + at + bytes, packet->data + at, packet->len - at);
	out[l4 + 12] = (uint8_t)(out[l4 + 12] + (bytes / 4 << 4));
	if (out[l3] >> 4 == 4) {
		frame_put16(out + l3 + 2, frame_get16(out + l3 + 2) + bytes);
		frame_put16(out + l3 + 10, frame_ip_checksum(out, l3));
	} else {
		frame_put16(out + l3 + 4, frame_get16(out + l3 + 4) + bytes);
	}
	frame_put16(out + l4 + 16, frame_l4_checksum(out, l3, l4, 6));
	return packet->len + bytes;
}

/* The packet's lengths and offsets describe `frame` with `grown` bytes more of header. */
static void
assert_described(const struct bs_packet *packet, const struct bs_packet *before, unsigned grown)
{
	assert_int_equal(packet->l3, before->l3);
	assert_int_equal(packet->l4, before->l4);
	assert_int_equal(packet->payload, before->payload + grown);
	assert_int_equal(packet->payload_len, before->payload_len);
	assert_int_equal(packet->caplen, before->caplen + grown);
	assert_int_equal(packet->len, before->len + grown);
}

static void
tag_equals_frame_built_with_option(void **state)
{
	uint64_t random = 11;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct frame_want want = frame_random_want(20, &random);
		struct frame frame;
		struct bs_packet before;
		uint8_t expected[FRAME_BYTES_MAX + 20];
		unsigned len;

		frame_random_options(&want, 20, &random);
		frame = frame_build(&want, &random);
		before = frame.packet;
		len = reference_insert(&frame, shim_option, 20, frame.packet.l4 + 20u, expected);

		assert_int_equal(bs_tcp_tag_room(&frame.packet), BS_REFUSE_NONE);
		assert_int_equal(bs_tcp_tag(&frame.packet, frame.block, &sample), BS_REFUSE_NONE);
		assert_memory_equal(frame.block, expected, len);
		assert_ptr_equal(frame.packet.data, frame.block);
		assert_described(&frame.packet, &before, 20);
		assert_int_equal(frame.packet.shim, frame.packet.l4 + 20);
		assert_int_equal(frame.packet.tcp_options & BS_TCPOPT_SHIM, BS_TCPOPT_SHIM);
		frame_free(&frame);
	}
}

static void
untag_restores_every_byte(void **state)
{
	uint64_t random = 12;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct frame_want want = frame_random_want(20, &random);
		struct frame frame;
		struct bs_packet before;
		uint8_t original[FRAME_BYTES_MAX];

		frame_random_options(&want, 20, &random);
		frame = frame_build(&want, &random);
		before = frame.packet;
		memcpy(original, before.data, before.len);

		assert_int_equal(bs_tcp_tag(&frame.packet, frame.block, &sample), BS_REFUSE_NONE);
		assert_int_equal(bs_tcp_untag(&frame.packet, frame.block), 0);
		assert_memory_equal(frame.block + 20, original, before.len);
		assert_memory_equal(&frame.packet, &before, sizeof(before));
		frame_free(&frame);
	}
}

static void
wrong_checksums_stay_as_wrong(void **state)
{
	uint64_t random = 13;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct frame_want want = frame_random_want(20, &random);
		struct frame frame = frame_build(&want, &random);
		unsigned l3 = frame.packet.l3, l4 = frame.packet.l4, tcp_error, ip_error;
		uint8_t *data = frame_data(&frame);
		uint8_t original[FRAME_BYTES_MAX];

		frame_put16(data + l4 + 16, frame_random(&random) % 0xFFFF);
		if (!want.v6)
			frame_put16(data + l3 + 10, frame_random(&random) % 0xFFFF);
		memcpy(original, data, frame.packet.len);
		tcp_error = checksum_error(data, l3, l4);
		ip_error = ip_checksum_error(data, l3);

		assert_int_equal(bs_tcp_tag(&frame.packet, frame.block, &sample), BS_REFUSE_NONE);
		assert_int_equal(checksum_error(frame.block, l3, l4), tcp_error);
		assert_int_equal(ip_checksum_error(frame.block, l3), ip_error);
		assert_int_equal(bs_tcp_untag(&frame.packet, frame.block), 0);
		assert_memory_equal(frame.block + 20, original, frame.packet.len);
		frame_free(&frame);
	}
}

/* Every value of the checksum field but 0xFFFF comes back, 0 too. */
static void
every_checksum_value_comes_back(void **state)
{
	uint64_t random = 14;
	struct frame_want want = {.payload = 3, .headroom = 20};
	struct frame frame = frame_build(&want, &random);
	unsigned field = frame.packet.l4 + 16u;

	(void)state;
	for (unsigned value = 0; value < 0xFFFF; value++) {
		frame_put16(frame.block + 20 + field, value);
		assert_int_equal(bs_tcp_tag(&frame.packet, frame.block, &sample), BS_REFUSE_NONE);
		assert_int_equal(bs_tcp_untag(&frame.packet, frame.block), 0);
		assert_int_equal(frame_get16(frame.block + 20 + field), value);
	}
	frame_free(&frame);
}

/* The options of a SYN or data segment with a given option at any offset, odd ones too. */
static unsigned
options_around(struct frame_want *want, const uint8_t *option, unsigned bytes, uint64_t *random)
{
	unsigned at;

	do {
		want->option_bytes = 0;
		frame_random_options(want, 40 - bytes, random);
		at = frame_random(random) % (want->option_bytes + 1);
		/* between options, not within one */
		for (unsigned i = 0; i < want->option_bytes && i != at;) {
			i += want->options[i] == 1 ? 1 : want->options[i + 1];
			if (i > at)
				at = i;
		}
	} while (want->option_bytes + bytes > 40);
	memmove(want->options + at + bytes, want->options + at, want->option_bytes - at);
	memcpy(want->options + at, option, bytes);
	want->option_bytes += bytes;
	return at;
}

static void
untag_takes_shim_from_anywhere_in_options(void **state)
{
	uint64_t random = 15;
	unsigned odd = 0, behind = 0;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct frame_want want = frame_random_want(0, &random);
		unsigned at = options_around(&want, shim_option, 20, &random), wrong;
		struct frame frame = frame_build(&want, &random), plain;
		uint8_t *data = frame_data(&frame);
		uint8_t expected[FRAME_BYTES_MAX];
		unsigned option_at = frame.packet.l4 + 20u + at;

		odd += at & 1;
		behind += at > 0;
		frame.packet.tcp_options = BS_TCPOPT_SHIM;
		frame.packet.shim = (uint16_t)option_at;

		/* Built without it: inserting it there must give the frame we have. */
		memmove(want.options + at, want.options + at + 20, want.option_bytes - at - 20);
		want.option_bytes -= 20;
		plain = frame_build(&want, &random);
		memcpy(frame_data(&plain), data, plain.packet.l4 + 20u);
		memcpy(frame_data(&plain) + plain.packet.l4 + 20 + at, data + option_at + 20,
			plain.packet.len - plain.packet.l4 - 20 - at);
		frame_data(&plain)[plain.packet.l4 + 12] -= 5 << 4;
		frame_put16(frame_data(&plain) + plain.packet.l3 + (want.v6 ? 4 : 2),
			frame_get16(data + plain.packet.l3 + (want.v6 ? 4 : 2)) - 20);
		if (!want.v6)
			frame_put16(frame_data(&plain) + plain.packet.l3 + 10,
				frame_ip_checksum(plain.packet.data, plain.packet.l3));
		frame_put16(frame_data(&plain) + plain.packet.l4 + 16,
			frame_l4_checksum(plain.packet.data, plain.packet.l3, plain.packet.l4, 6));
		memcpy(expected, plain.packet.data, plain.packet.len);
		wrong = round & 1 ? frame_random(&random) % 0xFFFF : 0;
		if (wrong != 0)
			frame_put16(data + frame.packet.l4 + 16, wrong);
		wrong = checksum_error(data, frame.packet.l3, frame.packet.l4);

		assert_int_equal(bs_tcp_untag(&frame.packet, data), 0);
		assert_ptr_equal(frame.packet.data, data + 20);
		assert_int_equal(
			checksum_error(data + 20, plain.packet.l3, plain.packet.l4), wrong);
		if (wrong == 0)
			assert_memory_equal(data + 20, expected, plain.packet.len);
		assert_int_equal(frame.packet.len, plain.packet.len);
		assert_int_equal(frame.packet.payload, plain.packet.payload);
		frame_free(&frame);
		frame_free(&plain);
	}
	assert_true(odd > ROUNDS / 20); /* the cases that the test is for did occur */
	assert_true(behind > ROUNDS / 4);
}

static void
announce_and_back_equals_frame_built_with_option(void **state)
{
	uint64_t random = 16;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct frame_want want = frame_random_want(4, &random);
		struct frame frame;
		struct bs_packet before;
		uint8_t original[FRAME_BYTES_MAX], expected[FRAME_BYTES_MAX + 4];
		unsigned len;

		want.tcp_flags = BS_TCP_SYN | (round & 1 ? BS_TCP_ACK : 0);
		frame_random_options(&want, 36, &random);
		frame = frame_build(&want, &random);
		before = frame.packet;
		memcpy(original, before.data, before.len);
		len = reference_insert(&frame, announce_option, 4, before.l4 + 20u, expected);

		assert_int_equal(bs_tcp_announce(&frame.packet, frame.block), BS_REFUSE_NONE);
		assert_memory_equal(frame.block, expected, len);
		assert_described(&frame.packet, &before, 4);
		assert_int_equal(frame.packet.announce, before.l4 + 20);
		assert_int_equal(bs_tcp_unannounce(&frame.packet, frame.block), 0);
		assert_memory_equal(frame.block + 4, original, before.len);
		assert_memory_equal(&frame.packet, &before, sizeof(before));
		frame_free(&frame);
	}
}

static void
shim_and_announcement_in_one_segment_come_off_in_any_order(void **state)
{
	uint64_t random = 17;

	(void)state;
	for (unsigned order = 0; order < 4; order++) {
		struct frame_want want = {.tcp_flags = BS_TCP_SYN, .payload = 9, .headroom = 24};
		struct frame frame = frame_build(&want, &random);
		struct bs_packet before = frame.packet;
		uint8_t original[FRAME_BYTES_MAX];
		uint8_t *data;

		memcpy(original, before.data, before.len);
		if (order & 1) {
			assert_int_equal(bs_tcp_tag(&frame.packet, frame.block + 4, &sample), 0);
			assert_int_equal(bs_tcp_announce(&frame.packet, frame.block), 0);
		} else {
			assert_int_equal(bs_tcp_announce(&frame.packet, frame.block + 20), 0);
			assert_int_equal(bs_tcp_tag(&frame.packet, frame.block, &sample), 0);
		}
		assert_memory_equal(frame.block + frame.packet.shim, shim_option, 20);
		assert_memory_equal(frame.block + frame.packet.announce, announce_option, 4);
		if (order & 2) {
			assert_int_equal(bs_tcp_untag(&frame.packet, frame.block), 0);
			data = frame_data(&frame);
			assert_memory_equal(data + frame.packet.announce, announce_option, 4);
			assert_int_equal(bs_tcp_unannounce(&frame.packet, data), 0);
		} else {
			assert_int_equal(bs_tcp_unannounce(&frame.packet, frame.block), 0);
			data = frame_data(&frame);
			assert_memory_equal(data + frame.packet.shim, shim_option, 20);
			assert_int_equal(bs_tcp_untag(&frame.packet, data), 0);
		}
		assert_memory_equal(frame.block + 24, original, before.len);
		assert_memory_equal(&frame.packet, &before, sizeof(before));
		frame_free(&frame);
	}
}

/* Makes a frame that is to be refused for one reason. */
static struct frame
refused_frame(enum bs_refusal reason, bool v6, uint64_t *random)
{
	struct frame_want want = {.v6 = v6, .payload = 100, .headroom = 20};
	struct frame frame;
	uint8_t *data;

	if (reason == BS_REFUSE_FULL) {
		want.option_bytes = 24;
		memset(want.options, 1, 24);
	}
	frame = frame_build(&want, random);
	data = frame_data(&frame);
	switch (reason) {
	case BS_REFUSE_OTHER:
		frame.packet.parse = BS_PARSE_FRAGMENT;
		break;
	case BS_REFUSE_PARTIAL:
		frame.packet.l4_checksum_partial = 1;
		break;
	case BS_REFUSE_MALFORMED:
		frame.packet.tcp_options = BS_TCPOPT_MALFORMED;
		break;
	case BS_REFUSE_SIGNED:
		frame.packet.tcp_options = BS_TCPOPT_TIMESTAMP | BS_TCPOPT_MD5_AO;
		break;
	case BS_REFUSE_FOREIGN:
		frame.packet.tcp_options = BS_TCPOPT_FOREIGN_EXP;
		break;
	case BS_REFUSE_PRESENT:
		frame.packet.tcp_options = BS_TCPOPT_SHIM;
		break;
	case BS_REFUSE_NO_LENGTH:
		frame_put16(data + frame.packet.l3 + (v6 ? 4 : 2), 0);
		break;
	case BS_REFUSE_IP_LENGTH:
		frame_put16(data + frame.packet.l3 + (v6 ? 4 : 2), 65516);
		break;
	case BS_REFUSE_CHECKSUM:
		frame_put16(data + frame.packet.l4 + 16, 0xFFFF);
		break;
	default:
		break;
	}
	return frame;
}

static void
tag_refuses_each_reason_and_writes_nothing(void **state)
{
	uint64_t random = 18;

	(void)state;
	/* the last is that of other carriers */
	for (unsigned reason = 0; reason < 2 * BS_REFUSE_PIECES; reason++) {
		enum bs_refusal expected = reason / 2;
		struct frame frame = refused_frame(expected, reason & 1, &random);
		struct bs_packet before = frame.packet;
		uint8_t block[FRAME_BYTES_MAX];

		if (expected == BS_REFUSE_NOT_SYN) /* of announcements only */
			expected = BS_REFUSE_NONE;
		memcpy(block, frame.block, 20 + before.len);
		assert_int_equal(bs_tcp_tag_room(&frame.packet), expected);
		assert_int_equal(bs_tcp_tag(&frame.packet, frame.block, &sample), expected);
		if (expected != BS_REFUSE_NONE) {
			assert_memory_equal(frame.block, block, 20 + before.len);
			assert_memory_equal(&frame.packet, &before, sizeof(before));
		}
		frame_free(&frame);
	}
}

static void
tag_refuses_headers_that_are_not_all_there(void **state)
{
	uint64_t random = 19;
	struct frame_want want = {.headroom = 20};

	(void)state;
	for (unsigned bad = 0; bad < 4; bad++) {
		struct frame frame = frame_build(&want, &random);

		if (bad == 0)
			frame.packet.caplen = frame.packet.payload - 1u;
		else if (bad == 1)
			frame.packet.l4_protocol = 17;
		else if (bad == 2)
			frame.packet.payload = (uint16_t)(frame.packet.l4 + 19);
		else
			frame.packet.l4 = (uint16_t)(frame.packet.l3 + 19);
		assert_int_equal(bs_tcp_tag(&frame.packet, frame.block, &sample), BS_REFUSE_OTHER);
		frame_free(&frame);
	}
}

static void
limits_are_exact(void **state)
{
	uint64_t random = 20;
	struct frame_want want = {.option_bytes = 20, .headroom = 20};
	struct frame frame;

	(void)state;
	memset(want.options, 1, sizeof(want.options));
	frame = frame_build(&want, &random); /* 40 + 20 = 60 bytes of header */
	assert_int_equal(bs_tcp_tag_room(&frame.packet), BS_REFUSE_NONE);
	frame_put16(frame_data(&frame) + frame.packet.l3 + 2, 65515);
	assert_int_equal(bs_tcp_tag_room(&frame.packet), BS_REFUSE_NONE);
	frame_put16(frame_data(&frame) + frame.packet.l3 + 2, 65516);
	assert_int_equal(bs_tcp_tag_room(&frame.packet), BS_REFUSE_IP_LENGTH);
	frame_put16(frame_data(&frame) + frame.packet.l3 + 2, 1000);
	frame_put16(frame_data(&frame) + frame.packet.l3 + 10, 0xFFFF);
	assert_int_equal(bs_tcp_tag_room(&frame.packet), BS_REFUSE_CHECKSUM);
	frame_free(&frame);
}

static void
announce_needs_syn_and_room_of_its_own(void **state)
{
	uint64_t random = 22;
	struct frame_want want = {.tcp_flags = BS_TCP_ACK, .headroom = 4};
	struct frame frame = frame_build(&want, &random);

	(void)state;
	assert_int_equal(bs_tcp_announce(&frame.packet, frame.block), BS_REFUSE_NOT_SYN);
	frame.packet.tcp_flags = BS_TCP_SYN;
	frame.packet.tcp_options = BS_TCPOPT_ANNOUNCE;
	assert_int_equal(bs_tcp_announce(&frame.packet, frame.block), BS_REFUSE_PRESENT);
	frame_free(&frame);

	want.tcp_flags = BS_TCP_SYN;
	want.option_bytes = 40;
	memset(want.options, 1, 40);
	frame = frame_build(&want, &random);
	assert_int_equal(bs_tcp_announce(&frame.packet, frame.block), BS_REFUSE_FULL);
	frame_free(&frame);
}

static void
untag_refuses_what_is_no_shim_and_writes_nothing(void **state)
{
	uint64_t random = 23;

	(void)state;
	for (unsigned bad = 0; bad < 9; bad++) {
		struct frame_want want = {.v6 = bad & 1, .option_bytes = 20};
		struct frame frame;
		struct bs_packet before;
		uint8_t original[FRAME_BYTES_MAX];
		uint8_t *data;

		memcpy(want.options, shim_option, 20);
		frame = frame_build(&want, &random);
		data = frame_data(&frame);
		frame.packet.tcp_options = BS_TCPOPT_SHIM;
		frame.packet.shim = (uint16_t)(frame.packet.l4 + 20);
		if (bad == 0)
			frame.packet.tcp_options = 0;
		else if (bad == 1)
			frame.packet.shim += 1; /* would go on into the payload */
		else if (bad == 2)
			frame.packet.shim = (uint16_t)(frame.packet.l4 + 16);
		else if (bad == 3)
			data[frame.packet.shim + 3] = 0xC1;
		else if (bad == 4)
			data[frame.packet.shim + 4] = 0x28; /* version 2 */
		else if (bad == 5)
			frame.packet.l4_checksum_partial = 1;
		else if (bad == 6) /* IPv4 */
			frame_put16(data + frame.packet.l3 + 2, 59);
		else if (bad == 7) /* IPv6 */
			frame_put16(data + frame.packet.l3 + 4, 0);
		else
			frame.packet.parse = BS_PARSE_CUT;
		before = frame.packet;
		memcpy(original, data, before.len);
		assert_int_equal(bs_tcp_untag(&frame.packet, data), -EINVAL);
		assert_memory_equal(data, original, before.len);
		assert_memory_equal(&frame.packet, &before, sizeof(before));
		frame_free(&frame);
	}
}

static void
unannounce_refuses_what_is_no_announcement(void **state)
{
	uint64_t random = 24;
	struct frame_want want = {.tcp_flags = BS_TCP_SYN, .option_bytes = 4};
	struct frame frame;

	(void)state;
	memcpy(want.options, announce_option, 4);
	frame = frame_build(&want, &random);
	assert_int_equal(bs_tcp_unannounce(&frame.packet, frame_data(&frame)), -EINVAL);
	frame.packet.tcp_options = BS_TCPOPT_ANNOUNCE;
	frame.packet.announce = (uint16_t)(frame.packet.l4 + 21);
	assert_int_equal(bs_tcp_unannounce(&frame.packet, frame_data(&frame)), -EINVAL);
	frame.packet.announce = (uint16_t)(frame.packet.l4 + 20);
	for (unsigned i = 0; i < 4; i++) {
		frame_data(&frame)[frame.packet.announce + i] ^= 1;
		assert_int_equal(bs_tcp_unannounce(&frame.packet, frame_data(&frame)), -EINVAL);
		frame_data(&frame)[frame.packet.announce + i] ^= 1;
	}
	assert_int_equal(bs_tcp_unannounce(&frame.packet, frame_data(&frame)), 0);
	frame_free(&frame);

	memcpy(want.options, "\1\1\1\375", 4); /* goes on into the payload */
	want.payload = 3;
	frame = frame_build(&want, &random);
	memcpy(frame_data(&frame) + frame.packet.payload, announce_option + 1, 3);
	frame.packet.tcp_options = BS_TCPOPT_ANNOUNCE;
	frame.packet.announce = (uint16_t)(frame.packet.l4 + 23);
	assert_int_equal(bs_tcp_unannounce(&frame.packet, frame_data(&frame)), -EINVAL);
	frame_free(&frame);
}

static void
mss_lowered_by_shim_equals_frame_built_with_it(void **state)
{
	uint64_t random = 25;
	unsigned odd = 0;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned mss = 108 + frame_random(&random) % (65536 - 108);
		uint8_t option[4] = {2, 4, (uint8_t)(mss >> 8), (uint8_t)mss};
		struct frame_want want = frame_random_want(0, &random);
		unsigned at = options_around(&want, option, 4, &random);
		struct frame frame;
		uint8_t expected[FRAME_BYTES_MAX];

		want.tcp_flags = BS_TCP_SYN;
		frame = frame_build(&want, &random);
		memcpy(expected, frame.packet.data, frame.packet.len);
		frame_put16(expected + frame.packet.l4 + 20 + at + 2, mss - 20);
		frame_put16(expected + frame.packet.l4 + 16,
			frame_l4_checksum(expected, frame.packet.l3, frame.packet.l4, 6));
		odd += at & 1;
		frame.packet.tcp_options = BS_TCPOPT_MSS;

		assert_int_equal(bs_tcp_mss_lower(&frame.packet, frame_data(&frame), 20), 20);
		assert_memory_equal(frame.packet.data, expected, frame.packet.len);
		assert_int_equal(frame.packet.mss, mss - 20);
		frame_free(&frame);
	}
	assert_true(odd > ROUNDS / 20);
}

static void
mss_is_never_raised_nor_lowered_below_floor(void **state)
{
	static const struct {
		unsigned mss, lowered;
	} cases[] = {
		{0, 0}, {87, 0}, {88, 0}, {89, 1}, {107, 19}, {108, 20}, {1460, 20}, {65535, 20}};
	uint64_t random = 26;

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct frame_want want = {.tcp_flags = BS_TCP_SYN, .option_bytes = 4};
		struct frame frame;
		unsigned at;

		want.options[0] = 2;
		want.options[1] = 4;
		frame_put16(want.options + 2, cases[i].mss);
		frame = frame_build(&want, &random);
		at = frame.packet.l4 + 22u;
		assert_int_equal(
			bs_tcp_mss_lower(&frame.packet, frame_data(&frame), 20), cases[i].lowered);
		assert_int_equal(
			frame_get16(frame.packet.data + at), cases[i].mss - cases[i].lowered);
		assert_int_equal(
			checksum_error(frame.packet.data, frame.packet.l3, frame.packet.l4), 0);
		frame_free(&frame);
	}
}

static void
mss_is_left_where_it_must_not_or_cannot_be_changed(void **state)
{
	static const uint8_t options[][8] = {
		{1, 1, 1, 1, 2, 4, 5, 180}, /* used with the changes below */
		{0, 1, 1, 1, 2, 4, 5, 180}, /* behind the end of the list */
		{1, 1, 1, 1, 2, 3, 5, 1},   /* wrong length */
		{3, 0, 1, 1, 2, 4, 5, 180}, /* a length that leads nowhere */
		{3, 9, 1, 1, 2, 4, 5, 180}, /* past the end */
		{1, 1, 1, 1, 1, 1, 1, 2},   /* no length */
	};
	uint64_t random = 27;

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		struct frame_want want = {.tcp_flags = BS_TCP_SYN, .option_bytes = 8};
		struct frame frame;
		uint8_t before[FRAME_BYTES_MAX];

		memcpy(want.options, options[i < 5 ? 0 : i - 4], 8);
		frame = frame_build(&want, &random);
		if (i == 0)
			frame.packet.tcp_flags = BS_TCP_ACK;
		else if (i == 1)
			frame.packet.tcp_options = BS_TCPOPT_MD5_AO;
		else if (i == 2)
			frame.packet.tcp_options = BS_TCPOPT_MALFORMED;
		else if (i == 3)
			frame.packet.l4_checksum_partial = 1;
		else if (i == 4)
			frame.packet.parse = BS_PARSE_SNAPPED;
		memcpy(before, frame.packet.data, frame.packet.len);
		assert_int_equal(bs_tcp_mss_lower(&frame.packet, frame_data(&frame), 20), 0);
		assert_memory_equal(frame.packet.data, before, frame.packet.len);
		frame_free(&frame);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tag_equals_frame_built_with_option),
		cmocka_unit_test(untag_restores_every_byte),
		cmocka_unit_test(wrong_checksums_stay_as_wrong),
		cmocka_unit_test(every_checksum_value_comes_back),
		cmocka_unit_test(untag_takes_shim_from_anywhere_in_options),
		cmocka_unit_test(announce_and_back_equals_frame_built_with_option),
		cmocka_unit_test(shim_and_announcement_in_one_segment_come_off_in_any_order),
		cmocka_unit_test(tag_refuses_each_reason_and_writes_nothing),
		cmocka_unit_test(tag_refuses_headers_that_are_not_all_there),
		cmocka_unit_test(limits_are_exact),
		cmocka_unit_test(announce_needs_syn_and_room_of_its_own),
		cmocka_unit_test(untag_refuses_what_is_no_shim_and_writes_nothing),
		cmocka_unit_test(unannounce_refuses_what_is_no_announcement),
		cmocka_unit_test(mss_lowered_by_shim_equals_frame_built_with_it),
		cmocka_unit_test(mss_is_never_raised_nor_lowered_below_floor),
		cmocka_unit_test(mss_is_left_where_it_must_not_or_cannot_be_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
