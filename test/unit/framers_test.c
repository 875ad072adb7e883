/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "framer_replay.h"

static struct bs_framers framers;

static int
setup(void **state)
{
	unsigned bad;

	(void)state;
	return bs_framers_init(&framers, NULL, 0, &bad);
}

static void
test_every_protocol_is_found_by_its_name(void **state)
{
	(void)state;
	assert_string_equal(framers.list[BS_PROTOCOL_OPAQUE].name, "opaque");
	for (unsigned i = 0; i < framers.count; i++) {
		const struct bs_framer *framer = &framers.list[i];

		assert_int_equal(framer->protocol, i);
		assert_ptr_equal(bs_framers_find(&framers, framer->name), framer);
		assert_non_null(framer->ops->feed);
		assert_non_null(framer->ops->probe);
	}
	assert_non_null(bs_framers_find(&framers, "resp"));
	assert_non_null(bs_framers_find(&framers, "http1"));
	assert_true(bs_framers_find(&framers, "dns")->ops->datagram);
	assert_ptr_equal(bs_framers_find(&framers, "memcached")->ops->sibling,
		bs_framers_find(&framers, "memcached-binary")->ops);
	assert_ptr_equal(bs_framers_find(&framers, "memcached-binary")->ops->sibling,
		bs_framers_find(&framers, "memcached")->ops);
	assert_non_null(bs_framers_find(&framers, "sunrpc"));
	assert_null(bs_framers_find(&framers, "nope"));
	assert_null(bs_framers_find(&framers, ""));
}

static int
init_with(struct bs_framing_row row, unsigned *bad)
{
	static struct bs_framing_row rows[2];
	static struct bs_framers other;

	rows[0] = (struct bs_framing_row){.name = "good", .header = 4, .length_bytes = 4};
	rows[1] = row;
	*bad = 99;
	return bs_framers_init(&other, rows, 2, bad);
}

static void
test_row_that_makes_no_sense_is_refused(void **state)
{
	static const struct bs_framing_row good = {.name = "mine",
		.header = 12,
		.length_at = 4,
		.length_bytes = 4,
		.id_at = 8,
		.id_bytes = 4};
	struct bs_framing_row row;
	unsigned bad;

	(void)state;
	assert_int_equal(init_with(good, &bad), 0);
#define REFUSED(field, value)                                                                      \
	row = good;                                                                                \
	row.field = value;                                                                         \
	assert_int_equal(init_with(row, &bad), -EINVAL);                                           \
	assert_int_equal(bad, 1)
	REFUSED(name, NULL);
	REFUSED(name, "");
	REFUSED(header, 0);
	REFUSED(header, BS_FRAMING_HEADER_MAX + 1);
	REFUSED(header, 11); /* the id sticks out */
	REFUSED(length_bytes, 0);
	REFUSED(length_bytes, 5);
	REFUSED(length_at, 9);
	REFUSED(length_at, 255);
	REFUSED(id_bytes, 9);
	REFUSED(response_id_at, 9);
	REFUSED(response.at, 12);
	REFUSED(oneway.at, 12);
	REFUSED(status_bytes, 5);
	REFUSED(operation_bytes, 5);
	REFUSED(response.value, 1); /* outside of the mask */
	REFUSED(magic_len, 9);
	row = good;
	row.magic_at = 10;
	row.magic_len = 4;
	assert_int_equal(init_with(row, &bad), -EINVAL);
}

static void
test_taken_name_is_refused(void **state)
{
	unsigned bad;

	(void)state;
	assert_int_equal(
		init_with((struct bs_framing_row){.name = "resp", .header = 4, .length_bytes = 4},
			&bad),
		-EEXIST);
	assert_int_equal(bad, 1);
	assert_int_equal(
		init_with((struct bs_framing_row){.name = "good", .header = 4, .length_bytes = 4},
			&bad),
		-EEXIST);
	assert_int_equal(bad, 1);
}

static void
test_full_table_is_refused(void **state)
{
	static struct bs_framing_row rows[BS_PROTOCOLS_MAX];
	static char names[BS_PROTOCOLS_MAX][8];
	static struct bs_framers other;
	unsigned bad = 99, room = BS_PROTOCOLS_MAX - framers.count;

	(void)state;
	for (unsigned i = 0; i <= room; i++) {
		snprintf(names[i], sizeof(names[i]), "row%u", i);
		rows[i] = (struct bs_framing_row){.name = names[i], .header = 4, .length_bytes = 4};
	}
	assert_int_equal(bs_framers_init(&other, rows, room, &bad), 0);
	assert_int_equal(other.count, BS_PROTOCOLS_MAX);
	assert_int_equal(bs_framers_init(&other, rows, room + 1, &bad), -ENOSPC);
	assert_int_equal(bad, room);
}

#define GUESS(port, from_server, text)                                                             \
	bs_framers_guess(                                                                          \
		&framers, port, false, from_server, (const uint8_t *)(text), sizeof(text) - 1)     \
		->name

