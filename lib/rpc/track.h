/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the tracker: its tables and what its files do for each other.
 *   tracker.c  create, the packet entry, counters
 *   flow.c     the flow table: find, make, forget; which service, which roles
 *   arrival.c  when a packet arrived that was polled later
 *   stream.c   TCP: sequence numbers, ACKs, handshake and end
 *   hole.c     bytes behind a hole in the stream
 *   resend.c   bytes sent again: lost, late or for nothing
 *   unseen.c   responses lost before they came to us
 *   window.c   what a receiver's window held up
 *   memory.c   what framers keep of a connection beyond their state
 *   message.c  bytes in order to framers, messages to RPCs
 *   pair.c     which request a response answers
 *   rpc.c      RPC slots, marks, what a service has open
 *   own.c      what our own buffers did to messages
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
#define SERVICE_SLOTS 1024u /* hash of at most BS_MAX_SERVICES */
#define WALK_MAX 64u	    /* RPCs of a flow looked at for one packet */

#define QUIET_MAX 32u /* of a flow, not known to be answered; the oldest is taken not to be */

#define RANGE_RPCS 16u /* RPCs of one packet that share its fate */

#define TO_SERVICE 0u
#define FROM_SERVICE 1u

static inline bool
seq_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

#define WSCALE_UNKNOWN 0xffu /* its SYN was not seen */
#define WSCALE_NONE 0xfeu    /* its SYN did not offer it */

/* One direction of a flow: what a packet in the middle of a message touches. */
struct direction {
	uint32_t next;	     /* in order up to here */
	uint32_t high;	     /* highest byte seen + 1; UDP: mark of the last datagram */
	uint32_t acked;	     /* highest ACK from the other end */
	uint32_t window_end; /* acked + window: the right edge */
	uint64_t skip;	     /* bytes of the body still to come, not looked at */
	uint64_t t_message;  /* arrival of the message's first byte */
	uint64_t t_progress; /* of the last byte not seen before */
	uint64_t t_closed;   /* window has had no room since then; 0 = it has */
	uint32_t message_begin;
	uint32_t rpc;	     /* of the message in progress */
	uint16_t mss;	     /* largest payload seen */
	uint8_t started : 1; /* next is valid */
	uint8_t in_message : 1;
	uint8_t skip_ends : 1; /* message ends with the skip */
	uint8_t until_close : 1;
	uint8_t resync : 1;    /* bytes make no sense until a message plausibly begins */
	uint8_t after_gap : 1; /* messages may be missing before the next one */
	uint8_t fin : 1;       /* seen; at hole[].fin_seq */
	uint8_t ended : 1;     /* all bytes up to it were delivered */
	uint8_t wscale;	       /* of the windows this end advertises; WSCALE_* */
	uint8_t window_known;  /* window_end is valid */
	uint8_t part;	       /* what is in progress is a part of a message, not its end */
	uint8_t pad[2];
};
_Static_assert(sizeof(struct direction) == 64, "one cache line per direction");

/* What a direction needs when it is not simply going on. */
struct hole {
	uint32_t first, last; /* chunks behind the hole, in order of sequence */
	uint32_t count;
	uint32_t acks; /* ACKs that came without filling it */
	uint32_t fin_seq;
	uint32_t patience; /* packets left before an ACKed hole is a gap; 0: it is not ACKed */
	uint64_t t_acked;  /* since when it is */
};

/* The sender's clock, from its TCP timestamps. */
struct stamp {
	uint64_t t_base;
	uint64_t t_window;
	int64_t floor_ns, floor_next_ns; /* least delay of late, against the base */
	uint32_t ts_base;
	uint32_t tick_ns; /* 0: not learned */
	uint32_t samples;
};

/* How soon bytes are ACKed, and those last sent again: was it for nothing? */
struct round_trip {
	uint64_t t_sent;   /* of seq; 0: nothing is being timed */
	uint64_t t_resend; /* 0: none to be judged */
	uint32_t seq;
	uint32_t min_ns; /* 0: not known */
	uint32_t resend_begin, resend_end;
	uint32_t resend_tsval; /* of the first resend since t_resend was 0 */
	bool resend_stamped;
};

