/* SPDX-License-Identifier: BSD-3-Clause */
/* Tick conversion against exact 128-bit arithmetic, durations against literal values. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "bs_clock.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void
zero_hz_is_refused(void **state)
{
	struct bs_clock_scale scale;

	(void)state;
	assert_int_equal(bs_clock_scale_init(&scale, 0, 1, 1), -EINVAL);
}

static void
ticks_at_the_base_give_the_base(void **state)
{
	struct bs_clock_scale scale;

	(void)state;
	assert_int_equal(bs_clock_scale_init(&scale, 2400000000, 77, 1700000000000000000), 0);
	assert_int_equal(bs_clock_scale_ns(&scale, 77), 1700000000000000000);
}

static void
ticks_convert_within_a_nanosecond(void **state)
{
	static const uint64_t rates[] = {1, 1000, 32768, 24000000, 999999999, 1000000000,
		1000000001, 2399998765, 2400000000, 5123456789, UINT64_MAX};
	static const uint64_t seconds[] = {1, 4, 3600, 86400, 31536000};

	(void)state;
	for (size_t r = 0; r < COUNT(rates); r++) {
		struct bs_clock_scale scale;

		assert_int_equal(bs_clock_scale_init(&scale, rates[r], 1000, 5000), 0);
		for (size_t s = 0; s < COUNT(seconds); s++) {
			if (seconds[s] > (UINT64_MAX - 1000) / rates[r])
				continue;
			uint64_t ticks = rates[r] * seconds[s];
			uint64_t exact = seconds[s] * BS_NS_PER_S;
			uint64_t got = bs_clock_scale_ns(&scale, 1000 + ticks) - 5000;

			assert_true(got + 1 - exact <= 2);
			exact = (uint64_t)((bs_uint128)(ticks / 7) * BS_NS_PER_S / rates[r]);
			got = bs_clock_scale_ns(&scale, 1000 + ticks / 7) - 5000;
			assert_true(got + 1 - exact <= 2);
		}
	}
}

static void
converted_ticks_never_go_back(void **state)
{
	struct bs_clock_scale scale;
	uint64_t last = 0;

	(void)state;
	assert_int_equal(bs_clock_scale_init(&scale, 3000000001, 0, 0), 0);
	for (uint64_t ticks = 1ull << 55; ticks < (1ull << 55) + 1000; ticks++) {
		uint64_t ns = bs_clock_scale_ns(&scale, ticks);

		assert_true(ns >= last);
		last = ns;
	}
}

static void
error_is_the_distance_in_ppm(void **state)
{
	(void)state;
	assert_int_equal(bs_clock_error_ppm(1000000000, 1000000000, BS_NS_PER_S), 0);
	assert_int_equal(bs_clock_error_ppm(1000000000, 1001000000, BS_NS_PER_S), 1000);
	assert_int_equal(bs_clock_error_ppm(1000000000, 999000000, BS_NS_PER_S), 1000);
	assert_int_equal(bs_clock_error_ppm(2400000000, 240012000, BS_NS_PER_S / 10), 50);
	assert_int_equal(bs_clock_error_ppm(2400000000, 0, BS_NS_PER_S), 1000000);
	/* An hour at 5 GHz, 200 ppm fast. */
	assert_int_equal(bs_clock_error_ppm(5000000000, 18003600000000, 3600 * BS_NS_PER_S), 200);
	/* Half a 64-bit range at twice the rate: 10^6 ppm off. */
	assert_int_equal(bs_clock_error_ppm(BS_NS_PER_S, UINT64_MAX - 1, UINT64_MAX / 2), 1000000);
}

static void
error_without_a_reference_is_the_largest(void **state)
{
	(void)state;
	assert_true(bs_clock_error_ppm(0, 5, 5) == UINT64_MAX);
	assert_true(bs_clock_error_ppm(5, 5, 0) == UINT64_MAX);
	assert_true(bs_clock_error_ppm(1, UINT64_MAX, 1) == UINT64_MAX);
}

static void
durations_are_read(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} cases[] = {
		{"0ns", 0},
		{"1ns", 1},
		{"200us", 200000},
		{"1.5ms", 1500000},
		{"0.000000001s", 1},
		{"1.000000000000000000000ns", 1},
		{"007ms", 7000000},
		{"2s", 2000000000},
		{"10m", 600000000000},
		{"0.1m", 6000000000},
		{"1h", 3600000000000},
		{"0.0000000000025h", 9},
		{"2562047h", 9223369200000000000},
		{"9223372036854775807ns", INT64_MAX},
		{"9223372036.854775807s", INT64_MAX},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint64_t ns = 99;

		assert_int_equal(bs_duration_parse(cases[i].text, &ns), 0);
		assert_int_equal(ns, cases[i].ns);
	}
}