static void
test_content_decides_on_any_port(void **state)
{
	(void)state;
	assert_string_equal(GUESS(9999, false, "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"), "resp");
	assert_string_equal(GUESS(80, false, "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"), "resp");
	assert_string_equal(GUESS(6379, false, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"), "http1");
	assert_string_equal(GUESS(9999, true, "HTTP/1.1 200 OK\r\n"), "http1");
	assert_string_equal(GUESS(9999, true, "$5\r\nhello\r\n"), "resp");
	assert_string_equal(
		GUESS(9999, false, "\0\x1d\x12\x34\1\0\0\1\0\0\0\0\0\0\7example\3com\0\0\1\0\1"),
		"dns");
}

static void
test_port_decides_what_content_leaves_open(void **state)
{
	(void)state;
	assert_string_equal(GUESS(6379, false, "PING\r\n"), "resp");
	assert_string_equal(GUESS(9999, false, "PING\r\n"), "opaque");
	assert_string_equal(GUESS(6379, false, ""), "resp");
	assert_string_equal(GUESS(80, false, ""), "http1");
	assert_string_equal(GUESS(80, false, "G"), "http1");
	assert_string_equal(
		GUESS(3868, false, "\1\0\0\x14\x80\0\1\1\0\0\0\0\0\0\0\7\0\0\0\1"), "diameter");
	assert_string_equal(GUESS(502, false, "\0\1\0\0\0\6\1\3\0\0\0\1"), "modbus");
	assert_string_equal(GUESS(9999, false, "\0\1\0\0\0\6\1\3\0\0\0\1"), "opaque");
}

#define BINARY_GET "\x80\0\0\1\0\0\0\0\0\0\0\1\0\0\0\7\0\0\0\0\0\0\0\0k"
#define NFS_CALL                                                                                   \
	"\x80\0\0\x28"                                                                             \
	"xid1\0\0\0\0\0\0\0\2\0\1\x86\xa3\0\0\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"

static void
test_memcached_and_sunrpc_are_told_by_content(void **state)
{
	(void)state;
	assert_string_equal(GUESS(9999, false, BINARY_GET), "memcached-binary");
	assert_string_equal(GUESS(11211, false, "\x80"), "memcached-binary");
	assert_string_equal(GUESS(9999, false, "set k 0 0 3\r\nabc\r\n"), "memcached");
	assert_string_equal(GUESS(9999, false, "mg k v q\r\n"), "memcached");
	assert_string_equal(GUESS(9999, true, "VALUE k 0 3\r\nabc\r\nEND\r\n"), "memcached");
	assert_string_equal(GUESS(11211, false, "get k\r\n"), "memcached");
	assert_string_equal(GUESS(11211, false, "version"), "memcached");
	assert_string_equal(GUESS(11211, true, "17\r\n"), "memcached");
	/* As an inline command of redis, or of beanstalkd. */
	assert_string_equal(GUESS(6379, false, "get k\r\n"), "resp");
	assert_string_equal(GUESS(9999, false, "get k\r\n"), "opaque");
	assert_string_equal(GUESS(9999, false, "stats\r\n"), "opaque");
	assert_string_equal(GUESS(11211, false, "GET / HTTP/1.1\r\n"), "http1");
	assert_string_equal(GUESS(9999, false, NFS_CALL), "sunrpc");
	assert_string_equal(GUESS(2049, false, "\x80\0\0\x28xid1"), "sunrpc");
	assert_string_equal(GUESS(9999, false, "\x80\0\0\x28xid1"), "opaque");
	assert_string_equal(GUESS(2049, false, "\0\0\0\0\0\0\0\0"), "opaque");
}

static void
test_sibling_is_taken_when_only_it_fits(void **state)
{
	const struct bs_framer *text = bs_framers_find(&framers, "memcached"),
			       *binary = bs_framers_find(&framers, "memcached-binary"),
			       *resp = bs_framers_find(&framers, "resp");
	const uint8_t *get = (const uint8_t *)BINARY_GET;

	(void)state;
	assert_ptr_equal(bs_framers_settle(&framers, text, false, false, get, 25), binary);
	assert_ptr_equal(bs_framers_settle(&framers, text, false, false, get, 1), binary);
	assert_ptr_equal(bs_framers_settle(&framers, binary, false, false, get, 25), binary);
	assert_ptr_equal(bs_framers_settle(&framers, resp, false, false, get, 25), resp);
	assert_ptr_equal(
		bs_framers_settle(&framers, binary, false, false, (const uint8_t *)"get k\r\n", 7),
		text);
	/* Neither: as configured. */
	assert_ptr_equal(
		bs_framers_settle(&framers, text, false, false, (const uint8_t *)"\x16\3\1", 3),
		text);
}

static void
test_content_refuses_what_the_port_says(void **state)
{
	static const char hello[] = "\x16\3\1\0\xa5\1\0\0\xa1\3\3";

	(void)state;
	assert_string_equal(GUESS(6379, false, hello), "opaque"); /* TLS */
	assert_string_equal(GUESS(80, false, hello), "opaque");
	assert_string_equal(GUESS(53, false, hello), "opaque");
	assert_string_equal(GUESS(80, true, "SSH-2.0-OpenSSH\r\n"), "opaque");
	assert_string_equal(GUESS(80, false, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "http2");
}

static void
test_datagram_is_guessed_as_a_whole(void **state)
{
	static const uint8_t query[] = "\x12\x34\1\0\0\1\0\0\0\0\0\0\7example\3com\0\0\1\0\1";
	static const uint8_t zeros[64];

	(void)state;
	assert_string_equal(
		bs_framers_guess(&framers, 5300, true, false, query, sizeof(query) - 1)->name,
		"dns");
	assert_string_equal(
		bs_framers_guess(&framers, 53, true, false, zeros, sizeof(zeros))->name, "opaque");
	assert_string_equal(bs_framers_guess(&framers, 53, true, false, query, 20)->name, "opaque");
	assert_string_equal(bs_framers_guess(&framers, 53, true, false, NULL, 0)->name, "opaque");
}

static void
test_opaque_takes_all_and_tells_nothing(void **state)
{
	static struct replay r;
	static const struct chunk chunks[] = {C("anything"), S("at all")};

	(void)state;
	replay_all_cuts(&r, &framers.list[BS_PROTOCOL_OPAQUE], chunks, COUNT(chunks));
	assert_int_equal(r.count, 0);
	assert_int_equal(framers.list[BS_PROTOCOL_OPAQUE].ops->pairing, BS_PAIR_BY_TURN);
}

/* xorshift: the same bytes in every run. */
static uint64_t
next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void
test_random_bytes_are_the_same_however_cut(void **state)
{
	static const char alphabet[] = "*$+-:%>|~\r\n0123456789 GETHPSUBCRI/.:,abc\0\x80\xff";
	static struct replay whole, pieces;
	uint64_t seed = 88172645463325252ull;
	uint8_t data[2][96];
	struct chunk chunks[2] = {{false, data[0], 96}, {true, data[1], 96}};

	(void)state;
	for (unsigned round = 0; round < 4000; round++) {
		for (unsigned i = 0; i < 192; i++) {
			uint64_t random = next_random(&seed);

			data[i / 96][i % 96] =
				round % 2 ? (uint8_t)random
					  : (uint8_t)alphabet[random % (sizeof(alphabet) - 1)];
		}
		if (round % 4 == 0)
			memcpy(data[0], "*3\r\n$3\r\n", 8);
		if (round % 4 == 2)
			memcpy(data[1], "HTTP/1.1 200 \r\n", 15);
		if (round % 8 == 3) {
			memcpy(data[0], "ms k 9 q Ox\r\n", 13);
			memcpy(data[1], "VALUE k 0 7\r\n", 13);
		}
		if (round % 8 == 5) {
			memcpy(data[0], "\x80\x09\0\2\0\0\0\0\0\0\0\7", 12);
			memcpy(data[1], "\x81\x10\0\2\0\0\0\0\0\0\0\7", 12);
		}
		if (round % 8 == 7) {
			memcpy(data[0], "\0\0\0\5xid1\0\x80\0\0\x80\0\0\0\2", 17);
			memcpy(data[1], "\x80\0\0\x24xid1\0\0\0\1\0\0\0\0", 16);
		}
		for (unsigned f = 0; f < framers.count; f++) {
			replay_run(&whole, &framers.list[f], chunks, 2, SIZE_MAX, 0, 0);
			replay_run(&pieces, &framers.list[f], chunks, 2, 1 + round % 5, 0, 0);
			replay_compare(&whole, &pieces, 1 + round % 5, 0, 0);
			framers.list[f].ops->probe(
				&framers.list[f], round & 8, data[0], round % 97);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_protocol_is_found_by_its_name),
		cmocka_unit_test(test_row_that_makes_no_sense_is_refused),
		cmocka_unit_test(test_taken_name_is_refused),
		cmocka_unit_test(test_full_table_is_refused),
		cmocka_unit_test(test_content_decides_on_any_port),
		cmocka_unit_test(test_port_decides_what_content_leaves_open),
		cmocka_unit_test(test_memcached_and_sunrpc_are_told_by_content),
		cmocka_unit_test(test_sibling_is_taken_when_only_it_fits),
		cmocka_unit_test(test_content_refuses_what_the_port_says),
		cmocka_unit_test(test_datagram_is_guessed_as_a_whole),
		cmocka_unit_test(test_opaque_takes_all_and_tells_nothing),
		cmocka_unit_test(test_random_bytes_are_the_same_however_cut),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
