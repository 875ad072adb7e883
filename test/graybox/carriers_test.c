/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shims by every carrier through the dataplane: what one instance puts on, the
 * next one reads and takes off; when datagrams are tagged; what is left alone.
 * Of tcp-option more: shim_test.c, handshake_test.c.
 */
#include "gb_shim.h"

#include "bs_carrier.h"

#define DNS                                                                                        \
	"{\"name\": \"dns\", \"address\": \"10.0.0.2\", \"port\": 53, \"protocol\": \"dns\","      \
	" \"class\": {\"in\": 1, \"out\": 5}}"
#define KV                                                                                         \
	"{\"name\": \"kv\", \"address\": \"10.0.0.2\", \"port\": 6379, \"protocol\": \"unit\","    \
	" \"class\": {\"in\": 1, \"out\": 5}}"
#define TRUSTED ", \"trust_shim\": true"

static const uint8_t question[] = "\1x\0\0\1\0\1"; /* x, A, IN */
#define QUESTION_BYTES (sizeof(question) - 1)

/* A question or answer of `more` bytes behind the question, from one end to the other. */
static void
dns(struct frame *frame, uint16_t client_port, unsigned from, uint16_t id, size_t more)
{
	const unsigned bytes = 12 + QUESTION_BYTES + (unsigned)more;
	const uint32_t address[] = {0x0a000001, 0x0a000002};

	frame_ether(frame, 0x0800);
	frame_ipv4(frame, 17, address[from], address[!from]);
	frame_udp(frame, from == GB_CLIENT ? client_port : 53, from == GB_CLIENT ? 53 : client_port,
		bytes);
	frame_u16(frame, id);
	frame_u16(frame, from == GB_CLIENT ? 0x0100 : 0x8180);
	frame_u16(frame, 1);
	frame_u16(frame, 0);
	frame_u32(frame, 0);
	frame_put(frame, question, QUESTION_BYTES);
	frame_fill(frame, 0, more);
	frame_end_ip(frame);
	gb_checksums(frame);
}

/* The frame in a Geneve tunnel between 192.0.2.1 and 192.0.2.2, `options` bytes of options. */
static void
tunnel(struct frame *frame, unsigned from, unsigned options)
{
	const struct frame inner = *frame;
	const uint32_t address[] = {0xc0000201, 0xc0000202};

	frame_ether(frame, 0x0800);
	frame_ipv4(frame, 17, address[from], address[!from]);
	frame_udp(frame, 50000, 6081, 8 + options + inner.n);
	frame_u8(frame, options / 4);
	frame_u8(frame, 0);
	frame_u16(frame, 0x6558);
	frame_u32(frame, 0x00001200);
	for (unsigned i = 0; i < options; i += 4)
		frame_u32(frame, 0x01030100);
	frame_put(frame, inner.bytes, inner.n);
	frame_end_ip(frame);
	gb_checksums(frame);
}

static struct bs_packet
parse_through(const struct frame *frame)
{
	struct bs_packet packet = {.data = frame->bytes, .caplen = frame->n, .len = frame->n};

	assert_int_equal(bs_packet_parse_geneve(&packet), BS_PARSE_OK);
	packet.l4_checksum_partial = packet.tunnel_checksum_partial = 0;
	return packet;
}

/* The shim that the frame carries so; it is taken off the frame. */
static struct bs_shim
take_off(struct frame *frame, enum bs_carrier carrier)
{
	struct bs_packet packet = parse_through(frame);
	struct bs_shim shim;

	assert_int_equal(bs_carriers[carrier].read(&packet, &shim), 0);
	assert_int_equal(bs_carriers[carrier].untag(&packet, frame->bytes), 0);
	memmove(frame->bytes, packet.data, packet.len);
	frame->n = packet.len;
	return shim;
}

