/* SPDX-License-Identifier: BSD-3-Clause */
#include "instant.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bs_clock.h"

#define YEAR_MIN 1970
#define YEAR_MAX 2500 /* the ns of later ones do not fit */

static int
parse_ns(const char *text, uint64_t *t_ns)
{
	char *end;

	errno = 0;
	*t_ns = strtoull(text, &end, 10);
	return errno == 0 && *end == '\0' ? 0 : -EINVAL;
}

/* ":SS", ".fff" and "Z" behind hours and minutes; each may be absent. */
static int
parse_rest(const char *text, struct tm *tm, uint64_t *fraction_ns, bool *utc)
{
	uint64_t unit = BS_NS_PER_S / 10;

	*fraction_ns = 0;
	if (*text == ':') {
		if (text[1] < '0' || text[1] > '5' || text[2] < '0' || text[2] > '9')
			return -EINVAL;
		tm->tm_sec = (text[1] - '0') * 10 + (text[2] - '0');
		text += 3;
		if (*text == '.') {
			for (text++; *text >= '0' && *text <= '9'; text++, unit /= 10)
				*fraction_ns += (uint64_t)(*text - '0') * unit;
		}
	}
	*utc = *text == 'Z';
	return text[*utc] == '\0' ? 0 : -EINVAL;
}

int
instant_parse(const char *text, uint64_t now_ns, uint64_t *t_ns)
{
	time_t now = (time_t)(now_ns / BS_NS_PER_S), seconds;
	struct tm tm = {0}, today;
	uint64_t fraction_ns;
	const char *rest;
	bool utc;

	if (*text != '\0' && strspn(text, "0123456789") == strlen(text))
		return parse_ns(text, t_ns);
	rest = strptime(text, "%Y-%m-%dT%H:%M", &tm);
	if (rest == NULL)
		rest = strptime(text, "%Y-%m-%d %H:%M", &tm);
	if (rest == NULL) {
		rest = strptime(text, "%H:%M", &tm);
		if (rest == NULL || localtime_r(&now, &today) == NULL)
			return -EINVAL;
		tm.tm_year = today.tm_year;
		tm.tm_mon = today.tm_mon;
		tm.tm_mday = today.tm_mday;
	}
	if (parse_rest(rest, &tm, &fraction_ns, &utc) != 0 || tm.tm_year < YEAR_MIN - 1900 ||
		tm.tm_year > YEAR_MAX - 1900)
		return -EINVAL;
	tm.tm_isdst = -1;
	seconds = utc ? timegm(&tm) : mktime(&tm);
	if (seconds < 0)
		return -EINVAL;
	*t_ns = (uint64_t)seconds * BS_NS_PER_S + fraction_ns;
	return 0;
}

const char *
instant_text(uint64_t t_ns, char out[INSTANT_TEXT_BYTES])
{
	time_t seconds = (time_t)(t_ns / BS_NS_PER_S);
	struct tm tm;
	size_t used;

	if (t_ns == 0 || localtime_r(&seconds, &tm) == NULL)
		return memcpy(out, "-", 2);
	used = strftime(out, INSTANT_TEXT_BYTES, "%Y-%m-%d %H:%M:%S", &tm);
	snprintf(out + used, INSTANT_TEXT_BYTES - used, ".%03u",
		(unsigned)(t_ns % BS_NS_PER_S / BS_NS_PER_MS));
	return out;
}
