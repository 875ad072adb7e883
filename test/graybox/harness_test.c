/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The harness itself: an RPC whose time is all known, and each of its checks on
 * something that is wrong, where it must say so.
 */
#include "gb_frames.h"
#include "gb_records.h"

#include <errno.h>
#include <stdlib.h>

/* One RPC: the request passes now, the service takes so long, the response passes. */
static void
whole_rpc(struct gb *gb, struct gb_flow *flow, uint32_t id, uint64_t service_ns)
{
	struct frame frame;

	gb_message(&frame, flow, GB_CLIENT, id, 100);
	gb_pass(gb, GB_WIRE, &frame);
	gb_run(gb, gb_time.now_ns + service_ns, 50 * GB_US);
	gb_message(&frame, flow, GB_SERVER, id, 60);
	gb_pass(gb, GB_LOCAL, &frame);
	gb_ack(&frame, flow, GB_CLIENT);
	gb_pass(gb, GB_WIRE, &frame);
}

static void
an_rpc_of_which_all_is_known_is_told_to_the_nanosecond(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct bs_rpc_view rpc;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	whole_rpc(gb, &flow, 7, 730 * GB_US);
	gb_collect(gb, 1);
	assert_int_equal(gb_record_count(gb, BS_REC_RPC), 1);
	rpc = gb_rpc(gb, 0);
	assert_int_equal(rpc.rpc->t_request_first, GB_T0);
	assert_int_equal(rpc.rpc->t_response_departure, GB_T0 + 730 * GB_US);
	assert_int_equal(rpc.rpc->request_bytes, 100);
	assert_int_equal(rpc.rpc->response_bytes, 60);
	assert_int_equal(rpc.rpc->outcome, BS_OUTCOME_ANSWERED);
	assert_int_equal(rpc.rpc->event_count, 0);
	gb_assert_parts(&rpc, {730 * GB_US, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0});
	assert_int_equal(gb_drain(gb, GB_LOCAL), 2);
	assert_int_equal(gb_drain(gb, GB_WIRE), 1);
	gb_close(gb);
}

static void
frames_come_out_as_they_went_in(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame in, out;

	(void)state;
	gb_message(&in, &flow, GB_CLIENT, 1, 500);
	assert_true(gb_checksums_ok(&in));
	gb_pass(gb, GB_WIRE, &in);
	assert_true(gb_take(gb, GB_LOCAL, &out));
	assert_int_equal(out.n, in.n);
	assert_memory_equal(out.bytes, in.bytes, in.n);
	assert_false(gb_take(gb, GB_LOCAL, &out));
	gb_close(gb);
}

static void
a_wrong_checksum_in_a_frame_is_noticed(void **state)
{
	struct gb_flow flow = gb_flow(40000, 6379);
	struct frame frame;

	(void)state;
	gb_message(&frame, &flow, GB_CLIENT, 1, 99);
	assert_true(gb_checksums_ok(&frame));
	frame.bytes[frame.n - 1] ^= 1;
	assert_false(gb_checksums_ok(&frame));
	flow.ip_version = 6;
	gb_message(&frame, &flow, GB_CLIENT, 1, 99);
	assert_true(gb_checksums_ok(&frame));
	frame.bytes[frame.l4] ^= 1;
	assert_false(gb_checksums_ok(&frame));
}

static void
a_packet_that_nobody_counted_is_noticed(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct frame frame;

	(void)state;
	gb_arp(&frame);
	gb_pass(gb, GB_WIRE, &frame);
	assert_null(gb_check_packets(gb));
	gb->dataplane->lcores[0]->ingress[0].packets++;
	assert_non_null(gb_check_packets(gb));
	gb->dataplane->lcores[0]->ingress[0].packets--;
	gb->dataplane->lcores[0]->accounts[GB_WIRE].reasons[BS_REASON_RUNT]++;
	assert_non_null(gb_check_packets(gb));
	gb->dataplane->lcores[0]->accounts[GB_WIRE].reasons[BS_REASON_RUNT]--;
	gb_close(gb);
}

static void
a_leaked_mbuf_is_noticed(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct rte_mbuf *leaked = rte_pktmbuf_alloc(gb->dataplane->pool);

	(void)state;
	assert_non_null(gb_check_pool(gb));
	rte_pktmbuf_free(leaked);
	assert_null(gb_check_pool(gb));
	gb_close(gb);
}

