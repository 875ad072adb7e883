/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the parser finds shims, and what it looks through to find the packet:
 * frames written byte by byte, of which offsets follow by counting.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "bs_packet.h"
#include "frame.h"

#define SHIM "\x10\0\0\0\0\1\0\0\0\0\0\x42\0\0\0\x0a"
#define UDP_OPTION "\x7f\x14\xb5\xc0" SHIM
#define GENEVE_OPTION "\xff\xb5\x01\x04" SHIM

/* --- ether ------------------------------------------------------------------------ */

/* MACs, shim, then what is given: Ethertype and so on. */
static void
ether_shim(struct frame *f, unsigned type)
{
	frame_ether(f, 0x88b5);
	frame_put(f, SHIM, 16);
	frame_u16(f, type);
}

static void
ether_shim_is_passed_over(void **state)
{
	struct bs_packet p, bare;
	struct frame f;

	(void)state;
	frame_tcp4(&f, NULL, 0, 5);
	assert_int_equal(frame_parse(&f, &bare), BS_PARSE_OK);
	ether_shim(&f, 0x0800);
	frame_ipv4(&f, 6, 0x0a000001, 0x0a000002);
	frame_tcp(&f, 40000, 80, BS_TCP_ACK, NULL, 0);
	frame_fill(&f, 'x', 5);
	frame_end_ip(&f);
	assert_int_equal(frame_parse(&f, &p), BS_PARSE_OK);
	assert_int_equal(p.ether_shim, 14);
	assert_int_equal(p.l3, 32);
	assert_int_equal(p.l4, 52);
	assert_int_equal(p.payload, 72);
	assert_int_equal(p.payload_len, 5);
	assert_memory_equal(&p.tuple, &bare.tuple, sizeof(p.tuple));
	assert_int_equal(p.hash, bare.hash);
	assert_int_equal(p.shim | p.geneve | p.geneve_shim, 0);
}

static void
ether_shim_stands_before_vlan_tags(void **state)
{
	struct bs_packet p;
	struct frame f;

	(void)state;
	ether_shim(&f, 0x8100);
	frame_vlan(&f, 100, 0x86dd);
	frame_ipv6(&f, 17, 1, 2);
	frame_udp(&f, 1000, 2000, 3);
	frame_fill(&f, 'x', 3);
	frame_end_ip(&f);
	assert_int_equal(frame_parse(&f, &p), BS_PARSE_OK);
	assert_int_equal(p.ether_shim, 14);
	assert_int_equal(p.l3, 36);
	assert_int_equal(p.vlan_count, 1);
	assert_int_equal(p.tuple.vlan[0], 100);
}

static void
what_is_no_ether_shim_of_ours_is_not_ip(void **state)
{
	struct bs_packet p;
	struct frame f;

	(void)state;
	ether_shim(&f, 0x0800);
	f.bytes[14] = 0x20; /* version 2 */
	frame_ipv4(&f, 6, 1, 2);
	frame_tcp(&f, 1, 2, 0, NULL, 0);
	frame_end_ip(&f);
	assert_int_equal(frame_parse(&f, &p), BS_PARSE_NOT_IP);
	assert_int_equal(p.ether_shim, 0);
	ether_shim(&f, 0x88b5); /* twice */
	frame_put(&f, SHIM, 16);
	frame_u16(&f, 0x0800);
	assert_int_equal(frame_parse(&f, &p), BS_PARSE_NOT_IP);
	ether_shim(&f, 0x0800);
	f.n = 14 + 17; /* a byte short of its Ethertype */
	assert_int_equal(frame_parse(&f, &p), BS_PARSE_NOT_IP);
	assert_int_equal(p.ether_shim, 0);
}

/* --- udp-option --------------------------------------------------------------------- */

static void
udp_with(struct frame *f, unsigned payload, const void *surplus, size_t n)
{
	frame_ether(f, 0x0800);
	frame_ipv4(f, 17, 0x0a000001, 0x0a000002);
	frame_udp(f, 1000, 53, payload);
	frame_fill(f, 'x', payload);
	frame_put(f, surplus, n);
	frame_end_ip(f);
}

