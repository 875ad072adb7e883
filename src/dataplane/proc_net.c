/* SPDX-License-Identifier: BSD-3-Clause */
/* See proc_net.h. */
#include "proc_net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 512u
#define LINES_MAX 65536u /* of a file; a table of routes may be longer */

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

static FILE *
open_at(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK), error;
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");

	if (fd >= 0 && file == NULL) {
		error = errno;
		close(fd);
		errno = error;
	}
	return file;
}

/* "0: 0200630A:18EB 00000000:0000 0A tx:rx tr:when retransmits uid timeout inode"; an address is
 * words as the kernel holds them, each printed as a number. */
static bool
read_row(const char *line, bool v6, struct bs_sock *sock)
{
	uint32_t words[4];
	unsigned port, state, inode;
	int at = 0;

	memset(sock, 0, sizeof(*sock));
	if (sscanf(line, " %*u: %n", &at) != 0 || at == 0)
		return false;
	for (unsigned i = 0; i < (v6 ? 4u : 1u); i++, at += 8) {
		int end = 0;

		if (sscanf(line + at, "%8x%n", &words[i], &end) != 1 || end != 8)
			return false;
	}
	if (sscanf(line + at, ":%4x %*x:%*x %2x %*x:%*x %*x:%*x %*x %*u %*u %u", &port, &state,
		    &inode) != 3)
		return false;
	if (!v6)
		memcpy(sock->ends.local, mapped, sizeof(mapped));
	memcpy(sock->ends.local + (v6 ? 0 : sizeof(mapped)), words, v6 ? 16 : 4);
	sock->ends.local_port = (uint16_t)port;
	sock->state = (uint8_t)state;
	sock->inode = inode;
	return true;
}

static int
read_table(int dir, const char *name, bool v6, unsigned state, uint16_t port, struct bs_sock *socks,
	unsigned max, unsigned *count)
{
	FILE *file = open_at(dir, name);
	char line[LINE_BYTES];
	struct bs_sock sock;

	if (file == NULL)
		return -errno;
	for (unsigned i = 0; i < LINES_MAX && *count < max; i++) {
		if (fgets(line, sizeof(line), file) == NULL)
			break;
		if (!read_row(line, v6, &sock))
			continue;
		/* those that listen come first, and then maybe very many connections */
		if (state == BS_SOCK_LISTEN && sock.state != state)
			break;
		if (sock.state == state && sock.ends.local_port == port)
			socks[(*count)++] = sock;
	}
	fclose(file);
	return 0;
}

int
bs_proc_net_bound(int dir, unsigned transport, uint16_t port, struct bs_sock *socks, unsigned max)
{
	const bool tcp = transport == IPPROTO_TCP;
	const unsigned state = tcp ? BS_SOCK_LISTEN : BS_SOCK_UNCONNECTED;
	unsigned count = 0;
	int ret = read_table(dir, tcp ? "tcp" : "udp", false, state, port, socks, max, &count);

	if (ret != 0)
		return ret;
	ret = read_table(dir, tcp ? "tcp6" : "udp6", true, state, port, socks, max, &count);
	return ret != 0 && ret != -ENOENT ? ret : (int)count;
}

/* In the tree of routes, "|-- 10.99.0.2" and behind it "/32 host LOCAL". */
static bool
holds_v4(FILE *file, const uint8_t wanted[4])
{
	char line[LINE_BYTES], text[INET_ADDRSTRLEN], address[16] = "";

	inet_ntop(AF_INET, wanted, text, sizeof(text));
	for (unsigned i = 0; i < LINES_MAX && fgets(line, sizeof(line), file) != NULL; i++) {
		const char *leaf = strstr(line, "|-- ");

		if (leaf != NULL && sscanf(leaf, "|-- %15s", address) != 1)
			address[0] = '\0';
		if (strstr(line, "/32 host LOCAL") != NULL && strcmp(address, text) == 0)
			return true;
	}
	return false;
}

/* "20010db8000000000000000000000001 02 40 00 80 eth0" */
static bool
holds_v6(FILE *file, const uint8_t wanted[16])
{
	char line[LINE_BYTES], text[33];

	for (unsigned i = 0; i < 16; i++)
		snprintf(text + 2 * i, 3, "%02x", wanted[i]);
	for (unsigned i = 0; i < LINES_MAX && fgets(line, sizeof(line), file) != NULL; i++) {
		if (strncmp(line, text, 32) == 0)
			return true;
	}
	return false;
}

bool
bs_proc_net_holds(int dir, const uint8_t address[16])
{
	const bool v4 = memcmp(address, mapped, sizeof(mapped)) == 0;
	FILE *file = open_at(dir, v4 ? "fib_trie" : "if_inet6");
	bool found;

	if (file == NULL)
		return false;
	found = v4 ? holds_v4(file, address + sizeof(mapped)) : holds_v6(file, address);
	fclose(file);
	return found;
}
