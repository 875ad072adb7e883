/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Redis commands: where they end, what they are called, and whether they will
 * be answered. Arguments are not looked at.
 */
#include "resp.h"

#define INLINE_MAX 65536u /* bytes, PROTO_INLINE_MAX_SIZE */
#define WORD_KEPT 32u
#define EARLY_ARGUMENTS 8u /* with more of them, the command is told before they are read */

/* By length: most commands are shorter than these, and found to be plain at once. */
static const struct {
	uint8_t bytes, kind;
	char name[14];
} commands[] = {
	{3, COMMAND_CONTAINER, "ACL"},
	{4, COMMAND_SYNC, "SYNC"},
	{5, COMMAND_CONTAINER, "DEBUG"},
	{5, COMMAND_SYNC, "PSYNC"},
	{5, COMMAND_CONTAINER, "XINFO"},
	{6, COMMAND_CONTAINER, "CLIENT"},
	{6, COMMAND_CONTAINER, "CONFIG"},
	{6, COMMAND_CONTAINER, "MEMORY"},
	{6, COMMAND_CONTAINER, "MODULE"},
	{6, COMMAND_CONTAINER, "OBJECT"},
	{6, COMMAND_CONTAINER, "PUBSUB"},
	{6, COMMAND_CONTAINER, "SCRIPT"},
	{6, COMMAND_CONTAINER, "XGROUP"},
	{7, COMMAND_CONTAINER, "CLUSTER"},
	{7, COMMAND_CONTAINER, "COMMAND"},
	{7, COMMAND_CONTAINER, "LATENCY"},
	{7, COMMAND_MONITOR, "MONITOR"},
	{7, COMMAND_CONTAINER, "SLOWLOG"},
	{8, COMMAND_CONTAINER, "FUNCTION"},
	{8, COMMAND_CONTAINER, "REPLCONF"},
	{8, COMMAND_CONTAINER, "SENTINEL"},
	{9, COMMAND_SUBSCRIBE, "SUBSCRIBE"},
	{10, COMMAND_SUBSCRIBE, "PSUBSCRIBE"},
	{10, COMMAND_SUBSCRIBE, "SSUBSCRIBE"},
	{11, COMMAND_UNSUBSCRIBE, "UNSUBSCRIBE"},
	{12, COMMAND_UNSUBSCRIBE, "PUNSUBSCRIBE"},
	{12, COMMAND_UNSUBSCRIBE, "SUNSUBSCRIBE"},
};

static uint8_t
command_kind(const char *name, uint8_t bytes)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (commands[i].bytes > bytes)
			break;
		if (commands[i].bytes == bytes && memcmp(commands[i].name, name, bytes) == 0)
			return commands[i].kind;
	}
	return COMMAND_PLAIN;
}

static void
word_add(struct resp_request *request, uint8_t byte)
{
	if (request->word_bytes == WORD_KEPT || request->text_bytes == RESP_TEXT_BYTES)
		return;
	if ((uint8_t)(byte - 'a') < 26)
		byte &= (uint8_t)~0x20;
	request->text[request->text_bytes++] = byte > 0x20 && byte < 0x7f ? (char)byte : '.';
	request->word_bytes++;
}

/* A word is complete: what it says of how many are wanted. */
static void
word_end(struct resp_request *request)
{
	request->words++;
	request->word_bytes = 0;
	if (request->words == 1) {
		request->kind = command_kind(request->text, request->text_bytes);
		request->wanted = request->kind == COMMAND_CONTAINER ? 2 : 1;
	} else if (request->words == 2 &&
		   resp_text_is(request->text, request->text_bytes, "CLIENT REPLY")) {
		request->wanted = 3; /* which is not part of the label */
	}
	if (request->words <= 2)
		request->label_bytes = request->text_bytes;
	if (request->words == 1 && request->wanted == 2 && request->text_bytes < RESP_TEXT_BYTES)
		request->text[request->text_bytes++] = ' ';
}

