/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shim on its way through: what is put on, what is taken off, what is left
 * alone and why. Of the handshake: handshake_test.c.
 */
#include "gb_shim.h"

#include <rte_mempool.h>

/* --- on and off ----------------------------------------------------------------------- */

static void
a_response_carries_its_requests_id_and_what_remains(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){
		.shim = ALWAYS,
		.services = "{\"name\": \"kv\", \"address\": \"10.0.0.2\", \"port\": 6379,"
			    " \"protocol\": \"unit\", \"class\": {\"in\": 1, \"out\": 5}}",
	});
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame whole, in, out;
	const uint8_t *message;
	struct bs_shim shim;
	uint64_t id;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	gb_message(&in, &flow, GB_CLIENT, 7, 100);
	gb_through(gb, GB_WIRE, &in, &out);
	gb_assert_same(&in, &out); /* nobody tags toward a service */
	gb_message(&whole, &flow, GB_SERVER, 7, 300);
	flow.next[GB_SERVER] -= 300;
	message = whole.bytes + whole.n - 300;
	gb_data(&in, &flow, GB_SERVER, message, 120);
	gb_through(gb, GB_LOCAL, &in, &out);
	shim = gb_assert_tagged(&in, &out);
	id = shim.rpc_id;
	assert_int_equal(shim.version, 1);
	assert_int_equal(shim.flags, BS_SHIM_RESPONSE);
	assert_int_equal(shim.hops, 0);
	assert_int_equal(shim.class_, 5);
	assert_int_equal(shim.remaining, 300);
	gb_data(&in, &flow, GB_SERVER, message + 120, 180);
	gb_through(gb, GB_LOCAL, &in, &out);
	shim = gb_assert_tagged(&in, &out);
	assert_true(shim.rpc_id == id);
	assert_int_equal(shim.remaining, 180);
	gb_ack(&in, &flow, GB_CLIENT);
	gb_through(gb, GB_WIRE, &in, &out);
	gb_collect(gb, 1);
	assert_true(gb_rpc(gb, 0).rpc->id == id);
	assert_int_equal(id >> 48, 1); /* the node */
	assert_int_equal(gb_tag(gb, BS_TAG_TAGGED), 2);
	assert_int_equal(gb_tag(gb, BS_TAG_BYTES), 40);
	gb_close_tags(gb);
}

static void
a_packet_with_several_messages_carries_the_first_ones_id(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.shim = ALWAYS});
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame first, second, in, out;
	struct bs_shim shim;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	for (uint32_t id = 1; id <= 2; id++) {
		gb_message(&in, &flow, GB_CLIENT, id, 100);
		gb_through(gb, GB_WIRE, &in, &out);
	}
	gb_message(&first, &flow, GB_SERVER, 1, 60);
	gb_message(&second, &flow, GB_SERVER, 2, 80);
	flow.next[GB_SERVER] -= 140;
	frame_put(&first, second.bytes + second.n - 80, 80);
	gb_data(&in, &flow, GB_SERVER, first.bytes + first.n - 140, 140);
	gb_through(gb, GB_LOCAL, &in, &out);
	shim = gb_assert_tagged(&in, &out);
	assert_int_equal(shim.flags, BS_SHIM_RESPONSE | BS_SHIM_MORE);
	assert_int_equal(shim.remaining, 60);
	gb_ack(&in, &flow, GB_CLIENT);
	gb_through(gb, GB_WIRE, &in, &out);
	gb_collect(gb, 1);
	assert_true(gb_rpc(gb, 0).rpc->id == shim.rpc_id);
	gb_close_tags(gb);
}

