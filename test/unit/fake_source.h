/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bufscoped without packets: a fixed snapshot, a few verdicts and a fault
 * hook, for tests of what is shown. Numbers are chosen so that no two agree.
 */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "status.h"

#define FAKE_NOW 1700000000123456789ull

struct fake {
	struct bs_status_source source;
	struct bs_snapshot snapshot;
	struct bs_names names;
	struct bs_config config;
	int snapshot_error;
	char fault[64];
};

static inline int
fake_snapshot(void *context, struct bs_snapshot *snapshot)
{
	struct fake *fake = context;

	*snapshot = fake->snapshot;
	return fake->snapshot_error;
}

static inline int
fake_fault(void *context, const char *kind, const char *value, char error[BS_STATUS_ERROR_BYTES])
{
	struct fake *fake = context;

	if (strcmp(kind, "hold") != 0) {
		snprintf(
			error, BS_STATUS_ERROR_BYTES, "there is no fault %s (allowed: hold)", kind);
		return -EINVAL;
	}
	snprintf(fake->fault, sizeof(fake->fault), "%s=%s", kind, value);
	return 0;
}

static inline void
fake_name(struct fake *fake, enum bs_name_kind kind, unsigned number, const char *text)
{
	struct bs_rec_name name = {.kind = (uint16_t)kind, .number = (uint16_t)number};

	bs_record_head(&name.head, BS_REC_NAME, 0);
	snprintf(name.name, sizeof(name.name), "%s", text);
	bs_names_learn(&fake->names, &name);
}

static inline void
fake_buffer(struct fake *fake, const char *name, unsigned capacity, unsigned occupancy,
	unsigned properties, const char *quality)
{
	unsigned at = fake->snapshot.buffer_count++;
	struct bs_snapshot_buffer *buffer = &fake->snapshot.buffers[at];

	*buffer = (struct bs_snapshot_buffer){.id = (uint16_t)(BS_BUFFER_FIRST_OWN + at),
		.properties = (uint8_t)properties,
		.capacity = capacity,
		.occupancy = occupancy,
		.occupancy_max = occupancy * 2,
		.packets = 1000 + at,
		.dropped = at,
		.waits = strcmp(quality, "not observable") == 0 ? 0 : 1000 + at,
		.wait_ns_sum = (1000 + at) * 2500,
		.wait_ns_max = 70000 + at};
	snprintf(buffer->name, sizeof(buffer->name), "%s", name);
	snprintf(buffer->quality, sizeof(buffer->quality), "%s", quality);
	fake_name(fake, BS_NAME_BUFFER, BS_BUFFER_FIRST_OWN + at, name);
}

/* An RPC of 5 ms whose first 4 ms were a hang of the app queue. */
static inline void
fake_anomaly(struct fake *fake, uint64_t id)
{
	const struct bs_rec_segment segments[2] = {
		{.rpc_id = id,
			.begin_ns = 0,
			.end_ns = 4000000,
			.buffer = BS_BUFFER_FIRST_OWN + 1,
			.cause = BS_CAUSE_HANG,
			.detail = BS_DETAIL_STALLED},
		{.rpc_id = id,
			.begin_ns = 4000000,
			.end_ns = 5000000,
			.buffer = BS_BUFFER_SERVICE,
			.cause = BS_CAUSE_COMPUTE},
	};
	const struct bs_rec_event event = {.rpc_id = id,
		.t_begin = FAKE_NOW,
		.t_end = FAKE_NOW + 4000000,
		.blocking_ns = 4000000,
		.count = 1,
		.buffer = BS_BUFFER_FIRST_OWN + 1,
		.type = BS_CAUSE_HANG};
	struct bs_rec_rpc rpc = {.id = id,
		.t_request_first = FAKE_NOW,
		.t_request_last = FAKE_NOW,
		.t_request_departure = FAKE_NOW + 4000000,
		.t_response_first = FAKE_NOW + 5000000,
		.t_response_last = FAKE_NOW + 5000000,
		.t_response_departure = FAKE_NOW + 5000000,
		.t_end = FAKE_NOW + 5000000,
		.request_bytes = 30,
		.response_bytes = 5,
		.outcome = BS_OUTCOME_ANSWERED,
		.segment_count = 2,
		.event_count = 1,
		.label_len = 3,
		.label = "GET"};
	const struct bs_rec_verdict verdict = {.rpc_id = id,
		.anomalous_by = BS_BY_EVIDENCE,
		.has_root = 1,
		.root = {.buffer = BS_BUFFER_FIRST_OWN + 1, .cause = BS_CAUSE_HANG},
		.detail = BS_DETAIL_STALLED,
		.excess_ns = 3900000,
		.normal_ns = 100000,
		.share_ppm = 780000,
		.confidence_ppm = 940000,
		.baseline_warm = 1};
	const struct bs_rpc_view view = {&rpc, segments, &event};

	rpc.ends = (struct bs_ends){.client = {[10] = 0xff, 0xff, 10, 99, 0, 1},
		.server = {[10] = 0xff, 0xff, 10, 99, 0, 2},
		.client_port = 40000,
		.server_port = 6379,
		.transport = 6,
		.ip_version = 4};
	if (bs_store_verdict(fake->source.store, &verdict, &view) != 0)
		abort();
}

