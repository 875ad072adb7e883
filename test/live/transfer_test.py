# SPDX-License-Identifier: BSD-3-Clause
"""100 MB each way arrive intact: tagged always by one instance, negotiated between two."""
import files
import harness
from harness import CLIENT, SERVICE, expect

SIZE = 100_000_000


def transfer_tagged_always(lab):
    lab.standard()
    dataplane = lab.bufscoped(shim={"tag": "always"}, services=files.WEB).start()
    files.both_ways(lab, SIZE)
    expect(dataplane.counter("tagged") > SIZE // 1500 // 2, "few packets were tagged")


def transfer_negotiated_between_two(lab):
    """client [near] -- [far] server: each strips what the other tags."""
    lab.host("client")
    lab.host("server")
    lab.cable((None, "near-local"), ("client", "e0", f"{CLIENT}/24"))
    lab.cable((None, "near-wire"), (None, "far-wire"))
    lab.cable((None, "far-local"), ("server", "e0", f"{SERVICE}/24"))
    shim = {"tag": "negotiated"}
    # Both would keep a CPU busy; they share one, as all else shares the other.
    far = lab.bufscoped("far-wire", "far-local", shim=shim, services=files.WEB, node=1).start()
    near = lab.bufscoped("near-wire", "near-local", shim=shim, services=files.WEB, node=2).start()
    client, server = lab.sniff("client"), lab.sniff("server")
    files.both_ways(lab, SIZE)
    for name, one in (("near", near), ("far", far)):
        expect(one.counter("tagged") > 0, f"{name} tagged nothing")
        expect(one.counter("shim_removed") > 0, f"{name} removed no shim")
    for sniffer in (client, server):
        sniffer.stop()
        expect(sniffer.segments > 0, "nothing was seen")
        expect(sniffer.shims + sniffer.announcements == 0, "a shim reached a host")


harness.main(transfer_tagged_always, transfer_negotiated_between_two)
