/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HTTP/1.x (RFC 9110, RFC 9112). Of a head only what decides on the length of
 * the body is looked at, in RFC 9112 section 6.3's order:
 * - no body: responses to HEAD, 1xx, 204, 304; 101, and 2xx to CONNECT, turn
 *   the connection into a tunnel;
 * - Transfer-Encoding overrides Content-Length, also in HTTP/1.0: what a server
 *   that takes such a message does. Not ending in chunked, it makes a response
 *   end with the connection and a request BAD (a server answers 400);
 * - Content-Length values that differ or are no number are BAD;
 * - a request without either has no body, a response ends with the connection.
 * Header values are neither copied nor told, but for traceparent.
 */
#include <assert.h>
#include <string.h>

#include "bs_framer.h"
#include "traceparent.h"

#define HEAD_BYTES_MAX 65536u /* of a head, of trailers, of one chunk's size line */
#define METHOD_BYTES_MAX 24u
#define BODY_BYTES_MAX (1ull << 62)
#define HEAD_BYTES_RESET UINT32_MAX /* another of these begins */
#define SMALL_CHUNK 64u		    /* up to this much is passed over here, not told as a skip */

enum http1_phase {
	HTTP1_START,
	HTTP1_START_LF, /* behind the CR of an empty line between messages */
	HTTP1_METHOD,
	HTTP1_TARGET,
	HTTP1_TARGET_REST, /* behind "?", or past what a label holds */
	HTTP1_VERSION,	   /* of a request line */
	HTTP1_STATUS,	   /* version and status code */
	HTTP1_REASON,
	HTTP1_LINE, /* at the beginning of a header or trailer line */
	HTTP1_NAME, /* may be one of the names we want */
	HTTP1_VALUE,
	HTTP1_LINE_REST, /* of no interest */
	HTTP1_EMPTY_LF,	 /* behind the CR of the line that ends the head */
	HTTP1_CHUNK_SIZE,
	HTTP1_CHUNK_REST, /* extensions */
	HTTP1_CHUNK_PASS, /* data of a small chunk */
	HTTP1_REST,	  /* body that ends with the connection */
};

enum http1_field { FIELD_NONE, FIELD_LENGTH, FIELD_CODING, FIELD_TRACE };

static const char *const field_names[] = {"", "content-length", "transfer-encoding", "traceparent"};
#define TRACE_SHARED 3u /* bytes in which the last two begin alike */

/* What a response must know of its request. Two bits each, oldest lowest, in shared[0..1]. */
enum http1_request { REQUEST_PLAIN, REQUEST_HEAD, REQUEST_CONNECT };
#define IN_FLIGHT_KEPT 32u
/* Requests in flight, those past what is kept included: shared[2]. Tunnel: shared[3]. */
#define SHARED_KINDS 0
#define SHARED_IN_FLIGHT 2
#define SHARED_TUNNEL 3

struct http1_dir {
	uint8_t phase; /* enum http1_phase */
	uint8_t field; /* enum http1_field of the line being read, also when folded */
	uint8_t match; /* bytes of the name, or of "chunked", that fit; NO_MATCH */
	bool trailers;
	bool has_length, has_coding, is_chunked;
	bool number_any, number_done; /* digits were seen; and white space behind them */
	uint8_t request;	      /* enum http1_request */
	uint8_t have;		      /* bytes in text */
	uint8_t target_at;	      /* in text */
	uint16_t status;
	uint32_t head_bytes;
	uint64_t length;		 /* Content-Length */
	uint64_t number;		 /* being read */
	struct traceparent trace;	 /* of a request */
	char text[BS_FRAME_LABEL_BYTES]; /* label of a request; start of a status line */
	char version[8];
};

static_assert(sizeof(struct http1_dir) <= BS_FRAME_STATE_BYTES, "state must fit");

#define NO_MATCH 0xffu

enum step {
	STEP_MORE, /* bytes are used up, or the phase has changed: go on */
	STEP_TELL, /* frame->flags are set */
	STEP_BAD,
};

