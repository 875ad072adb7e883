/* SPDX-License-Identifier: BSD-3-Clause */
/* What journal.c (the loop), journal_write.c (the thread) and journal_attach.c share. */
#pragma once

#include <pthread.h>

#include "journal.h"

/* A block ready to be written, behind the file's header if it begins one. */
struct journal_slot {
	size_t bytes;
	uint32_t records;
	uint64_t file; /* number of the file that it begins; 0: goes behind the one before */
	alignas(8) uint8_t data[sizeof(struct bs_journal_file) + sizeof(struct bs_journal_block) +
				BS_JOURNAL_BLOCK_BYTES];
};

struct bs_journal {
	/* set by create */
	const struct bs_journal_io *io;
	int first_fd;
	unsigned count;
	uint64_t file_bytes;
	int wake; /* eventfd */
	pthread_t thread;
	bool started;

	/* the loop's */
	uint64_t id, file, sequence; /* of the journal, the file, the next block; file 0: none */
	uint64_t file_used;
	uint64_t t_begun; /* when the block got its first record */
	uint32_t lost;	  /* records since the last block */
	uint64_t lost_records, lost_bytes;
	struct bs_journal_block block; /* being filled */
	alignas(8) uint8_t records[BS_JOURNAL_BLOCK_BYTES];
	struct bs_journal_preamble preamble;

	/* loop to thread: tail <= i < head is in slots[i % BS_JOURNAL_QUEUE] */
	uint64_t head; /* the loop's */
	uint64_t tail; /* the thread's */
	bool stop;
	struct journal_slot slots[BS_JOURNAL_QUEUE];

	/* the thread's; the loop reads what is in written, racily */
	uint64_t numbers[BS_JOURNAL_FILES]; /* of the files; 0: empty */
	unsigned at;			    /* the one that is written */
	uint64_t offset;		    /* where the next block goes */
	bool switched;			    /* to the file that the slot begins */
	bool dirty;
	uint64_t t_synced, t_retry, delay_ns; /* delay 0: all is well */
	uint64_t t_logged;
	struct {
		uint64_t file, blocks, bytes, records, errors;
		uint32_t error, last_error, slot;
	} written;
};

/* Finds where to go on; sets what create does not. */
void journal_attach(struct bs_journal *journal, uint64_t now_ns);

/* The body of the thread. */
void *journal_run(void *journal);

extern const struct bs_journal_io journal_system_io;
