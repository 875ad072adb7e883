/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands and their answers. Keys and shapes: doc/guide.md. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bs_diag.h"
#include "bs_report.h"
#include "status.h"

#define X_KEY(name, key, help) [BS_TAG_##name] = key,
#define X_FRAME_KEY(name, key, help) [BS_FRAME_##name] = key,
static const char *const tag_keys[BS_TAG_COUNT] = {BS_TAG_COUNTERS(X_KEY)};

const char *
bs_tag_counter_key(unsigned counter)
{
	return counter < BS_TAG_COUNT ? tag_keys[counter] : "?";
}

static const char *const frame_keys[BS_FRAME_COUNT] = {BS_FRAME_COUNTERS(X_FRAME_KEY)};

const char *
bs_frame_counter_key(unsigned counter)
{
	return counter < BS_FRAME_COUNT ? frame_keys[counter] : "?";
}

#define X_HANDOVER_KEY(name, key, help) [BS_HANDOVER_##name] = key,
static const char *const handover_keys[BS_HANDOVER_COUNT] = {BS_HANDOVER_COUNTERS(X_HANDOVER_KEY)};

const char *
bs_handover_counter_key(unsigned counter)
{
	return counter < BS_HANDOVER_COUNT ? handover_keys[counter] : "?";
}

static json_t *
number(uint64_t value)
{
	return json_integer(value <= INT64_MAX ? (json_int_t)value : INT64_MAX);
}

static json_t *
instant(uint64_t t)
{
	return t != 0 ? json_sprintf("%" PRIu64, t) : json_null();
}

/* Names from drivers and command lines; they may be cut in the middle of a character. */
static json_t *
ascii(const char *text)
{
	char out[BS_CONFIG_TEXT];
	size_t i;

	for (i = 0; text[i] != '\0' && i < sizeof(out) - 1; i++)
		out[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	out[i] = '\0';
	return json_string(out);
}

/* Appends the entry of a list; a NULL entry drops the list, so that one check at the end is enough.
 */
static void
append(json_t **list, json_t *entry)
{
	if (*list != NULL && json_array_append_new(*list, entry) != 0) {
		json_decref(*list);
		*list = NULL;
	} else if (*list == NULL) {
		json_decref(entry);
	}
}

static int
give(json_t *object, json_t **result, char error[BS_STATUS_ERROR_BYTES])
{
	if (object == NULL) {
		snprintf(error, BS_STATUS_ERROR_BYTES, "out of memory");
		return -ENOMEM;
	}
	*result = object;
	return 0;
}

static int
parse_offset(const char *params, unsigned *offset, char error[BS_STATUS_ERROR_BYTES])
{
	unsigned long value;
	char *end;

	*offset = 0;
	if (params == NULL || params[0] == '\0')
		return 0;
	errno = 0;
	value = strtoul(params, &end, 10);
	if (params[0] < '0' || params[0] > '9' || *end != '\0' || errno != 0 ||
		value > UINT32_MAX) {
		snprintf(error, BS_STATUS_ERROR_BYTES,
			"the offset must be a whole number (allowed: 0 to 4294967295)");
		return -EINVAL;
	}
	*offset = (unsigned)value;
	return 0;
}

/* A page of a list: `total` entries are there in all, `list` begins with number `offset`. */
static int
give_page(const char *key, json_t *list, unsigned offset, unsigned total, json_t **result,
	char error[BS_STATUS_ERROR_BYTES])
{
	unsigned next = offset + (unsigned)json_array_size(list);

	return give(json_pack("{s:I, s:I, s:o, s:o}", "total", (json_int_t)total, "offset",
			    (json_int_t)offset, "next",
			    offset < total && next < total ? number(next) : json_null(), key, list),
		result, error);
}

/* The same for a list that is here as a whole. */
static int
give_list(const char *key, json_t *list, const char *params, json_t **result,
	char error[BS_STATUS_ERROR_BYTES])
{
	unsigned offset, total = (unsigned)json_array_size(list);

	if (parse_offset(params, &offset, error) != 0) {
		json_decref(list);
		return -EINVAL;
	}
	for (unsigned i = 0; i < offset && i < total; i++)
		json_array_remove(list, 0);
	return give_page(key, list, offset, total, result, error);
}

static json_t *
port_json(const struct bs_snapshot_port *port)
{
	return json_pack("{s:o, s:o, s:o, s:b, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
			 "s:o}",
		"port", ascii(port->name), "device", ascii(port->device), "driver",
		ascii(port->driver), "link_up", port->link_up, "numa", port->numa, "mtu", port->mtu,
		"queues", port->queues, "rx_packets", number(port->rx_packets), "rx_bytes",
		number(port->rx_bytes), "tx_packets", number(port->tx_packets), "tx_bytes",
		number(port->tx_bytes), "rx_missed",
		port->rx_missed_observable ? number(port->rx_missed) : json_null(), "rx_nombuf",
		number(port->rx_nombuf), "rx_errors", number(port->rx_errors), "rate_bps",
		port->rate_bps != 0 ? number(port->rate_bps) : json_null());
}

/* Null: the driver does not count them, so that it is not known. */
static json_t *
pauses(const struct bs_watched_port *watched, enum bs_finding finding)
{
	const bool observable = finding == BS_FINDING_PAUSE_SENT
					? watched->pause_sent_observable
					: watched->pause_received_observable;

	return observable ? number(watched->found[finding].count) : json_null();
}

static json_t *
port_in_full(const struct bs_snapshot_port *port)
{
	json_t *object = port_json(port);

	json_object_set_new(object, "queued", number(port->queued));
	json_object_set_new(object, "dropped", number(port->ended));
	json_object_set_new(object, "unaccounted", json_integer(port->unaccounted));
	json_object_set_new(object, "handed_over", number(port->handed_over));
	json_object_set_new(object, "handed_over_share",
		port->taken > 0 ? json_real((double)port->handed_over / (double)port->taken)
				: json_null());
	json_object_set_new(object, "rss", json_boolean(port->rss));
	json_object_set_new(
		object, "pause_received", pauses(&port->watched, BS_FINDING_PAUSE_RECEIVED));
	json_object_set_new(object, "pause_sent", pauses(&port->watched, BS_FINDING_PAUSE_SENT));
	json_object_set_new(object, "rx_stamps", ascii(port->rx_stamps));
	return object;
}

static json_t *
pool_json(const struct bs_watched_pool *pool)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "mbufs", number(pool->size), "in_use",
		number(pool->in_use), "held", pool->t_held != 0 ? number(pool->held) : json_null(),
		"t_held", instant(pool->t_held));
}

