/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way out of a port: takes packets from the application queues by class,
 * strictly or in deficit round robin (Shreedhar and Varghese, 1996), hands them
 * to the port within its rate, and tells how long each that completes a message
 * waited and for what.
 */
#include <rte_ethdev.h>
#include <string.h>

#include "bs_clock.h"
#include "dataplane.h"
#include "lcore.h"
#include "port.h"

#define RATE_BURST_NS 2000000ull /* a port that was idle may catch up for this long */

/* --- rate ------------------------------------------------------------------ */

static void
tokens_refill(struct bs_egress *egress, uint64_t t)
{
	const uint64_t bytes_per_s = egress->port->rate_bps / 8;
	const int64_t limit = (int64_t)(bytes_per_s * RATE_BURST_NS / BS_NS_PER_S) + 2048;
	const bs_uint128 credit =
		(bs_uint128)(t - egress->t_tokens) * bytes_per_s + egress->token_rest;

	egress->t_tokens = t;
	egress->token_rest = (uint64_t)(credit % BS_NS_PER_S);
	egress->tokens_bytes += (int64_t)(credit / BS_NS_PER_S);
	if (egress->tokens_bytes > limit)
		egress->tokens_bytes = limit;
}

/* How long until there is one. */
static uint64_t
tokens_wait_ns(const struct bs_egress *egress)
{
	const uint64_t bytes_per_s = egress->port->rate_bps / 8;

	return (uint64_t)(1 - egress->tokens_bytes) * BS_NS_PER_S / bytes_per_s;
}

/* --- blocked downstream ------------------------------------------------------ */

static void
pause_episode(struct bs_lcore *lcore, struct bs_egress *egress, uint64_t t, bool over)
{
	if (egress->t_pause_begin == 0)
		return;
	if (t - egress->t_pause_begin >= lcore->dataplane->config.detect_ns[BS_CAUSE_PAUSE] &&
		(over || !egress->pause_told)) {
		for (unsigned i = 0; i < egress->queue_count; i++) {
			struct bs_queue *queue = egress->queues[i];

			if (rte_ring_count(queue->ring) > 0 || queue == egress->pending_queue)
				bs_lcore_episode(lcore, BS_CAUSE_PAUSE, queue->buffer, 0,
					egress->tx_buffer, egress->t_pause_begin, over ? t : 0, 1);
		}
		egress->pause_told = true;
	}
	if (over) {
		bs_count(&egress->pause_ns, t - egress->t_pause_begin);
		egress->t_pause_begin = 0;
		egress->pause_told = false;
	}
}

static void
blocked(struct bs_lcore *lcore, struct bs_egress *egress, uint64_t t)
{
	if (egress->t_pause_begin == 0)
		egress->t_pause_begin = t;
	bs_drain_set(egress->log, t, BS_DRAIN_PAUSE, BS_DRAIN_OTHER);
	pause_episode(lcore, egress, t, false);
}

/* --- stays ------------------------------------------------------------------- */

void
bs_stay_fill(struct bs_stay *stay, const struct bs_drain_log *log, unsigned served, uint16_t buffer,
	uint64_t t_in, uint64_t t_out)
{
	struct bs_drain_culprit culprit;
	struct bs_wait wait;

	memset(stay, 0, sizeof(*stay));
	bs_drain_wait(log, served, t_in, t_out, &wait);
	stay->t_in = t_in;
	stay->t_out = t_out;
	stay->buffer = buffer;
	stay->congestion = wait.congestion;
	stay->contention = wait.contention;
	stay->pause = wait.pause;
	stay->stalled = wait.stalled;
	stay->preempted = wait.preempted;
	stay->sleep = wait.sleep;
	stay->unobserved = wait.unobserved;
	if (wait.congestion + wait.contention < BS_STALL_NS)
		return;
	/* if most of it went to nobody in particular, there is no culprit */
	if (bs_drain_culprits(log,
		    wait.contention > wait.congestion ? BS_CAUSE_CONTENTION : BS_CAUSE_CONGESTION,
		    served, t_in, t_out, &culprit, 1) == 1 &&
		culprit.service != BS_DRAIN_NO_SERVICE) {
		stay->culprit_kind = BS_CULPRIT_SERVICE;
		stay->culprit_id = culprit.service;
	}
}

/* --- sending ----------------------------------------------------------------- */

