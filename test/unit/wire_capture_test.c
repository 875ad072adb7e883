/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The edits on packets that others made, and seen by others: every packet of the
 * captures below $BUFSCOPE_PCAPS (else beside the repository, else skipped) tagged
 * and untagged by every carrier, as it is and in a tunnel; and tagged packets as
 * tshark reads them (else skipped).
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fts.h>
#include <libgen.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <unistd.h>

#include "bs_checksum.h"
#include "bs_carrier.h"
#include "bs_tcp_edit.h"
#include "wire_tunnel.h"

#define LINK_NULL_BYTES 4u
#define LINK_SLL_BYTES 16u
#define TSHARK_PACKETS 200u

#define ROOM 32u /* for any carrier */

struct totals {
	unsigned files, packets, completed, tunneled;
	unsigned tagged[BS_CARRIER_COUNT], refused[BS_CARRIER_COUNT][BS_REFUSE_COUNT];
};

static const struct bs_shim sample = {
	.version = 1,
	.rpc_id = 0x0123456789ABCDEFull,
	.remaining = BS_SHIM_REMAINING_UNKNOWN,
};

static enum bs_parse
parse_link(struct bs_packet *packet, int link)
{
	if (link == DLT_EN10MB)
		return bs_packet_parse_geneve(packet);
	return bs_packet_parse_ip(packet, link == DLT_NULL	  ? LINK_NULL_BYTES
					  : link == DLT_LINUX_SLL ? LINK_SLL_BYTES
								  : 0);
}

/* Tags and untags the packet by one carrier; fails the test unless every byte and field comes back.
 */
static void
round_trip(struct bs_packet *packet, uint8_t *data, unsigned carrier, int link,
	const uint8_t *original, struct totals *totals)
{
	const struct bs_carrier_ops *ops = &bs_carriers[carrier];
	const struct bs_packet before = *packet;
	const unsigned bytes = ops->bytes(packet);
	struct bs_packet tagged;
	enum bs_refusal refusal = ops->tag(packet, data - bytes, &sample);
	struct bs_shim shim;

	totals->refused[carrier][refusal]++;
	if (refusal != BS_REFUSE_NONE) {
		assert_memory_equal(data, original, before.caplen);
		assert_memory_equal(packet, &before, sizeof(before));
		return;
	}
	totals->tagged[carrier]++;
	/* What the parser sees is what the edit said. */
	tagged = (struct bs_packet){
		.data = packet->data, .caplen = packet->caplen, .len = packet->len};
	assert_int_equal(parse_link(&tagged, link), BS_PARSE_OK);
	assert_int_equal(tagged.shim, packet->shim);
	assert_int_equal(tagged.ether_shim, packet->ether_shim);
	assert_int_equal(tagged.geneve_shim, packet->geneve_shim);
	assert_int_equal(tagged.payload, packet->payload);
	assert_int_equal(tagged.payload_len, before.payload_len);
	assert_int_equal(tagged.tcp_options, packet->tcp_options);
	assert_memory_equal(&tagged.tuple, &before.tuple, sizeof(before.tuple));
	assert_int_equal(ops->read(packet, &shim), 0);
	assert_true(shim.rpc_id == sample.rpc_id);

	/* look like partial ones by chance, 1 in 65536 */
	tagged.l4_checksum_partial = tagged.tunnel_checksum_partial = 0;
	assert_int_equal(ops->untag(&tagged, data - bytes), 0);
	assert_memory_equal(data, original, before.caplen);
	assert_int_equal(tagged.payload, before.payload);
	*packet = before;
}

/* A heap block of headroom and no more than these bytes: sanitizers see what goes past them. */
static uint8_t *
copy_with_room(const uint8_t *bytes, unsigned n)
{
	uint8_t *block = malloc(ROOM + n);

	memcpy(block + ROOM, bytes, n);
	return block;
}

/* The frame as the payload of a Geneve tunnel, with every carrier. */
static void
tunnel_round_trips(const uint8_t *bytes, const struct bs_packet *packet, uint64_t *random,
	struct totals *totals)
{
	struct tunnel_want want = tunnel_random_want(random);
	struct frame inner = {.headroom = ROOM, .packet = *packet}, frame;
	uint8_t *original;

