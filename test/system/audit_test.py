#!/usr/bin/env python3
"""Replays the audit goldens: starts the server with each policy and compares the events that it writes. usage: audit_test.py KEELSON WORK_FOLDER

The goldens are not part of the tree: KEELSON_SUITES, by default ../shared/testdata beside it, folder audit; audit_replay.py is in the folder
tools beside the suites. expected_failures/audit.txt names the cases that differ, one a line with its reason; the list may only shrink.
"""
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BARE, skip, source_root  # noqa: E402
from replay_test import read_expected  # noqa: E402

EXPECTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "expected_failures", "audit.txt")


def main():
    binary, folder = (os.path.abspath(path) for path in sys.argv[1:3])
    suites = os.environ.get("KEELSON_SUITES") or os.path.join(os.path.dirname(source_root()), "shared", "testdata")
    goldens = os.path.join(suites, "audit")
    replay = os.path.join(os.path.dirname(os.path.abspath(suites)), "tools", "audit_replay.py")
    if not os.path.isdir(goldens) or not os.path.exists(replay):
        skip("no audit goldens in %s or no audit_replay.py beside them: set KEELSON_SUITES" % goldens)
    os.makedirs(folder, exist_ok=True)
    done = subprocess.run([sys.executable, replay, "--server", binary + " --data-dir={data} " + BARE, "--jobs", "3", "--names-only", goldens],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1500)
    with open(os.path.join(folder, "audit.log"), "w") as log:
        log.write(done.stdout)
    counts = re.search(r"(\d+) passed, (\d+) failed\s*$", done.stdout)
    if not counts:
        sys.exit("audit_replay.py did not end; see %s" % os.path.join(folder, "audit.log"))
    passed, failed = int(counts.group(1)), set(re.findall(r"^FAIL (\S+)", done.stdout, re.M))
    expected = read_expected(EXPECTED)
    print("audit: %d of %d" % (passed, passed + len(failed)))
    for name in sorted(failed - expected.keys()):
        print("FAILED: %s" % name)
    for name in sorted(expected.keys() - failed):
        print("passes now, take it off the list: %s" % name)
    sys.exit(1 if failed - expected.keys() else 0)


main()
