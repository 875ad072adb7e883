/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text protocol of memcached (its doc/protocol.txt, with the meta
 * commands). A message is a line of words, some with a data block behind it
 * whose length is one of the words. Keys and data are neither copied nor told.
 *
 * Pairing is by order. `noreply` makes a command one-way; the flag q of a meta
 * command leaves out the answers that are expected, so the kinds of answers left
 * and the word that both repeat (O, else k) tell whose an answer is.
 */
#include "memcached.h"

#define NOREPLY 0x01u /* may end with that word */
#define META 0x02u    /* has flags */
#define KEYS 0x04u    /* nothing but keys follows */
#define UNANSWERED 0x08u
#define WATCH 0x10u
#define PLAIN 0x20u /* of whose words nothing is to be known */

#define REFUSED (KIND_NOT_STORED | KIND_EXISTS | KIND_NOT_FOUND | KIND_ERROR)

/* By length. The first stands for all that is no command, answered by an error. */
static const struct {
	char name[15];
	uint8_t what;
	uint8_t data_word; /* number of the word that is the length of the data; 0: none */
	uint8_t words;	   /* before `noreply` */
	uint16_t answers;  /* of a quiet one, or of `mn`; 0: any */
} commands[] = {
	{"other", PLAIN, 0, 0, 0},
	{"ma", META, 0, 2, REFUSED},
	{"md", META, 0, 2, KIND_EXISTS | KIND_NOT_FOUND | KIND_ERROR},
	{"me", PLAIN, 0, 0, 0},
	{"mg", META, 0, 2, KIND_VALUE | KIND_DONE | KIND_ERROR},
	{"mn", PLAIN, 0, 0, KIND_NOOP},
	{"ms", META, 3, 3, REFUSED},
	{"add", NOREPLY, 5, 5, 0},
	{"cas", NOREPLY, 5, 6, 0},
	{"gat", KEYS, 0, 0, 0},
	{"get", KEYS, 0, 0, 0},
	{"lru", PLAIN, 0, 0, 0},
	{"set", NOREPLY, 5, 5, 0},
	{"decr", NOREPLY, 0, 3, 0},
	{"gats", KEYS, 0, 0, 0},
	{"gets", KEYS, 0, 0, 0},
	{"incr", NOREPLY, 0, 3, 0},
	{"quit", UNANSWERED, 0, 0, 0},
	{"slabs", PLAIN, 0, 0, 0},
	{"stats", PLAIN, 0, 0, 0},
	{"touch", NOREPLY, 0, 3, 0},
	{"watch", WATCH, 0, 0, 0},
	{"append", NOREPLY, 5, 5, 0},
	{"delete", NOREPLY, 0, 2, 0},
	{"prepend", NOREPLY, 5, 5, 0},
	{"replace", NOREPLY, 5, 5, 0},
	{"version", PLAIN, 0, 0, 0},
	{"shutdown", PLAIN, 0, 0, 0},
	{"flush_all", NOREPLY, 0, 1, 0},
	{"verbosity", NOREPLY, 0, 1, 0},
	{"lru_crawler", PLAIN, 0, 0, 0},
	{"refresh_certs", PLAIN, 0, 0, 0},
	{"cache_memlimit", NOREPLY, 0, 1, 0},
};
#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static uint8_t
find_command(const char *word, size_t bytes)
{
	for (uint8_t i = 1; i < COMMAND_COUNT; i++) {
		if (memcached_word_is(word, bytes, commands[i].name))
			return i;
	}
	return 0;
}

static void
word_add(struct memcached_line *line, uint8_t byte)
{
	uint8_t digit = (uint8_t)(byte - '0');

	if (!line->in_word) {
		line->in_word = true;
		line->is_number = true;
		line->kept = 0;
		line->number = 0;
		line->hash = line->hash_start;
	}
	if (line->kept < MEMCACHED_WORD_KEPT)
		line->word[line->kept++] = (char)byte;
	line->hash = memcached_hash(line->hash, byte);
	if (digit < 10 && line->number <= (MEMCACHED_DATA_MAX - digit) / 10)
		line->number = line->number * 10 + digit;
	else
		line->is_number = false;
}

