/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PostgreSQL's protocol 3 (PostgreSQL documentation, chapter 55). A request is what
 * ends with Query, Sync or FunctionCall, with all messages before it; its
 * response is all up to ReadyForQuery. So are the startup, whose answers to the
 * server's questions are no requests, and a request for encryption, which is
 * answered by one byte. What the server says without a request is a push. Of SQL
 * the first word is told.
 */
#include <assert.h>
#include <string.h>

#include "bs_framer.h"
#include "load.h"
#include "sql.h"

#define HEADER 5u /* type, length */
#define STARTUP_HEADER 8u
#define STARTUP_BYTES_MAX 10000u /* MAX_STARTUP_PACKET_LENGTH of the server */
#define MESSAGE_MAX (1u << 30)

#define CODE_CANCEL 80877102u
#define CODE_SSL 80877103u
#define CODE_GSSENC 80877104u
#define CODE_VERSION_3 (3u << 16)

/* In shared[0]: the connection has had its first message; a byte answers next. */
#define STARTED 1u
#define BYTE_NEXT 2u
/* shared[1]: requests that have yet to be answered to their end. */

enum postgres_text { TEXT_NONE, TEXT_NAME, TEXT_SQL };

struct postgres_dir {
	uint8_t have;
	uint8_t header[STARTUP_HEADER];
	bool open;     /* a request, or a response, is in progress */
	uint8_t text;  /* enum postgres_text: what of the payload is being read */
	uint8_t ends;  /* the request ends with this message */
	uint32_t left; /* of the payload being read */
	struct sql_word word;
};

static_assert(sizeof(struct postgres_dir) <= BS_FRAME_STATE_BYTES, "state must fit");

/* The message whose payload has `left` bytes begins a request, or goes on with it. */
static void
request_tell(struct bs_frame_conn *conn, struct postgres_dir *dir, struct bs_frame *frame,
	const char *label, uint32_t left, bool ends)
{
	if (!dir->open) {
		frame->flags |= BS_FRAME_HEAD;
		bs_frame_label(frame, label);
	}
	dir->open = !ends;
	conn->shared[1] += ends;
	frame->skip = left;
	frame->flags |= (uint8_t)((left > 0 ? BS_FRAME_SKIP : 0) | (ends ? BS_FRAME_END : 0));
}

/* Joined late, there may be more answers than requests. */
static void
answered(struct bs_frame_conn *conn)
{
	if (conn->shared[1] > 0)
		conn->shared[1]--;
}

/* A message that is no part of a request or response. */
static void
alone_tell(struct bs_frame *frame, uint8_t role, uint32_t left)
{
	frame->flags = BS_FRAME_HEAD | BS_FRAME_END | (left > 0 ? BS_FRAME_SKIP : 0);
	frame->role = role;
	frame->skip = left;
}

/* --- from the client ---------------------------------------------------------- */

/* False: it is none. */
static bool
startup_take(struct bs_frame_conn *conn, struct postgres_dir *dir, struct bs_frame *frame)
{
	const uint32_t bytes = load_be32(dir->header), code = load_be32(dir->header + 4);

	dir->have = 0;
	if (bytes < STARTUP_HEADER || bytes > STARTUP_BYTES_MAX)
		return false;
	if (code == CODE_SSL || code == CODE_GSSENC) {
		conn->shared[0] |= BYTE_NEXT;
		request_tell(conn, dir, frame, code == CODE_SSL ? "SSLRequest" : "GSSENCRequest",
			bytes - STARTUP_HEADER, true);
		return true;
	}
	conn->shared[0] |= STARTED;
	if (code == CODE_CANCEL) {
		alone_tell(frame, BS_ROLE_REQUEST, bytes - STARTUP_HEADER);
		frame->oneway = BS_ONEWAY;
		bs_frame_label(frame, "CancelRequest");
		return true;
	}
	if (code >> 16 != CODE_VERSION_3 >> 16)
		return false;
	request_tell(conn, dir, frame, "StartupMessage", bytes - STARTUP_HEADER, true);
	return true;
}

