/* SPDX-License-Identifier: BSD-3-Clause */
/* What journal.c and journal_reader.c share. */
#pragma once

#include "bs_journal.h"

/* How the header of a block begins. */
extern const uint8_t journal_block_magic[8];
