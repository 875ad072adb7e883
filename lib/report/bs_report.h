/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What users read: RPCs, incidents and services as JSON, and the same for people
 * as text. There is one renderer of text, and it draws from the JSON object, so
 * that live answers, which come as JSON, and replay look the same.
 *
 * JSON: durations are integers of ns, instants decimal strings of ns since the
 * Unix epoch, ids 16 hex digits, unknown is null (a number that does not fit 63
 * bits counts as unknown). All texts are valid UTF-8 and printable: bytes of a
 * label that are not are written \xNN.
 *
 * Any thread; nothing here has state.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "bs_names.h"
#include "bs_record.h"

/*
 * Copies `bytes` bytes of in to out (size > 0), with each byte of what is invalid
 * or not printable as \xNN. Ends with NUL, never in the middle of a character or
 * an escape; stops where the next would not fit. Returns the length.
 * Escaping the result again changes nothing.
 */
size_t bs_report_escape(const char *in, size_t bytes, char *out, size_t size);

/*
 * An RPC with all keys; those of the verdict are null without one. The view is
 * valid (bs_rpc_view). The caller owns the reference. NULL with errno ENOMEM.
 */
json_t *bs_report_rpc_json(const struct bs_names *names, const struct bs_rpc_view *view,
	const struct bs_rec_verdict *verdict);

/* An incident; advice is a sentence for its origin, or NULL. As above. */
json_t *bs_report_incident_json(
	const struct bs_names *names, const struct bs_rec_incident *incident, const char *advice);

/* Quantiles of a duration; count 0: nothing was measured, and it becomes null. */
struct bs_report_quantiles {
	uint64_t count;
	uint64_t min, p50, p90, p99, max;
};

struct bs_report_service {
	const char *service, *protocol; /* any bytes; protocol may be NULL: not known */
	uint64_t rpcs; /* begun by a request: all below but orphan_responses and pushed */
	uint64_t answered, unanswered, oneway, orphan_responses, in_progress;
	uint64_t pushed, cancelled, reset, cut;
	struct bs_report_quantiles latency_ns, service_ns;
};

/* As above. */
json_t *bs_report_service_json(const struct bs_report_service *service);

#define BS_REPORT_WIDTH_MIN 40u
#define BS_REPORT_WIDTH_MAX 400u

/* How text is drawn; only the program knows what the stream is. */
struct bs_report_text {
	unsigned width; /* columns, brought into the range above; no line is wider */
	bool color;	/* ANSI colours */
	bool utf8;	/* else ASCII only */
};

/*
 * Explains an RPC (object as above) to be read in ten seconds: what it was and
 * took, the root cause with its alternatives and how sure that is, a waterfall
 * of its segments, and who was to blame. Keys that are missing or of another
 * type count as unknown. 0, -EINVAL if rpc is no object, -EIO if out failed.
 */
int bs_report_rpc_text(FILE *out, const json_t *rpc, const struct bs_report_text *options);

/* What the marks before durations mean, in one line. As above. */
int bs_report_legend(FILE *out, const struct bs_report_text *options);

/* One line for each RPC of an array, with a heading. As above. */
int bs_report_anomalies_table(FILE *out, const json_t *rpcs, const struct bs_report_text *options);

/* An incident with its advice. As above. */
int bs_report_incident_text(
	FILE *out, const json_t *incident, const struct bs_report_text *options);

/* One line for each service of an array, with a heading. As above. */
int bs_report_services_table(
	FILE *out, const json_t *services, const struct bs_report_text *options);

/*
 * Draws a bar over the current line of a terminal: `what`, and done of total.
 * done == total removes it. Only call it when out is a terminal. 0 or -EIO.
 */
int bs_report_progress(FILE *out, const char *what, uint64_t done, uint64_t total,
	const struct bs_report_text *options);
