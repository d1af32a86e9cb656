#!/usr/bin/env python3
"""OIDC issuers that hang and lie. usage: issuer_faults_test.py KEELSON WORK_FOLDER

Each issuer is a path on one HTTPS server and does one thing wrong: another issuer in its discovery document, endless documents, trickles, endless redirects,
garbage, keys that are none. While those that hang have not been let go, tokens of a good issuer, static tokens and certificates are served; no redirect is
followed; memory stays bounded; a flood of unknown key ids makes few fetches. Nothing here measures time: requests that must not wait are done while the
others still wait.
"""
import base64
import http.client
import http.server
import json
import os
import shutil
import ssl
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, Server, memory_bound  # noqa: E402
from webhook_peer import make_certificate  # noqa: E402

STATIC = "static-token"
FLOOD = 300
KEY_FETCHES_MAX = 10       # Provider::kFetchBurst
KEY_FETCH_INTERVAL = 10.0  # Provider::kFetchInterval, seconds
MEMORY_MORE_KB = memory_bound(64 * 1024)
LYING = ["wrong", "endless", "trickle", "redirect", "text"]                                  # in their discovery documents
KEYS = ["keys-endless", "keys-trickle", "keys-redirect", "keys-text", "keys-hang", "keys-bad", "flood"]  # in their key sets
HANG = {"trickle", "keys-trickle", "keys-hang"}
BAD_KEYS = {"keys": [{"kty": "EC", "crv": "P-256", "x": "AAAA", "y": "AAAA", "kid": "k", "alg": "RS256"}, {"kty": "oct", "k": "AAAA", "kid": "k"},
                     {"kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": "k"}, {"kty": 7, "kid": ["k"]}, "key", None]}


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class SigningKey:
    def __init__(self, folder):
        self.path = os.path.join(folder, "issuer.key")
        subprocess.run(["openssl", "genrsa", "-out", self.path, "2048"], check=True, capture_output=True)
        text = subprocess.run(["openssl", "rsa", "-in", self.path, "-noout", "-modulus"], check=True, capture_output=True, text=True).stdout
        modulus = bytes.fromhex(text.strip().split("=")[1])
        self.set = {"keys": [{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "k", "n": encode(modulus), "e": "AQAB"}]}

    def token(self, issuer, kid="k"):
        claims = {"iss": issuer, "aud": "client", "sub": "jane", "exp": int(time.time()) + 3600}
        text = encode(json.dumps({"alg": "RS256", "kid": kid}).encode()) + "." + encode(json.dumps(claims).encode())
        signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.path], input=text.encode(), check=True, capture_output=True).stdout
        return text + "." + encode(signature)


class Issuers:
    """https://127.0.0.1:PORT/NAME; counts requests by path."""

    def __init__(self, folder, key_set):
        cert, key = make_certificate(folder)
        with open(cert) as f:
            self.ca = f.read()
        self.key_set, self.lock, self.asked, self.released = key_set, threading.Lock(), {}, threading.Event()
        issuers = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                with issuers.lock:
                    issuers.asked[self.path] = issuers.asked.get(self.path, 0) + 1
                try:
                    issuers.answer(self)
                except OSError:
                    self.close_connection = True  # The server under test has ended the connection.

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.base = "https://127.0.0.1:%d/" % self.server.server_address[1]

    def answer(self, request):
        name, _, document = request.path[1:].partition("/")
        fault = name[5:] if name.startswith("keys-") else name
        if (document == "keys") != name.startswith("keys-"):  # the other document of this issuer is good
            fault = "good"
        if fault in ("good", "flood", "wrong", "bad"):
            return self.send(request, self.document(name, document))
        if fault == "text":
            return self.send(request, b"<html>not what was asked for</html>")
        if fault == "hang":
            return self.released.wait()
        if fault == "redirect":
            request.send_response(302)
            request.send_header("Location", self.base + name + "/%d" % time.monotonic_ns())
            request.send_header("Content-Length", "0")
            return request.end_headers()
        request.send_response(200)
        request.send_header("Connection", "close")
        request.end_headers()
        request.close_connection = True
        if fault == "endless":
            request.wfile.write(b'{"issuer":"')
            while True:
                request.wfile.write(b"x" * 65536)
        while not self.released.wait(0.05):
            request.wfile.write(b" ")

    def document(self, name, document):
        if document == "keys":
            keys = BAD_KEYS if name == "keys-bad" else {"keys": []} if name == "flood" else self.key_set
            return json.dumps(keys).encode()
        said = "https://somebody.else" if name == "wrong" else self.base + name
        return json.dumps({"issuer": said, "jwks_uri": self.base + name + "/keys"}).encode()

    def send(self, request, body):
        request.send_response(200)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def count(self, path):
        with self.lock:
            return self.asked.get("/" + path, 0)

    def close(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()


def call(server, token, timeout=90):
    context = ssl.create_default_context(cafile=os.path.join(server.pki, "ca.crt"))
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=timeout, context=context)
    connection.request("GET", "/api", headers={"Authorization": "Bearer " + token})
    status = connection.getresponse().status
    connection.close()
    return status


