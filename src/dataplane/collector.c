/* SPDX-License-Identifier: BSD-3-Clause */
/* See collector.h. */
#include "collector.h"

#include <errno.h>
#include <poll.h>
#include <rte_malloc.h>
#include <rte_ring.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "answers.h"
#include "bs_clock.h"
#include "dataplane.h"

#define STAGE_UNITS 1024u
#define SUMMARY_NS BS_NS_PER_S
#define ANALYZER_COMES_NS (2 * BS_NS_PER_S)
#define LAST_BATCH_MS 100
#define IDLE_SLEEP_NS 2000000l
#define BRIEF_RESERVE 4u /* briefs leave a quarter of the budget to what has more to tell */
#define CONTROL_UNITS 1024u

/* Of what the analyzer sends no more is read than this; the rest waits in its socket and with it.
 */
#define INPUT_BYTES_PER_S (8u << 20)
#define INPUT_BYTES_BURST (4u << 20)
#define INPUT_BATCH_COST 1024u /* a batch costs its bytes and these */

struct stage {
	uint64_t units[STAGE_UNITS * BS_UNIT_BYTES / sizeof(uint64_t)];
	unsigned count; /* units not yet handled, from the beginning */
};

struct watch {
	uint64_t t_hung; /* heartbeat that a hang was told for; 0 = none */
};

struct bs_collector {
	struct bs_dataplane *dataplane;
	struct rte_ring *control; /* units from a control thread */
	int fd;			  /* of the analyzer, -1 = none */
	int next_fd;		  /* to be taken over; -1 = none */
	uint32_t stop, retell;
	uint32_t sequence;
	struct stage *stages; /* one a lcore, and one for the control ring */
	struct watch watches[BS_CONFIG_LCORES];
	uint64_t heartbeat_ns; /* when its turn began */
	uint64_t t_summary;
	int64_t tokens;
	uint64_t t_tokens, token_rest;	 /* the rest: of a token, in 10^-9 */
	struct bs_rec_loss loss;	 /* since start */
	struct bs_rec_loss loss_told;	 /* by LOSS records that were taken */
	struct bs_rec_loss loss_telling; /* and by the one in the batch */
	uint64_t records_sent, record_bytes;
	struct bs_answers answers;
	uint64_t t_input;
	int64_t input_bytes; /* that may be read */
	uint64_t t_refused;  /* since when no batch is taken; 0: the last one was */
	bool connected;
	bool begun;	 /* draining */
	bool names_lost; /* the last time they were told; told again each second */
	size_t batch_bytes;
	uint64_t batch_records;
	uint64_t batch[BS_BATCH_MAX_BYTES / sizeof(uint64_t)];
	uint64_t input[BS_BATCH_MAX_BYTES / sizeof(uint64_t)];
};

static void
set_threshold(void *context, unsigned service, uint64_t latency_ns)
{
	const struct bs_dataplane *dataplane = context;

	for (unsigned i = 0; i < dataplane->lcore_count; i++)
		bs_tracker_threshold(dataplane->lcores[i]->tracker, service, latency_ns);
}

