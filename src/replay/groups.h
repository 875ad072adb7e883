/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All RPCs that were found: what is normal comes from the whole capture, so they
 * are kept until its end. Groups of records lie in blocks that never move.
 */
#pragma once

#include "bs_record.h"

struct findings_run;

struct group {
	const struct bs_rec_rpc *rpc; /* followed by its segments and events */
	const struct findings_run *run;
	size_t bytes;
	struct bs_rec_verdict verdict; /* once judged */
	size_t number;		       /* in order of arrival; of a live one */
	bool decided;		       /* live: verdict and group are as they were told */
};

struct group_block {
	struct group_block *next;
	size_t used, size;
	uint64_t data[];
};

/* All zero: none. */
struct groups {
	struct group_block *blocks; /* newest first */
	struct group *list;
	size_t count, room;
};

/* Keeps a copy of a group (a multiple of 8 bytes). NULL with errno ENOMEM; the copy lives until
 * free. */
const struct bs_rec_rpc *groups_add(
	struct groups *groups, const struct findings_run *run, const void *group, size_t bytes);

/* Puts a copy of another group in the place of one of them, 0 or -ENOMEM. */
int groups_replace(struct groups *groups, struct group *group, const void *records, size_t bytes);

/* Brings them into order of their ids, which is the order of their first bytes. */
void groups_sort(struct groups *groups);

/* The view of one of them; they were validated when they came. */
struct bs_rpc_view group_view(const struct group *group);

void groups_free(struct groups *groups);
