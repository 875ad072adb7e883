/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Captures written byte by byte: formats, byte orders, link types, and files
 * that are cut, damaged or no captures at all.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "bs_capture.h"
#include "frame.h"

#define MAGIC_US 0xa1b2c3d4u
#define MAGIC_NS 0xa1b23c4du

/* A capture file in memory. big: written by a big-endian machine. */
struct file {
	uint8_t bytes[65536];
	size_t n;
	bool big;
};

static void
put(struct file *file, const void *bytes, size_t n)
{
	assert_true(file->n + n <= sizeof(file->bytes));
	memcpy(file->bytes + file->n, bytes, n);
	file->n += n;
}

static void
put_int(struct file *file, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++) {
		unsigned shift = 8 * (file->big ? bytes - 1 - i : i);
		uint8_t byte = (uint8_t)(value >> shift);

		put(file, &byte, 1);
	}
}

/* https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-04.html, section 4 */
static void
pcap_begin(struct file *file, uint32_t magic, bool big, unsigned link_type)
{
	file->n = 0;
	file->big = big;
	put_int(file, magic, 4);
	put_int(file, 2, 2);
	put_int(file, 4, 2);
	put_int(file, 0, 8);
	put_int(file, 65535, 4);
	put_int(file, link_type, 4);
}

/* Section 5 */
static void
pcap_record(struct file *file, uint32_t seconds, uint32_t fraction, const struct frame *f)
{
	put_int(file, seconds, 4);
	put_int(file, fraction, 4);
	put_int(file, f->n, 4);
	put_int(file, f->n, 4);
	put(file, f->bytes, f->n);
}

/* Two TCP packets of 100 and 0 payload bytes, 1.5 s apart. */
static void
two_packets(struct file *file, uint32_t magic, bool big)
{
	uint32_t fraction = magic == MAGIC_NS ? 123456789 : 123456;
	struct frame f;

	pcap_begin(file, magic, big, 1);
	frame_tcp4(&f, NULL, 0, 100);
	pcap_record(file, 1700000000, fraction, &f);
	frame_tcp4(&f, NULL, 0, 0);
	pcap_record(file, 1700000001, fraction + (magic == MAGIC_NS ? 500000000 : 500000), &f);
}

static struct bs_capture *
try_open(const void *bytes, size_t n, char error[BS_CAPTURE_ERROR_BYTES])
{
	struct bs_capture *capture;
	char path[64];
	int fd = memfd_create("capture", 0);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	strcpy(error, "-");
	capture = bs_capture_open(path, error);
	int saved = errno;

	close(fd);
	errno = saved;
	return capture;
}

static struct bs_capture *
open_file(const struct file *file)
{
	char error[BS_CAPTURE_ERROR_BYTES];
	struct bs_capture *capture = try_open(file->bytes, file->n, error);

	if (capture == NULL)
		fail_msg("%s", error);
	return capture;
}

static void
assert_refused(const void *bytes, size_t n, int expected_errno, const char *words)
{
	char error[BS_CAPTURE_ERROR_BYTES];

	assert_null(try_open(bytes, n, error));
	assert_int_equal(errno, expected_errno);
	if (strstr(error, words) == NULL || strncmp(error, "/proc/self/fd/", 14) != 0)
		fail_msg("\"%s\" does not say \"%s\"", error, words);
	assert_null(strchr(error, '\n'));
}

static void
assert_two_packets(struct bs_capture *capture, uint64_t fraction_ns)
{
	struct bs_capture_info info;
	struct bs_packet p;

	assert_int_equal(bs_capture_next(capture, &p), 1);
	assert_int_equal(p.number, 1);
	assert_int_equal(p.t_ns, 1700000000000000000 + fraction_ns);
	assert_int_equal(p.len, 154);
	assert_int_equal(p.caplen, 154);
	assert_int_equal(p.parse, BS_PARSE_OK);
	assert_int_equal(p.payload_len, 100);
	assert_int_equal(p.data[p.payload], 'x');
	assert_int_equal(bs_capture_next(capture, &p), 1);
	assert_int_equal(p.number, 2);
	assert_int_equal(p.t_ns, 1700000001500000000 + fraction_ns);
	assert_int_equal(p.payload_len, 0);
	assert_int_equal(bs_capture_next(capture, &p), 0);
	assert_int_equal(bs_capture_next(capture, &p), 0);

	bs_capture_info(capture, &info);
	assert_int_equal(info.packets, 2);
	assert_int_equal(info.bytes, 154 + 54);
	assert_int_equal(info.t_first, 1700000000000000000 + fraction_ns);
	assert_int_equal(info.t_last, 1700000001500000000 + fraction_ns);
	assert_int_equal(info.truncated_at_packet, 0);
	assert_string_equal(info.link_type, "EN10MB");
	assert_string_equal(bs_capture_error(capture), "");
}