struct bs_collector *
bs_collector_create(struct bs_dataplane *dataplane)
{
	struct bs_collector *collector =
		rte_zmalloc("bs_collector", sizeof(*collector), RTE_CACHE_LINE_SIZE);

	if (collector == NULL) {
		errno = ENOMEM;
		return NULL;
	}
	collector->dataplane = dataplane;
	collector->answers = (struct bs_answers){
		.store = dataplane->store, .threshold = set_threshold, .context = dataplane};
	collector->fd = collector->next_fd = -1;
	collector->t_tokens = collector->t_summary = collector->t_input = bs_clock_now_ns();
	collector->heartbeat_ns = collector->t_input;
	collector->input_bytes = INPUT_BYTES_BURST;
	collector->tokens = dataplane->config.records.per_second;
	collector->stages = rte_zmalloc("bs_stages",
		(dataplane->lcore_count + 1) * sizeof(struct stage), RTE_CACHE_LINE_SIZE);
	collector->control = rte_ring_create_elem("bsctl", BS_UNIT_BYTES, CONTROL_UNITS,
		SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (collector->stages == NULL || collector->control == NULL) {
		bs_collector_destroy(collector);
		errno = ENOMEM;
		return NULL;
	}
	return collector;
}

void
bs_collector_destroy(struct bs_collector *collector)
{
	if (collector == NULL)
		return;
	if (collector->fd >= 0)
		close(collector->fd);
	if (collector->next_fd >= 0)
		close(collector->next_fd);
	rte_ring_free(collector->control);
	rte_free(collector->stages);
	rte_free(collector);
}

/* --- out ------------------------------------------------------------------------- */

static void
disconnect(struct bs_collector *collector)
{
	close(collector->fd);
	collector->fd = -1;
	__atomic_store_n(&collector->t_refused, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&collector->connected, false, __ATOMIC_RELAXED);
}

static void
lose_batch(struct bs_collector *collector)
{
	collector->loss_telling = collector->loss_told;
	bs_count(&collector->loss.socket_full, collector->batch_records);
	collector->batch_bytes = 0;
	collector->batch_records = 0;
}

/*
 * Sends the batch, or loses it where there is no analyzer. False: the analyzer is
 * there and does not take it now; it is kept, and what comes waits in its rings.
 */
static bool
flush(struct bs_collector *collector)
{
	if (collector->batch_bytes == 0)
		return true;
	if (collector->fd >= 0 &&
		send(collector->fd, collector->batch, collector->batch_bytes,
			MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)collector->batch_bytes) {
		collector->records_sent += collector->batch_records;
		collector->record_bytes += collector->batch_bytes;
		collector->loss_told = collector->loss_telling;
		collector->batch_bytes = 0;
		collector->batch_records = 0;
		__atomic_store_n(&collector->t_refused, 0, __ATOMIC_RELAXED);
		return true;
	}
	if (collector->fd >= 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)) {
		if (collector->t_refused == 0)
			__atomic_store_n(
				&collector->t_refused, collector->heartbeat_ns, __ATOMIC_RELAXED);
		return false;
	}
	if (collector->fd >= 0)
		disconnect(collector);
	lose_batch(collector);
	return true;
}

static bool
has_room(const struct bs_collector *collector, unsigned units)
{
	return collector->batch_bytes + units * BS_UNIT_BYTES <= sizeof(collector->batch);
}

/* What cannot wait elsewhere takes the place of a batch that cannot be sent. */
static void
send_units(struct bs_collector *collector, const void *units, unsigned count)
{
	const size_t bytes = (size_t)count * BS_UNIT_BYTES;

	if (!has_room(collector, count) && !flush(collector))
		lose_batch(collector);
	memcpy((uint8_t *)collector->batch + collector->batch_bytes, units, bytes);
	((struct bs_record *)((uint8_t *)collector->batch + collector->batch_bytes))->sequence =
		collector->sequence++;
	collector->batch_bytes += bytes;
	collector->batch_records++;
}

static void
tell_buffers(struct bs_collector *collector)
{
	const struct bs_dataplane *dataplane = collector->dataplane;

	for (unsigned i = 0; i < dataplane->buffer_count; i++) {
		const struct bs_buffer_info *info = &dataplane->buffers[i];
		struct bs_rec_name name;

		memset(&name, 0, sizeof(name));
		bs_record_head(&name.head, BS_REC_NAME, 0);
		name.kind = BS_NAME_BUFFER;
		name.number = (uint16_t)(BS_BUFFER_FIRST_OWN + i);
		name.properties = info->properties;
		name.capacity = info->capacity;
		memcpy(name.name, info->name, sizeof(name.name));
		send_units(collector, &name, BS_UNITS_OF(struct bs_rec_name));
	}
}

static void
tell_operations(struct bs_collector *collector, unsigned number)
{
	const struct bs_config_service *service = &collector->dataplane->config.services[number];

	for (unsigned i = 0; i < service->operation_count; i++) {
		struct bs_rec_name name;

		memset(&name, 0, sizeof(name));
		bs_record_head(&name.head, BS_REC_NAME, 0);
		name.kind = BS_NAME_OPERATION;
		name.number = (uint16_t)number;
		name.slo_ns = service->operations[i].slo_ns;
		memcpy(name.name, service->operations[i].match, sizeof(name.name));
		send_units(collector, &name, BS_UNITS_OF(struct bs_rec_name));
	}
}

