/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Captures to verdicts, by the same tracker and diagnosis as live: reads packets
 * of one or more files in order of time, keeps every RPC, and judges them with
 * the normal values of the whole capture.
 */
#pragma once

#include <stdio.h>

#include "bs_capture.h"
#include "bs_diag.h"
#include "bs_framer.h"
#include "bs_tracker.h"
#include "config.h"
#include "findings.h"
#include "slo.h"

#define REPLAY_PORTS 16u
#define REPLAY_ERROR_BYTES 768u

struct replay_settings {
	const char *const *paths; /* "-": standard input */
	unsigned path_count;
	const struct bs_config *config; /* services, framing and thresholds of it; may be NULL */
	struct {
		const char *protocol; /* not NUL-terminated */
		size_t length;
		uint16_t port;
	} ports[REPLAY_PORTS];
	unsigned port_count;
	struct slos slos;
	/* Told now and then while reading; may be NULL. total 0: not known. */
	void (*progress)(void *context, const char *path, uint64_t done, uint64_t total);
	void *progress_context;
};

struct replay_input {
	const char *path;
	struct bs_capture *capture;
	struct bs_packet packet; /* next of it, if has_packet */
	bool has_packet;
	uint64_t backwards; /* packets older than the one before; taken as of the same time */
	struct bs_capture_info info;
	char error[BS_CAPTURE_ERROR_BYTES]; /* why it ended early, or "" */
};

struct replay {
	struct replay_settings *settings;
	struct replay_input *inputs;
	unsigned input_count;
	struct bs_framers framers;
	struct bs_tracker_service given[BS_MAX_SERVICES]; /* of the config */
	struct findings findings;
	struct findings_run *run;      /* the only one of them */
	bool named[FINDINGS_SERVICES]; /* services that there are */
	struct bs_tracker *tracker;
	struct bs_diag *diag;
	uint64_t parses[BS_PARSE_COUNT]; /* packets by what they were; OK: also followed */
	uint64_t not_followed;
	uint64_t packets;
	uint64_t bad_records; /* that did not validate: a defect of ours */
	uint64_t t_now, t_housekeeping;
	int failure; /* of a callback: -errno */
};

/*
 * Opens the files and makes the parts. The settings outlive the replay. 0, or
 * -errno with one line in error; -EINVAL: settings that name what does not
 * exist. replay_fini() is due in either case.
 */
int replay_init(
	struct replay *replay, struct replay_settings *settings, char error[REPLAY_ERROR_BYTES]);

/* Reads all. 0, or -errno with one line in error. Files cut short are no error. */
int replay_read(struct replay *replay, char error[REPLAY_ERROR_BYTES]);

/* After read: verdicts, incidents, values of services. As above. */
int replay_judge(struct replay *replay, char error[REPLAY_ERROR_BYTES]);

void replay_fini(struct replay *replay);
