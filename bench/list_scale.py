#!/usr/bin/env python3
"""Cost of a LIST as the data set grows: linear, without a knee. usage: list_scale.py KEELSON WORK_FOLDER LOAD BIN_FOLDER
[--sizes 1000,10000,100000] [--only keelson|kube-apiserver] [--real-max N] [--out FILE]

For each size the CPU time of the server processes for one LIST of all pods (JSON and protobuf), the same per object, by label (200 of
them) and by spec.nodeName (20 of them), and the memory of the server processes. Keelson is measured three times: as it comes, where JSON is kept
within --encoded-cache-mb; with nothing kept, which is the cost of encoding all of it each time; and with room for all of it. A LIST as it
comes costs between the other two, by the part of it that fits. kube-apiserver is filled up to --real-max: everything where the machine has
16 GB, else 10,000. --out writes the table to a file too. `make bench ONLY=list_scale` is all of it.
"""
import argparse
import os
import shutil
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from driver import Driver, Keelson, add_arguments, chosen, commit, machine  # noqa: E402

KEPT = [("keelson, no JSON kept", "none", 0), ("keelson, all JSON kept", "all", 4096)]  # name, folder, --encoded-cache-mb
ROWS = [("list-json", "JSON"), ("list-protobuf", "protobuf"), ("list-label", "by label"), ("list-node", "by node")]


def measure(server, load, sizes):
    driver, points = Driver(server, load, 5000), []
    for size in driver.filled(sizes):
        point = {"objects": size}
        for row, _ in ROWS:
            requests = max(1000000 // size, 25) * 10 if row in ("list-json", "list-protobuf") else 2000
            result = driver.row("%s of %d" % (row, size), size, [row], requests)
            point[row] = result["cpuMicros"] if result else None
        idle = driver.row("idle", size, ["idle"])
        point["residentMB"], point["peakMB"] = (idle["residentMB"], idle["peakMB"]) if idle else (None, None)
        points.append(point)
    return points


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--real-max", type=int, default=10**9 if os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") > 15 << 30 else 10000)
    parser.add_argument("--out")
    a = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sizes = [int(text) for text in a.sizes.split(",")]
    shutil.rmtree(a.folder, ignore_errors=True)
    lines = ["%s UTC, Keelson at %s; %s; load average %.1f at the start." % (time.strftime("%Y-%m-%d %H:%M", time.gmtime()), commit(), machine(), os.getloadavg()[0]), "",
             "| server | pods | LIST, JSON | per pod | protobuf | per pod | by label (200) | by node (20) | resident |", "|---|---:|---:|---:|---:|---:|---:|---:|---:|"]
    shown = lambda value, unit: "–" if value is None else "%.1f %s" % (value, unit)  # noqa: E731
    servers = [(name, lambda make=make: make("server")) for name, make in chosen(a)]
    if a.only != "kube-apiserver":
        servers[1:1] = [(name, lambda f=folder, mb=mb: Keelson(a.keelson, os.path.join(a.folder, f), ["--encoded-cache-mb=%d" % mb])) for name, folder, mb in KEPT]
    for name, make in servers:
        server = make().start()
        print("%s:" % name, flush=True)
        try:
            points = measure(server, a.load, [size for size in sizes if name != "kube-apiserver" or size <= a.real_max])
        finally:
            server.stop()
        for point in points:
            cells = [name, "{:,}".format(point["objects"])]
            for row, _ in ROWS[:2]:
                micros = point[row]
                cells += [shown(micros and micros / 1000, "ms"), shown(micros and micros / point["objects"], "µs")]
            cells += [shown(point[row], "µs") for row, _ in ROWS[2:]] + [shown(point["residentMB"], "MB")]
            lines.append("| " + " | ".join(cells) + " |")
    text = "\n".join(lines) + "\n"
    print("\n" + text)
    if a.out:
        with open(a.out, "w") as f:
            f.write("# What a LIST costs as the data set grows\n\n" + text)


if __name__ == "__main__":
    main()
