/* SPDX-License-Identifier: BSD-3-Clause */
/* Victims gathered into incidents. */
#include "diag_util.h"

#define BEGIN (T0 + SEC)

static void
feed_hung(struct heard *heard, uint64_t id, uint64_t t, uint64_t ns)
{
	feed_simple(heard, id, (unsigned)id % 1000, t, OWN_QUEUE, BS_CAUSE_HANG, ns);
}

static void
test_hang_of_50_ms_with_40000_victims_is_one_incident(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	struct bs_diag_counters counters;
	struct group group;
	feed_usual(heard, 1, 64, BEGIN);
	feed_episode(heard, OWN_QUEUE, BS_CAUSE_HANG, BEGIN, BEGIN + 50 * MS, BS_BUFFER_NONE, 1);
	for (unsigned i = 0; i < 40000; i++) {
		uint64_t at = BEGIN + i * US;
		group_simple(&group, 1000 + i, i % 1000, at, OWN_QUEUE, BS_CAUSE_HANG,
			BEGIN + 50 * MS - at);
		group_rpc(&group)->service = i % 4 == 3;
		struct bs_rec_segment *segment = &group_segments(&group)[1];
		segment->culprit_kind = BS_CULPRIT_LCORE;
		segment->culprit_id = 1;
		group_feed(heard, &group);
		if (i % 1000 == 0)
			bs_diag_advance(heard->diag, BEGIN + 50 * MS + i * US);
	}
	bs_diag_advance(heard->diag, BEGIN + 300 * MS);
	assert_int_equal(heard->verdicts, 40000);
	assert_int_equal(heard->opened, 1);
	bs_diag_advance(heard->diag, BEGIN + 2 * SEC);
	assert_int_equal(heard->closed, 1);
	assert_true(heard->incidents <= 6);

	const struct bs_rec_incident *last = &heard->incident[heard->incidents - 1];
	assert_int_equal(last->open, 0);
	assert_int_equal(last->victims, 40000);
	assert_blame(last->origin, OWN_QUEUE, BS_CAUSE_HANG);
	assert_int_equal(last->service_count, 2);
	assert_int_equal(last->by_service[0].service, 0);
	assert_int_equal(last->by_service[0].victims, 30000);
	assert_int_equal(last->by_service[1].victims, 10000);
	assert_int_equal(last->t_begin, BEGIN + 10 * US);
	assert_int_equal(last->culprit_count, 1);
	assert_int_equal(last->culprit_kind[0], BS_CULPRIT_LCORE);
	assert_int_equal(last->culprits[0].ns, 50 * MS); /* once, not 40000 times */
	/* The worst came first. */
	assert_int_equal(last->worst_count, BS_INCIDENT_WORST);
	for (unsigned i = 0; i < BS_INCIDENT_WORST; i++)
		assert_int_equal(last->worst[i], 1000 + i);
	/* 40000 groups do not fit: some were settled before their time, none was lost. */
	bs_diag_counters(heard->diag, &counters);
	assert_true(counters.settled_early > 0);
	heard_destroy(heard);
}

static unsigned
incidents_of_two(
	unsigned first_buffer, unsigned second_buffer, uint64_t distance, unsigned second_service)
{
	struct heard *heard = heard_create(true);
	struct group group;
	feed_usual(heard, 1, 64, BEGIN);
	group_simple(&group, 1000, 0, BEGIN, first_buffer, BS_CAUSE_PAUSE, 10 * MS);
	judge_group(heard, &group);
	group_simple(&group, 1001, 0, BEGIN + 10 * MS + distance, second_buffer, BS_CAUSE_PAUSE,
		10 * MS);
	group_rpc(&group)->service = (uint16_t)second_service;
	judge_group(heard, &group);
	bs_diag_finish(heard->diag);
	unsigned closed = heard->closed;
	heard_destroy(heard);
	return closed;
}

static void
test_victims_join_only_if_near_and_of_the_same_origin(void **state)
{
	(void)state;
	const unsigned client = BS_BUFFER_CLIENT_SOCKET_RX, server = BS_BUFFER_SERVER_SOCKET_RX;
	assert_int_equal(incidents_of_two(client, client, 49 * MS, 0), 1);
	assert_int_equal(incidents_of_two(client, client, 51 * MS, 0), 2);
	assert_int_equal(incidents_of_two(client, server, 0, 0), 2);
	assert_int_equal(incidents_of_two(client, client, 0, 1), 1);
	/* The socket of another service is another buffer. */
	assert_int_equal(incidents_of_two(server, server, 0, 0), 1);
	assert_int_equal(incidents_of_two(server, server, 0, 1), 2);
}

static void
feed_lost(struct heard *heard, uint64_t id, uint64_t t)
{
	feed_simple(heard, id, (unsigned)id % 1000, t, BS_BUFFER_NET_RESPONSE_AFTER, BS_CAUSE_DROP,
		5 * MS);
}

static void
test_lone_victim_of_another_is_no_incident_until_there_is_a_second(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	feed_usual(heard, 1, 64, BEGIN);
	/* Each in its time: verdicts, no incident. */
	uint64_t t = BEGIN;
	for (unsigned i = 0; i < 250; i++, t += 200 * MS) {
		feed_lost(heard, 1000 + i, t);
		bs_diag_advance(heard->diag, t);
	}
	bs_diag_advance(heard->diag, t + 5 * SEC);
	assert_int_equal(heard->verdicts, 250);
	assert_int_equal(heard->incidents, 0);

	t += 10 * SEC;
	feed_lost(heard, 5000, t);
	bs_diag_advance(heard->diag, t + 300 * MS);
	assert_int_equal(heard->incidents, 0);
	feed_lost(heard, 5001, t + 20 * MS);
	bs_diag_advance(heard->diag, t + 600 * MS);
	assert_int_equal(heard->incidents, 1);
	assert_int_equal(heard->incident[0].victims, 2);
	assert_int_equal(heard->incident[0].t_begin, t + 10 * US);
	assert_int_equal(heard->incident[0].worst_count, 2);
	bs_diag_advance(heard->diag, t + 3 * SEC);
	assert_int_equal(heard->closed, 1);
	heard_destroy(heard);
}

