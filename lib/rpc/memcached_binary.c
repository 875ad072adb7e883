/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The binary protocol of memcached (its protocol_binary.h and the wiki's
 * BinaryProtocolRevamped): a header of 24 bytes, then extras, key and value, of
 * whose length the header is told. A row could say that; that quiet commands are
 * answered or not, and that statistics are answered by many packets, it cannot.
 *
 * What pairs is the opaque with the opcode: clients that leave the opaque 0 are
 * then still told apart from those quiet commands before that had no answer.
 */
#include "memcached.h"
#include "load.h"

#define HEADER_BYTES 24u
#define MAGIC_REQUEST 0x80u
#define MAGIC_RESPONSE 0x81u
#define OPCODE_STAT 0x10u
#define BODY_MAX (1u << 30) /* the largest item is 1 GB */

#define STATUS_MISS 0x01
#define STATUS_EXISTS 0x02
#define STATUS_NOT_STORED 0x05
#define STATUS_AUTH_CONTINUE 0x21

struct binary_dir {
	uint8_t have;
	bool told; /* statistics go on */
	uint8_t header[HEADER_BYTES];
};

static_assert(sizeof(struct binary_dir) <= BS_FRAME_STATE_BYTES, "state must fit");

static const struct {
	char name[16];
	uint8_t oneway; /* BS_ONEWAY_* */
} opcodes[] = {
	[0x00] = {"get", 0},
	[0x01] = {"set", 0},
	[0x02] = {"add", 0},
	[0x03] = {"replace", 0},
	[0x04] = {"delete", 0},
	[0x05] = {"incr", 0},
	[0x06] = {"decr", 0},
	[0x07] = {"quit", 0},
	[0x08] = {"flush", 0},
	[0x09] = {"getq", BS_ONEWAY_UNLESS_ANSWERED},
	[0x0a] = {"noop", 0},
	[0x0b] = {"version", 0},
	[0x0c] = {"getk", 0},
	[0x0d] = {"getkq", BS_ONEWAY_UNLESS_ANSWERED},
	[0x0e] = {"append", 0},
	[0x0f] = {"prepend", 0},
	[OPCODE_STAT] = {"stat", 0},
	[0x11] = {"setq", BS_ONEWAY_UNLESS_ANSWERED},
	[0x12] = {"addq", BS_ONEWAY_UNLESS_ANSWERED},
	[0x13] = {"replaceq", BS_ONEWAY_UNLESS_ANSWERED},
	[0x14] = {"deleteq", BS_ONEWAY_UNLESS_ANSWERED},
	[0x15] = {"incrq", BS_ONEWAY_UNLESS_ANSWERED},
	[0x16] = {"decrq", BS_ONEWAY_UNLESS_ANSWERED},
	[0x17] = {"quitq", BS_ONEWAY},
	[0x18] = {"flushq", BS_ONEWAY_UNLESS_ANSWERED},
	[0x19] = {"appendq", BS_ONEWAY_UNLESS_ANSWERED},
	[0x1a] = {"prependq", BS_ONEWAY_UNLESS_ANSWERED},
	[0x1b] = {"verbosity", 0},
	[0x1c] = {"touch", 0},
	[0x1d] = {"gat", 0},
	[0x1e] = {"gatq", BS_ONEWAY_UNLESS_ANSWERED},
	[0x20] = {"sasl_list_mechs", 0},
	[0x21] = {"sasl_auth", 0},
	[0x22] = {"sasl_step", 0},
	[0x23] = {"gatk", 0},
	[0x24] = {"gatkq", BS_ONEWAY_UNLESS_ANSWERED},
};
#define OPCODE_COUNT (sizeof(opcodes) / sizeof(opcodes[0]))

static bool
is_known(uint8_t opcode)
{
	return opcode < OPCODE_COUNT && opcodes[opcode].name[0] != '\0';
}

/* Key and extras are part of the body; the data type is 0, raw bytes. */
static bool
header_is_sane(const uint8_t *header, bool from_server)
{
	uint32_t body = load_be32(header + 8);

	return header[0] == (from_server ? MAGIC_RESPONSE : MAGIC_REQUEST) && header[5] == 0 &&
	       body <= BODY_MAX && load_be16(header + 2) + header[4] <= body;
}

