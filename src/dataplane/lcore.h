/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One pipeline lcore and what it owns. Packets go one way through it:
 *
 *   rx ring -> ingress (parse, owner?) -> track, tag or untag -> app queue -> egress -> tx ring
 *                        |                                          ^
 *                        +-- handover ring to the owner lcore ------+ (there)
 *
 * Everything here is written by its lcore alone unless a field says otherwise.
 * An lcore is driven by bs_lcore_run(), or turn by turn by a test.
 */
#pragma once

#include <stdalign.h>

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "bs_drain.h"
#include "bs_entries.h"
#include "bs_fragments.h"
#include "bs_tracker.h"
#include "config.h"
#include "snapshot.h"

#define BS_BURST 32u
#define BS_PORT_QUEUES 16u
#define BS_RING_UNITS 32768u /* of the record ring of an lcore */
#define BS_LCORE_WAIT_FDS 64u
#define BS_NOTICES 4096u
#define BS_SEGMENTS_MAX 300u /* of a chain that is read: 512 KiB (BIG TCP) in mbufs of 2 KiB */

struct bs_dataplane;
struct bs_lcore;
struct bs_port;
struct bs_stamp;

/* Per mbuf, in its private area; valid where the packet's flag says so. */
struct bs_meta {
	struct bs_track_handle handle; /* with bs_mbuf_handle_flag */
	uint64_t t_low, t_poll;	       /* of its arrival; while being handed over */
	uint64_t t_stamp;	       /* likewise; 0: none */
	uint64_t hang_ns;	       /* of the poll gap, the poller was not there */
	uint32_t stamp_uncertainty_ns; /* of t_stamp */
	uint16_t port;		       /* it came from */
	uint8_t hang_state;	       /* enum bs_drain_state of that */
};

/* Flag in ol_flags: the private area names messages that this packet completes. */
extern uint64_t bs_mbuf_handle_flag;

static inline struct bs_meta *
bs_meta(struct rte_mbuf *mbuf)
{
	return (struct bs_meta *)rte_mbuf_to_priv(mbuf);
}

/* Nobody else sees its bytes: they may be changed. */
static inline bool
bs_mbuf_is_ours(const struct rte_mbuf *mbuf)
{
	return rte_mbuf_refcnt_read(mbuf) == 1 && RTE_MBUF_DIRECT(mbuf);
}

/* An episode of drops in progress. */
struct bs_drops {
	uint64_t t_begin, t_last;
	uint64_t count; /* 0: there is none */
	enum bs_reason reason;
};

/* An application queue of one (service, direction, producer lcore): SP/SC. */
struct bs_queue {
	struct rte_ring *ring;
	struct bs_entries *entries;
	struct bs_lcore *producer, *drainer;
	uint16_t buffer;  /* number in records */
	uint16_t service; /* or BS_SERVICE_OTHER */
	uint16_t served;  /* its pair in the drainer's log: that of its buffer */
	uint8_t class_;
	uint8_t from; /* index of the port that its packets came in by */

	/* producer's cache line */
	alignas(RTE_CACHE_LINE_SIZE) struct rte_mbuf *stage[BS_BURST];
	unsigned staged;
	uint64_t enqueued, dropped;
	struct bs_drops drops;
	uint32_t occupancy_max;

	/* consumer's cache line */
	alignas(RTE_CACHE_LINE_SIZE) int64_t deficit_bytes;
	uint64_t dequeued, wait_ns_sum, wait_ns_max;
};

/* The way out of one port, drained by the lcore that owns its tx queue. */
struct bs_egress {
	struct bs_lcore *lcore;
	struct bs_port *port;
	uint16_t tx_queue;
	uint16_t tx_buffer; /* `<port>.tx` */
	struct bs_drain_log *log;
	struct bs_queue **queues; /* by class, 0 first */
	uint64_t *waiting;	  /* a bit for each queue that may be served now */
	unsigned queue_count;
	unsigned served_count; /* buffers that they make */
	unsigned next;	       /* round robin within a class */
	bool in_debt;	       /* a queue may have a deficit other than 0 */

