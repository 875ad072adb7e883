/* SPDX-License-Identifier: BSD-3-Clause */
/* Records: what passes bs_record_next, what does not, groups, and the tiling checker. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bs_record.h"

#define T0 1700000000000000000ull

union any {
	struct bs_record head;
	struct bs_rec_hello hello;
	struct bs_rec_name name;
	struct bs_rec_service service;
	struct bs_rec_buffer buffer;
	struct bs_rec_rpc rpc;
	struct bs_rec_segment segment;
	struct bs_rec_event event;
	struct bs_rec_brief brief;
	struct bs_rec_silence silence;
	struct bs_rec_probe probe;
	struct bs_rec_loss loss;
	struct bs_rec_threshold threshold;
	struct bs_rec_verdict verdict;
	struct bs_rec_incident incident;
	uint8_t bytes[BS_UNIT_BYTES * BS_RECORD_MAX_UNITS];
};

static void
fill_rpc(struct bs_rec_rpc *rpc)
{
	rpc->id = 7;
	rpc->ends.transport = 6;
	rpc->ends.ip_version = 4;
	rpc->t_request_first = T0;
	rpc->t_request_last = T0 + 10;
	rpc->t_request_departure = T0 + 30;
	rpc->t_response_first = T0 + 130;
	rpc->t_response_first_copy = T0 + 135;
	rpc->t_response_last = T0 + 140;
	rpc->t_response_departure = T0 + 190;
	rpc->t_end = T0 + 1000;
	rpc->outcome = BS_OUTCOME_ANSWERED;
	rpc->label_len = 3;
	memcpy(rpc->label, "GET", 3);
}

/* A record of the type that has something in every field that is checked. */
static void
fill(union any *any, enum bs_record_type type)
{
	memset(any, 0, sizeof(*any));
	bs_record_head(&any->head, type, 3);
	switch (type) {
	case BS_REC_HELLO:
		any->hello.magic = 0xB5C09E12u;
		any->hello.version = 2;
		break;
	case BS_REC_NAME:
		any->name.kind = BS_NAME_BUFFER;
		any->name.number = 32;
		memset(any->name.name, 'n', sizeof(any->name.name) - 1);
		break;
	case BS_REC_RPC:
		fill_rpc(&any->rpc);
		break;
	case BS_REC_SEGMENT:
		any->segment.begin_ns = 5;
		any->segment.end_ns = 5;
		break;
	case BS_REC_EVENT:
		any->event.t_begin = T0;
		any->event.t_end = T0;
		any->event.culprit_count = 3;
		break;
	case BS_REC_PROBE:
		any->probe.state = BS_PROBE_ASLEEP;
		any->probe.t_begin = T0;
		any->probe.t_end = T0;
		any->probe.connections = 3;
		any->probe.unread = 3;
		any->probe.unaccepted = 3;
		any->probe.unsent = 3;
		break;
	case BS_REC_SILENCE:
		any->silence.t_begin = T0;
		any->silence.t_end = T0;
		break;
	case BS_REC_VERDICT:
		any->verdict.has_root = 1;
		any->verdict.alternative_count = 4;
		any->verdict.via_count = 6;
		any->verdict.evidence_count = 4;
		any->verdict.share_ppm = 1000000;
		any->verdict.confidence_ppm = 1000000;
		any->verdict.anomalous_by = 7;
		break;
	case BS_REC_INCIDENT:
		any->incident.t_begin = T0;
		any->incident.t_end = T0;
		any->incident.culprit_count = 3;
		any->incident.service_count = 4;
		any->incident.worst_count = 8;
		break;
	default:
		break;
	}
}

static int
next_error(const void *data, size_t bytes)
{
	size_t offset = 0;
	int error = 1;
	const struct bs_record *r = bs_record_next(data, bytes, &offset, &error);

	if (r == NULL) {
		assert_int_equal(offset, 0);
		return error;
	}
	assert_ptr_equal(r, data);
	assert_int_equal(error, 0);
	assert_int_equal(offset, r->units * 64);
	return 0;
}

