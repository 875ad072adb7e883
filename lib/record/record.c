/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Layout and validation of records. Each type has one row: its units and the
 * check of what is in it. A record that passes can be read without further
 * checks, whoever wrote it.
 */
#include "bs_record.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define PPM 1000000u
#define VLAN_IDS 4096u
#define ERRNO_MAX 4095u

#define RPC_FLAGS                                                                                  \
	(BS_RPC_PROTOCOL_GUESSED | BS_RPC_ROLE_GUESSED | BS_RPC_SEGMENTS_MERGED | BS_RPC_SAMPLED | \
		BS_RPC_RESPONSE_EARLY | BS_RPC_HAS_STATUS | BS_RPC_TAGGED)
#define BUFFER_PROPERTIES                                                                          \
	(BS_BUFFER_LOSSY | BS_BUFFER_CLASSES | BS_BUFFER_ORDERED | BS_BUFFER_POLLED)

static bool
buffer_ok(unsigned buffer)
{
	return buffer < BS_BUFFER_INFERRED_COUNT ||
	       (buffer >= BS_BUFFER_FIRST_OWN && buffer < BS_BUFFER_MAX);
}

static bool
service_ok(unsigned service)
{
	return service <= BS_MAX_SERVICES;
}

static bool
detail_ok(unsigned detail)
{
	return detail < BS_DETAIL_COUNT ||
	       (detail >= BS_DETAIL_FIRST_REASON &&
		       detail < BS_DETAIL_FIRST_REASON + BS_REASON_COUNT);
}

/* Instants of 0 are not known and fit anywhere. */
static bool
in_order(uint64_t earlier, uint64_t later)
{
	return earlier == 0 || later == 0 || earlier <= later;
}

static bool
kinds_ok(const uint8_t *kinds, unsigned count)
{
	if (count > BS_EVENT_CULPRITS)
		return false;
	for (unsigned i = 0; i < count; i++)
		if (kinds[i] >= BS_CULPRIT_COUNT)
			return false;
	return true;
}

static bool
blames_ok(const struct bs_blame *blames, unsigned count, unsigned max)
{
	if (count > max)
		return false;
	for (unsigned i = 0; i < count; i++)
		if (!buffer_ok(blames[i].buffer) || blames[i].cause >= BS_CAUSE_COUNT)
			return false;
	return true;
}

static bool
hello_ok(const struct bs_record *head)
{
	const struct bs_rec_hello *r = (const void *)head;

	return r->magic == BS_HELLO_MAGIC && r->version == BS_RECORD_VERSION;
}

static bool
name_ok(const struct bs_record *head)
{
	const struct bs_rec_name *r = (const void *)head;

	if (memchr(r->name, '\0', sizeof(r->name)) == NULL || (r->properties & ~BUFFER_PROPERTIES))
		return false;
	switch (r->kind) {
	case BS_NAME_BUFFER:
		return r->number >= BS_BUFFER_FIRST_OWN && buffer_ok(r->number);
	case BS_NAME_SERVICE:
	case BS_NAME_OPERATION:
		return service_ok(r->number);
	case BS_NAME_PROTOCOL:
		return r->number < BS_MAX_PROTOCOLS;
	default:
		return false;
	}
}

static bool
rec_service_ok(const struct bs_record *head)
{
	const struct bs_rec_service *r = (const void *)head;

	return service_ok(r->service);
}

static bool
rec_buffer_ok(const struct bs_record *head)
{
	const struct bs_rec_buffer *r = (const void *)head;

	return buffer_ok(r->buffer);
}

static bool
rpc_instants_ok(const struct bs_rec_rpc *r)
{
	uint64_t latest = 0;
	const uint64_t all[] = {r->t_request_first, r->t_request_last, r->t_request_departure,
		r->t_response_first, r->t_response_last, r->t_response_departure,
		r->t_response_first_copy};

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (!in_order(r->t_request_first, all[i]))
			return false;
		if (all[i] > latest)
			latest = all[i];
	}
	return latest <= r->t_end && in_order(r->t_request_last, r->t_request_departure) &&
	       in_order(r->t_response_first, r->t_response_last) &&
	       in_order(r->t_response_first, r->t_response_departure) &&
	       in_order(r->t_response_last, r->t_response_departure) &&
	       in_order(r->t_response_first_copy, r->t_response_last);
}

