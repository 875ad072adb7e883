/* SPDX-License-Identifier: BSD-3-Clause */
/* See watch.h. */
#include "watch.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define XSTATS_MAX 1024u
#define PAUSE_IDS 32u

/* An mbuf in so many is held too long, and when less are it is over; of those not in rings. */
#define HELD_SHARE 4u
#define FREED_SHARE 8u
/* Without a port that refuses, in so many steps on end more must be in use. */
#define GROWING_STEPS 3u

#define X_KEY(name, key, what, remedy) [BS_FINDING_##name] = key,
#define X_TEXT(name, key, what, remedy) [BS_FINDING_##name] = what,
#define X_REMEDY(name, key, what, remedy) [BS_FINDING_##name] = remedy,
static const char *const keys[BS_FINDING_COUNT] = {BS_FINDINGS(X_KEY)};
static const char *const texts[BS_FINDING_COUNT] = {BS_FINDINGS(X_TEXT)};
static const char *const remedies[BS_FINDING_COUNT] = {BS_FINDINGS(X_REMEDY)};

/*
 * Pause frames have no counter of their own in ethdev, and each driver has names of its own for
 * them. XOFF is a pause, XON its end. Drivers that are not here count none: mlx5 leaves them to
 * the kernel's interface.
 */
static const struct {
	const char *driver, *received, *sent;
} pause_names[] = {
	{"net_bnxt", "rx_pause_frames", "tx_pause_frames"},
	{"net_bnxt", "rx_pfc_*", "tx_pfc_*"},
	{"net_bufnic", "rx_pause_frames", "tx_pause_frames"},
	{"net_cn9k", "cgx_rx_pause_pkts", "cgx_tx_pause_packets"},
	{"net_cn10k", "cgx_rx_pause_pkts", "cgx_tx_pause_packets"},
	{"net_cxgbe", "rx_pause_*", "tx_pause_*"},
	{"net_hns3", "mac_rx_mac_pause_num", "mac_tx_mac_pause_num"},
	{"net_i40e", "rx_*xoff_packets", "tx_*xoff_packets"},
	{"net_ice", "rx_*xoff_packets", "tx_*xoff_packets"},
	{"net_ixgbe", "rx_*xoff_packets", "tx_*xoff_packets"},
	{"net_sfc_efx", "rx_pause_pkts", "tx_pause_pkts"},
};

/* Counters of the driver that say the same, summed. */
struct pause {
	uint64_t ids[PAUSE_IDS];
	unsigned count; /* 0: not observable */
	uint64_t sum;	/* when last looked at */
};

/* Losses that no flow has shown yet. */
struct doubt {
	uint64_t count, t_begin, t_end;
};

enum loss { LOSS_MISSED, LOSS_NO_MBUF, LOSS_ERRORS, LOSS_COUNT };

struct port {
	struct bs_watch_port is;
	struct bs_watch_reading last;
	struct pause received, sent;
	struct doubt doubts[LOSS_COUNT];
	uint64_t evidence;		   /* gaps of the step before */
	uint64_t given_last, given_before; /* at the last look; before the pool in use grew */
	uint64_t quiet;			   /* steps since the device counted a loss */
	uint64_t t_tx_stuck, t_rx_silent;  /* what goes on; 0: it does not */
	struct bs_watched_port shown;
};

struct bs_watch {
	struct bs_watch_ops ops;
	struct port *ports;
	unsigned port_count;
	uint64_t t_last;
	uint32_t rings;		/* mbufs that lie in rings always */
	uint32_t in_use;	/* at the last look */
	uint32_t in_use_before; /* it grew */
	unsigned growing;	/* looks on end at which it was more */
	uint64_t t_growing;	/* since when */
	struct bs_watched_pool shown;
};

const char *
bs_finding_key(unsigned finding)
{
	return finding < BS_FINDING_COUNT ? keys[finding] : "?";
}

const char *
bs_finding_text(unsigned finding)
{
	return finding < BS_FINDING_COUNT ? texts[finding] : "?";
}

