/* SPDX-License-Identifier: BSD-3-Clause */
/* See sock_diag.h. */
#include "sock_diag.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_BYTES 32768u
#define ANSWERS_MAX 64u /* datagrams of one answer; a port has few sockets that listen */

struct request {
	struct nlmsghdr head;
	struct inet_diag_req_v2 diag;
};

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

int
bs_sock_diag_open(void)
{
	const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	int error;

	if (fd < 0)
		return -errno;
	/* connected: datagrams of others than the kernel do not get in */
	if (connect(fd, (const struct sockaddr *)&kernel, sizeof(kernel)) == 0)
		return fd;
	error = errno;
	close(fd);
	return -error;
}

static void
read_address(const __be32 words[4], unsigned family, uint8_t address[16])
{
	if (family == AF_INET6) {
		memcpy(address, words, 16);
		return;
	}
	memcpy(address, mapped, sizeof(mapped));
	memcpy(address + sizeof(mapped), words, 4);
}

static void
write_address(const uint8_t address[16], unsigned family, __be32 words[4])
{
	if (family == AF_INET6)
		memcpy(words, address, 16);
	else
		memcpy(words, address + sizeof(mapped), 4);
}

/* Is the attribute of that type there, with a value that is not 0? */
static bool
has_flag(const uint8_t *at, size_t bytes, unsigned type)
{
	struct nlattr head;

	while (bytes >= sizeof(head)) {
		size_t step;

		memcpy(&head, at, sizeof(head));
		if (head.nla_len < sizeof(head) || head.nla_len > bytes)
			return false;
		if ((head.nla_type & NLA_TYPE_MASK) == type)
			return head.nla_len > NLA_HDRLEN && at[NLA_HDRLEN] != 0;
		step = NLA_ALIGN((size_t)head.nla_len);
		if (step > bytes)
			return false;
		at += step;
		bytes -= step;
	}
	return false;
}

static int
read_sock(const struct nlmsghdr *head, struct bs_sock *sock)
{
	const size_t bytes = head->nlmsg_len - NLMSG_HDRLEN;
	const uint8_t *at = (const uint8_t *)head + NLMSG_HDRLEN;
	struct inet_diag_msg message;

	if (bytes < sizeof(message))
		return -EBADMSG;
	memcpy(&message, at, sizeof(message));
	if (message.idiag_family != AF_INET && message.idiag_family != AF_INET6)
		return -EBADMSG;
	memset(sock, 0, sizeof(*sock));
	read_address(message.id.idiag_src, message.idiag_family, sock->ends.local);
	read_address(message.id.idiag_dst, message.idiag_family, sock->ends.remote);
	sock->ends.local_port = ntohs(message.id.idiag_sport);
	sock->ends.remote_port = ntohs(message.id.idiag_dport);
	sock->state = message.idiag_state;
	sock->inode = message.idiag_inode;
	sock->recv_q = message.idiag_rqueue;
	sock->send_q = message.idiag_wqueue;
	sock->v6_only =
		message.idiag_family == AF_INET6 &&
		has_flag(at + NLMSG_ALIGN(sizeof(message)),
			bytes > NLMSG_ALIGN(sizeof(message)) ? bytes - NLMSG_ALIGN(sizeof(message))
							     : 0,
			INET_DIAG_SKV6ONLY);
	return 0;
}

static int
read_error(const struct nlmsghdr *head)
{
	int error;

	if (head->nlmsg_len < NLMSG_HDRLEN + sizeof(error))
		return -EBADMSG;
	memcpy(&error, (const uint8_t *)head + NLMSG_HDRLEN, sizeof(error));
	return error < 0 && error > -4096 ? error : -EBADMSG;
}

