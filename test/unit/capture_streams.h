/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The payloads of real captures for framer tests. No reassembly: segments that
 * are not the next bytes of their direction are left out, so this is only for
 * captures without loss.
 */
#pragma once

#include <pcap/pcap.h>
#include <netinet/in.h>

#include "framer_replay.h"

#define STREAMS_MAX 32u
#define STREAM_CHUNKS_MAX 3000u

struct stream {
	uint8_t client[16], server[16];
	uint16_t client_port, server_port;
	bool udp;
	bool started[2];
	uint32_t next[2]; /* sequence number expected, by direction */
	struct chunk *chunks;
	size_t count;
};

struct streams {
	struct stream list[STREAMS_MAX];
	size_t count;
};

struct datagram {
	uint8_t from[16], to[16];
	uint16_t from_port, to_port;
	bool udp, syn_only;
	uint32_t seq;
	const uint8_t *payload;
	size_t bytes;
};

static inline uint32_t
be(const uint8_t *at, unsigned bytes)
{
	uint32_t value = 0;

	while (bytes-- > 0)
		value = value << 8 | *at++;
	return value;
}

static inline bool
transport_parse(const uint8_t *at, const uint8_t *end, unsigned protocol, struct datagram *d)
{
	if (protocol == IPPROTO_UDP && end - at >= 8) {
		d->udp = true;
		d->payload = at + 8;
	} else if (protocol == IPPROTO_TCP && end - at >= 20 && end - at >= (at[12] >> 4) * 4) {
		d->seq = be(at + 4, 4);
		d->syn_only = (at[13] & 0x12) == 0x02;
		if (at[13] & 0x02)
			d->seq++;
		d->payload = at + (at[12] >> 4) * 4;
	} else {
		return false;
	}
	d->from_port = (uint16_t)be(at, 2);
	d->to_port = (uint16_t)be(at + 2, 2);
	d->bytes = (size_t)(end - d->payload);
	return true;
}

static inline bool
network_parse(const uint8_t *at, const uint8_t *end, struct datagram *d)
{
	memset(d, 0, sizeof(*d));
	if (end - at >= 20 && at[0] >> 4 == 4) {
		size_t header = (at[0] & 15u) * 4, total = be(at + 2, 2);

		if (total < header || total > (size_t)(end - at))
			return false;
		memcpy(d->from + 12, at + 12, 4);
		memcpy(d->to + 12, at + 16, 4);
		return transport_parse(at + header, at + total, at[9], d);
	}
	if (end - at >= 40 && at[0] >> 4 == 6) {
		size_t total = 40 + be(at + 4, 2);

		if (total > (size_t)(end - at))
			return false;
		memcpy(d->from, at + 8, 16);
		memcpy(d->to, at + 24, 16);
		return transport_parse(at + 40, at + total, at[6], d);
	}
	return false;
}

static inline size_t
link_bytes(int link, const uint8_t *at, size_t bytes)
{
	size_t header = link == DLT_EN10MB	? 14
			: link == DLT_LINUX_SLL ? 16
			: link == DLT_RAW	? 0
						: 4;

	if (link == DLT_EN10MB && bytes >= 18 && be(at + 12, 2) == 0x8100)
		header += 4;
	return header;
}

/* The stream of a datagram. The client is who sent the SYN, or who does not have server_port. */
static inline struct stream *
stream_find(struct streams *streams, const struct datagram *d, uint16_t server_port, bool *reverse)
{
	struct stream *stream;

	for (size_t i = streams->count; i > 0; i--) {
		stream = &streams->list[i - 1];
		if (stream->udp != d->udp)
			continue;
		*reverse = stream->server_port == d->from_port &&
			   stream->client_port == d->to_port &&
			   memcmp(stream->server, d->from, 16) == 0 &&
			   memcmp(stream->client, d->to, 16) == 0;
		if (*reverse ||
			(stream->client_port == d->from_port && stream->server_port == d->to_port &&
				memcmp(stream->client, d->from, 16) == 0 &&
				memcmp(stream->server, d->to, 16) == 0))
			return stream;
	}
	assert_true(streams->count < STREAMS_MAX);
	stream = &streams->list[streams->count++];
	*reverse = d->from_port == server_port;
	memcpy(*reverse ? stream->server : stream->client, d->from, 16);
	memcpy(*reverse ? stream->client : stream->server, d->to, 16);
	stream->client_port = *reverse ? d->to_port : d->from_port;
	stream->server_port = *reverse ? d->from_port : d->to_port;
	stream->udp = d->udp;
	stream->chunks = calloc(STREAM_CHUNKS_MAX, sizeof(*stream->chunks));
	assert_non_null(stream->chunks);
	return stream;
}

