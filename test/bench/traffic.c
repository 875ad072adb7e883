/* SPDX-License-Identifier: BSD-3-Clause */
/* See traffic.h. */
#include "traffic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ETHER_BYTES 14u
#define IPV4_BYTES 20u
#define TCP_BYTES 20u
#define TIMESTAMP_BYTES 12u
#define SYN_OPTION_BYTES 12u
#define HEADER_BYTES_MAX (ETHER_BYTES + IPV4_BYTES + TCP_BYTES + TIMESTAMP_BYTES)
/* A frame of 64 bytes has no room for timestamps and a message. */
#define TIMESTAMPS_FROM 128u
#define SERVICE_ADDRESS 0x0a020001u
#define CLIENT_ADDRESS 0x0a010000u
#define PORTS_PER_CLIENT 16384u
#define WINDOW 65000u
#define WINDOW_SCALE 7u
#define MESSAGE_HEAD_MAX 64u
#define GROUP_MAX 1000u
#define REQUEST 0u
#define RESPONSE 1u
#define FLAG_SYN 0x02u
#define FLAG_PSH 0x08u
#define FLAG_ACK 0x10u

struct traffic_flow {
	uint32_t seq[2]; /* next of the client's, of the service's */
	uint32_t message[2];
};

struct traffic {
	struct traffic_shape shape;
	unsigned header_bytes, payload_bytes;
	unsigned group, groups; /* flows of one, and how many */
	unsigned turns;		/* packets of a flow while its group has its turn */
	unsigned shaken;
	uint64_t sent; /* request packets so far */
	uint16_t ip_id;
	uint32_t now_ms;
	struct traffic_flow flows[];
};

static uint8_t *
put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
	return at + 2;
}

static uint8_t *
put32(uint8_t *at, uint32_t value)
{
	return put16(put16(at, value >> 16), value & 0xffff);
}

static uint32_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint32_t)((uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000);
}

struct traffic *
traffic_create(const struct traffic_shape *shape)
{
	struct traffic *traffic =
		calloc(1, sizeof(*traffic) + shape->flows * sizeof(traffic->flows[0]));

	if (traffic == NULL)
		return NULL;
	traffic->shape = *shape;
	traffic->header_bytes = HEADER_BYTES_MAX;
	if (shape->frame_bytes < TIMESTAMPS_FROM)
		traffic->header_bytes -= TIMESTAMP_BYTES;
	traffic->payload_bytes = shape->frame_bytes - traffic->header_bytes;
	traffic->groups =
		shape->flows > 2 * GROUP_MAX ? shape->flows / GROUP_MAX : RTE_MIN(shape->flows, 2u);
	traffic->group = shape->flows / traffic->groups;
	traffic->turns = shape->packets + (traffic->groups > 2);
	for (unsigned i = 0; i < shape->flows; i++) {
		traffic->flows[i].seq[REQUEST] = i * 2654435761u;
		traffic->flows[i].seq[RESPONSE] = i * 2246822519u;
	}
	return traffic;
}

void
traffic_destroy(struct traffic *traffic)
{
	free(traffic);
}

/* Ethernet, IPv4, TCP up to its options; returns where those go. */
static uint8_t *
put_headers(struct traffic *traffic, uint8_t *at, unsigned number, unsigned direction,
	unsigned ip_bytes, unsigned flags)
{
	const struct traffic_flow *flow = &traffic->flows[number];
	uint32_t client = CLIENT_ADDRESS + number / PORTS_PER_CLIENT;
	unsigned client_port = 20000 + number % PORTS_PER_CLIENT;
	unsigned options_bytes =
		flags & FLAG_SYN ? SYN_OPTION_BYTES
				 : traffic->header_bytes - HEADER_BYTES_MAX + TIMESTAMP_BYTES;

	memset(at, 2, 12);
	at[5] = (uint8_t)(3 + direction);
	at[11] = (uint8_t)(4 - direction);
	at = put16(at + 12, 0x0800);
	at = put16(at, 0x4500);
	at = put16(at, ip_bytes);
	at = put16(at, ++traffic->ip_id);
	at = put16(at, 0x4000);
	at = put16(at, 0x4006);
	at = put16(at, 0xbeef); /* checksums are not looked at, only updated */
	at = put32(at, direction == REQUEST ? client : SERVICE_ADDRESS);
	at = put32(at, direction == REQUEST ? SERVICE_ADDRESS : client);
	at = put16(at, direction == REQUEST ? client_port : traffic->shape.port);
	at = put16(at, direction == REQUEST ? traffic->shape.port : client_port);
	at = put32(at, flow->seq[direction]);
	at = put32(at, flags & FLAG_ACK ? flow->seq[!direction] : 0);
	at = put16(at, (TCP_BYTES + options_bytes) / 4 << 12 | flags);
	at = put16(at, WINDOW);
	at = put16(at, 0xbeef);
	return put16(at, 0);
}

