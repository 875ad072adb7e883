# SPDX-License-Identifier: BSD-3-Clause
"""An analyzer that dies, stops, lies or floods costs verdicts and records; no packet."""
import os
import signal
import socket
import struct

import harness
from faults import Service, telling
from harness import expect, program, wait_for
from processes import analyzers

UNIT, BATCH_MAX = 64, 32768
RPC, SEGMENT, EVENT, THRESHOLD, VERDICT, INCIDENT = 5, 6, 7, 12, 13, 14
UNITS = {RPC: 6, SEGMENT: 1, EVENT: 2, THRESHOLD: 1, VERDICT: 3, INCIDENT: 4}
FIRST_OWN = 32
HOUR_NS = 3600 * 10**9


def killed_analyzer_is_restarted_and_judges_again(lab):
    service = Service(lab).begin()
    service.judges()
    pid = wait_for("the analyzer", analyzers)[0]
    before = service.analyzer()["restarts"]
    os.kill(pid, signal.SIGKILL)
    wait_for("another analyzer", lambda: [one for one in analyzers() if one != pid])
    wait_for("it to be connected", lambda: service.analyzer()["restarts"] == before + 1 and
             service.analyzer()["connected"])
    service.judges()
    service.undisturbed()


def killed_spawner_takes_the_analyzer_with_it(lab):
    """Nobody starts another one then; that is said, and the service does not notice."""
    service = Service(lab).begin()
    service.judges()
    spawners = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and
                name_and_parent(pid) == ("bufscope-spawn", service.dataplane.process.pid)]
    expect(len(spawners) == 1, f"spawners: {spawners}")
    os.kill(spawners[0], signal.SIGKILL)
    service.explains("not connected", "restart bufscoped")
    wait_for("the analyzer to go", lambda: not analyzers())
    service.undisturbed()
    service.dataplane.stop()


