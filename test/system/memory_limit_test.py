#!/usr/bin/env python3
"""--memory-limit under many large LISTs at once. usage: memory_limit_test.py KEELSON WORK_FOLDER [--audit]

Every client gets an answer: the whole list, or 429 with Retry-After; the process stays below the limit; afterwards lists are served again.
With --audit every LIST is audited at the level RequestResponse and the log holds each served list whole (a gigabyte).
"""
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
ACCEPTS = ("application/json", "application/json;as=Table;g=meta.k8s.io;v=v1", "application/yaml")
POLICY = """apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: RequestResponse, verbs: [list], resources: [{group: "", resources: [configmaps]}]}, {level: None}]
"""


def fill(server):
    client = Client(server)
    for i in range(OBJECTS):
        client.must(201, "POST", PATH, config_map("large-%d" % i, {"text": ("%d " % i) * (BYTES // 5)}))
    client.close()


class Lister(threading.Thread):
    def __init__(self, server, accept, times):
        super().__init__()
        self.client, self.accept, self.times, self.answers, self.error = Client(server), accept, times, [], None

    def run(self):
        try:
            for _ in range(self.times):
                self.client.connection.request("GET", PATH, headers={"Accept": self.accept})
                response = self.client.connection.getresponse()
                body = response.read()
                self.answers.append((response.status, response.getheader("Retry-After"), body.count(b"large-1499")))
        except Exception as e:  # reported by the main thread
            self.error = e


def audited_lists(path):
    """Lists that the audit log holds whole, and events in all. A line is 30 MB: it is searched, not parsed."""
    whole = events = 0
    with open(path, "rb") as log:
        for line in log:
            if b"?limit=1\"" in line[:2000]:
                continue
            events += 1
            code = line.rsplit(b'"responseStatus":', 1)[1][:200] if b'"responseStatus":' in line else b""
            whole += line.endswith(b"}\n") and line.count(b"large-1499") > 0 and b'"code":200' in code + line[:4000]
    return whole, events


def main():
    binary, folder = sys.argv[1:3]
    audit = "--audit" in sys.argv[3:]
    times = 1 if audit else 4
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
    log = os.path.join(os.path.abspath(folder), "audit.log")
    if audit:
        policy = os.path.join(os.path.abspath(folder), "policy.yaml")
        with open(policy, "w") as f:
            f.write(POLICY)
        server.flags += ["--audit-policy-file=" + policy, "--audit-log-path=" + log, "--audit-log-maxsize=4000"]
    server.start()
    client = Client(server)
    # Sizes of resources are counted every ten seconds at most; before that a list of unknown size counts as a small one.
    client.must(200, "GET", PATH + "?limit=1")
    listers = [Lister(server, ACCEPTS[i % len(ACCEPTS)], times) for i in range(LISTS)]
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
    assert served + refused == LISTS * times, [a for a in answers if a[0] not in (200, 429)][:3]
    assert served > 0 and peak <= limit_mb
    client.must(200, "GET", PATH + "?limit=10")
    client.close()
    server.stop()
    if audit:
        whole, events = audited_lists(log)
        print("audit log: %d events, %d lists whole, %d MB" % (events, whole, os.path.getsize(log) // 2**20))
        assert whole == served and events >= served + refused
    print("memory limit: passed")


main()
