/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The analyzer's loop over a socketpair, with the real diagnosis and a clock
 * that the test steps. Every step has its input in the socket already, so that
 * nothing waits.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdalign.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bs_clock.h"
#include "loop.h"

#define T0 (1700000000ull * BS_NS_PER_S)
#define SERVICE 3u

static uint64_t clock_ns;

static uint64_t
read_clock(void)
{
	return clock_ns;
}

struct rig {
	struct bs_analyzer *analyzer;
	struct bs_journal *journal; /* NULL: none; the test does what its thread would */
	int file;
	int ours, its;
	int stop[2];
	uint64_t next_id;
	alignas(8) uint8_t batch[BS_BATCH_MAX_BYTES + BS_UNIT_BYTES];
	size_t bytes;
};

static int
set_up_with(void **state, bool journal)
{
	static struct rig rig;
	const struct bs_diag_config config = {
		.detect_ns = {0, 200000, 200000, 200000, 200000, 1000000},
	};
	int ends[2];

	memset(&rig, 0, sizeof(rig));
	clock_ns = 5000;
	bs_clock_now_ns = read_clock;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0 || pipe(rig.stop) != 0)
		return -1;
	rig.ours = ends[0];
	rig.its = ends[1];
	rig.next_id = 1;
	if (journal) {
		struct bs_journal_files files = {.count = 1, .file_bytes = 1u << 20};

		rig.file = files.first_fd = memfd_create("journal", MFD_CLOEXEC);
		rig.journal = bs_journal_create(&files, clock_ns);
		if (rig.journal == NULL)
			return -1;
	}
	rig.analyzer = bs_analyzer_create(rig.its, rig.stop[0], &config, rig.journal);
	*state = &rig;
	return rig.analyzer == NULL ? -1 : 0;
}

static int
set_up(void **state)
{
	return set_up_with(state, false);
}

static int
set_up_journal(void **state)
{
	return set_up_with(state, true);
}

static int
tear_down(void **state)
{
	struct rig *rig = *state;

	bs_analyzer_destroy(rig->analyzer);
	if (rig->journal != NULL)
		close(rig->file);
	bs_journal_destroy(rig->journal);
	close(rig->ours);
	close(rig->its);
	close(rig->stop[0]);
	close(rig->stop[1]);
	return 0;
}

static void
add(struct rig *rig, void *record, enum bs_record_type type, size_t bytes)
{
	bs_record_head(record, type, 1);
	assert_true(rig->bytes + bytes <= sizeof(rig->batch));
	memcpy(rig->batch + rig->bytes, record, bytes);
	rig->bytes += bytes;
}

static void
add_service(struct rig *rig, uint64_t slo_ns)
{
	struct bs_rec_name name = {.kind = BS_NAME_SERVICE, .number = SERVICE, .slo_ns = slo_ns};

	strcpy(name.name, "kv");
	add(rig, &name, BS_REC_NAME, sizeof(name));
}

static void
add_hello(struct rig *rig, uint64_t pause_ns)
{
	struct bs_rec_hello hello = {
		.magic = BS_HELLO_MAGIC,
		.version = BS_RECORD_VERSION,
		.detect_ns = {0, pause_ns, 200000, 200000, 200000, 1000000},
	};

	add(rig, &hello, BS_REC_HELLO, sizeof(hello));
}

static void
add_operation(struct rig *rig, const char *match, uint64_t slo_ns)
{
	struct bs_rec_name name = {.kind = BS_NAME_OPERATION, .number = SERVICE, .slo_ns = slo_ns};

	strcpy(name.name, match);
	add(rig, &name, BS_REC_NAME, sizeof(name));
}

/* An RPC that the service worked on all the time. Returns its ID. */
static uint64_t
add_rpc_of(struct rig *rig, uint64_t t, uint64_t latency_ns, const char *label, uint16_t buffer,
	uint8_t cause)
{
	struct bs_rec_rpc rpc = {
		.id = rig->next_id++,
		.ends = {.client_port = 40000,
			.server_port = 6379,
			.transport = 6,
			.ip_version = 4},
		.t_request_first = t,
		.t_request_last = t,
		.t_request_departure = t,
		.t_response_first = t + latency_ns,
		.t_response_last = t + latency_ns,
		.t_response_departure = t + latency_ns,
		.t_end = t + latency_ns,
		.request_bytes = 100,
		.response_bytes = 100,
		.messages = 2,
		.pending = 1,
		.segment_count = 1,
		.service = SERVICE,
		.outcome = BS_OUTCOME_ANSWERED,
		.label_len = (uint8_t)strlen(label),
	};
	struct bs_rec_segment segment = {
		.rpc_id = rpc.id,
		.end_ns = latency_ns,
		.buffer = buffer,
		.cause = cause,
	};

	memcpy(rpc.label, label, rpc.label_len);
	add(rig, &rpc, BS_REC_RPC, sizeof(rpc));
	add(rig, &segment, BS_REC_SEGMENT, sizeof(segment));
	return rpc.id;
}

