# SPDX-License-Identifier: BSD-3-Clause
"""What happens beside the service, and the proof that the service did not feel it.

A Service is a redis behind bufscoped with a client that never pauses. A test
makes its fault, and then undisturbed() holds against each other what the client
saw, what bufscoped counted, and what the interfaces around it counted.
"""
import contextlib
import ctypes
import json
import os
import signal

import harness
import sandbox
from harness import SERVICE, expect, wait_for

RATE = 400
# No request may take longer. What is lost in TCP comes again after 0.2 s, but other tests may be at
# this machine's CPUs, so that only a request nobody answers is told apart by its time; packets that
# are lost are told by counting them.
SLOWEST_NS = 3_000_000_000
BEFORE_US = ("rx_missed", "rx_nombuf", "rx_errors")
# One request in ten, SETs, is told as an anomaly by this.
TELLING = [{"name": "kv", "address": SERVICE, "port": 6379, "protocol": "resp",
            "operations": [{"match": "SET", "slo": "1us"}]}]


def telling(slo):
    """Services of which SETs have that SLO."""
    return [{**TELLING[0], "operations": [{"match": "SET", "slo": slo}]}]


def link_packets(host, device):
    """Packets sent and received by an interface, as the kernel counts them."""
    inside = ("-n", host) if host else ()
    stats = json.loads(harness.run("ip", *inside, "-s", "-j", "link", "show", device))[0]["stats64"]
    return stats["tx"]["packets"], stats["rx"]["packets"]


class Service:
    """redis behind bufscoped, under steady load from begin() on."""

    def __init__(self, lab, environment=None, **changes):
        self.lab = lab
        lab.standard()
        self.redis = lab.redis()
        self.dataplane = lab.bufscoped(**{"services": TELLING, **changes})
        self.dataplane.environment = environment or {}
        self.dataplane.start()
        self.load = self.before = None

    def begin(self, *more):
        # Whatever the hosts had to say of themselves has arrived.
        self.before = self.around()
        wait_for("quiet cables", self.is_quiet, interval=0.05)
        self.load = self.lab.load("--address", SERVICE, "--rate", str(RATE), "--seconds", "60",
                                  "--warm", "100", *more)
        return self

    def around(self):
        """Packets on both cables, as their ends outside and bufscoped's ports count them: what the
        client sent and the wire port received, and so on."""
        ports = {port["port"]: port for port in self.dataplane.ask("status")["ports"]}
        client, server = link_packets("client", "e0"), link_packets("server", "e0")
        return {
            "client to wire": (client[0], ports["wire"]["rx_packets"]),
            "wire to client": (client[1], ports["wire"]["tx_packets"]),
            "server to local": (server[0], ports["local"]["rx_packets"]),
            "local to server": (server[1], ports["local"]["tx_packets"]),
        }

    def is_quiet(self):
        last, self.before = self.before, self.around()
        return self.before == last

    def on_the_way(self):
        """What one end of a cable sent and the other did not receive, since begin()."""
        missing = {}
        for name, (outside, port) in self.around().items():
            sent = outside - self.before[name][0]
            got = port - self.before[name][1]
            if sent != got:
                missing[name] = (sent, got)
        return missing

    def balance(self):
        """(in, out, {reason: packets}) if all that came in went out or has a reason, else None."""
        counters = self.dataplane.ask("counters")
        lost = {name: count for name, count in counters["dropped"].items()
                if count and name not in BEFORE_US}
        ins, outs = counters["rx_packets"], counters["tx_packets"]
        return (ins, outs, lost) if ins == outs + sum(lost.values()) + counters["queued"] else None

    def ended(self, slowest_ns=SLOWEST_NS):
        """Ends the load. All requests were answered, rightly, and each in time; returns them."""
        self.load.send(signal.SIGTERM)
        requests = self.load.requests()
        wrong = [one for one in requests if not one["ok"]]
        slowest = max(one["latency_ns"] for one in requests)
        print(f"       {len(requests)} requests sent and answered, {len(wrong)} wrong, slowest "
              f"{slowest / 1e6:.1f} ms")
        expect(len(requests) > 100, f"only {len(requests)} requests were made")
        expect(not wrong, f"{len(wrong)} values came back altered")
        expect(slowest < slowest_ns, f"a request took {slowest / 1e9:.1f} s")
        return requests

    def undisturbed(self, *reasons, cables=True):
        """ended(), and no packet was lost on the way: none for another reason than these."""
        requests = self.ended()
        ins, outs, lost = wait_for("the counters to balance", self.balance)
        print(f"       packets in {ins} = out {outs} + {lost or 'nothing'}; records lost: "
              f"{self.losses() or 'none'}")
        expect(set(lost) <= set(reasons), f"packets were dropped: {lost}")
        for name in BEFORE_US:
            count = self.dataplane.counter(name)
            expect(count == 0, f"{name}: {count} packets lost before bufscoped")
        if cables:
            wait_for(f"packets on the way: {self.on_the_way()}", lambda: not self.on_the_way(), 5)
        return requests

    def losses(self):
        """Records lost, by why."""
        lost = self.dataplane.ask("counters")["records"]["lost"]
        return {name: count for name, count in lost.items() if count}

    # What it says of itself

    def status(self):
        return self.dataplane.ask("status")

    def analyzer(self):
        return self.status()["analyzer"]

    def explains(self, *words):
        """`bufscope status` has a line with all of these words; waits for it."""
        def said():
            done = self.dataplane.cli("status")
            return done.returncode == 0 and any(
                all(word in line for word in words) for line in done.stdout.splitlines())
        wait_for(f"bufscope status to speak of {words}", said, interval=0.1)

    def silent_about(self, *words):
        """... has none any more."""
        wait_for(f"bufscope status to speak no more of {words}", lambda: not any(
            all(word in line for word in words)
            for line in self.dataplane.text("status").splitlines()), interval=0.1)

    def now(self):
        """bufscoped's clock."""
        return int(self.status()["t_now"])

    def judges(self, by="slo"):
        """Verdicts are made: an anomaly by that of a request that begins from now on."""
        after = self.now()

        def newest():
            return next((rpc for rpc in self.dataplane.ask("anomalies", "0")["anomalies"]
                         if by in rpc["anomalous_by"] and int(rpc["t_request_first"]) > after), None)
        return wait_for("a verdict", newest, 15, 0.05)

    def reload(self, **changes):
        """The configuration as it was started with, and these changes; SIGHUP."""
        path = self.lab.path(f"{self.dataplane.prefix}.json")
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        self.dataplane.write(harness.merged(config, changes))
        self.dataplane.process.send(signal.SIGHUP)