static bool
rpc_ok(const struct bs_record *head)
{
	const struct bs_rec_rpc *r = (const void *)head;
	const struct bs_ends *e = &r->ends;

	return (e->transport == 6 || e->transport == 17) &&
	       (e->ip_version == 4 || e->ip_version == 6) && e->vlan[0] < VLAN_IDS &&
	       e->vlan[1] < VLAN_IDS && service_ok(r->service) && r->kind < BS_KIND_COUNT &&
	       r->outcome < BS_OUTCOME_COUNT && (r->flags & ~RPC_FLAGS) == 0 &&
	       r->label_len <= BS_LABEL_BYTES && r->segment_count <= BS_RPC_MAX_SEGMENTS &&
	       r->event_count <= BS_RPC_MAX_EVENTS && rpc_instants_ok(r);
}

static bool
segment_ok(const struct bs_record *head)
{
	const struct bs_rec_segment *r = (const void *)head;

	return r->begin_ns <= r->end_ns && buffer_ok(r->buffer) && detail_ok(r->detail) &&
	       r->cause < BS_CAUSE_COUNT && r->quality < BS_QUALITY_COUNT &&
	       r->culprit_kind < BS_CULPRIT_COUNT;
}

static bool
event_ok(const struct bs_record *head)
{
	const struct bs_rec_event *r = (const void *)head;

	return in_order(r->t_begin, r->t_end) && buffer_ok(r->buffer) && buffer_ok(r->upstream) &&
	       detail_ok(r->detail) && r->type <= BS_CAUSE_HANG && r->quality < BS_QUALITY_COUNT &&
	       kinds_ok(r->culprit_kind, r->culprit_count);
}

static bool
brief_ok(const struct bs_record *head)
{
	const struct bs_rec_brief *r = (const void *)head;

	return service_ok(r->service) && r->outcome < BS_OUTCOME_COUNT;
}

static bool
silence_ok(const struct bs_record *head)
{
	const struct bs_rec_silence *r = (const void *)head;

	return service_ok(r->service) && in_order(r->t_begin, r->t_end);
}

static bool
probe_ok(const struct bs_record *head)
{
	const struct bs_rec_probe *r = (const void *)head;

	return service_ok(r->service) && r->state >= BS_PROBE_STOPPED &&
	       r->state < BS_PROBE_STATE_COUNT && in_order(r->t_begin, r->t_end) &&
	       r->unread <= r->connections && r->unaccepted <= r->connections &&
	       r->unsent <= r->connections;
}

static bool
loss_ok(const struct bs_record *head)
{
	(void)head;
	return true;
}

static bool
threshold_ok(const struct bs_record *head)
{
	const struct bs_rec_threshold *r = (const void *)head;

	return service_ok(r->service);
}

static bool
verdict_ok(const struct bs_record *head)
{
	const struct bs_rec_verdict *r = (const void *)head;

	return r->share_ppm <= PPM && r->confidence_ppm <= PPM && detail_ok(r->detail) &&
	       (r->anomalous_by & ~(BS_BY_SLO | BS_BY_EVIDENCE | BS_BY_OUTLIER)) == 0 &&
	       r->baseline_warm <= 1 && r->chronic <= 1 && r->has_root <= 1 &&
	       r->evidence_count <= BS_VERDICT_EVIDENCE && blames_ok(&r->root, r->has_root, 1) &&
	       blames_ok(r->alternatives, r->alternative_count, BS_VERDICT_ALTERNATIVES) &&
	       blames_ok(r->via, r->via_count, BS_VERDICT_VIA);
}

