#!/usr/bin/env python3
"""Keelson beside kube-apiserver + etcd: the same load on both, one after the other. usage: compare.py KEELSON WORK_FOLDER LOAD BIN_FOLDER
[--fast] [--objects N] [--only keelson|kube-apiserver] [--rows a,b] [--out FILE.md]

Cost is CPU time of all server processes per operation, which is steadier than wall time; memory is that of all server processes.
"""
import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "test", "system"))
from harness import Client, Server, free_port  # noqa: E402

# name, how it is called in the table, budget in the unit of the column, column
ROWS = [
    ("idle", "resident memory, idle", 30, "residentMB"),
    ("fill", "create a pod, CPU", 250, "cpuMicros"),
    ("fill", "create a pod, per second", 5000, "perSecond"),
    ("loaded", "resident memory, all pods", 120, "residentMB"),
    ("get", "get a pod, JSON", 50, "cpuMicros"),
    ("patch", "merge-patch a pod", 300, "cpuMicros"),
    ("list-json", "list all pods, JSON", 60000, "cpuMicros"),
    ("list-protobuf", "the same, protobuf", 40000, "cpuMicros"),
    ("list-gzip", "the same, gzip", 50000, "cpuMicros"),
    ("list-table", "the same, Table", 80000, "cpuMicros"),
    ("list-node", "list by spec.nodeName (20 pods)", 100, "cpuMicros"),
    ("list-label", "list by label (200 pods)", 1000, "cpuMicros"),
    ("list-32-clients", "32 clients list everything at once: peak above the resident", 40, "aboveMB"),
    ("watch", "deliver one watch event to one watcher", 5, "cpuMicros"),
    ("delete", "delete a pod", None, "cpuMicros"),
]
ORDER = ["idle", "fill", "loaded", "get", "patch", "list-json", "list-protobuf", "list-gzip", "list-table", "list-node", "list-label", "watch", "list-32-clients", "delete"]