/* The bytes up to the end of the line. */
static enum memcached_step
line_pass(struct memcached_line *line, const uint8_t **at, const uint8_t *end)
{
	const uint8_t *newline, *bound = end;

	if ((size_t)(end - *at) > MEMCACHED_LINE_MAX - line->bytes)
		bound = *at + (MEMCACHED_LINE_MAX - line->bytes);
	newline = memchr(*at, '\n', (size_t)(bound - *at));
	if (newline != NULL) {
		*at = newline + 1;
		return STEP_LINE;
	}
	line->bytes += (uint32_t)(bound - *at);
	*at = bound;
	return line->bytes == MEMCACHED_LINE_MAX ? STEP_BAD : STEP_MORE;
}

enum memcached_step
bs_memcached_line_take(struct memcached_line *line, const uint8_t **at, const uint8_t *end)
{
	while (*at < end) {
		uint8_t byte = **at;

		if (line->passes)
			return line_pass(line, at, end);
		if (line->in_word && (byte == ' ' || byte == '\r' || byte == '\n')) {
			line->in_word = false;
			if (line->words < UINT8_MAX)
				line->words++;
			return STEP_WORD; /* what ended it is read again */
		}
		(*at)++;
		if (byte == '\n')
			return STEP_LINE;
		if (++line->bytes == MEMCACHED_LINE_MAX)
			return STEP_BAD;
		if (byte == ' ' || byte == '\r')
			continue;
		/* Keys may be of any bytes, commands and words of answers are not. */
		if (line->words == 0 && (byte < 0x20 || byte >= 0x7f))
			return STEP_BAD;
		word_add(line, byte);
	}
	return STEP_MORE;
}

void
bs_memcached_token_note(struct memcached_dir *dir)
{
	const struct memcached_line *line = &dir->line;

	if (line->word[0] == 'O')
		dir->has_opaque = true;
	else if (line->word[0] != 'k' || dir->has_opaque)
		return;
	dir->token = line->hash != 0 ? line->hash : 1;
}

/* A flag of a meta command. */
static void
flag_take(struct memcached_dir *dir)
{
	switch (dir->line.word[0]) {
	case 'q':
		dir->quiet = true;
		break;
	case 'k':
		dir->key_asked = true;
		break;
	default:
		bs_memcached_token_note(dir);
		break;
	}
}

static void
request_word(struct memcached_dir *dir)
{
	struct memcached_line *line = &dir->line;
	const unsigned number = line->words;
	uint8_t what;

	if (number == 1) {
		dir->command = find_command(line->word, line->kept);
		line->passes = (commands[dir->command].what & (NOREPLY | META)) == 0;
		line->hash_start = memcached_hash(MEMCACHED_HASH_START, 'k');
		return;
	}
	what = commands[dir->command].what;
	if (number == 2) {
		dir->key_hash = line->hash;
		line->hash_start = MEMCACHED_HASH_START;
	}
	if (number == commands[dir->command].data_word) {
		dir->has_data = line->is_number;
		dir->data = line->number;
	}
	if (number <= commands[dir->command].words)
		return;
	if (what & META)
		flag_take(dir);
	else
		dir->noreply = memcached_word_is(line->word, line->kept, "noreply");
}

/* The line is complete. */
static void
request_tell(struct bs_frame_conn *conn, struct memcached_dir *dir, struct bs_frame *frame)
{
	uint8_t what = commands[dir->command].what;

	frame->flags = BS_FRAME_HEAD | BS_FRAME_END;
	frame->label_len = (uint8_t)strlen(commands[dir->command].name);
	memcpy(frame->label, commands[dir->command].name, frame->label_len);
	if (dir->noreply || what & UNANSWERED)
		frame->oneway = BS_ONEWAY;
	if (dir->quiet)
		frame->oneway = BS_ONEWAY_UNLESS_ANSWERED;
	if (dir->quiet || !(what & META))
		frame->answers = commands[dir->command].answers;
	if (dir->key_asked && !dir->has_opaque)
		dir->token = dir->key_hash != 0 ? dir->key_hash : 1;
	frame->token = dir->token;
	if (what & WATCH)
		conn->shared[0] |= SHARED_WATCH;
	/* Without a length that makes sense the server does not wait for data. */
	if (dir->has_data) {
		frame->flags |= BS_FRAME_SKIP;
		frame->skip = (uint64_t)dir->data + 2;
	}
	memset(dir, 0, sizeof(*dir));
}

