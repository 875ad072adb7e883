#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Replays the captures of test/data, and holds the output against what is known otherwise.

usage: data_test.py BUFSCOPE

NAME.truth.json has the client's own log, and what was done to which request. An
RPC must lie within the client's send and receive, and be seen nearly as long;
tshark's http.time and dns.time must agree to the nanosecond (where it is
installed); a request that was hit must be blamed on what hit it; and of all
others nothing may be claimed that the client's log does not bear out.
"""
import glob
import gzip
import json
import os
import shutil
import statistics
import struct
import subprocess
import sys

from replayed import HERE, Report, blamed_for, borne_out, causes, check_json, described, named

DATA = os.path.join(HERE, "../data")
MS = 1_000_000
# The client's log and the capture are of one clock, but for what disciplines it in a second.
CLOCK_NS = 100_000
# What the client takes to send and to read, in the median: it is Python, and shares its CPU.
CLIENT_NS = 1 * MS
# A request that was open for less of a fault of the service may be lost in the noise.
HIT_NS = 20 * MS
# Redis sends the answers of one turn of its event loop in so short a time.
TURN_NS = 1 * MS

COMPUTE, HANG = ("service", "compute"), ("service", "hang")
WAITED = {("service", "congestion"), ("service", "contention")}
PAUSED = {("client.socket.rx", "pause")}
LOST = {
    # The acknowledgement of a request is lost with its response: what the client sees is the same.
    ("response", "client"): {("net.response.before", "drop"), ("net.request.after", "drop")},
    ("response", "server"): {("net.response.after", "drop")},
    ("request", "client"): {("net.request.after", "drop")},
    ("request", "server"): None,
}
TAGGED = ("shim-always.client", "shim-negotiated.wire")


class Capture:
    """One capture: its RPCs, each with the client's request."""

    def __init__(self, report, bufscope, name, vantage, truth):
        self.report, self.name, self.vantage = report, name, vantage
        self.truth = truth
        self.path = os.path.join(DATA, f"{name}.pcap.gz")
        self.found = check_json(report, bufscope, self.path)
        self.pairs = self.paired()
        logged = [done - send for _, _, send, done in truth["requests"]]
        self.usual_ns = statistics.median(logged)

    def check(self, condition, what):
        return self.report.check(condition, self.name, what)

    def check_request(self, request, condition, what):
        client, label, t_send, _ = request
        return self.check(condition, f"{client} {label} of {t_send}: {what}")

    def paired(self):
        """[(request, RPC)]: those of a connection, in order."""
        requests, rpcs = {}, {}
        for request in self.truth["requests"]:
            requests.setdefault(request[0], []).append(request)
        for rpc in self.found["rpcs"]:
            rpcs.setdefault(rpc["client"].replace("[", "").replace("]", ""), []).append(rpc)
        if not self.check({client: len(of) for client, of in requests.items()}
                          == {client: len(of) for client, of in rpcs.items()},
                          "the RPCs of each connection are not as many as the client's requests"):
            return []
        return [pair for client in requests for pair in zip(requests[client], rpcs[client])]

    def check_times(self):
        """Each RPC lies within the client's request and is nearly as long."""
        slack = []
        for request, rpc in self.pairs:
            _, label, send, done = request
            if not self.check_request(request, rpc["outcome"] == "answered", rpc["outcome"]):
                continue
            first = int(rpc["t_request_first"])
            late_ns = first + rpc["latency_ns"] - done
            self.check_request(request, label.startswith(rpc["label"]), f"called {rpc['label']}")
            self.check_request(request, first >= send - CLOCK_NS, "begins before it was sent")
            self.check_request(request, late_ns <= CLOCK_NS,
                               f"ends {late_ns / MS:.3f} ms after the client had the answer")
            slack.append(done - send - rpc["latency_ns"])
        if self.vantage == "client":
            self.check(slack and statistics.median(slack) <= CLIENT_NS,
                       "the client saw longer RPCs")

    def excess_ns(self, request):
        return request[3] - request[2] - self.usual_ns

    def check_blamed(self, request, rpc, wanted):
        """An RPC that was hit has one of these as root cause, and its time; None: no claim."""
        if wanted is None:
            self.check_request(request, not rpc["anomalous"],
                               f"{described(rpc)}; it does not show here")
            return
        self.check_request(request, rpc["anomalous"] and named(rpc["root_cause"]) in wanted
                           and blamed_for(rpc, self.excess_ns(request)),
                           f"{described(rpc)}; truly {wanted} for "
                           f"{self.excess_ns(request) / MS:.1f} ms")

    def check_faults(self):
        hit = set()
        for fault in self.truth["injected"]:
            if fault["what"] in ("stopped", "slow"):
                hit |= self.check_silence(fault)
            else:
                hit |= self.check_one(fault)
        for request, rpc in self.pairs:
            if rpc["id"] not in hit:
                excess_ns = self.excess_ns(request)
                self.check_request(request, borne_out(rpc, excess_ns),
                                   f"{described(rpc)}; the client saw {excess_ns / MS:.1f} ms")

    def check_one(self, fault):
        """A fault of one request."""
        wanted = (PAUSED if fault["what"] == "not_read"
                  else LOST[fault["direction"], self.vantage])
        hit = [pair for pair in self.pairs if pair[0][1] == fault["label"]]
        self.check(len(hit) == 1, f"{len(hit)} requests {fault['label']}")
        for request, rpc in hit:
            self.check_blamed(request, rpc, wanted)
        return {rpc["id"] for _, rpc in hit}

    def check_silence(self, fault):
        """The service did nothing else for a while: one thread, seen from packets alone. One RPC
        was in it, or it stood still: nothing tells. The others waited for that. Redis sends all
        answers of a turn of its event loop together, so that one is among the first answered."""
        hit = [(request, rpc) for request, rpc in self.pairs
               if min(request[3], fault["t_end"]) - max(request[2], fault["t_begin"]) >= HIT_NS]
        clients = {request[0] for request, _ in hit}
        self.check(len(clients) >= 4, f"only {len(clients)} connections were hit")
        answered = {rpc["id"]: int(rpc["t_response_first"]) for _, rpc in hit}
        in_it = [pair for pair in hit if causes(pair[1]) == {COMPUTE, HANG}]
        self.check(len(in_it) == 1, f"{len(in_it)} RPCs were served or stood still, not one")
        for request, rpc in in_it:
            self.check_request(request, answered[rpc["id"]] <= min(answered.values()) + TURN_NS,
                               "others were answered before it")
            self.check_request(request, fault.get("client", request[0]) == request[0],
                               "it is not the slow command")
        for request, rpc in hit:
            wanted = {COMPUTE, HANG} if (request, rpc) in in_it else WAITED
            self.check_blamed(request, rpc, wanted)
        return {rpc["id"] for _, rpc in hit}

    def check_tshark(self, field):
        """Its times from request to response, where that is how it counts."""
        run = subprocess.run(["tshark", "-r", self.path, "-Y", field, "-T", "fields", "-e", field],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                             check=True)
        theirs = [round(float(seconds) * 1e9) for seconds in run.stdout.split()]
        ours = [rpc["latency_ns"] for rpc in self.found["rpcs"]]
        self.check(ours == theirs, f"{field} of tshark: {theirs}, ours: {ours}")

    def frames(self):
        """Their bytes. Format: draft-ietf-opsawg-pcap, little-endian as recorded."""
        with gzip.open(self.path) as file:
            file.read(24)
            while header := file.read(16):
                yield file.read(struct.unpack("<4I", header)[2])

    def shim_ids(self):
        """RPC-IDs of the shims in it: TCP option 253 of 20 bytes with ExID 0xB5C0."""
        parts = (frame[34:].partition(b"\xfd\x14\xb5\xc0")[2] for frame in self.frames())
        return {part[4:12].hex() for part in parts if part}

    def check_shims(self):
        """The RPCs of a tagged capture are named as their packets say, those of others numbered."""
        ids = self.shim_ids()
        rpcs = self.found["rpcs"]
        self.check((len(ids) > 0) == (self.name in TAGGED), "shims")
        self.check(all(rpc["tagged"] == (len(ids) > 0) for rpc in rpcs), "tagged")
        numbers = {f"{number:016x}" for number in range(1, len(rpcs) + 1)}
        named = {rpc["id"] for rpc in rpcs}
        # Of two instances that do not trust each other each has an ID for it: the request's counts.
        self.check(named <= ids if ids else named == numbers, "RPC-IDs")
        self.check(len(named) == len(rpcs), "the same RPC-ID twice")