/* On the side of the clients, requests are tagged, and responses come with shims. */
static void
a_request_is_tagged_on_the_clients_side(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.shim = ALWAYS});
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame in, out;
	struct bs_shim shim;

	(void)state;
	gb_syn(&in, &flow, GB_CLIENT, false, false);
	flow.next[GB_CLIENT]++;
	gb_through(gb, GB_LOCAL, &in, &out);
	gb_syn(&in, &flow, GB_SERVER, true, false);
	flow.next[GB_SERVER]++;
	gb_through(gb, GB_WIRE, &in, &out);
	gb_message(&in, &flow, GB_CLIENT, 7, 100);
	gb_through(gb, GB_LOCAL, &in, &out);
	shim = gb_assert_tagged(&in, &out);
	assert_int_equal(shim.flags, 0);
	assert_int_equal(shim.remaining, 100);
	gb_close_tags(gb);
}

static void
shims_go_over_ipv6_and_vlans(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){
		.shim = ALWAYS,
		.services = "{\"name\": \"kv\", \"address\": \"2001:db8::2\", \"port\": 6379,"
			    " \"protocol\": \"unit\"}",
	});
	struct frame in, out;

	(void)state;
	for (unsigned vlan = 0; vlan < 200; vlan += 100) {
		struct gb_flow flow = gb_flow(40000, 6379);
		struct frame tagged;

		flow.ip_version = 6;
		flow.address[GB_SERVER] = 2;
		flow.vlan = vlan;
		gb_handshake(gb, &flow);
		gb_message(&in, &flow, GB_CLIENT, 7, 100);
		gb_through(gb, GB_WIRE, &in, &out);
		gb_message(&in, &flow, GB_SERVER, 7, 60);
		gb_through(gb, GB_LOCAL, &in, &tagged);
		gb_assert_tagged(&in, &tagged);
	}
	gb_close_tags(gb);
}

/* A request with a shim of that ID, and as it was before. */
static void
tagged_request(struct frame *tagged, struct frame *bare, struct gb_flow *flow, uint64_t id)
{
	uint8_t option[BS_SHIM_OPTION_BYTES];
	const struct bs_shim shim = {.version = 1, .rpc_id = id, .remaining = 100};
	struct frame message = {.n = 0};

	bs_shim_option_encode(&shim, option);
	gb_message(bare, flow, GB_CLIENT, 7, 100);
	flow->next[GB_CLIENT] -= 100;
	frame_put(&message, bare->bytes + bare->n - 100, 100);
	flow->ip_id--;
	gb_tcp(tagged, flow,
		&(struct gb_tcp){.from = GB_CLIENT,
			.flags = BS_TCP_ACK | BS_TCP_PSH,
			.options = option,
			.option_bytes = sizeof(option),
			.payload = message.bytes,
			.payload_bytes = 100});
	flow->next[GB_CLIENT] += 100;
}

static void
a_shim_is_taken_off_before_the_service_sees_it(void **state)
{
	static const char *const shims[] = {ALWAYS, NEGOTIATED, "\"tag\": \"off\""};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct gb *gb = gb_open(&(struct gb_setup){.shim = shims[i]});
		struct gb_flow flow = gb_flow(40000, 6379);
		struct frame tagged, bare, out;

		gb_connect(gb);
		gb_handshake(gb, &flow);
		tagged_request(&tagged, &bare, &flow, 0xABCD000000000001);
		gb_through(gb, GB_WIRE, &tagged, &out);
		gb_assert_same(&bare, &out);
		assert_int_equal(gb_tag(gb, BS_TAG_UNTAGGED), 1);
		assert_int_equal(gb_tag(gb, BS_TAG_UNTRUSTED), 1);
		bs_dataplane_finish(gb->dataplane, gb_time.now_ns);
		gb_collect(gb, 1);
		assert_int_equal(gb_rpc(gb, 0).rpc->id >> 48, 1);
		gb_close_tags(gb);
	}
}

static void
an_id_is_adopted_only_from_a_trusted_port(void **state)
{
	const uint64_t id = 0xABCD000000000001;
	struct gb *gb =
		gb_open(&(struct gb_setup){.shim = ALWAYS, .wire = ", \"trust_shim\": true"});
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame tagged, bare, in, out;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	tagged_request(&tagged, &bare, &flow, id);
	gb_through(gb, GB_WIRE, &tagged, &out);
	gb_assert_same(&bare, &out);
	assert_int_equal(gb_tag(gb, BS_TAG_UNTRUSTED), 0);
	gb_message(&in, &flow, GB_SERVER, 7, 60);
	gb_through(gb, GB_LOCAL, &in, &out);
	assert_true(gb_assert_tagged(&in, &out).rpc_id == id);
	gb_ack(&in, &flow, GB_CLIENT);
	gb_through(gb, GB_WIRE, &in, &out);
	gb_collect(gb, 1);
	assert_true(gb_rpc(gb, 0).rpc->id == id);
	gb_close_tags(gb);
}

