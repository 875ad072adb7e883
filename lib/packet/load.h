/* SPDX-License-Identifier: BSD-3-Clause */
/* Unaligned reads in network byte order. The caller has checked the length. */
#pragma once

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t
load_be16(const uint8_t *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return be16toh(value);
}

static inline uint32_t
load_raw32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline uint32_t
load_be32(const uint8_t *at)
{
	return be32toh(load_raw32(at));
}

static inline uint64_t
load_be64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return be64toh(value);
}

static inline void
store_be64(uint8_t *at, uint64_t value)
{
	value = htobe64(value);
	memcpy(at, &value, sizeof(value));
}
