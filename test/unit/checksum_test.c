/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums against the examples of RFC 1071 and RFC 1624 and against a sum word by
 * word; completion against checksums computed over the whole packet.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "bs_checksum.h"
#include "wire_frames.h"

static void
sum_of_rfc1071_example_is_ddf2(void **state)
{
	static const uint8_t bytes[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};

	(void)state;
	assert_int_equal(bs_checksum_sum(bytes, sizeof(bytes)), 0xddf2); /* section 3 */
}

static void
adjust_of_rfc1624_example_is_zero(void **state)
{
	(void)state;
	/* Section 4: HC 0xDD2F, m 0x5555, m' 0x3285; eqn 2 would give 0xFFFF. */
	assert_int_equal(bs_checksum_adjust(0xDD2F, 0x5555, 0x3285), 0x0000);
}

static void
adjust_back_restores_every_checksum_but_ffff(void **state)
{
	uint64_t random = 1;

	(void)state;
	for (unsigned checksum = 0; checksum < 0xFFFF; checksum++) {
		uint16_t before = (uint16_t)frame_random(&random);
		uint16_t after = (uint16_t)frame_random(&random);
		uint16_t there = bs_checksum_adjust((uint16_t)checksum, before, after);

		assert_int_not_equal(there, 0xFFFF);
		assert_int_equal(bs_checksum_adjust(there, after, before), checksum);
	}
}

static void
sum_equals_words_at_every_alignment_and_length(void **state)
{
	uint64_t random = 2;

	(void)state;
	for (unsigned len = 0; len < 130; len++)
		for (unsigned shift = 0; shift < 8; shift++) {
			uint8_t *block = malloc(shift + len + 1) /* never 0 */;
			uint8_t *bytes = block + 1 + shift;

			for (unsigned i = 0; i < len; i++)
				bytes[i] = (uint8_t)frame_random(&random);
			assert_int_equal(bs_checksum_sum(bytes, len), frame_sum(0, bytes, len));
			free(block);
		}
}

static void
sum_of_all_ones_keeps_every_carry(void **state)
{
	static uint8_t bytes[70001];

	(void)state;
	memset(bytes, 0xFF, sizeof(bytes));
	assert_int_equal(bs_checksum_sum(bytes, 70000), 0xFFFF);
	assert_int_equal(bs_checksum_sum(bytes, 70001), frame_sum(0, bytes, 70001));
}

/* Cuts the payload into pieces at random places, also empty ones; each on its own heap block. */
static unsigned
cut(const uint8_t *payload, size_t len, struct iovec pieces[8], uint64_t *random)
{
	unsigned count = 1 + frame_random(random) % 8;

	for (unsigned i = 0; i < count; i++) {
		size_t part = i + 1 == count ? len : frame_random(random) % (len + 1);
		void *block = malloc(part > 0 ? part : 1);

		memcpy(block, payload, part);
		pieces[i] = (struct iovec){block, part};
		payload += part;
		len -= part;
	}
	return count;
}

static void
pieces_free(struct iovec *pieces, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		free(pieces[i].iov_base);
}

static void
complete_equals_whole_sum_over_any_pieces(void **state)
{
	uint64_t random = 3;

	(void)state;
	for (unsigned round = 0; round < 4000; round++) {
		struct frame_want want = frame_random_want(0, &random);
		struct frame frame;
		struct iovec pieces[8];
		unsigned count, field, right;

		want.udp = frame_random(&random) & 1;
		if (!want.udp)
			frame_random_options(&want, 40, &random);
		frame = frame_build(&want, &random);
		field = frame_field(&frame);
		right = frame_get16(frame.packet.data + field);
		if (want.udp && right == 0)
			right = 0xFFFF;
		count = cut(frame.packet.data + frame.packet.payload, want.payload + want.trailer,
			pieces, &random);
		frame_put16(frame_data(&frame) + field, frame_random(&random));
		frame.packet.l4_checksum_partial = 1;

		assert_int_equal(
			bs_checksum_complete(&frame.packet, frame_data(&frame), pieces, count), 0);
		assert_int_equal(frame_get16(frame.packet.data + field), right);
		assert_int_equal(frame.packet.l4_checksum_partial, 0);
		assert_true(bs_checksum_ok(&frame.packet, pieces, count));
		pieces_free(pieces, count);
		frame_free(&frame);
	}
}

/* A frame whose right checksum is 0: the last payload word is made what it takes. */
static struct frame
zero_sum_frame(bool udp, uint64_t *random)
{
	struct frame_want want = {.udp = udp, .payload = 32};
	struct frame frame = frame_build(&want, random);
	uint8_t *word = frame_data(&frame) + frame.packet.payload + 30;
	unsigned sum;

	frame_put16(word, 0);
	sum = 0xFFFF - frame_l4_checksum(frame.packet.data, frame.packet.l3, frame.packet.l4,
			       frame.packet.l4_protocol);
	frame_put16(word, 0xFFFF - sum);
	return frame;
}

