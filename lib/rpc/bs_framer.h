/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Framers find where messages begin and end in a byte stream and what pairs
 * them. Most protocols are a length-prefixed header: a row of a table
 * (struct bs_framing_row). Only what a row cannot say is code, one file each
 * (struct bs_framer). Bodies are not looked at.
 *
 * The tracker feeds the bytes of each direction in stream order, in pieces of
 * any size, down to one byte. A framer keeps its own few bytes of state per
 * direction, and what does not fit there in a memory of fixed size; it never
 * reads outside the piece.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bs_vocab.h"

/* Per direction; a framer may lay its own struct over it (static_assert the size). */
#define BS_FRAME_STATE_BYTES 192u

/*
 * Memory of fixed size for what some connections need beyond their state, e.g.
 * the tables of HPACK: made at create, shared by all framers of a tracker, one
 * thread. `bytes` is rounded up to a power of two, at most 2 GiB; NULL with errno
 * ENOMEM or EINVAL.
 */
struct bs_frame_memory;
struct bs_frame_memory *bs_frame_memory_create(size_t bytes);
void bs_frame_memory_destroy(struct bs_frame_memory *memory); /* NULL is fine */

/* As malloc, realloc and free of 64 bytes and more; NULL if it is used up. */
void *bs_frame_alloc(struct bs_frame_memory *memory, size_t bytes);
void *bs_frame_realloc(struct bs_frame_memory *memory, void *block, size_t bytes);
void bs_frame_free(struct bs_frame_memory *memory, void *block); /* NULL is fine */
/* Bytes handed out, rounded up to what they take, and requests refused since create. */
size_t bs_frame_memory_used(const struct bs_frame_memory *memory);
uint64_t bs_frame_memory_refused(const struct bs_frame_memory *memory);

/* Both directions of a connection, and what they share. All zero is the initial state, but for
 * `memory`, which is its tracker's (NULL: there is none). */
struct bs_frame_conn {
	union {
		uint8_t bytes[BS_FRAME_STATE_BYTES];
		uint64_t align;
	} dir[2];	    /* [0] client to server, [1] server to client */
	uint32_t shared[4]; /* e.g. HTTP: methods of the requests in flight */
	struct bs_frame_memory *memory;
};

#define BS_FRAME_LABEL_BYTES 96u

/* What a feed found. Flags may come together: HEAD|SKIP|END is a whole length-prefixed message. */
#define BS_FRAME_HEAD 0x01u /* the fields below are known now, once per message */
#define BS_FRAME_SKIP 0x02u /* the next `skip` bytes after those consumed are of no interest */
#define BS_FRAME_END                                                                               \
	0x04u /* the message ends after those; without a HEAD it was none (empty line) */
#define BS_FRAME_BAD 0x08u /* bytes make no sense: give up this direction until resync */
/* With HEAD: what ends here is a part of the message; BS_ROLE_PART goes on with it. */
#define BS_FRAME_PART 0x10u

enum bs_frame_role {
	BS_ROLE_BY_DIRECTION = 0, /* request if from the client, else response */
	BS_ROLE_REQUEST,
	BS_ROLE_RESPONSE,
	BS_ROLE_INTERIM, /* of the RPC `id`, or the first that waits: the final response follows */
	BS_ROLE_PUSH,	 /* from the server, nobody asked */
	BS_ROLE_CANCEL,	 /* gives up the RPC `id` */
	BS_ROLE_PART,	 /* goes on with this direction's message of the RPC `id` */
	BS_ROLE_NONE,	 /* of the connection: settings, pings */
};

#define BS_ONEWAY 1u /* will not be answered */
/*
 * Answered or not, as the service decides: a quiet command is over when a later
 * request is answered. Only where answers come in the order of requests.
 */
#define BS_ONEWAY_UNLESS_ANSWERED 2u

#define BS_UNTIL_CLOSE 1u  /* of this direction */
#define BS_UNTIL_TUNNEL 2u /* of both: HTTP 101, CONNECT; the other feeds no flags from now on */

