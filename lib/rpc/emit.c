/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tracker has to tell, as records: an RPC that ended, in full with its
 * segments and events if there is something to see, else in one unit; silences
 * of services; names of discovered services.
 */
#include "track.h"

#include <assert.h>
#include <string.h>

static bool
put(struct bs_tracker *tracker, void *units, unsigned unit_count)
{
	((struct bs_record *)units)->sequence = tracker->record_sequence++;
	if (tracker->config.sink.put(tracker->config.sink.context, units, unit_count) != 0) {
		count(tracker, BS_TRACK_RECORDS_LOST, 1);
		return false;
	}
	count(tracker, BS_TRACK_RECORDS, 1);
	return true;
}

void
flow_ends(const struct flow *flow, struct bs_ends *ends)
{
	unsigned client = flow->client_end;

	memcpy(ends->client, flow->tuple.addr[client], sizeof(ends->client));
	memcpy(ends->server, flow->tuple.addr[!client], sizeof(ends->server));
	ends->client_port = flow->tuple.port[client];
	ends->server_port = flow->tuple.port[!client];
	ends->vlan[0] = flow->tuple.vlan[0];
	ends->vlan[1] = flow->tuple.vlan[1];
	ends->transport = flow->tuple.transport;
	ends->ip_version = flow->tuple.ip_version;
}

static uint8_t
protocol_of(const struct flow *flow)
{
	return flow->framer == NULL ? BS_PROTOCOL_OPAQUE : flow->framer->protocol;
}

static uint16_t
flow_flags(const struct flow *flow)
{
	return (uint16_t)((flow->protocol_guessed ? BS_RPC_PROTOCOL_GUESSED : 0) |
			  (flow->role_guessed ? BS_RPC_ROLE_GUESSED : 0));
}

static uint64_t
max_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/*
 * The instants as readers may rely on them (bs_record_next), whatever the order
 * in which a capture has its packets and whatever its clock did.
 */
static void
fill_instants(struct bs_rec_rpc *rec, const struct rpc *rpc, uint64_t t)
{
	const uint64_t first = rpc->t_first[TO_SERVICE];
	uint64_t *const known[] = {&rec->t_request_last, &rec->t_request_departure,
		&rec->t_response_first, &rec->t_response_last, &rec->t_response_departure,
		&rec->t_response_first_copy};

	rec->t_request_first = first;
	rec->t_request_last = rpc->ended[TO_SERVICE] ? rpc->t_last[TO_SERVICE] : 0;
	rec->t_request_departure = rpc->t_departure[TO_SERVICE];
	rec->t_response_first = rpc->t_first[FROM_SERVICE];
	rec->t_response_last = rpc->t_last[FROM_SERVICE];
	rec->t_response_departure = rpc->t_departure[FROM_SERVICE];
	rec->t_response_first_copy = rpc->t_first_copy[FROM_SERVICE];
	rec->t_end = max_of(t, first);
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (*known[i] != 0)
			*known[i] = max_of(*known[i], first);
	}
	if (rec->t_request_departure != 0)
		rec->t_request_departure = max_of(rec->t_request_departure, rec->t_request_last);
	/* an answer to a whole request cannot come before it was handed on */
	if (rec->t_response_first != 0 && !rpc->early)
		rec->t_response_first = max_of(rec->t_response_first, rec->t_request_departure);
	if (rec->t_response_last != 0)
		rec->t_response_last = max_of(rec->t_response_last, rec->t_response_first);
	if (rec->t_response_departure != 0)
		rec->t_response_departure = max_of(rec->t_response_departure, rec->t_response_last);
	if (rec->t_response_first_copy > rec->t_response_last)
		rec->t_response_first_copy = rec->t_response_last;
	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		rec->t_end = max_of(rec->t_end, *known[i]);
}