static void
request_begin(struct resp_request *request)
{
	memset(request, 0, offsetof(struct resp_request, text));
	request->wanted = 1;
}

/* Whether this command is answered; CLIENT REPLY also decides on those to come. */
static bool
will_be_answered(const struct resp_request *request, uint32_t *flags)
{
	bool silent = *flags & (SHARED_OFF | SHARED_SKIP);
	const char *mode = request->text + request->label_bytes;
	size_t bytes = (size_t)(request->text_bytes - request->label_bytes);

	*flags &= ~SHARED_SKIP;
	if (request->words >= 3 && resp_text_is(mode, bytes, "ON")) {
		*flags &= ~SHARED_OFF;
		return true;
	}
	if (request->words >= 3 && resp_text_is(mode, bytes, "OFF")) {
		*flags |= SHARED_OFF;
		return false;
	}
	if (request->words >= 3 && resp_text_is(mode, bytes, "SKIP")) {
		*flags |= SHARED_SKIP;
		return false;
	}
	return !silent && !resp_text_is(request->text, request->label_bytes, "REPLCONF ACK");
}

/* Notes how many confirmations to expect. Past the bound one each is assumed. */
static void
subscribe_note(struct resp_request *request, uint32_t order)
{
	uint32_t channels = request->count - 1;
	struct subscribe *next;

	if (channels == 0 && request->kind == COMMAND_SUBSCRIBE)
		return; /* answered by an error */
	if (request->subscribe_count == RESP_SUBSCRIBES_MAX)
		return;
	next = &request->subscribes[(request->subscribe_first + request->subscribe_count++) %
				    RESP_SUBSCRIBES_MAX];
	next->order = (uint16_t)order;
	next->channels = channels == 0 || channels > RESP_EVERY_CHANNEL ? RESP_EVERY_CHANNEL
									: (uint16_t)channels;
}

static void
request_head(struct bs_frame_conn *conn, struct resp_dir *dir, struct bs_frame *frame)
{
	struct resp_request *request = &dir->request;
	uint32_t *flags = &conn->shared[SHARED_FLAGS];

	if (dir->told)
		return;
	dir->told = true;
	frame->flags |= BS_FRAME_HEAD;
	frame->label_len = request->label_bytes;
	memcpy(frame->label, request->text, request->label_bytes);
	frame->oneway = !will_be_answered(request, flags);
	if (!frame->oneway)
		conn->shared[SHARED_ASKED]++;
	switch (request->kind) {
	case COMMAND_SUBSCRIBE:
	case COMMAND_UNSUBSCRIBE:
		*flags |= SHARED_PUBSUB;
		if (!frame->oneway)
			subscribe_note(request, conn->shared[SHARED_ASKED]);
		break;
	case COMMAND_MONITOR:
		*flags |= SHARED_MONITOR;
		break;
	case COMMAND_SYNC:
		*flags |= SHARED_SYNC;
		break;
	default:
		break;
	}
}

/* The bulk string that was looked at is read, but for its CR LF. */
static enum resp_step
request_word_end(struct bs_frame_conn *conn, struct resp_dir *dir, struct bs_frame *frame)
{
	struct resp_request *request = &dir->request;
	bool last = request->left == 0;

	word_end(request);
	if (last || (request->words >= request->wanted && request->count > EARLY_ARGUMENTS))
		request_head(conn, dir, frame);
	return resp_body_pass(dir, frame, 2, last);
}

static enum resp_step
request_length(struct bs_frame_conn *conn, struct resp_dir *dir, struct bs_frame *frame)
{
	struct resp_request *request = &dir->request;
	uint64_t bytes = dir->number.value + 2;
	bool last;

	if (dir->number.negative || dir->number.value > RESP_BODY_MAX)
		return STEP_BAD;
	last = --request->left == 0;
	if (request->words < request->wanted) {
		dir->phase = RESP_WORD;
		dir->body = dir->number.value;
		return dir->body == 0 ? request_word_end(conn, dir, frame) : STEP_MORE;
	}
	if (last || bytes > RESP_SMALL_BODY)
		request_head(conn, dir, frame);
	return resp_body_pass(dir, frame, bytes, last);
}

