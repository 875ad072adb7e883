/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TSC cycles to tag and to untag one packet, 64 and 1500 bytes of IP packet,
 * headers in the first-level cache: what the edit itself costs a pipeline lcore.
 * Tag and untag alternate on a set of packets; the median of many rounds is
 * printed, so that preempted rounds do not count.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

#include "bs_tcp_edit.h"

#define PACKETS 64u
#define ROUNDS 4001u
#define HEADROOM BS_SHIM_OPTION_BYTES
#define HEADER_BYTES (14u + 20u + 32u) /* Ethernet, IPv4, TCP with a timestamp */
#define SLOT_BYTES 2048u

static uint8_t slots[PACKETS][SLOT_BYTES];
static struct bs_packet packets[PACKETS];

static int
compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void
packet_make(unsigned i, unsigned ip_bytes)
{
	static const uint8_t headers[HEADER_BYTES] = {
		[12] = 0x08,
		[14] = 0x45,
		[23] = 6,
		[26] = 10,
		[29] = 1,
		[30] = 10,
		[33] = 2,
		[46] = 0x80,
		[47] = BS_TCP_ACK,
		[54] = 1,
		1,
		8,
		10,
	};
	uint8_t *data = slots[i] + HEADROOM;

	memset(slots[i], 0x5A, SLOT_BYTES);
	memcpy(data, headers, sizeof(headers));
	data[16] = (uint8_t)(ip_bytes >> 8);
	data[17] = (uint8_t)ip_bytes;
	packets[i] =
		(struct bs_packet){.data = data, .caplen = 14 + ip_bytes, .len = 14 + ip_bytes};
	if (bs_packet_parse(&packets[i]) != BS_PARSE_OK)
		abort();
}

static void
measure(unsigned ip_bytes)
{
	static uint64_t tag[ROUNDS], untag[ROUNDS];
	struct bs_shim shim = {.version = BS_SHIM_VERSION, .rpc_id = 1, .remaining = 1448};

	for (unsigned i = 0; i < PACKETS; i++)
		packet_make(i, ip_bytes);
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t begin = __rdtsc(), middle, end;
		unsigned done = 0;

		for (unsigned i = 0; i < PACKETS; i++) {
			shim.rpc_id++;
			done += bs_tcp_tag(&packets[i], slots[i], &shim) == BS_REFUSE_NONE;
		}
		middle = __rdtsc();
		for (unsigned i = 0; i < PACKETS; i++)
			done += bs_tcp_untag(&packets[i], slots[i]) == 0;
		end = __rdtsc();
		if (done != 2 * PACKETS)
			abort();
		tag[round] = middle - begin;
		untag[round] = end - middle;
	}
	qsort(tag, ROUNDS, sizeof(tag[0]), compare);
	qsort(untag, ROUNDS, sizeof(untag[0]), compare);
	printf("%4u B: tag %" PRIu64 " cycles, untag %" PRIu64 " cycles\n", ip_bytes,
		tag[ROUNDS / 2] / PACKETS, untag[ROUNDS / 2] / PACKETS);
}

int
main(void)
{
	measure(64);
	measure(1500);
	return 0;
}