	struct rte_mbuf *pending[BS_BURST]; /* taken from a queue, not yet by the port */
	uint64_t pending_t_in[BS_BURST];
	struct bs_queue *pending_queue;
	unsigned pending_count, pending_at;

	int64_t tokens_bytes;	       /* of the port's rate; may go below zero by one burst */
	uint64_t t_tokens, token_rest; /* the rest: of a byte, in 10^-9 */
	uint64_t t_rate_ready;	       /* blocked by the port's rate until then; 0 = it is not */
	uint64_t t_pause_begin;	       /* the port takes nothing since then; 0 = it does */
	bool pause_told;
	uint64_t pause_ns; /* so far */
	uint64_t tx_packets, tx_bytes, tx_refusals;
};

/* One rx queue that an lcore polls. */
struct bs_ingress {
	struct bs_port *port;
	uint16_t rx_queue;
	uint16_t buffer;	/* `<port>.rx` */
	uint16_t served;	/* its pair in the lcore's rx log */
	struct bs_stamp *stamp; /* NULL: the device gives none that could be used */
	uint64_t t_short;	/* last poll that found fewer than asked for */
	uint64_t packets, bytes;
	uint64_t waits, wait_ns_sum, wait_ns_max; /* of packets of followed flows */
};

/* A packet that completes messages leaves a queue. */
struct bs_departure {
	struct bs_track_handle handle;
	struct bs_stay stay;
};

/* A packet of a flow is dropped. */
struct bs_loss {
	struct bs_tuple tuple;
	uint32_t hash, seq, payload_len;
	uint16_t buffer, reason;
	uint8_t direction;
};

/* Of either, to the lcore that owns the flow. */
struct bs_notice {
	uint64_t t;
	bool dropped;
	union {
		struct bs_departure left;
		struct bs_loss lost;
	};
};

/* Peers of UDP flows that are told apart; a clash forgets one. */
#define BS_TAGGING_PEERS 256u

struct bs_lcore_counters {
	uint64_t parse[BS_PARSE_COUNT];
	uint64_t tag[BS_TAG_COUNT];
	uint64_t frame[BS_FRAME_COUNT];
	uint64_t polls, packets, bursts;
	uint64_t departures_lost, drops_untold; /* to the owner, whose ring of notices was full */
	uint64_t episodes_lost;			/* for which the record ring had no room */
};

/* What became on this lcore of packets that came in by one port. */
struct bs_port_account {
	uint64_t reasons[BS_REASON_COUNT];
	uint64_t handed_over, taken_over; /* to, and from other lcores */
	uint64_t gaps, lost_before;	  /* in flows, before they came to us: see bs_tracked */
};

struct bs_lcore {
	struct bs_dataplane *dataplane;
	unsigned index; /* among the pipeline's */
	unsigned lcore_id;
	struct bs_tracker *tracker;
	struct bs_fragments *fragments;
	struct bs_drain_log *rx_log;
	struct bs_ingress ingress[BS_CONFIG_PORTS * BS_PORT_QUEUES];
	unsigned ingress_count;
	struct bs_egress egress[BS_CONFIG_PORTS];
	unsigned egress_count;
	/* [port to leave by][service]: the queues this lcore fills */
	struct bs_queue *(*queues)[BS_MAX_SERVICES + 1];
	struct bs_queue *touched[BS_BURST];
	unsigned touched_count;

	struct rte_ring *handover[BS_CONFIG_LCORES]; /* from lcore i to this one */
	struct rte_ring *notices[BS_CONFIG_LCORES];  /* likewise; struct bs_notice */
	struct rte_ring *records;		     /* to the collector: units */

