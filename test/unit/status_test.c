/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers to the commands: their shape, their numbers, what they say of an unhealthy system. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "bs_packet.h"
#include "fake_source.h"
#include "troubles.h"

static char error[BS_STATUS_ERROR_BYTES];

static int
setup(void **state)
{
	*state = fake_create(false);
	return 0;
}

static int
teardown(void **state)
{
	fake_destroy(*state);
	return 0;
}

static json_t *
ask(struct fake *fake, const char *command, const char *params)
{
	json_t *result = NULL;

	assert_int_equal(bs_status_answer(&fake->source, command, params, &result, error), 0);
	assert_non_null(result);
	return result;
}

static json_int_t
number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	assert_true(json_is_integer(value));
	return json_integer_value(value);
}

static const char *
text(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	assert_non_null(value);
	return value;
}

static void
status_of_a_healthy_system_has_no_problems(void **state)
{
	json_t *status = ask(*state, "/bufscope/status", NULL);
	json_t *port = json_array_get(json_object_get(status, "ports"), 1);

	assert_string_equal(text(status, "state"), "ok");
	assert_int_equal(json_array_size(json_object_get(status, "problems")), 0);
	assert_int_equal(number(status, "pid"), 4242);
	assert_int_equal(number(status, "uptime_ns"), 60000000000);
	assert_string_equal(text(status, "t_now"), "1700000000123456789");
	assert_string_equal(text(json_object_get(status, "analyzer"), "mode"), "child");
	assert_string_equal(text(port, "port"), "local");
	assert_int_equal(number(port, "rx_packets"), 1001);
	assert_int_equal(number(port, "rx_missed"), 5);
	assert_true(json_is_null(json_object_get(port, "rate_bps")));
	assert_int_equal(number(port, "queued"), 2);
	assert_int_equal(number(port, "dropped"), 4);
	assert_int_equal(number(port, "unaccounted"), 0);
	/* P20: 251 of 1001 */
	assert_int_equal(number(port, "handed_over"), 251);
	assert_true(json_real_value(json_object_get(port, "handed_over_share")) > 0.2507);
	assert_true(json_real_value(json_object_get(port, "handed_over_share")) < 0.2508);
	assert_true(json_is_false(json_object_get(port, "rss")));
	json_decref(status);
}

static void
assert_one_problem(struct fake *fake, const char *component, const char *problem)
{
	json_t *status = ask(fake, "/bufscope/status", NULL);
	json_t *problems = json_object_get(status, "problems");

	assert_string_equal(text(status, "state"), "degraded");
	assert_int_equal(json_array_size(problems), 1);
	assert_string_equal(text(json_array_get(problems, 0), "component"), component);
	assert_string_equal(text(json_array_get(problems, 0), "problem"), problem);
	assert_true(strlen(text(json_array_get(problems, 0), "remedy")) > 0);
	json_decref(status);
}

static void
starved_collector_and_dead_spawner_are_named(void **state)
{
	struct fake *fake = *state;
	struct bs_snapshot *s = &fake->snapshot;
	json_t *status;

	s->collector_age_ns = BS_STATUS_HUNG_NS + 1;
	assert_one_problem(fake, "records",
		"the collector has not come round for 100 ms: no verdicts are made meanwhile");
	s->collector_age_ns = BS_STATUS_HUNG_NS;
	s->analyzer_connected = false;
	s->spawner_gone = true;
	status = ask(fake, "/bufscope/status", NULL);
	assert_non_null(
		strstr(text(json_array_get(json_object_get(status, "problems"), 0), "remedy"),
			"restart bufscoped"));
	json_decref(status);
}

static void
what_is_on_another_numa_node_than_the_ports_is_named(void **state)
{
	struct fake *fake = *state;
	struct bs_snapshot *s = &fake->snapshot;
	json_t *status;

	s->ports[0].numa = s->ports[1].numa = 1;
	s->memory_node = 1;
	assert_one_problem(
		fake, "lcore", "lcore 0 (CPU 0) is on NUMA node 0, but port wire is on node 1");
	s->lcores[0].numa = 1;
	s->memory_node = 0;
	assert_one_problem(
		fake, "memory", "packets are on NUMA node 0, but port wire is on node 1");
	/* any node will do for normal pages, and for ports that are on none */
	s->memory_node = -1;
	s->ports[1].numa = 2;
	assert_one_problem(fake, "local", "on NUMA node 2, but port wire is on node 1");
	s->ports[0].numa = s->ports[1].numa = -1;
	status = ask(fake, "/bufscope/status", NULL);
	assert_string_equal(text(status, "state"), "ok");
	json_decref(status);
}

