#!/usr/bin/env python3
"""Many clients at once. usage: concurrency_test.py KEELSON WORK_FOLDER [CLIENTS] [WRITES]   (64 and 40 by default)

Each client reads, changes and replaces; a conflict must be answered 409 with reason Conflict, and then it reads again. In the end every
acknowledged change must be there: the numbers count the "200" answers of each client. The same on one object and on many, by PUT, by
JSON patch that tests the old value, and by server-side apply, where every client owns its own key. Run it on build/tsan/keelson to
have the server's threads watched.
"""
import json
import os
import random
import shutil
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, Server, config_map  # noqa: E402

PATH = "/api/v1/namespaces/default/configmaps"


class Worker(threading.Thread):
    def __init__(self, server, context, number, work):
        super().__init__(daemon=True)
        self.server, self.context, self.number, self.work = server, context, number, work
        self.written, self.conflicts, self.error = {}, 0, None

    def run(self):
        try:
            client = Client(self.server, context=self.context, timeout=120)
            self.work(self, client)
            client.close()
        except Exception as e:  # reported by the main thread
            self.error = e

    def acknowledged(self, name):
        self.written[name] = self.written.get(name, 0) + 1

    def conflict(self, answer):
        if answer.get("reason") != "Conflict" or answer.get("code") != 409 or not answer.get("message"):
            raise AssertionError("a conflict was answered %s" % answer)
        self.conflicts += 1


def replace(worker, client, name):
    """Read, add one, replace: until it is accepted."""
    while True:
        current = client.must(200, "GET", PATH + "/" + name)
        current["data"]["n"] = str(int(current["data"]["n"]) + 1)
        status, answer = client.request("PUT", PATH + "/" + name, current)
        if status == 200:
            return worker.acknowledged(name)
        if status != 409:
            raise AssertionError("PUT was answered %d: %s" % (status, answer))
        worker.conflict(answer)


def patch(worker, client, name):
    """A JSON patch that tests the value it read: 422 means that another client was first."""
    while True:
        current = client.must(200, "GET", PATH + "/" + name)["data"]["n"]
        operations = [{"op": "test", "path": "/data/n", "value": current}, {"op": "replace", "path": "/data/n", "value": str(int(current) + 1)}]
        status, answer = client.request("PATCH", PATH + "/" + name, operations, content_type="application/json-patch+json")
        if status == 200:
            return worker.acknowledged(name)
        if status == 409:
            worker.conflict(answer)
        elif status == 422:
            worker.conflicts += 1
        else:
            raise AssertionError("PATCH was answered %d: %s" % (status, answer))


def apply(worker, client, name, value):
    body = config_map(name, {"client-%d" % worker.number: str(value)})
    while True:
        status, answer = client.request("PATCH", "%s/%s?fieldManager=client-%d" % (PATH, name, worker.number), body,
                                        content_type="application/apply-patch+yaml")
        if status in (200, 201):
            return worker.acknowledged(name)
        if status != 409:
            raise AssertionError("apply was answered %d: %s" % (status, answer))
        worker.conflict(answer)


def run(server, clients, work):
    context = server.context()
    workers = [Worker(server, context, i, work) for i in range(clients)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(600)
    for worker in workers:
        if worker.is_alive():
            raise AssertionError("client %d did not finish" % worker.number)
        if worker.error:
            raise worker.error
    written = {}
    for worker in workers:
        for name, count in worker.written.items():
            written[name] = written.get(name, 0) + count
    return written, sum(w.conflicts for w in workers)


def check_counts(client, written, what):
    for name, count in written.items():
        stored = int(client.must(200, "GET", PATH + "/" + name)["data"]["n"])
        if stored != count:
            raise AssertionError("%s: %s is %d after %d acknowledged writes" % (what, name, stored, count))


def main():
    binary, folder = sys.argv[1:3]
    clients = int(sys.argv[3]) if len(sys.argv) > 3 else 64
    writes = int(sys.argv[4]) if len(sys.argv) > 4 else 40
    seed = int(os.environ.get("KEELSON_SEED") or 1)
    shutil.rmtree(folder, ignore_errors=True)
    server = Server(binary, folder, start_timeout=180).start()
    try:
        client = Client(server, timeout=120)
        names = ["many-%02d" % i for i in range(16)]
        for name in ["one-put", "one-patch"] + names:
            client.must(201, "POST", PATH, config_map(name, {"n": "0"}))

        written, conflicts = run(server, clients, lambda w, c: [replace(w, c, "one-put") for _ in range(max(1, writes // 10))])
        check_counts(client, written, "PUT of one object")
        print("one object, PUT: %d writes, %d conflicts" % (sum(written.values()), conflicts))
        if conflicts == 0:
            raise AssertionError("nothing ever conflicted: the clients did not meet")

        written, conflicts = run(server, clients, lambda w, c: [patch(w, c, "one-patch") for _ in range(max(1, writes // 10))])
        check_counts(client, written, "JSON patch of one object")
        print("one object, JSON patch: %d writes, %d conflicts" % (sum(written.values()), conflicts))

        def many(worker, connection):
            order = random.Random(seed * 1000 + worker.number)
            for _ in range(writes):
                replace(worker, connection, order.choice(names))
        written, conflicts = run(server, clients, many)
        check_counts(client, written, "PUT of many objects")
        print("many objects, PUT: %d writes, %d conflicts" % (sum(written.values()), conflicts))

        written, conflicts = run(server, clients, lambda w, c: [apply(w, c, "applied", i) for i in range(max(1, writes // 10))])
        data = client.must(200, "GET", PATH + "/applied")["data"]
        expected = {"client-%d" % i: str(max(1, writes // 10) - 1) for i in range(clients)}
        if data != expected:
            raise AssertionError("applied keys: %s" % json.dumps(data))
        print("one object, apply: %d writes, %d conflicts" % (sum(written.values()), conflicts))
        client.close()
    finally:
        server.stop(60)
    with open(server.log_path, errors="replace") as f:
        if "WARNING: ThreadSanitizer" in f.read():
            sys.exit("ThreadSanitizer reported something: see " + server.log_path)
    print("no update was lost")


if __name__ == "__main__":
    main()
