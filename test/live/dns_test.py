# SPDX-License-Identifier: BSD-3-Clause
"""A DNS server behind bufscoped: every query is answered and counted, over UDP and TCP."""
import socket
import struct

import harness
from harness import SERVICE, expect

NAME, ADDRESS = "kv.example.test", "192.0.2.7"
QUERIES = 50


def query(number):
    """An A query: RFC 1035 section 4.1."""
    labels = b"".join(bytes([len(part)]) + part.encode() for part in NAME.split("."))
    return struct.pack("!6H", number, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!2H", 1, 1)


def check(number, answer):
    got, flags, _, answers = struct.unpack_from("!4H", answer)
    expect(got == number and flags & 0x800F == 0x8000 and answers == 1,
           f"query {number}: id {got}, flags {flags:#x}, {answers} answers")
    expect(answer.endswith(socket.inet_aton(ADDRESS)), f"query {number}: another address")


def dns_is_answered_and_counted(lab):
    lab.standard()
    lab.dnsmasq({NAME: ADDRESS})
    dataplane = lab.bufscoped(services=[
        {"name": "dns", "address": SERVICE, "port": 53, "protocol": "dns"}]).start()
    with lab.inside("client"):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with sock:
        sock.settimeout(5)
        sock.connect((SERVICE, 53))
        for number in range(QUERIES):
            sock.send(query(number))
            check(number, sock.recv(4096))
    sock = lab.connect("client", SERVICE, 53)
    stream = sock.makefile("rb")
    for number in range(QUERIES):
        message = query(number)
        sock.sendall(struct.pack("!H", len(message)) + message)
        check(number, stream.read(struct.unpack("!H", stream.read(2))[0]))
    dataplane.answered("dns", 2 * QUERIES)


harness.main(dns_is_answered_and_counted)
