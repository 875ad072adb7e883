/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When the packets in a FIFO queue entered it: one instant per burst, in a side
 * ring next to the queue, so that no packet carries bytes for it. Single
 * producer, single consumer, lock-free (C11 acquire/release), each may be a
 * different thread. Several packets enter with one push; pops may split a
 * burst. A push that finds no room is refused: create it with as many bursts as
 * the queue has places, pop for all packets taken from the queue before taking
 * more, and that cannot happen.
 */
#pragma once

#include <stdint.h>

struct bs_entries;

/*
 * Room for twice `bursts` bursts (1 to 2^24, rounded up to a power of two): those
 * in the queue, and those whose packets were taken from it but not popped here
 * yet. NULL with errno EINVAL or ENOMEM. Control thread.
 */
struct bs_entries *bs_entries_create(unsigned bursts);
void bs_entries_destroy(struct bs_entries *entries); /* NULL is fine */

/* Producer: `count` packets entered at t_ns (0: nothing). 0, or -ENOBUFS. Call before the packets
 * are visible. */
int bs_entries_push(struct bs_entries *entries, uint64_t t_ns, unsigned count);

/* Consumer: when the oldest packet entered; 0 when there is none. */
uint64_t bs_entries_oldest(const struct bs_entries *entries);

/* Consumer: the next packet leaves; returns when it entered. 0 when there is none (a bug of the
 * caller's). */
uint64_t bs_entries_pop(struct bs_entries *entries);
