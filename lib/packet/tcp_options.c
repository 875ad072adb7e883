/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The TCP option list (RFC 9293 3.1). An option whose length is not what its
 * kind requires is passed over; one that runs past the list ends the walk.
 */
#include "load.h"
#include "tcp_options.h"

#define KIND_END 0
#define KIND_NOP 1
#define KIND_MSS 2	      /* RFC 9293 3.2 */
#define KIND_WSCALE 3	      /* RFC 7323 2.2 */
#define KIND_SACK_PERMITTED 4 /* RFC 2018 2 */
#define KIND_SACK 5	      /* RFC 2018 3 */
#define KIND_TIMESTAMP 8      /* RFC 7323 3.2 */
#define KIND_MD5 19	      /* RFC 2385 */
#define KIND_AO 29	      /* RFC 5925 2.2 */
#define KIND_EXP1 253	      /* RFC 6994 */
#define KIND_EXP2 254

#define WSCALE_MAX 14 /* RFC 7323 2.3 */

#define EXID_SHIM 0xb5c0
#define EXID_ANNOUNCE 0xb5c1
#define SHIM_BYTES 20
#define ANNOUNCE_BYTES 4

static void
parse_sack(struct bs_packet *packet, const uint8_t *option, unsigned bytes)
{
	unsigned count = (bytes - 2) / 8;

	if (bytes % 8 != 2 || count == 0 || count > BS_TCP_MAX_SACKS)
		return;
	for (unsigned i = 0; i < count; i++) {
		packet->sack[i].begin = load_be32(option + 2 + 8 * i);
		packet->sack[i].end = load_be32(option + 6 + 8 * i);
	}
	packet->sack_count = (uint8_t)count;
	packet->tcp_options |= BS_TCPOPT_SACK;
}

/* Kind 253 is told apart by its ExID; the first of each of ours counts. */
static void
parse_experiment(struct bs_packet *packet, const uint8_t *option, unsigned bytes)
{
	unsigned exid = option[0] == KIND_EXP1 && bytes >= 4 ? load_be16(option + 2) : 0;
	uint16_t offset = (uint16_t)(option - packet->data);

	if (exid == EXID_SHIM && bytes == SHIM_BYTES && packet->shim == 0) {
		packet->shim = offset;
		packet->tcp_options |= BS_TCPOPT_SHIM;
	} else if (exid == EXID_ANNOUNCE && bytes == ANNOUNCE_BYTES && packet->announce == 0) {
		packet->announce = offset;
		packet->tcp_options |= BS_TCPOPT_ANNOUNCE;
	} else {
		packet->tcp_options |= BS_TCPOPT_FOREIGN_EXP;
	}
}

static void
parse_option(struct bs_packet *packet, const uint8_t *option, unsigned bytes)
{
	switch (option[0]) {
	case KIND_MSS:
		if (bytes != 4)
			break;
		packet->mss = load_be16(option + 2);
		packet->tcp_options |= BS_TCPOPT_MSS;
		break;
	case KIND_WSCALE:
		if (bytes != 3)
			break;
		packet->wscale = option[2] < WSCALE_MAX ? option[2] : WSCALE_MAX;
		packet->tcp_options |= BS_TCPOPT_WSCALE;
		break;
	case KIND_SACK_PERMITTED:
		if (bytes == 2)
			packet->tcp_options |= BS_TCPOPT_SACK_PERMITTED;
		break;
	case KIND_SACK:
		parse_sack(packet, option, bytes);
		break;
	case KIND_TIMESTAMP:
		if (bytes != 10)
			break;
		packet->tsval = load_be32(option + 2);
		packet->tsecr = load_be32(option + 6);
		packet->tcp_options |= BS_TCPOPT_TIMESTAMP;
		break;
	case KIND_MD5:
	case KIND_AO:
		packet->tcp_options |= BS_TCPOPT_MD5_AO;
		break;
	case KIND_EXP1:
	case KIND_EXP2:
		parse_experiment(packet, option, bytes);
		break;
	default:
		break;
	}
}

void
tcp_options_parse(struct bs_packet *packet, uint32_t begin, uint32_t end)
{
	const uint8_t *option = packet->data + begin;
	const uint8_t *limit = packet->data + end;

	while (option < limit && option[0] != KIND_END) {
		if (option[0] == KIND_NOP) {
			option++;
			continue;
		}
		if (limit - option < 2 || option[1] < 2 || option[1] > limit - option) {
			packet->tcp_options |= BS_TCPOPT_MALFORMED;
			return;
		}
		parse_option(packet, option, option[1]);
		option += option[1];
	}
}
