/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a frame to struct bs_packet. Runs once per packet on the lcores: the
 * common case (Ethernet, IPv4 or IPv6, TCP with at most a timestamp) goes
 * straight through; what is rare leaves for a function of its own.
 *
 * `cap` is how far the bytes reach, `end` where the IP packet ends on the wire,
 * both as offsets from data. cap < end is no error: a capture may keep only the
 * beginning, and data may be the first of several segments. Headers have to lie
 * below both.
 */
#include "bs_packet.h"
#include "ends.h"
#include "load.h"
#include "tcp_options.h"

#define TYPE_IPV4 0x0800
#define TYPE_IPV6 0x86dd
#define TYPE_VLAN 0x8100  /* IEEE 802.1Q */
#define TYPE_SVLAN 0x88a8 /* IEEE 802.1ad */
#define VLAN_ID_MASK 0xfff

#define IPV4_BYTES 20u
#define IPV4_FRAGMENT_MASK 0x3fff /* MF and offset */
#define IPV6_BYTES 40u
#define TCP_BYTES 20u
#define UDP_BYTES 8u

#define SHIM_BYTES 16u
#define SHIM_VERSION 1u
/* Option of kind 127 with our ExID, all there is behind the OCS (RFC 9868 sections 8, 11.8). */
#define UDP_OPTION 0x7f14b5c0u
#define UDP_OPTION_BYTES (4 + SHIM_BYTES)
#define OCS_BYTES 2u

#define TYPE_ETHERNET 0x6558 /* Transparent Ethernet Bridging, in Geneve */
#define GENEVE_CONTROL 0x80
#define GENEVE_OPTION ((BS_GENEVE_CLASS << 16) | (BS_GENEVE_TYPE << 8) | SHIM_BYTES / 4)
#define GENEVE_OPTION_MASK 0xffffff1f /* less the reserved bits */

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* NOP, NOP, timestamp: how most stacks lay it out (RFC 7323 appendix A), with nothing else. */
#define TIMESTAMP_ONLY_BYTES (TCP_BYTES + 12)
#define TIMESTAMP_ONLY 0x0101080au

enum {
	PROTO_HOP_BY_HOP = 0,
	PROTO_ICMP = 1,
	PROTO_TCP = 6,
	PROTO_UDP = 17,
	PROTO_ROUTING = 43,
	PROTO_FRAGMENT = 44,
	PROTO_ESP = 50,
	PROTO_AH = 51,
	PROTO_ICMPV6 = 58,
	PROTO_DESTINATION = 60,
	PROTO_MOBILITY = 135,
	PROTO_HIP = 139,
	PROTO_SHIM6 = 140,
};

/* RFC 8200 4.1 names seven at most; more is not worth the cycles. */
#define EXTENSIONS_MAX 8u
#define EXTENSION_UNIT 8u

#define OPTION_PAD1 0x00
#define OPTION_JUMBO 0xc2 /* RFC 2675 2 */
#define JUMBO_MIN 65536u  /* RFC 2675 3: less is an error */

static const char *const parse_keys[] = {
#define BS_X_KEY(name, key, help) key,
	BS_PARSES(BS_X_KEY)
#undef BS_X_KEY
};

const char *
bs_parse_key(unsigned parse)
{
	return parse < BS_PARSE_COUNT ? parse_keys[parse] : "?";
}

static inline uint32_t
min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/*
 * All that parse sets but the tuple, which set_ends writes whole, and the SACK
 * blocks, of which sack_count says how many hold. Small enough to become a few
 * vector stores: over 64 bytes gcc makes a slow `rep stos` of it.
 */
static inline void
clear(struct bs_packet *packet)
{
	enum {
		BEGIN = offsetof(struct bs_packet, hash),
		END = offsetof(struct bs_packet, sack),
	};

	_Static_assert(BEGIN == offsetof(struct bs_packet, tuple) + sizeof(struct bs_tuple) &&
			       END - BEGIN <= 64,
		"fields set by parse");
	memset((uint8_t *)packet + BEGIN, 0, END - BEGIN);
}

static inline enum bs_parse
finish(struct bs_packet *packet, enum bs_parse parse)
{
	packet->parse = (uint8_t)parse;
	return parse;
}