int
bs_sock_diag_parse(const void *data, size_t bytes, uint32_t sequence, struct bs_sock *socks,
	unsigned max, unsigned *count)
{
	const uint8_t *at = data;
	bool one = false;

	while (bytes >= NLMSG_HDRLEN) {
		const struct nlmsghdr *head = (const void *)at;
		size_t step;

		if (head->nlmsg_len < NLMSG_HDRLEN || head->nlmsg_len > bytes)
			return -EBADMSG;
		/* of an answer that was given up */
		if (head->nlmsg_seq != sequence)
			return 0;
		if (head->nlmsg_type == NLMSG_ERROR)
			return read_error(head);
		if (head->nlmsg_type == NLMSG_DONE)
			return 1;
		if (head->nlmsg_type != SOCK_DIAG_BY_FAMILY)
			return -EBADMSG;
		if (*count < max) {
			if (read_sock(head, &socks[*count]) != 0)
				return -EBADMSG;
			(*count)++;
		}
		one = (head->nlmsg_flags & NLM_F_MULTI) == 0;
		step = NLMSG_ALIGN((size_t)head->nlmsg_len);
		if (step >= bytes)
			return one;
		at += step;
		bytes -= step;
	}
	return -EBADMSG;
}

/* The kernel answers before send() and recv() return: what is not there does not come. */
static int
ask(int fd, struct request *request, struct bs_sock *socks, unsigned max, unsigned *count)
{
	static uint32_t sequence;
	static _Alignas(struct nlmsghdr) uint8_t answer[ANSWER_BYTES];
	int ret = 0;

	request->head.nlmsg_len = sizeof(*request);
	request->head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
	request->head.nlmsg_flags |= NLM_F_REQUEST;
	request->head.nlmsg_seq = ++sequence;
	if (send(fd, request, sizeof(*request), MSG_DONTWAIT) != (ssize_t)sizeof(*request))
		return -errno;
	for (unsigned i = 0; i < ANSWERS_MAX && ret == 0; i++) {
		ssize_t n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT | MSG_TRUNC);

		if (n < 0)
			return -errno;
		if (n > (ssize_t)sizeof(answer))
			return -EBADMSG;
		ret = bs_sock_diag_parse(
			answer, (size_t)n, request->head.nlmsg_seq, socks, max, count);
	}
	return ret == 0 ? -EOVERFLOW : ret < 0 ? ret : 0;
}

static unsigned
family_of(const uint8_t address[16])
{
	return memcmp(address, mapped, sizeof(mapped)) == 0 ? AF_INET : AF_INET6;
}

int
bs_sock_diag_find(int fd, const struct bs_sock_ends *ends, struct bs_sock *sock)
{
	const unsigned family = family_of(ends->local);
	struct request request = {
		.diag =
			{
				.sdiag_family = (uint8_t)family,
				.sdiag_protocol = IPPROTO_TCP,
				.idiag_states = ~0u,
				.id =
					{
						.idiag_sport = htons(ends->local_port),
						.idiag_dport = htons(ends->remote_port),
						.idiag_cookie = {INET_DIAG_NOCOOKIE,
							INET_DIAG_NOCOOKIE},
					},
			},
	};
	unsigned count = 0;
	int ret;

	write_address(ends->local, family, request.diag.id.idiag_src);
	write_address(ends->remote, family, request.diag.id.idiag_dst);
	ret = ask(fd, &request, sock, 1, &count);
	return ret == 0 && count == 0 ? -EBADMSG : ret;
}

int
bs_sock_diag_bound(int fd, unsigned transport, uint16_t port, struct bs_sock *socks, unsigned max)
{
	static const uint8_t families[] = {AF_INET, AF_INET6};
	unsigned count = 0;

	for (unsigned i = 0; i < sizeof(families); i++) {
		struct request request = {
			.head = {.nlmsg_flags = NLM_F_DUMP},
			.diag =
				{
					.sdiag_family = families[i],
					.sdiag_protocol = (uint8_t)transport,
					.idiag_states = transport == IPPROTO_TCP
								? 1u << BS_SOCK_LISTEN
								: 1u << BS_SOCK_UNCONNECTED,
					.id = {.idiag_sport = htons(port)},
				},
		};
		int ret = ask(fd, &request, socks, max, &count);

		/* no IPv6 here */
		if (ret != 0 && (ret != -ENOENT || families[i] == AF_INET))
			return ret;
	}
	return (int)count;
}
