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
#include "troubles.h"
#include "status.h"

#define UNREAD_NS BS_NS_PER_S /* a shorter pause of the analyzer is none */

#define NOW UINT64_MAX

struct problems {
	json_t *list;
	uint64_t t_now;
	bool failed;
};

/* It is so now (t_last NOW), or has happened and did so last at t_last (0: since the last look). */
__attribute__((format(printf, 5, 6))) static void
add(struct problems *problems, const char *component, uint64_t t_last, const char *remedy,
	const char *format, ...)
{
	const uint64_t age_ns =
		t_last > 0 && t_last < problems->t_now ? problems->t_now - t_last : 0;
	const bool past = t_last != NOW && age_ns > BS_TROUBLE_OVER_NS;
	char text[160];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (json_array_append_new(problems->list,
		    json_pack("{s:s, s:s, s:o, s:s, s:s}", "component", component, "when",
			    past ? "past" : "now", "age_ns",
			    t_last == NOW ? json_null() : json_integer((json_int_t)age_ns),
			    "problem", text, "remedy", remedy)) != 0)
		problems->failed = true;
}

static uint64_t
seconds_since(uint64_t t, uint64_t now)
{
	return now > t ? (now - t) / BS_NS_PER_S : 0;
}

static void
check_port(struct problems *problems, const struct bs_snapshot_port *port)
{
	if (!port->link_up)
		add(problems, port->name, NOW,
			"bring the peer interface up; check the device's address",
			"the link is down");
	if (!port->rx_missed_observable)
		add(problems, port->name, NOW,
			"use net_af_xdp or a NIC if losses before bufscoped matter",
			"driver %s does not count packets its full ring drops", port->driver);
	for (unsigned i = 0; i < BS_FINDING_COUNT; i++) {
		const struct bs_found *found = &port->watched.found[i];

		if (found->count > 0)
			add(problems, port->name, found->t_last, bs_finding_remedy(i),
				"%" PRIu64 " %s", found->count, bs_finding_text(i));
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
			add(problems, port->name, NOW, "use ports of one node",
				"on NUMA node %d, but port %s is on node %d", port->numa,
				first->name, first->numa);
	}
	if (first == NULL)
		return;
	for (unsigned i = 0; i < snapshot->lcore_count; i++) {
		const struct bs_snapshot_lcore *lcore = &snapshot->lcores[i];

		if (strcmp(lcore->role, "pipeline") == 0 && lcore->numa >= 0 &&
			!has_port_on(snapshot, lcore->numa))
			add(problems, "lcore", NOW,
				"leave eal.lcores out, or choose them from the port's node "
				"(bufscoped --check shows nodes)",
				"lcore %u (CPU %u) is on NUMA node %d, but port %s is on node %d",
				lcore->lcore, lcore->cpu, lcore->numa, first->name, first->numa);
	}
	if (snapshot->memory_node >= 0 && !has_port_on(snapshot, snapshot->memory_node))
		add(problems, "memory", NOW,
			"give the port's node hugepages: "
			"/sys/devices/system/node/nodeN/hugepages/*/nr_hugepages",
			"packets are on NUMA node %d, but port %s is on node %d",
			snapshot->memory_node, first->name, first->numa);
}

/* A queue's packets wait while the lcore serves its others. */
static void
check_queues(struct problems *problems, const struct bs_snapshot *snapshot,
	const struct bs_snapshot_lcore *lcore)
{
	const struct bs_snapshot_port *losing = NULL;
	unsigned queues = 0;

	for (unsigned i = 0; i < snapshot->port_count; i++) {
		const struct bs_snapshot_port *port = &snapshot->ports[i];

		queues += lcore->rx_queues[i];
		if (lcore->rx_queues[i] > 0 && port->watched.found[BS_FINDING_MISSED].count > 0)
			losing = port;
	}
	if (queues < 2 || losing == NULL)
		return;
	add(problems, "lcore", losing->watched.found[BS_FINDING_MISSED].t_last,
		"name as many CPUs in eal.lcores as there are receive queues",
		"lcore %u (CPU %u) polls %u receive queues, and those of %s overflowed",
		lcore->lcore, lcore->cpu, queues, losing->name);
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
	add(problems, "mempool", NOW,
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
			add(problems, "lcore", NOW,
				"see what else runs on that CPU; isolate it or move eal.lcores",
				"lcore %u (CPU %u, %s) has not come round for %" PRIu64 " ms",
				lcore->lcore, lcore->cpu, lcore->role,
				lcore->heartbeat_age_ns / 1000000);
		check_queues(problems, snapshot, lcore);
	}
	if (snapshot->collector_age_ns > BS_STATUS_HUNG_NS)
		add(problems, "records", NOW, "give the collector a CPU of its own: eal.collector",
			"the collector has not come round for %" PRIu64
			" ms: no verdicts are made meanwhile",
			snapshot->collector_age_ns / 1000000);
}