static void
pcap_is_read_in_both_orders_and_precisions(void **state)
{
	static struct file file;

	(void)state;
	for (unsigned big = 0; big < 2; big++) {
		struct bs_capture *capture;
		struct bs_capture_info info;

		two_packets(&file, MAGIC_US, big);
		capture = open_file(&file);
		assert_two_packets(capture, 123456000);
		bs_capture_info(capture, &info);
		assert_int_equal(info.file_bytes, file.n);
		assert_int_equal(info.file_bytes_read, file.n);
		bs_capture_close(capture);

		two_packets(&file, MAGIC_NS, big);
		capture = open_file(&file);
		assert_two_packets(capture, 123456789);
		bs_capture_close(capture);
	}
}

/* https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html, section 3.1 */
static void
block(struct file *file, uint32_t type, const struct file *body)
{
	size_t padded = (body->n + 3) / 4 * 4;

	put_int(file, type, 4);
	put_int(file, 12 + padded, 4);
	put(file, body->bytes, body->n);
	put(file, "\0\0\0", padded - body->n);
	put_int(file, 12 + padded, 4);
}

static void
pcapng_begin(struct file *file, bool big)
{
	static struct file body;

	file->n = body.n = 0;
	file->big = body.big = big;
	put_int(&body, 0x1a2b3c4d, 4);
	put_int(&body, 1, 2);
	put_int(&body, 0, 2);
	put_int(&body, UINT64_MAX, 8);
	block(file, 0x0a0d0d0a, &body);
}

/* tsresol: of option if_tsresol, 0 for none (microseconds). */
static void
pcapng_interface(struct file *file, unsigned link_type, unsigned tsresol)
{
	static struct file body;

	body.n = 0;
	body.big = file->big;
	put_int(&body, link_type, 2);
	put_int(&body, 0, 2);
	put_int(&body, 65535, 4);
	if (tsresol != 0) {
		put_int(&body, 9, 2);
		put_int(&body, 1, 2);
		put(&body, (uint8_t[]){(uint8_t)tsresol, 0, 0, 0}, 4);
		put_int(&body, 0, 4);
	}
	block(file, 1, &body);
}

static void
pcapng_packet(struct file *file, unsigned interface, uint64_t ticks, const struct frame *f)
{
	static struct file body;

	body.n = 0;
	body.big = file->big;
	put_int(&body, interface, 4);
	put_int(&body, ticks >> 32, 4);
	put_int(&body, ticks & 0xffffffff, 4);
	put_int(&body, f->n, 4);
	put_int(&body, f->n, 4);
	put(&body, f->bytes, f->n);
	block(file, 6, &body);
}

static void
pcapng_is_read_with_the_resolution_of_each_interface(void **state)
{
	static struct file file, unknown;
	struct frame f;

	(void)state;
	put_int(&unknown, 0x12345678, 4);
	for (unsigned big = 0; big < 2; big++) {
		pcapng_begin(&file, big);
		pcapng_interface(&file, 1, 9);
		pcapng_interface(&file, 1, 6);
		block(&file, 0x0bad, &unknown);
		frame_tcp4(&f, NULL, 0, 100);
		pcapng_packet(&file, 0, 1700000000123456000, &f);
		frame_tcp4(&f, NULL, 0, 0);
		pcapng_packet(&file, 1, 1700000001623456, &f);
		struct bs_capture *capture = open_file(&file);

		assert_two_packets(capture, 123456000);
		bs_capture_close(capture);
	}
}

