/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * /proc/<pid>/net as proc(5) and the kernel's net/ipv4/fib_trie.c write it: tables of
 * sockets and of addresses, and what is no such table. Words of addresses are
 * printed as numbers of this machine: written here for little endian.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc_net.h"

#define TCP_HEAD                                                                                   \
	"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid "       \
	" timeout inode\n"
#define REST " 00000000:00000000 00:00000000 00000000   999        0 "
#define LAST " 1 0000000000000000 100 0 0 10 0\n"

static char root[64];
static int dir;

static void
put(const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static int
make_root(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/bs_proc_net_XXXXXX");
	if (mkdtemp(root) == NULL)
		return -1;
	dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0;
}

static int
remove_root(void **state)
{
	static const char *const names[] = {"tcp", "tcp6", "udp", "udp6", "fib_trie", "if_inet6"};

	(void)state;
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlinkat(dir, names[i], 0);
	close(dir);
	return rmdir(root);
}

static void
who_listens_is_told_with_address_and_inode(void **state)
{
	static const uint8_t v4[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 99, [15] = 2};
	static const uint8_t v6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1};
	struct bs_sock socks[4];

	(void)state;
	put("tcp", TCP_HEAD "   0: 0200630A:18EB 00000000:0000 0A" REST "4711" LAST
			    "   1: 00000000:0050 00000000:0000 0A" REST "4712" LAST
			    /* connected, and behind it none that listens */
			    "   2: 0200630A:18EB 0100630A:9C40 01" REST "4713" LAST
			    "   3: 00000000:18EB 00000000:0000 0A" REST "4714" LAST);
	put("tcp6", TCP_HEAD "   0: B80D0120000000000000000001000000:18EB "
			     "00000000000000000000000000000000:0000 0A" REST "4715" LAST);
	put("udp", TCP_HEAD "  17: 00000000:0035 00000000:0000 07" REST "4716 2 0 0\n"
			    "  18: 0100007F:0035 0200007F:1000 01" REST "4717 2 0 0\n"
			    "  19: 0100007F:0035 00000000:0000 07" REST "4718 2 0 0\n");
	assert_int_equal(bs_proc_net_bound(dir, IPPROTO_TCP, 6379, socks, 4), 2);
	assert_memory_equal(socks[0].ends.local, v4, 16);
	assert_int_equal(socks[0].ends.local_port, 6379);
	assert_int_equal(socks[0].inode, 4711);
	assert_int_equal(socks[0].state, BS_SOCK_LISTEN);
	assert_memory_equal(socks[1].ends.local, v6, 16);
	assert_int_equal(socks[1].inode, 4715);
	assert_int_equal(bs_proc_net_bound(dir, IPPROTO_TCP, 80, socks, 4), 1);
	assert_int_equal(socks[0].ends.local[12], 0);
	assert_int_equal(bs_proc_net_bound(dir, IPPROTO_TCP, 81, socks, 4), 0);
	assert_int_equal(bs_proc_net_bound(dir, IPPROTO_UDP, 53, socks, 4), 2);
	assert_int_equal(socks[1].inode, 4718);
	/* no more than there is room for */
	assert_int_equal(bs_proc_net_bound(dir, IPPROTO_UDP, 53, socks, 1), 1);
}

static void
rows_that_make_no_sense_are_left_out(void **state)
{
	static const char *const rows[] = {"", "\n", ":", "0:", "   0: ", "   0: 0200630A",
		"   0: 0200630A:", "   0: 02:18EB 00000000:0000 0A" REST "1" LAST,
		"   0: ZZ00630A:18EB 00000000:0000 0A" REST "1" LAST,
		"   0: 0200630A:18EB 00000000:0000 0A\n", "x: 0200630A:18EB\n"};
	struct bs_sock socks[4];

	(void)state;
	assert_true(bs_proc_net_bound(dir, IPPROTO_TCP, 6379, socks, 4) < 0); /* no table */
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put("tcp", rows[i]);
		assert_int_equal(bs_proc_net_bound(dir, IPPROTO_TCP, 6379, socks, 4), 0);
	}
}

static void
addresses_of_the_namespace_are_known(void **state)
{
	static const uint8_t here[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 99, [15] = 2};
	static const uint8_t net[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 99};
	static const uint8_t prefix[16] = {
		[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 99, [15] = 20};
	static const uint8_t v6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1};
	static const uint8_t other6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 2};

	(void)state;
	assert_false(bs_proc_net_holds(dir, here));
	put("fib_trie", "Main:\n  +-- 0.0.0.0/0 3 0 5\n     +-- 10.99.0.0/24 2 0 2\n"
			"        |-- 10.99.0.0\n           /24 link UNICAST\n"
			"        |-- 10.99.0.2\n           /32 host LOCAL\n"
			"        |-- 10.99.0.255\n           /32 link BROADCAST\n"
			"        |-- 10.99.0.20\n           /32 link UNICAST\n");
	assert_true(bs_proc_net_holds(dir, here));
	assert_false(bs_proc_net_holds(dir, net));
	assert_false(bs_proc_net_holds(dir, prefix));
	put("if_inet6", "00000000000000000000000000000001 01 80 10 80       lo\n"
			"20010db8000000000000000000000001 02 40 00 80     eth0\n");
	assert_true(bs_proc_net_holds(dir, v6));
	assert_false(bs_proc_net_holds(dir, other6));
}

/* The loopback is in the namespace of this very process. */
static void
what_the_kernel_writes_is_read(void **state)
{
	static const uint8_t loopback[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(address);
	int net = open("/proc/self/net", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct bs_sock socks[4];
	struct stat it;

	(void)state;
	assert_true(net >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, bytes), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
	assert_int_equal(fstat(fd, &it), 0);
	assert_int_equal(bs_proc_net_bound(net, IPPROTO_TCP, ntohs(address.sin_port), socks, 4), 1);
	assert_int_equal(socks[0].inode, it.st_ino);
	assert_memory_equal(socks[0].ends.local, loopback, 16);
	assert_true(bs_proc_net_holds(net, loopback));
	close(fd);
	close(net);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_listens_is_told_with_address_and_inode),
		TEST(rows_that_make_no_sense_are_left_out),
		TEST(addresses_of_the_namespace_are_known),
		cmocka_unit_test(what_the_kernel_writes_is_read),
	};

	return cmocka_run_group_tests_name("proc_net", tests, NULL, NULL);
}
