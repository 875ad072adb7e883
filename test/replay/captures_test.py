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
import sys

from replayed import PCAPS, SKIPPED, Report, check_json, replay

# Latencies in us, in order of request, as tshark gives them.
TSHARK = {
    "urso+packetbeat/packetbeat/tests/system/pcaps/dns_google_com.pcap": [61782],
    "deepflowio+deepflow/agent/resources/test/flow_generator/http/httpv1.pcap": [84051],
    "deepflowio+deepflow/agent/resources/test/flow_generator/redis/redis-error.pcap": [73],
    "deepflowio+deepflow/agent/resources/test/flow_generator/redis/redis-debug.pcap": [1209],
    "deepflowio+deepflow/agent/resources/test/flow_generator/dns/dns-tcp-multi.pcap": [294, 355],
}


def check_capture(report, bufscope, path):
    found = check_json(report, bufscope, path)
    if not found:
        return
    run = replay(bufscope, "--format", "jsonl", path)
    report.check(len(run.stdout.splitlines()) == len(found["rpcs"]), path, "jsonl lines")
    run = replay(bufscope, "--all", path)
    report.check(run.returncode == 0, path, f"text: status {run.returncode}")
    report.check(all(byte == 10 or 32 <= byte < 127 for byte in run.stdout), path,
                 "not plain text")


def check_tshark(report, bufscope, name, wanted):
    path = os.path.join(PCAPS, name)
    if os.path.exists(path):
        run = replay(bufscope, "--format", "jsonl", path)
        got = [json.loads(line)["latency_ns"] for line in run.stdout.splitlines()]
        report.check(got == [us * 1000 for us in wanted], path,
                     f"latencies {got}, not {wanted} us")


def main():
    bufscope = sys.argv[1]
    if not os.path.isdir(PCAPS):
        print(f"skipped: no captures in {PCAPS}")
        return SKIPPED
    report = Report()
    count = 0
    for directory, _, names in sorted(os.walk(PCAPS)):
        for name in sorted(names):
            if name.endswith((".pcap", ".pcapng", ".cap", ".pcap.gz")):
                check_capture(report, bufscope, os.path.join(directory, name))
                count += 1
    for name, wanted in TSHARK.items():
        check_tshark(report, bufscope, name, wanted)
    return report.status(f"{count} captures")


if __name__ == "__main__":
    sys.exit(main())
