/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The journal's format and its reader, on files in memory: cut at every byte,
 * with every bit flipped, with bytes lost and put in between, and made to harm.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bs_journal.h"
#include "crc32c.h"

#define T0 1700000000000000000ull
#define JOURNAL 77u
#define HEADER 64u
#define BLOCKS 4u

struct image {
	size_t bytes;
	size_t begin[BLOCKS + 1]; /* of each block, and the end */
	uint8_t data[1u << 21];
};

static struct image image;

/* CRC-32C bit by bit: the polynomial of RFC 3720, section 12.1, reflected. */
static uint32_t
crc(const void *from, size_t bytes)
{
	const uint8_t *data = from;
	uint32_t sum = ~0u;

	for (size_t i = 0; i < bytes; i++) {
		sum ^= data[i];
		for (unsigned bit = 0; bit < 8; bit++)
			sum = sum >> 1 ^ (0x82f63b78u & (0u - (sum & 1)));
	}
	return ~sum;
}

static void
append(const void *data, size_t bytes)
{
	assert_true(image.bytes + bytes <= sizeof(image.data));
	memcpy(image.data + image.bytes, data, bytes);
	image.bytes += bytes;
}

static void
append_file(void)
{
	struct bs_journal_file file = {
		.node = 3, .journal = JOURNAL, .file = 9, .t_opened = T0, .first_block = 1};

	bs_journal_file_seal(&file);
	append(&file, sizeof(file));
}

static void
append_block(uint64_t sequence, const void *records, size_t bytes)
{
	struct bs_journal_block block = {
		.bytes = (uint32_t)bytes,
		.records = (uint32_t)(bytes / sizeof(struct bs_rec_loss)),
		.journal = JOURNAL,
		.sequence = sequence,
		.t_first = T0,
		.t_last = T0 + sequence,
	};

	bs_journal_block_seal(&block, records);
	append(&block, sizeof(block));
	append(records, bytes);
}

/* Block n has n + 1 LOSS records, each with its number. */
static int
set_up(void **state)
{
	(void)state;
	memset(&image, 0, sizeof(image));
	append_file();
	for (unsigned b = 0; b < BLOCKS; b++) {
		struct bs_rec_loss loss[BLOCKS] = {0};

		for (unsigned i = 0; i <= b; i++) {
			bs_record_head(&loss[i].head, BS_REC_LOSS, 0);
			loss[i].t = T0 + b;
			loss[i].ring_full = 10 * b + i;
		}
		image.begin[b] = image.bytes;
		append_block(b + 1, loss, (b + 1) * sizeof(loss[0]));
	}
	image.begin[BLOCKS] = image.bytes;
	return 0;
}

/* What a reader made of an image. */
struct result {
	bool file, refused;
	enum bs_journal_header header;
	unsigned blocks, damages;
	uint64_t sequences[BLOCKS + 1];
	uint64_t offsets[BLOCKS + 1];
	uint64_t bytes; /* of header and blocks */
	uint64_t skipped, skipped_at;
	enum bs_journal_damage what; /* of the last */
};

static void
take(struct result *r, enum bs_journal_step step, const struct bs_journal_found *found)
{
	switch (step) {
	case BS_JOURNAL_FILE:
		r->file = true;
		r->bytes += found->bytes;
		break;
	case BS_JOURNAL_BLOCK:
		assert_true(r->blocks <= BLOCKS);
		assert_int_equal((uintptr_t)found->records % 8, 0);
		r->offsets[r->blocks] = found->offset;
		r->sequences[r->blocks++] = found->block->sequence;
		r->bytes += found->bytes;
		break;
	case BS_JOURNAL_DAMAGE:
		assert_true(found->bytes > 0);
		r->damages++;
		r->skipped += found->bytes;
		r->skipped_at = found->offset;
		r->what = found->damage;
		break;
	default:
		r->refused = step == BS_JOURNAL_REFUSED;
		r->header = found->header;
	}
}

/* Reads data in pieces of at most `piece` bytes. */
static struct result
read_pieces(const uint8_t *data, size_t bytes, size_t piece)
{
	struct bs_journal_reader *reader = bs_journal_reader_create();
	struct bs_journal_found found = {0};
	enum bs_journal_step step;
	struct result r = {0};
	size_t at = 0;

	assert_non_null(reader);
	while ((step = bs_journal_reader_next(reader, &found)) != BS_JOURNAL_END) {
		if (step == BS_JOURNAL_MORE) {
			size_t room;
			void *to = bs_journal_reader_room(reader, &room);

			assert_true(room > 0);
			room = room < piece ? room : piece;
			room = room < bytes - at ? room : bytes - at;
			memcpy(to, data + at, room);
			bs_journal_reader_fill(reader, room);
			at += room;
			continue;
		}
		take(&r, step, &found);
		if (step == BS_JOURNAL_REFUSED)
			break;
	}
	bs_journal_reader_destroy(reader);
	return r;
}

