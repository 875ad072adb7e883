/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See loop.h. What comes from the socket is checked record by record; a batch
 * with a bad record is given up from there on, since nothing says where the
 * next good one begins.
 */
#include "loop.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "bs_clock.h"

#define QUEUE_BATCHES 16u
#define BATCHES_PER_STEP 16u
#define STATUS_NS BS_NS_PER_S

/* How long a batch waits for the journal, and how often it looks. */
#define HOLD_NS (100 * BS_NS_PER_MS)
#define HOLD_MS 1

/* A record dated further ahead of what our clock allows is its writer's error ... */
#define AHEAD_NS (5 * BS_NS_PER_S)
/* ... unless so many in a row say so, and for so long nothing else came: then time has jumped. */
#define JUMP_RECORDS 16u
/* But none is dated later than this, in the year 2262, also where it is the first. */
#define DATE_MAX_NS ((uint64_t)INT64_MAX)

struct batch {
	alignas(8) uint8_t data[BS_BATCH_MAX_BYTES];
	size_t bytes;
	uint64_t journal_mark; /* not to be sent before this is written ... */
	uint64_t t_held;       /* ... unless that takes too long from here on */
};

struct bs_analyzer {
	int fd, stop_fd;
	struct bs_diag *diag;
	struct bs_journal *journal; /* NULL: none */
	bool decided;		    /* something that is not handed over to it yet */
	uint64_t t_status;
	struct bs_analyzer_counters counters;
	uint64_t t_newest;   /* of a record that is believed */
	uint64_t t_arrived;  /* of that record, on our clock */
	uint64_t t_believed; /* our clock at the last dated record that was */
	unsigned ahead;	     /* dated too far ahead, in a row */
	uint64_t t_logged;   /* 0: never */
	uint64_t unlogged;
	uint32_t sequence;
	struct batch in;
	unsigned tail, head; /* tail <= i < head wait in queue[i % QUEUE_BATCHES] */
	struct batch queue[QUEUE_BATCHES];
};

static void
log_malformed(struct bs_analyzer *analyzer, unsigned type, size_t offset, size_t bytes)
{
	uint64_t now = bs_clock_now_ns();

	if (analyzer->t_logged != 0 && now - analyzer->t_logged < BS_NS_PER_S) {
		analyzer->unlogged++;
		return;
	}
	fprintf(stderr,
		"bufscope-analyzer: malformed record of type %u at offset %zu of a batch of %zu "
		"bytes: rest skipped (%" PRIu64 " more since the last such line)\n",
		type, offset, bytes, analyzer->unlogged);
	analyzer->t_logged = now;
	analyzer->unlogged = 0;
}

/* Room for `bytes` at the end of what waits to be sent; NULL, and counted, when there is none. */
static void *
reserve(struct bs_analyzer *analyzer, size_t bytes)
{
	struct batch *batch = &analyzer->queue[(analyzer->head - 1) % QUEUE_BATCHES];
	void *place;

	if (analyzer->head == analyzer->tail || batch->bytes + bytes > sizeof(batch->data)) {
		if (analyzer->head - analyzer->tail == QUEUE_BATCHES) {
			analyzer->counters.records_unsent++;
			return NULL;
		}
		batch = &analyzer->queue[analyzer->head++ % QUEUE_BATCHES];
		batch->bytes = 0;
		batch->journal_mark = batch->t_held = 0;
	}
	place = batch->data + batch->bytes;
	batch->bytes += bytes;
	analyzer->counters.records_sent++;
	return place;
}

/* Copies one record to *place, numbers it, and moves *place past it. */
static void
put(struct bs_analyzer *analyzer, uint8_t **place, const struct bs_record *head)
{
	size_t bytes = (size_t)bs_record_units(head->type) * BS_UNIT_BYTES;
	struct bs_record *copy = memcpy(*place, head, bytes);

	copy->sequence = analyzer->sequence++;
	*place += bytes;
}

static void
put_verdict(struct bs_analyzer *analyzer, uint8_t *place, const struct bs_rec_verdict *verdict,
	const struct bs_rpc_view *rpc)
{
	put(analyzer, &place, &verdict->head);
	put(analyzer, &place, &rpc->rpc->head);
	for (unsigned i = 0; i < rpc->rpc->segment_count; i++)
		put(analyzer, &place, &rpc->segments[i].head);
	for (unsigned i = 0; i < rpc->rpc->event_count; i++)
		put(analyzer, &place, &rpc->events[i].head);
}

static void
on_verdict(void *context, const struct bs_rec_verdict *verdict, const struct bs_rpc_view *rpc)
{
	struct bs_analyzer *analyzer = context;
	size_t bytes = sizeof(*verdict) + sizeof(*rpc->rpc) +
		       rpc->rpc->segment_count * sizeof(*rpc->segments) +
		       rpc->rpc->event_count * sizeof(*rpc->events);
	uint8_t *place = reserve(analyzer, bytes);

	if (place != NULL)
		put_verdict(analyzer, place, verdict, rpc);
	if (analyzer->journal == NULL)
		return;
	place = bs_journal_reserve(analyzer->journal, bytes, verdict->t, bs_clock_now_ns());
	put_verdict(analyzer, place, verdict, rpc);
	analyzer->decided = true;
}

