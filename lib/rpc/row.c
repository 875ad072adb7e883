/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The framer of all protocols that are a length-prefixed header: the row says
 * where the fields are. The header is read where it lies if the piece has all
 * of it, and gathered in the state otherwise.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "bs_framer.h"

#define LENGTH_MAX_DEFAULT (1u << 30)

struct row_state {
	uint8_t have;
	uint8_t header[BS_FRAMING_HEADER_MAX];
};

static_assert(sizeof(struct row_state) <= BS_FRAME_STATE_BYTES, "state must fit");

static uint64_t
read_number(const uint8_t *at, unsigned bytes, bool little)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value = value << 8 | at[little ? bytes - 1 - i : i];
	return value;
}

static bool
magic_fits(const struct bs_framing_row *row, const uint8_t *header, size_t bytes)
{
	for (size_t i = 0; i < row->magic_len && row->magic_at + i < bytes; i++) {
		if ((header[row->magic_at + i] ^ row->magic[i]) & row->magic_mask[i])
			return false;
	}
	return true;
}

/* Bytes of the whole message; 0 if the header makes no sense. */
static uint64_t
message_bytes(const struct bs_framing_row *row, const uint8_t *header)
{
	uint32_t max = row->length_max ? row->length_max : LENGTH_MAX_DEFAULT;
	uint64_t length =
		read_number(header + row->length_at, row->length_bytes, row->length_little);
	int64_t whole;

	/* Bounded first, so that the sum cannot overflow: adds is 32 bits. */
	if (!magic_fits(row, header, row->header) || length > (uint64_t)max + UINT32_MAX)
		return 0;
	whole = (int64_t)length + row->length_adds;
	return whole < row->header || whole > max ? 0 : (uint64_t)whole;
}

static bool
holds(const struct bs_framing_test *test, const uint8_t *header)
{
	return test->mask != 0 &&
	       ((header[test->at] & test->mask) == test->value) != test->otherwise;
}

static bool
is_response(const struct bs_framing_row *row, bool from_server, const uint8_t *header)
{
	return row->response.mask == 0 ? from_server : holds(&row->response, header);
}

/* Its name, or its number in decimal. */
static void
operation_label(const struct bs_framing_row *row, const uint8_t *header, struct bs_frame *frame)
{
	const uint32_t code = (uint32_t)read_number(
		header + row->operation_at, row->operation_bytes, row->operation_little);
	const struct bs_framing_operation *one = row->operations;
	char number[24];

	while (one != NULL && one->name != NULL && one->code != code)
		one++;
	if (one != NULL && one->name != NULL) {
		bs_frame_label(frame, one->name);
		return;
	}
	snprintf(number, sizeof(number), "operation %u", code);
	bs_frame_label(frame, number);
}

static uint8_t
role_of(const struct bs_framing_row *row, bool from_server, const uint8_t *header, bool response)
{
	if (holds(&row->none, header))
		return BS_ROLE_NONE;
	if (from_server && holds(&row->push, header))
		return BS_ROLE_PUSH;
	if (row->response.mask == 0)
		return BS_ROLE_BY_DIRECTION;
	return response ? BS_ROLE_RESPONSE : BS_ROLE_REQUEST;
}

static void
tell_response(const struct bs_framing_row *row, const uint8_t *header, struct bs_frame *frame)
{
	frame->error = holds(&row->error, header);
	if (row->status_bytes == 0)
		return;
	frame->has_status = 1;
	frame->status = (int32_t)read_number(
		header + row->status_at, row->status_bytes, row->status_little);
}

static void
tell_request(const struct bs_framing_row *row, const uint8_t *header, struct bs_frame *frame)
{
	if (holds(&row->oneway, header))
		frame->oneway = BS_ONEWAY;
	if (row->operation_bytes > 0)
		operation_label(row, header, frame);
}

static size_t
row_feed(const struct bs_framer *framer, struct bs_frame_conn *conn, bool from_server,
	const uint8_t *data, size_t bytes, struct bs_frame *frame)
{
	struct row_state *state = (struct row_state *)conn->dir[from_server].bytes;
	const struct bs_framing_row *row = framer->row;
	const uint8_t *header = data;
	size_t used = row->header - (size_t)state->have;
	uint64_t whole;
	bool response;

	if (state->have > 0 || bytes < used) {
		if (used > bytes)
			used = bytes;
		memcpy(state->header + state->have, data, used);
		state->have = (uint8_t)(state->have + used);
		if (state->have < row->header)
			return used;
		header = state->header;
		state->have = 0;
	}
	whole = message_bytes(row, header);
	if (whole == 0) {
		frame->flags = BS_FRAME_BAD;
		return used;
	}
	response = is_response(row, from_server, header);
	frame->flags = BS_FRAME_HEAD | BS_FRAME_END;
	frame->skip = whole - row->header;
	if (frame->skip > 0)
		frame->flags |= BS_FRAME_SKIP;
	frame->role = role_of(row, from_server, header, response);
	if (response)
		tell_response(row, header, frame);
	else
		tell_request(row, header, frame);
	if (row->id_bytes > 0) {
		unsigned at = response && row->response_id_at ? row->response_id_at : row->id_at;

		frame->has_id = 1;
		frame->id = read_number(header + at, row->id_bytes, row->id_little);
	}
	return used;
}

/*
 * A row that has enough constant bits is recognised anywhere; another is only
 * as good as the port. Constant bits: the magic, and the request bit.
 */
static int
row_probe(const struct bs_framer *framer, bool from_server, const uint8_t *data, size_t bytes)
{
	const struct bs_framing_row *row = framer->row;
	int bits = 0;

	if (!magic_fits(row, data, bytes))
		return 0;
	if (bytes < row->header)
		return 1;
	if (message_bytes(row, data) == 0 || is_response(row, from_server, data) != from_server)
		return 0;
	for (unsigned i = 0; i < row->magic_len; i++)
		bits += __builtin_popcount(row->magic_mask[i] & 0xffu);
	return bits >= 24 ? 2 : 1;
}

const struct bs_framer_ops bs_framer_row = {
	.name = "row",
	.pairing = BS_PAIR_BY_ID,
	.feed = row_feed,
	.probe = row_probe,
};

const struct bs_framer_ops bs_framer_row_by_order = {
	.name = "row",
	.pairing = BS_PAIR_BY_ORDER,
	.feed = row_feed,
	.probe = row_probe,
};