static void
a_shim_that_does_not_parse_passes_unchanged(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.shim = ALWAYS});
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame tagged, bare, out;

	(void)state;
	gb_handshake(gb, &flow);
	tagged_request(&tagged, &bare, &flow, 1);
	tagged.bytes[tagged.l4 + 24] = 0x20; /* version 2 */
	gb_checksums(&tagged);
	gb_through(gb, GB_WIRE, &tagged, &out);
	gb_assert_same(&tagged, &out);
	assert_int_equal(gb_tag(gb, BS_TAG_MALFORMED), 1);
	assert_int_equal(gb_tag(gb, BS_TAG_UNTAGGED), 0);
	gb_close_tags(gb);
}

static void
what_comes_with_a_shim_from_a_service_leaves_with_one(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.shim = ALWAYS});
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame tagged, bare, out;
	struct bs_packet packet;

	(void)state;
	/* the client is on the service port's side here */
	gb_syn(&bare, &flow, GB_CLIENT, false, false);
	flow.next[GB_CLIENT]++;
	gb_through(gb, GB_LOCAL, &bare, &out);
	tagged_request(&tagged, &bare, &flow, 0xABCD000000000001);
	gb_through(gb, GB_LOCAL, &tagged, &out);
	assert_int_equal(gb_assert_tagged(&bare, &out).rpc_id >> 48, 1);
	packet = gb_parse(&out);
	assert_int_equal(packet.payload - packet.l4, 40);
	gb_close_tags(gb);
}

/* --- left alone -------------------------------------------------------------------------- */

/* An open connection with a request that waits for its response. */
static struct gb_flow
asked(const struct gb *gb, uint16_t client_port)
{
	struct gb_flow flow = gb_flow(client_port, 6379);
	struct frame in, out;

	gb_handshake(gb, &flow);
	gb_message(&in, &flow, GB_CLIENT, 7, 100);
	gb_through(gb, GB_WIRE, &in, &out);
	return flow;
}

/* The response in one packet of that size leaves as it came, counted so. */
static void
assert_skipped(const struct gb *gb, struct frame *in, enum bs_tag_counter reason)
{
	const uint64_t before = gb_tag(gb, reason), tagged = gb_tag(gb, BS_TAG_TAGGED);
	struct frame out;

	gb_through(gb, GB_LOCAL, in, &out);
	gb_assert_same(in, &out);
	assert_int_equal(gb_tag(gb, reason), before + 1);
	assert_int_equal(gb_tag(gb, BS_TAG_TAGGED), tagged);
}

static void
a_packet_that_would_exceed_the_mtu_is_not_tagged(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.shim = ALWAYS});
	struct gb_flow flow;
	struct frame in, out;

	(void)state;
	flow = asked(gb, 40000); /* 1500 bytes of IP are 1460 of payload; 1440 and a shim, too */
	gb_message(&in, &flow, GB_SERVER, 7, 1440);
	gb_through(gb, GB_LOCAL, &in, &out);
	gb_assert_tagged(&in, &out);
	flow = asked(gb, 40001);
	gb_message(&in, &flow, GB_SERVER, 7, 1441);
	assert_skipped(gb, &in, BS_TAG_MTU);
	flow = asked(gb, 40002);
	gb_message(&in, &flow, GB_SERVER, 7, 1460);
	assert_skipped(gb, &in, BS_TAG_MTU);
	flow = asked(gb, 40003);
	gb_message(&in, &flow, GB_SERVER, 7, 1461); /* no segment of this link: a GSO frame */
	assert_skipped(gb, &in, BS_TAG_GSO);
	gb_close_tags(gb);
}

