/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An lcore's turn and what happens between turns: noticing that it was away,
 * idling without burning a CPU, housekeeping.
 */
#include "lcore.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bs_clock.h"
#include "dataplane.h"
#include "port.h"

uint64_t bs_mbuf_handle_flag;

#define IDLE_SPINS 200u		    /* empty turns before it sleeps */
#define SLEEP_WITH_FDS_NS 10000000l /* packets wake it */
#define SLEEP_BLIND_NS 500000l	    /* nothing does */
#define WAKE_NS 30000ull /* from a packet in the ring to the end of ppoll, with a CPU free */
#define HOUSEKEEPING_NS 1000000ull
#define SCHEDULER_NS 10000000ull /* what was waited before that is not held against a gap */

/* --- records -------------------------------------------------------------------- */

int
bs_lcore_put(void *lcore, const void *units, unsigned count)
{
	struct bs_lcore *self = lcore;

	return rte_ring_sp_enqueue_bulk_elem(
		       self->records, (void *)(uintptr_t)units, BS_UNIT_BYTES, count, NULL) == count
		       ? 0
		       : -ENOBUFS;
}

void
bs_lcore_episode(struct bs_lcore *lcore, unsigned type, uint16_t buffer, uint16_t detail,
	uint16_t upstream, uint64_t t_begin, uint64_t t_end, uint64_t count)
{
	struct bs_rec_event event;

	memset(&event, 0, sizeof(event));
	bs_record_head(&event.head, BS_REC_EVENT, lcore->index);
	event.t_begin = t_begin;
	event.t_end = t_end;
	event.blocking_ns = t_end == 0 ? 0 : t_end - t_begin;
	event.count = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
	event.buffer = buffer;
	event.detail = detail;
	event.type = (uint8_t)type;
	event.quality = BS_QUALITY_EXACT;
	event.upstream = upstream;
	event.culprit_kind[0] = BS_CULPRIT_LCORE;
	event.culprits[0].id = lcore->lcore_id;
	event.culprit_count = type == BS_CAUSE_HANG;
	if (bs_lcore_put(lcore, &event, BS_UNITS_OF(struct bs_rec_event)) != 0)
		bs_count(&lcore->counters.episodes_lost, 1);
}

/* --- time ----------------------------------------------------------------------- */

static void
log_insert(struct bs_drain_log *log, uint64_t t_before, uint64_t t, enum bs_drain_state state)
{
	bs_drain_advance(log, t_before);
	bs_drain_insert(log, t, state);
}

static void
logs_insert(struct bs_lcore *lcore, uint64_t t_before, uint64_t t, enum bs_drain_state state)
{
	bs_count(&lcore->away_ns[state], t - t_before);
	log_insert(lcore->rx_log, t_before, t, state);
	for (unsigned i = 0; i < lcore->egress_count; i++) {
		/* who sleeps until the port's rate lets it go on is paused by the port */
		if (state != BS_DRAIN_SLEEP || lcore->egress[i].t_rate_ready == 0)
			log_insert(lcore->egress[i].log, t_before, t, state);
	}
}

/* How long of a gap it was without a CPU: asks the scheduler, which counts time on the run queue.
 */
static uint64_t
waited_for_cpu(struct bs_lcore *lcore, uint64_t gap_ns)
{
	uint64_t delay_ns = lcore->dataplane->run_delay_ns();
	uint64_t waited_ns = delay_ns - lcore->run_delay_ns;

	lcore->run_delay_ns = delay_ns;
	return RTE_MIN(waited_ns, gap_ns);
}

/* Adds a buffer to a list that does not have it yet. */
static unsigned
list_add(uint16_t *buffers, unsigned count, unsigned max, uint16_t buffer)
{
	for (unsigned i = 0; i < count; i++) {
		if (buffers[i] == buffer)
			return count;
	}
	if (count < max)
		buffers[count++] = buffer;
	return count;
}

unsigned
bs_lcore_waiting(const struct bs_lcore *lcore, uint16_t *buffers, unsigned max)
{
	unsigned count = 0;

	for (unsigned i = 0; i < lcore->ingress_count; i++)
		count = list_add(buffers, count, max, lcore->ingress[i].buffer);
	for (unsigned i = 0; i < lcore->dataplane->lcore_count; i++) {
		if (lcore->handover[i] != NULL && !rte_ring_empty(lcore->handover[i]))
			count = list_add(buffers, count, max, BS_BUFFER_HANDOVER);
	}
	for (unsigned i = 0; i < lcore->egress_count; i++) {
		const struct bs_egress *egress = &lcore->egress[i];

		for (unsigned k = 0; k < egress->queue_count; k++) {
			if (!rte_ring_empty(egress->queues[k]->ring) ||
				egress->queues[k] == egress->pending_queue)
				count = list_add(buffers, count, max, egress->queues[k]->buffer);
		}
	}
	return count;
}