def name_and_parent(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            name, _, rest = file.read().rpartition(")")
        return name.partition("(")[2], int(rest.split()[1])
    except OSError:
        return None


def stopped_analyzer_loses_nothing(lab):
    """Records wait for it, and SLOs that were told while it stood still are those it judges by."""
    service = Service(lab, services=telling("10s")).begin()
    pid = wait_for("the analyzer", analyzers)[0]
    wait_for("it to be connected", lambda: service.analyzer()["connected"])
    os.kill(pid, signal.SIGSTOP)
    try:
        service.explains("has read no records for")
        service.reload(services=telling("1us"))
        service.dataplane.process.wait_for("the reload", lambda: "bufscoped: reloaded" in
                                           service.dataplane.process.output())
    finally:
        os.kill(pid, signal.SIGCONT)
    service.judges()
    service.silent_about("has read no records for")
    expect(service.analyzer()["restarts"] == 0, "the analyzer was restarted")
    expect(not service.losses(), f"records lost: {service.losses()}")
    service.undisturbed()


class Fake:
    """Something that calls itself an analyzer."""

    def __init__(self, service):
        self.service = service
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(5)
        self.sock.connect(f"/run/dpdk/{service.dataplane.prefix}/analyzer.sock")
        wait_for("it to be taken", lambda: service.analyzer()["connected"])

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.sock.close()

    def send(self, data):
        """False: it was not taken."""
        try:
            self.sock.send(data, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        return True

    def group(self):
        """Of what bufscoped tells, the next RPC with its segments and events."""
        while True:
            batch = self.sock.recv(BATCH_MAX)
            at = 0
            while at < len(batch):
                kind, units = batch[at], batch[at + 1]
                if kind == RPC:
                    segments, events = struct.unpack_from("=HH", batch, at + 230)
                    count = UNITS[RPC] + segments * UNITS[SEGMENT] + events * UNITS[EVENT]
                    return batch[at:at + count * UNIT]
                at += units * UNIT


def external(lab):
    return Service(lab, analyzer={"mode": "external"}).begin()


def real_one_judges(service):
    """After a fake one, the real one works as if nothing had been."""
    wait_for("the fake to be gone", lambda: not service.analyzer()["connected"])
    service.explains("not connected")
    service.lab.start("analyzer", [program("bufscope-analyzer"), "--socket",
                                   f"/run/dpdk/{service.dataplane.prefix}/analyzer.sock"])
    service.judges()


def flood_of_garbage_is_counted(lab):
    service = external(lab)
    sent = 0
    blocks = [os.urandom(size) for size in (1, 63, 64, 512, 4096, BATCH_MAX, 2 * BATCH_MAX)]
    # A right head with nonsense behind it, an unknown type, units of none and too many.
    blocks += [bytes((kind, units)) + os.urandom(units * UNIT - 2 if units else 62)
               for kind, units in ((VERDICT, 3), (INCIDENT, 4), (RPC, 6), (200, 1), (0, 0), (13, 8))]
    with Fake(service) as fake:
        end = service.now() + 2 * 10**9
        while service.now() < end:
            for _ in range(500):
                sent += fake.send(blocks[sent % len(blocks)])
        status = service.analyzer()
        print(f"       {sent} batches of garbage taken; bad_records {status['bad_records']}, "
              f"rejected {status['rejected']}")
        expect(status["bad_records"] > 0, "no bad record was counted")
        service.explains("of its records did not make sense")
    expect(not service.dataplane.anomalies(), "garbage became a verdict")
    real_one_judges(service)
    service.undisturbed()


def one_that_never_reads_costs_records_only(lab):
    service = external(lab)
    with Fake(service):
        service.explains("has read no records for")
    service.explains("records lost: there was no analyzer to take them")
    real_one_judges(service)
    service.undisturbed()


def ones_that_come_and_go_are_replaced(lab):
    """Each takes the place of the one before; the last one works."""
    service = external(lab)
    fakes = []
    for _ in range(40):
        fakes.append(Fake(service))
    for fake in fakes[::2]:
        fake.sock.close()
    for fake in fakes[1:-1:2]:
        expect(ended(fake), "an analyzer that was replaced is still served")
    fakes[-1].sock.close()
    real_one_judges(service)
    service.undisturbed()


def ended(fake):
    """Reads to the end of what was sent; True if there is an end."""
    try:
        while fake.sock.recv(BATCH_MAX):
            pass
    except TimeoutError:
        return False
    return True


def put(record, at, layout, *values):
    out = bytearray(record)
    struct.pack_into(f"={layout}", out, at, *values)
    return bytes(out)


def record(kind):
    return bytes((kind, UNITS[kind])) + bytes(UNITS[kind] * UNIT - 2)


def verdict_on(rpc):
    """Anomalous by its SLO, with no root cause."""
    out = put(record(VERDICT), 8, "Q", struct.unpack_from("=Q", rpc, 8)[0])
    return put(out, 58, "B", 1)


def impossible(rpc):
    """Records that are well-formed, on things that cannot be: name, batch."""
    verdict = verdict_on(rpc)
    t_end = struct.unpack_from("=Q", rpc, 128)[0]
    incident = put(record(INCIDENT), 16, "QQ", t_end, t_end)
    return {
        "a threshold of no service": put(record(THRESHOLD), 16, "H", 200),
        "an incident in no buffer": put(incident, 40, "H", FIRST_OWN + 700),
        "an incident of tomorrow": put(incident, 16, "QQ", t_end, t_end + 24 * HOUR_NS),
        "an incident with more victims in a service than in all":
            put(put(incident, 51, "B", 1), 60, "I", 7),
        "a verdict on another RPC": put(verdict, 8, "Q", 12345) + rpc,
        "a verdict with a root in no buffer":
            put(put(verdict, 61, "B", 1), 64, "H", FIRST_OWN + 700) + rpc,
        "a verdict with more excess than time": put(verdict, 32, "Q", HOUR_NS) + rpc,
        "a verdict on no service": verdict + put(rpc, 234, "H", 99),
        "a verdict on what ends tomorrow": verdict + put(rpc, 128, "Q", t_end + 24 * HOUR_NS),
        "a verdict on what ended long ago": verdict + put(
            rpc, 72, "8Q", *(max(0, t - 24 * HOUR_NS)
                             for t in struct.unpack_from("=8Q", rpc, 72))),
        "a verdict on segments that leave a gap": verdict + put(rpc, UNITS[RPC] * UNIT + 16, "Q", 1),
    }


def records_about_impossible_things_are_rejected(lab):
    service = external(lab)
    with Fake(service) as fake:
        rpc = fake.group()
        for number, (name, batch) in enumerate(impossible(rpc).items(), 1):
            expect(fake.send(batch), f"{name} was not taken")
            wait_for(f"{name} to be rejected", lambda: service.analyzer()["rejected"] == number, 5)
            expect(service.analyzer()["bad_records"] == 0, f"{name} is malformed")
        expect(not service.dataplane.anomalies() and not service.dataplane.incidents(),
               "what cannot be was believed")
        service.explains("of its records are about services, buffers or times that cannot be")
        # The same without a lie is believed.
        expect(fake.send(verdict_on(rpc) + rpc), "a verdict was not taken")
        wait_for("a right verdict to be believed", lambda: len(service.dataplane.anomalies()) == 1)
    real_one_judges(service)
    service.undisturbed()


harness.main(killed_analyzer_is_restarted_and_judges_again,
             killed_spawner_takes_the_analyzer_with_it, stopped_analyzer_loses_nothing,
             flood_of_garbage_is_counted, one_that_never_reads_costs_records_only,
             ones_that_come_and_go_are_replaced, records_about_impossible_things_are_rejected)