/* The units that interfaces between processes agree on; from the layout, by hand. */
static const unsigned units[BS_REC_TYPE_COUNT] = {
	[BS_REC_HELLO] = 2,
	[BS_REC_NAME] = 2,
	[BS_REC_SERVICE] = 2,
	[BS_REC_BUFFER] = 1,
	[BS_REC_RPC] = 6,
	[BS_REC_SEGMENT] = 1,
	[BS_REC_EVENT] = 2,
	[BS_REC_BRIEF] = 1,
	[BS_REC_SILENCE] = 1,
	[BS_REC_PROBE] = 1,
	[BS_REC_LOSS] = 1,
	[BS_REC_THRESHOLD] = 1,
	[BS_REC_VERDICT] = 3,
	[BS_REC_INCIDENT] = 4,
	[BS_REC_JOURNAL] = 2,
};

static void
head_of_each_type_has_its_units_and_source(void **state)
{
	struct bs_record head;

	(void)state;
	for (unsigned type = BS_REC_HELLO; type < BS_REC_TYPE_COUNT; type++) {
		memset(&head, 0xff, sizeof(head));
		bs_record_head(&head, type, 12);
		assert_int_equal(head.type, type);
		assert_int_equal(head.units, units[type]);
		assert_int_equal(head.source, 12);
		assert_int_equal(head.sequence, 0);
		assert_int_equal(bs_record_units(type), units[type]);
	}
	assert_int_equal(bs_record_units(0), 0);
	assert_int_equal(bs_record_units(BS_REC_TYPE_COUNT), 0);
	assert_int_equal(bs_record_units(~0u), 0);
}

static void
each_type_valid_passes_and_cut_short_does_not(void **state)
{
	union any any;

	(void)state;
	for (unsigned type = BS_REC_HELLO; type < BS_REC_TYPE_COUNT; type++) {
		size_t bytes = units[type] * 64;

		fill(&any, type);
		assert_int_equal(next_error(&any, bytes), 0);
		for (size_t cut = 1; cut < bytes; cut++)
			assert_int_equal(next_error(&any, cut), -EBADMSG);
		any.head.units++;
		assert_int_equal(next_error(&any, sizeof(any)), -EBADMSG);
		any.head.units = 0;
		assert_int_equal(next_error(&any, sizeof(any)), -EBADMSG);
	}
}

static void
unknown_type_is_refused(void **state)
{
	union any any;

	(void)state;
	fill(&any, BS_REC_LOSS);
	any.head.type = 0;
	assert_int_equal(next_error(&any, 64), -EBADMSG);
	any.head.type = BS_REC_TYPE_COUNT;
	assert_int_equal(next_error(&any, 64), -EBADMSG);
	any.head.type = 255;
	assert_int_equal(next_error(&any, 64), -EBADMSG);
}

/* One field set to a value, and whether the record still passes. */
struct field {
	uint8_t type;
	bool ok;
	uint16_t at, bytes;
	uint64_t value;
	const char *what;
};

#define FIELD(type, layout, member, value, ok)                                                     \
	{                                                                                          \
		type, ok, offsetof(struct layout, member), sizeof(((struct layout *)0)->member),   \
			value, #layout "." #member " " #value                                      \
	}

#define HELLO(member, value, ok) FIELD(BS_REC_HELLO, bs_rec_hello, member, value, ok)
#define NAME(member, value, ok) FIELD(BS_REC_NAME, bs_rec_name, member, value, ok)
#define RPC(member, value, ok) FIELD(BS_REC_RPC, bs_rec_rpc, member, value, ok)
#define SEGMENT(member, value, ok) FIELD(BS_REC_SEGMENT, bs_rec_segment, member, value, ok)
#define EVENT(member, value, ok) FIELD(BS_REC_EVENT, bs_rec_event, member, value, ok)
#define BRIEF(member, value, ok) FIELD(BS_REC_BRIEF, bs_rec_brief, member, value, ok)
#define SILENCE(member, value, ok) FIELD(BS_REC_SILENCE, bs_rec_silence, member, value, ok)
#define PROBE(member, value, ok) FIELD(BS_REC_PROBE, bs_rec_probe, member, value, ok)
#define VERDICT(member, value, ok) FIELD(BS_REC_VERDICT, bs_rec_verdict, member, value, ok)
#define INCIDENT(member, value, ok) FIELD(BS_REC_INCIDENT, bs_rec_incident, member, value, ok)

