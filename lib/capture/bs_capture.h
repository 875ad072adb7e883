/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Captures as a row of parsed packets: pcap (both byte orders, micro- and
 * nanoseconds) and pcapng as far as libpcap reads them, plain or gzip. A file
 * that ends in the middle of a record gives all packets before it and says
 * where it broke.
 *
 * One thread per bs_capture.
 */
#pragma once

#include <stdint.h>

#include "bs_packet.h"

#define BS_CAPTURE_ERROR_BYTES 512u

struct bs_capture;

struct bs_capture_info {
	uint64_t packets;	      /* read so far */
	uint64_t bytes;		      /* of those, on the wire */
	uint64_t t_first, t_last;     /* earliest and latest; 0 while there is none */
	uint64_t truncated_at_packet; /* number of the record that could not be read whole; 0 = none
				       */
	const char *link_type;	      /* "EN10MB", as libpcap names it; valid until close */
	uint64_t file_bytes_read;     /* of the file as stored, for a progress bar */
	uint64_t file_bytes;	      /* its size; 0 = not known (a pipe) */
};

/*
 * Opens a capture; "-" is standard input. NULL with errno and one line in
 * `error` (path and why): what open(2) said, ENODATA (not one byte), EPROTONOSUPPORT (a
 * link type that is not read, named), EBADMSG (no capture, damaged, or a kind
 * that libpcap refuses, with its reason), ENOMEM.
 *
 * Link types: EN10MB, LINUX_SLL, LINUX_SLL2, RAW, IPV4, IPV6, NULL, LOOP.
 */
struct bs_capture *bs_capture_open(const char *path, char error[BS_CAPTURE_ERROR_BYTES]);
void bs_capture_close(struct bs_capture *capture); /* NULL is fine */

/*
 * The next packet, parsed; its data is valid until the next call. number counts
 * from 1; t_ns is as recorded, with nanoseconds past the second carried over.
 * 1: a packet; 0: the end, regular or (info: truncated_at_packet) cut short;
 * -EBADMSG: the file is damaged here, or libpcap reads no further; or what read(2)
 * said. Then info has truncated_at_packet too. Later calls say the same.
 */
int bs_capture_next(struct bs_capture *capture, struct bs_packet *packet);

/* Why next() gave an error or stopped early, one line; "" if it did not. Valid until close. */
const char *bs_capture_error(const struct bs_capture *capture);

/* What is known so far; complete when next() has returned 0. */
void bs_capture_info(const struct bs_capture *capture, struct bs_capture_info *info);
