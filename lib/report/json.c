/* SPDX-License-Identifier: BSD-3-Clause */
/* Records as the JSON objects that users and scripts rely on. */
#include "bs_report.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "bs_framer.h"
#include "bs_packet.h"
#include "escape.h"

#define PPM 1e6

/* An object or array being filled; one check at its end covers all that went into it. */
struct filling {
	json_t *json;
	bool failed;
};

static void
set(struct filling *f, const char *key, json_t *value)
{
	if (json_object_set_new(f->json, key, value) != 0)
		f->failed = true;
}

static void
append(struct filling *f, json_t *value)
{
	if (json_array_append_new(f->json, value) != 0)
		f->failed = true;
}

static json_t *
filled(struct filling *f)
{
	if (!f->failed)
		return f->json;
	json_decref(f->json);
	errno = ENOMEM;
	return NULL;
}

static json_t *
number(uint64_t value)
{
	return value <= INT64_MAX ? json_integer((json_int_t)value) : json_null();
}

/* For fields where 0 says "not known". */
static json_t *
known(uint64_t value)
{
	return value != 0 ? number(value) : json_null();
}

static json_t *
instant(uint64_t t)
{
	return t != 0 ? json_sprintf("%" PRIu64, t) : json_null();
}

static json_t *
id(uint64_t value)
{
	return json_sprintf("%016" PRIx64, value);
}

static json_t *
share(uint64_t part, uint64_t whole)
{
	return whole != 0 ? json_real((double)part / (double)whole) : json_null();
}

static json_t *
text(const char *bytes, size_t count)
{
	char clean[BS_LABEL_BYTES * ESCAPE_MAX + 1];

	return json_stringn(clean, bs_report_escape(bytes, count, clean, sizeof(clean)));
}

static json_t *
hex(const uint8_t *bytes, unsigned count)
{
	static const char digits[] = "0123456789abcdef";
	char out[32];
	uint8_t any = 0;

	for (unsigned i = 0; i < count; i++) {
		any |= bytes[i];
		out[2 * i] = digits[bytes[i] >> 4];
		out[2 * i + 1] = digits[bytes[i] & 15];
	}
	return any != 0 ? json_stringn(out, 2 * (size_t)count) : json_null();
}

static json_t *
detail_json(unsigned detail)
{
	return detail != BS_DETAIL_NONE ? json_string(bs_detail_text(detail)) : json_null();
}

static json_t *
endpoint(const uint8_t address[16], uint16_t port)
{
	char out[BS_ENDPOINT_TEXT_BYTES];

	return json_string(bs_endpoint_text(address, port, out));
}

static json_t *
vlan_json(const uint16_t vlan[2])
{
	struct filling f = {json_array(), false};

	for (unsigned i = 0; i < 2; i++)
		if (vlan[i] != 0)
			append(&f, json_integer(vlan[i]));
	return filled(&f);
}

static unsigned
narrow(uint64_t value)
{
	return value <= UINT_MAX ? (unsigned)value : UINT_MAX;
}

/* What a culprit's id is depends on its kind; it is a text always. */
static json_t *
culprit_id(const struct bs_names *names, unsigned kind, uint64_t value)
{
	switch (kind) {
	case BS_CULPRIT_RPC:
		return id(value);
	case BS_CULPRIT_SERVICE:
		return json_string(bs_names_service(names, narrow(value)));
	case BS_CULPRIT_BUFFER:
		return json_string(bs_names_buffer(names, narrow(value)));
	case BS_CULPRIT_FLOW:
		return json_sprintf("%08" PRIx64, value);
	case BS_CULPRIT_LCORE:
		return json_sprintf("%" PRIu64, value);
	default:
		return json_null();
	}
}

static json_t *
culprits_json(const struct bs_names *names, const struct bs_culprit_share *culprits,
	const uint8_t *kinds, unsigned count, uint64_t whole_ns)
{
	struct filling list = {json_array(), false};

	for (unsigned i = 0; i < count; i++) {
		struct filling f = {json_object(), false};

		set(&f, "kind", json_string(bs_culprit_text(kinds[i])));
		set(&f, "id", culprit_id(names, kinds[i], culprits[i].id));
		set(&f, "bytes", number(culprits[i].bytes));
		set(&f, "ns", number(culprits[i].ns));
		set(&f, "share", share(culprits[i].ns, whole_ns));
		append(&list, filled(&f));
	}
	return filled(&list);
}

