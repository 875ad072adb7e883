# SPDX-License-Identifier: BSD-3-Clause
"""No path becomes a black hole by tagging: transfers end complete, and refusal is counted.

client -- near -- far -- [bufscoped] -- server. The hops route; the link between them is the
narrow one, so that neither host's own MSS gives it away.
"""
import files
import harness
from harness import SERVICE, expect, run

AWAY = "10.98.0.1"
SIZE = 2_000_000
HOPS = ("near", "far")
LOSE_ICMP = """ chain output {
  type filter hook output priority 0
  icmp type destination-unreachable counter drop
 }
"""
LOSE_OPTION = """ chain forward {
  type filter hook forward priority 0
  tcp option 253 exists counter drop
 }
"""


def network(lab, mtu=1500, rules=None):
    """The hops filter by nftables rules."""
    for host in ("client", *HOPS, "server"):
        lab.host(host)
    lab.cable(("client", "e0", f"{AWAY}/24"), ("near", "e0", "10.98.0.254/24"), offloads=False)
    lab.cable(("near", "e1", "10.97.0.1/24"), ("far", "e0", "10.97.0.2/24"), mtu, offloads=False)
    lab.cable((None, "bs-wire"), ("far", "e1", "10.99.0.254/24"), offloads=False)
    lab.cable((None, "bs-local"), ("server", "e0", f"{SERVICE}/24"), offloads=False)
    for host, gateway in (("client", "10.98.0.254"), ("near", "10.97.0.2"), ("far", "10.97.0.1"),
                          ("server", "10.99.0.254")):
        run("ip", "-n", host, "route", "add", "default", "via", gateway)
    for hop in HOPS:
        run("ip", "netns", "exec", hop, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        if rules:
            with open(lab.path("rules"), "w", encoding="utf-8") as file:
                file.write("table ip hop {\n" + rules + "}\n")
            run("ip", "netns", "exec", hop, "nft", "-f", lab.path("rules"))


def dropped(lab):
    """Packets that the hops' rules have dropped."""
    total = 0
    for hop in HOPS:
        rules = run("ip", "netns", "exec", hop, "nft", "list", "ruleset").split()
        total += int(rules[rules.index("packets") + 1])
    return total


def narrow_path_with_icmp(lab):
    """ICMP too-big reaches the service, lowered by the shim: nothing is given up."""
    network(lab, 1400)
    dataplane = lab.bufscoped(shim={"tag": "always"}, services=files.WEB).start()
    files.both_ways(lab, SIZE)
    expect(dataplane.counter("icmp_mtu_lowered") >= 1, "no ICMP too-big was lowered")
    expect(dataplane.counter("path_refuses") == 0, "tagging was given up on a path that works")
    expect(dataplane.counter("tagged") > 0, "nothing was tagged")
    # What the service's kernel learned is the link's MTU less the 20 bytes of the shim.
    route = run("ip", "-n", "server", "route", "get", AWAY)
    expect("mtu 1380" in route, f"the service did not learn 1380: {route}")


def narrow_path_without_icmp(lab):
    """ICMP is lost: the hosts' kernels probe for the MTU (plain TCP would stop for ever)."""
    network(lab, 1400, LOSE_ICMP)
    for host in ("client", "server"):
        run("ip", "netns", "exec", host, "sysctl", "-qw", "net.ipv4.tcp_mtu_probing=1")
    dataplane = lab.bufscoped(shim={"tag": "always"}, services=files.WEB).start()
    files.both_ways(lab, SIZE)
    expect(dropped(lab) > 0, "the hops lost no ICMP: nothing is shown")
    expect(dataplane.counter("path_refuses") >= 1, "path_refuses is 0")


def hop_that_drops_the_option(lab):
    """Tagged packets vanish; resent bytes go untagged, then the flow does."""
    network(lab, rules=LOSE_OPTION)
    dataplane = lab.bufscoped(shim={"tag": "always"}, services=files.WEB).start()
    files.both_ways(lab, SIZE)
    expect(dropped(lab) > 0, "the hops dropped nothing: nothing is shown")
    expect(dataplane.counter("path_refuses") >= 1, "path_refuses is 0")


def hop_that_drops_the_announcement(lab):
    """Negotiated: the SYN-ACK with an announcement vanishes, the resent one carries none."""
    network(lab, rules=LOSE_OPTION)
    lab.bufscoped(shim={"tag": "negotiated"}, services=files.WEB).start()
    files.both_ways(lab, SIZE)


harness.main(narrow_path_with_icmp, narrow_path_without_icmp, hop_that_drops_the_option,
             hop_that_drops_the_announcement)
