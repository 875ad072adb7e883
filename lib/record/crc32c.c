/* SPDX-License-Identifier: BSD-3-Clause */
#include "crc32c.h"

#include <string.h>
#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

/* Of four bits: the reflected polynomial 0x82f63b78, applied four times. */
static const uint32_t of_nibble[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc,
	0x5125dad3, 0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
	0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};

uint32_t
crc32c_portable(const void *data, size_t bytes)
{
	const uint8_t *at = data;
	uint32_t sum = ~0u;

	for (; bytes > 0; bytes--, at++) {
		sum ^= *at;
		sum = sum >> 4 ^ of_nibble[sum & 15];
		sum = sum >> 4 ^ of_nibble[sum & 15];
	}
	return ~sum;
}

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) static uint32_t
crc32c_sse42(const void *data, size_t bytes)
{
	const uint8_t *at = data;
	uint64_t sum = ~0u;

	for (; bytes >= sizeof(uint64_t); bytes -= sizeof(uint64_t), at += sizeof(uint64_t)) {
		uint64_t eight;

		memcpy(&eight, at, sizeof(eight));
		sum = _mm_crc32_u64(sum, eight);
	}
	for (; bytes > 0; bytes--, at++)
		sum = _mm_crc32_u8((uint32_t)sum, *at);
	return ~(uint32_t)sum;
}

uint32_t
crc32c(const void *data, size_t bytes)
{
	return __builtin_cpu_supports("sse4.2") ? crc32c_sse42(data, bytes)
						: crc32c_portable(data, bytes);
}

#else

uint32_t
crc32c(const void *data, size_t bytes)
{
	return crc32c_portable(data, bytes);
}

#endif