static void
segments_other_than_expected_are_noticed(void **state)
{
	struct gb *gb = gb_open(NULL);
	struct gb_flow flow = gb_flow(40000, 6379);
	const struct gb_part right = {100 * GB_US, BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE, 0};
	struct gb_part wrong[2] = {right, right};
	struct bs_rpc_view rpc;

	(void)state;
	gb_connect(gb);
	gb_handshake(gb, &flow);
	whole_rpc(gb, &flow, 7, 100 * GB_US);
	gb_collect(gb, 1);
	rpc = gb_rpc(gb, 0);
	assert_null(gb_check_parts(&rpc, &right, 1));
	assert_non_null(gb_check_parts(&rpc, wrong, 2));
	assert_non_null(gb_check_parts(&rpc, wrong, 0));
	wrong[0].ns--;
	assert_non_null(gb_check_parts(&rpc, wrong, 1));
	wrong[0] = right;
	wrong[0].cause = BS_CAUSE_HANG;
	assert_non_null(gb_check_parts(&rpc, wrong, 1));
	wrong[0] = right;
	wrong[0].buffer++;
	assert_non_null(gb_check_parts(&rpc, wrong, 1));
	gb_close(gb);
}

/* The group of one RPC as the collector sends it; each test breaks it in its own way. */
static size_t
one_group(struct gb *gb, uint64_t *units, size_t max)
{
	struct gb_flow flow = gb_flow(40000, 6379);
	size_t bytes = 0;

	gb_connect(gb);
	gb_handshake(gb, &flow);
	whole_rpc(gb, &flow, 7, 100 * GB_US);
	gb_collect(gb, 1);
	for (size_t i = 0; i < gb->record_count; i++) {
		if (((const struct bs_record *)gb->records[i].units)->type != BS_REC_RPC)
			continue;
		bytes = gb->records[i].bytes;
		assert_true(bytes <= max);
		memcpy(units, gb->records[i].units, bytes);
	}
	assert_true(bytes > 0);
	return bytes;
}

static void
a_batch_that_is_not_all_records_is_noticed(void **state)
{
	struct gb *gb = gb_open(NULL);
	uint64_t units[512], saved;
	size_t bytes = one_group(gb, units, sizeof(units));
	struct bs_record *head = (void *)units;
	struct bs_rec_segment *segment = (void *)((uint8_t *)units + sizeof(struct bs_rec_rpc));

	(void)state;
	assert_null(gb_read_batch(gb, units, bytes));
	assert_non_null(gb_read_batch(gb, units, bytes - BS_UNIT_BYTES));
	assert_non_null(gb_read_batch(gb, units, bytes - 1));
	assert_non_null(gb_read_batch(gb, segment, sizeof(*segment)));
	saved = segment->end_ns;
	segment->end_ns--;
	assert_non_null(gb_read_batch(gb, units, bytes));
	segment->end_ns = saved;
	head->type = BS_REC_TYPE_COUNT;
	assert_non_null(gb_read_batch(gb, units, bytes));
	gb_close(gb);
}

static void
a_configuration_that_is_none_is_refused(void **state)
{
	struct bs_config *config = malloc(sizeof(*config));
	char error[BS_CONFIG_ERROR_BYTES];

	(void)state;
	assert_non_null(config);
	assert_int_equal(gb_configure(&(struct gb_setup){0}, config, error), 0);
	assert_int_equal(
		gb_configure(&(struct gb_setup){.more = ", \"color\": 1"}, config, error), -EINVAL);
	free(config);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		GB_TEST(an_rpc_of_which_all_is_known_is_told_to_the_nanosecond),
		GB_TEST(frames_come_out_as_they_went_in),
		GB_TEST(a_wrong_checksum_in_a_frame_is_noticed),
		GB_TEST(a_packet_that_nobody_counted_is_noticed),
		GB_TEST(a_leaked_mbuf_is_noticed),
		GB_TEST(segments_other_than_expected_are_noticed),
		GB_TEST(a_batch_that_is_not_all_records_is_noticed),
		GB_TEST(a_configuration_that_is_none_is_refused),
	};

	return cmocka_run_group_tests_name(
		"graybox_harness", tests, gb_group_setup, gb_group_teardown);
}
