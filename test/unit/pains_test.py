#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""doc/pains.md has a row for each pain, and each test that a row names exists and is run."""
import os
import re
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
PAINS = [f"L{i}" for i in range(1, 13)] + [f"P{i:02}" for i in range(1, 31)]
ROW = re.compile(r"^\| ([LP]\d+) \| ([^|]+) \| ([^|]+) \| ([^|]*) \|$", re.MULTILINE)
TESTS = re.compile(r"`([\w/]+\.(?:c|py)): ([\w, ]+)`")


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read()


def is_run(path, function):
    """Is it defined, and named a second time, where the file lists what it runs?"""
    text = read(os.path.join("test", path))
    defined = rf"^{function}\(void" if path.endswith(".c") else rf"^def {function}\("
    return re.search(defined, text, re.MULTILINE) and len(re.findall(rf"\b{function}\b", text)) > 1


def main():
    failures = []
    rows = ROW.findall(read("doc/pains.md"))
    if [row[0] for row in rows] != PAINS:
        failures.append(f"rows: {[row[0] for row in rows]}, not {PAINS}")
    for pain, _, does, tests in rows:
        found = TESTS.findall(tests)
        if not found and "cannot occur" not in does:
            failures.append(f"{pain}: no test, and no word why it cannot occur")
        if len(found) != tests.count("`") // 2:
            failures.append(f"{pain}: not of the form `suite/file: test, test`: {tests}")
        for path, names in found:
            if not os.path.exists(os.path.join(TOP, "test", path)):
                failures.append(f"{pain}: no file {path}")
                continue
            failures += [f"{pain}: {path} has no test {name}" for name in names.split(", ")
                         if not is_run(path, name)]
    print("\n".join(failures) or f"{len(rows)} pains")
    return 1 if failures else 0


sys.exit(main())