static void
tell_services(struct bs_collector *collector)
{
	const struct bs_config *config = &collector->dataplane->config;

	for (unsigned i = 0; i < config->service_count; i++) {
		const struct bs_config_service *service = &config->services[i];
		const struct bs_framer *framer = collector->dataplane->services[i].framer;
		struct bs_rec_name name;

		memset(&name, 0, sizeof(name));
		bs_record_head(&name.head, BS_REC_NAME, 0);
		name.kind = BS_NAME_SERVICE;
		name.number = (uint16_t)i;
		name.protocol = framer == NULL ? BS_PROTOCOL_OPAQUE : framer->protocol;
		name.port = service->port;
		name.slo_ns = service->slo_ns;
		memcpy(name.address, service->address, sizeof(name.address));
		memcpy(name.name, service->name, sizeof(name.name));
		send_units(collector, &name, BS_UNITS_OF(struct bs_rec_name));
		tell_operations(collector, i);
	}
}

static void
tell_protocols(struct bs_collector *collector)
{
	const struct bs_framers *framers = &collector->dataplane->framers;

	for (unsigned i = 0; i < framers->count; i++) {
		struct bs_rec_name name;

		memset(&name, 0, sizeof(name));
		bs_record_head(&name.head, BS_REC_NAME, 0);
		name.kind = BS_NAME_PROTOCOL;
		name.number = framers->list[i].protocol;
		snprintf(name.name, sizeof(name.name), "%s", framers->list[i].name);
		send_units(collector, &name, BS_UNITS_OF(struct bs_rec_name));
	}
}

/* What a new analyzer must know first. */
static void
tell_names(struct bs_collector *collector)
{
	const uint64_t lost = collector->loss.socket_full;
	struct bs_rec_hello hello;

	memset(&hello, 0, sizeof(hello));
	bs_record_head(&hello.head, BS_REC_HELLO, 0);
	hello.magic = BS_HELLO_MAGIC;
	hello.version = BS_RECORD_VERSION;
	hello.node = collector->dataplane->config.node;
	hello.t_start = collector->dataplane->t_start;
	hello.pid = (uint64_t)getpid();
	memcpy(hello.detect_ns, collector->dataplane->config.detect_ns, sizeof(hello.detect_ns));
	send_units(collector, &hello, BS_UNITS_OF(struct bs_rec_hello));
	tell_buffers(collector);
	tell_services(collector);
	tell_protocols(collector);
	flush(collector);
	collector->names_lost = collector->loss.socket_full != lost;
}

static void
tell_loss(struct bs_collector *collector, uint64_t t)
{
	struct bs_rec_loss loss = collector->loss;

	bs_record_head(&loss.head, BS_REC_LOSS, 0);
	loss.t = t;
	loss.ring_full -= collector->loss_told.ring_full;
	loss.over_budget -= collector->loss_told.over_budget;
	loss.socket_full -= collector->loss_told.socket_full;
	loss.no_memory -= collector->loss_told.no_memory;
	if (loss.ring_full + loss.over_budget + loss.socket_full + loss.no_memory == 0)
		return;
	send_units(collector, &loss, BS_UNITS_OF(struct bs_rec_loss));
	collector->loss_telling = collector->loss;
}

/* What each buffer has seen, summed over the queues that bear its name. */
static void
tell_buffer_counters(struct bs_collector *collector, uint64_t t)
{
	const struct bs_dataplane *dataplane = collector->dataplane;

	for (unsigned i = 0; i < dataplane->buffer_count; i++) {
		struct bs_rec_buffer record;

		memset(&record, 0, sizeof(record));
		bs_record_head(&record.head, BS_REC_BUFFER, 0);
		record.t = t;
		record.buffer = (uint16_t)(BS_BUFFER_FIRST_OWN + i);
		for (unsigned q = 0; q < dataplane->queue_count; q++) {
			const struct bs_queue *queue = dataplane->queues[q];

			if (queue->buffer != record.buffer)
				continue;
			record.occupancy += rte_ring_count(queue->ring);
			record.occupancy_max = RTE_MAX(record.occupancy_max, queue->occupancy_max);
			record.packets += __atomic_load_n(&queue->dequeued, __ATOMIC_RELAXED);
			record.dropped += __atomic_load_n(&queue->dropped, __ATOMIC_RELAXED);
			record.wait_ns_sum +=
				__atomic_load_n(&queue->wait_ns_sum, __ATOMIC_RELAXED);
		}
		if (record.packets + record.dropped + record.occupancy != 0)
			send_units(collector, &record, BS_UNITS_OF(struct bs_rec_buffer));
	}
}