/* The buffers that this lcore drains, and did not. */
static void
hang_episodes(struct bs_lcore *lcore, enum bs_drain_state state, uint64_t t_begin, uint64_t t_end)
{
	const uint16_t detail =
		state == BS_DRAIN_PREEMPTED ? BS_DETAIL_PREEMPTED : BS_DETAIL_STALLED;
	uint16_t buffers[BS_SNAPSHOT_BUFFERS];
	unsigned count = bs_lcore_waiting(lcore, buffers, BS_SNAPSHOT_BUFFERS);

	for (unsigned i = 0; i < count; i++)
		bs_lcore_episode(lcore, BS_CAUSE_HANG, buffers[i], detail, BS_BUFFER_NONE, t_begin,
			t_end, 1);
}

uint64_t
bs_lcore_now(struct bs_lcore *lcore)
{
	const uint64_t t_before = lcore->t_turn, t = bs_clock_now_ns();
	uint64_t waited_ns;

	lcore->t_turn = t;
	if (likely(t - t_before < BS_STALL_NS))
		return t;
	/* in which order is not known; the parts are */
	waited_ns = waited_for_cpu(lcore, t - t_before);
	logs_insert(lcore, t_before, t - waited_ns, BS_DRAIN_STALLED);
	logs_insert(lcore, t - waited_ns, t, BS_DRAIN_PREEMPTED);
	if (t - t_before >= lcore->dataplane->config.detect_ns[BS_CAUSE_HANG])
		hang_episodes(lcore,
			waited_ns >= (t - t_before) / 2 ? BS_DRAIN_PREEMPTED : BS_DRAIN_STALLED,
			t_before, t);
	return t;
}

