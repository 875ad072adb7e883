/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What bufscoped shows of itself: a copy of all counters at one instant, taken
 * by any control thread, turned into JSON or telemetry by others. The lcores
 * never see this.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bs_packet.h"
#include "bs_record.h"
#include "bs_tracker.h"
#include "config.h"
#include "tsc_clock.h"
#include "watch.h"

/* Room for the two queues of each service, and the two rings of each port. */
#define BS_SNAPSHOT_BUFFERS (BS_BUFFER_MAX - BS_BUFFER_FIRST_OWN)

/* Why packets left untagged, and what else befell the shim. Text: telemetry key, help. */
#define BS_TAG_COUNTERS(X)                                                                         \
	X(TAGGED, "tagged", "packets that left with a shim")                                       \
	X(UNTAGGED, "shim_removed", "packets whose shim was taken off")                            \
	X(BYTES, "shim_bytes", "bytes added by shims")                                             \
	X(ANNOUNCED, "announced", "SYN or SYN-ACK sent with an announcement")                      \
	X(NO_ROOM, "skip_no_room", "untagged: headers full, or what is there is of others")        \
	X(MTU, "skip_mtu", "untagged: the packet would exceed the MTU")                            \
	X(RESENT, "skip_resent", "untagged: bytes that were sent before")                          \
	X(NOT_NEGOTIATED, "skip_not_negotiated", "untagged: the other end did not announce")       \
	X(SIGNED, "skip_signed", "untagged: TCP-AO or TCP-MD5")                                    \
	X(GSO, "skip_gso", "untagged: larger than a segment")                                      \
	X(UNKNOWN_BOUNDARY, "skip_unknown_boundary", "untagged: out of order, message not known")  \
	X(SHARED, "skip_shared",                                                                   \
		"untagged: mbuf shared, indirect, in pieces, or without headroom")                 \
	X(NO_PAYLOAD, "skip_no_payload", "untagged: carries no message byte")                      \
	X(NO_RPC, "skip_no_rpc", "untagged: belongs to no RPC")                                    \
	X(NO_TUNNEL, "skip_no_tunnel", "untagged: carrier geneve, but in no Geneve tunnel")        \
	X(PATH_REFUSES, "path_refuses",                                                            \
		"flows on which tagging was given up: tagged bytes do not "                        \
		"arrive")                                                                          \
	X(MSS_CLAMPED, "mss_clamped", "SYNs whose MSS was lowered by the shim")                    \
	X(PTB_LOWERED, "icmp_mtu_lowered", "ICMP too-big messages lowered by the shim")            \
	X(CHECKSUM_COMPLETED, "checksum_completed", "partial checksums completed")                 \
	X(MALFORMED, "shim_malformed", "shims that did not parse; passed unchanged")               \
	X(UNTRUSTED, "shim_untrusted", "shims taken off whose RPC-ID was not adopted")

#define BS_X_TAG(name, key, help) BS_TAG_##name,
enum bs_tag_counter { BS_TAG_COUNTERS(BS_X_TAG) BS_TAG_COUNT };

/* Its key in JSON and telemetry; "?" for a number outside the list. Any thread. */
const char *bs_tag_counter_key(unsigned counter);

/* What was done to frames beside the shim, so that they leave as they were sent. */
#define BS_FRAME_COUNTERS(X)                                                                       \
	X(CHECKSUM_BY_PORT, "checksum_offloaded",                                                  \
		"partial checksums left to the port to complete")                                  \
	X(VLAN_RESTORED, "vlan_restored", "VLAN tags that hardware took out, put back")            \
	X(GATHERED, "headers_gathered", "headers in several segments, put into one")               \
	X(LINEARIZED, "linearized", "put into one segment for a driver that sends no chains")      \
	X(STAMPED, "stamped", "arrival taken from a stamp of the device")                          \
	X(STAMP_REJECTED, "stamp_rejected", "stamps not used: outside of when it can have come")

#define BS_X_FRAME(name, key, help) BS_FRAME_##name,
enum bs_frame_counter { BS_FRAME_COUNTERS(BS_X_FRAME) BS_FRAME_COUNT };

/* Likewise. */
const char *bs_frame_counter_key(unsigned counter);