static void
each_thing_that_is_wrong_is_named_alone_with_a_remedy(void **state)
{
	struct fake *fake = *state;
	const struct bs_snapshot healthy = fake->snapshot;
	struct bs_snapshot *s = &fake->snapshot;

	s->hugepages = false;
	assert_one_problem(fake, "memory",
		"not in hugepages, as too few were free at the start: more TLB misses, lower "
		"packet rate");
	*s = healthy;
	s->ports[0].rx_missed_observable = false;
	assert_one_problem(
		fake, "wire", "driver net_af_xdp does not count packets its full ring drops");
	*s = healthy;
	s->ports[0].link_up = false;
	assert_one_problem(fake, "wire", "the link is down");
	*s = healthy;
	s->lcores[0].heartbeat_age_ns = BS_STATUS_HUNG_NS + 1;
	assert_one_problem(
		fake, "lcore", "lcore 0 (CPU 0, pipeline) has not come round for 100 ms");
	s->lcores[0].heartbeat_age_ns = BS_STATUS_HUNG_NS;
	json_decref(ask(fake, "/bufscope/status", NULL));
	*s = healthy;
	s->analyzer_connected = false;
	s->analyzer_restarts = 3;
	assert_one_problem(
		fake, "analyzer", "not connected (restarted 3 times): no verdicts are made");
	*s = healthy;
	s->analyzer_bad_records = 2;
	assert_one_problem(fake, "analyzer", "2 of its records did not make sense");
	s->analyzer_bad_records = 0;
	s->analyzer_rejected = 3;
	assert_one_problem(fake, "analyzer",
		"3 of its records are about services, buffers or times that cannot be");
	s->analyzer_rejected = 0;
	*s = healthy;
	fake->config.analyzer.child = false;
	s->analyzer_connected = false;
	json_decref(ask(fake, "/bufscope/status", NULL));
}

static void
each_loss_is_named_alone_with_a_remedy(void **state)
{
	struct fake *fake = *state;
	const struct bs_snapshot healthy = fake->snapshot;
	struct bs_snapshot *s = &fake->snapshot;
	json_t *status;

	s->loss.ring_full = 8;
	assert_one_problem(fake, "records", "8 records lost: an lcore's record ring was full");
	*s = healthy;
	s->loss.over_budget = 9;
	assert_one_problem(fake, "records", "9 records left out by the rate bound");
	*s = healthy;
	s->loss.socket_full = 10;
	assert_one_problem(fake, "records", "10 records lost: there was no analyzer to take them");
	*s = healthy;
	s->analyzer_unread_ns = 1000000000;
	assert_one_problem(fake, "analyzer",
		"has read no records for 1000 ms: they wait, and are lost once an lcore's record "
		"ring is full");
	s->analyzer_unread_ns--; /* a pause */
	status = ask(fake, "/bufscope/status", NULL);
	assert_string_equal(text(status, "state"), "ok");
	json_decref(status);
	*s = healthy;
	memset(s->track, 0, sizeof(s->track));
	fake->config.tables.flows = 1024;
	fake->config.tables.rpcs = 2048;
	s->track[BS_TRACK_FLOWS_REFUSED] = 1;
	s->track[BS_TRACK_FLOWS_EVICTED_OPEN] = 2;
	assert_one_problem(fake, "tables",
		"1 packets not followed, 2 flows with RPCs open forgotten: more than 1024 flows "
		"on an lcore");
	memset(s->track, 0, sizeof(s->track));
	s->track[BS_TRACK_FLOWS_EVICTED] = 10; /* with nothing open: no harm */
	s->track[BS_TRACK_RPCS_REFUSED] = 3;
	assert_one_problem(fake, "tables",
		"3 RPCs not followed, 0 put out before they were over: more than 2048 open on an "
		"lcore");
	s->track[BS_TRACK_RPCS_REFUSED] = 0;
	s->track[BS_TRACK_RPCS_EVICTED] = 4;
	assert_one_problem(fake, "tables",
		"0 RPCs not followed, 4 put out before they were over: more than 2048 open on an "
		"lcore");
	s->track[BS_TRACK_RPCS_EVICTED] = 0;
	s->track[BS_TRACK_MARKS_LOST] = 5;
	assert_one_problem(fake, "tables",
		"5 pieces of evidence not kept: the RPCs of an lcore had too many, or one had");
	*s = healthy;
	strcpy(fake->config.journal.path, "/var/j");
	json_decref(ask(fake, "/bufscope/status", NULL));
	s->journal.error = 28; /* ENOSPC */
	s->journal.slot = 3;
	assert_one_problem(fake, "journal", "/var/j.3 cannot be written: No space left on device");
	*s = healthy;
	s->journal.lost_records = 13;
	assert_one_problem(fake, "journal", "13 records not written: the disk was too slow");
	s->journal.last_error = 5; /* EIO */
	assert_one_problem(fake, "journal", "13 records not written: Input/output error");
	fake->config.journal.path[0] = '\0';
	*s = healthy;
	s->reasons[BS_REASON_HANDOVER_FULL] = 13;
	s->handover[BS_HANDOVER_HANDED_OVER] = 87;
	assert_one_problem(
		fake, "handover", "13 packets dropped between lcores, of 100 handed over");
	*s = healthy;
	s->handover[BS_HANDOVER_DEPARTURES_LOST] = 14;
	s->handover[BS_HANDOVER_DROPS_UNTOLD] = 1;
	assert_one_problem(fake, "handover",
		"15 departures or drops not told to the flow's lcore: part of their RPCs' time is "
		"unobserved");
	*s = healthy;
	s->clock.uneven = 2;
	s->clock.error_ppm = 1500;
	assert_one_problem(
		fake, "clock", "the TSC ran unevenly in 2 measurements (last off by 1500 ppm)");
	*s = healthy;
	s->clock.wall_offset_ns = -3600000000000;
	assert_one_problem(fake, "clock",
		"the wall clock was set and is 3600000 ms behind; it is followed by 200 ppm");
}