struct bs_frame {
	uint8_t flags;	/* BS_FRAME_* */
	uint8_t role;	/* enum bs_frame_role */
	uint8_t oneway; /* of a request: BS_ONEWAY_* */
	uint8_t has_id;
	uint8_t has_status;
	uint8_t until_close; /* BS_UNTIL_*: body ends with the connection; END never comes */
	uint8_t error;	     /* the answer reports a failure */
	uint8_t label_len;
	uint8_t has_trace;
	int32_t status;
	/*
	 * What tells, by order, whether a quiet command is the one answered: the
	 * kinds of answers it may have, one bit each, and that of a response (0:
	 * any); a word that the response repeats (0: none).
	 */
	uint32_t answers, token;
	uint64_t id; /* pairs request and response within the connection */
	uint64_t skip;
	/* Of a request, W3C Trace Context level 1, section 3.2: trace-id and parent-id. */
	uint8_t trace_id[16], parent_span_id[8];
	char label[BS_FRAME_LABEL_BYTES]; /* what was asked: method and path, command; never a value
					   */
};

/* Sets the label to a text of ours, cut to what a label holds. */
static inline void
bs_frame_label(struct bs_frame *frame, const char *text)
{
	const size_t bytes = strlen(text);

	frame->label_len = (uint8_t)(bytes < sizeof(frame->label) ? bytes : sizeof(frame->label));
	memcpy(frame->label, text, frame->label_len);
}

#define BS_PAIR_BY_ORDER 0u /* but for responses that have an id: by that */
#define BS_PAIR_BY_ID 1u
#define BS_PAIR_BY_TURN 2u /* opaque: bytes one way, then bytes the other */

struct bs_framer;

struct bs_framer_ops {
	const char *name; /* config "protocol", JSON "protocol" */
	uint8_t pairing;  /* BS_PAIR_* */
	bool datagram;	  /* also over UDP: each datagram is one message */
	bool id_is_retry; /* a request with the ID of one that waits, and its label, is that again
			   */
	/* What the clients of such a service may speak instead, told by the first bytes; or NULL.
	 */
	const struct bs_framer_ops *sibling;
	/*
	 * Consumes bytes of direction `from_server` and stops right behind the
	 * first thing it has to tell, or at the end of the piece. Returns the
	 * bytes consumed (<= bytes; 0 only with BS_FRAME_BAD). frame is zeroed
	 * by the caller, but for the label; flags stay 0 while more bytes are needed.
	 */
	size_t (*feed)(const struct bs_framer *framer, struct bs_frame_conn *conn, bool from_server,
		const uint8_t *data, size_t bytes, struct bs_frame *frame);
	/*
	 * A datagram as a whole (NULL: not over UDP). Returns false if it is
	 * not a message of this protocol.
	 */
	bool (*datagram_feed)(const struct bs_framer *framer, bool from_server, const uint8_t *data,
		size_t bytes, struct bs_frame *frame);
	/*
	 * Does a message of this protocol plausibly begin here? 0 no, 1 maybe, 2
	 * surely. from_server as assumed. Used to guess the protocol and to find
	 * the next message after a gap.
	 */
	int (*probe)(const struct bs_framer *framer, bool from_server, const uint8_t *data,
		size_t bytes);
	/* Gives back what directions of the connection hold of conn->memory; or NULL. */
	void (*forget)(struct bs_frame_conn *conn, bool from_server);
	uint16_t ports[4]; /* usual ports, for guessing; 0 ends */
};

/* Bits of a header's byte that say something of a message: if they have that value, or,
 * `otherwise`, any other. mask 0: nothing says it. */
struct bs_framing_test {
	uint8_t at, mask, value;
	bool otherwise;
};

/* What a code in the header asks for. */
struct bs_framing_operation {
	uint32_t code;
	const char *name; /* NULL ends the list */
};

