/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TSC cycles a packet costs on its way through one lcore, and beside it what the
 * bare loop over the same ports costs in the same process: io (rx burst, tx
 * burst) and macswap, as testpmd has them.
 *
 * RPCs: two net_ring ports, whose rings this program fills before and empties
 * after the turns that it measures, so that making packets is not in the
 * figures; the clock stands still meanwhile, or the lcore would see that it was away. off: the
 * service is not listed; observe: it is, without tags; tag: every packet to the wire gets a shim.
 * net_null: frames of zeros, allocated and freed by the PMD; all that can be done with them is to
 * parse them.
 *
 * The machine may be shared: each figure is the least and the median of the
 * runs, and how far they lie apart.
 */
#include <assert.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_launch.h>

#include "bs_clock.h"
#include "dataplane.h"
#include "eal.h"
#include "traffic.h"
#include "tsc_clock.h"

#define RING_PACKETS 1024u
#define TURNS 8u /* filled and measured together: the packets lie in the second-level cache */
#define STOCK (TURNS * BS_BURST)
#define RUNS_MAX 101u
#define UNITS 256u

static_assert(BS_CONFIG_ERROR_BYTES <= BS_DATAPLANE_ERROR_BYTES &&
		      BS_EAL_ERROR_BYTES <= BS_DATAPLANE_ERROR_BYTES,
	"one buffer for all");

enum mode { IO, MACSWAP, OFF, OBSERVE, TAG, MODE_COUNT };

static const char *const mode_names[MODE_COUNT] = {"io", "macswap", "off", "observe", "tag"};

static const struct traffic_shape shapes[] = {
	{TRAFFIC_ROW_PORT, 1, 1, 64},
	{TRAFFIC_ROW_PORT, 1, 10, 64},
	{TRAFFIC_ROW_PORT, 1, 10, 1494},
	{TRAFFIC_ROW_PORT, 1000, 1, 64},
	{TRAFFIC_ROW_PORT, 1000, 1, 256},
	{TRAFFIC_ROW_PORT, 1000, 1, 1494},
	{TRAFFIC_ROW_PORT, 1000, 10, 64},
	{TRAFFIC_ROW_PORT, 1000, 10, 256},
	{TRAFFIC_ROW_PORT, 1000, 10, 1494},
	{TRAFFIC_ROW_PORT, 50000, 1, 256},
	{TRAFFIC_ROW_PORT, 50000, 10, 1494},
	{TRAFFIC_ROW_PORT, 100000, 1, 256},
	{TRAFFIC_ROW_PORT, 100000, 10, 1494},
	{TRAFFIC_RESP_PORT, 1, 1, 64},
	{TRAFFIC_RESP_PORT, 1000, 1, 64},
	{TRAFFIC_RESP_PORT, 1000, 1, 256},
	{TRAFFIC_RESP_PORT, 1000, 10, 1494},
};

static struct {
	unsigned runs, packets; /* of each run */
	const char *only;	/* part of the name of a case; NULL: all */
	const char *mode;	/* of RPCs; NULL: all */
	struct bs_eal eal;
	struct rte_ring *rx[2], *tx[2]; /* of the net_ring ports: wire, local */
	uint64_t (*tsc_now_ns)(void);
	uint64_t paused_ns; /* what the lcore's clock is behind */
	uint64_t t_virtual; /* 0: the clock is the TSC */
} bench = {.runs = 9, .packets = 100000};

static void
fail(const char *what)
{
	fprintf(stderr, "\ndataplane_bench: %s\n", what);
	exit(1);
}

/* --- figures --------------------------------------------------------------------- */

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void
print_figure(double *cycles, unsigned n)
{
	qsort(cycles, n, sizeof(cycles[0]), compare);
	printf(" | %6.0f %6.0f %4.0f%%", cycles[0], cycles[n / 2],
		(cycles[n - 1] - cycles[0]) / cycles[n / 2] * 100);
	fflush(stdout);
}

static void
print_head(const char *what, const char *const *names, unsigned n)
{
	printf("\n%-39s", what);
	for (unsigned i = 0; i < n; i++)
		printf(" | %-19s", names[i]);
	printf("\n%-39s", "");
	for (unsigned i = 0; i < n; i++)
		printf(" | %6s %6s %5s", "min", "median", "range");
	printf("\n");
}

