#!/usr/bin/env python3
"""Installs the CustomResourceDefinitions of well-known projects and uses an object of each kind.

usage: projects_test.py KEELSON WORK_FOLDER [--beside BIN_FOLDER] [NAME]...

The definitions come from the Go module proxy into the Go module cache; nothing of them is in this tree. Skipped without `go` or a proxy; a
module that cannot be had is named and left out. Every definition is created as its project ships it (YAML, strict field validation); an
object of every kind is created, applied, patched, listed (JSON, table, metadata), watched and deleted. With --beside the same requests go to
kube-apiserver + etcd from BIN_FOLDER, and the answers must be equal.
"""
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import time
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, Server, skip, source_root  # noqa: E402

MODULES = [  # name, module, folder or file with definitions
    ("argo-cd", "github.com/argoproj/argo-cd/v2@v2.13.3", "manifests/crds"),
    ("cert-manager", "github.com/cert-manager/cert-manager@v1.16.2", "deploy/crds"),
    ("cluster-api", "sigs.k8s.io/cluster-api@v1.9.3", "config/crd/bases"),
    ("crossplane", "github.com/crossplane/crossplane@v1.18.2", "cluster/crds"),
    ("external-secrets", "github.com/external-secrets/external-secrets@v0.10.7", "config/crds/bases"),
    ("gateway-api", "sigs.k8s.io/gateway-api@v1.2.1", "config/crd/standard"),
    ("istio", "istio.io/api@v1.24.2", "kubernetes/customresourcedefinitions.gen.yaml"),
    ("keda", "github.com/kedacore/keda/v2@v2.16.1", "config/crd/bases"),
    ("knative", "knative.dev/serving@v0.43.0", "config/core/300-resources"),
    ("prometheus-operator", "github.com/prometheus-operator/prometheus-operator@v0.79.2", "example/prometheus-operator-crd"),
    ("tekton", "github.com/tektoncd/pipeline@v0.65.0", "config/300-crds"),
]
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
TEXTS = ["a", "abc", "a.example.com", "1h", "1", "https://a.example.com/", "/a", "10.0.0.1", "1Gi", "a/b", "v1", "Always", "A", "a=b", "1.0.0"]
# Parts of objects that no rule of the schema alone says (CEL rules, conversions of meaning).
PARTS = {
    "Gateway.gateway.networking.k8s.io": {"spec": {"listeners": [{"name": "a", "port": 80, "protocol": "HTTP"}]}},
    "Usage.apiextensions.crossplane.io": {"spec": {"reason": "a", "of": {"kind": "Pod", "resourceRef": {"name": "a"}}}},
    "WorkloadEntry.networking.istio.io": {"spec": {"address": "10.0.0.1"}},
    "ReferenceGrant.gateway.networking.k8s.io": {"spec": {"from": [{"group": "", "kind": "Pod", "namespace": "default"}], "to": [{"group": "", "kind": "Secret"}]}},
}


def module_folder(module):
    run = subprocess.run(["go", "mod", "download", "-json", module], capture_output=True, text=True, timeout=300, cwd="/")
    try:
        return json.loads(run.stdout).get("Dir")
    except ValueError:
        return None


def documents(path):
    files = [path] if os.path.isfile(path) else sorted(os.path.join(path, name) for name in os.listdir(path) if name.endswith(".yaml"))
    for name in files:
        with open(name) as f:
            text = "".join(line for line in f if "{{" not in line)  # of Helm templates
        for part in re.split(r"(?m)^---.*$", text):
            if re.search(r"(?m)^kind: CustomResourceDefinition$", part):
                yield os.path.basename(name), part.encode()


def text_for(schema):
    if schema.get("enum"):
        return schema["enum"][0]
    form = {"date-time": "2024-01-01T00:00:00Z", "uri": "https://a.example.com/", "byte": "YQ==", "ipv4": "10.0.0.1"}.get(schema.get("format"))
    if form:
        return form
    for text in TEXTS:
        fits = not schema.get("pattern") or re.search(schema["pattern"].replace("(?i)", ""), text)
        if fits and schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", 1 << 30):
            return text
    return "a" * schema.get("minLength", 1)


def sample(schema):
    """A value with what the schema requires and nothing else."""
    if schema.get("x-kubernetes-int-or-string"):
        return 1
    if "default" in schema:
        return schema["default"]
    kind = schema.get("type", "object")
    if kind == "object":
        wanted = list(schema.get("required", []))
        for junctor in ("oneOf", "anyOf"):
            for one in schema.get(junctor, [])[:1]:
                wanted += one.get("required", [])
        properties = schema.get("properties", {})
        made = {name: sample(properties[name]) for name in wanted if name in properties}
        if len(made) < schema.get("minProperties", 0):
            made.update((name, sample(properties[name])) for name in list(properties)[:schema["minProperties"]])
        return made
    if kind == "array":
        return [sample(schema["items"]) for _ in range(schema.get("minItems", 0))]
    if kind in ("integer", "number"):
        return schema["enum"][0] if schema.get("enum") else max(1, schema.get("minimum", 1))
    return True if kind == "boolean" else text_for(schema)


