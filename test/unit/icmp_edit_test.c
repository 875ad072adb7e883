/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ICMP "too big" frames written out by hand, with one thing wrong at a time; the
 * checksum after lowering against a sum over the whole message.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "bs_icmp_edit.h"
#include "wire_frames.h"

#define SOURCE_PORT 6379u
#define PEER_PORT 40000u

/* A too-big about a segment that 10.0.0.2 (fd00::2) port 6379 sent to 10.0.0.1 (fd00::1) port
 * 40000. */
struct too_big {
	uint8_t bytes[256];
	unsigned l3, icmp, quoted, quoted_l4, len;
};

static void
put_addresses(uint8_t *at, bool v6, unsigned source, unsigned destination)
{
	if (v6) {
		memset(at, 0, 32);
		at[0] = at[16] = 0xfd;
		at[15] = (uint8_t)source;
		at[31] = (uint8_t)destination;
	} else {
		static const uint8_t net[8] = {10, 0, 0, 0, 10, 0, 0, 0};

		memcpy(at, net, 8);
		at[3] = (uint8_t)source;
		at[7] = (uint8_t)destination;
	}
}

/* An IP header; returns the offset behind it. */
static unsigned
put_ip(uint8_t *bytes, unsigned at, bool v6, unsigned protocol, unsigned payload, unsigned source,
	unsigned destination)
{
	if (v6) {
		bytes[at] = 0x60;
		frame_put16(bytes + at + 4, payload);
		bytes[at + 6] = (uint8_t)protocol;
		put_addresses(bytes + at + 8, true, source, destination);
		return at + 40;
	}
	bytes[at] = 0x45;
	frame_put16(bytes + at + 2, 20 + payload);
	frame_put16(bytes + at + 6, 0x4000);
	bytes[at + 9] = (uint8_t)protocol;
	put_addresses(bytes + at + 12, false, source, destination);
	return at + 20;
}

/* RFC 4443 section 2.3: pseudo-header for ICMPv6; RFC 792: none. */
static unsigned
icmp_checksum(const struct too_big *frame, bool v6)
{
	unsigned len = frame->len - frame->icmp, sum = 0;

	if (v6) {
		uint8_t rest[8] = {[7] = 58};

		frame_put16(rest + 2, len);
		sum = frame_sum(sum, frame->bytes + frame->l3 + 8, 32);
		sum = frame_sum(sum, rest, sizeof(rest));
	}
	sum = frame_sum(sum, frame->bytes + frame->icmp, 2);
	return 0xFFFF - frame_sum(sum, frame->bytes + frame->icmp + 4, len - 4);
}

static struct too_big
build(bool v6, unsigned vlans, unsigned protocol, uint32_t mtu)
{
	struct too_big frame = {.l3 = 14 + 4 * vlans};
	unsigned quote = (v6 ? 40u : 20u) + 8; /* the least: IP header and 8 bytes */
	uint8_t *bytes = frame.bytes;

	for (unsigned i = 0; i < vlans; i++) {
		frame_put16(bytes + 12 + 4 * i, i + 1 < vlans ? 0x88a8 : 0x8100);
		frame_put16(bytes + 14 + 4 * i, 0xE000 | (100 + i)); /* priority 7 */
	}
	frame_put16(bytes + frame.l3 - 2, v6 ? 0x86dd : 0x0800);
	/* A router, 254, says it to the sender of the quoted packet. */
	frame.icmp = put_ip(bytes, frame.l3, v6, v6 ? 58 : 1, 8 + quote, 254, 2);
	bytes[frame.icmp] = v6 ? 2 : 3;
	bytes[frame.icmp + 1] = v6 ? 0 : 4;
	frame_put16(bytes + frame.icmp + 4, mtu >> 16);
	frame_put16(bytes + frame.icmp + 6, mtu & 0xffff);
	frame.quoted = frame.icmp + 8;
	frame.quoted_l4 = put_ip(bytes, frame.quoted, v6, protocol, 1480, 2, 1);
	frame_put16(bytes + frame.quoted_l4, SOURCE_PORT);
	frame_put16(bytes + frame.quoted_l4 + 2, PEER_PORT);
	frame_put16(bytes + frame.quoted_l4 + 4, 0x89AB);
	frame_put16(bytes + frame.quoted_l4 + 6, 0xCDEF);
	frame.len = frame.quoted_l4 + 8;
	frame_put16(bytes + frame.icmp + 2, icmp_checksum(&frame, v6));
	return frame;
}