static json_t *
counts(const uint64_t *values, unsigned count, const char *(*key)(unsigned))
{
	json_t *object = json_object();

	for (unsigned i = 0; i < count; i++)
		json_object_set_new(object, key(i), number(values[i]));
	return object;
}

#define X_JOURNAL_KEY(field, key, help) key,
#define X_JOURNAL_VALUE(field, key, help) journal->field,
static const char *const journal_keys[] = {BS_JOURNAL_COUNTERS(X_JOURNAL_KEY)};
#define JOURNAL_COUNT (sizeof(journal_keys) / sizeof(journal_keys[0]))

static const char *
journal_key(unsigned counter)
{
	return journal_keys[counter];
}

static json_t *
journal_counts(const struct bs_rec_journal *journal)
{
	const uint64_t values[] = {BS_JOURNAL_COUNTERS(X_JOURNAL_VALUE)};

	return counts(values, JOURNAL_COUNT, journal_key);
}

static json_t *
error_text(uint32_t error)
{
	return error != 0 ? json_string(strerror((int)error)) : json_null();
}

/* null: there is none. */
static json_t *
journal_json(const struct bs_config *config, const struct bs_rec_journal *journal)
{
	json_t *object, *totals;

	if (config->journal.path[0] == '\0')
		return json_null();
	object = json_pack("{s:o, s:i, s:o, s:o, s:i, s:o, s:o}", "path",
		json_string(config->journal.path), "files", (int)config->journal.files,
		"size_bytes", number(config->journal.bytes), "file",
		journal->file != 0 ? number(journal->file) : json_null(), "slot",
		(int)journal->slot, "error", error_text(journal->error), "last_error",
		error_text(journal->last_error));
	totals = journal_counts(journal);
	json_object_update(object, totals);
	json_decref(totals);
	return object;
}

