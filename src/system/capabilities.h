/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Capabilities of the calling thread, as bit sets: bit N is capability number N
 * of linux/capability.h. Raw system calls, because they must work in a signal
 * handler: that is how privileges.c reaches the threads that DPDK made, which
 * libcap and libcap-ng do not know (they change the calling thread alone, and
 * libpsx only threads whose pthread_create it saw). All are async-signal-safe.
 */
#pragma once

#include <stdint.h>

#define BS_CAPABILITY(number) (UINT64_C(1) << (number))

/* What the calling thread is permitted; 0 if the kernel does not say. */
uint64_t bs_capabilities_permitted(void);

/*
 * Takes all but `keep` out of the bounding set and everything out of the ambient
 * set; without CAP_SETPCAP the bounding set stays as it is. Then forbids
 * to gain privileges by execve (no_new_privs). 0 or -errno.
 */
int bs_capabilities_bound(uint64_t keep);

/* Permitted and effective become what of `keep` was permitted, inheritable becomes empty. 0 or
 * -errno. */
int bs_capabilities_keep(uint64_t keep);
