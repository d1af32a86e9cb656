#!/usr/bin/env python3
"""Many watches see the same events in the same order. usage: watch_test.py KEELSON WORK_FOLDER [WATCHES] [CHANGES]

Writers create, change and delete objects while the watches run: half of them from before the first change, half started in the middle
with the resourceVersion of the start. Each must see exactly the events of the others, byte for byte, with growing resourceVersions, and
the events must rebuild what a list shows in the end.
"""
import hashlib
import json
import os
import random
import shutil
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, Server, config_map  # noqa: E402

PATH = "/api/v1/namespaces/default/configmaps"
WRITERS = 4
LAST = "the-end"


class Watch(threading.Thread):
    def __init__(self, server, context, revision):
        super().__init__()
        self.client = Client(server, timeout=120, context=context)
        self.revision = revision
        self.events = []
        self.digest = hashlib.sha256()
        self.problem = None

    def run(self):
        try:
            connection = self.client.connection
            connection.request("GET", "%s?watch=true&resourceVersion=%s" % (PATH, self.revision), headers={"Accept": "application/json"})
            response = connection.getresponse()
            if response.status != 200:
                self.problem = "status %d: %s" % (response.status, response.read())
                return
            last = int(self.revision)
            while True:
                line = response.readline()
                if not line:
                    self.problem = "the watch ended after %d events" % len(self.events)
                    return
                self.digest.update(line)
                event = json.loads(line)
                metadata = event["object"]["metadata"]
                if event["type"] not in ("ADDED", "MODIFIED", "DELETED") or int(metadata["resourceVersion"]) <= last:
                    self.problem = "event %d: %s at %s after %d" % (len(self.events), event["type"], metadata.get("resourceVersion"), last)
                    return
                last = int(metadata["resourceVersion"])
                self.events.append((event["type"], metadata["name"], last, event["object"].get("data", {}).get("v")))
                if metadata["name"] == LAST:
                    return
        except Exception as error:  # any failure of a watch is a finding
            self.problem = "%s after %d events" % (error, len(self.events))
        finally:
            self.client.close()


def write(server, context, number, changes, problems):
    rng = random.Random(number)
    client = Client(server, context=context)
    mine = []
    try:
        for i in range(changes):
            dice = rng.random()
            if len(mine) < 5 or dice < 0.4:
                name = "writer-%d-%04d" % (number, i)
                client.must(201, "POST", PATH, config_map(name, {"v": str(i)}))
                mine.append(name)
            elif dice < 0.8:
                name = rng.choice(mine)
                client.must(200, "PUT", PATH + "/" + name, config_map(name, {"v": str(i)}))
            else:
                client.must(200, "DELETE", PATH + "/" + mine.pop(rng.randrange(len(mine))))
    except AssertionError as error:
        problems.append(str(error))
    client.close()


def main():
    binary, folder = sys.argv[1:3]
    watches = int(sys.argv[3]) if len(sys.argv) > 3 else 100
    changes = int(sys.argv[4]) if len(sys.argv) > 4 else 600
    shutil.rmtree(folder, ignore_errors=True)
    server = Server(binary, folder).start()
    problems = []
    begin = time.monotonic()
    try:
        client = Client(server)
        context = server.context()
        revision = client.must(200, "GET", PATH)["metadata"]["resourceVersion"]
        started = [Watch(server, context, revision) for _ in range(watches // 2)]
        for watch in started:
            watch.start()
        writers = [threading.Thread(target=write, args=(server, context, i, changes // WRITERS, problems)) for i in range(WRITERS)]
        for writer in writers:
            writer.start()
        late = [Watch(server, context, revision) for _ in range(watches - len(started))]
        for watch in late:
            watch.start()
        for writer in writers:
            writer.join()
        items = client.must(200, "GET", PATH)["items"]
        client.must(201, "POST", PATH, config_map(LAST, {}))
        for watch in started + late:
            watch.join()
    finally:
        server.stop()
    first = started[0]
    for i, watch in enumerate(started + late):
        if watch.problem:
            problems.append("watch %d: %s" % (i, watch.problem))
        elif watch.digest.digest() != first.digest.digest():
            problems.append("watch %d saw other events than watch 0: %d, %d" % (i, len(watch.events), len(first.events)))
    state = {}
    for kind, name, revision, value in first.events:
        if (kind == "ADDED") == (name in state):
            problems.append("%s of %s at %d does not fit what came before" % (kind, name, revision))
        if kind == "DELETED":
            state.pop(name, None)
        else:
            state[name] = (str(revision), value)
    state.pop(LAST, None)
    listed = {item["metadata"]["name"]: (item["metadata"]["resourceVersion"], item["data"].get("v")) for item in items if item["metadata"]["name"].startswith("writer-")}
    if state != listed:
        problems.append("the events rebuild %d objects, the list has %d; different: %s" % (len(state), len(listed), sorted(set(state.items()) ^ set(listed.items()))[:5]))
    for problem in problems[:20]:
        print("PROBLEM: " + problem)
    print("%d watches, %d events each, %d changes by %d writers, %d problems, %.1f s" % (
        watches, len(first.events), changes, WRITERS, len(problems), time.monotonic() - begin))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
