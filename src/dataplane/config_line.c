/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jansson tells the line of a syntax error only. For a value that is well
 * formed but wrong, this finds the line again by walking the text along the key
 * path. The text has passed jansson before; the walk stays inside it in any case.
 */
#include <stdbool.h>
#include <string.h>

#include "config_private.h"

static const char *
skip_space(const char *p)
{
	return p + strspn(p, " \t\r\n");
}

/* p is at the opening quote; returns behind the closing one. */
static const char *
skip_string(const char *p)
{
	for (p++; *p != '\0' && *p != '"'; p++) {
		if (*p == '\\' && p[1] != '\0')
			p++;
	}
	return *p == '"' ? p + 1 : p;
}

static const char *
skip_value(const char *p)
{
	unsigned depth = 0;

	while (*p != '\0') {
		if (*p == '"') {
			p = skip_string(p);
		} else if (*p == '{' || *p == '[') {
			depth++;
			p++;
		} else if (*p == '}' || *p == ']') {
			if (depth == 0)
				return p;
			depth--;
			p++;
		} else if (*p == ',' && depth == 0) {
			return p;
		} else {
			p++;
		}
		if (depth == 0 && (*p == ',' || *p == '}' || *p == ']'))
			return p;
	}
	return p;
}

/* p is at '{' or '['. Where the step's key (or element) begins, its value in *value; or NULL. */
static const char *
find_step(const char *p, const struct config_step *step, const char **value)
{
	bool object = *p == '{';
	unsigned index = 0;

	if ((!object && *p != '[') || object != (step->key != NULL))
		return NULL;
	for (p = skip_space(p + 1); *p != '\0' && *p != '}' && *p != ']'; index++) {
		const char *begin = p;
		bool match = index == step->index;

		if (object) {
			size_t bytes;

			if (*p != '"')
				return NULL;
			p = skip_string(p);
			bytes = strlen(step->key);
			match = (size_t)(p - begin) == bytes + 2 &&
				memcmp(begin + 1, step->key, bytes) == 0;
			p = skip_space(p);
			if (*p != ':')
				return NULL;
			p = skip_space(p + 1);
		}
		if (match) {
			*value = p;
			return begin;
		}
		p = skip_space(skip_value(p));
		if (*p == ',')
			p = skip_space(p + 1);
	}
	return NULL;
}

unsigned
config_line(const char *text, const struct config_step *path, unsigned depth)
{
	const char *value = skip_space(text), *at = value;
	unsigned line = 1;

	for (unsigned i = 0; i < depth; i++) {
		const char *next = find_step(value, &path[i], &value);

		if (next == NULL)
			break;
		at = next;
	}
	for (const char *p = text; p < at; p++) {
		if (*p == '\n')
			line++;
	}
	return line;
}
