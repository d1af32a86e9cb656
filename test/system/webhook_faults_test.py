#!/usr/bin/env python3
"""Admission webhooks that misbehave: bounded memory, Go's error texts, no delay for other requests. usage: webhook_faults_test.py KEELSON WORK_FOLDER

Nothing here measures time: a webhook that hangs is let go by the test, and what must not wait for it is done before.
"""
import json
import os
import shutil
import socket
import ssl
import sys
import threading

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "system"))
from harness import Client, Server, config_map, memory_bound  # noqa: E402
from webhook_peer import OK, FaultyPeer, endless_chunks, endless_head, gigabyte, reset, trickle_body, trickle_head  # noqa: E402

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
READING = "unexpected error when reading response body. Please retry. Original error: "
MEMORY_MAX_KB = memory_bound(96 * 1024)  # growth of the server over all faults
RELEASED = threading.Event()
FAILED = []


def check(name, condition, detail=""):
    print("%s: %s" % (name, "ok" if condition else "FAILED " + str(detail)), flush=True)
    if not condition:
        FAILED.append(name)


def allowed(review):
    return json.dumps(dict(review, request=None, response={"uid": review["request"]["uid"], "allowed": True})).encode()


def wait_for_end(connection, review):
    connection.recv(1)


def length_too_long(connection, review):
    connection.sendall(OK + b"Content-Length: 100000\r\n\r\n" + allowed(review))


def length_too_short(connection, review):
    connection.sendall(OK + b"Content-Length: 10\r\n\r\n" + allowed(review))


def hang_until_released(connection, review):
    RELEASED.wait()
    body = allowed(review)
    connection.sendall(OK + b"Content-Length: %d\r\n\r\n" % len(body) + body)


# path -> (what the peer does, what the refusal contains behind "failed to call webhook: ", %s is the URL with its query)
FAULTS = {
    "/hangs": (wait_for_end, 'Post "%s": context deadline exceeded'),
    "/trickles-head": (trickle_head, 'Post "%s": context deadline exceeded'),
    "/trickles-body": (trickle_body, READING + "context deadline exceeded"),
    "/closes": (lambda connection, review: None, 'Post "%s": EOF'),
    "/resets": (lambda connection, review: reset(connection), "connection reset by peer"),
    "/gigabyte": (gigabyte, READING + "response body is larger than 16777216 bytes"),
    "/chunks": (endless_chunks, READING + "response body is larger than 16777216 bytes"),
    "/endless-head": (endless_head, 'Post "%s": '),
    "/length-too-long": (length_too_long, READING + "unexpected EOF"),
    "/length-too-short": (length_too_short, "couldn't get version/kind; json parse error: "),
    "/held": (hang_until_released, None),
}


