/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations of carriers that bs_carriers lists; contracts in bs_carrier.h. */
#pragma once

#include "bs_carrier.h"

/* A zero byte if the payload is odd, checksum, kind, length, ExID, shim (RFC 9868 section 8). */
#define UDP_EDIT_BYTES_MAX (1 + 2 + 4 + BS_SHIM_BYTES)
unsigned udp_edit_bytes(const struct bs_packet *packet);
int udp_edit_read(const struct bs_packet *packet, struct bs_shim *shim);
enum bs_refusal udp_edit_room(const struct bs_packet *packet);
enum bs_refusal udp_edit_tag(struct bs_packet *packet, uint8_t *front, const struct bs_shim *shim);
int udp_edit_untag(struct bs_packet *packet, uint8_t *data);

/* Ethertype, shim. */
#define ETHER_EDIT_BYTES (2 + BS_SHIM_BYTES)
unsigned ether_edit_bytes(const struct bs_packet *packet);
int ether_edit_read(const struct bs_packet *packet, struct bs_shim *shim);
enum bs_refusal ether_edit_room(const struct bs_packet *packet);
enum bs_refusal ether_edit_tag(
	struct bs_packet *packet, uint8_t *front, const struct bs_shim *shim);
int ether_edit_untag(struct bs_packet *packet, uint8_t *data);

/* Option class, type, length, shim. */
#define GENEVE_EDIT_BYTES (4 + BS_SHIM_BYTES)
unsigned geneve_edit_bytes(const struct bs_packet *packet);
int geneve_edit_read(const struct bs_packet *packet, struct bs_shim *shim);
enum bs_refusal geneve_edit_room(const struct bs_packet *packet);
enum bs_refusal geneve_edit_tag(
	struct bs_packet *packet, uint8_t *front, const struct bs_shim *shim);
int geneve_edit_untag(struct bs_packet *packet, uint8_t *data);
