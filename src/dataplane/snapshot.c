/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies what all parts count into one struct; see snapshot.h. */
#include "snapshot.h"

#include <rte_lcore.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bs_clock.h"
#include "collector.h"
#include "dataplane.h"

static struct bs_snapshot_buffer *
buffer_at(struct bs_snapshot *snapshot, uint16_t number)
{
	unsigned i = number - BS_BUFFER_FIRST_OWN;

	return i < snapshot->buffer_count ? &snapshot->buffers[i] : NULL;
}

static void
name_buffers(const struct bs_dataplane *dataplane, struct bs_snapshot *snapshot)
{
	snapshot->buffer_count = dataplane->buffer_count;
	for (unsigned i = 0; i < dataplane->buffer_count; i++) {
		struct bs_snapshot_buffer *buffer = &snapshot->buffers[i];

		buffer->id = (uint16_t)(BS_BUFFER_FIRST_OWN + i);
		snprintf(buffer->name, sizeof(buffer->name), "%s", dataplane->buffers[i].name);
		snprintf(buffer->quality, sizeof(buffer->quality), "%s",
			dataplane->buffers[i].quality);
		buffer->properties = dataplane->buffers[i].properties;
		buffer->capacity = dataplane->buffers[i].capacity;
	}
}

static void
add_queue(struct bs_snapshot *snapshot, const struct bs_queue *queue)
{
	struct bs_snapshot_buffer *buffer = buffer_at(snapshot, queue->buffer);
	uint32_t occupancy = rte_ring_count(queue->ring);

	snapshot->ports[queue->from].queued += occupancy;
	if (buffer == NULL)
		return;
	buffer->occupancy += occupancy;
	if (queue->occupancy_max > buffer->occupancy_max)
		buffer->occupancy_max = queue->occupancy_max;
	buffer->packets += __atomic_load_n(&queue->dequeued, __ATOMIC_RELAXED);
	buffer->dropped += __atomic_load_n(&queue->dropped, __ATOMIC_RELAXED);
	buffer->waits += __atomic_load_n(&queue->dequeued, __ATOMIC_RELAXED);
	buffer->wait_ns_sum += __atomic_load_n(&queue->wait_ns_sum, __ATOMIC_RELAXED);
	if (queue->wait_ns_max > buffer->wait_ns_max)
		buffer->wait_ns_max = queue->wait_ns_max;
}

static void
add_lcore(const struct bs_lcore *lcore, struct bs_snapshot *snapshot)
{
	const struct bs_lcore_counters *counters = &lcore->counters;
	struct bs_snapshot_lcore *out = &snapshot->lcores[snapshot->lcore_count++];
	const uint64_t *tracked = bs_tracker_counters(lcore->tracker);

	out->lcore = lcore->lcore_id;
	out->cpu = (unsigned)rte_lcore_to_cpu_id((int)lcore->lcore_id);
	out->numa = (int)rte_lcore_to_socket_id(lcore->lcore_id);
	snprintf(out->role, sizeof(out->role), "pipeline");
	out->heartbeat_age_ns =
		snapshot->t_ns -
		RTE_MIN(snapshot->t_ns, __atomic_load_n(&lcore->heartbeat_ns, __ATOMIC_RELAXED));
	out->polls = counters->polls;
	out->packets = counters->packets;
	out->bursts = counters->bursts;
	out->stalled_ns = lcore->away_ns[BS_DRAIN_STALLED];
	out->preempted_ns = lcore->away_ns[BS_DRAIN_PREEMPTED];
	out->sleep_ns = lcore->away_ns[BS_DRAIN_SLEEP];
	out->flows = bs_tracker_flows(lcore->tracker);
	out->rpcs_open = bs_tracker_open_rpcs(lcore->tracker);
	out->records = tracked[BS_TRACK_RECORDS];
	out->records_lost = tracked[BS_TRACK_RECORDS_LOST];
	for (unsigned i = 0; i < BS_PARSE_COUNT; i++)
		snapshot->parse[i] += counters->parse[i];
	for (unsigned i = 0; i < BS_TAG_COUNT; i++)
		snapshot->tag[i] += counters->tag[i];
	for (unsigned i = 0; i < BS_FRAME_COUNT; i++)
		snapshot->frame[i] += counters->frame[i];
	for (unsigned i = 0; i < BS_TRACK_COUNT; i++)
		snapshot->track[i] += tracked[i];
	snapshot->handover[BS_HANDOVER_DEPARTURES_LOST] += counters->departures_lost;
	snapshot->handover[BS_HANDOVER_DROPS_UNTOLD] += counters->drops_untold;
	for (unsigned i = 0; i < lcore->ingress_count; i++) {
		const struct bs_ingress *ingress = &lcore->ingress[i];
		struct bs_snapshot_buffer *buffer = buffer_at(snapshot, ingress->buffer);

		out->rx_queues[ingress->port->index]++;
		snapshot->ports[ingress->port->index].taken += ingress->packets;
		if (buffer == NULL)
			continue;
		buffer->packets += ingress->packets;
		buffer->waits += ingress->waits;
		buffer->wait_ns_sum += ingress->wait_ns_sum;
		buffer->wait_ns_max = RTE_MAX(buffer->wait_ns_max, ingress->wait_ns_max);
	}
	for (unsigned i = 0; i < lcore->egress_count; i++) {
		const struct bs_egress *egress = &lcore->egress[i];
		struct bs_snapshot_buffer *buffer = buffer_at(snapshot, egress->tx_buffer);

		snapshot->ports[egress->port->index].given += egress->tx_packets;
		snapshot->ports[egress->port->peer->index].queued += egress->pending_count;
		snapshot->lcores[snapshot->lcore_count - 1].pause_ns += egress->pause_ns;
		if (buffer != NULL)
			buffer->packets += egress->tx_packets;
	}
}

