/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* `bufscope check`: argv[0] is "check". Returns the exit status. */
int check_command(int argc, char **argv);
