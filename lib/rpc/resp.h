/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the two directions of the Redis framer share: resp.c says how it works,
 * resp_request.c reads commands, resp_reply.c replies.
 */
#pragma once

#include <assert.h>
#include <string.h>

#include "bs_framer.h"

#define RESP_BODY_MAX UINT32_MAX /* bytes; above any proto-max-bulk-len in use */
#define RESP_COUNT_MAX INT32_MAX /* elements of an aggregate; Redis has the same bound */
#define RESP_DIGITS_MAX 10u
#define RESP_SMALL_BODY 64u /* up to this much is passed over here, not told as a skip */
#define RESP_DEPTH_MAX 16u
#define RESP_TEXT_BYTES 76u /* two words, a space, and the third */
#define RESP_SUBSCRIBES_MAX 8u
#define RESP_EVERY_CHANNEL UINT16_MAX /* UNSUBSCRIBE without channels */

/* conn->shared: requests that are answered, their answers so far, and flags */
#define SHARED_ASKED 1
#define SHARED_ANSWERED 2
#define SHARED_FLAGS 0
#define SHARED_PUBSUB 0x01u  /* a SUBSCRIBE or UNSUBSCRIBE was seen */
#define SHARED_MONITOR 0x02u /* MONITOR was seen */
#define SHARED_SYNC 0x04u    /* PSYNC or SYNC was seen: its reply never ends */
#define SHARED_OFF 0x08u     /* CLIENT REPLY OFF */
#define SHARED_SKIP 0x10u    /* CLIENT REPLY SKIP: the next command is not answered */

enum resp_phase {
	RESP_START,
	RESP_COUNT,  /* of an array: digits */
	RESP_TYPE,   /* of an element */
	RESP_LENGTH, /* of a bulk string: digits */
	RESP_WORD,   /* bulk string that is looked at */
	RESP_PASS,   /* bulk string that is not */
	RESP_INLINE,
	RESP_LINE,
	RESP_REST, /* replication stream */
};

enum command_kind {
	COMMAND_PLAIN,
	COMMAND_CONTAINER, /* its second word is part of the name */
	COMMAND_SUBSCRIBE,
	COMMAND_UNSUBSCRIBE,
	COMMAND_MONITOR,
	COMMAND_SYNC,
};

/* A number line: [-]digits CR LF. */
struct resp_number {
	uint64_t value;
	uint8_t digits;
	bool negative, cr;
};

struct subscribe {
	uint16_t order; /* which answered request it is */
	uint16_t channels;
};

struct resp_request {
	uint32_t left; /* elements */
	uint32_t count;
	uint8_t kind;	    /* enum command_kind */
	uint8_t words;	    /* read */
	uint8_t wanted;	    /* words to look at */
	uint8_t word_bytes; /* of the present word, kept */
	uint8_t text_bytes, label_bytes;
	char quote;   /* inline: the quote we are in, or 0 */
	bool escaped; /* inline: behind a backslash */
	bool in_word; /* inline */
	char text[RESP_TEXT_BYTES];
	/* Those above are of one message, these of the connection. */
	uint8_t subscribe_first, subscribe_count;
	struct subscribe subscribes[RESP_SUBSCRIBES_MAX];
};

struct resp_reply {
	uint32_t left[RESP_DEPTH_MAX];
	uint16_t attributes; /* bit d: level d is an attribute, which counts as no element */
	uint8_t depth;
	uint8_t type;	    /* of the top level */
	uint8_t first;	    /* byte of its line */
	uint8_t kind_bytes; /* of the first element */
	char kind[12];
	/* Of the connection. */
	uint16_t confirmations; /* still to come after the first of a SUBSCRIBE */
	uint16_t confirmation;	/* its kind: length and first byte */
};

struct resp_dir {
	uint8_t phase; /* enum resp_phase */
	bool told;     /* HEAD is out */
	uint8_t type;  /* of the element being read */
	uint32_t line; /* bytes of the line so far */
	uint64_t body; /* bytes of the bulk string still to come */
	struct resp_number number;
	union {
		struct resp_request request;
		struct resp_reply reply;
	};
};