static void
pcapng_of_two_link_types_says_why_it_ends(void **state)
{
	static struct file file;
	struct bs_capture *capture;
	struct bs_capture_info info;
	struct bs_packet p;
	struct frame f;

	(void)state;
	pcapng_begin(&file, false);
	pcapng_interface(&file, 1, 0);
	frame_tcp4(&f, NULL, 0, 100);
	pcapng_packet(&file, 0, 1700000000000000, &f);
	pcapng_interface(&file, 113, 0);
	pcapng_packet(&file, 1, 1700000000000000, &f);
	capture = open_file(&file);
	assert_int_equal(bs_capture_next(capture, &p), 1);
	assert_int_equal(bs_capture_next(capture, &p), -EBADMSG);
	assert_int_equal(bs_capture_next(capture, &p), -EBADMSG);
	assert_non_null(strstr(bs_capture_error(capture), "packet 2: "));
	assert_non_null(strstr(bs_capture_error(capture), "type"));
	bs_capture_info(capture, &info);
	assert_int_equal(info.packets, 1);
	assert_int_equal(info.truncated_at_packet, 2);
	bs_capture_close(capture);
}

/* gzip of the first n bytes, as one member, appended at out; returns its length. */
static size_t
gzip(const uint8_t *bytes, size_t n, uint8_t *out, size_t room)
{
	z_stream zlib = {0};

	assert_int_equal(deflateInit2(&zlib, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	zlib.next_in = (uint8_t *)(uintptr_t)bytes;
	zlib.avail_in = (uInt)n;
	zlib.next_out = out;
	zlib.avail_out = (uInt)room;
	assert_int_equal(deflate(&zlib, Z_FINISH), Z_STREAM_END);
	deflateEnd(&zlib);
	return room - zlib.avail_out;
}

static void
gzip_is_read_also_in_several_members(void **state)
{
	static struct file file, packed;
	struct bs_capture *capture;
	struct bs_capture_info info;

	(void)state;
	two_packets(&file, MAGIC_NS, false);
	packed.n = gzip(file.bytes, file.n, packed.bytes, sizeof(packed.bytes));
	capture = open_file(&packed);
	assert_two_packets(capture, 123456789);
	bs_capture_info(capture, &info);
	assert_int_equal(info.file_bytes, packed.n);
	assert_int_equal(info.file_bytes_read, packed.n);
	bs_capture_close(capture);

	packed.n = gzip(file.bytes, 50, packed.bytes, sizeof(packed.bytes));
	packed.n += gzip(file.bytes + 50, 0, packed.bytes + packed.n, 1000);
	packed.n += gzip(file.bytes + 50, file.n - 50, packed.bytes + packed.n, 1000);
	put(&packed, "\0\0\0", 3); /* padding of a tape */
	capture = open_file(&packed);
	assert_two_packets(capture, 123456789);
	bs_capture_close(capture);
}

static void
standard_input_is_read_from_a_pipe(void **state)
{
	static struct file file;
	char error[BS_CAPTURE_ERROR_BYTES];
	struct bs_capture *capture;
	struct bs_capture_info info;
	int ends[2], saved = dup(STDIN_FILENO);

	(void)state;
	two_packets(&file, MAGIC_US, false);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], file.bytes, file.n), file.n);
	close(ends[1]);
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	capture = bs_capture_open("-", error);
	dup2(saved, STDIN_FILENO);
	close(saved);
	assert_non_null(capture);
	assert_two_packets(capture, 123456000);
	bs_capture_info(capture, &info);
	assert_int_equal(info.file_bytes, 0);
	assert_int_equal(info.file_bytes_read, file.n);
	bs_capture_close(capture);
}

