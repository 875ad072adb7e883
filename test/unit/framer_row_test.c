/* SPDX-License-Identifier: BSD-3-Clause */
#include "capture_streams.h"

static struct replay r;

static void
test_modbus_frames_pair_by_transaction(void **state)
{
	/* Read Holding Registers, from the Modbus specification's example: 00 6B, 3 registers. */
	static const struct chunk chunks[] = {
		C("\x12\x34\0\0\0\x06\x01\x03\x00\x6b\x00\x03"
		  "\x12\x35\0\0\0\x06\x01\x03\x00\x6b\x00\x03"),
		S("\x12\x34\0\0\0\x09\x01\x03\x06\x02\x2b\x00\x00\x00\x64"),
	};

	(void)state;
	replay_all_cuts(&r, replay_framer("modbus"), chunks, COUNT(chunks));
	assert_int_equal(r.count, 3);
	assert_int_equal(r.told[0].flags, BS_FRAME_HEAD | BS_FRAME_SKIP | BS_FRAME_END);
	assert_int_equal(r.told[0].id, 0x1234);
	assert_int_equal(r.told[0].at, 8);
	assert_int_equal(r.told[0].skip, 4);
	assert_int_equal(r.told[1].begin, 12);
	assert_int_equal(r.told[1].id, 0x1235);
	assert_true(r.told[2].from_server);
	assert_int_equal(r.told[2].id, 0x1234);
	assert_int_equal(r.told[2].skip, 7);
}

static void
test_message_of_header_alone_has_no_skip(void **state)
{
	/* 9P: Tversion-sized header of 7 bytes, then Rflush, which is only that. */
	static const struct chunk chunks[] = {
		C("\x09\0\0\0\x6c\x07\0\x01\0"),
		S("\x07\0\0\0\x6d\x07\0"),
	};

	(void)state;
	replay_all_cuts(&r, replay_framer("9p"), chunks, COUNT(chunks));
	assert_int_equal(r.count, 2);
	assert_int_equal(r.told[0].role, BS_ROLE_REQUEST);
	assert_int_equal(r.told[0].skip, 2);
	assert_int_equal(r.told[1].role, BS_ROLE_RESPONSE);
	assert_int_equal(r.told[1].flags, BS_FRAME_HEAD | BS_FRAME_END);
	assert_int_equal(r.told[1].id, 7);
}

static void
test_mongodb_response_repeats_the_id_elsewhere(void **state)
{
	static const struct chunk chunks[] = {
		C("\x15\0\0\0\x2a\0\0\0\0\0\0\0\xdd\x07\0\0\0\0\0\0\0"),
		S("\x15\0\0\0\x99\0\0\0\x2a\0\0\0\xdd\x07\0\0\0\0\0\0\0"),
	};

	(void)state;
	replay_all_cuts(&r, replay_framer("mongodb"), chunks, COUNT(chunks));
	assert_int_equal(r.count, 2);
	assert_int_equal(r.told[0].id, 0x2a);
	assert_int_equal(r.told[1].id, 0x2a);
	assert_int_equal(r.told[1].skip, 5);
}

static void
test_diameter_role_is_in_the_flags(void **state)
{
	/* Device-Watchdog, which either side asks: here the server does. */
	static const struct chunk chunks[] = {
		S("\x01\0\0\x18\x80\0\x01\x18\0\0\0\0\0\0\0\x07\0\0\0\x01"
		  "abcd"),
		C("\x01\0\0\x14\0\0\x01\x18\0\0\0\0\0\0\0\x07\0\0\0\x01"),
	};

	(void)state;
	replay_all_cuts(&r, replay_framer("diameter"), chunks, COUNT(chunks));
	assert_int_equal(r.count, 2);
	assert_int_equal(r.told[0].role, BS_ROLE_REQUEST);
	assert_int_equal(r.told[0].id, 7);
	assert_int_equal(r.told[0].skip, 4);
	assert_int_equal(r.told[1].role, BS_ROLE_RESPONSE);
}