static void
complete_of_zero_is_ffff_in_udp_and_0_in_tcp(void **state)
{
	uint64_t random = 4;

	(void)state;
	for (unsigned udp = 0; udp < 2; udp++) {
		struct frame frame = zero_sum_frame(udp, &random);
		struct iovec payload = {frame_data(&frame) + frame.packet.payload, 32};

		assert_int_equal(
			bs_checksum_complete(&frame.packet, frame_data(&frame), &payload, 1), 0);
		assert_int_equal(
			frame_get16(frame.packet.data + frame_field(&frame)), udp ? 0xFFFF : 0);
		assert_true(bs_checksum_ok(&frame.packet, &payload, 1));
		frame_free(&frame);
	}
}

static void
complete_refuses_what_it_cannot_sum_untouched(void **state)
{
	uint64_t random = 6;

	(void)state;
	for (unsigned bad = 0; bad < 4; bad++) {
		struct frame_want want = {.payload = 33};
		struct frame frame = frame_build(&want, &random);
		uint8_t *data = frame_data(&frame);
		struct iovec payload = {data + frame.packet.payload, 33};
		uint8_t before[FRAME_BYTES_MAX];

		if (bad == 0)
			payload.iov_len = 32;
		else if (bad == 1)
			frame.packet.parse = BS_PARSE_FRAGMENT;
		else if (bad == 2)
			frame.packet.l4_protocol = 132; /* SCTP */
		else
			frame.packet.caplen = frame.packet.payload - 1u;
		memcpy(before, data, frame.packet.len);
		frame.packet.l4_checksum_partial = 1;
		assert_int_equal(bs_checksum_complete(&frame.packet, data, &payload, 1), -EINVAL);
		assert_memory_equal(data, before, frame.packet.len);
		assert_int_equal(frame.packet.l4_checksum_partial, 1);
		assert_false(bs_checksum_ok(&frame.packet, &payload, 1));
		frame_free(&frame);
	}
}

static void
ok_sees_every_flipped_bit(void **state)
{
	uint64_t random = 7;

	(void)state;
	for (unsigned v6 = 0; v6 < 2; v6++) {
		struct frame_want want = {.v6 = v6, .payload = 7};
		struct frame frame = frame_build(&want, &random);
		uint8_t *data = frame_data(&frame);
		struct iovec payload = {data + frame.packet.payload, 7};

		assert_true(bs_checksum_ok(&frame.packet, &payload, 1));
		for (unsigned bit = frame.packet.l4 * 8u; bit < frame.packet.len * 8; bit++) {
			data[bit / 8] ^= (uint8_t)(1u << bit % 8);
			assert_false(bs_checksum_ok(&frame.packet, &payload, 1));
			data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
		if (!v6) {
			data[frame.packet.l3 + 8] ^= 1; /* TTL: only the IPv4 header's checksum */
			assert_false(bs_checksum_ok(&frame.packet, &payload, 1));
		}
		frame_free(&frame);
	}
}

static void
udp_checksum_of_zero_is_right_over_ipv4_only(void **state)
{
	uint64_t random = 8;

	(void)state;
	for (unsigned v6 = 0; v6 < 2; v6++) {
		struct frame_want want = {.v6 = v6, .udp = true, .payload = 9};
		struct frame frame = frame_build(&want, &random);
		struct iovec payload = {frame_data(&frame) + frame.packet.payload, 9};

		frame_put16(frame_data(&frame) + frame_field(&frame), 0);
		assert_int_equal(bs_checksum_ok(&frame.packet, &payload, 1), !v6);
		frame_free(&frame);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sum_of_rfc1071_example_is_ddf2),
		cmocka_unit_test(adjust_of_rfc1624_example_is_zero),
		cmocka_unit_test(adjust_back_restores_every_checksum_but_ffff),
		cmocka_unit_test(sum_equals_words_at_every_alignment_and_length),
		cmocka_unit_test(sum_of_all_ones_keeps_every_carry),
		cmocka_unit_test(complete_equals_whole_sum_over_any_pieces),
		cmocka_unit_test(complete_of_zero_is_ffff_in_udp_and_0_in_tcp),
		cmocka_unit_test(complete_refuses_what_it_cannot_sum_untouched),
		cmocka_unit_test(ok_sees_every_flipped_bit),
		cmocka_unit_test(udp_checksum_of_zero_is_right_over_ipv4_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