/* Bounds: 16 inferred buffers, own ones from 32 to 1023; 10 details, the reasons from 16; services
 * to 256. */
static const struct field fields[] = {
	HELLO(magic, 0x129EC0B5, false), /* written on a machine of the other byte order */
	HELLO(version, 0, false),
	HELLO(version, 1, false),
	HELLO(version, 3, false),
	NAME(kind, 0, false),
	NAME(kind, BS_NAME_SERVICE, true),
	NAME(kind, BS_NAME_PROTOCOL, true),
	NAME(kind, BS_NAME_OPERATION, true),
	NAME(kind, 5, false),
	NAME(number, 31, false),
	NAME(number, 1023, true),
	NAME(number, 1024, false),
	NAME(properties, 0x0f, true),
	NAME(properties, 0x10, false),
	NAME(name[BS_NAME_BYTES - 1], 'x', false),
	FIELD(BS_REC_SERVICE, bs_rec_service, service, 256, true),
	FIELD(BS_REC_SERVICE, bs_rec_service, service, 257, false),
	FIELD(BS_REC_BUFFER, bs_rec_buffer, buffer, 15, true),
	FIELD(BS_REC_BUFFER, bs_rec_buffer, buffer, 16, false),
	FIELD(BS_REC_BUFFER, bs_rec_buffer, buffer, 32, true),
	FIELD(BS_REC_BUFFER, bs_rec_buffer, buffer, 1024, false),
	RPC(ends.transport, 17, true),
	RPC(ends.transport, 1, false),
	RPC(ends.ip_version, 6, true),
	RPC(ends.ip_version, 5, false),
	RPC(ends.vlan[0], 4095, true),
	RPC(ends.vlan[0], 4096, false),
	RPC(ends.vlan[1], 4096, false),
	RPC(service, 256, true),
	RPC(service, 257, false),
	RPC(kind, 5, true),
	RPC(kind, 6, false),
	RPC(outcome, 8, true),
	RPC(outcome, 9, false),
	RPC(flags, 0x7f, true),
	RPC(flags, 0x80, false),
	RPC(label_len, 96, true),
	RPC(label_len, 97, false),
	RPC(segment_count, 32, true),
	RPC(segment_count, 33, false),
	RPC(event_count, 8, true),
	RPC(event_count, 9, false),
	RPC(t_request_first, 0, true),
	RPC(t_request_first, T0 + 11, false),
	RPC(t_request_last, 0, true),
	RPC(t_request_last, T0 - 1, false),
	RPC(t_request_last, T0 + 31, false),
	RPC(t_request_departure, 0, true),
	RPC(t_request_departure, T0 + 9, false),
	RPC(t_request_departure, T0 + 150, true), /* the answer came early */
	RPC(t_response_first, 0, true),
	RPC(t_response_first, T0 - 1, false),
	RPC(t_response_first, T0 + 141, false),
	RPC(t_response_last, 0, true),
	RPC(t_response_last, T0 + 129, false),
	RPC(t_response_last, T0 + 191, false),
	RPC(t_response_departure, 0, true),
	RPC(t_response_departure, T0 + 139, false),
	RPC(t_response_first_copy, 0, true),
	RPC(t_response_first_copy, T0 - 1, false),
	RPC(t_response_first_copy, T0 + 120, true), /* the tail came first, out of order */
	RPC(t_response_first_copy, T0 + 141, false),
	RPC(t_end, T0 + 190, true),
	RPC(t_end, T0 + 189, false),
	RPC(t_end, 0, false),
	SEGMENT(end_ns, 4, false),
	SEGMENT(buffer, 15, true),
	SEGMENT(buffer, 16, false),
	SEGMENT(buffer, 31, false),
	SEGMENT(buffer, 1023, true),
	SEGMENT(buffer, 1024, false),
	SEGMENT(detail, 9, true),
	SEGMENT(detail, 10, false),
	SEGMENT(detail, 15, false),
	SEGMENT(detail, BS_DETAIL_FIRST_REASON + BS_REASON_COUNT - 1, true),
	SEGMENT(detail, BS_DETAIL_FIRST_REASON + BS_REASON_COUNT, false),
	SEGMENT(cause, 10, true),
	SEGMENT(cause, 11, false),
	SEGMENT(quality, 2, true),
	SEGMENT(quality, 3, false),
	SEGMENT(culprit_kind, 5, true),
	SEGMENT(culprit_kind, 6, false),
	EVENT(t_end, 0, true),
	EVENT(t_end, T0 - 1, false),
	EVENT(buffer, 16, false),
	EVENT(upstream, 16, false),
	EVENT(detail, 10, false),
	EVENT(type, 5, true),
	EVENT(type, 6, false), /* compute is a cause, not an event */
	EVENT(quality, 3, false),
	EVENT(culprit_count, 4, false),
	EVENT(culprit_kind[0], 6, false),
	EVENT(culprit_kind[2], 6, false),
	BRIEF(service, 257, false),
	BRIEF(outcome, 9, false),
	SILENCE(service, 257, false),
	SILENCE(t_end, 0, true),
	SILENCE(t_end, T0 - 1, false),
	PROBE(service, 257, false),
	PROBE(state, 0, false),
	PROBE(state, 1, true),
	PROBE(state, 6, true),
	PROBE(state, 7, false),
	PROBE(connections, 2, false), /* fewer than those of which something is told */
	PROBE(connections, 4, true),
	PROBE(unread, 4, false),
	PROBE(unaccepted, 4, false),
	PROBE(unsent, 4, false),
	PROBE(t_end, T0 - 1, false),
	FIELD(BS_REC_THRESHOLD, bs_rec_threshold, service, 257, false),
	VERDICT(share_ppm, 1000001, false),
	VERDICT(confidence_ppm, 1000001, false),
	VERDICT(detail, 10, false),
	VERDICT(anomalous_by, 8, false),
	VERDICT(baseline_warm, 2, false),
	VERDICT(chronic, 2, false),
	VERDICT(has_root, 2, false),
	VERDICT(alternative_count, 5, false),
	VERDICT(via_count, 7, false),
	VERDICT(evidence_count, 5, false),
	VERDICT(root.buffer, 16, false),
	VERDICT(root.cause, 11, false),
	VERDICT(alternatives[3].buffer, 16, false),
	VERDICT(alternatives[0].cause, 11, false),
	VERDICT(via[5].buffer, 16, false),
	VERDICT(via[0].cause, 11, false),
	INCIDENT(t_end, 0, true),
	INCIDENT(t_end, T0 - 1, false),
	INCIDENT(origin.buffer, 16, false),
	INCIDENT(origin.cause, 11, false),
	INCIDENT(detail, 10, false),
	INCIDENT(open, 2, false),
	INCIDENT(culprit_count, 4, false),
	INCIDENT(culprit_kind[2], 6, false),
	INCIDENT(service_count, 5, false),
	INCIDENT(worst_count, 9, false),
	INCIDENT(by_service[3].service, 257, false),
};

