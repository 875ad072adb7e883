/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shim: 16 bytes that tell every hop which RPC a packet belongs to and
 * where the next message begins. Big-endian:
 *
 *   version(4) flags(4) | hops(8) | class(8) | reserved(8)
 *   RPC-ID(64) = node(16) counter(48)
 *   remaining(32)
 *
 * In TCP it travels as an experimental option (kind 253 with a 16-bit ExID, RFC
 * 6994 section 3). Here it is only read and written; bs_carrier.h puts it into
 * packets. Nothing is kept: any thread may call everything.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define BS_SHIM_BYTES 16u
#define BS_SHIM_VERSION 1u

#define BS_SHIM_RESPONSE 8u /* flag: the packet carries a response */
#define BS_SHIM_MORE 4u	    /* flag: a further message begins in this packet */

/* Length of the message not known: derive nothing from `remaining`. */
#define BS_SHIM_REMAINING_UNKNOWN 0xFFFFFFFFu

#define BS_TCP_OPTION_EXPERIMENT 253u
#define BS_SHIM_EXID 0xB5C0u
#define BS_SHIM_OPTION_BYTES 20u /* kind, length, ExID, shim */
#define BS_ANNOUNCE_EXID 0xB5C1u
#define BS_ANNOUNCE_BYTES 4u /* kind, length, ExID */

struct bs_shim {
	uint8_t version; /* BS_SHIM_VERSION */
	uint8_t flags;	 /* BS_SHIM_RESPONSE, BS_SHIM_MORE */
	uint8_t hops;
	uint8_t class_; /* 0 is served first */
	uint64_t rpc_id;
	uint32_t remaining; /* bytes of this message from this packet's first payload byte on */
};

/* Writes the 16 bytes. Version and flags are cut to 4 bits, the reserved byte is 0. */
void bs_shim_encode(const struct bs_shim *shim, uint8_t out[BS_SHIM_BYTES]);

/*
 * Reads a shim of `len` bytes. Flags without a meaning here and the reserved
 * byte are ignored. 0, or -EINVAL (len is not 16, or another version) with
 * *shim untouched.
 */
int bs_shim_decode(const uint8_t *bytes, size_t len, struct bs_shim *shim);

/* Writes the TCP option: kind 253, length 20, ExID, shim. */
void bs_shim_option_encode(const struct bs_shim *shim, uint8_t out[BS_SHIM_OPTION_BYTES]);

/*
 * Reads the TCP option that begins at `option`; `len` bytes can be read there.
 * 0, or -EINVAL (kind, length, ExID or version is another, or the option is
 * longer than len) with *shim untouched.
 */
int bs_shim_option_decode(const uint8_t *option, size_t len, struct bs_shim *shim);
