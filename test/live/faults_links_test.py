# SPDX-License-Identifier: BSD-3-Clause
"""Interfaces that go down and come up again while a client asks: what is lost meanwhile TCP sends
again, and all goes on by itself."""
import os

import harness
from faults import Service, driver
from harness import expect, hold, run, wait_for

DOWN_S = 0.5
PATIENCE_NS = 20_000_000_000


def set_link(host, device, state):
    run("ip", *(("-n", host) if host else ()), "link", "set", device, state)


def port(service, name):
    return next(one for one in service.status()["ports"] if one["port"] == name)


def lcore_seconds(service):
    """CPU time of the pipeline's thread: proc(5), fields 14 and 15."""
    pid = service.dataplane.process.pid
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/stat", encoding="ascii") as file:
            before, _, fields = file.read().rpartition(")")
        if before.endswith("(rte-worker-1"):
            fields = fields.split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    raise harness.Failure("no thread of the pipeline")


def interfaces_go_down_and_come_up(lab):
    """Of the peers, and our own ends of the cables."""
    service = Service(lab).begin()
    for host, device, name in (("client", "e0", "wire"), ("server", "e0", "local"),
                               (None, "bs-wire", "wire"), (None, "bs-local", "local")):
        expect(port(service, name)["link_up"], f"{name} is down before")
        set_link(host, device, "down")
        service.explains(name, "the link is down")
        hold(DOWN_S)
        set_link(host, device, "up")
        service.silent_about(name, "the link is down")
        seen = service.dataplane.counter("rx_packets")
        wait_for(f"traffic after {device} of {host or 'bufscoped'} was down",
                 lambda: service.dataplane.counter("rx_packets") > seen + 200)
        service.judges()
    service.ended(PATIENCE_NS)
    ins, outs, lost = wait_for("the counters to balance", service.balance)
    print(f"       packets in {ins} = out {outs} + {lost or 'nothing'}")
    for state in ("up", "down"):
        set_link(None, "bs-local", state)
        before = lcore_seconds(service)
        hold(1)
        busy = lcore_seconds(service) - before
        print(f"       {state}, without traffic, the pipeline takes {busy:.0%} of a CPU")
        expect(busy < 0.25, f"{state}, without traffic, the pipeline takes {busy:.0%} of a CPU")
    service.dataplane.stop()


def interfaces_go_down_over_af_packet(lab):
    with driver("af_packet"):
        interfaces_go_down_and_come_up(lab)


harness.main(interfaces_go_down_and_come_up, interfaces_go_down_over_af_packet)
