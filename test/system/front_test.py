#!/usr/bin/env python3
"""The network front of the whole server: watches over WebSocket, front proxies, files that change, the graceful end.
usage: front_test.py KEELSON WORK_FOLDER [NAME ...]
"""
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, Server, config_map, run_tests  # noqa: E402

MAPS = "/api/v1/namespaces/default/configmaps"
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


def expect(condition, text):
    if not condition:
        raise AssertionError(text)


def eventually(condition, text, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError(text)


RUNNING = []


class Server(Server):  # noqa: F811
    """One that is ended when its test fails."""

    def start(self):
        RUNNING.append(self)
        return super().start()


class Raw:
    """One TLS connection on which everything is written by hand."""

    def __init__(self, server, context=None):
        context = context or server.context()
        self.socket = context.wrap_socket(socket.create_connection(("127.0.0.1", server.port), 30), server_hostname="127.0.0.1")
        self.buffer = b""

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode())

    def read(self, count):
        while len(self.buffer) < count:
            more = self.socket.recv(65536)
            if not more:
                raise AssertionError("the connection ended after %r" % self.buffer[:200])
            self.buffer += more
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def head(self):
        while b"\r\n\r\n" not in self.buffer:
            more = self.socket.recv(65536)
            if not more:
                break
            self.buffer += more
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        return head.decode()

    def at_end(self):
        return self.buffer == b"" and self.socket.recv(1) == b""

    def close(self):
        self.socket.close()


class WebSocket(Raw):
    def __init__(self, server, path, headers=("Origin: https://127.0.0.1",)):
        super().__init__(server)
        lines = ["GET %s HTTP/1.1" % path, "Host: x", "Connection: keep-alive, Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="] + list(headers)
        self.send("\r\n".join(lines) + "\r\n\r\n")
        self.answer = self.head()
        self.status = int(self.answer.split()[1])

    def message(self):
        first, second = self.read(2)
        expect(first & 0x80, "a fragment")
        expect(not second & 0x80, "a server masks nothing")
        size = second & 0x7F
        if size == 126:
            size = struct.unpack(">H", self.read(2))[0]
        elif size == 127:
            size = struct.unpack(">Q", self.read(8))[0]
        return first & 0x0F, self.read(size)

    def frame(self, opcode, payload=b""):
        mask = b"\x01\x02\x03\x04"
        self.send(bytes([0x80 | opcode, 0x80 | len(payload)]) + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(payload)))


