#!/usr/bin/env python3
"""A real kube-apiserver, then Keelson, then the real server again, on one etcd. usage: swap_test.py KEELSON WORK_FOLDER BIN_FOLDER
[--encrypted KMS_TEST_PLUGIN] [--per-resource N] [--keep]

Each server finds what the other left, object by object, and writes what the other then finds. Byte compatibility is asked of the
servers themselves: an update that changes nothing is not written when the bytes that it would write are those that lie there, so after
PUTting every object unchanged no resourceVersion and no value in etcd may have moved. The objects are those that the recordings
create (KEELSON_CORPUS, by default test/recordings/corpus) and custom resources; the fixtures of the roundtrip set (KEELSON_SUITES) are put into etcd
as they are, and both servers must show each of them alike.

--encrypted: the same with an EncryptionConfiguration in which every resource is sealed, by one or another of the providers.
"""
import base64
import collections
import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "test", "system"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, Server, free_port, skip  # noqa: E402
from rig import RealPair, arguments_of, end, parser_of  # noqa: E402

THREADS = 4
UNSETTLED = "/swap-r-0/"
# Keys under which running servers write about themselves.
OF_SERVERS = ("/leases/kube-system/", "/masterleases/", "/peerserverleases/", "extension-apiserver-authentication", "/flowschemas/", "/prioritylevelconfigurations/")
# Fixtures that hold what no server stores: fields that say the same contradict each other, or what is completed or dropped before an object is
# stored is not. kube-apiserver makes something of these fields when it reads them; everything else must be shown alike.
SAME_ACCOUNT = (r"(\.\w+)*\.spec\.serviceAccount", "serviceAccount and serviceAccountName differ")
ODD = {"nodes": (r"\.spec\.podCIDRs?(\[0\])?", "podCIDR and the first of podCIDRs differ"),
       "daemonsets": (r"\.metadata\.annotations.*|" + SAME_ACCOUNT[0], "templateGeneration without its annotation; " + SAME_ACCOUNT[1]),
       "deployments": SAME_ACCOUNT, "replicasets": SAME_ACCOUNT, "cronjobs": SAME_ACCOUNT,
       "podtemplates": SAME_ACCOUNT, "replicationcontrollers": SAME_ACCOUNT,
       "jobs": (r"\.metadata\.selfLink|" + SAME_ACCOUNT[0], "a selfLink, which is stored nowhere; " + SAME_ACCOUNT[1]),
       "namespaces": (r"\.metadata\.selfLink", "a selfLink, which is stored nowhere"), "persistentvolumeclaims": (r"\.metadata\.selfLink", "a selfLink, which is stored nowhere"),
       "pods": (r"\.status\.podIPs\[0\]\.ip|.*\.resources\.requests.*|" + SAME_ACCOUNT[0], "podIP and the first of podIPs differ, limits without requests; " + SAME_ACCOUNT[1]),
       "secrets": (r"\.stringData|\.data\.stringDataKey", "stringData, which becomes data before it is stored")}
# Webhooks and policies come last, so that they do not affect our writes.
LAST = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "apiservices", "resourcequotas", "limitranges")
ENCRYPTION = """apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets, configmaps]
  providers: [{aesgcm: {keys: [{name: key2, secret: MDEyMzQ1Njc4OWFiY2RlZg==}, {name: key1, secret: ZmVkY2JhOTg3NjU0MzIxMA==}]}}, {identity: {}}]
- resources: ['*.apps', '*.batch']
  providers: [{aescbc: {keys: [{name: k, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}}, {identity: {}}]
- resources: ['*.rbac.authorization.k8s.io', '*.networking.k8s.io']
  providers: [{secretbox: {keys: [{name: box, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}}, {identity: {}}]
- resources: [swapwidgets.swap.example.com]
  providers: [{secretbox: {keys: [{name: box, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}}, {identity: {}}]
- resources: ['*.swap.example.com']
  providers: [{aescbc: {keys: [{name: k, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}}, {identity: {}}]
- resources: ['*.*']
  providers: [{kms: {apiVersion: v2, name: plug, endpoint: 'unix://%s'}}, {identity: {}}]
"""
SEALED = (b"k8s:enc:aesgcm:v1:key2:", b"k8s:enc:aescbc:v1:k:", b"k8s:enc:secretbox:v1:box:", b"k8s:enc:kms:v2:plug:")
# Custom resources by each way of naming them in the configuration: the resource, its group, the rest.
SEALED_CUSTOM = {"/registry/swap.example.com/swapwidgets/": SEALED[2], "/registry/swap.example.com/swapthings/": SEALED[1],
                 "/registry/swaprest.example.com/": SEALED[3], "/registry/apiextensions.k8s.io/customresourcedefinitions/": SEALED[3]}