/* VLAN IDs on the way from the link header to the tuple. */
struct vlans {
	uint16_t outer, inner;
};

/* Tuple, direction and hash, from the addresses and ports as sent. */
static ALWAYS_INLINE void
set_ends(struct bs_packet *packet, struct vlans vlans, struct flow_end from, struct flow_end to,
	unsigned ip_version)
{
	struct bs_tuple *tuple = &packet->tuple;

	packet->direction = (uint8_t)ends_order(&from, &to);
	packet->hash = ends_hash(&from, &to, vlans.outer, vlans.inner, packet->l4_protocol, 0);
	store_be64(tuple->addr[0], from.high);
	store_be64(tuple->addr[0] + 8, from.low);
	store_be64(tuple->addr[1], to.high);
	store_be64(tuple->addr[1] + 8, to.low);
	tuple->port[0] = from.port;
	tuple->port[1] = to.port;
	tuple->vlan[0] = vlans.outer;
	tuple->vlan[1] = vlans.inner;
	tuple->transport = (uint8_t)packet->l4_protocol;
	tuple->ip_version = (uint8_t)ip_version;
	memset(tuple->vni, 0, sizeof(tuple->vni));
	memset(tuple->pad, 0, sizeof(tuple->pad));
}

/* The end of a packet without addresses. */
static enum bs_parse
finish_without_ends(struct bs_packet *packet, struct vlans vlans, enum bs_parse parse)
{
	memset(&packet->tuple, 0, sizeof(packet->tuple));
	packet->tuple.vlan[0] = vlans.outer;
	packet->tuple.vlan[1] = vlans.inner;
	return finish(packet, parse);
}

/*
 * A sender that leaves the checksum to its device stores the sum of the pseudo
 * header in the field (RFC 9293 3.1, RFC 8200 8.1), not complemented. A full
 * checksum can look like that by chance, once in 65536; what completes it
 * computes the same value again.
 *
 * One's complement sums (RFC 1071) are equal if they are congruent modulo
 * 0xffff; that compiles to a multiplication where folding takes nine steps. 0
 * never is the sum of a pseudo header; in UDP it says that there is no checksum.
 * sum: of the addresses, as 32-bit words.
 */
static ALWAYS_INLINE bool
is_partial(const struct bs_packet *packet, uint64_t sum)
{
	const uint8_t *field =
		packet->data + packet->l4 + (packet->l4_protocol == PROTO_TCP ? 16 : 6);
	unsigned value = load_be16(field);

	sum += packet->l4_protocol;
	sum += packet->payload - packet->l4 + packet->payload_len;
	return value != 0 && (sum + 0xffff - value) % 0xffff == 0;
}

static ALWAYS_INLINE uint64_t
address_sum(const uint8_t *addresses, unsigned bytes)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < bytes; i += 4)
		sum += load_be32(addresses + i);
	return sum;
}

static inline void
set_payload(struct bs_packet *packet, uint32_t payload, uint32_t end, uint32_t cap)
{
	packet->payload = (uint16_t)payload;
	packet->payload_len = end - payload;
	packet->payload_cap = min_u32(cap, end) - payload;
}

static ALWAYS_INLINE enum bs_parse
parse_tcp(struct bs_packet *packet, uint32_t l4, uint32_t end, uint32_t cap, uint32_t *ports)
{
	const uint8_t *tcp = packet->data + l4;
	uint32_t header;

	if (end - l4 < TCP_BYTES)
		return BS_PARSE_BAD_L4;
	if (cap - l4 < TCP_BYTES)
		return BS_PARSE_SNAPPED;
	header = (tcp[12] >> 4) * 4u;
	if (header < TCP_BYTES || header > end - l4)
		return BS_PARSE_BAD_L4;
	if (header > cap - l4)
		return BS_PARSE_SNAPPED;
	*ports = load_be32(tcp);
	packet->seq = load_be32(tcp + 4);
	packet->ack = load_be32(tcp + 8);
	packet->tcp_flags = tcp[13];
	packet->window = load_be16(tcp + 14);
	set_payload(packet, l4 + header, end, cap);
	if (header == TIMESTAMP_ONLY_BYTES && load_be32(tcp + TCP_BYTES) == TIMESTAMP_ONLY) {
		packet->tsval = load_be32(tcp + TCP_BYTES + 4);
		packet->tsecr = load_be32(tcp + TCP_BYTES + 8);
		packet->tcp_options = BS_TCPOPT_TIMESTAMP;
	} else if (header > TCP_BYTES) {
		tcp_options_parse(packet, l4 + TCP_BYTES, l4 + header);
	}
	return BS_PARSE_OK;
}