static struct result
read_image(void)
{
	return read_pieces(image.data, image.bytes, SIZE_MAX);
}

/* The examples of RFC 3720, B.4, and the check value of the catalogue of CRCs. */
static void
checksum_is_that_of_the_rfc(void **state)
{
	uint8_t data[32];

	(void)state;
	memset(data, 0, sizeof(data));
	assert_int_equal(crc32c(data, sizeof(data)), 0x8a9136aa);
	memset(data, 0xff, sizeof(data));
	assert_int_equal(crc32c(data, sizeof(data)), 0x62a8ab43);
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)i;
	assert_int_equal(crc32c(data, sizeof(data)), 0x46dd794e);
	assert_int_equal(crc32c_portable(data, sizeof(data)), 0x46dd794e);
	assert_int_equal(crc32c("123456789", 9), 0xe3069283);
	assert_int_equal(crc32c_portable("123456789", 9), 0xe3069283);
	assert_int_equal(crc("123456789", 9), 0xe3069283);
	assert_int_equal(crc32c("", 0), 0);
}

static void
headers_are_laid_out_as_documented(void **state)
{
	const uint8_t *file = image.data, *block = image.data + image.begin[1];
	uint32_t sum;
	uint64_t number;

	(void)state;
	assert_memory_equal(file,
		"\xb5"
		"BSJ\r\n\x1a\n",
		8);
	memcpy(&sum, file + 8, 4);
	assert_int_equal(sum, 0x01020304);
	memcpy(&sum, file + 60, 4);
	assert_int_equal(sum, crc(file, 60));
	assert_memory_equal(block,
		"\xb5\xc0"
		"block\xb5",
		8);
	memcpy(&sum, block + 8, 4);
	assert_int_equal(sum, crc(block + 12, 52));
	memcpy(&sum, block + 12, 4);
	assert_int_equal(sum, crc(block + 64, 128));
	memcpy(&sum, block + 16, 4);
	assert_int_equal(sum, 128);
	memcpy(&number, block + 32, 8);
	assert_int_equal(number, 2);
}

static void
what_was_written_is_read_in_pieces_of_any_size(void **state)
{
	static const size_t pieces[] = {1, 7, 63, 64, 65, 1000, SIZE_MAX};

	(void)state;
	for (unsigned i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct result r = read_pieces(image.data, image.bytes, pieces[i]);

		assert_true(r.file);
		assert_int_equal(r.blocks, BLOCKS);
		assert_int_equal(r.damages, 0);
		assert_int_equal(r.bytes, image.bytes);
		for (unsigned b = 0; b < BLOCKS; b++) {
			assert_int_equal(r.sequences[b], b + 1);
			assert_int_equal(r.offsets[b], image.begin[b]);
		}
	}
}

static void
records_of_a_block_come_back(void **state)
{
	const struct bs_rec_loss *loss;
	struct bs_journal_item item;
	size_t offset = 0;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(bs_journal_item_next(
					 image.data + image.begin[2] + HEADER, 192, &offset, &item),
			1);
		loss = (const void *)item.record;
		assert_int_equal(loss->ring_full, 20 + i);
		assert_int_equal(item.bytes, 64);
		assert_null(item.rpc.rpc);
	}
	assert_int_equal(
		bs_journal_item_next(image.data + image.begin[2] + HEADER, 192, &offset, &item), 0);
}

static void
file_cut_at_any_byte_gives_all_blocks_before(void **state)
{
	(void)state;
	for (size_t cut = 0; cut <= image.bytes; cut++) {
		struct result r = read_pieces(image.data, cut, SIZE_MAX);
		unsigned whole = 0;
		size_t good = cut < HEADER ? 0 : HEADER;

		while (whole < BLOCKS && image.begin[whole + 1] <= cut)
			good = image.begin[++whole];
		assert_int_equal(r.file, cut >= HEADER);
		assert_int_equal(r.blocks, whole);
		assert_int_equal(r.damages, cut > good);
		assert_int_equal(r.skipped, cut - good);
		if (cut > good) {
			assert_int_equal(r.skipped_at, good);
			assert_int_equal(r.what, BS_JOURNAL_DAMAGE_TORN);
		}
	}
}