static void
put_on(struct frame *frame, enum bs_carrier carrier, uint64_t id)
{
	const struct bs_shim shim = {.version = 1, .rpc_id = id, .remaining = 1};
	struct bs_packet packet = parse_through(frame);
	const unsigned bytes = bs_carriers[carrier].bytes(&packet);

	memmove(frame->bytes + bytes, frame->bytes, frame->n);
	packet.data += bytes;
	assert_int_equal(bs_carriers[carrier].tag(&packet, frame->bytes, &shim), BS_REFUSE_NONE);
	frame->n += bytes;
}

/* It left with a shim of that carrier, which is returned, and is otherwise as it came. */
static struct bs_shim
assert_tagged_by(const struct frame *in, const struct frame *out, enum bs_carrier carrier)
{
	struct frame bare = *out;
	struct bs_shim shim;

	assert_true(out->n > in->n);
	shim = take_off(&bare, carrier);
	gb_assert_same(in, &bare);
	return shim;
}

static void
assert_left_alone(const struct gb *gb, struct frame *in, enum bs_tag_counter reason)
{
	const uint64_t before = gb_tag(gb, reason), tagged = gb_tag(gb, BS_TAG_TAGGED);
	struct frame out;

	gb_through(gb, GB_LOCAL, in, &out);
	gb_assert_same(in, &out);
	assert_int_equal(gb_tag(gb, reason), before + 1);
	assert_int_equal(gb_tag(gb, BS_TAG_TAGGED), tagged);
}

/* --- from instance to instance ----------------------------------------------------------- */

/* One carrier for one transport. */
struct way {
	enum bs_carrier carrier;
	bool udp;
};

static const struct way ways[] = {
	{BS_CARRIER_TCP_OPTION, false},
	{BS_CARRIER_ETHER, false},
	{BS_CARRIER_GENEVE, false},
	{BS_CARRIER_UDP_OPTION, true},
	{BS_CARRIER_ETHER, true},
	{BS_CARRIER_GENEVE, true},
};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

static struct gb *
open_way(const struct way *way, const char *tag, bool trusted, unsigned lcores)
{
	char shim[128];

	snprintf(shim, sizeof(shim), "\"tag\": \"%s\", \"%s\": \"%s\"", tag,
		way->udp ? "udp" : "tcp", bs_carriers[way->carrier].name);
	return gb_open(&(struct gb_setup){
		.shim = shim,
		.services = DNS ", " KV,
		.wire = trusted ? TRUSTED : NULL,
		.lcores = lcores,
	});
}

/* As gb_through, with a turn more: another lcore may own the flow. */
static void
handed_through(const struct gb *gb, unsigned port, const struct frame *in, struct frame *out)
{
	gb_pass(gb, port, in);
	gb_turn(gb);
	assert_true(gb_take(gb, !port, out));
}

/* A message of an end, as the carrier wants it. */
static void
message(const struct way *way, struct frame *frame, struct gb_flow *flow, unsigned from)
{
	if (way->udp)
		dns(frame, 40000, from, 7, from == GB_CLIENT ? 0 : 30);
	else
		gb_message(frame, flow, from, 7, from == GB_CLIENT ? 100 : 60);
	if (way->carrier == BS_CARRIER_GENEVE)
		tunnel(frame, from, 0);
}

/* The handshake of a flow, in at one side and out at the other. */
static void
shake_hands(const struct gb *gb, const struct way *way, struct gb_flow *flow, unsigned client)
{
	struct frame frame, out;

	if (way->udp)
		return;
	for (unsigned from = GB_CLIENT; from <= GB_SERVER; from++) {
		gb_syn(&frame, flow, from, from == GB_SERVER, false);
		if (way->carrier == BS_CARRIER_GENEVE)
			tunnel(&frame, from, 0);
		handed_through(gb, from ^ client, &frame, &out);
		flow->next[from]++;
	}
}

/*
 * client [one instance] -- [another] service: a request is tagged by the first, read and stripped
 * by the second, which answers with the same ID; the first strips that.
 */