/* A record of this link type: link header, then IPv4 (or 6) with TCP. */
static void
assert_link(unsigned link_type, const void *header, size_t bytes, unsigned version,
	const char *name, enum bs_parse parse)
{
	static struct file file;
	struct bs_capture *capture;
	struct bs_capture_info info;
	struct bs_packet p;
	struct frame f = {.n = 0};

	frame_put(&f, header, bytes);
	if (version == 4)
		frame_ipv4(&f, 6, 0x0a000001, 0x0a000002);
	else
		frame_ipv6(&f, 6, 1, 2);
	frame_tcp(&f, 40000, 80, BS_TCP_ACK, NULL, 0);
	frame_end_ip(&f);
	pcap_begin(&file, MAGIC_US, false, link_type);
	pcap_record(&file, 1, 0, &f);
	f.n = 2; /* shorter than any link header */
	pcap_record(&file, 1, 0, &f);
	capture = open_file(&file);
	bs_capture_info(capture, &info);
	assert_string_equal(info.link_type, name);
	assert_int_equal(bs_capture_next(capture, &p), 1);
	assert_int_equal(p.parse, parse);
	if (parse == BS_PARSE_OK) {
		assert_int_equal(p.tuple.ip_version, version);
		assert_int_equal(p.tuple.port[0], 40000);
		assert_int_equal(p.l4, bytes + (version == 4 ? 20 : 40));
	}
	assert_int_equal(bs_capture_next(capture, &p), 1);
	assert_int_not_equal(p.parse, BS_PARSE_OK);
	assert_int_equal(bs_capture_next(capture, &p), 0);
	bs_capture_close(capture);
}

static void
link_types_are_read(void **state)
{
	static const char sll[] = "\0\4\0\1\0\6aaaaaa\0\0\x08\0";
	static const char sll_vlan[] = "\0\4\0\1\0\6aaaaaa\0\0\x81\0\0\5\x86\xdd";
	static const char sll2[] = "\x08\0\0\0\0\0\0\3\0\1\0\6aaaaaa\0";

	(void)state;
	assert_link(113, sll, 16, 4, "LINUX_SLL", BS_PARSE_OK);
	assert_link(113, sll_vlan, 20, 6, "LINUX_SLL", BS_PARSE_OK);
	assert_link(276, sll2, 20, 4, "LINUX_SLL2", BS_PARSE_OK);
	assert_link(12, "", 0, 4, "RAW", BS_PARSE_OK);
	assert_link(101, "", 0, 6, "RAW", BS_PARSE_OK);
	assert_link(228, "", 0, 4, "IPV4", BS_PARSE_OK);
	assert_link(229, "", 0, 6, "IPV6", BS_PARSE_OK);
	assert_link(0, "\2\0\0\0", 4, 4, "NULL", BS_PARSE_OK);
	assert_link(0, "\0\0\0\2", 4, 4, "NULL", BS_PARSE_OK);
	assert_link(0, "\x1e\0\0\0", 4, 6, "NULL", BS_PARSE_OK);
	assert_link(0, "\0\0\0\x1c", 4, 6, "NULL", BS_PARSE_OK);
	assert_link(0, "\7\0\0\0", 4, 4, "NULL", BS_PARSE_NOT_IP);
	assert_link(108, "\0\0\0\x18", 4, 6, "LOOP", BS_PARSE_OK);
	assert_link(108, "\2\0\0\0", 4, 4, "LOOP", BS_PARSE_NOT_IP);
}

static void
other_link_types_are_refused_by_name(void **state)
{
	static struct file file;

	(void)state;
	pcap_begin(&file, MAGIC_US, false, 105);
	assert_refused(file.bytes, file.n, EPROTONOSUPPORT, "IEEE802_11 (105)");
	pcap_begin(&file, MAGIC_US, false, 147); /* reserved for private use */
	assert_refused(file.bytes, file.n, EPROTONOSUPPORT, "(147)");
}

static void
file_without_a_packet_is_a_capture(void **state)
{
	static struct file file;
	struct bs_capture *capture;
	struct bs_capture_info info;
	struct bs_packet p;

	(void)state;
	pcap_begin(&file, MAGIC_US, false, 1);
	capture = open_file(&file);
	assert_int_equal(bs_capture_next(capture, &p), 0);
	bs_capture_info(capture, &info);
	assert_int_equal(info.packets, 0);
	assert_int_equal(info.t_first, 0);
	assert_int_equal(info.truncated_at_packet, 0);
	bs_capture_close(capture);
}

