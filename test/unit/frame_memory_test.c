/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of framers: what is handed out overlaps nothing, and all of it comes back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bs_framer.h"

static void
takes_powers_of_two_from_64(void **state)
{
	static const struct {
		size_t bytes, taken;
	} cases[] = {{1, 64}, {64, 64}, {65, 128}, {128, 128}, {4095, 4096}, {4097, 8192}};
	struct bs_frame_memory *memory = bs_frame_memory_create(1 << 20);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		void *block = bs_frame_alloc(memory, cases[i].bytes);

		assert_non_null(block);
		assert_int_equal(bs_frame_memory_used(memory), cases[i].taken);
		bs_frame_free(memory, block);
		assert_int_equal(bs_frame_memory_used(memory), 0);
	}
	bs_frame_memory_destroy(memory);
}

/* All of it in the smallest blocks, given back in another order, is one block again. */
static void
freed_blocks_join(void **state)
{
	struct bs_frame_memory *memory = bs_frame_memory_create(64 * 64);
	void *blocks[64];

	(void)state;
	for (unsigned i = 0; i < 64; i++) {
		blocks[i] = bs_frame_alloc(memory, 64);
		assert_non_null(blocks[i]);
	}
	assert_null(bs_frame_alloc(memory, 1));
	assert_int_equal(bs_frame_memory_refused(memory), 1);
	for (unsigned i = 0; i < 64; i++)
		bs_frame_free(memory, blocks[i * 27 % 64]); /* 27 and 64 have no common factor */
	blocks[0] = bs_frame_alloc(memory, 64 * 64);
	assert_non_null(blocks[0]);
	assert_null(bs_frame_alloc(memory, 1));
	bs_frame_free(memory, NULL);
	bs_frame_free(memory, blocks[0]);
	assert_int_equal(bs_frame_memory_used(memory), 0);
	bs_frame_memory_destroy(memory);
}

static void
a_block_that_grows_keeps_its_bytes(void **state)
{
	struct bs_frame_memory *memory = bs_frame_memory_create(4096);
	uint8_t *block = bs_frame_realloc(memory, NULL, 60);
	const uint8_t *same = block;

	(void)state;
	memset(block, 0x5a, 60);
	block = bs_frame_realloc(memory, block, 64);
	assert_ptr_equal(block, same);
	block = bs_frame_realloc(memory, block, 1000);
	for (unsigned i = 0; i < 60; i++)
		assert_int_equal(block[i], 0x5a);
	assert_int_equal(bs_frame_memory_used(memory), 1024);
	assert_null(bs_frame_realloc(memory, block, 4096)); /* both must fit at a time */
	assert_int_equal(block[59], 0x5a);
	bs_frame_free(memory, block);
	bs_frame_memory_destroy(memory);
}

/* Blocks are filled each with a byte of its own: nobody writes into another's. */
static void
random_use_overlaps_nothing(void **state)
{
	struct bs_frame_memory *memory = bs_frame_memory_create(1 << 16);
	struct {
		uint8_t *at;
		size_t bytes;
	} held[128] = {0};
	uint32_t random = 1, refused = 0;

	(void)state;
	for (unsigned turn = 0; turn < 100000; turn++) {
		unsigned i = (random = random * 1664525 + 1013904223) >> 25;

		for (size_t k = 0; k < held[i].bytes; k++)
			assert_int_equal(held[i].at[k], i);
		bs_frame_free(memory, held[i].at);
		held[i].bytes = 1 + ((random = random * 1664525 + 1013904223) >> 21);
		held[i].at = bs_frame_alloc(memory, held[i].bytes);
		if (held[i].at == NULL) {
			held[i].bytes = 0;
			refused++;
		} else {
			memset(held[i].at, (int)i, held[i].bytes);
		}
	}
	assert_true(refused > 100 && refused < 90000); /* it was full at times */
	assert_int_equal(bs_frame_memory_refused(memory), refused);
	for (unsigned i = 0; i < 128; i++)
		bs_frame_free(memory, held[i].at);
	assert_int_equal(bs_frame_memory_used(memory), 0);
	assert_non_null(bs_frame_alloc(memory, 1 << 16));
	bs_frame_memory_destroy(memory);
}

static void
sizes_that_make_no_sense_are_refused(void **state)
{
	(void)state;
	assert_null(bs_frame_memory_create(0));
	assert_int_equal(errno, EINVAL);
	assert_null(bs_frame_memory_create((1ull << 31) + 1));
	assert_int_equal(errno, EINVAL);
	bs_frame_memory_destroy(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_powers_of_two_from_64),
		cmocka_unit_test(freed_blocks_join),
		cmocka_unit_test(a_block_that_grows_keeps_its_bytes),
		cmocka_unit_test(random_use_overlaps_nothing),
		cmocka_unit_test(sizes_that_make_no_sense_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
