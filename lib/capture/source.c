/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Our own reader instead of zlib's gzread: it hands out every byte that came
 * before a cut or damaged place, and knows how much of the file is read.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "source.h"

#define INPUT_BYTES 65536u
#define STREAM_BYTES 65536u
#define MAGIC_BYTES 6u

/* zlib: largest window, and the gzip format only. */
#define GZIP_WINDOW_BITS (15 + 16)

struct source {
	int fd;
	bool gzip;
	bool in_member; /* of a gzip file: between its header and its trailer */
	bool end;	/* nothing more to read or to decompress */
	int error;	/* errno value to give once all before it is handed out */
	const char *error_text;
	z_stream zlib;
	uint64_t bytes, bytes_read, bytes_out;
	size_t at, filled; /* input[at..filled) is not used yet */
	uint8_t magic[MAGIC_BYTES];
	size_t magic_bytes;
	uint8_t input[INPUT_BYTES];
	char stream[STREAM_BYTES]; /* stdio's buffer */
};

/* Reads more behind what is there. False at the end of the file or on an error (source->error). */
static bool
fill(struct source *source)
{
	ssize_t n;

	do {
		n = read(source->fd, source->input + source->filled, INPUT_BYTES - source->filled);
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		source->error = errno;
		source->error_text = strerrordesc_np(errno);
		return false;
	}
	source->filled += (size_t)n;
	source->bytes_read += (size_t)n;
	return n > 0;
}

/* False when all input is used and there is no more. */
static bool
have_input(struct source *source)
{
	if (source->at < source->filled)
		return true;
	source->at = source->filled = 0;
	return fill(source);
}

struct source *
source_create(int fd)
{
	struct source *source = calloc(1, sizeof(*source));
	struct stat st;

	if (source == NULL) {
		close(fd);
		errno = ENOMEM;
		return NULL;
	}
	source->fd = fd;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		source->bytes = (uint64_t)st.st_size;
	while (source->filled < MAGIC_BYTES && fill(source))
		;
	if (source->error != 0) {
		int error = source->error;

		source_destroy(source);
		errno = error;
		return NULL;
	}
	source->magic_bytes = source->filled < MAGIC_BYTES ? source->filled : MAGIC_BYTES;
	memcpy(source->magic, source->input, source->magic_bytes);
	source->gzip = source->filled >= 2 && source->input[0] == 0x1f && source->input[1] == 0x8b;
	if (source->gzip && inflateInit2(&source->zlib, GZIP_WINDOW_BITS) != Z_OK) {
		source->gzip = false;
		source_destroy(source);
		errno = ENOMEM;
		return NULL;
	}
	source->in_member = source->gzip;
	return source;
}

void
source_destroy(struct source *source)
{
	if (source == NULL)
		return;
	if (source->gzip)
		inflateEnd(&source->zlib);
	close(source->fd);
	free(source);
}

static size_t
read_plain(struct source *source, uint8_t *out, size_t room)
{
	size_t n;

	if (!have_input(source)) {
		source->end = true;
		return 0;
	}
	n = source->filled - source->at < room ? source->filled - source->at : room;
	memcpy(out, source->input + source->at, n);
	source->at += n;
	return n;
}

/*
 * Behind a gzip member: another one (RFC 1952 2.2), or the end. Anything else,
 * zero padding mostly, is left unread, as gzip does.
 */
static bool
next_member(struct source *source)
{
	if (!have_input(source) || source->input[source->at] != 0x1f)
		return false;
	return inflateReset(&source->zlib) == Z_OK;
}

static size_t
read_gzip(struct source *source, uint8_t *out, size_t room)
{
	z_stream *zlib = &source->zlib;
	uInt chunk = room < INPUT_BYTES ? (uInt)room : INPUT_BYTES;

	zlib->next_out = out;
	zlib->avail_out = chunk;
	while (zlib->avail_out == chunk) {
		int result;

		if (!source->in_member && !next_member(source)) {
			source->end = true;
			break;
		}
		source->in_member = true;
		if (!have_input(source)) {
			source->end = true;
			if (source->error == 0)
				source->error_text = "the gzip data ends early";
			break;
		}
		zlib->next_in = source->input + source->at;
		zlib->avail_in = (uInt)(source->filled - source->at);
		result = inflate(zlib, Z_NO_FLUSH);
		source->at = source->filled - zlib->avail_in;
		if (result == Z_STREAM_END) {
			source->in_member = false;
		} else if (result != Z_OK && result != Z_BUF_ERROR) {
			source->end = true;
			source->error = EBADMSG;
			source->error_text = "the gzip data is damaged";
			break;
		}
	}
	return chunk - zlib->avail_out;
}

static ssize_t
read_some(void *cookie, char *out, size_t room)
{
	struct source *source = cookie;
	size_t n = 0;

	if (!source->end)
		n = source->gzip ? read_gzip(source, (uint8_t *)out, room)
				 : read_plain(source, (uint8_t *)out, room);
	if (n == 0 && source->error != 0) {
		errno = source->error;
		return -1;
	}
	source->bytes_out += n;
	return (ssize_t)n;
}

FILE *
source_stream(struct source *source)
{
	FILE *stream = fopencookie(source, "r", (cookie_io_functions_t){.read = read_some});

	if (stream != NULL)
		setvbuf(stream, source->stream, _IOFBF, STREAM_BYTES);
	return stream;
}

size_t
source_magic(const struct source *source, uint8_t magic[6])
{
	memcpy(magic, source->magic, source->magic_bytes);
	return source->magic_bytes;
}

int
source_error(const struct source *source, const char **text)
{
	*text = source->error_text;
	return source->error;
}

uint64_t
source_bytes_read(const struct source *source)
{
	return source->bytes_read;
}

uint64_t
source_bytes(const struct source *source)
{
	return source->bytes;
}

uint64_t
source_bytes_out(const struct source *source)
{
	return source->bytes_out;
}