static void
udp_option_is_found_behind_the_payload(void **state)
{
	struct bs_packet p;
	struct frame f;

	(void)state;
	udp_with(&f, 10, "\x12\x34" UDP_OPTION, 22);
	frame_fill(&f, 0, 4); /* Ethernet padding */
	assert_int_equal(frame_parse(&f, &p), BS_PARSE_OK);
	assert_int_equal(p.shim, 42 + 10 + 2);
	assert_int_equal(p.payload_len, 10);
	/* behind an odd payload at the next even offset */
	udp_with(&f, 11, "\0\x12\x34" UDP_OPTION, 23);
	assert_int_equal(frame_parse(&f, &p), BS_PARSE_OK);
	assert_int_equal(p.shim, 42 + 11 + 3);
	/* without its last byte there is none, in the frame or in the capture */
	assert_int_equal(frame_parse_cut(&f, f.n - 1, f.n, &p), BS_PARSE_OK);
	assert_int_equal(p.shim, 0);
	udp_with(&f, 10, "\x12\x34" UDP_OPTION, 21);
	assert_int_equal(frame_parse(&f, &p), BS_PARSE_OK);
	assert_int_equal(p.shim, 0);
}

static void
other_udp_options_are_none_of_ours(void **state)
{
	static const struct {
		unsigned payload;
		const char *surplus;
		size_t n;
	} cases[] = {
		{10, "\x12\x34\x01" UDP_OPTION, 23},	   /* NOP before it */
		{10, "\x12\x34" UDP_OPTION "\0", 23},	   /* end behind it */
		{11, "\x12\x34" UDP_OPTION, 22},	   /* not aligned */
		{10, "\x12\x34\x7f\x14\xb5\xc1" SHIM, 22}, /* another ExID */
		{10, "\x12\x34\xfe\x14\xb5\xc0" SHIM, 22}, /* UEXP */
		{10, "\x12\x34\x03\x14\xb5\xc0" SHIM, 22}, /* FRAG */
		{10, "\x12", 1},
	};
	struct bs_packet p;
	struct frame f;

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		udp_with(&f, cases[i].payload, cases[i].surplus, cases[i].n);
		assert_int_equal(frame_parse(&f, &p), BS_PARSE_OK);
		assert_int_equal(p.shim, 0);
		assert_int_equal(p.payload_len, cases[i].payload);
	}
}

/* --- geneve ------------------------------------------------------------------------- */

/* Outer headers to port 6081 and the Geneve header with these options. */
static void
geneve(struct frame *f, unsigned protocol, const void *options, size_t n)
{
	frame_ether(f, 0x8100);
	frame_vlan(f, 7, 0x0800);
	frame_ipv4(f, 17, 0xc0000201, 0xc0000202);
	frame_udp(f, 55555, 6081, 0);
	frame_u8(f, (unsigned)n / 4);
	frame_u8(f, 0);
	frame_u16(f, protocol);
	frame_u32(f, 0x12345600);
	frame_put(f, options, n);
}

/* IPv4 and TCP in the tunnel, and the lengths of all. */
static void
geneve_end(struct frame *f)
{
	const uint32_t udp = 18 + 20;

	frame_ipv4(f, 6, 0x0a000001, 0x0a000002);
	frame_tcp(f, 40000, 80, BS_TCP_ACK, NULL, 0);
	frame_fill(f, 'x', 9);
	frame_end_ip(f);
	frame_set16(f, udp + 4, f->n - udp);
	frame_set16(f, 18 + 2, f->n - 18);
}

static enum bs_parse
parse_through(const struct frame *f, struct bs_packet *p)
{
	return frame_parse_with(f->bytes, f->n, f->n, p, bs_packet_parse_geneve);
}

static void
inner_packet_is_the_packet(void **state)
{
	struct bs_packet p, bare;
	struct frame f;

	(void)state;
	frame_tcp4(&f, NULL, 0, 9);
	frame_parse(&f, &bare);
	geneve(&f, 0x6558,
		"\x01\x03\x01\x01"
		"abcd" GENEVE_OPTION,
		28);
	frame_put(&f, "\2\0\0\0\0\5\2\0\0\0\0\6\x08\x00", 14);
	geneve_end(&f);
	frame_fill(&f, 0, 6); /* behind the outer packet */
	assert_int_equal(parse_through(&f, &p), BS_PARSE_OK);
	assert_int_equal(p.outer_l3, 18);
	assert_int_equal(p.geneve, 46);
	assert_int_equal(p.geneve_shim, 46 + 8 + 8);
	assert_int_equal(p.l3, 46 + 8 + 28 + 14);
	assert_int_equal(p.l4, p.l3 + 20);
	assert_int_equal(p.payload_len, 9);
	assert_int_equal(p.len, f.n);
	assert_memory_equal(p.tuple.addr, bare.tuple.addr, sizeof(p.tuple.addr));
	assert_memory_equal(p.tuple.vni, "\x12\x34\x56", 3);
	assert_int_equal(p.tuple.vlan[0], 0); /* the outer one is the underlay's */
	assert_int_equal(p.hash, bs_tuple_hash(&p.tuple));
	assert_int_not_equal(p.hash, bare.hash); /* it is of another network */
	/* an IP packet may be in it as it is */
	geneve(&f, 0x0800, NULL, 0);
	geneve_end(&f);
	assert_int_equal(parse_through(&f, &p), BS_PARSE_OK);
	assert_int_equal(p.l3, 54);
	assert_int_equal(p.geneve_shim, 0);
	/* only if asked for */
	assert_int_equal(frame_parse(&f, &p), BS_PARSE_OK);
	assert_int_equal(p.l4_protocol, 17);
	assert_int_equal(p.geneve, 0);
}