static uint64_t
kinds_load(const struct bs_frame_conn *conn)
{
	return (uint64_t)conn->shared[SHARED_KINDS + 1] << 32 | conn->shared[SHARED_KINDS];
}

static void
kinds_store(struct bs_frame_conn *conn, uint64_t kinds)
{
	conn->shared[SHARED_KINDS] = (uint32_t)kinds;
	conn->shared[SHARED_KINDS + 1] = (uint32_t)(kinds >> 32);
}

/* Past the bound a request counts as plain. */
static void
request_push(struct bs_frame_conn *conn, uint8_t request)
{
	uint32_t count = conn->shared[SHARED_IN_FLIGHT]++;

	if (count < IN_FLIGHT_KEPT && request != REQUEST_PLAIN)
		kinds_store(conn, kinds_load(conn) | (uint64_t)request << 2 * count);
}

/* The request that a response answers; plain if we have not seen it. */
static uint8_t
request_pop(struct bs_frame_conn *conn)
{
	uint64_t kinds = kinds_load(conn);

	if (conn->shared[SHARED_IN_FLIGHT] == 0)
		return REQUEST_PLAIN;
	conn->shared[SHARED_IN_FLIGHT]--;
	kinds_store(conn, kinds >> 2);
	return kinds & 3;
}

static bool
text_is(const char *text, size_t bytes, const char *what)
{
	return bytes == strlen(what) && memcmp(text, what, bytes) == 0;
}

/* tchar, RFC 9110 section 5.6.2. */
static bool
is_token(uint8_t byte)
{
	return (uint8_t)((byte | 0x20) - 'a') < 26 || (uint8_t)(byte - '0') < 10 ||
	       (byte != 0 && strchr("!#$%&'*+-.^_`|~", byte) != NULL);
}

static uint8_t
lower(uint8_t byte)
{
	return (uint8_t)(byte - 'A') < 26 ? (uint8_t)(byte | 0x20) : byte;
}

static bool
is_space(uint8_t byte)
{
	return byte == ' ' || byte == '\t';
}

static enum step
message_end(struct http1_dir *dir, struct bs_frame *frame)
{
	frame->flags |= BS_FRAME_END;
	dir->phase = HTTP1_START;
	return STEP_TELL;
}

static enum step
start_take(struct http1_dir *dir, bool from_server, const uint8_t **at)
{
	/* A lone CR or LF: an empty line, which RFC 9112 section 2.2 says to ignore. */
	memset(dir, 0, offsetof(struct http1_dir, text));
	if (**at == '\r' || **at == '\n') {
		*at += **at == '\r';
		dir->phase = HTTP1_START_LF;
	} else {
		dir->phase = from_server ? HTTP1_STATUS : HTTP1_METHOD;
	}
	return STEP_MORE;
}

static enum step
method_take(struct http1_dir *dir, const uint8_t **at, const uint8_t *end)
{
	while (*at < end) {
		uint8_t byte = *(*at)++;

		if (byte == ' ' && dir->have > 0) {
			if (text_is(dir->text, dir->have, "HEAD"))
				dir->request = REQUEST_HEAD;
			else if (text_is(dir->text, dir->have, "CONNECT"))
				dir->request = REQUEST_CONNECT;
			dir->text[dir->have++] = ' ';
			dir->target_at = dir->have;
			dir->phase = HTTP1_TARGET;
			return STEP_MORE;
		}
		if (dir->have == METHOD_BYTES_MAX || !is_token(byte))
			return STEP_BAD;
		dir->text[dir->have++] = (char)byte;
	}
	return STEP_MORE;
}

/* "GET http://host/path" is "GET /path", as if asked of the host itself (RFC 9112 section 3.2.2).
 */
