# SPDX-License-Identifier: BSD-3-Clause
"""What bufscoped and its analyzer may do once they run, and whom they let in.

What the kernel says of them counts: /proc/PID/task/TID/status, file modes, what
is left on an interface.
"""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess

import harness
from harness import SERVICE, expect, program, wait_for

CAP_DAC_READ_SEARCH, CAP_NET_ADMIN, CAP_SYS_PTRACE = 1 << 2, 1 << 12, 1 << 19
NOBODY = 65534
KEYS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")


def status_of(path):
    """/proc/.../status as a dict of texts."""
    with open(f"{path}/status", encoding="ascii", errors="replace") as lines:
        return dict(line.rstrip("\n").split(":\t", 1) for line in lines if ":\t" in line)


def threads_of(pid):
    """Of each thread: its number and status; those that end meanwhile are left out."""
    found = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found[int(tid)] = status_of(f"/proc/{pid}/task/{tid}")
    return found


def expect_capabilities(status, allowed):
    for key in KEYS:
        held = int(status[key], 16)
        expect(held & ~allowed == 0, f"{status['Name']} holds {key} {held:x}")
    expect(status["NoNewPrivs"] == "1", f"{status['Name']} can gain privileges")


def expect_dropped(pid, uid, kept=CAP_NET_ADMIN):
    threads = threads_of(pid)
    for tid, status in threads.items():
        expect_capabilities(status, kept if tid == pid else 0)
        expect(status["Uid"].split() == [str(uid)] * 4, f"{status['Name']}: Uid {status['Uid']}")
    return {status["Name"] for status in threads.values()}


def link(iface):
    return json.loads(harness.run("ip", "-d", "-j", "link", "show", iface))[0]


def expect_clean(iface):
    """As it was before bufscoped came: no XDP program, not promiscuous."""
    now = link(iface)
    expect("xdp" not in now, f"{iface} has an XDP program: {now.get('xdp')}")
    expect("PROMISC" not in now["flags"], f"{iface} is promiscuous")
    expect(now["promiscuity"] == 0, f"{iface} has promiscuity {now['promiscuity']}")


UNPROBED = [{"name": "kv", "address": SERVICE, "port": 6379, "protocol": "resp", "probe": "off"}]


def standard(lab):
    """The harness makes interfaces promiscuous; here that is bufscoped's to do and undo.

    /run is the tests' own: what one that ended by SIGKILL left does not concern the next.
    """
    shutil.rmtree("/run/dpdk", ignore_errors=True)
    lab.standard()
    lab.redis()
    for iface in ("bs-wire", "bs-local"):
        harness.run("ip", "link", "set", iface, "promisc", "off")


def serves(lab, requests=200):
    answers = lab.load("--address", SERVICE, "--rate", "200", "--seconds",
                       str(requests / 200)).requests()
    expect(len(answers) == requests and all(one["ok"] for one in answers), "requests were lost")


def threads_drop_all_but_the_end_needs(lab):
    """Every thread, also those that telemetry makes later; then the interfaces are clean."""
    standard(lab)
    dataplane = lab.bufscoped(services=UNPROBED).start()
    pid = dataplane.process.pid
    serves(lab)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        sock.connect(f"/run/dpdk/{dataplane.prefix}/dpdk_telemetry.v2")
        sock.recv(16384)  # a thread of its own serves us now
        names = expect_dropped(pid, 0)
    expect(len(names) >= 4, f"only these threads: {names}")
    told = dataplane.ask("status")["privileges"]
    expect(told["dropped"] and told["user"] == "root", f"status says {told}")
    expect([one["capability"] for one in told["kept"]] == ["CAP_NET_ADMIN"], f"kept: {told}")
    if dataplane.driver == "af_xdp":
        expect("xdp" in link("bs-wire"), "no XDP program: nothing would be shown")
    expect("PROMISC" in link("bs-wire")["flags"], "not promiscuous while it runs")
    dataplane.stop()
    for iface in ("bs-wire", "bs-local"):
        expect_clean(iface)
    expect(not os.path.exists("/run/dpdk"), "the runtime directory is left")


def interfaces_that_were_promiscuous_stay_so(lab):
    standard(lab)
    harness.run("ip", "link", "set", "bs-wire", "promisc", "on")
    dataplane = lab.bufscoped().start()
    dataplane.stop()
    expect("PROMISC" in link("bs-wire")["flags"], "bs-wire is not promiscuous any more")
    expect_clean("bs-local")


