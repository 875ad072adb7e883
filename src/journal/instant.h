/* SPDX-License-Identifier: BSD-3-Clause */
/* Instants as people and scripts write them. */
#pragma once

#include <stdint.h>

/*
 * "2026-12-01 13:45", with seconds and fraction if wanted, T in place of the
 * blank, Z for UTC instead of local time; "13:45" of the day of now_ns; or digits
 * alone: ns since the Unix epoch, as in JSON. 0 or -EINVAL.
 */
int instant_parse(const char *text, uint64_t now_ns, uint64_t *t_ns);

/* Local time to the ms, "2026-12-01 13:45:06.789"; "-" for 0. Returns out. */
#define INSTANT_TEXT_BYTES 40u
const char *instant_text(uint64_t t_ns, char out[INSTANT_TEXT_BYTES]);