/* Parses from a heap block of exactly len bytes. */
static int
parse_exact(const struct too_big *frame, unsigned len, struct bs_icmp_too_big *out)
{
	uint8_t *block = malloc(len > 0 ? len : 1);
	int ret;

	memcpy(block, frame->bytes, len);
	ret = bs_icmp_too_big_parse(block, len, out);
	free(block);
	return ret;
}

static void
parse_yields_quoted_flow_and_mtu(void **state)
{
	(void)state;
	for (unsigned v6 = 0; v6 < 2; v6++)
		for (unsigned vlans = 0; vlans <= 3; vlans++) {
			struct too_big frame = build(v6, vlans, 6, 1400);
			struct bs_icmp_too_big out;
			uint8_t low[16] = {0}, high[16] = {0};

			if (v6) {
				low[0] = high[0] = 0xfd;
			} else {
				low[10] = low[11] = high[10] = high[11] = 0xff;
				low[12] = high[12] = 10;
			}
			low[15] = 1;
			high[15] = 2;
			assert_int_equal(parse_exact(&frame, frame.len, &out), 0);
			assert_memory_equal(out.tuple.addr[0], low, 16);
			assert_memory_equal(out.tuple.addr[1], high, 16);
			assert_int_equal(out.tuple.port[0], PEER_PORT);
			assert_int_equal(out.tuple.port[1], SOURCE_PORT);
			assert_int_equal(out.tuple.vlan[0], vlans > 0 ? 100 : 0);
			/* of three tags the outermost and the innermost */
			assert_int_equal(out.tuple.vlan[1], vlans > 1 ? 99 + vlans : 0);
			assert_int_equal(out.tuple.transport, 6);
			assert_int_equal(out.tuple.ip_version, v6 ? 6 : 4);
			assert_int_equal(out.direction, 1); /* the higher end sent it */
			assert_true(out.seq == 0x89ABCDEF);
			assert_int_equal(out.mtu, 1400);
			assert_int_equal(out.icmp_at, frame.icmp);
			assert_int_equal(out.mtu_at, frame.icmp + (v6 ? 4 : 6));
		}
}

static void
tuple_equals_what_parser_makes_of_the_segment(void **state)
{
	uint64_t random = 31;

	(void)state;
	for (unsigned round = 0; round < 1000; round++) {
		struct frame_want want = frame_random_want(0, &random);
		struct frame segment;
		struct too_big frame;
		struct bs_icmp_too_big out;
		unsigned bytes;

		want.ip_extra = 0;
		want.udp = round & 1;
		segment = frame_build(&want, &random);
		if (round % 8 == 0) { /* one host talking to itself: ports decide the order */
			uint8_t *address =
				frame_data(&segment) + segment.packet.l3 + (want.v6 ? 8 : 12);

			memcpy(address, address + (want.v6 ? 16 : 4), want.v6 ? 16 : 4);
		}
		frame = build(want.v6, 0, 6, 1400);
		bytes = frame.len - frame.quoted;
		memcpy(frame.bytes + frame.quoted, segment.packet.data + segment.packet.l3, bytes);
		/* The frame around the quote has the VLANs of its flow. */
		memmove(frame.bytes + 14 + 4 * want.vlans, frame.bytes + 14, frame.len - 14);
		memcpy(frame.bytes, segment.packet.data, 14 + 4 * want.vlans);

		assert_int_equal(bs_packet_parse(&segment.packet), BS_PARSE_OK);
		assert_int_equal(parse_exact(&frame, frame.len + 4 * want.vlans, &out), 0);
		assert_memory_equal(&out.tuple, &segment.packet.tuple, sizeof(out.tuple));
		assert_int_equal(out.direction, segment.packet.direction);
		assert_true(out.seq == (want.udp ? 0 : segment.packet.seq));
		assert_true(bs_tuple_hash(&out.tuple) == segment.packet.hash);
		frame_free(&segment);
	}
}

static void
parse_of_any_cut_fails_untouched(void **state)
{
	(void)state;
	for (unsigned v6 = 0; v6 < 2; v6++) {
		struct too_big frame = build(v6, 2, 6, 1400);
		struct bs_icmp_too_big out = {.mtu = 7};

		for (unsigned len = 0; len < frame.len; len++) {
			assert_int_equal(parse_exact(&frame, len, &out), -EINVAL);
			assert_int_equal(out.mtu, 7);
		}
	}
}