class Store:
    """etcd, and its keys and values through its JSON gateway."""

    def __init__(self, folder, programs):
        self.folder, self.programs, self.process = folder, programs, None
        self.local = threading.local()

    def start(self):
        self.client, peer = free_port(), free_port()
        self.url, peers = "http://127.0.0.1:%d" % self.client, "http://127.0.0.1:%d" % peer
        log = open(os.path.join(self.folder, "etcd.log"), "w")
        self.process = subprocess.Popen(
            [os.path.join(self.programs, "etcd"), "--data-dir=" + os.path.join(self.folder, "etcd"), "--listen-client-urls=" + self.url,
             "--advertise-client-urls=" + self.url, "--listen-peer-urls=" + peers, "--initial-advertise-peer-urls=" + peers,
             "--initial-cluster=default=" + peers, "--log-level=error"], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                self.call("range", {"key": self.b64(b"x")})
                return self
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("etcd did not start")

    @staticmethod
    def b64(raw):
        return base64.b64encode(raw).decode()

    def call(self, method, body):
        import http.client
        connection = getattr(self.local, "connection", None)
        if connection is None:
            connection = self.local.connection = http.client.HTTPConnection("127.0.0.1", self.client, timeout=60)
        try:
            connection.request("POST", "/v3/kv/" + method, json.dumps(body), {"Content-Type": "application/json"})
            return json.loads(connection.getresponse().read())
        except (http.client.HTTPException, OSError):
            self.local.connection = None
            raise

    def all(self, prefix=b"/registry/"):
        end = prefix[:-1] + bytes([prefix[-1] + 1])
        answer = self.call("range", {"key": self.b64(prefix), "range_end": self.b64(end)})
        return {base64.b64decode(kv["key"]).decode(): (base64.b64decode(kv.get("value", "")), int(kv["mod_revision"])) for kv in answer.get("kvs", [])}

    def put(self, key, value):
        self.call("put", {"key": self.b64(key.encode()), "value": self.b64(value)})

    def delete(self, key):
        self.call("deleterange", {"key": self.b64(key.encode())})

    def stop(self):
        end(self.process)


class Either:
    """kube-apiserver or Keelson with the same certificates, flags and store."""
    context = Server.context

    def __init__(self, name, binary, folder, pki, store, flags):
        self.name, self.binary, self.folder, self.pki, self.store, self.flags = name, binary, folder, pki, store, flags

    def start(self):
        path = lambda name: os.path.join(self.pki, name)  # noqa: E731
        self.port = free_port()
        log = open(os.path.join(self.folder, self.name + ".log"), "a")
        self.process = subprocess.Popen(
            [self.binary, "--etcd-servers=" + self.store.url, "--secure-port=%d" % self.port, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
             "--client-ca-file=" + path("ca.crt"), "--tls-cert-file=" + path("apiserver.crt"), "--tls-private-key-file=" + path("apiserver.key"),
             "--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + path("sa.key"),
             "--service-account-signing-key-file=" + path("sa.key"), "--authorization-mode=Node,RBAC", "--endpoint-reconciler-type=none",
             "--service-cluster-ip-range=10.0.0.0/16", "--disable-admission-plugins=ServiceAccount"] + self.flags, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        begin = time.monotonic()
        while time.monotonic() - begin < 240:
            if self.process.poll() is not None:
                raise RuntimeError("%s ended; see its log in %s" % (self.name, self.folder))
            try:
                if Client(self).request("GET", "/readyz")[0] == 200:
                    print("%s: ready after %.1f s" % (self.name, time.monotonic() - begin), flush=True)
                    return self
            except OSError:
                pass
            time.sleep(0.05)
        raise RuntimeError("%s did not become ready; see its log in %s" % (self.name, self.folder))

    def stop(self):
        end(self.process, 60)

    def each(self, items, work):
        """work(client, item) for all items, a few at a time."""
        local = threading.local()

        def run(item):
            client = getattr(local, "client", None)
            if client is None:
                client = local.client = Client(self)
            return work(client, item)
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(run, items))


def seeds(corpus, per_resource):
    """(path, body) of what the recordings create, with ${ns} and ${pfx} in them."""
    chosen, counts = [], collections.Counter()
    for path in sorted(glob.glob(os.path.join(corpus, "crud", "**", "*.json"), recursive=True)):
        with open(path) as f:
            cases = json.load(f)["cases"]
        for number, case in enumerate(cases):
            for step in case["steps"][:1]:
                request = step.get("request", {})
                resource = request.get("path", "").rsplit("/", 1)[-1]
                if request.get("method") != "POST" or step.get("response", {}).get("status") != 201 or "?" in resource or not isinstance(request.get("body"), dict):
                    continue
                if counts[path] >= per_resource or re.search(r"\$\{(?!ns\}|pfx\})", json.dumps(request)) or re.search(r"/(binding|token|eviction|bindings)$", request["path"]):
                    continue
                counts[path] += 1
                chosen.append((request["path"], request["body"], counts[path] - 1, "%d-%d" % (len(counts), number)))
    chosen.sort(key=lambda seed: seed[0].rsplit("/", 1)[-1] in LAST)
    return chosen


CUSTOM_GROUP, CUSTOM_REST = "swap.example.com", "swaprest.example.com"


def definitions():
    """One with defaults, pruning, subresources and a second version, one that keeps what it does not know."""
    spec = {"type": "object", "properties": {
        "replicas": {"type": "integer", "default": 1}, "ratio": {"type": "number"}, "port": {"x-kubernetes-int-or-string": True},
        "note": {"type": "string", "nullable": True}, "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {
            "type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "size": {"type": "integer", "default": 3}}}}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}}
    parts = {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}
    version = lambda name, stored: {"name": name, "served": True, "storage": stored, "schema": schema, "subresources": parts}  # noqa: E731
    loose = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    thing = [{"name": "v1", "served": True, "storage": True, "schema": loose}]
    for group, plural, kind, scope, versions in ((CUSTOM_GROUP, "swapwidgets", "SwapWidget", "Namespaced", [version("v1beta1", False), version("v1", True)]),
                                                 (CUSTOM_GROUP, "swapthings", "SwapThing", "Cluster", thing), (CUSTOM_REST, "swapothers", "SwapOther", "Cluster", thing)):
        yield {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": plural + "." + group}, "spec": {
            "group": group, "scope": scope, "names": {"plural": plural, "kind": kind}, "versions": versions}}


def define(server):
    client = Client(server)
    for definition in definitions():
        client.must(201, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        while client.request("GET", "/apis/%s/v1/%s" % (definition["spec"]["group"], definition["spec"]["names"]["plural"]))[0] != 200:
            time.sleep(0.1)


def custom_seeds():
    """As seeds(), of custom resources: texts, numbers and empty parts that encoders may write in more than one way."""
    specs = [{}, {"replicas": 0, "ratio": 1.0, "port": "http", "note": None, "any": {}, "parts": []},
             {"ratio": 1e21, "port": 80, "note": "<a & b>\u2028 \u00fc \t", "any": {"z": [1, 2.5, None, {"b": {}, "a": []}], "a": 9007199254740993, "unknown": True}},
             {"ratio": -0.0000001, "unknown": 1, "parts": [{"name": "b"}, {"name": "a", "size": 4}]}]
    chosen = []
    for number, spec in enumerate(specs):
        for version in ("v1", "v1beta1"):
            body = {"apiVersion": CUSTOM_GROUP + "/" + version, "kind": "SwapWidget", "metadata": {"name": "w-" + version, "labels": {"a": "b"}}, "spec": spec}
            chosen.append(("/apis/%s/%s/namespaces/${ns}/swapwidgets" % (CUSTOM_GROUP, version), body, number, "custom-%d" % number))
        for group, plural, kind in ((CUSTOM_GROUP, "swapthings", "SwapThing"), (CUSTOM_REST, "swapothers", "SwapOther")):
            body = {"apiVersion": group + "/v1", "kind": kind, "metadata": {"name": "${pfx}", "finalizers": ["swap.example.com/held"]}, "spec": spec, "more": [spec]}
            chosen.append(("/apis/%s/v1/%s" % (group, plural), body, number, "custom-%d" % number))
    return chosen


def seed(server, chosen, tag):
    """Creates them; what a server refuses because another seed is in its way is left out. Returns how many were made."""
    client = Client(server)
    spaces = ["swap-%s-%d" % (tag, i) for i in range(max(item[2] for item in chosen) + 1)]  # most are called "a"
    for space in spaces:
        client.must(201, "POST", "/api/v1/namespaces", {"metadata": {"name": space}})
    made, refused = 0, collections.Counter()
    for late in (False, True):
        part = [s for s in chosen if (s[0].rsplit("/", 1)[-1] in LAST) == late]

        def create(client, item):
            path, body, number, name = item
            text = json.dumps([path, body]).replace("${ns}", spaces[number]).replace("${pfx}", "s%s%s" % (tag, name))
            path, body = json.loads(text)
            status, answer = client.request("POST", path, body)
            return status, path, answer
        for status, path, answer in server.each(part, create):
            if status == 201:
                made += 1
            else:
                refused["%d %s: %s" % (status, path.rsplit("/", 1)[-1], str(answer.get("message", ""))[:140])] += 1
    for why, count in sorted(refused.items()):
        print("%s: left out %d: %s" % (server.name, count, why))
    return made


def resources(server):
    """(path of the collection, verbs, namespaced, group, resource) of everything that is stored and listed, each resource once."""
    client = Client(server)
    found, seen = [], set()
    groups = client.must(200, "GET", "/apis")["groups"]
    for prefix, group in [("/api/v1", "")] + [("/apis/" + v["groupVersion"], g["name"]) for g in groups for v in g["versions"]]:
        status, listed = client.request("GET", prefix)
        if status != 200:
            continue
        for item in listed["resources"]:
            if "/" in item["name"] or "list" not in item["verbs"] or (group, item["name"]) in seen or item["name"] == "componentstatuses":
                continue
            if group == "events.k8s.io":
                continue  # the same objects as core events
            seen.add((group, item["name"]))
            found.append((prefix + "/" + item["name"], tuple(item["verbs"]), item["namespaced"], group, item["name"]))
    return found


def everything(server, kinds):
    """path of the object → object, of all objects."""
    objects = {}

    def read(client, kind):
        path, verbs, namespaced, _, _ = kind
        while client.request("GET", path)[0] == 429:  # kube-apiserver, before it has listed a custom resource for the first time
            time.sleep(0.1)
        listed = client.must(200, "GET", path)
        base, plural = path.rsplit("/", 1)
        for item in listed["items"]:
            meta = item["metadata"]
            where = base + ("/namespaces/" + meta["namespace"] if namespaced else "") + "/" + plural + "/" + meta["name"]
            item["apiVersion"], item["kind"] = listed["apiVersion"], listed["kind"][:-4]
            yield where, item, verbs
    for pairs in server.each(kinds, lambda client, kind: list(read(client, kind))):
        for where, item, verbs in pairs:
            objects[where] = (item, verbs)
    return objects


def moves(path):
    """Written by a running server about itself."""
    return "/namespaces/kube-system/leases/" in path or path.endswith("/configmaps/extension-apiserver-authentication")


def lasting(path, item):
    """Flow schemas without the status, which each server rewrites now and then."""
    if "/flowschemas/" not in path and "/prioritylevelconfigurations/" not in path:
        return item
    item = dict(item, metadata={k: v for k, v in item["metadata"].items() if k not in ("managedFields", "resourceVersion")})
    item.pop("status", None)
    return item


def compare(before, after, who):
    """All earlier objects must exist unchanged."""
    wrong = []
    for path, (item, _) in before.items():
        if moves(path):
            continue
        if path not in after:
            wrong.append("%s lost %s" % (who, path))
        elif lasting(path, after[path][0]) != lasting(path, item):
            wrong.append("%s shows %s differently: %s" % (who, path, difference(lasting(path, item), lasting(path, after[path][0]))))
    return wrong


def differences(a, b, at=""):
    """Differences of two JSON values: path, value in a, value in b."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(set(a) | set(b)):
            if key not in a or key not in b:
                yield at + "." + key, a.get(key, "(absent)"), b.get(key, "(absent)")
            else:
                yield from differences(a[key], b[key], at + "." + key)
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            yield from differences(x, y, "%s[%d]" % (at, i))
    elif a != b:
        yield at, a, b


def difference(a, b):
    """The first of them, as text."""
    return next(("%s: %.300s, was %.300s" % (at, json.dumps(y), json.dumps(x)) for at, x, y in differences(a, b)), "no difference")


def settle(server, objects):
    """PUTs every object as it is, but for those of one namespace; returns the resources of which it wrote any.

    kube-apiserver stores some kinds before their defaults are complete and completes them with the next write. The namespace that is
    left out keeps such objects for Keelson to read.
    """
    def put(client, pair):
        path, (item, verbs) = pair
        if "update" not in verbs or moves(path) or UNSETTLED in path or foreign_fields(item):
            return None
        status, answer = client.request("PUT", path, item)
        return path.split("/")[-2] if status == 200 and answer["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"] else None
    return {resource for resource in server.each(sorted(objects.items()), put) if resource}


def foreign_fields(item):
    """An event made through events.k8s.io: read as a core one, kube-apiserver drops its managed fields with the next write."""
    group = item["apiVersion"].rpartition("/")[0]
    return any(entry.get("apiVersion", "").rpartition("/")[0] != group for entry in item["metadata"].get("managedFields", []))


def put_unchanged(server, store, objects, unsettled=()):
    """PUTs every object as it is; nothing may be written."""
    wrong, done = [], 0
    before = store.all()

    def put(client, pair):
        path, (item, verbs) = pair
        if "update" not in verbs or moves(path) or foreign_fields(item) or (UNSETTLED in path and path.split("/")[-2] in unsettled):
            return None
        status, answer = client.request("PUT", path, item)
        if status == 409 and lasting(path, item) is not item:
            return None  # its status was written meanwhile
        if status != 200:
            return "%s refuses %s unchanged: %d %s" % (server.name, path, status, str(answer.get("message", ""))[:300])
        if answer["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
            return "%s wrote %s although nothing changed%s" % (server.name, path, changed(path, item, answer))
        return ""
    for answer in server.each(sorted(objects.items()), put):
        if answer is not None:
            done += 1
        if answer:
            wrong.append(answer)
    after = store.all()
    for key, (value, _) in before.items():
        if any(part in key for part in OF_SERVERS):
            continue
        if key in after and after[key][0] != value:
            wrong.append("%s changed the bytes of %s: %r, were %r" % (server.name, key, *around(after[key][0], value)))
    return wrong, done


def changed(path, before, after):
    before, after = json.loads(json.dumps(before)), json.loads(json.dumps(after))
    for item in (before, after):
        item["metadata"].pop("resourceVersion", None)
    return "" if before == after else ", and it differs: " + difference(before, after)


def around(a, b):
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return a[max(0, at - 60):at + 60], b[max(0, at - 60):at + 60]


def annotate(server, objects, tag):
    """Changes every third object, so that both servers have written to what the other made."""
    chosen = [path for i, path in enumerate(sorted(objects)) if i % 3 == 0 and "patch" in objects[path][1] and not moves(path)]

    def patch(client, path):
        return client.request("PATCH", path, {"metadata": {"annotations": {"swap": tag}}}, content_type="application/merge-patch+json")[0]
    return sum(status == 200 for status in server.each(chosen, patch))


def fixtures(suites, kinds, stored_versions):
    """key and bytes of the roundtrip set's objects in the versions that are stored."""
    by_kind = {}
    for path in glob.glob(os.path.join(suites, "roundtrip", "*.pb")):
        group, version, kind = re.match(r"(.*)\.(v\d\w*)\.(\w+)\.pb$", os.path.basename(path)).groups()
        by_kind[("" if group == "core" else group, version, kind)] = path
    found = []
    for (group, resource), (prefix, version, kind, namespaced) in stored_versions.items():
        path = by_kind.get((group, version, kind))
        if path is None:
            continue
        with open(path, "rb") as f:
            raw = f.read()
        with open(path[:-3] + ".json") as f:
            meta = json.load(f)["metadata"]
        name, space = meta["name"], meta.get("namespace", "")
        key = "/registry/" + prefix + "/" + (space + "/" if namespaced else "") + name
        base, plural = next(k[0] for k in kinds if (k[3], k[4]) == (group, resource)).rsplit("/", 1)
        found.append((key, raw, base + ("/namespaces/" + space if namespaced else "") + "/" + plural + "/" + name, group, resource))
    return found


def type_meta(value):
    """(apiVersion, kind) of a stored protobuf envelope."""
    if not value.startswith(b"k8s\0\n"):
        return None
    size = value[7]
    return value[8:8 + size].decode(), value[10 + size:10 + size + value[9 + size]].decode()


def stored_as(values, kinds, objects):
    """(group, resource) → (prefix of the key, version, kind, namespaced), read from what the real server stored in protobuf."""
    layout = {}
    for path, (item, _) in objects.items():
        kind = next((k for k in kinds if path.startswith(k[0].rsplit("/", 1)[0] + "/") and path.split("/")[-2] == k[4]), None)
        if kind is None or (kind[3], kind[4]) in layout:
            continue
        meta = item["metadata"]
        tail = "/" + (meta["namespace"] + "/" if kind[2] else "") + meta["name"]
        for key, (value, _) in values.items():
            found = type_meta(value) if key.endswith(tail) else None
            if found and found[1] == item["kind"] and found[0].rpartition("/")[0] == kind[3]:
                layout[(kind[3], kind[4])] = (key[len("/registry/"):-len(tail)], found[0].rsplit("/", 1)[-1], item["kind"], kind[2])
                break
    return layout


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--encrypted", metavar="KMS_TEST_PLUGIN")
    parser.add_argument("--per-resource", type=int, default=8)
    parser.add_argument("--keep", action="store_true")
    a = arguments_of(parser)
    corpus = os.environ.get("KEELSON_CORPUS") or os.path.join(ROOT, "test", "recordings", "corpus")
    suites = os.environ.get("KEELSON_SUITES") or os.path.join(os.path.dirname(ROOT), "shared", "testdata")
    if not os.path.isdir(os.path.join(corpus, "crud")):
        skip("no recordings in %s to take objects from: set KEELSON_CORPUS" % corpus)
    for name in ("etcd", "kube-apiserver"):
        if not os.path.exists(os.path.join(a.programs, name)):
            skip("%s is not in %s" % (name, a.programs))
    folder = a.folder
    authority = RealPair(folder, a.programs)
    authority.certificates()
    pki = authority.pki
    flags, plugin = [], None
    store = Store(folder, a.programs).start()
    wrong, running = [], None
    try:
        if a.encrypted:
            socket = "/tmp/keelson-swap-%d.sock" % os.getpid()  # a socket's path must be short
            plugin = subprocess.Popen([a.encrypted, socket, "key-1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            plugin.stdout.readline()
            config = os.path.join(folder, "encryption.yaml")
            with open(config, "w") as f:
                f.write(ENCRYPTION % socket)
            flags = ["--encryption-provider-config=" + config]
        real = Either("kube-apiserver", os.path.join(a.programs, "kube-apiserver"), folder, pki, store, flags)
        ours = Either("keelson", a.keelson, folder, pki, store, flags)
        chosen = custom_seeds() + seeds(corpus, a.per_resource)

        running = real.start()
        define(real)
        kinds = resources(real)
        made = seed(real, chosen, "r")
        # The job of the namespace that is left out is the only one without labels of its own, which is what its defaults complete.
        unsettled = settle(real, everything(real, kinds)) | {"jobs"}
        first = everything(real, kinds)
        layout = stored_as(store.all(), kinds, first)
        real.stop()
        print("kube-apiserver: made %d objects; %d objects of %d resources, %d keys" % (made, len(first), len(kinds), len(store.all())), flush=True)

        running = ours.start()
        mine = everything(ours, kinds)
        wrong += compare(first, mine, "Keelson")
        problems, done = put_unchanged(ours, store, mine, unsettled)
        wrong += problems
        print("keelson: %d objects as they were, %d put unchanged, %d problems so far" % (len(mine), done, len(wrong)), flush=True)
        made = seed(ours, chosen, "k")
        mine_unsettled = settle(ours, everything(ours, kinds))
        if not mine_unsettled <= unsettled:
            wrong.append("Keelson completes %s with the next write, kube-apiserver does not" % sorted(mine_unsettled - unsettled))
        touched = annotate(ours, first, "keelson")
        second = everything(ours, kinds)
        ours.stop()
        print("keelson: made %d objects, changed %d" % (made, touched), flush=True)

        running = real.start()
        again = everything(real, kinds)
        wrong += compare(second, again, "kube-apiserver")
        problems, done = put_unchanged(real, store, again, unsettled)
        wrong += problems
        print("kube-apiserver: %d objects as they were, %d put unchanged, %d problems so far" % (len(again), done, len(wrong)), flush=True)
        if a.encrypted:
            values = store.all()
            sealed = collections.Counter(next((p for p in SEALED if value.startswith(p)), b"plain").decode() for value, _ in values.values())
            print("in etcd: " + ", ".join("%d %s" % (count, how) for how, count in sorted(sealed.items())))
            plain = [key for key, (value, _) in values.items() if not value.startswith(b"k8s:enc:")]
            wrong += ["%s is not sealed" % key for key in plain if not any(part in key for part in OF_SERVERS) and "/ranges/" not in key]
            for prefix, how in SEALED_CUSTOM.items():
                begins = [value.startswith(how) for key, (value, _) in values.items() if key.startswith(prefix)]
                print("in etcd: %d keys below %s, %d sealed by %s" % (len(begins), prefix, sum(begins), how.decode()))
                if not begins or not all(begins):
                    wrong.append("keys below %s are not all sealed by %s" % (prefix, how.decode()))
        real.stop()

        if os.path.isdir(os.path.join(suites, "roundtrip")) and not a.encrypted:
            items = fixtures(suites, kinds, layout)
            for key, raw, _, _, _ in items:
                store.put(key, raw)
            shown = {}
            for server in (real, ours):
                running = server.start()
                shown[server.name] = {item[0]: (status, answer) for item, (status, answer) in zip(items, server.each(items, lambda client, item: client.request("GET", item[2])))}
                server.stop()
            same = but = 0
            for key, _, path, group, resource in items:
                theirs, mine = shown["kube-apiserver"][key], shown["keelson"][key]
                where = list(differences(theirs[1], mine[1]))
                odd, reason = ODD.get(resource, ("", ""))
                if theirs[0] != 200 or mine[0] != 200 or not all(re.fullmatch(odd, at) for at, _, _ in where):
                    unlike = [found for found in where if not re.fullmatch(odd, found[0])]
                    wrong.append("the fixture %s: kube-apiserver answers %d, Keelson %d: %.500s" % (path, theirs[0], mine[0], unlike))
                elif where:
                    but += 1
                    print("the fixture of %s but for %s: %s" % (resource, ", ".join(at for at, _, _ in where)[:200], reason))
                else:
                    same += 1
            print("roundtrip set: of %d stored kinds %d shown alike, %d but for fields that contradict each other" % (len(items), same, but), flush=True)
    finally:
        if running is not None:
            running.stop()
        if plugin is not None:
            plugin.stdin.close()
            plugin.wait()
            if os.path.exists(socket):
                os.remove(socket)
        store.stop()
    for line in wrong[:100]:
        print("FAIL: " + line)
    print("swap: %s" % ("passed" if not wrong else "%d problems" % len(wrong)))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
