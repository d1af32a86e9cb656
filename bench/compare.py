#!/usr/bin/env python3
"""Keelson beside kube-apiserver + etcd: the same load on both, one after the other. usage: compare.py KEELSON WORK_FOLDER LOAD BIN_FOLDER
[--fast] [--objects N] [--only keelson|kube-apiserver] [--rows a,b] [--no-series] [--out NAME]

Cost is CPU time of all server processes per operation, which is steadier than wall time; memory is that of all server processes.
--out bench/results/2026-01-01 writes .json (everything measured), .md (the tables), .html with the plots, and .png where rsvg-convert is.
"""
import argparse
import os
import shutil
import signal
import statistics
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import report  # noqa: E402
from driver import Driver, Floor, add_arguments, chosen, commit, machine, version  # noqa: E402

# Rows in the order in which they run. "storm-cold" comes before any other LIST, "storm" after them.
ORDER = ["idle", "fill", "loaded", "storm-cold", "get", "get-open", "patch", "patch-open", "patch-policy", "patch-webhook", "list-json", "list-protobuf", "list-gzip", "list-table", "list-node", "list-label",
         "watch", "watch-shared", "connect", "fill-custom", "get-custom", "list-custom", "storm", "delete"]
# How a row is called in the load program, and what it is given.
COMMANDS = {"loaded": ["idle"], "storm": ["list-32-clients"], "storm-cold": ["list-32-clients"], "get-open": ["--rate", "400", "get"], "patch-open": ["--rate", "60", "patch"],
            "watch-shared": ["--watch-connections", "4", "watch"]}
# The rest is measured several times and the run with the median cost is the row's: what else the machine's host does comes and goes within seconds.
ONCE = ("idle", "fill", "fill-custom", "patch-policy", "patch-webhook", "loaded", "storm-cold", "get-open", "patch-open", "storm", "delete")
ROUNDS = 3
# Rows whose bare work bench/floors/server.cc can do, and the option that says how large their answers are.
FLOORS = {"fill": None, "get": "get", "patch": None, "list-json": "list-json", "list-protobuf": "list-protobuf", "list-node": "node", "list-label": "label", "watch": "event", "watch-shared": "event",
          "connect": None}
# Rows on their own server, with these flags: (row, its name in the table).
VARIANTS = {"audit": [("get", "get-audit"), ("patch", "patch-audit")], "no-fairness": [("get", "get-no-fairness")]}
AUDIT_POLICY = """apiVersion: audit.k8s.io/v1
kind: Policy
rules: [{level: RequestResponse}]
"""
SMALLER = {"patch-open": 6, "get-open": 2}  # open-loop rows take requests / rate seconds, whatever the server does