static void
options_of_others_are_not_touched(void **state)
{
	static const uint8_t foreign[] = {253, 6, 0xde, 0xad, 1, 2, 1, 1};
	static const uint8_t full[24] = {
		8, 10, 0, 0, 0, 1, 0, 0, 0, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 1, 1};
	static const uint8_t md5[20] = {19, 18};
	static const uint8_t ao[16] = {29, 16};
	static const uint8_t broken[4] = {8, 200, 0, 0};
	const struct {
		const uint8_t *options;
		size_t bytes;
		enum bs_tag_counter reason;
	} cases[] = {
		{foreign, sizeof(foreign), BS_TAG_NO_ROOM},
		{full, sizeof(full), BS_TAG_NO_ROOM},
		{md5, sizeof(md5), BS_TAG_SIGNED},
		{ao, sizeof(ao), BS_TAG_SIGNED},
		{broken, sizeof(broken), BS_TAG_NO_ROOM},
	};
	struct gb *gb = gb_open(&(struct gb_setup){.shim = ALWAYS});

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gb_flow flow = asked(gb, (uint16_t)(40000 + i));
		struct frame message, in;

		gb_message(&message, &flow, GB_SERVER, 7, 60);
		flow.next[GB_SERVER] -= 60;
		gb_tcp(&in, &flow,
			&(struct gb_tcp){.from = GB_SERVER,
				.flags = BS_TCP_ACK,
				.options = cases[i].options,
				.option_bytes = cases[i].bytes,
				.payload = message.bytes + message.n - 60,
				.payload_bytes = 60});
		assert_skipped(gb, &in, cases[i].reason);
	}
	gb_close_tags(gb);
}

static void
what_belongs_to_no_known_message_is_not_tagged(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.shim = ALWAYS});
	struct gb_flow flow = asked(gb, 40000);
	struct frame in, whole;
	const uint8_t *message;

	(void)state;
	gb_ack(&in, &flow, GB_SERVER);
	assert_skipped(gb, &in, BS_TAG_NO_PAYLOAD);
	/* behind a hole; then what fills it, which is followed by more than it */
	gb_message(&whole, &flow, GB_SERVER, 7, 200);
	flow.next[GB_SERVER] -= 200;
	message = whole.bytes + whole.n - 200;
	flow.next[GB_SERVER] += 100;
	gb_data(&in, &flow, GB_SERVER, message + 100, 100);
	assert_skipped(gb, &in, BS_TAG_UNKNOWN_BOUNDARY);
	flow.next[GB_SERVER] -= 200;
	gb_data(&in, &flow, GB_SERVER, message, 100);
	assert_skipped(gb, &in, BS_TAG_UNKNOWN_BOUNDARY);
	flow.next[GB_SERVER] += 100;
	/* a response that nobody asked for */
	gb_message(&in, &flow, GB_SERVER, 99, 60);
	assert_skipped(gb, &in, BS_TAG_NO_RPC);
	gb_close_tags(gb);
}

/* In another mbuf that shares its bytes with the first: whoever holds that must not see an edit. */
static struct rte_mbuf *
indirect_of(const struct gb *gb, struct rte_mbuf *direct)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(gb->dataplane->pool);

	assert_non_null(mbuf);
	rte_pktmbuf_attach(mbuf, direct);
	return mbuf;
}

