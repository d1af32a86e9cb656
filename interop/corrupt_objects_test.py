#!/usr/bin/env python3
"""Objects that cannot be read, and the way to delete them: kube-apiserver and Keelson on one etcd get the same requests. usage:
corrupt_objects_test.py KEELSON WORK_FOLDER BIN_FOLDER

Both run with AllowUnsafeMalformedObjectDeletion. Bytes that are not an object are put into etcd before they start and while they run; every
answer of the two (code and Status, without what differs between any two requests) must be the same, and so must what is left in etcd.
"""
import http.client
import json
import os
import re
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rig import RealPair, arguments_of, parser_of  # noqa: E402
from swap_test import Either, Store  # noqa: E402

OPTION = "ignoreStoreReadErrorWithClusterBreakingPotential"
GARBAGE = b"this is no object"
TRUNCATED = b"k8s\x00\n\x0f\n\x02v1\x12\tConfigMap\x12\xff"
SEALED = b"k8s:enc:aesgcm:v1:key1:0123456789"
READER = {"Impersonate-User": "jane", "Impersonate-Group": "system:authenticated"}
MAPS = "/api/v1/namespaces/default/configmaps"
KEYS = "/registry/configmaps/default/"
# Values that differ between any two requests.
WORDS = [(re.compile(r'"retryAfterSeconds": ?\d+'), '"retryAfterSeconds":0'), (re.compile(r"revision=\d+"), "revision=N"), (re.compile(r"resourceVersion\": \"\d+"), "resourceVersion\": \"N")]


def ask(server, method, path, body=None, headers=None):
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=30, context=server.context())
    fields = {"Accept": "application/json", **({"Content-Type": "application/json"} if body is not None else {}), **(headers or {})}
    connection.request(method, path, json.dumps(body) if body is not None else None, fields)
    response = connection.getresponse()
    if "watch=" in path:
        text = response.readline().decode() if response.status == 200 else response.read().decode()
    else:
        text = response.read().decode()
    connection.close()
    for pattern, word in WORDS:
        text = pattern.sub(word, text)
    try:
        return response.status, json.loads(text)
    except ValueError:
        return response.status, text


class Comparison:
    def __init__(self, store, servers):
        self.store, self.servers, self.passed, self.failed = store, servers, 0, 0

    def __call__(self, name, method, path, body=None, headers=None, put=None, left=None, settle=0.0, only=None):
        """The same question to both. put: {key: bytes} to write before each; left: keys to look for in etcd afterwards."""
        answers = []
        for server in self.servers:
            for key, value in (put or {}).items():
                self.store.put(key, value)
            if settle:
                time.sleep(settle)
            status, answer = ask(server, method, path, body, headers)
            if only:
                answer = only(answer)
            there = self.store.all(KEYS.encode()) if left else {}
            answers.append((status, answer, [key in there for key in left or []]))
        if all(answer == answers[0] for answer in answers):
            self.passed += 1
            if VERBOSE:
                print("ok   %s: %s" % (name, json.dumps(answers[0])[:700]))
            return
        self.failed += 1
        print("FAIL %s: %s %s" % (name, method, path))
        for server, answer in zip(self.servers, answers):
            print("     %-14s %s" % (server.name, json.dumps(answer)[:1500]))