static void
what_the_watch_found_is_a_problem_of_its_port_or_of_the_pool(void **state)
{
	struct fake *fake = *state;
	const struct bs_snapshot healthy = fake->snapshot;
	struct bs_snapshot *s = &fake->snapshot;

	s->ports[1].watched.found[BS_FINDING_NO_MBUF] =
		(struct bs_found){12, FAKE_NOW - 9000000000, FAKE_NOW - 3999999999};
	assert_one_problem(fake, "local", "12 packets lost: no mbuf was free (rx_nombuf)");
	*s = healthy;
	s->pool = (struct bs_watched_pool){.size = 1023,
		.in_use = 900,
		.t_held = FAKE_NOW - 2000000000,
		.held = 512,
		.holder = s->buffers[1].id,
		.holder_queues = true,
		.holder_class = 1,
		.blocked_by = s->buffers[2].id};
	/* P28: class and resource */
	assert_one_problem(fake, "mempool",
		"512 of 1023 mbufs are held by kv.app.in (class 1), as local.tx takes nothing, for "
		"2 s");
	s->pool.holder_queues = false;
	s->pool.holder = s->pool.blocked_by = BS_BUFFER_NONE;
	assert_one_problem(fake, "mempool", "512 of 1023 mbufs are held by nobody known, for 2 s");
}

static void
a_port_that_overflows_while_its_lcore_polls_others_is_told_twice(void **state)
{
	struct fake *fake = *state;
	struct bs_snapshot *s = &fake->snapshot;
	json_t *status, *problem;

	s->lcores[0].rx_queues[0] = 1;
	s->ports[0].watched.found[BS_FINDING_MISSED] =
		(struct bs_found){5, FAKE_NOW - 9000000000, FAKE_NOW - 4000000000};
	assert_one_problem(fake, "wire", "5 packets lost: its receive ring was full (imissed)");
	s->lcores[0].rx_queues[1] = 1;
	status = ask(fake, "/bufscope/status", NULL);
	problem = json_array_get(json_object_get(status, "problems"), 1);
	assert_string_equal(text(problem, "problem"),
		"lcore 0 (CPU 0) polls 2 receive queues, and those of wire overflowed");
	assert_int_equal(number(problem, "age_ns"), 4000000000);
	assert_non_null(strstr(text(problem, "remedy"), "eal.lcores"));
	json_decref(status);
	/* another lcore's */
	s->lcores[0].rx_queues[0] = 0;
	s->lcores[0].rx_queues[1] = 2;
	assert_one_problem(fake, "wire", "5 packets lost: its receive ring was full (imissed)");
}

