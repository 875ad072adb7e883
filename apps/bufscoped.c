/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bufscoped: the DPDK primary process in front of the services. Reads the
 * config, starts the analyzer's spawner, EAL, the dataplane and its lcores, then
 * serves the control socket until it is told to stop.
 */
#include <errno.h>
#include <poll.h>
#include <rte_eal.h>
#include <rte_launch.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "analyzer_link.h"
#include "bs_clock.h"
#include "bs_names.h"
#include "bs_packet.h"
#include "collector.h"
#include "control.h"
#include "dataplane.h"
#include "eal.h"
#include "troubles.h"
#include "options.h"
#include "plan.h"
#include "instance.h"
#include "privileges.h"
#include "probe.h"
#include "telemetry.h"
#include "tsc_clock.h"
#include "watch_ports.h"

#define WATCH_MS 1000

struct program {
	const char *config_path;
	struct bs_config config;
	struct bs_placement placement;
	struct bs_eal eal;
	struct bs_instance instance;
	struct bs_privileges privileges;
	struct control_access access;
	struct bs_analyzer_link analyzer;
	struct bs_dataplane *dataplane;
	struct bs_control *control;
	struct bs_probe *probe;
	struct bs_watch *watch;
	struct bs_names names;
	struct bs_tsc_clock clock;
	struct bs_troubles troubles;
	struct bs_snapshot *seen; /* at the last look for troubles */
	uint64_t t_watch;
	struct bs_status_source source;
	char *const *eal_args;
	unsigned eal_arg_count;
	int signals;
	bool cut_told;
};

struct values {
	const char *config;
	bool check;
};

static const struct bs_option options[] = {
	{.name = "config",
		.letter = 'c',
		.argument = "FILE",
		.kind = BS_OPTION_TEXT,
		.offset = offsetof(struct values, config),
		.help = "configuration (JSON; its keys: doc/guide.md); required"},
	{.name = "check",
		.kind = BS_OPTION_FLAG,
		.offset = offsetof(struct values, check),
		.help = "validate it, print what it would build, and exit"},
};

static const struct bs_command command = {
	.name = "bufscoped",
	.operands = "[-- EAL-ARGS]",
	.summary = "The BufScope dataplane: runs in front of RPC services and says which requests\n"
		   "were slow, which buffer made them slow, and why.\n"
		   "\n"
		   "SIGTERM stops it cleanly and prints the counters; SIGHUP reloads SLOs,\n"
		   "thresholds and record rates.",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
};

static void
complain(const char *text)
{
	fprintf(stderr, "bufscoped: %s\n", text);
}

/* --- what status.h asks ------------------------------------------------------------ */

static int
take_snapshot(void *context, struct bs_snapshot *snapshot)
{
	struct program *program = context;

	bs_dataplane_snapshot(program->dataplane, snapshot);
	bs_probe_snapshot(program->probe, snapshot);
	bs_watch_snapshot(program->watch, snapshot);
	snapshot->spawner_gone = program->analyzer.spawner.gone;
	snapshot->analyzer_restarts = program->analyzer.spawner.restarts;
	snapshot->clock = program->clock;
	memcpy(snapshot->t_trouble, program->troubles.t_last, sizeof(snapshot->t_trouble));
	return 0;
}

static int
inject_fault(void *context, const char *kind, const char *value, char error[BS_STATUS_ERROR_BYTES])
{
	struct program *program = context;
	int ret = bs_dataplane_fault(program->dataplane, kind, value);

	if (ret == -EPERM)
		snprintf(error, BS_STATUS_ERROR_BYTES, "faults are off; set debug.faults to true");
	else if (ret == -ENOENT)
		snprintf(error, BS_STATUS_ERROR_BYTES, "no fault \"%s\"; there are: stall, drop",
			kind);
	else if (ret != 0)
		snprintf(error, BS_STATUS_ERROR_BYTES,
			"\"%s\" is not for %s: stall takes a duration up to 1s, drop a number of "
			"packets up to 65535",
			value, kind);
	return ret;
}