static void
files_that_are_no_captures_are_refused(void **state)
{
	static struct file file;
	char error[BS_CAPTURE_ERROR_BYTES];

	(void)state;
	assert_refused("", 0, ENODATA, "empty");
	file.n = gzip(file.bytes, 0, file.bytes, sizeof(file.bytes));
	assert_refused(file.bytes, file.n, ENODATA, "empty");
	pcap_begin(&file, MAGIC_US, false, 1);
	for (size_t n = 1; n < file.n; n++)
		assert_refused(file.bytes, n, EBADMSG, "ends within its header");
	assert_refused("GET / HTTP/1.1\r\n\r\nnot a capture", 32, EBADMSG, "unknown file format");
	assert_refused("\x28\xb5\x2f\xfd____________", 16, EBADMSG, "zstd");
	assert_refused("\x1f\x8b____________________", 22, EBADMSG, "gzip data is damaged");
	assert_refused("\x1f\x8b", 2, EBADMSG, "gzip data ends early");

	assert_null(bs_capture_open("/nonexistent/file.pcap", error));
	assert_int_equal(errno, ENOENT);
	assert_string_equal(error, "/nonexistent/file.pcap: No such file or directory");
	assert_null(bs_capture_open("/", error));
	assert_int_equal(errno, EISDIR);
	assert_string_equal(error, "/: Is a directory");
}

/* Every length of a file of two packets: those that are whole are given, the cut one is named. */
static void
assert_cut(const uint8_t *bytes, size_t n, size_t first_end, size_t second_end)
{
	char error[BS_CAPTURE_ERROR_BYTES];
	struct bs_capture *capture = try_open(bytes, n, error);
	uint64_t whole = n >= second_end ? 2 : n >= first_end ? 1 : 0;
	bool cut = n != 24 && n != first_end && n != second_end;
	struct bs_capture_info info;
	struct bs_packet p;

	assert_non_null(capture);
	for (uint64_t i = 0; i < whole; i++)
		assert_int_equal(bs_capture_next(capture, &p), 1);
	assert_int_equal(bs_capture_next(capture, &p), 0);
	bs_capture_info(capture, &info);
	assert_int_equal(info.packets, whole);
	assert_int_equal(info.truncated_at_packet, cut ? whole + 1 : 0);
	if (cut)
		assert_non_null(strstr(bs_capture_error(capture), "ends in the middle"));
	else
		assert_string_equal(bs_capture_error(capture), "");
	bs_capture_close(capture);
}

static void
cut_record_is_named_and_those_before_are_given(void **state)
{
	static struct file file;

	(void)state;
	two_packets(&file, MAGIC_US, false);
	for (size_t n = 24; n <= file.n; n++)
		assert_cut(file.bytes, n, 24 + 16 + 154, file.n);
}

static void
cut_gzip_gives_what_it_holds(void **state)
{
	static struct file file, packed;
	uint64_t most = 0;

	(void)state;
	two_packets(&file, MAGIC_US, false);
	packed.n = gzip(file.bytes, file.n, packed.bytes, sizeof(packed.bytes));
	for (size_t n = 1; n < packed.n; n++) {
		char error[BS_CAPTURE_ERROR_BYTES];
		struct bs_capture *capture = try_open(packed.bytes, n, error);
		struct bs_capture_info info;
		struct bs_packet p;
		int result;

		if (capture == NULL)
			continue;
		while ((result = bs_capture_next(capture, &p)) == 1)
			;
		assert_int_equal(result, 0);
		bs_capture_info(capture, &info);
		assert_int_equal(info.truncated_at_packet, info.packets + 1);
		assert_non_null(strstr(bs_capture_error(capture), "gzip data ends early"));
		most = info.packets;
		bs_capture_close(capture);
	}
	/* Only the trailer is missing in the end: all packets came out. */
	assert_int_equal(most, 2);
}