static bool
is_wanted(const char *name)
{
	return bench.only == NULL || strstr(name, bench.only) != NULL;
}

/* --- the lcore's clock ------------------------------------------------------------ */

#define VIRTUAL_STEP_NS 50u

static uint64_t
now_ns(void)
{
	return bench.tsc_now_ns() - bench.paused_ns;
}

/* For counts of instructions: the same in each run, and no turn takes long. */
static uint64_t
virtual_now_ns(void)
{
	return bench.t_virtual += VIRTUAL_STEP_NS;
}

static void
clock_start(void)
{
	struct bs_tsc_clock clock;

	if (bench.t_virtual != 0) {
		bs_clock_now_ns = virtual_now_ns;
		return;
	}
	bs_tsc_clock_start(&clock);
	bench.tsc_now_ns = bs_clock_now_ns;
	bs_clock_now_ns = now_ns;
}

/* --- set-up ---------------------------------------------------------------------- */

static struct bs_dataplane *
dataplane_make(const char *wire, const char *local, enum mode mode)
{
	static const char text[] =
		"{\"node\": 1, \"eal\": {\"lcores\": \"%u\", \"memory\": \"128M\", "
		"\"file_prefix\": \"bsbench%u\"},"
		"\"ports\": {\"wire\": {\"device\": [\"%s\"]}, \"local\": {\"device\": [\"%s\"]}},"
		"\"paths\": [{\"wire\": \"wire\", \"service\": \"local\"}],"
		"\"framing\": [{\"name\": \"benchrow\", \"header\": 8, \"length\": {\"at\": 0, "
		"\"bytes\": 4}, \"id\": {\"at\": 4, \"bytes\": 4}}],"
		"\"services\": [{\"name\": \"row\", \"address\": \"%s\", \"port\": %u, "
		"\"protocol\": \"benchrow\"}, {\"name\": \"resp\", \"address\": \"%s\", \"port\": "
		"%u, \"protocol\": \"resp\"}],"
		"\"shim\": {\"tag\": \"%s\"}, \"analyzer\": {\"mode\": \"off\"}}";
	static struct bs_config config;
	const char *address = mode == OBSERVE || mode == TAG ? TRAFFIC_ADDRESS : "10.9.9.9";
	char json[2048], error[BS_DATAPLANE_ERROR_BYTES];
	struct bs_dataplane *dataplane;
	struct bs_topology topology;
	struct bs_placement placement;

	snprintf(json, sizeof(json), text, (unsigned)sysconf(_SC_NPROCESSORS_ONLN) - 1,
		(unsigned)getpid(), wire, local, address, TRAFFIC_ROW_PORT, address,
		TRAFFIC_RESP_PORT, mode == TAG ? "always" : "off");
	if (bs_config_parse("bench", json, &config, error) != 0)
		fail(error);
	if (bench.eal.pipeline_count == 0) {
		if (bs_topology_read(&config, &topology) != 0)
			fail("no CPUs can be read");
		bs_placement_make(&config, &topology, &placement);
		if (bs_eal_init(&config, &placement, NULL, 0, &bench.eal, error) != 0)
			fail(error);
		clock_start();
		return NULL;
	}
	dataplane = bs_dataplane_create(&config, bench.eal.pipeline, 1, SOCKET_ID_ANY, error);
	if (dataplane == NULL)
		fail(error);
	/* as when the analyzer knows what is normal: most RPCs are told in brief */
	for (unsigned i = 0; i < config.service_count; i++)
		bs_tracker_threshold(dataplane->lcores[0]->tracker, i, 10 * BS_NS_PER_S);
	return dataplane;
}

static void
rings_make(void)
{
	static const char *const names[2] = {"wire", "local"};
	char name[RTE_RING_NAMESIZE];

	for (unsigned i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "bench.rx%u", i);
		bench.rx[i] = rte_ring_create(
			name, RING_PACKETS, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
		snprintf(name, sizeof(name), "bench.tx%u", i);
		bench.tx[i] = rte_ring_create(
			name, RING_PACKETS, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
		if (bench.rx[i] == NULL || bench.tx[i] == NULL ||
			rte_eth_from_rings(names[i], &bench.rx[i], 1, &bench.tx[i], 1, 0) < 0)
			fail("no net_ring port");
	}
}

/* --- what is measured ------------------------------------------------------------ */

static inline void
swap_macs(struct rte_mbuf **mbufs, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct rte_ether_hdr *header = rte_pktmbuf_mtod(mbufs[i], struct rte_ether_hdr *);
		struct rte_ether_addr address = header->src_addr;

		header->src_addr = header->dst_addr;
		header->dst_addr = address;
	}
}

