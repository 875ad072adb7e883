/* SPDX-License-Identifier: BSD-3-Clause */
/* See http2.h. */
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <string.h>

#include "http2.h"
#include "traceparent.h"

#define METHOD_BYTES 24u

struct http2_headers {
	struct bs_frame_memory *memory;
	nghttp2_mem mem; /* of the inflater, which keeps a pointer to it */
	nghttp2_hd_inflater *inflater;
	uint32_t table_bytes;
	unsigned status; /* of :status */
	int grpc_status; /* -1: none */
	uint8_t method_len, path_len;
	struct traceparent trace;
	char method[METHOD_BYTES];
	char path[BS_FRAME_LABEL_BYTES]; /* up to "?" */
};

static void *
mem_malloc(size_t bytes, void *memory)
{
	return bs_frame_alloc(memory, bytes);
}

static void
mem_free(void *block, void *memory)
{
	bs_frame_free(memory, block);
}

static void *
mem_calloc(size_t count, size_t bytes, void *memory)
{
	void *block = bs_frame_alloc(memory, count * bytes);

	if (block != NULL)
		memset(block, 0, count * bytes);
	return block;
}

static void *
mem_realloc(void *block, size_t bytes, void *memory)
{
	return bs_frame_realloc(memory, block, bytes);
}

static void
begin(struct http2_headers *headers)
{
	headers->status = 0;
	headers->grpc_status = -1;
	headers->method_len = headers->path_len = 0;
	memset(&headers->trace, 0, sizeof(headers->trace));
}

struct http2_headers *
http2_headers_new(struct bs_frame_memory *memory)
{
	struct http2_headers *headers =
		memory == NULL ? NULL : bs_frame_alloc(memory, sizeof(*headers));

	if (headers == NULL)
		return NULL;
	memset(headers, 0, sizeof(*headers));
	headers->memory = memory;
	headers->mem = (nghttp2_mem){memory, mem_malloc, mem_free, mem_calloc, mem_realloc};
	headers->table_bytes = NGHTTP2_DEFAULT_HEADER_TABLE_SIZE;
	begin(headers);
	if (nghttp2_hd_inflate_new2(&headers->inflater, &headers->mem) != 0) {
		bs_frame_free(memory, headers);
		return NULL;
	}
	return headers;
}

void
http2_headers_free(struct http2_headers *headers)
{
	if (headers == NULL)
		return;
	nghttp2_hd_inflate_del(headers->inflater);
	bs_frame_free(headers->memory, headers);
}

bool
http2_headers_table(struct http2_headers *headers, uint32_t bytes)
{
	if (bytes > HTTP2_TABLE_MAX)
		bytes = HTTP2_TABLE_MAX;
	if (bytes <= headers->table_bytes)
		return true;
	headers->table_bytes = bytes;
	return nghttp2_hd_inflate_change_table_size(headers->inflater, bytes) == 0;
}

static bool
is_named(const nghttp2_nv *nv, const char *name)
{
	return nv->namelen == strlen(name) && memcmp(nv->name, name, nv->namelen) == 0;
}

/* A number of digits alone; -1 if it is none. */
static int
number_of(const nghttp2_nv *nv)
{
	int number = 0;

	if (nv->valuelen == 0 || nv->valuelen > 3)
		return -1;
	for (size_t i = 0; i < nv->valuelen; i++) {
		if ((uint8_t)(nv->value[i] - '0') > 9)
			return -1;
		number = number * 10 + nv->value[i] - '0';
	}
	return number;
}

static void
take_field(struct http2_headers *headers, const nghttp2_nv *nv)
{
	if (is_named(nv, ":method") && nv->valuelen <= sizeof(headers->method)) {
		headers->method_len = (uint8_t)nv->valuelen;
		memcpy(headers->method, nv->value, nv->valuelen);
	} else if (is_named(nv, ":path")) {
		const uint8_t *query = memchr(nv->value, '?', nv->valuelen);
		size_t bytes = query == NULL ? nv->valuelen : (size_t)(query - nv->value);

		headers->path_len =
			(uint8_t)(bytes < sizeof(headers->path) ? bytes : sizeof(headers->path));
		memcpy(headers->path, nv->value, headers->path_len);
	} else if (is_named(nv, ":status")) {
		int status = number_of(nv);

		headers->status = status > 0 ? (unsigned)status : 0;
	} else if (is_named(nv, "grpc-status")) {
		headers->grpc_status = number_of(nv);
	} else if (is_named(nv, "traceparent")) {
		for (size_t i = 0; i < nv->valuelen; i++)
			traceparent_byte(&headers->trace, nv->value[i]);
	}
}

bool
http2_headers_take(struct http2_headers *headers, const uint8_t *data, size_t bytes, bool last)
{
	for (;;) {
		nghttp2_nv nv;
		int flags = 0;
		ssize_t used =
			nghttp2_hd_inflate_hd2(headers->inflater, &nv, &flags, data, bytes, last);

		if (used < 0 || (size_t)used > bytes)
			return false;
		data += used;
		bytes -= (size_t)used;
		if (flags & NGHTTP2_HD_INFLATE_EMIT)
			take_field(headers, &nv);
		if (flags & NGHTTP2_HD_INFLATE_FINAL) {
			nghttp2_hd_inflate_end_headers(headers->inflater);
			return true;
		}
		if (bytes == 0 && !(flags & NGHTTP2_HD_INFLATE_EMIT))
			return !last;
	}
}

static uint8_t
label_of(const struct http2_headers *headers, char label[BS_FRAME_LABEL_BYTES])
{
	int bytes = snprintf(label, BS_FRAME_LABEL_BYTES, "%.*s %.*s", headers->method_len,
		headers->method, headers->path_len, headers->path);

	if (bytes >= (int)BS_FRAME_LABEL_BYTES)
		bytes = BS_FRAME_LABEL_BYTES - 1;
	return (uint8_t)bytes;
}

void
http2_headers_tell(struct http2_headers *headers, struct bs_frame *frame, unsigned *status)
{
	*status = headers->status;
	if (headers->method_len > 0) {
		frame->label_len = label_of(headers, frame->label);
		traceparent_tell(&headers->trace, frame);
	}
	if (headers->grpc_status >= 0) {
		frame->has_status = 1;
		frame->status = headers->grpc_status;
		frame->error = headers->grpc_status != 0;
	} else if (headers->status != 0) {
		frame->has_status = 1;
		frame->status = (int32_t)headers->status;
		frame->error = headers->status >= 400;
	}
	begin(headers);
}