static void
durations_of_another_form_are_refused(void **state)
{
	static const char *const cases[] = {"", "s", "5", "5 s", " 5s", "5s ", "-5s", "+5s", ".5s",
		"5.s", "5..1s", "5.1.1s", "5S", "5sec", "5d", "0x5s", "1e3s", "5,1s", "0.5ns",
		"0.0000000001s", "0.33333333333333h", "99999999999999999999999x"};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint64_t ns = 99;

		assert_int_equal(bs_duration_parse(cases[i], &ns), -EINVAL);
		assert_int_equal(ns, 99);
	}
}

static void
durations_past_63_bits_are_refused(void **state)
{
	static const char *const cases[] = {"9223372036854775808ns", "9223372036.854775808s",
		"2562048h", "18446744073709551616ns", "18446744073709551615h",
		"99999999999999999999999999999999999999999999s"};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		uint64_t ns = 99;

		assert_int_equal(bs_duration_parse(cases[i], &ns), -ERANGE);
		assert_int_equal(ns, 99);
	}
}

static void
durations_are_written_with_three_digits(void **state)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {
		{0, "0 ns"},
		{850, "850 ns"},
		{999, "999 ns"},
		{1000, "1.00 us"},
		{1004, "1.00 us"},
		{1005, "1.01 us"},
		{9994, "9.99 us"},
		{9995, "10.0 us"},
		{12345, "12.3 us"},
		{99949, "99.9 us"},
		{99950, "100 us"},
		{999499, "999 us"},
		{999500, "1.00 ms"},
		{4560000, "4.56 ms"},
		{1200000000, "1.20 s"},
		{999499999999, "999 s"},
		{999500000000, "1000 s"},
		{1234500000000, "1235 s"},
		{UINT64_MAX, "18446744074 s"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char buf[BS_DURATION_TEXT_BYTES];

		assert_ptr_equal(bs_duration_text(cases[i].ns, buf), buf);
		assert_string_equal(buf, cases[i].text);
	}
}

/* --- following the wall clock ---------------------------------------------------- */

#define WALL 1700000000000000000ull
#define HZ 2790000000ull

/* Steady time runs by itself; the counter by hz, the wall clock by wall_ppm and steps. */
struct world {
	uint64_t steady_ns, wall_ns, ticks;
};

static struct bs_clock_reading
pass(struct world *world, uint64_t ns, uint64_t hz, int64_t wall_ppm)
{
	world->steady_ns += ns;
	world->wall_ns += ns + (uint64_t)((int64_t)ns / 1000000 * wall_ppm);
	world->ticks += (uint64_t)((bs_uint128)ns * hz / BS_NS_PER_S);
	return (struct bs_clock_reading){world->ticks, world->steady_ns, world->wall_ns};
}

static void
follow_begin(struct bs_clock_follow *follow, struct world *world, uint64_t hz_told)
{
	struct bs_clock_reading first;

	*world = (struct world){12345, WALL, 987654321};
	first = pass(world, 0, HZ, 0);
	assert_int_equal(bs_clock_follow_start(follow, hz_told, &first), 0);
}

static void
clock_told_a_rate_30_ppm_off_is_within_10_us_of_the_wall_after_a_minute(void **state)
{
	struct bs_clock_follow follow;
	struct world world;

	(void)state;
	follow_begin(&follow, &world, HZ + HZ / 1000000 * 30);
	for (unsigned i = 0; i < 60; i++) {
		struct bs_clock_reading reading = pass(&world, BS_NS_PER_S, HZ, 0);

		assert_true(bs_clock_follow_step(&follow, &reading));
	}
	assert_true(follow.hz >= HZ - 3 && follow.hz <= HZ + 3);
	assert_true(follow.wall_offset_ns < 10000 && follow.wall_offset_ns > -10000);
	assert_int_equal(follow.uneven, 0);
	assert_int_equal(follow.wall_steps, 0);
}

static void
clock_follows_a_wall_clock_that_is_slewed(void **state)
{
	struct bs_clock_follow follow;
	struct world world;

	(void)state;
	follow_begin(&follow, &world, HZ);
	for (unsigned i = 0; i < 3600; i++) {
		struct bs_clock_reading reading = pass(&world, BS_NS_PER_S, HZ, 100);

		assert_true(bs_clock_follow_step(&follow, &reading));
	}
	/* 360 ms by themselves; following for 10 s at 100 ppm leaves 1 ms */
	assert_true(follow.wall_offset_ns > 0 && follow.wall_offset_ns < 1200000);
	assert_int_equal(follow.wall_steps, 0);
}

