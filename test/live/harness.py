# SPDX-License-Identifier: BSD-3-Clause
"""Hosts in namespaces, real services, and bufscoped between them.

A test file defines functions `name(lab)` and calls `main(name, ...)`. Each gets
a fresh lab. Nothing waits for time: wait_for() waits for what must become true.
"""
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback

import sandbox

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("BUFSCOPE_BUILD", os.path.join(HERE, "../../build"))
SKIPPED = 77
CLIENT, SERVICE = "10.99.0.1", "10.99.0.2"
CLIENT6, SERVICE6 = "fd99::1", "fd99::2"
ETH_P_ALL, ETH_P_IPV4, ETH_P_IPV6, ETH_P_SHIM = 3, 0x0800, 0x86DD, 0x88B5
SO_RCVBUFFORCE = 33

# Virtual devices that can drive one end of a veth pair, the best first.
DRIVERS = {
    "af_xdp": "net_af_xdp{number},iface={iface}",
    "af_packet": "net_af_packet{number},iface={iface},qdisc_bypass=1,framecnt=4096,blocksz=4096,"
                 "framesz=2048",
}


class Skip(Exception):
    """The test cannot run here; the text says why."""


class Failure(AssertionError):
    """What was expected did not happen."""


def expect(truth, text):
    if not truth:
        raise Failure(text)


def wait_for(what, condition, timeout=10, interval=0.01):
    """The first true value of condition(), or Failure after `timeout` seconds."""
    end = time.monotonic() + timeout
    pause = threading.Event()
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Failure(f"waited {timeout} s in vain for {what}")
        pause.wait(interval)


def hold(seconds):
    """How long a fault lasts. Not for waiting: that is wait_for()."""
    threading.Event().wait(seconds)


def program(name):
    """Path of a program of ours."""
    path = os.path.join(BUILD, "apps", name)
    expect(os.access(path, os.X_OK), f"{path} is not built")
    return path


