# SPDX-License-Identifier: BSD-3-Clause
"""A redis behind bufscoped works, values intact, in every mode of tagging.

The client is plain Linux, without BufScope: it must not notice.
"""
import harness
from harness import SERVICE, SERVICE6, expect

SIZES = (10, 1000, 20000)


def works(lab, tag, offloads, address=SERVICE):
    lab.standard(offloads)
    lab.redis(address=address)
    kv = {"name": "kv", "address": address, "port": 6379, "protocol": "resp"}
    dataplane = lab.bufscoped(shim={"tag": tag}, services=[kv]).start()
    client, server = lab.sniff("client"), lab.sniff("server")
    for size in SIZES:
        load = lab.load("--address", address, "--rate", "200", "--seconds", "1", "--size", str(size),
                        "--sets", "4", name=f"load{size}")
        requests = load.requests()
        expect(len(requests) == 200, f"{len(requests)} of 200 requests were answered")
        wrong = [one for one in requests if not one["ok"]]
        expect(not wrong, f"{len(wrong)} values of {size} bytes came back altered")
    dataplane.answered("kv", 600)
    for sniffer in (client, server):
        sniffer.stop()
        expect(sniffer.segments > 600, f"only {sniffer.segments} segments seen")
    expect(server.shims == 0, f"{server.shims} shims reached the service")
    return dataplane, client


def redis_tagged_always(lab):
    dataplane, client = works(lab, "always", True)
    expect(client.shims >= 600, f"{client.shims} shims reached the client, for 600 responses")
    expect(dataplane.counter("checksum_completed") > 0, "no partial checksum was completed")


def redis_tagged_always_complete_checksums(lab):
    dataplane, client = works(lab, "always", False)
    expect(client.shims >= 600, f"{client.shims} shims reached the client, for 600 responses")
    # By chance, one complete checksum in 65536 is the pseudo-header's sum; completing changes none.
    completed = dataplane.counter("checksum_completed")
    expect(completed < 5, f"{completed} complete checksums were taken for partial ones")


def redis_over_ipv6_tagged_always(lab):
    dataplane, client = works(lab, "always", True, SERVICE6)
    expect(client.shims >= 600, f"{client.shims} shims reached the client, for 600 responses")
    expect(dataplane.counter("checksum_completed") > 0, "no partial checksum was completed")


def redis_negotiated_with_a_plain_peer(lab):
    dataplane, client = works(lab, "negotiated", True)
    expect(client.shims == 0, f"{client.shims} shims reached a client that did not announce")
    expect(dataplane.counter("skip_not_negotiated") > 0, "skip_not_negotiated is 0")


def redis_untagged(lab):
    dataplane, client = works(lab, "off", True)
    expect(client.shims == 0 and client.announcements == 0, "tagging is off, but the client saw it")
    expect(dataplane.counter("tagged") == 0, "tagging is off, but counted")


harness.main(redis_tagged_always, redis_tagged_always_complete_checksums,
             redis_over_ipv6_tagged_always, redis_negotiated_with_a_plain_peer, redis_untagged)