static void
what_is_no_tunnel_of_data_stays_a_datagram(void **state)
{
	struct bs_packet p;
	struct frame f;

	(void)state;
	for (unsigned i = 0; i < 7; i++) {
		/* options whose last one runs past them, at i 5 */
		geneve(&f, i == 4 ? 0x88b5 : 0x0800,
			"\x01\x03\x01\x02"
			"abcd"
			"efgh",
			12);
		geneve_end(&f);
		switch (i) {
		case 0:
			f.bytes[46] |= 0x40; /* version 1 */
			break;
		case 1:
			f.bytes[47] |= 0x80; /* control */
			break;
		case 2:
			frame_set16(&f, 38, 6081); /* from the port, not to it */
			frame_set16(&f, 40, 6080);
			break;
		case 3:
			f.bytes[46] = 0x3f; /* more options than bytes */
			break;
		case 5:
			f.bytes[46 + 8 + 3] = 0x1f;
			break;
		case 6:
			frame_set16(&f, 38 + 4, 8 + 7); /* shorter than its header */
			break;
		default:
			break;
		}
		assert_int_equal(parse_through(&f, &p), BS_PARSE_OK);
		assert_int_equal(p.geneve, 0);
		assert_int_equal(p.l4, 38);
		assert_int_equal(p.l4_protocol, 17);
	}
}

static void
inner_packet_that_is_not_understood_is_said_so(void **state)
{
	struct bs_packet p;
	struct frame f;

	(void)state;
	geneve(&f, 0x6558, NULL, 0);
	frame_put(&f, "\2\0\0\0\0\5\2\0\0\0\0\6\x08\x06", 14); /* ARP */
	geneve_end(&f);
	assert_int_equal(parse_through(&f, &p), BS_PARSE_NOT_IP);
	/* longer than the datagram that it is in, although the frame would hold it */
	geneve(&f, 0x0800, NULL, 0);
	geneve_end(&f);
	frame_set16(&f, 54 + 2, 20 + 20 + 9 + 1);
	frame_fill(&f, 0, 10);
	assert_int_equal(parse_through(&f, &p), BS_PARSE_CUT);
}

/* Every cut of a frame with all of it, as bytes and as frame; the sanitizer watches. */
static void
cut_frames_are_read_no_further_than_they_go(void **state)
{
	struct bs_packet p;
	struct frame f, inner;

	(void)state;
	udp_with(&inner, 11, "\0\x12\x34" UDP_OPTION, 23);
	ether_shim(&f, 0x0800);
	frame_ipv4(&f, 17, 0xc0000201, 0xc0000202);
	frame_udp(&f, 55555, 6081, 8 + 20 + inner.n);
	frame_u32(&f, 0x05006558);
	frame_u32(&f, 0x12345600);
	frame_put(&f, GENEVE_OPTION, 20);
	frame_put(&f, inner.bytes, inner.n);
	frame_end_ip(&f);
	assert_int_equal(parse_through(&f, &p), BS_PARSE_OK);
	assert_true(p.ether_shim != 0 && p.geneve_shim != 0 && p.shim != 0);
	for (uint32_t cut = 0; cut < f.n; cut++) {
		frame_parse_with(f.bytes, cut, f.n, &p, bs_packet_parse_geneve);
		assert_true(p.shim == 0);
		frame_parse_with(f.bytes, cut, cut, &p, bs_packet_parse_geneve);
		assert_true(p.parse != BS_PARSE_OK || p.geneve == 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ether_shim_is_passed_over),
		cmocka_unit_test(ether_shim_stands_before_vlan_tags),
		cmocka_unit_test(what_is_no_ether_shim_of_ours_is_not_ip),
		cmocka_unit_test(udp_option_is_found_behind_the_payload),
		cmocka_unit_test(other_udp_options_are_none_of_ours),
		cmocka_unit_test(inner_packet_is_the_packet),
		cmocka_unit_test(what_is_no_tunnel_of_data_stays_a_datagram),
		cmocka_unit_test(inner_packet_that_is_not_understood_is_said_so),
		cmocka_unit_test(cut_frames_are_read_no_further_than_they_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