/* Sets one loss after the other and says when it was. */
static void
a_loss_of_more_than_a_minute_ago_is_past_and_all_is_well(void **state)
{
	struct fake *fake = *state;
	struct bs_snapshot *s = &fake->snapshot;
	struct bs_troubles troubles = {0};
	json_t *status, *problem;

	s->loss.ring_full = 8;
	bs_troubles_step(&troubles, s); /* at FAKE_NOW */
	for (unsigned second = 0; second <= 61; second++) {
		const bool past = second > 60;

		s->t_ns = FAKE_NOW + second * 1000000000ull;
		bs_troubles_step(&troubles, s);
		memcpy(s->t_trouble, troubles.t_last, sizeof(s->t_trouble));
		status = ask(fake, "/bufscope/status", NULL);
		problem = json_array_get(json_object_get(status, "problems"), 0);
		assert_string_equal(text(status, "state"), past ? "ok" : "degraded");
		assert_string_equal(text(problem, "when"), past ? "past" : "now");
		assert_int_equal(number(problem, "age_ns"), second * 1000000000ull);
		assert_string_equal(text(problem, "problem"),
			"8 records lost: an lcore's record ring was full");
		json_decref(status);
	}
	/* again */
	s->loss.ring_full++;
	bs_troubles_step(&troubles, s);
	memcpy(s->t_trouble, troubles.t_last, sizeof(s->t_trouble));
	assert_one_problem(fake, "records", "9 records lost: an lcore's record ring was full");
	/* what a new analyzer counts anew is no loss */
	s->loss.ring_full = 0;
	s->journal.lost_records = 5;
	bs_troubles_step(&troubles, s);
	s->t_ns += 1000000000;
	s->journal.lost_records = 2;
	bs_troubles_step(&troubles, s);
	assert_int_equal(troubles.t_last[BS_TROUBLE_JOURNAL], s->t_ns - 1000000000);
	s->journal.lost_records = 3;
	bs_troubles_step(&troubles, s);
	assert_int_equal(troubles.t_last[BS_TROUBLE_JOURNAL], s->t_ns);
}

static void
each_trouble_passes(void **state)
{
	struct fake *fake = *state;
	struct bs_snapshot *s = &fake->snapshot;
	json_t *status;

	strcpy(fake->config.journal.path, "/var/j");
	s->reasons[BS_REASON_HANDOVER_FULL] = s->handover[BS_HANDOVER_DROPS_UNTOLD] = 1;
	s->clock.uneven = s->analyzer_bad_records = s->analyzer_rejected = 1;
	s->loss = (struct bs_rec_loss){.ring_full = 1, .over_budget = 1, .socket_full = 1};
	s->track[BS_TRACK_FLOWS_REFUSED] = s->track[BS_TRACK_RPCS_EVICTED] = 1;
	s->track[BS_TRACK_MARKS_LOST] = s->journal.lost_records = 1;
	for (unsigned i = 0; i <= BS_TROUBLE_COUNT; i++) {
		status = ask(fake, "/bufscope/status", NULL);
		assert_int_equal(
			json_array_size(json_object_get(status, "problems")), BS_TROUBLE_COUNT);
		assert_string_equal(
			text(status, "state"), i < BS_TROUBLE_COUNT ? "degraded" : "ok");
		json_decref(status);
		if (i == BS_TROUBLE_COUNT)
			break;
		assert_int_equal(bs_trouble_count(s, i), 1);
		s->t_trouble[i] = FAKE_NOW - 61000000000;
	}
}

/* What is so now has no age and does not pass. */
static void
a_state_is_now_however_long(void **state)
{
	struct fake *fake = *state;
	json_t *status, *problem;

	fake->snapshot.hugepages = false;
	strcpy(fake->config.eal.hugepages, "off");
	status = ask(fake, "/bufscope/status", NULL);
	problem = json_array_get(json_object_get(status, "problems"), 0);
	assert_string_equal(text(status, "state"), "degraded");
	assert_string_equal(text(problem, "when"), "now");
	assert_true(json_is_null(json_object_get(problem, "age_ns")));
	assert_non_null(strstr(text(problem, "problem"), "eal.hugepages is off"));
	json_decref(status);
}