class RealPair:
    """kube-apiserver and etcd on free ports, with certificates of their own."""

    def __init__(self, folder, programs):
        self.folder = os.path.abspath(folder)
        self.programs = programs
        self.pki = os.path.join(self.folder, "pki")
        self.processes = []
        os.makedirs(self.pki)

    def openssl(self, *arguments):
        subprocess.run(["openssl"] + list(arguments), check=True, capture_output=True, cwd=self.pki)

    def certificates(self):
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        self.openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-days", "7", "-subj", "/CN=bench-ca")
        for name, subject, extension in (("apiserver", "/CN=apiserver", "subjectAltName=IP:127.0.0.1"), ("admin", "/O=system:masters/CN=admin", "extendedKeyUsage=clientAuth")):
            with open(os.path.join(self.pki, name + ".ext"), "w") as f:
                f.write(extension + "\n")
            self.openssl("req", *key, "-keyout", name + ".key", "-out", name + ".csr", "-subj", subject)
            self.openssl("x509", "-req", "-in", name + ".csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "7", "-extfile", name + ".ext", "-out", name + ".crt")
        self.openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "sa.key")

    def spawn(self, name, *arguments):
        log = open(os.path.join(self.folder, name + ".log"), "w")
        process = subprocess.Popen([os.path.join(self.programs, name)] + list(arguments), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.processes.append(process)

    def start(self):
        self.certificates()
        client, peer, self.port = free_port(), free_port(), free_port()
        begin = time.monotonic()
        store = "http://127.0.0.1:%d" % client
        peers = "http://127.0.0.1:%d" % peer
        self.spawn("etcd", "--data-dir=" + os.path.join(self.folder, "etcd"), "--listen-client-urls=" + store, "--advertise-client-urls=" + store,
                   "--listen-peer-urls=" + peers, "--initial-advertise-peer-urls=" + peers, "--initial-cluster=default=" + peers, "--log-level=error")
        path = lambda name: os.path.join(self.pki, name)  # noqa: E731
        self.spawn("kube-apiserver", "--etcd-servers=" + store, "--secure-port=%d" % self.port, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
                   "--client-ca-file=" + path("ca.crt"), "--tls-cert-file=" + path("apiserver.crt"), "--tls-private-key-file=" + path("apiserver.key"),
                   "--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + path("sa.key"),
                   "--service-account-signing-key-file=" + path("sa.key"), "--authorization-mode=Node,RBAC", "--endpoint-reconciler-type=none",
                   "--service-cluster-ip-range=10.0.0.0/16")
        while time.monotonic() - begin < 120:
            if any(p.poll() is not None for p in self.processes):
                break
            try:
                if Client(self).request("GET", "/readyz")[0] == 200:
                    self.start_seconds = time.monotonic() - begin
                    return self
            except OSError:
                pass
            time.sleep(0.02)
        self.stop()
        raise RuntimeError("kube-apiserver did not become ready; logs in " + self.folder)

    context = Server.context

    def stop(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def pids(self):
        return [p.pid for p in self.processes]


class Ours(Server):
    def pids(self):
        return [self.process.pid]


def drive(server, load, rows, objects, requests):
    results = {"start": {"startMillis": server.start_seconds * 1000}}
    for row in ORDER:
        if row not in rows:
            continue
        command = [load, "--server", "https://127.0.0.1:%d" % server.port, "--ca", os.path.join(server.pki, "ca.crt"), "--cert", os.path.join(server.pki, "admin.crt"),
                   "--key", os.path.join(server.pki, "admin.key"), "--pid", ",".join(map(str, server.pids())), "--objects", str(objects), "--requests", str(requests),
                   "idle" if row == "loaded" else row]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
        try:
            result = json.loads(done.stdout.strip().splitlines()[-1])
        except (IndexError, ValueError):
            print("bench: %s gave nothing: %s" % (row, done.stderr[-500:]))
            continue
        result["aboveMB"] = result["peakMB"] - result["residentMB"]
        results[row] = result
        print("  %-16s %7d done %4d errors %8.1f s %9.0f µs CPU %9.0f/s  p50 %.1f ms p99 %.1f ms, %.0f MB resident, %.0f MB peak, %d bytes %s" % (
            row, result["operations"], result["errors"], result["seconds"], result["cpuMicros"], result["perSecond"], result["p50Millis"], result["p99Millis"],
            result["residentMB"], result["peakMB"], result["bytes"], result.get("firstError", "")[:300]), flush=True)
    return results


def shown(value, column):
    if value is None:
        return "–"
    if column == "cpuMicros":
        return "%.1f ms" % (value / 1000) if value >= 10000 else "%.0f µs" % value if value >= 20 else "%.1f µs" % value
    if column in ("residentMB", "aboveMB"):
        return "%.0f MB" % value
    return "%.0f/s" % value


# Rows whose budget is for 10,000 pods and says nothing about another number.
SIZED = {"loaded", "list-label", "list-json", "list-protobuf", "list-gzip", "list-table", "list-32-clients"}


def table(ours, real, rows, objects):
    lines = ["| work | kube-apiserver + etcd | Keelson | ratio | budget |  |", "|---|---:|---:|---:|---:|---|"]

    def add(name, column, theirs, mine, budget, form, higher_is_better=False):
        ratio = "–"
        # Beside next to nothing every ratio is large and says nothing.
        if theirs is not None and mine and not (column == "aboveMB" and mine < 5):
            ratio = "%.1f×" % (mine / theirs if higher_is_better else theirs / mine)
        met = "" if budget is None or mine is None else ("met" if (mine >= budget if higher_is_better else mine <= budget) else "not met")
        lines.append("| %s | %s | %s | %s | %s | %s |" % (name, form(theirs), form(mine), ratio, form(budget), met))

    add("start to ready, empty store", "", real.get("start", {}).get("startMillis"), ours.get("start", {}).get("startMillis"), 100, lambda v: "–" if v is None else "%.0f ms" % v)
    for row, name, budget, column in ROWS:
        if row in rows:
            if row in SIZED and objects != 10000:
                budget = None
            add(name, column, real.get(row, {}).get(column), ours.get(row, {}).get(column), budget, lambda v, c=column: shown(v, c), column == "perSecond")
    lines += ["", "Peak memory (all server processes) and latency by row:", "",
              "| row | kube-apiserver: peak | p50 | p99 | Keelson: peak | p50 | p99 | bytes an answer (real, ours) | errors (real, ours) |", "|---|---:|---:|---:|---:|---:|---:|---|---|"]
    for row in rows:
        a, b = real.get(row, {}), ours.get(row, {})
        cell = lambda r, k, f: f % r[k] if k in r else "–"  # noqa: E731
        lines.append("| %s | %s | %s | %s | %s | %s | %s | %s, %s | %s, %s |" % (row, cell(a, "peakMB", "%.0f MB"), cell(a, "p50Millis", "%.1f ms"), cell(a, "p99Millis", "%.1f ms"),
                     cell(b, "peakMB", "%.0f MB"), cell(b, "p50Millis", "%.1f ms"), cell(b, "p99Millis", "%.1f ms"), a.get("bytes", "–"), b.get("bytes", "–"), a.get("errors", "–"), b.get("errors", "–")))
    return "\n".join(lines)


def version(command):
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip().splitlines()[0]
    except (OSError, IndexError):
        return "?"


def machine():
    model = "?"
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    with open("/proc/meminfo") as f:
        memory = int(f.readline().split()[1]) // 1048576
    return "%d × %s, %d GB, Linux %s" % (os.cpu_count(), model, memory, platform.release())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("keelson")
    parser.add_argument("folder")
    parser.add_argument("load")
    parser.add_argument("programs")
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--objects", type=int)
    parser.add_argument("--only", choices=["keelson", "kube-apiserver"])
    parser.add_argument("--rows")
    parser.add_argument("--out")
    a = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the servers are ended too
    objects = a.objects or (2000 if a.fast else 10000)
    requests = 1000 if a.fast else 5000
    rows = [row for row in ORDER if not a.rows or row in a.rows.split(",")]
    shutil.rmtree(a.folder, ignore_errors=True)
    results, before = {"keelson": {}, "kube-apiserver": {}}, os.getloadavg()[0]
    for name in ("keelson", "kube-apiserver"):
        if a.only not in (None, name):
            continue
        folder = os.path.join(a.folder, name)
        server = Ours(a.keelson, folder) if name == "keelson" else RealPair(folder, a.programs)
        print("%s:" % name, flush=True)
        server.start()
        try:
            results[name] = drive(server, a.load, rows, objects, requests)
        finally:
            server.stop()
    text = "\n".join(["# Keelson beside kube-apiserver, %s" % time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "",
                      "%d pods%s. %s; load average %.1f at the start." % (objects, " (`FAST=1`)" if a.fast else "", machine(), before),
                      "%s; kube-apiserver %s; %s." % (version([a.keelson, "--version"]), version([os.path.join(a.programs, "kube-apiserver"), "--version"]),
                                                      version([os.path.join(a.programs, "etcd"), "--version"])),
                      "Cost is CPU time of all server processes per operation. The budgets are for 10,000 pods.", "",
                      table(results["keelson"], results["kube-apiserver"], rows, objects), ""])
    print("\n" + text)
    if a.out:
        with open(a.out, "w") as f:
            f.write(text)


if __name__ == "__main__":
    main()
