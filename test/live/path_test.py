# SPDX-License-Identifier: BSD-3-Clause
"""No path becomes a black hole by tagging: transfers end complete, and refusal is counted.

client -- hop -- [bufscoped] -- server. The link client-hop is the narrow one.
"""
import files
import harness
from harness import SERVICE, expect, run

AWAY = "10.98.0.1"
SIZE = 2_000_000


def network(lab, mtu=1500, rules=None):
    """The hop routes, and filters what it forwards by nftables rules."""
    for host in ("client", "hop", "server"):
        lab.host(host)
    lab.cable(("client", "e0", f"{AWAY}/24"), ("hop", "e0", "10.98.0.254/24"), offloads=False)
    lab.cable((None, "bs-wire"), ("hop", "e1", "10.99.0.254/24"), offloads=False)
    lab.cable((None, "bs-local"), ("server", "e0", f"{SERVICE}/24"), offloads=False)
    # Only the hop's end is narrow: neither host's own MSS gives it away.
    run("ip", "-n", "hop", "link", "set", "e0", "mtu", str(mtu))
    run("ip", "-n", "client", "route", "add", "default", "via", "10.98.0.254")
    run("ip", "-n", "server", "route", "add", "default", "via", "10.99.0.254")
    run("ip", "netns", "exec", "hop", "sysctl", "-qw", "net.ipv4.ip_forward=1")
    if rules:
        with open(lab.path("rules"), "w", encoding="utf-8") as file:
            file.write("table ip hop {\n" + rules + "}\n")
        run("ip", "netns", "exec", "hop", "nft", "-f", lab.path("rules"))


def chain(hook, rule):
    return f" chain {hook} {{\n  type filter hook {hook} priority 0\n  {rule}\n }}\n"


def dropped(lab):
    """Packets that the hop's rule has dropped."""
    rules = run("ip", "netns", "exec", "hop", "nft", "list", "ruleset").split()
    return int(rules[rules.index("packets") + 1])


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
    """ICMP is lost: the service's kernel probes for the MTU (plain TCP would stop for ever)."""
    network(lab, 1400, chain("output", "icmp type destination-unreachable counter drop"))
    run("ip", "netns", "exec", "server", "sysctl", "-qw", "net.ipv4.tcp_mtu_probing=1")
    dataplane = lab.bufscoped(shim={"tag": "always"}, services=files.WEB).start()
    files.both_ways(lab, SIZE)
    expect(dropped(lab) > 0, "the hop lost no ICMP: nothing is shown")
    expect(dataplane.counter("path_refuses") >= 1, "path_refuses is 0")


def hop_that_drops_the_option(lab):
    """Tagged packets vanish; resent bytes go untagged, then the flow does."""
    network(lab, rules=chain("forward", "tcp option 253 exists counter drop"))
    dataplane = lab.bufscoped(shim={"tag": "always"}, services=files.WEB).start()
    files.both_ways(lab, SIZE)
    expect(dropped(lab) > 0, "the hop dropped nothing: nothing is shown")
    expect(dataplane.counter("path_refuses") >= 1, "path_refuses is 0")


def hop_that_drops_the_announcement(lab):
    """Negotiated: the SYN-ACK with an announcement vanishes, the resent one carries none."""
    network(lab, rules=chain("forward", "tcp option 253 exists counter drop"))
    lab.bufscoped(shim={"tag": "negotiated"}, services=files.WEB).start()
    files.both_ways(lab, SIZE)


harness.main(narrow_path_with_icmp, narrow_path_without_icmp, hop_that_drops_the_option,
             hop_that_drops_the_announcement)