/* One turn of the bare loop. */
static unsigned
bare_turn(const struct bs_dataplane *dataplane, bool swap)
{
	struct rte_mbuf *mbufs[BS_BURST];
	unsigned moved = 0;

	for (unsigned p = 0; p < 2; p++) {
		uint16_t n = rte_eth_rx_burst(dataplane->ports[p].id, 0, mbufs, BS_BURST);

		if (swap)
			swap_macs(mbufs, n);
		if (rte_eth_tx_burst(dataplane->ports[!p].id, 0, mbufs, n) != n)
			fail("a ring is full");
		moved += n;
	}
	return moved;
}

/* TSC cycles of some turns; *moved: the packets they moved. */
static uint64_t
run_turns(struct bs_dataplane *dataplane, enum mode mode, unsigned turns, uint64_t *moved)
{
	uint64_t begin = rte_rdtsc();

	if (mode == IO || mode == MACSWAP) {
		for (unsigned i = 0; i < turns; i++)
			*moved += bare_turn(dataplane, mode == MACSWAP);
	} else {
		for (unsigned i = 0; i < turns; i++)
			bs_lcore_turn(dataplane->lcores[0]);
	}
	return rte_rdtsc() - begin;
}

static void
drop_records(struct bs_lcore *lcore)
{
	uint64_t units[UNITS][BS_UNIT_BYTES / sizeof(uint64_t)];

	while (rte_ring_sc_dequeue_burst_elem(lcore->records, units, BS_UNIT_BYTES, UNITS, NULL) >
		0)
		;
}

/* --- RPCs over net_ring ---------------------------------------------------------- */

struct rpc_run {
	struct bs_dataplane *dataplane;
	enum mode mode;
	struct traffic *traffic;
	unsigned burst; /* of each side in a turn */
	struct rte_mbuf *stock[2][STOCK];
	uint64_t t_ns; /* the clock stands still since */
	uint64_t packets;
};

/* Fills both rx rings, lets the turns run, takes back what came out. Returns the cycles a packet.
 */
static double
step(struct rpc_run *run, bool handshake)
{
	unsigned n[2] = {0, 0};
	uint64_t moved = 0, cycles;

	for (unsigned i = 0; i < TURNS; i++) {
		struct rte_mbuf **in = &run->stock[0][n[0]], **out = &run->stock[1][n[1]];

		if (handshake) {
			unsigned count = traffic_handshake(run->traffic, in, out, run->burst);

			n[0] += count;
			n[1] += count;
		} else {
			n[1] += traffic_next(run->traffic, in, out, run->burst);
			n[0] += run->burst;
			if (n[1] < n[0])
				break; /* or the first responses would be a turn early */
		}
	}
	for (unsigned p = 0; p < 2; p++)
		rte_ring_sp_enqueue_bulk(bench.rx[p], (void **)run->stock[p], n[p], NULL);
	if (run->t_ns != 0)
		bench.paused_ns += bs_clock_now_ns() - run->t_ns;
	cycles = run_turns(run->dataplane, run->mode, TURNS, &moved);
	/* a turn that finds nothing: no packet of the next step came before it */
	run_turns(run->dataplane, run->mode, 1, &moved);
	run->t_ns = bs_clock_now_ns();
	run->packets += n[0] + n[1];
	for (unsigned p = 0; p < 2; p++) {
		if (rte_ring_sc_dequeue_burst(bench.tx[!p], (void **)run->stock[p], STOCK, NULL) !=
			n[p])
			fail("packets were lost");
	}
	drop_records(run->dataplane->lcores[0]);
	return (double)cycles / (n[0] + n[1]);
}

/* The median of the steps: those in which the machine did something else do not count. */
static double
run_steps(struct rpc_run *run)
{
	const unsigned count = bench.packets / (2 * TURNS * run->burst) + 1;
	double *cycles = calloc(count, sizeof(cycles[0])), median;

	if (cycles == NULL)
		fail("out of memory");
	for (unsigned i = 0; i < count; i++)
		cycles[i] = step(run, false);
	qsort(cycles, count, sizeof(cycles[0]), compare);
	median = cycles[count / 2];
	free(cycles);
	return median;
}