static uint64_t
add_rpc(struct rig *rig, uint64_t t, uint64_t latency_ns)
{
	return add_rpc_of(rig, t, latency_ns, "", BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE);
}

/* Sends the batch and lets the analyzer take it. */
static void
deliver(struct rig *rig)
{
	assert_int_equal(send(rig->ours, rig->batch, rig->bytes, 0), rig->bytes);
	rig->bytes = 0;
	assert_int_equal(bs_analyzer_step(rig->analyzer, 0), 1);
}

/* The next verdict that came back with its RPC; false when there is none. */
static bool
next_verdict(struct rig *rig, struct bs_rec_verdict *verdict, struct bs_rec_rpc *rpc)
{
	static alignas(8) uint8_t data[BS_BATCH_MAX_BYTES];
	ssize_t got;

	while ((got = recv(rig->ours, data, sizeof(data), MSG_DONTWAIT)) > 0) {
		const struct bs_record *head;
		size_t offset = 0;
		int error;

		while ((head = bs_record_next(data, (size_t)got, &offset, &error)) != NULL) {
			struct bs_rpc_view view;
			size_t group_bytes;

			if (head->type != BS_REC_VERDICT)
				continue;
			memcpy(verdict, head, sizeof(*verdict));
			assert_int_equal(bs_rpc_view(data + offset, (size_t)got - offset, &view,
						 &group_bytes),
				0);
			*rpc = *view.rpc;
			return true;
		}
		assert_int_equal(error, 0);
	}
	return false;
}

static void
rpc_over_its_services_slo_comes_back_as_a_verdict_with_its_group(void **state)
{
	struct rig *rig = *state;
	struct bs_rec_verdict verdict;
	struct bs_rec_rpc rpc;
	uint64_t id;

	add_service(rig, BS_NS_PER_MS);
	for (unsigned i = 0; i < 20; i++)
		add_rpc(rig, T0 + i * BS_NS_PER_MS, 100 * BS_NS_PER_US);
	id = add_rpc(rig, T0 + 30 * BS_NS_PER_MS, 10 * BS_NS_PER_MS);
	deliver(rig);
	/* No record comes any more: only our clock says that the evidence has settled. */
	clock_ns += 2 * BS_NS_PER_S;
	assert_int_equal(bs_analyzer_step(rig->analyzer, 0), 1);
	assert_true(next_verdict(rig, &verdict, &rpc));
	assert_int_equal(verdict.rpc_id, id);
	assert_true((verdict.anomalous_by & BS_BY_SLO) != 0);
	assert_int_equal(rpc.id, id);
	assert_int_equal(rpc.segment_count, 1);
	assert_int_equal(bs_analyzer_counters(rig->analyzer)->records, 22);
	assert_int_equal(bs_analyzer_counters(rig->analyzer)->malformed, 0);
}

/* Why that RPC came back as anomalous; 0 if it did not. */
static unsigned
anomalous_by(struct rig *rig, uint64_t id)
{
	struct bs_rec_verdict verdict;
	struct bs_rec_rpc rpc;
	unsigned by = 0;

	deliver(rig);
	clock_ns += 2 * BS_NS_PER_S;
	assert_int_equal(bs_analyzer_step(rig->analyzer, 0), 1);
	while (next_verdict(rig, &verdict, &rpc))
		if (verdict.rpc_id == id)
			by = verdict.anomalous_by;
	return by;
}