static void
target_end(struct http1_dir *dir)
{
	char *target = dir->text + dir->target_at, *path;
	size_t bytes = (size_t)(dir->have - dir->target_at);
	char *authority = bytes > 0 && target[0] != '/' ? memmem(target, bytes, "://", 3) : NULL;

	dir->match = 0;
	if (authority == NULL)
		return;
	authority += 3;
	path = memchr(authority, '/', bytes - (size_t)(authority - target));
	if (path == NULL) {
		target[0] = '/';
		dir->have = (uint8_t)(dir->target_at + 1);
		return;
	}
	bytes -= (size_t)(path - target);
	memmove(target, path, bytes);
	dir->have = (uint8_t)(dir->target_at + bytes);
}

static enum step
target_take(struct http1_dir *dir, const uint8_t **at, const uint8_t *end)
{
	while (*at < end) {
		uint8_t byte = *(*at)++;

		if (byte == ' ') {
			if (dir->have == dir->target_at)
				return STEP_BAD;
			target_end(dir);
			dir->phase = HTTP1_VERSION;
			return STEP_MORE;
		}
		if (byte < 0x20 || byte == 0x7f)
			return STEP_BAD;
		if (byte == '?' || byte == '#' || dir->have == BS_FRAME_LABEL_BYTES) {
			target_end(dir);
			dir->phase = HTTP1_TARGET_REST;
			return STEP_MORE;
		}
		dir->text[dir->have++] = byte < 0x7f ? (char)byte : '.';
	}
	return STEP_MORE;
}

static enum step
target_rest_take(struct http1_dir *dir, const uint8_t **at, const uint8_t *end)
{
	const uint8_t *space = memchr(*at, ' ', (size_t)(end - *at));
	const uint8_t *stop = space != NULL ? space : end;

	/* A line that ends here is HTTP/0.9 or no HTTP. */
	if (memchr(*at, '\n', (size_t)(stop - *at)) != NULL) {
		*at = (const uint8_t *)memchr(*at, '\n', (size_t)(stop - *at)) + 1;
		return STEP_BAD;
	}
	*at = stop;
	if (space != NULL) {
		(*at)++;
		dir->phase = HTTP1_VERSION;
	}
	return STEP_MORE;
}

static bool
version_fits(const char *version)
{
	return memcmp(version, "HTTP/1.", 7) == 0 && (uint8_t)(version[7] - '0') < 10;
}

/* "HTTP/1.x" and the end of the line. */
static enum step
version_take(struct http1_dir *dir, const uint8_t **at, const uint8_t *end)
{
	while (*at < end) {
		uint8_t byte = *(*at)++;

		if (dir->match < sizeof(dir->version)) {
			dir->version[dir->match++] = (char)byte;
			if (dir->match == sizeof(dir->version) && !version_fits(dir->version))
				return STEP_BAD;
		} else if (byte == '\n') {
			dir->phase = HTTP1_LINE;
			return STEP_MORE;
		} else if (byte != '\r' || dir->match++ > sizeof(dir->version)) {
			return STEP_BAD;
		}
	}
	return STEP_MORE;
}

/* "HTTP/1.x 200", then a space or the end of the line. */
static enum step
status_take(struct http1_dir *dir, const uint8_t **at, const uint8_t *end)
{
	while (*at < end && dir->have < 12) {
		uint8_t byte = *(*at)++;

		if (dir->have == 8 ? byte != ' ' : dir->have > 8 && (uint8_t)(byte - '0') > 9)
			return STEP_BAD;
		dir->text[dir->have++] = (char)byte;
		if (dir->have > 9)
			dir->status = (uint16_t)(dir->status * 10 + (byte - '0'));
		if (dir->have == 8 && !version_fits(dir->text))
			return STEP_BAD;
	}
	if (*at == end)
		return STEP_MORE;
	if (dir->status < 100 || (**at != ' ' && **at != '\r' && **at != '\n'))
		return STEP_BAD;
	dir->phase = HTTP1_REASON;
	return STEP_MORE;
}