static void
a_pmd_that_hides_its_losses_shows_null_and_not_zero(void **state)
{
	struct fake *fake = *state;
	json_t *status, *port;

	fake->snapshot.ports[0].rx_missed_observable = false;
	fake->snapshot.ports[0].rx_missed = 0;
	status = ask(fake, "/bufscope/status", NULL);
	port = json_array_get(json_object_get(status, "ports"), 0);
	assert_true(json_is_null(json_object_get(port, "rx_missed")));
	json_decref(status);
}

static void
chain_shows_each_buffer_with_what_is_not_observable_as_null(void **state)
{
	json_t *chain = ask(*state, "/bufscope/chain", NULL);
	json_t *buffers = json_object_get(chain, "buffers");
	json_t *path = json_array_get(json_object_get(chain, "paths"), 0);
	json_t *queue = json_array_get(buffers, 1), *tx = json_array_get(buffers, 2);

	assert_int_equal(json_array_size(buffers), 6);
	assert_int_equal(number(chain, "total"), 6);
	assert_true(json_is_null(json_object_get(chain, "next")));
	assert_string_equal(text(queue, "buffer"), "kv.app.in");
	assert_int_equal(number(queue, "capacity"), 1024);
	assert_int_equal(number(queue, "occupancy"), 11);
	assert_int_equal(number(queue, "dropped"), 1);
	assert_int_equal(number(queue, "wait_mean_ns"), 2500);
	assert_int_equal(number(queue, "wait_max_ns"), 70001);
	assert_string_equal(text(queue, "drained_by"), "polled");
	assert_true(json_is_true(json_object_get(queue, "lossy")));
	assert_string_equal(text(tx, "drained_by"), "clocked");
	assert_true(json_is_null(json_object_get(tx, "wait_mean_ns")));
	assert_true(json_is_null(json_object_get(json_array_get(buffers, 0), "occupancy")));
	assert_string_equal(text(path, "wire"), "wire");
	assert_string_equal(text(path, "service"), "local");
	json_decref(chain);
}

static void
lists_are_paged_by_an_offset_and_a_wrong_one_is_refused(void **state)
{
	static const char *const wrong[] = {"x", "-1", "1x", " 1", "4294967296", "1,2"};
	struct fake *fake = *state;
	json_t *result;

	for (uint64_t i = 1; i <= BS_STATUS_PAGE + 3; i++)
		fake_anomaly(fake, i);
	result = ask(fake, "/bufscope/anomalies", "");
	assert_int_equal(number(result, "total"), BS_STATUS_PAGE + 3);
	assert_int_equal(number(result, "next"), BS_STATUS_PAGE);
	assert_int_equal(json_array_size(json_object_get(result, "anomalies")), BS_STATUS_PAGE);
	json_decref(result);
	result = ask(fake, "/bufscope/anomalies", "32");
	assert_true(json_is_null(json_object_get(result, "next")));
	assert_int_equal(json_array_size(json_object_get(result, "anomalies")), 3);
	assert_string_equal(text(json_array_get(json_object_get(result, "anomalies"), 2), "id"),
		"0000000000000001");
	json_decref(result);
	result = ask(fake, "/bufscope/anomalies", "4294967295");
	assert_int_equal(json_array_size(json_object_get(result, "anomalies")), 0);
	assert_true(json_is_null(json_object_get(result, "next")));
	json_decref(result);
	result = ask(fake, "/bufscope/lcores", "1");
	assert_int_equal(number(result, "total"), 2);
	assert_int_equal(number(json_array_get(json_object_get(result, "lcores"), 0), "lcore"), 1);
	json_decref(result);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(bs_status_answer(&fake->source, "/bufscope/chain", wrong[i],
					 &result, error),
			-EINVAL);
		assert_string_equal(
			error, "the offset must be a whole number (allowed: 0 to 4294967295)");
	}
}

static void
services_show_their_counts_and_other_comes_last(void **state)
{
	json_t *result = ask(*state, "/bufscope/services", NULL);
	json_t *services = json_object_get(result, "services");

	assert_int_equal(json_array_size(services), 2);
	assert_string_equal(text(json_array_get(services, 0), "service"), "kv");
	assert_string_equal(text(json_array_get(services, 0), "protocol"), "resp");
	assert_int_equal(number(json_array_get(services, 0), "rpcs"), 100);
	assert_int_equal(number(json_array_get(services, 0), "answered"), 98);
	assert_string_equal(text(json_array_get(services, 1), "service"), "other");
	assert_true(json_is_null(json_object_get(json_array_get(services, 1), "probe")));
	json_decref(result);
}

