/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What bufscoped says to the analyzer, from a bufscoped that may be anybody:
 * batches through the analyzer's loop, and all that it answers is valid.
 *
 * Input: batches {length (16); records}.
 */
#include <stdalign.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bs_clock.h"
#include "fuzz.h"
#include "loop.h"

static uint64_t now_ns = 1700000000000000000ull;

static uint64_t
steady(void)
{
	return now_ns += 1000000;
}

static void
read_answers(int fd)
{
	static alignas(8) uint8_t batch[BS_BATCH_MAX_BYTES];
	ssize_t bytes;

	while ((bytes = recv(fd, batch, sizeof(batch), MSG_DONTWAIT)) > 0) {
		size_t offset = 0;
		int error = 0;

		while (bs_record_next(batch, (size_t)bytes, &offset, &error) != NULL)
			continue;
		FUZZ_CHECK(error == 0);
	}
}

void
fuzz_one(const uint8_t *data, size_t bytes)
{
	const struct bs_diag_config config = {
		.detect_ns = {0, 200000, 200000, 200000, 200000, 1000000}};
	struct fuzz_input input = {data, bytes};
	struct bs_analyzer *analyzer;
	int ends[2];

	bs_clock_now_ns = steady;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		abort();
	analyzer = bs_analyzer_create(ends[0], -1, &config, NULL);
	if (analyzer == NULL)
		abort();
	while (input.bytes > 0) {
		size_t got, want = fuzz_u16(&input);
		uint8_t *batch = fuzz_take(&input, want, &got);

		if (got > 0 && send(ends[1], batch, got, MSG_DONTWAIT) == (ssize_t)got)
			FUZZ_CHECK(bs_analyzer_step(analyzer, 0) == 1);
		now_ns += 200000000;
		read_answers(ends[1]);
		free(batch);
	}
	for (unsigned i = 0; i < 4; i++) {
		now_ns += 1000000000;
		FUZZ_CHECK(bs_analyzer_step(analyzer, 0) == 1);
		read_answers(ends[1]);
	}
	bs_analyzer_destroy(analyzer);
	close(ends[0]);
	close(ends[1]);
}