static unsigned
incidents_of_one(unsigned buffer, unsigned cause)
{
	struct heard *heard = heard_create(true);
	struct group group;
	feed_usual(heard, 1, 64, BEGIN);
	group_simple(&group, 1000, 0, BEGIN, buffer, cause, 20 * MS);
	assert_int_not_equal(judge_group(heard, &group).anomalous_by, 0);
	bs_diag_finish(heard->diag);
	unsigned closed = heard->closed;
	heard_destroy(heard);
	return closed;
}

static void
test_one_victim_is_an_incident_of_ours_or_of_a_receiver_only(void **state)
{
	(void)state;
	assert_int_equal(incidents_of_one(BS_BUFFER_SERVICE, BS_CAUSE_COMPUTE), 0);
	assert_int_equal(incidents_of_one(BS_BUFFER_SERVICE, BS_CAUSE_HANG), 0);
	assert_int_equal(incidents_of_one(BS_BUFFER_NET_REQUEST_AFTER, BS_CAUSE_DROP), 0);
	assert_int_equal(incidents_of_one(BS_BUFFER_CLIENT_SOCKET_RX, BS_CAUSE_PAUSE), 1);
	assert_int_equal(incidents_of_one(OWN_PORT, BS_CAUSE_CONGESTION), 1);
	assert_int_equal(incidents_of_one(OWN_QUEUE, BS_CAUSE_HANG), 1);
}

static void
test_crowd_of_lone_victims_does_not_push_out_an_incident(void **state)
{
	(void)state;
	struct heard *heard = heard_create(true);
	struct group group;
	feed_usual(heard, 1, 64, BEGIN);
	for (unsigned i = 0; i < 5000; i++) {
		/* The first two are one incident, all others lone. */
		uint64_t t = BEGIN + (i < 2 ? 0 : i * SEC);
		group_simple(&group, 1000 + i, 0, t, BS_BUFFER_NET_RESPONSE_AFTER, BS_CAUSE_DROP,
			5 * MS);
		judge_group(heard, &group);
	}
	assert_int_equal(heard->closed, 0);
	bs_diag_finish(heard->diag);
	assert_int_equal(heard->closed, 1);
	assert_int_equal(heard->incident[heard->incidents - 1].victims, 2);
	heard_destroy(heard);
}

static void
test_incident_is_told_when_opened_changed_and_closed(void **state)
{
	(void)state;
	struct heard *heard = heard_create(false);
	feed_usual(heard, 1, 64, BEGIN);
	/* A victim each 10 ms for a second. */
	for (unsigned i = 0; i < 100; i++) {
		feed_hung(heard, 1000 + i, BEGIN + i * 10 * MS, 5 * MS);
		bs_diag_advance(heard->diag, BEGIN + i * 10 * MS);
	}
	uint64_t end = BEGIN + 990 * MS + 110 * MS; /* when the last is settled, or so */
	bs_diag_advance(heard->diag, end);
	assert_int_equal(heard->opened, 1);
	assert_in_range(heard->incidents, 4, 5); /* one each 250 ms */
	bs_diag_advance(heard->diag, end + 900 * MS);
	assert_int_equal(heard->closed, 0);
	bs_diag_advance(heard->diag, end + 1100 * MS);
	assert_int_equal(heard->closed, 1);
	assert_int_equal(heard->incident[heard->incidents - 1].victims, 100);
	unsigned told = heard->incidents;
	bs_diag_advance(heard->diag, end + 5 * SEC);
	assert_int_equal(heard->incidents, told);
	/* The next is another one. */
	feed_hung(heard, 2000, end + 6 * SEC, 5 * MS);
	bs_diag_advance(heard->diag, end + 7 * SEC);
	assert_int_equal(heard->opened, 2);
	assert_int_not_equal(
		heard_of(heard, 2000)->incident_id, heard_of(heard, 1000)->incident_id);
	heard_destroy(heard);
}

static void
test_more_incidents_than_places_closes_the_oldest(void **state)
{
	(void)state;
	struct heard *heard = heard_create(true);
	struct group group;
	feed_usual(heard, 1, 64, BEGIN);
	for (unsigned i = 0; i < 3000; i++) {
		group_simple(
			&group, 1000 + i, 0, BEGIN + i * SEC, OWN_QUEUE, BS_CAUSE_HANG, 5 * MS);
		judge_group(heard, &group);
	}
	assert_true(heard->closed > 0);
	bs_diag_finish(heard->diag);
	assert_int_equal(heard->opened, 3000);
	assert_int_equal(heard->closed, 3000);
	heard_destroy(heard);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hang_of_50_ms_with_40000_victims_is_one_incident),
		cmocka_unit_test(test_victims_join_only_if_near_and_of_the_same_origin),
		cmocka_unit_test(
			test_lone_victim_of_another_is_no_incident_until_there_is_a_second),
		cmocka_unit_test(test_one_victim_is_an_incident_of_ours_or_of_a_receiver_only),
		cmocka_unit_test(test_crowd_of_lone_victims_does_not_push_out_an_incident),
		cmocka_unit_test(test_incident_is_told_when_opened_changed_and_closed),
		cmocka_unit_test(test_more_incidents_than_places_closes_the_oldest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
