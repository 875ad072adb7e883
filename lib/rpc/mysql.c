/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MySQL's client/server protocol (MySQL internals manual, "Client/Server
 * Protocol"). A command is a packet with sequence number 0; where its response
 * ends follows from the response: a single packet, or columns and rows up to
 * their end, and again as long as more results are announced. The login is a
 * request, too. Of SQL the first word is told. Behind a login that asks for TLS or
 * compression nothing can be read.
 */
#include <assert.h>
#include <string.h>

#include "bs_framer.h"
#include "sql.h"

#define HEADER 4u
#define PACKET_MAX 0xffffffu /* as long as this, it goes on in the next */
#define PREFIX 24u	     /* bytes of a payload that are looked at */

#define CLIENT_COMPRESS 0x20u
#define CLIENT_PROTOCOL_41 0x200u
#define CLIENT_SSL 0x800u
/* Status flags. */
#define MORE_RESULTS 0x8u /* SERVER_MORE_RESULTS_EXISTS */
#define CURSOR 0x40u	  /* SERVER_STATUS_CURSOR_EXISTS: rows come when they are fetched */

/* First byte of a server's packet. */
#define PACKET_OK 0x00u
#define PACKET_LOCAL_INFILE 0xfbu
#define PACKET_EOF 0xfeu
#define PACKET_ERR 0xffu
#define EOF_BYTES_MAX 8u

enum mysql_command {
	COM_QUIT = 0x01,
	COM_QUERY = 0x03,
	COM_FIELD_LIST = 0x04,
	COM_STATISTICS = 0x09,
	COM_STMT_PREPARE = 0x16,
	COM_STMT_SEND_LONG_DATA = 0x18,
	COM_STMT_CLOSE = 0x19,
	COM_STMT_FETCH = 0x1c,
	COM_LAST = 0x1f,
};

static const char *const command_names[COM_LAST + 1] = {"SLEEP", "QUIT", "INIT DB", "QUERY",
	"FIELD LIST", "CREATE DB", "DROP DB", "REFRESH", "SHUTDOWN", "STATISTICS", "PROCESS INFO",
	"CONNECT", "PROCESS KILL", "DEBUG", "PING", "TIME", "DELAYED INSERT", "CHANGE USER",
	"BINLOG DUMP", "TABLE DUMP", "CONNECT OUT", "REGISTER SLAVE", "PREPARE", "EXECUTE",
	"SEND LONG DATA", "CLOSE", "RESET STATEMENT", "SET OPTION", "FETCH", "DAEMON",
	"BINLOG DUMP GTID", "RESET CONNECTION"};

/* How a response is laid out: two bits for each command in flight, oldest lowest, in shared[0]. */
enum mysql_layout { LAYOUT_RESULT, LAYOUT_PREPARE, LAYOUT_SINGLE, LAYOUT_ROWS };
#define IN_FLIGHT_KEPT 16u
/* shared[1]: commands in flight. shared[2]: the login has been seen. shared[3]: cannot be read. */

enum mysql_phase {
	PHASE_FIRST,
	PHASE_COLUMNS,	   /* `columns` more definitions */
	PHASE_COLUMNS_END, /* their EOF, unless the ends agreed to leave it out */
	PHASE_ROWS,
	PHASE_PARAMETERS, /* of a PREPARE */
	PHASE_PARAMETERS_END,
};

struct mysql_dir {
	uint8_t have;
	uint8_t header[HEADER];
	uint8_t prefix[PREFIX];
	uint8_t prefix_have, prefix_want;
	bool in_payload, goes_on; /* goes_on: the packet before was the largest there may be */
	bool open;		  /* a response is in progress */
	uint8_t phase;		  /* enum mysql_phase */
	uint8_t layout;		  /* enum mysql_layout */
	uint32_t bytes;		  /* of the payload */
	uint32_t columns, columns_later;
};

