#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Open-loop load on a RESP server, and an independent record of what it felt like.

Requests go out at their intended times whatever the server does, round robin
over the connections, behind each other on a connection that is still waiting.
Each request is one JSON line: client end, command, intended, send and completion
instants (ns since the Unix epoch), and whether the answer was the right one.
SIGTERM ends the requests early; their answers are still waited for.
"""
import argparse
import collections
import json
import select
import signal
import socket
import sys
import time

LUA = b"local x = 0 for i = 1, tonumber(ARGV[1]) do x = (x + i * i) % 7 end return x"

Request = collections.namedtuple("Request", "command key size intended sent")


def value_of(key, size):
    """What a key holds: told from the key alone, so that any GET can be checked."""
    return (key * (size // len(key) + 1))[:size]


def encode(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


class Connection:
    def __init__(self, address, port):
        self.sock = socket.create_connection((address, port), timeout=10)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.setblocking(False)
        self.name = "%s:%d" % self.sock.getsockname()[:2]
        self.out = bytearray()
        self.received = bytearray()
        self.waiting = collections.deque()

    def fileno(self):
        return self.sock.fileno()

    def send(self, request):
        if request.command == "GET":
            self.out += encode(b"GET", request.key)
        elif request.command == "EVAL":
            self.out += encode(b"EVAL", LUA, b"0", b"%d" % request.size)
        else:
            self.out += encode(b"SET", request.key, value_of(request.key, request.size))
        self.waiting.append(request)
        self.flush()

    def flush(self):
        try:
            while self.out:
                del self.out[:self.sock.send(self.out)]
        except BlockingIOError:
            pass

    def receive(self):
        """Reads what is there; yields (request, right) for each complete reply."""
        try:
            data = self.sock.recv(1 << 18)
        except BlockingIOError:
            return
        if not data:
            raise ConnectionError(f"{self.name}: closed by the server")
        self.received += data
        while self.waiting:
            end = self.received.find(b"\r\n")
            if end < 0:
                return
            line = bytes(self.received[:end])
            body = None
            end += 2
            if line[:1] == b"$" and line != b"$-1":
                size = int(line[1:])
                if len(self.received) < end + size + 2:
                    return
                body = bytes(self.received[end:end + size])
                end += size + 2
            del self.received[:end]
            request = self.waiting.popleft()
            if request.command == "GET":
                yield request, body == value_of(request.key, request.size)
            elif request.command == "EVAL":
                yield request, line[:1] == b":"
            else:
                yield request, line == b"+OK"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, default=6379)
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--rate", type=float, default=200, help="requests a second, all together")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--keys", type=int, default=16)
    parser.add_argument("--size", type=int, default=100, help="bytes of a value")
    parser.add_argument("--sets", type=int, default=10, help="one request in so many is a SET; 0: none, the keys are there")
    parser.add_argument("--patience", type=float, default=20,
                        help="seconds to wait for answers after the last request")
    parser.add_argument("--slow-at", type=int, help="after so many requests, halfway to the next, "
                        "a Lua loop on a connection of its own")
    parser.add_argument("--slow-turns", type=int, default=0, help="turns of that loop")
    parser.add_argument("--burst", type=int, default=1, help="requests sent at once")
    parser.add_argument("--warm", type=int, default=0, help="says 'warm' after so many answers")
    parser.add_argument("--log", required=True)
    return parser.parse_args()


def main():
    args = arguments()
    connections = [Connection(args.address, args.port) for _ in range(args.connections)]
    slow = Connection(args.address, args.port) if args.slow_at else None
    total = int(args.rate * args.seconds)
    interval = 1e9 / args.rate
    epoch = time.time_ns() - time.monotonic_ns()
    start = time.monotonic_ns()
    give_up = start + int((args.seconds + args.patience) * 1e9)
    sent = done = 0

    def enough(number, frame):
        nonlocal total, give_up
        total = sent
        give_up = time.monotonic_ns() + int(args.patience * 1e9)

    signal.signal(signal.SIGTERM, enough)

    def intended(number):
        return start + int(number // args.burst * args.burst * interval)

    print("running", flush=True)
    with open(args.log, "w", encoding="ascii") as log:
        while done < total + bool(args.slow_at):
            now = time.monotonic_ns()
            if now > give_up:
                print(f"{total - done} requests were not answered", file=sys.stderr)
                return 1
            while sent < total and intended(sent) <= now:
                key = b"k%d:%d" % (args.size, sent % args.keys)
                # Each key is set once before it is asked for.
                is_set = args.sets and (sent < args.keys or sent % args.sets == 0)
                connections[sent % args.connections].send(Request(
                    "SET" if is_set else "GET", key, args.size, intended(sent),
                    time.monotonic_ns()))
                sent += 1
            t_next = intended(sent) if sent < total else time.monotonic_ns() + 10**8
            if slow and sent >= args.slow_at:
                t_slow = int(intended(args.slow_at) - interval / 2)
                if t_slow <= time.monotonic_ns():
                    slow.send(Request("EVAL", b"", args.slow_turns, t_slow, time.monotonic_ns()))
                    connections.append(slow)
                    slow = None
                else:
                    t_next = t_slow
            wait = t_next - time.monotonic_ns()
            ready, writable, _ = select.select(
                connections, [c for c in connections if c.out], [], max(0, wait / 1e9))
            for connection in writable:
                connection.flush()
            for connection in ready:
                for request, right in connection.receive():
                    done += 1
                    if done == args.warm:
                        print("warm", flush=True)
                    now = time.monotonic_ns()
                    log.write(json.dumps({
                        "client": connection.name, "command": request.command,
                        "key": request.key.decode(), "t_intended": epoch + request.intended,
                        "t_send": epoch + request.sent, "t_done": epoch + now,
                        "latency_ns": now - request.intended, "ok": right}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