static void
services_say_how_they_are_probed(void **state)
{
	static const struct {
		struct bs_snapshot_probe probe;
		const char *text;
	} all[] = {
		{{BS_PROBE_OFF, 0, 0}, "off (services[].probe)"},
		{{BS_PROBE_PID_FILE, 123, 0}, "pid 123 by pid_file"},
		{{BS_PROBE_SOCKET, 123, 0}, "pid 123 by socket"},
		{{BS_PROBE_SOCKET, 123, 3}, "pid 123 and 3 more by socket"},
		{{BS_PROBE_ELSEWHERE, 0, 0}, "no network namespace of this host has its address"},
		{{BS_PROBE_HOW_COUNT, 0, 0}, "?"},
	};
	struct fake *fake = *state;

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		fake->snapshot.probes[0] = all[i].probe;
		json_t *result = ask(fake, "/bufscope/services", NULL);
		json_t *service = json_array_get(json_object_get(result, "services"), 0);

		assert_string_equal(text(service, "probe"), all[i].text);
		json_decref(result);
	}
	/* the telemetry socket cuts longer texts */
	for (unsigned how = 0; how < BS_PROBE_HOW_COUNT; how++) {
		fake->snapshot.probes[0].how = (enum bs_probe_how)how;
		json_t *result = ask(fake, "/bufscope/services", NULL);
		json_t *service = json_array_get(json_object_get(result, "services"), 0);

		assert_in_range(strlen(text(service, "probe")), 1, 127);
		json_decref(result);
	}
}

static void
an_rpc_is_found_by_its_id_with_verdict_and_segments(void **state)
{
	struct fake *fake = *state;
	json_t *rpc, *root;

	fake_anomaly(fake, 0x0001000000000002);
	rpc = ask(fake, "/bufscope/rpc", "0001000000000002");
	root = json_object_get(rpc, "root_cause");
	assert_string_equal(text(rpc, "id"), "0001000000000002");
	assert_int_equal(number(rpc, "latency_ns"), 5000000);
	assert_int_equal(json_array_size(json_object_get(rpc, "segments")), 2);
	assert_string_equal(text(root, "buffer"), "kv.app.in");
	assert_string_equal(text(root, "cause"), "hang");
	json_decref(rpc);
	assert_int_equal(
		bs_status_answer(&fake->source, "/bufscope/rpc", "0001000000000003", &rpc, error),
		-ENOENT);
	assert_string_equal(error, "RPC 0001000000000003 is not among the newest 1024 anomalies");
	assert_int_equal(
		bs_status_answer(&fake->source, "/bufscope/rpc", "2", &rpc, error), -EINVAL);
	assert_int_equal(
		bs_status_answer(&fake->source, "/bufscope/rpc", NULL, &rpc, error), -EINVAL);
	assert_string_equal(error, "an RPC-ID is 16 hex digits");
}

static void
incidents_carry_their_origin_and_advice(void **state)
{
	struct fake *fake = *state;
	json_t *result, *incident;

	fake_incident(fake, 5);
	result = ask(fake, "/bufscope/incidents", NULL);
	incident = json_array_get(json_object_get(result, "incidents"), 0);
	assert_string_equal(text(json_object_get(incident, "origin"), "buffer"), "kv.app.in");
	assert_int_equal(number(incident, "victims"), 17);
	assert_true(strlen(text(incident, "advice")) > 0);
	json_decref(result);
}

static void
counters_have_every_key_of_their_tables(void **state)
{
	json_t *result = ask(*state, "/bufscope/counters", NULL);
	json_t *parse = json_object_get(result, "parse"),
	       *drops = json_object_get(result, "dropped");
	json_t *shim = json_object_get(result, "shim"),
	       *track = json_object_get(result, "tracking");

	assert_int_equal(json_object_size(parse), BS_PARSE_COUNT);
	assert_int_equal(json_object_size(drops), BS_REASON_COUNT);
	assert_int_equal(json_object_size(shim), BS_TAG_COUNT);
	assert_int_equal(json_object_size(json_object_get(result, "handover")), BS_HANDOVER_COUNT);
	assert_int_equal(json_object_size(track), BS_TRACK_COUNT);
	assert_int_equal(number(track, "retransmissions"), 13);
	assert_int_equal(number(parse, "tcp_udp"), 1995);
	assert_int_equal(number(drops, "app_queue_full"), 7);
	assert_int_equal(number(shim, "tagged"), 321);
	assert_int_equal(number(result, "rx_packets"), 2001);
	assert_int_equal(number(result, "queued"), 4);
	assert_int_equal(number(result, "unaccounted"), 0);
	json_decref(result);
}