def another_user_serves_as_well(lab):
    standard(lab)
    dataplane = lab.bufscoped(privileges={"user": "nobody"}, services=UNPROBED).start()
    serves(lab)
    expect_dropped(dataplane.process.pid, NOBODY)
    expect(dataplane.ask("status")["privileges"]["user"] == "nobody", "status tells another user")
    dataplane.stop()
    for iface in ("bs-wire", "bs-local"):
        expect_clean(iface)
    directory = f"/run/dpdk/{dataplane.prefix}"
    expect(os.listdir(directory) == [], f"left in {directory}: {os.listdir(directory)}")
    dataplane.start()  # root takes the directory back
    expect(lab.reachable("client", SERVICE, 6379), "not reached after the second start")


def the_probe_sees_what_is_another_users(lab):
    """The pid file in a directory of its own, processes hidden by /proc: still "stopped"."""
    standard(lab)
    directory = lab.path("secret")
    os.mkdir(directory, 0o700)
    os.chown(directory, NOBODY, NOBODY)
    pid_file = os.path.join(directory, "redis.pid")
    redis = lab.start("secret-redis", [
        "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "redis-server",
        "--bind", SERVICE, "--port", "6380", "--protected-mode", "no", "--save", "",
        "--appendonly", "no", "--dir", directory, "--daemonize", "no", "--pidfile", pid_file],
        "server")
    redis.wait_for("redis to listen", lambda: lab.reachable("server", SERVICE, 6380))
    with open(pid_file, encoding="ascii") as file:
        pid = int(file.read())
    harness.run("mount", "-o", "remount,hidepid=2,gid=12345", "/proc")
    lab.undo.callback(harness.run, "mount", "-o", "remount,hidepid=0,gid=0", "/proc")
    dataplane = lab.bufscoped(services=[{"name": "kv", "address": SERVICE, "port": 6380,
                                         "protocol": "resp", "pid_file": pid_file}]).start()
    expect_dropped(dataplane.process.pid, 0, CAP_NET_ADMIN | CAP_DAC_READ_SEARCH | CAP_SYS_PTRACE)
    load = lab.load("--address", SERVICE, "--port", "6380", "--rate", "300", "--seconds", "3",
                    "--warm", "100")
    os.kill(pid, signal.SIGSTOP)
    harness.hold(0.3)
    os.kill(pid, signal.SIGCONT)
    load.requests()
    wait_for("a hang that the probe explains", lambda: [
        one for one in dataplane.anomalies() if one["root_cause"]["detail"] == "stopped"])
    dataplane.stop()
    dataplane = lab.bufscoped(services=[{"name": "kv", "address": SERVICE, "port": 6380,
                                         "protocol": "resp"}]).start()
    wait_for("it to be found by its socket", lambda: dataplane.ask("services")["services"][0][
        "probe"] == f"pid {pid} by socket")


