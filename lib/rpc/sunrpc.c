/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ONC RPC, "SunRPC" (RFC 5531), which carries NFS: over TCP in records of
 * fragments behind a mark each (section 11), over UDP as it is. A call is told
 * once its procedure is known; of an NFSv4 COMPOUND (RFC 7530 section 15.2) once
 * it is known what it does, behind the operations that only choose a file.
 * The status is that of the RPC, not of the procedure: a reply does not say
 * which that was. Calls from the server (NFSv4 callbacks) are not followed.
 */
#include <assert.h>
#include <string.h>

#include "sunrpc.h"
#include "load.h"

#define FRAGMENT_MAX (1u << 30)
#define LAST_FRAGMENT 0x80000000u
#define AUTH_BYTES_MAX 400u	 /* of credentials and of a verifier, RFC 5531 section 8.2 */
#define AUTH_FLAVOR_GSS 6u	 /* RFC 2203: arguments may be encrypted */
#define TAG_BYTES_MAX 1024u	 /* NFS4_OPAQUE_LIMIT */
#define HANDLE_BYTES_MAX 128u	 /* NFS4_FHSIZE */
#define SEQUENCE_BYTES 32u	 /* arguments: session, sequence, slot, highest slot, cached */
#define OPERATIONS_LOOKED_AT 16u /* of a COMPOUND */

enum sunrpc_field {
	FIELD_XID,
	FIELD_TYPE,
	/* Of a call, section 9. */
	FIELD_RPC_VERSION,
	FIELD_PROGRAM,
	FIELD_VERSION,
	FIELD_PROCEDURE,
	FIELD_CRED_FLAVOR,
	FIELD_CRED_LENGTH,
	FIELD_CALL_VERF_FLAVOR,
	FIELD_CALL_VERF_LENGTH,
	FIELD_TAG_LENGTH,
	FIELD_MINOR_VERSION,
	FIELD_OPERATIONS,
	FIELD_OPERATION,
	FIELD_HANDLE_LENGTH,
	/* Of a reply. */
	FIELD_REPLY_STATE,
	FIELD_VERF_FLAVOR,
	FIELD_VERF_LENGTH,
	FIELD_ACCEPT_STATE,
	FIELD_REJECT_STATE,
	FIELD_DONE,
};

struct sunrpc_dir {
	uint32_t left; /* bytes of the fragment */
	bool in_fragment, last, told;
	struct sunrpc_word {
		uint8_t have;
		uint8_t bytes[4];
	} mark, word; /* being read; a fragment may end within a word */
	struct sunrpc_message {
		uint8_t field;	 /* enum sunrpc_field that is read next */
		uint32_t pass;	 /* bytes before it */
		uint32_t flavor; /* of the credentials */
		uint32_t xid, program, version, procedure, operation;
		uint32_t operations; /* still to be looked at */
		int32_t status;
		bool reply;
	} message;
};

static_assert(sizeof(struct sunrpc_dir) <= BS_FRAME_STATE_BYTES, "state must fit");

/* XDR pads to a multiple of four, RFC 4506 section 4.9. */
static uint32_t
padded(uint32_t bytes)
{
	return (bytes + 3) & ~3u;
}

static bool
auth_length_take(struct sunrpc_message *message, uint32_t length, uint8_t next)
{
	message->pass = padded(length);
	message->field = next;
	return length <= AUTH_BYTES_MAX;
}

/* Behind the verifier the arguments begin. */
static uint8_t
first_argument(const struct sunrpc_message *message)
{
	return message->program == PROGRAM_NFS && message->version == NFS4 &&
			       message->procedure == NFS4_COMPOUND &&
			       message->flavor != AUTH_FLAVOR_GSS
		       ? FIELD_TAG_LENGTH
		       : FIELD_DONE;
}

static void
operation_take(struct sunrpc_message *message, uint32_t operation)
{
	message->operation = operation;
	if (--message->operations == 0) {
		message->field = FIELD_DONE;
		return;
	}
	switch (operation) {
	case NFS4_SEQUENCE:
		message->pass = SEQUENCE_BYTES;
		break;
	case NFS4_PUTFH:
		message->field = FIELD_HANDLE_LENGTH;
		break;
	case NFS4_PUTPUBFH:
	case NFS4_PUTROOTFH:
	case NFS4_RESTOREFH:
	case NFS4_SAVEFH:
		break;
	default:
		message->field = FIELD_DONE;
		break;
	}
}

