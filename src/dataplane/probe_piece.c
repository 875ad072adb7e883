/* SPDX-License-Identifier: BSD-3-Clause */
/* See probe_piece.h. */
#include "probe_piece.h"

#include <netinet/in.h>
#include <rte_common.h>
#include <string.h>

#include "dataplane.h"

void
bs_probe_piece_begin(struct bs_probe_piece *piece)
{
	memset(piece, 0, sizeof(*piece));
}

static struct bs_piece_connection *
connection_of(struct bs_probe_piece *piece, const struct bs_sock_ends *ends)
{
	struct bs_piece_connection *connection;

	for (unsigned i = 0; i < piece->count; i++) {
		if (memcmp(&piece->list[i].ends, ends, sizeof(*ends)) == 0)
			return &piece->list[i];
	}
	/* the place of one that does not wait any more */
	for (unsigned i = 0; i < BS_PIECE_CONNECTIONS; i++) {
		connection = &piece->list[i];
		if (i < piece->count && connection->seen)
			continue;
		piece->count = RTE_MAX(piece->count, i + 1);
		*connection = (struct bs_piece_connection){
			.ends = *ends, .unread = true, .unaccepted = true, .unsent = true};
		return connection;
	}
	return NULL;
}

/* One that was closed has no process either. */
static bool
is_unaccepted(const struct bs_sock *sock)
{
	return sock->inode == 0 &&
	       (sock->state == BS_SOCK_ESTABLISHED || sock->state == BS_SOCK_SYN_RECEIVED ||
		       sock->state == BS_SOCK_CLOSE_WAIT);
}

void
bs_probe_piece_note(
	struct bs_probe_piece *piece, const struct bs_sock_ends *ends, const struct bs_sock *sock)
{
	struct bs_piece_connection *connection = connection_of(piece, ends);

	if (connection == NULL)
		return;
	connection->seen = true;
	/* less than before: it reads */
	connection->unread =
		connection->unread && sock->recv_q > 0 && sock->recv_q >= connection->recv_q;
	connection->unaccepted = connection->unaccepted && is_unaccepted(sock);
	connection->unsent = connection->unsent && sock->send_q > 0;
	connection->recv_q = sock->recv_q;
	connection->send_q = sock->send_q;
}

static void
look_at_connections(struct bs_probe_piece *piece, const struct bs_tracker_waiting *waiting, int fd)
{
	for (unsigned i = 0; i < waiting->count; i++) {
		const struct bs_ends *ends = &waiting->ends[i];
		struct bs_sock_ends of_service = {
			.local_port = ends->server_port, .remote_port = ends->client_port};
		struct bs_sock sock;

		memcpy(of_service.local, ends->server, sizeof(of_service.local));
		memcpy(of_service.remote, ends->client, sizeof(of_service.remote));
		/* closed since, or not in this namespace: then the one that listens is told */
		if (bs_sock_diag_find(fd, &of_service, &sock) == 0 &&
			sock.ends.remote_port == ends->client_port)
			bs_probe_piece_note(piece, &of_service, &sock);
	}
}

bool
bs_probe_piece_look(struct bs_probe_piece *piece, const struct bs_dataplane *dataplane,
	unsigned service, const struct bs_target *target)
{
	struct bs_sock_ends ends = {.local_port = target->port};
	struct bs_sock listener;
	bool same = false;

	if (target->diag < 0 || target->transport != IPPROTO_TCP)
		return true;
	memcpy(ends.local, target->address, sizeof(ends.local));
	if (bs_sock_diag_find(target->diag, &ends, &listener) != 0 ||
		listener.state != BS_SOCK_LISTEN)
		return false;
	for (unsigned i = 0; i < target->inode_count; i++)
		same = same || target->inodes[i] == listener.inode;
	if (!same)
		return false;
	piece->accept_q = listener.recv_q;
	piece->accept_max = listener.send_q;
	piece->waiting = 0;
	for (unsigned i = 0; i < piece->count; i++)
		piece->list[i].seen = false;
	for (unsigned i = 0; i < dataplane->lcore_count; i++) {
		struct bs_tracker_waiting waiting;

		bs_tracker_waiting(dataplane->lcores[i]->tracker, service, &waiting);
		piece->waiting += waiting.flows;
		look_at_connections(piece, &waiting, target->diag);
	}
	return true;
}

void
bs_probe_piece_tell(const struct bs_probe_piece *piece, struct bs_rec_probe *record)
{
	unsigned seen = 0;

	for (unsigned i = 0; i < piece->count; i++) {
		const struct bs_piece_connection *connection = &piece->list[i];

		if (!connection->seen)
			continue;
		seen++;
		record->recv_q = RTE_MAX(record->recv_q, connection->recv_q);
		record->send_q = RTE_MAX(record->send_q, connection->send_q);
		record->unread += connection->unread;
		record->unaccepted += connection->unaccepted;
		record->unsent += connection->unsent;
	}
	record->connections = (uint8_t)RTE_MIN(RTE_MAX(piece->waiting, seen), UINT8_MAX);
	record->accept_q = (uint16_t)RTE_MIN(piece->accept_q, UINT16_MAX);
	record->accept_max = (uint16_t)RTE_MIN(piece->accept_max, UINT16_MAX);
}