static void
request_tell(const uint8_t *header, struct bs_frame *frame)
{
	const char *name = is_known(header[1]) ? opcodes[header[1]].name : "other";

	frame->label_len = (uint8_t)strlen(name);
	memcpy(frame->label, name, frame->label_len);
	if (is_known(header[1]))
		frame->oneway = opcodes[header[1]].oneway;
}

static void
response_tell(const uint8_t *header, struct bs_frame *frame)
{
	int32_t status = (int32_t)load_be16(header + 6);

	frame->has_status = 1;
	frame->status = status;
	/* That there is no such item, or that it is another, is what was asked. */
	frame->error = status != 0 && status != STATUS_MISS && status != STATUS_EXISTS &&
		       status != STATUS_NOT_STORED && status != STATUS_AUTH_CONTINUE;
}

static void
header_tell(const uint8_t *header, bool from_server, struct bs_frame *frame)
{
	frame->flags |= BS_FRAME_HEAD;
	frame->has_id = 1;
	frame->id = (uint64_t)header[1] << 32 | load_be32(header + 12);
	if (from_server)
		response_tell(header, frame);
	else
		request_tell(header, frame);
}

static size_t
binary_feed(const struct bs_framer *framer, struct bs_frame_conn *conn, bool from_server,
	const uint8_t *data, size_t bytes, struct bs_frame *frame)
{
	struct binary_dir *dir = (struct binary_dir *)conn->dir[from_server].bytes;
	size_t used = HEADER_BYTES - (size_t)dir->have;
	const uint8_t *header = dir->header;

	(void)framer;
	if (used > bytes)
		used = bytes;
	memcpy(dir->header + dir->have, data, used);
	dir->have = (uint8_t)(dir->have + used);
	if (dir->have < HEADER_BYTES)
		return used;
	dir->have = 0;
	if (!header_is_sane(header, from_server)) {
		memset(dir, 0, sizeof(*dir));
		frame->flags = BS_FRAME_BAD;
		return used;
	}
	if (!dir->told)
		header_tell(header, from_server, frame);
	/* Each of the statistics has a key; the one that has none ends them, as an error does. */
	dir->told = from_server && header[1] == OPCODE_STAT && load_be16(header + 2) > 0 &&
		    load_be16(header + 6) == 0;
	frame->skip = load_be32(header + 8);
	if (frame->skip > 0)
		frame->flags |= BS_FRAME_SKIP;
	if (!dir->told)
		frame->flags |= BS_FRAME_END;
	return used;
}

static int
binary_probe(const struct bs_framer *framer, bool from_server, const uint8_t *data, size_t bytes)
{
	(void)framer;
	if (bytes == 0)
		return 1;
	if (data[0] != (from_server ? MAGIC_RESPONSE : MAGIC_REQUEST) ||
		(bytes > 1 && !is_known(data[1])))
		return 0;
	if (bytes < HEADER_BYTES)
		return 1;
	if (!header_is_sane(data, from_server))
		return 0;
	/* A request has no status: its field is a bucket, which memcached itself does not use. */
	return from_server || load_be16(data + 6) == 0 ? 2 : 1;
}

static bool
binary_datagram_feed(const struct bs_framer *framer, bool from_server, const uint8_t *data,
	size_t bytes, struct bs_frame *frame)
{
	uint64_t request_id;
	unsigned sequence;

	if (!memcached_udp_take(from_server, data, bytes, frame, &sequence))
		return false;
	if (sequence > 0)
		return true;
	data += MEMCACHED_UDP_HEADER_BYTES;
	bytes -= MEMCACHED_UDP_HEADER_BYTES;
	if (bytes < HEADER_BYTES || binary_probe(framer, from_server, data, bytes) == 0)
		return false;
	request_id = frame->id;
	header_tell(data, from_server, frame);
	frame->id = request_id; /* later datagrams of an answer have no other */
	return true;
}

const struct bs_framer_ops bs_framer_memcached_binary = {
	.name = "memcached-binary",
	.pairing = BS_PAIR_BY_ORDER,
	.datagram = true,
	.feed = binary_feed,
	.datagram_feed = binary_datagram_feed,
	.probe = binary_probe,
	.sibling = &bs_framer_memcached,
	.ports = {11211},
};
