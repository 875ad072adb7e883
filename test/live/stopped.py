# SPDX-License-Identifier: BSD-3-Clause
"""A service stopped for a while under calls of several connections, and the verdict on it."""
import os
import signal
import threading
import time

import verdicts
from harness import Failure, hold, wait_for
from verdicts import MS

CONNECTIONS, INTERVAL_S, WARM = 4, 0.004, 200
STOP_S = 0.2
SLACK_NS = 20 * MS
HANG, COMPUTE = ("service", "hang"), ("service", "compute")
# Waiting for the call of another connection, or for an earlier one of its own.
BEHIND = [("service", "congestion"), ("service", "contention")]


class Callers:
    """Threads that call in turn: each has a connection, and one call open at a time."""

    def __init__(self, clients, call):
        """call(client) makes one call and returns {"client", "t_send", "t_done"}."""
        self.log, self.failures = [], []
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(one, call), daemon=True)
                        for one in clients]
        for thread in self.threads:
            thread.start()

    def run(self, client, call):
        try:
            while not self.ended.wait(INTERVAL_S):
                self.log.append(call(client))
        except (OSError, Failure) as why:
            self.failures.append(why)

    def end(self):
        """What was called."""
        self.ended.set()
        for thread in self.threads:
            thread.join(10)
        if self.failures:
            raise Failure(f"calls failed: {self.failures[:3]}")
        return self.log


def is_blamed(dataplane, service, label, process, clients, call, probed):
    """Stops the process while these call; Failure unless the service is blamed for all that were
    hit, for the right time. Without the probe packets alone tell: then what met the stop has
    hung or computed, and what came later may have waited for that."""
    callers = Callers(clients, call)
    wait_for("calls", lambda: len(callers.log) >= WARM)
    begin = time.time_ns()
    process.send(signal.SIGSTOP)
    hold(STOP_S)
    end = time.time_ns()
    process.send(signal.SIGCONT)
    seen = len(callers.log) + len(clients)
    wait_for("calls after the stop", lambda: len(callers.log) >= seen + 20)
    hit = verdicts.hits(callers.end(), begin, end, int(STOP_S * 1e9 / 2))
    deadline = time.monotonic() + 3

    def look():
        rpcs = verdicts.within(dataplane.anomalies(), begin, end)
        pairs = verdicts.match(hit, rpcs, SLACK_NS)
        return pairs if all(rpc for _, rpc in pairs) or time.monotonic() > deadline else None

    pairs = wait_for("anomalies", look, 10, 0.1)
    found = [rpc for _, rpc in pairs if rpc]
    either = [{HANG}] if probed else [{HANG}, {HANG, COMPUTE}]
    accepted = either + [{one} for one in BEHIND]
    if not probed:
        accepted += [{one, HANG} for one in BEHIND]
    verdict = verdicts.Verdict()
    verdict.demand(len(hit) == len(clients), f"{len(hit)} calls of {len(clients)} clients were hit")
    verdict.found(pairs, 1)
    verdict.blame(found, accepted, "calls that were hit", 1)
    verdict.demand(any(verdicts.causes(rpc) in either for rpc in found), "nobody met the stop")
    verdict.origin(found, dataplane.incidents(), [HANG] if probed else [HANG, COMPUTE],
                   "calls that were hit", 1)
    for request, rpc in pairs:
        if rpc is None:
            continue
        verdict.demand((rpc["service"], rpc["label"]) == (service, label),
                       f"hit was {rpc['label']} of {rpc['service']}")
        verdict.time(rpc, {HANG, COMPUTE, *BEHIND}, verdicts.overlap_ns(request, begin, end),
                     20 * MS, "a call that was hit")
    if not verdict.right:
        raise Failure("; ".join(verdict.complaints))


def pid_file(lab, process):
    """A pid file for the probe."""
    path = lab.path(f"{process.name}.pid_file")
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{process.pid}\n")
    os.chmod(path, 0o644)
    return path
