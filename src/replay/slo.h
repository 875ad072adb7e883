/* SPDX-License-Identifier: BSD-3-Clause */
/* The option --slo [SERVICE=]DURATION, which may be repeated. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "bs_diag.h"
#include "bs_names.h"
#include "options.h"

#define SLO_COUNT 64u

struct slos {
	struct {
		const char *service; /* not NUL-terminated; length 0: every service */
		size_t length;
		uint64_t slo_ns;
		bool found; /* set by slo_apply */
	} list[SLO_COUNT];
	unsigned count;
};

/* 0, or -EINVAL with one line in error. text outlives *slos. */
int slo_take(struct slos *slos, const char *text, char error[BS_OPTION_ERROR_BYTES]);

/*
 * Gives them to a diagnosis: those for every service, then those for one of the
 * services that are named. The later wins.
 */
void slo_apply(struct slos *slos, struct bs_diag *diag, const struct bs_names *names,
	const bool named[BS_MAX_SERVICES + 1]);

/* Of a service, by its name; 0: none. */
uint64_t slo_of(const struct slos *slos, const char *service);

/* The first for a service that was not found by any slo_apply; NULL: there is none. */
const char *slo_not_found(const struct slos *slos, int *length);
