/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One packet as BufScope sees it: where its headers are and what they say.
 * parse() reads only the bytes it is given and never past them; what it does
 * not understand it says, and the packet passes unchanged.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BS_ETHER_BYTES 14u
#define BS_VLAN_BYTES 4u
#define BS_VLAN_DEPTH_MAX 3u

/* The `ether` carrier: behind the MACs this Ethertype, 16 bytes of shim, the frame's own Ethertype.
 */
#define BS_ETHER_SHIM_TYPE 0x88B5u /* IEEE 802, Local Experimental Ethertype 1 */

/* Geneve (RFC 8926): UDP port, and the option that is a shim. */
#define BS_GENEVE_PORT 6081u
#define BS_GENEVE_BYTES 8u	/* without options */
#define BS_GENEVE_CLASS 0xFFB5u /* experimental, section 6 */
#define BS_GENEVE_TYPE 1u	/* its highest bit, critical, is clear */

/* What parse() made of a frame; each frame gets exactly one. Text: telemetry key, help. */
#define BS_PARSES(X)                                                                               \
	X(OK, "tcp_udp", "TCP or UDP over IP, understood")                                         \
	X(NOT_IP, "not_ip", "not IPv4 or IPv6 (ARP, LLDP, ...)")                                   \
	X(OTHER_L4, "other_transport", "IP, but neither TCP nor UDP")                              \
	X(ICMP, "icmp", "ICMP or ICMPv6")                                                          \
	X(FRAGMENT, "fragment", "IP fragment; live: of a flow that is known by its first one")     \
	X(OPAQUE_EXT, "ipv6_extension", "IPv6 extension header that cannot be walked")             \
	X(RUNT, "runt", "shorter than its link header")                                            \
	X(CUT, "cut_by_port",                                                                      \
		"frame shorter than the IP packet in it: raise the port's buffer or "              \
		"switch off GSO/GRO/TSO at the sender")                                            \
	X(SNAPPED, "snapped", "headers missing because the capture kept too few bytes")            \
	X(BAD_IP, "bad_ip", "IP header with an impossible length or version")                      \
	X(BAD_L4, "bad_transport", "TCP or UDP header with an impossible length")                  \
	X(FRAGMENT_ALONE, "unattributed_fragment",                                                 \
		"IP fragment of a flow that is not known: its first one, with the ports, was not " \
		"seen, or is no TCP or UDP (live)")

#define BS_X_PARSE(name, key, help) BS_PARSE_##name,
enum bs_parse { BS_PARSES(BS_X_PARSE) BS_PARSE_COUNT };

const char *bs_parse_key(unsigned parse);

#define BS_TCP_FIN 0x01u
#define BS_TCP_SYN 0x02u
#define BS_TCP_RST 0x04u
#define BS_TCP_PSH 0x08u
#define BS_TCP_ACK 0x10u
#define BS_TCP_URG 0x20u

#define BS_TCP_MAX_SACKS 4u

/* TCP options that were present: bits of bs_packet.tcp_options. */
#define BS_TCPOPT_TIMESTAMP 0x0001u
#define BS_TCPOPT_WSCALE 0x0002u
#define BS_TCPOPT_MSS 0x0004u
#define BS_TCPOPT_SACK_PERMITTED 0x0008u
#define BS_TCPOPT_SACK 0x0010u
#define BS_TCPOPT_MD5_AO 0x0020u      /* kinds 19, 29: segment is signed */
#define BS_TCPOPT_SHIM 0x0040u	      /* kind 253, ExID 0xB5C0, 20 bytes */
#define BS_TCPOPT_ANNOUNCE 0x0080u    /* kind 253, ExID 0xB5C1, 4 bytes */
#define BS_TCPOPT_FOREIGN_EXP 0x0100u /* kind 253/254 with another ExID */
#define BS_TCPOPT_MALFORMED 0x0200u   /* option list does not parse to its end */

/* Flow key: both ends, lower first, VLANs included. Compare with memcmp: no padding. */
struct bs_tuple {
	uint8_t addr[2][16]; /* IPv4 mapped */
	uint16_t port[2];    /* host byte order */
	uint16_t vlan[2];    /* outermost, innermost VLAN ID; 0 = none */
	uint8_t transport;   /* 6 or 17; without ports another IP protocol */
	uint8_t ip_version;
	uint8_t vni[3]; /* of the Geneve tunnel that was looked through; else 0 */
	uint8_t pad[3]; /* zero */
};

struct bs_packet {
	/* set by the caller */
	uint64_t t_ns;	 /* arrival (or its estimate) */
	uint64_t number; /* frame number in a capture, 1-based; 0 live */
	const uint8_t *data;
	uint32_t caplen; /* bytes at data: live, of the first segment */
	uint32_t len;	 /* bytes of the frame on the wire */