static void
counters_say_of_each_port_what_became_of_its_packets(void **state)
{
	struct fake *fake = *state;
	json_t *result, *port, *drops;

	fake->snapshot.ports[0].gaps = 2;
	fake->snapshot.ports[0].lost_before = 1;
	fake->snapshot.ports[0].watched.found[BS_FINDING_MISSED].count = 5;
	fake->snapshot.ports[0].watched.found[BS_FINDING_PAUSE_SENT].count = 6;
	fake->snapshot.ports[0].watched.pause_sent_observable = true;
	fake->snapshot.ports[1].watched.by_queue = true;
	fake->snapshot.ports[1].watched.queue_missed[0] = 7;
	fake->snapshot.ports[1].rx_missed_observable = false;
	fake->snapshot.ports[1].unaccounted = -2;
	fake->snapshot.unaccounted = -2;
	result = ask(fake, "/bufscope/counters", NULL);
	assert_int_equal(json_array_size(json_object_get(result, "ports")), 2);
	port = json_array_get(json_object_get(result, "ports"), 0);
	drops = json_object_get(port, "dropped");
	assert_string_equal(text(port, "port"), "wire");
	assert_int_equal(number(port, "rx_packets"), 1000);
	assert_int_equal(number(port, "forwarded"), 995);
	assert_int_equal(number(port, "ended"), 3);
	assert_int_equal(number(port, "queued"), 2);
	assert_int_equal(number(port, "unaccounted"), 0);
	assert_int_equal(number(port, "handed_over"), 250);
	assert_int_equal(number(port, "gaps"), 2);
	assert_int_equal(number(port, "lost_before"), 1);
	assert_int_equal(number(json_object_get(port, "found"), "missed"), 5);
	/* P06: queues only where they are counted */
	assert_true(json_is_null(json_object_get(port, "missed_by_queue")));
	/* P07 */
	assert_int_equal(number(json_object_get(port, "found"), "pause_sent"), 6);
	assert_true(
		json_is_null(json_object_get(json_object_get(port, "found"), "pause_received")));
	assert_int_equal(json_object_size(drops), BS_REASON_COUNT);
	assert_int_equal(number(drops, "app_queue_full"), 3);
	assert_int_equal(number(drops, "rx_missed"), 5);
	port = json_array_get(json_object_get(result, "ports"), 1);
	assert_int_equal(number(port, "unaccounted"), -2);
	assert_int_equal(number(json_object_get(port, "missed_by_queue"), "0"), 7);
	/* what the driver does not count is not 0 */
	assert_true(json_is_null(json_object_get(json_object_get(port, "dropped"), "rx_missed")));
	assert_int_equal(number(result, "unaccounted"), -2);
	json_decref(result);
}

static void
offload_says_for_each_port_that_and_why_there_is_none(void **state)
{
	json_t *result = ask(*state, "/bufscope/offload", NULL);
	json_t *port = json_array_get(json_object_get(result, "ports"), 0);

	assert_int_equal(number(result, "total"), 2);
	assert_string_equal(text(port, "flows_by"), "software");
	assert_int_equal(number(port, "rules"), 0);
	assert_true(strlen(text(port, "reason")) > 0);
	json_decref(result);
}

static void
faults_are_refused_unless_the_configuration_allows_them(void **state)
{
	struct fake *fake = *state;
	json_t *result;

	assert_int_equal(
		bs_status_answer(&fake->source, "/bufscope/fault", "hold,20ms", &result, error),
		-EPERM);
	assert_string_equal(
		error, "faults are refused: the configuration does not set debug.faults");
	assert_string_equal(fake->fault, "");
	fake->config.faults = true;
	result = ask(fake, "/bufscope/fault", "hold,20ms");
	assert_string_equal(fake->fault, "hold=20ms");
	json_decref(result);
	assert_int_equal(bs_status_answer(&fake->source, "/bufscope/fault", "hold", &result, error),
		-EINVAL);
	assert_int_equal(
		bs_status_answer(&fake->source, "/bufscope/fault", ",1", &result, error), -EINVAL);
	assert_int_equal(
		bs_status_answer(&fake->source, "/bufscope/fault", "melt,1", &result, error),
		-EINVAL);
	assert_string_equal(error, "there is no fault melt (allowed: hold)");
}

