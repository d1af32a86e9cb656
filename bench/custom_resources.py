#!/usr/bin/env python3
"""Custom resources beside built-in kinds of the same size, and large custom resources in the watch cache.
usage: bench/custom_resources.py KEELSON WORK_FOLDER [--beside BIN_FOLDER] [--requests N] [--no-large] [--no-verbs]

Prints the server's CPU per create, get, merge patch, apply and LIST (of 500) of a custom resource, of a ConfigMap and of a Deployment whose
JSON has as many bytes, then the benchmark of kubernetes issue 142062: 100 custom resources of 1.3 MB, one metadata watch, and the resident
memory that the watch cache takes for each byte of JSON. With --beside the same of kube-apiserver (+ etcd). Figures, not a test. One client
that waits for each answer: CPU is counted, not time, so that a busy machine does not change much.
"""
import argparse
import json
import os
import shutil
import sys
import time

sys.dont_write_bytecode = True
top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(top, "interop"), os.path.join(top, "test", "system")]
from harness import Client, Server  # noqa: E402
from rig import RealPair  # noqa: E402

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "bench.example.com"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
LISTED = 500
LARGE_COUNT, LARGE_BYTES = 100, 1300 * 1000


def nanoseconds(pids):
    """CPU of all threads; scheduler ticks are too coarse for a hundred requests."""
    total = 0
    for pid in pids:
        for task in os.listdir("/proc/%d/task" % pid):
            try:
                with open("/proc/%d/task/%s/schedstat" % (pid, task)) as f:
                    total += int(f.read().split()[0])
            except (FileNotFoundError, ProcessLookupError):
                pass
    return total


