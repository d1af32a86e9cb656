#!/usr/bin/env python3
"""CPU profile of the server in a row of the comparison: perf over the row, with frame pointers.

usage: profile.py KEELSON WORK_FOLDER LOAD [--rows get,patch] [--objects N] [--seconds N]

Without --rows: the three rows of the newest bench/results/*.json that are furthest from their budget. Writes WORK_FOLDER/ROW.txt (the
functions by their own time, then by time with what they call) and keeps perf's data beside it for perf report.
"""
import argparse
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "interop"))
sys.path.insert(0, HERE)
import report  # noqa: E402
from compare import COMMANDS  # noqa: E402
from driver import Driver, Keelson  # noqa: E402
from rig import end  # noqa: E402


def furthest(count):
    """The rows whose cost is the largest multiple of its budget."""
    files = sorted(glob.glob(os.path.join(HERE, "results", "*.json")), key=os.path.getmtime)
    if not files:
        sys.exit("profile: there is no result in bench/results yet: make bench, or --rows")
    with open(files[-1]) as f:
        ours = json.load(f)["keelson"]
    costs = {row: ours[row][column] / budget for row, _, budget, column in report.ROWS if budget and column == "cpuMicros" and row in ours}
    return sorted(costs, key=costs.get, reverse=True)[:count]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("keelson")
    parser.add_argument("folder")
    parser.add_argument("load")
    parser.add_argument("--rows")
    parser.add_argument("--objects", type=int, default=10000)
    parser.add_argument("--seconds", type=int, default=8, help="each row is repeated for about this time")
    a = parser.parse_args()
    if not shutil.which("perf"):
        sys.exit("profile: perf is missing (Debian package linux-perf)")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the server is ended too
    rows = a.rows.split(",") if a.rows else furthest(3)
    folder = os.path.abspath(a.folder)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    binary = shutil.copy(a.keelson, os.path.join(folder, "keelson"))  # perf reads it again at the end, when a build may have replaced it
    server = Keelson(binary, os.path.join(folder, "server")).start()
    try:
        driver = Driver(server, a.load, 5000)
        if rows != ["fill"]:
            driver.row("fill", a.objects, ["fill"])
        for row in rows:
            data = os.path.join(folder, row + ".perf")
            perf = subprocess.Popen(["perf", "record", "-q", "-F", "999", "--call-graph", "fp", "-p", str(server.process.pid), "-o", data], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.5)
            begin, done = time.monotonic(), a.objects
            while time.monotonic() - begin < a.seconds:
                if row == "fill":  # it adds to the data set
                    driver.row(row, done + 2000, ["--from", str(done), "fill"])
                    done += 2000
                else:
                    driver.row(row, a.objects, COMMANDS.get(row, [row]))
                if row == "delete":
                    break
            perf.send_signal(signal.SIGINT)
            try:
                perf.wait(60)
            finally:
                end(perf)
            with open(os.path.join(folder, row + ".txt"), "w") as f:
                for title, options in (("own time", ["--no-children", "-g", "none"]), ("with what they call", ["--children", "-g", "none"])):
                    text = subprocess.run(["perf", "report", "-i", data, "--stdio", "--percent-limit", "0.5", "--sort", "dso,symbol"] + options, capture_output=True, text=True).stdout
                    kept = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
                    f.write("%s, %s:\n%s\n\n" % (row, title, "\n".join(line[:180] for line in kept[:60])))
                    if title == "own time":
                        print("profile: %s, by own time:\n%s" % (row, "\n".join(line[:140] for line in kept[:12])), flush=True)
            print("profile: more in %s" % f.name, flush=True)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
