/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records: what the parts of BufScope tell each other. The tracker writes them,
 * rings, sockets and journals carry them, the diagnosis reads them, in live use
 * and in replay alike. A record is 1 to 8 units of 64 bytes, host byte order
 * (HELLO says which), natural alignment, no pointers.
 *
 * An RPC travels as one group: bs_rec_rpc, its segments, its events, without a
 * gap, so that a group is lost whole or not at all.
 *
 * Instants are ns since the Unix epoch, 0 = not known. Durations are ns.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bs_vocab.h"

#define BS_UNIT_BYTES 64u
#define BS_RECORD_MAX_UNITS 8u
#define BS_BATCH_MAX_BYTES 32768u
#define BS_RECORD_VERSION 2u

/* Bounds of one RPC group. */
#define BS_RPC_MAX_SEGMENTS 32u
#define BS_RPC_MAX_EVENTS 8u
#define BS_LABEL_BYTES 96u
#define BS_NAME_BYTES 48u
#define BS_MAX_SERVICES 256u /* service numbers are 0 to this one, which is "other" */
#define BS_MAX_PROTOCOLS 256u
#define BS_EVENT_CULPRITS 3u

enum bs_record_type {
	BS_REC_HELLO = 1,
	BS_REC_NAME,
	BS_REC_SERVICE,
	BS_REC_BUFFER,
	BS_REC_RPC,
	BS_REC_SEGMENT,
	BS_REC_EVENT,
	BS_REC_BRIEF,
	BS_REC_SILENCE,
	BS_REC_PROBE,
	BS_REC_LOSS,
	BS_REC_THRESHOLD, /* analyzer to dataplane */
	BS_REC_VERDICT,	  /* analyzer to dataplane, followed by the RPC's group */
	BS_REC_INCIDENT,  /* analyzer to dataplane */
	BS_REC_JOURNAL,	  /* analyzer to dataplane */
	BS_REC_TYPE_COUNT
};

struct bs_record {
	uint8_t type;
	uint8_t units;
	uint16_t source; /* lcore, or 0 */
	uint32_t sequence;
};

/* First record of a stream or file. */
struct bs_rec_hello {
	struct bs_record head;
	uint32_t magic;	  /* BS_HELLO_MAGIC in the writer's byte order */
	uint16_t version; /* BS_RECORD_VERSION */
	uint16_t node;
	uint64_t t_start;
	uint64_t pid;
	uint64_t detect_ns[6]; /* by bs_cause, shortest stretch that is an event; DROP: 0 */
	uint8_t reserved[48];
};
#define BS_HELLO_MAGIC 0xB5C09E12u

/*
 * A HELLO is followed by all names that are known; another one, after a reload,
 * by all of them again. OPERATION: the SLO of those operations of service
 * `number` whose label begins with `name`.
 */
enum bs_name_kind { BS_NAME_BUFFER = 1, BS_NAME_SERVICE, BS_NAME_PROTOCOL, BS_NAME_OPERATION };

/* What buffers have: section 2.1 of the design. */
#define BS_BUFFER_LOSSY 0x01u
#define BS_BUFFER_CLASSES 0x02u
#define BS_BUFFER_ORDERED 0x04u
#define BS_BUFFER_POLLED 0x08u

/* Binds a number to a name. For a service also its SLO and address. */
struct bs_rec_name {
	struct bs_record head;
	uint16_t kind; /* enum bs_name_kind */
	uint16_t number;
	uint8_t properties; /* buffers: BS_BUFFER_* */
	uint8_t protocol;   /* services */
	uint16_t port;
	uint64_t slo_ns; /* services, operations: 0 = none */
	uint8_t address[16];
	char name[BS_NAME_BYTES]; /* NUL-terminated */
	uint32_t capacity;
	uint8_t reserved[36];
};

/* Counters of a service since start, on one lcore. Exact also when RPC records are thinned. */
struct bs_rec_service {
	struct bs_record head;
	uint64_t t;
	uint16_t service;
	uint8_t reserved[6];
	uint64_t rpcs, answered, unanswered, oneway, orphan_responses, pushed, cut, reset_;
	uint64_t in_progress; /* now */
	uint64_t request_bytes, response_bytes;
	uint8_t pad[16];
};

/* What is known of a buffer since start. */
struct bs_rec_buffer {
	struct bs_record head;
	uint64_t t;
	uint16_t buffer;
	uint16_t reserved;
	uint32_t occupancy, occupancy_max;
	uint32_t pad[3];
	uint64_t packets, dropped, wait_ns_sum;
};