static void
fill_rpc(const struct bs_tracker *tracker, struct bs_rec_rpc *rec, const struct flow *flow,
	const struct rpc *rpc, uint64_t t)
{
	memset(rec, 0, sizeof(*rec));
	bs_record_head(&rec->head, BS_REC_RPC, tracker->config.source);
	rec->id = rpc->id;
	flow_ends(flow, &rec->ends);
	fill_instants(rec, rpc, t);
	if (rpc->first_of_flow)
		rec->connect_ns = flow->connect_ns;
	rec->request_bytes = rpc->bytes[TO_SERVICE];
	rec->response_bytes = rpc->bytes[FROM_SERVICE];
	rec->messages =
		(uint32_t)(rpc->ended[TO_SERVICE] + rpc->ended[FROM_SERVICE] + rpc->interims);
	rec->stream = flow->stream;
	rec->operation_hash = rpc->operation_hash;
	rec->pending = rpc->pending;
	rec->retransmissions = rpc->retransmissions;
	rec->duplicates = rpc->duplicates;
	rec->capture_gaps = rpc->gaps;
	rec->reordered = rpc->reordered;
	rec->interim_responses = rpc->interims;
	rec->max_gap_ns = rpc->max_gap_ns;
	memcpy(rec->trace_id, rpc->trace_id, sizeof(rec->trace_id));
	memcpy(rec->parent_span_id, rpc->parent_span_id, sizeof(rec->parent_span_id));
	rec->service = flow->service;
	if (!tracker->config.discover && flow->service < tracker->service_count)
		rec->class_ = tracker->config.services[flow->service].class_;
	rec->protocol = protocol_of(flow);
	rec->outcome = rpc->outcome;
	rec->label_len = rpc->label_len;
	memcpy(rec->label, rpc->label, rpc->label_len);
	rec->flags = flow_flags(flow);
	if (rpc->has_status) {
		rec->status = rpc->status;
		rec->flags |= BS_RPC_HAS_STATUS;
	}
	if (rpc->early)
		rec->flags |= BS_RPC_RESPONSE_EARLY;
	if (rpc->tagged)
		rec->flags |= BS_RPC_TAGGED;
	/* only a blocker that finished after the request was handed on has held it up */
	if (rpc->t_earlier_finish > rec->t_request_departure) {
		rec->blocker_id = rpc->blocker_id;
		rec->t_earlier_finish = rpc->t_earlier_finish;
	}
}

/* How long the service had an earlier RPC of the connection to finish first. */
static uint64_t
blocked_ns(const struct bs_rec_rpc *rec)
{
	uint64_t end = rec->t_earlier_finish;

	if (rec->t_response_first != 0 && end > rec->t_response_first)
		end = rec->t_response_first;
	return end > rec->t_request_departure ? end - rec->t_request_departure : 0;
}

/* A request resent for nothing had arrived: from when it was given, the time is the service's. */
static void
spare_service(struct bs_mark *mark, const struct bs_rec_rpc *rec)
{
	if (mark->response || rec->t_request_departure == 0 ||
		mark->end <= rec->t_request_departure)
		return;
	mark->end = mark->begin > rec->t_request_departure ? mark->begin : rec->t_request_departure;
}

/* All evidence of an RPC: its marks, its stays, its blocker. */
static unsigned
collect_marks(const struct bs_tracker *tracker, const struct rpc *rpc, const struct bs_rec_rpc *rec,
	struct bs_mark marks[BS_PATH_MAX_MARKS])
{
	unsigned n = 0;

	for (unsigned d = 0; d < 2; d++) {
		for (unsigned i = 0; i < rpc->stay_count[d] && n + STAY_PARTS <= BS_PATH_MAX_MARKS;
			i++)
			n += own_stay_marks(&rpc->stay[d][i], d == FROM_SERVICE, &marks[n]);
	}
	if (rec->blocker_id != 0 && n < BS_PATH_MAX_MARKS) {
		struct bs_mark *mark = &marks[n++];

		memset(mark, 0, sizeof(*mark));
		mark->begin = rec->t_request_departure;
		mark->end = mark->begin + blocked_ns(rec);
		mark->kind = BS_MARK_EARLIER_RPC;
		mark->buffer = BS_BUFFER_SERVICE;
		mark->cause = BS_CAUSE_CONTENTION;
		mark->quality = BS_QUALITY_EXACT;
		mark->culprit_id = rec->blocker_id;
		mark->culprit_kind = BS_CULPRIT_RPC;
	}
	for (uint32_t at = rpc->marks; at != NONE && n < BS_PATH_MAX_MARKS;
		at = tracker->marks[at].next) {
		const struct mark_node *node = &tracker->marks[at];

		marks[n] = node->mark;
		if (node->open && rec->outcome != BS_OUTCOME_ANSWERED)
			marks[n].end = rec->t_end; /* dropped by us and never resent */
		if (node->spurious)
			spare_service(&marks[n], rec);
		n++;
	}
	return n;
}

