/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tracker follows flows and RPCs: sequence numbers, messages, pairs, the
 * instants of each RPC and the evidence of what held it up. It is fed parsed
 * packets in order of time, live (one tracker per lcore, fed by the owner of the
 * flow) and in replay (one), and puts records into a sink when RPCs end.
 *
 * It never holds a packet, and copies payload only behind a hole in the stream.
 * Memory is allocated at create and bounded; what does not fit is counted.
 * One thread per tracker, unless a function says otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bs_framer.h"
#include "bs_histo.h"
#include "bs_packet.h"
#include "bs_record.h"
#include "bs_shim.h"
#include "bs_tagging.h"

/* Service number of traffic that belongs to no listed service. */
#define BS_SERVICE_OTHER BS_MAX_SERVICES

struct bs_tracker_service {
	uint8_t address[16];
	uint16_t port;
	const struct bs_framer *framer; /* NULL: found by content */
	uint8_t class_;			/* of its requests; goes into records */
};

struct bs_tracker_config {
	unsigned max_flows, max_rpcs; /* rounded up to powers of two */
	size_t frame_bytes;	      /* for framers that need more; rounded up likewise */
	const struct bs_framers *framers;
	/* Given services, numbered by index. Not copied. */
	const struct bs_tracker_service *services;
	unsigned service_count;
	/* Port to protocol, for flows of no given service (replay: --port). */
	struct {
		uint16_t port;
		const struct bs_framer *framer;
	} ports[16];
	unsigned port_count;
	/* Replay: every server end becomes a service, announced by a NAME record, and flows of all
	 * ends are followed. */
	bool discover;
	/* Live: departures are told; else a packet departs when it arrives. */
	bool own_buffers;
	uint16_t node, source;
	uint64_t detect_ns[6]; /* by enum bs_cause, DROP to HANG */
	uint32_t sample;       /* one RPC in so many in full; 0 = none */
	uint64_t idle_ns;      /* a flow without a packet for this long is forgotten */
	bool check; /* assert the tiling of every RPC, also of those sent brief (tests) */
	struct bs_sink sink;
};

/* Counts of one tracker since create. Single writer; others may read each field racily. */
#define BS_TRACK_COUNTERS(X)                                                                       \
	X(FLOWS_CREATED, "flows_created", "flows seen first")                                      \
	X(FLOWS_EXPIRED, "flows_expired", "flows forgotten after idling")                          \
	X(FLOWS_EVICTED, "flows_evicted",                                                          \
		"idlest flows with nothing open forgotten because the table was full")             \
	X(FLOWS_EVICTED_OPEN, "flows_evicted_open",                                                \
		"flows with RPCs open, idle for 10 s, forgotten because the table was full")       \
	X(FLOWS_REFUSED, "flows_refused", "packets not followed: flow table full of flows in use") \
	X(RPCS, "rpcs", "RPCs begun")                                                              \
	X(RPCS_EVICTED, "rpcs_evicted",                                                            \
		"RPCs put out before they were over, after a silence, because the table was full") \
	X(RPCS_REFUSED, "rpcs_refused", "RPCs not followed: RPC table full of younger ones")       \
	X(MARKS_LOST, "marks_lost", "evidence not kept: mark pool empty")                          \
	X(RECORDS, "records", "records put into the sink")                                         \
	X(RECORDS_LOST, "records_lost", "record groups the sink had no room for")                  \
	X(RETRANSMISSIONS, "retransmissions", "data sent again, not a duplicate in the capture")   \
	X(SPURIOUS, "spurious_retransmissions", "data sent again that had arrived")                \
	X(DUPLICATES, "duplicates", "the same packet seen twice")                                  \
	X(OUT_OF_ORDER, "out_of_order", "data that filled a hole late but was not sent again")     \
	X(KEEPALIVES, "keepalives", "TCP keep-alive probes")                                       \
	X(ZERO_WINDOW, "zero_windows", "times a receiver's window had no room for a segment")      \
	X(CAPTURE_GAPS, "capture_gaps", "stretches of bytes ACKed but never seen")                 \
	X(BYTES_UNPARSED, "bytes_unparsed", "payload bytes that no framer could read")             \
	X(RESYNCS, "resyncs", "times a stream that made no sense was picked up again")             \
	X(REASSEMBLY_FULL, "reassembly_full", "bytes behind a hole not kept: no buffer")           \
	X(FRAME_MEMORY_FULL, "frame_memory_full",                                                  \
		"times a framer had no memory for what it keeps of a connection")                  \
	X(ORPHANS, "orphans", "responses without a request")

