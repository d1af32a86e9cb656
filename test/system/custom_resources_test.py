#!/usr/bin/env python3
"""Custom resources from outside: served the moment they are established, stored as kube-apiserver stores them, and no way around their scope.
usage: custom_resources_test.py KEELSON WORK_FOLDER"""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import SANITIZED, Client, Server, config_map  # noqa: E402

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition(plural, kind, scope, group="stable.example.com", versions=("v1",), schema=None):
    schema = schema or {"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "size": {"type": "integer", "minimum": 1, "default": 3}, "color": {"type": "string"}}}}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "%s.%s" % (plural, group)},
            "spec": {"group": group, "scope": scope, "names": {"plural": plural, "kind": kind},
                     "versions": [{"name": v, "served": True, "storage": v == versions[0], "schema": {"openAPIV3Schema": schema},
                                   "subresources": {"status": {}}} for v in versions]}}


def thing(kind, name, spec, version="v1"):
    return {"apiVersion": "stable.example.com/" + version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def establish(client, wanted):
    client.must(201, "POST", DEFINITIONS, wanted)
    give_up = time.monotonic() + 30
    while time.monotonic() < give_up:
        _, got = client.request("GET", DEFINITIONS + "/" + wanted["metadata"]["name"])
        if any(c["type"] == "Established" and c["status"] == "True" for c in got.get("status", {}).get("conditions") or []):
            return
        time.sleep(0.01)
    raise AssertionError("never established: %s" % got)


def check_index(client):
    """/ lists the paths of groups that definitions bring (through their APIServices) once they are registered."""
    wanted = {"/apis/stable.example.com", "/apis/stable.example.com/v1"}
    give_up = time.monotonic() + 30
    while not wanted <= set(client.must(200, "GET", "/")["paths"]):
        assert time.monotonic() < give_up, "/ does not list the group of a definition"
        time.sleep(0.05)


def check_scopes(client):
    """CVE-2019-11247: a cluster-scoped object must not be reached through a namespace, nor a namespaced one without; CVE-2022-3162: a namespace
    with dots must not lead to the objects of another kind."""
    root = "/apis/stable.example.com/v1"
    client.must(201, "POST", root + "/clusters", thing("Cluster", "c", {}))
    client.must(201, "POST", root + "/namespaces/default/widgets", thing("Widget", "w", {}))
    for method, path, body in (
            ("GET", "/namespaces/default/clusters/c", None), ("GET", "/namespaces/default/clusters", None),
            ("DELETE", "/namespaces/default/clusters/c", None), ("POST", "/namespaces/default/clusters", thing("Cluster", "d", {})),
            ("PUT", "/namespaces/default/clusters/c", thing("Cluster", "c", {})), ("GET", "/widgets/w", None),
            ("POST", "/widgets", thing("Widget", "x", {})), ("DELETE", "/widgets", None)):
        status, answer = client.request(method, root + path, body)
        assert status == 404, "%s %s: %d %s" % (method, path, status, answer)
    for path in ("/namespaces/../widgets", "/namespaces/%2E%2E/widgets", "/namespaces/../clusters/c", "/namespaces/..%2Fclusters/widgets",
                 "/namespaces/%2E%2E%2Fclusters/widgets/c"):
        status, answer = client.request("GET", root + path)
        items = answer.get("items", []) if isinstance(answer, dict) else []
        assert status >= 300 or not items, "GET %s: %d %s" % (path, status, answer)
    client.must(200, "GET", root + "/clusters/c")
    listed = client.must(200, "GET", root + "/widgets")
    assert [i["metadata"]["name"] for i in listed["items"]] == ["w"], listed


def check_future_versions(client, server):
    """A state that is not there yet is answered as for built-in kinds, also by a resource that nobody has read before. The server waits for it first."""
    root = "/apis/stable.example.com/v1"
    establish(client, definition("unreads", "Unread", "Namespaced"))

    def ask(path):
        own = Client(server)
        status, answer = own.request("GET", path)
        own.close()
        assert status == 504 and answer["reason"] == "Timeout", (path, answer)
        assert answer["message"].startswith("Timeout: Too large resource version: 999999999, current: "), (path, answer)
        assert answer["details"] == {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}], "retryAfterSeconds": 1}, (path, answer)

    future = "?resourceVersion=999999999"
    paths = [path + future + more for path in (root + "/unreads", root + "/widgets", "/api/v1/configmaps")
             for more in ("", "&limit=1", "&resourceVersionMatch=Exact", "&resourceVersionMatch=NotOlderThan")]
    with concurrent.futures.ThreadPoolExecutor(len(paths) + 1) as pool:
        list(pool.map(ask, paths + [root + "/namespaces/default/widgets/w" + future]))


