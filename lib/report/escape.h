/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Labels and names come from the network and from files. Before they reach a
 * JSON document they must be valid UTF-8, and before they reach a terminal they
 * must not be able to move its cursor, recolour it or reorder its text.
 * The escaping itself, bs_report_escape(), is in bs_report.h.
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
