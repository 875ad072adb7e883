/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Walks a JSON object along a table of keys into a struct. A key that is absent
 * takes its default through the same code, so a default cannot differ from the
 * same text in a file.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bs_clock.h"
#include "config_private.h"

#define VALUE_TEXT_BYTES 48u
#define ALLOWED_BYTES 256u

struct kind {
	const char *text; /* "... is not <text>" */
	int (*parse)(const char *text, int64_t *number);
	bool as_number; /* a JSON integer is taken too */
};

static int
parse_number(const char *text, int64_t *number)
{
	char *end;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0')
		return -EINVAL;
	*number = value;
	return 0;
}

static int
parse_duration(const char *text, int64_t *number)
{
	uint64_t ns;
	int ret = bs_duration_parse(text, &ns);

	if (ret == 0)
		*number = (int64_t)ns;
	return ret;
}

/* Digits and one of k, M, G, T, each `step` times the one before. */
static int
parse_scaled(const char *text, int64_t step, int64_t *number)
{
	static const char units[] = "kMGT";
	int64_t value = 0, scale = 1;
	const char *unit;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	for (; isdigit((unsigned char)*text); text++) {
		if (__builtin_mul_overflow(value, 10, &value) ||
			__builtin_add_overflow(value, *text - '0', &value))
			return -EINVAL;
	}
	if (*text != '\0') {
		unit = strchr(units, *text);
		if (unit == NULL || text[1] != '\0')
			return -EINVAL;
		for (const char *u = units; u <= unit; u++)
			scale *= step;
	}
	return __builtin_mul_overflow(value, scale, number) ? -EINVAL : 0;
}

static int
parse_size(const char *text, int64_t *number)
{
	return parse_scaled(text, 1024, number);
}

static int
parse_rate(const char *text, int64_t *number)
{
	return parse_scaled(text, 1000, number);
}

static const struct kind kinds[] = {
	[CONFIG_OBJECT] = {.text = "an object"},
	[CONFIG_LIST] = {.text = "a list of objects"},
	[CONFIG_MAP] = {.text = "an object of objects"},
	[CONFIG_BOOL] = {.text = "true or false"},
	[CONFIG_NUMBER] = {"a whole number", parse_number, true},
	[CONFIG_DURATION] = {"a duration as \"5ms\"", parse_duration, false},
	[CONFIG_SIZE] = {"a size as \"512M\"", parse_size, true},
	[CONFIG_RATE] = {"a bit rate as \"10G\"", parse_rate, true},
	[CONFIG_REAL] = {.text = "a number"},
	[CONFIG_TEXT] = {.text = "a text of this length"},
	[CONFIG_NAME] = {.text = "a name"},
	[CONFIG_WORD] = {.text = "known"},
	[CONFIG_OWN] = {.text = "of this form"},
	[CONFIG_NOT_BUILT] = {.text = "built yet"},
};

void
config_push(struct config_reader *reader, const char *key, unsigned index)
{
	if (reader->depth < CONFIG_DEPTH)
		reader->path[reader->depth] = (struct config_step){key, index};
	reader->depth++;
}

void
config_pop(struct config_reader *reader)
{
	reader->depth--;
}

/* snprintf at the end of a text that may be full already. */
__attribute__((format(printf, 3, 4))) static void
append(char *text, size_t bytes, const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + used, bytes - used, format, args);
	va_end(args);
}

void
config_one_line(char *text)
{
	for (; *text != '\0'; text++) {
		if (iscntrl((unsigned char)*text))
			*text = '?';
	}
}

