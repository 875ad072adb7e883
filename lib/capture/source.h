/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes of a capture file, decompressed if it is gzip (RFC 1952), as a
 * stdio stream for libpcap.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

struct source;

/*
 * Takes the descriptor over and reads its first bytes. NULL with errno (of
 * read(2), or ENOMEM); the descriptor is then closed.
 */
struct source *source_create(int fd);
void source_destroy(struct source *source);

/*
 * A stream over the source, which has to outlive it. To be called once. NULL
 * with errno ENOMEM.
 */
FILE *source_stream(struct source *source);

/* The first bytes as stored, at most 6; returns how many. */
size_t source_magic(const struct source *source, uint8_t magic[6]);

/*
 * What is wrong with the bytes read so far: an errno value, 0 with a text when
 * gzip data ends early, 0 and NULL when nothing is. The text is static.
 */
int source_error(const struct source *source, const char **text);

/* Bytes read of the file as stored, and its size (0 = not known). */
uint64_t source_bytes_read(const struct source *source);
uint64_t source_bytes(const struct source *source);

/* Bytes handed out, after decompression. */
uint64_t source_bytes_out(const struct source *source);
