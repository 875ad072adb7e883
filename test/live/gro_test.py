# SPDX-License-Identifier: BSD-3-Clause
"""What a receiver that does not know shims loses with `always`: GRO.

Its kernel merges segments whose options are the same, and a shim is not. Printed are bytes a
buffer handed to TCP, acknowledgements sent, and CPU time of the whole machine, which is no test.
"""
import os

import files
import harness
from harness import SERVICE, expect, run, wait_for

SIZE = 100_000_000
# veth calls the receiver for each frame; a NIC gathers them for about so long.
GATHER_NS = 50_000


def tcp_counters(host):
    """Of /proc/net/snmp: InSegs counts what GRO has made of segments once."""
    lines = [line.split() for line in run("ip", "netns", "exec", host, "cat",
                                          "/proc/net/snmp").splitlines() if line.startswith("Tcp:")]
    return dict(zip(lines[0][1:], map(int, lines[1][1:])))


def busy_ns():
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq = map(int, file.readline().split()[1:8])
    return (user + nice + system + irq + softirq) * 10**9 // os.sysconf("SC_CLK_TCK")


def bytes_a_buffer(lab, tag):
    """Downloads with GRO at the client."""
    lab.standard()
    run("ethtool", "-K", "bs-wire", "tso", "off")  # or veth hands frames on without GRO
    run("ip", "netns", "exec", "client", "ethtool", "-K", "e0", "gro", "on")
    run("ip", "netns", "exec", "client", "sh", "-c",
        f"echo {GATHER_NS} > /sys/class/net/e0/gro_flush_timeout")
    lab.bufscoped(shim={"tag": tag}, services=files.WEB).start()
    lab.nginx()
    wait_for("the path to stand", lambda: lab.reachable("client", SERVICE, 80))
    sent = files.make_file(lab.path("www/down"), SIZE)
    before, cpu = tcp_counters("client"), busy_ns()
    got = files.get(lab.connect("client", SERVICE, 80, 60), "/down")
    after, cpu = tcp_counters("client"), busy_ns() - cpu
    expect(got == sent, "what the client received is not what the service has")
    buffers = after["InSegs"] - before["InSegs"]
    print(f"       {tag}: {SIZE // buffers} bytes a buffer, "
          f"{after['OutSegs'] - before['OutSegs']} acknowledgements, {cpu / SIZE:.1f} ns a byte")
    return SIZE // buffers


def untagged_segments_are_merged(lab):
    expect(bytes_a_buffer(lab, "off") > 5 * 1448, "GRO does nothing here: nothing is shown")


def segments_with_different_shims_are_not(lab):
    expect(bytes_a_buffer(lab, "always") <= 1448, "they are")


harness.main(untagged_segments_are_merged, segments_with_different_shims_are_not)