const char *
bs_finding_remedy(unsigned finding)
{
	return finding < BS_FINDING_COUNT ? remedies[finding] : "?";
}

/* --- counters ---------------------------------------------------------------------- */

/* What came on top; of a counter that was reset, what it has counted since. */
static uint64_t
more(uint64_t now, uint64_t before)
{
	return now >= before ? now - before : now;
}

static void
pause_add(struct pause *pause, const char *pattern, char (*names)[BS_WATCH_NAME_BYTES],
	unsigned count)
{
	for (unsigned i = 0; i < count && pause->count < PAUSE_IDS; i++) {
		if (fnmatch(pattern, names[i], 0) == 0)
			pause->ids[pause->count++] = i;
	}
}

/* Their sum, if it can be read. */
static bool
pause_read(const struct bs_watch *watch, unsigned port, const struct pause *pause, uint64_t *sum)
{
	uint64_t values[PAUSE_IDS];

	*sum = 0;
	if (pause->count == 0 ||
		watch->ops.values(watch->ops.context, port, pause->ids, values, pause->count) != 0)
		return false;
	for (unsigned i = 0; i < pause->count; i++)
		*sum += values[i];
	return true;
}

static void
pause_find(struct bs_watch *watch, unsigned at, char (*names)[BS_WATCH_NAME_BYTES])
{
	struct port *port = &watch->ports[at];
	unsigned count = watch->ops.names(watch->ops.context, at, names, XSTATS_MAX);

	if (count > XSTATS_MAX)
		count = XSTATS_MAX;
	for (unsigned i = 0; i < sizeof(pause_names) / sizeof(pause_names[0]); i++) {
		if (strcmp(pause_names[i].driver, port->is.driver) != 0)
			continue;
		pause_add(&port->received, pause_names[i].received, names, count);
		pause_add(&port->sent, pause_names[i].sent, names, count);
	}
	port->shown.pause_received_observable =
		pause_read(watch, at, &port->received, &port->received.sum);
	port->shown.pause_sent_observable = pause_read(watch, at, &port->sent, &port->sent.sum);
}

struct bs_watch *
bs_watch_create(const struct bs_watch_ops *ops, const struct bs_watch_port *ports,
	unsigned port_count, uint64_t t_ns)
{
	struct bs_watch *watch = calloc(1, sizeof(*watch));
	char(*names)[BS_WATCH_NAME_BYTES] = calloc(XSTATS_MAX, sizeof(names[0]));
	struct bs_watch_pool pool;

	if (watch != NULL)
		watch->ports = calloc(port_count, sizeof(watch->ports[0]));
	if (names == NULL || watch == NULL || watch->ports == NULL) {
		free(names);
		bs_watch_destroy(watch);
		errno = ENOMEM;
		return NULL;
	}
	watch->ops = *ops;
	watch->port_count = port_count;
	watch->t_last = t_ns;
	for (unsigned i = 0; i < port_count; i++) {
		watch->ports[i].is = ports[i];
		watch->ports[i].shown.by_queue = ports[i].by_queue;
		ops->port(ops->context, i, &watch->ports[i].last);
		pause_find(watch, i, names);
	}
	free(names);
	ops->pool(ops->context, &pool);
	watch->in_use = pool.in_use;
	watch->rings = pool.in_use - pool.queued;
	watch->shown = (struct bs_watched_pool){.size = pool.size,
		.in_use = pool.in_use,
		.holder = BS_BUFFER_NONE,
		.blocked_by = BS_BUFFER_NONE};
	return watch;
}

void
bs_watch_destroy(struct bs_watch *watch)
{
	if (watch == NULL)
		return;
	free(watch->ports);
	free(watch);
}

/* --- telling ----------------------------------------------------------------------- */

static void
find(struct port *port, enum bs_finding finding, uint64_t n, uint64_t t)
{
	struct bs_found *found = &port->shown.found[finding];

	if (found->count == 0)
		found->t_first = t;
	found->t_last = t;
	found->count += n;
}