/* A row that uses all that a header may say: kind, code, status, id. */
static void
test_header_says_what_a_message_is(void **state)
{
	static const struct bs_framing_operation operations[] = {{1, "PUT"}, {2, "GET"}, {0, NULL}};
	static const struct bs_framing_row row = {
		.name = "all",
		.header = 8,
		.length_bytes = 1,
		.id_at = 1,
		.id_bytes = 1,
		.response = {.at = 2, .mask = 0x80, .value = 0x80},
		.none = {.at = 2, .mask = 0x40, .value = 0x40},
		.oneway = {.at = 2, .mask = 0x20, .value = 0x20, .otherwise = true},
		.push = {.at = 2, .mask = 0x10, .value = 0x10},
		.error = {.at = 3, .mask = 0xff, .value = 20, .otherwise = true},
		.status_at = 3,
		.status_bytes = 1,
		.operation_at = 4,
		.operation_bytes = 3,
		.operation_little = true,
		.operations = operations,
	};
	static const struct chunk chunks[] = {
		C("\x08\1\x20\0\1\0\0\0"       /* answered, PUT */
		  "\x08\2\0\0\2\0\0\0"	       /* not answered, GET */
		  "\x08\3\x60\0\0\0\0\0"       /* neither */
		  "\x08\4\x20\0\x10\x20\0\0"), /* a code without a name */
		S("\x08\1\x80\x14\0\0\0\0"     /* status 20: fine */
		  "\x08\4\x80\x63\0\0\0\0"     /* status 99 */
		  "\x08\0\x10\0\0\0\0\0"),     /* pushed */
	};
	static struct bs_framers framers;
	unsigned bad;

	(void)state;
	assert_int_equal(bs_framers_init(&framers, &row, 1, &bad), 0);
	replay_all_cuts(&r, bs_framers_find(&framers, "all"), chunks, COUNT(chunks));
	assert_int_equal(r.count, 7);
	assert_int_equal(r.told[0].role, BS_ROLE_REQUEST);
	assert_int_equal(r.told[0].oneway, 0);
	assert_string_equal(r.told[0].label, "PUT");
	assert_int_equal(r.told[1].oneway, BS_ONEWAY);
	assert_string_equal(r.told[1].label, "GET");
	assert_int_equal(r.told[2].role, BS_ROLE_NONE);
	assert_string_equal(r.told[3].label, "operation 8208");
	assert_int_equal(r.told[4].role, BS_ROLE_RESPONSE);
	assert_int_equal(r.told[4].status, 20);
	assert_false(r.told[4].error);
	assert_int_equal(r.told[5].status, 99);
	assert_true(r.told[5].error);
	assert_int_equal(r.told[6].role, BS_ROLE_PUSH);
}

static void
test_modbus_functions_have_names(void **state)
{
	/* Read Holding Registers refused with exception 2: MODBUS Application Protocol, section 7.
	 */
	static const struct chunk chunks[] = {
		C("\0\1\0\0\0\x06\1\3\0\x6b\0\3"),
		S("\0\1\0\0\0\x03\1\x83\2"),
	};

	(void)state;
	replay_all_cuts(&r, replay_framer("modbus"), chunks, COUNT(chunks));
	assert_string_equal(r.told[0].label, "READ HOLDING REGISTERS");
	assert_true(r.told[1].error);
}

static void
expect_bad(const struct bs_framer *framer, const void *data, size_t bytes)
{
	struct chunk chunk = {false, data, bytes};

	replay_all_cuts(&r, framer, &chunk, 1);
	assert_int_equal(r.count, 1);
	assert_int_equal(r.told[0].flags, BS_FRAME_BAD);
}

static void
test_nonsense_is_bad(void **state)
{
	const struct bs_framer *modbus = replay_framer("modbus");

	(void)state;
	expect_bad(modbus, "\0\1\0\1\0\x06\x01\x03", 8); /* protocol identifier 1 */
	expect_bad(modbus, "\0\1\0\0\0\x01\x01\x03", 8); /* shorter than the header */
	expect_bad(modbus, "\0\1\0\0\0\xff\x01\x03", 8); /* 261 bytes, one more than may be */
	expect_bad(replay_framer("mongodb"),
		"\xff\xff\xff\xff"
		"aaaabbbb\xdd\7\0\0",
		16);
	expect_bad(replay_framer("mongodb"),
		"\0\0\0\0"
		"aaaabbbb\xdd\7\0\0",
		16);
}

