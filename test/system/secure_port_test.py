#!/usr/bin/env python3
"""The flags of the secure port over real sockets: addresses, sharing, TLS versions and suites, sessions, HTTP/2 limits, GOAWAY; and what is
beside it: the debug socket, DELETE /metrics, the gate APIResponseCompression, client certificates' usages.
usage: secure_port_test.py KEELSON WORK_FOLDER [NAME ...]
"""
import http.client
import os
import socket
import ssl
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import front_test  # noqa: E402
from front_test import Authority, Server, context_with, expect, https  # noqa: E402
from harness import Client, config_map, run_tests  # noqa: E402

MAPS = "/api/v1/namespaces/default/configmaps"


def get(address, port, path="/version", context=None):
    connection = http.client.HTTPSConnection(address, port, timeout=30, context=context or ssl._create_unverified_context())
    connection.request("GET", path)
    return connection.getresponse().status


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(("::1", 0))
        return True
    except OSError:
        return False


def refused(binary, *flags):
    """The last output of a server that does not start."""
    run = subprocess.run([binary, "--data-dir=:memory:"] + list(flags), capture_output=True, text=True, timeout=60)
    expect(run.returncode == 1, "%s: exit code %d" % (flags, run.returncode))
    return run.stderr.strip().splitlines()[-1]


def addresses(binary, folder):
    if not has_ipv6():
        print("addresses: this machine has no IPv6")
        return

    class Six(Server):
        def _wait_ready(self, begin):
            import time
            while time.monotonic() - begin < 60 and self.process.poll() is None:
                try:
                    if get("::1", self.port, "/readyz") == 200:
                        return True
                except OSError:
                    time.sleep(0.02)
            return False

    def reached(server, address):
        try:
            return get(address, server.port) == 200
        except OSError:
            return False

    six = Six(binary, os.path.join(folder, "six"), flags=["--bind-address=::1"]).start()
    expect(reached(six, "::1") and not reached(six, "127.0.0.1"), "bound to ::1")
    six.stop()
    for address in ("::", "0.0.0.0"):
        both = Six(binary, os.path.join(folder, "both" + str(len(address))), flags=["--bind-address=" + address]).start()
        expect(reached(both, "::1") and reached(both, "127.0.0.1"), "bound to %s: both families" % address)
        both.stop()


def sharing(binary, folder):
    first = Server(binary, os.path.join(folder, "first"), flags=["--permit-port-sharing"]).start()
    expect("bind: address already in use" in refused(binary, "--secure-port=%d" % first.port), "a port that is taken")

    class Second(Server):
        def command(self):
            self.port = first.port
            return super().command()

    second = Second(binary, os.path.join(folder, "second"), flags=["--permit-port-sharing"])
    second.process = subprocess.Popen([binary, "--secure-port=%d" % first.port, "--data-dir=" + second.data, "--permit-port-sharing"], stdout=subprocess.DEVNULL,
                                      stderr=open(second.log_path, "ab"))
    front_test.RUNNING.append(second)
    # The kernel spreads connections over both: two different serving certificates answer.
    seen = set()

    def certificates():
        seen.add(ssl.get_server_certificate(("127.0.0.1", first.port)))
        return len(seen) == 2
    front_test.eventually(certificates, "the second server got no connection")
    second.stop()
    first.stop()
    # Connections that wait for their last packets do not keep a port from its next server.
    again = Server(binary, os.path.join(folder, "again"), flags=["--permit-address-sharing"]).start()
    port = again.port
    lingering = socket.create_connection(("127.0.0.1", port))
    again.stop()

    class Same(Server):
        def command(self):
            self.port = port
            return super().command()

    Same(binary, os.path.join(folder, "again"), flags=["--permit-address-sharing"]).start().stop()
    lingering.close()


