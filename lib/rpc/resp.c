/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Redis protocol, RESP2 and RESP3 (Redis serialization protocol
 * specification). Requests are arrays of bulk strings, or inline: a line of
 * words. Replies are of any type; streamed types ("?" as a length), which no
 * server sends, are refused.
 *
 * Pairing is by order, and three things disturb it, so they are followed here:
 * commands that are not answered (CLIENT REPLY, REPLCONF ACK), messages nobody
 * asked for (published, invalidated, monitored), and SUBSCRIBE and its kin,
 * which have a confirmation for each channel: the first is the answer.
 */
#include <strings.h>

#include "resp.h"

#define PROBE_LINE_BYTES 512u

static size_t
resp_feed(const struct bs_framer *framer, struct bs_frame_conn *conn, bool from_server,
	const uint8_t *data, size_t bytes, struct bs_frame *frame)
{
	struct resp_dir *dir = (struct resp_dir *)conn->dir[from_server].bytes;
	const uint8_t *at = data, *end = data + bytes;
	enum resp_step step = STEP_MORE;

	(void)framer;
	while (at < end && step == STEP_MORE)
		step = from_server ? bs_resp_reply_step(conn, dir, &at, end, frame)
				   : bs_resp_request_step(conn, dir, &at, end, frame);
	if (step == STEP_BAD) {
		memset(dir, 0, sizeof(*dir));
		frame->flags = BS_FRAME_BAD;
	}
	return (size_t)(at - data);
}

/* What people, health checks and scripts write inline; other words are too likely something else.
 */
static bool
is_usual_inline(const uint8_t *data, size_t bytes)
{
	static const char *const words[] = {"AUTH", "CLIENT", "CONFIG", "DBSIZE", "DEL", "ECHO",
		"EXISTS", "FLUSHALL", "FLUSHDB", "GET", "HELLO", "INCR", "INFO", "KEYS", "LRANGE",
		"MONITOR", "PING", "PSYNC", "PUBLISH", "QUIT", "ROLE", "SELECT", "SET", "SUBSCRIBE",
		"SYNC", "TTL", "TYPE"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t n = strlen(words[i]), seen = bytes < n ? bytes : n;

		if (strncasecmp((const char *)data, words[i], seen) == 0 &&
			(bytes <= n || data[n] == ' ' || data[n] == '\r' || data[n] == '\n'))
			return true;
	}
	return false;
}

static int
probe_request(const uint8_t *data, size_t bytes)
{
	const uint8_t *at = data + 1, *end = data + bytes;
	struct resp_number count = {0}, length = {0};
	int ret;

	if (data[0] != '*')
		return is_usual_inline(data, bytes);
	ret = resp_number_take(&count, &at, end);
	if (ret < 0 || count.negative || count.value > RESP_COUNT_MAX)
		return 0;
	if (ret == 0 || at == end)
		return 1;
	if (*at++ != '$')
		return 0;
	ret = resp_number_take(&length, &at, end);
	if (ret < 0 || length.negative || length.value > RESP_BODY_MAX)
		return 0;
	return ret == 0 ? 1 : 2;
}

/* A simple string or the like: text, and not much of it, up to CR LF. */
static int
probe_line(const uint8_t *data, size_t bytes)
{
	for (size_t i = 1; i < bytes && i < PROBE_LINE_BYTES; i++) {
		if (data[i] == '\r')
			return i + 1 == bytes || data[i + 1] == '\n';
		if (data[i] < 0x20)
			return 0;
	}
	return bytes < PROBE_LINE_BYTES;
}

static int
probe_reply(const uint8_t *data, size_t bytes)
{
	static const char types[] = "+-:$*_#,(!=%~>|";
	const uint8_t *at = data + 1, *end = data + bytes;
	struct resp_number number = {0};
	int ret;

	if (memchr(types, data[0], sizeof(types) - 1) == NULL)
		return 0;
	if (memchr("$*!=%~>|:", data[0], 9) == NULL)
		return probe_line(data, bytes);
	ret = resp_number_take(&number, &at, end);
	if (ret < 0 || (data[0] != ':' && number.negative && !resp_is_null(&number)))
		return 0;
	if (ret == 0 || at == end)
		return 1;
	switch (data[0]) {
	case ':':
		return 1;
	case '$':
	case '!':
	case '=':
		if (number.negative || (size_t)(end - at) < number.value + 2)
			return 1;
		return at[number.value] == '\r' && at[number.value + 1] == '\n' ? 2 : 0;
	default:
		return memchr(types, *at, sizeof(types) - 1) == NULL ? 0 : 2;
	}
}

static int
resp_probe(const struct bs_framer *framer, bool from_server, const uint8_t *data, size_t bytes)
{
	(void)framer;
	if (bytes == 0)
		return 1;
	return from_server ? probe_reply(data, bytes) : probe_request(data, bytes);
}

const struct bs_framer_ops bs_framer_resp = {
	.name = "resp",
	.pairing = BS_PAIR_BY_ORDER,
	.feed = resp_feed,
	.probe = resp_probe,
	.ports = {6379, 6380, 26379},
};
