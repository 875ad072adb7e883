# SPDX-License-Identifier: BSD-3-Clause
"""100 MB each way arrive intact over a path that loses packets.

client [near] -- hop -- [far] -- server. The hop routes and loses one packet in 200 at random, both
ways, but for SYNs: whose announcement is lost is not tagged for ten minutes (path_test.py). IPv4
and IPv6, with the hosts' offloads on (checksums half done, frames larger than a segment) and off,
tagged always by the far instance, and negotiated between the two.
"""
import files
import harness
from harness import SERVICE, SERVICE6, expect, run

SIZE = 100_000_000
LOSS = """table inet hop {
 chain forward {
  type filter hook forward priority 0
  tcp flags & syn == 0 numgen random mod 200 == 0 counter drop
 }
}
"""


def network(lab, offloads, two):
    for host in ("client", "hop", "server"):
        lab.host(host)
    client = ("client", "e0", "10.98.0.1/24", "fd98::1/64")
    hop = ("hop", "e0", "10.98.0.254/24", "fd98::fe/64")
    if two:
        lab.cable((None, "near-local"), client, offloads=offloads)
        lab.cable((None, "near-wire"), hop, offloads=offloads)
    else:
        lab.cable(client, hop, offloads=offloads)
    lab.cable((None, "bs-wire"), ("hop", "e1", "10.99.0.254/24", "fd99::fe/64"), offloads=offloads)
    lab.cable((None, "bs-local"), ("server", "e0", f"{SERVICE}/24", f"{SERVICE6}/64"),
              offloads=offloads)
    for name in ("net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"):
        run("ip", "netns", "exec", "hop", "sysctl", "-qw", f"{name}=1")
    for host, net in (("client", 98), ("server", 99)):
        run("ip", "-n", host, "route", "add", "default", "via", f"10.{net}.0.254")
        run("ip", "-n", host, "-6", "route", "add", "default", "via", f"fd{net}::fe")
    with open(lab.path("loss"), "w", encoding="utf-8") as file:
        file.write(LOSS)


def lose(lab):
    run("ip", "netns", "exec", "hop", "nft", "-f", lab.path("loss"))


def lost():
    words = run("ip", "netns", "exec", "hop", "nft", "list", "ruleset").split()
    return int(words[words.index("packets") + 1])


def transfer(ipv6, offloads, tag):
    def test(lab):
        two = tag == "negotiated"
        network(lab, offloads, two)
        settings = {"shim": {"tag": tag}, "services": files.WEB6 if ipv6 else files.WEB}
        instances = [lab.bufscoped(**settings, node=1).start()]
        if two:
            instances.append(lab.bufscoped("near-wire", "near-local", **settings, node=2).start())
        sniffer = lab.sniff("server")
        lose(lab)
        files.both_ways(lab, SIZE, address=SERVICE6 if ipv6 else SERVICE)
        sniffer.stop()
        expect(lost() > 20, f"the hop lost {lost()} packets: nothing is shown")
        expect(sniffer.segments > 0 and sniffer.shims == 0, "a shim reached the server")
        for one in instances:
            expect(one.counter("tagged") > 0, "nothing was tagged")
            for name in ("bad_chain", "tx_too_long", "cut_by_port", "tx_prepare_failed"):
                expect(one.counter(name) == 0, f"{name} is {one.counter(name)}")
        print(f"       lost {lost()}, " + ", ".join(
            f"{name} {[one.counter(name) for one in instances]}"
            for name in ("tagged", "shim_removed", "path_refuses", "checksum_completed",
                         "retransmissions")))
    test.__name__ = f"lossy_ipv{6 if ipv6 else 4}_{'offloads' if offloads else 'plain'}_{tag}"
    return test


harness.main(*(transfer(ipv6, offloads, tag) for ipv6 in (False, True)
               for offloads in (True, False) for tag in ("always", "negotiated")))
