#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Replays every capture below $BUFSCOPE_PCAPS and checks what must hold for any of them.

usage: captures_test.py BUFSCOPE

For each: exit status 0, each packet in exactly one counter, the terms of each
RPC add up to its latency or age, its segments tile it, an RPC a line in jsonl,
text without control characters. For some: latencies that tshark 4.0 gives
(dns.time, http.time, or the gap between request and response). Exit status 77
where there are no captures.
"""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PCAPS = os.environ.get("BUFSCOPE_PCAPS", os.path.join(HERE, "../../../shared/pcaps"))

# Latencies in us, in order of request, as tshark gives them.
TSHARK = {
    "urso+packetbeat/packetbeat/tests/system/pcaps/dns_google_com.pcap": [61782],
    "deepflowio+deepflow/agent/resources/test/flow_generator/http/httpv1.pcap": [84051],
    "deepflowio+deepflow/agent/resources/test/flow_generator/redis/redis-error.pcap": [73],
    "deepflowio+deepflow/agent/resources/test/flow_generator/redis/redis-debug.pcap": [1209],
    "deepflowio+deepflow/agent/resources/test/flow_generator/dns/dns-tcp-multi.pcap": [294, 355],
}

failures = []


def check(condition, path, what):
    if not condition:
        failures.append(f"{path}: {what}")


def replay(bufscope, *arguments):
    return subprocess.run([bufscope, "replay", *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False,
                          env={**os.environ, "LC_ALL": "C"}, timeout=120)


def check_rpc(path, rpc):
    name = f"{path}: RPC {rpc['id']}"
    extent = rpc["age_ns"] if rpc["latency_ns"] is None else rpc["latency_ns"]
    check((rpc["outcome"] == "answered") == (rpc["latency_ns"] is not None), name,
          f"{rpc['outcome']} with latency {rpc['latency_ns']}")
    if rpc["outcome"] == "orphan_response":
        return
    check(sum(term["ns"] for term in rpc["terms"]) == extent, name, "terms do not add up")
    reached = 0
    for segment in rpc["segments"]:
        check(segment["begin_ns"] == reached, name, f"no tiling at {reached}")
        reached = segment["end_ns"]
    check(reached == extent, name, f"segments end at {reached}, not {extent}")


def check_capture(bufscope, path):
    run = replay(bufscope, "--format", "json", "--all", path)
    if run.returncode != 0:
        check(False, path, f"status {run.returncode}: {run.stderr.decode(errors='replace')}")
        return
    found = json.loads(run.stdout)
    packets = sum(entry["packets"] for entry in found["inputs"])
    check(sum(found["counters"].values()) == packets, path, "packets and counters differ")
    check(found["tracking"]["bad_records"] == 0, path, "records that do not validate")
    begun = sum(service["rpcs"] + service["orphan_responses"] + service["pushed"]
                for service in found["services"])
    check(begun == len(found["rpcs"]), path, "services and rpcs differ")
    for rpc in found["rpcs"]:
        check_rpc(path, rpc)
    run = replay(bufscope, "--format", "jsonl", path)
    check(len(run.stdout.splitlines()) == len(found["rpcs"]), path, "jsonl lines")
    run = replay(bufscope, "--all", path)
    check(run.returncode == 0, path, f"text: status {run.returncode}")
    check(all(byte == 10 or 32 <= byte < 127 for byte in run.stdout), path, "not plain text")


def check_tshark(bufscope, name, wanted):
    path = os.path.join(PCAPS, name)
    if os.path.exists(path):
        run = replay(bufscope, "--format", "jsonl", path)
        got = [json.loads(line)["latency_ns"] for line in run.stdout.splitlines()]
        check(got == [us * 1000 for us in wanted], path, f"latencies {got}, not {wanted} us")


def main():
    bufscope = sys.argv[1]
    if not os.path.isdir(PCAPS):
        print(f"skipped: no captures in {PCAPS}")
        return 77
    count = 0
    for directory, _, names in sorted(os.walk(PCAPS)):
        for name in sorted(names):
            if name.endswith((".pcap", ".pcapng", ".cap", ".pcap.gz")):
                check_capture(bufscope, os.path.join(directory, name))
                count += 1
    for name, wanted in TSHARK.items():
        check_tshark(bufscope, name, wanted)
    for failure in failures[:50]:
        print(failure)
    print(f"{count} captures, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