/* A length-prefixed protocol. All offsets from the first byte of the message. */
struct bs_framing_row {
	const char *name;
	uint16_t header; /* bytes needed to know the length */
	uint8_t magic_len;
	uint8_t magic[8], magic_mask[8]; /* at offset magic_at */
	uint8_t magic_at;
	uint8_t length_at, length_bytes; /* 1, 2, 3, 4 or 8 */
	bool length_little;
	int32_t length_adds;	 /* whole message = length field + adds */
	uint8_t id_at, id_bytes; /* id_bytes 0: paired by order */
	bool id_little;
	uint8_t response_id_at;		 /* where a response repeats the id; 0: at id_at */
	struct bs_framing_test response; /* else a request; mask 0: by direction */
	struct bs_framing_test none;	 /* neither: a ping, a heartbeat */
	struct bs_framing_test oneway;	 /* a request that will not be answered */
	struct bs_framing_test push;	 /* from the server, nobody asked */
	struct bs_framing_test error;	 /* a response that reports a failure */
	uint8_t status_at, status_bytes; /* of a response, up to 4; 0: none */
	bool status_little;
	uint8_t operation_at, operation_bytes; /* of a request, up to 4; 0: none */
	bool operation_little;
	const struct bs_framing_operation *operations; /* NULL, or a code not in it: its number */
	uint32_t length_max;			       /* longer is BAD; 0: 1 GiB */
	uint16_t ports[4];
};
#define BS_FRAMING_HEADER_MAX 64u

struct bs_framer {
	const struct bs_framer_ops *ops;
	const char *name;
	const struct bs_framing_row *row; /* for the ops of rows */
	uint8_t protocol;		  /* index in the table */
};

#define BS_PROTOCOLS_MAX 64u
#define BS_PROTOCOL_OPAQUE 0u

/* All protocols known: opaque at 0, coded framers, built-in rows, the user's rows. */
struct bs_framers {
	struct bs_framer list[BS_PROTOCOLS_MAX];
	unsigned count;
};

/*
 * Fills the table with the built-in protocols. The rows of the user
 * (user_count, may be 0) are referenced, not copied: they outlive the table.
 * 0, -EEXIST (name taken; *bad is its index), -EINVAL (row makes no sense), or
 * -ENOSPC. Control thread.
 */
int bs_framers_init(struct bs_framers *framers, const struct bs_framing_row *user_rows,
	unsigned user_count, unsigned *bad);

/* NULL if there is none of that name. */
const struct bs_framer *bs_framers_find(const struct bs_framers *framers, const char *name);

/* Best guess from the first bytes of a connection and its server port; opaque if nothing fits. */
const struct bs_framer *bs_framers_guess(const struct bs_framers *framers, uint16_t server_port,
	bool datagram, bool from_server, const uint8_t *data, size_t bytes);

/*
 * What a connection to a service of protocol `framer` speaks, by its first
 * bytes: that, or its sibling if these can only be the sibling's.
 */
const struct bs_framer *bs_framers_settle(const struct bs_framers *framers,
	const struct bs_framer *framer, bool datagram, bool from_server, const uint8_t *data,
	size_t bytes);

/*
 * The operation template of a label: runs of digits, hex strings of 8 or more
 * with a digit, and UUIDs become "*", a query string is cut at "?". Writes at
 * most BS_FRAME_LABEL_BYTES to out (not NUL-terminated), returns its length,
 * and its hash in *hash (never 0).
 */
size_t bs_operation_template(
	const char *label, size_t len, char out[BS_FRAME_LABEL_BYTES], uint32_t *hash);

/* The built-in rows, lib/rpc/rows.c. */
extern const struct bs_framing_row bs_framing_rows[];
extern const unsigned bs_framing_row_count;

extern const struct bs_framer_ops bs_framer_opaque;
extern const struct bs_framer_ops bs_framer_row;	  /* rows with an id */
extern const struct bs_framer_ops bs_framer_row_by_order; /* rows without */
extern const struct bs_framer_ops bs_framer_resp;
extern const struct bs_framer_ops bs_framer_http1;
extern const struct bs_framer_ops bs_framer_http2;
extern const struct bs_framer_ops bs_framer_dns;
extern const struct bs_framer_ops bs_framer_memcached;
extern const struct bs_framer_ops bs_framer_memcached_binary;
extern const struct bs_framer_ops bs_framer_sunrpc;
extern const struct bs_framer_ops bs_framer_postgres;
extern const struct bs_framer_ops bs_framer_mysql;
