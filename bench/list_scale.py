#!/usr/bin/env python3
"""What a LIST costs as the data set grows: linear, without a knee. usage: list_scale.py KEELSON WORK_FOLDER LOAD BIN_FOLDER
[--sizes 1000,10000,100000] [--only keelson|kube-apiserver] [--real-max N]

For each size the CPU time of the server processes for one LIST of all pods (JSON and protobuf), the same per object, by label (200 of
them) and by spec.nodeName (20 of them), and the memory of the server processes. kube-apiserver is filled up to --real-max (10000): with
100,000 pods it needs more memory than most machines have.
"""
import argparse
import os
import shutil
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from compare import Driver, Keelson, RealPair, machine  # noqa: E402

ROWS = [("list-json", "JSON"), ("list-protobuf", "protobuf"), ("list-label", "by label"), ("list-node", "by node")]


def measure(server, load, sizes):
    driver, points, done = Driver(server, load, 5000), [], 0
    for size in sizes:
        if driver.row("fill to %d" % size, size, ["--from", str(done), "fill"]) is None:
            break
        done = size
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
    parser.add_argument("keelson")
    parser.add_argument("folder")
    parser.add_argument("load")
    parser.add_argument("programs")
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--only", choices=["keelson", "kube-apiserver"])
    parser.add_argument("--real-max", type=int, default=10000)
    a = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sizes = [int(text) for text in a.sizes.split(",")]
    shutil.rmtree(a.folder, ignore_errors=True)
    lines = ["%s; load average %.1f at the start." % (machine(), os.getloadavg()[0]), "",
             "| server | pods | LIST, JSON | per pod | protobuf | per pod | by label (200) | by node (20) | resident |", "|---|---:|---:|---:|---:|---:|---:|---:|---:|"]
    shown = lambda value, unit: "–" if value is None else "%.1f %s" % (value, unit)  # noqa: E731
    for name in ("keelson", "kube-apiserver"):
        if a.only not in (None, name):
            continue
        folder = os.path.join(a.folder, name)
        server = (Keelson(a.keelson, folder) if name == "keelson" else RealPair(folder, a.programs)).start()
        print("%s:" % name, flush=True)
        try:
            points = measure(server, a.load, sizes if name == "keelson" else [size for size in sizes if size <= a.real_max])
        finally:
            server.stop()
        for point in points:
            cells = [name, "{:,}".format(point["objects"])]
            for row, _ in ROWS[:2]:
                micros = point[row]
                cells += [shown(micros and micros / 1000, "ms"), shown(micros and micros / point["objects"], "µs")]
            cells += [shown(point[row], "µs") for row, _ in ROWS[2:]] + [shown(point["residentMB"], "MB")]
            lines.append("| " + " | ".join(cells) + " |")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
