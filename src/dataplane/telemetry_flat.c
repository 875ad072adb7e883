/* SPDX-License-Identifier: BSD-3-Clause */
/* Full answers cut down to what the telemetry socket can say. */
#include "telemetry_flat.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define KEY_BYTES 64u
#define DEPTH_MAX 4u

struct flat {
	json_t *object;
	size_t bytes; /* about what the object takes as text */
};

static void
make_key(char key[KEY_BYTES], const char *prefix, const char *name, const char *suffix)
{
	snprintf(key, KEY_BYTES, "%s%s%s", prefix, name, suffix);
	for (char *p = key; *p != '\0'; p++) {
		if (!isalnum((unsigned char)*p) && *p != '_' && *p != '/' && *p != ' ')
			*p = '_';
	}
}

static void
put(struct flat *flat, const char *key, json_t *value, size_t bytes)
{
	if (json_object_size(flat->object) < BS_TELEMETRY_ENTRIES) {
		flat->bytes += strlen(key) + bytes + 4;
		json_object_set_new(flat->object, key, value);
	} else {
		json_decref(value);
	}
}

/* Cut where a character of UTF-8 ends; an escaped byte takes up to 6 in the answer. */
static void
put_text(struct flat *flat, const char *key, const char *text)
{
	size_t bytes = strlen(text), escaped = 2;

	if (bytes > BS_TELEMETRY_TEXT) {
		bytes = BS_TELEMETRY_TEXT;
		while (bytes > 0 && ((unsigned char)text[bytes] & 0xc0u) == 0x80u)
			bytes--;
	}
	for (size_t i = 0; i < bytes; i++)
		escaped += text[i] < ' ' || text[i] == '"' || text[i] == '\\' ? 6 : 1;
	put(flat, key, json_stringn(text, bytes), escaped);
}

static void flatten_members(
	struct flat *flat, const json_t *object, const char *prefix, unsigned depth);

static void
flatten_value(struct flat *flat, const char *prefix, const char *name, const json_t *value,
	unsigned depth)
{
	char key[KEY_BYTES];

	make_key(key, prefix, name, "");
	switch (json_typeof(value)) {
	case JSON_STRING:
		put_text(flat, key, json_string_value(value));
		break;
	case JSON_INTEGER:
		put(flat, key, json_integer(json_integer_value(value)), 20);
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		put(flat, key, json_integer(json_is_true(value)), 1);
		break;
	case JSON_REAL:
		make_key(key, prefix, name, "_percent");
		put(flat, key, json_integer((json_int_t)(json_real_value(value) * 100 + 0.5)), 20);
		break;
	case JSON_OBJECT:
		make_key(key, prefix, strcmp(name, "root_cause") == 0 ? "root" : name, "_");
		if (depth < DEPTH_MAX)
			flatten_members(flat, value, key, depth + 1);
		break;
	case JSON_ARRAY:
	case JSON_NULL:
		break;
	}
}

static void
flatten_members(struct flat *flat, const json_t *object, const char *prefix, unsigned depth)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)object, name, value)
		flatten_value(flat, prefix, name, value, depth);
}

/* Adds entries as "0", "1", ... while they fit; returns how many did. */
static size_t
add_list(struct flat *flat, const json_t *list)
{
	json_t *entry;
	size_t index;

	json_array_foreach(list, index, entry)
	{
		struct flat member = {json_object(), 2};
		char key[KEY_BYTES];

		snprintf(key, sizeof(key), "%zu", index);
		if (json_is_object(entry))
			flatten_members(&member, entry, "", 0);
		else
			flatten_value(flat, "", key, entry, 0);
		if (json_is_object(entry) &&
			flat->bytes + member.bytes + KEY_BYTES <= BS_TELEMETRY_BYTES &&
			json_object_size(flat->object) < BS_TELEMETRY_ENTRIES) {
			put(flat, key, member.object, member.bytes);
			continue;
		}
		json_decref(member.object);
		if (json_is_object(entry))
			return index;
	}
	return index;
}

json_t *
bs_telemetry_flatten(const json_t *answer, const char *list)
{
	struct flat flat = {json_object(), 2};
	json_int_t offset = json_integer_value(json_object_get(answer, "offset"));
	json_int_t total = json_integer_value(json_object_get(answer, "total")), next;
	const char *name;
	json_t *value;

	if (flat.object == NULL)
		return NULL;
	if (list != NULL) {
		put(&flat, "total", json_integer(total), 20);
		next = offset + (json_int_t)add_list(&flat, json_object_get(answer, list));
		if (offset < total && next < total)
			put(&flat, "next", json_integer(next), 20);
		return flat.object;
	}
	flatten_members(&flat, answer, "", 0);
	json_object_foreach((json_t *)answer, name, value)
	{
		struct flat member = {.bytes = flat.bytes + 2};
		char key[KEY_BYTES];

		if (!json_is_array(value) || json_array_size(value) == 0)
			continue;
		member.object = json_object();
		add_list(&member, value);
		make_key(key, "", name, "");
		put(&flat, key, member.object, member.bytes - flat.bytes);
	}
	return flat.object;
}
