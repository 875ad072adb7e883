/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tracker with one service and a connection to it, fed with frames that are
 * built byte by byte and parsed as real ones; and a sink that keeps what the
 * tracker tells, after checking that each group is valid and its path a tiling.
 */
#pragma once

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bs_tracker.h"
#include "frame.h"

#define US 1000ull
#define MS 1000000ull
#define SEC 1000000000ull
#define T0 (1700000000ull * SEC)
#define RIG_KEPT 4096u

/* What is sent most. */
#define GET_A "GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
#define GET_B "GET /b HTTP/1.1\r\nHost: h\r\n\r\n"
#define GET_C "GET /c HTTP/1.1\r\nHost: h\r\n\r\n"
#define GET 28u /* bytes */
#define OK_5 "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
#define OK 43u
#define OK_HEAD "HTTP/1.1 200 OK\r\nContent-Length: 2959\r\n\r\n" /* 41 bytes: 3000 in all */

#define CLIENT 0u /* sender of a segment */
#define SERVER 1u

struct told {
	struct bs_rec_rpc rpc;
	struct bs_rec_segment segments[BS_RPC_MAX_SEGMENTS];
	struct bs_rec_event events[BS_RPC_MAX_EVENTS];
};

struct rig {
	struct bs_framers framers;
	struct bs_tracker_service service; /* where frames go; what is given, until rig_start() */
	struct bs_tracker_service given;
	struct bs_tracker_config config;
	struct bs_tracker *tracker;
	uint64_t number;
	uint32_t isn[2]; /* by sender; sequence numbers in tests count from the first byte */
	uint16_t ip_id[2];
	uint16_t client_port;
	uint32_t client_address;
	bool ipv6;
	struct bs_tracked tracked; /* of the last packet */
	struct bs_packet packet;   /* the last packet; its data is gone */
	uint8_t *bytes;		   /* of the last packet */

	struct told *told;
	unsigned told_count;
	struct bs_rec_brief briefs[64];
	unsigned brief_count;
	struct bs_rec_silence silences[64];
	unsigned silence_count;
	struct bs_rec_name names[16];
	unsigned name_count;
	uint32_t next_sequence;
	bool full; /* the sink has no room */
};

static inline int
rig_put(void *context, const void *units, unsigned count)
{
	struct rig *rig = context;
	const struct bs_record *head = units;
	struct bs_rpc_view view;
	size_t offset = 0, group;
	unsigned bad = 0, records = 0;
	int error;

	if (rig->full) {
		rig->next_sequence++;
		return -1;
	}
	assert_int_equal(head->sequence, rig->next_sequence++);
	while (bs_record_next(units, (size_t)count * BS_UNIT_BYTES, &offset, &error) != NULL)
		records++;
	assert_int_equal(error, 0);
	switch (head->type) {
	case BS_REC_RPC:
		assert_int_equal(
			bs_rpc_view(units, (size_t)count * BS_UNIT_BYTES, &view, &group), 0);
		assert_int_equal(group, (size_t)count * BS_UNIT_BYTES);
		assert_int_equal(bs_rpc_check_tiling(&view, &bad), 0);
		assert_true(rig->told_count < RIG_KEPT);
		rig->told[rig->told_count].rpc = *view.rpc;
		memcpy(rig->told[rig->told_count].segments, view.segments,
			view.rpc->segment_count * sizeof(view.segments[0]));
		memcpy(rig->told[rig->told_count].events, view.events,
			view.rpc->event_count * sizeof(view.events[0]));
		rig->told_count++;
		break;
	case BS_REC_BRIEF:
		assert_true(rig->brief_count < 64);
		rig->briefs[rig->brief_count++] = *(const struct bs_rec_brief *)units;
		break;
	case BS_REC_SILENCE:
		assert_true(rig->silence_count < 64);
		rig->silences[rig->silence_count++] = *(const struct bs_rec_silence *)units;
		break;
	case BS_REC_NAME:
		assert_true(rig->name_count < 16);
		rig->names[rig->name_count++] = *(const struct bs_rec_name *)units;
		break;
	default:
		fail_msg("record of type %u", head->type);
	}
	(void)records;
	return 0;
}

/* A rig whose config can still be changed; rig_start() makes the tracker. Service: 10.0.0.2, port,
 * protocol. */
