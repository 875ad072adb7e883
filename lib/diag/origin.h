/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Episodes of our own buffers (events of no RPC), and the way from a symptom
 * back to its origin: design section 2.4.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bs_record.h"
#include "interval.h"

#define ORIGIN_LCORE_NONE UINT16_MAX

/* What led to a symptom. */
struct origin {
	struct bs_blame blame; /* the last step; the symptom itself if there is none */
	struct bs_blame via[BS_VERDICT_VIA];
	uint8_t via_count;
	uint16_t lcore;	 /* of a hang whose episode is known; else ORIGIN_LCORE_NONE */
	uint16_t detail; /* of the last step, if that is an episode of a hang or a drop */
	uint8_t culprit_count;
	uint8_t culprit_kind[BS_EVENT_CULPRITS];
	struct bs_culprit_share culprits[BS_EVENT_CULPRITS];
};

struct episodes;

struct episodes *episodes_create(bool offline); /* NULL with errno ENOMEM */
void episodes_destroy(struct episodes *episodes);

/* False for an event that makes no sense. */
bool episodes_feed(struct episodes *episodes, const struct bs_rec_event *event);

/* Buffers that are ours, whose episodes are told. */
bool origin_own_buffer(unsigned buffer);

/*
 * Origin of `symptom`, seen in `span`; `now` is the end of an episode that goes
 * on. For a DROP the span begins when the packet was dropped.
 */
void origin_find(const struct episodes *episodes, struct bs_blame symptom, struct interval span,
	uint64_t now, struct origin *origin);
