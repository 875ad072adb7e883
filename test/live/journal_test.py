# SPDX-License-Identifier: BSD-3-Clause
"""The journal: what was told is found again, whatever is killed, full or broken."""
import contextlib
import json
import os
import signal
import subprocess
import time

import harness
from processes import analyzers
from harness import SERVICE, expect, hold, program, run, wait_for

LOST = ("app_queue_full", "handover_full", "tx_refused", "rx_nombuf")


def bufscope(*arguments):
    return subprocess.run([program("bufscope"), *arguments], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)


def report(*arguments):
    done = bufscope("report", "--format", "json", *arguments)
    expect(done.returncode == 0, f"report: {done.returncode}, {done.stderr}")
    return json.loads(done.stdout)


def begin(lab, directory=None, **changes):
    lab.standard()
    redis = lab.redis()
    path = os.path.join(directory or lab.directory, "journal")
    changes.setdefault("analyzer", {"journal": {"path": path, "size": "2M", "files": 2}})
    dataplane = lab.bufscoped(**changes).start()
    wait_for("the analyzer to be connected",
             lambda: dataplane.ask("status")["analyzer"]["connected"])
    return dataplane, redis, path


def journal(dataplane):
    return dataplane.ask("status")["journal"]


def nothing_lost(dataplane, load, count):
    requests = load.requests()
    expect(len(requests) == count, f"{len(requests)} of {count} requests were answered")
    expect(all(one["ok"] for one in requests), "a value came back altered")
    for reason in LOST:
        expect(dataplane.counter(reason) == 0, f"{reason}: {dataplane.counter(reason)}")


def told_since(dataplane, begun):
    return {one["id"] for one in dataplane.anomalies() if int(one["t_request_first"]) > begun}


def stall(dataplane, redis):
    """redis is stopped for a while; returns when that was, and when a victim of it is told."""
    begun = time.time_ns()
    redis.send(signal.SIGSTOP)
    hold(0.1)
    redis.send(signal.SIGCONT)
    wait_for("a victim", lambda: told_since(dataplane, begun))
    return begun


def kill(pid):
    """The processes are gone, or others have their numbers, when it returns."""
    handle = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitid(os.P_PIDFD, handle, os.WEXITED | os.WNOWAIT)
    os.close(handle)


def same(told, found):
    """The keys that a verdict consists of."""
    return all(told[key] == found[key] for key in told)


def what_was_told_is_found_after_kill_9(lab):
    """kill -9 of the analyzer, then of bufscoped: every anomaly that was told is in the journal,
    with the same verdict."""
    dataplane, redis, path = begin(lab)
    load = lab.load("--address", SERVICE, "--rate", "300", "--seconds", "6", "--connections", "4",
                    "--warm", "100")
    stall(dataplane, redis)
    first = analyzers()[0]
    os.kill(first, signal.SIGKILL)
    wait_for("another analyzer", lambda: [one for one in analyzers() if one != first])
    wait_for("it to be connected", lambda: dataplane.ask("status")["analyzer"]["connected"])
    stall(dataplane, redis)
    nothing_lost(dataplane, load, 1800)
    told, incidents = dataplane.anomalies(), dataplane.incidents()
    dataplane.process.popen.kill()
    dataplane.process.popen.wait()
    wait_for("the analyzers to end", lambda: not analyzers())
    found = report(path)
    by_id = {one["id"]: one for one in found["anomalies"]}
    expect(len(told) >= 2, f"only {len(told)} anomalies were told")
    missing = [one["id"] for one in told if one["id"] not in by_id]
    expect(not missing, f"{len(missing)} of {len(told)} anomalies are not in the journal")
    for one in told:
        expect(same(one, by_id[one["id"]]), f"told: {one}\nfound: {by_id[one['id']]}")
    known = {one["id"] for one in found["incidents"]}
    expect({one["id"] for one in incidents} <= known, "an incident is not in the journal")
    counters = found["counters"]
    expect(counters["missing_blocks"] == 0 and counters["runs"] == 1, f"{counters}")
    answered = sum(one["answered"] for one in found["services"] if one["service"] == "kv")
    expect(answered > 1000, f"{answered} RPCs answered in the journal")
    expect(all(one["root_cause"] for one in found["slowest"]), "a slow RPC without root cause")
    expect(bufscope("report", "--fail-on-anomaly", path).returncode == 3, "--fail-on-anomaly")
    text = bufscope("report", path).stdout
    expect(f"{len(found['anomalies'])} of " in text, f"the text: {text}")
    return path, found


