#!/usr/bin/env python3
"""Replays the audit goldens: starts the server with each policy and compares the events that it writes. usage: audit_test.py KEELSON WORK_FOLDER

The goldens are not part of the tree: KEELSON_SUITES, by default ../shared/testdata beside it, folder audit; test/recordings/audit_replay.py
plays them. A few cases that fail unexpectedly run again alone: the tool waits 5 s for events, and a busy machine is slow.
expected_failures/audit.txt names the cases that differ, one a line with its reason; the list may only shrink.
"""
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BARE, skip, source_root  # noqa: E402
from replay_test import AGAIN_MAX, read_expected  # noqa: E402

EXPECTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "expected_failures", "audit.txt")


def main():
    binary, folder = (os.path.abspath(path) for path in sys.argv[1:3])
    suites = os.environ.get("KEELSON_SUITES") or os.path.join(os.path.dirname(source_root()), "shared", "testdata")
    goldens = os.path.join(suites, "audit")
    replay = os.path.join(source_root(), "test", "recordings", "audit_replay.py")
    if not os.path.isdir(goldens):
        skip("no audit goldens in %s: set KEELSON_SUITES" % goldens)
    os.makedirs(folder, exist_ok=True)
    expected = read_expected(EXPECTED)

    def run(cases, jobs):
        """How many passed, and the names that failed."""
        done = subprocess.run([sys.executable, replay, "--server", binary + " --data-dir={data} " + BARE, "--jobs", str(jobs)] +
                              [word for case in cases for word in ("--filter", "^%s$" % re.escape(case))] + [goldens],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1500)
        with open(os.path.join(folder, "audit.log"), "a") as log:
            log.write(done.stdout)
        counts = re.search(r"(\d+) passed, (\d+) failed\s*$", done.stdout)
        if not counts:
            sys.exit("audit_replay.py did not end; see %s" % os.path.join(folder, "audit.log"))
        return int(counts.group(1)), set(re.findall(r"^FAIL (\S+)", done.stdout, re.M))

    passed, failed = run([], jobs=3)
    again = sorted(failed - expected.keys())
    if 0 < len(again) <= AGAIN_MAX:
        print("again: %s" % " ".join(again))
        more, still = run(again, jobs=1)
        passed, failed = passed + more, (failed - set(again)) | still
    print("audit: %d of %d" % (passed, passed + len(failed)))
    for name in sorted(failed - expected.keys()):
        print("FAILED: %s" % name)
    for name in sorted(expected.keys() - failed):
        print("passes now, take it off the list: %s" % name)
    sys.exit(1 if failed - expected.keys() else 0)


main()
