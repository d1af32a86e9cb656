#!/usr/bin/env python3
"""An aggregated API server that misbehaves: bounded memory, Go's error texts, no delay for other requests. usage: aggregation_faults_test.py KEELSON WORK_FOLDER [PROGRAMS_FOLDER]

Nothing here measures time: a backend that hangs is let go by the test, and what must not wait for it is done before. With the folder of kube-apiserver and
etcd, the same table is checked on them first.
"""
import http.client
import os
import re
import shutil
import socket
import ssl
import sys
import threading
import time

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "system"))
from harness import Client, Server, config_map, free_port, memory_bound  # noqa: E402
from webhook_peer import make_certificate, reset  # noqa: E402

ADDRESS, GROUP = "127.96.0.41", "faults.example.com"  # a cluster IP on which the backend listens
PREFIX = "/apis/%s/v1/" % GROUP
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
RESOURCES = b'{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"faults.example.com/v1","resources":[]}'
MEGABYTE = b" " * (1 << 20)
MEMORY_MAX_KB = memory_bound(96 * 1024)  # growth of the server over all faults
HANGING = 50  # requests at once
RELEASED = threading.Event()
FAILED = []


def check(name, condition, detail=""):
    print("%s: %s" % (name, "ok" if condition else "FAILED " + str(detail)), flush=True)
    if not condition:
        FAILED.append(name)


def answer(head, body=b""):
    return lambda connection: connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)


def hang(connection):
    connection.recv(1)


def hang_until_released(connection):
    RELEASED.wait()
    connection.sendall(OK + b"Content-Length: 2\r\n\r\n{}")


def endless_head(connection):
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.sendall(b"X-Field: " + b"x" * 8000 + b"\r\n")


def endless_body(connection):
    connection.sendall(OK + b"Transfer-Encoding: chunked\r\n\r\n")
    while True:
        connection.sendall(b"100000\r\n" + MEGABYTE + b"\r\n")


def trickle_head(connection):
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while True:
        connection.sendall(b"x")
        RELEASED.wait(0.01)