static void
culprit_join(struct bs_rec_event *event, const struct bs_rec_segment *segment, uint64_t ns)
{
	unsigned i = 0;

	while (i < event->culprit_count && (event->culprit_kind[i] != segment->culprit_kind ||
						   event->culprits[i].id != segment->culprit_id))
		i++;
	if (i == BS_EVENT_CULPRITS)
		return;
	if (i == event->culprit_count) {
		event->culprit_kind[i] = segment->culprit_kind;
		event->culprits[i].id = segment->culprit_id;
		event->culprit_count++;
	}
	event->culprits[i].ns += ns;
}

/* Joins a segment to the event of its (buffer, cause), making one if there is none. */
static void
event_join(struct bs_rec_event *events, unsigned *n, const struct bs_rec_rpc *rec,
	const struct bs_rec_segment *segment)
{
	const uint64_t ns = segment->end_ns - segment->begin_ns;
	struct bs_rec_event *event = NULL;

	for (unsigned i = 0; i < *n && event == NULL; i++) {
		if (events[i].buffer == segment->buffer && events[i].type == segment->cause)
			event = &events[i];
	}
	if (event == NULL) {
		if (*n == BS_RPC_MAX_EVENTS)
			return;
		event = &events[(*n)++];
		memset(event, 0, sizeof(*event));
		bs_record_head(&event->head, BS_REC_EVENT, rec->head.source);
		event->rpc_id = rec->id;
		event->t_begin = rec->t_request_first + segment->begin_ns;
		event->buffer = segment->buffer;
		event->detail = segment->detail;
		event->type = segment->cause;
		event->quality = segment->quality;
	}
	event->t_end = rec->t_request_first + segment->end_ns;
	event->blocking_ns += ns;
	event->count++;
	if (segment->quality > event->quality)
		event->quality = segment->quality;
	if (segment->culprit_kind != BS_CULPRIT_NONE)
		culprit_join(event, segment, ns);
}

/* One event per (buffer, type) whose time on the critical path reached the type's threshold. */
static unsigned
make_events(const struct bs_tracker *tracker, struct bs_rec_rpc *rec,
	const struct bs_rec_segment *segments, struct bs_rec_event events[BS_RPC_MAX_EVENTS])
{
	unsigned n = 0, kept = 0;

	for (unsigned i = 0; i < rec->segment_count; i++) {
		if (segments[i].cause <= BS_CAUSE_HANG)
			event_join(events, &n, rec, &segments[i]);
	}
	for (unsigned i = 0; i < n; i++) {
		if (events[i].blocking_ns >= tracker->config.detect_ns[events[i].type])
			events[kept++] = events[i];
	}
	rec->event_count = (uint16_t)kept;
	return kept;
}

static void
count_outcome(struct bs_tracker *tracker, const struct bs_rec_rpc *rec)
{
	struct bs_rec_service *counters = &tracker->services[rec->service].counters;
	uint64_t *const by_outcome[BS_OUTCOME_COUNT] = {
		[BS_OUTCOME_ANSWERED] = &counters->answered,
		[BS_OUTCOME_UNANSWERED] = &counters->unanswered,
		[BS_OUTCOME_ONEWAY] = &counters->oneway,
		[BS_OUTCOME_ORPHAN_RESPONSE] = &counters->orphan_responses,
		[BS_OUTCOME_CUT] = &counters->cut,
		[BS_OUTCOME_RESET] = &counters->reset_,
	};
	struct bs_histo *histos = tracker->services[rec->service].histos;
	uint64_t *counter = by_outcome[rec->outcome], latency_ns;

	if (counter != NULL)
		add(counter, 1);
	if (bs_rpc_latency_ns(rec, &latency_ns)) {
		bs_histo_add(&histos[BS_TRACKER_LATENCY], latency_ns);
		if (rec->t_request_departure != 0 &&
			rec->t_response_first >= rec->t_request_departure)
			bs_histo_add(&histos[BS_TRACKER_SERVICE],
				rec->t_response_first - rec->t_request_departure);
	}
	add(&counters->request_bytes, rec->request_bytes);
	add(&counters->response_bytes, rec->response_bytes);
}

