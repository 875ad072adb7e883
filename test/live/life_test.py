# SPDX-License-Identifier: BSD-3-Clause
"""The life of bufscoped around a service: idle, service down, the end."""
import json
import os
import re
import statistics
import subprocess

import harness
import processes
from harness import SERVICE, expect, hold, wait_for

LOST = ("runt", "bad_chain", "handover_full", "app_queue_full", "tx_refused", "tx_prepare_failed",
        "shutdown", "fault_injected", "vlan_not_restored", "tx_too_long")


def cpu_seconds(pid):
    """User and system time of a process so far: proc(5), fields 14 and 15."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def median_latency(load):
    return statistics.median(one["latency_ns"] for one in load.requests())


def added_latency(lab, attempt):
    """What the median of rare requests takes longer through bufscoped than without it."""
    rare = ("--address", SERVICE, "--connections", "1", "--rate", "40", "--seconds", "0.5")
    direct = median_latency(lab.load(*rare, host="server", name=f"direct{attempt}"))
    return median_latency(lab.load(*rare, name=f"through{attempt}")) - direct


def idle_costs_little_and_adds_little(lab):
    """Under 5 % of a CPU without traffic; under 1 ms in the median for a request then."""
    lab.standard()
    lab.redis()
    dataplane = lab.bufscoped().start()
    wait_for("the path to stand", lambda: lab.reachable("client", SERVICE, 6379))
    before = cpu_seconds(dataplane.process.pid)
    hold(3)
    busy = (cpu_seconds(dataplane.process.pid) - before) / 3
    expect(busy < 0.05, f"idle, it takes {busy:.1%} of a CPU")
    # Who else uses this machine may add more, but not each time.
    added = [added_latency(lab, attempt) for attempt in range(3)]
    print(f"idle: {busy:.1%} of a CPU; it adds {', '.join(f'{ns / 1e6:.3f}' for ns in added)} ms")
    expect(min(added) < 1_000_000, f"it adds {min(added) / 1e6:.3f} ms")


def cpus_of_threads(pid):
    """For each thread of a process: its name, and the CPUs that it may run on."""
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status", encoding="ascii") as file:
            fields = dict(line.rstrip("\n").split(":\t", 1) for line in file)
        found.append((fields["Name"], fields["Cpus_allowed_list"]))
    return found


def threads_run_where_the_check_says(lab):
    """The pipeline on its CPU, and every other thread and the analyzer off it, if there is one."""
    lab.standard()
    dataplane = lab.bufscoped().start()
    pid = dataplane.process.pid
    path = dataplane.write(dataplane.config())
    plan = json.loads(subprocess.run([harness.program("bufscope"), "check", "--json", path],
                                     check=True, capture_output=True, text=True).stdout)
    planned = {thread["thread"]: thread["cpus"] for thread in plan["threads"]}
    expect(planned["pipeline"] == str(max(os.sched_getaffinity(0))), f"planned: {planned}")
    if len(os.sched_getaffinity(0)) > 1:
        expect(planned["main"] != planned["pipeline"], f"planned: {planned}")
    found = cpus_of_threads(pid)
    pipeline = [cpus for name, cpus in found if name.endswith("worker-1")]
    expect(pipeline == [planned["pipeline"]], f"planned {planned}, found {found}")
    wait_for("an analyzer", lambda: processes.children(processes.children(pid)[0]))
    spawner = processes.children(pid)[0]
    for other in (spawner, *processes.children(spawner)):
        found += cpus_of_threads(other)
    wrong = [one for one in found if not one[0].endswith("worker-1") and one[1] != planned["main"]]
    expect(not wrong, f"planned {planned}, found {wrong}")


def service_down_is_refused_by_its_host(lab):
    """A refused connection passes as such; nothing hangs."""
    lab.standard()
    dataplane = lab.bufscoped().start()
    try:
        lab.connect("client", SERVICE, 6379, timeout=5)
    except ConnectionRefusedError:
        pass
    else:
        raise harness.Failure("a service that is down was reached")
    expect(dataplane.answers(), "bufscoped does not answer")
    lab.redis()
    expect(lab.reachable("client", SERVICE, 6379), "the service is not reached once it is up")


def packets_in_are_packets_out_and_reasons(lab):
    """What came in went out or has one named reason, before and after SIGTERM."""
    lab.standard()
    lab.redis()
    # A small queue behind a slow link, so that there are reasons to count.
    dataplane = lab.bufscoped(app_queue={"size": 64}, ports={"wire": {"rate": 20_000_000}}).start()
    load = lab.load("--address", SERVICE, "--connections", "8", "--rate", "16", "--burst", "8",
                    "--seconds", "2", "--size", "65536", "--sets", "2", "--keys", "8")
    expect(all(one["ok"] for one in load.requests()), "a value came back altered")

    def balanced():
        counters = dataplane.ask("counters")
        ports = {port["port"]: port for port in counters["ports"]}
        for one, other in (("wire", "local"), ("local", "wire")):
            port = ports[one]
            ended = sum(port["dropped"][name] for name in LOST)
            if (port["rx_packets"] != ports[other]["tx_packets"] + port["queued"] + ended or
                    port["unaccounted"] != 0 or ended != port["ended"]):
                return False
        ended = sum(counters["dropped"][name] for name in LOST)
        return (counters["rx_packets"] == counters["tx_packets"] + counters["queued"] + ended and
                counters["unaccounted"] == 0)

    wait_for("the counters to balance", balanced)
    expect(dataplane.counter("app_queue_full") > 0, "nothing was dropped: nothing is shown")
    output = dataplane.stop()
    sums = [0, 0, 0]
    for port in ("wire", "local"):
        line = re.search(rf"^port {port}: packets in (\d+) = forwarded (\d+) \+ dropped (\d+) \+ "
                         r"queued 0 \+ unaccounted 0$", output, flags=re.M)
        expect(line, f"SIGTERM printed no balance of {port}: {output[-500:]}")
        counts = list(map(int, line.groups()))
        reasons = sum(int(count) for count in
                      re.findall(rf"^port {port}: (?:{'|'.join(LOST)}) (\d+)$", output, flags=re.M))
        expect(counts[0] == counts[1] + counts[2] and counts[2] == reasons,
               f"{port}: {counts} and {reasons} by reason")
        sums = [total + count for total, count in zip(sums, counts)]
    last = re.search(r"^packets in (\d+) = out (\d+) \+ dropped (\d+) \+ queued 0 \+ "
                     r"unaccounted 0$", output, flags=re.M)
    expect(last, f"SIGTERM printed no balance: {output[-500:]}")
    expect(list(map(int, last.groups())) == sums and min(sums) > 0, f"{last[0]}, of ports {sums}")


def telemetry_is_readable(lab):
    """DPDK's own socket answers, within what its library can say."""
    lab.standard()
    lab.redis()
    dataplane = lab.bufscoped().start()
    lab.load("--address", SERVICE, "--rate", "100", "--seconds", "1").requests()
    for command in ("status", "chain", "services", "anomalies", "incidents", "counters", "lcores"):
        answer = dataplane.telemetry(f"/bufscope/{command}")[f"/bufscope/{command}"]
        expect(isinstance(answer, dict) and answer, f"/bufscope/{command} says {answer}")
    services = dataplane.telemetry("/bufscope/services")
    expect(100 in harness.find(services, "answered"), f"not 100 RPCs answered: {services}")
    refused = dataplane.telemetry("/bufscope/fault,stall,20ms")["/bufscope/fault"]
    expect(refused is None or "refused" in str(refused), f"a fault was not refused: {refused}")


