# SPDX-License-Identifier: BSD-3-Clause
"""Shims that travel with datagrams and in front of the Ethertype: services and clients see none
they cannot bear."""
import contextlib
import socket
import struct

import harness
from harness import CLIENT, SERVICE, SERVICE6, expect

NAME, ADDRESS = "kv.example.test", "192.0.2.7"
QUERIES = 200


def query(number, name=NAME):
    """An A query: RFC 1035 section 4.1. The name makes its length even or odd."""
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return struct.pack("!6H", number, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!2H", 1, 1)


def ask(lab, address, count=QUERIES):
    """Queries one by one from one socket; each is answered with the address, at once."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with lab.inside("client"):
        sock = socket.socket(family, socket.SOCK_DGRAM)
    with sock:
        sock.settimeout(5)
        sock.connect((address, 53))
        for number in range(count):
            sock.send(query(number, NAME if number % 2 else "x" + NAME))
            answer = sock.recv(4096)
            got, flags = struct.unpack_from("!2H", answer)
            expect(got == number and flags & 0x800F == 0x8000, f"query {number}: {answer[:12]!r}")
            expect(answer.endswith(socket.inet_aton(ADDRESS)), f"query {number}: another address")


def service(address=SERVICE):
    return [{"name": "dns", "address": address, "port": 53, "protocol": "dns"}]


def names(lab, address=SERVICE):
    lab.dnsmasq({NAME: ADDRESS, "x" + NAME: ADDRESS}, address=address)


def answers_with_udp_options_reach_a_kernel_that_knows_none(lab):
    lab.standard()
    names(lab)
    dataplane = lab.bufscoped(shim={"tag": "always", "udp": "udp-option"},
                              services=service()).start()
    sniffer = lab.sniff("client")
    ask(lab, SERVICE)
    sniffer.stop()
    dataplane.answered("dns", QUERIES)
    expect(dataplane.counter("tagged") == QUERIES, f"{dataplane.counter('tagged')} tagged")
    expect(sniffer.shims == QUERIES, f"{sniffer.shims} shims reached the client")
    expect(dataplane.counter("path_refuses") == 0, "given up without a loss")


def they_do_over_ipv6(lab):
    lab.standard()
    names(lab, SERVICE6)
    lab.bufscoped(shim={"tag": "always", "udp": "udp-option"}, services=service(SERVICE6)).start()
    sniffer = lab.sniff("client")
    ask(lab, SERVICE6)
    sniffer.stop()
    expect(sniffer.shims == QUERIES, f"{sniffer.shims} shims reached the client")


def between_two(lab, shim):
    """client [near] -- [far] server: near begins, far answers in kind; no host sees a shim."""
    lab.host("client")
    lab.host("server")
    lab.cable((None, "near-local"), ("client", "e0", f"{CLIENT}/24"))
    lab.cable((None, "near-wire"), (None, "far-wire"))
    lab.cable((None, "far-local"), ("server", "e0", f"{SERVICE}/24"))
    names(lab)
    far = lab.bufscoped("far-wire", "far-local", shim={"tag": "negotiated", **shim}, node=1,
                        services=service(), ports={"wire": {"trust_shim": True}}).start()
    near = lab.bufscoped("near-wire", "near-local", shim={"tag": "always", **shim}, node=2,
                         services=service()).start()
    client, server = lab.sniff("client"), lab.sniff("server")
    ask(lab, SERVICE)
    for sniffer in (client, server):
        sniffer.stop()
        expect(sniffer.shims == 0, f"{sniffer.shims} shims reached a host")
    for one in (near, far):
        one.answered("dns", QUERIES)
        tagged, removed = one.counter("tagged"), one.counter("shim_removed")
        expect(tagged == QUERIES, f"{tagged} tagged, not {QUERIES}")
        expect(removed == QUERIES, f"{removed} removed, not {QUERIES}")
    expect(far.counter("shim_untrusted") == 0, "far did not adopt")


def udp_options_between_two(lab):
    between_two(lab, {"udp": "udp-option"})


def ethertypes_between_two(lab):
    between_two(lab, {"udp": "ether", "tcp": "ether"})


def filtered(lab, rules):
    """nftables rules on what comes in at the client."""
    with open(lab.path("rules"), "w", encoding="utf-8") as file:
        file.write("table inet f { chain in { type filter hook input priority 0;\n"
                   + rules + "\n}\n}\n")
    harness.run("ip", "netns", "exec", "client", "nft", "-f", lab.path("rules"))


def connection_tracking_finds_udp_options_valid(lab):
    """It sums the whole IP packet by its IP length: what the OCS is for."""
    lab.standard()
    names(lab)
    lab.bufscoped(shim={"tag": "always", "udp": "udp-option"}, services=service()).start()
    filtered(lab, "udp sport 53 ct state invalid drop\nudp sport 53 ct state established accept\n"
                  "udp sport 53 drop")
    sniffer = lab.sniff("client")
    ask(lab, SERVICE)
    sniffer.stop()
    expect(sniffer.shims == QUERIES, f"{sniffer.shims} shims reached the client")


def a_path_that_drops_udp_options_costs_two_retries(lab):
    lab.standard()
    names(lab)
    dataplane = lab.bufscoped(shim={"tag": "always", "udp": "udp-option"},
                              services=service()).start()
    # The answer to NAME: 8 of UDP, 12 + 21 of header and question, 16 of answer; 23 of options.
    filtered(lab, f"udp sport 53 ip length {20 + 8 + 12 + 21 + 16 + 23} counter drop")
    tries = []
    for number in range(5):
        with lab.inside("client"):
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with sock:
            sock.settimeout(0.5)
            sock.connect((SERVICE, 53))
            for attempt in range(1, 5):
                sock.send(query(number))
                with contextlib.suppress(TimeoutError):
                    sock.recv(4096)
                    tries.append(attempt)
                    break
    expect(tries == [2, 2, 1, 1, 1], f"tries: {tries}")
    expect(dataplane.counter("path_refuses") == 1, "the path does not refuse")


harness.main(answers_with_udp_options_reach_a_kernel_that_knows_none, they_do_over_ipv6,
             connection_tracking_finds_udp_options_valid,
             a_path_that_drops_udp_options_costs_two_retries, udp_options_between_two,
             ethertypes_between_two)