static void
slo_of_an_operation_counts_until_it_is_not_told_any_more(void **state)
{
	struct rig *rig = *state;
	const uint16_t service = BS_BUFFER_SERVICE;
	uint64_t t = T0;

	for (unsigned round = 0; round < 3; round++, t += 3 * BS_NS_PER_S) {
		add_hello(rig, 200000);
		add_service(rig, 50 * BS_NS_PER_MS);
		if (round == 1)
			add_operation(rig, "LRANGE", BS_NS_PER_MS);
		uint64_t other =
			add_rpc_of(rig, t, 20 * BS_NS_PER_MS, "GET", service, BS_CAUSE_COMPUTE);
		uint64_t id =
			add_rpc_of(rig, t, 20 * BS_NS_PER_MS, "LRANGE", service, BS_CAUSE_COMPUTE);
		assert_int_not_equal(id, other);
		assert_int_equal(anomalous_by(rig, id), round == 1 ? BS_BY_SLO : 0);
	}
	assert_int_equal(bs_analyzer_counters(rig->analyzer)->malformed, 0);
}

static void
thresholds_of_the_hello_are_those_of_the_diagnosis(void **state)
{
	struct rig *rig = *state;
	const uint16_t socket = BS_BUFFER_CLIENT_SOCKET_RX;
	uint64_t t = T0;

	for (unsigned round = 0; round < 3; round++, t += 3 * BS_NS_PER_S) {
		add_hello(rig, round == 1 ? 50 * BS_NS_PER_MS : 5 * BS_NS_PER_MS);
		uint64_t id = add_rpc_of(rig, t, 20 * BS_NS_PER_MS, "GET", socket, BS_CAUSE_PAUSE);
		assert_int_equal(anomalous_by(rig, id), round == 1 ? 0 : BS_BY_EVIDENCE);
	}
}

/* A verdict about an RPC that ends at t comes when the evidence about it has settled. */
static void
assert_verdict_comes_in_time(struct rig *rig, uint64_t t)
{
	struct bs_rec_verdict verdict;
	struct bs_rec_rpc rpc;
	uint64_t id;

	id = add_rpc(rig, t - 10 * BS_NS_PER_MS, 10 * BS_NS_PER_MS);
	deliver(rig);
	assert_false(next_verdict(rig, &verdict, &rpc));
	clock_ns += 150 * BS_NS_PER_MS;
	assert_int_equal(bs_analyzer_step(rig->analyzer, 0), 1);
	assert_true(next_verdict(rig, &verdict, &rpc));
	assert_int_equal(verdict.rpc_id, id);
	assert_in_range(verdict.t, t + 100 * BS_NS_PER_MS, t + 200 * BS_NS_PER_MS);
}

static void
record_of_the_far_future_does_not_move_time(void **state)
{
	struct rig *rig = *state;
	const struct bs_analyzer_counters *counters = bs_analyzer_counters(rig->analyzer);
	const uint64_t year_ns = 365 * 86400 * BS_NS_PER_S;

	add_service(rig, BS_NS_PER_MS);
	assert_verdict_comes_in_time(rig, T0);
	/* However many they are while others come; 5 s ahead is none of them. */
	for (unsigned i = 0; i < 30; i++) {
		add_rpc(rig, T0 + year_ns + i, BS_NS_PER_MS);
		add_rpc(rig, UINT64_MAX - 2 * BS_NS_PER_MS, BS_NS_PER_MS);
	}
	deliver(rig);
	assert_int_equal(counters->ahead, 60);
	clock_ns += BS_NS_PER_S;
	assert_verdict_comes_in_time(rig, T0 + BS_NS_PER_S + 150 * BS_NS_PER_MS);
	assert_verdict_comes_in_time(rig, T0 + 5 * BS_NS_PER_S);
	assert_int_equal(counters->ahead, 60);
	assert_int_equal(counters->malformed, 0);
}

static void
lone_record_of_the_far_future_after_a_silence_does_not_move_time(void **state)
{
	struct rig *rig = *state;

	add_service(rig, BS_NS_PER_MS);
	assert_verdict_comes_in_time(rig, T0);
	clock_ns += 60 * BS_NS_PER_S;
	add_rpc(rig, T0 + 3600 * BS_NS_PER_S, BS_NS_PER_MS);
	deliver(rig);
	assert_int_equal(bs_analyzer_counters(rig->analyzer)->ahead, 1);
	assert_verdict_comes_in_time(rig, T0 + 60 * BS_NS_PER_S + 150 * BS_NS_PER_MS);
}

