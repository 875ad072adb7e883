/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fuzz target is one file with fuzz_one(): given any bytes, what it calls must
 * neither break the sanitizers nor make a FUZZ_CHECK fail. In a fuzz build
 * (-Dfuzz=true, clang) libFuzzer calls it; in a normal one it is a test that runs
 * the inputs in regress/<target>/, each of which once found something.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fuzz_one(const uint8_t *data, size_t bytes);

#define FUZZ_CHECK(condition)                                                                      \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);    \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* What is left of an input, taken piece by piece; zeros behind its end. */
struct fuzz_input {
	const uint8_t *data;
	size_t bytes;
};

static inline uint8_t
fuzz_u8(struct fuzz_input *input)
{
	if (input->bytes == 0)
		return 0;
	input->bytes--;
	return *input->data++;
}

static inline uint16_t
fuzz_u16(struct fuzz_input *input)
{
	const unsigned high = fuzz_u8(input);

	return (uint16_t)(high << 8 | fuzz_u8(input));
}

/* A copy of the next `want` bytes, or of as many as there are, in a block of its own: free() it. */
static inline uint8_t *
fuzz_take(struct fuzz_input *input, size_t want, size_t *got)
{
	uint8_t *copy;

	*got = want < input->bytes ? want : input->bytes;
	copy = malloc(*got + (*got == 0));
	if (copy == NULL)
		abort();
	memcpy(copy, input->data, *got);
	input->data += *got;
	input->bytes -= *got;
	return copy;
}
