/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two streams of a connection through each framer, whole and cut: what it
 * tells must be the same. Datagrams and the guess of protocols, too.
 *
 * Input: protocol, cut; if the protocol is a user's, its row; then stretches of
 * stream: {direction (1), length (15); bytes}.
 */
#include "bs_framer.h"
#include "fuzz.h"

#define TOLD_MAX 2048u
#define STRETCHES 32u
#define MEMORY_BYTES (1u << 20)

struct told {
	uint64_t at, skip, id;
	struct bs_frame frame;
};

struct play {
	struct bs_frame_conn conn;
	struct {
		uint64_t at, skip;
		bool dead;
	} dir[2];
	struct told told[TOLD_MAX];
	unsigned count;
};

struct stretch {
	const uint8_t *data;
	size_t bytes;
	bool from_server;
};

static struct bs_framers framers;

/* What of a frame has a meaning: the rest is whatever it was. */
static void
note(struct play *play, bool from_server, const struct bs_frame *frame)
{
	struct told *told;

	if (play->count == TOLD_MAX)
		return;
	told = &play->told[play->count++];
	memset(told, 0, sizeof(*told));
	told->at = play->dir[from_server].at;
	told->frame.flags = frame->flags;
	if (frame->flags & BS_FRAME_SKIP)
		told->skip = frame->skip;
	if (!(frame->flags & BS_FRAME_HEAD))
		return;
	FUZZ_CHECK(frame->label_len <= BS_FRAME_LABEL_BYTES);
	told->frame.role = frame->role;
	told->frame.oneway = frame->oneway;
	told->frame.has_id = frame->has_id;
	told->frame.id = frame->id;
	told->frame.has_status = frame->has_status;
	told->frame.status = frame->status;
	told->frame.until_close = frame->until_close;
	told->frame.error = frame->error;
	told->frame.label_len = frame->label_len;
	told->frame.answers = frame->answers;
	told->frame.token = frame->token;
	memcpy(told->frame.label, frame->label, frame->label_len);
	told->frame.has_trace = frame->has_trace;
	if (frame->has_trace) {
		memcpy(told->frame.trace_id, frame->trace_id, sizeof(frame->trace_id));
		memcpy(told->frame.parent_span_id, frame->parent_span_id,
			sizeof(frame->parent_span_id));
	}
}

static void
piece(struct play *play, const struct bs_framer *framer, bool from_server, const uint8_t *bytes,
	size_t count)
{
	struct fuzz_input whole = {bytes, count};
	size_t left;
	uint8_t *copy = fuzz_take(&whole, count, &left), *at = copy;

	while (left > 0 && !play->dir[from_server].dead) {
		struct bs_frame frame = {0};
		size_t used;

		if (play->dir[from_server].skip > 0) {
			used = left < play->dir[from_server].skip
				       ? left
				       : (size_t)play->dir[from_server].skip;
			play->dir[from_server].skip -= used;
		} else {
			used = framer->ops->feed(
				framer, &play->conn, from_server, at, left, &frame);
			FUZZ_CHECK(used <= left);
			FUZZ_CHECK(used > 0 || frame.flags == BS_FRAME_BAD);
		}
		at += used;
		left -= used;
		play->dir[from_server].at += used;
		if (frame.flags == 0)
			continue;
		note(play, from_server, &frame);
		if (frame.flags & BS_FRAME_SKIP)
			play->dir[from_server].skip = frame.skip;
		if (frame.flags & BS_FRAME_BAD)
			play->dir[from_server].dead = true;
	}
	free(copy);
}

/* 0: whole; up to 127: into pieces of so many bytes; else into pieces of 1 to 64 bytes, at random.
 */
static size_t
piece_bytes(unsigned cut, uint32_t *random, size_t left)
{
	size_t bytes = cut;

	*random = *random * 1664525u + 1013904223u;
	if (cut & 0x80u)
		bytes = 1 + (*random >> 26);
	return cut == 0 || bytes > left ? left : bytes;
}

static void
run(struct play *play, const struct bs_framer *framer, const struct stretch *stretches,
	unsigned count, unsigned cut)
{
	struct bs_frame_memory *memory = bs_frame_memory_create(MEMORY_BYTES);
	uint32_t random = cut;

	FUZZ_CHECK(memory != NULL);
	memset(play, 0, offsetof(struct play, told));
	play->count = 0;
	play->conn.memory = memory;
	for (unsigned i = 0; i < count; i++) {
		for (size_t at = 0, n; at < stretches[i].bytes; at += n) {
			n = piece_bytes(cut, &random, stretches[i].bytes - at);
			piece(play, framer, stretches[i].from_server, stretches[i].data + at, n);
		}
	}
	for (unsigned d = 0; d < 2 && framer != NULL; d++) {
		if (framer->ops->forget != NULL)
			framer->ops->forget(&play->conn, d);
	}
	FUZZ_CHECK(bs_frame_memory_used(memory) == 0);
	bs_frame_memory_destroy(memory);
}

