#!/usr/bin/env python3
"""What grows with the data set and with the watchers. usage: growth.py KEELSON WORK_FOLDER LOAD [--parts sizes,watchers,resume]
[--sizes 1000,10000,100000,1000000] [--watchers 10000] [--rate 1000] [--clients 5000] [--out FILE]

sizes: config maps of 1 kB; for each size CPU of a create (of those since the size before), of a GET, of a LIST by label that answers 20, of a watch event, memory per object,
and how long a start on this data takes. watchers: 10,000 pods, each watch follows the pods of one node as a kubelet does, and pods are
changed at a fixed rate; the same with 10 watches beside it. resume: clients with a watch each, on connections of their own, lose their server, and come back
when it does. Python 3 standard library only; keelson-load makes the load. `make bench ONLY=growth` is all of it.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from driver import Driver, Keelson, commit, machine  # noqa: E402

PODS, CONNECTIONS = 10000, 100
FILL_STEP = 50000  # objects that one run of the load program makes


class Restartable(Keelson):
    def restart(self):
        """Stops it and starts it again on the same port; seconds until it was ready."""
        self.stop()
        begin = time.monotonic()
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        if not self._wait_ready(begin):
            raise RuntimeError("the server did not come back; its log is " + self.log_path)
        return self.start_seconds


def cpu_seconds(pid):
    return time.clock_gettime(~pid << 3 | 2)  # the process's CPU clock, as clock_getcpuclockid(3) makes it


def filled(driver, begin, end):
    """Objects `begin` to `end`, made in steps: CPU microseconds of one, and how many a second."""
    rows = [driver.row("fill to %d" % min(at + FILL_STEP, end), min(at + FILL_STEP, end), ["--from", str(at), "fill-small"]) for at in range(begin, end, FILL_STEP)]
    if None in rows or any(row["errors"] for row in rows):
        raise RuntimeError("the data set could not be made")
    made = sum(row["operations"] for row in rows)
    return sum(row["cpuMicros"] * row["operations"] for row in rows) / made, made / sum(row["seconds"] for row in rows)


def sizes(a, server):
    driver, done = Driver(server, a.load, 5000), 0
    empty = driver.row("idle", 1, ["idle"])["residentMB"]
    yield ["objects of 1 kB", "create", "per second", "GET", "LIST by label (20)", "watch event", "resident", "per object", "start"]
    for size in (int(text) for text in a.sizes.split(",")):
        create, per_second = filled(driver, done, size)
        driver.row("warm", size, ["list-small-label"], 500)  # labels that are asked for often get an index
        rows = {name: driver.row(name, size, extra + [name]) for name, extra in (("get-small", []), ("list-small-label", []), ("watch-small", ["--watchers", "50", "--changes", "100"]))}
        resident = driver.row("idle", size, ["idle"])["residentMB"]
        start = server.restart()
        driver = Driver(server, a.load, 5000)
        done = size
        yield ["{:,}".format(size), "%.0f µs" % create, "%.0f" % per_second] + ["%.1f µs" % row["cpuMicros"] for row in rows.values()] + [
            "%.0f MB" % resident, "%.2f kB" % ((resident - empty) * 1048.576 / size), "%.2f s" % start]


def watchers(a, server):
    driver = Driver(server, a.load, 5000)
    driver.row("fill", PODS, ["fill"])
    yield ["watches, each of one node", "changes per second", "CPU of a change", "delivered: p50", "p99", "longest", "missing", "resident"]
    for count in (10, a.watchers):
        result = driver.row("%d watches" % count, PODS, ["--watchers", str(count), "--watch-connections", str(min(CONNECTIONS, count)), "--changes", str(a.rate * 10), "--rate", str(a.rate), "watch-nodes"])
        yield ["{:,}".format(count), "%.0f" % result["perSecond"], "%.0f µs" % result["cpuMicros"]] + ["%.1f ms" % result[name] for name in ("p50Millis", "p99Millis", "maxMillis")] + [
            str(result["errors"]), "%.0f MB" % result["residentMB"]]


def resume(a, server):
    driver = Driver(server, a.load, 5000)
    driver.row("fill", 1000, ["--objects", "1000", "fill"])
    command = driver.command + ["--watchers", str(a.clients), "resume"]
    load = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if load.stderr.readline() != "open\n":
        raise RuntimeError("the watches could not be opened")
    before = Driver(server, a.load, 1).row("idle", 1, ["idle"])["residentMB"]
    start = server.restart()
    pid = server.process.pid
    result = json.loads(load.communicate(timeout=300)[0])
    spent = cpu_seconds(pid)
    yield ["clients", "resumed", "the server away", "all watches on, after the first", "median", "CPU, start included", "per client", "resident before"]
    yield ["{:,}".format(a.clients), "{:,}".format(result["operations"]), "%.2f s" % start, "%.1f s" % result["seconds"], "%.1f s" % (result["p50Millis"] / 1000), "%.1f s" % spent,
           "%.2f ms" % (1000 * spent / a.clients), "%.0f MB" % before]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("keelson", "folder", "load"):
        parser.add_argument(name)
    parser.add_argument("--parts", default="sizes,watchers,resume")
    parser.add_argument("--sizes", default="1000,10000,100000,1000000")
    parser.add_argument("--watchers", type=int, default=10000)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=5000)
    parser.add_argument("--flags", default="")
    parser.add_argument("--out")
    a = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    lines = ["%s UTC, Keelson at %s; %s; load average %.1f at the start." % (time.strftime("%Y-%m-%d %H:%M", time.gmtime()), commit(), machine(), os.getloadavg()[0])]
    for part in a.parts.split(","):
        folder = os.path.join(a.folder, part)
        shutil.rmtree(folder, ignore_errors=True)
        server = Restartable(a.keelson, folder, flags=a.flags.split(), start_timeout=300).start()
        print("%s:" % part, flush=True)
        lines.append("")
        try:
            for number, cells in enumerate({"sizes": sizes, "watchers": watchers, "resume": resume}[part](a, server)):
                lines.append("| " + " | ".join(cells) + " |")
                if number == 0:
                    lines.append("|" + "---:|" * len(cells))
        finally:
            server.stop()
    text = "\n".join(lines) + "\n"
    print("\n" + text)
    if a.out:
        with open(a.out, "w") as f:
            f.write("# What grows with the data set and with the watchers\n\n" + text)


if __name__ == "__main__":
    main()