def run(*command, **options):
    """Runs to its end; Failure with its output where it fails."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", **options)
    expect(done.returncode == 0, f"{' '.join(command)}: {done.stdout.strip()}")
    return done.stdout


class Process:
    """A program that runs until it is stopped; its output goes to a file."""

    def __init__(self, name, command, log):
        self.name, self.log = name, log
        with open(log, "wb") as output:
            self.popen = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output,
                                          stderr=subprocess.STDOUT, start_new_session=True,
                                          preexec_fn=sandbox.die_with_parent)

    @property
    def pid(self):
        return self.popen.pid

    def output(self):
        with open(self.log, encoding="utf-8", errors="replace") as text:
            return text.read()

    def running(self):
        return self.popen.poll() is None

    def wait_for(self, what, condition, timeout=10):
        """As wait_for(), but fails at once when the process ends."""
        def check():
            expect(self.running(), f"{self.name} ended with {self.popen.returncode} before "
                   f"{what}: {self.output()[-1000:]}")
            return condition()
        return wait_for(what, check, timeout)

    def send(self, number):
        self.popen.send_signal(number)

    def stop(self, number=signal.SIGTERM, timeout=10):
        """Sends the signal and returns the exit status; SIGKILL, and Failure, when it stays."""
        if self.running():
            self.send(number)
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
            raise Failure(f"{self.name} did not end on signal {number}") from None


class Sniffer(threading.Thread):
    """Counts the shims in the packets that a host receives: TCP option 253 or UDP option 127 with
    ExID 0xB5C0, Ethertype 0x88B5."""

    def __init__(self, sock):
        super().__init__(daemon=True)
        self.sock = sock
        self.sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
        self.sock.settimeout(0.1)
        self.running = True
        self.segments = self.shims = self.announcements = 0
        self.start()

    def run(self):
        while True:
            try:
                frame, source = self.sock.recvfrom(65536)
            except TimeoutError:
                if self.running:
                    continue
                return  # all that came before stop() has been looked at
            if source[2] == socket.PACKET_OUTGOING:
                continue
            self.shims += source[1] == ETH_P_SHIM
            if source[1] in (ETH_P_IPV4, ETH_P_IPV6):
                self.look(frame[14:])

    def look(self, packet):
        if len(packet) < 40:
            return
        ipv6 = packet[0] >> 4 == 6
        tcp = packet[40:] if ipv6 else packet[(packet[0] & 15) * 4:]
        protocol = packet[6 if ipv6 else 9]
        if protocol == socket.IPPROTO_UDP and len(tcp) >= 8:
            surplus = tcp[int.from_bytes(tcp[4:6], "big"):]
            self.shims += b"\x7f\x14\xb5\xc0" in surplus
        if protocol != socket.IPPROTO_TCP or len(tcp) < 20:
            return
        self.segments += 1
        options = tcp[20:(tcp[12] >> 4) * 4]
        while len(options) >= 2 and options[0] != 0:
            if options[0] == 1:
                options = options[1:]
                continue
            if options[0] == 253:
                self.shims += options[2:4] == b"\xb5\xc0"
                self.announcements += options[2:4] == b"\xb5\xc1"
            options = options[max(2, options[1]):]

    def stop(self):
        self.running = False
        self.join()
        self.sock.close()


class Lab:
    """What one test made, and how to take it away again."""

    def __init__(self, directory):
        self.directory = directory
        os.makedirs(directory)
        self.undo = contextlib.ExitStack()
        self.processes = []
        self.ports = 0
        self.ends = []

    def close(self):
        self.undo.close()

    def path(self, name):
        return os.path.join(self.directory, name)

    def start(self, name, command, namespace=None):
        if namespace:
            command = ["ip", "netns", "exec", namespace, *command]
        process = Process(name, command, self.path(f"{name}.log"))
        self.processes.append(process)
        self.undo.callback(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.running():
            process.send(signal.SIGCONT)
            process.popen.kill()
        process.popen.wait()

    # Hosts and links

    def host(self, name):
        run("ip", "netns", "add", name)
        self.undo.callback(run, "ip", "netns", "del", name)
        run("ip", "-n", name, "link", "set", "lo", "up")
        return name

    def cable(self, end, other, mtu=1500, offloads=True):
        """A veth pair. An end is (host, device, addresses...); host None is bufscoped's side."""
        run("ip", "link", "add", end[1], "mtu", str(mtu), "type", "veth", "peer", "name",
            "peer0", "mtu", str(mtu))
        self.undo.callback(subprocess.run, ["ip", "link", "del", end[1]], stderr=subprocess.DEVNULL)
        run("ip", "link", "set", "peer0", "name", other[1],
            *(("netns", other[0]) if other[0] else ()))
        if end[0]:
            run("ip", "link", "set", end[1], "netns", end[0])
        for host, device, *addresses in (end, other):
            inside = ("-n", host) if host else ()
            within = ("ip", "netns", "exec", host) if host else ()
            if not addresses:
                # A dataplane's port: the kernel shall say nothing on it, and drop nothing.
                run(*within, "sysctl", "-qw", f"net.ipv6.conf.{device}.disable_ipv6=1")
                run("ip", *inside, "link", "set", device, "promisc", "on")
            if not offloads:
                run(*within, "ethtool", "-K", device, "tx", "off", "tso", "off", "gso", "off",
                    "gro", "off")
            if host:
                self.ends.append((host, device))
            for address in addresses:
                run("ip", *inside, "addr", "add", address, "dev", device,
                    *(("nodad",) if ":" in address else ()))
            run("ip", *inside, "link", "set", device, "up")

    def segments_only(self):
        """No frames larger than a segment: they do not fit the ring of af_packet, which cuts them."""
        for host, device in self.ends:
            run("ip", "netns", "exec", host, "ethtool", "-K", device, "tso", "off", "gso", "off")

    def standard(self, offloads=True):
        """client -- bs-wire [bufscoped] bs-local -- server."""
        self.host("client")
        self.host("server")
        self.cable((None, "bs-wire"), ("client", "e0", f"{CLIENT}/24", f"{CLIENT6}/64"),
                   offloads=offloads)
        self.cable((None, "bs-local"), ("server", "e0", f"{SERVICE}/24", f"{SERVICE6}/64"),
                   offloads=offloads)

    @contextlib.contextmanager
    def inside(self, host):
        """This thread in a host's network namespace: sockets made here stay there."""
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        there = os.open(f"/run/netns/{host}", os.O_RDONLY)
        try:
            expect(sandbox.libc.setns(there, sandbox.CLONE_NEWNET) == 0, f"setns {host}")
            yield
        finally:
            sandbox.libc.setns(home, sandbox.CLONE_NEWNET)
            os.close(home)
            os.close(there)

    def connect(self, host, address, port, timeout=10, receive_bytes=None):
        """A TCP connection from that host."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with self.inside(host):
            sock = socket.socket(family, socket.SOCK_STREAM)
        self.undo.callback(sock.close)
        if receive_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        sock.settimeout(timeout)
        sock.connect((address, port))
        return sock

    def reachable(self, host, address, port):
        try:
            self.connect(host, address, port, timeout=1).close()
        except OSError:
            return False
        return True

    # Services

    def redis(self, host="server", address=SERVICE, port=6379):
        name = f"redis-{port}"
        process = self.start(name, [
            "redis-server", "--bind", address, "--port", str(port), "--protected-mode", "no",
            "--save", "", "--appendonly", "no", "--dir", self.directory, "--unixsocket", "",
            "--pidfile", self.path(f"{name}.pid")], host)
        process.wait_for("redis to listen", lambda: self.reachable(host, address, port))
        return process

    def dnsmasq(self, records, host="server", address=SERVICE):
        """Answers for {name: IPv4 address}, over UDP and TCP."""
        process = self.start("dnsmasq", [
            "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts",
            "--user=root", "--bind-interfaces", f"--listen-address={address}", "--pid-file",
            *(f"--address=/{name}/{value}" for name, value in records.items())], host)
        process.wait_for("dnsmasq to listen", lambda: self.reachable(host, address, 53))
        return process

    def nginx(self, host="server", address=SERVICE, port=80, listen=""):
        """Serves, and takes with PUT, the files of the directory `www`."""
        os.makedirs(self.path("www"), exist_ok=True)
        where = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        with open(self.path("nginx.conf"), "w", encoding="utf-8") as config:
            config.write(f"""