/* The rest of a line that does not matter. */
static enum step
line_skip(struct http1_dir *dir, const uint8_t **at, const uint8_t *end, uint8_t next)
{
	const uint8_t *newline = memchr(*at, '\n', (size_t)(end - *at));

	*at = newline != NULL ? newline + 1 : end;
	if (newline != NULL)
		dir->phase = next;
	return STEP_MORE;
}

/* One member of a Content-Length list (RFC 9110 section 8.6: equal ones are allowed). */
static bool
length_member_end(struct http1_dir *dir)
{
	if (!dir->number_any || (dir->has_length && dir->length != dir->number))
		return false;
	dir->has_length = true;
	dir->length = dir->number;
	dir->number = 0;
	dir->number_any = false;
	dir->number_done = false;
	return true;
}

static bool
length_byte(struct http1_dir *dir, uint8_t byte)
{
	uint8_t digit = (uint8_t)(byte - '0');

	if (digit < 10) {
		if (dir->number_done || dir->number > BODY_BYTES_MAX / 10)
			return false;
		dir->number = dir->number * 10 + digit;
		dir->number_any = true;
		return true;
	}
	if (byte == ',')
		return length_member_end(dir);
	dir->number_done = dir->number_any;
	return is_space(byte);
}

/* The last coding of the list decides, RFC 9112 section 6.1. */
static void
coding_byte(struct http1_dir *dir, uint8_t byte)
{
	static const char chunked[] = "chunked";

	if (byte == ',') {
		dir->match = 0;
	} else if (is_space(byte)) {
		if (dir->match != 0 && dir->match != sizeof(chunked) - 1)
			dir->match = NO_MATCH;
	} else if (dir->match < sizeof(chunked) - 1 && lower(byte) == chunked[dir->match]) {
		dir->match++;
	} else {
		dir->match = NO_MATCH;
	}
	if (byte != ',' && !is_space(byte)) /* an empty member at the end is none */
		dir->is_chunked = dir->match == sizeof(chunked) - 1;
}

/* The line, with its folded ones, is over. */
static bool
field_end(struct http1_dir *dir)
{
	bool fits = dir->field != FIELD_LENGTH || length_member_end(dir);

	dir->field = FIELD_NONE;
	return fits;
}

static enum step
name_take(struct http1_dir *dir, bool from_server, const uint8_t **at, const uint8_t *end)
{
	const char *name = field_names[dir->field];

	while (*at < end) {
		uint8_t byte = **at;

		if (name[dir->match] != '\0' && lower(byte) == name[dir->match]) {
			dir->match++;
			(*at)++;
			continue;
		}
		if (dir->field == FIELD_CODING && dir->match == TRACE_SHARED && !from_server &&
			lower(byte) == field_names[FIELD_TRACE][TRACE_SHARED]) {
			dir->field = FIELD_TRACE;
			name = field_names[FIELD_TRACE];
			continue;
		}
		if (name[dir->match] == '\0' && byte == ':') {
			(*at)++;
			dir->phase = HTTP1_VALUE;
			dir->match = 0;
			dir->has_coding = dir->has_coding || dir->field == FIELD_CODING;
			return STEP_MORE;
		}
		/* White space before the colon: a server refuses it, a proxy removes it. */
		if (name[dir->match] == '\0' && is_space(byte)) {
			if (!from_server)
				return STEP_BAD;
			(*at)++;
			continue;
		}
		dir->field = FIELD_NONE;
		dir->phase = HTTP1_LINE_REST;
		return STEP_MORE;
	}
	return STEP_MORE;
}

static enum step
value_take(struct http1_dir *dir, const uint8_t **at, const uint8_t *end)
{
	while (*at < end) {
		uint8_t byte = *(*at)++;

		if (byte == '\n') {
			dir->phase = HTTP1_LINE;
			return STEP_MORE;
		}
		if (byte == '\r')
			byte = ' '; /* the line end is white space, should it be folded */
		if (dir->field == FIELD_CODING)
			coding_byte(dir, byte);
		else if (dir->field == FIELD_TRACE && !is_space(byte))
			traceparent_byte(&dir->trace, byte);
		else if (dir->field == FIELD_TRACE)
			continue;
		else if (!length_byte(dir, byte))
			return STEP_BAD;
	}
	return STEP_MORE;
}