static void
any_flipped_bit_of_a_block_costs_that_block_alone(void **state)
{
	size_t begin = image.begin[1], end = image.begin[2];

	(void)state;
	for (size_t bit = begin * 8; bit < end * 8; bit++) {
		struct result r;

		image.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		r = read_image();
		image.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_equal(r.blocks, BLOCKS - 1);
		assert_int_equal(r.sequences[0], 1);
		assert_int_equal(r.sequences[1], 3);
		assert_int_equal(r.damages, 1);
		assert_int_equal(r.skipped_at, begin);
		assert_int_equal(r.skipped, end - begin);
		assert_int_equal(r.what, bit / 8 < begin + HEADER ? BS_JOURNAL_DAMAGE_NO_BLOCK
								  : BS_JOURNAL_DAMAGE_CRC);
	}
}

static void
any_flipped_bit_of_the_file_header_costs_no_block(void **state)
{
	(void)state;
	for (size_t bit = 0; bit < HEADER * 8; bit++) {
		struct result r;

		image.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		r = read_image();
		image.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_false(r.file);
		assert_false(r.refused);
		assert_int_equal(r.blocks, BLOCKS);
		assert_int_equal(r.damages, 1);
		assert_int_equal(r.skipped, HEADER);
		assert_int_equal(r.what, BS_JOURNAL_DAMAGE_HEADER);
	}
}

static void
lost_bytes_cost_two_blocks_at_most_and_those_put_between_none(void **state)
{
	static uint8_t changed[4096];
	size_t at = image.begin[1] + HEADER + 20;

	(void)state;
	for (size_t n = 1; n < 200; n++) {
		struct result r;

		/* put in between two blocks */
		memcpy(changed, image.data, image.begin[2]);
		memset(changed + image.begin[2], 0xb5, n);
		memcpy(changed + image.begin[2] + n, image.data + image.begin[2],
			image.bytes - image.begin[2]);
		r = read_pieces(changed, image.bytes + n, 100);
		assert_int_equal(r.blocks, BLOCKS);
		assert_int_equal(r.skipped, n);
		assert_int_equal(r.skipped_at, image.begin[2]);
		/* lost inside of a block: its length then reaches into the next */
		if (n > 100)
			continue;
		memcpy(changed, image.data, at);
		memcpy(changed + at, image.data + at + n, image.bytes - at - n);
		r = read_pieces(changed, image.bytes - n, 100);
		assert_true(r.blocks >= BLOCKS - 2);
		assert_int_equal(r.sequences[0], 1);
		assert_int_equal(r.sequences[r.blocks - 1], BLOCKS);
		assert_int_equal(r.bytes + r.skipped, image.bytes - n);
	}
}

static void
what_is_no_journal_is_told_from_a_damaged_one(void **state)
{
	struct bs_journal_file *file = (void *)image.data;
	static uint8_t foreign[300000];
	struct result r;

	(void)state;
	memset(foreign, 0x55, sizeof(foreign));
	r = read_pieces(foreign, sizeof(foreign), SIZE_MAX);
	assert_false(r.file);
	assert_int_equal(r.blocks, 0);
	assert_int_equal(r.skipped, sizeof(foreign));
	assert_int_equal(bs_journal_file_check((const void *)foreign), BS_JOURNAL_HEADER_FOREIGN);

	file->byte_order = 0x04030201;
	r = read_image();
	assert_true(r.refused);
	assert_int_equal(r.header, BS_JOURNAL_HEADER_ORDER);

	bs_journal_file_seal(file);
	file->version = 2;
	file->crc = crc(image.data, 60);
	r = read_image();
	assert_true(r.refused);
	assert_int_equal(r.header, BS_JOURNAL_HEADER_VERSION);
	assert_int_equal(r.blocks, 0);
}

/* A header with a right checksum, whatever its length says. */
static void
put_header(size_t at, uint32_t bytes)
{
	struct bs_journal_block block = {.journal = JOURNAL, .sequence = 1};
	uint32_t sum;

	bs_journal_block_seal(&block, "");
	block.bytes = bytes;
	block.crc = 0x12345678;
	memcpy(image.data + at, &block, sizeof(block));
	sum = crc(image.data + at + 12, 52);
	memcpy(image.data + at + 8, &sum, 4);
}

