#!/usr/bin/env python3
"""kill -9 in the middle of many creates. usage: durability_test.py KEELSON WORK_FOLDER [CREATES] [ROUNDS]

Several clients create, change and delete objects; the server is killed without warning once a share of the creates is answered, and
started again on the same folder. Then: every acknowledged object is there with the resourceVersion and uid that its answer named, an
acknowledged delete stays deleted, and no revision of before is given out again. The last round leaves the server alone to finish.
"""
import http.client
import os
import random
import shutil
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, Server, config_map  # noqa: E402

CLIENTS = 8
PATH = "/api/v1/namespaces/default/configmaps"


class Writers:
    """Answers to the clients: acknowledged[name] = (resourceVersion, uid, data), and names whose last request had no answer."""

    def __init__(self, server, first, count, seed):
        self.server = server
        self.lock = threading.Lock()
        self.next = first
        self.end = first + count
        self.acknowledged = {}
        self.deleted = set()
        self.uncertain = set()
        self.revisions = []
        self.answered_creates = 0
        self.enough = threading.Condition(self.lock)
        self.threads = [threading.Thread(target=self._work, args=(random.Random(seed * 1000 + i),)) for i in range(CLIENTS)]

    def _work(self, rng):
        try:
            client = Client(self.server)
        except OSError:
            return
        mine = []
        while True:
            with self.lock:
                if self.next >= self.end:
                    return
                name = "object-%06d" % self.next
                self.next += 1
            try:
                self._one(client, "POST", name, config_map(name, {"v": "0", "filler": "x" * 200}), 201)
                mine.append(name)
                if rng.random() < 0.2:
                    chosen = rng.choice(mine)
                    self._one(client, "PUT", chosen, config_map(chosen, {"v": name}), 200)
                if rng.random() < 0.1:
                    chosen = mine.pop(rng.randrange(len(mine)))
                    self._one(client, "DELETE", chosen, None, 200)
            except (OSError, http.client.HTTPException):
                return  # the server is gone; self.uncertain names what had no answer

    def _one(self, client, method, name, body, expected):
        with self.lock:
            self.uncertain.add(name)
        answer = client.must(expected, method, PATH if method == "POST" else PATH + "/" + name, body)
        with self.lock:
            self.uncertain.discard(name)
            if method == "DELETE":
                self.acknowledged.pop(name)
                self.deleted.add(name)
            else:
                metadata = answer["metadata"]
                self.acknowledged[name] = (metadata["resourceVersion"], metadata["uid"], answer["data"])
                self.revisions.append(int(metadata["resourceVersion"]))
            if method == "POST":
                self.answered_creates += 1
                self.enough.notify_all()

    def start(self):
        for thread in self.threads:
            thread.start()

    def wait_for(self, creates):
        with self.enough:
            return self.enough.wait_for(lambda: self.answered_creates >= creates, 300)

    def join(self):
        for thread in self.threads:
            thread.join()


def list_all(client):
    items, token, revision = {}, "", None
    while True:
        page = client.must(200, "GET", PATH + "?limit=500" + ("&continue=" + token if token else ""))
        revision = int(page["metadata"]["resourceVersion"])
        for item in page["items"]:
            items[item["metadata"]["name"]] = item
        token = page["metadata"].get("continue")
        if not token:
            return items, revision


def verify(client, known, deleted, uncertain, problems):
    """A request without an answer may or may not have happened: its object is only required to be whole."""
    items, revision = list_all(client)
    for name, (resource_version, uid, data) in known.items():
        if name in uncertain:
            continue
        item = items.get(name)
        if item is None:
            problems.append("%s was acknowledged at %s and is gone" % (name, resource_version))
        elif (item["metadata"]["resourceVersion"], item["metadata"]["uid"], item["data"]) != (resource_version, uid, data):
            problems.append("%s: acknowledged %s, found %s" % (name, resource_version, item["metadata"]["resourceVersion"]))
    for name in deleted:
        if name in items:
            problems.append("%s: its delete was acknowledged and it is back" % name)
    for name, item in items.items():
        if not name.startswith("object-"):
            continue
        if name not in known and name not in uncertain:
            problems.append("%s: nobody created it" % name)
        if int(item["metadata"]["resourceVersion"]) > revision:
            problems.append("%s is newer than the store" % name)
    return items, revision


def main():
    binary, folder = sys.argv[1:3]
    creates = int(sys.argv[3]) if len(sys.argv) > 3 else 2000
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 2
    seed = int(os.environ.get("KEELSON_SEED", "1"))
    shutil.rmtree(folder, ignore_errors=True)
    server = Server(binary, folder).start()
    known, deleted, uncertain, used, problems = {}, set(), set(), set(), []
    share = creates // rounds
    begin = time.monotonic()
    try:
        for number in range(rounds):
            writers = Writers(server, number * share, share, seed + number)
            writers.start()
            last = number == rounds - 1
            if not last:
                if not writers.wait_for(share // 2):
                    problems.append("the clients did not get their answers in time")
                server.kill()
            writers.join()
            reused = used.intersection(writers.revisions)
            if reused or len(set(writers.revisions)) != len(writers.revisions):
                problems.append("revisions were given out twice: %s" % sorted(reused)[:10])
            if used and writers.revisions and min(writers.revisions) <= max(used):
                problems.append("revisions went back after the restart: %d after %d" % (min(writers.revisions), max(used)))
            used.update(writers.revisions)
            known.update(writers.acknowledged)
            deleted |= writers.deleted
            uncertain |= writers.uncertain
            if last:
                server.stop()
            restarted = server.start()
            client = Client(restarted)
            items, revision = verify(client, known, deleted, uncertain, problems)
            client.close()
            if used and revision < max(used):
                problems.append("the store is at %d, but %d was acknowledged" % (revision, max(used)))
            # Writes without an answer are settled now: they stay as they were found.
            used.update(int(item["metadata"]["resourceVersion"]) for item in items.values())
            for name in uncertain:
                if name in items:
                    item = items[name]
                    known[name] = (item["metadata"]["resourceVersion"], item["metadata"]["uid"], item["data"])
                    deleted.discard(name)
                else:
                    known.pop(name, None)
            print("round %d: %s after %d answered creates; %d objects there, %d without an answer, revision %d, ready again after %.0f ms" % (
                number + 1, "SIGTERM" if last else "kill -9", writers.answered_creates, len(items), len(writers.uncertain), revision, restarted.start_seconds * 1000))
            uncertain = set()
    finally:
        server.stop()
    for problem in problems[:20]:
        print("PROBLEM: " + problem)
    print("%d objects, %d deleted, %d revisions acknowledged, %d problems, %.1f s" % (len(known), len(deleted), len(used), len(problems), time.monotonic() - begin))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