static void
an_unknown_command_and_a_failing_snapshot_are_errors(void **state)
{
	struct fake *fake = *state;
	json_t *result;

	assert_int_equal(
		bs_status_answer(&fake->source, "/bufscope/reload", NULL, &result, error), -ENOENT);
	assert_string_equal(error, "there is no such command");
	fake->snapshot_error = -EIO;
	assert_int_equal(
		bs_status_answer(&fake->source, "/bufscope/chain", NULL, &result, error), -EIO);
	assert_string_equal(error, "no counters could be read: Input/output error");
}

static void
help_texts_fit_what_rte_telemetry_takes(void **state)
{
	(void)state;
	for (const struct bs_status_command *c = bs_status_commands; c->name != NULL; c++) {
		assert_true(strlen(c->help) < 64);
		assert_true(strlen(c->name) < 56);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void
journal_is_null_without_one_and_else_says_how_it_goes(void **state)
{
	struct fake *fake = *state;
	json_t *status = ask(fake, "/bufscope/status", NULL);
	const json_t *journal;

	assert_true(json_is_null(json_object_get(status, "journal")));
	json_decref(status);
	strcpy(fake->config.journal.path, "/var/j");
	fake->config.journal.files = 4;
	fake->snapshot.journal = (struct bs_rec_journal){
		.file = 9, .slot = 1, .blocks = 2, .bytes = 3000, .lost_records = 5, .error = 28};
	status = ask(fake, "/bufscope/status", NULL);
	journal = json_object_get(status, "journal");
	assert_string_equal(text(journal, "path"), "/var/j");
	assert_int_equal(number(journal, "files"), 4);
	assert_int_equal(number(journal, "file"), 9);
	assert_int_equal(number(journal, "journal_bytes"), 3000);
	assert_int_equal(number(journal, "journal_lost_records"), 5);
	assert_string_equal(text(journal, "error"), "No space left on device");
	assert_true(json_is_null(json_object_get(journal, "last_error")));
	json_decref(status);
	status = ask(fake, "/bufscope/counters", NULL);
	assert_int_equal(number(json_object_get(status, "journal"), "journal_blocks"), 2);
	json_decref(status);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(status_of_a_healthy_system_has_no_problems),
		TEST(starved_collector_and_dead_spawner_are_named),
		TEST(journal_is_null_without_one_and_else_says_how_it_goes),
		TEST(what_is_on_another_numa_node_than_the_ports_is_named),
		TEST(each_thing_that_is_wrong_is_named_alone_with_a_remedy),
		TEST(each_loss_is_named_alone_with_a_remedy),
		TEST(what_the_watch_found_is_a_problem_of_its_port_or_of_the_pool),
		TEST(a_port_that_overflows_while_its_lcore_polls_others_is_told_twice),
		TEST(a_loss_of_more_than_a_minute_ago_is_past_and_all_is_well),
		TEST(each_trouble_passes),
		TEST(a_state_is_now_however_long),
		TEST(a_pmd_that_hides_its_losses_shows_null_and_not_zero),
		TEST(chain_shows_each_buffer_with_what_is_not_observable_as_null),
		TEST(lists_are_paged_by_an_offset_and_a_wrong_one_is_refused),
		TEST(services_show_their_counts_and_other_comes_last),
		TEST(services_say_how_they_are_probed),
		TEST(an_rpc_is_found_by_its_id_with_verdict_and_segments),
		TEST(incidents_carry_their_origin_and_advice),
		TEST(counters_have_every_key_of_their_tables),
		TEST(counters_say_of_each_port_what_became_of_its_packets),
		TEST(offload_says_for_each_port_that_and_why_there_is_none),
		TEST(faults_are_refused_unless_the_configuration_allows_them),
		TEST(an_unknown_command_and_a_failing_snapshot_are_errors),
		TEST(help_texts_fit_what_rte_telemetry_takes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
