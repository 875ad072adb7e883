/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Redis replies: where they end, and whether somebody asked for them.
 */
#include "resp.h"

#define LINE_BYTES_MAX (16u << 20) /* MONITOR prints whole values */

static bool
anything_in_flight(const struct bs_frame_conn *conn)
{
	return (int32_t)(conn->shared[SHARED_ASKED] - conn->shared[SHARED_ANSWERED]) > 0;
}

static bool
kind_is_message(const struct resp_reply *reply)
{
	return resp_text_is(reply->kind, reply->kind_bytes, "message") ||
	       resp_text_is(reply->kind, reply->kind_bytes, "pmessage") ||
	       resp_text_is(reply->kind, reply->kind_bytes, "smessage");
}

static bool
kind_is_confirmation(const struct resp_reply *reply)
{
	static const char *const kinds[] = {"subscribe", "unsubscribe", "psubscribe",
		"punsubscribe", "ssubscribe", "sunsubscribe"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (resp_text_is(reply->kind, reply->kind_bytes, kinds[i]))
			return true;
	}
	return false;
}

/* The first confirmation of a command answers it, the others are pushed. */
static uint8_t
confirmation_role(struct bs_frame_conn *conn, struct resp_reply *reply)
{
	struct resp_request *request = &((struct resp_dir *)conn->dir[0].bytes)->request;
	uint16_t kind = (uint16_t)(reply->kind_bytes << 8 | (uint8_t)reply->kind[0]);
	uint16_t order;

	if (reply->confirmations > 0 && kind == reply->confirmation) {
		if (reply->confirmations != RESP_EVERY_CHANNEL)
			reply->confirmations--;
		return BS_ROLE_PUSH;
	}
	reply->confirmations = 0;
	reply->confirmation = kind;
	if (!anything_in_flight(conn))
		return BS_ROLE_PUSH;
	order = (uint16_t)++conn->shared[SHARED_ANSWERED];
	while (request->subscribe_count > 0) {
		struct subscribe *oldest = &request->subscribes[request->subscribe_first];
		int16_t ahead = (int16_t)(oldest->order - order);

		if (ahead > 0)
			break;
		if (ahead == 0)
			reply->confirmations = oldest->channels == RESP_EVERY_CHANNEL
						       ? RESP_EVERY_CHANNEL
						       : (uint16_t)(oldest->channels - 1);
		/* Older ones were refused. */
		request->subscribe_first = (request->subscribe_first + 1u) % RESP_SUBSCRIBES_MAX;
		request->subscribe_count--;
	}
	return BS_ROLE_BY_DIRECTION;
}

static uint8_t
reply_role(struct bs_frame_conn *conn, struct resp_reply *reply)
{
	bool monitored = conn->shared[SHARED_FLAGS] & SHARED_MONITOR && reply->type == '+' &&
			 (uint8_t)(reply->first - '0') < 10; /* begins with the time */

	if (reply->kind_bytes > 0 && kind_is_confirmation(reply))
		return confirmation_role(conn, reply);
	if (monitored || reply->type == '>' || (reply->kind_bytes > 0 && kind_is_message(reply)))
		return BS_ROLE_PUSH;
	reply->confirmations = 0;
	if (anything_in_flight(conn))
		conn->shared[SHARED_ANSWERED]++;
	return BS_ROLE_BY_DIRECTION;
}

/* The status is 0, or 1 for an error: the protocol has no numbers for them. */
static void
reply_head(struct bs_frame_conn *conn, struct resp_dir *dir, struct bs_frame *frame)
{
	struct resp_reply *reply = &dir->reply;

	if (dir->told)
		return;
	dir->told = true;
	frame->flags |= BS_FRAME_HEAD;
	frame->role = reply_role(conn, reply);
	if (frame->role == BS_ROLE_PUSH)
		return;
	frame->error = reply->type == '-' || reply->type == '!';
	frame->has_status = 1;
	frame->status = frame->error;
}

/* An element is complete: so may be the aggregates it is the last of. True: the message is. */
static bool
element_end(struct resp_reply *reply)
{
	while (reply->depth > 0) {
		if (--reply->left[reply->depth - 1] > 0)
			return false;
		reply->depth--;
		if (reply->attributes >> reply->depth & 1) {
			reply->attributes &= (uint16_t) ~(1u << reply->depth);
			return false;
		}
	}
	return true;
}

/* An element that has no body behind its line. */
static enum resp_step
element_line_end(struct bs_frame_conn *conn, struct resp_dir *dir, struct bs_frame *frame)
{
	bool in_attribute = dir->reply.attributes & 1;
	bool last = element_end(&dir->reply);

	dir->phase = RESP_TYPE;
	if (!in_attribute)
		reply_head(conn, dir, frame);
	if (last)
		return resp_message_end(dir, frame);
	return frame->flags ? STEP_TELL : STEP_MORE;
}

static enum resp_step
element_body(
	struct bs_frame_conn *conn, struct resp_dir *dir, struct bs_frame *frame, uint64_t bytes)
{
	bool in_attribute = dir->reply.attributes & 1;
	bool last = element_end(&dir->reply);

	if (!in_attribute)
		reply_head(conn, dir, frame);
	return resp_body_pass(dir, frame, bytes, last);
}