/* Of struct bs_rec_journal: how the analyzer's journal goes since that was started. */
#define BS_JOURNAL_COUNTERS(X)                                                                     \
	X(blocks, "journal_blocks", "blocks of records written to the journal")                    \
	X(bytes, "journal_bytes", "bytes of them")                                                 \
	X(records, "journal_records",                                                              \
		"records and verdicts in them, an RPC with its group is one")                      \
	X(lost_records, "journal_lost_records",                                                    \
		"records and verdicts not written: the files took none, or not in time")           \
	X(lost_bytes, "journal_lost_bytes", "bytes of them")                                       \
	X(errors, "journal_errors", "calls to write, empty or sync a file that failed")

/* Between lcores, beside packets that ended there. Text: telemetry key, help. */
#define BS_HANDOVER_COUNTERS(X)                                                                    \
	X(HANDED_OVER, "handed_over", "packets handed over to the lcore that owns their flow")     \
	X(DEPARTURES_LOST, "departures_lost",                                                      \
		"departures that an owner did not hear of: its ring was full")                     \
	X(DROPS_UNTOLD, "drops_untold", "drops that an owner did not hear of: its ring was full")

#define BS_X_HANDOVER(name, key, help) BS_HANDOVER_##name,
enum bs_handover_counter { BS_HANDOVER_COUNTERS(BS_X_HANDOVER) BS_HANDOVER_COUNT };

/* Likewise. */
const char *bs_handover_counter_key(unsigned counter);

/* Packets that end for these reasons never reached us: they are not among those taken. */
static inline bool
bs_reason_before_us(unsigned reason)
{
	return reason == BS_REASON_RX_MISSED || reason == BS_REASON_RX_NO_MBUF ||
	       reason == BS_REASON_RX_ERROR;
}

struct bs_snapshot_port {
	char name[24];
	char device[64];
	char driver[32];
	bool link_up;
	int numa;
	uint16_t mtu;
	uint16_t queues;
	uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes;
	uint64_t rx_missed, rx_nombuf, rx_errors;
	bool rx_missed_observable; /* the PMD reports imissed */
	bool rss;		   /* it spreads flows over its queues */
	char rx_stamps[112];	   /* where they come from, and are they used */
	uint64_t rate_bps;
	/* Of the packets that we took from it: what became of them. */
	uint64_t taken, queued, ended;
	uint64_t given;	    /* packets that the port accepted from us */
	uint64_t forwarded; /* of those taken: accepted by the other end of the path */
	uint64_t reasons[BS_REASON_COUNT]; /* the first three: as the device counts */
	uint64_t handed_over;		/* of those taken: to another lcore, their flow's owner */
	int64_t unaccounted;		/* taken - forwarded - queued - ended */
	uint64_t gaps, lost_before;	/* in flows that came by it; see bs_tracked */
	struct bs_watched_port watched; /* set by the program, whose watch it is */
};

struct bs_snapshot_buffer {
	uint16_t id;
	char name[BS_NAME_BYTES];
	uint8_t properties; /* BS_BUFFER_LOSSY ... */
	char quality[16];   /* of its waits: exact estimated bound, or "not observable" */
	uint32_t capacity, occupancy, occupancy_max;
	uint64_t packets, dropped;
	uint64_t waits, wait_ns_sum, wait_ns_max; /* waits that were measured */
};

/* Quantiles of a duration, ns; count 0: nothing was measured. */
struct bs_snapshot_quantiles {
	uint64_t count;
	uint64_t min, p50, p90, p99, max;
};

struct bs_snapshot_service {
	uint64_t slo_ns; /* 0 = none */
	struct bs_snapshot_quantiles latency, service;
};

/* How a service is probed, or why it is not. */
#define BS_PROBE_HOWS(X)                                                                           \
	X(OFF, "off (services[].probe)")                                                           \
	X(PID_FILE, "by pid_file")                                                                 \
	X(SOCKET, "by socket")                                                                     \
	X(THREADS, "by socket (its queues may not be looked at: CAP_SYS_ADMIN)")                   \
	X(LOOKING, "looking for its process")                                                      \
	X(NO_PID, "pid_file names no process of this PID namespace")                               \
	X(ELSEWHERE, "no network namespace of this host has its address")                          \
	X(NO_LISTENER, "nothing listens at its address and port")                                  \
	X(AMBIGUOUS, "it listens in several network namespaces: give its pid_file")                \
	X(HIDDEN, "sockets only: its process is not of this PID namespace")                        \
	X(NO_LOOK, "not found among the processes that may be looked at (needs CAP_SYS_PTRACE, "   \
		   "CAP_DAC_READ_SEARCH)")                                                         \
	X(NO_ENTER, "not found in the network namespaces that may be entered (needs "              \
		    "CAP_SYS_ADMIN)")

