/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ICMP errors that say "too big"; see bs_icmp_edit.h. The quoted packet is cut
 * short by design, so it is read here and not with lib/packet, which would call
 * it snapped.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "bs_checksum.h"
#include "bs_icmp_edit.h"
#include "bs_shim.h"
#include "bytes.h"

#define ETHERTYPE_AT 12u
#define ETHERTYPE_IPV4 0x0800u
#define ETHERTYPE_IPV6 0x86DDu
#define ETHERTYPE_VLAN 0x8100u
#define ETHERTYPE_QINQ 0x88A8u
#define VLAN_ID_MASK 0x0FFFu
#define PROTOCOL_HOP_BY_HOP 0u
#define PROTOCOL_ICMP 1u
#define PROTOCOL_TCP 6u
#define PROTOCOL_UDP 17u
#define PROTOCOL_ROUTING 43u
#define PROTOCOL_FRAGMENT 44u
#define PROTOCOL_ICMPV6 58u
#define PROTOCOL_DEST_OPTIONS 60u
#define ICMP_UNREACHABLE 3u
#define ICMP_FRAG_NEEDED 4u
#define ICMPV6_TOO_BIG 2u
#define ICMP_BYTES 8u
#define ICMP_CHECKSUM_AT 2u
#define ICMP_MTU_AT 6u
#define ICMPV6_MTU_AT 4u
#define QUOTED_L4_BYTES 8u

/* An IP header and what it carries. Offsets from the first byte of the frame. */
struct ip {
	uint8_t version;
	uint8_t protocol;
	size_t l4;
	size_t end;	     /* of the IP packet, or of what is there of it */
	uint8_t addr[2][16]; /* source, destination; IPv4 mapped */
};

static bool
ipv4_read(const uint8_t *frame, size_t len, size_t l3, struct ip *ip)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	const uint8_t *header = frame + l3;
	size_t header_len, total;

	if (len - l3 < 20 || header[0] >> 4 != 4)
		return false;
	header_len = (header[0] & 0x0fu) * 4;
	total = get16(header + 2);
	if (header_len < 20 || total < header_len || header_len > len - l3 ||
		(get16(header + 6) & 0x3FFF) != 0) /* more to come, or not the first */
		return false;
	ip->version = 4;
	ip->protocol = header[9];
	ip->l4 = l3 + header_len;
	ip->end = total < len - l3 ? l3 + total : len;
	for (unsigned i = 0; i < 2; i++) {
		memcpy(ip->addr[i], mapped, sizeof(mapped));
		memcpy(ip->addr[i] + sizeof(mapped), header + 12 + i * 4, 4);
	}
	return true;
}

static bool
ipv6_read(const uint8_t *frame, size_t len, size_t l3, struct ip *ip)
{
	const uint8_t *header = frame + l3;
	size_t at = l3 + 40, total;
	uint8_t next;

	if (len - l3 < 40 || header[0] >> 4 != 6)
		return false;
	total = 40u + get16(header + 4);
	ip->end = total < len - l3 ? l3 + total : len;
	next = header[6];
	while (next == PROTOCOL_HOP_BY_HOP || next == PROTOCOL_ROUTING ||
		next == PROTOCOL_DEST_OPTIONS || next == PROTOCOL_FRAGMENT) {
		bool fragment = next == PROTOCOL_FRAGMENT;

		if (ip->end - at < 8 || (fragment && (get16(frame + at + 2) & 0xFFF9) != 0))
			return false;
		next = frame[at];
		at += fragment ? 8 : (frame[at + 1] + 1u) * 8;
		if (at > ip->end)
			return false;
	}
	ip->version = 6;
	ip->protocol = next;
	ip->l4 = at;
	memcpy(ip->addr, header + 8, sizeof(ip->addr));
	return true;
}