def same_rpcs(one, other):
    """Captures of the same traffic show the same RPCs."""
    keys = ("client", "server", "operation", "label", "outcome", "status", "request_bytes",
            "response_bytes")
    one.check([[rpc[key] for key in keys] for _, rpc in one.pairs]
              == [[rpc[key] for key in keys] for _, rpc in other.pairs],
              f"other RPCs than in {other.name}")


def check_scene(report, bufscope, scene):
    with open(os.path.join(DATA, f"{scene}.truth.json"), encoding="utf-8") as file:
        truth = json.load(file)
    several = len(truth["captures"]) > 1
    captures = []
    for vantage in truth["captures"]:
        name = f"{scene}.{vantage}" if several else scene
        captures.append(Capture(report, bufscope, name, vantage, truth))
    for capture in captures:
        capture.check_times()
        capture.check_faults()
        capture.check_shims()
    for capture in captures[1:]:
        same_rpcs(capture, captures[0])
    return captures


def main():
    bufscope = sys.argv[1]
    report = Report()
    captures = {}
    for path in sorted(glob.glob(os.path.join(DATA, "*.truth.json"))):
        scene = os.path.basename(path).removesuffix(".truth.json")
        captures.update({one.name: one for one in check_scene(report, bufscope, scene)})
    report.check(all(rpc["vlan"] == [7] for _, rpc in captures["redis-vlan"].pairs), "redis-vlan",
                 "not in VLAN 7")
    report.check(all(rpc["server"] == "[fd99::2]:6379" for _, rpc in captures["redis-ipv6"].pairs),
                 "redis-ipv6", "another server")
    if shutil.which("tshark"):
        for name, field in (("dns", "dns.time"), ("nginx-keepalive", "http.time"),
                            ("client-does-not-read", "http.time")):
            captures[name].check_tshark(field)
    else:
        print("tshark is not installed: its latencies were not compared")
    return report.status(f"{len(captures)} captures")


if __name__ == "__main__":
    sys.exit(main())
