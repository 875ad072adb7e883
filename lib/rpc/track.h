/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the tracker: its tables and what its files do for each other.
 *   tracker.c  create, the packet entry, counters
 *   flow.c     the flow table: find, make, forget
 *   stream.c   TCP: sequence numbers, holes, resends, windows, ACKs
 *   message.c  bytes in order to framers, messages to RPCs
 *   rpc.c      RPC slots, marks, stays
 *   emit.c     an RPC that has ended becomes records
 */
#pragma once

#include "bs_path.h"
#include "bs_tracker.h"

#define NONE UINT32_MAX
#define CHUNK_BYTES 1600u
#define CHUNKS_PER_DIRECTION 64u
#define GAP_PATIENCE 8u /* packets of a flow that an ACKed hole may still be filled by */
#define WHEEL_SLOTS 256u

#define TO_SERVICE 0u
#define FROM_SERVICE 1u

static inline bool
seq_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

/* One direction of a flow: what a packet in the middle of a message touches. */
struct direction {
	uint32_t next;       /* in order up to here */
	uint32_t high;       /* highest byte seen + 1 */
	uint32_t acked;      /* highest ACK from the other end */
	uint32_t window_end; /* acked + window: the right edge */
	uint64_t skip;       /* bytes of the body still to come, not looked at */
	uint64_t t_message;  /* arrival of the message's first byte */
	uint32_t message_begin;
	uint32_t rpc;        /* of the message in progress */
	uint64_t t_closed;   /* window has had no room since then; 0 = it has */
	uint16_t mss;        /* largest payload seen */
	uint8_t started : 1; /* next is valid */
	uint8_t in_message : 1;
	uint8_t skip_ends : 1; /* message ends with the skip */
	uint8_t until_close : 1;
	uint8_t resync : 1;    /* bytes make no sense until a message plausibly begins */
	uint8_t after_gap : 1; /* messages may be missing before the next one */
	uint8_t fin : 1;
	uint8_t wscale_known : 1;
	uint8_t wscale; /* of the windows this end advertises */
	uint8_t window_known; /* window_end is valid */
	uint8_t pad[11];
};
_Static_assert(sizeof(struct direction) == 64, "one cache line per direction");

struct flow {
	struct bs_tuple tuple;
	uint32_t hash;
	uint32_t bucket_next;
	uint32_t generation;
	uint16_t service;
	uint8_t client_end; /* which end of the tuple is the client */
	uint8_t state;      /* enum flow_state */
	struct direction dir[2]; /* TO_SERVICE, FROM_SERVICE */

	uint64_t t_last;
	const struct bs_framer *framer; /* NULL: not known yet */
	uint32_t rpc_first, rpc_last;   /* in order of request */
	uint32_t rpc_open;              /* first that is not answered */
	uint32_t depart_first[2];       /* first whose message has not departed */
	uint32_t wheel_prev, wheel_next;
	uint16_t wheel_slot;
	uint16_t gap_patience;          /* packets left before an ACKed hole is a gap; 0 = none */
	struct {                        /* behind a hole */
		uint32_t first, last;
		uint32_t count;
		uint32_t gap_end;       /* end of the last gap */
	} hole[2];
	struct {                        /* sender's clock, from its TCP timestamps */
		uint64_t t_first;
		uint32_t ts_first, ts_last;
		int64_t offset_min_ns;  /* of poll time - tsval * tick */
		uint32_t tick_ns;       /* 0: not learned */
		uint32_t samples;
	} stamp[2];
	uint16_t ip_id_last[2];
	uint64_t t_syn;
	uint64_t connect_ns;
	uint32_t stream;
	uint8_t protocol_guessed, role_guessed;
	uint8_t turn_answered;          /* opaque: the turn in progress has been answered */
	struct bs_tagging tagging;
	struct bs_frame_conn frame;
};

enum flow_state { FLOW_FREE, FLOW_OPEN, FLOW_CLOSED };