static void
each_field_out_of_range_is_refused_and_at_its_bound_passes(void **state)
{
	union any any;

	(void)state;
	for (unsigned i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		const struct field *f = &fields[i];

		fill(&any, f->type);
		memcpy(any.bytes + f->at, &f->value, f->bytes); /* little-endian, as the build */
		if ((next_error(&any, units[f->type] * 64u) == 0) != f->ok)
			fail_msg("%s should %s", f->what, f->ok ? "pass" : "be refused");
	}
}

static void
entries_past_the_count_are_not_looked_at(void **state)
{
	union any any;

	(void)state;
	fill(&any, BS_REC_EVENT);
	any.event.culprit_count = 2;
	any.event.culprit_kind[2] = 99;
	assert_int_equal(next_error(&any, 128), 0);
	fill(&any, BS_REC_VERDICT);
	any.verdict.has_root = 0;
	any.verdict.root.cause = 99;
	any.verdict.via_count = 1;
	any.verdict.via[1].cause = 99;
	assert_int_equal(next_error(&any, 192), 0);
	fill(&any, BS_REC_INCIDENT);
	any.incident.service_count = 1;
	any.incident.by_service[1].service = 9999;
	assert_int_equal(next_error(&any, 256), 0);
}

static void
batch_yields_each_record_and_stops_at_the_bad_one(void **state)
{
	_Alignas(8) uint8_t batch[64 + 128 + 64];
	union any any;
	size_t offset = 0;
	int error;

	(void)state;
	fill(&any, BS_REC_BRIEF);
	memcpy(batch, &any, 64);
	fill(&any, BS_REC_EVENT);
	memcpy(batch + 64, &any, 128);
	fill(&any, BS_REC_LOSS);
	memcpy(batch + 192, &any, 64);

	assert_ptr_equal(bs_record_next(batch, 256, &offset, &error), batch);
	assert_ptr_equal(bs_record_next(batch, 256, &offset, &error), batch + 64);
	assert_ptr_equal(bs_record_next(batch, 256, &offset, &error), batch + 192);
	assert_int_equal(offset, 256);
	assert_null(bs_record_next(batch, 256, &offset, &error));
	assert_int_equal(error, 0);

	batch[64] = 200;
	offset = 64;
	assert_null(bs_record_next(batch, 256, &offset, &error));
	assert_int_equal(error, -EBADMSG);
	assert_int_equal(offset, 64);
}

