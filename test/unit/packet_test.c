/* SPDX-License-Identifier: BSD-3-Clause */
/* Link and IP headers, TCP and UDP without options, and lengths that lie. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "frame.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void
tcp_over_ipv4_is_understood(void **state)
{
	static const uint8_t client[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
	static const uint8_t server[16] = {[10] = 0xff, 0xff, 10, 0, 0, 2};
	struct frame f;
	struct bs_packet p;

	(void)state;
	frame_tcp4(&f, NULL, 0, 100);
	assert_int_equal(frame_parse(&f, &p), BS_PARSE_OK);
	assert_int_equal(p.parse, BS_PARSE_OK);
	assert_memory_equal(p.tuple.addr[0], client, 16);
	assert_memory_equal(p.tuple.addr[1], server, 16);
	assert_int_equal(p.tuple.port[0], 40000);
	assert_int_equal(p.tuple.port[1], 80);
	assert_int_equal(p.tuple.transport, 6);
	assert_int_equal(p.tuple.ip_version, 4);
	assert_int_equal(p.tuple.vlan[0], 0);
	assert_int_equal(p.tuple.vlan[1], 0);
	for (size_t i = 0; i < sizeof(p.tuple.pad); i++)
		assert_int_equal(p.tuple.pad[i], 0);
	assert_int_equal(p.direction, 0);
	assert_int_equal(p.vlan_count, 0);
	assert_int_equal(p.tcp_flags, BS_TCP_PSH | BS_TCP_ACK);
	assert_int_equal(p.l3, 14);
	assert_int_equal(p.l4, 34);
	assert_int_equal(p.payload, 54);
	assert_int_equal(p.l4_protocol, 6);
	assert_int_equal(p.payload_len, 100);
	assert_int_equal(p.payload_cap, 100);
	assert_int_equal(p.ip_id, 0x1234);
	assert_int_equal(p.ttl, 64);
	assert_int_equal(p.seq, 0x01020304);
	assert_int_equal(p.ack, 0x05060708);
	assert_int_equal(p.window, 0x7210);
	assert_int_equal(p.tcp_options, 0);
	assert_int_equal(p.sack_count, 0);
	assert_int_equal(p.tsval, 0);
	assert_int_equal(p.shim, 0);
	assert_int_equal(p.l4_checksum_partial, 0);
}

static void
tcp_over_ipv6_is_understood(void **state)
{
	static const uint8_t low[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1};
	struct frame f;
	struct bs_packet p;

	(void)state;
	frame_ether(&f, 0x86dd);
	frame_ipv6(&f, 6, 2, 1);
	frame_tcp(&f, 40000, 80, BS_TCP_ACK, NULL, 0);
	frame_fill(&f, 'x', 7);
	frame_end_ip(&f);
	assert_int_equal(frame_parse(&f, &p), BS_PARSE_OK);
	assert_memory_equal(p.tuple.addr[0], low, 16);
	assert_int_equal(p.tuple.port[0], 80);
	assert_int_equal(p.tuple.port[1], 40000);
	assert_int_equal(p.direction, 1);
	assert_int_equal(p.tuple.ip_version, 6);
	assert_int_equal(p.l4, 54);
	assert_int_equal(p.payload, 74);
	assert_int_equal(p.payload_len, 7);
	assert_int_equal(p.ttl, 63);
}

static void
udp_payload_is_what_the_udp_length_says(void **state)
{
	struct frame f;
	struct bs_packet p;

	(void)state;
	frame_ether(&f, 0x0800);
	frame_ipv4(&f, 17, 0x0a000001, 0x0a000002);
	frame_udp(&f, 5353, 53, 30);
	frame_fill(&f, 'x', 30 + 12); /* 12 bytes of surplus */
	frame_end_ip(&f);
	assert_int_equal(frame_parse(&f, &p), BS_PARSE_OK);
	assert_int_equal(p.tuple.transport, 17);
	assert_int_equal(p.tuple.port[0], 5353);
	assert_int_equal(p.tuple.port[1], 53);
	assert_int_equal(p.payload, 42);
	assert_int_equal(p.payload_len, 30);
	assert_int_equal(p.payload_cap, 30);
	assert_int_equal(p.seq, 0);
}

