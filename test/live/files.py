# SPDX-License-Identifier: BSD-3-Clause
"""Files over HTTP, whole or not at all."""
import hashlib
import os

from harness import SERVICE, SERVICE6, expect, wait_for

WEB = [{"name": "web", "address": SERVICE, "port": 80, "protocol": "http1"}]
WEB6 = [{**WEB[0], "address": SERVICE6}]


def make_file(path, size):
    """`size` bytes that do not repeat; returns their SHA-256."""
    digest = hashlib.sha256()
    with open(path, "wb") as file:
        while size > 0:
            block = os.urandom(min(size, 1 << 20))
            file.write(block)
            digest.update(block)
            size -= len(block)
    return digest.hexdigest()


def digest_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_head(stream):
    """Status and content length of a response, or of none (100) the next."""
    status = int(stream.readline().split()[1])
    length = 0
    for line in iter(stream.readline, b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return status, length


def get(sock, path):
    """SHA-256 of what the server sends."""
    sock.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    with sock.makefile("rb", buffering=1 << 18) as stream:
        status, left = read_head(stream)
        expect(status == 200, f"GET {path}: {status}")
        digest = hashlib.sha256()
        while left > 0:
            block = stream.read(min(left, 1 << 18))
            expect(block, f"GET {path}: {left} bytes are missing")
            digest.update(block)
            left -= len(block)
    return digest.hexdigest()


def put(sock, path, file):
    size = os.path.getsize(file)
    sock.sendall(f"PUT {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n"
                 "Connection: close\r\n\r\n".encode())
    with open(file, "rb") as data:
        sock.sendfile(data)
    with sock.makefile("rb") as stream:
        status, _ = read_head(stream)
    expect(status in (201, 204), f"PUT {path}: {status}")


def both_ways(lab, size, timeout=60, address=SERVICE):
    """A file of that size from the service and one to it arrive as they were."""
    lab.nginx(address=address)
    wait_for("the path to stand", lambda: lab.reachable("client", address, 80))
    sent = make_file(lab.path("www/down"), size)
    got = get(lab.connect("client", address, 80, timeout), "/down")
    expect(got == sent, "what the client received is not what the service has")
    sent = make_file(lab.path("up"), size)
    put(lab.connect("client", address, 80, timeout), "/up", lab.path("up"))
    expect(digest_of(lab.path("www/up")) == sent, "what the service received is not what was sent")
