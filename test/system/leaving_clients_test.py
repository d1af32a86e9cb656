#!/usr/bin/env python3
"""Clients that leave at random moments: nothing leaks, no write is half done. usage: leaving_clients_test.py KEELSON WORK_FOLDER [CLIENTS]

Each client opens a connection, sends a write, an event (which takes a lease), a list, a watch, a write that waits in a webhook, a token that is reviewed by a
webhook or an impersonation that an authorizer webhook decides, and disconnects: in the middle of the head, in the middle of the body, before the answer or
inside it, half of them with RST. Afterwards descriptors, executing seats, requests in flight, watches, waits for token reviews and memory are what they were
before, and the store has no more leases than its events need. Before, clients that wait in a token review and in an authorizer webhook which never answer are
shown to leave at once.
"""
import json
import os
import random
import re
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "system"))
from harness import Client, Server, memory_bound  # noqa: E402
from webhook_peer import FaultyPeer  # noqa: E402

CLIENTS = 2000
THREADS = 8
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DATA = {"key-%d" % i: "v" * 50 for i in range(20)}
DESCRIPTORS_MORE = 16   # pooled connections to the webhook
MEMORY_MORE_KB = memory_bound(128 * 1024)
WAITING = 30            # clients that wait in a webhook which hangs
OBJECTS_PER_LEASE = 1000  # --lease-max-object-count
RELEASED, HANGING = threading.Event(), threading.Event()
EVENT = {"involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}, "reason": "Left", "type": "Normal"}
WEAK = "weak-token"     # of a user without rights
ENDED = []              # calls to a hanging webhook that the server ended


def answer_when_released(connection, review):
    RELEASED.wait(0.05)
    answer_with(connection, dict(review, request=None, response={"uid": review["request"]["uid"], "allowed": True}))


def answer_review(status):
    def answer(connection, review):
        if HANGING.is_set():
            if connection.recv(1) == b"":
                ENDED.append(review["kind"])
            return
        answer_with(connection, dict(review, status=status))
    return answer


def answer_with(connection, document):
    body = json.dumps(document).encode()
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    connection.recv(1)


def webhook_flags(folder, peer):
    """Tokens and authorization by the peer, which authenticates and allows nothing."""
    flags = ["--authorization-mode=RBAC,Webhook", "--authorization-webhook-cache-unauthorized-ttl=0s", "--authentication-token-webhook-cache-ttl=0s",
             "--token-auth-file=" + os.path.join(folder, "tokens.csv")]
    with open(os.path.join(folder, "tokens.csv"), "w") as f:
        f.write("%s,weak,u1\n" % WEAK)
    for flag, path in (("authentication-token-webhook-config-file", "/token"), ("authorization-webhook-config-file", "/authorize")):
        file = os.path.join(folder, path[1:] + ".kubeconfig")
        with open(file, "w") as f:
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                       "clusters": [{"name": "c", "cluster": {"server": peer.url + path, "certificate-authority-data": peer.ca_bundle}}],
                       "users": [{"name": "u", "user": {}}]}, f)
        flags.append("--%s=%s" % (flag, file))
    return flags


def install_webhook(client, peer):
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    webhook = {"name": "slow.example.com", "clientConfig": peer.client_config("/slow"), "rules": rules, "sideEffects": "None", "admissionReviewVersions": ["v1"],
               "failurePolicy": "Ignore", "objectSelector": {"matchLabels": {"slow": "true"}}}
    client.must(201, "POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", {"metadata": {"name": "slow"}, "webhooks": [webhook]})


def request_text(method, path, body=None, headers=""):
    data = b"" if body is None else json.dumps(body).encode()
    head = "%s %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n" % (method, path, len(data), headers)
    return head.encode() + data


def token_text(token):
    return request_text("GET", CONFIG_MAPS, headers="Authorization: Bearer %s\r\n" % token)


def impersonation_text():
    return request_text("GET", CONFIG_MAPS, headers="Authorization: Bearer %s\r\nImpersonate-User: somebody\r\n" % WEAK)


def request_of(number, choice):
    body = {"metadata": {"name": "c-%d" % number, "labels": {"slow": "true"} if choice == "slow" else {}}, "data": DATA}
    if choice in ("create", "slow"):
        return request_text("POST", CONFIG_MAPS, body)
    if choice == "event":
        return request_text("POST", "/api/v1/namespaces/default/events", dict(EVENT, metadata={"name": "e-%d" % number}))
    if choice == "token":
        return token_text("unknown-%d" % (number % 10))
    if choice == "impersonation":
        return impersonation_text()
    if choice == "list":
        return request_text("GET", CONFIG_MAPS)
    if choice == "apply":
        return request_text("PATCH", CONFIG_MAPS + "/c-%d?fieldManager=m" % number, dict(body, apiVersion="v1", kind="ConfigMap")).replace(
            b"application/json", b"application/apply-patch+yaml")
    return request_text("GET", CONFIG_MAPS + "?watch=true&allowWatchBookmarks=true")


def one_client(server, contexts, number, chance):
    choice = chance.choice(("create", "list", "watch", "slow", "apply", "event", "token", "impersonation"))
    text = request_of(number, choice)
    moment = chance.choice(("inside", "sent", "answered"))
    context = contexts["token" if choice in ("token", "impersonation") else "certificate"]
    with socket.create_connection(("127.0.0.1", server.port), 30) as plain:
        connection = context.wrap_socket(plain, server_hostname="127.0.0.1")
        connection.sendall(text[:chance.randrange(1, len(text))] if moment == "inside" else text)
        if moment == "answered":
            connection.recv(chance.randrange(1, 2000))
        if chance.random() < 0.5:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()


