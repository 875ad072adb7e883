/* SPDX-License-Identifier: BSD-3-Clause */
#include "analyzer_link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "journal_files.h"

static int
find_user(struct bs_analyzer_link *link, char *error)
{
	const char *user = link->config->analyzer.user;
	char number[16];

	if (link->own != 0 && link->config->analyzer.child) {
		/* it stays who we are: only root can make it another */
		snprintf(number, sizeof(number), "%u", link->own);
		return bs_identity_find(number, &link->user);
	}
	if (user[0] == '\0') {
		bs_identity_analyzer(&link->user);
		return 0;
	}
	if (bs_identity_find(user, &link->user) == 0)
		return 0;
	snprintf(error, BS_STATUS_ERROR_BYTES,
		"analyzer.user: there is no user \"%s\"; add it (adduser --system), or name "
		"another",
		user);
	return -ENOENT;
}

int
bs_analyzer_link_start(struct bs_analyzer_link *link, const struct bs_config *config,
	char error[BS_STATUS_ERROR_BYTES])
{
	char bytes[24];
	int fds[BS_SPAWNER_FILES], ret;
	struct bs_spawner_files files = {.fds = fds, .option = "--journal", .more = bytes};

	*link = (struct bs_analyzer_link){
		.config = config, .own = geteuid(), .spawner = {.pidfd = -1, .control = -1}};
	link->listener.fd = -1;
	ret = find_user(link, error);
	if (ret != 0 || !config->analyzer.child)
		return ret;
	if (config->journal.path[0] != '\0') {
		ret = bs_journal_files_open(
			config->journal.path, config->journal.files, fds, error);
		if (ret != 0)
			return ret;
		files.count = config->journal.files;
		snprintf(bytes, sizeof(bytes), "%llu",
			(unsigned long long)(config->journal.bytes / config->journal.files));
	}
	ret = bs_spawner_start(&link->spawner, NULL, link->user.uid, link->user.gid,
		files.count > 0 ? &files : NULL);
	bs_journal_files_close(fds, files.count); /* from here on, only the analyzer has them */
	if (ret != 0)
		snprintf(error, BS_STATUS_ERROR_BYTES,
			"bufscope-analyzer does not start: %s; install it next to bufscoped or in "
			"PATH, or set analyzer.mode to \"off\"",
			strerror(-ret));
	return ret;
}

int
bs_analyzer_link_listen(struct bs_analyzer_link *link, const char *directory,
	const struct control_access *access, char error[BS_STATUS_ERROR_BYTES])
{
	char path[256];

	if (!link->config->analyzer.external)
		return 0;
	snprintf(path, sizeof(path), "%s/analyzer.sock", directory);
	return control_socket_listen(&link->listener, path, SOCK_SEQPACKET, access, error);
}

int
bs_analyzer_link_fd(const struct bs_analyzer_link *link)
{
	return link->config->analyzer.child ? link->spawner.control : link->listener.fd;
}

static int
accept_analyzer(struct bs_analyzer_link *link)
{
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t bytes = sizeof(peer);
	int fd = accept4(link->listener.fd, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
		(peer.uid == 0 || peer.uid == link->user.uid || peer.uid == link->own)) {
		fprintf(stderr, "bufscoped: analyzer of pid %d, uid %u\n", peer.pid, peer.uid);
		return fd;
	}
	close(fd);
	link->refused++;
	if ((link->refused & (link->refused - 1)) == 0)
		fprintf(stderr,
			"bufscoped: refused an analyzer of pid %d, uid %u (%llu so far): it must "
			"be "
			"root's or %s's (analyzer.user)\n",
			peer.pid, peer.uid, (unsigned long long)link->refused, link->user.name);
	return -EACCES;
}

int
bs_analyzer_link_take(struct bs_analyzer_link *link)
{
	return link->config->analyzer.child ? bs_spawner_poll(&link->spawner)
					    : accept_analyzer(link);
}

void
bs_analyzer_link_stop(struct bs_analyzer_link *link)
{
	bs_spawner_stop(&link->spawner);
	control_socket_close(&link->listener);
}
