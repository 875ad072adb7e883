/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers of sock_diag, built byte by byte after linux/netlink.h and
 * linux/inet_diag.h, right ones and such as no kernel sends; and the sockets of
 * this process, as the kernel tells them.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sock_diag.h"

#define SEQUENCE 77u
#define DIAG 20u /* SOCK_DIAG_BY_FAMILY */
#define ERROR 2u
#define DONE 3u
#define MULTI 2u
#define HEAD 16u
#define MESSAGE 72u /* struct inet_diag_msg */

struct answer {
	_Alignas(8) uint8_t bytes[1024];
	size_t n;
};

static void
put(struct answer *answer, uint64_t value, unsigned bytes, bool network)
{
	for (unsigned i = 0; i < bytes; i++) {
		const unsigned place = network ? bytes - 1 - i : i;

		answer->bytes[answer->n + i] = place < 8 ? (uint8_t)(value >> 8 * place) : 0;
	}
	answer->n += bytes;
}

static void
put_head(struct answer *answer, unsigned bytes, unsigned type, unsigned flags, unsigned sequence)
{
	put(answer, bytes, 4, false);
	put(answer, type, 2, false);
	put(answer, flags, 2, false);
	put(answer, sequence, 4, false);
	put(answer, 4711, 4, false); /* of whom */
}

/* 10.0.0.2:6379 with 10.0.0.1:40000, inode 99, 300 unread, 400 unsent. */
static void
put_sock(struct answer *answer, unsigned family, unsigned flags, unsigned extra)
{
	put_head(answer, HEAD + MESSAGE + extra, DIAG, flags, SEQUENCE);
	put(answer, family, 1, false);
	put(answer, BS_SOCK_ESTABLISHED, 1, false);
	put(answer, 0, 2, false); /* timer, retrans */
	put(answer, 6379, 2, true);
	put(answer, 40000, 2, true);
	put(answer, 0x0a000002, 4, true);
	put(answer, 0, 12, true);
	put(answer, 0x0a000001, 4, true);
	put(answer, 0, 12, true);
	put(answer, 0, 12, false); /* interface, cookie */
	put(answer, 5, 4, false);  /* expires */
	put(answer, 300, 4, false);
	put(answer, 400, 4, false);
	put(answer, 0, 4, false); /* uid */
	put(answer, 99, 4, false);
}

static int
parse(const struct answer *answer, struct bs_sock *socks, unsigned *count)
{
	*count = 0;
	return bs_sock_diag_parse(answer->bytes, answer->n, SEQUENCE, socks, 4, count);
}

static void
a_socket_is_read_with_its_ends_and_queues(void **state)
{
	static const uint8_t service[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2};
	struct answer answer = {.n = 0};
	struct bs_sock sock[4];
	unsigned count;

	(void)state;
	put_sock(&answer, AF_INET, 0, 0);
	assert_int_equal(answer.n, HEAD + MESSAGE);
	assert_int_equal(parse(&answer, sock, &count), 1); /* one answer is all */
	assert_int_equal(count, 1);
	assert_memory_equal(sock[0].ends.local, service, 16);
	assert_int_equal(sock[0].ends.remote[15], 1);
	assert_int_equal(sock[0].ends.local_port, 6379);
	assert_int_equal(sock[0].ends.remote_port, 40000);
	assert_int_equal(sock[0].state, BS_SOCK_ESTABLISHED);
	assert_int_equal(sock[0].inode, 99);
	assert_int_equal(sock[0].recv_q, 300);
	assert_int_equal(sock[0].send_q, 400);
	assert_false(sock[0].v6_only);
}

static void
parts_of_a_list_end_with_done(void **state)
{
	struct answer answer = {.n = 0};
	struct bs_sock socks[4];
	unsigned count;

	(void)state;
	put_sock(&answer, AF_INET, MULTI, 0);
	put_sock(&answer, AF_INET6, MULTI, 0);
	assert_int_equal(parse(&answer, socks, &count), 0);
	assert_int_equal(count, 2);
	assert_int_equal(socks[1].ends.local[0], 10); /* an IPv6 address as it is */
	put_head(&answer, HEAD + 4, DONE, MULTI, SEQUENCE);
	put(&answer, 0, 4, false);
	assert_int_equal(parse(&answer, socks, &count), 1);
	assert_int_equal(count, 2);
	/* more than there is room for are left out */
	answer.n = 0;
	for (unsigned i = 0; i < 6; i++)
		put_sock(&answer, AF_INET, MULTI, 0);
	assert_int_equal(parse(&answer, socks, &count), 0);
	assert_int_equal(count, 4);
}