static_assert(sizeof(struct mysql_dir) <= BS_FRAME_STATE_BYTES, "state must fit");

static uint32_t
load_le(const uint8_t *at, unsigned bytes)
{
	uint32_t value = 0;

	while (bytes-- > 0)
		value = value << 8 | at[bytes];
	return value;
}

/* Bytes that a length-encoded integer takes; 0: it is none. */
static unsigned
lenenc_bytes(uint8_t first)
{
	return first < 0xfb ? 1 : first == 0xfc ? 3 : first == 0xfd ? 4 : first == 0xfe ? 9 : 0;
}

static void
push_layout(struct bs_frame_conn *conn, uint32_t layout)
{
	if (conn->shared[1] < IN_FLIGHT_KEPT)
		conn->shared[0] |= layout << 2 * conn->shared[1];
	conn->shared[1]++;
}

static uint8_t
pop_layout(struct bs_frame_conn *conn)
{
	const uint8_t layout = conn->shared[0] & 3;

	if (conn->shared[1] == 0)
		return LAYOUT_RESULT;
	conn->shared[0] >>= 2;
	conn->shared[1]--;
	return layout;
}

/* --- from the client ---------------------------------------------------------- */

static uint8_t
layout_of(uint8_t command)
{
	switch (command) {
	case COM_STMT_PREPARE:
		return LAYOUT_PREPARE;
	case COM_STATISTICS:
		return LAYOUT_SINGLE;
	case COM_FIELD_LIST:
	case COM_STMT_FETCH:
		return LAYOUT_ROWS;
	default:
		return LAYOUT_RESULT;
	}
}

/* False: it is none. */
static bool
command_tell(struct bs_frame_conn *conn, const struct mysql_dir *dir, struct bs_frame *frame)
{
	const uint8_t command = dir->prefix[0];
	struct sql_word word = {0};

	if (dir->bytes == 0 || command > COM_LAST)
		return false;
	for (unsigned i = 1; command == COM_QUERY && i < dir->prefix_have; i++) {
		if (sql_word_byte(&word, dir->prefix[i]))
			break;
	}
	bs_frame_label(frame, word.bytes > 0 ? word.text : command_names[command]);
	if (command == COM_QUIT || command == COM_STMT_CLOSE || command == COM_STMT_SEND_LONG_DATA)
		frame->oneway = BS_ONEWAY;
	else
		push_layout(conn, layout_of(command));
	return true;
}

/* The answer to the server's greeting. */
static void
login_tell(struct bs_frame_conn *conn, const struct mysql_dir *dir, struct bs_frame *frame)
{
	const uint32_t flags = load_le(dir->prefix, 4);

	conn->shared[2] = 1;
	bs_frame_label(frame, "LOGIN");
	if (dir->prefix_have >= 4 && (flags & CLIENT_PROTOCOL_41) &&
		(flags & (CLIENT_SSL | CLIENT_COMPRESS))) {
		conn->shared[3] = 1;
		frame->until_close = BS_UNTIL_TUNNEL;
	}
	push_layout(conn, LAYOUT_SINGLE);
}

static bool
client_tell(struct bs_frame_conn *conn, struct mysql_dir *dir, struct bs_frame *frame)
{
	frame->flags = BS_FRAME_HEAD | BS_FRAME_END;
	if (dir->goes_on) {
		frame->role = BS_ROLE_NONE; /* the rest of a command */
		return true;
	}
	if (dir->header[3] == 0)
		return command_tell(conn, dir, frame);
	if (dir->header[3] == 1 && !conn->shared[2] && conn->shared[1] == 0)
		login_tell(conn, dir, frame);
	else
		frame->role = BS_ROLE_NONE; /* authentication, or a file */
	return true;
}

/* --- from the server ---------------------------------------------------------- */