	if (packet->len != packet->caplen || packet->len > FRAME_BYTES_MAX - 200)
		return;
	inner.block = copy_with_room(bytes, packet->len);
	inner.packet.data = inner.block + ROOM;
	frame = tunnel_build(&inner, &want, random);
	if (frame.packet.parse == BS_PARSE_OK && frame.packet.geneve != 0) {
		totals->tunneled++;
		original = malloc(frame.packet.len);
		memcpy(original, frame.packet.data, frame.packet.len);
		for (unsigned carrier = 1; carrier < BS_CARRIER_COUNT; carrier++)
			round_trip(&frame.packet, frame_data(&frame), carrier, DLT_EN10MB, original,
				totals);
		free(original);
	}
	frame_free(&frame);
}

/* Every carrier on one captured packet. */
static void
packet_round_trips(const struct pcap_pkthdr *header, const uint8_t *bytes, int link,
	uint64_t *random, struct totals *totals)
{
	uint8_t *block = copy_with_room(bytes, header->caplen), *data = block + ROOM;
	struct bs_packet packet = {.data = data, .caplen = header->caplen, .len = header->len};
	uint8_t *original;

	if (parse_link(&packet, link) != BS_PARSE_OK) {
		free(block);
		return;
	}
	totals->packets++;
	if (packet.l4_checksum_partial && packet.payload_cap == packet.payload_len) {
		struct iovec payload = {data + packet.payload, packet.payload_len};
		const unsigned field = packet.l4_protocol == 17 ? 6 : 16;
		unsigned ip_end = packet.payload + packet.payload_len;

		assert_int_equal(bs_checksum_complete(&packet, data, &payload, 1), 0);
		if (header->len <= UINT16_MAX && ip_end <= header->len) {
			unsigned sum =
				frame_l4_checksum(data, packet.l3, packet.l4, packet.l4_protocol);

			/* larger ones have no IP length to go by */
			assert_int_equal(
				frame_get16(data + packet.l4 + field) % 0xFFFF, sum % 0xFFFF);
		}
		totals->completed++;
	}
	original = malloc(header->caplen + 1u);
	memcpy(original, data, header->caplen);
	for (unsigned carrier = 1; carrier < BS_CARRIER_COUNT; carrier++)
		round_trip(&packet, data, carrier, link, original, totals);
	if (link == DLT_EN10MB && packet.geneve == 0)
		tunnel_round_trips(data, &packet, random, totals);
	free(original);
	free(block);
}

static pcap_t *
capture_open(const char *path, FILE **pipe)
{
	char command[4096], error[PCAP_ERRBUF_SIZE];
	size_t len = strlen(path);

	*pipe = NULL;
	if (len < 3 || strcmp(path + len - 3, ".gz") != 0)
		return pcap_open_offline(path, error);
	snprintf(command, sizeof(command), "gzip -dc '%s'", path);
	*pipe = popen(command, "r");
	return *pipe != NULL ? pcap_fopen_offline(*pipe, error) : NULL;
}

static void
capture_round_trips(const char *path, uint64_t *random, struct totals *totals)
{
	FILE *pipe;
	pcap_t *pcap = capture_open(path, &pipe);
	struct pcap_pkthdr *header;
	const uint8_t *bytes;

	if (pcap == NULL)
		return; /* no capture, or one that libpcap cannot read */
	totals->files++;
	while (pcap_next_ex(pcap, &header, &bytes) == 1)
		packet_round_trips(header, bytes, pcap_datalink(pcap), random, totals);
	pcap_close(pcap); /* and the stream under it */
}

static bool
is_capture(const char *path)
{
	return strstr(path, ".pcap") != NULL && strstr(path, ".json") == NULL;
}

static void
every_captured_packet_comes_back_to_the_byte(void **state)
{
	char *source = strdup(__FILE__), *path = NULL;
	const char *given = getenv("BUFSCOPE_PCAPS");
	struct totals totals = {0};
	uint64_t random = 43;
	FTSENT *entry;
	FTS *tree;

	(void)state;
	if (asprintf(&path, "%s/../../../shared/pcaps", dirname(source)) < 0)
		fail();
	free(source);
	if (given != NULL) {
		free(path);
		path = strdup(given);
	}
	if (access(path, R_OK) != 0) {
		print_message("no captures at %s: skipped\n", path);
		free(path);
		skip();
	}
	tree = fts_open((char *[]){path, NULL}, FTS_LOGICAL, NULL);
	assert_non_null(tree);
	while ((entry = fts_read(tree)) != NULL)
		if (entry->fts_info == FTS_F && is_capture(entry->fts_path))
			capture_round_trips(entry->fts_path, &random, &totals);
	fts_close(tree);
	free(path);

	print_message("%u files, %u packets, %u completed, %u in a tunnel\n", totals.files,
		totals.packets, totals.completed, totals.tunneled);
	assert_true(totals.files > 0);
	for (unsigned carrier = 1; carrier < BS_CARRIER_COUNT; carrier++) {
		print_message("%s: %u tagged; refused by reason", bs_carriers[carrier].name,
			totals.tagged[carrier]);
		for (unsigned i = 1; i < BS_REFUSE_COUNT; i++)
			print_message(" %u", totals.refused[carrier][i]);
		print_message("\n");
		assert_true(totals.tagged[carrier] > 0);
	}
	/* each in and out of a tunnel, less what was refused */
	assert_true(totals.tagged[BS_CARRIER_TCP_OPTION] + totals.tagged[BS_CARRIER_UDP_OPTION] >
		    totals.packets);
	assert_true(totals.tagged[BS_CARRIER_ETHER] > totals.packets);
	assert_true(totals.tagged[BS_CARRIER_GENEVE] > totals.packets / 2);
}

