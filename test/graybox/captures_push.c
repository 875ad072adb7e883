/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every frame of every capture through the dataplane: captures_push OUT FILE...
 *
 *   off      from the service's side to the wire, shim off: nothing changes but
 *            checksums that were only the pseudo header's sum
 *   always   the same, tagging whatever can be tagged
 *   back     what "always" sent comes in from the wire of another instance: the
 *            service must see, to the byte, what "off" sent
 *   chopped  "always" and "back" once more, in segments of all sizes
 *
 * Leaves OUT/original.pcap, OUT/off.pcap and OUT/always.pcap for captures_test.py,
 * frame by frame in step, and says on standard output what was done. Other link
 * headers than Ethernet's are replaced by one.
 */
#include "gb_frames.h"

#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FRAME_MAX 262144u
#define SERVICES 56u
#define SERVICES_A_FILE 8u

struct bytes {
	uint8_t *data;
	uint32_t n;
};

/* All frames of a group of captures, and the services in them. */
static struct {
	struct bytes *original, *off, *always;
	size_t count, room;
	struct {
		uint8_t address[16];
		uint16_t port;
	} services[SERVICES];
	unsigned service_count;
} group;

static struct {
	pcap_dumper_t *original, *off, *always;
	uint64_t files, frames, completed, tagged, untagged, followed, fragments_alone, gathered,
		number;
} all;

/* --- reading ---------------------------------------------------------------------------- */

static pcap_t *
capture_open(const char *path, FILE **pipe)
{
	char command[4096], error[PCAP_ERRBUF_SIZE];
	const size_t len = strlen(path);

	*pipe = NULL;
	if (len < 3 || strcmp(path + len - 3, ".gz") != 0)
		return pcap_open_offline(path, error);
	snprintf(command, sizeof(command), "gzip -dc '%s'", path);
	*pipe = popen(command, "r");
	return *pipe != NULL ? pcap_fopen_offline(*pipe, error) : NULL;
}

/* The frame with an Ethernet header. false: another link type. */
static bool
as_ethernet(int link, const uint8_t *data, uint32_t n, struct bytes *out)
{
	static const uint8_t addresses[12] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};
	const uint32_t skip = link == DLT_NULL ? 4 : link == DLT_LINUX_SLL ? 16 : 0;

	out->n = n;
	if (link == DLT_EN10MB) {
		out->data = malloc(n + 1);
		memcpy(out->data, data, n);
		return true;
	}
	if ((link != DLT_NULL && link != DLT_LINUX_SLL && link != DLT_RAW) || n <= skip)
		return false;
	out->n = n - skip + 14;
	out->data = malloc(out->n);
	memcpy(out->data, addresses, 12);
	memcpy(out->data + 12, data[skip] >> 4 == 6 ? "\x86\xdd" : "\x08\x00", 2);
	if (link == DLT_LINUX_SLL)
		memcpy(out->data + 12, data + 14, 2);
	memcpy(out->data + 14, data + skip, n - skip);
	return true;
}

/* The server's end: whom a SYN goes to, else the one with the lower port. */
static void
note_service(const struct bytes *frame, unsigned *noted)
{
	struct bs_packet packet = {.data = frame->data, .caplen = frame->n, .len = frame->n};
	unsigned end;

	if (bs_packet_parse(&packet) != BS_PARSE_OK)
		return;
	end = packet.tuple.port[0] > packet.tuple.port[1];
	if ((packet.tcp_flags & (BS_TCP_SYN | BS_TCP_ACK)) == BS_TCP_SYN)
		end = !packet.direction;
	if (packet.tuple.port[end] == 0)
		return;
	for (unsigned i = 0; i < group.service_count; i++) {
		if (group.services[i].port == packet.tuple.port[end] &&
			memcmp(group.services[i].address, packet.tuple.addr[end], 16) == 0)
			return;
	}
	if (*noted == SERVICES_A_FILE || group.service_count == SERVICES)
		return;
	group.services[group.service_count].port = packet.tuple.port[end];
	memcpy(group.services[group.service_count++].address, packet.tuple.addr[end], 16);
	(*noted)++;
}

