/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The edits on packets that others made, and seen by others: every TCP packet of
 * the captures below $BUFSCOPE_PCAPS (else beside the repository, else skipped)
 * tagged and untagged; and tagged packets as tshark reads them (else skipped).
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
#include "bs_tcp_edit.h"
#include "wire_frames.h"

#define LINK_NULL_BYTES 4u
#define LINK_SLL_BYTES 16u
#define TSHARK_PACKETS 200u

struct totals {
	unsigned files, packets, completed, tagged, refused[BS_TCP_REFUSE_COUNT];
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
		return bs_packet_parse(packet);
	return bs_packet_parse_ip(packet, link == DLT_NULL	  ? LINK_NULL_BYTES
					  : link == DLT_LINUX_SLL ? LINK_SLL_BYTES
								  : 0);
}

/* Tags and untags one packet; fails the test unless every byte and field comes back. */
static void
round_trip(const struct pcap_pkthdr *header, const uint8_t *bytes, int link, struct totals *totals)
{
	uint8_t *block = malloc(BS_SHIM_OPTION_BYTES + header->caplen);
	uint8_t *data = block + BS_SHIM_OPTION_BYTES, *original = malloc(header->caplen + 1u);
	struct bs_packet packet = {.data = data, .caplen = header->caplen, .len = header->len};
	struct bs_packet before, tagged;
	enum bs_tcp_refusal refusal;
	struct bs_shim shim;

	memcpy(data, bytes, header->caplen);
	if (parse_link(&packet, link) != BS_PARSE_OK || packet.l4_protocol != 6)
		goto out;
	totals->packets++;
	if (packet.l4_checksum_partial && packet.payload_cap == packet.payload_len) {
		struct iovec payload = {data + packet.payload, packet.payload_len};

		assert_int_equal(bs_checksum_complete(&packet, data, &payload, 1), 0);
		if (header->len <= UINT16_MAX) /* larger ones have no IP length to go by */
			assert_int_equal(frame_get16(data + packet.l4 + 16),
				frame_l4_checksum(data, packet.l3, packet.l4, 6));
		totals->completed++;
	}
	before = packet;
	memcpy(original, data, header->caplen);
	refusal = bs_tcp_tag(&packet, block, &sample);
	totals->refused[refusal]++;
	if (refusal != BS_TCP_REFUSE_NONE) {
		assert_memory_equal(data, original, header->caplen);
		goto out;
	}
	totals->tagged++;
	/* What the parser sees is what the edit said. */
	tagged = (struct bs_packet){.data = block, .caplen = packet.caplen, .len = packet.len};
	assert_int_equal(parse_link(&tagged, link), BS_PARSE_OK);
	assert_int_equal(tagged.shim, packet.shim);
	assert_int_equal(tagged.payload, packet.payload);
	assert_int_equal(tagged.payload_len, before.payload_len);
	assert_int_equal(tagged.tcp_options, packet.tcp_options);
	assert_int_equal(bs_shim_option_decode(block + packet.shim, 20, &shim), 0);
	assert_true(shim.rpc_id == sample.rpc_id);

	tagged.l4_checksum_partial = 0; /* looks like one by chance, 1 in 65536 */
	assert_int_equal(bs_tcp_untag(&tagged, block), 0);
	assert_memory_equal(data, original, header->caplen);
	assert_int_equal(tagged.payload, before.payload);
out:
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
capture_round_trips(const char *path, struct totals *totals)
{
	FILE *pipe;
	pcap_t *pcap = capture_open(path, &pipe);
	struct pcap_pkthdr *header;
	const uint8_t *bytes;

	if (pcap == NULL)
		return; /* no capture, or one that libpcap cannot read */
	totals->files++;
	while (pcap_next_ex(pcap, &header, &bytes) == 1)
		round_trip(header, bytes, pcap_datalink(pcap), totals);
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
			capture_round_trips(entry->fts_path, &totals);
	fts_close(tree);
	free(path);

	print_message("%u files, %u TCP packets: %u completed, %u tagged", totals.files,
		totals.packets, totals.completed, totals.tagged);
	for (unsigned i = 1; i < BS_TCP_REFUSE_COUNT; i++)
		print_message("%s%u", i == 1 ? "; refused by reason " : " ", totals.refused[i]);
	print_message("\n");
	assert_true(totals.files > 0);
	assert_true(totals.tagged > totals.packets / 2);
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

static void
tshark_finds_tagged_packets_right(void **state)
{
	/* announcement, shim: version 1, no flags; id; remaining not known */
	static const char shim[] = "fd14b5c0100000000123456789abcdefffffffff";
	char path[] = "/tmp/wire-tagged-XXXXXX", command[512], line[512];
	unsigned lines = 0;
	FILE *tshark;
	int fd;

	(void)state;
	if (system("command -v tshark >/dev/null 2>&1") != 0) {
		print_message("no tshark: skipped\n");
		skip();
	}
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	tagged_frames_write(path);
	snprintf(command, sizeof(command),
		"tshark -n -r %s -o tcp.check_checksum:TRUE -o ip.check_checksum:TRUE -T fields"
		" -E separator=/s -E occurrence=f -e tcp.checksum.status -e tcp.options"
		" -e eth.type -e ip.checksum.status 2>/dev/null",
		path);
	tshark = popen(command, "r");
	assert_non_null(tshark);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_captured_packet_comes_back_to_the_byte),
		cmocka_unit_test(tshark_finds_tagged_packets_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