daemon off; worker_processes 1; user root; pid {self.path("nginx.pid")};
error_log stderr warn;
events {{ worker_connections 64; }}
http {{
    access_log off; sendfile on; client_max_body_size 1g;
    client_body_temp_path {self.path("body")}; proxy_temp_path {self.path("proxy")};
    fastcgi_temp_path {self.path("fcgi")}; uwsgi_temp_path {self.path("uwsgi")};
    scgi_temp_path {self.path("scgi")};
    server {{ listen {where} {listen}; root {self.path("www")}; location / {{ dav_methods PUT; }} }}
}}
""")
        process = self.start("nginx", ["nginx", "-p", self.directory, "-e", "stderr", "-c",
                                       self.path("nginx.conf")], host)
        process.wait_for("nginx to listen", lambda: self.reachable(host, address, port))
        return process

    def memcached(self, *options, host="server", address=SERVICE, port=11211):
        process = self.start("memcached", ["memcached", "-u", "nobody", "-l", address, "-p",
                                           str(port), "-m", "256", "-I", "2m", *options], host)
        process.wait_for("memcached to listen", lambda: self.reachable(host, address, port))
        return process

    def ganesha(self, directory, host="server", address=SERVICE):
        """nfs-ganesha, NFSv4 alone (no portmapper, no D-Bus), exports that directory as itself."""
        os.makedirs(self.path(directory))
        os.makedirs(self.path("recovery"))
        with open(self.path("ganesha.conf"), "w", encoding="utf-8") as config:
            config.write(f"""
NFS_CORE_PARAM {{ Protocols = 4; Bind_addr = {address}; Enable_UDP = false; Enable_NLM = false;
                  Enable_RQUOTA = false; }}
NFSV4 {{ Graceless = true; RecoveryBackend = fs; RecoveryRoot = {self.path("recovery")}; }}
NFS_KRB5 {{ Active_krb5 = false; }}
EXPORT {{ Export_Id = 1; Path = {self.path(directory)}; Pseudo = /{directory}; Access_Type = RW;
          Squash = None; SecType = sys; Protocols = 4; Transports = TCP;
          FSAL {{ Name = VFS; }} }}
