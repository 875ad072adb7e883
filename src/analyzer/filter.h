/* SPDX-License-Identifier: BSD-3-Clause */
/* The system calls that the analyzer may make. */
#pragma once

/*
 * Forbids all system calls, in every thread and for good, but those of a loop
 * that reads and writes what is open already, and of its memory and threads.
 * One that is not in the list is not made: the process says its number on
 * stderr and dies of SIGSYS. clone3 alone fails with ENOSYS, so that libc falls
 * back to clone, whose flags can be looked at. Needs no_new_privs. 0 or -errno.
 */
int bs_filter_load(void);