static void
on_incident(void *context, const struct bs_rec_incident *incident)
{
	struct bs_analyzer *analyzer = context;
	uint8_t *place = reserve(analyzer, sizeof(*incident));

	if (place != NULL)
		put(analyzer, &place, &incident->head);
	if (analyzer->journal == NULL)
		return;
	bs_journal_put(analyzer->journal, &incident->head, sizeof(*incident), bs_clock_now_ns());
	analyzer->decided = true;
}

static void
on_threshold(void *context, const struct bs_rec_threshold *threshold)
{
	uint8_t *place = reserve(context, sizeof(*threshold));

	if (place != NULL)
		put(context, &place, &threshold->head);
}

struct bs_analyzer *
bs_analyzer_create(
	int fd, int stop_fd, const struct bs_diag_config *config, struct bs_journal *journal)
{
	struct bs_diag_config ours = *config;
	struct bs_analyzer *analyzer = calloc(1, sizeof(*analyzer));

	if (analyzer == NULL)
		return NULL;
	ours.output = (struct bs_diag_output){on_verdict, on_incident, on_threshold, analyzer};
	analyzer->fd = fd;
	analyzer->stop_fd = stop_fd;
	analyzer->journal = journal;
	analyzer->diag = bs_diag_create(&ours);
	if (analyzer->diag == NULL) {
		free(analyzer);
		errno = ENOMEM;
		return NULL;
	}
	return analyzer;
}

void
bs_analyzer_destroy(struct bs_analyzer *analyzer)
{
	if (analyzer == NULL)
		return;
	bs_diag_destroy(analyzer->diag);
	free(analyzer);
}

/* The time of the records, as far as our clock takes it since the newest. */
static uint64_t
present(const struct bs_analyzer *analyzer, uint64_t now)
{
	return analyzer->t_newest + (now - analyzer->t_arrived);
}

/*
 * Takes the date of a record. False if it cannot be: one bad clock or packet
 * must not move the time of the whole diagnosis, which never goes back.
 */
static bool
take_date(struct bs_analyzer *analyzer, uint64_t t)
{
	uint64_t now = bs_clock_now_ns();

	if (t > DATE_MAX_NS)
		return false;
	if (analyzer->t_newest != 0 && t > present(analyzer, now) + AHEAD_NS) {
		analyzer->ahead++;
		if (analyzer->ahead < JUMP_RECORDS || now - analyzer->t_believed < AHEAD_NS)
			return false;
	}
	analyzer->ahead = 0;
	analyzer->t_believed = now;
	if (t > analyzer->t_newest) {
		analyzer->t_newest = t;
		analyzer->t_arrived = now;
	}
	return true;
}

static void
take_slo(struct bs_analyzer *analyzer, const struct bs_rec_name *name)
{
	bool operation = name->kind == BS_NAME_OPERATION;

	if ((operation || name->kind == BS_NAME_SERVICE) &&
		bs_diag_slo(analyzer->diag, name->number, operation ? name->name : NULL,
			name->slo_ns) != 0)
		analyzer->counters.slo_refused++;
}

/* One record, or an RPC with its group; *offset is moved past the group. False if it is malformed.
 */
static bool
take_record(struct bs_analyzer *analyzer, const struct bs_record *head, size_t begin, size_t bytes,
	size_t *offset)
{
	uint64_t t = bs_record_instant(head);

	switch (head->type) {
	case BS_REC_THRESHOLD:
	case BS_REC_VERDICT:
	case BS_REC_INCIDENT:
	case BS_REC_JOURNAL:
		return false; /* these go the other way */
	case BS_REC_RPC: {
		struct bs_rpc_view view;
		size_t group_bytes;

		if (bs_rpc_view(head, bytes - begin, &view, &group_bytes) != 0)
			return false;
		*offset = begin + group_bytes;
		break;
	}
	case BS_REC_HELLO:
		/* All is told anew: a reload may have taken SLOs away. */
		bs_diag_slo_clear(analyzer->diag);
		bs_diag_detect(analyzer->diag,
			((const struct bs_rec_hello *)(const void *)head)->detect_ns);
		break;
	case BS_REC_NAME:
		take_slo(analyzer, (const void *)head);
		break;
	default:
		break;
	}
	if (t != 0 && !take_date(analyzer, t)) {
		analyzer->counters.ahead++;
		return true;
	}
	if (analyzer->journal != NULL)
		bs_journal_put(analyzer->journal, head, *offset - begin, bs_clock_now_ns());
	if (bs_diag_feed(analyzer->diag, head, *offset - begin) != 0)
		return false;
	analyzer->counters.records++;
	return true;
}

static void
take_batch(struct bs_analyzer *analyzer, size_t bytes)
{
	const uint8_t *data = analyzer->in.data;
	size_t begin = 0, offset = 0;
	const struct bs_record *head = NULL;
	int error = 0;
	bool good = bytes > 0 && bytes <= sizeof(analyzer->in.data);

	analyzer->counters.batches++;
	while (good) {
		begin = offset;
		head = bs_record_next(data, bytes, &offset, &error);
		if (head == NULL)
			break;
		good = take_record(analyzer, head, begin, bytes, &offset);
	}
	if (good && error == 0)
		return;
	analyzer->counters.malformed++;
	log_malformed(analyzer, begin < bytes ? data[begin] : 0, begin, bytes);
}

