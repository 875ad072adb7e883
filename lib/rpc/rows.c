/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocols of which a length-prefixed header tells all that is needed.
 */
#include "bs_framer.h"

/* MODBUS Application Protocol 1.1b3, section 5.1. */
static const struct bs_framing_operation modbus_functions[] = {
	{1, "READ COILS"},
	{2, "READ DISCRETE INPUTS"},
	{3, "READ HOLDING REGISTERS"},
	{4, "READ INPUT REGISTERS"},
	{5, "WRITE SINGLE COIL"},
	{6, "WRITE SINGLE REGISTER"},
	{7, "READ EXCEPTION STATUS"},
	{8, "DIAGNOSTICS"},
	{11, "GET COMM EVENT COUNTER"},
	{12, "GET COMM EVENT LOG"},
	{15, "WRITE MULTIPLE COILS"},
	{16, "WRITE MULTIPLE REGISTERS"},
	{17, "REPORT SERVER ID"},
	{20, "READ FILE RECORD"},
	{21, "WRITE FILE RECORD"},
	{22, "MASK WRITE REGISTER"},
	{23, "READ/WRITE MULTIPLE REGISTERS"},
	{24, "READ FIFO QUEUE"},
	{43, "ENCAPSULATED INTERFACE TRANSPORT"},
	{0, NULL},
};

/* MongoDB wire protocol, opcodes. */
static const struct bs_framing_operation mongodb_opcodes[] = {
	{2001, "OP_UPDATE"},
	{2002, "OP_INSERT"},
	{2004, "OP_QUERY"},
	{2005, "OP_GET_MORE"},
	{2006, "OP_DELETE"},
	{2007, "OP_KILL_CURSORS"},
	{2012, "OP_COMPRESSED"},
	{2013, "OP_MSG"},
	{0, NULL},
};

/* RFC 6733 section 3.1. */
static const struct bs_framing_operation diameter_commands[] = {
	{257, "Capabilities-Exchange"},
	{258, "Re-Auth"},
	{271, "Accounting"},
	{274, "Abort-Session"},
	{275, "Session-Termination"},
	{280, "Device-Watchdog"},
	{282, "Disconnect-Peer"},
	{0, NULL},
};

/* 9P2000, and of .L what the Linux client sends (include/net/9p/9p.h). */
static const struct bs_framing_operation p9_types[] = {
	{8, "Tstatfs"},
	{12, "Tlopen"},
	{14, "Tlcreate"},
	{16, "Tsymlink"},
	{18, "Tmknod"},
	{20, "Trename"},
	{22, "Treadlink"},
	{24, "Tgetattr"},
	{26, "Tsetattr"},
	{30, "Txattrwalk"},
	{32, "Txattrcreate"},
	{40, "Treaddir"},
	{50, "Tfsync"},
	{52, "Tlock"},
	{54, "Tgetlock"},
	{70, "Tlink"},
	{72, "Tmkdir"},
	{74, "Trenameat"},
	{76, "Tunlinkat"},
	{100, "Tversion"},
	{102, "Tauth"},
	{104, "Tattach"},
	{108, "Tflush"},
	{110, "Twalk"},
	{112, "Topen"},
	{114, "Tcreate"},
	{116, "Tread"},
	{118, "Twrite"},
	{120, "Tclunk"},
	{122, "Tremove"},
	{124, "Tstat"},
	{126, "Twstat"},
	{0, NULL},
};

const struct bs_framing_row bs_framing_rows[] = {
	/* Modbus Messaging on TCP/IP 1.0b, section 3.1.3: MBAP header, protocol identifier 0. */
	{
		.name = "modbus",
		.header = 8,
		.magic_at = 2,
		.magic_len = 2,
		.magic_mask = {0xff, 0xff},
		.length_at = 4,
		.length_bytes = 2,
		.length_adds = 6,
		.id_at = 0,
		.id_bytes = 2,
		.error = {.at = 7, .mask = 0x80, .value = 0x80},
		.operation_at = 7,
		.operation_bytes = 1,
		.operations = modbus_functions,
		.length_max = 260,
		.ports = {502},
	},
	/*
	 * MongoDB wire protocol, standard message header; opcodes are below
	 * 2^16. That a message asks for no answer (moreToCome) is not in it.
	 */
	{
		.name = "mongodb",
		.header = 16,
		.magic_at = 14,
		.magic_len = 2,
		.magic_mask = {0xff, 0xff},
		.length_at = 0,
		.length_bytes = 4,
		.length_little = true,
		.id_at = 4,
		.id_bytes = 4,
		.id_little = true,
		.response_id_at = 8,
		.operation_at = 12,
		.operation_bytes = 4,
		.operation_little = true,
		.operations = mongodb_opcodes,
		.length_max = 48000000, /* maxMessageSizeBytes */
		.ports = {27017},
	},
	/* Diameter, RFC 6733 section 3: version 1, bits R and E, reserved flags 0, hop-by-hop id.
	 */
	{
		.name = "diameter",
		.header = 20,
		.magic_at = 0,
		.magic_len = 5,
		.magic = {1},
		.magic_mask = {0xff, 0, 0, 0x03, 0x0f},
		.length_at = 1,
		.length_bytes = 3,
		.id_at = 12,
		.id_bytes = 4,
		.response = {.at = 4, .mask = 0x80},
		.error = {.at = 4, .mask = 0x20, .value = 0x20},
		.operation_at = 5,
		.operation_bytes = 3,
		.operations = diameter_commands,
		.ports = {3868},
	},
	/* 9P, Plan 9 manual intro(5): size, type (T even, R odd), tag. */
	{
		.name = "9p",
		.header = 7,
		.length_at = 0,
		.length_bytes = 4,
		.length_little = true,
		.id_at = 5,
		.id_bytes = 2,
		.id_little = true,
		.response = {.at = 4, .mask = 1, .value = 1},
		.error = {.at = 4, .mask = 0xff, .value = 7}, /* Rlerror, of 9P2000.L */
		.operation_at = 4,
		.operation_bytes = 1,
		.operations = p9_types,
		.length_max = 16u << 20,
		.ports = {564},
	},
};

const unsigned bs_framing_row_count = sizeof(bs_framing_rows) / sizeof(bs_framing_rows[0]);