/* The flow of the quoted packet: lower end first, as lib/packet orders them. */
static void
quoted_flow(struct bs_icmp_too_big *out, const struct ip *quoted, const uint8_t *l4)
{
	uint16_t port[2] = {get16(l4), get16(l4 + 2)};
	int order = memcmp(quoted->addr[0], quoted->addr[1], 16);
	unsigned sender = order > 0 || (order == 0 && port[0] > port[1]);

	for (unsigned i = 0; i < 2; i++) {
		memcpy(out->tuple.addr[i ^ sender], quoted->addr[i], 16);
		out->tuple.port[i ^ sender] = port[i];
	}
	out->tuple.transport = quoted->protocol;
	out->tuple.ip_version = quoted->version;
	out->direction = (uint8_t)sender;
	out->seq = quoted->protocol == PROTOCOL_TCP ? get32(l4 + 4) : 0;
}

int
bs_icmp_too_big_parse(const uint8_t *frame, size_t len, struct bs_icmp_too_big *out)
{
	struct bs_icmp_too_big found = {0};
	struct ip outer, quoted;
	const uint8_t *icmp;
	size_t l3 = BS_ETHER_BYTES;
	uint16_t ethertype;
	bool v4;

	if (len < BS_ETHER_BYTES)
		return -EINVAL;
	ethertype = get16(frame + ETHERTYPE_AT);
	for (unsigned i = 0; i < BS_VLAN_DEPTH_MAX &&
			     (ethertype == ETHERTYPE_VLAN || ethertype == ETHERTYPE_QINQ);
		i++) {
		if (len - l3 < BS_VLAN_BYTES)
			return -EINVAL;
		found.tuple.vlan[i > 0] = get16(frame + l3) & VLAN_ID_MASK;
		ethertype = get16(frame + l3 + 2);
		l3 += BS_VLAN_BYTES;
	}
	v4 = ethertype == ETHERTYPE_IPV4;
	if (v4 ? !ipv4_read(frame, len, l3, &outer)
	       : ethertype != ETHERTYPE_IPV6 || !ipv6_read(frame, len, l3, &outer))
		return -EINVAL;
	if (outer.protocol != (v4 ? PROTOCOL_ICMP : PROTOCOL_ICMPV6) ||
		outer.end - outer.l4 < ICMP_BYTES)
		return -EINVAL;
	icmp = frame + outer.l4;
	if (v4 ? icmp[0] != ICMP_UNREACHABLE || icmp[1] != ICMP_FRAG_NEEDED
	       : icmp[0] != ICMPV6_TOO_BIG)
		return -EINVAL;

	l3 = outer.l4 + ICMP_BYTES;
	if (v4 ? !ipv4_read(frame, outer.end, l3, &quoted)
	       : !ipv6_read(frame, outer.end, l3, &quoted))
		return -EINVAL;
	if ((quoted.protocol != PROTOCOL_TCP && quoted.protocol != PROTOCOL_UDP) ||
		quoted.end - quoted.l4 < QUOTED_L4_BYTES)
		return -EINVAL;
	quoted_flow(&found, &quoted, frame + quoted.l4);
	found.icmp_at = (uint32_t)outer.l4;
	found.mtu_at = (uint32_t)outer.l4 + (v4 ? ICMP_MTU_AT : ICMPV6_MTU_AT);
	found.mtu = v4 ? get16(frame + found.mtu_at) : get32(frame + found.mtu_at);
	*out = found;
	return 0;
}

unsigned
bs_icmp_mtu_lower(struct bs_icmp_too_big *too_big, uint8_t *frame, unsigned bytes)
{
	bool v4 = too_big->tuple.ip_version == 4;
	uint32_t floor = v4 ? BS_ICMP_MTU_FLOOR_V4 : BS_ICMP_MTU_FLOOR_V6;
	uint32_t before = too_big->mtu, after;
	uint8_t *checksum = frame + too_big->icmp_at + ICMP_CHECKSUM_AT;

	if (before <= floor)
		return 0;
	after = before - floor < bytes ? floor : before - bytes;
	if (v4)
		put16(frame + too_big->mtu_at, (uint16_t)after);
	else
		put32(frame + too_big->mtu_at, after);
	/* Folding leaves a 16-bit value as it is and sums the words of a 32-bit one. */
	put16(checksum, bs_checksum_adjust(get16(checksum), bs_checksum_fold(before),
				bs_checksum_fold(after)));
	too_big->mtu = after;
	return before - after;
}
