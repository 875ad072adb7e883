/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The whole dataplane in one thread and in virtual time: two ports made of
 * rings, a clock that the test steps, lcores and collector run turn by turn.
 * A test says what happens when; what must come out follows by arithmetic.
 *
 * One EAL a program, one dataplane at a time. Checks come as functions that
 * return NULL or what is wrong, so that tests of the harness can expect failure.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "collector.h"
#include "dataplane.h"
#include "frame.h"

#define GB_WIRE 0u  /* where clients are */
#define GB_LOCAL 1u /* where services are */

#define GB_US 1000ull
#define GB_MS 1000000ull
#define GB_S 1000000000ull
#define GB_T0 1700000000000000000ull

/*
 * Virtual time. Every reading of the clock gives now_ns, then step_ns more. on_read, if set, is
 * called before a reading and may change anything. A port takes tx_ns for each packet it is
 * offered.
 */
struct gb_time {
	uint64_t now_ns, step_ns;
	uint64_t run_delay_ns; /* what the scheduler says this thread waited for a CPU so far */
	uint64_t tx_ns;
	void (*on_read)(void *context);
	void *context;
};
extern struct gb_time gb_time;

/* What differs from the defaults; texts are JSON, put into the configuration as they are. */
struct gb_setup {
	unsigned lcores;	  /* 0: one */
	const char *memory;	  /* eal.memory, of the 256M there are; NULL: 32M */
	const char *wire_device;  /* NULL: a ring port */
	const char *wire, *local; /* further keys of these ports: ", ..." */
	const char *services;	  /* NULL: one, "kv" at 10.0.0.2:6379, protocol "unit" */
	const char *shim;	  /* members of "shim"; NULL: tag off */
	const char *analyzer;	  /* analyzer.mode; NULL: off */
	const char *more;	  /* further top-level keys: ", ..." */
	unsigned room[2];	  /* packets that the port's tx ring holds; 0: plenty */
};

struct gb_record {
	uint64_t *units;
	size_t bytes; /* of the record, for an RPC of its group */
};

struct gb {
	struct bs_dataplane *dataplane;
	struct bs_config config;
	struct rte_ring *in[2], *out[2];
	uint16_t port[2];
	const struct rte_eth_rxtx_callback *delay[2];
	unsigned pool_free; /* mbufs before the first packet */
	int analyzer;	    /* our end of the record stream; -1: none */
	struct gb_record *records;
	size_t record_count;
};

/* Starts EAL: for cmocka_run_group_tests. Exits with 77 (skipped) if EAL cannot start here. */
int gb_group_setup(void **state);
int gb_group_teardown(void **state);

/* Takes down what a failed test left. */
int gb_clean(void **state);
#define GB_TEST(function) cmocka_unit_test_teardown(function, gb_clean)

/* A dataplane at GB_T0 in a clock that stands still. Fails the test if it cannot be made. */
struct gb *gb_open(const struct gb_setup *setup);

/* Why there can be no such dataplane; NULL if there can. What was made is taken down again. */
const char *gb_open_error(const struct gb_setup *setup);

/* Parses the configuration only. 0 or -errno, as bs_config_parse. */
int gb_configure(const struct gb_setup *setup, struct bs_config *config, char *error);

/* Frees what came out, ends everything, checks the accounts, takes it down. */
void gb_close(struct gb *gb);

/*
 * NULL, or which balance does not hold: packets in = out + reasons + queued, of each port and in
 * all, and in and out are what the harness put in and took out.
 */
const char *gb_check_packets(const struct gb *gb);
/* NULL, or how many mbufs are missing or too many. Only when nothing is queued or in hand. */
const char *gb_check_pool(const struct gb *gb);

/* --- packets -------------------------------------------------------------------- */

/* An mbuf of the dataplane's pool with these bytes. */
struct rte_mbuf *gb_mbuf(const struct gb *gb, const void *bytes, size_t n);
/* The same in segments of at most `piece` bytes. */
struct rte_mbuf *gb_chain(const struct gb *gb, const void *bytes, size_t n, size_t piece);

void gb_inject_mbuf(const struct gb *gb, unsigned port, struct rte_mbuf *mbuf);
void gb_inject(const struct gb *gb, unsigned port, const struct frame *frame);

/* What left by a port, in order. NULL: nothing. */
struct rte_mbuf *gb_take_mbuf(const struct gb *gb, unsigned port);
/* The same, its bytes. False: nothing. */
bool gb_take(const struct gb *gb, unsigned port, struct frame *frame);
/* Frees all that left by a port; how many. */
unsigned gb_drain(const struct gb *gb, unsigned port);

/* --- turns ---------------------------------------------------------------------- */

/* Each lcore once, in order. */
void gb_turn(const struct gb *gb);
/* Steps the clock by at most `step_ns` and turns, until it is t_ns. */
void gb_run(const struct gb *gb, uint64_t t_ns, uint64_t step_ns);

/* A turn that finds nothing, the frame, a turn that finds it: it arrived now, exactly. */
void gb_pass(const struct gb *gb, unsigned port, const struct frame *frame);

/* --- what is counted --------------------------------------------------------------- */

/* Valid until the next call. */
const struct bs_snapshot *gb_snapshot(const struct gb *gb);
uint64_t gb_reason(const struct gb *gb, enum bs_reason reason);
uint64_t gb_tag(const struct gb *gb, enum bs_tag_counter counter);

/* A buffer's number in records by its name. Fails the test if there is none. */
uint16_t gb_buffer(const struct gb *gb, const char *name);
