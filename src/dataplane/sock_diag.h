/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the kernel says of single TCP sockets (sock_diag(7), linux/inet_diag.h):
 * who listens on a port, and what stands unread, unsent or unaccepted. A netlink
 * socket sees the network namespace that its thread was in when it was opened,
 * for as long as it is open. Needs no privilege, plain POSIX. One thread at a
 * time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Local and remote end of a socket; IPv4 addresses are mapped. */
struct bs_sock_ends {
	uint8_t local[16], remote[16];
	uint16_t local_port, remote_port; /* host byte order */
};

/* States of TCP (linux/tcp_states.h) that are told apart. */
#define BS_SOCK_ESTABLISHED 1u
#define BS_SOCK_SYN_RECEIVED 3u
#define BS_SOCK_UNCONNECTED 7u /* UDP */
#define BS_SOCK_CLOSE_WAIT 8u
#define BS_SOCK_LISTEN 10u

struct bs_sock {
	struct bs_sock_ends ends;
	uint8_t state;
	bool v6_only;	 /* an IPv6 socket that takes no IPv4 */
	uint32_t inode;	 /* 0: no process has it, as it was not accepted */
	uint32_t recv_q; /* bytes not read; listening: connections not accepted */
	uint32_t send_q; /* bytes not ACKed; listening: the backlog */
};

/* A socket for the calling thread's namespace, or -errno. */
int bs_sock_diag_open(void);

/*
 * The TCP socket with these ends: the connection, else who listens there. 0;
 * -ENOENT: there is none; -EBADMSG: nonsense; other -errno: the kernel does not
 * say.
 */
int bs_sock_diag_find(int fd, const struct bs_sock_ends *ends, struct bs_sock *sock);

/*
 * Sockets that listen (TCP, transport 6) or are bound and not connected (UDP,
 * 17) at a local port, whatever their address. Returns how many, at most `max`,
 * or -errno; -EOVERFLOW: so many that the answer was given up, and fd with it.
 */
int bs_sock_diag_bound(
	int fd, unsigned transport, uint16_t port, struct bs_sock *socks, unsigned max);

/*
 * One datagram of the answer to request `sequence`; sockets are added to socks
 * at *count, at most to `max`. 0: more is to come; 1: that was all; -errno that
 * the kernel gave; -EBADMSG for what is no such answer. data is 4-byte aligned.
 */
int bs_sock_diag_parse(const void *data, size_t bytes, uint32_t sequence, struct bs_sock *socks,
	unsigned max, unsigned *count);