def webhook(peer, name, path, seconds, policy="Fail"):
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    return {"name": name + ".example.com", "clientConfig": peer.client_config(path), "rules": rules, "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "timeoutSeconds": seconds, "failurePolicy": policy, "objectSelector": {"matchLabels": {"fault": name}}}


def install(client, peer):
    """One webhook of each phase per fault, chosen by a label; a chain of webhooks that hang and fail open."""
    registration = "/apis/admissionregistration.k8s.io/v1/"
    for phase, plural in (("v", "validatingwebhookconfigurations"), ("m", "mutatingwebhookconfigurations")):
        hooks = [webhook(peer, phase + path[1:], path, 30 if path in ("/held", "/gigabyte", "/chunks") else 1) for path in FAULTS]
        if phase == "m":
            hooks += [dict(webhook(peer, "chain", "/hangs", 30, "Ignore"), name="chain-%d.example.com" % i) for i in range(5)]
        client.must(201, "POST", registration + plural, {"metadata": {"name": "faults"}, "webhooks": hooks})


def labelled(name, fault):
    return config_map(name, {"k": "v"}, {"fault": fault})


def await_webhooks(client):
    """Both configurations are in force once a fault of each refuses a dry run."""
    for fault in ("vcloses", "mcloses"):
        for _ in range(500):
            if client.request("POST", CONFIG_MAPS + "?dryRun=All", labelled("probe", fault))[0] == 500:
                break
        else:
            raise AssertionError("webhooks are not there")


def others_do_not_wait(server, client, peer, fault):
    """While one request hangs in a webhook, other writes and reads go on."""
    answers = []
    hanging = threading.Thread(target=lambda: answers.append(Client(server).request("POST", CONFIG_MAPS, labelled("held-" + fault, fault))))
    before = len(peer.called)
    hanging.start()
    while len(peer.called) == before:
        client.must(200, "GET", "/version")
    for i in range(20):
        client.must(201, "POST", CONFIG_MAPS, config_map("free-%s-%d" % (fault, i), {}))
        client.must(200, "GET", CONFIG_MAPS)
    check("others go on while %s hangs" % fault, hanging.is_alive() and not answers, answers)
    RELEASED.set()
    hanging.join(60)
    check("%s goes on when it is answered" % fault, answers and answers[0][0] == 201, answers)
    RELEASED.clear()


def one_deadline(client, peer):
    """Webhooks that fail open share the request's time: the first uses it up, the others are not called."""
    before = len(peer.called)
    status, answer = client.request("POST", CONFIG_MAPS + "?timeout=1s", labelled("chain", "chain"))
    # The timeout filter and the chain answer at the same moment, each in its own words.
    check("one deadline for the chain", status == 504 and "request did not complete within" in str(answer), (status, answer))
    check("one call of the chain", len(peer.called) - before == 1, peer.called[before:])


def authorization_is_cancelled(binary, folder):
    """A client that leaves during its authorization webhook call: the call ends at once, not with the webhook's timeout of 30 s."""
    asked, ended = threading.Event(), threading.Event()

    def hang(connection, review):
        asked.set()
        try:
            connection.recv(1)  # until the server hangs up
        finally:
            ended.set()
    peer = FaultyPeer(folder, {"/authorize": hang})
    config = os.path.join(folder, "authorization.json")
    with open(config, "w") as f:
        json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                   "clusters": [{"name": "c", "cluster": {"server": peer.url + "/authorize", "certificate-authority-data": peer.ca_bundle}}],
                   "users": [{"name": "u", "user": {}}]}, f)
    server = Server(binary, folder, flags=["--authorization-mode=RBAC,Webhook", "--authorization-webhook-config-file=" + config]).start()
    for verb, target in (("a request", "/api/v1/namespaces/default/pods"), ("a watch", "/api/v1/namespaces/default/pods?watch=1")):
        asked.clear()
        ended.clear()
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with context.wrap_socket(socket.create_connection(("127.0.0.1", server.port))) as client:  # anonymous: only the webhook could allow it
            client.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % target.encode())
            check(verb + " is asked about", asked.wait(20))
        check("the call for %s ends when its client leaves" % verb, ended.wait(15))
    server.stop()
    peer.close()


def main():
    binary, folder = sys.argv[1], sys.argv[2]
    shutil.rmtree(folder, ignore_errors=True)
    peer = FaultyPeer(folder, {path: fault for path, (fault, _) in FAULTS.items()})
    server = Server(binary, folder, in_memory=True).start()
    try:
        client = Client(server)
        install(client, peer)
        await_webhooks(client)
        memory = server.memory_kb("VmHWM")
        for phase in ("v", "m"):
            for path, (_, text) in FAULTS.items():
                if text is None:
                    continue
                fault = phase + path[1:]
                status, answer = client.request("POST", CONFIG_MAPS, labelled("x", fault))
                message = answer.get("message", "")
                begin = 'Internal error occurred: failed calling webhook "%s.example.com": failed to call webhook: ' % fault
                wanted = text % (peer.url + path + "?timeout=1s") if "%s" in text else text
                check(fault, status == 500 and message.startswith(begin) and wanted in message, (status, message[:500]))
        grown = server.memory_kb("VmHWM") - memory
        check("memory stays bounded", grown < MEMORY_MAX_KB, "%d KiB more" % grown)
        for fault in ("vheld", "mheld"):
            others_do_not_wait(server, client, peer, fault)
        one_deadline(client, peer)
        client.close()
    finally:
        RELEASED.set()
        server.stop()
        peer.close()
    authorization_is_cancelled(binary, os.path.join(folder, "authorization"))
    print("failed: " + "; ".join(FAILED) if FAILED else "every fault is contained")
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
