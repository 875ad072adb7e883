# SPDX-License-Identifier: BSD-3-Clause
"""What is done to bufscoped itself while traffic flows: reloads, a second one of its prefix,
kill -9, and clients of its sockets that do not behave."""
import contextlib
import json
import os
import signal
import socket
import subprocess
import threading

import harness
from faults import RATE, Service, driver, telling
from harness import expect, program, wait_for
from processes import analyzers

TELEMETRY_CLIENTS = 10  # DPDK's rte_telemetry.h
CONTROL_CLIENTS = 16


def config_path(service):
    return service.lab.path(f"{service.dataplane.prefix}.json")


def good_reload_takes_effect(lab):
    service = Service(lab, services=telling("10s")).begin()
    wait_for("the analyzer", lambda: service.analyzer()["connected"])
    for _ in range(20):
        service.reload(services=telling("1us"))
    service.judges()
    service.undisturbed()


def refused_reload(service, *words):
    """SIGHUP, which is answered by one line with all these words."""
    output = service.dataplane.process.output
    before = output()
    service.dataplane.process.send(signal.SIGHUP)
    wait_for("a line", lambda: "not reloaded" in output()[len(before):])
    lines = output()[len(before):].splitlines()
    expect(len(lines) == 1 and all(word in lines[0] for word in words), f"{words}: {lines}")


def bad_reloads_change_nothing(lab):
    service = Service(lab).begin()
    path = config_path(service)
    with open(path, encoding="utf-8") as file:
        good = json.load(file)

    def write(change):
        service.dataplane.write(harness.merged(good, change))

    write({"services": [{**telling("9s")[0], "slo": "soon"}]})
    refused_reload(service, path, "services[0].slo", "soon")
    write({"services": telling("9s"), "detect": {"hangs": "1ms"}})
    refused_reload(service, path, "detect.hangs")
    write({"services": telling("9s"), "shim": {"tag": "off"}})
    refused_reload(service, "shim", "restart")
    with open(path, "w", encoding="utf-8") as file:
        file.write('{\n "node": 1,\n')
    refused_reload(service, f"{path}:", "not JSON")
    os.truncate(path, 0)
    refused_reload(service, path)
    os.unlink(path)
    refused_reload(service, path, os.strerror(2))
    os.mkdir(path)
    refused_reload(service, path, "not a regular file")
    os.rmdir(path)
    os.mkfifo(path)
    refused_reload(service, path, "not a regular file")
    os.unlink(path)
    os.symlink("/dev/zero", path)
    refused_reload(service, path, "symbolic link")
    os.unlink(path)
    # SETs are still judged by the SLO of the start.
    service.judges()
    service.undisturbed()