static inline void
stream_add(struct stream *stream, const struct datagram *d, bool reverse)
{
	struct chunk *chunk;
	void *copy;

	if (!d->udp) {
		if (!stream->started[reverse] || d->syn_only)
			stream->next[reverse] = d->seq;
		stream->started[reverse] = true;
		if (d->seq != stream->next[reverse])
			return;
		stream->next[reverse] += (uint32_t)d->bytes;
	}
	if (d->bytes == 0)
		return;
	assert_true(stream->count < STREAM_CHUNKS_MAX);
	copy = malloc(d->bytes);
	assert_non_null(copy);
	memcpy(copy, d->payload, d->bytes);
	chunk = &stream->chunks[stream->count++];
	chunk->from_server = reverse;
	chunk->data = copy;
	chunk->bytes = d->bytes;
}

/* Only what is to or from server_port. Skips the test if the capture is not there. */
static inline void
streams_load(struct streams *streams, const char *name, uint16_t server_port)
{
	const char *root = getenv("BUFSCOPE_PCAPS");
	char path[512], error[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr *header;
	const uint8_t *data;
	pcap_t *pcap;

	memset(streams, 0, sizeof(*streams));
	snprintf(path, sizeof(path), "%s/%s", root != NULL ? root : "../shared/pcaps", name);
	pcap = pcap_open_offline(path, error);
	if (pcap == NULL) {
		print_message("skipped: no %s (set BUFSCOPE_PCAPS)\n", path);
		skip();
	}
	while (pcap_next_ex(pcap, &header, &data) == 1) {
		size_t skipped = link_bytes(pcap_datalink(pcap), data, header->caplen);
		struct datagram d;
		bool reverse = false;

		if (skipped > header->caplen ||
			!network_parse(data + skipped, data + header->caplen, &d))
			continue;
		if (d.from_port == server_port || d.to_port == server_port) {
			struct stream *stream = stream_find(streams, &d, server_port, &reverse);

			stream_add(stream, &d, reverse);
		}
	}
	pcap_close(pcap);
}

static inline void
streams_free(struct streams *streams)
{
	for (size_t i = 0; i < streams->count; i++) {
		for (size_t j = 0; j < streams->list[i].count; j++)
			free((void *)(uintptr_t)streams->list[i].chunks[j].data);
		free(streams->list[i].chunks);
	}
}

/* Every TCP stream of a capture through a framer, in all cuts; the sum of the tallies. */
static inline struct tally
streams_tally(const char *name, uint16_t server_port, const struct bs_framer *framer)
{
	static struct streams streams_of_file;
	static struct replay replay_of_stream;
	struct streams *streams = &streams_of_file;
	struct replay *r = &replay_of_stream;
	struct tally sum = {0};

	streams_load(streams, name, server_port);
	for (size_t i = 0; i < streams->count; i++) {
		struct tally one;

		if (streams->list[i].udp)
			continue;
		replay_all_cuts(r, framer, streams->list[i].chunks, streams->list[i].count);
		one = replay_tally(r);
		sum.requests += one.requests;
		sum.oneway += one.oneway;
		sum.responses += one.responses;
		sum.interim += one.interim;
		sum.pushed += one.pushed;
		sum.errors += one.errors;
		sum.bad += one.bad;
	}
	streams_free(streams);
	return sum;
}