static enum resp_step
reply_length(struct bs_frame_conn *conn, struct resp_dir *dir, struct bs_frame *frame)
{
	struct resp_reply *reply = &dir->reply;
	uint64_t bytes = dir->number.value;

	if (resp_is_null(&dir->number))
		return element_line_end(conn, dir, frame);
	if (dir->number.negative || bytes > RESP_BODY_MAX)
		return STEP_BAD;
	/* The first word of what may be a message nobody asked for. */
	if (!dir->told && reply->depth == 1 && !(reply->attributes & 1) && bytes > 0 &&
		bytes <= sizeof(reply->kind)) {
		dir->phase = RESP_WORD;
		dir->body = bytes;
		return STEP_MORE;
	}
	return element_body(conn, dir, frame, bytes + 2);
}

static enum resp_step
reply_count(struct bs_frame_conn *conn, struct resp_dir *dir, struct bs_frame *frame)
{
	struct resp_reply *reply = &dir->reply;
	uint64_t count = resp_is_null(&dir->number) ? 0 : dir->number.value;
	bool attribute = dir->type == '|', may_be_pushed;

	if ((dir->number.negative && count > 0) || count > RESP_COUNT_MAX)
		return STEP_BAD;
	if (attribute || dir->type == '%')
		count *= 2;
	dir->phase = RESP_TYPE;
	if (count == 0)
		return attribute ? STEP_MORE : element_line_end(conn, dir, frame);
	if (reply->depth == RESP_DEPTH_MAX)
		return STEP_BAD;
	if (attribute)
		reply->attributes |= (uint16_t)(1u << reply->depth);
	reply->left[reply->depth++] = (uint32_t)count;
	may_be_pushed = reply->type == '>' ||
			(reply->type == '*' && (conn->shared[SHARED_FLAGS] & SHARED_PUBSUB ||
						       !anything_in_flight(conn)));
	if (dir->told || reply->attributes & 1 || (reply->depth == 1 && may_be_pushed))
		return STEP_MORE;
	reply_head(conn, dir, frame);
	return STEP_TELL;
}

static enum resp_step
reply_type(struct bs_frame_conn *conn, struct resp_dir *dir, const uint8_t **at,
	struct bs_frame *frame)
{
	struct resp_reply *reply = &dir->reply;
	uint32_t *flags = &conn->shared[SHARED_FLAGS];

	dir->type = *(*at)++;
	dir->number = (struct resp_number){0};
	dir->line = 0;
	if (reply->depth == 0) {
		reply->type = dir->type;
		reply->kind_bytes = 0;
		if (*flags & SHARED_SYNC && dir->type == '\n') /* keep-alive while it prepares */
			return resp_message_end(dir, frame);
		if (*flags & SHARED_SYNC && dir->type != '-') {
			dir->phase = RESP_REST;
			frame->until_close = BS_UNTIL_CLOSE;
			reply_head(conn, dir, frame);
			return STEP_TELL;
		}
		*flags &= ~SHARED_SYNC;
	}
	switch (dir->type) {
	case '+':
	case '-':
	case ':':
	case ',':
	case '(':
	case '#':
	case '_':
		dir->phase = RESP_LINE;
		return STEP_MORE;
	case '$':
	case '!':
	case '=':
		dir->phase = RESP_LENGTH;
		return STEP_MORE;
	case '>':
		if (reply->depth > 0)
			return STEP_BAD;
		dir->phase = RESP_COUNT;
		return STEP_MORE;
	case '*':
	case '~':
	case '%':
	case '|':
		dir->phase = RESP_COUNT;
		return STEP_MORE;
	default:
		return STEP_BAD;
	}
}

static enum resp_step
reply_line(struct bs_frame_conn *conn, struct resp_dir *dir, const uint8_t **at, const uint8_t *end,
	struct bs_frame *frame)
{
	const uint8_t *newline, *bound = end;

	if ((size_t)(end - *at) > LINE_BYTES_MAX - dir->line)
		bound = *at + (LINE_BYTES_MAX - dir->line);
	if (dir->line == 0)
		dir->reply.first = **at;
	newline = memchr(*at, '\n', (size_t)(bound - *at));
	if (newline == NULL) {
		dir->line += (uint32_t)(bound - *at);
		*at = bound;
		return dir->line == LINE_BYTES_MAX ? STEP_BAD : STEP_MORE;
	}
	*at = newline + 1;
	return element_line_end(conn, dir, frame);
}

enum resp_step
bs_resp_reply_step(struct bs_frame_conn *conn, struct resp_dir *dir, const uint8_t **at,
	const uint8_t *end, struct bs_frame *frame)
{
	struct resp_reply *reply = &dir->reply;
	const uint8_t *word = *at;
	int ret;

	switch (dir->phase) {
	case RESP_START:
		reply->depth = 0;
		reply->attributes = 0;
		return reply_type(conn, dir, at, frame);
	case RESP_TYPE:
		return reply_type(conn, dir, at, frame);
	case RESP_COUNT:
	case RESP_LENGTH:
		ret = resp_number_take(&dir->number, at, end);
		if (ret <= 0)
			return ret < 0 ? STEP_BAD : STEP_MORE;
		return dir->phase == RESP_COUNT ? reply_count(conn, dir, frame)
						: reply_length(conn, dir, frame);
	case RESP_WORD:
		for (size_t n = resp_body_take(dir, at, end); n > 0; n--)
			reply->kind[reply->kind_bytes++] = (char)*word++;
		return dir->body == 0 ? element_body(conn, dir, frame, 2) : STEP_MORE;
	case RESP_PASS:
		return resp_pass_take(dir, at, end);
	case RESP_LINE:
		return reply_line(conn, dir, at, end, frame);
	default:
		*at = end;
		return STEP_MORE;
	}
}
