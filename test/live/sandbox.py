# SPDX-License-Identifier: BSD-3-Clause
"""Mount, network and PID namespaces of a test's own.

All that a live test makes (namespaces, links, sockets, files under /run, and
processes) lives in them, so the kernel takes it away with the test, however
that ends: by return, by Ctrl-C, or by SIGKILL. Parallel runs and the host do
not meet.
"""
import ctypes
import os
import signal
import subprocess
import sys

CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x20000000, 0x40000000
PR_SET_PDEATHSIG = 1
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

libc = ctypes.CDLL(None, use_errno=True)


def enter():
    """Goes on in new namespaces, in a child that is PID 1 there. OSError: not allowed.

    The parent passes signals on, and ends as the child does.
    """
    if libc.unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID) != 0:
        errno = ctypes.get_errno()
        raise OSError(errno, f"no private namespaces: {os.strerror(errno)}")
    sys.stdout.flush()
    child = os.fork()
    if child:
        for number in SIGNALS:
            signal.signal(number, lambda number, frame: os.kill(child, number))
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        os._exit(code if code >= 0 else 128 - code)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    for number in SIGNALS:
        signal.signal(number, leave)
    # What `ip netns`, DPDK and the tests keep under /run is private too.
    for command in ("mount --make-rprivate /", "mount -t proc proc /proc",
                    "mount -t sysfs sysfs /sys", "mount -t tmpfs -o mode=755 tmpfs /run",
                    "mkdir /run/netns", "ip link set lo up"):
        subprocess.run(command.split(), check=True)


def leave(number, frame):
    """First signal: unwinds. Later ones (a terminal's and the parent's are two) are ignored."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    sys.exit(128 + number)


def die_with_parent():
    """For preexec_fn: a child does not outlive the test."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