int
config_fail(struct config_reader *reader, const char *format, ...)
{
	unsigned depth = reader->depth < CONFIG_DEPTH ? reader->depth : CONFIG_DEPTH;
	char *out = reader->error;
	size_t used;
	va_list args;

	snprintf(out, BS_CONFIG_ERROR_BYTES, "%s:", reader->file);
	if (reader->text != NULL)
		append(out, BS_CONFIG_ERROR_BYTES,
			"%u:", config_line(reader->text, reader->path, depth));
	append(out, BS_CONFIG_ERROR_BYTES, " ");
	for (unsigned i = 0; i < depth; i++) {
		const struct config_step *step = &reader->path[i];

		if (step->key == NULL)
			append(out, BS_CONFIG_ERROR_BYTES, "[%u]", step->index);
		else
			append(out, BS_CONFIG_ERROR_BYTES, "%s%.40s", i == 0 ? "" : ".", step->key);
	}
	append(out, BS_CONFIG_ERROR_BYTES, depth == 0 ? "" : ": ");
	used = strlen(out);
	va_start(args, format);
	vsnprintf(out + used, BS_CONFIG_ERROR_BYTES - used, format, args);
	va_end(args);
	config_one_line(out);
	return -EINVAL;
}

static const char *
allowed_text(const struct config_key *key, char out[ALLOWED_BYTES])
{
	out[0] = '\0';
	if (key->allowed != NULL)
		return key->allowed;
	switch (key->kind) {
	case CONFIG_BOOL:
		return "true, false";
	case CONFIG_NOT_BUILT:
		return "null";
	case CONFIG_NAME:
	case CONFIG_TEXT:
		snprintf(out, ALLOWED_BYTES, "1 to %zu %s", key->bytes - 1,
			key->kind == CONFIG_NAME ? "letters, digits, _ and -" : "characters");
		break;
	case CONFIG_LIST:
	case CONFIG_MAP:
		snprintf(out, ALLOWED_BYTES, "%u to %u entries", key->count_min, key->count_max);
		break;
	case CONFIG_OBJECT:
		for (const struct config_key *k = key->keys; k->name != NULL; k++)
			append(out, ALLOWED_BYTES, "%s%s", k == key->keys ? "" : ", ", k->name);
		break;
	case CONFIG_WORD:
		break;
	default:
		snprintf(out, ALLOWED_BYTES, "%s to %s%s", key->min, key->max,
			key->power_of_two ? ", a power of two" : "");
	}
	for (const struct config_word *w = key->words; w != NULL && w->word != NULL; w++) {
		if (w->value != CONFIG_WORD_NOT_BUILT)
			append(out, ALLOWED_BYTES, "%s%s", out[0] == '\0' ? "" : ", ", w->word);
	}
	if (key->null_ok)
		append(out, ALLOWED_BYTES, ", null");
	return out;
}

int
config_fail_value(struct config_reader *reader, const struct config_key *key, const json_t *value,
	const char *what)
{
	char allowed[ALLOWED_BYTES];
	char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);
	int ret = config_fail(reader, "%.*s%s is %s (allowed: %s)", (int)VALUE_TEXT_BYTES,
		text == NULL ? "the value" : text,
		text != NULL && strlen(text) > VALUE_TEXT_BYTES ? "..." : "", what,
		allowed_text(key, allowed));

	free(text);
	return ret;
}

static int
fail_kind(struct config_reader *reader, const struct config_key *key, const json_t *value)
{
	char what[64];

	snprintf(what, sizeof(what), "not %s", kinds[key->kind].text);
	return config_fail_value(reader, key, value, what);
}

static void
store_number(const struct config_key *key, void *base, int64_t number)
{
	void *field = (char *)base + key->offset;

	switch (key->bytes) {
	case 1:
		memcpy(field, &(uint8_t){(uint8_t)number}, 1);
		break;
	case 2:
		memcpy(field, &(uint16_t){(uint16_t)number}, 2);
		break;
	case 4:
		memcpy(field, &(uint32_t){(uint32_t)number}, 4);
		break;
	case 8:
		memcpy(field, &number, 8);
		break;
	}
}

