/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who polls, who drains, and what lies between: gives rx and tx queues to
 * lcores, makes the application queues and the rings from lcore to lcore, and
 * numbers the buffers. Control thread, before the lcores run or after they stopped.
 */
#pragma once

struct bs_dataplane;
struct bs_lcore;

/* 0, -ENOMEM, or -ENODEV: a port without a tx queue. */
int bs_wiring_init(struct bs_dataplane *dataplane);

/* Drops and counts all that is still queued for or by this lcore. */
void bs_wiring_drop_all(struct bs_lcore *lcore);

/* Frees what init gave to one lcore; safe on one that was not wired. */
void bs_wiring_fini(struct bs_lcore *lcore);