/* Two ends of a flow; IPv4 addresses are mapped (::ffff:a.b.c.d). */
struct bs_ends {
	uint8_t client[16];
	uint8_t server[16];
	uint16_t client_port; /* host byte order */
	uint16_t server_port;
	uint16_t vlan[2];   /* outer, inner; 0 = none */
	uint8_t transport;  /* 6 or 17 */
	uint8_t ip_version; /* 4 or 6 */
	uint8_t reserved[6];
};

#define BS_RPC_PROTOCOL_GUESSED 0x0001u
#define BS_RPC_ROLE_GUESSED 0x0002u
#define BS_RPC_SEGMENTS_MERGED 0x0004u
#define BS_RPC_SAMPLED 0x0008u
#define BS_RPC_RESPONSE_EARLY 0x0010u /* answer began before the request was complete */
#define BS_RPC_HAS_STATUS 0x0020u
#define BS_RPC_TAGGED 0x0040u

struct bs_rec_rpc {
	struct bs_record head;
	uint64_t id;	     /* node(16) counter(48) */
	uint64_t blocker_id; /* earlier RPC of the connection that was open when this one came; 0 =
				none */
	struct bs_ends ends;
	uint64_t t_request_first, t_request_last, t_request_departure;
	uint64_t t_response_first, t_response_last, t_response_departure;
	uint64_t t_response_first_copy; /* when its last byte first came, if a later copy counted */
	uint64_t t_end;	     /* when the record was made: ACKed, given up, or asked for */
	uint64_t connect_ns; /* SYN to SYN-ACK, first RPC of a connection; 0 = not seen */
	uint64_t max_gap_ns;
	uint64_t request_bytes, response_bytes;
	uint8_t trace_id[16];
	uint8_t parent_span_id[8];
	uint64_t t_earlier_finish; /* when the blocker was answered; 0 = no blocker */
	uint32_t messages;
	uint32_t stream;
	int32_t status;
	uint32_t operation_hash; /* of the operation template, lib/rpc */
	uint32_t pending;	 /* RPCs open at the service when this one was given to it */
	uint16_t retransmissions, duplicates, capture_gaps, reordered;
	uint16_t interim_responses;
	uint16_t segment_count, event_count;
	uint16_t service;
	uint16_t flags;
	uint8_t protocol, kind, outcome, class_;
	uint8_t label_len;
	uint8_t pad[7];
	char label[BS_LABEL_BYTES]; /* not NUL-terminated */
	uint8_t reserved[38];
};

struct bs_rec_segment {
	struct bs_record head;
	uint64_t rpc_id;
	uint64_t begin_ns, end_ns; /* from t_request_first */
	uint64_t packet; /* number of the frame in the capture that released progress; 0 = live */
	uint64_t culprit_id;
	uint32_t uncertainty_ns;
	uint16_t buffer;
	uint16_t detail;
	uint8_t cause;
	uint8_t quality;
	uint8_t culprit_kind;
	uint8_t pad[5];
};

struct bs_culprit_share {
	uint64_t id;
	uint64_t bytes;
	uint64_t ns;
};

/*
 * Something a buffer did: to an RPC (rpc_id set, inside its group), or to
 * everyone (rpc_id 0): an episode of a buffer, on its own.
 */
struct bs_rec_event {
	struct bs_record head;
	uint64_t rpc_id;
	uint64_t t_begin, t_end; /* t_end 0: still going on */
	uint64_t blocking_ns;
	uint32_t count;
	uint16_t buffer;
	uint16_t detail;
	uint8_t type; /* enum bs_cause, DROP to HANG */
	uint8_t quality;
	uint8_t culprit_count;
	uint8_t culprit_kind[BS_EVENT_CULPRITS];
	uint16_t upstream; /* PAUSE: the buffer that blocked; HANG: the drainer's own; else NONE */
	struct bs_culprit_share culprits[BS_EVENT_CULPRITS];
};

/* An RPC without anything to tell, in one unit: feeds the normal values. */
struct bs_rec_brief {
	struct bs_record head;
	uint64_t t_end;
	uint32_t operation_hash;
	uint16_t service;
	uint8_t class_;
	uint8_t protocol;
	uint32_t request_bytes, response_bytes; /* saturating */
	uint32_t request_ns;			/* first to last byte of the request */
	uint32_t in_ns;				/* in our buffers, request */
	uint32_t service_ns;			/* departure to first byte of the response */
	uint32_t response_ns;			/* first to last byte of the response */
	uint32_t out_ns; /* in our buffers, response; latency is the sum of the five */
	uint8_t outcome;
	uint8_t pad[3];
	uint8_t reserved[8];
};