static void
the_attribute_of_ipv6_only_is_read(void **state)
{
	struct answer answer = {.n = 0};
	struct bs_sock socks[4];
	unsigned count;

	(void)state;
	put_sock(&answer, AF_INET6, 0, 16);
	put(&answer, 5, 2, false); /* attribute SHUTDOWN, of one byte, padded */
	put(&answer, 8, 2, false);
	put(&answer, 3, 4, false);
	put(&answer, 5, 2, false);
	put(&answer, 11, 2, false); /* SKV6ONLY */
	put(&answer, 1, 4, false);
	assert_int_equal(parse(&answer, socks, &count), 1);
	assert_true(socks[0].v6_only);
	answer.bytes[HEAD + MESSAGE + 12] = 0;
	assert_int_equal(parse(&answer, socks, &count), 1);
	assert_false(socks[0].v6_only);
	/* an attribute that says that it is longer than the rest, or than nothing */
	answer.bytes[HEAD + MESSAGE + 12] = 1;
	answer.bytes[HEAD + MESSAGE] = 200;
	assert_int_equal(parse(&answer, socks, &count), 1);
	assert_false(socks[0].v6_only);
	answer.bytes[HEAD + MESSAGE] = 0;
	assert_int_equal(parse(&answer, socks, &count), 1);
	assert_false(socks[0].v6_only);
}

static void
an_error_of_the_kernel_is_given_on(void **state)
{
	static const struct {
		int32_t said;
		int expected;
	} errors[] = {{-ENOENT, -ENOENT}, {-EPERM, -EPERM}, {0, -EBADMSG}, {5, -EBADMSG},
		{-5000, -EBADMSG}, {INT32_MIN, -EBADMSG}};
	struct bs_sock socks[4];
	unsigned count;

	(void)state;
	for (unsigned i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		struct answer answer = {.n = 0};

		put_head(&answer, HEAD + 20, ERROR, 0, SEQUENCE);
		put(&answer, (uint32_t)errors[i].said, 4, false);
		put(&answer, 0, 16, false);
		assert_int_equal(parse(&answer, socks, &count), errors[i].expected);
	}
	struct answer cut = {.n = 0};

	put_head(&cut, HEAD, ERROR, 0, SEQUENCE);
	assert_int_equal(parse(&cut, socks, &count), -EBADMSG);
}

/* Of a request that was given up. */
static void
an_answer_to_another_request_is_passed_over(void **state)
{
	struct answer answer = {.n = 0};
	struct bs_sock socks[4];
	unsigned count = 0;

	(void)state;
	put_sock(&answer, AF_INET, 0, 0);
	assert_int_equal(bs_sock_diag_parse(answer.bytes, answer.n, 78, socks, 4, &count), 0);
	assert_int_equal(count, 0);
}

static void
what_is_no_answer_is_refused(void **state)
{
	struct answer answer = {.n = 0};
	struct bs_sock socks[4];
	unsigned count;

	(void)state;
	put_sock(&answer, AF_INET, 0, 0);
	/* cut anywhere: the length says more than there is */
	for (size_t n = 0; n < HEAD + MESSAGE; n++) {
		answer.n = n;
		assert_int_equal(parse(&answer, socks, &count), -EBADMSG);
	}
	answer.n = HEAD + MESSAGE;
	/* any length that is not that of the message, or more with nothing behind it */
	for (uint32_t length = 0; length < 300; length++) {
		memcpy(answer.bytes, &length, 4);
		assert_int_equal(
			parse(&answer, socks, &count), length == HEAD + MESSAGE ? 1 : -EBADMSG);
	}
	answer.n = 0;
	put_sock(&answer, AF_UNIX, 0, 0);
	assert_int_equal(parse(&answer, socks, &count), -EBADMSG);
	answer.n = 0;
	put_sock(&answer, AF_INET, 0, 0);
	answer.bytes[4] = 99; /* type */
	assert_int_equal(parse(&answer, socks, &count), -EBADMSG);
}

static void
random_bytes_never_read_outside(void **state)
{
	uint64_t seed = 0x50c;

	(void)state;
	for (unsigned round = 0; round < 20000; round++) {
		struct answer answer = {.n = 0};
		struct bs_sock socks[4];
		unsigned count = 0;
		size_t bytes;
		uint8_t *exact;

		put_sock(&answer, round % 2 ? AF_INET6 : AF_INET, round % 3 ? MULTI : 0, 8);
		put(&answer, 0x000b0005, 4, false);
		put(&answer, 1, 4, false);
		put_sock(&answer, AF_INET, 0, 0);
		for (unsigned i = 0; i < 1 + round % 8; i++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			answer.bytes[(seed >> 33) % 28 + (seed >> 60 & 1 ? HEAD + MESSAGE : 0)] =
				(uint8_t)(seed >> 20);
		}
		/* of its very length, so that a sanitizer sees one byte too many */
		bytes = (seed >> 40) % (answer.n + 1);
		exact = malloc(bytes == 0 ? 1 : bytes);
		assert_non_null(exact);
		memcpy(exact, answer.bytes, bytes);
		bs_sock_diag_parse(exact, bytes, SEQUENCE, socks, 4, &count);
		assert_true(count <= 4);
		free(exact);
	}
}