#define BS_X_TRACK(name, key, help) BS_TRACK_##name,
enum bs_track_counter { BS_TRACK_COUNTERS(BS_X_TRACK) BS_TRACK_COUNT };

const char *bs_track_counter_key(unsigned counter);

struct bs_tracker;

/* NULL with errno ENOMEM or EINVAL. Control thread. */
struct bs_tracker *bs_tracker_create(const struct bs_tracker_config *config);
void bs_tracker_destroy(struct bs_tracker *tracker); /* NULL is fine */

/* Bytes of the tables of a tracker with so many flows and RPCs, and for framers; nothing else in it
 * is larger. */
size_t bs_tracker_bytes(unsigned max_flows, unsigned max_rpcs, size_t frame_bytes);

/* What is known of a packet's arrival: it was there at t_poll but not yet at t_low. */
struct bs_arrival {
	uint64_t t_low, t_poll;
	uint64_t t_stamp; /* by a device's clock, calibrated, between them; 0 = none */
	/* RPC-ID it brought, from a port that is trusted or in a capture; 0 = none. A request's is
	 * its own then; a response's too, unless own_buffers: that has told others another. */
	uint64_t shim_id;
	uint32_t stamp_uncertainty_ns;
	bool exact; /* t_low is the arrival */
};

/* Names the messages that a packet completed, until its flow is forgotten. */
struct bs_track_handle {
	uint32_t flow;
	uint32_t seq_begin, seq_end; /* of the bytes up to which it brought the stream */
	uint32_t generation;
	uint8_t direction; /* 0: to the service, 1: from it */
	uint8_t valid;
	uint8_t pad[2];
};

/* What the tracker made of a packet. */
struct bs_tracked {
	struct bs_track_handle
		handle;	     /* valid only if a message ended in it, or it was sent again */
	uint16_t service;    /* or BS_SERVICE_OTHER */
	uint8_t direction;   /* 0: to the service, 1: from it */
	uint8_t followed;    /* it belongs to a flow in the table */
	uint8_t new_data;    /* every payload byte is seen for the first time, in order */
	uint8_t more;	     /* further messages begin in it */
	uint8_t resend;	     /* all its bytes were sent before */
	uint8_t gap;	     /* bytes between the last seen so far and its own have not come */
	uint8_t lost_before; /* a resend of bytes of which no copy had come */
	uint64_t rpc_id;     /* of its first message byte; 0 = none known */
	uint32_t rpc;	     /* its slot, for bs_tracker_tagged */
	uint32_t remaining;  /* of that message, from its first payload byte;
				BS_SHIM_REMAINING_UNKNOWN */
	uint64_t t_arrival;  /* exact or estimated, between t_low and t_poll */
	uint32_t uncertainty_ns;
	uint8_t quality;	    /* enum bs_quality of t_arrival */
	struct bs_tagging *tagging; /* of its flow; NULL if not followed */
};

/*
 * Takes a packet with parse == BS_PARSE_OK. `more_payload` are the pieces of
 * payload behind packet->payload_cap (segments of an mbuf chain), piece_count
 * of them, summing with payload_cap to at most payload_len.
 */
struct bs_piece {
	const uint8_t *data;
	uint32_t bytes;
};
void bs_tracker_packet(struct bs_tracker *tracker, const struct bs_packet *packet,
	const struct bs_arrival *arrival, const struct bs_piece *more_payload, unsigned piece_count,
	struct bs_tracked *tracked);

/*
 * Start loading what bs_tracker_packet() of a packet with this hash will need:
 * first where its flow is found, and some packets later, when that has come, the
 * flow itself.
 */
void bs_tracker_prefetch(const struct bs_tracker *tracker, uint32_t hash);
void bs_tracker_prefetch_flow(const struct bs_tracker *tracker, uint32_t hash);

/* One stay in one of our buffers of the packet that completed messages; parts sum to t_out - t_in.
 */