/* No byte came from a service although RPCs were open, on one lcore. */
struct bs_rec_silence {
	struct bs_record head;
	uint64_t t_begin, t_end; /* t_end 0: still silent */
	uint64_t mover_id;	 /* the RPC whose answer ended it */
	uint32_t pending;	 /* RPCs open at its end */
	uint16_t service;
	uint8_t reserved[26];
};

enum bs_probe_state {
	BS_PROBE_STOPPED = 1, /* every thread stopped or traced, or its cgroup frozen */
	BS_PROBE_STARVED,     /* runnable, but given no CPU */
	BS_PROBE_RUNNING,     /* on a CPU: it computes */
	BS_PROBE_ASLEEP,      /* waits for something we do not see */
	BS_PROBE_THROTTLED,   /* its cgroup had used up its CPU quota */
	BS_PROBE_UNKNOWN,     /* its threads cannot be seen */
	BS_PROBE_STATE_COUNT
};

/*
 * What the kernel says of a service's threads and sockets during a silence.
 * Bytes are the most of any connection, accept_* are of the listening socket;
 * both at the last look. `unread`, `unaccepted` and `unsent` are connections of
 * which that was so at every look; none of them exceeds `connections`, in which
 * those count, too, that were not looked at.
 */
struct bs_rec_probe {
	struct bs_record head;
	uint64_t t_begin, t_end;
	uint64_t cpu_ns;       /* used in the interval, all threads */
	uint64_t throttled_ns; /* of the interval, for want of CPU quota */
	uint32_t recv_q;       /* bytes that the service has not read */
	uint32_t send_q;       /* bytes that it has written and its peer has not ACKed */
	uint16_t threads;      /* saturating, as all that follow */
	uint16_t service;
	uint16_t accept_q;   /* connections that the service has not accepted */
	uint16_t accept_max; /* its backlog; 0 = not known */
	uint8_t state;	     /* enum bs_probe_state */
	uint8_t connections; /* with RPCs open; 0 = sockets were not looked at */
	uint8_t unread, unaccepted, unsent;
	uint8_t reserved[3];
};

/* Records left out since the last LOSS, by why. */
struct bs_rec_loss {
	struct bs_record head;
	uint64_t t;
	uint64_t ring_full;   /* the lcore's ring had no room */
	uint64_t over_budget; /* the rate bound left them out */
	uint64_t socket_full; /* the analyzer did not take them */
	uint64_t no_memory;   /* RPC or segment pools were empty */
	uint8_t reserved[16];
};

/* From the analyzer: RPCs of this service that took at least this long are sent in full. */
struct bs_rec_threshold {
	struct bs_record head;
	uint64_t latency_ns;
	uint16_t service;
	uint8_t reserved[46];
};

#define BS_BY_SLO 0x1u
#define BS_BY_EVIDENCE 0x2u
#define BS_BY_OUTLIER 0x4u

struct bs_blame {
	uint16_t buffer;
	uint8_t cause;
	uint8_t pad;
};

#define BS_VERDICT_ALTERNATIVES 4u
#define BS_VERDICT_VIA 6u
#define BS_VERDICT_EVIDENCE 4u

struct bs_rec_verdict {
	struct bs_record head;
	uint64_t rpc_id;
	uint64_t t;	      /* when decided */
	uint64_t incident_id; /* 0 = none; a lone victim's leads to no INCIDENT */
	uint64_t excess_ns, normal_ns;
	uint32_t share_ppm; /* excess as a share of the latency */
	uint32_t confidence_ppm;
	uint16_t detail;
	uint8_t anomalous_by; /* BS_BY_*, 0: not anomalous */
	uint8_t baseline_warm;
	uint8_t chronic;
	uint8_t has_root;
	uint8_t alternative_count, via_count;
	struct bs_blame root;
	struct bs_blame alternatives[BS_VERDICT_ALTERNATIVES];
	struct bs_blame via[BS_VERDICT_VIA]; /* from the symptom to the origin */
	uint32_t pad;
	uint64_t evidence[BS_VERDICT_EVIDENCE]; /* packet numbers, 0 = unused */
	uint8_t revision;
	uint8_t evidence_count;
	uint8_t reserved[46];
};

#define BS_INCIDENT_SERVICES 4u
#define BS_INCIDENT_WORST 8u