def configuration(folder, issuers):
    path = os.path.join(folder, "authentication.json")
    jwt = [{"issuer": {"url": issuers.base + name, "audiences": ["client"], "certificateAuthority": issuers.ca},
            "claimMappings": {"username": {"claim": "sub", "prefix": ""}}} for name in ["good"] + LYING + KEYS]
    with open(path, "w") as f:
        json.dump({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": jwt}, f)
    tokens = os.path.join(folder, "tokens.csv")
    with open(tokens, "w") as f:
        f.write("%s,alice,u1,system:masters\n" % STATIC)
    return ["--authentication-config=" + path, "--token-auth-file=" + tokens]


def until(condition, what):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def check_others(server, admin, token):
    assert call(server, STATIC) == 200, "a static token"
    admin.must(200, "GET", "/api/v1/namespaces/default")
    assert call(server, token) == 200, "a token of the good issuer"


def check_faults(server, admin, issuers, key):
    good = key.token(issuers.base + "good")
    until(lambda: call(server, good) == 200, "the good issuer's tokens are not accepted")
    for name in LYING:
        until(lambda: issuers.count(name + "/.well-known/openid-configuration"), "%s was not asked for its discovery document" % name)
    statuses, threads = {}, {}

    def send(name):
        token = key.token(issuers.base + name)
        threads[name] = threading.Thread(target=lambda: statuses.update({name: call(server, token)}), daemon=True)
        threads[name].start()

    def asked(name):
        """A token that came before its issuer's discovery document was read is refused at once, and sent again."""
        if not issuers.count(name + "/keys") and not threads[name].is_alive():
            send(name)
        return issuers.count(name + "/keys")

    for name in LYING + KEYS:
        send(name)
    waiting = [name for name in KEYS if name in HANG]
    for name in KEYS:
        until(lambda: asked(name), "%s was not asked for its keys" % name)
    for _ in range(10):
        check_others(server, admin, good)
    held = [name for name in waiting if threads[name].is_alive()]
    issuers.released.set()
    for name, thread in threads.items():
        thread.join(90)
        assert statuses.get(name) == 401, "%s: %s" % (name, statuses.get(name))
    assert set(held) == set(waiting), "issuers that hang do not hold their own tokens: %s" % held
    followed = [path for path in issuers.asked if "redirect/" in path and not path.endswith(("openid-configuration", "/keys"))]
    assert not followed, "redirects were followed: %s" % followed


def check_flood(server, admin, issuers, key):
    good, start = key.token(issuers.base + "good"), issuers.count("flood/keys")
    begin = time.monotonic()
    payload, signature = key.token(issuers.base + "flood").split(".")[1:]
    for i in range(FLOOD):
        header = encode(json.dumps({"alg": "RS256", "kid": "unknown-%d" % i}).encode())
        assert call(server, "%s.%s.%s" % (header, payload, signature)) == 401
        if i % 50 == 0:
            check_others(server, admin, good)
    fetches = issuers.count("flood/keys") - start
    most = KEY_FETCHES_MAX + (time.monotonic() - begin) / KEY_FETCH_INTERVAL + 1
    assert fetches <= most, "%d fetches of keys, at most %.0f were to be" % (fetches, most)
    return fetches


def main():
    binary, folder = sys.argv[1], os.path.abspath(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    key = SigningKey(folder)
    issuers = Issuers(folder, key.set)
    server = Server(binary, os.path.join(folder, "server"), configuration(folder, issuers), in_memory=True).start()
    try:
        admin = Client(server)
        memory = server.memory_kb()
        check_faults(server, admin, issuers, key)
        fetches = check_flood(server, admin, issuers, key)
        grown = server.memory_kb() - memory
        assert grown < MEMORY_MORE_KB, "%d KiB more" % grown
        admin.close()
    finally:
        issuers.released.set()
        server.stop(90)
        issuers.close()
    print("issuer faults: fine; %d key fetches for %d unknown key ids, %d KiB more" % (fetches, FLOOD, grown))


if __name__ == "__main__":
    main()