static void
what_one_instance_puts_on_the_next_reads_and_takes_off(void **state)
{
	(void)state;
	for (unsigned i = 0; i < WAYS; i++) {
		const struct way *way = &ways[i];
		const unsigned bytes = bs_carriers[way->carrier].bytes_max - (way->udp && i == 3);
		struct gb_flow flow = gb_flow(40000, 6379), other = flow;
		struct frame request, response, on_wire, answer_on_wire, out;
		struct bs_shim shim;
		struct gb *gb;
		uint64_t id;

		/* at the client: its port is the local one */
		gb = open_way(way, "always", false, 1);
		shake_hands(gb, way, &flow, GB_LOCAL);
		message(way, &request, &flow, GB_CLIENT);
		handed_through(gb, GB_LOCAL, &request, &on_wire);
		shim = assert_tagged_by(&request, &on_wire, way->carrier);
		assert_int_equal(shim.version, 1);
		assert_int_equal(shim.flags, 0);
		assert_int_equal(shim.class_, 5); /* the one toward the wire */
		assert_int_equal(shim.remaining, way->udp ? 19 : 100);
		id = shim.rpc_id;
		assert_int_equal(id >> 48, 1);
		assert_int_equal(gb_tag(gb, BS_TAG_BYTES), way->udp && i == 3 ? 23 : bytes);
		gb_close_tags(gb);

		/* at the service; datagrams are answered in kind */
		gb = open_way(way, way->udp ? "negotiated" : "always", true, 2);
		gb_connect(gb);
		shake_hands(gb, way, &other, GB_WIRE);
		handed_through(gb, GB_WIRE, &on_wire, &out);
		gb_assert_same(&request, &out);
		flow = other;
		if (!way->udp)
			flow.next[GB_CLIENT] += 100;
		message(way, &response, &flow, GB_SERVER);
		handed_through(gb, GB_LOCAL, &response, &answer_on_wire);
		shim = assert_tagged_by(&response, &answer_on_wire, way->carrier);
		assert_int_equal(shim.flags, BS_SHIM_RESPONSE);
		assert_int_equal(shim.class_, 5);
		assert_int_equal(shim.remaining, way->udp ? 49 : 60);
		assert_true(shim.rpc_id == id);
		assert_int_equal(gb_tag(gb, BS_TAG_UNTAGGED), 1);
		assert_int_equal(gb_tag(gb, BS_TAG_UNTRUSTED), 0);
		bs_dataplane_finish(gb->dataplane, gb_time.now_ns);
		gb_collect(gb, 1);
		assert_true(gb_rpc(gb, 0).rpc->id == id);
		assert_true(gb_rpc(gb, 0).rpc->flags & BS_RPC_TAGGED);
		gb_close_tags(gb);

		/* back at the client, whose port does not trust: stripped all the same */
		gb = open_way(way, "always", false, 1);
		handed_through(gb, GB_WIRE, &answer_on_wire, &out);
		gb_assert_same(&response, &out);
		assert_int_equal(gb_tag(gb, BS_TAG_UNTRUSTED), 1);
		gb_close_tags(gb);
	}
}

/* With the shim off, too, and of any carrier; a tunnel is only looked into if shims may be there.
 */
static void
shims_come_off_by_whatever_carrier_they_came(void **state)
{
	static const struct way off = {BS_CARRIER_TCP_OPTION, false};
	struct gb *gb = open_way(&off, "off", false, 1);
	struct frame bare, in, out;

	(void)state;
	for (unsigned carrier = BS_CARRIER_UDP_OPTION; carrier <= BS_CARRIER_ETHER; carrier++) {
		dns(&bare, 40000, GB_CLIENT, 7, carrier & 1);
		in = bare;
		put_on(&in, carrier, 1);
		gb_through(gb, GB_WIRE, &in, &out);
		gb_assert_same(&bare, &out);
	}
	put_on(&in, BS_CARRIER_UDP_OPTION, 2); /* both at once */
	assert_int_equal(gb_tag(gb, BS_TAG_UNTAGGED), 2);
	gb_through(gb, GB_WIRE, &in, &out);
	gb_assert_same(&bare, &out);
	assert_int_equal(gb_tag(gb, BS_TAG_UNTAGGED), 4);
	tunnel(&bare, GB_CLIENT, 0);
	put_on(&bare, BS_CARRIER_GENEVE, 3);
	gb_through(gb, GB_WIRE, &bare, &out);
	gb_assert_same(&bare, &out);
	assert_int_equal(gb_tag(gb, BS_TAG_UNTAGGED), 4);
	gb_close_tags(gb);
}

