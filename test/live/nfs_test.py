# SPDX-License-Identifier: BSD-3-Clause
"""An NFS server, nfs-ganesha, behind bufscoped: bytes arrive intact, each call is
counted, and the server is blamed for the time it was stopped.

nfs4.py is the client: not every kernel that tests run on has one.
"""
import hashlib
import random

import harness
import nfs4
import stopped
from harness import SERVICE, expect

SIZE, BLOCK = 20 << 20, 256 << 10
EXPORTED = "files"


def served(lab):
    lab.standard()
    server = lab.ganesha(EXPORTED)
    dataplane = lab.bufscoped(services=[
        {"name": "nfs", "address": SERVICE, "port": 2049, "protocol": "sunrpc"}]).start()
    return server, dataplane


def connect(lab):
    client = nfs4.Client(lab.connect("client", SERVICE, 2049))
    client.begin()
    return client


def nfs_file_arrives_intact_and_each_call_is_counted(lab):
    _, dataplane = served(lab)
    data = random.Random(20).randbytes(SIZE)
    client = connect(lab)
    file = client.create(client.lookup(EXPORTED), "data")
    for at in range(0, SIZE, BLOCK):
        client.write(file, at, data[at:at + BLOCK])
    back = b"".join(client.read(file, at, BLOCK) for at in range(0, SIZE, BLOCK))
    client.close(file)
    expect(hashlib.sha256(back).digest() == hashlib.sha256(data).digest(),
           f"{SIZE} bytes came back altered")
    with open(lab.path(f"{EXPORTED}/data"), "rb") as stored:
        expect(stored.read() == data, f"{SIZE} bytes were stored altered")
    dataplane.answered("nfs", len(client.calls))


def nfs_server_that_stops_is_blamed(lab):
    server, dataplane = served(lab)
    clients = [connect(lab) for _ in range(stopped.CONNECTIONS)]
    directory = clients[0].lookup(EXPORTED)
    file = clients[0].create(directory, "data")
    clients[0].write(file, 0, bytes(4096))

    def call(client):
        client.lookup_in(directory, "data")
        return client.calls[-1]

    stopped.is_blamed(dataplane, "nfs", "NFS4 LOOKUP", server, clients, call, probed=False)
    dataplane.answered("nfs", sum(len(client.calls) for client in clients))


harness.main(nfs_file_arrives_intact_and_each_call_is_counted, nfs_server_that_stops_is_blamed)
