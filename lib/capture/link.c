/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link header is told by its length and where the Ethertype is, or what
 * stands for it. Formats: https://www.tcpdump.org/linktypes.html.
 */
#include <endian.h>
#include <pcap/dlt.h>
#include <string.h>

#include "link.h"

#define TYPE_IPV4 0x0800
#define TYPE_IPV6 0x86dd
#define TYPE_NONE 0

struct link {
	int dlt;
	unsigned header;			 /* bytes */
	unsigned (*type)(const uint8_t *header); /* Ethertype; NULL: IP, the version says which */
};

static unsigned
be16_at(const uint8_t *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

static unsigned
ethernet_type(const uint8_t *header)
{
	return be16_at(header + 12);
}

static unsigned
sll_type(const uint8_t *header)
{
	return be16_at(header + 14);
}

static unsigned
sll2_type(const uint8_t *header)
{
	return be16_at(header);
}

/* Address families as the systems number them that capture with these link types. */
static unsigned
family_type(uint32_t family)
{
	switch (family) {
	case 2:
		return TYPE_IPV4;
	case 10: /* Linux */
	case 23: /* Windows */
	case 24: /* NetBSD, OpenBSD */
	case 28: /* FreeBSD */
	case 30: /* macOS */
		return TYPE_IPV6;
	default:
		return TYPE_NONE;
	}
}

static unsigned
loop_type(const uint8_t *header)
{
	uint32_t family;

	memcpy(&family, header, sizeof(family));
	return family_type(be32toh(family));
}

/* In the byte order of the machine that captured. Families are small: the order shows. */
static unsigned
null_type(const uint8_t *header)
{
	uint32_t family;

	memcpy(&family, header, sizeof(family));
	return family_type(family > 0xffff ? __builtin_bswap32(family) : family);
}

static const struct link links[] = {
	{DLT_EN10MB, BS_ETHER_BYTES, ethernet_type},
	{DLT_LINUX_SLL, 16, sll_type},
	{DLT_LINUX_SLL2, 20, sll2_type},
	{DLT_NULL, 4, null_type},
	{DLT_LOOP, 4, loop_type},
	{DLT_RAW, 0, NULL},
	{DLT_IPV4, 0, NULL},
	{DLT_IPV6, 0, NULL},
};

const struct link *
link_find(int dlt)
{
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		if (links[i].dlt == dlt)
			return &links[i];
	}
	return NULL;
}

void
link_parse(const struct link *link, struct bs_packet *packet)
{
	unsigned type = TYPE_NONE;

	if (link->type == NULL) {
		bs_packet_parse_ip(packet, link->header);
		return;
	}
	if (packet->caplen >= link->header)
		type = link->type(packet->data);
	bs_packet_parse_type(packet, type, link->header);
}