/* One or two bytes of a good frame that make it something else. */
struct spoil {
	enum { ETHER, IP, ICMP, QUOTE } header;
	unsigned at;
	uint16_t value;
	bool word; /* 16 bits */
};

static const struct spoil spoils_v4[] = {
	{ICMP, 0, 11, false},	    /* time exceeded */
	{ICMP, 1, 3, false},	    /* port unreachable */
	{IP, 9, 6, false},	    /* TCP */
	{IP, 6, 0x2000, true},	    /* the first fragment */
	{IP, 6, 0x0001, true},	    /* a later one */
	{IP, 0, 0x44, false},	    /* header of 16 bytes */
	{IP, 2, 20 + 8 + 27, true}, /* quote of 27 bytes */
	{IP, 2, 19, true},	    /* less than the header */
	{QUOTE, 0, 0x65, false},    /* another version */
	{QUOTE, 9, 1, false},	    /* about an ICMP message */
	{QUOTE, 6, 0x0010, true},   /* about a later fragment */
	{QUOTE, 0, 0x46, false},    /* ports are cut off */
	{ETHER, 13, 0x06, false},   /* ARP */
};

static const struct spoil spoils_v6[] = {
	{ICMP, 0, 1, false},	  /* unreachable */
	{IP, 6, 17, false},	  /* UDP */
	{IP, 6, 44, false},	  /* fragment */
	{IP, 0, 0x45, false},	  /* another version */
	{IP, 4, 8 + 47, true},	  /* quote of 47 bytes */
	{IP, 4, 0, true},	  /* jumbogram */
	{QUOTE, 0, 0x45, false},  /* another version */
	{QUOTE, 6, 58, false},	  /* about an ICMPv6 message */
	{QUOTE, 6, 51, false},	  /* behind AH */
	{ETHER, 12, 0x08, false}, /* no IPv6 */
	{QUOTE, 6, 59, false},	  /* no next header */
	{IP, 6, 1, false},	  /* ICMP of the other version */
};

static void
assert_spoiled_is_refused(bool v6, const struct spoil *spoil)
{
	struct too_big frame = build(v6, 0, 6, 1400);
	uint8_t *const headers[] = {[ETHER] = frame.bytes,
		[IP] = frame.bytes + frame.l3,
		[ICMP] = frame.bytes + frame.icmp,
		[QUOTE] = frame.bytes + frame.quoted};
	struct bs_icmp_too_big out = {.mtu = 7};
	uint8_t *at = headers[spoil->header] + spoil->at;

	if (spoil->word)
		frame_put16(at, spoil->value);
	else
		*at = (uint8_t)spoil->value;
	assert_int_equal(parse_exact(&frame, frame.len, &out), -EINVAL);
	assert_int_equal(out.mtu, 7);
}

static void
parse_refuses_what_is_no_too_big(void **state)
{
	struct too_big frame = build(true, 0, 6, 1400);
	struct bs_icmp_too_big out = {.mtu = 7};
	uint8_t *quoted = frame.bytes + frame.quoted;

	(void)state;
	for (unsigned i = 0; i < sizeof(spoils_v4) / sizeof(spoils_v4[0]); i++)
		assert_spoiled_is_refused(false, &spoils_v4[i]);
	for (unsigned i = 0; i < sizeof(spoils_v6) / sizeof(spoils_v6[0]); i++)
		assert_spoiled_is_refused(true, &spoils_v6[i]);
	quoted[6] = 60; /* options that run past the end */
	quoted[40] = 6;
	quoted[41] = 1;
	assert_int_equal(parse_exact(&frame, frame.len, &out), -EINVAL);
	assert_int_equal(out.mtu, 7);
}

static void
parse_walks_extension_headers_before_quoted_tcp(void **state)
{
	struct too_big frame = build(true, 0, 6, 1400);
	struct bs_icmp_too_big out;
	uint8_t l4[8];

	(void)state;
	memcpy(l4, frame.bytes + frame.quoted_l4, 8);
	frame.bytes[frame.quoted + 6] = 60; /* destination options, then an atomic fragment */
	memset(frame.bytes + frame.quoted_l4, 0, 24);
	frame.bytes[frame.quoted_l4] = 44;
	frame.bytes[frame.quoted_l4 + 8] = 6;
	memcpy(frame.bytes + frame.quoted_l4 + 16, l4, 8);
	frame.len += 16;
	frame_put16(frame.bytes + frame.l3 + 4, frame.len - frame.icmp);
	assert_int_equal(parse_exact(&frame, frame.len, &out), 0);
	assert_int_equal(out.tuple.transport, 6);
	assert_true(out.seq == 0x89ABCDEF);

	frame_put16(frame.bytes + frame.quoted_l4 + 10, 0x0008); /* a later fragment */
	assert_int_equal(parse_exact(&frame, frame.len, &out), -EINVAL);
	frame_put16(frame.bytes + frame.quoted_l4 + 10, 0x0001); /* the first of several */
	assert_int_equal(parse_exact(&frame, frame.len, &out), -EINVAL);
}