/* Was the traffic understood? Figures of anything else mean nothing. */
static void
check_counters(const struct rpc_run *run, const struct traffic_shape *shape)
{
	const struct bs_lcore *lcore = run->dataplane->lcores[0];
	const uint64_t *counters = bs_tracker_counters(lcore->tracker);

	if (run->mode != OBSERVE && run->mode != TAG)
		return;

	if (counters[BS_TRACK_RPCS] == 0 || counters[BS_TRACK_RETRANSMISSIONS] != 0)
		fail("the traffic was not understood");
	if (counters[BS_TRACK_FLOWS_EVICTED] == 0 &&
		(counters[BS_TRACK_BYTES_UNPARSED] | counters[BS_TRACK_ORPHANS] |
			counters[BS_TRACK_CAPTURE_GAPS] | counters[BS_TRACK_RECORDS_LOST]))
		fail("RPCs were not understood");
	if (run->mode == TAG && shape->flows <= 1000 &&
		lcore->counters.tag[BS_TAG_TAGGED] < run->packets / 3)
		fail("packets were not tagged");
}

static void
measure_rpcs(const struct traffic_shape *shape, enum mode mode, unsigned burst)
{
	struct rpc_run run = {.mode = mode, .burst = burst};
	double cycles[RUNS_MAX];

	if (bench.mode != NULL && strcmp(bench.mode, mode_names[mode]) != 0) {
		printf(" | %19s", "");
		return;
	}
	run.dataplane = dataplane_make("net_ring_wire", "net_ring_local", mode);
	run.traffic = traffic_create(shape);
	if (run.traffic == NULL ||
		rte_pktmbuf_alloc_bulk(run.dataplane->pool, run.stock[0], STOCK) != 0 ||
		rte_pktmbuf_alloc_bulk(run.dataplane->pool, run.stock[1], STOCK) != 0)
		fail("out of memory");
	for (unsigned i = 0; i < shape->flows; i += TURNS * burst)
		step(&run, true);
	/* all flows have had a request and a response */
	while (run.packets < 4ull * shape->flows * (shape->packets + 1) + 10000)
		step(&run, false);
	for (unsigned r = 0; r < bench.runs; r++)
		cycles[r] = run_steps(&run);
	check_counters(&run, shape);
	print_figure(cycles, bench.runs);
	for (unsigned p = 0; p < 2; p++)
		rte_pktmbuf_free_bulk(run.stock[p], STOCK);
	traffic_destroy(run.traffic);
	bs_dataplane_destroy(run.dataplane);
}

static void
name_shape(const struct traffic_shape *shape, char *name, size_t size)
{
	snprintf(name, size, "%s, %u B, %u packet%s, %u flow%s",
		shape->port == TRAFFIC_ROW_PORT ? "row" : "RESP", shape->frame_bytes,
		shape->packets, shape->packets > 1 ? "s" : "", shape->flows,
		shape->flows > 1 ? "s" : "");
}

static void
bench_rpcs(void)
{
	print_head("RPCs over net_ring, cycles a packet", mode_names, MODE_COUNT);
	for (unsigned i = 0; i < RTE_DIM(shapes); i++) {
		char name[64];

		name_shape(&shapes[i], name, sizeof(name));
		if (!is_wanted(name))
			continue;
		printf("%-39s", name);
		for (enum mode mode = 0; mode < MODE_COUNT; mode++)
			measure_rpcs(&shapes[i], mode, BS_BURST);
		printf("\n");
	}
}

static void
bench_bursts(void)
{
	static const struct traffic_shape shape = {TRAFFIC_ROW_PORT, 1000, 1, 256};

	print_head("small bursts, row, 256 B, 1000 flows", mode_names, MODE_COUNT);
	for (unsigned burst = 1; burst < BS_BURST; burst *= 4) {
		char name[64];

		snprintf(name, sizeof(name), "bursts of %u", burst);
		if (!is_wanted(name))
			continue;
		printf("%-39s", name);
		for (enum mode mode = 0; mode < MODE_COUNT; mode++)
			measure_rpcs(&shape, mode, burst);
		printf("\n");
	}
}

/* --- net_null, and nothing ------------------------------------------------------- */

