/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading our JSON objects for display. What is missing or of another type reads
 * as unknown: the object may come from another version, or from a file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

/* NULL if there is no such text. */
const char *field_text(const json_t *object, const char *key);

/* The text, or `otherwise`. */
const char *field_text_or(const json_t *object, const char *key, const char *otherwise);

/* False if there is no such number that is not negative. */
bool field_number(const json_t *object, const char *key, uint64_t *value);

/* False if there is no such real number or integer. */
bool field_real(const json_t *object, const char *key, double *value);

/* A sentence being put together; what does not fit is left out. */
struct phrase {
	size_t length;
	char text[1024];
};

void phrase_init(struct phrase *p);
void phrase_add(struct phrase *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A duration as people read it. */
void phrase_ns(struct phrase *p, uint64_t ns);

/* The duration of that key, or "?". */
void phrase_duration(struct phrase *p, const json_t *object, const char *key);

/* "34 B", "1.50 MB". */
void phrase_bytes(struct phrase *p, uint64_t bytes);

/* "hang in service (stopped)" of an object with buffer, cause or type, and detail. */
void phrase_blame(struct phrase *p, const json_t *object);

/* "batch (service) 62 %, ..." of an array of culprits. */
void phrase_culprits(struct phrase *p, const json_t *culprits);

/* "2023-11-14 22:13:20.000 UTC" of an instant, or "?"; only the time of day if brief. */
void phrase_instant(struct phrase *p, const json_t *object, const char *key, bool brief);

/* An instant in ns; false if there is none. */
bool field_instant(const json_t *object, const char *key, uint64_t *t);