static void
lengths_that_cannot_be_are_no_block(void **state)
{
	static const uint32_t lengths[] = {
		1, 63, 65, 65536 + 64, 0x7fffffc0, 0x80000000, 0xffffffc0, 0xffffffff};

	(void)state;
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct result r;

		put_header(image.begin[0], lengths[i]);
		assert_false(bs_journal_block_check((const void *)(image.data + image.begin[0])));
		r = read_image();
		assert_int_equal(r.blocks, BLOCKS - 1);
		assert_int_equal(r.sequences[0], 2);
		assert_int_equal(r.skipped, image.begin[1] - image.begin[0]);
	}
}

static void
length_beyond_the_end_is_a_torn_block(void **state)
{
	struct result r;

	(void)state;
	put_header(image.begin[3], 65536);
	r = read_image();
	assert_int_equal(r.blocks, 3);
	assert_int_equal(r.what, BS_JOURNAL_DAMAGE_TORN);
	assert_int_equal(r.skipped, image.bytes - image.begin[3]);
}

/* Each of these headers is right and says 64 KiB, none has the records. */
static void
file_of_nothing_but_headers_is_skipped(void **state)
{
	struct result r;

	(void)state;
	image.bytes = HEADER;
	while (image.bytes + HEADER <= sizeof(image.data)) {
		put_header(image.bytes, 65536);
		image.bytes += HEADER;
	}
	r = read_image();
	assert_int_equal(r.blocks, 0);
	assert_int_equal(r.damages, 1);
	assert_int_equal(r.skipped, sizeof(image.data) - HEADER);
}

static void
file_that_grows_is_followed_from_its_last_whole_block(void **state)
{
	struct bs_journal_reader *reader = bs_journal_reader_create();
	struct bs_journal_found found;
	size_t room, half = image.begin[1] + 70;

	(void)state;
	memcpy(bs_journal_reader_room(reader, &room), image.data, half);
	bs_journal_reader_fill(reader, half);
	assert_int_equal(bs_journal_reader_next(reader, &found), BS_JOURNAL_FILE);
	assert_int_equal(found.file->file, 9);
	assert_int_equal(bs_journal_reader_next(reader, &found), BS_JOURNAL_BLOCK);
	assert_int_equal(bs_journal_reader_next(reader, &found), BS_JOURNAL_MORE);
	assert_int_equal(bs_journal_reader_rewind(reader), image.begin[1]);
	memcpy(bs_journal_reader_room(reader, &room), image.data + image.begin[1],
		image.begin[2] - image.begin[1]);
	bs_journal_reader_fill(reader, image.begin[2] - image.begin[1]);
	assert_int_equal(bs_journal_reader_next(reader, &found), BS_JOURNAL_BLOCK);
	assert_int_equal(found.block->sequence, 2);
	assert_int_equal(found.offset, image.begin[1]);
	assert_int_equal(bs_journal_reader_next(reader, &found), BS_JOURNAL_MORE);
	bs_journal_reader_destroy(reader);
}

static void
fill_rpc(struct bs_rec_rpc *rpc, uint64_t id)
{
	memset(rpc, 0, sizeof(*rpc));
	bs_record_head(&rpc->head, BS_REC_RPC, 0);
	rpc->id = id;
	rpc->ends.transport = 6;
	rpc->ends.ip_version = 4;
	rpc->segment_count = 1;
}

static void
verdict_and_group_are_one_item_or_none(void **state)
{
	struct {
		struct bs_rec_verdict verdict;
		struct bs_rec_rpc rpc;
		struct bs_rec_segment segment;
	} group = {.verdict = {.rpc_id = 5}, .segment = {.rpc_id = 5}};
	struct bs_journal_item item;
	size_t offset = 0;

	(void)state;
	bs_record_head(&group.verdict.head, BS_REC_VERDICT, 0);
	bs_record_head(&group.segment.head, BS_REC_SEGMENT, 0);
	fill_rpc(&group.rpc, 5);
	assert_int_equal(bs_journal_item_next(&group, sizeof(group), &offset, &item), 1);
	assert_int_equal(offset, sizeof(group));
	assert_ptr_equal(item.record, &group.verdict);
	assert_ptr_equal(item.rpc.rpc, &group.rpc);
	assert_ptr_equal(item.rpc.segments, &group.segment);
	/* as an RPC alone */
	offset = sizeof(group.verdict);
	assert_int_equal(bs_journal_item_next(&group, sizeof(group), &offset, &item), 1);
	assert_ptr_equal(item.record, &group.rpc);
	/* without its end, and as another's */
	offset = 0;
	assert_int_equal(
		bs_journal_item_next(&group, sizeof(group) - 64, &offset, &item), -EBADMSG);
	assert_int_equal(
		bs_journal_item_next(&group, sizeof(group.verdict), &offset, &item), -EBADMSG);
	group.verdict.rpc_id = 6;
	assert_int_equal(bs_journal_item_next(&group, sizeof(group), &offset, &item), -EBADMSG);
	assert_int_equal(offset, 0);
}

