# SPDX-License-Identifier: BSD-3-Clause
"""Threads of bufscoped that get no CPU while traffic flows, and a wall clock that is set.

A thread is held with ptrace: nothing else can be told from one whose CPU others
have, and the others keep theirs.
"""
import os
import signal
import struct
import subprocess
import time

import harness
import verdicts
from faults import Held, SLOWEST_NS, Service, thread_named
from harness import expect, hold, program, wait_for
from verdicts import MS

HOUR = 3600
STOP_S = 0.2


def pipeline(service):
    return service.dataplane.ask("lcores")["lcores"][0]


def worker(service, number):
    return thread_named(service.dataplane.process.pid, f"rte-worker-{number}")


def starved_collector_costs_records_only(lab):
    """Each request is told in full here, so that its ring fills soon."""
    all_told = [{"name": "kv", "address": harness.SERVICE, "port": 6379, "protocol": "resp",
                 "slo": "1us"}]
    service = Service(lab, services=all_told).begin("--rate", "2000")
    service.judges()
    with Held(worker(service, pipeline(service)["lcore"] + 1)):
        service.explains("collector", "has not come round")
        wait_for("records to be lost", lambda: service.losses().get("ring_full", 0) > 0)
        service.explains("an lcore's record ring was full")
    service.silent_about("has not come round")
    service.judges()
    service.undisturbed()
    expect(set(service.losses()) <= {"ring_full", "over_budget", "socket_full"}, "lost otherwise")


def starved_main_thread_stops_no_packet(lab):
    service = Service(lab).begin()
    service.judges()
    with Held(service.dataplane.process.pid):
        asked = subprocess.Popen(
            [program("bufscope"), "status", "--file-prefix", service.dataplane.prefix], text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        seen = told(service)
        wait_for("traffic, as telemetry's own thread tells", lambda: told(service) > seen + 500)
        service.dataplane.process.send(signal.SIGHUP)
        out, error = asked.communicate(timeout=20)
        expect(asked.returncode == 1 and error.count("\n") == 1, f"{asked.returncode}: {error}")
        expect("main thread" in error, f"bufscope status does not say why: {error} {out}")
    service.dataplane.process.wait_for("the reload", lambda: "bufscoped: reloaded" in
                                       service.dataplane.process.output())
    service.judges()
    service.undisturbed()


def told(service):
    """Packets in, from DPDK's telemetry."""
    return service.dataplane.telemetry("/bufscope/counters")["/bufscope/counters"]["rx_packets"]


def starved_pipeline_delays_but_loses_nothing(lab):
    service = Service(lab).begin()
    service.judges()
    with Held(worker(service, pipeline(service)["lcore"])):
        service.explains("pipeline", "has not come round")
        hold(0.3)
    service.silent_about("has not come round")
    service.judges("evidence")
    service.undisturbed()


def wall_clock_that_is_set_moves_no_verdict(lab):
    library = os.path.join(harness.BUILD, "test/live/wall_clock.so")
    expect(os.path.exists(library), f"{library} is not built")
    ahead = lab.path("wall_clock")

    def set_clock(seconds):
        with open(ahead, "r+b" if os.path.exists(ahead) else "wb") as file:
            file.write(struct.pack("=q", seconds))

    set_clock(0)
    service = Service(lab, environment={
        "LD_PRELOAD": library, "WALL_CLOCK": ahead,
        "ASAN_OPTIONS": f"{os.environ.get('ASAN_OPTIONS', '')}:verify_asan_link_order=0"}).begin()
    service.judges()
    stops = []
    for steps, (seconds, word) in enumerate(((HOUR, "ahead"), (-HOUR, "behind"), (0, None)), 1):
        set_clock(seconds)
        wait_for("the step to be counted",
                 lambda: service.status()["clock"]["wall_steps"] == steps, 10)
        if word:
            service.explains("the wall clock was set", word)
        offset = service.status()["clock"]["wall_offset_ns"]
        expect(abs(offset - seconds * 10**9) < 10**9, f"wall_offset_ns is {offset}")
        stops.append(stop_redis(service))
    service.silent_about("the wall clock was set")
    requests = service.undisturbed()
    anomalies = service.dataplane.anomalies()
    for begin, end in stops:
        are_right(requests, anomalies, begin, end)


def stop_redis(service):
    """For a while, on the clock of the load client."""
    begin = time.time_ns()
    service.redis.send(signal.SIGSTOP)
    hold(STOP_S)
    end = time.time_ns()
    service.redis.send(signal.SIGCONT)
    service.judges()
    return begin, end


def are_right(requests, anomalies, begin, end):
    """Who was held up is told, with the time that it took; all on the clock before the steps."""
    hit = verdicts.hits(requests, begin, end, int(STOP_S * 1e9 / 2))
    pairs = verdicts.match(hit, verdicts.within(anomalies, begin, end), 20 * MS)
    found = [(request, rpc) for request, rpc in pairs if rpc]
    expect(len(found) >= max(1, len(hit) // 2), f"{len(found)} of {len(hit)} held up are told")
    for request, rpc in found:
        took = request["t_done"] - request["t_send"]
        expect(abs(rpc["latency_ns"] - took) < 100 * MS,
               f"{rpc['latency_ns'] / 1e6} ms told of {took / 1e6} ms")
    print(f"       {len(found)} of {len(hit)} requests held up for {STOP_S} s are told, for the "
          "right time")


harness.main(starved_collector_costs_records_only, starved_main_thread_stops_no_packet,
             starved_pipeline_delays_but_loses_nothing, wall_clock_that_is_set_moves_no_verdict)
