# SPDX-License-Identifier: BSD-3-Clause
"""Frames as drivers make them: a port that completes checksums, VLAN tags, MTUs that differ."""
import os
import socket
import struct

import files
import harness
from harness import CLIENT, SERVICE, SERVICE6, expect, run, wait_for

SIZE = 20_000_000
SOL_PACKET, PACKET_AUXDATA, TP_STATUS_VLAN_VALID = 263, 8, 0x10


def checksums_completed_by_a_tap(lab):
    """The client leaves its checksums to hardware; the service's port, a tap, completes them."""
    lab.host("client")
    lab.host("server")
    lab.cable((None, "bs-wire"), ("client", "e0", f"{CLIENT}/24"))
    dataplane = lab.bufscoped(ports={"local": {"device": ["net_tap0,iface=tap0"]}},
                              services=files.WEB).start()
    run("ip", "link", "set", "tap0", "netns", "server")
    run("ip", "-n", "server", "addr", "add", f"{SERVICE}/24", "dev", "tap0")
    run("ip", "-n", "server", "link", "set", "tap0", "up")
    files.both_ways(lab, SIZE)
    expect(dataplane.counter("checksum_offloaded") > 1000, "the tap completed no checksum")
    expect(dataplane.counter("tx_prepare_failed") == 0, "the tap refused packets")
    counters = run("ip", "netns", "exec", "server", "cat", "/proc/net/snmp").splitlines()
    names, values = [line.split() for line in counters if line.startswith("Tcp:")]
    expect(values[names.index("InCsumErrors")] == "0", "the service found wrong checksums")


def tags_of(sock):
    """The next frame that somebody else sent to port 9: its VLAN tags as (type, ID), outermost
    first. The kernel takes the outermost out and tells it beside the frame."""
    while True:
        frame, ancillary, _, source = sock.recvmsg(2048, 256)
        if source[2] == socket.PACKET_OUTGOING or not frame.endswith(b"tagged"):
            continue
        tags = []
        for level, kind, data in ancillary:
            if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
                status, _, _, _, _, tci, tpid = struct.unpack("=IIIHHHH", data)
                if status & TP_STATUS_VLAN_VALID:
                    tags.append((tpid, tci))
        at = 12
        while frame[at:at + 2] in (b"\x81\x00", b"\x88\xa8"):
            tags.append(struct.unpack("!HH", frame[at:at + 4]))
            at += 4
        return tags


def vlans(lab, cases):
    """Frames tagged by hand, as a trunk brings them, both ways."""
    lab.standard()
    dataplane = lab.bufscoped().start()
    ends = []
    for host in ("client", "server"):
        with lab.inside(host):
            sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(harness.ETH_P_ALL))
        lab.undo.callback(sock.close)
        sock.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        sock.settimeout(10)
        sock.bind(("e0", harness.ETH_P_ALL))
        ends.append(sock)
    ip = bytes.fromhex("4500002200010000401100000a6300010a630002") + bytes.fromhex("9c400009000e0000")
    for sender, receiver in (ends, reversed(ends)):
        for tags in cases:
            head = b"".join(struct.pack("!HH", *tag) for tag in tags)
            sender.send(b"\xff" * 6 + b"\x02\0\0\0\0\x01" + head + b"\x08\0" + ip + b"tagged")
            got = tags_of(receiver)
            expect(got == tags, f"{tags} arrived as {got}")
    expect(dataplane.counter("bad_ip") == 0, "frames were not understood")


def vlans_over_the_best_driver(lab):
    vlans(lab, [[], [(0x8100, 5)], [(0x8100, 0x6005)], [(0x88a8, 100), (0x8100, 7)]])


def vlans_over_af_packet(lab):
    """Its driver puts the tag that the kernel takes out back as 802.1Q, whatever it was."""
    os.environ["BUFSCOPE_DRIVER"] = "af_packet"
    lab.undo.callback(os.environ.pop, "BUFSCOPE_DRIVER")
    vlans(lab, [[], [(0x8100, 5)], [(0x8100, 0x6005)], [(0x8100, 100), (0x8100, 7)]])


def a_frame_that_the_other_port_cannot_send(lab):
    """Jumbo frames toward a port of 1500: counted under a name, and nothing cut leaves."""
    lab.host("client")
    lab.host("server")
    lab.cable((None, "bs-wire"), ("client", "e0", f"{CLIENT}/24"), mtu=1900, offloads=False)
    lab.cable((None, "bs-local"), ("server", "e0", f"{SERVICE}/24"), offloads=False)
    dataplane = lab.bufscoped().start()
    with lab.inside("client"):
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with lab.inside("server"):
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with client, server:
        server.bind((SERVICE, 9))
        server.settimeout(10)
        client.sendto(b"s" * 1472, (SERVICE, 9))  # 1500 with its headers
        expect(len(server.recv(65536)) == 1472, "what fits did not arrive")
        for size in (1473, 1800):
            client.sendto(b"l" * size, (SERVICE, 9))
        wait_for("two to be counted", lambda: dataplane.counter("tx_too_long") == 2)
        client.sendto(b"t" * 1472, (SERVICE, 9))
        expect(server.recv(65536) == b"t" * 1472, "the port does not go on behind them")
    answer = dataplane.ask("status")
    expect([port["mtu"] for port in answer["ports"]] == [1900, 1500], "not the interfaces' MTUs")


def fragments(lab):
    """A datagram of 8000 bytes, both IP versions: its fragments go with its service."""
    lab.standard(offloads=False)
    services = [{"name": name, "address": address, "port": 53, "protocol": "dns"}
                for name, address in (("four", SERVICE), ("six", SERVICE6))]
    dataplane = lab.bufscoped(services=services).start()
    for address in (SERVICE, SERVICE6):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with lab.inside("client"):
            client = socket.socket(family, socket.SOCK_DGRAM)
        with lab.inside("server"):
            server = socket.socket(family, socket.SOCK_DGRAM)
        with client, server:
            server.bind((address, 53))
            server.settimeout(10)
            client.settimeout(10)
            query = b"\x12\x34\1\0\0\1\0\0\0\0\0\0\1a\1b\0\0\1\0\1".ljust(8000, b"q")
            client.sendto(query, (address, 53))
            got, source = server.recvfrom(65536)
            expect(got == query, "the query arrived otherwise")
            server.sendto(b"\x12\x34\x81\x80" + query[4:], source)
            expect(len(client.recv(65536)) == 8000, "the answer did not arrive")
    dataplane.answered("four", 1)
    dataplane.answered("six", 1)
    expect(dataplane.counter("fragment") == 24, f"{dataplane.counter('fragment')} fragments")
    expect(dataplane.counter("unattributed_fragment") == 0, "fragments of nobody")


harness.main(checksums_completed_by_a_tap, vlans_over_the_best_driver,
             vlans_over_af_packet, a_frame_that_the_other_port_cannot_send, fragments)