def check_defaults_on_reads(client):
    """A default that comes later shows at once, without a write."""
    root = "/apis/stable.example.com/v1/namespaces/default/widgets/w"
    before = client.must(200, "GET", root)
    assert before["spec"] == {"size": 3}, before
    name = DEFINITIONS + "/widgets.stable.example.com"
    current = client.must(200, "GET", name)
    current["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["color"]["default"] = "red"
    client.must(200, "PUT", name, current)
    give_up = time.monotonic() + 30
    while True:
        status, after = client.request("GET", root)
        if status == 200 and after["spec"] == {"size": 3, "color": "red"}:
            break
        assert time.monotonic() < give_up, after
        time.sleep(0.05)
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def check_many(client, server, count):
    """Definitions cost little while their objects are unused, and the time to install one does not grow."""
    memory = server.memory_kb()
    times = []
    for i in range(count):
        begin = time.monotonic()
        client.must(201, "POST", DEFINITIONS, definition("many%ds" % i, "Many%d" % i, "Namespaced", group="g%d.example.com" % (i % 50)))
        times.append(time.monotonic() - begin)
    last = "/apis/g%d.example.com/v1/many%ds" % ((count - 1) % 50, count - 1)
    give_up = time.monotonic() + 60
    while client.request("GET", last)[0] != 200:
        assert time.monotonic() < give_up
        time.sleep(0.05)
    each = (server.memory_kb() - memory) / count
    third = max(1, count // 3)
    print("%d definitions: %.1f kB each, create %.1f ms at first, %.1f ms at last" % (
        count, each, 1000 * sum(times[:third]) / third, 1000 * sum(times[-third:]) / third))
    return each


def check_openapi(client, server):
    """Operations and models of an established definition, every reference among them resolved; kubectl reads both versions of OpenAPI."""
    path, give_up = "/openapi/v3/apis/stable.example.com/v1", time.monotonic() + 10
    while client.request("GET", path)[0] == 404 and time.monotonic() < give_up:
        time.sleep(0.01)
    third = client.must(200, "GET", path)
    second = client.must(200, "GET", "/openapi/v2")
    for document, known in ((third, {"components/schemas": third["components"]["schemas"]}),
                            (second, {"definitions": second["definitions"], "parameters": second["parameters"]})):
        item = document["paths"]["/apis/stable.example.com/v1/namespaces/{namespace}/widgets/{name}"]
        assert item["get"]["operationId"] == "readStableExampleComV1NamespacedWidget", item["get"]
        assert "/apis/stable.example.com/v1/namespaces/{namespace}/widgets/{name}/status" in document["paths"]
        for where, name in re.findall(r'"#/([^"]+)/([^"/]+)"', json.dumps(document)):
            assert name in known[where], "%s/%s is referred to and not there" % (where, name)
    if shutil.which("kubectl") is None:
        print("no kubectl: its part is left out")
        return

    def kubectl(*arguments, text=None):
        return subprocess.run(("kubectl", "--kubeconfig", server.kubeconfig) + arguments, input=text, capture_output=True, text=True, timeout=60)

    for form in ("plaintext", "plaintext-openapiv2"):
        explained = kubectl("explain", "widgets.spec", "--output", form)
        assert "size" in explained.stdout and "color" in explained.stdout, explained
    widget = json.dumps(thing("Widget", "explained", {"size": 5}))
    refused = kubectl("apply", "-f", "-", text=widget.replace("size", "sizes"))
    assert 'unknown field "spec.sizes"' in refused.stderr, refused
    for wanted in ("created", "unchanged"):
        applied = kubectl("apply", "-f", "-", text=widget)
        assert wanted in applied.stdout, applied
    assert "deleted" in kubectl("delete", "widget", "explained").stdout


def check_large_definition(client):
    """Large definitions are held compressed, invisibly to clients."""
    words = "Words about a field, as generators write them from the comments of a Go type. "
    properties = {"field%d" % i: {"type": "string", "description": words * 5} for i in range(60)}
    wanted = definition("larges", "Large", "Namespaced", schema={"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})
    establish(client, wanted)
    path = DEFINITIONS + "/larges.stable.example.com"
    got = client.must(200, "GET", path)
    assert got["spec"]["versions"][0]["schema"] == wanted["spec"]["versions"][0]["schema"], got["spec"]["versions"][0]["schema"]
    listed = [one for one in client.must(200, "GET", DEFINITIONS)["items"] if one["metadata"]["name"] == "larges.stable.example.com"]
    assert [{**got["metadata"]}] == [one["metadata"] for one in listed] and listed[0]["spec"] == got["spec"], listed
    _, partial = client.request("GET", path, accept="application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
    assert partial["metadata"] == got["metadata"], partial
    _, text = client.request("GET", path, accept="application/yaml")
    assert "field59:" in text.decode() and "resourceVersion: " in text.decode(), text[:500]
    same = client.must(200, "PUT", path, got)
    assert same["metadata"]["resourceVersion"] == got["metadata"]["resourceVersion"], "an update that changes nothing wrote something"
    labelled = client.must(200, "PATCH", path, {"metadata": {"labels": {"a": "b"}}}, content_type="application/merge-patch+json")
    assert labelled["metadata"]["resourceVersion"] != got["metadata"]["resourceVersion"]
    client.must(201, "POST", "/apis/stable.example.com/v1/namespaces/default/larges", thing("Large", "l", {"field1": "x"}))
    document = client.must(200, "GET", "/openapi/v3/apis/stable.example.com/v1")
    assert document["components"]["schemas"]["com.example.stable.v1.Large"]["properties"]["spec"]["properties"]["field1"]["description"] == words * 5


def check_apply_across_versions(client):
    """Strategy None: what a manager set in one version it gives up in another."""
    establish(client, definition("gears", "Gear", "Namespaced", versions=("v1", "v2")))
    path = "/apis/stable.example.com/%s/namespaces/default/gears/g?fieldManager=%s"

    def apply(version, manager, spec, expected):
        return client.must(expected, "PATCH", path % (version, manager), json.dumps(thing("Gear", "g", spec, version)),
                           content_type="application/apply-patch+yaml")

    apply("v1", "one", {"size": 5, "color": "red"}, 201)
    conflict = apply("v2", "two", {"color": "blue"}, 409)
    assert ".spec.color" in conflict["message"], conflict
    given_up = apply("v2", "one", {"size": 5}, 200)
    assert given_up["spec"] == {"size": 5}, given_up
    assert [(entry["apiVersion"], entry["manager"]) for entry in given_up["metadata"]["managedFields"]] == [("stable.example.com/v2", "one")]


def make_policy(client):
    """A policy whose parameter is a custom resource: the cluster-scoped object c."""
    group = "/apis/admissionregistration.k8s.io/v1"
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}]
    client.must(201, "POST", group + "/validatingadmissionpolicies", {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "by-cluster"},
        "spec": {"failurePolicy": "Fail", "paramKind": {"apiVersion": "stable.example.com/v1", "kind": "Cluster"}, "matchConstraints": {"resourceRules": rules},
                 "validations": [{"expression": "object.metadata.name != 'refused-' + params.metadata.name", "message": "the parameter says no"}]}})
    client.must(201, "POST", group + "/validatingadmissionpolicybindings", {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "by-cluster"},
        "spec": {"policyName": "by-cluster", "validationActions": ["Deny"], "paramRef": {"name": "c", "parameterNotFoundAction": "Deny"}}})


def check_policy(client):
    """The parameter is found, whether or not a client has asked for its kind since the start."""
    early = ("not yet synced to use for admission", "failed to find resource referenced by paramKind")  # as upstream, soon after a start
    give_up = time.monotonic() + 30
    while True:
        status, answer = client.request("POST", "/api/v1/namespaces/default/configmaps?dryRun=All", config_map("refused-c", {}))
        if status == 422 and "the parameter says no" in answer["message"]:
            return
        assert status == 201 or any(text in answer["message"] for text in early), answer
        assert time.monotonic() < give_up, "the policy is not enforced: %s" % answer
        time.sleep(0.01)


def check_policies_on_scale(client):
    """A Scale has the same kind in all versions of its resource; `request.resource` is still that of the rule that matched."""
    group, root = "/apis/admissionregistration.k8s.io/v1", "/apis/scaled.example.com"
    pods = definition("pods", "Pod", "Namespaced", group="scaled.example.com", versions=("v1", "v2"))
    for version in pods["spec"]["versions"]:
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["replicas"] = {"type": "integer"}
        version["subresources"]["scale"] = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    establish(client, pods)
    for name, match, version in (("exact", "Exact", "*"), ("equivalent", "Equivalent", "v1")):
        rules = [{"apiGroups": ["scaled.example.com"], "apiVersions": [version], "resources": ["pods/scale"], "operations": ["UPDATE"]}]
        client.must(201, "POST", group + "/validatingadmissionpolicies", {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
            "spec": {"matchConstraints": {"resourceRules": rules, "matchPolicy": match},
                     "validations": [{"expression": "false", "messageExpression": "'%s ' + request.resource.version + ' ' + request.kind.kind" % name}]}})
        client.must(201, "POST", group + "/validatingadmissionpolicybindings", {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Warn"]}})
    place = root + "/v2/namespaces/default/pods"
    client.must(201, "POST", place, {"apiVersion": "scaled.example.com/v2", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"replicas": 1}})
    give_up = time.monotonic() + 30
    while True:
        client.connection.request("PATCH", place + "/p/scale?dryRun=All", json.dumps({"spec": {"replicas": 2}}), {"Content-Type": "application/merge-patch+json"})
        response = client.connection.getresponse()
        body = response.read()
        assert response.status == 200, body
        warnings = sorted(re.findall("(?:exact|equivalent) v[12] Scale", response.getheader("Warning") or ""))
        if len(warnings) == 2:
            assert warnings == ["equivalent v1 Scale", "exact v2 Scale"], warnings
            return
        assert time.monotonic() < give_up, "both policies are not enforced: %s" % warnings
        time.sleep(0.01)


def main():
    binary, folder = sys.argv[1:3]
    shutil.rmtree(folder, ignore_errors=True)
    server = Server(binary, folder, ["--endpoint-reconciler-type=none"]).start()
    try:
        client = Client(server)
        establish(client, definition("widgets", "Widget", "Namespaced"))
        establish(client, definition("clusters", "Cluster", "Cluster"))
        check_index(client)
        check_scopes(client)
        check_future_versions(client, server)
        check_defaults_on_reads(client)
        check_openapi(client, server)
        check_apply_across_versions(client)
        check_large_definition(client)
        each = check_many(client, server, 200)
        assert each < (1000 if SANITIZED else 60), "%.1f kB per definition" % each
        client.must(200, "DELETE", DEFINITIONS + "/widgets.stable.example.com")
        give_up = time.monotonic() + 30
        # The definition goes first; its paths follow as soon as the informer has seen that.
        for path in (DEFINITIONS + "/widgets.stable.example.com", "/apis/stable.example.com/v1/namespaces/default/widgets"):
            while client.request("GET", path)[0] != 404:
                assert time.monotonic() < give_up, path + " stays"
                time.sleep(0.05)
        make_policy(client)
        check_policy(client)
        check_policies_on_scale(client)
        client.close()
    finally:
        server.stop()
    # After a restart the definitions are served again, with their objects; admission reads them first.
    server = Server(binary, folder, ["--endpoint-reconciler-type=none"]).start()
    try:
        client = Client(server)
        check_policy(client)
        client.must(200, "GET", "/apis/stable.example.com/v1/clusters/c")
        client.close()
    finally:
        server.stop()
    print("custom resources: all checks passed")


if __name__ == "__main__":
    main()
