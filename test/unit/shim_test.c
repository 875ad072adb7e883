/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes of the shim against the layout as written down, bit by bit.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bs_shim.h"

static const struct bs_shim sample = {
	.version = 1,
	.flags = BS_SHIM_RESPONSE | BS_SHIM_MORE,
	.hops = 3,
	.class_ = 7,
	.rpc_id = 0xABCD0123456789EFull,
	.remaining = 0xFEDCBA98u,
};

/* version 1 | flags 12, hops, class, reserved, node, counter, remaining */
static const uint8_t sample_bytes[20] = {253, 20, 0xB5, 0xC0, 0x1C, 3, 7, 0, 0xAB, 0xCD, 0x01, 0x23,
	0x45, 0x67, 0x89, 0xEF, 0xFE, 0xDC, 0xBA, 0x98};

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

/* A heap copy of exactly `len` bytes. */
static uint8_t *
exact(const uint8_t *bytes, size_t len)
{
	uint8_t *copy = malloc(len > 0 ? len : 1);

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	return copy;
}

static void
encode_writes_layout_big_endian(void **state)
{
	uint8_t *out = malloc(BS_SHIM_BYTES);

	(void)state;
	memset(out, 0xFF, BS_SHIM_BYTES);
	bs_shim_encode(&sample, out);
	assert_memory_equal(out, sample_bytes + 4, BS_SHIM_BYTES);
	free(out);
}

static void
option_encode_writes_kind_length_exid(void **state)
{
	uint8_t *out = malloc(BS_SHIM_OPTION_BYTES);

	(void)state;
	bs_shim_option_encode(&sample, out);
	assert_memory_equal(out, sample_bytes, BS_SHIM_OPTION_BYTES);
	free(out);
}

static void
decode_reads_every_field(void **state)
{
	uint8_t *option = exact(sample_bytes, sizeof(sample_bytes));
	struct bs_shim shim;

	(void)state;
	memset(&shim, 0, sizeof(shim));
	assert_int_equal(bs_shim_option_decode(option, 20, &shim), 0);
	assert_shim_equal(&shim, &sample);
	memset(&shim, 0, sizeof(shim));
	assert_int_equal(bs_shim_decode(option + 4, 16, &shim), 0);
	assert_shim_equal(&shim, &sample);
	free(option);
}

static void
decode_ignores_unknown_flags_and_reserved_byte(void **state)
{
	uint8_t bytes[16];
	struct bs_shim shim;

	(void)state;
	memcpy(bytes, sample_bytes + 4, 16);
	bytes[0] = 0x1B; /* response, and two flags nobody has given a meaning */
	bytes[3] = 0x5A;
	assert_int_equal(bs_shim_decode(bytes, 16, &shim), 0);
	assert_int_equal(shim.flags, BS_SHIM_RESPONSE);
	assert_true(shim.rpc_id == sample.rpc_id);
}

static void
unknown_remaining_survives(void **state)
{
	struct bs_shim in = sample, out;
	uint8_t bytes[16];

	(void)state;
	in.remaining = BS_SHIM_REMAINING_UNKNOWN;
	bs_shim_encode(&in, bytes);
	assert_int_equal(bs_shim_decode(bytes, 16, &out), 0);
	assert_int_equal(out.remaining, 0xFFFFFFFFu);
}

static void
decode_of_wrong_length_fails_untouched(void **state)
{
	struct bs_shim shim = sample;

	(void)state;
	for (size_t len = 0; len < 20; len++) {
		uint8_t *bytes = exact(sample_bytes, len);

		assert_int_equal(bs_shim_option_decode(bytes, len, &shim), -EINVAL);
		free(bytes);
	}
	for (size_t len = 0; len < 16; len++) {
		uint8_t *bytes = exact(sample_bytes + 4, len);

		assert_int_equal(bs_shim_decode(bytes, len, &shim), -EINVAL);
		free(bytes);
	}
	assert_int_equal(bs_shim_decode(sample_bytes, 17, &shim), -EINVAL);
	assert_shim_equal(&shim, &sample);
}

static void
decode_of_other_option_fails_untouched(void **state)
{
	static const struct {
		unsigned at;
		uint8_t value;
	} change[] = {
		{0, 254},	      /* the other experimental kind */
		{1, 16},	      /* length */
		{1, 24}, {2, 0xB4},   /* ExID */
		{3, 0xC1}, {4, 0x0C}, /* version 0 */
		{4, 0x2C},	      /* version 2 */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(change) / sizeof(change[0]); i++) {
		uint8_t option[20];
		struct bs_shim shim = sample;

		memcpy(option, sample_bytes, sizeof(option));
		option[change[i].at] = change[i].value;
		shim.rpc_id = 1;
		assert_int_equal(bs_shim_option_decode(option, 20, &shim), -EINVAL);
		assert_true(shim.rpc_id == 1);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(encode_writes_layout_big_endian),
		cmocka_unit_test(option_encode_writes_kind_length_exid),
		cmocka_unit_test(decode_reads_every_field),
		cmocka_unit_test(decode_ignores_unknown_flags_and_reserved_byte),
		cmocka_unit_test(unknown_remaining_survives),
		cmocka_unit_test(decode_of_wrong_length_fails_untouched),
		cmocka_unit_test(decode_of_other_option_fails_untouched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