static void
preamble_holds_the_names_since_the_last_hello(void **state)
{
	static struct bs_journal_preamble preamble;
	struct bs_rec_hello hello = {.node = 4};
	struct bs_rec_name name = {.kind = BS_NAME_SERVICE};
	struct bs_rec_loss loss = {0};
	struct bs_journal_block block;
	const struct bs_rec_name *names;

	(void)state;
	memset(&preamble, 0, sizeof(preamble));
	bs_record_head(&hello.head, BS_REC_HELLO, 0);
	bs_record_head(&name.head, BS_REC_NAME, 0);
	bs_record_head(&loss.head, BS_REC_LOSS, 0);
	assert_int_equal(bs_journal_preamble_blocks(&preamble), 0);
	bs_journal_preamble_take(&preamble, &name.head);
	bs_journal_preamble_take(&preamble, &hello.head);
	bs_journal_preamble_take(&preamble, &loss.head);
	for (unsigned i = 0; i < 1000; i++) {
		name.number = (uint16_t)(i % 256);
		bs_journal_preamble_take(&preamble, &name.head);
	}
	/* 1001 records of 128 bytes, of which 512 fit a block */
	assert_int_equal(preamble.node, 4);
	assert_int_equal(bs_journal_preamble_blocks(&preamble), 2);
	names = bs_journal_preamble_block(&preamble, 1, JOURNAL, 33, &block);
	assert_int_equal(block.bytes, 489 * 128);
	assert_int_equal(block.records, 489);
	assert_int_equal(block.sequence, 33);
	assert_int_equal(block.flags, BS_JOURNAL_REPEATS);
	assert_int_equal(names[0].number, 511 % 256);
	assert_true(bs_journal_block_check(&block));
	assert_int_equal(block.crc, crc((const void *)names, 489 * 128));
}

static void
names_beyond_the_preamble_are_counted(void **state)
{
	static struct bs_journal_preamble preamble;
	struct bs_rec_name name = {.kind = BS_NAME_SERVICE};

	(void)state;
	memset(&preamble, 0, sizeof(preamble));
	bs_record_head(&name.head, BS_REC_NAME, 0);
	for (unsigned i = 0; i < 5000; i++)
		bs_journal_preamble_take(&preamble, &name.head);
	assert_int_equal(preamble.bytes, 524288);
	assert_int_equal(preamble.lost, 5000 - 4096);
	assert_int_equal(bs_journal_preamble_blocks(&preamble), 8);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checksum_is_that_of_the_rfc),
		cmocka_unit_test_setup(headers_are_laid_out_as_documented, set_up),
		cmocka_unit_test_setup(what_was_written_is_read_in_pieces_of_any_size, set_up),
		cmocka_unit_test_setup(records_of_a_block_come_back, set_up),
		cmocka_unit_test_setup(file_cut_at_any_byte_gives_all_blocks_before, set_up),
		cmocka_unit_test_setup(any_flipped_bit_of_a_block_costs_that_block_alone, set_up),
		cmocka_unit_test_setup(any_flipped_bit_of_the_file_header_costs_no_block, set_up),
		cmocka_unit_test_setup(
			lost_bytes_cost_two_blocks_at_most_and_those_put_between_none, set_up),
		cmocka_unit_test_setup(what_is_no_journal_is_told_from_a_damaged_one, set_up),
		cmocka_unit_test_setup(lengths_that_cannot_be_are_no_block, set_up),
		cmocka_unit_test_setup(length_beyond_the_end_is_a_torn_block, set_up),
		cmocka_unit_test_setup(file_of_nothing_but_headers_is_skipped, set_up),
		cmocka_unit_test_setup(
			file_that_grows_is_followed_from_its_last_whole_block, set_up),
		cmocka_unit_test(verdict_and_group_are_one_item_or_none),
		cmocka_unit_test(preamble_holds_the_names_since_the_last_hello),
		cmocka_unit_test(names_beyond_the_preamble_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
