/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "bs_entries.h"

static void
packets_of_a_burst_leave_with_its_instant_in_order(void **state)
{
	struct bs_entries *entries = bs_entries_create(4);

	(void)state;
	assert_non_null(entries);
	assert_int_equal(bs_entries_push(entries, 100, 3), 0);
	assert_int_equal(bs_entries_push(entries, 200, 1), 0);
	assert_int_equal(bs_entries_oldest(entries), 100);
	assert_int_equal(bs_entries_pop(entries), 100);
	assert_int_equal(bs_entries_pop(entries), 100);
	assert_int_equal(bs_entries_oldest(entries), 100);
	assert_int_equal(bs_entries_pop(entries), 100);
	assert_int_equal(bs_entries_oldest(entries), 200);
	assert_int_equal(bs_entries_pop(entries), 200);
	assert_int_equal(bs_entries_oldest(entries), 0);
	assert_int_equal(bs_entries_pop(entries), 0);
	bs_entries_destroy(entries);
}

static void
push_beyond_the_room_is_refused_until_a_burst_has_left(void **state)
{
	struct bs_entries *entries = bs_entries_create(3); /* 4, twice */

	(void)state;
	assert_non_null(entries);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(bs_entries_push(entries, 10 + i, 2), 0);
	assert_int_equal(bs_entries_push(entries, 99, 1), -ENOBUFS);
	assert_int_equal(bs_entries_pop(entries), 10);
	assert_int_equal(
		bs_entries_push(entries, 99, 1), -ENOBUFS); /* one of its two is still there */
	assert_int_equal(bs_entries_pop(entries), 10);
	assert_int_equal(bs_entries_push(entries, 99, 1), 0);
	for (unsigned i = 2; i < 16; i++)
		assert_int_equal(bs_entries_pop(entries), 10 + i / 2);
	assert_int_equal(bs_entries_pop(entries), 99);
	assert_int_equal(bs_entries_pop(entries), 0);
	bs_entries_destroy(entries);
}

static void
push_of_no_packets_leaves_no_trace(void **state)
{
	struct bs_entries *entries = bs_entries_create(1);

	(void)state;
	assert_non_null(entries);
	assert_int_equal(bs_entries_push(entries, 5, 0), 0);
	assert_int_equal(bs_entries_oldest(entries), 0);
	assert_int_equal(bs_entries_push(entries, 6, 1), 0);
	assert_int_equal(bs_entries_pop(entries), 6);
	bs_entries_destroy(entries);
}

static void
create_refuses_sizes_out_of_range(void **state)
{
	(void)state;
	errno = 0;
	assert_null(bs_entries_create(0));
	assert_int_equal(errno, EINVAL);
	assert_null(bs_entries_create((1u << 24) + 1));
	bs_entries_destroy(NULL);
}

#define BURSTS 200000u

/* Burst i has 1 + i % 5 packets and enters at i + 1. */
static void *
produce(void *context)
{
	struct bs_entries *entries = context;

	for (uint64_t i = 0; i < BURSTS; i++)
		while (bs_entries_push(entries, i + 1, 1 + (unsigned)(i % 5)) != 0)
			sched_yield();
	return NULL;
}

static void
two_threads_pass_every_packet_once_in_order(void **state)
{
	struct bs_entries *entries = bs_entries_create(8);
	pthread_t producer;

	(void)state;
	assert_non_null(entries);
	assert_int_equal(pthread_create(&producer, NULL, produce, entries), 0);
	for (uint64_t i = 0; i < BURSTS; i++) {
		for (unsigned k = 0; k <= i % 5; k++) {
			uint64_t oldest, t;

			while ((oldest = bs_entries_oldest(entries)) == 0)
				sched_yield();
			t = bs_entries_pop(entries);
			if (t != i + 1 || oldest != t)
				fail_msg("packet %u of burst %llu: oldest %llu, popped %llu", k,
					(unsigned long long)i, (unsigned long long)oldest,
					(unsigned long long)t);
		}
	}
	assert_int_equal(pthread_join(producer, NULL), 0);
	assert_int_equal(bs_entries_pop(entries), 0);
	bs_entries_destroy(entries);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_of_a_burst_leave_with_its_instant_in_order),
		cmocka_unit_test(push_beyond_the_room_is_refused_until_a_burst_has_left),
		cmocka_unit_test(push_of_no_packets_leaves_no_trace),
		cmocka_unit_test(create_refuses_sizes_out_of_range),
		cmocka_unit_test(two_threads_pass_every_packet_once_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