static uint64_t
lost_records(const struct bs_rec_loss *loss)
{
	return loss->ring_full + loss->over_budget + loss->socket_full + loss->no_memory;
}

static json_t *
clock_json(const struct bs_tsc_clock *clock)
{
	return json_pack("{s:o, s:o, s:o, s:b, s:I, s:o}", "tsc_hz", number(clock->hz),
		"tsc_error_ppm", number(clock->error_ppm), "tsc_uneven", number(clock->uneven),
		"tsc_invariant", clock->invariant, "wall_offset_ns",
		(json_int_t)clock->wall_offset_ns, "wall_steps", number(clock->wall_steps));
}

static json_t *
privileges_json(const struct bs_privileges *privileges)
{
	json_t *kept = json_array();

	if (privileges == NULL) {
		json_decref(kept);
		return json_null();
	}
	for (unsigned i = 0; i < privileges->kept_count; i++)
		append(&kept, json_pack("{s:s, s:s}", "capability", privileges->kept[i].name, "why",
				      privileges->kept[i].why));
	return json_pack("{s:b, s:s, s:o}", "dropped", privileges->dropped, "user",
		privileges->user, "kept", kept);
}

static json_t *
analyzer_json(const struct bs_status_source *source, const struct bs_snapshot *snapshot)
{
	const struct bs_config *config = source->config;
	const char *mode = config->analyzer.child      ? "child"
			   : config->analyzer.external ? "external"
						       : "off";

	return json_pack("{s:s, s:s?, s:b, s:i, s:o, s:o}", "mode", mode, "user",
		source->analyzer_user, "connected", snapshot->analyzer_connected, "restarts",
		(int)snapshot->analyzer_restarts, "bad_records",
		number(snapshot->analyzer_bad_records), "rejected",
		number(snapshot->analyzer_rejected));
}

/* Is there one that is not past? */
static bool
is_degraded(const json_t *problems)
{
	const json_t *problem;
	size_t i;

	json_array_foreach(problems, i, problem)
	{
		if (strcmp(json_string_value(json_object_get(problem, "when")), "now") == 0)
			return true;
	}
	return false;
}

static int
answer_status(const struct bs_status_source *source, const struct bs_snapshot *snapshot,
	const char *params, json_t **result, char error[BS_STATUS_ERROR_BYTES])
{
	const struct bs_config *config = source->config;
	json_t *problems = bs_status_problems(config, snapshot), *ports = json_array();

	(void)params;
	for (unsigned i = 0; i < snapshot->port_count; i++)
		append(&ports, port_in_full(&snapshot->ports[i]));
	return give(json_pack("{s:s, s:o, s:i, s:i, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, "
			      "s:o, s:{s:o, s:o, s:o, s:o}, s:o, s:o, s:o, s:o}",
			    "state", is_degraded(problems) ? "degraded" : "ok", "problems",
			    problems, "pid", (int)snapshot->pid, "node", config->node,
			    "file_prefix", ascii(config->eal.file_prefix), "t_start",
			    instant(snapshot->t_start_ns), "t_now", instant(snapshot->t_ns),
			    "uptime_ns", number(snapshot->t_ns - snapshot->t_start_ns), "hugepages",
			    snapshot->hugepages, "clock", clock_json(&snapshot->clock),
			    "rx_packets", number(snapshot->rx_packets), "tx_packets",
			    number(snapshot->tx_packets), "queued", number(snapshot->queued),
			    "analyzer", analyzer_json(source, snapshot), "records", "sent",
			    number(snapshot->records_sent), "bytes", number(snapshot->record_bytes),
			    "lost", number(lost_records(&snapshot->loss)), "collector_age_ns",
			    number(snapshot->collector_age_ns), "journal",
			    journal_json(config, &snapshot->journal), "ports", ports, "pool",
			    pool_json(&snapshot->pool), "privileges",
			    privileges_json(source->privileges)),
		result, error);
}