def versions_and_suites(binary, folder):
    expect("Cipher suite BAD not supported or doesn't exist" in refused(binary, "--tls-cipher-suites=BAD"), "an unknown suite")
    expect('unknown tls version \\"VersionTLS14\\"' in refused(binary, "--tls-min-version=VersionTLS14"), "an unknown version")

    def handshake(server, version, ciphers=None):
        context = ssl._create_unverified_context()
        context.minimum_version = context.maximum_version = version
        if ciphers:
            context.set_ciphers(ciphers)
        try:
            with context.wrap_socket(socket.create_connection(("127.0.0.1", server.port), 30)) as s:
                return s.version(), s.cipher()[0]
        except (ssl.SSLError, ConnectionError):
            return None

    plain = Server(binary, os.path.join(folder, "plain")).start()
    expect(handshake(plain, ssl.TLSVersion.TLSv1_2)[0] == "TLSv1.2" and handshake(plain, ssl.TLSVersion.TLSv1_3)[0] == "TLSv1.3", "versions without flags")
    plain.stop()
    newest = Server(binary, os.path.join(folder, "newest"), flags=["--tls-min-version=VersionTLS13"]).start()
    expect(handshake(newest, ssl.TLSVersion.TLSv1_2) is None and handshake(newest, ssl.TLSVersion.TLSv1_3)[0] == "TLSv1.3", "--tls-min-version=VersionTLS13")
    newest.stop()
    one = Server(binary, os.path.join(folder, "one"), flags=["--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"]).start()
    expect(handshake(one, ssl.TLSVersion.TLSv1_2) == ("TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384"), "the suite that is allowed")
    expect(handshake(one, ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES128-GCM-SHA256") is None, "a suite that is not allowed")
    expect(handshake(one, ssl.TLSVersion.TLSv1_3)[0] == "TLSv1.3", "TLS 1.3's suites are not chosen by the flag")
    one.stop()


def sessions(binary, folder):
    """A client that comes back resumes its session, with the certificate it showed the first time."""
    root = Authority(os.path.join(folder, "clients"), "root")
    direct = root.issue("direct", "/O=system:masters/CN=direct")
    middle = root.issue("middle", "/CN=middle", "basicConstraints=critical,CA:true")
    root.name = "middle"
    leaf = root.issue("leaf", "/O=system:masters/CN=leaf")
    chain = os.path.join(root.folder, "chain.crt")
    with open(chain, "w") as f:
        f.write(open(leaf[0]).read() + open(middle[0]).read())
    server = Server(binary, folder, flags=["--client-ca-file=" + os.path.join(root.folder, "root.crt")])
    server._wait_ready = lambda begin: front_test.eventually(lambda: up(server), "not ready") or True
    server.start()
    # A ticket holds the leaf alone, so who needs an intermediate makes a full handshake again.
    for pair, resumes in ((direct, True), ((chain, leaf[1]), False)):
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = ssl._create_unverified_context()
            context.load_cert_chain(*pair)
            context.minimum_version = context.maximum_version = version
            session = None
            for turn in range(2):
                raw = context.wrap_socket(socket.create_connection(("127.0.0.1", server.port), 30), session=session)
                raw.sendall(b"GET /api/v1/namespaces/default HTTP/1.1\r\nHost: x\r\n\r\n")
                answer = raw.recv(65536)  # a TLS 1.3 ticket comes with it
                what = "%s, %s, turn %d" % (os.path.basename(pair[0]), version.name, turn)
                expect(answer.startswith(b"HTTP/1.1 200"), "%s: %r" % (what, answer[:100]))
                expect(raw.session_reused == (resumes and turn == 1), "%s: %sresumed" % (what, "" if raw.session_reused else "not "))
                session = raw.session
                raw.close()
    server.stop()


class Http2:
    """A connection on which frames are written by hand."""

    def __init__(self, server):
        context = server.context()
        context.check_hostname = False
        context.set_alpn_protocols(["h2"])
        self.socket = context.wrap_socket(socket.create_connection(("127.0.0.1", server.port), 30))
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + self.frame(4, 0, 0))
        self.buffer, self.stream = b"", -1

    @staticmethod
    def frame(kind, flags, stream, payload=b""):
        return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload

    def read(self):
        """(type, flags, payload) of the next frame; None at the end."""
        def fill(count):
            while len(self.buffer) < count:
                more = self.socket.recv(65536)
                if not more:
                    return False
                self.buffer += more
            return True
        if not fill(9):
            return None
        size = int.from_bytes(self.buffer[:3], "big")
        if not fill(9 + size):
            return None
        kind, flags, payload = self.buffer[3], self.buffer[4], self.buffer[9:9 + size]
        self.buffer = self.buffer[9 + size:]
        return kind, flags, payload

    def request(self, path=b"/version"):
        """GET, https, a path and an authority without compression."""
        self.stream += 2
        block = b"\x82\x87" + b"\x04" + bytes([len(path)]) + path + b"\x01\x01x"
        self.socket.sendall(self.frame(1, 5, self.stream, block))


def streams(binary, folder):
    for flags, want in (([], 100), (["--http2-max-streams-per-connection=17"], 17)):
        server = Server(binary, os.path.join(folder, str(want)), flags=flags).start()
        kind, _, payload = Http2(server).read()
        settings = dict(struct.unpack(">HI", payload[i:i + 6]) for i in range(0, len(payload), 6))
        expect(kind == 4 and settings.get(3) == want, "SETTINGS_MAX_CONCURRENT_STREAMS is %s instead of %d" % (settings.get(3), want))
        server.stop()


def goaway(binary, folder):
    """With a chance of 0.02 a connection ends with GOAWAY before its 2,000th request (but once in 10^17), and without an error."""
    server = Server(binary, folder, flags=["--goaway-chance=0.02"]).start()
    connection = Http2(server)
    answered, told = 0, False
    while not told and answered < 2000:
        connection.request()
        done = False
        while not done:
            frame = connection.read()
            expect(frame is not None, "the connection ended without GOAWAY after %d requests" % answered)
            kind, flags, payload = frame
            told = told or kind == 7
            if kind == 7:
                expect(payload[4:8] == b"\0\0\0\0", "GOAWAY with error %r" % payload[4:8])
            # GOAWAY may come after an answer, and then the request behind it gets none.
            done = told or (kind in (0, 1) and flags & 1)
        answered += 1
    expect(told, "no GOAWAY after %d requests" % answered)
    expect("--goaway-chance can not be less than 0 or greater than 0.02" in refused(binary, "--goaway-chance=0.5"), "a chance that is too large")
    server.stop()


def compression(binary, folder):
    """Large answers are gzipped for who accepts that, unless the gate is off."""
    for flags, want in (([], "gzip"), (["--feature-gates=APIResponseCompression=false"], None)):
        server = Server(binary, os.path.join(folder, str(want)), flags=flags).start()
        client = Client(server)
        for i in range(3):
            client.must(201, "POST", MAPS, config_map("large%d" % i, {"key": "v" * 100_000}))
        for path in (MAPS, MAPS + "?pretty=true"):
            client.connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
            response = client.connection.getresponse()
            body = response.read()
            expect(response.status == 200 and response.getheader("Content-Encoding") == want, "%s %s: %s" % (flags, path, response.getheader("Content-Encoding")))
            expect((len(body) > 300_000) == (want is None), "%s: %d bytes" % (flags, len(body)))
        server.stop()


def debug_socket(binary, folder):
    path = os.path.join(folder, "debug.sock")
    server = Server(binary, folder, flags=["--debug-socket-path=" + path]).start()

    def ask(method, target, body=None):
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(path)
        connection.request(method, target, body)
        response = connection.getresponse()
        return response.status, response.read().decode(errors="replace")

    status, text = ask("GET", "/debug/pprof/")
    expect(status == 200 and "profile?seconds=30" in text, text[:200])
    expect(ask("PUT", "/debug/flags/v", "1") == (200, "successfully set klog.logging.verbosity to 1\n"), "the verbosity")
    expect(ask("GET", "/debug/pprof/threads")[0] == 200, "threads")
    expect(ask("GET", "/version")[0] == 404 and ask("GET", "/metrics")[0] == 404, "nothing else is served")
    server.stop()
    off = Server(binary, os.path.join(folder, "off"), flags=["--profiling=false", "--debug-socket-path=" + path + "2"]).start()
    expect(not os.path.exists(path + "2"), "a debug socket without profiling")
    expect(Client(off).request("GET", "/debug/pprof/")[0] == 404, "profiling is off")
    off.stop()


def metrics_reset(binary, folder):
    server = Server(binary, os.path.join(folder, "on")).start()
    client = Client(server)

    def total():
        text = client.request("GET", "/metrics", accept="*/*")[1].decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith("apiserver_request_total{") and 'resource="configmaps"' in line and 'verb="LIST"' in line)

    before = total()
    for _ in range(5):
        client.must(200, "GET", MAPS)
    expect(total() == before + 5, "five lists are counted")
    expect(client.request("DELETE", "/metrics") == (200, b"metrics reset\n"), "DELETE /metrics")
    expect(total() == 0, "after the reset")
    client.must(200, "GET", MAPS)
    expect(total() == 1, "counting goes on")
    server.stop()
    off = Server(binary, os.path.join(folder, "off"), flags=["--profiling=false"]).start()
    expect(b"# HELP" in Client(off).request("DELETE", "/metrics")[1], "without profiling there is no reset")
    off.stop()