/* Bytes that a buffer of ours dropped before they came here: their resend will look like the first.
 */
struct missed {
	uint64_t t;		     /* when the first of them were dropped; 0: none */
	uint32_t seq_begin, seq_end; /* all of them lie between */
	uint16_t buffer, detail;
};

#define WINDOW_EDGES 8u

/* Right edges of a receiver's window of late, and when each was advertised. */
struct window_edges {
	uint64_t t[WINDOW_EDGES];
	uint32_t edge[WINDOW_EDGES];
	uint32_t count; /* ever */
};

struct flow {
	_Alignas(64) struct bs_tuple tuple;
	uint32_t hash;
	uint32_t bucket_next;
	uint32_t generation;
	uint16_t service;
	uint8_t client_end;	 /* which end of the tuple is the client */
	uint8_t state;		 /* enum flow_state */
	struct direction dir[2]; /* TO_SERVICE, FROM_SERVICE */

	uint64_t t_last;
	const struct bs_framer *framer; /* NULL: not known yet */
	uint32_t rpc_first, rpc_last;	/* in order of request */
	uint32_t rpc_open;		/* first that is not answered */
	uint32_t done_first, done_last; /* answered, but not yet ACKed or departed */
	uint32_t depart_first;		/* first whose request has not departed */
	uint32_t rpc_count;
	uint32_t pending; /* RPCs that its service has and has not begun to answer */
	/* Requests since the last one followed, not followed for lack of room; by turn: the one in
	 * progress is not. */
	uint32_t refused;
	uint32_t wheel_prev, wheel_next;
	uint32_t wheel_t_last; /* lower half of t_last when it was put there */
	uint16_t wheel_slot;
	uint16_t ip_id_last[2];
	uint8_t ip_id_run;  /* IDs from the service that followed each other by one */
	uint8_t unseen;	    /* an ACK stands behind bytes of the service that were lost before us */
	uint8_t unseen_ids; /* IP IDs of the service left out since the request */
	uint16_t ip_id_new[2]; /* of the last packet with new bytes */
	uint32_t tsval_new[2]; /* the same */
	uint8_t protocol_guessed, role_guessed;
	uint8_t turn_answered; /* opaque: the turn in progress has been answered */
	uint8_t request_gap;   /* requests may be missing behind the last one */
	uint8_t pipelined;     /* a request came before the one before it was answered */
	uint8_t rpc_seen;
	uint8_t quiet_open; /* quiet commands of which it is not known if they are answered */
	uint8_t syn_waits;  /* a SYN of another connection came; it is believed when answered */
	uint8_t syn_wscale;
	uint8_t isn_known[2];
	uint8_t sent; /* bit per direction that sent a packet */
	uint32_t syn_seq;
	uint32_t isn[2];
	uint32_t stream;
	uint64_t t_syn;
	uint64_t connect_ns;
	struct hole hole[2];
	struct missed missed[2];
	struct stamp stamp[2];
	struct round_trip round_trip[2];
	struct window_edges window[2]; /* of the receiver of that direction */
	struct bs_tagging tagging;
	struct bs_frame_conn frame;
};

_Static_assert(offsetof(struct flow, dir) == 64, "directions lie on cache lines");

enum flow_state { FLOW_FREE, FLOW_OPEN, FLOW_CLOSED };

/* Stretch of payload behind a hole. */
struct chunk {
	uint32_t next;
	uint32_t seq;
	uint32_t bytes;
	uint32_t ack; /* of its packet */
	uint32_t tsval;
	uint16_t ip_id;
	uint8_t has_tsval;
	uint8_t unread;	    /* part of a body: the bytes are not kept, and may be more than fit */
	uint64_t t, t_last; /* arrival of its first and last byte */
	uint64_t number;
	uint8_t data[CHUNK_BYTES];
};

struct mark_node {
	struct bs_mark mark;
	uint32_t seq_begin, seq_end; /* of a resend or drop */
	uint32_t next;
	uint8_t open;	  /* waits for its end */
	uint8_t spurious; /* a resend that was for nothing */
};

enum rpc_state { RPC_FREE, RPC_REQUEST, RPC_WAITING, RPC_RESPONSE, RPC_DONE };

