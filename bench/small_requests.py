#!/usr/bin/env python3
"""Requests per second of server CPU time over HTTP/2: /version and GET of one small object, beside kube-apiserver + etcd.
usage: small_requests.py KEELSON WORK_FOLDER [BIN_FOLDER] [--seconds N] [--only keelson|kube-apiserver]

h2load asks with 4 connections of 10 streams each. The CPU time is that of all server processes (with the store), so that a busy machine
changes the figures little. kube-apiserver and etcd come from BIN_FOLDER (default: the cache that `make interop` fills); without them only
Keelson is measured.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(top, "interop"), os.path.join(top, "test", "system")]
from harness import Client, config_map, skip  # noqa: E402
from rig import Keelson, RealPair  # noqa: E402

TOKEN = "small-requests"
OBJECT = "/api/v1/namespaces/default/configmaps/small"


def cpu_seconds(pids):
    total = 0.0
    for pid in pids:
        with open("/proc/%d/stat" % pid) as f:
            fields = f.read().rsplit(")", 1)[1].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def load(server, path, seconds):
    """Requests that succeeded, and the CPU seconds they took."""
    command = ["h2load", "-c", "4", "-m", "10", "-t", "1", "-H", "Authorization: Bearer " + TOKEN, "https://127.0.0.1:%d%s" % (server.port, path)]
    subprocess.run(command + ["-n", "2000"], capture_output=True)  # a first taste: code and caches are warm
    before = cpu_seconds(server.pids())
    out = subprocess.run(command + ["-D", str(seconds)], capture_output=True, text=True).stdout
    used = cpu_seconds(server.pids()) - before
    status = re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", out)
    if status is None or int(status.group(3)) or int(status.group(4)):
        raise RuntimeError("h2load against %s: %s" % (path, out[-600:]))
    return int(status.group(1)), used


def measure(server, seconds):
    Client(server).must(201, "POST", os.path.dirname(OBJECT), config_map("small", {"key": "value"}))
    results = {}
    for name, path in (("/version", "/version"), ("GET of a small object", OBJECT)):
        done, used = load(server, path, seconds)
        results[name] = (done / used, used / done * 1e6, done / seconds)
    return results


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("keelson")
    parser.add_argument("folder")
    parser.add_argument("programs", nargs="?", default=os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "keelson", "bin"))
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--only", choices=["keelson", "kube-apiserver"])
    options = parser.parse_args()
    if shutil.which("h2load") is None:
        skip("h2load is missing (Debian package nghttp2-client)")
    shutil.rmtree(options.folder, ignore_errors=True)
    os.makedirs(options.folder)
    tokens = os.path.join(os.path.abspath(options.folder), "tokens.csv")
    with open(tokens, "w") as f:
        f.write("%s,bench,bench,system:masters\n" % TOKEN)
    flags = ["--token-auth-file=" + tokens]
    results = {}
    if options.only != "kube-apiserver":
        server = Keelson(options.keelson, os.path.join(options.folder, "keelson"), flags=flags).start()
        try:
            results["keelson"] = measure(server, options.seconds)
        finally:
            server.stop()
    if options.only != "keelson":
        if os.path.exists(os.path.join(options.programs, "kube-apiserver")):
            server = RealPair(os.path.join(options.folder, "real"), options.programs, flags=flags).start()
            try:
                results["kube-apiserver"] = measure(server, options.seconds)
            finally:
                server.stop()
        else:
            print("kube-apiserver is not in %s: only Keelson is measured" % options.programs)
    print("load average %.1f" % os.getloadavg()[0])
    for name in next(iter(results.values())):
        line = "%-24s" % name
        for server, rows in results.items():
            per_cpu, micros, rate = rows[name]
            line += "  %s: %8.0f per CPU second (%.1f µs each, %.0f/s)" % (server, per_cpu, micros, rate)
        if len(results) == 2:
            line += "  ratio %.1f" % (results["keelson"][name][0] / results["kube-apiserver"][name][0])
        print(line)


if __name__ == "__main__":
    main()