	struct bs_lcore_counters counters;
	struct bs_tagging_peer tagging_peers[BS_TAGGING_PEERS];
	struct bs_port_account accounts[BS_CONFIG_PORTS];
	struct bs_drops handover_drops; /* of what other lcores should have got from it */
	uint64_t drops_left;		/* of those that a debug fault asked for */
	uint64_t t_turn;		/* last look at the clock: after all that took time */
	uint64_t t_housekeeping;
	uint64_t t_scheduler;			/* when the scheduler's account was last read */
	uint64_t run_delay_ns;			/* waited for a CPU, by that account */
	uint64_t away_ns[BS_DRAIN_STATE_COUNT]; /* so far; only states of not being there */
	unsigned idle_turns;
	int wait_fds[BS_LCORE_WAIT_FDS];		    /* readable when a packet is there */
	struct bs_ingress *wait_ingress[BS_LCORE_WAIT_FDS]; /* where */
	unsigned wait_fd_count;
	int doorbell; /* eventfd: wakes it from sleep; written by others */

	/* written by this lcore, read by the collector and control threads */
	alignas(RTE_CACHE_LINE_SIZE) uint64_t heartbeat_ns;
	uint32_t sleeping;

	/* written by control threads */
	alignas(RTE_CACHE_LINE_SIZE) uint64_t fault_stall_ns; /* stay away for so long; then 0 */
	uint32_t fault_drops; /* drop so many packets of services more; then 0 */
	uint32_t stop;
};

/* A gap between two looks at the clock longer than this: the thread was not there. */
#define BS_STALL_NS 100000ull

/* One turn: poll, track, hand on, send. Returns the packets moved. The lcore only. */
unsigned bs_lcore_turn(struct bs_lcore *lcore);

/* Turns until `stop`; idles in between. For rte_eal_remote_launch. Returns 0. */
int bs_lcore_run(void *lcore);

/*
 * Puts the calling thread on the CPU of an EAL lcore (if it is one): what it allocates there, or
 * is the first to touch, is on that lcore's NUMA node if that has room. Before lcores run.
 */
void bs_lcore_visit(unsigned lcore_id);

/* Wakes the lcore if it sleeps. Any thread. */
void bs_lcore_ring(struct bs_lcore *lcore);

/* Looks at the clock; if the lcore was away, its logs say so. Returns the time. The lcore only. */
uint64_t bs_lcore_now(struct bs_lcore *lcore);

/* Puts records into the lcore's ring: the tracker's sink. 0, or -ENOBUFS. */
int bs_lcore_put(void *lcore, const void *units, unsigned count);

/*
 * Numbers of the buffers that wait while this lcore does not come: its rx rings, which may hold
 * packets, and what else holds some. At most max, each once. Any thread, racily.
 */
unsigned bs_lcore_waiting(const struct bs_lcore *lcore, uint16_t *buffers, unsigned max);

/* Tells of an episode of a buffer (rpc_id 0). */
void bs_lcore_episode(struct bs_lcore *lcore, unsigned type, uint16_t buffer, uint16_t detail,
	uint16_t upstream, uint64_t t_begin, uint64_t t_end, uint64_t count);

/* ingress.c */
unsigned bs_ingress_poll(struct bs_lcore *lcore, struct bs_ingress *ingress);
unsigned bs_handover_poll(struct bs_lcore *lcore);

/* notice.c */
/* A packet of an owner's flow left at t. */
void bs_tell_left(struct bs_lcore *lcore, struct bs_lcore *owner,
	const struct bs_departure *departure, uint64_t t);
/* A packet was dropped at t; one that is not TCP or UDP is nobody's. */
void bs_tell_dropped(struct bs_lcore *lcore, struct bs_lcore *owner, const struct bs_packet *packet,
	uint16_t buffer, enum bs_reason reason, uint64_t t);
/* Takes all that lcore `from` told so far. */
void bs_notices_poll(struct bs_lcore *lcore, unsigned from);

/* shim.c */
struct bs_shim_step {
	struct bs_lcore *lcore;
	struct rte_mbuf *mbuf;
	struct bs_packet *packet; /* describes the mbuf, before and after */
	const struct bs_tracked *tracked;
	const struct bs_port *from, *to;
	bool checksum_by_port; /* it is left to that, once the edits are done */
};
/* Parses a frame, through a tunnel if that is where shims are. */
void bs_shim_parse(const struct bs_lcore *lcore, struct bs_packet *packet);
/* The RPC-ID that a packet brings from a port that is trusted; 0 = none. */
uint64_t bs_shim_adopt(const struct bs_port *from, const struct bs_packet *packet);
/* Takes the shim off, puts it on, or negotiates it: a TCP or UDP packet on its way. */
void bs_shim_edit(struct bs_shim_step *step);
/* Lowers an ICMP too-big of a flow that we tag. */
void bs_shim_icmp(struct bs_shim_step *step);

