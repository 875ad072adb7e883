/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of the diagnosis share. */
#pragma once

#include "bs_record.h"

/* Configured services, and one for all other traffic. */
#define DIAG_SERVICES (BS_MAX_SERVICES + 1u)

/* Excess below this is no outlier, whatever the spread. */
#define DIAG_FLOOR_NS 200000u

static inline bool
blame_equal(struct bs_blame a, struct bs_blame b)
{
	return a.buffer == b.buffer && a.cause == b.cause;
}
