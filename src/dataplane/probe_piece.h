/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the sockets of a silent service held during a stretch of time: of the
 * connections with open RPCs, and of the one that listens. Control thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bs_record.h"
#include "probe_find.h"
#include "sock_diag.h"

#define BS_PIECE_CONNECTIONS 8u

struct bs_dataplane;

struct bs_probe_piece {
	struct bs_piece_connection {
		struct bs_sock_ends ends;
		uint32_t recv_q, send_q;
		bool seen;			 /* by the last look */
		bool unread, unaccepted, unsent; /* by all looks */
	} list[BS_PIECE_CONNECTIONS];
	unsigned count;
	uint32_t waiting; /* connections with open RPCs at the last look; 0: not looked at */
	uint32_t accept_q, accept_max;
};

void bs_probe_piece_begin(struct bs_probe_piece *piece);

/*
 * Asks the kernel once. False: what listens is no longer what was found, another
 * process took its place. Services over UDP have no queues to look at.
 */
bool bs_probe_piece_look(struct bs_probe_piece *piece, const struct bs_dataplane *dataplane,
	unsigned service, const struct bs_target *target);

/* Notes what a connection that waits was seen to hold, in this look. */
void bs_probe_piece_note(
	struct bs_probe_piece *piece, const struct bs_sock_ends *ends, const struct bs_sock *sock);

/* Fills in the record what it says of sockets. */
void bs_probe_piece_tell(const struct bs_probe_piece *piece, struct bs_rec_probe *record);
