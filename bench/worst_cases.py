#!/usr/bin/env python3
"""CPU and peak memory of one request in the worst cases that are known, sent to the whole server.
usage: bench/worst_cases.py KEELSON WORK_FOLDER [--only TEXT] [--beside BIN_FOLDER]

Each case is sent at half and at full size (3 MiB, one header block, or as much as an object may have). Printed: the answer's status, CPU of the server while it
answered, growth of the peak of its resident memory, and the slope between the sizes (1: linear, 2: quadratic; none where the smaller one took too little). With
--beside, the same of kube-apiserver + etcd. Exit code 1 when one took Keelson more than 0.5 s of CPU.
"""
import argparse
import http.client
import json
import math
import os
import shutil
import sys
import time

sys.dont_write_bytecode = True
top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(top, "interop"), os.path.join(top, "test", "system")]
from harness import Client  # noqa: E402
from rig import Keelson, RealPair  # noqa: E402

CPU_MAX = 0.5
SLOPE_FROM = 0.04  # seconds of CPU: less is mostly the clock's step
BODY = 3 * 1024 * 1024
MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CUSTOM = "/apis/worst.example.com/v1/namespaces/default/worsts"
MERGE, STRATEGIC, JSON_PATCH, APPLY = ("application/%s+%s" % kind for kind in (("merge-patch", "json"), ("strategic-merge-patch", "json"), ("json-patch", "json"), ("apply-patch", "yaml")))
CASES = {}
http.client._MAXHEADERS = 100_000  # a Warning for each unknown field


def case(title):
    """A case: function(client, size) prepares the server, and returns the arguments of the request. `size` is 0.5 or 1."""
    def add(function):
        CASES[title] = function
        return function
    return add


def compact(value):
    return json.dumps(value, separators=(",", ":"))


def fresh(client, collection, body):
    client.request("DELETE", collection + "/" + body["metadata"]["name"] + "?gracePeriodSeconds=0")
    status, answer = client.request("POST", collection + "?fieldManager=first", compact(body))
    if status != 201:
        raise AssertionError("%s: %d %s" % (collection, status, str(answer)[:500]))
    return collection + "/" + body["metadata"]["name"]


def config_map(data, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": dict(metadata, name="worst"), "data": data}


def keys(count):
    return {"k%05d" % number: "" for number in range(count)}


def deployment(count):
    """A deployment with `count` environment variables."""
    container = {"name": "c", "image": "i", "env": [{"name": "E%05d" % number} for number in range(count)]}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "worst"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}}}


def define(client, schema, extra=None):
    """Installs the definition of `worsts` again, with this schema for spec."""
    client.request("DELETE", DEFINITIONS + "/worsts.worst.example.com")
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}}, **(extra or {})}
    body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "worsts.worst.example.com"}, "spec": {
        "group": "worst.example.com", "scope": "Namespaced", "names": {"plural": "worsts", "kind": "Worst"}, "versions": [version]}}
    await_status(client, 404, DEFINITIONS + "/worsts.worst.example.com")
    client.must(201, "POST", DEFINITIONS, body)
    await_status(client, 200, CUSTOM)


def await_status(client, status, path):
    deadline = time.monotonic() + 30
    while client.request("GET", path)[0] != status:
        if time.monotonic() > deadline:
            raise AssertionError("%s is not %d" % (path, status))
        time.sleep(0.05)


def custom(spec):
    return compact({"apiVersion": "worst.example.com/v1", "kind": "Worst", "metadata": {"generateName": "worst-"}, "spec": spec})


def items(schema, **rest):
    return {"type": "object", "properties": {"list": dict({"type": "array", "items": schema}, **rest)}}


# ---- decoding

@case("JSON: 3 MiB of brackets")
def _(client, size):
    return "POST", MAPS, "[" * int(BODY * size)


@case("JSON: lists 9,000 deep in unknown fields, again and again")
def _(client, size):
    deep = "[" * 9000 + "]" * 9000
    return "POST", MAPS + "?dryRun=All", '{"metadata":{"name":"x"},' + ",".join('"u%d":%s' % (number, deep) for number in range(int(170 * size))) + "}"


@case("JSON: 150,000 unknown fields, strict")
def _(client, size):
    return "POST", MAPS + "?fieldValidation=Strict&dryRun=All", '{"metadata":{"name":"x"},' + ",".join('"unknown%d":1' % number for number in range(int(150_000 * size))) + "}"


@case("JSON: one label 330,000 times, strict")
def _(client, size):
    return "POST", MAPS + "?fieldValidation=Strict&dryRun=All", '{"metadata":{"name":"x","labels":{' + ",".join(['"a":"b"'] * int(330_000 * size)) + "}}}"