static void
chunk_begin(struct http1_dir *dir)
{
	dir->phase = HTTP1_CHUNK_SIZE;
	dir->head_bytes = HEAD_BYTES_RESET;
	dir->number = 0;
	dir->number_any = false;
}

/* What follows the head, see above. `no_body` comes from the status and the request. */
static enum step
body_begin(struct http1_dir *dir, struct bs_frame *frame, bool from_server, bool no_body)
{
	frame->flags |= BS_FRAME_HEAD;
	if (no_body)
		return message_end(dir, frame);
	if (dir->has_coding && dir->is_chunked) {
		chunk_begin(dir);
		return STEP_TELL;
	}
	if (dir->has_coding ? !from_server : dir->length > BODY_BYTES_MAX)
		return STEP_BAD;
	if (!dir->has_coding && (dir->has_length || !from_server)) {
		frame->skip = dir->length;
		if (frame->skip > 0)
			frame->flags |= BS_FRAME_SKIP;
		return message_end(dir, frame);
	}
	dir->phase = HTTP1_REST;
	frame->until_close = BS_UNTIL_CLOSE;
	return STEP_TELL;
}

static enum step
request_head(struct bs_frame_conn *conn, struct http1_dir *dir, struct bs_frame *frame)
{
	frame->label_len = dir->have;
	memcpy(frame->label, dir->text, dir->have);
	traceparent_tell(&dir->trace, frame);
	request_push(conn, dir->request);
	return body_begin(dir, frame, false, false);
}

static enum step
response_head(struct bs_frame_conn *conn, struct http1_dir *dir, struct bs_frame *frame)
{
	bool interim = dir->status < 200 && dir->status != 101;
	uint8_t request = interim ? REQUEST_PLAIN : request_pop(conn);

	frame->role = interim ? BS_ROLE_INTERIM : BS_ROLE_BY_DIRECTION;
	frame->has_status = 1;
	frame->status = dir->status;
	frame->error = dir->status >= 400;
	if (dir->status == 101 || (request == REQUEST_CONNECT && dir->status / 100 == 2)) {
		frame->flags |= BS_FRAME_HEAD;
		frame->until_close = BS_UNTIL_TUNNEL;
		conn->shared[SHARED_TUNNEL] = 1;
		return STEP_TELL;
	}
	return body_begin(dir, frame, true,
		interim || request == REQUEST_HEAD || dir->status == 204 || dir->status == 304);
}

static enum step
empty_line_end(
	struct bs_frame_conn *conn, struct http1_dir *dir, bool from_server, struct bs_frame *frame)
{
	if (dir->trailers)
		return message_end(dir, frame);
	return from_server ? response_head(conn, dir, frame) : request_head(conn, dir, frame);
}

/*
 * The first byte of a line says most: the end, a folded line, or which names it
 * may be. Lines of no interest are passed over at once.
 */
static enum step
line_take(struct http1_dir *dir, const uint8_t **at, const uint8_t *end)
{
	dir->phase = HTTP1_LINE;
	while (*at < end && dir->phase == HTTP1_LINE) {
		uint8_t byte = **at;

		if (is_space(byte) && dir->field != FIELD_NONE) {
			dir->phase = HTTP1_VALUE;
			break;
		}
		if (dir->field != FIELD_NONE && !field_end(dir))
			return STEP_BAD;
		if (byte == '\r' || byte == '\n') {
			*at += byte == '\r';
			dir->phase = HTTP1_EMPTY_LF;
			break;
		}
		if (!dir->trailers && (lower(byte) == 'c' || lower(byte) == 't')) {
			dir->field = lower(byte) == 'c' ? FIELD_LENGTH : FIELD_CODING;
			dir->match = 0;
			dir->phase = HTTP1_NAME;
			break;
		}
		dir->phase = HTTP1_LINE_REST;
		line_skip(dir, at, end, HTTP1_LINE);
	}
	return STEP_MORE;
}