def merged(a, b):
    if not isinstance(a, dict) or not isinstance(b, dict):
        return b
    return {key: merged(a[key], b[key]) if key in a and key in b else a.get(key, b.get(key)) for key in [*a, *[key for key in b if key not in a]]}


def sample_object(definition, version):
    names = definition["spec"]["names"]
    schema = version["schema"]["openAPIV3Schema"]
    made = sample({**schema, "properties": {key: value for key, value in schema.get("properties", {}).items()
                                            if key not in ("apiVersion", "kind", "metadata", "status")}})
    made = merged(made, PARTS.get(names["kind"] + "." + definition["spec"]["group"], {}))
    return {"apiVersion": "%s/%s" % (definition["spec"]["group"], version["name"]), "kind": names["kind"], "metadata": {"name": "sample"}, **made}


class Watch:
    def __init__(self, server, path, resource_version):
        self.connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=30, context=server.context())
        self.connection.request("GET", "%s?watch=true&resourceVersion=%s&timeoutSeconds=60" % (path, resource_version), headers={"Accept": "application/json"})
        self.response = self.connection.getresponse()

    def expect(self, kind):
        event = json.loads(self.response.readline())
        if event["type"] != kind:
            raise AssertionError("expected an event %s, got %s" % (kind, json.dumps(event)))

    def close(self):
        self.connection.close()


def use(server, client, definition, version):
    """Creates, applies, patches, lists, watches and deletes one object."""
    spec = definition["spec"]
    scope = "/namespaces/default" if spec["scope"] == "Namespaced" else ""
    path = "/apis/%s/%s%s/%s" % (spec["group"], version["name"], scope, spec["names"]["plural"])
    wanted = sample_object(definition, version)
    created = client.must(201, "POST", path + "?fieldValidation=Strict", wanted)
    watch = Watch(server, path, created["metadata"]["resourceVersion"])
    applied = merged(wanted, {"metadata": {"labels": {"applied": "yes"}}})
    answer = client.must(200, "PATCH", path + "/sample?fieldManager=tester&force=true", json.dumps(applied), content_type=APPLY)
    assert answer["metadata"]["labels"]["applied"] == "yes", answer
    watch.expect("MODIFIED")
    again = client.must(200, "PATCH", path + "/sample?fieldManager=tester&force=true", json.dumps(applied), content_type=APPLY)
    assert again["metadata"]["resourceVersion"] == answer["metadata"]["resourceVersion"], "an apply that changes nothing wrote something"
    patch = {"metadata": {"annotations": {"patched": "yes"}}}
    client.must(200, "PATCH", path + "/sample", patch, content_type="application/merge-patch+json")
    watch.expect("MODIFIED")
    for accept, count in ((None, "items"), (TABLE, "rows"), (METADATA, "items")):
        shown = client.must(200, "GET", path, accept=accept or "application/json")[count]
        assert len(shown) == 1, "%d objects listed instead of one" % len(shown)
    current = client.must(200, "GET", path + "/sample")
    client.must(200, "PUT", path + "/sample", current)
    client.must(200, "DELETE", path + "/sample")
    watch.expect("DELETED")
    watch.close()
    client.must(404, "GET", path + "/sample")