/* What became of the packets that came in by a port; what waits between lcores was not taken yet.
 */
static void
account_port(const struct bs_dataplane *dataplane, struct bs_snapshot *snapshot, unsigned at)
{
	struct bs_snapshot_port *port = &snapshot->ports[at];
	uint64_t taken_over = 0;

	for (unsigned i = 0; i < dataplane->lcore_count; i++) {
		const struct bs_port_account *account = &dataplane->lcores[i]->accounts[at];

		for (unsigned r = 0; r < BS_REASON_COUNT; r++)
			port->reasons[r] += account->reasons[r];
		taken_over += account->taken_over;
		port->handed_over += account->handed_over;
		port->gaps += account->gaps;
		port->lost_before += account->lost_before;
	}
	if (port->handed_over > taken_over)
		port->queued += port->handed_over - taken_over;
	port->forwarded = snapshot->ports[dataplane->ports[at].peer->index].given;
	for (unsigned r = 0; r < BS_REASON_COUNT; r++) {
		if (!bs_reason_before_us(r))
			port->ended += port->reasons[r];
	}
	port->unaccounted = (int64_t)(port->taken - port->forwarded - port->queued - port->ended);
	port->reasons[BS_REASON_RX_MISSED] = port->rx_missed;
	port->reasons[BS_REASON_RX_NO_MBUF] = port->rx_nombuf;
	port->reasons[BS_REASON_RX_ERROR] = port->rx_errors;
}

static void
account(const struct bs_dataplane *dataplane, struct bs_snapshot *snapshot)
{
	for (unsigned i = 0; i < snapshot->port_count; i++) {
		const struct bs_snapshot_port *port = &snapshot->ports[i];

		account_port(dataplane, snapshot, i);
		snapshot->rx_packets += port->taken;
		snapshot->tx_packets += port->given;
		snapshot->queued += port->queued;
		snapshot->ended += port->ended;
		snapshot->unaccounted += port->unaccounted;
		snapshot->handover[BS_HANDOVER_HANDED_OVER] += port->handed_over;
		for (unsigned r = 0; r < BS_REASON_COUNT; r++)
			snapshot->reasons[r] += port->reasons[r];
	}
}

static void
quantiles(const struct bs_dataplane *dataplane, unsigned service, enum bs_tracker_histo which,
	struct bs_snapshot_quantiles *out)
{
	struct bs_histo sum;

	memset(&sum, 0, sizeof(sum));
	for (unsigned i = 0; i < dataplane->lcore_count; i++)
		bs_histo_merge(
			&sum, bs_tracker_histo(dataplane->lcores[i]->tracker, service, which));
	out->count = sum.count;
	out->min = sum.min;
	out->p50 = bs_histo_quantile(&sum, 0.5);
	out->p90 = bs_histo_quantile(&sum, 0.9);
	out->p99 = bs_histo_quantile(&sum, 0.99);
	out->max = sum.max;
}

