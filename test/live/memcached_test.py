# SPDX-License-Identifier: BSD-3-Clause
"""A real memcached behind bufscoped: text, binary and UDP clients of one service.

What is answered and what is not is counted twice: by the client, which reads
every byte, and by memcached's own statistics.
"""
import socket
import struct
import time

import harness
import stopped
from harness import SERVICE, expect

PORT = 11211
(GET, SET, DELETE, INCR, NOOP, STAT, GETQ, GETKQ, SETQ, ADDQ) = (
    0x00, 0x01, 0x04, 0x05, 0x0A, 0x10, 0x09, 0x0D, 0x11, 0x12)
MISS, EXISTS = 1, 2


class Text:
    """Counts what should be answered, and what should not."""

    def __init__(self, sock):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock, self.stream = sock, sock.makefile("rb")
        self.name = "%s:%d" % sock.getsockname()[:2]
        self.answered = self.oneway = 0

    def ask(self, request, *answer):
        """One request and the lines of its answer, which may have data among them."""
        begin = time.time_ns()
        self.sock.sendall(request + b"\r\n")
        for line in answer:
            got = self.stream.readline()
            expect(got == line + b"\r\n", f"{request!r}: {got!r}, not {line!r}")
        self.answered += 1
        return {"client": self.name, "t_send": begin, "t_done": time.time_ns()}

    def tell(self, request):
        """What is not answered."""
        self.sock.sendall(request + b"\r\n")
        self.oneway += 1

    def stats(self):
        """memcached's own counters."""
        self.sock.sendall(b"stats\r\n")
        self.answered += 1
        lines = iter(self.stream.readline, b"END\r\n")
        return {line.split()[1].decode(): line.split()[2].decode() for line in lines}


class Binary:
    """Requests by opaque, and the answers to them."""

    def __init__(self, sock):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock, self.stream = sock, sock.makefile("rb")
        self.asked = self.answers = 0

    def send(self, opcode, key=b"", extras=b"", value=b""):
        """Returns its opaque."""
        self.asked += 1
        body = extras + key + value
        self.sock.sendall(struct.pack("!BBHBBHIIQ", 0x80, opcode, len(key), len(extras), 0, 0,
                                      len(body), self.asked, 0) + body)
        return self.asked

    def receive(self):
        """(opaque, status, value) of the next answer; of statistics, of the packet that ends it."""
        while True:
            _, opcode, key, extras, _, status, body, opaque, _ = struct.unpack(
                "!BBHBBHIIQ", self.stream.read(24))
            value = self.stream.read(body)[key + extras:]
            if opcode != STAT or key == 0:
                self.answers += 1
                return opaque, status, value

    def ask(self, *request, status=0, value=b""):
        opaque = self.send(*request)
        got = self.receive()
        expect(got == (opaque, status, value), f"{request}: {got}")


def served(lab, *options, **service):
    lab.standard()
    server = lab.memcached(*options)
    kv = {"name": "cache", "address": SERVICE, "port": PORT, "protocol": "memcached", **service}
    return server, lab.bufscoped(services=[kv]).start()


def oneway(dataplane):
    return sum(one["oneway"] for one in dataplane.pages("services") if one["service"] == "cache")


def memcached_text_is_counted_as_by_itself(lab):
    _, dataplane = served(lab)
    client = Text(lab.connect("client", SERVICE, PORT))
    value = b"\r\nEND\r\n" + b"v" * 20000
    item = b"VALUE k%d 0 20007\r\n%s"
    for number in range(50):
        client.ask(b"set k%d 0 0 20007\r\n%s" % (number, value), b"STORED")
        client.tell(b"set q%d 0 0 2 noreply\r\n17" % number)
        client.ask(b"incr q%d 3" % number, b"20")
        client.ask(b"get k%d" % number, *(item % (number, value)).split(b"\r\n"), b"END")
        client.ask(b"get nothing", b"END")
        client.ask(b"touch k%d 60" % number, b"TOUCHED")
        client.tell(b"delete q%d noreply" % number)
        client.ask(b"delete q%d" % number, b"NOT_FOUND")
        # Quiet: a miss, a hit, a set, and a set that is refused.
        client.tell(b"mg q%d v q O1" % number)
        client.tell(b"ms m%d 2 q O2\r\n17" % number)
        client.ask(b"ms m%d 2 ME q O3\r\n18\r\nmg m%d v q O4\r\nmn" % (number, number),
                   b"NS O3", b"VA 2 O4", b"17", b"MN")
        client.answered += 2
    stats = client.stats()
    expect(int(stats["cmd_set"]) == 4 * 50, f"cmd_set {stats['cmd_set']}")
    expect(int(stats["cmd_get"]) == 4 * 50, f"cmd_get {stats['cmd_get']}")
    itself = sum(int(stats[name]) for name in (
        "cmd_set", "cmd_get", "cmd_touch", "incr_hits", "delete_hits", "delete_misses"))
    itself += 50 + 1  # mn and stats, which it does not count
    expect(itself == client.answered + client.oneway,
           f"memcached counts {itself}, the client {client.answered} and {client.oneway}")
    dataplane.answered("cache", client.answered)
    expect(oneway(dataplane) == client.oneway, f"{oneway(dataplane)} one-way, not {client.oneway}")