static inline struct rig *
rig_new(const char *protocol, uint16_t port)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	unsigned bad;

	assert_non_null(rig);
	rig->told = calloc(RIG_KEPT, sizeof(rig->told[0]));
	assert_non_null(rig->told);
	assert_int_equal(bs_framers_init(&rig->framers, NULL, 0, &bad), 0);
	assert_int_equal(bs_address_parse("10.0.0.2", rig->service.address), 0);
	rig->service.port = port;
	rig->service.framer = protocol == NULL ? NULL : bs_framers_find(&rig->framers, protocol);
	assert_true(protocol == NULL || rig->service.framer != NULL);
	rig->isn[CLIENT] = 1000;
	rig->isn[SERVER] = 77000;
	rig->ip_id[CLIENT] = 100;
	rig->ip_id[SERVER] = 9000;
	rig->client_port = 40000;
	rig->client_address = 0x0a000001;
	rig->config.max_flows = 64;
	rig->config.max_rpcs = 256;
	rig->config.frame_bytes = 65536;
	rig->config.framers = &rig->framers;
	rig->config.services = &rig->given;
	rig->config.service_count = 1;
	rig->config.node = 7;
	rig->config.source = 3;
	rig->config.idle_ns = 60 * SEC;
	rig->config.check = true;
	for (unsigned i = 0; i < 6; i++)
		rig->config.detect_ns[i] = 200 * US;
	rig->config.detect_ns[BS_CAUSE_HANG] = 1000 * MS;
	rig->config.sink.put = rig_put;
	rig->config.sink.context = rig;
	return rig;
}

static inline struct rig *
rig_start(struct rig *rig)
{
	rig->given = rig->service;
	rig->tracker = bs_tracker_create(&rig->config);
	assert_non_null(rig->tracker);
	return rig;
}

static inline struct rig *
rig_http(void)
{
	return rig_start(rig_new("http1", 80));
}

static inline void
rig_free(struct rig *rig)
{
	bs_tracker_destroy(rig->tracker);
	free(rig->bytes);
	free(rig->told);
	free(rig);
}

static inline uint64_t
rig_counter(const struct rig *rig, enum bs_track_counter counter)
{
	return bs_tracker_counters(rig->tracker)[counter];
}

