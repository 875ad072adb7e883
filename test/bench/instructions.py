#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Instructions of the packet path by stage, held against a stored baseline.

instructions.py BENCH             each case and mode, by stage; compared with baseline.json
instructions.py --write BENCH     renews baseline.json
instructions.py BENCH CASE [MODE] one of them, by function

Runs BENCH (dataplane_bench) under callgrind with two numbers of packets; what the longer run takes
more is what its packets took, free of set-up and handshakes. Counts are the same on a busy machine,
but another compiler or DPDK makes others: then nothing is compared. Exit status 1 if a count grew
by more than the tolerance.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

PACKETS = (20480, 61440)
FUNCTIONS = 30
SKIPPED = 77
TOLERANCE = 0.02
BASELINE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "baseline.json")
CASES = ("row, 256 B, 1 packet, 1000 flows", "row, 1494 B, 10 packets, 1000 flows",
         "RESP, 256 B, 1 packet, 1000 flows")
MODES = ("off", "observe", "tag")
# By where a function was defined; the first that fits.
STAGES = (
    ("parse", r"lib/packet/"),
    ("framers", r"lib/rpc/(row|resp|http1|dns|memcached|sunrpc|framers|operation)"),
    ("flows, RPCs", r"lib/rpc/"),
    ("records", r"lib/(record|path|histo)/"),
    ("shim", r"lib/wire/|src/dataplane/(shim|handshake|checksum_offload)\."),
    ("queues", r"lib/chain/|src/dataplane/(queue|egress)\."),
    ("lcore", r"src/dataplane/|test/bench/"),
    ("DPDK, libc", r""),
)


def profile(bench, case, mode, packets):
    """Instructions inside of turns: {(file, function): count}, each by itself."""
    with tempfile.TemporaryDirectory() as directory:
        out = os.path.join(directory, "out")
        subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}",
             "--toggle-collect=bs_lcore_turn", bench, "-v", "-r", "1", "-n", str(packets),
             "-c", case, "-m", mode],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        said = subprocess.run(["callgrind_annotate", "--auto=no", "--threshold=100", out],
                              check=True, stdout=subprocess.PIPE, text=True).stdout
    functions = {}
    for count, file, name in re.findall(r"^ *([\d,]+) \([ \d.]+%\) +(\S*?):(\S+)", said,
                                        re.MULTILINE):
        key = (os.path.normpath(file), name)
        functions[key] = functions.get(key, 0) + int(count.replace(",", ""))
    return functions


def a_packet(bench, case, mode):
    """{(file, function): instructions a packet}."""
    fewer, more = (profile(bench, case, mode, n) for n in PACKETS)
    packets = PACKETS[1] - PACKETS[0]
    return {key: (n - fewer.get(key, 0)) / packets for key, n in more.items()}


def by_stage(functions):
    stages = {name: 0 for name, _ in STAGES}
    for (file, _), count in functions.items():
        stages[next(name for name, where in STAGES if re.search(where, file))] += count
    return {name: round(count, 1) for name, count in stages.items()}


def made_with(bench):
    """What the counts depend on."""
    comment = subprocess.run(["readelf", "-p", ".comment", bench], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
    dpdk = subprocess.run(["pkg-config", "--modversion", "libdpdk"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout.strip()
    return {"compiler": re.search(r"(GCC: .*|.*clang.*)", comment)[1].strip(), "dpdk": dpdk}


def measure(bench):
    """{"CASE, MODE": {stage: instructions a packet}}; prints them as they come."""
    print(f"{'instructions a packet':<46}" + "".join(f"{name:>13}" for name, _ in STAGES) +
          f"{'all':>9}")
    table = {}
    for case in CASES:
        for mode in MODES:
            stages = by_stage(a_packet(bench, case, mode))
            table[f"{case}, {mode}"] = stages
            print(f"{f'{case}, {mode}':<46}" + "".join(f"{n:13.0f}" for n in stages.values()) +
                  f"{sum(stages.values()):9.0f}", flush=True)
    return table


def compare(table, baseline):
    """Exit status. All of a case counts: between stages, instructions move by inlining."""
    grown = 0
    for name, stages in table.items():
        before = sum(baseline["instructions"].get(name, {}).values())
        now = sum(stages.values())
        if before and now > before * (1 + baseline["tolerance"]):
            grown = 1
            print(f"{name}: {now:.0f} instructions, were {before:.0f}")
        elif before and now < before * (1 - baseline["tolerance"]):
            print(f"{name}: {now:.0f} instructions, were {before:.0f}: --write keeps that")
    if not grown:
        print(f"none grew by more than {baseline['tolerance']:.0%} of {BASELINE}")
    return grown


def show(bench, case, mode):
    rows = sorted(((n, name) for (_, name), n in a_packet(bench, case, mode).items()), reverse=True)
    print(f"{case}, {mode}: {sum(n for n, _ in rows):.0f} instructions a packet")
    for count, name in rows[:FUNCTIONS]:
        print(f"{count:8.1f}  {name}")


def main():
    if shutil.which("valgrind") is None:
        print("skipped: no valgrind")
        return SKIPPED
    arguments = [one for one in sys.argv[1:] if one != "--write"]
    if len(arguments) > 1:
        show(arguments[0], arguments[1], arguments[2] if len(arguments) > 2 else "observe")
        return 0
    bench = arguments[0]
    made, table = made_with(bench), measure(bench)
    if "--write" in sys.argv:
        with open(BASELINE, "w", encoding="utf-8") as file:
            json.dump({**made, "tolerance": TOLERANCE, "instructions": table}, file, indent=1)
            file.write("\n")
        return 0
    with open(BASELINE, encoding="utf-8") as file:
        baseline = json.load(file)
    if any(baseline[key] != value for key, value in made.items()):
        print(f"not compared: {BASELINE} was made with {baseline['compiler']}, DPDK "
              f"{baseline['dpdk']}, this with {made['compiler']}, DPDK {made['dpdk']}")
        return 0
    return compare(table, baseline)


if __name__ == "__main__":
    sys.exit(main())