static enum resp_step
request_count(struct resp_dir *dir, struct bs_frame *frame)
{
	struct resp_number *number = &dir->number;

	/* Neither has a command nor gets an answer. */
	if (resp_is_null(number) || number->value == 0)
		return resp_message_end(dir, frame);
	if (number->negative || number->value > RESP_COUNT_MAX)
		return STEP_BAD;
	request_begin(&dir->request);
	dir->request.count = dir->request.left = (uint32_t)number->value;
	dir->phase = RESP_TYPE;
	return STEP_MORE;
}

static void
inline_word_end(struct resp_request *request)
{
	if (!request->in_word)
		return;
	request->in_word = false;
	request->count++;
	if (request->words < request->wanted)
		word_end(request);
}

/* One byte of a line of words, quoted as in a shell. */
static void
inline_byte(struct resp_request *request, uint8_t byte)
{
	if (request->escaped) {
		request->escaped = false;
	} else if (request->quote != 0 && byte == (uint8_t)request->quote) {
		request->quote = 0;
		return;
	} else if (request->quote != 0) {
		request->escaped = byte == '\\';
	} else if (byte == ' ' || byte == '\t' || byte == '\r') {
		inline_word_end(request);
		return;
	} else if (byte == '"' || byte == '\'') {
		request->quote = (char)byte;
		request->in_word = true;
		return;
	}
	request->in_word = true;
	if (request->words < request->wanted)
		word_add(request, byte);
}

/* An unbalanced quote ends with the line, too: an error that is answered. */
static enum resp_step
inline_take(struct bs_frame_conn *conn, struct resp_dir *dir, const uint8_t **at,
	const uint8_t *end, struct bs_frame *frame)
{
	struct resp_request *request = &dir->request;

	while (*at < end) {
		uint8_t byte = *(*at)++;

		if (byte == '\n') {
			inline_word_end(request);
			if (request->count > 0)
				request_head(conn, dir, frame);
			return resp_message_end(dir, frame);
		}
		if (++dir->line > INLINE_MAX)
			return STEP_BAD;
		inline_byte(request, byte);
	}
	return STEP_MORE;
}

static enum resp_step
request_start(struct resp_dir *dir, const uint8_t **at)
{
	dir->number = (struct resp_number){0};
	dir->line = 0;
	if (**at == '*') {
		(*at)++;
		dir->phase = RESP_COUNT;
		return STEP_MORE;
	}
	request_begin(&dir->request);
	dir->phase = RESP_INLINE;
	return resp_may_begin_inline(**at) ? STEP_MORE : STEP_BAD;
}

enum resp_step
bs_resp_request_step(struct bs_frame_conn *conn, struct resp_dir *dir, const uint8_t **at,
	const uint8_t *end, struct bs_frame *frame)
{
	const uint8_t *word = *at;
	int ret;

	switch (dir->phase) {
	case RESP_START:
		return request_start(dir, at);
	case RESP_TYPE:
		dir->number = (struct resp_number){0};
		dir->phase = RESP_LENGTH;
		return *(*at)++ == '$' ? STEP_MORE : STEP_BAD;
	case RESP_COUNT:
	case RESP_LENGTH:
		ret = resp_number_take(&dir->number, at, end);
		if (ret <= 0)
			return ret < 0 ? STEP_BAD : STEP_MORE;
		return dir->phase == RESP_COUNT ? request_count(dir, frame)
						: request_length(conn, dir, frame);
	case RESP_WORD:
		for (size_t n = resp_body_take(dir, at, end); n > 0; n--)
			word_add(&dir->request, *word++);
		return dir->body == 0 ? request_word_end(conn, dir, frame) : STEP_MORE;
	case RESP_PASS:
		return resp_pass_take(dir, at, end);
	default:
		return inline_take(conn, dir, at, end, frame);
	}
}