def connects(path, kind, user, group):
    """Can a process of that user and group connect?"""
    code = (f"import socket; s = socket.socket(socket.AF_UNIX, {int(kind)}); "
            f"s.connect({path!r})")
    return subprocess.run(["/usr/bin/python3", "-c", code], user=user, group=group,
                          extra_groups=[], stdin=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


def sockets_are_whose_the_configuration_says(lab):
    standard(lab)
    owner, group = 12345, 23456
    dataplane = lab.bufscoped(
        control={"owner": str(owner), "group": str(group), "mode": "0660"},
        analyzer={"mode": "external"}).start()
    for name, kind in (("bufscope.sock", socket.SOCK_STREAM),
                       ("analyzer.sock", socket.SOCK_SEQPACKET),
                       ("dpdk_telemetry.v2", socket.SOCK_SEQPACKET)):
        path = f"/run/dpdk/{dataplane.prefix}/{name}"
        found = os.stat(path)
        expect((found.st_uid, found.st_gid, found.st_mode & 0o7777) == (owner, group, 0o660),
               f"{name}: {found.st_uid}:{found.st_gid} {found.st_mode & 0o7777:o}")
        expect(connects(path, kind, owner, 1), f"its owner cannot connect to {name}")
        expect(connects(path, kind, 1, group), f"its group cannot connect to {name}")
        expect(not connects(path, kind, 1, 1), f"anybody can connect to {name}")
    dataplane.process.send(signal.SIGKILL)
    dataplane.process.popen.wait()
    dataplane.start()  # stale sockets of another owner are its own
    dataplane.stop()
    expect(not os.path.exists("/run/dpdk"), "the runtime directory is left")


def sockets_are_the_owners_alone_by_default(lab):
    standard(lab)
    dataplane = lab.bufscoped().start()
    for name, kind in (("bufscope.sock", socket.SOCK_STREAM),
                       ("dpdk_telemetry.v2", socket.SOCK_SEQPACKET)):
        path = f"/run/dpdk/{dataplane.prefix}/{name}"
        expect(os.stat(path).st_mode & 0o7777 == 0o600, f"{name}: {os.stat(path).st_mode:o}")
        expect(not connects(path, kind, NOBODY, NOBODY), f"nobody can connect to {name}")


def expect_confined(pid, uid):
    """What an analyzer may hold: nothing."""
    status = status_of(f"/proc/{pid}")
    expect_capabilities(status, 0)
    expect(status["Uid"].split() == [str(uid)] * 4, f"analyzer: Uid {status['Uid']}")
    expect(status["Groups"].strip() == "", f"analyzer: Groups {status['Groups']}")
    expect(status["Seccomp"] == "2", "the analyzer has no filter")
    root = os.readlink(f"/proc/{pid}/root")
    expect("bufscope-" in root and not os.path.exists(root), f"its root is {root}")
    expect(len(os.listdir(f"/proc/{pid}/fd")) == 5, f"open: {os.listdir(f'/proc/{pid}/fd')}")
    with open(f"/proc/{pid}/limits", encoding="ascii") as file:
        limits = file.read()
    expect(re.search(r"Max core file size +0 +0 ", limits), f"core dumps: {limits}")
    expect(re.search(r"Max address space +1073741824 ", limits), f"address space: {limits}")


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


def the_analyzer_is_confined_and_works(lab):
    standard(lab)
    dataplane = lab.bufscoped(analyzer={"user": "12345"}, services=[{
        "name": "kv", "address": SERVICE, "port": 6379, "protocol": "resp",
        "slo": "1us"}]).start()
    wait_for("the analyzer", lambda: dataplane.ask("status")["analyzer"]["connected"])
    serves(lab)
    wait_for("verdicts", dataplane.anomalies)
    spawner, = children_of(dataplane.process.pid)
    analyzer, = children_of(spawner)
    expect_confined(analyzer, 12345)
    for pid in (spawner, analyzer):
        expect(os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net"),
               "it is in our network namespace")
    links = harness.run("nsenter", "-t", str(analyzer), "-n", "ip", "-j", "link")
    expect([one["ifname"] for one in json.loads(links)] == ["lo"], f"its network: {links}")
    told = dataplane.ask("status")["analyzer"]
    expect(told["user"] == "12345" and told["rejected"] == 0 and told["bad_records"] == 0,
           f"status says {told}")


def only_who_may_becomes_the_external_analyzer(lab):
    standard(lab)
    dataplane = lab.bufscoped(analyzer={"mode": "external", "user": "12345"},
                              control={"mode": "0666"}).start()
    path = f"/run/dpdk/{dataplane.prefix}/analyzer.sock"

    def connected():
        return dataplane.ask("status")["analyzer"]["connected"]

    connects(path, socket.SOCK_SEQPACKET, NOBODY, NOBODY)
    dataplane.process.wait_for("the refusal", lambda: "refused an analyzer" in
                               dataplane.process.output())
    expect(f"uid {NOBODY}" in dataplane.process.output(), "it does not say whom it refused")
    expect(not connected(), "anybody may be the analyzer")
    analyzer = lab.start("analyzer", [program("bufscope-analyzer"), "--socket", path])
    analyzer.wait_for("it to be connected", connected)
    serves(lab)
    expect_confined(analyzer.pid, NOBODY)
    expect(analyzer.stop() == 0, f"the analyzer failed: {analyzer.output()}")


def start_that_fails(dataplane, config, *arguments):
    """Its exit status and what it said."""
    return subprocess.run([program("bufscoped"), "-c", dataplane.write(config), *arguments],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=30)


def hugepages():
    with open("/proc/meminfo", encoding="ascii") as file:
        return re.findall(r"^HugePages_Total: +(\d+)", file.read(), flags=re.M)


def failed_starts_leave_nothing(lab):
    standard(lab)
    dataplane = lab.bufscoped()
    dataplane.driver = "af_packet"
    good = dataplane.config()
    before = hugepages()

    def fails(words, *arguments, **changes):
        done = start_that_fails(dataplane, harness.merged(good, changes), *arguments)
        expect(done.returncode == 1 and all(word in done.stdout for word in words),
               f"status {done.returncode}, no {words}: {done.stdout}")
        expect(not os.path.exists("/run/dpdk"), f"{changes}: the runtime directory is left")
        expect(hugepages() == before, f"nr_hugepages went from {before} to {hugepages()}")
        for iface in ("bs-wire", "bs-local"):
            expect_clean(iface)

    fails(["absent0"], ports={"local": {"device": ["net_af_packet9,iface=absent0"]}})
    # A driver that would play this file for ever refuses it, and without that would give nothing.
    capture = lab.path("large.pcap")
    with open(capture, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 1) +
                   struct.pack("<4I", 0, 0, 65226, 65226) + bytes(65226))
    fails(["ports.local", "does not start", "Multiseg mbufs are not supported"],
          ports={"local": {"device": [f"net_pcap9,rx_pcap={capture},infinite_rx=1"]}})
    fails(["vm.nr_hugepages="], eal={"hugepages": "on", "memory": "1T"})
    fails(["analyzer.user", "no-such"], analyzer={"user": "no-such"})
    fails(["privileges.user", "no-such"], privileges={"user": "no-such"})
    fails(["control.group", "no-such"], control={"group": "no-such"})
    fails(["eal.file_prefix"], "--", "--file-prefix=other")
    fails(["EAL does not start"], "--", "--no-such-argument")


