/* SPDX-License-Identifier: BSD-3-Clause */
/* Which link types are read, and how a record of each is parsed. */
#pragma once

#include "bs_packet.h"

struct link;

/* By libpcap's DLT_ number; NULL if it is not one of those read. */
const struct link *link_find(int dlt);

/* Parses packet->data, a record with this link header. */
void link_parse(const struct link *link, struct bs_packet *packet);
