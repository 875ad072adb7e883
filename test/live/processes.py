# SPDX-License-Identifier: BSD-3-Clause
"""Processes of ours in this PID namespace."""
import os


def analyzers():
    """Process numbers of analyzers."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if os.path.basename(file.read().split(b"\0")[0]) == b"bufscope-analyzer":
                    found.append(int(name))
        except OSError:
            continue
    return found