/* Reads the first word of an SQL text. True if it is known, or there is none. */
static bool
text_take(struct postgres_dir *dir, const uint8_t **at, const uint8_t *end)
{
	while (*at < end && dir->left > 0) {
		const uint8_t byte = *(*at)++;

		dir->left--;
		if (dir->text == TEXT_NAME)
			dir->text = byte == 0 ? TEXT_SQL : TEXT_NAME;
		else if (sql_word_byte(&dir->word, byte))
			return true;
	}
	return dir->left == 0;
}

static void
text_tell(struct bs_frame_conn *conn, struct postgres_dir *dir, struct bs_frame *frame)
{
	const struct sql_word word = dir->word;

	dir->text = TEXT_NONE;
	memset(&dir->word, 0, sizeof(dir->word));
	request_tell(conn, dir, frame, word.bytes > 0 ? word.text : "Query", dir->left, dir->ends);
	dir->left = 0;
}

static void
text_begins(struct postgres_dir *dir, uint8_t text, uint32_t left, bool ends)
{
	dir->text = text;
	dir->left = left;
	dir->ends = ends;
}

/* False: there is no such message. */
static bool
client_take(struct bs_frame_conn *conn, struct postgres_dir *dir, struct bs_frame *frame)
{
	const uint32_t bytes = load_be32(dir->header + 1), left = bytes - 4;

	dir->have = 0;
	conn->shared[0] |= STARTED;
	if (bytes < 4 || bytes > MESSAGE_MAX)
		return false;
	switch (dir->header[0]) {
	case 'Q':
		text_begins(dir, TEXT_SQL, left, true);
		return left > 0;
	case 'P':
		if (dir->open)
			request_tell(conn, dir, frame, "", left, false);
		else
			text_begins(dir, TEXT_NAME, left, false);
		return left > 0;
	case 'B':
	case 'D':
	case 'E':
	case 'C':
	case 'H':
		request_tell(conn, dir, frame, "EXECUTE", left, false);
		return true;
	case 'S':
		request_tell(conn, dir, frame, "Sync", left, true);
		return true;
	case 'F':
		request_tell(conn, dir, frame, "FunctionCall", left, true);
		return true;
	case 'p': /* an answer to the server's question who it is */
	case 'd':
	case 'c':
	case 'f': /* data of a COPY */
	case 'X':
		if (dir->open)
			request_tell(conn, dir, frame, "", left, false);
		else
			alone_tell(frame, BS_ROLE_NONE, left);
		return true;
	default:
		return false;
	}
}

/* --- from the server ---------------------------------------------------------- */

static bool
is_server_type(uint8_t type)
{
	return type != '\0' && strchr("RKSZTDCEINA123nstGHWVvcd", type) != NULL;
}

static bool
server_take(struct bs_frame_conn *conn, struct postgres_dir *dir, struct bs_frame *frame)
{
	const uint32_t bytes = load_be32(dir->header + 1), left = bytes - 4;
	const uint8_t type = dir->header[0];
	const bool waits = conn->shared[1] > 0 || ((struct postgres_dir *)conn->dir[0].bytes)->open;

	dir->have = 0;
	if (!is_server_type(type) || bytes < 4 || bytes > MESSAGE_MAX)
		return false;
	if (!dir->open && !waits && type != 'Z') {
		alone_tell(frame, BS_ROLE_PUSH, left);
		return true;
	}
	if (!dir->open) {
		frame->flags = BS_FRAME_HEAD;
		frame->error = type == 'E';
	}
	dir->open = type != 'Z';
	if (type == 'Z')
		answered(conn);
	frame->skip = left;
	frame->flags |= (uint8_t)((left > 0 ? BS_FRAME_SKIP : 0) | (dir->open ? 0 : BS_FRAME_END));
	return true;
}