static void
offset_between_units_or_past_the_end_is_refused(void **state)
{
	_Alignas(8) uint8_t batch[256] = {0};
	union any any;
	int error;

	(void)state;
	fill(&any, BS_REC_LOSS);
	for (size_t at = 8; at < 64; at += 8) {
		size_t offset = at;

		memset(batch, 0, sizeof(batch));
		memcpy(batch + at, &any, 64);
		assert_null(bs_record_next(batch, 256, &offset, &error));
		assert_int_equal(error, -EBADMSG);
		assert_int_equal(offset, at);
	}
	for (size_t offset = 320; offset < 400; offset += 64) {
		assert_null(bs_record_next(batch, 256, &offset, &error));
		assert_int_equal(error, -EBADMSG);
	}
}

static void
empty_batch_is_an_end_without_error(void **state)
{
	uint64_t nothing = 0;
	size_t offset = 0;
	int error = 1;

	(void)state;
	assert_null(bs_record_next(&nothing, 0, &offset, &error));
	assert_int_equal(error, 0);
}

/* 190 ns of latency in five segments, and one event. */
struct group {
	struct bs_rec_rpc rpc;
	struct bs_rec_segment segments[5];
	struct bs_rec_event event;
};

static void
fill_group(struct group *g)
{
	static const uint64_t bounds[] = {0, 10, 30, 130, 140, 190};

	memset(g, 0, sizeof(*g));
	bs_record_head(&g->rpc.head, BS_REC_RPC, 0);
	fill_rpc(&g->rpc);
	g->rpc.segment_count = 5;
	g->rpc.event_count = 1;
	for (unsigned i = 0; i < 5; i++) {
		bs_record_head(&g->segments[i].head, BS_REC_SEGMENT, 0);
		g->segments[i].rpc_id = 7;
		g->segments[i].begin_ns = bounds[i];
		g->segments[i].end_ns = bounds[i + 1];
	}
	bs_record_head(&g->event.head, BS_REC_EVENT, 0);
	g->event.rpc_id = 7;
}

static void
group_is_seen_whole(void **state)
{
	struct group g;
	struct bs_rpc_view view;
	size_t bytes = 0;

	(void)state;
	fill_group(&g);
	assert_int_equal(bs_rpc_view(&g, sizeof(g), &view, &bytes), 0);
	assert_int_equal(bytes, 384 + 5 * 64 + 128);
	assert_ptr_equal(view.rpc, &g.rpc);
	assert_ptr_equal(view.segments, g.segments);
	assert_ptr_equal(view.events, &g.event);
	for (size_t cut = 0; cut < sizeof(g); cut += 8)
		assert_int_equal(bs_rpc_view(&g, cut, &view, &bytes), -EBADMSG);
}