/* The next word of a COMPOUND's arguments. What makes no sense ends the look at them. */
static void
compound_word(struct sunrpc_message *message, uint32_t word)
{
	const uint8_t field = message->field;

	message->field = FIELD_DONE;
	switch (field) {
	case FIELD_TAG_LENGTH:
		message->pass = padded(word);
		if (word <= TAG_BYTES_MAX)
			message->field = FIELD_MINOR_VERSION;
		break;
	case FIELD_MINOR_VERSION:
		message->field = FIELD_OPERATIONS;
		break;
	case FIELD_OPERATIONS:
		message->operations = word < OPERATIONS_LOOKED_AT ? word : OPERATIONS_LOOKED_AT;
		if (word > 0)
			message->field = FIELD_OPERATION;
		break;
	case FIELD_OPERATION:
		message->field = FIELD_OPERATION;
		operation_take(message, word);
		break;
	default: /* FIELD_HANDLE_LENGTH */
		message->pass = padded(word);
		if (word <= HANDLE_BYTES_MAX)
			message->field = FIELD_OPERATION;
		break;
	}
}

static bool
reply_word(struct sunrpc_message *message, uint32_t word)
{
	switch (message->field) {
	case FIELD_REPLY_STATE:
		message->field = word == 0 ? FIELD_VERF_FLAVOR : FIELD_REJECT_STATE;
		return word <= 1;
	case FIELD_VERF_FLAVOR:
		message->field = FIELD_VERF_LENGTH;
		return true;
	case FIELD_VERF_LENGTH:
		return auth_length_take(message, word, FIELD_ACCEPT_STATE);
	case FIELD_ACCEPT_STATE:
		message->status = (int32_t)word;
		message->field = FIELD_DONE;
		return word <= 5; /* SYSTEM_ERR */
	default:		  /* FIELD_REJECT_STATE: RPC_MISMATCH, AUTH_ERROR */
		message->status = -1 - (int32_t)(word & 1);
		message->field = FIELD_DONE;
		return word <= 1;
	}
}

/* The next word of a message. False: this is none. */
static bool
message_word(struct sunrpc_message *message, uint32_t word)
{
	switch (message->field) {
	case FIELD_XID:
		message->xid = word;
		message->field = FIELD_TYPE;
		return true;
	case FIELD_TYPE:
		message->reply = word == 1;
		message->field = message->reply ? FIELD_REPLY_STATE : FIELD_RPC_VERSION;
		return word <= 1;
	case FIELD_RPC_VERSION:
		message->field = FIELD_PROGRAM;
		return word == 2;
	case FIELD_PROGRAM:
		message->program = word;
		message->field = FIELD_VERSION;
		return word != 0;
	case FIELD_VERSION:
		message->version = word;
		message->field = FIELD_PROCEDURE;
		return true;
	case FIELD_PROCEDURE:
		message->procedure = word;
		message->field = FIELD_CRED_FLAVOR;
		return true;
	case FIELD_CRED_FLAVOR:
		message->flavor = word;
		message->field = FIELD_CRED_LENGTH;
		return true;
	case FIELD_CRED_LENGTH:
		return auth_length_take(message, word, FIELD_CALL_VERF_FLAVOR);
	case FIELD_CALL_VERF_FLAVOR:
		message->field = FIELD_CALL_VERF_LENGTH;
		return true;
	case FIELD_CALL_VERF_LENGTH:
		return auth_length_take(message, word, first_argument(message));
	case FIELD_TAG_LENGTH:
	case FIELD_MINOR_VERSION:
	case FIELD_OPERATIONS:
	case FIELD_OPERATION:
	case FIELD_HANDLE_LENGTH:
		compound_word(message, word);
		return true;
	default:
		return reply_word(message, word);
	}
}

/* Gathers a word. True if it is complete. */
static bool
word_take(struct sunrpc_word *word, const uint8_t **at, const uint8_t *end)
{
	while (*at < end) {
		word->bytes[word->have++] = *(*at)++;
		if (word->have == sizeof(word->bytes)) {
			word->have = 0;
			return true;
		}
	}
	return false;
}

/* Takes bytes of a message until what it is is known. False: it is none. */
static bool
message_take(struct sunrpc_dir *dir, const uint8_t **at, const uint8_t *end)
{
	struct sunrpc_message *message = &dir->message;

	while (*at < end && message->field != FIELD_DONE) {
		size_t n = (size_t)(end - *at);

		if (message->pass > 0) {
			if (n > message->pass)
				n = message->pass;
			message->pass -= (uint32_t)n;
			*at += n;
		} else if (word_take(&dir->word, at, end) &&
			   !message_word(message, load_be32(dir->word.bytes))) {
			return false;
		}
	}
	return true;
}

/* Is what was read enough to tell? A call may end, or be cut, behind its procedure. */
static bool
may_tell(const struct sunrpc_message *message)
{
	return message->field == FIELD_DONE ||
	       (!message->reply && message->field > FIELD_CRED_FLAVOR);
}

static void
message_tell(const struct sunrpc_message *message, struct bs_frame *frame)
{
	frame->flags |= BS_FRAME_HEAD;
	frame->has_id = 1;
	frame->id = message->xid;
	if (message->reply) {
		frame->role = BS_ROLE_RESPONSE;
		frame->has_status = 1;
		frame->status = message->status;
		frame->error = message->status != 0;
		return;
	}
	frame->role = BS_ROLE_REQUEST;
	frame->label_len = bs_sunrpc_label(message->program, message->version, message->procedure,
		message->operation, frame->label);
}

