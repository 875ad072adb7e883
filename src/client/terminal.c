/* SPDX-License-Identifier: BSD-3-Clause */
#include "terminal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_DEFAULT 100u

static bool
locale_is_utf8(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	/* POSIX 8.2: the first of these that is set and not empty counts */
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);

		if (value != NULL && *value != '\0')
			return strcasestr(value, "utf-8") != NULL ||
			       strcasestr(value, "utf8") != NULL;
	}
	return false;
}

static unsigned
columns_wanted(void)
{
	const char *text = getenv("COLUMNS");
	long columns = text != NULL ? strtol(text, NULL, 10) : 0;

	if (columns < (long)BS_REPORT_WIDTH_MIN || columns > (long)BS_REPORT_WIDTH_MAX)
		return WIDTH_DEFAULT;
	return (unsigned)columns;
}

void
bs_terminal(int fd, struct bs_report_text *options)
{
	bool terminal = isatty(fd) == 1;
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");
	struct winsize size;

	options->width = columns_wanted();
	if (terminal && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		options->width = size.ws_col;
	options->color = terminal && (no_color == NULL || *no_color == '\0') &&
			 (term == NULL || strcmp(term, "dumb") != 0);
	options->utf8 = locale_is_utf8();
}