/* The size line of a chunk is over. */
static enum step
chunk_end(struct http1_dir *dir, struct bs_frame *frame)
{
	uint64_t bytes = dir->number + 2; /* the data and its CR LF */

	if (dir->number == 0) {
		dir->trailers = true;
		dir->head_bytes = HEAD_BYTES_RESET;
		dir->phase = HTTP1_LINE;
		return STEP_MORE;
	}
	if (bytes <= SMALL_CHUNK) {
		dir->number = bytes;
		dir->phase = HTTP1_CHUNK_PASS;
		return STEP_MORE;
	}
	chunk_begin(dir);
	frame->flags = BS_FRAME_SKIP;
	frame->skip = bytes;
	return STEP_TELL;
}

static enum step
chunk_size_take(struct http1_dir *dir, const uint8_t **at, const uint8_t *end)
{
	while (*at < end) {
		uint8_t byte = **at, digit = (uint8_t)(byte - '0');

		if (digit > 9)
			digit = (uint8_t)((byte | 0x20) - 'a') < 6
					? (uint8_t)((byte | 0x20) - 'a' + 10)
					: 16;
		if (digit == 16) {
			/* What may follow: an extension, white space that some add, the line end.
			 */
			if (!dir->number_any ||
				(byte != ';' && byte != '\r' && byte != '\n' && !is_space(byte)))
				return STEP_BAD;
			dir->phase = HTTP1_CHUNK_REST;
			return STEP_MORE;
		}
		if (dir->number >= BODY_BYTES_MAX >> 4)
			return STEP_BAD;
		dir->number = dir->number << 4 | digit;
		dir->number_any = true;
		(*at)++;
	}
	return STEP_MORE;
}

static enum step
chunk_rest_take(
	struct http1_dir *dir, const uint8_t **at, const uint8_t *end, struct bs_frame *frame)
{
	line_skip(dir, at, end, HTTP1_CHUNK_SIZE);
	return dir->phase == HTTP1_CHUNK_SIZE ? chunk_end(dir, frame) : STEP_MORE;
}

static enum step
chunk_pass_take(struct http1_dir *dir, const uint8_t **at, const uint8_t *end)
{
	size_t n = (size_t)(end - *at);

	if (n > dir->number)
		n = (size_t)dir->number;
	*at += n;
	dir->number -= n;
	if (dir->number == 0)
		chunk_begin(dir);
	return STEP_MORE;
}

static enum step
http1_step(struct bs_frame_conn *conn, struct http1_dir *dir, bool from_server, const uint8_t **at,
	const uint8_t *end, struct bs_frame *frame)
{
	switch (dir->phase) {
	case HTTP1_START:
		return start_take(dir, from_server, at);
	case HTTP1_START_LF:
		return *(*at)++ == '\n' ? message_end(dir, frame) : STEP_BAD;
	case HTTP1_METHOD:
		return method_take(dir, at, end);
	case HTTP1_TARGET:
		return target_take(dir, at, end);
	case HTTP1_TARGET_REST:
		return target_rest_take(dir, at, end);
	case HTTP1_VERSION:
		return version_take(dir, at, end);
	case HTTP1_STATUS:
		return status_take(dir, at, end);
	case HTTP1_REASON:
	case HTTP1_LINE_REST:
		return line_skip(dir, at, end, HTTP1_LINE);
	case HTTP1_LINE:
		return line_take(dir, at, end);
	case HTTP1_NAME:
		return name_take(dir, from_server, at, end);
	case HTTP1_VALUE:
		return value_take(dir, at, end);
	case HTTP1_EMPTY_LF:
		return *(*at)++ == '\n' ? empty_line_end(conn, dir, from_server, frame) : STEP_BAD;
	case HTTP1_CHUNK_SIZE:
		return chunk_size_take(dir, at, end);
	case HTTP1_CHUNK_REST:
		return chunk_rest_take(dir, at, end, frame);
	case HTTP1_CHUNK_PASS:
		return chunk_pass_take(dir, at, end);
	default:
		*at = end;
		return STEP_MORE;
	}
}