/* Stretch of payload behind a hole. */
struct chunk {
	uint32_t next;
	uint32_t seq;
	uint32_t bytes;
	uint32_t ack; /* of its packet */
	uint32_t tsval;
	uint16_t ip_id;
	uint16_t has_tsval;
	uint64_t t;
	uint64_t number;
	uint8_t data[CHUNK_BYTES];
};

struct mark_node {
	struct bs_mark mark;
	uint32_t seq_begin, seq_end; /* of a resend */
	uint32_t next;
	uint32_t open; /* waits for its end */
};

enum rpc_state { RPC_FREE, RPC_REQUEST, RPC_WAITING, RPC_RESPONSE, RPC_DONE };

#define STAY_PARTS 7u
#define STAYS 3u /* per direction: the rx ring, handover, the application queue */

struct rpc {
	uint64_t id;
	uint64_t key; /* the protocol's */
	uint32_t flow, prev, next;
	uint32_t bucket_next;
	uint32_t marks;
	uint32_t begin[2], end[2]; /* sequence numbers of request and response */
	uint32_t ack_at_request;   /* response bytes before this belong to others */
	uint64_t t_first[2], t_last[2], t_departure[2];
	uint64_t t_first_copy;     /* response's last byte, first time */
	uint64_t t_earlier_finish, blocker_id;
	uint64_t bytes[2];
	uint64_t shim_id;
	uint32_t pending;
	uint32_t operation_hash;
	int32_t status;
	uint16_t retransmissions, duplicates, gaps, reordered, interims;
	uint8_t state;
	uint8_t outcome; /* if decided: bs_outcome, else BS_OUTCOME_COUNT */
	uint8_t ended[2], departed[2];
	uint8_t has_key, oneway, has_status, counted_pending;
	uint8_t early, first_of_flow, tagged;
	uint8_t mark_count;
	uint8_t stay_count[2];
	uint8_t label_len;
	char label[BS_LABEL_BYTES];
	struct bs_stay stay[2][STAYS];
};

struct service_state {
	struct bs_rec_service counters;
	struct bs_histo histos[BS_TRACKER_HISTO_COUNT];
	uint64_t threshold_ns;
	uint64_t t_pending_since, t_last_move;
	uint32_t pending;
};

struct bs_tracker {
	struct bs_tracker_config config;
	uint64_t counters[BS_TRACK_COUNT];
	uint64_t rpc_counter;
	uint32_t sample_left;
	uint32_t record_sequence;

	uint32_t *flow_buckets, flow_mask;
	struct flow *flows;
	uint32_t flow_free, flow_count, flow_max;
	uint32_t wheel[WHEEL_SLOTS];
	uint64_t wheel_width_ns, wheel_position; /* in slots since the epoch */
	uint32_t stream_counter;

	uint32_t *rpc_buckets, rpc_mask;
	struct rpc *rpcs;
	uint32_t rpc_free, rpc_count;

	struct mark_node *marks;
	uint32_t mark_free;
	struct chunk *chunks;
	uint32_t chunk_free;

	struct service_state *services; /* [BS_MAX_SERVICES + 1] */
	struct bs_tracker_service *discovered;
	uint32_t service_count;

	uint64_t group[BS_RPC_GROUP_MAX_UNITS * BS_UNIT_BYTES / sizeof(uint64_t)];
};

/* The packet in hand. */
struct step {
	struct bs_tracker *tracker;
	struct flow *flow;
	const struct bs_packet *packet;
	struct bs_tracked *tracked;
	unsigned d;          /* its direction */
	uint64_t t;          /* arrival of the bytes being delivered */
	uint64_t t_release;  /* when they became contiguous: not before t */
	uint64_t number;
	uint32_t ack;        /* of the bytes being delivered */
	uint64_t shim_id;
	uint32_t first_seq;  /* of its payload */
	bool from_chunk;     /* the bytes being delivered came earlier */
	bool in_first;       /* still in the first message that the packet touches */
};

static inline void
count(struct bs_tracker *tracker, enum bs_track_counter counter, uint64_t n)
{
	__atomic_store_n(&tracker->counters[counter], tracker->counters[counter] + n, __ATOMIC_RELAXED);
}