uint64_t
bs_run_delay_ns(void)
{
	static __thread int fd = -1;
	unsigned long long on_cpu, delay_ns = 0;
	char text[96];
	ssize_t n;

	if (fd < 0)
		fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	n = pread(fd, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return 0; /* a kernel without the account: all is "stalled" */
	text[n] = '\0';
	return sscanf(text, "%llu %llu", &on_cpu, &delay_ns) == 2 ? delay_ns : 0;
}

/* --- the turn ------------------------------------------------------------------- */

/*
 * A held lcore, as by a slow system call: blocked, so that the scheduler, which
 * would take a spinning one off a busy CPU, has no part in it.
 */
static void
stay_away(struct bs_lcore *lcore)
{
	const struct timespec step = {0, 100000};
	uint64_t stall_ns = __atomic_exchange_n(&lcore->fault_stall_ns, 0, __ATOMIC_RELAXED);
	uint64_t t_end = lcore->t_turn + stall_ns;

	if (stall_ns == 0)
		return;
	while (bs_clock_now_ns() < t_end)
		nanosleep(&step, NULL);
	bs_lcore_now(lcore);
}

static void
housekeep(struct bs_lcore *lcore, uint64_t t)
{
	bs_tracker_advance(lcore->tracker, t);
	bs_drops_tell(lcore, t);
	for (unsigned i = 0; i < lcore->ingress_count; i++) {
		if (lcore->ingress[i].stamp != NULL)
			bs_stamp_check(lcore->ingress[i].stamp, t);
	}
	if (t - lcore->t_scheduler >= SCHEDULER_NS) {
		lcore->t_scheduler = t;
		lcore->run_delay_ns = lcore->dataplane->run_delay_ns();
	}
}

unsigned
bs_lcore_turn(struct bs_lcore *lcore)
{
	uint64_t t = bs_lcore_now(lcore);
	unsigned moved = 0;

	__atomic_store_n(&lcore->heartbeat_ns, t, __ATOMIC_RELAXED);
	if (unlikely(__atomic_load_n(&lcore->fault_stall_ns, __ATOMIC_RELAXED) != 0))
		stay_away(lcore);
	if (unlikely(__atomic_load_n(&lcore->fault_drops, __ATOMIC_RELAXED) != 0))
		lcore->drops_left += __atomic_exchange_n(&lcore->fault_drops, 0, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < lcore->ingress_count; i++)
		moved += bs_ingress_poll(lcore, &lcore->ingress[i]);
	bs_drain_set(lcore->rx_log, lcore->t_turn, BS_DRAIN_SERVE, BS_DRAIN_OTHER);
	if (lcore->dataplane->lcore_count > 1) {
		moved += bs_handover_poll(lcore);
	}
	for (unsigned i = 0; i < lcore->egress_count; i++)
		moved += bs_egress_serve(lcore, &lcore->egress[i]);
	bs_count(&lcore->counters.polls, 1);
	bs_count(&lcore->counters.packets, moved);
	if (lcore->t_turn - lcore->t_housekeeping >= HOUSEKEEPING_NS) {
		lcore->t_housekeeping = lcore->t_turn;
		housekeep(lcore, lcore->t_turn);
	}
	return moved;
}

/* --- idling --------------------------------------------------------------------- */

void
bs_lcore_ring(struct bs_lcore *lcore)
{
	const uint64_t one = 1;

	/* what it is rung for must be there before its sleep is looked at: idle() does the reverse
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&lcore->sleeping, __ATOMIC_SEQ_CST) &&
		write(lcore->doorbell, &one, sizeof(one)) < 0)
		return; /* it is already rung */
}

/* Nothing may be left for it to do that no descriptor would tell of. */
static bool
has_work(const struct bs_lcore *lcore)
{
	for (unsigned i = 0; i < lcore->egress_count; i++) {
		if (lcore->egress[i].pending_count > 0)
			return true;
		for (unsigned k = 0; k < lcore->egress[i].queue_count; k++) {
			if (lcore->egress[i].t_rate_ready == 0 &&
				!rte_ring_empty(lcore->egress[i].queues[k]->ring))
				return true;
		}
	}
	for (unsigned i = 0; i < lcore->dataplane->lcore_count; i++) {
		if ((lcore->handover[i] != NULL && !rte_ring_empty(lcore->handover[i])) ||
			(lcore->notices[i] != NULL && !rte_ring_empty(lcore->notices[i])))
			return true;
	}
	return false;
}

/* A packet woke it: it came when the wait ended, less what the thread then waited for a CPU. */
static void
woken_by(struct bs_lcore *lcore, const struct pollfd *fds, uint64_t t_woken)
{
	for (unsigned i = 0; i < lcore->wait_fd_count; i++) {
		struct bs_ingress *ingress = lcore->wait_ingress[i];

		if ((fds[i].revents & POLLIN) && t_woken > ingress->t_short + WAKE_NS)
			ingress->t_short = t_woken - WAKE_NS;
	}
}

/* An interface that goes down leaves an error at its socket, which ends every wait until it is
 * taken.
 */
static void
take_errors(const struct pollfd *fds, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		int error;
		socklen_t bytes = sizeof(error);

		if (fds[i].revents & POLLERR)
			getsockopt(fds[i].fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
	}
}

/* Sleeps until a packet, a ring at the doorbell, or the timeout. */
static void
sleep_a_while(struct bs_lcore *lcore)
{
	struct pollfd fds[BS_LCORE_WAIT_FDS + 1];
	struct timespec timeout = {0, SLEEP_BLIND_NS};
	uint64_t rung, t, delay_ns;
	unsigned n = 0;

	for (; n < lcore->wait_fd_count; n++)
		fds[n] = (struct pollfd){.fd = lcore->wait_fds[n], .events = POLLIN};
	fds[n] = (struct pollfd){.fd = lcore->doorbell, .events = POLLIN};
	if (lcore->wait_fd_count >= lcore->ingress_count)
		timeout.tv_nsec = SLEEP_WITH_FDS_NS;
	for (unsigned i = 0; i < lcore->egress_count; i++) {
		const uint64_t t_ready = lcore->egress[i].t_rate_ready;

		if (t_ready != 0 && t_ready < lcore->t_turn + (uint64_t)timeout.tv_nsec)
			timeout.tv_nsec =
				t_ready > lcore->t_turn ? (long)(t_ready - lcore->t_turn) : 0;
	}
	if (ppoll(fds, n + 1, &timeout, NULL) > 0 && (fds[n].revents & POLLIN) &&
		read(lcore->doorbell, &rung, sizeof(rung)) < 0)
		rung = 0; /* somebody else read it: no matter */
	take_errors(fds, n);
	t = bs_clock_now_ns();
	delay_ns = waited_for_cpu(lcore, t - lcore->t_turn);
	logs_insert(lcore, lcore->t_turn, t - delay_ns, BS_DRAIN_SLEEP);
	logs_insert(lcore, t - delay_ns, t, BS_DRAIN_PREEMPTED);
	lcore->t_turn = t;
	woken_by(lcore, fds, t - delay_ns);
}

static void
idle(struct bs_lcore *lcore)
{
	if (++lcore->idle_turns < IDLE_SPINS) {
		rte_pause();
		return;
	}
	/* first say so, then look again: whoever adds work rings if it saw this */
	__atomic_store_n(&lcore->sleeping, 1, __ATOMIC_SEQ_CST);
	if (!has_work(lcore))
		sleep_a_while(lcore);
	__atomic_store_n(&lcore->sleeping, 0, __ATOMIC_SEQ_CST);
}

int
bs_lcore_run(void *lcore)
{
	struct bs_lcore *self = lcore;

	self->t_turn = self->t_scheduler = bs_clock_now_ns();
	self->run_delay_ns = self->dataplane->run_delay_ns();
	while (!__atomic_load_n(&self->stop, __ATOMIC_RELAXED)) {
		if (bs_lcore_turn(self) > 0)
			self->idle_turns = 0;
		else
			idle(self);
	}
	return 0;
}

void
bs_lcore_visit(unsigned lcore_id)
{
	rte_cpuset_t there;

	if (!rte_lcore_is_enabled(lcore_id))
		return;
	there = rte_lcore_cpuset(lcore_id);
	rte_thread_set_affinity(&there);
}