static void
read_capture(const char *path)
{
	struct pcap_pkthdr *header;
	const uint8_t *data;
	unsigned noted = 0;
	FILE *pipe;
	pcap_t *pcap = capture_open(path, &pipe);

	if (pcap == NULL)
		return; /* no capture, or one that libpcap cannot read */
	all.files++;
	while (pcap_next_ex(pcap, &header, &data) == 1) {
		struct bytes frame;

		if (!as_ethernet(pcap_datalink(pcap), data, header->caplen, &frame))
			continue;
		if (group.count == group.room) {
			group.room = group.room * 2 + 1024;
			group.original =
				realloc(group.original, group.room * sizeof(group.original[0]));
		}
		note_service(&frame, &noted);
		group.original[group.count++] = frame;
	}
	pcap_close(pcap);
}

/* --- pushing ---------------------------------------------------------------------------- */

static void
setup_text(char *text, size_t room)
{
	size_t n = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < group.service_count; i++) {
		char endpoint[BS_ENDPOINT_TEXT_BYTES], *address = endpoint, *end;

		bs_endpoint_text(group.services[i].address, group.services[i].port, endpoint);
		if (*address == '[')
			address++;
		end = strpbrk(address, "]");
		if (end == NULL)
			end = strrchr(address, ':');
		*end = '\0';
		n += (size_t)snprintf(text + n, room - n,
			"%s{\"name\": \"s%u\", \"address\": \"%s\", \"port\": %u}",
			i == 0 ? "" : ",", i, address, group.services[i].port);
	}
	if (n == 0)
		snprintf(text, room,
			"{\"name\": \"none\", \"address\": \"192.0.2.1\", \"port\": 1}");
}

static struct bytes
take(const struct gb *gb, unsigned port)
{
	struct bytes out = {NULL, 0};
	struct rte_mbuf *mbuf = gb_take_mbuf(gb, port);

	if (mbuf == NULL)
		return out;
	out.data = malloc(mbuf->pkt_len + 1);
	for (const struct rte_mbuf *m = mbuf; m != NULL; m = m->next) {
		memcpy(out.data + out.n, rte_pktmbuf_mtod(m, const void *), m->data_len);
		out.n += m->data_len;
	}
	assert_int_equal(out.n, mbuf->pkt_len);
	rte_pktmbuf_free(mbuf);
	assert_null(take(gb, port).data);
	return out;
}

/* Pushes all frames in by a port and returns what left by the other; empty: it ended. */
static struct bytes *
push(const struct bytes *frames, unsigned port, const char *shim, bool chopped)
{
	static char services[SERVICES * 128];
	struct gb *gb;
	struct bytes *out = calloc(group.count + 1, sizeof(*out));

	setup_text(services, sizeof(services));
	gb = gb_open(&(struct gb_setup){.shim = shim, .services = services});
	for (size_t i = 0; i < group.count; i++) {
		const size_t least =
			frames[i].n / 250 + 1; /* no more than BS_SEGMENTS_MAX of them */

		if (frames[i].n == 0)
			continue; /* it ended on its way here */
		gb_inject_mbuf(gb, port,
			gb_chain(gb, frames[i].data, frames[i].n,
				chopped ? RTE_MAX(1 + i * 7919 % 300, least) : 2048));
		gb_time.now_ns += 10 * GB_US;
		gb_turn(gb);
		out[i] = take(gb, !port);
	}
	assert_int_equal(gb_snapshot(gb)->rx_packets - gb_reason(gb, BS_REASON_RUNT),
		gb_snapshot(gb)->tx_packets);
	all.completed += gb_tag(gb, BS_TAG_CHECKSUM_COMPLETED);
	if (!chopped) {
		all.tagged += gb_tag(gb, BS_TAG_TAGGED);
		all.untagged += gb_tag(gb, BS_TAG_UNTAGGED);
	}
	all.fragments_alone += gb_snapshot(gb)->parse[BS_PARSE_FRAGMENT_ALONE];
	all.followed += gb_snapshot(gb)->track[BS_TRACK_FLOWS_CREATED];
	all.gathered += gb_snapshot(gb)->frame[BS_FRAME_GATHERED];
	gb_close(gb);
	return out;
}