static inline void
fake_incident(struct fake *fake, uint64_t id)
{
	const struct bs_rec_incident incident = {.id = id,
		.t_begin = FAKE_NOW,
		.t_end = FAKE_NOW + 4000000,
		.victims = 17,
		.origin = {.buffer = BS_BUFFER_FIRST_OWN + 1, .cause = BS_CAUSE_HANG},
		.detail = BS_DETAIL_STALLED,
		.service_count = 1,
		.by_service = {{0, 0, 17}},
		.worst_count = 1,
		.worst = {0x0001000000000002}};

	bs_store_incident(fake->source.store, &incident);
}

static inline void
fake_fill(struct fake *fake)
{
	static const char *const roles[] = {"pipeline", "collector"};
	struct bs_snapshot *s = &fake->snapshot;

	*s = (struct bs_snapshot){.t_ns = FAKE_NOW,
		.t_start_ns = FAKE_NOW - 60000000000ull,
		.pid = 4242,
		.hugepages = true,
		.clock = {.hz = 2790000000, .error_ppm = 3, .invariant = true},
		.port_count = 2,
		.lcore_count = 2,
		.service_count = 1,
		.rx_packets = 2001,
		.tx_packets = 1990,
		.queued = 4,
		.ended = 7,
		.records_sent = 900,
		.record_bytes = 57600,
		.analyzer_connected = true};
	for (unsigned i = 0; i < 2; i++) {
		struct bs_snapshot_port *port = &s->ports[i];
		struct bs_snapshot_lcore *lcore = &s->lcores[i];

		*port = (struct bs_snapshot_port){.link_up = true,
			.numa = -1,
			.mtu = 1500,
			.queues = 1,
			.rx_packets = 1000 + i,
			.rx_missed = 5,
			.rx_missed_observable = true,
			.taken = 1000 + i,
			.given = 995,
			.forwarded = 995,
			.queued = 2,
			.ended = 3 + i,
			.handed_over = 250 + i,
			.reasons = {[BS_REASON_RX_MISSED] = 5, [BS_REASON_APP_QUEUE_FULL] = 3 + i}};
		snprintf(port->name, sizeof(port->name), "%s", i == 0 ? "wire" : "local");
		snprintf(port->device, sizeof(port->device), "net_af_xdp%u,iface=b%u", i, i);
		snprintf(port->driver, sizeof(port->driver), "net_af_xdp");
		*lcore = (struct bs_snapshot_lcore){.lcore = i,
			.cpu = i,
			.numa = 0,
			.heartbeat_age_ns = 500000,
			.polls = 77,
			.packets = 2001};
		snprintf(lcore->role, sizeof(lcore->role), "%s", roles[i]);
	}
	fake_buffer(fake, "wire.rx", 0, 0, BS_BUFFER_LOSSY | BS_BUFFER_POLLED, "bound");
	fake_buffer(fake, "kv.app.in", 1024, 11, BS_BUFFER_LOSSY | BS_BUFFER_POLLED, "exact");
	fake_buffer(fake, "local.tx", 512, 3, BS_BUFFER_CLASSES, "not observable");
	fake_buffer(fake, "local.rx", 0, 0, BS_BUFFER_LOSSY | BS_BUFFER_POLLED, "bound");
	fake_buffer(fake, "kv.app.out", 1024, 2, BS_BUFFER_LOSSY | BS_BUFFER_POLLED, "exact");
	fake_buffer(fake, "wire.tx", 512, 1, BS_BUFFER_CLASSES, "not observable");
	s->services[0] = (struct bs_rec_service){
		.service = 0, .rpcs = 100, .answered = 98, .unanswered = 1, .in_progress = 1};
	s->services[BS_MAX_SERVICES] = (struct bs_rec_service){.service = BS_MAX_SERVICES};
	s->parse[BS_PARSE_OK] = 1995;
	s->parse[BS_PARSE_NOT_IP] = 6;
	s->reasons[BS_REASON_APP_QUEUE_FULL] = 7;
	s->tag[BS_TAG_TAGGED] = 321;
	s->track[BS_TRACK_RETRANSMISSIONS] = 13;
}

static inline struct fake *
fake_create(bool faults)
{
	struct fake *fake = calloc(1, sizeof(*fake));

	if (fake == NULL)
		abort();
	bs_names_init(&fake->names);
	fake_name(fake, BS_NAME_SERVICE, 0, "kv");
	fake->config = (struct bs_config){.node = 1,
		.port_count = 2,
		.path_count = 1,
		.paths = {{0, 1}},
		.service_count = 1,
		.analyzer = {.child = true},
		.faults = faults};
	strcpy(fake->config.eal.file_prefix, "fake");
	strcpy(fake->config.ports[0].name, "wire");
	strcpy(fake->config.ports[1].name, "local");
	strcpy(fake->config.services[0].name, "kv");
	strcpy(fake->config.services[0].protocol, "resp");
	fake->source = (struct bs_status_source){.snapshot = fake_snapshot,
		.fault = fake_fault,
		.context = fake,
		.store = bs_store_create(),
		.names = &fake->names,
		.config = &fake->config};
	if (fake->source.store == NULL)
		abort();
	fake_fill(fake);
	return fake;
}

static inline void
fake_destroy(struct fake *fake)
{
	bs_store_destroy(fake->source.store);
	free(fake);
}