static void
impossible_udp_lengths_are_bad_transport(void **state)
{
	static const unsigned lengths[] = {0, 1, 7, 39, 65535};
	struct frame f;
	struct bs_packet p;

	(void)state;
	frame_ether(&f, 0x0800);
	frame_ipv4(&f, 17, 0x0a000001, 0x0a000002);
	frame_udp(&f, 5353, 53, 30);
	frame_fill(&f, 'x', 30);
	frame_end_ip(&f);
	for (size_t i = 0; i < COUNT(lengths); i++) {
		frame_set16(&f, f.l4 + 4, lengths[i]);
		assert_int_equal(frame_parse(&f, &p), BS_PARSE_BAD_L4);
		assert_int_equal(p.tuple.port[0], 0);
	}
}

static void
vlan_tags_are_read_up_to_three(void **state)
{
	static const unsigned outer[] = {0x8100, 0x88a8};
	struct frame f;
	struct bs_packet p;

	(void)state;
	for (unsigned tags = 1; tags <= 4; tags++) {
		frame_ether(&f, outer[tags % 2]);
		for (unsigned i = 1; i <= tags; i++) /* priority bits do not count */
			frame_vlan(&f, 0xa000 | (100 * i), i == tags ? 0x0800 : 0x8100);
		frame_ipv4(&f, 6, 0x0a000001, 0x0a000002);
		frame_tcp(&f, 40000, 80, BS_TCP_ACK, NULL, 0);
		frame_end_ip(&f);
		if (tags == 4) {
			assert_int_equal(frame_parse(&f, &p), BS_PARSE_NOT_IP);
			continue;
		}
		assert_int_equal(frame_parse(&f, &p), BS_PARSE_OK);
		assert_int_equal(p.vlan_count, tags);
		assert_int_equal(p.tuple.vlan[0], 100);
		assert_int_equal(p.tuple.vlan[1], tags == 1 ? 0 : 100 * tags);
		assert_int_equal(p.l3, 14 + 4 * tags);
	}
}

static void
frames_of_other_protocols_are_not_ip(void **state)
{
	static const unsigned types[] = {0x0806, 0x88cc, 0x88b5, 0x8847, 0x0026, 0};
	struct frame f;
	struct bs_packet p;

	(void)state;
	for (size_t i = 0; i < COUNT(types); i++) {
		frame_ether(&f, types[i]);
		frame_fill(&f, 0, 46);
		assert_int_equal(frame_parse(&f, &p), BS_PARSE_NOT_IP);
		assert_int_equal(p.hash, 0);
		assert_int_equal(p.l4_protocol, 0);
	}
}

static void
other_transports_are_named_and_have_addresses(void **state)
{
	static const struct {
		unsigned version, protocol;
		enum bs_parse parse;
	} cases[] = {
		{4, 1, BS_PARSE_ICMP},
		{6, 58, BS_PARSE_ICMP},
		{4, 58, BS_PARSE_OTHER_L4},
		{6, 1, BS_PARSE_OTHER_L4},
		{4, 47, BS_PARSE_OTHER_L4},
		{4, 132, BS_PARSE_OTHER_L4},
		{4, 51, BS_PARSE_OTHER_L4},
		{6, 59, BS_PARSE_OTHER_L4},
		{6, 50, BS_PARSE_OPAQUE_EXT},
		{6, 51, BS_PARSE_OPAQUE_EXT},
		{6, 135, BS_PARSE_OPAQUE_EXT},
		{6, 139, BS_PARSE_OPAQUE_EXT},
		{6, 140, BS_PARSE_OPAQUE_EXT},
	};
	struct frame f;
	struct bs_packet p;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		frame_ether(&f, cases[i].version == 4 ? 0x0800 : 0x86dd);
		if (cases[i].version == 4)
			frame_ipv4(&f, cases[i].protocol, 0x0a000001, 0x0a000002);
		else
			frame_ipv6(&f, cases[i].protocol, 1, 2);
		frame_fill(&f, 0, 24);
		frame_end_ip(&f);
		assert_int_equal(frame_parse(&f, &p), cases[i].parse);
		assert_int_equal(p.l4_protocol, cases[i].protocol);
		assert_int_equal(p.tuple.ip_version, cases[i].version);
		assert_int_equal(p.tuple.addr[0][15], 1);
		assert_int_equal(p.tuple.addr[1][15], 2);
		assert_int_not_equal(p.hash, 0);
	}
}

