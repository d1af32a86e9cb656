#!/usr/bin/env python3
"""Replays recordings of kube-apiserver and compares what fails with what is expected to.

usage: replay_test.py KEELSON WORK_FOLDER [AREA]...          areas of corpus/, on one server with the usual flags
       replay_test.py KEELSON WORK_FOLDER --second AREA...   areas of corpus-2/, whose cases choose a profile: one server per profile

The recordings are in test/recordings. KEELSON_CORPUS names another corpus/; its corpus-2/ is the folder of that name with "-2" behind it.
Expected failures are one case a line with its reason: replay_expected_failures.txt for corpus/, expected_failures/<area>.txt for an area of
corpus-2/. The lists may only shrink: a case that fails and is not in its list fails the test, a case in it that passes is reported so that
its line can go. KEELSON_REPLAY_UPDATE=1 rewrites the lists, keeping known reasons; a text other than 1 is the reason of new lines.
"""
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BARE, Server, source_root  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
FLAGS = ["--service-cluster-ip-range=10.0.0.0/16", "--authorization-mode=Node,RBAC", "--endpoint-reconciler-type=none"]
FIRST = os.path.join(HERE, "replay_expected_failures.txt")
HEAD = "# Recorded cases in which this server still differs from kube-apiserver. One a line, then two spaces and \"# reason\". May only shrink.\n"
REPLAY_TIMEOUT = 1700  # seconds
AGAIN_MAX = 10  # unexpected failures; more are not the machine's fault
RETRY_SECONDS = "15"  # to wait for an answer to change: a token that was good stays good for 10 s, as upstream; a busy machine is slow


def expected_file(area, second):
    return os.path.join(HERE, "expected_failures", area + ".txt") if second else FIRST


def read_expected(path):
    expected = {}
    if os.path.exists(path):
        with open(path) as f:
            for line in f:
                line = line.rstrip("\n")
                if line and not line.startswith("#"):
                    name, _, reason = line.partition("  # ")
                    expected[name.strip()] = reason.strip()
    return expected


def write_expected(path, failed, known, reason):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(HEAD)
        for name in sorted(failed):
            f.write("%s  # %s\n" % (name, known.get(name) or reason))


def replay_first(replay, binary, folder, chosen, report, log):
    """All cases on one in-memory server. True when it is alive afterwards."""
    server = Server(binary, folder, FLAGS, in_memory=True).start()
    try:
        subprocess.run([sys.executable, replay, "--server", "https://127.0.0.1:%d" % server.port, "--ca", os.path.join(server.pki, "ca.crt"),
                        "--cert", os.path.join(server.pki, "admin.crt"), "--key", os.path.join(server.pki, "admin.key"), "--retry-seconds", RETRY_SECONDS,
                        "--jobs", "4", "--junit", report] + chosen, stdout=log, stderr=log, timeout=REPLAY_TIMEOUT)
        return server.process.poll() is None
    finally:
        server.stop()


def replay_second(replay, binary, chosen, report, log):
    """The replayer starts one server per profile that the cases name, and says itself when one of them ended."""
    command = os.path.abspath(binary) + " --data-dir {dir}/data " + BARE
    subprocess.run([sys.executable, replay, "--start", command, "--profile", "all", "--retry-seconds", RETRY_SECONDS, "--jobs", "4", "--junit", report] + chosen,
                   stdout=log, stderr=log, timeout=REPLAY_TIMEOUT)
    return True


def outcomes_of(report):
    """(case, failed) of each case in a JUnit report."""
    return [(case.get("name"), case.find("failure") is not None or case.find("error") is not None)
            for case in ElementTree.parse(report).iter("testcase")]


def again(cases, run, second):
    """Some responses have ages in seconds, which a busy machine changes: cases that fail unexpectedly are run once more, alone."""
    expected = {}
    for area in {name.split("/")[0] for name, _ in cases}:
        expected.update(read_expected(expected_file(area if second else "", second)))
    failed = [name for name, bad in cases if bad and name not in expected]
    if not failed or len(failed) > AGAIN_MAX:
        return cases
    repeated = dict(run(["--filter", "^(%s)$" % "|".join(re.escape(name) for name in failed)]))
    for name in failed:
        print("run again: %s: %s" % (name, "fails" if repeated.get(name, True) else "passes"))
    return [(name, repeated.get(name, True) if name in failed else bad) for name, bad in cases]


def compare(area, second, outcomes, replay_log):
    """Number of unexpected failures of one area; `outcomes` are (case, failed)."""
    failed = {name for name, bad in outcomes if bad}
    passed = {name for name, bad in outcomes if not bad}
    path = expected_file(area, second)
    expected = read_expected(path)
    update = os.environ.get("KEELSON_REPLAY_UPDATE")
    if update:
        write_expected(path, failed, expected, "reason not looked at" if update == "1" else update)
        expected = read_expected(path)
    for name in sorted(passed & expected.keys()):
        print("passes now, its line can go: " + name)
    new = sorted(failed - expected.keys())
    for name in new:
        print("FAIL: %s (differences in %s)" % (name, replay_log))
    return len(new)


def main():
    binary, folder = sys.argv[1:3]
    second = sys.argv[3:4] == ["--second"]
    areas = sys.argv[4:] if second else sys.argv[3:]
    recordings = os.path.join(source_root(), "test", "recordings")
    replay = os.path.join(recordings, "replay.py")
    root = os.path.abspath(os.environ.get("KEELSON_CORPUS") or os.path.join(recordings, "corpus")) + ("-2" if second else "")
    chosen = [os.path.join(root, area) for area in areas] or [root]
    for path in chosen:
        if not os.path.exists(path):
            sys.exit("no recordings at " + path)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    report = os.path.join(os.path.abspath(folder), "replay.xml")
    replay_log = os.path.join(folder, "replay.log")
    alive = []

    def run(arguments):
        with open(replay_log, "a") as log:
            if second:
                alive.append(replay_second(replay, binary, arguments + chosen, report, log))
            else:
                alive.append(replay_first(replay, binary, os.path.join(folder, str(len(alive))), arguments + chosen, report, log))
        if not os.path.exists(report):
            sys.exit("replay.py wrote no report; see %s" % replay_log)
        return outcomes_of(report)

    outcomes = {}
    for name, bad in again(run([]), run, second):
        outcomes.setdefault(name.split("/")[0], []).append((name, bad))
    for area, cases in sorted(outcomes.items()):
        bad = sum(1 for case in cases if case[1])
        print("%-12s %5d passed %5d failed  %5.1f %%" % (area, len(cases) - bad, bad, 100.0 * (len(cases) - bad) / len(cases)))
    every = [case for cases in outcomes.values() for case in cases]
    if second:
        new = sum(compare(area, second, cases, replay_log) for area, cases in sorted(outcomes.items()))
    else:
        new = compare("", second, every, replay_log)
    failed = sum(1 for case in every if case[1])
    if not all(alive):
        print("FAIL: the server ended during the replay")
    print("%d cases passed, %d fail as expected, %d fail unexpectedly" % (len(every) - failed, failed - new, new))
    sys.exit(1 if new or not all(alive) or not every else 0)


if __name__ == "__main__":
    main()
