#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every frame of every capture below $BUFSCOPE_PCAPS through the dataplane, judged by tshark.

usage: captures_test.py CAPTURES_PUSH

CAPTURES_PUSH compares bytes. Here an independent reader with checksum validation on says of each
frame that left: its checksums are as good or bad as they were (a checksum that was only the pseudo
header's sum is good now), its lengths are right, and a shim is all that was added. Exit status 77
where there are no captures or no tshark.
"""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PCAPS = os.environ.get("BUFSCOPE_PCAPS", os.path.join(HERE, "../../../shared/pcaps"))
SKIPPED = 77
SHIM_BYTES = 20
FIELDS = ["frame.len", "ip.len", "ipv6.plen", "tcp.hdr_len", "tcp.len", "ip.checksum.status",
          "tcp.checksum.status", "udp.checksum.status", "tcp.checksum", "udp.checksum",
          "_ws.malformed"]
LENGTHS, STATUSES = FIELDS[:4], FIELDS[5:8]
GOOD = "1"


def captures():
    for directory, _, names in sorted(os.walk(PCAPS)):
        for name in sorted(names):
            if ".pcap" in name and ".json" not in name:
                yield os.path.join(directory, name)


def frames(path):
    """What tshark says of each: {field: [values, outermost first]}."""
    # Each frame for itself: what came before it must not matter to what is said of it.
    run = subprocess.run(
        ["tshark", "-n", "-r", path, "-T", "fields", "-E", "separator=|", "-E", "occurrence=a",
         "-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE",
         "-o", "udp.check_checksum:TRUE", "-o", "ip.defragment:FALSE",
         "-o", "ipv6.defragment:FALSE", "-o", "tcp.desegment_tcp_streams:FALSE",
         "-o", "tcp.analyze_sequence_numbers:FALSE",
         *(word for field in FIELDS for word in ("-e", field))],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    for line in run.stdout.splitlines():
        values = line.split("|")
        yield {field: value.split(",") if value else [] for field, value in zip(FIELDS, values)}


def grown(before, after, field):
    """By how much the outermost value grew; 0 where it is not there."""
    if not before[field] or not after[field]:
        return None if before[field] or after[field] else 0
    return int(after[field][0]) - int(before[field][0])


def differences(before, after, may_tag):
    """What is wrong with a frame that left."""
    added = grown(before, after, "frame.len")
    if added not in ((0, SHIM_BYTES) if may_tag else (0,)):
        yield f"frame.len grew by {added}"
    for field in LENGTHS[1:]:
        of_field = grown(before, after, field)
        # one of the two IP versions, and TCP
        if of_field not in (0, added) or (added and field == "tcp.hdr_len" and of_field != added):
            yield f"{field} grew by {of_field}, the frame by {added}"
    if added and not any(grown(before, after, field) == added for field in ("ip.len", "ipv6.plen")):
        yield "the IP length did not grow"
    if before["tcp.len"] != after["tcp.len"]:
        yield "tcp.len changed"
    for field in STATUSES:
        was, now = before[field], after[field]
        if was == now:
            continue
        checksum = field.replace(".status", "")
        completed = (len(was) == len(now) and before[checksum] != after[checksum]
                     and all(a == b or b == GOOD for a, b in zip(was, now)))
        if not completed:
            yield f"{field} was {was}, is {now}"
    if before["_ws.malformed"] != after["_ws.malformed"]:
        yield "malformed, or no more"


def main():
    paths = list(captures()) if os.path.isdir(PCAPS) else []
    if not paths or shutil.which("tshark") is None:
        print(f"skipped: no captures in {PCAPS}, or no tshark")
        return SKIPPED
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run([sys.argv[1], directory, *paths])
        if done.returncode != 0:
            return done.returncode
        said = {name: list(frames(os.path.join(directory, f"{name}.pcap")))
                for name in ("original", "off", "always")}
    failures = 0
    for name in ("off", "always"):
        if len(said[name]) != len(said["original"]):
            print(f"{name}: {len(said[name])} frames, not {len(said['original'])}")
            failures += 1
        bad = tagged = 0
        for number, (before, after) in enumerate(zip(said["original"], said[name]), 1):
            for what in differences(before, after, name == "always"):
                print(f"{name}: frame {number}: {what}")
                failures += 1
            bad += any(value not in (GOOD, "2", "3") for f in STATUSES for value in after[f])
            tagged += before["frame.len"] != after["frame.len"]
        print(f"{name}: {len(said[name])} frames, {tagged} tagged, {bad} with bad checksums")
    bad = sum(any(value not in (GOOD, "2", "3") for f in STATUSES for value in frame[f])
              for frame in said["original"])
    print(f"original: {bad} with bad checksums")
    return 1 if failures else 0


sys.exit(main())
