/* SPDX-License-Identifier: BSD-3-Clause */
#include "replay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "bs_carrier.h"
#include "bs_clock.h"

#define TABLE_MIN 1024u
#define TABLE_MAX 65536u
#define FRAME_BYTES (64u << 20)
#define IDLE_NS (600 * BS_NS_PER_S)
#define HOUSEKEEPING_NS (10 * BS_NS_PER_MS)
#define PROGRESS_PACKETS 16384u

/* As the configuration's defaults. */
static const uint64_t detect_default_ns[6] = {
	[BS_CAUSE_PAUSE] = 200 * BS_NS_PER_US,
	[BS_CAUSE_CONGESTION] = 200 * BS_NS_PER_US,
	[BS_CAUSE_CONTENTION] = 200 * BS_NS_PER_US,
	[BS_CAUSE_DISORDER] = 200 * BS_NS_PER_US,
	[BS_CAUSE_HANG] = BS_NS_PER_MS,
};

__attribute__((format(printf, 3, 4))) static int
fail(char error[REPLAY_ERROR_BYTES], int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, REPLAY_ERROR_BYTES, format, args);
	va_end(args);
	return code;
}

static int
no_memory(char error[REPLAY_ERROR_BYTES])
{
	return fail(error, -ENOMEM, "out of memory: split the capture, or raise the limit");
}

/* A service or protocol that the tracker does not announce. */
static void
announce(struct replay *replay, const struct bs_rec_name *name)
{
	bs_names_learn(&replay->run->names, name);
	if (name->kind == BS_NAME_SERVICE)
		replay->named[name->number] = true;
}

static int
keep(struct replay *replay, const struct bs_record *record, size_t bytes)
{
	struct bs_rpc_view view;
	size_t group_bytes;
	const struct bs_rec_rpc *rpc;

	if (bs_rpc_view(record, bytes, &view, &group_bytes) != 0 || group_bytes != bytes) {
		replay->bad_records++;
		return 0;
	}
	rpc = groups_add(&replay->findings.groups, replay->run, record, bytes);
	if (rpc == NULL)
		return -ENOMEM;
	replay->named[rpc->service] = true;
	return bs_diag_feed(replay->diag, &rpc->head, bytes);
}

/* The sink of the tracker: one record, or an RPC with its group. */
static int
put(void *context, const void *units, unsigned count)
{
	struct replay *replay = context;
	const struct bs_record *record = units;
	size_t bytes = (size_t)count * BS_UNIT_BYTES;
	size_t offset = 0;
	int error;

	if (record->type == BS_REC_RPC) {
		error = keep(replay, record, bytes);
	} else if (bs_record_next(units, bytes, &offset, &error) == NULL) {
		replay->bad_records++;
		error = 0;
	} else {
		if (record->type == BS_REC_NAME)
			announce(replay, units);
		error = bs_diag_feed(replay->diag, record, bytes);
	}
	if (error == 0)
		return 0;
	replay->failure = error;
	return -ENOBUFS;
}

static void
take_incident(void *context, const struct bs_rec_incident *incident)
{
	struct replay *replay = context;

	if (findings_incident(&replay->findings, incident) != 0)
		replay->failure = -ENOMEM;
}

static const struct bs_framer *
find_framer(const struct replay *replay, const char *name, size_t length)
{
	for (unsigned i = 0; i < replay->framers.count; i++) {
		const struct bs_framer *framer = &replay->framers.list[i];

		if (strlen(framer->name) == length && memcmp(framer->name, name, length) == 0)
			return framer;
	}
	return NULL;
}

static int
no_protocol(const struct replay *replay, const char *name, size_t length,
	char error[REPLAY_ERROR_BYTES])
{
	size_t used;

	fail(error, 0, "no protocol \"%.*s\"; there are:", (int)length, name);
	for (unsigned i = 0; i < replay->framers.count; i++) {
		used = strlen(error);
		snprintf(error + used, REPLAY_ERROR_BYTES - used, " %s",
			replay->framers.list[i].name);
	}
	return -EINVAL;
}

