#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Instructions of the packet path, by function: instructions.py BENCH [CASE [MODE]].

Runs BENCH (dataplane_bench) under callgrind with two numbers of packets; what the longer run takes
more is what its packets took, free of set-up and handshakes. Counts are the same on a busy machine.
CASE and MODE as BENCH prints them. Without CASE: one small RPC, a request and its response of a
packet each, from end to end; and a packet in the middle of long messages.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

PACKETS = (20480, 61440)
FUNCTIONS = 30
SKIPPED = 77
SMALL = "row, 256 B, 1 packet, 1000 flows"
LONG = "row, 1494 B, 10 packets, 1000 flows"


def profile(bench, case, mode, packets):
    """Instructions inside of turns: of each function, by itself."""
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
    for count, name in re.findall(r"^ *([\d,]+) \([ \d.]+%\) +\S*?:(\S+)", said, re.MULTILINE):
        functions[name] = functions.get(name, 0) + int(count.replace(",", ""))
    return functions


def report(bench, case, mode):
    fewer, more = (profile(bench, case, mode, n) for n in PACKETS)
    packets = PACKETS[1] - PACKETS[0]
    rows = sorted(((n - fewer.get(name, 0)) / packets, name) for name, n in more.items())
    total = sum(count for count, _ in rows)
    print(f"{case}, {mode}: {total:.0f} instructions a packet")
    for count, name in rows[:-FUNCTIONS:-1]:
        print(f"{count:8.1f}  {name}")
    return total


def main():
    if shutil.which("valgrind") is None:
        print("skipped: no valgrind")
        sys.exit(SKIPPED)
    bench, *rest = sys.argv[1:]
    if rest:
        report(bench, rest[0], rest[1] if len(rest) > 1 else "observe")
        return
    small = report(bench, SMALL, "observe")
    report(bench, LONG, "observe")
    print(f"one RPC of two packets, from end to end: {2 * small:.0f} instructions")


if __name__ == "__main__":
    main()
