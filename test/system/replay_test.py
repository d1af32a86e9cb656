#!/usr/bin/env python3
"""Replays recordings of kube-apiserver and compares what fails with what is expected to. usage: replay_test.py KEELSON WORK_FOLDER [AREA]...

The recordings are not part of the tree: KEELSON_CORPUS, by default ../shared/corpus beside it. replay_expected_failures.txt names the
cases that differ, one a line with its reason. The list may only shrink: a case that fails and is not in it fails the test, a case in
it that passes is reported so that its line can go. KEELSON_REPLAY_UPDATE=1 rewrites the list, keeping known reasons.
"""
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Server, skip, source_root  # noqa: E402

FLAGS = ["--service-cluster-ip-range=10.0.0.0/16", "--authorization-mode=Node,RBAC", "--endpoint-reconciler-type=none"]
EXPECTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "replay_expected_failures.txt")


def read_expected():
    expected = {}
    with open(EXPECTED) as f:
        for line in f:
            line = line.rstrip("\n")
            if line and not line.startswith("#"):
                name, _, reason = line.partition("  # ")
                expected[name.strip()] = reason.strip()
    return expected


def write_expected(failed, known):
    with open(EXPECTED) as f:
        head = [line for line in f if line.startswith("#")]
    with open(EXPECTED, "w") as f:
        f.writelines(head)
        for name in sorted(failed):
            f.write("%s  # %s\n" % (name, known.get(name) or "reason not looked at"))


def main():
    binary, folder = sys.argv[1:3]
    corpus = os.environ.get("KEELSON_CORPUS") or os.path.join(os.path.dirname(source_root()), "shared", "corpus")
    replay = os.path.join(os.path.dirname(os.path.abspath(corpus)), "tools", "replay.py")
    if not os.path.exists(replay):
        skip("no recordings in %s and no replay.py beside them: set KEELSON_CORPUS" % corpus)
    chosen = [os.path.join(corpus, area) for area in sys.argv[3:]] or [corpus]
    shutil.rmtree(folder, ignore_errors=True)
    server = Server(binary, folder, FLAGS, in_memory=True).start()
    junit = os.path.join(os.path.abspath(folder), "replay.xml")
    try:
        with open(os.path.join(folder, "replay.log"), "w") as log:
            subprocess.run([sys.executable, replay, "--server", "https://127.0.0.1:%d" % server.port, "--ca", os.path.join(server.pki, "ca.crt"),
                            "--cert", os.path.join(server.pki, "admin.crt"), "--key", os.path.join(server.pki, "admin.key"), "--retry-seconds", "1",
                            "--jobs", "4", "--junit", junit] + chosen,
                           stdout=log, stderr=log, timeout=1500)
        alive = server.process.poll() is None
    finally:
        server.stop()
    if not os.path.exists(junit):
        sys.exit("replay.py wrote no report; see %s" % os.path.join(folder, "replay.log"))

    totals, failed, passed = {}, set(), set()
    for case in ElementTree.parse(junit).iter("testcase"):
        name = case.get("name")
        bad = case.find("failure") is not None or case.find("error") is not None
        (failed if bad else passed).add(name)
        area = totals.setdefault(name.split("/")[0], [0, 0])
        area[bad] += 1
    expected = read_expected()
    if os.environ.get("KEELSON_REPLAY_UPDATE"):
        write_expected(failed, expected)
        expected = read_expected()
    for area, (good, bad) in sorted(totals.items()):
        print("%-12s %5d passed %5d failed  %5.1f %%" % (area, good, bad, 100.0 * good / (good + bad)))
    fixed = sorted(passed & expected.keys())
    new = sorted(failed - expected.keys())
    for name in fixed:
        print("passes now, its line can go: " + name)
    for name in new:
        print("FAIL: %s (differences in %s)" % (name, os.path.join(folder, "replay.log")))
    if not alive:
        print("FAIL: the server ended during the replay")
    print("%d cases passed, %d fail as expected, %d fail unexpectedly" % (len(passed), len(failed) - len(new), len(new)))
    sys.exit(1 if new or not alive or not passed else 0)


if __name__ == "__main__":
    main()