/* Announcement and MSS are the inner packet's; the tunnel around them stays right. */
static void
a_handshake_in_a_tunnel_is_negotiated(void **state)
{
	struct gb *gb = open_way(&ways[2], "negotiated", false, 1);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame in, out;
	struct bs_packet packet;

	(void)state;
	gb_syn(&in, &flow, GB_CLIENT, false, true);
	tunnel(&in, GB_CLIENT, 0);
	gb_through(gb, GB_WIRE, &in, &out);
	packet = parse_through(&out);
	assert_int_equal(packet.tcp_options & BS_TCPOPT_ANNOUNCE, 0);
	assert_int_equal(packet.mss, 1440);
	assert_int_equal(out.n, in.n - 4);
	assert_true(gb_checksums_ok(&out)); /* the outer ones */
	flow.next[GB_CLIENT]++;
	gb_syn(&in, &flow, GB_SERVER, true, false);
	tunnel(&in, GB_SERVER, 0);
	gb_through(gb, GB_LOCAL, &in, &out);
	packet = parse_through(&out);
	assert_true(packet.tcp_options & BS_TCPOPT_ANNOUNCE);
	assert_true(gb_checksums_ok(&out));
	flow.next[GB_SERVER]++;
	message(&ways[2], &in, &flow, GB_CLIENT);
	gb_through(gb, GB_WIRE, &in, &out);
	gb_assert_same(&in, &out);
	message(&ways[2], &in, &flow, GB_SERVER);
	gb_through(gb, GB_LOCAL, &in, &out);
	assert_tagged_by(&in, &out, BS_CARRIER_GENEVE);
	gb_close_tags(gb);
}

/* The same addresses and ports in two tunnels are two flows. */
static void
tunnels_with_different_vnis_are_told_apart(void **state)
{
	struct gb *gb = open_way(&ways[5], "always", false, 1);
	struct frame in, out;
	uint64_t ids[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		dns(&in, 40000, GB_CLIENT, 7, 0);
		tunnel(&in, GB_CLIENT, 0);
		in.bytes[14 + 20 + 8 + 4] = (uint8_t)i;
		gb_checksums(&in);
		gb_through(gb, GB_LOCAL, &in, &out);
		ids[i] = assert_tagged_by(&in, &out, BS_CARRIER_GENEVE).rpc_id;
	}
	assert_true(ids[0] != ids[1]);
	gb_close_tags(gb);
}

/* --- when datagrams are tagged -------------------------------------------------------------- */

static const struct way by_option = {BS_CARRIER_UDP_OPTION, true};

static void
ask(const struct gb *gb, uint16_t client_port, uint16_t id)
{
	struct frame in, out;

	dns(&in, client_port, GB_CLIENT, id, 0);
	gb_through(gb, GB_WIRE, &in, &out);
	gb_assert_same(&in, &out);
}

static void
negotiated_datagrams_wait_for_a_shim_of_the_other_end(void **state)
{
	(void)state;
	for (unsigned trusted = 0; trusted < 2; trusted++) {
		struct gb *gb = open_way(&by_option, "negotiated", trusted, 1);
		struct frame bare, in, out;

		ask(gb, 40000, 1);
		dns(&in, 40000, GB_SERVER, 1, 30);
		assert_left_alone(gb, &in, BS_TAG_NOT_NEGOTIATED);
		dns(&bare, 40000, GB_CLIENT, 2, 0);
		in = bare;
		put_on(&in, BS_CARRIER_UDP_OPTION, 99);
		gb_through(gb, GB_WIRE, &in, &out);
		gb_assert_same(&bare, &out);
		dns(&in, 40000, GB_SERVER, 2, 30);
		if (!trusted) {
			assert_left_alone(gb, &in, BS_TAG_NOT_NEGOTIATED);
		} else {
			gb_through(gb, GB_LOCAL, &in, &out);
			assert_true(assert_tagged_by(&in, &out, by_option.carrier).rpc_id == 99);
		}
		/* another flow knows nothing of that */
		ask(gb, 40001, 3);
		dns(&in, 40001, GB_SERVER, 3, 30);
		assert_left_alone(gb, &in, BS_TAG_NOT_NEGOTIATED);
		gb_close_tags(gb);
	}
}