/* t_end 0: it goes on. */
static struct bs_rec_event
episode(unsigned type, uint16_t buffer, unsigned detail, uint16_t upstream, uint64_t t_begin,
	uint64_t t_end, uint64_t count)
{
	struct bs_rec_event event;

	memset(&event, 0, sizeof(event));
	bs_record_head(&event.head, BS_REC_EVENT, 0);
	event.t_begin = t_begin;
	event.t_end = t_end;
	event.blocking_ns = t_end == 0 ? 0 : t_end - t_begin;
	event.count = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
	event.buffer = buffer;
	event.detail = (uint16_t)detail;
	event.type = (uint8_t)type;
	event.quality = BS_QUALITY_ESTIMATED;
	event.upstream = upstream;
	return event;
}

static void
tell(const struct bs_watch *watch, struct bs_rec_event event)
{
	watch->ops.tell(watch->ops.context, &event);
}

/* --- losses ------------------------------------------------------------------------ */

static const struct {
	enum bs_finding finding;
	enum bs_reason reason;
} losses[LOSS_COUNT] = {
	[LOSS_MISSED] = {BS_FINDING_MISSED, BS_REASON_RX_MISSED},
	[LOSS_NO_MBUF] = {BS_FINDING_NO_MBUF, BS_REASON_RX_NO_MBUF},
	[LOSS_ERRORS] = {BS_FINDING_ERRORS, BS_REASON_RX_ERROR},
};

/* Matched: flows lack packets, so that what they lost before us may be these. */
static void
tell_loss(const struct bs_watch *watch, struct port *port, enum loss loss, const struct doubt *lost,
	bool matched)
{
	struct bs_rec_event event = episode(BS_CAUSE_DROP,
		loss == LOSS_NO_MBUF ? BS_BUFFER_MEMPOOL : port->is.rx_buffer,
		BS_DETAIL_FIRST_REASON + losses[loss].reason,
		matched ? port->is.before : BS_BUFFER_NONE, lost->t_begin, lost->t_end,
		lost->count);

	if (!matched) {
		event.quality = BS_QUALITY_BOUND;
		find(port, BS_FINDING_UNMATCHED, lost->count, lost->t_end);
	}
	tell(watch, event);
}

/*
 * A gap may show a step later than the loss, behind what was in the ring; so what
 * no flow lacks yet is doubted until the next look.
 */
static void
look_at_losses(
	struct bs_watch *watch, struct port *port, const struct bs_watch_reading *now, uint64_t t)
{
	const struct bs_watch_reading *last = &port->last;
	const uint64_t lost[LOSS_COUNT] = {
		[LOSS_MISSED] = port->is.missed_observable ? more(now->missed, last->missed) : 0,
		[LOSS_NO_MBUF] = more(now->no_mbuf, last->no_mbuf),
		[LOSS_ERRORS] = more(now->errors, last->errors),
	};
	const uint64_t before_us = more(now->lost_before, last->lost_before);
	const uint64_t evidence = more(now->gaps, last->gaps) + before_us;

	port->quiet++;
	for (unsigned i = 0; i < LOSS_COUNT; i++) {
		struct doubt *doubt = &port->doubts[i];

		if (doubt->count > 0)
			tell_loss(watch, port, i, doubt, evidence > 0);
		*doubt = (struct doubt){0, watch->t_last, t};
		if (lost[i] == 0)
			continue;
		port->quiet = 0;
		doubt->count = lost[i];
		find(port, losses[i].finding, lost[i], t);
		if (evidence + port->evidence > 0) {
			tell_loss(watch, port, i, doubt, true);
			doubt->count = 0;
		}
	}
	/* the resend that shows a loss comes a while after it */
	if (before_us > 0 && port->quiet > 2)
		find(port, BS_FINDING_LOST_BEFORE, before_us, t);
	port->evidence = evidence;
	for (unsigned q = 0; q < BS_WATCH_QUEUES && port->is.by_queue; q++)
		port->shown.queue_missed[q] += more(now->queue_missed[q], last->queue_missed[q]);
}

