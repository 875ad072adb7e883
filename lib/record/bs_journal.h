/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The journal: records on disk, to be read after whatever happened to their
 * writer. A file is a header and blocks; a block is a header and whole groups of
 * records as bs_record.h has them. Both headers are one unit (64 bytes), in host
 * byte order, of which the file's header tells. Checksums are CRC-32C (RFC 3720,
 * section 12.1).
 *
 * A journal is a set of files that are written in turn. Its blocks are numbered
 * through all of them, so that it shows whether one is missing or there twice;
 * every file begins with what the numbers in its records mean, so that each can
 * be read alone.
 *
 * Nothing here opens, reads or writes a file. Any thread, an object by one at a
 * time.
 */
#pragma once

#include <stdalign.h>

#include "bs_record.h"

#define BS_JOURNAL_VERSION 1u
#define BS_JOURNAL_BLOCK_BYTES 65536u /* most bytes of records in a block */
#define BS_JOURNAL_BYTE_ORDER 0x01020304u

/* At offset 0. */
struct bs_journal_file {
	uint8_t magic[8];
	uint32_t byte_order; /* BS_JOURNAL_BYTE_ORDER */
	uint16_t version;    /* BS_JOURNAL_VERSION */
	uint16_t node;
	uint64_t journal;     /* of which this is a file: when that was begun, ns since the epoch */
	uint64_t file;	      /* number of the file, from 1; the higher, the later */
	uint64_t t_opened;    /* when this file was begun */
	uint64_t first_block; /* number of its first block that repeats nothing */
	uint8_t reserved[12];
	uint32_t crc; /* of all before */
};

/* The block tells anew what was told before: HELLO and NAMEs, as a file begins. */
#define BS_JOURNAL_REPEATS 0x1u

struct bs_journal_block {
	uint8_t magic[8];
	uint32_t head_crc; /* of the rest of this header */
	uint32_t crc;	   /* of the records */
	uint32_t bytes;	   /* of the records */
	uint32_t records;  /* an RPC or VERDICT with its group is one */
	uint64_t journal;
	uint64_t sequence; /* number of the block, from 1; of one that repeats: of the next */
	uint64_t t_first, t_last; /* bs_record_instant of the records, 0: none has one */
	uint32_t lost; /* records lost before this block, since the one before; saturates */
	uint32_t flags;
};

/* Fill in magic, byte order, version and checksum; the rest is the caller's. */
void bs_journal_file_seal(struct bs_journal_file *file);
void bs_journal_block_seal(struct bs_journal_block *block, const void *records);

/* Why a file's header is not taken. */
enum bs_journal_header {
	BS_JOURNAL_HEADER_GOOD,
	BS_JOURNAL_HEADER_FOREIGN, /* not a journal */
	BS_JOURNAL_HEADER_ORDER,   /* written in the other byte order */
	BS_JOURNAL_HEADER_VERSION, /* of another format */
	BS_JOURNAL_HEADER_BAD,	   /* damaged */
};
enum bs_journal_header bs_journal_file_check(const struct bs_journal_file *file);

/* Is it the header of a block, whole and in range? Says nothing of the records. */
bool bs_journal_block_check(const struct bs_journal_block *block);

/* Are these the records that the block was sealed with? Its header was checked. */
bool bs_journal_records_check(const struct bs_journal_block *block, const void *records);

/* --- what a file begins with ------------------------------------------------------- */

#define BS_JOURNAL_PREAMBLE_BYTES (8u * BS_JOURNAL_BLOCK_BYTES)

/* HELLO and all NAMEs since. All zero: none yet. */
struct bs_journal_preamble {
	uint16_t node;
	size_t bytes;
	uint64_t lost; /* NAMEs for which there was no room */
	alignas(8) uint8_t data[BS_JOURNAL_PREAMBLE_BYTES];
};

/* Takes a record that is valid; all but HELLO and NAME are ignored, HELLO begins anew. */
void bs_journal_preamble_take(struct bs_journal_preamble *preamble, const struct bs_record *record);