static int
read_number(
	struct config_reader *reader, const struct config_key *key, const json_t *value, void *base)
{
	const struct kind *kind = &kinds[key->kind];
	int64_t number, min = 0, max = 0;

	if (json_is_integer(value) && kind->as_number)
		number = json_integer_value(value);
	else if (!json_is_string(value) || key->kind == CONFIG_NUMBER ||
		 kind->parse(json_string_value(value), &number) != 0)
		return fail_kind(reader, key, value);
	if (kind->parse(key->min, &min) != 0 || kind->parse(key->max, &max) != 0 || number < min ||
		number > max)
		return config_fail_value(reader, key, value, "out of range");
	if (key->power_of_two && (number & (number - 1)) != 0)
		return config_fail_value(reader, key, value, "not a power of two");
	store_number(key, base, number);
	return 0;
}

static int
read_real(
	struct config_reader *reader, const struct config_key *key, const json_t *value, void *base)
{
	double number = json_number_value(value);

	if (!json_is_number(value))
		return fail_kind(reader, key, value);
	if (!(number >= strtod(key->min, NULL) && number <= strtod(key->max, NULL)))
		return config_fail_value(reader, key, value, "out of range");
	memcpy((char *)base + key->offset, &number, sizeof(number));
	return 0;
}

static int
read_text(
	struct config_reader *reader, const struct config_key *key, const json_t *value, void *base)
{
	const char *text = json_string_value(value);

	if (text == NULL || text[0] == '\0' || strlen(text) >= key->bytes)
		return fail_kind(reader, key, value);
	for (const char *p = text; *p != '\0'; p++) {
		unsigned char c = (unsigned char)*p;

		if (key->kind == CONFIG_NAME ? !isalnum(c) && c != '_' && c != '-' : iscntrl(c))
			return fail_kind(reader, key, value);
	}
	memcpy((char *)base + key->offset, text, strlen(text) + 1);
	return 0;
}

int
config_read_word(struct config_reader *reader, const struct config_key *key, const json_t *value,
	int *number)
{
	const struct config_word *w = key->words;

	if (!json_is_string(value))
		return fail_kind(reader, key, value);
	while (w->word != NULL && strcmp(w->word, json_string_value(value)) != 0)
		w++;
	if (w->value == CONFIG_WORD_NOT_BUILT)
		return config_fail_value(reader, key, value, "not built yet");
	if (w->word == NULL)
		return fail_kind(reader, key, value);
	*number = w->value;
	return 0;
}

static int
read_element(struct config_reader *reader, const struct config_key *key, const char *name,
	const json_t *value, void *base)
{
	unsigned *count = (unsigned *)(void *)((char *)base + key->count_offset);
	char *element = (char *)base + key->offset + *count * key->bytes;
	const struct config_key name_key = {.name = "name",
		.kind = CONFIG_NAME,
		.bytes = sizeof(((struct bs_config_port *)0)->name)};
	json_t *name_json;
	int ret = 0;

	config_push(reader, name, *count);
	if (name != NULL) {
		name_json = json_string(name);
		ret = name_json == NULL ? config_fail(reader, "out of memory")
					: read_text(reader, &name_key, name_json, element);
		json_decref(name_json);
	}
	if (ret == 0 && !json_is_object(value))
		ret = config_fail(reader, "not an object");
	if (ret == 0)
		ret = config_read_object(reader, key->keys, value, element);
	if (ret != 0)
		return ret;
	config_pop(reader);
	(*count)++;
	return 0;
}

static int
read_elements(
	struct config_reader *reader, const struct config_key *key, const json_t *value, void *base)
{
	bool map = key->kind == CONFIG_MAP;
	size_t count = map ? json_object_size(value) : json_array_size(value);
	const char *name;
	json_t *element;
	size_t index;
	int ret;

