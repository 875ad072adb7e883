/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internet checksums: a sum over bytes, the change of a checksum when some of
 * the words under it change, and the completion of one that a virtual peer left
 * to hardware that is not there. Sums are ones' complement sums of big-endian
 * 16-bit words, as numbers. Nothing is kept: any thread may call everything.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "bs_packet.h"

/* Folds a sum of 16-bit words (or of wider big-endian words: 2^16 = 1 mod 2^16 - 1) to 16 bits. */
static inline uint16_t
bs_checksum_fold(uint64_t sum)
{
	sum = (sum & 0xFFFFFFFFu) + (sum >> 32);
	sum = (sum & 0xFFFFFFFFu) + (sum >> 32);
	sum = (sum & 0xFFFFu) + (sum >> 16);
	sum = (sum & 0xFFFFu) + (sum >> 16);
	return (uint16_t)sum;
}

/*
 * The checksum after the words under it that summed to `before` (folded) sum to
 * `after`: RFC 1624 section 3, eqn 3. A checksum that was wrong stays wrong by
 * the same amount. Never returns 0xFFFF for a checksum that is not 0xFFFF.
 */
static inline uint16_t
bs_checksum_adjust(uint16_t checksum, uint16_t before, uint16_t after)
{
	return (uint16_t)~bs_checksum_fold(
		(uint64_t)(uint16_t)~checksum + (uint16_t)~before + after);
}

/*
 * The sum of `len` bytes at any address, an odd last byte padded with 0, folded,
 * not inverted (RFC 1071 section 1). Bytes that begin at an odd offset of what
 * is summed count with the two bytes of their sum swapped (section 2 (B)).
 */
uint16_t bs_checksum_sum(const uint8_t *bytes, size_t len);

/*
 * Writes the whole TCP or UDP checksum (RFC 9293 section 3.1, RFC 768, RFC 8200
 * section 8.1; UDP writes 0xFFFF for 0) of a packet of which parse() returned
 * BS_PARSE_OK, and clears packet->l4_checksum_partial. `data` is packet->data,
 * writable, with all headers; the payload is given in `count` pieces of any
 * length, which may go on behind its end (Ethernet padding). A routing header
 * with segments left is not considered: its packets' final destination is not
 * the one that is summed.
 * 0, or -EINVAL with nothing written: not TCP or UDP, headers not all there, or
 * pieces that end before the payload does.
 */
int bs_checksum_complete(
	struct bs_packet *packet, uint8_t *data, const struct iovec *payload, unsigned count);

/*
 * True if the IPv4 header's checksum and the TCP or UDP checksum are right (a
 * UDP checksum of 0 over IPv4 is none, and right). Arguments as above; false
 * also where complete() returns -EINVAL. For tests and tools: sums every byte.
 */
bool bs_checksum_ok(const struct bs_packet *packet, const struct iovec *payload, unsigned count);