def damaged_files_are_read_around_the_damage(lab):
    path, found = what_was_told_is_found_after_kill_9(lab)
    blocks = found["counters"]["blocks"]
    size = os.path.getsize(path + ".0")
    with open(path + ".0", "r+b") as file:
        file.seek(size // 2)
        file.write(b"\xff" * 8)
        file.truncate(size - 10)
    done = bufscope("report", "--format", "json", path + ".0")
    expect(done.returncode == 0, f"report: {done.returncode}")
    lines = done.stderr.splitlines()
    expect(len(lines) == 2 and all(f"{path}.0: offset " in line for line in lines) and
           "bytes skipped" in lines[0] and "torn" in lines[1], f"warnings: {done.stderr}")
    counters = json.loads(done.stdout)["counters"]
    expect(0 < counters["blocks"] < blocks and counters["damages"] == 2, f"{counters}")
    with open(path + ".0", "wb") as file:
        file.write(b"something else " * 100)
    done = bufscope("report", path + ".0")
    expect(done.returncode == 1 and "not a journal" in done.stderr and
           done.stderr.endswith("nothing could be read\n"), f"{done.returncode} {done.stderr}")
    done = bufscope("report", path + ".none")
    expect(done.returncode == 1 and "no such file" in done.stderr, done.stderr)


def full_disk_costs_records_only(lab):
    """A full tmpfs: no packet is lost, what is not written is counted and told, and writing goes
    on when there is room."""
    directory = lab.path("small")
    os.mkdir(directory)
    run("mount", "-t", "tmpfs", "-o", "size=9M,mode=755", "tmpfs", directory)
    lab.undo.callback(run, "umount", "-l", directory)
    path = os.path.join(directory, "journal")
    dataplane, _, path = begin(lab, directory, records={"sample": 1}, analyzer={
        "journal": {"path": path, "size": "8M", "files": 2}})
    filler = os.path.join(directory, "filler")
    with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    load = lab.load("--address", SERVICE, "--rate", "600", "--seconds", "6", "--connections", "4",
                    "--warm", "10")
    wait_for("the journal to fail", lambda: journal(dataplane)["error"])
    expect(journal(dataplane)["error"] == "No space left on device", str(journal(dataplane)))
    wait_for("records to be lost", lambda: journal(dataplane)["journal_lost_records"] > 0)
    problems = [one for one in dataplane.ask("status")["problems"]
                if one["component"] == "journal"]
    expect(problems and "No space left" in problems[0]["problem"], f"problems: {problems}")
    os.unlink(filler)
    wait_for("the journal to be written again", lambda: not journal(dataplane)["error"])
    nothing_lost(dataplane, load, 3600)
    before = journal(dataplane)["journal_records"]
    wait_for("more of it", lambda: journal(dataplane)["journal_records"] > before)
    dataplane.stop()
    found = report(path)["counters"]
    expect(found["unwritten_records"] > 0 and found["damages"] == 0 and
           found["missing_blocks"] == 0, f"{found}")


def disk_that_becomes_read_only_costs_records_only(lab):
    """As ext4 does on an error of the disk: every write fails, and the dataplane goes on."""
    image, directory = lab.path("image"), lab.path("broken")
    os.mkdir(directory)
    run("truncate", "-s", "16M", image)
    run("mkfs.ext4", "-q", "-F", image)
    try:
        run("mount", "-o", "loop,errors=remount-ro", image, directory)
    except harness.Failure as why:
        raise harness.Skip(f"no loop device: {why}") from None
    lab.undo.callback(run, "umount", "-l", directory)
    device = os.path.basename(run("findmnt", "-no", "SOURCE", directory).strip())
    dataplane, _, path = begin(lab, directory, records={"sample": 1})
    load = lab.load("--address", SERVICE, "--rate", "1000", "--seconds", "4", "--connections", "4",
                    "--warm", "10")
    wait_for("records to be written", lambda: journal(dataplane)["journal_records"] > 0)
    with open(f"/sys/fs/ext4/{device}/trigger_fs_error", "w", encoding="ascii") as trigger:
        trigger.write("1")
    wait_for("the journal to fail", lambda: journal(dataplane)["error"])
    wait_for("records to be lost", lambda: journal(dataplane)["journal_lost_records"] > 0)
    nothing_lost(dataplane, load, 4000)
    expect(dataplane.ask("status")["analyzer"]["restarts"] == 0, "the analyzer ended")
    dataplane.stop()
    expect(report(path)["counters"]["records"] > 0, "nothing was written before")


def read_only_directory_is_refused_at_start(lab):
    directory = lab.path("readonly")
    os.mkdir(directory)
    run("mount", "-t", "tmpfs", "-o", "ro,mode=755", "tmpfs", directory)
    lab.undo.callback(run, "umount", "-l", directory)
    lab.standard()
    dataplane = lab.bufscoped(analyzer={"journal": directory + "/j"})
    dataplane.driver = "af_packet"
    done = subprocess.run([program("bufscoped"), "-c", dataplane.write(dataplane.config())],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=20)
    expect(done.returncode == 1 and "/j.0 Read-only file system" in done.stderr,
           f"{done.returncode}: {done.stderr}")


def recording_has_what_was_reported_meanwhile(lab):
    """record, until SIGINT and for a time; what was before is not in it, what was told is."""
    dataplane, redis, path = begin(lab)
    load = lab.load("--address", SERVICE, "--rate", "300", "--seconds", "7", "--connections", "4",
                    "--warm", "100")
    stall(dataplane, redis)
    before = {one["id"] for one in dataplane.anomalies()}
    first, second = lab.path("first"), lab.path("second")
    recorder = lab.start("record", [program("bufscope"), "record", "--file-prefix",
                                    dataplane.prefix, "-o", first])
    recorder.wait_for("the file", lambda: os.path.exists(first))
    told = told_since(dataplane, stall(dataplane, redis))
    expect(recorder.stop(signal.SIGINT) == 0, f"record ended: {recorder.output()}")
    expect("0 records not written, 0 blocks missing" in recorder.output(), recorder.output())
    found = report(first)
    ids = {one["id"] for one in found["anomalies"]}
    expect(told and told <= ids, f"{len(told)} told, {len(told & ids)} of them recorded")
    expect({one["service"] for one in found["services"]} == {"kv"}, f"{found['services']}")
    done = dataplane.cli("record", "--for", "1s", "-o", second)
    expect(done.returncode == 0 and " RPCs, " in done.stdout, done.stderr)
    seconds = report(second)
    expect(sum(one["answered"] for one in seconds["services"]) > 100, f"{seconds['services']}")
    # The journal has all of both: nothing counts twice.
    alone, together = report(path), report(path, first, second)
    expect(together["counters"]["repeated_blocks"] > 0, "no block was in two files")
    expect({one["id"] for one in alone["anomalies"]} >= before | told, "anomalies")
    expect(abs(alone["services"][0]["rpcs"] - together["services"][0]["rpcs"]) < 1000 and
           {one["id"] for one in alone["anomalies"]} <= {one["id"] for one in
                                                        together["anomalies"]},
           "the journal alone and with the recordings")
    refused = dataplane.cli("record", "-o", path + ".0")
    expect(refused.returncode == 1 and "of the journal itself" in refused.stderr, refused.stderr)
    nothing_lost(dataplane, load, 2100)


def recording_without_a_journal_says_what_to_do(lab):
    lab.standard()
    dataplane = lab.bufscoped().start()
    done = dataplane.cli("record", "-o", lab.path("file"))
    expect(done.returncode == 1 and "set analyzer.journal" in done.stderr and
           done.stderr.count("\n") == 1, f"{done.returncode}: {done.stderr}")
    expect(journal(dataplane) is None, "a journal")


harness.main(recording_has_what_was_reported_meanwhile, recording_without_a_journal_says_what_to_do,
             what_was_told_is_found_after_kill_9, damaged_files_are_read_around_the_damage,
             full_disk_costs_records_only, disk_that_becomes_read_only_costs_records_only,
             read_only_directory_is_refused_at_start)
