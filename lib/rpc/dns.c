/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DNS (RFC 1035 section 4) over UDP, and over TCP behind a two-byte length
 * (section 4.2.2, RFC 7766 section 8). The length prefix is what a framing row
 * could say; the operation (type and name asked for) and the rcode are why
 * there is code. One parser serves both: it takes the message in pieces, since
 * the longest name does not fit the state of a direction.
 */
#include <assert.h>
#include <string.h>

#include "bs_framer.h"
#include "load.h"

#define HEADER_BYTES 12u
#define FLAG_RESPONSE 0x80u /* in byte 2 */
#define FLAG_ZERO 0x40u	    /* in byte 3, reserved */
#define RCODE_MASK 0x0fu
#define RCODE_NXDOMAIN 3u
#define NAME_BYTES_MAX 255u
#define NAME_KEPT 80u /* leaves room for opcode and type in the label */

enum dns_phase {
	DNS_LENGTH, /* of the message, TCP only */
	DNS_HEADER,
	DNS_NAME_LENGTH, /* of the next label of the name */
	DNS_NAME,
	DNS_TYPE, /* and class */
	DNS_DONE,
};

struct dns_state {
	uint8_t phase; /* enum dns_phase */
	uint8_t have;  /* bytes of the phase so far */
	uint8_t label_left;
	uint8_t kept; /* of the name in `name` */
	uint8_t header[HEADER_BYTES];
	uint8_t tail[4];
	uint16_t name_bytes; /* of the name on the wire so far */
	uint32_t left;	     /* of the message; TCP: after its length */
	char name[NAME_KEPT];
};

static_assert(sizeof(struct dns_state) <= BS_FRAME_STATE_BYTES, "state must fit");

static unsigned
opcode_of(const uint8_t *header)
{
	return header[2] >> 3 & 0x0fu;
}

/* Names of opcodes, RFC 6895 section 2.2; the query is left out of labels. */
static const char *const opcodes[] = {"", "IQUERY", "STATUS", NULL, "NOTIFY", "UPDATE", "DSO"};
#define OPCODE_COUNT (sizeof(opcodes) / sizeof(opcodes[0]))

/* Types that clients ask for; others are written TYPE<n>, RFC 3597 section 5. */
static const struct {
	uint16_t type;
	char text[10];
} types[] = {
	{1, "A"},
	{28, "AAAA"},
	{2, "NS"},
	{5, "CNAME"},
	{6, "SOA"},
	{12, "PTR"},
	{15, "MX"},
	{16, "TXT"},
	{33, "SRV"},
	{35, "NAPTR"},
	{39, "DNAME"},
	{43, "DS"},
	{46, "RRSIG"},
	{47, "NSEC"},
	{48, "DNSKEY"},
	{50, "NSEC3"},
	{52, "TLSA"},
	{64, "SVCB"},
	{65, "HTTPS"},
	{99, "SPF"},
	{251, "IXFR"},
	{252, "AXFR"},
	{255, "ANY"},
	{257, "CAA"},
};

static void
label_add(struct bs_frame *frame, const char *text, size_t len)
{
	size_t room = BS_FRAME_LABEL_BYTES - frame->label_len;

	if (frame->label_len > 0 && room > 0) {
		frame->label[frame->label_len++] = ' ';
		room--;
	}
	if (len > room)
		len = room;
	memcpy(frame->label + frame->label_len, text, len);
	frame->label_len = (uint8_t)(frame->label_len + len);
}

static void
label_add_type(struct bs_frame *frame, unsigned type)
{
	char text[10] = "TYPE";
	size_t len = 4;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (types[i].type == type) {
			label_add(frame, types[i].text, strlen(types[i].text));
			return;
		}
	}
	for (unsigned power = 10000; power > 0; power /= 10) {
		if (type >= power || power == 1)
			text[len++] = (char)('0' + type / power % 10);
	}
	label_add(frame, text, len);
}

