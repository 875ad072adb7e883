/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* `bufscope replay`: argv[0] is "replay". Returns the exit status. */
int replay_command(int argc, char **argv);