def certificate_usages(binary, folder):
    """Accepted extended key usages; the rows were verified on kube-apiserver."""
    clients = Authority(os.path.join(folder, "clients"), "clients")
    server = Server(binary, folder, flags=["--client-ca-file=" + clients.crt])
    server._wait_ready = lambda begin: front_test.eventually(lambda: up(server), "not ready") or True
    server.start()
    for name, extension, want in (("none", "subjectAltName=DNS:x", 200), ("client", "extendedKeyUsage=clientAuth", 200), ("any", "extendedKeyUsage=anyExtendedKeyUsage", 200),
                                  ("server", "extendedKeyUsage=serverAuth", 401), ("code", "extendedKeyUsage=codeSigning", 401), ("signs", "keyUsage=critical,keyCertSign", 200)):
        pair = clients.issue(name, "/O=system:masters/CN=" + name, extension)
        connection = https(server, context_with(os.path.join(server.data, "pki", "ca.crt"), pair))
        connection.request("GET", "/api/v1/namespaces/default")
        got = connection.getresponse().status
        expect(got == want, "%s: %d instead of %d" % (extension, got, want))
    server.stop()


def up(server):
    try:
        return get("127.0.0.1", server.port, "/readyz") == 200
    except OSError:
        return False


TESTS = [addresses, sharing, versions_and_suites, sessions, streams, goaway, compression, debug_socket, metrics_reset, certificate_usages]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS, front_test.RUNNING))