static bool
incident_ok(const struct bs_record *head)
{
	const struct bs_rec_incident *r = (const void *)head;

	if (!in_order(r->t_begin, r->t_end) || !blames_ok(&r->origin, 1, 1) ||
		!detail_ok(r->detail) || r->open > 1 ||
		!kinds_ok(r->culprit_kind, r->culprit_count) ||
		r->service_count > BS_INCIDENT_SERVICES || r->worst_count > BS_INCIDENT_WORST)
		return false;
	for (unsigned i = 0; i < r->service_count; i++)
		if (!service_ok(r->by_service[i].service))
			return false;
	return true;
}

static bool
journal_ok(const struct bs_record *head)
{
	const struct bs_rec_journal *r = (const void *)head;

	return r->error <= ERRNO_MAX && r->last_error <= ERRNO_MAX;
}

/* Type, struct, units, check. Units are written out: a layout that changes size must not go unseen.
 */
#define RECORDS(X)                                                                                 \
	X(BS_REC_HELLO, struct bs_rec_hello, 2, hello_ok)                                          \
	X(BS_REC_NAME, struct bs_rec_name, 2, name_ok)                                             \
	X(BS_REC_SERVICE, struct bs_rec_service, 2, rec_service_ok)                                \
	X(BS_REC_BUFFER, struct bs_rec_buffer, 1, rec_buffer_ok)                                   \
	X(BS_REC_RPC, struct bs_rec_rpc, 6, rpc_ok)                                                \
	X(BS_REC_SEGMENT, struct bs_rec_segment, 1, segment_ok)                                    \
	X(BS_REC_EVENT, struct bs_rec_event, 2, event_ok)                                          \
	X(BS_REC_BRIEF, struct bs_rec_brief, 1, brief_ok)                                          \
	X(BS_REC_SILENCE, struct bs_rec_silence, 1, silence_ok)                                    \
	X(BS_REC_PROBE, struct bs_rec_probe, 1, probe_ok)                                          \
	X(BS_REC_LOSS, struct bs_rec_loss, 1, loss_ok)                                             \
	X(BS_REC_THRESHOLD, struct bs_rec_threshold, 1, threshold_ok)                              \
	X(BS_REC_VERDICT, struct bs_rec_verdict, 3, verdict_ok)                                    \
	X(BS_REC_INCIDENT, struct bs_rec_incident, 4, incident_ok)                                 \
	X(BS_REC_JOURNAL, struct bs_rec_journal, 2, journal_ok)