	/* set by parse */
	struct bs_tuple tuple;
	uint32_t hash;	   /* of tuple, symmetric; 0 without an IP header */
	uint8_t direction; /* 0: sent by tuple end 0; 1: by end 1 */
	uint8_t parse;	   /* enum bs_parse */
	uint8_t vlan_count;
	uint8_t tcp_flags;
	uint16_t l3, l4;      /* offsets from data */
	uint16_t payload;     /* offset of the transport payload */
	uint16_t l4_protocol; /* last IP protocol number seen */
	uint32_t payload_len; /* bytes of payload on the wire, by the IP header (UDP: by its own) */
	uint32_t payload_cap; /* of those, available at data + payload */
	uint16_t ip_id;	      /* IPv4 */
	uint8_t ttl;
	uint8_t l4_checksum_partial; /* checksum field holds just the pseudo-header sum */
	uint32_t seq, ack;
	uint16_t window; /* as on the wire, unscaled */
	uint16_t tcp_options;
	uint16_t mss;
	uint8_t wscale; /* clamped to 14 (RFC 7323 2.3) */
	uint8_t sack_count;
	uint32_t tsval, tsecr;
	/* Where shims stand, offsets from data, 0: none (bs_carrier.h takes them in and out). */
	uint16_t shim;	      /* TCP option (with BS_TCPOPT_SHIM) or UDP option */
	uint16_t announce;    /* TCP option, with BS_TCPOPT_ANNOUNCE */
	uint16_t ether_shim;  /* behind the Ethertype of the `ether` carrier */
	uint16_t geneve_shim; /* Geneve option */
	uint16_t geneve;      /* the Geneve header that was looked through: all else is of the inner
				 packet */
	uint8_t tunnel_checksum_partial; /* with geneve: as l4_checksum_partial, of the outer one */
	struct {
		uint32_t begin, end;
	} sack[BS_TCP_MAX_SACKS]; /* sack_count of them; RFC 2018, the first may be a DSACK (RFC
				     2883) */
	uint16_t outer_l3; /* with geneve: of the outer IP header; geneve follows its UDP header */
};

/*
 * Parses the Ethernet frame at packet->data (caplen bytes, len on the wire):
 * up to three VLAN tags (802.1Q, 802.1ad), IPv4 or IPv6 with an allow-list of
 * extension headers, TCP with its options, or UDP. Fills everything below "set
 * by parse", packet->parse last, and returns it. IP total length 0 with TCP
 * (segmentation offload) takes the length of the frame. Only OK has ports and
 * payload; whatever has a whole IP header has addresses and a hash (so the
 * fragments of a datagram share theirs), and fields not reached are 0. Any thread.
 *
 * A shim in front of the Ethertype is passed over if it has our version. Behind
 * the payload of a datagram one is found if it is the only UDP option (RFC 9868);
 * whether its checksum holds is not looked at.
 */
enum bs_parse bs_packet_parse(struct bs_packet *packet);

/*
 * The same, but what a Geneve header (UDP to port 6081, RFC 8926 section 3.4)
 * encapsulates is parsed in the place of the frame: all offsets still count from
 * data, the length is that of the whole frame. Control packets and option lists
 * that do not parse stay datagrams of the outer flow. A tunnel in the tunnel is not
 * looked through.
 */
enum bs_parse bs_packet_parse_geneve(struct bs_packet *packet);

/*
 * The same for a frame with another link header: data + offset is what follows
 * an Ethertype of this value (VLAN tags, IP). offset at most 1024.
 */
enum bs_parse bs_packet_parse_type(struct bs_packet *packet, unsigned type, unsigned offset);

/* The same for a frame that starts at the IP header (no VLAN). l3_offset at most 1024. */
enum bs_parse bs_packet_parse_ip(struct bs_packet *packet, unsigned l3_offset);

/*
 * The key of all hashes of tuples: the same in each process until a program whose
 * peers may choose tuples to collide fills it with secret random words. Only before
 * the first packet is parsed: tables that were filled with another are of no use.
 */
#define BS_TUPLE_KEY_WORDS 11u
extern uint64_t bs_tuple_key[BS_TUPLE_KEY_WORDS];

/* Symmetric hash of a tuple: equal for both directions, ends in either order. Never 0. */
uint32_t bs_tuple_hash(const struct bs_tuple *tuple);

/* Tells payloads apart by their first bytes and their length: FNV-1a. Of a parsed packet. */
uint32_t bs_packet_mark(const struct bs_packet *packet);

#define BS_ENDPOINT_TEXT_BYTES 56

/* "10.0.0.1:80" or "[2001:db8::1]:80" of an end with a mapped or IPv6 address. Returns buf. */
char *bs_endpoint_text(const uint8_t addr[16], uint16_t port, char buf[BS_ENDPOINT_TEXT_BYTES]);

/* Reads "10.0.0.1" or "2001:db8::1" into 16 bytes, IPv4 mapped. 0, or -EINVAL. */
int bs_address_parse(const char *text, uint8_t addr[16]);