static json_t *
buffer_json(const struct bs_snapshot_buffer *buffer)
{
	bool waits = buffer->waits > 0;
	bool sized = buffer->capacity != 0;

	return json_pack("{s:i, s:o, s:b, s:b, s:b, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"id", buffer->id, "buffer", ascii(buffer->name), "lossy",
		(buffer->properties & BS_BUFFER_LOSSY) != 0, "classes",
		(buffer->properties & BS_BUFFER_CLASSES) != 0, "ordered",
		(buffer->properties & BS_BUFFER_ORDERED) != 0, "drained_by",
		(buffer->properties & BS_BUFFER_POLLED) != 0 ? "polled" : "clocked", "quality",
		ascii(buffer->quality), "capacity", sized ? number(buffer->capacity) : json_null(),
		"occupancy", sized ? number(buffer->occupancy) : json_null(), "occupancy_max",
		sized ? number(buffer->occupancy_max) : json_null(), "packets",
		number(buffer->packets), "dropped", number(buffer->dropped), "wait_mean_ns",
		waits ? number(buffer->wait_ns_sum / buffer->waits) : json_null(), "wait_max_ns",
		waits ? number(buffer->wait_ns_max) : json_null());
}

static int
answer_chain(const struct bs_status_source *source, const struct bs_snapshot *snapshot,
	const char *params, json_t **result, char error[BS_STATUS_ERROR_BYTES])
{
	const struct bs_config *config = source->config;
	json_t *buffers = json_array(), *paths = json_array();
	int ret;

	for (unsigned i = 0; i < snapshot->buffer_count; i++)
		append(&buffers, buffer_json(&snapshot->buffers[i]));
	for (unsigned i = 0; i < config->path_count; i++)
		append(&paths, json_pack("{s:o, s:o}", "wire",
				       ascii(config->ports[config->paths[i].wire].name), "service",
				       ascii(config->ports[config->paths[i].service].name)));
	ret = give_list("buffers", buffers, params, result, error);
	if (ret != 0)
		json_decref(paths);
	else
		json_object_set_new(*result, "paths", paths);
	return ret;
}

static struct bs_report_quantiles
quantiles(const struct bs_snapshot_quantiles *from)
{
	return (struct bs_report_quantiles){
		from->count, from->min, from->p50, from->p90, from->p99, from->max};
}

#define X_HOW(name, text) [BS_PROBE_##name] = text,
static const char *const probe_hows[BS_PROBE_HOW_COUNT] = {BS_PROBE_HOWS(X_HOW)};

static json_t *
probe_json(const struct bs_snapshot_probe *probe)
{
	const char *how = probe->how < BS_PROBE_HOW_COUNT ? probe_hows[probe->how] : "?";

	if (probe->how != BS_PROBE_PID_FILE && probe->how != BS_PROBE_SOCKET &&
		probe->how != BS_PROBE_THREADS)
		return json_string(how);
	if (probe->more == 0)
		return json_sprintf("pid %" PRIu32 " %s", probe->pid, how);
	return json_sprintf(
		"pid %" PRIu32 " and %" PRIu32 " more %s", probe->pid, probe->more, how);
}

static json_t *
service_json(
	const struct bs_status_source *source, const struct bs_snapshot *snapshot, unsigned index)
{
	const struct bs_rec_service *counts = &snapshot->services[index];
	const struct bs_snapshot_service *latencies = &snapshot->latencies[index];
	const struct bs_config *config = source->config;
	json_t *object;
	struct bs_report_service service = {
		.service = bs_names_service(source->names, index),
		.rpcs = counts->rpcs,
		.answered = counts->answered,
		.unanswered = counts->unanswered,
		.oneway = counts->oneway,
		.orphan_responses = counts->orphan_responses,
		.in_progress = counts->in_progress,
		.pushed = counts->pushed,
		.reset = counts->reset_,
		.cut = counts->cut,
		.latency_ns = quantiles(&latencies->latency),
		.service_ns = quantiles(&latencies->service),
	};

	if (index < config->service_count && strcmp(config->services[index].protocol, "auto") != 0)
		service.protocol = config->services[index].protocol;
	object = bs_report_service_json(&service);
	if (object != NULL)
		json_object_set_new(object, "slo_ns",
			latencies->slo_ns != 0 ? number(latencies->slo_ns) : json_null());
	if (object != NULL)
		json_object_set_new(object, "probe",
			index < config->service_count ? probe_json(&snapshot->probes[index])
						      : json_null());
	return object;
}