/* Offers what is pending to the port. What it takes departs now; returns how many that were. */
static unsigned
send_pending(struct bs_lcore *lcore, struct bs_egress *egress)
{
	struct bs_departure departures[BS_BURST];
	struct bs_queue *queue = egress->pending_queue;
	struct rte_mbuf **mbufs = &egress->pending[egress->pending_at];
	const uint64_t *t_in = &egress->pending_t_in[egress->pending_at];
	uint64_t bytes[BS_BURST], sum = 0, wait_ns_sum = 0, t;
	bool told[BS_BURST];
	struct bs_stay stay = {.t_out = 0};
	unsigned sent;

	for (unsigned i = 0; i < egress->pending_count; i++) {
		told[i] = (mbufs[i]->ol_flags & bs_mbuf_handle_flag) != 0;
		bytes[i] = mbufs[i]->pkt_len;
		if (told[i])
			departures[i].handle = bs_meta(mbufs[i])->handle;
	}
	sent = rte_eth_tx_burst(
		egress->port->id, egress->tx_queue, mbufs, (uint16_t)egress->pending_count);
	t = bs_lcore_now(lcore);
	for (unsigned i = 0; i < sent; i++) {
		uint64_t wait_ns = t - t_in[i];

		sum += bytes[i];
		wait_ns_sum += wait_ns;
		if (wait_ns > queue->wait_ns_max)
			queue->wait_ns_max = wait_ns;
		if (!told[i])
			continue;
		/* most of them entered together */
		if (stay.t_out == 0 || stay.t_in != t_in[i])
			bs_stay_fill(&stay, egress->log, queue->served, queue->buffer, t_in[i], t);
		departures[i].stay = stay;
		bs_tell_left(lcore, queue->producer, &departures[i], t);
	}
	queue->wait_ns_sum += wait_ns_sum;
	bs_drain_account(egress->log, queue->service, 0, sum);
	bs_count(&queue->dequeued, sent);
	bs_count(&egress->tx_packets, sent);
	bs_count(&egress->tx_bytes, sum);
	egress->tokens_bytes -= (int64_t)sum;
	queue->deficit_bytes -= (int64_t)sum;
	egress->pending_at += sent;
	egress->pending_count -= sent;
	if (egress->pending_count > 0) {
		bs_count(&egress->tx_refusals, 1);
		blocked(lcore, egress, t);
	} else {
		pause_episode(lcore, egress, t, true);
		egress->pending_queue = NULL;
	}
	return sent;
}

/*
 * Which queues may be served: those of the lowest class that have packets, or with drr all that
 * have. Credit does not outlast the packets it was for; a debt does, until nothing waits at all.
 * Returns whether there are any.
 */
static bool
find_waiting(struct bs_egress *egress, bool priority)
{
	unsigned class_ = 0;
	bool any = false;

	memset(egress->waiting, 0, (egress->queue_count + 63) / 64 * sizeof(egress->waiting[0]));
	for (unsigned i = 0; i < egress->queue_count; i++) {
		struct bs_queue *queue = egress->queues[i];

		if (rte_ring_empty(queue->ring)) {
			if (queue->deficit_bytes > 0)
				queue->deficit_bytes = 0;
		} else if (!any || !priority || queue->class_ == class_) {
			class_ = queue->class_;
			egress->waiting[i / 64] |= 1ull << i % 64;
			any = true;
		}
	}
	if (!any && egress->in_debt) {
		for (unsigned i = 0; i < egress->queue_count; i++)
			egress->queues[i]->deficit_bytes = 0;
		egress->in_debt = false;
	}
	return any;
}

/* The first from `at` on that waits; queue_count if none does. */
static unsigned
next_waiting(const struct bs_egress *egress, unsigned at)
{
	while (at < egress->queue_count) {
		const uint64_t bits = egress->waiting[at / 64] >> at % 64;

		if (bits != 0)
			return at + (unsigned)__builtin_ctzll(bits);
		at = (at / 64 + 1) * 64;
	}
	return egress->queue_count;
}

/* The first of those in [at, end) that has credit. */
static struct bs_queue *
credit_between(struct bs_egress *egress, unsigned at, unsigned end)
{
	while ((at = next_waiting(egress, at)) < end) {
		if (egress->queues[at]->deficit_bytes > 0) {
			egress->next = at;
			return egress->queues[at];
		}
		at++;
	}
	return NULL;
}

