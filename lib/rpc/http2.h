/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Header blocks of HTTP/2, decoded by libnghttp2 with memory of the connection:
 * what a framer wants to know of a request or a response. Header values are
 * neither kept nor told, but for those here.
 */
#pragma once

#include "bs_framer.h"

#define HTTP2_TABLE_MAX 65536u /* a larger dynamic table is not kept: RFC 9113 6.5.2 */

struct http2_headers;

/* NULL: no memory. Given back with http2_headers_free() (NULL is fine). */
struct http2_headers *http2_headers_new(struct bs_frame_memory *memory);
void http2_headers_free(struct http2_headers *headers);

/* The other end allows a table of this size (SETTINGS_HEADER_TABLE_SIZE); growing only, and not
 * amid a block. False: no memory. */
bool http2_headers_table(struct http2_headers *headers, uint32_t bytes);

/*
 * The next bytes of a header block; `last`: all of it is there. False: it makes
 * no sense, refers to what was not seen, or there is no memory: then nothing more
 * can be read with these.
 */
bool http2_headers_take(
	struct http2_headers *headers, const uint8_t *data, size_t bytes, bool last);

/* Tells what the block said, and begins anew. *status: 0 if it had none (trailers). */
void http2_headers_tell(struct http2_headers *headers, struct bs_frame *frame, unsigned *status);
