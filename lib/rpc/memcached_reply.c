/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers of memcached's text protocol: their first words tell where they end.
 * Items, statistics and dumps go on until another line; all others are a line.
 */
#include "memcached.h"

#define GOES_ON 0x01u /* more lines follow */
#define FLAGS 0x02u   /* of a meta command follow */
#define ERROR 0x04u
#define PUSHED 0x08u /* to a watcher */
#define PREFIX 0x10u /* the word begins like that */
#define OURS 0x20u   /* of memcached and nobody else */

/* The first stands for all others: they are a line, too. */
static const struct {
	char word[13];
	uint8_t what;
	uint8_t data_word; /* number of the word that is the length of the data; 0: none */
	uint16_t kind;
} answers[] = {
	{"", 0, 0, KIND_OTHER},
	{"VALUE", GOES_ON | OURS, 4, KIND_OTHER},
	{"END", 0, 0, KIND_OTHER},
	{"STORED", OURS, 0, KIND_OTHER},
	{"HD", FLAGS, 0, KIND_DONE},
	{"VA", FLAGS | OURS, 2, KIND_VALUE},
	{"EN", FLAGS, 0, KIND_MISS},
	{"NS", FLAGS, 0, KIND_NOT_STORED},
	{"EX", FLAGS, 0, KIND_EXISTS},
	{"NF", FLAGS, 0, KIND_NOT_FOUND},
	{"MN", 0, 0, KIND_NOOP},
	{"ME", 0, 0, KIND_OTHER},
	{"NOT_STORED", OURS, 0, KIND_OTHER},
	{"NOT_FOUND", 0, 0, KIND_OTHER},
	{"EXISTS", 0, 0, KIND_OTHER},
	{"DELETED", 0, 0, KIND_OTHER},
	{"TOUCHED", OURS, 0, KIND_OTHER},
	{"OK", 0, 0, KIND_OTHER},
	{"RESET", 0, 0, KIND_OTHER},
	{"VERSION", 0, 0, KIND_OTHER},
	{"STAT", GOES_ON, 0, KIND_OTHER},
	{"ITEM", GOES_ON, 0, KIND_OTHER},
	{"PREFIX", GOES_ON, 0, KIND_OTHER},
	{"key=", GOES_ON | PREFIX, 0, KIND_OTHER},
	{"mg", GOES_ON, 0, KIND_OTHER},
	{"ERROR", ERROR | PREFIX, 0, KIND_ERROR}, /* "ERROR: shutdown not enabled" */
	{"CLIENT_ERROR", ERROR | OURS, 0, KIND_ERROR},
	{"SERVER_ERROR", ERROR | OURS, 0, KIND_ERROR},
	{"ts=", PUSHED | PREFIX, 0, KIND_OTHER},
	{"skipped=", PUSHED | PREFIX, 0, KIND_OTHER},
};
#define ANSWER_COUNT (sizeof(answers) / sizeof(answers[0]))

static uint8_t
find_answer(const char *word, size_t bytes)
{
	for (uint8_t i = 1; i < ANSWER_COUNT; i++) {
		size_t n = strlen(answers[i].word);

		if (memcached_word_is(word, answers[i].what & PREFIX && bytes > n ? n : bytes,
			    answers[i].word))
			return i;
	}
	return 0;
}

/* False: it cannot be an answer. */
static bool
reply_word(struct memcached_dir *dir)
{
	struct memcached_line *line = &dir->line;
	uint8_t data_word;

	if (line->words == 1) {
		dir->command = find_answer(line->word, line->kept);
		line->passes = !(answers[dir->command].what & FLAGS) &&
			       answers[dir->command].data_word == 0;
		return true;
	}
	data_word = answers[dir->command].data_word;
	if (line->words == data_word) {
		dir->has_data = line->is_number;
		dir->data = line->number;
		line->passes = !(answers[dir->command].what & FLAGS);
		return line->is_number;
	}
	if (line->words > data_word && answers[dir->command].what & FLAGS)
		bs_memcached_token_note(dir);
	return true;
}

static void
reply_head(
	const struct bs_frame_conn *conn, const struct memcached_dir *dir, struct bs_frame *frame)
{
	uint8_t what = answers[dir->command].what;

	frame->flags |= BS_FRAME_HEAD;
	if (what & PUSHED && conn->shared[0] & SHARED_WATCH) {
		frame->role = BS_ROLE_PUSH;
		return;
	}
	/* The status is 0, or 1 for an error: the protocol has no numbers for them. */
	frame->has_status = 1;
	frame->error = (what & ERROR) != 0;
	frame->status = frame->error;
	frame->answers = answers[dir->command].kind;
	frame->token = dir->token;
}

/* A line is complete. False: it cannot be of an answer. */
static bool
reply_line(const struct bs_frame_conn *conn, struct memcached_dir *dir, struct bs_frame *frame)
{
	bool goes_on = answers[dir->command].what & GOES_ON;

	if (dir->line.words == 0 || (answers[dir->command].data_word != 0 && !dir->has_data))
		return false;
	if (!dir->told)
		reply_head(conn, dir, frame);
	if (dir->has_data) {
		frame->flags |= BS_FRAME_SKIP;
		frame->skip = (uint64_t)dir->data + 2;
	}
	if (!goes_on)
		frame->flags |= BS_FRAME_END;
	memset(dir, 0, sizeof(*dir));
	dir->told = goes_on;
	memcached_line_begin(&dir->line);
	return true;
}

size_t
bs_memcached_reply_feed(
	struct bs_frame_conn *conn, const uint8_t *data, size_t bytes, struct bs_frame *frame)
{
	struct memcached_dir *dir = (struct memcached_dir *)conn->dir[1].bytes;
	const uint8_t *at = data, *end = data + bytes;
	bool good = true;

	if (dir->line.hash_start == 0)
		memcached_line_begin(&dir->line);
	while (at < end && frame->flags == 0) {
		switch (bs_memcached_line_take(&dir->line, &at, end)) {
		case STEP_WORD:
			good = reply_word(dir);
			break;
		case STEP_LINE:
			good = reply_line(conn, dir, frame);
			break;
		case STEP_BAD:
			good = false;
			break;
		case STEP_MORE:
			break;
		}
		if (!good) {
			memset(dir, 0, sizeof(*dir));
			frame->flags = BS_FRAME_BAD;
		}
	}
	return (size_t)(at - data);
}

int
bs_memcached_reply_probe(const uint8_t *data, size_t bytes)
{
	struct memcached_line line;
	const uint8_t *at = data, *end = data + bytes;

	if (bytes == 0)
		return 1;
	memcached_line_begin(&line);
	if (bs_memcached_line_take(&line, &at, end) == STEP_WORD) {
		uint8_t answer = find_answer(line.word, line.kept);

		if (answer == 0) /* incr and decr answer with a number */
			return line.is_number;
		return answers[answer].what & OURS ? 2 : 1;
	}
	if (!line.in_word)
		return 0;
	for (size_t i = 1; i < ANSWER_COUNT; i++) {
		size_t n = strlen(answers[i].word);

		if (memcmp(answers[i].word, line.word, line.kept < n ? line.kept : n) == 0 &&
			(line.kept <= n || answers[i].what & PREFIX))
			return 1;
	}
	return line.is_number;
}
