/* SPDX-License-Identifier: BSD-3-Clause */
/* See traceparent.h. */
#include "traceparent.h"

#include <string.h>

#define VERSION_AT 0u
#define TRACE_AT 3u
#define PARENT_AT 36u
#define FLAGS_AT 53u
#define BYTES 55u /* of version 00; later ones may have more behind a dash */
#define BAD UINT8_MAX

/* -1: no lower-case hex digit. */
static int
digit_of(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void
half_byte(uint8_t *bytes, unsigned place, int digit)
{
	bytes[place / 2] = (uint8_t)(bytes[place / 2] << 4 | digit);
}

void
traceparent_byte(struct traceparent *trace, uint8_t byte)
{
	const unsigned at = trace->at;
	const bool dash = at == TRACE_AT - 1 || at == PARENT_AT - 1 || at == FLAGS_AT - 1 ||
			  (at == BYTES && trace->version > 0);
	const int digit = digit_of(byte);

	if (at > BYTES) /* BAD, too */
		return;
	trace->at = BAD;
	if (dash ? byte != '-' : digit < 0 || at == BYTES)
		return;
	trace->at = (uint8_t)(at + 1);
	if (dash)
		return;
	if (at < TRACE_AT)
		half_byte(&trace->version, at - VERSION_AT, digit);
	else if (at < PARENT_AT)
		half_byte(trace->trace_id, at - TRACE_AT, digit);
	else if (at < FLAGS_AT)
		half_byte(trace->parent_span_id, at - PARENT_AT, digit);
}

static bool
is_zero(const uint8_t *bytes, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (bytes[i] != 0)
			return false;
	}
	return true;
}

void
traceparent_tell(const struct traceparent *trace, struct bs_frame *frame)
{
	if (trace->at < BYTES || trace->at == BAD || trace->version == 0xff ||
		is_zero(trace->trace_id, sizeof(trace->trace_id)) ||
		is_zero(trace->parent_span_id, sizeof(trace->parent_span_id)))
		return;
	frame->has_trace = 1;
	memcpy(frame->trace_id, trace->trace_id, sizeof(frame->trace_id));
	memcpy(frame->parent_span_id, trace->parent_span_id, sizeof(frame->parent_span_id));
}