/* checksum_offload.c: around the edits of a TCP or UDP packet */
/* As far as one can see: neither does it look half done, nor did the driver say so. */
static inline bool
bs_checksum_looks_whole(const struct rte_mbuf *mbuf, const struct bs_packet *packet)
{
	return !(packet->l4_checksum_partial | packet->tunnel_checksum_partial) &&
	       (mbuf->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) != RTE_MBUF_F_RX_L4_CKSUM_NONE;
}
/* Of one that does not: completes it if it is not whole, or leaves it to the port. */
void bs_checksum_settle(struct bs_shim_step *step);
/* It was left to the port (checksum_by_port): writes what that needs to know. */
void bs_checksum_request(struct bs_shim_step *step);

/* incoming.c: frames that came in other than plain */
#define BS_HEADERS_BYTES 512u /* that are made to lie in one piece */
/* Has it got a chain or flags that need a look at? */
static inline bool
bs_incoming_is_plain(const struct rte_mbuf *mbuf)
{
	return mbuf->nb_segs == 1 && mbuf->data_len == mbuf->pkt_len &&
	       !(mbuf->ol_flags & (RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_QINQ_STRIPPED));
}
/* Checks the chain, puts VLAN tags back. False: it must not go on, for *reason. */
bool bs_incoming_mend(struct bs_lcore *lcore, struct rte_mbuf *mbuf, enum bs_reason *reason);
/* Moves headers into the first segment; false: as before, or as much as could be. */
bool bs_incoming_gather(struct bs_lcore *lcore, struct rte_mbuf *mbuf);

/* outgoing.c */
/* Can the port send it? If not, it has ended, counted and told to its flow. Its flow's owner. */
bool bs_outgoing_fits(struct bs_lcore *lcore, struct rte_mbuf *mbuf, const struct bs_packet *packet,
	const struct bs_port *to);
/* Lets the driver look at what is pending; drops and counts what it refuses. */
void bs_outgoing_prepare(struct bs_lcore *lcore, struct bs_egress *egress);

/* queue.c */
/* number: among all queues, for its ring's name. NULL with errno. */
struct bs_queue *bs_queue_create(
	struct bs_lcore *producer, uint16_t buffer, unsigned number, unsigned size);
void bs_queue_destroy(struct bs_queue *queue);
void bs_queue_stage(struct bs_lcore *lcore, struct bs_queue *queue, struct rte_mbuf *mbuf);
/* Makes what was staged visible to the drainers; drops and counts what finds no room. */
void bs_queues_flush(struct bs_lcore *lcore, uint64_t t);
/* n packets were dropped at t. */
void bs_drops_add(struct bs_drops *drops, enum bs_reason reason, unsigned n, uint64_t t);
/* Housekeeping: tells of episodes of drops that are over, or have gone on for long. */
void bs_drops_tell(struct bs_lcore *lcore, uint64_t t);

/* egress.c */
unsigned bs_egress_serve(struct bs_lcore *lcore, struct bs_egress *egress);
/* Frees what is left in queues and pending; counts it as SHUTDOWN. Control thread, lcore stopped.
 */
void bs_egress_drop_all(struct bs_lcore *lcore, struct bs_egress *egress);
/* A stay in a buffer from t_in to t_out, split by its drainer's log. */
void bs_stay_fill(struct bs_stay *stay, const struct bs_drain_log *log, unsigned served,
	uint16_t buffer, uint64_t t_in, uint64_t t_out);

static inline void
bs_count(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

/* n packets that came in by a port (its index) end here. */
static inline void
bs_count_ended(struct bs_lcore *lcore, unsigned from, enum bs_reason reason, uint64_t n)
{
	bs_count(&lcore->accounts[from].reasons[reason], n);
}
