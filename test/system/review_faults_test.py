#!/usr/bin/env python3
"""Token and authorization webhooks that hang and lie: upstream's error texts, bounded memory, no delay for other requests.

usage: review_faults_test.py KEELSON WORK_FOLDER [PROGRAMS_FOLDER]

One peer answers TokenReviews by their token and SubjectAccessReviews by their user, each name one fault. Nothing here measures time: requests that must not
wait are done while the others still wait. With the folder of kube-apiserver and etcd, the same table is checked on them first.
"""
import collections
import gzip
import http.client
import json
import os
import re
import shutil
import ssl
import sys
import threading
import time

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "system"))
from harness import Client, Server, memory_bound  # noqa: E402
from webhook_peer import MEGABYTE, FaultyPeer, endless_chunks, endless_head, gigabyte, reset, trickle_body, trickle_head  # noqa: E402

STATIC = "static-token"
TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
PODS = "/api/v1/namespaces/default/pods"
SUBJECT_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
OK = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n"
MEMORY_MAX_KB = memory_bound(96 * 1024)  # growth of the server over all faults, which run at the same time
HANGING = 40  # tokens and users at once
CALLS_MAX = 5  # of one request: upstream's backoff has five steps
RELEASED = threading.Event()
FAILED = []


def check(name, condition, detail=""):
    print("%s: %s" % (name, "ok" if condition else "FAILED " + str(detail)), flush=True)
    if not condition:
        FAILED.append(name)


def good(review):
    """The right answer: the user `good`, who may do everything."""
    status = {"authenticated": True, "user": {"username": "webhook-user"}} if review["kind"] == "TokenReview" else {"allowed": True}
    return dict(review, spec={}, status=status)


def send(connection, body, head=OK):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)


def answers(body, head=OK):
    """`body`, or for a function what it makes of the review."""
    return lambda connection, review: send(connection, body(review) if callable(body) else body, head)


def status_line(code, content_type=b"application/json"):
    return b"HTTP/1.1 " + code + b"\r\nConnection: close\r\nContent-Type: " + content_type + b"\r\n"


def hang(connection, review):
    connection.recv(1)  # until the server hangs up


def hang_until_released(connection, review):
    RELEASED.wait()
    send(connection, good(review))


def length_too_long(connection, review):
    connection.sendall(OK + b"Content-Length: 100000\r\n\r\n" + json.dumps(good(review)).encode())


def length_too_short(connection, review):
    connection.sendall(OK + b"Content-Length: 10\r\n\r\n" + json.dumps(good(review)).encode())


def changed(**members):
    return answers(lambda review: dict(good(review), **members))


def status(value):
    return answers(lambda review: dict(review, spec={}, status=value))


def failure(code, reason):
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no way", "reason": reason, "code": code}


GOOD, NO = "good", ""  # the right answer; neither an answer nor an error
READING = "unexpected error when reading response body. Please retry. Original error: "
NO_KIND = "couldn't get version/kind; json parse error: "
TYPE_META = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
NO_OBJECT = NO_KIND + "json: cannot unmarshal %s into Go value of type " + TYPE_META
FIELD = "json: cannot unmarshal %s into Go struct field %s of type %s"
UNKNOWN = 'no kind "%s" is registered for version "%s" in scheme "pkg/runtime/scheme.go:111"'
SERVER_ERROR = 'an error on the server ("%s") has prevented the request from succeeding'
AUTHN, AUTHZ = "authentication.k8s.io/v1", "authorization.k8s.io/v1"
# Two clocks of 30 s run for a token, that of the call and that of the cache in front: either may be first.
TIMEOUT_TOKEN = re.compile(r"(.*: )?(context deadline exceeded|net/http: request canceled)( \(Client.Timeout .*\))?")
TIMEOUT_HEAD = re.compile(r'Post "https://[^"]*/authorize\?timeout=2s": (context deadline exceeded|net/http: request canceled)( \(Client.Timeout exceeded while awaiting headers\))?')
TIMEOUT_BODY = re.compile(re.escape(READING) + r"(context deadline exceeded|net/http: request canceled)( \(Client.Timeout or context cancellation while reading body\))?")


