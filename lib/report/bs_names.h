/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names for the numbers in records. A stream of records names bufscoped's own
 * buffers, its services and protocols in NAME records; what was not named yet
 * is called "buffer#41", "service#3", "protocol#7".
 *
 * One writer (learn); others may look up only while it does not learn.
 */
#pragma once

#include "bs_record.h"

struct bs_names {
	char buffers[BS_BUFFER_MAX][BS_NAME_BYTES];
	char services[BS_MAX_SERVICES + 1][BS_NAME_BYTES];
	char protocols[BS_MAX_PROTOCOLS][BS_NAME_BYTES];
};

/* Nothing is known but the inferred buffers and the service "other" (BS_MAX_SERVICES). */
void bs_names_init(struct bs_names *names);

/*
 * Takes the name in a NAME record that bs_record_next has passed, or our own. A
 * later name replaces an earlier one, an empty one is ignored. What cannot be
 * printed is kept as \xNN, what is too long then is cut.
 */
void bs_names_learn(struct bs_names *names, const struct bs_rec_name *record);

/* Never NULL; "?" for a number outside the range. The text lives as long as the registry. */
const char *bs_names_buffer(const struct bs_names *names, unsigned number);
const char *bs_names_service(const struct bs_names *names, unsigned number);
const char *bs_names_protocol(const struct bs_names *names, unsigned number);