@case("YAML: 1.5 million items below 90 flow brackets")
def _(client, size):
    return "POST", MAPS, "a: " + "[" * 90 + "1," * int(1_500_000 * size) + "1" + "]" * 90, "application/yaml"


@case("YAML: 180,000 labels")
def _(client, size):
    return "POST", MAPS, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n  labels:\n" + "".join("    k%06d: v\n" % number for number in range(int(180_000 * size))), "application/yaml"


@case("YAML: aliases of aliases")
def _(client, size):
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"] + ["a%d: &a%d [%s]" % (n, n, ",".join(["*a%d" % (n - 1)] * 10)) for n in range(1, int(12 * size))]
    return "POST", MAPS, "\n".join(lines), "application/yaml"


@case("protobuf: a million unknown fields")
def _(client, size):
    return "POST", MAPS, b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12" + varint(int(BODY * size) // 2 * 2) + b"\x78\x01" * (int(BODY * size) // 2), "application/vnd.kubernetes.protobuf"


def varint(number):
    text = b""
    while number > 127:
        text += bytes([number & 127 | 128])
        number >>= 7
    return text + bytes([number])


# ---- validation of built-in kinds

@case("200,000 labels, each with two errors")
def _(client, size):
    return "POST", MAPS, compact(config_map({}, labels={"!%d" % number: "!" for number in range(int(200_000 * size))}))


@case("pod with 100,000 containers of one name")
def _(client, size):
    containers = [{"name": "c", "image": "i"}] * int(100_000 * size)
    return "POST", "/api/v1/namespaces/default/pods", compact({"metadata": {"name": "x"}, "spec": {"containers": containers}})


@case("40,000 owner references, two of them controllers")
def _(client, size):
    owners = [{"apiVersion": "v1", "kind": "K", "name": "n%d" % number, "uid": "u%d" % (number % 7), "controller": number < 2} for number in range(int(40_000 * size))]
    return "POST", MAPS, compact(config_map({}, ownerReferences=owners))