def post(text):
    return re.compile(r'Post "https://[^"]*/(token\?timeout=30s|authorize\?timeout=2s)": ' + text)


def converting(kind, version="v1"):
    return ["converting (%s) to (v1.%s): unknown conversion" % (kind or version + "." + own, own) for own in ("TokenReview", "SubjectAccessReview")]


def same(text):
    return [text, text]


TOO_LARGE = same(READING + "response body is larger than 1048576 bytes")
# name -> (what the peer does, the answers to the TokenReview and to the SubjectAccessReview)
FAULTS = {
    "good": (answers(good), same(GOOD)),
    "hangs": (hang, [TIMEOUT_TOKEN, TIMEOUT_HEAD]),
    "trickles-head": (trickle_head, [TIMEOUT_TOKEN, TIMEOUT_HEAD]),
    "trickles-body": (trickle_body, [TIMEOUT_TOKEN, TIMEOUT_BODY]),
    "closes": (lambda connection, review: None, same(post("EOF"))),
    "resets": (lambda connection, review: reset(connection), same(post(r"read tcp [0-9.:>-]+: read: connection reset by peer"))),
    "length-too-long": (length_too_long, same(READING + "unexpected EOF")),
    "length-too-short": (length_too_short, same(NO_KIND + "unexpected end of JSON input")),
    "endless-head": (endless_head, same(post(r"net/http: HTTP/1\.x transport connection broken: net/http: server response headers exceeded \d+ bytes; aborted"))),
    "gigabyte": (gigabyte, TOO_LARGE),
    "chunks": (endless_chunks, TOO_LARGE),
    "gzip-bomb": (answers(gzip.compress(64 * MEGABYTE), OK + b"Content-Encoding: gzip\r\n"), TOO_LARGE),
    "gzip-lie": (answers(good, OK + b"Content-Encoding: gzip\r\n"), same(re.compile(re.escape(READING) + ".*"))),
    "no-http": (lambda connection, review: connection.sendall(b"hello\r\n\r\n"), same(post(r'net/http: HTTP/1\.x transport connection broken: malformed HTTP response "hello"'))),
    "other-kind": (changed(kind="SelfSubjectAccessReview", apiVersion=AUTHZ), converting("v1.SelfSubjectAccessReview")),
    "pod": (changed(kind="Pod", apiVersion="v1"), [re.compile("json: .*|" + re.escape(text)) for text in converting("v1.Pod")]),
    "unknown-kind": (changed(kind="Nonsense"), [UNKNOWN % ("Nonsense", AUTHN), UNKNOWN % ("Nonsense", AUTHZ)]),
    "unknown-group": (changed(apiVersion="nonsense.example.com/v1"), [UNKNOWN % (kind, "nonsense.example.com/v1") for kind in ("TokenReview", "SubjectAccessReview")]),
    "other-version": (answers(lambda review: dict(good(review), apiVersion=review["apiVersion"] + "beta1")), converting("", "v1beta1")),
    "unknown-version": (answers(lambda review: dict(good(review), apiVersion=review["apiVersion"] + "alpha7")),
                        [UNKNOWN % ("TokenReview", AUTHN + "alpha7"), UNKNOWN % ("SubjectAccessReview", AUTHZ + "alpha7")]),
    "no-kind": (answers(lambda review: {"apiVersion": review["apiVersion"], "status": good(review)["status"]}), same(GOOD)),
    "no-version": (answers(lambda review: {"kind": review["kind"], "status": good(review)["status"]}), same(GOOD)),
    "no-kind-no-version": (answers(lambda review: {"status": good(review)["status"]}), same(GOOD)),
    "no-status": (answers(lambda review: {"kind": review["kind"], "apiVersion": review["apiVersion"]}), same(NO)),
    "empty-object": (answers({}), same(NO)),
    "null": (answers(b"null"), same(NO)),
    "yaml": (answers(lambda review: ("kind: %s\napiVersion: %s\nstatus: {}\n" % (review["kind"], review["apiVersion"])).encode()), same(NO)),
    "upper-case": (status({"Authenticated": True, "USER": {"username": "u"}, "Allowed": True}), same(NO)),
    "says-nothing": (status({}), same(NO)),
    "fails": (status({"authenticated": False, "allowed": False, "evaluationError": "broken"}), same(NO)),
    "empty": (answers(b""), same("0-length response with status code: 200 and content type: application/json")),
    "no-content": (answers(b"", status_line(b"204 No Content")), same("0-length response with status code: 204 and content type: application/json")),
    "list": (answers(b"[]"), same(NO_OBJECT % "array")),
    "number": (answers(b"7"), same(NO_OBJECT % "number")),
    "string": (answers(b'"x"'), same(NO_OBJECT % "string")),
    "text": (answers(b"not json"), same(NO_OBJECT % "string")),
    "html": (answers(b"<html><body>It works!</body></html>", status_line(b"200 OK", b"text/html")), same(NO_OBJECT % "string")),
    "cut": (answers(lambda review: json.dumps(good(review)).encode()[:-20]), same(NO_KIND + "unexpected end of JSON input")),
    "trailing": (answers(lambda review: json.dumps(good(review)).encode() + b"}"), same(NO_KIND + "invalid character '}' after top-level value")),
    "twice": (answers(lambda review: json.dumps(good(review)).encode() * 2), same(NO_KIND + "invalid character '{' after top-level value")),
    "deep": (answers(b"[" * 100000), same(re.compile(r"yaml: exceeded max depth of \d+"))),
    "status-list": (status([]), [FIELD % ("array", kind + ".status", "v1.%sStatus" % kind) for kind in ("TokenReview", "SubjectAccessReview")]),
    "status-text": (status("yes"), [FIELD % ("string", kind + ".status", "v1.%sStatus" % kind) for kind in ("TokenReview", "SubjectAccessReview")]),
    "answer-text": (status({"authenticated": "yes", "allowed": "yes"}),
                    [FIELD % ("string", "TokenReviewStatus.status.authenticated", "bool"), FIELD % ("string", "SubjectAccessReviewStatus.status.allowed", "bool")]),
    "user-text": (status({"authenticated": True, "user": "jane", "allowed": True, "reason": 7}),
                  [FIELD % ("string", "TokenReviewStatus.status.user", "v1.UserInfo"), FIELD % ("number", "SubjectAccessReviewStatus.status.reason", "string")]),
    "group-numbers": (status({"authenticated": True, "user": {"username": "u", "groups": [1]}, "denied": "no"}),
                      [FIELD % ("number", "UserInfo.status.user.groups", "string"), FIELD % ("string", "SubjectAccessReviewStatus.status.denied", "bool")]),
    "status-success": (answers({"kind": "Status", "apiVersion": "v1", "status": "Success"}), converting("v1.Status")),
    "status-failure": (answers(failure(403, "Forbidden")), converting("v1.Status")),
    "500-text": (answers(b"broken\n", status_line(b"500 Internal Server Error", b"text/plain")), same(SERVER_ERROR % "broken")),
    "500-good": (answers(good, status_line(b"500 Internal Server Error")), same(SERVER_ERROR % "unknown")),
    "500-status": (answers(failure(500, "InternalError"), status_line(b"500 Internal Server Error")), same("no way")),
    "501": (answers(b"", status_line(b"501 Not Implemented")), same(SERVER_ERROR % "unknown")),
    "503": (answers(b"", status_line(b"503 Service Unavailable")), same("the server is currently unable to handle the request")),
    "504": (answers(b"", status_line(b"504 Gateway Timeout")), same("the server was unable to return a response in the time allotted, but may still be processing the request")),
    "429": (answers(b"", status_line(b"429 Too Many Requests")), same("the server has received too many requests and has asked us to try again later")),
    "400": (answers(b"bad", status_line(b"400 Bad Request", b"text/plain")), same("the server rejected our request for an unknown reason")),
    "401": (answers(b"", status_line(b"401 Unauthorized")), same("the server has asked for the client to provide credentials")),
    "403-status": (answers(failure(403, "Forbidden"), status_line(b"403 Forbidden")), same("no way")),
    "404": (answers(b"", status_line(b"404 Not Found")), same("the server could not find the requested resource")),
    "302": (answers(b"", status_line(b"302 Found") + b"Location: /elsewhere\r\n"), same("the server responded with the status code 302 but did not return more information")),
    "206": (answers(good, status_line(b"206 Partial Content")), same(GOOD)),
    "600": (answers(good, status_line(b"600 What")), same(SERVER_ERROR % "unknown")),
    "protobuf-lie": (answers(good, status_line(b"200 OK", b"application/vnd.kubernetes.protobuf")), same(GOOD)),
    "both": (status({"authenticated": True, "error": "but", "user": {"username": "webhook-user"}, "allowed": True, "denied": True}),
             [GOOD, "webhook subject access review returned both allow and deny response"]),
}
ONLY_OURS = {"gigabyte", "chunks", "gzip-bomb", "302"}  # kube-apiserver reads answers whole, whatever their size, and follows redirects
RETRIED = {"resets", "500-text", "500-good", "500-status", "501", "504", "429", "600"}
TIMEOUTS = {"hangs", "trickles-head", "trickles-body", "504"}