static int
init_framers(struct replay *replay, char error[REPLAY_ERROR_BYTES])
{
	const struct bs_config *config = replay->settings->config;
	unsigned bad = 0;
	int result = bs_framers_init(&replay->framers, config != NULL ? config->framing : NULL,
		config != NULL ? config->framing_count : 0, &bad);

	if (result != 0)
		return fail(error, result, "framing \"%s\": %s",
			config != NULL ? config->framing_names[bad] : "?", strerror(-result));
	for (unsigned i = 0; i < replay->framers.count; i++) {
		const struct bs_framer *framer = &replay->framers.list[i];
		struct bs_rec_name name = {.kind = BS_NAME_PROTOCOL, .number = framer->protocol};

		snprintf(name.name, sizeof(name.name), "%s", framer->name);
		announce(replay, &name);
	}
	return 0;
}

static int
init_services(struct replay *replay, char error[REPLAY_ERROR_BYTES])
{
	const struct bs_config *config = replay->settings->config;

	for (unsigned i = 0; config != NULL && i < config->service_count; i++) {
		const struct bs_config_service *service = &config->services[i];
		struct bs_tracker_service *given = &replay->given[i];
		struct bs_rec_name name = {.kind = BS_NAME_SERVICE, .number = (uint16_t)i};

		memcpy(given->address, service->address, sizeof(given->address));
		given->port = service->port;
		if (strcmp(service->protocol, "auto") != 0) {
			given->framer =
				find_framer(replay, service->protocol, strlen(service->protocol));
			if (given->framer == NULL)
				return no_protocol(replay, service->protocol,
					strlen(service->protocol), error);
		}
		snprintf(name.name, sizeof(name.name), "%s", service->name);
		announce(replay, &name);
	}
	return 0;
}

/* Room for flows and open RPCs: small captures should not pay for large tables. */
static unsigned
table_size(const struct replay *replay)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < replay->input_count; i++) {
		struct bs_capture_info info;

		bs_capture_info(replay->inputs[i].capture, &info);
		if (info.file_bytes == 0)
			return TABLE_MAX;
		bytes += info.file_bytes;
	}
	if (bytes < TABLE_MIN)
		return TABLE_MIN;
	return bytes < TABLE_MAX ? (unsigned)bytes : TABLE_MAX;
}

static int
init_tracker(struct replay *replay, char error[REPLAY_ERROR_BYTES])
{
	const struct replay_settings *settings = replay->settings;
	const struct bs_config *config = settings->config;
	struct bs_tracker_config tracker = {
		.max_flows = table_size(replay),
		.max_rpcs = table_size(replay),
		.frame_bytes = FRAME_BYTES,
		.framers = &replay->framers,
		.services = replay->given,
		.service_count = config != NULL ? config->service_count : 0,
		.port_count = settings->port_count,
		.discover = true,
		.idle_ns = IDLE_NS,
		.sink = {.put = put, .context = replay},
	};

	memcpy(tracker.detect_ns, config != NULL ? config->detect_ns : detect_default_ns,
		sizeof(tracker.detect_ns));
	for (unsigned i = 0; i < settings->port_count; i++) {
		const struct bs_framer *framer =
			find_framer(replay, settings->ports[i].protocol, settings->ports[i].length);

		if (framer == NULL)
			return no_protocol(replay, settings->ports[i].protocol,
				settings->ports[i].length, error);
		tracker.ports[i].port = settings->ports[i].port;
		tracker.ports[i].framer = framer;
	}
	replay->tracker = bs_tracker_create(&tracker);
	return replay->tracker != NULL ? 0 : no_memory(error);
}

