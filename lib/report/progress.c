/* SPDX-License-Identifier: BSD-3-Clause */
/* A bar that is drawn over itself, on a terminal. */
#include <errno.h>
#include <string.h>

#include "bs_report.h"
#include "escape.h"

#define BAR_CELLS 20u
#define FRAME_CELLS 9u /* brackets, percentage, and the last column, left free */

int
bs_report_progress(FILE *out, const char *what, uint64_t done, uint64_t total,
	const struct bs_report_text *options)
{
	double part = total > 0 && done < total ? (double)done / (double)total : 0;
	unsigned full = (unsigned)(part * BAR_CELLS);
	unsigned width = options->width;
	char name[BS_REPORT_WIDTH_MAX];
	char bar[BAR_CELLS + 1];

	if (width < BS_REPORT_WIDTH_MIN)
		width = BS_REPORT_WIDTH_MIN;
	if (width > BS_REPORT_WIDTH_MAX)
		width = BS_REPORT_WIDTH_MAX;
	fputs("\r\x1b[K", out);
	if (done < total) {
		memset(bar, ' ', BAR_CELLS);
		memset(bar, '#', full);
		bar[BAR_CELLS] = '\0';
		/* A character has no more columns than bytes. */
		bs_report_escape(what, strlen(what), name, width - BAR_CELLS - FRAME_CELLS);
		fprintf(out, "[%s] %3u %% %s", bar, (unsigned)(part * 100), name);
	}
	return fflush(out) == 0 && !ferror(out) ? 0 : -EIO;
}
