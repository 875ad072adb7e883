/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HTTP/2 (RFC 9113), and gRPC over it. An RPC is a stream: its HEADERS begin the
 * request and the response, DATA and trailers go on with them, END_STREAM ends
 * them; streams lie between each other. Header blocks refer to those before them
 * by how long ago that was (RFC 7541 section 2.3.3): what was not seen cannot be
 * mistaken for something else, so a block that refers to it is a stream without a
 * name, and reading begins anew behind it.
 */
#include <assert.h>
#include <string.h>

#include "http2.h"
#include "load.h"

#define FRAME_HEADER 9u
#define FRAME_DEFAULT 16384u /* section 4.2 */
#define STREAM_MASK 0x7fffffffu

enum http2_type {
	TYPE_DATA,
	TYPE_HEADERS,
	TYPE_PRIORITY,
	TYPE_RST_STREAM,
	TYPE_SETTINGS,
	TYPE_PUSH_PROMISE,
	TYPE_PING,
	TYPE_GOAWAY,
	TYPE_WINDOW_UPDATE,
	TYPE_CONTINUATION,
	TYPE_COUNT,
};

#define FLAG_END_STREAM 0x01u
#define FLAG_END_HEADERS 0x04u
#define FLAG_PADDED 0x08u
#define FLAG_PRIORITY 0x20u

#define SETTING_TABLE_SIZE 1u
#define SETTING_BYTES 6u
#define PRIORITY_BYTES 5u
#define PROMISE_BYTES 4u

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
#define PREFACE_BYTES (sizeof(preface) - 1)

/* In shared[from_server]: the largest table that direction may use, as its reader said. */

struct http2_dir {
	uint8_t preface; /* bytes of it that were read */
	uint8_t have;	 /* bytes of the frame's header */
	uint8_t before;	 /* bytes before the header block: padding length, priority */
	uint8_t setting_have;
	bool in_payload; /* of a frame that is read here */
	bool end_stream; /* of the HEADERS whose block goes on in CONTINUATION */
	bool promise;	 /* the block is of a PUSH_PROMISE */
	uint8_t type, flags;
	uint8_t padding; /* at the end of the payload */
	uint32_t stream, block_stream;
	uint32_t left;	      /* bytes of the payload */
	uint32_t last_stream; /* highest that began */
	uint8_t header[FRAME_HEADER];
	uint8_t setting[SETTING_BYTES];
	struct http2_headers *headers; /* NULL: none yet, none again, or no memory */
};

static_assert(sizeof(struct http2_dir) <= BS_FRAME_STATE_BYTES, "state must fit");

static struct http2_dir *
dir_of(struct bs_frame_conn *conn, bool from_server)
{
	return (struct http2_dir *)(void *)conn->dir[from_server].bytes;
}

static void
http2_forget(struct bs_frame_conn *conn, bool from_server)
{
	struct http2_dir *dir = dir_of(conn, from_server);

	http2_headers_free(dir->headers);
	memset(dir, 0, sizeof(*dir));
}

static void
headers_give_up(struct http2_dir *dir)
{
	http2_headers_free(dir->headers);
	dir->headers = NULL;
}

/* It counts from the next header block of the other direction on. */
static void
setting_take(struct bs_frame_conn *conn, bool from_server, const uint8_t *setting)
{
	uint32_t *table_bytes = &conn->shared[!from_server];

	if (setting[0] == 0 && setting[1] == SETTING_TABLE_SIZE &&
		load_be32(setting + 2) > *table_bytes)
		*table_bytes = load_be32(setting + 2);
}

/* --- frames ------------------------------------------------------------------ */

/* Tells a frame whose payload is of no interest. */
static void
pass_frame(struct http2_dir *dir, struct bs_frame *frame, uint8_t role)
{
	frame->flags = BS_FRAME_HEAD | BS_FRAME_END | (dir->left > 0 ? BS_FRAME_SKIP : 0);
	frame->role = role;
	frame->has_id = 1;
	frame->id = dir->stream;
	frame->skip = dir->left;
	dir->left = 0;
}

