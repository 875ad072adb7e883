/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A dataplane that runs may still see badly: this says what is wrong with the
 * surroundings, and what to do about it.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bs_clock.h"
#include "status.h"

#define UNREAD_NS BS_NS_PER_S /* a shorter pause of the analyzer is none */

struct problems {
	json_t *list;
	bool failed;
};

__attribute__((format(printf, 4, 5))) static void
add(struct problems *problems, const char *component, const char *remedy, const char *format, ...)
{
	char text[160];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (json_array_append_new(
		    problems->list, json_pack("{s:s, s:s, s:s}", "component", component, "problem",
					    text, "remedy", remedy)) != 0)
		problems->failed = true;
}

static uint64_t
seconds_since(uint64_t t, uint64_t now)
{
	return now > t ? (now - t) / BS_NS_PER_S : 0;
}

static void
check_port(struct problems *problems, const struct bs_snapshot *snapshot,
	const struct bs_snapshot_port *port)
{
	if (!port->link_up)
		add(problems, port->name, "bring the peer interface up; check the device's address",
			"the link is down");
	if (!port->rx_missed_observable)
		add(problems, port->name,
			"use net_af_xdp or a NIC if losses before bufscoped matter",
			"driver %s does not count packets its full ring drops", port->driver);
	for (unsigned i = 0; i < BS_FINDING_COUNT; i++) {
		const struct bs_found *found = &port->watched.found[i];

		if (found->count > 0)
			add(problems, port->name, bs_finding_remedy(i),
				"%" PRIu64 " %s, last %" PRIu64 " s ago", found->count,
				bs_finding_text(i), seconds_since(found->t_last, snapshot->t_ns));
	}
}

static bool
has_port_on(const struct bs_snapshot *snapshot, int node)
{
	for (unsigned i = 0; i < snapshot->port_count; i++) {
		if (snapshot->ports[i].numa == node)
			return true;
	}
	return false;
}

/* What is on another NUMA node than the ports costs every packet a way between them. */
static void
check_nodes(struct problems *problems, const struct bs_snapshot *snapshot)
{
	const struct bs_snapshot_port *first = NULL;

	for (unsigned i = 0; i < snapshot->port_count; i++) {
		const struct bs_snapshot_port *port = &snapshot->ports[i];

		if (port->numa < 0)
			continue; /* virtual */
		if (first == NULL)
			first = port;
		if (port->numa != first->numa)
			add(problems, port->name, "use ports of one node",
				"on NUMA node %d, but port %s is on node %d", port->numa,
				first->name, first->numa);
	}
	if (first == NULL)
		return;
	for (unsigned i = 0; i < snapshot->lcore_count; i++) {
		const struct bs_snapshot_lcore *lcore = &snapshot->lcores[i];

		if (strcmp(lcore->role, "pipeline") == 0 && lcore->numa >= 0 &&
			!has_port_on(snapshot, lcore->numa))
			add(problems, "lcore",
				"leave eal.lcores out, or choose them from the port's node "
				"(bufscoped --check shows nodes)",
				"lcore %u (CPU %u) is on NUMA node %d, but port %s is on node %d",
				lcore->lcore, lcore->cpu, lcore->numa, first->name, first->numa);
	}
	if (snapshot->memory_node >= 0 && !has_port_on(snapshot, snapshot->memory_node))
		add(problems, "memory",
			"give the port's node hugepages: "
			"/sys/devices/system/node/nodeN/hugepages/*/nr_hugepages",
			"packets are on NUMA node %d, but port %s is on node %d",
			snapshot->memory_node, first->name, first->numa);
}

static const char *
buffer_name(const struct bs_snapshot *snapshot, unsigned buffer)
{
	for (unsigned i = 0; i < snapshot->buffer_count; i++) {
		if (snapshot->buffers[i].id == buffer)
			return snapshot->buffers[i].name;
	}
	return NULL;
}

static void
check_pool(struct problems *problems, const struct bs_snapshot *snapshot)
{
	const struct bs_watched_pool *pool = &snapshot->pool;
	const char *holder = buffer_name(snapshot, pool->holder);
	const char *port = buffer_name(snapshot, pool->blocked_by);
	char class_[24] = "", blocked[64] = "";

	if (pool->t_held == 0)
		return;
	if (pool->holder_queues)
		snprintf(class_, sizeof(class_), " (class %u)", pool->holder_class);
	if (port != NULL)
		snprintf(blocked, sizeof(blocked), ", as %s takes nothing", port);
	add(problems, "mempool",
		"see what keeps it from going on; raise eal.memory, or lower app_queue.size",
		"%" PRIu32 " of %" PRIu32 " mbufs are held by %s%s%s, for %" PRIu64 " s",
		pool->held, pool->size, holder == NULL ? "nobody known" : holder, class_, blocked,
		seconds_since(pool->t_held, snapshot->t_ns));
}