static bool
is_body(const struct http1_dir *dir)
{
	return dir->phase == HTTP1_CHUNK_PASS || dir->phase == HTTP1_REST;
}

/* A step in what is bounded. The bound is met at the same byte however the stream is cut. */
static enum step
head_step(struct bs_frame_conn *conn, struct http1_dir *dir, bool from_server, const uint8_t **at,
	const uint8_t *end, struct bs_frame *frame)
{
	const uint8_t *before = *at;
	enum step step;

	if (dir->phase == HTTP1_START || dir->head_bytes == HEAD_BYTES_RESET)
		dir->head_bytes = 0;
	if (dir->head_bytes == HEAD_BYTES_MAX)
		return STEP_BAD;
	if ((size_t)(end - *at) > HEAD_BYTES_MAX - dir->head_bytes)
		end = *at + (HEAD_BYTES_MAX - dir->head_bytes);
	step = http1_step(conn, dir, from_server, at, end, frame);
	if (dir->head_bytes != HEAD_BYTES_RESET)
		dir->head_bytes += (uint32_t)(*at - before);
	return step;
}

static size_t
http1_feed(const struct bs_framer *framer, struct bs_frame_conn *conn, bool from_server,
	const uint8_t *data, size_t bytes, struct bs_frame *frame)
{
	struct http1_dir *dir = (struct http1_dir *)conn->dir[from_server].bytes;
	const uint8_t *at = data, *end = data + bytes;
	enum step step = STEP_MORE;

	(void)framer;
	if (conn->shared[SHARED_TUNNEL])
		return bytes;
	while (at < end && step == STEP_MORE)
		step = is_body(dir) ? http1_step(conn, dir, from_server, &at, end, frame)
				    : head_step(conn, dir, from_server, &at, end, frame);
	if (step == STEP_BAD) {
		memset(dir, 0, sizeof(*dir));
		memset(frame, 0, sizeof(*frame));
		frame->flags = BS_FRAME_BAD;
	}
	return (size_t)(at - data);
}

static int
probe_request(const uint8_t *data, size_t bytes)
{
	const uint8_t *end;
	size_t method = 0;

	while (method < bytes && method < METHOD_BYTES_MAX &&
		((uint8_t)(data[method] - 'A') < 26 || data[method] == '-'))
		method++;
	if (method == bytes)
		return 1;
	if (method < 3 || data[method] != ' ')
		return 0;
	end = memchr(data, '\n', bytes);
	if (end == NULL)
		return 1;
	end -= end[-1] == '\r';
	if ((size_t)(end - data) < method + 1 + 1 + 9) /* a target, " HTTP/1.1" */
		return 0;
	return end[-9] == ' ' && version_fits((const char *)end - 8) ? 2 : 0;
}

static int
http1_probe(const struct bs_framer *framer, bool from_server, const uint8_t *data, size_t bytes)
{
	static const char version[] = "HTTP/1.";

	(void)framer;
	if (bytes == 0)
		return 1;
	if (!from_server)
		return probe_request(data, bytes);
	if (memcmp(data, version, bytes < 7 ? bytes : 7) != 0)
		return 0;
	if (bytes < 12)
		return 1;
	return data[8] == ' ' && (uint8_t)(data[9] - '1') < 9 ? 2 : 0;
}

const struct bs_framer_ops bs_framer_http1 = {
	.name = "http1",
	.pairing = BS_PAIR_BY_ORDER,
	.sibling = &bs_framer_http2,
	.feed = http1_feed,
	.probe = http1_probe,
	.ports = {80, 8080, 8000, 3128},
};