static int
init_diag(struct replay *replay, char error[REPLAY_ERROR_BYTES])
{
	const struct bs_config *config = replay->settings->config;
	struct bs_diag_config diag = {
		.offline = true,
		.output = {.incident = take_incident, .context = replay},
	};

	memcpy(diag.detect_ns, config != NULL ? config->detect_ns : detect_default_ns,
		sizeof(diag.detect_ns));
	replay->diag = bs_diag_create(&diag);
	return replay->diag != NULL ? 0 : no_memory(error);
}

static int
init_inputs(struct replay *replay, char error[REPLAY_ERROR_BYTES])
{
	const struct replay_settings *settings = replay->settings;

	replay->inputs = calloc(settings->path_count, sizeof(replay->inputs[0]));
	if (replay->inputs == NULL)
		return no_memory(error);
	for (unsigned i = 0; i < settings->path_count; i++) {
		struct replay_input *input = &replay->inputs[i];

		input->path = settings->paths[i];
		input->capture = bs_capture_open(input->path, input->error);
		if (input->capture == NULL)
			return fail(error, -errno, "%s", input->error);
		replay->input_count++;
	}
	return 0;
}

int
replay_init(struct replay *replay, struct replay_settings *settings, char error[REPLAY_ERROR_BYTES])
{
	int result;

	memset(replay, 0, sizeof(*replay));
	replay->settings = settings;
	replay->run = findings_begin_run(&replay->findings);
	if (replay->run == NULL)
		return no_memory(error);
	result = init_framers(replay, error);
	if (result == 0)
		result = init_services(replay, error);
	if (result == 0)
		result = init_inputs(replay, error);
	if (result == 0)
		result = init_diag(replay, error);
	if (result == 0)
		result = init_tracker(replay, error);
	return result;
}

/* Reads the next packet of a file ahead. A damaged file ends where the damage is. */
static void
advance(struct replay_input *input)
{
	int result = bs_capture_next(input->capture, &input->packet);

	input->has_packet = result == 1;
	if (result != 1)
		snprintf(
			input->error, sizeof(input->error), "%s", bs_capture_error(input->capture));
}

static struct replay_input *
earliest(struct replay *replay)
{
	struct replay_input *first = NULL;

	for (unsigned i = 0; i < replay->input_count; i++) {
		struct replay_input *input = &replay->inputs[i];

		if (input->has_packet && (first == NULL || input->packet.t_ns < first->packet.t_ns))
			first = input;
	}
	return first;
}

/* Time does not go backwards for the tracker, and 0 means "not known" to it. */
static uint64_t
packet_time(struct replay *replay, struct replay_input *input)
{
	uint64_t t = input->packet.t_ns;

	if (t < replay->t_now) {
		input->backwards++;
		t = replay->t_now;
	}
	return t > 0 ? t : 1;
}

static void
take_packet(struct replay *replay, struct replay_input *input)
{
	struct bs_packet *packet = &input->packet;
	struct bs_arrival arrival = {.exact = true};
	struct bs_tracked tracked;
	struct bs_shim shim;

	replay->packets++;
	if (replay->input_count > 1)
		packet->number = replay->packets;
	replay->t_now = packet_time(replay, input);
	if (packet->parse != BS_PARSE_OK) {
		replay->parses[packet->parse]++;
		return;
	}
	packet->t_ns = replay->t_now;
	arrival.t_low = arrival.t_poll = replay->t_now;
	if (bs_carriers_read(packet, &shim) == 0)
		arrival.shim_id = shim.rpc_id;
	bs_tracker_packet(replay->tracker, packet, &arrival, NULL, 0, &tracked);
	if (tracked.followed)
		replay->parses[BS_PARSE_OK]++;
	else
		replay->not_followed++;
	if (replay->t_now - replay->t_housekeeping >= HOUSEKEEPING_NS) {
		bs_tracker_advance(replay->tracker, replay->t_now);
		replay->t_housekeeping = replay->t_now;
	}
}