def memcached_binary_is_counted_as_by_itself(lab):
    _, dataplane = served(lab)
    client = Binary(lab.connect("client", SERVICE, PORT))
    value, flags = b"v" * 100000, struct.pack("!II", 0, 0)
    for number in range(50):
        key = b"k%d" % number
        client.ask(SET, key, flags, value)
        client.ask(GET, key, value=value)
        client.ask(GET, b"nothing", status=MISS, value=b"Not found")
        client.send(SETQ, b"q" + key, flags, b"x")
        client.send(GETQ, b"nothing")
        hits = [client.send(GETKQ, b"q" + key), client.send(GETQ, key)]
        refused = client.send(ADDQ, key, flags, b"y")
        last = client.send(NOOP)
        got = [client.receive()[:2] for _ in range(4)]
        expect(got == [(hits[0], 0), (hits[1], 0), (refused, EXISTS), (last, 0)], f"{got}")
    client.ask(STAT)
    expect(client.asked - client.answers == 2 * 50, "the client lost count")
    stats = Text(lab.connect("client", SERVICE, PORT)).stats()
    itself = int(stats["cmd_set"]) + int(stats["cmd_get"]) + 50 + 1 + 1  # noop, and stats twice
    expect(itself == client.asked + 1, f"memcached counts {itself}, the client {client.asked} and 1")
    dataplane.answered("cache", client.answers + 1)
    expect(oneway(dataplane) == 2 * 50, f"{oneway(dataplane)} one-way, not {2 * 50}")


def memcached_over_udp_is_counted(lab):
    _, dataplane = served(lab, "-U", str(PORT))
    client = Text(lab.connect("client", SERVICE, PORT))
    client.ask(b"set big 0 0 5000\r\n" + b"v" * 5000, b"STORED")
    with lab.inside("client"):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with sock:
        sock.settimeout(5)
        sock.connect((SERVICE, PORT))
        for number in range(50):
            sock.send(struct.pack("!4H", number, 0, 1, 0) + b"get big\r\n")
            total, answer = 1, b""
            while total:
                part = sock.recv(2048)
                got, _, count, _ = struct.unpack_from("!4H", part)
                total = count - 1 if not answer else total - 1
                answer += part[8:]
                expect(got == number, f"an answer to {got}, not {number}")
            expect(len(answer) == 5000 + 25, f"an answer of {len(answer)} bytes")
    dataplane.answered("cache", 50 + client.answered)


def memcached_that_stops_is_blamed(lab, probed=False):
    lab.standard()
    server = lab.memcached()
    kv = {"name": "cache", "address": SERVICE, "port": PORT, "protocol": "memcached"}
    if probed:
        kv["pid_file"] = stopped.pid_file(lab, server)
    dataplane = lab.bufscoped(services=[kv]).start()
    clients = [Text(lab.connect("client", SERVICE, PORT)) for _ in range(stopped.CONNECTIONS)]
    stopped.is_blamed(dataplane, "cache", "get", server, clients,
                      lambda client: client.ask(b"get nothing", b"END"), probed)
    dataplane.answered("cache", sum(client.answered for client in clients))


def memcached_that_stops_under_the_probe_is_blamed(lab):
    memcached_that_stops_is_blamed(lab, probed=True)


harness.main(memcached_text_is_counted_as_by_itself, memcached_binary_is_counted_as_by_itself,
             memcached_over_udp_is_counted, memcached_that_stops_is_blamed,
             memcached_that_stops_under_the_probe_is_blamed)