struct bs_stay {
	uint64_t t_in, t_out;
	uint64_t congestion, contention, pause, stalled, preempted, sleep, unobserved; /* ns */
	uint32_t uncertainty_ns;
	uint16_t buffer;
	uint8_t quality;
	uint8_t culprit_kind;
	uint64_t culprit_id;
};

/* The tagging state of a flow; NULL if it is not followed. For ICMP errors that quote it. */
struct bs_tagging *bs_tracker_tagging(struct bs_tracker *tracker, const struct bs_tuple *tuple);

/* Live: the packet goes out with a shim that names its RPC. */
void bs_tracker_tagged(struct bs_tracker *tracker, const struct bs_tracked *tracked);

/* Live: the packet of `handle` stayed in a buffer. Call in order of the buffers. */
void bs_tracker_stay(struct bs_tracker *tracker, const struct bs_track_handle *handle,
	const struct bs_stay *stay);

/* Live: it has left, at t_ns, with all its stays told. */
void bs_tracker_departed(
	struct bs_tracker *tracker, const struct bs_track_handle *handle, uint64_t t_ns);

/*
 * Live: a packet of this flow (any with payload) was dropped by our buffer at t_ns: one that
 * bs_tracker_packet() was given, or (handed over between lcores) one that never came so far. Of the
 * packet only tuple, hash, direction, seq and payload_len are read.
 */
void bs_tracker_dropped(struct bs_tracker *tracker, const struct bs_packet *packet, uint16_t buffer,
	unsigned reason, uint64_t t_ns);

/* Housekeeping: forgets idle flows, a bounded number a call. Time has come to t_ns. */
void bs_tracker_advance(struct bs_tracker *tracker, uint64_t t_ns);

/* Ends everything: open RPCs are put as in_progress or unanswered with their age. */
void bs_tracker_finish(struct bs_tracker *tracker, uint64_t t_ns);

/*
 * RPCs of this service that take less than this, with nothing to see, are told
 * in one unit (BRIEF). 0, the initial value: all in full. Any thread.
 */
void bs_tracker_threshold(struct bs_tracker *tracker, unsigned service, uint64_t latency_ns);

/* Takes over other thresholds and sampling. Any thread; each value by itself. */
void bs_tracker_reload(struct bs_tracker *tracker, const uint64_t detect_ns[6], uint32_t sample);

/* Counters; may be read by another thread, each field by itself. */
const uint64_t *bs_tracker_counters(const struct bs_tracker *tracker);
/* services is [BS_MAX_SERVICES]. A service's counters (t 0); any thread, racily. */
void bs_tracker_service_counters(
	const struct bs_tracker *tracker, unsigned service, struct bs_rec_service *out);

/*
 * Durations of a service's answered RPCs since create: latency, and request departure
 * to first byte of the response. Any thread, racily: a copy may be one RPC off.
 */
enum bs_tracker_histo { BS_TRACKER_LATENCY, BS_TRACKER_SERVICE, BS_TRACKER_HISTO_COUNT };
const struct bs_histo *bs_tracker_histo(
	const struct bs_tracker *tracker, unsigned service, enum bs_tracker_histo which);

/* Is a service silent? RPCs open at it, and when it last gave a byte. Any thread, racily. */
struct bs_tracker_silence {
	uint32_t pending;
	uint64_t t_since; /* later of the last byte and the first open RPC */
};
void bs_tracker_silence(
	const struct bs_tracker *tracker, unsigned service, struct bs_tracker_silence *out);

/* Connections told by bs_tracker_waiting: those that wait since latest. */
#define BS_TRACKER_WAITING 8u

/* Connections on which the service has RPCs that it has not begun to answer. */
struct bs_tracker_waiting {
	uint32_t flows; /* all of them */
	unsigned count; /* told in ends */
	struct bs_ends ends[BS_TRACKER_WAITING];
};

/*
 * Who waits for a service. Any thread, racily: what changes meanwhile may be told
 * as it was or as it is, or be left out.
 */
void bs_tracker_waiting(
	const struct bs_tracker *tracker, unsigned service, struct bs_tracker_waiting *out);

unsigned bs_tracker_flows(const struct bs_tracker *tracker);
unsigned bs_tracker_open_rpcs(const struct bs_tracker *tracker);