static void
learn_name(struct bs_names *names, enum bs_name_kind kind, unsigned number, const char *text)
{
	struct bs_rec_name name;

	memset(&name, 0, sizeof(name));
	bs_record_head(&name.head, BS_REC_NAME, 0);
	name.kind = (uint16_t)kind;
	name.number = (uint16_t)number;
	snprintf(name.name, sizeof(name.name), "%s", text);
	bs_names_learn(names, &name);
}

static void
learn_names(struct program *program)
{
	const struct bs_dataplane *dataplane = program->dataplane;

	bs_names_init(&program->names);
	for (unsigned i = 0; i < dataplane->buffer_count; i++)
		learn_name(&program->names, BS_NAME_BUFFER, BS_BUFFER_FIRST_OWN + i,
			dataplane->buffers[i].name);
	for (unsigned i = 0; i < program->config.service_count; i++)
		learn_name(&program->names, BS_NAME_SERVICE, i, program->config.services[i].name);
	for (unsigned i = 0; i < dataplane->framers.count; i++)
		learn_name(&program->names, BS_NAME_PROTOCOL, dataplane->framers.list[i].protocol,
			dataplane->framers.list[i].name);
}

/* --- start -------------------------------------------------------------------------- */

static int
start_clock(struct bs_tsc_clock *clock)
{
	if (bs_tsc_clock_start(clock) != 0) {
		fprintf(stderr,
			"bufscoped: the TSC is off by %llu ppm against the kernel's clock: every "
			"time "
			"would be wrong by as much. On a virtual machine, give it an invariant "
			"TSC\n",
			(unsigned long long)clock->error_ppm);
		return -ERANGE;
	}
	if (!clock->invariant)
		complain("the CPU does not say that its TSC is invariant: its rate may change; "
			 "bufscope status tells if it did");
	if (clock->eal_error_ppm > BS_CLOCK_ERROR_MAX_PPM)
		fprintf(stderr,
			"bufscoped: EAL's TSC rate is off by %llu ppm; the measured %llu Hz is "
			"used\n",
			(unsigned long long)clock->eal_error_ppm, (unsigned long long)clock->hz);
	return 0;
}

static int
start_sockets(struct program *program)
{
	char path[PATH_MAX + 32], error[BS_INSTANCE_ERROR_BYTES];

	program->source = (struct bs_status_source){
		.snapshot = take_snapshot,
		.fault = inject_fault,
		.context = program,
		.store = program->dataplane->store,
		.names = &program->names,
		.config = &program->config,
		.privileges = &program->privileges,
		.analyzer_user = program->analyzer.user.name,
	};
	snprintf(path, sizeof(path), "%s/bufscope.sock", program->instance.directory);
	program->control = bs_control_create(path, &program->access, &program->source, error);
	if (program->control == NULL ||
		bs_analyzer_link_listen(&program->analyzer, program->instance.directory,
			&program->access, error) != 0 ||
		bs_instance_open(&program->instance, &program->access, error) != 0) {
		complain(error);
		return -EIO;
	}
	if (bs_telemetry_register(&program->source) != 0)
		complain("telemetry is off: no /bufscope commands for dpdk-telemetry.py");
	return 0;
}

/* Before a packet is hashed: nobody outside can know which flows collide in our tables. */
static int
draw_tuple_key(void)
{
	if (getrandom(bs_tuple_key, sizeof(bs_tuple_key), 0) == (ssize_t)sizeof(bs_tuple_key))
		return 0;
	fprintf(stderr, "bufscoped: no random key for the flow table: %s\n", strerror(errno));
	return -EIO;
}

