#!/usr/bin/env python3
"""Watches go on across a restart, without a list and without a gap. usage: resume_test.py KEELSON WORK_FOLDER [WATCHES] [CHANGES]

Objects are changed, watches are broken off at different points, more is changed, the server is stopped and started again on the same
folder. Every watch then resumes from the resourceVersion it had seen last and must get exactly the events behind it, in order. Half of the
watches select by spec.nodeName. The server's own count of lists must not move meanwhile.
"""
import json
import os
import random
import re
import shutil
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, Server  # noqa: E402

PATH = "/api/v1/namespaces/default/pods"
NODES = 20


def pod(name, node, value):
    return {"metadata": {"name": name, "annotations": {"v": value}, "labels": {"app": "resume"}},
            "spec": {"nodeName": node, "automountServiceAccountToken": False, "containers": [{"name": "c", "image": "i"}]}}


def change(client, rng, alive, number):
    dice = rng.random()
    if len(alive) < 10 or dice < 0.4:
        name, node = "pod-%05d" % number, "node-%d" % rng.randrange(NODES)
        client.must(201, "POST", PATH, pod(name, node, str(number)))
        alive[name] = node
    elif dice < 0.8:
        name = rng.choice(sorted(alive))
        client.must(200, "PATCH", PATH + "/" + name, {"metadata": {"annotations": {"v": str(number)}}}, content_type="application/merge-patch+json")
    else:
        name = rng.choice(sorted(alive))
        client.must(200, "DELETE", PATH + "/" + name + "?gracePeriodSeconds=0")
        del alive[name]


def lists(client):
    text = client.must(200, "GET", "/metrics").decode()
    counted = re.findall(r'^apiserver_request_total\{.*resource="pods".*verb="LIST".*\} (\S+)$', text, re.M)
    cached = re.findall(r'^apiserver_cache_list_total\{group="",.*resource="pods"\} (\S+)$', text, re.M)
    return sum(map(float, counted)), sum(map(float, cached))


class Watch:
    """One connection that reads events without a thread."""

    def __init__(self, server, context, revision, node):
        self.client = Client(server, timeout=120, context=context)
        self.after, self.node, self.buffer, self.events, self.problem = revision, node, b"", [], None
        path = "%s?watch=true&resourceVersion=%d" % (PATH, revision) + ("&fieldSelector=spec.nodeName%%3D%s" % node if node else "")
        self.client.connection.request("GET", path, headers={"Accept": "application/json"})

    def want(self, log):
        return [event for event in log if event[2] > self.after and (not self.node or event[3] == self.node)]

    def read(self, count):
        response = self.client.connection.getresponse()
        if response.status != 200:
            self.problem = "status %d: %s" % (response.status, response.read()[:300])
            return
        while len(self.events) < count:
            line = response.readline()
            if not line:
                self.problem = "ended after %d of %d events" % (len(self.events), count)
                return
            event = json.loads(line)
            if event["type"] == "ERROR":
                self.problem = "an error instead of an event: %s" % event["object"].get("message")
                return
            metadata = event["object"]["metadata"]
            self.events.append((event["type"], metadata["name"], int(metadata["resourceVersion"]), event["object"]["spec"]["nodeName"]))


def main():
    binary, folder = sys.argv[1:3]
    watches = int(sys.argv[3]) if len(sys.argv) > 3 else 200
    changes = int(sys.argv[4]) if len(sys.argv) > 4 else 300
    seed = int(os.environ.get("KEELSON_SEED", "1"))
    print("KEELSON_SEED=%d" % seed)
    rng = random.Random(seed)
    shutil.rmtree(folder, ignore_errors=True)
    server = Server(binary, folder).start()
    failures = []
    try:
        client = Client(server)
        client.must(201, "POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        start = int(client.must(200, "GET", PATH)["metadata"]["resourceVersion"])
        alive = {}
        for i in range(changes):
            change(client, rng, alive, i)
        reference = Watch(server, server.context(), start, "")  # what a watch without a restart sees
        reference.read(changes)
        if reference.problem:
            sys.exit("the watch before the restart: " + reference.problem)
        log = reference.events
        reference.client.close()
        client.close()
        server.stop()
        server = Server(binary, folder).start()
        context = server.context()
        client = Client(server)
        before = lists(client)
        revisions = [start] + [event[2] for event in log[:-1]]
        begin = time.monotonic()
        for first in range(0, watches, 50):  # a few at a time, so that the test itself needs few descriptors
            group = []
            for i in range(first, min(first + 50, watches)):
                group.append(Watch(server, context, rng.choice(revisions), "node-%d" % rng.randrange(NODES) if i % 2 else ""))
            for watch in group:
                want = watch.want(log)
                watch.read(len(want))
                if watch.problem or watch.events != want:
                    failures.append("after %d of %r: %s" % (watch.after, watch.node, watch.problem or "%r, not %r" % (watch.events[:5], want[:5])))
            for watch in group:
                watch.client.close()
        seconds = time.monotonic() - begin
        after = lists(client)
        if after != before:
            failures.append("lists were made: %r, before %r" % (after, before))
    finally:
        server.stop()
    for failure in failures[:10]:
        print("FAIL: " + failure)
    print("%d watches resumed across a restart with %d changes behind them in %.1f s, %d lists, %d failed" % (watches, changes, seconds, after[0] - before[0], len(failures)))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
