/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libpcap reads the file formats; this file feeds it the bytes, turns its
 * records into packets, and tells a file that was cut from one that is damaged.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bs_capture.h"
#include "link.h"
#include "source.h"

#define NS_PER_S 1000000000ll

struct bs_capture {
	char *name; /* for messages */
	struct source *source;
	pcap_t *pcap;
	const struct link *link;
	struct bs_capture_info info;
	bool ended;
	int result; /* of next(), once ended */
	char error[BS_CAPTURE_ERROR_BYTES];
};

/* Formats that look like a capture to their owner; libpcap would say only "unknown file format". */
static const char *
compression_of(const struct source *source)
{
	static const struct {
		uint8_t bytes[4];
		const char *name;
	} formats[] = {
		{{0x28, 0xb5, 0x2f, 0xfd}, "zstd"},
		{{0xfd, '7', 'z', 'X'}, "xz"},
		{{0x04, 0x22, 0x4d, 0x18}, "lz4"},
		{{'B', 'Z', 'h', '9'}, "bzip2"},
		{{'P', 'K', 3, 4}, "zip"},
	};
	uint8_t magic[6];

	if (source_magic(source, magic) < sizeof(formats[0].bytes))
		return NULL;
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (memcmp(magic, formats[i].bytes, sizeof(formats[i].bytes)) == 0)
			return formats[i].name;
	}
	return NULL;
}

/* Why libpcap did not take the file. Writes capture->error, returns an errno value. */
static int
explain_refusal(struct bs_capture *capture, FILE *stream, const char *pcap_error)
{
	const char *text, *compression = compression_of(capture->source);
	int error = source_error(capture->source, &text);

	if (text == NULL && source_bytes_out(capture->source) == 0) {
		text = "the file is empty: not a capture";
		error = ENODATA;
	} else if (text == NULL && compression != NULL) {
		snprintf(capture->error, sizeof(capture->error),
			"%s: compressed with %s; decompress it first", capture->name, compression);
		return EBADMSG;
	} else if (text == NULL && feof(stream)) {
		text = "the file ends within its header: not a whole capture";
	} else if (text == NULL) {
		text = pcap_error;
	}
	snprintf(capture->error, sizeof(capture->error), "%s: %s", capture->name, text);
	return error ? error : EBADMSG;
}

/* 0, or an errno value with capture->error written. */
static int
open_link(struct bs_capture *capture)
{
	int dlt = pcap_datalink(capture->pcap);
	const char *name = pcap_datalink_val_to_name(dlt);

	capture->info.link_type = name ? name : "unknown";
	capture->link = link_find(dlt);
	if (capture->link != NULL)
		return 0;
	snprintf(capture->error, sizeof(capture->error),
		"%s: link type %s (%d) is not supported; supported are Ethernet, LINUX_SLL, "
		"LINUX_SLL2, RAW, NULL and LOOP",
		capture->name, capture->info.link_type, dlt);
	return EPROTONOSUPPORT;
}

/* 0, or an errno value with capture->error written. */
static int
open_stages(struct bs_capture *capture, int fd)
{
	char pcap_error[PCAP_ERRBUF_SIZE] = "";
	FILE *stream;
	int error = 0;

	if (fd >= 0)
		capture->source = source_create(fd);
	if (capture->source == NULL) {
		error = errno;
		snprintf(capture->error, sizeof(capture->error), "%s: %s", capture->name,
			strerrordesc_np(error));
		return error;
	}
	stream = source_stream(capture->source);
	if (stream == NULL) {
		snprintf(
			capture->error, sizeof(capture->error), "%s: out of memory", capture->name);
		return ENOMEM;
	}
	capture->pcap = pcap_fopen_offline_with_tstamp_precision(
		stream, PCAP_TSTAMP_PRECISION_NANO, pcap_error);
	if (capture->pcap == NULL) {
		error = explain_refusal(capture, stream, pcap_error);
		fclose(stream);
		return error;
	}
	return open_link(capture);
}

