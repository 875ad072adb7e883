# SPDX-License-Identifier: BSD-3-Clause
"""The analyzer dies or stops: the service loses no packet by it."""
import os
import signal

import harness
from harness import SERVICE, expect, wait_for
from processes import analyzers


def connected(dataplane):
    return dataplane.ask("status")["analyzer"]["connected"]


def restarts(dataplane):
    return dataplane.ask("status")["analyzer"]["restarts"]


def nothing_lost(dataplane, load):
    requests = load.requests()
    expect(len(requests) == 1500, f"{len(requests)} of 1500 requests were answered")
    expect(all(one["ok"] for one in requests), "a value came back altered")
    for reason in ("app_queue_full", "handover_full", "tx_refused"):
        expect(dataplane.counter(reason) == 0, f"{reason}: {dataplane.counter(reason)}")


def begin(lab):
    lab.standard()
    lab.redis()
    dataplane = lab.bufscoped().start()
    pid = wait_for("the analyzer", analyzers)[0]
    wait_for("the analyzer to be connected", lambda: connected(dataplane))
    load = lab.load("--address", SERVICE, "--rate", "500", "--seconds", "3", "--warm", "100")
    return dataplane, load, pid


def killed_analyzer_is_restarted(lab):
    dataplane, load, pid = begin(lab)
    before = restarts(dataplane)
    os.kill(pid, signal.SIGKILL)
    wait_for("another analyzer", lambda: [one for one in analyzers() if one != pid])
    wait_for("it to be connected", lambda: connected(dataplane))
    expect(restarts(dataplane) == before + 1, f"restarts is {restarts(dataplane)}")
    nothing_lost(dataplane, load)


def stopped_analyzer_costs_records_only(lab):
    dataplane, load, pid = begin(lab)
    os.kill(pid, signal.SIGSTOP)
    nothing_lost(dataplane, load)
    os.kill(pid, signal.SIGCONT)
    expect(restarts(dataplane) == 0, "the analyzer was restarted")
    wait_for("it to be connected", lambda: connected(dataplane))


harness.main(killed_analyzer_is_restarted, stopped_analyzer_costs_records_only)