class Peer(FaultyPeer):
    """Answers by the token, or by the user behind the name of the webhook: open:hangs. Names that begin with held- wait until they are let go."""

    def __init__(self, folder):
        super().__init__(folder, {"/token": self.token, "/authorize": self.authorize})
        self.asked = collections.Counter()

    def token(self, connection, review):
        self.answer("token:" + review["spec"]["token"], connection, review)

    def authorize(self, connection, review):
        self.answer(review["spec"]["user"], connection, review)

    def answer(self, name, connection, review):
        with self.lock:
            self.asked[name] += 1
        fault = name.split(":", 1)[1]
        (hang_until_released if fault.startswith("held-") else FAULTS[fault][0])(connection, review)

    def count(self, prefix):
        with self.lock:
            return sum(n for name, n in self.asked.items() if name.startswith(prefix))


def write_json(folder, name, value):
    path = os.path.join(folder, name)
    with open(path, "w") as f:
        json.dump(value, f)
    return path


def kubeconfig(folder, peer, path):
    return write_json(folder, path[1:] + ".kubeconfig", {
        "apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": peer.url + path, "certificate-authority-data": peer.ca_bundle}}], "users": [{"name": "u", "user": {}}]})


def flags(folder, peer):
    """Two authorization webhooks, `open` and `shut` by their failure policy, each called for the users with its name as prefix; RBAC before them."""
    connection = {"type": "KubeConfigFile", "kubeConfigFile": kubeconfig(folder, peer, "/authorize")}
    authorizers = [{"type": "RBAC", "name": "rbac"}] + [{"type": "Webhook", "name": name, "webhook": {
        "timeout": "2s" if name != "slow" else "30s", "subjectAccessReviewVersion": "v1", "matchConditionSubjectAccessReviewVersion": "v1", "failurePolicy": policy,
        "cacheAuthorizedRequests": False, "cacheUnauthorizedRequests": False, "connectionInfo": connection,
        "matchConditions": [{"expression": "request.user.startsWith('%s:')" % name}]}} for name, policy in (("open", "NoOpinion"), ("shut", "Deny"), ("slow", "NoOpinion"))]
    tokens = os.path.join(folder, "tokens.csv")
    with open(tokens, "w") as f:
        f.write("%s,alice,u1,system:masters\n" % STATIC)
    configuration = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration", "authorizers": authorizers}
    return ["--authorization-config=" + write_json(folder, "authorization.json", configuration), "--token-auth-file=" + tokens,
            "--authentication-token-webhook-config-file=" + kubeconfig(folder, peer, "/token"), "--authentication-token-webhook-version=v1"]