/* Bytes of the IP packet behind the UDP length are no payload of UDP's, but options (RFC 9868). */
static void
parse_surplus(struct bs_packet *packet, uint32_t l4, uint32_t at, uint32_t end, uint32_t cap)
{
	uint32_t option = at + ((at - l4) & 1) + OCS_BYTES;

	if (end <= cap && end <= UINT16_MAX && end - at == option - at + UDP_OPTION_BYTES &&
		load_be32(packet->data + option) == UDP_OPTION)
		packet->shim = (uint16_t)option;
}

static ALWAYS_INLINE enum bs_parse
parse_udp(struct bs_packet *packet, uint32_t l4, uint32_t end, uint32_t cap, uint32_t *ports)
{
	const uint8_t *udp = packet->data + l4;
	uint32_t length;

	if (end - l4 < UDP_BYTES)
		return BS_PARSE_BAD_L4;
	if (cap - l4 < UDP_BYTES)
		return BS_PARSE_SNAPPED;
	length = load_be16(udp + 4);
	if (length == 0 && end - l4 > UINT16_MAX) /* RFC 2675 4 */
		length = end - l4;
	if (length < UDP_BYTES || length > end - l4)
		return BS_PARSE_BAD_L4;
	*ports = load_be32(udp);
	set_payload(packet, l4 + UDP_BYTES, l4 + length, cap);
	if (length != end - l4)
		parse_surplus(packet, l4, l4 + length, end, cap);
	return BS_PARSE_OK;
}

/* l4 lies at or below both end and cap. ports: source and destination, left alone if unknown. */
static ALWAYS_INLINE enum bs_parse
parse_transport(struct bs_packet *packet, uint32_t l4, uint32_t end, uint32_t cap,
	unsigned icmp_protocol, uint32_t *ports)
{
	packet->l4 = (uint16_t)l4;
	if (packet->l4_protocol == PROTO_TCP)
		return parse_tcp(packet, l4, end, cap, ports);
	if (packet->l4_protocol == PROTO_UDP)
		return parse_udp(packet, l4, end, cap, ports);
	return packet->l4_protocol == icmp_protocol ? BS_PARSE_ICMP : BS_PARSE_OTHER_L4;
}

static enum bs_parse
parse_ipv4(struct bs_packet *packet, struct vlans vlans, uint32_t l3, uint32_t cap)
{
	const uint8_t *ip = packet->data + l3;
	uint32_t room = packet->len - l3;
	uint32_t header, total, ports = 0;
	enum bs_parse parse;

	packet->l3 = (uint16_t)l3;
	if (cap - l3 < IPV4_BYTES)
		return finish_without_ends(
			packet, vlans, room < IPV4_BYTES ? BS_PARSE_CUT : BS_PARSE_SNAPPED);
	header = (ip[0] & 0xf) * 4u;
	total = load_be16(ip + 2);
	packet->l4_protocol = ip[9];
	if (total == 0 && ip[9] == PROTO_TCP)
		total = room;
	if (ip[0] < 0x45 || ip[0] > 0x4f || total < header)
		return finish_without_ends(packet, vlans, BS_PARSE_BAD_IP);
	packet->ip_id = load_be16(ip + 4);
	packet->ttl = ip[8];

	if (total > room)
		parse = BS_PARSE_CUT;
	else if (load_be16(ip + 6) & IPV4_FRAGMENT_MASK)
		parse = BS_PARSE_FRAGMENT;
	else if (header > cap - l3)
		parse = BS_PARSE_SNAPPED;
	else
		parse = parse_transport(packet, l3 + header, l3 + total, cap, PROTO_ICMP, &ports);

	struct flow_end from = {
		.low = MAPPED_IPV4 | load_be32(ip + 12), .port = (uint16_t)(ports >> 16)};
	struct flow_end to = {.low = MAPPED_IPV4 | load_be32(ip + 16), .port = (uint16_t)ports};

	set_ends(packet, vlans, from, to, 4);
	if (parse == BS_PARSE_OK)
		packet->l4_checksum_partial = is_partial(packet, address_sum(ip + 12, 8));
	return finish(packet, parse);
}

