/* SPDX-License-Identifier: BSD-3-Clause */
/* What the output of a report begins with: the files, and what is missing from them. */
#pragma once

#include <jansson.h>

#include "report.h"

/* {"inputs", "clock", "counters"}. NULL: no memory. */
json_t *report_head_json(const struct report *report);

/* The files, a line each, and what was lost. */
void report_head_text(FILE *out, const void *report);
