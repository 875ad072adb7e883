/* SPDX-License-Identifier: BSD-3-Clause */
/* See gb_frames.h. */
#include "gb_frames.h"

#include "bs_checksum.h"

struct gb_flow
gb_flow(uint16_t client_port, uint16_t service_port)
{
	return (struct gb_flow){
		.ip_version = 4,
		.address = {0x0a000001, 0x0a000002},
		.port = {client_port, service_port},
		.next = {1000, 5000000},
		.window = {65535, 65535},
		.ip_id = 1,
	};
}

/* --- checksums ------------------------------------------------------------------- */

/* Sum of big-endian 16-bit words, RFC 1071 section 1, not folded. */
static uint64_t
sum_words(const uint8_t *bytes, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += i % 2 == 0 ? (uint64_t)bytes[i] << 8 : bytes[i];
	return sum;
}

static unsigned
fold(uint64_t sum)
{
	while (sum > 0xffff)
		sum = (sum & 0xffff) + (sum >> 16);
	return (unsigned)sum ^ 0xffff;
}

void
gb_checksums(struct frame *frame)
{
	uint8_t *ip = frame->bytes + frame->l3, *l4 = frame->bytes + frame->l4;
	const bool v4 = ip[0] >> 4 == 4;
	const unsigned protocol = v4 ? ip[9] : ip[6];
	const unsigned length = v4 ? (unsigned)(ip[2] << 8 | ip[3]) - (frame->l4 - frame->l3)
				   : (unsigned)(ip[4] << 8 | ip[5]) - (frame->l4 - frame->l3 - 40);
	const unsigned at = protocol == 6 ? 16 : 6;
	uint64_t sum;

	if (v4) {
		frame_set16(frame, frame->l3 + 10, 0);
		frame_set16(frame, frame->l3 + 10, fold(sum_words(ip, (ip[0] & 0xf) * 4u)));
	}
	sum = (v4 ? sum_words(ip + 12, 8) : sum_words(ip + 8, 32)) + protocol + length;
	frame_set16(frame, frame->l4 + at, 0);
	frame_set16(frame, frame->l4 + at, fold(sum + sum_words(l4, length)));
}

bool
gb_checksums_ok(const struct frame *frame)
{
	const struct bs_packet packet = gb_parse(frame);
	const struct iovec payload = {
		.iov_base = (void *)(uintptr_t)(frame->bytes + packet.payload),
		.iov_len = packet.payload_cap,
	};

	return packet.parse == BS_PARSE_OK && bs_checksum_ok(&packet, &payload, 1);
}

struct bs_packet
gb_parse(const struct frame *frame)
{
	struct bs_packet packet;

	memset(&packet, 0, sizeof(packet));
	packet.data = frame->bytes;
	packet.caplen = packet.len = frame->n;
	bs_packet_parse(&packet);
	return packet;
}

/* --- segments -------------------------------------------------------------------- */

static void
begin_ip(struct frame *frame, struct gb_flow *flow, unsigned from)
{
	const unsigned type = flow->ip_version == 4 ? 0x0800 : 0x86dd;

	if (flow->vlan != 0) {
		frame_ether(frame, 0x8100);
		frame_vlan(frame, flow->vlan, type);
	} else {
		frame_ether(frame, type);
	}
	if (flow->ip_version == 4) {
		frame_ipv4(frame, 6, flow->address[from], flow->address[!from]);
		frame_set16(frame, frame->l3 + 4, flow->ip_id++);
	} else {
		frame_ipv6(frame, 6, flow->address[from], flow->address[!from]);
	}
}

void
gb_tcp(struct frame *frame, struct gb_flow *flow, const struct gb_tcp *tcp)
{
	const uint32_t seq = flow->next[tcp->from] + tcp->seq, ack = flow->next[!tcp->from];

	begin_ip(frame, flow, tcp->from);
	frame_tcp(frame, flow->port[tcp->from], flow->port[!tcp->from], tcp->flags, tcp->options,
		tcp->option_bytes);
	frame_set16(frame, frame->l4 + 4, seq >> 16);
	frame_set16(frame, frame->l4 + 6, seq & 0xffff);
	frame_set16(frame, frame->l4 + 8, tcp->flags & BS_TCP_ACK ? ack >> 16 : 0);
	frame_set16(frame, frame->l4 + 10, tcp->flags & BS_TCP_ACK ? ack & 0xffff : 0);
	frame_set16(frame, frame->l4 + 14, flow->window[tcp->from]);
	if (tcp->payload_bytes > 0)
		frame_put(frame, tcp->payload, tcp->payload_bytes);
	frame_end_ip(frame);
	gb_checksums(frame);
}

void
gb_data(struct frame *frame, struct gb_flow *flow, unsigned from, const void *payload, size_t n)
{
	gb_tcp(frame, flow,
		&(struct gb_tcp){.from = from,
			.flags = BS_TCP_ACK | BS_TCP_PSH,
			.payload = payload,
			.payload_bytes = n});
	flow->next[from] += (uint32_t)n;
}

void
gb_ack(struct frame *frame, struct gb_flow *flow, unsigned from)
{
	gb_data(frame, flow, from, NULL, 0);
}

void
gb_message(struct frame *frame, struct gb_flow *flow, unsigned from, uint32_t id, size_t bytes)
{
	struct frame message = {.n = 0};

	frame_u32(&message, (uint32_t)bytes);
	frame_u32(&message, id);
	frame_fill(&message, 'm', bytes - GB_MESSAGE_HEADER);
	gb_data(frame, flow, from, message.bytes, bytes);
}

void
gb_handshake(const struct gb *gb, struct gb_flow *flow)
{
	static const uint8_t mss[4] = {2, 4, 1460 >> 8, 1460 & 0xff};
	struct frame frame;

	gb_tcp(&frame, flow,
		&(struct gb_tcp){
			.from = GB_CLIENT, .flags = BS_TCP_SYN, .options = mss, .option_bytes = 4});
	flow->next[GB_CLIENT]++;
	gb_pass(gb, GB_CLIENT, &frame);
	gb_tcp(&frame, flow,
		&(struct gb_tcp){.from = GB_SERVER,
			.flags = BS_TCP_SYN | BS_TCP_ACK,
			.options = mss,
			.option_bytes = 4});
	flow->next[GB_SERVER]++;
	gb_pass(gb, GB_SERVER, &frame);
	gb_ack(&frame, flow, GB_CLIENT);
	gb_pass(gb, GB_CLIENT, &frame);
	gb_turn(gb); /* with several lcores, some of it is still on its way */
	gb_drain(gb, GB_WIRE);
	gb_drain(gb, GB_LOCAL);
}

void
gb_arp(struct frame *frame)
{
	frame_ether(frame, 0x0806);
	frame_u16(frame, 1);
	frame_u16(frame, 0x0800);
	frame_u16(frame, 0x0604);
	frame_u16(frame, 1);
	frame_put(frame, "\x02\0\0\0\0\x02\x0a\0\0\x01\0\0\0\0\0\0\x0a\0\0\x02", 20);
}
