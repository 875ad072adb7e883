/* SPDX-License-Identifier: BSD-3-Clause */
#include "fields.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bs_clock.h"

/* A number stays on the line of its unit. */
#define NO_BREAK "\u00a0"

const char *
field_text(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

const char *
field_text_or(const json_t *object, const char *key, const char *otherwise)
{
	const char *text = field_text(object, key);

	return text != NULL ? text : otherwise;
}

bool
field_number(const json_t *object, const char *key, uint64_t *value)
{
	const json_t *field = json_object_get(object, key);

	if (!json_is_integer(field) || json_integer_value(field) < 0)
		return false;
	*value = (uint64_t)json_integer_value(field);
	return true;
}

bool
field_real(const json_t *object, const char *key, double *value)
{
	const json_t *field = json_object_get(object, key);

	if (!json_is_number(field))
		return false;
	*value = json_number_value(field);
	return true;
}

bool
field_instant(const json_t *object, const char *key, uint64_t *t)
{
	const char *text = field_text(object, key);
	char *end;

	if (text == NULL || *text < '0' || *text > '9')
		return false;
	errno = 0;
	*t = strtoull(text, &end, 10);
	return errno == 0 && *end == '\0';
}

void
phrase_init(struct phrase *p)
{
	p->length = 0;
	p->text[0] = '\0';
}

void
phrase_add(struct phrase *p, const char *format, ...)
{
	size_t room = sizeof(p->text) - p->length;
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(p->text + p->length, room, format, args);
	va_end(args);
	if (length > 0)
		p->length += (size_t)length < room ? (size_t)length : room - 1;
}

void
phrase_ns(struct phrase *p, uint64_t ns)
{
	char text[BS_DURATION_TEXT_BYTES];
	size_t number;

	bs_duration_text(ns, text);
	number = strcspn(text, " ");
	phrase_add(p, "%.*s" NO_BREAK "%s", (int)number, text, text + number + 1);
}

void
phrase_duration(struct phrase *p, const json_t *object, const char *key)
{
	uint64_t ns;

	if (field_number(object, key, &ns))
		phrase_ns(p, ns);
	else
		phrase_add(p, "?");
}

void
phrase_bytes(struct phrase *p, uint64_t bytes)
{
	static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
	double value = (double)bytes;
	unsigned unit = 0;

	if (bytes < 1000) {
		phrase_add(p, "%" PRIu64 NO_BREAK "B", bytes);
		return;
	}
	for (value /= 1000; value >= 999.5 && unit < 5; unit++)
		value /= 1000;
	phrase_add(p, "%.*f" NO_BREAK "%s",
		value < 9.995	? 2
		: value < 99.95 ? 1
				: 0,
		value, units[unit]);
}

void
phrase_blame(struct phrase *p, const json_t *object)
{
	const char *detail = field_text(object, "detail");

	phrase_add(p, "%s in %s",
		field_text_or(object, "cause", field_text_or(object, "type", "?")),
		field_text_or(object, "buffer", "?"));
	if (detail != NULL)
		phrase_add(p, " (%s)", detail);
}

void
phrase_culprits(struct phrase *p, const json_t *culprits)
{
	const json_t *culprit;
	size_t i;

	json_array_foreach(culprits, i, culprit)
	{
		double share;
		uint64_t bytes;

		phrase_add(p, "%s%s %s", i > 0 ? ", " : "", field_text_or(culprit, "kind", "?"),
			field_text_or(culprit, "id", "?"));
		if (field_real(culprit, "share", &share))
			phrase_add(p, " %.0f%%", share * 100);
		if (field_number(culprit, "bytes", &bytes) && bytes > 0) {
			phrase_add(p, " (");
			phrase_bytes(p, bytes);
			phrase_add(p, ")");
		}
	}
}

void
phrase_instant(struct phrase *p, const json_t *object, const char *key, bool brief)
{
	uint64_t t;
	time_t seconds;
	struct tm utc;
	char text[40];

	if (!field_instant(object, key, &t)) {
		phrase_add(p, "?");
		return;
	}
	seconds = (time_t)(t / BS_NS_PER_S);
	if (gmtime_r(&seconds, &utc) == NULL ||
		strftime(text, sizeof(text), brief ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &utc) == 0)
		return;
	phrase_add(p, "%s.%03u%s", text, (unsigned)(t % BS_NS_PER_S / BS_NS_PER_MS),
		brief ? "" : " UTC");
}