static void
measure_null(const char *args, enum mode mode)
{
	char wire[64], local[64];
	struct bs_dataplane *dataplane;
	double cycles[RUNS_MAX];

	snprintf(wire, sizeof(wire), "net_null0,%s", args);
	snprintf(local, sizeof(local), "net_null1,%s", args);
	dataplane = dataplane_make(wire, local, mode);
	for (unsigned r = 0; r < bench.runs; r++) {
		unsigned turns = bench.packets / (2 * BS_BURST);
		uint64_t moved = 0, spent = run_turns(dataplane, mode, turns, &moved);

		cycles[r] = (double)spent / (turns * 2 * BS_BURST);
	}
	if (mode > MACSWAP && dataplane->lcores[0]->egress[0].tx_packets == 0)
		fail("net_null: nothing was sent");
	print_figure(cycles, bench.runs);
	bs_dataplane_destroy(dataplane);
}

static void
bench_null(void)
{
	static const char *const args[] = {"size=64,copy=0", "size=64,copy=1", "size=1500,copy=0"};
	static const char *const names[] = {"io", "macswap", "off", "observe"};

	print_head("net_null, zeros, cycles a packet", names, RTE_DIM(names));
	for (unsigned i = 0; i < RTE_DIM(args); i++) {
		char name[64];

		snprintf(name, sizeof(name), "net_null,%s", args[i]);
		if (!is_wanted(name))
			continue;
		printf("%-39s", name);
		measure_null(args[i], IO);
		measure_null(args[i], MACSWAP);
		measure_null(args[i], OFF);
		measure_null(args[i], OBSERVE);
		printf("\n");
	}
}

static void
bench_idle(void)
{
	static const char *const names[] = {"io", "dataplane"};
	double cycles[2][RUNS_MAX];
	struct bs_dataplane *dataplane;

	if (!is_wanted("empty turn"))
		return;
	print_head("cycles a turn", names, RTE_DIM(names));
	dataplane = dataplane_make("net_ring_wire", "net_ring_local", OBSERVE);
	for (unsigned r = 0; r < bench.runs; r++) {
		const unsigned turns = bench.packets / (2 * BS_BURST);
		uint64_t moved = 0;

		cycles[0][r] = (double)run_turns(dataplane, IO, turns, &moved) / turns;
		cycles[1][r] = (double)run_turns(dataplane, OBSERVE, turns, &moved) / turns;
	}
	printf("%-39s", "empty turn");
	print_figure(cycles[0], bench.runs);
	print_figure(cycles[1], bench.runs);
	printf("\n");
	bs_dataplane_destroy(dataplane);
}

static int
run_all(void *unused)
{
	(void)unused;
	printf("TSC %" PRIu64 " MHz, %u runs of %u packets\n", rte_get_tsc_hz() / 1000000,
		bench.runs, bench.packets);
	bench_rpcs();
	bench_bursts();
	bench_null();
	bench_idle();
	return 0;
}

/* EAL leaves its files behind. */
static int
remove_entry(const char *path, const struct stat *status, int type, struct FTW *where)
{
	(void)status;
	(void)type;
	(void)where;
	return remove(path);
}

int
main(int argc, char **argv)
{
	int option, ret;

	while ((option = getopt(argc, argv, "c:m:n:r:v")) != -1) {
		if (option == 'c') {
			bench.only = optarg;
		} else if (option == 'm') {
			bench.mode = optarg;
		} else if (option == 'n') {
			bench.packets = (unsigned)atoi(optarg);
		} else if (option == 'r') {
			bench.runs = (unsigned)atoi(optarg) % RUNS_MAX;
		} else if (option == 'v') {
			bench.t_virtual = BS_NS_PER_S;
		} else {
			fprintf(stderr,
				"usage: %s [-c part-of-case] [-m mode] [-n packets] [-r runs] "
				"[-v]\n",
				argv[0]);
			return 2;
		}
	}
	if (bench.runs == 0 || bench.packets < 2 * BS_BURST)
		fail("too few runs or packets");
	dataplane_make("net_ring_wire", "net_ring_local", IO);
	rings_make();
	rte_eal_remote_launch(run_all, NULL, bench.eal.pipeline[0]);
	ret = rte_eal_wait_lcore(bench.eal.pipeline[0]);
	rte_eal_cleanup();
	nftw(rte_eal_get_runtime_dir(), remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	return ret;
}
