/* SPDX-License-Identifier: BSD-3-Clause */
/* The clients of the control socket: lines in, answers out, all of it bounded. */
#include "control.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control_socket.h"

struct client {
	int fd;		 /* -1: free */
	bool closing;	 /* no more is read; closed when all is sent */
	uint64_t served; /* when it last did something, in turns */
	size_t in_bytes;
	char in[BS_CONTROL_REQUEST_BYTES];
	char *out; /* unsent bytes from out_begin to out_end */
	size_t out_begin, out_end, out_room;
};

struct bs_control {
	struct control_socket socket;
	const struct bs_status_source *source;
	int epoll_fd;
	uint64_t turn;
	struct client clients[BS_CONTROL_CLIENTS];
};

static void
drop(struct client *client)
{
	close(client->fd);
	free(client->out);
	*client = (struct client){.fd = -1};
}

/*
 * Makes room for so many bytes behind what is unsent. Twice the room each time: a client may ask
 * thousands of times before it reads. false: no memory, or too much is unread.
 */
static bool
make_room(struct client *client, size_t bytes)
{
	const size_t unsent = client->out_end - client->out_begin;
	size_t room = client->out_room;
	char *out;

	if (unsent + bytes > BS_CONTROL_BACKLOG_BYTES)
		return false;
	if (client->out_begin > 0)
		memmove(client->out, client->out + client->out_begin, unsent);
	client->out_begin = 0;
	client->out_end = unsent;
	if (unsent + bytes <= room)
		return true;
	room = unsent + bytes > 2 * room ? unsent + bytes : 2 * room;
	if (room > BS_CONTROL_BACKLOG_BYTES)
		room = BS_CONTROL_BACKLOG_BYTES;
	out = realloc(client->out, room);
	if (out == NULL)
		return false;
	client->out = out;
	client->out_room = room;
	return true;
}

/* Appends the answer as a line. false: no memory, or too much is unread. */
static bool
queue_answer(struct client *client, const json_t *answer)
{
	size_t room = client->out_room - client->out_end;
	size_t bytes = json_dumpb(answer,
		client->out == NULL ? NULL : client->out + client->out_end, room, JSON_COMPACT);

	if (bytes == 0)
		return false;
	if (bytes >= room) {
		if (!make_room(client, bytes + 1))
			return false;
		json_dumpb(answer, client->out + client->out_end, bytes, JSON_COMPACT);
	}
	client->out_end += bytes;
	client->out[client->out_end++] = '\n';
	return true;
}

static bool
queue_error(struct client *client, const char *error)
{
	json_t *answer = json_pack("{s:s}", "error", error);
	bool queued = queue_answer(client, answer);

	json_decref(answer);
	return queued;
}

static bool
serve_request(struct bs_control *control, struct client *client, const char *line, size_t bytes)
{
	char error[BS_STATUS_ERROR_BYTES];
	const char *command, *params = NULL;
	json_error_t json_error;
	json_t *request = json_loadb(line, bytes, JSON_REJECT_DUPLICATES, &json_error);
	json_t *result = NULL, *answer;
	bool queued;

	if (request == NULL || json_unpack_ex(request, &json_error, 0, "{s:s, s?s !}", "command",
				       &command, "params", &params) != 0) {
		snprintf(error, sizeof(error),
			"not a request, {\"command\": \"...\", \"params\": \"...\"}: %s",
			json_error.text);
		queued = queue_error(client, error);
	} else if (bs_status_answer(control->source, command, params, &result, error) != 0) {
		queued = queue_error(client, error);
	} else {
		answer = json_pack("{s:o}", "result", result);
		queued = queue_answer(client, answer);
		json_decref(answer);
	}
	json_decref(request);
	return queued;
}

/* Serves the whole lines that have come. */
static bool
serve_lines(struct bs_control *control, struct client *client)
{
	size_t begin = 0;
	char *end;

	while ((end = memchr(client->in + begin, '\n', client->in_bytes - begin)) != NULL) {
		if (!serve_request(control, client, client->in + begin,
			    (size_t)(end - client->in) - begin))
			return false;
		begin = (size_t)(end - client->in) + 1;
	}
	client->in_bytes -= begin;
	memmove(client->in, client->in + begin, client->in_bytes);
	if (client->in_bytes < sizeof(client->in))
		return true;
	client->closing = true;
	return queue_error(client, "the request is longer than 4096 bytes");
}