/* Tagged frames, every second with its announcement, as a capture file. */
static void
tagged_frames_write(const char *path)
{
	uint64_t random = 41;
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, 65535);
	pcap_dumper_t *dump = pcap_dump_open(pcap, path);

	assert_non_null(dump);
	for (unsigned i = 0; i < TSHARK_PACKETS; i++) {
		struct frame_want want = frame_random_want(24, &random);
		struct frame frame;
		struct pcap_pkthdr header = {.ts.tv_sec = i};

		want.tcp_flags = i & 1 ? BS_TCP_SYN : BS_TCP_ACK;
		want.trailer = 0;
		frame_random_options(&want, 16, &random);
		frame = frame_build(&want, &random);
		assert_int_equal(bs_tcp_tag(&frame.packet, frame.block + 4, &sample), 0);
		if (i & 1)
			assert_int_equal(bs_tcp_announce(&frame.packet, frame.block), 0);
		header.caplen = header.len = frame.packet.len;
		pcap_dump((u_char *)dump, &header, frame.packet.data);
		frame_free(&frame);
	}
	pcap_dump_close(dump);
	pcap_close(pcap);
}

static bool
no_tshark(void)
{
	if (system("command -v tshark >/dev/null 2>&1") == 0)
		return false;
	print_message("no tshark: skipped\n");
	return true;
}

/* Opens a capture file below /tmp to write into; `path` ends with XXXXXX. */
static void
temporary(char *path)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
}

/* tshark with checksums validated; `arguments` say what it prints. */
static FILE *
tshark_open(const char *path, const char *arguments)
{
	char command[1024];
	FILE *tshark;

	snprintf(command, sizeof(command),
		"tshark -n -r %s -o tcp.check_checksum:TRUE -o udp.check_checksum:TRUE"
		" -o ip.check_checksum:TRUE %s 2>/dev/null",
		path, arguments);
	tshark = popen(command, "r");
	assert_non_null(tshark);
	return tshark;
}

static void
tshark_finds_tagged_packets_right(void **state)
{
	/* announcement, shim: version 1, no flags; id; remaining not known */
	static const char shim[] = "fd14b5c0100000000123456789abcdefffffffff";
	char path[] = "/tmp/wire-tagged-XXXXXX", line[512];
	unsigned lines = 0;
	FILE *tshark;

	(void)state;
	if (no_tshark())
		skip();
	temporary(path);
	tagged_frames_write(path);
	tshark = tshark_open(path, "-T fields -E separator=/s -E occurrence=f"
				   " -e tcp.checksum.status -e tcp.options -e eth.type"
				   " -e ip.checksum.status");
	while (fgets(line, sizeof(line), tshark) != NULL) {
		unsigned tcp_status = 0, ip_status = 1;
		char options[128] = "", type[16];
		int fields =
			sscanf(line, "%u %127s %15s %u", &tcp_status, options, type, &ip_status);
		const char *at = options;

		assert_true(fields >= 3);	 /* the last one is IPv4's only */
		assert_int_equal(tcp_status, 1); /* good */
		assert_int_equal(ip_status, 1);
		if (lines & 1) {
			assert_memory_equal(at, "fd04b5c1", 8);
			at += 8;
		}
		assert_memory_equal(at, shim, sizeof(shim) - 1);
		lines++;
	}
	assert_int_equal(pclose(tshark), 0);
	unlink(path);
	assert_int_equal(lines, TSHARK_PACKETS);
}

