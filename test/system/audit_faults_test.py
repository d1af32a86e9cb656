#!/usr/bin/env python3
"""Audit backends that hang, fail, fill the disk or come back, in each mode. usage: audit_faults_test.py KEELSON WORK_FOLDER

Guarantees of the modes: blocking goes on and counts the error, blocking-strict refuses the request, batch drops what its buffer cannot hold
and counts it; memory stays bounded, and events arrive again when the backend does.
"""
import os
import re
import shutil
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, Server, memory_bound  # noqa: E402
from webhook_peer import FaultyPeer, make_certificate, reset  # noqa: E402

PATH = "/api/v1/namespaces/default/configmaps"
FULL = "/dev/full"  # every write to it fails with ENOSPC
MEMORY_MORE_KB = memory_bound(64 * 1024)
POLICY = """apiVersion: audit.k8s.io/v1
kind: Policy
rules: [{level: Metadata, resources: [{group: "", resources: [configmaps]}]}, {level: None}]
"""
KUBECONFIG = """apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "%s/audit", certificate-authority: "%s"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u}]
current-context: c
"""
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
ERROR = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Collector:
    """A scripted webhook backend: "accept", "error", "reset" or "hang" (until the mode changes)."""

    def __init__(self, folder):
        self.told, self.uris, self.condition = "accept", [], threading.Condition()
        self.peer = FaultyPeer(folder, {"/audit": self.serve})
        self.kubeconfig = os.path.join(folder, "audit.kubeconfig")
        with open(self.kubeconfig, "w") as f:
            f.write(KUBECONFIG % (self.peer.url, make_certificate(folder)[0]))

    def tell(self, what):
        with self.condition:
            self.told = what
            self.condition.notify_all()

    def serve(self, connection, events):
        with self.condition:
            self.condition.wait_for(lambda: self.told != "hang")
            told = self.told
        if told == "reset":
            return reset(connection)
        if told == "accept":
            with self.condition:
                self.uris += [event["requestURI"] for event in events["items"]]
                self.condition.notify_all()
        connection.sendall(OK if told == "accept" else ERROR)

    def await_event(self, uri):
        with self.condition:
            return self.condition.wait_for(lambda: any(uri in seen for seen in self.uris), 60)


def counter(client, name, labels=""):
    text = client.request("GET", "/metrics", accept="text/plain")[1].decode()
    return sum(float(value) for series, value in re.findall(r"^%s(\{.*\})? (\S+)$" % name, text, re.M) if labels in (series or ""))


class Audited:
    """A server with these audit flags, for a `with`."""

    def __init__(self, binary, folder, flags):
        os.makedirs(folder, exist_ok=True)
        policy = os.path.join(folder, "policy.yaml")
        with open(policy, "w") as f:
            f.write(POLICY)
        self.server = Server(binary, folder, flags=["--audit-policy-file=" + policy] + flags, in_memory=True)

    def __enter__(self):
        self.server.start()
        self.client = Client(self.server)
        return self

    def __exit__(self, *_):
        self.client.close()
        self.server.stop()

    def get(self, mark):
        return self.client.request("GET", PATH + "?mark=" + mark)[0]

    def errors(self, plugin):
        return counter(self.client, "apiserver_audit_error_total", 'plugin="%s"' % plugin)


def await_errors(audited, plugin, least):
    for _ in range(2000):  # The log is written by its own thread; a request in between is time enough.
        if audited.errors(plugin) >= least:
            return
    raise AssertionError("%s errors: %s, wanted %s" % (plugin, audited.errors(plugin), least))


def full_disk(binary, folder):
    with Audited(binary, folder, ["--audit-log-path=" + FULL, "--audit-log-mode=blocking"]) as audited:
        assert [audited.get("m") for _ in range(20)] == [200] * 20
        await_errors(audited, "log", 40)  # RequestReceived and ResponseComplete
    with Audited(binary, folder, ["--audit-log-path=" + FULL, "--audit-log-mode=batch"]) as audited:
        assert [audited.get("m") for _ in range(20)] == [200] * 20
        await_errors(audited, "log", 40)
    with Audited(binary, folder, ["--audit-log-path=" + FULL, "--audit-log-mode=blocking-strict"]) as audited:
        assert [audited.get("m") for _ in range(5)] == [500] * 5
        assert counter(audited.client, "apiserver_audit_requests_rejected_total") == 5
        assert audited.client.request("GET", "/api/v1/namespaces/default/secrets")[0] == 200  # not audited, not refused


def failing_webhook(binary, folder):
    collector = Collector(folder)
    flags = ["--audit-webhook-config-file=" + collector.kubeconfig, "--audit-webhook-initial-backoff=1ms"]
    for told in ("error", "reset"):
        collector.tell(told)
        with Audited(binary, folder, flags + ["--audit-webhook-mode=blocking"]) as audited:
            assert [audited.get(told) for _ in range(3)] == [200] * 3
            await_errors(audited, "webhook", 6)
        with Audited(binary, folder, flags + ["--audit-webhook-mode=blocking-strict"]) as audited:
            assert audited.get(told) == 500
            collector.tell("accept")  # it is back
            assert audited.get("back-" + told) == 200
            assert collector.await_event("back-" + told)
    collector.peer.close()


def hanging_webhook(binary, folder):
    """Batch mode: clients are not delayed, the buffer is bounded, and what came after is delivered."""
    collector = Collector(folder)
    collector.tell("hang")
    flags = ["--audit-webhook-config-file=" + collector.kubeconfig, "--audit-webhook-mode=batch", "--audit-webhook-batch-buffer-size=100", "--audit-webhook-batch-max-size=10",
             "--audit-webhook-batch-max-wait=10ms", "--audit-webhook-batch-throttle-enable=false"]
    with Audited(binary, folder, flags) as audited:
        audited.get("first")
        memory = audited.server.memory_kb()
        assert all(audited.get("m") == 200 for _ in range(2000))
        dropped = audited.errors("buffered")
        grown = audited.server.memory_kb("VmHWM") - memory
        print("hanging webhook: %d of 4,000 events dropped and counted, %d KiB more" % (dropped, grown))
        assert dropped > 0 and grown < MEMORY_MORE_KB
        collector.tell("accept")
        assert collector.await_event("first")
        for i in range(600):
            assert audited.get("after-%d" % i) == 200
            if any("after-" in uri for uri in collector.uris):
                break
        assert collector.await_event("after-")
    collector.peer.close()


def main():
    binary, folder = sys.argv[1:3]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for case in (full_disk, failing_webhook, hanging_webhook):
        case(binary, os.path.join(os.path.abspath(folder), case.__name__))
        print("%s: passed" % case.__name__, flush=True)


main()