static uint64_t
stay_longest(const struct rpc *rpc)
{
	uint64_t longest = 0;

	for (unsigned d = 0; d < 2; d++) {
		for (unsigned i = 0; i < rpc->stay_count[d]; i++) {
			uint64_t ns = rpc->stay[d][i].t_out - rpc->stay[d][i].t_in;

			if (ns > longest)
				longest = ns;
		}
	}
	return longest;
}

static bool
is_sampled(struct bs_tracker *tracker)
{
	if (tracker->config.sample == 0 || --tracker->sample_left > 0)
		return false;
	tracker->sample_left = tracker->config.sample;
	return true;
}

static bool
instants_in_order(const struct bs_rec_rpc *rec)
{
	return rec->t_request_first <= rec->t_request_last &&
	       rec->t_request_last <= rec->t_request_departure &&
	       rec->t_request_departure <= rec->t_response_first &&
	       rec->t_response_first <= rec->t_response_last &&
	       rec->t_response_last <= rec->t_response_departure;
}

/* Is there nothing to see, so that one unit will do? */
static bool
is_brief(const struct bs_tracker *tracker, const struct rpc *rpc, const struct bs_rec_rpc *rec)
{
	const uint64_t *detect = tracker->config.detect_ns;
	const uint64_t threshold =
		__atomic_load_n(&tracker->services[rec->service].threshold_ns, __ATOMIC_RELAXED);
	uint64_t least = detect[BS_CAUSE_PAUSE], latency;

	for (unsigned i = BS_CAUSE_PAUSE; i <= BS_CAUSE_HANG; i++)
		least = detect[i] < least ? detect[i] : least;
	return rec->outcome == BS_OUTCOME_ANSWERED && rpc->marks == NONE && rpc->gaps == 0 &&
	       !rpc->early && bs_rpc_latency_ns(rec, &latency) && latency < threshold &&
	       latency < UINT32_MAX && stay_longest(rpc) < least && instants_in_order(rec) &&
	       (rec->blocker_id == 0 || blocked_ns(rec) < detect[BS_CAUSE_CONTENTION]);
}

static void
emit_brief(struct bs_tracker *tracker, const struct bs_rec_rpc *rec)
{
	struct bs_rec_brief brief;

	memset(&brief, 0, sizeof(brief));
	bs_record_head(&brief.head, BS_REC_BRIEF, tracker->config.source);
	brief.t_end = rec->t_end;
	brief.operation_hash = rec->operation_hash;
	brief.service = rec->service;
	brief.protocol = rec->protocol;
	brief.outcome = rec->outcome;
	brief.request_bytes =
		rec->request_bytes < UINT32_MAX ? (uint32_t)rec->request_bytes : UINT32_MAX;
	brief.response_bytes =
		rec->response_bytes < UINT32_MAX ? (uint32_t)rec->response_bytes : UINT32_MAX;
	brief.request_ns = (uint32_t)(rec->t_request_last - rec->t_request_first);
	brief.in_ns = (uint32_t)(rec->t_request_departure - rec->t_request_last);
	brief.service_ns = (uint32_t)(rec->t_response_first - rec->t_request_departure);
	brief.response_ns = (uint32_t)(rec->t_response_last - rec->t_response_first);
	brief.out_ns = (uint32_t)(rec->t_response_departure - rec->t_response_last);
	put(tracker, &brief, BS_UNITS_OF(struct bs_rec_brief));
}

