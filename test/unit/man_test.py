#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Man pages and completion tell each option, command and key: man_test COMPLETION [PAGE...].

Pages are read as man shows them; what must be in them comes from --help of the programs below
build's apps, and from the table of config/README.md.
"""
import os
import re
import subprocess
import sys
import unittest

COMPLETION, PAGES = sys.argv[1], sys.argv[2:]
APPS = os.path.join(os.path.dirname(COMPLETION), "../../apps")
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run(*words, **more):
    return subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          text=True, **more).stdout


def options(*words):
    text = run(f"{APPS}/{words[0]}", *words[1:], "--help")
    return sorted(set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)))


def commands():
    return re.findall(r"^  (\w+) ", run(f"{APPS}/bufscope", "--help"), re.MULTILINE)


def shown(page):
    path = next(path for path in PAGES if os.path.basename(path) == page)
    text = run("man", "-l", path, env=dict(os.environ, MANWIDTH="1000", LC_ALL="C.UTF-8"))
    return re.sub(".\b", "", text).replace("\u2010", "-").replace("\u2212", "-")


def completed(*words):
    """What bash offers for the last of these words."""
    script = (f". {COMPLETION}; COMP_WORDS=({' '.join(repr(word) for word in words)}); "
              f"COMP_CWORD={len(words) - 1}; "
              f"{'_bufscope' if words[0] == 'bufscope' else '_bufscoped'} {words[0]}; "
              'printf "%s\\n" "${COMPREPLY[@]}"')
    return run("bash", "-c", script).split()


class Man(unittest.TestCase):
    def setUp(self):
        if not PAGES:
            self.skipTest("scdoc was not there to make man pages")

    def test_each_option_of_the_daemons_is_in_its_page(self):
        for program in ("bufscoped", "bufscope-analyzer"):
            for option in options(program):
                self.assertIn(option, shown(f"{program}.8") + " --help")

    def test_each_command_and_its_options_are_in_the_page(self):
        page = shown("bufscope.1")
        for command in commands():
            self.assertRegex(page, rf"(?m)^ +{command}$")
            for option in options("bufscope", command):
                self.assertIn(option, page)

    def test_each_key_is_in_the_page_with_its_meaning(self):
        with open(f"{TOP}/config/README.md", encoding="utf-8") as file:
            keys = re.findall(r"^\| `([^`]+)` \| .* \| (\w+)", file.read(), re.MULTILINE)
        page = shown("bufscope.json.5")
        self.assertGreater(len(keys), 40)
        for key, word in keys:
            if key.endswith(".json"):
                continue
            self.assertRegex(page, rf"(?m)^ +{re.escape(key)}$")
            self.assertIn(word, page)

    def test_nothing_is_left_of_the_templates(self):
        for path in PAGES:
            self.assertNotRegex(shown(os.path.basename(path)), r"@[A-Z-]+@")


class Mistakes(unittest.TestCase):
    """Each program and command says what is wrong on one line, and where to read on."""

    def complaint(self, *words):
        done = subprocess.run([f"{APPS}/{words[0]}", *words[1:]], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1),
                         f"{words}: {done.stderr}")
        return done.stderr

    def test_an_unknown_option_is_refused_by_each(self):
        for words in (["bufscoped"], ["bufscope-analyzer"],
                      *(["bufscope", command] for command in commands())):
            name = " ".join(words)
            self.assertEqual(self.complaint(*words, "--nonsense"),
                             f"{name}: --nonsense: no such option (see {name} --help)\n")

    def test_what_is_missing_or_too_much_is_said(self):
        for words, hint in ((["bufscoped"], "give -c FILE"), (["bufscoped", "-c"], "needs a value"),
                            (["bufscoped", "-c", "x", "--lcores"], "no such option"),
                            (["bufscoped", "-c", "x", "0@1"], "arguments for EAL come after --"),
                            (["bufscope-analyzer"], "give --fd or --socket"),
                            (["bufscope-analyzer", "--fd", "x"], "not a number from 0 to"),
                            (["bufscope-analyzer", "--socket", "/x", "--uid", "1"], "--gid"),
                            (["bufscope", "explain"], "one RPC-ID"),
                            (["bufscope", "check"], "which configuration"),
                            (["bufscope", "replay"], "no capture given")):
            complaint = self.complaint(*words)
            self.assertIn(hint, complaint)
            self.assertIn("--help)", complaint)


class Completion(unittest.TestCase):
    def test_commands_are_offered(self):
        self.assertEqual(sorted(completed("bufscope", "")), sorted(commands() + ["--help"]))
        self.assertEqual(completed("bufscope", "expl"), ["explain"])

    def test_options_of_each_command_are_offered(self):
        for command in commands():
            self.assertEqual(sorted(completed("bufscope", command, "--")),
                             options("bufscope", command))

    def test_options_of_the_daemons_are_offered(self):
        self.assertEqual(sorted(completed("bufscoped", "--")), options("bufscoped"))
        self.assertEqual(sorted(completed("bufscope-analyzer", "--")),
                         options("bufscope-analyzer"))

    def test_files_and_formats_are_offered(self):
        self.assertEqual(completed("bufscope", "check", f"{TOP}/config/dem"),
                         [f"{TOP}/config/demo.json"])
        self.assertEqual(completed("bufscope", "replay", "--format", "js"), ["json", "jsonl"])
        self.assertEqual(completed("bufscoped", "-c", f"{TOP}/config/dem"),
                         [f"{TOP}/config/demo.json"])


unittest.main(argv=["man_test"])
