# SPDX-License-Identifier: BSD-3-Clause
"""HTTP/2 of a real client and a real server, many streams on one connection."""
import harness
from files import make_file
from harness import SERVICE, expect, wait_for

STREAMS = 200
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SERVICES = [{"name": "web", "address": SERVICE, "port": 80, "protocol": "http1",
             "operations": [{"match": "GET /", "slo": "1us"}]}]


def h2load(lab, count, at_a_time, *arguments):
    """So many requests over one connection."""
    said = harness.run("ip", "netns", "exec", "client", "h2load", "-n", str(count), "-c", "1", "-m",
                       str(at_a_time), *arguments)
    expect(f"{count} succeeded, 0 failed, 0 errored" in said, f"h2load: {said}")


def served(lab, shim):
    """nginx that speaks HTTP/2 on a port said to be HTTP/1: the preface decides."""
    lab.standard()
    lab.nginx(listen="http2")
    make_file(lab.path("www/small"), 100)
    make_file(lab.path("www/large"), 3_000_000)
    dataplane = lab.bufscoped(shim={"tag": shim}, services=SERVICES).start()
    wait_for("the path to stand", lambda: lab.reachable("client", SERVICE, 80))
    return dataplane


def streams_of_one_connection_are_rpcs_of_their_own(lab):
    dataplane = served(lab, "always")
    h2load(lab, STREAMS, 50, f"http://{SERVICE}/small?n=1")
    dataplane.answered("web", STREAMS)
    anomalies = wait_for("the anomalies", lambda: [
        one for one in dataplane.anomalies() if one["label"] == "GET /small"][:10] or None)
    for one in anomalies:
        expect(one["protocol"] == "http2" and one["status"] == 200, f"{one}")
    expect(dataplane.counter("bytes_unparsed") == 0, "bytes that made no sense")
    expect(dataplane.counter("tagged") > 0, "nothing was tagged")


def a_large_answer_and_a_trace_are_told(lab):
    dataplane = served(lab, "off")
    h2load(lab, 1, 1, "-H", f"traceparent: 00-{TRACE}-{PARENT}-01", f"http://{SERVICE}/small")
    h2load(lab, 1, 1, f"http://{SERVICE}/large")
    dataplane.answered("web", 2)
    one = wait_for("the anomaly", lambda: next(
        (rpc for rpc in dataplane.anomalies() if rpc["label"] == "GET /small"), None))
    expect((one["trace_id"], one["parent_span_id"]) == (TRACE, PARENT), f"the trace: {one}")
    large = wait_for("the anomaly", lambda: next(
        (rpc for rpc in dataplane.anomalies() if rpc["label"] == "GET /large"), None))
    expect(large["response_bytes"] > 3_000_000 and large["trace_id"] is None, f"{large}")


harness.main(streams_of_one_connection_are_rpcs_of_their_own, a_large_answer_and_a_trace_are_told)