def connection_contexts(server):
    """With the administrator's certificate, and without one."""
    return {"certificate": server.context(), "token": ssl.create_default_context(cafile=os.path.join(server.pki, "ca.crt"))}


def leave_at_once(server, client, text, count, left):
    """Opens connections that wait in a webhook which hangs, and closes them; waits until count() is WAITING, then until it is at most `left`."""
    context = connection_contexts(server)["token"]
    HANGING.set()
    connections = []
    for _ in range(WAITING):
        connection = context.wrap_socket(socket.create_connection(("127.0.0.1", server.port), 30), server_hostname="127.0.0.1")
        connection.sendall(text)
        connections.append(connection)
    await_count(count, lambda number: number >= WAITING, "wait")
    begin = time.monotonic()
    for connection in connections:
        connection.close()
    await_count(count, lambda number: number <= left, "leave")
    HANGING.clear()
    return time.monotonic() - begin


def await_count(count, wanted, what):
    end = time.monotonic() + 25  # below the 30 s after which a review ends by itself
    while not wanted(count()):
        assert time.monotonic() < end, "clients do not %s: %d" % (what, count())
        time.sleep(0.01)


def leave_webhooks_that_hang(server, client, peer):
    blocked = 'authentication_token_cache_active_fetch_count'
    took = leave_at_once(server, client, token_text("hangs"), lambda: gauge(metrics(client), blocked, 'blocked'), 1)  # the shared review continues without a client
    print("%d clients left a token review after %.2f s" % (WAITING, took))
    called = peer.called.count("/authorize")
    ended = ENDED.count("SubjectAccessReview")
    took = leave_at_once(server, client, impersonation_text(),
                         lambda: peer.called.count("/authorize") - called - (ENDED.count("SubjectAccessReview") - ended), 0)
    print("%d clients left the check of an impersonation after %.2f s" % (WAITING, took))


def leave(server, count):
    contexts = connection_contexts(server)
    errors = []

    def work(first):
        for number in range(first, count, THREADS):
            try:
                one_client(server, contexts, number, random.Random(number))
            except OSError as error:
                errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def descriptors(server):
    return len(os.listdir("/proc/%d/fd" % server.process.pid))


def gauge(text, name, labels=""):
    """Sum of a gauge over its series whose labels contain `labels`."""
    return sum(float(value) for series, value in re.findall(r"^%s(\{.*\})? (\S+)$" % name, text, re.M) if labels in (series or ""))


def metrics(client):
    return client.request("GET", "/metrics", accept="text/plain")[1].decode()


def figures(server, client):
    text = metrics(client)
    return {"descriptors": descriptors(server), "seats": gauge(text, "apiserver_flowcontrol_current_executing_seats"),
            "mutating in flight": gauge(text, "apiserver_current_inflight_requests", "mutating\""),
            "watches": gauge(text, "apiserver_longrunning_requests"), "waits for reviews": gauge(text, "authentication_token_cache_active_fetch_count")}


def settled(before, after):
    return after["descriptors"] <= before["descriptors"] + DESCRIPTORS_MORE and all(after[key] <= before[key] for key in before if key != "descriptors")


def half_done(client):
    """Config maps without all of their data."""
    return [item["metadata"]["name"] for item in client.must(200, "GET", CONFIG_MAPS)["items"]
            if item["metadata"]["name"].startswith("c-") and item.get("data") != DATA]


def leases_left(server, binary, events, seconds):
    """Leases of the stopped store, and how many its events may need: a lease takes so many objects and is given out for a minute at most, and the server's own
    presence has one."""
    text = subprocess.run([binary, "store", "check", server.data], check=True, capture_output=True, text=True).stdout
    leases = int(re.search(r"(\d+) leases", text).group(1))
    return leases, 3 + events // OBJECTS_PER_LEASE + int(seconds / 60) + 1


def main():
    binary, folder = sys.argv[1], sys.argv[2]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else CLIENTS
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    peer = FaultyPeer(folder, {"/slow": answer_when_released, "/token": answer_review({"authenticated": False}), "/authorize": answer_review({"allowed": False})})
    begin = time.monotonic()
    server = Server(binary, folder, webhook_flags(folder, peer)).start()
    try:
        client = Client(server)
        install_webhook(client, peer)
        leave_webhooks_that_hang(server, client, peer)
        leave(server, 200)  # Caches, pools and threads are made once.
        before, memory = figures(server, client), server.memory_kb()
        errors = leave(server, count)
        RELEASED.set()
        after = figures(server, client)
        for _ in range(2000):
            if settled(before, after):
                break
            after = figures(server, client)
        grown = server.memory_kb() - memory
        halves = half_done(client)
        events = len(client.must(200, "GET", "/api/v1/namespaces/default/events")["items"])
        client.close()
    finally:
        RELEASED.set()
        HANGING.clear()
        server.stop()
        peer.close()
    leases, leases_max = leases_left(server, binary, events, time.monotonic() - begin)
    print("%d clients (%d ended by the server); before %s, after %s, %d KiB more, webhooks called %d times, %d events with %d leases" % (
        count, len(errors), before, after, grown, len(peer.called), events, leases))
    failed = [("%d leases" % leases, leases > leases_max), ("no event was written", not events)]
    failed = [why for why, bad in failed if bad]
    failed += [why for why, bad in (("something leaked", not settled(before, after)), ("memory grew", grown > MEMORY_MORE_KB), ("half written: %s" % halves[:5], halves),
                                   ("the webhook was never called", not peer.called)) if bad]
    print("failed: " + "; ".join(failed) if failed else "nothing leaked")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