static void
ipv4_options_move_the_transport_header(void **state)
{
	struct frame f;
	struct bs_packet p;

	(void)state;
	frame_ether(&f, 0x0800);
	frame_ipv4(&f, 6, 0x0a000001, 0x0a000002);
	f.bytes[f.l3] = 0x47;
	frame_fill(&f, 1, 8);
	frame_tcp(&f, 40000, 80, BS_TCP_ACK, NULL, 0);
	frame_end_ip(&f);
	assert_int_equal(frame_parse(&f, &p), BS_PARSE_OK);
	assert_int_equal(p.l4, 42);
	assert_int_equal(p.tuple.port[0], 40000);
}

static void
impossible_ipv4_headers_are_bad_ip(void **state)
{
	static const struct {
		uint8_t version_length;
		unsigned total;
	} cases[] = {
		{0x44, 40}, {0x40, 40}, {0x55, 40}, {0x65, 40}, {0x05, 40}, {0x45, 19}, {0x46, 20}};
	struct frame f;
	struct bs_packet p;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		frame_tcp4(&f, NULL, 0, 0);
		f.bytes[f.l3] = cases[i].version_length;
		frame_set16(&f, f.l3 + 2, cases[i].total);
		assert_int_equal(frame_parse(&f, &p), BS_PARSE_BAD_IP);
	}
	frame_ether(&f, 0x86dd);
	frame_ipv6(&f, 6, 1, 2);
	frame_tcp(&f, 1, 2, 0, NULL, 0);
	frame_end_ip(&f);
	f.bytes[f.l3] = 0x45;
	assert_int_equal(frame_parse(&f, &p), BS_PARSE_BAD_IP);
}

static void
ipv4_fragments_share_a_hash_and_have_no_ports(void **state)
{
	static const unsigned fields[] = {0x2000, 0x2001, 0x0001, 0x1fff};
	struct frame f;
	struct bs_packet p;
	uint32_t hash = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(fields); i++) {
		frame_tcp4(&f, NULL, 0, (uint32_t)i * 8);
		frame_set16(&f, f.l3 + 6, fields[i]);
		f.bytes[f.l4] = (uint8_t)i;
		assert_int_equal(frame_parse(&f, &p), BS_PARSE_FRAGMENT);
		assert_int_equal(p.tuple.port[0], 0);
		assert_int_equal(p.tuple.port[1], 0);
		if (i > 0)
			assert_int_equal(p.hash, hash);
		hash = p.hash;
	}
	frame_set16(&f, f.l3 + 6, 0x8000); /* the reserved bit makes no fragment */
	assert_int_equal(frame_parse(&f, &p), BS_PARSE_OK);
}

static void
tcp_headers_of_impossible_length_are_bad_transport(void **state)
{
	struct frame f;
	struct bs_packet p;

	(void)state;
	for (unsigned words = 0; words <= 15; words++) {
		frame_tcp4(&f, NULL, 0, 8); /* room for 7 words */
		f.bytes[f.l4 + 12] = (uint8_t)(words << 4);
		assert_int_equal(frame_parse(&f, &p),
			words < 5 || words > 7 ? BS_PARSE_BAD_L4 : BS_PARSE_OK);
	}
	frame_tcp4(&f, NULL, 0, 0);
	frame_set16(&f, f.l3 + 2, 20 + 19);
	assert_int_equal(frame_parse(&f, &p), BS_PARSE_BAD_L4);
}

static void
ethernet_padding_is_not_payload(void **state)
{
	struct frame f;
	struct bs_packet p;

	(void)state;
	frame_tcp4(&f, NULL, 0, 0);
	frame_fill(&f, 0, 6);
	assert_int_equal(f.n, 60);
	assert_int_equal(frame_parse(&f, &p), BS_PARSE_OK);
	assert_int_equal(p.payload_len, 0);
	assert_int_equal(p.payload_cap, 0);
}