VOLATILE = {"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "time", "lastTransitionTime"}


def blank(value):
    """Without what differs from run to run: ids, times, ages, and the order of managedFields and of a definition's conditions, which controllers
    of the real server race to set."""
    if isinstance(value, dict):
        made = {key: "" if key in VOLATILE else blank(one) for key, one in value.items()}
        if "managedFields" in made:
            made["managedFields"].sort(key=lambda entry: (entry["manager"], entry["operation"], entry.get("subresource", "")))
        if isinstance(made.get("conditions"), list):
            made["conditions"].sort(key=lambda condition: condition["type"])
        return made
    if isinstance(value, list):
        return [blank(one) for one in value]
    return "" if isinstance(value, str) and re.fullmatch(r"\d+s|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", value) else value


class Recording(Client):
    """Keeps the last answer to each request. OpenAPI documents have words of our own (docs/differences.md)."""

    def __init__(self, server):
        super().__init__(server)
        self.answers = {}

    def request(self, method, path, body=None, content_type="application/json", accept="application/json"):
        status, answer = super().request(method, path, body, content_type, accept)
        if not path.startswith("/openapi/"):
            key = "%s %s as %s" % (method, path if method != "POST" or not isinstance(body, bytes) else "%s of %08x" % (path, zlib.crc32(body)), accept)
            self.answers[key] = (status, json.dumps(blank(answer), sort_keys=True) if isinstance(answer, (dict, list)) else str(answer))
        return status, answer


def different(ours, theirs):
    """Requests whose answers differ, and where."""
    for key, (status, text) in theirs.items():
        mine = ours.get(key, (0, "not asked"))
        if mine != (status, text):
            at = next((i for i, (a, b) in enumerate(zip(text, mine[1])) if a != b), min(len(text), len(mine[1])))
            yield "%s\n     kube-apiserver %d …%s\n     keelson        %d …%s" % (key, status, text[max(0, at - 80):at + 200], mine[0], mine[1][max(0, at - 80):at + 200])


def establish(client, name):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        definition = client.must(200, "GET", DEFINITIONS + "/" + name)
        if any(one["type"] == "Established" and one["status"] == "True" for one in definition["status"].get("conditions") or []):
            return definition
        time.sleep(0.01)
    raise AssertionError("%s is not established: %s" % (name, definition.get("status")))


def check_openapi(client, definition, version):
    # Published by an informer, a moment after the definition is seen to be established.
    path, deadline = "/openapi/v3/apis/%s/%s" % (definition["spec"]["group"], version["name"]), time.monotonic() + 30
    names = definition["spec"]["names"]
    while time.monotonic() < deadline:
        status, document = client.request("GET", path)
        if status == 200:
            kinds = {one["kind"] for model in document["components"]["schemas"].values() for one in model.get("x-kubernetes-group-version-kind", [])}
            if names["kind"] in kinds and any(names["plural"] in one for one in document["paths"]):
                return
        time.sleep(0.01)
    raise AssertionError("%s does not show %s" % (path, names["kind"]))


def try_project(server, client, name, folder):
    """(kinds used, failures)"""
    used, failures, installed = 0, [], []
    for file, text in documents(folder):
        status, answer = client.request("POST", DEFINITIONS + "?fieldValidation=Warn", text, content_type="application/yaml")
        if status != 201:
            failures.append("%s: not installed: %s" % (file, answer.get("message", answer) if isinstance(answer, dict) else answer))
            continue
        installed.append(answer["metadata"]["name"])
        # A conversion webhook is not there: its versions other than the stored one cannot be read or written.
        webhook = answer["spec"]["conversion"]["strategy"] == "Webhook"
        for version in [one for one in answer["spec"]["versions"] if one["served"] and (one["storage"] or not webhook)]:
            try:
                definition = establish(client, installed[-1])
                check_openapi(client, definition, version)
                use(server, client, definition, version)
                used += 1
            except (AssertionError, KeyError) as problem:
                failures.append("%s %s: %s" % (installed[-1], version["name"], str(problem)[:1500]))
    for installed_name in installed:
        client.must(200, "DELETE", DEFINITIONS + "/" + installed_name)
    print("%-20s %3d definitions, %3d kinds and versions used, %d failures" % (name, len(installed), used, len(failures)), flush=True)
    return used, failures


def run(server, projects):
    """(kinds used, failures, answers)"""
    total, bad, client = 0, [], None
    server.start()
    try:
        client = Recording(server)
        for name, path in projects:
            used, failures = try_project(server, client, name, path)
            total += used
            bad += ["%s: %s" % (name, failure) for failure in failures]
    finally:
        server.stop()
    return total, bad, client.answers


def found_projects(chosen):
    projects = []
    for name, module, path in MODULES:
        if chosen and name not in chosen:
            continue
        found = module_folder(module)
        if found and os.path.exists(os.path.join(found, path)):
            projects.append((name, os.path.join(found, path)))
        else:
            print("left out, the module cannot be had: " + module, flush=True)
    return projects


def main():
    binary, folder = sys.argv[1:3]
    chosen = sys.argv[3:]
    beside = chosen[1] if chosen[:1] == ["--beside"] else None
    if shutil.which("go") is None:
        skip("no go")
    projects = found_projects(chosen[2:] if beside else chosen)
    if not projects:
        skip("no module can be had from the Go module proxy")
    shutil.rmtree(folder, ignore_errors=True)
    total, bad, ours = run(Server(binary, folder, in_memory=True), projects)
    if beside:
        sys.path.insert(0, os.path.join(source_root(), "interop"))
        from rig import RealPair
        print("kube-apiserver + etcd:", flush=True)
        _, theirs_bad, theirs = run(RealPair(os.path.join(folder, "theirs"), beside), projects)
        differences = list(different(ours, theirs))
        print("%d answers compared, %d differ" % (len(theirs), len(differences)))
        bad += theirs_bad + differences
    for failure in bad:
        print("FAIL: " + failure)
    print("%d projects, %d kinds and versions used, %d failures" % (len(projects), total, len(bad)))
    sys.exit(1 if bad or not total else 0)


if __name__ == "__main__":
    main()