/* An empty datagram and the end of the stream both read as 0; only the latter leaves this sign. */
static bool
has_ended(int fd)
{
	struct pollfd end = {.fd = fd, .events = POLLRDHUP};

	return poll(&end, 1, 0) > 0 && (end.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

/* Takes what is there. 1, or 0 at the end of the stream, or -errno. */
static int
receive(struct bs_analyzer *analyzer)
{
	for (unsigned i = 0; i < BATCHES_PER_STEP; i++) {
		/* With MSG_TRUNC the length is the datagram's, also where it did not fit. */
		ssize_t got = recv(analyzer->fd, analyzer->in.data, sizeof(analyzer->in.data),
			MSG_DONTWAIT | MSG_TRUNC);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN)
			return 1;
		if (got < 0)
			return errno == ECONNRESET ? 0 : -errno;
		if (got == 0 && has_ended(analyzer->fd))
			return 0;
		take_batch(analyzer, (size_t)got);
	}
	return 1;
}

/* Does the oldest batch wait until what it tells is written down? */
static bool
is_held(const struct bs_analyzer *analyzer)
{
	const struct batch *batch = &analyzer->queue[analyzer->tail % QUEUE_BATCHES];

	return batch->journal_mark != 0 &&
	       !bs_journal_has_written(analyzer->journal, batch->journal_mark) &&
	       bs_clock_now_ns() - batch->t_held < HOLD_NS;
}

/* Hands decisions over to the journal, and marks the batches that tell them. */
static void
write_down(struct bs_analyzer *analyzer, uint64_t now)
{
	uint64_t mark;

	if (analyzer->journal == NULL)
		return;
	if (!analyzer->decided) {
		bs_journal_advance(analyzer->journal, now);
		return;
	}
	mark = bs_journal_hand_over(analyzer->journal, now);
	analyzer->decided = false;
	/* of those before, all but the newest were full then */
	for (unsigned i = analyzer->tail; i != analyzer->head; i++) {
		struct batch *batch = &analyzer->queue[i % QUEUE_BATCHES];

		if (batch->journal_mark == 0)
			batch->t_held = now;
		if (batch->journal_mark == 0 || i == analyzer->head - 1)
			batch->journal_mark = mark;
	}
}

/* Once a second: how the journal goes. */
static void
tell_journal(struct bs_analyzer *analyzer, uint64_t now)
{
	struct bs_rec_journal status;
	uint8_t *place;

	if (analyzer->journal == NULL ||
		(analyzer->t_status != 0 && now - analyzer->t_status < STATUS_NS))
		return;
	analyzer->t_status = now;
	bs_journal_status(analyzer->journal, &status);
	bs_record_head(&status.head, BS_REC_JOURNAL, 0);
	status.t = now;
	place = reserve(analyzer, sizeof(status));
	if (place != NULL)
		put(analyzer, &place, &status.head);
}

/* Sends what the socket takes. As receive(). */
static int
flush(struct bs_analyzer *analyzer)
{
	while (analyzer->tail != analyzer->head && !is_held(analyzer)) {
		const struct batch *batch = &analyzer->queue[analyzer->tail % QUEUE_BATCHES];

		if (send(analyzer->fd, batch->data, batch->bytes, MSG_DONTWAIT | MSG_NOSIGNAL) <
			0) {
			if (errno == EINTR)
				continue;
			if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM)
				return 1;
			return errno == EPIPE || errno == ECONNRESET ? 0 : -errno;
		}
		analyzer->tail++;
		analyzer->counters.batches_sent++;
	}
	return 1;
}

int
bs_analyzer_step(struct bs_analyzer *analyzer, int timeout_ms)
{
	struct pollfd fds[] = {
		{.fd = analyzer->fd, .events = POLLIN},
		{.fd = analyzer->stop_fd, .events = POLLIN},
	};
	uint64_t now;
	int ret = 1;

	if (analyzer->tail != analyzer->head) {
		if (!is_held(analyzer))
			fds[0].events |= POLLOUT;
		else if (timeout_ms < 0 || timeout_ms > HOLD_MS)
			timeout_ms = HOLD_MS;
	}
	if (poll(fds, 2, timeout_ms) < 0)
		return errno == EINTR ? 1 : -errno;
	if (fds[1].revents != 0)
		return 0;
	if ((fds[0].revents & ~POLLOUT) != 0)
		ret = receive(analyzer);
	if (ret != 1)
		return ret;
	now = bs_clock_now_ns();
	if (analyzer->t_newest != 0)
		bs_diag_advance(analyzer->diag, present(analyzer, now));
	write_down(analyzer, now);
	tell_journal(analyzer, now);
	return flush(analyzer);
}

const struct bs_analyzer_counters *
bs_analyzer_counters(const struct bs_analyzer *analyzer)
{
	return &analyzer->counters;
}