static void
total_length_zero_takes_the_frame_for_tcp_only(void **state)
{
	struct frame f;
	struct bs_packet p;

	(void)state;
	frame_tcp4(&f, NULL, 0, 1000);
	frame_set16(&f, f.l3 + 2, 0);
	assert_int_equal(frame_parse(&f, &p), BS_PARSE_OK);
	assert_int_equal(p.payload_len, 1000);
	/* IPv4 BIG TCP: more than 16 bits, of which a capture keeps little. */
	assert_int_equal(frame_parse_cut(&f, f.n, 54 + 180000, &p), BS_PARSE_OK);
	assert_int_equal(p.payload_len, 180000);
	assert_int_equal(p.payload_cap, 1000);

	f.bytes[f.l3 + 9] = 17;
	assert_int_equal(frame_parse(&f, &p), BS_PARSE_BAD_IP);

	frame_ether(&f, 0x86dd);
	frame_ipv6(&f, 6, 1, 2);
	frame_tcp(&f, 40000, 80, BS_TCP_ACK, NULL, 0);
	frame_fill(&f, 'x', 10);
	assert_int_equal(frame_parse(&f, &p), BS_PARSE_OK);
	assert_int_equal(p.payload_len, 10);
	f.bytes[f.l3 + 6] = 17;
	assert_int_equal(frame_parse(&f, &p), BS_PARSE_BAD_IP);
}

static void
frame_shorter_than_its_packet_is_cut(void **state)
{
	struct frame f;
	struct bs_packet p;

	(void)state;
	frame_tcp4(&f, NULL, 0, 100);
	assert_int_equal(frame_parse_cut(&f, f.n - 1, f.n - 1, &p), BS_PARSE_CUT);
	assert_int_not_equal(p.hash, 0);
	assert_int_equal(p.payload_len, 0);
	assert_int_equal(frame_parse_cut(&f, 60, f.n - 1, &p), BS_PARSE_CUT);

	frame_ether(&f, 0x86dd);
	frame_ipv6(&f, 6, 1, 2);
	frame_tcp(&f, 40000, 80, BS_TCP_ACK, NULL, 0);
	frame_end_ip(&f);
	assert_int_equal(frame_parse_cut(&f, f.n - 1, f.n - 1, &p), BS_PARSE_CUT);
}

static void
bytes_not_kept_are_payload_all_the_same(void **state)
{
	struct frame f;
	struct bs_packet p;

	(void)state;
	frame_tcp4(&f, NULL, 0, 100);
	assert_int_equal(frame_parse_cut(&f, 64, f.n, &p), BS_PARSE_OK);
	assert_int_equal(p.payload_len, 100);
	assert_int_equal(p.payload_cap, 10);
	assert_int_equal(frame_parse_cut(&f, 54, f.n, &p), BS_PARSE_OK);
	assert_int_equal(p.payload_cap, 0);
	assert_int_equal(frame_parse_cut(&f, 53, f.n, &p), BS_PARSE_SNAPPED);
}

static void
bytes_past_the_frame_do_not_count(void **state)
{
	struct frame f;
	struct bs_packet p;

	(void)state;
	frame_tcp4(&f, NULL, 0, 100);
	assert_int_equal(frame_parse_cut(&f, f.n, f.n - 50, &p), BS_PARSE_CUT);
	assert_int_equal(frame_parse_cut(&f, f.n, 13, &p), BS_PARSE_RUNT);
}

static void
frames_without_a_link_header_are_runts(void **state)
{
	struct frame f;
	struct bs_packet p;

	(void)state;
	frame_tcp4(&f, NULL, 0, 0);
	for (uint32_t n = 0; n < 14; n++) {
		assert_int_equal(frame_parse_cut(&f, n, n, &p), BS_PARSE_RUNT);
		assert_int_equal(frame_parse_cut(&f, n, f.n, &p), BS_PARSE_SNAPPED);
	}
	frame_ether(&f, 0x8100);
	frame_vlan(&f, 5, 0x0800);
	assert_int_equal(frame_parse_cut(&f, 17, 17, &p), BS_PARSE_RUNT);
	assert_int_equal(frame_parse_cut(&f, 17, 60, &p), BS_PARSE_SNAPPED);
}

/* ext: its first byte is overwritten by `next` of the header behind. */
static void
begin_extension(struct frame *f, unsigned first, const void *ext, size_t bytes, unsigned next)
{
	frame_ether(f, 0x86dd);
	frame_ipv6(f, first, 1, 2);
	frame_u8(f, next);
	frame_put(f, (const uint8_t *)ext + 1, bytes - 1);
}