static void
datagram_and_guess(const struct bs_framer *framer, const struct stretch *stretch)
{
	struct fuzz_input whole = {stretch->data, stretch->bytes};
	struct bs_frame frame = {0};
	size_t got;
	uint8_t *copy = fuzz_take(&whole, stretch->bytes, &got);

	if (framer->ops->datagram_feed != NULL)
		framer->ops->datagram_feed(framer, stretch->from_server, copy, got, &frame);
	FUZZ_CHECK(frame.label_len <= BS_FRAME_LABEL_BYTES);
	if (framer->ops->probe != NULL)
		FUZZ_CHECK(
			(unsigned)framer->ops->probe(framer, stretch->from_server, copy, got) <= 2);
	FUZZ_CHECK(bs_framers_guess(&framers, 80, framer->ops->datagram, stretch->from_server, copy,
			   got) != NULL);
	FUZZ_CHECK(bs_framers_settle(&framers, framer, false, stretch->from_server, copy, got) !=
		   NULL);
	free(copy);
}

static struct bs_framing_test
row_test(struct fuzz_input *input)
{
	struct bs_framing_test test;

	test.at = fuzz_u8(input);
	test.mask = fuzz_u8(input);
	test.value = fuzz_u8(input) & test.mask;
	test.otherwise = test.at & 1;
	return test;
}

/* A row as a user may give it; refused if it makes no sense. */
static const struct bs_framer *
user_framer(struct fuzz_input *input)
{
	static struct bs_framers with_row;
	static struct bs_framing_row row;
	unsigned bad;

	memset(&row, 0, sizeof(row));
	row.name = "user";
	row.header = fuzz_u8(input);
	row.magic_len = fuzz_u8(input) % (sizeof(row.magic) + 2);
	row.magic_at = fuzz_u8(input);
	row.magic[0] = fuzz_u8(input);
	row.magic_mask[0] = fuzz_u8(input);
	row.length_at = fuzz_u8(input);
	row.length_bytes = fuzz_u8(input);
	row.length_adds = (int16_t)fuzz_u16(input);
	row.id_at = fuzz_u8(input);
	row.id_bytes = fuzz_u8(input);
	row.response_id_at = fuzz_u8(input);
	row.response = row_test(input);
	row.none = row_test(input);
	row.oneway = row_test(input);
	row.push = row_test(input);
	row.error = row_test(input);
	row.status_at = fuzz_u8(input);
	row.status_bytes = fuzz_u8(input);
	row.operation_at = fuzz_u8(input);
	row.operation_bytes = fuzz_u8(input);
	row.length_max = fuzz_u16(input);
	row.length_little = row.length_max & 1;
	row.id_little = row.length_max & 2;
	if (bs_framers_init(&with_row, &row, 1, &bad) != 0)
		return NULL;
	return bs_framers_find(&with_row, "user");
}

void
fuzz_one(const uint8_t *data, size_t bytes)
{
	static struct play whole, cut;
	struct fuzz_input input = {data, bytes};
	struct stretch stretches[STRETCHES];
	const struct bs_framer *framer;
	unsigned count = 0, bad, protocol, step;

	if (framers.count == 0)
		FUZZ_CHECK(bs_framers_init(&framers, NULL, 0, &bad) == 0);
	protocol = fuzz_u8(&input) % (framers.count + 1);
	step = fuzz_u8(&input);
	framer = protocol < framers.count ? &framers.list[protocol] : user_framer(&input);
	while (framer != NULL && input.bytes > 0 && count < STRETCHES) {
		const unsigned head = fuzz_u16(&input), want = head & 0x7fffu;
		struct stretch *stretch = &stretches[count++];

		stretch->from_server = head >> 15;
		stretch->data = input.data;
		stretch->bytes = want < input.bytes ? want : input.bytes;
		input.data += stretch->bytes;
		input.bytes -= stretch->bytes;
		datagram_and_guess(framer, stretch);
	}
	run(&whole, framer, stretches, count, 0);
	run(&cut, framer, stretches, count, step | (step == 0));
	FUZZ_CHECK(whole.count == cut.count);
	FUZZ_CHECK(memcmp(whole.told, cut.told, whole.count * sizeof(whole.told[0])) == 0);
}
