/* SPDX-License-Identifier: BSD-3-Clause */
/* What the output of a replay begins with: its captures, and what became of their packets. */
#pragma once

#include <jansson.h>

#include "replay.h"

/* {"inputs", "clock", "counters", "tracking"}. NULL: no memory. */
json_t *head_json(const struct replay *replay);

/* The captures, a line each. */
void head_text(FILE *out, const void *replay);