def slow_body(connection):
    """One piece; the next when the test has seen it."""
    connection.sendall(OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
    RELEASED.wait()
    connection.sendall(b"6\r\nsecond\r\n0\r\n\r\n")


REDIRECT = b"HTTP/1.1 302 Found\r\nLocation: https://192.0.2.1/elsewhere\r\n"
# name -> (what the backend does, further request headers, status, a regular expression of the whole body). Status 0: the answer is visibly cut off, wherever.
PLAIN = "error trying to reach service: "
UPGRADE = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
FAULTS = {
    "closes": (lambda connection: None, {}, 503, PLAIN + "EOF\n"),
    "resets": (reset, {}, 503, PLAIN + r"read tcp 127\.0\.0\.1:\d+->127\.96\.0\.41:\d+: read: connection reset by peer\n"),
    "no-http": (lambda connection: connection.sendall(b"SSH-2.0-OpenSSH\r\n\r\n"), {}, 503,
                PLAIN + r'net/http: HTTP/1\.x transport connection broken: malformed HTTP response "SSH-2\.0-OpenSSH"\n'),
    "endless-head": (endless_head, {}, 503, PLAIN + r"net/http: HTTP/1\.x transport connection broken: net/http: server response headers exceeded \d+ bytes; aborted\n"),
    "redirects": (answer(REDIRECT), {}, 502, "the backend attempted to redirect this request, which is not permitted"),
    "redirects-nowhere": (answer(b"HTTP/1.1 302 Found\r\n"), {}, 302, ""),
    "cut-short": (lambda connection: connection.sendall(OK + b"Content-Length: 100\r\n\r\nten bytes."), {}, 0, "(ten bytes.)?"),
    "cut-chunk": (lambda connection: connection.sendall(OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"), {}, 0, "(abc)?"),
    "refuses-upgrades": (answer(b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\n", b"no upgrades here"), UPGRADE, 403, "no upgrades here"),
    "ignores-upgrades": (answer(OK, b"{}"), UPGRADE, 503, "invalid upgrade response: status code 200\n"),
    "redirects-upgrades": (answer(REDIRECT), UPGRADE, 503, "invalid upgrade response: status code 302\n"),
    "closes-upgrades": (lambda connection: None, UPGRADE, 503, "(error dialing backend: )?(unexpected )?EOF\n"),
    "hangs": (hang, {}, 504, r'.*"message":"Timeout: request did not complete within the allotted timeout".*|.*"reason":"Timeout".*'),
    "trickles-head": (trickle_head, {}, 504, r'.*"reason":"Timeout".*'),
    "held": (hang_until_released, {}, None, None),
    "endless-body": (endless_body, {}, None, None),
    "slow-body": (slow_body, {}, None, None),
}


class Backend:
    def __init__(self, folder):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(*make_certificate(folder))
        self.port, self.lock, self.called, self.open = free_port(), threading.Lock(), [], 0
        self.listener = socket.create_server((ADDRESS, self.port), backlog=256)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                plain, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(plain,), daemon=True).start()

    def serve(self, plain):
        with self.lock:
            self.open += 1
        try:
            with self.context.wrap_socket(plain, server_side=True) as connection:
                while True:
                    head = b""
                    while b"\r\n\r\n" not in head:
                        data = connection.recv(65536)
                        if not data:
                            return
                        head += data
                    path = head.split()[1].decode().split("?")[0]
                    if not path.startswith(PREFIX):
                        known = path == PREFIX[:-1]
                        answer(OK if known else b"HTTP/1.1 404 Not Found\r\n", RESOURCES if known else b"")(connection)
                        continue
                    with self.lock:
                        self.called.append(path[len(PREFIX):])
                    FAULTS[path[len(PREFIX):]][0](connection)
                    return
        except OSError:
            pass  # The server under test has ended the connection.
        finally:
            with self.lock:
                self.open -= 1

    def calls(self, name):
        with self.lock:
            return self.called.count(name)


def register(client, port):
    namespace = "/api/v1/namespaces/faults"
    client.must(201, "POST", "/api/v1/namespaces", {"metadata": {"name": "faults"}})
    client.must(201, "POST", namespace + "/services", {"metadata": {"name": "api"}, "spec": {"clusterIP": ADDRESS, "ports": [{"name": "https", "port": port}]}})
    client.must(201, "POST", "/apis/discovery.k8s.io/v1/namespaces/faults/endpointslices", {
        "metadata": {"name": "api-1", "labels": {"kubernetes.io/service-name": "api"}}, "addressType": "IPv4", "ports": [{"name": "https", "port": port}],
        "endpoints": [{"addresses": ["192.0.2.1"], "conditions": {"ready": True}}]})
    client.must(201, "POST", "/apis/apiregistration.k8s.io/v1/apiservices", {"metadata": {"name": "v1." + GROUP}, "spec": {
        "group": GROUP, "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15, "insecureSkipTLSVerify": True,
        "service": {"namespace": "faults", "name": "api", "port": port}}})
    deadline = time.monotonic() + 90
    while client.request("GET", PREFIX[:-1])[0] != 200:
        assert time.monotonic() < deadline, "the aggregated server does not become available"
        time.sleep(0.1)


def ask(server, name, headers, query=""):
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=90, context=server.context())
    try:
        connection.request("GET", PREFIX + name + query, headers=headers)
        response = connection.getresponse()
        status, body = response.status, b""
        try:
            body = response.read()
        except http.client.IncompleteRead as e:
            return 0, e.partial.decode()
        return status, body.decode()
    except http.client.RemoteDisconnected:
        return 0, ""
    finally:
        connection.close()


def faults(server):
    for name, (_, headers, wanted, text) in FAULTS.items():
        if wanted is None:
            continue
        status, body = ask(server, name, headers, "?timeout=2s" if wanted == 504 else "")
        check(name, status == wanted and re.fullmatch(text, body, re.DOTALL), (status, body[:500]))


def others_do_not_wait(server, client, backend):
    """While many requests hang in the backend, other requests go on, also those to the same backend."""
    answers = []
    hanging = [threading.Thread(target=lambda: answers.append(ask(server, "held", {}))) for _ in range(HANGING)]
    for thread in hanging:
        thread.start()
    deadline = time.monotonic() + 90
    while backend.calls("held") < HANGING and time.monotonic() < deadline:
        client.must(200, "GET", "/version")
    check("%d requests hang" % HANGING, backend.calls("held") == HANGING, backend.calls("held"))
    for i in range(20):
        client.must(201, "POST", "/api/v1/namespaces/default/configmaps", config_map("free-%d" % i, {}))
        client.must(200, "GET", PREFIX[:-1])
    check("others go on while %d hang" % HANGING, not answers, answers)
    RELEASED.set()
    for thread in hanging:
        thread.join(90)
    check("all are answered in the end", answers == [(200, "{}")] * HANGING, answers)
    RELEASED.clear()


def bodies_are_streamed(server):
    """Streamed data arrives before the backend sends more."""
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=90, context=server.context())
    connection.request("GET", PREFIX + "slow-body")
    response = connection.getresponse()
    check("a slow body arrives piece by piece", response.read(5) == b"first")
    RELEASED.set()
    check("and whole", response.read() == b"second")
    RELEASED.clear()
    connection.close()


def endless_bodies_are_bounded(server, backend, memory_kb):
    """Clients that do not read an endless answer, and then leave: nothing is gathered, and the backend is let go."""
    connections = []
    before = memory_kb()
    for _ in range(10):
        connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=90, context=server.context())
        connection.request("GET", PREFIX + "endless-body")
        connections.append((connection, connection.getresponse()))
    connections[0][1].read(32 << 20)  # one reads on: what the others leave lies somewhere
    grown = memory_kb() - before
    check("endless bodies are bounded", grown < MEMORY_MAX_KB, "%d KiB more" % grown)
    for connection, response in connections:
        response.close()
        connection.close()
    deadline = time.monotonic() + 90
    while backend.open > 5 and time.monotonic() < deadline:
        time.sleep(0.05)
    check("the backend is let go when clients leave", backend.open <= 5, backend.open)


def refused(server, client, backend):
    backend.listener.close()
    status, body = ask(server, "closes", {})
    while body.endswith("EOF\n"):  # a connection that was still open
        status, body = ask(server, "closes", {})
    wanted = r"error trying to reach service: dial tcp 127\.96\.0\.41:%d: connect: connection refused\n|service unavailable\n" % backend.port
    check("a backend that is gone", status == 503 and re.fullmatch(wanted, body), (status, body))
    client.must(200, "GET", "/api/v1/namespaces/default/configmaps")


def run(server, folder, memory_kb):
    backend = Backend(folder)
    try:
        client = Client(server, timeout=120)
        register(client, backend.port)
        before = memory_kb()
        faults(server)
        grown = memory_kb() - before
        check("memory stays bounded", grown < MEMORY_MAX_KB, "%d KiB more" % grown)
        others_do_not_wait(server, client, backend)
        bodies_are_streamed(server)
        endless_bodies_are_bounded(server, backend, memory_kb)
        refused(server, client, backend)
        client.close()
    finally:
        RELEASED.set()
        backend.listener.close()


def on_real_server(folder, programs):
    sys.path.insert(0, os.path.join(ROOT, "interop"))
    from rig import RealPair
    real = RealPair(os.path.join(folder, "real"), programs).start()
    try:
        run(real, folder, lambda: 0)
    finally:
        real.stop()
        RELEASED.clear()


def main():
    binary, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    if len(sys.argv) > 3:
        on_real_server(folder, sys.argv[3])
        print("kube-apiserver failed: " + "; ".join(FAILED) if FAILED else "kube-apiserver: every check holds", flush=True)
    server = Server(binary, os.path.join(folder, "ours"), flags=["--service-cluster-ip-range=127.96.0.0/16"]).start()
    try:
        run(server, folder, lambda: server.memory_kb("VmHWM"))
    finally:
        server.stop()
    print("failed: " + "; ".join(FAILED) if FAILED else "every fault is contained")
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