def run(compare):
    bad, good = MAPS + "/bad", MAPS + "/good"
    # From before the start.
    compare("get", "GET", bad)
    compare("get, any age", "GET", bad + "?resourceVersion=0")
    compare("list", "GET", MAPS)
    compare("list in pages", "GET", MAPS + "?limit=2")
    compare("list, any age", "GET", MAPS + "?resourceVersion=0")
    compare("list of one name", "GET", MAPS + "?fieldSelector=metadata.name%3Dbad")
    compare("watch", "GET", MAPS + "?watch=1&timeoutSeconds=2")
    compare("update", "PUT", bad, {"metadata": {"name": "bad", "namespace": "default"}})
    compare("sealed, update", "PUT", MAPS + "/sealed", {"metadata": {"name": "sealed", "namespace": "default"}})
    compare("patch", "PATCH", bad, {"data": {"a": "b"}}, headers={"Content-Type": "application/merge-patch+json"})
    compare("create over it", "POST", MAPS, {"metadata": {"name": "bad"}})
    compare("plain delete", "DELETE", bad)
    compare("sealed, get", "GET", MAPS + "/sealed")
    compare("sealed, plain delete", "DELETE", MAPS + "/sealed")
    compare("truncated, get", "GET", MAPS + "/truncated")
    for name, extra in (("dry run", {"dryRun": ["All"]}), ("policy", {"propagationPolicy": "Background"}), ("orphan", {"orphanDependents": True}),
                        ("grace", {"gracePeriodSeconds": 0}), ("preconditions", {"preconditions": {"uid": "x"}}), ("preconditions, empty", {"preconditions": {}}),
                        ("all", {"dryRun": ["All"], "propagationPolicy": "Background", "gracePeriodSeconds": 1, "preconditions": {"uid": "x"}})):
        compare("with " + name, "DELETE", bad, {"kind": "DeleteOptions", "apiVersion": "v1", OPTION: True, **extra})
    compare("dry run in the query", "DELETE", bad + "?dryRun=All&" + OPTION + "=true")
    compare("readable object", "DELETE", good + "?" + OPTION + "=true")
    compare("readable object, false", "DELETE", good + "?dryRun=All&" + OPTION + "=false", only=lambda answer: answer.get("kind"))
    compare("no such object", "DELETE", MAPS + "/absent?" + OPTION + "=true")
    compare("collection", "DELETE", MAPS + "?" + OPTION + "=true")
    compare("collection, body", "DELETE", MAPS, {"kind": "DeleteOptions", "apiVersion": "v1", OPTION: True})
    compare("may not delete", "DELETE", bad + "?" + OPTION + "=true", headers={"Impersonate-User": "nobody"})
    compare("may delete only", "DELETE", bad + "?" + OPTION + "=true", headers=READER)
    compare("eviction", "POST", "/api/v1/namespaces/default/pods/p/eviction",
            {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p", "namespace": "default"}, "deleteOptions": {OPTION: True}})
    compare("delete", "DELETE", bad + "?" + OPTION + "=true", put={KEYS + "bad": GARBAGE}, left=[KEYS + "bad"])
    compare("delete sealed, body", "DELETE", MAPS + "/sealed", {"kind": "DeleteOptions", "apiVersion": "v1", OPTION: True}, put={KEYS + "sealed": SEALED}, left=[KEYS + "sealed"])
    compare("delete truncated", "DELETE", MAPS + "/truncated?" + OPTION + "=true", put={KEYS + "truncated": TRUNCATED}, left=[KEYS + "truncated"])
    compare("gone", "GET", bad)
    # The caches come back by themselves.
    end = time.monotonic() + 30
    while time.monotonic() < end and any(ask(server, "GET", MAPS)[0] != 200 for server in compare.servers):
        time.sleep(0.2)
    names = lambda answer: [item["metadata"]["name"] for item in answer.get("items", [])]  # noqa: E731
    compare("list again", "GET", MAPS, only=names)
    # While they run.
    compare("list, new garbage", "GET", MAPS + "?limit=500", put={KEYS + "bad2": GARBAGE}, settle=3)
    compare("list without limit, new garbage", "GET", MAPS, settle=1)
    compare("delete new garbage", "DELETE", MAPS + "/bad2?" + OPTION + "=true", put={KEYS + "bad2": GARBAGE}, left=[KEYS + "bad2"])
    many = {KEYS + "m%03d" % i: GARBAGE for i in range(103)}
    compare("list with many", "GET", MAPS + "?limit=500", put=many, settle=1)
    for key in many:
        compare.store.delete(key)
    # Kinds without a cache and without a namespace.
    events = "/api/v1/namespaces/default/events"
    compare("event, list", "GET", events, put={"/registry/events/default/bad": GARBAGE}, settle=0.5)
    compare("event, get", "GET", events + "/bad")
    compare("event, watch", "GET", events + "?watch=1&timeoutSeconds=2")
    compare("event, delete", "DELETE", events + "/bad?" + OPTION + "=true", put={"/registry/events/default/bad": GARBAGE})
    compare("cluster role, get", "GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/bad", put={"/registry/clusterroles/bad": GARBAGE})
    compare("cluster role, delete", "DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterroles/bad?" + OPTION + "=true", put={"/registry/clusterroles/bad": GARBAGE})
    compare("namespace, delete", "DELETE", "/api/v1/namespaces/bad?" + OPTION + "=true", put={"/registry/namespaces/bad": GARBAGE})
    compare("pod, delete", "DELETE", "/api/v1/namespaces/default/pods/bad?" + OPTION + "=true", put={"/registry/pods/default/bad": GARBAGE})
    compare("service, delete", "DELETE", "/api/v1/namespaces/default/services/bad?" + OPTION + "=true", put={"/registry/services/specs/default/bad": GARBAGE})


def main():
    global VERBOSE
    parser = parser_of(__doc__)
    parser.add_argument("-v", action="store_true", help="print every answer")
    parser.add_argument("--real", action="store_true", help="only kube-apiserver")
    arguments = arguments_of(parser)
    VERBOSE, folder = arguments.v, arguments.folder
    os.makedirs(folder)
    pair = RealPair(os.path.join(folder, "pki-of-both"), arguments.programs)
    pair.certificates()
    store = Store(folder, arguments.programs).start()
    gate = ["--feature-gates=AllowUnsafeMalformedObjectDeletion=true", "--storage-initialization-timeout=5s"]
    servers = [Either("kube-apiserver", os.path.join(arguments.programs, "kube-apiserver"), folder, pair.pki, store, gate)]
    try:
        # The default objects are there before anything is broken.
        servers[0].start()
        for body in ({"metadata": {"name": "good"}, "data": {"a": "b"}},):
            ask(servers[0], "POST", MAPS, body)
        ask(servers[0], "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
            {"metadata": {"name": "deleter"}, "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "delete"]}]})
        ask(servers[0], "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
            {"metadata": {"name": "deleter"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "deleter"},
             "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}]})
        store.put(KEYS + "bad", GARBAGE)
        store.put(KEYS + "sealed", SEALED)
        store.put(KEYS + "truncated", TRUNCATED)
        time.sleep(3)
        if not arguments.real:
            servers.append(Either("keelson", arguments.keelson, folder, pair.pki, store, gate))
            servers[1].start()
            # kube-apiserver keeps what it had for half a minute after it could not read a change, then lists and fails; ours began so.
            until = time.monotonic() + 60
            while "failed to list" not in json.dumps(ask(servers[0], "GET", MAPS + "?resourceVersion=0")) and time.monotonic() < until:
                time.sleep(0.2)
        compare = Comparison(store, servers)
        run(compare)
    finally:
        for server in servers:
            if getattr(server, "process", None):
                server.stop()
        store.stop()
    print("%d passed, %d failed" % (compare.passed, compare.failed))
    return 1 if compare.failed else 0


if __name__ == "__main__":
    sys.exit(main())