/* --- real sockets ----------------------------------------------------------------------- */

static uint32_t
inode_of(int fd)
{
	struct stat it;

	assert_int_equal(fstat(fd, &it), 0);
	return (uint32_t)it.st_ino;
}

static int
listen_on(int family, uint16_t *port)
{
	struct sockaddr_in6 address = {.sin6_family = AF_INET6};
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
	const bool is_v4 = family == AF_INET;
	struct sockaddr *at = is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&address;
	socklen_t bytes = is_v4 ? sizeof(v4) : sizeof(address);
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, at, bytes) != 0)
		skip(); /* no IPv6 */
	assert_int_equal(listen(fd, 3), 0);
	assert_int_equal(getsockname(fd, at, &bytes), 0);
	*port = ntohs(is_v4 ? v4.sin_port : address.sin6_port);
	return fd;
}

static int
open_diag(void)
{
	int diag = bs_sock_diag_open();

	if (diag < 0)
		skip(); /* a kernel, or a sandbox, without it */
	return diag;
}

static void
who_listens_is_told_by_port_with_its_backlog(void **state)
{
	int diag = open_diag();
	uint16_t port;
	int fd = listen_on(AF_INET, &port);
	struct bs_sock socks[4];

	(void)state;
	assert_int_equal(bs_sock_diag_bound(diag, IPPROTO_TCP, port, socks, 4), 1);
	assert_int_equal(socks[0].inode, inode_of(fd));
	assert_int_equal(socks[0].state, BS_SOCK_LISTEN);
	assert_int_equal(socks[0].ends.local_port, port);
	assert_int_equal(socks[0].send_q, 3);
	assert_int_equal(socks[0].recv_q, 0);
	close(fd);
	assert_int_equal(bs_sock_diag_bound(diag, IPPROTO_TCP, port, socks, 4), 0);
	close(diag);
}

/* Its address is ::, which takes IPv4, too: one that asks with a mapped address finds it. */
static void
a_connection_and_who_listens_are_found_by_their_ends(void **state)
{
	int diag = open_diag();
	uint16_t port;
	int listener = listen_on(AF_INET6, &port), client, accepted;
	struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(0x7f000001),
		.sin_port = htons(port)};
	struct sockaddr_in from;
	socklen_t bytes = sizeof(from);
	struct bs_sock_ends ends = {.local_port = port};
	struct bs_sock sock;

	(void)state;
	memcpy(ends.local, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1", 16);
	assert_int_equal(bs_sock_diag_find(diag, &ends, &sock), 0);
	assert_int_equal(sock.state, BS_SOCK_LISTEN);
	assert_int_equal(sock.inode, inode_of(listener));
	assert_false(sock.v6_only);

	client = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(client, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(getsockname(client, (struct sockaddr *)&from, &bytes), 0);
	assert_int_equal(send(client, "hello", 5, 0), 5);
	assert_int_equal(bs_sock_diag_find(diag, &ends, &sock), 0);
	assert_int_equal(sock.recv_q, 1); /* one to accept */
	memcpy(ends.remote, ends.local, 16);
	ends.remote_port = ntohs(from.sin_port);
	assert_int_equal(bs_sock_diag_find(diag, &ends, &sock), 0);
	assert_int_equal(sock.state, BS_SOCK_ESTABLISHED);
	assert_int_equal(sock.inode, 0);
	assert_int_equal(sock.recv_q, 5);
	accepted = accept(listener, NULL, NULL);
	assert_int_equal(bs_sock_diag_find(diag, &ends, &sock), 0);
	assert_int_equal(sock.inode, inode_of(accepted));
	close(accepted);
	close(client);
	close(listener);
	ends.local_port = 1;
	assert_int_equal(bs_sock_diag_find(diag, &ends, &sock), -ENOENT);
	close(diag);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_socket_is_read_with_its_ends_and_queues),
		cmocka_unit_test(parts_of_a_list_end_with_done),
		cmocka_unit_test(the_attribute_of_ipv6_only_is_read),
		cmocka_unit_test(an_error_of_the_kernel_is_given_on),
		cmocka_unit_test(an_answer_to_another_request_is_passed_over),
		cmocka_unit_test(what_is_no_answer_is_refused),
		cmocka_unit_test(random_bytes_never_read_outside),
		cmocka_unit_test(who_listens_is_told_by_port_with_its_backlog),
		cmocka_unit_test(a_connection_and_who_listens_are_found_by_their_ends),
	};

	return cmocka_run_group_tests_name("sock_diag", tests, NULL, NULL);
}
