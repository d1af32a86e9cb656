#!/usr/bin/env python3
"""StorageVersion objects (gates StorageVersionAPI and APIServerIdentity) and the barrier before writes. usage: storage_versions_test.py KEELSON FOLDER

The server publishes in which version it stores each built-in resource; a second start changes nothing, and a lost object comes back. Where the API is not
enabled the versions cannot be published: the server does not become ready and refuses writes, as upstream.
"""
import os
import shutil
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client, Server, config_map  # noqa: E402

GATE = "--feature-gates=StorageVersionAPI=true,StorageVersionMigrator=true"
VERSIONS = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions"
HOOK = "[+]poststarthook/built-in-resources-storage-version-updater ok"
# name, encoding version, decodable versions, served versions
EXPECTED = [
    ("core.pods", "v1", ["v1"], ["v1"]),
    ("core.events", "v1", ["v1", "events.k8s.io/v1"], ["v1"]),
    ("apps.deployments", "apps/v1", ["apps/v1", "apps/v1beta2", "apps/v1beta1"], ["apps/v1"]),
    ("apps.daemonsets", "apps/v1", ["apps/v1", "apps/v1beta2"], ["apps/v1"]),
    ("autoscaling.horizontalpodautoscalers", "autoscaling/v2", ["autoscaling/v2", "autoscaling/v1"], ["autoscaling/v2", "autoscaling/v1"]),
    ("apiextensions.k8s.io.customresourcedefinitions", "apiextensions.k8s.io/v1beta1", ["apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"],
     ["apiextensions.k8s.io/v1"]),
    ("admissionregistration.k8s.io.mutatingadmissionpolicies", "admissionregistration.k8s.io/v1beta1",
     ["admissionregistration.k8s.io/" + version for version in ("v1", "v1beta1", "v1alpha1")], ["admissionregistration.k8s.io/v1"]),
    ("internal.apiserver.k8s.io.storageversions",) + ("internal.apiserver.k8s.io/v1alpha1",) + (["internal.apiserver.k8s.io/v1alpha1"],) * 2,
]
ABSENT = ["events.k8s.io.events", "core.bindings", "core.componentstatuses", "authentication.k8s.io.tokenreviews"]


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def listed(client):
    return {one["metadata"]["name"]: one for one in client.must(200, "GET", VERSIONS)["items"]}


def check_objects(objects):
    for name, encoding, decodable, served in EXPECTED:
        status = objects[name]["status"]
        entry, = status["storageVersions"]
        check(entry["apiServerID"].startswith("apiserver-"), entry)
        check((entry["encodingVersion"], entry["decodableVersions"], entry["servedVersions"]) == (encoding, decodable, served), (name, entry))
        check(status["commonEncodingVersion"] == encoding, status)
        condition, = status["conditions"]
        check((condition["type"], condition["status"], condition["reason"]) == ("AllEncodingVersionsEqual", "True", "CommonEncodingVersionSet"), condition)
    for name in ABSENT:
        check(name not in objects, name)


def told(binary, folder):
    server = Server(binary, folder, [GATE, "--runtime-config=internal.apiserver.k8s.io/v1alpha1=true"]).start()
    try:
        client = Client(server)
        objects = listed(client)
        check_objects(objects)
        _, ready = client.request("GET", "/readyz?verbose", accept="text/plain")
        check(HOOK in ready.decode(), ready)
        for name in ("storage-version-garbage-collector", "storage-version-migrator-controller"):
            for kind in ("clusterroles", "clusterrolebindings"):
                client.must(200, "GET", "/apis/rbac.authorization.k8s.io/v1/%s/system:controller:%s" % (kind, name))
        client.must(200, "DELETE", VERSIONS + "/core.pods")
        # Another server with another encoding version: no common one exists.
        other = {"apiServerID": "apiserver-other", "encodingVersion": "v2", "decodableVersions": ["v2"]}
        secrets = objects["core.secrets"]["status"]
        client.must(200, "PATCH", VERSIONS + "/core.secrets/status", {"status": {"storageVersions": [other], "commonEncodingVersion": "v2"}},
                    content_type="application/merge-patch+json")
        client.close()
        server.stop()
        server.start()
        client = Client(server)
        again = listed(client)
        check_objects(again)
        changed = {name for name in again if again[name]["metadata"]["resourceVersion"] != objects[name]["metadata"]["resourceVersion"]}
        check(changed == {"core.pods", "core.secrets"}, "changed by a second start: %s" % changed)
        status = again["core.secrets"]["status"]
        check(status["storageVersions"] == [other] + secrets["storageVersions"] and "commonEncodingVersion" not in status, status)
        check((status["conditions"][0]["status"], status["conditions"][0]["reason"]) == ("False", "CommonEncodingVersionUnset"), status)
    finally:
        server.stop()


def refused(binary, folder):
    server = Server(binary, folder, [GATE])
    server._wait_ready = lambda begin: True  # it never is
    server.start()
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                server.pki = server._find_pki()
                client = Client(server)
                if "could not find the requested resource" in str(client.request("POST", "/api/v1/namespaces/default/configmaps", config_map("a", {}))):
                    break
            except (OSError, TypeError):
                pass  # no port or no certificates so far
            time.sleep(0.05)
        answer = client.must(503, "POST", "/api/v1/namespaces/default/configmaps", config_map("a", {}))
        check(answer["reason"] == "ServiceUnavailable" and answer["message"] == (
            "wait for storage version registration to complete for resource: configmaps, last seen error: "
            "the server could not find the requested resource"), answer)
        check(client.request("GET", "/readyz")[0] == 500, "ready")
        client.must(200, "GET", "/api/v1/namespaces/default/configmaps")
        client.must(404, "GET", VERSIONS)
        lease = {"metadata": {"name": "a"}, "spec": {"holderIdentity": "a"}}
        client.must(201, "POST", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", lease)
        client.must(503, "POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases", lease)
        client.must(503, "POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
        client.must(201, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}})
    finally:
        server.stop()


def main():
    binary, folder = sys.argv[1:3]
    shutil.rmtree(folder, ignore_errors=True)
    told(binary, os.path.join(folder, "told"))
    refused(binary, os.path.join(folder, "refused"))
    print("storage versions: ok")


if __name__ == "__main__":
    main()
