/* SPDX-License-Identifier: BSD-3-Clause */
/* What the stream that text goes to can show; lib/report draws, but does not look. */
#pragma once

#include "bs_report.h"

/*
 * How to draw on fd: the terminal's width, colours unless NO_COLOR is set (see
 * https://no-color.org) or TERM is dumb, UTF-8 if the locale's is. Not a
 * terminal: $COLUMNS or 100 columns, no colours.
 */
void bs_terminal(int fd, struct bs_report_text *options);
