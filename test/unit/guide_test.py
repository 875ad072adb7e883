#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Does doc/guide.md say what there is, and nothing else?

usage: guide_test.py BUFSCOPED BUFSCOPE-ANALYZER BUFSCOPE

Options and commands come from the programs' own help, keys and defaults from
config/README.md (which config_test holds against the table), counters from the
X-lists of the headers.
"""
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COUNTERS = [
    "lib/packet/bs_packet.h",
    "lib/record/bs_vocab.h",
    "lib/rpc/bs_tracker.h",
    "src/dataplane/snapshot.h",
    "src/dataplane/watch.h",
]
OPTION = r"(?<![\w-])--[a-z][a-z-]*"
failures = []


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read()


def show_help(*command):
    return subprocess.run([*command, "--help"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          text=True, check=True, timeout=30).stdout


def compare(what, there, told):
    """Both must be the same set, and not empty: then nothing would have been compared."""
    if not there:
        failures.append(f"no {what} found to compare with")
    for one in sorted(there - told):
        failures.append(f"{what} {one}: not in the guide")
    for one in sorted(told - there):
        failures.append(f"{what} {one}: in the guide, but there is none")


def options_and_commands(guide, programs):
    bufscope = programs[2]
    commands = re.findall(r"^  (\w+) ", show_help(bufscope), flags=re.M)
    helps = [show_help(program) for program in programs]
    helps += [show_help(bufscope, command) for command in commands]
    compare("option", {option for text in helps for option in re.findall(OPTION, text)} | {"--help"},
            set(re.findall(OPTION, guide)))
    compare("command", set(commands), set(re.findall(r"`bufscope ([a-z]+)[^`]*`", guide)))


def configuration(guide):
    def rows(text):
        return set(re.findall(r"^\| `([\w.\[\]]+)` \| (`[^|]*`|required) \|", text, flags=re.M))

    compare("configuration key with default", rows(read("config/README.md")),
            rows(guide.split("## 4. ")[1].split("\n## ")[0]))


def counters(guide):
    keys = set()
    for header in COUNTERS:
        found = re.findall(r'X\(\w+,\s*"(\w+)",[\s\\]*"', read(header))
        if not found:
            failures.append(f"{header}: no counters found")
        keys |= set(found)
    compare("counter", keys,
            set(re.findall(r"^\| `(\w+)` \|", guide.split("## 12. ")[1].split("\n## ")[0],
                           flags=re.M)))


def main():
    guide = read("doc/guide.md")
    options_and_commands(guide, sys.argv[1:4])
    configuration(guide)
    counters(guide)
    for failure in failures:
        print(failure)
    return 1 if failures else 0


sys.exit(main())