static void
first_record_of_a_date_that_no_clock_shows_does_not_set_the_time(void **state)
{
	struct rig *rig = *state;

	add_service(rig, BS_NS_PER_MS);
	for (unsigned i = 0; i < 30; i++)
		add_rpc(rig, UINT64_MAX - BS_NS_PER_MS, BS_NS_PER_MS);
	deliver(rig);
	clock_ns += 60 * BS_NS_PER_S;
	add_rpc(rig, UINT64_MAX - BS_NS_PER_MS, BS_NS_PER_MS);
	deliver(rig);
	assert_int_equal(bs_analyzer_counters(rig->analyzer)->ahead, 31);
	assert_verdict_comes_in_time(rig, T0);
}

static void
clock_of_all_records_that_jumped_is_followed(void **state)
{
	struct rig *rig = *state;
	uint64_t t = T0 + 3600 * BS_NS_PER_S;

	add_service(rig, BS_NS_PER_MS);
	assert_verdict_comes_in_time(rig, T0);
	for (unsigned i = 0; i < 60; i++, t += 100 * BS_NS_PER_MS) {
		add_rpc(rig, t, 100 * BS_NS_PER_US);
		deliver(rig);
		clock_ns += 100 * BS_NS_PER_MS;
	}
	/* 150 ms of the first verdict's wait passed before the first of these. */
	assert_in_range(bs_analyzer_counters(rig->analyzer)->ahead, 48, 50);
	assert_verdict_comes_in_time(rig, t);
}

/* What a batch says before its first bad record counts; the next batch is taken whole. */
static void
assert_rest_skipped(struct rig *rig, uint64_t records_before)
{
	const struct bs_analyzer_counters *counters = bs_analyzer_counters(rig->analyzer);
	uint64_t malformed = counters->malformed, records = counters->records;

	deliver(rig);
	assert_int_equal(counters->malformed, malformed + 1);
	assert_int_equal(counters->records, records + records_before);
	add_rpc(rig, T0, 1000);
	deliver(rig);
	assert_int_equal(counters->malformed, malformed + 1);
	assert_int_equal(counters->records, records + records_before + 1);
}

static void
bad_record_costs_the_rest_of_its_batch_only(void **state)
{
	struct rig *rig = *state;

	add_rpc(rig, T0, 1000);
	memset(rig->batch + rig->bytes, 0xA5, BS_UNIT_BYTES);
	rig->bytes += BS_UNIT_BYTES;
	add_rpc(rig, T0, 1000);
	assert_rest_skipped(rig, 1);
}

static void
rpc_without_its_segment_is_malformed(void **state)
{
	struct rig *rig = *state;

	add_rpc(rig, T0, 1000);
	rig->bytes -= sizeof(struct bs_rec_segment);
	assert_rest_skipped(rig, 0);
}

static void
batch_cut_in_a_record_is_malformed(void **state)
{
	struct rig *rig = *state;

	add_rpc(rig, T0, 1000);
	add_rpc(rig, T0, 1000);
	rig->bytes -= sizeof(struct bs_rec_segment) + 1;
	assert_rest_skipped(rig, 1);
}

static void
record_of_the_other_direction_is_malformed(void **state)
{
	struct rig *rig = *state;
	struct bs_rec_threshold threshold = {.latency_ns = 1, .service = SERVICE};

	add(rig, &threshold, BS_REC_THRESHOLD, sizeof(threshold));
	assert_rest_skipped(rig, 0);
}

static void
datagram_above_the_largest_batch_is_malformed(void **state)
{
	struct rig *rig = *state;

	rig->bytes = sizeof(rig->batch);
	assert_rest_skipped(rig, 0);
}

static void
empty_datagram_is_malformed_and_not_the_end(void **state)
{
	struct rig *rig = *state;

	assert_rest_skipped(rig, 0);
}

static void
random_batches_never_stop_the_loop(void **state)
{
	struct rig *rig = *state;
	uint64_t seed = 0x853C49E6748FEA9Bu;

	for (unsigned i = 0; i < 3000; i++) {
		add_service(rig, BS_NS_PER_MS);
		add_rpc(rig, T0 + i, 100000);
		add_rpc(rig, T0 + i, 9000000);
		/* A few bytes of good records flipped, and the length cut. */
		for (unsigned k = 0; k < 4; k++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			rig->batch[(seed >> 33) % rig->bytes] ^= (uint8_t)(seed >> 24);
		}
		if (i % 4 == 0)
			rig->bytes = (seed >> 40) % rig->bytes;
		clock_ns += BS_NS_PER_MS;
		deliver(rig);
	}
	assert_int_equal(bs_analyzer_counters(rig->analyzer)->batches, 3000);
	assert_true(bs_analyzer_counters(rig->analyzer)->malformed > 1000);
}

