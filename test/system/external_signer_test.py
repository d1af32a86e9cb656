#!/usr/bin/env python3
"""Service account tokens of an external signer. usage: external_signer_test.py KEELSON WORK_FOLDER EXTERNAL_JWT_TEST_SIGNER

Tokens of the signer's key are issued, accepted and reviewed; a rotated key is found by its id; discovery documents and metrics follow; failures of the
signer have upstream's texts; wrong limits end the start; a signer that hangs does not delay requests with other credentials.
"""
import base64
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, Server, free_port  # noqa: E402

TOKEN = "/api/v1/namespaces/default/serviceaccounts/robot/token"


class Signer:
    def __init__(self, binary, socket):
        if os.path.exists(socket):
            os.remove(socket)
        self.process = subprocess.Popen([binary, socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "serving\n"

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def fetches(self):
        return int(self.tell("counts").split()[1])

    def stop(self):
        self.process.stdin.close()
        self.process.wait(20)


class Bearer:
    """One connection with a bearer token, without a certificate."""

    def __init__(self, server, token, timeout=60):
        import ssl
        context = ssl.create_default_context(cafile=os.path.join(server.pki, "ca.crt"))
        self.connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=timeout, context=context)
        self.token = token

    def get(self, path):
        self.connection.request("GET", path, headers={"Authorization": "Bearer " + self.token})
        response = self.connection.getresponse()
        response.read()
        return response.status


def issue(client, expected=201, **spec):
    answer = client.must(expected, "POST", TOKEN, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
    return answer["status"]["token"] if expected == 201 else answer["message"]


def part(token, index):
    text = token.split(".")[index]
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def review(client, token):
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    return client.must(201, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", body)["status"]


def refused_start(binary, folder, flags):
    """The error with which a start ends."""
    command = [binary, "--secure-port=%d" % free_port(), "--data-dir=" + os.path.join(folder, "refused"), "--embedded-controllers=off"] + flags
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    assert ended.returncode != 0
    return ended.stdout


def check_start_errors(binary, folder, signer, flags):
    signer.tell("max 300")
    text = refused_start(binary, folder, flags)
    assert "max token life supported by external-jwt-signer (300s) is less than acceptable (min 600s)" in text, text
    signer.tell("max 7200")
    text = refused_start(binary, folder, flags + ["--service-account-max-token-expiration=3h"])
    assert ("service-account-max-token-expiration cannot be set longer than the token expiration supported by service-account-signing-endpoint: "
            "3h0m0s > 2h0m0s") in text, text
    signer.tell("fail")
    text = refused_start(binary, folder, flags)
    assert ("while setting up external-jwt-signer: while initially filling key cache: while performing initial cache fill: while fetching token "
            "verification keys: while getting externally supported jwt signing keys: rpc error: code = Unavailable desc = told to fail") in text, text
    signer.tell("ok")


def check_interrupted_start(binary, folder):
    """SIGTERM ends a server that waits for a signer which is not there."""
    log = os.path.join(folder, "absent.log")
    command = [binary, "--secure-port=%d" % free_port(), "--data-dir=" + os.path.join(folder, "absent"), "--embedded-controllers=off", "--v=2",
               "--service-account-signing-endpoint=" + os.path.join(folder, "nobody.sock")]
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    end = time.monotonic() + 60
    while 'step="store"' not in open(log, errors="replace").read():
        assert process.poll() is None and time.monotonic() < end, open(log).read()
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    process.wait(20)


def check_tokens(client, server, signer):
    first = issue(client)
    assert part(first, 0) == {"alg": "ES256", "kid": "key-1", "typ": "JWT"}, part(first, 0)
    assert part(first, 1)["sub"] == "system:serviceaccount:default:robot"
    assert Bearer(server, first).get("/api") == 200
    assert review(client, first)["user"]["username"] == "system:serviceaccount:default:robot"
    # The signer's limit is the default of --service-account-max-token-expiration.
    claims = part(issue(client, expirationSeconds=86400), 1)
    assert claims["exp"] - claims["iat"] == 7200, claims
    signer.tell("keys key-1- key-2")
    second = issue(client)
    assert part(second, 0)["kid"] == "key-2"
    assert review(client, second)["authenticated"]
    assert Bearer(server, first).get("/api") == 200, "an excluded key still verifies"
    keys = client.must(200, "GET", "/openid/v1/jwks", accept="*/*")
    keys = keys if isinstance(keys, dict) else json.loads(keys)
    assert [key["kid"] for key in keys["keys"]] == ["key-2"], keys
    assert client.must(200, "GET", "/.well-known/openid-configuration")["id_token_signing_alg_values_supported"] == ["ES256"]
    return second


def check_failures(client, signer):
    signer.tell('header {"alg":"none","kid":"key-2","typ":"JWT"}')
    assert issue(client, 500) == ("Internal error occurred: failed to generate token: while validating header: bad signing algorithm \"none\"")
    signer.tell("ok")
    signer.tell("fail")
    assert issue(client, 500) == ("Internal error occurred: failed to generate token: while signing jwt: rpc error: code = Unavailable desc = "
                                  "told to fail")
    signer.tell("ok")
    text = client.must(200, "GET", "/metrics").decode()
    for name in ('apiserver_externaljwt_sign_request_total{code="OK"}', 'apiserver_externaljwt_sign_request_total{code="Unavailable"}',
                 'apiserver_externaljwt_sign_request_total{code="unknown-non-grpc"}', "apiserver_externaljwt_fetch_keys_success_timestamp",
                 "apiserver_externaljwt_fetch_keys_data_timestamp"):
        assert re.search("^" + re.escape(name) + " ", text, re.M), name


def check_unknown_keys(client, server, signer, good):
    """Tokens with made-up key ids: few fetches, and no delay for other requests."""
    before = signer.fetches()
    payload = good.split(".")[1]
    for i in range(200):
        header = base64.urlsafe_b64encode(json.dumps({"alg": "ES256", "kid": "made-up-%d" % i}).encode()).decode().rstrip("=")
        assert Bearer(server, "%s.%s.%s" % (header, payload, "AA")).get("/api") == 401
    assert signer.fetches() - before < 200, signer.fetches() - before
    signer.tell("hang")
    header = base64.urlsafe_b64encode(json.dumps({"alg": "ES256", "kid": "hangs"}).encode()).decode().rstrip("=")
    waiting = [threading.Thread(target=lambda: ignore(Bearer(server, "%s.%s.AA" % (header, payload), timeout=5))) for _ in range(20)]
    for thread in waiting:
        thread.start()
    begin = time.monotonic()
    assert Bearer(server, good).get("/api") == 200
    client.must(200, "GET", "/api/v1/namespaces/default")
    assert time.monotonic() - begin < 3
    return waiting


def check_shutdown(client, server):
    """Requests that wait for a signer that hangs hold the shutdown for a few seconds, not for the 60 s of a call to it."""
    context = client.connection.sock.context
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=90, context=context)
    connection.request("POST", TOKEN, json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}),
                       {"Content-Type": "application/json"})
    end = time.monotonic() + 60
    while not re.search(r'^apiserver_flowcontrol_current_executing_requests\{[^}]*\} [2-9]', client.must(200, "GET", "/metrics").decode(), re.M):
        assert time.monotonic() < end, "the token request is not executed"
    begin = time.monotonic()
    server.stop(90)
    assert time.monotonic() - begin < 40, "the signer held the shutdown for %.0f s" % (time.monotonic() - begin)
    answer = connection.getresponse()
    assert answer.status == 500 and b"failed to generate token" in answer.read(), answer.status
    connection.close()


def ignore(bearer):
    try:
        bearer.get("/api")
    except OSError:
        pass


def main():
    binary, folder, signer_binary = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    socket = "/tmp/keelson-signer-%d.sock" % os.getpid()  # a socket's path must be short
    signer = Signer(signer_binary, socket)
    flags = ["--service-account-signing-endpoint=" + socket, "--service-account-issuer=https://issuer.test"]
    check_start_errors(binary, folder, signer, flags)
    check_interrupted_start(binary, folder)
    server = Server(binary, os.path.join(folder, "server"), flags).start()
    try:
        client = Client(server)
        client.must(201, "POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}})
        good = check_tokens(client, server, signer)
        check_failures(client, signer)
        waiting = check_unknown_keys(client, server, signer, good)
        check_shutdown(client, server)
        for thread in waiting:
            thread.join()
    finally:
        if server.process.poll() is None:
            server.kill()
        signer.tell("ok")
        signer.stop()
        os.path.exists(socket) and os.remove(socket)
    print("external signer: fine")


if __name__ == "__main__":
    main()