static inline uint32_t
index_of_flow(const struct bs_tracker *tracker, const struct flow *flow)
{
	return (uint32_t)(flow - tracker->flows);
}

static inline uint32_t
index_of_rpc(const struct bs_tracker *tracker, const struct rpc *rpc)
{
	return (uint32_t)(rpc - tracker->rpcs);
}

/* flow.c */
int flow_table_init(struct bs_tracker *tracker);
void flow_table_fini(struct bs_tracker *tracker);
struct flow *flow_find(struct bs_tracker *tracker, const struct bs_tuple *tuple, uint32_t hash);
/* NULL: not to be followed, or no room. */
struct flow *flow_make(struct bs_tracker *tracker, const struct bs_packet *packet, uint64_t t);
void flow_forget(struct bs_tracker *tracker, struct flow *flow, uint64_t t);
void flow_advance(struct bs_tracker *tracker, uint64_t t);
void flow_reset_stream(struct flow *flow, unsigned d);
void flow_drop_chunks(struct bs_tracker *tracker, struct flow *flow, unsigned d);

/* stream.c */
void stream_packet(struct step *step, const struct bs_piece *pieces, unsigned piece_count);
void stream_close(struct step *step, bool reset);
void stream_give_up_holes(struct bs_tracker *tracker, struct flow *flow, uint64_t t);
/* Estimates when the packet arrived; fills tracked->t_arrival, quality, uncertainty. */
void stream_arrival(struct step *step, const struct bs_arrival *arrival);

/* message.c */
void message_bytes(struct step *step, const uint8_t *data, uint32_t bytes);
void message_gap(struct step *step, uint32_t bytes);
void message_datagram(struct step *step, const uint8_t *data, uint32_t bytes);
/* The packet's first payload byte is next in order: what message is it of? */
void message_packet_begins(struct step *step);
void message_close(struct step *step);

/* rpc.c */
int rpc_table_init(struct bs_tracker *tracker);
void rpc_table_fini(struct bs_tracker *tracker);
struct rpc *rpc_make(struct step *step, uint64_t key, bool has_key);
void rpc_release(struct bs_tracker *tracker, struct rpc *rpc);
struct rpc *rpc_find_key(struct bs_tracker *tracker, const struct flow *flow, uint64_t key);
/* The RPC of which direction d's byte seq is part, if it is still known. */
struct rpc *rpc_at(struct bs_tracker *tracker, const struct flow *flow, unsigned d, uint32_t seq);
struct mark_node *rpc_mark(struct bs_tracker *tracker, struct rpc *rpc, const struct bs_mark *mark);
void rpc_message_ended(struct step *step, struct rpc *rpc, unsigned d, uint32_t seq_end);
/* Puts out those of a flow's RPCs that are finished and, over TCP, ACKed. */
void rpc_settle(struct bs_tracker *tracker, struct flow *flow, uint64_t t);
void rpc_end_all(struct bs_tracker *tracker, struct flow *flow, unsigned outcome, uint64_t t);
/* A stay as marks, one for each part that took time; returns how many. */
unsigned rpc_stay_marks(const struct bs_stay *stay, bool response, struct bs_mark marks[STAY_PARTS]);
/* A later copy of its completing packet counts: it has yet to leave our buffers. */
void rpc_departs_again(struct bs_tracker *tracker, struct flow *flow, struct rpc *rpc, unsigned d);
struct service_state *service_of(struct bs_tracker *tracker, const struct flow *flow);
void service_moved(struct step *step, const struct rpc *mover);

/* emit.c */
void emit_rpc(struct bs_tracker *tracker, struct flow *flow, struct rpc *rpc, uint64_t t);
void emit_silence(
	struct bs_tracker *tracker, unsigned service, uint64_t t_begin, uint64_t t_end, uint64_t mover);
void emit_service_name(struct bs_tracker *tracker, unsigned service);
void emit_orphan(struct step *step);
