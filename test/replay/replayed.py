# SPDX-License-Identifier: BSD-3-Clause
"""Runs `bufscope replay`, and what must hold for all that it says."""
import json
import os
import subprocess

SKIPPED = 77
HERE = os.path.dirname(os.path.abspath(__file__))
PCAPS = os.environ.get("BUFSCOPE_PCAPS", os.path.join(HERE, "../../../shared/pcaps"))


class Report:
    """What did not hold; at the end of a test program, its exit status."""

    def __init__(self):
        self.failures = []

    def check(self, condition, where, what):
        if not condition:
            self.failures.append(f"{where}: {what}")
        return condition

    def status(self, summary):
        for failure in self.failures[:50]:
            print(failure)
        print(f"{summary}, {len(self.failures)} failures")
        return 1 if self.failures else 0


def replay(bufscope, *arguments):
    return subprocess.run([bufscope, "replay", *arguments], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          env={**os.environ, "LC_ALL": "C"}, timeout=120)


def check_rpc(report, path, rpc):
    name = f"{path}: RPC {rpc['id']}"
    extent = rpc["age_ns"] if rpc["latency_ns"] is None else rpc["latency_ns"]
    report.check((rpc["outcome"] == "answered") == (rpc["latency_ns"] is not None), name,
                 f"{rpc['outcome']} with latency {rpc['latency_ns']}")
    if rpc["outcome"] == "orphan_response":
        return
    report.check(sum(term["ns"] for term in rpc["terms"]) == extent, name, "terms do not add up")
    reached = 0
    for segment in rpc["segments"]:
        report.check(segment["begin_ns"] == reached, name, f"no tiling at {reached}")
        reached = segment["end_ns"]
    report.check(reached == extent, name, f"segments end at {reached}, not {extent}")


def check_json(report, bufscope, path, *options):
    """All that replay says of a capture, as JSON, or None; checks what holds for any capture:
    each packet in exactly one counter, no bad records, each RPC once, and tiled."""
    run = replay(bufscope, "--format", "json", "--all", *options, path)
    if not report.check(run.returncode == 0, path,
                        f"status {run.returncode}: {run.stderr.decode(errors='replace')}"):
        return None
    found = json.loads(run.stdout)
    packets = sum(entry["packets"] for entry in found["inputs"])
    report.check(sum(found["counters"].values()) == packets, path, "packets and counters differ")
    report.check(found["tracking"]["bad_records"] == 0, path, "records that do not validate")
    begun = sum(service["rpcs"] + service["orphan_responses"] + service["pushed"]
                for service in found["services"])
    report.check(begun == len(found["rpcs"]), path, "services and rpcs differ")
    for rpc in found["rpcs"]:
        check_rpc(report, path, rpc)
    return found


def named(root):
    """(buffer, cause) of a root cause, or of an alternative."""
    return root["buffer"], root["cause"]


def causes(rpc):
    """All that the verdict leaves possible."""
    root = rpc["root_cause"]
    return {named(one) for one in [root, *root["alternatives"]]} if root else set()


def blamed_for(rpc, ns):
    """Whether an RPC is blamed for the time it suffered: to 10 % or 5 ms, the larger."""
    return abs(rpc["root_cause"]["excess_ns"] - ns) <= max(5_000_000, 0.1 * ns)


def borne_out(rpc, excess_ns):
    """Whether the verdict on an RPC that no fault hit can be so: the client found it slow by as
    much (up to 2 ms, which it may need itself to send and to read), and no packet was lost or
    late."""
    root = rpc["root_cause"]
    return (not rpc["anomalous"] or (root["cause"] not in ("drop", "disorder", "pause")
                                     and root["excess_ns"] <= excess_ns + 2_000_000))


def described(rpc):
    if rpc is None:
        return "not found"
    if not rpc["anomalous"]:
        return "not anomalous"
    root = rpc["root_cause"]
    others = "".join(f" or {one['cause']} of {one['buffer']}" for one in root["alternatives"])
    return f"{root['cause']} of {root['buffer']}{others} for {root['excess_ns'] / 1e6:.1f} ms"