static void
add_services(const struct bs_dataplane *dataplane, struct bs_snapshot *snapshot)
{
	snapshot->service_count = dataplane->config.service_count;
	for (unsigned s = 0; s < snapshot->service_count; s++) {
		struct bs_rec_service *sum = &snapshot->services[s];

		for (unsigned i = 0; i < dataplane->lcore_count; i++) {
			struct bs_rec_service one;

			bs_tracker_service_counters(dataplane->lcores[i]->tracker, s, &one);
			sum->rpcs += one.rpcs;
			sum->answered += one.answered;
			sum->unanswered += one.unanswered;
			sum->oneway += one.oneway;
			sum->orphan_responses += one.orphan_responses;
			sum->pushed += one.pushed;
			sum->cut += one.cut;
			sum->reset_ += one.reset_;
			sum->in_progress += one.in_progress;
			sum->request_bytes += one.request_bytes;
			sum->response_bytes += one.response_bytes;
		}
		sum->service = (uint16_t)s;
		snapshot->latencies[s].slo_ns = dataplane->config.services[s].slo_ns;
		quantiles(dataplane, s, BS_TRACKER_LATENCY, &snapshot->latencies[s].latency);
		quantiles(dataplane, s, BS_TRACKER_SERVICE, &snapshot->latencies[s].service);
	}
}

_Static_assert(sizeof(((struct bs_snapshot_port *)NULL)->rx_stamps) == BS_STAMP_TEXT_BYTES,
	"the text fits");

/* By the first of its queues. */
static void
stamps_text(const struct bs_dataplane *dataplane, const struct bs_port *port,
	char text[BS_STAMP_TEXT_BYTES])
{
	for (unsigned i = 0; i < dataplane->lcore_count; i++) {
		const struct bs_lcore *lcore = dataplane->lcores[i];

		for (unsigned k = 0; k < lcore->ingress_count; k++) {
			if (lcore->ingress[k].port == port && lcore->ingress[k].rx_queue == 0)
				bs_stamp_text(&port->stamps, lcore->ingress[k].stamp, text);
		}
	}
}

void
bs_dataplane_snapshot(const struct bs_dataplane *dataplane, struct bs_snapshot *snapshot)
{
	struct bs_collector_status collector;

	memset(snapshot, 0, sizeof(*snapshot));
	snapshot->t_ns = bs_clock_now_ns();
	snapshot->t_start_ns = dataplane->t_start;
	snapshot->pid = (uint32_t)getpid();
	snapshot->memory_node = dataplane->pool->socket_id;
	snapshot->hugepages = dataplane->hugepages;
	name_buffers(dataplane, snapshot);
	snapshot->port_count = dataplane->config.port_count;
	for (unsigned i = 0; i < snapshot->port_count; i++) {
		bs_port_snapshot(&dataplane->ports[i], &snapshot->ports[i]);
		stamps_text(dataplane, &dataplane->ports[i], snapshot->ports[i].rx_stamps);
	}
	for (unsigned i = 0; i < dataplane->queue_count; i++)
		add_queue(snapshot, dataplane->queues[i]);
	for (unsigned i = 0; i < dataplane->lcore_count; i++)
		add_lcore(dataplane->lcores[i], snapshot);
	account(dataplane, snapshot);
	add_services(dataplane, snapshot);
	bs_collector_status(dataplane->collector, &collector);
	snapshot->loss = collector.loss;
	snapshot->records_sent = collector.records_sent;
	snapshot->record_bytes = collector.record_bytes;
	snapshot->collector_age_ns =
		snapshot->t_ns - RTE_MIN(snapshot->t_ns, collector.heartbeat_ns);
	snapshot->analyzer_connected = collector.connected;
	snapshot->analyzer_unread_ns =
		collector.t_refused == 0
			? 0
			: snapshot->t_ns - RTE_MIN(snapshot->t_ns, collector.t_refused);
	snapshot->analyzer_bad_records = collector.bad_records;
	snapshot->analyzer_rejected = collector.rejected;
	snapshot->journal = collector.journal;
}