struct bs_capture *
bs_capture_open(const char *path, char error[BS_CAPTURE_ERROR_BYTES])
{
	bool standard = strcmp(path, "-") == 0;
	struct bs_capture *capture = calloc(1, sizeof(*capture));
	int ret = ENOMEM;
	int fd;

	if (capture != NULL)
		capture->name = strdup(standard ? "standard input" : path);
	if (capture == NULL || capture->name == NULL) {
		snprintf(error, BS_CAPTURE_ERROR_BYTES, "%s: out of memory", path);
		goto fail;
	}
	fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open(path, O_RDONLY | O_CLOEXEC);
	ret = open_stages(capture, fd);
	if (ret == 0)
		return capture;
	memcpy(error, capture->error, BS_CAPTURE_ERROR_BYTES);
fail:
	bs_capture_close(capture);
	errno = ret;
	return NULL;
}

void
bs_capture_close(struct bs_capture *capture)
{
	if (capture == NULL)
		return;
	if (capture->pcap != NULL)
		pcap_close(capture->pcap);
	source_destroy(capture->source);
	free(capture->name);
	free(capture);
}

/*
 * libpcap hands the fields of a record on unchecked, and those of the classic
 * format through signed 32 bits: seconds after January 2038 come out negative.
 */
static uint64_t
record_time(const struct timeval *tv)
{
	int64_t seconds = tv->tv_sec, ns = tv->tv_usec;

	if (seconds < 0 && seconds >= INT32_MIN)
		seconds += 1ll << 32;
	if (seconds < 0)
		return 0;
	if (ns < 0)
		ns = 0;
	if (seconds >= (INT64_MAX - ns) / NS_PER_S)
		return INT64_MAX;
	return (uint64_t)(seconds * NS_PER_S + ns);
}

static void
count(struct bs_capture_info *info, const struct bs_packet *packet)
{
	if (info->packets == 1 || packet->t_ns < info->t_first)
		info->t_first = packet->t_ns;
	if (packet->t_ns > info->t_last)
		info->t_last = packet->t_ns;
	info->bytes += packet->len;
}

/* The file gives no more. status: of pcap_next_ex. */
static void
end(struct bs_capture *capture, int status)
{
	uint64_t number = capture->info.packets + 1;
	const char *text;
	int error = source_error(capture->source, &text);

	capture->ended = true;
	if (status == PCAP_ERROR_BREAK && text == NULL)
		return;
	capture->info.truncated_at_packet = number;
	capture->result = -error;
	if (text == NULL && feof(pcap_file(capture->pcap))) {
		text = "the file ends in the middle of it";
	} else if (text == NULL) {
		capture->result = -EBADMSG;
		text = pcap_geterr(capture->pcap);
	}
	snprintf(capture->error, sizeof(capture->error), "%s: packet %" PRIu64 ": %s",
		capture->name, number, text);
}

int
bs_capture_next(struct bs_capture *capture, struct bs_packet *packet)
{
	struct pcap_pkthdr *header;
	const u_char *data;
	int status;

	if (capture->ended)
		return capture->result;
	status = pcap_next_ex(capture->pcap, &header, &data);
	if (status != 1) {
		end(capture, status);
		return capture->result;
	}
	packet->t_ns = record_time(&header->ts);
	packet->number = ++capture->info.packets;
	packet->data = data;
	packet->caplen = header->caplen;
	packet->len = header->len > header->caplen ? header->len : header->caplen;
	link_parse(capture->link, packet);
	count(&capture->info, packet);
	return 1;
}

const char *
bs_capture_error(const struct bs_capture *capture)
{
	return capture->error;
}

void
bs_capture_info(const struct bs_capture *capture, struct bs_capture_info *info)
{
	*info = capture->info;
	info->file_bytes_read = source_bytes_read(capture->source);
	info->file_bytes = source_bytes(capture->source);
}