static void
check_clock(struct problems *problems, const struct bs_snapshot *snapshot)
{
	const struct bs_tsc_clock *clock = &snapshot->clock;
	const uint64_t *t_trouble = snapshot->t_trouble;
	const uint64_t offset_ns = clock->wall_offset_ns < 0 ? 0 - (uint64_t)clock->wall_offset_ns
							     : (uint64_t)clock->wall_offset_ns;

	if (clock->uneven > 0)
		add(problems, "clock", t_trouble[BS_TROUBLE_UNEVEN_TSC],
			"on a virtual machine, give it an invariant TSC; durations of those "
			"seconds are wrong",
			"the TSC ran unevenly in %" PRIu64 " measurements (last off by %" PRIu64
			" ppm)",
			clock->uneven, clock->error_ppm);
	if (offset_ns > BS_CLOCK_STEP_NS)
		add(problems, "clock", NOW,
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
	const uint64_t untold = bs_trouble_count(snapshot, BS_TROUBLE_UNTOLD);
	const uint64_t full = bs_trouble_count(snapshot, BS_TROUBLE_HANDOVER);
	const uint64_t *t_trouble = snapshot->t_trouble;

	if (full > 0)
		add(problems, "handover", t_trouble[BS_TROUBLE_HANDOVER],
			"give a NIC with RSS, or fewer eal.lcores: those that own the flows do not "
			"keep up",
			"%" PRIu64 " packets dropped between lcores, of %" PRIu64 " handed over",
			full, full + snapshot->handover[BS_HANDOVER_HANDED_OVER]);
	if (untold > 0)
		add(problems, "handover", t_trouble[BS_TROUBLE_UNTOLD],
			"give fewer eal.lcores, or ports with more tx queues",
			"%" PRIu64 " departures or drops not told to the flow's lcore: part of "
			"their RPCs' time is unobserved",
			untold);
}

static void
check_records(struct problems *problems, const struct bs_config *config,
	const struct bs_snapshot *snapshot)
{
	const struct bs_rec_loss *loss = &snapshot->loss;
	const uint64_t *t_trouble = snapshot->t_trouble;

	if ((config->analyzer.child || config->analyzer.external) && !snapshot->analyzer_connected)
		add(problems, "analyzer", NOW,
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
		add(problems, "analyzer", NOW, "see whether it is stopped, or gets no CPU time",
			"has read no records for %u ms: they wait, and are lost once an lcore's "
			"record ring is full",
			(unsigned)(snapshot->analyzer_unread_ns / BS_NS_PER_MS));
	if (snapshot->analyzer_bad_records > 0)
		add(problems, "analyzer", t_trouble[BS_TROUBLE_BAD_RECORDS],
			"run bufscoped and bufscope-analyzer of one build",
			"%" PRIu64 " of its records did not make sense",
			snapshot->analyzer_bad_records);
	if (snapshot->analyzer_rejected > 0)
		add(problems, "analyzer", t_trouble[BS_TROUBLE_REJECTED],
			"see that nobody else's program is the analyzer, and that its clock is "
			"right",
			"%" PRIu64 " of its records are about services, buffers or times that "
			"cannot be",
			snapshot->analyzer_rejected);
	if (loss->ring_full > 0)
		add(problems, "records", t_trouble[BS_TROUBLE_RING_FULL],
			"see whether the analyzer gets CPU time; give the collector a CPU of its "
			"own: eal.collector",
			"%" PRIu64 " records lost: an lcore's record ring was full",
			loss->ring_full);
	if (loss->over_budget > 0)
		add(problems, "records", t_trouble[BS_TROUBLE_OVER_BUDGET],
			"raise records.per_second",
			"%" PRIu64 " records left out by the rate bound", loss->over_budget);
	if (loss->socket_full > 0)
		add(problems, "records", t_trouble[BS_TROUBLE_NO_ANALYZER],
			"see why the analyzer ended, or does not read",
			"%" PRIu64 " records lost: there was no analyzer to take them",
			loss->socket_full);
}

static void
check_tables(struct problems *problems, const struct bs_config *config,
	const struct bs_snapshot *snapshot)
{
	const uint64_t *track = snapshot->track, *t_trouble = snapshot->t_trouble;

	if (bs_trouble_count(snapshot, BS_TROUBLE_FLOWS) > 0)
		add(problems, "tables", t_trouble[BS_TROUBLE_FLOWS],
			"raise tables.flows, or spread flows over more eal.lcores",
			"%" PRIu64 " packets not followed, %" PRIu64
			" flows with RPCs open forgotten: more than %u flows on an lcore",
			track[BS_TRACK_FLOWS_REFUSED], track[BS_TRACK_FLOWS_EVICTED_OPEN],
			config->tables.flows);
	if (bs_trouble_count(snapshot, BS_TROUBLE_RPCS) > 0)
		add(problems, "tables", t_trouble[BS_TROUBLE_RPCS],
			"see which service does not answer (bufscope services); raise tables.rpcs",
			"%" PRIu64 " RPCs not followed, %" PRIu64
			" put out before they were over: more than %u open on an lcore",
			track[BS_TRACK_RPCS_REFUSED], track[BS_TRACK_RPCS_EVICTED],
			config->tables.rpcs);
	if (track[BS_TRACK_MARKS_LOST] > 0)
		add(problems, "tables", t_trouble[BS_TROUBLE_MARKS], "raise tables.rpcs",
			"%" PRIu64 " pieces of evidence not kept: the RPCs of an lcore had too "
			"many, or one had",
			track[BS_TRACK_MARKS_LOST]);
}

static void
check_journal(struct problems *problems, const struct bs_config *config,
	const struct bs_snapshot *snapshot)
{
	const struct bs_rec_journal *journal = &snapshot->journal;
	const uint64_t *t_trouble = snapshot->t_trouble;

	if (config->journal.path[0] == '\0')
		return;
	if (journal->error != 0)
		add(problems, "journal", NOW,
			"make room or mend the disk: it is tried again every 5 s; what is lost "
			"meanwhile is counted",
			"%.80s.%" PRIu32 " cannot be written: %s", config->journal.path,
			journal->slot, strerror((int)journal->error));
	if (journal->lost_records > 0)
		add(problems, "journal", t_trouble[BS_TROUBLE_JOURNAL],
			"see whether the disk is full or too slow",
			"%" PRIu64 " records not written%s%s", journal->lost_records,
			journal->last_error != 0 ? ": " : ": the disk was too slow",
			journal->last_error != 0 ? strerror((int)journal->last_error) : "");
}

json_t *
bs_status_problems(const struct bs_config *config, const struct bs_snapshot *snapshot)
{
	struct problems problems = {.list = json_array(), .t_now = snapshot->t_ns};

	if (problems.list == NULL)
		return NULL;
	if (!snapshot->hugepages)
		add(&problems, "memory", NOW,
			strcmp(config->eal.hugepages, "off") == 0
				? "set eal.hugepages to auto, sysctl vm.nr_hugepages=512, restart"
				: "sysctl vm.nr_hugepages=512, restart",
			"not in hugepages, %s: more TLB misses, lower packet rate",
			strcmp(config->eal.hugepages, "off") == 0
				? "eal.hugepages is off"
				: "as too few were free at the start");
	check_pool(&problems, snapshot);
	for (unsigned i = 0; i < snapshot->port_count; i++)
		check_port(&problems, &snapshot->ports[i]);
	check_nodes(&problems, snapshot);
	check_clock(&problems, snapshot);
	check_lcores(&problems, snapshot);
	check_handover(&problems, snapshot);
	check_records(&problems, config, snapshot);
	check_tables(&problems, config, snapshot);
	check_journal(&problems, config, snapshot);
	if (!problems.failed)
		return problems.list;
	json_decref(problems.list);
	return NULL;
}