struct walk {
	uint8_t next; /* protocol number of what lies at `at` */
	bool sized;   /* end comes from a length field */
	uint32_t at, end;
};

/*
 * Looks for the jumbo payload option (RFC 2675, used by Linux BIG TCP) among
 * the hop-by-hop options, all `bytes` of which are there.
 */
static enum bs_parse
parse_hop_by_hop(const struct bs_packet *packet, struct walk *walk, uint32_t bytes)
{
	const uint8_t *option = packet->data + walk->at + 2;
	const uint8_t *limit = packet->data + walk->at + bytes;
	uint32_t first = packet->l3 + IPV6_BYTES;

	while (option < limit) {
		if (option[0] == OPTION_PAD1) {
			option++;
			continue;
		}
		if (limit - option < 2 || option[1] > limit - option - 2)
			return BS_PARSE_BAD_IP;
		if (option[0] == OPTION_JUMBO) {
			if (option[1] != 4 || walk->sized || load_be32(option + 2) < JUMBO_MIN)
				return BS_PARSE_BAD_IP;
			if (load_be32(option + 2) > packet->len - first)
				return BS_PARSE_CUT;
			walk->end = first + load_be32(option + 2);
			walk->sized = true;
		}
		option += 2 + option[1];
	}
	return BS_PARSE_OK;
}

/*
 * Passes over the extension headers that are walked (RFC 8200 4). OK: what lies
 * at walk->at is a transport header.
 */
static enum bs_parse
walk_extensions(const struct bs_packet *packet, struct walk *walk, uint32_t cap)
{
	for (unsigned n = 0;; n++) {
		const uint8_t *header = packet->data + walk->at;
		uint8_t kind = walk->next;
		uint32_t bytes = EXTENSION_UNIT;
		enum bs_parse parse = BS_PARSE_OK;

		switch (kind) {
		case PROTO_HOP_BY_HOP: /* nowhere but first (RFC 8200 4.1) */
			if (n > 0)
				return BS_PARSE_OPAQUE_EXT;
			break;
		case PROTO_ROUTING:
		case PROTO_FRAGMENT:
		case PROTO_DESTINATION:
			break;
		case PROTO_ESP:
		case PROTO_AH:
		case PROTO_MOBILITY:
		case PROTO_HIP:
		case PROTO_SHIM6:
			return BS_PARSE_OPAQUE_EXT;
		default:
			return BS_PARSE_OK;
		}
		if (n == EXTENSIONS_MAX)
			return BS_PARSE_OPAQUE_EXT;
		if (walk->end - walk->at < bytes)
			return BS_PARSE_BAD_IP;
		if (cap - walk->at < bytes)
			return BS_PARSE_SNAPPED;
		if (kind != PROTO_FRAGMENT)
			bytes += header[1] * EXTENSION_UNIT;
		if (walk->end - walk->at < bytes)
			return BS_PARSE_BAD_IP;
		if (cap - walk->at < bytes)
			return BS_PARSE_SNAPPED;
		walk->next = header[0];
		/* Offset or M; an atomic fragment (RFC 6946) has neither. */
		if (kind == PROTO_FRAGMENT && load_be16(header + 2) & 0xfff9)
			return BS_PARSE_FRAGMENT;
		if (kind == PROTO_HOP_BY_HOP)
			parse = parse_hop_by_hop(packet, walk, bytes);
		if (parse != BS_PARSE_OK)
			return parse;
		walk->at += bytes;
	}
}

