/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums over whole packets; see bs_checksum.h. The hot path only adjusts.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "bs_checksum.h"
#include "bytes.h"

#define PROTOCOL_TCP 6u
#define PROTOCOL_UDP 17u
#define TCP_CHECKSUM_AT 16u
#define UDP_CHECKSUM_AT 6u

uint16_t
bs_checksum_sum(const uint8_t *bytes, size_t len)
{
	/*
	 * Words of 32 bits in the machine's order into 64 bits: no carry is lost
	 * before 2^32 words, and the order is put right once at the end (RFC 1071
	 * section 2 (B)). Two sums, so that one addition does not wait for the other.
	 */
	uint64_t even = 0, odd = 0;

	while (len >= 8) {
		uint32_t word[2];

		memcpy(word, bytes, sizeof(word));
		even += word[0];
		odd += word[1];
		bytes += 8;
		len -= 8;
	}
	if (len > 0) {
		uint32_t word[2] = {0, 0};

		memcpy(word, bytes, len);
		even += word[0];
		odd += word[1];
	}
	return be16toh(bs_checksum_fold(even + odd));
}

/* Sum of the first `need` bytes of the pieces; false if they hold fewer. */
static bool
pieces_sum(const struct iovec *pieces, unsigned count, size_t need, uint64_t *sum)
{
	bool odd = false;

	for (unsigned i = 0; i < count && need > 0; i++) {
		size_t len = pieces[i].iov_len < need ? pieces[i].iov_len : need;
		uint16_t part = bs_checksum_sum(pieces[i].iov_base, len);

		*sum += odd ? __builtin_bswap16(part) : part;
		odd ^= len & 1;
		need -= len;
	}
	return need == 0;
}

/*
 * The sum of pseudo-header, transport header with its checksum field as it is,
 * and payload. 0, or -EINVAL.
 */
static int
transport_sum(
	const struct bs_packet *packet, const struct iovec *payload, unsigned count, uint16_t *out)
{
	const uint8_t *data = packet->data;
	const uint8_t *ip = data + packet->l3, *l4 = data + packet->l4;
	uint32_t header_len = (uint32_t)packet->payload - packet->l4;
	uint64_t sum;

	if (packet->parse != BS_PARSE_OK || packet->payload > packet->caplen ||
		(packet->l4_protocol != PROTOCOL_TCP && packet->l4_protocol != PROTOCOL_UDP))
		return -EINVAL;
	sum = ip[0] >> 4 == 4 ? bs_checksum_sum(ip + 12, 2 * 4) : bs_checksum_sum(ip + 8, 2 * 16);
	sum += (uint64_t)packet->l4_protocol + header_len + packet->payload_len;
	sum += bs_checksum_sum(l4, header_len);
	if (!pieces_sum(payload, count, packet->payload_len, &sum))
		return -EINVAL;
	*out = bs_checksum_fold(sum);
	return 0;
}

int
bs_checksum_complete(
	struct bs_packet *packet, uint8_t *data, const struct iovec *payload, unsigned count)
{
	bool udp = packet->l4_protocol == PROTOCOL_UDP;
	uint8_t *field = data + packet->l4 + (udp ? UDP_CHECKSUM_AT : TCP_CHECKSUM_AT);
	uint16_t sum, checksum;
	int ret = transport_sum(packet, payload, count, &sum);

	if (ret < 0)
		return ret;
	/* Less what the field itself put into the sum. */
	checksum = (uint16_t)~bs_checksum_fold((uint64_t)sum + (uint16_t)~get16(field));
	put16(field, udp && checksum == 0 ? 0xFFFF : checksum);
	packet->l4_checksum_partial = 0;
	return 0;
}

bool
bs_checksum_ok(const struct bs_packet *packet, const struct iovec *payload, unsigned count)
{
	const uint8_t *ip = packet->data + packet->l3;
	uint16_t sum;

	if (transport_sum(packet, payload, count, &sum) < 0)
		return false;
	if (ip[0] >> 4 == 4 && bs_checksum_sum(ip, (ip[0] & 0x0fu) * 4) != 0xFFFF)
		return false;
	if (packet->l4_protocol == PROTOCOL_UDP &&
		get16(packet->data + packet->l4 + UDP_CHECKSUM_AT) == 0)
		return ip[0] >> 4 == 4;
	return sum == 0xFFFF;
}
