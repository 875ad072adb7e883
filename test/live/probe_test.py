# SPDX-License-Identifier: BSD-3-Clause
"""The probe finds real services by their sockets, and settles what their silences are.

No service here has a pid file. Each runs in a network namespace of its own, as
a container does. Faults last 300 ms; what bufscope says of the request that met
one is held against what the fault is known to be.
"""
import os
import signal
import subprocess

import harness
from harness import SERVICE, Skip, expect, hold, resp, resp_reply, wait_for

PING, PONG = b"*1\r\n$4\r\nPING\r\n", b"+PONG\r\n"
FAULT_S = 0.3
KV = {"name": "kv", "address": SERVICE, "port": 6379, "protocol": "resp", "slo": "20ms"}

# Listens; accepts, or reads, when it is told to by SIGUSR1; answers each request.
WAITING = """
import signal, socket, sys
mode, go = sys.argv[1], {signal.SIGUSR1}
signal.pthread_sigmask(signal.SIG_BLOCK, go)
listener = socket.create_server(("%s", 6379), backlog=1)
print("listens", flush=True)
if mode == "accept":
    signal.sigwait(go)
sock, _ = listener.accept()
print("accepted", flush=True)
if mode == "read":
    signal.sigwait(go)
while sock.recv(%d):
    sock.sendall(%r)
""" % (SERVICE, len(PING), PONG)


def probe_of(dataplane):
    return dataplane.ask("services")["services"][0]["probe"]


def probed(dataplane, pid, timeout=10, by="by socket"):
    wanted = f"pid {pid} {by}"
    wait_for(wanted, lambda: probe_of(dataplane) == wanted, timeout)


def slow_rpc(dataplane):
    """The RPC that met the fault, once its verdict has settled."""
    def look():
        slow = [rpc for rpc in dataplane.anomalies()
                if (rpc["latency_ns"] or 0) > FAULT_S * 0.8e9]
        return slow and slow[0]["root_cause"] and slow
    slow = wait_for("the verdict of a slow RPC", look, 5, 0.05)
    hold(0.4)  # evidence may come late, and revise it
    slow = [rpc for rpc in dataplane.anomalies() if rpc["id"] == slow[0]["id"]]
    return slow[0]


def blamed(dataplane, buffer, cause, detail=None, sure=0.6):
    """An SLO makes it anomalous; how sure one can be without a baseline is 70 %."""
    rpc = slow_rpc(dataplane)
    root = rpc["root_cause"]
    said = f"{root['cause']} in {root['buffer']} ({root['detail']}), or {root['alternatives']}"
    expect((root["buffer"], root["cause"], root["detail"]) == (buffer, cause, detail),
           f"{said}, instead of {cause} in {buffer} ({detail})")
    expect(not root["alternatives"], f"{said}: the probe did not settle it")
    expect(root["confidence"] >= sure, f"{said}: only {root['confidence']:.0%} sure")
    return rpc


def redis_behind(lab, **service):
    lab.standard()
    redis = lab.redis()
    dataplane = lab.bufscoped(services=[{**KV, **service}]).start()
    sock = lab.connect("client", SERVICE, 6379)
    for _ in range(20):
        resp(sock, "PING")
    return redis, dataplane, sock


def a_stopped_redis_is_a_hang(lab):
    redis, dataplane, sock = redis_behind(lab)
    probed(dataplane, redis.pid)
    redis.send(signal.SIGSTOP)
    sock.sendall(PING)
    hold(FAULT_S)
    redis.send(signal.SIGCONT)
    expect(resp_reply(sock.makefile("rb")) == b"PONG", "no answer")
    blamed(dataplane, "service", "hang", "stopped")


def off_leaves_the_set(lab):
    redis, dataplane, sock = redis_behind(lab, probe="off")
    expect(probe_of(dataplane) == "off (services[].probe)", probe_of(dataplane))
    redis.send(signal.SIGSTOP)
    sock.sendall(PING)
    hold(FAULT_S)
    redis.send(signal.SIGCONT)
    resp_reply(sock.makefile("rb"))
    root = slow_rpc(dataplane)["root_cause"]
    expect(root["cause"] == "compute", f"{root['cause']} without any evidence")
    expect({"buffer": "service", "cause": "hang"} in root["alternatives"], "hang is left out")


def a_restarted_redis_is_found_again(lab):
    redis, dataplane, _ = redis_behind(lab)
    probed(dataplane, redis.pid)
    redis.stop(signal.SIGKILL)
    wait_for("the loss to be noticed", lambda: "pid" not in probe_of(dataplane), 20)
    probed(dataplane, lab.redis().pid, 30)


def a_redis_that_comes_later_is_seen_from_outside(lab):
    """Its namespace may not be entered any more: its threads are seen, its queues not."""
    lab.standard()
    dataplane = lab.bufscoped(services=[KV]).start()
    redis = lab.redis()
    probed(dataplane, redis.pid, 30, "by socket (its queues may not be looked at: CAP_SYS_ADMIN)")
    sock = lab.connect("client", SERVICE, 6379)
    for _ in range(20):
        resp(sock, "PING")
    redis.send(signal.SIGSTOP)
    sock.sendall(PING)
    hold(FAULT_S)
    redis.send(signal.SIGCONT)
    resp_reply(sock.makefile("rb"))
    blamed(dataplane, "service", "hang", "stopped")


def a_redis_that_comes_later_is_entered_with_all_privileges(lab):
    lab.standard()
    dataplane = lab.bufscoped(services=[KV], privileges={"drop": False}).start()
    probed(dataplane, lab.redis().pid, 30)