	if (map ? !json_is_object(value) : !json_is_array(value))
		return fail_kind(reader, key, value);
	if (count < key->count_min || count > key->count_max)
		return config_fail(reader, "has %zu entries (allowed: %u to %u)", count,
			key->count_min, key->count_max);
	if (map) {
		json_object_foreach((json_t *)value, name, element)
		{
			ret = read_element(reader, key, name, element, base);
			if (ret != 0)
				return ret;
		}
		return 0;
	}
	json_array_foreach(value, index, element)
	{
		ret = read_element(reader, key, NULL, element, base);
		if (ret != 0)
			return ret;
	}
	return 0;
}

static bool
is_not_built(const struct config_key *key, const json_t *value)
{
	if (key->kind == CONFIG_NOT_BUILT)
		return !json_is_null(value) && !json_is_false(value) &&
		       !(json_is_string(value) && strcmp(json_string_value(value), "off") == 0);
	for (const struct config_word *w = key->words; w != NULL && w->word != NULL; w++) {
		if (w->value == CONFIG_WORD_NOT_BUILT && json_is_string(value) &&
			strcmp(w->word, json_string_value(value)) == 0)
			return true;
	}
	return false;
}

static int
read_value(
	struct config_reader *reader, const struct config_key *key, const json_t *value, void *base)
{
	int number = 0, ret;

	if (is_not_built(key, value))
		return config_fail_value(reader, key, value, "not built yet");
	if (key->null_ok && json_is_null(value) && key->set == NULL)
		return 0;
	if (key->set != NULL)
		return key->set(reader, key, value, base);
	switch (key->kind) {
	case CONFIG_OBJECT:
		return json_is_object(value) ? config_read_object(reader, key->keys, value, base)
					     : fail_kind(reader, key, value);
	case CONFIG_LIST:
	case CONFIG_MAP:
		return read_elements(reader, key, value, base);
	case CONFIG_BOOL:
		if (!json_is_boolean(value))
			return fail_kind(reader, key, value);
		store_number(key, base, json_is_true(value));
		return 0;
	case CONFIG_REAL:
		return read_real(reader, key, value, base);
	case CONFIG_TEXT:
	case CONFIG_NAME:
		return read_text(reader, key, value, base);
	case CONFIG_WORD:
		ret = config_read_word(reader, key, value, &number);
		if (ret == 0)
			store_number(key, base, number);
		return ret;
	case CONFIG_NOT_BUILT:
	case CONFIG_OWN:
		return 0;
	default:
		return read_number(reader, key, value, base);
	}
}

static int
refuse_unknown(struct config_reader *reader, const struct config_key *keys, const json_t *object)
{
	const struct config_key all = {.kind = CONFIG_OBJECT, .keys = keys};
	char allowed[ALLOWED_BYTES];
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)object, name, value)
	{
		const struct config_key *key = keys;

		while (key->name != NULL && strcmp(key->name, name) != 0)
			key++;
		if (key->name == NULL) {
			config_push(reader, name, 0);
			return config_fail(
				reader, "unknown key (allowed: %s)", allowed_text(&all, allowed));
		}
	}
	return 0;
}

int
config_read_object(struct config_reader *reader, const struct config_key *keys,
	const json_t *object, void *base)
{
	char allowed[ALLOWED_BYTES];
	int ret = refuse_unknown(reader, keys, object);

	for (const struct config_key *key = keys; ret == 0 && key->name != NULL; key++) {
		const json_t *value = json_object_get(object, key->name);
		json_t *fallback = NULL;

		config_push(reader, key->name, 0);
		if (value == NULL && key->fallback == NULL)
			return config_fail(reader, "required key is missing (allowed: %s)",
				allowed_text(key, allowed));
		if (value == NULL)
			value = fallback =
				json_loads(key->fallback, JSON_DECODE_ANY, &(json_error_t){0});
		ret = value == NULL ? config_fail(reader, "out of memory")
				    : read_value(reader, key, value, base);
		json_decref(fallback);
		if (ret == 0)
			config_pop(reader);
	}
	return ret;
}