/* Bytes that malloc has given out. 0: nobody counts (sanitizers have a malloc of their own). */
static inline size_t
rig_heap_bytes(void)
{
	const struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* A segment. t in ns after T0; seq and ack count from the first byte of each stream; SYN is at -1.
 */
struct seg {
	unsigned from; /* CLIENT or SERVER */
	uint64_t t;
	uint32_t seq, ack;
	unsigned flags; /* 0: ACK, and PSH with payload */
	const char *text;
	uint32_t bytes;	 /* payload, if text is NULL or shorter: filled up with 'x' */
	bool binary;	 /* text is `bytes` long, whatever it holds */
	uint32_t cap;	 /* of those, kept by the capture; 0: all */
	unsigned window; /* 0: 60000 */
	bool window_zero;
	bool has_ts;
	uint32_t tsval, tsecr;
	uint16_t ip_id; /* 0: the next */
	bool ip_id_zero;
	unsigned wscale; /* with SYN; 0: not offered */
	unsigned sacks;
	uint32_t sack[3][2]; /* of the other stream */
	uint64_t t_low;	     /* polled at t, not there yet at t_low; 0: exact */
	uint64_t shim_id;
};

static inline void
seg_options(const struct rig *rig, const struct seg *seg, struct frame *options)
{
	memset(options, 0, sizeof(*options));
	if (seg->has_ts) {
		frame_put(options, "\x01\x01\x08\x0a", 4);
		frame_u32(options, seg->tsval);
		frame_u32(options, seg->tsecr);
	}
	if (seg->wscale != 0) {
		frame_put(options, "\x01\x03\x03", 3);
		frame_u8(options, seg->wscale);
	}
	if (seg->sacks > 0) {
		frame_put(options, "\x01\x01\x05", 3);
		frame_u8(options, 2 + 8 * seg->sacks);
		for (unsigned i = 0; i < seg->sacks; i++) {
			frame_u32(options, rig->isn[!seg->from] + 1 + seg->sack[i][0]);
			frame_u32(options, rig->isn[!seg->from] + 1 + seg->sack[i][1]);
		}
	}
}

static inline void
rig_feed(struct rig *rig, struct frame *f, uint32_t caplen, uint64_t t, uint64_t t_low,
	uint64_t shim_id)
{
	struct bs_arrival arrival = {.t_low = t_low != 0 ? T0 + t_low : T0 + t,
		.t_poll = T0 + t,
		.exact = t_low == 0,
		.shim_id = shim_id};

	/* just the bytes, so that the sanitizer sees a read past them */
	free(rig->bytes);
	rig->bytes = malloc(caplen);
	assert_non_null(rig->bytes);
	memcpy(rig->bytes, f->bytes, caplen);
	memset(&rig->packet, 0, sizeof(rig->packet));
	rig->packet.data = rig->bytes;
	rig->packet.caplen = caplen;
	rig->packet.len = f->n;
	rig->packet.t_ns = T0 + t;
	rig->packet.number = ++rig->number;
	assert_int_equal(bs_packet_parse(&rig->packet), BS_PARSE_OK);
	memset(&rig->tracked, 0xa5, sizeof(rig->tracked));
	bs_tracker_packet(rig->tracker, &rig->packet, &arrival, NULL, 0, &rig->tracked);
}

static inline struct bs_tracked
rig_send(struct rig *rig, struct seg seg)
{
	uint32_t ends[2] = {rig->client_address, 0x0a000002};
	uint16_t ports[2] = {rig->client_port, rig->service.port};
	uint32_t text_bytes = seg.text == NULL ? 0
			      : seg.binary     ? seg.bytes
					       : (uint32_t)strlen(seg.text);
	uint32_t bytes = text_bytes > seg.bytes ? text_bytes : seg.bytes;
	unsigned flags = seg.flags != 0 ? seg.flags
			 : bytes > 0	? BS_TCP_ACK | BS_TCP_PSH
					: BS_TCP_ACK;
	struct frame f, options;

	seg_options(rig, &seg, &options);
	if (rig->ipv6) {
		frame_ether(&f, 0x86dd);
		frame_ipv6(&f, 6, seg.from == CLIENT ? 1 : 2, seg.from == CLIENT ? 2 : 1);
	} else {
		frame_ether(&f, 0x0800);
		frame_ipv4(&f, 6, ends[seg.from], ends[!seg.from]);
		rig->ip_id[seg.from]++;
		frame_set16(&f, f.l3 + 4,
			seg.ip_id_zero	 ? 0
			: seg.ip_id != 0 ? seg.ip_id
					 : rig->ip_id[seg.from]);
	}
	frame_tcp(&f, ports[seg.from], ports[!seg.from], flags, options.bytes, options.n);
	seg.seq += rig->isn[seg.from] + 1;
	seg.ack += rig->isn[!seg.from] + 1;
	for (unsigned i = 0; i < 4; i++) {
		f.bytes[f.l4 + 4 + i] = (uint8_t)(seg.seq >> (24 - 8 * i));
		f.bytes[f.l4 + 8 + i] = flags & BS_TCP_ACK ? (uint8_t)(seg.ack >> (24 - 8 * i)) : 0;
	}
	frame_set16(&f, f.l4 + 14, seg.window_zero ? 0 : seg.window != 0 ? seg.window : 60000);
	frame_put(&f, seg.text != NULL ? seg.text : "", text_bytes);
	assert_true(f.n + bytes - text_bytes < sizeof(f.bytes));
	frame_fill(&f, 'x', bytes - text_bytes);
	frame_end_ip(&f);
	rig_feed(
		rig, &f, seg.cap != 0 ? f.n - bytes + seg.cap : f.n, seg.t, seg.t_low, seg.shim_id);
	return rig->tracked;
}

#define SEND(rig, ...) rig_send(rig, (struct seg){__VA_ARGS__})

/* SYN at t, SYN-ACK 1 ms later, ACK 1 ms later; both offer window scale 7. */
static inline void
rig_handshake(struct rig *rig, uint64_t t)
{
	SEND(rig, .t = t, .seq = -1u, .flags = BS_TCP_SYN, .wscale = 7);
	SEND(rig, .from = SERVER, .t = t + MS, .seq = -1u, .flags = BS_TCP_SYN | BS_TCP_ACK,
		.wscale = 7);
	SEND(rig, .t = t + 2 * MS);
}

/* An HTTP service and a connection to it. */
static inline struct rig *
connected(void)
{
	struct rig *rig = rig_http();

	rig_handshake(rig, 0);
	return rig;
}

static inline struct bs_tracked
rig_datagram(struct rig *rig, unsigned from, uint64_t t, const void *payload, unsigned bytes)
{
	uint32_t ends[2] = {rig->client_address, 0x0a000002};
	uint16_t ports[2] = {rig->client_port, rig->service.port};
	struct frame f;

	frame_ether(&f, 0x0800);
	frame_ipv4(&f, 17, ends[from], ends[!from]);
	rig->ip_id[from]++;
	frame_set16(&f, f.l3 + 4, rig->ip_id[from]);
	frame_udp(&f, ports[from], ports[!from], bytes);
	frame_put(&f, payload, bytes);
	frame_end_ip(&f);
	rig_feed(rig, &f, f.n, t, 0, 0);
	return rig->tracked;
}

/* Time on the path of a told RPC in (buffer, cause). */
static inline uint64_t
told_ns(const struct told *told, unsigned buffer, unsigned cause)
{
	uint64_t ns = 0;

	for (unsigned i = 0; i < told->rpc.segment_count; i++) {
		if (told->segments[i].buffer == buffer && told->segments[i].cause == cause)
			ns += told->segments[i].end_ns - told->segments[i].begin_ns;
	}
	return ns;
}

#define ASSERT_SEGMENT(told, i, begin, end, buffer_, cause_)                                       \
	do {                                                                                       \
		assert_true((i) < (told)->rpc.segment_count);                                      \
		assert_int_equal((told)->segments[i].begin_ns, begin);                             \
		assert_int_equal((told)->segments[i].end_ns, end);                                 \
		assert_int_equal((told)->segments[i].buffer, buffer_);                             \
		assert_int_equal((told)->segments[i].cause, cause_);                               \
	} while (0)

static inline uint64_t
told_latency(const struct told *told)
{
	uint64_t ns;

	assert_true(bs_rpc_latency_ns(&told->rpc, &ns));
	return ns;
}

static inline void
assert_label(const struct told *told, const char *label)
{
	assert_int_equal(told->rpc.label_len, strlen(label));
	assert_memory_equal(told->rpc.label, label, strlen(label));
}
