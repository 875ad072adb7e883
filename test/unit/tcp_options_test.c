/* SPDX-License-Identifier: BSD-3-Clause */
/* Option lists as the RFCs draw them, as stacks lay them out, and broken. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "frame.h"

static struct bs_packet
parse_options(const void *options, size_t bytes)
{
	struct frame f;
	struct bs_packet p;

	frame_tcp4(&f, options, bytes, 10);
	assert_int_equal(frame_parse(&f, &p), BS_PARSE_OK);
	assert_int_equal(p.payload, 54 + bytes);
	assert_int_equal(p.payload_len, 10);
	return p;
}

/* A literal without its NUL. */
#define OPTIONS(text) parse_options(text, sizeof(text) - 1)

static void
timestamp_alone_in_both_layouts(void **state)
{
	struct bs_packet fast = OPTIONS("\1\1\10\12\xde\xad\xbe\xef\1\2\3\4");
	struct bs_packet slow = OPTIONS("\10\12\xde\xad\xbe\xef\1\2\3\4\1\1");

	(void)state;
	assert_int_equal(fast.tcp_options, BS_TCPOPT_TIMESTAMP);
	assert_int_equal(fast.tsval, 0xdeadbeef);
	assert_int_equal(fast.tsecr, 0x01020304);
	assert_int_equal(slow.tcp_options, BS_TCPOPT_TIMESTAMP);
	assert_int_equal(slow.tsval, 0xdeadbeef);
	assert_int_equal(slow.tsecr, 0x01020304);
}

static void
options_of_a_linux_syn(void **state)
{
	/* MSS 1460, SACK permitted, timestamp, NOP, window scale 7. */
	struct bs_packet p = OPTIONS("\2\4\5\xb4\4\2\10\12\0\0\1\0\0\0\0\0\1\3\3\7");

	(void)state;
	assert_int_equal(p.tcp_options,
		BS_TCPOPT_MSS | BS_TCPOPT_SACK_PERMITTED | BS_TCPOPT_TIMESTAMP | BS_TCPOPT_WSCALE);
	assert_int_equal(p.mss, 1460);
	assert_int_equal(p.wscale, 7);
	assert_int_equal(p.tsval, 256);
	assert_int_equal(p.tsecr, 0);
}

static void
window_scale_is_at_most_14(void **state)
{
	(void)state;
	assert_int_equal(OPTIONS("\3\3\16\0").wscale, 14);
	assert_int_equal(OPTIONS("\3\3\17\0").wscale, 14);
	assert_int_equal(OPTIONS("\3\3\xff\0").wscale, 14);
}

static void
sack_blocks_are_read(void **state)
{
	/* RFC 2018 section 4, case 2: data 5500 to 8500 arrived behind a hole. */
	struct bs_packet one = OPTIONS("\1\1\5\12\0\0\x15\x7c\0\0\x21\x34");
	struct bs_packet four = OPTIONS("\5\42\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\4"
					"\0\0\0\5\0\0\0\6\xff\xff\xff\xf0\0\0\0\x8\1\1");

	(void)state;
	assert_int_equal(one.tcp_options, BS_TCPOPT_SACK);
	assert_int_equal(one.sack_count, 1);
	assert_int_equal(one.sack[0].begin, 5500);
	assert_int_equal(one.sack[0].end, 8500);
	assert_int_equal(four.sack_count, 4);
	assert_int_equal(four.sack[1].begin, 3);
	assert_int_equal(four.sack[3].begin, 0xfffffff0);
	assert_int_equal(four.sack[3].end, 8);
}

static void
signed_segments_are_marked(void **state)
{
	(void)state;
	assert_int_equal(OPTIONS("\23\22aaaaaaaaaaaaaaaa\1\1").tcp_options, BS_TCPOPT_MD5_AO);
	assert_int_equal(OPTIONS("\35\20\1\1bbbbbbbbbbbb").tcp_options, BS_TCPOPT_MD5_AO);
}

static void
shim_behind_the_fixed_header_is_found(void **state)
{
	struct bs_packet p = OPTIONS("\xfd\x14\xb5\xc0"
				     "0123456789abcdef"
				     "\1\1\10\12\0\0\0\1\0\0\0\2");

	(void)state;
	assert_int_equal(p.tcp_options, BS_TCPOPT_SHIM | BS_TCPOPT_TIMESTAMP);
	assert_int_equal(p.shim, 54);
	assert_int_equal(p.tsecr, 2);
}

static void
shim_anywhere_in_the_list_is_found(void **state)
{
	struct bs_packet p = OPTIONS("\1\1\1\xfd\x14\xb5\xc0"
				     "0123456789abcdef"
				     "\0");

	(void)state;
	assert_int_equal(p.tcp_options, BS_TCPOPT_SHIM);
	assert_int_equal(p.shim, 57);
}

