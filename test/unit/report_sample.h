/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One RPC for the tests of lib/report: a request of a kv service that met a
 * stopped process for 202.88 ms. All numbers are written out; the tests know them.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#include "bs_names.h"
#include "bs_record.h"

#define SAMPLE_T0 1700000000000000000ull
#define SAMPLE_SEGMENTS 6

struct sample {
	struct bs_rec_rpc rpc;
	struct bs_rec_segment segments[SAMPLE_SEGMENTS];
	struct bs_rec_event event;
	struct bs_rpc_view view;
	struct bs_rec_verdict verdict;
	struct bs_names names;
};

static inline void
sample_name(struct bs_names *names, unsigned kind, unsigned number, const char *text)
{
	struct bs_rec_name name = {.kind = (uint16_t)kind, .number = (uint16_t)number};

	strncpy(name.name, text, sizeof(name.name) - 1);
	bs_names_learn(names, &name);
}

static inline void
sample_segments(struct sample *s)
{
	static const struct {
		uint64_t end_ns;
		uint16_t buffer;
		uint8_t cause, quality;
	} rows[SAMPLE_SEGMENTS] = {
		{2300, 41, BS_CAUSE_CONGESTION, BS_QUALITY_BOUND},
		{12300, 40, BS_CAUSE_CONTENTION, BS_QUALITY_EXACT},
		{120000, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, BS_QUALITY_ESTIMATED},
		{203000000, BS_BUFFER_SERVICE, BS_CAUSE_HANG, BS_QUALITY_EXACT},
		{203400000, BS_BUFFER_NET_RESPONSE_BEFORE, BS_CAUSE_TRANSFER, BS_QUALITY_EXACT},
		{203500000, 40, BS_CAUSE_CONTENTION, BS_QUALITY_ESTIMATED},
	};
	uint64_t begin = 0;

	for (unsigned i = 0; i < SAMPLE_SEGMENTS; i++) {
		struct bs_rec_segment *segment = &s->segments[i];

		bs_record_head(&segment->head, BS_REC_SEGMENT, 0);
		segment->rpc_id = s->rpc.id;
		segment->begin_ns = begin;
		segment->end_ns = begin = rows[i].end_ns;
		segment->buffer = rows[i].buffer;
		segment->cause = rows[i].cause;
		segment->quality = rows[i].quality;
	}
	s->segments[0].uncertainty_ns = 2300;
	s->segments[3].detail = BS_DETAIL_STOPPED;
	s->segments[4].packet = 17;
	s->segments[5].culprit_kind = BS_CULPRIT_RPC;
	s->segments[5].culprit_id = 0x1000000000006;
}

static inline void
sample_rpc(struct bs_rec_rpc *r)
{
	static const uint8_t client[16] = {[10] = 0xff, 0xff, 10, 99, 0, 1};
	static const uint8_t server[16] = {[10] = 0xff, 0xff, 10, 99, 0, 2};
	static const char label[] = "LRANGE list:12 0 -1";

	bs_record_head(&r->head, BS_REC_RPC, 0);
	r->id = 0x1000000000007;
	memcpy(r->ends.client, client, 16);
	memcpy(r->ends.server, server, 16);
	r->ends.client_port = 40112;
	r->ends.server_port = 6379;
	r->ends.transport = 6;
	r->ends.ip_version = 4;
	r->ends.vlan[0] = 100;
	r->t_request_first = SAMPLE_T0;
	r->t_request_last = SAMPLE_T0;
	r->t_request_departure = SAMPLE_T0 + 12300;
	r->t_response_first = SAMPLE_T0 + 203000000;
	r->t_response_last = SAMPLE_T0 + 203400000;
	r->t_response_departure = SAMPLE_T0 + 203500000;
	r->t_end = SAMPLE_T0 + 203600000;
	r->max_gap_ns = 202987700;
	r->request_bytes = 34;
	r->response_bytes = 123456;
	r->messages = 2;
	r->stream = 4;
	r->retransmissions = 2;
	r->segment_count = SAMPLE_SEGMENTS;
	r->event_count = 1;
	r->protocol = 5;
	r->flags = BS_RPC_PROTOCOL_GUESSED;
	r->class_ = 1;
	r->label_len = sizeof(label) - 1;
	memcpy(r->label, label, sizeof(label) - 1);
}

static inline void
sample_event(struct bs_rec_event *e)
{
	bs_record_head(&e->head, BS_REC_EVENT, 0);
	e->rpc_id = 0x1000000000007;
	e->t_begin = SAMPLE_T0 + 2300;
	e->t_end = SAMPLE_T0 + 12300;
	e->blocking_ns = 10000;
	e->count = 3;
	e->buffer = 40;
	e->type = BS_CAUSE_CONTENTION;
	e->culprit_count = 2;
	e->culprit_kind[0] = BS_CULPRIT_SERVICE;
	e->culprits[0] = (struct bs_culprit_share){.id = 3, .bytes = 15000, .ns = 7500};
	e->culprit_kind[1] = BS_CULPRIT_FLOW;
	e->culprits[1] = (struct bs_culprit_share){.id = 0xabcdef, .bytes = 0, .ns = 2500};
}

static inline void
sample_verdict(struct bs_rec_verdict *v)
{
	bs_record_head(&v->head, BS_REC_VERDICT, 0);
	v->rpc_id = 0x1000000000007;
	v->incident_id = 0x2a;
	v->excess_ns = 202880000;
	v->normal_ns = 0;
	v->share_ppm = 750000;
	v->confidence_ppm = 500000;
	v->detail = BS_DETAIL_STOPPED;
	v->anomalous_by = BS_BY_SLO | BS_BY_EVIDENCE;
	v->baseline_warm = 1;
	v->has_root = 1;
	v->root = (struct bs_blame){BS_BUFFER_SERVICE, BS_CAUSE_HANG, 0};
	v->alternative_count = 1;
	v->alternatives[0] = (struct bs_blame){BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0};
	v->via_count = 1;
	v->via[0] = (struct bs_blame){40, BS_CAUSE_CONGESTION, 0};
	v->evidence_count = 2;
	v->evidence[0] = 17;
}

static inline void
sample_init(struct sample *s)
{
	memset(s, 0, sizeof(*s));
	bs_names_init(&s->names);
	sample_name(&s->names, BS_NAME_BUFFER, 40, "kv.app.in");
	sample_name(&s->names, BS_NAME_BUFFER, 41, "local.rx");
	sample_name(&s->names, BS_NAME_SERVICE, 0, "kv");
	sample_name(&s->names, BS_NAME_SERVICE, 3, "batch");
	sample_name(&s->names, BS_NAME_PROTOCOL, 5, "resp");
	sample_rpc(&s->rpc);
	sample_segments(s);
	sample_event(&s->event);
	sample_verdict(&s->verdict);
	s->view = (struct bs_rpc_view){&s->rpc, s->segments, &s->event};
}