static enum bs_parse
parse_ipv6(struct bs_packet *packet, struct vlans vlans, uint32_t l3, uint32_t cap)
{
	const uint8_t *ip = packet->data + l3;
	uint32_t room = packet->len - l3;
	uint32_t length, ports = 0;
	enum bs_parse parse = BS_PARSE_OK;

	packet->l3 = (uint16_t)l3;
	if (cap - l3 < IPV6_BYTES)
		return finish_without_ends(
			packet, vlans, room < IPV6_BYTES ? BS_PARSE_CUT : BS_PARSE_SNAPPED);
	if (ip[0] >> 4 != 6)
		return finish_without_ends(packet, vlans, BS_PARSE_BAD_IP);
	length = load_be16(ip + 4);
	packet->ttl = ip[7];

	/* Length 0: a jumbogram, or segmentation offload, which leaves it to the frame. */
	struct walk walk = {
		.next = ip[6],
		.sized = length != 0,
		.at = l3 + IPV6_BYTES,
		.end = length ? l3 + IPV6_BYTES + length : packet->len,
	};

	if (length > room - IPV6_BYTES)
		parse = BS_PARSE_CUT;
	else if (walk.next != PROTO_TCP)
		parse = walk_extensions(packet, &walk, cap);
	packet->l4_protocol = walk.next;
	if (parse == BS_PARSE_OK && !walk.sized && walk.next == PROTO_UDP)
		parse = BS_PARSE_BAD_IP;
	if (parse == BS_PARSE_OK)
		parse = parse_transport(packet, walk.at, walk.end, cap, PROTO_ICMPV6, &ports);

	struct flow_end from = {.high = load_be64(ip + 8),
		.low = load_be64(ip + 16),
		.port = (uint16_t)(ports >> 16)};
	struct flow_end to = {
		.high = load_be64(ip + 24), .low = load_be64(ip + 32), .port = (uint16_t)ports};

	set_ends(packet, vlans, from, to, 6);
	if (parse == BS_PARSE_OK)
		packet->l4_checksum_partial = is_partial(packet, address_sum(ip + 8, 32));
	return finish(packet, parse);
}

/* The frame ends before `offset`: on the wire, or only in the bytes kept. */
static enum bs_parse
too_short(const struct bs_packet *packet, uint32_t offset)
{
	return offset > packet->len ? BS_PARSE_RUNT : BS_PARSE_SNAPPED;
}

/* Passes over VLAN tags: *type is of what lies at *offset, before and after. */
static enum bs_parse
parse_vlans(struct bs_packet *packet, struct vlans *vlans, unsigned *type, uint32_t *offset,
	uint32_t cap)
{
	while (*type == TYPE_VLAN || *type == TYPE_SVLAN) {
		const uint8_t *tag = packet->data + *offset;
		uint16_t id;

		if (packet->vlan_count == BS_VLAN_DEPTH_MAX)
			return BS_PARSE_NOT_IP;
		if (cap - *offset < BS_VLAN_BYTES)
			return too_short(packet, *offset + BS_VLAN_BYTES);
		id = load_be16(tag) & VLAN_ID_MASK;
		/* Of three tags, the outermost and the innermost. */
		if (packet->vlan_count == 0)
			vlans->outer = id;
		else
			vlans->inner = id;
		packet->vlan_count++;
		*type = load_be16(tag + 2);
		*offset += BS_VLAN_BYTES;
	}
	return BS_PARSE_OK;
}

/* Passes over a shim in front of the Ethertype; anything else of its Ethertype is left alone. */
static void
parse_ether_shim(struct bs_packet *packet, unsigned *type, uint32_t *offset, uint32_t cap)
{
	const uint8_t *shim = packet->data + *offset;

	if (cap - *offset < SHIM_BYTES + 2 || shim[0] >> 4 != SHIM_VERSION)
		return;
	packet->ether_shim = (uint16_t)*offset;
	*type = load_be16(shim + SHIM_BYTES);
	*offset += SHIM_BYTES + 2;
}

/* What is not IPv4 right behind the link header. */
static enum bs_parse
parse_other_type(struct bs_packet *packet, unsigned type, uint32_t offset, uint32_t cap)
{
	struct vlans vlans = {0};
	enum bs_parse parse;

	if (type == BS_ETHER_SHIM_TYPE)
		parse_ether_shim(packet, &type, &offset, cap);
	parse = parse_vlans(packet, &vlans, &type, &offset, cap);
	if (parse != BS_PARSE_OK)
		return finish_without_ends(packet, vlans, parse);
	if (type == TYPE_IPV4)
		return parse_ipv4(packet, vlans, offset, cap);
	if (type == TYPE_IPV6)
		return parse_ipv6(packet, vlans, offset, cap);
	return finish_without_ends(packet, vlans, BS_PARSE_NOT_IP);
}