/* A path that drops what is tagged: each question comes again, and gets its answer untagged. */
static void
what_is_asked_again_is_answered_untagged_and_soon_nothing_is_tagged(void **state)
{
	struct gb *gb = open_way(&by_option, "always", false, 1);
	struct frame in, out;

	(void)state;
	for (uint16_t i = 0; i < 2; i++) {
		const uint16_t port = (uint16_t)(40000 + i);

		ask(gb, port, i);
		dns(&in, port, GB_SERVER, i, 30);
		gb_through(gb, GB_LOCAL, &in, &out);
		assert_tagged_by(&in, &out, by_option.carrier);
		gb_run(gb, gb_time.now_ns + GB_S, GB_MS * 100);
		ask(gb, port, i);
		assert_left_alone(gb, &in, BS_TAG_RESENT);
	}
	assert_int_equal(gb_tag(gb, BS_TAG_PATH_REFUSES), 1);
	ask(gb, 40002, 2);
	dns(&in, 40002, GB_SERVER, 2, 30);
	assert_left_alone(gb, &in, BS_TAG_NOT_NEGOTIATED);
	/* for ten minutes */
	gb_run(gb, gb_time.now_ns + 601 * GB_S, GB_S);
	ask(gb, 40003, 3);
	dns(&in, 40003, GB_SERVER, 3, 30);
	gb_through(gb, GB_LOCAL, &in, &out);
	assert_tagged_by(&in, &out, by_option.carrier);
	gb_close_tags(gb);
}

/* At the client: its own question goes out a second time. */
static void
a_question_that_is_sent_again_goes_untagged(void **state)
{
	struct gb *gb = open_way(&by_option, "always", false, 1);
	struct frame in, out;

	(void)state;
	dns(&in, 40000, GB_CLIENT, 1, 0);
	gb_through(gb, GB_LOCAL, &in, &out);
	assert_tagged_by(&in, &out, by_option.carrier);
	gb_run(gb, gb_time.now_ns + GB_S, GB_MS * 100);
	assert_left_alone(gb, &in, BS_TAG_RESENT);
	dns(&in, 40000, GB_CLIENT, 2, 0);
	gb_through(gb, GB_LOCAL, &in, &out);
	assert_tagged_by(&in, &out, by_option.carrier);
	gb_close_tags(gb);
}

/* One of many lost by chance ends nothing. */
static void
rare_losses_do_not_end_tagging(void **state)
{
	struct gb *gb = open_way(&by_option, "always", false, 1);
	struct frame in, out;

	(void)state;
	for (uint16_t i = 0; i < 100; i++) {
		ask(gb, 40000, i);
		dns(&in, 40000, GB_SERVER, i, 30);
		gb_through(gb, GB_LOCAL, &in, &out);
		assert_tagged_by(&in, &out, by_option.carrier);
		gb_run(gb, gb_time.now_ns + GB_S, GB_MS * 100);
		if (i % 10 == 9) {
			ask(gb, 40000, i);
			assert_left_alone(gb, &in, BS_TAG_RESENT);
		}
	}
	assert_int_equal(gb_tag(gb, BS_TAG_PATH_REFUSES), 0);
	gb_close_tags(gb);
}

/* --- left alone ----------------------------------------------------------------------------- */

