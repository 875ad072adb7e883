/* SPDX-License-Identifier: BSD-3-Clause */
/* Layout of the journal: sealing and checking headers, the preamble, items of a block. */
#include "bs_journal.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "crc32c.h"
#include "journal_format.h"

/* A transfer as text, or to seven bits, shows in the first bytes. */
static const uint8_t file_magic[8] = {0xb5, 'B', 'S', 'J', '\r', '\n', 0x1a, '\n'};
const uint8_t journal_block_magic[8] = {0xb5, 0xc0, 'b', 'l', 'o', 'c', 'k', 0xb5};

static_assert(sizeof(struct bs_journal_file) == BS_UNIT_BYTES, "a header is one unit");
static_assert(sizeof(struct bs_journal_block) == BS_UNIT_BYTES, "a header is one unit");

#define BLOCK_CRC_FROM offsetof(struct bs_journal_block, crc)

void
bs_journal_file_seal(struct bs_journal_file *file)
{
	memcpy(file->magic, file_magic, sizeof(file_magic));
	file->byte_order = BS_JOURNAL_BYTE_ORDER;
	file->version = BS_JOURNAL_VERSION;
	file->crc = crc32c(file, offsetof(struct bs_journal_file, crc));
}

static uint32_t
head_crc(const struct bs_journal_block *block)
{
	return crc32c((const uint8_t *)block + BLOCK_CRC_FROM, sizeof(*block) - BLOCK_CRC_FROM);
}

void
bs_journal_block_seal(struct bs_journal_block *block, const void *records)
{
	memcpy(block->magic, journal_block_magic, sizeof(block->magic));
	block->crc = crc32c(records, block->bytes);
	block->head_crc = head_crc(block);
}

enum bs_journal_header
bs_journal_file_check(const struct bs_journal_file *file)
{
	if (memcmp(file->magic, file_magic, sizeof(file_magic)) != 0)
		return BS_JOURNAL_HEADER_FOREIGN;
	if (file->byte_order == __builtin_bswap32(BS_JOURNAL_BYTE_ORDER))
		return BS_JOURNAL_HEADER_ORDER;
	if (file->crc != crc32c(file, offsetof(struct bs_journal_file, crc)) ||
		file->byte_order != BS_JOURNAL_BYTE_ORDER)
		return BS_JOURNAL_HEADER_BAD;
	return file->version == BS_JOURNAL_VERSION ? BS_JOURNAL_HEADER_GOOD
						   : BS_JOURNAL_HEADER_VERSION;
}

bool
bs_journal_block_check(const struct bs_journal_block *block)
{
	return memcmp(block->magic, journal_block_magic, sizeof(block->magic)) == 0 &&
	       block->head_crc == head_crc(block) && block->bytes <= BS_JOURNAL_BLOCK_BYTES &&
	       block->bytes % BS_UNIT_BYTES == 0;
}

bool
bs_journal_records_check(const struct bs_journal_block *block, const void *records)
{
	return block->crc == crc32c(records, block->bytes);
}

/* --- preamble ------------------------------------------------------------------------ */

void
bs_journal_preamble_take(struct bs_journal_preamble *preamble, const struct bs_record *record)
{
	size_t bytes = (size_t)record->units * BS_UNIT_BYTES;

	if (record->type == BS_REC_HELLO) {
		preamble->node = ((const struct bs_rec_hello *)(const void *)record)->node;
		preamble->bytes = 0;
		preamble->lost = 0;
	} else if (record->type != BS_REC_NAME) {
		return;
	}
	if (preamble->bytes + bytes > sizeof(preamble->data)) {
		preamble->lost++;
		return;
	}
	memcpy(preamble->data + preamble->bytes, record, bytes);
	preamble->bytes += bytes;
}

unsigned
bs_journal_preamble_blocks(const struct bs_journal_preamble *preamble)
{
	return (unsigned)((preamble->bytes + BS_JOURNAL_BLOCK_BYTES - 1) / BS_JOURNAL_BLOCK_BYTES);
}

/* HELLO and NAME have the same size, of which a block holds a whole number. */
static_assert(sizeof(struct bs_rec_hello) == sizeof(struct bs_rec_name) &&
		      BS_JOURNAL_BLOCK_BYTES % sizeof(struct bs_rec_name) == 0,
	"no record of the preamble crosses a block's end");

const void *
bs_journal_preamble_block(const struct bs_journal_preamble *preamble, unsigned index,
	uint64_t journal, uint64_t sequence, struct bs_journal_block *block)
{
	size_t from = (size_t)index * BS_JOURNAL_BLOCK_BYTES;
	size_t bytes = preamble->bytes - from;

	if (bytes > BS_JOURNAL_BLOCK_BYTES)
		bytes = BS_JOURNAL_BLOCK_BYTES;
	*block = (struct bs_journal_block){
		.bytes = (uint32_t)bytes,
		.records = (uint32_t)(bytes / sizeof(struct bs_rec_name)),
		.journal = journal,
		.sequence = sequence,
		.flags = BS_JOURNAL_REPEATS,
	};
	bs_journal_block_seal(block, preamble->data + from);
	return preamble->data + from;
}

/* --- items ---------------------------------------------------------------------------- */

int
bs_journal_item_next(
	const void *records, size_t bytes, size_t *offset, struct bs_journal_item *item)
{
	const uint8_t *data = records;
	size_t at = *offset, group = at, group_bytes;
	int error;

	item->rpc.rpc = NULL;
	item->record = bs_record_next(records, bytes, &at, &error);
	if (item->record == NULL)
		return error;
	if (item->record->type == BS_REC_VERDICT)
		group = at;
	if (item->record->type == BS_REC_VERDICT || item->record->type == BS_REC_RPC) {
		if (bs_rpc_view(data + group, bytes - group, &item->rpc, &group_bytes) != 0)
			return -EBADMSG;
		if (item->record->type == BS_REC_VERDICT &&
			item->rpc.rpc->id !=
				((const struct bs_rec_verdict *)(const void *)item->record)->rpc_id)
			return -EBADMSG;
		at = group + group_bytes;
	}
	item->bytes = at - *offset;
	*offset = at;
	return 1;
}
