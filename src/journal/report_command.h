/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* `bufscope report`: argv[0] is "report". Returns the exit status. */
int report_command(int argc, char **argv);