static int
answer_services(const struct bs_status_source *source, const struct bs_snapshot *snapshot,
	const char *params, json_t **result, char error[BS_STATUS_ERROR_BYTES])
{
	json_t *services = json_array();

	for (unsigned i = 0; i < snapshot->service_count && i < BS_MAX_SERVICES; i++)
		append(&services, service_json(source, snapshot, i));
	append(&services, service_json(source, snapshot, BS_MAX_SERVICES));
	return give_list("services", services, params, result, error);
}

struct page {
	const struct bs_names *names;
	json_t *list;
};

static void
add_anomaly(void *context, const struct bs_rec_verdict *verdict, const struct bs_rpc_view *rpc)
{
	struct page *page = context;

	append(&page->list, bs_report_rpc_json(page->names, rpc, verdict));
}

static void
add_incident(void *context, const struct bs_rec_incident *incident)
{
	struct page *page = context;

	append(&page->list, bs_report_incident_json(page->names, incident,
				    bs_diag_advice(&incident->origin, incident->detail)));
}

static int
answer_anomalies(const struct bs_status_source *source, const struct bs_snapshot *snapshot,
	const char *params, json_t **result, char error[BS_STATUS_ERROR_BYTES])
{
	struct page page = {source->names, NULL};
	unsigned offset, total;

	(void)snapshot;
	if (parse_offset(params, &offset, error) != 0)
		return -EINVAL;
	page.list = json_array();
	total = bs_store_anomalies(source->store, offset, BS_STATUS_PAGE, add_anomaly, &page);
	return give_page("anomalies", page.list, offset, total, result, error);
}

static int
answer_incidents(const struct bs_status_source *source, const struct bs_snapshot *snapshot,
	const char *params, json_t **result, char error[BS_STATUS_ERROR_BYTES])
{
	struct page page = {source->names, NULL};
	unsigned offset, total;

	(void)snapshot;
	if (parse_offset(params, &offset, error) != 0)
		return -EINVAL;
	page.list = json_array();
	total = bs_store_incidents(source->store, offset, BS_STATUS_PAGE, add_incident, &page);
	return give_page("incidents", page.list, offset, total, result, error);
}

static int
answer_rpc(const struct bs_status_source *source, const struct bs_snapshot *snapshot,
	const char *params, json_t **result, char error[BS_STATUS_ERROR_BYTES])
{
	struct page page = {source->names, NULL};
	size_t digits = params == NULL ? 0 : strlen(params);
	json_t *rpc;

	(void)snapshot;
	if (digits != 16 || strspn(params, "0123456789abcdefABCDEF") != digits) {
		snprintf(error, BS_STATUS_ERROR_BYTES, "an RPC-ID is 16 hex digits");
		return -EINVAL;
	}
	page.list = json_array();
	if (bs_store_find(source->store, strtoull(params, NULL, 16), add_anomaly, &page) != 0) {
		json_decref(page.list);
		snprintf(error, BS_STATUS_ERROR_BYTES,
			"RPC %s is not among the newest %u anomalies", params, BS_STORE_ANOMALIES);
		return -ENOENT;
	}
	rpc = json_incref(json_array_get(page.list, 0));
	json_decref(page.list);
	return give(rpc, result, error);
}

static json_t *
queues_missed(const struct bs_snapshot_port *port)
{
	json_t *object = json_object();
	char key[8];

	if (!port->watched.by_queue) {
		json_decref(object);
		return json_null();
	}
	for (unsigned q = 0; q < port->queues && q < BS_WATCH_QUEUES; q++) {
		snprintf(key, sizeof(key), "%u", q);
		json_object_set_new(object, key, number(port->watched.queue_missed[q]));
	}
	return object;
}

static json_t *
findings_json(const struct bs_watched_port *watched)
{
	json_t *object = json_object();

	for (unsigned i = 0; i < BS_FINDING_COUNT; i++) {
		const bool pause = i == BS_FINDING_PAUSE_SENT || i == BS_FINDING_PAUSE_RECEIVED;

		json_object_set_new(object, bs_finding_key(i),
			pause ? pauses(watched, i) : number(watched->found[i].count));
	}
	return object;
}

