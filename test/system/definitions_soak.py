#!/usr/bin/env python3
"""Installs, changes and deletes CustomResourceDefinitions under load. usage: definitions_soak.py KEELSON WORK_FOLDER [MINUTES [PAUSE]]

Workers install definitions, write objects, change the schema while a watch is open, delete the definition and check that the watch reported every change
of every object in order; others write config maps meanwhile. Live memory without the history of the watch caches, which has a bound of its own, is
compared after the first fifth of the time and at the end: it stays flat.
PAUSE is the time in seconds between two writes of config maps and ten times between two cycles (default 0), for machines that have other work.
"""
import http.client
import json
import os
import re
import shutil
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import SANITIZED, Client, Server, config_map, memory_bound  # noqa: E402

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WORKERS, OBJECTS, PATCHES = 3, 5, 3
# The store's youngest values (8 MB) and RocksDB's memtable (4 MB) fill in the first minutes; a cycle that leaks shows in an hour of them.
LIVE_SLACK_KB = 24 * 1024
COMPACTION = ["--etcd-compaction-interval=10s"]  # past revisions are kept until then, and there are thousands in the default of five minutes
MERGE = "application/merge-patch+json"


def definition(group, generation):
    properties = {"field%d" % i: {"type": "string", "description": "A line of words about field %d of generation %d." % (i, generation)}
                  for i in range(10 + generation)}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets." + group}, "spec": {
        "group": group, "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]}}


class Watch(threading.Thread):
    """Keeps the events of one watch, and of the next ones while the server ends them because the definition changes."""

    def __init__(self, server, path, version):
        super().__init__(daemon=True)
        self.server, self.path, self.version, self.events, self.ended = server, path, version, [], threading.Event()
        self.start()

    def run(self):
        while not self.ended.is_set():
            connection = http.client.HTTPSConnection("127.0.0.1", self.server.port, timeout=60, context=self.server.context())
            try:
                connection.request("GET", "%s?watch=true&resourceVersion=%s&timeoutSeconds=300" % (self.path, self.version))
                answer = connection.getresponse()
                if answer.status != 200:
                    time.sleep(0.05)
                    continue
                for line in iter(answer.readline, b""):
                    event = json.loads(line)
                    self.version = event["object"]["metadata"]["resourceVersion"]
                    self.events.append((event["object"]["metadata"]["name"], event["type"]))
            except (OSError, ValueError, http.client.HTTPException):
                time.sleep(0.05)
            finally:
                connection.close()

    def await_events(self, count):
        deadline = time.monotonic() + 60
        while len(self.events) < count and time.monotonic() < deadline:
            time.sleep(0.01)
        return list(self.events)