static void
shared_bytes_are_never_edited(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.shim = ALWAYS});
	struct gb_flow flow = asked(gb, 40000);
	struct rte_mbuf *mbuf;
	struct frame in, out;

	(void)state;
	gb_message(&in, &flow, GB_SERVER, 7, 60);
	mbuf = gb_mbuf(gb, in.bytes, in.n);
	rte_mbuf_refcnt_update(mbuf, 1);
	gb_inject_mbuf(gb, GB_LOCAL, mbuf);
	gb_turn(gb);
	assert_true(gb_take(gb, GB_WIRE, &out));
	gb_assert_same(&in, &out);
	assert_int_equal(gb_tag(gb, BS_TAG_SHARED), 1);
	rte_pktmbuf_free(mbuf);

	flow = asked(gb, 40001);
	gb_message(&in, &flow, GB_SERVER, 7, 60);
	mbuf = gb_mbuf(gb, in.bytes, in.n);
	gb_inject_mbuf(gb, GB_LOCAL, indirect_of(gb, mbuf));
	gb_turn(gb);
	assert_true(gb_take(gb, GB_WIRE, &out));
	gb_assert_same(&in, &out);
	assert_memory_equal(rte_pktmbuf_mtod(mbuf, const uint8_t *), in.bytes, in.n);
	assert_int_equal(gb_tag(gb, BS_TAG_SHARED), 2);
	rte_pktmbuf_free(mbuf);

	flow = asked(gb, 40002);
	gb_message(&in, &flow, GB_SERVER, 7, 60);
	mbuf = gb_mbuf(gb, "", 0);
	mbuf->data_off = 19; /* a byte short of a shim */
	memcpy(rte_pktmbuf_append(mbuf, (uint16_t)in.n), in.bytes, in.n);
	gb_inject_mbuf(gb, GB_LOCAL, mbuf);
	gb_turn(gb);
	assert_true(gb_take(gb, GB_WIRE, &out));
	gb_assert_same(&in, &out);
	assert_int_equal(gb_tag(gb, BS_TAG_SHARED), 3);
	gb_close_tags(gb);
}

static void
a_shared_syn_keeps_its_mss_and_a_shared_packet_its_checksum(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.shim = ALWAYS});
	struct gb_flow flow = gb_flow(40000, 6379);
	struct rte_mbuf *mbuf;
	struct frame in, out;

	(void)state;
	gb_syn(&in, &flow, GB_CLIENT, false, false);
	mbuf = gb_mbuf(gb, in.bytes, in.n);
	gb_inject_mbuf(gb, GB_WIRE, indirect_of(gb, mbuf));
	gb_turn(gb);
	assert_true(gb_take(gb, GB_LOCAL, &out));
	gb_assert_same(&in, &out);
	assert_memory_equal(rte_pktmbuf_mtod(mbuf, const uint8_t *), in.bytes, in.n);
	rte_pktmbuf_free(mbuf);
	assert_int_equal(gb_tag(gb, BS_TAG_MSS_CLAMPED), 0);

	gb_ack(&in, &flow, GB_CLIENT);
	/* the sum of the pseudo-header alone: 10.0.0.1, 10.0.0.2, TCP, 20 bytes */
	frame_set16(&in, in.l4 + 16, 0x0a00 + 0x0001 + 0x0a00 + 0x0002 + 6 + 20);
	mbuf = gb_mbuf(gb, in.bytes, in.n);
	rte_mbuf_refcnt_update(mbuf, 1);
	gb_inject_mbuf(gb, GB_WIRE, mbuf);
	gb_turn(gb);
	assert_memory_equal(rte_pktmbuf_mtod(mbuf, const uint8_t *), in.bytes, in.n);
	assert_int_equal(gb_tag(gb, BS_TAG_CHECKSUM_COMPLETED), 0);
	assert_int_equal(gb_drain(gb, GB_LOCAL), 1);
	rte_pktmbuf_free(mbuf);
	gb_close_tags(gb);
}

/* --- checksums ----------------------------------------------------------------------------- */

static void
a_partial_checksum_is_completed_before_the_shim_goes_in(void **state)
{
	static const size_t pieces[] = {9000, 80, 55};
	struct gb *gb = gb_open(&(struct gb_setup){.shim = ALWAYS});

	(void)state;
	for (unsigned i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct gb_flow flow = asked(gb, (uint16_t)(40000 + i));
		struct frame right, partial, out;

		gb_message(&right, &flow, GB_SERVER, 7, 61);
		partial = right;
		frame_set16(&partial, partial.l4 + 16, 0x0a00 + 0x0001 + 0x0a00 + 0x0002 + 6 + 81);
		gb_inject_mbuf(gb, GB_LOCAL, gb_chain(gb, partial.bytes, partial.n, pieces[i]));
		gb_turn(gb);
		assert_true(gb_take(gb, GB_WIRE, &out));
		gb_assert_tagged(&right, &out);
		assert_int_equal(gb_tag(gb, BS_TAG_CHECKSUM_COMPLETED), i + 1);
	}
	gb_close_tags(gb);
}