static void
a_tagged_packet_never_exceeds_the_mtu(void **state)
{
	(void)state;
	for (unsigned i = 3; i < WAYS; i++) {
		const struct way *way = &ways[i];
		struct gb *gb = open_way(way, "always", false, 1);
		/* IP and UDP headers, DNS up to the answer, and those of the tunnel */
		const unsigned head =
			28 + 12 + QUESTION_BYTES + (way->carrier == BS_CARRIER_GENEVE ? 50 : 0);
		const unsigned room = 1500 - head;
		/* the most that is tagged: an odd payload has a byte of padding more */
		const unsigned fits = room - (i == 3 ? 23 : bs_carriers[way->carrier].bytes_max);
		struct frame in, out;

		for (unsigned more = fits - 2; more <= room + 1; more++) {
			const unsigned bytes = i == 3 ? 22 + ((12 + QUESTION_BYTES + more) & 1)
						      : bs_carriers[way->carrier].bytes_max;
			const uint16_t id = (uint16_t)more;

			dns(&in, id, GB_CLIENT, id, 0);
			if (way->carrier == BS_CARRIER_GENEVE)
				tunnel(&in, GB_CLIENT, 0);
			gb_through(gb, GB_WIRE, &in, &out);
			dns(&in, id, GB_SERVER, id, more);
			if (way->carrier == BS_CARRIER_GENEVE)
				tunnel(&in, GB_SERVER, 0);
			if (more > room) {
				assert_left_alone(gb, &in, BS_TAG_GSO);
			} else if (more + bytes > room) {
				assert_left_alone(gb, &in, BS_TAG_MTU);
			} else {
				gb_through(gb, GB_LOCAL, &in, &out);
				assert_tagged_by(&in, &out, way->carrier);
				assert_true(out.n <= 1514);
			}
		}
		gb_close_tags(gb);
	}
}

static void
packets_without_room_or_tunnel_are_left_alone(void **state)
{
	struct gb *gb = open_way(&by_option, "always", false, 1);
	struct frame in, out;

	(void)state;
	/* UDP options of another */
	ask(gb, 40000, 1);
	dns(&in, 40000, GB_SERVER, 1, 30);
	frame_put(&in, "\x00\xf9\xfc\x00\x00\x00", 6);
	frame_end_ip(&in);
	gb_checksums(&in);
	assert_left_alone(gb, &in, BS_TAG_NO_ROOM);
	/* its last byte in a second segment */
	ask(gb, 40001, 2);
	dns(&in, 40001, GB_SERVER, 2, 30);
	gb_inject_mbuf(gb, GB_LOCAL, gb_chain(gb, in.bytes, in.n, in.n - 1));
	gb_turn(gb);
	assert_true(gb_take(gb, GB_WIRE, &out));
	gb_assert_same(&in, &out);
	assert_int_equal(gb_tag(gb, BS_TAG_SHARED), 1);
	gb_close_tags(gb);

	gb = open_way(&ways[5], "always", false, 1);
	ask(gb, 40000, 1);
	dns(&in, 40000, GB_SERVER, 1, 30);
	assert_left_alone(gb, &in, BS_TAG_NO_TUNNEL);
	/* 236 bytes of options, of at most 252 */
	ask(gb, 40000, 2);
	dns(&in, 40000, GB_CLIENT, 2, 0);
	tunnel(&in, GB_CLIENT, 236);
	gb_through(gb, GB_WIRE, &in, &out);
	dns(&in, 40000, GB_SERVER, 2, 30);
	tunnel(&in, GB_SERVER, 236);
	assert_left_alone(gb, &in, BS_TAG_NO_ROOM);
	gb_close_tags(gb);
}