#define CHECK_SIZE(type, layout, count, check)                                                     \
	static_assert(sizeof(layout) == (count)*BS_UNIT_BYTES, #layout " is not its units");       \
	static_assert((count) <= BS_RECORD_MAX_UNITS, #layout " is too large");
RECORDS(CHECK_SIZE)

#define ROW(type, layout, count, check) [type] = {count, check},
static const struct {
	uint8_t units;
	bool (*check)(const struct bs_record *head);
} rows[BS_REC_TYPE_COUNT] = {RECORDS(ROW)};

void
bs_record_head(struct bs_record *head, enum bs_record_type type, unsigned source)
{
	head->type = (uint8_t)type;
	head->units = (uint8_t)bs_record_units(type);
	head->source = (uint16_t)source;
	head->sequence = 0;
}

unsigned
bs_record_units(unsigned type)
{
	return type < BS_REC_TYPE_COUNT ? rows[type].units : 0;
}

/* The record at `data` if it is whole and in range, else NULL. */
static const struct bs_record *
record_at(const void *data, size_t bytes)
{
	const struct bs_record *head = data;
	unsigned units;

	if (bytes < BS_UNIT_BYTES)
		return NULL;
	units = bs_record_units(head->type);
	if (units == 0 || head->units != units || bytes / BS_UNIT_BYTES < units)
		return NULL;
	return rows[head->type].check(head) ? head : NULL;
}

const struct bs_record *
bs_record_next(const void *data, size_t bytes, size_t *offset, int *error)
{
	const struct bs_record *head = NULL;

	*error = 0;
	if (*offset == bytes)
		return NULL;
	if (*offset < bytes && *offset % BS_UNIT_BYTES == 0)
		head = record_at((const uint8_t *)data + *offset, bytes - *offset);
	if (head == NULL)
		*error = -EBADMSG;
	else
		*offset += (size_t)head->units * BS_UNIT_BYTES;
	return head;
}

uint64_t
bs_record_instant(const struct bs_record *record)
{
	const void *r = record;

	switch (record->type) {
	case BS_REC_SERVICE:
		return ((const struct bs_rec_service *)r)->t;
	case BS_REC_BUFFER:
		return ((const struct bs_rec_buffer *)r)->t;
	case BS_REC_RPC:
		return ((const struct bs_rec_rpc *)r)->t_end;
	case BS_REC_EVENT:
		return ((const struct bs_rec_event *)r)->t_end;
	case BS_REC_BRIEF:
		return ((const struct bs_rec_brief *)r)->t_end;
	case BS_REC_SILENCE:
		return ((const struct bs_rec_silence *)r)->t_end;
	case BS_REC_PROBE:
		return ((const struct bs_rec_probe *)r)->t_end;
	case BS_REC_VERDICT:
		return ((const struct bs_rec_verdict *)r)->t;
	case BS_REC_LOSS:
		return ((const struct bs_rec_loss *)r)->t;
	default:
		return 0;
	}
}

int
bs_rpc_view(const void *data, size_t bytes, struct bs_rpc_view *view, size_t *group_bytes)
{
	const struct bs_record *head = record_at(data, bytes);
	const uint8_t *at = data;
	size_t offset = sizeof(*view->rpc);

	if (head == NULL || head->type != BS_REC_RPC)
		return -EBADMSG;
	view->rpc = data;
	view->segments = (const void *)(at + offset);
	for (unsigned i = 0; i < view->rpc->segment_count; i++) {
		head = record_at(at + offset, bytes - offset);
		if (head == NULL || head->type != BS_REC_SEGMENT ||
			view->segments[i].rpc_id != view->rpc->id)
			return -EBADMSG;
		offset += sizeof(view->segments[i]);
	}
	view->events = (const void *)(at + offset);
	for (unsigned i = 0; i < view->rpc->event_count; i++) {
		head = record_at(at + offset, bytes - offset);
		if (head == NULL || head->type != BS_REC_EVENT ||
			view->events[i].rpc_id != view->rpc->id)
			return -EBADMSG;
		offset += sizeof(view->events[i]);
	}
	*group_bytes = offset;
	return 0;
}

/* Departure where there is one: a copy that we queue is not delivered before that. */
static uint64_t
response_end(const struct bs_rec_rpc *rpc)
{
	return rpc->t_response_departure != 0 ? rpc->t_response_departure : rpc->t_response_last;
}

bool
bs_rpc_latency_ns(const struct bs_rec_rpc *rpc, uint64_t *latency_ns)
{
	uint64_t end = response_end(rpc);

	*latency_ns = 0;
	if (rpc->outcome != BS_OUTCOME_ANSWERED || rpc->t_request_first == 0 || end == 0)
		return false;
	*latency_ns = end - rpc->t_request_first;
	return true;
}

uint64_t
bs_rpc_extent_ns(const struct bs_rec_rpc *rpc)
{
	uint64_t begin = rpc->t_request_first;
	uint64_t extent;

	if (bs_rpc_latency_ns(rpc, &extent))
		return extent;
	if (begin == 0)
		begin = rpc->t_response_first;
	return begin == 0 ? 0 : rpc->t_end - begin;
}

int
bs_rpc_check_tiling(const struct bs_rpc_view *view, unsigned *bad)
{
	uint64_t extent = bs_rpc_extent_ns(view->rpc);
	uint64_t reached = 0;
	unsigned count = view->rpc->segment_count;

	for (unsigned i = 0; i < count; i++) {
		const struct bs_rec_segment *s = &view->segments[i];

		*bad = i;
		if (s->begin_ns != reached || s->end_ns > extent || !segment_ok(&s->head))
			return -EINVAL;
		reached = s->end_ns;
	}
	if (reached == extent)
		return 0;
	*bad = count > 0 ? count - 1 : 0;
	return -EINVAL;
}