static void
allowed_ipv6_extensions_are_walked(void **state)
{
	static const uint8_t one[8] = {0, 0, 1, 4}, two[16] = {0, 1, 1, 12}, atomic[8] = {0};
	static const struct {
		unsigned kind;
		const uint8_t *bytes;
		size_t n;
	} cases[] = {{0, one, 8}, {0, two, 16}, {43, one, 8}, {60, two, 16}, {44, atomic, 8}};
	struct frame f;
	struct bs_packet p;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		begin_extension(&f, cases[i].kind, cases[i].bytes, cases[i].n, 6);
		frame_tcp(&f, 40000, 80, BS_TCP_ACK, NULL, 0);
		frame_fill(&f, 'x', 9);
		frame_end_ip(&f);
		assert_int_equal(frame_parse(&f, &p), BS_PARSE_OK);
		assert_int_equal(p.l4, 54 + cases[i].n);
		assert_int_equal(p.l4_protocol, 6);
		assert_int_equal(p.payload_len, 9);
		assert_int_equal(p.tuple.port[0], 40000);
	}
}

static void
ipv6_fragments_are_fragments(void **state)
{
	static const unsigned fields[] = {0x0001, 0x0008, 0xfff8, 0x0009};
	static const uint8_t zero[8];
	struct frame f;
	struct bs_packet p;

	(void)state;
	for (size_t i = 0; i < COUNT(fields); i++) {
		begin_extension(&f, 44, zero, 8, 6);
		frame_set16(&f, f.n - 6, fields[i]);
		frame_tcp(&f, 40000, 80, BS_TCP_ACK, NULL, 0);
		frame_end_ip(&f);
		assert_int_equal(frame_parse(&f, &p), BS_PARSE_FRAGMENT);
		assert_int_equal(p.l4_protocol, 6);
	}
}

static void
too_many_or_misplaced_extensions_are_opaque(void **state)
{
	static const uint8_t one[8] = {0, 0, 1, 4};
	struct frame f;
	struct bs_packet p;

	(void)state;
	for (unsigned count = 8; count <= 9; count++) {
		frame_ether(&f, 0x86dd);
		frame_ipv6(&f, 60, 1, 2);
		for (unsigned i = 1; i <= count; i++) {
			frame_u8(&f, i == count ? 6 : 60);
			frame_put(&f, one + 1, 7);
		}
		frame_tcp(&f, 40000, 80, BS_TCP_ACK, NULL, 0);
		frame_end_ip(&f);
		assert_int_equal(
			frame_parse(&f, &p), count == 8 ? BS_PARSE_OK : BS_PARSE_OPAQUE_EXT);
	}
	begin_extension(&f, 60, one, 8, 0);
	frame_u8(&f, 6);
	frame_put(&f, one + 1, 7);
	frame_tcp(&f, 40000, 80, BS_TCP_ACK, NULL, 0);
	frame_end_ip(&f);
	assert_int_equal(frame_parse(&f, &p), BS_PARSE_OPAQUE_EXT);
}

static void
extensions_past_the_packet_are_bad_ip(void **state)
{
	static const uint8_t long_one[8] = {0, 3, 1, 4}, option_past[8] = {0, 0, 1, 5};
	struct frame f;
	struct bs_packet p;

	(void)state;
	begin_extension(&f, 60, long_one, 8, 6);
	frame_tcp(&f, 40000, 80, BS_TCP_ACK, NULL, 0);
	frame_end_ip(&f); /* 28 bytes, the extension says 32 */
	assert_int_equal(frame_parse(&f, &p), BS_PARSE_BAD_IP);

	begin_extension(&f, 0, option_past, 8, 6);
	frame_tcp(&f, 40000, 80, BS_TCP_ACK, NULL, 0);
	frame_end_ip(&f);
	assert_int_equal(frame_parse(&f, &p), BS_PARSE_BAD_IP);
}