/* The header is plausible for a message of the direction it claims. */
static bool
header_is_sane(const uint8_t *header)
{
	bool response = header[2] & FLAG_RESPONSE;
	unsigned opcode = opcode_of(header), rcode = header[3] & RCODE_MASK;
	unsigned records = load_be16(header + 6) | load_be16(header + 8) | load_be16(header + 10);

	if (opcode >= OPCODE_COUNT || opcodes[opcode] == NULL || header[3] & FLAG_ZERO)
		return false;
	/* One question (RFC 9619), or none but something else that makes it a message. */
	return load_be16(header + 4) <= 1 && (load_be16(header + 4) | records | rcode) != 0 &&
	       (response || rcode == 0);
}

/* IN, CH, HS, NONE, ANY: RFC 6895 section 3.2. */
static bool
class_is_sane(unsigned class)
{
	return class == 1 || class == 3 || class == 4 || class == 254 || class == 255;
}

static void
name_add(struct dns_state *state, uint8_t byte)
{
	if (state->kept == NAME_KEPT)
		return;
	/* Names compare without case (RFC 4343), and some resolvers randomise it. */
	if ((uint8_t)(byte - 'A') < 26)
		byte |= 0x20;
	state->name[state->kept++] = byte > 0x20 && byte < 0x7f ? (char)byte : '?';
}

/* Takes bytes until the phase has `need`. True if it has. */
static bool
gather(uint8_t *to, uint8_t *have, size_t need, const uint8_t **at, const uint8_t *end)
{
	size_t n = need - *have;

	if (n > (size_t)(end - *at))
		n = (size_t)(end - *at);
	memcpy(to + *have, *at, n);
	*at += n;
	*have = (uint8_t)(*have + n);
	if (*have < need)
		return false;
	*have = 0;
	return true;
}

/* One byte that begins a label of the name. False: no name can go on like this. */
static bool
name_length_take(struct dns_state *state, uint8_t byte)
{
	state->name_bytes = (uint16_t)(state->name_bytes + 1u + byte);
	if (byte > 63 || state->name_bytes > NAME_BYTES_MAX) /* pointers point back, to nothing */
		return false;
	if (byte == 0) {
		if (state->kept == 0)
			name_add(state, '.');
		state->phase = DNS_TYPE;
		return true;
	}
	if (state->kept > 0)
		name_add(state, '.');
	state->label_left = byte;
	state->phase = DNS_NAME;
	return true;
}

/*
 * Takes bytes of a message up to the end of its first question. False if it is
 * no DNS. `end` is the end of the piece or of the message.
 */
static bool
dns_take(struct dns_state *state, const uint8_t **at, const uint8_t *end)
{
	while (*at < end && state->phase != DNS_DONE) {
		switch (state->phase) {
		case DNS_HEADER:
			if (!gather(state->header, &state->have, HEADER_BYTES, at, end))
				break;
			if (!header_is_sane(state->header))
				return false;
			state->phase =
				load_be16(state->header + 4) == 0 ? DNS_DONE : DNS_NAME_LENGTH;
			break;
		case DNS_NAME_LENGTH:
			if (!name_length_take(state, *(*at)++))
				return false;
			break;
		case DNS_NAME:
			while (state->label_left > 0 && *at < end) {
				name_add(state, *(*at)++);
				state->label_left--;
			}
			if (state->label_left == 0)
				state->phase = DNS_NAME_LENGTH;
			break;
		default: /* DNS_TYPE */
			if (!gather(state->tail, &state->have, sizeof(state->tail), at, end))
				break;
			if (!class_is_sane(load_be16(state->tail + 2)))
				return false;
			state->phase = DNS_DONE;
			break;
		}
	}
	return true;
}