@contextlib.contextmanager
def driver(name):
    """With that driver, and no other."""
    before = os.environ.get("BUFSCOPE_DRIVER")
    os.environ["BUFSCOPE_DRIVER"] = name
    try:
        yield
    finally:
        del os.environ["BUFSCOPE_DRIVER"]
        if before:
            os.environ["BUFSCOPE_DRIVER"] = before


PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
WALL = 0x40000000


class Held:
    """One thread of a process gets no CPU while in here; the others do not notice.

    It is what a starved thread looks like, without taking the CPU from anybody.
    """

    def __init__(self, tid):
        self.tid = tid

    def call(self, request):
        ptrace = sandbox.libc.ptrace
        ptrace.restype = ctypes.c_long
        ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
        if ptrace(request, self.tid, None, None) != 0:
            errno = ctypes.get_errno()
            raise OSError(errno, f"ptrace: {os.strerror(errno)}")

    def __enter__(self):
        try:
            self.call(PTRACE_SEIZE)
        except PermissionError as why:
            raise harness.Skip(f"threads cannot be held here: {why}") from why
        self.call(PTRACE_INTERRUPT)
        os.waitpid(self.tid, WALL)
        return self

    def __exit__(self, *unused):
        self.call(PTRACE_DETACH)


def thread_named(pid, name):
    """The number of a process's thread of that name."""
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/comm", encoding="ascii") as comm:
            if comm.read().strip() == name:
                return int(tid)
    raise harness.Failure(f"no thread {name}")
