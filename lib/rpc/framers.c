/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of all protocols, and the guess which of them a connection speaks.
 */
#include <errno.h>
#include <string.h>

#include "bs_framer.h"

static const struct bs_framer_ops *const coded[] = {
	&bs_framer_opaque, /* BS_PROTOCOL_OPAQUE */
	&bs_framer_resp,
	&bs_framer_http1,
	&bs_framer_http2,
	&bs_framer_dns,
	&bs_framer_memcached,
	&bs_framer_memcached_binary,
	&bs_framer_sunrpc,
	&bs_framer_postgres,
	&bs_framer_mysql,
};

static bool
is_inside(const struct bs_framing_row *row, unsigned at, unsigned bytes)
{
	return at + bytes <= row->header;
}

static bool
test_makes_sense(const struct bs_framing_row *row, const struct bs_framing_test *test)
{
	return is_inside(row, test->at, 1) && (test->value & ~test->mask) == 0;
}

static bool
row_makes_sense(const struct bs_framing_row *row)
{
	return row->name != NULL && row->name[0] != '\0' && row->header > 0 &&
	       row->header <= BS_FRAMING_HEADER_MAX && row->magic_len <= sizeof(row->magic) &&
	       is_inside(row, row->magic_at, row->magic_len) &&
	       ((row->length_bytes >= 1 && row->length_bytes <= 4) || row->length_bytes == 8) &&
	       is_inside(row, row->length_at, row->length_bytes) && row->id_bytes <= 8 &&
	       is_inside(row, row->id_at, row->id_bytes) &&
	       is_inside(row, row->response_id_at, row->id_bytes) &&
	       is_inside(row, row->status_at, row->status_bytes) && row->status_bytes <= 4 &&
	       is_inside(row, row->operation_at, row->operation_bytes) &&
	       row->operation_bytes <= 4 && test_makes_sense(row, &row->response) &&
	       test_makes_sense(row, &row->none) && test_makes_sense(row, &row->oneway) &&
	       test_makes_sense(row, &row->push) && test_makes_sense(row, &row->error);
}

static int
add_row(struct bs_framers *framers, const struct bs_framing_row *row)
{
	struct bs_framer *framer = &framers->list[framers->count];

	if (!row_makes_sense(row))
		return -EINVAL;
	if (bs_framers_find(framers, row->name) != NULL)
		return -EEXIST;
	if (framers->count == BS_PROTOCOLS_MAX)
		return -ENOSPC;
	framer->ops = row->id_bytes > 0 ? &bs_framer_row : &bs_framer_row_by_order;
	framer->name = row->name;
	framer->row = row;
	framer->protocol = (uint8_t)framers->count++;
	return 0;
}

int
bs_framers_init(struct bs_framers *framers, const struct bs_framing_row *user_rows,
	unsigned user_count, unsigned *bad)
{
	int ret;

	memset(framers, 0, sizeof(*framers));
	for (unsigned i = 0; i < sizeof(coded) / sizeof(coded[0]); i++) {
		framers->list[i].ops = coded[i];
		framers->list[i].name = coded[i]->name;
		framers->list[i].protocol = (uint8_t)framers->count++;
	}
	for (unsigned i = 0; i < bs_framing_row_count; i++) {
		ret = add_row(framers, &bs_framing_rows[i]);
		if (ret != 0)
			return ret;
	}
	for (unsigned i = 0; i < user_count; i++) {
		ret = add_row(framers, &user_rows[i]);
		if (ret != 0) {
			*bad = i;
			return ret;
		}
	}
	return 0;
}

const struct bs_framer *
bs_framers_find(const struct bs_framers *framers, const char *name)
{
	for (unsigned i = 0; i < framers->count; i++) {
		if (strcmp(framers->list[i].name, name) == 0)
			return &framers->list[i];
	}
	return NULL;
}

static bool
is_usual_port(const struct bs_framer *framer, uint16_t port)
{
	const uint16_t *ports = framer->row != NULL ? framer->row->ports : framer->ops->ports;

	for (unsigned i = 0; i < 4 && ports[i] != 0; i++) {
		if (ports[i] == port)
			return true;
	}
	return false;
}

static int
plausibility(const struct bs_framer *framer, bool datagram, bool from_server, const uint8_t *data,
	size_t bytes)
{
	struct bs_frame frame = {0};

	if (!datagram)
		return framer->ops->probe(framer, from_server, data, bytes);
	/* A datagram is a whole message and checked as such. */
	if (framer->ops->datagram_feed == NULL)
		return 0;
	return framer->ops->datagram_feed(framer, from_server, data, bytes, &frame) ? 2 : 0;
}

/*
 * What is surely one protocol is that one, on any port; the port chooses among
 * several, and turns "maybe" into a guess. "Maybe" on another port is nothing.
 */
const struct bs_framer *
bs_framers_guess(const struct bs_framers *framers, uint16_t server_port, bool datagram,
	bool from_server, const uint8_t *data, size_t bytes)
{
	const struct bs_framer *best = &framers->list[BS_PROTOCOL_OPAQUE];
	int best_score = 0;

	for (unsigned i = 0; i < framers->count; i++) {
		const struct bs_framer *framer = &framers->list[i];
		int score = plausibility(framer, datagram, from_server, data, bytes);

		if (score == 0)
			continue;
		score = 2 * score + is_usual_port(framer, server_port); /* 3: maybe, and the port */
		if (score >= 3 && score > best_score) {
			best = framer;
			best_score = score;
		}
	}
	return best;
}

const struct bs_framer *
bs_framers_settle(const struct bs_framers *framers, const struct bs_framer *framer, bool datagram,
	bool from_server, const uint8_t *data, size_t bytes)
{
	const struct bs_framer *sibling;

	if (framer->ops->sibling == NULL ||
		plausibility(framer, datagram, from_server, data, bytes) > 0)
		return framer;
	sibling = bs_framers_find(framers, framer->ops->sibling->name);
	if (plausibility(sibling, datagram, from_server, data, bytes) == 0)
		return framer;
	return sibling;
}