static void
a_partial_checksum_is_completed_although_the_shim_is_off(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame right, partial, out;

	(void)state;
	gb_message(&right, &flow, GB_CLIENT, 7, 100);
	partial = right;
	frame_set16(&partial, partial.l4 + 16, 0x0a00 + 0x0001 + 0x0a00 + 0x0002 + 6 + 120);
	gb_through(gb, GB_WIRE, &partial, &out);
	gb_assert_same(&right, &out);
	frame_ether(&right, 0x0800);
	frame_ipv4(&right, 17, 0x0a000001, 0x0a000002);
	frame_udp(&right, 40000, 53, 11);
	frame_put(&right, "what is it?", 11);
	frame_end_ip(&right);
	gb_checksums(&right);
	partial = right;
	frame_set16(&partial, partial.l4 + 6, 0x0a00 + 0x0001 + 0x0a00 + 0x0002 + 17 + 19);
	gb_through(gb, GB_WIRE, &partial, &out);
	gb_assert_same(&right, &out);
	assert_int_equal(gb_tag(gb, BS_TAG_CHECKSUM_COMPLETED), 2);
	gb_close_tags(gb);
}

static void
a_wrong_checksum_stays_wrong_with_a_shim(void **state)
{
	struct gb *gb = gb_open(&(struct gb_setup){.shim = ALWAYS});
	struct gb_flow flow = asked(gb, 40000);
	struct frame in, out;

	(void)state;
	gb_message(&in, &flow, GB_SERVER, 7, 60);
	in.bytes[in.n - 1] ^= 0x55;
	gb_through(gb, GB_LOCAL, &in, &out);
	assert_int_equal(out.n, in.n + BS_SHIM_OPTION_BYTES);
	assert_false(gb_checksums_ok(&out));
	gb_close_tags(gb);
}

static void
every_counter_of_these_has_moved(void **state)
{
	(void)state;
	for (unsigned i = 0; i < BS_TAG_COUNT; i++) {
		if (!gb_tag_is_of_handshake(i) && !gb_tag_is_of_carriers(i) && gb_tags_seen[i] == 0)
			fail_msg("nothing counts %s", bs_tag_counter_key(i));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		GB_TEST(a_response_carries_its_requests_id_and_what_remains),
		GB_TEST(a_packet_with_several_messages_carries_the_first_ones_id),
		GB_TEST(a_request_is_tagged_on_the_clients_side),
		GB_TEST(shims_go_over_ipv6_and_vlans),
		GB_TEST(a_shim_is_taken_off_before_the_service_sees_it),
		GB_TEST(an_id_is_adopted_only_from_a_trusted_port),
		GB_TEST(a_shim_that_does_not_parse_passes_unchanged),
		GB_TEST(what_comes_with_a_shim_from_a_service_leaves_with_one),
		GB_TEST(a_packet_that_would_exceed_the_mtu_is_not_tagged),
		GB_TEST(options_of_others_are_not_touched),
		GB_TEST(what_belongs_to_no_known_message_is_not_tagged),
		GB_TEST(shared_bytes_are_never_edited),
		GB_TEST(a_shared_syn_keeps_its_mss_and_a_shared_packet_its_checksum),
		GB_TEST(a_partial_checksum_is_completed_before_the_shim_goes_in),
		GB_TEST(a_partial_checksum_is_completed_although_the_shim_is_off),
		GB_TEST(a_wrong_checksum_stays_wrong_with_a_shim),
		cmocka_unit_test(every_counter_of_these_has_moved),
	};

	return cmocka_run_group_tests_name(
		"graybox_shim", tests, gb_group_setup, gb_group_teardown);
}