def command_line_says_what_the_socket_says(lab):
    """Each live command of bufscope, as text and as JSON."""
    lab.standard()
    lab.redis()
    dataplane = lab.bufscoped().start()
    lab.load("--address", SERVICE, "--rate", "100", "--seconds", "1").requests()
    for command in ("status", "chain", "services", "anomalies", "incidents", "counters"):
        text = dataplane.text(command)
        expect(text.strip(), f"bufscope {command} says nothing")
        answer = json.loads(dataplane.text(command, "--json"))
        expect(isinstance(answer, dict), f"bufscope {command} --json says {answer}")
    services = json.loads(dataplane.text("services", "--json"))
    expect(100 in harness.find(services, "answered"), f"not 100 RPCs answered: {services}")
    expect("kv.app.in" in dataplane.text("chain"), "the chain lacks kv.app.in")
    absent = dataplane.cli("explain", "0000000000000000")
    expect(absent.returncode == 1 and absent.stderr.count("\n") == 1,
           f"an RPC that is not there: {absent.returncode}, {absent.stderr!r}")


harness.main(idle_costs_little_and_adds_little, threads_run_where_the_check_says,
             service_down_is_refused_by_its_host,
             packets_in_are_packets_out_and_reasons, telemetry_is_readable,
             command_line_says_what_the_socket_says)