/* --- backpressure ------------------------------------------------------------------ */

static uint64_t
pause_more(const struct bs_watch *watch, unsigned at, struct pause *pause)
{
	const uint64_t last = pause->sum;
	uint64_t sum;

	if (!pause_read(watch, at, pause, &sum))
		return 0;
	pause->sum = sum;
	return more(sum, last);
}

/* Returns the frames by which the peer made us wait. */
static uint64_t
look_at_pauses(struct bs_watch *watch, unsigned at, uint64_t t)
{
	struct port *port = &watch->ports[at];
	const uint64_t received = pause_more(watch, at, &port->received);
	const uint64_t sent = pause_more(watch, at, &port->sent);

	if (received > 0) {
		find(port, BS_FINDING_PAUSE_RECEIVED, received, t);
		tell(watch, episode(BS_CAUSE_PAUSE, port->is.tx_buffer, BS_DETAIL_NONE,
				    BS_BUFFER_NONE, watch->t_last, t, received));
	}
	if (sent > 0) {
		find(port, BS_FINDING_PAUSE_SENT, sent, t);
		tell(watch, episode(BS_CAUSE_PAUSE, port->is.before, BS_DETAIL_NONE,
				    port->is.rx_buffer, watch->t_last, t, sent));
	}
	return received;
}

/* --- stalls ------------------------------------------------------------------------- */

/* A stall began, goes on or is over: told when it begins and when it ends. */
static void
stall(struct bs_watch *watch, struct port *port, bool stalled, uint64_t *t_stalled,
	enum bs_finding finding, uint16_t buffer, enum bs_detail detail, uint64_t t)
{
	if (stalled == (*t_stalled != 0))
		return;
	if (stalled) {
		*t_stalled = watch->t_last;
		find(port, finding, 1, t);
	}
	tell(watch, episode(BS_CAUSE_HANG, buffer, detail, BS_BUFFER_NONE, *t_stalled,
			    stalled ? 0 : t, 1));
	if (!stalled)
		*t_stalled = 0;
}

/*
 * After look_at_losses(). The lcore turns and the link is up, so it is no hang of ours; nothing
 * moves at all, so it is no congestion; and nobody asks for a pause.
 */
static void
look_at_stalls(struct bs_watch *watch, struct port *port, const struct bs_watch_reading *now,
	uint64_t paused, uint64_t t)
{
	const struct bs_watch_reading *last = &port->last;
	const bool up = now->link_up && last->link_up;
	const bool tx_stuck = up && paused == 0 && now->refuses && last->refuses &&
			      now->given == last->given && now->tx_turns != last->tx_turns;
	const bool rx_silent = up && now->taken == last->taken && now->rx_turns != last->rx_turns &&
			       ((now->waits && last->waits) || port->quiet == 0);

	stall(watch, port, tx_stuck, &port->t_tx_stuck, BS_FINDING_TX_STUCK, port->is.tx_buffer,
		BS_DETAIL_UNRECLAIMED, t);
	stall(watch, port, rx_silent, &port->t_rx_silent, BS_FINDING_RX_SILENT, port->is.rx_buffer,
		BS_DETAIL_UNFILLED, t);
}

/* --- pool --------------------------------------------------------------------------- */

static uint16_t
refusing(const struct bs_watch *watch)
{
	for (unsigned i = 0; i < watch->port_count; i++) {
		if (watch->ports[i].last.refuses)
			return watch->ports[i].is.tx_buffer;
	}
	return BS_BUFFER_NONE;
}

static void
tell_held(const struct bs_watch *watch, uint64_t t_end)
{
	const struct bs_watched_pool *shown = &watch->shown;
	struct bs_rec_event event = episode(BS_CAUSE_PAUSE, BS_BUFFER_MEMPOOL, BS_DETAIL_NONE,
		shown->holder, shown->t_held, t_end, shown->held);

	event.culprit_count = shown->holder != BS_BUFFER_NONE;
	event.culprit_kind[0] = event.culprit_count ? BS_CULPRIT_BUFFER : BS_CULPRIT_NONE;
	event.culprits[0].id = event.culprit_count ? shown->holder : 0;
	tell(watch, event);
}

