/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the parser and its TCP option walk. */
#pragma once

#include "bs_packet.h"

/*
 * Reads the option list at packet->data + begin, up to end, into the packet's
 * option fields (all zero before). All of it is within caplen.
 */
void tcp_options_parse(struct bs_packet *packet, uint32_t begin, uint32_t end);
