#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What Debian's testpmd takes on this machine, and our dataplane next to it: testpmd.py BENCH.

TSC cycles a packet of io and macswap between two net_null ports on one lcore, as testpmd itself
counts them (--record-core-cycles); then BENCH (dataplane_bench) over the same ports.
"""
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

RUNS = 9
SECONDS = 0.2
DEVICES = ("size=64,copy=0", "size=64,copy=1", "size=1500,copy=0")
MEMORY_MB = 128
SKIPPED = 77


def free_hugepages_mb():
    with open("/proc/meminfo", encoding="ascii") as file:
        info = dict(line.split(":") for line in file)
    return int(info["HugePages_Free"]) * int(info["Hugepagesize"].split()[0]) // 1024


def command(device):
    cpus = sorted(os.sched_getaffinity(0))
    return ["dpdk-testpmd", "--in-memory" if free_hugepages_mb() >= MEMORY_MB else "--no-huge",
            "-m", str(MEMORY_MB), "--no-pci", "--no-telemetry", f"--file-prefix=pmd{os.getpid()}",
            "--lcores", f"0@{cpus[0]},1@{cpus[-1]}",
            "--vdev", f"net_null0,{device}", "--vdev", f"net_null1,{device}",
            "--", "-i", "--nb-cores=1", "--total-num-mbufs=8192", "--burst=32",
            "--record-core-cycles"]


def cycles(device, modes):
    """A list of cycles a packet for each mode, one of each run."""
    with tempfile.TemporaryDirectory() as runtime:
        process = subprocess.Popen(command(device), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, bufsize=1,
                                   env=dict(os.environ, RUNTIME_DIRECTORY=runtime))
        for mode in modes:
            process.stdin.write(f"set fwd {mode}\n")
            for _ in range(RUNS):
                process.stdin.write("start\n")
                time.sleep(SECONDS)  # the length of a run; nothing depends on it
                process.stdin.write("stop\n")
        said, _ = process.communicate("quit\n")
    found = [float(n) for n in re.findall(r"CPU cycles/packet=([0-9.]+)", said)]
    if len(found) != RUNS * len(modes):
        sys.exit(f"testpmd.py: testpmd did not run:\n{said}")
    return {mode: found[i * RUNS:(i + 1) * RUNS] for i, mode in enumerate(modes)}


def main():
    if shutil.which("dpdk-testpmd") is None:
        print("skipped: no dpdk-testpmd (Debian: dpdk-dev)")
        sys.exit(SKIPPED)
    print(f"{'testpmd, cycles a packet':<39} | {'io':<19} | macswap")
    print(f"{'':<39}" + 2 * f" | {'min':>6} {'median':>6} {'range':>5}")
    for device in DEVICES:
        line = f"net_null,{device}"
        line = f"{line:<39}"
        for values in cycles(device, ("io", "macswap")).values():
            median = statistics.median(values)
            spread = (max(values) - min(values)) / median
            line += f" | {min(values):6.0f} {median:6.0f} {spread:5.0%}"
        print(line, flush=True)
    sys.exit(subprocess.run([sys.argv[1], "-c", "net_null"], check=False).returncode)


if __name__ == "__main__":
    main()
