#!/usr/bin/env python3
"""Logs, exec, attach, port forwarding and their errors through the server to a fake kubelet. usage: kubelet_test.py KEELSON WORK_FOLDER

With a real kubectl (see kubectl_test.py for which) the same is done as people do it: logs -f, exec with a terminal, port-forward; over
WebSockets, as kubectl does by default, and over SPDY.
"""
import os
import pty
import re
import select
import shutil
import socket
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fake_kubelet import FakeKubelet  # noqa: E402
from harness import Client, Server  # noqa: E402
from kubectl_test import find_kubectl  # noqa: E402

NODE = "node-1"
checks = 0


def check(what, got, want):
    global checks
    checks += 1
    if got != want:
        raise AssertionError("%s: got %r, want %r" % (what, got, want))


def contains(what, got, want):
    global checks
    checks += 1
    if want not in got:
        raise AssertionError("%s: %r is not in %r" % (what, want, got))


def make_objects(client, port):
    client.must(201, "POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}, "status": {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}], "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}})
    client.must(201, "POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})

    def pod(name, containers, node=NODE, init=()):
        spec = {"containers": [{"name": c, "image": "i", "ports": [{"containerPort": 8080}]} for c in containers],
                "initContainers": [{"name": c, "image": "i"} for c in init]}
        if node:
            spec["nodeName"] = node
        client.must(201, "POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": name}, "spec": spec})
    pod("one", ["c"])
    pod("two", ["a", "b"], init=["i"])
    pod("refusing", ["code-500", "code-400", "code-404", "code-403"])
    pod("unscheduled", ["c"], node=None)
    pod("lost", ["c"], node="gone")
    # kubectl waits for a running pod before it attaches or forwards
    client.must(200, "PATCH", "/api/v1/namespaces/default/pods/one/status", {"status": {
        "phase": "Running", "podIP": "127.0.0.9", "podIPs": [{"ip": "127.0.0.9"}], "conditions": [{"type": "Ready", "status": "True"}]}},
        content_type="application/merge-patch+json")