#define STAY_PARTS 7u
#define STAYS 3u /* per direction: the rx ring, handover, the application queue */

struct rpc {
	uint64_t id;
	uint64_t key; /* the protocol's */
	uint32_t flow, prev, next;
	uint32_t done_prev, done_next;
	uint32_t bucket_next;
	uint32_t marks;
	uint32_t begin[2], end[2]; /* sequence numbers of request and response */
	uint32_t ack_at_request;   /* response bytes before this belong to others */
	uint32_t refused_before;   /* requests directly before it that are not followed */
	uint64_t t_first[2], t_last[2], t_departure[2];
	uint64_t t_first_copy[2],
		t_departure_copy[2]; /* of the last byte, if a later copy counts */
	uint64_t t_earlier_finish, blocker_id;
	uint64_t bytes[2];
	uint64_t max_gap_ns; /* between parts of the response */
	uint8_t trace_id[16], parent_span_id[8];
	uint32_t pending;
	uint32_t operation_hash;
	uint32_t answers, token; /* of a quiet command; see struct bs_frame */
	int32_t status;
	uint16_t retransmissions, duplicates, gaps, reordered, interims;
	uint8_t state;
	uint8_t outcome; /* if decided: bs_outcome, else BS_OUTCOME_COUNT */
	uint8_t ended[2], departed[2];
	uint8_t in_parts[2]; /* its message came in parts; those of others may lie between */
	uint8_t dropped[2];  /* a copy of its last packet was, and no later one came yet */
	uint8_t has_key, oneway, has_status, counted_pending; /* oneway: BS_ONEWAY_* */
	uint8_t early, first_of_flow;
	uint8_t tagged;	    /* a packet brought its ID, or went out with it */
	uint8_t gap_before; /* requests may be missing directly before it */
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
	uint32_t waiting_flows;		      /* that have RPCs pending */
	uint32_t waiting[BS_TRACKER_WAITING]; /* of those, the last that began to wait */
	uint32_t waiting_next;		      /* place of the next one */
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
	struct {
		uint32_t first, last; /* in the order in which they were put there */
	} wheel[WHEEL_SLOTS];
	uint64_t wheel_used[WHEEL_SLOTS / 64];	 /* bit per slot that has flows */
	uint64_t wheel_width_ns, wheel_position; /* in slots since the epoch */
	uint64_t t_flow_evict_long;		 /* when many were looked at in vain */
	uint32_t stream_counter;

	uint32_t *rpc_buckets, rpc_mask;
	struct rpc *rpcs;
	uint32_t rpc_free, rpc_count;
	uint32_t rpc_hand;	     /* slot that is looked at next to make room */
	uint64_t t_rpc_evict_failed; /* when none was found that could go */

	struct mark_node *marks;
	uint32_t mark_free;
	struct chunk *chunks;
	uint32_t chunk_free;

	struct service_state *services; /* [BS_MAX_SERVICES + 1] */
	struct bs_tracker_service *discovered;
	uint32_t service_count;
	uint16_t service_slots[SERVICE_SLOTS]; /* number + 1 by (address, port), open addressing; 0
						  = free */

	struct bs_frame_memory *frame_memory;

	uint64_t group[BS_RPC_GROUP_MAX_UNITS * BS_UNIT_BYTES / sizeof(uint64_t)];
};

/* The packet in hand. */
struct step {
	struct bs_tracker *tracker;
	struct flow *flow;
	const struct bs_packet *packet;
	struct bs_tracked *tracked;
	unsigned d;	    /* direction of the bytes being delivered */
	uint64_t t;	    /* arrival of the first of them */
	uint64_t t_release; /* when they were complete and contiguous: not before t */
	uint32_t ack;	    /* of the packet that brought them */
	uint64_t shim_id;
	uint32_t first_seq; /* of the packet's payload */
	bool detached;	    /* they are not this packet's: it says nothing of their departure */
	bool in_first;	    /* still in the first message that the packet touches */
};

/* A quiet command that waits to be seen answered, or not. */
static inline bool
rpc_is_quiet(const struct rpc *rpc)
{
	return rpc->oneway == BS_ONEWAY_UNLESS_ANSWERED && rpc->state == RPC_WAITING;
}

