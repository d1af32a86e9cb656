#!/usr/bin/env python3
"""Cost of audit, flow control and tracing for a GET of a small object, in CPU time over the bare request.
usage: request_costs.py KEELSON WORK_FOLDER [--collector OTLP_COLLECTOR] [--rounds N] [--requests N]

One server for each configuration, all of them running; h2load asks one after the other in short turns, so that a machine that gets slower or
faster meanwhile does so for all. The figure is the median over the turns of the server's CPU time (user and system, by the scheduler's own count)
for one request; "over" compares it with the turn of the configuration that it adds to, in the same round.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True
top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(top, "interop"), os.path.join(top, "test", "system")]
from harness import Client, config_map, skip  # noqa: E402
from rig import Keelson  # noqa: E402

TOKEN = "request-costs"
OBJECT = "/api/v1/namespaces/default/configmaps/small"


def cpu_nanoseconds(pid):
    """Of all threads, by the scheduler's count: /proc/PID/stat knows hundredths of a second only."""
    total = 0
    for thread in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/schedstat" % (pid, thread)) as f:
                total += int(f.read().split()[0])
        except OSError:  # a thread that has just ended
            pass
    return total


def write(path, text):
    with open(path, "w") as f:
        f.write(text)
    return path


def audit_flags(folder, level):
    policy = write(os.path.join(folder, "policy-%s.yaml" % level),
                   "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: %s}]\n" % level)
    return ["--audit-policy-file=" + policy, "--audit-log-path=" + os.path.join(folder, "audit-%s.log" % level), "--audit-log-maxsize=50", "--audit-log-maxbackup=1"]


def tracing_flags(folder, port, per_million):
    config = write(os.path.join(folder, "tracing-%d.yaml" % per_million),
                   "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: 127.0.0.1:%d\nsamplingRatePerMillion: %d\n" % (port, per_million))
    return ["--tracing-config-file=" + config]


def turn(server, requests):
    """CPU microseconds of one request."""
    command = ["h2load", "-c", "4", "-m", "10", "-t", "1", "-n", str(requests), "-H", "Authorization: Bearer " + TOKEN, "https://127.0.0.1:%d%s" % (server.port, OBJECT)]
    pid = server.pids()[0]
    before = cpu_nanoseconds(pid)
    out = subprocess.run(command, capture_output=True, text=True).stdout
    used = cpu_nanoseconds(pid) - before
    status = re.search(r"status codes: (\d+) 2xx", out)
    if status is None or int(status.group(1)) != requests:
        raise RuntimeError("h2load: " + out[-600:])
    return used / requests / 1000


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("keelson")
    parser.add_argument("folder", type=os.path.abspath)
    parser.add_argument("--collector")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--requests", type=int, default=10000)
    parser.add_argument("--json")
    options = parser.parse_args()
    if shutil.which("h2load") is None:
        skip("h2load is missing (Debian package nghttp2-client)")
    shutil.rmtree(options.folder, ignore_errors=True)
    os.makedirs(options.folder)
    tokens = write(os.path.join(options.folder, "tokens.csv"), "%s,bench,bench\n" % TOKEN)
    # A user of the level global-default, which queues; the authorizer is the same for all.
    common = ["--token-auth-file=" + tokens, "--authorization-mode=AlwaysAllow"]
    off = ["--enable-priority-and-fairness=false"]
    rows = [("bare (no audit, no flow control, no tracing)", None, off),
            ("flow control", 0, []),
            ("audit Metadata", 0, off + audit_flags(options.folder, "Metadata")),
            ("audit RequestResponse", 0, off + audit_flags(options.folder, "RequestResponse"))]
    collector = None
    if options.collector:
        collector = subprocess.Popen([options.collector], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        port = int(collector.stdout.readline().split()[1])
        subprocess.Popen(["cat"], stdin=collector.stdout, stdout=subprocess.DEVNULL)
        rows += [("tracing, %s sampled" % name, 0, off + tracing_flags(options.folder, port, rate)) for name, rate in (("0 %", 0), ("1 %", 10_000), ("100 %", 1_000_000))]
    servers = []
    try:
        for i, (_, _, flags) in enumerate(rows):
            server = Keelson(options.keelson, os.path.join(options.folder, "server-%d" % i), flags=common + flags)
            server.start()
            servers.append(server)
            Client(server).must(201, "POST", os.path.dirname(OBJECT), config_map("small", {"key": "value"}))
            turn(server, 2000)
        turns = [[turn(server, options.requests) for server in servers] for _ in range(options.rounds)]
    finally:
        for server in servers:
            server.stop()
        if collector:
            collector.kill()
    print("%d rounds of %d requests, load average %.1f" % (options.rounds, options.requests, os.getloadavg()[0]))
    results = []
    for i, (name, base, _) in enumerate(rows):
        each = statistics.median(t[i] for t in turns)
        over = None if base is None else statistics.median(t[i] - t[base] for t in turns)
        results.append({"row": name, "micros": each, "over": over})
        print("%-46s %6.1f µs%s" % (name, each, "" if over is None else "  %+5.1f over the bare request" % over))
    if options.json:
        write(options.json, json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