static void
parse_of_random_bytes_stays_inside(void **state)
{
	uint64_t random = 32;

	(void)state;
	for (unsigned round = 0; round < 20000; round++) {
		struct too_big frame = build(round & 1, round % 3, 6, 1400);
		struct bs_icmp_too_big out;
		unsigned len = frame_random(&random) % (frame.len + 1);

		for (unsigned i = 0; i < 4; i++)
			frame.bytes[12 + frame_random(&random) % (frame.len - 12)] =
				(uint8_t)frame_random(&random);
		if (parse_exact(&frame, len, &out) == 0)
			assert_true(out.mtu_at + (out.tuple.ip_version == 4 ? 2 : 4) <= len);
	}
}

static void
mtu_lowered_by_shim_not_below_floor_with_right_checksum(void **state)
{
	static const struct {
		bool v6;
		uint32_t mtu, lowered;
	} cases[] = {
		{false, 0, 0}, /* router from before RFC 1191 */
		{false, 68, 0},
		{false, 296, 0},
		{false, 297, 1},
		{false, 316, 20},
		{false, 576, 20},
		{false, 1400, 20},
		{false, 65535, 20},
		{true, 0, 0},
		{true, 1280, 0},
		{true, 1299, 19},
		{true, 1300, 20},
		{true, 1400, 20},
		{true, 65536, 20}, /* borrows from the upper half */
		{true, 0xFFFFFFFF, 20},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool v6 = cases[i].v6;
		struct too_big frame = build(v6, 1, 6, cases[i].mtu), expected = frame;
		uint32_t mtu = cases[i].mtu - cases[i].lowered;
		struct bs_icmp_too_big out;

		frame_put16(expected.bytes + frame.icmp + 4, mtu >> 16);
		frame_put16(expected.bytes + frame.icmp + 6, mtu & 0xffff);
		frame_put16(expected.bytes + frame.icmp + 2, icmp_checksum(&expected, v6));
		assert_int_equal(parse_exact(&frame, frame.len, &out), 0);
		assert_true(out.mtu == cases[i].mtu);
		assert_int_equal(bs_icmp_mtu_lower(&out, frame.bytes, 20), cases[i].lowered);
		assert_memory_equal(frame.bytes, expected.bytes, frame.len);
		assert_true(out.mtu == mtu);
	}
}

static void
wrong_checksum_stays_wrong_when_mtu_is_lowered(void **state)
{
	struct too_big frame = build(false, 0, 6, 1400);
	struct bs_icmp_too_big out;
	unsigned wrong = frame_get16(frame.bytes + frame.icmp + 2) ^ 0x0100, error;

	(void)state;
	error = (wrong + 0xFFFF - icmp_checksum(&frame, false)) % 0xFFFF;
	frame_put16(frame.bytes + frame.icmp + 2, wrong);
	assert_int_equal(parse_exact(&frame, frame.len, &out), 0);
	assert_int_equal(bs_icmp_mtu_lower(&out, frame.bytes, 20), 20);
	assert_int_equal((frame_get16(frame.bytes + frame.icmp + 2) + 0xFFFF -
				 icmp_checksum(&frame, false)) %
				 0xFFFF,
		error);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_yields_quoted_flow_and_mtu),
		cmocka_unit_test(tuple_equals_what_parser_makes_of_the_segment),
		cmocka_unit_test(parse_of_any_cut_fails_untouched),
		cmocka_unit_test(parse_refuses_what_is_no_too_big),
		cmocka_unit_test(parse_walks_extension_headers_before_quoted_tcp),
		cmocka_unit_test(parse_of_random_bytes_stays_inside),
		cmocka_unit_test(mtu_lowered_by_shim_not_below_floor_with_right_checksum),
		cmocka_unit_test(wrong_checksum_stays_wrong_when_mtu_is_lowered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
