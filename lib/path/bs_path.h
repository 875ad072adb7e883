/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The latency of an RPC as a tiling of its critical path (design 2.3). The
 * tracker notes the instants of an RPC and the evidence it saw (marks: an
 * interval in which progress was held up, and by what); at the RPC's end this
 * turns them into segments without gap or overlap.
 *
 *   t_request_first .. t_request_last            the request comes: transfer
 *   .. t_request_departure                       our buffers, request
 *   .. t_response_first                          service: compute
 *   .. t_response_last                           the response comes: transfer
 *   .. t_response_departure                      our buffers, response
 *
 * Marks are painted over what lies under them, clipped to the phases they can
 * belong to: of the request up to the first byte of the response, of the
 * response from the departure of the request on, EARLIER_RPC between the two.
 * Where two overlap, the stronger evidence wins, then the earlier. So the sum is
 * the latency to the nanosecond whatever the marks say.
 */
#pragma once

#include <stdint.h>

#include "bs_record.h"

/* What held progress up. Weakest first: a later kind is painted over an earlier one. */
enum bs_mark_kind {
	BS_MARK_EARLIER_RPC, /* an earlier RPC of the connection was not finished */
	BS_MARK_WINDOW,	     /* the receiver's window had no room for a segment */
	BS_MARK_DISORDER,    /* a hole was filled late by an older packet */
	BS_MARK_RESEND,	     /* lost, until the copy that counted came */
	BS_MARK_OWN_WAIT,    /* waited in one of our buffers */
	BS_MARK_OWN_DROP,    /* one of our buffers dropped it, until its resend came */
	BS_MARK_KIND_COUNT
};

struct bs_mark {
	uint64_t begin, end; /* instants */
	uint64_t packet;     /* capture frame whose arrival ended it; 0 live */
	uint64_t culprit_id;
	uint32_t uncertainty_ns;
	uint16_t buffer;
	uint16_t detail;
	uint8_t kind; /* enum bs_mark_kind */
	uint8_t cause;
	uint8_t quality;
	uint8_t culprit_kind;
	uint8_t response; /* 0: held up the request, 1: the response */
	uint8_t pad[3];
};

/*
 * Segments of *rpc, whose instants are set (0 where they never came), with its
 * marks (any order; count <= BS_PATH_MAX_MARKS). Writes at most
 * BS_RPC_MAX_SEGMENTS records to `segments`, sets rpc->segment_count and, where
 * neighbours of equal (buffer, cause) or the shortest had to be merged to fit,
 * BS_RPC_SEGMENTS_MERGED. An RPC without an answer is tiled up to t_end, what is
 * open last by the phase it is in; a response without a request from its own
 * first byte. Returns the count. Any thread.
 */
#define BS_PATH_MAX_MARKS 96u
unsigned bs_path_build(struct bs_rec_rpc *rpc, const struct bs_mark *marks, unsigned count,
	struct bs_rec_segment segments[BS_RPC_MAX_SEGMENTS]);