def fits(wanted, text):
    return bool(wanted.fullmatch(text)) if isinstance(wanted, re.Pattern) else text == wanted


def check_token(client, name, wanted):
    code, review = client.request("POST", TOKEN_REVIEWS, {"spec": {"token": name}})
    got = review.get("status", {}) if code == 201 else {"status": code}
    error = got.get("error", "")
    if wanted == GOOD:
        fine = got.get("user", {}).get("username") == "webhook-user" and not error
    elif wanted == NO:
        fine = error == "invalid bearer token"
    else:
        fine = error.startswith("[invalid bearer token, ") and fits(wanted, error[len("[invalid bearer token, "):-1])
    check("token webhook: " + name, fine and bool(got.get("authenticated")) == (wanted == GOOD), got)


def check_user(client, webhook, name, wanted):
    code, review = client.request("POST", SUBJECT_ACCESS_REVIEWS, {"spec": {"user": webhook + ":" + name, "nonResourceAttributes": {"path": "/x", "verb": "get"}}})
    got = review.get("status", {}) if code == 201 else {"status": code}
    denied = wanted not in (GOOD, NO) and (webhook == "shut" or name == "both")
    fine = got.get("allowed") == (wanted == GOOD) and got.get("denied", False) == denied and fits(wanted if wanted != GOOD else "", got.get("evaluationError", ""))
    check("authorization webhook %s: %s" % (webhook, name), fine, got)