/* Blocks that bs_journal_preamble_block makes. */
unsigned bs_journal_preamble_blocks(const struct bs_journal_preamble *preamble);

/*
 * The block number `index` of it, for the journal, before its block `sequence`:
 * its header in *block, sealed, its records at the returned address in preamble.
 */
const void *bs_journal_preamble_block(const struct bs_journal_preamble *preamble, unsigned index,
	uint64_t journal, uint64_t sequence, struct bs_journal_block *block);

/* --- reading ------------------------------------------------------------------------ */

/* What is wrong with bytes that were skipped: text. */
#define BS_JOURNAL_DAMAGES(X)                                                                      \
	X(HEADER, "file header damaged")                                                           \
	X(NO_BLOCK, "no block begins here")                                                        \
	X(CRC, "block's CRC is wrong")                                                             \
	X(TORN, "block torn: the file ends in it")

#define BS_X_DAMAGE(name, text) BS_JOURNAL_DAMAGE_##name,
enum bs_journal_damage { BS_JOURNAL_DAMAGES(BS_X_DAMAGE) BS_JOURNAL_DAMAGE_COUNT };

const char *bs_journal_damage_text(unsigned damage); /* "?" outside the list */

enum bs_journal_step {
	BS_JOURNAL_MORE,    /* bytes are needed: room, fill, and again */
	BS_JOURNAL_FILE,    /* found.file: the file's header */
	BS_JOURNAL_BLOCK,   /* found.block and found.records: its bytes are right, nothing else is
			       known */
	BS_JOURNAL_DAMAGE,  /* found.damage: found.bytes were skipped */
	BS_JOURNAL_REFUSED, /* found.header says why; nothing more comes */
	BS_JOURNAL_END,
};

/* Pointers live until the next call for this reader. */
struct bs_journal_found {
	uint64_t offset; /* in the file, of what was found */
	uint64_t bytes;	 /* how many it are */
	const struct bs_journal_file *file;
	const struct bs_journal_block *block;
	const void *records; /* 8-byte aligned */
	enum bs_journal_damage damage;
	enum bs_journal_header header;
};

struct bs_journal_reader;

/* For one file from its beginning. NULL with errno ENOMEM. */
struct bs_journal_reader *bs_journal_reader_create(void);
void bs_journal_reader_destroy(struct bs_journal_reader *reader); /* NULL is fine */

/* To read the next file, or the same anew, from its beginning. */
void bs_journal_reader_restart(struct bs_journal_reader *reader);

/* Where to put the bytes that follow, at most *bytes, never 0 after MORE. */
void *bs_journal_reader_room(struct bs_journal_reader *reader, size_t *bytes);

/* So many were put there; 0: the file ends. */
void bs_journal_reader_fill(struct bs_journal_reader *reader, size_t bytes);

/*
 * For a file that still grows: forgets bytes of which nothing was made yet, and
 * returns the offset from which they are to be filled in again.
 */
uint64_t bs_journal_reader_rewind(struct bs_journal_reader *reader);

/*
 * The next thing in the file. Behind damage it goes on where the next header of a
 * block is right. Time is linear in the bytes, whatever they are.
 */
enum bs_journal_step bs_journal_reader_next(
	struct bs_journal_reader *reader, struct bs_journal_found *found);

/* A record, or an RPC or VERDICT with the group that belongs to it. */
struct bs_journal_item {
	const struct bs_record *record;
	size_t bytes;		/* of all of it */
	struct bs_rpc_view rpc; /* of RPC and VERDICT; else rpc.rpc is NULL */
};

/*
 * The next of the records of a block, validated as bs_record_next does. *offset
 * is moved past it. 1; 0 at the end; -EBADMSG, with *offset where it was, if
 * there is no whole valid item: then nothing says where the next one begins.
 */
int bs_journal_item_next(
	const void *records, size_t bytes, size_t *offset, struct bs_journal_item *item);
