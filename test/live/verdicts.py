# SPDX-License-Identifier: BSD-3-Clause
"""Judges diagnoses against what the load client saw.

The client's log is the truth: which requests a fault hit, and for how long. An
RPC of bufscope belongs to a request of the client by connection and time.
"""
MS = 1_000_000


def overlap_ns(request, begin, end):
    """How long a request was open within [begin, end]."""
    return max(0, min(request["t_done"], end) - max(request["t_send"], begin))


def hits(requests, begin, end, at_least_ns):
    """The requests that a fault of [begin, end] held up for that long."""
    return [r for r in requests if overlap_ns(r, begin, end) >= at_least_ns]


def within(rpcs, begin, end):
    """The RPCs that were open at some time in [begin, end]."""
    out = []
    for rpc in rpcs:
        first = int(rpc["t_request_first"] or 0)
        extent = rpc.get("latency_ns") or rpc.get("age_ns") or 0
        if first <= end and first + extent >= begin:
            out.append(rpc)
    return out


def match(requests, rpcs, slack_ns):
    """(request, its RPC or None) for each: same connection, nearest first byte, in slack."""
    left = sorted(rpcs, key=lambda rpc: int(rpc["t_request_first"]))
    pairs = []
    for request in sorted(requests, key=lambda r: r["t_send"]):
        near = [rpc for rpc in left if rpc["client"] == request["client"]
                and abs(int(rpc["t_request_first"]) - request["t_send"]) <= slack_ns]
        rpc = min(near, key=lambda one: abs(int(one["t_request_first"]) - request["t_send"]),
                  default=None)
        if rpc is not None:
            left.remove(rpc)
        pairs.append((request, rpc))
    return pairs


def first_of_connections(pairs):
    """Of each connection the RPC of its first request, where there is one."""
    first = {}
    for request, rpc in sorted(pairs, key=lambda pair: pair[0]["t_send"]):
        first.setdefault(request["client"], rpc)
    return [rpc for rpc in first.values() if rpc]


def causes(rpc):
    """All that the verdict leaves possible: {(buffer, cause)}; empty without a verdict."""
    root = rpc.get("root_cause")
    if not root:
        return set()
    return {(root["buffer"], root["cause"])} | {
        (one["buffer"], one["cause"]) for one in root.get("alternatives") or []}


def term_ns(rpc, wanted):
    """Time of an RPC's latency in any of these (buffer, cause)."""
    return sum(t["ns"] for t in rpc["terms"] if (t["buffer"], t["cause"]) in wanted)


class Verdict:
    """Complaints about a diagnosis; without any it is right."""

    def __init__(self):
        self.complaints = []

    @property
    def right(self):
        return not self.complaints

    def demand(self, truth, complaint):
        if not truth:
            self.complaints.append(complaint)
        return truth

    def found(self, pairs, fraction=0.95):
        """Nearly all requests that were hit are anomalies."""
        seen = sum(1 for _, rpc in pairs if rpc)
        self.demand(pairs, "the fault hit no request: nothing is shown")
        self.demand(seen >= fraction * len(pairs),
                    f"{len(pairs)} requests were hit, but {seen} of them called anomalous")

    def blame(self, rpcs, accepted, what, fraction=0.95):
        """Nearly all of these are blamed on exactly one of the accepted sets of causes."""
        accepted = [frozenset(one) for one in accepted]
        other = [rpc for rpc in rpcs if frozenset(causes(rpc)) not in accepted]
        if other:
            text = "; ".join(sorted({describe(rpc) for rpc in other})[:3])
            self.demand(len(other) <= (1 - fraction) * len(rpcs),
                        f"{len(other)} of {len(rpcs)} {what} are blamed on something else: {text}")

    def never(self, rpcs, cause):
        """None of these may be due to it."""
        guilty = [rpc for rpc in rpcs if cause in causes(rpc)]
        self.demand(not guilty, f"{len(guilty)} RPCs may be due to {cause[1]} of {cause[0]}, "
                    "which did not happen")

    def origin(self, rpcs, incidents, origins, what, fraction=0.95):
        """Nearly all of these belong to an incident with one of these origins."""
        known = {one["id"]: (one["origin"]["buffer"], one["origin"]["cause"]) for one in incidents}
        other = [known.get(rpc["incident"], ("no", "incident")) for rpc in rpcs
                 if known.get(rpc["incident"]) not in origins]
        self.demand(len(other) <= (1 - fraction) * len(rpcs),
                    f"{len(other)} of {len(rpcs)} {what} belong to another incident: "
                    f"{sorted(set(other))}")

    def time(self, rpc, wanted, truth_ns, tolerance_ns, what):
        """The time blamed is the true time."""
        blamed = term_ns(rpc, wanted)
        self.demand(abs(blamed - truth_ns) <= tolerance_ns,
                    f"{what}: blamed for {blamed / MS:.1f} ms, truly {truth_ns / MS:.1f} ms "
                    f"(tolerance {tolerance_ns / MS:.0f} ms)")

    def incident(self, incidents, begin, end, origins, slack_ns):
        """An incident with one of these origins lies in the time of the fault."""
        near = [one for one in incidents if int(one["t_begin"]) <= end + slack_ns
                and (one["t_end"] is None or int(one["t_end"]) >= begin - slack_ns)]
        seen = {(one["origin"]["buffer"], one["origin"]["cause"]) for one in near}
        self.demand(seen & set(origins), "no incident with origin "
                    f"{' or '.join(map(' '.join, origins))}, but {sorted(seen) or 'none'}")


def describe(rpc):
    return " or ".join(f"{cause} of {buffer}" for buffer, cause in sorted(causes(rpc))) or "nothing"