/* What the lcores themselves had no room for. */
static void
count_losses(const struct bs_dataplane *dataplane, struct bs_rec_loss *loss)
{
	loss->ring_full = loss->no_memory = 0;
	for (unsigned i = 0; i < dataplane->lcore_count; i++) {
		const struct bs_lcore *lcore = dataplane->lcores[i];
		const uint64_t *counters = bs_tracker_counters(lcore->tracker);

		loss->ring_full += counters[BS_TRACK_RECORDS_LOST];
		loss->ring_full +=
			__atomic_load_n(&lcore->counters.episodes_lost, __ATOMIC_RELAXED);
		loss->no_memory += counters[BS_TRACK_RPCS_REFUSED] + counters[BS_TRACK_MARKS_LOST];
	}
}

/* Once a second: service counters summed over lcores, and what was lost. */
static void
summarise(struct bs_collector *collector, uint64_t t)
{
	struct bs_dataplane *dataplane = collector->dataplane;

	if (t < collector->t_summary + SUMMARY_NS)
		return;
	collector->t_summary = t;
	if (collector->names_lost && collector->fd >= 0)
		tell_names(collector);
	for (unsigned i = 0; i < dataplane->lcore_count; i++) {
		for (unsigned s = 0; s < dataplane->config.service_count; s++) {
			struct bs_rec_service service;

			bs_tracker_service_counters(dataplane->lcores[i]->tracker, s, &service);
			service.t = t;
			send_units(collector, &service, BS_UNITS_OF(struct bs_rec_service));
		}
	}
	count_losses(dataplane, &collector->loss);
	tell_buffer_counters(collector, t);
	tell_loss(collector, t);
}

/* --- budget ------------------------------------------------------------------------ */

static void
tokens_refill(struct bs_collector *collector, uint64_t t)
{
	const int64_t per_second = collector->dataplane->config.records.per_second;
	const bs_uint128 more = (bs_uint128)(t - collector->t_tokens) * (uint64_t)per_second +
				collector->token_rest;

	collector->t_tokens = t;
	collector->token_rest = (uint64_t)(more % BS_NS_PER_S);
	collector->tokens += (int64_t)(more / BS_NS_PER_S);
	if (collector->tokens > per_second)
		collector->tokens = per_second;
}

/* May this record be sent? What is brief goes first when the budget gets short. */
static bool
within_budget(struct bs_collector *collector, unsigned type)
{
	const int64_t per_second = collector->dataplane->config.records.per_second;
	const int64_t reserve = type == BS_REC_BRIEF ? per_second / BRIEF_RESERVE : 0;

	if (collector->tokens <= reserve) {
		bs_count(&collector->loss.over_budget, 1);
		return false;
	}
	collector->tokens--;
	return true;
}

/* Units of the whole group that begins with this record: an RPC's segments and events come with it.
 */
static unsigned
group_units(const struct bs_record *head)
{
	const struct bs_rec_rpc *rpc = (const struct bs_rec_rpc *)head;

	if (head->type != BS_REC_RPC)
		return head->units;
	return head->units + rpc->segment_count * BS_UNITS_OF(struct bs_rec_segment) +
	       rpc->event_count * BS_UNITS_OF(struct bs_rec_event);
}

/* Moves whole groups from a ring to the batch; a group cut by the stage's end waits there. */
static unsigned
drain(struct bs_collector *collector, struct rte_ring *ring, struct stage *stage)
{
	uint8_t *bytes = (uint8_t *)stage->units;
	unsigned at = 0, moved = 0;

	stage->count += rte_ring_sc_dequeue_burst_elem(ring, bytes + stage->count * BS_UNIT_BYTES,
		BS_UNIT_BYTES, STAGE_UNITS - stage->count, NULL);
	while (at < stage->count) {
		const struct bs_record *head =
			(const struct bs_record *)(bytes + at * BS_UNIT_BYTES);
		unsigned units;

		/* an RPC's head must be there before its counts can be read */
		if (at + head->units > stage->count)
			break;
		units = group_units(head);
		if (at + units > stage->count)
			break;
		if (!has_room(collector, units) && !flush(collector))
			break;
		if (within_budget(collector, head->type))
			send_units(collector, head, units);
		at += units;
		moved++;
	}
	stage->count -= at;
	memmove(bytes, bytes + at * BS_UNIT_BYTES, stage->count * BS_UNIT_BYTES);
	return moved;
}