/* What a port brought and what became of it; what its driver cannot count is null. */
static json_t *
account_json(const struct bs_snapshot_port *port)
{
	json_t *dropped = counts(port->reasons, BS_REASON_COUNT, bs_reason_key);

	if (!port->rx_missed_observable)
		json_object_set_new(dropped, bs_reason_key(BS_REASON_RX_MISSED), json_null());
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"port", ascii(port->name), "rx_packets", number(port->taken), "forwarded",
		number(port->forwarded), "queued", number(port->queued), "ended",
		number(port->ended), "unaccounted", (json_int_t)port->unaccounted, "tx_packets",
		number(port->given), "dropped", dropped, "handed_over", number(port->handed_over),
		"gaps", number(port->gaps), "lost_before", number(port->lost_before), "found",
		findings_json(&port->watched), "missed_by_queue", queues_missed(port));
}

static int
answer_counters(const struct bs_status_source *source, const struct bs_snapshot *snapshot,
	const char *params, json_t **result, char error[BS_STATUS_ERROR_BYTES])
{
	const struct bs_rec_loss *loss = &snapshot->loss;
	json_t *ports = json_array();

	(void)source;
	(void)params;
	for (unsigned i = 0; i < snapshot->port_count; i++)
		append(&ports, account_json(&snapshot->ports[i]));
	return give(
		json_pack("{s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
			  "s:{s:o, s:o, s:{s:o, s:o, s:o, s:o}}, s:o}",
			"rx_packets", number(snapshot->rx_packets), "tx_packets",
			number(snapshot->tx_packets), "queued", number(snapshot->queued),
			"unaccounted", (json_int_t)snapshot->unaccounted, "ports", ports, "parse",
			counts(snapshot->parse, BS_PARSE_COUNT, bs_parse_key), "dropped",
			counts(snapshot->reasons, BS_REASON_COUNT, bs_reason_key), "shim",
			counts(snapshot->tag, BS_TAG_COUNT, bs_tag_counter_key), "frames",
			counts(snapshot->frame, BS_FRAME_COUNT, bs_frame_counter_key), "handover",
			counts(snapshot->handover, BS_HANDOVER_COUNT, bs_handover_counter_key),
			"tracking", counts(snapshot->track, BS_TRACK_COUNT, bs_track_counter_key),
			"records", "sent", number(snapshot->records_sent), "bytes",
			number(snapshot->record_bytes), "lost", "ring_full",
			number(loss->ring_full), "over_budget", number(loss->over_budget),
			"socket_full", number(loss->socket_full), "no_memory",
			number(loss->no_memory), "journal", journal_counts(&snapshot->journal)),
		result, error);
}

static json_t *
lcore_json(const struct bs_snapshot_lcore *lcore)
{
	return json_pack("{s:i, s:i, s:i, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
			 "s:o, s:o, s:o}",
		"lcore", (int)lcore->lcore, "cpu", (int)lcore->cpu, "numa", lcore->numa, "role",
		ascii(lcore->role), "hung", lcore->heartbeat_age_ns > BS_STATUS_HUNG_NS,
		"heartbeat_age_ns", number(lcore->heartbeat_age_ns), "polls", number(lcore->polls),
		"bursts", number(lcore->bursts), "packets", number(lcore->packets), "pause_ns",
		number(lcore->pause_ns), "stalled_ns", number(lcore->stalled_ns), "preempted_ns",
		number(lcore->preempted_ns), "sleep_ns", number(lcore->sleep_ns), "flows",
		number(lcore->flows), "rpcs_open", number(lcore->rpcs_open), "records",
		number(lcore->records), "records_lost", number(lcore->records_lost));
}

static int
answer_lcores(const struct bs_status_source *source, const struct bs_snapshot *snapshot,
	const char *params, json_t **result, char error[BS_STATUS_ERROR_BYTES])
{
	json_t *lcores = json_array();

	(void)source;
	for (unsigned i = 0; i < snapshot->lcore_count; i++)
		append(&lcores, lcore_json(&snapshot->lcores[i]));
	return give_list("lcores", lcores, params, result, error);
}

