/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The value of a traceparent header (W3C Trace Context, section 3.2):
 * version-traceid-parentid-flags in lower-case hex, byte by byte. All zero is the
 * initial state.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bs_framer.h"

struct traceparent {
	uint8_t at; /* bytes that were read; more than there may be: it makes no sense */
	uint8_t version;
	uint8_t trace_id[16], parent_span_id[8];
};

void traceparent_byte(struct traceparent *trace, uint8_t byte);

/* The value is over: tells it, if it is one; else it is as if it had not been sent (section 4.3).
 */
void traceparent_tell(const struct traceparent *trace, struct bs_frame *frame);