static enum bs_parse
parse_type(struct bs_packet *packet, unsigned type, uint32_t offset)
{
	uint32_t cap = min_u32(packet->caplen, packet->len);
	struct vlans none = {0};

	clear(packet);
	if (offset > cap)
		return finish_without_ends(packet, none, too_short(packet, offset));
	if (type == TYPE_IPV4)
		return parse_ipv4(packet, none, offset, cap);
	return parse_other_type(packet, type, offset, cap);
}

enum bs_parse
bs_packet_parse_type(struct bs_packet *packet, unsigned type, unsigned offset)
{
	return parse_type(packet, type, offset);
}

enum bs_parse
bs_packet_parse(struct bs_packet *packet)
{
	unsigned type = 0;

	if (packet->caplen >= BS_ETHER_BYTES)
		type = load_be16(packet->data + BS_ETHER_BYTES - 2);
	return parse_type(packet, type, BS_ETHER_BYTES);
}

enum bs_parse
bs_packet_parse_ip(struct bs_packet *packet, unsigned l3_offset)
{
	unsigned type = TYPE_IPV4; /* any other version than 4 and 6 is refused as a bad IPv4 */

	if (packet->caplen > l3_offset && packet->data[l3_offset] >> 4 == 6)
		type = TYPE_IPV6;
	return parse_type(packet, type, l3_offset);
}

/* Offset of our option among those of the Geneve header at `at`, 0: none; false: malformed. */
static bool
geneve_options(const struct bs_packet *packet, uint32_t at, uint32_t end, uint16_t *shim)
{
	*shim = 0;
	while (at < end) {
		uint32_t head = load_be32(packet->data + at);
		uint32_t bytes = 4 + (head & 0x1f) * 4;

		if (bytes > end - at)
			return false;
		if ((head & GENEVE_OPTION_MASK) == GENEVE_OPTION && *shim == 0)
			*shim = (uint16_t)at;
		at += bytes;
	}
	return true;
}

/* Parses what the Geneve header in the datagram encapsulates; the datagram stays if it is none. */
static enum bs_parse
parse_tunnel(struct bs_packet *packet)
{
	const uint8_t *header = packet->data + packet->payload;
	const uint16_t outer_l3 = packet->l3, geneve = packet->payload,
		       ether_shim = packet->ether_shim;
	const uint8_t partial = packet->l4_checksum_partial;
	const uint32_t len = packet->len, tunnel_end = geneve + packet->payload_len;
	uint32_t offset = geneve + BS_GENEVE_BYTES;
	unsigned type;
	uint16_t shim;

	if (packet->payload_cap < BS_GENEVE_BYTES || header[0] >> 6 != 0 ||
		header[1] & GENEVE_CONTROL)
		return BS_PARSE_OK;
	offset += (header[0] & 0x3fu) * 4;
	if (offset > geneve + packet->payload_cap ||
		!geneve_options(packet, geneve + BS_GENEVE_BYTES, offset, &shim))
		return BS_PARSE_OK;
	type = load_be16(header + 2);
	if (type == TYPE_ETHERNET) {
		if (offset + BS_ETHER_BYTES > geneve + packet->payload_cap)
			return BS_PARSE_OK;
		offset += BS_ETHER_BYTES;
		type = load_be16(packet->data + offset - 2);
	}
	if (type == BS_ETHER_SHIM_TYPE) /* goes with the outermost frame */
		return BS_PARSE_OK;

	packet->len = tunnel_end; /* what is behind it is no part of the inner packet */
	parse_type(packet, type, offset);
	packet->len = len;
	packet->outer_l3 = outer_l3;
	packet->geneve = geneve;
	packet->geneve_shim = shim;
	packet->ether_shim = ether_shim;
	packet->tunnel_checksum_partial = partial;
	memcpy(packet->tuple.vni, packet->data + geneve + 4, sizeof(packet->tuple.vni));
	if (packet->hash != 0)
		packet->hash = bs_tuple_hash(&packet->tuple);
	return packet->parse;
}

enum bs_parse
bs_packet_parse_geneve(struct bs_packet *packet)
{
	if (bs_packet_parse(packet) == BS_PARSE_OK && packet->l4_protocol == PROTO_UDP &&
		packet->tuple.port[!packet->direction] == BS_GENEVE_PORT)
		return parse_tunnel(packet);
	return packet->parse;
}