def drive(server, load, rows, objects, requests, rounds, series):
    """All rows on one server, and between them the series of watchers and clients."""
    results, lines = {}, {"watchers": [], "clients": []}
    driver = Driver(server, load, requests)
    for row in ORDER:
        if row not in rows:
            continue
        runs = [driver.row(row, objects, COMMANDS.get(row, [row]), max(requests // SMALLER.get(row, 1), 1)) for _ in range(1 if row in ONCE else rounds)]
        runs = sorted(filter(None, runs), key=lambda run: run["cpuMicros"])
        if runs:
            results[row] = runs[len(runs) // 2]
        if row == "watch-shared" and series:
            for count in (10, 30, 100, 300):
                point = driver.row("watch, %d watchers" % count, objects, ["--watchers", str(count), "--changes", "100", "watch"])
                lines["watchers"].append(dict(point or {}, x=count))
            for count in (1, 4, 16, 64):
                point = driver.row("get, %d clients" % count, objects, ["--clients", str(count), "get"])
                lines["clients"].append(dict(point or {}, x=count))
    results["series"] = lines
    return results


def floors(binary, folder, load, rows, measured, objects, requests, rounds):
    """The same rows on the floor server, which answers with as many bytes as Keelson did."""
    sizes = {option: measured[row]["bytes"] for row, option in FLOORS.items() if option and row in measured and measured[row]["bytes"]}
    server = Floor(binary, folder, sizes).start()
    try:
        return drive(server, load, [row for row in rows if row in FLOORS], objects, requests, rounds, False)
    finally:
        server.stop()


def variant_flags(variant, folder):
    if variant == "no-fairness":
        return ["--enable-priority-and-fairness=false"]
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "audit.yaml"), "w") as f:
        f.write(AUDIT_POLICY)
    return ["--audit-policy-file=" + os.path.join(folder, "audit.yaml"), "--audit-log-path=" + os.path.join(folder, "audit.log")]


def variants(make, folder, load, rows, requests, rounds):
    """Rows with another set of flags, on a small data set."""
    results, objects = {}, 1000
    for variant, wanted in VARIANTS.items():
        wanted = [(row, name) for row, name in wanted if row in rows]
        if not wanted:
            continue
        server = make(variant, variant_flags(variant, os.path.abspath(os.path.join(folder, "flags-" + variant)))).start()
        try:
            driver = Driver(server, load, requests)
            driver.row("fill", objects, ["fill"])
            for row, name in wanted:
                runs = sorted(filter(None, [driver.row(name, objects, [row]) for _ in range(rounds)]), key=lambda run: run["cpuMicros"])
                if runs:
                    results[name] = runs[len(runs) // 2]
        finally:
            server.stop()
    return results


def growing(server, load, objects):
    """LISTs as the data set grows, on their own server: the contents of its caches must not affect other rows."""
    driver = Driver(server, load, 2500)
    return [dict(driver.row("list of %d" % step, step, ["list-json"]) or {}, x=step) for step in driver.filled((objects // 8, objects // 4, objects // 2, objects))]


def starts(make, count):
    """Milliseconds from the start to /readyz on an empty store, count times."""
    times = []
    for number in range(count):
        server = make("start-%d" % number).start()
        times.append(server.start_seconds * 1000)
        server.stop()
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--fast", action="store_true", help="2,000 pods, fewer requests, no series")
    parser.add_argument("--objects", type=int)
    parser.add_argument("--rows", help="some of: " + ",".join(ORDER))
    parser.add_argument("--no-series", action="store_true")
    parser.add_argument("--floor", help="bench/floors/server.cc, built: the floor of each row is measured beside it")
    parser.add_argument("--out", help="path without ending")
    a = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the servers are ended too
    objects = a.objects or (2000 if a.fast else 10000)
    requests = 1000 if a.fast else 5000
    rows = [row for row in ORDER if not a.rows or row in a.rows.split(",")]
    shutil.rmtree(a.folder, ignore_errors=True)
    result = {"date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "objects": objects, "fast": a.fast, "machine": machine(), "loadAverage": os.getloadavg()[0],
              "versions": "Keelson at %s; kube-apiserver %s; %s" % (commit(), version([os.path.join(a.programs, "kube-apiserver"), "--version"]), version([os.path.join(a.programs, "etcd"), "--version"])),
              "keelson": {}, "kube-apiserver": {}, "floor": {}}
    begin = time.monotonic()
    for name, make in chosen(a):
        print("%s:" % name, flush=True)
        times = starts(make, 9 if name == "keelson" else 2)
        series = not a.no_series and not a.fast and not a.rows
        server = make("server").start()
        try:
            result[name] = drive(server, a.load, rows, objects, requests, 1 if a.fast else ROUNDS, series)
        finally:
            server.stop()
        if name == "keelson" and a.floor:
            print("floor:", flush=True)
            result["floor"] = floors(a.floor, os.path.join(a.folder, "floor"), a.load, rows, result[name], objects, requests, 1 if a.fast else ROUNDS)
        result[name].update(variants(make, os.path.join(a.folder, name), a.load, rows, requests, 1 if a.fast else ROUNDS))
        if series:
            other = make("series").start()
            try:
                result[name]["series"]["objects"] = growing(other, a.load, objects)
            finally:
                other.stop()
        times.append(server.start_seconds * 1000)
        result[name]["start"] = {"startMillis": statistics.median(times), "all": times}
        print("  start to ready: %s ms" % ", ".join("%.0f" % t for t in times))
    result["minutes"] = (time.monotonic() - begin) / 60
    print("\n" + report.markdown(result))
    if a.out:
        print("bench: written to " + ", ".join(report.write(result, a.out)))


if __name__ == "__main__":
    main()