static void
set_blame(struct filling *f, const struct bs_names *names, const struct bs_blame *blame)
{
	set(f, "buffer", json_string(bs_names_buffer(names, blame->buffer)));
	set(f, "cause", json_string(bs_cause_text(blame->cause)));
}

static json_t *
blames_json(const struct bs_names *names, const struct bs_blame *blames, unsigned count)
{
	struct filling list = {json_array(), false};

	for (unsigned i = 0; i < count; i++) {
		struct filling f = {json_object(), false};

		set_blame(&f, names, &blames[i]);
		append(&list, filled(&f));
	}
	return filled(&list);
}

static json_t *
segments_json(const struct bs_names *names, const struct bs_rpc_view *view)
{
	struct filling list = {json_array(), false};

	for (unsigned i = 0; i < view->rpc->segment_count; i++) {
		const struct bs_rec_segment *s = &view->segments[i];
		const struct bs_blame blame = {s->buffer, s->cause, 0};
		struct filling f = {json_object(), false};
		bool culprit = s->culprit_kind != BS_CULPRIT_NONE;

		set(&f, "begin_ns", number(s->begin_ns));
		set(&f, "end_ns", number(s->end_ns));
		set_blame(&f, names, &blame);
		set(&f, "detail", detail_json(s->detail));
		set(&f, "quality", json_string(bs_quality_text(s->quality)));
		set(&f, "uncertainty_ns", known(s->uncertainty_ns));
		set(&f, "packet", known(s->packet));
		set(&f, "culprit_kind",
			culprit ? json_string(bs_culprit_text(s->culprit_kind)) : json_null());
		set(&f, "culprit_id", culprit_id(names, s->culprit_kind, s->culprit_id));
		append(&list, filled(&f));
	}
	return filled(&list);
}

/* The segments summed by (buffer, cause), in order of first appearance. */
static json_t *
terms_json(const struct bs_names *names, const struct bs_rpc_view *view)
{
	struct filling list = {json_array(), false};
	struct {
		struct bs_blame blame;
		uint64_t ns;
	} terms[BS_RPC_MAX_SEGMENTS];
	unsigned count = 0;

	for (unsigned i = 0; i < view->rpc->segment_count; i++) {
		const struct bs_rec_segment *s = &view->segments[i];
		unsigned at = 0;

		while (at < count &&
			(terms[at].blame.buffer != s->buffer || terms[at].blame.cause != s->cause))
			at++;
		if (at == count) {
			terms[at].blame = (struct bs_blame){s->buffer, s->cause, 0};
			terms[at].ns = 0;
			count++;
		}
		terms[at].ns += s->end_ns - s->begin_ns;
	}
	for (unsigned i = 0; i < count; i++) {
		struct filling f = {json_object(), false};

		set_blame(&f, names, &terms[i].blame);
		set(&f, "ns", number(terms[i].ns));
		append(&list, filled(&f));
	}
	return filled(&list);
}

static json_t *
events_json(const struct bs_names *names, const struct bs_rpc_view *view)
{
	struct filling list = {json_array(), false};

	for (unsigned i = 0; i < view->rpc->event_count; i++) {
		const struct bs_rec_event *e = &view->events[i];
		bool upstream = e->upstream != BS_BUFFER_NONE;
		struct filling f = {json_object(), false};

		set(&f, "type", json_string(bs_cause_text(e->type)));
		set(&f, "buffer", json_string(bs_names_buffer(names, e->buffer)));
		set(&f, "detail", detail_json(e->detail));
		set(&f, "quality", json_string(bs_quality_text(e->quality)));
		set(&f, "upstream",
			upstream ? json_string(bs_names_buffer(names, e->upstream)) : json_null());
		set(&f, "t_begin", instant(e->t_begin));
		set(&f, "t_end", instant(e->t_end));
		set(&f, "blocking_ns", number(e->blocking_ns));
		set(&f, "count", number(e->count));
		set(&f, "culprits",
			culprits_json(names, e->culprits, e->culprit_kind, e->culprit_count,
				e->blocking_ns));
		append(&list, filled(&f));
	}
	return filled(&list);
}