def second_instance_is_told_before_it_touches_a_port(lab):
    standard(lab)
    dataplane = lab.bufscoped().start()
    with open(lab.path(f"{dataplane.prefix}.json"), encoding="utf-8") as file:
        config = json.load(file)
    done = start_that_fails(dataplane, config)
    expect(done.returncode == 1 and done.stdout.count("\n") == 1 and
           f"pid {dataplane.process.pid}" in done.stdout and "eal.file_prefix" in done.stdout,
           f"status {done.returncode}: {done.stdout}")
    serves(lab)
    # What a killed instance left is no instance.
    dataplane.process.send(signal.SIGKILL)
    dataplane.process.popen.wait()
    expect(os.path.exists(f"/run/dpdk/{dataplane.prefix}/bufscope.sock"), "nothing is stale")
    stale = dataplane.cli("status")
    expect(stale.returncode == 1 and "no bufscoped" in stale.stderr, f"{stale}")
    dataplane.start()
    serves(lab)


def unsafe_runtime_directories_are_refused(lab):
    standard(lab)
    dataplane = lab.bufscoped()
    dataplane.driver = "af_packet"
    config = dataplane.config()
    directory = f"/run/dpdk/{dataplane.prefix}"
    os.makedirs(directory)

    def refuses(*words):
        done = start_that_fails(dataplane, config)
        expect(done.returncode == 1 and all(word in done.stdout for word in words),
               f"status {done.returncode}, no {words}: {done.stdout}")

    os.chmod(directory, 0o777)
    refuses("chmod go-w", "0777", directory)
    os.chmod(directory, 0o755)
    os.chown(directory, 12345, 0)
    refuses("belongs to uid 12345", "chown root", directory)
    os.rmdir(directory)
    os.symlink("/tmp", directory)
    refuses("symbolic link", directory)
    os.unlink(directory)
    os.chmod("/run/dpdk", 0o777)
    refuses("chmod go-w", "/run/dpdk")


def secondary_processes_are_refused(lab):
    standard(lab)
    dataplane = lab.bufscoped().start()
    other = subprocess.run(["dpdk-proc-info", f"--file-prefix={dataplane.prefix}", "--no-pci",
                            "--", "--stats"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, timeout=30)
    expect(other.returncode != 0, f"a secondary process attached: {other.stdout}")
    expect("config" in other.stdout, f"it was not told why: {other.stdout}")
    serves(lab)


harness.main(threads_drop_all_but_the_end_needs, interfaces_that_were_promiscuous_stay_so,
             another_user_serves_as_well, the_probe_sees_what_is_another_users, sockets_are_whose_the_configuration_says,
             sockets_are_the_owners_alone_by_default, the_analyzer_is_confined_and_works,
             only_who_may_becomes_the_external_analyzer, failed_starts_leave_nothing,
             second_instance_is_told_before_it_touches_a_port,
             unsafe_runtime_directories_are_refused, secondary_processes_are_refused)