/* A stream that the client began: what the server pushes answers nothing. */
static bool
is_request_stream(uint32_t stream)
{
	return stream & 1;
}

static void
data_tell(struct http2_dir *dir, struct bs_frame *frame)
{
	pass_frame(dir, frame, is_request_stream(dir->stream) ? BS_ROLE_PART : BS_ROLE_NONE);
	if (!(dir->flags & FLAG_END_STREAM))
		frame->flags |= BS_FRAME_PART;
}

/* The header block is complete: what is it of? */
static void
block_tell(struct http2_dir *dir, bool from_server, struct bs_frame *frame)
{
	unsigned status = 0;

	if (dir->headers != NULL)
		http2_headers_tell(dir->headers, frame, &status);
	frame->flags = BS_FRAME_HEAD | BS_FRAME_END | (dir->end_stream ? 0 : BS_FRAME_PART);
	frame->has_id = 1;
	frame->id = dir->block_stream;
	if (dir->promise || !is_request_stream(dir->block_stream)) {
		frame->role = dir->promise ? BS_ROLE_PUSH : BS_ROLE_NONE;
		frame->has_status = 0;
		frame->flags &= (uint8_t)~BS_FRAME_PART;
	} else if (!from_server) {
		frame->role = dir->block_stream > dir->last_stream ? BS_ROLE_REQUEST : BS_ROLE_PART;
		dir->last_stream =
			frame->role == BS_ROLE_REQUEST ? dir->block_stream : dir->last_stream;
	} else if (status >= 100 && status < 200) {
		frame->role = BS_ROLE_INTERIM;
		frame->has_status = 0;
		frame->flags &= (uint8_t)~BS_FRAME_PART;
	} else {
		frame->role = status != 0 ? BS_ROLE_RESPONSE : BS_ROLE_PART;
	}
}

static bool
frame_makes_sense(const struct http2_dir *dir)
{
	switch (dir->type) {
	case TYPE_DATA:
	case TYPE_HEADERS:
	case TYPE_CONTINUATION:
		return dir->stream != 0;
	case TYPE_PRIORITY:
		return dir->stream != 0 && dir->left == PRIORITY_BYTES;
	case TYPE_RST_STREAM:
		return dir->stream != 0 && dir->left == 4;
	case TYPE_SETTINGS:
		return dir->stream == 0 && dir->left % SETTING_BYTES == 0;
	case TYPE_PUSH_PROMISE:
		return dir->stream != 0 && dir->left >= PROMISE_BYTES;
	case TYPE_PING:
		return dir->stream == 0 && dir->left == 8;
	case TYPE_GOAWAY:
		return dir->stream == 0 && dir->left >= 8;
	case TYPE_WINDOW_UPDATE:
		return dir->left == 4;
	default: /* to be ignored: section 4.1 */
		return true;
	}
}

static unsigned
is_padded(uint8_t flags)
{
	return (flags & FLAG_PADDED) != 0; /* by a length of one byte, before all else */
}

/* Bytes of a payload behind that and before the header block. */
static unsigned
fixed_before(uint8_t type, uint8_t flags)
{
	if (type == TYPE_PUSH_PROMISE)
		return PROMISE_BYTES;
	return flags & FLAG_PRIORITY ? PRIORITY_BYTES : 0;
}

/* The block of this frame is to be read, where it begins; false: there cannot be one. */
static bool
block_begins(struct http2_dir *dir, struct bs_frame_conn *conn, bool from_server)
{
	const bool promise = dir->type == TYPE_PUSH_PROMISE;

	dir->in_payload = true;
	if (dir->type == TYPE_CONTINUATION)
		return true;
	if (dir->headers == NULL)
		dir->headers = http2_headers_new(conn->memory);
	if (dir->headers != NULL && !http2_headers_table(dir->headers, conn->shared[from_server]))
		headers_give_up(dir);
	dir->block_stream = dir->stream;
	dir->promise = promise;
	dir->end_stream = !promise && (dir->flags & FLAG_END_STREAM);
	dir->before = (uint8_t)(is_padded(dir->flags) + fixed_before(dir->type, dir->flags));
	return dir->left >= dir->before;
}