static void
set_identity(struct filling *f, const struct bs_names *names, const struct bs_rec_rpc *r)
{
	char operation[BS_FRAME_LABEL_BYTES];
	uint32_t hash;
	size_t length = bs_operation_template(r->label, r->label_len, operation, &hash);
	bool labelled = r->label_len > 0;
	bool status = (r->flags & BS_RPC_HAS_STATUS) != 0;
	bool guessed = (r->flags & BS_RPC_PROTOCOL_GUESSED) != 0;
	bool role_guessed = (r->flags & BS_RPC_ROLE_GUESSED) != 0;

	set(f, "id", id(r->id));
	set(f, "service", json_string(bs_names_service(names, r->service)));
	set(f, "operation", labelled ? text(operation, length) : json_null());
	set(f, "label", labelled ? text(r->label, r->label_len) : json_null());
	set(f, "protocol", json_string(bs_names_protocol(names, r->protocol)));
	set(f, "protocol_guessed", json_boolean(guessed));
	set(f, "client", endpoint(r->ends.client, r->ends.client_port));
	set(f, "server", endpoint(r->ends.server, r->ends.server_port));
	set(f, "role_guessed", json_boolean(role_guessed));
	set(f, "transport", json_string(r->ends.transport == 6 ? "tcp" : "udp"));
	set(f, "vlan", vlan_json(r->ends.vlan));
	set(f, "stream", number(r->stream));
	set(f, "tenant", json_null());
	set(f, "class", json_integer(r->class_));
	set(f, "status", status ? json_integer(r->status) : json_null());
	set(f, "trace_id", hex(r->trace_id, sizeof(r->trace_id)));
	set(f, "parent_span_id", hex(r->parent_span_id, sizeof(r->parent_span_id)));
	set(f, "kind", json_string(bs_kind_text(r->kind)));
	set(f, "outcome", json_string(bs_outcome_text(r->outcome)));
	set(f, "tagged", json_boolean((r->flags & BS_RPC_TAGGED) != 0));
}

static void
set_times(struct filling *f, const struct bs_rec_rpc *r)
{
	bool served = r->t_request_departure != 0 && r->t_response_first != 0;
	bool early = served && r->t_response_first < r->t_request_departure;
	bool begun = r->t_request_first != 0 && r->t_response_first != 0;
	uint64_t latency;
	bool answered = bs_rpc_latency_ns(r, &latency);

	set(f, "t_request_first", instant(r->t_request_first));
	set(f, "t_request_last", instant(r->t_request_last));
	set(f, "t_request_departure", instant(r->t_request_departure));
	set(f, "t_response_first", instant(r->t_response_first));
	set(f, "t_response_last", instant(r->t_response_last));
	set(f, "t_response_departure", instant(r->t_response_departure));
	set(f, "t_response_first_copy", instant(r->t_response_first_copy));
	set(f, "latency_ns", answered ? number(latency) : json_null());
	set(f, "age_ns", answered ? json_null() : number(bs_rpc_extent_ns(r)));
	set(f, "service_ns",
		served && !early ? number(r->t_response_first - r->t_request_departure)
				 : json_null());
	set(f, "early_ns",
		early ? number(r->t_request_departure - r->t_response_first) : json_null());
	set(f, "ttfb_ns", begun ? number(r->t_response_first - r->t_request_first) : json_null());
	set(f, "connect_ns", known(r->connect_ns));
	set(f, "messages", number(r->messages));
	set(f, "max_gap_ns", number(r->max_gap_ns));
}

static json_t *
anomalous_by_json(unsigned by)
{
	static const char *const words[] = {"slo", "evidence", "outlier"};
	struct filling list = {json_array(), false};

	for (unsigned i = 0; i < 3; i++)
		if (by & 1u << i)
			append(&list, json_string(words[i]));
	return filled(&list);
}

static json_t *
root_json(const struct bs_names *names, const struct bs_rec_verdict *v)
{
	struct filling f = {json_object(), false};
	struct filling evidence = {json_array(), false};

	for (unsigned i = 0; i < v->evidence_count; i++)
		if (v->evidence[i] != 0)
			append(&evidence, number(v->evidence[i]));
	set_blame(&f, names, &v->root);
	set(&f, "detail", detail_json(v->detail));
	set(&f, "excess_ns", number(v->excess_ns));
	set(&f, "share", json_real(v->share_ppm / PPM));
	set(&f, "normal_ns", v->baseline_warm ? number(v->normal_ns) : known(v->normal_ns));
	set(&f, "confidence", json_real(v->confidence_ppm / PPM));
	set(&f, "alternatives", blames_json(names, v->alternatives, v->alternative_count));
	set(&f, "via", blames_json(names, v->via, v->via_count));
	set(&f, "evidence", filled(&evidence));
	set(&f, "chronic", json_boolean(v->chronic != 0));
	return filled(&f);
}