/* --- heartbeats ---------------------------------------------------------------------- */

/* An lcore that hangs cannot tell; we tell for it, while it lasts. */
static void
watch_heartbeats(struct bs_collector *collector, uint64_t t)
{
	const struct bs_dataplane *dataplane = collector->dataplane;

	for (unsigned i = 0; i < dataplane->lcore_count; i++) {
		const struct bs_lcore *lcore = dataplane->lcores[i];
		const uint64_t beat = __atomic_load_n(&lcore->heartbeat_ns, __ATOMIC_RELAXED);
		struct watch *watch = &collector->watches[i];
		uint16_t buffers[BS_SNAPSHOT_BUFFERS];
		struct bs_rec_event event;
		unsigned waiting;

		if (watch->t_hung == beat || __atomic_load_n(&lcore->sleeping, __ATOMIC_RELAXED) ||
			t < beat + dataplane->config.detect_ns[BS_CAUSE_HANG] * 5)
			continue;
		watch->t_hung = beat;
		waiting = bs_lcore_waiting(lcore, buffers, BS_SNAPSHOT_BUFFERS);
		for (unsigned k = 0; k < waiting; k++) {
			memset(&event, 0, sizeof(event));
			bs_record_head(&event.head, BS_REC_EVENT, i);
			event.t_begin = beat;
			event.count = 1;
			event.buffer = buffers[k];
			event.type = BS_CAUSE_HANG;
			event.quality = BS_QUALITY_BOUND;
			event.culprit_count = 1;
			event.culprit_kind[0] = BS_CULPRIT_LCORE;
			event.culprits[0].id = lcore->lcore_id;
			send_units(collector, &event, BS_UNITS_OF(struct bs_rec_event));
		}
	}
}

/* --- in ------------------------------------------------------------------------------- */

static void
take_batch(struct bs_collector *collector, size_t bytes)
{
	const struct bs_plausible here = {
		.service_count = collector->dataplane->config.service_count,
		.buffer_count = collector->dataplane->buffer_count,
		.t_start = collector->dataplane->t_start,
		.t_now = bs_clock_now_ns(),
	};

	bs_answers_take(&collector->answers, &here, collector->input, bytes);
}

static void
input_refill(struct bs_collector *collector)
{
	const uint64_t t = bs_clock_now_ns();
	const uint64_t elapsed = RTE_MIN(t - collector->t_input, BS_NS_PER_S);

	collector->t_input = t;
	collector->input_bytes += (int64_t)(elapsed * INPUT_BYTES_PER_S / BS_NS_PER_S);
	if (collector->input_bytes > (int64_t)INPUT_BYTES_BURST)
		collector->input_bytes = INPUT_BYTES_BURST;
}

static unsigned
receive(struct bs_collector *collector)
{
	unsigned batches = 0;

	input_refill(collector);
	while (collector->fd >= 0 && batches < 16 && collector->input_bytes > 0) {
		/* with MSG_TRUNC it says how long the batch was, not how much of it there was room
		 * for */
		ssize_t n = recv(collector->fd, collector->input, sizeof(collector->input),
			MSG_DONTWAIT | MSG_TRUNC);

		if (n <= 0) {
			if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
				disconnect(collector);
			break;
		}
		batches++;
		collector->input_bytes -=
			(int64_t)INPUT_BATCH_COST + RTE_MIN(n, (ssize_t)sizeof(collector->input));
		if (n > (ssize_t)sizeof(collector->input))
			bs_count(&collector->answers.bad, 1);
		else
			take_batch(collector, (size_t)n);
	}
	return batches;
}

/* --- turns ------------------------------------------------------------------------------ */

static void
take_over_fd(struct bs_collector *collector)
{
	int fd = __atomic_exchange_n(&collector->next_fd, -1, __ATOMIC_ACQ_REL);

	if (fd < 0)
		return;
	if (collector->fd >= 0)
		close(collector->fd);
	collector->fd = fd;
	__atomic_store_n(&collector->t_refused, 0, __ATOMIC_RELAXED);
	lose_batch(collector); /* it was for another */
	__atomic_store_n(&collector->connected, true, __ATOMIC_RELAXED);
	tell_names(collector);
}