static void
check_lcores(struct problems *problems, const struct bs_snapshot *snapshot)
{
	for (unsigned i = 0; i < snapshot->lcore_count; i++) {
		const struct bs_snapshot_lcore *lcore = &snapshot->lcores[i];

		if (lcore->heartbeat_age_ns > BS_STATUS_HUNG_NS)
			add(problems, "lcore",
				"see what else runs on that CPU; isolate it or move eal.lcores",
				"lcore %u (CPU %u, %s) has not come round for %" PRIu64 " ms",
				lcore->lcore, lcore->cpu, lcore->role,
				lcore->heartbeat_age_ns / 1000000);
	}
	if (snapshot->collector_age_ns > BS_STATUS_HUNG_NS)
		add(problems, "records", "give the collector a CPU of its own: eal.collector",
			"the collector has not come round for %" PRIu64
			" ms: no verdicts are made meanwhile",
			snapshot->collector_age_ns / 1000000);
}

static void
check_clock(struct problems *problems, const struct bs_tsc_clock *clock)
{
	const uint64_t offset_ns = clock->wall_offset_ns < 0 ? 0 - (uint64_t)clock->wall_offset_ns
							     : (uint64_t)clock->wall_offset_ns;

	if (clock->uneven > 0)
		add(problems, "clock",
			"on a virtual machine, give it an invariant TSC; durations of those "
			"seconds are wrong",
			"the TSC ran unevenly in %" PRIu64 " measurements (last off by %" PRIu64
			" ppm)",
			clock->uneven, clock->error_ppm);
	if (offset_ns > BS_CLOCK_STEP_NS)
		add(problems, "clock",
			"restart bufscoped if times must be those of the wall clock at once; "
			"durations are right",
			"the wall clock was set and is %" PRIu64 " ms %s; it is followed by "
			"%u ppm",
			offset_ns / 1000000, clock->wall_offset_ns < 0 ? "behind" : "ahead",
			BS_CLOCK_SLEW_MAX_PPM);
}

static void
check_handover(struct problems *problems, const struct bs_snapshot *snapshot)
{
	const uint64_t untold = snapshot->handover[BS_HANDOVER_DEPARTURES_LOST] +
				snapshot->handover[BS_HANDOVER_DROPS_UNTOLD];
	const uint64_t full = snapshot->reasons[BS_REASON_HANDOVER_FULL];

	if (full > 0)
		add(problems, "handover",
			"give a NIC with RSS, or fewer eal.lcores: those that own the flows do not "
			"keep up",
			"%" PRIu64 " packets dropped between lcores, of %" PRIu64 " handed over",
			full, full + snapshot->handover[BS_HANDOVER_HANDED_OVER]);
	if (untold > 0)
		add(problems, "handover", "give fewer eal.lcores, or ports with more tx queues",
			"%" PRIu64 " departures or drops not told to the flow's lcore: part of "
			"their RPCs' time is unobserved",
			untold);
}