@case("network policy with 50,000 peers and as many exceptions")
def _(client, size):
    peers = [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.0.0.0/8"]}}] * int(50_000 * size)
    return "POST", "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies", compact({"metadata": {"name": "x"}, "spec": {"podSelector": {}, "ingress": [{"from": peers}]}})


# ---- patches

@case("merge patch: 80,000 null members of as many")
def _(client, size):
    count = int(80_000 * size)
    return "PATCH", fresh(client, MAPS, config_map(keys(count))), compact({"data": dict.fromkeys(keys(count))}), MERGE


@case("strategic merge patch: 20,000 deletions from a list of maps")
def _(client, size):
    count = int(20_000 * size)
    gone = [{"$patch": "delete", "name": "E%05d" % number} for number in range(count)]
    path = fresh(client, DEPLOYMENTS, deployment(count))
    return "PATCH", path, compact({"spec": {"template": {"spec": {"containers": [{"name": "c", "env": gone}]}}}}), STRATEGIC


@case("strategic merge patch: order of 20,000 elements reversed")
def _(client, size):
    count = int(20_000 * size)
    order = [{"name": "E%05d" % number} for number in reversed(range(count))]
    path = fresh(client, DEPLOYMENTS, deployment(count))
    return "PATCH", path, compact({"spec": {"template": {"spec": {"containers": [{"name": "c", "$setElementOrder/env": order, "env": order}]}}}}), STRATEGIC


@case("JSON patch: 10,000 removals from the front of 450,000 items")
def _(client, size):
    define(client, {"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    made = client.must(201, "POST", CUSTOM, custom({"list": [1] * int(450_000 * size)}))
    return "PATCH", CUSTOM + "/" + made["metadata"]["name"], compact([{"op": "remove", "path": "/spec/list/0"}] * 10_000), JSON_PATCH


@case("JSON patch: 10,000 copies of a growing list into itself")
def _(client, size):
    define(client, {"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    made = client.must(201, "POST", CUSTOM, custom({"list": [1]}))
    return "PATCH", CUSTOM + "/" + made["metadata"]["name"], compact([{"op": "copy", "from": "/spec/list", "path": "/spec/list/-"}] * int(10_000 * size)), JSON_PATCH


@case("apply: 60,000 members, half of them another manager's")
def _(client, size):
    count = int(60_000 * size)
    path = fresh(client, MAPS, config_map({}))
    client.must(200, "PATCH", path + "?fieldManager=a", compact(config_map(dict.fromkeys(keys(count // 2), "x"))), content_type=APPLY)
    return "PATCH", path + "?fieldManager=b", compact(config_map(dict.fromkeys(keys(count), "y"))), APPLY


@case("apply: a set of 40,000 that another manager has, reversed")
def _(client, size):
    define(client, items({"type": "string"}, **{"x-kubernetes-list-type": "set"}))
    names = ["v%05d" % number for number in range(int(40_000 * size))]
    body = json.loads(custom({"list": names}))
    body["metadata"] = {"name": "applied"}
    path = CUSTOM + "/applied"
    client.must(201, "PATCH", path + "?fieldManager=a", compact(body), content_type=APPLY)
    body["spec"]["list"] = names[::-1]
    return "PATCH", path + "?fieldManager=b&force=true", compact(body), APPLY


# ---- custom resources

@case("definition: 85,000 properties")
def _(client, size):
    properties = {"p%06d" % number: {"type": "string"} for number in range(int(85_000 * size))}
    return definition({"type": "object", "properties": properties})


@case("definition: 60,000 properties without a type")
def _(client, size):
    return definition({"type": "object", "properties": {"p%06d" % number: {"items": {}} for number in range(int(60_000 * size))}})


@case("definition: 30,000 rules")
def _(client, size):
    rules = [{"rule": "self.a > %d" % number} for number in range(int(30_000 * size))]
    return definition({"type": "object", "properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": rules})


@case("definition: allOf of 100,000 branches")
def _(client, size):
    return definition({"type": "object", "properties": {"a": {"type": "integer", "allOf": [{"minimum": number} for number in range(int(100_000 * size))]}}})


@case("definition: an enum of 250,000")
def _(client, size):
    return definition({"type": "object", "properties": {"a": {"type": "string", "enum": ["e%d" % number for number in range(int(250_000 * size))]}}})


def definition(schema):
    return "POST", DEFINITIONS + "?dryRun=All", compact({"metadata": {"name": "others.worst.example.com"}, "spec": {
        "group": "worst.example.com", "scope": "Namespaced", "names": {"plural": "others", "kind": "Other"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}}}]}})


@case("custom resource: a set of 700,000 equal items")
def _(client, size):
    define(client, items({"type": "string"}, **{"x-kubernetes-list-type": "set"}))
    return "POST", CUSTOM, custom({"list": ["v"] * int(700_000 * size)})


@case("custom resource: a list of maps with 180,000 keys")
def _(client, size):
    define(client, items({"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}))
    return "POST", CUSTOM + "?dryRun=All", custom({"list": [{"k": "k%06d" % number} for number in range(int(180_000 * size))]})


@case("custom resource: 340,000 items against an enum of 10,000")
def _(client, size):
    define(client, items({"type": "string", "enum": ["e%05d" % number for number in range(10_000)]}))
    return "POST", CUSTOM + "?dryRun=All", custom({"list": ["e09999"] * int(340_000 * size)})


@case("custom resource: 1,500,000 items against anyOf of 100 branches")
def _(client, size):
    define(client, items({"type": "integer", "anyOf": [{"minimum": 1_000_000 + number} for number in range(100)]}))
    return "POST", CUSTOM + "?dryRun=All", custom({"list": [1] * int(1_500_000 * size)})


@case("custom resource: 1,500,000 items of a wrong type")
def _(client, size):
    define(client, items({"type": "string"}))
    return "POST", CUSTOM + "?dryRun=All", custom({"list": [1] * int(1_500_000 * size)})


@case("custom resource: 750,000 items against a pattern")
def _(client, size):
    define(client, items({"type": "string", "pattern": "^(a|aa)+$"}))
    return "POST", CUSTOM + "?dryRun=All", custom({"list": ["a"] * int(750_000 * size)})


@case("custom resource: 1,000 texts of 3 kB against a pattern that backtracks")
def _(client, size):
    define(client, items({"type": "string", "pattern": "^(a|aa)+b$"}))
    return "POST", CUSTOM + "?dryRun=All", custom({"list": ["a" * 3_000] * int(1_000 * size)})


@case("custom resource: 250,000 unknown fields, pruned")
def _(client, size):
    define(client, {"type": "object"})
    return "POST", CUSTOM + "?dryRun=All", custom({"u%06d" % number: 1 for number in range(int(250_000 * size))})


@case("custom resource: 1,000,000 items that get ten defaults each")
def _(client, size):
    define(client, items({"type": "object", "properties": {"a%d" % number: {"type": "string", "default": "x" * 10} for number in range(10)}}))
    return "POST", CUSTOM + "?dryRun=All", custom({"list": [{}] * int(1_000_000 * size)})


@case("custom resource: a rule over 20,000 items")
def _(client, size):
    define(client, items({"type": "string", "maxLength": 10}, maxItems=20_000, **{"x-kubernetes-validations": [{"rule": "self.all(x, x.size() < 10)"}]}))
    return "POST", CUSTOM + "?dryRun=All", custom({"list": ["abc"] * int(20_000 * size)})


# ---- queries and heads

@case("label selector of 100,000 requirements")
def _(client, size):
    return "GET", MAPS + "?labelSelector=" + ",".join("a%d!=b" % number for number in range(int(100_000 * size)))


@case("label selector: one set of 140,000")
def _(client, size):
    return "GET", MAPS + "?labelSelector=a+in+(" + ",".join("v%d" % number for number in range(int(140_000 * size))) + ")"


@case("field selector of 55,000 terms")
def _(client, size):
    return "GET", MAPS + "?fieldSelector=" + ",".join(["metadata.name!=x"] * int(55_000 * size))


@case("query of 250,000 parameters")
def _(client, size):
    return "GET", MAPS + "?" + "&".join(["a=1"] * int(250_000 * size))


@case("Accept with 100,000 media types")
def _(client, size):
    return "GET", MAPS, None, None, ",".join(["a/b;q=0.1"] * int(100_000 * size))


@case("deletecollection with 500,000 dry run options")
def _(client, size):
    return "DELETE", MAPS + "?labelSelector=none=x&dryRun=All", '{"dryRun":["All"' + ',"All"' * int(500_000 * size) + "]}"


@case("access review: 50,000 selector requirements")
def _(client, size):
    requirements = [{"key": "k%d" % number, "operator": "In", "values": ["v"]} for number in range(int(50_000 * size))]
    return "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", compact({"spec": {"resourceAttributes": {"verb": "list", "resource": "pods", "labelSelector": {"requirements": requirements}}}})


@case("token review of 3 MiB")
def _(client, size):
    return "POST", "/apis/authentication.k8s.io/v1/tokenreviews", compact({"spec": {"token": "a." * int(1_500_000 * size)}})


# ---- measuring

class Process:
    def __init__(self, server):
        self.pids = server.pids()

    def cpu(self):
        total = 0
        for pid in self.pids:
            with open("/proc/%d/stat" % pid) as f:
                fields = f.read().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        return total / os.sysconf("SC_CLK_TCK")

    def memory_mb(self, field):
        total = 0
        for pid in self.pids:
            with open("/proc/%d/status" % pid) as f:
                total += sum(int(line.split()[1]) for line in f if line.startswith(field + ":"))
        return total / 1024

    def reset_peak(self):
        for pid in self.pids:
            with open("/proc/%d/clear_refs" % pid, "w") as f:
                f.write("5")


def settle(process):
    """Waits until the server does nothing, so that the work of the request before does not count."""
    while True:
        begin = process.cpu()
        time.sleep(0.3)
        if process.cpu() - begin <= 0.05:
            return


def send(server, function, size):
    """Sends the case; returns status, CPU and growth of the peak of resident memory."""
    client, process = Client(server, timeout=120), Process(server)
    method, path, body, content_type, accept = (list(function(client, size)) + [None] * 5)[:5]
    settle(process)
    process.reset_peak()
    resident, begin = process.memory_mb("VmRSS"), process.cpu()
    try:
        status = client.request(method, path, body, content_type=content_type or "application/json", accept=accept or "application/json")[0]
    except (OSError, http.client.HTTPException) as error:
        status = type(error).__name__
    settle(process)
    return status, process.cpu() - begin, process.memory_mb("VmHWM") - resident


def measure(server, function):
    _, half, _ = send(server, function, 0.5)
    status, cpu, growth = send(server, function, 1)
    return status, cpu, growth, math.log2(cpu / half) if half >= SLOPE_FROM and cpu else None


def text(measured):
    status, cpu, growth, slope = measured
    return "%s | %.2f s | %.0f MB | %s" % (status, cpu, growth, "" if slope is None else "%.1f" % slope)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("keelson")
    parser.add_argument("folder", type=os.path.abspath)
    parser.add_argument("--only", default="")
    parser.add_argument("--beside", metavar="BIN_FOLDER")
    a = parser.parse_args()
    shutil.rmtree(a.folder, ignore_errors=True)
    servers = [Keelson(a.keelson, os.path.join(a.folder, "keelson"))]
    if a.beside:
        servers.append(RealPair(os.path.join(a.folder, "real"), a.beside))
    slow = []
    try:
        for server in servers:
            server.start()
            Client(server).request("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})  # for pods
        print("| request | status | CPU | memory | slope |" + (" kube-apiserver: status | CPU | memory | slope |" if a.beside else ""))
        print("|---|---|---|---|---|" + ("---|---|---|---|" if a.beside else ""))
        for title, function in CASES.items():
            if a.only in title:
                measured = [measure(server, function) for server in servers]
                print("| %s | %s |" % (title, " | ".join(map(text, measured))), flush=True)
                if measured[0][1] > CPU_MAX:
                    slow.append(title)
    finally:
        for server in servers:
            server.stop()
    for title in slow:
        print("above %.1f s: %s" % (CPU_MAX, title))
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
