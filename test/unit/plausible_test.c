/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an analyzer that was taken over may claim: valid records, one of each
 * good, and each of them with one thing that cannot be.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "plausible.h"

#define T_START 1000000000000ull
#define T_NOW (T_START + 60000000000ull)
#define AHEAD 10000000000ull
#define MS 1000000ull

static const struct bs_plausible here = {
	.service_count = 2, .buffer_count = 3, .t_start = T_START, .t_now = T_NOW};

static struct bs_rec_verdict verdict;
static struct bs_rec_rpc rpc;
static struct bs_rec_segment segments[2];
static struct bs_rec_event event;
static struct bs_rec_incident incident;

/* A verdict on an RPC of 5 ms with two segments and an event. */
static void
make_good(void)
{
	memset(&verdict, 0, sizeof(verdict));
	memset(&rpc, 0, sizeof(rpc));
	memset(segments, 0, sizeof(segments));
	memset(&event, 0, sizeof(event));
	bs_record_head(&verdict.head, BS_REC_VERDICT, 0);
	verdict.rpc_id = rpc.id = 7;
	verdict.has_root = verdict.alternative_count = verdict.via_count = 1;
	verdict.root.buffer = BS_BUFFER_FIRST_OWN + 2;
	verdict.excess_ns = 4 * MS;
	bs_record_head(&rpc.head, BS_REC_RPC, 0);
	rpc.service = 1;
	rpc.outcome = BS_OUTCOME_ANSWERED;
	rpc.t_request_first = T_NOW - 10 * MS;
	rpc.t_response_last = rpc.t_response_departure = rpc.t_end = T_NOW - 5 * MS;
	rpc.segment_count = 2;
	rpc.event_count = 1;
	for (unsigned i = 0; i < 2; i++) {
		bs_record_head(&segments[i].head, BS_REC_SEGMENT, 0);
		segments[i].rpc_id = 7;
		segments[i].begin_ns = i * 2 * MS;
		segments[i].end_ns = i == 0 ? 2 * MS : 5 * MS;
		segments[i].buffer = BS_BUFFER_FIRST_OWN;
	}
	bs_record_head(&event.head, BS_REC_EVENT, 0);
	event.rpc_id = 7;
	event.t_begin = T_NOW - 9 * MS;
	event.t_end = T_NOW - 8 * MS;
	event.buffer = event.upstream = BS_BUFFER_FIRST_OWN + 1;
}

static bool
is_plausible(void)
{
	const struct bs_rpc_view view = {&rpc, segments, &event};

	return bs_plausible_verdict(&here, &verdict, &view);
}

#define ASSERT_IMPLAUSIBLE(change)                                                                 \
	do {                                                                                       \
		make_good();                                                                       \
		assert_true(is_plausible());                                                       \
		change;                                                                            \
		assert_false(is_plausible());                                                      \
	} while (0)

#define ASSERT_PLAUSIBLE(change)                                                                   \
	do {                                                                                       \
		make_good();                                                                       \
		change;                                                                            \
		assert_true(is_plausible());                                                       \
	} while (0)

static void
verdict_on_what_is_not_there_is_rejected(void **state)
{
	(void)state;
	ASSERT_IMPLAUSIBLE(rpc.service = 2);
	ASSERT_IMPLAUSIBLE(rpc.service = BS_MAX_SERVICES - 1);
	ASSERT_PLAUSIBLE(rpc.service = BS_MAX_SERVICES); /* other */
	ASSERT_IMPLAUSIBLE(verdict.root.buffer = BS_BUFFER_FIRST_OWN + 3);
	ASSERT_IMPLAUSIBLE(verdict.alternatives[0].buffer = BS_BUFFER_FIRST_OWN + 3);
	ASSERT_IMPLAUSIBLE(verdict.via[0].buffer = BS_BUFFER_MAX - 1);
	ASSERT_PLAUSIBLE(verdict.via[1].buffer = BS_BUFFER_MAX - 1); /* not counted */
	ASSERT_IMPLAUSIBLE(segments[1].buffer = BS_BUFFER_FIRST_OWN + 3);
	ASSERT_IMPLAUSIBLE(event.buffer = BS_BUFFER_FIRST_OWN + 3);
	ASSERT_IMPLAUSIBLE(event.upstream = BS_BUFFER_FIRST_OWN + 3);
	ASSERT_IMPLAUSIBLE(verdict.rpc_id = 8);
}