static void
show_progress(const struct replay *replay)
{
	const struct replay_settings *settings = replay->settings;
	uint64_t done = 0, total = 0;

	if (settings->progress == NULL)
		return;
	for (unsigned i = 0; i < replay->input_count; i++) {
		struct bs_capture_info info;

		bs_capture_info(replay->inputs[i].capture, &info);
		if (info.file_bytes == 0)
			return;
		done += info.file_bytes_read;
		total += info.file_bytes;
	}
	settings->progress(settings->progress_context, replay->inputs[0].path, done, total);
}

int
replay_read(struct replay *replay, char error[REPLAY_ERROR_BYTES])
{
	struct replay_input *input;

	for (unsigned i = 0; i < replay->input_count; i++)
		advance(&replay->inputs[i]);
	while ((input = earliest(replay)) != NULL && replay->failure == 0) {
		if (replay->packets % PROGRESS_PACKETS == 0)
			show_progress(replay);
		take_packet(replay, input);
		advance(input);
	}
	bs_tracker_finish(replay->tracker, replay->t_now);
	for (unsigned i = 0; i < replay->input_count; i++)
		bs_capture_info(replay->inputs[i].capture, &replay->inputs[i].info);
	if (replay->failure == -ENOMEM)
		return no_memory(error);
	if (replay->failure != 0)
		return fail(error, replay->failure, "the diagnosis refused a record: %s",
			strerror(-replay->failure));
	return 0;
}

/* Later ones win: the config's, then those for every service, then those for one. */
static int
apply_slos(struct replay *replay, char error[REPLAY_ERROR_BYTES])
{
	const struct bs_config *config = replay->settings->config;
	const char *missing;
	int result = 0, length;

	for (unsigned i = 0; config != NULL && i < config->service_count; i++) {
		const struct bs_config_service *service = &config->services[i];

		result |= bs_diag_slo(replay->diag, i, NULL, service->slo_ns);
		for (unsigned o = 0; o < service->operation_count; o++)
			result |= bs_diag_slo(replay->diag, i, service->operations[o].match,
				service->operations[o].slo_ns);
	}
	if (result != 0)
		return fail(error, -ENOSPC, "too many SLOs of operations in the configuration");
	slo_apply(&replay->settings->slos, replay->diag, &replay->run->names, replay->named);
	missing = slo_not_found(&replay->settings->slos, &length);
	if (missing != NULL)
		return fail(error, -EINVAL,
			"--slo: no service \"%.*s\" in the capture: without --slo, the services "
			"are listed by name",
			length, missing);
	return 0;
}

/* Judges an RPC; what is told of it later is what was decided. */
static int
judge(struct replay *replay, struct group *group)
{
	struct bs_rpc_view view = group_view(group);

	bs_diag_judge(replay->diag, &view, &group->verdict);
	replay->findings.anomalies += group->verdict.anomalous_by != 0;
	if (view.rpc == group->rpc)
		return 0;
	return groups_replace(&replay->findings.groups, group, view.rpc,
		sizeof(*view.rpc) + view.rpc->segment_count * sizeof(*view.segments) +
			view.rpc->event_count * sizeof(*view.events));
}

int
replay_judge(struct replay *replay, char error[REPLAY_ERROR_BYTES])
{
	int result = apply_slos(replay, error);

	if (result != 0)
		return result;
	groups_sort(&replay->findings.groups);
	for (size_t i = 0; i < replay->findings.groups.count; i++) {
		struct group *group = &replay->findings.groups.list[i];

		if (findings_account(replay->run, group->rpc) != 0 || judge(replay, group) != 0)
			return no_memory(error);
	}
	bs_diag_finish(replay->diag);
	if (replay->failure != 0 || findings_total(&replay->findings) != 0)
		return no_memory(error);
	return 0;
}

void
replay_fini(struct replay *replay)
{
	bs_tracker_destroy(replay->tracker);
	if (replay->diag != NULL)
		bs_diag_destroy(replay->diag);
	for (unsigned i = 0; i < replay->input_count; i++)
		bs_capture_close(replay->inputs[i].capture);
	free(replay->inputs);
	findings_free(&replay->findings);
	memset(replay, 0, sizeof(*replay));
}
