/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Big-endian numbers at any address. Private to lib/wire.
 */
#pragma once

#include <stdint.h>

static inline uint16_t
get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static inline uint32_t
get32(const uint8_t *at)
{
	return (uint32_t)get16(at) << 16 | get16(at + 2);
}

static inline uint64_t
get64(const uint8_t *at)
{
	return (uint64_t)get32(at) << 32 | get32(at + 4);
}

static inline void
put16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static inline void
put32(uint8_t *at, uint32_t value)
{
	put16(at, (uint16_t)(value >> 16));
	put16(at + 2, (uint16_t)value);
}

static inline void
put64(uint8_t *at, uint64_t value)
{
	put32(at, (uint32_t)(value >> 32));
	put32(at + 4, (uint32_t)value);
}