def raw_requests(client, kubelet):
    base = "/api/v1/namespaces/default/pods/"

    def message(method, path, code, text):
        status, answer = client.request(method, base + path)
        check(path, (status, answer["message"] if isinstance(answer, dict) else answer), (code, text))
    kubelet.log("c", "first")
    kubelet.log("c", "second")
    check("log", client.request("GET", base + "one/log"), (200, b"first\nsecond\n"))
    check("tail", client.request("GET", base + "one/log?tailLines=1"), (200, b"second\n"))
    client.must(200, "GET", base + "one/log?container=c&previous=1&timestamps=true&sinceSeconds=60&limitBytes=100")
    check("log query", kubelet.requests[-1]["raw_query"], "limitBytes=100&previous=true&sinceSeconds=60&timestamps=true")
    check("log path", kubelet.requests[-1]["path"], "/containerLogs/default/one/c")
    client.must(200, "GET", base + "one/log?sinceTime=2020-01-02T03:04:05%2B01:00")
    check("since", kubelet.requests[-1]["raw_query"], "sinceTime=2020-01-02T02%3A04%3A05Z")
    check("unscheduled", client.request("GET", base + "unscheduled/log"), (204, b""))
    message("GET", "two/log", 400, "a container name must be specified for pod two, choose one of: [i a b]")
    message("GET", "two/log?container=x", 400, "container x is not valid for pod two")
    message("GET", "none/log", 404, 'pods "none" not found')
    message("GET", "lost/log", 404, 'pods "gone" not found')
    message("GET", "one/log?tailLines=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax')
    message("GET", "one/log?tailLines=-1", 422,
            'PodLogOptions "one" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0')
    message("GET", "one/log?limitBytes=0", 422, 'PodLogOptions "one" is invalid: limitBytes: Invalid value: 0: must be greater than 0')
    message("GET", "one/log?sinceSeconds=1&sinceTime=2020-01-02T03:04:05Z", 422,
            'PodLogOptions "one" is invalid: []: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified')
    message("GET", "one/log?stream=Stdout", 422, 'PodLogOptions "one" is invalid: stream: Forbidden: may not be specified')
    message("GET", "refusing/log?container=code-500", 500, "Internal error occurred: no log of code-500")
    message("GET", "refusing/log?container=code-400", 400, "no log of code-400")
    message("GET", "refusing/log?container=code-404", 404, "the server could not find the requested resource ( pods/log refusing)")
    for subresource in ("exec?command=ls", "attach", "portforward"):
        message("GET", "one/" + subresource, 400, "Upgrade request required")
        message("POST", "one/" + subresource, 400, "Upgrade request required")
        message("GET", "unscheduled/" + subresource, 400, "pod unscheduled does not have a host assigned")
    message("GET", "one/portforward?ports=x", 400, 'cannot convert to []int32: strconv.ParseUint: parsing "x": invalid syntax')
    message("GET", "one/exec?dryRun=All", 400, "dryRun is not supported")
    message("GET", "one/proxy/", 400, "address not allowed")
    message("GET", "a:b:c:d/proxy/", 400, 'invalid pod request "a:b:c:d"')
    status, answer = client.request("GET", "/api/v1/nodes/%s/proxy/stats" % NODE)
    check("a node on loopback", (status, answer["message"]), (400, "address not allowed"))
    check("unknown verb", client.request("PUT", base + "one/exec")[0], 405)


def log_streams(client, kubelet):
    """With the gate PodLogsQuerySplitStreams."""
    path = "/api/v1/namespaces/default/pods/one/log"
    for query, want in (("", "stream=All"), ("?stream=Stderr", "stream=Stderr"), ("?stream=All&tailLines=1", "stream=All&tailLines=1")):
        client.must(200, "GET", path + query)
        check("streams " + query, kubelet.requests[-1]["raw_query"], want)
    for query, text in (("?stream=x", 'stream: Unsupported value: "x": supported values: "All", "Stderr", "Stdout"'),
                        ("?stream=Stdout&tailLines=1", "[]: Forbidden: `tailLines` and specific `stream` are mutually exclusive for now")):
        status, answer = client.request("GET", path + query)
        check("streams " + query, (status, answer["message"]), (422, 'PodLogOptions "one" is invalid: ' + text))


class Kubectl:
    def __init__(self, binary, server, websockets):
        self.binary = binary
        self.environment = dict(os.environ, KUBECONFIG=server.kubeconfig, HOME=server.folder, KUBECTL_REMOTE_COMMAND_WEBSOCKETS=str(websockets).lower(),
                                KUBECTL_PORT_FORWARD_WEBSOCKETS=str(websockets).lower())

    def run(self, *args, stdin=None):
        done = subprocess.run([self.binary] + list(args), input=stdin, env=self.environment, capture_output=True, timeout=60)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def start(self, *args, **kwargs):
        return subprocess.Popen([self.binary] + list(args), env=self.environment, **kwargs)


def follow(kubectl, kubelet):
    kubelet.log("b", "early")
    process = kubectl.start("logs", "-f", "two", "-c", "b", stdout=subprocess.PIPE)
    check("first line", process.stdout.readline(), b"early\n")
    for i in range(3):  # each line arrives before the next is written
        kubelet.log("b", "line %d" % i)
        check("followed line", process.stdout.readline(), b"line %d\n" % i)
    kubelet.log("b", None)
    check("end of the log", (process.stdout.read(), process.wait(30)), (b"", 0))
    kubelet.logs.pop("b")


def commands(kubectl):
    check("output", kubectl.run("exec", "one", "--", "sh", "-c", "echo out; echo err >&2"), (0, "out\n", "err\n"))
    code, out, _ = kubectl.run("exec", "-i", "one", "--", "sh", "-c", "cat; exit 7", stdin=b"x" * 300000)
    check("input and exit code", (code, out), (7, "x" * 300000))
    check("attach", kubectl.run("attach", "-i", "one", stdin=b"hello\n")[1].replace("If you don't see a command prompt, try pressing enter.\n", ""), "hello\n")


def terminal(kubectl):
    """kubectl exec -it on its own pseudo terminal: what is typed arrives, the size does (a moment after the start, so it is awaited), the
    exit code comes back."""
    master, slave = pty.openpty()
    import fcntl
    import struct
    import termios
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 43, 117, 0, 0))
    process = kubectl.start("exec", "-it", "one", "--", "sh", "-c", "until [ \"$(stty size)\" = '43 117' ]; do sleep 0.02; done; stty size; read answer; echo \"got <$answer>\"; tty >/dev/null && exit 5",
                            stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    seen, typed, deadline = b"", False, time.monotonic() + 60
    while time.monotonic() < deadline:
        if select.select([master], [], [], 0.2)[0]:
            try:
                data = os.read(master, 4096)
            except OSError:
                break
            if not data:
                break
            seen += data
        if b"43 117" in seen and not typed:
            os.write(master, b"a word\r")
            typed = True
        if process.poll() is not None and not select.select([master], [], [], 0)[0]:
            break
    check("exit code of the terminal", process.wait(30), 5)
    os.close(master)
    contains("size", seen, b"43 117")
    contains("typed", seen, b"got <a word>")


def port_forward(kubectl):
    process = kubectl.start("port-forward", "--address=127.0.0.1", "pod/one", ":8080", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    line = process.stdout.readline().decode()
    port = int(re.search(r"127\.0\.0\.1:(\d+) -> 8080", line).group(1))
    for i in range(3):  # several connections through one tunnel
        with socket.create_connection(("127.0.0.1", port), 30) as connection:
            connection.sendall(b"echo %d\n" % i)
            stream = connection.makefile("rb")
            check("port", stream.readline(), b"port 8080\n")
            check("echo", stream.readline(), b"echo %d\n" % i)
            big = os.urandom(1 << 20)
            import threading
            threading.Thread(target=connection.sendall, args=(big,), daemon=True).start()
            check("a megabyte", stream.read(len(big)) == big, True)
    process.terminate()
    process.wait(30)


def main():
    binary, folder = sys.argv[1:3]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    certificates = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    files = {}
    for name, subject in (("kubelet", "/CN=" + NODE), ("client", "/CN=apiserver")):
        files[name] = (os.path.join(folder, name + ".crt"), os.path.join(folder, name + ".key"))
        subprocess.run(certificates + ["-out", files[name][0], "-keyout", files[name][1], "-subj", subject, "-addext",
                                       "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    # Both sides verify each other: the kubelet wants the server's client certificate, the server the kubelet's authority.
    kubelet = FakeKubelet(*files["kubelet"], client_ca=files["client"][0])
    flags = ["--kubelet-client-certificate=" + files["client"][0], "--kubelet-client-key=" + files["client"][1],
             "--kubelet-certificate-authority=" + files["kubelet"][0], "--kubelet-preferred-address-types=ExternalIP,InternalIP"]
    server = Server(binary, folder, flags, in_memory=True).start()
    gated = Server(binary, os.path.join(folder, "gated"), flags + ["--feature-gates=PodLogsQuerySplitStreams=true"], in_memory=True).start()
    try:
        client = Client(server)
        make_objects(client, kubelet.port)
        raw_requests(client, kubelet)
        make_objects(Client(gated), kubelet.port)
        log_streams(Client(gated), kubelet)
        kubectl_binary = find_kubectl()
        if kubectl_binary:
            for websockets in (True, False):
                kubectl = Kubectl(kubectl_binary, server, websockets)
                follow(kubectl, kubelet)
                commands(kubectl)
                terminal(kubectl)
                port_forward(kubectl)
        else:
            print("no kubectl: its part is skipped")
        assert server.process.poll() is None, "the server ended"
    finally:
        server.stop()
        gated.stop()
        kubelet.stop()
    print("%d checks passed" % checks)


if __name__ == "__main__":
    main()