static size_t
request_feed(struct bs_frame_conn *conn, const uint8_t *data, size_t bytes, struct bs_frame *frame)
{
	struct memcached_dir *dir = (struct memcached_dir *)conn->dir[0].bytes;
	const uint8_t *at = data, *end = data + bytes;

	if (dir->line.hash_start == 0)
		memcached_line_begin(&dir->line);
	while (at < end) {
		switch (bs_memcached_line_take(&dir->line, &at, end)) {
		case STEP_WORD:
			request_word(dir);
			break;
		case STEP_LINE:
			request_tell(conn, dir, frame);
			return (size_t)(at - data);
		case STEP_BAD:
			memset(dir, 0, sizeof(*dir));
			frame->flags = BS_FRAME_BAD;
			return (size_t)(at - data);
		case STEP_MORE:
			break;
		}
	}
	return bytes;
}

static size_t
memcached_feed(const struct bs_framer *framer, struct bs_frame_conn *conn, bool from_server,
	const uint8_t *data, size_t bytes, struct bs_frame *frame)
{
	(void)framer;
	if (from_server)
		return bs_memcached_reply_feed(conn, data, bytes, frame);
	return request_feed(conn, data, bytes, frame);
}

/*
 * Commands that also others have (redis inline, beanstalkd, gearman) prove little;
 * a length and the numbers before it do.
 */
static int
probe_request(const uint8_t *data, size_t bytes)
{
	struct memcached_line line;
	const uint8_t *at = data, *end = data + bytes;
	uint8_t command = 0;

	memcached_line_begin(&line);
	while (at < end) {
		switch (bs_memcached_line_take(&line, &at, end)) {
		case STEP_WORD:
			if (line.words == 1) {
				command = find_command(line.word, line.kept);
				if (command == 0)
					return 0;
				if (commands[command].data_word == 0)
					return line.kept == 2 && commands[command].what & META ? 2
											       : 1;
			} else if (line.words > 2 && line.words <= commands[command].data_word &&
				   !line.is_number) {
				return 0;
			}
			if (line.words == commands[command].data_word)
				return 2;
			break;
		case STEP_MORE:
			break;
		default:
			return 0;
		}
	}
	if (line.words > 0)
		return 1;
	/* The beginning of a word. */
	for (size_t i = 1; i < COMMAND_COUNT; i++) {
		if (line.kept <= strlen(commands[i].name) &&
			memcmp(commands[i].name, line.word, line.kept) == 0)
			return 1;
	}
	return 0;
}

static int
memcached_probe(const struct bs_framer *framer, bool from_server, const uint8_t *data, size_t bytes)
{
	(void)framer;
	return from_server ? bs_memcached_reply_probe(data, bytes) : probe_request(data, bytes);
}

static bool
memcached_datagram_feed(const struct bs_framer *framer, bool from_server, const uint8_t *data,
	size_t bytes, struct bs_frame *frame)
{
	struct bs_frame_conn conn = {0};
	uint8_t role;
	unsigned sequence;

	if (!memcached_udp_take(from_server, data, bytes, frame, &sequence))
		return false;
	if (sequence > 0)
		return true;
	data += MEMCACHED_UDP_HEADER_BYTES;
	bytes -= MEMCACHED_UDP_HEADER_BYTES;
	if (memcached_probe(framer, from_server, data, bytes) == 0)
		return false;
	role = frame->role;
	memcached_feed(framer, &conn, from_server, data, bytes, frame);
	frame->role = role;
	return (frame->flags & BS_FRAME_HEAD) != 0;
}

const struct bs_framer_ops bs_framer_memcached = {
	.name = "memcached",
	.pairing = BS_PAIR_BY_ORDER,
	.datagram = true,
	.feed = memcached_feed,
	.datagram_feed = memcached_datagram_feed,
	.probe = memcached_probe,
	.sibling = &bs_framer_memcached_binary,
	.ports = {11211},
};
