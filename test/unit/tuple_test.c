/* SPDX-License-Identifier: BSD-3-Clause */
/* The flow key: one for both directions, spread well, and addresses as text. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "frame.h"

static struct bs_packet
parse_ends(unsigned version, uint32_t from, unsigned from_port, uint32_t to, unsigned to_port)
{
	struct frame f;
	struct bs_packet p;

	frame_ether(&f, 0x8100);
	frame_vlan(&f, 42, version == 4 ? 0x0800 : 0x86dd);
	if (version == 4)
		frame_ipv4(&f, 6, from, to);
	else
		frame_ipv6(&f, 6, from, to);
	frame_tcp(&f, from_port, to_port, BS_TCP_ACK, NULL, 0);
	frame_end_ip(&f);
	assert_int_equal(frame_parse(&f, &p), BS_PARSE_OK);
	return p;
}

static void
both_directions_have_one_tuple_and_hash(void **state)
{
	static const struct {
		uint32_t low, high;
		unsigned low_port, high_port;
	} cases[] = {{1, 2, 40000, 80}, {1, 2, 80, 40000}, {0x0a0000ff, 0x0a000100, 5, 5},
		{0x7fffffff, 0x80000000, 1, 1}, {7, 7, 80, 40000}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (unsigned version = 4; version <= 6; version += 2) {
			struct bs_packet there = parse_ends(version, cases[i].low,
				cases[i].low_port, cases[i].high, cases[i].high_port);
			struct bs_packet back = parse_ends(version, cases[i].high,
				cases[i].high_port, cases[i].low, cases[i].low_port);

			assert_memory_equal(&there.tuple, &back.tuple, sizeof(there.tuple));
			assert_int_equal(there.hash, back.hash);
			assert_int_equal(there.direction, 0);
			assert_int_equal(back.direction, 1);
			assert_int_equal(there.tuple.port[0], cases[i].low_port);
			assert_int_equal(there.tuple.port[1], cases[i].high_port);
			assert_true(memcmp(there.tuple.addr[0], there.tuple.addr[1], 16) <= 0);
			assert_int_equal(bs_tuple_hash(&there.tuple), there.hash);
		}
	}
}

static void
ends_in_either_order_hash_alike(void **state)
{
	struct bs_tuple tuple = parse_ends(4, 1, 40000, 2, 80).tuple;
	struct bs_tuple swapped = tuple;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		memcpy(swapped.addr[i], tuple.addr[1 - i], 16);
		swapped.port[i] = tuple.port[1 - i];
	}
	assert_int_equal(bs_tuple_hash(&swapped), bs_tuple_hash(&tuple));
	swapped.port[0] = tuple.port[0];
	swapped.port[1] = tuple.port[1];
	assert_int_not_equal(bs_tuple_hash(&swapped), bs_tuple_hash(&tuple));
}

static void
every_part_of_the_key_changes_the_hash(void **state)
{
	struct bs_tuple tuple = parse_ends(4, 1, 40000, 2, 80).tuple;
	uint32_t hash = bs_tuple_hash(&tuple);
	struct bs_tuple other;

	(void)state;
	for (unsigned bit = 0; bit < 8 * 36; bit++) {
		other = tuple;
		((uint8_t *)&other)[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_not_equal(bs_tuple_hash(&other), hash);
	}
	for (unsigned bit = 0; bit < 24; bit++) {
		other = tuple;
		other.vlan[bit / 12] = (uint16_t)(other.vlan[bit / 12] ^ (1u << bit % 12));
		assert_int_not_equal(bs_tuple_hash(&other), hash);
	}
	for (unsigned bit = 0; bit < 24; bit++) {
		other = tuple;
		other.vni[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_not_equal(bs_tuple_hash(&other), hash);
	}
	other = tuple;
	other.transport = 17;
	assert_int_not_equal(bs_tuple_hash(&other), hash);
	memset(&other, 0, sizeof(other));
	assert_int_not_equal(bs_tuple_hash(&other), 0);
}

/* Words that look random: splitmix64 (Steele et al., OOPSLA 2014). Seed 0: the default key. */
static void
use_key(uint64_t seed)
{
	static uint64_t defaults[BS_TUPLE_KEY_WORDS];

	if (defaults[0] == 0)
		memcpy(defaults, bs_tuple_key, sizeof(defaults));
	memcpy(bs_tuple_key, defaults, sizeof(defaults));
	for (unsigned i = 0; i < BS_TUPLE_KEY_WORDS && seed != 0; i++) {
		uint64_t z = seed += 0x9e3779b97f4a7c15ull;

		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
		z = (z ^ z >> 27) * 0x94d049bb133111ebull;
		bs_tuple_key[i] = z ^ z >> 31;
	}
}

static int
default_key(void **state)
{
	(void)state;
	use_key(0);
	return 0;
}

/*
 * Flows as they come: neighbouring clients, ports in sequence. Over 256 bins of
 * the lowest and of the highest 8 bits, chi-square has mean 255 and standard
 * deviation 22.6: 368 is five deviations up. A sequence may be spread more
 * evenly than chance, hence no lower bound.
 */