static void
jumbo_payload_option_gives_the_length(void **state)
{
	/* RFC 2675 2: option type 0xC2, length 4, here 65536 + 40. */
	static const uint8_t jumbo[8] = {0, 0, 0xc2, 4, 0, 1, 0, 40};
	struct frame f;
	struct bs_packet p;

	(void)state;
	begin_extension(&f, 0, jumbo, 8, 6);
	frame_tcp(&f, 40000, 80, BS_TCP_ACK, NULL, 0);
	frame_fill(&f, 'x', 16);
	assert_int_equal(frame_parse_cut(&f, f.n, 54 + 65576, &p), BS_PARSE_OK);
	assert_int_equal(p.payload, 82);
	assert_int_equal(p.payload_len, 65576 - 28);
	assert_int_equal(p.payload_cap, 16);
	assert_int_equal(frame_parse_cut(&f, f.n, 54 + 65575, &p), BS_PARSE_CUT);

	frame_end_ip(&f); /* RFC 2675 3: with another length it is an error */
	assert_int_equal(frame_parse_cut(&f, f.n, 54 + 65576, &p), BS_PARSE_BAD_IP);
	begin_extension(&f, 0, jumbo, 8, 6);
	frame_set16(&f, f.n - 4, 0); /* as is one below 65536 */
	frame_tcp(&f, 40000, 80, BS_TCP_ACK, NULL, 0);
	assert_int_equal(frame_parse_cut(&f, f.n, 54 + 65576, &p), BS_PARSE_BAD_IP);

	begin_extension(&f, 0, jumbo, 8, 17); /* RFC 2675 4: UDP length 0 */
	frame_udp(&f, 5353, 53, 0);
	frame_set16(&f, f.l4 + 4, 0);
	assert_int_equal(frame_parse_cut(&f, f.n, 54 + 65576, &p), BS_PARSE_OK);
	assert_int_equal(p.payload_len, 65576 - 16);
}

/* Sums by hand: addresses, protocol and length as 16-bit words, carry folded. */
static void
checksum_of_only_the_pseudo_header_is_partial(void **state)
{
	static const struct {
		unsigned version, protocol;
		uint32_t from, to;
		unsigned sum;
	} cases[] = {
		{4, 6, 0x0a000001, 0x0a000002, 0x141d},
		{4, 6, 0xc0a80001, 0xc0a800c7, 0x8233},
		{4, 17, 0x0a000001, 0x0a000002, 0x1420},
		{6, 6, 1, 2, 0x5b8f},
		{6, 17, 1, 2, 0x5b92},
	};
	struct frame f;
	struct bs_packet p;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		frame_ether(&f, cases[i].version == 4 ? 0x0800 : 0x86dd);
		if (cases[i].version == 4)
			frame_ipv4(&f, cases[i].protocol, cases[i].from, cases[i].to);
		else
			frame_ipv6(&f, cases[i].protocol, cases[i].from, cases[i].to);
		if (cases[i].protocol == 6)
			frame_tcp(&f, 40000, 80, BS_TCP_ACK, NULL, 0);
		else
			frame_udp(&f, 40000, 80, 4);
		frame_fill(&f, 'x', cases[i].protocol == 6 ? 0 : 4);
		frame_end_ip(&f);
		uint32_t field = f.l4 + (cases[i].protocol == 6 ? 16 : 6);

		frame_set16(&f, field, cases[i].sum);
		assert_int_equal(frame_parse(&f, &p), BS_PARSE_OK);
		assert_int_equal(p.l4_checksum_partial, 1);
		frame_set16(&f, field, ~cases[i].sum);
		assert_int_equal(frame_parse(&f, &p), BS_PARSE_OK);
		assert_int_equal(p.l4_checksum_partial, 0);
		frame_set16(&f, field, 0);
		assert_int_equal(frame_parse(&f, &p), BS_PARSE_OK);
		assert_int_equal(p.l4_checksum_partial, 0);
	}
}

static enum bs_parse
parse_ip_at_4(struct bs_packet *packet)
{
	return bs_packet_parse_ip(packet, 4);
}

static enum bs_parse
parse_vlan_at_4(struct bs_packet *packet)
{
	return bs_packet_parse_type(packet, 0x8100, 4);
}

