#!/usr/bin/env python3
"""Several servers on one etcd: CPU per write in the server that takes it, in the servers that follow, and in etcd.
usage: bench/servers.py [KEELSON [WRITES]]; prints a table, and keeps it as bench/results/DATE-servers.md with --keep.

CPU times are read from the processes' clocks, so a busy machine disturbs them less than wall times. etcd is found as the system tests do.
"""
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(TOP, "test", "system"))
from harness import Client  # noqa: E402
from two_servers_test import Etcd, EtcdServer, find_etcd, make_pki  # noqa: E402

CLIENTS, ROUNDS, BODY = 8, 3, 6000


def cpu(process):
    with open("/proc/%d/stat" % process.pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(process):
    with open("/proc/%d/statm" % process.pid) as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def write(server, prefix, count):
    client = Client(server, timeout=120)
    for i in range(count):
        client.must(201, "POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "%s-%d" % (prefix, i)}, "data": {"text": "x" * BODY}})


def caught_up(servers, total):
    """Every server's cache has every object: a LIST at revision 0 is answered from it."""
    for server in servers:
        client, end = Client(server, timeout=120), time.monotonic() + 120
        while time.monotonic() < end:
            answer = client.must(200, "GET", "/api/v1/namespaces/default/configmaps?resourceVersion=0&limit=1")
            if len(answer["items"]) + answer["metadata"].get("remainingItemCount", 0) >= total:
                break
        else:
            raise AssertionError("a server does not catch up")


def measure(binary, folder, count, writes):
    etcd = Etcd(find_etcd(), folder)
    servers = []
    try:
        pki = make_pki(os.path.join(folder, "pki"))
        for i in range(count):
            servers.append(EtcdServer(binary, os.path.join(folder, "server%d" % i), etcd.url, "10.9.0.%d" % (i + 1), pki))
            servers[-1].start()
        caught_up(servers, 0)
        rounds = []
        for number in range(ROUNDS):
            processes = [etcd.process] + [server.process for server in servers]
            before = [cpu(process) for process in processes]
            begin = time.monotonic()
            threads = [threading.Thread(target=write, args=(servers[0], "r%d-c%d" % (number, i), writes // CLIENTS)) for i in range(CLIENTS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            seconds = time.monotonic() - begin
            caught_up(servers, (number + 1) * (writes // CLIENTS) * CLIENTS)
            spent = [1e6 * (cpu(process) - old) / writes for process, old in zip(processes, before)]
            rounds.append({"etcd": spent[0], "writer": spent[1], "follower": statistics.mean(spent[2:]) if count > 1 else None, "perSecond": writes / seconds})
        row = {key: None if rounds[0][key] is None else statistics.median(one[key] for one in rounds) for key in rounds[0]}
        row["residentMB"] = statistics.mean(resident(server.process) for server in servers)
        return row
    finally:
        for server in servers:
            if server.process and server.process.poll() is None:
                server.stop()
        etcd.stop()


def main():
    arguments = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    binary = os.path.abspath(arguments[0]) if arguments else os.path.join(TOP, "build/release/keelson")
    writes = int(arguments[1]) if len(arguments) > 1 else 2000
    lines = ["# Several servers on one etcd", "",
             "%s; %d creates of config maps of %.1f kB a round through the first server, median of %d rounds; %d cores, load average %.1f at the start. CPU per write."
             % (time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), writes, BODY / 1000, ROUNDS, os.cpu_count(), os.getloadavg()[0]), "",
             "| servers | the server that writes | each other server | etcd | writes per second | resident, each |", "|---:|---:|---:|---:|---:|---:|"]
    for count in (1, 2, 3):
        folder = tempfile.mkdtemp(prefix="keelson-servers-")
        try:
            row = measure(binary, folder, count, writes)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        lines.append("| %d | %.0f µs | %s | %.0f µs | %.0f | %.0f MB |" % (count, row["writer"], "–" if row["follower"] is None else "%.0f µs" % row["follower"], row["etcd"],
                                                                        row["perSecond"], row["residentMB"]))
        print(lines[-1], flush=True)
    if "--keep" in sys.argv:
        with open(os.path.join(TOP, "bench/results", time.strftime("%Y-%m-%d", time.gmtime()) + "-servers.md"), "w") as f:
            f.write("\n".join(lines) + "\n")


main()
