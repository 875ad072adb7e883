#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Gives `bufscope replay` files that are no captures, and arguments that are none.

usage: input_test.py BUFSCOPE

Each has its exit status and one line on stderr that names the file or option
and says why; nothing goes to stdout.
"""
import gzip
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

from replayed import HERE, Report, replay

WHOLE = os.path.join(HERE, "../data/redis-calm.pcap.gz")
NOBODY = 65534


def header(link_type):
    """Of a pcap file with microseconds: draft-ietf-opsawg-pcap section 4."""
    return struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link_type)


FILES = {
    "empty": (b"", "the file is empty: not a capture"),
    "text": (b"a page of text, and no capture\n" * 40, "unknown file format"),
    "zeros": (bytes(4096), "unknown file format"),
    "text.gz": (gzip.compress(b"no capture either\n" * 40), "unknown file format"),
    "half-header.pcap": (header(1)[:20], "the file ends within its header: not a whole capture"),
    # LINKTYPE_PFLOG of https://www.tcpdump.org/linktypes.html
    "pflog.pcap": (header(117), "link type PFLOG (117) is not supported; supported are "),
}
ARGUMENTS = {
    ("--no-such", WHOLE): "--no-such: no such option",
    ("--format", "csv", WHOLE): '--format: "csv" is none of text, json, jsonl',
    ("--slo", WHOLE): '--slo: "',
    (): "no capture given",
}


def check_refused(report, run, status, text, where):
    error = run.stderr.decode(errors="replace")
    report.check(run.returncode == status, where, f"status {run.returncode}, not {status}: {error}")
    report.check(run.stdout == b"", where, f"wrote {run.stdout[:80]}")
    report.check(error.count("\n") == 1 and error.startswith(f"bufscope replay: {text}"), where,
                 f"says {error!r}, not {text!r}")


def check_files(report, bufscope, directory):
    for name, (content, why) in FILES.items():
        path = os.path.join(directory, name)
        with open(path, "wb") as file:
            file.write(content)
        check_refused(report, replay(bufscope, path), 1, f"{path}: {why}", name)
        # As one of several files it ends the run too: half an answer could pass for a whole one.
        check_refused(report, replay(bufscope, WHOLE, path), 1, f"{path}: {why}", f"whole, {name}")
    run = replay(bufscope, directory)
    check_refused(report, run, 1, f"{directory}: Is a directory", "directory")
    with open(os.path.join(directory, "empty"), "rb") as file:
        run = subprocess.run([bufscope, "replay", "-"], stdin=file, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, check=False, timeout=60)
    check_refused(report, run, 1, "standard input: the file is empty", "standard input")


def check_unreadable(report, bufscope, directory):
    path = os.path.join(directory, "secret.pcap.gz")
    shutil.copy(WHOLE, path)
    os.chmod(path, 0)
    os.chmod(directory, 0o755)
    if os.geteuid() == 0:
        # Root reads all: as somebody who may execute bufscope, but not read the file. The copy
        # is for build directories that are closed to others.
        program = os.path.join(directory, "bufscope")
        shutil.copy(bufscope, program)
        run = subprocess.run([program, "replay", path], user=NOBODY, group=NOBODY, extra_groups=[],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, check=False, timeout=60, cwd="/")
    else:
        run = replay(bufscope, path)
    check_refused(report, run, 1, f"{path}: Permission denied", "unreadable")


def check_cut(report, bufscope, directory):
    """What is before the cut counts, and where it is cut is said: here within compressed data."""
    path = os.path.join(directory, "cut.pcap.gz")
    with open(WHOLE, "rb") as file, open(path, "wb") as cut:
        cut.write(file.read(os.path.getsize(WHOLE) // 2))
    run = replay(bufscope, "--format", "json", path)
    if not report.check(run.returncode == 0, "cut", f"status {run.returncode}: {run.stderr}"):
        return
    found = json.loads(run.stdout)
    (entry,), (service,) = found["inputs"], found["services"]
    report.check(entry["truncated_at_packet"] == entry["packets"] + 1, "cut", f"{entry}")
    report.check(0 < service["answered"] < 160, "cut", f"{service['answered']} of 160 answered")
    text = replay(bufscope, path).stdout.decode()
    report.check(f"packet {entry['packets'] + 1}: the gzip data ends early" in text, "cut",
                 f"text does not say so: {text[:200]}")


def check_no_bytes(report, bufscope, directory):
    """Records of no bytes: of an empty frame, and of one of which nothing was kept."""
    path = os.path.join(directory, "no-bytes.pcap")
    with open(path, "wb") as file:
        file.write(header(1) + struct.pack("<4I", 1, 0, 0, 0) + struct.pack("<4I", 2, 0, 0, 60)
                   + struct.pack("<4I", 3, 0, 10, 60) + bytes(10))
    run = replay(bufscope, "--format", "json", path)
    if report.check(run.returncode == 0, path, f"status {run.returncode}"):
        counters = {name: count for name, count in json.loads(run.stdout)["counters"].items()
                    if count}
        report.check(counters == {"runt": 1, "snapped": 2}, path, f"counters: {counters}")


def main():
    bufscope = os.path.abspath(sys.argv[1])
    report = Report()
    with tempfile.TemporaryDirectory() as directory:
        check_files(report, bufscope, directory)
        check_unreadable(report, bufscope, directory)
        check_cut(report, bufscope, directory)
        check_no_bytes(report, bufscope, directory)
    for arguments, why in ARGUMENTS.items():
        check_refused(report, replay(bufscope, *arguments), 2, why, " ".join(arguments))
    return report.status("bad input")


if __name__ == "__main__":
    sys.exit(main())
