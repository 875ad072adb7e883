/* SPDX-License-Identifier: BSD-3-Clause */
/* Fragments of datagrams that are cut by hand, and what each must be found to be. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "bs_fragments.h"
#include "frame.h"
#include "frame_fragment.h"

#define T0 1000000000ull

/* Parses a fragment and resolves it, in a buffer of just its size. */
static bool
resolve(struct bs_fragments *table, const struct frame *frame, uint64_t t, struct bs_packet *packet)
{
	uint8_t *copy = malloc(frame->n);
	bool known;

	assert_non_null(copy);
	memcpy(copy, frame->bytes, frame->n);
	memset(packet, 0xa5, sizeof(*packet));
	packet->data = copy;
	packet->caplen = packet->len = frame->n;
	packet->t_ns = t;
	assert_int_equal(bs_packet_parse(packet), BS_PARSE_FRAGMENT);
	known = bs_fragments_resolve(table, packet);
	assert_int_equal(packet->parse, BS_PARSE_FRAGMENT);
	assert_int_equal(packet->len, frame->n);
	free(copy);
	return known;
}

static void
udp_datagram(struct frame *frame, unsigned version, unsigned bytes)
{
	frame_ether(frame, version == 4 ? 0x0800 : 0x86dd);
	if (version == 4)
		frame_ipv4(frame, 17, 0x0a000001, 0x0a000002);
	else
		frame_ipv6(frame, 17, 1, 2);
	frame_udp(frame, 40000, 2049, bytes);
	frame_fill(frame, 'u', bytes);
	frame_end_ip(frame);
}

static void
fragments_of_udp_have_the_ports_and_the_first_the_length(void **state)
{
	struct bs_fragments *table = bs_fragments_create(16);

	(void)state;
	for (unsigned version = 4; version <= 6; version += 2) {
		const unsigned header = version == 4 ? 0 : 8;
		struct frame whole, part;
		struct bs_packet packet, unfragmented;

		udp_datagram(&whole, version, 3000);
		frame_parse(&whole, &unfragmented);
		frame_fragment(&part, &whole, 77, 0, 1400, true);
		assert_true(resolve(table, &part, T0, &packet));
		assert_memory_equal(&packet.tuple, &unfragmented.tuple, sizeof(packet.tuple));
		assert_int_equal(packet.hash, unfragmented.hash);
		assert_int_equal(packet.direction, unfragmented.direction);
		assert_int_equal(packet.payload, whole.l4 + header + 8);
		assert_int_equal(packet.payload_len, 3000);
		assert_int_equal(packet.payload_cap, 1392);
		frame_fragment(&part, &whole, 77, 1400, 1400, true);
		assert_true(resolve(table, &part, T0 + 1, &packet));
		assert_memory_equal(&packet.tuple, &unfragmented.tuple, sizeof(packet.tuple));
		assert_int_equal(packet.hash, unfragmented.hash);
		assert_int_equal(packet.payload_len, 0);
		frame_fragment(&part, &whole, 77, 2800, 208, false);
		assert_true(resolve(table, &part, T0 + 2, &packet));
		assert_int_equal(packet.payload_len, 0);
	}
	bs_fragments_destroy(table);
}

static void
fragments_of_tcp_are_pieces_of_its_stream(void **state)
{
	static const uint8_t options[12] = {1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2};
	struct bs_fragments *table = bs_fragments_create(16);

	(void)state;
	for (unsigned version = 4; version <= 6; version += 2) {
		struct bs_packet packet, whole_packet;
		struct frame whole, part;
		uint32_t next;

		frame_ether(&whole, 0x8100);
		frame_vlan(&whole, 5, version == 4 ? 0x0800 : 0x86dd);
		if (version == 4)
			frame_ipv4(&whole, 6, 0x0a000001, 0x0a000002);
		else
			frame_ipv6(&whole, 6, 1, 2);
		frame_tcp(&whole, 40000, 80, BS_TCP_ACK | BS_TCP_FIN, options, sizeof(options));
		frame_fill(&whole, 't', 1000);
		frame_end_ip(&whole);
		frame_parse(&whole, &whole_packet);
		next = whole_packet.seq;
		for (unsigned offset = 0; offset < 1032; offset += 400) {
			const bool more = offset + 400 < 1032;
			const unsigned bytes = more ? 400 : 1032 - offset;

			frame_fragment(&part, &whole, 78, offset, bytes, more);
			assert_true(resolve(table, &part, T0, &packet));
			assert_memory_equal(
				&packet.tuple, &whole_packet.tuple, sizeof(packet.tuple));
			assert_int_equal(packet.hash, whole_packet.hash);
			assert_int_equal(packet.seq, next);
			assert_int_equal(packet.payload_len, offset == 0 ? 368 : bytes);
			assert_int_equal(packet.payload_cap, packet.payload_len);
			assert_int_equal(packet.payload + packet.payload_len, part.n);
			assert_int_equal(packet.ack, 0x05060708);
			assert_int_equal(
				packet.tcp_flags, more ? BS_TCP_ACK : BS_TCP_ACK | BS_TCP_FIN);
			next += packet.payload_len;
		}
		assert_int_equal(next, whole_packet.seq + 1000);
	}
	bs_fragments_destroy(table);
}