static void
stepped_wall_clock_is_counted_and_followed_at_200_ppm_only(void **state)
{
	static const int64_t steps_ns[] = {3600000000000, -3600000000000};

	(void)state;
	for (size_t i = 0; i < COUNT(steps_ns); i++) {
		struct bs_clock_follow follow;
		struct bs_clock_reading reading;
		struct world world;
		uint64_t before, after;

		follow_begin(&follow, &world, HZ);
		reading = pass(&world, BS_NS_PER_S, HZ, 0);
		assert_true(bs_clock_follow_step(&follow, &reading));
		before = bs_clock_scale_ns(&follow.scale, reading.ticks);
		world.wall_ns += (uint64_t)steps_ns[i];
		reading = pass(&world, BS_NS_PER_S, HZ, 0);
		assert_true(bs_clock_follow_step(&follow, &reading));
		after = bs_clock_scale_ns(&follow.scale, reading.ticks);
		assert_int_equal(follow.wall_steps, 1);
		assert_in_range(after - before, BS_NS_PER_S - 2, BS_NS_PER_S + 2);
		reading = pass(&world, BS_NS_PER_S, HZ, 0);
		assert_true(bs_clock_follow_step(&follow, &reading));
		before = after;
		after = bs_clock_scale_ns(&follow.scale, reading.ticks);
		if (steps_ns[i] > 0)
			assert_in_range(after - before, BS_NS_PER_S + 199998, BS_NS_PER_S + 200002);
		else
			assert_in_range(after - before, BS_NS_PER_S - 200002, BS_NS_PER_S - 199998);
		assert_int_equal(follow.wall_steps, 1);
		assert_int_equal(follow.uneven, 0);
	}
}

/* P08: 2.0 GHz told, 2.9 GHz real. */
static void
counter_that_runs_at_another_rate_is_uneven_once_and_then_right(void **state)
{
	struct bs_clock_follow follow;
	struct bs_clock_reading reading;
	struct world world;
	uint64_t before;

	(void)state;
	follow_begin(&follow, &world, 2000000000);
	reading = pass(&world, BS_NS_PER_S, 2900000000, 0);
	assert_true(bs_clock_follow_step(&follow, &reading));
	assert_int_equal(follow.error_ppm, 450000);
	assert_int_equal(follow.uneven, 1);
	before = bs_clock_scale_ns(&follow.scale, reading.ticks);
	/* ahead by 450 ms, so it runs slower by the most that is allowed, not back */
	reading = pass(&world, BS_NS_PER_S, 2900000000, 0);
	assert_in_range(bs_clock_scale_ns(&follow.scale, reading.ticks) - before,
		BS_NS_PER_S - 200002, BS_NS_PER_S - 199998);
	assert_true(bs_clock_follow_step(&follow, &reading));
	assert_int_equal(follow.error_ppm, 0);
	assert_int_equal(follow.uneven, 1);
}

static void
readings_too_close_or_backwards_change_nothing(void **state)
{
	struct bs_clock_follow follow;
	struct bs_clock_reading reading;
	struct world world;

	(void)state;
	follow_begin(&follow, &world, HZ);
	reading = pass(&world, 99999999, HZ, 0);
	assert_false(bs_clock_follow_step(&follow, &reading));
	reading = pass(&world, BS_NS_PER_S, HZ, 0);
	reading.ticks = 1;
	assert_false(bs_clock_follow_step(&follow, &reading));
	reading.ticks = world.ticks;
	reading.steady_ns = 0;
	assert_false(bs_clock_follow_step(&follow, &reading));
	assert_int_equal(follow.hz, HZ);
	assert_int_equal(follow.last.steady_ns, 12345);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(zero_hz_is_refused),
		cmocka_unit_test(ticks_at_the_base_give_the_base),
		cmocka_unit_test(ticks_convert_within_a_nanosecond),
		cmocka_unit_test(converted_ticks_never_go_back),
		cmocka_unit_test(error_is_the_distance_in_ppm),
		cmocka_unit_test(error_without_a_reference_is_the_largest),
		cmocka_unit_test(durations_are_read),
		cmocka_unit_test(durations_of_another_form_are_refused),
		cmocka_unit_test(durations_past_63_bits_are_refused),
		cmocka_unit_test(durations_are_written_with_three_digits),
		cmocka_unit_test(
			clock_told_a_rate_30_ppm_off_is_within_10_us_of_the_wall_after_a_minute),
		cmocka_unit_test(clock_follows_a_wall_clock_that_is_slewed),
		cmocka_unit_test(stepped_wall_clock_is_counted_and_followed_at_200_ppm_only),
		cmocka_unit_test(counter_that_runs_at_another_rate_is_uneven_once_and_then_right),
		cmocka_unit_test(readings_too_close_or_backwards_change_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