static void
damage_is_an_error_behind_the_packets_before_it(void **state)
{
	static struct file file, packed;
	struct bs_capture *capture;
	struct bs_capture_info info;
	struct bs_packet p;

	(void)state;
	two_packets(&file, MAGIC_US, false);
	memset(file.bytes + 24 + 16 + 154 + 8, 0xff, 4); /* captured length of the second */
	put(&file, file.bytes, 200);
	capture = open_file(&file);
	assert_int_equal(bs_capture_next(capture, &p), 1);
	assert_int_equal(bs_capture_next(capture, &p), -EBADMSG);
	assert_non_null(strstr(bs_capture_error(capture), "packet 2: "));
	bs_capture_close(capture);

	two_packets(&file, MAGIC_US, false);
	packed.n = gzip(file.bytes, file.n, packed.bytes, sizeof(packed.bytes));
	packed.bytes[packed.n - 8] ^= 1; /* CRC */
	capture = open_file(&packed);
	assert_int_equal(bs_capture_next(capture, &p), 1);
	assert_int_equal(bs_capture_next(capture, &p), 1);
	assert_int_equal(bs_capture_next(capture, &p), -EBADMSG);
	assert_non_null(strstr(bs_capture_error(capture), "gzip data is damaged"));
	bs_capture_info(capture, &info);
	assert_int_equal(info.packets, 2);
	assert_int_equal(info.truncated_at_packet, 3);
	bs_capture_close(capture);
}

static void
strange_times_and_lengths_are_made_good(void **state)
{
	static struct file file;
	struct bs_capture *capture;
	struct bs_capture_info info;
	struct bs_packet p;
	struct frame f;

	(void)state;
	frame_tcp4(&f, NULL, 0, 0);
	pcap_begin(&file, MAGIC_NS, false, 1);
	pcap_record(&file, 100, 1999999999, &f);
	pcap_record(&file, 0xffffffff, 0, &f); /* 2106 */
	pcap_record(&file, 7, 0xffffffff, &f);
	pcap_record(&file, 50, 0, &f);
	memset(file.bytes + file.n - 54 - 4, 0, 4); /* length on the wire 0 */
	capture = open_file(&file);
	assert_int_equal(bs_capture_next(capture, &p), 1);
	assert_int_equal(p.t_ns, 101999999999);
	assert_int_equal(bs_capture_next(capture, &p), 1);
	assert_int_equal(p.t_ns, 4294967295000000000);
	assert_int_equal(bs_capture_next(capture, &p), 1);
	assert_int_equal(p.t_ns, 7000000000);
	assert_int_equal(bs_capture_next(capture, &p), 1);
	assert_int_equal(p.len, 54);
	assert_int_equal(p.parse, BS_PARSE_OK);
	bs_capture_info(capture, &info);
	assert_int_equal(info.t_first, 7000000000);
	assert_int_equal(info.t_last, 4294967295000000000);
	bs_capture_close(capture);

	pcapng_begin(&file, false);
	pcapng_interface(&file, 1, 0x80); /* 2^-0: whole seconds */
	pcapng_packet(&file, 0, UINT64_MAX >> 1, &f);
	pcapng_packet(&file, 0, UINT64_MAX, &f);
	capture = open_file(&file);
	assert_int_equal(bs_capture_next(capture, &p), 1);
	assert_int_equal(p.t_ns, INT64_MAX);
	assert_int_equal(bs_capture_next(capture, &p), 1);
	bs_capture_close(capture);
}

static void
closing_nothing_is_fine(void **state)
{
	(void)state;
	bs_capture_close(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pcap_is_read_in_both_orders_and_precisions),
		cmocka_unit_test(pcapng_is_read_with_the_resolution_of_each_interface),
		cmocka_unit_test(pcapng_of_two_link_types_says_why_it_ends),
		cmocka_unit_test(gzip_is_read_also_in_several_members),
		cmocka_unit_test(standard_input_is_read_from_a_pipe),
		cmocka_unit_test(link_types_are_read),
		cmocka_unit_test(other_link_types_are_refused_by_name),
		cmocka_unit_test(file_without_a_packet_is_a_capture),
		cmocka_unit_test(files_that_are_no_captures_are_refused),
		cmocka_unit_test(cut_record_is_named_and_those_before_are_given),
		cmocka_unit_test(cut_gzip_gives_what_it_holds),
		cmocka_unit_test(damage_is_an_error_behind_the_packets_before_it),
		cmocka_unit_test(strange_times_and_lengths_are_made_good),
		cmocka_unit_test(closing_nothing_is_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