static void
spread_of_neighbours(unsigned version, double *low_chi, double *high_chi)
{
	struct bs_tuple tuple = parse_ends(version, 0x0a000001, 40000, 0x0a000002, 80).tuple;
	unsigned low[256] = {0}, high[256] = {0};
	const double expected = 64 * 1024 / 256.0;

	for (unsigned client = 0; client < 64; client++) {
		for (unsigned port = 0; port < 1024; port++) {
			tuple.addr[0][14] = 1;
			tuple.addr[0][15] = (uint8_t)client;
			tuple.port[0] = (uint16_t)(32768 + port);
			uint32_t hash = bs_tuple_hash(&tuple);

			low[hash & 0xff]++;
			high[hash >> 24]++;
		}
	}
	*low_chi = *high_chi = 0;
	for (unsigned i = 0; i < 256; i++) {
		*low_chi += (low[i] - expected) * (low[i] - expected) / expected;
		*high_chi += (high[i] - expected) * (high[i] - expected) / expected;
	}
}

static void
neighbouring_flows_spread_evenly_with_any_key(void **state)
{
	double low, high;

	(void)state;
	for (uint64_t seed = 0; seed < 32; seed++) {
		use_key(seed);
		spread_of_neighbours(seed % 2 ? 6 : 4, &low, &high);
		assert_true(low < 368);
		assert_true(high < 368);
	}
}

#define BUCKETS 65536u
#define CRAFTED 512u

/* Who knows the key finds client ends whose flows all lie in one bucket. */
static void
craft(struct bs_tuple crafted[CRAFTED])
{
	struct bs_tuple tuple = parse_ends(4, 0x0a000001, 40000, 0xac100001, 80).tuple;
	unsigned n = 0;

	for (uint32_t i = 0; n < CRAFTED; i++) {
		tuple.addr[0][13] = (uint8_t)(i >> 24);
		tuple.addr[0][14] = (uint8_t)(i >> 16);
		tuple.addr[0][15] = (uint8_t)(i >> 8);
		tuple.port[0] = (uint16_t)(1024 + (i & 0xff));
		if (bs_tuple_hash(&tuple) % BUCKETS == 0)
			crafted[n++] = tuple;
	}
}

/*
 * 512 flows in 65536 buckets make 2 pairs in the mean; that a bucket gets 5 of
 * them happens once in 10^7 keys (512^5 / 5! / 65536^4).
 */
static void
flows_crafted_to_collide_spread_with_another_key(void **state)
{
	static struct bs_tuple crafted[CRAFTED];
	static unsigned flows[BUCKETS];
	unsigned longest = 0;

	(void)state;
	use_key(0);
	craft(crafted);
	for (uint64_t seed = 1; seed < 64; seed++) {
		use_key(seed);
		memset(flows, 0, sizeof(flows));
		for (unsigned i = 0; i < CRAFTED; i++) {
			unsigned n = ++flows[bs_tuple_hash(&crafted[i]) % BUCKETS];

			longest = n > longest ? n : longest;
		}
	}
	assert_true(longest <= 4);
}

static void
any_key_is_of_both_directions(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 16; seed++) {
		use_key(seed);
		both_directions_have_one_tuple_and_hash(state);
		ends_in_either_order_hash_alike(state);
		every_part_of_the_key_changes_the_hash(state);
	}
}

static void
endpoints_are_written(void **state)
{
	static const struct {
		const char *address;
		uint16_t port;
		const char *text;
	} cases[] = {
		{"10.0.0.1", 80, "10.0.0.1:80"},
		{"255.255.255.255", 65535, "255.255.255.255:65535"},
		{"2001:db8::1", 80, "[2001:db8::1]:80"},
		{"::", 0, "[::]:0"},
		{"::ffff:10.0.0.1", 80, "10.0.0.1:80"},
		{"1111:2222:3333:4444:5555:6666:7777:8888", 65535,
			"[1111:2222:3333:4444:5555:6666:7777:8888]:65535"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char buf[BS_ENDPOINT_TEXT_BYTES];
		uint8_t addr[16];

		assert_int_equal(bs_address_parse(cases[i].address, addr), 0);
		assert_ptr_equal(bs_endpoint_text(addr, cases[i].port, buf), buf);
		assert_string_equal(buf, cases[i].text);
	}
}

static void
addresses_are_read(void **state)
{
	static const uint8_t v4[16] = {[10] = 0xff, 0xff, 10, 99, 0, 2};
	static const uint8_t v6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 0x21};
	static const char *const bad[] = {"", "10.0.0", "10.0.0.256", "10.0.0.1 ", "10.0.0.1:80",
		"[::1]", "::1%lo", "localhost", "1.2.3.4.5", "12345::"};
	uint8_t addr[16] = {9};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(bs_address_parse(bad[i], addr), -EINVAL);
	assert_int_equal(addr[0], 9);
	assert_int_equal(bs_address_parse("10.99.0.2", addr), 0);
	assert_memory_equal(addr, v4, 16);
	assert_int_equal(bs_address_parse("2001:db8::21", addr), 0);
	assert_memory_equal(addr, v6, 16);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_directions_have_one_tuple_and_hash),
		cmocka_unit_test(ends_in_either_order_hash_alike),
		cmocka_unit_test(every_part_of_the_key_changes_the_hash),
		cmocka_unit_test_teardown(
			neighbouring_flows_spread_evenly_with_any_key, default_key),
		cmocka_unit_test_teardown(
			flows_crafted_to_collide_spread_with_another_key, default_key),
		cmocka_unit_test_teardown(any_key_is_of_both_directions, default_key),
		cmocka_unit_test(endpoints_are_written),
		cmocka_unit_test(addresses_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