/* The header of a frame is complete. False: it makes no sense. */
static bool
frame_begins(
	struct http2_dir *dir, struct bs_frame_conn *conn, bool from_server, struct bs_frame *frame)
{
	dir->have = 0;
	dir->left = load_be32(dir->header) >> 8;
	dir->type = dir->header[3];
	dir->flags = dir->header[4];
	dir->stream = load_be32(dir->header + 5) & STREAM_MASK;
	dir->padding = dir->before = 0;
	if (!frame_makes_sense(dir))
		return false;
	switch (dir->type) {
	case TYPE_DATA:
		data_tell(dir, frame);
		return true;
	case TYPE_HEADERS:
	case TYPE_PUSH_PROMISE:
	case TYPE_CONTINUATION:
		return block_begins(dir, conn, from_server);
	case TYPE_SETTINGS:
		dir->in_payload = dir->left > 0;
		dir->setting_have = 0;
		if (!dir->in_payload)
			pass_frame(dir, frame, BS_ROLE_NONE);
		return true;
	case TYPE_RST_STREAM:
		pass_frame(dir, frame, BS_ROLE_CANCEL);
		return true;
	default:
		pass_frame(dir, frame, BS_ROLE_NONE);
		return true;
	}
}

/* --- payloads ---------------------------------------------------------------- */

/* Bytes before the block: the first may be the length of the padding. */
static bool
before_take(struct http2_dir *dir, const uint8_t **at, const uint8_t *end)
{
	const unsigned rest = fixed_before(dir->type, dir->flags);

	while (dir->before > 0 && *at < end) {
		if (is_padded(dir->flags) && dir->before == rest + 1)
			dir->padding = **at;
		(*at)++;
		dir->before--;
		dir->left--;
	}
	return dir->before > 0 || dir->padding <= dir->left;
}

/* A block that cannot be read costs its names, not the connection. */
static bool
block_take(struct http2_dir *dir, bool from_server, const uint8_t **at, const uint8_t *end,
	struct bs_frame *frame)
{
	size_t bytes;
	bool ends;

	if (!before_take(dir, at, end))
		return false;
	if (dir->before > 0)
		return true;
	bytes = (size_t)(end - *at);
	if (bytes > dir->left - dir->padding)
		bytes = dir->left - dir->padding;
	dir->left -= (uint32_t)bytes;
	ends = dir->left == dir->padding && (dir->flags & FLAG_END_HEADERS);
	if (dir->headers != NULL && (bytes > 0 || ends) &&
		!http2_headers_take(dir->headers, *at, bytes, ends))
		headers_give_up(dir);
	*at += bytes;
	if (dir->left > dir->padding)
		return true;
	dir->in_payload = false;
	if (ends)
		block_tell(dir, from_server, frame); /* else the next CONTINUATION goes on */
	frame->skip = dir->left;
	if (dir->left > 0)
		frame->flags |= BS_FRAME_SKIP;
	dir->left = 0;
	return true;
}

static void
settings_take(struct http2_dir *dir, struct bs_frame_conn *conn, bool from_server,
	const uint8_t **at, const uint8_t *end, struct bs_frame *frame)
{
	while (*at < end && dir->left > 0) {
		dir->setting[dir->setting_have++] = *(*at)++;
		dir->left--;
		if (dir->setting_have == SETTING_BYTES) {
			dir->setting_have = 0;
			setting_take(conn, from_server, dir->setting);
		}
	}
	if (dir->left > 0)
		return;
	dir->in_payload = false;
	pass_frame(dir, frame, BS_ROLE_NONE);
}

/* Gathers the preface, or finds that there is none. False: what came of it is no frame either. */
static bool
preface_take(struct http2_dir *dir, const uint8_t **at, const uint8_t *end, struct bs_frame *frame)
{
	while (*at < end && dir->preface < PREFACE_BYTES) {
		if (**at != (uint8_t)preface[dir->preface])
			return false;
		(*at)++;
		dir->preface++;
	}
	if (dir->preface < PREFACE_BYTES)
		return true;
	frame->flags = BS_FRAME_END; /* it is no message */
	return true;
}

