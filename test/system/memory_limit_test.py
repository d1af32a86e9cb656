#!/usr/bin/env python3
"""--memory-limit under many large LISTs at once. usage: memory_limit_test.py KEELSON WORK_FOLDER

Every client gets an answer: the whole list, or 429 with Retry-After; the process stays below the limit; afterwards lists are served again.
"""
import json
import os
import shutil
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, Server, config_map  # noqa: E402

OBJECTS = 1500
BYTES = 20_000
LISTS = 32
ABOVE_IDLE_MB = 200
PATH = "/api/v1/namespaces/default/configmaps"
ACCEPTS = ("application/json", "application/json;as=Table;g=meta.k8s.io;v=v1")


def fill(server):
    client = Client(server)
    for i in range(OBJECTS):
        client.must(201, "POST", PATH, config_map("large-%d" % i, {"text": ("%d " % i) * (BYTES // 5)}))
    client.close()


class Lister(threading.Thread):
    def __init__(self, server, accept):
        super().__init__()
        self.client, self.accept, self.answers, self.error = Client(server), accept, [], None

    def run(self):
        try:
            for _ in range(4):
                self.client.connection.request("GET", PATH, headers={"Accept": self.accept})
                response = self.client.connection.getresponse()
                body = response.read()
                self.answers.append((response.status, response.getheader("Retry-After"), body.count(b"large-1499")))
        except Exception as e:  # told by the main thread
            self.error = e


def main():
    binary, folder = sys.argv[1:3]
    shutil.rmtree(folder, ignore_errors=True)
    server = Server(binary, folder)
    server.start()
    fill(server)
    server.stop()
    server.start()
    client = Client(server)
    client.must(200, "GET", PATH + "?limit=1")
    idle = server.memory_kb()
    client.close()
    server.stop()

    limit_mb = idle // 1024 + ABOVE_IDLE_MB
    server.flags = ["--memory-limit=%d" % limit_mb]
    server.start()
    client = Client(server)
    # Sizes of resources are counted every ten seconds at most; before that a list of unknown size counts as a small one.
    client.must(200, "GET", PATH + "?limit=1")
    listers = [Lister(server, ACCEPTS[i % len(ACCEPTS)]) for i in range(LISTS)]
    for lister in listers:
        lister.start()
    for lister in listers:
        lister.join()
    peak = server.memory_kb("VmHWM") // 1024
    answers = [answer for lister in listers for answer in lister.answers]
    errors = [lister.error for lister in listers if lister.error]
    served = sum(1 for status, _, found in answers if status == 200 and found > 0)
    refused = sum(1 for status, retry, _ in answers if status == 429 and retry and int(retry) > 0)
    print("idle %d MB, limit %d MB, peak %d MB: %d lists served, %d refused" % (idle // 1024, limit_mb, peak, served, refused))
    if errors:
        raise AssertionError(errors[0])
    assert served + refused == LISTS * 4, [a for a in answers if a[0] not in (200, 429)][:3]
    assert served > 0 and peak <= limit_mb
    client.must(200, "GET", PATH + "?limit=10")
    client.close()
    server.stop()
    print("memory limit: passed")


main()