/* A counter with one writer that others read. */
static inline void
add(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

static inline void
count(struct bs_tracker *tracker, enum bs_track_counter counter, uint64_t n)
{
	add(&tracker->counters[counter], n);
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
/* Of n flows, with the chunks for what stands behind their holes. */
size_t flow_table_bytes(uint32_t n);
int flow_table_init(struct bs_tracker *tracker);
void flow_table_fini(struct bs_tracker *tracker);
struct flow *flow_find(struct bs_tracker *tracker, const struct bs_tuple *tuple, uint32_t hash);
/* NULL: not to be followed, or no room. */
struct flow *flow_make(struct bs_tracker *tracker, const struct bs_packet *packet, uint64_t t);
void flow_forget(struct bs_tracker *tracker, struct flow *flow, unsigned outcome, uint64_t t);
void flow_advance(struct bs_tracker *tracker, uint64_t t);
/* Forgets what the framer of a flow knows of a direction. */
void flow_forget_frames(struct flow *flow, unsigned d);
/* The connection has ended: the flow is kept only as long as stray packets may come. */
void flow_closed(struct bs_tracker *tracker, struct flow *flow);
/* Its first request has come, at t: from now on it is not among those that only one end speaks on.
 */
void flow_asked(struct bs_tracker *tracker, struct flow *flow, uint64_t t);
/* Another connection with the same tuple begins with this SYN or SYN-ACK. */
void flow_reopen(
	struct bs_tracker *tracker, struct flow *flow, const struct bs_packet *packet, uint64_t t);
/* Tells index of the given services, for those given in the config. */
void flow_services_init(struct bs_tracker *tracker);

/* arrival.c */
/* Estimates when the packet arrived; fills tracked->t_arrival, quality, uncertainty. */
void arrival_estimate(struct step *step, const struct bs_arrival *arrival);

/* stream.c */
void stream_packet(struct step *step, const struct bs_piece *pieces, unsigned piece_count);
/* The packet in hand brings bytes that were never seen; it may come again as a copy. */
void stream_progressed(struct step *step);
/* The packet in hand is a copy made by the capture, not by a sender. */
bool stream_is_duplicate(const struct step *step, uint32_t high);
/* Payload comes no more: what is missing is a gap, what stands behind it is delivered. */
void stream_give_up_holes(struct bs_tracker *tracker, struct flow *flow, uint64_t t);
uint16_t stream_net_buffer(unsigned d, bool before);
uint16_t stream_receiver_buffer(unsigned d);

/* hole.c */
/* Keeps the payload of the packet in hand, which cannot be delivered yet. */
void hole_keep(struct step *step, const struct bs_piece *pieces, unsigned piece_count);
/* Are all of these bytes behind the hole already? */
bool hole_covers(
	const struct bs_tracker *tracker, const struct hole *hole, uint32_t seq, uint32_t end);
void hole_deliver(struct step *step, uint32_t seq, const uint8_t *data, uint32_t bytes);
/* Gives on what has become contiguous. */
void hole_drain(struct step *step);
/* What is missing before `to` will not come. */
void hole_give_up(struct step *step, uint32_t to);
void hole_free_chunks(struct bs_tracker *tracker, struct flow *flow, unsigned d);

/* resend.c */
/* A copy of bytes that we have let through before. */
void resend_seen(struct step *step, uint32_t seq, uint32_t end);
/* The packet in hand has filled a hole whose bytes we never saw; `behind` stood behind it. */
void resend_filled(struct step *step, const struct chunk *behind);
/* The packet in hand brought bytes never seen: were they dropped by us before? Then that is told.
 */
bool resend_missed(struct step *step);
/* An ACK for direction d came: its blocks, and how fast it was, may say that a resend was for
 * nothing. */
void resend_judge(struct step *step, unsigned d);

/* window.c */
/* A window for the other direction came. */
void window_advertised(struct step *step);
/* Has the receiver of direction d no room for a segment? Notes when that begins, marks it when it
 * ends. */
void window_look(struct step *step, unsigned d);
/* New bytes up to `end` came: had they waited for the window? */
void window_released(struct step *step, uint32_t end);

/* unseen.c */
/* Does the packet in hand, before its payload is looked at, show that one before it was lost? */
void unseen_look(struct step *step);
/* Its payload has been delivered: was that the resend? */
void unseen_resent(struct step *step);

/* message.c */
void message_bytes(struct step *step, const uint8_t *data, uint32_t bytes);
/* Bytes that came but were not kept, part of a body. */
void message_unread(struct step *step, uint32_t bytes);
void message_gap(struct step *step, uint32_t bytes);
void message_datagram(struct step *step, const uint8_t *data, uint32_t bytes);
/* The packet's first payload byte is next in order: what message is it of? */
void message_packet_begins(struct step *step);
/* The stream of step->d ends here. */
void message_close(struct step *step);

/* pair.c */
/* The RPC that the response beginning at dir->message_begin answers; NULL with *orphan: none that
 * we know of. */
struct rpc *pair_response(struct step *step, const struct bs_frame *frame, bool *orphan);

/* rpc.c */
size_t rpc_table_bytes(uint32_t n);
int rpc_table_init(struct bs_tracker *tracker);
void rpc_table_fini(struct bs_tracker *tracker);
/* An ID of ours that was never given before. */
uint64_t rpc_new_id(struct bs_tracker *tracker);
/* NULL: no room. */
struct rpc *rpc_make(struct step *step, uint64_t key, bool has_key);
/* The first message of its response begins: with the ID that its packet brought, if any. */
void rpc_response_label(struct step *step, struct rpc *rpc);
struct rpc *rpc_find_key(struct bs_tracker *tracker, const struct flow *flow, uint64_t key);
/* The latest RPCs of which bytes in [begin, end) of direction d are part; returns how many. */
unsigned rpc_in_range(struct bs_tracker *tracker, const struct flow *flow, unsigned d,
	uint32_t begin, uint32_t end, struct rpc *found[RANGE_RPCS]);
struct mark_node *rpc_mark(struct bs_tracker *tracker, struct rpc *rpc, const struct bs_mark *mark);
void rpc_message_ended(struct step *step, struct rpc *rpc, unsigned d, uint32_t seq_end);
/* A part of its message in direction step->d is complete; more will come. */
void rpc_part_ended(struct step *step, struct rpc *rpc);
/* It will not be answered, or not so that we see it. */
void rpc_give_up(struct bs_tracker *tracker, struct rpc *rpc, unsigned outcome);
/* The quiet commands before `until` (NONE: one, the oldest) will not be answered. */
void rpc_quiet_over(struct bs_tracker *tracker, struct flow *flow, uint32_t until);
/* A turn: the service has begun to answer, so it does not owe this RPC anything. */
void rpc_no_longer_pending(struct bs_tracker *tracker, struct rpc *rpc);
/* Requests that are not followed may be answered: then not in the place of another. */
void rpc_refused(struct flow *flow, unsigned oneway);
/* Puts out those of a flow's RPCs that are finished and, over TCP, ACKed. */
void rpc_settle(struct bs_tracker *tracker, struct flow *flow, uint64_t t);
void rpc_end_all(struct bs_tracker *tracker, struct flow *flow, unsigned outcome, uint64_t t);
struct service_state *service_of(struct bs_tracker *tracker, const struct flow *flow);
/* The service of the flow gave a byte. */
void service_moved(struct step *step);

/* own.c */
/* A stay as marks, one for each part that took time; returns how many. */
unsigned own_stay_marks(
	const struct bs_stay *stay, bool response, struct bs_mark marks[STAY_PARTS]);
/* A later copy of its completing packet counts: it has yet to leave our buffers. */
void own_departs_again(struct bs_tracker *tracker, struct flow *flow, struct rpc *rpc, unsigned d);

/* emit.c */
void flow_ends(const struct flow *flow, struct bs_ends *ends);
void emit_rpc(struct bs_tracker *tracker, struct flow *flow, struct rpc *rpc, uint64_t t);
void emit_silence(struct bs_tracker *tracker, unsigned service, uint64_t t_begin, uint64_t t_end,
	uint64_t mover);
void emit_service_name(struct bs_tracker *tracker, unsigned service);
void emit_orphan(struct step *step);