static void
frames_may_start_behind_the_ethertype_or_at_ip(void **state)
{
	struct frame f = {.n = 4};
	struct bs_packet p;

	(void)state;
	frame_ipv4(&f, 6, 0x0a000001, 0x0a000002);
	frame_tcp(&f, 40000, 80, BS_TCP_ACK, NULL, 0);
	frame_end_ip(&f);
	assert_int_equal(frame_parse_with(f.bytes, f.n, f.n, &p, parse_ip_at_4), BS_PARSE_OK);
	assert_int_equal(p.l3, 4);
	assert_int_equal(p.tuple.ip_version, 4);
	f.bytes[4] = 0x55;
	assert_int_equal(frame_parse_with(f.bytes, f.n, f.n, &p, parse_ip_at_4), BS_PARSE_BAD_IP);
	assert_int_equal(frame_parse_with(f.bytes, 3, 3, &p, parse_ip_at_4), BS_PARSE_RUNT);
	assert_int_equal(frame_parse_with(f.bytes, 4, f.n, &p, parse_ip_at_4), BS_PARSE_SNAPPED);

	f.n = 4;
	frame_ipv6(&f, 6, 1, 2);
	frame_tcp(&f, 40000, 80, BS_TCP_ACK, NULL, 0);
	frame_end_ip(&f);
	assert_int_equal(frame_parse_with(f.bytes, f.n, f.n, &p, parse_ip_at_4), BS_PARSE_OK);
	assert_int_equal(p.tuple.ip_version, 6);

	f.n = 4;
	frame_vlan(&f, 77, 0x0800);
	frame_ipv4(&f, 6, 0x0a000001, 0x0a000002);
	frame_tcp(&f, 40000, 80, BS_TCP_ACK, NULL, 0);
	frame_end_ip(&f);
	assert_int_equal(frame_parse_with(f.bytes, f.n, f.n, &p, parse_vlan_at_4), BS_PARSE_OK);
	assert_int_equal(p.tuple.vlan[0], 77);
	assert_int_equal(p.l3, 8);
}

/* What every caller relies on, whatever the bytes are. */
static void
assert_sane(const struct bs_packet *p)
{
	assert_in_range(p->parse, 0, BS_PARSE_COUNT - 1);
	if (p->parse != BS_PARSE_OK) {
		assert_int_equal(p->payload_len, 0);
		assert_int_equal(p->tuple.port[0], 0);
		return;
	}
	assert_true(p->l3 < p->l4 && p->l4 < p->payload && p->payload <= p->caplen);
	assert_true(p->payload_cap <= p->payload_len);
	assert_true(p->payload_cap <= p->caplen - p->payload);
	assert_true(p->payload_len <= p->len - p->payload);
	assert_true(p->sack_count <= BS_TCP_MAX_SACKS);
	if (p->tcp_options & BS_TCPOPT_SHIM)
		assert_true(p->shim >= p->l4 + 20 && p->shim + 20 <= p->payload);
	assert_int_equal(p->hash, bs_tuple_hash(&p->tuple));
}

static unsigned
valid_frames(struct frame frames[6])
{
	static const uint8_t options[40] = {253, 20, 0xb5, 0xc0, [20] = 1, 1, 5, 18};
	static const uint8_t ext[16] = {0, 1, 1, 12}, atomic[8] = {0};

	frame_tcp4(&frames[0], options, 40, 50);
	frame_tcp4(&frames[1], "\1\1\10\12abcdefgh", 12, 50);
	frame_ether(&frames[2], 0x86dd);
	frame_ipv6(&frames[2], 6, 1, 2);
	frame_tcp(&frames[2], 1, 2, BS_TCP_SYN, "\2\4\5\xb4", 4);
	begin_extension(&frames[3], 0, ext, 16, 44);
	frame_u8(&frames[3], 60);
	frame_put(&frames[3], atomic + 1, 7);
	frame_u8(&frames[3], 17);
	frame_put(&frames[3], ext + 1, 15);
	frame_udp(&frames[3], 5353, 53, 10);
	frame_fill(&frames[3], 'x', 10);
	frame_ether(&frames[4], 0x88a8);
	frame_vlan(&frames[4], 1, 0x8100);
	frame_vlan(&frames[4], 2, 0x8100);
	frame_vlan(&frames[4], 3, 0x0800);
	frame_ipv4(&frames[4], 17, 0x0a000001, 0x0a000002);
	frame_udp(&frames[4], 5353, 53, 10);
	frame_fill(&frames[4], 'x', 10);
	frame_tcp4(&frames[5], NULL, 0, 0);
	for (unsigned i = 0; i < 6; i++)
		frame_end_ip(&frames[i]);
	return 6;
}

