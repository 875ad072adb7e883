# SPDX-License-Identifier: BSD-3-Clause
"""Wrong configurations end with status 1 and a line that says what to do; reload."""
import copy
import json
import signal
import subprocess

import harness
from harness import SERVICE, expect, program, wait_for


def refused(path, *words, arguments=()):
    """bufscoped -c path ends with 1 and one line with all these words."""
    done = subprocess.run([program("bufscoped"), "-c", path, *arguments], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=20)
    expect(done.returncode == 1, f"{path}: exit status {done.returncode}: {done.stderr}")
    for word in words:
        expect(any(word in line for line in done.stderr.splitlines()),
               f"{path}: no line says {word!r}: {done.stderr}")


def wrong_configurations_are_refused(lab):
    lab.standard()
    dataplane = lab.bufscoped()
    dataplane.driver = "af_packet"
    good = dataplane.config()

    def with_change(name, change):
        config = copy.deepcopy(good)
        change(config)
        path = lab.path(name)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file, indent=1)
        return path

    refused(with_change("key", lambda c: c.update(servics=[])), "servics")
    refused(with_change("value", lambda c: c["services"][0].update(port=70000)),
            "services[0].port", "70000")
    refused(with_change("missing", lambda c: c.pop("ports")), "ports")
    refused(with_change("path", lambda c: c["paths"][0].update(wire="wier")), "wier")
    refused(with_change("faraway", lambda c: c["services"][0].update(address="10.99.0.300")),
            "services[0].address", "10.99.0.300")
    refused(with_change("absent", lambda c: c["ports"]["wire"].update(
        device=["net_af_packet7,iface=absent0"])), "absent0")
    refused(lab.path("no-such-file"), "no-such-file")
    with open(lab.path("broken"), "w", encoding="utf-8") as file:
        file.write('{\n "node": 1,\n "eal": {]\n}\n')
    refused(lab.path("broken"), "broken:3")
    refused(with_change("checked", lambda c: c["shim"].update(tag="sometimes")
                        if "shim" in c else c.update(shim={"tag": "sometimes"})),
            "shim.tag", "sometimes", arguments=("--check",))


def check_prints_the_chain(lab):
    lab.standard()
    dataplane = lab.bufscoped()
    dataplane.driver = "af_packet"
    out = harness.run(program("bufscoped"), "-c", dataplane.write(dataplane.config()), "--check")
    for buffer in ("wire.rx", "kv.app.in", "local.tx", "local.rx", "kv.app.out", "wire.tx"):
        expect(buffer in out, f"the chain lacks {buffer}: {out}")
    expect("65536 flows and 16384 RPCs, 117 MiB" in out, f"no size of tables: {out}")


def reload_takes_thresholds_and_refuses_the_rest(lab):
    lab.standard()
    lab.redis()
    dataplane = lab.bufscoped().start()
    config = dataplane.config()
    # Devices keep the numbers that they were started with.
    with open(lab.path(f"{dataplane.prefix}.json"), encoding="utf-8") as file:
        config["ports"] = json.load(file)["ports"]

    def slo():
        return harness.find(dataplane.pages("services"), "slo_ns")

    config["services"][0]["slo"] = "7ms"
    dataplane.write(config)
    dataplane.process.send(signal.SIGHUP)
    wait_for("the new SLO", lambda: 7_000_000 in slo())

    config["services"][0]["slo"] = "9ms"
    config["shim"] = {"tag": "off"}
    dataplane.write(config)
    dataplane.process.send(signal.SIGHUP)
    dataplane.process.wait_for("the refusal", lambda: "shim" in dataplane.process.output())
    expect(7_000_000 in slo(), f"a refused reload changed the SLO to {slo()}")
    expect(lab.reachable("client", SERVICE, 6379), "the service is not reached after the reload")


def slo_of_an_operation_reaches_the_diagnosis_until_a_reload(lab):
    lab.standard()
    lab.redis()
    dataplane = lab.bufscoped(services=[{
        "name": "kv", "address": SERVICE, "port": 6379, "protocol": "resp", "slo": "50ms",
        "operations": [{"match": "GET", "slo": "1us"}]}]).start()
    sock = lab.connect("client", SERVICE, 6379)

    def slow_gets():
        """GETs that came back as beyond their SLO; no SET does."""
        for _ in range(20):
            harness.resp(sock, "SET", "a", "b")
            harness.resp(sock, "GET", "a")
        rpcs = [rpc for rpc in dataplane.anomalies() if "slo" in rpc["anomalous_by"]]
        expect(all(rpc["label"].startswith("GET") for rpc in rpcs), f"beyond the SLO: {rpcs}")
        return rpcs

    # Full records of RPCs this fast come once the analyzer has asked for them.
    wait_for("GETs beyond their SLO", slow_gets, interval=0.1)
    config = dataplane.config()
    with open(lab.path(f"{dataplane.prefix}.json"), encoding="utf-8") as file:
        config["ports"] = json.load(file)["ports"]
    config["services"][0]["operations"] = []
    dataplane.write(config)
    dataplane.process.send(signal.SIGHUP)

    def quiet():
        before = len(slow_gets())
        harness.hold(0.5)
        return len(slow_gets()) == before

    wait_for("no more of them", quiet)


harness.main(wrong_configurations_are_refused, check_prints_the_chain,
             reload_takes_thresholds_and_refuses_the_rest,
             slo_of_an_operation_reaches_the_diagnosis_until_a_reload)