/* What stands at the beginning of a message of `bytes`; returns its length. */
static unsigned
message_head(const struct traffic *traffic, unsigned direction, uint32_t number, unsigned bytes,
	uint8_t head[MESSAGE_HEAD_MAX])
{
	char *text = (char *)head;

	if (traffic->shape.port == TRAFFIC_ROW_PORT) {
		put32(put32(head, bytes), number);
		return 8;
	}
	if (bytes < 48)
		return (unsigned)(direction == REQUEST
					  ? snprintf(text, MESSAGE_HEAD_MAX, "GET %0*u\r\n",
						    (int)bytes - 6, number % 1000)
					  : snprintf(text, MESSAGE_HEAD_MAX, "$%u\r\n", bytes - 6));
	/* five digits of length, so that the head does not depend on it */
	if (direction == RESPONSE)
		return (unsigned)snprintf(text, MESSAGE_HEAD_MAX, "$%05u\r\n", bytes - 10);
	return (unsigned)snprintf(text, MESSAGE_HEAD_MAX,
		"*3\r\n$3\r\nSET\r\n$8\r\nkey:%04u\r\n$%05u\r\n", number % 10000, bytes - 37);
}

/* Writes the packet that stands at a position of its direction's stream. */
static void
put_packet(struct traffic *traffic, uint64_t position, unsigned direction, struct rte_mbuf *mbuf)
{
	const unsigned span = traffic->group * traffic->turns;
	const unsigned in_span = (unsigned)(position % span);
	const unsigned packet = in_span / traffic->group;
	const bool ack = packet == traffic->shape.packets;
	/* what a client ACKs is the response that came a turn after the request */
	const uint64_t group =
		position / span + (ack && direction == REQUEST ? traffic->groups - 2 : 0);
	const unsigned number =
		(unsigned)(group % traffic->groups) * traffic->group + in_span % traffic->group;
	const unsigned payload_bytes = ack ? 0 : traffic->payload_bytes;
	const unsigned frame_bytes = traffic->header_bytes + payload_bytes;
	const unsigned message_bytes = payload_bytes * traffic->shape.packets;
	struct traffic_flow *flow = &traffic->flows[number];
	uint8_t *at;

	rte_pktmbuf_reset(mbuf);
	at = (uint8_t *)rte_pktmbuf_append(mbuf, (uint16_t)frame_bytes);
	at = put_headers(traffic, at, number, direction, frame_bytes - ETHER_BYTES,
		FLAG_ACK | (packet + 1 == traffic->shape.packets ? FLAG_PSH : 0));
	if (traffic->header_bytes == HEADER_BYTES_MAX)
		at = put32(put32(put32(at, 0x0101080a), traffic->now_ms), traffic->now_ms);
	memset(at, 'x', RTE_MIN(payload_bytes, MESSAGE_HEAD_MAX));
	if (packet == 0) {
		uint8_t head[MESSAGE_HEAD_MAX];
		unsigned bytes = message_head(
			traffic, direction, flow->message[direction]++, message_bytes, head);

		memcpy(at, head, bytes);
	}
	if (traffic->shape.port == TRAFFIC_RESP_PORT && packet + 1 == traffic->shape.packets)
		memcpy(at + payload_bytes - 2, "\r\n", 2);
	flow->seq[direction] += payload_bytes;
}

unsigned
traffic_next(struct traffic *traffic, struct rte_mbuf **to_service, struct rte_mbuf **from_service,
	unsigned count)
{
	/* whole bursts, so that the bursts of both sides stay in step */
	const unsigned lag = RTE_ALIGN_MUL_CEIL(traffic->group * traffic->turns, count);
	const bool responses = traffic->sent >= lag;

	traffic->now_ms = now_ms();
	for (unsigned i = 0; i < count; i++)
		put_packet(traffic, traffic->sent + i, REQUEST, to_service[i]);
	for (unsigned i = 0; responses && i < count; i++)
		put_packet(traffic, traffic->sent + i - lag, RESPONSE, from_service[i]);
	traffic->sent += count;
	return responses ? count : 0;
}

static void
put_syn(struct traffic *traffic, unsigned number, unsigned direction, struct rte_mbuf *mbuf)
{
	const unsigned bytes = ETHER_BYTES + IPV4_BYTES + TCP_BYTES + SYN_OPTION_BYTES;
	uint8_t *at;

	rte_pktmbuf_reset(mbuf);
	at = (uint8_t *)rte_pktmbuf_append(mbuf, (uint16_t)bytes);
	at = put_headers(traffic, at, number, direction, bytes - ETHER_BYTES,
		direction == REQUEST ? FLAG_SYN : FLAG_SYN | FLAG_ACK);
	at = put32(at, 0x020405b4); /* MSS 1460 */
	at = put32(at, 0x01030300 | WINDOW_SCALE);
	put32(at, 0x01010402); /* SACK permitted */
	traffic->flows[number].seq[direction]++;
}

unsigned
traffic_handshake(struct traffic *traffic, struct rte_mbuf **to_service,
	struct rte_mbuf **from_service, unsigned count)
{
	unsigned i;

	for (i = 0; i < count && traffic->shaken < traffic->shape.flows; i++, traffic->shaken++) {
		put_syn(traffic, traffic->shaken, REQUEST, to_service[i]);
		put_syn(traffic, traffic->shaken, RESPONSE, from_service[i]);
	}
	return i;
}