def second_instance_of_a_prefix_leaves_the_first_alone(lab):
    service = Service(lab).begin()
    for _ in range(3):
        done = subprocess.run([program("bufscoped"), "-c", config_path(service)], text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
        expect(done.returncode == 1, f"exit status {done.returncode}")
        expect(f"(pid {service.dataplane.process.pid})" in done.stderr and
               done.stderr.count("\n") == 1, done.stderr)
    service.judges()
    service.undisturbed()


def killed_and_started_again(lab):
    """What it left is no hindrance, and connections live on: TCP asks again."""
    service = Service(lab).begin()
    service.judges()
    dataplane = service.dataplane
    dataplane.process.popen.kill()
    dataplane.process.popen.wait()
    wait_for("its analyzer to go with it", lambda: not analyzers(), 5)
    expect(os.path.exists(f"/run/dpdk/{dataplane.prefix}/bufscope.sock"), "it left no socket")
    failed = dataplane.cli("status")
    expect(failed.returncode == 1 and failed.stderr.count("\n") == 1, failed.stderr)
    dataplane.start()
    seen = dataplane.counter("rx_packets")
    wait_for("traffic", lambda: dataplane.counter("rx_packets") > seen + RATE, 10)
    service.judges()
    # From the kill until a resend that doubles its patience each time.
    service.ended(slowest_ns=20_000_000_000)
    wait_for("the counters to balance", service.balance)
    print(f"       stopped: {dataplane.stop().splitlines()[-1]}")
    expect(not os.path.exists(f"/run/dpdk/{dataplane.prefix}"), "something is left")


def killed_and_started_again_over_af_packet(lab):
    with driver("af_packet"):
        killed_and_started_again(lab)


# Clients

def connect(service, name, kind):
    sock = socket.socket(socket.AF_UNIX, kind)
    sock.connect(f"/run/dpdk/{service.dataplane.prefix}/{name}")
    sock.settimeout(5)
    return sock


def telemetry_client(service):
    return connect(service, "dpdk_telemetry.v2", socket.SOCK_SEQPACKET)


def greeted(sock):
    """Does the telemetry library serve this connection?"""
    try:
        return b"max_output_len" in sock.recv(1024)
    except (ConnectionError, TimeoutError):
        return False


def telemetry_clients_that_do_not_behave(lab):
    service = Service(lab).begin()
    with contextlib.ExitStack() as undo:
        deaf = [undo.enter_context(telemetry_client(service)) for _ in range(3)]
        for sock in deaf:
            # Until its thread waits for this client to read.
            flood(sock, b"/bufscope/status")
        half = undo.enter_context(telemetry_client(service))
        expect(greeted(half), "no greeting")
        half.send(b"/bufscope/sta")
        half.send(b"tus")
        half.send(b"/bufscope/rpc," + b"f" * 4000)
        more = [undo.enter_context(telemetry_client(service)) for _ in range(4 * TELEMETRY_CLIENTS)]
        served = [sock for sock in more if greeted(sock)]
        print(f"       telemetry: {len(deaf)} deaf, 1 halting, {len(served)} of {len(more)} others "
              "served")
        expect(len(served) == TELEMETRY_CLIENTS - len(deaf) - 1, f"{len(served)} are served")
        service.judges()
    wait_for("telemetry to serve again", lambda: served_again(service))
    service.undisturbed()
    stopped_while_asked(service)


def stopped_while_asked(service):
    """rte_telemetry's threads go on while all that they read is taken down."""
    answers = []

    def ask():
        with contextlib.suppress(OSError), telemetry_client(service) as sock:
            sock.recv(1024)
            while sock.send(b"/bufscope/status"):
                answers.append(sock.recv(1 << 16))

    askers = [threading.Thread(target=ask) for _ in range(8)]
    for asker in askers:
        asker.start()
    wait_for("answers", lambda: len(answers) > 100)
    output = service.dataplane.stop()
    expect("packets in" in output, "it printed no counters")
    for asker in askers:
        asker.join()


def served_again(service):
    with telemetry_client(service) as sock:
        if not greeted(sock):
            return False
        sock.send(b"/bufscope/status")
        return b"state" in sock.recv(1 << 16)


def dropped(sock):
    """Has the other end hung up?"""
    sock.setblocking(False)
    try:
        while sock.recv(1 << 20):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    return True


def main_thread_seconds(service):
    """CPU time of bufscoped's main thread: proc(5), fields 14 and 15."""
    pid = service.dataplane.process.pid
    with open(f"/proc/{pid}/task/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def control_clients_that_do_not_behave(lab):
    service = Service(lab).begin()
    request = b'{"command": "/bufscope/anomalies"}\n'
    wait_for("a page of anomalies", lambda: len(service.dataplane.anomalies()) >= 32)
    with contextlib.ExitStack() as undo:
        def client():
            return undo.enter_context(connect(service, "bufscope.sock", socket.SOCK_STREAM))

        deaf, endless, halting = client(), client(), client()
        sent = flood(deaf, request)
        wait_for("a client that does not read to be dropped", lambda: dropped(deaf))
        print(f"       a client that never reads is dropped after {sent} bytes of requests")
        flood(endless, b"x" * 4096)
        wait_for("a client that sends an endless line to be dropped", lambda: dropped(endless))
        halting.send(request[:10])
        service.explains("analyzer")
        halting.send(request[10:])
        expect(halting.makefile("rb").readline().endswith(b"}\n"), "no answer to a request in pieces")
        # Answers to nonsense pile up, too. It took 1 s to copy them about; it takes 0.04.
        chatter, before = client(), main_thread_seconds(service)
        flood(chatter, b"\n" * 4096)
        wait_for("a client that sends empty lines to be dropped", lambda: dropped(chatter))
        busy = main_thread_seconds(service) - before
        print(f"       one that sends empty lines, after {busy:.2f} s of CPU time")
        expect(busy < 0.3, f"{busy:.2f} s of CPU time for empty lines")
        many = [client() for _ in range(100)]
        service.explains("analyzer")
        wait_for("the oldest of them to make room", lambda: sum(
            1 for sock in many if not dropped(sock)) < CONTROL_CLIENTS)
        service.judges()
    service.undisturbed()
    service.dataplane.stop()


def flood(sock, data, at_most=4 << 20):
    """Sends until nothing is taken any more for a while, or the other end hangs up."""
    sent = 0
    sock.settimeout(0.5)
    with contextlib.suppress(OSError):
        while sent < at_most:
            sent += sock.send(data)
    return sent


harness.main(good_reload_takes_effect, bad_reloads_change_nothing,
             second_instance_of_a_prefix_leaves_the_first_alone, killed_and_started_again,
             killed_and_started_again_over_af_packet, telemetry_clients_that_do_not_behave,
             control_clients_that_do_not_behave)