def until(what, condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(what)
        time.sleep(0.02)


def cycle(server, client, group):
    name, path = DEFINITIONS + "/widgets." + group, "/apis/%s/v1/namespaces/default/widgets" % group
    client.must(201, "POST", DEFINITIONS, definition(group, 0))
    until(group + " is served", lambda: client.request("GET", path)[0] == 200)
    watch = Watch(server, path, client.must(200, "GET", path)["metadata"]["resourceVersion"])
    names = ["w%d" % i for i in range(OBJECTS)]
    try:
        for one in names:
            client.must(201, "POST", path, {"apiVersion": group + "/v1", "kind": "Widget", "metadata": {"name": one}, "spec": {"field0": "x"}})
        for generation in range(1, PATCHES + 1):
            # The schema changes; objects can have the new field a moment later.
            client.must(200, "PATCH", name, {"spec": definition(group, generation)["spec"]}, content_type=MERGE)
            field = "field%d" % (9 + generation)
            for one in names:
                until("%s has %s" % (group, field), lambda o=one: client.must(200, "PATCH", path + "/" + o, {"spec": {field: "y"}}, content_type=MERGE)["spec"].get(field) == "y")
        for one in names:
            client.must(200, "DELETE", path + "/" + one)
        expected = (PATCHES + 2) * OBJECTS
        seen = watch.await_events(expected)
    finally:
        watch.ended.set()
    for one in names:
        kinds = [kind for who, kind in seen if who == one]
        if kinds != ["ADDED"] + ["MODIFIED"] * PATCHES + ["DELETED"]:
            raise AssertionError("the watch of %s told of %s: %s" % (group, one, kinds))
    client.must(200, "DELETE", name)
    until(group + " is gone", lambda: client.request("GET", name)[0] == 404)


class Soak:
    def __init__(self, server, minutes, pause):
        self.server, self.end, self.pause = server, time.monotonic() + minutes * 60, pause
        self.cycles, self.writes, self.failures, self.lock = 0, 0, [], threading.Lock()

    def worker(self, number):
        client, turn = Client(self.server), 0
        while time.monotonic() < self.end and not self.failures:
            try:
                cycle(self.server, client, "g%d-%d.soak.example.com" % (number, turn % 20))
            except (AssertionError, OSError, KeyError, http.client.HTTPException) as failure:
                self.failures.append(str(failure))
            turn += 1
            time.sleep(10 * self.pause)
            with self.lock:
                self.cycles += 1

    def load(self):
        client = Client(self.server)
        client.must(201, "POST", "/api/v1/namespaces/default/configmaps", config_map("load", {"n": "0"}))
        while time.monotonic() < self.end and not self.failures:
            client.must(200, "PATCH", "/api/v1/namespaces/default/configmaps/load", {"data": {"n": str(self.writes)}}, content_type=MERGE)
            self.writes += 1
            time.sleep(self.pause)


def live_kb(server):
    """Allocated memory without the history of the watch caches. Free memory inside the heap does not count, as it does in resident memory. A sanitizer's
    allocator does not tell it: resident memory instead."""
    if SANITIZED:
        return server.memory_kb()
    client = Client(server)
    _, text = client.request("GET", "/debug/pprof/malloc", accept="text/plain")
    totals = dict(re.findall(r'<(?:total|system) type="(\w+)"[^>]* size="(\d+)"', text.decode().rsplit("</heap>", 1)[1]))
    _, text = client.request("GET", "/metrics", accept="text/plain")
    history = sum(float(line.rsplit(" ", 1)[1]) for line in text.decode().splitlines() if line.startswith("keelson_watch_cache_history_bytes{"))
    return (int(totals["current"]) + int(totals["mmap"]) - int(totals["fast"]) - int(totals["rest"]) - history) / 1024


def main():
    binary, folder = sys.argv[1:3]
    minutes = float(sys.argv[3]) if len(sys.argv) > 3 else 2
    pause = float(sys.argv[4]) if len(sys.argv) > 4 else 0
    shutil.rmtree(folder, ignore_errors=True)
    server = Server(binary, folder, flags=COMPACTION).start()
    soak = Soak(server, minutes, pause)
    threads = [threading.Thread(target=soak.worker, args=(i,)) for i in range(WORKERS)] + [threading.Thread(target=soak.load)]
    try:
        for thread in threads:
            thread.start()
        resident, live = [], []
        for _ in range(5):
            time.sleep(minutes * 60 / 5)
            resident.append(server.memory_kb())
            live.append(live_kb(server))
        for thread in threads:
            thread.join()
        live.append(live_kb(server))
    finally:
        server.stop()
    megabytes = lambda samples: ", ".join("%.1f" % (kb / 1024) for kb in samples)  # noqa: E731
    print("definitions: %d cycles, %d writes of config maps, MB after each fifth of the time: resident %s; live without history %s" % (
        soak.cycles, soak.writes, megabytes(resident), megabytes(live)))
    for failure in soak.failures:
        print("FAIL: " + failure)
    if live[-1] > live[0] + memory_bound(LIVE_SLACK_KB):
        print("FAIL: memory is not flat")
        sys.exit(1)
    sys.exit(1 if soak.failures or not soak.cycles else 0)


if __name__ == "__main__":
    main()