#define BS_X_PROBE(name, text) BS_PROBE_##name,
enum bs_probe_how { BS_PROBE_HOWS(BS_X_PROBE) BS_PROBE_HOW_COUNT };

struct bs_snapshot_probe {
	enum bs_probe_how how;
	uint32_t pid, more; /* first process that listens, and how many more */
};

struct bs_snapshot_lcore {
	unsigned lcore, cpu;
	int numa;
	char role[12];			    /* pipeline collector main */
	uint8_t rx_queues[BS_CONFIG_PORTS]; /* of each port, that it polls */
	uint64_t heartbeat_age_ns;
	uint64_t polls, packets, bursts;
	uint64_t stalled_ns, preempted_ns, sleep_ns, pause_ns;
	uint64_t flows, rpcs_open, records, records_lost;
};

/* Of what the snapshot counts: what a user should hear of. */
enum bs_trouble {
	BS_TROUBLE_HANDOVER,	/* packets between lcores */
	BS_TROUBLE_UNTOLD,	/* departures and drops that an owner did not hear of */
	BS_TROUBLE_UNEVEN_TSC,	/* measurements */
	BS_TROUBLE_BAD_RECORDS, /* of the analyzer */
	BS_TROUBLE_REJECTED,	/* likewise */
	BS_TROUBLE_RING_FULL,	/* records */
	BS_TROUBLE_OVER_BUDGET, /* records */
	BS_TROUBLE_NO_ANALYZER, /* records */
	BS_TROUBLE_FLOWS,
	BS_TROUBLE_RPCS,
	BS_TROUBLE_MARKS,
	BS_TROUBLE_JOURNAL, /* records */
	BS_TROUBLE_COUNT
};

struct bs_snapshot {
	uint64_t t_ns, t_start_ns;
	uint32_t pid;
	bool hugepages;
	int memory_node;	   /* of the packets; below 0: any */
	struct bs_tsc_clock clock; /* set by the program, whose clock it is */
	unsigned port_count, buffer_count, lcore_count, service_count;
	struct bs_snapshot_port ports[BS_CONFIG_PORTS];
	struct bs_watched_pool pool; /* likewise */
	struct bs_snapshot_buffer buffers[BS_SNAPSHOT_BUFFERS];
	struct bs_snapshot_lcore lcores[BS_CONFIG_LCORES];
	/* By service number, summed over lcores; at BS_MAX_SERVICES: other. */
	struct bs_rec_service services[BS_MAX_SERVICES + 1];
	struct bs_snapshot_service latencies[BS_MAX_SERVICES + 1]; /* likewise */
	struct bs_snapshot_probe
		probes[BS_MAX_SERVICES];   /* set by the program, whose probe it is */
	uint64_t parse[BS_PARSE_COUNT];	   /* what the received packets were */
	uint64_t reasons[BS_REASON_COUNT]; /* where packets ended that did not leave */
	uint64_t tag[BS_TAG_COUNT];
	uint64_t frame[BS_FRAME_COUNT];
	uint64_t handover[BS_HANDOVER_COUNT];
	uint64_t track[BS_TRACK_COUNT];
	/* All ports; read while packets flow, unaccounted is what moved meanwhile. At rest it is 0.
	 */
	uint64_t rx_packets, tx_packets, queued, ended;
	int64_t unaccounted;	 /* rx_packets - tx_packets - queued - ended */
	struct bs_rec_loss loss; /* records lost since start */
	uint64_t records_sent, record_bytes;
	uint64_t collector_age_ns; /* since its last turn began */
	bool analyzer_connected;
	uint64_t analyzer_unread_ns; /* for how long it has taken no records; 0: it does */
	uint32_t analyzer_restarts;
	bool spawner_gone;		      /* nobody starts another analyzer */
	uint64_t analyzer_bad_records;	      /* verdicts that did not validate */
	uint64_t analyzer_rejected;	      /* verdicts about what cannot be */
	uint64_t t_trouble[BS_TROUBLE_COUNT]; /* when each last grew; set by the program, which
						 looks */
	struct bs_rec_journal journal;	      /* what the analyzer said last; t 0: nothing */
};