static void
set_verdict(struct filling *f, const struct bs_names *names, const struct bs_rec_verdict *v)
{
	bool incident = v != NULL && v->incident_id != 0;
	bool root = v != NULL && v->has_root;

	set(f, "anomalous", v != NULL ? json_boolean(v->anomalous_by != 0) : json_null());
	set(f, "anomalous_by", v != NULL ? anomalous_by_json(v->anomalous_by) : json_null());
	set(f, "baseline",
		v != NULL ? json_string(v->baseline_warm ? "warm" : "cold") : json_null());
	set(f, "root_cause", root ? root_json(names, v) : json_null());
	set(f, "incident", incident ? id(v->incident_id) : json_null());
}

json_t *
bs_report_rpc_json(const struct bs_names *names, const struct bs_rpc_view *view,
	const struct bs_rec_verdict *verdict)
{
	const struct bs_rec_rpc *r = view->rpc;
	struct filling f = {json_object(), false};

	set_identity(&f, names, r);
	set_times(&f, r);
	set(&f, "segments", segments_json(names, view));
	set(&f, "segments_merged", json_boolean((r->flags & BS_RPC_SEGMENTS_MERGED) != 0));
	set(&f, "terms", terms_json(names, view));
	set(&f, "request_bytes", number(r->request_bytes));
	set(&f, "response_bytes", number(r->response_bytes));
	set(&f, "interim_responses", json_integer(r->interim_responses));
	set(&f, "retransmissions", json_integer(r->retransmissions));
	set(&f, "duplicates", json_integer(r->duplicates));
	set(&f, "capture_gaps", json_integer(r->capture_gaps));
	set(&f, "reordered", json_integer(r->reordered));
	set(&f, "events", events_json(names, view));
	set_verdict(&f, names, verdict);
	return filled(&f);
}

json_t *
bs_report_incident_json(
	const struct bs_names *names, const struct bs_rec_incident *incident, const char *advice)
{
	const struct bs_rec_incident *r = incident;
	struct filling f = {json_object(), false};
	struct filling origin = {json_object(), false};
	struct filling services = {json_object(), false};
	struct filling worst = {json_array(), false};

	set_blame(&origin, names, &r->origin);
	set(&origin, "detail", detail_json(r->detail));
	for (unsigned i = 0; i < r->service_count; i++)
		set(&services, bs_names_service(names, r->by_service[i].service),
			number(r->by_service[i].victims));
	for (unsigned i = 0; i < r->worst_count; i++)
		append(&worst, id(r->worst[i]));
	set(&f, "id", id(r->id));
	set(&f, "origin", filled(&origin));
	set(&f, "open", json_boolean(r->open != 0));
	set(&f, "t_begin", instant(r->t_begin));
	set(&f, "t_end", r->open ? json_null() : instant(r->t_end));
	set(&f, "victims", number(r->victims));
	set(&f, "by_service", filled(&services));
	set(&f, "worst", filled(&worst));
	set(&f, "culprits",
		culprits_json(names, r->culprits, r->culprit_kind, r->culprit_count, 0));
	set(&f, "advice", advice != NULL ? text(advice, strlen(advice)) : json_null());
	return filled(&f);
}

static json_t *
quantiles_json(const struct bs_report_quantiles *q)
{
	struct filling f;

	if (q->count == 0)
		return json_null();
	f = (struct filling){json_object(), false};
	set(&f, "min", number(q->min));
	set(&f, "p50", number(q->p50));
	set(&f, "p90", number(q->p90));
	set(&f, "p99", number(q->p99));
	set(&f, "max", number(q->max));
	return filled(&f);
}

json_t *
bs_report_service_json(const struct bs_report_service *service)
{
	const struct bs_report_service *s = service;
	struct filling f = {json_object(), false};

	set(&f, "service", text(s->service, strlen(s->service)));
	set(&f, "protocol",
		s->protocol != NULL ? text(s->protocol, strlen(s->protocol)) : json_null());
	set(&f, "rpcs", number(s->rpcs));
	set(&f, "answered", number(s->answered));
	set(&f, "unanswered", number(s->unanswered));
	set(&f, "oneway", number(s->oneway));
	set(&f, "orphan_responses", number(s->orphan_responses));
	set(&f, "in_progress", number(s->in_progress));
	set(&f, "pushed", number(s->pushed));
	set(&f, "cancelled", number(s->cancelled));
	set(&f, "reset", number(s->reset));
	set(&f, "cut", number(s->cut));
	set(&f, "latency_ns", quantiles_json(&s->latency_ns));
	set(&f, "service_ns", quantiles_json(&s->service_ns));
	return filled(&f);
}