def check_fault(server, name):
    _, (token, user) = FAULTS[name]
    client = Client(server, timeout=120)
    check_token(client, name, token)
    for webhook in ("open", "shut"):
        check_user(client, webhook, name, user)
    client.close()


def guarded(function):
    """A thread's failure is the test's."""
    def run(*arguments):
        try:
            function(*arguments)
        except Exception as e:  # noqa: BLE001
            check(str(arguments[1:]), False, repr(e))
    return run


def in_threads(function, arguments):
    threads = [threading.Thread(target=guarded(function), args=a, daemon=True) for a in arguments]
    for thread in threads:
        thread.start()
    return threads


def evaluations(client, metric):
    """{(name, result): count}"""
    text = client.request("GET", "/metrics", accept="text/plain")[1].decode()
    found = re.findall(r'^%s\{name="([^"]*)",result="([^"]*)"\} (\d+)$' % metric, text, re.M)
    return collections.Counter({(name, result): int(count) for name, result, count in found})


def check_metrics(client, names, before):
    wanted, failed_open = collections.Counter(), collections.Counter()
    for name in names:
        answer = FAULTS[name][1][1]
        # `both` is a complete answer: the contradiction is found later.
        result = "success" if answer in (GOOD, NO) or name == "both" else "timeout" if name in TIMEOUTS else "error"
        for webhook in ("open", "shut"):
            wanted[webhook, result] += CALLS_MAX if name in RETRIED else 1
        if result != "success":
            failed_open["open", result] += 1
    got = evaluations(client, "apiserver_authorization_webhook_evaluations_total") - before
    check("evaluations by result", got == wanted, (got, wanted))
    got = evaluations(client, "apiserver_authorization_webhook_evaluations_fail_open_total")
    check("evaluations that failed open", got == failed_open, (got, failed_open))


def call(server, headers, path=PODS + "?x=1&y=2", context=None):
    context = context or ssl.create_default_context(cafile=os.path.join(server.pki, "ca.crt"))
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=120, context=context)
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    body = response.read().decode()
    connection.close()
    return response.status, body


def check_requests(server):
    """The status of whole requests: a token without an answer is 401, never anonymous; an authorizer without one 500."""
    for name, wanted in (("closes", 401), ("fails", 401), ("500-status", 401), ("good", 403)):
        code, body = call(server, {"Authorization": "Bearer " + name})
        check("request with token " + name, code == wanted, (code, body))
    error = 'Internal Server Error: "/api/v1/namespaces/default/pods?x=1&amp;y=2": %s\n'
    for webhook in ("open", "shut"):
        for name, wanted, text in (("403-status", 500, error % "no way"), ("500-text", 500, error % (SERVER_ERROR % "broken")), ("good", 200, None), ("fails", 403, None)):
            code, body = call(server, {"Impersonate-User": "%s:%s" % (webhook, name)}, context=server.context())
            check("request of %s:%s" % (webhook, name), code == wanted and text in (None, body), (code, body))


