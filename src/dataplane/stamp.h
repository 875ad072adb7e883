/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When a device says that a packet arrived, in our time. Drivers stamp in
 * whatever units they like: ticks of a clock of their own, us or ns since the
 * epoch by another clock than ours. So a stamp counts only while its clock is
 * calibrated against ours: read side by side with it now and then, fitted by a
 * line, and refused when it leaves that line by more than 0.1 %.
 *
 * One for each rx queue, kept by the lcore that polls it.
 */
#pragma once

#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <stdbool.h>
#include <stdint.h>

/* Reads the clock of a port's stamps. 0 or -errno. */
typedef int bs_stamp_read(uint16_t port, uint64_t *value);

/* Where the stamps of a port come from. */
struct bs_stamp_source {
	bs_stamp_read *read; /* NULL: there are none that could be used */
	uint64_t grain_ns;   /* of its clock, if known */
	const char *text;    /* what it is, or why there is none */
};

/*
 * Decides by driver and DPDK version. offload: the port can be asked for stamps
 * (RTE_ETH_RX_OFFLOAD_TIMESTAMP). Control thread, before the port is configured.
 */
struct bs_stamp_source bs_stamp_source(uint16_t port, const char *driver, bool offload);

#define BS_STAMP_PAIRS 8u
#define BS_STAMP_ERROR_MAX_PPM 1000u

enum bs_stamp_state { BS_STAMP_LEARNING, BS_STAMP_GOOD };

struct bs_stamp {
	uint64_t flag; /* in ol_flags: the mbuf has a stamp */
	int field;     /* where */
	uint16_t port;
	enum bs_stamp_state state;
	struct bs_stamp_source source;
	/* readings side by side: the device's value, our time, half of what reading took */
	struct {
		uint64_t device, t_ns, half_ns;
	} pairs[BS_STAMP_PAIRS];
	unsigned count;
	double ns_per_tick; /* of the line through (pairs[0].device, base_ns) */
	double base_ns;	    /* from pairs[0].t_ns on */
	uint64_t uncertainty_ns;
	uint64_t t_next;   /* when to read again */
	uint64_t refusals; /* times its clock left the line */
};

/*
 * NULL: no memory, or no driver has registered the field for stamps. Control
 * thread, after the port was configured.
 */
struct bs_stamp *bs_stamp_create(uint16_t port, const struct bs_stamp_source *source);
void bs_stamp_destroy(struct bs_stamp *stamp); /* NULL is fine */

/* Reads both clocks if it is time to, t_ns being now. The lcore that polls the queue. */
void bs_stamp_check(struct bs_stamp *stamp, uint64_t t_ns);

/* A value of the device's clock in our time. Only while it is GOOD. */
uint64_t bs_stamp_time(const struct bs_stamp *stamp, uint64_t value);

/* The packet's stamp in our time; 0: it has none (or 0, which is none), or its clock is not good.
 */
static inline uint64_t
bs_stamp_of(const struct bs_stamp *stamp, const struct rte_mbuf *mbuf)
{
	uint64_t value;

	if (stamp->state != BS_STAMP_GOOD || !(mbuf->ol_flags & stamp->flag))
		return 0;
	value = *RTE_MBUF_DYNFIELD(mbuf, stamp->field, const rte_mbuf_timestamp_t *);
	return value == 0 ? 0 : bs_stamp_time(stamp, value);
}

#define BS_STAMP_TEXT_BYTES 112

/* One line on where they come from and whether they are used. */
void bs_stamp_text(const struct bs_stamp_source *source, const struct bs_stamp *stamp,
	char text[BS_STAMP_TEXT_BYTES]);