static bool
receive(struct bs_control *control, struct client *client)
{
	ssize_t got = recv(client->fd, client->in + client->in_bytes,
		sizeof(client->in) - client->in_bytes, MSG_DONTWAIT);

	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	if (got == 0) {
		client->closing = true; /* it may still read what it asked for */
		return true;
	}
	client->in_bytes += (size_t)got;
	return serve_lines(control, client);
}

static bool
send_queued(struct client *client)
{
	while (client->out_begin < client->out_end) {
		ssize_t sent = send(client->fd, client->out + client->out_begin,
			client->out_end - client->out_begin, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent < 0)
			return errno == EAGAIN || errno == EINTR;
		client->out_begin += (size_t)sent;
	}
	free(client->out);
	client->out = NULL;
	client->out_begin = client->out_end = client->out_room = 0;
	return true;
}

static void
serve_client(struct bs_control *control, struct client *client, uint32_t events)
{
	struct epoll_event event = {.data.ptr = client};
	bool alive = (events & EPOLLERR) == 0;

	client->served = ++control->turn;
	if (alive && !client->closing && (events & (EPOLLIN | EPOLLHUP)) != 0)
		alive = receive(control, client);
	if (alive)
		alive = send_queued(client);
	if (client->out != NULL)
		event.events |= EPOLLOUT;
	if (!client->closing)
		event.events |= EPOLLIN;
	if (!alive || event.events == 0 ||
		epoll_ctl(control->epoll_fd, EPOLL_CTL_MOD, client->fd, &event) != 0)
		drop(client);
}

static struct client *
take_client(struct bs_control *control)
{
	struct client *oldest = &control->clients[0];

	for (unsigned i = 0; i < BS_CONTROL_CLIENTS; i++) {
		struct client *client = &control->clients[i];

		if (client->fd < 0)
			return client;
		if (client->served < oldest->served)
			oldest = client;
	}
	drop(oldest);
	return oldest;
}

static void
accept_client(struct bs_control *control)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct client *client;
	int fd = accept4(control->socket.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	client = take_client(control);
	client->fd = fd;
	client->served = ++control->turn;
	event.data.ptr = client;
	if (epoll_ctl(control->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
		drop(client);
}

int
bs_control_step(struct bs_control *control, int timeout_ms)
{
	struct epoll_event events[BS_CONTROL_CLIENTS + 1];
	int count = epoll_wait(control->epoll_fd, events, BS_CONTROL_CLIENTS + 1, timeout_ms);
	bool connecting = false;

	if (count < 0)
		return -errno;
	for (int i = 0; i < count; i++) {
		struct client *client = events[i].data.ptr;

		if (client == NULL)
			connecting = true;
		else
			serve_client(control, client, events[i].events);
	}
	/* Last: a new client may take the place of one that has an event here. */
	if (connecting)
		accept_client(control);
	return 0;
}

int
bs_control_fd(const struct bs_control *control)
{
	return control->epoll_fd;
}

struct bs_control *
bs_control_create(const char *path, const struct control_access *access,
	const struct bs_status_source *source, char error[BS_STATUS_ERROR_BYTES])
{
	struct epoll_event event = {.events = EPOLLIN};
	struct bs_control *control = calloc(1, sizeof(*control));
	int code = -ENOMEM;

	if (control == NULL)
		goto fail;
	for (unsigned i = 0; i < BS_CONTROL_CLIENTS; i++)
		control->clients[i].fd = -1;
	control->source = source;
	control->socket.fd = -1;
	control->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (control->epoll_fd < 0) {
		code = -errno;
		goto fail;
	}
	code = control_socket_listen(&control->socket, path, SOCK_STREAM, access, error);
	if (code != 0) {
		bs_control_destroy(control);
		errno = -code;
		return NULL;
	}
	if (epoll_ctl(control->epoll_fd, EPOLL_CTL_ADD, control->socket.fd, &event) == 0)
		return control;
	code = -errno;
fail:
	snprintf(error, BS_STATUS_ERROR_BYTES, "control socket: %s", strerror(-code));
	bs_control_destroy(control);
	errno = -code;
	return NULL;
}

void
bs_control_destroy(struct bs_control *control)
{
	if (control == NULL)
		return;
	for (unsigned i = 0; i < BS_CONTROL_CLIENTS; i++) {
		if (control->clients[i].fd >= 0)
			drop(&control->clients[i]);
	}
	control_socket_close(&control->socket);
	if (control->epoll_fd >= 0)
		close(control->epoll_fd);
	free(control);
}