def resident_kb(pid):
    with open("/proc/%d/status" % pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


def settled(pids):
    before = nanoseconds(pids)
    while True:
        time.sleep(1)
        now = nanoseconds(pids)
        if now - before < 50e6:
            return
        before = now


def template(number):
    """A pod template of about 1.5 kB."""
    env = [{"name": "VARIABLE_%d" % i, "value": "value-%d-%d" % (number, i)} for i in range(12)]
    resources = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "200m", "memory": "256Mi"}}
    return {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [
        {"name": "main", "image": "registry.example.com/team/image:v1.2.3", "env": env, "resources": resources,
         "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
         "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "config", "mountPath": "/etc/config"}]}],
        "volumes": [{"name": "data", "emptyDir": {}}, {"name": "config", "configMap": {"name": "config"}}]}}


def texts(**more):
    return {"type": "object", "properties": {**more}}


def widgets():
    """A schema with the shape of a Deployment and of a ConfigMap; a rule, a default and list types as generators write them."""
    text, number = {"type": "string"}, {"type": "integer"}
    map_of = {"type": "object", "additionalProperties": text}
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    named = lambda **more: {"type": "array", **keyed, "items": {"type": "object", "required": ["name"], "properties": {"name": text, **more}}}  # noqa: E731
    container = dict(image=text, env=named(value=text), resources=texts(requests=map_of, limits=map_of),
                     ports={"type": "array", "items": texts(containerPort=number, name=text, protocol={"type": "string", "default": "TCP"})},
                     volumeMounts={"type": "array", "items": texts(name=text, mountPath=text, readOnly={"type": "boolean"})})
    pod = texts(metadata=texts(labels=map_of), spec=texts(containers=named(**container), volumes=named(emptyDir=texts(), configMap=texts(name=text))))
    spec = texts(replicas={"type": "integer", "minimum": 0, "default": 1}, selector=texts(matchLabels=map_of), template=pod)
    spec["x-kubernetes-validations"] = [{"rule": "self.replicas < 1000", "message": "too many"}]
    schema = texts(spec=spec, data=map_of)
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets." + GROUP}, "spec": {
        "group": GROUP, "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]}}


def deployment_spec(number):
    return {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": template(number)}


def data(number):
    return {"key-%02d" % i: "a value of some forty characters, %d" % number for i in range(24)}


class Kind:
    def __init__(self, title, api_version, kind, path, content):
        self.title, self.path, self.content = title, path, content
        self.base = {"apiVersion": api_version, "kind": kind}

    def object(self, name, number):
        return {**self.base, "metadata": {"name": name, "labels": {"app": "a"}}, **self.content(number)}


WIDGETS = "/apis/%s/v1/namespaces/default/widgets" % GROUP
KINDS = [
    Kind("ConfigMap", "v1", "ConfigMap", "/api/v1/namespaces/default/configmaps", lambda n: {"data": data(n)}),
    Kind("custom resource like it", GROUP + "/v1", "Widget", WIDGETS, lambda n: {"data": data(n)}),
    Kind("Deployment", "apps/v1", "Deployment", "/apis/apps/v1/namespaces/default/deployments", lambda n: {"spec": deployment_spec(n)}),
    Kind("custom resource like it", GROUP + "/v1", "Widget", WIDGETS, lambda n: {"spec": deployment_spec(n)}),
]


def verbs(server, client, kind, tag, requests):
    """CPU in µs of each verb."""
    def cost(count, once):
        for number in range(min(20, count)):
            once(-1 - number)
        start = nanoseconds(server.pids())
        for number in range(count):
            once(number)
        return (nanoseconds(server.pids()) - start) / count / 1000

    name = lambda number: "%s-%d" % (tag, number + 20)  # noqa: E731
    apply_of = lambda number: json.dumps(kind.object(tag + "-applied", number)).encode()  # noqa: E731
    costs = {"create": cost(max(requests, LISTED), lambda n: client.must(201, "POST", kind.path, kind.object(name(n), n)))}
    costs["get"] = cost(requests, lambda n: client.must(200, "GET", kind.path + "/" + name(n % LISTED)))
    costs["patch"] = cost(requests, lambda n: client.must(200, "PATCH", kind.path + "/" + name(n % LISTED), {"metadata": {"annotations": {"n": str(n)}}}, content_type=MERGE))
    costs["apply"] = cost(requests, lambda n: client.request("PATCH", kind.path + "/%s-applied?fieldManager=bench&force=true" % tag, apply_of(n), content_type=APPLY))
    listed = "%s?labelSelector=app%%3Da&resourceVersion=0" % kind.path
    costs["list"] = cost(max(10, requests // 50), lambda n: client.must(200, "GET", listed))
    # Objects have managedFields by their schema: the answers differ in size though the objects that were sent do not.
    costs["list, per MB"] = costs["list"] / (len(json.dumps(client.must(200, "GET", listed), separators=(",", ":"))) / 1e6)
    client.request("DELETE", kind.path + "?propagationPolicy=Orphan")
    return costs


def verb_rows(server, client, requests):
    client.must(201, "POST", DEFINITIONS, widgets())
    while client.request("GET", WIDGETS)[0] != 200:
        time.sleep(0.05)
    time.sleep(2.5)  # kube-apiserver holds creates back for so long after a definition is established
    rows = []
    for index, kind in enumerate(KINDS):
        rows.append((kind, verbs(server, client, kind, "k%d" % index, requests)))
        size = len(json.dumps(kind.object("k-1", 1), separators=(",", ":")))
        print("%-26s %5d bytes  %s" % (kind.title, size, "  ".join("%s %6.0f" % item for item in rows[-1][1].items())), flush=True)
    for built_in, custom in ((rows[0][1], rows[1][1]), (rows[2][1], rows[3][1])):
        print("%-26s              %s" % ("ratio", "  ".join("%s %6.2f" % (verb, custom[verb] / built_in[verb]) for verb in custom)), flush=True)
    return rows


def large_body(number):
    """JSON of many small members, as the objects of the issue had: an inventory of a namespace."""
    entries, size = [], 0
    while size < LARGE_BYTES:
        index = len(entries)
        entries.append({"name": "workload-%d" % index, "image": "registry.example.com/a:%d" % number, "count": index, "ready": True,
                        "labels": {"app": "a", "tier": "backend"}, "findings": [{"id": "CVE-2024-%d" % index, "severity": "HIGH"}]})
        size += len(json.dumps(entries[-1], separators=(",", ":"))) + 1
    return {"apiVersion": GROUP + "/v1", "kind": "Report", "metadata": {"name": "report-%d" % number}, "report": entries}


def large(server, start):
    """Memory of the watch cache with 100 objects of 1.3 MB, after a start so that nothing of the writes is counted."""
    client = Client(server)
    client.must(201, "POST", DEFINITIONS, {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "reports." + GROUP}, "spec": {
        "group": GROUP, "scope": "Namespaced", "names": {"plural": "reports", "kind": "Report"}, "versions": [{"name": "v1", "served": True, "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}})
    path = "/apis/%s/v1/namespaces/default/reports" % GROUP
    while client.request("GET", path)[0] != 200:
        time.sleep(0.05)
    time.sleep(2.5)
    size = 0
    for number in range(LARGE_COUNT):
        body = json.dumps(large_body(number), separators=(",", ":")).encode()
        size += len(body)
        client.must(201, "POST", path, body)
    client.close()
    server.stop()
    start()
    settled(server.pids())
    pid = server.pids()[-1]  # kube-apiserver's, without etcd
    before, spent = resident_kb(pid), nanoseconds(server.pids())
    client = Client(server)
    client.connection.request("GET", path + "?watch=true&timeoutSeconds=600", headers={"Accept": METADATA})
    answer = client.connection.getresponse()
    for _ in range(LARGE_COUNT):
        answer.readline()
    settled(server.pids())
    took = (resident_kb(pid) - before) * 1024
    print("100 objects of 1.3 MB: %.0f MB of JSON, %.0f MB more resident in the cache (%.2f bytes for each of JSON), %.2f s CPU" % (
        size / 1e6, took / 1e6, took / size, (nanoseconds(server.pids()) - spent) / 1e9), flush=True)


class Ours(Server):
    def pids(self):
        return [self.process.pid]


class Theirs(RealPair):
    def stop(self):
        super().stop()
        self.processes.clear()


def run(title, server, arguments):
    print("\n%s, µs of CPU per request (load of the machine %.1f)" % (title, os.getloadavg()[0]), flush=True)
    server.start()
    try:
        settled(server.pids())
        rows = None if arguments.no_verbs else verb_rows(server, Client(server), arguments.requests)
        if not arguments.no_large:
            large(server, server.start)
        return rows
    finally:
        server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("keelson")
    parser.add_argument("folder")
    parser.add_argument("--beside", metavar="BIN_FOLDER")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--no-large", action="store_true")
    parser.add_argument("--no-verbs", action="store_true")
    arguments = parser.parse_args()
    folder = os.path.abspath(arguments.folder)
    shutil.rmtree(folder, ignore_errors=True)
    ours = run("Keelson", Ours(arguments.keelson, os.path.join(folder, "ours")), arguments)
    if not arguments.beside:
        return
    theirs = run("kube-apiserver + etcd", Theirs(os.path.join(folder, "theirs"), arguments.beside), arguments)
    for (kind, mine), (_, other) in zip(ours or [], theirs or []):
        print("kube-apiserver / Keelson, %-26s %s" % (kind.title, "  ".join("%s %5.1f" % (verb, other[verb] / mine[verb]) for verb in mine)))


if __name__ == "__main__":
    main()