/* What the message is, once its first question is read. */
static void
dns_tell(const struct dns_state *state, struct bs_frame *frame)
{
	const uint8_t *header = state->header;
	unsigned opcode = opcode_of(header), rcode = header[3] & RCODE_MASK;

	frame->flags = BS_FRAME_HEAD | BS_FRAME_END;
	frame->has_id = 1;
	frame->id = load_be16(header);
	if (header[2] & FLAG_RESPONSE) {
		frame->role = BS_ROLE_RESPONSE;
		frame->has_status = 1;
		frame->status = (int32_t)rcode;
		/* That a name does not exist is an answer, not a failure to give one. */
		frame->error = rcode != 0 && rcode != RCODE_NXDOMAIN;
		return;
	}
	frame->role = BS_ROLE_REQUEST;
	if (opcode > 0)
		label_add(frame, opcodes[opcode], strlen(opcodes[opcode]));
	if (state->name_bytes > 0) {
		label_add_type(frame, load_be16(state->tail));
		label_add(frame, state->name, state->kept);
	}
}

static size_t
dns_feed(const struct bs_framer *framer, struct bs_frame_conn *conn, bool from_server,
	const uint8_t *data, size_t bytes, struct bs_frame *frame)
{
	struct dns_state *state = (struct dns_state *)conn->dir[from_server].bytes;
	const uint8_t *at = data, *end = data + bytes, *body;

	(void)framer;
	if (state->phase == DNS_LENGTH) {
		if (!gather(state->tail, &state->have, 2, &at, end))
			return bytes;
		state->left = load_be16(state->tail);
		state->phase = DNS_HEADER;
		if (state->left < HEADER_BYTES)
			goto bad;
	}
	body = at;
	if ((size_t)(end - at) > state->left)
		end = at + state->left;
	if (!dns_take(state, &at, end))
		goto bad;
	state->left -= (uint32_t)(at - body);
	if (state->phase == DNS_DONE) {
		dns_tell(state, frame);
		frame->skip = state->left;
		if (frame->skip > 0)
			frame->flags |= BS_FRAME_SKIP;
		memset(state, 0, sizeof(*state));
	} else if (state->left == 0) { /* ends within the question */
		goto bad;
	}
	return (size_t)(at - data);
bad:
	memset(state, 0, sizeof(*state));
	frame->flags = BS_FRAME_BAD;
	return (size_t)(at - data);
}

static bool
dns_datagram_feed(const struct bs_framer *framer, bool from_server, const uint8_t *data,
	size_t bytes, struct bs_frame *frame)
{
	struct dns_state state = {.phase = DNS_HEADER};
	const uint8_t *at = data;

	(void)framer;
	(void)from_server; /* the QR bit says it: servers ask each other, too */
	if (bytes == 0 || !dns_take(&state, &at, data + bytes) || state.phase != DNS_DONE)
		return false;
	dns_tell(&state, frame);
	return true;
}

/* Over TCP. A question that is whole within the length leaves no doubt. */
static int
dns_probe(const struct bs_framer *framer, bool from_server, const uint8_t *data, size_t bytes)
{
	struct dns_state state = {.phase = DNS_HEADER};
	const uint8_t *at, *end;
	size_t length;

	(void)framer;
	if (bytes < 2)
		return 1;
	length = load_be16(data);
	if (length < HEADER_BYTES)
		return 0;
	at = data + 2;
	end = data + bytes;
	if ((size_t)(end - at) > length)
		end = at + length;
	if (!dns_take(&state, &at, end))
		return 0;
	if (bytes > 4 && ((data[4] & FLAG_RESPONSE) != 0) != from_server)
		return 0;
	if (state.phase != DNS_DONE)
		return at < data + 2 + length ? 1 : 0;
	return state.name_bytes > 0 ? 2 : 1;
}

const struct bs_framer_ops bs_framer_dns = {
	.name = "dns",
	.pairing = BS_PAIR_BY_ID,
	.datagram = true,
	.feed = dns_feed,
	.datagram_feed = dns_datagram_feed,
	.probe = dns_probe,
	.ports = {53},
};