static void
reader_that_does_not_read_costs_records_and_never_time(void **state)
{
	const struct bs_analyzer_counters *counters;
	struct rig *rig = *state;
	struct bs_rec_verdict verdict;
	struct bs_rec_rpc rpc;
	uint64_t verdicts = 0;

	counters = bs_analyzer_counters(rig->analyzer);
	add_service(rig, BS_NS_PER_US);
	deliver(rig);
	for (unsigned i = 0; i < 20000 && counters->records_unsent == 0; i++) {
		add_rpc(rig, T0 + i * BS_NS_PER_MS, BS_NS_PER_MS);
		deliver(rig);
	}
	assert_true(counters->records_unsent > 0);
	/* It reads again: all that was not left out comes, and new ones after it. */
	clock_ns += 10 * BS_NS_PER_S;
	for (unsigned i = 0; i < 64; i++) {
		assert_int_equal(bs_analyzer_step(rig->analyzer, 0), 1);
		while (next_verdict(rig, &verdict, &rpc))
			verdicts++;
	}
	assert_true(verdicts > 0);
	assert_true(counters->batches_sent > 1);
}

/* Records in the journal's file of a type; *last is a copy of the newest. */
static unsigned
count_in_journal(const struct rig *rig, unsigned type, void *last)
{
	struct bs_journal_reader *reader = bs_journal_reader_create();
	struct bs_journal_found found;
	enum bs_journal_step step;
	unsigned count = 0;
	off_t at = 0;

	while ((step = bs_journal_reader_next(reader, &found)) != BS_JOURNAL_END) {
		struct bs_journal_item item;
		size_t offset = 0;

		if (step == BS_JOURNAL_MORE) {
			size_t room;
			void *to = bs_journal_reader_room(reader, &room);
			ssize_t n = pread(rig->file, to, room, at);

			bs_journal_reader_fill(reader, (size_t)n);
			at += n;
		}
		if (step != BS_JOURNAL_BLOCK)
			continue;
		while (bs_journal_item_next(found.records, found.block->bytes, &offset, &item) ==
			1) {
			if (item.record->type != type)
				continue;
			memcpy(last, item.record, item.bytes);
			count++;
		}
	}
	bs_journal_reader_destroy(reader);
	return count;
}

static void
verdict_is_told_once_the_journal_has_it(void **state)
{
	struct rig *rig = *state;
	struct bs_rec_verdict verdict;
	struct bs_rec_rpc rpc;
	struct {
		struct bs_rec_verdict verdict;
		uint8_t group[BS_RPC_GROUP_MAX_UNITS * BS_UNIT_BYTES];
	} written;
	uint64_t id;

	add_service(rig, BS_NS_PER_MS);
	id = add_rpc(rig, T0, 10 * BS_NS_PER_MS);
	deliver(rig);
	clock_ns += 2 * BS_NS_PER_S;
	assert_int_equal(bs_analyzer_step(rig->analyzer, 0), 1);
	assert_false(next_verdict(rig, &verdict, &rpc));
	bs_journal_write(rig->journal, clock_ns);
	assert_int_equal(count_in_journal(rig, BS_REC_VERDICT, &written), 1);
	assert_int_equal(written.verdict.rpc_id, id);
	assert_int_equal(count_in_journal(rig, BS_REC_NAME, &written), 2); /* once it repeats */
	assert_int_equal(count_in_journal(rig, BS_REC_RPC, &written), 1);
	assert_int_equal(bs_analyzer_step(rig->analyzer, 0), 1);
	assert_true(next_verdict(rig, &verdict, &rpc));
	assert_int_equal(verdict.rpc_id, id);
}

