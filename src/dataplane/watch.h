/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watch over ports and mbuf pool. Losses, backpressure and stalls of a
 * device look alike from an RPC; once a second this compares what the device
 * counts with what we saw of its packets, and says which it was. What it finds
 * is counted for `bufscope status`, and told to the diagnosis as episodes.
 *
 * It sees ports through functions, so that a test can feed it. Needs no DPDK.
 * One thread, unless a function says otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bs_record.h"

#define BS_WATCH_QUEUES 16u
#define BS_WATCH_NAME_BYTES 64u

/* What is found at a port. Text: key, what happened so many times, what to do about it. */
#define BS_FINDINGS(X)                                                                             \
	X(MISSED, "missed", "packets lost: its receive ring was full (imissed)",                   \
		"the lcore that polls it did not keep up: give it a CPU of its own, or spread "    \
		"the flows over more (eal.lcores)")                                                \
	X(NO_MBUF, "no_mbuf", "packets lost: no mbuf was free (rx_nombuf)",                        \
		"raise eal.memory (the pool should hold twice what all rings hold), or see who "   \
		"holds the mbufs")                                                                 \
	X(ERRORS, "errors", "packets lost: receive errors of the device (ierrors)",                \
		"look at cable and transceiver, and at the MTU of its peer")                       \
	X(UNMATCHED, "unmatched", "of these were missed by no flow (low confidence)",              \
		"some drivers count what they deliver: compare with the peer's counters; no RPC "  \
		"is charged with them")                                                            \
	X(LOST_BEFORE, "lost_before",                                                              \
		"packets of flows were lost before us while its counters stood still",             \
		"look at the network and the sender, then at what the device does not count")      \
	X(PAUSE_RECEIVED, "pause_received", "pause frames received: its peer throttles us",        \
		"look at the switch or host behind it")                                            \
	X(PAUSE_SENT, "pause_sent", "pause frames sent: we receive too slowly",                    \
		"give the lcore that polls it a CPU of its own, and the pool more mbufs")          \
	X(TX_STUCK, "tx_stuck", "times it took no packet, link and lcore being alive",             \
		"its driver does not reclaim what it has sent: restart the port; see the peer's "  \
		"ring, if it is a virtual one")                                                    \
	X(RX_SILENT, "rx_silent", "times packets waited that it did not give us",                  \
		"its driver has no mbufs in the ring, or was not woken: restart the port; raise "  \
		"eal.memory")

#define BS_X_FINDING(name, key, what, remedy) BS_FINDING_##name,
enum bs_finding { BS_FINDINGS(BS_X_FINDING) BS_FINDING_COUNT };

/* "?" for a number outside the list. Any thread. */
const char *bs_finding_key(unsigned finding);
const char *bs_finding_text(unsigned finding);
const char *bs_finding_remedy(unsigned finding);

/* A port as it was started. */
struct bs_watch_port {
	char driver[32];
	uint16_t rx_buffer, tx_buffer; /* numbers in records */
	uint16_t before; /* the buffer in which losses before us seem to happen: net.*.before */
	bool missed_observable;
	bool by_queue; /* queue_missed is counted by the device, not put on queue 0 by its driver */
};

/* What is counted since the port was made. */
struct bs_watch_reading {
	/* by the device; what goes backwards was reset */
	uint64_t missed, no_mbuf, errors;
	uint64_t queue_missed[BS_WATCH_QUEUES];
	bool link_up;
	/* by us */
	uint64_t taken, given;
	uint64_t gaps;		     /* opened in flows that came by it */
	uint64_t lost_before;	     /* packets in gaps that were filled by a resend */
	uint64_t rx_turns, tx_turns; /* of the lcores that poll it, that send by it */
	bool refuses;		     /* there is a packet in hand that it does not take */
	bool waits;		     /* packets wait in it, as its descriptor says */
};

struct bs_watch_pool {
	uint32_t size, in_use;
	uint32_t queued;     /* of these: in our queues and rings */
	uint32_t top;	     /* most in one buffer of ours */
	uint16_t top_buffer; /* its number */
	uint8_t top_class;
};

struct bs_watch_ops {
	void (*port)(void *context, unsigned port, struct bs_watch_reading *reading);
	/* Names of its extended statistics, by id: how many there are. At most max are filled in.
	 */
	unsigned (*names)(
		void *context, unsigned port, char (*names)[BS_WATCH_NAME_BYTES], unsigned max);
	/* Their values. 0 or -errno. */
	int (*values)(void *context, unsigned port, const uint64_t *ids, uint64_t *values,
		unsigned count);
	void (*pool)(void *context, struct bs_watch_pool *pool);
	/* Takes an episode. */
	void (*tell)(void *context, const struct bs_rec_event *event);
	void *context;
};

/* What there is to show. Counts are since the watch began. */
struct bs_found {
	uint64_t count, t_first, t_last;
};

struct bs_watched_port {
	struct bs_found found[BS_FINDING_COUNT];
	bool pause_received_observable, pause_sent_observable;
	bool by_queue;
	uint64_t queue_missed[BS_WATCH_QUEUES];
};

struct bs_watched_pool {
	uint32_t size, in_use;
	/* Somebody holds what others need, since then; 0: nobody does. */
	uint64_t t_held;
	uint32_t held;	 /* mbufs beyond those in rings */
	uint16_t holder; /* a buffer; BS_BUFFER_NONE: not known */
	uint8_t holder_class;
	bool holder_queues;  /* it is a queue of ours, and has that class */
	uint16_t blocked_by; /* the port's tx buffer that takes nothing; BS_BUFFER_NONE: none */
};

struct bs_watch;

/*
 * Reads where all counters stand. ops and what they need must outlive it; ports are
 * copied. NULL with errno ENOMEM.
 */
struct bs_watch *bs_watch_create(const struct bs_watch_ops *ops, const struct bs_watch_port *ports,
	unsigned port_count, uint64_t t_ns);
void bs_watch_destroy(struct bs_watch *watch); /* NULL is fine */

/* Looks, about once a second. */
void bs_watch_step(struct bs_watch *watch, uint64_t t_ns);

/* Any thread, racily. */
void bs_watch_port(const struct bs_watch *watch, unsigned port, struct bs_watched_port *out);
void bs_watch_pool(const struct bs_watch *watch, struct bs_watched_pool *out);
