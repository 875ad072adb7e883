/* SPDX-License-Identifier: BSD-3-Clause */
/* Where threads and memory go, on machines that are made up; worked out by hand. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "placement.h"

/* Two nodes with CPUs 0-3 and 4-7, and a config with two ports. */
struct machine {
	struct bs_topology topology;
	struct bs_config config;
	struct bs_placement placed;
};

static char text[BS_CPUS_TEXT_BYTES];

static struct machine
machine(int wire_node, int local_node)
{
	struct machine m = {.topology.node_count = 2, .config.eal.collector_cpu = -1};

	for (int cpu = 0; cpu < 8; cpu++) {
		CPU_SET(cpu, &m.topology.possible);
		m.topology.cpu_node[cpu] = cpu / 4;
	}
	m.topology.allowed = m.topology.possible;
	m.config.port_count = 2;
	strcpy(m.config.ports[0].name, "wire");
	strcpy(m.config.ports[1].name, "local");
	m.topology.port_node[0] = wire_node;
	m.topology.port_node[1] = local_node;
	return m;
}

static void
name_cpus(struct machine *m, unsigned first, unsigned second)
{
	m->config.eal.pipeline.cpus[0] = first;
	m->config.eal.pipeline.cpus[1] = second;
	m->config.eal.pipeline.count = 2;
}

static void
place(struct machine *m)
{
	bs_placement_make(&m->config, &m->topology, &m->placed);
}

static void
assert_lcore(const struct machine *m, unsigned i, unsigned cpu, const char *why)
{
	char got[BS_PLACED_TEXT_BYTES];

	assert_true(i < m->placed.lcore_count);
	assert_int_equal(m->placed.lcores[i].cpu, cpu);
	assert_int_equal(m->placed.lcores[i].node, cpu / 4);
	assert_string_equal(bs_placed_text(&m->config, &m->placed.lcores[i], got), why);
}

static void
what_is_left_open_goes_to_the_node_of_the_ports(void **state)
{
	struct machine m = machine(1, 1);

	(void)state;
	place(&m);
	assert_int_equal(m.placed.lcore_count, 2);
	assert_lcore(&m, 0, 4, "near port wire");
	assert_lcore(&m, 1, 5, "near port local");
	assert_int_equal(m.placed.memory_node, 1);
	assert_string_equal(bs_cpus_text(&m.placed.others, text), "6-7");
	assert_int_equal(m.placed.others_node, 1);
	assert_false(m.placed.others_share);
}

static void
each_lcore_is_near_the_port_that_it_polls_first(void **state)
{
	struct machine m = machine(1, 0);

	(void)state;
	place(&m);
	assert_lcore(&m, 0, 4, "near port wire");
	assert_lcore(&m, 1, 0, "near port local");
	assert_int_equal(m.placed.memory_node, 1);
	/* the veth to the services is on none: its lcore goes where the NIC is */
	m = machine(1, BS_NODE_NONE);
	place(&m);
	assert_lcore(&m, 0, 4, "near port wire");
	assert_lcore(&m, 1, 5, "near port wire");
	m = machine(BS_NODE_NONE, 1);
	place(&m);
	assert_lcore(&m, 0, 4, "near port local");
	assert_int_equal(m.placed.memory_node, 1);
}

static void
ports_on_no_node_leave_all_on_one(void **state)
{
	struct machine m = machine(BS_NODE_NONE, BS_NODE_NONE);

	(void)state;
	for (int cpu = 0; cpu < 3; cpu++)
		CPU_CLR(cpu, &m.topology.allowed);
	CPU_CLR(4, &m.topology.allowed);
	place(&m);
	assert_lcore(&m, 0, 3, "the first that is left");
	/* node 0 has no other */
	assert_lcore(&m, 1, 5, "the first that is left");
	assert_int_equal(m.placed.memory_node, 0);
	m = machine(BS_NODE_NONE, BS_NODE_NONE);
	for (int cpu = 0; cpu < 3; cpu++)
		CPU_CLR(cpu, &m.topology.allowed);
	m.topology.cpu_node[7] = 0;
	place(&m);
	assert_int_equal(m.placed.lcores[1].cpu, 7);
}

static void
a_node_without_cpus_for_us_is_said_to_be_so(void **state)
{
	struct machine m = machine(1, 1);

	(void)state;
	for (int cpu = 5; cpu < 8; cpu++)
		CPU_CLR(cpu, &m.topology.allowed);
	place(&m);
	assert_lcore(&m, 0, 4, "near port wire");
	assert_lcore(&m, 1, 0, "port local is on node 1, which has no CPU left for us");
	assert_string_equal(bs_cpus_text(&m.placed.others, text), "1-3");
	assert_int_equal(m.placed.others_node, 0);
}

static void
named_cpus_stay_and_a_wrong_node_is_told(void **state)
{
	struct machine m = machine(1, 1);

	(void)state;
	name_cpus(&m, 7, 2);
	place(&m);
	assert_lcore(&m, 0, 7, "named");
	assert_lcore(&m, 1, 2, "named, but port wire is on node 1: name CPUs of that, or none");
	assert_string_equal(bs_cpus_text(&m.placed.others, text), "4-6");
	/* not among those that it was started with, but it may go there */
	CPU_CLR(7, &m.topology.allowed);
	place(&m);
	assert_lcore(&m, 0, 7, "named");
	assert_string_equal(bs_cpus_text(&m.placed.others, text), "4-6");
}