/* A mark is read. False: a fragment like that makes no sense here. */
static bool
fragment_begins(struct sunrpc_dir *dir, struct bs_frame *frame)
{
	uint32_t mark = load_be32(dir->mark.bytes);

	dir->last = (mark & LAST_FRAGMENT) != 0;
	dir->left = mark & ~LAST_FRAGMENT;
	dir->in_fragment = dir->left > 0;
	if (mark == 0 || dir->left > FRAGMENT_MAX || (dir->last && dir->left == 0 && !dir->told))
		return false;
	if (!dir->told)
		return true;
	/* Of a message that is known. */
	frame->skip = dir->left;
	if (dir->left > 0)
		frame->flags |= BS_FRAME_SKIP;
	if (dir->last)
		frame->flags |= BS_FRAME_END;
	dir->in_fragment = false;
	return true;
}

/* Bytes of a fragment of a message that is not known yet. */
static bool
fragment_take(
	struct sunrpc_dir *dir, const uint8_t **at, const uint8_t *end, struct bs_frame *frame)
{
	const uint8_t *begin = *at;

	if ((size_t)(end - *at) > dir->left)
		end = *at + dir->left;
	if (!message_take(dir, at, end))
		return false;
	dir->left -= (uint32_t)(*at - begin);
	if (dir->message.field != FIELD_DONE && dir->left > 0)
		return true; /* needs more */
	dir->in_fragment = false;
	if (dir->message.field != FIELD_DONE && !dir->last)
		return true; /* goes on in the next */
	if (!may_tell(&dir->message))
		return false;
	message_tell(&dir->message, frame);
	dir->told = true;
	frame->skip = dir->left;
	if (dir->left > 0)
		frame->flags |= BS_FRAME_SKIP;
	if (dir->last)
		frame->flags |= BS_FRAME_END;
	return true;
}

static size_t
sunrpc_feed(const struct bs_framer *framer, struct bs_frame_conn *conn, bool from_server,
	const uint8_t *data, size_t bytes, struct bs_frame *frame)
{
	struct sunrpc_dir *dir = (struct sunrpc_dir *)conn->dir[from_server].bytes;
	const uint8_t *at = data, *end = data + bytes;
	bool good = true;

	(void)framer;
	while (at < end && frame->flags == 0 && good) {
		if (dir->in_fragment)
			good = fragment_take(dir, &at, end, frame);
		else if (word_take(&dir->mark, &at, end))
			good = fragment_begins(dir, frame);
	}
	if (!good)
		frame->flags = BS_FRAME_BAD;
	if (frame->flags & (BS_FRAME_BAD | BS_FRAME_END))
		memset(dir, 0, sizeof(*dir));
	return (size_t)(at - data);
}

static bool
sunrpc_datagram_feed(const struct bs_framer *framer, bool from_server, const uint8_t *data,
	size_t bytes, struct bs_frame *frame)
{
	struct sunrpc_dir dir = {0};
	const uint8_t *at = data;

	(void)framer;
	(void)from_server; /* the message says it */
	if (bytes == 0 || !message_take(&dir, &at, data + bytes) || !may_tell(&dir.message))
		return false;
	message_tell(&dir.message, frame);
	frame->flags |= BS_FRAME_END;
	return true;
}

/* A call with version 2 of the protocol, or a reply with all its states, leaves no doubt. */
static int
sunrpc_probe(const struct bs_framer *framer, bool from_server, const uint8_t *data, size_t bytes)
{
	struct bs_frame_conn conn = {0};
	const struct sunrpc_dir *dir = (const struct sunrpc_dir *)conn.dir[0].bytes;
	struct bs_frame frame = {0};
	size_t used;

	if (bytes == 0)
		return 1;
	used = sunrpc_feed(framer, &conn, false, data, bytes, &frame);
	if (frame.flags & BS_FRAME_BAD)
		return 0;
	if (frame.flags & BS_FRAME_HEAD)
		return (frame.role == BS_ROLE_RESPONSE) == from_server ? 2 : 0;
	if (used >= 4 && dir->left > 0 && dir->message.field > FIELD_TYPE &&
		dir->message.reply != from_server)
		return 0;
	return may_tell(&dir->message) ? 2 : 1;
}

const struct bs_framer_ops bs_framer_sunrpc = {
	.name = "sunrpc",
	.pairing = BS_PAIR_BY_ID,
	.datagram = true,
	.id_is_retry = true,
	.feed = sunrpc_feed,
	.datagram_feed = sunrpc_datagram_feed,
	.probe = sunrpc_probe,
	.ports = {2049, 111, 20048},
};