static int
start_dataplane(struct program *program)
{
	char error[BS_DATAPLANE_ERROR_BYTES];
	int ret = draw_tuple_key();

	if (ret != 0)
		return ret;
	ret = bs_eal_init(&program->config, &program->placement, program->eal_args,
		program->eal_arg_count, &program->eal, error);
	if (ret != 0) {
		complain(error);
		return ret;
	}
	ret = start_clock(&program->clock);
	if (ret != 0)
		return ret;
	program->dataplane = bs_dataplane_create(&program->config, program->eal.pipeline,
		program->eal.pipeline_count, program->placement.memory_node, error);
	if (program->dataplane == NULL) {
		complain(error);
		return -EIO;
	}
	program->dataplane->hugepages = program->eal.hugepages;
	program->probe = bs_probe_create(program->dataplane);
	if (program->probe == NULL)
		return -ENOMEM;
	bs_probe_find(program->probe, bs_clock_now_ns());
	program->watch = bs_watch_ports(program->dataplane, bs_clock_now_ns());
	program->seen = malloc(sizeof(*program->seen));
	if (program->watch == NULL || program->seen == NULL)
		return -ENOMEM;
	learn_names(program);
	return start_sockets(program);
}

/* What can be wrong is found before a thread, a port or a hugepage is taken. */
static int
prepare(struct program *program)
{
	const struct bs_config *config = &program->config;
	char error[BS_INSTANCE_ERROR_BYTES];
	int ret;

	ret = bs_placement_check(&program->placement, error);
	if (ret == 0)
		ret = bs_privileges_plan(config, &program->privileges, error);
	if (ret == 0)
		ret = control_access_plan(config, &program->access, error);
	if (ret == 0)
		ret = bs_instance_take(config->eal.file_prefix, program->privileges.uid,
			&program->instance, error);
	/* the analyzer's, EAL's control threads and the probe's inherit it */
	if (ret == 0)
		sched_setaffinity(0, sizeof(program->placement.others), &program->placement.others);
	if (ret == 0)
		ret = bs_analyzer_link_start(&program->analyzer, config, error);
	if (ret != 0)
		complain(error);
	return ret;
}

static int
drop_privileges(struct program *program)
{
	char error[BS_PRIVILEGES_ERROR_BYTES];
	int ret = bs_privileges_drop(&program->privileges, error);

	if (ret != 0)
		complain(error);
	return ret;
}

static void
launch(struct program *program)
{
	for (unsigned i = 0; i < program->eal.pipeline_count; i++)
		rte_eal_remote_launch(
			bs_lcore_run, program->dataplane->lcores[i], program->eal.pipeline[i]);
	rte_eal_remote_launch(
		bs_collector_run, program->dataplane->collector, program->eal.collector);
}

/* --- run ------------------------------------------------------------------------------ */

static void
reload(struct program *program)
{
	char error[BS_CONFIG_ERROR_BYTES];
	struct bs_config *next = malloc(sizeof(*next));

	if (next == NULL || bs_config_load(program->config.path, next, error) != 0 ||
		bs_config_reloadable(&program->config, next, error) != 0) {
		fprintf(stderr, "bufscoped: not reloaded: %s\n",
			next == NULL ? "out of memory" : error);
		free(next);
		return;
	}
	bs_dataplane_reload(program->dataplane, next);
	free(next);
	fprintf(stderr, "bufscoped: reloaded %s\n", program->config.path);
}

static void
take_analyzer(struct program *program)
{
	int fd = bs_analyzer_link_take(&program->analyzer);

	if (fd >= 0)
		bs_collector_connect(program->dataplane->collector, fd);
}