def websocket_watch(binary, folder):
    server = Server(binary, folder).start()
    client = Client(server)
    revision = client.must(200, "GET", MAPS)["metadata"]["resourceVersion"]
    path = "%s?watch=1&resourceVersion=%s" % (MAPS, revision)

    # Text messages: the events of a plain watch, byte for byte.
    web = WebSocket(server, path)
    expect(web.status == 101, web.answer)
    expect(web.answer.lower().split("\r\n")[1:] == ["upgrade: websocket", "connection: upgrade", "sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="],
           "other headers than the handshake's: " + web.answer)
    plain = Raw(server)
    plain.send("GET %s&timeoutSeconds=2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % path)
    client.must(201, "POST", MAPS, config_map("web", {"large": "x" * 70000}))
    client.must(200, "PUT", MAPS + "/web", config_map("web", {"v": "2"}))
    client.must(200, "DELETE", MAPS + "/web")
    events = [web.message() for _ in range(3)]
    expect(all(opcode == TEXT and data.endswith(b"}\n") for opcode, data in events), "not text: %r" % [e[0] for e in events])
    parsed = [json.loads(data) for _, data in events]
    expect([e["type"] for e in parsed] == ["ADDED", "MODIFIED", "DELETED"], str(parsed)[:300])
    expect("200 OK" in plain.head(), "no plain watch")
    chunks = b""
    while True:
        size = b""
        while not size.endswith(b"\r\n"):
            size += plain.read(1)
        chunk = plain.read(int(size, 16) + 2)[:-2]
        if not chunk:
            break
        chunks += chunk
    expect(chunks == b"".join(data for _, data in events), "a WebSocket's events differ from a plain watch's")

    # Control frames are answered, data is ignored, a close is completed.
    web.frame(PING, b"there?")
    expect(web.message() == (PONG, b"there?"), "no pong")
    web.frame(TEXT, b"ignored")
    web.frame(CLOSE, struct.pack(">H", 1000))
    expect(web.message() == (CLOSE, struct.pack(">H", 1000)), "no close")
    expect(web.at_end(), "the connection goes on after the close")
    web.close()

    # Binary messages: one WatchEvent each, without the length prefix of a plain watch.
    web = WebSocket(server, path, ("Origin: https://x", "Accept: application/vnd.kubernetes.protobuf;stream=watch", "Sec-WebSocket-Protocol: one"))
    expect(web.status == 101 and "Sec-WebSocket-Protocol: one" in web.answer, web.answer)
    opcode, data = web.message()
    expect(opcode == BINARY and data.startswith(b"\n\x05ADDED\x12") and b"k8s\0" in data[:20], "%d %r" % (opcode, data[:60]))
    web.close()

    # The time-out of the watch is a normal close.
    web = WebSocket(server, MAPS + "?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dnobody")
    expect(web.message() == (CLOSE, struct.pack(">H", 1000)), "no close after timeoutSeconds")
    web.close()

    for name, status, target, headers in (
            ("no origin", 403, path, ()), ("origin null", 403, path, ("Origin: null",)), ("two protocols", 400, path, ("Origin: https://x", "Sec-WebSocket-Protocol: a, b")),
            ("bad revision", 500, MAPS + "?watch=1&resourceVersion=abc", ("Origin: https://x",)),
            ("YAML", 406, path, ("Origin: https://x", "Accept: application/yaml")), ("no watch", 200, MAPS, ("Origin: https://x",))):
        web = WebSocket(server, target, headers)
        expect(web.status == status, "%s: %s" % (name, web.answer))
        web.close()

    # A client that leaves is noticed: its watch is over.
    web = WebSocket(server, path)
    web.message()
    gauge = 'apiserver_longrunning_requests{component="apiserver",group="",resource="configmaps",scope="namespace",subresource="",verb="WATCH",version="v1"} '

    def watches():
        text = client.request("GET", "/metrics", accept="*/*")[1].decode()
        return sum(int(float(line[len(gauge):])) for line in text.splitlines() if line.startswith(gauge))

    eventually(lambda: watches() == 1, "the watch is not counted")
    web.close()
    eventually(lambda: watches() == 0, "the watch goes on without its client")
    server.stop()


def shutdown_sequence(binary, folder):
    """readyz fails at once, requests are served through the delay, running ones are finished, then the listener is gone."""
    server = Server(binary, folder, flags=["-v=1", "--shutdown-delay-duration=3s"]).start()
    client = Client(server)
    server.process.send_signal(signal.SIGTERM)
    eventually(lambda: client.request("GET", "/readyz")[0] == 500, "readyz does not fail")
    expect(client.request("GET", "/livez")[0] == 200, "livez fails")
    client.must(201, "POST", MAPS, config_map("late", {}))
    fresh = Client(server)
    fresh.must(200, "GET", MAPS + "/late")
    # A request that is under way when the end comes: its body is complete only after the delay.
    slow = Raw(server)
    body = json.dumps(config_map("slow", {}))
    slow.send("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (MAPS, len(body), body[:10]))
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", server.port), 1).close()
        except OSError:
            break
        time.sleep(0.05)
    slow.send(body[10:])
    expect(" 201 " in slow.head() + " ", "the request under way was not finished")
    slow.close()
    expect(server.process.wait(20) == 0, "exit status %d" % server.process.returncode)
    with open(server.log_path) as log:
        names = [line.split('name="')[1].split('"')[0] for line in log if "[graceful-termination]" in line and 'name="' in line]
    wanted = ["ShutdownInitiated", "AfterShutdownDelayDuration", "NotAcceptingNewRequest", "InFlightRequestsDrained", "HTTPServerStoppedListening"]
    expect([n for n in names if n != "PreShutdownHooksStopped"] == wanted, "events: %s" % names)
    expect(names.index("PreShutdownHooksStopped") < names.index("NotAcceptingNewRequest"), "events: %s" % names)


def shutdown_watches(binary, folder):
    """With a grace period every watch ends properly; meanwhile new requests get Retry-After."""
    server = Server(binary, folder, flags=["-v=1", "--shutdown-send-retry-after", "--shutdown-watch-termination-grace-period=20s"]).start()
    context = server.context()
    plain, web = [], []
    for _ in range(20):
        connection = Raw(server, context)
        connection.send("GET %s?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n" % MAPS)
        expect("200 OK" in connection.head(), "no watch")
        plain.append(connection)
        web.append(WebSocket(server, MAPS + "?watch=1"))
    hold = Raw(server, context)
    body = json.dumps(config_map("hold", {}))
    hold.send("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (MAPS, len(body), body[:10]))
    probe = Client(server, context=context)
    eventually(lambda: b'apiserver_current_inflight_requests{request_kind="mutating"} 1' in probe.request("GET", "/metrics", accept="*/*")[1], "the request is not taken")
    server.process.send_signal(signal.SIGTERM)
    answer = []

    def refused():
        connection = Raw(server, context)
        connection.send("GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % MAPS)
        head = connection.head()
        answer[:] = [head]
        connection.close()
        return " 429 " in head

    eventually(refused, "new requests are not refused")
    expect("Retry-After: 5" in answer[0] and "Connection: close" in answer[0], answer[0])
    for connection in plain:
        rest = b""
        while not rest.endswith(b"0\r\n\r\n"):
            rest += connection.read(1)
        connection.close()
    for connection in web:
        opcode = None
        while opcode != CLOSE:
            opcode, _ = connection.message()
        connection.close()
    hold.send(body[10:])
    head = hold.head()
    expect(" 201 " in head + " ", "the held request was not finished: " + head)
    hold.close()
    expect(server.process.wait(30) == 0, "exit status %d" % server.process.returncode)
    with open(server.log_path) as log:
        text = log.read()
    expect("activeWatchesBefore=40 activeWatchesAfter=0" in text, "watches were not drained: " + text[-600:])


class Authority:
    """A throw-away CA in a folder."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        os.makedirs(folder, exist_ok=True)
        self.run("req", "-x509", *self.key, "-keyout", name + ".key", "-out", name + ".crt", "-days", "2", "-subj", "/CN=" + name)
        self.crt = os.path.join(folder, name + ".crt")

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")

    def run(self, *arguments):
        subprocess.run(("openssl",) + arguments, cwd=self.folder, check=True, capture_output=True)

    def issue(self, name, subject, extension="extendedKeyUsage=clientAuth"):
        with open(os.path.join(self.folder, name + ".ext"), "w") as f:
            f.write(extension + "\n")
        self.run("req", *self.key, "-keyout", name + ".key", "-out", name + ".csr", "-subj", subject)
        self.run("x509", "-req", "-in", name + ".csr", "-CA", self.name + ".crt", "-CAkey", self.name + ".key", "-CAcreateserial", "-days", "2", "-extfile",
                 name + ".ext", "-out", name + ".crt")
        return os.path.join(self.folder, name + ".crt"), os.path.join(self.folder, name + ".key")


def context_with(server_ca, pair=None):
    context = ssl.create_default_context(cafile=server_ca)
    context.check_hostname = False
    if pair:
        context.load_cert_chain(*pair)
    return context


def who_am_i(connection, headers=None):
    body = json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    all_headers = {"Content-Type": "application/json"}
    connection.putrequest("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews")
    for name, value in list(all_headers.items()) + list(headers or []) + [("Content-Length", str(len(body)))]:
        connection.putheader(name, value)
    connection.endheaders(body.encode())
    response = connection.getresponse()
    data = json.loads(response.read())
    return response.status, data.get("status", {}).get("userInfo") if response.status == 201 else data


def https(server, context):
    return http.client.HTTPSConnection("127.0.0.1", server.port, timeout=30, context=context)


def request_header(binary, folder):
    """Only a front proxy can name the user."""
    proxies = Authority(os.path.join(folder, "proxies"), "proxy-ca")
    proxy = proxies.issue("proxy", "/CN=front-proxy")
    other = proxies.issue("other", "/CN=somebody-else")
    server = Server(binary, folder, flags=[
        "--requestheader-client-ca-file=" + proxies.crt, "--requestheader-allowed-names=front-proxy", "--requestheader-username-headers=X-Remote-User,X-Other-User",
        "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-", "--requestheader-uid-headers=X-Remote-Uid"]).start()
    server_ca = os.path.join(server.pki, "ca.crt")
    named = [("X-Remote-User", "alice"), ("X-Remote-Uid", "u-1"), ("X-Remote-Group", "dev"), ("x-remote-group", "ops"), ("X-Remote-Extra-Scopes%2Fa", "one"),
             ("X-Remote-Extra-scopes%2fa", "two")]
    status, user = who_am_i(https(server, context_with(server_ca, proxy)), named)
    expect(status == 201, "%d %s" % (status, user))
    expect(user == {"username": "alice", "uid": "u-1", "groups": ["dev", "ops", "system:authenticated"], "extra": {"scopes/a": ["one", "two"]}}, str(user))
    status, user = who_am_i(https(server, context_with(server_ca, proxy)), [("X-Other-User", "bob")])
    expect(status == 201 and user["username"] == "bob" and user["groups"] == ["system:authenticated"], str(user))
    # The proxy itself, without a name in the headers, is not authenticated.
    status, _ = who_am_i(https(server, context_with(server_ca, proxy)))
    expect(status == 401, "a proxy that names nobody got %d" % status)
    status, _ = who_am_i(https(server, context_with(server_ca, other)), named)
    expect(status == 401, "a certificate of another name got %d" % status)
    # The headers of a client with its own certificate, or with none, mean nothing.
    status, user = who_am_i(https(server, server.context()), named)
    expect(status == 201 and user["username"] == "admin", str(user))
    status, _ = who_am_i(https(server, context_with(server_ca)), named)
    expect(status in (401, 403), "an anonymous client got %d" % status)
    # The config map by which other servers verify such proxies.
    info = Client(server).must(200, "GET", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication")["data"]
    expect(info["requestheader-allowed-names"] == '["front-proxy"]' and "BEGIN CERTIFICATE" in info["requestheader-client-ca-file"], str(info))
    server.stop()


def reload_files(binary, folder):
    """Authorities and serving certificates are taken over when their files change; connections stay."""
    pki = os.path.join(folder, "pki")
    first, second = Authority(os.path.join(folder, "first"), "first-ca"), Authority(os.path.join(folder, "second"), "second-ca")
    alice, bob = first.issue("alice", "/O=system:masters/CN=alice"), second.issue("bob", "/O=system:masters/CN=bob")
    names = "subjectAltName=IP:127.0.0.1,DNS:localhost"
    old, new = first.issue("old", "/CN=old", names), second.issue("new", "/CN=new", names)
    sni_old, sni_new = first.issue("sni-old", "/CN=sni-old", "subjectAltName=DNS:other.test"), second.issue("sni-new", "/CN=sni-new", "subjectAltName=DNS:other.test")
    os.makedirs(pki, exist_ok=True)
    at = lambda name: os.path.join(pki, name)  # noqa: E731

    def install(pair, name):
        for source, suffix in zip(pair, (".crt", ".key")):
            shutil.copy(source, at(name + suffix + ".tmp"))
            os.rename(at(name + suffix + ".tmp"), at(name + suffix))

    install(old, "serving")
    install(sni_old, "sni")
    shutil.copy(first.crt, at("ca.crt"))
    binary_server = Server(binary, folder, flags=["--tls-cert-file=" + at("serving.crt"), "--tls-private-key-file=" + at("serving.key"),
                                                  "--client-ca-file=" + at("ca.crt"), "--tls-sni-cert-key=%s,%s" % (at("sni.crt"), at("sni.key"))])
    shutil.copy(alice[0], at("admin.crt"))
    shutil.copy(alice[1], at("admin.key"))
    binary_server._find_pki = lambda: pki
    server = binary_server.start()
    both = os.path.join(folder, "both.crt")
    with open(both, "w") as f:
        f.write(open(first.crt).read() + open(second.crt).read())

    def common_name(server_name):
        context = context_with(both)
        context.check_hostname = False
        with context.wrap_socket(socket.create_connection(("127.0.0.1", server.port), 10), server_hostname=server_name) as connection:
            return dict(item[0] for item in connection.getpeercert()["subject"])["commonName"]

    expect(common_name("localhost") == "old" and common_name("other.test") == "sni-old", "first certificates")
    kept = https(server, context_with(both, alice))
    expect(who_am_i(kept)[1]["username"] == "alice", "alice is not known")
    expect(who_am_i(https(server, context_with(both, bob)))[0] == 401, "bob is known too early")

    # A broken file changes nothing.
    with open(at("ca.crt"), "w") as f:
        f.write("no certificate\n")
    time.sleep(5)
    expect(who_am_i(https(server, context_with(both, alice)))[0] == 201, "a broken file was taken over")

    install(new, "serving")
    install(sni_new, "sni")
    shutil.copy(second.crt, at("ca.crt.tmp"))
    os.rename(at("ca.crt.tmp"), at("ca.crt"))
    eventually(lambda: common_name("localhost") == "new" and common_name("other.test") == "sni-new", "the new serving certificates are not used")
    eventually(lambda: who_am_i(https(server, context_with(both, bob)))[0] == 201, "bob does not become known")
    expect(who_am_i(https(server, context_with(both, alice)))[0] == 401, "alice is still known")
    # The connection of before is still there; its certificate is judged anew.
    local = kept.sock
    eventually(lambda: who_am_i(kept)[0] == 401, "the certificate of an open connection is believed for ever", 30)
    expect(kept.sock is local, "the connection was closed")
    kept.close()
    admin = https(server, context_with(both, bob))

    def told():
        admin.request("GET", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication")
        return "BEGIN CERTIFICATE" in (text := json.loads(admin.getresponse().read())["data"]["client-ca-file"]) and open(second.crt).read().strip() in text

    eventually(told, "the new authority is not told to others")
    server.process.terminate()
    expect(server.process.wait(30) == 0, "exit status")


def slow_trace(binary, folder):
    """A request of more than half a second is logged with its steps."""
    server = Server(binary, folder, flags=["-v=2"]).start()

    def traces():
        with open(server.log_path) as log:
            return [line for line in log if "Trace[" in line and "the-id" in line]

    def create(name, pause):
        slow = Raw(server)
        body = json.dumps(config_map(name, {}))
        slow.send("POST %s HTTP/1.1\r\nHost: x\r\nUser-Agent: tester\r\nAccept: application/json\r\nAudit-ID: the-id\r\nContent-Type: application/json\r\n"
                  "Content-Length: %d\r\n\r\n%s" % (MAPS, len(body), body[:10]))
        time.sleep(pause)
        slow.send(body[10:])
        expect(" 201 " in slow.head() + " ", "not created")
        return body

    # The server's clock begins when it has read the head, which a busy machine delays: a longer pause, then.
    for pause in (0.7, 3, 12):
        body = create("slow-%d" % pause, pause)
        end = time.monotonic() + 3  # the trace is written after the answer
        while not traces() and time.monotonic() < end:
            time.sleep(0.01)
        if traces():
            break
    expect(len(traces()) >= 1, "no trace")
    line = traces()[0]
    wanted = ('"Create" accept:application/json,audit-id:the-id,client:127.0.0.1,api-group:,api-version:v1,name:,subresource:,namespace:default,protocol:HTTP/1.1,'
              "resource:configmaps,scope:resource,url:" + MAPS + ",user-agent:tester,verb:POST (")
    expect(wanted in line and "(total time: " in line, line)
    with open(server.log_path) as log:
        text = log.read()
    number = line.split("Trace[")[1].split("]")[0]
    steps = [part for part in text.splitlines() if part.startswith("Trace[%s]: ---" % number)]
    expect(len(steps) >= 1 and '---"limitedReadBody succeeded" len:%d ' % len(body) in steps[0], str(steps))
    expect("Trace[%s]: [" % number in text and "] END" in text, "no end")
    server.stop()


TESTS = [websocket_watch, shutdown_sequence, shutdown_watches, request_header, reload_files, slow_trace]


if __name__ == "__main__":
    sys.exit(run_tests(TESTS, RUNNING))