def check_sent_status(client):
    """A TokenReview that was sent with a status keeps what is not answered."""
    sent = {"authenticated": True, "error": "sent", "audiences": ["sent"], "user": {"username": "sent"}}
    _, review = client.request("POST", TOKEN_REVIEWS, {"spec": {"token": "says-nothing"}, "status": sent})
    check("status of an unknown token", review.get("status") == dict({k: v for k, v in sent.items() if k != "authenticated"}, error="invalid bearer token"), review)
    _, review = client.request("POST", TOKEN_REVIEWS, {"spec": {"token": STATIC}, "status": sent})
    got = review.get("status", {})
    check("status of a known token", got.get("user", {}).get("username") == "alice" and got.get("error") == "sent" and got.get("audiences") != ["sent"], review)


def until(condition, what):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def others_do_not_wait(server, client, peer):
    """Requests whose webhooks hang wait; those with other tokens, certificates and users do not. Requests with one token share one call."""
    statuses, lock = collections.Counter(), threading.Lock()

    def held(kind, headers, path, context=None):
        code = call(server, headers, path, context)[0]
        with lock:
            statuses[kind, code] += 1
    requests = [("token", {"Authorization": "Bearer held-%d" % i}, "/version") for i in range(HANGING)]
    requests += [("shared", {"Authorization": "Bearer held-shared"}, "/version")] * HANGING
    requests += [("user", {"Impersonate-User": "slow:held-%d" % i}, PODS, server.context()) for i in range(HANGING)]
    threads = in_threads(held, requests)
    until(lambda: peer.count("token:held-") > HANGING and peer.count("slow:held-") == HANGING, "webhooks were not asked: %s" % peer.asked)
    for i in range(10):
        check("static token %d" % i, call(server, {"Authorization": "Bearer " + STATIC})[0] == 200)
        client.must(200, "GET", PODS)
        check_token(client, "good", GOOD)
        check_user(client, "open", "good", GOOD)
    check("nobody was answered", not statuses, statuses)
    check("requests with one token share a call", peer.asked["token:held-shared"] == 1, peer.asked["token:held-shared"])
    RELEASED.set()
    for thread in threads:
        thread.join(90)
    check("all are answered", statuses == {("token", 200): HANGING, ("shared", 200): HANGING, ("user", 200): HANGING}, statuses)


def run(server, peer, names, memory_kb):
    client = Client(server, timeout=120)
    call(server, {"Authorization": "Bearer good"})  # caches, buffers and connections are there before the memory is measured
    memory, before = memory_kb(), evaluations(client, "apiserver_authorization_webhook_evaluations_total")
    for thread in in_threads(check_fault, [(server, name) for name in names]):
        thread.join()
    grown = memory_kb() - memory
    check("memory stays bounded", grown < MEMORY_MAX_KB, "%d KiB more" % grown)
    check_metrics(client, names, before)
    for name in names:
        wanted = CALLS_MAX if name in RETRIED else 1
        calls = {kind: peer.asked[kind + ":" + name] for kind in ("open", "shut")}
        check("calls of " + name, set(calls.values()) == {wanted}, calls)
    check_requests(server)
    check_sent_status(client)
    others_do_not_wait(server, client, peer)
    client.close()
    return grown


def on_real_server(folder, programs):
    sys.path.insert(0, os.path.join(ROOT, "interop"))
    from rig import RealPair
    os.makedirs(folder)
    peer = Peer(folder)
    real = RealPair(os.path.join(folder, "server"), programs, flags(folder, peer)).start()
    try:
        run(real, peer, [name for name in FAULTS if name not in ONLY_OURS], lambda: 0)
    finally:
        RELEASED.set()
        real.stop()
        peer.close()
        RELEASED.clear()


def main():
    binary, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    if len(sys.argv) > 3:
        on_real_server(os.path.join(folder, "real"), sys.argv[3])
        print("kube-apiserver failed: " + "; ".join(FAILED) if FAILED else "kube-apiserver: every check holds", flush=True)
    peer = Peer(folder)
    server = Server(binary, os.path.join(folder, "server"), flags(folder, peer), in_memory=True).start()
    try:
        grown = run(server, peer, list(FAULTS), lambda: server.memory_kb("VmHWM"))
    finally:
        RELEASED.set()
        server.stop(90)
        peer.close()
    print("failed: " + "; ".join(FAILED) if FAILED else "every fault is contained; %d KiB more" % grown)
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
