/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cycles a message takes in its framer: messages back to back in one piece,
 * skipped bytes not read, as the tracker does it. Run on an idle CPU; the best
 * of the rounds is what the code needs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

#include "bs_framer.h"

#define MESSAGES 64u
#define ROUNDS 20000u

static const struct {
	const char *name, *protocol;
	bool from_server;
	const char *text;
	size_t bytes;
} cases[] = {
#define CASE(name, protocol, from_server, text)                                                    \
	{                                                                                          \
		name, protocol, from_server, text, sizeof(text) - 1                                \
	}
	CASE("RESP GET", "resp", false, "*2\r\n$3\r\nGET\r\n$7\r\nkey:123\r\n"),
	CASE("RESP SET", "resp", false,
		"*3\r\n$3\r\nSET\r\n$7\r\nkey:123\r\n$16\r\n0123456789abcdef\r\n"),
	CASE("RESP bulk reply", "resp", true, "$16\r\n0123456789abcdef\r\n"),
	CASE("RESP +OK", "resp", true, "+OK\r\n"),
	CASE("HTTP GET, 5 fields", "http1", false,
		"GET /api/users/17?full=1 HTTP/1.1\r\nHost: example.com\r\nUser-Agent: "
		"curl/7.88.1\r\n"
		"Accept: */*\r\nConnection: keep-alive\r\nCookie: "
		"session=0123456789abcdef\r\n\r\n"),
	CASE("HTTP 200, 5 fields", "http1", true,
		"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Sat, 01 Jan 2022 00:00:00 GMT\r\n"
		"Content-Type: text/html\r\nContent-Length: 12\r\nConnection: keep-alive\r\n\r\n"
		"hello, world"),
	CASE("DNS over TCP", "dns", false,
		"\0\x1d\x12\x34\1\0\0\1\0\0\0\0\0\0\7example\3com\0\0\1\0\1"),
	CASE("Modbus row", "modbus", false, "\x12\x34\0\0\0\6\1\3\0\x6b\0\3"),
};

/* One pass over the messages; the number that were told whole. */
static unsigned
pass(const struct bs_framer *framer, struct bs_frame_conn *conn, bool from_server,
	const uint8_t *data, size_t bytes)
{
	unsigned ends = 0;

	for (size_t at = 0; at < bytes;) {
		struct bs_frame frame;

		memset(&frame, 0, sizeof(frame));
		at += framer->ops->feed(framer, conn, from_server, data + at, bytes - at, &frame);
		if (frame.flags & BS_FRAME_SKIP)
			at += frame.skip;
		ends += (frame.flags & BS_FRAME_END) != 0;
	}
	return ends;
}

int
main(void)
{
	static struct bs_framers framers;
	unsigned bad;

	if (bs_framers_init(&framers, NULL, 0, &bad) != 0)
		return 1;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct bs_framer *framer = bs_framers_find(&framers, cases[i].protocol);
		size_t bytes = MESSAGES * cases[i].bytes;
		uint8_t *data = malloc(bytes);
		uint64_t best = UINT64_MAX;

		if (framer == NULL || data == NULL)
			return 1;
		for (size_t m = 0; m < MESSAGES; m++)
			memcpy(data + m * cases[i].bytes, cases[i].text, cases[i].bytes);
		for (unsigned round = 0; round < ROUNDS; round++) {
			struct bs_frame_conn conn = {0};
			uint64_t begin = __rdtsc(), cycles;

			if (pass(framer, &conn, cases[i].from_server, data, bytes) != MESSAGES)
				return 1;
			cycles = __rdtsc() - begin;
			if (cycles < best)
				best = cycles;
		}
		printf("%-20s %4zu bytes %5.0f TSC cycles/message\n", cases[i].name, cases[i].bytes,
			(double)best / MESSAGES);
		free(data);
	}
	return 0;
}