static_assert(sizeof(struct resp_dir) <= BS_FRAME_STATE_BYTES, "state must fit");

enum resp_step {
	STEP_MORE, /* bytes are used up, or the phase has changed: go on */
	STEP_TELL, /* frame->flags are set */
	STEP_BAD,
};

/* Takes bytes of a number line: 1 it is complete, 0 more is needed, -1 it is none. */
static inline int
resp_number_take(struct resp_number *number, const uint8_t **at, const uint8_t *end)
{
	const uint8_t *p = *at;
	int ret = 0;

	/* One digit, all there: most of them. */
	if (end - p >= 3 && p[1] == '\r' && p[2] == '\n' && (uint8_t)(p[0] - '0') < 10 &&
		number->digits == 0 && !number->negative) {
		number->value = (uint8_t)(p[0] - '0');
		*at = p + 3;
		return 1;
	}
	while (p < end && ret == 0) {
		uint8_t byte = *p++, digit = (uint8_t)(byte - '0');

		if (digit < 10 && !number->cr && number->digits < RESP_DIGITS_MAX) {
			number->value = number->value * 10 + digit;
			number->digits++;
		} else if (byte == '\r' && !number->cr && number->digits > 0) {
			number->cr = true;
		} else if (byte == '\n' && number->cr) {
			ret = 1;
		} else if (byte == '-' && number->digits == 0 && !number->negative) {
			number->negative = true;
		} else {
			ret = -1;
		}
	}
	*at = p;
	return ret;
}

/* -1, the length of what is null, is the one negative number that means something. */
static inline bool
resp_is_null(const struct resp_number *number)
{
	return number->negative && number->value == 1;
}

static inline bool
resp_text_is(const char *text, size_t bytes, const char *what)
{
	return bytes == strlen(what) && memcmp(text, what, bytes) == 0;
}

static inline enum resp_step
resp_message_end(struct resp_dir *dir, struct bs_frame *frame)
{
	frame->flags |= BS_FRAME_END;
	dir->phase = RESP_START;
	dir->told = false;
	return STEP_TELL;
}

/* An element's body is to come and of no interest. */
static inline enum resp_step
resp_body_pass(struct resp_dir *dir, struct bs_frame *frame, uint64_t bytes, bool last)
{
	dir->phase = RESP_TYPE;
	if (!last && bytes <= RESP_SMALL_BODY) {
		dir->phase = RESP_PASS;
		dir->body = bytes;
		return frame->flags ? STEP_TELL : STEP_MORE;
	}
	frame->flags |= BS_FRAME_SKIP;
	frame->skip = bytes;
	return last ? resp_message_end(dir, frame) : STEP_TELL;
}

/* Up to `body` bytes; the length of what is there. */
static inline size_t
resp_body_take(struct resp_dir *dir, const uint8_t **at, const uint8_t *end)
{
	size_t n = (size_t)(end - *at);

	if (n > dir->body)
		n = (size_t)dir->body;
	dir->body -= n;
	*at += n;
	return n;
}

static inline enum resp_step
resp_pass_take(struct resp_dir *dir, const uint8_t **at, const uint8_t *end)
{
	resp_body_take(dir, at, end);
	if (dir->body == 0)
		dir->phase = RESP_TYPE;
	return STEP_MORE;
}

static inline bool
resp_may_begin_inline(uint8_t byte)
{
	return (byte >= 0x20 && byte < 0x7f) || byte == '\r' || byte == '\n' || byte == '\t';
}

/* One step of a direction, over bytes [*at, end) which are not empty; *at moves. */
enum resp_step bs_resp_request_step(struct bs_frame_conn *conn, struct resp_dir *dir,
	const uint8_t **at, const uint8_t *end, struct bs_frame *frame);
enum resp_step bs_resp_reply_step(struct bs_frame_conn *conn, struct resp_dir *dir,
	const uint8_t **at, const uint8_t *end, struct bs_frame *frame);
