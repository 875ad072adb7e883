# SPDX-License-Identifier: BSD-3-Clause
"""A small NFSv4.1 client: ONC RPC (RFC 5531) over TCP, compounds of RFC 8881.

It counts its calls, and notes when each began and ended: what bufscope says of
the server is held against that.
"""
import os
import struct
import time

import harness

PROGRAM, VERSION, COMPOUND = 100003, 4, 1
(CLOSE, GETFH, LOOKUP, OPEN, PUTFH, PUTROOTFH, READ, WRITE, EXCHANGE_ID, CREATE_SESSION,
 SEQUENCE, RECLAIM_COMPLETE) = (4, 10, 15, 18, 22, 24, 25, 38, 42, 43, 53, 58)
READ_WRITE_NO_DELEGATION = 0x403
UNSTABLE = 0


def u32(*values):
    return struct.pack(f"!{len(values)}I", *values)


def u64(value):
    return struct.pack("!Q", value)


def opaque(data):
    return u32(len(data)) + data + bytes(-len(data) % 4)


class Reader:
    """What is left of a reply."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        self.at += size
        return self.data[self.at - size:self.at]

    def u32(self):
        return struct.unpack("!I", self.take(4))[0]

    def u64(self):
        return struct.unpack("!Q", self.take(8))[0]

    def opaque(self):
        size = self.u32()
        data = self.take(size)
        self.take(-size % 4)
        return data


class Client:
    """A session on one connection, one call at a time."""

    def __init__(self, sock):
        self.sock = sock
        self.stream = sock.makefile("rb")
        self.name = "%s:%d" % sock.getsockname()[:2]
        self.calls = []
        self.sequence = 0
        self.session = self.owner = None
        self.credentials = u32(1) + opaque(u32(0) + opaque(b"client") + u32(0, 0, 0))

    def call(self, procedure, arguments, what):
        """The results of one call, as a Reader."""
        xid = len(self.calls) + 1
        message = u32(xid, 0, 2, PROGRAM, VERSION, procedure) + self.credentials + u32(0, 0)
        message += arguments
        begin = time.time_ns()
        self.sock.sendall(u32(0x80000000 | len(message)) + message)
        reply, last = b"", False
        while not last:
            mark, = struct.unpack("!I", self.receive(4))
            last = bool(mark & 0x80000000)
            reply += self.receive(mark & 0x7FFFFFFF)
        self.calls.append({"client": self.name, "command": what, "t_send": begin,
                           "t_done": time.time_ns()})
        reply = Reader(reply)
        got, kind, state = reply.u32(), reply.u32(), reply.u32()
        harness.expect((got, kind, state) == (xid, 1, 0), f"reply {got} {kind} {state} to {xid}")
        reply.u32()
        reply.opaque()
        accepted = reply.u32()
        harness.expect(accepted == 0, f"{what}: accept_stat {accepted}")
        return reply

    def receive(self, size):
        data = self.stream.read(size)
        harness.expect(len(data) == size, "the NFS server closed the connection")
        return data

    def compound(self, operations, what):
        """Sends [(number, arguments)]; returns a Reader behind the last one's status. All before
        must have results without a body, but for SEQUENCE."""
        if self.session:
            self.sequence += 1
            operations = [(SEQUENCE, self.session + u32(self.sequence, 0, 0, 0))] + operations
        body = opaque(b"") + u32(1, len(operations))
        body += b"".join(u32(number) + arguments for number, arguments in operations)
        reply = self.call(COMPOUND, body, what)
        status = reply.u32()
        harness.expect(status == 0, f"{what}: nfsstat4 {status}")
        reply.opaque()
        reply.u32()
        for number, _ in operations:
            reply.u32()
            reply.u32()
            if number == SEQUENCE:
                reply.take(36)
        return reply

    def begin(self):
        """NULL, then a client and a session of its own."""
        self.call(0, b"", "NULL")
        reply = self.compound([(EXCHANGE_ID, os.urandom(8) + opaque(self.name.encode()) +
                                u32(0x10000, 0, 0))], "EXCHANGE_ID")
        client, sequence = reply.u64(), reply.u32()
        channel = u32(0, 1 << 21, 1 << 21, 4096, 16, 8, 0)
        reply = self.compound([(CREATE_SESSION, u64(client) + u32(sequence, 0) + channel + channel +
                                u32(0x40000000, 1, 0))], "CREATE_SESSION")
        self.session = reply.take(16)
        self.compound([(RECLAIM_COMPLETE, u32(0))], "RECLAIM_COMPLETE")
        self.owner = u64(client) + opaque(b"owner")

    def lookup(self, name):
        """The handle of what the root has under that name."""
        reply = self.compound([(PUTROOTFH, b""), (LOOKUP, opaque(name.encode())), (GETFH, b"")],
                              "LOOKUP")
        return reply.opaque()

    def lookup_in(self, directory, name):
        reply = self.compound([(PUTFH, opaque(directory)), (LOOKUP, opaque(name.encode())),
                               (GETFH, b"")], "LOOKUP")
        return reply.opaque()

    def create(self, directory, name):
        """Creates and opens a file; its handle and stateid."""
        reply = self.compound([(PUTFH, opaque(directory)), (
            OPEN, u32(0, READ_WRITE_NO_DELEGATION, 0) + self.owner + u32(1, 0, 0, 0, 0) +
            opaque(name.encode()))], "OPEN")
        return self.lookup_in(directory, name), reply.take(16)

    def write(self, file, offset, data):
        reply = self.compound([(PUTFH, opaque(file[0])), (
            WRITE, file[1] + u64(offset) + u32(UNSTABLE) + opaque(data))], "WRITE")
        written = reply.u32()
        harness.expect(written == len(data), f"{written} of {len(data)} bytes written")

    def read(self, file, offset, size):
        reply = self.compound([(PUTFH, opaque(file[0])), (
            READ, file[1] + u64(offset) + u32(size))], "READ")
        reply.u32()
        return reply.opaque()

    def close(self, file):
        self.compound([(PUTFH, opaque(file[0])), (CLOSE, u32(0) + file[1])], "CLOSE")
