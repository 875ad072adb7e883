/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Application queues: where a packet waits between the lcore that tracked it
 * and the lcore that owns its way out. A burst is staged per queue and becomes
 * visible at once, with one entry time.
 */
#include <errno.h>
#include <rte_malloc.h>
#include <stdio.h>
#include <string.h>

#include "dataplane.h"
#include "lcore.h"

#define DROP_EPISODE_QUIET_NS 10000000ull

struct bs_queue *
bs_queue_create(struct bs_lcore *producer, uint16_t buffer, unsigned number, unsigned size)
{
	struct bs_queue *queue = rte_zmalloc("bs_queue", sizeof(*queue), RTE_CACHE_LINE_SIZE);
	const unsigned places = rte_align32pow2(size + 1);
	char name[RTE_RING_NAMESIZE];

	if (queue == NULL) {
		errno = ENOMEM;
		return NULL;
	}
	snprintf(name, sizeof(name), "bsq%u", number);
	queue->producer = producer;
	queue->buffer = buffer;
	/* not rte_ring_create(): there may be more queues than EAL has memory zones */
	queue->ring = rte_malloc(
		"bs_queue_ring", (size_t)rte_ring_get_memsize(places), RTE_CACHE_LINE_SIZE);
	queue->entries = bs_entries_create(size);
	if (queue->ring == NULL || queue->entries == NULL ||
		rte_ring_init(queue->ring, name, size,
			RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ) != 0) {
		bs_queue_destroy(queue);
		errno = ENOMEM;
		return NULL;
	}
	return queue;
}

void
bs_queue_destroy(struct bs_queue *queue)
{
	if (queue == NULL)
		return;
	rte_free(queue->ring);
	bs_entries_destroy(queue->entries);
	rte_free(queue);
}

void
bs_queue_stage(struct bs_lcore *lcore, struct bs_queue *queue, struct rte_mbuf *mbuf)
{
	if (queue->staged == 0)
		lcore->touched[lcore->touched_count++] = queue;
	queue->stage[queue->staged++] = mbuf;
}

void
bs_drops_add(struct bs_drops *drops, enum bs_reason reason, unsigned n, uint64_t t)
{
	if (drops->count == 0) {
		drops->t_begin = t;
		drops->reason = reason;
	}
	drops->t_last = t;
	drops->count += n;
}

static void
drops_tell(struct bs_lcore *lcore, struct bs_drops *drops, uint16_t buffer, uint64_t t)
{
	if (drops->count == 0 || (t < drops->t_last + DROP_EPISODE_QUIET_NS &&
					 t < drops->t_begin + 10 * DROP_EPISODE_QUIET_NS))
		return;
	bs_lcore_episode(lcore, BS_CAUSE_DROP, buffer,
		(uint16_t)(BS_DETAIL_FIRST_REASON + drops->reason), BS_BUFFER_NONE, drops->t_begin,
		drops->t_last, drops->count);
	drops->count = 0;
}

void
bs_drops_tell(struct bs_lcore *lcore, uint64_t t)
{
	const struct bs_config *config = &lcore->dataplane->config;

	drops_tell(lcore, &lcore->handover_drops, BS_BUFFER_HANDOVER, t);
	for (unsigned p = 0; p < config->port_count; p++) {
		for (unsigned s = 0; s < config->service_count; s++)
			drops_tell(
				lcore, &lcore->queues[p][s]->drops, lcore->queues[p][s]->buffer, t);
		drops_tell(lcore, &lcore->queues[p][BS_SERVICE_OTHER]->drops,
			lcore->queues[p][BS_SERVICE_OTHER]->buffer, t);
	}
}

static void
drop(struct bs_lcore *lcore, struct bs_queue *queue, struct rte_mbuf **mbufs, unsigned n,
	enum bs_reason reason, uint64_t t)
{
	bs_drops_add(&queue->drops, reason, n, t);
	bs_count(&queue->dropped, n);
	bs_count_ended(lcore, queue->from, reason, n);
	for (unsigned i = 0; i < n; i++) {
		struct bs_packet packet = {
			.data = rte_pktmbuf_mtod(mbufs[i], const uint8_t *),
			.caplen = mbufs[i]->data_len,
			.len = mbufs[i]->pkt_len,
		};

		bs_shim_parse(lcore, &packet);
		bs_tell_dropped(lcore, lcore, &packet, queue->buffer, reason, t);
	}
	rte_pktmbuf_free_bulk(mbufs, n);
}

/* A debug fault wants some of them dropped: the first of those staged. */
static void
drop_for_fault(struct bs_lcore *lcore, struct bs_queue *queue, uint64_t t)
{
	const unsigned n = (unsigned)RTE_MIN(lcore->drops_left, (uint64_t)queue->staged);

	if (queue->service == BS_SERVICE_OTHER)
		return;
	lcore->drops_left -= n;
	queue->staged -= n;
	drop(lcore, queue, queue->stage, n, BS_REASON_FAULT, t);
	memmove(queue->stage, queue->stage + n, queue->staged * sizeof(queue->stage[0]));
}

void
bs_queues_flush(struct bs_lcore *lcore, uint64_t t)
{
	for (unsigned i = 0; i < lcore->touched_count; i++) {
		struct bs_queue *queue = lcore->touched[i];
		unsigned room = rte_ring_free_count(queue->ring), n, occupancy;

		if (unlikely(lcore->drops_left > 0))
			drop_for_fault(lcore, queue, t);
		n = RTE_MIN(queue->staged, room);
		/* the entry time first: a drainer that sees the packets must find it */
		if (n > 0 && bs_entries_push(queue->entries, t, n) != 0)
			n = 0;
		if (n > 0)
			rte_ring_sp_enqueue_bulk(queue->ring, (void *const *)queue->stage, n, NULL);
		if (n > 0 && queue->drainer != lcore)
			bs_lcore_ring(queue->drainer);
		bs_count(&queue->enqueued, n);
		occupancy = rte_ring_count(queue->ring);
		if (occupancy > queue->occupancy_max)
			queue->occupancy_max = occupancy;
		if (n < queue->staged)
			drop(lcore, queue, &queue->stage[n], queue->staged - n,
				BS_REASON_APP_QUEUE_FULL, t);
		queue->staged = 0;
	}
	lcore->touched_count = 0;
}