/* What is behind the link header of a frame, in a Geneve tunnel with a VNI of 0x123456. */
static enum bs_parse
parse_in_tunnel(const struct frame *inner, struct frame *f, struct bs_packet *packet)
{
	frame_ether(f, 0x0800);
	frame_ipv4(f, 17, 0xc0000201, 0xc0000202);
	frame_udp(f, 55555, 6081, 8 + inner->n - inner->l3);
	frame_u32(f, 0x0800);
	frame_u32(f, 0x12345600);
	frame_put(f, inner->bytes + inner->l3, inner->n - inner->l3);
	frame_end_ip(f);
	memset(packet, 0xa5, sizeof(*packet));
	packet->data = f->bytes;
	packet->caplen = packet->len = f->n;
	packet->t_ns = T0;
	return bs_packet_parse_geneve(packet);
}

static void
fragments_in_a_tunnel_are_of_the_flow_in_it(void **state)
{
	struct bs_fragments *table = bs_fragments_create(16);
	struct bs_packet packet, unfragmented;
	struct frame whole, part, outer;

	(void)state;
	udp_datagram(&whole, 4, 3000);
	assert_int_equal(parse_in_tunnel(&whole, &outer, &unfragmented), BS_PARSE_OK);
	assert_int_equal(unfragmented.tuple.vni[0], 0x12);
	for (unsigned offset = 0; offset < 2800; offset += 1400) {
		frame_fragment(&part, &whole, 77, offset, 1400, true);
		assert_int_equal(parse_in_tunnel(&part, &outer, &packet), BS_PARSE_FRAGMENT);
		assert_true(bs_fragments_resolve(table, &packet));
		assert_memory_equal(&packet.tuple, &unfragmented.tuple, sizeof(packet.tuple));
		assert_int_equal(packet.hash, unfragmented.hash);
	}
	bs_fragments_destroy(table);
}

static void
what_comes_before_its_first_fragment_or_too_late_is_nobodys(void **state)
{
	struct bs_fragments *table = bs_fragments_create(16);
	struct frame whole, part;
	struct bs_packet packet;

	(void)state;
	udp_datagram(&whole, 4, 3000);
	frame_fragment(&part, &whole, 77, 1400, 1400, true);
	assert_false(resolve(table, &part, T0, &packet));
	assert_int_equal(packet.tuple.port[0], 0);
	frame_fragment(&part, &whole, 77, 0, 1400, true);
	assert_true(resolve(table, &part, T0, &packet));
	/* another identification, protocol, end, direction or VLAN */
	frame_fragment(&part, &whole, 78, 1400, 1400, true);
	assert_false(resolve(table, &part, T0, &packet));
	frame_fragment(&part, &whole, 77, 1400, 1400, true);
	part.bytes[part.l3 + 9] = 6;
	assert_false(resolve(table, &part, T0, &packet));
	frame_fragment(&part, &whole, 77, 1400, 1400, true);
	part.bytes[part.l3 + 19] ^= 8;
	assert_false(resolve(table, &part, T0, &packet));
	frame_fragment(&part, &whole, 77, 1400, 1400, true);
	memcpy(part.bytes + part.l3 + 12, "\x0a\0\0\x02\x0a\0\0\x01", 8);
	assert_false(resolve(table, &part, T0, &packet));
	frame_fragment(&part, &whole, 77, 1400, 1400, true);
	memmove(part.bytes + 16, part.bytes + 12, part.n - 12);
	frame_set16(&part, 12, 0x8100);
	frame_set16(&part, 14, 5);
	part.n += 4;
	assert_false(resolve(table, &part, T0, &packet));
	/* a fragment keeps it alive; then it is too old */
	frame_fragment(&part, &whole, 77, 1400, 1400, true);
	assert_true(resolve(table, &part, T0 + BS_FRAGMENTS_NS - 1, &packet));
	assert_true(resolve(table, &part, T0 + 2 * BS_FRAGMENTS_NS - 2, &packet));
	assert_false(resolve(table, &part, T0 + 3 * BS_FRAGMENTS_NS, &packet));
	bs_fragments_destroy(table);
}

static void
bytes_behind_the_first_fragment_are_never_taken_for_ports(void **state)
{
	struct bs_fragments *table = bs_fragments_create(16);
	struct frame whole, part;
	struct bs_packet packet;

	(void)state;
	udp_datagram(&whole, 4, 3000);
	/* the second piece begins with what would be a header to port 53 */
	frame_set16(&whole, whole.l4 + 1400, 1);
	frame_set16(&whole, whole.l4 + 1402, 53);
	frame_fragment(&part, &whole, 77, 1400, 1400, true);
	assert_false(resolve(table, &part, T0, &packet));
	frame_fragment(&part, &whole, 77, 0, 1400, true);
	assert_true(resolve(table, &part, T0, &packet));
	frame_fragment(&part, &whole, 77, 1400, 1400, true);
	assert_true(resolve(table, &part, T0, &packet));
	assert_int_equal(packet.tuple.port[0], 40000);
	assert_int_equal(packet.tuple.port[1], 2049);
	bs_fragments_destroy(table);
}

