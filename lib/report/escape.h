/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Labels and names come from the network and from files. Before they reach a
 * JSON document they must be valid UTF-8, and before they reach a terminal they
 * must not be able to move its cursor, recolour it or reorder its text.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most bytes that one input byte becomes: \xNN. */
#define ESCAPE_MAX 4u

/*
 * The next character of in (bytes > 0), by RFC 3629: its code point in *code and
 * its length, 1 to 4. 0 if no valid character begins here.
 */
unsigned escape_decode(const char *in, size_t bytes, uint32_t *code);

/* False for control, format, invisible and direction-changing characters. */
bool escape_printable(uint32_t code);

/*
 * Copies `bytes` bytes of in to out (size > 0), with each byte of what is invalid
 * or not printable as \xNN. Ends with NUL, never in the middle of a character or
 * an escape; stops where the next would not fit. Returns the length.
 * Escaping the result again changes nothing.
 */
size_t escape(const char *in, size_t bytes, char *out, size_t size);