def what_is_not_here_is_said(lab):
    lab.standard()
    dataplane = lab.bufscoped(services=[{**KV, "address": "10.99.0.77"}]).start()
    said = wait_for("the search to end", lambda: (lambda text: "looking" not in text and text)(
        probe_of(dataplane)))
    # Where not all processes may be looked at, it may be that of one of them.
    expect(said.startswith(("no network namespace", "not found")), said)


def waiting_service(lab, mode):
    lab.standard()
    service = lab.start("service", ["/usr/bin/python3", "-c", WAITING, mode], "server")
    service.wait_for("it to listen", lambda: "listens" in service.output())
    dataplane = lab.bufscoped(services=[KV]).start()
    probed(dataplane, service.pid)
    sock = lab.connect("client", SERVICE, 6379)
    if mode == "read":
        service.wait_for("it to accept", lambda: "accepted" in service.output())
    sock.sendall(PING)
    hold(FAULT_S)
    service.send(signal.SIGUSR1)
    expect(sock.recv(100) == PONG, "no answer")
    return dataplane


def a_connection_that_is_not_accepted_waits_in_the_accept_queue(lab):
    blamed(waiting_service(lab, "accept"), "server.accept", "congestion")


def a_request_that_is_not_read_waits_in_the_socket(lab):
    blamed(waiting_service(lab, "read"), "server.socket.rx", "hang", "unread")


# Control groups. They are the host's, whatever the test's namespaces: each is taken away again.

def mount(lab, name, *options):
    point = lab.path(name)
    os.makedirs(point)
    if subprocess.run(["mount", "-t", name, *options, "none", point], stderr=subprocess.DEVNULL,
                      check=False).returncode:
        return None
    lab.undo.callback(subprocess.run, ["umount", point], check=False)
    return point


def cgroup(lab, point):
    group = f"{point}/bufscope-test-{os.getppid()}-{os.urandom(4).hex()}"
    try:
        os.mkdir(group)
    except OSError as why:
        raise Skip(f"no cgroup can be made: {why}") from None
    lab.undo.callback(lambda: wait_for("the cgroup to be empty", lambda: gone(group)))
    return group


def gone(group):
    try:
        os.rmdir(group)
    except OSError:
        return False
    return True


def write(group, name, text):
    try:
        with open(f"{group}/{name}", "w", encoding="ascii") as file:
            file.write(str(text))
    except OSError as why:
        raise Skip(f"{name} cannot be written: {why}") from None


def limited(lab):
    """A cgroup with a fifth of a CPU, of version 2 or 1."""
    point = mount(lab, "cgroup2")
    if point:
        with open(f"{point}/cgroup.controllers", encoding="ascii") as file:
            if "cpu" in file.read().split():
                write(point, "cgroup.subtree_control", "+cpu")
                group = cgroup(lab, point)
                write(group, "cpu.max", "20000 100000")
                return group
    point = mount(lab, "cgroup", "-o", "cpu")
    if not point:
        raise Skip("no cgroup with the cpu controller can be mounted")
    group = cgroup(lab, point)
    write(group, "cpu.cfs_quota_us", 20000)
    return group


def cpu_ns(process):
    with open(f"/proc/{process.pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0])


def a_redis_without_quota_is_throttled(lab):
    group = limited(lab)
    redis, dataplane, sock = redis_behind(lab)
    probed(dataplane, redis.pid)
    write(group, "cgroup.procs", redis.pid)
    script = "local x = 0 for i = 1, tonumber(ARGV[1]) do x = (x + i * i) % 7 end return x"
    sock.settimeout(60)
    turns, used_ns = 1_000_000, 0
    while used_ns < 0.25 * FAULT_S * 1e9:
        # Work for more than two periods of 100 ms, of which a fifth is given.
        before_ns = cpu_ns(redis)
        resp(sock, "EVAL", script, 0, turns)
        used_ns, turns = cpu_ns(redis) - before_ns, turns * 2
    rpc = blamed(dataplane, "service", "hang", "throttled", 0.5)
    throttled = sum(s["end_ns"] - s["begin_ns"] for s in rpc["segments"] if s["cause"] == "hang")
    expect(throttled > 0.5 * rpc["latency_ns"], f"{throttled} of {rpc['latency_ns']} ns")


def a_frozen_redis_is_stopped(lab):
    point = mount(lab, "cgroup2")
    if not point:
        raise Skip("no cgroup of version 2 can be mounted")
    group = cgroup(lab, point)
    if not os.path.exists(f"{group}/cgroup.freeze"):
        raise Skip("cgroups cannot be frozen")
    redis, dataplane, sock = redis_behind(lab)
    probed(dataplane, redis.pid)
    write(group, "cgroup.procs", redis.pid)
    write(group, "cgroup.freeze", 1)
    sock.sendall(PING)
    hold(FAULT_S)
    write(group, "cgroup.freeze", 0)
    resp_reply(sock.makefile("rb"))
    blamed(dataplane, "service", "hang", "stopped")


harness.main(a_stopped_redis_is_a_hang, off_leaves_the_set, a_restarted_redis_is_found_again,
             a_redis_that_comes_later_is_seen_from_outside,
             a_redis_that_comes_later_is_entered_with_all_privileges, what_is_not_here_is_said, a_connection_that_is_not_accepted_waits_in_the_accept_queue,
             a_request_that_is_not_read_waits_in_the_socket, a_redis_without_quota_is_throttled,
             a_frozen_redis_is_stopped)