struct bs_rec_incident {
	struct bs_record head;
	uint64_t id;
	uint64_t t_begin, t_end;
	uint64_t victims;
	struct bs_blame origin;
	uint16_t detail;
	uint8_t open;
	uint8_t culprit_count;
	uint8_t culprit_kind[BS_EVENT_CULPRITS];
	uint8_t service_count, worst_count;
	uint8_t pad[3];
	struct {
		uint16_t service;
		uint16_t pad;
		uint32_t victims;
	} by_service[BS_INCIDENT_SERVICES];
	uint64_t worst[BS_INCIDENT_WORST];
	struct bs_culprit_share culprits[BS_EVENT_CULPRITS];
	uint8_t reserved[32];
};

/* How the analyzer's writing of the journal goes, since the analyzer was started. */
struct bs_rec_journal {
	struct bs_record head;
	uint64_t t;
	uint64_t file;		/* number of the file that is written; 0: none yet */
	uint64_t blocks, bytes; /* written, headers included */
	uint64_t records;	/* written; an RPC or VERDICT with its group is one */
	uint64_t lost_records, lost_bytes;
	uint64_t errors;     /* calls that failed */
	uint32_t error;	     /* errno of the newest; 0: the last write went well */
	uint32_t slot;	     /* which of the files, from 0 */
	uint32_t last_error; /* errno of the newest failure; 0: there was none */
	uint8_t reserved[44];
};

#define BS_UNITS_OF(type) ((unsigned)(sizeof(type) / BS_UNIT_BYTES))
#define BS_RPC_GROUP_MAX_UNITS                                                                     \
	(BS_UNITS_OF(struct bs_rec_rpc) +                                                          \
		BS_RPC_MAX_SEGMENTS * BS_UNITS_OF(struct bs_rec_segment) +                         \
		BS_RPC_MAX_EVENTS * BS_UNITS_OF(struct bs_rec_event))

/* Fills the head of a record of the given type; sequence is the stream's business. */
void bs_record_head(struct bs_record *head, enum bs_record_type type, unsigned source);

/* Units that records of this type have; 0 for an unknown type. */
unsigned bs_record_units(unsigned type);

/*
 * The next record of a batch that may be hostile. *offset is moved past it.
 * A record is returned only if its type, units, and every enum, count and text
 * in it are in range: readers need no further checks. Of an RPC's instants,
 * those that are known follow each other: request first <= all others <= t_end;
 * request last <= request departure; response first <= last <= departure;
 * response first copy <= response last.
 * NULL at the end with *error 0; NULL with *error = -EBADMSG, and *offset at
 * the bad record, if it is not a record.
 * data must be 8-byte aligned; the record points into it.
 */
const struct bs_record *bs_record_next(const void *data, size_t bytes, size_t *offset, int *error);

/*
 * What a record says about the present of its writer: when it was made, 0 if it
 * does not say. HELLO does not: it tells when bufscoped was started. The record
 * is valid.
 */
uint64_t bs_record_instant(const struct bs_record *record);

/* An RPC with all that belongs to it, pointing into a group of records. */
struct bs_rpc_view {
	const struct bs_rec_rpc *rpc;
	const struct bs_rec_segment *segments; /* rpc->segment_count */
	const struct bs_rec_event *events;     /* rpc->event_count */
};

/*
 * The group whose RPC record is at `data` (8-byte aligned), which holds `bytes`
 * bytes and may be hostile: all of the group is validated as bs_record_next does.
 * 0, or -EBADMSG if it is not an RPC, or segments or events are missing, bad or
 * another RPC's. Returns the bytes of the whole group in *group_bytes.
 */
int bs_rpc_view(const void *data, size_t bytes, struct bs_rpc_view *view, size_t *group_bytes);

/* latency_ns of interfaces.md; 0 and false when the RPC was not answered. */
bool bs_rpc_latency_ns(const struct bs_rec_rpc *rpc, uint64_t *latency_ns);

/*
 * What the segments add up to: the latency, or the age at t_end of an RPC that
 * has none, counted from the first byte seen of it (response, if no request).
 */
uint64_t bs_rpc_extent_ns(const struct bs_rec_rpc *rpc);

/*
 * Checks that the segments tile [0, extent]: first begins at 0, each begins
 * where the one before ended, the last ends at the extent, and all are in range.
 * 0, or -EINVAL; *bad is then the index of the first that does not fit.
 */
int bs_rpc_check_tiling(const struct bs_rpc_view *view, unsigned *bad);

/* Where records go. put() takes all units or none: 0, or -ENOBUFS. */
struct bs_sink {
	int (*put)(void *context, const void *units, unsigned count);
	void *context;
};