static void
every_prefix_of_a_packet_is_told_short(void **state)
{
	struct frame frames[6];
	struct bs_packet whole, p;

	(void)state;
	for (unsigned i = 0, count = valid_frames(frames); i < count; i++) {
		const struct frame *f = &frames[i];

		assert_int_equal(frame_parse(f, &whole), BS_PARSE_OK);
		for (uint32_t n = 0; n < f->n; n++) {
			enum bs_parse parse = frame_parse_cut(f, n, n, &p);

			assert_sane(&p);
			assert_true(parse == BS_PARSE_RUNT || parse == BS_PARSE_CUT);
			parse = frame_parse_cut(f, n, f->n, &p);
			assert_sane(&p);
			assert_int_equal(parse, n < whole.payload ? BS_PARSE_SNAPPED : BS_PARSE_OK);
			if (parse == BS_PARSE_OK)
				assert_int_equal(p.payload_len, whole.payload_len);
		}
	}
}

static void
damaged_packets_never_point_outside(void **state)
{
	struct frame frames[6];
	struct bs_packet p;
	uint64_t random = 88172645463325252ull;
	unsigned count = valid_frames(frames);
	unsigned seen = 0;

	(void)state;
	for (unsigned round = 0; round < 60000; round++) {
		struct frame f = frames[round % count];

		for (unsigned change = 0; change < 3; change++) {
			random ^= random << 13; /* Marsaglia's xorshift64 */
			random ^= random >> 7;
			random ^= random << 17;
			f.bytes[12 + (random >> 8) % 70] = (uint8_t)(random >> 32);
		}
		uint32_t caplen = random % 8 == 0 ? f.n - (uint32_t)(random >> 40) % 40 : f.n;

		seen |= 1u << frame_parse_cut(&f, caplen, f.n, &p);
		assert_sane(&p);
	}
	assert_true(seen & 1u << BS_PARSE_BAD_L4 && seen & 1u << BS_PARSE_BAD_IP);
}

static void
every_result_has_a_key(void **state)
{
	(void)state;
	assert_string_equal(bs_parse_key(BS_PARSE_OK), "tcp_udp");
	assert_string_equal(bs_parse_key(BS_PARSE_BAD_L4), "bad_transport");
	assert_string_equal(bs_parse_key(BS_PARSE_COUNT), "?");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tcp_over_ipv4_is_understood),
		cmocka_unit_test(tcp_over_ipv6_is_understood),
		cmocka_unit_test(udp_payload_is_what_the_udp_length_says),
		cmocka_unit_test(impossible_udp_lengths_are_bad_transport),
		cmocka_unit_test(vlan_tags_are_read_up_to_three),
		cmocka_unit_test(frames_of_other_protocols_are_not_ip),
		cmocka_unit_test(other_transports_are_named_and_have_addresses),
		cmocka_unit_test(ipv4_options_move_the_transport_header),
		cmocka_unit_test(impossible_ipv4_headers_are_bad_ip),
		cmocka_unit_test(ipv4_fragments_share_a_hash_and_have_no_ports),
		cmocka_unit_test(tcp_headers_of_impossible_length_are_bad_transport),
		cmocka_unit_test(ethernet_padding_is_not_payload),
		cmocka_unit_test(total_length_zero_takes_the_frame_for_tcp_only),
		cmocka_unit_test(frame_shorter_than_its_packet_is_cut),
		cmocka_unit_test(bytes_not_kept_are_payload_all_the_same),
		cmocka_unit_test(bytes_past_the_frame_do_not_count),
		cmocka_unit_test(frames_without_a_link_header_are_runts),
		cmocka_unit_test(allowed_ipv6_extensions_are_walked),
		cmocka_unit_test(ipv6_fragments_are_fragments),
		cmocka_unit_test(too_many_or_misplaced_extensions_are_opaque),
		cmocka_unit_test(extensions_past_the_packet_are_bad_ip),
		cmocka_unit_test(jumbo_payload_option_gives_the_length),
		cmocka_unit_test(checksum_of_only_the_pseudo_header_is_partial),
		cmocka_unit_test(frames_may_start_behind_the_ethertype_or_at_ip),
		cmocka_unit_test(every_prefix_of_a_packet_is_told_short),
		cmocka_unit_test(damaged_packets_never_point_outside),
		cmocka_unit_test(every_result_has_a_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
