/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plays the two byte streams of a connection to a framer as the tracker does,
 * cut in any way, and notes all that it tells with absolute offsets: however
 * the streams are cut, the notes must be the same. Every piece is a heap block
 * of its own, so that ASan sees a read outside of it.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bs_framer.h"

#define TOLD_MAX 4096u

struct chunk {
	bool from_server;
	const void *data;
	size_t bytes;
};

#define C(text)                                                                                    \
	{                                                                                          \
		false, text, sizeof(text) - 1                                                      \
	}
#define S(text)                                                                                    \
	{                                                                                          \
		true, text, sizeof(text) - 1                                                       \
	}
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct told {
	uint64_t begin, at, skip, id; /* offsets in the direction's stream */
	int32_t status;
	uint32_t answers, token;
	uint8_t from_server, flags, role, oneway, has_id, has_status, until_close, error;
	uint8_t trace_id[16], parent_span_id[8]; /* 0: none */
	char label[BS_FRAME_LABEL_BYTES + 1];
};

struct replay {
	size_t count;
	struct bs_frame_conn conn;
	struct {
		uint64_t at, begin, skip;
		bool inside, dead;
	} dir[2];
	struct told told[TOLD_MAX]; /* [count]; large, so not cleared */
};

static inline void
replay_note(struct replay *r, bool from_server, const struct bs_frame *frame)
{
	struct told *told = &r->told[r->count++];

	assert_true(r->count < TOLD_MAX);
	memset(told, 0, sizeof(*told));
	told->from_server = from_server;
	told->flags = frame->flags;
	told->begin = r->dir[from_server].begin;
	told->at = r->dir[from_server].at;
	if (frame->flags & BS_FRAME_SKIP)
		told->skip = frame->skip;
	if (!(frame->flags & BS_FRAME_HEAD))
		return;
	told->role = frame->role;
	told->oneway = frame->oneway;
	told->has_id = frame->has_id;
	told->id = frame->id;
	told->has_status = frame->has_status;
	told->status = frame->status;
	told->until_close = frame->until_close;
	told->error = frame->error;
	told->answers = frame->answers;
	told->token = frame->token;
	if (frame->has_trace) {
		memcpy(told->trace_id, frame->trace_id, sizeof(told->trace_id));
		memcpy(told->parent_span_id, frame->parent_span_id, sizeof(told->parent_span_id));
	}
	assert_true(frame->label_len <= BS_FRAME_LABEL_BYTES);
	memcpy(told->label, frame->label, frame->label_len);
}

/* One piece; the framer is asked until it has taken all of it. */
static inline void
replay_piece(struct replay *r, const struct bs_framer *framer, bool from_server,
	const uint8_t *data, size_t bytes)
{
	uint8_t *copy = malloc(bytes + (bytes == 0)), *at = copy;

	assert_non_null(copy);
	memcpy(copy, data, bytes);
	while (bytes > 0 && !r->dir[from_server].dead) {
		struct bs_frame frame = {0};
		size_t used = bytes;

		if (r->dir[from_server].skip > 0) {
			if (used > r->dir[from_server].skip)
				used = (size_t)r->dir[from_server].skip;
			r->dir[from_server].skip -= used;
		} else {
			if (!r->dir[from_server].inside)
				r->dir[from_server].begin = r->dir[from_server].at;
			r->dir[from_server].inside = true;
			used = framer->ops->feed(framer, &r->conn, from_server, at, bytes, &frame);
			assert_true(used <= bytes);
			assert_true(used > 0 || frame.flags == BS_FRAME_BAD);
		}
		at += used;
		bytes -= used;
		r->dir[from_server].at += used;
		if (frame.flags == 0)
			continue;
		replay_note(r, from_server, &frame);
		if (frame.flags & BS_FRAME_SKIP)
			r->dir[from_server].skip = frame.skip;
		if (frame.flags & BS_FRAME_END)
			r->dir[from_server].inside = false;
		if (frame.flags & BS_FRAME_BAD)
			r->dir[from_server].dead = true;
	}
	free(copy);
}

#define REPLAY_MEMORY (1u << 18)

/* What framers kept of the connection is given back, all of it. */
static inline void
replay_forget(struct replay *r, const struct bs_framer *framer)
{
	for (unsigned d = 0; d < 2; d++) {
		if (framer->ops->forget != NULL)
			framer->ops->forget(&r->conn, d);
	}
	assert_int_equal(bs_frame_memory_used(r->conn.memory), 0);
	bs_frame_memory_destroy(r->conn.memory);
	r->conn.memory = NULL;
}

