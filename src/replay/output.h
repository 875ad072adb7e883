/* SPDX-License-Identifier: BSD-3-Clause */
/* What was found, for people and for scripts. */
#pragma once

#include <jansson.h>

#include "bs_report.h"
#include "findings.h"
#include "options.h"

enum output_format { OUTPUT_TEXT, OUTPUT_JSON, OUTPUT_JSONL };

struct output_options {
	enum output_format format;
	bool all; /* every RPC, also in text and JSON */
	struct bs_report_text text;
};

/* Takes one of text, json, jsonl. 0, or -EINVAL with one line in error. */
int output_take_format(
	struct output_options *options, const char *text, char error[BS_OPTION_ERROR_BYTES]);

struct output {
	const struct findings *findings; /* totalled */
	const json_t *head; /* an object: what JSON begins with: inputs, counters, ... */
	const char *no_rpc; /* said in text when there is none: a line with its end */
	/* The same as head, for people. */
	void (*head_text)(FILE *out, const void *context);
	const void *context;
};

/* 0, or -errno: why out failed, or ENOMEM. */
int output_write(FILE *out, const struct output *output, const struct output_options *options);

/* An instant as interfaces have it: null for 0. NULL: no memory. */
json_t *output_instant(uint64_t t);

/* A path or message, which may hold any bytes. NULL: no memory. */
json_t *output_text(const char *text);