""")
        process = self.start("ganesha", ["ganesha.nfsd", "-F", "-f", self.path("ganesha.conf"), "-L",
                                         "STDERR", "-p", self.path("ganesha.pid")], host)
        process.wait_for("ganesha to listen", lambda: self.reachable(host, address, 2049))
        return process

    def load(self, *arguments, host="client", name="load"):
        """load.py on a host; `.requests()` is its log.

        Returns when its connections stand, with --warm when so many answers came.
        """
        process = self.start(name, ["/usr/bin/python3", os.path.join(HERE, "load.py"), "--log",
                                    self.path(f"{name}.jsonl"), *arguments], host)
        process.requests = lambda: self.requests(process, name)
        word = "warm" if "--warm" in arguments else "running"
        process.wait_for(f"load to say {word}", lambda: word in process.output(), 15)
        return process

    def requests(self, process, name):
        """What the load client itself saw, once it has ended."""
        status = process.popen.wait(60)
        expect(status == 0, f"{name} ended with {status}: {process.output()[-1000:]}")
        with open(self.path(f"{name}.jsonl"), encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    def bufscoped(self, wire="bs-wire", local="bs-local", **changes):
        return Dataplane(self, changes, wire, local)

    def sniff(self, host, device="e0"):
        """Counts what reaches a host; see Sniffer."""
        with self.inside(host):
            sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        sock.bind((device, ETH_P_ALL))
        sniffer = Sniffer(sock)
        self.undo.callback(sniffer.stop)
        return sniffer

    def report(self):
        """The end of every log, for a failed test."""
        for process in self.processes:
            print(f"--- {process.name} ({process.popen.poll()}):\n{process.output()[-3000:]}")


def resp(sock, *words):
    """One command to redis and its reply: bytes, int, list, None, or Failure for an error."""
    words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
    sock.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
    return resp_reply(sock.makefile("rb"))


def resp_reply(stream):
    line = stream.readline()
    expect(line.endswith(b"\r\n"), "redis closed the connection")
    kind, rest = line[:1], line[1:-2]
    if kind == b"+":
        return rest
    if kind == b":":
        return int(rest)
    if kind == b"$":
        size = int(rest)
        return None if size < 0 else stream.read(size + 2)[:-2]
    if kind == b"*":
        return [resp_reply(stream) for _ in range(int(rest))]
    raise Failure(f"redis answered {line!r}")


def find(answer, name):
    """Every number of that key, wherever a JSON answer holds it."""
    if isinstance(answer, list):
        return [value for one in answer for value in find(one, name)]
    if not isinstance(answer, dict):
        return []
    mine = [answer[name]] if isinstance(answer.get(name), int) else []
    return mine + [value for one in answer.values() for value in find(one, name)]


def merged(base, changes):
    """base with changes; objects are merged key by key."""
    out = dict(base)
    for key, value in changes.items():
        both = isinstance(value, dict) and isinstance(out.get(key), dict)
        out[key] = merged(out[key], value) if both else value
    return out


class Dataplane:
    """One bufscoped, its configuration and what it says of itself."""

    number = 0

    def __init__(self, lab, changes, wire, local):
        Dataplane.number += 1
        self.lab = lab
        self.prefix = f"live{Dataplane.number}"
        self.wire, self.local = wire, local
        self.changes = changes
        self.environment = {}
        self.driver = None
        self.process = None

    def config(self):
        lab = self.lab
        devices = {}
        for name, iface in (("wire", self.wire), ("local", self.local)):
            devices[name] = {"device": [DRIVERS[self.driver].format(number=lab.ports, iface=iface)]}
            lab.ports += 1
        return merged({
            "eal": {"lcores": str(max(os.sched_getaffinity(0))), "memory": "256M",
                    "file_prefix": self.prefix},
            "ports": devices,
            "paths": [{"wire": "wire", "service": "local"}],
            "services": [{"name": "kv", "address": SERVICE, "port": 6379, "protocol": "resp"}],
        }, self.changes)

    def write(self, config):
        path = self.lab.path(f"{self.prefix}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file, indent=1)
        return path

    def start(self, timeout=20):
        """With the first driver that works here. BUFSCOPE_DRIVER chooses one."""
        binary = program("bufscoped")
        drivers = [os.environ["BUFSCOPE_DRIVER"]] if "BUFSCOPE_DRIVER" in os.environ else DRIVERS
        for driver in drivers:
            self.driver = driver
            if driver == "af_packet":
                self.lab.segments_only()
            path = self.write(self.config())
            self.process = self.lab.start(f"bufscoped-{self.prefix}", [
                "env", *(f"{name}={value}" for name, value in self.environment.items()),
                binary, "-c", path])
            try:
                self.process.wait_for("bufscoped to answer", self.answers, timeout)
                return self
            except Failure:
                if driver == list(drivers)[-1]:
                    raise
                self.lab.end(self.process)
        raise Failure("no driver")

    def answers(self):
        return self.cli("status").returncode == 0

    def cli(self, command, *arguments):
        return subprocess.run(
            [program("bufscope"), command, "--file-prefix", self.prefix, *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            timeout=20)

    def text(self, command, *arguments):
        done = self.cli(command, *arguments)
        expect(done.returncode == 0, f"bufscope {command}: {done.stderr.strip()}")
        return done.stdout

    def ask(self, command, params=""):
        """One command on bufscoped's own control socket; Failure with its error."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(10)
            sock.connect(f"/run/dpdk/{self.prefix}/bufscope.sock")
            request = {"command": f"/bufscope/{command}", "params": params}
            sock.sendall(json.dumps(request).encode() + b"\n")
            answer = json.loads(sock.makefile("rb").readline())
        expect("result" in answer, f"{command}: {answer.get('error')}")
        return answer["result"]

    def pages(self, command):
        """A list that comes in pages, whole."""
        whole, offset = [], 0
        while offset is not None:
            page = self.ask(command, str(offset))
            whole += page[command]
            offset = page["next"]
        return whole

    def counter(self, name):
        """A counter by its key, of all ports; Failure where there is none of that name."""
        found = find({**self.ask("counters"), "ports": []}, name)
        expect(found, f"no counter {name}")
        return sum(found)

    def answered(self, service, count):
        """Waits until bufscoped has counted so many answered RPCs of a service: it counts an RPC
        when its last byte is acknowledged. Failure if they become more, or stay fewer."""
        def counted():
            return sum(one["answered"] for one in self.pages("services")
                       if one["service"] == service)
        with contextlib.suppress(Failure):
            wait_for("RPCs", lambda: counted() >= count, 3)
        expect(counted() == count, f"{counted()} RPCs of {service} answered, not {count}")

    def anomalies(self):
        return self.pages("anomalies")

    def incidents(self):
        return self.pages("incidents")

    def telemetry(self, command):
        """One command on DPDK's telemetry socket, as dpdk-telemetry.py sends it."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
            sock.settimeout(10)
            sock.connect(f"/run/dpdk/{self.prefix}/dpdk_telemetry.v2")
            sock.recv(16384)
            sock.send(command.encode())
            return json.loads(sock.recv(1 << 20))

    def stop(self):
        """SIGTERM; returns what it printed. Failure unless the exit status is 0."""
        status = self.process.stop()
        expect(status == 0, f"bufscoped ended with {status}")
        return self.process.output()


def main(*tests):
    """Runs the tests of a file; ends the process with 0, 1, or 77 (skipped)."""
    sys.stdout.reconfigure(line_buffering=True)
    try:
        for name in ("bufscoped", "bufscope"):
            program(name)
        if os.geteuid() != 0:
            raise Skip("needs root")
        sandbox.enter()
    except (Skip, OSError) as why:
        print(f"skipped: {why}")
        sys.exit(SKIPPED)
    except Failure as why:
        sys.exit(f"FAILED {why}")
    status = 0
    for test in tests:
        lab = Lab(f"/run/{test.__name__}")
        try:
            test(lab)
            print(f"ok     {test.__name__}")
        except Skip as why:
            print(f"skip   {test.__name__}: {why}")
            status = status or SKIPPED
        except Exception:
            print(f"FAILED {test.__name__}")
            traceback.print_exc(file=sys.stdout)
            lab.report()
            status = 1
        finally:
            lab.close()
    sys.exit(status)
