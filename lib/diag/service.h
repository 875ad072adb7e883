/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is known of the services themselves: whether one answers RPCs side by
 * side or one at a time, when they were silent, and what the kernel said of
 * their threads and sockets meanwhile. From it, what a wait for a service was: row "service
 * silent" of design section 6.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bs_record.h"
#include "interval.h"

/* What the silence rule makes of time in (service, compute). */
enum reading_kind {
	READING_NONE,	    /* no silence explains it */
	READING_SET,	    /* compute or hang: nothing tells them apart */
	READING_HANG,	    /* the service was not running, or nobody of many was served */
	READING_COMPUTE,    /* it was working on this RPC */
	READING_BEHIND,	    /* it was busy, or hung, with another RPC */
	READING_AFTERMATH,  /* waited for the backlog of a hang to drain */
	READING_UNACCEPTED, /* the service did not accept the connection */
	READING_UNREAD,	    /* nobody read the request */
	READING_BUSY,	    /* nobody read the request: the service did something else */
	READING_UNSENT,	    /* the service had answered; its socket held the answer */
};

struct reading {
	enum reading_kind kind;
	struct bs_blame blame; /* what the time in the silence was; buffer NONE: it stays compute */
	struct interval silence;
	struct interval
		backlog;     /* after it, where the wait is for the backlog to drain; else empty */
	uint64_t culprit_id; /* BEHIND: the RPC that was served; 0 = not known */
	uint16_t detail;     /* of a hang */
	bool hang_possible;  /* BEHIND, BUSY: it, or the one in front, may have hung instead */
};

/* An RPC as the service sees it. */
struct waiting {
	uint64_t id;
	uint64_t connection;
	uint64_t t_given; /* its request had left to the service */
	uint64_t t_first; /* first byte of its answer; 0 = none */
	uint64_t t_gone;  /* when it stopped waiting: t_first, or given up; UINT64_MAX = waits */
	uint32_t pending; /* others open at the service when it was given */
	bool connects;	  /* first of a connection that was seen to be made */
};

struct services;

struct services *services_create(bool offline); /* NULL with errno ENOMEM */
void services_destroy(struct services *services);

/* Silences shorter than hang_ns say nothing, from now on. */
void services_detect(struct services *services, uint64_t hang_ns);

/*
 * Learns concurrency; a silence that this answer falls into ends there. An RPC
 * fed again replaces what was known of it. service < DIAG_SERVICES. True if it
 * changes what an earlier silence means to others.
 */
bool services_feed(struct services *services, unsigned service, const struct waiting *waiting,
	uint64_t service_p50_ns);

/* An RPC without a connection to tell: given at the earliest and answered at the latest then. */
void services_feed_brief(
	struct services *services, unsigned service, uint64_t t_given, uint64_t t_answered);

/* False for a record that makes no sense. */
bool services_silence(struct services *services, const struct bs_rec_silence *record);
bool services_probe(struct services *services, const struct bs_rec_probe *record);

bool services_concurrent(const struct services *services, unsigned service);

/*
 * What the wait of an RPC in `spans` (its time with the service, instants) was,
 * where excess_ns of it is more than normal. A silence explains it if it covers
 * at least half of the excess. p99_ns: of the time RPCs are with the service;
 * now: the end of a silence that goes on.
 */
struct reading services_read(const struct services *services, unsigned service,
	const struct waiting *waiting, const struct interval *spans, unsigned span_count,
	uint64_t excess_ns, uint64_t p99_ns, uint64_t now);