/* Ports for which no dissector is registered, and a payload that none takes for its own. */
static void
payload_means_nothing(struct frame *frame)
{
	const struct bs_packet *packet = &frame->packet;
	uint8_t *data = frame_data(frame);

	frame_put16(data + packet->l4, 65533);
	frame_put16(data + packet->l4 + 2, 65534);
	memset(data + packet->payload, 0, packet->payload_len);
	frame_put16(data + frame_field(frame),
		frame_l4_checksum(data, packet->l3, packet->l4, packet->l4_protocol));
}

/* Frames tagged by a carrier, of both transports where it goes with both. */
static void
carrier_frames_write(const char *path, unsigned carrier)
{
	const struct bs_carrier_ops *ops = &bs_carriers[carrier];
	uint64_t random = 44 + carrier;
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, 65535);
	pcap_dumper_t *dump = pcap_dump_open(pcap, path);

	assert_non_null(dump);
	for (unsigned i = 0; i < TSHARK_PACKETS; i++) {
		struct frame_want want = frame_random_want(ROOM, &random);
		struct tunnel_want tunnel = tunnel_random_want(&random);
		struct pcap_pkthdr header = {.ts.tv_sec = i};
		struct frame frame;

		want.tcp_flags = BS_TCP_ACK;
		want.udp = carrier == BS_CARRIER_UDP_OPTION || i & 1;
		want.trailer = tunnel.trailer = 0;
		frame = frame_build(&want, &random);
		payload_means_nothing(&frame);
		if (carrier == BS_CARRIER_GENEVE) {
			struct frame inner = frame;

			frame = tunnel_build(&inner, &tunnel, &random);
		}
		assert_int_equal(ops->tag(&frame.packet,
					 frame_data(&frame) - ops->bytes(&frame.packet), &sample),
			BS_REFUSE_NONE);
		header.caplen = header.len = frame.packet.len;
		pcap_dump((u_char *)dump, &header, frame.packet.data);
		frame_free(&frame);
	}
	pcap_dump_close(dump);
	pcap_close(pcap);
}

/* How many packets tshark shows for a filter. */
static unsigned
tshark_count(const char *path, const char *filter)
{
	char arguments[512], line[1024];
	unsigned lines = 0;
	FILE *tshark;

	snprintf(arguments, sizeof(arguments), "-Y '%s' -T fields -e frame.number", filter);
	tshark = tshark_open(path, arguments);
	while (fgets(line, sizeof(line), tshark) != NULL)
		lines++;
	assert_int_equal(pclose(tshark), 0);
	return lines;
}

/*
 * What tshark 4.0 knows: Geneve and its options; that UDP ends before IP does. Of
 * Ethertype 0x88B5 it shows but the bytes; what is behind is the frame as it was,
 * which carrier_test tells.
 */
static void
tshark_finds_every_carrier_right(void **state)
{
	static const struct {
		unsigned carrier;
		const char *filter; /* of which all packets are */
	} cases[] = {
		{BS_CARRIER_UDP_OPTION,
			"udp.checksum.status == 1 && (ipv6 || ip.checksum.status == 1)"
			" && frame contains 7f:14:b5:c0:10:00:00:00:01:23:45:67:89:ab:cd:ef"},
		{BS_CARRIER_ETHER, "eth.type == 0x88b5 && data.data[0:16] =="
				   " 10:00:00:00:01:23:45:67:89:ab:cd:ef:ff:ff:ff:ff"},
		{BS_CARRIER_GENEVE, "geneve.option.class == 0xffb5 && geneve.option.type == 1 &&"
				    " geneve.flags.critical == 0 && geneve.option.unknown.data =="
				    " 10:00:00:00:01:23:45:67:89:ab:cd:ef:ff:ff:ff:ff &&"
				    " (tcp.checksum.status == 1 || udp.checksum.status == 1)"},
	};
	char path[] = "/tmp/wire-carrier-XXXXXX";

	(void)state;
	if (no_tshark())
		skip();
	temporary(path);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		carrier_frames_write(path, cases[i].carrier);
		assert_int_equal(tshark_count(path, cases[i].filter), TSHARK_PACKETS);
		/* anything bad in any layer, and what cannot be dissected */
		assert_int_equal(
			tshark_count(path, "tcp.checksum.status == 0 ||"
					   " udp.checksum.status == 0 ||"
					   " ip.checksum.status == 0 ||"
					   " _ws.malformed || ip.bogus_ip_length ||"
					   " udp.length.bad || geneve.option.length.invalid"),
			0);
	}
	unlink(path);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_captured_packet_comes_back_to_the_byte),
		cmocka_unit_test(tshark_finds_tagged_packets_right),
		cmocka_unit_test(tshark_finds_every_carrier_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
