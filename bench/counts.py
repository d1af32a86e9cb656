#!/usr/bin/env python3
"""Instructions, allocations and system calls of one operation: counts that a busy machine does not change.
usage: counts.py KEELSON WORK_FOLDER LOAD [--rows get,patch] [--clients N] [--no-syscalls] [--instructions] [--flags="--a=b --c=d"]

The server runs under valgrind's callgrind, and again under strace. Each row is driven twice, with N and with 2 N operations, and the difference
is divided by N: connection set-up and whatever else happens once cancels out. What the server does on its own as time passes (it is counted
without any requests) is subtracted, since a run takes longer on a busy machine. A watch event is the second difference, over watchers and over
changes, so that the changes themselves cancel out too. Allocations are calls of malloc, calloc and realloc, from libraries too.
WORK_FOLDER/ROW.txt has the functions of the row, by the instructions in them and what they call. With --instructions each single instruction is counted, into
WORK_FOLDER/ROW.callgrind, for hardening.py.
"""
import argparse
import collections
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "interop")]
from driver import Driver  # noqa: E402
from rig import Keelson, end  # noqa: E402

OBJECTS = 400
ALLOCATORS = {"malloc", "calloc", "realloc"}  # aligned_alloc of what needs no more than 16 bytes calls malloc
# row: operations of the shorter run, how many operations the load program makes of one --requests
ROWS = {"get": (1500, 1), "connect": (20, 5), "fill": (120, 1), "patch": (120, 1), "list-node": (150, 5), "list-label": (20, 20), "watch": (20, 0), "watch-shared": (20, 0)}
WATCHERS = 10
IDLE_SECONDS = 10


class Valgrind(Keelson):
    def __init__(self, binary, folder, out, each, **kwargs):
        super().__init__(binary, folder, start_timeout=300, **kwargs)
        self.out, self.each = out, each

    def command(self):
        return ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--dump-instr=" + ("yes" if self.each else "no"), "--callgrind-out-file=" + self.out] + super().command()


class Instructions:
    """Counts under callgrind: {"instructions", "allocations"} of what runs between begin() and finish()."""

    def __init__(self, binary, folder, flags, each):
        self.out, self.each = os.path.join(folder, "callgrind.out"), each
        stripped = os.path.join(folder, "keelson")
        subprocess.run(["strip", "--strip-debug", "-o", stripped, binary], check=True)  # callgrind reads debug information for minutes
        self.server = Valgrind(stripped, os.path.join(folder, "callgrind"), self.out, each, flags=flags).start()
        self.dumps = 0

    def control(self, *arguments):
        subprocess.run(["callgrind_control"] + list(arguments) + [str(self.server.process.pid)], check=True, capture_output=True)

    def begin(self):
        self.control("-z")
        self.control("-i", "on")

    def finish(self):
        self.control("-i", "off")
        self.control("-d")
        self.dumps += 1
        self.dump = "%s.%d" % (self.out, self.dumps)
        for _ in range(600):
            if os.path.exists(self.dump) and "\ntotals:" in tail(self.dump):
                break
            time.sleep(0.1)
        return self.read(self.dump)

    def read(self, path):
        names, callee, allocations, total = {}, None, 0, 0
        with open(path) as f:
            for line in f:
                if line.startswith(("fn=", "cfn=")):
                    match = re.match(r"c?fn=(\(\d+\))(?: (.*))?", line)
                    if match.group(2):
                        names[match.group(1)] = match.group(2).split("@")[0].split("'")[0]
                    if line.startswith("cfn="):
                        callee = names.get(match.group(1))
                elif line.startswith("calls=") and callee in ALLOCATORS:
                    allocations += int(line[6:].split()[0])
                elif line.startswith(("summary:", "totals:")):
                    total = int(line.split()[1])
        return collections.Counter(instructions=total, allocations=allocations)

    def keep(self, row, folder):
        with open(os.path.join(folder, row + ".txt"), "w") as f:
            subprocess.run(["callgrind_annotate", "--inclusive=yes", "--threshold=99.9", self.dump], stdout=f, stderr=subprocess.DEVNULL)
        if self.each:
            shutil.copy(self.dump, os.path.join(folder, row + ".callgrind"))