/* The only port that was given as many as vanished; BS_BUFFER_NONE: none, or several. */
static uint16_t
keeper(const struct bs_watch *watch, uint32_t vanished)
{
	uint16_t found = BS_BUFFER_NONE;

	for (unsigned i = 0; i < watch->port_count; i++) {
		const struct port *port = &watch->ports[i];

		if (port->last.given - port->given_before < vanished)
			continue;
		if (found != BS_BUFFER_NONE)
			return BS_BUFFER_NONE;
		found = port->is.tx_buffer;
	}
	return found;
}

/* What no queue of ours has lies in the tx ring of who takes no more, or gives nothing back. */
static void
name_holder(struct bs_watch *watch, const struct bs_watch_pool *pool, uint16_t port)
{
	struct bs_watched_pool *shown = &watch->shown;
	const uint32_t elsewhere = shown->held > pool->queued ? shown->held - pool->queued : 0;

	shown->blocked_by = port;
	shown->holder_queues = pool->top > elsewhere;
	shown->holder_class = pool->top_class;
	if (shown->holder_queues)
		shown->holder = pool->top_buffer;
	else
		shown->holder = port != BS_BUFFER_NONE
					? port
					: keeper(watch, pool->in_use - watch->in_use_before);
}

/* More are in use than at the last look, for the first time. */
static void
begin_growth(struct bs_watch *watch)
{
	watch->t_growing = watch->t_last;
	watch->in_use_before = watch->in_use;
	for (unsigned i = 0; i < watch->port_count; i++)
		watch->ports[i].given_before = watch->ports[i].given_last;
}

/* Who has the mbufs is asked before there are none. */
static void
look_at_pool(struct bs_watch *watch, uint64_t t)
{
	struct bs_watched_pool *shown = &watch->shown;
	const uint16_t port = refusing(watch);
	struct bs_watch_pool pool;
	uint32_t room;

	watch->ops.pool(watch->ops.context, &pool);
	room = pool.size > watch->rings ? pool.size - watch->rings : 0;
	if (pool.in_use <= watch->in_use)
		watch->growing = 0;
	else if (watch->growing++ == 0)
		begin_growth(watch);
	watch->in_use = shown->in_use = pool.in_use;
	shown->held = pool.in_use > watch->rings ? pool.in_use - watch->rings : 0;
	if (shown->t_held != 0 && shown->held < room / FREED_SHARE) {
		tell_held(watch, t);
		shown->t_held = 0;
		shown->holder = shown->blocked_by = BS_BUFFER_NONE;
	} else if (shown->t_held == 0 && shown->held >= room / HELD_SHARE &&
		   watch->growing >= (port != BS_BUFFER_NONE ? 1 : GROWING_STEPS)) {
		name_holder(watch, &pool, port);
		shown->t_held = watch->t_growing;
		tell_held(watch, 0);
	}
}

void
bs_watch_step(struct bs_watch *watch, uint64_t t_ns)
{
	for (unsigned i = 0; i < watch->port_count; i++) {
		struct port *port = &watch->ports[i];
		struct bs_watch_reading now;

		watch->ops.port(watch->ops.context, i, &now);
		look_at_losses(watch, port, &now, t_ns);
		look_at_stalls(watch, port, &now, look_at_pauses(watch, i, t_ns), t_ns);
		port->given_last = port->last.given;
		port->last = now;
	}
	look_at_pool(watch, t_ns);
	watch->t_last = t_ns;
}

void
bs_watch_port(const struct bs_watch *watch, unsigned port, struct bs_watched_port *out)
{
	*out = watch->ports[port].shown;
}

void
bs_watch_pool(const struct bs_watch *watch, struct bs_watched_pool *out)
{
	*out = watch->shown;
}
