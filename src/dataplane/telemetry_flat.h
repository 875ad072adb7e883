/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What rte_telemetry 22.11 can carry, out of the full JSON objects: no arrays of
 * objects, no null, no real numbers, plain keys, short texts, less than 16 KiB.
 * JSON to JSON, so that it needs no DPDK.
 */
#pragma once

#include <jansson.h>

/* rte_telemetry cuts what is longer. Room for the envelope is left. */
#define BS_TELEMETRY_BYTES 15000u
#define BS_TELEMETRY_ENTRIES 250u /* members of one object; rte_telemetry takes 256 */
#define BS_TELEMETRY_TEXT 127u

/*
 * An answer as an object of integers, texts and objects of the same kind:
 *  - a list becomes an object keyed "0", "1", ...; that named `list` (may be
 *    NULL) becomes the answer's own members, with "total" and "next" (left out
 *    at the end of the list) counting what was left out to keep the size;
 *  - an object in an object becomes members with its key before theirs
 *    (root_cause: root_), lists inside entries are left out;
 *  - null is left out, true is 1, a real is a share: key_percent, rounded.
 * The caller owns the result. NULL: no memory. Any thread.
 */
json_t *bs_telemetry_flatten(const json_t *answer, const char *list);
