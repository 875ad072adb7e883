/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* `bufscope record`: argv[0] is "record". Returns the exit status. */
int record_command(int argc, char **argv);