static void
test_long_length_with_bias_does_not_wrap(void **state)
{
	static const struct bs_framing_row rows[] = {
		{.name = "wide", .header = 8, .length_bytes = 8, .length_adds = INT32_MAX},
		{.name = "back",
			.header = 8,
			.length_bytes = 8,
			.length_adds = INT32_MIN,
			.length_max = UINT32_MAX},
		{.name = "some", .header = 8, .length_bytes = 8, .length_adds = 1000},
	};
	static struct bs_framers framers;
	unsigned bad = 99;

	(void)state;
	assert_int_equal(bs_framers_init(&framers, rows, 3, &bad), 0);
	expect_bad(bs_framers_find(&framers, "some"), "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
	expect_bad(bs_framers_find(&framers, "wide"), "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
	expect_bad(bs_framers_find(&framers, "wide"), "\x80\0\0\0\0\0\0\0", 8);
	expect_bad(bs_framers_find(&framers, "back"), "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
	expect_bad(bs_framers_find(&framers, "back"), "\0\0\0\0\0\0\0\0", 8);
}

static void
test_every_width_and_order_is_read(void **state)
{
	static const uint8_t widths[] = {1, 2, 3, 4, 8};
	struct bs_framing_row row = {.name = "w", .header = 20, .length_at = 1, .id_at = 10};
	static struct bs_framers framers;
	uint8_t message[30];
	unsigned bad;

	(void)state;
	for (unsigned i = 0; i < 2 * COUNT(widths); i++) {
		struct chunk chunk = {false, message, sizeof(message)};
		uint64_t id = 0;

		row.length_bytes = row.id_bytes = widths[i / 2];
		row.length_little = row.id_little = i % 2;
		memset(message, 0, sizeof(message));
		message[1 + (i % 2 ? 0 : row.length_bytes - 1)] = 30;
		for (unsigned b = 0; b < row.id_bytes; b++) {
			message[10 + b] = (uint8_t)(0xa1 + b);
			id |= (uint64_t)(0xa1 + b) << 8 * (i % 2 ? b : row.id_bytes - 1 - b);
		}
		assert_int_equal(bs_framers_init(&framers, &row, 1, &bad), 0);
		replay_all_cuts(&r, bs_framers_find(&framers, "w"), &chunk, 1);
		assert_int_equal(r.count, 1);
		assert_int_equal(r.told[0].skip, 10);
		assert_int_equal(r.told[0].id, id);
	}
}

static void
test_row_without_id_is_paired_by_order(void **state)
{
	static const struct bs_framing_row row = {.name = "plain", .header = 4, .length_bytes = 4};
	static struct bs_framers framers;
	static const struct chunk chunk = C("\0\0\0\4\0\0\0\5x");
	const struct bs_framer *framer;
	unsigned bad;

	(void)state;
	assert_int_equal(bs_framers_init(&framers, &row, 1, &bad), 0);
	framer = bs_framers_find(&framers, "plain");
	assert_int_equal(framer->ops->pairing, BS_PAIR_BY_ORDER);
	replay_all_cuts(&r, framer, &chunk, 1);
	assert_int_equal(r.count, 2);
	assert_false(r.told[0].has_id);
}

static void
test_modbus_capture_has_its_pdus(void **state)
{
	/* TRUTH.md: 48 PDUs, of which tshark pairs 23 (one response misses its request). */
	struct tally t = streams_tally("cisagov+icsnpp-modbus/testing/traces/modbus_example.pcap",
		502, replay_framer("modbus"));

	(void)state;
	assert_int_equal(t.requests + t.responses, 48);
	assert_int_equal(t.bad, 0);
}

static void
test_mongodb_captures_have_their_messages(void **state)
{
	struct tally t = streams_tally(
		"urso+packetbeat/packetbeat/tests/system/pcaps/mongo_3.0_session.pcap", 27017,
		replay_framer("mongodb"));

	(void)state;
	assert_int_equal(t.requests, 24);
	assert_int_equal(t.responses, 24);
	assert_int_equal(t.bad, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modbus_frames_pair_by_transaction),
		cmocka_unit_test(test_message_of_header_alone_has_no_skip),
		cmocka_unit_test(test_mongodb_response_repeats_the_id_elsewhere),
		cmocka_unit_test(test_diameter_role_is_in_the_flags),
		cmocka_unit_test(test_header_says_what_a_message_is),
		cmocka_unit_test(test_modbus_functions_have_names),
		cmocka_unit_test(test_nonsense_is_bad),
		cmocka_unit_test(test_long_length_with_bias_does_not_wrap),
		cmocka_unit_test(test_every_width_and_order_is_read),
		cmocka_unit_test(test_row_without_id_is_paired_by_order),
		cmocka_unit_test(test_modbus_capture_has_its_pdus),
		cmocka_unit_test(test_mongodb_captures_have_their_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