static void
announcement_is_found(void **state)
{
	struct bs_packet p = OPTIONS("\2\4\5\xb4\xfd\4\xb5\xc1");

	(void)state;
	assert_int_equal(p.tcp_options, BS_TCPOPT_MSS | BS_TCPOPT_ANNOUNCE);
	assert_int_equal(p.announce, 58);
	assert_int_equal(p.shim, 0);
}

static void
experiments_of_others_are_foreign(void **state)
{
	(void)state;
	/* TCP Fast Open's ExID, RFC 7413; kind 254; our ExIDs with other lengths; too short. */
	assert_int_equal(OPTIONS("\xfd\4\xf9\x89").tcp_options, BS_TCPOPT_FOREIGN_EXP);
	assert_int_equal(OPTIONS("\xfe\4\xb5\xc1").tcp_options, BS_TCPOPT_FOREIGN_EXP);
	assert_int_equal(OPTIONS("\xfd\4\xb5\xc0").tcp_options, BS_TCPOPT_FOREIGN_EXP);
	assert_int_equal(OPTIONS("\xfd\5\xb5\xc1z\0\0\0").tcp_options, BS_TCPOPT_FOREIGN_EXP);
	assert_int_equal(OPTIONS("\xfd\2\0\0").tcp_options, BS_TCPOPT_FOREIGN_EXP);
	assert_int_equal(OPTIONS("\xfd\3\xb5\0").tcp_options, BS_TCPOPT_FOREIGN_EXP);
}

static void
second_shim_does_not_replace_the_first(void **state)
{
	struct bs_packet p = OPTIONS("\xfd\x14\xb5\xc0"
				     "0123456789abcdef"
				     "\xfd\x14\xb5\xc0"
				     "0123456789abcdef");

	(void)state;
	assert_int_equal(p.shim, 54);
	assert_int_equal(p.tcp_options, BS_TCPOPT_SHIM | BS_TCPOPT_FOREIGN_EXP);
}

static void
broken_lists_are_malformed_from_there_on(void **state)
{
	(void)state;
	/* Length 0, 1, past the end, missing. */
	assert_int_equal(OPTIONS("\2\0\5\xb4").tcp_options, BS_TCPOPT_MALFORMED);
	assert_int_equal(OPTIONS("\2\1\5\xb4").tcp_options, BS_TCPOPT_MALFORMED);
	assert_int_equal(OPTIONS("\10\12\0\0\0\0\0\0").tcp_options, BS_TCPOPT_MALFORMED);
	assert_int_equal(OPTIONS("\1\1\1\2").tcp_options, BS_TCPOPT_MALFORMED);
	assert_int_equal(
		OPTIONS("\2\4\5\xb4\3\xff\7\0").tcp_options, BS_TCPOPT_MSS | BS_TCPOPT_MALFORMED);
}

static void
known_options_of_wrong_length_are_passed_over(void **state)
{
	(void)state;
	assert_int_equal(OPTIONS("\2\3\5\1\3\3\2\0").tcp_options, BS_TCPOPT_WSCALE);
	assert_int_equal(OPTIONS("\10\11\0\0\0\1\0\0\0\3\3\2").tcp_options, BS_TCPOPT_WSCALE);
	assert_int_equal(OPTIONS("\5\11\0\0\0\1\0\0\0\3\3\2").tcp_options, BS_TCPOPT_WSCALE);
	assert_int_equal(OPTIONS("\5\2\4\3\0\3\2\3\3\3\1\0").tcp_options, BS_TCPOPT_WSCALE);
}

static void
nothing_counts_behind_the_end_of_the_list(void **state)
{
	(void)state;
	assert_int_equal(OPTIONS("\0\2\4\5").tcp_options, 0);
	assert_int_equal(OPTIONS("\1\0\3\3").tcp_options, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timestamp_alone_in_both_layouts),
		cmocka_unit_test(options_of_a_linux_syn),
		cmocka_unit_test(window_scale_is_at_most_14),
		cmocka_unit_test(sack_blocks_are_read),
		cmocka_unit_test(signed_segments_are_marked),
		cmocka_unit_test(shim_behind_the_fixed_header_is_found),
		cmocka_unit_test(shim_anywhere_in_the_list_is_found),
		cmocka_unit_test(announcement_is_found),
		cmocka_unit_test(experiments_of_others_are_foreign),
		cmocka_unit_test(second_shim_does_not_replace_the_first),
		cmocka_unit_test(broken_lists_are_malformed_from_there_on),
		cmocka_unit_test(known_options_of_wrong_length_are_passed_over),
		cmocka_unit_test(nothing_counts_behind_the_end_of_the_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
