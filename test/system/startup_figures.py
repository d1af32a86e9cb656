#!/usr/bin/env python3
"""Prints start-up time and memory; not a test, because it measures. usage: startup_figures.py KEELSON WORK_FOLDER [OBJECTS] [RUNS]

Start to ready is from exec to the first 200 of /readyz, polled every 5 ms on a new TLS connection; the median of the runs.
"""
import os
import shutil
import statistics
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, Server, config_map  # noqa: E402

PATH = "/api/v1/namespaces/default/configmaps"


def fill(server, objects, clients=8):
    context = server.context()

    def work(number):
        client = Client(server, context=context)
        for i in range(number, objects, clients):
            client.must(201, "POST", PATH, config_map("object-%06d" % i, {"filler": "x" * 1000}))
        client.close()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def restart(server, runs):
    seconds = []
    for _ in range(runs):
        server.stop()
        server.start()
        seconds.append(server.start_seconds)
    return seconds


def line(what, seconds, server):
    time.sleep(1)  # what start-up work remains after ready belongs to the memory figure
    print("%-44s %6.0f ms (best %.0f)   %6.1f MB resident, %.2f s CPU" % (
        what, statistics.median(seconds) * 1000, min(seconds) * 1000, server.memory_kb() / 1024, server.cpu_seconds()), flush=True)


def main():
    binary, folder = sys.argv[1:3]
    objects = int(sys.argv[3]) if len(sys.argv) > 3 else 10000
    runs = int(sys.argv[4]) if len(sys.argv) > 4 else 5
    first = []
    for _ in range(runs):
        shutil.rmtree(folder, ignore_errors=True)
        server = Server(binary, folder).start()
        first.append(server.start_seconds)
        if len(first) < runs:
            server.stop()
    try:
        line("first start, empty folder, keys made", first, server)
        line("start, empty store", restart(server, runs), server)
        fill(server, objects)
        line("start, %d objects of 1 kB" % objects, restart(server, runs), server)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