/* Shims that lie about themselves: as they came, to the byte. */
static void
shims_that_do_not_parse_pass_unchanged(void **state)
{
	struct gb *gb = open_way(&ways[5], "always", true, 1);
	struct frame in, out;

	(void)state;
	/* another version, the checksum right */
	dns(&in, 40000, GB_CLIENT, 1, 0);
	tunnel(&in, GB_CLIENT, 0);
	put_on(&in, BS_CARRIER_GENEVE, 7);
	in.bytes[14 + 20 + 8 + 8 + 4] = 0x20;
	in.l3 = 14, in.l4 = 34;
	gb_checksums(&in);
	gb_through(gb, GB_WIRE, &in, &out);
	gb_assert_same(&in, &out);
	assert_int_equal(gb_tag(gb, BS_TAG_MALFORMED), 1);
	/* a UDP option whose checksum does not hold */
	dns(&in, 40001, GB_CLIENT, 2, 1);
	put_on(&in, BS_CARRIER_UDP_OPTION, 7);
	in.bytes[in.n - 1] ^= 1;
	gb_through(gb, GB_WIRE, &in, &out);
	gb_assert_same(&in, &out);
	assert_int_equal(gb_tag(gb, BS_TAG_MALFORMED), 2);
	/* an Ethertype whose shim is of another version, or cut: somebody else's */
	for (unsigned i = 0; i < 2; i++) {
		dns(&in, 40002, GB_CLIENT, 3, 0);
		put_on(&in, BS_CARRIER_ETHER, 7);
		if (i == 0)
			in.bytes[14] = 0x20;
		else
			in.n = 14 + 17;
		gb_through(gb, GB_WIRE, &in, &out);
		gb_assert_same(&in, &out);
	}
	assert_int_equal(gb_tag(gb, BS_TAG_MALFORMED), 2);
	assert_int_equal(gb_tag(gb, BS_TAG_UNTAGGED), 0);
	gb_close_tags(gb);
}

/* The outer checksum of a virtual peer, or an inner one: completed before anything is edited. */
static void
a_partial_checksum_of_the_tunnel_is_completed(void **state)
{
	struct gb *gb = open_way(&ways[5], "always", false, 1);
	struct frame right, partial, in, out;

	(void)state;
	dns(&in, 40000, GB_CLIENT, 1, 0);
	tunnel(&in, GB_CLIENT, 0);
	gb_through(gb, GB_WIRE, &in, &out);
	dns(&right, 40000, GB_SERVER, 1, 30);
	tunnel(&right, GB_SERVER, 0);
	partial = right;
	/* 192.0.2.2, 192.0.2.1, UDP, its length: the pseudo-header alone */
	frame_set16(&partial, partial.l4 + 6,
		(0xc000 + 0x0202 + 0xc000 + 0x0201 + 17 + right.n - 34) % 0xffff);
	gb_through(gb, GB_LOCAL, &partial, &out);
	assert_tagged_by(&right, &out, BS_CARRIER_GENEVE);
	assert_int_equal(gb_tag(gb, BS_TAG_CHECKSUM_COMPLETED), 1);
	gb_close_tags(gb);
}

static void
every_counter_of_these_has_moved(void **state)
{
	(void)state;
	assert_true(gb_tags_seen[BS_TAG_NO_TUNNEL] > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		GB_TEST(what_one_instance_puts_on_the_next_reads_and_takes_off),
		GB_TEST(shims_come_off_by_whatever_carrier_they_came),
		GB_TEST(a_handshake_in_a_tunnel_is_negotiated),
		GB_TEST(tunnels_with_different_vnis_are_told_apart),
		GB_TEST(negotiated_datagrams_wait_for_a_shim_of_the_other_end),
		GB_TEST(what_is_asked_again_is_answered_untagged_and_soon_nothing_is_tagged),
		GB_TEST(a_question_that_is_sent_again_goes_untagged),
		GB_TEST(rare_losses_do_not_end_tagging),
		GB_TEST(a_tagged_packet_never_exceeds_the_mtu),
		GB_TEST(packets_without_room_or_tunnel_are_left_alone),
		GB_TEST(shims_that_do_not_parse_pass_unchanged),
		GB_TEST(a_partial_checksum_of_the_tunnel_is_completed),
		cmocka_unit_test(every_counter_of_these_has_moved),
	};

	return cmocka_run_group_tests_name(
		"graybox_carriers", tests, gb_group_setup, gb_group_teardown);
}
