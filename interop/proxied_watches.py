#!/usr/bin/env python3
"""Watches through the aggregator's proxy: memory per watch and CPU per event, kube-apiserver and Keelson in one run. usage: proxied_watches.py KEELSON WORK_FOLDER
PROGRAMS_FOLDER [--watches N] [--events N]

The backend and the clients are proxiedwatches/ (Go, HTTP/2 on both sides, 50 watches a connection); the backend listens on the Service's cluster IP, a loopback
address. Memory is the growth of the API server's VmRSS from before the first watch to all of them open and again after the events; CPU is that of its process.
"""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from aggregation_test import available, await_true, register  # noqa: E402
from rig import Keelson, RealPair, arguments_of, end, parser_of  # noqa: E402
from harness import Client, free_port  # noqa: E402

PER_CONNECTION = 50
TICK = os.sysconf("SC_CLK_TCK")


def resident_kb(pid):
    with open("/proc/%d/status" % pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def measure(server, pid, program, address, watches, events):
    port = free_port()
    backend = subprocess.Popen([program, "serve", "%s:%d" % (address, port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert backend.stdout.readline() == "ready\n"
    client = Client(server)
    register(client, "watched", address, port, "watched.example.com", "v1")
    await_true("v1.watched.example.com is available", lambda: available(client, "v1.watched.example.com"))
    url = "https://127.0.0.1:%d/apis/watched.example.com/v1/namespaces/default/things?watch=1" % server.port
    await_true("it is served", lambda: client.request("GET", "/apis/watched.example.com/v1")[0] == 200)
    before = resident_kb(pid)
    pki = [os.path.join(server.pki, name) for name in ("ca.crt", "admin.crt", "admin.key")]
    watchers = subprocess.Popen([program, "watch", url] + pki + [str(watches), str(PER_CONNECTION)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert watchers.stdout.readline() == "open\n"
        opened = resident_kb(pid)
        cpu = cpu_seconds(pid)
        for number in range(events):
            backend.stdin.write("1\n")
            backend.stdin.flush()
            assert int(backend.stdout.readline()) == watches
            watchers.stdin.write("%d\n" % ((number + 1) * watches))
            watchers.stdin.flush()
            watchers.stdout.readline()
        cpu = cpu_seconds(pid) - cpu
        return {"KiB per watch, open": (opened - before) / watches, "KiB per watch, after the events": (resident_kb(pid) - before) / watches,
                "CPU us per event and watch": cpu * 1e6 / (events * watches)}
    finally:
        end(watchers)
        end(backend)


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--watches", type=int, default=1000)
    parser.add_argument("--events", type=int, default=50)
    arguments = arguments_of(parser)
    os.makedirs(arguments.folder)
    program = os.path.join(arguments.folder, "proxiedwatches")
    subprocess.run(["go", "build", "-o", program, "."], check=True, cwd=os.path.join(os.path.dirname(os.path.abspath(__file__)), "proxiedwatches"))
    figures = []
    real = RealPair(os.path.join(arguments.folder, "real"), os.path.abspath(arguments.programs)).start()
    try:
        figures.append(measure(real, real.processes[1].pid, program, "127.96.0.31", arguments.watches, arguments.events))
    finally:
        real.stop()
    ours = Keelson(arguments.keelson, os.path.join(arguments.folder, "ours")).start()
    try:
        figures.append(measure(ours, ours.process.pid, program, "127.96.0.32", arguments.watches, arguments.events))
    finally:
        ours.stop()
    print("%d watches, %d events of 1.1 kB to each" % (arguments.watches, arguments.events))
    print("%-34s %16s %12s" % ("", "kube-apiserver", "Keelson"))
    for name in figures[0]:
        print("%-34s %16.1f %12.1f" % (name, figures[0][name], figures[1][name]))


if __name__ == "__main__":
    main()
