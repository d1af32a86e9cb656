#!/usr/bin/env python3
"""Clients that leave at random moments: nothing leaks, no write is half done. usage: leaving_clients_test.py KEELSON WORK_FOLDER [CLIENTS]

Each client opens a connection, sends a write, a list, a watch or a write that waits in a webhook, and goes: in the middle of the head, in the middle of the
body, before the answer or inside it, half of them with RST. Afterwards descriptors, executing seats, requests in flight, watches and memory are what they
were before.
"""
import json
import os
import random
import re
import shutil
import socket
import struct
import sys
import threading

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "system"))
from harness import Client, Server  # noqa: E402
from webhook_peer import FaultyPeer  # noqa: E402

CLIENTS = 2000
THREADS = 8
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DATA = {"key-%d" % i: "v" * 50 for i in range(20)}
DESCRIPTORS_MORE = 16   # pooled connections to the webhook
MEMORY_MORE_KB = 128 * 1024
RELEASED = threading.Event()


def answer_when_released(connection, review):
    RELEASED.wait(0.05)
    body = json.dumps(dict(review, request=None, response={"uid": review["request"]["uid"], "allowed": True})).encode()
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    connection.recv(1)


def install_webhook(client, peer):
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    webhook = {"name": "slow.example.com", "clientConfig": peer.client_config("/slow"), "rules": rules, "sideEffects": "None", "admissionReviewVersions": ["v1"],
               "failurePolicy": "Ignore", "objectSelector": {"matchLabels": {"slow": "true"}}}
    client.must(201, "POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", {"metadata": {"name": "slow"}, "webhooks": [webhook]})


def request_text(method, path, body=None):
    data = b"" if body is None else json.dumps(body).encode()
    head = "%s %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (method, path, len(data))
    return head.encode() + data


def request_of(number, choice):
    body = {"metadata": {"name": "c-%d" % number, "labels": {"slow": "true"} if choice == "slow" else {}}, "data": DATA}
    if choice in ("create", "slow"):
        return request_text("POST", CONFIG_MAPS, body)
    if choice == "list":
        return request_text("GET", CONFIG_MAPS)
    if choice == "apply":
        return request_text("PATCH", CONFIG_MAPS + "/c-%d?fieldManager=m" % number, dict(body, apiVersion="v1", kind="ConfigMap")).replace(
            b"application/json", b"application/apply-patch+yaml")
    return request_text("GET", CONFIG_MAPS + "?watch=true&allowWatchBookmarks=true")


def one_client(server, context, number, chance):
    text = request_of(number, chance.choice(("create", "list", "watch", "slow", "apply")))
    moment = chance.choice(("inside", "sent", "answered"))
    with socket.create_connection(("127.0.0.1", server.port), 30) as plain:
        connection = context.wrap_socket(plain, server_hostname="127.0.0.1")
        connection.sendall(text[:chance.randrange(1, len(text))] if moment == "inside" else text)
        if moment == "answered":
            connection.recv(chance.randrange(1, 2000))
        if chance.random() < 0.5:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()


def leave(server, count):
    context = server.context()
    errors = []

    def work(first):
        for number in range(first, count, THREADS):
            try:
                one_client(server, context, number, random.Random(number))
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


def figures(server, client):
    text = client.request("GET", "/metrics", accept="text/plain")[1].decode()
    return {"descriptors": descriptors(server), "seats": gauge(text, "apiserver_flowcontrol_current_executing_seats"),
            "mutating in flight": gauge(text, "apiserver_current_inflight_requests", "mutating\""),
            "watches": gauge(text, "apiserver_longrunning_requests")}


def settled(before, after):
    return after["descriptors"] <= before["descriptors"] + DESCRIPTORS_MORE and all(after[key] <= before[key] for key in before if key != "descriptors")


def half_done(client):
    """Config maps without all of their data."""
    return [item["metadata"]["name"] for item in client.must(200, "GET", CONFIG_MAPS)["items"]
            if item["metadata"]["name"].startswith("c-") and item.get("data") != DATA]


def main():
    binary, folder = sys.argv[1], sys.argv[2]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else CLIENTS
    shutil.rmtree(folder, ignore_errors=True)
    peer = FaultyPeer(folder, {"/slow": answer_when_released})
    server = Server(binary, folder, in_memory=True).start()
    try:
        client = Client(server)
        install_webhook(client, peer)
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
        client.close()
    finally:
        RELEASED.set()
        server.stop()
        peer.close()
    print("%d clients (%d ended by the server); before %s, after %s, %d KiB more, webhook called %d times" % (count, len(errors), before, after, grown, len(peer.called)))
    failed = [why for why, bad in (("something leaked", not settled(before, after)), ("memory grew", grown > MEMORY_MORE_KB), ("half written: %s" % halves[:5], halves),
                                   ("the webhook was never called", not peer.called)) if bad]
    print("failed: " + "; ".join(failed) if failed else "nothing leaked")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
