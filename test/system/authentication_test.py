#!/usr/bin/env python3
"""Tokens of every kind through every way in, at -v=10. usage: authentication_test.py KEELSON WORK_FOLDER OTLP_COLLECTOR

No token may show in the log, in /metrics, in exported spans or in an answer that did not ask for it. An OIDC issuer, a token webhook and an authorizer
webhook that hang do not delay requests with other credentials.
"""
import base64
import http.client
import json
import os
import shutil
import socket
import ssl
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, Server  # noqa: E402
from tracing_test import Collector  # noqa: E402

CANARY = "c4n4ry"


def expect(condition, text):
    if not condition:
        raise AssertionError(text)


class Hole:
    """Takes connections and never says a word."""

    def __init__(self):
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(64)
        self.port = self.listener.getsockname()[1]
        self.held = []
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            self.held.append(self.listener.accept()[0])


def call(server, headers, path="/api/v1/namespaces/default", method="GET", body=None):
    context = ssl.create_default_context(cafile=os.path.join(server.pki, "ca.crt"))
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=60)
    connection.request(method, path, body=body, headers=headers)
    response = connection.getresponse()
    text = response.read().decode(errors="replace")
    connection.close()
    return response.status, text


def bearer(token):
    return {"Authorization": "Bearer " + token}


def jwt(claims):
    encode = lambda value: base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
    return "%s.%s.%s" % (encode({"alg": "RS256", "kid": CANARY}), encode(dict(claims, canary=CANARY)), encode(CANARY))


def main():
    binary, folder = sys.argv[1], sys.argv[2]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    hole = Hole()
    tokens = os.path.join(folder, "tokens.csv")
    static = CANARY + "-static"
    with open(tokens, "w") as f:
        f.write('%s,alice,u1,"system:masters"\n' % static)
    hook = os.path.join(folder, "hook.kubeconfig")
    with open(hook, "w") as f:
        json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                   "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:%d" % hole.port}}],
                   "users": [{"name": "u", "user": {"token": CANARY + "-hook"}}]}, f)
    issuer = "https://127.0.0.1:%d" % hole.port
    collector = Collector(sys.argv[3])
    tracing = os.path.join(folder, "tracing.yaml")
    with open(tracing, "w") as f:
        f.write("apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: 127.0.0.1:%d\nsamplingRatePerMillion: 1000000\n" % collector.port)
    server = Server(binary, os.path.join(folder, "server"),
                    ["-v=10", "--tracing-config-file=" + tracing, "--token-auth-file=" + tokens, "--enable-bootstrap-token-auth=true", "--oidc-issuer-url=" + issuer, "--oidc-client-id=c",
                     "--authentication-token-webhook-config-file=" + hook]).start()
    try:
        admin = Client(server)
        secret = "0123456789c4n4ry"
        admin.must(201, "POST", "/api/v1/namespaces/kube-system/secrets", {
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bootstrap-token-abcdef"}, "type": "bootstrap.kubernetes.io/token",
            "stringData": {"token-id": "abcdef", "token-secret": secret, "usage-bootstrap-authentication": "true"}})
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": static}}
        admin.must(201, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
        expect(call(server, bearer(static))[0] == 200, "the static token is good")
        begin = time.monotonic()
        status = None
        while status != 403 and time.monotonic() - begin < 10:  # known, and without rights
            status = call(server, bearer("abcdef." + secret))[0]
        expect(status == 403, "the bootstrap token is good: %s" % status)
        protocol = base64.urlsafe_b64encode(static.encode()).rstrip(b"=").decode()
        upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
                   "Sec-WebSocket-Protocol": "base64url.bearer.authorization.k8s.io.%s, v5.channel.k8s.io" % protocol}
        expect(call(server, upgrade)[0] != 401, "the token of a WebSocket is good")

        slow = [jwt({"iss": issuer, "sub": "a"}), CANARY + "-nobody", jwt({"iss": "https://kubernetes.default.svc"})]
        threads = [threading.Thread(target=lambda token: call(server, bearer(token)), args=(token,), daemon=True) for token in slow * 5]
        for thread in threads:
            thread.start()
        for _ in range(20):
            begin = time.monotonic()
            expect(call(server, bearer(static))[0] == 200, "the static token is good while others wait")
            admin.must(200, "GET", "/api/v1/namespaces/default")
            expect(time.monotonic() - begin < 5, "others wait for the issuer and the webhook, too")
        _, metrics = admin.request("GET", "/metrics")
        expect(CANARY.encode() not in metrics, "/metrics has a token")
    finally:
        server.stop(90)  # requests that wait for the hole may end first
    with open(server.log_path, errors="replace") as f:
        lines = [line for line in f if CANARY in line or protocol in line]
    expect(not lines, "the log has tokens:\n" + "".join(lines[:10]))
    spans = collector.end()
    exported = b"".join(bytes.fromhex(line.strip()) for line in collector.lines)
    expect(len(spans) > 20, "requests make spans: %d" % len(spans))
    expect(CANARY.encode() not in exported and protocol.encode() not in exported, "spans have tokens")
    hung_authorizer(binary, folder, tokens, hook)
    print("authentication_test: fine")


def hung_authorizer(binary, folder, tokens, hook):
    """A webhook authorizer that never answers delays only requests that no earlier authorizer allows."""
    with open(tokens, "a") as f:
        f.write("%s-bob,bob,u2\n" % CANARY)
    server = Server(binary, os.path.join(folder, "authorizer"), ["--token-auth-file=" + tokens, "--authorization-mode=Node,RBAC,Webhook",
                                                                 "--authorization-webhook-config-file=" + hook]).start()
    try:
        admin = Client(server)
        waiting = [threading.Thread(target=ignore, args=(server,), daemon=True) for _ in range(20)]
        for thread in waiting:
            thread.start()
        for _ in range(20):
            begin = time.monotonic()
            expect(call(server, bearer(CANARY + "-static"))[0] == 200, "RBAC allows while others wait for the webhook")
            admin.must(200, "GET", "/api/v1/namespaces/default")
            expect(time.monotonic() - begin < 5, "others wait for the authorizer, too")
        expect(all(thread.is_alive() for thread in waiting), "the webhook was asked about bob")
    finally:
        server.stop(90)


def ignore(server):
    try:
        call(server, bearer(CANARY + "-bob"))
    except (OSError, http.client.HTTPException):
        pass


if __name__ == "__main__":
    main()
