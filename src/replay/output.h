/* SPDX-License-Identifier: BSD-3-Clause */
/* What a replay has found, for people and for scripts. */
#pragma once

#include "bs_report.h"
#include "replay.h"

enum output_format { OUTPUT_TEXT, OUTPUT_JSON, OUTPUT_JSONL };

struct output_options {
	enum output_format format;
	bool all; /* every RPC, also in text and JSON */
	struct bs_report_text text;
};

/* 0, or -errno: why out failed, or ENOMEM. */
int output_write(FILE *out, const struct replay *replay, const struct output_options *options);
