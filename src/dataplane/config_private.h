/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the configuration is read: a table says of every key its path, kind,
 * range, default and place in struct bs_config (config_keys.c), one reader walks
 * it (config_parse.c). Used by the files config*.c only.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"

#define CONFIG_DEPTH 8u
#define CONFIG_FILE_BYTES_MAX (1u << 20)

enum config_kind {
	CONFIG_OBJECT,	 /* keys in the same struct */
	CONFIG_LIST,	 /* array of objects, each a struct */
	CONFIG_MAP,	 /* object of objects, each a struct whose first field is its name */
	CONFIG_BOOL,	 /* bool */
	CONFIG_NUMBER,	 /* whole number */
	CONFIG_DURATION, /* "200us" in ns */
	CONFIG_SIZE,	 /* bytes, or "512M": powers of 1024 */
	CONFIG_RATE,	 /* bits/s, or "50M": powers of 1000 */
	CONFIG_REAL,	 /* double */
	CONFIG_TEXT,	 /* char[bytes] */
	CONFIG_NAME,	 /* char[bytes] of letters, digits, _ and - */
	CONFIG_WORD,	 /* one of words, as its number */
	CONFIG_OWN,	 /* set() does it */
	CONFIG_NOT_BUILT /* null, false or "off"; anything else is refused by name */
};

#define CONFIG_WORD_NOT_BUILT (-1)

/* A list ends with word NULL; its value says whether all other words are "not built yet". */
struct config_word {
	const char *word;
	int value;
};

struct config_reader;

struct config_key {
	const char *name;
	enum config_kind kind;
	const char *fallback; /* the default, as JSON; NULL: the key is required */
	bool null_ok;	      /* null leaves the field zero */
	bool power_of_two;
	bool reload;	 /* may change in a running bufscoped */
	size_t offset;	 /* of the field in the struct that the object fills */
	size_t bytes;	 /* of the field; of one element for lists and maps; 0: nothing is stored */
	const char *min; /* bounds, written as a user would */
	const char *max;
	const char *allowed; /* said in errors where kind, words and bounds do not say it */
	const struct config_word *words;
	const struct config_key *keys; /* ends with name NULL */
	size_t count_offset;	       /* lists and maps: the unsigned that counts elements */
	unsigned count_min, count_max;
	int (*set)(struct config_reader *reader, const struct config_key *key, const json_t *value,
		void *base);
};

/* One step of a key path: a key, or an index where key is NULL. */
struct config_step {
	const char *key;
	unsigned index;
};

struct config_reader {
	const char *file;
	const char *text; /* NULL: no lines are known */
	struct bs_config *config;
	char *error;
	struct config_step path[CONFIG_DEPTH];
	unsigned depth;
};

extern const struct config_key config_keys[];

/* What is quoted from a file must not break the line or steer a terminal. */
void config_one_line(char *text);

/* Writes "FILE:LINE: key.path: <format>" to reader->error; returns -EINVAL. */
__attribute__((format(printf, 2, 3))) int config_fail(
	struct config_reader *reader, const char *format, ...);

/* The same for a value: "<value> is <what> (allowed: ...)". */
int config_fail_value(struct config_reader *reader, const struct config_key *key,
	const json_t *value, const char *what);

void config_push(struct config_reader *reader, const char *key, unsigned index);
void config_pop(struct config_reader *reader);

/* Fills base from object by keys. 0 or -EINVAL with the error written. */
int config_read_object(struct config_reader *reader, const struct config_key *keys,
	const json_t *object, void *base);

/* The number of a word in value: 0, or -EINVAL with the error written. */
int config_read_word(struct config_reader *reader, const struct config_key *key,
	const json_t *value, int *number);

/* What the table cannot say: names that must resolve, things that must differ. */
int config_check(struct config_reader *reader);

/* Line of the value at path in a valid JSON text: of the deepest step that is there. From 1. */
unsigned config_line(const char *text, const struct config_step *path, unsigned depth);