/* The status flags of an OK or EOF packet. */
static uint32_t
status_flags(const struct mysql_dir *dir)
{
	unsigned at = 1;

	if (dir->prefix[0] == PACKET_EOF && dir->bytes <= EOF_BYTES_MAX)
		return dir->prefix_have >= 5 ? load_le(dir->prefix + 3, 2) : 0;
	for (unsigned i = 0; i < 2 && at < dir->prefix_have; i++) {
		const unsigned n = lenenc_bytes(dir->prefix[at]);

		at += n == 0 ? PREFIX : n;
	}
	return at + 2 <= dir->prefix_have ? load_le(dir->prefix + at, 2) : 0;
}

static bool
is_end_packet(const struct mysql_dir *dir)
{
	return dir->prefix[0] == PACKET_ERR ||
	       (dir->prefix[0] == PACKET_EOF && dir->bytes < PACKET_MAX);
}

/* True if the response ends with this packet, its first. */
static bool
first_take(struct mysql_dir *dir)
{
	const uint8_t first = dir->bytes > 0 ? dir->prefix[0] : PACKET_OK;

	if (dir->layout == LAYOUT_SINGLE)
		/* of a login: another question is asked with these */
		return first != PACKET_EOF && first != 0x01;
	if (first == PACKET_ERR)
		return true;
	if (dir->layout == LAYOUT_ROWS) {
		dir->phase = PHASE_ROWS;
		return first == PACKET_EOF && dir->bytes <= EOF_BYTES_MAX;
	}
	if (dir->layout == LAYOUT_PREPARE) {
		dir->columns_later = load_le(dir->prefix + 5, 2);
		dir->columns = load_le(dir->prefix + 7, 2);
		dir->phase = dir->columns > 0 ? PHASE_PARAMETERS : PHASE_COLUMNS;
		if (dir->columns == 0)
			dir->columns = dir->columns_later;
		return dir->columns == 0;
	}
	if (first == PACKET_OK)
		return !(status_flags(dir) & MORE_RESULTS);
	if (first == PACKET_LOCAL_INFILE)
		return false; /* the client sends a file, and this goes on */
	dir->columns = first < 0xfb ? first : load_le(dir->prefix + 1, first == 0xfc ? 2 : 3);
	dir->phase = PHASE_COLUMNS;
	return false;
}

/* A packet of the rows, or their end: a result may follow. True: the response ends with it. */
static bool
rows_take(struct mysql_dir *dir)
{
	if (!is_end_packet(dir))
		return false;
	dir->phase = PHASE_FIRST;
	return dir->prefix[0] == PACKET_ERR || !(status_flags(dir) & MORE_RESULTS);
}

static bool
is_eof(const struct mysql_dir *dir)
{
	return dir->prefix[0] == PACKET_EOF && dir->bytes <= EOF_BYTES_MAX;
}

/* True: the response ends with this packet. */
static bool
response_take(struct mysql_dir *dir)
{
	const bool prepare = dir->layout == LAYOUT_PREPARE;

	switch (dir->phase) {
	case PHASE_PARAMETERS:
		if (--dir->columns > 0)
			return false;
		dir->columns = dir->columns_later;
		dir->phase = PHASE_PARAMETERS_END;
		return false;
	case PHASE_PARAMETERS_END:
		dir->phase = PHASE_COLUMNS;
		if (is_eof(dir))
			return dir->columns == 0;
		return response_take(dir); /* there was none */
	case PHASE_COLUMNS:
		if (dir->columns > 0)
			dir->columns--;
		if (dir->columns == 0)
			dir->phase = PHASE_COLUMNS_END;
		return false;
	case PHASE_COLUMNS_END:
		dir->phase = PHASE_ROWS;
		if (is_eof(dir))
			return prepare || (status_flags(dir) & CURSOR) != 0;
		return prepare || rows_take(dir);
	case PHASE_ROWS:
		return rows_take(dir);
	default:
		return first_take(dir);
	}
}