/* Each chunk in steps of `step` bytes, chunk `cut_chunk` with one more cut at `cut_at`. */
static inline void
replay_run(struct replay *r, const struct bs_framer *framer, const struct chunk *chunks,
	size_t count, size_t step, size_t cut_chunk, size_t cut_at)
{
	memset(r, 0, offsetof(struct replay, told));
	r->conn.memory = bs_frame_memory_create(REPLAY_MEMORY);
	assert_non_null(r->conn.memory);
	for (size_t i = 0; i < count; i++) {
		const uint8_t *data = chunks[i].data;

		for (size_t at = 0, n; at < chunks[i].bytes; at += n) {
			n = chunks[i].bytes - at < step ? chunks[i].bytes - at : step;
			if (i == cut_chunk && cut_at > at && cut_at < at + n)
				n = cut_at - at;
			replay_piece(r, framer, chunks[i].from_server, data + at, n);
		}
	}
	replay_forget(r, framer);
}

static inline void
replay_compare(const struct replay *want, const struct replay *got, size_t step, size_t cut_chunk,
	size_t cut_at)
{
	for (size_t i = 0; i < want->count && i < got->count; i++) {
		if (memcmp(&want->told[i], &got->told[i], sizeof(want->told[i])) != 0)
			fail_msg("step %zu, chunk %zu cut at %zu: note %zu differs: flags %x/%x "
				 "at %llu/%llu '%s'/'%s'",
				step, cut_chunk, cut_at, i, want->told[i].flags, got->told[i].flags,
				(unsigned long long)want->told[i].at,
				(unsigned long long)got->told[i].at, want->told[i].label,
				got->told[i].label);
	}
	if (want->count != got->count)
		fail_msg("step %zu, chunk %zu cut at %zu: %zu notes, not %zu", step, cut_chunk,
			cut_at, got->count, want->count);
}

/*
 * Plays whole chunks into *r, then the same cut at every position (of long
 * chunks, at some) and in small steps, and compares.
 */
static inline void
replay_all_cuts(
	struct replay *r, const struct bs_framer *framer, const struct chunk *chunks, size_t count)
{
	static const size_t steps[] = {1, 2, 3, 7, 64, 1448};
	struct replay *other = malloc(sizeof(*other));
	size_t total = 0;

	assert_non_null(other);
	replay_run(r, framer, chunks, count, SIZE_MAX, 0, 0);
	for (size_t i = 0; i < count; i++)
		total += chunks[i].bytes;
	for (size_t i = 0; i < COUNT(steps); i++) {
		if (steps[i] < 64 && total > 50000)
			continue; /* mostly skipped bytes */
		replay_run(other, framer, chunks, count, steps[i], 0, 0);
		replay_compare(r, other, steps[i], 0, 0);
	}
	for (size_t i = 0; i < count; i++) {
		size_t stride = 1 + chunks[i].bytes * total / 1000000;

		for (size_t at = 1; at < chunks[i].bytes; at += stride) {
			replay_run(other, framer, chunks, count, SIZE_MAX, i, at);
			replay_compare(r, other, SIZE_MAX, i, at);
		}
	}
	free(other);
}

/* Counts of what matters to pairing. */
struct tally {
	unsigned requests, oneway, responses, interim, pushed, errors, bad;
};

static inline struct tally
replay_tally(const struct replay *r)
{
	struct tally tally = {0};

	for (size_t i = 0; i < r->count; i++) {
		const struct told *told = &r->told[i];
		bool response = told->role == BS_ROLE_RESPONSE ||
				(told->role == BS_ROLE_BY_DIRECTION && told->from_server);

		tally.bad += (told->flags & BS_FRAME_BAD) != 0;
		if (!(told->flags & BS_FRAME_HEAD))
			continue;
		tally.errors += told->error;
		tally.interim += told->role == BS_ROLE_INTERIM;
		tally.pushed += told->role == BS_ROLE_PUSH;
		tally.responses += response;
		if (!response && told->role <= BS_ROLE_REQUEST) {
			tally.requests++;
			tally.oneway += told->oneway != 0;
		}
	}
	return tally;
}

/* The n-th request of the client, or response of the server, that began. */
static inline const struct told *
replay_message(const struct replay *r, bool from_server, unsigned n)
{
	for (size_t i = 0; i < r->count; i++) {
		if (r->told[i].from_server == from_server && (r->told[i].flags & BS_FRAME_HEAD) &&
			r->told[i].role <= BS_ROLE_RESPONSE && n-- == 0)
			return &r->told[i];
	}
	fail_msg("there are not so many");
	return NULL;
}

/* How many of them ended. */
static inline unsigned
replay_ended(const struct replay *r, bool from_server)
{
	unsigned n = 0;

	for (size_t i = 0; i < r->count; i++)
		n += r->told[i].from_server == from_server && (r->told[i].flags & BS_FRAME_END) &&
		     r->told[i].role <= BS_ROLE_RESPONSE;
	return n;
}

static struct bs_framers replay_table;

static inline const struct bs_framer *
replay_framer(const char *name)
{
	const struct bs_framer *framer;
	unsigned bad;

	assert_int_equal(bs_framers_init(&replay_table, NULL, 0, &bad), 0);
	framer = bs_framers_find(&replay_table, name);
	assert_non_null(framer);
	return framer;
}
