/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Journals to findings: verdicts and incidents as they were decided live. What
 * was not anomalous then is judged here, with the normal values of the journal,
 * so that the slowest RPCs have a root cause, too; it stays not anomalous.
 */
#pragma once

#include "bs_diag.h"
#include "findings.h"
#include "inputs.h"
#include "slo.h"

#define REPORT_ERROR_BYTES 512u
#define REPORT_RUNS 1024u /* of bufscoped in the files; what is of later ones is counted */

struct report_settings {
	struct slos slos;
	uint64_t since, until; /* of RPCs' ends and incidents; 0: no bound */
	uint64_t last_ns;      /* 0, or instead of since: before the newest record */
	/* Told now and then while reading; may be NULL. */
	void (*progress)(void *context, const char *path, uint64_t done, uint64_t total);
	void *progress_context;
	/* Told each stretch that cannot be read; may be NULL. */
	void (*damage)(void *context, const struct input *input, uint64_t offset, uint64_t bytes,
		const char *what);
	void *damage_context;
};

/* Name in JSON, help. */
#define REPORT_COUNTERS(X)                                                                         \
	X(blocks, "blocks", "blocks read")                                                         \
	X(records, "records", "records in them")                                                   \
	X(repeated_blocks, "repeated_blocks", "blocks that were in two files, taken once")         \
	X(missing_blocks, "missing_blocks", "blocks that are in no file, between those that are")  \
	X(damages, "damages", "stretches of bytes that could not be read")                         \
	X(skipped_bytes, "skipped_bytes", "bytes of them")                                         \
	X(unwritten_records, "unwritten_records",                                                  \
		"records that were lost before they were "                                         \
		"written: disk full or slow")                                                      \
	X(ring_full, "ring_full", "records that did not reach the analyzer: an lcore's ring")      \
	X(over_budget, "over_budget",                                                              \
		"records that did not reach the analyzer: "                                        \
		"records.per_second")                                                              \
	X(socket_full, "socket_full", "records that did not reach the analyzer: it was slow")      \
	X(no_memory, "no_memory", "RPCs and marks for which there was no room")                    \
	X(outside, "outside", "RPCs outside of --since, --until or --last")                        \
	X(brief_over_slo, "brief_over_slo", "RPCs over --slo of which only a summary was kept")    \
	X(runs, "runs", "runs of bufscoped")                                                       \
	X(other_runs, "other_runs", "records of further runs than can be told apart")

#define REPORT_X_FIELD(field, key, help) uint64_t field;

struct report {
	struct report_settings *settings;
	struct inputs inputs;
	struct findings findings;
	struct {
		REPORT_COUNTERS(REPORT_X_FIELD)
	} counters;
	/* of the run that is read */
	struct findings_run *run;
	struct bs_rec_hello hello; /* which run it is; magic 0: not said */
	struct bs_diag *diag;
	size_t first_group;
	bool named[FINDINGS_SERVICES];
	bool ignored; /* one too many */
	/* of the journal that is read: */
	uint64_t journal, next_sequence; /* 0: none yet */
	int failure;			 /* of a callback: -errno */
};

/*
 * Reads the files of report->inputs, which are opened and sorted, with a reader
 * of their own. 0, or -errno with one line in error; report_fini() is due in
 * either case.
 */
int report_read(
	struct report *report, struct bs_journal_reader *reader, char error[REPORT_ERROR_BYTES]);

/* The t_last of the newest block that can be read; 0: none. For --last. */
uint64_t report_newest(struct report *report, struct bs_journal_reader *reader);

void report_fini(struct report *report);