static void
check_records(struct problems *problems, const struct bs_config *config,
	const struct bs_snapshot *snapshot)
{
	const struct bs_rec_loss *loss = &snapshot->loss;

	if ((config->analyzer.child || config->analyzer.external) && !snapshot->analyzer_connected)
		add(problems, "analyzer",
			snapshot->spawner_gone
				? "restart bufscoped: the process that starts it (bufscope-spawn) "
				  "has died"
			: config->analyzer.child
				? "it is restarted by itself; read its last lines in the log"
				: "start bufscope-analyzer --socket with analyzer.sock of the "
				  "runtime directory",
			"not connected (restarted %" PRIu32 " times): no verdicts are made",
			snapshot->analyzer_restarts);
	if (snapshot->analyzer_unread_ns >= UNREAD_NS)
		add(problems, "analyzer", "see whether it is stopped, or gets no CPU time",
			"has read no records for %u ms: they wait, and are lost once an lcore's "
			"record ring is full",
			(unsigned)(snapshot->analyzer_unread_ns / BS_NS_PER_MS));
	if (snapshot->analyzer_bad_records > 0)
		add(problems, "analyzer", "run bufscoped and bufscope-analyzer of one build",
			"%" PRIu64 " of its records did not make sense",
			snapshot->analyzer_bad_records);
	if (snapshot->analyzer_rejected > 0)
		add(problems, "analyzer",
			"see that nobody else's program is the analyzer, and that its clock is "
			"right",
			"%" PRIu64 " of its records are about services, buffers or times that "
			"cannot be",
			snapshot->analyzer_rejected);
	if (loss->ring_full > 0)
		add(problems, "records",
			"see whether the analyzer gets CPU time; give the collector a CPU of its "
			"own: eal.collector",
			"%" PRIu64 " records lost: an lcore's record ring was full",
			loss->ring_full);
	if (loss->over_budget > 0)
		add(problems, "records", "raise records.per_second",
			"%" PRIu64 " records left out by the rate bound", loss->over_budget);
	if (loss->socket_full > 0)
		add(problems, "records", "see why the analyzer ended, or does not read",
			"%" PRIu64 " records lost: there was no analyzer to take them",
			loss->socket_full);
}

static void
check_tables(struct problems *problems, const struct bs_config *config,
	const struct bs_snapshot *snapshot)
{
	const uint64_t *track = snapshot->track;

	if (track[BS_TRACK_FLOWS_REFUSED] + track[BS_TRACK_FLOWS_EVICTED_OPEN] > 0)
		add(problems, "tables", "raise tables.flows, or spread flows over more eal.lcores",
			"%" PRIu64 " packets not followed, %" PRIu64
			" flows with RPCs open forgotten: more than %u flows on an lcore",
			track[BS_TRACK_FLOWS_REFUSED], track[BS_TRACK_FLOWS_EVICTED_OPEN],
			config->tables.flows);
	if (track[BS_TRACK_RPCS_REFUSED] + track[BS_TRACK_RPCS_EVICTED] > 0)
		add(problems, "tables",
			"see which service does not answer (bufscope services); raise tables.rpcs",
			"%" PRIu64 " RPCs not followed, %" PRIu64
			" put out before they were over: more than %u open on an lcore",
			track[BS_TRACK_RPCS_REFUSED], track[BS_TRACK_RPCS_EVICTED],
			config->tables.rpcs);
	if (track[BS_TRACK_MARKS_LOST] > 0)
		add(problems, "tables", "raise tables.rpcs",
			"%" PRIu64 " pieces of evidence not kept: the RPCs of an lcore had too "
			"many, or one had",
			track[BS_TRACK_MARKS_LOST]);
}

static void
check_journal(struct problems *problems, const struct bs_config *config,
	const struct bs_rec_journal *journal)
{
	if (config->journal.path[0] == '\0')
		return;
	if (journal->error != 0)
		add(problems, "journal",
			"make room or mend the disk: it is tried again every 5 s; what is lost "
			"meanwhile is counted",
			"%.80s.%" PRIu32 " cannot be written: %s", config->journal.path,
			journal->slot, strerror((int)journal->error));
	if (journal->lost_records > 0)
		add(problems, "journal", "see whether the disk is full or too slow",
			"%" PRIu64 " records not written%s%s", journal->lost_records,
			journal->last_error != 0 ? ": " : ": the disk was too slow",
			journal->last_error != 0 ? strerror((int)journal->last_error) : "");
}

json_t *
bs_status_problems(const struct bs_config *config, const struct bs_snapshot *snapshot)
{
	struct problems problems = {.list = json_array()};

	if (problems.list == NULL)
		return NULL;
	if (!snapshot->hugepages)
		add(&problems, "memory",
			"sysctl vm.nr_hugepages=512, with eal.hugepages auto or on",
			"not in hugepages: more TLB misses, lower packet rate");
	check_pool(&problems, snapshot);
	for (unsigned i = 0; i < snapshot->port_count; i++)
		check_port(&problems, snapshot, &snapshot->ports[i]);
	check_nodes(&problems, snapshot);
	check_clock(&problems, &snapshot->clock);
	check_lcores(&problems, snapshot);
	check_handover(&problems, snapshot);
	check_records(&problems, config, snapshot);
	check_tables(&problems, config, snapshot);
	check_journal(&problems, config, &snapshot->journal);
	if (!problems.failed)
		return problems.list;
	json_decref(problems.list);
	return NULL;
}