static void
verdict_on_times_that_cannot_be_is_rejected(void **state)
{
	(void)state;
	ASSERT_IMPLAUSIBLE(rpc.t_end = T_NOW + AHEAD + 1);
	ASSERT_IMPLAUSIBLE(rpc.t_end = UINT64_MAX);
	ASSERT_PLAUSIBLE(rpc.t_end = T_NOW + AHEAD);
	/* ended before bufscoped was started */
	ASSERT_IMPLAUSIBLE((rpc.t_request_first = T_START - 6 * MS, rpc.t_end = T_START - 1,
		rpc.t_response_last = rpc.t_response_departure = T_START - MS));
	ASSERT_IMPLAUSIBLE(event.t_end = T_NOW + AHEAD + 1);
	ASSERT_IMPLAUSIBLE(event.t_begin = T_NOW + AHEAD + 1);
	ASSERT_PLAUSIBLE(event.t_end = 0); /* still going on */
}

static void
verdict_that_contradicts_its_rpc_is_rejected(void **state)
{
	(void)state;
	ASSERT_IMPLAUSIBLE(segments[1].begin_ns = 3 * MS);
	ASSERT_IMPLAUSIBLE(segments[1].end_ns = 6 * MS);
	ASSERT_IMPLAUSIBLE(rpc.segment_count = 1);
	ASSERT_IMPLAUSIBLE(rpc.segment_count = 0);
	ASSERT_IMPLAUSIBLE(verdict.excess_ns = 5 * MS + 1);
	ASSERT_PLAUSIBLE(verdict.excess_ns = 5 * MS);
}

static void
make_incident(void)
{
	memset(&incident, 0, sizeof(incident));
	bs_record_head(&incident.head, BS_REC_INCIDENT, 0);
	incident.origin.buffer = BS_BUFFER_FIRST_OWN;
	incident.t_begin = T_NOW - MS;
	incident.t_end = T_NOW;
	incident.victims = 5;
	incident.service_count = 2;
	incident.by_service[0].service = 0;
	incident.by_service[0].victims = 3;
	incident.by_service[1].service = BS_MAX_SERVICES;
	incident.by_service[1].victims = 2;
}

#define ASSERT_NO_INCIDENT(change)                                                                 \
	do {                                                                                       \
		make_incident();                                                                   \
		assert_true(bs_plausible_incident(&here, &incident));                              \
		change;                                                                            \
		assert_false(bs_plausible_incident(&here, &incident));                             \
	} while (0)

static void
incident_that_cannot_be_is_rejected(void **state)
{
	(void)state;
	ASSERT_NO_INCIDENT(incident.origin.buffer = BS_BUFFER_FIRST_OWN + 3);
	ASSERT_NO_INCIDENT(incident.t_begin = T_NOW + AHEAD + 1);
	ASSERT_NO_INCIDENT(incident.t_end = UINT64_MAX);
	ASSERT_NO_INCIDENT(incident.by_service[1].service = 2);
	ASSERT_NO_INCIDENT(incident.victims = 4);
	ASSERT_NO_INCIDENT(incident.by_service[0].victims = UINT32_MAX);
}

static void
threshold_is_for_services_that_are_there(void **state)
{
	struct bs_rec_threshold threshold = {.latency_ns = 1};

	(void)state;
	for (unsigned service = 0; service <= BS_MAX_SERVICES; service++) {
		threshold.service = (uint16_t)service;
		assert_int_equal(bs_plausible_threshold(&here, &threshold),
			service < 2 || service == BS_MAX_SERVICES);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verdict_on_what_is_not_there_is_rejected),
		cmocka_unit_test(verdict_on_times_that_cannot_be_is_rejected),
		cmocka_unit_test(verdict_that_contradicts_its_rpc_is_rejected),
		cmocka_unit_test(incident_that_cannot_be_is_rejected),
		cmocka_unit_test(threshold_is_for_services_that_are_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