/* They are the same, but for the checksum of a packet that had only half of one. */
static void
assert_only_completed(const struct bytes *before, const struct bytes *after)
{
	struct bs_packet packet = {.data = before->data, .caplen = before->n, .len = before->n};
	uint32_t at;

	assert_int_equal(before->n, after->n);
	if (memcmp(before->data, after->data, before->n) == 0)
		return;
	assert_int_equal(bs_packet_parse(&packet), BS_PARSE_OK);
	assert_true(packet.l4_checksum_partial);
	at = packet.l4 + (packet.l4_protocol == 6 ? 16u : 6u);
	assert_memory_equal(before->data, after->data, at);
	assert_memory_equal(before->data + at + 2, after->data + at + 2, before->n - at - 2);
}

static void
assert_same(const struct bytes *a, const struct bytes *b)
{
	for (size_t i = 0; i < group.count; i++) {
		assert_int_equal(a[i].n, b[i].n);
		if (a[i].n > 0)
			assert_memory_equal(a[i].data, b[i].data, a[i].n);
	}
}

static void
dump(pcap_dumper_t *to, const struct bytes *frame)
{
	const struct pcap_pkthdr header = {
		.ts = {.tv_sec = (time_t)(all.number / 100000),
			.tv_usec = (suseconds_t)(all.number % 100000) * 10},
		.caplen = frame->n,
		.len = frame->n,
	};

	pcap_dump((u_char *)to, &header, frame->data);
}

static void
free_all(struct bytes *frames)
{
	for (size_t i = 0; i < group.count; i++)
		free(frames[i].data);
	free(frames);
}

static void
push_group(void)
{
	struct bytes *back;

	if (group.count == 0)
		return;
	group.off = push(group.original, GB_LOCAL, "\"tag\": \"off\"", false);
	group.always = push(group.original, GB_LOCAL, "\"tag\": \"always\"", false);
	back = push(group.always, GB_WIRE, "\"tag\": \"off\"", false);
	assert_same(group.off, back);
	free_all(back);
	for (size_t i = 0; i < group.count; i++, all.number++) {
		if (group.off[i].n == 0) {
			assert_true(group.original[i].n < 14);
			continue;
		}
		all.frames++;
		assert_only_completed(&group.original[i], &group.off[i]);
		dump(all.original, &group.original[i]);
		dump(all.off, &group.off[i]);
		dump(all.always, &group.always[i]);
	}
	free_all(group.always);
	group.always = push(group.original, GB_LOCAL, "\"tag\": \"always\"", true);
	back = push(group.always, GB_WIRE, "\"tag\": \"off\"", true);
	assert_same(group.off, back);
	free_all(back);
	free_all(group.always);
	free_all(group.off);
	free_all(group.original);
	memset(&group, 0, sizeof(group));
}

/* --- all of it ---------------------------------------------------------------------------- */

static char **paths;
static const char *out_directory;

static pcap_dumper_t *
dump_open(pcap_t *pcap, const char *name)
{
	char path[4096];
	pcap_dumper_t *dumper;

	snprintf(path, sizeof(path), "%s/%s.pcap", out_directory, name);
	dumper = pcap_dump_open(pcap, path);
	assert_non_null(dumper);
	return dumper;
}

static void
every_frame_leaves_as_it_came_and_comes_back_to_the_byte(void **state)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, FRAME_MAX);

	(void)state;
	all.original = dump_open(pcap, "original");
	all.off = dump_open(pcap, "off");
	all.always = dump_open(pcap, "always");
	for (char **path = paths; *path != NULL; path++) {
		read_capture(*path);
		if (group.service_count + SERVICES_A_FILE > SERVICES)
			push_group();
	}
	push_group();
	pcap_dump_close(all.original);
	pcap_dump_close(all.off);
	pcap_dump_close(all.always);
	pcap_close(pcap);
	assert_int_equal(all.tagged, all.untagged);
	printf("files %lu frames %lu flows %lu completed %lu tagged %lu fragments_alone %lu "
	       "gathered %lu\n",
		all.files, all.frames, all.followed, all.completed, all.tagged, all.fragments_alone,
		all.gathered);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		GB_TEST(every_frame_leaves_as_it_came_and_comes_back_to_the_byte),
	};

	if (argc < 3) {
		fprintf(stderr, "usage: %s OUT FILE...\n", argv[0]);
		return 2;
	}
	out_directory = argv[1];
	paths = argv + 2;
	return cmocka_run_group_tests_name(
		"graybox_captures", tests, gb_group_setup, gb_group_teardown);
}
