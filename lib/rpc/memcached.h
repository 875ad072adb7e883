/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the memcached framers share: memcached.c says how the text
 * protocol is read, memcached_reply.c reads its answers, memcached_binary.c is
 * the binary protocol.
 */
#pragma once

#include <assert.h>
#include <string.h>

#include "bs_framer.h"

/* Kinds of answers that tell which quiet command they belong to. */
#define KIND_VALUE 0x01u      /* VA */
#define KIND_DONE 0x02u	      /* HD */
#define KIND_MISS 0x04u	      /* EN */
#define KIND_NOT_STORED 0x08u /* NS */
#define KIND_EXISTS 0x10u     /* EX */
#define KIND_NOT_FOUND 0x20u  /* NF */
#define KIND_NOOP 0x40u	      /* MN */
#define KIND_ERROR 0x80u
#define KIND_OTHER 0x100u

#define MEMCACHED_WORD_KEPT 16u
#define MEMCACHED_LINE_MAX (1u << 20)  /* a get of some thousand keys */
#define MEMCACHED_DATA_MAX 0x7ffffffdu /* INT_MAX - 2: the server refuses what is longer */

/* conn->shared[0] */
#define SHARED_WATCH 1u /* `watch` was seen */

/* One direction. */
struct memcached_dir {
	bool told;    /* HEAD is out */
	bool quiet;   /* flag q */
	bool noreply; /* the last word of the line is that */
	bool key_asked, has_opaque;
	bool has_data;
	uint8_t command; /* index in the table of commands, or of the words of answers */
	uint32_t data;	 /* bytes of the data block behind the line */
	uint32_t token;	 /* of the line; 0: none */
	uint32_t key_hash;
	struct memcached_line {
		bool in_word, passes; /* passes: the rest is not looked at */
		bool is_number;	      /* so is the word, as far as it came */
		uint8_t words;	      /* complete; saturates */
		uint8_t kept;	      /* bytes of the word in `word` */
		uint32_t bytes;	      /* so far */
		uint32_t number;
		uint32_t hash, hash_start; /* of the word; what it begins with */
		char word[MEMCACHED_WORD_KEPT];
	} line;
};

static_assert(sizeof(struct memcached_dir) <= BS_FRAME_STATE_BYTES, "state must fit");

/* The frame header of UDP, protocol.txt "UDP protocol": what is behind it. */
#define MEMCACHED_UDP_HEADER_BYTES 8u
#define MEMCACHED_DATAGRAMS_MAX 1024u /* of an answer: 1 MB */

/*
 * Reads it. False if it is none. What is not the last datagram of an answer is
 * interim. A request is one datagram.
 */
static inline bool
memcached_udp_take(bool from_server, const uint8_t *data, size_t bytes, struct bs_frame *frame,
	unsigned *sequence)
{
	unsigned total;

	if (bytes <= MEMCACHED_UDP_HEADER_BYTES)
		return false;
	*sequence = (unsigned)data[2] << 8 | data[3];
	total = (unsigned)data[4] << 8 | data[5];
	if (total == 0 || *sequence >= total || (total > 1 && !from_server) ||
		total > MEMCACHED_DATAGRAMS_MAX)
		return false;
	frame->has_id = 1;
	frame->id = (uint64_t)data[0] << 8 | data[1];
	if (*sequence + 1 < total)
		frame->role = BS_ROLE_INTERIM;
	return true;
}

static inline bool
memcached_word_is(const char *word, size_t bytes, const char *what)
{
	return bytes == strlen(what) && memcmp(word, what, bytes) == 0;
}

/* FNV-1a, a byte at a time. */
#define MEMCACHED_HASH_START 2166136261u
static inline uint32_t
memcached_hash(uint32_t hash, uint8_t byte)
{
	return (hash ^ byte) * 16777619u;
}

/* What bs_memcached_line_take says. */
enum memcached_step {
	STEP_MORE, /* the bytes are used up */
	STEP_WORD, /* a word is complete */
	STEP_LINE, /* the line is, and its words were told */
	STEP_BAD,
};

static inline void
memcached_line_begin(struct memcached_line *line)
{
	memset(line, 0, sizeof(*line));
	line->hash_start = MEMCACHED_HASH_START;
}

/* Takes bytes of a line from [*at, end), which is not empty, up to the next thing to tell. */
enum memcached_step bs_memcached_line_take(
	struct memcached_line *line, const uint8_t **at, const uint8_t *end);
/* A word of a meta command or of its answer that both have; notes it as the token. */
void bs_memcached_token_note(struct memcached_dir *dir);

/* As feed and probe of a framer. */
size_t bs_memcached_reply_feed(
	struct bs_frame_conn *conn, const uint8_t *data, size_t bytes, struct bs_frame *frame);
int bs_memcached_reply_probe(const uint8_t *data, size_t bytes);