/* Until the analyzer has come for the first time, records wait in their rings for a while. */
static bool
may_drain(struct bs_collector *collector, uint64_t t)
{
	const struct bs_dataplane *dataplane = collector->dataplane;
	const bool expected =
		dataplane->config.analyzer.child || dataplane->config.analyzer.external;

	collector->begun = collector->begun || !expected || collector->fd >= 0 ||
			   t >= dataplane->t_start + ANALYZER_COMES_NS;
	return collector->begun;
}

unsigned
bs_collector_turn(struct bs_collector *collector)
{
	struct bs_dataplane *dataplane = collector->dataplane;
	uint64_t t = bs_clock_now_ns();
	unsigned moved = 0;

	__atomic_store_n(&collector->heartbeat_ns, t, __ATOMIC_RELAXED);
	take_over_fd(collector);
	if (!may_drain(collector, t))
		return 0;
	if (!flush(collector))
		return receive(collector);
	if (__atomic_exchange_n(&collector->retell, 0, __ATOMIC_RELAXED))
		tell_names(collector);
	tokens_refill(collector, t);
	for (unsigned i = 0; i < dataplane->lcore_count; i++)
		moved += drain(collector, dataplane->lcores[i]->records, &collector->stages[i]);
	moved += drain(collector, collector->control, &collector->stages[dataplane->lcore_count]);
	watch_heartbeats(collector, t);
	summarise(collector, t);
	flush(collector);
	return moved + receive(collector);
}

/* Is there a batch that the analyzer takes, given a moment? */
static bool
is_taken_soon(const struct bs_collector *collector)
{
	struct pollfd room = {.fd = collector->fd, .events = POLLOUT};

	return collector->batch_bytes > 0 && poll(&room, 1, LAST_BATCH_MS) > 0;
}

int
bs_collector_run(void *context)
{
	struct bs_collector *collector = context;
	const struct timespec pause = {0, IDLE_SLEEP_NS};

	while (!__atomic_load_n(&collector->stop, __ATOMIC_RELAXED)) {
		if (bs_collector_turn(collector) == 0)
			nanosleep(&pause, NULL);
	}
	/* what the lcores put before they stopped */
	while (bs_collector_turn(collector) > 0 || is_taken_soon(collector))
		continue;
	return 0;
}

void
bs_collector_stop(struct bs_collector *collector)
{
	__atomic_store_n(&collector->stop, 1, __ATOMIC_RELAXED);
}

void
bs_collector_connect(struct bs_collector *collector, int fd)
{
	int old = __atomic_exchange_n(&collector->next_fd, fd, __ATOMIC_ACQ_REL);

	if (old >= 0)
		close(old);
}

void
bs_collector_reload(struct bs_collector *collector)
{
	__atomic_store_n(&collector->retell, 1, __ATOMIC_RELAXED);
}

int
bs_collector_put(struct bs_collector *collector, const void *units, unsigned count)
{
	return rte_ring_sp_enqueue_bulk_elem(collector->control, (void *)(uintptr_t)units,
		       BS_UNIT_BYTES, count, NULL) == count
		       ? 0
		       : -ENOBUFS;
}

void
bs_collector_status(const struct bs_collector *collector, struct bs_collector_status *status)
{
	status->connected = __atomic_load_n(&collector->connected, __ATOMIC_RELAXED);
	status->records_sent = __atomic_load_n(&collector->records_sent, __ATOMIC_RELAXED);
	status->record_bytes = __atomic_load_n(&collector->record_bytes, __ATOMIC_RELAXED);
	status->rejected = __atomic_load_n(&collector->answers.rejected, __ATOMIC_RELAXED);
	status->bad_records = __atomic_load_n(&collector->answers.bad, __ATOMIC_RELAXED);
	status->t_refused = __atomic_load_n(&collector->t_refused, __ATOMIC_RELAXED);
	status->heartbeat_ns = __atomic_load_n(&collector->heartbeat_ns, __ATOMIC_RELAXED);
	status->loss = collector->loss;
	status->journal = collector->answers.journal;
	count_losses(collector->dataplane, &status->loss); /* also while it does not come round */
}