static void
group_with_a_foreign_or_bad_member_is_refused(void **state)
{
	struct group g;
	struct bs_rpc_view view;
	size_t bytes;

	(void)state;
	fill_group(&g);
	g.segments[4].rpc_id = 8;
	assert_int_equal(bs_rpc_view(&g, sizeof(g), &view, &bytes), -EBADMSG);
	fill_group(&g);
	g.segments[2].cause = 99;
	assert_int_equal(bs_rpc_view(&g, sizeof(g), &view, &bytes), -EBADMSG);
	fill_group(&g);
	bs_record_head(&g.segments[4].head, BS_REC_LOSS, 0);
	assert_int_equal(bs_rpc_view(&g, sizeof(g), &view, &bytes), -EBADMSG);
	fill_group(&g);
	g.event.rpc_id = 8;
	assert_int_equal(bs_rpc_view(&g, sizeof(g), &view, &bytes), -EBADMSG);
	fill_group(&g);
	g.rpc.segment_count = 4; /* a segment where the event should be */
	assert_int_equal(bs_rpc_view(&g, sizeof(g), &view, &bytes), -EBADMSG);
	fill_group(&g);
	g.rpc.kind = 99;
	assert_int_equal(bs_rpc_view(&g, sizeof(g), &view, &bytes), -EBADMSG);
	fill_group(&g);
	assert_int_equal(bs_rpc_view(&g.event, 128, &view, &bytes), -EBADMSG);
}

static void
latency_ends_with_the_departure_or_the_last_arrival(void **state)
{
	struct group g;
	uint64_t ns = 1;

	(void)state;
	fill_group(&g);
	assert_true(bs_rpc_latency_ns(&g.rpc, &ns));
	assert_int_equal(ns, 190);
	assert_int_equal(bs_rpc_extent_ns(&g.rpc), 190);
	g.rpc.t_response_departure = 0;
	assert_true(bs_rpc_latency_ns(&g.rpc, &ns));
	assert_int_equal(ns, 140);
}

static void
rpc_without_an_answer_has_an_age_and_no_latency(void **state)
{
	struct group g;
	uint64_t ns = 1;

	(void)state;
	fill_group(&g);
	g.rpc.outcome = BS_OUTCOME_UNANSWERED;
	g.rpc.t_response_first = g.rpc.t_response_last = g.rpc.t_response_departure = 0;
	assert_false(bs_rpc_latency_ns(&g.rpc, &ns));
	assert_int_equal(ns, 0);
	assert_int_equal(bs_rpc_extent_ns(&g.rpc), 1000);
}

static void
orphan_response_is_measured_from_its_first_byte(void **state)
{
	struct group g;
	uint64_t ns;

	(void)state;
	fill_group(&g);
	g.rpc.outcome = BS_OUTCOME_ORPHAN_RESPONSE;
	g.rpc.t_request_first = g.rpc.t_request_last = g.rpc.t_request_departure = 0;
	assert_false(bs_rpc_latency_ns(&g.rpc, &ns));
	assert_int_equal(bs_rpc_extent_ns(&g.rpc), 1000 - 130);
	g.rpc.t_response_first = 0;
	assert_int_equal(bs_rpc_extent_ns(&g.rpc), 0);
}

static int
tiling(const struct group *g, unsigned *bad)
{
	struct bs_rpc_view view = {&g->rpc, g->segments, &g->event};

	*bad = 99;
	return bs_rpc_check_tiling(&view, bad);
}

static void
tiling_without_gap_or_overlap_passes(void **state)
{
	struct group g;
	unsigned bad;

	(void)state;
	fill_group(&g);
	assert_int_equal(tiling(&g, &bad), 0);
	g.segments[1].begin_ns = g.segments[1].end_ns = 10; /* of no length */
	g.segments[2].begin_ns = 10;
	assert_int_equal(tiling(&g, &bad), 0);
}

