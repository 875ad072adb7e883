/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What /proc/<pid>/net tells of the network namespace of a process (proc(5)) to who
 * may not enter it: who listens, and which addresses are there. Nothing of single
 * connections. Plain POSIX. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sock_diag.h"

/*
 * As bs_sock_diag_bound(), without backlogs and v6_only; dir is open at such a
 * directory. Returns how many, or -errno.
 */
int bs_proc_net_bound(
	int dir, unsigned transport, uint16_t port, struct bs_sock *socks, unsigned max);

/* Has the namespace this address (IPv4 mapped)? False, too, where it cannot be seen. */
bool bs_proc_net_holds(int dir, const uint8_t address[16]);