void
emit_rpc(struct bs_tracker *tracker, struct flow *flow, struct rpc *rpc, uint64_t t)
{
	struct bs_rec_rpc *rec = (struct bs_rec_rpc *)tracker->group;
	struct bs_rec_segment *segments = (struct bs_rec_segment *)(rec + 1);
	struct bs_mark marks[BS_PATH_MAX_MARKS];
	struct bs_rec_event events[BS_RPC_MAX_EVENTS];
	unsigned mark_count, segment_count, event_count, bad;
	bool brief;

	fill_rpc(tracker, rec, flow, rpc, t);
	count_outcome(tracker, rec);
	if (is_sampled(tracker))
		rec->flags |= BS_RPC_SAMPLED;
	brief = !(rec->flags & BS_RPC_SAMPLED) && is_brief(tracker, rpc, rec);
	if (!brief || tracker->config.check) {
		mark_count = collect_marks(tracker, rpc, rec, marks);
		segment_count = bs_path_build(rec, marks, mark_count, segments);
		event_count = make_events(tracker, rec, segments, events);
	}
	if (tracker->config.check) {
		struct bs_rpc_view view = {rec, segments, events};

		assert(bs_rpc_check_tiling(&view, &bad) == 0);
		(void)bad;
	}
	if (brief) {
		emit_brief(tracker, rec);
		return;
	}
	memcpy(&segments[segment_count], events, event_count * sizeof(events[0]));
	put(tracker, rec,
		BS_UNITS_OF(struct bs_rec_rpc) +
			segment_count * BS_UNITS_OF(struct bs_rec_segment) +
			event_count * BS_UNITS_OF(struct bs_rec_event));
}

void
emit_orphan(struct step *step)
{
	struct bs_tracker *tracker = step->tracker;
	const struct flow *flow = step->flow;
	struct bs_rec_rpc *rec = (struct bs_rec_rpc *)tracker->group;
	unsigned segment_count;

	memset(rec, 0, sizeof(*rec));
	bs_record_head(&rec->head, BS_REC_RPC, tracker->config.source);
	rec->id = rpc_new_id(tracker);
	flow_ends(flow, &rec->ends);
	rec->t_response_first = flow->dir[FROM_SERVICE].t_message;
	rec->t_end = max_of(step->t, rec->t_response_first);
	rec->stream = flow->stream;
	rec->messages = 1;
	rec->service = flow->service;
	rec->protocol = protocol_of(flow);
	rec->outcome = BS_OUTCOME_ORPHAN_RESPONSE;
	rec->flags = flow_flags(flow);
	count_outcome(tracker, rec);
	segment_count = bs_path_build(rec, NULL, 0, (struct bs_rec_segment *)(rec + 1));
	put(tracker, rec,
		BS_UNITS_OF(struct bs_rec_rpc) +
			segment_count * BS_UNITS_OF(struct bs_rec_segment));
}

void
emit_silence(struct bs_tracker *tracker, unsigned service, uint64_t t_begin, uint64_t t_end,
	uint64_t mover)
{
	struct bs_rec_silence silence;

	memset(&silence, 0, sizeof(silence));
	bs_record_head(&silence.head, BS_REC_SILENCE, tracker->config.source);
	silence.t_begin = t_begin;
	silence.t_end = t_end;
	silence.mover_id = mover;
	silence.pending = tracker->services[service].pending;
	silence.service = (uint16_t)service;
	put(tracker, &silence, BS_UNITS_OF(struct bs_rec_silence));
}

void
emit_service_name(struct bs_tracker *tracker, unsigned service)
{
	const struct bs_tracker_service *given = &tracker->discovered[service];
	char text[BS_ENDPOINT_TEXT_BYTES];
	struct bs_rec_name name;

	memset(&name, 0, sizeof(name));
	bs_record_head(&name.head, BS_REC_NAME, tracker->config.source);
	name.kind = BS_NAME_SERVICE;
	name.number = (uint16_t)service;
	name.port = given->port;
	memcpy(name.address, given->address, sizeof(name.address));
	bs_endpoint_text(given->address, given->port, text);
	memcpy(name.name, text, strnlen(text, sizeof(name.name) - 1));
	put(tracker, &name, BS_UNITS_OF(struct bs_rec_name));
}