static void
tiling_with_a_flaw_names_the_segment(void **state)
{
	struct group g;
	unsigned bad;

	(void)state;
	fill_group(&g);
	g.segments[0].begin_ns = 1;
	assert_int_equal(tiling(&g, &bad), -EINVAL);
	assert_int_equal(bad, 0);

	fill_group(&g);
	g.segments[2].begin_ns = 31; /* gap */
	assert_int_equal(tiling(&g, &bad), -EINVAL);
	assert_int_equal(bad, 2);

	fill_group(&g);
	g.segments[3].begin_ns = 129; /* overlap */
	assert_int_equal(tiling(&g, &bad), -EINVAL);
	assert_int_equal(bad, 3);

	fill_group(&g);
	g.segments[4].end_ns = 189; /* too short */
	assert_int_equal(tiling(&g, &bad), -EINVAL);
	assert_int_equal(bad, 4);

	fill_group(&g);
	g.segments[3].end_ns = 191; /* past the end, and back */
	g.segments[4].begin_ns = 191;
	assert_int_equal(tiling(&g, &bad), -EINVAL);
	assert_int_equal(bad, 3);

	fill_group(&g);
	g.segments[1].cause = BS_CAUSE_COUNT;
	assert_int_equal(tiling(&g, &bad), -EINVAL);
	assert_int_equal(bad, 1);
}

static void
rpc_without_segments_tiles_only_if_it_took_no_time(void **state)
{
	struct group g;
	unsigned bad;

	(void)state;
	fill_group(&g);
	g.rpc.segment_count = 0;
	assert_int_equal(tiling(&g, &bad), -EINVAL);
	assert_int_equal(bad, 0);
	g.rpc.outcome = BS_OUTCOME_CUT;
	g.rpc.t_end = T0;
	assert_int_equal(tiling(&g, &bad), 0);
}

static void
words_are_found_by_number_and_unknown_numbers_are_marked(void **state)
{
	(void)state;
	assert_string_equal(bs_cause_text(BS_CAUSE_DROP), "drop");
	assert_string_equal(bs_cause_text(10), "unobserved");
	assert_string_equal(bs_cause_text(11), "?");
	assert_string_equal(bs_quality_text(1), "estimated");
	assert_string_equal(bs_quality_text(3), "?");
	assert_string_equal(bs_inferred_buffer_text(9), "service");
	assert_string_equal(bs_inferred_buffer_text(16), "?");
	assert_string_equal(bs_detail_text(0), "");
	assert_string_equal(bs_detail_text(5), "starved");
	assert_string_equal(bs_detail_text(8), "unreclaimed");
	assert_string_equal(bs_detail_text(10), "?");
	assert_string_equal(bs_detail_text(16), "rx_missed");
	assert_string_equal(bs_detail_text(22), "app_queue_full");
	assert_string_equal(bs_detail_text(16 + BS_REASON_COUNT), "?");
	assert_string_equal(bs_reason_key(10), "fault_injected");
	assert_string_equal(bs_outcome_text(8), "in_progress");
	assert_string_equal(bs_kind_text(0), "unary");
	assert_string_equal(bs_culprit_text(4), "lcore");
	assert_string_equal(bs_culprit_text(6), "?");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(head_of_each_type_has_its_units_and_source),
		cmocka_unit_test(each_type_valid_passes_and_cut_short_does_not),
		cmocka_unit_test(unknown_type_is_refused),
		cmocka_unit_test(each_field_out_of_range_is_refused_and_at_its_bound_passes),
		cmocka_unit_test(entries_past_the_count_are_not_looked_at),
		cmocka_unit_test(batch_yields_each_record_and_stops_at_the_bad_one),
		cmocka_unit_test(offset_between_units_or_past_the_end_is_refused),
		cmocka_unit_test(empty_batch_is_an_end_without_error),
		cmocka_unit_test(group_is_seen_whole),
		cmocka_unit_test(group_with_a_foreign_or_bad_member_is_refused),
		cmocka_unit_test(latency_ends_with_the_departure_or_the_last_arrival),
		cmocka_unit_test(rpc_without_an_answer_has_an_age_and_no_latency),
		cmocka_unit_test(orphan_response_is_measured_from_its_first_byte),
		cmocka_unit_test(tiling_without_gap_or_overlap_passes),
		cmocka_unit_test(tiling_with_a_flaw_names_the_segment),
		cmocka_unit_test(rpc_without_segments_tiles_only_if_it_took_no_time),
		cmocka_unit_test(words_are_found_by_number_and_unknown_numbers_are_marked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