static void
journal_that_is_not_written_holds_a_verdict_for_a_tenth_of_a_second(void **state)
{
	struct rig *rig = *state;
	struct bs_rec_verdict verdict;
	struct bs_rec_rpc rpc;

	add_service(rig, BS_NS_PER_MS);
	add_rpc(rig, T0, 10 * BS_NS_PER_MS);
	deliver(rig);
	clock_ns += 2 * BS_NS_PER_S;
	assert_int_equal(bs_analyzer_step(rig->analyzer, 0), 1);
	clock_ns += 100 * BS_NS_PER_MS - 1;
	assert_int_equal(bs_analyzer_step(rig->analyzer, 0), 1);
	assert_false(next_verdict(rig, &verdict, &rpc));
	clock_ns++;
	assert_int_equal(bs_analyzer_step(rig->analyzer, 0), 1);
	assert_true(next_verdict(rig, &verdict, &rpc));
}

static void
journal_is_told_of_once_a_second(void **state)
{
	struct rig *rig = *state;
	struct bs_rec_journal journal[2];

	add_service(rig, BS_NS_PER_MS);
	deliver(rig);
	assert_int_equal(recv(rig->ours, journal, sizeof(journal), MSG_DONTWAIT), 128);
	assert_int_equal(journal[0].head.type, BS_REC_JOURNAL);
	assert_int_equal(journal[0].blocks, 0);
	clock_ns += BS_NS_PER_S;
	assert_int_equal(bs_analyzer_step(rig->analyzer, 0), 1);
	bs_journal_write(rig->journal, clock_ns);
	assert_int_equal(recv(rig->ours, journal, sizeof(journal), MSG_DONTWAIT), 128);
	clock_ns += BS_NS_PER_S - 1;
	assert_int_equal(bs_analyzer_step(rig->analyzer, 0), 1);
	assert_int_equal(recv(rig->ours, journal, sizeof(journal), MSG_DONTWAIT), -1);
	clock_ns++;
	assert_int_equal(bs_analyzer_step(rig->analyzer, 0), 1);
	assert_int_equal(recv(rig->ours, journal, sizeof(journal), MSG_DONTWAIT), 128);
	assert_int_equal(journal[0].records, 1);
	assert_int_equal(journal[0].file, 1);
	/* what a file begins with, and the block: 64 of the file, 64 + 128 each */
	assert_int_equal(journal[0].bytes, 64 + 2 * (64 + 128));
}

static void
closed_socket_ends_the_loop(void **state)
{
	struct rig *rig = *state;

	add_rpc(rig, T0, 1000);
	deliver(rig);
	assert_int_equal(shutdown(rig->ours, SHUT_RDWR), 0);
	assert_int_equal(bs_analyzer_step(rig->analyzer, 0), 0);
}

static void
stop_descriptor_ends_the_loop(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(bs_analyzer_step(rig->analyzer, 0), 1);
	assert_int_equal(write(rig->stop[1], "x", 1), 1);
	assert_int_equal(bs_analyzer_step(rig->analyzer, 0), 0);
}

#define WITH_JOURNAL(test) cmocka_unit_test_setup_teardown(test, set_up_journal, tear_down)
#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_RIG(rpc_over_its_services_slo_comes_back_as_a_verdict_with_its_group),
		WITH_RIG(slo_of_an_operation_counts_until_it_is_not_told_any_more),
		WITH_RIG(thresholds_of_the_hello_are_those_of_the_diagnosis),
		WITH_RIG(record_of_the_far_future_does_not_move_time),
		WITH_RIG(lone_record_of_the_far_future_after_a_silence_does_not_move_time),
		WITH_RIG(first_record_of_a_date_that_no_clock_shows_does_not_set_the_time),
		WITH_RIG(clock_of_all_records_that_jumped_is_followed),
		WITH_RIG(bad_record_costs_the_rest_of_its_batch_only),
		WITH_RIG(rpc_without_its_segment_is_malformed),
		WITH_RIG(batch_cut_in_a_record_is_malformed),
		WITH_RIG(record_of_the_other_direction_is_malformed),
		WITH_RIG(datagram_above_the_largest_batch_is_malformed),
		WITH_RIG(empty_datagram_is_malformed_and_not_the_end),
		WITH_RIG(random_batches_never_stop_the_loop),
		WITH_RIG(reader_that_does_not_read_costs_records_and_never_time),
		WITH_JOURNAL(verdict_is_told_once_the_journal_has_it),
		WITH_JOURNAL(journal_that_is_not_written_holds_a_verdict_for_a_tenth_of_a_second),
		WITH_JOURNAL(journal_is_told_of_once_a_second),
		WITH_RIG(closed_socket_ends_the_loop),
		WITH_RIG(stop_descriptor_ends_the_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