static int
answer_offload(const struct bs_status_source *source, const struct bs_snapshot *snapshot,
	const char *params, json_t **result, char error[BS_STATUS_ERROR_BYTES])
{
	json_t *ports = json_array();

	(void)source;
	for (unsigned i = 0; i < snapshot->port_count; i++)
		append(&ports, json_pack("{s:o, s:o, s:s, s:i, s:s}", "port",
				       ascii(snapshot->ports[i].name), "driver",
				       ascii(snapshot->ports[i].driver), "flows_by", "software",
				       "rules", 0, "reason",
				       "no flow rules are offered to NICs yet; flows are found by "
				       "a hash"));
	return give_list("ports", ports, params, result, error);
}

static int
answer_fault(const struct bs_status_source *source, const struct bs_snapshot *snapshot,
	const char *params, json_t **result, char error[BS_STATUS_ERROR_BYTES])
{
	char kind[64];
	const char *comma = params == NULL ? NULL : strchr(params, ',');
	int ret;

	(void)snapshot;
	if (!source->config->faults || source->fault == NULL) {
		snprintf(error, BS_STATUS_ERROR_BYTES,
			"faults are refused: the configuration does not set debug.faults");
		return -EPERM;
	}
	if (comma == NULL || comma == params || (size_t)(comma - params) >= sizeof(kind) ||
		comma[1] == '\0') {
		snprintf(error, BS_STATUS_ERROR_BYTES, "a fault is given as kind,value");
		return -EINVAL;
	}
	memcpy(kind, params, (size_t)(comma - params));
	kind[comma - params] = '\0';
	snprintf(error, BS_STATUS_ERROR_BYTES, "the fault could not be injected");
	ret = source->fault(source->context, kind, comma + 1, error);
	if (ret != 0)
		return ret;
	return give(json_pack("{s:s, s:s}", "kind", kind, "value", comma + 1), result, error);
}

const struct bs_status_command bs_status_commands[] = {
	{"/bufscope/status", NULL, "State, and what is wrong with it. No parameters",
		answer_status},
	{"/bufscope/chain", "buffers", "Buffers: fill, drops, waits. Parameter: offset",
		answer_chain},
	{"/bufscope/services", "services", "RPCs of each service. Parameter: offset",
		answer_services},
	{"/bufscope/anomalies", "anomalies", "Newest anomalous RPCs. Parameter: offset",
		answer_anomalies},
	{"/bufscope/incidents", "incidents", "Newest incidents. Parameter: offset",
		answer_incidents},
	{"/bufscope/rpc", NULL, "One anomalous RPC. Parameter: RPC-ID, 16 hex digits", answer_rpc},
	{"/bufscope/counters", NULL, "Packets, drops, shims, records. No parameters",
		answer_counters},
	{"/bufscope/lcores", "lcores", "What the lcores do. Parameter: offset", answer_lcores},
	{"/bufscope/offload", "ports", "Hardware offload of each port. Parameter: offset",
		answer_offload},
	{"/bufscope/fault", NULL, "Injects a debug fault. Parameters: kind,value", answer_fault},
	{NULL, NULL, NULL, NULL},
};

/* Parameters are repeated in answers and logs. */
static bool
is_plain_text(const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text < ' ' || *text > '~')
			return false;
	}
	return true;
}

int
bs_status_answer(const struct bs_status_source *source, const char *command, const char *params,
	json_t **result, char error[BS_STATUS_ERROR_BYTES])
{
	const struct bs_status_command *found = bs_status_commands;
	struct bs_snapshot *snapshot;
	int ret;

	error[0] = '\0';
	while (found->name != NULL && strcmp(found->name, command) != 0)
		found++;
	if (found->name == NULL) {
		snprintf(error, BS_STATUS_ERROR_BYTES, "there is no such command");
		return -ENOENT;
	}
	if (params != NULL && !is_plain_text(params)) {
		snprintf(error, BS_STATUS_ERROR_BYTES, "parameters are printable ASCII");
		return -EINVAL;
	}
	snapshot = malloc(sizeof(*snapshot));
	if (snapshot == NULL) {
		snprintf(error, BS_STATUS_ERROR_BYTES, "out of memory");
		return -ENOMEM;
	}
	ret = source->snapshot(source->context, snapshot);
	if (ret != 0)
		snprintf(error, BS_STATUS_ERROR_BYTES, "no counters could be read: %s",
			strerror(-ret));
	else
		ret = found->answer(source, snapshot, params, result, error);
	free(snapshot);
	return ret;
}