static void
a_named_collector_is_alone_while_that_can_be(void **state)
{
	struct machine m = machine(1, 1);

	(void)state;
	m.config.eal.collector_cpu = 4;
	place(&m);
	assert_lcore(&m, 0, 5, "near port wire");
	assert_lcore(&m, 1, 6, "near port local");
	assert_int_equal(m.placed.collector.cpu, 4);
	assert_string_equal(bs_cpus_text(&m.placed.others, text), "7");
	/* main and analyzer would rather be with it than with the pipeline */
	CPU_ZERO(&m.topology.allowed);
	CPU_SET(4, &m.topology.allowed);
	CPU_SET(5, &m.topology.allowed);
	place(&m);
	assert_int_equal(m.placed.lcore_count, 1);
	assert_lcore(&m, 0, 5, "near port wire");
	assert_string_equal(bs_cpus_text(&m.placed.others, text), "4");
	assert_false(m.placed.others_share);
}

static void
few_cpus_are_shared(void **state)
{
	struct machine m = machine(BS_NODE_NONE, BS_NODE_NONE);

	(void)state;
	m.topology.node_count = 1;
	CPU_ZERO(&m.topology.allowed);
	CPU_SET(0, &m.topology.allowed);
	CPU_SET(1, &m.topology.allowed);
	place(&m);
	assert_int_equal(m.placed.lcore_count, 2);
	assert_lcore(&m, 0, 0, "the first that is left");
	assert_lcore(&m, 1, 1, "the first that is left");
	assert_true(m.placed.others_share);
	assert_string_equal(bs_cpus_text(&m.placed.others, text), "0-1");
	assert_int_equal(m.placed.memory_node, BS_NODE_NONE);
	CPU_CLR(0, &m.topology.allowed);
	m.config.eal.collector_cpu = 1;
	place(&m);
	assert_int_equal(m.placed.lcore_count, 1);
	assert_int_equal(m.placed.lcores[0].cpu, 1);
	assert_true(m.placed.others_share);
	assert_string_equal(bs_cpus_text(&m.placed.others, text), "1");
}

static void
a_cpu_that_is_not_there_is_refused_by_its_key(void **state)
{
	struct machine m = machine(1, 1);
	char error[BS_CONFIG_ERROR_BYTES], why[BS_PLACED_TEXT_BYTES];

	(void)state;
	place(&m);
	assert_int_equal(bs_placement_check(&m.placed, error), 0);
	name_cpus(&m, 4, 8);
	place(&m);
	assert_string_equal(bs_placed_text(&m.config, &m.placed.lcores[1], why),
		"named, but not there for this process: bufscoped will not start");
	assert_int_equal(bs_placement_check(&m.placed, error), -ENODEV);
	assert_string_equal(error,
		"eal.lcores: CPU 8 is not among those that this process may use (0-7): name one of "
		"them, or widen its cpuset");
	m.config.eal.pipeline.count = 0;
	m.config.eal.collector_cpu = 1023;
	place(&m);
	assert_int_equal(bs_placement_check(&m.placed, error), -ENODEV);
	assert_non_null(strstr(error, "eal.collector: CPU 1023 is not"));
}

static void
sets_of_cpus_are_told_as_ranges(void **state)
{
	cpu_set_t set;

	(void)state;
	CPU_ZERO(&set);
	assert_string_equal(bs_cpus_text(&set, text), "");
	CPU_SET(0, &set);
	CPU_SET(2, &set);
	CPU_SET(3, &set);
	CPU_SET(1022, &set);
	CPU_SET(1023, &set);
	assert_string_equal(bs_cpus_text(&set, text), "0,2-3,1022-1023");
	CPU_ZERO(&set);
	for (int cpu = 1; cpu < CPU_SETSIZE; cpu += 2)
		CPU_SET(cpu, &set);
	assert_string_equal(bs_cpus_text(&set, text) + strlen(text) - 10, ",1021,1023");
}

/* Of this machine, whatever it is: the kernel says the same of this process. */
static void
topology_is_that_of_this_machine(void **state)
{
	static struct bs_topology topology;
	static struct bs_config config = {.port_count = 1,
		.ports = {{.device = {"net_af_packet0,iface=lo"}, .device_count = 1}}};
	cpu_set_t mine;

	(void)state;
	assert_int_equal(bs_topology_read(&config, &topology), 0);
	assert_int_equal(sched_getaffinity(0, sizeof(mine), &mine), 0);
	assert_true(CPU_EQUAL(&mine, &topology.allowed));
	CPU_AND(&mine, &mine, &topology.possible);
	assert_true(CPU_EQUAL(&mine, &topology.allowed));
	assert_true(topology.node_count >= 1);
	assert_int_equal(topology.port_node[0], BS_NODE_NONE);
	assert_int_equal(bs_topology_device_node("ffff:ff:1f.7"), BS_NODE_NONE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_left_open_goes_to_the_node_of_the_ports),
		cmocka_unit_test(each_lcore_is_near_the_port_that_it_polls_first),
		cmocka_unit_test(ports_on_no_node_leave_all_on_one),
		cmocka_unit_test(a_node_without_cpus_for_us_is_said_to_be_so),
		cmocka_unit_test(named_cpus_stay_and_a_wrong_node_is_told),
		cmocka_unit_test(a_named_collector_is_alone_while_that_can_be),
		cmocka_unit_test(few_cpus_are_shared),
		cmocka_unit_test(a_cpu_that_is_not_there_is_refused_by_its_key),
		cmocka_unit_test(sets_of_cpus_are_told_as_ranges),
		cmocka_unit_test(topology_is_that_of_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