/* One byte says whether all that follows is encrypted. */
static bool
byte_take(struct bs_frame_conn *conn, uint8_t byte, struct bs_frame *frame)
{
	conn->shared[0] &= ~BYTE_NEXT;
	answered(conn);
	frame->flags = BS_FRAME_HEAD | BS_FRAME_END;
	if (byte == 'S' || byte == 'G')
		frame->until_close = BS_UNTIL_TUNNEL;
	return byte == 'S' || byte == 'G' || byte == 'N';
}

/* --------------------------------------------------------------------------------- */

/* Until its first message is known, a client's may be one without a type. */
static unsigned
header_bytes(const struct bs_frame_conn *conn, const struct postgres_dir *dir, bool from_server)
{
	return !from_server && !(conn->shared[0] & STARTED) && dir->header[0] == 0 ? STARTUP_HEADER
										   : HEADER;
}

static bool
header_take(struct bs_frame_conn *conn, struct postgres_dir *dir, bool from_server, uint8_t byte,
	struct bs_frame *frame)
{
	unsigned bytes;

	dir->header[dir->have++] = byte;
	bytes = header_bytes(conn, dir, from_server);
	if (dir->have < bytes)
		return true;
	if (bytes == STARTUP_HEADER)
		return startup_take(conn, dir, frame);
	return from_server ? server_take(conn, dir, frame) : client_take(conn, dir, frame);
}

static size_t
postgres_feed(const struct bs_framer *framer, struct bs_frame_conn *conn, bool from_server,
	const uint8_t *data, size_t bytes, struct bs_frame *frame)
{
	struct postgres_dir *dir = (struct postgres_dir *)conn->dir[from_server].bytes;
	const uint8_t *at = data, *end = data + bytes;
	bool good = true;

	(void)framer;
	while (at < end && frame->flags == 0 && good) {
		if (from_server && dir->have == 0 && (conn->shared[0] & BYTE_NEXT))
			good = byte_take(conn, *at++, frame);
		else if (dir->text == TEXT_NONE)
			good = header_take(conn, dir, from_server, *at++, frame);
		else if (text_take(dir, &at, end))
			text_tell(conn, dir, frame);
	}
	if (!good) {
		memset(dir, 0, sizeof(*dir));
		memset(frame, 0, sizeof(*frame));
		frame->flags = BS_FRAME_BAD;
	}
	return (size_t)(at - data);
}

/* A startup message, a query that ends with a NUL, and the server's question leave no doubt. */
static int
postgres_probe(const struct bs_framer *framer, bool from_server, const uint8_t *data, size_t bytes)
{
	uint32_t code, length;

	(void)framer;
	if (bytes < STARTUP_HEADER)
		return bytes == 0 || data[0] == 0 || data[0] == 'Q' || data[0] == 'P' ||
		       from_server;
	code = load_be32(data + 4);
	length = load_be32(data);
	if (!from_server && data[0] == 0)
		return length >= STARTUP_HEADER && length <= STARTUP_BYTES_MAX &&
				       (code == CODE_VERSION_3 ||
					       (code >= CODE_CANCEL && code <= CODE_GSSENC))
			       ? 2
			       : 0;
	length = load_be32(data + 1);
	if (length < 4 || length > MESSAGE_MAX)
		return 0;
	if (from_server)
		return !is_server_type(data[0])					       ? 0
		       : data[0] == 'R' && length <= 1024 && load_be32(data + 5) <= 12 ? 2
										       : 1;
	if (data[0] == 'Q' && length + 1 == bytes)
		return data[bytes - 1] == '\0' ? 2 : 0;
	return strchr("QPBDECHSFpdcfX", data[0]) != NULL ? 1 : 0;
}

const struct bs_framer_ops bs_framer_postgres = {
	.name = "postgres",
	.pairing = BS_PAIR_BY_ORDER,
	.feed = postgres_feed,
	.probe = postgres_probe,
	.ports = {5432, 6432},
};
