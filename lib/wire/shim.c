/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes of the shim and of the TCP option around it; see bs_shim.h.
 */
#include <errno.h>

#include "bs_shim.h"
#include "bytes.h"

#define OPTION_HEADER_BYTES (BS_SHIM_OPTION_BYTES - BS_SHIM_BYTES)

void
bs_shim_encode(const struct bs_shim *shim, uint8_t out[BS_SHIM_BYTES])
{
	out[0] = (uint8_t)(shim->version << 4 | (shim->flags & 0x0f));
	out[1] = shim->hops;
	out[2] = shim->class_;
	out[3] = 0;
	put64(out + 4, shim->rpc_id);
	put32(out + 12, shim->remaining);
}

int
bs_shim_decode(const uint8_t *bytes, size_t len, struct bs_shim *shim)
{
	if (len != BS_SHIM_BYTES || bytes[0] >> 4 != BS_SHIM_VERSION)
		return -EINVAL;
	shim->version = BS_SHIM_VERSION;
	shim->flags = bytes[0] & (BS_SHIM_RESPONSE | BS_SHIM_MORE);
	shim->hops = bytes[1];
	shim->class_ = bytes[2];
	shim->rpc_id = get64(bytes + 4);
	shim->remaining = get32(bytes + 12);
	return 0;
}

void
bs_shim_option_encode(const struct bs_shim *shim, uint8_t out[BS_SHIM_OPTION_BYTES])
{
	out[0] = BS_TCP_OPTION_EXPERIMENT;
	out[1] = BS_SHIM_OPTION_BYTES;
	put16(out + 2, BS_SHIM_EXID);
	bs_shim_encode(shim, out + OPTION_HEADER_BYTES);
}

int
bs_shim_option_decode(const uint8_t *option, size_t len, struct bs_shim *shim)
{
	if (len < BS_SHIM_OPTION_BYTES || option[0] != BS_TCP_OPTION_EXPERIMENT ||
		option[1] != BS_SHIM_OPTION_BYTES || get16(option + 2) != BS_SHIM_EXID)
		return -EINVAL;
	return bs_shim_decode(option + OPTION_HEADER_BYTES, BS_SHIM_BYTES, shim);
}