/* The first of them, from whose turn it is on, that has credit. */
static struct bs_queue *
first_with_credit(struct bs_egress *egress)
{
	struct bs_queue *queue = credit_between(egress, egress->next, egress->queue_count);

	return queue != NULL ? queue : credit_between(egress, 0, egress->next);
}

/* All their credit is used: so many rounds of a quantum for each that one of them has some again.
 */
static void
next_rounds(struct bs_egress *egress, int64_t quantum)
{
	const unsigned end = egress->queue_count;
	int64_t most = INT64_MIN, more;

	for (unsigned i = next_waiting(egress, 0); i < end; i = next_waiting(egress, i + 1))
		most = RTE_MAX(most, egress->queues[i]->deficit_bytes);
	more = (-most / quantum + 1) * quantum;
	for (unsigned i = next_waiting(egress, 0); i < end; i = next_waiting(egress, i + 1))
		egress->queues[i]->deficit_bytes += more;
	egress->in_debt = true;
}

/* The next queue to serve; NULL if nothing waits. */
static struct bs_queue *
choose(struct bs_lcore *lcore, struct bs_egress *egress)
{
	const bool priority = lcore->dataplane->config.app_queue.schedule == BS_SCHEDULE_PRIORITY;
	struct bs_queue *queue;

	if (!find_waiting(egress, priority))
		return NULL;
	queue = first_with_credit(egress);
	if (queue != NULL)
		return queue;
	next_rounds(egress, lcore->dataplane->config.app_queue.quantum_bytes);
	return first_with_credit(egress);
}

static unsigned
take_burst(struct bs_egress *egress, struct bs_queue *queue)
{
	unsigned n =
		rte_ring_sc_dequeue_burst(queue->ring, (void **)egress->pending, BS_BURST, NULL);

	for (unsigned i = 0; i < n; i++)
		egress->pending_t_in[i] = bs_entries_pop(queue->entries);
	egress->pending_queue = queue;
	egress->pending_count = n;
	egress->pending_at = 0;
	return n;
}

unsigned
bs_egress_serve(struct bs_lcore *lcore, struct bs_egress *egress)
{
	unsigned moved = 0;

	for (unsigned round = 0; round < 4; round++) {
		const uint64_t t = lcore->t_turn;
		struct bs_queue *queue;

		if (egress->pending_count == 0) {
			queue = choose(lcore, egress);
			if (queue == NULL)
				break;
			if (egress->port->rate_bps != 0) {
				tokens_refill(egress, t);
				if (egress->tokens_bytes <= 0) {
					egress->t_rate_ready = t + tokens_wait_ns(egress);
					blocked(lcore, egress, t);
					return moved;
				}
				egress->t_rate_ready = 0;
			}
			bs_drain_set(egress->log, t, BS_DRAIN_SERVE, queue->served);
			take_burst(egress, queue);
			bs_outgoing_prepare(lcore, egress);
		} else {
			queue = egress->pending_queue;
		}
		moved += send_pending(lcore, egress);
		if (egress->pending_count > 0)
			return moved;
		/* its quantum is used: the turn goes on */
		if (queue->deficit_bytes <= 0 && ++egress->next >= egress->queue_count)
			egress->next = 0;
	}
	bs_drain_set(egress->log, lcore->t_turn, BS_DRAIN_SERVE, BS_DRAIN_OTHER);
	return moved;
}

void
bs_egress_drop_all(struct bs_lcore *lcore, struct bs_egress *egress)
{
	if (egress->pending_count > 0) {
		rte_pktmbuf_free_bulk(&egress->pending[egress->pending_at], egress->pending_count);
		bs_count_ended(lcore, egress->pending_queue->from, BS_REASON_TX_REFUSED,
			egress->pending_count);
		egress->pending_count = 0;
	}
	for (unsigned i = 0; i < egress->queue_count; i++) {
		struct rte_mbuf *mbufs[BS_BURST];
		unsigned n;

		while ((n = rte_ring_sc_dequeue_burst(
				egress->queues[i]->ring, (void **)mbufs, BS_BURST, NULL)) > 0) {
			rte_pktmbuf_free_bulk(mbufs, n);
			bs_count_ended(lcore, egress->queues[i]->from, BS_REASON_SHUTDOWN, n);
		}
	}
}