static size_t
http2_feed(const struct bs_framer *framer, struct bs_frame_conn *conn, bool from_server,
	const uint8_t *data, size_t bytes, struct bs_frame *frame)
{
	struct http2_dir *dir = dir_of(conn, from_server);
	const uint8_t *at = data, *end = data + bytes;
	bool good = true;

	(void)framer;
	while (at < end && frame->flags == 0 && good) {
		if (!from_server && !dir->in_payload && dir->have == 0 &&
			dir->preface < PREFACE_BYTES && (dir->preface > 0 || *at == 'P'))
			good = preface_take(dir, &at, end, frame);
		else if (dir->in_payload && dir->type == TYPE_SETTINGS)
			settings_take(dir, conn, from_server, &at, end, frame);
		else if (dir->in_payload)
			good = block_take(dir, from_server, &at, end, frame);
		else
			dir->header[dir->have++] = *at++;
		if (good && dir->have == FRAME_HEADER)
			good = frame_begins(dir, conn, from_server, frame);
		if (good && dir->in_payload && dir->left == dir->padding && dir->before == 0 &&
			frame->flags == 0 && dir->type != TYPE_SETTINGS)
			good = block_take(dir, from_server, &at, at, frame); /* an empty block */
	}
	if (!good) {
		memset(frame, 0, sizeof(*frame));
		frame->flags = BS_FRAME_BAD;
	}
	return (size_t)(at - data);
}

/* Does a header block begin as those do whose stream begins? RFC 7541, appendix A. */
static bool
is_first_block(bool from_server, uint8_t flags, const uint8_t *block, size_t bytes)
{
	const size_t before = is_padded(flags) + fixed_before(TYPE_HEADERS, flags);
	bool method = false, scheme = false;

	if (bytes <= before)
		return false;
	if (from_server)
		return block[before] >= 0x88 && block[before] <= 0x8e; /* :status */
	for (size_t i = before; i < bytes && i < before + 4; i++) {
		method = method || block[i] == 0x82 || block[i] == 0x83; /* GET, POST */
		scheme = scheme || block[i] == 0x86 || block[i] == 0x87; /* http, https */
	}
	return method && scheme;
}

/* Of single frames, a server's first SETTINGS and the beginning of a stream leave no doubt. */
static int
http2_probe(const struct bs_framer *framer, bool from_server, const uint8_t *data, size_t bytes)
{
	struct http2_dir dir = {0};

	(void)framer;
	if (!from_server && bytes > 0 && data[0] == 'P') {
		size_t n = bytes < PREFACE_BYTES ? bytes : PREFACE_BYTES;

		return memcmp(data, preface, n) != 0 ? 0 : n == PREFACE_BYTES ? 2 : 1;
	}
	if (bytes < FRAME_HEADER)
		return 1;
	dir.left = load_be32(data) >> 8;
	dir.type = data[3];
	dir.flags = data[4];
	dir.stream = load_be32(data + 5);
	if (dir.type >= TYPE_COUNT || dir.left > FRAME_DEFAULT || dir.stream > STREAM_MASK ||
		!frame_makes_sense(&dir))
		return 0;
	if (from_server && dir.type == TYPE_SETTINGS && dir.flags <= 1 &&
		dir.left <= 10 * SETTING_BYTES)
		return 2;
	return dir.type == TYPE_HEADERS && is_request_stream(dir.stream) &&
			       is_first_block(from_server, dir.flags, data + FRAME_HEADER,
				       bytes - FRAME_HEADER)
		       ? 2
		       : 1;
}

const struct bs_framer_ops bs_framer_http2 = {
	.name = "http2",
	.pairing = BS_PAIR_BY_ID,
	.sibling = &bs_framer_http1,
	.feed = http2_feed,
	.probe = http2_probe,
	.forget = http2_forget,
	.ports = {50051},
};
