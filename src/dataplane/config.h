/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The configuration file (JSON; its keys: doc/guide.md) as a struct. All
 * is checked on loading: a struct bs_config that was loaded makes sense by
 * itself (names resolve, numbers are in range); only whether devices exist
 * remains to be seen.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bs_carrier.h"
#include "bs_framer.h"
#include "bs_record.h"

#define BS_CONFIG_PORTS 16u
#define BS_CONFIG_PATHS 8u
#define BS_CONFIG_LCORES 64u
#define BS_CONFIG_DEVICES 4u
#define BS_CONFIG_OPERATIONS 8u
#define BS_CONFIG_FRAMING 16u
#define BS_CONFIG_CLASSES 8u
#define BS_CONFIG_TEXT 128u
#define BS_CONFIG_USER 33u		      /* a name, or a number in digits; "": none given */
#define BS_CONFIG_JOURNAL_FILE_MIN (1u << 20) /* bytes that a file of the journal may have */

struct bs_config_port {
	char name[24];
	char device[BS_CONFIG_DEVICES]
		   [BS_CONFIG_TEXT]; /* vdev strings or an existing device; last is the port */
	unsigned device_count;
	bool trust_shim;
	uint64_t rate_bps; /* egress limit, bits/s; 0 = none */
};

struct bs_config_path {
	unsigned wire, service; /* indices in ports */
};

struct bs_config_operation {
	char match[BS_NAME_BYTES]; /* prefix of the label */
	uint64_t slo_ns;
};

struct bs_config_service {
	char name[BS_NAME_BYTES];
	uint8_t address[16]; /* IPv4 mapped */
	uint16_t port;
	uint8_t class_in, class_out; /* 0 is served first */
	char protocol[24];	     /* "auto" or a name of bs_framers */
	uint64_t slo_ns;	     /* 0 = none */
	char tenant[24];
	char pid_file[BS_CONFIG_TEXT]; /* "" = none: found by its socket */
	bool probe;
	struct bs_config_operation operations[BS_CONFIG_OPERATIONS];
	unsigned operation_count;
};

enum bs_shim_tag { BS_SHIM_NEGOTIATED, BS_SHIM_ALWAYS, BS_SHIM_OFF };
enum bs_schedule { BS_SCHEDULE_PRIORITY, BS_SCHEDULE_DRR };

struct bs_config {
	char path[BS_CONFIG_TEXT * 2];
	uint16_t node;
	struct {
		struct {
			unsigned cpus[BS_CONFIG_LCORES];
			unsigned count; /* 0: left open */
		} pipeline;
		int collector_cpu; /* -1: left open */
		uint64_t memory_bytes;
		char hugepages[8]; /* auto, on, off */
		char file_prefix[64];
	} eal;
	struct bs_config_port ports[BS_CONFIG_PORTS];
	unsigned port_count;
	struct bs_config_path paths[BS_CONFIG_PATHS];
	unsigned path_count;
	struct bs_config_service services[BS_MAX_SERVICES];
	unsigned service_count;
	struct bs_framing_row framing[BS_CONFIG_FRAMING];
	char framing_names[BS_CONFIG_FRAMING][24];
	unsigned framing_count;
	struct {
		enum bs_shim_tag tag;
		enum bs_carrier tcp, udp; /* by transport */
	} shim;
	uint64_t detect_ns[6]; /* by enum bs_cause, DROP to HANG; DROP is 0 */
	struct {
		unsigned size; /* packets, power of two */
		enum bs_schedule schedule;
		unsigned quantum_bytes;
	} app_queue;
	struct {
		unsigned flows, rpcs; /* of each lcore, powers of two */
	} tables;
	struct {
		unsigned per_second;
		double export_percent;
		uint64_t export_floor_bytes;
		unsigned sample; /* one RPC in so many is sent in full; 0 = none */
	} records;
	struct {
		bool child; /* start and restart bufscope-analyzer; false: none ("mode": "off") or
			       by hand ("external") */
		bool external;
		char user[BS_CONFIG_USER];
	} analyzer;
	struct {
		char owner[BS_CONFIG_USER], group[BS_CONFIG_USER];
		uint16_t mode;
	} control; /* of the sockets */
	struct {
		bool drop;
		char user[BS_CONFIG_USER];
	} privileges;
	struct {
		char path[BS_CONFIG_TEXT]; /* of its files without ".<number>"; "": no journal */
		uint64_t bytes;		   /* of all files together */
		unsigned files;
	} journal;
	bool faults; /* debug.faults */
};

/* For what the framers of an lcore keep of some connections: 256 bytes a flow, which they share. */
static inline size_t
bs_config_frame_bytes(const struct bs_config *config)
{
	return (size_t)config->tables.flows * 256;
}

#define BS_CONFIG_ERROR_BYTES 512u

/*
 * Loads and checks a file. 0, or -errno with one line in `error`: file, line
 * where known, key path, what is wrong, what is allowed. -EINVAL for content,
 * else what bs_safe_open or read said: files that others than root and the caller
 * can write or replace are refused. Control thread.
 */
int bs_config_load(const char *path, struct bs_config *config, char error[BS_CONFIG_ERROR_BYTES]);

/* The same from text, for tests; `path` is the name used in errors. */
int bs_config_parse(const char *path, const char *text, struct bs_config *config,
	char error[BS_CONFIG_ERROR_BYTES]);

/*
 * What a reload may change: services' SLOs, operations, detect, records. 0, or -EPERM with
 * `error` naming the first key that differs and needs a restart.
 */
int bs_config_reloadable(const struct bs_config *now, const struct bs_config *next,
	char error[BS_CONFIG_ERROR_BYTES]);
