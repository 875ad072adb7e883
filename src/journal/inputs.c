/* SPDX-License-Identifier: BSD-3-Clause */
#include "inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIXES 100u /* the files of a set are <path>.0 to <path>.99 */
#define READ_BYTES (512u << 10)

static int
add(struct inputs *inputs, const char *path, int fd, uint64_t bytes)
{
	struct input *input;

	if (inputs->count == inputs->room) {
		unsigned room = inputs->room > 0 ? 2 * inputs->room : 16;
		struct input *list = reallocarray(inputs->list, room, sizeof(*list));

		if (list == NULL)
			return -ENOMEM;
		inputs->list = list;
		inputs->room = room;
	}
	input = &inputs->list[inputs->count];
	memset(input, 0, sizeof(*input));
	input->path = strdup(path);
	if (input->path == NULL)
		return -ENOMEM;
	input->fd = fd;
	input->file_bytes = bytes;
	inputs->count++;
	return 0;
}

/* 0, or -errno; -ENOENT is not told. */
static int
open_one(struct inputs *inputs, const char *path, const char *program, FILE *err)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), ret;

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 || fstat(fd, &st) != 0) {
		fprintf(err, "%s: %s: %s\n", program, path, strerror(errno));
		ret = -EIO;
	} else if (!S_ISREG(st.st_mode)) {
		fprintf(err, "%s: %s: not a regular file\n", program, path);
		ret = -EIO;
	} else {
		ret = add(inputs, path, fd, (uint64_t)st.st_size);
	}
	if (ret != 0 && fd >= 0)
		close(fd);
	inputs->failed += ret == -EIO;
	return ret == -EIO ? 0 : ret;
}

static int
open_named(struct inputs *inputs, const char *path, const char *program, FILE *err)
{
	unsigned found = 0;
	int ret = open_one(inputs, path, program, err);

	if (ret != -ENOENT)
		return ret;
	for (unsigned i = 0; i < SUFFIXES; i++) {
		char *name;

		if (asprintf(&name, "%s.%u", path, i) < 0)
			return -ENOMEM;
		ret = open_one(inputs, name, program, err);
		free(name);
		if (ret != 0 && ret != -ENOENT)
			return ret;
		found += ret == 0;
	}
	if (found > 0)
		return 0;
	fprintf(err, "%s: %s: there is no such file, and no %s.0 of a journal\n", program, path,
		path);
	inputs->failed++;
	return 0;
}

int
inputs_open(struct inputs *inputs, const char *const *paths, unsigned count, const char *program,
	FILE *err)
{
	int ret = 0;

	for (unsigned i = 0; i < count && ret == 0; i++)
		ret = open_named(inputs, paths[i], program, err);
	return ret;
}

enum bs_journal_step
input_next(struct input *input, struct bs_journal_reader *reader, uint64_t *offset,
	struct bs_journal_found *found, int *error)
{
	enum bs_journal_step step;

	*error = 0;
	while ((step = bs_journal_reader_next(reader, found)) == BS_JOURNAL_MORE) {
		size_t room;
		void *to = bs_journal_reader_room(reader, &room);
		ssize_t got;

		do
			got = pread(input->fd, to, room < READ_BYTES ? room : READ_BYTES,
				(off_t)*offset);
		while (got < 0 && errno == EINTR);
		if (got < 0) {
			*error = errno;
			return BS_JOURNAL_END;
		}
		*offset += (uint64_t)got;
		bs_journal_reader_fill(reader, (size_t)got);
	}
	return step;
}

/* What its header says, else the first block that can be read. */
static void
look(struct input *input, struct bs_journal_reader *reader)
{
	struct bs_journal_found found;
	uint64_t offset = 0;
	int error;

	bs_journal_reader_restart(reader);
	for (;;) {
		switch (input_next(input, reader, &offset, &found, &error)) {
		case BS_JOURNAL_FILE:
			input->journal = found.file->journal;
			input->sequence = found.file->first_block;
			return;
		case BS_JOURNAL_BLOCK:
			input->journal = found.block->journal;
			input->sequence = found.block->sequence;
			return;
		case BS_JOURNAL_DAMAGE:
			break;
		default:
			return;
		}
	}
}

static int
by_order(const void *a, const void *b)
{
	const struct input *x = a, *y = b;

	if (x->journal != y->journal)
		return x->journal < y->journal ? -1 : 1;
	return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

void
inputs_sort(struct inputs *inputs, struct bs_journal_reader *reader)
{
	for (unsigned i = 0; i < inputs->count; i++)
		look(&inputs->list[i], reader);
	if (inputs->count > 0)
		qsort(inputs->list, inputs->count, sizeof(inputs->list[0]), by_order);
}

void
input_damaged(struct input *input, uint64_t offset, uint64_t bytes, const char *what)
{
	if (input->damage_count < INPUT_DAMAGES)
		input->damages[input->damage_count] = (struct input_damage){offset, bytes, what};
	input->damage_count++;
	input->skipped_bytes += bytes;
}

void
inputs_close(struct inputs *inputs)
{
	for (unsigned i = 0; i < inputs->count; i++) {
		close(inputs->list[i].fd);
		free(inputs->list[i].path);
	}
	free(inputs->list);
	memset(inputs, 0, sizeof(*inputs));
}
