#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Throughput through bufscoped with monitoring on and off, as a paired ratio: throughput.py [PAIRS].

redis-benchmark (50 connections, GETs and SETs) and a file of 200 MB from nginx, between namespaces.
Off: the same bufscoped, but the service is not listed. Each pair is measured back to back, in
turns which comes first, so that what else the machine does falls on both; the ratio of a pair is
what counts, and of these the median. Needs root.
"""
import os
import re
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../live"))

import harness
from files import make_file, read_head
from harness import SERVICE, expect, wait_for

REQUESTS = 60_000
FILE_BYTES = 200_000_000
SHIMS = {"observe": {"tag": "off"}, "tag": {"tag": "always"}}
PAIRS = int(sys.argv[1]) if len(sys.argv) > 1 else 5


def redis_requests_a_second(lab):
    """Of GETs and SETs, 50 connections, one request at a time on each."""
    said = harness.run("ip", "netns", "exec", "client", "redis-benchmark", "-h", SERVICE, "-t",
                       "get,set", "-n", str(REQUESTS), "-c", "50", "-d", "100", "--csv")
    rates = [float(rate) for rate in re.findall(r'^"(?:GET|SET)","([0-9.]+)"', said, re.MULTILINE)]
    expect(len(rates) == 2, f"redis-benchmark: {said}")
    return 2 / sum(1 / rate for rate in rates)


def bulk_bytes_a_second(lab):
    """Of one file of nginx over one connection."""
    sock = lab.connect("client", SERVICE, 80, 60)
    buffer = bytearray(1 << 18)
    begin = time.perf_counter()
    sock.sendall(b"GET /bulk HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    with sock.makefile("rb", buffering=1 << 16) as stream:
        status, left = read_head(stream)
        expect(status == 200 and left == FILE_BYTES, f"nginx: {status}, {left} bytes")
        while left > 0:
            got = stream.readinto(buffer)
            expect(got, f"{left} bytes are missing")
            left -= got
    return FILE_BYTES / (time.perf_counter() - begin)


LOADS = {
    "redis, requests/s": (6379, "resp", redis_requests_a_second),
    "bulk transfer, bytes/s": (80, "http1", bulk_bytes_a_second),
}


def measured(lab, shim, port, protocol, load):
    """Through a bufscoped of its own; shim None: the service is not listed."""
    service = {"name": "bench", "address": SERVICE if shim else "10.99.0.99", "port": port,
               "protocol": protocol}
    dataplane = lab.bufscoped(services=[service], shim=shim or {"tag": "off"}).start()
    wait_for("the path to stand", lambda: lab.reachable("client", SERVICE, port))
    rate = load(lab)
    if shim:
        expect(dataplane.counter("rpcs") > 0, "nothing was monitored")
    expect(dataplane.counter("tagged") > 0 or not shim or shim["tag"] == "off", "nothing was tagged")
    dataplane.stop()
    return rate


def throughput(lab):
    lab.standard()
    lab.redis()
    lab.nginx()
    make_file(lab.path("www/bulk"), FILE_BYTES)
    print(f"{'':<34} {'off':>12} {'on':>12}   on/off, median of {PAIRS} pairs (least to most)")
    for name, (port, protocol, load) in LOADS.items():
        for mode, shim in SHIMS.items():
            pairs = []
            for number in range(PAIRS):
                order = (None, shim) if number % 2 else (shim, None)
                rates = {bool(one): measured(lab, one, port, protocol, load) for one in order}
                pairs.append((rates[False], rates[True]))
                if sys.stdout.isatty():
                    print(f"\r{name}, {mode}: pair {number + 1} of {PAIRS}", end="\r", flush=True)
            ratios = sorted(on / off for off, on in pairs)
            off, on = (statistics.median(pair[i] for pair in pairs) for i in range(2))
            print(f"{name + ', ' + mode:<34} {off:12.0f} {on:12.0f}   "
                  f"{statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})",
                  flush=True)


if __name__ == "__main__":
    if subprocess.run(["sh", "-c", "command -v redis-benchmark"], stdout=subprocess.DEVNULL,
                      check=False).returncode != 0:
        print("skipped: no redis-benchmark (Debian: redis-tools)")
        sys.exit(harness.SKIPPED)
    harness.main(throughput)