static void
first_fragments_without_a_whole_header_are_nobodys(void **state)
{
	struct bs_fragments *table = bs_fragments_create(16);
	struct frame whole, part;
	struct bs_packet packet;

	(void)state;
	frame_tcp4(&whole, NULL, 0, 1000);
	frame_fragment(&part, &whole, 1, 0, 16, true);
	assert_false(resolve(table, &part, T0, &packet));
	/* a UDP length shorter than what is there, or longer than IP can carry */
	udp_datagram(&whole, 4, 3000);
	frame_set16(&whole, whole.l4 + 4, 1399);
	frame_fragment(&part, &whole, 2, 0, 1400, true);
	assert_false(resolve(table, &part, T0, &packet));
	frame_set16(&whole, whole.l4 + 4, 65535);
	frame_fragment(&part, &whole, 3, 0, 1400, true);
	assert_false(resolve(table, &part, T0, &packet));
	/* ICMP has no ports */
	udp_datagram(&whole, 4, 3000);
	whole.bytes[whole.l3 + 9] = 1;
	frame_fragment(&part, &whole, 4, 0, 1400, true);
	assert_false(resolve(table, &part, T0, &packet));
	/* in the middle of the TCP header */
	frame_tcp4(&whole, NULL, 0, 1000);
	frame_fragment(&part, &whole, 5, 0, 400, true);
	assert_true(resolve(table, &part, T0, &packet));
	frame_fragment(&part, &whole, 5, 8, 400, true);
	assert_false(resolve(table, &part, T0, &packet));
	bs_fragments_destroy(table);
}

static void
the_newest_datagrams_stay_when_the_table_is_full(void **state)
{
	struct bs_fragments *table = bs_fragments_create(256);
	struct frame whole, part;
	struct bs_packet packet;
	unsigned known = 0;

	(void)state;
	udp_datagram(&whole, 4, 3000);
	for (unsigned id = 0; id < 10000; id++) {
		frame_fragment(&part, &whole, id, 0, 1400, true);
		assert_true(resolve(table, &part, T0 + id, &packet));
		frame_fragment(&part, &whole, id, 1400, 1400, true);
		assert_true(resolve(table, &part, T0 + id, &packet));
	}
	for (unsigned id = 0; id < 10000; id++) {
		frame_fragment(&part, &whole, id, 1400, 1400, true);
		known += resolve(table, &part, T0 + 10000, &packet);
		assert_true(id > 8000 || known == 0);
	}
	assert_int_equal(known, 256);
	bs_fragments_destroy(table);
}

static void
any_bytes_of_any_length_are_survived(void **state)
{
	struct bs_fragments *table = bs_fragments_create(4);
	struct frame whole, part;
	struct bs_packet packet;
	uint64_t random = 1;

	(void)state;
	for (unsigned round = 0; round < 20000; round++) {
		uint8_t *copy;
		uint32_t cap;

		udp_datagram(&whole, round % 2 == 0 ? 4 : 6, 600);
		if (round % 3 == 0)
			whole.bytes[whole.l3 + (round % 2 == 0 ? 9 : 6)] = 6;
		random = random * 6364136223846793005ull + 1442695040888963407ull;
		frame_fragment(&part, &whole, random >> 62, (random >> 40 & 3) * 200, 200, true);
		part.bytes[part.l3 + (random >> 33) % 48] ^= (uint8_t)(random >> 20);
		cap = (uint32_t)(random >> 50) % (part.n + 1);
		if (round % 4 == 0)
			cap = part.n;
		copy = malloc(cap + 1);
		memcpy(copy + 1, part.bytes, cap);
		packet = (struct bs_packet){
			.data = copy + 1, .caplen = cap, .len = part.n, .t_ns = T0 + round};
		if (bs_packet_parse(&packet) == BS_PARSE_FRAGMENT &&
			bs_fragments_resolve(table, &packet)) {
			assert_true(packet.payload_cap == 0 ||
				    packet.payload + packet.payload_cap <= cap);
			assert_true(packet.payload_cap <= packet.payload_len);
		}
		free(copy);
	}
	bs_fragments_destroy(table);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fragments_of_udp_have_the_ports_and_the_first_the_length),
		cmocka_unit_test(fragments_of_tcp_are_pieces_of_its_stream),
		cmocka_unit_test(fragments_in_a_tunnel_are_of_the_flow_in_it),
		cmocka_unit_test(what_comes_before_its_first_fragment_or_too_late_is_nobodys),
		cmocka_unit_test(bytes_behind_the_first_fragment_are_never_taken_for_ports),
		cmocka_unit_test(first_fragments_without_a_whole_header_are_nobodys),
		cmocka_unit_test(the_newest_datagrams_stay_when_the_table_is_full),
		cmocka_unit_test(any_bytes_of_any_length_are_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