/* Returns false when a signal says to stop. */
static bool
take_signal(struct program *program)
{
	struct signalfd_siginfo info;

	if (read(program->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return true;
	if (info.ssi_signo != SIGHUP)
		return false;
	reload(program);
	return true;
}

/* Says once what is wrong with the ports' packets and how to mend it. */
static void
tell_cut(struct program *program)
{
	uint64_t cut = 0;

	for (unsigned i = 0; i < program->dataplane->lcore_count; i++)
		cut += program->dataplane->lcores[i]->counters.parse[BS_PARSE_CUT];
	if (cut == 0 || program->cut_told)
		return;
	program->cut_told = true;
	complain("a port delivers frames shorter than the packets in them (cut_by_port): raise its "
		 "buffer "
		 "size, or switch off GRO, GSO and TSO where they come from (ethtool -K)");
}

/* What is looked after once a second. */
static void
watch(struct program *program, uint64_t t)
{
	if (t < program->t_watch)
		return;
	program->t_watch = t + WATCH_MS * BS_NS_PER_MS;
	bs_tsc_clock_check(&program->clock);
	bs_watch_step(program->watch, t);
	take_snapshot(program, program->seen);
	bs_troubles_step(&program->troubles, program->seen);
	tell_cut(program);
}

static void
run(struct program *program)
{
	struct pollfd fds[3] = {
		{.fd = program->signals, .events = POLLIN},
		{.fd = bs_control_fd(program->control), .events = POLLIN},
		{.fd = bs_analyzer_link_fd(&program->analyzer), .events = POLLIN},
	};

	for (;;) {
		int timeout_ms = bs_probe_step(program->probe, bs_clock_now_ns());

		if (timeout_ms < 0 || timeout_ms > WATCH_MS)
			timeout_ms = WATCH_MS;
		if (poll(fds, 3, timeout_ms) < 0 && errno != EINTR)
			return;
		watch(program, bs_clock_now_ns());
		if ((fds[0].revents & POLLIN) && !take_signal(program))
			return;
		if (fds[1].revents & POLLIN)
			bs_control_step(program->control, 0);
		if (fds[2].revents != 0)
			take_analyzer(program);
		if (fds[2].revents & (POLLHUP | POLLERR))
			fds[2].fd = -1; /* the spawner is gone; what is left of it was taken */
	}
}

/* --- stop ------------------------------------------------------------------------------ */

/* What came in by a port, and where it went. */
static void
print_port(const struct bs_snapshot_port *port)
{
	printf("port %s: packets in %llu = forwarded %llu + dropped %llu + queued %llu + "
	       "unaccounted %lld\n",
		port->name, (unsigned long long)port->taken, (unsigned long long)port->forwarded,
		(unsigned long long)port->ended, (unsigned long long)port->queued,
		(long long)port->unaccounted);
	for (unsigned i = 0; i < BS_REASON_COUNT; i++) {
		if (i == BS_REASON_RX_MISSED && !port->rx_missed_observable)
			printf("port %s: %s not observable\n", port->name, bs_reason_key(i));
		else if (port->reasons[i] != 0)
			printf("port %s: %s %llu\n", port->name, bs_reason_key(i),
				(unsigned long long)port->reasons[i]);
	}
}

static void
print_counters(const struct program *program)
{
	struct bs_snapshot *snapshot = malloc(sizeof(*snapshot));

	if (snapshot == NULL)
		return;
	take_snapshot((void *)(uintptr_t)program, snapshot);
	for (unsigned i = 0; i < BS_TAG_COUNT; i++) {
		if (snapshot->tag[i] != 0)
			printf("%s %llu\n", bs_tag_counter_key(i),
				(unsigned long long)snapshot->tag[i]);
	}
	printf("rx_packets %llu\ntx_packets %llu\n", (unsigned long long)snapshot->rx_packets,
		(unsigned long long)snapshot->tx_packets);
	for (unsigned i = 0; i < snapshot->port_count; i++)
		print_port(&snapshot->ports[i]);
	printf("packets in %llu = out %llu + dropped %llu + queued %llu + unaccounted %lld\n",
		(unsigned long long)snapshot->rx_packets, (unsigned long long)snapshot->tx_packets,
		(unsigned long long)snapshot->ended, (unsigned long long)snapshot->queued,
		(long long)snapshot->unaccounted);
	fflush(stdout);
	free(snapshot);
}

static void
stop(struct program *program)
{
	struct bs_dataplane *dataplane = program->dataplane;

	for (unsigned i = 0; i < program->eal.pipeline_count; i++) {
		__atomic_store_n(&dataplane->lcores[i]->stop, 1, __ATOMIC_RELAXED);
		bs_lcore_ring(dataplane->lcores[i]);
		rte_eal_wait_lcore(program->eal.pipeline[i]);
	}
	bs_dataplane_finish(dataplane, bs_clock_now_ns());
	bs_collector_stop(dataplane->collector);
	rte_eal_wait_lcore(program->eal.collector);
	print_counters(program);
}

/* What stands behind "--" is EAL's. Returns what is left of argc. */
static int
split_eal_args(struct program *program, int argc, char **argv)
{
	int own = 1;

	while (own < argc && strcmp(argv[own], "--") != 0)
		own++;
	if (own < argc) {
		program->eal_args = &argv[own + 1];
		program->eal_arg_count = (unsigned)(argc - own - 1);
	}
	return own;
}

/* 0 to go on, else as bs_options_read(). */
static int
take_options(struct program *program, int argc, char **argv, bool *check)
{
	struct values values = {0};
	int operands;

	argc = split_eal_args(program, argc, argv);
	operands = bs_options_read(&command, argc, argv, &values, stdout, stderr);
	if (operands < 0)
		return operands;
	if (operands > 0) {
		fprintf(stderr,
			"bufscoped: %s: arguments for EAL come after -- (see bufscoped --help)\n",
			argv[1]);
		return -1;
	}
	if (values.config == NULL) {
		complain("no configuration: give -c FILE (see bufscoped --help)");
		return -1;
	}
	*check = values.check;
	program->config_path = values.config;
	return 0;
}

static int
load_config(struct program *program)
{
	char error[BS_CONFIG_ERROR_BYTES];
	int ret = bs_config_load(program->config_path, &program->config, error);

	if (ret != 0)
		complain(error);
	return ret;
}

static int
place(struct program *program)
{
	struct bs_topology topology;
	int ret = bs_topology_read(&program->config, &topology);

	if (ret != 0) {
		fprintf(stderr, "bufscoped: no CPUs can be read: %s\n", strerror(-ret));
		return ret;
	}
	bs_placement_make(&program->config, &topology, &program->placement);
	return 0;
}

static int
block_signals(struct program *program)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
		return -errno;
	program->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return program->signals < 0 ? -errno : 0;
}

int
main(int argc, char **argv)
{
	static struct program program = {.analyzer.listener.fd = -1};
	bool check = false;
	int status;

	status = take_options(&program, argc, argv, &check);
	if (status < 0)
		return status == -2 ? BS_EXIT_DONE : BS_EXIT_USAGE;
	if (load_config(&program) != 0 || place(&program) != 0)
		return BS_EXIT_FAILED;
	if (check) {
		json_t *plan = bs_plan_json(&program.config, &program.placement);

		bs_plan_print(plan, stdout);
		json_decref(plan);
		return 0;
	}
	if (prepare(&program) != 0) {
		bs_instance_release(&program.instance);
		return 1;
	}
	status = 1;
	if (block_signals(&program) == 0 && start_dataplane(&program) == 0 &&
		drop_privileges(&program) == 0) {
		launch(&program);
		run(&program);
		stop(&program);
		status = 0;
	}
	bs_telemetry_withdraw();
	bs_control_destroy(program.control);
	free(program.seen);
	bs_watch_destroy(program.watch);
	bs_probe_destroy(program.probe);
	bs_analyzer_link_stop(&program.analyzer);
	bs_dataplane_destroy(program.dataplane);
	rte_eal_cleanup();
	bs_instance_release(&program.instance);
	return status;
}