static void
server_tell(struct bs_frame_conn *conn, struct mysql_dir *dir, struct bs_frame *frame)
{
	bool ends;

	if (!dir->open && conn->shared[1] == 0) {
		frame->flags = BS_FRAME_HEAD | BS_FRAME_END;
		frame->role = BS_ROLE_NONE; /* the greeting, or joined late */
		return;
	}
	if (!dir->open) {
		frame->flags = BS_FRAME_HEAD;
		frame->error = dir->bytes > 0 && dir->prefix[0] == PACKET_ERR;
		if (frame->error && dir->prefix_have >= 3) {
			frame->has_status = 1;
			frame->status = (int32_t)load_le(dir->prefix + 1, 2);
		}
		dir->layout = pop_layout(conn);
		dir->phase = PHASE_FIRST;
	}
	ends = !dir->goes_on && response_take(dir);
	dir->open = !ends;
	if (ends)
		frame->flags |= BS_FRAME_END;
}

/* --------------------------------------------------------------------------------- */

static bool
payload_known(
	struct bs_frame_conn *conn, struct mysql_dir *dir, bool from_server, struct bs_frame *frame)
{
	bool good = true;

	if (from_server)
		server_tell(conn, dir, frame);
	else
		good = client_tell(conn, dir, frame);
	frame->skip = dir->bytes - dir->prefix_have;
	if (frame->skip > 0)
		frame->flags |= BS_FRAME_SKIP;
	dir->goes_on = dir->bytes == PACKET_MAX;
	dir->in_payload = false;
	dir->have = dir->prefix_have = 0;
	return good;
}

static void
header_known(struct mysql_dir *dir)
{
	dir->bytes = load_le(dir->header, 3);
	dir->prefix_want = dir->bytes < PREFIX ? (uint8_t)dir->bytes : PREFIX;
	memset(dir->prefix, 0, sizeof(dir->prefix));
	dir->in_payload = true;
}

static size_t
mysql_feed(const struct bs_framer *framer, struct bs_frame_conn *conn, bool from_server,
	const uint8_t *data, size_t bytes, struct bs_frame *frame)
{
	struct mysql_dir *dir = (struct mysql_dir *)(void *)conn->dir[from_server].bytes;
	size_t at = 0;
	bool good = true;

	(void)framer;
	if (conn->shared[3])
		return bytes;
	while (at < bytes && frame->flags == 0 && good) {
		if (!dir->in_payload) {
			dir->header[dir->have++] = data[at++];
			if (dir->have == HEADER)
				header_known(dir);
		} else {
			dir->prefix[dir->prefix_have++] = data[at++];
		}
		if (dir->in_payload && dir->prefix_have == dir->prefix_want)
			good = payload_known(conn, dir, from_server, frame);
	}
	if (!good) {
		memset(dir, 0, sizeof(*dir));
		memset(frame, 0, sizeof(*frame));
		frame->flags = BS_FRAME_BAD;
	}
	return at;
}

/* Only the greeting, version 10 with a printable version text, leaves no doubt. */
static int
mysql_probe(const struct bs_framer *framer, bool from_server, const uint8_t *data, size_t bytes)
{
	uint32_t length;

	(void)framer;
	if (bytes <= HEADER)
		return 1;
	length = load_le(data, 3);
	if (length == 0)
		return 0;
	if (from_server && data[3] == 0)
		return data[HEADER] == 10 && length > 20 && length < 512 && bytes > HEADER + 2 &&
				       data[HEADER + 1] >= '0' && data[HEADER + 1] <= '9'
			       ? 2
			       : 0;
	if (from_server)
		return 1;
	if (data[3] == 1)
		return length >= 32 && length < 4096;
	return data[3] == 0 && data[HEADER] <= COM_LAST && length < 1u << 20;
}

const struct bs_framer_ops bs_framer_mysql = {
	.name = "mysql",
	.pairing = BS_PAIR_BY_ORDER,
	.feed = mysql_feed,
	.probe = mysql_probe,
	.ports = {3306, 33060},
};