class SystemCalls:
    def __init__(self, binary, folder, flags, _):
        self.server = Keelson(binary, os.path.join(folder, "strace"), flags=flags).start()
        self.out = os.path.join(folder, "strace.txt")

    def begin(self):
        self.strace = subprocess.Popen(["strace", "-f", "-qq", "-c", "-p", str(self.server.process.pid), "-o", self.out], stderr=subprocess.DEVNULL)
        while not self.traced():
            time.sleep(0.02)

    def traced(self):
        for task in os.listdir("/proc/%d/task" % self.server.process.pid):
            with open("/proc/%d/task/%s/status" % (self.server.process.pid, task)) as f:
                if re.search(r"^TracerPid:\s*0$", f.read(), re.M):
                    return False
        return True

    def finish(self):
        self.strace.send_signal(signal.SIGINT)
        self.strace.wait()
        counts = collections.Counter()
        with open(self.out) as f:
            for line in f:
                match = re.match(r"\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?([a-z_0-9]+)$", line)
                if match and match.group(2) != "total":
                    counts[match.group(2)] += int(match.group(1))
        counts["system calls"] = sum(counts.values())
        return counts

    def keep(self, row, folder):
        pass


def tail(path):
    with open(path, "rb") as f:
        f.seek(0, os.SEEK_END)
        f.seek(max(f.tell() - 4096, 0))
        return f.read().decode(errors="replace")


class Bench:
    def __init__(self, counter, load, clients):
        self.counter, self.created = counter, OBJECTS
        self.driver = Driver(counter.server, load, 0)
        self.driver.command += ["--clients", str(clients)]
        self.idle = collections.Counter()  # per second

    def measure_idle(self):
        self.counter.begin()
        begun = time.monotonic()
        time.sleep(IDLE_SECONDS)
        elapsed = time.monotonic() - begun
        self.idle = {key: count / elapsed for key, count in self.counter.finish().items()}

    def run(self, row, objects, requests, arguments):
        self.counter.begin()
        begun = time.monotonic()
        done = self.driver.row(row, objects, arguments, requests)
        elapsed = time.monotonic() - begun
        counts = self.counter.finish()
        counts = collections.Counter({key: counts[key] - elapsed * self.idle.get(key, 0) for key in set(counts) | set(self.idle)})
        if not done or done["errors"]:
            sys.exit("counts: %s failed: %s" % (row, (done or {}).get("firstError")))
        return counts

    def single(self, row, count, factor):
        def once(n):
            if row != "fill":
                return self.run(row, OBJECTS, n * factor, [row])
            self.created += n
            return self.run(row, self.created, 1, ["--from", str(self.created - n), "fill"])
        short = once(count)
        return slope(once(2 * count), short, count)

    def watch(self, row, changes):
        shared = ["--watch-connections", "4"] if row == "watch-shared" else []
        def once(watchers, n):
            return self.run(row, OBJECTS, 1, ["--watchers", str(watchers), "--changes", str(n)] + shared + ["watch"])
        few = slope(once(WATCHERS, 2 * changes), once(WATCHERS, changes), changes)
        many = slope(once(2 * WATCHERS, 2 * changes), once(2 * WATCHERS, changes), changes)
        return slope(many, few, WATCHERS)

    def rows(self, rows, folder):
        self.driver.row("fill", OBJECTS, ["fill"], 1)
        self.driver.row("warm", OBJECTS, ["get"], OBJECTS)
        self.measure_idle()
        for row in rows:
            count, factor = ROWS[row]
            yield row, self.single(row, count, factor) if factor else self.watch(row, count)
            self.counter.keep(row, folder)


def slope(longer, shorter, by):
    return {key: (longer.get(key, 0) - shorter.get(key, 0)) / by for key in set(longer) | set(shorter)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("keelson")
    parser.add_argument("folder")
    parser.add_argument("load")
    parser.add_argument("--rows", default="get,patch,fill,list-node")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--flags", default="")
    parser.add_argument("--no-syscalls", action="store_true")
    parser.add_argument("--instructions", action="store_true")
    a = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the servers are ended too
    needed = ["valgrind", "callgrind_control", "strip"] + ([] if a.no_syscalls else ["strace"])
    if missing := [program for program in needed if not shutil.which(program)]:
        sys.exit("counts: missing: " + ", ".join(missing))
    shutil.rmtree(a.folder, ignore_errors=True)
    os.makedirs(a.folder)
    rows, lines = a.rows.split(","), {}
    for make in [Instructions] + ([] if a.no_syscalls else [SystemCalls]):
        counter = make(a.keelson, os.path.abspath(a.folder), a.flags.split(), a.instructions)
        try:
            for row, counts in Bench(counter, a.load, a.clients).rows(rows, a.folder):
                lines.setdefault(row, {}).update(counts)
        finally:
            end(counter.server.process)
    print("\n| row | instructions | allocations | system calls |\n|---|---:|---:|---|")
    for row, counts in lines.items():
        calls = sorted(((n, name) for name, n in counts.items() if name not in ("instructions", "allocations", "system calls") and n >= 0.02), reverse=True)
        print("| %s | %.0f k | %.0f | %.2f: %s |" % (row, counts["instructions"] / 1000, counts["allocations"], counts.get("system calls", 0), ", ".join("%s %.2f" % (name, n) for n, name in calls)))


if __name__ == "__main__":
    main()
