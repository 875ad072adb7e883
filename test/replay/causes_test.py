#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Replays captures with one known fault each, and compares the verdicts with what was done.

usage: causes_test.py BUFSCOPE

The captures and their truth are in $BUFSCOPE_PCAPS/causes; its README says what
a verdict must be to be right. Each is taken on the client's and on the server's
side of a link: a scenario seen from one side is a case. Of each it prints how
many RPCs were hit, and how many verdicts on them are right, wrong, or missing;
`false` counts claims on the others that the client's log does not bear out.
Cases that cannot be right yet are in NOT_YET; they may fail. Exit status 77
where there are no captures.
"""
import glob
import json
import os
import sys

from replayed import (PCAPS, SKIPPED, Report, blamed_for, borne_out, causes, check_json, described,
                      named)

CAUSES = os.path.join(PCAPS, "causes")
VANTAGES = ("client", "server")

# Rows of inference that come later.
CLIENT_STALL = "hang of client.app (idle mid-request) is not inferred yet"
ACK_WAIT = "ack_wait of server.socket.tx is not inferred yet"
ONE_WAY = "congestion of net.* from TSval/TSecr one-way excess is not inferred yet"
CWND = "what waits for the ACK of earlier bytes is not told from transfer before us yet"
SLOW_START = "how slowly a sender goes on after a closed window (cwnd) is told as transfer"
# Why, and how many verdicts at most may be other than right.
NOT_YET = {
    ("client-does-not-read", "client"): (SLOW_START, 1),
    ("client-does-not-read", "server"): (SLOW_START, 1),
    ("client-stalls-in-request", "client"): (CLIENT_STALL, 4),
    ("client-stalls-in-request", "server"): (CLIENT_STALL, 4),
    ("nagle-delayed-ack", "client"): (ACK_WAIT, 4),
    ("nagle-delayed-ack", "server"): (ACK_WAIT, 4),
    ("request-delayed", "client"): (ONE_WAY, 4),
    ("response-delayed", "client"): (ONE_WAY, 4),
    ("service-does-not-read", "client"): (SLOW_START, 3),
    ("service-does-not-read", "server"): (SLOW_START, 2),
    ("thin-link", "server"): (CWND, 3),
}


def number_of(rpc):
    """The N of /rpc/N/... in its label, or None."""
    parts = (rpc["label"] or "").split("/")
    return parts[2] if len(parts) > 2 and parts[1] == "rpc" else None


def judged(rpc, blame, vantage):
    """right, wrong, missed of an RPC that was hit; rpc is None when it is not in the output."""
    wanted = blame[vantage]
    claimed = rpc is not None and rpc["anomalous"]
    if wanted is None:
        return "wrong" if claimed else "right"
    if not claimed:
        return "missed"
    if "any_of" in wanted:
        fits = list(named(rpc["root_cause"])) in wanted["any_of"]
    else:
        fits = all(tuple(one) in causes(rpc) for one in wanted["all_of"])
    return "right" if fits and blamed_for(rpc, blame["ns"]) else "wrong"


def case(report, bufscope, scenario, vantage):
    """(number of verdicts by kind, what is not right) of a scenario seen from one side."""
    with open(os.path.join(CAUSES, f"{scenario}.truth.json"), encoding="utf-8") as file:
        truth = json.load(file)
    path = os.path.join(CAUSES, f"{scenario}.{vantage}.pcap.gz")
    found = check_json(report, bufscope, path)
    counts = dict.fromkeys(("right", "wrong", "missed", "false"), 0)
    if not found:
        return counts, [f"{path} cannot be replayed"]
    rpcs = {number_of(rpc): rpc for rpc in found["rpcs"]}
    report.check(len(rpcs) == len(found["rpcs"]) and rpcs.keys() == truth["rpcs"].keys(), path,
                 f"{len(found['rpcs'])} RPCs, the client has {len(truth['rpcs'])}")
    wrongs = []
    for number, blame in truth["blame"].items():
        verdict = judged(rpcs.get(number), blame, vantage)
        counts[verdict] += 1
        if verdict != "right":
            wrongs.append(f"RPC {number}: {verdict}: {described(rpcs.get(number))}; truly "
                          f"{json.dumps(blame[vantage])} for {blame['ns'] / 1e6:.1f} ms")
    for number in truth["rpcs"].keys() & rpcs.keys() - truth["blame"].keys():
        rpc, log = rpcs[number], truth["rpcs"][number]
        if not borne_out(rpc, log["t_done"] - log["t_send"] - truth["usual_ns"]):
            counts["false"] += 1
            wrongs.append(f"RPC {number}: false: {described(rpc)}; it was not hit")
    return counts, wrongs


def main():
    bufscope = sys.argv[1]
    truths = sorted(glob.glob(os.path.join(CAUSES, "*.truth.json")))
    if not truths:
        print(f"skipped: no captures in {CAUSES}")
        return SKIPPED
    report = Report()
    passed = expected = 0
    print(f"{'scenario':26} seen by   hit right wrong missed false")
    for path in truths:
        scenario = os.path.basename(path).removesuffix(".truth.json")
        for vantage in VANTAGES:
            counts, wrongs = case(report, bufscope, scenario, vantage)
            reason, allowed = NOT_YET.get((scenario, vantage), (None, 0))
            hit = counts["right"] + counts["wrong"] + counts["missed"]
            note = f"  {reason}" if wrongs and reason else ""
            print(f"{scenario:26} {vantage:8} {hit:4} {counts['right']:5} {counts['wrong']:5} "
                  f"{counts['missed']:6} {counts['false']:5}{note}")
            if not wrongs:
                passed += 1
                if reason:
                    print("    right now: take it out of NOT_YET")
            elif len(wrongs) <= allowed:
                expected += 1
            for wrong in wrongs:
                print(f"    {wrong}")
            if len(wrongs) > allowed:
                for wrong in wrongs:
                    report.check(False, f"{scenario}, {vantage}", wrong)
    return report.status(f"{passed} cases right, {expected} not yet")


if __name__ == "__main__":
    sys.exit(main())
